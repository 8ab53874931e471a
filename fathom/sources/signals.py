"""Signs in a text of its author, its basis, its tone and its completeness.

Each sign is a pattern a person can check. The patterns are mainly English; a text in another language shows fewer
signs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fathom.models import SourceText
from fathom.text.parsed import ParsedText, parse
from fathom.text.terms import terms

HEAD = 2_000  # characters in which a text names its author
REACH = 60  # characters into the next sentence, since one seems to end at "et al."
AUTHOR_START = 0.4  # the document gives steps without a start: from here all steps up together make 1
CONTENT_START = 0.5
REFERENCES = 3  # least number that counts as citing
SOURCED = 2  # least number of figures with a source
VOICES = 2  # least number of different words of balance
SHORT_WORDS = 500  # characters; a longer text is not a paywall's teaser
REPEATED = 0.3  # share of sentences said before from which a text looks assembled
LEAST_SENTENCES = 20


class _Sign(NamedTuple):
    """A pattern, and terms: every matching sentence has one of them, so most sentences need not be tried."""

    terms: frozenset[str]
    pattern: re.Pattern[str]


def _sign(words: str, pattern: str) -> _Sign:
    return _Sign(frozenset(terms(words)), re.compile(pattern, re.IGNORECASE | re.MULTILINE))


_NAME = r"[A-Z][\w'’.-]+(?: [A-Z][\w'’.-]*){1,3}"
_BYLINE = re.compile(
    rf"(?m)(?:^|[.|·] ?)[*_]*(?:[Bb]y|BY|[Ww]ritten by|[Aa]uthors?:|[Rr]eviewed by|[Vv]on)[*_]* \[?{_NAME}"
)
_EXPERT = re.compile(rf"\b(?:Dr\.?|Prof\.?|Professor) {_NAME}|{_NAME},? (?:Ph\.?D|M\.?D|MSc|DPhil)\b\.?")
_AFFILIATION = re.compile(
    r"\b(?:University|Universität|Université|Universidad|Department|Faculty|School|Institute|Institut|Laboratory|Hospital|"
    r"Academy|Centre|Center) (?:of|for|de|für)\b|\b[A-Z]\w+ (?:University|Institute|Laboratory|College)\b"
)
_REFERENCE = re.compile(
    r"\[\d{1,3}\]|\bdoi\.org/|\bdoi: ?10\."
    r"|\b[A-Z][\w'’-]{1,40} (?:et al\.,?|(?:and|&) [A-Z][\w'’-]{1,40},?) \(?(?:19|20)\d\d"
    r"|\([A-Z][\w'’-]{1,40},? (?:19|20)\d\d[a-z]?\)|\]\(https?://|(?<!\()https?://"
)
_BIBLIOGRAPHY = re.compile(
    r"(?mi)^\W{0,4}(?:references|bibliography|works cited|sources|literatur|einzelnachweise)\W{0,4}$"
)
_ATTRIBUTION = _sign(
    "according source reported data figures survey study report laut Angaben",
    r"\b(?:according to|source:|reported by|data from|figures from|survey (?:by|of)|study (?:by|in|from)|"
    r"report (?:by|from)|laut|nach Angaben)\b",
)
_FIGURE = re.compile(r"(?<![\[\w/.-])\d+(?:[.,]\d+)*(?![\]\w/-])")
_BALANCE = _sign(
    "however hand contrast critics limitation although nevertheless conversely trade tradeoff drawback caveat "
    "disagree jedoch allerdings hingegen",
    r"\b(?:however|on the other hand|in contrast|by contrast|critics|limitations?|although|nevertheless|conversely|"
    r"trade-?offs?|drawbacks?|caveats?|disagree|jedoch|allerdings|hingegen)\b",
)
_SENSATION = _sign(
    "shocking believe miracle blowing mindblowing dropping jawdropping bombshell hate happens truth want exposed "
    "secret see mustsee unbelievable insane amazing surprise amaze",
    r"\b(?:shocking|you (?:won['’]?t|will not) believe|(?:amazing|incredible) (?:facts|things|secrets)|"
    r"will (?:surprise|amaze|shock) you|miracle|mind-?blowing|jaw-?dropping|bombshell|doctors hate|what happens next|"
    r"the truth about|they don'?t want you to|exposed|secret (?:trick|they)|must-?see|unbelievable|insane)\b",
)
_PAYWALL = _sign(
    "sign continue subscribe subscriber reading read login unlock buy purchase access account abonnieren abo lesen "
    "weiterlesen",
    r"\b(?:subscribe (?:now )?(?:to|for) (?:continue|read|unlimited|full|keep)|subscribers? only|subscriber-only|"
    r"for subscribers|already a subscriber|to (?:continue|keep) reading|read the full (?:article|story)|"
    r"(?:sign|log) in to (?:read|continue)|create (?:a free|an) account to|unlock (?:this|the full) (?:article|story)|"
    r"buy (?:this )?article|purchase access|access through your institution|"
    r"jetzt abonnieren|mit .{0,12}abo (?:weiter)?lesen)\b",
)
# A page says of itself that somebody pays for it; also in German, where it must.
_INTEREST = _sign(
    "sponsored sponsoring advertorial affiliate commission partnership paid newswire prnewswire businesswire wire "
    "release anzeige werbung provision advertisement gesponsert bezahlt",
    r"^\W{0,4}(?:(?:paid|sponsored) (?:content|post|partnership)|advertorial|anzeige|werbung)\W{0,4}$"
    r"|\b(?:this|our) (?:\w+ )?(?:article|content|guide|page|post|review|site|story|website) (?:is|was) "
    r"(?:sponsored|paid for|an? (?:paid )?advertisement)\b"
    r"|\b(?:dieser|unser) (?:Artikel|Beitrag|Text) (?:ist|wird|wurde) (?:\w+ ){0,4}(?:gesponsert|bezahlt)\b"
    r"|\b(?:contains?|includes?|uses?|has|enth(?:ä|ae)lt) affiliate[ -]links?\b"
    r"|\b(?:we|I) (?:may |might |can )?(?:earn|get|receive) an? (?:\w+ )?commission\b"
    r"|\b(?:wir|ich) (?:erhalten|erhalte|bekommen|bekomme) eine (?:\w+ )?Provision\b"
    r"|\bfor immediate release\b|/PRNewswire/|\((?:business wire|globe ?newswire)\)",
)
_MACHINE = _sign(
    "AI language knowledge training update fulfill regenerate ChatGPT artificial GPT certainly insert",
    r"(?<![\"'“‘„«])\b(?:as an AI (?:language )?model|as a large language model|(?:as of|since) my last (?:knowledge )?"
    r"(?:update|training)|my knowledge cut-?off|I cannot fulfill (?:this|that|your) request|regenerate response|"
    r"(?:written|generated|created) (?:by|with|using) (?:ChatGPT|an? AI|artificial intelligence|GPT-\d)|"
    r"certainly! here (?:is|are)|\[insert [a-z ]{3,30}\])",
)


class Signals(NamedTuple):
    """The signs in a text."""

    expert: bool  # a name with a title or degree
    affiliation: bool
    byline: bool
    references: bool
    sourced_data: bool
    balanced: bool
    sensational: bool
    unsourced: bool  # neither a reference nor an attribution anywhere
    paywalled: bool
    interested: bool  # it says that somebody pays for it, or is a press release
    machine_made: bool


def read_signals(source: SourceText) -> Signals:
    """Look for the signs; missing signs in an excerpt mean nothing."""
    text, head, parsed = source.text, source.text[:HEAD], parse(source.text)
    references = _matches(text, parsed, _REFERENCE, filter(_of_reference, parsed.occurrences))
    cites = len(references) >= REFERENCES or bool(_BIBLIOGRAPHY.search(text))
    attributions = _found(text, parsed, _ATTRIBUTION)
    expert = bool(_EXPERT.search(head))
    signs = [*attributions, *references]
    around = (text[max(0, sign.start() - 150) : sign.start()] + text[sign.end() : sign.end() + 100] for sign in signs)
    words = parsed.length(range(len(parsed)))
    return Signals(
        expert=expert,
        affiliation=bool(_AFFILIATION.search(head)),
        byline=expert or bool(_BYLINE.search(head)),
        references=cites,
        sourced_data=sum(bool(_FIGURE.search(near)) for near in around) >= SOURCED,
        balanced=len({found[0].lower() for found in _found(text, parsed, _BALANCE)}) >= VOICES,
        sensational=_is_sensational(source.title, text, len(_found(text, parsed, _SENSATION)), words),
        unsourced=source.full and not (cites or attributions),
        paywalled=words < SHORT_WORDS and bool(_found(text, parsed, _PAYWALL)),
        interested=source.kind == "web" and bool(_found(text, parsed, _INTEREST)),
        machine_made=bool(_found(text, parsed, _MACHINE)) or _repeats(parsed),
    )


def _found(text: str, parsed: ParsedText, sign: _Sign) -> list[re.Match[str]]:
    return _matches(text, parsed, sign.pattern, sign.terms)


def _matches(text: str, parsed: ParsedText, pattern: re.Pattern[str], held: Iterable[str]) -> list[re.Match[str]]:
    """Return the matches of a pattern that begin in a sentence with one of some terms, in reading order."""
    found: list[re.Match[str]] = []
    for first, last in _stretches(sorted({number for term in held for number in parsed.occurrences.get(term, ())})):
        start, end = parsed.sentence(first).start, parsed.sentence(last).end
        matches = pattern.finditer(text, start, min(len(text), end + REACH))
        found += [match for match in matches if match.start() < end]
    return found


def _stretches(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of each run of consecutive numbers: text is searched once, not again by `REACH`."""
    first = 0
    for place, number in enumerate(numbers, 1):
        if place == len(numbers) or numbers[place] > number + 1:
            yield numbers[first], number
            first = place


