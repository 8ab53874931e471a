"""The budget: no cap is ever passed, however many requests are under way, and a run that meets one still reports."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathom.budget.ledger import Allowance, Cost, Ledger
from fathom.budget.prices import Pricing
from fathom.config.given import settings_from, table_from
from fathom.config.groups import Budget, Price
from fathom.errors import BudgetExceeded, InvalidInput, StoreError
from fathom.llm.services import FAILURES
from fathom.models import Ending, RunResult
from fathom.storage.store import ArtifactStore
from tests.conftest import FathomCLI, PrefectServer
from tests.inprocess import QUERY, investigated
from tests.stubs import Stubs

PRICE = Price(input=3, output=15)
CAP = 0.05


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path / "store"))


def cents(amount: int) -> Decimal:
    return Decimal(amount) / 100


ATTEMPT = st.tuples(st.integers(1, 60), st.integers(0, 100), st.booleans(), st.booleans())


@settings(max_examples=15, deadline=None)
@given(kinds=st.lists(ATTEMPT, min_size=1, max_size=20), cap=st.integers(1, 6_000), calls=st.integers(1, 360))
async def test_hundreds_of_reservations_at_once_never_pass_a_cap(
    kinds: list[tuple[int, int, bool, bool]], cap: int, calls: int
) -> None:
    """Each takes some percent of its worst case, or never says what it took; the sums are looked at in between."""
    budget = Budget(max_usd=cap / 100, max_tokens=cap * 10, max_calls=calls)
    ledger = Ledger(budget, ArtifactStore(f"memory://{uuid4()}"), "ledger")
    whole = Cost(cents(cap), cap * 10, calls)
    taken, by_research = Cost(), Cost()

    async def attempt(worst: int, percent: int, told: bool, research: bool) -> None:
        nonlocal taken, by_research
        most = Cost(cents(worst), worst * 10, 1)
        try:
            async with ledger.attempt(lambda left: most, research=research) as made:
                assert ledger.total.fits(whole)
                await asyncio.sleep(0)
                if told:
                    made.took(Cost(most.usd * percent / 100, most.tokens * percent // 100, 1))
                taken = taken.plus(made.cost)
                by_research = by_research.plus(made.cost if research else Cost())
        except BudgetExceeded:
            share = Decimal("0.85") if research else Decimal(1)
            left = Cost(whole.usd * share, int(whole.tokens * share), int(calls * share)).minus(ledger.total)
            assert not most.fits(left), "what fits is not refused"

    await asyncio.gather(*(attempt(*chosen) for chosen in islice(cycle(kinds), 300)))
    assert ledger.total == taken
    assert taken.fits(whole)
    assert by_research.fits(Cost(whole.usd * Decimal("0.85"), int(whole.tokens * 0.85), int(calls * 0.85)))


async def test_a_request_waits_for_what_others_hold(store: ArtifactStore) -> None:
    ledger = Ledger(Budget(max_tokens=100, research_share=1), store, "ledger")
    order: list[str] = []

    async def first() -> None:
        async with ledger.attempt(lambda left: Cost(tokens=90, calls=1), research=True) as attempt:
            await asyncio.sleep(0.05)
            attempt.took(Cost(tokens=10, calls=1))
            order.append("first")

    async def second() -> None:
        async with ledger.attempt(lambda left: Cost(tokens=90, calls=1), research=True):
            order.append("second")

    await asyncio.gather(first(), second())
    assert order == ["first", "second"]
    assert ledger.total == Cost(tokens=100, calls=2)
    with pytest.raises(BudgetExceeded, match="0 tokens"):
        async with ledger.attempt(lambda left: Cost(tokens=1, calls=1), research=True):
            pass


async def test_what_a_killed_process_held_is_spent(store: ArtifactStore) -> None:
    killed = Ledger(Budget(max_tokens=100), store, "ledger")
    async with killed.attempt(lambda left: Cost(Decimal("0.5"), 30, 1), research=True):
        resumed = await Ledger.open(Budget(max_tokens=100), store, "ledger")
    assert resumed.total == Cost(Decimal("0.5"), 30, 1)


async def test_research_narrows_then_ends_and_the_rest_is_kept_for_the_report(store: ArtifactStore) -> None:
    ledger = Ledger(Budget(max_tokens=1_000, research_share=0.8), store, "ledger")

    async def take(tokens: int, *, research: bool) -> None:
        async with ledger.attempt(lambda left: Cost(tokens=tokens, calls=1), research=research):
            pass

    assert ledger.allowance(notes=True) is Allowance.full
    await take(719, research=True)
    assert ledger.allowance(notes=True) is Allowance.full
    await take(2, research=True)
    assert ledger.allowance(notes=True) is Allowance.narrow
    with pytest.raises(BudgetExceeded):
        await take(100, research=True)
    ledger.exhausted = True  # as a role does that had to do without its model
    assert ledger.allowance(notes=True) is Allowance.none
    assert ledger.allowance(notes=False) is Allowance.narrow, "without any note it goes on, without a model"
    await take(279, research=False)
    with pytest.raises(BudgetExceeded):
        await take(1, research=False)


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run."""
    providers.settings.page_bytes = 2_000
    return providers


