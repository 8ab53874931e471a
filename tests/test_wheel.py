"""What `pip install` of the built wheel gives: everything, in an environment and a folder that have nothing of ours."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import httpx
import pytest
import yaml

from tests.conftest import ROOT, PrefectServer, base_env, quiet_port
from tests.processes import asking

DEPLOYMENTS = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
QUESTION = "What is a descriptor in Python?"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and the wheel from it."""
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel beside its locked dependencies, which are already here; return the folder of the commands."""
    venv = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    # A path, so that its own .pth files do not count: they name this checkout.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    command = ["-m", "pip", "--python", str(venv), "install", "-q", "--no-index", "--no-deps", "--force-reinstall"]
    done = subprocess.run(
        [sys.executable, *command, "--no-compile", str(wheel)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return venv / "bin"


@pytest.fixture
def env(prefect_server: PrefectServer, tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process that knows nothing of this checkout."""
    kept = {name: value for name, value in base_env().items() if name != "PYTHONPATH"}
    return {**kept, **prefect_server.env, "HOME": str(tmp_path)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of somebody who has flows, tasks and a server of their own."""
    for name in ("flows", "tasks", "serve"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('not Fathom')\n", encoding="utf-8")
    return tmp_path


def ran(command: Path, *arguments: str, env: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        [command, *arguments], env=env, cwd=folder, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        content = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {
        f"{prefix}{path.relative_to(folder).as_posix()}"
        for folder, prefix in (
            (ROOT / "fathom", "fathom/"),
            (ROOT / "flows", "fathom/flows/"),
            (ROOT / "tasks", "fathom/tasks/"),
        )
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert content == source
    assert {"fathom/py.typed", "fathom/prompts/planner.md", "fathom/prefect.yaml"} <= content


def test_a_question_is_researched_and_its_report_served(installed: Path, env: dict[str, str], folder: Path) -> None:
    told = json.loads(
        ran(installed / "fathom", "research", QUESTION, "--profile", "quick", "--json", env=env, folder=folder)
    )
    assert told["status"] == "complete"
    assert (folder / "artifacts") in Path(told["artifacts"]).parents
    port = quiet_port()
    serving = subprocess.Popen(
        [installed / "fathom", "serve", "--port", str(port)], env=env, cwd=folder, stderr=subprocess.PIPE, text=True
    )
    try:
        assert serving.stderr
        assert any("Fathom serves on" in line for line in serving.stderr)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            page = client.get("/", headers={"Accept": "text/html"}).raise_for_status().text
            for file in re.findall(r'"(/static/[^"]+)"', page):
                client.get(file).raise_for_status()
            ended = client.get("/api/v1/runs", params={"state": "complete"}).raise_for_status().json()["runs"]
        assert told["run_id"] in [run["id"] for run in ended]
    finally:
        serving.terminate()
        serving.communicate(timeout=60)


def test_a_batch_and_python_research_a_question(installed: Path, env: dict[str, str], folder: Path) -> None:
    (folder / "questions.csv").write_text(f"question\n{QUESTION}\n", encoding="utf-8")
    ran(installed / "fathom", "batch", "questions.csv", "--profile", "quick", "--json", env=env, folder=folder)
    code = (
        "import fathom; from fathom import Fathom, ResearchSettings, research_simple; print(fathom.__file__); "
        f"print(research_simple({QUESTION!r}, ResearchSettings(profile='quick')))"
    )
    where, _, report = ran(installed / "python", "-c", code, env=env, folder=folder).partition("\n")
    assert installed.parent in Path(where).parents
    assert "## Answer" in report


def test_deployments_are_registered_and_their_runs_taken(
    installed: Path, env: dict[str, str], folder: Path, prefect_server: PrefectServer
) -> None:
    made = json.loads(ran(installed / "fathom", "deploy", "--pool", "from-wheel", "--json", env=env, folder=folder))
    assert [name.split("/")[1] for name in made] == [deployment["name"] for deployment in DEPLOYMENTS]
    with asking(prefect_server.api_url) as client:
        found = client.get("/deployments/name/deep-research/on-demand").json()
        assert found["entrypoint"] == "fathom.flows.deep_research.deep_research"
        asked = {"parameters": {"query": QUESTION}, "state": {"type": "SCHEDULED"}}
        asking_for = f"/deployments/{found['id']}/create_flow_run"
        wrong = {"query": QUESTION, "settings": {"depth": 99}}  # as in the form of Prefect's page
        refused = httpx.post(f"{prefect_server.api_url}{asking_for}", json={"parameters": wrong}, timeout=60)
        assert refused.status_code == 409 and "99 is greater than the maximum of 5" in refused.text
        run = client.post(asking_for, json=asked).json()
        ran(*(installed / "fathom", "worker", "--pool", "from-wheel", "--idle-seconds", "3"), env=env, folder=folder)
        ended = client.get(f"/flow_runs/{run['id']}").json()
    assert ended["state_type"] == "COMPLETED", ended["state"]
