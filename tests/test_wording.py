"""The fixed words of a report follow the question's language, and every catalogue has all of them."""

from __future__ import annotations

import ast
import csv
import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from io import BytesIO, StringIO
from pathlib import Path
from typing import get_args

import pytest
from docx import Document
from lxml import html
from markdown_it import MarkdownIt
from openpyxl import load_workbook

import fathom.text.wording
from fathom.changes.model import Change, Changes, Compared, Kind, Place, Statement
from fathom.evidence.claims import MARKS
from fathom.extractive.questions import keywords
from fathom.models import AbsentWord, Answered, Report, Searched, Unanswered, UnreadFile, Verdict
from fathom.models.evidence import Corroboration, SourceFlag, SourceType
from fathom.report.changes import render_changes, render_changes_html, summary_of
from fathom.report.docx import render_docx
from fathom.report.exporting import render_pdf
from fathom.report.html import render_html
from fathom.report.markdown import render_markdown
from fathom.report.tables import render_csv, render_xlsx
from fathom.report.unanswered import render_unanswered
from fathom.run.checklist import Reason
from fathom.text.languages import LANGUAGES
from fathom.text.wording import LANGUAGES_OF_REPORTS, language_for, language_wanted, wording
from tests.conftest import FathomCLI, PrefectServer
from tests.sample_report import PHASES, sample_report

ROOT = Path(__file__).parents[1]
CATALOGUES = {
    file.stem: tomllib.loads(file.read_text(encoding="utf-8"))
    for file in (Path(fathom.text.wording.__file__).parent / "catalogues").iterdir()
}
NAMES = re.compile(r"\{\w+\}")


def said_in_code() -> Iterator[tuple[str, str]]:
    """Yield the phrases that `words(...)` is called with, and the nouns of `words.counted(...)`."""
    for file in [*(ROOT / "fathom").glob("*/**/*.py"), *ROOT.glob("flows/*.py"), *ROOT.glob("tasks/*.py")]:
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(func=ast.Name("words"), args=[*_, ast.Constant(said)]):
                    yield "phrases", str(said)
                case ast.Call(func=ast.Attribute(ast.Name("words"), "counted"), args=[*_, ast.Constant(said)]):
                    yield "nouns", str(said)
    for template in (ROOT / "fathom/report/templates").glob("*.j2"):
        yield from (("phrases", said) for said in re.findall(r'words\("([^"]+)"', template.read_text(encoding="utf-8")))


def test_every_catalogue_has_every_phrase_with_the_same_values() -> None:
    assert sorted(CATALOGUES) == ["de", "es", "fr", "it", "ja", "nl", "pt", "zh"]
    one = CATALOGUES["de"]
    for tag, catalogue in CATALOGUES.items():
        assert {part: list(held) for part, held in catalogue.items()} == {
            part: list(held) for part, held in one.items()
        }
        for phrase, said in catalogue["phrases"].items():
            assert said and sorted(NAMES.findall(phrase)) == sorted(NAMES.findall(said)), (tag, phrase)
        for phrase, said in catalogue["stored"].items():
            assert said and {*NAMES.findall(said)} <= {*NAMES.findall(phrase)}, (tag, phrase)
        assert all(NAMES.findall(form) == ["{n}"] for forms in catalogue["nouns"].values() for form in forms), tag
    words = [*Verdict, *get_args(SourceType), *get_args(SourceFlag)]
    in_code = [*said_in_code()]
    phrases = {
        *(said for part, said in in_code if part == "phrases"),
        *(word.replace("_", " ") for word in words),
        *(one.words for one in Corroboration),
        *Reason,
        *MARKS.values(),
        *LANGUAGES.values(),
    }
    assert len(phrases) > 250 and phrases <= one["phrases"].keys(), phrases - one["phrases"].keys()
    assert {noun for part, noun in in_code if part == "nouns"} <= one["nouns"].keys()


def texts(page: str) -> set[str]:
    """Return the texts of a page and of its labels."""
    tree = html.fromstring(page)
    labels = tree.xpath("//@aria-label | //@data-copied")
    return {text.strip() for text in [*tree.xpath("//body//text()[not(ancestor::script)]"), *labels]}


