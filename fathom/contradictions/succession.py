"""Which of two statements replaces the other, if one is later: another number, owner or decision for a thing.

The later of two dates alone proves nothing, since documents are about different things. So both must be about the
same thing by their words, and differ in one value of the same kind; where the later one says that something changes
("now", "instead of", "takes over"), their other words may differ more. A wrong replacement misleads: in doubt there
is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from fathom.contradictions.assertions import Assertion, assertion_of
from fathom.contradictions.finding import differ
from fathom.contradictions.restating import restates
from fathom.facts.dates import MONTHS, WEEKDAYS, Date, find_dates, of_iso
from fathom.facts.extraction import Facts, Figure, agree, blanked, facts_of, figures_of
from fathom.models import SourceText
from fathom.text.messages import unstamped
from fathom.text.sentences import Sentence, fences, split_sentences
from fathom.text.tables import RULE, cells_of_row
from fathom.text.terms import query_terms, terms

MOST_WORDS = 60

_CHANGE = re.compile(
    r"\b(?:now|currently|no longer|from now on|instead of|rather than|in place of|"
    r"replac(?:es?|ed|ing)|supersed(?:es?|ed|ing)|takes? over|took over|taking over|hand(?:s|ed) over|"
    r"(?:moved?s?|change[sd]?|switch(?:es|ed)?|raised|reduced|goes|went|lowered|increased|decreased|rises|rose|drops|"
    r"dropped|cut|postponed|delayed|rescheduled|brought forward|pushed back) (?:from|to)|"
    r"revers(?:es?|ed)|revok(?:es?|ed)|revis(?:es?|ed)|amend(?:s|ed)|overturn(?:s|ed)|"
    r"new (?:owner|lead|price|date|deadline|limit))\b",
    re.IGNORECASE,
)
_OLD = re.compile(
    r"\b(?:instead of|rather than|in place of|no longer|replac(?:es?|ed|ing)|supersed(?:es?|ed|ing)|"
    r"revers(?:es?|ed)|revok(?:es?|ed)|overturn(?:s|ed))\s+"
    r"(?P<old>[^,;.()]{2,80}?)"
    r"(?=\s+(?:for|in|on|at|as|to|because|since|with|by|is|are|was|were|has|have)\b|[,;.()]|\Z)"
    r"|\bfrom\s+(?P<once>[^,;()]{1,40}?)\s+to\b",
    re.IGNORECASE,
)
# "Postponed to", "agreed to move the fair to"; in German the verb stands behind the date: "auf den 12. Mai verlegt".
_MOVED = re.compile(
    r"\b(?:(?:postpone|reschedule|move)[ds]?|(?:delay|shift)(?:s|ed)?|(?:bring|brought) forward|push(?:es|ed)? back)"
    r"(?: [^,;.?!]{3,60}?)? to (?:the )?\Z",
    re.IGNORECASE,
)
# "They now come on 28 April", "the new date is 28 April", "on 28 April at 10:30 instead".
_NOW_ON = re.compile(
    r"\b(?:(?:now|jetzt|nun)\b(?: [^\s,;.?!]+){0,4}? (?:on|at|am)"
    r"|(?:new (?:date|day|time)|neuer? (?:tag|termin))\b[^,;.?!]{0,20}) (?:the )?\Z",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"(?:,? at \d[\d:.]*(?: ?[ap]\.?m\.?)?)?,? instead\b(?! of\b)", re.IGNORECASE)
# What is moved may have its name in the subject of the mail alone: "our next get-together".
_UNNAMED = re.compile(
    r"\b(?:meeting|get-together|gathering|event|appointment|session|it|they|this|that|date|termin|treffen|sitzung|versammlung|"
    r"veranstaltung|er|es|sie)\b",
    re.IGNORECASE,
)
_TO_GERMAN = re.compile(r"\bauf (?:den )?\Z")
_MOVED_GERMAN = re.compile(r"(?: \w+){0,3} (?:verschoben|verlegt|vertagt|vorgezogen)\b")
_SINCE = re.compile(
    r",?\s*\b(?:as of|from|since|starting|effective(?: from)?|with effect from)\s+(?:the )?\Z", re.IGNORECASE
)
_NOW = re.compile(r"\b(?:now|currently|new)\b ?", re.IGNORECASE)
# Introductions that name the speaker or the decision: "We decided that", "The earlier decision is revised:".
_TOLD = re.compile(
    r"\A(?:[^,;:.]{1,40}\b(?:decided|agreed|resolved|confirmed|announced)(?: [^,;:.]{1,20})? that +"
    r"|[^,;:.]{0,40}\b(?:decision|decided|agreed|resolved|resolution|revised|revision|amended|amendment|corrected|"
    r"correction|update|updated)\b[^,;:.]{0,30}: +)",
    re.IGNORECASE,
)
_NO_LONGER = r"(?:revis|revers|cancel|withdr|revok|chang|overturn|replac|supersed|dropp)\w*"
# "The decision of 11 March is revised", "Decision of Nov. cancelled", "the October decision is withdrawn".
_REVOKED = re.compile(
    rf"\b(?:decision|resolution|agreement)\s+(?:of|from|made (?:on|in))\s+(?:the\s+)?"
    rf"(?P<when>[\w.]+(?: [\w.]+){{0,2}}?)\s+(?:(?:is|was|has been)\s+)?{_NO_LONGER}"
    rf"|\bthe\s+(?P<month>\w+)\s+(?:decision|resolution|agreement)\s+(?:is|was|has been)\s+{_NO_LONGER}",
    re.IGNORECASE,
)
_IN_SECTION = r"(?: (?:in|under|of) (?:section|clause|paragraph|article|§) ?[\w.()]+)?"
# "The rent in section 3 is raised to €1,990", "subletting under section 7 is no longer allowed".
_AMENDS = re.compile(
    rf"\A\W*(?:(?:the|an?) )?(?P<what>[^,;:.]{{2,60}}?){_IN_SECTION} (?:is|are|was|were|will be) "
    r"(?:(?:raised|lowered|reduced|increased|changed|cut|corrected) to\b|no longer (?P<ended>[a-z]+))",
    re.IGNORECASE,
)
_NOT = re.compile(r", not ")  # "€10, not €15"
_SAID_OF = re.compile(r" (?:is|are|was|were|costs?|amounts? to|may|must|can) ")
_PERMITS = re.compile(r"(?<=[a-z] )may(?= [a-z])")
_OPEN = re.compile(
    r"\b(?:if|unless|whether|would|could|might|should we|propos\w+|suggest\w*|consider\w*|discuss\w*|question|maybe|"
    r"perhaps|let's|needs? to|wants? to|meant to|seems?|example|e\.g\.|had been|used to|previously|formerly)\b|\?",
    re.IGNORECASE,
)
_DECISION = re.compile(r"\b(?:decision|decided|agreed|resolved|approved|consensus)\b", re.IGNORECASE)
# Deciding for one of these decides against the others.
_CHOICE = re.compile(r"\b(?:use|choose|adopt|pick|go with|host|meet|hold|store|move|keep|migrate|run)\b", re.IGNORECASE)
_ROLE = re.compile(
    r"\b(?:own(?:s|ers?|ed)?|lead(?:s|er)?|led|responsible|in charge|maintain(?:s|er|ed)?|manage[sr]|takes? over|"
    r"look(?:s|ed) after|takes? care of)\b",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?P<key>[^\W\d][^:.|]{1,60}?)\s*:\s+(?P<value>\S.*)", re.DOTALL)
_MARKS = re.compile(r"[*_`]+|\{%.*?%\}|\S*/\S*/\S*|^\s*(?:[-*+]|\d{1,3}[.)])\s+|\[[^\]]{0,80}\]")
# Words for a change, an owner or a statement, which do not name the subject.
_ASIDE = frozenset(
    terms("""
