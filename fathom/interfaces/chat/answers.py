"""What a conversation asks, and what a run says in it: a report with references, why there is none, or a question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fathom.errors import FathomError, InvalidInput, NoReport
from fathom.extractive.following import asked_in
from fathom.interfaces.chat.shapes import Message
from fathom.models import Asked, Matter, RunState
from fathom.report.chapters import title_of
from fathom.report.markdown import render_cited
from fathom.report.quotations import escaped
from fathom.report.unanswered import render_unanswered
from fathom.service.caller import Caller
from fathom.service.runs import RunService
from fathom.text.plain import clean_line
from fathom.text.urls import linkable


class RunFailed(FathomError):
    """The run that a request started failed."""

    code = NoReport.code
    remedy = NoReport.remedy


@dataclass(frozen=True)
class Reference:
    """A citation: `text[start:end]` of the answer, and what it cites."""

    start: int
    end: int
    title: str
    url: str


@dataclass(frozen=True)
class ChatAnswer:
    """What the assistant says. Its tokens are what the run's calls to models used; a run without a model has none."""

    text: str
    references: list[Reference]
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of them
    completion_tokens: int = 0

    def pieces(self) -> list[str]:
        """Return the text in pieces, a chapter each."""
        head, *chapters = self.text.split("\n## ")
        return [head, *(f"\n## {chapter}" for chapter in chapters)]


async def answer_of(service: RunService, caller: Caller, run_id: str, server: str) -> ChatAnswer:
    """Return what a run says that has ended or waits for a person; `server` is the address of this server.

    Raises:
        RunFailed: it failed, or goes on while this server ends.
    """
    found = await service.open(caller, run_id)
    run = await found.read()
    page = f"{server}{run.links.page}"
    if run.state is RunState.waiting and run.asked:
        return ChatAnswer(f"{_question(run.asked, run.complaint)}\n\n[Or answer on its page]({page}{ASKS})\n", [])
    foot = f"\n---\n\n[Run {run.id[:8]}: evidence, exports and follow-ups]({page})\n"
    metrics = run.result.metrics if run.result else None
    tokens = (metrics.prompt_tokens, metrics.cached_tokens, metrics.completion_tokens) if metrics else (0, 0, 0)
    if run.result and run.result.unanswered:
        return ChatAnswer(render_unanswered(run.question, run.result.unanswered) + foot, [], *tokens)
    if run.state is RunState.cancelled:
        return ChatAnswer(f"This was cancelled, so there is no report.\n{foot}", [], *tokens)
    if not run.state.ended:
        raise RunFailed(f"The run {run.id} is {run.state.value}, and is no longer followed.", next_step=f"see {page}")
    if not run.result or not run.result.report:
        why = f": {run.result.reason}" if run.result and run.result.reason else ""
        raise RunFailed(f"The run {run.id} failed{why}.", next_step=f"see {page}")
    text, citations = render_cited(await found.report_data(), linked=True)
    references = [
        Reference(
            citation.start,
            citation.end,
            title_of(citation.source),
            linkable(citation.source.url) or f"{page}#source-{citation.number}",
        )
        for citation in citations
    ]
    return ChatAnswer(text + foot, references, *tokens)


def _question(asked: Asked, complaint: str) -> str:
    lines = [f"*{escaped(clean_line(complaint))}*"] if complaint else []
    if asked.matter is Matter.question:
        lines.append("Before this is researched:")
        lines += [
            f"{number}. {escaped(clean_line(question.question))} (otherwise: {escaped(clean_line(question.default))})"
            for number, question in enumerate(asked.questions, 1)
        ]
        return "\n\n".join([*lines, "Answer in your next message, a line for each."])
    if asked.plan:
        steps = [f"{n}. {escaped(clean_line(step.title))}" for n, step in enumerate(asked.plan.steps, 1)]
        steps += [f"- {escaped(clean_line(said))}" for said in asked.plan.told]
        lines += [f"This is the plan: **{escaped(clean_line(asked.plan.plan_title))}**", "\n".join(steps)]
    else:
        lines += ["This is the draft:", asked.report]
    change = ", or say what to change" if asked.rewords else ""
    return "\n\n".join([*lines, f"Answer **yes** to go on, **stop** to end the run{change}."])


ASKS = "#answer"
"""At the end of the link to a run: the message was a question of the run, and not its report."""
_LINK = re.compile(rf"/runs/([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})({ASKS})?(?![\w-])")
# Open WebUI puts documents of the user before the question, and older versions the question in a tag.
_WITH_DOCUMENTS = re.compile(r"\A### Task:\s+Respond to the user query using the provided context")


@dataclass(frozen=True)
class Earlier:
    """A run that the conversation had before; `asks`: it asked something and was not answered yet."""

    run_id: str
    asks: bool


@dataclass(frozen=True)
class Conversation:
    """What a conversation asks."""

    question: str  # of its own, unless it follows up on an earlier run
    clarified: Mapping[str, str]  # what an assistant asked about the question, with the answers
    earlier: Earlier | None


def read(messages: Sequence[Message]) -> Conversation:
    """Return what a conversation asks: its last user message.

    Raises:
        InvalidInput: there is none, or a message is not text.
    """
    said = [(message.role, message.text()) for message in messages if message.role and message.type == "message"]
    asked = [position for position, (role, _) in enumerate(said) if role == "user"]
    if not asked or not said[asked[-1]][1].strip():
        raise InvalidInput("There is no user message.", next_step='add {"role": "user", "content": "..."}')
    before, last = said[: asked[-1]], _question_in(said[asked[-1]][1])
    earlier = _earlier(before)
    return Conversation(last, {}, earlier) if earlier else Conversation(*asked_in(before, last), None)


def _earlier(before: Sequence[tuple[str, str]]) -> Earlier | None:
    answers = [text for role, text in reversed(before) if role == "assistant"]
    for position, text in enumerate(answers):
        if links := _LINK.findall(text):
            run_id, asks = links[-1]
            return Earlier(run_id, bool(asks) and not position)
    return None


def _question_in(text: str) -> str:
    if not _WITH_DOCUMENTS.match(text):
        return text.strip()
    before, closed, _ = text.rpartition("</user_query>")
    _, opened, named = before.rpartition("<user_query>")
    asked = named if opened and closed else text.rpartition("</context>")[2]
    return asked.strip() or text.strip()
