"""What a question is made of: sides of a comparison, several questions, listed aspects, how and why and what."""

from __future__ import annotations

import re

from fathom.llm.extractive.aspects import Part, aspects_of
from fathom.llm.extractive.grammar import statement
from fathom.llm.extractive.vocabulary import META_TERMS
from fathom.llm.extractive.wording import capitalized, clip, key_terms, keywords, shorten, strip_lead
from fathom.text import split_sentences

__all__ = ["parts_of"]

TITLE_WORDS = 12
SUBJECT_WORDS = 5  # of the question's key words, beside those of an aspect

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
_COVER = re.compile(
    r"(?:(?:also|please) )*(?:cover|include|consider|address|focus on)(?: (?:\w+ )?(?:aspects|topics|areas|points))?"
    r"(?: (?:such as|like|including|of))?:? (?P<list>.+)",
    re.I,
)
_JOINED = re.compile(
    r",? and (?=(?:how|why|when|where|who|(?:(?:in|at|for) )?(?:what|which)(?: \w+)?)"
    r" (?:is|are|was|were|do|does|did|can|could|should|would|will)\b)",
    re.I,
)
_PRONOUN = re.compile(r"\b(?:it|they|he|she|this|that|each|them)\b", re.I)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_TAIL = re.compile(r"(?P<x>[^,]+?),? (?P<more>(?:in|when|if|for) \w.*)", re.I)
_WHOLE_OF = re.compile(r".+\bof (?:all )?the (?P<x>.+)", re.I)


def parts_of(query: str) -> list[Part]:
    """Return the parts of a question, the most important first; at least one."""
    plain = strip_lead(query)
    asked = [part for sentence in split_sentences(plain) for part in _JOINED.split(sentence.clean)]
    questions = [q for q in asked if len(key_terms(q)) >= 2 or (key_terms(q) and _PRONOUN.search(q))]
    if len(questions) > 1:
        return _several(questions)
    plain = _ASIDE.sub("", strip_lead(questions[0]) if questions else plain) or plain
    return _comparison(plain) or _relation(plain) or _aspects(plain) or _listed(plain) or _single(plain)


def _several(questions: list[str]) -> list[Part]:
    """Return a part for each question; a pronoun in a later one stands for what the first is about."""
    names = [word for word in keywords(questions[0])[1:] if word[0].isupper()]
    words = [word for word in keywords(questions[0]) if set(key_terms(word)) - META_TERMS]
    subject = " ".join(names if len(names) == 1 else words[:SUBJECT_WORDS])
    parts: list[Part] = []
    for question in questions:
        cover = _COVER.fullmatch(strip_lead(question))
        if parts and cover and len(items := _items(cover["list"])) > 1:
            parts += [_item(item, " ".join(keywords(questions[0])[:SUBJECT_WORDS])) for item in items]
            continue
        said = _PRONOUN.sub(subject, question, count=1) if parts and len(subject.split()) <= 3 else question
        title = shorten(_ASIDE.sub("", statement(said)), TITLE_WORDS)
        parts.append(
            Part(
                title, f"Find the passages that answer: {strip_lead(said)}?", [said, f"{title} {subject}"], topic=title
            )
        )
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
                [f"{side} definition{where}", f"{side} properties{where}"],
                topic=side,
            )
            for side in (a, b)
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


def _listed(plain: str) -> list[Part]:
    """Return the subject and what is listed behind "including", "such as" or a colon."""
    found = _LISTED.search(plain)
    if not found or not key_terms(plain[: found.start()]):
        return []
    subject = plain[: found.start()].strip(" ,")
    items = _items(found["list"])
    words = " ".join(keywords(subject)[:SUBJECT_WORDS])
    return [*_single(subject)[:1], *(_item(item, words) for item in items)] if len(items) > 1 else []


def _items(listed: str) -> list[str]:
    return [i.strip(" .") for i in re.split(r",\s*(?:and\s+)?|;\s*|\s+and\s+", listed) if key_terms(i)]


def _item(item: str, subject: str) -> Part:
    return Part(
        capitalized(clip(item, TITLE_WORDS)),
        f"Find what is said about {item} with regard to {subject}.",
        [f"{item} {subject}", f"{subject} {item}", f"{item} {' '.join(subject.split()[-3:])}"],
        topic=item,
    )


def _single(plain: str) -> list[Part]:
    """Return the question itself, before it what it asks about all the members of, behind it what it usually has."""
    title = shorten(statement(plain), TITLE_WORDS)
    parts = aspects_of(plain, title)
    inner = _WHOLE_OF.fullmatch(plain)
    if inner and len(key_terms(inner["x"])) >= 3 and len(key_terms(plain)) > len(key_terms(inner["x"])):
        group = shorten(inner["x"], TITLE_WORDS)
        return [
            parts[0],
            Part(
                capitalized(group), f"Find out which are the {inner['x']}.", [inner["x"], f"list {group}"], topic=group
            ),
        ]
    return parts
