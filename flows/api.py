"""Research from Python: chat messages in and out, or a string in and a string out.

Both functions are for synchronous code. They set Prefect's API address unless PREFECT_API_URL does, so call them before
you import Prefect. Inside an event loop, call `fathom.flows.server.ensure_api`, then await
`fathom.flows.execution.local.run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.extractive.following import asked_in
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
        messages: `{"role": "user" | "assistant", "content": text}`. If the last one answers what an assistant has asked
            back, it clarifies the question before it.
        settings: how to research it.
        run_key: runs with the same key share finished calls.

    Returns:
        The messages and one more of the assistant: the report in Markdown, or why there is none.

    Raises:
        UserError: the request cannot be run.
        FathomError: the run failed; it can be resumed.
    """
    answer = research_simple(*_asked(messages, settings or ResearchSettings()), run_key)
    return [*messages, {"role": "assistant", "content": answer}]


def research_simple(query: str, settings: ResearchSettings | None = None, run_key: str | None = None) -> str:
    """Research a question and return the report in Markdown, or why there is none; see `research`."""
    checked = check_request(query, settings or ResearchSettings())
    ensure_api()
    return asyncio.run(_answer(checked, run_key))


async def _answer(checked: CheckedRequest, run_key: str | None) -> str:
    from fathom.flows.execution import local

    result = await local.run(checked.query, checked.settings, run_key)
    if result.unanswered:
        return render_unanswered(checked.query, result.unanswered)
    store = ArtifactStore(checked.settings.artifacts or "")
    report = await RunFolder(store, result.artifacts.removeprefix(store.address()).strip("/")).report_text()
    return report or f"There is no report: {result.reason or result.status.value}."


def _asked(messages: Sequence[Message], settings: ResearchSettings) -> tuple[str, ResearchSettings]:
    """Return what a conversation asks, and its settings with what was clarified about that."""
    said = [(message["role"], message["content"]) for message in messages]
    asked = [position for position, (role, _) in enumerate(said) if role == "user"]
    if not asked or not said[asked[-1]][1].strip():
        raise InvalidInput("There is no user message.", next_step='add {"role": "user", "content": "..."}')
    question, clarified = asked_in(said[: asked[-1]], said[asked[-1]][1])
    if clarified:
        people = settings.people.model_copy(update={"clarified": {**settings.people.clarified, **clarified}})
        settings = settings.model_copy(update={"people": people})
    return question, settings
