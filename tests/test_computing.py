"""What is computed from values that sources state: comparisons, the greatest of a table, counts, and second hops."""

import json
import os
import re
from pathlib import Path

import pytest

from fathom.evidence.claims import ClaimSentence
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.evidence.words import check
from fathom.extractive.comparisons import comparison_of
from fathom.extractive.critic import reflect
from fathom.extractive.hops import hop_of
from fathom.extractive.tables import from_tables
from fathom.models import Answered, Note, Plan, PlanStep, RunResult, SourceText, Verdict
from fathom.roles import ReflectRequest
from fathom.text.records import records_of
from fathom.text.tables import tables_of
from tests.inprocess import investigated

PRICES = """# Price list

| Tent | Price | Weight |
|---|---|---|
| Ridge 2 | €249 | 2.1 kg |
| Vale 3 | €329 | 3.4 kg |
| Summit 1 | €410 | 1.2 kg |
"""
RELEASES = """# Releases of Kettle

| Version | Date | Notes |
|---|---|---|
| 1.1 | 2024-09-01 | export to CSV |
| 1.2 | 2025-01-15 | dark mode |
| 1.3 | 2025-06-30 | plugins |
"""
STAFF = """# Staff of the club

| Name | Role | Joined | Hours a week | Swims |
|---|---|---|---|---|
| Mira Holt | treasurer | 2021 | 6 | yes |
| Jon Feld | coach | 2018 | 20 | no |
| Ola Brandt | coach | 2023 | 16 | yes |
"""
BOATS = """# Our boats

The Otter weighs 895 kg with its engine. The Otter Mini weighs 249 kg and seats two.
"""
STOCK = """# Stock

| Article | Name | Stock |
|---|---|---|
| H-100 | Hygro Basic | 12 |
| H-200 | Hygro Pro | 3 |
| H-300 | Hygro Max | 5 |
"""
DEVICES = """# Devices

| Asset | Type | Bought | Price EUR |
|---|---|---|---|
| A-01 | Laptop | 2024-03-04 | 1180 |
| A-02 | Laptop | 2023-09-18 | 990 |
| A-03 | Tablet | 2026-05-08 | 410 |
| A-05 | Laptop | 2025-11-02 | 1320 |
"""
MILLS = """# kept by Ida
mills:
  - name: north
    stones:
      - {stone: N1, max_rpm: 120}
      - {stone: N2, max_rpm: 95, note: "cracked in 2024, was 110"}
  - name: south
    stones:
      - {stone: S1, max_rpm: 140}
"""
NETWORK = """# Network parts

| Item | Supplier | Price | Delivery (days) |
|---|---|---|---|
| Access point indoor | Skyline | €145 | 4 |
| Access point outdoor | Skyline | €239 | 12 |
| Firewall | Norlan | €1290 | 14 |
| Patch panel | Norlan | €64 | 3 |
"""
SEATS = """# Plans

- Basic: 9 € a month, 5 seats
- Pro: 29 € to 39 € a month, 35 seats
- Team: 49 € a month, 10 seats
"""
USAGE = """# Use of the plans

| Plan | Customers | Average storage |
|---|---|---|
| Basic | 120 | 3 GB |
| Pro | 35 | 60 GB |
| Team | 12 | 35 GB |
"""
TEAM = """# Team

| Name | Job | Team |
|---|---|---|
| Bea | developer | Engineering |
| Ravi | developer | Engineering |
| Gwen | head of engineering purchases | Sales |
| Hal | clerk | Sales |
"""
COURSES = """# Courses

| Code | Course | Level | Days | Price |
|---|---|---|---|---|
| D1 | Taster Afternoon | beginner | 0.5 | 38 |
| W1 | Women on Water | beginner | 2 | 189 |
| K1 | Competent Crew | beginner | 5 | 545 |
| K4 | Night Sailing | advanced | 1 | 145 |
"""
HOTELS = """# Hotels

We compared three hotels near the lake. All prices are for one night.

| Hotel | Price | Distance to station |
|---|---|---|
| Seeblick | €142 | 1.2 km |
| Alte Post | €98 | 300 m |
| Panorama | €189 | 4.5 km |
"""
MINUTES = """# Minutes of 9 September 2025

The board decided to buy a second boat. The boat is built by Norrland Yard.
"""
YARDS = """# Boat yards

The Norrland Yard is in Sundby. Its head is Greta Wolff.

The Elm Yard is in Hasle. Its head is Sam Dorsey.
"""
FIRMEN = """# Hersteller

Die Firma Nordblech wurde 1954 gegründet und hat 85 Mitarbeiter.

Die Firma Steiner wurde 1920 gegründet und hat 120 Mitarbeiter.
"""
TARIFFS = """# Tariffs

| Tariff | Small boat (up to 6 m) | Large boat (up to 20 m) | Deposit |
|---|---|---|---|
| Harbour | 34 | 210 | 50 |
| Mooring | 29 | 260 | 150 |
"""
LENDING = """# Club house

## Borrowing a tent

1. Enter your name in the list at the counter.
2. Pay the deposit of 20 euros.
3. The tent is handed out on Fridays.

## Keys

Mira Holt keeps the keys.
"""
RECHNUNGEN = """# Rechnungen

| Rechnung | Kunde | Betrag | Status |
|---|---|---|---|
| R-1 | Huber | 1.250,00 € | bezahlt |
| R-2 | Lenz | 480,50 € | offen |
| R-3 | Weil | 2.100,00 € | offen |
"""
VELOS = """# Tarifs

| Vélo | Prix par jour | Caution |
|---|---|---|
| Lumière | 15 € | 100 € |
| Rapide | 24 € | 200 € |
| Montagne | 28 € | 250 € |
"""
OFFICES = """# Offices

The Oslo office opened in 2009 and has 120 employees. Rent is 48,000 crowns a month.

The Bergen office opened in 2016 and has 45 employees. Rent is 21,000 crowns a month.

The Hamar office opened in 2021 and has 18 employees. Rent is 9,500 crowns a month.
"""
CHANGES = """# Changes of Pelican

## 2.0.1

Released 2025-02-11. Mends the import.

## 2.0.0

Released 2025-01-20. Has a new editor.

## 1.10.0

Released 2024-12-01. Searches faster.
"""
_PAGE = "# {}\n\nThe {} is a ferry.\n\n- Built: {}\n- Length: {} m\n- Builder: {}\n"
FERRIES = {
    name: _PAGE.format(name.title(), name.title(), *facts)
    for name, facts in {
        "aurora": (1998, 64, "Holt Yard"),
        "borealis": (2006, 82, "Holt Yard"),
        "cormorant": (1987, 51, "Sund Boatworks"),
    }.items()
}
PARTS = "# Spare parts\n\n| Code | Part | Price EUR | Trade price EUR | Back on |\n|---|---|---|---|---|\n" + "".join(
    f"| P-{n:02} | {'seal' if n % 2 else 'valve'} {chr(65 + n // 8)}{chr(65 + n % 8)} "
    f"| {30 + 7 * n % 61}.50 | {20 + 7 * n % 61}.50 | {f'2027-0{n % 7 + 2}-01' if n % 20 == 3 else ''} |\n"
    for n in range(1, 61)
)
"""Longer than what is quoted whole; of three parts it says when they are back."""
BUILDERS = """# Builders

Holt Yard was founded in 1921 and is run by Ingrid Moe.

Sund Boatworks was founded in 1958. Its head is Karl Brandt.
"""
FILES = {
    **FERRIES,
    "builders": BUILDERS,
    "rechnungen": RECHNUNGEN,
    "velos": VELOS,
    "offices": OFFICES,
    "changes": CHANGES,
    "lending": LENDING,
    "tariffs": TARIFFS,
    "prices": PRICES,
    "releases": RELEASES,
    "staff": STAFF,
    "minutes": MINUTES,
    "yards": YARDS,
    "firmen": FIRMEN,
    "boats": BOATS,
    "courses": COURSES,
    "team": TEAM,
    "seats": SEATS,
    "usage": USAGE,
    "devices": DEVICES,
    "network": NETWORK,
    "stock": STOCK,
    "parts": PARTS,
    "hotels": HOTELS,
    "mills.yaml": MILLS,
}


