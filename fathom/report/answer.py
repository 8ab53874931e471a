"""The answer box of a report: the answer, its confidence with the reasons, and the model that made it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from fathom.evidence.claims import claims_of, lead_ins
from fathom.evidence.computed import MARK
from fathom.extractive.comparisons import grade_words
from fathom.extractive.critic import MOST_MISSING
from fathom.extractive.questions import missing_words
from fathom.extractive.reporter import CLOSEST, NOT_FOUND
from fathom.extractive.tables import words_for_people
from fathom.facts.dates import MONTHS
from fathom.models import Answered, Claim, Corroboration, Making, Report, ReportSection, Sure, Verdict, insufficiency
from fathom.report.own_words import AS_OF
from fathom.report.prose import new_parser
from fathom.retrieval.asked import compares
from fathom.text.plain import counted, joined
from fathom.text.sentences import first_sentence, split_markdown
from fathom.text.terms import terms

if TYPE_CHECKING:
    from markdown_it.token import Token

MORE_TO_SEARCH = "add --docs FOLDER or a search key"
"""How to search anything but the built-in reference."""
KEY_POINTS, MORE = "Key points", "More on the answer"
MOST_BESIDE_TABLE = 2
"""Sentences below a table that belong to the answer; the section's prompt allows as many."""
_PARAGRAPH, _TABLE = "paragraph_open", "table_open"
_HEADINGS = {
    Answered.yes: "Answer",
    Answered.partly: "Answered in part",
    Answered.maybe: "May answer this",
    Answered.no: "Not answered by these sources",
}

_LACKING = {
    Answered.partly: "a part of the question is not answered",
    Answered.maybe: "the sources may not answer the question",
    Answered.no: "the sources do not answer the question",
}


class AnswerBox(NamedTuple):
    """The first section of a report, as its answer box shows it."""

    answered: Answered
    heading: str
    section: ReportSection  # the answer: a model's first paragraph, list or table, or the quotations that come closest
    rest: ReportSection | None  # the rest of the section, below its answer
    end: int  # of the answer in the section's Markdown
    sure: Sure
    why: list[str]  # clauses in plain text, the most important first
    doubts: list[str]  # clauses on what quotations that may answer still lack, shown before them


def answer_of(report: Report) -> AnswerBox | None:
    """Return the answer of a report; None if it has no sections."""
    if not report.sections:
        return None
    first = report.sections[0]
    end = len(first.markdown) if first.quoted else _end(first.markdown)
    section = first.model_copy(update={"markdown": first.markdown[:end].strip()})
    claims = [claim for claim in report.claims if claim.section == 0][: len(claims_of([section]))]
    answered = report.answered
    if report.made is None and first.heading == CLOSEST:  # the wording of reports before 0.2
        answered = Answered.no
    doubts: list[str] = []
    if first.quoted:
        lacking = _lacking_in(report, section.markdown, claims)
        doubts, lacking = (lacking, []) if answered is Answered.maybe else ([], lacking)
        sure: Sure = "not rated"
        why = _quoted(report, claims, lacking)
    else:
        sure, why = _judged(report, claims)
    if report.confidence is not None:
        why.insert(1, f"probability that it is right: {report.confidence:.0%}")
    rest = _rest(first.markdown[end:].strip())
    return AnswerBox(answered, _HEADINGS[answered], section, rest, end, sure, why, doubts)


def making_parts(made: Making | None, *, timed: bool) -> list[str]:
    """Return the time, model and cost of a report; `timed` adds the seconds, which no two runs share."""
    if not made:
        return []
    day = date.fromisoformat(made.as_of)
    parts = [f"{AS_OF} {day.day} {day:%B %Y}", made.model or "no language model", counted(made.tool_calls, "tool call")]
    if made.searched:
        parts.insert(1, f"searched: {made.searched}; {MORE_TO_SEARCH}")
    if made.scope:
        parts.insert(1, f"scope {made.scope}")
    if made.template:
        parts.insert(1, f"template “{made.template}”")
    if made.llm_calls:
        parts.append(counted(made.llm_calls, "model call"))
    if made.llm_calls or made.cost_usd != 0:
        parts.append("price unknown" if made.cost_usd is None else f"${made.cost_usd:,.4f}")
    if timed:
        minutes, seconds = divmod(round(made.seconds), 60)
        parts.append(f"{minutes} min {seconds} s" if minutes else f"{seconds} s")
    return parts


def _end(markdown: str) -> int:
    """Return the end of the answer of a section: behind the first block with content, which is never cut.

    A block is a paragraph, a list, a table or code. A block that introduces the next, such as "It needs:", is kept with
    it; so is a paragraph before a table, and a paragraph of one or two sentences after a table.
    """
    sentences = split_markdown(markdown)
    leads = lead_ins(sentences).values()
    lines = [0, *(found.end() for found in re.finditer(r"\r\n?|\n|\Z", markdown))]
    blocks = [(block.type, block.map[0], block.map[1]) for block in _blocks(markdown) if block.map]
    for (kind, _, last), following in zip(blocks, [*blocks[1:], None], strict=True):
        within = [sentence for sentence in sentences if sentence.start < lines[last]]
        end = max([lines[last], *(sentence.end for sentence in within)])
        shown = markdown[:end].rstrip()
        going_on = len(within) - 1 in leads or shown.endswith((":", "："))
        if following:
            beside, first, behind = following
            told = sum(lines[first] <= sentence.start < lines[behind] for sentence in sentences)
            going_on |= (kind, beside) == (_PARAGRAPH, _TABLE) or (
                (kind, beside) == (_TABLE, _PARAGRAPH) and told <= MOST_BESIDE_TABLE
            )
        if not going_on and claims_of([ReportSection(heading="", markdown=shown)]):
            return len(shown)
    return len(markdown)


