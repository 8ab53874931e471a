"""Long pages with one fact deep inside: the chronicles of the towns, and a forum in which nobody knows for sure."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.world.facts import BIRDS, PUMPS, TOWNS
from benchmarks.world.pages import Block, Page, heading, paragraph
from benchmarks.world.subjects import Writer

KEEPERS = {
    "Velmouth": "Dorothea Lamm",
    "Karrow": "Simon Adder",
    "Tessing": "Ulla Brandt",
    "Iskerholm": "Jasper Noon",
    "Dunmarra": "Tilda Crane",
    "Pellwick": "Ewan Sloe",
    "Sorrenhaven": "Petra Vance",
    "Aldergate": "Rufus Bell",
    "Brinsey": "Mina Sorley",
    "Quillan": "Axel Drum",
}
"""Who kept the first lightship of each town; only its chronicle says so."""

_WHO = (
    "The council",
    "A merchant of the upper town",
    "The harbour master",
    "The rope makers' guild",
    "The parish",
    "A widow",
    "The customs office",
)
_DID = (
    "bought",
    "repaired",
    "gave away",
    "quarrelled over",
    "lost in a fire",
    "measured",
    "sold by auction",
    "painted",
)
_WHAT = (
    "the old crane",
    "two sloops",
    "a bell for the fish hall",
    "the weigh house",
    "forty barrels of tar",
    "the school roof",
    "a walled garden",
)
_THEN = (
    "and the matter was not spoken of again.",
    "which the records mention only in passing.",
    "to the surprise of the neighbouring villages.",
    "and a supper was held on the quay.",
    "although the winter had been a hard one.",
    "and the costs were shared among the ship owners.",
)


def long_pages() -> Iterator[Page]:
    """Yield the chronicles, and the threads of the forum."""
    for town in TOWNS:
        chance = random.Random(f"chronicle/{town.slug}")
        blocks: list[Block] = []
        years = sorted(chance.sample(range(1700, 1990), 60))
        deep = chance.randrange(35, 52)
        for number, year in enumerate(years):
            if number % 12 == 0:
                blocks.append(heading(f"From {year}"))
            happened = [
                f"{chance.choice(_WHO)} {chance.choice(_DID)} {chance.choice(_WHAT)}, {chance.choice(_THEN)}"
                for _ in range(2)
            ]
            kept = (
                f"The first lightship of {town.name} was moored off the bar, and {KEEPERS[town.name]} kept its lamp."
                if number == deep
                else ""
            )
            blocks.append(paragraph(f"{year}.", happened[0], *filter(None, [kept]), happened[1]))
        title = f"Chronicle of {town.name}"
        yield Page("town-chronicles.example", town.slug, title, "reference", tuple(blocks), "2018-01-01")
    for subject in (*PUMPS, *BIRDS):
        writer = Writer(f"forum/{subject.slug}")
        asked = f"Does anyone have figures for the {subject.name}? I could not find the leaflet."
        answers = (f"{sentence} But do not quote me." for sentence in writer.fillers(subject.kind, 3))
        yield Page(
            "forum.islander.example",
            f"t/{subject.slug}",
            f"{subject.name}? - Islander forum",
            "guide",
            (paragraph(asked), *(paragraph(answer) for answer in answers)),
            "2023-02-02",
        )