now currently new longer instead rather place replace supersede take over hand move change switch raise reduce lower
increase decrease rise drop cut go reverse revoke overturn effect effective own owner lead leader led responsible charge
maintain maintainer manage manager decision decide agree resolve approve consensus use choose adopt pick meet hold will
is are be become set stay item today per month year seat previous current start plan schedule postpone delay push due
expect shift reschedule findet finden statt verschoben verlegt vertagt
    """)
)
_PRICES = frozenset(terms("price cost costs fee fees priced charge"))
_MONTHS = frozenset(terms(" ".join(MONTHS)))
_MEETINGS = frozenset(terms("minutes meeting standup sync retrospective protocol agenda"))
# Of a mail's subject, what does not identify a thing.
_UNTOLD = (_ASIDE - _MEETINGS) | frozenset(terms("re aw fw fwd wg sv antw rv tr date dates termin time note change"))


class ReadStatement(NamedTuple):
    """One statement: a sentence, or the value of a field or cell under its name."""

    text: str
    key: frozenset[str]  # terms of the field's name; empty for a sentence
    title: frozenset[str]  # terms of the document's title, without dates
    about: frozenset[str]  # content terms, without values and words of change
    names: frozenset[str]
    days: frozenset[str]  # weekdays
    facts: Facts
    figures: tuple[Figure, ...]
    owned: bool  # it says who has something
    decided: bool
    chosen: bool  # it decides among several possibilities
    changes: bool  # it says that something changes
    old: frozenset[str]  # terms of the statement that no longer holds
    moved_to: Date | None  # "postponed to 17 May"
    assertion: Assertion | None  # the sentence in the form that contradictions are found by
    open: bool  # it supposes, asks, or describes the past
    minutes: bool  # minutes of a meeting: only its decisions stay valid
    date: Date | None = None  # of its text, if that states one
    subject: frozenset[str] = frozenset()  # terms of the subject of its mail that identify what it is about
    revokes: Date | None = None  # the day or month of the decision that it says no longer holds


@lru_cache(maxsize=4096)
def readings(markdown: str, title: str, date: str = "", subject: str = "") -> tuple[ReadStatement, ...]:
    """Return the statements of a quotation: its sentences, items and the cells of its rows; code has none.

    `date`: of its text, as YYYY-MM-DD or YYYY-MM. `subject`: of its mail, or what else its text is called.
    """
    day = of_iso(date) if date else None
    for fence in reversed(list(fences(markdown))):
        markdown = markdown[: fence.start] + markdown[fence.end :]
    named = title_terms(title)
    called = frozenset(content_terms(subject)) - _UNTOLD
    return tuple(reading._replace(date=day, subject=called) for reading in _each(markdown, named))


def title_terms(title: str) -> frozenset[str]:
    """Return the terms of a title without numbers and months, in which editions of one document differ."""
    return frozenset(term for term in query_terms(title) if not term.isdigit()) - _MONTHS


def content_terms(text: str) -> list[str]:
    """Return the terms of a text without function words; all words for prices count as one term."""
    return ["price" if term in _PRICES else term for term in query_terms(text)]


def _each(markdown: str, title: frozenset[str]) -> Iterator[ReadStatement]:
    header: list[str] = []
    previous = above = ""
    for sentence in split_sentences(markdown):
        text = sentence.text.strip()
        if sentence.kind in ("table", "rule"):
            if RULE.match(text):
                header = cells_of_row(previous)
            elif header:
                yield from _row(header, cells_of_row(text), title)
            previous = text
        elif text.endswith(":"):
            above = text
        elif reading := _sentence(sentence, title, above):
            yield reading


def _row(header: list[str], cells: list[str], title: frozenset[str]) -> Iterator[ReadStatement]:
    for name, cell in zip(header[1:], cells[1:], strict=False):
        if cells[0] and name and cell and not cells[0].isdigit():
            yield _reading(f"{cells[0]} {name}: {cell}", frozenset(content_terms(f"{cells[0]} {name}")), title)


def _sentence(sentence: Sentence, title: frozenset[str], above: str) -> ReadStatement | None:
    text = " ".join(_MARKS.sub("", unstamped(sentence.clean)).split())
    field = _FIELD.fullmatch(text)
    if sentence.kind == "heading" and (not field or sentence.text.startswith("#")):
        return None
    if sentence.kind == "code" or text.endswith((":", "?")) or not 2 <= len(text.split()) <= MOST_WORDS:
        return None
    named = field and not _TOLD.match(text)
    key = content_terms(f"{above} {field['key']}") if field and named else ()
    return _reading(text, frozenset(key), title)


def _reading(text: str, key: frozenset[str], title: frozenset[str]) -> ReadStatement:
    facts = facts_of(text)
    figures = tuple(figures_of(facts))
    plain = re.sub(r"\d+", " ", blanked(facts.undated, ((f.start, f.end) for f in figures)))
    named = (word for word in re.findall(r"\w+", plain) if word.lower().removesuffix("s") in WEEKDAYS)
    days = frozenset(terms(" ".join(named)))
    decided = bool(_DECISION.search(text))
    moved_to = next((d.date for d in facts.dates if _is_moved(facts.text, d.start, d.end)), None)
    old = frozenset(term for match in _OLD.finditer(text) for term in content_terms(match["old"] or match["once"]))
    return ReadStatement(
        text=text,
        key=key,
        title=title,
        about=frozenset(content_terms(plain)) - _ASIDE,
        names=frozenset(terms(" ".join(word for name in facts.names for word in name.words))) - days,
        days=days,
        facts=facts,
        figures=figures,
        owned=bool(_ROLE.search(text)),
        decided=decided,
        chosen=decided and bool(_CHOICE.search(text)),
        changes=bool(moved_to or _CHANGE.search(text)),
        old=old,
        moved_to=moved_to,
        assertion=None if key else assertion_of(_undated(facts), (), " ".join(sorted(title))),
        open=bool(_OPEN.search(text)),
        minutes=not title.isdisjoint(_MEETINGS),
        revokes=_revoked_date(text),
    )


_REPLACES = re.compile(r"\b(?:replac|supersed|ersetz|abgelöst)\w*", re.IGNORECASE)
_EDITION = re.compile(
    r"\b(?:version|edition|revision|issue|previous|earlier|former|old(?:er)?|fassung|ausgabe|bisherige\w*|vorherige\w*|"
    r"frühere\w*)\b",
    re.IGNORECASE,
)
OPENING_CHARS = 1_500  # of a document, in which it says what it replaces


def replaced_documents(texts: Sequence[SourceText]) -> dict[str, SourceText]:
    """Return the latest edition of each document that has a later one, by the id of the earlier one.

    Their titles are the same apart from numbers and months, both are dated, and one of the two says at its beginning
    that an edition is replaced. Minutes replace no minutes.
    """
    editions: dict[frozenset[str], list[SourceText]] = {}
    for text in texts:
        title = title_terms(text.title)
        if text.kind == "document" and text.published and title and title.isdisjoint(_MEETINGS):
            editions.setdefault(title, []).append(text)
    replaced: dict[str, SourceText] = {}
    for each in editions.values():
        *earlier, last = sorted(each, key=lambda text: text.published)
        for text in earlier:
            known = min(len(text.published), len(last.published))
            is_later = text.published[:known] < last.published[:known]
            if is_later and (_tells_of_replacement(last) or _tells_of_replacement(text)):
                replaced[text.source_id] = last
    return replaced


def _tells_of_replacement(text: SourceText) -> bool:
    sentences = split_sentences(text.text[:OPENING_CHARS])
    return any(_REPLACES.search(each.text) and _EDITION.search(each.text) for each in sentences)


def _revoked_date(text: str) -> Date | None:
    """Return the day or month of the decision that a text says no longer holds."""
    found = _REVOKED.search(text)
    if not found:
        return None
    when = found["when"] or found["month"]
    months = (MONTHS[word] for word in re.findall(r"[^\W\d_]+", when.lower()) if word in MONTHS)
    dates = [each.date for each in find_dates(when)] or [Date(0, month) for month in months]
    return dates[0] if dates else None


def _is_moved(text: str, start: int, end: int) -> bool:
    """Whether a text says that something is moved to the date at a place in it."""
    if _MOVED.search(text[:start]) or _NOW_ON.search(text[:start]) or _INSTEAD.match(text[end:]):
        return True
    return bool(_TO_GERMAN.search(text[:start]) and _MOVED_GERMAN.match(text[end:]))


def _undated(facts: Facts) -> str:
    """Return a statement without the date from which it holds, and without "now" and the like."""
    text = facts.text
    for found in reversed(facts.dates):
        before = _SINCE.sub("", text[: found.start])
        if before != text[: found.start]:
            text = before + (text[found.end :] if before else text[found.end :].lstrip(", "))
    text = _PERMITS.sub("can", _NOW.sub("", _TOLD.sub("", text))).strip()
    return text[:1].upper() + text[1:]


SHARED = 0.6  # share of a statement's words that both must have if the later one announces a change

_VERSION = re.compile(r"v?\d{1,3}(?:\.\d+)+")
_VAGUE = frozenset(
    terms("team project document page meeting group work service product thing plan price name date note section")
)


def differing(a: ReadStatement, b: ReadStatement) -> bool:
    """Whether two statements give different numbers for the same thing, so that at most one of them holds."""
    if a.open or b.open:
        return False
    if a.key or b.key:
        return _same_field(a, b) and _other_figure(a, b)
    return bool(a.assertion and b.assertion and differ(a.assertion, b.assertion))


def replaces(later: ReadStatement, earlier: ReadStatement) -> bool:
    """Whether the later of two statements says something different about the same thing."""
    if _amended(later, earlier):
        return True
    if later.open or earlier.open:
        return False
    if not (later.about & earlier.about or later.key == earlier.key or later.moved_to):
        return False
    if _versions(later) != _versions(earlier):
        return False
    if later.minutes and earlier.minutes and not (later.changes or later.decided):
        return False
    return (
        differing(later, earlier)
        or _other_owner(later, earlier)
        or _decided(later, earlier)
        or _changed(later, earlier)
        or _revoked(later, earlier)
        or restates(later.text, earlier.text)
    )


def _versions(reading: ReadStatement) -> frozenset[str]:
    """Return the version that a document's title names: what 2.0 says does not replace what 1.0 says."""
    return frozenset(term for term in reading.title if _VERSION.fullmatch(term))


