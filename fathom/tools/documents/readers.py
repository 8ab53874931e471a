"""Reading a file: whatever its format, it becomes a title and sections of Markdown in one normal form.

If bytes and extension disagree, the bytes decide: a PDF named `.txt` is read as a PDF, and a text with an unknown
extension, or without any, as a text. docs/documents.md describes the form; each format has its own module, and this one
words the failures of all.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath

from fathom.text.plain import clean_text
from fathom.text.wording import in_every_language
from fathom.tools.documents import configuration
from fathom.tools.documents.book import read_epub
from fathom.tools.documents.docx import read_docx
from fathom.tools.documents.header import (
    document_date,
    published,
    shown_fields,
    split_header,
    stated_fields,
    title_of,
    written,
)
from fathom.tools.documents.html import read_page
from fathom.tools.documents.mail import DAMAGED, ReadText, read_mail, read_mailbox
from fathom.tools.documents.markdown import is_markdown, read_markdown
from fathom.tools.documents.normal import DocumentSection, ReadDocument, underlined_sections
from fathom.tools.documents.notebook import read_notebook
from fathom.tools.documents.opendocument import read_odp, read_odt
from fathom.tools.documents.pdf import read_pdf
from fathom.tools.documents.rest_markup import is_rest
from fathom.tools.documents.slides import read_pptx
from fathom.tools.documents.spreadsheet import read_ods, read_xlsx
from fathom.tools.documents.transcript import read_transcript
from fathom.tools.documents.zipped import MAX_UNPACKED, kind_of_zip, unpacks

_KINDS = {
    **dict.fromkeys((".txt", ".text", ""), "guessed"),
    **dict.fromkeys((".md", ".markdown"), "md"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys(configuration.ENDINGS, "data"),
    ".rst": "rst",
    ".log": "text",
    ".pdf": "pdf",
    ".docx": "docx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".ods": "ods",
    ".odt": "odt",
    ".odp": "odp",
    ".pptx": "pptx",
    ".epub": "epub",
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff"), "picture"),
    ".eml": "eml",
    ".mbox": "mbox",
    ".ipynb": "ipynb",
    ".vtt": "vtt",
    ".srt": "srt",
}
"""The kind of a file by its ending, unless its bytes show another; with any other ending it is plain text."""
ENDINGS = frozenset(filter(None, _KINDS))
_ZIPPED: Mapping[str, Callable[[bytes], ReadDocument]] = {
    "docx": read_docx,
    "xlsx": read_xlsx,
    "ods": read_ods,
    "odt": read_odt,
    "odp": read_odp,
    "pptx": read_pptx,
    "epub": read_epub,
}
_MAIL: Mapping[str, Callable[[bytes, ReadText], ReadDocument]] = {"eml": read_mail, "mbox": read_mailbox}
_PARSED: Mapping[str, Callable[[str], ReadDocument]] = {
    "ipynb": read_notebook,
    "vtt": read_transcript,
    "srt": read_transcript,
}
_TEXTUAL = frozenset({"text", "guessed", "md", "rst", "data", *_MAIL, *_PARSED})
_ATTACHED = _TEXTUAL.difference(_MAIL)
"""The kinds of attachments that are read with a mailbox. A single mail has others, too: less is lost if one breaks."""
_ATTACHED_FILES = _ATTACHED.union(_ZIPPED, ("pdf", "html"))
_ATTACHED_BYTES = 5_000_000  # of an attachment that is no text
_PARSED_ENDINGS = (".rst", ".yaml", ".yml")
HEAD = 4_096  # first bytes of a file, which show its kind
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_MAILBOX_START = re.compile(rb"From \S[^\n]*\d\d:\d\d[^\n]*\n[A-Za-z-]+:")  # mail programs name it as they like
_STARTS = {
    b"PK\x03\x04": "zip",
    b"{\\rtf": "rtf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "ole",  # Office's wrapper of encrypted files, and its formats before 2007
    **dict.fromkeys((b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*"), "picture"),
    **dict.fromkeys((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"(\xb5/\xfd"), "archive"),
}
_WIDE = (b"\xff\xfe", b"\xfe\xff")  # marks of UTF-16, whose texts have zeros
_NEVER_TEXT = bytes({*range(32)} - {*b"\b\t\n\v\f\r\x1b"})
_ARCHIVE = "it is an archive: unpack it, and give the files in it"
_OLD = "it is password-protected, or in a format of Office before 2007: save it without a password in a newer one"
_OUTLOOK = "it is a message of Outlook: save it as eml"
_METHOD = ("How this was researched", "Step", "Status", "Evidence", "Calls")
"""A heading of each report that Fathom writes, and the first columns of the table below it."""
_STORED_REPORT = re.compile(
    rb'\{\s*"title": "[^\n]*",\s*"query": "[^\n]*",\s*(?:"language": "[a-z]*",\s*)?"extractive": (?:true|false),'
)
# What parsers raise for a damaged file; lxml's error is a SyntaxError.
_PARSER_ERRORS = (*DAMAGED, EOFError, OSError, SyntaxError, struct.error, zlib.error)
_XML_NO_MEMORY = 2  # `code` of lxml's error; XML_ERR_NO_MEMORY in libxml2


class UnreadableFile(Exception):
    """A file without readable text; the message says why."""


class PicturesOnly(UnreadableFile):
    """A picture, or a PDF of scanned pages: its text must be recognised."""


def read_document(name: str, data: bytes) -> ReadDocument:
    """Read a file's bytes; the ending of its name distinguishes formats of text.

    Raises:
        PicturesOnly: a picture, or scanned pages.
        Unreadable: empty, without text, damaged, password-protected, or of a kind that is not read.
    """
    if not data.strip():
        raise UnreadableFile("it is empty")
    read, metadata = _read(PurePath(name).suffix.lower(), data)
    if not any(c.isalnum() for section in read.sections for c in section.text + section.heading):
        raise UnreadableFile("it holds no text")
    if _STORED_REPORT.match(data) or _is_report(read.sections):
        raise UnreadableFile("it is a report that Fathom wrote: give the sources that it quotes")
    date = read.date or document_date(name, read.title, read.sections) or metadata
    fields = {**read.fields, **{n: value for n, value in stated_fields(read.sections).items() if n not in read.fields}}
    parts = sum(section.level == 1 for section in read.sections) if read.of_parts else 1
    title = title_of(read.title, fields, read.sections if parts == 1 else [], name)
    return ReadDocument(title, read.sections, date, shown_fields(fields, title), read.unread)


def _is_report(sections: Sequence[DocumentSection]) -> bool:
    """Return whether a document is a report of Fathom's, in any form and language: it repeats its question."""
    for heading, *columns in zip(*map(in_every_language, _METHOD), strict=True):
        table = re.compile(r"\W+".join(map(re.escape, columns)))
        if any(section.heading == heading and table.search(section.text) for section in sections):
            return True
    return False


