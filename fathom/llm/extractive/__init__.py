"""The model-free backend: default when no model is configured, and the stand-in when one fails."""

from fathom.llm.extractive.backend import ExtractiveBackend

__all__ = ["ExtractiveBackend"]
