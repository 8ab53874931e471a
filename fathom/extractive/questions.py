"""What a prompt asks: its questions, each complete by itself, what they list, and words for titles and queries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from fathom.facts.dates import MONTHS
from fathom.retrieval.asked import REFERRING, read_asked
from fathom.retrieval.expansion import FAMILY_LETTERS, is_family, related_terms
from fathom.retrieval.translation import translations_of
from fathom.text.languages import words_of_asking
from fathom.text.sentences import split_sentences
from fathom.text.terms import STOP_WORDS, language_of, query_terms, terms

SUBJECT_WORDS = 6
ITEM_WORDS = 8
FORM_SHARE = 0.6  # of a sentence's terms: it is about the form of the answer

_FORM = """
provide ensure include suggest make sure cite format structure present content keyword image example reference
comprehensive report paper output document answer response section overview detailed reader table figure citation word
length page overall complete support language english style tone academic depth clear
"""
_FORM_TERMS = frozenset(query_terms(_FORM))
_NUMBERED = re.compile(rf"(?<!\s)\s*(?<![\w.])\(?(?P<number>\d{{1,2}})[.)]\s+(?=[A-Z])(?!(?i:{'|'.join(MONTHS)})\b)")
_JOINED = re.compile(
    r",? and (?=(?:how(?: (?:many|much|long|old|far|often|large)(?: \w+){0,8})?|why|when|where|who|"
    r"(?:(?:in|at|for) )?(?:what|which)(?: \w+){0,4})"
    r" (?:is|are|was|were|do|does|did|can|could|should|would|will)\b)"
    r"|,? and (?=(?:is|are|was|were) there\b|(?:why|since when|until when) \w)"
    r"|(?<!\bwho)(?<!\bwho \w{3})(?<!\bwho \w{4})(?<!\bwho \w{5}),? and (?=who \w)"  # "those who sing and who play"
    r"|,? und (?=(?:wie|warum|wieso|weshalb|wann|wo|woher|wohin|wer|wem|wen|was|welche[mnrs]?) \w)"
    r"|,? et (?=(?:comment|pourquoi|quand|où|combien|quel(?:le)?s?) \w)"
    r"|,? y (?=¿?(?:cómo|por qué|cuándo|dónde|quién|quiénes|cuál|cuáles|cuánt[oa]s?) \w)",
    re.I,
)
_QUESTION = re.compile(
    r"(?:(?:[^,:]*[,:]|.* [–-]) )?"
    r"(?:(?:in|at|for|of|by|on|to|from|after|until|since|above|under|bis|seit|ab|von|zu|für|mit|an|auf|bei|um) )?"
    r"(?:how|why|when|where|who|whom|whose|what|which|is|are|was|were|do|does|did|can|could|may|should|would|will|has|"
    r"have|wie|warum|wieso|weshalb|wann|wo|woher|wohin|wer|wem|wen|welche[mnrs]?|comment|pourquoi|quand|où|combien|"
    r"quel(?:le)?s?|¿.*)\b",
    re.I,
)
_PRONOUN = re.compile(rf"\b(?:{REFERRING})\b", re.I)
_PAIRS = [
    re.compile(pattern, re.I)
    for pattern in (
        r".*?\bdifferences? between (?P<a>.+?) and (?P<b>.+)",
        r"how (?:do|does|did|is|are) (?P<a>.+?) (?:differ(?:ent|s)? from|compare (?:to|with)) (?P<b>.+)",
        r"how (?:do|does|is|are) (?P<a>.+?) and (?P<b>.+?) (?:differ|interact|relat|work together|connected)",
        r"compare (?P<a>.+?) (?:with|to|and|against) (?P<b>.+)",
        r"(?P<a>.+?) (?:vs\.?|versus) (?P<b>.+)",
        r"(?:which is \w+|should (?:i|we|one) \w+|is it better to \w+)[:,]? (?P<a>.+?),? or (?P<b>.+)",
    )
]
_ASPECTS = re.compile(
    r"(?:what (?:is|are|were|was) )?(?:the )?(?P<list>(?:[\w-]+, )*[\w-]+,? and [\w-]+) (?P<matter>(?:of|in|for) .+)",
    re.I,
)
_LISTED = re.compile(
    r"(?:,? (?:including|such as|covering|considering|in terms of|with (?:a )?focus on)|:)\s+(?P<list>.+)", re.I
)
_SEPARATOR = re.compile(r",?\s+(?:and|or)\s+|[,;]\s*")


BOUND = re.compile(
    r"\b(?:(?P<more>more than|over|above|after|longer than|mehr als|über|nach)|"
    r"(?P<least>at least|since|from|mindestens|seit)|"
    r"(?P<less>(?:less|fewer|cheaper|shorter) than|under|below|before|weniger als|unter|vor)|"
    r"(?P<most>at most|up to|until|höchstens|bis))\s+(?:the\s+)?"
    r"(?P<limit>(?:[$€£]?\s?\d|(?:one|two|three|four|five|six|seven|eight|nine|ten|zwei|drei|vier|fünf|zehn)\b)"
    r"[^?;:]{0,24})",
    re.IGNORECASE,
)
"""A bound that a question sets: "more than 40", "since 2021"."""


_FOR_ROWS = re.compile(r"\W*(?:which|who|list|name|show|how many|welche\w*|wer|nenne|wie ?viele)\b", re.IGNORECASE)
_IN_TIME = re.compile(r"after|since|from|before|until|nach|seit|vor|bis", re.IGNORECASE)


class QuestionPart(NamedTuple):
    """A side, an aspect or an item that a question names: its title, and the queries for it."""

    title: str
    queries: list[str]


def is_question(text: str) -> bool:
    """Whether a text, or what follows its first comma, opens like a question."""
    return bool(_QUESTION.match(text))


def questions_of(prompt: str) -> list[str]:
    """Return what a prompt asks, without requests and without rules for the form of the answer; at least one text.

    Where a later question does not say what it is about, the key words of the first one, or of a statement before it,
    are added in brackets: "When was it sold (Faust)".
    """
    told: list[str] = []
    asked: list[str] = []
    for sentence in _sentences(prompt):
        plain = strip_lead(sentence)
        if not key_terms(plain) or _is_form(plain):
            continue
        requested = plain != sentence.strip(" .") or is_question(plain)
        (asked if asked or requested else told).append(plain)
    found = asked or told or [strip_lead(prompt)]
    subject = subject_of((told or found)[0])
    alone = 0 if asked and told else 1
    return [*found[:alone], *(_complete(question, subject) for question in found[alone:])]


def parts_of(question: str) -> list[QuestionPart]:
    """Return the two sides of a comparison, or the aspects or items that a question lists."""
    if sides := _sides(question):
        a, b = sides
        return [
            QuestionPart(f"About {side}", [f"{side} compared with {other}", f"{side} properties", f"{side} use"])
            for side, other in ((a, b), (b, a))
        ]
    if aspects := _ASPECTS.fullmatch(question):
        names = _SEPARATOR.split(aspects["list"])
        return [
            QuestionPart(capitalized(f"{name} {aspects['matter']}"), [f"{name} {aspects['matter']}"]) for name in names
        ]
    if listed := _LISTED.search(question):
        items = [item.strip() for item in _SEPARATOR.split(listed["list"]) if key_terms(item)]
        matter = " ".join(keywords(question[: listed.start()])[:SUBJECT_WORDS])
        if len(items) > 1 and matter and all(len(item.split()) <= ITEM_WORDS for item in items):
            return [QuestionPart(capitalized(item), [f"{item} {matter}"]) for item in items]
    return []


def sides_of(prompt: str) -> tuple[str, str] | None:
    """Return the two things that a prompt compares, as it names them; None if it compares nothing."""
    return next(filter(None, map(_sides, questions_of(prompt))), None)


def _sides(question: str) -> tuple[str, str] | None:
    pair = next((m for pattern in _PAIRS if (m := pattern.match(question))), None)
    if not pair:
        return None
    listed = _LISTED.search(pair["b"])  # aspects of both
    return pair["a"].strip(" ,"), (pair["b"][: listed.start()] if listed else pair["b"]).strip(" ,")


def subject_of(text: str) -> str:
    """Return the key words of a text, neighbouring ones as one phrase: "elderly people, Japan"."""
    words = text.replace(",", " , ").split()
    phrases = [" ".join(run) for key, run in groupby(words, _names_something) if key]
    return clip(", ".join(phrases), SUBJECT_WORDS)


def _names_something(word: str) -> bool:
    return bool(topic_terms(word)) and not (word.islower() and is_verb(word))


def _sentences(prompt: str) -> list[str]:
    """Return the sentences of a prompt, joined questions and numbered items apart."""
    sentences = (sentence.clean for sentence in split_sentences(_items_apart(prompt)))
    return [part for sentence in sentences for part in _JOINED.split(sentence)]


def _items_apart(prompt: str) -> str:
    """Return a prompt with a blank line in place of each number of its items: 1, 2 and so on, and no ordinal."""
    items: list[re.Match[str]] = []
    for found in _NUMBERED.finditer(prompt):
        begins = not prompt[: found.start()].strip() or prompt[found.start() - 1] in ".:;?!,"
        if int(found["number"]) == len(items) + 1 and (items or begins):
            items.append(found)
    for found in reversed(items if len(items) > 1 else []):
        prompt = f"{prompt[: found.start()]}\n\n{prompt[found.end() :]}"
    return prompt


def _is_form(sentence: str) -> bool:
    found = key_terms(sentence)
    return sum(term in _FORM_TERMS for term in found) >= FORM_SHARE * len(found)


def _complete(question: str, subject: str) -> str:
    own, wanted = set(key_terms(question)), set(key_terms(subject))
    if wanted <= own or (own & wanted and not _PRONOUN.search(question)):
        return question
    return f"{question} ({subject})"


def as_asked(question: str, prompt: str) -> str:
    """Return a question of a prompt without the words that were added in brackets, unless it refers to them."""
    before = question.rpartition(" (")[0]
    added = bool(before) and question not in " ".join(prompt.split())
    return before if added and not _PRONOUN.search(before) else question


RELATED_WEIGHT = 0.5  # of a term that texts use in place of another

ANY_OF = "Find what is said on any part of this:"
"""Beginning of the description of a step that asks for several things, of which each is worth a note."""

_WORD = re.compile(r"[^\W_][\w'’+#-]*(?:\.\w+)*|__\w+__")
_WORK = r"(?:report|overview|summary|analysis|review|article|essay|introduction|paper|study|guide|survey|research)"
_LEAD = re.compile(
    r"(?:please|(?:could|can|would) you|also|i(?: would|'d) like(?: (?:you )?to)?|"
    r"(?:any idea|do you know)(?=,? (?:how|wh))|"
    r"i (?:want|need)(?: to (?:know|understand)(?: about)?)?|help me (?:to )?understand|tell me(?: about)?|"
    r"acting as [^,.]{3,80},|explain(?: to me)?|describe|discuss|summari[sz]e|investigate|analy[sz]e|examine|explore|"
    r"evaluate|assess|find out|(?:write|give|prepare|create|provide|produce|conduct|draft|make)(?: me)?"
    rf"(?: (?:an? |the )?(?:(?:comprehensive|detailed|short|brief|full) )?{_WORK} (?:on|about|of|into|for)"
    rf"|(?= (?:[\w-]+ ){{1,6}}{_WORK}\b)))(?!\w)[\s,:]*",
    re.IGNORECASE,
)
_LOOSE_WORDS = """
a an the of in on at to for from by with and or as that which who is are was were be its their this these when where
while if than then into over about between how why what do does did can so such very too not no und oder der die das
des dem den ein eine von mit zu im für auf
"""
_LOOSE = frozenset(_LOOSE_WORDS.split())
# Terms of asking, and of the sentences in which a plan describes its steps: they say nothing about the subject.
_ASKED = "ok okay define interact relate work happen now nowadays currently today mean meant"
_META_TERMS = frozenset(query_terms(_ASKED))
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_FRAME_TERMS = _META_TERMS | frozenset(query_terms("answer find follow passage read say state question"))


def keywords(text: str) -> list[str]:
    """Return the words of a text that name its topic, as written, each once."""
    seen, asking = set[str](), words_of_asking(text)
    words = []
    for word in _WORD.findall(strip_lead(text)):
        if word.lower() not in asking and (found := key_terms(word)) and not set(found) <= seen:
            seen.update(found)
            words.append(word)
    return words


def key_terms(text: str) -> list[str]:
    """Return the terms of a text that name its topic; nothing when there are only function words."""
    words = _WORD.findall(text)
    return query_terms(text) if any(_is_acronym(word) or word.lower() not in STOP_WORDS for word in words) else []


def _is_acronym(word: str) -> bool:
    """Whether a word is in capitals, as the name "US" is and the pronoun is not."""
    return len(word) > 1 and word.isupper()


def topic_terms(text: str, *, frame: bool = False) -> list[str]:
    """Return the key terms without those of asking, and of a bound; with `frame`, also without a description's.

    A web address says where to look, and names a topic only where nothing else does.
    """
    bound = bound_of(text)
    asked = _REQUEST.sub("", text)
    asked = asked.replace(bound, " ") if bound else asked
    found = key_terms(_ADDRESS.sub(" ", asked)) or key_terms(asked)
    left_out = _FRAME_TERMS if frame else _META_TERMS
    return [term for term in found if term not in left_out] or found


def bound_of(question: str) -> str:
    """Return the amount by which a question tells things apart: "less than €35", of "Which cost less than €35?".

    What meets it does not say it. Where no verb stands before it, it is a part of what is asked: "Which fee is due for
    more than 50 kg?"
    """
    found = BOUND.search(question) if _FOR_ROWS.match(question) else None
    if not found or _IN_TIME.match(found[0]):
        return ""
    before = next(reversed(_WORD.findall(question[: found.start()])))
    return found[0] if is_verb(before) or _GERMAN_VERB.fullmatch(before) else ""


def with_related(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weighted terms with those that texts use in their place, at half the weight."""
    extended = dict(weights)
    for term, weight in weights.items():
        for other in related_terms(term):
            extended.setdefault(other, RELATED_WEIGHT * weight)
    return extended