async def priced(root: Path, budget: Budget, **chosen: Any) -> RunResult:
    return await investigated(root, prices={"openai/stub": PRICE}, budget=budget, **chosen)


def counted(stubs: Stubs) -> Decimal:
    """Return what the stub charged: all tokens of its answers, at the price of the tests."""
    sent = sum(record.usage.get("prompt_tokens", 0) for record in stubs.calls("llm"))
    received = sum(record.usage.get("completion_tokens", 0) for record in stubs.calls("llm"))
    return (sent * Decimal(str(PRICE.input)) + received * Decimal(str(PRICE.output))) / 1_000_000


@pytest.mark.usefixtures("home")
async def test_a_run_with_a_cap_of_five_cents_reports_and_stays_below(providers: Stubs, tmp_path: Path) -> None:
    undisturbed = await priced(tmp_path / "whole", Budget(max_usd=5), execution="parallel")
    assert undisturbed.status is Ending.complete
    assert counted(providers) > Decimal(str(CAP)), "without a cap it takes more"
    providers.requests.clear()
    result = await priced(tmp_path / "capped", Budget(max_usd=CAP), execution="parallel")
    assert result.status is Ending.degraded
    assert "E1001" in result.reason
    assert "[1]" in Path(result.report or "").read_text()
    assert 0 < counted(providers) <= Decimal(str(CAP))
    assert result.metrics.account
    assert counted(providers) <= Decimal(str(result.metrics.account.usd)) <= Decimal(str(CAP))
    assert result.metrics.account.calls == len(providers.calls("llm"))


