"""A document's metadata from its text: the fields of its header, its title, and its date.

A header is a block of `Name: value` lines at the top, as in mail (RFC 822), a field list below the title, front matter,
the two columns at the top of an RFC, or sections that hold one line only, such as "Status". A title must distinguish
the document from others, unlike "Abstract" or a mere number or date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import PurePath

from fathom.facts.dates import Date, find_dates, iso
from fathom.retrieval.identifiers import identifiers_of, identifiers_of_file
from fathom.text.blocks import split_blocks
from fathom.text.plain import clean_line, clean_title, shortened
from fathom.tools.documents.configuration import read_values
from fathom.tools.documents.normal import LONGEST_TITLE, DocumentSection, definition

MAX_FIELDS = 12
MAX_LINES = 80  # of a header
NAME_CHARS, VALUE_CHARS = 40, 80
OPENING_CHARS = 3_000  # lines in which a text without headings may have its title on a separate line
SHORT = 60  # characters of a section that is nothing but a field
DIGITS = 6  # maximum characters of a document's number

_NAME = r"[^\W\d_][\w-]*(?: [\w-]+){0,3}"
_LINE = re.compile(rf"({_NAME}):(?:[ \t]+(\S.*))?\Z")
_MARKED = re.compile(rf"(?:[-*+][ \t]+)?(\*\*|__|\*|_)?({_NAME})(?:\1?:|:\1)[ \t]+(\S.*)\Z")
_COLUMNS = re.compile(r"(?<![ \t])[ \t]{3,}\S")
_MATTER_LINE = re.compile(rf"({_NAME})[ \t]*[:=][ \t]*(\S.*)\Z")
_SENTENCE = re.compile(r"(?:\S+\s+){4,}\S*[.!?](?:[\"”')]*\Z|\s+[^\W\d_])")
_ADDRESS = re.compile(r"<?(?:(?:[a-z][a-z+]*:)?//?\S*|\S+@\S+)>?\Z", re.IGNORECASE)
_REST_LINK = re.compile(r"`([^`<]+?)\s*(?:<[^<>]*>)?`__?")
_STOPPED = re.compile(r"(?:\S+\s+){2,}\S*[.!?]\Z")  # three words or more, and a full stop
_MAILBOX = re.compile(r"\s*<[^<>\s]+(?: at [^<>]+|@[^<>]+)>")
_SAYS_NOTHING = re.compile(r"(?:true|false|null|none|unknown|n/?a|-+|~)\Z", re.IGNORECASE)
_TITLES = ("title", "subject", "titel", "betreff")
_NUMBERS = frozenset({"id", "identifier", "number", "no", "key", "nummer", "kennung"})
_CODE = re.compile(r"[^\W\d_]+[-_ ]?\d[\w.-]*\Z")
_NUMBERING = re.compile(r"\A(?:\d+(?:\.\d+)*|[IVXLC]+)[.)]?\s+")
_BETWEEN = re.compile(r"(?<=[^\W_])(?:_+|(?<=[^\W\d_])-(?=[^\W\d_])|(?<=\d)-(?=[^\W\d_]))(?=[^\W_])")
# Names of sections and sheets that any document may have, so that they identify none.
_GENERIC = frozenset({
    "abstract", "about", "about this document", "agenda", "appendix", "attendees", "background", "chapter", "contents",
    "decision", "decisions", "description", "discussion", "document", "executive summary", "foreword", "general",
    "home", "index", "introduction", "main", "minutes", "motivation", "no title", "notes", "overview", "page", "part",
    "participants", "preface", "present", "purpose", "rationale", "readme", "scope", "section", "start", "status",
    "summary", "synopsis", "table of contents", "title", "toc", "topics", "untitled", "untitled document", "welcome",
    "abschnitt", "anwesend", "anwesende", "einführung", "einleitung", "inhalt", "inhaltsverzeichnis", "kapitel",
    "notizen", "protokoll", "seite", "startseite", "tagesordnung", "teil", "teilnehmer", "vorwort", "zusammenfassung",
    "überblick", "übersicht",
    "blad", "feuil", "feuille", "foglio", "folha", "hoja", "planilha", "sheet", "tabelle",
})  # fmt: skip


def split_header(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of the header at the start of a text, and the rest of the text; no fields if it has no header.

    Further lines of a value are indented.
    """
    fields: dict[str, str] = {}
    name, lines = "", text.split("\n")
    end = 0
    for line in lines[:MAX_LINES]:
        if not line.strip():
            break
        end += 1
        if line[0].isspace() and name:
            fields[name] = f"{fields[name]} {line.strip()}".strip()
        elif (found := _LINE.match(line.rstrip())) and found[1] not in fields and len(found[1]) <= NAME_CHARS:
            name = found[1]
            fields[name] = found[2] or ""
        else:
            return {}, text
    if end >= MAX_LINES or not _is_header(fields):
        return {}, text
    return {name: _plain(value) for name, value in fields.items()}, "\n".join(lines[end:]).lstrip("\n")


