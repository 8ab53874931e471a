"""Whole runs with a model that invents: what is cited was retrieved, what is claimed is in the stored bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fathom.config.groups import Judging, ReportSettings, SourceRules, Unsupported
from fathom.errors import StoreError
from fathom.evidence.claims import MARKS, claims_of
from fathom.flows.runs.comparing import verified
from fathom.flows.runs.stored import find
from fathom.models import Corroboration, Ending, Report, RunResult, Verdict
from fathom.storage.store import ArtifactStore
from fathom.text.urls import source_ids
from tests.conftest import FathomCLI
from tests.inprocess import investigated, kept
from tests.stubs import Stubs
from tests.stubs.openai import INVENTED

INVENTED_SOURCES = ("invented.example", "Sffffff", "S0a0a0a", "Sabcdef01")
INVENTIONS = (*INVENTED_SOURCES, "Vasterby", "4711", "zeppelin")

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run."""
    providers.settings.breadth, providers.settings.page_bytes = 1, 2_000
    return providers


def report_of(result: RunResult) -> Report:
    return Report.model_validate_json(Path(result.artifacts, "report.json").read_bytes())


def text_of(result: RunResult) -> str:
    """Return what the sections say, and the list of sources."""
    report = report_of(result)
    return "\n".join([*(section.markdown for section in report.sections), *(source.url for source in report.sources)])


@pytest.mark.parametrize("role", ["compressor", "section", "stub"])
async def test_what_a_model_invents_is_not_in_the_report_or_marked(providers: Stubs, tmp_path: Path, role: str) -> None:
    providers.settings.faults = {role: ["invented*"]}
    result = await investigated(tmp_path)
    assert result.report, result.reason
    report, text = report_of(result), text_of(result)
    retrieved = {
        source["source_id"]
        for path in Path(result.artifacts).glob("*__step*.json")
        for source in json.loads(path.read_bytes())["results"]
    }
    cited = set(re.findall(r"\[(S[0-9a-f]+)\]", text))
    assert cited <= retrieved
    assert {source.source_id for source in report.sources} <= retrieved
    assert report.claims
    assert not [word for word in INVENTED_SOURCES if word in text]
    invented = [claim for claim in report.claims if any(word in claim.sentence for word in INVENTIONS)]
    failing = [claim for claim in report.claims if claim.verdict.objects]
    assert bool(invented) is (role != "compressor"), "what a writer invents stands there, as nothing else does"
    assert all(claim in failing for claim in invented), "also what cites nothing"
    marks = [MARKS[Verdict.not_stated], MARKS[Corroboration.unverified]]
    assert sum(map(text.count, marks)) == len(failing)
    assert (MARKS[Corroboration.unverified] in text) is bool(invented)


async def test_the_writer_corrects_a_sentence_to_which_the_judge_objects(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"section": ["half_false", "ok*"]}
    providers.settings.replacement = "Nobody counted the zeppelins."
    providers.settings.verdicts = {"Nobody counted": "supported"}
    result = await investigated(tmp_path)
    assert result.status is Ending.complete
    assert len(providers.calls("section")) == 4
    (correction,) = providers.calls("correction")
    told = correction.body["messages"][-1]["content"]
    assert "Objection 1: not stated (as scripted)" in told
    assert "Exactly 4711 zeppelins did it in 1899 [S" in told
    assert told.count("Objection") == 1 and '\n<source id="S' in told and "\nPassages: 1" in told
    report, text = report_of(result), text_of(result)
    assert "zeppelins did it" not in text and not [mark for mark in MARKS.values() if mark in text]
    (claim,) = [claim for claim in report.claims if claim.sentence == "Nobody counted the zeppelins."]
    assert claim.source_ids, "the sources of the sentence that it replaces"
    assert claim.verdict is Verdict.supported and claim.judgement
    assert (claim.judgement.model, claim.judgement.reason) == ("openai/stub", "as scripted")
    assert not any("Taken out" in line for line in report.limitations)


async def test_a_sentence_that_cites_nothing_is_corrected_by_passages_of_its_section(
    providers: Stubs, tmp_path: Path
) -> None:
    providers.settings.section = "Methane seas rise and fall. [ID]\n\nExactly 4711 zeppelins crossed methane in 1899."
    await investigated(tmp_path)
    asked = [call.body["messages"][-1]["content"] for call in providers.calls("correction")]
    assert asked and all("4711 zeppelins" in told and '\n<source id="S' in told for told in asked)


async def test_a_sentence_below_code_that_is_cited_behind_its_fence_is_checked(
    providers: Stubs, tmp_path: Path
) -> None:
    """It was taken for code, which no check reads: the fence was not closed."""
    false = "Exactly 4711 zeppelins crossed methane in 1899."
    providers.settings.section = f"It starts with:\n\n```sh\nfrob\n```\n[ID]\n\n{false} [ID]"
    result = await investigated(tmp_path, report={"judge": "never"}, profile="quick")
    assert {claim.verdict for claim in report_of(result).claims if claim.sentence == false} == {Verdict.not_stated}


