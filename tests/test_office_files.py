"""Questions in people's own words over the files of an office, without a model: what is quoted, and what is not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from fathom.contradictions.succession import readings, replaces
from fathom.retrieval.asked import read_asked
from fathom.retrieval.expansion import compounds_of, nouns_of, said_otherwise
from fathom.retrieval.ranking import Passage
from fathom.retrieval.relevance import RankedExcerpts
from fathom.retrieval.translation import translations_of
from tests.inprocess import investigated
from tests.test_file_kinds import message

FILES = {
    "minutes-2026-04-14.md": (
        "# Minutes of the team meeting, 14 April 2026\n\n## Open day\n\nThe open day takes place on 5 May 2026 from "
        "14:00.\n\n## New printer\n\nThe old printer jams daily. Decided: we buy, we do not lease.\n"
    ),
    "open-day.eml": (
        "From: Bettina Krause <bettina@office.example>\nTo: Team <team@office.example>\nSubject: Open day: new date\n"
        "Date: Tue, 21 Apr 2026 09:12:00 +0200\n\nDear all,\n\nthe caterer cannot come on 5 May. Ines and I agreed "
        "yesterday to move the open day to 12 May.\n\nBest regards,\nBettina\n"
    ),
    "printer.eml": (
        "From: Tom Reiter <tom@office.example>\nTo: Ines Vogt <ines@office.example>\nSubject: Printer ordered\n"
        "Date: Sat, 02 May 2026 16:40:00 +0200\n\nHi Ines,\n\nI compared the three offers and took the Lumo 7200. It "
        "has three years of service.\n\nCheers\nTom\n"
    ),
    "prices.csv": (
        "Item;Description;Price\nLogo;one draft;€650\nWebsite;five pages;€4,900\nPhotos;one day;€1,250\n"
        "Text;one page;€85\nBanner;per m²;€21\n"
    ),
    "contract.md": "# Support\n\nWork beyond the contract is charged at €115 an hour.\n",
    "lease.txt": (
        "LEASE\n\n1. Term\nThe lease begins on 1 March 2024 and ends on 28 February 2029.\n\n2. Rent\nThe monthly rent "
        "is £3,450, payable in advance.\n\n3. Deposit\nThe Tenant pays a security deposit of £10,350.\n"
    ),
}


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files into a folder, and return it."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an office."""
    return written(tmp_path_factory.mktemp("office"), FILES)


async def quoted(office: Path, artifacts: Path, question: str) -> str:
    """Return the first section of the report on a question."""
    await investigated(artifacts, question, model=None, docs=[str(office)])
    [written] = artifacts.rglob("report.md")
    return re.split(r"\n## ", written.read_text(encoding="utf-8"))[1]


@pytest.mark.parametrize(
    ("question", "answer", "filler"),
    [
        ("Which printer did Tom order?", "Lumo 7200", ["@office", "Hi Ines", "Cheers"]),
        ("When is the open day?", "to 12 May", ["@office", "Dear all", "regards"]),
        ("Did Tom Reiter write to Ines Vogt?", "From: Tom Reiter", []),
        ("What does an hour of work beyond the contract cost?", "€115", ["€4,900", "€85"]),
        ("What do the photos of one day cost?", "€1,250", ["€4,900", "€85"]),
        ("How much is a banner per square metre?", "€21", []),
        ("How much deposit did we pay?", "£10,350", ["- 3"]),
        ("How soon is the rent payable?", "payable in advance", []),
    ],
)
async def test_what_frames_a_letter_or_is_another_price_is_not_quoted(
    office: Path, tmp_path: Path, question: str, answer: str, filler: list[str]
) -> None:
    first = await quoted(office, tmp_path, question)
    assert answer in first
    assert not [words for words in filler if words in first]


async def test_what_a_later_mail_moves_stands_before_what_the_minutes_say(office: Path, tmp_path: Path) -> None:
    holds, superseded = re.split(
        "Superseded (?:in part )?on 2026-04-21 by “Open day new date”:",
        await quoted(office, tmp_path, "When does the open day take place?"),
    )
    assert "12 May" in holds
    assert "on 5 May 2026" in superseded


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Wie hoch ist die Kaution?", "£10,350"),
        ("Wann endet der Mietvertrag?", "28 February 2029"),
        ("Was kostet das Logo?", "€650"),
        ("Welcher Drucker wurde bestellt?", "Lumo 7200"),
        ("Ab wann braucht man die Kaution?", "£10,350"),
    ],
)
async def test_a_german_question_is_answered_by_english_files(
    office: Path, tmp_path: Path, question: str, answer: str
) -> None:
    first = await quoted(office, tmp_path, question)
    assert answer in first
    assert not first.startswith("Not answered")
    assert "do not mention" not in first


