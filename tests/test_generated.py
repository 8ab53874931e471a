"""Documents that are made from the code."""

import pytest

from tests.conftest import ROOT
from tests.generated import DOCUMENTS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_made_from_the_code_are_current(name: str) -> None:
    """`python -m tests.generated` was run after the last change."""
    assert (ROOT / name).read_text(encoding="utf-8") == DOCUMENTS[name]()
