"""Scores of finished runs: every system's report is read into the same claims, and what is made worse scores worse."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.results import (
    PAGES,
    QUESTIONS,
    REPORTS,
    RESULTS,
    SYSTEM,
    FactCheck,
    Page,
    Question,
    Result,
    System,
    read_lines,
    write_lines,
)
from benchmarks.scoring import __main__ as scoring
from benchmarks.scoring import reports
from benchmarks.scoring.measures import Scores, score
from benchmarks.scoring.reading import Finished, Runs, read_runs
from benchmarks.scoring.summary import ROWS, Scored, calibration, difference
from benchmarks.scoring.table import kinds, missed, report, table
from fathom.evidence.claims import claims_of
from fathom.models import Report, ReportSection, Source
from fathom.models.run import RowStatus
from fathom.report.foreign.reading import read_markdown
from fathom.report.markdown import render_markdown
from fathom.text.urls import source_ids

TOWN, YEARBOOK, FERRY = (
    "https://karrow.example/town",
    "https://statistics.example/yearbook_(towns)",
    "https://ferry.example/fares",
)
URLS = (TOWN, YEARBOOK, FERRY)
TITLES = ("Karrow", "Yearbook: the towns", "Fares")
IDS = [source_ids(URLS)[url] for url in URLS]
TITLE = "Karrow, its harbour and its ferry"
SECTIONS = {
    "Town": "Karrow has 31,775 inhabitants {0}. It received its charter in 1388, before all others but one {0}{1}, "
    "and it holds its market on Saturday {0}.",
    "Harbour": "- The outer quay is 410 metres long {1}.\n- Repairs were finished in March 2024 {0}.",
    "Ferry": "The first crossing is at 09:15 in the morning. Foot passengers pay 14 crowns {2}.\n\n"
    "The winter timetable has fewer boats {1}{2}.",
}
TEXTS = (
    "Karrow has 31,775 inhabitants. The town received its charter in 1388, before all others but one, and it "
    "holds its market on Saturday. Repairs of the harbour were finished in March 2024.",
    "The outer quay of Karrow is 410 metres long, the yearbook says. The town received its "
    "charter in 1388, before all others but one.\n\n"
    "The winter timetable has fewer boats.",
    "The first crossing is at 09:15 in the morning. Foot passengers pay 14 crowns.\n\nIn winter, the winter "
    "timetable has fewer boats.",
)
KNOWN = [Page(url=url, title=title, text=text) for url, title, text in zip(URLS, TITLES, TEXTS, strict=True)]
QUESTION = Question(
    id="q-1",
    question="How long is the quay of Karrow, and what does the ferry cost?",
    kind="number",
    answer=[["410 metres", "410 m"], ["14 crowns"]],
    required_sources=["karrow.example", "https://statistics.example/yearbook_(towns)", "absent.example"],
    expected_topics=[["charter"], ["lighthouse"]],
    fact_checks=[
        FactCheck(claim="The quay is 410 m long.", is_true=True, words=[["410 metres", "410 m"]]),
        FactCheck(claim="The quay is 390 m long.", is_true=False, words=[["quay"], ["390 metres"]]),
    ],
)


def written(marks: Sequence[str]) -> str:
    parts = (f"## {heading}\n\n{text.format(*marks)}" for heading, text in SECTIONS.items())
    return "\n\n".join([f"# {TITLE}", *parts])


def with_links() -> str:
    """As gpt-researcher writes: links in brackets of their own, and a list of references."""
    listed = "\n".join(f"- {title}. Retrieved from [{url}]({url})" for title, url in zip(TITLES, URLS, strict=True))
    marks = [f"([{title}]({url}))" for title, url in zip(TITLES, URLS, strict=True)]
    return f"{written(marks)}\n\n## References\n\n{listed}\n"


def with_numbers(urls: Sequence[str] = URLS) -> str:
    """As open_deep_research writes: numbers, and a list of sources."""
    listed = "\n".join(f"[{n}] {title}: {url}" for n, (title, url) in enumerate(zip(TITLES, urls, strict=True), 1))
    return f"{written(['[1]', '[2]', '[3]'])}\n\n### Sources\n\n{listed}\n"


def of_fathom(*, linked: bool = False) -> str:
    """As Fathom writes, without its line on how sure it is; `linked`: every number is a link."""
    sections = [
        ReportSection(heading=heading, markdown=text.format(*(f"[{one}]" for one in IDS)))
        for heading, text in SECTIONS.items()
    ]
    sources = [Source(source_id=i, url=u, title=t, kind="web") for i, u, t in zip(IDS, URLS, TITLES, strict=True)]
    report = Report(title=TITLE, query=TITLE, extractive=False, sections=sections, sources=sources)
    return re.sub(r"\*\*How sure:.*\n", "", render_markdown(report, linked=linked))


def read(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the claims of a report, each with the addresses that it cites."""
    cited = read_markdown(text)
    assert cited.dangling == []
    addresses = {source.source_id: source.url for source in cited.sources}
    return [(one.sentence, tuple(addresses[i] for i in one.source_ids)) for one in claims_of(cited.sections)]


