"""The answer box of a report: the answer, its confidence with the reasons, and the model that made it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fathom.evidence.claims import claims_of, lead_ins
from fathom.evidence.computed import MARK
from fathom.extractive.asked_rows import words_for_people
from fathom.extractive.comparisons import grade_words
from fathom.extractive.critic import MOST_MISSING
from fathom.extractive.questions import missing_words
from fathom.extractive.reporter import CLOSEST, NOT_FOUND
from fathom.facts.dates import MONTHS
from fathom.facts.ranges import as_term, cases_of
from fathom.models import Answered, Claim, Corroboration, Making, Report, ReportSection, Sure, Verdict, insufficiency
from fathom.report.own_words import AS_OF
from fathom.report.prose import new_parser
from fathom.retrieval.asked import compares
from fathom.retrieval.ranked_text import ranked_text
from fathom.retrieval.ranking import Passage
from fathom.text.sentences import first_sentence, split_markdown
from fathom.text.terms import terms
from fathom.text.wording import Wording, wording

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
    words = wording(report.language)
    first = report.sections[0]
    end = len(first.markdown) if first.quoted else _end(first.markdown)
    section = first.model_copy(update={"markdown": first.markdown[:end].strip()})
    claims = [claim for claim in report.claims if claim.section == 0][: len(claims_of([section]))]
    answered = report.answered
    if report.made is None and first.heading == CLOSEST:  # the wording of reports before 0.2
        answered = Answered.no
    doubts: list[str] = []
    if first.quoted:
        lacking = _lacking_in(report, section.markdown, claims, words)
        doubts, lacking = (lacking, []) if answered is Answered.maybe else ([], lacking)
        sure: Sure = "not rated"
        why = _quoted(report, claims, lacking, words)
    else:
        sure, why = _judged(report, claims, words)
    if report.confidence is not None:
        why.insert(1, words("probability that it is right: {share}", share=f"{report.confidence:.0%}"))
    rest = _rest(first.markdown[end:].strip(), words)
    return AnswerBox(answered, words(_HEADINGS[answered]), section, rest, end, sure, why, doubts)


def making_parts(made: Making | None, words: Wording, *, timed: bool) -> list[str]:
    """Return the time, model and cost of a report; `timed` adds the seconds, which no two runs share."""
    if not made:
        return []
    parts = [
        words(AS_OF, date=words.day(*map(int, made.as_of.split("-")))),
        made.model or words("no language model"),
        words.counted(made.tool_calls, "tool call"),
    ]
    if made.searched:
        parts.insert(1, f"{words('searched: {where}', where=made.searched)}; {words(MORE_TO_SEARCH)}")
    if made.scope:
        parts.insert(1, words("scope {scope}", scope=made.scope))
    if made.template:
        parts.insert(1, words("template “{title}”", title=made.template))
    if made.llm_calls:
        parts.append(words.counted(made.llm_calls, "model call"))
    if made.llm_calls or made.cost_usd != 0:
        parts.append(words("price unknown") if made.cost_usd is None else f"${made.cost_usd:,.4f}")
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


def _rest(markdown: str, words: Wording) -> ReportSection | None:
    """Return the rest of a section below its answer; only a list counts as key points."""
    listed = {block.type for block in _blocks(markdown)} <= {"bullet_list_open", "ordered_list_open"}
    return ReportSection(heading=words(KEY_POINTS if listed else MORE), markdown=markdown) if markdown else None


def _blocks(markdown: str) -> list[Token]:
    """Return the opening token of each block of a text, with its lines."""
    return [token for token in new_parser().parse(markdown) if token.level == 0 and token.map]


def _lacking_in(report: Report, answer: str, claims: Sequence[Claim], words: Wording) -> list[str]:
    """Return what quotations lack of an answer."""
    absent = words(NOT_FOUND).partition("{")[0]
    shown = "\n".join(line for line in answer.split("\n") if not line.startswith(absent))
    cited = {source_id for claim in claims for source_id in claim.source_ids}
    titles = " ".join(source.title for source in report.sources if source.source_id in cited)
    # Each word also by itself: "rolls in Graz" reads like "log in", one term of two words.
    read = (shown, shown.replace("_", " "), titles, *shown.split())
    held = {term for text in read for term in terms(text)}
    is_computed = shown.startswith(MARK)
    compared = [*grade_words(report.query), *words_for_people(report.query)] if is_computed else ()
    in_range = (each for each in cases_of(report.query) if ranked_text(Passage(shown)).has([as_term(each)]))
    known = {*compared, *MONTHS, *(term for each in in_range for term in (*terms(each.written), *each.counted))}
    missing = [
        word for word in missing_words(report.query, held) if known.isdisjoint((word, word.lower(), *terms(word)))
    ]
    lacking: list[str] = []
    if missing and claims:
        named_words = words.joined([words("“{name}”", name=word) for word in missing[:MOST_MISSING]])
        lacking.append(words("the quotations do not mention {words}", words=named_words))
    if report.answered is Answered.maybe and compares(report.query) and not is_computed:
        lacking.append(words("the quotations were not compared with each other"))
    return lacking


def _quoted(report: Report, claims: Sequence[Claim], lacking: Sequence[str], words: Wording) -> list[str]:
    """Return the reasons for the confidence of quotations, which are not rated."""
    sources = {source_id for claim in claims for source_id in claim.source_ids}
    quoted = words("quoted from {sources}", sources=words.counted(len(sources), "source"))
    return [*_insufficiency(report, words), quoted, *lacking, *_against(claims, words)]


def _judged(report: Report, claims: Sequence[Claim], words: Wording) -> tuple[Sure, list[str]]:
    """Return the confidence of a model's answer, and the reasons.

    It is low if the sources do not answer the question or contradict the answer, or the critic judged the evidence
    insufficient. It is high if the sources support all of it, no source disputes it, and independent sources say the
    same. Unchecked sentences do not lower it; a reason names them.
    """
    if not claims:
        nothing = words("it states nothing that could be checked against the sources")
        return "low", [*_insufficiency(report, words), nothing]
    supported = [claim for claim in claims if claim.verdict is Verdict.supported]
    unchecked = [claim for claim in claims if claim.verdict is Verdict.not_checked]
    independent = [claim for claim in claims if claim.corroboration is Corroboration.verified]
    own = {source.source_id for source in report.sources if source.kind == "document"}
    first_hand = all(own.issuperset(claim.source_ids) for claim in claims)
    thin = _insufficiency(report, words)
    against = [*_unanswered(report, words), *thin, *_against(claims, words)]
    why = list(against)
    if supported:
        why.append(_of_it(_SUPPORTED, len(supported), len(claims), words))
    if unchecked:
        some = _UNCHECKED if len(unchecked) == 1 else _SEVERAL_UNCHECKED
        why.append(_of_it(some, len(unchecked), len(claims), words))
    if independent:
        why.append(_of_it(_INDEPENDENT, len(independent), len(claims), words))
    elif not first_hand:
        why.append(words("no second, credible and independent source says the same"))
    low = report.answered is Answered.no or bool(thin) or any(claim.verdict.objects for claim in claims)
    corroborated = 2 * len(independent) >= len(claims) or (first_hand and bool(supported))
    return "low" if low else "high" if corroborated and not against else "medium", why


def _unanswered(report: Report, words: Wording) -> Iterator[str]:
    """Yield the reasons against the answer as a whole."""
    if said := _LACKING.get(report.answered):
        part = report.unanswered_part.rstrip(".")
        yield words("{head}: {text}", head=words(said), text=part) if part else words(said)
    if any(not found.settled for found in report.contradictions):
        yield words("sources disagree on the question")


def _insufficiency(report: Report, words: Wording) -> list[str]:
    """Return a clause that the critic judged the evidence insufficient, and why; nothing if it did not."""
    reason = first_sentence(report.sufficiency_reason)
    said = insufficiency(report.sufficiency, report.wanted_sufficiency, reason, words)
    return [said] if said else []


def _against(claims: Sequence[Claim], words: Wording) -> Iterator[str]:
    if contradicted := sum(claim.verdict is Verdict.contradicted for claim in claims):
        yield _of_it(_CONTRADICTED, contradicted, len(claims), words)
    if missing := sum(claim.verdict is Verdict.not_stated for claim in claims):
        yield _of_it(_MISSING, missing, len(claims), words)
    disputed = sum(c.corroboration is Corroboration.contradicted and not c.verdict.objects for c in claims)
    if disputed:
        yield _of_it(_DISPUTED, disputed, len(claims), words)


_SUPPORTED = ("the sources support the answer", "the sources support {number} of its {total} sentences")
_UNCHECKED = ("it was not checked by a model", "{number} of its {total} sentences was not checked by a model")
_SEVERAL_UNCHECKED = ("it was not checked by a model", "{number} of its {total} sentences were not checked by a model")
_INDEPENDENT = ("two independent sources say it", "two independent sources say {number} of its {total} sentences")
_CONTRADICTED = (
    "a source that it cites says otherwise about it",
    "a source that it cites says otherwise about {number} of its {total} sentences",
)
_MISSING = ("the sources cited do not say it", "the sources cited do not say {number} of its {total} sentences")
_DISPUTED = ("another source contradicts it", "another source contradicts {number} of its {total} sentences")


def _of_it(phrases: tuple[str, str], number: int, total: int, words: Wording) -> str:
    """Return what is said of the whole answer, or of some of its sentences."""
    whole, part = phrases
    return words(whole) if number == total else words(part, number=number, total=total)


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
