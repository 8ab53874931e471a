"""Questions in two hops: what is asked of something that a clause describes, and the name that the sources give it.

"Who runs the company that built the bridge?" is answered in two places. The first search finds which company; then the
question is asked again with its name. By form, in English and German; never by meaning.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fathom.evidence.computed import is_named
from fathom.extractive.asked_rows import words_of_superlative
from fathom.extractive.comparisons import MOST_CHARS
from fathom.extractive.computing import cells_by_column, stated_of
from fathom.extractive.questions import families, key_terms, strip_lead
from fathom.extractive.statements import ANSWERED, Quotations
from fathom.extractive.tables import FromRecords, from_records, from_tables
from fathom.facts.dates import MONTHS, WEEKDAYS
from fathom.models import Answered
from fathom.retrieval.relevance import Found
from fathom.text.terms import STOP_WORDS, terms

NAMED = "{}"  # where the name belongs in the outer question
CONSIDERED = 12  # excerpts in which the name may stand
LEAST_SHARE = 0.4  # of the description's terms, by worth, that the best of them must hold
NEAR_BEST = 0.6  # of the best one's score
MOST_WORDS = 3  # of a title in small letters that is a name
AROUND = 8  # words between the description's and the name
LINE = 3  # words, that the end of a line between them is worth
_NOUN = r"(?P<noun>(?:[\w-]+\s+){0,2}?[\w-]+)"
_CLAUSE = (
    r"(?P<clause>(?:that|which|who|whose|where|in which|on which|at which|"
    r"(?:named|described|designed|built|founded|made|written|owned|run|led|discovered|known|planned|painted|invented)"
    r"\s+(?:by|after|for|in))\b.+)"
)
_GERMAN = r"(?P<clause>(?:der|die|das|dem|den|dessen|deren|in dem|in der|wo)\s+.+)"
_ARTICLE = r"\b(?:the|some|an?)\s+"
_BACK = (
    r"\b(?:(?<!\bwere )(?<!\bwas )(?<!\bare )(?<!\bis )there|it|they|he|she|that one|this one|"
    r"(?:that|this|the)\s+(?:company|firm|maker|manufacturer|town|city|place|person|ship|bridge|team|author|project|product|model)|dort|sie|er|es)\b"
)
_WHO = r"(?:who|when|where|what|which|how|since when|in which|wer|wann|wo|was|wie|seit wann)"
_ROLE = (
    r"(?:owner|maintainer|instructor|teacher|head|chief|leader|boss|chair(?:man|woman)?|president|captain|manager|director|"
    r"author|inventor|founder|designer|architect|builder|maker|manufacturer|publisher|editor|supplier|provider|winner|coach|"
    r"treasurer|secretary|person)"
)
_FORMS = [
    # "Which company makes it, and how many people work there?"
    rf"^(?P<inner>(?:which|who|what|welche\w*|wer)\b[^?]+?),?\s+(?:and|und)\s+(?P<outer>{_WHO}\b[^?]*?{_BACK}.*)$",
    # "the firm that built it: who runs it?", "Mira designed some bridge, when did that one open"
    rf"^(?P<inner>(?!(?:{_WHO}|if|when|in|at|on|i'd|i|my|we)\b)(?=.*\b(?:some|an?|the|eine?n?)\b)[^,:;?]+?)\s*[,:;]\s+(?P<outer>{_WHO}\b.*?{_BACK}.*)$",
    # "In which year was the company founded that builds turbines?"
    r"^(?P<before>.+?)\s+the\s+(?P<noun>[\w-]+)\s+(?P<verb>[\w-]+ed|built|made|sold)\s+(?P<clause>(?:that|which|who)\s.+)$",
    # "When did the owner of the leave policy join?"
    rf"^(?P<before>.+?)\s+the\s+(?P<noun>{_ROLE})\s+(?P<clause>(?:of|for)\s+.+?)(?P<behind>(?:\s+(?:sit|work|live|join|start|"
    r"come from|earn|have|speak)(?:\s+(?:the|our|their)\s+\w+)?)?)$",
    # "Who runs the company that built the bridge?"
    rf"^(?P<before>.+?)\s*{_ARTICLE}{_NOUN}\s+{_CLAUSE}$",
    rf"^(?P<before>.+?)\s+(?:der|die|das|dem|den|des)\s+{_NOUN},\s+{_GERMAN}$",
]
_PATTERNS = [re.compile(form, re.IGNORECASE) for form in _FORMS]
_NAME = re.compile(r"[A-ZÄÖÜ][\w'’&-]*(?:[ \t]+(?:of\s+(?=[A-Z]))?(?:[A-ZÄÖÜ][\w'’&-]*|(?!(?:19|20)\d\d\b)\d[\w.]*))*")
_PUBLISHER = re.compile(r"\s[-–—|]\s")  # what stands behind it in a title is whose page it is
_SEGMENT = re.compile(r"[:?!]\s")
_NO_NAMES = STOP_WORDS | MONTHS.keys() | WEEKDAYS
_FIELD = re.compile(r"(?:[-*+]\s+)?(?P<label>[^\W\d][\w -]{1,30}):\s+(?P<value>[^:.;]{2,60})\s*\Z")
_CLAUSE_OF = re.compile(r"\A.*?\b(?=(?:that|which|who)\b)")
_POSSESSIVE = re.compile(r"['’]s?\Z")


_NO_NOUN = "is are was were be been has have had do does did can will and or und oder"
_NO_NOUNS = frozenset(_NO_NOUN.split())


class Hop(NamedTuple):
    """A question about something that is only described: what describes it, and what is asked of it."""

    inner: str
    outer: str  # with `NAMED` where its name belongs

    def of(self, name: str) -> str:
        """Return what is asked, with the name of what it is asked of."""
        return f"{self.outer.replace(NAMED, name)}?"


def _named(back: re.Match[str]) -> str:
    return f"at {NAMED}" if back[0].lower() == "there" else NAMED


def hop_of(question: str) -> Hop | None:
    """Return the two hops of a question; None if it has one."""
    if len(question) > MOST_CHARS:
        return None
    text = " ".join(strip_lead(question).rstrip("?. ").split())
    for pattern in _PATTERNS:
        if found := pattern.match(text):
            parts = found.groupdict()
            if parts.get("inner"):
                outer = re.sub(_BACK, _named, parts["outer"], count=1, flags=re.IGNORECASE)
                hop = Hop(parts["inner"], outer)
            else:
                behind = f" {parts['verb']}" if parts.get("verb") else parts.get("behind") or ""
                hop = Hop(f"{parts['noun']} {parts['clause']}", f"{parts['before']} {NAMED}{behind}")
            noun = (parts.get("noun") or "").lower().split()
            if not _NO_NOUNS.isdisjoint(noun):
                continue
            if len(key_terms(hop.inner)) > 1 and key_terms(hop.outer.replace(NAMED, "")):
                return hop
    return None


def name_of(hop: Hop, quotations: Quotations) -> str:
    """Return the name of what a hop describes, as the sources give it; empty if they do not.

    Of what is the greatest of a kind, the row of a table. Else a name in the sentence that has the description, the
    nearest to its words, or what the source's title names.
    """
    if computed := from_tables(hop.inner, *quotations.joined()):
        return computed[1].name
    for described_by in (_CLAUSE_OF.sub("", hop.inner), hop.inner):
        made = from_records(described_by, *quotations.texts())
        if name := made and (
            _described_field(made, quotations, hop) or (made.name if described_by == hop.inner else "")
        ):
            return name
    if words_of_superlative(hop.inner):
        return ""
    found = quotations.rank(hop.inner)
    best = [each for each in found[:CONSIDERED] if each.score >= NEAR_BEST * found[0].score]
    if not best or best[0].share < LEAST_SHARE:
        return ""
    known, described = set(terms(f"{hop.inner} {hop.outer}")), set(key_terms(hop.inner))
    telling = (each for each in found[:CONSIDERED] if each.share >= LEAST_SHARE)
    if named := next(
        (name for each in telling for name in _in_fields(quotations.sentences(each), known, described)), ""
    ):
        return named
    voices: defaultdict[str, float] = defaultdict(float)
    for each in best:
        for name in _names(each, quotations, known, described):
            voices[name] += each.score
    return max(voices, key=lambda name: voices[name], default="")


def _described_field(made: FromRecords, quotations: Quotations, hop: Hop) -> str:
    """Return the name in the field that a hop describes, the builder of the oldest ship, on the page of that ship."""
    known, described = set(terms(f"{hop.inner} {hop.outer}")), set(key_terms(hop.inner))
    place = next((each for each in made.places if each.name == made.name), None)
    return next(_in_fields(quotations.whole(place.text).split("\n"), known, described), "") if place else ""


def answers_both(hop: Hop, quotations: Quotations, question: str) -> bool:
    """Whether one excerpt answers a question as it is: it also has a word of what is asked of the described thing."""
    found = quotations.rank(question)
    if quotations.answered_by(found, question) is not Answered.yes:
        return False
    said = set(terms(quotations.says(found[0])))
    return any(said & family for family in families(key_terms(hop.outer.replace(NAMED, ""))))


class SecondHop(NamedTuple):
    """A question in two hops of which the first is made: the name, and the excerpts on it that answer the second."""

    inner: str
    asked: str  # of what has the name
    found: Sequence[Found]
    answered: Answered


def second_hop(quotations: Quotations, question: str) -> SecondHop | None:
    """Return the second hop of a question; None if it has none, or is answered as it is.

    Nor does it count if nothing answers it: then the name may be wrong.
    """
    hop = hop_of(question)
    if not hop or answers_both(hop, quotations, question):
        return None
    name = name_of(hop, quotations)
    asked = " ".join(hop.outer.replace(NAMED, "").split())
    if name and (stated := stated_of(quotations, name, asked)):
        sure = quotations.share(hop.inner) >= ANSWERED
        return SecondHop(hop.inner, asked, stated, Answered.yes if sure else Answered.maybe)
    tried: list[SecondHop] = []
    for wording in (asked, hop.of(name)) if name else ():
        found = [each for each in quotations.rank(wording) if _is_on(name, each, quotations)]
        tried.append(SecondHop(hop.inner, wording, found, quotations.answered_by(found, wording)))
    best = [each for each in tried if each.answered is Answered.yes]
    maybe = [each for each in reversed(tried) if each.answered is not Answered.no]
    return next(iter([*best, *maybe]), None)


def _is_on(name: str, found: Found, quotations: Quotations) -> bool:
    """Whether an excerpt is about a thing: its heading or its source's title names it, or its only paragraph does."""
    if any(is_named(name, text) for text in quotations.above(found)):
        return True
    first, *others = quotations.says(found).split("\n\n")
    return is_named(name, first) if not others or first.startswith("#") else False