def _same_field(a: ReadStatement, b: ReadStatement) -> bool:
    """Whether both are values of the same field, in documents whose titles are the same apart from dates."""
    same_title = a.title & b.title and (a.title <= b.title or b.title <= a.title)
    return bool(a.key and a.key == b.key and same_title)


def _other_figure(a: ReadStatement, b: ReadStatement) -> bool:
    """Whether each has one figure of the same kind, and the figures differ."""
    if len(a.figures) != 1 or len(b.figures) != 1:
        return False
    f, g = a.figures[0], b.figures[0]
    return bool(f.kinds & g.kinds) and f.rate == g.rate and not agree(f, g)


def _other_owner(later: ReadStatement, earlier: ReadStatement) -> bool:
    """Whether someone else has the same thing."""
    if not later.owned or not earlier.owned:
        return False
    hand_over = later.changes and not earlier.changes
    new = later.names - earlier.names
    former = earlier.names if hand_over else earlier.names - later.names
    if not new or not former:
        return False
    if later.key and earlier.key:
        return _same_field(later, earlier)
    mine, yours = later.about - new - former, earlier.about - former
    return bool(_telling(mine & yours)) and (mine == yours or (hand_over and (mine <= yours or yours <= mine)))


def _decided(later: ReadStatement, earlier: ReadStatement) -> bool:
    """Whether two decisions choose differently for the same thing."""
    if not later.chosen or not earlier.chosen:
        return False
    new, former = later.names - earlier.names, earlier.names - later.names
    days = later.days and earlier.days and not later.days & earlier.days
    mine, yours = later.about - new - later.days, earlier.about - former - earlier.days
    same = bool(_telling(mine & yours)) and (mine <= yours or yours <= mine)
    return same and bool((new and former) or days)


