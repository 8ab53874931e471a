"""The lists of words and phrases that stand for others."""

from __future__ import annotations

from importlib.resources import files

import pytest

from fathom.retrieval.synonyms import phrases_of
from fathom.text.terms import terms

WORDS = files("fathom.retrieval").joinpath("words")


def _lines(name: str) -> list[str]:
    lines = WORDS.joinpath(name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["en.txt", "de.txt"])
def test_each_line_joins_single_words(name: str) -> None:
    for line in _lines(name):
        words = line.split()
        assert len(words) == len(set(words)) > 1, line
        assert line == line.lower(), line
        assert all(len(terms(word)) == 1 for word in words), line  # none that means nothing by itself, or is two
    groups = [frozenset(line.split()) for line in _lines(name)]
    assert len(groups) == len(set(groups))


def test_each_phrase_is_found_in_a_question() -> None:
    for line in _lines("phrases.txt"):
        phrases, words = line.split(": ")
        for phrase in phrases.split(", "):
            found = phrases_of(f"So {phrase}?")
            assert any(set(terms(words)) <= said.keys() for said in found.values()), phrase
