"""The explanation that a reader gets instead of a report: the searches, the closest passages, the missing words, and
advice.

It is made from the texts that a run has read and its tools' holdings, so a replay makes the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten
from typing import NamedTuple

from fathom.config.settings import ResolvedSettings
from fathom.extractive.questions import naming_words
from fathom.extractive.statements import Quotations
from fathom.models import (
    AbsentWord,
    Call,
    Catalogue,
    Holdings,
    NearPassage,
    Searched,
    SourceText,
    Unanswered,
    UnreadFile,
)
from fathom.report.chapters import unread_lines
from fathom.report.own_words import QUESTION
from fathom.report.quotations import escaped, escaped_quotation
from fathom.retrieval.expansion import meant_by
from fathom.text.languages import LANGUAGES, language_of_question, language_tag
from fathom.text.plain import clean_line, clean_title, counted
from fathom.text.terms import terms
from fathom.tools.registry import REGISTRY
from fathom.tools.toolbox import searched_by_default

UNANSWERED = "unanswered.md"
"""The file in a run's folder that explains why there is no report."""
PASSAGES = 3
MOST_WORDS = 8
PASSAGE_CHARS = 300
SAMPLE_CHARS = 2_000  # characters of each text from which the language of the sources is detected


def words_to_look_for(question: str) -> list[str]:
    """Return the words of a question that a source about it would have."""
    return naming_words(question)


def explain(
    question: str,
    calls: Sequence[Call],
    texts: Sequence[SourceText],
    catalogue: Catalogue,
    settings: ResolvedSettings,
    *,
    unread: Sequence[UnreadFile] = (),
    cut: bool = False,
) -> Unanswered:
    """Explain why a question has no answer.

    Args:
        question: as it was asked.
        calls: all tool calls of the run.
        texts: what they read.
        catalogue: what the tools can find; asked about `words_to_look_for`.
        settings: the run's settings.
        unread: the files of the user that were not read.
        cut: the budget ended the research.
    """
    known = [holdings.language for holdings in catalogue.holdings if holdings.language]
    asked_in = language_of_question(question)
    written_in = (known or [language_tag("\n".join(text.text[:SAMPLE_CHARS] for text in texts))])[0]
    differ = bool(asked_in and written_in and asked_in != written_in)
    foreign = differ and all(language_tag(text.text[:SAMPLE_CHARS]) != asked_in for text in texts)
    absent = _absent(question, texts, catalogue.holdings)
    if differ:  # a word of another language is not misspelt
        absent = [AbsentWord(word=each.word) for each in absent]
    searched = [_searched(holdings, calls) for holdings in catalogue.holdings]
    return Unanswered(
        searched=searched,
        closest=_closest(_corrected(question, absent), texts),
        absent=absent,
        unread=list(unread),
        asked_in=asked_in if foreign else "",
        written_in=written_in if foreign else "",
        next_steps=list(_next_steps(absent, written_in if foreign else "", searched, settings, cut=cut)),
    )


def _searched(holdings: Holdings, calls: Sequence[Call]) -> Searched:
    own = [call.result for call in calls if call.result.call.tool == holdings.tool]
    return Searched(
        tool=holdings.tool,
        where=holdings.where,
        documents=holdings.documents,
        calls=len(own),
        failed=sum(result.failed for result in own),
        sources=len({source.source_id for result in own for source in result.sources}),
    )


def _absent(question: str, texts: Sequence[SourceText], holdings: Sequence[Holdings]) -> list[AbsentWord]:
    """Return the words that neither the texts that were read nor any tool's documents have."""
    read = {term for text in texts for term in terms(f"{text.title} {text.text}")}
    lacking = [{absent.word: absent for absent in each.absent} for each in holdings if each.documents is not None]
    if not texts and not lacking:
        return []  # nothing was read
    found: list[AbsentWord] = []
    for word in words_to_look_for(question):
        if read.isdisjoint(terms(word)) and all(word in absent for absent in lacking):
            nearby = [near for absent in lacking for near in absent[word].nearby] or meant_by(word, _words(texts))
            found.append(AbsentWord(word=word, nearby=list(dict.fromkeys(nearby))))
    return found


def _words(texts: Iterable[SourceText]) -> Counter[str]:
    return Counter(word for text in texts for word in text.text.lower().split() if word.isalpha())


def _corrected(question: str, absent: Sequence[AbsentWord]) -> str:
    meant = {word.word: word.nearby[0] for word in absent if word.nearby}
    misspelt = "|".join(map(re.escape, meant))
    return re.sub(rf"\b(?:{misspelt})\b", lambda found: meant[found[0]], question) if meant else question


def _closest(question: str, texts: Sequence[SourceText]) -> list[NearPassage]:
    quotations, sources = Quotations.of_texts(texts), {text.source_id: text for text in texts}
    passages: list[NearPassage] = []
    for found in quotations.rank(question):
        said, source = _plain(quotations.says(found)), sources[quotations.sources[found.text][0]]
        if found.excerpt.kind != "code" and not any(said in known.text or known.text in said for known in passages):
            text = shorten(said, PASSAGE_CHARS, placeholder=" …")
            passages.append(NearPassage(text=text, title=clean_title(source.title), url=source.url))
        if len(passages) == PASSAGES:
            break
    return passages


