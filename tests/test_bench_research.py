"""The benchmarks of the field: each file is read as its authors write it, each submission as they read it."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from itertools import cycle
from pathlib import Path

import pytest

from benchmarks.research.article import article
from benchmarks.research.outcome import write_outcome
from benchmarks.research.reading import Row, read_rows
from benchmarks.research.registry import BENCHMARKS
from benchmarks.research.running import check_caps, prepare, run
from benchmarks.results import RESULTS, Question, Result, read_lines
from fathom.errors import InvalidInput
from fathom.models import Report
from fathom.models.run import BatchRow, PhaseCost, Range, RowStatus
from tests.inprocess import QUERY, investigated

ASKED, EXPECTED, CANARY = "Which moon has seas?", "Titan", "a canary"


def hidden(text: str) -> str:
    key = cycle(hashlib.sha256(CANARY.encode()).digest())
    return base64.b64encode(bytes(a ^ b for a, b in zip(text.encode(), key, strict=False))).decode()


def workbook(path: Path, rows: list[list[str]]) -> None:
    cells = [
        "".join(f'<c r="{"ABCD"[x]}{y}" t="inlineStr"><is><t>{text}</t></is></c>' for x, text in enumerate(row))
        for y, row in enumerate(rows, 1)
    ]
    body = "".join(f"<row>{row}</row>" for row in cells)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(path, "w") as parts:
        parts.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{space}"><sheetData>{body}</sheetData></worksheet>'
        )


def data_of(name: str, folder: Path) -> Path:
    """Write a file of a benchmark's form with one question, and return its path."""
    live = {"qid": "7", "question": "now", "question_no_placeholder": ASKED, "checklist": "a"}
    files = {
        "deep-research-bench": ("q.jsonl", json.dumps({"id": 7, "topic": "t", "language": "en", "prompt": ASKED})),
        "researcher-bench": ("q.json", json.dumps([{"id": 7, "question": ASKED}])),
        "deep-research-gym": ("q.jsonl", json.dumps({"id": "7", "query": ASKED})),
        "live-research-bench": ("q.jsonl", f"{json.dumps(live)}\n{json.dumps(live)}"),
        "browsecomp": (
            "q.csv",
            f"problem,answer,problem_topic,canary\n{hidden(ASKED)},{hidden(EXPECTED)},t,{CANARY}\n",
        ),
        "browsecomp-plus": ("q.jsonl", json.dumps({"query_id": "7", "query": ASKED, "answer": EXPECTED})),
        "simpleqa": ("q.csv", f'metadata,problem,answer\n{{}},{ASKED},"{EXPECTED}\r\n"\n'),
    }
    if name == "browsecomp-zh":
        path = folder / "q.xlsx"
        header = ["Topic", "Question", "Answer", "canary"]
        workbook(path, [header, [hidden("t"), hidden(ASKED), hidden(EXPECTED), CANARY]])
        return path
    path = folder / files[name][0]
    path.write_text(files[name][1], encoding="utf-8")
    return path


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_file_is_read_and_another_is_refused(name: str, tmp_path: Path) -> None:
    benchmark = BENCHMARKS[name]
    (question,) = benchmark.questions(data_of(name, tmp_path))
    assert question.question == ASKED
    assert question.answer in ([], [[EXPECTED]])
    other = tmp_path / "other.json"
    other.write_text('[{"something": "else"}]')
    for path in (None, tmp_path / "absent", other):
        with pytest.raises(InvalidInput) as raised:
            benchmark.questions(path)
        assert benchmark.get in raised.value.next_step


def test_the_older_checklist_of_live_research_bench_has_one_column_of_questions(tmp_path: Path) -> None:
    path = tmp_path / "checklist.csv"
    path.write_text(f"qid,question,category,checklist_id,checklist\n7,{ASKED},c,q1,a\n7,{ASKED},c,q2,b\n")
    benchmark = BENCHMARKS["live-research-bench"]
    assert [(one.id, one.question) for one in benchmark.questions(path)] == [("7", ASKED)]
    path.write_text("qid,question,checklist\n7,What changed in {{current_year}}?,a\n")
    with pytest.raises(InvalidInput, match="placeholder"):
        benchmark.questions(path)


def test_an_encrypted_file_is_not_asked_as_it_stands(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="encrypted"):
        BENCHMARKS["simpleqa"].questions(data_of("browsecomp", tmp_path))


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "xlsx"])
@pytest.mark.parametrize("name", BENCHMARKS)
def test_what_is_no_such_file_is_refused_in_one_line(name: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"q.{ending}"
    for content in (b"", b"\x00\xff", b"3", b"{}", b'[{"canary": null}]', b"canary,problem,answer,Topic\nx\n"):
        path.write_bytes(content)
        with pytest.raises(InvalidInput) as raised:
            BENCHMARKS[name].questions(path)
        assert "--data" in raised.value.next_step
        assert "\n" not in str(raised.value)


def test_a_long_file_is_not_held_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"query_id": "7"}\nno JSON\n')
    seen = []

    def made(number: int, row: Row) -> None:
        seen.append((number, row))

    with pytest.raises(ValueError, match="Expecting value"):
        read_rows(path, made)
    assert seen == [(1, {"query_id": "7"})]


