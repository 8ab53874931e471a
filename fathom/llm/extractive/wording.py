"""Words for titles and queries: a question's key words, its statement form, and cuts that leave no loose end."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fathom.text import query_terms

__all__ = [
    "capitalized",
    "clip",
    "decapitalized",
    "is_english",
    "is_verb",
    "key_terms",
    "keywords",
    "nominal",
    "shorten",
    "statement",
    "strip_lead",
    "third_person",
    "topic_terms",
]

_WORD = re.compile(
    r"(?:and|as|for|from|if|in|is|not|or|while|with)[ -](?:statement|clause|loop|keyword|operator|expression|block)s?\b"
    r"|[^\W_][\w'’+#-]*(?:\.\w+)*|__\w+__"
)
_LEAD = re.compile(
    r"(?:please|could you|can you|would you|i(?: would|'d) like (?:you )?to|i (?:want|need) to (?:know|understand)(?: about)?|"
    r"help me (?:to )?understand|tell me(?: about)?|explain(?: to me)?|describe|discuss|summari[sz]e|outline|research(?:ing)?|"
    r"investigat(?:e|ing)|analy[sz]e|examine|explore|"
    r"(?:write|give|prepare|create|provide|produce)(?: me)? (?:an?|the) (?:[\w-]+ ){0,3}(?:report|overview|summary|analysis|"
    r"review|article|essay|introduction)(?: (?:on|about|of|to|for))?|what do we know about|what can you tell me about)\b[\s,:]*",
    re.IGNORECASE,
)
# Words of instruction and of answering, which say nothing about the subject.
_META = frozenset(
    query_terms(
        "define differ interact relate choose alike read check collect find look state say explain describe passage document source text page section evidence "
        "information detail question answer step research report aspect topic exactly relevant statement mention "
        "name fact facts compare define interact relate choose alike answer work works overview example use used using happen"
    )
)
RELATED_WEIGHT = 0.5
_RELATED = {
    term: [other for other in group if other != term]
    for words in (
        "lookup search find resolve access", "difference differ unlike whereas distinguish", "cause reason because",
        "interact together within propagate", "create construct", "delete remove", "advantage benefit",
        "disadvantage drawback limitation", "cost price", "begin start", "end finish terminate", "safe secure",
    )
    for group in [list(map(str, query_terms(words)))]
    for term in group
}  # fmt: skip
_LOOSE = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "in",
        "on",
        "at",
        "to",
        "for",
        "from",
        "by",
        "with",
        "and",
        "or",
        "as",
        "that",
        "which",
        "who",
        "is",
        "are",
        "was",
        "were",
        "be",
        "its",
        "their",
        "this",
        "these",
        "when",
        "where",
        "while",
        "if",
        "than",
        "then",
        "into",
        "over",
        "about",
        "between",
        "how",
        "why",
        "what",
        "do",
        "does",
        "did",
        "can",
        "not",
        "no",
        "it",
        "vs",
        "und",
        "oder",
        "der",
        "die",
        "das",
        "des",
        "dem",
        "den",
        "ein",
        "eine",
        "von",
        "mit",
        "zu",
        "im",
        "für",
        "auf",
    ]
)
_VERBS = frozenset(
    [
        "achieve",
        "act",
        "adapt",
        "absorb",
        "add",
        "affect",
        "allocate",
        "allow",
        "apply",
        "approach",
        "arise",
        "assign",
        "avoid",
        "balance",
        "become",
        "begin",
        "behave",
        "bind",
        "break",
        "build",
        "cache",
        "calculate",
        "call",
        "capture",
        "cause",
        "change",
        "choose",
        "clean",
        "close",
        "collect",
        "combine",
        "come",
        "communicate",
        "compare",
        "compile",
        "compute",
        "connect",
        "contribute",
        "control",
        "convert",
        "cool",
        "copy",
        "cope",
        "cover",
        "create",
        "deal",
        "decide",
        "declare",
        "decode",
        "define",
        "delete",
        "deliver",
        "depend",
        "derive",
        "destroy",
        "detect",
        "determine",
        "develop",
        "differ",
        "diffuse",
        "digest",
        "dispatch",
        "distinguish",
        "distribute",
        "divide",
        "drive",
        "emerge",
        "enable",
        "encode",
        "encrypt",
        "enforce",
        "ensure",
        "enter",
        "establish",
        "estimate",
        "evaluate",
        "evolve",
        "execute",
        "expand",
        "explain",
        "express",
        "extend",
        "fail",
        "feed",
        "fight",
        "fill",
        "find",
        "fit",
        "fix",
        "fly",
        "follow",
        "form",
        "function",
        "gain",
        "generate",
        "get",
        "give",
        "grow",
        "handle",
        "happen",
        "harm",
        "heal",
        "help",
        "hold",
        "identify",
        "impact",
        "implement",
        "import",
        "improve",
        "include",
        "increase",
        "infect",
        "influence",
        "inherit",
        "initialize",
        "insert",
        "inspect",
        "interact",
        "interpret",
        "iterate",
        "keep",
        "kill",
        "know",
        "learn",
        "limit",
        "link",
        "listen",
        "live",
        "load",
        "locate",
        "lock",
        "look",
        "lose",
        "lower",
        "make",
        "manage",
        "map",
        "match",
        "matter",
        "mean",
        "measure",
        "migrate",
        "modify",
        "move",
        "need",
        "occur",
        "offer",
        "open",
        "operate",
        "optimize",
        "order",
        "organize",
        "overload",
        "override",
        "parse",
        "pass",
        "perform",
        "pick",
        "pay",
        "prevent",
        "process",
        "produce",
        "propagate",
        "protect",
        "provide",
        "raise",
        "reach",
        "react",
        "read",
        "recognize",
        "receive",
        "reclaim",
        "recover",
        "reduce",
        "refer",
        "reflect",
        "regulate",
        "relate",
        "release",
        "remember",
        "remove",
        "render",
        "replace",
        "reproduce",
        "represent",
        "resolve",
        "respond",
        "return",
        "reuse",
        "run",
        "scale",
        "schedule",
        "search",
        "select",
        "send",
        "serve",
        "set",
        "shape",
        "shift",
        "shrink",
        "sleep",
        "solve",
        "sort",
        "split",
        "spread",
        "start",
        "stop",
        "store",
        "support",
        "suppress",
        "survive",
        "swap",
        "sync",
        "target",
        "teach",
        "tell",
        "test",
        "track",
        "train",
        "transfer",
        "transform",
        "translate",
        "transmit",
        "travel",
        "treat",
        "trigger",
        "try",
        "turn",
        "understand",
        "update",
        "use",
        "vary",
        "verify",
        "wait",
        "want",
        "work",
        "wrap",
        "write",
        "recognise",
        "publish",
        "elect",
        "found",
        "invest",
        "yield",
    ]
)
_FINITE = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "has",
        "have",
        "had",
        "can",
        "could",
        "may",
        "might",
        "must",
        "will",
        "would",
        "shall",
        "should",
        "does",
        "do",
        "did",
        "cannot",
    ]
)
_NOMINAL = {
    "look up": "lookup", "find": "lookup", "resolve": "resolution", "handle": "handling", "create": "creation",
    "manage": "management", "allocate": "allocation", "compile": "compilation", "evaluate": "evaluation",
    "execute": "execution", "search": "search", "store": "storage", "parse": "parsing", "schedule": "scheduling",
    "process": "processing", "detect": "detection", "import": "import", "convert": "conversion",
    "generate": "generation", "encode": "encoding", "initialize": "initialization",
}  # fmt: skip
_PREPOSITIONS = frozenset(
    [
        "in",
        "on",
        "at",
        "to",
        "for",
        "from",
        "by",
        "with",
        "of",
        "into",
        "during",
        "through",
        "over",
        "under",
        "between",
        "against",
        "when",
        "if",
    ]
)
_AUXILIARY = re.compile(
    r"(?P<asks>how|why|when|where)\s+(?P<aux>do|does|did|can|could|should|would|will|is|are|was|were)\s+", re.I
)
_PHRASAL = re.compile(r"\b(look|set|start|clean|back|build|shut|break|log)(?:s|ed|ing)? (up|down|in|out)\b")
_YES_NO = re.compile(r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have)\s", re.I)
_PRONOUNS = frozenset(["i", "we", "you", "one", "people", "they"])


def keywords(text: str) -> list[str]:
    """Return the words of a text that carry its topic, as written, each once."""
    seen: set[str] = set()
    words = []
    for word in _WORD.findall(_PHRASAL.sub(r"\1\2", strip_lead(text))):
        if (found := key_terms(word)) and not set(found) <= seen:
            seen.update(found)
            words.append(word)
    return words


def key_terms(text: str) -> list[str]:
    """Return the terms of a text that carry its topic; nothing when there are only function words."""
    from fathom.text.stopwords import STOP_WORDS

    return [] if all(word.lower() in STOP_WORDS for word in _WORD.findall(text)) else query_terms(text)


def topic_terms(text: str) -> list[str]:
    """Return the key terms without those of instructions such as "read", "find" and "passages"."""
    found = key_terms(text)
    return [term for term in found if term not in _META] or found


def with_related(weights: Mapping[str, float]) -> dict[str, float]:
    """Return weighted terms with those that texts use in their place, at a fraction of the weight."""
    extended = dict(weights)
    for term, weight in weights.items():
        for other in _RELATED.get(term, ()):
            extended.setdefault(other, RELATED_WEIGHT * weight)
    return extended


def strip_lead(query: str) -> str:
    """Return a query without the request around it: "Please write a report on X" is "X"."""
    query = " ".join(query.split())
    while (lead := _LEAD.match(query)) and query[lead.end() :].strip(" .?!"):
        query = query[lead.end() :]
    return query.strip(" .?!？。，、;:")


def clip(text: str, words: int) -> str:
    """Return the first words of a text, without a loose end: no article, preposition or open bracket stays last."""
    parts = text.split()
    if len(parts) == 1 and len(text) > 6 * words:
        return text[: 3 * words]  # writing without spaces
    cut = len(parts) > words
    parts = parts[:words]
    while cut and len(parts) > 1 and (parts[-1].lower().strip(",;:.") in _LOOSE or parts[-1] in ("-", "–", "&", "/")):
        parts.pop()
    clipped = " ".join(parts).strip(" ,;:–-.")
    for opening, closing in (("(", ")"), ("[", "]"), ("“", "”"), ('"', '"')):
        if opening != closing and clipped.count(opening) > clipped.count(closing):
            clipped = clipped[: clipped.rindex(opening)].strip(" ,;:–-")
        elif opening == closing and clipped.count(opening) % 2:
            clipped = clipped.replace(opening, "")
    return clipped


def shorten(text: str, words: int) -> str:
    """Return a heading of at most so many words, cut before a phrase rather than within one."""
    parts = text.split()
    if len(parts) > words and parts[0].lower() in ("a", "an", "the"):
        parts = [capitalized(parts[1]), *parts[2:]]
    if len(parts) <= words:
        return " ".join(parts).strip(" ,;:")
    for end in range(words, 2, -1):
        if parts[end].lower() in _PREPOSITIONS or parts[end - 1][-1] in ",;:" or parts[end].lower() in ("and", "of"):
            return clip(" ".join(parts[:end]), words)
    return clip(" ".join(parts), words)


def is_english(text: str) -> bool:
    """Whether English words may be added to a query: it is ASCII and does not open with a German question word."""
    return text.isascii() and not re.match(
        r"(?:wie|was|wer|wann|warum|wo|welche[rs]?|worin|wozu|wodurch)\b", text, re.I
    )


def capitalized(text: str) -> str:
    """Return the text with its first letter a capital."""
    return text[:1].upper() + text[1:]


def decapitalized(text: str, original: str) -> str:
    """Return the text with a small first letter, unless its first word is written with a capital in the original."""
    first = text.split(maxsplit=1)[0] if text else ""
    inside = re.search(rf"(?<=\w ){re.escape(first)}\b", original)
    return text if inside or first[1:].lower() != first[1:] else text[:1].lower() + text[1:]


def third_person(verb: str) -> str:
    """Return a verb's form after he, she, it."""
    if verb in ("do", "go"):
        return verb + "es"
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return verb + "es"
    return verb[:-1] + "ies" if verb.endswith("y") and verb[-2] not in "aeiou" else verb + "s"