def texts_of_files(report: Report) -> Iterator[str]:
    """Yield the texts of a report's Word document, and the cells of its workbook and its csv file."""
    document, book = Document(BytesIO(render_docx(report))), load_workbook(BytesIO(render_xlsx(report)))
    yield from (paragraph.text for paragraph in document.paragraphs)
    yield from (cell.text for table in document.tables for row in table.rows for cell in row.cells)
    yield from (str(cell) for sheet in book for row in sheet.values for cell in (sheet.title, *row))
    yield from (cell for row in csv.reader(StringIO(render_csv(report).decode())) for cell in row)


def in_english(tag: str, *pages: str, files: Iterable[str] = ()) -> set[str]:
    """Return the fixed phrases of pages that are in English, and not in a language that says it in another way."""
    said = set(files).union(*map(texts, pages))
    return {phrase for phrase, other in CATALOGUES[tag]["phrases"].items() if phrase in said and other != phrase}


@cache
def english_page() -> str:
    return render_html(sample_report(), PHASES)


@pytest.mark.parametrize("tag", LANGUAGES_OF_REPORTS)
def test_a_report_is_in_one_language_in_every_form(tag: str) -> None:
    report, words = sample_report().model_copy(update={"language": tag}), wording(tag)
    text, page = render_markdown(report), render_html(report, PHASES)
    assert len(in_english(tag, english_page())) > 60
    of_the_sample = {"Year"}  # a column of a table in its sections
    assert in_english(tag, page, MarkdownIt().enable("table").render(text)) == of_the_sample
    assert f'<html lang="{tag}">' in page
    assert in_english(tag, files=texts_of_files(report)) == of_the_sample and render_pdf(report)
    book = load_workbook(BytesIO(render_xlsx(report)))
    assert book.sheetnames[:3] == [words("Report"), words("Claims"), words("Sources")]
    assert [cell.value for cell in book.worksheets[2][1]] == list(map(words, ("Number", "Title", "Address", "Details")))
    english = render_markdown(sample_report())
    assert text.count("\n## ") == english.count("\n## ") and text.count("](http") == english.count("](http")
    for verdict in (Verdict.contradicted, Verdict.not_stated):
        assert text.count(words(MARKS[verdict])) == english.count(MARKS[verdict]) > 0


@pytest.mark.parametrize("tag", LANGUAGES_OF_REPORTS)
def test_so_are_what_changed_and_why_there_is_no_report(tag: str) -> None:
    words = wording(tag)
    said = Statement(claim=1, sentence="412", passages=["430"], sources=[Place(source_id="S1", url="u", title="T")])
    kinds: tuple[Kind, ...] = get_args(Kind)
    changes = Changes(
        query="Norden?",
        language=tag,
        before=Compared(run_id="1a2b", started="2026-11-01", claims=3, answered=Answered.yes),
        after=Compared(run_id="3c4d", started="2026-11-02", answered=Answered.maybe),
        changes=[Change(kind=kind, before=said, after=said if kind == "changed" else None) for kind in kinds],
        unmentioned=1,
        unread=[said],
        sources_new=said.sources,
        sources_gone=said.sources,
    )
    page, text = render_changes_html(changes), render_changes(changes)
    assert in_english(tag, page, MarkdownIt().render(text)) == set()
    assert words("{number} unchanged", number=0) in page and words("New sources") in text
    lost = changes.model_copy(update={"after": Compared(run_id="3c4d", started="2026-11-02")})
    assert words("no report this time; the one before had {claims}", claims=words.counted(3, "claim")) in (
        summary_of(lost, words)
    )
    why = Unanswered(
        searched=[Searched(tool="documents", where=["a", "b"], documents=2, calls=2, failed=1, sources=0)],
        closest=[],
        absent=[AbsentWord(word=f"word{n}", nearby=["works", "words"]) for n in range(9)],
        unread=[
            UnreadFile(path="a.bin", reason="it is not text"),
            UnreadFile(path="corpus:prices _0a1b2c/b.zip", reason="nobody knows"),
        ],
        asked_in=tag,
        written_in="en",
        next_steps=[],
        language=tag,
    )
    text = render_unanswered("Q?", why)
    assert in_english(tag, MarkdownIt().render(text)) == set()
    assert words.stored("it is not text") in text and "it is not text" not in text and "nobody knows" in text
    assert words("{file}, a file for this question", file="b.zip") in text and "_0a1b2c" not in text
    assert words.joined(["works", "words"], "or") in text and words("English") in text


