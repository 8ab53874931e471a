"""Questions that compare: the things that one names, what of them is compared, and what would decide it.

By form, in English, German and French. A thing ends where its words are as many as the other's, at a verb or at a
comma: names of people who type in lower case have no capitals. "The one in Sorrow" and "that of Sorrow" stand for the
other's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from fathom.extractive.questions import is_verb, keywords, strip_lead
from fathom.text.terms import STOP_WORDS, terms

MOST_CHARS = 400  # of a question that is read by its form: the time for that grows with the square of its length
SIDE_WORDS = 6
_ARTICLE = r"(?:(?:an?|the|der|die|das|den|dem|ein|eine[mnr]?|le|la|les|une?|des)\s+|l['’])?"
_OR = r"\s*,?\s+(?:or|oder|ou)\s+"
_AND = r"\s+(?:and|und|et)\s+"
_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|ist|sind|war|waren|hat|haben|kann|"
    r"wird|würde|kostet|dauert|wiegt|est|sont)"
)
_SIDE = r"(?P<{0}>[^,;:?]+?)"
_WHICH = r"(?:which|who(?:'s)?|what(?:'s)?|how|where|welche\w*|wer|was|wie|wo|qui|quel\w*|lequel|laquelle|combien)"
_FORMS = [
    # "A or B: which is cheaper?"
    rf"^{_SIDE.format('a')}(?:{_OR}|{_AND}|\s+vs\.?\s+|\s+versus\s+){_SIDE.format('b')}\s*[:,;–—]+\s+(?P<rest>{_WHICH}\b.*)$",
    # "Which is cheaper, A or B?", "so how heavy are they, A and B"
    rf"^(?P<rest>.*\b{_WHICH}\b.*?)[,:;–—]\s*{_SIDE.format('a')}(?:{_OR}|{_AND}){_SIDE.format('b')}$",
    # "what's cheaper the A or the B"
    rf"^(?P<rest>.*\b{_WHICH}\b.*?\b{{grades}})\s+(?=the |an? |de[rnms] |die |das )"
    rf"{_SIDE.format('a')}{_OR}{_SIDE.format('b')}$",
    # "the difference in price between A and B", "I cannot decide between A and B: which is cheaper?"
    rf"^(?P<before>.*\b(?:differ\w*|decide|choose|choice|compar\w*|unterschied\w*|vergleich\w*|entscheiden)\b.*?)"
    rf"\b(?:between|zwischen)\s+{_SIDE.format('a')}{_AND}{_SIDE.format('b')}(?P<rest>[,:;].*)?$",
    # "How much more does A cost than B?", "How many days longer is A kept than B?", "Ist A älter als B?"
    rf"^(?:.*[,;:]\s*)?(?P<before>(?:how much|how many|um wie ?viel|wie viele?)(?:\s+\w+)?\s+{{grades}}(?:\s+\w+)?)\s+"
    rf"{_AUXILIARY}\s+(?P<a>[^,;:?]+?)\s+(?:than|als)\s+{_SIDE.format('b')}$",
    rf"^(?:.*[,;:]\s*)?{_AUXILIARY}\s+(?P<a>[^,;:?]+)\s+(?P<rest>{{grades}}\b[^,;:]*?)\s+(?:than|als|que)\s+"
    rf"{_SIDE.format('b')}$",
    rf"^(?:.*[,;:]\s*)?{_AUXILIARY}\s+(?P<a>[^,;:?]+?)\s+(?P<rest>before|after)\s+(?P<named>[^,;:?]+)$",
    # "Which of the pumps A and B is lighter"
    rf"^(?P<before>.*\b(?:which|who|welche\w*|wer)\s+(?:of|von)(?:\s+(?:the|den|two|beiden|both))*)\s+{_SIDE.format('a')}"
    rf"{_AND}{_SIDE.format('b')}\s+(?P<rest>(?:is|are|was|were|has|have|does|do|ist|sind|hat|haben)\b.*)$",
    # "Does A or B charge more for it?"
    rf"^(?:.*[,;:]\s*)?{_AUXILIARY}\s+{_SIDE.format('a')}{_OR}(?P<graded>[^,;:?]+)$",
    # "A vs B clutch size"
    r"^(?P<a>[^,;:?]+?)\s+(?:vs\.?|versus)\s+(?P<open>[^,;:?]+)$",
]


class Grade(NamedTuple):
    """What a word of comparison asks for: what texts call it, and whether the greater value is more of it."""

    words: tuple[str, ...]
    greater: bool
    earlier: bool  # of dates, the earlier one is more of it

    @property
    def is_in_time(self) -> bool:
        """Whether dates are compared."""
        return not _TIME.isdisjoint(self.words)


# A word in its first form with what texts call it; `-`: the smaller value is more of it.
_ADJECTIVES = """
heavy: weight | light: -weight | loud: noise | quiet: -noise | silent: -noise | long: length | short: -length
tall: height | high: height | low: -height | deep: depth | shallow: -depth | wide: width | narrow: -width
big: size | large: size | small: -size | cheap: -price | expensive: price | dear: price | costly: price
fast: speed | quick: speed | slow: -speed | strong: power | powerful: power | weak: -power | hot: temperature
warm: temperature | cold: -temperature | valuable: value | thick: thickness | thin: -thickness | old: founded
young: -founded | early: date | late: -date | few: -number | rich: revenue
schwer: gewicht | leicht: -gewicht | laut: lautstärke | leise: -lautstärke | lang: länge | kurz: -länge | hoch: höhe
niedrig: -höhe | tief: tiefe | breit: breite | groß: größe | klein: -größe | billig: -preis | günstig: -preis
heiß: temperatur | kalt: -temperatur | wertvoll: wert | dick: dicke | dünn: -dicke
teuer: preis | schnell: geschwindigkeit | langsam: -geschwindigkeit | stark: leistung | schwach: -leistung
close: -distance | near: -distance | new: -date | recent: -date
alt: gegründet | jung: -gegründet | früh: datum | spät: -datum | viel: anzahl | wenig: -anzahl
"""
_FRENCH = """
cher chère chers chères: prix | long longue longs longues: longueur | court courte courts courtes: -longueur
lourd lourde lourds lourdes: poids | léger légère légers légères: -poids | haut haute hauts hautes: hauteur
grand grande grands grandes: taille | petit petite petits petites: -taille | rapide rapides: vitesse
ancien ancienne anciens anciennes vieux vieille vieilles: fondé | récent récente récents récentes: -date
jeune jeunes: -fondé | puissant puissante puissants puissantes: puissance
"""
_IRREGULAR = """
more: - | most: - | less: -- | least: -- | fewer: -- | fewest: -- | first: date | last: -date | mehr: - | meisten: -
before: date | after: -date | further: distance | furthest: distance | farther: distance | farthest: distance
weniger: -- | wenigsten: -- | better: - | best: - | zuerst: datum | zuletzt: -datum | höher: höhe | höchste: höhe
höchsten: höhe | teurer: preis | teurere: preis | teuerste: preis | teuersten: preis | größte: größe | größten: größe
"""
_TIME = frozenset(("founded", "date", "gegründet", "datum", "fondé"))
FOUNDING = (
    "founded established opened built started, started in, since joined charter rights inaugurated gegründet eröffnet "
    "gebaut erbaut seit stadtrechte fondé fondée construit construite depuis"
)
"""Words of sentences that say how old something is."""


@cache
def _grades() -> dict[str, Grade]:
    table: dict[str, Grade] = {}
    for word, said in _adjectives().items():
        table |= dict.fromkeys(_forms(word), _grade(said))
    for word, said in _entries(_IRREGULAR):
        table[word] = _grade(said)
    return table


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a table, each with what it says of them."""
    for entry in re.split(r"\s*\|\s*|\n", text.strip()):
        word, _, said = entry.partition(": ")
        yield word, said