def families(found: Iterable[str], instead: Mapping[str, Collection[str]] = MappingProxyType({})) -> list[set[str]]:
    """Return each term with those that texts use in its place; `instead` has those for the phrases of a question."""
    return [{term, *related_terms(term), *instead.get(term, ())} for term in found]


_REQUESTING = "list name show compare give find count sum quote nenne nenn zeige zeig liste vergleiche"
_REQUEST = re.compile(rf"\A\W*(?:{'|'.join(_REQUESTING.split())})(?: (?:me|us|mir|uns))? (?=\w)", re.IGNORECASE)
"""What asks for what follows: "List the carriers"."""
_MEASURES = "number amount average mean total sum summe difference comparison two both vs"
_ASKED_FOR = frozenset(terms(f"{_MEASURES} day week weekday month year date time instead coûte coûtent"))
_GERMAN_VERB = re.compile(r"(?!\w+(?:isch|lich|ig|bar|sam|los|haft)(?:e[nmrs]?)?\Z)[^\W\d_]*(?:t|st|te|ten|en)")


def naming_words(question: str) -> list[str]:
    """Return the words that a text on a question would have: no words of asking, no verbs, no small words."""
    weights = read_asked(question, topic=(topic := topic_terms(question))).weights
    verbs = verbs_of(question)
    return [
        word
        for word in keywords(question)
        if any(weights.get(term, 0.0) == 1.0 for term in terms(word) if term in topic)
        and not _ASKED_FOR.issuperset(terms(word))
        and word not in verbs
    ]


