"""How far the confidence of answers without a model can be relied on: `python -m benchmarks.calibration FOLDER`.

FOLDER has `compress/SET/docs.jsonl` and `questions.jsonl`, as `python -m benchmarks.text` reads them. Every question
is answered from its own pages, every sixth from another question's pages, which do not answer it. An answer is right
if it holds an alternative of each expected answer. Every other question measures the confidence:

    AUROC   how often a right answer has more of it than a wrong one
    ECE     expected calibration error: how far it is from the share of right answers, over ten bins
    Brier   mean square of its distance from 1 or 0, and the same for always stating the share of right answers

The rest are there to fit it: `--fit xquad_en,covidqa` prints the weights for `fathom/extractive/answering.py`. Sets
whose questions need two passages are left out of the fit: a quotation seldom answers these, and few people ask them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import metrics
from benchmarks.text import expected_of, lines_of
from fathom.extractive.answering import Signs, choose_answer
from fathom.models import SourceText
from fathom.roles import ShortAnswerRequest

FOREIGN = 6  # every sixth question is asked of the pages of another
STEPS = 50  # of Newton's method; it takes about ten


class Answered(NamedTuple):
    """An answer, and whether it is right."""

    signs: Signs
    right: bool


def main() -> None:
    """Print the table, or the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fit", metavar="SET,...", help="print the weights that fit the first half of some sets")
    chosen = parser.parse_args()
    sets = {path.parent.name: list(_answers(path.parent)) for path in sorted(chosen.folder.glob("*/*/questions.jsonl"))}
    sets = {name: answers for name, answers in sets.items() if any(one.right for one in answers)}
    if not sets:
        raise SystemExit(f"{chosen.folder} has no compress/SET/questions.jsonl with answers.")
    if chosen.fit:
        if unknown := set(chosen.fit.split(",")) - set(sets):
            raise SystemExit(f"{chosen.folder} has no set {', '.join(sorted(unknown))}; it has {', '.join(sets)}.")
        constant, *weights = fitted([answer for name in chosen.fit.split(",") for answer in sets[name][::2]])
        print(f"CONSTANT = {constant:.2f}\nWEIGHTS = ({', '.join(f'{weight:.2f}' for weight in weights)})")
        return
    print("| set | answers | right | AUROC | ECE | Brier | of their share |\n|---|--:|--:|--:|--:|--:|--:|")
    halves = {name: answers[1::2] for name, answers in sets.items()}
    halves["all"] = [one for answers in halves.values() for one in answers]
    for name, half in halves.items():
        stated = [(one.signs.confidence(), one.right) for one in half]
        print(f"| {name} | {' | '.join(metrics.calibration(stated))} |")


def _answers(folder: Path) -> Iterator[Answered]:
    """Yield what is answered to the questions of a set."""
    pages = {page["doc_id"]: page for page in lines_of(folder / "docs.jsonl")}
    questions = lines_of(folder / "questions.jsonl")
    for number, question in enumerate(questions):
        foreign = number % FOREIGN == FOREIGN - 1
        asked = questions[(number + len(questions) // 2) % len(questions)] if foreign else question
        if foreign and set(asked["doc_ids"]) & set(question["doc_ids"]):
            continue
        read = [pages[name] for name in asked["doc_ids"]]
        groups = [] if foreign else expected_of(question, read).answers
        if not groups and not foreign:
            continue
        texts = [
            SourceText(
                source_id=f"S{n:06x}", url=f"https://{n}.example/", title=page["title"], text=page["text"], kind="web"
            )
            for n, page in enumerate(read, 1)
        ]
        request = ShortAnswerRequest(query=question["question"], today="2026-01-01", notes=[], passages=texts)
        if found := choose_answer(request):
            said = metrics.normalized(found.text)
            right = not foreign and all(any(metrics.holds(said, one) for one in group) for group in groups)
            yield Answered(found.signs, right)


def fitted(answers: Sequence[Answered]) -> list[float]:
    """Return the constant and the weights of a logistic regression, by Newton's method with a little shrinking."""
    rows = [(1.0, *map(float, one.signs)) for one in answers]
    size = len(rows[0])
    weights = [0.0] * size
    for _ in range(STEPS):
        likely = [1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, row, strict=True)))) for row in rows]
        errors = [p - one.right for p, one in zip(likely, answers, strict=True)]
        ridge = [0.0, *weights[1:]]  # the constant is not shrunk
        slope = [ridge[i] + sum(e * row[i] for e, row in zip(errors, rows, strict=True)) for i in range(size)]
        curve = [
            [
                float(i == j > 0) + sum(p * (1 - p) * row[i] * row[j] for p, row in zip(likely, rows, strict=True))
                for j in range(size)
            ]
            for i in range(size)
        ]
        weights = [w - step for w, step in zip(weights, _solved(curve, slope), strict=True)]
    return weights


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve linear equations by Gaussian elimination; the matrix is positive definite, so no row is exchanged."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(rows):
        for j, row in enumerate(rows):
            if j != i:
                factor = row[i] / pivot[i]
                rows[j] = [value - factor * above for value, above in zip(row, pivot, strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


if __name__ == "__main__":
    main()
