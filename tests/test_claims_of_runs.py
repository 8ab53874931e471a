"""Whole runs with a model that invents: what is cited was retrieved, what is claimed is in the stored bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fathom.config.groups import ReportSettings, SourceRules, Unsupported
from fathom.errors import StoreError
from fathom.models import Ending, Report, RunResult, Verdict
from fathom.storage.store import ArtifactStore
from flows.runs import find
from flows.verifying import verified
from tests.conftest import FathomCLI
from tests.inprocess import investigated, research
from tests.stubs import Stubs
from tests.stubs.openai import INVENTED

INVENTIONS = ("invented.example", "Sffffff", "S0a0a0a", "Sabcdef01", "Vasterby", "4711", "zeppelin")

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run."""
    providers.settings.page_bytes = 2_000
    return providers


def report_of(result: RunResult) -> Report:
    return Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes())


def text_of(result: RunResult) -> str:
    """Return what the sections say, and the list of sources."""
    report = report_of(result)
    return "\n".join([*(section.markdown for section in report.sections), *(source.url for source in report.sources)])


@pytest.mark.parametrize("role", ["compressor", "section", "stub"])
async def test_what_a_model_invents_is_not_in_the_report(providers: Stubs, tmp_path: Path, role: str) -> None:
    providers.settings.faults = {role: ["invented*"]}
    result = await investigated(tmp_path)
    assert result.report, result.reason
    report, text = report_of(result), text_of(result)
    assert not [word for word in INVENTIONS if word in text]
    retrieved = {
        source["source_id"]
        for path in Path(result.artifacts).glob("*__step*.json")
        for source in json.loads(path.read_bytes())["results"]
    }
    cited = set(re.findall(r"\[(S[0-9a-f]+)\]", text))
    assert cited <= retrieved
    assert {source.source_id for source in report.sources} <= retrieved
    assert report.claims
    assert not [claim for claim in report.claims if claim.verdict is Verdict.unsupported]


async def test_the_reporter_is_asked_again_once_with_what_the_sources_say(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"section": ["invented", "ok*"]}
    result = await investigated(tmp_path)
    assert result.status is Ending.complete
    first, again, *others = providers.calls("section")
    assert len(others) == 3
    told = again.body["messages"][-1]["content"]
    assert "Professor Quillon Vasterby counted 4711 of them in 1899." in told
    assert "The sources say:\n<source>\nFACT-" in told
    assert "not supported by the sources they cite" in told
    assert "not supported by the sources they cite" not in first.body["messages"][-1]["content"]
    assert not any("left out" in line for line in report_of(result).limitations)


async def test_sentences_can_be_marked_instead(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"section": ["invented*"]}
    result = await investigated(tmp_path, report=ReportSettings(unsupported=Unsupported.mark))
    report = report_of(result)
    failing = [claim for claim in report.claims if claim.verdict is Verdict.unsupported]
    marks = sum(section.markdown.count("(not supported by the sources)") for section in report.sections)
    assert len(failing) == marks > 4
    assert "left out or marked" in " ".join(report.limitations)


