"""Writing a section of a template without a model: the quotations that belong into it more than into any other.

A section says in its title and description what belongs into it. A paragraph, list or table of the notes goes to the
section whose words it fits best, if it holds enough of them; a section that gets none stays empty.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fathom.config.templates import TemplateSection
from fathom.extractive.citing import announces, quoted, split_blocks
from fathom.extractive.statements import ON_QUESTION, Quotations, Statement, statements_of
from fathom.extractive.succession import Quoted, Succession
from fathom.extractive.wording import families, topic_terms
from fathom.models import Note
from fathom.roles import SectionRequest
from fathom.text.terms import terms

OF_TITLE, OF_DESCRIPTION = 2, 1  # what a word of a section's title counts, and one of its description
LEAST_HELD = 2  # that a quotation must hold: one word of a description alone is a coincidence
LEAST_SHARED = 3  # that it must hold where it fits another section better, and this one would be empty
LEAST_SCORE = 0.3  # of the best quotation's; what says less stays out
SECTION_TOKENS = 450


class _Fit(NamedTuple):
    """How well a quotation fits the section at a position of the report."""

    position: int
    score: float
    held: int


def write_given_section(request: SectionRequest) -> str:
    """Return the quotations of a section as Markdown with citations; nothing if no quotation belongs into it."""
    parts = list({(part.text, part.sources): part for part in _parts(request.notes)}.values())
    quotations = Quotations.of_statements(parts)
    shares = dict.fromkeys(range(len(parts)), 0.0)  # of the question, by the number of the quotation
    for each in quotations.rank(request.query):
        shares[each.text] = max(shares[each.text], each.share)
    own = _on_question(_belonging(request, quotations), parts, shares)
    section = request.sections[request.position - 1]
    wording = f"{_described(section)} {request.query}"
    succession = Succession(quotations, wording)
    found = [each for each in succession.found if each.text in own]
    telling = [each for each in found if each.score >= LEAST_SCORE * found[0].score]
    chosen = quotations.choose(telling, wording, SECTION_TOKENS)
    shown = [succession.marked(Quoted(each.text, each.markdown)) for each in chosen]
    return quoted((quotations.sources[each.number], each.markdown) for each in shown)


def _described(section: TemplateSection) -> str:
    return f"{section.title} {section.about}"


def _parts(notes: Sequence[Note]) -> Iterator[Statement]:
    """Yield what the notes quote in paragraphs, lists and tables, each below its heading and lead-in."""
    for statement in statements_of(notes):
        first, *others = split_blocks(statement.text)
        heading = [first] if announces(first) and others else []
        lead: list[str] = []
        for block in others if heading else [first, *others]:
            if announces(block):
                lead.append(block)
                continue
            yield statement._replace(text="\n\n".join([*heading, *lead, block]))
            lead = []


def _belonging(request: SectionRequest, quotations: Quotations) -> set[int]:
    """Return the quotations that fit the section best; if there are none, those that fit it well, too."""
    best, well = set[int](), set[int]()
    for number, fits in _fitting(request, quotations).items():
        if max(fits, key=lambda fit: fit.score).position == request.position:
            best.add(number)
        if any(fit.position == request.position and fit.held >= LEAST_SHARED for fit in fits):
            well.add(number)
    return best or well


def _fitting(request: SectionRequest, quotations: Quotations) -> dict[int, list[_Fit]]:
    """Return by the number of each quotation the sections into which it may belong, in the order of the report."""
    said = [set(terms(f"{title} {quotations.whole(number)}")) for number, title in enumerate(quotations.titles)]
    fitting: defaultdict[int, list[_Fit]] = defaultdict(list)
    for position, section in enumerate(request.sections, 1):
        worth = _worth(section, request.query)
        scores: dict[int, float] = {}
        for each in quotations.rank(_described(section)):
            scores.setdefault(each.text, each.score)  # the best comes first
        for number, score in scores.items():
            held = sum(worth.get(term, 0) for term in said[number])
            if held >= LEAST_HELD:
                fitting[number].append(_Fit(position, score, held))
    return fitting


def _worth(section: TemplateSection, query: str) -> Mapping[str, int]:
    """Return what the words of a section count, and those that texts use in their place; none of the question's."""
    worth: dict[str, int] = {}
    for text, count in ((section.about, OF_DESCRIPTION), (section.title, OF_TITLE)):
        for family in families(topic_terms(text)):
            worth.update(dict.fromkeys(family, count))
    return {term: count for term, count in worth.items() if term not in topic_terms(query)}


def _on_question(own: set[int], parts: Sequence[Statement], shares: Mapping[int, float]) -> set[int]:
    """Return quotations without those that say little of the question, if some of them say much.

    What stands together in a source is on the same matter.
    """
    together: defaultdict[tuple[int, int], float] = defaultdict(float)
    for number in own:
        place = (parts[number].note, parts[number].order)
        together[place] = max(together[place], shares[number])
    most = max(together.values(), default=0.0)
    if most < ON_QUESTION:
        return own
    return {number for number in own if together[parts[number].note, parts[number].order] >= most / 2}
