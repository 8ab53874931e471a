"""The text engine: which texts are relevant, at any size and on any input."""

import sys
import time

import pytest

from benchmarks.engine import answer
from benchmarks.unkind import QUESTION, page
from fathom.retrieval.asked import read_asked
from fathom.retrieval.ranking import Passage
from fathom.retrieval.relevance import RankedExcerpts
from fathom.text.parsed import parse

FILMS = [
    Passage("The Glass Harbour is a 1961 drama film directed by Ilse Brandt. It is in black.", "The Glass Harbour"),
    Passage("Peter Lang is an Austrian director of film and television. He was born in Linz.", "Peter Lang"),
    Passage("A film director controls the making of a film. Some directors were born to it.", "Film director"),
    Passage("Ilse Brandt was an editor before she made films of her own. She was born in Graz in 1920.", "Ilse Brandt"),
    Passage("Places where film directors were born include Vienna, Rome and Paris.", "List of film directors"),
]  # fmt: skip


def test_a_bridge_leads_to_the_text_that_shares_no_word_with_the_question() -> None:
    scores = RankedExcerpts(FILMS).of_texts(read_asked("Where was the director of The Glass Harbour born?"))
    ranked = [FILMS[i].title for i in sorted(range(len(FILMS)), key=lambda i: -scores[i])]
    assert ranked[:2] == ["The Glass Harbour", "Ilse Brandt"]
    assert max(scores) == 1 and min(scores) >= 0
    assert RankedExcerpts([]).of_texts(read_asked("zinc")) == []
    assert RankedExcerpts(FILMS).of_texts(read_asked("zinc")) == [0.0] * len(FILMS)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 500_000,
        "The virus spreads in Rome. " * 10_000,
        " ".join(f"The virus {n} spreads in city {n % 977}." for n in range(2_500)),
        bytes(range(256)).decode("latin-1") * 500,
        "ينتشر الفيروس في المدينة. كيف؟ " * 2_500,
        "😀 virus 🎉. " * 2_500,
        " ".join(f"Anna Bell{n}, Carl Dorn{n}" for n in range(2_500)),
        "\n".join(f"Bob: virus {n} is here" for n in range(2_500)),
    ],
    ids=["line", "repeated", "numbered", "binary", "arabic", "emoji", "names", "turns"],
)  # fmt: skip
def test_any_input_is_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    for texts in ([text], [text[i : i + 1000] for i in range(0, min(len(text), 2_000_000), 1000)]):
        RankedExcerpts([Passage(part, part[:9]) for part in texts]).of_texts(read_asked("Who has the virus in Rome?"))
    assert time.process_time() - start < 60  # a quarter of a second; minutes, were it quadratic


@pytest.mark.parametrize("kind", ["template", "rows", "items", "headings"])
def test_scoring_texts_calls_few_functions_for_a_sentence(kind: str) -> None:
    texts = [Passage(page(kind, 20_000, seed), kind) for seed in range(3)]
    asked, calls = read_asked(QUESTION), 0
    parsed = [parse(text.text) for text in texts]
    sentences = sum(map(len, parsed))
    assert all(one.occurrences for one in parsed)  # terms are looked for once, whoever needs them first

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        RankedExcerpts(texts).of_texts(asked)
    finally:
        sys.setprofile(None)
    assert calls < 75 * sentences  # 25-37; more than 200, were every excerpt ranked


def compress(budget: int) -> dict[str, object]:
    documents = [{"doc_id": str(n), "title": film.title, "text": film.text} for n, film in enumerate(FILMS)]
    question = "Where was the director of The Glass Harbour born?"
    return answer({"op": "compress", "question": question, "docs": documents, "budget_tokens": budget})


@pytest.mark.parametrize("budget", [24, 60, 200, 1_000])
def test_the_engine_answers_with_a_note_within_the_budget(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # given back afterwards: the engine sets it where it is missing
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    result = compress(budget)
    note = result["note"]
    assert isinstance(note, str) and note.startswith("The Glass Harbour is a 1961 drama film")
    assert len(note) / 6 < budget
    assert result["score"]["0"] == 1  # type: ignore[index] # plain JSON


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(ValueError, match="op must be one of compress, search, support"):
        answer({"op": "os"})
