"""Compressing without a model: the sentences of a tool's output that say most about the step, word for word."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.extractive.quotations import reads_alone, units
from fathom.extractive.wording import clip, families, topic_terms, with_related
from fathom.models import SourceText
from fathom.retrieval.question import Question, read_question
from fathom.retrieval.ranking import Passage
from fathom.retrieval.selection import Pick, Reader
from fathom.roles import CompressAnswer, CompressRequest
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, terms
from fathom.text.tokens import count_tokens

NOT_USEFUL = CompressAnswer(summary_title="", summary="", extraction=[], is_useful=False)

MESSAGE_TOKENS = 50  # of the note's JSON: field names, the title, the artifact's file
FILE_TOKENS = 15
CITATION_TOKENS = 8
NOTE_SHARE = 0.1  # of the tokens read, that a note takes of a long page
SHORT_TEXT = 250  # tokens; of a text no longer than this all sentences go together
LEAST_NOTE = 600  # tokens it may take of a short one
SUMMARY_SHARE = 0.25  # of the note's tokens; the bullets get the rest
SUMMARY_SENTENCES = (3, 6)
SHORT_SUMMARY = 90  # with less room for it than this the summary takes the shortest of the best sentences
TITLE_WORDS = (5, 12)
HELD = 2 / 5  # share of the step title's terms that one passage must hold for the output to be useful
MOST_HELD = 3  # terms that are enough however long the title is
STEP_WEIGHT, DESCRIPTION_WEIGHT, PLAN_WEIGHT = 1.0, 0.4, 0.4


def compress(request: CompressRequest) -> CompressAnswer:
    """Return a note of quotations, or one that is not useful if nothing answers the step."""
    texts = [Passage(text.text, f"{text.title} {text.location}") for text in request.texts]
    room = _room(request)
    reader = Reader(_question(request), texts, split=units)
    picks = reader.select(max(0, room - MESSAGE_TOKENS), usable=reads_alone, overhead=CITATION_TOKENS)
    picks = _telling(request, picks)
    if not _is_relevant(request, picks):
        return NOT_USEFUL
    answer = _answer(request, picks, room)
    while len(picks) > 1 and _tokens(answer) > room:
        picks = picks[:-1]
        answer = _answer(request, picks, room)
    return answer


def _telling(request: CompressRequest, picks: Sequence[Pick]) -> list[Pick]:
    """Drop sentences chosen only for their neighbours, unless the whole text is a few sentences."""
    answering = {pick.text for pick in picks if pick.held}
    short = {i for i in answering if count_tokens(request.texts[i].text) <= SHORT_TEXT}
    return [pick for pick in picks if pick.held or pick.text in short]


def _room(request: CompressRequest) -> int:
    """Return the tokens the note may take: a tenth of what was read, within limits."""
    read = sum(count_tokens(text.text) for text in request.texts)
    return min(request.max_note_tokens, max(LEAST_NOTE, int(NOTE_SHARE * read)))


def _answer(request: CompressRequest, picks: list[Pick], room: int) -> CompressAnswer:
    summary = _summary(picks, int((room - MESSAGE_TOKENS) * SUMMARY_SHARE))
    bullets = [pick for pick in _in_reading_order(picks) if pick not in summary]
    source = request.texts[picks[0].text]
    return CompressAnswer(
        summary_title=_title(request, source),
        summary=_at_least_three([_quoted(request, pick) for pick in summary], source),
        extraction=[_quoted(request, pick) for pick in bullets],
        is_useful=True,
    )


def _quoted(request: CompressRequest, pick: Pick) -> str:
    return f"{pick.sentence.clean} [{request.texts[pick.text].source_id}]"


def _tokens(answer: CompressAnswer) -> int:
    """Return what the note takes in the context, the name of its artifact file included."""
    return count_tokens(answer.model_dump_json()) + FILE_TOKENS


def _question(request: CompressRequest) -> Question:
    """Return what is asked: the step's title first of all, then its description and the plan's title."""
    weights: dict[str, float] = {}
    for text, weight in (
        (request.step_title, STEP_WEIGHT),
        (request.step_description, DESCRIPTION_WEIGHT),
        (request.plan_title, PLAN_WEIGHT),
    ):
        for term in topic_terms(text, frame=text == request.step_description):
            weights.setdefault(term, weight)
    return read_question(request.step_title)._replace(weights=with_related(weights))


def _is_relevant(request: CompressRequest, picks: Sequence[Pick]) -> bool:
    """Whether some chosen passage, with its title, holds enough of what the step asks.

    A related term counts as well: "decided" in a passage that tells of a decision.
    """
    wanted = set(topic_terms(request.step_title)) or set(topic_terms(request.step_description, frame=True))
    alike = families(wanted)
    enough = min(len(wanted), max(2, min(MOST_HELD, HELD * len(wanted))))
    for pick in picks:
        source = request.texts[pick.text]
        own = set(terms(pick.sentence.text))
        around = own | set(terms(f"{source.title} {source.location}"))
        if any(own & family for family in alike) and sum(bool(around & family) for family in alike) >= enough:
            return True
    return False


def _in_reading_order(picks: Sequence[Pick]) -> list[Pick]:
    return sorted(picks, key=lambda pick: (pick.text, pick.sentence.start))


def _summary(picks: Sequence[Pick], room: int) -> list[Pick]:
    """Return the best picks for the summary: three sentences at least, then as many as there is room for."""
    least, most = SUMMARY_SENTENCES
    chosen: list[Pick] = []
    sentences = 0
    if room < SHORT_SUMMARY:
        picks = sorted(picks[: 2 * least], key=lambda pick: count_tokens(pick.sentence.clean))
    for pick in picks:
        length = len(split_sentences(pick.sentence.clean))
        cost = count_tokens(pick.sentence.clean)
        if sentences + length > most or (sentences >= least and cost > room):
            continue
        chosen.append(pick)
        sentences += length
        room -= cost
    return _in_reading_order(chosen or picks[:1])


def _at_least_three(quotations: Sequence[str], source: SourceText) -> str:
    """Return the summary's text, filled up to three sentences by saying where it comes from."""
    text = " ".join(quotations)
    for addition in (
        f"The source is titled “{' '.join(source.title.split())}”.",
        "Nothing else in it concerns this step.",
    ):
        if len(split_sentences(text)) < SUMMARY_SENTENCES[0]:
            text = f"{text} {addition}"
    return text


def _title(request: CompressRequest, source: SourceText) -> str:
    """Return 5 to 12 words: what the best source is called, and what the step asked of it."""
    least, most = TITLE_WORDS
    name = clip(source.location or source.title, most - 4)
    title = clip(f"{name}: {request.step_title}", most) if name else clip(request.step_title, most)
    for more in (request.plan_title, request.step_description):
        if count_words(title) < least:
            title = clip(f"{title}, {more}", most)
    return title if count_words(title) >= least else clip(f"Findings on the step {title} from one source", most)
