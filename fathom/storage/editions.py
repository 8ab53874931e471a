"""A state of a corpus: its files, their names, and the limits on uploads."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fathom.errors import Conflict, InvalidInput, NotThere, TooLarge, UserError
from fathom.models import CorpusFile, Model, UnreadFile
from fathom.storage.names import cut_slug
from fathom.storage.ownership import Ownership
from fathom.text.plain import size

CORPORA = "corpora"
_LIST = "fathom corpora list shows what there is"
NAME_CHARS, FILE_NAME_CHARS = 60, 300
_NUMBER = r" _[0-9a-f]{6}"  # it tells corpora of questions apart, and readers nothing
_FILE_FOR_QUESTION = re.compile(rf"corpus:[^/]+{_NUMBER}/([^/]+)")
_OF_OWNER = r" \.[0-9a-f]{6}"  # it tells the corpora of two users apart that gave them the same name
_OWNED = re.compile(rf"{_OF_OWNER}\Z")
_NUMBERED = re.compile(rf"(?:{_NUMBER}|{_OF_OWNER})(?=/|\Z)")
_NAME = re.compile(rf"[^\W_][\w .-]{{0,{NAME_CHARS - 1}}}(?:{_OF_OWNER})?")


class Edition(Model):
    """A state of a corpus. Times are ISO 8601 in UTC; `owner` is empty if nobody is known to own it."""

    number: int
    name: str
    owner: str = ""
    shared: bool = False
    created: str
    changed: str
    by: str = ""  # who made this edition
    removed: bool = False
    temporary: bool = False  # made for one run, and removed when that has ended
    files: list[CorpusFile] = []
    left_out: list[UnreadFile] = []  # uploaded files that were not stored, by name

    @property
    def digest(self) -> str:
        """The SHA-256 of the names and contents of its files."""
        files = [[file.name, file.sha256] for file in self.files]
        return hashlib.sha256(json.dumps(files, ensure_ascii=False).encode()).hexdigest()

    @property
    def ownership(self) -> Ownership:
        """Whose it is, and whether everybody may read it."""
        return Ownership(owner=self.owner, shared=self.shared)

    def used(self) -> UsedCorpus:
        """Return its reference in a run."""
        return UsedCorpus(name=self.name, edition=self.number, digest=self.digest)

    @property
    def bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.bytes for file in self.files)


class UsedCorpus(Model):
    """The edition of a corpus that a run reads, fixed when it begins."""

    name: str
    edition: int
    digest: str


def check_name(name: str) -> str:
    """Return the name of a new corpus in the form that is stored.

    Raises:
        InvalidInput: the name cannot be used.
    """
    kept = composed(name).strip()
    if not _NAME.fullmatch(kept):
        raise InvalidInput(
            f"{name[:NAME_CHARS]!r} cannot be the name of a corpus.",
            next_step=f"use up to {NAME_CHARS} letters, digits, spaces, '.', '-' and '_', a letter or digit first",
        )
    return kept


def name_for_question(files: str) -> str:
    """Return a name, which no other corpus has, for the corpus of the files that came with a question.

    Raises:
        InvalidInput: what names the files cannot be part of it.
    """
    return check_name(f"{files} _{secrets.token_hex(3)}")


def own_name(name: str, owner: str) -> str:
    """Return the name in the store of the corpus that somebody calls by a name, whatever others call theirs."""
    end = f" .{hashlib.sha256(owner.encode()).hexdigest()[:6]}"
    return name if name.endswith(end) else f"{name}{end}"


def called(name: str) -> str:
    """Return what its owner calls a corpus, by its name in the store."""
    return _OWNED.sub("", name)


def file_for_question(url: str) -> str:
    """Return the name of the file that came with a question, by its address as a source; empty for other addresses."""
    found = _FILE_FOR_QUESTION.fullmatch(url)
    return found[1] if found else ""


def shown_name(name: str) -> str:
    """Return the name or the address of a corpus, or the address of a file of it, as readers see it."""
    return _NUMBERED.sub("", name, count=1)


def check_file_name(name: str) -> str:
    """Return the name of a file as it is kept.

    Raises:
        InvalidInput: it is empty, longer than 300 characters, or has control characters.
    """
    if not name.strip() or len(name) > FILE_NAME_CHARS or any(unicodedata.category(c) in ("Cc", "Cs") for c in name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be the name of a file.",
            next_step=f"use 1 to {FILE_NAME_CHARS} characters, none of them a control character",
        )
    return name


def is_name(name: str) -> bool:
    """Whether a corpus can have this name."""
    return bool(_NAME.fullmatch(name))


def folder_of(name: str) -> str:
    """Return the folder of a corpus in the store."""
    return f"{CORPORA}/{cut_slug(composed(name), NAME_CHARS)}"


def edition_path(folder: str, number: int) -> str:
    """Return the path of an edition in the folder of its corpus."""
    return f"{folder}/editions/{number:06}.json"


def no_corpus(name: str, kind: type[UserError] = NotThere) -> UserError:
    """Return the error for a corpus that does not exist, or that the caller may not see."""
    return kind(f"The corpus {name[:NAME_CHARS]!r} does not exist.", next_step=_LIST)


def name_taken(name: str, last: Edition) -> Conflict:
    """Return the error of a new corpus whose name is in use."""
    similar = "" if name in {last.name, called(last.name)} else " by one that differs in case or punctuation only"
    return Conflict(f"The name {name!r} is taken{similar}.", next_step="choose another name")


def composed(name: str) -> str:
    """Return a name with its accents composed, as most systems write it."""
    return unicodedata.normalize("NFC", name)


class Upload(Protocol):
    """A file to add to a corpus. `size` is in bytes; `read` blocks, and may be called again."""

    @property
    def name(self) -> str:
        """The name under which it is uploaded."""

    @property
    def size(self) -> int:
        """Its bytes, counted."""

    def read(self, most: int = -1) -> bytes:
        """Return its first bytes, by default all."""


@dataclass(frozen=True)
class StorageLimits:
    """Storage limits: bytes of a file, bytes and files of a corpus, bytes of all corpora of the store."""

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
                    next_step="split it",
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


LIMITS = StorageLimits()
