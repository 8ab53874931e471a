"""Which passages to read for a question: BM25 with a title field, and the bridge from one passage to the next.

A question such as "Where was the director of X born?" is answered by a passage that shares hardly a word with it. It
is found by its title or a rare name, which occurs in a passage that answers a part of the question.

The weights of the text engine, one set for each shape of input. Ten short passages on different things, one long page
and a transcript need different readers: with passages the question is which of them to read at all, on a page where
on it to look, in a meeting who says anything of substance. The values come from coordinate search on public data;
what each one buys is in `docs/extractive.md`.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from fathom.retrieval.expansion import related_terms
from fathom.retrieval.ranking import TITLE_WEIGHT, B, Passage, Query, bm25_parts, inverse_document_frequency
from fathom.text.parsed import ParsedText
from fathom.text.sentences import Sentence
from fathom.text.terms import STOP_WORDS, Language, is_cjk, is_particle, query_terms, terms

SPAN_TERMS = 100  # after which a passage of a long text ends at the next paragraph; at twice as many it always ends
SEEDS = 5  # best passages from which a bridge may lead
PART_OF_NAME = 2.0  # factor for a title that the question has with its parenthesis, or of a single word
LONGEST_PHRASE = 12  # terms
MOST_ENTITIES = 50  # names followed from one passage
_PARENTHESIS = re.compile(r"\s*\([^)]*\)")
# A capitalised word inside a sentence, or two in a row anywhere.
_ENTITY = re.compile(
    r"(?<=[a-z,;(\"] )[A-Z][\w'’-]+(?: (?:of|de|van|von|the) [A-Z][\w'’-]+| [A-Z][\w'’-]+)*"
    r"|[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)+"
)
Phrase = tuple[str, ...]


class ReadSentence(NamedTuple):
    """A sentence with its terms."""

    sentence: Sentence
    terms: list[str]


class PassageSpan(NamedTuple):
    """A passage: a run of sentences of one text, as indices into all of them."""

    text: int
    first: int
    last: int  # exclusive
    length: int  # terms
    field: tuple[str, ...]  # terms of its title and heading


class AllRead:
    """The sentences of all texts, in one row."""

    def __init__(self, texts: Sequence[ParsedText]) -> None:
        self._texts = texts
        self.starts = list(itertools.accumulate(map(len, texts), initial=0))  # of each text, its first sentence

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, number: int) -> ReadSentence:
        text = bisect_right(self.starts, number) - 1
        own = number - self.starts[text]
        return ReadSentence(self._texts[text].sentence(own), self._texts[text].terms(own))

    @property
    def lengths(self) -> list[int]:
        """How many terms each sentence has."""
        return [text.length(range(i, i + 1)) for text in self._texts for i in range(len(text))]


class Spans(NamedTuple):
    """Passages with what is known of their sentences."""

    spans: list[PassageSpan]
    read: AllRead
    hits: Sequence[Mapping[str, int]]  # each sentence's counts of question terms
    titles: Sequence[str]  # of the texts
    language: Language


Links = dict[int, set[Phrase]]  # by passage: the titles of other relevant passages that occur in it


def spans_of(
    texts: Sequence[Passage], parsed: Sequence[ParsedText], weights: Weights, language: Language
) -> list[PassageSpan]:
    """Cut texts into passages at paragraphs and headings; with `weights.whole` every text is one."""
    spans: list[PassageSpan] = []
    first = 0
    for number, (text, read) in enumerate(zip(texts, parsed, strict=True)):
        title = tuple(terms(text.title, language))
        heading: tuple[str, ...] = ()
        start = 0
        for i, kind in enumerate(read.kinds) if not weights.whole else ():
            length = read.length(range(start, i))
            full = length >= SPAN_TERMS and (read.paragraphs[i] != read.paragraphs[i - 1] or kind == "heading")
            if i > start and (full or kind == "heading" or length >= 2 * SPAN_TERMS):
                spans.append(PassageSpan(number, first + start, first + i, length, title + heading))
                start = i
            if kind == "heading":
                heading = tuple(read.terms(i))
        if len(read):
            length = read.length(range(start, len(read)))
            spans.append(PassageSpan(number, first + start, first + len(read), length, title + heading))
        first += len(read)
    return spans


def rank_spans(question: ReadQuestion, passages: Spans, weights: Weights) -> tuple[list[float], Links]:
    """Return the passages' scores, the best one 1, and the links between them."""
    scores = _relevance(question, passages.spans, passages.hits)
    links: Links = {}
    if weights.whole:
        titles = [passages.titles[span.text] for span in passages.spans]
        full = [tuple(terms(title, passages.language)) for title in titles]
        names = [tuple(terms(_PARENTHESIS.sub("", title) or title, passages.language)) for title in titles]
        for i, share in _named(question, names, full).items():
            scores[i] += weights.named * share
        scores, links = _bridged(question, passages, weights, scores, names)
    best = max(scores, default=0.0) or 1.0
    return [round(score / best, 9) for score in scores], links


