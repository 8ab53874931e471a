"""What texts say where a question says something else: related words, quantities, other spellings.

A question names a relation by its noun, a text tells it by its verb, or the other way round, and family relations are
told from the other end. Related terms count half; what the question itself says counts whole.

Quantities: what a text states without the word that a question has for it, as "21 g" answers "how heavy". Each kind
of quantity is a term, such as `<mass>`, which ranking treats as a word of the texts that state one. Only words for
the quantity itself ask for it: a sum of money answers "how much does it cost", but it need not be a salary. In
brackets stands what an answer states, but what stands for nothing by itself: a length need not be the depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache

from fathom.facts.numbers import CURRENCIES, UNITS
from fathom.retrieval.synonyms import SAME, phrases_of, same_terms
from fathom.retrieval.translation import translations_of
from fathom.text.languages import language_of_question
from fathom.text.plain import common_start
from fathom.text.terms import STOP_WORDS, terms

_RELATED = """
die: died; died: killed casualties; spouse: married; husband: married; wife: married; marry: married wife husband;
married: wife husband; father: son daughter; mother: son daughter; grandfather: father son daughter; grandmother:
mother son daughter; parents: son daughter; child: son daughter; stepchild: son daughter married; son: father mother;
daughter: father mother; director: directed; directed: director; author: wrote written writer; writer: wrote written;
wrote: author writer; written: author; composer: composed music; composed: composer; performer: performed singer band
song; performed: singer performer; singer: sang sung performed; producer: produced; creator: created; inventor:
invented; founder: founded established; founded: founder established; publisher: published; published: publisher
publication; owner: owned; owns: owned owner; record: recorded label; label: record; league: team club; team: club;
plays: player; older: born; younger: born; earlier: born died; later: born died; nationality: born; citizenship: born;
country: born nationality; school: university college educated; educated: university school college; studied:
university; employer: worked; occupation: career; buried: grave cemetery tomb; burial: cemetery; location: located;
population: inhabitants people; capital: city; border: bordering; length: long; mouth: flows; start: began; decide:
decision decided agreed; decided: decision agreed; decision: decided agreed; expensive: price; reason: because due
cause motivation rationale; cause: because reason due; increase: rose; problem: failure fault; end: ended; happen:
occurred; effect: result; election: elected; look: lookup search; lookup: access find resolve search; difference:
differ unlike whereas; tod: starb; autor: geschrieben schrieb; gründer: gegründet gründete; einwohner: bevölkerung;
bevölkerung: einwohner; default: otherwise unset omitted; limit: max restrict; minimum: min oldest lowest; max: limit;
min: minimum; oldest: minimum earliest; latest: newest last; highest: maximum max top; lowest: minimum min; timeout:
expire expiration lifetime wait; expire: lifetime expiration timeout; long: time seconds minutes hours days lifetime
duration; setting: option parameter configuration variable flag; option: flag parameter setting argument switch; flag:
option switch; parameter: option argument setting; configure: set setting configuration; configuration: config setting;
config: configuration; install: installation dependency; dependency: require requirement; package: library dependency
distribution; require: need necessary; need: require necessary; run: execute command start invoke; command: run
execute; execute: run; start: run launch; launch: start run; stop: shut terminate kill end; restart: reboot reload;
reload: restart refresh; enable: activate allow turn; disable: deactivate; turn: enable disable switch; remove: delete
drop removed deprecated; delete: remove; drop: remove removed discontinued; dropped: removed; create: generate make new
add; generate: create make; make: create; add: include create; error: failure exception fail; fail: error; failure:
error; code: status; status: code state; allow: enable; change: modify update edit; modify: change edit; update: change
upgrade new; upgrade: update; publish: release; published: release released; release: published version; version:
release; pay: cost payment reimburse; responsible: owner own lead maintain; owner: own responsible charge lead
maintainer; own: owner owned responsible charge lead maintainer; maintain: maintainer owner responsible; charge: lead
owner; lead: responsible owner charge; decide: agree consensus decision approve; decision: agreed consensus; agree:
decide consensus approve; vote: approve; report: disclose submit send file; submit: send file report; send: submit
request; check: verify validate test confirm; verify: check validate; test: check verify; validate: check verify; save:
store write keep; store: save; retention: keep stored; show: display print output; display: show print; print: show
output display; output: print result; retry: transient; retries: retry; help: support assist; support: help compatible;
contact: email reach ask; ask: contact request; meeting: minutes sync agenda; join: become member; sick: medical;
count: number total; number: count total; total: sum number; amount: sum quantity; size: bytes large; large: size; big:
size; memory: ram bytes; difference: differ compared unlike versus; use: usage using; usage: use; meaning: mean means
stand denote indicate; mean: indicate represent denote; stand: mean; represent: mean denote; folder: directory;
directory: folder path; file: path document; website: site url; url: address link; rename: name; shorten: reduce;
often: every frequency interval; frequency: interval every; interval: every frequency; recommended: should prefer
advise; recommend: should advise; advise: recommend should; should: recommended; why: because reason; safe: secure;
secure: safe security; security: secure vulnerability; vulnerability: security; hole: vulnerability; bug: issue defect;
issue: bug problem; key: token secret; password: credential; log: record; deadline: date; handed: submit due; notes:
note documentation; document: documentation; documentation: document; complete: done; speed: rate; machine: host server
computer; server: host; host: server; computer: machine; people: person persons member user respondents residents
inhabitants population employees staff; person: people individual; member: people; somebody: person; watch: observe
attend; observe: watch; attend: join; participate: take join; part: participate participation join; look: lookup
resolve search find; find: locate search; held: hold; hold: held; resolve: lookup; loud: sound; heavy: weigh; weigh:
mass; wide: broad; thick: thickness; headquarters: seat base; design: designer architect plan; architect: design
designer; sell: product; sold: sale; built: construction; build: construction; buy: buyer; live: inhabitants residents
population reside; inhabitants: population people; residents: population people; revenue: income; profit: earnings
income; employ: staff employees workforce; chief: lead; head: lead; run: lead head chief; nest: breed; describe:
description; boss: chief head director executive; manager: head chief; executive: chief; boat: ferry; wharf: quay pier
dock; quay: wharf pier; pier: quay wharf; product: makes produces; maker: makes; quiet: noise sound; noise: sound;
discover: described found discovery; discovery: discovered described; tolerate: allow permit exceed; exceed: above
maximum; inspect: check inspection; inspection: check inspect; check: inspect inspection; toll: charge fee; fare:
price; dues: charge; ride: crossing journey trip; trip: crossing; journey: ride; fewest: least; largest: biggest
longest main; biggest: largest longest; longest: largest; smallest: shortest least; shop: buy market; stall: market;
market: stall; breed: nest; payroll: employees staff; headcount: employees staff; picture: image; photo: image; earn:
profit pay; income: revenue profit; situated: located lies; crossing: cross passage; cross: crossing; opened: open
inaugurated; inaugurated: opened; collapse: fell; carry: payload load capacity; fuel: consumption; petrol: consumption;
diesel: consumption; paid: salary wage; start: joined; member: join; choose: decide select pick; select: choose; pick:
choose; led: lead head chief; lead: led head chief executive; leads: led head chief executive; leader: led; monday:
week weekly schedule cron; tuesday: weekday week weekly schedule cron; wednesday: weekday week weekly schedule cron;
thursday: weekday week weekly schedule cron; friday: week weekly schedule cron; saturday: weekday week weekly schedule
cron; sunday: weekday week weekly schedule cron; weekly: week schedule cron; daily: schedule cron; nightly: night
schedule cron; hourly: hour schedule cron; monthly: month schedule cron; periodically: schedule cron interval;
regularly: schedule regular interval; automatically: automatic schedule; schedule: cron interval recurring; cron:
schedule; change: immutable mutable alter mutate; lose: lost missing stolen; lost: lose missing stolen; laptop:
computer equipment device; catch: handle except; handle: catch except; crash: killed died fail failure; crashed: killed
died failed; complain: error warn fail; assign: bind binding; bind: assign; limit: budget; see: view read visible;
tidy: delete remove; spend: cost budget cap; built: builder; builder: built; rent: cost pay; deposit: cost pay; eat:
food; warehouse: store; store: warehouse; away: leave vacation holiday; version: changelog; release: changelog; undo:
restore; coûte: prix; coûtent: prix; price: preis prix; preis: price prix; prix: price preis tarif; weight: gewicht
poids; gewicht: weight poids; poids: weight gewicht; length: länge longueur; länge: length longueur; longueur: length
länge; size: größe taille; größe: size taille; taille: size größe; speed: geschwindigkeit vitesse; geschwindigkeit:
speed vitesse; vitesse: speed geschwindigkeit; date: datum; datum: date
"""


@cache
def _related_by_term() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for entry in _RELATED.split(";"):
        asked, _, said = entry.partition(":")
        [term] = terms(asked)
        table[term] = tuple(dict.fromkeys([*table.get(term, ()), *terms(said)]))
    return table


@cache
def related_terms(term: str) -> tuple[str, ...]:
    """Return the terms that texts use where a question uses this one."""
    return tuple(dict.fromkeys((*_related_by_term().get(term, ()), *same_terms(term))))


_SMALL_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
_GERMAN_NUMBERS = "zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|dreißig|hundert|tausend"
_NUMBER = (
    rf"(?:\d[\d.,]*|\b(?:half an?|{_SMALL_NUMBERS}|hundred|thousand|{_GERMAN_NUMBERS}))"
    r"(?:[ \u00a0-]|(?<=\d))(?:and a half )?"
)
_MANY = r"(?:(?:hundred|thousand|k|m|bn|million|billion|trillion)[ \u00a0-])?"
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_WEEKDAY = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
EVERY = (
    rf"every (?:other |{_SMALL_NUMBERS}|\d+|second|third|few)?\s?(?:(?:day|week|month|year|hour|minute|second)s?|"
    rf"{_WEEKDAY}|morning|evening|night|spring|summer|autumn|winter|quarter)"
)


def _measured(units: str, *dimensions: str) -> str:
    """Return the pattern of a number with a unit: one of a pattern, or by a name of `facts/numbers.py`."""
    named = [name for name, unit in UNITS.items() if unit.dimension in dimensions and len(name) > 2 and name.isalpha()]
    return rf"{_NUMBER}{_MANY}(?:{units}{'|' * bool(named)}(?i:{'|'.join(named)}))(?![\w²³])"


_HELD: Mapping[str, str] = {
    "<mass>": _measured(r"[mk]?g|t|tons?|pounds?|lbs?|ounces?|oz", "mass"),
    "<length>": _measured(r"[mck]?m|ft|yards?", "length"),
    "<area>": _measured(
        r"(?:[mck]?m|in|ft)²|ha|hectares?|acres?|(?:square|sq\.?) (?:(?:kilo)?met(?:re|er)s?|feet|miles?|k?m)"
    ),
    "<volume>": _measured(
        r"m³|[mc]?l|gallons?|pints?|barrels?|cubic (?:met(?:re|er)s?|feet|centimet(?:re|er)s?)", "volume"
    ),
    "<duration>": _measured(r"ms|s|h|hr|nights?|decades?", "time"),
    "<age>": (
        rf"{_NUMBER}(?:years?|Jahren?|Jahre)\b|\b(?:aged?|age of) \d|\d-year-old|"
        rf"{_NUMBER}(?:hours?|days?|weeks?|months?|Tage|Wochen|Monate) (?:old|of age|alt)\b|"
        r"\b(?:born|built|founded|established|geboren|gebaut|gegründet)\b[^.;\n]{0,30}\b(?:1\d|20)\d\d\b|"
        r"\b(?:1\d|20)\d\d (?:geboren|gebaut|gegründet)\b"
    ),
    "<speed>": _measured(
        r"km/h|m/s|mph|knots?|kn|(?:kilomet(?:re|er)s|miles|met(?:re|er)s) (?:an|per|a) (?:hour|second)|"
        r"[KMG]?bit/s|[KMG]bps"
    ),
    "<power>": _measured(r"[kMGm]?W|hp|horsepower|PS", "power"),
    "<pressure>": _measured(r"m?bar|[khM]?Pa|psi|atm|pascals?"),
    "<temperature>": rf"{_NUMBER}(?:°|degrees?\b|Grad\b|K\b)",
    "<data>": _measured(r"[KMGT]?i?B|bytes?|bits?", "data"),
    "<money>": (
        r"[$€£¥₹]\s?\d|\b(?:USD|EUR|GBP|CHF|JPY)\s?\d|"
        + _measured(r"pounds?|[Cc]ents?|rupees?|[$€£¥]|kr\.?", *CURRENCIES)
    ),
    "<share>": (
        rf"{_NUMBER}(?:%|per ?cent\b|Prozent\b|percentage points?)"
        r"|\b(?:a|one|two|three) (?:half|third|quarter|fifth)s?\b"
    ),
    "<people>": _measured(
        r"(?:\w+ )?(?:people|persons?|inhabitants|residents|citizens|employees|workers|staff|members|visitors|users|"
        r"respondents|participants)"
    ),
    "<sound>": _measured(r"dB(?:\(A\)|A)?|decibels?"),
    "<frequency>": (
        r"\b(?:once|twice|daily|hourly|weekly|monthly|yearly|annually|(?:times|once|twice) (?:an?|per|every)|"
        rf"(?:{_SMALL_NUMBERS}|\d+) times(?! (?:as|more|less|the|\w+er)\b)|"
        rf"(?:{_SMALL_NUMBERS}|\d+) (?:days|nights|hours|minutes) (?:an?|per|every|each) (?:day|night|week|month|year)|"
        rf"{EVERY}|täglich|wöchentlich|monatlich|jährlich|(?:ein|zwei|drei|vier)mal|"
        r"jede[mnrs]? (?:Tag|Woche|Monat|Jahr|Stunde|Minute|Quartal)|"
        r"alle (?:\w+ )?\w*(?:[Tt]age|[Ww]ochen|[Mm]onate|[Jj]ahre|[Ss]tunden|[Mm]inuten))\b"
    ),
    "<weekday>": rf"\b(?:{_WEEKDAY}|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch)s?\b",
    "<hour>": r"\b\d{1,2}:\d\d\b|\b\d{1,2} Uhr\b|\b\d{1,2} ?[ap]\.?m\b|\b(?:noon|midnight)\b|\bo'clock\b",
    "<year>": r"\b(?:1\d|20)\d\d\b",
    "<date>": rf"\b{MONTH} \d|\b\d{{1,2}}\.? {MONTH}|\b\d{{4}}-\d\d-\d\d\b",
    "<colour>": (
        r"\b(?:red|green|blue|yellow|orange|purple|violet|pink|brown|black|white|gr[ae]y|gold|golden|silver|turquoise|"
        r"crimson|scarlet|beige|cream)\b"
    ),
    "<version>": r"\b(?:v|version )?\d+\.\d+(?:\.\d+)?\b",
}
_ASKED = """
loud louder loudest quiet quieter quietest noise noisy noisier noisiest: <sound>
heavy heavier heaviest lighter lightest weigh weight mass schwer gewicht wiegt: <mass>
high large: (<length>) (<area>) (<volume>) (<data>) (<people>) (<share>)
tall taller tallest higher highest height deep deeper deepest depth wide wider widest width: (<length>)
distance: <length>
long longer longest shorter shortest length lang lange: <length> <duration>
far further: <length> <date>
big bigger biggest larger largest small smaller smallest size: (<length>) (<area>) (<volume>) (<data>) (<people>)
area: <area>
capacity volume: <volume> <people> <power>
duration time wait dauer dauert: <duration> <hour>
old older oldest age alt: <age> <year>
fast faster fastest slow slower slowest schnell: <speed> <duration>
speed: <speed>
power powerful strong stronger strongest: <power> <pressure>
pressure: <pressure>
hot hotter hottest warm cold colder coldest temperature: <temperature>
cost price expensive cheap cheaper cheapest charge pay money teuer kostet kosten preis coûte coûtent prix: <money>
percent percentage proportion share prozent anteil: <share>
population inhabitants residents headcount payroll staff workforce employees people persons: <people>
often frequency oft häufig: <frequency>
weekday: <weekday>
date: <date> <year>
colour color: <colour>
version: <version>
"""


AGE, DURATION = "<age>", "<duration>"
AGES = frozenset(terms("age born built alter geboren gebaut baujahr jahrgang"))
"""The terms that tell that a number or year in a row, item or field is an age: "born: 2014"."""
TIMES = frozenset(terms(" ".join(name for name, unit in UNITS.items() if unit.dimension == "time" and len(name) > 2)))
"""The terms of units of time, which tell that a bare number is a duration: "Delivery (weeks)"."""

_DECIMAL = re.compile(r"\d+\.\d+")
_ENTRIES = (entry.split(":") for entry in re.split(r"(?<=[>)])\n", _ASKED.strip()))
_HELD_BY_TERM = {term: tuple(held.split()) for asked, held in _ENTRIES for term in terms(asked)}


def quantities_of(term: str) -> list[str]:
    """Return the quantities, one of them stated by any answer, where a term of a question asks for it."""
    return [held.strip("()") for held in _HELD_BY_TERM.get(term, ())]


def stand_ins_of(term: str) -> list[str]:
    """Return the quantities that texts state in place of a term of a question."""
    return [held for held in _HELD_BY_TERM.get(term, ()) if is_quantity(held)]


def is_quantity(term: str) -> bool:
    """Whether a term stands for a kind of quantity."""
    return term in _HELD


def states(quantity: str, text: str) -> bool:
    """Whether a text states a quantity of a kind."""
    return bool(_pattern(quantity).search(text))


def without_quantities(text: str) -> str:
    """Return a text without the quantities that it states; numbers without a unit stay."""
    for quantity in _HELD:
        text = _pattern(quantity).sub(_if_decimal, text)
    return text


def _if_decimal(found: re.Match[str]) -> str:
    """Return a number such as 4.2, which need be no version, and nothing of what has a unit."""
    return found[0] if _DECIMAL.fullmatch(found[0]) else " "


@cache
def _pattern(quantity: str) -> re.Pattern[str]:
    return re.compile(_HELD[quantity])


_SEPARABLE = (
    "zusammen|zurück|weiter|heraus|durch|nach|fest|fort|frei|nieder|ab|an|auf|aus|bei|ein|her|hin|los|mit|um|vor|weg|zu"
)
_GERMAN_FORM = re.compile(
    rf"(?P<prefix>(?:{_SEPARABLE})?)(?:ge|zu)?(?P<root>[^\W\d_]{{3,}}?)"
    r"(?:ung|ungen|e|en|n|t|et|st|est|te|ete|ten|eten|tet|te[mnrs]|ete[mnrs]|ene[mnrs]?)"
)
_ENDINGS = ("", "e", "en", "t", "et", "st", "te", "ete", "ten", "eten", "ung", "ungen")
_OF_PARTICIPLE = ("t", "et", "en", "te", "ete", "ten", "eten")


INFLECTED, ALONE = 0.8, 0.4  # weight of another form of a word, and of a verb without the prefix that is said apart


def said_otherwise(question: str) -> dict[str, dict[str, float]]:
    """Return terms of a question with others that texts have for them, and their weights.

    These are forms of a word, one word or the initials for a phrase, and words of another language.
    """
    found: dict[str, dict[str, float]] = {}
    for said in (
        translations_of(question),
        phrases_of(question),
        _forms_of(question),
        _heads_of(question),
        _initials_of(question),
        {code: {"xx": SAME} for code in re.findall(r"\b[1-5]\d\d\b", question)},  # 404 is also a "4xx"
    ):
        for term, others in said.items():
            found.setdefault(term, {}).update(others)
    return found


def _forms_of(question: str) -> dict[str, dict[str, float]]:
    """Return the terms of other forms of a German question's verbs, with their weights, and of nouns made of verbs.

    "Kündige" is also "gekündigt" and "Kündigung", and "abrechnen" is "abgerechnet" or "rechnet ... ab". A form that no
    text has does no harm.
    """
    if language_of_question(question) != "de":
        return {}
    words = (
        word for word in re.findall(r"[^\W\d_]{5,}", question) if word.islower() or word.endswith(("ung", "ungen"))
    )
    found = ((term, form) for word in words for term in terms(word) if (form := _GERMAN_FORM.fullmatch(word.lower())))
    return {term: _inflected(form["prefix"], form["root"]) for term, form in found}


def _inflected(prefix: str, root: str) -> dict[str, float]:
    alone, whole = (" ".join(f"{stem}{ending}" for ending in _ENDINGS) for stem in (root, f"{prefix}{root}"))
    participles = " ".join(f"{prefix}ge{root}{ending}" for ending in _OF_PARTICIPLE)
    forms = terms(f"{whole} {participles} {prefix}zu{root}en")
    return {**dict.fromkeys(terms(alone), ALONE), **dict.fromkeys(forms, INFLECTED)}


_NAME = re.compile(r"[^\W\d_a-zäöü][\w'’-]+(?: (?:(?:and|de|des|for|of|on|the|und) ){0,2}[^\W\d_a-zäöü][\w'’-]+){1,4}")
FEWEST_INITIALS = 3  # of words that are no name


def _initials_of(question: str) -> dict[str, dict[str, float]]:
    """Return the terms of names, and of three key words side by side, with their initials.

    "Google Summer of Code" is also "GSoC" or "GSC". Initials of other words that no text has do no harm.
    """
    words = re.findall(r"[^\W\d_][\w'’-]*", question)
    runs = [words[first : first + FEWEST_INITIALS] for first in range(len(words) - FEWEST_INITIALS + 1)]
    runs = [run for run in runs if STOP_WORDS.isdisjoint(map(str.lower, run))]
    found: dict[str, dict[str, float]] = {}
    for run in [*runs, *(name[0].split() for name in _NAME.finditer(question))]:
        naming = [word for word in run if word.lower() not in STOP_WORDS]
        initials = {term for each in (run, naming) for term in terms("".join(word[0] for word in each))}
        if len(naming) > 1:
            for term in terms(" ".join(naming)):
                found.setdefault(term, {}).update(dict.fromkeys(initials - STOP_WORDS, SAME))
    return found


LEAST_HEAD, LEAST_MODIFIER = 5, 3  # letters of the last part of a German compound, and of what stands before it
HEAD = 0.6  # weight of the last part alone


def _heads_of(question: str) -> dict[str, dict[str, float]]:
    """Return the terms of a German question's nouns with what may be the last part of a compound, and their weights.

    "Hafengebühr" is also "Gebühr": the last part says what it is. A part that no text has does no harm.
    """
    return {
        noun: {
            head: HEAD
            for start in range(LEAST_MODIFIER, len(noun) - LEAST_HEAD + 1)
            if (head := noun[start:]) not in STOP_WORDS
        }
        for noun in nouns_of(question)
    }


def nouns_of(question: str) -> frozenset[str]:
    """Return the terms of the words with a capital in a German question; nothing of questions in other languages.

    Where it is typed without capitals, they are those of all words that may be nouns.
    """
    if language_of_question(question) != "de":
        return frozenset()
    words = re.findall(rf"\b[A-ZÄÖÜa-zäöü][a-zäöüß]{{{LEAST_HEAD - 1},}}", question)
    capital = [word for word in words if not word[0].islower()]
    small = [word for word in words if word not in STOP_WORDS]
    return frozenset(term for word in (small if question[1:].islower() else capital) for term in terms(word))


def compounds_of(noun: str, vocabulary: Iterable[str]) -> list[str]:
    """Return the terms of a vocabulary that are German compounds whose last part is a noun, given as its term."""
    if len(noun) < LEAST_HEAD:
        return []
    return [word for word in vocabulary if word.endswith(noun) and len(word) >= len(noun) + LEAST_MODIFIER]


FAMILY_LETTERS = 5  # that words of one family share at least
FAMILY_SHARE = 0.6  # of the longer word that they share
MISSPELT_LETTERS = 5  # of a word in which one letter may be wrong: in shorter ones it makes another word
ALIKE = 0.77  # similarity from which a word may be meant by another, by difflib
ALIKE_LETTERS = 6  # of such a word at least
SUGGESTED = 2


def is_family(a: str, b: str) -> bool:
    """Whether two stems are different and of one family, such as "elast" and "elastic"."""
    common = common_start(a, b)
    return a != b and common >= FAMILY_LETTERS and common >= FAMILY_SHARE * max(len(a), len(b))


def is_misspelt(a: str, b: str) -> bool:
    """Whether two words of at least five letters differ by one letter: wrong, missing, added, or two exchanged."""
    if min(len(a), len(b)) < MISSPELT_LETTERS or abs(len(a) - len(b)) > 1 or a == b or not (a + b).isalpha():
        return False
    start = common_start(a, b)
    rest_a, rest_b = a[start:], b[start:]
    exchanged = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
    return rest_a[1:] == rest_b[1:] or rest_a[1:] == rest_b or rest_a == rest_b[1:] or exchanged


def meant_by(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Return the words that a misspelt one may stand for, of a vocabulary in lower case with counts; the best first.

    The first letter is seldom wrong. Words that are one letter apart come alone, the most frequent first; else those
    that are spelt alike.
    """
    word = word.lower()
    like = sorted(known for known in vocabulary if known[:1] == word[:1] and abs(len(known) - len(word)) <= 2)
    if near := [known for known in like if is_misspelt(word, known)]:
        return sorted(near, key=lambda known: -vocabulary[known])[:SUGGESTED]
    return get_close_matches(word, like, SUGGESTED, ALIKE) if len(word) >= ALIKE_LETTERS else []