@cache
def _adjectives() -> dict[str, str]:
    french = {form: said for forms, said in _entries(_FRENCH) for form in forms.split()}
    return {**french, **dict(_entries(_ADJECTIVES))}


def _noun(word: str) -> str:
    """Return what texts call that an adjective asks for: the weight, where it is asked "how heavy"."""
    return _adjectives().get(word.lower(), "").lstrip("-")


def _grade(said: str) -> Grade:
    words = said.lstrip("-")
    least = said == "--" or (said.startswith("-") and bool(words))
    times = words in _TIME
    return Grade((words,) if words else (), not least, (not least) if times else least)


def _forms(word: str) -> Iterator[str]:
    """Yield the comparative and superlative of an adjective, English and German."""
    stem = word[:-1] if word.endswith("e") else word
    stems = {stem, f"{stem}{stem[-1]}", re.sub("y$", "i", stem), _umlaut(stem)}
    for each in stems:
        yield from (f"{each}er", f"{each}est", f"{each}ere", f"{each}eren", f"{each}erer", f"{each}erem", f"{each}eres")
        yield from (f"{each}{end}" for end in ("ste", "sten", "ster", "este", "esten"))


def _umlaut(stem: str) -> str:
    place = max((stem.rfind(vowel) for vowel in "aou"), default=-1)
    return stem[:place] + stem[place].translate(str.maketrans("aou", "äöü")) + stem[place + 1 :] if place >= 0 else stem


