"""Sentences that say little by themselves: "This is why ..." leans on the one before, "See ..." points elsewhere."""

from __future__ import annotations

import re

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
    r"\A(?:See|Refer|Compare|Consult|Click|Read more|Siehe|Copyright|Retrieved|For (?:more|further|additional|details|"
    r"information))\b|\b(?:can|may|will) be found in\b|described in (?:dedicated|the|section|detail)\b"
    r"|\b(?:this (?:section|chapter|page|table|figure)|(?:next|previous) section|"
    r"(?:see|described|listed|shown|discussed|mentioned) (?:above|below|later|earlier|in section)|"
    r"(?:examples?|table|figure|code|list|sections?) (?:above|below))\b"
)

_SUBJECTLESS = re.compile(
    r"(?:Called|Returns?|Raised?|Raises|Implements?|Creates?|Defines?|Deletes?|Sets?|Gets?|Performs?|Customizes?|"
    r"Enters?|Exits?|Executes?|Checks?|Converts?|Computes?|Used|Should|Must|Can|May|Is|Are|Invoked|Same|Like)\b"
)


def leans(sentence: str) -> bool:
    """Whether a sentence can only be understood, or only rightly, with the one before."""
    return bool(_LEANING.match(sentence) or _CONNECTING.match(sentence))


def points_elsewhere(sentence: str) -> bool:
    """Whether a sentence only refers the reader to another place."""
    return bool(_POINTING.search(sentence))


def lacks_subject(sentence: str) -> bool:
    """Whether a sentence opens with its verb, as the description of a function does below its signature."""
    return bool(_SUBJECTLESS.match(sentence))