def refusal(name: str, head: bytes) -> str:
    """Return why a file cannot be read, judging by its name and first bytes; empty if it may be readable."""
    ending = PurePath(name).suffix.lower()
    if not head.strip():
        return "it is empty"
    kind = _kind(ending, head)
    if kind == "archive" or (kind == "zip" and _KINDS.get(ending) not in _ZIPPED):
        return _ARCHIVE
    if kind == "ole":
        return _OUTLOOK if ending == ".msg" else _OLD
    if kind == "rtf":
        return "it is rich text (RTF): save it as docx or odt"
    if kind == "damaged":
        return f"it is damaged, or no {ending[1:]} file"
    return "it is not text" if kind in _TEXTUAL and not _is_text(head) else ""


def refused(path: Path, name: str = "") -> str:
    """Return why a file is not worth opening as a whole, as `refusal` says it; empty if only reading it shows that."""
    head = _head(path, HEAD)
    return refusal(name or path.name, head) if head else ""


def is_plain(path: Path) -> bool:
    """Return whether a file is plain text, or cannot be opened."""
    head = _head(path, HEAD)
    return not head or _kind(path.suffix.lower(), head) in _TEXTUAL


def is_quick(path: Path) -> bool:
    """Return whether a file is plain text that no parser of a grammar reads."""
    ending = path.suffix.lower()
    head = _head(path, HEAD)
    kind = _kind(ending, head)
    if ending in _PARSED_ENDINGS or kind in (*_MAIL, *_PARSED) or not is_plain(path):
        return False
    return kind != "guessed" or not is_rest(_head(path, 200_000).decode("utf-8", "replace"))


def _head(path: Path, size: int) -> bytes:
    """Return the first bytes of a file; none if it cannot be opened."""
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def _kind(ending: str, head: bytes) -> str:
    """Return the kind of a file by its first bytes and, where these leave it open, by its ending."""
    if head.lstrip()[:5] == b"%PDF-":
        return "pdf"
    if start := next((start for start in _STARTS if head.startswith(start)), None):
        return _STARTS[start]
    kind = _KINDS.get(ending, "text")
    if kind == "html" or _HTML_START.match(head):
        return "html"
    if kind in ("text", "guessed") and _MAILBOX_START.match(head):
        return "mbox"
    return "damaged" if kind in ("pdf", "picture", *_ZIPPED) else kind


def _is_text(head: bytes) -> bool:
    """Return whether bytes are text: at most one of a hundred is a control character that no text has."""
    return head.startswith(_WIDE) or (
        b"\0" not in head and 100 * (len(head) - len(head.translate(None, _NEVER_TEXT))) <= len(head)
    )