def written(fields: Mapping[str, str]) -> str:
    """Return fields as they stand in the text of a document."""
    return "\n".join(definition(name, [value]) for name, value in fields.items())


def matter_fields(ending: str, text: str) -> dict[str, str]:
    """Return the fields of front matter in the format of an extension; with errors, only fields on separate lines."""
    values = read_values(ending, text)
    if values is None:
        found = (_MATTER_LINE.match(line.rstrip()) for line in text.split("\n"))
        values = {match[1]: match[2].strip("\"'") for match in found if match}
    return {name: line for name, value in values.items() if re.fullmatch(_NAME, name) and (line := clean_line(value))}


def stated_fields(sections: Sequence[DocumentSection]) -> dict[str, str]:
    """Return the fields that a document has at its top, below its title or before it."""
    fields: dict[str, str] = {}
    top = next((number for number, section in enumerate(sections[:2]) if section.text), None)
    if top is None:
        return {}
    block = _block(sections[top].text)
    if _is_header(block) and (len(sections) > top + 1 or len(block) < len(sections[top].text.split("\n"))):
        fields = block
    for section in sections[top : top + 5]:
        is_name = section.heading and len(section.heading.split()) <= 2 and re.fullmatch(_NAME, section.heading)
        if is_name and section.level > 1 and _is_value(section.text):
            fields.setdefault(section.heading, section.text.strip(" .\n"))
    return fields


def title_of(stated: str, fields: Mapping[str, str], sections: Sequence[DocumentSection], name: str) -> str:
    """Return the title of a document with its number; empty if only the file's name identifies it.

    `stated` is the title in its format: of a page, a PDF or front matter.
    """
    headed = [section.heading for section in sections if section.level == 1][:1]
    opening = _opening(sections[0].text) if sections and not sections[0].heading else ""
    own = [value for field, value in fields.items() if field.lower() in _TITLES]
    candidates = (stated, *own, *headed, opening, *(section.heading for section in sections[:1]))
    title = shortened(next((line for text in candidates if tells(line := clean_line(text))), ""), LONGEST_TITLE)
    number = own_number(fields, name)
    named = {one.name for one in identifiers_of(title)}
    if not title or not number or not named.isdisjoint(one.name for one in identifiers_of(number)):
        return title
    return f"{number}: {_NUMBERING.sub('', title)}"


def own_number(fields: Mapping[str, str], name: str) -> str:
    """Return the number or code of a document, such as "PEP 572"; empty if none of its fields is one.

    It is a field whose value is a number and whose name is in capitals or part of the file's name; or a code in a field
    for it: `ID: ADR-0012`, `CVE: CVE-2024-1234`.
    """
    of_file = {one.name for one in identifiers_of_file(name)}
    capitals = ""
    for field, value in fields.items():
        if value.isdecimal() and len(value) <= DIGITS:
            label = field if len(field.split()) == 1 else _initials(field)
            number = f"{label.upper() if len(label) < 6 else label} {int(value)}"
            if of_file.intersection(one.name for one in identifiers_of(number)):
                return number
            if not capitals and label == field and field.isupper() and len(field) > 1:
                capitals = number
        elif _CODE.match(value) and len(value) < NAME_CHARS:
            word = re.match(r"[^\W\d_]+", value)
            if field.lower() in _NUMBERS or (word and field.lower() == word[0].lower()):
                return value
    return capitals


def shown_fields(fields: Mapping[str, str], title: str) -> dict[str, str]:
    """Return the fields that are shown with a document: at most twelve short ones, in their order.

    Fields that repeat the title, addresses and empty phrases are left out, and long values are shortened.
    """
    said = {one.name for one in identifiers_of(title)}
    shown: dict[str, str] = {}
    for name, value in fields.items():
        number = {one.name for text in (f"{name} {value}", value) for one in identifiers_of(text)}
        number.update(one.name for one in identifiers_of(f"{_initials(name)} {value}") if value.isdecimal())
        text = _MAILBOX.sub("", clean_line(value))
        if name.lower() in _TITLES or not text or _ADDRESS.match(text) or _SAYS_NOTHING.match(text):
            continue
        if len(shown) < MAX_FIELDS and not said & number:
            shown[clean_line(name)] = shortened(clean_title(text), VALUE_CHARS)
    return shown


