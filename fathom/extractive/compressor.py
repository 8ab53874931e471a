"""Compressing without a model: the excerpts of a tool's output that answer the step best, word for word."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.extractive.questions import ANY_OF, clip, is_question, topic_terms, verbs_of
from fathom.extractive.tables import from_tables
from fathom.models import SourceText
from fathom.retrieval.asked import LIGHT_TERMS, QuestionTerms, preferences, read_asked
from fathom.retrieval.ranking import titled
from fathom.retrieval.relevance import Chosen, RankedExcerpts
from fathom.roles import CompressAnswer, CompressRequest
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, terms
from fathom.text.tokens import count_tokens

NOT_USEFUL = CompressAnswer(summary_title="", summary="", extraction=[], is_useful=False)

MESSAGE_TOKENS = 50  # of the note's JSON: field names, the title, the artifact's file
FILE_TOKENS = 15
CITATION_TOKENS = 8
NOTE_SHARE = 0.1  # of the tokens read, that a note takes of a long page
LEAST_NOTE = 600  # tokens it may take of a short one
MOST_PAGES = 3  # times what the request wants of a page, that a note may take at most
SUMMARY_SHARE = 0.25  # of the note's tokens; the bullets get the rest
SUMMARY_SENTENCES = (3, 6)
TITLE_WORDS = (5, 12)
LEAST_WORDS = 1.0  # by worth, of a step that asks for several things, that its best excerpt must hold
UNMET = 0.62  # share of a question from which the output is off the topic, if none of its lines has a word of that
UNMET_NAME = 0.5  # the same where a number, a code or a name of the question is in none of its lines
BESIDE = 0.4  # weight of what the step's description and the plan's title ask
LEAST_SCORE = 0.15  # of the best excerpt's; what says less stays out


def compress(request: CompressRequest) -> CompressAnswer:
    """Return a note of quotations, or one that is not useful if nothing answers the step."""
    asked = _asked(request)
    evidence = RankedExcerpts([titled(text) for text in request.texts])
    dates = [text.published if text.kind == "document" else "" for text in request.texts]
    preferred = preferences(request.step_title, dates)
    weighed = [each._replace(score=each.score * preferred[each.text]) for each in evidence.rank(asked)]
    found = sorted(weighed, key=lambda each: -each.score)
    if not _is_on_step(max((each.share for each in found), default=0.0), asked, request, evidence):
        return _table(request)
    telling = [each for each in found if each.score >= LEAST_SCORE * found[0].score]
    room = _room(request)
    chosen = evidence.choose(telling, asked, max(0, room - MESSAGE_TOKENS), overhead=CITATION_TOKENS)
    answer = _answer(request, chosen, room)
    while len(chosen) > 1 and _tokens(answer) > room:
        chosen = chosen[:-1]
        answer = _answer(request, chosen, room)
    return answer if chosen else NOT_USEFUL


def _table(request: CompressRequest) -> CompressAnswer:
    """Return a note of the table from which the step's question can be computed; one that is not useful without it."""
    texts = request.texts
    found = from_tables(request.step_title, [text.title for text in texts], [text.text for text in texts])
    if not found:
        return NOT_USEFUL
    number, computed = found
    return _answer(request, [Chosen(number, "table", computed.markdown, computed.share)], _room(request))


def _is_on_step(share: float, asked: QuestionTerms, request: CompressRequest, evidence: RankedExcerpts) -> bool:
    """Whether an excerpt with this share of what the step asks is worth a note."""
    if request.step_description.startswith(ANY_OF):
        return share * sum(asked.weights.values()) >= LEAST_WORDS
    return share >= asked.least_share and not _is_off_topic(request, evidence)


def _is_off_topic(request: CompressRequest, evidence: RankedExcerpts) -> bool:
    """Whether the texts lack most of what is asked; titles that are no questions have words that no text repeats."""
    questions = [title for title in (request.step_title, request.plan_title) if is_question(title)]
    if not questions:
        return False
    topic = [term for term in topic_terms(questions[0]) if term not in LIGHT_TERMS]
    verbs = dict.fromkeys(terms(" ".join(verbs_of(questions[0]))), BESIDE)
    asked = read_asked(questions[0], [term for term in topic if term not in verbs] or topic, verbs)
    unmet = evidence.unmet(asked)
    named = any(not name.isdisjoint(unmet) for name in asked.names)
    named = named or any(character.isdigit() for term in unmet for character in term)
    return sum(unmet.values()) >= (UNMET_NAME if named else UNMET)


def _asked(request: CompressRequest) -> QuestionTerms:
    """Return what is asked: the step's title first of all, then its description and the plan's title."""
    beside = [*topic_terms(request.step_description, frame=True), *topic_terms(request.plan_title)]
    return read_asked(request.step_title, topic_terms(request.step_title), dict.fromkeys(beside, BESIDE))


def _room(request: CompressRequest) -> int:
    """Return the tokens the note may take: a tenth of what was read, within limits."""
    read = sum(count_tokens(text.text) for text in request.texts)
    return min(MOST_PAGES * request.page_tokens, max(LEAST_NOTE, int(NOTE_SHARE * read)))


def _answer(request: CompressRequest, chosen: Sequence[Chosen], room: int) -> CompressAnswer:
    if not chosen:
        return NOT_USEFUL
    summary = _summary(chosen, int((room - MESSAGE_TOKENS) * SUMMARY_SHARE))
    source = request.texts[chosen[0].text]
    return CompressAnswer(
        summary_title=_title(request, source),
        summary=_at_least_three([_quoted(request, each) for each in summary], source),
        extraction=[_quoted(request, each) for each in chosen if each not in summary],
        is_useful=True,
    )


def _quoted(request: CompressRequest, chosen: Chosen) -> str:
    return f"{chosen.markdown} [{request.texts[chosen.text].source_id}]"


def _tokens(answer: CompressAnswer) -> int:
    """Return what the note takes in the context, the name of its artifact file included."""
    return count_tokens(answer.model_dump_json()) + FILE_TOKENS


def _summary(chosen: Sequence[Chosen], room: int) -> list[Chosen]:
    """Return the best quotations that are prose: three sentences at least, then what there is room for."""
    least, most = SUMMARY_SENTENCES
    summary: list[Chosen] = []
    sentences = 0
    for each in chosen:
        if each.kind != "prose" or "\n" in each.markdown:
            continue
        length = len(split_sentences(each.markdown))
        cost = count_tokens(each.markdown)
        if sentences + length > most or (sentences >= least and cost > room):
            continue
        summary.append(each)
        sentences += length
        room -= cost
    return summary


def _at_least_three(quotations: Sequence[str], source: SourceText) -> str:
    """Return the summary's text, filled up to three sentences by saying where it comes from."""
    text = " ".join(quotations)
    for addition in (
        f"The source is titled “{' '.join(source.title.split())}”.",
        "Its rows, lists and code are quoted below." if not quotations else "Nothing else in it concerns this step.",
        "They are quoted as they are.",
    ):
        if len(split_sentences(text)) < SUMMARY_SENTENCES[0]:
            text = f"{text} {addition}".strip()
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
