"""Notes made of some documents within a token budget, for the engine's `compress` operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.tokens import count as count_tokens
from fathom.retrieval.ranking import Passage
from fathom.retrieval.selection import Pick, Reader

SUMMARY_SENTENCES = 10
TITLE_WORDS = (5, 12)
TITLE_SHARE = 12  # a title may take a twelfth of the note; a note too small for the shortest one has none


def compress(request: dict[str, Any]) -> dict[str, Any]:
    """Return the note, and for each document how relevant it is beside the others and whether it is useful.

    The budget is in cl100k tokens and holds for the note as text: title, summary and bullets, a line each.
    """
    documents = request["docs"]
    reader = Reader(request["question"], [Passage(d["text"], d.get("title") or "") for d in documents])
    note = _note(request["question"], documents, reader, request["budget_tokens"], count_tokens)
    scores = {d["doc_id"]: score for d, score in zip(documents, reader.scores, strict=True)}
    useful = {d["doc_id"]: useful for d, useful in zip(documents, reader.useful, strict=True)}
    note["is_useful"] = any(useful.values())
    return {"note": note, "useful": useful, "score": scores}


def _note(
    question: str, documents: list[dict[str, Any]], reader: Reader, budget: int, count: Callable[[str], int]
) -> dict[str, Any]:
    names = [documents[i].get("title") or "" for i in _best_first(reader.scores)]
    title = next((t for t in _titles(names, question) if count(t) * TITLE_SHARE <= budget), "")
    room = budget - count(title) - 1 if title else budget
    picks = reader.select(room, count=count)
    note = _written(title, picks)
    while len(picks) > 1 and (over := count(_text(note)) - budget) > 0:
        while len(picks) > 1 and over > 0:  # the dashes of the bullets were not in the account
            over -= count(picks.pop().sentence.clean)
        note = _written(title, picks)
    return note


def _best_first(scores: list[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def _titles(names: list[str], question: str) -> list[str]:
    """Return titles to try: the names of the two best documents, the best one's alone, and the shortest allowed."""
    least, most = TITLE_WORDS
    asked = question.rstrip("?").split()
    if not names:
        return []
    first, both = names[0].split(), f"{names[0]}; {names[1]}".split() if len(names) > 1 else []
    titles = [both] if least <= len(both) <= most else []
    titles.append((first if len(first) >= least else [*first, *asked])[: max(least, min(len(first), most))])
    titles.append([*first, *asked][:least])
    return [" ".join(title) for title in titles if len(title) >= least]


def _written(title: str, picks: list[Pick]) -> dict[str, Any]:
    """Return the note: the best sentences as a summary, the others as bullets, both in reading order."""
    summary, bullets = (
        sorted(part, key=lambda pick: (pick.text, pick.sentence.start))
        for part in (picks[:SUMMARY_SENTENCES], picks[SUMMARY_SENTENCES:])
    )
    return {
        "summary_title": title,
        "summary": " ".join(pick.sentence.clean for pick in summary),
        "extraction": [pick.sentence.clean for pick in bullets],
    }


def _text(note: dict[str, Any]) -> str:
    return "\n".join([note["summary_title"], note["summary"], *(f"- {line}" for line in note["extraction"])]).strip()
