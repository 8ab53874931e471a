"""Reading Markdown: it is the normal form already, except for front matter, tables in HTML and other dialects.

Directives, template tags and attributes of other languages are replaced by their content: MyST, Docusaurus, Pandoc,
MkDocs, kramdown, and the tags of Jinja, Nunjucks and Liquid. Code stays as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from fathom.text.blocks import open_fence
from fathom.tools.documents import normal
from fathom.tools.documents.header import matter_date, matter_fields
from fathom.tools.documents.html import fragment_blocks
from fathom.tools.documents.normal import DocumentSection, fence, markdown_sections

_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\n(.*?\n)\1[ \t]*(?:\n|\Z)", re.S)
_ATX = re.compile(r"#{1,6} \S")
_LIST = re.compile(r"(?:[-*] |\d+\. )\S")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)\s*[^\s<]")
# Lines that contain the indented lines below them: an item, a note, a definition, a tab or an admonition.
_HOLDER = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)]|:)\s|\[\^[^\]]+\]:|!!!|\?\?\?|===)")
_RULE = re.compile(r"\|?\s*:?-+:?\s*\|[\s:|-]*\Z")
_TABLE = re.compile(r"(?:\A|(?<=\n)) {0,3}<table\b.*?</table>[ \t]*(?=\n|\Z)", re.S | re.I)
# With a longest span, a line full of marks that nothing closes takes no time that grows faster than it.
_CODE_SPAN = r"(?<!`)(?P<ticks>`+)(?!`)[^\n]{1,2000}?(?<!`)(?P=ticks)(?!`)"
_COMMENT = re.compile(rf"{_CODE_SPAN}|<!--(?s:.*?)-->")  # a span of code has none
_DESTINATION = r"\(\s*<?(?P<address>[^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+[\"'(][^\n]*?[\"')])?\s*\)"
_LINK = re.compile(rf"{_CODE_SPAN}|!?\[(?P<text>[^\[\]]*)\](?:{_DESTINATION}|\[[^\[\]\n]*\])")
_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]\n]+\]:[ \t]+\S+.*\n?", re.M)
_SAYS_NOTHING = re.compile(r"(?:click )?here|(?:this )?(?:link|page|site|document)|this|source", re.I)


def read_markdown(text: str) -> tuple[str, list[DocumentSection], str, dict[str, str]]:
    """Return a document's title, its sections, and the date and fields of its front matter."""
    matter = _FRONT_MATTER.match(text)
    head, body = (matter[2], text[matter.end() :]) if matter else ("", text)
    fields = matter_fields(".toml" if matter[1] == "+++" else ".yaml", head) if matter else {}
    title = next((value for name, value in fields.items() if name.lower() == "title"), "")
    return title, markdown_sections("\n".join(_parts(body))), matter_date(fields), fields


def is_markdown(text: str) -> bool:
    """Return whether a plain text clearly is Markdown: several headings apart from the text, and a table, list or code.

    A comment in a script or in settings may begin with `#`, too, but seldom stands between blank lines.
    """
    lines = [line.rstrip() for line in text[:200_000].split("\n")]
    headings = sum(
        bool(_ATX.match(line)) and not (n and lines[n - 1]) and not (n + 1 < len(lines) and lines[n + 1])
        for n, line in enumerate(lines)
    )
    return headings > 1 and any(line.startswith("```") or _LIST.match(line) or _RULE.match(line) for line in lines)


def _parts(text: str) -> Iterator[str]:
    """Yield fenced code, the content of fenced directives, and the text between; indented code is put in fences."""
    fence, lines = "", list[str]()
    indented = held = False  # whether the lines are code; whether an indented line belongs to an item or the like
    after_blank = True
    for line in text.split("\n"):
        after = open_fence(fence, line)
        starts_code = after_blank and not held and not fence and not after and bool(_INDENTED.match(line))
        if indented and line.strip() and not _INDENTED.match(line):
            yield _fenced(lines)
            indented, lines = False, []
        elif starts_code and not indented:
            yield _converted("\n".join(lines))
            indented, lines = True, []
        if indented:
            lines.append(line)
            continue
        if after and not fence:
            yield _converted("\n".join(lines))
            lines = []
        lines.append(line)
        if fence and not after:
            directive = held_by(lines)
            yield "\n".join(lines) if directive is None else directive
            lines = []
        elif not after and line.strip():
            held = bool(_HOLDER.match(line)) or (
                held and not (after_blank and line[0].strip()) and not _ATX.match(line)
            )
        after_blank = bool(fence and not after) or not line.strip()
        fence = after
    yield "\n".join(lines) if fence else _fenced(lines) if indented else _converted("\n".join(lines))


def _fenced(lines: Sequence[str]) -> str:
    """Return indented code in a fence, with the blank lines below it."""
    code = "\n".join(lines).expandtabs(4)
    return normal.fence(textwrap.dedent(code)) + "\n" * (len(code) - len(code.rstrip("\n")))


def _converted(text: str) -> str:
    # Nothing is searched for behind the last end, so every search for one succeeds.
    if (last := text.rfind("-->")) >= 0:
        end = text.find("\n", last)  # the line may hold a span of code
        end = len(text) if end < 0 else end
        text = _COMMENT.sub(lambda match: match[0] if match["ticks"] else "", text[:end]) + text[end:]
    end = text.lower().rfind("</table>") + 8
    text = _TABLE.sub(_table, text[:end]) + text[end:] if end > 7 else text
    text = _DEFINITION.sub("", "\n".join(_with_outer_bars(without_dialects(text).split("\n"))))
    return _LINK.sub(_linked, _LINK.sub(_linked, text))  # twice, because an image may be a link


