"""Reflecting without a model: which of the question's words the notes hold, and which steps found nothing."""

from __future__ import annotations

from fathom.llm.extractive.wording import capitalized, keywords, topic_terms
from fathom.models import Note, PlanStep, Priority, StepStatus
from fathom.roles import ReflectAnswer, ReflectRequest
from fathom.roles.critic import GapAnswer, StepVerdict
from fathom.roles.planner import PlannedStep
from fathom.text import terms

__all__ = ["reflect"]

WORDS_SHARE = 0.5  # of the score: the question's words found in the notes; the rest: steps with a useful note


def reflect(request: ReflectRequest) -> ReflectAnswer:
    """Return a score, the checklist, the gaps and, where something is really uncovered, steps to fill them."""
    missing = _missing_words(request)
    answered = {str(note.step_id) for note in request.notes}
    empty = [step for step in request.plan.steps if str(step.step_id) not in answered]
    wanted = len(keywords(request.query)) or 1
    covered = 1 - len(missing) / wanted
    steps = len(request.plan.steps)
    share = 1 - len(empty) / steps
    score = 1 + round(9 * (WORDS_SHARE * covered + (1 - WORDS_SHARE) * share)) if request.notes else 1
    return ReflectAnswer(
        sufficiency_score=score,
        reasoning=(
            f"The notes hold {wanted - len(missing)} of the question's {wanted} key words; "
            f"{steps - len(empty)} of {steps} steps have a useful note."
        ),
        step_statuses=[
            StepVerdict(step_id=s.step_id, status=StepStatus.blocked if s in empty else StepStatus.done)
            for s in request.plan.steps
        ],
        gaps=_gaps(request, missing, empty),
        follow_up_steps=_follow_ups(request, missing, empty)[: request.max_follow_ups],
    )


def _missing_words(request: ReflectRequest) -> list[str]:
    """Return the question's key words that no note holds."""
    held = set(terms(" ".join(_text(note) for note in request.notes)))
    return [word for word in keywords(request.query) if topic_terms(word) and not set(terms(word)) & held]


def _text(note: Note) -> str:
    return " ".join([note.summary_title, note.summary, *note.extraction])


def _gaps(request: ReflectRequest, missing: list[str], empty: list[PlanStep]) -> list[GapAnswer]:
    gaps = [
        GapAnswer(
            description=f"Nothing useful was found on “{step.title}”.",
            severity="critical" if step.priority is Priority.high else "important",
            suggested_query=_broader(request, step),
        )
        for step in empty
    ]
    if missing:
        gaps.append(
            GapAnswer(
                description=f"No note mentions {_listed(missing)}.",
                severity="important",
                suggested_query=_query(missing, request.query),
            )
        )
    return gaps


def _follow_ups(request: ReflectRequest, missing: list[str], empty: list[PlanStep]) -> list[PlannedStep]:
    """Return steps with queries that no step of the plan has had yet."""
    steps: list[PlannedStep] = []
    if missing and request.notes:
        subject = " ".join(w for w in keywords(request.query) if w not in missing)
        steps.append(
            PlannedStep(
                step_id=1,
                title=f"{capitalized(' '.join(missing[:5]))}" + (f" and {subject}" if subject else ""),
                description=f"Find what is said about {_listed(missing)}, which no note mentions so far.",
                queries=[_query(missing, request.query)],
                priority=Priority.high,
            )
        )
    for step in empty:
        steps.append(
            PlannedStep(
                step_id=len(steps) + 1,
                title=f"{step.title}: a wider search",
                description=f"Search more widely, since the first queries found nothing. {step.description}",
                queries=[_broader(request, step)],
                priority=step.priority,
            )
        )
    had = {_folded(query) for step in request.plan.steps for query in step.queries}
    return [step for step in steps if all(len(q.split()) > 1 and _folded(q) not in had for q in step.queries)]


def _query(missing: list[str], query: str) -> str:
    """Return a query that puts the missing words first."""
    return " ".join(list(dict.fromkeys([*missing, *keywords(query)]))[:6])


def _broader(request: ReflectRequest, step: PlanStep) -> str:
    """Return a query of fewer, more general words than the step's own."""
    words = keywords(step.title)
    shared = [word for word in words if set(terms(word)) & set(topic_terms(request.query))]
    return " ".join((shared if len(shared) >= 2 else list(dict.fromkeys([*words, *keywords(request.query)])))[:3])


def _listed(words: list[str]) -> str:
    quoted = [f"“{word}”" for word in words[:5]]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _folded(query: str) -> frozenset[str]:
    return frozenset(terms(query))