def _changed(later: ReadStatement, earlier: ReadStatement) -> bool:
    """Whether the later sentence tells of a change to what the earlier one says."""
    if later.moved_to and _moved(later, later.moved_to, earlier):
        return True
    if not later.changes or earlier.changes or later.key or earlier.key:
        return False
    shared = later.about & earlier.about
    if later.old:
        said = frozenset(content_terms(earlier.text))
        same = _covers((later.about | later.old) & said, earlier.about) and _telling(shared - later.old)
        return bool(same) and later.old <= said
    if not _telling(shared) or not _covers(shared, earlier.about):
        return False
    alike = (
        not later.moved_to
        and len(shared) > 1
        and _covers(shared, later.about)
        and later.facts.dates == earlier.facts.dates == []
    )
    return alike and _other_figure(later, earlier)


def _moved(later: ReadStatement, moved_to: Date, earlier: ReadStatement) -> bool:
    """Whether the later sentence moves what the earlier one dates or moves, to another day.

    It names that by its words, by the subject of its mail where it says only "the meeting", by answering a mail of the
    same subject, or by the day from which it is moved.
    """
    dates = [found.date for found in earlier.facts.dates]
    given = earlier.moved_to or (dates[0] if len(dates) == 1 else None)
    if not given or moved_to.agrees(given):
        return False
    shared = later.about & earlier.about
    by_words = _covers(shared, earlier.about) or bool(earlier.moved_to and later.about <= earlier.about)
    said = frozenset(content_terms(earlier.text))
    unnamed = bool(_UNNAMED.search(later.text))
    called = bool(later.subject - _MEETINGS) and later.subject <= said
    in_answer = later.subject == earlier.subject and bool(earlier.moved_to or later.subject & said)
    by_subject = unnamed and bool(later.subject) and (called or in_answer)
    from_day = any(found.date.agrees(given) for found in later.facts.dates)
    by_day = from_day and bool(shared or later.subject & said or (unnamed and earlier.moved_to))
    return bool(by_subject or by_day or (by_words and _telling(shared)))


