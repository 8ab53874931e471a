"""Planning without a model: the questions as asked, their kind, their parts, and headings of local documents.

What kind of question is asked, and how wide it is, by its form: in English, German, French and Spanish. The first
form that fits decides. A text that asks for several things, lists aspects or is long is broad whatever it asks, and
one without a form that is known is of medium width.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from fathom.config.inputs import words_asked
from fathom.extractive.asked_rows import words_of_superlative
from fathom.extractive.comparisons import comparison_of
from fathom.extractive.hops import hop_of
from fathom.extractive.questions import (
    ANY_OF,
    QuestionPart,
    capitalized,
    clip,
    families,
    is_question,
    key_terms,
    keywords,
    parts_of,
    questions_of,
    strip_lead,
    subject_of,
    topic_terms,
    with_related,
)
from fathom.models import Document, Kind, Plan, Priority, ReportPreferences, Width
from fathom.retrieval.ranking import Passage, rank_passages
from fathom.roles import PlanAnswer, PlanRequest
from fathom.roles.planner import PlannedStep
from fathom.text.terms import query_terms, terms

TITLE_WORDS = 20
HEADING_WORDS = 12
QUERY_CHARS = 380
QUERIES = 3
HEADING_STEPS = 2
HEADING_SHARE = 0.5  # of the question's terms, that a heading and its document's title hold together
OVERVIEW = "table list statistics comparison"
"""What pages are called that have many of a kind: the greatest of them is found there, not on the page of one."""
NEAR_BEST = 0.5  # of the best heading's score
ALIKE = 0.85  # share of common terms from which two titles name the same thing
_APPARATUS = frozenset(("references", "notes", "see also", "external links", "further reading", "bibliography"))
_NUMBERING = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?[\dIVXA-Z]{0,3}(?:\.\d+)*\.?\s+(?=\S)", re.IGNORECASE
)


def plan(request: PlanRequest) -> PlanAnswer:
    """Return a step for each question, its parts, what a template asks, and the closest headings of the documents.

    What a person said in words becomes a step of its own, since no model could take it into the others.
    """
    if request.draft:
        return _with_remark(request.draft, request)
    questions = questions_of(request.query)
    clarified = _clarified(request)
    room = max(1, request.max_steps - len(clarified) - bool(request.questions))
    steps = [_question_step(question, request.query) for question in questions]
    if len(steps) > room:
        steps = [*steps[: room - 1], _joined(steps[room - 1 :])]
    steps = [*clarified, *steps]
    steps += [step for question in questions for step in _part_steps(question)]
    if request.questions:
        del steps[len(clarified) + room :]
        steps += _template_steps(request, max(1, request.max_steps - len(steps)))
    steps += [_heading_step(heading, request.query) for heading in _headings(request)]
    judged = judge(request.query)
    return PlanAnswer(
        preferences=ReportPreferences(words=words_asked(request.query)),
        kind=judged.kind,
        width=judged.width,
        plan_title=_title(questions[0], request.query),
        steps=[
            step.model_copy(update={"step_id": number})
            for number, step in enumerate(_distinct(steps)[: request.max_steps], 1)
        ],
    )


def _with_remark(draft: Plan, request: PlanRequest) -> PlanAnswer:
    """Return a plan with a step for a remark, its last one by id, in place of the last where there is no room."""
    steps = [PlannedStep(**s.model_dump(include=set(PlannedStep.model_fields))) for s in draft.steps]
    kept = steps[: request.max_steps - 1]
    number = 1 + max((int(s.step_id) for s in kept if str(s.step_id).isdecimal()), default=len(kept))
    remark = _said_step(strip_lead(request.remark), request.query).model_copy(update={"step_id": number})
    kept_too = {name: getattr(draft, name) for name in ("goals", "constraints", "preferences")}
    return PlanAnswer(plan_title=draft.plan_title, steps=[*kept, remark], **kept_too)


def _clarified(request: PlanRequest) -> list[PlannedStep]:
    """Return a step for what a person answered; an assumption says no more than the question."""
    answers = [said.answer for said in request.clarifications if not said.assumed and key_terms(said.answer)]
    return [_said_step(", ".join(answers), request.query)] if answers else []


def _said_step(said: str, query: str) -> PlannedStep:
    matter = " ".join(keywords(query)[:3])
    return _part_step(QuestionPart(capitalized(clip(said, TITLE_WORDS)), [f"{said} {matter}"]), query)


def _title(question: str, query: str) -> str:
    """Return a question as it is asked, cut where it is long."""
    title = capitalized(_cut(question, TITLE_WORDS)) or "Research"
    asked = is_question(question) or f"{question}?" in " ".join(query.split())
    return f"{title}?" if asked and not title.endswith("…") else title


def _cut(text: str, words: int) -> str:
    clipped = clip(text, words)
    return f"{clipped} …" if clipped and clipped != text else text


def _question_step(question: str, query: str) -> PlannedStep:
    title = _title(question, query)
    overview = [f"{asked} {OVERVIEW}"] if (asked := words_of_superlative(question)) else []
    return _step(title, f"Find the passages that answer: {title}", [question, *overview], Priority.high)


def _part_steps(question: str) -> Iterator[PlannedStep]:
    """Yield a step for each thing that a question compares, or for each part that it lists."""
    if compared := comparison_of(question):
        for side in compared.sides:
            title = f"{capitalized(side)}: {compared.wording}" if compared.wording else f"About {side}"
            yield _step(
                title, f"{ANY_OF} {compared.query(side)}", [compared.query(side), f"{side} {question}"], Priority.high
            )
        return
    for part in parts_of(question):
        yield _part_step(part, question)


def _part_step(part: QuestionPart, question: str) -> PlannedStep:
    description = f"Find what is said about this part of the question: {question}"
    return _step(part.title, description, [*part.queries, f"{part.title} {question}"], Priority.high)


def _template_steps(request: PlanRequest, room: int) -> Iterator[PlannedStep]:
    """Yield a step for each question of the template; where there is no room for that, for several in a row."""
    subject = subject_of(strip_lead(request.query))
    together = -(-len(request.questions) // room)
    for start in range(0, len(request.questions), together or 1):
        asked = request.questions[start : start + together]
        queries = [*(f"{question} {subject}" for question in asked), *asked]
        title = clip(" ".join(asked), 2 * TITLE_WORDS)
        yield _step(title, f"{ANY_OF} {' '.join(asked)}", queries, Priority.medium)


def _heading_step(heading: Passage, query: str) -> PlannedStep:
    inside = f" in “{heading.title}”" if heading.title != heading.text else ""
    description = f"Read what “{heading.text}”{inside} says on the question: {clip(query, 3 * TITLE_WORDS)}"
    queries = [f"{heading.text} {' '.join(keywords(query)[:3])}", f"{heading.title} {heading.text}", query]
    return _step(capitalized(heading.text), description, queries, Priority.medium)


def _step(title: str, description: str, queries: list[str], priority: Priority) -> PlannedStep:
    return PlannedStep(
        step_id=0,
        title=title,
        description=description,
        queries=_queries(queries),
        priority=priority,
    )


def _joined(steps: list[PlannedStep]) -> PlannedStep:
    """Merge several steps that the plan has no room for into one."""
    return _step(
        clip("; ".join(step.title for step in steps), 2 * TITLE_WORDS),
        " ".join(step.description for step in steps),
        [query for step in steps for query in step.queries],
        Priority.high,
    )


def _queries(texts: list[str]) -> list[str]:
    """Return at most three of the texts as queries: each has two words or more, no two have the same terms."""
    queries: dict[frozenset[str], str] = {}
    for text in texts:
        query = textwrap.shorten(text, QUERY_CHARS, placeholder="") or text[:QUERY_CHARS]
        if len(query.split()) >= 2 or (len(query) >= 4 and not query.isascii()):
            queries.setdefault(frozenset(query_terms(query)), query)
    return list(queries.values())[:QUERIES]


def _headings(request: PlanRequest) -> list[Passage]:
    """Return the documents' titles and headings, each with its document's title, that are on the question."""
    wanted = topic_terms(request.query)
    found = list(dict.fromkeys(h for document in request.documents for h in _headings_of(document)))
    # A heading without words of its own only repeats the question.
    found = [heading for heading in found if not set(key_terms(heading.text)) <= set(wanted)]
    scores = rank_passages(with_related(dict.fromkeys(wanted, 1.0)), found)
    best = max(scores, default=0.0)
    order = sorted(range(len(found)), key=lambda i: (-scores[i], i))
    near = [found[i] for i in order if scores[i] >= NEAR_BEST * best and _is_on(wanted, found[i])]
    return near[:HEADING_STEPS]


def _is_on(wanted: list[str], heading: Passage) -> bool:
    found = set(terms(f"{heading.text} {heading.title}"))
    held = sum(bool(found & family) for family in families(wanted))
    return held >= max(2, HEADING_SHARE * len(wanted))


def _headings_of(document: Document) -> Iterator[Passage]:
    for text in [document.title, *document.headings]:
        plain = _NUMBERING.sub("", " ".join(text.split())).strip(" #*=.:")
        if len(plain.split()) <= HEADING_WORDS and key_terms(plain) and plain.lower() not in _APPARATUS:
            yield Passage(plain, " ".join(document.title.split()))


def _distinct(steps: list[PlannedStep]) -> list[PlannedStep]:
    """Return the steps without those that nearly repeat an earlier one's title."""
    kept: list[PlannedStep] = []
    for step in steps:
        if all(_likeness(step.title, other.title) < ALIKE for other in kept):
            kept.append(step)
    return kept


