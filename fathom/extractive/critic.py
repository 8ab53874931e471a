"""Reflecting without a model: what of the question and of each step the notes hold, and where they disagree."""

from __future__ import annotations

from fathom.contradictions.finding import Said, find_contradictions
from fathom.extractive.comparisons import grade_words
from fathom.extractive.computing import computed_answer
from fathom.extractive.hops import answers_both, hop_of, name_of
from fathom.extractive.questions import (
    as_asked,
    broader,
    capitalized,
    clip,
    keywords,
    missing_words,
    questions_of,
    strip_lead,
)
from fathom.extractive.statements import ANSWERED, Quotations, QuotedStatement, statements_of
from fathom.models import Gap, Note, PlanStep, Priority, StepStatus
from fathom.roles import ReflectAnswer, ReflectRequest
from fathom.roles.critic import FollowUpStep, StepVerdict
from fathom.text.terms import terms
from fathom.text.wording import ENGLISH, Wording, wording

ON_QUESTION = 0.3  # share of a question's terms, by worth, from which a contradiction matters to it
QUERY_WORDS = 10
HALF_WAY = 5  # the highest score as long as only the first of two hops was made
MOST_CONTRADICTIONS = 5
MOST_MISSING = 5  # words named in one gap
TITLE_WORDS = 20


def reflect(request: ReflectRequest) -> ReflectAnswer:
    """Return a score, the checklist, the gaps, the contradictions, and steps where something is really uncovered.

    The score is the mean of three shares: of the question's key words that the notes hold, of the question's terms
    that its best statement holds, and of the steps' terms that theirs hold.
    """
    statements = statements_of(request.notes)
    quotations = Quotations.of_statements(statements)
    missing = _missing_words(request, quotations)
    wanted = keywords(request.query)
    held = {str(step.step_id): _held(step, request.notes, statements) for step in request.plan.steps}
    empty = [step for step in request.plan.steps if not any(_is_of(note, step) for note in request.notes)]
    covered = 1 - len(missing) / (len(wanted) or 1)
    best = quotations.share(request.query)
    steps = sum(min(1.0, share / ANSWERED) for share in held.values()) / len(held)
    score = 1 + round(9 * (covered + min(1.0, best / ANSWERED) + steps) / 3) if request.notes else 1
    second = _second_hop(request, quotations)
    if second:
        score = min(score, HALF_WAY)
    return ReflectAnswer(
        sufficiency_score=score,
        reasoning=(
            f"The notes hold {len(wanted) - len(missing)} of the question's {len(wanted)} key words, the best "
            f"statement {best:.0%} of its terms; {len(held) - len(empty)} of {len(held)} steps have a useful note."
        ),
        step_statuses=[
            StepVerdict(step_id=step.step_id, status=_status(held[str(step.step_id)], step in empty))
            for step in request.plan.steps
        ],
        gaps=_gaps(request, missing, empty),
        contradictions=find_contradictions(
            (Said(s.text, s.sources, s.title) for s in _on_question(request.query, statements)), MOST_CONTRADICTIONS
        ),
        follow_up_steps=[*second, *_follow_ups(request, missing)][: request.max_follow_ups],
    )


def _second_hop(request: ReflectRequest, quotations: Quotations) -> list[FollowUpStep]:
    """Return the step that asks with the name of what the question only describes, once the notes have that name."""
    hop = hop_of(request.query)
    name = name_of(hop, quotations) if hop else ""
    if not hop or not name or answers_both(hop, quotations, request.query):
        return []
    step = _asked(hop.of(name))
    known = {each.title.casefold() for each in request.plan.steps}
    return [] if step.title.casefold() in known else [step]


def _status(held: float, empty: bool) -> StepStatus:
    if empty:
        return StepStatus.blocked
    return StepStatus.done if held >= ANSWERED else StepStatus.in_progress


def _is_of(note: Note, step: PlanStep) -> bool:
    return str(step.step_id) in note.steps


def _held(step: PlanStep, notes: list[Note], statements: list[QuotedStatement]) -> float:
    """Return the largest share of the step's terms that one quotation of its own notes holds."""
    own = [statement for statement in statements if _is_of(notes[statement.note], step)]
    return Quotations.of_statements(own).share(step.title)


def _on_question(query: str, statements: list[QuotedStatement]) -> list[QuotedStatement]:
    """Return the statements that have something to do with a part of the question."""
    quotations = Quotations.of_statements(statements)
    found = [each for question in questions_of(query) for each in quotations.rank(question)]
    near = {(quotations.whole(each.text), quotations.sources[each.text]) for each in found if each.share >= ON_QUESTION}
    return [statement for statement in statements if (statement.text, statement.sources) in near]


def _missing_words(request: ReflectRequest, quotations: Quotations) -> list[str]:
    """Return the question's key words that neither notes nor the titles of their sources hold.

    "Cheaper" is not missing where two prices are compared.
    """
    held = {term for note in request.notes for quoted, _ in note.quotations() for term in terms(quoted)}
    held |= {term for note in request.notes for title in note.titles.values() for term in terms(title)}
    held |= {part for note in request.notes for date in note.dates.values() for part in date.split("-")}
    missing, graded = missing_words(request.query, held), grade_words(request.query)
    if set(graded).isdisjoint(missing):
        return missing
    computed = computed_answer(quotations, request.query)
    return [word for word in missing if word not in graded] if computed and computed.is_all else missing


def _gaps(request: ReflectRequest, missing: list[str], empty: list[PlanStep]) -> list[Gap]:
    words = wording(request.language)
    gaps = [
        Gap(
            description=as_asked(step.title, request.query),
            severity="critical" if step.priority is Priority.high else "important",
            suggested_query=broader(step.title, request.query),
        )
        for step in empty
    ]
    if missing:
        gaps.append(
            Gap(
                description=words("No note mentions {names}.", names=_listed(missing, words)),
                severity="important",
                suggested_query=_query(missing, request.query),
            )
        )
    return gaps


def _follow_ups(request: ReflectRequest, missing: list[str]) -> list[FollowUpStep]:
    """Return a step for each remark, and one for missing words that no step has searched for yet.

    Steps that found nothing are tried again by the pipeline.
    """
    steps, words = [_asked(remark.text) for remark in request.remarks], wording(request.language)
    query = _query(missing, request.query)
    had = {frozenset(terms(query)) for step in request.plan.steps for query in step.queries}
    if missing and request.notes and len(query.split()) > 1 and frozenset(terms(query)) not in had:
        steps.append(
            FollowUpStep(
                step_id=0,
                title=words("More on {names}", names=words.joined(missing[:MOST_MISSING])),
                description=f"Find what is said about {_listed(missing)}, which no note mentions so far.",
                queries=[query],
                priority=Priority.high,
            )
        )
    return steps


def _asked(remark: str) -> FollowUpStep:
    title = capitalized(clip(strip_lead(remark), TITLE_WORDS)) or remark
    description = f"Find the passages that answer: {remark}"
    return FollowUpStep(step_id=0, title=title, description=description, queries=[remark], priority=Priority.high)


def _query(missing: list[str], query: str) -> str:
    """Return a query that puts the missing words first."""
    return " ".join(list(dict.fromkeys([*missing, *keywords(query)]))[:QUERY_WORDS])


def _listed(missing: list[str], words: Wording = ENGLISH) -> str:
    return words.joined([words("“{name}”", name=word) for word in missing[:MOST_MISSING]], "or")