def _relevance(question: ReadQuestion, spans: Sequence[PassageSpan], hits: Sequence[Mapping[str, int]]) -> list[float]:
    """Return BM25 with the title as a field, raised by the share of the question that a passage covers; best 1."""
    weights = question.wanted
    counts = [Counter(term for term in span.field * TITLE_WEIGHT if term in weights) for span in spans]
    for span, count in zip(spans, counts, strict=True):
        for hit in filter(None, hits[span.first : span.last]):
            count.update(hit)
    idf = inverse_document_frequency(weights, counts)
    parts = bm25_parts(idf, counts, [span.length for span in spans])
    total = sum(idf[term] for term in question.weights) or 1.0
    scores = [sum(part.values()) * (1 + sum(idf[term] for term in part) / total) for part in parts]
    best = max(scores, default=0.0) or 1.0
    return [score / best for score in scores]


def _named(question: ReadQuestion, names: Sequence[Phrase], full: Sequence[Phrase]) -> dict[int, float]:
    """Return the passages whose titles occur in the question; a title inside a longer one does not count."""
    found = _finder((*names, *full))(question.sequence)
    asked = {phrase for phrase in found if any(term in question.weights for term in phrase)}
    inner = {name for other in asked for name in _finder(asked - {other})(other)}
    meant = asked - inner
    return {
        i: PART_OF_NAME if len(name) == 1 or (whole in meant and whole != name) else 1.0
        for i, (name, whole) in enumerate(zip(names, full, strict=True))
        if whole in meant or name in meant
    }


