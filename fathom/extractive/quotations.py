"""Which pieces of a text can be understood alone in a note or a report.

A quotation that opens with "It" or ends with "as follows:" says nothing by itself. So sentences that lean on the one
before are joined with it, and what still leans, or is a signature, table rubble or code, is not quoted at all.
"""

from __future__ import annotations

import re
from collections import Counter

from fathom.extractive.verbs import is_verb
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import count_words

MAX_WORDS = 60
MIN_WORDS = 5
ITEM_WORDS = 8
CHARS_A_SYMBOL = 30  # a text with fewer characters for each symbol is code

_LEANING = re.compile(
    r"(?:This|These|Those|That|It|Its|They|Their|Them|He|She|His|Her|Such|Both|Neither|Else|Otherwise|Then|Thus|"
    r"Instead|And|Or|So|Here|Because of this|First,|(?:All|Any|Every|Each) other|"
    r"For (?:example|instance|this|these)|As a (?:result|consequence)|On the (?:other hand|contrary)|"
    r"In (?:this|these|that|such|both|either|contrast|addition|other words|particular|"
    r"the (?:above|former|latter|following))|By (?:contrast|this)|"
    r"(?:If|When|Where)\b[^,.]{0,60}\bthere\b|If (?:this|it|they|that|so|not)\b|When (?:this|it|they)\b|"
    r"The (?:former|latter|above|same|following|other|others|second|third|rest)|"
    r"(?:\w+ ){0,3}(?:these|those|this|them|do so|doing so)\b(?! (?:is|are|was|were) (?:a|an|the)\b)|"
    r"Dies|Diese|Dieser|Dieses|Er|Sie|Es|Sein|Seine|Ihr|Ihre|Dabei|Dadurch|Daher|Deshalb|Damit|Danach|Dann|Jedoch|"
    r"Außerdem|Zudem|Aber|Und|Oder|Hier|Dort)\b"
    r"|(?:这|它|他们|她|其|此|因此|但|而且|これ|それ|この|その|しかし|また)"
)
# These connect to the sentence before, and yet can be understood without it.
_CONNECTING = re.compile(
    r"(?:However|But|Also|Hence|Therefore|Moreover|Furthermore|Similarly|Likewise|Conversely|Nevertheless|Consequently|"
    r"Accordingly|Finally|Second|Third|Next)\b"
)
# A pointer to another place says nothing where it is quoted.
_POINTING = re.compile(
    r"^(?:See|Refer|Compare|Consult|Click|Read more|Note:|Example|Siehe|Copyright|Retrieved|"
    r"(?:Changed|New|Added) in version|Deprecated since|For (?:more|further|additional|details|information))\b"
    r"|\b(?:can|may|will) be found in\b|described in (?:dedicated|the|section|detail)\b"
    r"|\b(?:as follows|the following|this (?:section|chapter|page|table|figure)|(?:next|previous) section|"
    r"(?:see|described|listed|shown|discussed|mentioned) (?:above|below|later|earlier|in section)|"
    r"(?:examples?|table|figure|code|list|sections?) (?:above|below)|"
    r"following (?:example|code|table|sections?|methods?))\b"
)
_ALSO = re.compile(r"\b(?:as well|too)\.$")
_THIS = re.compile(
    r"\b[Tt]his (?:method|function|class|statement|fashion|way|manner|case|feature|option|module|value|dictionary|"
    r"example|approach|process|effect|reason|list|table|article|document)\b"
)
_SUBJECTLESS = re.compile(
    r"(?:Called|Returns?|Raised?|Raises|Implements?|Creates?|Defines?|Deletes?|Sets?|Gets?|Performs?|Customizes?|"
    r"Enters?|Exits?|Executes?|Checks?|Converts?|Computes?|Used|Should|Must|Can|May|Is|Are|Invoked|Same|Like)\b"
)
_ENDS = re.compile(r"[.!?。！？…][\"'”’»)\]）」』*_]*(?:\s*\[[\w ]{1,20}\])*$")
_OPENS = re.compile(r"[\"'“„«(\[「『*_]*(?:[^\W_a-z]|[\u3040-\u9fff\uac00-\ud7af])|[\"'“„«(]+\w|__\w")
_SYMBOLS = re.compile(r"[=<>{}|\\^~@#$*+/]|::|--|\)\.|\(\)\(")
_EMPHASIS = re.compile(r"(\*{1,2})(\w[^*]*)\1")
_TERM = re.compile(r"(?=\S*[._(])(?:(?:async|class|exception|property) )*[\w.]+(?:\(.{0,80}\))?\Z")
_LABEL = re.compile(r"(?:Note|Hint|Tip|Warning|Important|Caution|CPython implementation detail|Hinweis):\s+(?=\S)")