def _names(found: Found, quotations: Quotations, known: set[str], described: set[str]) -> Iterator[str]:
    """Yield the name that the sentence of an excerpt with most of a description gives, or its source's title."""
    if found.excerpt.kind == "table":
        if len(found.excerpt.units) == 1:
            cells = list(cells_by_column(quotations.markdown(found, " ".join(described))))
            asked = [cell for column, cell in cells[1:] if described & set(terms(column)) and set(terms(cell)) - known]
            first = quotations.says(found).strip("| \n").split("|")[0].strip()
            yield from asked[:1] or ([first] if set(terms(first)) - known else [])
        return
    sentences = quotations.sentences(found)
    text = max(sentences, key=lambda each: len(described & set(terms(each))), default="")
    near = [(distance, name) for name, distance in _distances(text, known, described) if distance <= AROUND]
    if near:
        yield min(near)[1]
    elif subject := subject_of_title(quotations.titles[found.text], known):
        yield subject


def _in_fields(lines: Iterable[str], known: set[str], described: set[str]) -> Iterator[str]:
    """Yield names that the question does not have from the fields that it describes, as "Builder: Holt Yard"."""
    for line in lines:
        field = _FIELD.match(line.strip())
        label = {term for family in families(terms(field["label"])) for term in family} if field else set[str]()
        if field and label & described and _NAME.match(field["value"]) and not set(terms(field["value"])) <= known:
            yield field["value"]


