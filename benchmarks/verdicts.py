"""What words alone say of claims where the truth is known: `python -m benchmarks.verdicts EVAL_DATA`.

It counts their verdicts, and how near the words of each claim are to its source: alike, near or apart, with a score.
What a model makes of claims is measured by `benchmarks.claims`.

Of `verify/*.jsonl` it reads `claim`, `sentences` of one abstract and `label`: SUPPORT, CONTRADICT or NOT_ENOUGH_INFO;
of `reports/*.jsonl` articles, whose sentences it changes; of `compress/*` pages, and meetings with people's summaries.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.altered import altered
from benchmarks.metrics import auc
from benchmarks.paraphrased import summarized, unsaid
from fathom.evidence.claims import ClaimSentence
from fathom.evidence.likeness import Likeness, nearest
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.evidence.words import check
from fathom.models import SourceText
from fathom.models.evidence import Verdict

PAGES = ("covidqa", "xquad_en")
LABELS = ("SUPPORT", "NOT_ENOUGH_INFO", "CONTRADICT")
VERDICTS = (Verdict.supported, Verdict.not_stated, Verdict.not_checked)  # that words alone give


class Check(NamedTuple):
    """What words say of a claim."""

    verdict: Verdict
    likeness: Likeness
    score: float


def main() -> None:
    """Print how many claims of each kind get which verdict, and how well the scores tell the labels apart."""
    folder = Path(sys.argv[1])
    for path in sorted((folder / "verify").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if all("sentences" in line for line in lines):
            _labelled(path.stem, lines)
    for path in sorted((folder / "reports").glob("*.jsonl")):
        _table(path.stem, {name: _check_all(pairs) for name, pairs in altered(path).items()})
    for path in sorted((folder / "compress").glob("qmsum*")):
        _table(path.name, {name: _check_all(pairs) for name, pairs in summarized(path).items()})
    unsaid_by = {name: _check_all(unsaid(folder / "compress" / name / "docs.jsonl")) for name in PAGES}
    _table("not said on the rest of the page", unsaid_by)


def _labelled(name: str, lines: Iterable[Mapping[str, object]]) -> None:
    checks: dict[str, list[Check]] = {label: [] for label in LABELS}
    for line in lines:
        sentences = line["sentences"]
        assert isinstance(sentences, list)
        source = SourceText(source_id="S0", url="", title="", kind="web", text=" ".join(sentences))
        checks[str(line["label"])].append(_check(str(line["claim"]), source, Search(texts_of([source]))))
    _table(name, checks)
    scores = {label: [found.score for found in checks[label]] for label in LABELS}
    for label in LABELS[1:]:
        print(f"SUPPORT against {label}, area under the curve: {auc(scores['SUPPORT'], scores[label]):.3f}\n")


def _check_all(pairs: Iterable[tuple[SourceText, str]]) -> list[Check]:
    found: list[Check] = []
    for _, group in groupby(pairs, key=lambda pair: id(pair[0])):
        own = list(group)
        search = Search(texts_of([own[0][0]]))
        found += [_check(claim, source, search) for source, claim in own]
    return found


def _check(claim: str, source: SourceText, search: Search) -> Check:
    near = nearest(claim, search)
    by_words = check(ClaimSentence(0, claim, (source.source_id,), "prose"), search)
    return Check(by_words.verdict, near.likeness, near.score)


def _table(name: str, checks: Mapping[str, list[Check]]) -> None:
    columns = [*(verdict.words for verdict in VERDICTS), *(likeness.name for likeness in reversed(Likeness))]
    print(f"| {name} | claims | {' | '.join(columns)} |\n|---|--:|{'--:|' * len(columns)}")
    for label, found in checks.items():
        verdicts, likenesses = Counter(one.verdict for one in found), Counter(one.likeness for one in found)
        counts = [*map(verdicts.__getitem__, VERDICTS), *map(likenesses.__getitem__, reversed(Likeness))]
        print(f"| {label} | {len(found)} | {' | '.join(map(str, counts))} |")
    print()


if __name__ == "__main__":
    main()
