"""The directives and roles of reST for docutils: those of Sphinx by their meaning, all others so that no text is lost.

docutils keeps them in tables that all documents share, so nothing here depends on a document but the names in it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.statemachine import StringList

_DIRECTIVE = re.compile(r"^[^\w\n]*(?:\d+\.\s+)?\.\.[ \t]+(?:\|[^|\n]+\|\s+)?([\w:+.-]+?) ?::(?:\s|$)", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:+.-]*):`|`:([A-Za-z][\w:+.-]*):")
_TARGET = re.compile(r"(?s)(.+?)\s*<[^<>]+>\Z")

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
_NOTES = {"seealso": "See also", "todo": "To do"}
_OBJECTS = frozenset({
    "data", "function", "class", "method", "attribute", "exception", "module", "property", "decorator",
    "staticmethod", "classmethod", "decoratormethod", "type", "var", "member", "macro", "struct", "enum",
    "enumerator", "union", "option", "cmdoption", "envvar", "confval", "setting", "object", "describe",
    "program-option",
    "directive", "role", "concept", "field",
})  # fmt: skip
SILENT = frozenset({
    "include", "literalinclude", "raw", "toctree", "contents", "sectnum", "section-numbering", "meta", "title",
    "default-role", "role", "date", "index", "highlight", "highlightlang", "currentmodule", "module", "py:module",
    "automodule", "tabularcolumns", "testsetup", "testcleanup", "header", "footer", "default-domain",
    "sectionauthor", "codeauthor",
})  # fmt: skip
"""`role` and `default-role` would also change documents that are read later, and `date` is that of today."""
_WITHOUT_ARGUMENT = frozenset({
    "only", "ifconfig", "rst-class", "cssclass", "container", "tabs", "tab-set", "raw-html",
})  # fmt: skip
_PLAIN_ROLES = frozenset({
    "ref", "doc", "term", "any", "numref", "abbr", "abbreviation", "guilabel", "menuselection", "issue", "issues",
    "pr", "gh", "ghsa", "cve", "dfn", "index", "download", "user", "emphasis", "strong", "sub", "subscript", "sup",
    "superscript", "title", "title-reference", "math", "eq", "keyword",
})  # fmt: skip
_OBJECT_ROLES = frozenset({
    "attr", "class", "const", "data", "exc", "func", "meth", "mod", "obj",
})  # fmt: skip


class described(nodes.General, nodes.Element):  # type: ignore[misc]  # docutils has no types
    """An object or setting, `name`, with what is said about it; docutils takes the class's name for the node's."""


class remark(nodes.General, nodes.Element):  # type: ignore[misc]  # the same
    """Paragraphs led in by a word or two, `lead`."""


class _AnyOption(dict[str, Any]):
    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        return lambda value: value or ""


class _Directive(Directive):  # type: ignore[misc]  # the same
    """A directive that is not part of docutils, or not safe there."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption()
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.name.rpartition(":")[2].lower()
        argument = self.arguments[0] if self.arguments else ""
        is_style = name == "class" and re.fullmatch(r"[a-z -]*", argument)  # docutils' own; Sphinx describes a class
        if self.name.lower() in SILENT:
            found = self._parsed(self.options.get("caption", ""))
        elif name in CODE:
            found = self._code(argument)
        elif name in VERSIONS:
            version, _, rest = re.sub(r"\s", " ", argument.strip()).partition(" ")
            found = [remark("", *self._parsed(rest), *self._content(), lead=f"{VERSIONS[name]} {version}")]
        elif name in _NOTES:
            found = [remark("", *self._parsed(argument), *self._content(), lead=_NOTES[name])]
        elif name.startswith("auto") and not self.content:
            found = []  # what it names stands in a program
        elif name.startswith("auto") or (name in _OBJECTS and not is_style):
            found = [described("", *self._settings(), *self._content(), name=" ".join(argument.split()))]
        elif name in _WITHOUT_ARGUMENT or is_style:
            found = self._content()
        else:
            found = [*self._parsed(argument), *self._content()]
        return found

    def _content(self) -> list[nodes.Node]:
        held = nodes.Element()
        # With titles, unlike `nested_parse` alone: what is in a tab may have sections.
        self.state.nested_parse(self.content, self.content_offset, held, match_titles=True)
        return list(held.children)

    def _parsed(self, text: str) -> list[nodes.Node]:
        held = nodes.Element()
        lines = [line.strip() for line in text.strip().split("\n")]
        self.state.nested_parse(StringList(lines, source=""), self.content_offset, held)
        return list(held.children)

    def _code(self, argument: str) -> list[nodes.Node]:
        language, code = argument.strip(), "\n".join(self.content)
        if "\n" in language or (language and not code):  # code that begins on the directive's own line
            code, language = f"{language}\n\n{code}".strip("\n"), ""
        block = nodes.literal_block(code, code, classes=["code", language] if language else [])
        return [*self._parsed(self.options.get("caption", "")), block]

    def _settings(self) -> list[nodes.Node]:
        named = [(key, self.options.get(key)) for key in ("type", "value", "default")]
        return [node for key, value in named if value for node in self._parsed(f"{key.capitalize()}: {value}")]


def _role(name: str, rawtext: str, text: str, *_: Any, **__: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    text = nodes.unescape(text)
    titled = _TARGET.match(text)
    shown = titled[1] if titled else text.lstrip("!~")
    role = name.rpartition(":")[2].lower()
    if role in _OBJECT_ROLES and not titled:
        shown = shown.lstrip(".")  # it says where to look the name up
    if role in _PLAIN_ROLES:
        return [nodes.inline(rawtext, shown)], []
    return [nodes.literal(rawtext, shown)], []


def register(source: str) -> None:
    """Make docutils accept every directive and role in a text."""
    known = directives._directive_registry  # the public look-up would import what it finds
    for name in {match[1].lower() for match in _DIRECTIVE.finditer(source)}:
        base = name.rpartition(":")[2]
        if name not in known or name in SILENT or base in CODE or base == "class":
            directives.register_directive(name, _Directive)
    for match in _ROLE.finditer(source):
        name = (match[1] or match[2]).lower()
        if name not in ("pep", "rfc", "pep-reference", "rfc-reference"):
            roles.register_local_role(name, _role)
