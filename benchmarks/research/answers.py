"""Benchmarks of short answers."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.research.benchmark import Benchmark, Finished
from benchmarks.research.reading import Row, decrypted, read_rows
from benchmarks.results import Question
from fathom.config.settings import Mode

RESPONSES = "responses.jsonl"
_DOCID = re.compile(rb'\\*"docid\\*"\s*:\s*\\*"?([\w.-]+)')
_EVALS = "https://github.com/openai/simple-evals"
_BUCKET = "https://openaipublic.blob.core.windows.net/simple-evals"


def response_of(one: Finished) -> str:
    """Return an answer as BrowseComp wants it; the confidence stands there only if the run stated one."""
    lines = [f"Explanation: {one.explanation}", f"Exact Answer: {one.result.answer or 'not found'}"]
    if one.result.confidence is not None:
        lines.append(f"Confidence: {one.result.confidence:.0%}")
    return "\n".join(lines)


def _expected(answer: str) -> list[list[str]]:
    answer = " ".join(answer.split())  # a line break at its end would have to stand in the report
    return [[answer]] if answer else []


def _read_browsecomp(path: Path) -> list[Question]:
    def question(number: int, row: Row) -> Question:
        canary = row["canary"]
        answer = _expected(decrypted(row["answer"], canary))
        kind = row.get("problem_topic", "")
        return Question(id=str(number), question=decrypted(row["problem"], canary), kind=kind, answer=answer)

    return read_rows(path, question)


def _read_zh(path: Path) -> list[Question]:
    """Return the questions of the encrypted workbook, or of the JSON that the benchmark's script makes of it."""

    def question(number: int, row: Row) -> Question:
        plain = {name: str(row[name]) for name in ("Topic", "Question", "Answer")}
        if path.suffix.lower() == ".xlsx":
            plain = {name: decrypted(text, row["canary"]) if text else "" for name, text in plain.items()}
        answer = _expected(plain["Answer"])
        return Question(id=str(number), question=plain["Question"], kind=plain["Topic"], answer=answer)

    return read_rows(path, question)


def _read_plus(path: Path) -> list[Question]:
    def question(_number: int, row: Row) -> Question:
        return Question(id=str(row["query_id"]), question=row["query"], answer=_expected(row["answer"]))

    return read_rows(path, question)


def _read_simple(path: Path) -> list[Question]:
    """Return the questions; the file of BrowseComp has columns of the same names, but encrypted."""

    def question(number: int, row: Row) -> Question:
        if "canary" in row:
            raise ValueError("it is encrypted")
        return Question(id=str(number), question=row["problem"], answer=_expected(row["answer"]))

    return read_rows(path, question)


def _write_responses(folder: Path, finished: Sequence[Finished]) -> None:
    _write_lines(folder, [{"question": one.question.question, "response": response_of(one)} for one in finished])


def _write_simple(folder: Path, finished: Sequence[Finished]) -> None:
    rows = [{"question": f.question.question, "response": f.result.answer or "I do not know."} for f in finished]
    _write_lines(folder, rows)


def _write_zh(folder: Path, finished: Sequence[Finished]) -> None:
    """Write what the benchmark's run writes to predict_data, and the questions that it reads in that order."""
    asked, lines = [], []
    for one in finished:
        answer = one.question.answer[0][0] if one.question.answer else ""
        asked.append({"Topic": one.question.kind, "Question": one.question.question, "Answer": answer})
        sure = "" if one.result.confidence is None else f"{one.result.confidence:.0%}"
        lines.append(
            {
                "question": one.question.question,
                "answer": answer,
                "response": response_of(one),
                "explanation": one.explanation,
                "exact_answer": one.result.answer or "",
                "confidence": sure,
                "total_tokens": one.result.tokens or 0,
            }
        )
    (folder / "questions.json").write_text(json.dumps(asked, ensure_ascii=False, indent=2), encoding="utf-8")
    _write_lines(folder, lines, "infer.jsonl")


def _write_plus(folder: Path, finished: Sequence[Finished]) -> None:
    for one in finished:
        run = {
            "query_id": one.question.id,
            "tool_call_counts": {"search": one.result.tool_calls or 0},
            "status": "completed",
            "retrieved_docids": docids_in(one.folder),
            "result": [{"type": "output_text", "output": response_of(one)}],
        }
        path = folder / f"run_{one.question.id}.json"
        path.write_text(json.dumps(run, ensure_ascii=False, indent=2), encoding="utf-8")


def docids_in(folder: Path) -> list[str]:
    """Return the ids of the documents that the benchmark's searcher gave to a run."""
    found = {
        match.decode()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        for match in _DOCID.findall(file.read_bytes())
    }
    return sorted(found)


def _write_lines(folder: Path, rows: Sequence[dict[str, Any]], name: str = RESPONSES) -> None:
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    (folder / name).write_text(text, encoding="utf-8")


ANSWERS = (
    Benchmark(
        name="browsecomp",
        title="BrowseComp",
        home=_EVALS,
        licence="MIT",
        data="",
        get=f"download {_BUCKET}/browse_comp_test_set.csv",
        mode=Mode.answer,
        read=_read_browsecomp,
        write=_write_responses,
        score=f"a sampler over submission/{RESPONSES} for BrowseCompEval of simple-evals: docs/measuring.md has it",
    ),
    Benchmark(
        name="browsecomp-zh",
        title="BrowseComp-ZH",
        home="https://github.com/PALIN2018/BrowseComp-ZH",
        licence="not stated",
        data="data/browsecomp-zh-encrypted.xlsx",
        get="clone https://github.com/PALIN2018/BrowseComp-ZH",
        mode=Mode.answer,
        read=_read_zh,
        write=_write_zh,
        score=(
            "cp submission/infer.jsonl CHECKOUT/predict_data/MODEL/; generate_infer_eval of run.py with "
            "--input_file_path submission/questions.json; python run_acc_calibration_error.py: docs/measuring.md"
        ),
    ),
    Benchmark(
        name="browsecomp-plus",
        title="BrowseComp-Plus",
        home="https://github.com/texttron/BrowseComp-Plus",
        licence="as its dataset card says",
        data="data/browsecomp_plus_decrypted.jsonl",
        get="clone https://github.com/texttron/BrowseComp-Plus and run its scripts_build_index/decrypt_dataset.py",
        mode=Mode.answer,
        read=_read_plus,
        write=_write_plus,
        score="python scripts_evaluation/evaluate_run.py --input_dir submission/",
    ),
    Benchmark(
        name="simpleqa",
        title="SimpleQA",
        home=_EVALS,
        licence="MIT",
        data="",
        get=f"download {_BUCKET}/simple_qa_test_set.csv",
        mode=Mode.answer,
        read=_read_simple,
        write=_write_simple,
        score=f"a sampler over submission/{RESPONSES} for SimpleQAEval of simple-evals: docs/measuring.md has it",
    ),
)