def _read(ending: str, data: bytes) -> tuple[ReadDocument, str]:
    """Return what a file holds, with the date that its author states, and the date that a program wrote."""
    kind = _kind(ending, data[:HEAD])
    if kind in ("pdf", "html"):
        return _read_pdf(data) if kind == "pdf" else _read_html(data)
    if kind == "picture":
        raise PicturesOnly("it is a picture")
    if kind == "zip":
        return _read_zipped(_KINDS.get(ending, "zip"), data)
    if reason := refusal(f"a{ending}", data[:HEAD]):
        raise UnreadableFile(reason)
    if kind in _MAIL:
        kinds = _ATTACHED_FILES if kind == "eml" else _ATTACHED
        return _parsed(kind, lambda: _MAIL[kind](data, partial(_attached, kinds))), ""
    text = clean_text(_decode(data))
    if kind in _PARSED:
        return _parsed(kind, lambda: _PARSED[kind](text)), ""
    if kind == "data":
        return ReadDocument("", [DocumentSection(configuration.read_configuration(ending, text))]), ""
    header, text = split_header(text)
    if kind == "md" or (kind == "guessed" and is_markdown(text)):
        title, sections, date, matter = read_markdown(text)
    elif kind in ("text", "guessed") and is_log(text):
        title, sections, date, matter = "", read_log(text), "", dict[str, str]()
    else:
        title, date, matter = "", "", dict[str, str]()
        if kind == "rst" or (kind == "guessed" and is_rest(text)):
            from fathom.tools.documents.restructured import rest_sections

            sections = rest_sections(text)
        else:
            sections = underlined_sections(text)
    above = [DocumentSection(written(header))] if header else []
    return ReadDocument(title, [*above, *sections], date, {**matter, **header}), ""


def _decode(data: bytes) -> str:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise UnreadableFile("it is not text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _read_html(data: bytes) -> tuple[ReadDocument, str]:
    try:
        return ReadDocument(*read_page(data)), published(data)[:10]
    except SyntaxError as error:
        raise UnreadableFile("it holds no text") from error


def _read_pdf(data: bytes) -> tuple[ReadDocument, str]:
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    try:
        title, sections, date = read_pdf(data)
    except FileNotDecryptedError as error:
        raise UnreadableFile("it is password-protected") from error
    except DependencyError as error:
        raise UnreadableFile("it is encrypted in an unsupported way") from error
    except (PyPdfError, *_PARSER_ERRORS) as error:
        raise UnreadableFile(f"it is a damaged pdf ({type(error).__name__})") from error
    if not sections:
        raise PicturesOnly("it holds scanned pages and no text")
    return ReadDocument(title, sections), date


def _parsed(kind: str, parse: Callable[[], ReadDocument]) -> ReadDocument:
    try:
        return parse()
    except _PARSER_ERRORS as error:
        raise UnreadableFile(f"it is a damaged {kind}, or no {kind} file ({type(error).__name__})") from error


def _attached(kinds: Collection[str], name: str, data: bytes) -> list[DocumentSection] | None:
    """Return the sections of a mail's attachment; None if it is of another kind, too large, or cannot be read."""
    ending = PurePath(name).suffix.lower()
    kind = _kind(ending, data[:HEAD])
    kind = _KINDS.get(ending, kind) if kind == "zip" else kind
    if kind not in kinds or (kind not in _ATTACHED and len(data) > _ATTACHED_BYTES):
        return None
    try:
        sections = _read(ending, data)[0].sections
    except UnreadableFile:
        return None
    return None if _is_report(sections) else sections


def _read_zipped(kind: str, data: bytes) -> tuple[ReadDocument, str]:
    """Read a zip; `kind` is the kind that it is expected to be."""
    from docx.opc.exceptions import OpcError

    try:
        if not unpacks(data):
            raise UnreadableFile(f"it unpacks to more than {MAX_UNPACKED // 1_000_000} MB")
        kind = kind_of_zip(data)
        if kind not in _ZIPPED:
            raise UnreadableFile(_ARCHIVE)
        read = _ZIPPED[kind](data)
    except (OpcError, zipfile.BadZipFile, *_PARSER_ERRORS) as error:
        if getattr(error, "code", None) == _XML_NO_MEMORY:
            raise MemoryError from error
        raise UnreadableFile(f"it is a damaged {kind}, or no {kind} file ({type(error).__name__})") from error
    return replace(read, date=""), read.date


SAMPLE_CHARS = 20_000  # at the start of a text, which show whether it is a log
_ENTRY = re.compile(
    r"[\[(<]?(?:\d{4}[-/.]\d\d[-/.]\d\d[T ]?|\d\d[-/.]\d\d[-/.]\d{2,4} |\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d"
    r"|\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[)"
)


def is_log(text: str) -> bool:
    """Return whether most lines of a text, and at least three, begin with a time or as a web server's log does."""
    lines = [line for line in text[:SAMPLE_CHARS].split("\n") if line.strip() and not line[0].isspace()]
    entries = sum(bool(_ENTRY.match(line)) for line in lines)
    return entries > 2 and 2 * entries > len(lines)


def read_log(text: str) -> list[DocumentSection]:
    """Return the entries of a log."""
    return [DocumentSection("\n".join(_items(text)))]


def _items(text: str) -> Iterator[str]:
    for line in filter(str.strip, text.split("\n")):
        yield f"- {line}" if _ENTRY.match(line) else f"  {line}"
