"""What holds on the reader's day: the row or item whose period has the day, month or weekday that a question names."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.extractive.questions import questions_of
from fathom.extractive.reporter import write_section
from fathom.facts.periods import moments_of
from fathom.facts.ranges import cases_of, in_range
from fathom.models import SourceText
from fathom.roles import SectionRequest
from fathom.roles.reporter import OutlinedSection
from tests.inprocess import answer_from

DAYS = ["{:%Y-%m-%d}", "{:%d.%m.%Y}", "{:%-d %B %Y}", "{:%B %-d, %Y}", "{:%-d. %b %Y}"]
SPANS = ["{} to {}", "{} - {}", "from {} until {}", "{} – {}", "vom {} bis {}"]
a_day = st.dates(datetime.date(2024, 1, 1), datetime.date(2028, 12, 31))
ROTA = "\n".join(
    [
        "week,from,to,on duty,deputy",
        *(
            f"{week},{monday:%d.%m.%Y},{monday + datetime.timedelta(6):%d.%m.%Y},Duty{week},Deputy{week}"
            for week in range(2, 54)
            for monday in [datetime.date(2026, 1, 5) + datetime.timedelta(7 * (week - 2))]
        ),
    ]
)
LINES = [f"| {' | '.join(line.split(','))} |" for line in ROTA.splitlines()]
TABLE = "\n".join([LINES[0], "|---|---|---|---|---|", *LINES[1:]])
PRICES = """# Holiday flat: prices 2027

| season | from | to | per night | minimum stay |
|---|---|---|---|---|
| spring | 2027-03-27 | 2027-06-18 | 88 euros | 3 nights |
| high | 2027-06-19 | 2027-09-04 | 124 euros | 7 nights |
| autumn | 2027-09-05 | 2027-11-06 | 84 euros | 4 nights |
"""
SKI = """# Ski hire, prices per day

| period | adult | child |
|---|---|---|
| 1 Dec – 20 Dec | 18 | 9 |
| 21 Dec – 6 Jan | 26 | 13 |
| Feb – March | 24 | 12 |
"""
HOF = """# Wertstoffhof: Öffnungszeiten

| Zeitraum | Montag bis Freitag | Samstag |
|---|---|---|
| 01.04. – 31.10. | 8 bis 18 Uhr | 8 bis 14 Uhr |
| 01.11. – 31.03. | 9 bis 16 Uhr | 9 bis 12 Uhr |

| Abfuhr am | Tonne |
|---|---|
| 2026-11-10 | Restmüll |
| 2026-11-17 | Bio |
"""


@given(a_day, a_day, a_day, st.sampled_from(DAYS), st.sampled_from(DAYS), st.sampled_from(SPANS))
def test_a_period_has_the_days_between_its_ends(
    one: datetime.date, other: datetime.date, day: datetime.date, written: str, asked: str, span: str
) -> None:
    first, last = sorted((one, other))
    text = span.format(written.format(first), written.format(last))
    question = f"who is on duty on {asked.format(day)}?"
    assert in_range(cases_of(question), text, "") is (first <= day <= last), (question, text)


@pytest.mark.parametrize(
    ("question", "text", "held"),
    [
        ("on 3 february", "1 November to 31 March: closed", True),
        ("on 3 april", "1 November to 31 March: closed", False),
        ("on 2 January", "21 Dec – 6 Jan", True),
        ("on 30 December 2026", "21 December 2026 - 5 January 2027", True),
        ("on 30 December 2027", "21 December 2026 - 5 January 2027", False),
        ("on 2 January 2027", "21 December - 5 January 2027", True),
        ("on 17 February 2027", "15 - 19 February 2027", True),
        ("on 20 February 2027", "15 - 19 February 2027", False),
        ("in february", "Feb – March", True),
        ("im Dezember", "01.11. – 31.03.", True),
        ("on wednesdays", "Mon–Thu: 9.00 to 18.00", True),
        ("am Sonntag", "Montag bis Freitag", False),
        ("on sunday", "Fri to Mon", True),
        ("on 5 November 2026", "05.11.2026: inspection", True),
        # A month is no day, a weekday no date, and nothing else is a period.
        ("in November", "05.11.2026: inspection", None),
        ("on wednesday", "1 November to 31 March", None),
        ("on 5 November", "pages 3 to 9, May to be precise", None),
    ],
)
def test_a_time_is_in_a_period_of_its_kind(question: str, text: str, held: bool | None) -> None:
    assert moments_of(question)
    assert in_range(cases_of(question), text, "") is held


@pytest.mark.parametrize(
    ("query", "shown", "other"),
    [
        ("who is on duty on 16 July 2026?", "Duty29", "Duty16"),
        ("who was the deputy on 2026-11-27", "Deputy48", "Deputy47"),
        ("what does a night in the flat cost on 20 july 2027?", "124 euros", "88 euros"),
        ("minimum stay in the flat for 10 october", "4 nights", "7 nights"),
        ("what does ski hire cost for a child on 28 december", "| 13", "| 9"),
        ("wertstoffhof am 15. mai unter der woche?", "8 bis 18 Uhr", "9 bis 16"),
        ("Welche Tonne wird am 17. November abgeholt?", "Bio", "Restmüll"),
    ],
)
async def test_what_holds_on_the_day_is_quoted(query: str, shown: str, other: str, tmp_path: Path) -> None:
    answer = await answer_from(tmp_path, {"rota.csv": ROTA, "flat.md": PRICES, "ski.md": SKI, "hof.md": HOF}, query)
    assert shown in answer
    assert other not in answer


def test_an_ordinal_is_no_number_of_an_item() -> None:
    for asked in ("Wer hat am 16. Juli 2026 Bereitschaft", "Was kostet der 1. Kurs und der 2. Kurs"):
        assert questions_of(f"{asked}?") == [asked]
    assert questions_of("Please answer: 1. Who built the pier? 2. When was the pier sold?") == [
        "Who built the pier",
        "When was the pier sold",
    ]


def test_today_is_the_day_of_the_question_where_a_source_says_what_holds_on_it() -> None:
    rota = SourceText(source_id="Sa1b2c3", url="docs:rota.csv", title="Rota", kind="document", text=TABLE)

    def written(query: str, today: str) -> str:
        request = SectionRequest(
            query=query,
            today=today,
            title="Rota",
            outlined=[OutlinedSection(heading="Answer", focus="")],
            position=0,
            notes=[],
            written=[],
            passages=[rota],
        )
        return write_section(request).text

    assert "Duty29" in (said := written("who is on duty today?", "2026-07-16")) and "Duty28" not in said
    assert "Duty30" in (said := written("who is on duty tomorrow?", "2026-07-19")) and "Duty29" not in said
    assert "Duty28" in (said := written("wer hat heute duty?", "2026-07-07")) and "Duty29" not in said
    assert "Duty2" in written("who is on duty today?", "2028-01-01")  # of which the table says nothing
