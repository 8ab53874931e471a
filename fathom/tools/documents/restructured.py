"""Reading reST: docutils parses it, and its tree is written in the normal form.

The module registers the directives and roles of reST with docutils: Sphinx's by their meaning, all others so that no
text is lost. docutils keeps them in tables that all documents share, so only the names of a document matter here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles, states
from docutils.statemachine import StringList

from fathom.text.plain import clean_line
from fathom.tools.documents.normal import (
    DocumentSection,
    Outline,
    SpanningCell,
    definition,
    fence,
    inline_code,
    item,
    joined,
    led,
    spread,
    table,
    underlined_sections,
    with_one_header,
)
from fathom.tools.documents.rest_markup import CODE, LEADS, SILENT, VERSIONS, without_markup

MAX_CHARS = 1_000_000  # maximum bytes of a text that is parsed: docutils takes about 4 s for them
MAX_LINE = 10_000  # characters; docutils gives up on texts with longer lines
_SEVERE = 4  # level of docutils' message for a misplaced heading, whose text would be left out
_SETTINGS = {
    "_disable_config": True,
    "docinfo_xform": False,
    "doctitle_xform": False,
    "file_insertion_enabled": False,
    "halt_level": 6,  # never
    "raw_enabled": False,
    "report_level": 5,  # nothing
    "smart_quotes": False,
    "syntax_highlight": "none",
    "traceback": True,  # raise instead of ending the process
}
_SILENT = ("comment", "target", "substitution_definition", "pending", "raw", "decoration", "meta", "image", "title")


def rest_sections(text: str) -> list[DocumentSection]:
    """Read reST; what docutils cannot parse is split at its underlined headings."""
    if len(text) > MAX_CHARS or any(len(line) > MAX_LINE for line in text.split("\n")):
        return underlined_sections(without_markup(text))
    from docutils.core import publish_doctree
    from docutils.utils import SystemMessage

    register(text)
    severe: list[Any] = []
    try:
        tree = publish_doctree(text, settings=_settings())
        severe = [message for message in _messages(tree) if message["level"] >= _SEVERE]
        sections = [] if severe else _Writer().sections(tree)
    # Errors that a parser may raise on an unforeseen text.
    except (SystemMessage, ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
            ValueError):  # fmt: skip
        sections = []
    return sections or underlined_sections(without_markup(text))


def _settings() -> Any:
    settings = _made_settings().copy()
    settings.warning_stream = io.StringIO()
    return settings


@cache
def _made_settings() -> Any:
    """Return docutils' settings: it makes them from its command-line options, which takes 2 ms."""
    from docutils.core import Publisher

    publisher = Publisher("standalone", "restructuredtext", "null")
    publisher.process_programmatic_settings(None, _SETTINGS, None)
    return publisher.settings


def _messages(tree: Any) -> Iterator[Any]:

    yield from tree.findall(nodes.system_message)
    yield from tree.parse_messages


class _Writer:
    def __init__(self) -> None:
        self._outline = Outline()

    def sections(self, tree: Any) -> list[DocumentSection]:
        self._walk(tree, 0)
        return self._outline.sections()

    def _walk(self, parent: Any, level: int) -> None:
        """Write the children of a document, a section or an object; only the first two begin sections."""
        place = self._outline.place
        for node in parent.children:
            kind = node.tagname
            if kind in ("section", "described"):
                heading = _inline(node[0]) if kind == "section" else node["name"]
                self._outline.heading(heading, level + 1)
                self._walk(node, level + 1)
            elif blocks := list(filter(None, _block(node))):
                if self._outline.place != place and place[0]:
                    self._outline.heading(*place)  # the text goes on after an object
                self._outline.add(*blocks)


def _blocks(nodes: Sequence[Any]) -> list[str]:
    return [block for node in nodes for block in _block(node) if block]


def _block(node: Any) -> list[str]:  # noqa: PLR0911, PLR0912 - one line for each kind of node
    kind: str = node.tagname
    children: Any = node.children
    match kind:
        case "paragraph" | "attribution" | "caption" | "term":
            return [_inline(node)]
        case "literal_block" | "doctest_block" | "math_block":
            return [fence(node.astext(), _language(node))]
        case "bullet_list" | "enumerated_list":
            first = node.get("start", 1)
            bullet = kind == "bullet_list"
            items = [item("-" if bullet else f"{n}.", _blocks(li.children)) for n, li in enumerate(children, first)]
            return ["\n".join(filter(None, items))]
        case "definition_list" | "field_list" | "option_list":
            return ["\n".join(definition(*_defined(entry)) for entry in children)]
        case "table":
            return [_table(node)]
        case "line_block":
            return [
                "\n".join(_inline(line) if line.tagname == "line" else "\n".join(_block(line)) for line in children)
            ]
        case "remark":
            return led(node["lead"], _blocks(children))
        case "admonition":
            return led(_inline(children[0]), _blocks(children[1:]))
        case "rubric":
            return [f"**{_inline(node)}**"]
        case "topic" | "sidebar":
            titles = [f"**{_inline(child)}**" for child in children if child.tagname in ("title", "subtitle")]
            return titles + _blocks([child for child in children if child.tagname not in ("title", "subtitle")])
        case "described" | "section":
            name = node["name"] if kind == "described" else _inline(children[0])
            return [f"**{name}**", *_blocks(children if kind == "described" else children[1:])]
        case "system_message":
            return [fence(child.astext()) for child in children if child.tagname == "literal_block"]
        case "footnote" | "citation":
            return [joined(_blocks([child for child in children if child.tagname != "label"]))]
        case _ if kind in LEADS:
            return led(kind.capitalize(), _blocks(children))
        case _ if kind in _SILENT:
            return []
    if not children or any(child.tagname == "#text" for child in children):
        return [_inline(node)]
    return _blocks(children)


