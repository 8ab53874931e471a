"""Where each claim of a report stands in its prose: marks that survive the way from Markdown to HTML as plain text.

Citations become marks before the Markdown is rendered, and links after the HTML was sanitised, so that what a report
says can neither make a link of Fathom's own nor break one.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from fathom.evidence.claims import claim_text
from fathom.models import Claim, Corroboration, Verdict
from fathom.text.citations import with_known_ids
from fathom.text.sentences import Sentence, split_sentences

# Brackets of Unicode's class of punctuation, so that emphasis ends before them; no prose is written with them.
_OPEN, _CLOSE = "⸨", "⸩"
NO_MARKS = str.maketrans({_OPEN: "(", _CLOSE: ")"})
"""Takes the brackets of marks out of foreign text."""
_MARK = re.compile(rf"{_OPEN}(\d+)\.(\d+|!){_CLOSE}")
_CITATION = re.compile(r"\s*\[(S[0-9a-f]{6,64})\]")


def place_marks(markdown: str, claims: Sequence[Claim], numbers: Mapping[str, int]) -> str:
    """Return a section's Markdown with a mark for each citation, and one behind each sentence that is in doubt.

    Args:
        markdown: The section, free of `NO_MARKS`' characters.
        claims: Those of the section.
        numbers: The number of each source, by id; other citations are left out.
    """
    waiting: defaultdict[str, deque[Claim]] = defaultdict(deque)
    for claim in claims:
        waiting[claim.sentence].append(claim)
    parts, last = list[str](), 0
    for sentence in split_sentences(markdown):
        found = waiting[claim_text(sentence)]
        parts += [markdown[last : sentence.start], _marked(sentence, found.popleft() if found else None, numbers)]
        last = sentence.end
    return "".join([*parts, markdown[last:]])


def link_marks(html: str, claims: Mapping[int, Claim]) -> Markup:
    """Return sanitised HTML with its marks as links to the claims, by number, and to the sources."""

    def link(mark: re.Match[str]) -> str:
        claim = claims.get(int(mark[1]))
        if mark[2] == "!":
            label = doubt(claim) if claim else ""
            word = label.replace("_", " ")
            about = f'aria-label="{word}: evidence for claim {mark[1]}"'
            return f' <a class="mark {label}" href="#claim-{mark[1]}" {about}>{word}</a>' if label else ""
        if claim:
            about = f'aria-label="{mark[2]}: evidence for claim {mark[1]}"'
            return f'<a class="cite" href="#claim-{mark[1]}" {about}>{mark[2]}</a>'
        return f'<a class="cite" href="#source-{mark[2]}" aria-label="{mark[2]}: source">{mark[2]}</a>'

    return Markup(_MARK.sub(link, html))  # noqa: S704 - sanitised before, and the links are made of numbers


def doubt(claim: Claim) -> str:
    """Return in a word why a reader should doubt a claim, or nothing."""
    if claim.verdict is Verdict.unsupported:
        return "not_supported"
    if claim.corroboration is Corroboration.contradicted:
        return "disputed"
    return "weak" if claim.verdict is Verdict.weak else ""


def _marked(sentence: Sentence, claim: Claim | None, numbers: Mapping[str, int]) -> str:
    number = claim.number if claim else 0
    known = with_known_ids(sentence.text, numbers)
    text = _CITATION.sub(lambda found: f"{_OPEN}{number}.{numbers[found[1]]}{_CLOSE}", known)
    if not claim or not doubt(claim):
        return text
    end = len(text.rstrip().removesuffix("|")) if sentence.kind == "table" else len(text)
    return f"{text[:end]}{_OPEN}{number}.!{_CLOSE}{text[end:]}"