async def _asked(root: Path, question: str, *names: str) -> RunResult:
    docs = root / "docs"
    docs.mkdir()
    for name in names:
        (docs / (name if "." in name else f"{name}.md")).write_text(FILES[name], encoding="utf-8")
    os.environ["FATHOM_CACHE"] = str(root / "cache")
    result: RunResult = await investigated(root / "runs", query=question, model=None, docs=[str(docs)])
    return result


COMPUTED = """
prices | Which tent is cheaper, the Vale 3 or the Ridge 2? | €249 (Ridge 2) is €80 less than €329 (Vale 3).
prices | Of the larger tents, which is lightest? | the lowest of the 3 values of “Weight” is 1.2 kg (Summit 1).
tariffs | Which is cheaper for a large boat, Harbour or Mooring? | 210 (Harbour) is 50 less than 260 (Mooring).
releases | How many releases of Kettle were there in 2025? | 2 of the 3 rows have “2025”: 1.2; 1.3.
releases | What is the latest version of Kettle? | the latest of the 3 values of “Date” is 2025-06-30 (1.3).
staff | who has been here longer, Mira Holt or Jon Feld? | 2018 (Jon Feld) is 3 years earlier than 2021 (Mira Holt).
tariffs | How much more expensive is Mooring than Harbour for a large boat? | \
260 (Mooring) is 50 more than 210 (Harbour).
boats | How much lighter is the Otter Mini than the Otter? | 249 kg (Otter Mini) is 646 kg less than 895 kg (Otter).
staff | Who has been with us the longest? | the earliest of the 3 values of “Joined” is 2018 (Jon Feld).
staff | Which coach works the most hours? | \
the highest of the 2 values of “Hours a week” where rows have “coach” is 20 (Jon Feld).
staff | how many people can swim | 2 of the 3 rows have “Swims: yes”: Mira Holt; Ola Brandt.
staff | How many of them work more than 10 hours? | 2 of the 3 rows have “Hours a week > 10”: Jon Feld; Ola Brandt.
staff | who joined before 2021 | 1 of the 3 rows has “Joined < 2021”: Jon Feld.
staff | How many of our people are not coaches? | 1 of the 3 rows does not have “coaches”: Mira Holt.
staff | Which person who can swim joined first? | \
the earliest of the 2 values of “Joined” where rows have “Swims: yes” is 2021 (Mira Holt).
courses | Which beginner course of at least two days is the cheapest? | \
the lowest of the 2 values of “Price” where rows have “beginner; Days ≥ two” is 189 (W1 Women on Water).
devices | Which laptops cost more than 1000 EUR? | 2 of the 4 rows have “laptops; Price EUR > 1000”: A-01; A-05.
network | Which takes longer to deliver, the outdoor access point or the firewall? | \
14 (firewall) is 2 more than 12 (Access point outdoor).
network | Which access point is cheaper? | \
the lowest of the 2 values of “Price” where rows have “access point” is €145 (Access point indoor).
network | What is the most expensive thing that Norlan supplies? | \
the highest of the 2 values of “Price” where rows have “Norlan” is €1290 (Firewall).
team | How many people work in the Engineering team? | 2 of the 4 rows have “Team: Engineering”: Bea; Ravi.
devices | average price of the laptops | \
the average of the 3 values of “Price EUR” where rows have “laptops” is 1,163.33.
staff | What is the average number of hours a week? | the average of the 3 values of “Hours a week” is 14.
prices | What do the tents cost in total? | the sum of the 3 values of “Price” is €988.
staff | Which role do most people have? | \
“coach” is the most frequent value of “Role”, in 2 of the 3 rows: Jon Feld; Ola Brandt.
rechnungen | Summe der offenen Rechnungen | \
the sum of the 2 values of “Betrag” where rows have “Status: offen” is 2.580,50 €.
velos | Quel est le vélo le moins cher ? | the lowest of the 3 values of “Prix par jour” is 15 € (Lumière).
velos | Qui est plus cher, le Rapide ou le Montagne ? | 28 € (Montagne) is 4 € more than 24 € (Rapide).
offices | What is the total rent of all offices? | the sum of the 3 values of “Rent crowns” is 78,500 crowns.
changes | What is the latest release of Pelican? | the latest of the 3 values of “Released” is 2025-02-11 (2.0.1).
prices | Which is the cheapest? | the lowest of the 3 values of “Price” is €249 (Ridge 2).
velos | Lequel est le moins cher ? | the lowest of the 3 values of “Prix par jour” is 15 € (Lumière).
parts | What's the dearest thing on the list of spare parts? | \
the highest of the 60 values of “Price EUR” is 90.50 (P-26 valve DC).
parts | which of the parts that come back is the cheapest | \
the lowest of the 3 values of “Price EUR” where rows have “Back on” is 51.50 (P-03 seal AD).
parts | How many seals are on the list of parts? | 30 of the 60 rows have “seals”.
mills.yaml | which stone has the highest max rpm | the highest of the 3 values of “max_rpm” is 140 (S1).
firmen | Ist Nordblech älter als Steiner? | 1920 (Steiner) is 34 years earlier than 1954 (Nordblech).
"""


