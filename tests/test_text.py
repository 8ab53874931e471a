"""Text tools: sentences, terms, tokens, ranking, narrowing."""

import itertools
import textwrap
import time
from pydoc_data.topics import topics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathom.models import SourceText
from fathom.retrieval.asked import read_asked
from fathom.retrieval.chunking import OMISSION
from fathom.retrieval.excerpts import ReadText
from fathom.retrieval.narrowing import narrow
from fathom.retrieval.ranking import Passage, rank_passages
from fathom.retrieval.relevance import RankedExcerpts
from fathom.text.parsed import KeptTexts
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, is_near_duplicate, query_terms, terms
from fathom.text.tokens import count_tokens

PROSE = (
    "The Quick Brown Fox jumps over 3.5 lazy dogs. Then it sleeps well at night! Does Dr. J. R. Smith know, e.g. from "
    "Fig. 3 of his book? Yes, he has lived in the U.S. since Jan. 5, 1999. If it is “**identifier**” it stays. The end."
)
PROSE_SENTENCES = [
    "The Quick Brown Fox jumps over 3.5 lazy dogs.",
    "Then it sleeps well at night!",
    "Does Dr. J. R. Smith know, e.g. from Fig. 3 of his book?",
    "Yes, he has lived in the U.S. since Jan. 5, 1999.",
    "If it is “**identifier**” it stays.",
    "The end.",
]


def source(text: str, number: int = 1, title: str = "Title") -> SourceText:
    return SourceText(source_id=f"S{number:06x}", url=f"docs:{number}", title=title, kind="document", text=text)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (PROSE, PROSE_SENTENCES),
        ("Am 3. Mai war z.B. er da. Im 19. Jahrhundert.", ["Am 3. Mai war z.B. er da.", "Im 19. Jahrhundert."]),
        ("Bis zum vollendeten 8. Lebensjahr. Dann nicht.", ["Bis zum vollendeten 8. Lebensjahr.", "Dann nicht."]),
        ("Fällig ist sie zum 3. Werktag. Im 1. Quartal.", ["Fällig ist sie zum 3. Werktag.", "Im 1. Quartal."]),
        ("Mag. Huber und Dipl.-Ing. Weil. Sie bleibt.", ["Mag. Huber und Dipl.-Ing. Weil.", "Sie bleibt."]),
        ("Dr. rer. nat. Ott, z. Hd. Mo. Was er mag. Gut.", ["Dr. rer. nat. Ott, z. Hd. Mo.", "Was er mag.", "Gut."]),
        ("Art. 6 Abs. 2, gem. § 5, approx. 3 l. Ok.", ["Art. 6 Abs. 2, gem. § 5, approx. 3 l.", "Ok."]),
        ("By Acme Inc. Boston. It is Acme Inc. The end.", ["By Acme Inc. Boston.", "It is Acme Inc.", "The end."]),
        ("I am 5. Next year I am 6.", ["I am 5.", "Next year I am 6."]),
        ("你好。这是第一句！他说：“好的。”然后走了。", ["你好。", "这是第一句！", "他说：“好的。”", "然后走了。"]),
        ("今日は「いい天気ですね。」と彼は言った。はい。", ["今日は「いい天気ですね。」と彼は言った。", "はい。"]),
        ("It is full [S1a2b3c]. eu-2b is closed [S1a2b3c].", ["It is full [S1a2b3c].", "eu-2b is closed [S1a2b3c]."]),
        ("It is so. [S1a2b3c] object.x is set.[12] Next.", ["It is so. [S1a2b3c]", "object.x is set.[12]", "Next."]),
        ("# Title\n\nOne line\nthat wraps. Two.", ["Title", "One line that wraps.", "Two."]),
        ("Title\n=====\ntext follows here.", ["Title", "text follows here."]),
        ("4. Fee\nIt is due.\n\n1. Milk\n2. Tea\nMix it.", ["Fee", "It is due.", "Milk", "Tea Mix it."]),
        ("History\nThe city was founded by men. It grew.", ["History", "The city was founded by men.", "It grew."]),
        ("- one item that\n  Wraps here\n- two. And more.", ["one item that Wraps here", "two.", "And more."]),
    ],
)  # fmt: skip
def test_sentences(text: str, sentences: list[str]) -> None:
    assert [s.clean for s in split_sentences(text)] == sentences


