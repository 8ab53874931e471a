"""What `prefect.yaml` promises: every deployment's flow can really be loaded and takes the parameters it is given."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.exceptions import ParameterTypeError
from prefect.flows import Flow, load_flow_from_entrypoint
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import is_valid

from fathom.config.settings import ResearchSettings
from fathom.flows.deep_research import deep_research

ROOT = Path(__file__).parent.parent
FILE = ROOT / "prefect.yaml"
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_entrypoint_loads_and_takes_its_parameters(deployment: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """`prefect deploy` accepts a flow whose import is broken and lets its runs crash later; this does not."""
    monkeypatch.chdir(ROOT)
    flow: Flow[..., Any] = load_flow_from_entrypoint(deployment["entrypoint"], use_placeholder_flow=False)
    asked = {"query": "What is a descriptor?"} if flow.name == "deep-research" else {}  # on-demand runs are asked
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
        "weekly": [{"cron": "0 3 * * 0", "timezone": "UTC", "active": False}],
    }


def test_no_deployment_asks_for_a_schedule() -> None:
    """`prefect deploy` asks in a terminal about each deployment that does not name its schedules, if only as none."""
    assert [deployment["name"] for deployment in DEPLOYMENTS if "schedules" not in deployment] == []


def test_no_path_of_one_machine() -> None:
    values = FILE.read_text(encoding="utf-8").split()
    assert [value for value in values if value.startswith(("/", "~", "file:"))] == []


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the fields of the form and of its boxes."""
    for title, definition in {"": schema, **schema["definitions"]}.items():
        for name, field in definition.get("properties", {}).items():
            yield f"{title}.{name}", field


def test_every_field_of_the_form_is_one_box_with_its_meaning_and_an_example() -> None:
    schema = parameter_schema(deep_research).model_dump()
    for name, field in _fields(schema):
        assert "anyOf" not in field, f'{name}: Prefect draws `Property is type "None"`'
        meant = schema["definitions"].get(field.get("$ref", "").rpartition("/")[2], {})
        assert field.get("description") or meant.get("description"), name
        chosen = "enum" in field or "enum" in meant or field.get("type") == "boolean"
        box = "properties" in meant
        assert chosen or box or "xample: `" in field["description"], name
    settings = schema["definitions"]["ResearchSettings"]["properties"].values()
    assert [field["position"] for field in settings] == list(range(len(settings)))
    groups = [group for group, _ in groupby(field["title"].partition(":")[0] for field in settings)]
    assert groups == ["Template", "How deep", "What to read", "Model", "Budget", "Report", "People", "Advanced"]


@pytest.mark.parametrize(
    ("chosen", "valid"),
    [
        (ResearchSettings().model_dump(mode="json"), True),  # what the form sends: None where nothing was typed
        ({"execution": "parallel", "depth": 2, "report": {"words": 500}, "tools": ["documents"]}, True),
        ({"execution": "sideways"}, False),
        ({"depth": "two"}, False),
        ({"dept": 2}, False),
    ],
    ids=["empty", "filled", "no choice", "no number", "no field"],
)
def test_prefect_checks_what_the_form_sends(chosen: dict[str, Any], *, valid: bool) -> None:
    sent = {"query": "What is a descriptor?", "run_key": "", "settings": chosen}
    assert is_valid(sent, parameter_schema(deep_research).model_dump()) is valid
    if valid:
        deep_research.validate_parameters(sent)
