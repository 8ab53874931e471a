"""Later beats earlier, and two numbers for the same thing are both shown: whole runs over a small folder of files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fathom.contradictions.succession import differing, readings, replaces
from fathom.retrieval.asked import ON_DATE, preferences
from tests.inprocess import investigated

TABLE = "| Plan | Price per seat | Storage |\n|---|---|---|\n"
FILES = {
    "plans-2024-03.md": (
        "# Plans and prices\n\nThree plans. The Team plan costs $10 per seat per month and is billed yearly.\n\n"
        + TABLE
        + "| Team | $10 | 50 GB |\n| Business | $25 | 500 GB |\n"
    ),
    "plans-update.md": (
        "---\ntitle: Plans and prices\ndate: 2024-04-15\n---\n# Plans and prices\n\nIt supersedes that of March. "
        "The Team plan costs $12 per seat per month and is billed yearly.\n\n"
        + TABLE
        + "| Team | $12 | 50 GB |\n| Business | $25 | 750 GB |\n"
    ),
    "migration.md": (
        "# Database migration\n\nLast updated: 2024-02-10\n\nAda Holm owns the database migration. It moves all "
        "records.\n\nThe migration is planned for 3 May 2024. Rehearsals take place every second week.\n"
    ),
    "staff-news-2024-05-02.txt": (
        "Staff news\n\nBen Ito takes over as owner of the database migration from Ada Holm, who leaves. "
        "\n\nThe migration is postponed to 17 May 2024 because the rehearsal failed.\n"
    ),
    "minutes/2024-01-09.md": (
        "# Minutes\n\n## Ledger\n\n- Decision: use PostgreSQL for the ledger service.\n\n## Stand-up\n\n"
        "- We agreed to hold the stand-up on Tuesdays.\n- Attendance was 7 people.\n"
    ),
    "minutes/2024-03-12.md": (
        "# Minutes\n\n## Ledger\n\n- Decision: use SQLite for the ledger service, because one node writes.\n\n"
        "## Stand-up\n\n- We agreed to hold the stand-up on Thursdays.\n- Attendance was 5 people.\n"
    ),
    "retention.md": "# Retention of logs\n\nDate: 5 January 2024\n\nAccess logs are kept for 30 days.\n",
    "retention-change.md": (
        "# Change of the retention of logs, June 2024\n\nAs of 1 June 2024 access logs are kept for 90 days instead of "
        "30 days. Audit logs do not change.\n"
    ),
    "guests-old.md": (
        "# Guests\n\nVersion 1 of 3 May 2021.\n\nMembers may bring two guests to the pool at weekends.\n\n"
        "The pool opens at 9 on weekends.\n"
    ),
    "guests-new.md": (
        "# Guests\n\nVersion 2, adopted on 8 June 2023. It replaces version 1 of May 2021.\n\n"
        "Nobody brings guests to the pool at weekends. On other days each member may bring one.\n"
    ),
    "nordlys.md": "# The Nordlys ferry\n\nThe ferry Nordlys carries 412 passengers and 80 cars.\n",
    "ferries.md": "# Ferries of the coast\n\nThe ferry Nordlys carries 398 passengers. The ferry Aurora carries 250.\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("docs")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    return root


async def report(folder: Path, artifacts: Path, question: str) -> str:
    """Return the report of a question."""
    await investigated(artifacts, question, model=None, docs=[str(folder)])
    [written] = artifacts.rglob("report.md")
    return written.read_text()


@pytest.mark.parametrize(
    ("question", "holds", "superseded", "by"),
    [
        ("What does the Team plan cost?", "costs $12", "costs $10", "2024-04-15 by “Plans and prices”"),
        ("How much storage does the Business plan have?", "750 GB", "500 GB", "2024-04-15 by “Plans and prices”"),
        ("Who owns the database migration?", "Ben Ito takes over", "Ada Holm owns", "2024-05-02 by “Staff news”"),
        ("Who is in charge of the migration?", "Ben Ito takes over", "Ada Holm owns", "2024-05-02 by “Staff news”"),
        ("When does the database migration take place?", "17 May 2024", "3 May 2024", "2024-05-02 by “Staff news”"),
        ("Which database does the ledger service use?", "use SQLite", "use PostgreSQL", "2024-03-12 by “2024-03-12”"),
        ("On which day is the stand-up held?", "Thursdays", "Tuesdays", "2024-03-12 by “2024-03-12”"),
        ("How long are access logs kept?", "90 days", "kept for 30 days", "2024-06 by “Change of the retention .*”"),
    ],
)
async def test_the_later_statement_comes_first_and_the_earlier_one_is_marked(
    folder: Path, tmp_path: Path, question: str, holds: str, superseded: str, by: str
) -> None:
    markdown = await report(folder, tmp_path, question)
    short = re.split(r"\n## ", markdown)[1]
    before, mark, after = re.split(rf"(Superseded (?:in part )?on {by}:)", short, maxsplit=1)
    assert holds in before
    assert superseded not in before
    assert superseded in after
    assert mark not in re.findall(r"^- .*", markdown, re.MULTILINE)


async def test_who_looks_after_something_is_replaced_by_who_takes_it_over(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    said = {
        "2024-02-06": "Ada Holm looks after the trainees.",
        "2024-09-03": "Ben Ito takes over the trainees from Ada.",
    }
    for date, text in said.items():
        (docs / f"{date}.md").write_text(f"# Meeting of {date}\n\n- {text}\n", encoding="utf-8")
    markdown = await report(docs, tmp_path, "Who looks after the trainees?")
    before, after = re.split(r"Superseded on 2024-09-03 by “Meeting of 2024-09-03”:", re.split(r"\n## ", markdown)[1])
    assert "Ben Ito" in before and "Ada Holm looks after" in after


async def test_the_item_beside_one_that_is_replaced_still_holds(tmp_path: Path) -> None:
    files = {
        "2024-02-06.md": "- Everybody may work from home on two days a week from 1 March 2024.\n"
        "- Ada Holm is responsible for the rota of those at home.\n",
        "2024-09-03.md": "- The rule of February is revised: everybody may work from home on three days a week.\n",
    }
    (docs := tmp_path / "docs").mkdir()
    for name, text in files.items():
        (docs / name).write_text(f"# Meeting of {name[:10]}\n\n{text}", encoding="utf-8")
    markdown = await report(docs, tmp_path, "On how many days a week may everybody work from home?")
    before, after = re.split(r"Superseded on 2024-09-03 by “Meeting of 2024-09-03”:", re.split(r"\n## ", markdown)[1])
    assert "three days" in before and "two days" not in before
    assert "two days" in after and "Ada Holm" not in after


BOARD = """NOTES OF THE BOARD