def test_words_are_looked_for_in_the_other_language() -> None:
    said = translations_of("Wie lange läuft der Mietvertrag über das Projekt, und wurde er gekündigt?")
    assert {"leas", "project", "cancel"} <= {other for others in said.values() for other in others}
    assert "kaution" in translations_of("What is the deposit for the flat?")["deposit"]
    said = translations_of("Wie viele Pakete kann ich mit einer Anfrage registrieren?")
    assert {"parcel", "request", "regist"} <= {other for others in said.values() for other in others}
    assert not translations_of("Quel est le prix du projet ?")


THREAD = """From: Ida Brandt <ida@club.example>
Date: Mon, 03 Nov 2025 09:12:00 +0100
Subject: Annual meeting
Message-ID: <1@club.example>

A reminder: the annual meeting is on 23 November 2025 in the clubhouse. Bring your keys.
===
From: Marta Nowak <marta@club.example>
Date: Thu, 06 Nov 2025 18:40:00 +0100
Subject: Re: Annual meeting
Message-ID: <2@club.example>
In-Reply-To: <1@club.example>

The clubhouse is let on that day, so we have to move {event} to 30 November 2025.
{first}
===
From: Tom Keller <tom@club.example>
Date: Sat, 08 Nov 2025 11:05:00 +0100
Subject: AW: Annual meeting
Message-ID: <3@club.example>
In-Reply-To: <2@club.example>

Good, that suits me: I bring the coffee machine.
{second}
"""
REMINDER = "A reminder: the annual meeting is on 23 November 2025 in the clubhouse. Bring your keys."


@pytest.mark.parametrize(("event", "is_box"), [("our next get-together", False), ("the annual meeting", True)])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (f"\nOn Mon, 3 Nov 2025 at 09:12, Ida Brandt <ida@club.example>\nwrote:\n> {REMINDER}\n", f"\n> {REMINDER}\n"),
        (
            "\n-----Original Message-----\nFrom: Ida Brandt\nSent: Monday, 3 November 2025 09:12\nTo: Board\n\n"
            f"{REMINDER}",
            f"\nVon: Ida Brandt\nGesendet: Montag, 3. November 2025 09:12\nAn: Vorstand\nBetreff: x\n\n{REMINDER}",
        ),
        (
            f"\nAm 03.11.2025 um 09:12 schrieb Ida Brandt:\n> {REMINDER}\n",
            f"\nAm Sa., 8. Nov. 2025 um 10:00 schrieb Marta:\n> No.\n>> {REMINDER}\n",
        ),
    ],
)
async def test_what_a_reply_quotes_is_older_than_the_mail_that_moved_it(
    tmp_path: Path, first: str, second: str, event: str, is_box: bool
) -> None:
    mails = THREAD.format(event=event, first=first, second=second).split("===\n")
    (docs := tmp_path / "docs").mkdir()
    if is_box:
        (docs / "club.mbox").write_text("\n".join(f"From x Mon Nov  3 09:12:00 2025\n{mail}" for mail in mails))
    else:
        for number, mail in enumerate(mails):
            (docs / f"{number}.eml").write_text(mail)
    holds, *superseded = re.split(
        "Superseded (?:in part )?on 2025-11-06", await quoted(docs, tmp_path, "When is the annual meeting?")
    )
    assert "30 November 2025" in holds
    assert "23 November" not in holds
    assert "23 November" in "".join(superseded)


