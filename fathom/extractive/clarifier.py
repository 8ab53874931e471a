"""Clarifying without a model: a short question whose every word two documents have in their titles, and no more of it.

"What is Mercury?" fits "Mercury (planet)" and "Mercury (element)" equally well; a question with a word of its own
that neither title has says more than they do, and its passages decide.
"""

from __future__ import annotations

from fathom.extractive.questions import parts_of, questions_of
from fathom.extractive.wording import key_terms, topic_terms
from fathom.roles import ClarifyAnswer, ClarifyRequest
from fathom.roles.clarifier import AskedBack
from fathom.text.counting import joined

MOST_READINGS = 4


def clarify(request: ClarifyRequest) -> ClarifyAnswer:
    """Return one question where several titles fit the query equally well, else none; the default is all of them."""
    readings = _readings(request)
    if len(readings) < 2:
        return ClarifyAnswer(ambiguous=False)
    asked = f"Which of these is meant: {joined([f'“{title}”' for title in readings], 'or')}?"
    default = "both" if len(readings) == 2 else "all of them"
    return ClarifyAnswer(ambiguous=True, questions=[AskedBack(question=asked, default=default)])


def _readings(request: ClarifyRequest) -> list[str]:
    """Return the titles that have every word of the query's topic and others beside it."""
    questions = questions_of(request.query)
    if len(questions) > 1 or parts_of(questions[0]):  # it says itself what its sides are
        return []
    wanted = set(topic_terms(questions[0]))
    fitting = {title: set(key_terms(title)) for document in request.documents for title in [document.title]}
    fitting = {title: found for title, found in fitting.items() if wanted <= found}
    if any(found == wanted for found in fitting.values()):  # it asks for this one by its name
        return []
    different = {frozenset(found): title for title, found in reversed(fitting.items())}
    return list(reversed(different.values()))[:MOST_READINGS]
