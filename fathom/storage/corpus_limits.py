"""How much may be uploaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fathom.errors import InvalidInput, TooLarge
from fathom.storage.editions import CorpusFile, check_file_name, composed
from fathom.text.plain import size


class Upload(Protocol):
    """A file to add to a corpus. `size` is in bytes; `read` blocks, and may be called again."""

    @property
    def name(self) -> str:
        """What whoever uploads it calls it."""

    @property
    def size(self) -> int:
        """Its bytes, counted."""

    def read(self, most: int = -1) -> bytes:
        """Return its first bytes, by default all."""


@dataclass(frozen=True)
class Limits:
    """What may be stored: bytes of a file, bytes and files of a corpus, bytes of all corpora of the store."""

    file_bytes: int = 100_000_000
    corpus_bytes: int = 1_000_000_000
    corpus_files: int = 2_000
    all_bytes: int = 20_000_000_000

    def check_each(self, uploads: Sequence[Upload]) -> None:
        """Check each file of an upload.

        Raises:
            InvalidInput: a name cannot be used, or two files have the same one.
            TooLarge: one has too many bytes.
        """
        seen: set[str] = set()
        for upload in uploads:
            name = composed(check_file_name(upload.name))
            if name in seen:
                raise InvalidInput(f"Two files have the name {upload.name!r}.", next_step="rename one of them")
            seen.add(name)
            if upload.size > self.file_bytes:
                raise TooLarge(
                    f"{upload.name!r} has {size(upload.size)}; a file may have {size(self.file_bytes)}.",
                    next_step="divide it",
                )

    def check_corpus(self, files: Sequence[CorpusFile]) -> None:
        """Check the files of a corpus together.

        Raises:
            TooLarge: there are too many, or they have too many bytes.
        """
        if len(files) > self.corpus_files:
            raise TooLarge(
                f"The corpus would have {len(files):,} files; it may have {self.corpus_files:,}.",
                next_step="make two corpora",
            )
        if (total := sum(file.bytes for file in files)) > self.corpus_bytes:
            raise TooLarge(
                f"The corpus would have {size(total)}; it may have {size(self.corpus_bytes)}.",
                next_step="make two corpora",
            )

    def check_all(self, total: int) -> None:
        """Check the bytes of all corpora.

        Raises:
            TooLarge: there are too many.
        """
        if total > self.all_bytes:
            raise TooLarge(
                f"All corpora together may take {size(self.all_bytes)}, with what was removed and not pruned yet.",
                next_step="remove corpora, then fathom prune",
            )


LIMITS = Limits()
