"""Lexical support: what raises it, what lowers it, and that it is a share at any size."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from fathom.evidence.support import support

REFERENCE = "The bridge was opened in 1932. It spans 503 metres across Sydney Harbour, and eight lanes cross it."
CLAIM = "The bridge spans 503 metres across Sydney Harbour."
VOCABULARY = ["bridge", "Sydney", "503", "1932", "opened", "harbour", "explains", "explanation", "the", ".", "\n"]
words = st.lists(st.sampled_from(VOCABULARY))
texts = st.one_of(st.text(max_size=80), words.map(" ".join))


def test_a_wrong_number_weighs_more_than_a_wrong_name_and_that_more_than_a_wrong_word() -> None:
    right = support(CLAIM, [REFERENCE])
    word = support(CLAIM.replace("metres", "bananas"), [REFERENCE])
    name = support(CLAIM.replace("Sydney", "London"), [REFERENCE])
    number = support(CLAIM.replace("503", "603"), [REFERENCE])
    assert right > 0.9 > word > name > number > 0.4
    assert support("Bananas are rich in potassium.", [REFERENCE]) < 0.1


def test_references_support_together_and_each_by_one_passage() -> None:
    first, second = "Ada Lovelace was born in London.", "Lovelace wrote about the Analytical Engine."
    claim = "Ada Lovelace, born in London, wrote about the Analytical Engine."
    assert support(claim, [first, second]) > max(support(claim, [first]), support(claim, [second])) + 0.2
    filler = "Nothing of the kind is said in this long sentence about other matters. " * 40
    assert support(claim, [f"{first} {filler} {second}"]) < support(claim, [f"{first} {second}"]) - 0.1


def test_what_one_sentence_says_is_worth_more_than_the_same_words_in_several() -> None:
    claim = "Copper pipes conduct heat well."
    apart = "The pipes are old. Some copper was found. It is well known. Nobody felt the heat. They conduct visitors."
    assert support(claim, ["Copper pipes can conduct the heat well."]) > support(claim, [apart]) + 0.15
    assert support(claim, [apart]) > 0.5


def test_a_word_of_the_same_family_counts_in_part() -> None:
    exact, related, other = (
        support("The explanation.", [f"It {word}."]) for word in ("explanation", "explains", "exists")
    )
    assert exact > related > other


@given(texts, st.lists(texts, max_size=3), texts)
def test_it_is_a_share_that_another_reference_never_lowers(claim: str, references: list[str], another: str) -> None:
    score = support(claim, references)
    assert 0 <= score <= support(claim, [*references, another]) + 1e-9 <= 1 + 1e-9


def test_a_long_reference_takes_linear_time() -> None:
    start = time.process_time()
    support(CLAIM, ["The bridge of Sydney\n" * 40_000])
    assert time.process_time() - start < 60  # 1 s; minutes, were each line compared with each
    assert support("Anything.", []) == 0
    assert support("", ["Anything."]) == 0
