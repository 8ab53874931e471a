"""Research from Python: chat messages in and out, or a string in and a string out.

Both functions are for synchronous code. They set Prefect's API address unless PREFECT_API_URL does, so call them before
you import Prefect. Inside an event loop, call `fathom.flows.server.ensure_api`, then await
`fathom.flows.runs.local.run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.flows.preflight import CheckedRequest, check_request
from fathom.flows.server import ensure_api
from fathom.report.unanswered import render_unanswered
from fathom.storage.store import ArtifactStore, RunFolder

Message = dict[str, str]


def research(
    messages: Sequence[Message], settings: ResearchSettings | None = None, run_key: str | None = None
) -> list[Message]:
    """Research what the last user message asks.

    Args:
        messages: `{"role": "user" | "assistant", "content": text}`; earlier turns are the context of the question.
        settings: how to research it.
        run_key: runs with the same key share finished calls.

    Returns:
        The messages and one more of the assistant: the report in Markdown, or why there is none.

    Raises:
        UserError: the request cannot be run.
        FathomError: the run failed; it can be resumed.
    """
    answer = research_simple(_question(messages), settings, run_key)
    return [*messages, {"role": "assistant", "content": answer}]


def research_simple(query: str, settings: ResearchSettings | None = None, run_key: str | None = None) -> str:
    """Research a question and return the report in Markdown, or why there is none; see `research`."""
    checked = check_request(query, settings or ResearchSettings())
    ensure_api()
    return asyncio.run(_answer(checked, run_key))


async def _answer(checked: CheckedRequest, run_key: str | None) -> str:
    from fathom.flows.runs import local

    result = await local.run(checked.query, checked.settings, run_key)
    if result.unanswered:
        return render_unanswered(checked.query, result.unanswered)
    store = ArtifactStore(checked.settings.artifacts or "")
    report = await RunFolder(store, result.artifacts.removeprefix(store.address()).strip("/")).report_text()
    return report or f"There is no report: {result.reason or result.status.value}."


def _question(messages: Sequence[Message]) -> str:
    """Return the last user message, followed by the earlier turns if there are any."""
    asked = [position for position, message in enumerate(messages) if message["role"] == "user"]
    if not asked:
        raise InvalidInput("There is no user message.", next_step='add {"role": "user", "content": "..."}')
    question = messages[asked[-1]]["content"]
    earlier = [f"{m['role']}: {m['content']}" for m in messages[: asked[-1]] if m["role"] in ("user", "assistant")]
    return (
        "\n\n".join([question, "Earlier in the conversation:", *earlier]) if earlier and question.strip() else question
    )