EXPECTED = [
    ("Karrow has 31,775 inhabitants.", (TOWN,)),
    (
        "It received its charter in 1388, before all others but one, and it holds its market on Saturday.",
        (TOWN, YEARBOOK),
    ),
    ("The outer quay is 410 metres long.", (YEARBOOK,)),
    ("Repairs were finished in March 2024.", (TOWN,)),
    ("The first crossing is at 09:15 in the morning.", (FERRY,)),
    ("Foot passengers pay 14 crowns.", (FERRY,)),
    ("The winter timetable has fewer boats.", (YEARBOOK, FERRY)),
]


@pytest.mark.parametrize(
    "text",
    [with_links(), with_numbers(), of_fathom(), of_fathom(linked=True)],
    ids=["gpt-researcher", "open_deep_research", "Fathom", "Fathom with links"],
)
def test_reports_of_all_systems_are_read_into_the_same_claims(text: str) -> None:
    assert read(text) == EXPECTED


LISTED = f"\n\n## References\n\n[1] Town: {TOWN}\n2. Fares: <{FERRY}>\n"


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        (f"Boats leave at 09:15 ([Fares]({FERRY}), [Town]({TOWN})).", [FERRY, TOWN]),
        (f"Boats leave at 09:15 (see [Fares]({FERRY}) and [Town]({TOWN})).", [FERRY, TOWN]),
        (f"Boats leave at 09:15 (Source: {FERRY}).", [FERRY]),
        (f"Boats leave at 09:15 [[1]]({FERRY}).", [FERRY]),
        (f"Boats leave at 09:15 [\\[1\\]]({FERRY}).", [FERRY]),
        (f"Boats leave at 09:15 [1]({FERRY}).", [FERRY]),
        (f'Boats leave at 09:15 [link]({FERRY} "Fares").', [FERRY]),
        (f"Boats leave at 09:15. [1][2]{LISTED}", [TOWN, FERRY]),
        (f"Boats leave at 09:15 [1, 2].{LISTED}", [TOWN, FERRY]),
        (f"Boats leave at 09:15 [1-2].{LISTED}", [TOWN, FERRY]),
        (f"Boats leave at 09:15 【2】.{LISTED}", [FERRY]),
        (f"Boats leave at 09:15 【2†L3-L9】.{LISTED}", [FERRY]),
        (f"Boats leave at 09:15 [^a].\n\n[^a]: Fares, {FERRY}", [FERRY]),
        (f"Boats leave at 09:15 [1].\n\n[1]: {FERRY}", [FERRY]),
        (f"Boats leave at 09:15 [1].\n\n**Sources:**\n\n1. {FERRY}", [FERRY]),
        (f"Boats leave at 09:15 [1].\n\nReferences:\n\n1. {FERRY}", [FERRY]),
        (f"Boats leave at 09:15 [1].\n\n## 7. Sources and notes\n\n### Web\n\n1. {FERRY}", [FERRY]),
        (f"Boats leave at 09:15 [1].\n\n## Quellen\n\n[1] Preise: {FERRY}", [FERRY]),
    ],
)
def test_citations_are_read_in_every_form(text: str, addresses: list[str]) -> None:
    assert read(text) == [("Boats leave at 09:15.", tuple(addresses))]