def test_rows_of_columns_are_rows() -> None:
    rows = "name    the one\nother      that is\n           wrapped\nlast    3"
    text = (
        f"The options are:\n{rows}\n\nkey | value\nowner | Ada\n\nIn this   line is a gap and it\ngoes on in the next."
    )
    found = [(s.kind, s.text.split()[0]) for s in split_sentences(text)]
    assert found[0] == ("prose", "The")
    assert found[1:-1] == [("table", first) for first in ("name", "other", "last", "key", "owner")]
    assert found[-1] == ("prose", "In")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Default: 30 seconds", "prose"),
        ("Released 2023-09-30", "prose"),
        ("Population 3,500 in all", "prose"),
        ("Total 45 120", "prose"),
        ("See https://example.com/a", "prose"),
        ("It is good [S1a2b3c]. Install it with: [S1a2b3c]", "prose"),
        ("Anna: yeah . I think so {laugh}", "prose"),
        ("3.2 Methods", "heading"),
        ("Chapter 5: On rows", "heading"),
        ("2024-12-06", "heading"),
        ("May 2024", "heading"),
        ("HTTP2 and what follows", "heading"),
        ("History of the town", "heading"),
    ],
)
def test_a_line_that_says_something_is_no_heading(line: str, kind: str) -> None:
    found = split_sentences(f"It is so.\n\n{line}\n\nIt goes on.")
    assert found[1].kind == kind
    assert "".join(s.text for s in found[1:-1]).replace(" ", "") == line.replace(" ", "")


@pytest.mark.parametrize(
    "prose",
    [
        "Its type is int | str | None. A pipe is cat a | sort | uniq. Both have bars. Neither is a row.",
        "The type X | Y is the same as Union[X, Y], as\nthe type Y | X is: the order of X | Y | Z does\nnot count. So.",
        "Write cat names | sort to order them.\nWrite cat names | uniq to see each once.",
        "Run `cat a | sort | uniq` first. Then read the result.",
        "cat names | sort | uniq",
        "Its type is one of int | str | None",
        "Pipes: cat names | sort | uniq",
        "The type X | Y | Z is\nwhat it takes",
        "`A | B | C`",
    ],
)
def test_bars_in_prose_make_no_row(prose: str) -> None:
    assert {s.kind for s in split_sentences(prose)} == {"prose"}
    assert len(split_sentences(prose)) == prose.count(". ") + prose.count(".\n") + 1


@pytest.mark.parametrize("row", ["Name | Version | Status", "... 55 min | Heron | 15:20", "3 | 4.5 kg | St. Anne"])
def test_a_row_may_stand_by_itself(row: str) -> None:
    assert [(s.text, s.kind) for s in split_sentences(f"Some text is here.\n\n{row}\n\nAnd here.")[1:-1]] == [
        (row, "table")
    ]


@pytest.mark.parametrize(
    "table",
    [
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "Name | Type\n--- | ---\ntimeout | int | None\nthe name of the user that runs it | str.",
        "a|b|c\n-|:-:|-\n1|2|3",
        "key | value | note\nowner | Ada | since May\nplace | Bern | home",
        "| 7 | the whole row |",
        "> | a | b |\n> |---|---|\n> | 1 | 2 |",
        "alpha of the first stations now| 1 \nbeta of the second one on line | 2\ngamma                          | 3",
    ],
)
def test_rows_need_no_outer_bars(table: str) -> None:
    assert {s.kind for s in split_sentences(table)} <= {"table", "rule"}
    assert len(split_sentences(table)) == len(table.split("\n"))


def test_tags_end_blocks() -> None:
    row = "<Tr> <Td_x> Born </Td> <Td> 1815 </Td> </Tr>"
    page = (
        f"<H1> Ada </H1> <P> First . Second one . </P> <Ul> <Li> one item </Li> <Li> Two. </Li> </Ul> <Table> {row} "
        f"<Tr> <Td> {'so ' * 150}</Td> <Td> Cell </Td> </Tr> </Table> <H2> Work </H2> rest"
    )
    found = [(s.kind, s.clean) for s in split_sentences(page)]
    assert found[:7] == [
        ("heading", "Ada"), ("prose", "First ."), ("prose", "Second one ."), ("item", "one item"), ("item", "Two."),
        ("table", "Born | 1815"), ("table", ("so " * 150).strip()),
    ]  # fmt: skip
    assert found[7:] == [("table", "Cell"), ("heading", "Work"), ("prose", "rest")]
    about = "Use `<td>` and `<tr>`, or the <p> and <li> elements with </p>."
    assert [s.clean for s in split_sentences(about)] == [about]


