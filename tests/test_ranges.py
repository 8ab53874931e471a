"""What holds for the reader's own case: the row, item or sentence whose range has an amount that the question gives."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.facts.ranges import amounts_of, in_range
from tests.inprocess import answer_from

LOWEST = ["from {} {unit}", "{} {unit} or more", "{}+", "at least {} {unit}", "ab {} {unit}", "{} {unit} und mehr"]
HIGHEST = ["up to {} {unit}", "{} {unit} or less", "no more than {} {unit}", "bis {} {unit}", "höchstens {} {unit}"]
ABOVE = ["over {} {unit}", "more than {} {unit}", "über {} {unit}", "> {} {unit}"]
BELOW = ["under {} {unit}", "less than {} {unit}", "unter {} {unit}", "bis unter {} {unit}"]
BETWEEN = ["{} to {} {unit}", "{}-{} {unit}", "{} – {} {unit}", "from {} to {} {unit}", "von {} bis {} {unit}"]

a_number = st.integers(1, 400)  # a year is no amount
a_unit = st.sampled_from(["kg", "m²", "years", "minutes", "people"])


@given(a_number, a_number, a_unit, st.data())
def test_a_range_has_what_lies_between_its_bounds(bound: int, value: int, unit: str, data: st.DataObject) -> None:
    asked = amounts_of(f"what about {value} {unit}?")
    holds = {
        "LOWEST": (LOWEST, value >= bound),
        "HIGHEST": (HIGHEST, value <= bound),
        "ABOVE": (ABOVE, value > bound),
        "BELOW": (BELOW, value < bound),
    }
    forms, held = holds[data.draw(st.sampled_from(sorted(holds)))]
    text = data.draw(st.sampled_from(forms)).format(bound, unit=unit)
    assert in_range(asked, text, unit) is held, text


@given(a_number, a_number, a_number, a_unit, st.sampled_from(BETWEEN))
def test_a_range_of_two_bounds_has_both(first: int, more: int, value: int, unit: str, form: str) -> None:
    text = form.format(first, first + more, unit=unit)
    assert in_range(amounts_of(f"what about {value} {unit}?"), text, "") is (first <= value <= first + more)


@pytest.mark.parametrize(
    ("question", "text", "around", "held"),
    [
        ("a parcel of 800 g", "up to 1 kg", "", True),
        ("a protein of 12 kDa", "15 to 40", "size (kDa)", False),
        ("I'm 31", "Identity card, from 24 years", "", True),
        ("he's 31: what does he pay", "Identity card, from 24 years", "", True),
        ("the train is 12:30 late", "Identity card, from 24 years", "", None),
        ("ich bin 19", "unter 21 Jahren", "", True),
        ("for 30 people", "45", "seats", True),
        ("for 30 people", "20", "seats", False),
        ("a pallet of 800 kg", "750", "max. load (kg)", False),
        ("for 30 people", "20", "price", None),
        ("I'm 31", "up to 20 kg", "", None),
        ("I'm 31", "groups from 10 people", "from 6 to 15 years", None),
        ("a parcel of 3 kg", "over 40 pages", "", None),
        ("what changed in 2025", "2020 to 2030", "year", None),
        ("is 3.4.0 out", "from 3 kg", "", None),
    ],
)
def test_only_what_measures_the_same_is_compared(question: str, text: str, around: str, held: bool | None) -> None:
    assert in_range(amounts_of(question), text, around) is held


def test_an_amount_keeps_its_exact_value() -> None:
    assert [(each.value, each.unit) for each in amounts_of("a letter of 0.35 kg for 12 people")] == [
        (Decimal("0.35"), "kg"),
        (Decimal(12), ""),
    ]


TRAILERS = """# Anhängerverleih

| Gesamtgewicht | bis 4 Stunden | ganzer Tag |
|---|---|---|
| bis 750 kg | 18 € | 29 € |
| über 750 bis 1.500 kg | 26 € | 41 € |
| über 1.500 kg | 35 € | 58 € |

Wer unter 21 Jahren ist, hinterlegt eine Kaution von 400 €. Ab 21 Jahren ist die Kaution 200 €.
"""
POOL = """# Prices of the pool

- Children under 6: free
- 6 to 15 years: £3.20
- 16 and over: £6.50
- Groups from 10 people: 10 % less
"""
ROOMS = "room,people,per hour\nLarch,up to 8,£12\nBirch,9 to 25,£19\nGreat Oak,26 to 120,£45\n"
BOATS = "boat,seats,colour\nKestrel,8,red\nOtter,12,red\nHeron,45,blue\n"
LUGGAGE = "| class | bag |\n|---|---|\n| Economy | up to 15 kg |\n| Business | up to 30 kg |\n"


@pytest.mark.parametrize(
    ("query", "shown", "other"),
    [
        ("was kostet ein anhänger mit 1200 kg für den ganzen tag", "41 €", "58 €"),
        ("how much is the pool for me, i'm 42", "£6.50", "£3.20"),
        ("my son is 7, what does he pay for the pool", "£3.20", "free"),
        ("which room for 14 people and what does it cost per hour", "Birch", "Larch"),
        ("which boat takes 30 passengers, we are 30 people", "Heron", "Kestrel"),
        ("is a bag of 20 kg allowed in economy", "up to 15 kg", "£"),
    ],
)
async def test_what_holds_for_the_case_is_quoted(query: str, shown: str, other: str, tmp_path: Path) -> None:
    answer = await answer_from(
        tmp_path, {"a.md": TRAILERS, "b.md": POOL, "c.csv": ROOMS, "d.md": LUGGAGE, "e.csv": BOATS}, query
    )
    assert shown in answer
    assert other not in answer
