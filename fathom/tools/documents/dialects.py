"""What Markdown holds of other languages: directives, template tags and attributes become what they hold.

Those of MyST, Docusaurus, Pandoc, MkDocs, kramdown, and the tags of Jinja, Nunjucks and Liquid. Code stays as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from fathom.tools.documents.normal import fence

_CODE_SPAN = r"(?<!`)(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)"
_TAG = re.compile(rf"{_CODE_SPAN}|\{{%[-+]?(?P<tag>[^%{{}}]{{0,500}})[-+]?%\}}")
_QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
_FILE = re.compile(r"\S*(?:/\S*|\.[a-z][a-z0-9]{1,4})\Z", re.IGNORECASE)  # or an address
_COLONS = re.compile(r"(\s*):{3,}[ \t]*(?:\{?[ \t]*\.?([A-Za-z][\w-]*)[^}\n]*\}|([A-Za-z][\w-]*))?[ \t]*(.*)\Z")
_ADMONITION = re.compile(r"(\s*)(?:!!!|\?\?\?\+?)[ \t]+([A-Za-z][\w-]*)[^\"\n]*(?:\"([^\"\n]*)\")?[ \t]*\Z")
_ALERT = re.compile(r"(\s*(?:>[ \t]?)+)\[!([A-Za-z]+)\][ \t]*(.*)\Z")
_ATTRIBUTES = re.compile(r"[ \t]*\{:?[ \t]*(?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|[\w.-]+))"
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
    """Return what a fence holds that is a directive of MyST; None if it is code.

    Code in it is in a fence again; all else is Markdown.
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
    """Return the words that a tag quotes; the names of files and addresses are none."""
    quoted = (one or other for one, other in _QUOTED.findall(tag))
    return " ".join(text for text in quoted if text and not _FILE.match(text))


def _lead(name: str, title: str) -> str:
    lead = name.capitalize() if name.lower() in _LEADS else ""
    return f"{lead}: {title}".rstrip() if lead else title