async def test_what_the_writer_takes_out_is_named_in_the_report(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"section": ["half_false", "ok*"]}
    result = await investigated(tmp_path)
    report = report_of(result)
    assert "zeppelins" not in text_of(result)
    assert not [claim for claim in report.claims if claim.verdict.objects]
    taken_out = "Taken out, because its sources do not say it: “Exactly 4711 zeppelins did it in 1899.”"
    assert [line for line in report.limitations if "Taken out" in line] == [taken_out]


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict.objects])
@pytest.mark.parametrize("unsupported", Unsupported)
async def test_a_sentence_that_stays_objected_is_marked_or_removed(
    providers: Stubs, tmp_path: Path, unsupported: Unsupported, verdict: Verdict
) -> None:
    providers.settings.faults = {"section": ["half_false*"]}
    providers.settings.verdicts = {"Exactly 4711": verdict.value}
    providers.settings.replacement = "Exactly 4711 zeppelins did it in 1899."
    result = await investigated(tmp_path, report=ReportSettings(unsupported=unsupported))
    report, text = report_of(result), text_of(result)
    marks = text.count(f" {MARKS[verdict]}")
    taken_out = sum("Taken out" in line and "zeppelins" in line for line in report.limitations)
    if unsupported is Unsupported.remove:
        assert (text.count("zeppelins"), marks, taken_out) == (0, 0, 4)
    else:
        assert (text.count("zeppelins"), marks, taken_out) == (4, 4, 0)
        failing = [claim for claim in report.claims if claim.verdict.objects]
        assert [(claim.verdict, claim.sentence) for claim in failing] == [(verdict, providers.settings.replacement)] * 4
    assert len(providers.calls("correction")) == 4, "the writer is asked once for each section"


