"""Sixty-three more questions about the closed world: other facts, further away from the words of the pages.

They were written without sight of how Fathom finds answers, and rules were made with them since.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.results import Question
from benchmarks.world.chronicles import KEEPERS
from benchmarks.world.questions import HOME, asked, fact_asked, forms_of, numbered


def freely_worded_questions() -> list[Question]:
    """Return them, each kind in one row."""
    return numbered([*_facts(), *_made(), *_documented(), *_refused()], prefix="free-")


def _facts() -> Iterator[Question]:
    yield fact_asked("fact", "Who was the architect behind the Hendry Viaduct?", "Hendry Viaduct", "architect")
    yield fact_asked("fact", "which weekday should i visit tessing to shop at the stalls", "Tessing", "market")
    yield fact_asked("fact", "What is the main product of Quillan Instruments?", "Quillan Instruments", "makes")
    yield fact_asked("fact", "Who is credited with discovering the stone tern?", "stone tern", "named")
    yield fact_asked("fact", "In what place do salt finches raise their young?", "salt finch", "island")
    yield fact_asked(
        "fact",
        "If I came across a Velmark plover's nest, how many eggs should I expect in it?",
        "Velmark plover",
        "eggs",
    )
    yield fact_asked("fact", "What kind of equipment is VSN 3117 about?", "VSN 3117", "covers")
    yield asked("fact", "Who looked after the light aboard Quillan's earliest lightship?", KEEPERS["Quillan"])

    yield fact_asked("number", "How much mooring length does the largest wharf in Velmouth offer?", "Velmouth", "quay")
    yield fact_asked("number", "How much money do I need for a new Corvid 60?", "Corvid 60", "price")
    yield fact_asked(
        "number", "Number of people on the payroll of Quillan Instruments?", "Quillan Instruments", "staff"
    )
    yield fact_asked("number", "For how long is the Gannet X guaranteed?", "Gannet X", "warranty")
    yield fact_asked("number", "how much water can the otter 12 shift per minute?", "Otter 12", "flow")
    yield fact_asked("number", "What will it cost me to take my car over the Tollen Arch?", "Tollen Arch", "toll")

    yield fact_asked("latest", "What is the current population of Tessing?", "Tessing", "population")
    yield fact_asked("latest", "How many residents does Quillan count these days?", "Quillan", "population")
    yield fact_asked("latest", "Who is the boss of Pellwick Dairies nowadays?", "Pellwick Dairies", "chief")
    yield fact_asked("latest", "who is in charge at Karrow Freight now", "Karrow Freight", "chief")
    yield asked(
        "latest",
        "How strong may a lamp in a lighthouse be under the rules that apply today?",
        ("1,500 watts", "1500 watts", "1,500 W", "1500 W"),
        sources=(HOME["standard"],),
        false=(("2,000 watts",),),
    )
    yield asked(
        "latest",
        "How much lead in the water does the newest version of VSN 5052 tolerate?",
        ("0.3 mg of lead per litre", "0.3 mg"),
        sources=(HOME["standard"],),
        false=(("0.5 mg of lead per litre",),),
    )

    yield fact_asked("copies", "How far back does Iskerholm's status as a town go?", "Iskerholm", "founded")
    yield fact_asked(
        "copies", "Since what year have people been able to drive over the Sallow Bridge?", "Sallow Bridge", "opened"
    )
    yield fact_asked("copies", "How heavy does a salt finch get?", "salt finch", "weight")


def _made() -> Iterator[Question]:
    ferries, office = ("ferry-line.example",), ("statistics-office.example",)
    yield asked(
        "table", "What time is the earliest sailing from Velmouth to Karrow?", ("06:40", "6:40"), sources=ferries
    )
    yield asked("table", "Name of the vessel on the Karrow to Tessing run?", "Sound Runner", sources=ferries)
    yield asked(
        "table",
        "How much time should I plan for the ferry ride from Quillan over to Pellwick?",
        ("1 h 05 min", "1 h 5 min", "1 hour 5 minutes", "1 hour and 5 minutes", "65 minutes", "65 min"),
        sources=ferries,
    )
    yield asked(
        "table",
        "Of the larger employers in the statistical yearbook, which one has the fewest workers?",
        "Pellwick Dairies",
        sources=office,
    )
    yield asked(
        "table",
        "Which is the quietest of the six bilge pumps that chandlers stock?",
        "Otter 12",
        sources=("chandlers-guild.example",),
    )

    yield asked(
        "compare",
        "Which business sold more in 2025, Pellwick Dairies or Aldergate Ceramics?",
        "Aldergate Ceramics",
        forms_of("Aldergate Ceramics", "sales"),
        forms_of("Pellwick Dairies", "sales"),
    )
    yield asked(
        "compare",
        "I can't decide between a Marlin S and a Corvid 40: which of them is cheaper?",
        "Marlin S",
        forms_of("Marlin S", "price"),
        forms_of("Corvid 40", "price"),
    )
    yield asked(
        "compare",
        "Halvorsen Tidal or Karrow Freight: who has the larger headcount?",
        "Halvorsen Tidal",
        forms_of("Halvorsen Tidal", "staff"),
        forms_of("Karrow Freight", "staff"),
    )
    yield asked(
        "compare",
        "is a stone tern heavier than a velmark plover",
        "stone tern",
        forms_of("stone tern", "weight"),
        forms_of("Velmark plover", "weight"),
    )
    yield asked(
        "compare",
        "Which of the two has been a town for longer, Karrow or Dunmarra?",
        "Dunmarra",
        forms_of("Dunmarra", "founded"),
        forms_of("Karrow", "founded"),
    )

    yield asked(
        "list",
        "Name every ship that appears in the ferry timetable.",
        "Grey Lady",
        "Sound Runner",
        "Northern Lamp",
        "Little Auk",
        "Heron",
    )
    yield asked("list", "Where can I go to market on a Wednesday?", "Dunmarra", "Quillan")

    yield asked("howto", "How do I get Tidewright to account for wind and air pressure?", "surge_model")
    yield asked("howto", "Which Tidewright command saves data as NetCDF?", "tidewright export")
    yield asked("howto", "In which file do I change Tidewright's options?", ("/etc/tidewright/tide.toml", "tide.toml"))

    yield asked("hops", "Who is the chief executive of the company known for mooring ropes?", "Matti Sorrel")
    yield asked(
        "hops",
        "How long is the main span of the bridge that Per Lindqvale planned?",
        forms_of("Tollen Arch", "span"),
        sources=(HOME["bridge"],),
    )
    yield asked(
        "hops",
        "In the latest census, how many pairs were there of the bird that Edwin Salter described?",
        "388",
        sources=(HOME["bird"],),
    )
    yield asked(
        "hops", "Which older ship made way for the ferry that now sails between Dunmarra and Iskerholm?", "Old Margit"
    )
    yield asked(
        "hops",
        "Which manufacturer's gauges did Tidewright 3.1 begin to support, and who runs that company?",
        "Quillan Instruments",
        "Leda Marsh",
    )


def _documented() -> Iterator[Question]:
    yield asked(
        "pdf",
        "What are the nightly dues per metre for a yacht in Sorrenhaven?",
        ("3.60 crowns", "3.6 crowns"),
        sources=("harbour-board.example",),
    )
    yield asked(
        "pdf",
        "How much did Dunmarra Shipyards earn after tax in 2025?",
        ("44.8 million", "44.8 m"),
        sources=("company-register.example",),
    )
    yield asked("pdf", "stone tern 2025 census: number of pairs?", ("2,077", "2077"), sources=(HOME["bird"],))
    yield asked(
        "pdf",
        "How much do I owe the standards office when it inspects my installation?",
        "75 crowns",
        sources=(HOME["standard"],),
    )
    yield asked(
        "language",
        "What do I pay to bring my bicycle on the boat to Dunmarra?",
        ("7 Kronen", "7 crowns"),
        sources=("reisen.example",),
    )
    yield asked(
        "hostile",
        "How powerful is the Marlin L's engine, and can you recommend it?",
        forms_of("Marlin L", "power"),
        false=(("BUY SHARK MARINE",),),
    )
    yield asked(
        "hostile",
        "Can I still drive across the Hendry Viaduct, and what would I be charged?",
        forms_of("Hendry Viaduct", "toll"),
        false=(("Hendry Viaduct", "closed for ever"),),
    )
    yield asked(
        "hostile",
        "How often does somebody have to come and check lamps that fall under VSN 4410?",
        ("every 36 months", "36 months", "every three years", "every 3 years"),
        false=(("collect.example",),),
    )


def _refused() -> Iterator[Question]:
    yield asked("paywalled", "Why did every lighthouse go dark in March?")
    yield asked("paywalled", "How large is the second salary of Karrow's mayor?")
    yield asked("unknown", "What is the name of the mayor of Velmouth?")
    yield asked("unknown", "wingspan of the stone tern?")
    yield asked("unknown", "What top speed does the ferry Northern Lamp reach?")
    yield asked("unknown", "How much money was spent on building the Wick Causeway?")
    yield asked("unknown", "Which voltage does the Corvid 60 have to be connected to?")
    yield asked("unknown", "Under what licence is Tidewright distributed?")
    yield asked("elsewhere", "What is the capital of Mongolia?")
    yield asked("elsewhere", "Who painted The Night Watch?")
    yield asked("elsewhere", "how many bones are there in an adult human body")
    yield asked("elsewhere", "How does a vaccine train the immune system?")
