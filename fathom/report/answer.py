"""The answer box of a report: the answer, how sure it is and why, and what made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from fathom.evidence.claims import claims_of, is_mark, lead_ins
from fathom.extractive.critic import MOST_MISSING
from fathom.extractive.reporter import CLOSEST
from fathom.extractive.sections import NOT_FOUND
from fathom.extractive.verbs import is_verb
from fathom.extractive.wording import keywords
from fathom.models import Answered, Claim, Corroboration, Making, Report, ReportSection, Verdict, insufficiency
from fathom.text.blocks import Kind
from fathom.text.citations import cited_ids
from fathom.text.counting import counted, joined
from fathom.text.fences import split_markdown
from fathom.text.sentences import Sentence
from fathom.text.terms import terms

SENTENCES = 3  # of a model's answer; what it writes below them are key points
_HEADINGS = {
    Answered.yes: "Answer",
    Answered.partly: "Answered in part",
    Answered.no: "Not answered by these sources",
}


class Answer(NamedTuple):
    """The first section of a report, as its answer box shows it."""

    answered: Answered
    heading: str
    section: ReportSection  # the answer, at most three sentences of a model or the quotations that come closest
    key_points: ReportSection | None  # what the section says below its answer
    end: int  # of the answer in the section's Markdown
    sure: str  # "high", "medium", "low"; "not rated" where no model judged the answer
    why: list[str]  # clauses in plain text, the most important first


def answer_of(report: Report) -> Answer | None:
    """Return the answer of a report; None if it has no sections."""
    if not report.sections:
        return None
    first = report.sections[0]
    end = len(first.markdown) if first.quoted else _end(first.markdown)
    section = first.model_copy(update={"markdown": first.markdown[:end].strip()})
    claims = [claim for claim in report.claims if claim.section == 0][: len(claims_of([section]))]
    sure, why = _quoted(report, section.markdown, claims) if first.quoted else _judged(report, claims)
    if report.confidence is not None:
        why.append(f"probability that it is right: {report.confidence:.0%}")
    rest = first.markdown[end:].strip()
    key_points = ReportSection(heading="Key points", markdown=rest) if rest else None
    answered = report.answered
    if report.made is None and first.heading == CLOSEST:  # as reports before 0.2 said it
        answered = Answered.no
    return Answer(answered, _HEADINGS[answered], section, key_points, end, sure, why)


def making_parts(made: Making | None, *, timed: bool) -> list[str]:
    """Return when, by what and at what cost a report was made; `timed` adds the seconds, which no two runs share."""
    if not made:
        return []
    day = date.fromisoformat(made.as_of)
    parts = [f"As of {day.day} {day:%B %Y}", made.model or "no language model", counted(made.tool_calls, "tool call")]
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
    """Return where the answer of a section ends.

    It ends with the section's first paragraph, or behind its third sentence or an earlier one, where that has a
    citation of its own and no emphasis is open. What it leads to, a list, a table or code, belongs to it.
    """
    sentences = split_markdown(markdown)
    own = [s for s in sentences if s.paragraph == sentences[0].paragraph] if sentences else []
    if not own or own[0].kind != "prose":
        return len(markdown)
    last = len(own) - 1
    if len(own) > SENTENCES:
        fitting = [number for number in range(SENTENCES) if _may_end(own, number, markdown)]
        last = fitting[-1] if fitting else last
    end = own[last].end
    leads = last in lead_ins(sentences).values()
    while leads or markdown[:end].rstrip().endswith((":", "：")):
        led_to = [sentence for sentence in sentences if sentence.start >= end]
        if not led_to:
            break
        first, leads = led_to[0], False
        kinds: tuple[Kind, ...] = ("table", "rule") if first.kind == "table" else (first.kind,)
        end = list(takewhile(partial(_belongs, first, kinds), led_to))[-1].end
    return end


def _belongs(first: Sentence, kinds: Sequence[Kind], sentence: Sentence) -> bool:
    """Whether a sentence is of the paragraph, list, table or code that begins with another."""
    return sentence.kind in kinds and (first.kind != "prose" or sentence.paragraph == first.paragraph)


def _may_end(sentences: Sequence[Sentence], number: int, markdown: str) -> bool:
    """Whether a text may end behind a sentence: it has a citation, no mark follows, and no emphasis or code is open."""
    before = markdown[: sentences[number].end]
    whole = before.count("**") % 2 == before.count("`") % 2 == 0
    return bool(cited_ids(sentences[number].text)) and not is_mark(sentences[number + 1].text) and whole


def _quoted(report: Report, answer: str, claims: Sequence[Claim]) -> tuple[str, list[str]]:
    shown = "\n".join(line for line in answer.split("\n") if not line.startswith(NOT_FOUND))
    held = set(terms(shown.replace("_", " "))) | set(terms(shown))
    named = (word for word in dict.fromkeys(keywords(report.query)) if not is_verb(word))
    missing = [word for word in named if not set(terms(word)) & held]
    sources = {source_id for claim in claims for source_id in claim.source_ids}
    why = [f"quoted from {counted(len(sources), 'source')}"]
    if missing and claims:
        named_words = joined([f"“{word}”" for word in missing[:MOST_MISSING]], "and")
        why.append(f"the quotations do not mention {named_words}")
    return "not rated", [*_insufficiency(report), *why, *_against(claims)]


def _judged(report: Report, claims: Sequence[Claim]) -> tuple[str, list[str]]:
    """Return how sure the answer of a model is, and why.

    It is low where the sources do not answer the question or say otherwise, or the critic judged the evidence
    insufficient, and high where they support all of it, no source disputes it, and independent ones say the same. What
    no model checked lowers nothing; it is said.
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
        why.append("no second independent source says the same")
    low = report.answered is Answered.no or bool(thin) or any(claim.verdict.objects for claim in claims)
    corroborated = 2 * len(independent) >= len(claims) or (first_hand and bool(supported))
    return "low" if low else "high" if corroborated and not against else "medium", why


def _unanswered(report: Report) -> Iterator[str]:
    """Yield what speaks against the answer as a whole."""
    if report.answered is not Answered.yes:
        whole = report.answered is Answered.no
        yield "the sources do not answer the question" if whole else "a part of the question is not answered"
    if report.contradictions:
        yield "sources disagree on the question"


def _insufficiency(report: Report) -> list[str]:
    """Return that the critic judged the evidence insufficient, and why; nothing if it did not."""
    said = insufficiency(report.sufficiency, report.wanted_sufficiency, report.sufficiency_reason)
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
