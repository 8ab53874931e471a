"""Clarifying without a model: a question for something by a name that the titles of two documents share.

"What is Mercury?" fits "Mercury (planet)" and "Mercury (element)" equally well. A question with a word of its own says
more than they do, and its passages decide. "Mercury in culture" is about Mercury, and no other thing of that name.
"""

from __future__ import annotations

import re

from fathom.extractive.questions import key_terms, parts_of, questions_of, topic_terms
from fathom.roles import ClarifyAnswer, ClarifyRequest
from fathom.roles.clarifier import AskedBack
from fathom.text.wording import wording

MOST_READINGS = 4
_QUALIFIER = re.compile(r"\s*[(\[,:;]\s*|\s+[-–—]\s+")


def clarify(request: ClarifyRequest) -> ClarifyAnswer:
    """Return one question where several titles fit the query equally well, else none; the default is all of them."""
    readings = _readings(request)
    if len(readings) < 2:
        return ClarifyAnswer(ambiguous=False)
    words = wording(request.language)
    titles = words.joined([words("“{name}”", name=title) for title in readings], "or")
    asked = words("Which of these is meant: {titles}?", titles=titles)
    default = words("both") if len(readings) == 2 else words("all of them")
    return ClarifyAnswer(ambiguous=True, questions=[AskedBack(question=asked, default=default)])


def _readings(request: ClarifyRequest) -> list[str]:
    """Return the titles that consist of the query's topic and of what tells it from others of its name."""
    questions = questions_of(request.query)
    if len(questions) > 1 or parts_of(questions[0]):  # it says itself what its sides are
        return []
    wanted = set(topic_terms(questions[0]))
    different: dict[frozenset[str], str] = {}
    for title in (document.title for document in request.documents):
        name, *rest = _QUALIFIER.split(title, maxsplit=1)
        if set(key_terms(name)) == wanted:
            different.setdefault(frozenset(key_terms(" ".join(rest))), title)
    return [] if frozenset() in different else list(different.values())[:MOST_READINGS]
