"""Terms, the units that ranking compares, and the words that name no topic.

Terms are lowercase, without accents, in American spelling, and stemmed; CJK writing becomes pairs of characters. An
identifier has the terms of its words and one for the whole. Sentences with nearly the same terms and numbers say the
same.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Literal

_ENGLISH = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each either else etc
ever few for from further had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself
him himself his how how's however i i'd i'll i'm i've if in into is isn't it it'll it's its itself just let like many
may me might more most much must my myself neither no nor not of off on once one ones only onto or other our ours
ourselves out over own per rather same several shall she she'd she'll she's should shouldn't since so some such than
that that's the their theirs them themselves then there there's these they they'd they'll they're they've this those
though through thus to too under until up upon us very via was wasn't we we'd we'll we're we've were weren't what
what's when when's where where's whether which while who who's whom whose why why's will with within without won't
would wouldn't yet you you'd you'll you're you've your yours arent cant didnt doesnt dont hasnt hows isnt ive shouldnt
hes im itll shes thatll thats theres theyll theyre theyve til till wasnt werent weve whats wheres whos wont wouldnt
youll youre youve
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da damit dann das dass dem den der des dessen die dies diese diesem
diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es für gegen hat hatte hatten ich ihr ihre
im in ist ja jede jeder jedes kann kein keine mit nach nicht noch nun nur ob oder ohne sehr sein seine sich sie sind
so soll sowie über um und uns unter vom von vor war waren warum was wegen weil wenn wer werden wie wir wird wo wurde
wurden zu zum zur zwischen viel viele vielen wann welche welchem welchen welcher welches wem wen wessen woher wohin
wieviel etwa dass daß man darf dürfen muss müssen können sollen beim unser unsere unserem unseren unserer mein meine
meinem meinen meiner ab habe haben gibt brauche brauchen braucht alle allem allen aller alles daran darauf daraus darin
dafür dabei davon dazu denn dich eben eigentlich euch euer eure eurem euren eurer gehabt geworden habt
hast hätte hätten ihm ihn ihnen ihrem ihren ihrer kannst könnt könnte könnten mal mich mir möchte möchten musst schon
seid seinem seinen seiner sollte sollten überhaupt wäre wären wieder will willst wirst wofür wohl wollen womit worden
worin worüber wozu würde würden darfst
"""
_ASKING = "describe explain know please tell understand want"
_ENGLISH_WORDS = frozenset({"bin", "den", "die", "dies", "hat", "man", "mit", "war"})
"""Stop words of German that mean something in English: "which bin", "the war", "a worker dies", "the MIT License"."""
ENGLISH = frozenset(_ENGLISH.split())
GERMAN = frozenset(_GERMAN.split())
STOP_WORDS = ENGLISH | GERMAN | frozenset(_ASKING.split())
"""Lowercase, before stemming and before accents are folded."""


KNOWN_WORDS = 50_000  # words whose terms are remembered, in each language

