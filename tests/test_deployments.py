"""What `prefect.yaml` promises: every deployment's flow can really be loaded and takes the parameters it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.exceptions import ParameterTypeError
from prefect.flows import Flow, load_flow_from_entrypoint

from flows.deep_research import deep_research

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


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": {"max_usd": "inf"}},
        {"budget": {"max_usd": float("nan")}},
        {"budget": {"max_usd": -1}},
        {"budget": {"max_tokens": 0}},
        {"budget": {"max_calls": 0}},
        {"budget": {"max_seconds": "Infinity"}},
        {"prices": {"openai/x": {"input": "inf", "output": 1}}},
        {"model_calls": {"seconds": "nan"}},
        {"depth": 0},
        {"sources": {"min_quality": "nan"}},
    ],
    ids=str,
)
def test_a_number_out_of_range_is_no_parameter(settings: dict[str, Any]) -> None:
    with pytest.raises(ParameterTypeError, match=next(iter(settings))):
        deep_research.validate_parameters({"query": "What is a descriptor?", "settings": settings})


def test_a_schedule_waits_until_it_is_wanted() -> None:
    schedules = {d["name"]: d.get("schedules", []) for d in DEPLOYMENTS}
    assert schedules == {
        "on-demand": [],
        "daily": [{"cron": "0 6 * * *", "timezone": "UTC", "active": False}],
    }


def test_no_path_of_one_machine() -> None:
    values = FILE.read_text(encoding="utf-8").split()
    assert [value for value in values if value.startswith(("/", "~", "file:"))] == []
