"""Files that are zips: which kind they are, whether they unpack to a size that can be read, and their properties."""

from __future__ import annotations

import io
import zipfile
from typing import Any

MAX_UNPACKED = 200_000_000
"""Bytes that a zip may unpack to. Pictures count; a docx with 22 MB of text unpacks to 27 MB."""
_OFFICE = {"word/": "docx", "xl/": "xlsx", "ppt/": "pptx"}
_OPEN = b"application/vnd.oasis.opendocument."
_MIMETYPES = {
    b"application/epub+zip": "epub",
    _OPEN + b"spreadsheet": "ods",
    _OPEN + b"text": "odt",
    _OPEN + b"presentation": "odp",
}
_PROPERTIES = "docProps/core.xml"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_MODIFIED = "{http://purl.org/dc/terms/}modified"


def unpacks(data: bytes) -> bool:
    """Return whether a zip unpacks to at most 200 MB; the sizes that it declares may be false, so nothing is kept.

    Raises:
        zipfile.BadZipFile: it is damaged; zipfile raises other errors, too.
    """
    left = MAX_UNPACKED
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            member.file_size = 2 * MAX_UNPACKED  # where zipfile would stop; a member that is not too large ends before
            with archive.open(member) as stream:
                while chunk := stream.read(1 << 20):
                    left -= len(chunk)
                    if left < 0:
                        return False
    return True


def kind_of_zip(data: bytes) -> str:
    """Return the kind of a zip by its members: docx, xlsx, pptx, epub, ods, odt or odp; empty if it is another archive.

    Raises:
        zipfile.BadZipFile: it is damaged; zipfile raises other errors, too.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if "mimetype" in names:
            with archive.open("mimetype") as stream:
                return _MIMETYPES.get(stream.read(100).strip(), "")
    parts = (kind for folder, kind in _OFFICE.items() if any(name.startswith(folder) for name in names))
    return next(parts, "") if "[Content_Types].xml" in names else ""


def parse_xml(data: bytes) -> Any:
    """Return the root of an XML document of strangers; neither entities nor the network add to it."""
    from lxml import etree

    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def core_properties(archive: zipfile.ZipFile) -> tuple[str, str]:
    """Return the title of an Office file, and the day on which it was last changed; empty if it does not state them."""
    if _PROPERTIES not in archive.namelist():
        return "", ""
    root = parse_xml(archive.read(_PROPERTIES))
    return root.findtext(_TITLE) or "", (root.findtext(_MODIFIED) or "")[:10]
