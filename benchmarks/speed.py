"""Time and memory against size, on generated text: part of `benchmarks.text`."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MEGABYTES = (0.1, 1, 10, 20)
DOCUMENTS, WORDS = 10_000, 300
QUERIES = 200
_COMPRESS = """
import resource, sys, time
from benchmarks.compress import compress
from benchmarks.speed import generated
text = generated(int(float(sys.argv[1]) * 1_000_000))
start = time.perf_counter()
compress({"question": "What do the bakopi and the dulena do?", "docs": [{"doc_id": "a", "title": "", "text": text}],
          "budget_tokens": 1500})
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
"""


def generated(size: int, seed: int = 0) -> str:
    """Return about `size` characters of sentences whose words are as unequally frequent as the words of a language."""
    chance = random.Random(seed)
    words = _vocabulary()
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    parts: list[str] = []
    length = 0
    while length < size:
        sentence = " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(8, 25))).capitalize()
        parts.append(sentence + (".\n\n" if chance.random() < 0.2 else ". "))
        length += len(parts[-1])
    return "".join(parts)


def _vocabulary() -> list[str]:
    chance = random.Random(1)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    return ["".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(20_000)]


def report() -> None:
    """Print the tables."""
    print("| one document, MB | seconds | MB/s | peak MB |\n|---:|---:|---:|---:|")
    for megabytes in MEGABYTES:
        run = [sys.executable, "-c", _COMPRESS, str(megabytes)]  # a process each: its peak is its own
        seconds, peak = map(float, subprocess.run(run, check=True, capture_output=True, text=True).stdout.split())
        print(f"| {megabytes} | {seconds:.2f} | {megabytes / seconds:.2f} | {peak:.0f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        _documents(Path(folder))


def _documents(folder: Path) -> None:
    """Print how long it takes to open a folder of many files, and to search it."""
    from fathom.tools.documents import corpus

    files = folder / "files"
    files.mkdir()
    words = generated(DOCUMENTS * WORDS * 8).split()
    for n in range(DOCUMENTS):
        (files / f"{n:05}.txt").write_text(" ".join(words[n * WORDS : (n + 1) * WORDS]), encoding="utf-8")
    chance = random.Random(2)
    queries = [" ".join(chance.sample(words, 6)) for _ in range(QUERIES)]

    def opened() -> float:
        corpus._opened.cache_clear()
        start = time.perf_counter()
        corpus.open_corpus([str(files)], folder / "cache")
        return time.perf_counter() - start

    cold, warm = opened(), opened()
    (files / "00007.txt").write_text("Something else altogether.", encoding="utf-8")
    changed = opened()
    index = corpus.open_corpus([str(files)], folder / "cache")
    start = time.perf_counter()
    for query in queries:
        index.search(query, 10)
    milliseconds = (time.perf_counter() - start) / QUERIES * 1000
    size = sum(path.stat().st_size for path in (folder / "cache").rglob("*.sqlite")) / 1e6
    print(
        f"\n{DOCUMENTS:,} documents of {WORDS} words: indexed in {cold:.1f} s, opened again in {warm:.2f} s,", end=" "
    )
    print(f"with one file changed in {changed:.2f} s; {milliseconds:.1f} ms a query; {size:.0f} MB on disk")
