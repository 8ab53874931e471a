"""Citations in prose: `[S1a2b3c]` while the research runs, `[1]` in texts for people.

A model sees and writes ids only. Ids that were never given are removed here, so no citation can point at anything
that was not retrieved; and so are addresses, so no page can make a model lead a reader, or his browser, to a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from fathom.text.blocks import open_fence

_ID = r"S[0-9a-f]{6,64}"
_UNSEEN = r"[\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_COLON = rf"{_UNSEEN}*(?::|&(?:#0*58|#x0*3a|colon);?){_UNSEEN}*"
_SLASH = rf"(?:[/\\]|&(?:#0*47|#x0*2f|sol|#0*92|#x0*5c|bsol);?){_UNSEEN}*"
_SCHEME = "|".join(rf"{_UNSEEN}*".join(scheme) for scheme in ("https", "http", "ftp", "wss", "ws"))
_FILES = "cc|go|h|js|kt|md|pl|ps|py|rb|rs|sh|ts"  # endings of files, as in `node.js`, that countries have, too
_HOST = (
    rf"(?:[a-z0-9][a-z0-9-]{{0,62}}\.)+(?:(?!{_FILES}|pi)[a-z]{{2}}|com|net|org|edu|gov|info|biz|app|dev|xyz|top|site|"
    r"online|shop|store|club|cloud|tech|live|news|blog|page|link|click|example)\b(?::\d+)?"
)
_REST = r"[^\s<>\"'`)\]]*"
_TARGET = rf"\s*<?\s*{_UNSEEN}*(?:[a-z](?:[a-z0-9+.-]|{_UNSEEN})*{_COLON}|{_SLASH}{_SLASH}|www\.)"
_LEFT_OUT = "(address left out)"
_LINKS = [  # in Markdown and HTML, each with the part that stays
    (r"!\[([^\]\n]{0,1000})\](?:\([^)\n]*(?:\)|$)|\[[^\]\n]*\])", r"\1"),
    (rf"\[([^\]\n]{{0,1000}})\]\({_TARGET}[^)\n]*(?:\)|$)", r"\1"),
    (rf"^[ ]{{0,3}}\[[^\]\n]{{1,1000}}\]:{_TARGET}.*$", ""),
    (r"<[a-z!/][^<>]*\b(?:src|srcset|href|action|data|style|background|poster|on\w+)\s*=[^<>]*>?", ""),
    (r"</?(?:script|style|iframe|object|embed|form|svg|math|link|meta|base)\b[^<>]*>?", ""),
    (r"<[a-z][a-z0-9+.-]{1,31}:[^\s<>]*>", _LEFT_OUT),
    (rf"(?:(?:{_SCHEME}){_COLON}{_SLASH}(?:{_SLASH}|(?=\w))|\bwww\.(?=\w)){_REST}", _LEFT_OUT),
    (rf"(?<![\w:/\\]){_SLASH}{_SLASH}{_HOST}{_REST}", _LEFT_OUT),
]
_LINK_PATTERNS = [(re.compile(pattern, re.IGNORECASE | re.MULTILINE), rest) for pattern, rest in _LINKS]
_BARE = re.compile(rf"(?<![\w@:/\\.$-]){_HOST}/{_REST}", re.IGNORECASE)
_GROUP = re.compile(rf"(?<!\s)\s*\[({_ID}(?:\s*[,;]\s*{_ID})*)\]")
_CITED_BEHIND_ROW = re.compile(rf"(?<!\\)\|((?:\s*\[{_ID}\])+)\s*[.,;]?\s*\Z")
_ROWS_CITED_BEHIND = re.compile(rf"^[ \t>]*(?:[-*+][ \t]+)?\|.*\|(?:[ \t]*\[{_ID}\])+[ \t]*[.,;]?[ \t]*$", re.MULTILINE)
_CITED_FENCE = re.compile(rf"(?P<fence>[ \t>]*(?:`{{3,}}|~{{3,}}))(?P<ids>(?:[ \t]*\[{_ID}\])+)[ \t]*[.,;]?[ \t]*\Z")
_LEADS_TO_NOTHING = re.compile(r"[ \t>]*(?:#|\||```|~~~)")  # a heading, a row, the end of other code
_ENDS_LINE = re.compile(rf"(?:\s*\[{_ID}(?:\s*[,;]\s*{_ID})*\])*[ \t]*[.,;]?[ \t]*(?:\n|\Z)")
# Variants that small models write: other brackets, and ids without an end, which have a digit, unlike words.
_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_SHORT = r"S(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{2,5}"
_MISWRITTEN = re.compile(
    rf"(?P<known>[({{]\s*(?P<id>{_ID})\s*[)}}])|(?<![\w$\\'\"`])(?:\{{{_SHORT}\}}|\[{_SHORT}\])(?![(\w'\"`])"
)


def cited_ids(text: str) -> list[str]:
    """Return the source ids cited in a text, in order of first use, each once."""
    found = (source_id for group in _GROUP.finditer(text) for source_id in re.findall(_ID, group[1]))
    return list(dict.fromkeys(found))


def split_at_citations(text: str) -> list[tuple[str, list[str]]]:
    """Return the parts of a text, each with the ids cited behind it; the part after the last citation has none."""
    found: list[tuple[str, list[str]]] = []
    last = 0
    for group in _GROUP.finditer(text):
        if group.start() > last or not found:
            found.append((text[last : group.start()], []))
        found[-1][1].extend(i for i in re.findall(_ID, group[1]) if i not in found[-1][1])
        last = group.end()
    return [*found, (text[last:], [])] if text[last:] or not found else found


def with_known_ids(text: str, known: Collection[str]) -> str:
    """Return the text without citations of ids that are not known; one pair of square brackets an id.

    Citations behind a row of a table, or alone on the line below it, are moved into its last cell: only there are they
    shown.
    """

    def keep(group: re.Match[str]) -> str:
        kept = [i for i in dict.fromkeys(re.findall(_ID, group[1])) if i in known]
        before = group[0][: group[0].index("[")]
        if "\n" in before and not _ENDS_LINE.match(group.string, group.end()):
            return before + "".join(f"[{i}]" for i in kept)  # it begins the text of its line
        return (" " if group.start() and kept else "") + "".join(f"[{i}]" for i in kept)

    def mend(found: re.Match[str]) -> str:
        if found["known"]:
            return f"[{found['id']}]" if found["id"] in known else found[0] if found[0][0] == "(" else ""
        return ""

    parts = _CODE.split(text)
    parts[::2] = [_MISWRITTEN.sub(mend, part) for part in parts[::2]]
    return _ROWS_CITED_BEHIND.sub(lambda row: in_last_cell(row[0], ""), _GROUP.sub(keep, "".join(parts)))


def cited_above_code(text: str) -> str:
    """Return the text with citations behind a closing fence moved to the line that leads to the code.

    A fence with anything behind it closes nothing: all that follows would be code. Where no line leads to the code,
    they stand in a line of their own below it.
    """
    lines = text.split("\n")
    fence, lead = "", -1
    for number, line in enumerate(lines):
        cited = _CITED_FENCE.match(line) if fence else None
        before, above = fence, lines[number - 1] if number else ""
        fence = open_fence(fence, cited["fence"] if cited else line, above)
        if fence and not before:
            near = [n for n in range(max(number - 2, 0), number) if lines[n].strip()]
            lead = near[-1] if near and not _LEADS_TO_NOTHING.match(lines[near[-1]]) else -1
        if not cited or fence:
            continue
        ids = "".join(f"[{i}]" for i in dict.fromkeys(cited_ids(cited["ids"])) if lead < 0 or i not in lines[lead])
        lines[number] = cited["fence"] if lead >= 0 else f"{cited['fence']}\n\n{ids}"
        if lead >= 0 and ids:
            lines[lead] = f"{lines[lead].rstrip()} {ids}"
    return "\n".join(lines)


def in_last_cell(row: str, said: str) -> str:
    """Return a row of a table with an addition at the end of its last cell, after any citations behind its last bar."""
    cited = _CITED_BEHIND_ROW.search(row)
    row, said = (row[: cited.start() + 1], f" {cited[1].strip()}{said}") if cited else (row.rstrip(), said)
    closed = len(row) > 1 and row.endswith("|") and not row.endswith("\\|")
    return f"{row[:-1].rstrip()}{said} |" if closed else f"{row}{said}"


def without_citations(text: str) -> str:
    """Return the text with every citation removed."""
    return _GROUP.sub("", text)


def without_addresses(text: str) -> str:
    """Return the text without web addresses, images, links and HTML that loads or runs anything; link texts stay."""
    before = ""
    while before != text:  # the rest after one removal may be an address again
        before = text
        for pattern, rest in _LINK_PATTERNS:
            text = pattern.sub(rest, text)
        parts = _CODE.split(text)
        parts[::2] = [_BARE.sub(_LEFT_OUT, part) for part in parts[::2]]  # in code, it may be a name
        text = "".join(parts)
    return text


def number_citations(
    texts: Iterable[str], written: Callable[[str, int], str] = lambda _id, number: f"[{number}]"
) -> tuple[list[str], list[str]]:
    """Replace ids by numbers in order of first use.

    Returns:
        The texts with `[1]`, `[2]`, ..., or the result of `written` for an id and its number, and the ids in that
        order.
    """
    order: dict[str, int] = {}

    def number(group: re.Match[str]) -> str:
        ids = dict.fromkeys(re.findall(_ID, group[1]))
        lead = " " if group[0][0].isspace() else ""
        return lead + "".join(written(i, order.setdefault(i, len(order) + 1)) for i in ids)

    return [_GROUP.sub(number, text) for text in texts], list(order)
