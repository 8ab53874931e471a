"""Reading a page: its main part is written in the normal form; of a page of mere prose, trafilatura finds that part.

trafilatura knows what belongs to an article where the page does not say so, but drops tables, definitions and code.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from fathom.text.plain import clean_line, clean_text
from fathom.tools.documents.normal import Outline
from fathom.tools.documents.sections import Section, markdown_sections
from fathom.tools.documents.walk import Walk, is_skipped, shown

_MAIN = ("descendant::main|descendant::*[@role='main']", "descendant::article")
_STRUCTURE = "descendant::pre|descendant::dl|descendant::table[descendant::td]|descendant::code"
SHARE = 0.5  # of the text around it that a part must hold to be the main one
MENU_LINKS = 3
MENU_SHARE = 0.9  # of a list's text that is in links
LONG = 2_000_000  # bytes of a page that trafilatura can read; of 10 MB of links it makes more than a gigabyte
SHORT = 1_000  # letters of a page on which there is no article to look for
_SITE = re.compile(r"\s+[|\u2013\u2014\u00b7»-]\s+")


def read_page(data: bytes) -> tuple[str, list[Section]]:
    """Return a page's title and its sections.

    Raises:
        SyntaxError: there is no markup in it.
    """
    root = _parse(data)
    main, marked = _main_part(root)
    sections = _sections(main)
    if not marked and len(data) <= LONG and _size(main) > SHORT and not main.xpath(_STRUCTURE):
        sections = _article(data) or sections
    return _title(root, [section.heading for section in sections if section.heading]), sections


def fragment_blocks(markup: str) -> list[str]:
    """Return the blocks of a piece of HTML, headings among them as bold lines."""
    return Walk().blocks(_parse(markup.encode("utf-8", "replace")))


def _parse(data: bytes) -> Any:
    from lxml import etree

    encoding = None  # that which the page names
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data, encoding = data.decode("utf-16", "replace").encode("utf-8", "replace"), "utf-8"
    else:
        try:
            data.decode("utf-8")
            encoding = "utf-8"
        except UnicodeDecodeError:
            encoding = None if re.search(rb"charset\s*=", data[:2000], re.IGNORECASE) else "cp1252"
    data = data.replace(b"\0", b"").removeprefix(b"\xef\xbb\xbf")
    if encoding:  # a declaration of XML would win against the argument
        data = re.sub(rb"\A\s*<\?xml[^>]*>", b"", data)
    parser = etree.HTMLParser(encoding=encoding, remove_comments=True, remove_pis=True, huge_tree=True)
    root = etree.fromstring(data, parser)
    if root is None:
        raise SyntaxError("no markup")
    return root


def _sections(main: Any) -> list[Section]:
    outline = Outline()
    outline.add(*Walk(outline).blocks(main))
    return outline.sections()


def _main_part(root: Any) -> tuple[Any, bool]:
    """Return the part of a page that is its content, and whether the page says so."""
    bodies = root.xpath("//body")
    part, marked = bodies[0] if bodies else root, False
    for path in _MAIN:
        found = [one for one in part.xpath(path) if not _is_hidden(one)]
        outermost = [one for one in found if not any(above in found for above in one.iterancestors())]
        if len(outermost) == 1 and _size(outermost[0]) >= (SHARE * _size(part) if marked else 1):
            part, marked = outermost[0], True
    if not marked:
        _drop_menus(part)
    return part, marked


def _is_hidden(element: Any) -> bool:
    return any(is_skipped(one) for one in (element, *element.iterancestors()))


def _size(element: Any) -> int:
    return sum(len(text.strip()) for text in shown(element))


def _drop_menus(part: Any) -> None:
    """Remove lists of mere links, unless they are most of the page."""
    menus = [found for found in part.xpath("descendant::ul|descendant::ol") if _is_menu(found)]
    if sum(map(_size, menus)) < SHARE * _size(part):
        for menu in menus:
            tail = menu.tail
            menu.clear()
            menu.tail = tail


def _is_menu(element: Any) -> bool:
    links = element.findall(".//a")
    return len(links) >= MENU_LINKS and sum(map(_size, links)) >= MENU_SHARE * _size(element)


def _article(data: bytes) -> list[Section]:
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    text = trafilatura.extract(data, output_format="markdown", include_comments=False, favor_recall=True)
    return markdown_sections(clean_text(text or ""))


def _title(root: Any, headings: Sequence[str]) -> str:
    """Return the title of a page; without the name of its site, if the first heading tells it apart."""
    named = [clean_line(text) for text in root.xpath("//meta[@property='og:title']/@content") if text.strip()]
    titles = [clean_line("".join(title.itertext())) for title in root.xpath("//head/title|//body/title")[:1]]
    title = next(filter(None, (*named, *titles)), "")
    return next((part for part in _SITE.split(title) if part in headings[:2]), title)