def test_what_is_no_citation_is_not_read_as_one() -> None:
    assert read(f"As the [timetable]({FERRY}) shows, boats leave at 09:15.") == [
        ("As the timetable shows, boats leave at 09:15.", (FERRY,))
    ]
    assert read("## Sources of income\n\nFishing brings 40 % of it.") == [("Fishing brings 40 % of it.", ())]
    assert read(f"![A map of 1388]({TOWN}/map.png)\n\nKarrow is old: 637 years.") == [("Karrow is old: 637 years.", ())]
    code = "```\n# Sources\ncurl -O http://get.example/tide.deb\nlog[1]\n```"
    assert read(f"Install version 3 as follows:\n\n{code}\n\nIt needs 512 MB [1].{LISTED}") == [
        ("It needs 512 MB.", (TOWN,))
    ]
    assert read_markdown(f"Karrow has 12 bells [7].{LISTED}").dangling == ["7"]


@pytest.mark.parametrize("text", [f"(see {f'{FERRY}, ' * 500}", "[\\" * 5_000, "(" * 5_000, f"([a]({FERRY}" * 1_000])
def test_brackets_that_never_close_take_no_time(text: str) -> None:
    read_markdown(text)  # exponential before, so that pytest's limit ended it


def folder_of(root: Path, text: str, pages: Sequence[Page] = KNOWN, question: Question = QUESTION) -> Path:
    """Write a results folder of one report."""
    (root / REPORTS).mkdir(parents=True, exist_ok=True)
    (root / REPORTS / "q-1.md").write_text(text, encoding="utf-8")
    (root / SYSTEM).write_text(System(name="other", set="Karrow", model="stub").model_dump_json(), encoding="utf-8")
    write_lines(root / QUESTIONS, [question])
    write_lines(root / RESULTS, [Result(id="q-1", status=RowStatus.complete, report=f"{REPORTS}/q-1.md", tokens=700)])
    write_lines(root / PAGES, pages)
    return root


def scored(text: str, pages: Sequence[Page] = KNOWN, question: Question = QUESTION) -> Scores:
    with tempfile.TemporaryDirectory() as root:
        (run,) = read_runs(folder_of(Path(root), text, pages, question)).finished
    return score(run)


def test_a_report_has_the_scores_that_its_definitions_say() -> None:
    assert asdict(scored(with_numbers())) == asdict(
        Scores(
            claims=7,
            alike=1.0,
            near=0.0,
            apart=0.0,
            cited=1.0,
            precision=1.0,
            domains=3,
            independent=9 / 7,
            topics=0.5,
            required=2 / 3,
            facts=1.0,
            right=True,
            told=True,
            first=False,
            refused_wrongly=False,
            tokens=700,
        )
    )


def test_links_and_numbers_score_alike() -> None:
    assert scored(with_links()) == scored(with_numbers()) == scored(of_fathom())


def test_swapped_pages_are_seen() -> None:
    good, bad = scored(with_numbers()), scored(with_numbers((YEARBOOK, FERRY, TOWN)))
    assert good.precision is not None and bad.precision is not None and bad.precision < 0.5 * good.precision
    assert (bad.alike or 0) < 0.5 * (good.alike or 0)
    assert (bad.claims, bad.invented, bad.right) == (good.claims, 0, True)  # what was not touched


def test_changed_numbers_are_seen() -> None:
    good = scored(with_numbers())
    bad = scored(with_numbers().replace("410 metres", "390 metres").replace("31,775", "32,775"))
    assert bad.apart == pytest.approx((good.apart or 0) + 2 / 7)
    assert (bad.right, bad.false_facts, bad.facts) == (False, 1, 0.0)
    assert bad.precision is not None and bad.precision < 1