Language = Literal["english", "german"]
"""The languages whose endings are removed. Writing without endings, such as Chinese, is the same in both."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"


def _word(letter: str) -> str:
    """Return the pattern of a word: `3.5`, `1930s`, `28th`, the `10` and the `km` of "10km", and all other words."""
    unit = rf"(?!(?:st|nd|rd|th)(?!{letter}))(?:(?!\d){letter}){{2,}}+(?!\d)"
    return rf"\d++(?:(?:[.,]\d++)++|(?={unit})|(?!{letter}))|{letter}++(?:'{letter}++)*"


# A word of ASCII is the same in both; looking for it alone is quicker.
_LETTER = rf"(?:(?![{_CJK}])[^\W_])"
_WORD = re.compile(rf"[{_CJK}]+|{_word(_LETTER)}")
_ASCII_WORD = re.compile(_word("[a-z0-9]"))
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)\Z")
_IS_CJK = re.compile(rf"[{_CJK}]")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
_THOUSANDS = re.compile(r",(?=\d{3}(?:\D|$))")
_COUNTED = re.compile(rf"[{_CJK}]+|(?:(?![{_CJK}])[^\W_])+(?:[-'’.,_](?:(?![{_CJK}])[^\W_])+)*")
# `max_usd`, `maxIterations`, `HTTPServer`, `a.b_c` and `--max-usd`; not "iPhone", "mRNA", "DNAs" or "McDonald".
# It begins with a capital, which the engine skips to: a fifth of the time of a set with small letters.
_HUMPED = re.compile(r"[A-Z](?:(?<=[a-z0-9]{2}[A-Z])|(?<=[A-Z]{4})(?=[a-z]))")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IDENTIFIER = re.compile(
    r"(?<![\w.-])--[a-z0-9]+(?:-[a-z0-9]+)+(?!\w)|(?<![\w.])[A-Za-z0-9_]++(?:\.[A-Za-z0-9_]++)*+(?!\w)"
)
_LONGEST_IDENTIFIER = 100  # characters
# "looks up" is what another text calls "lookup".
_VERBS = ("look", "set", "start", "clean", "back", "build", "roll", "shut", "break", "log")
_PHRASAL = re.compile(rf"\b({'|'.join(_VERBS)})(?:s|ed|ing|ting)? (up|down|back|in|out)\b")
# The `with` of "with statements" is a name; as a word of its own it would be a stop word.
_CONSTRUCTS = ("statement", "clause", "loop", "keyword", "operator", "expression", "block")
_CONSTRUCT = re.compile(rf"\b(and|as|for|from|if|in|is|not|or|while|with)[\"'”’`]?\s+({'|'.join(_CONSTRUCTS)})")
# Pairs that the stemmer conflates although they name different things.
_KEPT_APART = {
    "exception": "exception", "exceptions": "exception", "university": "university", "universities": "university",
    "news": "news", "policy": "policy", "policies": "policy", "organ": "organ", "organs": "organ",
    "general": "general", "generally": "general", "numerous": "numerous", "capitalism": "capitalism",
}  # fmt: skip
# British spellings with American ones, which more texts have: people ask in one and read the other.
_SPELLINGS = """
aeroplane airplane | aluminium aluminum | analogue analog | artefact artifact | catalogue catalog | cosy cozy
defence defense | dialogue dialog | diarrhoea diarrhea | grey gray | jewellery jewelry | kerb curb
licence license | manoeuvre maneuver | mould mold | moustache mustache | offence offense | plough plow
practise practice | practising practicing | pretence pretense | programme program | pyjamas pajamas
sceptic skeptic | sceptical skeptical | smoulder smolder | speciality specialty | sulphur sulfur
"""
_AMERICAN = dict(pair.split() for line in _SPELLINGS.strip().splitlines() for pair in line.split(" | "))
_BRITISH = re.compile(rf"(?P<word>{'|'.join(_AMERICAN)})(?P<ending>s|d|ed|ing|)\Z")
_BRITISH_OUR = re.compile(
    r"(?P<root>(?:dis|un)?"
    r"(?:arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|parl|rum|sav|tum|vap|vig))our"
)
_BRITISH_RE = re.compile(r"(?P<root>\w*(?:cent|fib|lit|lust|met|mit|sab|theat))re(?P<ending>[sd]?)\Z")
_BRITISH_ISE = re.compile(r"(?P<root>\w{2,}[^aeou\W])(?:is|(?<=l)ys)(?P<ending>e[drs]?|ers|ing|ations?|able)\Z")
_WITH_S = """
advertis advis anis appris chemis circumcis clockwis comparis compris compromis concis demis despis devis
disguis enterpris excis exercis expertis franchis guis improvis incis likewis merchandis mortis otherwis paradis
precis premis promis repris revis supervis surpris televis treatis
"""
_ALWAYS_WITH_S = tuple(_WITH_S.split())
# Chinese particles and question words: a pair with one of them is about nothing.
_PARTICLE = re.compile("[的了吗呢么哪谁吧是]")
_local = threading.local()  # a Stemmer keeps state and must not be shared between threads


def terms(text: str, language: Language = "english") -> list[str]:
    """Return the terms of a text in reading order."""
    known = _TERMS[language]
    return [term for word in _words(text) for term in known[word]]


def query_terms(query: str) -> list[str]:
    """Return the terms of a query that name its topic, each once, in order; if all are stop words, these."""
    known, words = _TERMS["english"], _words(query)
    stop = _STOP_FOLDED
    if not _ENGLISH_WORDS.isdisjoint(words) and language_of([query]) == "english":
        stop = stop - _ENGLISH_WORDS
    topical = [term for word in words if word not in stop for term in known[word]]
    return list(dict.fromkeys([term for term in topical if not is_particle(term)] or terms(query)))


def is_particle(term: str) -> bool:
    """Whether a term has a Chinese particle or question word in it."""
    return bool(_PARTICLE.search(term))


def any_holds(wanted: Collection[str], texts: Iterable[str]) -> bool:
    """Whether any of the texts has a wanted term; true if nothing is wanted."""
    return not wanted or any(not set(wanted).isdisjoint(terms(text)) for text in texts)


def language_of(texts: Iterable[str]) -> Language:
    """Return the language of some texts, told by the function words in the first 2,000 characters of each."""
    words = [word for text in texts for word in _words(text[:2_000])]
    german = sum(word in _GERMAN_ONLY for word in words)
    english = sum(word in _ENGLISH_ONLY for word in words)
    return "german" if german > english else "english"


def count_words(text: str) -> int:
    """Count words; two characters of CJK writing count as one."""
    return sum((len(w) + 1) // 2 if _IS_CJK.match(w) else 1 for w in _COUNTED.findall(text))


class _Terms(dict[str, tuple[str, ...]]):
    """The terms of folded words: a word's stem, its number, or the character pairs of a CJK run."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) >= KNOWN_WORDS:
            self.clear()
        found = self[word] = self._of(word)
        return found

    def _of(self, word: str) -> tuple[str, ...]:
        if word[0].isdigit() and not word.isalnum():
            return (_THOUSANDS.sub("", word),)
        if _IS_CJK.match(word):
            return tuple(word[i : i + 2] for i in range(len(word) - 1)) or (word,)
        if ordinal := _ORDINAL.match(word):
            return (ordinal[1],)
        stem = _stem(word.split("'", maxsplit=1)[0] or word, self._language)
        return (word if stem == word else stem,)  # one string of two that are the same


