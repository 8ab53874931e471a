"""What the container files promise, as far as it can be held to without containers."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from prefect.settings import Settings
from prefect.settings.legacy import _get_settings_fields

from fathom.interfaces.cli.commands import app
from tests.conftest import ROOT

DEPLOYMENTS = ROOT / "deployments"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOYMENTS / "compose/compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
WRITTEN = [
    ROOT / "Dockerfile",
    *(p for p in DEPLOYMENTS.rglob("*") if p.suffix in (".yaml", ".sh") and "secrets" not in p.parts),
]
REDIS = {f"PREFECT_REDIS_MESSAGING_{name}" for name in ("HOST", "PORT", "DB", "PASSWORD")}  # of prefect-redis


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_variable_of_prefect_is_one(path: Path) -> None:
    used = set(re.findall(r"\bPREFECT_[A-Z_]+\b", path.read_text(encoding="utf-8")))
    assert used - REDIS - {*_get_settings_fields(Settings)} == set()


def commands() -> Iterator[list[str]]:
    """Yield every command line of `fathom` in the files."""
    yield from (service["command"] for service in SERVICES.values() if service.get("command", [""])[0] == "fathom")
    items = yaml.safe_load((DEPLOYMENTS / "kubernetes/fathom.yaml").read_text(encoding="utf-8"))["items"]
    for item in items:
        for container in item.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            if container["args"][0] == "fathom":
                yield container["args"]
    (line,) = re.findall(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    yield yaml.safe_load(line)


@pytest.mark.parametrize("line", [*commands()], ids=shlex.join)
def test_every_command_and_option_exists(line: list[str]) -> None:
    _fathom, name, *arguments = [re.sub(r"\$\{\w+:-(\w*)\}", r"\1", part) for part in line]
    group = typer.main.get_command(app)
    command = group.commands[name]  # type: ignore[attr-defined]
    assert command.make_context(name, arguments).params


def test_nothing_listens_for_other_machines() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert {*published} == {"balancer"}
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_every_service_is_limited_and_watched() -> None:
    for name, service in SERVICES.items():
        assert {"cpus", "memory"} == {*service["deploy"]["resources"]["limits"]}, name
        once = service["restart"].startswith("on-failure")
        assert once or service["restart"] == "unless-stopped", name
        own = service.get("healthcheck") or ("Dockerfile" if name == "worker" else None)
        assert own, f"{name} has no health check"
        needs = service.get("depends_on", {})
        assert {*needs} <= {*SERVICES}, name
        for needed, how in needs.items():
            ends = SERVICES[needed]["restart"].startswith("on-failure")
            assert how["condition"] == ("service_completed_successfully" if ends else "service_healthy"), (name, needed)


def test_the_image_is_made_of_files_that_exist_and_are_let_in() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        part for line in re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, re.MULTILINE) for part in line.split()
    ]
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {*copied} == let_in
    assert [name for name in copied if not (ROOT / name).exists()] == []
    for script in re.findall(r"/app/(deployments/\S+\.(?:sh|py))", dockerfile + str(COMPOSE)):
        assert (ROOT / script).exists(), script
    user = re.search(r"^USER (\d+):", dockerfile, re.MULTILINE)
    assert user and int(user[1]) > 0


def _secrets(folder: Path) -> dict[str, str]:
    subprocess.run([folder / "secrets.sh"], check=True, capture_output=True)
    return {path.name: path.read_text() for path in (folder / "secrets").iterdir() if path.is_file()}


def test_secrets_are_made_once_and_become_variables(tmp_path: Path) -> None:
    folder = tmp_path / "compose"
    folder.mkdir()
    shutil.copy(DEPLOYMENTS / "compose/secrets.sh", folder)
    made = _secrets(folder)
    assert _secrets(folder) == made
    assert {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()} == {*made}
    assert len(made["redis_password"]) == 48
    assert yaml.safe_load(made["s3.json"])["identities"][0]["credentials"][0]["secretKey"] == made["s3_secret_key"]
    assert (folder / "secrets").stat().st_mode & 0o077 == 0

    run, keys = tmp_path / "run", tmp_path / "keys"
    run.mkdir()
    keys.mkdir()
    (run / "PREFECT_REDIS_MESSAGING_PASSWORD").write_text("s3cret\n")
    (run / "s3.json").write_text("{}")
    (keys / "OPENAI_API_KEY").write_text("sk 'quoted' $HOME\n")
    (keys / "TAVILY_API_KEY").write_text("")
    said = subprocess.run(
        [DEPLOYMENTS / "container/entrypoint.sh", "env"],
        env={"PATH": "/usr/bin:/bin", "SECRETS": str(run), "KEYS": str(keys), "PREFECT_REDIS_MESSAGING_HOST": "redis"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert "OPENAI_API_KEY=sk 'quoted' $HOME" in said
    assert "PREFECT_SERVER_DOCKET_URL=redis://:s3cret@redis:6379/1" in said
    assert not any(line.startswith(("TAVILY_API_KEY", "s3")) for line in said)


def test_a_container_without_a_connection_is_not_healthy() -> None:
    import socket

    script = DEPLOYMENTS / "container/connected.py"
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            done = subprocess.run([sys.executable, "-S", "-E", script, str(port)], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
