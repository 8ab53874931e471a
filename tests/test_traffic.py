"""What is counted between the pipeline and its providers: `benchmarks.traffic`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.traffic import Bullets, shown, traffic, waits
from tests.inprocess import investigated
from tests.stubs import Record, Stubs
from tests.stubs.forms import FORMS, form_of, noted, passage

TEXT = "The lamp of the harbour is lit at dusk by two keepers, who row out with oil and wait there until dawn."
OTHER = "A market is held on the first day of each month under the old roof beside the church of the lower town."


def request(n: int, started: float, ended: float | None) -> Record:
    return Record(n=n, kind="llm", role="section", fingerprint="", body={}, started=started, ended=ended)


@pytest.mark.parametrize(
    ("times", "longest"),
    [
        ([], 0),
        ([(0, 1), (1, 2), (2, 3)], 3),
        ([(0, 1), (0.1, 1.1), (0.2, 1.2)], 1),
        ([(0, 1), (1, 2), (1.1, 2.1), (2.2, 3)], 3),
        ([(0, None), (1, 2), (2, 3)], 2),  # nobody waited for the first to end
        ([(0, 10), (1, 2), (3, 4), (11, 12)], 3),
    ],
)
def test_waits_are_the_longest_chain(times: list[tuple[float, float | None]], longest: int) -> None:
    assert waits([request(n, *span) for n, span in enumerate(times)]) == longest


def test_what_is_shown_is_found_in_any_layout_and_counted_once() -> None:
    total, seen = shown([TEXT, OTHER], [])
    assert (total > 40, seen) == (True, 0)
    half = shown([TEXT, OTHER], [f"- {TEXT.upper()}", TEXT])
    assert half[0] == total
    assert half[1] == pytest.approx(total / 2, abs=4)
    assert shown([TEXT, OTHER], [f"{OTHER}\n\n{TEXT}"]) == (total, total)
    assert shown(["Two words"], ["two words"]) == (2, 2)
    part = shown([f"{TEXT} {OTHER}"], [f"[...] {OTHER}"])[1]
    assert part == pytest.approx(total / 2, abs=4)


def test_every_form_is_noted_as_it_is_told() -> None:
    pages = [passage(f"https://atlas.example/{n}") for n in range(60)]
    bullets = [noted(f"Before. {page}\n\nAfter.") for page in pages]
    assert [len(found) for found in bullets] == [1] * len(pages)
    assert {form_of(bullet) for found in bullets for bullet in found} == set(FORMS)
    assert noted("\n\n".join(pages)) == [bullet for found in bullets for bullet in found]
    assert form_of("The source treats the matter of the step.") == ""


async def test_a_run_is_counted_by_what_arrived(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.forms = True
    providers.settings.without_raw = 0.5
    result = await investigated(tmp_path, depth=1)
    found = traffic(4_000, providers.requests)
    assert found.model_requests == result.metrics.llm_calls == sum(found.requests_by_role.values())
    assert found.prompt_tokens == result.metrics.prompt_tokens == sum(found.prompt_tokens_by_role.values())
    assert found.prompt_tokens_outside == found.prompt_tokens - found.prompt_tokens_by_role["compressor"]
    assert found.waits <= found.waits_with_tools <= found.model_requests + found.tool_requests
    assert found.raw_tokens * 0.9 < found.shown_tokens <= found.raw_tokens  # pages of 4 kB are shown whole
    pages = {result["url"] for one in providers.calls("search") for result in one.answer["results"]}
    assert found.bullets.pop("fact") == Bullets(len(pages), len(pages), len(pages), len(pages))
    assert sum(one.written for one in found.bullets.values()) == len(pages)
    assert all(one.there == one.written >= one.kept >= one.to_writer for one in found.bullets.values())