def _bridged(
    question: ReadQuestion, passages: Spans, weights: Weights, scores: Sequence[float], names: Sequence[Phrase]
) -> tuple[list[float], Links]:
    """Return the scores with what passages gain by being mentioned in the best ones, and the links."""
    seeds = sorted(range(len(names)), key=lambda i: (-scores[i], i))[:SEEDS]
    entities = {i: _entities(question, passages, i) for i in seeds}
    titles = {name for name in names if any(len(term) > 2 for term in name)}
    holding, holders = _mentions(passages, titles.union(*entities.values()))
    bearers: defaultdict[Phrase, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        bearers[name].append(i)
    gained = [0.0] * len(names)
    links: Links = {}
    for i in seeds:
        for name in (holding[i] & titles) - {names[i]}:
            links.setdefault(i, set()).add(name)
            for k in bearers[name]:
                gained[k] = max(gained[k], weights.bridge * scores[i])
        for k in holders.get(names[i], ()) if names[i] in titles else ():
            if names[k] != names[i]:
                links.setdefault(k, set()).add(names[i])
        for k, share in _shared(i, entities[i], holders, len(names)).items():
            gained[k] = max(gained[k], weights.entity * scores[i] * share)
    return [score + gain for score, gain in zip(scores, gained, strict=True)], links


def _mentions(passages: Spans, phrases: set[Phrase]) -> tuple[list[set[Phrase]], dict[Phrase, list[int]]]:
    find = _finder(phrases)
    holding: list[set[Phrase]] = []
    holders: dict[Phrase, list[int]] = {}
    for i, span in enumerate(passages.spans):
        held = set[Phrase]().union(*(find(passages.read[k].terms) for k in range(span.first, span.last)))
        holding.append(held)
        for phrase in held:
            holders.setdefault(phrase, []).append(i)
    return holding, holders


def _shared(seed: int, entities: Sequence[Phrase], holders: Mapping[Phrase, list[int]], spans: int) -> dict[int, float]:
    """Return how strongly other passages share a passage's rare names, from 0 to 1."""
    strength: defaultdict[int, float] = defaultdict(float)
    for phrase in entities:
        held = holders.get(phrase, [])
        if len(held) <= max(2, spans // 5):
            for k in held:
                strength[k] += min(len(phrase), 2) / 2
    return {k: 1 - 0.5**value for k, value in strength.items() if k != seed}


def _entities(question: ReadQuestion, passages: Spans, number: int) -> list[Phrase]:
    """Return the names in a passage that the question does not hold already, each once."""
    span = passages.spans[number]
    found: dict[Phrase, None] = {}
    for k in range(span.first, span.last):
        for match in _ENTITY.finditer(passages.read[k].sentence.text):
            phrase = tuple(terms(match[0], passages.language))
            if phrase and match[0].lower() not in STOP_WORDS and not all(t in question.weights for t in phrase):
                found[phrase] = None
        if len(found) >= MOST_ENTITIES:
            break
    return list(found)[:MOST_ENTITIES]


def _finder(phrases: Iterable[Phrase]) -> Callable[[Sequence[str]], set[Phrase]]:
    """Return a function that finds phrases in a sequence of terms, all of them in one pass."""
    known = {phrase for phrase in phrases if 0 < len(phrase) <= LONGEST_PHRASE}
    lengths: dict[str, set[int]] = {}  # by first term
    for phrase in known:
        lengths.setdefault(phrase[0], set()).add(len(phrase))

    def find(sequence: Sequence[str]) -> set[Phrase]:
        starts = [(i, n) for i, term in enumerate(sequence) for n in lengths.get(term, ())]
        return {phrase for i, n in starts if (phrase := tuple(sequence[i : i + n])) in known}

    return find


SHORT_CHARS = 2_500  # texts shorter than this on average are read as passages
FEW = 3  # texts at least, to be read as passages
TURNS = 0.6  # share of lines that open with a speaker's name
TURN_LINES = 10
SAMPLE_LINES = 400
_TURN = re.compile(r"[A-Z][\w .'’-]{0,30}: ")


class Weights(NamedTuple):
    """How much each sign of relevance counts. A sentence's own score, at most 1, is the unit."""

    own: float  # the terms the sentence itself holds
    passage: float  # its passage
    kind: float = 0.0  # a date where "when" is asked, a name where "who" is
    window: tuple[float, float] = (0.0, 0.0)  # the sentences one and two places away
    lead: float = 0.0  # the beginning of a passage
    first: float = 0.0  # its very first sentence
    early: float = 0.0  # the beginning of a page: abstracts and preambles say what it is about
    link: float = 0.0  # a sentence that names another relevant passage
    density: float = 0.0  # how many words of substance it has
    decay: float = 1.0  # of a term's worth with each chosen sentence that holds it
    passage_decay: float = 1.0  # of a passage's worth with each sentence chosen from it
    brevity: float = B  # the `b` of BM25 for sentences: how far one without other words is better
    length: float = 0.0  # exponent: how far long sentences must be better
    named: float = 0.0  # passages: its title occurs in the question
    bridge: float = 0.0  # passages: its title occurs in a relevant passage
    entity: float = 0.0  # passages: it shares a rare name with a relevant one
    whole: bool = False  # passages are whole texts, not parts of them


PASSAGES = Weights(
    own=0.6,
    passage=2.0,
    kind=0.4,
    lead=0.3,
    first=0.3,
    link=0.8,
    decay=0.4,
    passage_decay=0.6,
    length=0.25,
    named=1.0,
    bridge=0.8,
    entity=0.7,
    whole=True,
)
PAGES = Weights(own=1.3, passage=0.65, kind=0.25, window=(0.1, 0.25), early=0.6, brevity=0.3)
TALK = Weights(own=1.6, passage=0.3, window=(0.0, 0.15), density=5.0, decay=0.85)


def weights_for(texts: Sequence[str]) -> Weights:
    """Return the weights for the shape of some texts."""
    if len(texts) >= FEW and sum(map(len, texts)) <= SHORT_CHARS * len(texts):
        return PASSAGES
    lines = [line for text in texts for line in text[:100_000].split("\n", SAMPLE_LINES)[:SAMPLE_LINES] if line.strip()]
    turns = sum(bool(_TURN.match(line)) for line in lines)
    return TALK if len(lines) >= TURN_LINES and turns >= TURNS * len(lines) else PAGES


RELATED = 0.5  # weight of a term that texts use in place of the question's
CHARACTER = 0.3  # weight of a character of CJK writing: words that share one are often related
QUOTED = 2.0  # weight of a term that the question puts in quotation marks

_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
_DATE = re.compile(rf"\b(?:1\d{{3}}|20\d\d)\b|\b(?:{_MONTHS})\b|[年月]|\bcentur|\bJahrhundert")
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千万]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|"
    r"million|billion|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|hundert|tausend)\b",
    re.IGNORECASE,
)
# Two capitalised words in a row, not counting a sentence's own first capital.
_NAME = re.compile(
    r"(?<=[a-z,;)] )[\"“(]?[A-Z][\w'’.-]+ (?:(?:of|de|van|von|der|the|al|bin) )?[A-Z][\w'’-]+"
    r"|^[A-Z][\w'’.-]+ [A-Z][a-z]"
)
_PLACE = re.compile(r"\b(?:in|at|near|of|from|to|In|At|aus|bei|nach) (?:the )?[A-Z]\w+|[省市县国州区]")
# By what the question says; what was first or is older is settled by dates. The first that matches counts.
_KINDS = (
    (
        re.compile(
            r"\b(?:older|younger|earlier|later|first|longer|more recent|most recent|when|(?:what|which) "
            r"(?:year|date|century|decade|day|month)|date of|wann|welchem jahr)\b|什么时候|哪一?年|何时"
        ),
        _DATE,
    ),
    (
        re.compile(
            r"\bhow (?:many|much|long|old|large|big|far|tall|high|often|fast)\b|\bwhat (?:percent|number|percentage|"
            r"proportion|age|size|amount|is the population)|\bwie ?(?:viele?|lange?|hoch|groß|alt|weit)\b|多少|多大|几"
        ),
        _NUMBER,
    ),
    (re.compile(r"\b(?:who|whom|whose|wer|wem|wen|wessen)\b|谁"), _NAME),
    (
        re.compile(
            r"\b(?:where|(?:what|which) (?:city|country|state|county|place|town|region|continent|province)|place of|"
            r"wo|woher|wohin)\b|哪里|何处|哪个[国城]"
        ),
        _PLACE,
    ),
)
_QUOTED = re.compile(r"[\"“„«]([^\"”“»]{2,200})[\"”“»]")


