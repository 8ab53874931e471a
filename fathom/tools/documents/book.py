"""Reading an EPUB: the pages of its spine, in order."""

from __future__ import annotations

import io
import posixpath
import zipfile
from urllib.parse import unquote

from fathom.tools.documents.html import read_page
from fathom.tools.documents.normal import DocumentSection, ReadDocument
from fathom.tools.documents.zipped import parse_xml

_CONTAINER = "META-INF/container.xml"
_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def read_epub(data: bytes) -> ReadDocument:
    """Return a book's pages as sections; parsers raise various errors for damaged ones."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = parse_xml(archive.read(_CONTAINER)).find(".//{*}rootfile").get("full-path")
        package = parse_xml(archive.read(found))
        items = {item.get("id"): item for item in package.iterfind("{*}manifest/{*}item")}
        sections: list[DocumentSection] = []
        for entry in package.iterfind("{*}spine/{*}itemref"):
            item = items.get(entry.get("idref"))
            if item is not None and item.get("media-type") in _PAGES and "nav" not in (item.get("properties") or ""):
                name = posixpath.normpath(posixpath.join(posixpath.dirname(found), unquote(item.get("href"))))
                sections += read_page(archive.read(name))[1]
    date = package.findtext("{*}metadata/{*}date") or ""
    fields = {"Author": author} if (author := package.findtext("{*}metadata/{*}creator")) else {}
    return ReadDocument(package.findtext("{*}metadata/{*}title") or "", sections, date[:10], fields)
