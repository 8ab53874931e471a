"""Search by meaning as well as by words, with a sentence-embedding model that the user names; the `embed` extra.

The two rankings are joined by reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009), which needs no comparable
scores. Vectors are kept in the cache by their text, so only new passages are encoded.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import math
import sqlite3
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable
from operator import mul
from pathlib import Path
from typing import Protocol

from fathom.config.environment import installing
from fathom.errors import InvalidInput
from fathom.tools.documents.index import Hit, Index, Match

FUSION = 60  # the paper's constant: the higher, the less the first ranks count
DEPTH = 100  # documents per ranking that are joined
BATCH = 256  # passages encoded and kept at a time, so that an interrupted run loses little


class Encoder(Protocol):
    """The part of a sentence-transformers model that is used."""

    def encode(self, texts: list[str]) -> Iterable[Iterable[float]]:
        """Return a vector for each text."""


def check_installed() -> None:
    """Check that a model can be loaded, without taking the seconds that loading the library takes.

    Raises:
        InvalidInput: the extra is not installed.
    """
    name = "sentence_transformers"
    if sys.modules.get(name) is None and importlib.util.find_spec(name) is None:
        how = f"{installing('embed')}, or leave embed_model empty"
        raise InvalidInput("embed_model needs a library that is not installed.", next_step=how)


@functools.lru_cache(maxsize=1)
def load_encoder(model: str) -> Encoder:
    """Load a model; the first use may download it.

    Raises:
        InvalidInput: the extra is not installed, or there is no such model.
    """
    check_installed()
    from sentence_transformers import SentenceTransformer

    try:
        encoder: Encoder = SentenceTransformer(model)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"The embedding model {model!r} does not exist.", next_step="check embed_model") from error
    return encoder


def hybrid_search(index: Index, model: str, cache: Path, query: str, limit: int) -> list[Match]:
    """Return the documents closest to a query by words or by meaning."""
    by_words = index.search(query, DEPTH)
    by_meaning = _by_meaning(index, model, cache, query)
    fused: dict[int, float] = defaultdict(float)
    for ranking in (by_words, by_meaning):
        for rank, match in enumerate(ranking, 1):
            fused[match.document] += 1 / (FUSION + rank)
    best = {match.document: match for match in (*by_meaning, *by_words)}  # hits by words show the better passages
    order = sorted(fused, key=lambda document: (-best[document].named, -fused[document], document))
    return [best[document] for document in order[:limit]]


def _by_meaning(index: Index, model: str, cache: Path, query: str) -> list[Match]:
    encoder = load_encoder(model)
    [asked] = _encoded(encoder, [query])
    found: dict[int, list[Hit]] = defaultdict(list)
    for (passage, document, _), vector in zip(index.slices(), _vectors(index, model, cache), strict=True):
        found[document].append(Hit(passage, sum(map(mul, asked, vector))))
    matches = [Match(document, sorted(hits, key=lambda hit: -hit.score)) for document, hits in found.items()]
    return sorted(matches, key=lambda match: -match.hits[0].score)[:DEPTH]


@functools.lru_cache(maxsize=2)
def _vectors(index: Index, model: str, cache: Path) -> list[array[float]]:
    texts = {_key(model, text): text for _, _, text in index.slices()}
    folder = cache / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(folder / "embeddings.db", timeout=60)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")
        rows = ((key, database.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()) for key in texts)
        kept = {key: array("f", row[0]) for key, row in rows if row}
        new = [key for key in texts if key not in kept]
        for start in range(0, len(new), BATCH):
            keys = new[start : start + BATCH]
            kept.update(zip(keys, _encoded(load_encoder(model), [texts[key] for key in keys]), strict=True))
            with database:
                database.executemany(
                    "INSERT OR IGNORE INTO vectors VALUES (?, ?)", [(k, kept[k].tobytes()) for k in keys]
                )
    return [kept[_key(model, text)] for _, _, text in index.slices()]


def _key(model: str, text: str) -> bytes:
    return hashlib.sha256(f"{model}\0{text}".encode()).digest()


def _encoded(encoder: Encoder, texts: list[str]) -> list[array[float]]:
    """Return vectors of length 1, whose products are cosines."""
    vectors = [[float(value) for value in vector] for vector in encoder.encode(texts)]
    lengths = [math.hypot(*vector) or 1.0 for vector in vectors]
    return [array("f", [v / length for v in vector]) for vector, length in zip(vectors, lengths, strict=True)]