def _plain(passage: str) -> str:
    """Return a passage on one line, without the marks of headings, items and tables."""
    cells = (cell.strip(" #\n") for cell in clean_line(passage).removeprefix("- ").split("|"))
    return " · ".join(cell for cell in cells if cell.strip("-: "))


def _next_steps(
    absent: Sequence[AbsentWord],
    written_in: str,
    searched: Sequence[Searched],
    settings: ResolvedSettings,
    *,
    cut: bool,
) -> Iterator[str]:
    wider = list(_wider(settings))
    if searched_by_default(settings, settings.tools):
        yield from wider
        wider = []
    for tool in searched:
        if tool.failed:
            failed = counted(tool.failed, "call")
            yield f"Ask again later: {failed} of {tool.tool} failed. `fathom doctor --online` checks it."
    if cut:
        yield "Allow more: the budget ended the research (`--max-usd`, `--max-tokens`, `--max-calls`, `--max-seconds`)."
    if settings.sources.min_quality:
        yield f"Allow weaker sources: `sources.min_quality` is {settings.sources.min_quality}."
    if settings.sources.peer_reviewed:
        yield "Allow works that are not known to be peer-reviewed: `sources.peer_reviewed` is set."
    if misspelt := [word for word in absent if word.nearby][:MOST_WORDS]:
        meant = ", ".join(f"“{' or '.join(word.nearby)}” instead of “{word.word}”" for word in misspelt)
        yield f"Check the spelling: {meant}?"
    if written_in:
        yield f"Ask in {LANGUAGES[written_in]}, the language of the sources."
    yield from wider
    if settings.extractive:
        yield "Use a language model, which also finds what is said in other words: add `--model openai/gpt-5-mini`."
    else:
        yield "Ask with other words, or for a part of it."


def _wider(settings: ResolvedSettings) -> Iterator[str]:
    if not (settings.docs or settings.corpora):
        yield "Search your own files: add `--docs FOLDER`."
    web = [tool for tool in REGISTRY.tools.values() if tool.searches and tool.by_vendors]
    if not any(tool.name in settings.tools for tool in web):
        keys = " or ".join(map(REGISTRY.variables, web))
        yield f"Search the web: set {keys}; `fathom doctor` says how to get one."


# -- for readers --------------------------------------------------------------------------------------------------


class ExplanationPart(NamedTuple):
    """A part of the explanation: plain text, in which only `code` is marked, or passages."""

    heading: str
    items: list[str]
    passages: list[NearPassage] = []


def parts_of(unanswered: Unanswered) -> Iterator[ExplanationPart]:
    """Yield the parts of an explanation in the order in which they are read."""
    yield ExplanationPart("What was searched", [_told(tool) for tool in unanswered.searched])
    if unanswered.closest:
        yield ExplanationPart("What comes closest", [], unanswered.closest)
    else:
        yield ExplanationPart("What comes closest", ["Nothing that was read comes close to the question."])
    if unanswered.unread:
        yield ExplanationPart("Files of yours that were not read, or only in part", unread_lines(unanswered.unread))
    if unanswered.absent:
        words = sorted(unanswered.absent, key=lambda word: not word.nearby)
        more = [f"and {counted(len(words) - MOST_WORDS, 'more word')}"] if len(words) > MOST_WORDS else []
        yield ExplanationPart("Words of the question that were not found", [*map(_named, words[:MOST_WORDS]), *more])
    if unanswered.asked_in:
        asked, written = LANGUAGES[unanswered.asked_in], LANGUAGES[unanswered.written_in]
        yield ExplanationPart("Language", [f"The question seems to be in {asked}, and the sources are in {written}."])
    yield ExplanationPart("What you can do", unanswered.next_steps)


def _told(tool: Searched) -> str:
    held = "" if tool.documents is None else f" ({counted(tool.documents, 'document')})"
    calls = f"{counted(tool.calls, 'call')} of `{tool.tool}`" + (f", {tool.failed} failed" if tool.failed else "")
    read = counted(tool.sources, "page" if tool.documents is None else "document")
    return f"{', '.join(tool.where)}{held}: {calls}; {read} read"


def _named(absent: AbsentWord) -> str:
    return absent.word + (f" (did you mean {' or '.join(absent.nearby)}?)" if absent.nearby else "")


def source_line(passage: NearPassage) -> str:
    """Return the origin of a passage as plain text."""
    return f"{passage.title}, {passage.url}"


def render_unanswered(question: str, unanswered: Unanswered) -> str:
    """Return an explanation as Markdown."""
    blocks = ["# Not answered by these sources", f"> {QUESTION} {escaped(clean_line(question))}"]
    for part in parts_of(unanswered):
        blocks.append(f"## {part.heading}")
        blocks += [f"> {escaped(near.text)}\n>\n> {escaped(source_line(near))}" for near in part.passages]
        if part.items:
            blocks.append("\n".join(f"- {escaped_quotation(item)}" for item in part.items))
    return "\n\n".join(blocks) + "\n"
