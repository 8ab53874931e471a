"""The web of the stubs: pages that follow from their URL, each with one fact and many sentinels.

The fact is all that a scripted role repeats. Every other sentence carries a token found nowhere else, so a test can
show where raw text went and where it did not. A page may also have a passage in one of the forms of `forms`.
"""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from tests.stubs.forms import passage

__all__ = ["FACT", "LAST_FACT", "NOISE", "SENTINEL", "SHARED_URL", "Page", "long_table", "page", "share", "urls"]

FACT = re.compile(r"FACT-[0-9a-f]{8}: [^.\[\]]+\.")
SENTINEL = re.compile(r"RAW[0-9a-f]{8}")
NOISE = "NOISE"
LAST_FACT = "FACT-00c0ffee: the late harbour held 4,711 boats."
SHARED_URL = "https://handbook.example/general/overview"


def _words(text: str) -> list[str]:
    return text.split()


_HOSTS = ("atlas", "bureau", "courier", "digest", "ledger", "monitor", "review", "signal")
_ADJECTIVES = _words(
    "annual brief careful coastal common distant early formal frequent gradual heavy historic inner late local lower "
    "minor modern narrow northern open outer plain present quiet rapid recent rural second slow steady upper urban"
)
_NOUNS = _words(
    "account archive barrel bridge cabinet channel clerk committee district engine factory garden harbour inspector "
    "journal kitchen lantern market meadow merchant orchard parish pattern railway record reservoir season servant "
    "station student surface theatre timber valley village visitor wagon warehouse window workshop"
)
_VERBS = _words(
    "accepted carried closed collected crossed described divided examined followed gathered improved kept left "
    "measured moved opened painted passed prepared reached repaired replaced sold studied supplied visited"
)
_LINKS = _words("above across after against along around before behind below beside beyond near towards within")


@dataclass(frozen=True)
class Page:
    """A page. `fact` is empty on a page of noise; `excerpt` is what a search shows of it."""

    url: str
    title: str
    text: str
    fact: str
    excerpt: str


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def share(url: str, purpose: str) -> float:
    """Return a number in [0, 1) that a URL always has for one purpose."""
    return int(_digest(purpose, url)[:8], 16) / 16**8


def urls(query: str, count: int, *, shared: bool = True) -> list[str]:
    """Return the pages a query finds: its own and, in second place, the one that all queries share."""
    slug = "-".join(re.findall(r"\w+", query.lower()))
    slug = slug if len(slug) <= 80 else f"{slug[:80].rstrip('-')}-{_digest(query)[:8]}"
    hosts = [_HOSTS[int(_digest(slug, n)[:4], 16) % len(_HOSTS)] for n in range(count)]
    own = [f"https://{host}.example/{slug}/{n}" for n, host in enumerate(hosts, 1)]
    return [*own[:1], SHARED_URL, *own[1:]][:count] if shared else own


@lru_cache(maxsize=1024)
def page(url: str, size: int, *, noise: bool = False, forms: bool = False) -> Page:
    """Return the page at a URL: prose of exactly `size` characters, in paragraphs, with its passage if it has forms."""
    rng = random.Random(_digest(url))
    topic = urlsplit(url).path.strip("/").split("/")[0].replace("-", " ") or "the subject"
    fact = (
        f"FACT-{_digest(url)[:8]}: the {rng.choice(_ADJECTIVES)} study of {topic} counted "
        f"{rng.randint(1_000, 99_999):,} cases in {rng.randint(1901, 2024)}."
    )
    block = f"\n\n{passage(url)}\n\n" if forms and not noise else ""
    sentences = _prose(rng, size - len(block), f"{NOISE}." if noise else fact)
    position = next(n for n, sentence in enumerate(sentences) if sentence.startswith((fact, NOISE)))
    excerpt = "".join(sentences[position : position + 2]).strip()
    fact = "" if noise else fact
    title = f"{topic.capitalize()}: {_clause(rng)}"
    if block:
        sentences.insert(rng.randrange(len(sentences)), block)
    return Page(url, title, "".join(sentences), fact, excerpt)


def long_table(size: int, topic: str) -> str:
    """Return a table of so many bytes or a few more; its last row alone has a fact, and no word of the topic.

    Every other row has the topic's words, so a ranking by words puts each of them before the last.
    """
    rng = random.Random(topic)
    lines = ["| record | what it is about | where it lies |", "|---|---|---|"]
    length = sum(map(len, lines))
    while length < size:
        lines.append(f"| {len(lines) - 1} | {topic}: {_clause(rng)} RAW{rng.getrandbits(32):08x} | {_clause(rng)} |")
        length += len(lines[-1]) + 1
    return "\n".join([*lines, f"| {len(lines) - 1} | {LAST_FACT} | in a drawer |"])


def _clause(rng: random.Random) -> str:
    return (
        f"the {rng.choice(_ADJECTIVES)} {rng.choice(_NOUNS)} {rng.choice(_VERBS)} the {rng.choice(_ADJECTIVES)} "
        f"{rng.choice(_NOUNS)}"
    )


def _prose(rng: random.Random, size: int, special: str) -> list[str]:
    """Return sentences with the space after them, `size` characters together, the special one at a random place."""
    sentences: list[str] = []
    place, left = rng.random(), size - len(special) - 1
    while left > 260:
        sentence = f"{_clause(rng).capitalize()} {rng.choice(_LINKS)} RAW{rng.getrandbits(32):08x}"
        if rng.random() < 0.4:
            sentence += f", while {_clause(rng)}"
        sentences.append(sentence + (".\n\n" if rng.random() < 0.2 else ". "))
        left -= len(sentences[-1])
    last = " and ".join(_clause(rng) for _ in range(8)).capitalize()
    sentences.insert(int(place * (len(sentences) + 1)), f"{special} ")
    return [*sentences, f"{last[: max(left - 1, 1)]}."]
