"""The answer box of a report: the answer, how sure it is and why, and what made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from fathom.evidence.claims import claim_text
from fathom.extractive.verbs import is_verb
from fathom.extractive.wording import keywords
from fathom.models import Answered, Claim, Corroboration, Making, Report, ReportSection, Verdict
from fathom.text.counting import counted
from fathom.text.fences import split_markdown
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
    sure: str  # "high", "medium", "low"; "not rated" where no model judged the answer
    why: list[str]  # clauses in plain text, the most important first


def answer_of(report: Report) -> Answer | None:
    """Return the answer of a report; None if it has no sections."""
    if not report.sections:
        return None
    first = report.sections[0]
    answer, rest = (first.markdown, "") if first.quoted else _split(first.markdown)
    claims = _claims_in(answer, [claim for claim in report.claims if claim.section == 0])
    sure, why = _quoted(report, claims) if first.quoted else _judged(report, claims)
    key_points = ReportSection(heading="Key points", markdown=rest) if rest else None
    section = first.model_copy(update={"markdown": answer})
    return Answer(report.answered, _HEADINGS[report.answered], section, key_points, sure, why)


def making_parts(made: Making | None, *, timed: bool) -> list[str]:
    """Return when, by what and at what cost a report was made; `timed` adds the seconds, which no two runs share."""
    if not made:
        return []
    day = date.fromisoformat(made.as_of)
    parts = [f"As of {day.day} {day:%B %Y}", made.model or "no language model", counted(made.tool_calls, "tool call")]
    if made.llm_calls:
        parts.append(counted(made.llm_calls, "model call"))
        parts.append("price unknown" if made.cost_usd is None else f"${made.cost_usd:,.4f}")
    if timed:
        minutes, seconds = divmod(round(made.seconds), 60)
        parts.append(f"{minutes} min {seconds} s" if minutes else f"{seconds} s")
    return parts


def _split(markdown: str) -> tuple[str, str]:
    """Split a section behind its first paragraph, or the paragraph's third sentence; else all of it is the answer."""
    sentences = split_markdown(markdown)
    own = [s for s in sentences if s.paragraph == sentences[0].paragraph] if sentences else []
    if not own or own[0].kind != "prose":
        return markdown, ""
    end = own[:SENTENCES][-1].end
    rest = markdown[end:].strip()
    return markdown[:end].strip(), rest


def _claims_in(markdown: str, claims: Sequence[Claim]) -> list[Claim]:
    said = {claim_text(sentence) for sentence in split_markdown(markdown)}
    return [claim for claim in claims if claim.sentence in said]


def _quoted(report: Report, claims: Sequence[Claim]) -> tuple[str, list[str]]:
    held = set(terms(" ".join(claim.sentence for claim in claims)))
    named = (word for word in dict.fromkeys(keywords(report.query)) if not is_verb(word))
    missing = [word for word in named if not set(terms(word)) & held]
    sources = {source_id for claim in claims for source_id in claim.source_ids}
    why = [f"quoted from {counted(len(sources), 'source')}"]
    if missing and claims:
        why.append(f"{_listed(missing)} {'is' if len(missing) == 1 else 'are'} not in them")
    return "not rated", [*why, *_against(claims)]


def _judged(report: Report, claims: Sequence[Claim]) -> tuple[str, list[str]]:
    if not claims:
        return "low", ["it states nothing that could be checked against the sources"]
    supported = [claim for claim in claims if claim.verdict is Verdict.supported]
    independent = [claim for claim in claims if claim.corroboration is Corroboration.verified]
    why = [
        f"the passages cited support {_of_it(len(supported), len(claims))}"
        if supported
        else "the passages cited do not support it",
        f"two independent sources say {_of_it(len(independent), len(claims))}"
        if independent
        else "no second independent source says the same",
    ]
    against = list(_against(claims))
    if report.answered is Answered.partly:
        against.append("a part of the question is not answered")
    low = report.answered is Answered.no or 2 * len(supported) <= len(claims)
    low |= any(claim.verdict is Verdict.unsupported for claim in claims)
    low |= any(claim.corroboration is Corroboration.contradicted for claim in claims)
    high = not against and len(supported) == len(independent) == len(claims)
    return "low" if low else "high" if high else "medium", [*why, *against]


def _against(claims: Sequence[Claim]) -> Iterator[str]:
    if disputed := sum(claim.corroboration is Corroboration.contradicted for claim in claims):
        yield f"another source contradicts {_of_it(disputed, len(claims))}"


def _of_it(number: int, total: int) -> str:
    return "it" if number == total else f"{number} of its {total} sentences"


def _listed(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words[:5]]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