@pytest.mark.usefixtures("home", "wide")
async def test_a_cheaper_model_and_fewer_sources_come_before_less_scope(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.steps, providers.settings.follow_ups = 4, 0
    # Research may make 11 requests. The plan and the notes of three steps make 9, 82 % of them.
    budget = Budget(max_calls=22, research_share=0.5)
    chosen: dict[str, Any] = {"breadth": 2, "turns": 1, "depth": 2, "execution": "sequential"}
    result = await investigated(tmp_path / "cheaper", budget=budget, cheaper_model="openai/cheap", **chosen)
    asked = [(record.role, str(record.body["model"])) for record in providers.calls("llm")]
    research = [("planner", "stub"), *[("compressor", "stub")] * 8, ("compressor", "cheap"), ("critic", "cheap")]
    assert asked[:11] == research, "the last step makes one call, and is not left out"
    assert {model for role, model in asked[11:] if role in ("outline", "section", "judge")} == {"stub"}
    plan = json.loads(Path(result.artifacts, "plan.json").read_bytes())
    assert [step["status"] for step in plan["steps"]] == ["done"] * 4
    providers.requests.clear()
    await investigated(tmp_path / "same", budget=budget, **chosen)
    assert [record.role for record in providers.calls("llm")][:11] == [role for role, _ in research]
    assert {record.body["model"] for record in providers.calls("llm")} == {"stub"}


@pytest.mark.usefixtures("home")
async def test_what_a_run_takes_is_told_by_role_and_step(providers: Stubs, tmp_path: Path) -> None:
    metrics = (await priced(tmp_path, Budget())).metrics
    roles = ("planner", "researcher", "compressor", "critic", "outline", "section")
    assert {phase.name: phase.calls for phase in metrics.phases} == {r: len(providers.calls(r)) for r in roles}
    sent = sum(record.usage["prompt_tokens"] + record.usage["completion_tokens"] for record in providers.calls("llm"))
    assert sum(phase.tokens for phase in metrics.phases) == sent == metrics.prompt_tokens + metrics.completion_tokens
    assert sum(phase.calls for phase in metrics.steps) == sum(
        len(providers.calls(role)) for role in ("researcher", "compressor")
    )
    searches = sum(charge.cost_usd or 0 for charge in metrics.charges)
    assert searches > 0
    assert metrics.cost_usd == pytest.approx(float(counted(providers)) + searches)


@pytest.mark.usefixtures("home")
async def test_time_runs_out_for_research_before_it_does_for_the_report(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.llm_delay, providers.settings.suggests = 0.75, False
    result = await priced(tmp_path, Budget(max_seconds=9), execution="sequential")
    assert result.status is Ending.degraded
    assert "[1]" in Path(result.report or "").read_text()


def test_a_dollar_cap_needs_a_price(providers: Stubs, prefect_server: PrefectServer, fathom_cli: FathomCLI) -> None:
    env = {**prefect_server.env, **providers.env}
    done = fathom_cli(["research", QUERY, "--model", "openai/stub", "--max-usd", "0.05"], env)
    assert done.returncode == 2
    assert "--price openai/stub=" in done.stderr
    assert providers.requests == []


@pytest.mark.parametrize(
    "price",
    [
        "openai/stub",
        "openai/stub=1",
        "openai/stub=1,x",
        "openai/stub=1,2,x",
        "openai/stub=1,2,3,4",
        "openai/stub=-1,2",
        "=1,2",
    ],
)
def test_a_price_that_is_none_is_refused(price: str) -> None:
    with pytest.raises(InvalidInput, match="price"):
        settings_from({"prices": table_from("prices", [price])})


@pytest.mark.parametrize(
    ("model", "sent", "dollars"),
    [
        ("openai/gpt-4o", 1_000_000, 2.5 + 10),
        ("hosted_vllm/gpt-4o", 1_000_000, 2.5 + 10),  # a name that litellm has a price for, and cannot reckon with
        ("gemini/gemini-2.5-pro", 200_000, 0.25 + 10),
        ("gemini/gemini-2.5-pro", 1_000_000, 2.5 + 15),  # dearer from 200,000 tokens on
        ("ollama/anything", 1_000_000, 0),
        ("openai/stub", 1_000_000, 18),
    ],
)
def test_a_call_costs_what_its_length_costs(model: str, sent: int, dollars: float) -> None:
    pricing = Pricing({"openai/stub": PRICE})
    cost = pricing.cost(model, sent, 1_000_000)
    assert cost == pytest.approx(Decimal(str(dollars)))
    highest = pricing.highest(model)
    assert highest
    assert highest.of(sent, 1_000_000) >= cost


@pytest.mark.parametrize(
    ("model", "cached", "written", "dollars"),
    [
        ("openai/gpt-4o", 60_000, 0, 0.04 * 2.5 + 0.06 * 1.25),
        ("anthropic/claude-sonnet-4-5", 60_000, 30_000, 0.01 * 3 + 0.06 * 0.3 + 0.03 * 3.75),
        ("deepseek/deepseek-chat", 60_000, 10_000, 0.04 * 0.28 + 0.06 * 0.028),  # writing is free: nothing more
        ("openai/stub", 60_000, 10_000, 0.1 * 3),
        ("openai/cached", 60_000, 10_000, 0.04 * 3 + 0.06 * 0.3),
        ("openai/gpt-4o", 900_000, 900_000, 0.1 * 1.25),  # not more than were sent
        ("ollama/anything", 60_000, 0, 0),
    ],
)
def test_tokens_at_the_cache_have_prices_of_their_own(model: str, cached: int, written: int, dollars: float) -> None:
    pricing = Pricing({"openai/stub": PRICE, "openai/cached": Price.model_validate("3,15,0.3")})
    cost = pricing.cost(model, 100_000, 0, cached, written)
    assert cost == pytest.approx(Decimal(str(dollars)))
    highest = pricing.highest(model)
    assert highest
    assert highest.of(100_000, 0) >= cost


def test_a_reservation_expects_nothing_from_a_cache_and_pays_for_writing_to_it() -> None:
    highest = Pricing({}).highest("anthropic/claude-haiku-4-5")
    assert highest and highest.of(1_000_000, 0) == Decimal("1.25")  # and not 2, which an hour in the cache costs


@pytest.mark.usefixtures("home", "short_rests")
async def test_a_service_that_rests_costs_nothing(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"stub": ["500*"]}
    result = await priced(tmp_path, Budget(), depth=1)
    assert result.metrics.account
    assert FAILURES < result.metrics.account.calls == len(providers.calls("llm"))


async def test_what_could_not_be_written_down_is_not_sent(store: ArtifactStore, tmp_path: Path) -> None:
    ledger = Ledger(Budget(), store, "ledger")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "ledger").write_text("in the way")
    sent = 0

    async def attempt() -> None:
        nonlocal sent
        async with ledger.attempt(lambda left: Cost(tokens=1, calls=1), research=True):
            sent += 1

    outcomes = await asyncio.gather(*(attempt() for _ in range(4)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {StoreError}
    assert sent == 0
