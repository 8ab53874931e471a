"""Vectors of sentences: a BERT encoder in numpy, with weights that the user names; the extra `reader`.

A vector is the mean of the tokens' vectors, of length 1 (Reimers and Gurevych, 2019), so that products are cosines.
The tokens of all texts of a batch go through the layers side by side, without padding; only attention looks at one text
at a time. The weights are read as safetensors, which hold numbers and no code, and nothing is loaded over the network.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import re
import struct
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import pi, sqrt
from pathlib import Path
from typing import Any

from fathom.config.environment import installing
from fathom.errors import InvalidInput

Array = Any  # of numpy, with 32-bit numbers; its types need numpy, which only this extra brings

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
MOST_TOKENS = 256  # of a text; more are cut off
BATCH = 16  # texts that go through the layers together: more take memory, and hardly less time
KEPT = 20_000  # vectors in memory, 30 MB: a run asks for the same texts several times
_PINNED = re.compile(r"(.+)@([0-9a-f]{64})")
_TYPES = {"F32": "<f4", "F16": "<f2"}


def check_encoder(model: str) -> Path:
    """Return the folder of a model's files, whose weights are the ones that the user means.

    `model` is a folder or an installed package that has them, "@", and the SHA-256 of the weights.

    Raises:
        InvalidInput: the extra is not installed, there are no such files, or their digest is another one.
    """
    if any(sys.modules.get(name) is None and not importlib.util.find_spec(name) for name in ("numpy", "tokenizers")):
        how = f"{installing('reader')}, or leave embed_model empty"
        raise InvalidInput("embed_model needs a library that is not installed.", next_step=how)
    pinned = _PINNED.fullmatch(model)
    place = pinned[1] if pinned else model
    folder = _folder(place)
    weights = folder / WEIGHTS
    state = weights.stat()
    found = _digest(weights, state.st_size, state.st_mtime_ns)
    if not pinned:
        message = f"embed_model {place!r} lacks the SHA-256 of its weights."
        raise InvalidInput(message, next_step=f"write {place}@{found} if you trust these weights")
    if found != pinned[2]:
        message = f"The weights of {place!r} have the SHA-256 {found}, and embed_model names another one."
        raise InvalidInput(message, next_step="install the weights that you mean, or correct embed_model")
    return folder


@functools.lru_cache(maxsize=1)
def _digest(weights: Path, _size: int, _changed: int) -> str:
    """Return the SHA-256 of a file as it is now: each question of a server asks for it, and so does loading."""
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def _folder(place: str) -> Path:
    """Return the folder with a model's files, in a folder or in a package, of which nothing is run."""
    above = Path(place).expanduser()
    if place.isidentifier() and not above.is_dir():
        package = importlib.util.find_spec(place)
        above = Path(package.origin).parent if package and package.origin else above
    for weights in sorted(above.rglob(WEIGHTS)):
        if all(weights.with_name(name).is_file() for name in (CONFIG, TOKENIZER)):
            return weights.parent
    message = f"embed_model: {place!r} is no folder or installed package with {WEIGHTS}, {CONFIG} and {TOKENIZER}."
    raise InvalidInput(message, next_step="check embed_model")


@functools.lru_cache(maxsize=1)
def load_encoder(model: str) -> Encoder:
    """Load a model, once in a process.

    Raises:
        InvalidInput: as in `check_encoder`, or the files hold no BERT encoder.
    """
    folder = check_encoder(model)
    try:
        encoder = Encoder(folder)
        encoder.encode(["a"])  # shows whether the weights are all there
    except (LookupError, ValueError, struct.error) as error:
        message = f"{folder} holds no BERT encoder that can be read ({error})."
        raise InvalidInput(message, next_step="check embed_model") from error
    return encoder


