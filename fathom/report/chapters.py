"""The chapters of a report, in the order in which a reader needs them; every form of the report is made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fathom.evidence.claims import with_marks_in
from fathom.evidence.computed import MARK
from fathom.facts.extraction import facts_of, figures_apart
from fathom.models import (
    Answered,
    Bibliographic,
    Contradiction,
    Coverage,
    Remark,
    Report,
    ReportSection,
    Source,
    SourceQuality,
    StepCoverage,
    UnreadFile,
)
from fathom.report.answer import AnswerBox, answer_of, making_parts
from fathom.report.figures import ClaimCell, ClaimTable, figures_of
from fathom.report.own_words import BETWEEN, CLOSEST, COMPUTED_NOTICE, EXTRACTIVE_NOTICE, HOW_SURE, POSSIBLE, Added
from fathom.report.quotations import escaped, quoted_markdown, with_names
from fathom.sources.corroboration import site
from fathom.storage.editions import file_for_question, shown_name
from fathom.text.citations import without_citations
from fathom.text.languages import language_tag
from fathom.text.plain import clean_line
from fathom.text.wording import ENGLISH, Wording, wording

NAMED_AUTHORS = 3
MOST_REASONS = 2  # why an answer is sure or not
CLOSE = 0.1  # credibilities that differ by less are alike


def language_of(report: Report) -> str:
    """Return the language tag of a report's sections, or nothing when it is not clear."""
    return language_tag("\n".join(section.markdown for section in report.sections))


def question_of(report: Report) -> str:
    """Return the question if the title does not state it; for a follow-up always, with the previous question."""
    asked = clean_line(report.query)
    if report.parent:
        before = wording(report.language)("(follow-up to: {question})", question=clean_line(report.parent.query))
        return f"{asked} {before}"
    return "" if asked == clean_line(report.title) else asked


def chapters(report: Report, *, making: bool = True, appendix: bool = True) -> list[ReportSection]:
    """Return the answer, the sections and the chapters about them, as Markdown that cites by source id.

    Without `making`, the answer does not name its model and cost; without `appendix`, there is no chapter about the
    research.
    """
    found, words = answer_of(report), wording(report.language)
    added_first = {
        found.heading if found else words("Answer"): _answer(report, found, words, making=making) if found else "",
        words(Added.disagreement): _disagreement(report, words),
        words(Added.warnings): _list(report.warnings),
    }
    added_last = {
        **{figure.title: _figure(figure, report) for figure in figures_of(report)},
        words(Added.not_found): _list(report.open_questions),
        words(Added.limitations): _list(report.limitations),
        words(Added.next_steps): _list(report.next_steps),
        words(Added.method): "\n\n".join(
            [
                *_coverage_table(report.coverage, words),
                *map(prose, method_lines(report)),
                *_remarks(report.remarks, words),
                *_unread(report.unread, words),
            ]
        ),
    }
    sections = [*([found.rest] if found and found.rest else []), *report.sections[1:]]
    written = [section.model_copy(update={"markdown": _safe(section, words)}) for section in sections]
    if not appendix:
        return [*(part for part in _present(added_first) if found and part.heading == found.heading), *written]
    return [*_present(added_first), *written, *_present(added_last)]


def title_of(source: Source) -> str:
    """Return the title of a source on one line, without the marks of code that a heading may have."""
    return clean_line(source.title).replace("`", "") or clean_line(source.url)


def address_in_words(url: str, words: Wording) -> str:
    """Return the address of a source that is not on the web, as a reader recognises it."""
    file = file_for_question(url)
    return words("{file}, a file for this question", file=file) if file else clean_line(shown_name(url))


def place_in(source: Source, words: Wording) -> list[str]:
    """Return the authors and place of a source, its heading or page if its title does not state it, and its date."""
    location, date = clean_line(source.location).replace("`", ""), clean_line(source.published)
    place = "" if location == title_of(source) else location
    return [part for part in (*credit_of(source, words), place, "" if place.endswith(date) else date) if part]


def credit_of(source: Source, words: Wording) -> list[str]:
    """Return the authors of a source, at most three by name, its journal, as far as a catalogue knows them, and its age
    if an earlier run read it."""
    known = source.reference or Bibliographic()
    names = [" ".join(clean_line(author).split(", ", 1)[::-1]) for author in known.authors]
    written = ", ".join(names if len(names) <= NAMED_AUTHORS else [f"{names[0]} et al."])
    archived = words("archived at {address}", address=clean_line(known.full_text)) if known.archived else ""
    archived = archived or (words("gone on {date}, no archived copy found", date=source.gone) if source.gone else "")
    run = clean_line(source.before.run_id)[:8] if source.before else ""
    before = words("read on {date} by the run {run}", date=source.before.on, run=run) if source.before else ""
    return [part.replace("`", "") for part in (written, clean_line(known.venue), archived, before) if part]


