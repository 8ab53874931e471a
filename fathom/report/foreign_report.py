"""A Markdown file of another system as one of Fathom's reports, so that it is checked and shown like those.

Of the export of a chat, what the person wrote is the question, and what the model wrote is the report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fathom.models import Report, ReportSection
from fathom.report.foreign import Cited, read_markdown, without_between
from fathom.report.foreign_lists import headings, level_of, title_of
from fathom.report.foreign_marks import LISTED
from fathom.text.plain import clean_line, clean_text
from fathom.text.sentences import fences

QUESTION_CHARS = 2_000
_MATTER = re.compile(r"\A---[ \t]*\n((?:[^\n]*\n){0,60}?)---[ \t]*(?:\n|\Z)")
_MATTER_TITLE = re.compile(r"^title[ \t]*:[ \t]*[\"']?([^\n]+?)[\"']?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_PERSON = r"you|user|human|me|prompt|question|query|frage|du|nutzer"
_MODEL = (
    r"chatgpt|gpt[\w. -]{0,12}|assistant|claude[\w. -]{0,16}|gemini[\w. -]{0,16}|copilot|perplexity|grok[\w. -]{0,8}|"
    r"deepseek|mistral|ai|bot|model|llm|response|answer|antwort"
)
_SAID = r"(?: said| asked| wrote| says| replied)?"
_WHEN = r"(?:[ \t]*\([^()\n]{1,60}\))?"
_SPEAKER = re.compile(  # a heading, a line in bold or one with a colon
    rf"^[ \t]*(?:\#{{1,6}}[ \t]+(?:[^\w\s\#]+[ \t]*)?(?:{_PERSON}|(?P<titled>{_MODEL})){_SAID}:?{_WHEN}:?[ \t]*"
    rf"|\*\*(?:[^\w\s*]+[ \t]*)?(?:{_PERSON}|(?P<bold>{_MODEL})){_SAID}"
    rf"(?:{_WHEN}:\*\*|\*\*{_WHEN}:(?P<after>[ \t].*)?|\*\*{_WHEN}[ \t]*)(?P<behind>(?<=:\*\*)[ \t].*)?"
    rf"|(?:{_PERSON}|(?P<named>{_MODEL})){_SAID}{_WHEN}:(?P<rest>[ \t].*)?)$",
    re.MULTILINE | re.IGNORECASE,
)


class Foreign(NamedTuple):
    """A report of another system, not checked yet, and what its citations were read from."""

    report: Report
    cited: Cited


def report_of(text: str, name: str) -> Foreign:
    """Return the report in the text of a file that is called `name`, without its ending."""
    text = clean_text(text)
    matter = _MATTER.match(text)
    stated = _MATTER_TITLE.search(matter[1]) if matter else None
    text = text[matter.end() :] if matter else text
    for tag in ("think", "thinking"):
        text = without_between(text, f"<{tag}>", f"</{tag}>")
    question, text = _turns(text)
    cited = read_markdown(text, generous=True)
    # Where the text cites less than half of its list, the rest is what its uncited sections go by.
    sources = [*cited.sources, *(cited.spare if len(cited.spare) > len(cited.sources) else [])]
    title, sections = _sections(cited.body)
    title = clean_line(stated[1] if stated else "") or title or clean_line(question)[:120] or name
    report = Report(
        title=title,
        query=clean_line(question)[:QUESTION_CHARS] or title,
        extractive=False,
        sections=sections,
        sources=[
            source.model_copy(update={"url": cited.addresses[source.source_id].removeprefix(LISTED)})
            for source in sources
        ],
    )
    return Foreign(report, cited)


def _turns(text: str) -> tuple[str, str]:
    """Return what the person first wrote in a chat, and what the model wrote; nothing and the text of any other."""
    labels = _outside_code(text, list(_SPEAKER.finditer(text)))
    spoken = [bool(one["titled"] or one["bold"] or one["named"]) for one in labels]
    if not labels or spoken[0] or True not in spoken:
        return "", text
    ends = [*(label.start() for label in labels[1:]), len(text)]
    beside = [label["after"] or label["behind"] or label["rest"] or "" for label in labels]
    said = [f"{b}{text[label.end() : end]}".strip() for b, label, end in zip(beside, labels, ends, strict=True)]
    answers = [turn for turn, by_model in zip(said, spoken, strict=True) if by_model]
    return re.sub(r"[>#*`]", "", said[0]).strip(), "\n\n".join([text[: labels[0].start()].strip(), *answers]).strip()


def _sections(body: str) -> tuple[str, list[ReportSection]]:
    """Return the title of a report, empty if it has none, and its sections, each with all that is below it."""
    found = _outside_code(body, headings(body))
    title = ""
    tops = [one for one in found if level_of(one) == 1]
    if found and tops == found[:1] and not body[: found[0].start()].strip():
        title = _plain(title_of(found[0]))
        body = body[found[0].end() :]
        found = _outside_code(body, headings(body))
    level = min(map(level_of, found), default=0)
    tops = [one for one in found if level_of(one) == level]
    borders = [*(one.start() for one in tops), len(body)]
    parts = [("", body[: borders[0]])]
    parts += [(_plain(title_of(one)), body[one.end() : end]) for one, end in zip(tops, borders[1:], strict=True)]
    sections = [
        ReportSection(heading=heading or "…", markdown=markdown.strip())
        for heading, markdown in parts
        if markdown.strip()
    ]
    if not sections:
        return title, []
    first = sections[0]  # it is shown as the answer, without its heading
    above = "" if first.heading == "…" else f"### {first.heading}\n\n"
    return title, [ReportSection(heading="", markdown=f"{above}{first.markdown}"), *sections[1:]]


def _outside_code(text: str, found: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    code = [(fence.start, fence.end) for fence in fences(text)]
    return [one for one in found if not any(start <= one.start() < end for start, end in code)]


def _plain(heading: str) -> str:
    return clean_line(re.sub(r"\[S[0-9a-f]{6,64}\]|[*`]", "", heading))
