"""Sixty-four more questions about the closed world, written without sight of how Fathom finds answers.

A third are full questions, a third are typed as people talk, a third are little more than key words. Since then,
rules for comparisons and hops and the limits of the headings were made with their failures in view: `unseen.py` has
newer ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.results import Question
from benchmarks.world.chronicles import KEEPERS
from benchmarks.world.facts import BY_NAME
from benchmarks.world.questions import HOME, asked, fact_asked, forms_of, numbered


def held_out_questions() -> list[Question]:
    """Return them, each kind in one row."""
    return numbered([*_facts(), *_made(), *_documented(), *_disputed(), *_refused()], prefix="held-")


def _wrong(name: str, fact: str) -> tuple[str]:
    return (BY_NAME[name].facts[fact].wrong,)


def _facts() -> Iterator[Question]:
    yield fact_asked("fact", "Which engineer was responsible for the Sallow Bridge?", "Sallow Bridge", "architect")
    yield fact_asked("fact", "any idea when pellwick dairies got started", "Pellwick Dairies", "founded")
    yield fact_asked("fact", "breeding grounds of the reed shrike", "reed shrike", "island")
    yield fact_asked("fact", "What does Aldergate Ceramics produce?", "Aldergate Ceramics", "makes")
    yield fact_asked(
        "fact", "thinking of going to the market in sorrenhaven, what day is it on", "Sorrenhaven", "market"
    )
    yield fact_asked("fact", "lantern owl year of first description", "lantern owl", "year")
    yield asked(
        "fact",
        "How frequently does a ferry gangway have to be inspected under VSN 3117?",
        (*forms_of("VSN 3117", "interval"), "12 months", "every year", "once a year", "annually"),
        sources=(HOME["standard"],),
    )
    yield asked("fact", "first lightship at Brinsey, name of the keeper", KEEPERS["Brinsey"])

    yield fact_asked("number", "How many kilowatts does the motor of the Gannet X have?", "Gannet X", "power")
    yield fact_asked("number", "I'm thinking of getting a Marlin L, how much is it", "Marlin L", "price")
    yield fact_asked("number", "weight of the lantern owl", "lantern owl", "weight")
    yield fact_asked("number", "What were the sales of Tessing Optics in 2025?", "Tessing Optics", "sales")
    yield fact_asked(
        "number",
        "any idea how much the boat from sorrenhaven to the mainland is if you don't bring a car",
        "Sorrenhaven",
        "fare",
    )
    yield asked(
        "number",
        "Wick Causeway span length",
        (*forms_of("Wick Causeway", "span"), "1140 metres", "1140 m"),
        sources=(HOME["bridge"],),
    )

    yield fact_asked("latest", "What was the most recent population count for Iskerholm?", "Iskerholm", "population")
    yield fact_asked("latest", "who's the ceo of aldergate ceramics these days", "Aldergate Ceramics", "chief")
    yield fact_asked("latest", "Sorrenhaven number of inhabitants", "Sorrenhaven", "population")
    yield fact_asked("latest", "Who currently heads Tessing Optics?", "Tessing Optics", "chief")
    yield fact_asked("latest", "how many people are there in pellwick now, roughly", "Pellwick", "population")
    yield fact_asked("latest", "VSN 3117 maximum load", "VSN 3117", "limit")

    yield asked(
        "copies",
        "Which place was granted town rights first, Velmouth or Iskerholm, and in what years?",
        "Velmouth",
        forms_of("Velmouth", "founded"),
        forms_of("Iskerholm", "founded"),
        false=(_wrong("Velmouth", "founded"), _wrong("Iskerholm", "founded")),
    )
    yield asked(
        "copies",
        "so how heavy are they, the reed shrike and the salt finch",
        forms_of("reed shrike", "weight"),
        forms_of("salt finch", "weight"),
        sources=(HOME["bird"],),
        false=(_wrong("reed shrike", "weight"), _wrong("salt finch", "weight")),
    )
    yield asked(
        "copies",
        "Sallow Bridge and Tollen Arch opening year",
        forms_of("Sallow Bridge", "opened"),
        forms_of("Tollen Arch", "opened"),
        sources=(HOME["bridge"],),
        false=(_wrong("Sallow Bridge", "opened"), _wrong("Tollen Arch", "opened")),
    )


def _made() -> Iterator[Question]:
    ferries, office = ("ferry-line.example",), ("statistics-office.example",)
    manual = ("docs.tidewright.example",)
    yield asked(
        "table",
        "What is the duration of the ferry trip between Dunmarra and Iskerholm?",
        ("2 h 10 min", "2 hours 10 minutes", "2 hours and 10 minutes", "130 minutes", "130 min"),
        sources=ferries,
    )
    yield asked("table", "when's the first boat in the morning from sorrenhaven to brinsey", "11:30", sources=ferries)
    yield asked("table", "ship on the Velmouth Karrow route", "Grey Lady", sources=ferries)
    yield asked("table", "which of the toll bridges is the oldest one", "Marrow Span", sources=office)
    yield asked("table", "company with the highest turnover 2025", "Dunmarra Shipyards", sources=office)

    yield asked(
        "compare",
        "Does the Corvid 60 or the Marlin L come with the longer guarantee?",
        "Marlin L",
        forms_of("Marlin L", "warranty"),
        forms_of("Corvid 60", "warranty"),
    )
    yield asked(
        "compare",
        "my boat takes on water, would a corvid 40 or a marlin s get it out faster",
        "Corvid 40",
        forms_of("Corvid 40", "flow"),
        forms_of("Marlin S", "flow"),
    )
    yield asked(
        "compare",
        "stone tern vs ash-backed petrel clutch size",
        (*forms_of("stone tern", "eggs"), "2 eggs"),
        (*forms_of("ash-backed petrel", "eggs"), "1 egg"),
    )
    yield asked(
        "compare",
        "Is the longest quay in Karrow longer than the one in Sorrenhaven?",
        forms_of("Karrow", "quay"),
        forms_of("Sorrenhaven", "quay"),
    )
    yield asked(
        "compare",
        "who's been around longer, karrow freight or quillan instruments",
        "Quillan Instruments",
        forms_of("Quillan Instruments", "founded"),
        forms_of("Karrow Freight", "founded"),
    )

    yield asked("list", "friday markets which towns", "Iskerholm", "Brinsey")
    yield asked(
        "list",
        "Which bridges in the archipelago charge a toll?",
        "Sallow Bridge",
        "Hendry Viaduct",
        "Marrow Span",
        "Tollen Arch",
        "Wick Causeway",
    )

    yield asked(
        "howto", "How much memory must a computer have to run Tidewright?", ("512 MB", "512 megabytes"), sources=manual
    )
    yield asked("howto", "how do i get tidewright to forecast a whole month ahead", "horizon_days", sources=manual)
    yield asked("howto", "tidewright default data retention", ("90 days", "90"), sources=manual)

    yield asked(
        "hops",
        "In which year was the company founded that builds tidal turbines?",
        forms_of("Halvorsen Tidal", "founded"),
    )
    yield asked(
        "hops",
        "tomas arkwell designed some bridge, when did that one open",
        forms_of("Hendry Viaduct", "opened"),
        sources=(HOME["bridge"],),
    )
    yield asked(
        "hops",
        "weight of the bird named by Clara Wedmore",
        forms_of("ash-backed petrel", "weight"),
        sources=(HOME["bird"],),
    )
    yield asked(
        "hops",
        "how many people live in the town that won the eights at the 2025 regatta",
        forms_of("Aldergate", "population"),
        false=((BY_NAME["Aldergate"].facts["population"].before,),),
    )
    yield asked(
        "hops",
        "What is the price of the bilge pump that has the most powerful motor?",
        "Gannet X",
        forms_of("Gannet X", "price"),
    )


def _documented() -> Iterator[Question]:
    yield asked(
        "pdf",
        "What was the net profit of Halvorsen Tidal in 2025?",
        ("29.4 million", "29.4 m"),
        sources=("company-register.example",),
    )
    yield asked(
        "pdf",
        "what do they charge me if I'm late paying the harbour dues",
        "12 crowns",
        sources=("harbour-board.example",),
    )
    yield asked("pdf", "Quillan yacht dues per metre", "3.15 crowns", sources=("harbour-board.example",))
    yield asked(
        "pdf",
        "Dunmarra Shipyards dividend 2025",
        ("2.30 crowns", "2.3 crowns"),
        sources=("company-register.example",),
    )
    yield asked(
        "language",
        "range of the lighthouse light at Tessing",
        ("23 Seemeilen", "23 nautical miles", "23 sea miles"),
        sources=("reisen.example",),
    )
    yield asked(
        "hostile",
        "How much revenue did Halvorsen Tidal make in 2025, and does the company still exist?",
        forms_of("Halvorsen Tidal", "sales"),
        false=(("Halvorsen Tidal", "bankrupt"),),
    )
    yield asked(
        "hostile",
        "i'd love to see a lantern owl, where do they breed and are there any left",
        forms_of("lantern owl", "island"),
        false=(("lantern owl", "extinct"),),
    )
    yield asked(
        "hostile",
        "Corvid 40 weight and review",
        forms_of("Corvid 40", "weight"),
        false=(("Corvid 40", "recalled"), ("Shark Marine", "safe")),
    )


def _disputed() -> Iterator[Question]:
    yield asked(
        "dispute",
        "I've seen two different figures for the damage of the 2019 flood in Karrow, why is that",
        "insured houses",
        sources=("audit-court.example",),
        topics=("74 million", "91 million"),
    )


def _refused() -> Iterator[Question]:
    yield asked("paywalled", "in what town was the fault that knocked out the lighthouses in march")
    yield asked("paywalled", "Which company does the Norvane Group intend to take over?")
    yield asked("unknown", "How high is the Hendry Viaduct above the water?")
    yield asked("unknown", "what's the phone number of brinsey ropeworks")
    yield asked("unknown", "Marlin S dimensions")
    yield asked("unknown", "How many pupils attend the schools of Dunmarra?")
    yield asked("unknown", "any idea what velmark plovers eat")
    yield asked("unknown", "Tidewright developer name")
    yield asked("elsewhere", "In which year did the Berlin Wall come down?")
    yield asked("elsewhere", "how do i get red wine out of a carpet")
    yield asked("elsewhere", "largest moon of Saturn")
    yield asked("elsewhere", "who won the football world cup in 98 again")
