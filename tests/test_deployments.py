"""What `prefect.yaml` promises: every deployment's flow can really be loaded and takes the parameters it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.flows import Flow, load_flow_from_entrypoint

ROOT = Path(__file__).parent.parent
FILE = ROOT / "prefect.yaml"
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_entrypoint_loads_and_takes_its_parameters(deployment: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`prefect deploy` accepts a flow whose import is broken and lets its runs crash later; this does not."""
    monkeypatch.chdir(ROOT)
    flow: Flow[..., Any] = load_flow_from_entrypoint(deployment["entrypoint"], use_placeholder_flow=False)
    assert flow.name == "deep-research"
    asked = {"query": "What is a descriptor?"}  # on-demand runs are asked
    flow.validate_parameters({**asked, **deployment.get("parameters", {})})


def test_a_schedule_waits_until_it_is_wanted() -> None:
    schedules = {d["name"]: d.get("schedules", []) for d in DEPLOYMENTS}
    assert schedules == {
        "on-demand": [],
        "daily": [{"cron": "0 6 * * *", "timezone": "UTC", "active": False}],
    }


def test_no_path_of_one_machine() -> None:
    values = FILE.read_text(encoding="utf-8").split()
    assert [value for value in values if value.startswith(("/", "~", "file:"))] == []