def verbs_of(question: str) -> list[str]:
    """Return the key words of a question that may be verbs, of which texts have other forms, or other verbs."""
    is_german = language_of([question]) == "german"
    return [
        word
        for word in keywords(question)
        if is_verb(word) or (is_german and word.islower() and _GERMAN_VERB.fullmatch(word))
    ]


def missing_words(question: str, said: Collection[str]) -> list[str]:
    """Return the words that name something in a question and of which no form is among some terms, in any language."""
    translated = translations_of(question)
    return [
        word
        for word in naming_words(question)
        if not any(_is_said(term, said) or any(t in said for t in translated.get(term, ())) for term in terms(word))
    ]


def _is_said(term: str, said: Collection[str]) -> bool:
    """Whether a term, another in its place, or one of its family is among some terms."""
    start = term[:FAMILY_LETTERS]
    return any(word in said for word in (term, *related_terms(term))) or any(
        is_family(term, other) for other in said if other.startswith(start)
    )


def broader(title: str, query: str) -> str:
    """Return a query of at most three words, those that a step's title shares with the question where it has two."""
    words = keywords(title)
    shared = [word for word in words if set(terms(word)) & set(topic_terms(query))]
    return " ".join((shared if len(shared) >= 2 else list(dict.fromkeys([*words, *keywords(query)])))[:3])


