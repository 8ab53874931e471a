"""What a question is made of: sides of a comparison, several questions, listed aspects, how and why and what."""

from __future__ import annotations

import re

from fathom.extractive.aspects import Part, part_of
from fathom.extractive.grammar import statement
from fathom.extractive.groups import group_in, members_of, split_list
from fathom.extractive.prompting import Asked, asked_in, resolved, subject_of
from fathom.extractive.wording import capitalized, clip, key_terms, keywords, shorten, strip_lead

TITLE_WORDS = 14
ITEM_WORDS = 8
SUBJECT_WORDS = 6  # of the question's key words, beside those of an aspect

_COMPARISONS = (
    re.compile(r".*?\bdifferences? between (?P<a>.+?) and (?P<b>.+)", re.I),
    re.compile(r"(?:how (?:do|does|is|are) )(?P<a>.+?) (?:differ(?:ent|s)? from|compare (?:to|with)) (?P<b>.+)", re.I),
    re.compile(r"compare (?P<a>.+?) (?:with|to|and|against) (?P<b>.+)", re.I),
    re.compile(r"(?P<a>.+?) (?:vs\.?|versus) (?P<b>.+)", re.I),
    re.compile(r"(?:which is \w+|should (?:i|we|one) \w+|is it better to \w+)[:,]? (?P<a>.+?),? or (?P<b>.+)", re.I),
)
_RELATION = re.compile(
    r"how (?:do|does|are|is) (?P<a>.+?) and (?P<b>.+?) (?P<verb>interact|relate|work together|fit together|"
    r"affect each other|influence each other|related|connected|linked)\b(?P<rest>.*)",
    re.I,
)
_ASPECTS_OF = re.compile(
    r"(?:what (?:is|are|were|was) )?(?:the )?(?P<list>(?:[\w-]+, )*[\w-]+,? and [\w-]+) (?P<of>of|in|for) (?P<x>.+)",
    re.I,
)
_LISTED = re.compile(
    r"(?:,? (?:including|such as|covering|considering|in terms of|with (?:a )?focus on)|:)\s+(?P<list>.+)", re.I
)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_TAIL = re.compile(r"(?P<x>[^,]+?),? (?P<more>(?:in|when|if|for) \w.*)", re.I)


def parts_of(query: str, room: int = 10) -> list[Part]:
    """Return the parts of a question in the order to take them; at least one, and not many more than there is room."""
    asked = asked_in(query)
    if len(asked.questions) > 1 or asked.context:
        return _several(asked, room)
    return _one(_ASIDE.sub("", asked.questions[0]) or asked.questions[0], room)


def _one(plain: str, room: int) -> list[Part]:
    return (
        _comparison(plain) or _relation(plain) or _aspects(plain) or _listed(plain) or _members(plain, room)
        or _single(plain)
    )  # fmt: skip


def _several(asked: Asked, room: int) -> list[Part]:
    """Return a part for each question, and for each thing it lists as far as there is room.

    Later questions are made to stand alone: what the first is about, or a sentence before it, stands for a pronoun.
    """
    subject = subject_of(asked.context or asked.questions[0])
    parts: list[Part] = []
    for number, question in enumerate(asked.questions):
        said, leans = resolved(question, subject) if number or asked.context else (question, False)
        left = room - len(parts) - (len(asked.questions) - number - 1)
        plain = _ASIDE.sub("", said) or said
        listed = _listed_in(plain, subject) if number or leans else _members(plain, room)
        if 1 < len(listed) <= left:
            parts += listed
            continue
        title = shorten(statement(plain), TITLE_WORDS)
        title = capitalized(re.sub(r"^(?:the|an?) ", "", title, flags=re.I)) if leans else title
        about = f" {subject}" if leans else ""
        named = f"{title} ({subject})" if leans else title
        parts.append(
            Part(
                named,
                f"Find the passages that answer: {strip_lead(plain)}?" + (f" It is about {subject}." if leans else ""),
                [f"{said}{about}", f"{title} {subject}"],
                topic=title if number == 0 and not asked.context else subject,
            )
        )
        if number == 0 and (group := _group(plain)) and left > 1:
            parts.insert(0, group._replace(topic=title))
    return parts


