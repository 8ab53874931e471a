"""What a run says in a conversation: its report with references, why there is none, or what it asks."""

from __future__ import annotations

from dataclasses import dataclass

from fathom.models import Asked, Matter, RunState
from fathom.report.chapters import title_of
from fathom.report.markdown import render_cited
from fathom.report.quotations import escaped
from fathom.report.unanswered import render_unanswered
from fathom.serve.caller import Caller
from fathom.serve.chat.conversation import ASKS
from fathom.serve.chat.errors import RunFailed
from fathom.serve.runs.desk import Desk
from fathom.text.plain import clean_line
from fathom.text.urls import linkable


@dataclass(frozen=True)
class Reference:
    """A citation: `text[start:end]` of the answer, and what it cites."""

    start: int
    end: int
    title: str
    url: str


@dataclass(frozen=True)
class Answer:
    """What the assistant says. The tokens are those of the run's calls to models; a run without one has none."""

    text: str
    references: list[Reference]
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of them
    completion_tokens: int = 0

    def pieces(self) -> list[str]:
        """Return the text in pieces, a chapter each."""
        head, *chapters = self.text.split("\n## ")
        return [head, *(f"\n## {chapter}" for chapter in chapters)]


async def answer_of(desk: Desk, caller: Caller, run_id: str, server: str) -> Answer:
    """Return what a run says that has ended or waits for a person; `server` is the address of this server.

    Raises:
        RunFailed: it failed, or goes on while this server ends.
    """
    run = await desk.get(caller, run_id)
    page = f"{server}{run.links.page}"
    if run.state is RunState.waiting and run.asked:
        return Answer(f"{_question(run.asked, run.complaint)}\n\n[Or answer on its page]({page}{ASKS})\n", [])
    foot = f"\n---\n\n[Run {run.id[:8]}: evidence, exports and follow-ups]({page})\n"
    metrics = run.result.metrics if run.result else None
    tokens = (metrics.prompt_tokens, metrics.cached_tokens, metrics.completion_tokens) if metrics else (0, 0, 0)
    if run.result and run.result.unanswered:
        return Answer(render_unanswered(run.question, run.result.unanswered) + foot, [], *tokens)
    if run.state is RunState.cancelled:
        return Answer(f"This was cancelled, so there is no report.\n{foot}", [], *tokens)
    if not run.state.ended:
        raise RunFailed(f"The run {run.id} is {run.state.value}, and is no longer followed.", next_step=f"see {page}")
    if not run.result or not run.result.report:
        why = f": {run.result.reason}" if run.result and run.result.reason else ""
        raise RunFailed(f"The run {run.id} failed{why}.", next_step=f"see {page}")
    text, citations = render_cited(await desk.report_data(caller, run_id), linked=True)
    references = [
        Reference(
            citation.start,
            citation.end,
            title_of(citation.source),
            linkable(citation.source.url) or f"{page}#source-{citation.number}",
        )
        for citation in citations
    ]
    return Answer(text + foot, references, *tokens)


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
        lines += [f"This is the plan: **{escaped(clean_line(asked.plan.plan_title))}**", "\n".join(steps)]
    else:
        lines += ["This is the draft:", asked.report]
    change = ", or say what to change" if asked.rewords else ""
    return "\n\n".join([*lines, f"Answer **yes** to go on, **stop** to end the run{change}."])