class Encoder:
    """A BERT encoder."""

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer

        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if (config["model_type"], config["hidden_act"]) != ("bert", "gelu"):
            raise ValueError(f"its type is {config['model_type']!r}, with {config['hidden_act']!r}")
        self._heads: int = config["num_attention_heads"]
        self._epsilon: float = config["layer_norm_eps"]
        self._weights = _read_weights(folder / WEIGHTS)
        self._layers = [self._part(f"encoder.layer.{number}.") for number in range(config["num_hidden_layers"])]
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self._tokenizer.enable_truncation(min(MOST_TOKENS, config["max_position_embeddings"]))
        self._tokenizer.no_padding()
        self._kept: dict[bytes, Array] = {}

    def encode(self, texts: Sequence[str]) -> Array:
        """Return a row for each text; those that are known are not computed again."""
        import numpy as np

        keys = {text: hashlib.sha256(text.encode()).digest() for text in texts}
        new = sorted((text for text, key in keys.items() if key not in self._kept), key=len)
        for start in range(0, len(new), BATCH):
            batch = new[start : start + BATCH]
            self._kept.update(zip((keys[text] for text in batch), self._vectors(batch), strict=True))
        found = np.stack([self._kept[keys[text]] for text in texts])
        while len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _part(self, prefix: str) -> dict[str, Array]:
        return {name.removeprefix(prefix): one for name, one in self._weights.items() if name.startswith(prefix)}

    def _vectors(self, texts: Sequence[str]) -> Array:
        import numpy as np

        ids = [coded.ids for coded in self._tokenizer.encode_batch(list(texts))]
        ends: Array = np.cumsum([0, *map(len, ids)])
        above = self._part("embeddings.")
        states = above["word_embeddings.weight"][np.concatenate(ids)] + above["token_type_embeddings.weight"][0]
        states += above["position_embeddings.weight"][np.concatenate([np.arange(len(each)) for each in ids])]
        states = self._normal(states, above, "LayerNorm")
        for layer in self._layers:
            states = self._through(layer, states, ends)
        means = np.add.reduceat(states, ends[:-1])
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def _through(self, layer: Mapping[str, Array], states: Array, ends: Array) -> Array:
        """Return the states of all tokens behind a layer; `ends` are where the texts end."""
        import numpy as np

        parts = (_linear(states, layer, f"attention.self.{name}") for name in ("query", "key", "value"))
        query, key, value = (part.reshape(len(states), self._heads, -1).transpose(1, 0, 2) for part in parts)
        seen = np.empty_like(states)
        for first, last in pairwise(ends):
            near = query[:, first:last] @ key[:, first:last].transpose(0, 2, 1) / sqrt(query.shape[2])
            near = np.exp(near - near.max(-1, keepdims=True))
            near /= near.sum(-1, keepdims=True)
            seen[first:last] = (near @ value[:, first:last]).transpose(1, 0, 2).reshape(last - first, -1)
        states = self._normal(
            states + _linear(seen, layer, "attention.output.dense"), layer, "attention.output.LayerNorm"
        )
        inner = _linear(states, layer, "intermediate.dense")
        inner *= 0.5 * (1 + np.tanh(sqrt(2 / pi) * inner * (1 + 0.044715 * inner * inner)))  # the usual form of gelu
        return self._normal(states + _linear(inner, layer, "output.dense"), layer, "output.LayerNorm")

    def _normal(self, states: Array, part: Mapping[str, Array], name: str) -> Array:
        import numpy as np

        states = states - states.mean(-1, keepdims=True)
        states /= np.sqrt((states * states).mean(-1, keepdims=True) + self._epsilon)
        return states * part[f"{name}.weight"] + part[f"{name}.bias"]


def _linear(states: Array, part: Mapping[str, Array], name: str) -> Array:
    return states @ part[f"{name}.weight"].T + part[f"{name}.bias"]


def _read_weights(path: Path) -> dict[str, Array]:
    """Return the numbers of a safetensors file by their names: a header in JSON, behind its length, then the bytes."""
    import numpy as np

    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    weights: dict[str, Array] = {}
    for name, told in header.items():
        first, last = told["data_offsets"]
        if told["dtype"] in _TYPES:
            kind = np.dtype(_TYPES[told["dtype"]])
            numbers: Array = np.frombuffer(data, kind, (last - first) // kind.itemsize, start + first)
            weights[name.removeprefix("bert.")] = numbers.reshape(told["shape"]).astype(np.float32, copy=False)
    return weights
