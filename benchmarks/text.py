"""The text engine on evaluation data, beside what it has to beat: `python -m benchmarks.text FOLDER`.

The folder holds any of `compress/SET/{docs,questions}.jsonl`, `retrieval/NAME_{corpus,queries,qrels}.jsonl` and
`verify/*.jsonl`. Prints Markdown tables: what notes of 20, 10 and 5 % of the raw tokens keep, how well relevant texts
are told from others, nDCG and recall of the search, and how well claims are told that their references support.
`--speed` measures time and memory on generated text instead.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks import baselines, compress, metrics, search, speed, support, tokens

BUDGETS = (0.2, 0.1, 0.05)
LEAST_TOKENS = 24  # of a note
NO_ANSWER = {"", "yes", "no", "noanswer", "unanswerable"}
COMPRESSORS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "Fathom": compress.compress,
    **{name: baselines.compressor(name) for name in baselines.SCORERS},
}
Rows = list[tuple[str, list[str]]]


def main() -> None:
    """Print the tables for a folder, or the speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="evaluation data")
    parser.add_argument("--speed", action="store_true", help="measure time and memory on generated text")
    parser.add_argument("--limit", type=int, help="questions of each set")
    arguments = parser.parse_args()
    if arguments.speed:
        speed.report()
    elif arguments.folder is None:
        parser.error("give a folder with evaluation data, or --speed")
    else:
        _parts(arguments.folder, arguments.limit)


def _parts(folder: Path, limit: int | None) -> None:
    for name, part in (("compress", _compress), ("retrieval", _retrieval), ("verify", _verify)):
        if (folder / name).is_dir():
            part(folder / name, limit)
        else:
            print(f"No {name}/ in {folder}: skipped.\n")


def _table(title: str, columns: Sequence[str], rows: Rows) -> None:
    print(f"| {title} | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for name, values in rows:
        print(f"| {name} | {' | '.join(values)} |")
    print(flush=True)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON Lines."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


# -- notes --------------------------------------------------------------------------------------------------------


def _compress(folder: Path, limit: int | None) -> None:
    for place in sorted(path.parent for path in folder.glob("*/questions.jsonl")):
        documents = {document["doc_id"]: document for document in lines_of(place / "docs.jsonl")}
        questions = lines_of(place / "questions.jsonl")[:limit]
        measured = {name: _measured(engine, documents, questions) for name, engine in COMPRESSORS.items()}
        kinds = dict.fromkeys(kind for values in measured.values() for kind in values)
        rows = [(kind, [values.get(kind, "") for values in measured.values()]) for kind in kinds]
        _table(f"{place.name}, {len(questions)} questions", list(measured), rows)


def _measured(
    engine: Callable[[dict[str, Any]], dict[str, Any]],
    documents: Mapping[str, dict[str, Any]],
    questions: Sequence[dict[str, Any]],
) -> dict[str, str]:
    """Return what is printed for one engine: by kind, the values at the three budgets."""
    kept: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in BUDGETS])
    scores: dict[int, list[float]] = {0: [], 1: []}
    seconds, size = 0.0, 0
    for question in questions:
        texts = [documents[name] for name in question["doc_ids"]]
        raw = sum(tokens.count(f"{text['title']}\n{text['text']}") for text in texts)
        expected = expected_of(question, texts)
        for i, share in enumerate(BUDGETS):
            budget = max(LEAST_TOKENS, int(raw * share))
            request = {"question": question["question"], "docs": texts, "budget_tokens": budget}
            start = time.perf_counter()
            answer = engine(request)
            seconds += time.perf_counter() - start
            size += sum(len(text["text"].encode()) for text in texts)
            note = tokens.truncated(answer["note"], budget)
            for kind, value in _kept(expected, note):
                kept[kind][i].append(value)
        for name, label in (question.get("relevant") or {}).items():  # judged alike at every budget
            scores[label].append(answer["score"][name])
    shown = {f"{kind} kept": " / ".join(f"{fmean(values):.3f}" for values in by) for kind, by in kept.items()}
    if scores[1]:
        shown["relevant, AUC"] = f"{metrics.auc(scores[1], scores[0]):.3f}"
    shown["MB/s"] = f"{size / 1e6 / seconds:.2f}"
    return shown


class Expected:
    """What a note should keep: alternatives for each answer and hop, evidence sentences, and a reference's words."""

    def __init__(self) -> None:
        self.answers: list[list[str]] = []
        self.hops: list[list[str]] = []
        self.evidence: list[str] = []
        self.reference: frozenset[str] = frozenset()


