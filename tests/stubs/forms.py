"""What a page says beside its fact, in one of six forms, and the faithful bullet that a model notes of it.

`passage` makes a page's own from its URL; `noted` finds every passage in what a model is shown, and returns the bullets
of a model that is true to its sources: word for word, shortened, with the document's own number, a row below its
header, code in a fence, two sentences made one.
"""

from __future__ import annotations

import hashlib
import random
import re

__all__ = ["FORMS", "form_of", "noted", "passage"]

_THINGS = ("barrels", "boats", "carts", "crates", "ladders", "lamps", "ovens", "pumps", "ropes", "tiles")
_PLACES = ("Altmere", "Brindale", "Corvik", "Dunhollow", "Eskford", "Fenwick", "Garlo", "Hestrand", "Imber", "Jorvale")
_PAGE = {
    "verbatim": "In {year}, the wardens of {place} counted {count} {things}, {few} more than the year before.",
    "shortened": "According to a clerk, who kept the register through two poor seasons, the wharf of {place} sold "
    "{count} {things} in {year}, as the last page of the ledger notes.",
    "numbered": "{few}.1 Lending\n\nThe keeper of {place} may lend no more than {count} {things} a year.",
    "row": "| wharf | year | {things} |\n|---|---|---|\n| {place} | {year} | {count} |\n| others | {year} | {few} |",
    "code": "The store of {place} is counted with this command:\n\n```\ntally --wharf {place} --year {year} \\\n"
    "  --limit {count}\n```",
    "combined": "The granary of {place} was built in {year}. It holds {count} {things} and serves {few} villages.",
}
_BULLET = {
    "shortened": "The wharf of {place} sold {count} {things} in {year}.",
    "numbered": "Section {few}.1: the keeper of {place} may lend no more than {count} {things} a year.",
    "row": "| wharf | year | {things} |\n|---|---|---|\n| {place} | {year} | {count} |",
    "code": "The store of {place} is counted with this command:\n```\ntally --wharf {place} --year {year} \\\n"
    "  --limit {count}\n```",
    "combined": "The granary of {place}, built in {year}, holds {count} {things} and serves {few} villages.",
}
FORMS = tuple(_PAGE)
_BLANKS = {
    "year": r"\d{4}",
    "place": "|".join(_PLACES),
    "count": r"\d{1,2},\d{3}",
    "few": r"\d{2}",
    "things": "|".join(_THINGS),
}


def passage(url: str) -> str:
    """Return what the page at a URL says in the form that is its own: one to four lines."""
    rng = random.Random(hashlib.sha256(f"form\n{url}".encode()).hexdigest())
    return _PAGE[rng.choice(FORMS)].format(
        year=rng.randint(1801, 1999),
        place=rng.choice(_PLACES),
        count=f"{rng.randint(1_000, 99_999):,}",
        few=rng.randint(11, 99),
        things=rng.choice(_THINGS),
    )


def noted(shown: str) -> list[str]:
    """Return a faithful bullet, without an id, for each passage that stands whole in what a model is shown."""
    found = [(place.start(), form, place) for form in FORMS for place in _PATTERNS[form].finditer(shown)]
    return [_bullet(form).format(**place.groupdict()) for _, form, place in sorted(found, key=lambda one: one[0])]


def form_of(bullet: str) -> str:
    """Return the form of the passage that a bullet of `noted` was made of; empty for any other bullet."""
    return next((form for form in FORMS if _OF_BULLETS[form].match(bullet)), "")


def _bullet(form: str) -> str:
    return _BULLET.get(form, _PAGE[form])


def _pattern(text: str) -> re.Pattern[str]:
    """Return what finds a form with its blanks filled in, however its white space is laid out."""
    seen: set[str] = set()

    def blank(found: re.Match[str]) -> str:
        again = found[1] in seen
        seen.add(found[1])
        return f"(?P={found[1]})" if again else f"(?P<{found[1]}>{_BLANKS[found[1]]})"

    laid_out = re.sub(r"(?:\\?\s)+", lambda _: r"\s+", re.escape(text))
    return re.compile(re.sub(r"\\\{(\w+)\\\}", blank, laid_out))


_PATTERNS = {form: _pattern(text.partition("\n| others")[0]) for form, text in _PAGE.items()}
_OF_BULLETS = {form: _pattern(_bullet(form)) for form in FORMS}