class ReadQuestion(NamedTuple):
    """A question as the engine sees it."""

    weights: Mapping[str, float]  # the terms asked for
    related: Mapping[str, float] = {}  # terms that texts may use in their place
    sequence: tuple[str, ...] = ()  # all terms in order: in it, titles are found
    kind: re.Pattern[str] | None = None  # what a sentence with the answer looks like

    @property
    def wanted(self) -> dict[str, float]:
        """All terms with their weights."""
        return {**self.related, **self.weights}


def read_question(query: Query, language: Language = "english") -> ReadQuestion:
    """Return a question's parts; weighted terms are taken as they are."""
    if not isinstance(query, str):
        return ReadQuestion(dict(query))
    weights = dict.fromkeys(query_terms(query, language), 1.0)
    for quoted in _QUOTED.findall(query):
        weights |= {term: QUOTED for term in query_terms(quoted, language) if term in weights}
    related: dict[str, float] = {}
    for term, weight in weights.items():
        related |= {other: RELATED * weight for other in related_terms(term) if other not in weights}
        if is_cjk(term):
            related |= {character: CHARACTER for character in term if not is_particle(character)}
    kind = next((held for asked, held in _KINDS if asked.search(query.lower())), None)
    return ReadQuestion(weights, related, tuple(terms(query, language)), kind)
