"""What changed between two runs: values, not words; what the sources say, not what a report mentions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from benchmarks.changes import Score, questions, report_on, score
from fathom.changes.comparing import ComparedRun, compare
from fathom.changes.model import Changes
from fathom.changes.values import differences, row_differences
from fathom.evidence.stored import StoredText
from fathom.evidence.verify import check_claims
from fathom.models import Report, ReportSection, Source
from fathom.report.changes import render_changes, render_changes_html, summary_of
from fathom.text.urls import source_ids
from tests.stubs import Stubs

PLANT, PRICES = "https://plant.example.org/facts", "https://shop.example.com/prices"
PAGE = (
    "# The plant\n\nThe Norden plant produces 412 MW. It opened on 3 May 2019. It employs about 120 people in Tarn.\n\n"
    "Visitors are welcome on Mondays. The cantina serves fish and soup to all workers of the plant."
)


def side(pages: Mapping[str, str], said: Sequence[tuple[str, str]], *, full: bool = True) -> ComparedRun:
    """Return a run that read some pages, and whose report says some sentences of them."""
    ids = source_ids(pages)
    texts = [
        StoredText(Source(source_id=ids[url], url=url, title=f"Of {url}", kind="web", full=full), text)
        for url, text in pages.items()
    ]
    markdown = "\n\n".join(f"{sentence} [{ids[url]}]" for sentence, url in said)
    section = ReportSection(heading="In short", markdown=markdown)
    sources = [text.source for text in texts]
    report = Report(title="R", query="Q", extractive=False, sections=[section], sources=sources)
    report = report.model_copy(update={"claims": check_claims(report, texts, {})})
    return ComparedRun("1a2b3c4d", "2026-11-23T06:00:00+00:00", "What about the plant?", report, texts)


def told(changes: Changes) -> list[tuple[str, str, str]]:
    """Return the kind of each change with the sentences before and after."""
    return [
        (c.kind, c.before.sentence if c.before else "", c.after.sentence if c.after else "") for c in changes.changes
    ]


@pytest.mark.parametrize(
    ("old", "new", "about", "values"),
    [
        ("It has 1,000 seats.", "It has 1,200 seats.", "number", ("1,000", "1,200")),
        ("It opened on 3 May 2019.", "It opened on May 4, 2019.", "date", ("3 May 2019", "May 4, 2019")),
        ("The ferry leaves at 8:30 today.", "The ferry leaves at 9:15 today.", "number", ("8:30", "9:15")),
        ("They are in third place now.", "They are in second place now.", "number", ("third", "second")),
        ("The head is Ada Holm.", "The head is Bo Lind.", "name", ("Ada Holm", "Bo Lind")),
        ("He left Kenko University early.", "He left Kenko Academy early.", "name", ("University", "Academy")),
        ("Dogs are allowed.", "Dogs are not allowed.", "negation", ("allowed", "not allowed")),
        ("Dogs are allowed.", "Dogs are forbidden.", "opposite", ("allowed", "forbidden")),
        ("The default is blue.", "The default is green.", "words", ("blue", "green")),
        ("Der Damm ist für Gäste offen.", "Der Damm ist für Gäste nicht offen.", "negation", ("offen", "not offen")),
    ],
)  # fmt: skip
def test_another_value_is_a_change(old: str, new: str, about: str, values: tuple[str, str]) -> None:
    (found,) = differences(old, new)
    assert (found.about, found.before, found.after) == (about, *values)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It has 1,000 seats.", "It has 1000 seats."),
        ("It is 0.5 km long.", "It is 500 m long."),
        ("It holds five people.", "It holds 5 people."),
        ("It opened on 3 May 2019.", "The opening was on May 3, 2019."),
        ("It opened in May 2019.", "It opened on 3 May 2019."),
        ("The event begins at noon.", "The event starts at noon."),
        ("The big house is old.", "The large house is old."),
        ("The colour is grey.", "The colour is gray."),
        ("UTF-8 is the encoding.", "The encoding is UTF-8: it is so."),
        ("One of them may enter.", "They may enter."),
    ],
)
def test_other_words_are_no_change(old: str, new: str) -> None:
    assert differences(old, new) == []


def test_a_cell_is_a_value() -> None:
    assert row_differences("Tree | 12 euros | on request", "Tree | EUR 12 | at once")[0].after == "at once"
    assert row_differences("Tree | 1,000", "Tree | 1000") == []


def test_what_the_sources_say_counts_and_not_what_a_report_mentions() -> None:
    first = [("Norden produces 412 MW.", PLANT), ("On Mondays visitors are welcome.", PLANT)]
    other = [("In Tarn the plant employs about 120 people.", PLANT), ("412 MW are produced by the plant.", PLANT)]
    found = compare(side({PLANT: PAGE}, first), side({PLANT: PAGE}, other))
    assert (told(found), found.unchanged, found.unmentioned, found.any) == ([], 2, 1, False)
    assert summary_of(found) == "nothing changed, 2 unchanged"


def test_runs_that_read_other_sources_are_not_called_the_same() -> None:
    found = compare(
        side({PLANT: PAGE}, [("Norden produces 412 MW.", PLANT)]),
        side({"https://other.example/": "Bees sleep."}, [("Bees sleep.", "https://other.example/")]),
    )
    assert found.unread
    assert "nothing changed" not in summary_of(found)


def test_a_changed_page_is_told_once_with_both_values_and_sources() -> None:
    later = PAGE.replace("412", "430").replace("Visitors are welcome on Mondays.", "A second turbine was ordered.")
    first = [("Norden produces 412 MW.", PLANT), ("The plant's output is 412 MW.", PLANT), ("About 120 people.", PLANT)]
    first.append(("On Mondays visitors are welcome.", PLANT))
    second = [
        ("430 MW are produced.", PLANT),
        ("It was opened on 3 May 2019.", PLANT),
        ("A second turbine was ordered.", PLANT),
    ]
    found = compare(side({PLANT: PAGE}, first), side({PLANT: later}, second))
    assert told(found) == [
        ("changed", "Norden produces 412 MW.", "430 MW are produced."),
        ("new", "", "A second turbine was ordered."),
        ("gone", "On Mondays visitors are welcome.", ""),
    ]
    (value,) = found.changes[0].differences
    assert (value.before, value.after) == ("412 MW", "430 MW")
    assert found.changes[0].before and found.changes[0].before.sources[0].url == PLANT
    assert summary_of(found) == "1 changed, 1 new, 1 gone, 1 unchanged"


def test_a_heading_says_something_too() -> None:
    page = "# Plans\n\n## The Pro plan costs 20 dollars a month\n\nIt has ten seats and a phone line.\n"
    later = page.replace("20 dollars", "35 dollars")
    before, after = (
        side({PRICES: page}, [("The Pro plan costs 20 dollars a month.", PRICES)]),
        side({PRICES: later}, [("The Pro plan costs 35 dollars a month.", PRICES)]),
    )
    found = compare(before, after)
    assert [(c.kind, [(d.before, d.after) for d in c.differences]) for c in found.changes] == [
        ("changed", [("20 dollars", "35 dollars")])
    ]
    without = side({PRICES: "# Plans\n\nIt has ten seats and a phone line."}, [("It has ten seats.", PRICES)])
    assert ("gone", "The Pro plan costs 20 dollars a month.", "") in told(compare(before, without))
    assert ("new", "", "The Pro plan costs 35 dollars a month.") in told(compare(without, after))
    assert told(compare(before, side({PRICES: page}, [("A month of the Pro plan costs 20 dollars.", PRICES)]))) == []


def test_a_claim_whose_sentences_are_not_found_is_never_left_out() -> None:
    table = "| Plan | Price of 20 euros a month |\n|---|---|\n| Tree | yes |\n\nThe cantina serves soup."
    other = "The cantina serves soup."
    bare, full = (
        side({PRICES: text}, said)
        for text, said in ((other, []), (table, [("The plan has a price of 20 euros a month.", PRICES)]))
    )
    lost, new = compare(full, bare), compare(bare, full)
    assert [one.sentence for one in lost.unread] == ["The plan has a price of 20 euros a month."]
    assert told(new) == [("new", "", "The plan has a price of 20 euros a month.")]
    for found in (lost.unread[0], new.changes[0].after):
        assert found and "Price of 20 euros" in found.passages[0] and [p.url for p in found.sources] == [PRICES]
    assert new.changes[0].note == ""


def test_of_a_source_that_was_not_read_nothing_is_known() -> None:
    both = {PLANT: PAGE, PRICES: "# Prices\n\nA tour of the plant costs 9 euros."}
    said = [("Norden produces 412 MW.", PLANT), ("A tour of the plant costs 9 euros.", PRICES)]
    found = compare(side(both, said), side({PLANT: PAGE}, said[:1]))
    assert [one.sentence for one in found.unread] == ["A tour of the plant costs 9 euros."]
    assert ([place.url for place in found.sources_gone], found.any) == ([PRICES], False)
    found = compare(side({PLANT: PAGE}, said[:1]), side(both, said))
    assert told(found) == [("new", "", "A tour of the plant costs 9 euros.")]
    assert found.changes[0].note == "The earlier run did not read this source."
    # An excerpt has only a part of its page: what it lacks is not gone.
    excerpt = side({PLANT: PAGE.partition("\n\nVisitors")[0]}, [], full=False)
    found = compare(
        side({PLANT: PAGE}, [("The cantina serves fish and soup to all workers of the plant.", PLANT)]), excerpt
    )
    assert (told(found), len(found.unread)) == ([], 1)


def test_another_source_may_give_the_new_value_or_the_same() -> None:
    mill = "https://mill.example.net/"
    old = side(
        {PLANT: "The Norden plant was opened in 2019 and employs 120 people."},
        [("The Norden plant was opened in 2019.", PLANT)],
    )
    new = side(
        {mill: "The Norden plant was opened in 2018, records show."}, [("The Norden plant was opened in 2018.", mill)]
    )
    assert [kind for kind, *_ in told(compare(old, new))] == ["changed"]
    same = side(
        {mill: "Records show that the Norden plant was opened in 2019."},
        [("The Norden plant was opened in 2019.", mill)],
    )
    found = compare(old, same)
    assert (told(found), found.unchanged) == ([], 1)


def test_a_new_contradiction_is_told() -> None:
    mill = "https://mill.example.net/"
    pages = {PLANT: "The Norden plant has a chimney of 140 metres.", mill: "Birds live on the roof of the mill."}
    said = [("The Norden plant has a chimney of 140 metres.", PLANT)]
    later = {**pages, mill: "Birds live on the roof of the mill. The Norden plant has a chimney of 190 metres."}
    found = compare(side(pages, said), side(later, said))
    assert [(c.kind, c.after.passages if c.after else []) for c in found.changes] == [
        ("disputed", ["The Norden plant has a chimney of 190 metres."])
    ]
    assert [c.kind for c in compare(side(later, said), side(pages, said)).changes] == ["settled"]


def test_a_run_without_a_report_is_a_change() -> None:
    some = side({PLANT: PAGE}, [("Norden produces 412 MW.", PLANT)])
    none = ComparedRun("5e6f7a8b", "2026-11-24", "Q", None, [])
    lost, back = compare(some, none), compare(none, some)
    assert (lost.any, lost.lost, back.any, back.regained) == (True, True, True, True)
    assert summary_of(lost) == "no report this time; the one before had 1 claim"
    assert "without a report" in render_changes_html(lost)
    assert compare(none, none).any is False


def test_foreign_text_stays_text() -> None:
    evil = "The [plant](javascript:alert(1)) <script>alert(2)</script> makes `412` MW\u202e."
    found = compare(
        side({PLANT: f"{evil}"}, [(evil, PLANT)]),
        side({PLANT: evil.replace("412", "430")}, [(evil.replace("412", "430"), PLANT)]),
    )
    assert [kind for kind, *_ in told(found)] == ["changed"]
    page = render_changes_html(found)
    assert (
        "<script>alert" not in page and "\u202e" not in page and "javascript:" not in re.sub(r"<[^>]*>[^<]*", "", page)
    )
    assert re.findall(r'href="(?!#|\./report\.html|https://plant\.example\.org)', page) == []
    html = MarkdownIt().render(render_changes(found))
    assert "<script" not in html and 'href="javascript' not in html


@pytest.mark.parametrize("number", [2, 7])
async def test_changes_are_found_over_whole_runs(number: int, providers: Stubs, tmp_path: Path) -> None:
    """Two reports in other words: nothing over the same pages, and every change of changed ones."""
    question = questions()[number]
    first = await report_on(question, providers, tmp_path, changed=False, second=False)
    other = await report_on(question, providers, tmp_path, changed=False, second=True)
    later = await report_on(question, providers, tmp_path, changed=True, second=True)
    same, changed = Score(), Score()
    score(compare(first, other), question, first, other, changed=False, total=same)
    score(compare(first, later), question, first, later, changed=True, total=changed)
    assert (same.false, changed.false, changed.missed) == ([], [], [])
    assert changed.found.total() == len(question.planted)
