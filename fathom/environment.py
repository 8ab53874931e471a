"""The one place where the environment is read: what a process was started with, secrets among it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Environment"]


@dataclass(frozen=True)
class Environment:
    """What the process was started with. Secrets are kept out of its repr."""

    model: str | None
    artifacts: str
    cache: Path
    tavily_key: str | None
    tavily_url: str | None
    fetch_allow: tuple[str, ...]
    variables: Mapping[str, str]

    @classmethod
    def read(cls, variables: Mapping[str, str] | None = None) -> Environment:
        """Read the environment, by default the process's."""
        env = dict(os.environ if variables is None else variables)
        home = Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or Path.home()) / ".cache")
        return cls(
            model=env.get("FATHOM_MODEL") or None,
            artifacts=env.get("FATHOM_ARTIFACTS") or "artifacts",
            cache=Path(env.get("FATHOM_CACHE") or home / "fathom"),
            tavily_key=env.get("TAVILY_API_KEY") or None,
            tavily_url=env.get("TAVILY_BASE_URL") or None,
            fetch_allow=tuple(env.get("FATHOM_FETCH_ALLOW", "").replace(",", " ").split()),
            variables=env,
        )

    def quieten_litellm(self) -> None:
        """Keep litellm, when it is imported, from fetching tables, loading `.env` files and printing."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        os.environ.setdefault("LITELLM_LOG", "ERROR")

    def __repr__(self) -> str:
        return f"Environment(model={self.model!r}, artifacts={self.artifacts!r})"
