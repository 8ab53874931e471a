"""Sentences with their place in the text, in linear time on any input, and the fences of Markdown among them.

Rules and an abbreviation list rather than a trained model: they run anywhere, on any length of text, and when they
are wrong one can see why.

For fenced code in Markdown, this module finds its place and its content, and splits a text into sentences with each
fence as one. `blocks.py` makes a sentence of every line of code, but writing and checking a report needs the code as a
whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fathom.text.blocks import Block, Kind, ends_before_tags, open_fence, split_blocks, without_tags

_ABBREVIATIONS = """
mr mrs ms mx dr prof st ste gen col sgt capt lt gov sen rep rev hon messrs mme mlle jr sr vs v cf viz approx ca e.g
i.e eg ie fig figs eq eqs sec ch chap vol vols pp nos ed eds trans repr op cit ibid resp incl excl ref refs z.b d.h
u.a o.ä s.o s.u i.d.r v.a bzw vgl ggf evtl inkl exkl sog nr str abs art bsp tel hr fr dipl ing geb gest univ dept
est max min avg jan feb mar apr jun jul aug sep sept okt nov dec dez bros mio mrd tsd zzgl
"""
_LEGAL_FORMS = "inc ltd corp co plc llc"
_TITLES = "Mag Bakk Hd Hrn Kfm Kffr Fa"
_STARTERS = """
the this that these those it its he she they we you i in on at for from if when while where what who why how a an as
but and or so however there here then thus therefore because although since after before during such some many most
all each every no not one two other another our my his her their der die das dies diese dieser ein eine er sie es
wir ich im in am auf für von wenn als aber und oder doch
"""
_ORDINAL_NOUNS = """
januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts
jahrtausend klasse auflage platz stock jh geburtstag weltkrieg lebensjahr lebensjahres lebensmonat lebensmonats
schuljahr semester quartal halbjahr obergeschoss etage
"""
_BEFORE_ORDINALS = """
im am zum zur vom beim bis ab seit nach der die das den dem des jeder jede jedes jeden jedem
"""

ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Never the end of a sentence, whatever follows."""
LEGAL_FORMS = frozenset(_LEGAL_FORMS.split())
"""End a sentence only before a word that begins one: "Acme Inc. Boston", "Meier & Co. KG"."""
TITLES = frozenset(_TITLES.split())
"""Never the end of a sentence with a capital: "Mag. Huber", but "was er mag. Das"."""
BEFORE_NUMBER = frozenset(("no", "p", "art", "nr", "abs", "kap", "bd", "c", "b", "d", "r", "fl", "para", "cl", "str"))
"""Not the end of a sentence before a number: "No. 5", "(c. 1434 - d. 1510)"."""
ORDINAL_NOUNS = frozenset(_ORDINAL_NOUNS.split())
"""Words that follow a German ordinal, whatever is before it: "19. Jahrhundert"."""
BEFORE_ORDINALS = frozenset(_BEFORE_ORDINALS.split())
"""Words between which and a noun a German ordinal stands: "im 1. Quartal", "zum 3. Werktag"."""
STARTERS = frozenset(_STARTERS.split())
"""Words that begin a sentence even after an initial: "He lived in the U.S. The end"."""


MAX_CHARS = 2_000  # a run without any sentence end (transcripts, dumps) is broken at a space before this