@pytest.mark.parametrize("case", COMPUTED.strip().split("\n"))
async def test_a_report_computes_what_is_asked_and_cites_each_value(case: str, tmp_path: Path) -> None:
    name, question, computed = case.split(" | ")
    result = await _asked(tmp_path, question, name)
    assert result.answered is Answered.yes
    report = json.loads(Path(result.artifacts, "report.json").read_text(encoding="utf-8"))
    [claim] = [claim for claim in report["claims"] if claim["sentence"].startswith("Computed: ")]
    assert claim["sentence"] == f"Computed: {computed}"
    assert claim["verdict"] == Verdict.supported
    assert claim["source_ids"] and claim["quotes"]
    cells = [*re.findall(r"of the (\d+)", computed), "2"][0]
    page = Path(result.artifacts, "report.html").read_text(encoding="utf-8")
    assert f"computed from {cells} cells" in page and "no passage alone" not in page
    assert "What begins with “Computed:”" in Path(result.artifacts, "report.md").read_text(encoding="utf-8")


NOT_COMPUTED = """
staff | Which role works the most hours?
staff | How many coaches live in Sundby?
staff | How many meetings since 2020?
staff | How many people left in 2021?
stock | How many Hygro Pro are in stock?
staff | How many coaches who joined in 2018 are not treasurers?
hotels | Which hotel is closest to the lake?
hotels | what is the smallest hotel
hotels | Which is bigger, the Panorama or the Seeblick?
hotels prices | Which is the cheapest?
parts | Which part has the lowest weight?
seats usage | Which plans have more than 20 seats?
"""


