"""Writing a section without a model: the quotations that say most about the question and the section's own matter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from fathom.extractive.kinds import has_kind, kind_of
from fathom.extractive.questions import questions_of
from fathom.extractive.statements import Relevance, Statement, statements_of
from fathom.extractive.verbs import is_verb
from fathom.extractive.wording import topic_terms
from fathom.retrieval.duplicates import DuplicateFilter
from fathom.roles import SectionRequest, Text
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, terms

ANSWER_SENTENCES = (3, 5)
SECTION_SENTENCES = 8
PARAGRAPH_SENTENCES = 5
LEAST_SCORE = 0.35  # of the best statement's; what says less stays out
LONE = 0.5  # the same for the only statement of its source: one weak match in a text is chance
LEAST_WORDS = 3
NEAR = 0.25  # of a statement's score that its neighbours of the same source get as well
ON_QUESTION = 0.2  # share of the question's terms, by worth, that every statement must hold
ON_SECTION = 0.34  # share of the section's own terms
STEP_WEIGHT = 0.6  # of the section's terms in a statement's score; the question's have the rest
SAID = 0.8  # of a term's worth with each chosen statement that holds it, so that the choice covers the question
OF_KIND = 1.5  # factor in the short answer for a statement with the kind of thing that is asked for
VOTE = 0.15  # added to a statement's score for each further note that quotes it
MOST_VOTES = 2
POINTING = 0.5  # factor for a statement that refers the reader elsewhere
NOTHING_NEW = "This section has nothing to add to what the others quote."

CITED = re.compile(r"\s*(?:\[S[0-9a-f]{6,64}\])+\s*")
_SIGNATURE = re.compile(r"(?:[\w.]+\([^)]*\)(?:\s*(?:->|→)\s*\S+)?|\w+(?:\.\w+)+)\s+[A-Z]")
_POINTER = re.compile(
    r"\((?:see|cf\.?|compare)\b|\b[Ss]ee (?:also|section|chapter|the)\b|\b[Bb]elow\b|\babove\b|\bin the section\b"
)
_ENGLISH = re.compile(r"\b(?:the|of|and|in|to|a|for|is|are)\b")
# No list of verbs is complete: a word in -s or -ed before an object is one.
_VERB_LIKE = re.compile(
    r"\w(?:s|ed) (?:an?|the|its|their|this|that|no|any|each|every|all|his|her|to|not|only|it|them|\d)\b"
)
_DETERMINERS = frozenset(("the", "a", "an", "of", "in", "this", "its", "their", "with", "for", "each", "any", "no"))


def write_section(request: SectionRequest) -> Text:
    """Return a section of quotations that no earlier section has, grouped by source in reading order."""
    first = request.position == 0
    seen = DuplicateFilter()
    for section in [] if first else request.written:  # the first sums up, whenever it is written
        for quoted in CITED.split(section):
            for sentence in split_sentences(quoted):
                seen.add(sentence.clean)
    statements = [statement for statement in statements_of(request.notes) if _reads(statement.text)]
    least, most = ANSWER_SENTENCES
    scores = _scores(request, statements)
    different = len({statement.text for statement in statements})
    if different <= most and len({statement.sources for statement in statements}) == 1:
        # So little was found, in one place, that all of it belongs together.
        room = most
        scores = [score or LEAST_SCORE * max(scores, default=0.0) for score in scores]
    elif first:  # and something is left for the sections that follow
        room = min(most, max(least, different // 2))
    else:
        room = SECTION_SENTENCES
    chosen = _choose(statements, scores, set(topic_terms(request.query)), seen, room)
    return Text(text="\n\n".join(_paragraphs(chosen, ranked=first)) or NOTHING_NEW)


def _reads(text: str) -> bool:
    """Whether a quotation is a sentence; one without a verb, or with a signature for its subject, is not."""
    if _SIGNATURE.match(text) or text.startswith(("Below ", "Above ", "Further ")):
        return False
    words = re.findall(r"[\w'’]+", text.lower())
    verbs = (is_verb(word, before) and before not in _DETERMINERS for before, word in pairwise(words))
    whole = all(count_words(sentence.clean) >= LEAST_WORDS for sentence in split_sentences(text))
    return whole and (not _ENGLISH.search(text) or any(verbs) or bool(_VERB_LIKE.search(text)))


def _scores(request: SectionRequest, statements: Sequence[Statement]) -> list[float]:
    """Return how much each statement says about the question and the section; 0 for what is beside the point."""
    texts = [statement.text for statement in statements]
    first = request.position == 0
    questions = [(Relevance(asked, texts), asked, kind_of(asked)) for asked in questions_of(request.query)]
    own = None if first else Relevance(request.section.heading, texts)
    quoted = Counter(texts)
    scores: list[float] = []
    for text in texts:
        score = max(
            relevance.score(text) * (OF_KIND if first and has_kind(kind, text, asked) else 1.0)
            for relevance, asked, kind in questions
        )
        beside = max(relevance.share(text) for relevance, _, _ in questions) < ON_QUESTION
        if own:
            score = (1 - STEP_WEIGHT) * score + STEP_WEIGHT * own.score(text)
            beside = beside or own.share(text) < ON_SECTION
        score *= 1 + VOTE * min(MOST_VOTES, quoted[text] - 1)
        scores.append(0.0 if beside else score * (POINTING if _POINTER.search(text) else 1.0))
    near = _lent_by_neighbours(statements, scores)
    return _without_chance(statements, [score and score + lent for score, lent in zip(scores, near, strict=True)])


def _lent_by_neighbours(statements: Sequence[Statement], scores: Sequence[float]) -> list[float]:
    """Return what the statements before and after each one, in the same source, add to its score."""
    lent = [0.0] * len(scores)
    for i, j in pairwise(range(len(scores))):
        if statements[i].note == statements[j].note and statements[i].sources == statements[j].sources:
            lent[i] = max(lent[i], NEAR * scores[j])
            lent[j] = max(lent[j], NEAR * scores[i])
    return lent


def _without_chance(statements: Sequence[Statement], scores: Sequence[float]) -> list[float]:
    """Return the scores, with 0 for statements far below the best; a source's only statement must be better."""
    best = max(scores, default=0.0)
    enough = Counter(s.sources for s, score in zip(statements, scores, strict=True) if score >= LEAST_SCORE * best)
    return [
        score if score >= best * (LEAST_SCORE if enough[statement.sources] > 1 else LONE) else 0.0
        for statement, score in zip(statements, scores, strict=True)
    ]


