"""Reading settings and data: JSON, YAML and TOML become lines `- path.to.key: value`, CSV becomes a table.

Values stay as they are written, as far as the parsers tell: `yes`, `0x1F` and `1_000` are not made into others. What a
comment beside or above a key says stands behind its value: it often has the reason, the unit or the default.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fathom.text.plain import clean_line
from fathom.tools.documents.normal import fence, item, table

ENDINGS = frozenset({".yaml", ".yml", ".json", ".toml", ".csv", ".tsv"})
MAX_DEPTH = 100
MAX_GROWTH = 20  # maximum expansion of a file's lines: aliases can turn a short YAML file into billions of characters
MAX_NODES = 2_000_000  # values, lists and mappings of one file, each counted where it appears
_KEY_ENDS = re.compile(r"[\n=,{\[]")  # beside which the keys of TOML stand
DELIMITERS = "\t;|,"  # the first of equally good ones: a comma is in texts and decimal numbers, too
SAMPLE = 50  # first lines that show the delimiter
_NAMED_DELIMITER = re.compile(r"sep=(.)\n", re.IGNORECASE)  # as Excel writes and reads it
LISTED = 200  # characters of a list of plain values that stand on one line


class _Unfit(ValueError):
    """A file that is not in its format, or exceeds the limits."""


_ERRORS = (ValueError, RecursionError, csv.Error)  # the errors of TOML and JSON are ValueErrors


def read_configuration(ending: str, text: str) -> str:
    """Return the content of a file in the normal form; a file that cannot be parsed stays as it is."""
    try:
        if ending in (".csv", ".tsv"):
            return _table(text)
        lines = _lines(_documents(ending, text), MAX_GROWTH * len(text) + 10_000)
    except _ERRORS:
        return text
    return (lines if ending == ".json" else _commented(lines, _noted(text))) or text


def read_values(ending: str, text: str) -> dict[str, str] | None:
    """Return the texts and lists of texts of a mapping by name; None if the text is no mapping or cannot be parsed."""
    try:
        documents = _documents(ending, text)
    except _ERRORS:
        return None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        return None
    values = {str(name): value for name, value in documents[0].items() if not isinstance(value, Mapping)}
    lists = {name: value if isinstance(value, list) else [value] for name, value in values.items()}
    return {
        name: ", ".join(map(_text, held[:LISTED]))
        for name, held in lists.items()
        if not any(isinstance(one, Mapping | list) for one in held)
    }


def _documents(ending: str, text: str) -> list[Any]:
    """Return the content of a text in JSON, TOML or YAML.

    Raises:
        one of `_ERRORS`: it is not of its kind.
    """
    if ending == ".json":
        return [json.loads(text, parse_float=str, parse_int=str, parse_constant=str)]
    if ending == ".toml":
        if any(part.count(".") > MAX_DEPTH for part in _KEY_ENDS.split(text)):  # takes the square of their number
            raise _Unfit("nested too deeply")
        return [tomllib.loads(text, parse_float=str)]
    return list(_yaml_documents(text))


def _yaml_documents(text: str) -> Iterator[Any]:
    """Yield each document as mappings, lists and the text of values; nothing is constructed from tags.

    The function reads events, because building a tree in C (`CSafeLoader`) ends the process on deep nesting.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C, where that could be built
    anchors: dict[str, Any] = {}
    room = MAX_NODES  # for keys that mappings take from others: each could take all that the one before it has
    open_nodes: list[tuple[Any, list[Any]]] = []  # a mapping or list, with what it holds so far
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent):
                anchors, open_nodes = {}, [([], [])]
            elif isinstance(event, yaml.DocumentEndEvent):
                yield from open_nodes[0][1]
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                if len(open_nodes) > MAX_DEPTH:
                    raise _Unfit("nested too deeply")
                node: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                open_nodes[-1][1].append(node)
                open_nodes.append((node, []))
                anchors |= {event.anchor: node} if event.anchor else {}
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                room = _fill(*open_nodes.pop(), room)
            elif isinstance(event, yaml.ScalarEvent):
                open_nodes[-1][1].append(event.value)
                anchors |= {event.anchor: event.value} if event.anchor else {}
            elif isinstance(event, yaml.AliasEvent):
                open_nodes[-1][1].append(anchors.get(event.anchor, f"*{event.anchor}"))
    except yaml.YAMLError as error:
        raise _Unfit(str(error)) from error