_MARKED_UP = ("<P>", "</P>", "<Li>", "<Tr>", "</tr>", "<td x>", "</Td>", " ", "a", "B.", "\n", "<", "`")


@given(st.lists(st.sampled_from(_MARKED_UP)).map("".join))
def test_tags_stay_in_the_text(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(s.text.split()) for s in sentences) == "".join(text.split())
    assert all(a.end <= b.start for a, b in itertools.pairwise(sentences))
    assert all(
        s.clean.replace(" ", "").replace("|", "") in "".join(text.split()) for s in sentences if s.kind != "table"
    )


@given(st.integers(20, 100), st.integers(0, 8))
def test_hard_wrapping_does_not_change_sentences(width: int, indent: int) -> None:
    wrapped = textwrap.indent(textwrap.fill(PROSE, width), " " * indent)
    assert [s.clean for s in split_sentences(wrapped)] == PROSE_SENTENCES


@given(st.text(alphabet=st.sampled_from('aB .!?。\n\t-#*|`=>:1[]()"é一'), max_size=200) | st.text(max_size=100))
def test_sentences_hold_every_character_once(text: str) -> None:
    sentences = split_sentences(text)
    assert all(text[s.start : s.end] == s.text == s.text.strip() for s in sentences)
    assert all(a.end <= b.start for a, b in itertools.pairwise(sentences))
    assert "".join("".join(s.text.split()) for s in sentences) == "".join(text.split())


def test_kinds_tell_prose_from_layout() -> None:
    text = "A | B | C\n\n```\nx = 1.\n```\n\n   def f(x):\n       return x\n\nProse is here.\n\n* an item\n\n-----\n"
    assert [s.kind for s in split_sentences(text)] == ["table", *["code"] * 5, "prose", "item", "rule"]