_CITATIONS = r"(?:\s{0,2}\[(?:S[0-9a-f]{6,64}|\d{1,3})(?:[,;]\s?(?:S[0-9a-f]{6,64}|\d{1,3}))*\])*"
# It begins with a set of characters, which the engine skips to: a tenth of the time of an alternative at each place.
_END = re.compile(
    rf"[.!?…。！？｡](?:(?<=[.!?…])(?<![.!?…]{{2}})(?P<more>[.!?…]*)[\"'”’»«“)\]*_]*{_CITATIONS}(?=\s|\Z|[\u2e80-\u9fff])"
    rf"|(?<=[。！？｡])[。！？｡]*(?P<close>[」』”’）】\"]*){_CITATIONS})"
)
_OPENING = "\"'([{“„‚‘«»*_"
_MARKER = re.compile(r"(?:#{1,6}|[-*+•‣▪◦–>]|\(?\d{1,3}[.)]|\(?[a-z]\)|\[\d{1,3}\])\s+")
_BEFORE_LETTER = ("z", "i", "u", "d")  # "z. B.", "z. Hd.", "i. V.", "u. U.", "i. d. R."
_ABBREVIATED = re.compile(r"[A-Z][a-z]?\.")
_FACULTY = re.compile(r"(?:med|dent|vet|rer|nat|phil|jur|iur|theol|oec|pol|habil|h|c)\Z")  # "Dr. rer. nat. Weber"
_BEFORE_FACULTY = ("dr.", "rer.", "dipl.", "mag.", "h.", "med.", "prof.")
_CITED = re.compile(r"\[S[0-9a-f]{6,64}\]\Z")
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\w*")
_UNDERLINE = re.compile(r"\s*\n[^\w\n]+\Z")


class Sentence(NamedTuple):
    """A sentence and its place: `text == source[start:end]`.

    A heading, a table row and a line of code count as one sentence each; `kind` tells them from prose.
    """

    text: str
    start: int
    end: int
    kind: Kind = "prose"
    paragraph: int = 0  # index of its block

    @property
    def clean(self) -> str:
        """The sentence on one line, without a list or heading marker and without the tags of HTML around it."""
        text = _UNDERLINE.sub("", self.text) if self.kind == "heading" else self.text
        if "<" in text and self.kind not in ("code", "rule"):
            text = without_tags(text, is_row=self.kind == "table")
        marker = _MARKER.match(text) if self.kind in ("item", "heading") else None
        return " ".join(text[marker.end() if marker else 0 :].split())


def split_sentences(text: str) -> list[Sentence]:
    """Split a text into sentences; every character that is not whitespace is in exactly one of them.

    Knows abbreviations, initials, decimals, German ordinals, CJK punctuation, Markdown, and hard-wrapped plain text.
    A citation behind the full stop, `[S1a2b3c]` or `[1]`, belongs to the sentence before it.
    """
    sentences: list[Sentence] = []
    for number, block in enumerate(split_blocks(text)):
        start = block.start
        for end in _ends(text, block):
            for first, last in _pieces(text, start, end):
                sentences.append(Sentence(text[first:last], first, last, block.kind, number))
            start = _skip_space(text, end, block.end)
    return sentences


def first_sentence(text: str) -> str:
    """Return the first sentence of a text's prose or lists on one line; empty if it has none."""
    return next((each.clean for each in split_sentences(text) if each.kind in ("prose", "item")), "")


def _ends(text: str, block: Block) -> list[int]:
    if block.kind not in ("prose", "item"):
        return [block.end]
    marker = _MARKER.match(text, block.start, min(block.start + 12, block.end)) if block.kind == "item" else None
    said = ends_before_tags(text, block.start, block.end)
    stops = _END.finditer(text, marker.end() if marker else block.start, said)
    return sorted({block.end, *(stop.end() for stop in stops if stop.end() < said and _is_end(text, stop, block))})


def _is_end(text: str, found: re.Match[str], block: Block) -> bool:
    following = text[found.end() : min(found.end() + 40, block.end)].lstrip()
    # A citation of ours closes its sentence, whatever the next one opens with.
    if not following or "[S" in found[0] or _CITED.search(text, max(block.start, found.start() - 70), found.start()):
        return True
    if found["more"] is None:  # CJK; a quotation may go on: 「…。」と
        return not (found["close"] and following[0] in "とっなのと、，")
    head = following.lstrip(_OPENING)
    if following.lstrip("([")[:1].islower() or following[0] == "§":
        return False
    if found["more"] or found[0][0] != ".":
        return True
    before = text[max(block.start, found.start() - 24) : found.start()].split()
    word = before[-1].lstrip(_OPENING) if before else ""
    lead = "" if before[-3:-1] == ["I", "am"] else "".join(before[-2:-1]).lower()
    next_word = _WORD.match(head)
    if word in _BEFORE_LETTER and _ABBREVIATED.match(head):
        return False
    return not _goes_on(lead, word, next_word[0] if next_word else "", following[0])


