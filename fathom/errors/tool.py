"""Calls to tools that fail."""

from __future__ import annotations

from fathom.errors.base import FathomError


class ToolError(FathomError):
    """A tool call failed."""

    code = "E3000"
    reaction = "the step goes on without; the report's coverage table says so: degraded"


class ToolNotFound(ToolError):
    """No tool of that name is enabled."""

    code = "E3001"
    remedy = "enable it with `--tools`"


class ToolTimeout(ToolError):
    """The tool gave no answer in time."""

    code = "E3002"
    retryable = True
    reaction = "tried again 1 and 2 seconds later; then the next vendor, then the step goes on without: degraded"


class ToolRateLimited(ToolError):
    """The tool's vendor asks for fewer requests (HTTP 429)."""

    code = "E3003"
    retryable = True
    reaction = (
        "tried again twice, when the vendor allows it; then the next vendor, then the step goes on without: degraded"
    )


class ToolUnavailable(ToolError):
    """The tool's vendor or the way to it failed: 5xx, connection, unreadable answer."""

    code = "E3004"
    retryable = True
    reaction = "tried again 1 and 2 seconds later; then the next vendor, then the step goes on without: degraded"


class ToolRejected(ToolError):
    """The tool cannot serve this request however often it is sent."""

    code = "E3005"
    remedy = "check the vendor's key and quota: `fathom doctor`"