def strip_lead(query: str) -> str:
    """Return a query without the request around it: "Please write a report on X" is "X"."""
    query = " ".join(query.split())
    while (lead := _LEAD.match(query)) and query[lead.end() :].strip(" .?!"):
        query = query[lead.end() :]
    return query.strip(" .?!？。，、;:")


def clip(text: str, words: int) -> str:
    """Return at most this number of words from the start of a text, without an article or preposition left last."""
    parts = text.split()
    if len(parts) == 1 and len(text) > 6 * words:
        return text[: 3 * words]  # writing without spaces
    if len(parts) > words:
        parts = parts[:words]
        while len(parts) > 1 and parts[-1].lower().strip(",;:.") in _LOOSE:
            parts.pop()
    clipped = " ".join(parts).strip(" ,;:–-.")
    for opening, closing in (("(", ")"), ("[", "]"), ("“", "”")):
        if clipped.count(opening) > clipped.count(closing):
            before, behind = clipped[: clipped.rindex(opening)], clipped[clipped.rindex(opening) + 1 :]
            clipped = before.strip(" ,;:–-") or behind.strip(" ,;:–-")
    return clipped


def capitalized(text: str) -> str:
    """Return the text with its first letter a capital."""
    return text[:1].upper() + text[1:]


_BASE = """
absorb accept achieve act adapt add affect agree aim allocate allow amount announce answer appear apply approach arise
arrive ask assign avoid balance base become begin behave believe belong bind break bring build buy cache calculate
call capture carry cast cause change charge choose claim clean climb close collect combine come communicate compare
compile complain compute confirm connect consider consist contain continue contribute control convert cool cope copy
cost count cover create date deal decide declare decode define delete deliver depend derive destroy detect determine
develop die differ diffuse digest discover dispatch distinguish distribute divide dock draw drive drop eat elect
emerge employ enable encode encrypt enforce enjoy ensure enter establish estimate evaluate evolve exceed execute exist
expand expect explain express extend face fail fall feed feel fight fill finance find fit fix float fly follow force
form found function gain gather generate get give go grant grow guide handle hang happen harm head heal hear help hire
hold host identify impact implement import improve include increase infect influence inherit initialize insert inspect
interact interpret invent invest iterate join keep kill know last launch lay lead learn leave let lie lift like limit
link listen live load locate lock look lose love lower make manage map mark match matter mean measure meet mention
migrate modify move name need note number occur offer open operate optimize order organize overload override own parse
pass pay perform pick plan play point prefer present prevent process produce promise promote propagate protect prove
provide publish pull push put quote raise range rank rate reach react read receive reclaim recognise recognize recover
reduce refer reflect regulate reject relate release remain remember remove render repair replace report represent
reproduce require resolve respond rest return reuse rise rule run sail save say scale schedule search see seem select
sell send serve set shape shift shrink sink sit sleep solve sort speak spend split spread stand start state steer stop
store strike study sue suffer suggest support suppress survive swap sync take talk target teach tell tend test think
threaten total touch track trade train transfer transform translate transmit travel treat trigger try turn understand
update use vary verify vote wait want warn wear weigh win wish work worry wrap write yield
"""
_FINITE = """
is are was were be been has have had can could may might must will would shall should does do did cannot
became began bought broke brought built came caught chose cost cut did drew drove fell felt flew found fought gave
got grew had held hit kept knew laid led left lent let lay lost made meant met paid put ran rose said sang sank sat
saw sent set shook shot shut sold spent spoke spread stood struck swam swore taught thought threw told took went woke
won wore wrote
"""
_FINITE_VERBS = frozenset(_FINITE.split())
_BASE_FORMS = frozenset(_BASE.split())


def is_verb(word: str, before: str = "") -> bool:
    """Whether a lowercase word can be the verb of a sentence; not behind "to", "which" or "that"."""
    if before in ("to", "which", "that"):
        return False
    if word in _FINITE_VERBS or word.endswith("n't") or (word.endswith("ed") and len(word) > 4):
        return True
    stems = (word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word))
    return any(stem in _BASE_FORMS for stem in stems)