@pytest.mark.parametrize(
    "text",
    [
        "This is a sentence of a book. " * 10_000,
        "word " * 100_000,
        "x" * 500_000,
        "." * 200_000 + "x",
        "a. " * 30_000,
        ". [1] " * 30_000 + "x",
        "(((\n" * 20_000,
        '."' * 50_000 + "x",
        " \n" * 100_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_any_input_is_split_in_linear_time(text: str) -> None:
    start = time.process_time()
    split_sentences(text)
    assert time.process_time() - start < 60  # a tenth of a second; minutes, were it quadratic


def test_terms_agree_across_spellings() -> None:
    assert terms("Zürich's cafés LOOKED up 1,000 names") == terms("zurich cafe lookup 1000 name")
    assert terms("Zu\u0308rich") == terms("Zürich")
    assert terms("量子计算") == ["量子", "子计", "计算"]
    assert terms("exceptions") != terms("except")
    assert terms("a sterilised, grey theatre") == terms("a sterilized, gray theater")
    assert terms("the neighbours catalogued organisations") == terms("the neighbors cataloged organizations")
    assert terms("Our advice on rising noise was revised") == ["our", "advic", "on", "rise", "nois", "was", "revis"]
    assert query_terms('the "with" statement') == query_terms("with statements") != query_terms("statements")
    assert query_terms("What is it?")  # nothing but stop words: they are kept
    # The same words say nothing in one language and much in the other.
    assert query_terms("Which bin is for glass?") == ["bin", "glass"]
    assert query_terms("What happens to a run if the worker dies?") == ["happen", "run", "worker", "die"]
    assert query_terms("Wie lange bin ich an die Miete gebunden?") == ["lang", "miet", "gebunden"]
    assert count_words("It's 3.5 well-known 量子计算") == 5


def test_a_number_stays_whole() -> None:
    assert terms("on the 28th, 21st and 2nd of May") == terms("on the 28, 21 and 2 of May")
    assert terms("in the 1930s, 5G and H1N1") == ["in", "the", "1930s", "5g", "and", "h1n1"]
    assert terms("10km or 3.5kg") == terms("10 km or 3.5 kg")


@given(st.text(alphabet="aAtThHsSnNdD019.,'’- _", max_size=40))
def test_other_letters_around_do_not_change_how_words_are_split(text: str) -> None:
    assert terms(f"é {text}")[1:] == terms(f"e {text}")[1:]


@pytest.mark.parametrize("name", ["SESSION_NOT_FOUND", "sessionNotFound", "SessionNotFound", "--session-not-found"])
def test_an_identifier_has_its_words_and_is_a_whole(name: str) -> None:
    assert terms(f"the {name}.") == terms("the session not found sessionnotfound")
    assert query_terms(name) == query_terms("session found sessionnotfound")


def test_identifiers_are_told_from_names_and_prose() -> None:
    assert terms("HTTPServer") == terms("http server httpserver")
    assert terms("isOpen") == terms("is open isopen")
    assert terms("a.b_c") == ["a", "b", "c", "bc", "abc"]
    assert terms("1_000_000")[-1] == terms("1,000,000")[0]
    prose = (
        "McDonald's and MacArthur's OpenMetrics, iPhone, mRNA, siRNA, DNAs, U.S.A., example.com, _well_ -- so-called"
    )
    assert terms(prose) == terms(prose.replace("_", " ").lower())


def test_tokens_are_close_to_cl100k(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    from pathlib import Path

    found = importlib.util.find_spec("litellm")
    assert found and found.origin
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(Path(found.origin).parent / "litellm_core_utils" / "tokenizers"))
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    texts = [*(topics[k][:3000] for k in ("with", "attribute-access", "numbers", "formatstrings", "import")), PROSE]
    for text in texts:
        exact = len(encoding.encode(text))
        assert abs(count_tokens(text) - exact) <= 0.12 * exact + 3
    assert count_tokens("") == 0
    assert count_tokens("a") == 1


@given(st.text(max_size=60), st.text(max_size=60))
def test_tokens_are_not_negative_and_at_most_bytes_and_more(a: str, b: str) -> None:
    assert 0 <= count_tokens(a) <= 2 * len(a.encode()) + 1
    assert (count_tokens(a + b) > 0) == bool(a + b)


def test_ranking_prefers_matching_passages_and_titles() -> None:
    passages = [
        Passage("Cats sleep all day in the sun."),
        Passage("Dogs bark at night.", "Cats"),
        Passage("Nothing of the kind."),
        Passage("The cats sleeps, says a sleeping cat."),
    ]
    scores = rank_passages("sleeping cats", passages)
    assert sorted(range(4), key=lambda i: -scores[i]) == [3, 0, 1, 2]
    assert scores[2] == 0
    assert rank_passages("anything", []) == []


def test_narrowing_is_identity_when_everything_fits() -> None:
    texts = [source("One. Two."), source("Three.", 2)]
    assert narrow(texts, "two", 1_000) == (texts, 0)


def test_narrowing_leaves_out_passages_that_nobody_needs_though_there_is_room() -> None:
    told, lacking = "The tower is 40 m high. " * 30, "The bell of the tower weighs 3 t. " * 30
    (narrowed,), _ = narrow([source(f"{told}\n\n{lacking}")], "tower", 5_000, needed=lambda said: "bell" in said)
    assert lacking.strip() in narrowed.text and narrowed.text.count("40 m") < 30
    assert narrow([source(told)], "tower", 5_000, needed=lambda said: "bell" in said).texts == []


@settings(max_examples=30, deadline=None)
@given(st.integers(120, 3_000), st.lists(st.sampled_from(sorted(topics)), min_size=1, max_size=4, unique=True))
def test_narrowing_keeps_whole_sentences_in_order_within_the_room(room: int, names: list[str]) -> None:
    texts = [source(topics[name], n) for n, name in enumerate(names)]
    narrowed, left_out = narrow(texts, "How does the with statement call methods of an object?", room)
    assert sum(count_tokens(text.text) for text in narrowed) <= room * 1.05 + 5
    originals = {text.source_id: text.text for text in texts}
    for text in narrowed:
        raw, position = originals[text.source_id], 0
        starts, ends = zip(*((sentence.start, sentence.end) for sentence in split_sentences(raw)), strict=True)
        for passage in text.text.split(OMISSION):
            if kept := passage.strip():  # a heading's words may stand in a sentence before it, too
                places = (n for n in starts if n >= position and raw.startswith(kept, n) and n + len(kept) in ends)
                found = next(places, None)
                assert found is not None, kept
                position = found + len(kept)
    if [text.text for text in narrowed] != [text.text for text in texts]:
        assert left_out > 0


def test_narrowing_gives_every_relevant_text_a_share() -> None:
    long = "\n\n".join(
        f"Tuples are immutable sequences, number {n}. They cannot be changed at all." for n in range(400)
    )
    texts = [source(long, 1), source(f"{'Nothing here at all. ' * 300}\n\nA tuple is immutable, says this one.", 2)]
    narrowed, left_out = narrow(texts, "immutable tuple", 800)
    assert [text.source_id for text in narrowed] == ["S000001", "S000002"]
    assert "says this one" in narrowed[1].text
    assert OMISSION in narrowed[1].text
    assert left_out > 0


def test_near_duplicates_differ_in_no_number() -> None:
    a = "The Python interpreter raises an exception when it detects a run-time error."
    assert is_near_duplicate(a, "The Python interpreter raises an exception when a run-time error is detected.")
    assert not is_near_duplicate("The tower is 300 metres high.", "The tower is 330 metres high.")
    assert not is_near_duplicate(a, "Python has exceptions.")


def test_narrowing_shows_rows_below_their_header_and_code_within_its_fences() -> None:
    rows = "\n".join(f"| {n} | the station number {n} on the line | {'x' * (n == 150)} |" for n in range(300))
    items = "\n".join(f"- Option number {n} of the many that there are for all." for n in range(60))
    code = "\n".join(f"    step_{n} = run({n})  # another one of the steps" for n in range(60))
    text = (
        f"# Lines\n\n| Stop | Name | Note |\n|---|---|---|\n{rows}\n\nThe options are:\n\n{items}\n"
        f"- Zircon is the last of them.\n\nRun all the steps with:\n\n"
        f"```python\n{code}\n    last = quartz()\n```\n\nThe end."
    )
    for query, shown in [
        ("station number 150", "| Stop | Name | Note |\n|---|---|---|\n\n[...]\n\n| "),
        ("zircon", "The options are:\n\n[...]\n\n- "),
        ("quartz", "Run all the steps with:\n\n```python\n\n[...]\n\n    step"),
    ]:
        ((narrowed,), _) = narrow([source(text)], query, 300)
        assert query.rpartition(" ")[2] in narrowed.text.lower()
        assert shown in narrowed.text
        assert narrowed.text.count("```") % 2 == 0
        assert count_tokens(narrowed.text) <= 300
        assert all(line in text.split("\n") or line == OMISSION for line in narrowed.text.split("\n"))


def test_a_text_is_taken_apart_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    init = ReadText.__init__

    def counted(self: ReadText, text: str) -> None:
        taken.append(text)
        init(self, text)

    monkeypatch.setattr(ReadText, "__init__", counted)
    pages = [Passage(f"The gate number {n} opens at 06:0{n}.\n\nIt closes at 20:00.", "Gates") for n in range(5)]
    for question in ("When does gate number 3 open?", "When do the gates close?", "Who opens gate 4?"):
        assert RankedExcerpts(pages).rank(read_asked(question))
    assert len(taken) == 5


def test_what_was_made_of_texts_is_kept_up_to_a_number_of_characters() -> None:
    kept: KeptTexts[tuple[str, int], object] = KeptTexts(10)
    made = [kept.get(("abcd", n), object) for n in range(2)]
    assert made == [kept.get(("abcd", n), object) for n in range(2)]
    kept.get(("abc", 0), object)
    again = [kept.get(("abcd", n), object) for n in (1, 0)]
    assert [one is other for one, other in zip(again, made[::-1], strict=True)] == [True, False]
    long = kept.get(("a" * 11, 0), object)
    assert kept.get(("a" * 11, 0), object) is not long
