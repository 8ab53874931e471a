"""The markup of reST, told line by line and without docutils, which takes long to load: whether a text is reST at all,
and what is left of one that docutils cannot parse.
"""

from __future__ import annotations

import re

from fathom.tools.documents.normal import underlined_sections

_MARKUP = re.compile(r"\.\. (?:_[^\n]+:(?=\s|\Z)|\|[^|\n]+\| .+::|(?P<name>[\w:+.-]+) ?::(?:\s+(?P<argument>.*))?\Z)")
_OPTION = re.compile(r"\s+:[\w-]+:(?:\s|\Z)")
LEADS = {
    "attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning",
}  # fmt: skip
CODE = frozenset({
    "code", "code-block", "sourcecode", "console", "prompt", "ipython", "doctest", "testcode", "productionlist",
    "mermaid",
})  # fmt: skip
VERSIONS = {
    "versionadded": "New in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
SILENT = frozenset({
    "include", "literalinclude", "raw", "toctree", "contents", "sectnum", "section-numbering", "meta", "title",
    "default-role", "role", "date", "index", "highlight", "highlightlang", "currentmodule", "module", "py:module",
    "automodule", "tabularcolumns", "testsetup", "testcleanup", "header", "footer", "default-domain",
    "sectionauthor", "codeauthor",
})  # fmt: skip
"""`role` and `default-role` would also change documents that are read later, and `date` gives today's date."""


def is_rest(text: str) -> bool:
    """Return whether a plain text clearly is reST: underlined headings, and directives or labels."""
    head = text[:200_000]
    marks = sum(bool(_MARKUP.match(line)) for line in head.split("\n"))
    return marks > 1 and any(section.heading for section in underlined_sections(head))


def without_markup(text: str) -> str:
    """Return a text without the lines that are nothing but markup: labels, and directives with their options."""
    lines: list[str] = []
    options = False  # whether the line before belongs to a directive itself, not to its content
    for line in text.split("\n"):
        if found := _MARKUP.match(line):
            lines.append(_said(found["name"] or "", found["argument"] or ""))
        options = bool(found) or (options and bool(_OPTION.match(line)))
        if not options:
            lines.append(line)
    return "\n".join(lines)


def _said(name: str, argument: str) -> str:
    """Return the text of the first line of a directive."""

    base = name.rpartition(":")[2].lower()
    if base in CODE or name.lower() in SILENT:
        return ""
    lead = f"{base.capitalize()}:" if base in LEADS else VERSIONS.get(base, "")
    return f"{lead} {argument}".strip()
