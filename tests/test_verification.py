"""A run checked again from its files: nothing is missed that was changed, and a claim leads to its bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from fathom.errors import InvalidInput, StoreError
from fathom.evidence.provenance import PROVENANCE, Provenance, digest_of, read
from fathom.evidence.trace import trace
from fathom.evidence.verify import verify_run
from fathom.facts.dates import find_dates
from fathom.models import Metrics, Report, ReportSection
from fathom.models.evidence import Corroboration, Verdict
from fathom.storage.lease import LeaseFile
from fathom.storage.store import ArtifactStore, json_bytes
from fathom.text.citations import with_known_ids
from tests.conftest import FathomCLI
from tests.evidence_run import BRIDGE, IDS, finished_run

ROADS, GUIDE, NEWS = IDS.values()
SECTIONS = [
    ReportSection(
        heading="Opening",
        markdown=f"Edith Vance opened the Lyndhaven Bridge on 12 March 1932 [{ROADS}][{GUIDE}]. "
        f'A sign says: "No \\ anchors" – in a font called “Brücke” [{ROADS}].',
    ),
    ReportSection(
        heading="Today",
        markdown=f"- Traffic rose to 180,000 vehicles a day in 2018 [{ROADS}].\n"
        f"- The bridge spans 603 metres [{NEWS}].\n\nIt carries ten thousand cyclists a day.\n\n"
        f"| Year | Lanes |\n|---|---|\n| 1932 | eight lanes [{ROADS}] |\n",
    ),
]


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return finished_run(SECTIONS)


def resealed(files: dict[str, bytes], record: Provenance) -> dict[str, bytes]:
    """Return the files with a record whose own hash is right again, as a forger would leave them."""
    bare = record.model_copy(update={"sha256": ""})
    sealed = bare.model_copy(update={"sha256": digest_of(json_bytes(bare))})
    return {**files, PROVENANCE: json_bytes(sealed)}


def test_an_untouched_run_is_as_it_was_recorded(files: dict[str, bytes]) -> None:
    found = verify_run(files)
    assert found.problems == []
    assert found.files == len(files)
    assert [claim.verdict for claim in found.claims] == [
        Verdict.not_checked,  # the sources' sentence says more
        Verdict.supported,
        Verdict.supported,
        Verdict.not_stated,
        Verdict.not_stated,
        Verdict.not_checked,  # prose says it, not a row
    ]
    assert [found.claims[n].corroboration for n in (0, 1, 2)] == [
        Corroboration.verified,
        Corroboration.single_source,
        Corroboration.contradicted,
    ]
    assert found.claims[3].complaints == ["603 metres stands nowhere in its sources"]
    assert found.claims[4].source_ids == []
    assert found.claims[4].complaints == ["it cites nothing", "ten thousand stands nowhere in any source"]


def test_one_changed_byte_of_any_file_is_found_and_named(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        for position in sorted({0, len(data) // 3, len(data) // 2, len(data) - 1}):
            changed = bytearray(data)
            changed[position] ^= 1
            try:
                problems = verify_run({**files, name: bytes(changed)}).problems
            except StoreError as error:
                assert name == PROVENANCE in str(error)
                continue
            assert name in {problem.file for problem in problems}, (name, position)
        left = {other: content for other, content in files.items() if other != name}
        if name == PROVENANCE:
            with pytest.raises(StoreError):
                verify_run(left)
        else:
            assert any(p.file == name and "missing" in p.message for p in verify_run(left).problems)


def test_white_space_in_the_record_counts(files: dict[str, bytes]) -> None:
    spaced = files[PROVENANCE].replace(b'"plan": {', b'"plan":  {')
    (problem,) = verify_run({**files, PROVENANCE: spaced}).problems
    assert problem.message == "the file was changed: its SHA-256 is not the one that it records"


def test_a_forged_record_does_not_survive_the_check_itself(files: dict[str, bytes]) -> None:
    record, _ = read(files[PROVENANCE])
    wrong, cited = record.claims[3], record.claims[0]
    better = wrong.model_copy(update={"verdict": Verdict.supported, "complaints": []})
    forged = resealed(files, record.model_copy(update={"claims": [*record.claims[:3], better, *record.claims[4:]]}))
    problems = [(p.claim, p.message) for p in verify_run(forged).problems]
    assert (4, "verdict differs from the result of the check: not_stated") in problems
    quote = cited.quotes[0].model_copy(update={"start": cited.quotes[0].start + 1})
    moved = cited.model_copy(update={"quotes": [quote, *cited.quotes[1:]]})
    misplaced = resealed(files, record.model_copy(update={"claims": [moved, *record.claims[1:]]}))
    problems = [(p.claim, p.message) for p in verify_run(misplaced).problems]
    assert any(claim == 1 and "do not say what is quoted" in message for claim, message in problems)
    fewer = resealed(files, record.model_copy(update={"sources": record.sources[1:]}))
    assert any("sources do not match" in p.message for p in verify_run(fewer).problems)
    added = {**files, "bridge__step9_x__web_extract.json": b"{}"}
    assert [p.message for p in verify_run(added).problems] == ["no recorded call made this file"]


def test_a_report_that_says_something_else_is_found_even_with_right_hashes(files: dict[str, bytes]) -> None:
    report = Report.model_validate_json(files["report.json"])
    invented = f"The bridge is made of glass [S{'0' * 6}]."
    sections = [*report.sections, ReportSection(heading="New", markdown=invented)]
    changed = report.model_copy(update={"sections": sections})
    record, _ = read(files[PROVENANCE])
    data = json_bytes(changed)
    hashes = {**record.files, "report.json": digest_of(data), "report.md": digest_of(b"# Nothing\n")}
    forged = resealed(
        {**files, "report.json": data, "report.md": b"# Nothing\n"}, record.model_copy(update={"files": hashes})
    )
    messages = [problem.message for problem in verify_run(forged).problems]
    assert "it makes 7 claims, 6 are recorded" in messages
    assert "it cites S000000, which was never retrieved" in messages
    assert messages.count("its sentence is not in the report") == 6


def test_a_model_that_invents_ids_quotes_and_addresses_is_cited_with_nothing() -> None:
    known = set(IDS.values())
    invented = (
        f"The bridge was opened in 1932 [{ROADS}][Sdeadbe]. It is [very long](https://invented.example) [Sabcdef1234]. "
        f'The council said: "We never planned it" [{GUIDE}].'
    )
    files = finished_run([ReportSection(heading="Invented", markdown=with_known_ids(invented, known))])
    found = verify_run(files)
    assert found.ok
    assert {source_id for claim in found.claims for source_id in claim.source_ids} <= known
    assert [claim.verdict for claim in found.claims] == [
        Verdict.not_checked,  # words alone settle only what a source says word for word
        Verdict.not_checked,
        Verdict.not_checked,
    ]


def test_a_claim_leads_to_its_line_call_step_and_note(files: dict[str, bytes]) -> None:
    record, problems = read(files[PROVENANCE])
    assert problems == []
    found = trace(record, files, 2)
    assert found.heading == "Opening"
    (link,) = [link for link in found.links if link.part == "cited"]
    assert BRIDGE.split("\n")[link.line - 1] == link.before + link.quote.text + link.after
    assert link.quote.text == 'A sign says: "No \\ anchors" – in a font called “Brücke”.'
    assert files[link.quote.artifact_file][link.quote.start : link.quote.end].decode() == json.dumps(
        link.quote.text, ensure_ascii=False
    ).strip('"')
    assert link.source is not None and link.source.url == "https://roads.example.gov/bridge"
    assert link.call is not None and (link.call.tool, link.step) == ("web_extract", "Find")
    assert link.notes == ["What the bridge is"]
    assert [link.part for link in trace(record, files, 3).links] == ["cited", "contradicting"]
    with pytest.raises(InvalidInput):
        trace(record, files, 7)


def test_the_commands_need_only_the_folder(fathom_cli: FathomCLI, files: dict[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "research_artifacts" / "bridge"
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)

    def fathom(*arguments: str) -> subprocess.CompletedProcess[str]:
        return fathom_cli([*arguments, "--artifacts", str(tmp_path)], {"COLUMNS": "80"})

    done = fathom("verify", "bridge")
    assert done.returncode == 0, done.stderr
    assert "6 claims: 2 supported, 0 contradicted, 2 not stated, 2 not checked" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert json.loads(fathom("verify", "1a2b3c4d", "--json").stdout)["problems"] == []
    traced = fathom("trace", "bridge", "4")
    assert traced.returncode == 0, traced.stderr
    assert "603 metres stands nowhere in its sources" in traced.stdout
    assert "nearest passage" in traced.stdout and "https://gazette.example.com/traffic" in traced.stdout
    (folder / "report.md").write_bytes(files["report.md"] + b" ")
    done = fathom("verify", "bridge")
    assert done.returncode == 1
    assert "report.md: the file was changed" in done.stdout
    (folder / PROVENANCE).unlink()
    done = fathom("verify", "bridge")
    assert done.returncode == 3 and "has not finished" in done.stderr
    counts = {name: 0 for name, field in Metrics.model_fields.items() if field.is_required()}
    ended = {"run_id": "1a2b3c4d", "status": "insufficient_evidence", "plan_title": "Bridge", "artifacts": "a"}
    (folder / "result.json").write_text(json.dumps({**ended, "report": None, "sources": [], "metrics": counts}))
    for command in (["verify", "bridge"], ["trace", "bridge", "1"]):
        done = fathom(*command)
        assert done.returncode == 3 and "E5008 The run ended without a report" in done.stderr


async def test_a_run_without_a_folder_has_not_finished(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    await LeaseFile.take(ArtifactStore(str(tmp_path / "artifacts")), "0123abcd", "0123abcd", {"query": "Why?"})
    for command in (["verify", "0123abcd"], ["audit", "0123abcd"], ["export", "0123abcd", "--to", "md"]):
        done = fathom_cli(command)
        assert done.returncode in (1, 3)
        assert "not finished" in done.stderr or "no audit.jsonl" in done.stdout, done.stderr


def test_a_sentence_that_many_claims_are_compared_with_is_read_once() -> None:
    """A report's claims are compared with the same few passages: reading them anew took two thirds of the check."""
    lines = [f"The Lyndhaven Bridge spans {metres} metres. [{IDS[url]}]" for metres in range(480, 520) for url in IDS]
    reads = Counter[str]()

    def hear(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code is find_dates.__code__:
            reads[frame.f_locals["text"]] += 1

    sys.setprofile(hear)
    try:
        finished_run([ReportSection(heading="Length", markdown="\n\n".join(lines))])
    finally:
        sys.setprofile(None)
    assert max(reads.values()) == 1, reads.most_common(3)