_TERMS: dict[Language, _Terms] = {"english": _Terms("english"), "german": _Terms("german")}


def _words(text: str) -> list[str]:
    if "_" in text or "--" in text or _HUMPED.search(text):
        text = _IDENTIFIER.sub(_written, text)
    folded = text.lower() if text.isascii() else _fold(text)
    folded = folded.replace("with the exception of", "except")  # says nothing about exceptions
    # Looking for a part is far quicker than the patterns, which try every word.
    if any(verb in folded for verb in _VERBS):
        folded = _PHRASAL.sub(r"\1\2", folded)
    if any(noun in folded for noun in _CONSTRUCTS):
        folded = _CONSTRUCT.sub(r"\1\2 \2", folded)
    return (_ASCII_WORD if text.isascii() else _WORD).findall(folded)


def _written(identifier: re.Match[str]) -> str:
    name = identifier[0]
    return name if name.islower() and name.isalpha() else _spelled_out(name)


@lru_cache(KNOWN_WORDS)
def _spelled_out(name: str) -> str:
    """Return an identifier in words, and whole: `MAX_USD`, `maxUsd` and `--max-usd` are "max usd maxusd"."""
    if (name.isalpha() and (name.islower() or name.isupper())) or len(name) > _LONGEST_IDENTIFIER:
        return name
    names = [_parts(segment) for segment in name.split(".")]
    whole = ["".join(parts) for parts in names if len(parts) > 1]
    if whole and len(names) > 1:
        whole.append("".join(part for parts in names for part in parts))
    return " ".join([*(" ".join(parts) for parts in names), *whole]) if whole else name


def _parts(name: str) -> list[str]:
    """Return the words of an identifier; an identifier that may be a name of something else is a single word."""
    parts: list[str] = []
    for piece in filter(None, re.split("[_-]", name)):
        humps = _HUMP.sub(" ", piece).split()
        parts += humps if _is_said_apart(humps) else [piece]
    return parts


def _is_said_apart(humps: Sequence[str]) -> bool:
    """Whether people say the parts of a word apart: `maxUsd`, `isOpen`, `HTTPServer`; not "siRNA", "OpenMetrics"."""
    first = humps[0]
    if first[0].islower():
        known = len(first) > 2 or (len(first) > 1 and first in STOP_WORDS)
        return known and all(len(hump) > 1 for hump in humps)
    return (first.isupper() or len(humps) > 2) and all(len(hump) > 2 for hump in humps)


def _fold(text: str) -> str:
    """Lowercase a text and remove accents from Latin letters; marks of other scripts have meaning and stay."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").casefold()
    return _ACCENTED.sub(lambda m: unicodedata.normalize("NFKD", m[0])[0], text)


def _stem(word: str, language: Language) -> str:
    if language == "english":
        if word in _KEPT_APART:
            return _KEPT_APART[word]
        word = _american(word)
    if not hasattr(_local, language):
        import Stemmer

        setattr(_local, language, Stemmer.Stemmer(language, 0))  # its own cache takes longer than stemming
    return str(getattr(_local, language).stemWord(word))


def _american(word: str) -> str:
    """Return a lowercase word in its American spelling; any other word as it is."""
    if form := _BRITISH.match(word):
        base, ending = _AMERICAN[form["word"]], form["ending"]
        return f"{base}{'ed' if ending == 'd' and not base.endswith('e') else ending}"
    if found := _BRITISH_RE.match(word):
        return f"{found['root']}er{found['ending'].replace('d', 'ed')}"
    if found := _BRITISH_OUR.match(word):
        return f"{found['root']}or{word[found.end() :]}"
    if (found := _BRITISH_ISE.match(word)) and not word.startswith(_ALWAYS_WITH_S):
        return f"{word[: found.start('ending') - 1]}z{found['ending']}"
    return word


_STOP_FOLDED = frozenset(_fold(word) for word in STOP_WORDS)
_GERMAN_FOLDED = frozenset(_fold(word) for word in GERMAN)
_ENGLISH_ONLY = _STOP_FOLDED - _GERMAN_FOLDED
_GERMAN_ONLY = _GERMAN_FOLDED - frozenset(_fold(word) for word in ENGLISH)


SHARED = 0.8  # of the shorter sentence's terms
LENGTHS = 0.75  # the shorter one's share of the longer one's
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def is_near_duplicate(a: str, b: str) -> bool:
    """Whether two sentences hold nearly the same terms and the same numbers."""
    return _same(frozenset(query_terms(a)), frozenset(query_terms(b))) and _numbers(a) == _numbers(b)


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def _same(a: frozenset[str], b: frozenset[str]) -> bool:
    small, large = sorted((len(a), len(b)))
    return small >= LENGTHS * large and small > 0 and len(a & b) >= SHARED * small
