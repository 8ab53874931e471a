"""Benchmarks of whole reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.research.benchmark import SYSTEM, Benchmark, Finished
from benchmarks.research.reading import Row, read_rows
from benchmarks.results import Question
from fathom.config.settings import Mode


def numbered(name: str) -> int | str:
    """Return an id as the benchmark's files have it: their scripts look it up by value and type."""
    return int(name) if name.isdigit() else name


def _read_bench(path: Path) -> list[Question]:
    def question(_number: int, row: Row) -> Question:
        return Question(id=str(row["id"]), question=row["prompt"], kind=row.get("topic", ""))

    return read_rows(path, question)


def _write_bench(folder: Path, finished: Sequence[Finished]) -> None:
    lines = [{"id": numbered(f.question.id), "prompt": f.question.question, "article": f.article} for f in finished]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    (folder / f"{SYSTEM}.jsonl").write_text(text, encoding="utf-8")


def _read_researcher(path: Path) -> list[Question]:
    return read_rows(path, lambda _number, row: Question(id=str(row["id"]), question=row["question"]))


def _write_researcher(folder: Path, finished: Sequence[Finished]) -> None:
    rows = [{"id": numbered(f.question.id), "question": f.question.question, "response": f.article} for f in finished]
    (folder / f"{SYSTEM}.json").write_text(json.dumps(rows, ensure_ascii=False, indent=2), encoding="utf-8")


def _read_gym(path: Path) -> list[Question]:
    return read_rows(path, lambda _number, row: Question(id=str(row["id"]), question=row["query"]))


def _write_gym(folder: Path, finished: Sequence[Finished]) -> None:
    place = folder / SYSTEM
    place.mkdir()
    for one in finished:
        (place / f"{one.question.id}.q").write_text(one.question.question, encoding="utf-8")
        (place / f"{one.question.id}.a").write_text(one.article, encoding="utf-8")


def _read_live(path: Path) -> list[Question]:
    """Return each question once: the set has a row for each item of a question's checklist.

    The authors' own checklist, older than the dataset, has no placeholders, and so only one column of questions.
    """

    def asked(_number: int, row: Row) -> tuple[str, str]:
        question = row.get("question_no_placeholder") or row["question"]
        if "{{" in question:
            raise ValueError(f"a question has a placeholder: {question}")
        return str(row["qid"]), question

    return [Question(id=name, question=question) for name, question in dict(read_rows(path, asked)).items()]


def _write_live(folder: Path, finished: Sequence[Finished]) -> None:
    place = folder / SYSTEM
    place.mkdir()
    for one in finished:
        (place / f"qid_{one.question.id}_report.md").write_text(one.article, encoding="utf-8")


REPORTS = (
    Benchmark(
        name="deep-research-bench",
        title="DeepResearch Bench",
        home="https://github.com/Ayanami0730/deep_research_bench",
        licence="Apache-2.0",
        data="data/prompt_data/query.jsonl",
        get="clone https://github.com/Ayanami0730/deep_research_bench",
        mode=Mode.report,
        read=_read_bench,
        write=_write_bench,
        score=(
            f"cp submission/{SYSTEM}.jsonl CHECKOUT/data/test_data/raw_data/; put {SYSTEM} into TARGET_MODELS of "
            "run_benchmark.sh; bash run_benchmark.sh (GEMINI_API_KEY, JINA_API_KEY)"
        ),
    ),
    Benchmark(
        name="researcher-bench",
        title="ResearcherBench",
        home="https://github.com/GAIR-NLP/ResearcherBench",
        licence="not stated",
        data="data/eval_data/questions.json",
        get="clone https://github.com/GAIR-NLP/ResearcherBench",
        mode=Mode.report,
        read=_read_researcher,
        write=_write_researcher,
        score=(
            f"cp submission/{SYSTEM}.json CHECKOUT/data/user_data/; MODEL={SYSTEM} ./eval.sh "
            "(OPENAI_API_KEY, JINA_API_KEY)"
        ),
    ),
    Benchmark(
        name="deep-research-gym",
        title="DeepResearchGym",
        home="https://github.com/cxcscmu/deepresearch_benchmarking",
        licence="not stated",
        data="queries/researchy_queries_sample_doc_click.jsonl",
        get="clone https://github.com/cxcscmu/deepresearch_benchmarking",
        mode=Mode.report,
        read=_read_gym,
        write=_write_gym,
        score=(
            "set path_to_reports in the eval_*_async.py to submission/; "
            f"python eval_quality_async.py --subfolder {SYSTEM} --open_ai_model gpt-4.1-mini (OPENAI_API_KEY)"
        ),
    ),
    Benchmark(
        name="live-research-bench",
        title="LiveResearchBench",
        home="https://github.com/SalesforceAIResearch/LiveResearchBench",
        licence="as its dataset card says",
        data="",
        get="export question_with_checklist of the dataset Salesforce/LiveResearchBench as CSV or JSON Lines",
        mode=Mode.report,
        read=_read_live,
        write=_write_live,
        score=(
            f"python preprocess.py submission/ -m {SYSTEM}; python main.py --input extracted_reports/reports_*.json "
            "--criteria presentation,consistency,citation,coverage,depth --provider openai --model gpt-5"
        ),
    ),
)
