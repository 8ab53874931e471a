"""The text engine: which passages to read, which sentences to keep, at any size and on any input."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.engine import answer
from fathom.retrieval.duplicates import DuplicateFilter, is_near_duplicate
from fathom.retrieval.passages import PAGES, PASSAGES, TALK, read_question, weights_for
from fathom.retrieval.ranking import Passage
from fathom.retrieval.selection import Reader
from fathom.text.tokens import count_tokens

FILMS = [
    Passage("The Glass Harbour is a 1961 drama film directed by Ilse Brandt. It is in black.", "The Glass Harbour"),
    Passage("Peter Lang is an Austrian director of film and television. He was born in Linz.", "Peter Lang"),
    Passage("A film director controls the making of a film. Some directors were born to it.", "Film director"),
    Passage("Ilse Brandt was an editor before she made films of her own. She was born in Graz in 1920.", "Ilse Brandt"),
    Passage("Places where film directors were born include Vienna, Rome and Paris.", "List of film directors"),
]  # fmt: skip
GERMAN = (
    "Die Oder ist ein Fluss in Mitteleuropa. Die Stadt Stettin liegt an ihrer Mündung und hat eine Einwohnerzahl von "
    "401.000. Der Fluss wurde im 19. Jahrhundert begradigt. Berühmt sind die Auen des Nationalparks."
)
CHINESE = "奥得河是中欧的一条河流。什切青市位于其河口，2019年约有40.1万居民。十九世纪，这条河被拉直。那里有许多鸟类。"


def test_a_bridge_leads_to_the_passage_that_shares_no_word_with_the_question() -> None:
    reader = Reader("Where was the director of The Glass Harbour born?", FILMS)
    best = sorted(range(len(FILMS)), key=lambda i: -reader.scores[i])[:2]
    assert {FILMS[i].title for i in best} == {"The Glass Harbour", "Ilse Brandt"}
    chosen = [pick.sentence.clean for pick in reader.select(45)]
    assert "The Glass Harbour is a 1961 drama film directed by Ilse Brandt." in chosen
    assert "She was born in Graz in 1920." in chosen
    useful = dict(zip([film.title for film in FILMS], reader.useful, strict=True))
    assert useful["The Glass Harbour"] and useful["Ilse Brandt"]


@pytest.mark.parametrize(
    ("question", "page", "first"),
    [
        ("Wie viele Einwohner hat Stettin?", GERMAN, "Stettin"),
        ("Wann wurde der Fluss begradigt?", GERMAN, "19. Jahrhundert"),
        ("什切青有多少居民？", CHINESE, "40.1万居民"),
        ("这条河是什么时候拉直的？", CHINESE, "十九世纪"),
        ("When was the river straightened?", "The river is long. It was straightened in 1850. Birds nest.", "1850"),
    ],
)
def test_the_best_sentence_comes_first_in_other_languages_too(question: str, page: str, first: str) -> None:
    assert first in Reader(question, [Passage(page, "Oder")]).select(100)[0].sentence.clean


def test_the_shape_of_the_texts_decides_how_they_are_read() -> None:
    page = topics["attribute-access"]
    meeting = "\n".join(f"Grad {'ABC'[n % 3]}: We should look at item {n} again ." for n in range(40))
    assert weights_for([film.text for film in FILMS]) is PASSAGES
    assert weights_for([page]) is weights_for([page] * 5) is weights_for([]) is PAGES
    assert weights_for([meeting]) is TALK


def test_a_question_says_what_its_answer_looks_like() -> None:
    question = read_question('When did the author of "Red Sails" die?')
    assert question.kind is not None and question.kind.search("in 1903") and not question.kind.search("in London")
    assert question.weights["red"] == 2 * question.weights["author"]
    assert "wrote" in question.related
    assert read_question({"sail": 0.5}) == ({"sail": 0.5}, {}, (), None)


TEXTS = st.lists(
    st.sampled_from(["The Oder floods.", "Anna Bell rose.", "奥得河长。", "# Head\n", "\n\n", "(", "\x00", "😀!"])
    | st.text(max_size=30),
    max_size=15,
).map(" ".join)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40) | st.just("Who is Anna Bell?"), st.lists(TEXTS, max_size=6), st.integers(-1, 200))
def test_any_choice_is_verbatim_and_within_its_budget(question: str, texts: list[str], budget: int) -> None:
    reader = Reader(question, [Passage(text, text[:9]) for text in texts])
    picks = reader.select(budget)
    assert all(0 <= score <= 1 for score in reader.scores)
    assert sum(count_tokens(pick.sentence.clean) + 1 for pick in picks) <= max(0, budget)
    assert len({pick.sentence.clean for pick in picks}) == len(picks)
    for pick in picks:
        assert texts[pick.text][pick.sentence.start : pick.sentence.end] == pick.sentence.text
    assert reader.select(budget) == picks


@given(st.lists(st.lists(st.sampled_from([*"abcdef", "1", "2"]), min_size=1, max_size=8).map(" ".join), max_size=12))
def test_the_filter_refuses_exactly_what_nearly_repeats_a_kept_sentence(sentences: list[str]) -> None:
    seen, kept = DuplicateFilter(), list[str]()
    for sentence in sentences:
        new = not any(is_near_duplicate(sentence, other) for other in kept)
        assert seen.add(sentence) == new
        kept += [sentence] * new


@pytest.mark.parametrize(
    "text",
    [
        "x" * 5_000_000,
        "The virus spreads in Rome. " * 100_000,
        " ".join(f"The virus {n} spreads in city {n % 977}." for n in range(20_000)),
        bytes(range(256)).decode("latin-1") * 4_000,
        "ينتشر الفيروس في المدينة. كيف؟ " * 20_000,
        "😀 virus 🎉. " * 20_000,
        " ".join(f"Anna Bell{n}, Carl Dorn{n}" for n in range(20_000)),
        "\n".join(f"Bob: virus {n} is here" for n in range(20_000)),
    ],
    ids=["line", "repeated", "numbered", "binary", "arabic", "emoji", "names", "turns"],
)  # fmt: skip
def test_any_input_is_read_in_linear_time(text: str) -> None:
    start = time.process_time()
    for texts in ([text], [text[i : i + 1000] for i in range(0, min(len(text), 2_000_000), 1000)]):
        Reader("How does the virus spread in Rome?", [Passage(part, part[:9]) for part in texts]).select(800)
    assert time.process_time() - start < 60  # 1 s; hours, were it quadratic


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
    assert isinstance(note, dict)
    assert note["is_useful"] and "Glass Harbour" in note["summary"]
    text = "\n".join([note["summary_title"], note["summary"], *(f"- {line}" for line in note["extraction"])])
    assert len(text) / 6 < budget
    assert set(note) == {"summary_title", "summary", "extraction", "is_useful"}
    assert result["useful"]["3"] and result["score"]["0"] == 1  # type: ignore[index] # plain JSON


def test_the_engine_gives_the_same_bytes_with_any_hash_seed() -> None:
    code = "import json, tests.test_reading as t; print(json.dumps([t.compress(n) for n in (24, 60, 200)]))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parent.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop())


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(ValueError, match="op must be one of compress, search, support"):
        answer({"op": "os"})