def test_the_language_is_decided_by_the_question_and_kept(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    said = "# Preisliste\n\nDer Hygro Pro kostet 249 Euro. Die Lieferung dauert drei Tage.\n"
    (tmp_path / "notes/preise.md").write_text(said, encoding="utf-8")
    asked = ["research", "Was kostet der Hygro Pro und wie lange dauert die Lieferung?", "--docs", "notes", "--json"]
    result = json.loads(fathom_cli(asked, prefect_server.env).stdout)
    text = Path(result["report"]).read_text(encoding="utf-8")
    assert "## Quellen" in text and "**Verlässlichkeit:** nicht bewertet" in text and "Stand: " in text
    assert "Every sentence" not in text and "## Sources" not in text and "claims" not in text.lower()
    again = fathom_cli(["replay", result["run_id"]], prefect_server.env)
    assert again.returncode == 0, again.stderr
    nothing = fathom_cli(["research", "Wer war der erste Mensch auf dem Mond?", "--docs", "notes"], prefect_server.env)
    assert "Was Sie tun können" in nothing.stdout and "What you can do" not in nothing.stdout


ASKED = {
    "": ["What does Notion cost?", "Compare Slack and Teams", "Is Die Hard a Christmas movie?", "El Niño forecast"],
    "de": ["Was kostet Notion?", "Warum ging SVB pleite?", "Nebenwirkungen von Ibuprofen", "Wem gehört das Patent?"],
    "fr": ["Combien coûte Notion ?", "Compare Slack et Teams", "Pourquoi SVB a fait faillite ?", "Prix du Hygro Pro"],
    "es": ["¿Cuánto cuesta Notion?", "Compara Slack y Teams", "¿Es fiable OpenAI?", "Ventajas de una bomba de calor"],
    "it": ["Quanto costa Notion?", "Confronta Slack e Teams", "OpenAI è affidabile?", "Quanti giorni di ferie ho?"],
    "pt": ["Quanto custa o Notion?", "Compare o Slack e o Teams", "Por que o SVB faliu?", "A OpenAI é confiável?"],
    "nl": ["Wat kost Notion?", "Hoe werkt RAG?", "Vergelijk Slack en Teams", "Bijwerkingen van ibuprofen"],
    "zh": ["Notion多少钱？", "比较Slack和Teams", "iPhone 16 Pro Max 电池续航", "OpenAI可靠吗？"],
    "ja": ["Notionの料金は？", "有給休暇は何日？", "SlackとTeamsを比較して", "東京国立博物館の開館時間"],
}


@pytest.mark.parametrize("tag", ASKED)
def test_few_words_among_names_tell_the_language_of_a_question(tag: str) -> None:
    assert {asked: language_for(asked) for asked in ASKED[tag]} == dict.fromkeys(ASKED[tag], tag)


def test_an_unclear_question_is_answered_in_english() -> None:
    assert language_for("Python descriptors?") == language_for("How does it work and what is it?") == ""
    assert language_for("Und der Preis?", "Was kostet der Hygro Pro?") == "de"
    assert language_for("Какая цена?") == language_for("5 kΩ resistor") == ""


def test_a_plan_that_wants_another_language_has_its_way() -> None:
    assert language_wanted("German, formal", "fr") == "de"
    assert language_wanted("simple", "fr") == language_wanted("", "fr") == "fr"
    assert language_wanted("English", "fr") == language_wanted("Korean", "fr") == ""


def test_asking_words_of_another_language_name_no_topic() -> None:
    assert keywords("Combien de jours et quelle indemnité ?") == ["jours", "indemnité"]
    assert keywords("Wie lange dauert die Lieferung?") == ["dauert", "Lieferung"]
    assert keywords("What is the price?") == ["price"]
