"""Reading a file: whatever its format, it becomes a title and sections of Markdown in one normal form.

If bytes and extension disagree, the bytes decide: a PDF named `.txt` is read as a PDF. docs/documents.md describes the
form; each format has its own module, and this one words the failures of all.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from pathlib import Path, PurePath
from typing import NamedTuple

from fathom.text.plain import clean_text
from fathom.tools.documents import configuration
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
from fathom.tools.documents.markdown import is_markdown, read_markdown
from fathom.tools.documents.normal import DocumentSection, ReadDocument, underlined_sections
from fathom.tools.documents.pdf import read_pdf
from fathom.tools.documents.restructured import is_rest, rest_sections

_PLAIN_ENDINGS = (".txt", ".text")
_MARKDOWN_ENDINGS = (".md", ".markdown")
_HTML_ENDINGS = (".html", ".htm", ".xhtml")
_PARSED_ENDINGS = (".rst", ".yaml", ".yml")
ENDINGS = (
    frozenset({".rst", ".pdf", ".docx", *_PLAIN_ENDINGS, *_MARKDOWN_ENDINGS, *_HTML_ENDINGS}) | configuration.ENDINGS
)
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # Office's wrapper of encrypted files, and its formats before 2007
# What parsers raise for a damaged file; lxml's error is a SyntaxError.
_PARSER_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError, struct.error, zlib.error,
)  # fmt: skip
_XML_NO_MEMORY = 2  # `code` of lxml's error; XML_ERR_NO_MEMORY in libxml2
MAX_UNPACKED = 200_000_000
"""Bytes that a docx may unpack to. Its pictures count; one with 22 MB of text unpacks to 27 MB."""


class _Content(NamedTuple):
    title: str  # that the file names
    sections: list[DocumentSection]
    stated: str = ""  # date that the author states
    metadata: str = ""  # date that a program wrote
    fields: dict[str, str] = {}  # fields of the header that the reader took off the text, or of its front matter


class UnreadableFile(Exception):
    """A file without readable text; the message says why."""


def read_document(name: str, data: bytes) -> ReadDocument:
    """Read a file's bytes; the ending of its name distinguishes plain-text formats.

    Raises:
        Unreadable: empty, without text, damaged, password-protected, or none of the known formats.
    """
    if not data.strip():
        raise UnreadableFile("it is empty")
    named, sections, stated, metadata, fields = _read(PurePath(name).suffix.lower(), data)
    if not any(c.isalnum() for section in sections for c in section.text + section.heading):
        raise UnreadableFile("it holds no text")
    date = stated or document_date(name, named, sections) or metadata
    fields = {**fields, **{name: value for name, value in stated_fields(sections).items() if name not in fields}}
    title = title_of(named, fields, sections, name)
    return ReadDocument(title, sections, date, shown_fields(fields, title))


def refusal(name: str, head: bytes) -> str:
    """Return why a file cannot be read, judging by its name and first bytes; empty if it may be readable."""
    ending = PurePath(name).suffix.lower()
    if not head.strip():
        return "it is empty"
    if head.startswith(_ZIP) and ending != ".docx":
        return "it is an archive: unpack it, and give the files in it"
    if ending not in ENDINGS:
        return "it is not of a kind that is read"
    if head.lstrip()[:5] == b"%PDF-" or head.startswith((_OLE, _ZIP)):
        return ""
    if ending in (".pdf", ".docx") and not _HTML_START.match(head[:2000]):
        return f"it is damaged, or not a {ending[1:]} file"
    return "it is not text" if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")) else ""


def is_plain(path: Path) -> bool:
    """Return whether a file is plain text, or cannot be opened."""
    head = _head(path, 2_000)
    foreign = head.lstrip()[:5] == b"%PDF-" or head.startswith((_OLE, _ZIP)) or _HTML_START.match(head)
    return not foreign and (not head or path.suffix.lower() not in _HTML_ENDINGS)


def is_quick(path: Path) -> bool:
    """Return whether a file is plain text that no parser of a grammar reads."""
    ending = path.suffix.lower()
    if ending in _PARSED_ENDINGS or not is_plain(path):
        return False
    return ending not in _PLAIN_ENDINGS or not is_rest(_head(path, 200_000).decode("utf-8", "replace"))


def _head(path: Path, size: int) -> bytes:
    """Return the first bytes of a file; none if it cannot be opened."""
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def _read(ending: str, data: bytes) -> _Content:
    if data.lstrip()[:5] == b"%PDF-":
        return _read_pdf(data)
    if data.startswith(_OLE):
        raise UnreadableFile("it is password-protected, or in a format older than docx")
    if data.startswith(_ZIP):
        return _read_docx(data)
    if ending in _HTML_ENDINGS or _HTML_START.match(data[:2000]):
        return _read_html(data)
    if ending in (".pdf", ".docx"):
        raise UnreadableFile(f"it is damaged, or not a {ending[1:]} file")
    text = clean_text(_decode(data))
    if ending in configuration.ENDINGS:
        return _Content("", [DocumentSection(configuration.read_configuration(ending, text))])
    header, text = split_header(text)
    if ending in _MARKDOWN_ENDINGS or (ending in _PLAIN_ENDINGS and is_markdown(text)):
        title, sections, date, matter = read_markdown(text)
    else:
        title, date, matter = "", "", dict[str, str]()
        is_parsed = ending == ".rst" or is_rest(text)
        sections = rest_sections(text) if is_parsed else underlined_sections(text)
    above = [DocumentSection(written(header))] if header else []
    return _Content(title, [*above, *sections], date, fields={**matter, **header})


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


def _read_html(data: bytes) -> _Content:
    try:
        return _Content(*read_page(data), metadata=published(data)[:10])
    except SyntaxError as error:
        raise UnreadableFile("it holds no text") from error


def _read_pdf(data: bytes) -> _Content:
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
        raise UnreadableFile("it holds no text: scanned pages need text recognition first")
    return _Content(title, sections, metadata=date)


def _read_docx(data: bytes) -> _Content:
    from docx.opc.exceptions import OpcError

    try:
        _check_unpacked(data)
        title, sections, date = read_docx(data)
    except (OpcError, zipfile.BadZipFile, *_PARSER_ERRORS) as error:
        if getattr(error, "code", None) == _XML_NO_MEMORY:
            raise MemoryError from error
        raise UnreadableFile(f"it is a damaged docx, or not a docx file ({type(error).__name__})") from error
    return _Content(title, sections, metadata=date)


def _check_unpacked(data: bytes) -> None:
    """Unpack a zip without keeping anything, because the sizes that it declares may be false."""
    left = MAX_UNPACKED
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            member.file_size = MAX_UNPACKED + 1  # where zipfile would stop; an honest member ends before
            with archive.open(member) as stream:
                while chunk := stream.read(1 << 20):
                    left -= len(chunk)
                    if left < 0:
                        raise UnreadableFile(f"it unpacks to more than {MAX_UNPACKED // 1_000_000} MB")
