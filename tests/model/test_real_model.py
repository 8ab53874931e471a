"""Fathom with SmolLM2-135M-Instruct: what it keeps with a model that understands little, and what it gets out of it.

`make test-model` installs the model and runs this; `make test` does not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fathom.config.groups import ROLES, Budget
from fathom.models import Ending
from fathom.telemetry.progress import Event, listen
from tests.conftest import quiet_port
from tests.inprocess import investigated
from tests.model.counts import counted, table
from tests.model.recording import recording
from tests.model.rules import Finished, broken_rules
from tests.model.serve import NAME, PACKAGES, serving_model

QUERY = "What did the construction of Line 7 in Veldhaven cost, and why did it cost more than planned?"
DOCUMENTS = Path(__file__).parent / "documents"
ASKED = ("planner", "researcher", "compressor", "outline", "section")

pytestmark = [
    pytest.mark.usefixtures("home"),
    pytest.mark.timeout(7_200),
    pytest.mark.skipif(not PACKAGES.is_dir(), reason="make test-model installs the model"),
]


async def asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, window: int
) -> Finished:
    """Research the question with the settings a user has, and print what the model was asked."""
    warnings: list[str] = []

    def heard(event: Event) -> None:
        if event.kind == "warning":
            warnings.append(event.message)

    model = {"model": f"openai/{NAME}", "temperature": 0}
    with (
        serving_model(quiet_port(), tmp_path / "server.log", window=window) as address,
        recording(address) as proxy,
        listen(heard),
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", proxy.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        result = await investigated(
            tmp_path / "artifacts",
            QUERY,
            profile="quick",
            model=f"openai/{NAME}",
            role_models=dict.fromkeys(ROLES, model),
            model_calls={},
            docs=[str(DOCUMENTS)],
        )
    run = Finished(result, proxy.exchanges, warnings)
    with capsys.disabled():
        replaced = ", ".join(f"{role} {times}" for role, times in run.replaced.items()) or "none"
        print(f"\nWindow of {window:,} tokens\n{table(run.exchanges)}\nanswered without the model: {replaced}")
        print(f"{result.status.value}: {result.reason or 'no reason needed'}")
    return run


async def test_a_run_keeps_every_rule_and_most_roles_get_an_answer_from_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await asked(tmp_path, monkeypatch, capsys, window=8_192)
    assert broken_rules(run, Budget()) == []
    counts = counted(run.exchanges)
    wanted = [role for role in ASKED if role in counts]  # without evidence there is no outline and no section
    useful = [role for role in wanted if counts[role].valid]
    assert len(useful) >= len(wanted) - 1, f"of {wanted} only {useful} were answered by the model"


async def test_a_window_of_4096_tokens_is_enough_and_no_role_has_to_learn_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await asked(tmp_path, monkeypatch, capsys, window=4_096)
    assert broken_rules(run, Budget()) == []
    assert run.result.status is not Ending.failed, run.result.reason
    refused = {role: counts.too_long for role, counts in counted(run.exchanges).items()}
    assert max(refused.values()) <= 1, refused