def _inline(node: Any) -> str:
    """Return the text of a paragraph, with code between backticks and without footnote marks."""
    return clean_line("".join(_spans(node)))


def _spans(node: Any) -> Iterator[str]:
    for child in node.children:
        if child.tagname == "#text":
            yield child.astext()
        elif child.tagname == "literal":
            yield inline_code(child.astext())
        elif child.tagname == "target":
            yield child.astext()
        elif child.tagname not in ("footnote_reference", "image", "substitution_definition", "system_message"):
            yield from _spans(child)


def _language(node: Any) -> str:
    if node.tagname == "doctest_block":
        return "pycon"
    named = [name for name in node["classes"] if name not in ("code", "default", "none", "text")]
    return named[0] if named and "code" in node["classes"] else ""


def _defined(entry: Any) -> tuple[str, list[str]]:
    term, *_, body = entry.children
    if entry.tagname == "option_list_item":
        return ", ".join(option.astext() for option in term.children), _blocks(body.children)
    if entry.tagname == "field":
        return _inline(term), _blocks(body.children)
    terms = [_inline(child) for child in entry.children if child.tagname == "term"]
    kinds = [_inline(child) for child in entry.children if child.tagname == "classifier"]
    return " : ".join([", ".join(terms), *kinds]), _blocks(body.children)


def _table(node: Any) -> str:
    caption = " ".join(_inline(child) for child in node.children if child.tagname == "title")
    groups = [child for child in node.children if child.tagname == "tgroup"]
    parts = [part for group in groups for part in group.children if part.tagname in ("thead", "tbody")]
    rows = [
        [_cell(entry, part.tagname == "thead") for entry in row.children] for part in parts for row in part.children
    ]
    heads = sum(len(part.children) for part in parts if part.tagname == "thead")
    return table(with_one_header(spread(rows), heads), caption)


def _cell(entry: Any, in_head: bool) -> SpanningCell:
    return SpanningCell(
        " ".join(_blocks(entry.children)), 1 + entry.get("morecols", 0), 1 + entry.get("morerows", 0), in_head
    )


_DIRECTIVE = re.compile(r"^[^\w\n]*(?:\d+\.\s+)?\.\.[ \t]+(?:\|[^|\n]+\|\s+)?([\w:+.-]+?) ?::(?:\s|$)", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:+.-]*):`|`:([A-Za-z][\w:+.-]*):")
_TARGET = re.compile(r"(?s)(.+?)\s*<[^<>]+>\Z")

_NOTES = {"seealso": "See also", "todo": "To do"}
_OBJECTS = frozenset({
    "data", "function", "class", "method", "attribute", "exception", "module", "property", "decorator",
    "staticmethod", "classmethod", "decoratormethod", "type", "var", "member", "macro", "struct", "enum",
    "enumerator", "union", "option", "cmdoption", "envvar", "confval", "setting", "object", "describe",
    "program-option",
    "directive", "role", "concept", "field",
})  # fmt: skip
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
    """An object or setting, `name`, with its description; docutils uses the class's name as the node's."""


class remark(nodes.General, nodes.Element):  # type: ignore[misc]  # the same
    """Paragraphs led in by a word or two, `lead`."""


class _StateMachine(states.NestedStateMachine):  # type: ignore[misc]  # the same
    """Makes only the states that are entered. docutils makes all fifteen for each list, a tenth of its time."""

    def add_states(self, state_classes: Sequence[Any]) -> None:
        self.states = _States(self, state_classes)


class _States(dict[str, Any]):
    def __init__(self, machine: _StateMachine, classes: Sequence[Any]) -> None:
        super().__init__()
        self._machine = machine
        self._classes = {of_state.__name__: of_state for of_state in classes}

    def __missing__(self, name: str) -> Any:
        state = self[name] = self._classes[name](self._machine)
        if hasattr(self._machine, "memo"):  # it runs: states made before are initialised when it starts
            state.runtime_init()
        return state


states.RSTState.nested_sm = _StateMachine


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
            found = []  # its content is in another file
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
    """Register every directive and role in a text, so that docutils accepts it."""
    known = directives._directive_registry  # the public look-up would import what it finds
    for name in {match[1].lower() for match in _DIRECTIVE.finditer(source)}:
        base = name.rpartition(":")[2]
        if name not in known or name in SILENT or base in CODE or base == "class":
            directives.register_directive(name, _Directive)
    for match in _ROLE.finditer(source):
        name = (match[1] or match[2]).lower()
        if name not in ("pep", "rfc", "pep-reference", "rfc-reference"):
            roles.register_local_role(name, _role)
