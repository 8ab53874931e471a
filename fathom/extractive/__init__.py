"""The model-free backend: default when no model is configured, and the stand-in when one fails."""