def _amended(later: ReadStatement, earlier: ReadStatement) -> bool:
    """Whether the later of two texts on one thing changes or ends what the earlier one says, or denies its figure.

    Conditions of the earlier statement do not matter: "subletting is allowed if ..." ends with "is no longer allowed".
    """
    if not (earlier.title and (earlier.title <= later.title or earlier.subject == later.subject != frozenset())):
        return False
    if found := _AMENDS.match(later.text):
        opening = set(terms(_SAID_OF.split(earlier.text, maxsplit=1)[0]))
        if set(query_terms(found["what"])) != opening.intersection(query_terms(earlier.text)):
            return False
        if found["ended"]:
            return found["ended"].lower() in earlier.text.lower() and not _AMENDS.match(earlier.text)
        return _is_other(later.figures[:1], earlier.figures)
    denied = [figure for figure in later.figures if _NOT.search(later.text[: figure.start][-8:])]
    same = any(f.kinds == g.kinds and agree(f, g) for f in denied for g in earlier.figures)
    return same and bool(_telling(later.about & earlier.about))


def _is_other(new: Sequence[Figure], old: Sequence[Figure]) -> bool:
    """Whether a new figure is another than the first of its kind."""
    alike = [(f, g) for f in new for g in old if f.kinds == g.kinds and f.rate == g.rate][:1]
    return any(not agree(f, g) for f, g in alike)


def _revoked(later: ReadStatement, earlier: ReadStatement) -> bool:
    """Whether the later statement says that what was decided on the earlier one's day no longer holds."""
    if not later.revokes or not earlier.date or not earlier.decided or not later.revokes.agrees(earlier.date):
        return False
    return bool(_telling(later.about & earlier.about))


def _covers(shared: frozenset[str], about: frozenset[str]) -> bool:
    return len(shared & about) >= SHARED * len(about)


def _telling(about: frozenset[str]) -> frozenset[str]:
    """Return the terms that identify the thing."""
    return about - _VAGUE
