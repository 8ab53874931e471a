"""Reading a file: txt, md, rst, html, pdf and docx become a title and sections.

Where bytes and ending disagree, the bytes decide: a PDF named `.txt` is read as a PDF.
"""

from __future__ import annotations

import io
import logging
import re
import struct
import zipfile
import zlib
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from fathom.text.cleaning import clean_line, clean_text
from fathom.tools.documents.sections import ReadDocument, Section, markdown_sections, underlined_sections

if TYPE_CHECKING:
    from docx.document import Document as DocxDocument

ENDINGS = frozenset({".txt", ".text", ".md", ".markdown", ".rst", ".html", ".htm", ".xhtml", ".pdf", ".docx"})
_HTML_START = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_HTML_ENDINGS = (".html", ".htm", ".xhtml")
_ZIP = b"PK\x03\x04"
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)", re.S)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # what Office wraps around encrypted files, and its formats before 2007
# What parsers raise for a damaged file; lxml's error is a SyntaxError.
_PARSER_ERRORS = (
    ArithmeticError, AssertionError, AttributeError, LookupError, OSError, RuntimeError, SyntaxError, TypeError,
    ValueError, struct.error, zlib.error,
)  # fmt: skip
_XML_NO_MEMORY = 2  # `code` of lxml's error; XML_ERR_NO_MEMORY in libxml2
MAX_UNPACKED = 200_000_000
"""Bytes that a docx may unpack to. Its pictures count; one with 22 MB of text unpacks to 27 MB."""
_Content = tuple[str, list[Section]]  # the title that the file names, and its sections


class Unreadable(Exception):
    """A file without readable text; the message says why."""


def read_document(name: str, data: bytes) -> ReadDocument:
    """Read a file's bytes; the ending of its name distinguishes plain-text formats.

    Raises:
        Unreadable: empty, without text, damaged, password-protected, or none of the known formats.
    """
    if not data.strip():
        raise Unreadable("it is empty")
    title, sections = _read(PurePath(name).suffix.lower(), data)
    if not any(c.isalnum() for section in sections for c in section.text + section.heading):
        raise Unreadable("it holds no text")
    first = next((section.heading for section in sections if section.level == 1), sections[0].heading)
    return ReadDocument(title or first, sections)


def is_plain(path: Path) -> bool:
    """Return whether a file is plain text, or cannot be opened."""
    try:
        with path.open("rb") as stream:
            head = stream.read(2000)
    except OSError:
        return True
    foreign = head.lstrip()[:5] == b"%PDF-" or head.startswith((_OLE, _ZIP)) or _HTML_START.match(head)
    return not foreign and path.suffix.lower() not in _HTML_ENDINGS


def _read(ending: str, data: bytes) -> _Content:
    if data.lstrip()[:5] == b"%PDF-":
        return _read_pdf(data)
    if data.startswith(_OLE):
        raise Unreadable("it is password-protected, or in a format older than docx")
    if data.startswith(_ZIP):
        return _read_docx(data)
    if ending in _HTML_ENDINGS or _HTML_START.match(data[:2000]):
        return _read_html(data)
    if ending in (".pdf", ".docx"):
        raise Unreadable(f"it is damaged, or not a {ending[1:]} file")
    text = clean_text(_decode(data))
    if ending not in (".md", ".markdown"):
        return "", underlined_sections(text)
    if not (matter := _FRONT_MATTER.match(text)):
        return "", markdown_sections(text)
    named = re.search(r"^title:[ \t]*(.+)$", matter[1], re.M)
    return clean_line(named[1]).strip("\"'") if named else "", markdown_sections(text[matter.end() :])


def _decode(data: bytes) -> str:
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data:
        raise Unreadable("it is not text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _read_html(data: bytes) -> _Content:
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    text = trafilatura.extract(data, output_format="markdown", include_comments=False, favor_recall=True)
    metadata = trafilatura.extract_metadata(data)
    # A short page may have no main part; then all of its text counts. Some pages are fragments without <html>.
    text = text or trafilatura.html2txt(data) or trafilatura.html2txt(b"<html><body>" + data)
    return clean_line((metadata and metadata.title) or ""), markdown_sections(clean_text(text))


def _read_pdf(data: bytes) -> _Content:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    # It logs every irregularity of a file as a warning; what matters is raised.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("it is password-protected")
        pages = [Section(clean_text(page.extract_text()), page=n) for n, page in enumerate(reader.pages, 1)]
        title = clean_line((reader.metadata and reader.metadata.title) or "")
    except DependencyError as error:
        raise Unreadable("it is encrypted in an unsupported way") from error
    except (PyPdfError, *_PARSER_ERRORS) as error:
        raise Unreadable(f"it is a damaged pdf ({type(error).__name__})") from error
    # The title in the metadata is often the name of the file it was made from.
    title = "" if re.search(r"\.\w{2,5}\Z", title) or title.lower() in ("untitled", "anonymous") else title
    pages = [page for page in pages if page.text.strip()]
    if not pages:
        raise Unreadable("it holds no text: scanned pages need text recognition first")
    return title, pages


def _read_docx(data: bytes) -> _Content:
    from docx import Document
    from docx.opc.exceptions import OpcError

    try:
        _check_unpacked(data)
        return _docx_content(Document(io.BytesIO(data)))
    except (OpcError, zipfile.BadZipFile, *_PARSER_ERRORS) as error:
        if getattr(error, "code", None) == _XML_NO_MEMORY:
            raise MemoryError from error
        raise Unreadable(f"it is a damaged docx, or not a docx file ({type(error).__name__})") from error


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
                        raise Unreadable(f"it unpacks to more than {MAX_UNPACKED // 1_000_000} MB")


def _docx_content(document: DocxDocument) -> _Content:
    from docx.table import Table

    parts: list[tuple[str, int, list[str]]] = [("", 0, [])]  # heading, level, paragraphs
    title = ""
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            rows = (" | ".join(clean_line(cell.text) for cell in row.cells) for row in block.rows)
            parts[-1][2].append("\n".join(rows))
            continue
        text, style = clean_text(block.text), (block.style.name if block.style else "") or ""
        if style == "Title" and not title:
            title = clean_line(text)
        elif (level := re.fullmatch(r"Heading (\d)", style)) and text.strip():
            parts.append((clean_line(text), int(level[1]), []))
        elif text.strip():
            parts[-1][2].append(text)
    return title, [Section("\n\n".join(lines), heading, depth) for heading, depth, lines in parts if heading or lines]
