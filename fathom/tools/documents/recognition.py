"""Pictures and scanned PDFs: their text is recognised by tesseract, if this system has the command.

Of a PDF, poppler's pdftoppm draws the pages. Both are processes of their own under the limits of the one that reads.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from fathom.text.plain import clean_text
from fathom.tools.documents.normal import DocumentSection, ReadDocument, joined
from fathom.tools.documents.readers import UnreadableFile

SECONDS = 240.0  # after which no further page of a file is begun
PAGE_SECONDS = 60.0
MOST_LANGUAGES = 6  # that are installed and tried together; with more, tesseract's own choice, English
LINE = 30  # characters of a line that may be full: a shorter one may be a heading, or part of a list
RESOLUTION = 200  # dots per inch at which tesseract reads ordinary print; a page takes seconds
HOW = "Debian, Ubuntu: apt install tesseract-ocr poppler-utils; macOS: brew install tesseract poppler"
"""How to get the commands."""


def missing_commands() -> list[str]:
    """Return which of the commands this system lacks."""
    return _missing("tesseract", "pdftoppm")


def recognise(data: bytes, *, pdf: bool) -> ReadDocument:
    """Return the text of a picture, or of a PDF's pages.

    Raises:
        Unreadable: a command is missing or fails, or there is no text.
    """
    if missing := _missing("tesseract", *(["pdftoppm"] if pdf else [])):
        what = "scanned pages" if pdf else "a picture"
        raise UnreadableFile(f"it holds {what} and no text: install {' and '.join(missing)} ({HOW})")
    with tempfile.TemporaryDirectory(prefix="fathom-pages-") as folder:
        path = Path(folder, "scanned.pdf" if pdf else "picture")
        path.write_bytes(data)
        languages = _run("tesseract", "--list-langs").split("\n")[1:]
        known = [one for one in languages if one and one not in ("osd", "equ", "snum")]
        tried = ["-l", "+".join(known)] if 0 < len(known) <= MOST_LANGUAGES else []
        read = _pages(path, tried) if pdf else ReadDocument("", [DocumentSection(_text_of(path, tried))])
    if not any(map(str.isalnum, "".join(section.text for section in read.sections))):
        raise UnreadableFile("no text was recognised in it")
    return read


def _missing(*commands: str) -> list[str]:
    return [name for name in commands if not shutil.which(name)]


def _pages(path: Path, tried: Sequence[str]) -> ReadDocument:
    from pypdf import PdfReader

    began, total = monotonic(), len(PdfReader(path).pages)
    sections: list[DocumentSection] = []
    for number in range(1, total + 1):
        if monotonic() - began > SECONDS:
            break
        page = path.with_name("page")
        only = ("-f", str(number), "-l", str(number), "-singlefile")
        _run("pdftoppm", "-r", str(RESOLUTION), "-gray", "-png", *only, str(path), str(page))
        sections.append(DocumentSection(_text_of(page.with_suffix(".png"), tried), page=number))
    read = len(sections)
    unread = f"only the first {read} of {total} scanned pages were read, for lack of time" if read < total else ""
    return ReadDocument("", [section for section in sections if section.text], unread=unread)


def _text_of(picture: Path, tried: Sequence[str]) -> str:
    """Return the paragraphs that are recognised, the lines of each joined, with hyphenated words put together."""
    recognised = clean_text(_run("tesseract", str(picture), "stdout", *tried))
    full = max(LINE, 0.8 * max(map(len, recognised.split("\n"))))
    paragraphs: list[str] = []
    for text in recognised.split("\n\n"):
        if paragraphs and _goes_on(paragraphs[-1], text, full):
            paragraphs[-1] += f"\n{text}"
        else:
            paragraphs.append(text)
    return joined(" ".join(text.replace("-\n", "").split("\n")).strip() for text in paragraphs)


def _goes_on(paragraph: str, text: str, full: float) -> bool:
    """Whether tesseract has seen a gap where there is none: a sentence goes on below it.

    What goes on begins with a small letter; or with a number, below a line that has at least `full` characters.
    """
    if not re.search(r"[\w,-]\Z", paragraph):
        return False
    if text[:2].isalpha() and text[:2].islower():
        return True
    return len(paragraph.rpartition("\n")[2]) >= full and bool(re.match(r"\d+(?:[.,]\d+)*\s", text))


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, timeout=PAGE_SECONDS, check=True)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired as error:
        raise UnreadableFile(f"{command[0]} takes longer than {PAGE_SECONDS:.0f} s for a page") from error
    except subprocess.CalledProcessError as error:
        raise UnreadableFile(f"{command[0]} cannot read it") from error
    return done.stdout.decode("utf-8", "replace")
