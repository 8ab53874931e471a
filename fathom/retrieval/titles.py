"""The title under which a text is ranked: its own, and the words of its address, which often name its subject."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from fathom.models import SourceText
from fathom.retrieval.ranking import Passage
from fathom.text.urls import ENDING

_BETWEEN_WORDS = re.compile(r"[\W_]+")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9]{2})")  # that fill up a number: pep-0572


def titled(text: SourceText) -> Passage:
    """Return a text with its title and the words of its path."""
    return Passage(text.text, f"{text.title} {path_words(text.url)}")


def path_words(url: str) -> str:
    """Return the words of an address behind the host or the folder: "docs:notes/2024/leave.md" is "2024 leave"."""
    parts = urlsplit(url)
    path = parts.path if parts.netloc else parts.path.partition("/")[2]
    return _ZEROS.sub("", _BETWEEN_WORDS.sub(" ", ENDING.sub("", unquote(path)))).strip()