def test_pages_that_were_never_read_are_seen() -> None:
    bad = scored(with_numbers(), KNOWN[:2])
    assert bad.invented == 3  # citations of the third page
    assert (bad.alike or 0) < 1
    unknown = scored(with_numbers(), [])  # whether they were read is not known
    assert (unknown.alike, unknown.precision, unknown.invented, unknown.cited) == (None, None, 0, 1.0)


def test_copies_are_no_independent_sources() -> None:
    def both(text: str) -> float | None:
        other = KNOWN[0].model_copy(update={"url": "https://mirror.example/town", "text": text})
        said = f"Karrow has 31,775 inhabitants ([a]({TOWN}), [b]({other.url}))."
        return scored(said, [KNOWN[0], other]).independent

    assert both(TEXTS[0]) == 1.0
    assert both("At the census of 2025, Karrow has 31,775 inhabitants. More follows next year in another book.") == 2.0


def refusing(text: str | None, *, answerable: bool, status: RowStatus = RowStatus.complete) -> Scores:
    question = QUESTION.model_copy(update={"answerable": answerable, **({} if answerable else {"answer": []})})
    parts = () if text is None else tuple(one.markdown for one in read_markdown(text).sections)
    return score(Finished(question, Result(id="q-1", status=status), parts))


@pytest.mark.parametrize(
    ("text", "status", "refused"),
    [
        ("The sources do not say how deep the basin is. Karrow has 31,775 inhabitants.", RowStatus.complete, True),
        ("No information on this could be found.", RowStatus.complete, True),
        (None, RowStatus.insufficient_evidence, True),
        (None, RowStatus.failed, False),
        ("The basin is 12 metres deep.", RowStatus.complete, False),
    ],
)
def test_a_refusal_is_told_from_an_answer_and_from_a_crash(text: str | None, status: RowStatus, refused: bool) -> None:
    none, some = (refusing(text, answerable=one, status=status) for one in (False, True))
    assert (none.refused, none.refused_wrongly, none.right) == (refused, None, None)
    assert (some.refused, some.refused_wrongly, some.right) == (None, refused, False)
    assert none.failed is some.failed is (status is RowStatus.failed)


SHARES = ("alike", "near", "apart", "cited", "precision", "topics", "required", "facts")
PIECES = st.sampled_from(
    [*EXPECTED[2][0].split(), "[1]", "[2][3]", "[9]", "410 metres", "not", "## Town", "\n\n", "\n", "- ", "| a | b |",
     "|---|---|", "```", "(", ")", f"]({TOWN})", f"[Fares]({FERRY})", "### Sources", f"[1] A: {TOWN}", "**", ". "]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.text(max_size=40))
def test_shares_are_shares_whatever_is_written(pieces: list[str], other: str) -> None:
    scores = scored(" ".join([*pieces, other]))
    shares = [value for name in SHARES if (value := getattr(scores, name)) is not None]
    assert all(0 <= value <= 1 for value in shares)
    if scores.claims:
        assert (scores.alike or 0) + (scores.near or 0) + (scores.apart or 0) == pytest.approx(1)
        assert 0 <= (scores.independent or 0) <= len(URLS)
    assert 0 <= scores.verified <= scores.claims


SENTENCES = st.lists(
    st.tuples(
        st.sampled_from([sentence for sentence, _ in EXPECTED]),
        st.lists(st.sampled_from(["[1]", "[2]", "[3]"]), max_size=3, unique=True),
    ),
    min_size=1,
    max_size=6,
)
ELSEWHERE = st.sampled_from(
    [
        "Photosynthesis stores 38 units of energy in glucose.",
        "Beethoven finished three versions of Fidelio.",
        "Karrow has 99,999 inhabitants.",
    ]
)


def report_of(sentences: Sequence[tuple[str, list[str]]]) -> str:
    listed = "\n".join(f"[{n}] {url}" for n, url in enumerate((*URLS, "https://invented.example/page"), 1))
    lines = (f"{sentence[:-1]} {''.join(marks)}." for sentence, marks in sentences)
    return "\n\n".join([*lines, "## Sources", listed])


