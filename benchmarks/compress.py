"""A note made of some documents within a token budget, as the pipeline makes its notes without a model."""

from __future__ import annotations

from typing import Any

from benchmarks.tokens import count
from fathom.extractive.compressor import LEAST_SCORE
from fathom.extractive.questions import topic_terms
from fathom.retrieval.asked import read_asked
from fathom.retrieval.ranking import Passage
from fathom.retrieval.relevance import RankedExcerpts


def compress(request: dict[str, Any]) -> dict[str, Any]:
    """Return the note, its best excerpt first, and for each document how relevant it is beside the others.

    The budget is in cl100k tokens.
    """
    question, documents, budget = request["question"], request["docs"], request["budget_tokens"]
    asked = read_asked(question, topic_terms(question))
    evidence = RankedExcerpts([Passage(document["text"], document.get("title") or "") for document in documents])
    found = evidence.rank(asked)
    telling = [each for each in found if each.score >= LEAST_SCORE * found[0].score]
    lines = [each.markdown for each in evidence.choose(telling, asked, budget, overhead=1)]
    while len(lines) > 1 and count("\n".join(lines)) > budget:
        lines.pop()
    scores = zip(documents, evidence.of_texts(asked), strict=True)
    return {"note": "\n".join(lines), "score": {document["doc_id"]: score for document, score in scores}}