def _likeness(a: str, b: str) -> float:
    if a.casefold() == b.casefold():
        return 1.0  # it may have no key terms
    first, second = set(key_terms(a)), set(key_terms(b))
    return len(first & second) / (len(first | second) or 1)


BROAD_WORDS = 40  # of a question, from which it asks for more than one thing
NARROW_TERMS = 12  # at most, of a question that asks for one thing


class EffortJudgement(NamedTuple):
    """What kind a question is, and how wide."""

    kind: Kind
    width: Width


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_FORMS = {
    Kind.survey: _any(
        r"\b(?:overview of|survey of|review of|literature review|state of the art|landscape of|trends in)\b",
        r"\b(?:reports? on|papers? on|essay on|comprehensive|in[- ]depth|detailed (?:analysis|report|explanation))\b",
        r"\b(?:market (?:\w+ )?analysis|research (?:report|paper)|research and analy[sz]e|what is known)\b",
        r"\b(?:überblick|übersicht|stand der (?:forschung|technik)|bericht über|was ist über)\b|marktanalyse",
        r"\b(?:panorama|état de l'art|état des lieux|vue d'ensemble|revue de|rapport sur|que sait-on)\b",
        r"\b(?:visión general|estado del arte|informe sobre|panorámica|qué se sabe)\b",
    ),
    Kind.comparison: _any(
        r"\b(?:vs\.?|versus|compared? (?:to|with)|compare|comparison|differences?|differ|distinguish)\b",
        r"\b(?:unterschied\w*|unterscheide\w*|vergleich\w*|verglichen)\b",
        r"\b(?:différences?|comparer|comparaison|par rapport à|diferencias?|comparar|comparación)\b",
    ),
    Kind.decision: _any(
        r"(?<!why )\bshould (?:i|we)\b|\bis it (?:better|worth|sensible)|\bworth (?:it|buying|using)\b",
        r"\bwhich \w+ is (?:the )?best\b|\bbest \w+ (?:for|to)\b|\byou recommend\b|\bpros and cons\b",
        r"\b(?:soll(?:te|ten|en)? (?:ich|wir|man)|lohnt (?:es )?sich|empfiehl\w*|vor- und nachteile)\b",
        r"\b(?:devrais-je|devrait-on|devons-nous|faut-il|vaut-il|deber[ií]a(?:mos)?|conviene|ventajas y)\b",
    ),
    Kind.how_to: _any(
        r"\bhow (?:do|can|could|should|would|to)\b(?: (?:i|we|you|one|people|somebody|someone)\b|(?<=how to))",
        r"\b(?:steps to|guide to|tutorial|instructions|what do i (?:run|do|type|need))\b",
        r"^wie (?:kann|macht|muss|richte|installiere|stelle|baue|geht|lässt|man)\b|\banleitung\b",
        r"^comment (?:faire|puis|peut|dois|installer|configurer)|^¿?cómo (?:se|puedo|hago|instalar|configurar)",
    ),
    Kind.current_event: _any(
        r"\b(?:latest|newest|currently|recent(?:ly)?|today|this (?:week|month|year)|so far|news|right now)\b",
        r"\b(?:aktuell\w*|derzeit\w*|neueste\w*|heute|zurzeit|nachrichten|momentan)\b",
        r"\b(?:actuel\w*|dernière?s?|récent\w*|aujourd'hui|actual\w*|últim[oa]s?|reciente\w*|hoy)\b",
    ),
    Kind.fact: _any(
        r"^(?:[^,]{1,60}, )?(?:\w+ ){0,2}(?:who|whom|whose|when|where|which|what|why)\b",
        r"^(?:[^,]{1,60}, )?(?:\w+ ){0,2}how (?:is|are|was|were|many|much|long|old|far|often|large|high|tall|fast)\b",
        r"^(?:is|are|was|were|do|does|did|can|could|may|must|will|has|have|had)\b|^how \w+ (?:is|are|was|were)\b",
        r"^(?:[^,]{1,60}, )?(?:\w+ )?(?:wer|wen|wem|wessen|wann|wo|woher|warum|welche[rsnm]?|was|wie ?viele?)\b",
        r"^(?:ist|sind|war|waren|hat|haben|kann|darf|wird|gibt)\b|^wie (?:\w+ (?:ist|sind|war)|heißt|heißen)\b",
        r"^(?:[^,]{1,60}, )?(?:\w+ )?(?:qui|quand|où|quel(?:le)?s?|combien|pourquoi|qu'est)\b|^est-ce",
        r"^(?:[^,]{1,60}, )?¿?(?:\w+ )?(?:quién(?:es)?|cuándo|dónde|cuál(?:es)?|cuánt[oa]s?|qué)\b",
    ),
}
_OPEN = _any(  # what has more than one answer, or is told in more than one place
    r"\b(?:and|und|et|y) (?:who|when|where|what|how|which|wer|wann|wo|was|wie|qui|quand|où|quién|cuándo|dónde)\b",
    r"\b(?:why|role|impacts?|effects?|influences?|relationship|implications|causes|consequences|challenges|future)\b",
    r"\b(?:warum|wieso|weshalb|rolle|auswirkung(?:en)?|einfluss|folgen|ursachen|zukunft)\b",
    r"\b(?:pourquoi|rôle|effets|conséquences|causes|avenir|por qué|papel|efectos|consecuencias|causas|futuro)\b",
)


def judge(query: str) -> EffortJudgement:
    """Return what kind of question a query asks, and how wide it is."""
    questions = questions_of(query)
    text = " ".join(questions[0].split())
    found = (kind for kind, form in _FORMS.items() if form.search(query if kind is Kind.survey else text))
    kind = next(found, None)
    if kind in (None, Kind.fact) and comparison_of(text):
        kind = Kind.comparison
    parts = [part for question in questions for part in parts_of(question)]
    if len(questions) > 2 or len(query.split()) >= BROAD_WORDS or kind is Kind.survey:
        return EffortJudgement(kind or Kind.survey, Width.broad)
    if kind is None:
        return EffortJudgement(Kind.survey, Width.medium)
    sides = kind is Kind.comparison or not parts
    one = (
        len(questions) == 1
        and sides
        and not hop_of(query)
        and not _OPEN.search(query)
        and len(terms(text)) <= NARROW_TERMS
    )
    return EffortJudgement(kind, Width.narrow if one else Width.medium)