@settings(max_examples=25)
@given(SENTENCES, ELSEWHERE, st.sampled_from(["[1]", "[2]", "[3]"]))
def test_a_claim_apart_from_its_source_raises_nothing(
    sentences: list[tuple[str, list[str]]], said: str, mark: str
) -> None:
    before, after = scored(report_of(sentences)), scored(report_of([*sentences, (said, [mark])]))
    assert after.claims == before.claims + 1
    if before.precision is not None:
        assert (after.precision or 0) <= before.precision
    assert (after.alike or 0) <= (before.alike or 0)
    assert (after.apart or 0) >= (before.apart or 0)
    assert after.verified == pytest.approx(before.verified)
    assert (after.independent or 0) <= (before.independent or 0)


@settings(max_examples=25)
@given(SENTENCES, st.data(), st.sampled_from(["[4]", "[57]"]))
def test_an_invented_citation_is_counted(
    sentences: list[tuple[str, list[str]]], data: st.DataObject, mark: str
) -> None:
    """`[4]` leads to a page that was never read, `[57]` to nothing."""
    place = data.draw(st.integers(0, len(sentences) - 1))
    changed = [(said, [*marks, mark] if n == place else marks) for n, (said, marks) in enumerate(sentences)]
    before, after = scored(report_of(sentences)), scored(report_of(changed))
    assert after.invented == before.invented + 1
    assert after.alike == before.alike
    if before.precision is not None and mark == "[4]":
        assert after.precision is not None and after.precision <= before.precision


def many(name: str, scores: Sequence[Scores]) -> Scored:
    asked = (QUESTION.model_copy(update={"id": f"q-{n}"}) for n in range(len(scores)))
    runs = [Finished(one, Result(id=one.id, status=RowStatus.complete)) for one in asked]
    return Scored(Runs(System(name=name, set="Karrow"), runs), list(scores))


NAMED = ("Right answers", "Claims in their sources' words", "Tokens, a claim in its sources' words")


def test_two_systems_differ_only_where_the_interval_leaves_out_zero() -> None:
    good = [Scores(claims=4, alike=1.0, right=True, tokens=100)] * 8
    bad = [Scores(claims=4, alike=0.5, right=False, tokens=100)] * 8
    right, row, tokens = (next(row for row in ROWS if row.name == name) for name in NAMED)
    found = difference(right, many("a", bad), many("b", good))
    assert found and (found.value, found.low, found.high, found.clear, found.questions) == (1, 1, 1, True, 8)
    same = difference(right, many("a", good), many("b", good))
    assert same and (same.value, same.clear) == (0, False)
    mixed = difference(right, many("a", [*bad[:4], *good[:4]]), many("b", [*good[:3], *bad[:5]]))
    assert mixed and not mixed.clear
    assert difference(right, many("a", good[:1]), many("b", bad[:1])) is None
    # A ratio of sums: a run of many claims weighs more than one of few.
    assert row.mean([Scores(claims=9, alike=1.0), Scores(claims=1, alike=0.0)]) == 0.9
    assert tokens.mean([Scores(claims=4, alike=0.5, tokens=100), Scores(tokens=100)]) == 100
    assert right.mean([Scores()]) is None
    text = table([many("a", bad), many("b", good)])
    assert "| Right answers | 0 % | 100 % | +100 % (100 % to 100 %, n = 8) |" in text
    mixture = [*good[:7], Scores(refused=True)]
    assert kinds([many("a", mixture)]) == ""  # of one kind only
    other = many("b", bad[:1])
    other.runs.finished[0] = replace(other.runs.finished[0], question=QUESTION.model_copy(update={"kind": "fact"}))
    assert kinds([many("a", mixture), other]).splitlines()[2:] == ["| number | 8 of 8 | - |", "| fact | - | 0 of 1 |"]
    assert "| Right answers | 100 % of 7 |" in table([many("a", mixture)])


