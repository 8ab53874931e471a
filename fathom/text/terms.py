"""Terms: what ranking compares. Lowercase, without accents, stemmed; CJK writing as pairs of characters."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache

from fathom.text.stopwords import STOP_WORDS

__all__ = ["count_words", "query_terms", "terms", "word_terms"]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(rf"\d+(?:[.,]\d+)*|[{_CJK}]+|(?:(?![{_CJK}])[^\W_])+(?:['’](?:(?![{_CJK}])[^\W_])+)*")
_ASCII_WORD = re.compile(r"\d+(?:[.,]\d+)*(?![a-z])|[a-z0-9]+(?:'[a-z]+)*")
_IS_CJK = re.compile(rf"[{_CJK}]")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_COUNTED = re.compile(rf"[{_CJK}]+|(?:(?![{_CJK}])[^\W_])+(?:[-'’.,_](?:(?![{_CJK}])[^\W_])+)*")
# "looks up" is what another text calls "lookup".
_PHRASAL = re.compile(
    r"\b(look|set|start|clean|back|build|roll|shut|break|log)(?:s|ed|ing|ting)? (up|down|back|in|out)\b"
)
# The `with` of "with statements" is a name; as a word of its own it would be a stop word.
_CONSTRUCT = re.compile(
    r"\b(and|as|for|from|if|in|is|not|or|while|with)[\"'”’`]?\s+(statement|clause|loop|keyword|operator|expression|block)"
)
# Pairs that the stemmer throws together although they name different things.
_KEPT_APART = {
    "exception": "exception", "exceptions": "exception", "university": "university", "universities": "university",
    "news": "news", "policy": "policy", "policies": "policy", "organ": "organ", "organs": "organ",
    "general": "general", "generally": "general", "numerous": "numerous", "capitalism": "capitalism",
}  # fmt: skip
_STOP_FOLDED: frozenset[str]
_local = threading.local()  # a Stemmer keeps state and must not be shared between threads


def terms(text: str) -> list[str]:
    """Return the terms of a text in reading order."""
    return [term for word in _words(text) for term in word_terms(word)]


def query_terms(query: str) -> list[str]:
    """Return the terms of a query that carry its topic, each once, in order.

    A query of nothing but stop words keeps them.
    """
    topical = [term for word in _words(query) if word not in _STOP_FOLDED for term in word_terms(word)]
    return list(dict.fromkeys(topical or terms(query)))


def count_words(text: str) -> int:
    """Count words; two characters of CJK writing count as one."""
    return sum((len(w) + 1) // 2 if _IS_CJK.match(w) else 1 for w in _COUNTED.findall(text))


@lru_cache(maxsize=100_000)
def word_terms(word: str) -> tuple[str, ...]:
    """Return the terms of one folded word: its stem, its number, or the character pairs of a CJK run."""
    if word[0].isdigit() and not word.isalnum():
        return (_THOUSANDS.sub("", word),)
    if _IS_CJK.match(word):
        return tuple(word[i : i + 2] for i in range(len(word) - 1)) or (word,)
    return (_stem(word.split("'", maxsplit=1)[0] or word),)


def _words(text: str) -> list[str]:
    folded = text.lower() if text.isascii() else _fold(text)
    folded = folded.replace("with the exception of", "except")  # says nothing about exceptions
    folded = _CONSTRUCT.sub(r"\1\2 \2", _PHRASAL.sub(r"\1\2", folded))
    return (_ASCII_WORD if text.isascii() else _WORD).findall(folded)


def _fold(text: str) -> str:
    """Lowercase and take accents off Latin letters; marks of other scripts carry meaning and stay."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").casefold()
    return _ACCENTED.sub(lambda m: unicodedata.normalize("NFKD", m[0])[0], text)


def _stem(word: str) -> str:
    if word in _KEPT_APART:
        return _KEPT_APART[word]
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        import Stemmer

        stemmer = _local.stemmer = Stemmer.Stemmer("english")
    return str(stemmer.stemWord(word))


_STOP_FOLDED = frozenset(_fold(word) for word in STOP_WORDS)
