"""What runs: the pipeline, and the ways to start it.

`research` takes and returns chat messages, `research_simple` a string. They are imported on first use, because Prefect
takes more than a second to load and `fathom --help` does not need it.
"""

from __future__ import annotations

# Not from `typing`, which takes so long to load that Ctrl-C would meet it before the command line can answer.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fathom.flows.api import research, research_simple

__all__ = ["research", "research_simple"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from fathom.flows import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