--- 14 Nov 2023 ---
- The berth fee is 120 euros a season.

--- 20 Feb 2024 ---
- The decision of November is revised: the berth fee is 95 euros a season.
- The crane is inspected on 3 April.
"""


async def test_minutes_of_several_days_in_one_file_are_told_with_their_days(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "board.txt").write_text(BOARD, encoding="utf-8")
    markdown = await report(docs, tmp_path, "How much is the berth fee?")
    before, after = re.split(r"Superseded on 2024-02-20 by “.*”:", re.split(r"\n## ", markdown)[1])
    assert before.index("20 Feb 2024:") < before.index("95 euros")
    assert "14 Nov 2023:" in before + after and "120 euros" in after
    result = await investigated(tmp_path / "other", "Who painted the yellow crane?", model=None, docs=[str(docs)])
    assert result.unanswered
    assert [passage.text for passage in result.unanswered.closest] == ["The crane is inspected on 3 April."]


CHAT = """12/01/2026, 09:14 - Anna: new group for the trip
12/01/2026, 09:20 - Ben: We meet at 6:30 at the north car park
12/01/2026, 09:21 - Cleo: who has the roof box?
18/01/2026, 19:41 - Ben: Change of plan, we meet at 7:15 at the lake instead of the car park
18/01/2026, 19:50 - Cleo: ok
"""
THREAD = """From: Ole
Date: 2026-01-05
Subject: Desks

We meet at 6:30 at the north car park.

From: Ole
Date: 2026-01-18
Subject: Re: Desks

From now on we meet at 7:15 at the lake instead of the car park.
"""
LOG = """# Log of the club