@pytest.mark.parametrize("case", NOT_COMPUTED.strip().split("\n"))
async def test_nothing_is_computed_of_what_the_columns_do_not_say(case: str, tmp_path: Path) -> None:
    name, question = case.split(" | ")
    result = await _asked(tmp_path, question, *name.split())
    report = Path(result.artifacts, "report.md")
    assert not report.is_file() or "Computed:" not in report.read_text(encoding="utf-8").split("As of", maxsplit=1)[0]


async def test_what_is_on_one_side_of_a_bound_may_be_among_what_is_quoted(tmp_path: Path) -> None:
    result = await _asked(tmp_path, "Which plans cost less than 35 euros?", "seats")
    assert result.answered is Answered.maybe
    assert "Basic: 9 € a month" in Path(result.artifacts, "report.md").read_text(encoding="utf-8")


async def test_what_is_computed_under_a_condition_that_no_source_has_only_may_answer(tmp_path: Path) -> None:
    result = await _asked(tmp_path, "Which tent is cheaper in winter, the Vale 3 or the Ridge 2?", "prices")
    assert result.answered is Answered.maybe
    report = Path(result.artifacts, "report.md").read_text(encoding="utf-8")
    assert report.index("do not mention “winter”") < report.index("Computed: €249")


async def test_a_question_in_two_hops_is_answered_of_the_name_that_describes(tmp_path: Path) -> None:
    result = await _asked(tmp_path, "Who is the head of the yard that built the second boat?", "minutes", "yards")
    report = json.loads(Path(result.artifacts, "report.json").read_text(encoding="utf-8"))
    first = report["sections"][0]["markdown"]
    assert first.index("built by Norrland Yard") < first.index("Greta Wolff")