def test_the_questions_that_did_not_end_as_they_should_are_listed() -> None:
    ends = {
        "": [Scores(right=True, told=True, refused_wrongly=False), Scores(refused=True), Scores()],
        "failed": [Scores(failed=True, right=False)],
        "says what is false": [Scores(right=False, false_facts=1)],
        "not refused": [Scores(refused=False)],
        "refused, answer not quoted": [Scores(right=False, refused_wrongly=True)],
        "refused, answer quoted": [Scores(right=True, told=False, refused_wrongly=True)],
        "answer not found": [Scores(right=False, refused_wrongly=False)],
    }
    expected = [how for how, scores in ends.items() for _ in scores if how]
    head, *lines = missed(many("a", [one for scores in ends.values() for one in scores])).splitlines()
    assert head.startswith(f"{len(expected)} of {sum(map(len, ends.values()))} questions")
    assert [line[2:28].rstrip() for line in lines] == expected


def test_without_a_common_question_it_is_said_that_nothing_is_compared() -> None:
    mine, yours = many("a", [Scores(right=True)] * 3), many("b", [Scores(right=True)] * 3)
    assert "No question was put to both" not in report([mine, yours])
    for number, run in enumerate(yours.runs.finished):
        yours.runs.finished[number] = replace(run, question=run.question.model_copy(update={"id": f"other-{number}"}))
    assert "No question was put to both" in report([mine, yours])


def test_stated_confidence_is_compared_with_how_often_it_was_right() -> None:
    sure = [Scores(confidence=0.95, answer_right=True)] * 19 + [Scores(confidence=0.95, answer_right=False)]
    error, brier, count = calibration(sure) or (1, 1, 0)
    assert (error, brier) == pytest.approx((0, 0.95 * 0.0025 + 0.05 * 0.9025))
    assert count == 20
    error, _, _ = calibration([replace(one, confidence=1.0) for one in sure]) or (0, 0, 0)
    assert error == pytest.approx(0.05)
    assert calibration([Scores(answer_right=True), Scores(confidence=0.9)]) is None  # whether it is right is not known


def test_reports_of_another_system_become_a_folder_that_is_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, out, page = tmp_path / "theirs", tmp_path / "out", tmp_path / "scores.html"
    theirs.mkdir()
    (theirs / "q-1.md").write_text(with_links(), encoding="utf-8")
    write_lines(theirs / RESULTS, [Result(id="q-1", status=RowStatus.complete, tokens=4_200, usd=0.02, seconds=31)])
    asked = [QUESTION, Question(id="q-2", question="How deep is its basin?", kind="unknown", answerable=False)]
    write_lines(tmp_path / "questions.jsonl", asked)
    write_lines(tmp_path / "pages.jsonl", KNOWN)
    command = ["reports", str(theirs), "--questions", str(tmp_path / "questions.jsonl"), "--out", str(out)]
    command += ["--system", "gpt-researcher", "--model", "stub", "--pages", str(tmp_path / "pages.jsonl")]
    monkeypatch.setattr(sys, "argv", command)
    reports.main()
    assert capsys.readouterr().err == "1 of 2 questions have a report, 3 pages are known.\n"
    results = read_lines(out / RESULTS, Result)
    assert [(one.status, one.report, one.usd) for one in results] == [
        ("complete", "reports/q-1.md", 0.02),
        ("failed", "", None),
    ]

    monkeypatch.setattr(sys, "argv", ["scoring", str(out), "--page", str(page)])
    scoring.main()
    said = capsys.readouterr().out
    assert "| gpt-researcher, stub (2) |" in said
    assert "| Right answers | 100 % of 1 |" in said
    assert "| Refused where there is no answer | 0 % of 1 |" in said
    assert "| Tokens, a claim in its sources' words | 600.0 of 1 |" in said
    assert "<script" not in page.read_text(encoding="utf-8")
    assert System.model_validate_json((out / SYSTEM).read_text(encoding="utf-8")).name == "gpt-researcher"
    assert read_lines(out / PAGES, Page) == KNOWN


def test_every_score_has_its_definition() -> None:
    text = (Path(__file__).parent.parent / "docs" / "measuring.md").read_text(encoding="utf-8")
    assert [row.name for row in ROWS if f"| {row.name} |" not in text] == []
