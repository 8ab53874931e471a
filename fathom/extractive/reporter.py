"""Writing a report without a model: its outline, and sections of quotations, each with its citation.

Writing a section of a template without a model: the quotations that belong into it more than into any other. A
section says in its title and description what belongs into it. A paragraph, list or table of the notes goes to the
section whose words it fits best, if it holds enough of them; a section that gets none stays empty.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from textwrap import shorten
from typing import NamedTuple

from fathom.config.templates import TemplateSection
from fathom.extractive.citing import ITEM, Quoted, announces, below_lines, cited, quoted, split_blocks, with_omissions
from fathom.extractive.computing import computed_answer
from fathom.extractive.hops import second_hop
from fathom.extractive.questions import as_asked, capitalized, families, questions_of, topic_terms
from fathom.extractive.statements import (
    ON_QUESTION,
    Quotations,
    QuotedStatement,
    Succession,
    WebSource,
    doubtful,
    quotations_for,
    statements_of,
)
from fathom.models import Answered, Note, PlanStep
from fathom.retrieval.asked import asks_definition, asks_for_newest
from fathom.retrieval.kinds import kind_of
from fathom.retrieval.relevance import Chosen, Found
from fathom.roles import OutlineAnswer, OutlineRequest, SectionRequest, Text
from fathom.roles.reporter import OutlinedSection, WritingRequest
from fathom.text.citations import cited_ids
from fathom.text.sentences import split_sentences
from fathom.text.terms import is_near_duplicate, terms
from fathom.text.wording import Wording, wording

ANSWER, CLOSEST = "Answer", "What comes closest"
MAX_SECTIONS = 7
TITLE_CHARS = 200
_DAYS_FROM_TODAY = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "heute": 0, "gestern": -1}
_RELATIVE_DAY = re.compile(rf"\b(?:{'|'.join(_DAYS_FROM_TODAY)})\b", re.IGNORECASE)
LEAST_NEW = 2  # sentences, rows or items that a section must have of its own


def outline(request: OutlineRequest) -> OutlineAnswer:
    """Return the short answer first, then the template's sections or those that the steps make."""
    found = answered(request)
    heading = CLOSEST if found is Answered.no else ANSWER
    answer = OutlinedSection(heading=heading, focus=f"Answer the question: {request.query}", step_ids=[])
    # What a template has is added to every outline.
    groups = [] if request.sections else _telling(request, answer)
    return OutlineAnswer(
        title=_title(request.query),
        answered=found,
        sections=[answer, *(_section(steps, request) for steps in groups)],
    )


def _telling(request: OutlineRequest, answer: OutlinedSection) -> list[list[PlanStep]]:
    """Group the steps into sections with something of their own to say beside the answer.

    Writing is cheap here, so each section is tried: one that has too little left to quote joins its nearest neighbour.
    """
    sections = [answer]
    written = [_draft(request, sections, [])]
    kept: list[list[PlanStep]] = []
    for steps in _fitting(_groups(request)):
        section = _section(steps, request)
        draft = _draft(request, [*sections, section], written)
        if len(CITED.findall(draft)) >= LEAST_NEW:
            kept.append(steps)
            sections.append(section)
            written.append(draft)
        elif kept:
            _nearest(steps[0], kept).extend(steps)
    return kept


def _title(query: str) -> str:
    """Return the question, cut where it is long."""
    title = shorten(query, TITLE_CHARS, placeholder=" …")
    return title if len(title) > len(" …") else f"{query.strip()[: TITLE_CHARS - 2]} …"


def answered(request: WritingRequest) -> Answered:
    """Return whether what may be quoted answers a question, may do so, or answers it in part."""
    quotations = quotations_for(request.notes, request.passages)
    return answered_by(quotations, of_today(quotations, request))


def of_today(quotations: Quotations, request: WritingRequest) -> str:
    """Return the question with the date in place of "today" or "tomorrow", if a source says what holds on that day."""
    found = _RELATIVE_DAY.search(request.query)
    if not found:
        return request.query
    day = date.fromisoformat(request.today) + timedelta(_DAYS_FROM_TODAY[found[0].lower()])
    is_known = quotations.share(day.isoformat()) >= 1
    return request.query.replace(found[0], day.isoformat(), 1) if is_known else request.query


