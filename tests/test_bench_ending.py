"""How the commands of the benchmarks end: what is wrong is said in a line, with the exit code of bad input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.ending import ending
from benchmarks.research import __main__ as research
from benchmarks.research import running
from benchmarks.scoring import __main__ as scoring
from benchmarks.scoring import reports
from benchmarks.world import __main__ as world
from fathom.models.run import BatchResult, RowStatus
from tests.conftest import base_env

Ended = Callable[..., object]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Ended:
    """Return the exit code of a command's main function."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # which the commands replace
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def code_of(main: Callable[[], None], *arguments: object) -> object:
        monkeypatch.setattr(sys, "argv", ["command", *map(str, arguments)])
        try:
            with ending():
                main()
        except SystemExit as error:
            return error.code or 0
        return 0

    return code_of


def test_bad_input_has_one_exit_code_and_is_named(
    ended: Ended, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "lines.jsonl").write_text("no JSON\n")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe")
    (tmp_path / "questions.jsonl").write_text('{"id": "1", "question": "Why?"}\n')
    for name, file, text in (("a", "system.json", "{"), ("b", "result.json", "{}"), ("c", "results.jsonl", "no JSON")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(text)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "system.json").write_text('{"name": "s", "set": "q"}')
    (tmp_path / "d" / "results.jsonl").write_text('{"id": "1", "status": "complete"}')
    written = ["--out", tmp_path / "out", "--system", "s", "--questions"]
    for main, arguments, named in (
        (scoring.main, [tmp_path / "none"], "none does not exist"),
        (scoring.main, [tmp_path / "lines.jsonl"], "holds no results"),
        (scoring.main, [tmp_path / "a"], "system.json is damaged"),
        (scoring.main, [tmp_path / "b"], "run_id Field required"),
        (scoring.main, [tmp_path / "c"], "is damaged"),
        (scoring.main, [tmp_path / "d"], "without its question: '1'"),
        (scoring.main, [tmp_path / "d", "--questions", tmp_path / "lines.jsonl"], "lines.jsonl, line 1: Invalid JSON"),
        (scoring.main, [tmp_path / "d", "--questions", tmp_path / "bytes.jsonl"], "not text in UTF-8"),
        (scoring.main, [tmp_path / "d", "--questions", tmp_path], "Is a directory"),
        (reports.main, [tmp_path, *written, tmp_path / "lines.jsonl"], "lines.jsonl, line 1"),
        (reports.main, [tmp_path, *written, tmp_path / "questions.jsonl"], "holds no report of these"),
        (world.main, ["--kind", "weather"], "These questions have no kind 'weather'"),
        (world.main, ["--set", "depth"], "'depth' is not NAME=VALUE"),
        (compare.main, ["no-such-commit", "HEAD"], "no commit 'no-such-commit'"),
        (research.main, ["no-such-set"], "no set 'no-such-set'"),
        (research.main, [], "SET is missing"),
        (research.main, ["simpleqa", "--max-usd", "0"], "--max-usd 0.0: it must be more than 0"),
    ):
        assert ended(main, *arguments) == 2, named
        said = capsys.readouterr().err
        assert named in said
        assert "Traceback" not in said


@pytest.mark.usefixtures("providers", "home")
def test_a_question_that_was_not_asked_is_a_failure(
    ended: Ended, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "q.json").write_text('[{"id": 7, "question": "Why?"}]')
    monkeypatch.setattr("fathom.flows.preflight.find_api", lambda: None)  # as no batch is run
    arguments = ["researcher-bench", "--data", tmp_path / "q.json", "--out", tmp_path / "out", "--max-calls", "100"]
    for status, code in ((RowStatus.complete, 0), (RowStatus.not_asked, 1)):
        result = BatchResult(
            run_id="", artifacts="", results="", page="", questions=1, ended={status: 1}, cost_usd=0.0, tokens=0
        )
        monkeypatch.setattr(running, "run", lambda *_, found=result, **__: found)
        assert ended(research.main, *arguments, "--model", "openai/stub") == code


def test_ctrl_c_and_an_unexpected_error_end_as_elsewhere(
    ended: Ended, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "find", lambda name: name)
    monkeypatch.setattr(compare, "checked_out", interrupted)
    assert ended(compare.main, "a", "b") == 130
    assert "both checkouts are removed" in capsys.readouterr().err
    monkeypatch.setattr(compare, "find", lambda _name: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        ended(compare.main, "a", "b")


def test_a_closed_pipe_ends_a_command_quietly() -> None:
    command = [sys.executable, "-m", "benchmarks.world", "pages"]
    with subprocess.Popen(command, env=base_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (1, b"")
