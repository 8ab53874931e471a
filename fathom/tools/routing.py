"""Which tools fit a step, which stand in for one that failed, and which are not asked any more.

All of it follows from declarations, words and recorded results, so a replay decides as the run did. The design is the
tool router of 001, section 7.3: words of a domain lead to its tools, everything else to the general ones.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files

from fathom.models import ToolResult
from fathom.text.terms import Language, language_of, terms

STAND_INS = 3  # tools that are asked in place of one that failed
MOST_FAILURES = 2  # calls of a tool in a row that may fail in a run, each after attempts of its own

Domains = Mapping[str, Sequence[str]]
"""Tools by name, each with the domains that it declares; one that fits everything declares none."""


def fitting(tools: Domains, text: str) -> list[str]:
    """Return the tools for a text: those that fit everything, then those of its domains, the closest first.

    A text that is about no domain of any of them leaves the choice to whoever reads it: all of them are returned, those
    of many domains before those of few.
    """
    about = domains_of(text, {domain for declared in tools.values() for domain in declared})

    def distance(tool: str) -> float:
        declared = set(tools[tool])
        if not declared:
            return -1.0
        return 1 - len(about & declared) / len(declared) if about else 1 / len(declared)

    return sorted((tool for tool in tools if not about or distance(tool) < 1), key=distance)


def domains_of(text: str, domains: Iterable[str]) -> set[str]:
    """Return the domains that a text is about; of one that is not in `domains.toml`, its words."""
    language = language_of([text])
    said = frozenset(terms(text, language))
    entries = {domain: _entries(language).get(domain) or [frozenset(terms(domain, language))] for domain in domains}
    return {domain for domain, known in entries.items() if any(entry <= said for entry in known if entry)}


@cache
def _entries(language: Language) -> Mapping[str, Collection[frozenset[str]]]:
    """Return the terms of each entry; the endings of languages other than English and German count in part."""
    listed = tomllib.loads(files("fathom.tools").joinpath("domains.toml").read_text(encoding="utf-8"))
    return {
        domain: {frozenset(terms(entry.replace("_", " "), language)) for entry in words.split()}
        for domain, words in listed.items()
    }


def stand_ins(domains: Sequence[str], others: Domains) -> list[str]:
    """Return which of the other searching tools to ask in place of one that failed: the closest first, the web last.

    What fits everything has no stand-in: `web_search` goes from vendor to vendor by itself, and nothing else finds what
    is in the user's documents.
    """
    own = set(domains)
    closeness = {tool: len(own & set(its)) / len(own | set(its)) for tool, its in others.items() if own & set(its)}
    web = [tool for tool in others if tool == "web_search" and own]
    return [*sorted(closeness, key=lambda tool: -closeness[tool])[: STAND_INS - len(web)], *web]


def resting(results: Iterable[ToolResult]) -> set[str]:
    """Return the tools whose latest calls in a run failed, too many in a row to ask them again."""
    failures: Counter[str] = Counter()
    for result in results:
        failures[result.call.tool] = failures[result.call.tool] + 1 if result.failed else 0
    return {tool for tool, count in failures.items() if count >= MOST_FAILURES}