OF_PAGES = """
Which ferry is the longest? | the highest of the 3 values of “Length” is 82 m (Borealis). | - Length: 51 m
How many ferries were built by Holt Yard? | 2 of the 3 rows have “Holt Yard”: Aurora; Borealis. | - Builder: Holt Yard
Who runs the yard that built the oldest ferry? | the earliest of the 3 values of “Built” is 1987 (Cormorant). | \
Its head is Karl Brandt.
"""


@pytest.mark.parametrize("case", OF_PAGES.strip().split("\n"))
async def test_pages_with_the_same_fields_are_computed_with_like_rows(case: str, tmp_path: Path) -> None:
    question, computed, shown = case.split(" | ")
    result = await _asked(tmp_path, question, *FERRIES, "builders")
    report = json.loads(Path(result.artifacts, "report.json").read_text(encoding="utf-8"))
    [claim] = [claim for claim in report["claims"] if claim["sentence"].startswith("Computed: ")]
    assert claim["sentence"] == f"Computed: {computed}"
    assert claim["verdict"] == Verdict.supported
    assert len(claim["source_ids"]) == len(FERRIES)
    assert shown in report["sections"][0]["markdown"]


async def test_what_is_computed_of_pages_may_lack_some_that_were_not_found(tmp_path: Path) -> None:
    assert (await _asked(tmp_path, "Which ferry is the longest?", *FERRIES)).answered is Answered.maybe


def test_no_rows_are_read_from_texts_that_were_cut_or_say_nothing_in_one_form() -> None:
    pages = list(FERRIES.values())
    assert len(list(records_of(pages))) == 1
    for others in ([*pages[:2], f"{pages[2]}\n…"], [*pages[:2], BUILDERS], [pages[0]] * 3):
        assert not list(records_of(others))


def test_the_name_that_the_first_search_found_is_searched_for_next() -> None:
    query = "Who is the head of the yard that built the second boat?"
    step = PlanStep(step_id=1, title=query, description=f"Find the passages that answer: {query}")
    note = Note(
        step_id=1,
        summary_title="Minutes of the board in September",
        summary="",
        extraction=["The second boat is built by Norrland Yard. [S000001]"],
        is_useful=True,
        artifact_file="a.json",
        source_ids=["S000001"],
    )
    plan = Plan(plan_title=query, steps=[step])
    request = ReflectRequest(query=query, today="2026-11-22", plan=plan, round=1, max_follow_ups=2, notes=[note])
    answer = reflect(request)
    assert answer.follow_up_steps[0].title == "Who is the head of Norrland Yard"
    assert answer.sufficiency_score <= 5
    plan.steps.append(PlanStep(step_id=2, title="Who is the head of Norrland Yard", description="Find it."))
    assert "Norrland" not in "".join(each.title for each in reflect(request).follow_up_steps)


def _verdict(said: str) -> Verdict:
    text = SourceText(source_id="S000001", title="Price list", url="docs:shop/prices.md", text=PRICES, kind="document")
    return check(ClaimSentence(0, f"Computed: {said}", ("S000001",), "prose"), Search(texts_of([text]))).verdict


def test_a_computed_sentence_is_computed_again_from_what_its_sources_state() -> None:
    assert _verdict("€249 (Ridge 2) is €80 less than €329 (Vale 3).") is Verdict.supported
    assert _verdict("the lowest of the 3 values of “Weight” is 1.2 kg (Summit 1).") is Verdict.supported
    assert _verdict("2 of the 3 rows have “Price < €400”.") is Verdict.supported
    for wrong in (
        "1 of the 3 rows have “Price < €400”.",
        "€249 (Ridge 2) is €90 less than €329 (Vale 3).",
        "€249 (Ridge 2) is €80 more than €329 (Vale 3).",
        "€249 (Vale 3) is €80 less than €329 (Ridge 2).",
        "€259 (Ridge 2) is €70 less than €329 (Vale 3).",
        "the lowest of the 3 values of “Weight” is 2.1 kg (Ridge 2).",
        "the lowest of the 2 values of “Weight” is 1.2 kg (Summit 1).",
        "2 of the 3 rows have “Summit”: Ridge 2; Summit 1.",
    ):
        assert _verdict(wrong) is not Verdict.supported, wrong


