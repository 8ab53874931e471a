"""The texts of a run and their exact byte positions in its files, so that each quote can be read back by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fathom.errors import StoreError
from fathom.models import Quote, Source, SourceText, ToolOutput, ToolResult

_KEY = b'\n   "text": '  # no JSON string holds a line break, so this can only be the key of a result's text


@dataclass(frozen=True, eq=False)
class StoredText:
    """A text that a tool read, and its place in a file."""

    source: Source
    text: str
    artifact_file: str = ""  # the file that holds it; empty for a text that is not stored
    sha256: str = ""  # of that file
    retrieved: str = ""  # ISO 8601, UTC
    first_byte: int = 0  # offset of its first character in the file

    def source_text(self) -> SourceText:
        """Return the text without its place."""
        return self.source.with_text(self.text)

    def quote(self, start: int, end: int) -> Quote:
        """Return the bytes that hold the characters from `start` to `end`."""
        encode = _escaped if self.artifact_file.endswith(".json") else str.encode
        first = self.first_byte + len(encode(self.text[:start]))
        return Quote(
            source_id=self.source.source_id,
            artifact_file=self.artifact_file,
            start=first,
            end=first + len(encode(self.text[start:end])),
            sha256=self.sha256,
            text=self.text[start:end],
            retrieved=self.retrieved,
        )

    def characters(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the characters in the bytes from `start` to `end` of the file; None if these are not this text's."""
        first = self._character(start)
        last = self._character(end, first or 0) if first is not None else None
        return None if first is None or last is None else (first, last)

    def _character(self, byte: int, known: int = 0) -> int | None:
        """Return the index of the character that begins at a byte, `known` or a later one."""
        encode = _escaped if self.artifact_file.endswith(".json") else str.encode
        position = self.first_byte + len(encode(self.text[:known]))
        low, high = known, len(self.text)
        while low < high:  # each half is encoded once
            middle = (low + high + 1) // 2
            size = len(encode(self.text[low:middle]))
            if position + size <= byte:
                low, position = middle, position + size
            else:
                high = middle - 1
        return low if position == byte else None


def locate(name: str, data: bytes, sources: Sequence[Source] = ()) -> list[tuple[SourceText, int]]:
    """Return the texts of an artifact, each with the byte offset of its first character.

    A `.json` file is a tool output; any other file is plain text, which does not name its `sources`.

    Raises:
        StoreError: the file is not a tool output in the form that Fathom writes.
    """
    try:
        if not name.endswith(".json"):
            text = data.decode()
            return [(source.with_text(text), 0) for source in sources]
        results = ToolOutput.model_validate_json(data).results
    except ValueError as error:
        raise StoreError(f"{name} is damaged: {error}.", next_step="restore the file, or run again") from error
    found: list[tuple[SourceText, int]] = []
    position = 0
    for result in results:
        key = data.find(_KEY, position)
        first = key + len(_KEY) + 1
        escaped = _escaped(result.text)
        position = first + len(escaped)
        if key < 0 or data[first - 1 : position + 1] != b'"' + escaped + b'"':
            message = f"{name} is damaged: it is not in the form in which it was written."
            raise StoreError(message, next_step="run again")
        found.append((result, first))
    return found


def stored_texts(files: Mapping[str, bytes], results: Iterable[ToolResult]) -> list[StoredText]:
    """Return every text of a run once, with its place in the files; unreadable files are left out.

    If a run searched or read its own artifacts again, the first reading counts.
    """
    found: dict[tuple[str, str], StoredText] = {}
    for result in sorted(results, key=lambda result: result.call.tool.startswith("artifact_")):
        name = result.artifact_file
        if name not in files:
            continue
        try:
            located = locate(name, files[name], result.sources)
        except StoreError:
            continue  # verification names it by its hash
        for text, first in located:
            stored = StoredText(text.source(), text.text, name, result.sha256, result.retrieved, first_byte=first)
            found.setdefault((text.source_id, text.text), stored)
    return list(found.values())


def texts_of(texts: Iterable[SourceText]) -> list[StoredText]:
    """Return some texts as stored texts without a place in a file."""
    return [StoredText(text.source(), text.text) for text in texts]


def read_quote(quote: Quote, data: bytes) -> str:
    """Return the readable text of a quote's bytes.

    Raises:
        ValueError: the offsets hold no text.
    """
    text = data[quote.start : quote.end].decode()
    return str(json.loads(f'"{text}"')) if quote.artifact_file.endswith(".json") else text


def _escaped(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()