def open_first(found: Iterable[Contradiction]) -> list[Contradiction]:
    """Return the contradictions that nothing settles before the others: only they are left to the reader."""
    return sorted(found, key=lambda one: one.settled)


def sides_of(
    found: Contradiction, sources: Mapping[str, Source], qualities: Mapping[str, SourceQuality]
) -> list[tuple[str, str, list[str]]]:
    """Return the statement of each side of a contradiction, the dates of its sources, and their ids.

    If it is unknown which source is on which side, or the same one tells both, both sides have all of them. One source
    alone has no date here: that of a thread is its last entry's.
    """
    own, other = found.sides(sources)

    def dates(ids: Sequence[str]) -> str:
        days = (qualities[i].published if i in qualities else sources[i].published for i in ids)
        return ", ".join(dict.fromkeys(filter(None, days)))

    sides = [(found.claim_a, own or other), (found.claim_b, other or own)]
    alone = len({*own, *other}) == 1
    return [(said, "" if alone else dates(ids), ids) for said, ids in sides]


def better_side(
    found: Contradiction, sources: Mapping[str, Source], qualities: Mapping[str, SourceQuality], words: Wording
) -> str:
    """Return which side of a contradiction holds, if the notes tell, or that both may; else the better supported.

    A rule of the sources, such as the rank of a contract's documents, outweighs the number, credibility and age of the
    sources. A side is named with its figure, if it has one that the other gives otherwise.
    """
    names = (
        _with_figure(words("the first"), found.claim_a, found.claim_b),
        _with_figure(words("the second"), found.claim_b, found.claim_a),
    )
    if found.settled:
        return _settled(found, names, words)
    better = _better_supported(found, names, sources, qualities, words)
    return words.sentences([better, found.resolution]) if found.resolution else better


def _with_figure(name: str, said: str, other: str) -> str:
    figures = figures_apart(said, other)
    return f"{name} ({figures[0]})" if len(figures) == 1 else name


def _better_supported(
    found: Contradiction,
    names: Sequence[str],
    sources: Mapping[str, Source],
    qualities: Mapping[str, SourceQuality],
    words: Wording,
) -> str:
    """Return which side of a contradiction has more independent or more credible sources, or else newer ones.

    What is newer is no better if both speak of the same date, or if the critic named what speaks for one of them.
    """
    own, other = found.sides(sources)
    if not own or not other:
        return words("not known: which source says what was not told apart")
    a, b = (_weighed(ids, sources, qualities) for ids in (own, other))
    if a.parties != b.parties:
        more, fewer = (a, b) if a.parties > b.parties else (b, a)
        if more.credibility >= fewer.credibility - CLOSE:
            return words(
                "{side}: {sources} against {number}",
                side=names[more is b],
                sources=words.counted(more.parties, "independent source"),
                number=fewer.parties,
            )
    if abs(a.credibility - b.credibility) > CLOSE:
        better = a if a.credibility > b.credibility else b
        return words("{side}: its source is more credible ({kind})", side=names[better is b], kind=words(better.kind))
    same_day = a.newest.startswith(b.newest) or b.newest.startswith(a.newest)  # a month has all of its days
    if not (same_day or found.resolution or _of_one_time(found)):
        newer = names[b.newest > a.newest]
        return words("{side}: it is newer ({date})", side=newer, date=max(a.newest, b.newest))
    return words("neither: as many sources, as credible")


def _of_one_time(found: Contradiction) -> bool:
    """Whether both statements name the same date, for which the newer one need not be the better."""
    one, other = (facts_of(said).dates for said in (found.claim_a, found.claim_b))
    return any(a.date.agrees(b.date) for a in one for b in other)


def _settled(found: Contradiction, names: Sequence[str], words: Wording) -> str:
    """Return which side holds and why, or why both may, as the critic found it."""
    if found.holds == "both":
        both = words("both may hold")
        return words("{side}: {why}", side=both, why=found.resolution) if found.resolution else both
    why = found.resolution or words("the other was corrected or withdrawn")
    return words("{side}: {why}", side=names[found.holds == "claim_b"], why=why)