def _initials(name: str) -> str:
    return "".join(word[0] for word in name.split())


def tells(title: str) -> bool:
    """Whether a title distinguishes a document: it is not the name of a section, nor a mere number or date."""
    for found in reversed(find_dates(title)):
        title = f"{title[: found.start]} {title[found.end :]}"
    words = re.sub(r"[\W\d_]+", " ", _NUMBERING.sub("", title)).strip().lower()
    return len(words) > 1 and words not in _GENERIC


def readable(name: str) -> str:
    """Return the name of a file as a title: without its extension, and with spaces between its words."""
    path = PurePath(name)
    return clean_line(_BETWEEN.sub(" ", path.stem)) or name


def _block(text: str) -> dict[str, str]:
    """Return the fields of the first lines of a text."""
    lines = text.split("\n")[:MAX_LINES]
    in_columns = [line for line in _first_block(lines) if _COLUMNS.search(line)]
    if len(in_columns) > 1:
        lines = [_COLUMNS.split(line)[0].strip() for line in in_columns if not line[0].isspace()]
        return {found[1]: found[2] for line in lines if (found := _LINE.match(line)) and found[2]}
    fields: dict[str, str] = {}
    name = ""
    for line in filter(str.strip, lines):
        found = _MARKED.match(line.strip())
        if name and line[0].isspace():
            fields[name] += f" {clean_line(line)}"
        elif not found or found[2] in fields:
            break
        else:
            name = found[2]
            fields[name] = clean_line(found[3]).strip("*_")
    return fields


def _plain(value: str) -> str:
    """Return a value without the links of reST, and its code as in Markdown."""
    return _REST_LINK.sub(r"\1", clean_line(value).replace("``", "`"))


def _first_block(lines: Sequence[str]) -> list[str]:
    end = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    return list(lines[:end])


def _is_header(fields: Mapping[str, str]) -> bool:
    """Whether fields make a header: several, and values rather than sentences, as in a dialogue or a list of terms."""
    values = list(filter(None, fields.values()))
    return len(values) > 1 and sum(bool(_SENTENCE.match(value)) for value in values) * 3 < len(values)


def _is_value(text: str) -> bool:
    """Whether the text of a section is a value: one short line that is neither a sentence nor a list, table or code."""
    line = text.strip()
    return (
        0 < len(line) <= SHORT
        and "\n" not in line
        and not re.search(r"[`|]|\A[-*#>]|\A\d+\.|:\Z", line)
        and not _STOPPED.match(line)
    )


def _opening(text: str) -> str:
    """Return the title on a separate line before all other text; empty if there is none."""
    head = text[:OPENING_CHARS]
    lines = head.split("\n")
    first = _first_block(lines)
    if sum(bool(_COLUMNS.search(line)) for line in first) > 1:
        head = "\n".join(lines[len(first) :])
    for block in split_blocks(head):
        line = head[block.start : block.end]
        if block.kind in ("prose", "item", "code", "table") or (block.kind == "heading" and tells(clean_line(line))):
            return line if block.kind == "heading" and "\n" not in line else ""
    return ""


