"""The fixed words of a report follow the question's language, and every catalogue has all of them."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import fathom.text.wording
from fathom.models import Verdict
from fathom.models.evidence import Corroboration, SourceFlag, SourceType
from fathom.report.docx import render_docx
from fathom.report.exporting import render_pdf
from fathom.report.html import render_html
from fathom.report.markdown import render_markdown
from fathom.run.checklist import Reason
from fathom.text.wording import LANGUAGES_OF_REPORTS, language_for, wording
from tests.conftest import FathomCLI, PrefectServer
from tests.sample_report import PHASES, sample_report

ROOT = Path(__file__).parents[1]
CATALOGUES = {
    file.stem: tomllib.loads(file.read_text(encoding="utf-8"))
    for file in (Path(fathom.text.wording.__file__).parent / "catalogues").iterdir()
}
NAMES = re.compile(r"\{\w+\}")


def said_in_code() -> Iterator[str]:
    """Yield the phrases that `words(...)` is called with."""
    for file in [*(ROOT / "fathom").glob("*/*.py"), ROOT / "flows/writing.py"]:
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "words":
                literal = call.args[0] if call.args else None
                if isinstance(literal, ast.Constant):
                    yield str(literal.value)
    for template in (ROOT / "fathom/report/templates").glob("*.j2"):
        yield from re.findall(r'words\("([^"]+)"', template.read_text(encoding="utf-8"))


def test_every_catalogue_has_every_phrase_with_the_same_values() -> None:
    assert sorted(CATALOGUES) == ["de", "es", "fr", "it", "ja", "nl", "pt", "zh"]
    one = CATALOGUES["de"]
    for tag, catalogue in CATALOGUES.items():
        assert {part: list(held) for part, held in catalogue.items()} == {
            part: list(held) for part, held in one.items()
        }
        for phrase, said in catalogue["phrases"].items():
            assert said and sorted(NAMES.findall(phrase)) == sorted(NAMES.findall(said)), (tag, phrase)
        assert all(NAMES.findall(form) == ["{n}"] for forms in catalogue["nouns"].values() for form in forms), tag
    words = [*Verdict, *get_args(SourceType), *get_args(SourceFlag)]
    known = {
        *said_in_code(),
        *(word.replace("_", " ") for word in words),
        *(one.words for one in Corroboration),
        *Reason,
    }
    assert len(known) > 150 and known <= one["phrases"].keys(), known - one["phrases"].keys()


@pytest.mark.parametrize("tag", LANGUAGES_OF_REPORTS)
def test_a_report_is_in_one_language_in_every_form(tag: str) -> None:
    report, words = sample_report().model_copy(update={"language": tag}), wording(tag)
    text, page = render_markdown(report), render_html(report, PHASES)
    assert render_docx(report) and render_pdf(report)
    assert f'<html lang="{tag}">' in page
    for phrase in ("Where sources disagree", "Limitations", "How this was researched", "Sources", "Better supported"):
        assert f"{words(phrase)}" in text and words(phrase) in page
        if words(phrase) != phrase:
            assert f"## {phrase}" not in text and f">{phrase}<" not in page
    english = render_markdown(sample_report())
    assert text.count("\n## ") == english.count("\n## ") and text.count("](http") == english.count("](http")


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


def test_an_unclear_question_is_answered_in_english() -> None:
    assert language_for("Python descriptors?") == language_for("How does it work and what is it?") == ""
    assert language_for("Und der Preis?", "Was kostet der Hygro Pro?") == "de"
    assert language_for("Какая цена?") == ""