def answered_by(quotations: Quotations, query: str) -> Answered:
    """Return whether quotations, or what is computed of them, answer a question, may do so, or answer it in part."""
    if hop := second_hop(quotations, query):
        return hop.answered
    questions = questions_of(query)
    found = {_answered_one(quotations, each) for each in questions}
    if Answered.no in found:
        return Answered.no if len(found) == 1 else Answered.partly
    return Answered.maybe if Answered.maybe in found else Answered.yes


def _answered_one(quotations: Quotations, question: str) -> Answered:
    computed = computed_answer(quotations, question)
    if not computed or not computed.is_all:
        return quotations.answer(question)
    return Answered.yes if computed.is_sure else Answered.maybe


def _section(steps: list[PlanStep], request: OutlineRequest) -> OutlinedSection:
    title, asked = as_asked(steps[0].title, request.query), questions_of(request.query)
    is_all = [title.rstrip("?").casefold()] == [each.casefold() for each in asked]
    return OutlinedSection(
        # Where there is one question, it is the title of the report.
        heading=wording(request.language)(MORE) if is_all else capitalized(title),
        focus=" ".join(step.description for step in steps),
        step_ids=[step.step_id for step in steps],
    )


def _draft(request: OutlineRequest, sections: list[OutlinedSection], written: list[str]) -> str:
    """Return what the last of some sections would quote."""
    ids = {str(step_id) for step_id in sections[-1].step_ids}
    return _quotations(
        SectionRequest(
            query=request.query,
            today=request.today,
            language=request.language,
            title=request.plan.plan_title,
            outlined=sections,
            position=len(sections) - 1,
            notes=[note for note in request.notes if not ids or note.steps & ids],
            passages=request.passages,
            written=written,
        )
    )


def _groups(request: OutlineRequest) -> list[list[PlanStep]]:
    """Group the steps with notes; steps with near-identical titles go together."""
    groups: list[list[PlanStep]] = []
    answered = {step_id for note in request.notes for step_id in note.steps}
    for step in request.plan.steps:
        if str(step.step_id) not in answered:
            continue
        near = next((g for g in groups if any(is_near_duplicate(step.title, s.title) for s in g)), None)
        if near is None:
            groups.append([step])
        else:
            near.append(step)
    return groups


def _fitting(groups: list[list[PlanStep]]) -> list[list[PlanStep]]:
    """Return at most as many groups as the outline has room for; the last ones join those they resemble."""
    kept = [list(group) for group in groups[: MAX_SECTIONS - 1]]
    for group in groups[MAX_SECTIONS - 1 :]:
        _nearest(group[0], kept).extend(group)
    return kept


def _nearest(step: PlanStep, groups: list[list[PlanStep]]) -> list[PlanStep]:
    words = set(terms(step.title))
    return max(groups, key=lambda group: len(words & set(terms(" ".join(s.title for s in group)))))


ANSWER_TOKENS = 270
MOST_QUOTED, MOST_FOR_PART = 5, 2  # quotations in the short answer, and at least for each part of a question
PART_TOKENS = 60  # at least for each part of a question that has many
SECTION_TOKENS = 450
LEAST_SCORE = 0.3  # of the best excerpt's; what says less stays out
AS_MUCH = 0.7  # of the share of the question that the best excerpt holds, where that certainly answers it
MORE = "More from the sources"
"""Heading of the section with what else bears on the only question."""
NOT_FOUND = "Not found in the sources: {question}?"
NOTHING_FOUND = "This section is empty: this research found nothing that belongs here."
NOTHING_NEW = "This section has nothing to add to what the others quote."

_LIMITS = re.compile(r"\b(?:unless|except|only|however|but|no longer|außer|nur|jedoch|aber)\b", re.IGNORECASE)
"""Words of a condition or an exception, which may stand beside a certain answer without the thing that is asked."""
CITED = re.compile(r"\s*(?:\[S[0-9a-f]{6,64}\])+\s*")


def write_section(request: SectionRequest) -> Text:
    """Return a section of quotations that no earlier section has; the first one answers each part of the question."""
    return Text(text=with_omissions(_quotations(request), {each.source_id: each.text for each in request.passages}))


def _quotations(request: SectionRequest) -> str:
    words = wording(request.language)
    if request.position == 0:
        quotations = quotations_for(request.notes, request.passages)
        body = _answer(quotations, of_today(quotations, request), words)
    elif request.is_given:
        return write_given_section(request) or words(NOTHING_FOUND)
    else:
        body = _section_text(Quotations.of_notes(request.notes, request.passages), request)
    return body or words(NOTHING_NEW)