VERSION_CHARS = 80  # of the sentence that states a version and its date
LINES = 15  # at the start of a document, among which a line may state its date
_HEAD_BYTES = 200_000  # at the start of a page, which hold its dates
_NAMED = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)|(?<!\d)((?:19|20)\d\d)[-_](\d\d)(?![-_.]?\d)")
_STATED = re.compile(
    r"[\W_]*(?:date|(?:date[ _-])?(?:published|created|issued|posted|modified|revised|updated)|signed|"
    r"(?:[^:]{3,150}, )?dated|last[ _-](?:modified|updated|changed|revised|reviewed|edited))"
    r"(?: on)?(?:[\s*_]*:|[\s*_]+(?=\d|\w+\.? \d))[\s*_]*(?P<rest>.{4,60})",
    re.IGNORECASE,
)
# "Amendment 1 to the contract of 12 March 2024", "Your letter of 3 May": the date is that of the other text.
_OF_ANOTHER = re.compile(
    r"\b(?:amend\w+|addend\w+|supplement|corrections?|changes?|repl(?:y|ies)|withdrawal|retraction|termination|extension|"
    r"your|nachtrag|änderung(?:en)?|ergänzung(?:en)?|berichtigung(?:en)?|antwort|widerruf|kündigung|avenant|réponse)\b"
    r".{3,120}?\s(?:of|from|dated|vom|du)\s(?=\S*\d|\w+ \d).*",
    re.IGNORECASE,
)
# "Version 2, adopted by the governors on 11 July 2024", "Stand: 1. Januar 2026"; `|`: a row of a table of versions.
_VERSION = re.compile(
    r"[\s#*_>-]*(?:version|revision|edition|as (?:of|at)|effective|in force|valid|adopted|approved|"
    r"stand|fassung|ausgabe|gültig|in kraft|beschlossen)\b[^|]*\Z",
    re.IGNORECASE,
)
_PLACE = re.compile(r"[\s*_]*(?:[^\W\d_][^\d,:;|]{1,40},\s*)?(?:(?:den|the|le)\s+)?")
_SENTENCES = re.compile(r"(?<=\w{3})[.;] ")  # "1. Januar" is one
_MATTER_KEYS = ("date", "published", "last_modified", "updated")
_ISO = rb"(\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?)"
_PUBLISHED = [
    re.compile(pattern % _ISO, re.IGNORECASE)
    for pattern in (
        rb"<meta\b[^>]{0,200}\barticle:published_time\b[^>]{0,200}\bcontent=[\"']?%b",
        rb"\"datePublished\"\s{0,9}:\s{0,9}\"%b",
        rb"<meta\b[^>]{0,200}\bname=[\"']?(?:date|dc\.date|dcterms\.date|citation_date)\b[^>]{0,200}\bcontent=[\"']?%b",
        rb"<time\b[^>]{0,200}\bdatetime=[\"']?%b",
    )
]


def published(page: bytes) -> str:
    """Return the date or time that the metadata of a page states, in ISO 8601."""
    found = (pattern.search(page[:_HEAD_BYTES]) for pattern in _PUBLISHED)
    return next((match[1].decode() for match in found if match), "")


def matter_date(fields: Mapping[str, str]) -> str:
    """Return the date of a document's front matter, given its fields."""
    stated = {name.lower(): value for name, value in reversed(list(fields.items()))}
    return next((date for key in _MATTER_KEYS if (date := only_date(stated.get(key, "")))), "")


def document_date(name: str, title: str, sections: Sequence[DocumentSection]) -> str:
    """Return the date in a file's name, its first lines or its first heading, of its version, or of the letter."""
    if of_file := _name_date(PurePath(name).stem):
        return of_file
    lines = (line for one in sections for line in (one.heading, *one.text[:4000].split("\n")) if line)
    own = [_OF_ANOTHER.sub("", line) for line in islice(lines, LINES)]
    return _line_date(own) or _heading_date(title, sections) or _version_date(own) or _letter_date(own)


def only_date(text: str) -> str:
    """Return the date in a text if there is just one with a month: "1 January to 31 December 2026" is a period."""
    dates = {found.date for found in find_dates(text) if found.date.month}
    return iso(dates.pop()) if len(dates) == 1 else ""


def _name_date(stem: str) -> str:
    for match in _NAMED.finditer(stem):
        year, month, day = (match[1], match[3], match[4]) if match[1] else (match[5], match[6], "0")
        if date := iso(Date(int(year), int(month), int(day))):
            return date
    return ""


def _line_date(lines: Sequence[str]) -> str:
    stated = filter(None, map(_STATED.match, lines))
    return next((date for match in stated if (date := _first_date(match["rest"]))), "")


def _version_date(lines: Sequence[str]) -> str:
    said = (_SENTENCES.split(line)[0] for line in lines if _VERSION.match(line))
    return next((date for each in said if len(each) <= VERSION_CHARS and (date := only_date(each))), "")


def _letter_date(lines: Iterable[str]) -> str:
    """Return the only date that is a line of its own, perhaps behind a place: "Kiel, den 12. Dezember 2025"."""
    dated = ((line, found[0]) for line in lines if len(found := find_dates(line)) == 1)
    dates = {
        iso(found.date)
        for line, found in dated
        if found.date.day and _PLACE.fullmatch(line[: found.start]) and line[found.end :].strip(" *_") == ""
    }
    return dates.pop() if len(dates) == 1 else ""


def _first_date(text: str) -> str:
    """Return the date at the start of a text, if it has a month."""
    found = find_dates(text)
    return iso(found[0].date) if found and found[0].start < 16 else ""


def _heading_date(title: str, sections: Sequence[DocumentSection]) -> str:
    headings = [title, *[section.heading for section in sections if section.heading][:1]]
    return next((date for heading in headings if (date := only_date(_OF_ANOTHER.sub("", heading)))), "")
