"""A report in Markdown, as any system writes it, taken apart: its text with Fathom's source ids, and what it cites.

Read are links in the text (`([Title](https://...))`, as gpt-researcher writes them), numbers with a list of sources
(`[1]` or `【1】` and `### Sources`, as open_deep_research and Fathom do), footnotes (`[^1]`) and bare addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from fathom.models import ReportSection, Source
from fathom.text.urls import canonical_url, source_ids

_KINDS_OF_LISTS = (
    r"sources?|references?|bibliography|works cited|citations?|links|quellen|literatur|参考(?:文献|资料)?|来源"
)
_SOURCES = re.compile(
    rf"(?:\d+[.)]?\s+)?(?:{_KINDS_OF_LISTS})(?:\W+(?:and|cited|used|consulted|list|notes|further|reading|{_KINDS_OF_LISTS}))*\W*\Z",
    re.IGNORECASE,
)
_HEADING = re.compile(
    rf"^(#{{1,6}})\s+(.*?)\s*#*\s*$|^\*\*([^*\n]{{3,60}}):?\*\*:?\s*$|^({_KINDS_OF_LISTS}):\s*$",
    re.MULTILINE | re.IGNORECASE,
)
_CODE = re.compile(r"(^```.*?(?:^```|\Z)|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_URL = r"https?://[^\s<>\"'`\]】]+"
_IN_LINK = r"https?://(?:[^\s<>\"'`()]|\([^\s()]*\))++"  # parentheses in pairs
_LISTED = re.compile(rf"^\s*(?:[-*+]\s*)?(?:\[?\^?(\d{{1,3}})[\].):]|【(\d{{1,3}})】)[^\n]*?({_URL})", re.MULTILINE)
_FOOTNOTE = re.compile(rf"^ {{0,3}}\[\^?([^\]\s]+)\]:[^\n]*?({_URL})[^\n]*$", re.MULTILINE)
_TEXT = r"(?:[^\[\]\n\\]|\\.|\[[^\[\]\n]*\]){0,500}+"
_LINK = re.compile(rf"\[({_TEXT})\]\(\s*<?({_IN_LINK})>?(?:\s+\"[^\"]*\")?\s*\)")
_ONE = rf"(?:\[{_TEXT}\]\(\s*<?{_IN_LINK}>?(?:\s+\"[^\"]*\")?\s*\)|<?{_IN_LINK}>?)"
_ASIDE = re.compile(  # citations in brackets of their own, which no link's address is
    rf"(?<!\])\(\s*(?:(?:see|via|cf|sources?)\W*\s)?{_ONE}(?:\s*+(?:[,;]\s*+)?(?:and\s+)?{_ONE})*+\s*\)", re.IGNORECASE
)
_IMAGE = re.compile(rf"!\[{_TEXT}\]\([^)\n]*\)")
_BARE = re.compile(rf"<?({_URL})>?")
_MARKER = re.compile(r"\[\^?(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\](?!\()|【(\d{1,3})(?:†[^】]*)?】|\[\^([^\]\s]+)\]")
_OF_A_CITATION = re.compile(r"\W*(?:\d{1,3}|source|link|here)?\W*\Z", re.IGNORECASE)
_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # around the number of a source until all are known; no text has them
_PLACE = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


@dataclass
class Cited:
    """A report taken apart. `dangling`: markers that lead to no source."""

    sections: list[ReportSection]
    sources: list[Source]
    dangling: list[str] = field(default_factory=list)


def read_markdown(text: str) -> Cited:
    """Return a report's sections, citing sources by id, and the sources that they cite, in order of first use.

    Addresses in code are no citations, and pictures are left out.
    """
    body, listed = _without_sources(_PLACE.sub("", text))
    dangling: list[str] = []
    used: dict[str, int] = {}

    def cite(url: str) -> str:
        return f"{_OPEN}{used.setdefault(comparable(_clean(url)), len(used))}{_CLOSE}"

    def of_aside(found: re.Match[str]) -> str:
        return "".join(cite(url) for url in dict.fromkeys(re.findall(_IN_LINK, found[0])))

    def of_link(found: re.Match[str]) -> str:
        # A title that stands in the sentence is a part of it.
        return cite(found[2]) if _OF_A_CITATION.match(found[1]) else f"{found[1]} {cite(found[2])}"

    def of_marker(found: re.Match[str]) -> str:
        cited = []
        for name in _names(found[1] or found[2] or found[3]):
            if name in listed:
                cited.append(cite(listed[name]))
            elif not found[3] or not found[3].isalpha():
                dangling.append(name)
        return "".join(cited)

    def with_places(part: str) -> str:
        part = _LINK.sub(of_link, _ASIDE.sub(of_aside, _IMAGE.sub("", part)))
        return _MARKER.sub(of_marker, _BARE.sub(lambda found: cite(found[1]), part))

    parts = _CODE.split(body)
    parts[::2] = map(with_places, parts[::2])
    addresses = [*used]
    ids = source_ids(addresses)
    body = _PLACE.sub(lambda found: f"[{ids[addresses[int(found[1])]]}]", "".join(parts))
    sources = [Source(source_id=ids[url], url=url, title="", kind="web") for url in addresses]
    return Cited(_sections(body), sources, dangling)


def comparable(url: str) -> str:
    """Return an address as it is compared: what one system writes as `%28`, another writes as a parenthesis."""
    return canonical_url(unquote(url))


def _without_sources(text: str) -> tuple[str, dict[str, str]]:
    """Return a report without its list of sources, and the addresses in that list by number or name."""
    listed: dict[str, str] = {}
    for name, url in _FOOTNOTE.findall(text):
        listed.setdefault(name, _clean(url))
    text = _FOOTNOTE.sub("", text)
    kept: list[str] = []
    position = 0
    headings = _headings(text)
    for number, found in enumerate(headings):
        if found.start() < position or not _SOURCES.match(_title(found)):
            continue
        below = (one.start() for one in headings[number + 1 :] if _level(one) <= _level(found))
        end = next(below, len(text))
        for one, other, url in _LISTED.findall(text[found.end() : end]):
            listed.setdefault(one or other, _clean(url))
        kept.append(text[position : found.start()])
        position = end
    return "".join([*kept, text[position:]]), listed


def _sections(body: str) -> list[ReportSection]:
    sections: list[ReportSection] = []
    position, heading = 0, ""
    for found in [*_headings(body), None]:
        end = found.start() if found else len(body)
        if part := body[position:end].strip():
            sections.append(ReportSection(heading=heading, markdown=part))
        if found:
            position, heading = found.end(), _title(found)
    return sections


def _headings(text: str) -> list[re.Match[str]]:
    """Return the headings; a line of code is none."""
    code = [found.span() for found in _CODE.finditer(text)]
    return [one for one in _HEADING.finditer(text) if not any(start < one.start() < end for start, end in code)]


def _title(heading: re.Match[str]) -> str:
    return str(heading[2] or heading[3] or heading[4] or "")


def _level(heading: re.Match[str]) -> int:
    return len(heading[1]) if heading[1] else 7


def _names(text: str) -> list[str]:
    """Return the numbers of a marker such as `1, 3-5`, or the name of a footnote."""
    names: list[str] = []
    for part in re.split(r"\s*[,;]\s*", text):
        if span := re.fullmatch(r"(\d+)\s*[–-]\s*(\d+)", part):
            names += map(str, range(int(span[1]), int(span[2]) + 1))
        else:
            names.append(part)
    return names


def _clean(url: str) -> str:
    """Return an address without the punctuation that follows it in a text."""
    url = url.rstrip(".,;:!?*_")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:")
    return url
