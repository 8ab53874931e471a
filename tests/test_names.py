"""Artifact names: the contract's form, whatever the plan's titles hold."""

from __future__ import annotations

import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from fathom.storage.names import artifact_name, folder_name, slug

TITLES = st.text(max_size=400)
IDS = st.integers(0, 99) | st.text(max_size=60)
WORDS = st.lists(st.text("abcxyz019", min_size=1, max_size=6), min_size=1, max_size=4)
NAME = re.compile(
    r"[a-z0-9]+(_[a-z0-9]+)*__step[a-z0-9]+(_[a-z0-9]+)+__[a-z0-9]+(_[a-z0-9]+)*(__[1-9][0-9]*)?\.(json|txt)"
)


def test_examples() -> None:
    assert artifact_name("Python's MRO", 1, "How C3 works", "web_search", 1, "json") == (
        "pythons_mro__step1_how_c3_works__web_search.json"
    )
    assert artifact_name("MRO", "R2_1", "Gaps", "fetch", 3, "txt") == "mro__stepr2_1_gaps__fetch__3.txt"
    assert slug("  Crème brûlée -- Größe & ＷＩＤＴＨ №5  ") == "creme_brulee_grosse_width_no5"
    assert slug("量子コンピュータ") == slug("量子コンピュータ") != slug("量子力学")
    assert re.fullmatch(r"h[0-9a-f]{12}", slug("量子コンピュータ"))


@given(TITLES)
def test_slug_is_snake_case_and_settles(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", slug(text))
    assert slug(slug(text)) == slug(text)


@given(WORDS, st.sampled_from([" ", "_", "-", ": ", "  ", " — "]))
def test_slug_keeps_every_word(words: list[str], between: str) -> None:
    assert slug(between.join(words).upper()) == "_".join(words)


@given(TITLES, IDS, TITLES, TITLES, st.integers(1, 10**9), st.sampled_from(["json", "txt"]))
def test_names_have_the_form_and_fit(plan: str, step_id: str | int, step: str, tool: str, n: int, ext: str) -> None:
    name = artifact_name(plan, step_id, step, tool, n, "json" if ext == "json" else "txt")
    assert NAME.fullmatch(name), name
    assert len(name.encode()) < 200
    assert name.startswith(f"{folder_name(plan)}__step")


@given(st.tuples(WORDS, WORDS, WORDS), st.tuples(WORDS, WORDS, WORDS), st.integers(1, 99), st.integers(1, 99))
def test_different_calls_have_different_names(
    one: tuple[list[str], ...], other: tuple[list[str], ...], n: int, m: int
) -> None:
    def name(parts: tuple[list[str], ...], number: int) -> str:
        plan, step, tool = (" ".join(words) for words in parts)
        return artifact_name(plan, 7, step, tool, number, "json")

    assert (name(one, n) == name(other, m)) == ((one, n) == (other, m))


@given(st.text("ab", min_size=61, max_size=90), st.text("ab", min_size=61, max_size=90))
def test_cut_names_differ_in_what_was_cut(one: str, other: str) -> None:
    common = "the same beginning of a very long title " * 2
    assert (folder_name(common + one) == folder_name(common + other)) == (one == other)


def test_names_are_the_same_in_every_process() -> None:
    expression = "artifact_name('量子' * 99, 'ü', 'x ' * 99, 'documents', 2, 'txt')"
    script = f"from fathom.storage.names import artifact_name; print({expression})"
    names = {
        subprocess.check_output([sys.executable, "-c", script], env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"})
        for seed in ("1", "2")
    }
    assert names == {artifact_name("量子" * 99, "ü", "x " * 99, "documents", 2, "txt").encode() + b"\n"}
