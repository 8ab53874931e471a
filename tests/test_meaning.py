"""Ranking by meaning with a sentence encoder: a tiny one, which is read from files as a real one is."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.flows.preflight import check_settings
from fathom.flows.replay import replay
from fathom.retrieval.encoder import load_encoder
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore
from tests.inprocess import kept

WIDTH, INNER = 32, 16
QUESTION = "May dogs enter the pool house?"
ALIKE = {"may": "are", "dogs": "zorbs", "enter": "glimmed"}  # for the model; no list of words has them
BY_WORDS = "The pool house has a roof of dark slate."
BY_MEANING = "Zorbs are glimmed at the pool house."
TEXT = f"# Welcome\n\n{BY_WORDS}\n\n# Rules\n\n{BY_MEANING}\n"


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_model(tmp_path / "model")


def write_model(folder: Path) -> str:
    """Write a BERT encoder of one layer, whose vectors come from the words alone; return its name with its digest."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    folder.mkdir()
    words = sorted({*TEXT.lower().replace(".", " ").split(), *QUESTION.lower().rstrip("?").split()})
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(["?", *words])}, unk_token="?"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"model_type": "bert", "hidden_act": "gelu", "num_attention_heads": 2, "num_hidden_layers": 1}
    told |= {"layer_norm_eps": 1e-12, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps(told))
    (folder / "model.safetensors").write_bytes(safetensors(weights(["?", *words])))
    return f"{folder}@{digest_of(folder)}"


def digest_of(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def weights(words: list[str]) -> dict[str, list[list[float]]]:
    """Return random vectors of words, the same for words that mean the same, and a layer that adds hardly anything."""
    seeds = {word: random.Random(ALIKE.get(word, word)) for word in words}
    drawn = {word: [seed.gauss() for _ in range(WIDTH)] for word, seed in seeds.items()}
    small = random.Random(0)

    def layer(rows: int, columns: int) -> list[list[float]]:
        return [[small.gauss(0, 0.01) for _ in range(columns)] for _ in range(rows)]

    found = {"embeddings.word_embeddings.weight": [drawn[word] for word in words]}
    found["embeddings.position_embeddings.weight"] = layer(64, WIDTH)
    found["embeddings.token_type_embeddings.weight"] = layer(2, WIDTH)
    above = "encoder.layer.0."
    sizes = {f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    sizes |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (INNER, WIDTH)}
    for name, (rows, columns) in {**sizes, "output.dense": (WIDTH, INNER)}.items():
        found |= {f"{above}{name}.weight": layer(rows, columns), f"{above}{name}.bias": layer(1, rows)}
    for name in ("embeddings.", f"{above}attention.output.", f"{above}output."):
        found |= {f"{name}LayerNorm.weight": [[1.0] * WIDTH], f"{name}LayerNorm.bias": [[0.0] * WIDTH]}
    return found


def safetensors(tensors: Mapping[str, list[list[float]]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, rows in tensors.items():
        numbers = [number for row in rows for number in row]
        is_vector = name.endswith((".bias", "LayerNorm.weight"))
        told = struct.pack(f"<{len(numbers)}f", *numbers)
        shape = [len(numbers)] if is_vector else [len(rows), len(rows[0])]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(told)]}
        data += told
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + data


@pytest.fixture
def docs(tmp_path: Path) -> list[str]:
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool/house.md").write_text(TEXT)
    return [str(tmp_path / "pool")]


def first_quotation(artifacts: str) -> str:
    report = json.loads((Path(artifacts) / "report.json").read_text())
    return str(report["sections"][0]["markdown"]).partition(" [")[0]


async def test_what_means_the_same_is_quoted_first_and_a_replay_needs_no_model(
    model: str, docs: list[str], tmp_path: Path
) -> None:
    by_words = await kept(tmp_path / "store", QUESTION, run_key="pool", model=None, docs=docs)
    assert first_quotation(by_words.artifacts).endswith(BY_WORDS)
    by_meaning = await kept(tmp_path / "store", QUESTION, run_key="pool", model=None, docs=docs, embed_model=model)
    assert first_quotation(by_meaning.artifacts).endswith(BY_MEANING), "the calls by words are not taken over"

    load_encoder.cache_clear()
    shutil.rmtree(tmp_path / "model")
    for run in await runs(ArtifactStore(str(tmp_path / "store"))):
        assert {file.state for file in await replay(run)} == {"same"}


def test_a_text_has_the_same_vector_alone_and_among_others(model: str) -> None:
    encoder = load_encoder(model)
    texts = [BY_WORDS, "?", BY_MEANING, BY_WORDS]
    together = encoder.encode(texts)
    load_encoder.cache_clear()
    alone = [load_encoder(model).encode([text])[0] for text in texts]
    assert all(abs(a @ b - 1) < 1e-5 for a, b in zip(together, alone, strict=True))


def test_only_the_weights_that_are_meant_are_loaded(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(embed_model: str) -> InvalidInput:
        load_encoder.cache_clear()
        with pytest.raises(InvalidInput) as caught:
            check_settings(ResearchSettings(embed_model=embed_model))
            load_encoder(embed_model)
        return caught.value

    folder = tmp_path / "model"
    check_settings(ResearchSettings(embed_model=model))
    assert model in refused(str(folder)).next_step, "what to write instead"
    assert "names another one" in str(refused(f"{folder}@{'0' * 64}"))
    assert "no folder or installed package" in str(refused(f"all-MiniLM-L6-v2@{'0' * 64}"))

    (tmp_path / "packages/tiny_model").mkdir(parents=True)
    (tmp_path / "packages/tiny_model/__init__.py").write_text("raise AssertionError('a package is not run')")
    shutil.copytree(folder, tmp_path / "packages/tiny_model/model")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    packaged = f"tiny_model@{digest_of(folder)}"
    check_settings(ResearchSettings(embed_model=packaged))
    assert load_encoder(packaged).encode([QUESTION]).shape == (1, WIDTH)

    (folder / "model.safetensors").write_bytes(safetensors({"embeddings.word_embeddings.weight": [[0.0]]}))
    assert "holds no BERT encoder" in str(refused(f"{folder}@{digest_of(folder)}"))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert "[reader]" in refused(model).next_step