def _comparison(plain: str) -> list[Part]:
    found = next((m for pattern in _COMPARISONS if (m := pattern.match(plain))), None)
    if not found:
        return []
    a, b, where = found["a"].strip(" ,"), found["b"].strip(" ,"), ""
    if (tail := _TAIL.fullmatch(b)) and key_terms(tail["x"]):
        b, where = tail["x"], f" {tail['more']}"
    both = f"{a} and {b}{where}"
    return [
        Part(
            f"How {a} and {b} differ{where}",
            f"Find statements about both {a} and {b}: where they are alike and where they differ.",
            [f"difference {both}", f"{both} comparison"],
            topic=f"Difference between {a} and {b}{where}",
        ),
        *(
            Part(
                f"What defines {side}",
                f"Find what {side} is and what is said about it{where}.",
                [f"{side} compared with {other}{where}", f"{side} properties{where}", f"{side} use{where}"],
                topic=side,
            )
            for side, other in ((a, b), (b, a))
        ),
        Part(
            f"When to choose {a} or {b}",
            f"Find reasons for choosing {a} and reasons for choosing {b}{where}.",
            [f"choose {a} or {b}{where}", f"use {a} instead of {b}{where}"],
            essential=False,
            topic=both,
        ),
    ]


def _relation(plain: str) -> list[Part]:
    found = _RELATION.match(plain)
    if not found:
        return []
    a, b, verb, rest = found["a"], found["b"], found["verb"].lower(), found["rest"]
    be = "are " if verb in ("related", "connected", "linked") else ""
    return [
        Part(
            f"How {a} and {b} {be}{verb}{rest}",
            f"Find passages that state what happens to {b} in {a}, and to {a} in {b}.",
            [f"{a} {b}", f"{a} and {b} {verb}{rest}"],
            topic=f"Interaction of {a} and {b}{rest}",
        ),
        *(
            Part(
                f"What {this} {'do' if this.endswith('s') else 'does'}",
                f"Find how {this} work, above all with regard to {other}.",
                [f"{this} {other}", f"{this} behavior", f"{this} definition"],
                topic=this,
            )
            for this, other in ((a, b), (b, a))
        ),
    ]


def _aspects(plain: str) -> list[Part]:
    """Return the aspects of "the causes and effects of X", one part each."""
    found = _ASPECTS_OF.fullmatch(plain)
    if not found:
        return []
    x, of = found["x"], found["of"]
    names = [name for name in re.split(r",? and |, ", found["list"]) if name]
    return [
        Part(
            shorten(f"{capitalized(name)} {of} {x}", TITLE_WORDS),
            f"Find what is said about the {name} {of} {x}.",
            [f"{name} {of} {x}", f"{x} {name}", x],
            topic=shorten(f"{capitalized(found['list'])} {of} {x}", 8),
        )
        for name in names
    ]


def _listed(plain: str, subject: str = "") -> list[Part]:
    """Return the matter and what is listed behind "including", "such as" or a colon."""
    found = _LISTED.search(plain)
    if not found or not key_terms(plain[: found.start()]):
        return []
    matter = plain[: found.start()].strip(" ,")
    items = split_list(found["list"])
    if len(items) < 2 or any(len(item.split()) > ITEM_WORDS for item in items):
        return []
    about = f"{shorten(statement(matter), TITLE_WORDS)} ({subject})" if subject else ""
    words = " ".join([*keywords(matter)[:SUBJECT_WORDS], *keywords(subject)])
    whole = part_of(matter, shorten(statement(matter), TITLE_WORDS))
    if subject:
        whole = whole._replace(title=about, queries=[f"{query} {subject}" for query in whole.queries[:1]])
    return [whole, *(_item(item, words) for item in items)]


def _item(item: str, subject: str) -> Part:
    return Part(
        capitalized(clip(item, TITLE_WORDS)),
        f"Find what is said about {item} with regard to {subject}.",
        [f"{item} {subject}", f"{subject} {item}", f"{item} {' '.join(subject.split()[-3:])}"],
        topic=item,
    )


def _listed_in(plain: str, subject: str) -> list[Part]:
    """Return what a later sentence of a prompt lists, whether that is all it does or it names the matter before."""
    items = split_list(plain)
    short = all(len(item.split()) <= ITEM_WORDS for item in items)
    if len(items) > 2 and short and plain.count(",") >= len(items) - 2 and not statement(plain).endswith("?"):
        return [_item(item, subject) for item in items]
    return _listed(plain, subject)


def _members(plain: str, room: int) -> list[Part]:
    """Return the question for each of the things it names, where the plan has room for all of them."""
    asked = members_of(plain)
    if not 1 < len(asked) <= room:
        return []
    parts = [part_of(each, shorten(statement(each), TITLE_WORDS)) for each in asked]
    return [part._replace(topic=statement(plain)) for part in parts]


def _group(plain: str) -> Part | None:
    """Return the search for what a question is about and does not name."""
    group = group_in(plain)
    if not group:
        return None
    title = shorten(group, TITLE_WORDS)
    return Part(capitalized(title), f"Find out which are the {group}.", [group, f"list of {group}"], topic=title)


def _single(plain: str) -> list[Part]:
    """Return the question itself, and before it the search for those things that it is about without naming them."""
    part = part_of(plain, shorten(statement(plain), TITLE_WORDS))
    group = _group(plain)
    return [group._replace(topic=part.topic), part] if group else [part]