def is_verb(word: str, before: str = "") -> bool:
    """Whether a lowercase word can be the verb of a sentence; not behind "to" or "which"."""
    if before in ("to", "which", "that"):
        return False
    if word in _FINITE or word.endswith("n't"):
        return True
    stems = (word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word))
    return any(stem in _VERBS for stem in stems) or (word.endswith("ed") and len(word) > 4)


def statement(question: str) -> str:
    """Return what a question asks about, as a heading would put it.

    "How does Python look up a name?" is "How Python looks up a name", "What is entropy?" is "Entropy".
    """
    text = strip_lead(question)
    if plain := re.match(r"(?:what|who)(?:'s| is| are| was| were)\s+(?:meant by\s+)?(.+)", text, re.I):
        return capitalized(plain[1])
    asked = _AUXILIARY.match(text)
    if not asked and (_YES_NO.match(text) or not is_english(text)):
        return f"{capitalized(text)}?"
    if not asked:
        return capitalized(text)
    words = text[asked.end() :].split()
    aux, word = asked["aux"].lower(), asked["asks"].capitalize()
    at = _verb_at(words, passive=aux in ("is", "are", "was", "were"))
    if at is None:
        return f"{capitalized(text)}?"
    subject, verb, rest = words[:at], words[at], words[at + 1 :]
    if len(subject) == 1 and subject[0].lower() in _PRONOUNS and word == "How":
        return " ".join(["How to", verb, *rest])
    if aux == "does":
        verb = third_person(verb)
    middle = [verb] if aux in ("do", "does") else [aux, verb]
    return " ".join([word, *subject, *middle, *rest])