_LONG = r"(?:expensive|powerful|silent|recent)"  # too long for endings
_GRADED_FRENCH = "|".join(form for forms, _ in _entries(_FRENCH) for form in forms.split())
_OF_LONG = rf"(?:(?:more|most|less|least)\s+{_LONG}(?:ly)?|(?:plus|moins)\s+(?:{_GRADED_FRENCH}))"
_MORE_OF = re.compile(rf"\b{_OF_LONG}\b", re.IGNORECASE)
_LASTING = re.compile(
    r"\b(?:been|existed|exists?)\b.*\blong(?:er|est)\b|\bfor longer\b|\bgibt es\b.*\blänger\b", re.IGNORECASE
)


SUPERLATIVE = re.compile(
    rf"\b(?:{_OF_LONG}|most|least|fewest|first|last|zuerst|zuletzt|meisten|wenigsten"
    r"|\w+(?:est|ste|sten|ster|stes))\b",
    re.IGNORECASE,
)
"""A word that asks for the greatest or least of several, or for what looks like one."""


def grade_of(question: str) -> Grade | None:
    """Return what the words of comparison of a question ask for, the first one that tells what; None without any."""
    if found := _MORE_OF.search(question):
        way, word = found[0].lower().split()
        grade = _grade(_adjectives()[word.removesuffix("ly")])
        more = way in ("more", "most", "plus")
        return grade._replace(greater=grade.greater == more, earlier=grade.earlier == more)
    if _LASTING.search(question):
        return _grades()["older"]
    text = re.sub(r"\bat (?:most|least)\b", "", question)
    grades = [_grades()[word] for word in re.findall(r"\w+", text.lower()) if word in _grades()]
    return next((grade for grade in grades if grade.words), grades[0] if grades else None)


def grade_words(question: str) -> list[str]:
    """Return the words of comparison of a question."""
    long = {word.lower() for found in _MORE_OF.finditer(question) for word in found[0].split()}
    return [word for word in re.findall(r"\w+", question) if word.lower() in _grades() or word.lower() in long]


_AMONG = re.compile(
    r"\W*(?:which|what|who|whose|welche\w*|wer|quel\w*|lequel|laquelle)\b(?!.*\b(?:than|als|que|before|after)\b)",
    re.IGNORECASE,
)


def superlative_of(question: str) -> Grade | None:
    """Return what the superlative of a question asks for, or its comparative: "Which of the two is cheaper?"."""
    said = [found for found in SUPERLATIVE.findall(question) if grade_words(found)]
    if not said:
        among = grade_of(question) if _AMONG.match(question) else None
        return among if among and among.words else None
    lasting = grade_of(question)
    return lasting if lasting and lasting.is_in_time else grade_of(" ".join(said))


_BEHIND = re.compile(
    r"(?: [\w-]+){1,3}?(?=\s*(?:[^\w\s-]|\Z)| (?:of|in|for|and|or|to|on|with|at|by|from|is|are|was|were|ha[sd]|have|do|"
    r"does|did|per|im|von|für|und|oder|zu|mit|bei|de|du|des|et|ou|pour)\b)"
)


def superlative_noun(question: str) -> list[str]:
    """Return the words of the noun behind a superlative: monthly and churn, of "the lowest monthly churn in May"."""
    superlative = next((found for found in SUPERLATIVE.finditer(question) if grade_words(found[0])), None)
    behind = _BEHIND.match(question, superlative.end()) if superlative else None
    return behind[0].split() if behind else []


