"""What is measured of one finished run, the same way for every system; `docs/measuring.md` has the definitions.

Claims are checked by words against the text of the pages that they cite (`fathom.evidence`), so a system that quotes
is favoured over one that says the same in other words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from benchmarks.results import FactCheck, Words
from benchmarks.scoring.reading import Finished
from fathom.evidence.claims import ClaimSentence
from fathom.evidence.likeness import Likeness, nearest
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.models import SourceText
from fathom.models.run import RowStatus
from fathom.report.foreign.lists import comparable
from fathom.sources.domains import site_of
from fathom.text.citations import without_citations
from fathom.text.sentences import split_sentences
from fathom.text.urls import host_of

COPIED = 0.5  # share of the shorter page's sentences that two copies have in common
_LEAST_CHARS = 40  # of a sentence that two pages do not share by chance
_REFUSALS = re.compile(
    r"\b(?:could not|cannot|can't|unable to|not) (?:be )?"
    r"(?:find|found|determined?|answer(?:ed)?|available|provided?|mention(?:ed)?|contain|say)"
    r"|\bno (?:information|evidence|data|sources?|answer)\b"
    r"|\bdo(?:es)? not (?:say|mention|contain|answer|provide|state)",
    re.IGNORECASE,
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")


@dataclass(frozen=True)
class Scores:
    """The measures of one run; None where one does not apply. Shares are 0 to 1."""

    failed: bool = False  # it broke off without a report
    claims: int = 0
    alike: float | None = None  # share of claims
    near: float | None = None
    apart: float | None = None
    cited: float | None = None  # citation recall: share of claims that cite a page
    precision: float | None = None  # share of citations whose page supports the claim, alone or in part
    invented: int = 0  # citations of a page that was never read, or of nothing
    domains: int = 0
    independent: float | None = None  # independent supporting pages a claim
    topics: float | None = None  # share of the expected ones
    required: float | None = None  # share of the required sources that are cited
    facts: float | None = None  # share of the fact checks that are passed
    false_facts: int = 0  # statements that must not be made, and are
    right: bool | None = None  # the report has the expected answer, and states nothing that is known to be false
    told: bool | None = None  # right, and not below a line that the sources do not answer
    first: bool | None = None  # its first section has
    refused: bool | None = None  # it says that there is no answer, where that is expected
    refused_wrongly: bool | None = None  # the same where there is one
    answer_right: bool | None = None  # of a short answer
    confidence: float | None = None
    tokens: int | None = None
    usd: float | None = None
    seconds: float | None = None
    calls: int | None = None  # of models

    @property
    def verified(self) -> float:
        """Claims whose words their sources have."""
        return self.claims * (self.alike or 0.0)


NAMES = tuple(field.name for field in fields(Scores))


def score(run: Finished) -> Scores:
    """Return the measures of a run."""
    result = run.result
    return Scores(
        failed=result.status is RowStatus.failed,
        tokens=result.tokens,
        usd=result.usd,
        seconds=result.seconds,
        calls=result.llm_calls,
        confidence=result.confidence,
        **_of_answer(run),
        **(_of_claims(run) if run.claims else {}),
    )


def _of_answer(run: Finished) -> dict[str, Any]:
    question, result = run.question, run.result
    parts = [plain(part) for part in run.parts]
    whole = "\n".join(parts)
    false = [check for check in question.fact_checks if not check.is_true and _states(parts, check)]
    passed = sum(_states(parts, check) if check.is_true else check not in false for check in question.fact_checks)
    refused = _refuses(run, parts)
    expected = question.answerable and bool(question.answer)
    right = has([whole], question.answer) and not false
    return {
        "topics": _share([bool(has([whole], [topic])) for topic in question.expected_topics]),
        "required": _share([_is_cited(wanted, run) for wanted in question.required_sources]),
        "facts": passed / len(question.fact_checks) if question.fact_checks and run.parts else None,
        "false_facts": len(false),
        "right": right if expected else None,
        "told": (right and not refused) if expected else None,
        "first": (has(parts[:1], question.answer) and not false) if expected else None,
        "refused": refused if not question.answerable else None,
        "refused_wrongly": refused if question.answerable else None,
        "answer_right": has([plain(result.answer or "")], question.answer) if expected and result.answer else None,
    }


def _refuses(run: Finished, parts: Sequence[str]) -> bool:
    """Whether a run ended without a report, or with one that begins by saying that it has no answer."""
    if not run.result.status.finished:
        return False  # a crash refuses nothing
    if not (run.parts or run.result.answer):
        return True
    if run.refuses is not None:
        return run.refuses
    opening = " ".join(sentence.text for sentence in split_sentences((parts or [run.result.answer or ""])[0])[:3])
    return bool(_REFUSALS.search(opening))


def _of_claims(run: Finished) -> dict[str, Any]:
    texts = {one: list(found) for one, found in (run.texts or {}).items()}
    search = Search(texts_of(text for found in texts.values() for text in found))
    found = [_likeness(claim, search, claim.source_ids) for claim in run.claims]
    pairs = [(claim, source_id) for claim in run.claims for source_id in claim.source_ids]
    supporting = [
        [one for one in claim.source_ids if _likeness(claim, search, (one,)) is not Likeness.apart]
        for claim in run.claims
    ]
    known = run.texts is not None
    unread = [source_id for _, source_id in pairs if known and source_id not in texts]
    count = len(run.claims)
    return {
        "claims": count,
        **{likeness.name: found.count(likeness) / count if known else None for likeness in reversed(Likeness)},
        "cited": sum(bool(claim.source_ids) for claim in run.claims) / count,
        "precision": sum(map(len, supporting)) / len(pairs) if pairs and known else None,
        "invented": len(unread) + run.dangling,
        "domains": len({site_of(host_of(run.addresses.get(one, ""))) for _, one in pairs} - {""}),
        "independent": sum(_independent(found, texts) for found in supporting) / count if known else None,
    }


def _likeness(claim: ClaimSentence, search: Search, source_ids: Sequence[str]) -> Likeness:
    return nearest(claim.sentence, search, source_ids, claim.kind).likeness if source_ids else Likeness.apart


def _independent(source_ids: Sequence[str], texts: dict[str, list[SourceText]]) -> int:
    """Return how many of some sources are of different sites and do not repeat one another."""
    chosen: list[str] = []
    for one in source_ids:
        if all(_apart(texts[one][0], texts[other][0]) for other in chosen):
            chosen.append(one)
    return len(chosen)


def _apart(one: SourceText, other: SourceText) -> bool:
    if one.kind == other.kind == "web" and site_of(host_of(one.url)) == site_of(host_of(other.url)):
        return False
    mine, yours = _sentences(one.text), _sentences(other.text)
    return len(mine & yours) < COPIED * (min(len(mine), len(yours)) or 1)


@cache
def _sentences(text: str) -> frozenset[str]:
    return frozenset(s.clean.casefold() for s in split_sentences(text) if len(s.clean) >= _LEAST_CHARS)


def _is_cited(wanted: str, run: Finished) -> bool:
    """Whether a domain, a page, or a page below it is among the cited ones."""
    cited = {run.addresses.get(one, "") for claim in run.claims for one in claim.source_ids}
    if "://" in wanted:
        page = comparable(wanted)
        return any(f"{comparable(address)}/".startswith(f"{page}/") for address in cited)
    return any(host == wanted or host.endswith(f".{wanted}") for host in map(host_of, cited))


def _states(parts: Sequence[str], check: FactCheck) -> bool:
    """Whether a report states something: a true statement anywhere, a false one in a single sentence or row."""
    if check.is_true:
        return has(["\n".join(parts)], check.words)
    return any(has([line], check.words) for part in parts for line in _lines(part))


def _lines(text: str) -> list[str]:
    return [sentence.text for line in text.split("\n") for sentence in split_sentences(line)]


def has(texts: Sequence[str], words: Words) -> bool:
    """Whether some plain texts have an alternative of each group, as whole words."""
    return all(any(_holds(text, one) for text in texts for one in group) for group in words) if words else False


def _holds(text: str, words: str) -> bool:
    words = plain(words)
    before = (r"(?<!\w)" if words[:1].isalnum() else "") + (r"(?<!\d[.,])" if words[:1].isdigit() else "")
    after = (r"(?!\w)" if words[-1:].isalnum() else "") + (r"(?![.,]\d)" if words[-1:].isdigit() else "")
    return re.search(before + re.escape(words) + after, text) is not None


def plain(text: str) -> str:
    """Return a text as it is compared: without citations, links, emphasis and escapes, in lowercase, its lines kept."""
    text = re.sub(r"[*`\\]", "", _LINK.sub(r"\1", without_citations(text))).translate(_SIGNS)
    return "\n".join(" ".join(line.casefold().split()) for line in text.split("\n"))


_SIGNS = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "})


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None
