"""The language of a text: for the `lang` attribute of HTML, and to tell a question's language from its sources'."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_LEAST = 0.08  # share of function words below which no language is guessed
_SCRIPTS = {  # of one language each, or nearly; kana come first, because Japanese uses Han characters too
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "zh": r"[\u4e00-\u9fff]",
    "el": r"[\u0370-\u03ff]",
    "he": r"[\u0590-\u05ff]",
    "ar": r"[\u0600-\u06ff]",
    "th": r"[\u0e00-\u0e7f]",
}
_FUNCTION_WORDS = {
    "en": "the of and to in is that for with was are this from",
    "de": "der die das und ist nicht mit den von ein eine auf wird",
    "fr": "le les des est une dans que pour qui par sur du et",
    "es": "el los las una que por con para del es se en y",
    "it": "il gli che della una per di sono con nel è e",
    "pt": "o os uma que não com para do da em é e dos",
    "nl": "het een van de niet zijn op met voor dat en is",
}
_ASKING_WORDS = {  # a question is too short for the words above alone
    "en": "how what who why when where which does do did can should i my",
    "de": "wie was wer wo wann warum wieso welche welcher welches kann man gibt ich",
    "fr": "comment quoi pourquoi quand quel quelle quels quelles où fonctionne un je",
    "es": "cómo qué quién cuándo dónde cuál cuáles cuánto funciona un",
    "it": "come cosa chi perché quando dove quale quali quanto funziona un",
    "pt": "como quê quem quando onde qual quais quanto funciona um",
    "nl": "hoe wat wie waarom wanneer waar welke kan ik",
}
LANGUAGES = {
    "ja": "Japanese",
    "ko": "Korean",
    "zh": "Chinese",
    "el": "Greek",
    "ar": "Arabic",
    "he": "Hebrew",
    "th": "Thai",
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
}
"""English names of the languages, by tag."""


def language_tag(text: str) -> str:
    """Return the language tag of a text, such as `en`, or nothing when it is not clear."""
    return _told_by_script(text) or _told_by_words(text, _FUNCTION_WORDS)


def language_of_question(question: str) -> str:
    """Return the language tag of a question, told by its question words too, or nothing when it is not clear."""
    if script := _told_by_script(question):
        return script
    words = set(re.findall(r"[^\W\d_]+", question.lower()))
    found = {tag: len(words & set(f"{own} {_ASKING_WORDS[tag]}".split())) for tag, own in _FUNCTION_WORDS.items()}
    first, second = sorted(found, key=lambda tag: -found[tag])[:2]
    # One word may be a name: "Die Hard", "Los Angeles".
    return first if found[first] >= 2 and found[first] > found[second] else ""


def _told_by_script(text: str) -> str:
    letters = sum(map(str.isalpha, text))
    scripts = (tag for tag, script in _SCRIPTS.items() if letters and len(re.findall(script, text)) > letters / 4)
    return next(scripts, "")


def _told_by_words(text: str, known: Mapping[str, str]) -> str:
    words = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    total = sum(words.values())
    shares = {tag: sum(words[word] for word in set(own.split())) for tag, own in known.items()}
    best = max(shares, key=lambda tag: shares[tag])
    return best if shares[best] > total * _LEAST else ""
