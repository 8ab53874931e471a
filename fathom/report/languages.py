"""The language of a text, for the `lang` attribute of HTML: it decides about fonts and the voice of a screen reader."""

from __future__ import annotations

import re
from collections import Counter

_LEAST = 0.08  # share of function words below which no language is guessed
_SCRIPTS = {  # of one language each, or nearly; kana come first, because Japanese uses Han characters too
    "ja": r"[\u3040-\u30ff]",
    "ko": r"[\uac00-\ud7af]",
    "zh": r"[\u4e00-\u9fff]",
    "el": r"[\u0370-\u03ff]",
    "he": r"[\u0590-\u05ff]",
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


def language_tag(text: str) -> str:
    """Return the language tag of a text, such as `en`, or nothing when it is not clear."""
    letters = sum(map(str.isalpha, text))
    for tag, script in _SCRIPTS.items():
        if letters and len(re.findall(script, text)) > letters / 4:
            return tag
    words = Counter(re.findall(r"[^\W\d_]+", text.lower()))
    total = sum(words.values())
    shares = {tag: sum(words[word] for word in own.split()) for tag, own in _FUNCTION_WORDS.items()}
    best = max(shares, key=lambda tag: shares[tag])
    return best if shares[best] > total * _LEAST else ""
