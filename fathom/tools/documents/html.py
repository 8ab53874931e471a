"""Reading a page: its main part is written in the normal form; for pages of pure prose, trafilatura finds that part.

trafilatura recognises an article that the page does not mark, but drops tables, definitions and code.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fathom.text.plain import clean_line, clean_text
from fathom.tools.documents.normal import (
    DocumentSection,
    Outline,
    SpanningCell,
    definition,
    fence,
    indented,
    inline_code,
    item,
    joined,
    led,
    markdown_sections,
    spread,
    table,
    with_one_header,
)

_MAIN = ("descendant::main|descendant::*[@role='main']", "descendant::article")
_STRUCTURE = "descendant::pre|descendant::dl|descendant::table[descendant::td]|descendant::code"
SHARE = 0.5  # share of the text around it that a part must hold to be the main one
MENU_LINKS = 3
MENU_SHARE = 0.9  # share of a list's text that is in links
LONG = 2_000_000  # bytes of a page that trafilatura can read; of 10 MB of links it makes more than a gigabyte
SHORT = 1_000  # letters of a page that is too short for an article
_SITE = re.compile(r"\s+[|\u2013\u2014\u00b7»-]\s+")


def read_page(data: bytes) -> tuple[str, list[DocumentSection]]:
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

    encoding = None  # the encoding that the page names
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


def _sections(main: Any) -> list[DocumentSection]:
    outline = Outline()
    outline.add(*Walk(outline).blocks(main))
    return outline.sections()


def _main_part(root: Any) -> tuple[Any, bool]:
    """Return the main part of a page, and whether the page marks it."""
    bodies = root.xpath("//body")
    part, marked = bodies[0] if bodies else root, False
    for path in _MAIN:
        found = [one for one in part.xpath(path) if not any(map(is_skipped, (one, *one.iterancestors())))]
        outermost = [one for one in found if not any(above in found for above in one.iterancestors())]
        if len(outermost) == 1 and _size(outermost[0]) >= (SHARE * _size(part) if marked else 1):
            part, marked = outermost[0], True
    if not marked:
        _drop_menus(part)
    return part, marked


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


def _article(data: bytes) -> list[DocumentSection]:
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    text = trafilatura.extract(data, output_format="markdown", include_comments=False, favor_recall=True)
    return markdown_sections(clean_text(text or ""))


def _title(root: Any, headings: Sequence[str]) -> str:
    """Return the title of a page, without the name of its site if the first heading shows which part that is."""
    named = [clean_line(text) for text in root.xpath("//meta[@property='og:title']/@content") if text.strip()]
    titles = [clean_line("".join(title.itertext())) for title in root.xpath("//head/title|//body/title")[:1]]
    title = next(filter(None, (*named, *titles)), "")
    return next((part for part in _SITE.split(title) if part in headings[:2]), title)


MAX_DEPTH = 80  # of elements that are told apart; below, only their text counts, because Python limits recursion
MAX_ACROSS = 30  # columns

HEADINGS = {f"h{n}": n for n in range(1, 7)}
_BLOCKS = frozenset({
    "p", "div", "section", "article", "main", "header", "figure", "figcaption", "blockquote", "hr", "address",
    "details", "summary", "fieldset", "center", "form", "body", "html", "li", "dt", "dd", "tr", "td", "th",
    "tbody", "thead", "tfoot", "caption", "hgroup", "legend", "label", "aside", "search",
})  # fmt: skip
_CODE = frozenset(("code", "tt", "kbd", "samp", "var"))
_SKIPPED = frozenset({
    "script", "style", "noscript", "template", "svg", "nav", "footer", "head", "iframe", "object", "embed",
    "canvas", "video", "audio", "button", "select", "input", "textarea", "option", "datalist", "dialog", "menu",
})  # fmt: skip
_SKIPPED_ROLES = frozenset({
    "navigation", "banner", "contentinfo", "search", "complementary", "dialog", "alert", "menu", "toolbar",
})  # fmt: skip
_SKIPPED_CLASSES = re.compile(
    r"(?:^|\s)(?:headerlink|anchor-?link|hash-link|mw-editsection|linenos|lineno|sr-only|visually-hidden|"
    r"sphinxsidebar|related|breadcrumbs?|skip-link|copy-?btn|copybutton)(?:\s|$)"
)
_REMARK = re.compile(r"note|warn|tip|caution|admonition|callout|topic|info|danger", re.I)  # classes of an `aside`
_PERMALINK = re.compile(r"[\s¶#§🔗]*\Z")
_OFFER = re.compile(  # controls of the page
    r"\s*(?:edit|view|improve|suggest|report|copy)\b.{0,20}\b(?:page|source|github|gitlab|edits?|issue|history)\W*\Z",
    re.I,
)
_FOOTNOTE = re.compile(r"\s*\[?(?:\d{1,3}|[a-z*†‡])\]?\s*\Z")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight(?:-source)?|brush|sourceCode)[-:\s]\s*([\w+#-]+)")
_NO_LANGUAGE = frozenset({
    "default", "none", "text", "plain", "plaintext", "txt", "notranslate", "source", "highlight", "copy",
})  # fmt: skip


def is_skipped(element: Any) -> bool:
    """Return whether an element holds no content: navigation, controls, hidden elements."""
    get, tag = element.get, element.tag
    if tag in _SKIPPED or get("hidden") is not None or get("role") in _SKIPPED_ROLES or get("aria-hidden") == "true":
        return True
    if "display:none" in (get("style") or "").replace(" ", "").lower():
        return True
    names = get("class") or ""
    if tag == "aside":
        return not _REMARK.search(names)
    if tag == "form":
        return element.find(".//p") is None and element.find(".//table") is None
    if tag == "header":
        return not any(below.tag in HEADINGS for below in element.iterdescendants())
    return bool(names and _SKIPPED_CLASSES.search(names))


def shown(element: Any) -> Iterator[str]:
    """Yield the pieces of an element's text without skipped elements, at any depth."""
    from lxml import etree

    steps = etree.iterwalk(element, events=("start", "end"))
    for event, one in steps:
        if event == "end":
            if one is not element and one.tail:
                yield one.tail
        elif one is not element and is_skipped(one):
            steps.skip_subtree()
        elif one.tag == "br":
            yield "\n"
        elif one.text:
            yield one.text


