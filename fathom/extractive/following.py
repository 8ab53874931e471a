"""A follow-up question as a question of its own: "and in Europe?" means little without the question before it.

Done by form, in the languages whose small words are listed below, and never by meaning. A phrase that takes the place
of another ("in Europe" that of "in the USA") is put there; otherwise the words that the follow-up lacks are added in
brackets, as `fathom.extractive.questions` does for the later questions of a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fathom.config.inputs import MAX_QUERY_CHARS
from fathom.evidence.computed import winner_of
from fathom.extractive.comparisons import SUPERLATIVE, comparison_of, grade_words
from fathom.extractive.questions import is_question, is_verb, keywords, topic_terms
from fathom.text.terms import STOP_WORDS, terms

MOST_WORDS = 6  # of the earlier question, that are added
PHRASE_WORDS = 4  # of a phrase that takes another's place
ALONE = 3  # words of its own, from which a question without a reference is complete
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
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|thanks|thank you|good (?:morning|afternoon|evening)|hallo|bonjour|merci|hola|ciao)\b.{0,10}",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|then|one|ones|same|former|"
    r"latter|instead|else|es|er|sie|ihn|ihm|ihr|ihre[nrms]?|sein(?:e[nrms]?)?|das|dies(?:e[nrms]?)?|dort|dabei|damit|"
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
_NAME = re.compile(rf"(?i:{_ARTICLE})(?:[A-ZÀ-Þ][^\s,;:?!().]*(?:\s+(?=[A-ZÀ-Þ]))?)+|\d+")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_END = " .?!？。，、;:"


def understood(query: str, earlier: str, answer: str = "") -> str:
    """Return a follow-up to an earlier question as a question that needs no other; itself if it is one.

    "It" is what the answer to that question computed: the plan that is the cheapest.
    """
    lead = _LEAD.match(query)
    rest = query[lead.end() :] if lead else query
    own = own_words(rest)
    begun = bool(lead and lead[0].strip(" ¿¡\t\n"))
    if len(own) >= (ALONE_AFTER_AND if begun else ALONE) and not _REFERENCE.search(rest):
        return query
    plain = (rest.strip(_END) or query.strip(_END)).strip()
    if (begun or len(own) < ALONE) and (replaced := _replaced(plain, earlier)):
        return replaced
    known = {term for word in own for term in terms(word)}
    added = [word for word in own_words(earlier) if not set(terms(word)) & known]
    added = [word for word in added if not (word.islower() and is_verb(word))] or added
    asks_other = bool(grade_words(rest) and SUPERLATIVE.search(rest))  # "and the most expensive one?"
    winner = winner_of(answer) if _REFERENCE.search(rest) and not asks_other else ""
    if winner or asks_other:
        graded = {word.lower() for word in grade_words(earlier)}
        added = [word for word in added if word.lower() not in graded and not (winner and comparison_of(earlier))]
    added = [winner, *added] if winner else added
    if _YEAR.search(rest):
        added = [word for word in added if not _YEAR.fullmatch(word)]
    if not added:
        return query
    mark = "?" if query.rstrip().endswith(("?", "？")) else ""
    return f"{plain[:1].upper()}{plain[1:]} ({' '.join(added[:MOST_WORDS])}){mark}"


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
        elif role == "user" and text.strip() and not (_GREETING.fullmatch(text) and text != last):
            if question and asked.endswith(("?", "？")) and len(asked) <= _ASKED_CHARS and not is_question(text):
                clarified[asked] = text.strip()
            elif (meant := understood(text.strip(), question, asked)) != text.strip():
                question = meant
            else:
                question, clarified = text.strip(), {}
            asked = ""
    return question, clarified


def own_words(text: str) -> list[str]:
    """Return the words of a question that name something, in any of the languages above."""
    return [word for word in keywords(text) if word.lower() not in _SMALL and topic_terms(word)]


def _replaced(phrase: str, earlier: str) -> str:
    """Return the earlier question with a phrase in the place of the only one like it; nothing if there is no place."""
    if len(earlier.split()) > _LONG_QUESTION or len(phrase.split()) > PHRASE_WORDS + 1:
        return ""
    if _YEAR.fullmatch(phrase):
        return _YEAR.sub(phrase, earlier) if len(_YEAR.findall(earlier)) == 1 else ""
    if re.search(r"\d", phrase):  # "exit code 6" after "exit code 28"
        other = re.sub(r"\\?[\d.]*\d", r"[\\d.]*\\d", re.escape(phrase))
        if len(found := re.findall(rf"\b{other}\b", earlier, re.IGNORECASE)) == 1:
            return earlier.replace(found[0], phrase)
    given = _PHRASE.fullmatch(phrase)
    places = [found for found in _PHRASE.finditer(earlier) if given and _alike(given, found)]
    same = [found for found in places if given and found["word"].lower() == given["word"].lower()]
    places = same or places
    if len(places) != 1:
        return ""
    name = _NAME.match(earlier, places[0].start("rest"))  # "in Deutschland verkauft": the verb stays
    end = name.end() if name else places[0].start() + len(places[0][0].rstrip())
    return f"{earlier[: places[0].start()]}{phrase}{earlier[end:]}"


def _alike(given: re.Match[str], place: re.Match[str]) -> bool:
    """Whether two phrases can stand in the same place: both with a number, or with words that do the same."""
    numeric = [any(char.isdigit() for char in phrase["rest"]) for phrase in (given, place)]
    group = next(group.split("|") for group in _ALIKE if given["word"].lower() in group.split("|"))
    return all(numeric) or (not any(numeric) and place["word"].lower() in group)