def _choose(
    statements: Sequence[Statement], scores: Sequence[float], wanted: set[str], seen: DuplicateFilter, room: int
) -> list[Statement]:
    """Return the best statements, none of them said before, those first that say what the chosen ones do not."""
    held = [wanted & set(terms(statement.text)) for statement in statements]
    left = [i for i, score in enumerate(scores) if score > 0]
    said: Counter[str] = Counter()
    chosen: list[Statement] = []

    def gain(i: int) -> float:
        fresh = sum(SAID ** said[term] for term in sorted(held[i])) / (len(held[i]) or 1)
        return scores[i] * (fresh if held[i] else SAID ** len(chosen))

    while left and room > 0:
        best = max(left, key=lambda i: (gain(i), -i))
        left.remove(best)
        sentences = [sentence.clean for sentence in split_sentences(statements[best].text)]
        if len(sentences) > room:
            continue
        new = [seen.add(sentence) for sentence in sentences]
        if all(new):
            room -= len(sentences)
            said.update(held[best])
            chosen.append(statements[best])
    return chosen


def _paragraphs(chosen: Iterable[Statement], *, ranked: bool) -> list[str]:
    """Return paragraphs of a source each, the source of the best statement first, every sentence with its citation."""
    by_source: dict[tuple[str, ...], list[Statement]] = {}
    for statement in chosen:
        by_source.setdefault(statement.sources, []).append(statement)
    paragraphs: list[str] = []
    for sources, group in by_source.items():
        citation = " " + "".join(f"[{source}]" for source in sources)
        lines = [
            _closed(sentence.clean) + citation
            for statement in (group if ranked else sorted(group, key=_place))
            for sentence in split_sentences(statement.text)
        ]
        parts = -(-len(lines) // PARAGRAPH_SENTENCES)
        paragraphs += [" ".join(lines[len(lines) * i // parts : len(lines) * (i + 1) // parts]) for i in range(parts)]
    return paragraphs


def _place(statement: Statement) -> tuple[int, int]:
    return statement.note, statement.order


def _closed(sentence: str) -> str:
    return f"{sentence}." if sentence[-1].isalnum() else sentence