@pytest.mark.usefixtures("providers")
async def test_every_submission_has_what_finished_and_names_what_did_not(tmp_path: Path) -> None:
    result = await investigated(tmp_path / "store", mode="answer", profile="quick")
    row = BatchRow(
        number=1, question=QUERY, status=RowStatus.complete, report=result.report or "", answer="Tides form."
    )
    failed = BatchRow(number=2, question=ASKED, status=RowStatus.failed)
    questions = [Question(id="7", question=QUERY, answer=[["tides"]]), Question(id="8", question=ASKED)]
    written = {}
    for name, benchmark in BENCHMARKS.items():
        out = tmp_path / name
        for _ in range(2):  # a later run replaces the submission
            write_outcome(out, benchmark, questions, [row, failed])
        files = [file for file in sorted((out / "submission").rglob("*")) if file.is_file()]
        written[name] = {str(file.relative_to(out / "submission")): file.read_text() for file in files}
        ended = read_lines(out / RESULTS, Result)
        assert [(one.status, bool(one.report)) for one in ended] == [("complete", True), ("failed", False)]
        assert ASKED not in "".join(written[name].values())
    assert json.loads(written["deep-research-bench"]["fathom.jsonl"])["id"] == 7  # a number, as in their file
    assert [row["id"] for row in json.loads(written["researcher-bench"]["fathom.json"])] == [7]
    assert [*written["deep-research-gym"]] == ["fathom/7.a", "fathom/7.q"]
    assert [*written["live-research-bench"]] == ["fathom/qid_7_report.md"]
    response = json.loads(written["browsecomp"]["responses.jsonl"])["response"]
    assert [line.partition(":")[0] for line in response.splitlines()] == ["Explanation", "Exact Answer"]
    assert json.loads(written["simpleqa"]["responses.jsonl"])["response"] == "Tides form."
    assert [*written["browsecomp-zh"]] == ["infer.jsonl", "questions.json"]
    run = json.loads(written["browsecomp-plus"]["run_7.json"])
    assert run["status"] == "completed"
    assert "[" not in run["result"][0]["output"]  # which would be taken for the id of a document


@pytest.mark.usefixtures("providers")
async def test_an_article_has_whole_addresses_and_no_appendix(tmp_path: Path) -> None:
    result = await investigated(tmp_path, profile="quick")
    text = article(Report.model_validate_json(Path(result.report or "").with_suffix(".json").read_bytes()))
    body, _, listed = text.partition("## References\n\n")
    assert "[1]" in body
    assert all(line.split(" ")[-1].startswith("http") for line in listed.splitlines())
    assert "How this was researched" not in body


@pytest.mark.usefixtures("providers", "home")
def test_the_same_command_again_may_go_on_and_another_may_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    keys = []
    monkeypatch.setattr(
        "fathom.interfaces.cli.batch.research_batch", lambda _, request, *__, **___: keys.append(request["run_key"])
    )
    monkeypatch.setattr("fathom.flows.preflight.find_api", lambda: None)  # as no batch is run
    benchmark, out = BENCHMARKS["researcher-bench"], tmp_path / "out"
    questions = [Question(id="7", question=ASKED)]
    for profile in ("quick", "quick"):
        prepared = prepare(benchmark, questions, out, {"model": "openai/stub", "profile": profile})
        run(prepared, {"max_calls": 9}, at_once=1, quiet=True, progress=False)
    with pytest.raises(InvalidInput, match="other settings"):
        prepare(benchmark, questions, out, {"model": "openai/stub", "profile": "deep"})
    other = prepare(benchmark, questions, tmp_path / "other", {"model": "openai/stub", "profile": "deep"})
    run(other, {"max_calls": 9}, at_once=1, quiet=True, progress=False)
    assert keys[0] == keys[1] != keys[2]  # Prefect would return the runs of the first folder for the other


def test_what_costs_needs_a_cap() -> None:
    none = Range(0, 0)

    def whole(usd: Range | None) -> list[PhaseCost]:
        return [PhaseCost("all questions", "", none, none, none, usd)]

    check_caps(whole(none), {}, 8, 4)
    check_caps(whole(None), {"max_usd": 1}, 8, 4)
    check_caps(whole(Range(1, 2)), {"max_usd": 0.5}, 8, 4)
    for usd, said in ((None, "not known"), (Range(1, 2), "at most")):
        with pytest.raises(InvalidInput, match=said):
            check_caps(whole(usd), {}, 8, 4)
    for at_once, said in ((4, "4 questions at the same time"), (1, "1 question at the same time")):
        with pytest.raises(InvalidInput, match=f"--max-usd 0.1 is too little for {said}") as raised:
            check_caps(whole(Range(1, 2)), {"max_usd": 0.1}, 8, at_once)
        assert f"--max-usd {0.5 if at_once == 4 else 0.13:.2f} or more" in raised.value.next_step