class _Weighed(NamedTuple):
    """The evidence for a side: its independent sources, its most credible source, its newest date."""

    parties: int
    credibility: float
    kind: str
    newest: str


def _weighed(ids: Sequence[str], sources: Mapping[str, Source], qualities: Mapping[str, SourceQuality]) -> _Weighed:
    rated = [qualities[i] for i in ids if i in qualities]
    best = max(rated, key=lambda quality: quality.credibility, default=None)
    dates = [qualities[i].published if i in qualities else sources[i].published for i in ids]
    return _Weighed(
        parties=len({site(sources[i]) for i in ids}),
        credibility=best.credibility if best else 0.0,
        kind=best.type if best else "unknown",
        newest=max(dates, default=""),
    )


def _answer(report: Report, found: AnswerBox, words: Wording, *, making: bool) -> str:
    made = making_parts(report.made, words, timed=False) if making else []
    notice = [notice_of(report)] if report.extractive else []
    written = [answer_markdown(found, words), how_sure(found.sure, found.why, words)]
    return "\n\n".join([*written, *([escaped(BETWEEN.join(made))] if made else []), *notice])


def answer_markdown(found: AnswerBox, words: Wording) -> str:
    """Return the answer, with what is to be known before it is read, as Markdown that cites by source id."""
    before = [escaped(said)] if (said := said_before(found, words)) else []
    return "\n\n".join([*before, _safe(found.section, words)])


def how_sure(sure: str, why: Sequence[str], words: Wording) -> str:
    """Return the line that says how sure an answer is."""
    return f"{words(HOW_SURE)} {words('{sure}. {why}', sure=words(sure), why=escaped(in_short(why, words)))}"


def notice_of(report: Report) -> str:
    """Return what is to be known of a report that no model wrote."""
    computed = any(claim.sentence.startswith(MARK) for claim in report.claims)
    return wording(report.language)(COMPUTED_NOTICE if computed else EXTRACTIVE_NOTICE)


def said_before(found: AnswerBox, words: Wording) -> str:
    """Return the note before quotations that may not answer the question: what they lack, if that is known."""
    if found.answered is Answered.no and found.section.quoted:
        return words(CLOSEST)
    if found.answered is Answered.maybe and found.section.quoted:
        return words.space.join(filter(None, [in_short(found.doubts, words), words(POSSIBLE)]))
    return ""


def in_short(clauses: Sequence[str], words: Wording) -> str:
    """Return the first clauses, which are the most important ones, as at most two sentences."""
    return words.sentences(clauses[:MOST_REASONS])


def _safe(section: ReportSection, words: Wording) -> str:
    return (quoted_markdown if section.quoted else with_names)(with_marks_in(words, section.markdown))


def _present(chapters_by_name: Mapping[str, str]) -> Iterator[ReportSection]:
    return (ReportSection(heading=name, markdown=text) for name, text in chapters_by_name.items() if text)


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {prose(line)}" for line in lines)


def _disagreement(report: Report, words: Wording) -> str:
    if not report.contradictions:
        return ""
    sources = {source.source_id: source for source in report.sources}
    qualities = {quality.source_id: quality for quality in report.qualities}
    rows = [
        [
            *(_side(*side) for side in sides_of(found, sources, qualities)),
            _cell(better_side(found, sources, qualities, words)),
        ]
        for found in open_first(report.contradictions)
    ]
    columns = [words("One side"), words("The other"), words("Better supported")]
    return "\n".join(f"| {' | '.join(row)} |" for row in [columns, ["---"] * len(columns), *rows])


def _side(said: str, dates: str, ids: Sequence[str]) -> str:
    parts = [_cell(said), f"({_cell(dates)})" if dates else "", "".join(f"[{i}]" for i in ids)]
    return " ".join(filter(None, parts))


def _figure(figure: ClaimTable, report: Report) -> str:
    lines = [f"| {' | '.join(map(_cell, figure.columns))} |", f"|{'---|' * len(figure.columns)}"]
    lines += [f"| {' | '.join(_cited(cell, report) for cell in row)} |" for row in figure.rows]
    return "\n".join(lines)


def _cited(cell: ClaimCell, report: Report) -> str:
    if not cell.claim:
        return _cell(cell.text)
    # A sentence of a model is Markdown, a quotation is plain text.
    text = prose(cell.text) if report.sections[cell.claim.section].quoted else with_names(clean_line(cell.text))
    return _in_cell(text) + "".join(f" [{source_id}]" for source_id in cell.claim.source_ids)


