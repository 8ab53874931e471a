"""Forty-eight questions about the closed world by somebody who had not seen the engine, counted once.

A third are full questions, a third are typed as people talk, a third are little more than key words. They were written
from the pages, and ask what the other sets do not ask. Once a rule is made with their failures in view, they show
as little as the others: then write new ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.results import Question
from benchmarks.world.chronicles import KEEPERS
from benchmarks.world.questions import HOME, asked, fact_asked, forms_of, numbered


def unseen_questions() -> list[Question]:
    """Return them, each kind in one row."""
    return numbered([*_facts(), *_made(), *_documented(), *_refused()], prefix="unseen-")


def _facts() -> Iterator[Question]:
    yield fact_asked("fact", "Which naturalist was the first to describe the salt finch?", "salt finch", "named")
    yield fact_asked("fact", "any idea when they opened the marrow span?", "Marrow Span", "opened")
    yield fact_asked("fact", "Halvorsen Tidal products", "Halvorsen Tidal", "makes")
    yield fact_asked("fact", "What does the standard VSN 2204 deal with?", "VSN 2204", "covers")
    yield fact_asked("fact", "karrow freight, what do they actually do", "Karrow Freight", "makes")
    yield fact_asked("fact", "Tollen Arch designer", "Tollen Arch", "architect")
    yield asked(
        "fact",
        "How many eggs does a reed shrike usually lay?",
        (*forms_of("reed shrike", "eggs"), "5 eggs"),
        sources=(HOME["bird"],),
    )
    yield asked(
        "fact",
        "do we know who was the keeper on dunmarra's first lightship",
        KEEPERS["Dunmarra"],
        sources=("town-chronicles.example",),
    )
    yield fact_asked("fact", "Velmark plover nesting site", "Velmark plover", "island")
    yield fact_asked("fact", "In which year did Quillan become a town?", "Quillan", "founded")
    yield fact_asked("number", "What do I have to pay to drive over the Marrow Span?", "Marrow Span", "toll")
    yield fact_asked("number", "how loud is the otter 12? it'd be right next to my bunk", "Otter 12", "noise")
    yield fact_asked("number", "Corvid 60 weight", "Corvid 60", "weight")
    yield fact_asked("number", "How many people work at Brinsey Ropeworks?", "Brinsey Ropeworks", "staff")
    yield fact_asked("number", "what's a ticket from dunmarra to the mainland without a car", "Dunmarra", "fare")
    yield asked(
        "number",
        "VSN 2204 inspection how often",
        (*forms_of("VSN 2204", "interval"), "18 months", "eighteen months"),
        sources=(HOME["standard"],),
    )
    yield asked(
        "number",
        "For how long is the Marlin S under guarantee?",
        (*forms_of("Marlin S", "warranty"), "2 years", "two years"),
    )
    yield fact_asked("number", "Quillan quay length", "Quillan", "quay")
    yield fact_asked("latest", "From which year is the version of VSN 5052 that applies today?", "VSN 5052", "year")
    yield fact_asked("latest", "how many people live in dunmarra these days", "Dunmarra", "population")
    yield asked("latest", "Tidewright newest version", "3.2", sources=("docs.tidewright.example",))
    yield asked(
        "latest",
        "is the old margit still sailing or is there a newer boat?",
        "Northern Lamp",
        sources=("ferry-line.example",),
    )
    yield asked(
        "latest",
        "most recent regatta winner eights",
        ("crew of Aldergate", "Aldergate won", "won by Aldergate", "Aldergate crew"),
        sources=("harbour-times.example",),
    )


def _made() -> Iterator[Question]:
    yearbook, timetable = ("statistics-office.example",), ("ferry-line.example",)
    yield asked("table", "Which of the toll bridges is the newest?", "Wick Causeway", "2004", sources=yearbook)
    yield asked("table", "when's the first boat from karrow over to tessing", "09:15", sources=timetable)
    yield asked(
        "table",
        "ferry Velmouth Karrow duration",
        ("1 h 25 min", "85 min", "85 minutes", "1 hour 25 minutes"),
        sources=timetable,
    )
    yield asked(
        "table",
        "larger employers lowest turnover",
        "Brinsey Ropeworks",
        forms_of("Brinsey Ropeworks", "sales"),
        sources=yearbook,
    )
    yield asked(
        "compare",
        "Which harbour has the longer quay, Tessing or Iskerholm?",
        forms_of("Tessing", "quay"),
        forms_of("Iskerholm", "quay"),
    )
    yield asked(
        "compare",
        "corvid 40 or marlin s, which one has the stronger motor?",
        forms_of("Corvid 40", "power"),
        forms_of("Marlin S", "power"),
    )
    yield asked(
        "compare",
        "ash-backed petrel stone tern discovered first",
        forms_of("ash-backed petrel", "year"),
        forms_of("stone tern", "year"),
        sources=(HOME["bird"],),
    )
    yield asked(
        "compare",
        "do more people work at pellwick dairies or at aldergate ceramics",
        forms_of("Pellwick Dairies", "staff"),
        forms_of("Aldergate Ceramics", "staff"),
    )
    yield asked(
        "compare",
        "Is Aldergate Ceramics an older company than Brinsey Ropeworks?",
        forms_of("Aldergate Ceramics", "founded"),
        forms_of("Brinsey Ropeworks", "founded"),
    )
    yield asked("list", "which places have their market on a thursday?", "Velmouth", "Sorrenhaven")
    yield asked("list", "Which firms have more than 1,000 employees?", "Halvorsen Tidal", "Dunmarra Shipyards")
    yield asked("list", "pumps over 600 litres per minute", "Corvid 60", "Marlin L", "Gannet X")
    yield asked(
        "list",
        "breeding census 2025 species counted",
        "ash-backed petrel",
        "Velmark plover",
        "stone tern",
        "lantern owl",
        sources=(HOME["bird"],),
    )
    yield asked(
        "hops", "How much is the toll on the bridge that Ingrid Vessel designed?", forms_of("Sallow Bridge", "toll")
    )
    yield asked(
        "hops",
        "i want to buy that smoked cheese where it's made, what's the ferry from there to the mainland",
        forms_of("Pellwick", "fare"),
    )
    yield asked("hops", "lighthouse lens manufacturer year of foundation", forms_of("Tessing Optics", "founded"))
    yield asked(
        "hops",
        "How long is the quay of the town where Rufus Bell kept the first lightship?",
        forms_of("Aldergate", "quay"),
    )


def _documented() -> Iterator[Question]:
    manual = ("docs.tidewright.example",)
    yield asked(
        "howto", "my tide gauge is still off after calibrating, how far off before i send it in", "3 cm", sources=manual
    )
    yield asked(
        "howto",
        "Do I have to convert my old constants by hand when I move to Tidewright 3?",
        ("converted at the first start", "at the first start"),
        sources=manual,
    )


def _refused() -> Iterator[Question]:
    yield asked("unknown", "How high is the lighthouse of Karrow?")
    yield asked("unknown", "can i bring my dog on the northern lamp")
    yield asked("unknown", "reed shrike breeding pairs number")
    yield asked("unknown", "what's the penalty if your water pipes break VSN 5052")
    yield asked("elsewhere", "how long do you have to boil an egg so it stays soft")
    yield asked("elsewhere", "Marie Curie second Nobel Prize year")
