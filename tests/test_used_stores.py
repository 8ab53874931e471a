"""A run is found by its id from every folder of a machine: in the stores that its user has used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import httpx
import pytest

from fathom.config.environment import Environment
from fathom.storage.runs import remember, used_stores
from tests.conftest import FathomCLI, PrefectServer

UNKNOWN = "deadbeef"


def test_a_run_is_found_from_a_folder_with_another_store(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("# Oslo\n\nThe capital of Norway is Oslo, on the Oslofjord.\n")
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    arguments = ["What is the capital of Norway?", "--docs", "notes.md", "--artifacts", first, "--json"]
    done = fathom_cli(["research", *arguments], prefect_server.env)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run_id"]

    # Without a server, from a folder whose own store does not even exist.
    for command in ("show", "verify", "audit"):
        found = fathom_cli([command, run[:8]])
        assert (found.returncode, found.stderr) == (0, f"fathom: the run is stored in {first}\n"), command
    assert f"The run {run[:8]} has finished." in fathom_cli(["tell", run[:8], "and Bergen?"]).stderr
    for command in ("show", "resume"):
        lost = fathom_cli([command, UNKNOWN], prefect_server.env)
        assert lost.returncode == 2
        assert f"{tmp_path / 'artifacts'}. Nor is it in the other stores that you have used: {first}. (" in lost.stderr
    only_there = fathom_cli(["show", run[:8], "--artifacts", "elsewhere"])
    assert only_there.returncode == 2 and first not in only_there.stderr

    # The server has forgotten it: the store alone knows how it was started.
    url = prefect_server.env["PREFECT_API_URL"]
    assert httpx.delete(f"{url}/flow_runs/{run}").is_success
    again = fathom_cli(["resume", run[:8], "--json"], prefect_server.env)
    assert again.returncode == 0, again.stderr
    assert Path(json.loads(again.stdout)["artifacts"]).is_relative_to(first)

    assert fathom_cli(["export", run[:8], "--bundle", "run.zip"]).returncode == 0
    shutil.rmtree(first)
    assert fathom_cli(["import", "run.zip", "--artifacts", second]).returncode == 0
    moved = fathom_cli(["show", run[:8]])
    assert (moved.returncode, moved.stderr) == (0, f"fathom: the run is stored in {second}\n")


@pytest.mark.parametrize("address", ["s3://AKIAIOSFODNN7EXAMPLE:secret@bucket/runs", "s3://bucket/hunter2-and-more"])
def test_an_address_with_a_secret_is_not_remembered(tmp_path: Path, address: str) -> None:
    environment = Environment.read({"HOME": str(tmp_path), "STORE_PASSWORD": "hunter2-and-more"})
    for _ in range(2):
        for used in (str(tmp_path), address, "s3://bucket/runs", str(tmp_path / "gone")):
            remember(used, environment)
    assert used_stores(environment) == [str(tmp_path), "s3://bucket/runs"]
    listed = (tmp_path / ".local/state/fathom/stores").read_text()
    assert listed == f"{tmp_path}\ns3://bucket/runs\n{tmp_path / 'gone'}\n"


def test_a_list_that_cannot_be_written_or_read_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("a file where a folder should be")
    environment = Environment.read({"HOME": str(tmp_path)})
    remember(str(tmp_path), environment)
    assert used_stores(environment) == []