def units(text: str) -> list[Sentence]:
    """Return the sentences of a text, those that lean on the one before joined with it, in the text's own characters.

    A term on a line of its own, `object.__get__(self, instance)`, is joined with the first sentence on it.
    """
    joined: list[Sentence] = []
    for sentence in map(_unlabelled, split_sentences(text)):
        if joined and _belongs(joined[-1], sentence):
            first = joined.pop()
            whole = text[first.start : sentence.end]
            joined.append(Sentence(whole, first.start, sentence.end, "prose", sentence.paragraph))
        else:
            joined.append(sentence)
    sizes = Counter(unit.paragraph for unit in joined)
    return [
        unit._replace(kind="heading") if sizes[unit.paragraph] == 1 and _is_noun_phrase(unit.clean) else unit
        for unit in joined
    ]


def reads_alone(unit: Sentence) -> bool:
    """Whether a unit is a complete statement that can be understood without its surroundings."""
    text = unit.clean
    if unit.kind not in ("prose", "item") or not MIN_WORDS <= count_words(text) <= MAX_WORDS:
        return False
    return _is_whole(unit, text) and not _needs_more(text) and not _is_rubble(unit, text)


def _is_whole(unit: Sentence, text: str) -> bool:
    """Whether the text begins and ends as a statement does; a list item may lack its full stop."""
    ends = _ENDS.search(text[-40:]) or (unit.kind == "item" and text[-1].isalnum() and count_words(text) > ITEM_WORDS)
    opens = _OPENS.match(text) or _TERM.match(_first_line(unit))
    if not (ends and opens) or text.endswith("?") or text[0] == "(":
        return False
    # An abbreviation at the end would swallow whatever is put behind it.
    return not text.endswith(".") or split_sentences(f"{text[-60:]} Python.")[-1].clean == "Python."


def _needs_more(text: str) -> bool:
    """Whether the text refers to something outside itself."""
    first = text.split(". ", 1)[0]
    patterns = (_LEANING.match(text.lstrip('"“')), _SUBJECTLESS.match(text), _POINTING.search(text))
    return any(patterns) or bool(_ALSO.search(text) or _THIS.search(first))


def _is_rubble(unit: Sentence, text: str) -> bool:
    """Whether the text is mostly symbols, a broken quotation, or a term with no more than a name for it."""
    symbols = len(_SYMBOLS.findall(_EMPHASIS.sub(r"\2", text)))
    term = _first_line(unit)
    named = _TERM.match(term) and _is_noun_phrase(text[len(term) :].strip())
    return symbols * CHARS_A_SYMBOL > len(text) or not _balanced(text) or bool(named)


def _belongs(first: Sentence, second: Sentence) -> bool:
    """Whether a sentence only makes sense together with what comes before it."""
    if second.kind not in ("prose", "item") or count_words(first.text) + count_words(second.text) > MAX_WORDS:
        return False
    if first.kind in ("code", "heading"):
        return bool(_TERM.match(first.text)) and second.kind == "prose"
    if first.paragraph != second.paragraph or first.kind not in ("prose", "item"):
        return False
    if not _ENDS.search(first.clean[-40:]):
        return False
    return bool(_LEANING.match(second.clean) or _CONNECTING.match(second.clean))


def _unlabelled(sentence: Sentence) -> Sentence:
    """Return the sentence without a label such as "Note:" before it."""
    label = _LABEL.match(sentence.text)
    if not label:
        return sentence
    return sentence._replace(text=sentence.text[label.end() :], start=sentence.start + label.end())


def _first_line(unit: Sentence) -> str:
    return unit.text.split("\n", 1)[0].strip()


def _is_noun_phrase(text: str) -> bool:
    """Whether a short "The ... ." has no verb we know, as the entries of a glossary or of a list of links."""
    words = text.lower().rstrip(".").split() or [""]
    return words[0] in ("the", "a", "an") and len(words) <= 20 and not any(map(is_verb, words, ["", *words[:-1]]))


def _balanced(text: str) -> bool:
    return text.count("(") == text.count(")") and text.count("“") == text.count("”") and text.count('"') % 2 == 0
