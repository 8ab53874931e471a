"""A report in Markdown, as any system writes it, taken apart: its text with Fathom's source ids, and what it cites.

Read are links in the text (`([Title](https://...))`, as gpt-researcher writes them), numbers with a list of sources
(`[1]` or `【1】` and `### Sources`, as open_deep_research and Fathom do), footnotes (`[^1]`) and bare addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fathom.models import ReportSection, Source
from fathom.text.urls import canonical_url, source_ids

_SOURCES = re.compile(
    r"(?:sources?|references?|bibliography|works cited|citations?|links|quellen|literatur|参考(?:文献|资料)?|来源)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$|^\*\*([^*\n]{3,60}):?\*\*\s*$", re.MULTILINE)
_URL = r"https?://[^\s<>\"'`\]】]+"
_LISTED = re.compile(rf"^\s*(?:[-*+]\s*)?(?:\[?\^?(\d{{1,3}})[\].):]|【(\d{{1,3}})】)[^\n]*?({_URL})", re.MULTILINE)
_FOOTNOTE = re.compile(rf"^\[\^([^\]\s]+)\]:[^\n]*?({_URL})[^\n]*$", re.MULTILINE)
_LINK = re.compile(rf"\(?!?\[([^\[\]\n]*)\]\(\s*<?({_URL}?)>?(?:\s+\"[^\"]*\")?\)\)?")
_BARE = re.compile(rf"<?({_URL})>?")
_MARKER = re.compile(r"\[\^?(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\](?!\()|【(\d{1,3})(?:†[^】]*)?】|\[\^([^\]\s]+)\]")
_OF_A_CITATION = re.compile(r"\A(?:\d{1,3}|source|link|here|\W*)\Z", re.IGNORECASE)


@dataclass
class Cited:
    """A report taken apart. `dangling`: markers that lead to no source."""

    sections: list[ReportSection]
    sources: list[Source]
    dangling: list[str] = field(default_factory=list)


def read_markdown(text: str) -> Cited:
    """Return a report's sections, citing sources by id, and the sources that they cite, in order of first use."""
    body, listed = _without_sources(text)
    ids = source_ids(canonical_url(url) for url in [*listed.values(), *(_clean(url) for url in re.findall(_URL, body))])
    dangling: list[str] = []
    used: dict[str, str] = {}

    def cite(url: str) -> str:
        address = canonical_url(_clean(url))
        used.setdefault(ids[address], address)
        return f"[{ids[address]}]"

    def of_link(found: re.Match[str]) -> str:
        # `([Title](address))` is a citation; a title that stands in the sentence is a part of it.
        aside = found[0].startswith("(") or _OF_A_CITATION.match(found[1])
        return cite(found[2]) if aside else f"{found[1]} {cite(found[2])}"

    def of_marker(found: re.Match[str]) -> str:
        cited = []
        for name in _names(found[1] or found[2] or found[3]):
            if name in listed:
                cited.append(cite(listed[name]))
            elif not found[3] or not found[3].isalpha():
                dangling.append(name)
        return "".join(cited)

    body = _MARKER.sub(of_marker, _BARE.sub(lambda found: cite(found[1]), _LINK.sub(of_link, body)))
    sources = [Source(source_id=one, url=url, title="", kind="web") for one, url in used.items()]
    return Cited(_sections(body), sources, dangling)


def _without_sources(text: str) -> tuple[str, dict[str, str]]:
    """Return a report without its list of sources, and the addresses in that list by number or name."""
    listed: dict[str, str] = {}
    for name, url in _FOOTNOTE.findall(text):
        listed.setdefault(name, _clean(url))
    text = _FOOTNOTE.sub("", text)
    kept: list[str] = []
    position = 0
    headings = list(_HEADING.finditer(text))
    for found, following in zip(headings, [*headings[1:], None], strict=True):
        if not _SOURCES.match(found[2] or found[3] or ""):
            continue
        end = following.start() if following else len(text)
        for one, other, url in _LISTED.findall(text[found.end() : end]):
            listed.setdefault(one or other, _clean(url))
        kept.append(text[position : found.start()])
        position = end
    return "".join([*kept, text[position:]]), listed


def _sections(body: str) -> list[ReportSection]:
    sections: list[ReportSection] = []
    position, heading = 0, ""
    for found in [*_HEADING.finditer(body), None]:
        end = found.start() if found else len(body)
        if part := body[position:end].strip():
            sections.append(ReportSection(heading=heading, markdown=part))
        if found:
            position, heading = found.end(), found[2] or found[3]
    return sections


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