def _fill(node: Any, held: list[Any], room: int) -> int:
    """Put what a mapping or list holds into it; return what is left of the room for keys of other mappings.

    Raises:
        _Unfit: nothing is.
    """
    if isinstance(node, list):
        node.extend(held)
        return room
    for key, value in zip(held[::2], held[1::2], strict=True):
        if key == "<<":  # merges other mappings, whose keys apply unless the mapping has its own
            for other in value if isinstance(value, list) else [value]:
                if isinstance(other, dict):
                    room -= len(other)
                    if room < 0:
                        raise _Unfit("too large")
                    node |= {name: one for name, one in other.items() if name not in node}
        else:
            node[key if isinstance(key, str) else json.dumps(key)] = value
    return room


def _lines(documents: list[Any], limit: int) -> str:
    """Return a line for each value; documents are apart.

    Raises:
        _Unfit: the lines hold more than `limit` characters, or there are too many values.
    """
    texts: list[str] = []
    nodes = 0
    for document in documents:
        lines: list[str] = []
        waiting = [("", document, 0)]
        while waiting:
            path, value, depth = waiting.pop()
            nodes += 1
            if depth > MAX_DEPTH or nodes > MAX_NODES:
                raise _Unfit("too large, or nested too deeply")
            below = _children(path, value)
            if below is None:
                lines.append(_leaf(path, value))
                limit -= len(lines[-1])
            else:
                waiting += [(name, one, depth + 1) for name, one in reversed(below)]
                limit -= len(below)
            if limit < 0:
                raise _Unfit("too large")
        texts.append("\n".join(filter(None, lines)))
    return "\n\n".join(filter(None, texts))


_COMMENT = re.compile(r"""\"(?:\\.|[^"\\])*+(?:\"|\Z)|'[^']*'|(?:\s|\A)#(?P<said>.*)""")
_KEY = re.compile(r"""\s*(?:- +)*(?P<key>"[^"]*"|'[^']*'|[^\s=:#\[\]{},"'-][^=:#]{0,200}?)\s*[=:](?:\s|\Z)""")
_SECTION = re.compile(r"\s*\[+\s*(?P<key>[^\[\]#]+?)\s*\]")
_BLOCK = re.compile(r"[:-] +[|>][-+\d]*\s*(?:#.*)?\Z")  # begins a text of several lines in YAML
_ITEM = re.compile(r"- (?P<path>[^\s:]+): ")
_PLACE = re.compile(r"\[\d+\]")


class _Noted(NamedTuple):
    """A key as the file has it, with what comments say of it; no key: of the last one; an empty one: of nothing."""

    key: str | None
    comment: str = ""


def _noted(text: str) -> Iterator[_Noted]:
    """Yield the keys of YAML or TOML in their order, with the comments above and beside them; texts have none."""
    above: list[str] = []
    indented, quoted = -1, ""
    for line in text.split("\n"):
        margin = len(line) - len(line.lstrip())
        if quoted or 0 <= indented < margin:
            quoted = "" if quoted and quoted in line else quoted
            continue
        indented = -1 if line.strip() else indented
        said = next((found["said"] for found in _COMMENT.finditer(line) if found["said"] is not None), "")
        comment = clean_line(said) if re.search(r"\w", said) else ""
        if line.lstrip().startswith("#"):
            above += [comment] if comment else []
            continue
        own = _SECTION.match(line) or _KEY.match(line)
        if above and not own:
            yield _Noted("", " ".join(above))
        if own:
            beside = [" ".join(above), comment]
            yield _Noted(own["key"].strip("\"'").rpartition(".")[2], "; ".join(filter(None, beside)))
        elif comment:
            yield _Noted(None, f"{clean_line(line.removesuffix(f'#{said}').strip(' -,'))}: {comment}")
        above = []
        indented = margin if _BLOCK.search(line) else indented
        quoted = next((mark for mark in ('"""', "'''") if line.count(mark) % 2), "")
    if above:
        yield _Noted("", " ".join(above))


