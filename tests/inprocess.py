"""Whole runs in the test's own process, on the session's Prefect server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fathom.config.settings import ResearchSettings
from fathom.models import RunResult
from flows.deep_research import deep_research

__all__ = ["QUERY", "research"]

QUERY = "How do tides form on moons with liquid methane seas?"


async def research(root: Path | str, query: str = QUERY, run_key: str | None = None, **settings: Any) -> RunResult:
    """Research with the scripted model unless another is chosen, and little patience."""
    chosen = {"model": "openai/stub", "model_calls": {"seconds": 5, "backoff_seconds": 0.01}, **settings}
    wanted = ResearchSettings.model_validate({"artifacts": str(root), **chosen})
    result = await deep_research(query, wanted, run_key)
    assert isinstance(result, RunResult)
    return result
