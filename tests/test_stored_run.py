"""A run stored by an older version, in `tests/stored_run`: it can be checked, shown and exported, and not continued.

It was made by version 0.1.0 with the model-free backend: `fathom research "How much water do the tanks hold?"
--docs docs --profile quick --run-key water`. Its stored results name classes that have moved since (layout 1).
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from fathom.errors import OtherLayout
from fathom.models.run import LAYOUT
from fathom.storage.lease import LeaseFile
from fathom.storage.store import ArtifactStore
from tests.conftest import ROOT, FathomCLI, PrefectServer

QUERY = "How much water do the tanks hold?"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the stored run's artifacts."""
    return shutil.copytree(ROOT / "tests/stored_run", tmp_path / "stored")


def test_it_verifies(root: Path, fathom_cli: FathomCLI) -> None:
    done = fathom_cli(["verify", "water", "--artifacts", str(root), "--json"])
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == []
    assert [claim["verdict"] for claim in found["claims"]] == ["supported", "supported"]
    assert found["quotes"] >= 2


def test_a_changed_byte_in_it_is_found(root: Path, fathom_cli: FathomCLI) -> None:
    record = root / "research_artifacts/water_tanks_hold/provenance.json"
    record.write_bytes(record.read_bytes().replace(b'"standing": "single_source"', b'"standing": "verified"'))
    done = fathom_cli(["verify", "water", "--artifacts", str(root)])
    assert done.returncode == 1
    assert "provenance.json: the file was changed" in done.stdout + done.stderr


def test_it_is_shown_and_exported(root: Path, fathom_cli: FathomCLI, tmp_path: Path) -> None:
    done = fathom_cli(["show", "water", "--artifacts", str(root)])
    assert done.returncode == 0, done.stderr
    assert "The plant keeps 400 cubic metres of treated water in two tanks. [1]" in done.stdout
    assert fathom_cli(["audit", "water", "--artifacts", str(root)]).returncode == 0
    args = ["export", "water", "--artifacts", str(root), "--to", "md,html,json,docx,bib,ris", "--out", str(tmp_path)]
    done = fathom_cli(args)
    assert done.returncode == 0, done.stderr
    assert {path.suffix for path in tmp_path.glob("water_tanks_hold.*")} == {
        *(".md", ".html", ".json", ".docx", ".bib", ".ris")
    }


def test_what_needs_its_stored_results_says_that_their_layout_is_older(
    root: Path, fathom_cli: FathomCLI, prefect_server: PrefectServer
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for command in (["replay", "water"], ["resume", "water"], ["research", QUERY, "--run-key", "water"]):
        done = fathom_cli([*command, "--artifacts", str(root)], prefect_server.env)
        assert done.returncode == 2, done.stderr
        line = done.stderr.splitlines()[-1]
        assert "E5007 The run df99f416 was stored in layout 1" in line
        assert f"layout {LAYOUT} only" in line
        assert "`fathom verify` and `fathom export` still work; run the question again" in line
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("layout", sorted({2, 3, 4, 5, 6, LAYOUT + 1} - {LAYOUT}))
async def test_a_run_of_every_other_layout_is_refused_and_not_touched(
    layout: int, root: Path, fathom_cli: FathomCLI
) -> None:
    """Layouts differ in what is stored; that a run has another one, it says in the same two files."""
    for path in ("research_artifacts/water_tanks_hold/run.json", ".results/water/lease/0001.json"):
        file = root / path
        file.write_text(json.dumps({**json.loads(file.read_text()), "layout": layout}))
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    done = await asyncio.to_thread(fathom_cli, ["replay", "water", "--artifacts", str(root)])
    assert (done.returncode, f"was stored in layout {layout}" in done.stderr) == (2, True), done.stderr
    with pytest.raises(OtherLayout, match=f"layout {layout};"):
        await LeaseFile.take(ArtifactStore(str(root)), "another-run", "water", {})
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


async def test_a_run_without_a_folder_is_recognised_too(root: Path) -> None:
    shutil.rmtree(root / "research_artifacts")
    with pytest.raises(OtherLayout, match="layout 1;"):
        await LeaseFile.take(ArtifactStore(str(root)), "another-run", "water", {})


def test_it_is_rated_and_the_last_word_of_each_reader_counts(root: Path, fathom_cli: FathomCLI) -> None:
    files = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    store = ["--artifacts", str(root)]
    for said in (["up", "--as", "ann"], ["up", "--as", "bob"], ["down", "--as", "ann", "--note", "Which tanks?"]):
        assert fathom_cli(["rate", "water", *said, *store]).returncode == 0
    shown = json.loads(fathom_cli(["show", "water", *store, "--json"]).stdout)
    assert [(one["by"], one["good"], one["note"]) for one in shown["ratings"]] in (
        [("bob", True, ""), ("ann", False, "Which tanks?")],
        [("ann", False, "Which tanks?"), ("bob", True, "")],  # in the same second
    )
    done = fathom_cli(["costs", "--since", "2020-01-01", *store])
    assert "Reports rated by their readers: 1 up, 1 down (50% up)." in done.stdout, done.stderr
    assert files.items() <= {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}.items()
    assert fathom_cli(["rate", "water", "sideways", *store]).returncode == 2
    (root / "research_artifacts/water_tanks_hold/report.md").unlink()
    assert "E6001" in fathom_cli(["rate", "water", "up", *store]).stderr
