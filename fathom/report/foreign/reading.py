"""Parsing a Markdown report of any system into its text, with Fathom's source ids, and the sources that it cites.

The parser reads links in the text (`([Title](https://...))`, as gpt-researcher writes them), numbers with a list of
sources (`[1]` or `【1】` and `### Sources`, as open_deep_research and Fathom do), footnotes (`[^1]`), authors with
years, marks of chats, raised numbers and bare addresses.

The file becomes one of Fathom's reports, so that it is checked and shown like them. In the export of a chat, the
person's message is the question, and the model's message is the report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import NamedTuple

from fathom.models import Report, ReportSection, Source
from fathom.report.foreign.lists import headings, level_of, take_lists, title_of
from fathom.report.foreign.marks import LISTED, PLACE, Marks
from fathom.report.own_words import without_own_words
from fathom.text.plain import clean_line, clean_text
from fathom.text.sentences import fences
from fathom.text.urls import source_ids

_CODE = re.compile(r"`[^`\n]+`")
_ANCHOR = re.compile(r"<a\b[^<>]*\bhref\s*=\s*[\"']?(https?://[^\"'\s<>]+)[\"']?[^<>]*>(.{0,300}?)</a>", re.I | re.S)
_TAGS = re.compile(
    r"</?(?:span|small|u|b|i|em|strong|center|div|p|font|a|cite|img|picture|figure|figcaption|details|summary|hr)\b[^<>]*>",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"<(span|div|p)\b[^<>]*\bdisplay:\s*none\b[^<>]*>[^<>]*</\1>", re.IGNORECASE)
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+(?:\[![\w-]+\][+-]?[^\n]*)?", re.MULTILINE)
_CONTENTS = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[[^\[\]\n]{1,200}\]\(#[^()\s]*\)[ \t]*\n?", re.MULTILINE)
_UNDERLINED = re.compile(r"(?<=\n\n)([^\n|#>*-][^\n|]{0,79}[^\n|.])\n(?:(={3,})|-{3,})[ \t]*(?=\n|\Z)")
_RAISED_LINKS = re.compile(
    r"<sup>\s*((?:\[(?:[^\[\]<>\n]|\[[^\[\]<>\n]*\]){1,300}+\](?:\([^()\s<>]{1,300}\))?[,\s]*+)++)</sup>", re.IGNORECASE
)
_ESCAPED = re.compile(  # as Google Docs writes: `9\.5`, `\[1\]`; not what would begin a list
    r"(^[ \t]*\d{1,3}\\[.)])|\\([-.+=~()&%$!,;:'\"/])|(?<!\[)\\\[(\^?\d[^\]\n\\]{0,40})\\\]", re.MULTILINE
)
_CODE_OPEN, _CODE_CLOSE = "\ufdd2x", "\ufdd3"  # around the letters that replace a piece of code
_MASK = re.compile(f"{_CODE_OPEN}([a-z]+){_CODE_CLOSE}")
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")


@dataclass
class Cited:
    """A report taken apart. `dangling`: markers that lead to no source.

    `body` is the whole text in one, and `addresses` holds the sources' addresses by id, as the report spells them.
    """

    sections: list[ReportSection]
    sources: list[Source]
    dangling: list[str] = field(default_factory=list)
    body: str = ""
    addresses: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)  # ids of the sources by their number in the report's list
    uncited: bool = False  # the text cites nothing, so that each section cites all of its list
    spare: list[Source] = field(default_factory=list)  # sources that a list names and the text does not cite


def read_markdown(text: str, *, generous: bool = False) -> Cited:
    """Return a report's sections, citing sources by id, and the sources that they cite, in order of first use.

    Addresses in code are no citations, and pictures are left out. `generous`: list entries without an address are
    sources, too, and a text that cites nothing is read as citing the list behind it.
    """
    text, code = _masked(_NONCHARACTERS.sub("", text))
    parts, notes = take_lists(_plain(text))
    marks = Marks(parts, notes, generous=generous)
    body = "".join(marks.texts())
    cited = list(dict.fromkeys([*marks.used][int(found[1])] for found in PLACE.finditer(body)))
    if generous:
        marks.use_all()
    keys = [*marks.used]
    ids = source_ids(keys)
    body = PLACE.sub(lambda found: f"[{ids[keys[int(found[1])]]}]", body)

    def unmasked(said: str) -> str:
        return _MASK.sub(lambda found: code[found[1]], said)

    sources = {
        key: Source(source_id=ids[key], url=key, title=unmasked(marks.titles.get(key, "")), kind="web")
        for key in (*cited, *keys)
    }
    return Cited(
        _sections(unmasked(body)),
        [sources[key] for key in cited],
        marks.dangling,
        unmasked(body),
        {ids[key]: unmasked(spelled) for key, spelled in marks.used.items()},
        {number: ids[key] for number, key in marks.numbers.items()},
        marks.uncited,
        [source for key, source in sources.items() if key not in cited],
    )


def _masked(text: str) -> tuple[str, dict[str, str]]:
    """Return a text with letters in place of its code, and the code by these; a fence around all goes first."""
    whole = next(fences(text.strip()), None)
    if whole and whole.start == 0 and whole.info.casefold() in ("markdown", "md") and whole.end == len(text.strip()):
        text = whole.code
    code: dict[str, str] = {}

    def masked(said: str) -> str:
        number, letters = len(code), ""
        while number or not letters:
            number, digit = divmod(number, 26)
            letters = ascii_lowercase[digit] + letters
        code[letters] = said
        return f"{_CODE_OPEN}{letters}{_CODE_CLOSE}"

    pieces: list[str] = []
    position = 0
    for fence in fences(text):
        pieces += [text[position : fence.start], masked(text[fence.start : fence.end])]
        position = fence.end
    return _CODE.sub(lambda found: masked(found[0]), "".join([*pieces, text[position:]])), code


def _plain(text: str) -> str:
    """Return a text whose links and headings are normalised, without comments and tags without content."""
    text = _ANCHOR.sub(lambda found: f"[{clean_line(found[2])}]({found[1]})", text)
    for opening, closing in (("<!--", "-->"), ("<style", "</style>"), ("<script", "</script>")):
        text = without_between(text, opening, closing)
    text = _CONTENTS.sub("", _QUOTED.sub("", _TAGS.sub("", _HIDDEN.sub("", text))))
    text = _RAISED_LINKS.sub(r"\1", re.sub(r"<br\s*/?>", " ", text, flags=re.IGNORECASE))
    text = _ESCAPED.sub(lambda found: found[1] or found[2] or f"[{found[3]}]", text)
    return _UNDERLINED.sub(lambda found: f"{'#' if found[2] else '##'} {found[1]}", text)


def without_between(text: str, opening: str, closing: str) -> str:
    """Return a text without two marks and the text between them; unclosed marks stay."""
    kept: list[str] = []
    position = 0
    while (start := text.find(opening, position)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[position:start])
        position = end + len(closing)
    return "".join([*kept, text[position:]])


def _sections(body: str) -> list[ReportSection]:
    sections: list[ReportSection] = []
    position, heading = 0, ""
    for found in [*_outside_code(body, headings(body)), None]:
        end = found.start() if found else len(body)
        if part := body[position:end].strip():
            sections.append(ReportSection(heading=heading, markdown=part))
        if found:
            position, heading = found.end(), title_of(found)
    return sections


QUESTION_CHARS = 2_000
_MATTER = re.compile(r"\A---[ \t]*\n((?:[^\n]*\n){0,60}?)---[ \t]*(?:\n|\Z)")
_MATTER_TITLE = re.compile(r"^title[ \t]*:[ \t]*[\"']?([^\n]+?)[\"']?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_PERSON = r"you|user|human|me|prompt|question|query|frage|du|nutzer"
_MODEL = (
    r"chatgpt|gpt[\w. -]{0,12}|assistant|claude[\w. -]{0,16}|gemini[\w. -]{0,16}|copilot|perplexity|grok[\w. -]{0,8}|"
    r"deepseek|mistral|ai|bot|model|llm|response|answer|antwort"
)
_SAID = r"(?: said| asked| wrote| says| replied)?"
_WHEN = r"(?:[ \t]*\([^()\n]{1,60}\))?"
_SPEAKER = re.compile(  # a heading, a line in bold or one with a colon
    rf"^[ \t]*(?:\#{{1,6}}[ \t]+(?:[^\w\s\#]+[ \t]*)?(?:{_PERSON}|(?P<titled>{_MODEL})){_SAID}:?{_WHEN}:?[ \t]*"
    rf"|\*\*(?:[^\w\s*]+[ \t]*)?(?:{_PERSON}|(?P<bold>{_MODEL})){_SAID}"
    rf"(?:{_WHEN}:\*\*|\*\*{_WHEN}:(?P<after>[ \t].*)?|\*\*{_WHEN}[ \t]*)(?P<behind>(?<=:\*\*)[ \t].*)?"
    rf"|(?:{_PERSON}|(?P<named>{_MODEL})){_SAID}{_WHEN}:(?P<rest>[ \t].*)?)$",
    re.MULTILINE | re.IGNORECASE,
)


class Foreign(NamedTuple):
    """A report of another system, not checked yet, and the parsed text with its citations."""

    report: Report
    cited: Cited
    by_fathom: bool  # Fathom wrote it: what it said of its own work is left out


def report_of(text: str, name: str) -> Foreign:
    """Return the report in the text of a file; `name` is the file's name without its extension."""
    text = clean_text(text)
    matter = _MATTER.match(text)
    stated = _MATTER_TITLE.search(matter[1]) if matter else None
    text = text[matter.end() :] if matter else text
    for tag in ("think", "thinking"):
        text = without_between(text, f"<{tag}>", f"</{tag}>")
    question, text = _turns(text)
    cited = read_markdown(text, generous=True)
    # If the text cites less than half of its list, its sections without citations are checked against the rest.
    sources = [*cited.sources, *(cited.spare if len(cited.spare) > len(cited.sources) else [])]
    title, written = _report_sections(cited.body)
    sections = without_own_words(written)
    title = clean_line(stated[1] if stated else "") or title or clean_line(question)[:120] or name
    report = Report(
        title=title,
        query=clean_line(question)[:QUESTION_CHARS] or title,
        extractive=False,
        sections=_with_answer(sections),
        sources=[
            source.model_copy(update={"url": cited.addresses[source.source_id].removeprefix(LISTED)})
            for source in sources
        ],
    )
    return Foreign(report, cited, by_fathom=sections != written)