async def test_an_answer_that_its_source_does_not_have_is_not_given(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.answer = "Two zeppelins crossed the liquid methane in 1931. [ID]"
    result = await investigated(tmp_path, mode="answer")
    assert result.status is Ending.degraded
    assert result.answer
    assert "zeppelins" not in result.answer
    assert not [claim for claim in report_of(result).claims if claim.verdict is Verdict.unsupported]


async def test_a_judge_s_opinion_stands_beside_the_words(providers: Stubs, tmp_path: Path) -> None:
    result = await investigated(tmp_path, report=ReportSettings(judge=True))
    judges = providers.calls("judge")
    claims = report_of(result).claims
    assert len(judges) == -(-len(claims) // 10)
    assert {claim.judgement.model for claim in claims if claim.judgement} <= {"openai/stub"}


async def test_a_blocked_domain_is_never_read(providers: Stubs, tmp_path: Path) -> None:
    hosts = {source.url.split("/")[2] for source in (await investigated(tmp_path / "all")).sources}
    blocked = sorted(hosts)[0]
    result = await investigated(tmp_path / "some", sources=SourceRules(block=[blocked]))
    files = list(Path(result.artifacts).glob("*__step*.json"))
    assert files
    assert not any(blocked in path.read_text() for path in files)


async def test_sources_below_the_least_quality_make_no_report(providers: Stubs, tmp_path: Path) -> None:
    result = await investigated(tmp_path, sources=SourceRules(min_quality=1))
    assert result.status is Ending.insufficient_evidence
    assert result.report is None


@pytest.mark.usefixtures("prefect_server")
async def test_a_run_is_verified_and_its_tampering_named(
    providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    result = await research(tmp_path)
    done = fathom_cli(["verify", result.artifacts, "--json"])
    assert done.returncode == 0, done.stdout + done.stderr
    folder, store = Path(result.artifacts), ArtifactStore(str(tmp_path))
    run = await find(store, result.run_id)
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        try:
            found = str((await verified(store, run)).problems)
        except StoreError as error:
            found = error.message
        assert path.name in found
        if path.name in ("plan.json", "provenance.json", "report.md"):
            done = fathom_cli(["verify", result.artifacts])
            assert done.returncode == 1, path.name
            assert path.name in done.stdout + done.stderr
        path.write_bytes(data)
    assert INVENTED not in text_of(result)
    quote = report_of(result).claims[0].quotes[0]
    assert fathom_cli(["trace", result.artifacts, "1"]).returncode == 0
    path = folder / quote.artifact_file
    data = path.read_bytes()
    path.write_bytes(data[: quote.start] + b"#" + data[quote.start + 1 :])
    done = fathom_cli(["trace", result.artifacts, "1"])
    assert done.returncode == 1
    assert f"{quote.artifact_file}: bytes {quote.start} to {quote.end}" in done.stderr


MANUAL = """# Frob

The server answers with one of these codes.

| Code | Meaning | Retry |
|---|---|---|
| 200 | all went well | no |
| 404 | not found | no |

Install the tides client with:

```sh
pip install frob
frob tides --all
```
"""
TABLE = "| Code | Meaning |\n|---|---|\n"
CODE = "Install the tides client with: [ID]\n\n```sh\npip install frob\nfrob tides --all\n```"


@pytest.mark.usefixtures("prefect_server")
async def test_rows_and_code_of_a_document_are_quoted_checked_and_shown(
    providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "frob.md").write_text(MANUAL)
    providers.settings.bullets = [
        "| Code | Meaning | Retry |\n|---|---|---|\n| 404 | not found | no | [ID]",
        "Install the tides client with:\n\n```sh\npip install frob\nfrob tides --all\n```\n[ID]",
    ]
    rows = ["| 404 | not found [ID] |", "| 405 | not found [ID] |", "| 404 | all went well [ID] |"]
    providers.settings.section = f"{TABLE}{chr(10).join(rows)}\n\n{CODE}"
    mark = ReportSettings(unsupported=Unsupported.mark)
    result = await research(
        tmp_path / "store", "What is frob?", docs=[str(notes)], tools=["documents"], report=mark, profile="quick"
    )
    assert result.report, result.reason
    report = report_of(result)
    assert all(
        "404" in " ".join(note["extraction"]) for note in json.loads(Path(result.artifacts, "notes.json").read_bytes())
    )
    verdicts = {claim.sentence: claim.verdict for claim in report.claims}
    assert verdicts == {
        "404 | not found": Verdict.supported,
        "405 | not found": Verdict.unsupported,
        "404 | all went well": Verdict.unsupported,
        "pip install frob frob tides --all": Verdict.supported,
    }
    code = next(claim for claim in report.claims if claim.sentence.startswith("pip"))
    assert [quote.text for quote in code.quotes] == ["pip install frob\nfrob tides --all"]
    assert "the cells are of different rows" in str([claim.complaints for claim in report.claims])
    page = Path(result.artifacts, "report.html").read_text()
    assert '<pre tabindex="0"><code>pip install frob\nfrob tides --all\n</code></pre>' in page
    assert f'href="#claim-{code.number}"' in page
    assert "<td>404</td>" in page
    done = fathom_cli(["verify", result.artifacts])
    assert done.returncode == 0, done.stdout + done.stderr
