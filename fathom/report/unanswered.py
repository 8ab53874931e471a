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
from fathom.retrieval.translation import translations_of
from fathom.text.languages import LANGUAGES, language_of_question, language_tag
from fathom.text.plain import clean_line, clean_title
from fathom.text.terms import terms
from fathom.text.wording import Wording, wording
from fathom.tools.registry import REGISTRY
from fathom.tools.toolbox import searched_by_default

UNANSWERED = "unanswered.md"
"""The file in a run's folder that explains why there is no report."""
PASSAGES = 3
MOST_WORDS = 8
PASSAGE_CHARS = 300
SAMPLE_CHARS = 2_000  # characters of each text from which the language of the sources is detected


def explain(
    question: str,
    calls: Sequence[Call],
    texts: Sequence[SourceText],
    catalogue: Catalogue,
    settings: ResolvedSettings,
    *,
    unread: Sequence[UnreadFile] = (),
    cut: bool = False,
    language: str = "",
) -> Unanswered:
    """Explain why a question has no answer.

    Args:
        question: as it was asked.
        calls: all tool calls of the run.
        texts: what they read.
        catalogue: what the tools can find; asked about the question's `naming_words`.
        settings: the run's settings.
        unread: the files of the user that were not read.
        cut: the budget ended the research.
        language: the tag of the explanation's words; empty: English.
    """
    known = [tag for each in catalogue.holdings for tag in (each.language, *each.other_languages)]
    read = [language_tag(text.text[:SAMPLE_CHARS]) for text in texts]
    asked_in = language_of_question(question)
    written_in = next(filter(None, [*known, *read]), "")
    foreign = bool(asked_in and written_in) and asked_in not in [*known, *read]
    absent = _absent(question, texts, catalogue.holdings)
    if asked_in and written_in and asked_in != written_in:  # a word of another language is not misspelt
        absent = [AbsentWord(word=each.word) for each in absent]
    searched = [_searched(holdings, calls) for holdings in catalogue.holdings]
    return Unanswered(
        searched=searched,
        closest=_closest(_corrected(question, absent), texts),
        absent=absent,
        unread=list(unread),
        asked_in=asked_in if foreign else "",
        written_in=written_in if foreign else "",
        next_steps=list(
            _next_steps(absent, written_in if foreign else "", searched, settings, wording(language), cut=cut)
        ),
        language=language,
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
    translated = translations_of(question)
    for word in naming_words(question):
        said = {other for term in terms(word) for other in (term, *translated.get(term, ()))}
        if read.isdisjoint(said) and all(word in absent for absent in lacking):
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
    words: Wording,
    *,
    cut: bool,
) -> Iterator[str]:
    owned = bool(settings.docs or settings.corpora)
    wider = [] if owned else list(_wider(settings, words))  # whoever has files of their own may want them searched only
    if searched_by_default(settings, settings.tools):
        yield from wider
        wider = []
    for tool in searched:
        if tool.failed:
            yield words(
                "Ask again later: {calls} of {tool} failed. `fathom doctor --online` checks it.",
                calls=words.counted(tool.failed, "call"),
                tool=tool.tool,
            )
    if cut:
        limits = "`--max-usd`, `--max-tokens`, `--max-calls`, `--max-seconds`"
        yield words("Allow more: the budget ended the research ({limits}).", limits=limits)
    if least := settings.sources.min_quality:
        yield words("Allow weaker sources: `sources.min_quality` is {least}.", least=least)
    if settings.sources.peer_reviewed:
        yield words("Allow works that are not known to be peer-reviewed: `sources.peer_reviewed` is set.")
    if misspelt := [word for word in absent if word.nearby][:MOST_WORDS]:
        meant = words.listed(
            words("“{meant}” instead of “{word}”", meant=words.joined(word.nearby, "or"), word=word.word)
            for word in misspelt
        )
        yield words("Check the spelling: {meant}?", meant=meant)
    if written_in:
        yield words("Ask in {language}, the language of the sources.", language=words(LANGUAGES[written_in]))
    if owned or not settings.extractive:
        yield words("Rephrase the question, or ask only a part of it.")
    if owned:
        yield words("Name the document that should have the answer, or add it: `--docs FILE`.")
    yield from wider
    if settings.extractive:
        yield words(
            "Use a language model, which also finds what is said in other words: add {option}.",
            option="`--model openai/gpt-5-mini`",
        )


