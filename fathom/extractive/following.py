"""A follow-up question as a question of its own: "and in Europe?" means little without the question before it.

Done by form, in the languages whose small words are listed below, and never by meaning. A phrase that takes the place
of another ("in Europe" that of "in the USA", "the Window kit" that of "the Floor cleaner") is put there; otherwise the
words that the follow-up lacks are added in brackets, as `fathom.extractive.questions` does for the later questions of a
prompt. What the follow-up names in the place of an earlier subject is not added: nobody asks about both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fathom.config.inputs import MAX_QUERY_CHARS, asks_nothing
from fathom.evidence.computed import winner_of
from fathom.extractive.comparisons import SUPERLATIVE, comparison_of, grade_words
from fathom.extractive.questions import is_question, is_verb, keywords, topic_terms, verbs_of
from fathom.retrieval.asked import REFERRING, asks_for_steps
from fathom.retrieval.expansion import quantities_of
from fathom.text.sentences import split_sentences
from fathom.text.terms import STOP_WORDS, language_of, terms

MOST_WORDS = 6  # of the earlier question, that are added
PHRASE_WORDS = 4  # of a phrase that takes another's place
ALONE = 2  # words for things, from which a question without a reference is complete
ALONE_AFTER_AND = 6  # the same where it begins with "and"
_LONG_QUESTION = 40  # words: more is no question, in which a phrase has one place
_ASKED_CHARS = 1_200  # of a message that asks what the question before it means; a longer one answers it

_AND = "and|but|so|or|ok|okay|also|then|und|aber|oder|et|mais|ou|alors|y|pero|e|ed|ma|o|mas|maar"
_AND_DUTCH = "en(?= (?:in|op|voor|met|zonder|hoe|wat|wie|waar|waarom)\\b)"  # elsewhere it is "in"
_WHAT_ABOUT = (
    "(?:what|how) about|what of|was ist mit|wie (?:ist|sieht) es (?:aus )?mit|wie (?:ist|sieht) es|qu'en est-il de|"
    "qué (?:hay|pasa) (?:de|con)|e per quanto riguarda|en hoe zit het met"
)
_LEAD = re.compile(
    rf"[\s¿¡]*(?:(?:{_AND}|{_AND_DUTCH})\b[\s,]*)*(?:(?:{_WHAT_ABOUT})\b)?[\s,]*",
    re.IGNORECASE,
)
_PRONOUNS = rf"\b(?:{REFERRING}|theirs|hers|es|er|sie|ihn|ihm|ihr|ihre[nrms]?|sein(?:e[nrms]?)?)\b"
_PRONOUN = re.compile(_PRONOUNS, re.IGNORECASE)
_REFERS_TO_NOTHING = re.compile(
    r"\b(?:(?:is|are|was|were)\s+there(?=\s+\w)|there\s+(?:is|are|was|were)|gibt\s+es|es\s+gibt|il\s+y\s+a)\b"
    r"|\bthis(?=\s+(?:year|quarter|month|week|time)\b)|\bdas(?=\s+(?:\w+e[nrms]?\s+)?(?-i:[A-ZÄÖÜ]))",
    re.IGNORECASE,
)
"""Words that refer to nothing here: "Is there a discount?", "this year", "das Haus"."""
_THAT = re.compile(r"\b([a-z]\w+)\s+that(?=\s+\w)")  # behind a noun it begins a clause: "visitors that come late"
_REFERENCE = re.compile(
    rf"{_PRONOUNS}|\b(?:that|there|then|one|ones|same|former|"
    r"latter|instead|das|dies(?:e[nrms]?)?|dort|dabei|damit|"
    r"dafür|davon|darin|dagegen|il|elle|ils|elles|celui|celle|ceux|cela|ça|là|leur|leurs|ello|ellos|ellas|eso|esto|allí|"
    r"suyo|quello|questo|esso|essa|essi|loro|ele|ela|eles|elas|isso|isto|hij|zij|dat|dit|daar|"
    r"in (?:more|greater) detail|more (?:on|about|details?)|elaborate|"
    r"(?:first|second|third|last|other) (?:point|part))\b"
    r"|(?:它|他们|她|这|那|それ|これ|その|この)",
    re.IGNORECASE,
)
_SMALL_WORDS = """
a l d le la les un une des du de et est sont que qui quoi quel quelle quels quelles comment pourquoi combien où quand
pour dans avec sans sur sous chez par plus ce ces cette il elle ils elles on ne pas ont été el los las una unos unas
del al y es son qué quién cuál cuáles cómo cuándo cuánto cuántos cuánta cuántas dónde para con sin su sus se lo ha han
fue fueron no más gli i uno e è sono che chi quale quali come perché quanto quanti dove per senza nel nella nei negli
dal dalla si non più o os as um uma do da dos das em na nos nas é são quem qual quais porque onde com sem mais het een
van en is zijn wat wie welke hoe waarom hoeveel waar wanneer voor met zonder niet meer
"""
_SMALL = frozenset(_SMALL_WORDS.split()) | STOP_WORDS
_ALIKE = (
    "in|im|at|bei|within|inside|en|dans|au|aux|à|a|nel|nella|nei|em|no|na",
    "for|für|pour|para|per|voor|por",
    "with|without|mit|ohne|avec|sans|con|sin|senza|com|sem|met|zonder",
    "under|unter|sous|bajo|sotto|sob|onder",
    "on|auf|sur|sobre|su|op",
    "by|from|von|vom|durch|par|da|door|de",
    "since|before|after|during|seit|vor|nach|während|depuis|avant|après|pendant|desde|antes de|después de|durante",
)
"""Words before a phrase, in groups: a phrase takes the place of another one that begins with a word of its group."""
_ARTICLES = "the|a|an|der|die|das|den|dem|des|ein|eine[nrm]?|le|la|les|l'|un|une|el|los|las|una|il|lo|gli|i|o|os|as"
_ARTICLE = rf"(?:(?:{_ARTICLES})\s+)?"
_STOP = "|".join({word for group in _ALIKE for word in group.split("|")} | {"and", "or", "und", "oder", "than", "als"})
_PHRASE = re.compile(
    rf"\b(?P<word>{'|'.join(_ALIKE)})\s+"
    rf"(?P<rest>{_ARTICLE}(?:(?!(?:{_STOP})\b)[^\s,;:?!().]+\s*){{1,{PHRASE_WORDS - 1}}})",
    re.IGNORECASE,
)
_PREPOSITIONS = frozenset(word for group in _ALIKE for word in group.split("|"))
_IS_ARTICLE = re.compile(_ARTICLES, re.IGNORECASE)
_PART = re.compile(r"[^\s,;:?!().]+(?:\.[^\s,;:?!().]+)*|[,;:?!().]")
_OF = re.compile(r"\s+(?:of|von|des|der|de|du|del|di|do|da|van)\b", re.IGNORECASE)
_NAME = re.compile(rf"(?i:{_ARTICLE})(?:[A-ZÀ-Þ][^\s,;:?!().]*(?:\s+(?=[A-ZÀ-Þ]))?)+|\d+")
_WHAT_IS = re.compile(r"\W*\w+(?: \w+)? (?:is|are|was|were|ist|sind|war|waren|est|sont)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_END = " .?!？。，、;:"


def understood(query: str, earlier: str, answer: str = "", *, refused: bool = False) -> str:
    """Return a follow-up to an earlier question as a question that needs no other; itself if it is one.

    "It" is what the answer to that question computed: the plan that is the cheapest. If that question was refused, its
    words are added only where the follow-up says that it goes on from there: others did not lead to anything.
    """
    lead = _LEAD.match(query)
    rest = query[lead.end() :] if lead else query
    own = own_words(rest)
    begun = bool(lead and lead[0].strip(" ¿¡\t\n"))
    refers = _refers(rest)
    if asks_nothing(query) or (not refers and _is_whole(rest, own, begun=begun, refused=refused)):
        return query
    plain = (rest.strip(_END) or query.strip(_END)).strip()
    if (begun or len(own) <= ALONE) and (replaced := _replaced(plain, earlier)):
        return replaced
    known = {term for word in own for term in terms(word)}
    # Of "We are six people. Which of A and B is cheaper?", A and B come first.
    sentences = sorted(split_sentences(earlier), key=lambda each: not each.text.endswith(("?", "？")))
    about = own_words(" ".join(each.clean for each in sentences))
    added = [word for word in about if not set(terms(word)) & known]
    added = [word for word in added if not (word.islower() and is_verb(word))] or added
    added = [word for word in added if not word.islower()] or added if refused else added
    added = added if refers else _without_rival(added, plain, earlier)
    asks_other = bool(grade_words(rest) and SUPERLATIVE.search(rest))  # "and the most expensive one?"
    winner = winner_of(answer) if _PRONOUN.search(_REFERS_TO_NOTHING.sub(" ", rest)) and not asks_other else ""
    if winner or asks_other:
        graded = {word.lower() for word in grade_words(earlier)}
        added = [word for word in added if word.lower() not in graded and not (winner and comparison_of(earlier))]
    added = [winner, *added] if winner else added
    if _YEAR.search(rest):
        added = [word for word in added if not _YEAR.fullmatch(word)]
    mark = "?" if query.rstrip().endswith(("?", "？")) else ""
    lacked = f" ({' '.join(added[:MOST_WORDS])})" if added else ""
    return f"{plain[:1].upper()}{plain[1:]}{lacked}{mark}" if added or is_question(plain) else query


def asked_in(before: Sequence[tuple[str, str]], last: str) -> tuple[str, dict[str, str]]:
    """Return what the last message of a conversation asks as a question of its own, and what was clarified about it.

    `before` has the role and text of each earlier message. The last one may answer what an assistant has asked about
    the question before: the message before it is short and ends with a question mark, and it is no question itself. Or
    it follows up on that question. Messages of the system are left out: they would be taken for the question. Of each
    message, as much is read as makes it too long for a question.
    """
    question, asked, clarified = "", "", dict[str, str]()
    for role, text in ((role, text[: MAX_QUERY_CHARS + 1]) for role, text in (*before, ("user", last))):
        if role == "assistant":
            asked = " ".join(text.split())
        elif role == "user" and text.strip():
            if question and asked.endswith(("?", "？")) and len(asked) <= _ASKED_CHARS and not is_question(text):
                clarified[asked] = text.strip()
            elif asks_nothing(text) and text != last:
                continue
            elif (meant := understood(text.strip(), question, asked)) != text.strip():
                question = meant
            else:
                question, clarified = text.strip(), {}
            asked = ""
    return question, clarified


def own_words(text: str) -> list[str]:
    """Return the words of a question that name something, in any of the languages above."""
    return [word for word in keywords(text) if word.lower() not in _SMALL and topic_terms(word)]


def _refers(text: str) -> bool:
    """Whether a question has a word that refers to something said before."""
    said = _THAT.sub(lambda found: found[0] if found[1] in _SMALL or is_verb(found[1]) else found[1], text)
    return bool(_REFERENCE.search(_REFERS_TO_NOTHING.sub(" ", said)))


def _is_whole(question: str, own: Sequence[str], *, begun: bool, refused: bool) -> bool:
    """Whether a question without a reference names enough to be about something else than the one before it.

    "When does the mobile app come out?" does. The delivery time is of what was asked about before, and so is what
    nothing is said of ("What is the notice period?").
    """
    if begun or refused:
        return len(own) >= (ALONE_AFTER_AND if begun else 1)
    things = _things(question)
    if _WHAT_IS.match(question) and not any(thing.preposition in {"of", *_PREPOSITIONS} for thing in things):
        return False
    last = [thing.words[-1] for thing in things if not any(map(quantities_of, terms(thing.words[-1])))]
    done = verbs_of(question) if asks_for_steps(question) else ()
    return sum(len(thing.words) - 1 for thing in things) + len(last) + len(done) >= ALONE


class _Thing(NamedTuple):
    """Words of a question that name one thing: "the Window kit". Of "in Ghent", `preposition` is "in"."""

    start: int
    end: int
    words: tuple[str, ...]  # without the article
    article: str
    preposition: str

    @property
    def named(self) -> bool:
        """Whether it has a name: a word in capitals."""
        return any(word[0].isupper() for word in self.words)


def _things(question: str) -> list[_Thing]:
    """Return what a question names, each with its place; a verb, a small word or a mark ends it."""
    verbs = {word for word in verbs_of(question) if word.islower()}
    found: list[_Thing] = []
    begun: _Thing | None = None
    before = ""
    for part in _PART.finditer(question):
        word, small = part[0], part[0].lower()
        if _IS_ARTICLE.fullmatch(word):
            found += [begun] if begun and begun.words else []
            begun = _Thing(part.start(), part.end(), (), small, before)
        elif not own_words(word) or word in verbs or (word.isdigit() and not (begun and begun.words)):
            found += [begun] if begun and begun.words else []
            begun, before = None, small
        else:
            start = begun or _Thing(part.start(), part.end(), (), "", before)
            begun = start._replace(end=part.end(), words=(*start.words, word))
    return [*found, *([begun] if begun and begun.words else [])]


def _without_rival(added: list[str], asked: str, earlier: str) -> list[str]:
    """Return the words to add without those in whose place a question of the same form names something else.

    "What does the Window kit cost?" is not about the floor cleaner of "What does the floor cleaner cost?".
    """
    ours, theirs = _things(asked), _things(earlier)
    named = {word for thing in (*ours, *theirs) for word in thing.words}
    same_verb = {*terms(asked)} & {term for word in own_words(earlier) if word not in named for term in terms(word)}
    if not (same_verb or asked.lower().split()[:2] == earlier.lower().split()[:2]):
        return added
    rivals: Sequence[_Thing] = ()
    if any(thing.preposition not in _PREPOSITIONS for thing in ours):
        rivals = [thing for thing in theirs if thing.preposition not in _PREPOSITIONS][:1]
    elif any(thing.named for thing in ours):
        rivals = [thing for thing in theirs if thing.named]
    if len(rivals) != 1:
        return added
    left = [word for word in added if word not in rivals[0].words]
    return left if left or same_verb else added


def _renamed(phrase: str, earlier: str) -> str:
    """Return the earlier question about another thing: "the Window kit" in the place of "the Floor cleaner"."""
    things = _things(phrase)
    if len(things) != 1 or phrase[: things[0].start].strip() or phrase[things[0].end :].strip():
        return ""
    given = things[0]
    ways = [place for place in _places(given, _things(earlier), earlier) if len(place) == 1]
    if not ways:
        return ""
    place = ways[0][0]
    said = earlier[place.start : place.end]
    if place.named and not place.article:  # of "with Corvane end?", the verb stays
        said = re.sub(r"(?:\s+[^\sA-ZÀ-Þ]\S*)+\Z", "", said)
    return f"{earlier[: place.start]}{phrase}{earlier[place.start + len(said) :]}"


def _places(given: _Thing, things: Sequence[_Thing], earlier: str) -> Iterator[list[_Thing]]:
    """Yield the things of the earlier question whose place another may take, by one rule after the other."""
    yield [thing for thing in things if thing.words[-1].lower() == given.words[-1].lower()]
    has_noun_capitals = bool(given.article) and language_of([earlier]) == "german"
    if given.named and not has_noun_capitals and not any(word.endswith(("'s", "’s")) for word in given.words):
        like = [thing for thing in things if thing.named and (thing.article or not given.article)]
        yield [thing for thing in like if thing.preposition not in _PREPOSITIONS] or like
    if given.article:  # "the population" after "the capital of Sweden"
        yield [thing for thing in things if thing.article and _OF.match(earlier, thing.end)]
    else:
        yield [thing for thing in things if earlier.strip(_END) != earlier[thing.start : thing.end].strip(_END)]


def _replaced(phrase: str, earlier: str) -> str:
    """Return the earlier question with a phrase in the place of the only one like it; nothing if there is no place."""
    if len(earlier.split()) > _LONG_QUESTION or len(phrase.split()) > PHRASE_WORDS + 1:
        return ""
    if _YEAR.fullmatch(phrase):
        return _YEAR.sub(phrase, earlier) if len(_YEAR.findall(earlier)) == 1 else ""
    if replaced := _renumbered(phrase, earlier) or _renamed(phrase, earlier):
        return replaced
    given = _PHRASE.fullmatch(phrase)
    if not given and (inner := _PHRASE.search(phrase)) and phrase[: inner.start()].lower() in earlier.lower():
        phrase, given = inner[0], inner  # of "the office in Ghent" after "the office in Harlow"
    places = [found for found in _PHRASE.finditer(earlier) if given and _alike(given, found)]
    same = [found for found in places if given and found["word"].lower() == given["word"].lower()]
    places = same or places
    if len(places) != 1:
        return ""
    name = _NAME.match(earlier, places[0].start("rest"))  # "in Deutschland verkauft": the verb stays
    end = name.end() if name else places[0].start() + len(places[0][0].rstrip())
    return f"{earlier[: places[0].start()]}{phrase}{earlier[end:]}"


def _renumbered(phrase: str, earlier: str) -> str:
    """Return the earlier question with another number: "exit code 6" in the place of "exit code 28"."""
    if not re.search(r"\d", phrase):
        return ""
    other = re.sub(r"\\?[\d.]*\d", r"[\\d.]*\\d", re.escape(phrase))
    found = re.findall(rf"\b{other}\b", earlier, re.IGNORECASE)
    return earlier.replace(found[0], phrase) if len(found) == 1 else ""


def _alike(given: re.Match[str], place: re.Match[str]) -> bool:
    """Whether two phrases can stand in the same place: both with a number, or with words that do the same."""
    numeric = [any(char.isdigit() for char in phrase["rest"]) for phrase in (given, place)]
    group = next(group.split("|") for group in _ALIKE if given["word"].lower() in group.split("|"))
    return all(numeric) or (not any(numeric) and place["word"].lower() in group)