def _goes_on(lead: str, word: str, next_word: str, next_char: str) -> bool:
    """Whether a full stop after `word`, which stands behind `lead`, belongs to it instead of ending the sentence."""
    lower = word.lower()
    if lower in ABBREVIATIONS or word in TITLES or (lower in BEFORE_NUMBER and next_word[:1].isdigit()):
        return True
    if ".-" in word or (lead in _BEFORE_FACULTY and _FACULTY.match(word)):  # "Dipl.-Ing. Weil"
        return True
    if lower == "al":
        return next_char in "(["
    if word.isdigit():
        is_ordinal = lead in BEFORE_ORDINALS and next_word.lower() not in STARTERS
        return len(word) <= 2 and (is_ordinal or next_word.lower() in ORDINAL_NOUNS)
    dotted = "." in word and word.replace(".", "").isalpha() and len(word) <= 8
    is_name = dotted or lower in LEGAL_FORMS or (len(word) == 1 and word.isupper())
    return is_name and next_word.lower() not in STARTERS


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a stretch of text; if it is too long, in pieces, broken at a space, or anywhere without spaces."""
    while end - start > MAX_CHARS:
        limit = start + MAX_CHARS
        cut = max(text.rfind(" ", start + 1, limit), text.rfind("\n", start + 1, limit))
        cut = cut if cut > start else limit
        yield start, start + len(text[start:cut].rstrip())
        start = _skip_space(text, cut, end)
    yield start, end


def _skip_space(text: str, start: int, end: int) -> int:
    found = _SPACE.match(text, start, end)
    return found.end() if found else start


class Fence(NamedTuple):
    """A fenced block: `text[start:end]`, from the first mark of its opening fence to the last of its closing one."""

    start: int
    end: int
    info: str  # the text behind the opening fence: the language
    code: str  # the lines between, without the indentation of the fence
    closed: bool  # False: it ends with the text


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of a text in order, as `open_fence` finds them."""
    fence = ""
    start = position = 0
    opening, lines = "", list[str]()
    for line in text.split("\n"):
        before, fence = fence, open_fence(fence, line)
        if fence and not before:
            marks = fence.lstrip(" \t>")
            mark = line.index(marks)
            start, opening, lines = position + mark, line[mark + len(marks) :], []
        elif fence:
            lines.append(line.removeprefix(fence.removesuffix(marks)))
        elif before:
            end = position + len(line.rstrip())
            yield Fence(start, end, opening.strip(), "\n".join(lines), closed=True)
        position += len(line) + 1
    if fence:
        code = "\n".join(lines).removesuffix("\n")
        yield Fence(start, len(text.rstrip()), opening.strip(), code, closed=False)


def fenced_code(text: str) -> str:
    """Return the code of a text that is one fenced block; empty for any other text."""
    fence = next(fences(text), None)
    return fence.code if fence and fence.start == 0 and fence.end == len(text.rstrip()) else ""


def split_markdown(text: str) -> list[Sentence]:
    """Return the sentences of a Markdown text, each fenced block as one of kind `code`."""
    found: list[Sentence] = []
    position = 0
    for fence in fences(text):
        found += _sentences(text, position, fence.start, found)
        found.append(Sentence(text[fence.start : fence.end], fence.start, fence.end, "code", _next(found)))
        position = fence.end
    return found + _sentences(text, position, len(text), found)


def _sentences(text: str, start: int, end: int, before: list[Sentence]) -> list[Sentence]:
    first = _next(before)
    return [
        s._replace(start=start + s.start, end=start + s.end, paragraph=first + s.paragraph)
        for s in split_sentences(text[start:end])
    ]


def _next(found: list[Sentence]) -> int:
    return found[-1].paragraph + 1 if found else 0