def test_a_row_whose_name_is_still_open_is_not_the_latest() -> None:
    rows = "| 2.53 | 2024-06 |\n| 3.5 | 2025-07 |\n| 3.13 | 2026-07 |\n| TBD | 2027-06 |"
    found = from_tables("Which is the latest release?", ["Releases"], [f"| Release | Date |\n|---|---|\n{rows}\n"])
    assert found
    assert found[1].sentence == "Computed: the latest of the 3 values of “Date” is 2026-07 (3.13)."


def test_nothing_is_computed_from_a_table_that_was_cut() -> None:
    assert list(tables_of(PRICES))
    assert not list(tables_of(f"{PRICES}..."))
    assert not list(tables_of(PRICES.replace("|---|---|---|\n", "|---|---|---|\n| ... |\n")))


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("Is the quay in Sorrow longer than the one in Yarrow?", ("Sorrow", "Yarrow")),
        ("would a heron 40 or a marlin s pump faster", ("heron 40", "marlin s")),
        ("grey tern vs ash petrel clutch size", ("grey tern", "ash petrel")),
        ("How much more does the deluxe plan cost than the basic plan?", ("deluxe plan", "basic plan")),
        ("Was ist teurer, das Zelt Alpin oder das Zelt Fjord?", ("Zelt Alpin", "Zelt Fjord")),
        ("Ist der Nordturm höher als der Südturm?", ("Nordturm", "Südturm")),
        ("Is the crane lift cheaper than the pressure wash?", ("crane lift", "pressure wash")),
        ("Should I buy the Ridge or the Vale?", None),
        ("Does the shop open before Christmas?", None),
        ("How do I change the name, the address or the phone number?", None),
        ("What is the difference between lists and tuples?", None),
        ("How many days do I have, and which form or paper is needed?", None),
    ],
)
def test_the_sides_of_a_comparison_are_read_from_its_form(question: str, sides: tuple[str, str] | None) -> None:
    compared = comparison_of(question)
    assert (compared.sides if compared else None) == sides


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Who runs the company that built the pier?", "Who runs Holt?"),
        ("Which firm makes the poles, and how many people work there?", "how many people work at Holt?"),
        ("the firm that built the pier: who runs it?", "who runs Holt?"),
        ("In which year was the company founded that builds turbines?", "In which year was Holt founded?"),
        ("Wer leitet die Firma, die den Pier gebaut hat?", "Wer leitet Holt?"),
        ("When did the owner of the leave policy join the firm?", "When did Holt join the firm?"),
        ("what's the extension of the person who led the repair", "what's the extension of Holt?"),
        ("How many pupils are there in the school?", None),
        ("If I find a nest, how many eggs are in it?", None),
    ],
)
def test_what_is_asked_of_something_described_is_asked_again_with_its_name(question: str, asked: str | None) -> None:
    hop = hop_of(question)
    assert (hop.of("Holt") if hop else None) == asked


def test_what_a_long_question_tells_is_not_read_by_its_form() -> None:
    asked = "Which is cheaper, Alpha or Bravo?"
    assert comparison_of(asked)
    assert comparison_of(f"{'what or ' * 1_000}{asked}") is None
    assert hop_of(f"{'what or ' * 1_000}Who runs the company that built the bridge?") is None


async def test_how_something_is_done_is_answered_with_all_steps(tmp_path: Path) -> None:
    result = await _asked(tmp_path, "How do I borrow a tent?", "lending")
    report = Path(result.artifacts, "report.md").read_text(encoding="utf-8")
    answer = report.split("**How sure:**", maxsplit=1)[0]
    assert answer.index("list at the counter") < answer.index("deposit") < answer.index("tent is handed out")