async def test_an_answer_that_its_source_does_not_have_is_marked_and_unsure(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.answer = "Two zeppelins crossed the liquid methane in 1931. [ID]"
    result = await investigated(tmp_path, mode="answer")
    assert result.status is Ending.complete
    assert result.answer and result.answer.endswith(MARKS[Verdict.not_stated])
    assert result.confidence is not None and result.confidence < 0.5 < providers.settings.confidence
    assert [claim.verdict for claim in report_of(result).claims] == [Verdict.not_stated]
    assert "**How sure:** low. The sources cited do not say it" in Path(result.artifacts, "report.md").read_text()


async def test_the_judge_decides_what_words_do_not_settle(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.section = "Methane seas rise and fall twice a day. [ID] The wind is stronger than the moon. [ID]"
    providers.settings.verdicts = {"Methane": "supported", "The wind": "contradicted"}
    result = await investigated(tmp_path)
    report = report_of(result)
    assert {(claim.sentence.split()[0], claim.verdict) for claim in report.claims} == {("Methane", Verdict.supported)}
    assert {claim.judgement.model for claim in report.claims if claim.judgement} == {"openai/stub"}
    said = " ".join(report.limitations)
    assert "What no source says word for word was judged by openai/stub." in said
    assert "“The wind is stronger than the moon.”" in said
    asked = json.loads(Path(result.artifacts, "judgements.json").read_bytes())
    assert {one["model"] for one in asked} == {"openai/stub"}
    assert len(asked) == len(providers.calls("judge"))


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


async def test_a_run_is_verified_and_its_tampering_named(
    providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    providers.settings.steps = providers.settings.breadth = 1
    result = await kept(tmp_path)
    done = fathom_cli(["verify", result.artifacts, "--json"])
    assert done.returncode == 0, done.stdout + done.stderr
    folder, store = Path(result.artifacts), ArtifactStore(str(tmp_path))
    run = await find(store, result.run_id)
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        try:
            found = str((await verified(run)).problems)
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
    remove = ReportSettings(unsupported=Unsupported.remove, judge=Judging.always)  # a row is marked even so
    result = await kept(
        tmp_path / "store", "What is frob?", docs=[str(notes)], tools=["documents"], report=remove, profile="quick"
    )
    assert result.report, result.reason
    report = report_of(result)
    assert all(
        "404" in " ".join(note["extraction"]) for note in json.loads(Path(result.artifacts, "notes.json").read_bytes())
    )
    verdicts = {claim.sentence: claim.verdict for claim in report.claims}
    assert verdicts == {
        "404 | not found": Verdict.supported,
        "405 | not found": Verdict.not_stated,
        "404 | all went well": Verdict.not_stated,
        "Install the tides client with:": Verdict.supported,
        "pip install frob frob tides --all": Verdict.supported,
    }
    code = next(claim for claim in report.claims if claim.sentence.startswith("pip"))
    assert [quote.text for quote in code.quotes] == ["pip install frob\nfrob tides --all"]
    complaints = {claim.sentence: claim.complaints for claim in report.claims}
    assert complaints["405 | not found"] == ["405 stands nowhere in its sources"]
    for row in ("405 | not found", "404 | all went well"):
        assert f"| {row} [{report.claims[0].source_ids[0]}] {MARKS[Verdict.not_stated]} |" in text_of(result)
    page = Path(result.artifacts, "report.html").read_text()
    assert '<pre tabindex="0"><code>pip install frob\nfrob tides --all\n</code></pre>' in page
    assert f'href="#claim-{code.number}"' in page
    assert "<td>404</td>" in page
    done = fathom_cli(["verify", result.artifacts])
    assert done.returncode == 0, done.stdout + done.stderr


ALONE = MARKS[Corroboration.single_source]


@pytest.mark.parametrize("model", ["openai/stub", "extractive"])
async def test_a_claim_without_a_second_source_is_marked_where_one_is_required(
    providers: Stubs, tmp_path: Path, model: str
) -> None:
    rows = "| tank | litres |\n|---|---|\n| Orrin | 412 {0}|\n"
    docs = tmp_path / "docs"
    docs.mkdir()
    said = ["The tank of Pell holds 90 litres of methane", "The tank of Orrin was painted green by its owner"]
    (docs / "one.md").write_text(f"# Tanks\n\n{said[0]}. {said[1]}.\n\n{rows.format('')}")
    seen = (
        "The harbour was empty that day.",
        "A guide showed us the pumps.",
        "Nobody was allowed to climb the ladder.",
    )
    (docs / "two.md").write_text(f"# Visit\n\n{' '.join(seen)} {said[0]}. We left by the last ferry of the evening.")
    providers.settings.section = f"{said[0]} [ID]. {said[1]} [ID].\n\n{rows.format('[ID] ')}"
    query = "How many litres of methane do the tanks of Pell and Orrin hold, and who painted one?"
    settings: dict[str, Any] = {"model": model, "docs": [str(docs)], "tools": ["documents"], "depth": 1}
    rules = SourceRules(require_corroboration=True)
    report = report_of(await investigated(tmp_path / "strict", query, sources=rules, **settings))
    plain = report_of(await investigated(tmp_path / "plain", query, **settings))
    folder = next(tmp_path.glob("strict/research_artifacts/*"))
    alone = {claim.sentence for claim in report.claims if claim.corroboration is not Corroboration.verified}
    for sentence, lone in zip(said, (False, True), strict=True):
        assert (f"{sentence}." in alone) is lone
        for form in ("report.md", "report.html"):
            text = re.sub(r"\s*\[?1\]?(?=\.| \()", "", re.sub(r"<[^>]+>", "", folder.joinpath(form).read_text()))
            assert (f"{sentence}. {ALONE}" in text) is lone, (form, sentence)
    kept = [section.markdown.replace(f" {ALONE}", "") for section in report.sections]
    assert kept == [section.markdown for section in plain.sections], "nothing is removed"
    assert sum("no two independent sources" in line for line in report.warnings) == 1
    assert "marked in the text" in report.warnings[0]
    assert [one.sentence for one in claims_of(report.sections)] == [claim.sentence for claim in report.claims]


async def test_what_a_later_mail_corrects_is_disputed_in_the_report(
    providers: Stubs, fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    """The sentence stands in its own source, word for word: only the critic knows that it was corrected."""
    docs = tmp_path / "docs"
    docs.mkdir()
    mails = {
        "october.md": "The reservation of a place in the cold store costs 2.80 EUR per week.",
        "november.md": "What I named is the rate of 2027. For weeks in 2026 it is 2.30 EUR for a place in the store.",
    }
    for name, text in mails.items():
        (docs / name).write_text(f"# The cold store\n\n{text}\n")
    ids = [*source_ids(f"docs:docs/{name}" for name in mails).values()]
    said, instead = mails["october.md"], "For weeks in 2026 it is 2.30 EUR."
    found = {"claim_a": said, "claim_b": instead, "source_ids": ids, "other_source_ids": ids[1:], "holds": "claim_b"}
    providers.settings.critique = {"contradictions": [found | {"resolution": "Corrected by a later mail."}]}
    providers.settings.section = f"{said[:-1]} [{ids[0]}]."
    result = await kept(
        tmp_path / "store", "What does a place in the cold store cost?", docs=[str(docs)], tools=["documents"]
    )
    report = report_of(result)
    claims = [claim for claim in report.claims if claim.sentence == said]
    assert claims and {claim.verdict for claim in claims} == {Verdict.supported}
    assert {claim.corroboration for claim in claims} == {Corroboration.contradicted}
    assert [quote.source_id for quote in claims[0].contradicting] == ids[1:]
    told = next(line for line in report.warnings if said in line)
    assert told == f"“{said}” is contradicted by another source, “The cold store”.", "once, though four sections say it"
    assert all(f"{said[:-1]} [{ids[0]}]. *(another source says otherwise)*" in one.markdown for one in report.sections)
    assert fathom_cli(["verify", result.artifacts]).returncode == 0
