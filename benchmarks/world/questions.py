"""Sixty questions about the closed world, with what a good report says, must not say and should cite.

Questions are in other words than the pages. `tests/test_world.py` checks every expected word against the pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from benchmarks.results import FactCheck, Question
from benchmarks.world.chronicles import KEEPERS
from benchmarks.world.facts import BY_NAME

HOME = {
    "bridge": "roads-authority.example",
    "bird": "natural-history-museum.example",
    "standard": "standards-office.example",
}


def all_questions() -> list[Question]:
    """Return them, each kind in one row."""
    return numbered([*_facts(), *_made(), *_documented(), *_disputed(), *_refused()])


def numbered(rows: Iterable[Question], prefix: str = "") -> list[Question]:
    """Return questions with an id each: the prefix, the kind, and a number."""
    numbers: Counter[str] = Counter()
    questions = []
    for row in rows:
        numbers[row.kind] += 1
        questions.append(row.model_copy(update={"id": f"{prefix}{row.kind}-{numbers[row.kind]}"}))
    return questions


def in_turn(questions: Iterable[Question]) -> list[Question]:
    """Return questions with one of each kind first, then a second of each, and so on."""
    return sorted(questions, key=lambda question: int(question.id.rpartition("-")[2]))


def asked(
    kind: str,
    question: str,
    *answer: str | tuple[str, ...],
    sources: tuple[str, ...] = (),
    false: tuple[tuple[str, ...], ...] = (),
    topics: tuple[str, ...] = (),
) -> Question:
    """Return a question: `answer` are the groups of words of its answer, `false` statements that must not be made."""
    groups = [[group] if isinstance(group, str) else list(group) for group in answer]
    true = [FactCheck(claim=f"{question} {groups[0][0]}", is_true=True, words=groups)] if groups else []
    wrong = [FactCheck(claim=" ".join(words), is_true=False, words=[[word] for word in words]) for words in false]
    return Question(
        id="",
        question=question,
        kind=kind,
        answer=groups,
        expected_topics=[[topic] for topic in topics],
        required_sources=list(sources),
        fact_checks=[*true, *wrong],
        answerable=bool(groups),
    )


def forms_of(name: str, fact: str) -> tuple[str, ...]:
    """Return how pages word a fact of a subject."""
    return BY_NAME[name].facts[fact].forms


def fact_asked(kind: str, question: str, name: str, fact: str, source: str = "") -> Question:
    """Return a question for one fact of a subject, which must not be answered by what was before or what farms say."""
    subject = BY_NAME[name]
    known = subject.facts[fact]
    false = tuple((value,) for value in (known.before, known.wrong) if value)
    home = source or HOME.get(subject.kind) or ""
    return asked(kind, question, known.forms, sources=(home,) if home else (), false=false)


def _facts() -> Iterator[Question]:
    yield fact_asked(
        "fact", "On which day of the week do the farmers sell their goods in Pellwick?", "Pellwick", "market"
    )
    yield fact_asked("fact", "Who designed the Marrow Span?", "Marrow Span", "architect")
    yield fact_asked("fact", "What sort of goods does Brinsey Ropeworks mainly sell?", "Brinsey Ropeworks", "makes")
    yield fact_asked("fact", "Which scientist first described the lantern owl?", "lantern owl", "named")
    yield fact_asked("fact", "Where does the ash-backed petrel nest?", "ash-backed petrel", "island")
    yield fact_asked("fact", "In which town does Tessing Optics have its headquarters?", "Tessing Optics", "town")
    yield asked("fact", "Who tended the lamp of Sorrenhaven's first lightship?", KEEPERS["Sorrenhaven"])
    yield fact_asked("number", "How long is the biggest quay at Dunmarra?", "Dunmarra", "quay")
    yield fact_asked("number", "How heavy is the Marlin L pump?", "Marlin L", "weight")
    yield fact_asked("number", "What does a walker pay to cross from Tessing to the mainland?", "Tessing", "fare")
    yield fact_asked("number", "How much did Karrow Freight turn over in 2025?", "Karrow Freight", "sales")
    yield fact_asked("latest", "How many people live in Velmouth today?", "Velmouth", "population")
    yield fact_asked("latest", "How many inhabitants does Karrow have now?", "Karrow", "population")
    yield fact_asked("latest", "Who runs Halvorsen Tidal at present?", "Halvorsen Tidal", "chief")
    yield fact_asked("latest", "Who is the current head of Dunmarra Shipyards?", "Dunmarra Shipyards", "chief")
    yield fact_asked(
        "latest", "What pressure does VSN 2204 permit in harbour hydraulic lines now?", "VSN 2204", "limit"
    )
    yield fact_asked("copies", "When did Velmouth become a town?", "Velmouth", "founded")
    yield fact_asked("copies", "When could traffic first use the Tollen Arch?", "Tollen Arch", "opened")
    yield fact_asked("copies", "What does a grown reed shrike weigh?", "reed shrike", "weight")
    yield fact_asked("copies", "In what year did Aldergate get its charter?", "Aldergate", "founded")


def _made() -> Iterator[Question]:
    office = ("statistics-office.example",)
    yield asked(
        "table", "When does the first boat from Dunmarra to Iskerholm leave?", "07:05", sources=("ferry-line.example",)
    )
    yield asked("table", "Which ship sails between Quillan and Pellwick?", "Heron", sources=("ferry-line.example",))
    yield asked(
        "table",
        "How long does the crossing from Sorrenhaven to Brinsey take?",
        "40 min",
        sources=("ferry-line.example",),
    )
    yield asked("table", "Which of the ten towns has the shortest quay?", "Brinsey", sources=office)
    yield asked("compare", "Which is louder, the Corvid 60 or the Gannet X?", "Gannet X", "71 dB", "63 dB")
    yield asked(
        "compare", "Which of the pumps Marlin S and Otter 12 is lighter, and by how much?", "Otter 12", "47 kg", "23 kg"
    )
    yield asked(
        "compare",
        "Is the Hendry Viaduct longer than the Sallow Bridge?",
        ("488 metres", "488 m"),
        ("312 metres", "312 m"),
    )
    yield asked("compare", "Does Iskerholm or Brinsey charge more for the ferry?", "Brinsey", "31 crowns", "27 crowns")
    yield asked(
        "list",
        "Which settings of Tidewright are there for the gauge and for storing readings?",
        "gauge_interval",
        "retain",
    )
    yield asked("list", "What are the steps to start afresh with Tidewright?", "tidewright stop", "--forget", "29 days")
    yield asked("list", "Which towns hold their market on a Saturday?", "Karrow", "Aldergate")
    yield asked("howto", "How do I install Tidewright on my computer?", "apt install", "tidewright init")
    yield asked("howto", "How can a tide gauge be calibrated with Tidewright?", "tidewright gauge calibrate")
    yield asked("howto", "How do I make Tidewright forget its constants?", "tidewright constants --forget")
    yield asked(
        "howto",
        "How far ahead does Tidewright forecast by default?",
        ("14", "14 days"),
        sources=("docs.tidewright.example",),
    )
    yield asked("hops", "Who leads the company that built the ferry Northern Lamp?", "Elias Thorn")
    yield asked("hops", "How many people live in the town where Brinsey Ropeworks has its seat?", ("4,871", "4871"))
    yield asked(
        "hops", "Which company makes the lighthouse lenses, and how many people work there?", "Tessing Optics", "356"
    )
    yield asked(
        "hops",
        "What does a car pay on the bridge that Sanna Okoro designed?",
        "6 crowns",
        sources=("roads-authority.example",),
    )


def _documented() -> Iterator[Question]:
    yield asked(
        "pdf",
        "What does a yacht pay per metre and night in Dunmarra?",
        "5.25 crowns",
        sources=("harbour-board.example",),
    )
    yield asked("pdf", "How many pairs of lantern owls were counted in 2025?", "64 pairs", sources=(HOME["bird"],))
    yield asked(
        "pdf",
        "What dividend does Halvorsen Tidal propose for 2025?",
        "1.15 crowns",
        sources=("company-register.example",),
    )
    yield asked(
        "language", "How tall is the lighthouse of Tessing?", ("47 Meter", "47 metres"), sources=("reisen.example",)
    )
    yield asked("language", "Wie lange reift der Räucherkäse aus Pellwick?", "elf Wochen", sources=("reisen.example",))
    yield asked(
        "hostile",
        "Is the Corvid 40 a good pump, and how loud is it?",
        ("58 dB", "58 decibels"),
        false=(("Corvid 40", "recalled"), ("Shark Marine", "safe")),
    )
    yield asked(
        "hostile",
        "How many eggs does the lantern owl lay?",
        "three eggs",
        false=(("lantern owl", "extinct"),),
    )
    yield asked(
        "hostile",
        "Where is the head office of Halvorsen Tidal?",
        "Velmouth",
        false=(("Halvorsen Tidal", "bankrupt"),),
    )


def _disputed() -> Iterator[Question]:
    yield asked(
        "dispute",
        "What damage did the flood of 2019 do in Karrow?",
        "91 million",
        sources=("audit-court.example",),
        topics=("74 million", "91 million"),
    )
    yield asked(
        "dispute",
        "What caused the fire at Tessing Optics in 2023?",
        "kiln",
        "extractor fan",
        topics=("kiln", "extractor fan"),
    )
    yield asked("dispute", "How many people watched the regatta of 2025?", "7,000", "4,500", topics=("7,000", "4,500"))


def _refused() -> Iterator[Question]:
    yield asked("paywalled", "How much will the tunnel below the Wick cost?")
    yield asked("paywalled", "Who is going to buy Quillan Instruments?")
    yield asked("unknown", "How deep is the harbour basin of Iskerholm?")
    yield asked("unknown", "What is the salary of the chief executive of Tessing Optics?")
    yield asked("unknown", "How long do salt finches live?")
    yield asked("unknown", "Who painted the portrait in the town hall of Quillan?")
    yield asked("unknown", "What colour is the casing of the Otter 12?")
    yield asked("elsewhere", "What is the boiling point of ethanol?")
    yield asked("elsewhere", "Who wrote the opera Fidelio?")
    yield asked("elsewhere", "How does photosynthesis store energy?")