def _unread(files: Sequence[UnreadFile], words: Wording) -> list[str]:
    head = words("Files that were not read, or only in part:")
    return [head, _list(unread_lines(files, words))] if files else []


def method_lines(report: Report) -> list[str]:
    """Return in plain text what the evidence covers, beside the steps, and why the research ended."""
    found, words = report.covered or Coverage(), wording(report.language)
    parts = {
        words("the view of {names}"): found.perspectives,
        words("the time {names}"): [found.period] if found.period else [],
        words("the places {names}"): found.regions,
    }
    told = "; ".join(part.format(names=words.joined(values)) for part, values in parts.items() if values)
    stop = (
        words("Research ended because {reason}.", reason=words(report.stop)) if report.coverage and report.stop else ""
    )
    links = report.links.said(words) if report.links else ""
    return list(filter(None, [words("The evidence covers {what}.", what=told) if told else "", links, stop]))


def _remarks(remarks: Sequence[Remark], words: Wording) -> list[str]:
    said = [words("{head}: {text}", head=remark.said, text=remark.text) for remark in remarks]
    return [words("Steered while the research went on:"), _list(said)] if said else []


def _coverage_table(rows: Sequence[StepCoverage], words: Wording) -> list[str]:
    if not rows:
        return []
    failing = any(row.failures for row in rows)
    names = ["Step", "Status", "Evidence", "Calls", "Useful notes", "Sources", *["Failed"] * failing]
    lines = [f"| {' | '.join(map(words, names))} |", "|---|---|---|--:|--:|--:|" + "---|" * failing]
    for number, row in enumerate(rows, 1):  # an id such as R2_1 means nothing to a reader
        failed = "; ".join(dict.fromkeys(failure.line for failure in row.failures))
        counts = [str(row.calls), str(row.useful_notes), str(row.sources)]
        step = f"{number}. {_cell(row.title)}"
        cells = [
            step,
            _cell(state_of(row, words)),
            words(row.confidence) if row.confidence else "-",
            *counts,
            *[_cell(failed) or "-"] * failing,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return ["\n".join(lines)]


def state_of(row: StepCoverage, words: Wording) -> str:
    """Return what became of a step; what it lacks is told under what was not found."""
    said = words(row.status.words)
    return words("{status}, with gaps", status=said) if row.missing else said


def prose(text: str) -> str:
    """Return a text on one line as Markdown, without ids: plans and critics may name ones that the report lacks."""
    return escaped(clean_line(without_citations(text)))


def _cell(text: str) -> str:
    """Return a text for a cell of a table, which a bar would end."""
    return _in_cell(prose(text))


def _in_cell(markdown: str) -> str:
    return markdown.replace("\\|", "|").replace("|", "&#124;")


LISTED = 20
NAMED = 3


def unread_lines(files: Sequence[UnreadFile], words: Wording = ENGLISH) -> list[str]:
    """Return a line of plain text for each reason, with the first 20 files that were not read for it."""
    return [_for_reason(reason, paths, LISTED, words) for reason, paths in _by_reason(files).items()]


def unread_warnings(files: Sequence[UnreadFile], words: Wording) -> list[str]:
    """Return a sentence of plain text that says why files were not read, or nothing if all were.

    It names the first files for each of the first reasons.
    """
    if not files:
        return []
    reasons = [*_by_reason(files).items()]
    named = [_for_reason(reason, paths, NAMED, words) for reason, paths in reasons[:NAMED]]
    if left := sum(len(paths) for _, paths in reasons[NAMED:]):
        named.append(words("and {files} for other reasons", files=words.counted(left, "more file")))
    said = "{files} of yours was not read, or only in part: {which}."
    if len(files) > 1:
        said = "{files} of yours were not read, or only in part: {which}."
    return [words(said, files=words.counted(len(files), "file"), which="; ".join(named))]


def _by_reason(files: Sequence[UnreadFile]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for file in files:
        paths.setdefault(file.reason, []).append(file.path)
    return paths


def _for_reason(reason: str, paths: Sequence[str], number: int, words: Wording) -> str:
    """Return a reason behind the first files that were not read for it."""
    named = [address_in_words(path, words) for path in paths]
    return words("{head}: {text}", head=words.listed(_first(named, number, words)), text=words.stored(reason))


def _first(said: Sequence[str], number: int, words: Wording) -> list[str]:
    more = [words("and {more}", more=words.counted(len(said) - number, "more file"))] if len(said) > number else []
    return [*said[:number], *more]