class Comparison(NamedTuple):
    """Two things that a question compares, and in what: its other words."""

    sides: tuple[str, str]
    matter: str
    grade: Grade | None
    differs: bool = False  # it is asked by how much

    def query(self, side: str) -> str:
        """Return the words with which a search for one of the things begins."""
        return f"{side} {self.wording}".strip()

    @property
    def wording(self) -> str:
        """What is compared, in the words of the question and in words that texts have for it."""
        words = self.matter.split()
        measured = [noun for word in words if (noun := _noun(word))]
        graded = [] if self.grade is None or (words and self.grade.words == ("length",)) else self.grade.words
        founded = FOUNDING.split()[:2] if self.is_in_time else ()
        return " ".join(dict.fromkeys([*words, *measured, *graded, *founded]))

    @property
    def is_in_time(self) -> bool:
        """Whether dates are compared."""
        return bool(self.grade and self.grade.is_in_time)


_AND_BY = re.compile(r",?\s+(?:and|und)\s+(?:by|in|at|um)\s+(?:how|what|which|wie|welche\w*)\b[^,]*\Z", re.IGNORECASE)
"""What is computed anyway: "and by how much", "and in what years"."""


def comparison_of(question: str) -> Comparison | None:
    """Return what a question compares; None if it names no two things that it compares."""
    if len(question) > MOST_CHARS:
        return None
    text = _AND_BY.sub("", " ".join(strip_lead(question).rstrip("?. ").split()))
    graded = not _grades().keys().isdisjoint(re.findall(r"\w+", text.lower()))
    for form in _FORMS:
        found = _pattern(form).match(text) if graded or "{grades}" not in form else None
        if found and (comparison := _read(found)):
            return comparison
    return None


@cache
def _pattern(form: str) -> re.Pattern[str]:
    grades = "|".join(sorted(map(re.escape, _grades()), key=len, reverse=True))  # two thousand: slow to compile
    return re.compile(form.replace("{grades}", f"(?:{grades})"), re.IGNORECASE)


def _read(found: re.Match[str]) -> Comparison | None:
    parts = found.groupdict()
    rest = " ".join(filter(None, [parts.get("before"), parts.get("rest")]))
    a = _thing(parts["a"])
    words, other = a.split(), (parts.get("b") or "").split()
    verbs = (
        n
        for n, (before, word) in enumerate(pairwise(words), 1)
        if word.islower() and is_verb(word) and word not in other and before.lower() not in _BEFORE_NOUN
    )
    told = _THAN.search(found.string) and not _IS.match(found.string)  # not of "the access point or the firewall"
    verb = next(verbs, len(words)) if told else len(words)
    a, rest = " ".join(words[:verb]), " ".join([rest, *words[verb:]]).strip()  # "A weigh" more than B
    opened = parts.get("open") or parts.get("graded")
    if opened:
        b, more = _opening(opened, a)
        rest = f"{rest} {more}".strip()
    else:
        b = _thing(parts.get("b") or parts.get("named") or "")
    if not _FOR.search(a) and (behind := _FOR.search(b)):  # "than B for a large boat"
        b, rest = b[: behind.start()], f"{rest} {b[behind.start() :]}".strip()
    if not a or not b or (parts.get("named") and not (_NAMED.match(a) and _NAMED.match(b))):
        return None
    a, b, shared = _common(a, b)
    rest = f"{rest} {shared}".strip()
    if a.lower() == b.lower() or not (_is_thing(a) and _is_thing(b)):
        return None
    grade, matter = grade_of(SUPERLATIVE.sub(" ", rest)) or grade_of(rest), _matter(rest)
    measured = parts.get("open") or _OF_BOTH.search(rest) or _DIFFERENCE.search(rest)
    differs = bool(_DIFFERENCE.search(rest))
    return Comparison((a, b), matter, grade, differs) if grade or (measured and matter) else None


