"""What changed between two runs, as Markdown, as a page in the look of the report, and in one line.

Its texts come from pages and models and are not trusted: they are cleaned and escaped like the report's texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jinja2 import Template
from markupsafe import Markup

from fathom.changes.model import Change, Changes, Kind, Place, Statement
from fathom.models import Answered
from fathom.report.html import cleaned, pages_in, policy
from fathom.report.quotations import escaped
from fathom.text.plain import clean_line
from fathom.text.urls import at_text, linkable
from fathom.text.wording import ENGLISH, Wording, wording

HEADINGS: dict[Kind, str] = {
    "changed": "Changed",
    "disputed": "Contradicted now",
    "settled": "Not contradicted any more",
    "new": "New",
    "gone": "Gone",
}
"""The kinds of changes, in the order in which they are shown."""
_MEANING: dict[Kind, str] = {
    "changed": "The sources give another value now.",
    "disputed": "A source contradicts this now; none did before.",
    "settled": "The source that contradicted this does not any more.",
    "new": "Nothing that the earlier run read says this.",
    "gone": "Its sources were read again and do not say this any more.",
}
_UNREAD = "Not known: sources not read this time"
_FOLDER = Path(__file__).parent / "templates"


def summary_of(changes: Changes, words: Wording = ENGLISH) -> str:
    """Return the counts in one line: `2 changed, 1 new, 14 unchanged`."""
    if changes.lost:
        claims = words.counted(changes.before.claims, "claim")
        return words("no report this time; the one before had {claims}", claims=claims)
    counts = [(len(changes.of(kind)), heading.lower()) for kind, heading in HEADINGS.items()]
    parts = [words(f"{{number}} {heading}", number=number) for number, heading in counts if number]
    if not parts:
        compared = changes.unchanged or not changes.unread
        parts = [words("nothing changed") if compared else words("no claim could be compared")]
    if changes.regained:
        parts.insert(0, words("a report again"))
    return words.listed([*parts, words("{number} unchanged", number=changes.unchanged)])


def answered_line(changes: Changes, words: Wording = ENGLISH) -> str:
    """Return whether the question was and is answered, if that changed; else nothing."""
    was, now = (_answered(run.answered) for run in (changes.before, changes.after))
    return words("The question was {was}; now it is {now}.", was=words(was), now=words(now)) if was != now else ""


def render_changes(changes: Changes) -> str:
    """Render the comparison as Markdown."""
    return "\n\n".join(_markdown(changes)) + "\n"


def render_changes_html(changes: Changes) -> str:
    """Render the comparison as one page that needs nothing else and lets nothing else in."""
    changes = Changes.model_validate(cleaned(changes.model_dump(mode="json")))
    words = wording(changes.language)
    style = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("report.css", "changes.css"))
    return _template().render(
        changes=changes,
        words=words,
        summary=words.sentences([summary_of(changes, words)]),
        answered=answered_line(changes, words),
        unmentioned=_unmentioned(changes, words),
        groups=[(kind, HEADINGS[kind], _MEANING[kind], changes.of(kind)) for kind in HEADINGS if changes.of(kind)],
        unread_heading=_UNREAD,
        style=Markup(style),  # noqa: S704 - files of this package
        policy=policy(style),
    )


def _answered(answered: Answered | None) -> str:
    return (answered.doubt or "answered") if answered else "without a report"


@cache
def _template() -> Template:
    environment = pages_in(_FOLDER)
    environment.filters.update(linkable=linkable, at_text=at_text)
    return environment.get_template("changes.html.j2")


def _unmentioned(changes: Changes, words: Wording) -> str:
    if changes.unmentioned == 1:
        return words("1 more of the earlier report still holds, though the later one does not mention it.")
    if not changes.unmentioned:
        return ""
    said = "{number} more of the earlier report still hold, though the later one does not mention them."
    return words(said, number=changes.unmentioned)


def _markdown(changes: Changes) -> Iterator[str]:
    words = wording(changes.language)
    yield f"# {words('What changed: {query}', query=escaped(clean_line(changes.query)))}"
    before, after = (
        words("{date} (run {run})", date=run.started[:10], run=f"`{run.run_id[:8]}`")
        for run in (changes.before, changes.after)
    )
    between = words("From {before} to {after}", before=before, after=after)
    yield words("{head}: {text}", head=between, text=f"**{summary_of(changes, words)}**") + words.stop
    if answered := answered_line(changes, words):
        yield answered
    for kind, heading in HEADINGS.items():
        if found := changes.of(kind):
            yield f"## {words(heading)}\n\n{words(_MEANING[kind])}"
            yield "\n".join(line for change in found for line in _change(change, words))
    if changes.unread:
        yield f"## {words(_UNREAD)}"
        yield "\n".join(f"- {_said(said, words)}" for said in changes.unread)
    for heading, places in (("New sources", changes.sources_new), ("Sources not read again", changes.sources_gone)):
        if places:
            yield f"## {words(heading)}\n\n" + "\n".join(f"- {_place(place)}" for place in places)


def _change(change: Change, words: Wording) -> Iterator[str]:
    values = "; ".join(f"{_line(d.before) or '–'} → {_line(d.after) or '–'}" for d in change.differences)
    note = f" {_line(change.note)}" if change.note else ""
    if change.before and change.after:
        yield f"- **{values or words('another statement')}**{note}"
        for head, side in (("before", change.before), ("now", change.after)):
            yield f"  - {words('{head}: {text}', head=words(head), text=_said(side, words))}"
    elif said := change.after or change.before:
        yield f"- {_said(said, words)}{note}"
        if change.kind in ("disputed", "settled"):
            against = words("against it")
            for passage in said.passages:
                yield f"  - {words('{head}: {text}', head=against, text=_line(passage))}"


def _said(said: Statement, words: Wording) -> str:
    return words("{head} ({note})", head=_line(said.sentence), note=words.listed(map(_place, said.sources)))


def _line(text: str) -> str:
    return escaped(clean_line(text))


def _place(place: Place) -> str:
    title = _line(place.title or place.url).replace("[", "(").replace("]", ")")
    address = linkable(place.url).replace("(", "%28").replace(")", "%29")
    return f"[{title}]({address})" if address else title
