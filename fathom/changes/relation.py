"""How a claim relates to a sentence or to another claim: borne by it, concerned by a change of it, the same fact."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fathom.changes.model import Difference
from fathom.changes.pages import Line
from fathom.changes.sides import Borne
from fathom.changes.values import figures_differ, names_apart
from fathom.contradictions.assertions import assertion_of
from fathom.contradictions.finding import differ
from fathom.contradictions.succession import readings, replaces
from fathom.evidence.likeness import Likeness, nearest_in
from fathom.evidence.stored import StoredText
from fathom.facts.extraction import facts_of
from fathom.models import Claim, Source
from fathom.text.terms import terms


def bears(claim: Claim, line: Line, source: Source) -> bool:
    """Whether a sentence says a claim as well as the claim's own sources do."""
    text = f"{line.header}\n|---|\n| {line.text} |" if line.header else line.text
    own = [StoredText(source, quote.text) for quote in claim.quotes]
    least = nearest_in(claim.sentence, own).likeness if own else Likeness.near
    return nearest_in(claim.sentence, [StoredText(source, text)]).likeness >= max(least, Likeness.near)


def concerned(claim: str, values: Sequence[Difference], *, earlier: bool) -> list[Difference]:
    """Return which of the values in which a sentence changed a claim says; of an earlier claim, the former value."""
    return [value for value in values if _has(claim, value.before if earlier else value.after, value.about)]


def _has(claim: str, value: str, about: str) -> bool:
    if not value:
        return False
    its = facts_of(value)
    if about not in ("number", "date") or not (its.numbers or its.dates):
        return bool(set(terms(re.sub(r"\Anot ", "", value))) & set(terms(claim)))
    own = facts_of(claim)
    numbers = any(number.agrees(other) for number in own.numbers for other in its.numbers)
    return numbers or any(found.date.agrees(other.date) for found in own.dates for other in its.dates)


def same_fact(earlier: Borne, later: Borne) -> bool:
    """Whether two claims say the same in other words: each is borne by the other's sources, with the same figures."""
    other, others = earlier
    claim, grounds = later
    if figures_differ(other.sentence, claim.sentence) or names_apart(other.sentence, claim.sentence):
        return False
    return any(bears(claim, g.line, g.page.source) for g in others) or any(
        bears(other, g.line, g.page.source) for g in grounds
    )


def contradicts(earlier: str, later: str) -> bool:
    """Whether two claims, of different times, give different values for the same thing."""
    a, b = assertion_of(earlier, ()), assertion_of(later, ())
    if a and b and differ(a, b):
        return True
    return any(replaces(new, old) for new in readings(later, "") for old in readings(earlier, ""))