def agent_terms(question: str) -> list[str]:
    """Return the terms of who or what acts in a "How does X do Y" question."""
    text = strip_lead(question)
    asked = _AUXILIARY.match(text)
    words = text[asked.end() :].split() if asked else []
    at = _verb_at(words, passive=False)
    return key_terms(" ".join(words[:at])) if at is not None and at + 1 < len(words) else []


def nominal(question: str) -> str:
    """Return a noun phrase for a "How does X do Y" question, or its statement: "Python attribute lookup"."""
    text = strip_lead(question)
    asked = _AUXILIARY.match(text)
    words = text[asked.end() :].split() if asked else []
    at = _verb_at(words, passive=False)
    if not asked or asked["asks"].lower() != "how" or at is None:
        return statement(question)
    verb = " ".join(words[at : at + 2]) if " ".join(words[at : at + 2]) in _NOMINAL else words[at]
    after = words[at + len(verb.split()) :]
    end = next((i for i, word in enumerate(after) if word.lower() in _PREPOSITIONS), len(after))
    noun = [word for word in after[:end] if word.lower() not in ("a", "an", "the")]
    if verb not in _NOMINAL or not 1 <= len(noun) <= 3:
        return statement(question)
    if noun[-1].endswith("s") and not noun[-1].endswith("ss"):
        noun[-1] = noun[-1][:-1]
    subject = [] if words[0].lower() in _PRONOUNS else words[:at]
    return capitalized(" ".join([*subject, *noun, _NOMINAL[verb], *after[end:]]))


def _verb_at(words: list[str], passive: bool) -> int | None:
    """Return the index of the verb behind a subject of one word or more."""
    for i, word in enumerate(words[1:], 1):
        lower = word.lower().strip(",")
        if passive and re.fullmatch(
            r"\w+(?:ed|en)|made|built|found|held|sold|kept|lost|set|put|done|born|run|read", lower
        ):
            return i
        if not passive and lower in _VERBS and words[i - 1].lower() not in ("a", "an", "the", "of", "in", "and"):
            return i
    return None
