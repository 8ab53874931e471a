"""The fixed words of a report, such as its headings, in the language of its question.

The English phrase stands in the code where it is said. It is the key of the same phrase in each catalogue, a TOML file
in `catalogues/` with a language's tag as its name: `[phrases]`, in which `{name}` stands for a value; `[nouns]`, one
and several of what is counted, or one form for both; `[stored]`, what is said in English where the language is not
known, such as why a file could not be read; `[writing]`, how numbers, lists and sentences are written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from fathom.text.languages import LANGUAGES, language_of_question
from fathom.text.plain import counted, joined

_FOLDER = Path(__file__).parent / "catalogues"
LANGUAGES_OF_REPORTS = tuple(sorted(file.stem for file in _FOLDER.glob("*.toml")))
"""The tags of the languages that have a catalogue: all but English."""
_ENGLISH = {"thousands": ",", "comma": ", ", "stop": ".", "space": " "}
_VALUE = re.compile(r"\\\{(\w+)\\\}")  # in an escaped pattern


class Wording:
    """The phrases of one language; English where no catalogue is given.

    Raises:
        KeyError: the catalogue lacks the phrase.
    """

    def __init__(self, tag: str, catalogue: dict[str, dict[str, Any]] | None = None) -> None:
        self.tag = tag
        self._catalogue = catalogue
        written = catalogue["writing"] if catalogue else _ENGLISH
        self._thousands, self.comma, self.stop, self.space = (str(written[name]) for name in _ENGLISH)

    def __call__(self, phrase: str, **values: object) -> str:
        """Return an English phrase in the language, with its values."""
        found: str = self._catalogue["phrases"][phrase] if self._catalogue else phrase
        return found.format(**values) if values else found

    def counted(self, number: int, noun: str) -> str:
        """Return a number with its English noun in the language: `1 claim`, `1,200 claims`."""
        if not self._catalogue:
            return counted(number, noun)
        is_one = number in self._catalogue["writing"]["singular"]
        form: str = self._catalogue["nouns"][noun][0 if is_one else -1]
        return form.format(n=self.number(number))

    def number(self, number: int) -> str:
        """Return a number with the language's separator of thousands."""
        return f"{number:,}".replace(",", self._thousands)

    def listed(self, words: Iterable[str]) -> str:
        """Return words with commas between them."""
        return self.comma.join(words)

    def joined(self, words: Sequence[str], conjunction: Literal["and", "or"] = "and") -> str:
        """Return one or more words as a list: `a, b and c`."""
        if not self._catalogue:
            return joined(words, conjunction)
        *first, last = words
        return self(f"{{first}} {conjunction} {{last}}", first=self.listed(first), last=last) if first else last

    def sentences(self, clauses: Iterable[str]) -> str:
        """Return clauses as sentences, each with a capital letter and a full stop."""
        texts = (clause.rstrip(f".{self.stop}") for clause in clauses)
        return self.space.join(f"{text[:1].upper()}{text[1:]}{self.stop}" for text in texts)

    def day(self, year: int, month: int, day: int = 0) -> str:
        """Return a day, or a month if `day` is 0, in words."""
        name = self(f"{date(year, month, 1):%B}")
        if not day:
            return self("{month} {year}", month=name, year=year)
        if day == 1:
            return self("1 {month} {year}", month=name, year=year)
        return self("{day} {month} {year}", day=day, month=name, year=year)

    def stored(self, text: str) -> str:
        """Return a text that was stored in English, in the language if its catalogue has it, or else as it is."""
        found = ((pattern.fullmatch(text), said) for pattern, said in self._patterns)
        return next((said.format(**match.groupdict()) for match, said in found if match), text)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        stored = self._catalogue["stored"] if self._catalogue else {}
        return [(re.compile(_VALUE.sub(r"(?P<\1>.+?)", re.escape(text))), str(said)) for text, said in stored.items()]


@cache
def wording(tag: str) -> Wording:
    """Return the phrases of a language; English for a language without a catalogue, or none."""
    if tag not in LANGUAGES_OF_REPORTS:
        return Wording("en")
    return Wording(tag, tomllib.loads((_FOLDER / f"{tag}.toml").read_text(encoding="utf-8")))


ENGLISH = wording("en")


def language_for(*questions: str) -> str:
    """Return the tag of the catalogue for the first question whose language is clear; empty for English or none."""
    tag = next(filter(None, map(language_of_question, questions)), "")
    return tag if tag in LANGUAGES_OF_REPORTS else ""


def language_wanted(preference: str, language: str) -> str:
    """Return the tag of the catalogue for the language that a preference names in English, else for `language`."""
    named = (tag for tag, name in LANGUAGES.items() if name.casefold() in preference.casefold())
    tag = next(named, language)
    return tag if tag in LANGUAGES_OF_REPORTS else ""


def in_every_language(phrase: str) -> Iterator[str]:
    """Yield a phrase in English and in each catalogue, for readers of a report that is stored as text alone."""
    yield phrase
    yield from (wording(tag)(phrase) for tag in LANGUAGES_OF_REPORTS)