def _of_reference(term: str) -> bool:
    return term[0].isdigit() or term in ("al", "doi", "http", "https")


def author_authority(signals: Signals, institutional: bool) -> float:
    """Return the author's part of credibility; `institutional`: the site itself is the institution behind its pages."""
    return AUTHOR_START + 0.3 * signals.expert + 0.2 * (signals.affiliation or institutional) + 0.1 * signals.byline


def content_score(signals: Signals) -> float:
    """Return the content's part of credibility."""
    up = 0.2 * signals.references + 0.2 * signals.sourced_data + 0.1 * signals.balanced
    return CONTENT_START + up - 0.2 * (signals.sensational or signals.interested) - 0.1 * signals.unsourced


def is_sensational_title(title: str) -> bool:
    """Whether a title is clickbait."""
    shouts = title.count("!") > 1 or (title.isupper() and len(title.split()) > 3)
    return shouts or bool(_SENSATION.pattern.search(title))


def _is_sensational(title: str, text: str, found: int, words: int) -> bool:
    """Whether a title is sensational, or a text is for its length."""
    if is_sensational_title(title):
        return True
    cries = found + (len(re.findall(r"\w!(?=\s|\Z)", text)) / 2 if "!" in text else 0)
    return cries > 2 and cries * 300 > words


def _repeats(parsed: ParsedText) -> bool:
    """Whether a text says many of its sentences more than once."""
    said = [s.clean.casefold() for s in parsed.sentences if s.kind == "prose" and len(s.text) > 40]
    return len(said) >= LEAST_SENTENCES and 1 - len(set(said)) / len(said) > REPEATED