def _answer(quotations: Quotations, query: str, words: Wording) -> str:
    """Return the best quotations for each question of a query, what is computed of them, and what was not found."""
    hop = second_hop(quotations, query)
    questions = [hop.inner, hop.asked] if hop else questions_of(query)
    room = max(PART_TOKENS, ANSWER_TOKENS // len(questions))
    most = max(MOST_FOR_PART, MOST_QUOTED // len(questions))
    shown: list[Quoted] = []
    computed: list[str] = []
    missing: list[str] = []
    for question in questions:
        found = computed_answer(quotations, question)
        computed += [cited([found.sentence], found.sources)] if found and found.sentence else []
        if found and found.is_all:
            shown += found.quoted
            continue
        succession = Succession(quotations, question)
        if hop and question == hop.asked:
            succession.found = list(hop.found)
        chosen = quotations.choose(_bearing(quotations, succession.found, question), question, room, most)
        shown += succession.shown(_below_headings(chosen if _asks_best(question) else _as_read(chosen)))
        shown += found.quoted if found else ()
        if len(questions) > 1 and not hop and quotations.answered_by(succession.found, question) is Answered.no:
            missing.append(question)
    absent = [words(NOT_FOUND, question=_plain(as_asked(question, query))) for question in missing]
    return "\n\n".join(filter(None, [*computed, _quoted(quotations, _dated(quotations, _once(shown)), words), *absent]))


def _asks_best(question: str) -> bool:
    """Whether the best quotation is to be read first: it defines, has the number, date or name, or is the newest."""
    kind = kind_of(question)
    return asks_definition(question) or asks_for_newest(question) or (kind is not None and kind.needed)


def _as_read(chosen: Sequence[Chosen]) -> list[Chosen]:
    """Return excerpts in the order in which their sources say them, below the same heading.

    The section with the best excerpt comes first: many that only mention the words say less than the one that tells.
    """
    sections: defaultdict[tuple[int, int], list[Chosen]] = defaultdict(list)
    for each in chosen:
        sections[each.text, each.section].append(each)
    order = sorted(sections.values(), key=lambda own: -max(each.score for each in own))
    return [each for own in order for each in sorted(own, key=lambda each: each.start)]


def _below_headings(chosen: Iterable[Chosen]) -> Iterator[Chosen]:
    """Yield excerpts, neighbours from one section below its heading, above the first, if one of them needs it."""
    for _, group in groupby(chosen, key=lambda each: (each.text, each.section)):
        own = list(group)
        heading = next((each.heading for each in own if each.heading), "")
        for each in own:
            told = not heading or each.markdown.startswith(f"{heading}\n")
            yield each if told else each._replace(markdown=f"{heading}\n\n{each.markdown}")


def _dated(quotations: Quotations, shown: Iterable[Quoted]) -> Iterator[Quoted]:
    """Yield quotations, those from a dated section of a document below the heading that states the date."""
    before = -1
    for each in shown:
        heading = quotations.headings[each.number]
        told = heading and each.number != before and not each.markdown.startswith(f"{heading}:")
        yield each._replace(markdown=f"{heading}:\n\n{each.markdown}") if told else each
        before = each.number


def _once(shown: Iterable[Quoted]) -> Iterator[Quoted]:
    """Yield the quotations without the paragraphs and sentences that those before them have: texts may overlap.

    Not without items: "Builder: Holt Yard" may stand below several names.
    """
    said: set[tuple[str, ...]] = set()
    for each in shown:
        blocks = [each.markdown] if "```" in each.markdown else each.markdown.split("\n\n")
        keys = [{(str(each.number), *key) if ITEM.match(block) else key for key in _said([block])} for block in blocks]
        new = [_unsaid(block, said) for block, own in zip(blocks, keys, strict=True) if not own or own - said]
        said = said.union(*keys)
        if any(not block.endswith(":") for block in new):
            yield each._replace(markdown="\n\n".join(new))


def _unsaid(block: str, said: Collection[tuple[str, ...]]) -> str:
    """Return a paragraph without the sentences that were said; a list, table or code as it is."""
    if not said or "\n" in block or block.startswith("|") or ITEM.match(block):
        return block
    return " ".join(s.text for s in split_sentences(block) if tuple(terms(s.text)) not in said)


def _section_text(quotations: Quotations, request: SectionRequest) -> str:
    said = _said(request.written)
    questions = questions_of(request.query)
    heading = request.section.heading
    if heading == wording(request.language)(MORE):
        wanted = questions[0]
    else:
        asked = {_plain(capitalized(as_asked(each, request.query))): each for each in questions}
        wanted = asked.get(_plain(heading)) or f"{heading} {request.query}"
    succession = Succession(quotations, wanted)
    avoided = _avoided(request, wanted)
    new = [
        each
        for each in _best(succession.found)
        if not (avoided.issuperset(quotations.sources[each.text]) or _is_said(quotations.says(each), said))
    ]
    chosen = quotations.choose(new, wanted, SECTION_TOKENS)
    # A lead-in that is the section's heading says nothing more.
    bare = (each._replace(markdown=each.markdown.removeprefix(f"{heading}:").lstrip("\n")) for each in chosen)
    marked = succession.marked(Quoted(each.text, each.markdown) for each in bare)
    return _quoted(quotations, marked, wording(request.language))


def _avoided(request: SectionRequest, question: str) -> set[str]:
    """Return the ids of the doubtful pages, where the short answer quotes others: these bear on the question, too."""
    pages = doubtful(question, [WebSource.of(text) for text in request.passages])
    avoided = {request.passages[number].source_id for number in pages}
    answering = {source for answer in request.written[:1] for source in cited_ids(answer)}
    return avoided if answering - avoided else set()


def _plain(question: str) -> str:
    return question.rstrip("?")


def _best(found: Sequence[Found]) -> list[Found]:
    return [each for each in found if each.score >= LEAST_SCORE * found[0].score]


def _bearing(quotations: Quotations, found: Sequence[Found], question: str) -> list[Found]:
    """Return the excerpts that may stand in the short answer; beside a certain one, only those that hold as much."""
    best = _best(found)
    if not best or not quotations.is_certain(found, question):
        return best
    return [
        each
        for each in best
        if quotations.share_of(each, question) >= AS_MUCH * best[0].share
        and (quotations.states(each, question) or _LIMITS.search(quotations.says(each)))
    ]


def _said(written: Iterable[str]) -> set[tuple[str, ...]]:
    """Return the sentences, rows and items of earlier sections, as their terms."""
    parts = (part for section in written for part in CITED.split(section))
    sentences = (s for part in parts for s in split_sentences(part) if not s.text.endswith(":"))
    return {found for s in sentences if (found := tuple(terms(s.text)))}


def _is_said(text: str, said: set[tuple[str, ...]]) -> bool:
    """Whether earlier sections have a sentence, row or item of an excerpt."""
    return any(tuple(terms(sentence.text)) in said for sentence in split_sentences(text))


def _quoted(quotations: Quotations, shown: Iterable[Quoted], words: Wording) -> str:
    return quoted((quotations.sources[each.number], each.markdown) for each in below_lines(shown, words))


OF_TITLE, OF_DESCRIPTION = 2, 1  # what a word of a section's title counts, and one of its description
LEAST_HELD = 2  # that a quotation must hold: one word of a description alone is a coincidence
LEAST_SHARED = 3  # that it must hold where it fits another section better, and this one would be empty
LEAST_GIVEN = 0.3  # of the best quotation's; what says less stays out


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
    wanted = f"{_described(section)} {request.query}"
    succession = Succession(quotations, wanted)
    found = [each for each in succession.found if each.text in own]
    telling = [each for each in found if each.score >= LEAST_GIVEN * found[0].score]
    chosen = quotations.choose(telling, wanted, SECTION_TOKENS)
    shown = succession.marked(Quoted(each.text, each.markdown) for each in chosen)
    return _quoted(quotations, shown, wording(request.language))


def _described(section: TemplateSection) -> str:
    return f"{section.title} {section.about}"


def _parts(notes: Sequence[Note]) -> Iterator[QuotedStatement]:
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
    for number, fits in _fits(request, quotations).items():
        if max(fits, key=lambda fit: fit.score).position == request.position:
            best.add(number)
        if any(fit.position == request.position and fit.held >= LEAST_SHARED for fit in fits):
            well.add(number)
    return best or well


def _fits(request: SectionRequest, quotations: Quotations) -> dict[int, list[_Fit]]:
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


def _on_question(own: set[int], parts: Sequence[QuotedStatement], shares: Mapping[int, float]) -> set[int]:
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