def expected_of(question: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> Expected:
    """Return what the raw text really holds of a question's answers, hops and evidence."""
    raw = metrics.normalized(" \n ".join(f"{text['title']} . {text['text']}" for text in texts))

    def there(groups: Sequence[Sequence[str]], unwanted: set[str]) -> list[list[str]]:
        kept = [
            [a for a in group if metrics.normalized(a) not in unwanted and metrics.holds(raw, a)] for group in groups
        ]
        return [group for group in kept if group]

    expected = Expected()
    expected.answers = there(question.get("answers") or [], NO_ANSWER)
    expected.hops = there(question.get("hops") or [], set())
    evidence = _marked(texts[0]["text"], question["spans"]) if question.get("spans") else question.get("evidence") or []
    expected.evidence = [sentence for sentence in evidence if metrics.content_words(sentence)]
    expected.reference = metrics.content_words(question.get("reference") or "")
    return expected


def _marked(text: str, spans: Sequence[Sequence[int]]) -> Iterator[str]:
    """Yield the sentences in which marked spans begin."""
    for start, length in spans:
        around = text[max(0, text.rfind("\n", 0, start)) : start + length + 400]
        head = text[start : start + min(length, 40)].strip()[:30]
        yield from [sentence for sentence in metrics.sentences(around) if head in sentence][:1]


def _kept(expected: Expected, note: str) -> Iterator[tuple[str, float]]:
    text = metrics.normalized(note)

    def held(group: Sequence[str]) -> bool:
        return any(metrics.holds(text, answer) for answer in group)

    if expected.answers:
        yield "answer", fmean(map(held, expected.answers))
    if expected.answers and expected.hops:
        yield "every hop", float(all(map(held, expected.hops + expected.answers)))
    if expected.evidence:
        said = [metrics.content_words(sentence) for sentence in metrics.sentences(note)]
        yield "evidence", fmean(metrics.keeps_sentence(said, sentence) for sentence in expected.evidence)
    if expected.reference:
        yield "reference's words", len(expected.reference & metrics.content_words(note)) / len(expected.reference)


# -- search and support -------------------------------------------------------------------------------------------


def _retrieval(folder: Path, limit: int | None) -> None:
    for corpus in sorted(folder.glob("*_corpus.jsonl")):
        name = corpus.name.removesuffix("_corpus.jsonl")
        relevance: dict[str, dict[str, int]] = defaultdict(dict)
        for judged in lines_of(folder / f"{name}_qrels.jsonl"):
            relevance[judged["q"]][judged["d"]] = judged["rel"]
        asked = [query for query in lines_of(folder / f"{name}_queries.jsonl") if query["_id"] in relevance][:limit]
        queries = {query["_id"]: query["text"] for query in asked}
        runs = {"Fathom": search.search({"corpus": corpus, "queries": queries, "k": 100}), **_plain(corpus, queries)}
        rows = [
            (
                kind,
                [f"{fmean(measure(run[query], relevance[query]) for query in queries):.3f}" for run in runs.values()],
            )
            for kind, measure in (("nDCG@10", metrics.ndcg), ("recall@100", metrics.recall))
        ]
        _table(f"{name}, {len(queries)} queries", list(runs), rows)


def _plain(corpus: Path, queries: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """Return the rankings of the baselines that rank documents."""
    documents = lines_of(corpus)
    names = [str(document["_id"]) for document in documents]
    statistics = baselines.Statistics([f"{document.get('title') or ''}\n{document['text']}" for document in documents])
    runs: dict[str, dict[str, list[str]]] = {}
    for name in ("BM25", "tf-idf"):
        scored = {query: baselines.SCORERS[name](statistics, text) for query, text in queries.items()}
        runs[name] = {
            query: [names[i] for i in sorted(range(len(names)), key=lambda i: -scores[i])[:100]]
            for query, scores in scored.items()
        }
    return runs


def _verify(folder: Path, limit: int | None) -> None:
    rows: Rows = []
    for path in sorted(folder.glob("*.jsonl")):
        pairs = [pair for line in lines_of(path)[:limit] if (pair := _claim(line))]
        values = []
        for score in (lambda c, r: support.support({"claim": c, "references": r})["score"], baselines.overlap):
            scored: dict[bool, list[float]] = {True: [], False: []}
            for claim, references, label in pairs:
                scored[label].append(score(claim, references))
            values.append(f"{metrics.auc(scored[True], scored[False]):.3f}")
        rows.append((f"{path.stem}, {len(pairs)} claims", values))
    _table("support, AUC", ["Fathom", "word overlap"], rows)


def _claim(line: Mapping[str, Any]) -> tuple[str, list[str], bool] | None:
    """Return a claim, its references and whether they support it; None where they say the opposite.

    Word comparison cannot see a contradiction, and does not claim to.
    """
    if "references" in line:
        return line["claim"], line["references"], bool(line["label"])
    return (
        None
        if line["label"] == "CONTRADICT"
        else (line["claim"], [" ".join(line["sentences"])], line["label"] == "SUPPORT")
    )


if __name__ == "__main__":
    main()
