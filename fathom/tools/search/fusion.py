"""One list of pages from the lists of several vendors, whose scores cannot be compared.

Each page gets the sum of 1 / (60 + its rank) over the lists that have it: reciprocal rank fusion, as in G. V. Cormack,
C. L. A. Clarke and S. Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
SIGIR 2009. A page that several vendors found comes before one that a single vendor put first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fathom.text.urls import canonical_url
from fathom.tools.pages import WebPage, is_page

K = 60  # the constant of the paper


class Fused(NamedTuple):
    """A page as all vendors together know it, and their names."""

    page: WebPage
    vendors: list[str]


def fuse(found: Mapping[str, Sequence[WebPage]]) -> list[Fused]:
    """Return each page once, the best first, with its score; the lists by vendor have the best first.

    Among pages of the same score, those of earlier vendors come first.
    """
    scores: dict[str, float] = {}
    copies: dict[str, dict[str, WebPage]] = {}  # of a page, by vendor
    for vendor, pages in found.items():
        ranked = dict.fromkeys(canonical_url(page.url) for page in pages if is_page(page.url))
        for rank, address in enumerate(ranked, 1):
            scores[address] = scores.get(address, 0.0) + 1 / (K + rank)
        for page in pages:
            if (address := canonical_url(page.url)) in ranked:
                copies.setdefault(address, {}).setdefault(vendor, page)
    best = sorted(scores, key=lambda address: -scores[address])
    return [Fused(_merged([*copies[a].values()], round(scores[a], 9)), [*copies[a]]) for a in best]


def _merged(copies: Sequence[WebPage], score: float) -> WebPage:
    """Return the copy with the longest text, with what it lacks from the others."""
    richest = max(copies, key=lambda page: (len(page.whole), len(page.excerpt)))
    names = ("title", "published", "excerpt")
    lacking = {name: next(filter(None, (getattr(c, name) for c in (richest, *copies))), "") for name in names}
    return richest.model_copy(update={**lacking, "score": score})
