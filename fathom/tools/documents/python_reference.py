"""The built-in corpus: the Python language reference that ships inside every CPython, for `help("TOPIC")`."""

from __future__ import annotations

import re

from fathom.text.plain import clean_text
from fathom.tools.documents.sections import ReadDocument, Section, underlined_sections

REPEATED = 0.8  # share of a section's words that other topics already hold


def python_reference() -> dict[str, ReadDocument]:
    """Return the topics by URL, `python:TOPIC`.

    Topics are cut from one manual and overlap: `else` is `if`, `specialnames` repeats `attribute-access`. The shortest
    topic keeps a section and longer ones lose it, so that one statement does not look like two sources.
    """
    from pydoc_data.topics import topics

    documents: dict[str, ReadDocument] = {}
    seen: set[str] = set()
    for name in sorted(topics, key=lambda name: (len(topics[name]), len(name), name)):
        sections = underlined_sections(clean_text(topics[name]))
        kept = [section for section in sections if section.text and not _is_repeated(section, seen)]
        seen.update(paragraph for section in sections for paragraph in _paragraphs(section))
        if kept:
            documents[f"python:{name}"] = ReadDocument(sections[0].heading or name, kept)
    return dict(sorted(documents.items()))


def _is_repeated(section: Section, seen: set[str]) -> bool:
    paragraphs = _paragraphs(section)
    known = sum(len(p) for p in paragraphs if p in seen)
    return known >= REPEATED * sum(len(p) for p in paragraphs)


def _paragraphs(section: Section) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", section.text)]
