"""The API by its own document: requests made of it are answered as it says, and never with a failure of the server."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fathom.service.options import Options
from tests.conftest import ROOT, PrefectServer, quiet_port
from tests.server import Served, served_with

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
STORED = {"run_id": "df99f416-1f7e-4c63-94d9-a70b9f20c5f2"}
EXAMPLES = 2  # for each route; by hand: `schemathesis run .../api/v1/openapi.json -n 100`


@pytest.fixture
def idle(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Served]:
    """A server whose runs nobody takes up, with a finished one on the store, which a request may remove."""
    shutil.copytree(ROOT / "tests" / "stored_run", tmp_path / "store")
    with served_with(Options(str(tmp_path / "store"), port=quiet_port()), limit=0) as running:
        yield running
        for watch in httpx.get(f"{running.url}/api/v1/watches", timeout=60).json()["watches"]:  # which others would see
            httpx.delete(f"{running.url}/api/v1/watches/{quote(watch['name'], safe='')}", timeout=60).raise_for_status()


@schemathesis.serializer("application/jsonl")
def _as_text(_context: Any, value: Any) -> bytes:
    return str(value).encode()


def test_every_answer_is_as_the_document_says(idle: Served) -> None:
    document = httpx.get(f"{idle.url}/api/v1/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=idle.url)
    asked = 0
    with requests.Session() as session:
        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            # A stream of a run that waits has no end.
            if not operation.path.startswith(("/api/v1/", "/research/")) or operation.path.endswith(
                ("/events", "/stream")
            ):
                continue
            known = {"path_parameters": STORED} if "{run_id}" in operation.path else {}
            kinds = [operation.as_strategy(mode) for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]
            cases = st.one_of(operation.as_strategy(**known), *kinds)  # type: ignore[arg-type]

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=cases)
            def ask(case: Any) -> None:
                nonlocal asked
                asked += 1
                # It is not ready: it has no worker.
                checks = CHECKS[1:] if case.path == "/api/v1/ready" else CHECKS
                case.call_and_validate(session=session, checks=checks, timeout=60)

            ask()
    assert asked > 100


def test_the_document_says_all_of_every_route(idle: Served) -> None:
    document = httpx.get(f"{idle.url}/api/v1/openapi.json", timeout=60).json()
    ids = []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            ids.append(operation["operationId"])
            assert operation["summary"] and operation["description"] and operation["tags"], path
            for status, answer in operation["responses"].items():
                if path.startswith(("/api/v1/", "/research/")) and int(status) >= 400:
                    assert [*answer["content"]] == ["application/problem+json"], (method, path, status)
    assert len(ids) == len(set(ids))
    assert "HTTPValidationError" not in document["components"]["schemas"]
    options = httpx.options(f"{idle.url}/api/v1/watches/some", timeout=60)
    assert options.status_code == 405 and options.headers["Allow"] == "DELETE, GET, PATCH"


def test_the_reference_has_every_route_and_examples_that_work(idle: Served, tmp_path: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    document = httpx.get(f"{idle.url}/api/v1/openapi.json", timeout=60).json()
    page = httpx.get(f"{idle.url}/docs", headers={"Accept": "text/html"}, timeout=60).text
    assert not set(re.findall(r'href="#([^"]+)"', page)) - set(re.findall(r'id="([^"]+)"', page))
    shown = dict(re.findall(r'<section id="(\w+)" class="box".*?<pre [^>]*><code>(.*?)</code>', page, re.DOTALL))
    routes = [(path, method, one) for path, item in document["paths"].items() for method, one in item.items()]
    assert sorted(shown) == sorted(one["operationId"] for _, _, one in routes)
    (tmp_path / "FILE").write_text("# Pumps\n\nThe limit is 40 bar.\n")
    for path, method, one in routes:
        if path.endswith("/stream"):
            continue
        example = unescape(shown[one["operationId"]]).replace("RUN_ID", STORED["run_id"])
        example = example.replace("/NUMBER/", "/1/").replace("artifacts/NAME", "artifacts/report.md")
        command = f"{example} -o answer -w '%{{http_code}}' -m 60"
        ran = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        told = (command, ran, (tmp_path / "answer").read_text()[:2_000] if (tmp_path / "answer").exists() else "")
        assert ran.stdout in one["responses"], told
        there = "{" not in path or (method == "get" and "{run_id}" in path and not path.endswith("/changes"))
        assert not there or ran.stdout < "300" or path.endswith("/ready"), told  # no worker is there