class Walk:
    """A walk through a tree that writes blocks. Headings begin sections of the outline; without one they are bold."""

    def __init__(self, outline: Outline | None = None, depth: int = 0) -> None:
        self._outline = outline
        self._depth = depth
        self._found: list[str] = []
        self._run: list[str] = []  # pieces of the paragraph
        self._lead = ""  # of the block that comes next

    def blocks(self, element: Any) -> list[str]:
        """Return the blocks of an element's content; with an outline, the blocks below the last heading."""
        self._children(element)
        self._end()
        return self._found

    def _inner(self, element: Any) -> list[str]:
        return Walk(depth=self._depth).blocks(element)

    def _own(self, element: Any) -> list[str]:
        walk = Walk(depth=self._depth)
        walk._element(element)
        walk._end()
        return walk._found

    def _line(self, element: Any) -> str:
        return clean_line(" ".join(self._inner(element)))

    def _children(self, element: Any) -> None:
        self._text(element.text)
        for child in element:
            if not is_skipped(child):
                self._element(child)
            self._text(child.tail)

    def _text(self, text: str | None) -> None:
        if text:
            self._run.append(re.sub(r"\s+", " ", text))

    def _element(self, element: Any) -> None:
        self._depth += 1
        tag = element.tag
        if self._depth > MAX_DEPTH:
            self._text(" ".join(shown(element)))
        elif tag in HEADINGS:
            self._heading(element)
        elif tag in ("pre", "listing", "xmp"):
            self._add(_code(element))
        elif tag in ("ul", "ol", "dir"):
            self._add(self._list(element))
        elif tag == "dl":
            self._add(self._definitions(element))
        elif tag == "table":
            self._table(element)
        elif tag in _BLOCKS:
            self._end()
            if tag == "p" and "admonition-title" in (element.get("class") or ""):
                self._lead = self._line(element)
            else:
                self._children(element)
                self._end()
        else:
            self._span(element)
        self._depth -= 1

    def _span(self, element: Any) -> None:
        tag = element.tag
        if tag == "br":
            self._run.append("\n")
        elif tag in _CODE and not any(child.tag in _BLOCKS for child in element):
            self._run.append(inline_code("".join(shown(element))))
        elif tag == "img":
            self._text(element.get("alt"))
        elif tag == "sup":
            text = "".join(shown(element))
            link = element.find(".//a")
            if link is not None and (link.get("href") or "").startswith("#") and _FOOTNOTE.match(text):
                return
            power = text.strip().isdigit() and self._run and self._run[-1][-1:].isdigit()
            self._text(f"^{text}" if power else text)
        elif tag != "a" or not ((text := "".join(shown(element))) and (_PERMALINK.match(text) or _OFFER.match(text))):
            self._children(element)

    def _end(self) -> None:
        """End the paragraph; two line breaks end one, too."""
        text, self._run = "".join(self._run), []
        for paragraph in re.split(r"\n[^\S\n]*\n\s*", text):
            lines = [" ".join(line.split()) for line in paragraph.split("\n")]
            self._put("\n".join(filter(None, lines)))

    def _add(self, block: str) -> None:
        self._end()
        self._put(block)

    def _put(self, block: str) -> None:
        if block:
            self._found += led(self._lead, [block]) if self._lead else [block]
            self._lead = ""

    def _heading(self, element: Any) -> None:
        self._end()
        text = re.sub(r"\s*\[\s*edit\s*\]\Z", "", self._line(element)).rstrip("¶#§ ")
        if self._outline is None:
            self._put(f"**{text}**" if text else "")
            return
        self._outline.add(*self._found)
        self._found.clear()
        self._outline.heading(text, HEADINGS[element.tag])

    def _list(self, element: Any) -> str:
        items: list[str] = []
        start = element.get("start") or ""
        number = int(start) if re.fullmatch(r"\d{1,6}", start) else 1
        for child in element:
            if is_skipped(child):
                continue
            if child.tag in ("ul", "ol") and items:  # between items, it belongs to the one before
                items[-1] += "\n" + indented(self._own(child))
            elif inner := self._inner(child):
                items.append(item(f"{number}." if element.tag == "ol" else "-", inner))
                number += 1
        return "\n".join(items)

    def _definitions(self, element: Any) -> str:
        entries: list[tuple[list[str], list[str]]] = [([], [])]
        for child in _terms_and_definitions(element):
            if child.tag != "dt":
                entries[-1][1].extend(self._inner(child) if child.tag == "dd" else self._own(child))
                continue
            if entries[-1][1]:
                entries.append(([], []))
            entries[-1][0].append(self._line(child))
        return "\n".join(filter(None, (definition(", ".join(terms), held) for terms, held in entries)))

    def _table(self, element: Any) -> None:
        rows = [row for row in element.iterdescendants("tr") if not is_skipped(row)]
        if _is_layout(element, rows):
            self._end()
            self._children(element)
            self._end()
            return
        cells = [[one for one in row if one.tag in ("td", "th")] for row in rows]
        heads = 0
        while heads < len(rows) and _is_head(rows[heads], cells[heads]):
            heads += 1
        texts = spread([self._cell(one, at < heads, len(rows) - at) for one in row] for at, row in enumerate(cells))
        caption = " ".join(self._line(found) for found in element.findall("caption"))
        if not heads and all([one.tag for one in row] == ["th", "td"] for row in cells):
            self._add(joined([caption, "\n".join(definition(row[0], row[1:]) for row in texts)]))
        else:
            self._add(table(with_one_header(texts, heads), caption))

    def _cell(self, one: Any, in_head: bool, rows: int) -> SpanningCell:
        blocks = [
            inline_code("\n".join(block.split("\n")[1:-1])) if block.startswith("```") else block
            for block in self._inner(one)
        ]
        return SpanningCell(" ".join(blocks), _reach(one, "colspan", MAX_ACROSS), _reach(one, "rowspan", rows), in_head)