def _rest(markdown: str) -> ReportSection | None:
    """Return the rest of a section below its answer; only a list counts as key points."""
    listed = {block.type for block in _blocks(markdown)} <= {"bullet_list_open", "ordered_list_open"}
    return ReportSection(heading=KEY_POINTS if listed else MORE, markdown=markdown) if markdown else None


def _blocks(markdown: str) -> list[Token]:
    """Return the opening token of each block of a text, with its lines."""
    return [token for token in new_parser().parse(markdown) if token.level == 0 and token.map]


def _lacking_in(report: Report, answer: str, claims: Sequence[Claim]) -> list[str]:
    """Return what quotations lack of an answer."""
    shown = "\n".join(line for line in answer.split("\n") if not line.startswith(NOT_FOUND))
    cited = {source_id for claim in claims for source_id in claim.source_ids}
    titles = " ".join(source.title for source in report.sources if source.source_id in cited)
    held = {term for text in (shown, shown.replace("_", " "), titles) for term in terms(text)}
    is_computed = shown.startswith(MARK)
    compared = [*grade_words(report.query), *words_for_people(report.query)] if is_computed else ()
    known = {*compared, *MONTHS}
    missing = [word for word in missing_words(report.query, held) if word not in known and word.lower() not in known]
    lacking: list[str] = []
    if missing and claims:
        named_words = joined([f"“{word}”" for word in missing[:MOST_MISSING]], "and")
        lacking.append(f"the quotations do not mention {named_words}")
    if report.answered is Answered.maybe and compares(report.query) and not is_computed:
        lacking.append("the quotations were not compared with each other")
    return lacking


def _quoted(report: Report, claims: Sequence[Claim], lacking: Sequence[str]) -> list[str]:
    """Return the reasons for the confidence of quotations, which are not rated."""
    sources = {source_id for claim in claims for source_id in claim.source_ids}
    return [*_insufficiency(report), f"quoted from {counted(len(sources), 'source')}", *lacking, *_against(claims)]


def _judged(report: Report, claims: Sequence[Claim]) -> tuple[Sure, list[str]]:
    """Return the confidence of a model's answer, and the reasons.

    It is low if the sources do not answer the question or contradict the answer, or the critic judged the evidence
    insufficient. It is high if the sources support all of it, no source disputes it, and independent sources say the
    same. Unchecked sentences do not lower it; a reason names them.
    """
    if not claims:
        return "low", [*_insufficiency(report), "it states nothing that could be checked against the sources"]
    supported = [claim for claim in claims if claim.verdict is Verdict.supported]
    unchecked = [claim for claim in claims if claim.verdict is Verdict.not_checked]
    independent = [claim for claim in claims if claim.corroboration is Corroboration.verified]
    own = {source.source_id for source in report.sources if source.kind == "document"}
    first_hand = all(own.issuperset(claim.source_ids) for claim in claims)
    thin = _insufficiency(report)
    against = [*_unanswered(report), *thin, *_against(claims)]
    why = list(against)
    if supported:
        why.append(f"the sources support {_of_it(len(supported), len(claims))}")
    if unchecked:
        was = "was" if len(unchecked) in (1, len(claims)) else "were"
        why.append(f"{_of_it(len(unchecked), len(claims))} {was} not checked by a model")
    if independent:
        why.append(f"two independent sources say {_of_it(len(independent), len(claims))}")
    elif not first_hand:
        why.append("no second, credible and independent source says the same")
    low = report.answered is Answered.no or bool(thin) or any(claim.verdict.objects for claim in claims)
    corroborated = 2 * len(independent) >= len(claims) or (first_hand and bool(supported))
    return "low" if low else "high" if corroborated and not against else "medium", why


def _unanswered(report: Report) -> Iterator[str]:
    """Yield the reasons against the answer as a whole."""
    if said := _LACKING.get(report.answered):
        yield f"{said}: {report.unanswered_part.rstrip('.')}" if report.unanswered_part else said
    if report.contradictions:
        yield "sources disagree on the question"


def _insufficiency(report: Report) -> list[str]:
    """Return a clause that the critic judged the evidence insufficient, and why; nothing if it did not."""
    said = insufficiency(report.sufficiency, report.wanted_sufficiency, first_sentence(report.sufficiency_reason))
    return [said] if said else []


def _against(claims: Sequence[Claim]) -> Iterator[str]:
    if contradicted := sum(claim.verdict is Verdict.contradicted for claim in claims):
        yield f"a source that it cites says otherwise about {_of_it(contradicted, len(claims))}"
    if missing := sum(claim.verdict is Verdict.not_stated for claim in claims):
        yield f"the sources cited do not say {_of_it(missing, len(claims))}"
    disputed = sum(c.corroboration is Corroboration.contradicted and not c.verdict.objects for c in claims)
    if disputed:
        yield f"another source contradicts {_of_it(disputed, len(claims))}"


def _of_it(number: int, total: int) -> str:
    return "it" if number == total else f"{number} of its {total} sentences"


MOST = {Verdict.supported: 1.0, Verdict.not_checked: 1.0, Verdict.not_stated: 0.3, Verdict.contradicted: 0.1}
"""Highest confidence of an answer by the worst verdict on its sentences. A convention, not a measurement."""
DISPUTED = 0.5  # highest confidence if another source contradicts it


def confidence_within(stated: float | None, claims: Sequence[Claim]) -> float | None:
    """Return the stated confidence, 0 to 1, lowered to what the evidence allows; None if none is stated."""
    if stated is None:
        return None
    return min([stated, *(_most(claim) for claim in claims)])


def _most(claim: Claim) -> float:
    most = MOST[claim.verdict]
    return min(most, DISPUTED) if claim.corroboration is Corroboration.contradicted else most