def _distances(text: str, known: set[str], described: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the names of a sentence that the question does not have, with their distance from the described words."""
    places = [found.start() for found in re.finditer(r"[\w'’-]+", text) if set(terms(found[0])) & described]
    for found in _NAME.finditer(text):
        name, _, place = _POSSESSIVE.sub("", found[0]).partition(" of ")
        if place and " " not in name:  # "University of Norwell", but "Harlow Metalworks" of Norwell
            name = f"{name} of {place}"
        opening = not text[: found.start()].strip("\"'“‘(*|- ") and len(name.split()) == 1
        if opening or name.lower() in _NO_NAMES or not set(terms(name)) - known:
            continue
        between = (text[min(found.end(), place) : max(found.start(), place)] for place in places)
        yield name, min((len(part.split()) + LINE * part.count("\n") for part in between), default=AROUND + 1)


def subject_of_title(title: str, known: set[str]) -> str:
    """Return what a title names: its longest name that a question does not have, or all of a short title."""
    first, *others = _SEGMENT.split(_PUBLISHER.split(title)[0])
    words = first.split()
    said = [
        word for n, word in enumerate(words) if word.lower() not in map(str.lower, words[:n])
    ]  # no words of its path
    if not others and len(said) <= MOST_WORDS and set(terms(first)) - known:
        return " ".join(said)
    names = [found[0] for part in (first, *others) for found in _NAME.finditer(part)]
    several = (name for name in names if len(name.split()) > 1 and set(terms(name)) - known)
    return max(several, key=lambda name: len(name.split()), default="")