def _terms_and_definitions(element: Any) -> Iterator[Any]:
    for child in element:
        if child.tag == "div":  # a group
            yield from child
        elif not is_skipped(child):
            yield child


def _is_layout(element: Any, rows: Sequence[Any]) -> bool:
    """Return whether a table only puts parts of a page side by side."""
    if element.get("role") in ("presentation", "none") or not rows:
        return True
    if any(below.tag == "table" or below.tag in HEADINGS for below in element.iterdescendants()):
        return True
    widths = [sum(one.tag in ("td", "th") for one in row) for row in rows]
    return max(widths) <= 1 or (len(rows) == 1 and element.find(".//pre") is not None)


def _is_head(row: Any, cells: Sequence[Any]) -> bool:
    return row.getparent().tag == "thead" or (bool(cells) and all(one.tag == "th" for one in cells))


def _reach(one: Any, name: str, most: int) -> int:
    value = (one.get(name) or "").strip()
    return max(1, min(int(value), most)) if re.fullmatch(r"\d{1,6}", value) else 1


def _code(element: Any) -> str:
    """Return the code of a `pre` without the numbers of its lines."""
    code = "".join(shown(element)).strip("\n")
    if re.fullmatch(r"[\d\s]*", code) and "\n" in code:  # a column of line numbers
        return ""
    return fence(code, _language([element, *element.iterdescendants("code"), *list(element.iterancestors("div"))[:3]]))


def _language(elements: Sequence[Any]) -> str:
    for one in elements:
        for name in (one.get("data-lang"), one.get("data-language"), *_LANGUAGE.findall(one.get("class") or "")):
            if name and name.lower() not in _NO_LANGUAGE:
                return str(name).lower()
    return ""
