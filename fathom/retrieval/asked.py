"""What a question asks for: its terms with what texts say in their place, the kind of answer, and the time."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from fathom.facts.dates import MONTHS, Date, asked_dates, of_iso
from fathom.facts.periods import days_in
from fathom.facts.ranges import amounts_of, as_term, cases_of
from fathom.retrieval.expansion import quantities_of, related_terms, said_otherwise, stand_ins_of
from fathom.retrieval.kinds import AnswerKind, kind_of
from fathom.retrieval.synonyms import SAME, same_terms
from fathom.text.languages import language_of_question
from fathom.text.terms import STOP_WORDS, query_terms, terms

RELATED = 0.4  # weight of a term that texts use in place of the question's
MEASURED = 0.6  # weight of a quantity that stands for a term
LEAST_SHARE, MANY, LEAST_OF_MANY = 0.33, 4, 0.16  # of a question's terms; of so many; see docs/extractive.md
LESSER = 0.4  # weight of the "often" of "how often", "difference", "become", and of where to look, as "in Python"
DEFINITION = 1.2  # factor for "Tuples are ..." where tuples are asked for
DEFINED_ONLY = 2.0  # the same where nothing else is asked: "What is a tuple?", or what tells two things apart

_UNSET = re.compile(
    r"\b(?:unless|if|when|where|without) (?:\w+ ){0,3}?(?:nothing|nobody|no one|otherwise|not|configur\w+|specif\w+|"
    r"setting)\b|\bout of the box\b|\bby itself\b",
    re.IGNORECASE,
)
_PRONOUNS = "anybody anyone anything everybody everyone everything nobody nothing somebody someone something"
_INDEFINITE = frozenset(terms(_PRONOUNS))
_ASKING = re.compile(
    r"\b(?:how (?:often|long|many|much|far|old|large|big|tall|fast|quickly|soon|early|late|deep|wide|high|heavy|"
    r"expensive)|"
    r"wie (?:oft|lange|weit|alt|groß|hoch|schnell|früh|spät|tief|breit|schwer|teuer)(?: dauert?n?\b)?|wie ?viele?|"
    r"(?:take|takes|took) place|sorts? of)\b",
    re.IGNORECASE,
)
_ASKS_ELSE = re.compile(r"(?:why|when|where|how|who|which)\b", re.IGNORECASE)
# "How do I get my costs paid back?" and "Why is it so slow?" ask for no quantity; key words alone may.
_ASKS = re.compile(r"\b(?:how|what|which|who|whose|whom|when|where|why)\b|\?\s*\Z", re.IGNORECASE)
_ASKS_QUANTITY = re.compile(
    r"\b(?:how (?!do\b|does\b|did\b|can\b|could\b|should\b|would\b|to\b|is\b|are\b|come\b)\w+|what|which)\b",
    re.IGNORECASE,
)
_ASKS_DEFINITION = re.compile(
    r"\s*what (?:is|are) (?:an? |the )?[\w-]+(?: [\w-]+)?(?: in [\w-]+)?\s*\??\s*\Z", re.IGNORECASE
)
REFERRING = "it|its|they|them|their|he|him|his|she|her|this|these|those"
_REFERS = re.compile(rf"\b(?:{REFERRING}|that|ones?|same|then)\b|\bthe \w+\W*\Z|\bthere\W*\Z", re.IGNORECASE)
_IS_WORD = re.compile(r"[a-zà-þ]+(?:-[a-zà-þ]+)*")
_CAPITALIZED = re.compile(r"\b[^\W\d_a-zß-ÿ][\w'’-]+")
_RELATION = re.compile(r"\b(?:differ\w*|compar\w+|contrast\w*|versus|vs)\b", re.IGNORECASE)
_RELATION_TERMS = frozenset(query_terms("differ difference compare comparison contrast versus relation interaction"))
_GRADED = "cheap|old|young|long|short|larg|bigg|small|high|low|heavi|light|fast|slow|loud|quiet|earli|great|wid|deep"
_COMPARES = re.compile(rf"\b(?:most|least|more|fewer|fewest|versus|vs|later|(?:{_GRADED})(?:er|est))\b", re.IGNORECASE)
_LIGHT = """
become choose get give happen have make take come came go went got kind type good well inside outside within behind
across around actual actually already anyway especially exactly generally likely mainly mostly normally perhaps
possible possibly quite rather really regarding roughly simply still typically usually able aware expect idea know need
suppose sure tell tend thing think towards understand upcoming want wonder somebody someone
bekomme bekommen kommen kommt gehen geht machen macht mache geben nehmen lassen genau ungefähr einfach vielleicht
letzte letzter letztes letzten nächste nächster nächstes nächsten
"""
LIGHT_TERMS = frozenset(terms(_LIGHT))
"""Terms that hardly say what is asked."""
_CASE = """
monday tuesday wednesday thursday friday saturday sunday today tomorrow tonight morning afternoon evening
montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag heute morgen abend
dad daddy mum mom father mother son daughter wife husband brother sister grandma grandpa grandmother grandfather uncle
aunt nephew niece papa mama vater mutter sohn tochter ehefrau ehemann bruder schwester oma opa onkel tante
"""
_CASE_TERMS = frozenset(terms(_CASE))
_LIGHT_DEEDS = LIGHT_TERMS | frozenset(query_terms("use work handle deal"))
_SETTING = re.compile(r"\A[Hh]ow (?:do|does|did) ([A-Z]\w+)(?= \w+ \w+)|\bin ([A-Z]\w+)\Z")
_ATTRIBUTE = re.compile(
    r"\b[Ww](?:hat|hich) (?!is |are |was |were |do |does |did |has |have |can |if )((?:[\w-]+ ){0,2}?[\w-]+) "
    r"(?:is|are|was|were|do|does|did|has|have|had|can|may|must|should|will)\b"
    r"|\b[Ww]hat (?:is|are|was|were) (?:the|its|their|his|her) ((?:[\w-]+ ){0,2}?[\w-]+) (?:of|for|in|on)\b"
    r"|\b[Ww]hat (?:is|are|was|were) (?:the )?(?:[\w-]+ ){0,2}[\w-]+['’]s? ((?:[\w-]+ ){0,2}[\w-]+)(?=\W*\Z)"
)
_MEASURED = re.compile(
    r"\b[Hh]ow \w+ (?:is|are|was|were) (?:the|its|their|his|her|my|our|your) ((?:[\w-]+ ){0,2}?[\w-]+)"
    r"(?= (?:of|for|in|on|now|today|currently|at present|at the moment)\b|\W*\Z)"
)
_COUNTED = re.compile(
    r"\b[Hh]ow many ((?:[\w-]+ ){0,2}?(?:\w+s|people|children|men|women|staff))\b"
    r"|\b[Ww]ie ?viele ((?:[a-zäöüß]+ ){0,2}?[A-ZÄÖÜ]\w+)"
)
_COSTS = re.compile(
    r"\bhow much (?:do|does|did|will|would|must|should) .+\b(cost|pay|weigh)\b|\b(kostete?n?|coûte(?:nt)?)\b",
    re.IGNORECASE,
)
_FORMS = frozenset(
    query_terms("step way kind sort type form part thing purpose point role example idea term word conclusion")
)
_OF_WHAT = frozenset(terms("number address date name time amount file"))
"""Of "phone number" the first word says what is asked."""
_STEPS = re.compile(
    r"\b(?:how (?:do|can|could|should|would|must) (?:i|we|you|one|somebody|someone|people)\b|how to\b|the steps\b|"
    r"wie (?:kann|muss|soll|darf|sollte|könnte) (?:ich|man)\b)",
    re.IGNORECASE,
)
_WHETHER = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|can|could|may|must|should|shall|will|would|has|have|"
    r"what happens|what (?:do|can|should|must) (?:i|you|we|one) do)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: [A-Z0-9][\w.'’-]*)*")
_CLAUSE = re.compile(r"(?<=\w) (?:which|that|where|who|whose|whom)\b")
_DEFINITION = re.compile(
    r"(?!(?:If|When|Where|Whether|While|Since|As|For|What|There)\b)(?:In general, |Generally, )?"
    r"(?:[Aa]n? |The (?=[\"“*]))?[\"“*`]*((?:[\w-]+[\"”*`]*\s){1,3}?)"
    r"(?:is|are|was|were|means?|refers? to)\b(?! \w+ed\b)"
)


class QuestionTerms(NamedTuple):
    """What a question asks for."""

    wording: str
    weights: Mapping[str, float]  # of its terms
    terms: Mapping[str, Mapping[str, float]]  # each with what texts may say instead and its weight, itself with 1
    pairs: frozenset[tuple[str, str]]
    kind: AnswerKind | None
    definition: float = 1.0  # factor for a definition of what is asked for
    attribute: str = ""  # term of what is asked of something, or counted: the colour of "What colour is the lamp?"
    names: Sequence[frozenset[str]] = ()  # of things that an answer is about, each as its terms
    quantities: frozenset[str] = frozenset()  # an answer states one of them, where it is asked "how heavy"
    added: frozenset[str] = frozenset()  # terms of names in brackets at the end: what the question before is about
    has_topic: bool = True  # false where no word names a thing, as in "What is the difference between == and is?"

    @property
    def names_of_rows(self) -> frozenset[str]:
        """The terms by which it may name the row of a table."""
        return frozenset(terms(self.wording)) - days_in(self.wording)

    @property
    def least_share(self) -> float:
        """Share of the terms, by worth, below which no excerpt bears on the question: texts repeat few of many."""
        return LEAST_SHARE if sum(self.weights.values()) < MANY else LEAST_OF_MANY


def asks_for_steps(question: str) -> bool:
    """Whether a question asks how something is done."""
    return bool(_STEPS.search(question))


def deed_of(question: str) -> str:
    """Return the term of what is done where it is asked how: "cancel" of "How do I cancel my order?".

    It is empty where the verb says little, as "use" does.
    """
    if not (found := _STEPS.search(question)):
        return ""
    words = question[found.end() :].split()
    verb = next((word for word in words if not word.endswith("ly") and word != "to"), "")
    return next((term for term in query_terms(verb)[:1] if term not in _LIGHT_DEEDS), "")


def asks_to_relate(question: str) -> bool:
    """Whether a question asks how something is done, whether it is so, or what happens: its words belong together."""
    return asks_for_steps(question) or bool(_WHETHER.match(question))


def read_asked(
    question: str, topic: Sequence[str] | None = None, beside: Mapping[str, float] | None = None
) -> QuestionTerms:
    """Return what a question asks for.

    `topic` are its terms, if they are not all that are no function words; `beside` has further terms with their
    weights, which count less than 1.
    """
    said = topic or query_terms(question)
    asked = [term for term in said if term not in _INDEFINITE]
    # "Why is everything shown in UTC?" asks about UTC.
    setting = _SETTING.search(question.strip(" ?")) if len(asked) == len(said) else None
    if _UNSET.search(question):
        asked = list(dict.fromkeys([*asked, "default"]))
    lesser = {
        *_RELATION_TERMS,
        *LIGHT_TERMS,
        *terms(" ".join(newest_words(question))),
        *terms(" ".join(_ASKING.findall(question))),
        *terms(setting[setting.lastindex or 0] if setting else ""),
        *_context(question),
    }
    has_topic = not lesser.issuperset(asked)
    weights = {**(beside or {}), **{term: LESSER if has_topic and term in lesser else 1.0 for term in asked}}
    measured = bool(_ASKS_QUANTITY.search(question)) or not _ASKS.search(question)
    forms = said_otherwise(question)
    wanted = {term: {**forms.get(term, {}), **_instead(term, measured)} for term in weights}
    for case in cases_of(question):
        for term in wanted.keys() & set(terms(case.written)):
            wanted[term] = {**wanted[term], as_term(case): 1.0}
    pairs = frozenset(pair for pair in pairwise(terms(question)) if wanted.keys() >= set(pair))
    only = _RELATION.search(question) or asks_definition(question)
    defined = DEFINED_ONLY if only else 1.0 if _ASKS_ELSE.match(question) else DEFINITION
    kind = kind_of(question)
    attribute = _attribute(_COUNTED, question, wanted) or _attribute(
        _MEASURED if kind else _ATTRIBUTE, question, wanted
    )
    costs = _COSTS.search(question) if kind and kind.is_number else None
    measures = terms(" ".join([*_ASKING.findall(question), *(costs.groups("") if costs else ())]))
    if attribute and measures:  # "How high is the fee?" asks for money, by the other words for a fee
        measures = [*measures, *wanted[attribute]]
    quantities = {found for term in measures for found in quantities_of(term)}
    return QuestionTerms(
        question,
        weights,
        wanted,
        pairs,
        kind,
        defined,
        attribute,
        _names(question),
        frozenset(quantities),
        frozenset(terms(" ".join(_CAPITALIZED.findall(_bracket(question))))),
        has_topic,
    )


def _context(question: str) -> list[str]:
    """Return the terms in brackets at the end that are of another question and no names: it may be about them."""
    if _REFERS.search(question.rpartition(" (")[0]):
        return []
    return terms(" ".join(word for word in _bracket(question).replace(",", " ").split() if _IS_WORD.fullmatch(word)))


def _bracket(question: str) -> str:
    """Return what stands in brackets at the end of a question."""
    asked = question.rstrip(" ?")
    return asked.removesuffix(")").rpartition(" (")[2] if asked.endswith(")") and " (" in asked else ""


def _instead(term: str, measured: bool) -> dict[str, float]:
    """Return what texts may say where a question has a term, each with its weight."""
    stated = dict.fromkeys(stand_ins_of(term) if measured else (), MEASURED)
    same = dict.fromkeys(same_terms(term), SAME)
    return {**dict.fromkeys(related_terms(term), RELATED), **same, **stated, term: 1.0}


def _attribute(pattern: re.Pattern[str], question: str, asked: Collection[str]) -> str:
    """Return the term of the noun behind "what", "what is the" or "how long is the"; nothing if it is no topic."""
    found = pattern.search(question)
    said = terms(found[found.lastindex or 0]) if found else []
    while len(said) > 1 and said[-1] in _OF_WHAT:
        said.pop()
    return said[-1] if said and said[-1] in asked and said[-1] not in _FORMS else ""


def _names(question: str) -> list[frozenset[str]]:
    """Return the names in a question, each as its terms.

    Not those behind "which", "that", "where" or "who" in its middle: an answer is about what they only help to find.
    Not where every word is a capital, or every noun, as in German: nothing tells a name.
    """
    is_title = not any(word.islower() and word not in STOP_WORDS for word in question.split())
    if is_title or language_of_question(question) not in ("", "en"):
        return []
    about = _CLAUSE.split(question, maxsplit=1)[0]
    return [frozenset(said) for match in _NAME.finditer(about) if (said := terms(match[0]))]


def compares(question: str) -> bool:
    """Whether a question asks which of several things is more, or is the most: no single quotation tells."""
    return bool(_COMPARES.search(re.sub(r"\bat (?:most|least)\b", "", question)))


_ASKS_MOST = re.compile(
    r"\bup to how\b|\bat most\b|\bmaximum\b|\b(?:is|are) the most\b|\bhow (?:many|much)\b.*"
    r" (?:may|can|could|allowed)\b",
    re.IGNORECASE,
)
_STATES_MOST = re.compile(
    r"\b(?:up to|at most|maximum|no more than|(?:not|never) exceed\w*|limit(?:ed)?)\b[^.\n]{0,30}\d", re.IGNORECASE
)


def states_most(text: str, question: str) -> bool:
    """Whether a text states an upper limit where a question asks for one: "up to 24 hours"."""
    return bool(_ASKS_MOST.search(question) and _STATES_MOST.search(text))


def asks_default(question: str) -> bool:
    """Whether a question asks what holds if nothing is set."""
    return bool(_UNSET.search(question) or re.search(r"\bdefaults?\b", question, re.IGNORECASE))


def asks_definition(question: str) -> bool:
    """Whether a question asks what something is, and nothing else."""
    return bool(_ASKS_DEFINITION.match(question))


def defines(text: str, asked: QuestionTerms) -> bool:
    """Whether a text opens with a definition of what is asked for."""
    defined = _DEFINITION.match(text)
    subject = terms(defined[1]) if defined else []
    return any(term in said for term in subject for said in asked.terms.values())


NEWEST = 1.25  # factor for the newest text where the question asks for the newest; others get their share of it
ON_DATE = 1.5  # factor for a text of the time that the question names
TIE = 1e-6  # of the score: between equals the newer one comes first

_NEWEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|current(?:ly)?|now|nowadays|today|at the moment|at present|these days|"
    r"still|finally|eventually|in the end|up[ -]to[ -]date|last (?:meeting|version|release|decision|time)|"
    r"jetzt|aktuell(?:e[nrms]?)?|derzeit(?:ige[nrms]?)?|momentan|zurzeit|heute|neueste[nrms]?)\b",
    re.IGNORECASE,
)
_IN_MONTH = re.compile(
    rf"\b(?:in|of|from|during|since|until|by|last)\s+(?:early\s+|late\s+)?({'|'.join(MONTHS)})\b", re.I
)


def case_of(question: str) -> frozenset[str]:
    """Return the terms that tell the asker's own case, which a text need not repeat: amounts, ages, days, relatives."""
    return _CASE_TERMS.union(*(terms(amount.written) for amount in amounts_of(question)))


def preferences(question: str, dates: Sequence[str]) -> list[float]:
    """Return a factor for each text from its date (YYYY-MM-DD, YYYY-MM, or empty), 1 where dates do not matter."""
    wanted = times_of(question)
    rank = {date: place for place, date in enumerate(sorted({date for date in dates if date}), 1)}
    most = NEWEST - 1 if asks_for_newest(question) else TIE
    return [
        (ON_DATE if date and any(time.agrees(of_iso(date)) for time in wanted) else 1.0)
        + (most * rank[date] / len(rank) if date else 0.0)
        for date in dates
    ]


def asks_for_newest(question: str) -> bool:
    """Whether a question asks for what holds now, or for the latest of something."""
    return bool(newest_words(question)) and not times_of(question)


def newest_words(question: str) -> list[str]:
    """Return the words by which a question asks for what holds now, or for the latest of something."""
    return _NEWEST.findall(question)


def times_of(question: str) -> list[Date]:
    """Return the days, months and years that a question names; 0 where a part is not given."""
    months = [Date(0, MONTHS[match[1].lower()]) for match in _IN_MONTH.finditer(question)]
    dates = [found.date for found in asked_dates(question)]
    return dates or months