def _turns(text: str) -> tuple[str, str]:
    """Return the person's first message in a chat, and the model's messages; for any other text, "" and the text."""
    labels = _outside_code(text, list(_SPEAKER.finditer(text)))
    spoken = [bool(one["titled"] or one["bold"] or one["named"]) for one in labels]
    if not labels or spoken[0] or True not in spoken:
        return "", text
    ends = [*(label.start() for label in labels[1:]), len(text)]
    beside = [label["after"] or label["behind"] or label["rest"] or "" for label in labels]
    said = [f"{b}{text[label.end() : end]}".strip() for b, label, end in zip(beside, labels, ends, strict=True)]
    answers = [turn for turn, by_model in zip(said, spoken, strict=True) if by_model]
    return re.sub(r"[>#*`]", "", said[0]).strip(), "\n\n".join([text[: labels[0].start()].strip(), *answers]).strip()


def _report_sections(body: str) -> tuple[str, list[ReportSection]]:
    """Return the title of a report, empty if it has none, and its sections, each with all that is below it."""
    found = _outside_code(body, headings(body))
    title = ""
    tops = [one for one in found if level_of(one) == 1]
    if found and tops == found[:1] and not body[: found[0].start()].strip():
        title = _plain_line(title_of(found[0]))
        body = body[found[0].end() :]
        found = _outside_code(body, headings(body))
    level = min(map(level_of, found), default=0)
    tops = [one for one in found if level_of(one) == level]
    borders = [*(one.start() for one in tops), len(body)]
    parts = [("", body[: borders[0]])]
    parts += [(_plain_line(title_of(one)), body[one.end() : end]) for one, end in zip(tops, borders[1:], strict=True)]
    return title, [
        ReportSection(heading=heading or "…", markdown=markdown.strip())
        for heading, markdown in parts
        if markdown.strip()
    ]


def _with_answer(sections: Sequence[ReportSection]) -> list[ReportSection]:
    """Return the sections; the first one is shown as the answer, without its heading."""
    if not sections:
        return []
    first, *others = sections
    above = "" if first.heading == "…" else f"### {first.heading}\n\n"
    return [ReportSection(heading="", markdown=f"{above}{first.markdown}"), *others]


def _outside_code(text: str, found: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    code = [(fence.start, fence.end) for fence in fences(text)]
    return [one for one in found if not any(start <= one.start() < end for start, end in code)]


def _plain_line(heading: str) -> str:
    return clean_line(re.sub(r"\[S[0-9a-f]{6,64}\]|[*`]", "", heading))