- 2026-01-12: The meeting point is car park 4.
- 2026-01-18: The meeting point is lake gate 7 from now on.
"""


@pytest.mark.parametrize(("text", "old"), [(CHAT, "6:30"), (THREAD, "6:30"), (LOG, "park 4")])
async def test_an_entry_of_a_chat_thread_or_log_is_replaced_by_a_later_one(tmp_path: Path, text: str, old: str) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "club.txt").write_text(text, encoding="utf-8")
    markdown = await report(docs, tmp_path, "Where do we meet, at which meeting point?")
    before, after = re.split(r"Superseded on 2026-01-18 by “.*”:", re.split(r"\n## ", markdown)[1])
    assert "lake" in before and old not in before and old in after and "roof box" not in after


async def test_days_for_which_something_is_planned_replace_nothing(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "concerts.md").write_text(
        "# Concerts\n\n- 2026-03-01: The choir sings 12 songs.\n- 2026-04-01: The choir sings 9 songs.\n"
    )
    assert "Superseded" not in await report(docs, tmp_path, "How many songs does the choir sing?")


async def test_a_decision_is_revised_that_is_named_by_its_day(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "minutes.md").write_text(
        "# Minutes\n\n## 2026-03-11\n\n- **Decision:** we lease the van from LeasePlus from July.\n\n"
        "## 2026-05-06\n\n- The decision of 11 March is revised: we lease from Nordauto, 24 months, electric.\n",
        encoding="utf-8",
    )
    markdown = await report(docs, tmp_path, "From which company do we lease the van?")
    before, after = re.split(r"Superseded on 2026-05-06 by “.*”:", re.split(r"\n## ", markdown)[1])
    assert "Nordauto" in before and "LeasePlus" not in before and "LeasePlus" in after


async def test_numbers_that_no_date_decides_are_both_shown(folder: Path, tmp_path: Path) -> None:
    markdown = await report(folder, tmp_path, "How many passengers does the ferry Nordlys carry?")
    short = re.split(r"\n## ", markdown)[1]
    assert "412 passengers" in short
    assert "398 passengers" in short
    assert "Superseded" not in markdown
    disagree = markdown.split("## Where sources disagree")[1]
    assert "412" in disagree
    assert "398" in disagree


async def test_an_edition_that_is_replaced_stands_last_and_is_no_answer(folder: Path, tmp_path: Path) -> None:
    short = re.split(r"\n## ", await report(folder, tmp_path / "a", "May I bring guests to the pool at weekends?"))[1]
    holds, replaced = re.split(r"Superseded on 2023-06-08 by “Guests”:\n", short)
    assert "Nobody brings guests" in holds and "two guests" in replaced
    only_in_the_old_one = await report(folder, tmp_path / "b", "When does the pool open on weekends?")
    assert "opens at 9" in only_in_the_old_one and "\n## Answer" not in only_in_the_old_one


async def test_a_question_about_the_past_is_answered_from_then(folder: Path, tmp_path: Path) -> None:
    markdown = await report(folder, tmp_path, "What did the Team plan cost in March 2024?")
    short = re.split(r"\n## ", markdown)[1]
    before, *said = re.split(r"((?:S|Not s)uperseded).*:\n", short)
    pairs = list(zip(said[::2], said[1::2], strict=True))
    under = {heading: "".join(part for name, part in pairs if name == heading) for heading, _ in pairs}
    assert "costs $10" in under["Superseded"] and "costs $10" not in before + under["Not superseded"]
    assert "costs $12" in under["Not superseded"] and "costs $12" not in before + under["Superseded"]


async def test_what_answers_another_question_is_not_below_what_is_superseded(folder: Path, tmp_path: Path) -> None:
    markdown = await report(folder, tmp_path, "What does the Team plan cost? Who owns the database migration?")
    lines = re.findall(r"((?:S|Not s)uperseded.*:)|(Ben Ito takes over)", markdown)
    assert lines[[owner for _, owner in lines].index("Ben Ito takes over") - 1][0] == "Not superseded:"


async def test_the_short_answer_is_what_holds(folder: Path, tmp_path: Path) -> None:
    question = "For when is the migration planned?"
    result = await investigated(tmp_path, question, model=None, docs=[str(folder)], mode="answer")
    assert result.answer
    assert "17 May 2024" in result.answer


async def test_sources_are_listed_with_the_dates_that_they_state(folder: Path, tmp_path: Path) -> None:
    dated = await report(folder, tmp_path / "a", "What does the Team plan cost?")
    undated = await report(folder, tmp_path / "b", "How many passengers does the ferry Nordlys carry?")
    assert re.search(r"plans-update\.md`.*, 2024-04-15$", dated, re.MULTILINE)
    assert re.search(r"plans-2024-03\.md`.*, 2024-03$", dated, re.MULTILINE)
    assert re.search(r"nordlys\.md`$", undated, re.MULTILINE)  # not the time of the file


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("The Team plan costs $10 per seat a month.", "The Team plan costs $12 per seat a month.", True),
        ("Team: $10 per seat per month", "Team: $12 per seat per month", True),
        ("Owner: Ada Holm", "Owner: Ben Ito", True),
        ("Fridays are free of meetings.", "Fridays are no longer free of meetings.", True),
        ("The retention of logs is 30 days.", "Retention of logs was raised from 30 to 90 days.", True),
        ("The launch is planned for 3 May 2024.", "The launch is postponed to 17 May 2024.", True),
        ("The fair takes place on 5 May.", "Ines and I agreed yesterday to move the fair to 12 May.", True),
        ("Die Messe findet am 5. Mai 2024 statt.", "Die Messe wurde auf den 12. Mai 2024 verlegt.", True),
        ("The fair takes place on 5 May.", "Can we move the fair to 12 May?", False),
        ("The fair takes place on 5 May.", "We agreed to move the printer to the hall on 12 May.", False),
        (TABLE + "| Free | $0 | 2 GB |", TABLE + "| Team | $10 | 50 GB |", False),
        (
            "We decided that the basic plan costs 49 euros a month from April.",
            "The earlier decision is revised: the basic plan costs 59 euros a month from July.",
            True,
        ),
        ("The basic plan costs 49 euros a month.", "The board agreed that the family plan costs 59 euros.", False),
        ("Ada owns the billing service.", "Ben owns the search service.", False),
        ("Ada leads the team.", "Ben leads the web team.", False),
        ("Decision: approve travel for Ada.", "Decision: approve travel for Ben.", False),
        ("The council has 9 members.", "The meeting had 7 members present.", False),
        ("In 2022 sales were 40 million euros.", "In 2023 sales were 50 million euros.", False),
        ("Amazon Managed Service for Prometheus", "Ada has been a Prometheus Maintainer since 2019.", False),
        ("Attendees: Ada, Ben", "Attendees: Ben, Cy", False),
        ("Date: 2024-03-05", "Date: 2024-04-05", False),
        ("The retention period is 30 days.", "Should we raise the retention period to 90 days?", False),
        ("The retention period is 30 days.", "We could raise the retention period to 90 days.", False),
        ("Visitors park on level 2.", "From 1 April on, visitors park in the yard behind building C.", True),
        ("Invoices go to old@firm.org.", "Invoices now go to new@firm.org instead of old@firm.org.", True),
        ("We meet at 6:30 at the car park.", "Change of plan, we meet at 7 at the lake instead of the car park.", True),
        ("Das Training ist dienstags in Halle 3.", "Ab sofort ist das Training donnerstags in Halle 5.", True),
        ("Die Bücher stehen im Keller.", "Die Bücher stehen jetzt im ersten Stock.", True),
        ("The door code is 4471.", "The door code is 9020 now.", True),
        ("We meet at 6:30 at the station.", "We meet at 7 at the lake.", False),
        ("Visitors park on level 2.", "From now on visitors also park in the yard.", False),
        ("The training is on Tuesday for adults.", "The training is now on Thursday for children.", False),
        ("Ada works from home.", "Ben now works from home.", False),
        ("Ben handles invoices.", "Ben handles orders from Spain from now on.", False),
        ("The office is open.", "The office is now in Linz.", False),
    ],
)
def test_a_statement_replaces_another_about_the_same_thing_only(earlier: str, later: str, expected: bool) -> None:
    pairs = [(new, old) for new in readings(later, "Handbook") for old in readings(earlier, "Handbook")]
    assert any(replaces(new, old) for new, old in pairs) is expected


def test_minutes_tell_of_their_own_meeting_unless_they_decide() -> None:
    [first], [second] = (readings(f"The council spent {n} minutes on it.", "Minutes of the council") for n in (30, 40))
    assert not replaces(second, first)
    [first], [second] = (
        readings(f"Decision: the quorum of the council is {n} members.", "Minutes of the council") for n in (5, 6)
    )
    assert replaces(second, first)
    [first], [second] = (readings(f"The quorum is {n} members.", title) for n, title in ((5, "Rules"), (6, "Charter")))
    assert not differing(first, second)  # of which body is not said


def test_dates_that_a_question_prefers() -> None:
    dates = ["2024-03-05", "", "2024-04", "2023-03"]
    now = preferences("What is the current price?", dates)
    assert sorted(range(4), key=lambda n: -now[n]) == [2, 0, 3, 1]
    assert [factor >= ON_DATE for factor in preferences("What was decided in March 2024?", dates)] == [
        True,
        False,
        False,
        False,
    ]
    assert [factor >= ON_DATE for factor in preferences("What was decided in March?", dates)] == [
        True,
        False,
        False,
        True,
    ]
    assert [factor >= ON_DATE for factor in preferences("Which talks were there in 2024?", dates)] == [
        True,
        False,
        True,
        False,
    ]
    assert max(preferences("What is the price?", dates)) < 1.001