def _with_outer_bars(lines: list[str]) -> list[str]:
    """Return lines with the bars around the rows of tables, which Markdown may leave out."""
    written = list(lines)
    last = 0
    for number, line in enumerate(lines):
        if number > last and "|" in line and _RULE.match(line) and "|" in lines[number - 1]:
            last = next((n for n in range(number, len(lines)) if "|" not in lines[n]), len(lines))
            for n in range(number - 1, last):
                row = lines[n].strip()
                written[n] = row if row[0] == row[-1] == "|" else f"| {row.strip('|').strip()} |"
    return written


def _linked(match: re.Match[str]) -> str:
    """Return a link's text, and its address if the text does not describe its target."""
    if match["ticks"]:
        return match[0]
    text, address = match["text"], match["address"] or ""
    return f"{text} ({address})" if _SAYS_NOTHING.fullmatch(text.strip()) and "://" in address else text


def _table(match: re.Match[str]) -> str:
    return "\n\n".join(["", *fragment_blocks(match[0]), ""])


_TAG = re.compile(rf"{_CODE_SPAN}|\{{%[-+]?(?P<tag>[^%{{}}]{{0,500}})[-+]?%\}}")
_QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_FILE = re.compile(r"\S*(?:/\S*|\.[a-z][a-z0-9]{1,4})\Z", re.IGNORECASE)  # or an address
_COLONS = re.compile(r"(\s*):{3,}[ \t]*(?:\{?[ \t]*\.?([A-Za-z][\w-]*)[^}\n]*\}|([A-Za-z][\w-]*))?[ \t]*(.*)\Z")
_ADMONITION = re.compile(r"(\s*)(?:!!!|\?\?\?\+?)[ \t]+([A-Za-z][\w-]*)[^\"\n]*(?:\"([^\"\n]*)\")?[ \t]*\Z")
_ALERT = re.compile(r"(\s*(?:>[ \t]?)+)\[!([A-Za-z]+)\][ \t]*(.*)\Z")
_ATTRIBUTES = re.compile(r"(?<![ \t])[ \t]*\{:?[ \t]*(?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|[\w.-]+))"
                         r"(?:[ \t]+(?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|[\w.-]+)))*[ \t]*\}[ \t]*\Z")  # fmt: skip
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_LABEL = re.compile(r"\s*\([\w:.-]+\)=[ \t]*\Z")
_DIRECTIVE = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:`{3,}|~{3,})[ \t]*\{([\w:+.-]+)\}[ \t]*(.*)\Z")
_OPTION = re.compile(r"\s*:[\w-]+:(?:[ \t]|\Z)")
_LEADS = frozenset({
    "attention", "caution", "danger", "error", "hint", "important", "info", "note", "seealso", "tip", "warning",
})  # fmt: skip
_WRITTEN = frozenset({"code", "code-block", "code-cell", "sourcecode", "math", "mermaid", "eval-rst", "eval_rst"})
_LISTING = frozenset({"toctree", "contents", "tableofcontents", "include", "literalinclude", "raw", "index", "image"})


def without_dialects(text: str) -> str:
    """Return Markdown without fenced code as plain Markdown."""
    if "{%" in text:
        text = _TAG.sub(lambda tag: tag[0] if tag["ticks"] else _said_by(tag["tag"]), text)
    lines: list[str] = []
    body = None  # indentation of the admonition that is open
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if body is not None and line.strip() and indent < body:
            body = None
        written = line[:indent][4:] + line[indent:] if body is not None else line
        if found := _ADMONITION.match(written):
            written, body = f"{found[1]}{_lead(found[2], found[3] or '')}\n", indent + 4
        elif found := _COLONS.match(written):
            written = f"{found[1]}{_lead(found[2] or found[3] or '', found[4])}"
        elif found := _ALERT.match(written):
            written = f"{found[1]}{_lead(found[2], found[3])}"
        elif _LABEL.match(written):
            written = ""
        elif (found := _ATTRIBUTES.search(written)) and (_HEADING.match(written) or not found.start()):
            written = written[: found.start()]
        lines.append(written)
    return "\n".join(lines)


def held_by(lines: Sequence[str]) -> str | None:
    """Return the content of a fence that is a directive of MyST; None if the fence is code.

    Code in it is fenced again; the rest is Markdown.
    """
    opened = _DIRECTIVE.match(lines[0])
    if not opened:
        return None
    name, argument = opened[1].rpartition(":")[2].lower(), opened[2].strip()
    body = list(lines[1:-1])
    while body and _OPTION.match(body[0]):
        del body[0]
    if name in _LISTING:
        return ""
    content = textwrap.dedent("\n".join(body)).strip("\n")
    if name in _WRITTEN:
        return fence(content, argument)
    return "\n\n".join(filter(None, [_lead(name, argument), content]))


def _said_by(tag: str) -> str:
    """Return the words that a tag quotes, except the names of files and addresses."""
    quoted = (one or other for one, other in _QUOTED.findall(tag))
    return " ".join(text for text in quoted if text and not _FILE.match(text))


def _lead(name: str, title: str) -> str:
    lead = name.capitalize() if name.lower() in _LEADS else ""
    return f"{lead}: {title}".rstrip() if lead else title
