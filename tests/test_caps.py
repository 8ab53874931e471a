"""The cap of a day or month over all runs: no number of processes passes it, and what is not used is given back."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathom.budget.caps import SharedAccount, StoreBudget, store_budget_of
from fathom.budget.ledger import Cost, Ledger
from fathom.config.environment import Environment
from fathom.config.groups import Budget
from fathom.errors import BudgetExceeded, InvalidInput
from fathom.models import Ending
from fathom.storage.store import ArtifactStore
from tests.inprocess import research
from tests.stubs import Stubs

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def account(store: ArtifactStore, cents: int) -> SharedAccount:
    """Return an account as another process sees it."""
    return SharedAccount(store, "2026-11-23", Decimal(cents) / 100, "FATHOM_DAILY_USD")


@settings(max_examples=10, deadline=None)
@given(
    cap=st.integers(1, 500),
    runs=st.lists(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 100)), max_size=6), min_size=1, max_size=8),
)
async def test_no_number_of_processes_passes_the_cap(cap: int, runs: list[list[tuple[int, int]]]) -> None:
    """Each run makes some requests, whose real cost is a share of their worst case."""
    store = ArtifactStore(f"memory://{uuid4()}")
    spent = Decimal(0)

    async def run(requests: list[tuple[int, int]]) -> None:
        nonlocal spent
        store_budget = StoreBudget([account(store, cap)])
        ledger = Ledger(Budget(), store, f"ledger-{uuid4()}", store_budget=store_budget)
        for worst, percent in requests:
            most = Cost(Decimal(worst) / 100, 1, 1)
            try:
                async with ledger.attempt(lambda left, most=most: most, research=False) as made:  # type: ignore[misc]
                    await asyncio.sleep(0)
                    assert await account(store, cap).spent() <= Decimal(cap) / 100
                    made.took(Cost(most.usd * percent / 100, 1, 1))
                    spent += made.cost.usd
            except BudgetExceeded:
                continue
        await ledger.aclose()

    await asyncio.gather(*map(run, runs))
    assert spent <= Decimal(cap) / 100
    assert await account(store, cap).spent() == spent  # what was taken and not used is given back


async def test_what_a_killed_process_had_taken_counts_as_spent(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await StoreBudget([account(store, 100)]).cover(Decimal("0.80"))
    with pytest.raises(BudgetExceeded, match="FATHOM_DAILY_USD"):
        await StoreBudget([account(store, 100)]).cover(Decimal("0.30"))


def test_an_amount_that_is_none_is_refused() -> None:
    for text in ("ten", "-1", "0", "inf"):
        with pytest.raises(InvalidInput, match="FATHOM_DAILY_USD"):
            store_budget_of(ArtifactStore("memory://caps"), Environment.read({"FATHOM_DAILY_USD": text}), NOW)


@pytest.mark.usefixtures("prefect_server")
async def test_runs_of_a_day_share_its_cap(tmp_path: Path, providers: Stubs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that meets the cap still reports, and the next one does not begin."""
    monkeypatch.setenv("FATHOM_DAILY_USD", "0.08")
    prices = {"openai/stub": {"input": 3, "output": 15}}
    first = await research(tmp_path, profile="quick", prices=prices)
    assert first.status is Ending.degraded
    assert first.metrics.account
    assert 0 < first.metrics.account.usd <= 0.08
    (day,) = [path for path in (tmp_path / ".spending").iterdir() if len(path.name) == len("2026-11-23")]
    assert (
        Decimal(str(first.metrics.account.usd))
        == await SharedAccount(ArtifactStore(str(tmp_path)), day.name, Decimal(1), "").spent()
    )
    monkeypatch.setenv("FATHOM_DAILY_USD", str(first.metrics.account.usd))
    asked = len(providers.calls("llm"))
    with pytest.raises(BudgetExceeded, match="FATHOM_DAILY_USD"):
        await research(tmp_path, "Another question about tides?", profile="quick", prices=prices)
    assert len(providers.calls("llm")) == asked