def _wider(settings: ResolvedSettings, words: Wording) -> Iterator[str]:
    yield words("Search your own files: add `--docs FOLDER`.")
    web = [tool for tool in REGISTRY.tools.values() if tool.searches and tool.by_vendors]
    if not any(tool.name in settings.tools for tool in web):
        ways = [way for tool in web for way in REGISTRY.configured_by(tool)]
        keys = words.joined([words.joined(way.variables) for way in ways], "or")
        yield words("Search the web: set {keys}; `fathom doctor` says how to get one.", keys=keys)


# -- for readers --------------------------------------------------------------------------------------------------


class ExplanationPart(NamedTuple):
    """A part of the explanation: plain text, in which only `code` is marked, or passages."""

    heading: str
    items: list[str]
    passages: list[NearPassage] = []


def parts_of(unanswered: Unanswered) -> Iterator[ExplanationPart]:
    """Yield the parts of an explanation in the order in which they are read."""
    words = wording(unanswered.language)
    yield ExplanationPart(words("What was searched"), [_told(tool, words) for tool in unanswered.searched])
    nothing = [] if unanswered.closest else [words("Nothing that was read comes close to the question.")]
    yield ExplanationPart(words("What comes closest"), nothing, unanswered.closest)
    if unanswered.unread:
        heading = words("Files of yours that were not read, or only in part")
        yield ExplanationPart(heading, unread_lines(unanswered.unread, words))
    if unanswered.absent:
        absent = sorted(unanswered.absent, key=lambda word: not word.nearby)
        named = [_named(each, words) for each in absent[:MOST_WORDS]]
        if left := len(absent) - len(named):
            named.append(words("and {more}", more=words.counted(left, "more word")))
        yield ExplanationPart(words("Words of the question that were not found"), named)
    if unanswered.asked_in:
        told = words(
            "The question seems to be in {asked}, and the sources are in {written}.",
            asked=words(LANGUAGES[unanswered.asked_in]),
            written=words(LANGUAGES[unanswered.written_in]),
        )
        yield ExplanationPart(words("Language"), [told])
    yield ExplanationPart(words("What you can do"), unanswered.next_steps)


def _told(tool: Searched, words: Wording) -> str:
    where = words.listed(tool.where)
    if tool.documents is not None:
        held = words.counted(tool.documents, "document")
        where = words("{head} ({note})", head=where, note=held)
    calls = words("{calls} of `{tool}`", calls=words.counted(tool.calls, "call"), tool=tool.tool)
    if tool.failed:
        calls = words("{calls}, {number} failed", calls=calls, number=tool.failed)
    read = words.counted(tool.sources, "page" if tool.documents is None else "document")
    return words("{where}: {calls}; {sources} read", where=where, calls=calls, sources=read)


def _named(absent: AbsentWord, words: Wording) -> str:
    if not absent.nearby:
        return absent.word
    return words("{word} (did you mean {meant}?)", word=absent.word, meant=words.joined(absent.nearby, "or"))


def source_line(passage: NearPassage) -> str:
    """Return the origin of a passage as plain text."""
    return f"{passage.title}, {passage.url}"


def render_unanswered(question: str, unanswered: Unanswered) -> str:
    """Return an explanation as Markdown."""
    words = wording(unanswered.language)
    blocks = [f"# {words('Not answered by these sources')}", f"> {words(QUESTION)} {escaped(clean_line(question))}"]
    for part in parts_of(unanswered):
        blocks.append(f"## {part.heading}")
        blocks += [f"> {escaped(near.text)}\n>\n> {escaped(source_line(near))}" for near in part.passages]
        if part.items:
            blocks.append("\n".join(f"- {escaped_quotation(item)}" for item in part.items))
    return "\n\n".join(blocks) + "\n"