async def test_a_mail_of_a_mailbox_is_cited_below_the_name_of_the_file_with_its_day_once(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    mails = (
        message("Summer party", "The party is on 4 July.", at="Thu, 07 May 2026 10:00:00 +0200"),
        message("Lost property", "A green thermos was found in the sauna.", at="Sat, 09 May 2026 12:00:00 +0200"),
    )
    box = "\n\n".join(f"From x Thu May  7 10:00:00 2026\n{mail.as_string()}" for mail in mails)
    (docs / "members.mbox").write_text(box)
    await quoted(docs, tmp_path, "Where was the green thermos found?")
    [report] = tmp_path.rglob("report.md")
    assert re.search(r"^1\. members, .*members\.mbox`?, Anna Berg, 2026-05-09$", report.read_text(), re.MULTILINE)


async def test_what_only_a_quotation_says_may_be_the_answer_and_is_marked(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    sent = "Fri, 14 Nov 2025 08:20:00 +0100"
    page = (
        "<p>We come <b>later</b>.</p><p>Ruth</p><div>On Wed, Nov 12, 2025 at 4:03 PM Marta &lt;m@club.example&gt; "
        "wrote:<br></div><blockquote><p>The key to the boat shed hangs behind the bar.</p></blockquote>"
    )
    (docs / "key.eml").write_bytes(message("Re: sockets", "", at=sent, html=page).as_bytes())
    first = await quoted(docs, tmp_path, "Where does the key to the boat shed hang?")
    assert first.startswith("May answer this")
    assert re.search(r"Quoted: On Wed, Nov 12, 2025 at 4:03 PM Marta wrote:\s+The key to the boat shed hangs", first)


def test_a_second_move_and_a_move_from_a_day_replace_the_first() -> None:
    def replaced(later: str, earlier: str, subject: str = "", before: str = "Dates") -> bool:
        [new], [old] = readings(later, "", "2025-11-12", subject), readings(earlier, "", "2025-11-06", before)
        return replaces(new, old)

    moved = "We have to move the annual meeting to 30 November."
    assert replaced("The meeting of 30 November is moved to 7 December.", moved)
    assert replaced("The meeting is moved to 7 December.", moved, "Re: Annual meeting")
    assert replaced("The party is postponed to 19 July.", "We moved the summer party to 12 July.")
    assert replaced("It has been moved to 7 December.", "Annual meeting: 23 November", "Annual meeting")
    first, thread = "The inspectors of the boiler come on 3 June at 8:00.", "Re: Visit of the inspectors"
    second = "I called them: they can come on 10 June at 9:30 instead."
    assert replaced(second, first, thread, thread)
    assert replaced("They now come on 17 June at 9:30.", second, thread, thread)
    assert replaced("The new date is 17 June.", first, thread, thread)
    assert not replaced("They now come on 17 June.", first, "Re: Summer party", thread)
    assert not replaced("The meeting is moved to 7 December.", "The annual fee is due on 1 April.", "Annual meeting")
    assert not replaced("The meeting is moved to 7 December.", moved, "Board")
    assert not replaced("The dinner is moved to 7 December.", moved, "Re: Annual meeting")


LETTER = (
    "Hafenverwaltung Seeblick\n\nBescheid\n\nDie Hafengebühr für Ihr Boot beträgt 412,50 Euro. Der Betrag ist bis zum "
    "15. April 2025 zu zahlen. Bei verspäteter Zahlung wird ein Säumniszuschlag von 12 Euro erhoben.\n"
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Bis wann muss die Gebühr bezahlt werden?", "15. April 2025"),
        ("Wie hoch ist die Gebühr?", "412,50 Euro"),
        ("Wie hoch ist der Zuschlag?", "12 Euro"),
        ("wieviel kostet denn eigentlich der zuschlag", "12 Euro"),
        ("Bis wann muss der Gesamtbetrag bezahlt sein?", "15. April 2025"),
    ],
)
async def test_german_compounds_and_verbs_are_found_by_their_parts(tmp_path: Path, question: str, answer: str) -> None:
    (docs := tmp_path / "docs").mkdir()
    (docs / "bescheid.txt").write_text(LETTER, encoding="utf-8")
    (docs / "haus.txt").write_text("Hausordnung\n\nHunde sind im Büro erlaubt. Die Tür wird um 18 Uhr geschlossen.\n")
    first = await quoted(docs, tmp_path, question)
    assert answer in first
    assert not first.startswith("Not answered")


def test_german_endings_make_no_other_word() -> None:
    [found, *_] = RankedExcerpts([Passage("Die roten Boote liegen im Hafen.")]).rank(
        read_asked("Wo ist das rote Boot?")
    )
    assert found.share > 0.8


async def test_who_says_i_in_a_mail_is_its_sender(tmp_path: Path) -> None:
    mails = THREAD.format(event="it", first="", second="").split("===\n")
    for number, mail in enumerate(mails):
        (tmp_path / f"{number}.eml").write_text(mail)
    first = await quoted(tmp_path, tmp_path / "out", "Who brings the coffee machine?")
    assert not first.startswith("Not answered")
    assert "I bring the coffee machine" in first


def test_only_nouns_of_german_questions_have_compounds() -> None:
    assert nouns_of("Wie hoch ist die Gebühr im Hafen?") == {"gebuhr", "hafen"}
    assert {"gebuhr", "hafen"} <= nouns_of("wie hoch ist denn die gebühr im hafen")
    assert not nouns_of("How high is the Tower of London?")
    assert compounds_of("gebuhr", ["hafengebuhr", "gebuhr", "gebuhren", "ingebuhr"]) == ["hafengebuhr"]
    assert "gebuhr" in said_otherwise("Wie hoch ist die Hafengebühr?")["hafengebuhr"]


SHOP = {
    "products.md": (
        "# Products\n\n| Product | Price EUR | Delivery weeks |\n|---|---|---|\n| Otter Mini | 49 | 2 |\n"
        "| Otter Pro | 189 | 3 |\n| Otter Max | 420 | 6 |\n\n## Warehouse\n\n| Product | In stock | Warehouse |\n"
        "|---|---|---|\n| Otter Mini | 312 | Bremen |\n| Otter Pro | 87 | Bremen |\n| Otter Max | 0 | Linz |\n"
    ),
    "churn.md": "# Churn\n\n| Plan | Churn % |\n|---|---|\n| Basic | 4.2 |\n| Team | 1.9 |\n| Large | 2.6 |\n",
    "calls.md": "# Support\n\n| Plan | Support hours |\n|---|---|\n| Basic | 48 |\n| Team | 8 |\n| Large | 1 |\n",
    "staff.csv": "Name,Room,Phone\nJana Ott,2.07,411\nKarin Weiss,2.09,433\n",
    "care.md": "# Care of the ovens\n\nThe doors of the ovens are oiled with linseed every second Friday.\n",
    "logs.yaml": "logging:\n  keep_days: 400\n  folder: /var/logs\n",
    "backup.toml": "[backup]\nkeep_days = 35\n",
    "team.csv": "Name,Role,Since\nJana Ott,Sales,2019-05-01\nKarin Weiss,Repair,2017-02-01\nTom Ude,Sales,2021-09-01\n",
    "oils.csv": "Oil,Pack,Price EUR\nLinseed oil,1 l,12.90\nArnica oil,1 l,17.40\nBalm,5 kg,30.00\n",
    "tasks.md": "# Tasks\n\n| Task | Who | By |\n|---|---|---|\n| Ask the caretaker about it | Jana | 30 May |\n",
    "ill.md": "# When you are ill\n\nCall the office before 7:00. A note is needed from the fourth day.\n",
    "CHANGELOG.md": (
        "# Changelog\n\n## 3.2.0 - 2026-11-05\n\n- Signed hooks.\n\n## 3.1.0 - 2026-08-27\n\n- A dark mode.\n\n"
        "## 3.0.0 - 2026-06-30\n\n- Deleting a parcel cannot be undone.\n"
    ),
    "call.md": "# Plans\n\nRuth takes the shifts while Ulla is on parental leave from February to April.\n",
    "mail.md": "# Printer\n\nI called the service: somebody comes on Thursday.\n",
    "support.md": (
        "# Support\n\nA free slot is available to each client of the support server; a request that finds none is "
        "answered with code 406.\n\nPeople in the loop answer three questions at most.\n"
    ),
    "lease.md": (
        "# Lease agreement for Quay 4\n\nbetween Seiler Ltd. and the club, dated 12 September 2022\n\n## 3. Rent\n\n"
        "The rent is €1,850 a month plus €320 for heating, payable by the third day.\n\n## 4. Deposit\n\nThe tenant "
        "pays a deposit of three months' rent.\n\n## 7. Subletting\n\nSubletting is allowed if the landlord is told.\n"
    ),
    "amendment.md": (
        "# First amendment to the lease agreement for Quay 4\n\ndated 3 February 2025\n\n1. The rent in section 3 is "
        "raised to €1,990 a month from 1 April 2025.\n2. Subletting under section 7 is no longer allowed.\n"
    ),
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a shop."""
    return written(tmp_path_factory.mktemp("shop"), SHOP)


@pytest.mark.parametrize(
    ("question", "heading", "answer", "beside"),
    [
        ("What is the price of the Otter Pro?", "Answer", "| Otter Pro | 189 |", ["Otter Mini", "Bremen"]),
        ("How many Otter Pro do we have left?", "Answer", "| Otter Pro | 87 |", ["Otter Mini"]),
        ("How long does it take to deliver the Otter Max?", "May answer this", "| Otter Max | 420 | 6", ["Otter Pro"]),
        ("How high is the churn of the Basic plan?", "Answer", "| Basic | 4.2", ["1.9", "48"]),
        ("What is Karin's phone number?", "Answer", "| Karin Weiss | 2.09 | 433", ["Jana"]),
        ("Which plan loses the fewest customers?", "Answer", "is 1.9 (Team)", []),
        ("Which plan has the lowest churn, and its support hours?", "May answer this", "| Team | 1.9", ["Computed"]),
        ("How long are the log files kept?", "May answer this", "keep_days: 400", []),
        ("How much is our rent now?", "Answer", "raised to €1,990", ["deposit"]),
        ("How often are the doors of the ovens oiled?", "Answer", "every second Friday", []),
        ("How long is free support available?", "Not answered by these sources", "", []),
        ("How many people work on support?", "Not answered by these sources", "", []),
        ("How much does a free slot cost?", "Not answered by these sources", "", []),
        ("What do I have to do if I'm sick?", "Answer", "Call the office before 7:00", ["I called"]),
        ("How much does a litre of arnica oil cost?", "Answer", "| Arnica oil | 1 l | 17.40", ["mention"]),
        ("list the tasks", "Answer", "| Ask the caretaker", []),
        ("Who is the caretaker?", "May answer this", "| Ask the caretaker", []),
        ("What is the latest version?", "Answer", "is 2026-11-05 (3.2.0)", []),
        ("can I undo deleting a parcel?", "Answer", "cannot be undone", []),
        ("who is there when Ulla is away", "May answer this", "Ruth takes the shifts", []),
        ("Who has been here the longest?", "Answer", "is 2017-02-01 (Karin Weiss)", []),
        ("How many days longer are logs kept than backups?", "Answer", "is 365 more than 35 (backups)", []),
    ],
)
async def test_one_row_is_quoted_where_it_is_named_and_a_number_answers_beside_its_thing(
    shop: Path, tmp_path: Path, question: str, heading: str, answer: str, beside: list[str]
) -> None:
    first = await quoted(shop, tmp_path, question)
    assert first.split("\n")[0] == heading
    assert answer in first
    assert not [words for words in beside if words in first]


@pytest.mark.parametrize(
    ("question", "holds", "replaced"),
    [
        ("How much is our rent now?", "€1,990", "€1,850"),
        ("Are we allowed to sublet a room?", "no longer allowed", "allowed if the landlord is told"),
    ],
)
async def test_what_an_amendment_changes_or_ends_is_superseded_with_its_conditions(
    shop: Path, tmp_path: Path, question: str, holds: str, replaced: str
) -> None:
    said = re.split(r"Superseded (?:in part )?on 2025-02-03 by “First", await quoted(shop, tmp_path, question))
    assert len(said) == 2
    assert holds in said[0] and replaced not in said[0]
    assert replaced in said[1]


@pytest.mark.parametrize(
    ("later", "is_replaced"),
    [
        ("A table costs €10, not €15.", True),
        ("A chair costs €10, not €15.", False),
        ("A table costs €10, not €20.", False),
    ],
)
def test_a_correction_replaces_the_figure_that_it_denies(later: str, is_replaced: bool) -> None:
    [earlier] = readings("Tell me if you want to sell; a table costs €15.", "Open day", "2026-03-02", "Open day")
    [new] = readings(later, "Re: Open day", "2026-03-19", "Re: Open day")
    assert replaces(new, earlier) is is_replaced