def _commented(lines: str, noted: Iterable[_Noted]) -> str:
    """Return lines with comments: behind the value of a key; as a paragraph before a group, or where none is known."""
    written = lines.split("\n")
    paths = [_PLACE.sub("", found["path"]).split(".") if (found := _ITEM.match(line)) else [] for line in written]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for number, path in enumerate(paths):
        for name in set(path):
            places[name].append(number)
    behind: defaultdict[int, list[str]] = defaultdict(list)
    before: defaultdict[int, list[str]] = defaultdict(list)
    last, ahead = -1, 0
    for key, comment in noted:
        at = last
        if key is not None:
            known = places.get(key, [])
            place = bisect_left(known, ahead)
            at = known[place] if place < len(known) else -1
        if at >= 0:
            last, ahead = at, max(ahead, at + (paths[at][-1] == key))
        if comment and at >= 0:
            is_of_group = key is not None and paths[at][-1] != key
            (before if is_of_group else behind)[at].append(comment)
        elif comment:
            before[ahead].append(comment)
    parts: list[str] = []
    for number, line in enumerate(written):
        parts += ["\n{}\n".format("\n\n".join(before[number]))] if before[number] else []
        parts.append(f"{line} # {'; '.join(behind[number])}" if behind[number] else line)
    parts += [f"\n{text}" for text in before[len(written)]]
    return "\n".join(parts).strip("\n")


def _children(path: str, value: Any) -> list[tuple[str, Any]] | None:
    """Return the children of a value, with their paths; None if it stands on one line."""
    if isinstance(value, Mapping) and value:
        return [(f"{path}.{key}" if path else str(key), one) for key, one in value.items()]
    if isinstance(value, list) and value:
        if all(not isinstance(one, Mapping | list) for one in value) and path:
            texts = [_text(one) for one in value[:LISTED]]
            if len(value) <= LISTED and sum(map(len, texts)) <= LISTED and not any("\n" in text for text in texts):
                return None
        return [(f"{path}[{n}]", one) for n, one in enumerate(value)]
    return None


def _leaf(path: str, value: Any) -> str:
    text = ", ".join(map(_text, value)) if isinstance(value, list) and value else _text(value)
    name = clean_line(path)
    if not name:
        return item("-", [text])
    if "\n" in text.strip():
        return item("-", [f"{name}:", fence(text)])
    return f"- {name}: {clean_line(text)}".rstrip()


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, list | Mapping):
        return "[]" if isinstance(value, list) else "{}"
    return str(value)


def _table(text: str) -> str:
    """Return a table; its delimiter is the one that divides most of the first lines into as many cells."""
    named = _NAMED_DELIMITER.match(text)
    text = text[named.end() :] if named else text
    lines = [line for line in text.lstrip("\n").split("\n", SAMPLE)[:SAMPLE] if line.strip()]
    delimiter = named[1] if named else max(DELIMITERS, key=lambda one: _evenness(lines, one))
    if not any(delimiter in line for line in lines):
        raise _Unfit("no columns")
    return table(list(csv.reader(text.splitlines(keepends=True), delimiter=delimiter, skipinitialspace=True)))


def _evenness(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    """Return how many lines have the most frequent number of cells above one, and that number."""
    widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=True) if len(row) > 1)
    width, times = max(widths.items(), key=lambda counted: (counted[1], counted[0]), default=(0, 0))
    return times, width
