"""The pages about each subject: its own site, an encyclopedia, news and copies, farms of copied text, old pages."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.world.facts import SUBJECTS, Subject
from benchmarks.world.pages import Block, Page, heading, paragraph
from benchmarks.world.wordings import FACTS, FILLERS

_HOMES = {
    "town": "{slug}.example",
    "bridge": "roads-authority.example",
    "firm": "{slug}.example",
    "pump": "{maker}-pumps.example",
    "bird": "natural-history-museum.example",
    "standard": "standards-office.example",
}
_SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "town": {"History": ("founded",), "Harbour": ("quay", "fare"), "Living here": ("population", "market")},
    "bridge": {"Construction": ("architect", "span"), "Traffic": ("opened", "toll")},
    "firm": {"Beginnings": ("founded", "makes"), "The company today": ("town", "sales"), "People": ("staff", "chief")},
    "pump": {"In use": ("flow", "noise"), "Data": ("power", "weight"), "Buying": ("price", "warranty")},
    "bird": {"Appearance": ("weight",), "Breeding": ("eggs", "island"), "Discovery": ("named", "year")},
    "standard": {"Scope": ("covers",), "Requirements": ("limit", "interval"), "Editions": ("year",)},
}
_NEWS = {
    "town": "{n} plans for the next ten years",
    "bridge": "A closer look at the {n}",
    "firm": "{n} looks back on a busy year",
    "pump": "Tried out: the {n}",
    "bird": "Wardens count the {n} again",
    "standard": "What {n} means for owners",
}


class Writer:
    """Words of one page: which wording it takes follows from its address."""

    def __init__(self, address: str) -> None:
        self._random = random.Random(address)
        self._left: dict[str, list[str]] = {}

    def fact(self, subject: Subject, name: str, *, value: str = "", old: bool = False) -> str:
        """Return a sentence that states a fact, with another value than the true one where one is given."""
        wordings = FACTS[f"{subject.kind}.{name}{'.before' if old else ''}"]
        said = value or (subject.facts[name].before if old else self._random.choice(subject.facts[name].forms))
        sentence = self._random.choice(wordings).format(n=subject.name, v=said)
        return sentence[0].upper() + sentence[1:]

    def fillers(self, kind: str, count: int) -> list[str]:
        """Return sentences that state no fact: none twice, as long as there are others."""
        found: list[str] = []
        for _ in range(count):
            if not (pool := self._left.get(kind)):
                pool = self._left[kind] = self.order(FILLERS[kind])
            found.append(pool.pop())
        return found

    def order(self, names: Sequence[str]) -> list[str]:
        """Return names in an order of the page's own."""
        return self._random.sample(list(names), len(names))


def subject_pages() -> Iterator[Page]:
    """Yield the pages about all subjects."""
    for subject in SUBJECTS:
        yield _home(subject)
        yield _encyclopedia(subject)
        news = _news(subject)
        yield news
        if sum(map(ord, subject.slug)) % 2:
            yield replace(news, host="newswire-daily.example", title=f"{news.title} - Newswire Daily", kind="copy")
        yield from _farms(subject)
        if any(fact.before for fact in subject.facts.values()):
            yield _outdated(subject)


def _home(subject: Subject) -> Page:
    host = _HOMES[subject.kind].format(slug=subject.slug, maker=subject.name.split()[0].lower())
    writer = Writer(f"{host}/{subject.slug}")
    blocks: list[Block] = [paragraph(*writer.fillers(subject.kind, 2))]
    for section, names in _SECTIONS[subject.kind].items():
        blocks.append(heading(section))
        for name in names:
            before, after = writer.fillers(subject.kind, 2)
            blocks.append(paragraph(before, writer.fact(subject, name), after))
    return Page(host, subject.slug, subject.name, "primary", tuple(blocks), "2025-09-01")


def _encyclopedia(subject: Subject) -> Page:
    writer = Writer(f"encyclopedia/{subject.slug}")
    names = writer.order(list(subject.facts))
    half = len(names) // 2
    blocks = (
        paragraph(*[writer.fact(subject, name) for name in names[:half]], *writer.fillers(subject.kind, 1)),
        heading("Background"),
        paragraph(*writer.fillers(subject.kind, 3)),
        paragraph(*[writer.fact(subject, name) for name in names[half:-1]], *writer.fillers(subject.kind, 2)),
    )
    return Page(
        "encyclopedia.example",
        f"wiki/{subject.slug}",
        f"{subject.name} - Encyclopedia",
        "reference",
        blocks,
        "2025-06-15",
    )


def _news(subject: Subject) -> Page:
    writer = Writer(f"news/{subject.slug}")
    names = writer.order(list(subject.facts))[:3]
    first, *others = writer.fillers(subject.kind, 6)
    blocks = (
        paragraph(first, writer.fact(subject, names[0]), *others[:1]),
        paragraph(*others[1:4], writer.fact(subject, names[1])),
        paragraph(*others[4:], writer.fact(subject, names[2])),
    )
    title = _NEWS[subject.kind].format(n=subject.name)
    return Page("harbour-times.example", f"2025/{subject.slug}", title, "news", blocks, "2025-10-12")


def _farms(subject: Subject) -> Iterator[Page]:
    """Yield a list of a farm and its copies, which repeat the error where there is one."""
    wrong = {name: fact for name, fact in subject.facts.items() if fact.wrong}
    if not wrong and sum(map(ord, subject.slug)) % 3:
        return
    writer = Writer(f"farm/{subject.slug}")
    stated = [writer.fact(subject, name, value=fact.wrong) for name, fact in wrong.items()]
    blocks = (
        paragraph(*writer.fillers("spam", 2)),
        paragraph(f"Here is what you must know about {subject.name}!", *stated, *writer.fillers(subject.kind, 1)),
        paragraph(*writer.fillers("spam", 3)),
    )
    title = f"10 amazing facts about {subject.name}"
    page = Page("amazing-facts.example", f"lists/{subject.slug}", title, "farm", blocks, "2025-11-02")
    yield page
    for host in ("top-ten-lists.example", "know-it-now.example") if wrong else ():
        yield replace(page, host=host, title=f"{subject.name}: ten facts that will surprise you")


def _outdated(subject: Subject) -> Page:
    writer = Writer(f"old/{subject.slug}")
    old = [name for name, fact in subject.facts.items() if fact.before]
    blocks = (
        paragraph(*writer.fillers(subject.kind, 2)),
        paragraph(*[writer.fact(subject, name, old=True) for name in old], *writer.fillers(subject.kind, 2)),
    )
    title = f"{subject.name} - The Gazetteer of 2016"
    return Page("old-gazetteer.example", f"2016/{subject.slug}", title, "outdated", blocks, "2016-04-20")