_THAN = re.compile(r"\b(?:than|als|que)\b", re.IGNORECASE)
_IS = re.compile(r"\W*(?:is|are|was|were|ist|sind|war|waren)\b", re.IGNORECASE)  # the verb of the whole question
_FOR = re.compile(r"\s+(?:for|für)\s+", re.IGNORECASE)
_BEFORE_NOUN = frozenset(("of", "for", "in", "the", "a", "an", "von", "für"))  # "the head of support"
_OF_BOTH = re.compile(
    r"\b(?:how|wie) (?!do\b|does\b|did\b|is\b|are\b|to\b)\w+ .*?\b(?:they|each|both|sie|beide)\b", re.IGNORECASE
)
_DIFFERENCE = re.compile(r"\b(?:difference|unterschied) (?:in|im|beim) ", re.IGNORECASE)


_NAMED = re.compile(r"(?!(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|\w+day\b)[A-ZÄÖÜ]|.*\d")
_NO_THING_WORDS = """
is are was were be been do does did has have had can could will would should may must i you we it they he she there and
which who what when how why where to not ist sind war hat haben kann ich wir sie es wer wann
"""
_NO_THING = frozenset(_NO_THING_WORDS.split())


def _is_thing(text: str) -> bool:
    """Whether a text may be the name of a thing: it is short, and no clause."""
    words = text.lower().split()
    return 0 < len(words) <= SIDE_WORDS and bool(terms(text)) and _NO_THING.isdisjoint(words)


def _thing(text: str) -> str:
    """Return the name of a thing without what introduces it."""
    text = re.sub(r"^(?:.*\b(?:between|either|entweder|zwischen)\b\s*)", "", text.strip(), flags=re.IGNORECASE)
    return re.sub(rf"^{_ARTICLE}", "", text.strip(" ,"), flags=re.IGNORECASE)


_POINTED = re.compile(
    r"(?:(?:the )?one|that|der|die|das|jene[rs]?)\s+(?:in|of|from|at|von|aus)\s+(?P<name>.+)", re.IGNORECASE
)
_PLACED = re.compile(  # "the quay in Sorrow", but no "head of support"
    r"(?!(?:head|chief|director|manager|leader|owner|chair)\b)(?P<noun>.+)\s+(?:in|of|from|at|von|aus)\s+(?:the\s+)?(?P<name>.+)",
    re.IGNORECASE,
)


def _common(a: str, b: str) -> tuple[str, str, str]:
    """Return two things without what both are of, and that: "the quay in Sorrow" and "the one in Yarrow"."""
    placed, other = _PLACED.fullmatch(a), _POINTED.fullmatch(b) or _PLACED.fullmatch(b)
    if placed and other and other.groupdict().get("noun", placed["noun"]).lower() == placed["noun"].lower():
        return placed["name"], other["name"], placed["noun"]
    words = a.split()
    if len(words) > 1 and words[0].islower() and words[0].endswith("s") and not b.split(maxsplit=1)[0].islower():
        return " ".join(words[1:]), b, words[0]  # "the pumps Marlin and Otter"
    return a, b, ""


def _opening(text: str, like: str) -> tuple[str, str]:
    """Return the thing that a text opens with, of as many words as another, or up to a verb; and what follows it."""
    words = re.sub(rf"^{_ARTICLE}", "", text, flags=re.IGNORECASE).split()
    size = len(like.split())
    verb = next((n for n, word in enumerate(words) if n and word.islower() and is_verb(word)), len(words))
    names = next((n for n, word in enumerate(words) if not word[:1].isupper() and not word[:1].isdigit()), len(words))
    end = names if names else min(size, verb)
    return " ".join(words[:end]), " ".join(words[end:])


_ASKING_WORDS = """
which who who's what what's how where welcher welche welches wer was wie wo is are was were do does did has have had can
two both of the they been much more most less least fewer come comes came with for and or by ist sind hat haben beiden
von den decide can't i'd get gets take takes use uses it out around so them would der die das mehr weniger als than
difference unterschied differ unterscheiden compared im beim qui est sont quel quelle lequel laquelle que entre
"""
_ASKING = frozenset(_ASKING_WORDS.split())


def _matter(rest: str) -> str:
    """Return the words that say in what things are compared, without those of asking and of comparison."""
    graded = {word.lower() for word in grade_words(rest)}
    words = [word for word in re.findall(r"[\w'’-]+", rest) if word.lower() not in _ASKING | graded | STOP_WORDS]
    kept = [word for word in words if terms(word)]
    return " ".join(dict.fromkeys(kept)) if keywords(" ".join(kept)) or kept else ""
