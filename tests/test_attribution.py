"""Citations that a model left out."""

from __future__ import annotations

import pytest

from fathom.evidence.attribution import attributed
from fathom.evidence.stored import texts_of
from fathom.models import SourceText

TEXTS = texts_of(
    [
        SourceText(
            source_id="S0a0a0a",
            url="docs:line.md",
            title="Line 7",
            kind="document",
            text="The construction of Line 7 cost 287 million euros. The line opened on 5 May 2018 with 19 stops.",
        ),
        SourceText(
            source_id="S0b0b0b",
            url="docs:trams.md",
            title="Trams",
            kind="document",
            text="The depot in Molenwijk has room for 30 trams and a workshop with four tracks.",
        ),
    ]
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "The construction of Line 7 cost 287 million euros. It was a great success for the mayor.",
            "The construction of Line 7 cost 287 million euros. [S0a0a0a] It was a great success for the mayor.",
        ),
        (
            "- The depot in Molenwijk has room for 30 trams\n- The line opened on 5 May 2018 with 19 stops.",
            "- The depot in Molenwijk has room for 30 trams [S0b0b0b]\n"
            "- The line opened on 5 May 2018 with 19 stops. [S0a0a0a]",
        ),
        *(
            (kept, kept)
            for kept in (
                "The construction of Line 7 cost 278 million euros.",
                "The construction of Line 7 cost 287 million euros [S0b0b0b].",
                "The line has stops. The depot in Molenwijk has room for 30 trams [S0b0b0b].",
                "### The construction of Line 7 cost 287 million euros",
                "```\nThe construction of Line 7 cost 287 million euros.\n```",
                "",
            )
        ),
    ],
)
def test_a_sentence_that_a_source_says_gets_its_citation(written: str, expected: str) -> None:
    assert attributed(written, TEXTS) == expected
