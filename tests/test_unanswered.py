"""A question without an answer is told where was searched, what comes closest, what is missing and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fathom.models import AbsentWord, Ending, RunResult, Unanswered
from fathom.report.unanswered import UNANSWERED, parts_of
from fathom.retrieval.expansion import meant_by
from tests.conftest import FathomCLI, PrefectServer
from tests.inprocess import investigated
from tests.stubs import Stubs

CRANES = (
    "# Cranes\n\nThe harbour crane lifts containers of up to forty tonnes from the ferries.\n\n"
    "Maintenance of the cranes is planned for the quiet weeks in November.\n"
)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Two documents in English."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "cranes.md").write_text(CRANES)
    (folder / "ferries.md").write_text("# Ferries\n\nThe ferries carry passengers and cars to the islands.\n")
    return folder


async def unanswered(root: Path, question: str, **settings: Any) -> Unanswered:
    result = await investigated(root, question, **{"model": "extractive", **settings})
    assert (result.status, result.report) == (Ending.insufficient_evidence, None)
    assert result.unanswered
    return result.unanswered


@pytest.mark.usefixtures("home")
async def test_misspelt_words_are_named_with_what_they_may_mean(docs: Path, tmp_path: Path) -> None:
    found = await unanswered(
        tmp_path,
        "Which craens insure ferries and chemical contaners against piracy, mutiny, hail, lightning and earthquakes?",
        docs=[str(docs)],
    )
    assert found.absent == [
        AbsentWord(word="craens", nearby=["cranes"]),
        AbsentWord(word="insure"),
        AbsentWord(word="chemical"),
        AbsentWord(word="contaners", nearby=["containers"]),
        AbsentWord(word="piracy"),
        AbsentWord(word="mutiny"),
        AbsentWord(word="hail"),
        AbsentWord(word="lightning"),
        AbsentWord(word="earthquakes"),
    ]
    [searched] = found.searched
    assert (searched.where, searched.documents, searched.failed) == ([str(docs)], 2, 0)
    assert (
        found.next_steps[0] == "Check the spelling: “cranes” instead of “craens”, “containers” instead of “contaners”?"
    )
    assert "lifts containers" in found.closest[0].text
    assert found.closest[0].url == "docs:docs/cranes.md"
    assert found.next_steps[1:3] == [
        "Rephrase the question, or ask only a part of it.",
        "Name the document that should have the answer, or add it: `--docs FILE`.",
    ]
    assert not any("TAVILY_API_KEY" in step for step in found.next_steps)  # the question was for these files


@pytest.mark.usefixtures("home")
async def test_a_question_in_another_language_is_told_that_of_the_sources(docs: Path, tmp_path: Path) -> None:
    found = await unanswered(tmp_path, "Wie viele Kinder dürfen auf das Oberdeck?", docs=[str(docs)])
    assert (found.asked_in, found.written_in) == ("de", "en")
    assert "Ask in English, the language of the sources." in found.next_steps
    assert not any(word.nearby for word in found.absent)
    assert "Language" in [part.heading for part in parts_of(found)]


@pytest.mark.usefixtures("home")
async def test_no_other_language_is_asked_for_where_some_documents_are_in_that_of_the_question(
    docs: Path, tmp_path: Path
) -> None:
    (docs / "oberdeck.md").write_text("# Oberdeck\n\nDas Oberdeck ist nicht überdacht und wird von oben bewacht.\n")
    found = await unanswered(tmp_path, "Wer leistet erste Hilfe?", docs=[str(docs)])
    assert (found.asked_in, found.written_in) == ("", "")
    assert not any(step.startswith("Ask in ") for step in found.next_steps)


async def test_searches_that_fail_are_counted_and_their_tool_is_to_be_checked(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"search": ["432*"]}
    found = await unanswered(tmp_path, "How do tides form?", model="openai/stub", tools=["web_search"])
    [searched] = found.searched
    assert searched.calls == searched.failed > 0
    assert (searched.where, searched.documents, found.closest) == (["the web"], None, [])
    assert found.next_steps[0].startswith("Ask again later: ")


def test_a_first_letter_is_not_taken_for_misspelt() -> None:
    assert meant_by("Mount", {"count": 9, "amount": 9, "mound": 1}) == ["mound"]


@pytest.mark.usefixtures("home")
async def test_what_pages_say_is_text_in_markdown(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    hostile = "The *whale* <script>alert(1)</script> [click](http://evil.example) `code` dives.\x1b[31m\n"
    (tmp_path / "docs/whales.md").write_text(hostile)
    result = await investigated(
        tmp_path, "Which whale sings operas?", docs=[str(tmp_path / "docs")], model="extractive"
    )
    assert result.unanswered
    markdown = (Path(result.artifacts) / UNANSWERED).read_text()
    assert "\\*whale\\*" in markdown
    assert "\\<script>" in markdown
    assert "\x1b" not in markdown


def test_the_command_line_shows_it_and_so_does_json(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, docs: Path, tmp_path: Path
) -> None:
    arguments = ["research", "Which craens sing operas?", "--docs", str(docs)]
    done = fathom_cli(arguments, prefect_server.env)
    assert done.returncode == 3, done.stderr
    assert "craens (did you mean cranes?)" in done.stdout
    [path] = tmp_path.rglob("result.json")
    result = RunResult.model_validate_json(path.read_bytes())
    assert result.unanswered
    shown = fathom_cli(["show", result.run_id[:8]])
    assert "craens (did you mean cranes?)" in shown.stdout
    # Whoever reads that sources were read is not told beside it that nothing was found.
    assert "nothing that was read answers the question" in shown.stdout and "nothing was found" not in shown.stdout
    assert result.stop == "nothing was found"
    assert json.loads(fathom_cli(["show", result.run_id[:8], "--json"]).stdout)["result"]["unanswered"]
    replayed = fathom_cli(["replay", result.run_id[:8], "--json"])
    files = {file["name"]: file["state"] for file in json.loads(replayed.stdout)}
    assert files[UNANSWERED] == "same"
