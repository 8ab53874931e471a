"""What a note keeps of what a model wrote: quotations, paraphrases, and nothing that has an invented fact."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.evidence.grounding import Grounded, ground
from fathom.evidence.passages import Search
from fathom.evidence.stored import texts_of
from fathom.evidence.words import facts_nowhere
from fathom.facts.extraction import facts_of
from fathom.facts.opposites import denied_terms
from fathom.models import Note, SourceText

A, B, C = "S00000a", "S00000b", "S00000c"
SPEC = SourceText(
    source_id=A,
    url="https://specs.example.org/rfc9110",
    title="Semantics of the Frob Protocol",
    kind="web",
    text="""# Frob

A client sends a frob to the server. The server answers within 30 seconds, or the frob is lost.
Set `max_retries` to limit how often a client tries again; `from frob import Client` gives the client.

```python
client = Client(max_retries=3)
client.send("hello")
```

| Code | Meaning | Retry |
|---|---|---|
| 200 | accepted | no |
| 503 | the server is busy | after 30 s |

Nothing was measured yet. Version 2.1 was drafted by Ada Holm in May 2021.
""",
)
BRIDGE = SourceText(
    source_id=B,
    url="https://bridges.example.org/lyndhaven",
    title="The Lyndhaven Bridge",
    kind="web",
    text="""The bridge of Lyndhaven spans 488 metres and has eight lanes. It was opened on 12 March 1932 by the mayor,
Edith Vance. In 2018 it was crossed by 1,140 cyclists a day, 43.4 % of all traffic. Three quarters of the cost was paid
by the state. No one may fish from it.""",
)
TURM = SourceText(
    source_id=C,
    url="https://turm.example.de/",
    title="Der Turm",
    kind="web",
    text="""Der Turm wurde 1908 gebaut und ist 31,5 Meter hoch. Der Vorstand besteht aus fünf Personen. Die Garantie
gilt zwölf Jahre; sie erlischt, wenn ein fremder Betrieb das Dach öffnet. Vorsitzende ist Katrin Oberlach.""",
)
TEXTS = [SPEC, BRIDGE, TURM]


def grounded(*bullets: str, texts: list[SourceText] | None = None) -> Grounded:
    texts = TEXTS if texts is None else texts
    note = Note(
        step_id=1,
        summary_title="",
        summary="",
        extraction=list(bullets),
        is_useful=True,
        artifact_file="a.json",
        source_ids=[text.source_id for text in texts],
    )
    return ground(note, texts)


def nowhere(claim: str, *texts: SourceText) -> list[str]:
    read = list(texts or TEXTS)
    return facts_nowhere(claim, Search(texts_of(read)), [text.source_id for text in read])


QUOTED = [
    f"The server answers within 30 seconds, or the frob is lost. [{A}]",
    f"Set max_retries … how often a client tries again [{A}]",
    f'Loss: "the frob is lost" [{A}]',
    f"**Limit:** “Set `max_retries` to limit how often a client tries again” [{A}]",
    f"Client and limit: „Set `max_retries`“ und «how often a client tries again» [{A}]",
    f"On fishing: 'No one may fish from it' [{B}]",
    f"Vorsitz: »Vorsitzende ist Katrin Oberlach« [{C}]",
    f'```python\nclient = Client(max_retries=3)\nclient.send("hello")\n``` [{A}]',
    f'How it is sent:\n\n```python\nclient.send("hello")\n``` [{A}]',
    f"| Code | Meaning | Retry |\n|---|---|---|\n| 503 | the server is busy | after 30 s [{A}] |",
    f"The bridge of Lyndhaven spans 488 metres [{B}]; the frob is lost [{A}]",
    f"The server answers within 30 seconds [{A}]. No one may fish from it [{B}].",
    f'Loss: "the frob is lost" [{A}], and height: "31,5 Meter hoch" [{C}].',
    f"| Retry | Code |\n|---|---|\n| after 30 s | 503 [{A}] |\n| no | 200 [{A}] |",
]
PARAPHRASED = [
    f"A frob that gets no answer for 30 s is gone. [{A}]",
    f"RFC 9110 lets a client send frobs. [{A}]",
    f"`frob.Client` takes `max_retries`. [{A}]",
    f'He writes that "a frob is lost" at times. [{A}]',
    f'Rule of the year: "a frob is lost" [{A}]',
    f"Das Frob geht verloren, wenn der Server nicht in 30 Sekunden antwortet. [{A}]",
    f"Bei Überlastung wartet man. [{A}]",
    f"No figures are given for Frobnitz 4.7. [{A}]",
    f"The span is 0.488 km. [{B}]",
    f"Eight lanes, opened 1932-03-12. [{B}]",
    f"The chair is Katrin Oberlach; the board has 5 members. [{C}]",
    f"The span is 0.488 km [{B}]; a frob without an answer is gone after 30 s [{A}].",
    f"Cyclists were 43 % [{B}], while no one may fish from it [{B}], and the tower is 31.5 m high [{C}]",
    f"| Bridge | Lanes | Tower |\n|---|---|---|\n| Lyndhaven | 8 [{B}] | 31.5 m [{C}] |",
]
INVENTED = [
    f"The server answers within 45 seconds. [{A}]",
    f"Version 2.1 was drafted on 3 May 2022. [{A}]",
    f"It was drafted by Odo Farrwick. [{A}]",
    f"Odo Farrwick drafted it in 2021. [{A}]",
    f"Set `min_backoff` to wait longer. [{A}]",
    f"Set min_backoff to wait longer. [{A}]",
    f"The option --no-frob turns it off. [{A}]",
    f"Sending:\n\n```python\nclient.send_all()\n``` [{A}]",
    f"| Code | Meaning |\n|---|---|\n| 504 | the server is busy |\n[{A}]",
    f"The bridge spans 488 metres [{B}]; a frob is lost after 45 seconds [{A}].",
    f'Said in 2023: "the frob is lost" [{A}]',
    f"Die Garantie gilt zwanzig Jahre. [{C}]",
    f"Stellvertreterin ist seither Margarete Wendling. [{C}]",
    "Nobody likes cheese.",
    f"Bananas taste sweet with this much of the honey. [{B}]",
]


@pytest.mark.parametrize("bullet", QUOTED)
def test_what_a_source_says_word_for_word_is_a_quotation(bullet: str) -> None:
    assert grounded(bullet) == (grounded().note.model_copy(update={"extraction": [bullet]}), [], [])


@pytest.mark.parametrize("bullet", PARAPHRASED)
def test_what_is_said_in_other_words_is_kept_as_it_is_and_told_apart(bullet: str) -> None:
    found = grounded(bullet)
    assert (found.note.extraction, found.paraphrased) == ([bullet], [bullet])


@pytest.mark.parametrize("bullet", INVENTED)
def test_a_fact_that_no_text_has_takes_its_bullet_along(bullet: str) -> None:
    assert grounded(bullet).dropped == [bullet]


@pytest.mark.parametrize(
    ("bullet", "ids"),
    [
        (f'Opened in 1932: "the frob is lost" [{A}]', [A, B]),
        ("The bridge has eight lanes.", [B]),
        (f"The bridge was opened in 1932. [{A}]", [B]),
        (f"The bridge was opened in 1932 and RFC 9110 answers. [{A}]", [A, B]),
        (f"The mayor opened it. [{B}][{A}]", [B, A]),
        ("Edith Vance, the mayor, opened it. [S99999999]", [B]),
        (f"spans 488 metres and has eight lanes [{A}]", [B]),
    ],
)
def test_a_bullet_gets_the_right_source(bullet: str, ids: list[str]) -> None:
    (kept,) = grounded(bullet).note.extraction
    assert kept.endswith(f" {''.join(f'[{source_id}]' for source_id in ids)}")
    assert kept.count("[S") == len(ids)


@pytest.mark.parametrize(
    ("bullet", "kept"),
    [
        (
            f"Opened in 1932 [{B}]; it is 31.5 m high [S99999999][{C}].",
            f"Opened in 1932 [{B}]; it is 31.5 m high [{C}].",
        ),
        (f"Opened in 1932 [S99999999]; eight lanes [{B}].", f"Opened in 1932; eight lanes [{B}]."),
        (
            f"Three quarters of the cost was paid by the state [{A}], and the frob is lost [{A}]",
            f"Three quarters of the cost was paid by the state [{B}], and the frob is lost [{A}]",
        ),
        (
            f"The bridge was opened on 12 March 1932 by the mayor [{A}]; the server answers [{A}].",
            f"The bridge was opened on 12 March 1932 by the mayor [{B}]; the server answers [{A}].",
        ),
    ],
)
def test_an_id_stays_behind_the_part_that_it_is_for(bullet: str, kept: str) -> None:
    assert grounded(bullet).note.extraction == [kept]


@pytest.mark.parametrize(
    "row",
    ["| 503 | the server is busy | after 30 s |", "| 503 | busy servers | 30 s |", "| 503 | the server is busy | |"],
)
def test_the_id_of_a_row_is_in_its_last_cell(row: str) -> None:
    (kept,) = grounded(f"| Code | Meaning | Retry |\n|---|---|---|\n{row}\n[S99999999]").note.extraction
    assert kept.endswith(f"\n{row.removesuffix('|').rstrip()} [{A}] |")


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("RFC 9110 is binding.", SPEC),
        ("The span is 0.488 km, or 48,800 cm.", BRIDGE),
        ("It has 8 lanes.", BRIDGE),
        ("About 1,100 cyclists, or 43 %, in the 21st century.", BRIDGE),
        ("In the 1930s the state paid 75 %, for 1140 cyclists.", BRIDGE),
        ("86 years later, in 2018, there were 20 percent more cyclists.", BRIDGE),
        ("There are three reasons for it, and no one is told the one that counts.", BRIDGE),
        ("The tower is 31.5 m high; 12 years of guarantee.", TURM),
        ("Fünf Personen und zwölf Jahre.", TURM),
        ("The Kongress of Namen is for the Volk.", TURM),
        ("Eine Prüfung der Namen durch den Ausschuss ist laut Satzung nicht vorgesehen.", TURM),
        (
            "`Client(retries = None)` is not `not_null`.",
            SPEC.model_copy(update={"text": "Client, retries, not_null, None"}),
        ),
        ("`frob.Client` has max_retries().", SPEC),
        ("Some 10k people came.", BRIDGE.model_copy(update={"text": "There were 10,000 people."})),
        ("It was on 3 May 2021.", BRIDGE.model_copy(update={"text": "Fue el 3 de mayo de 2021."})),
        (
            "The paper is Le Monde, in the words of Der Spiegel.",
            BRIDGE.model_copy(update={"text": "Monde and Spiegel."}),
        ),
    ],
)
def test_facts_are_read_as_a_person_reads_them(claim: str, text: SourceText) -> None:
    assert nowhere(claim, text) == []


@pytest.mark.parametrize(
    ("claim", "fact"),
    [
        ("The bridge cost 140 million euros.", "140 million euros"),
        ("It is 488 kilometres long.", "488 kilometres"),
        ("It was opened on 12 April 1932.", "12 April 1932"),
        ("It was opened in the 1940s.", "1940s"),
        ("It took twelve hours.", "twelve hours"),
        ("About 700 people met.", "700"),
        ("The state paid 25 %.", "25 %"),
        ("It was the work of the Brunel family.", "the name Brunel"),
    ],
)
def test_a_fact_that_stands_nowhere_is_named(claim: str, fact: str) -> None:
    assert nowhere(claim, BRIDGE) == [fact]


def test_one_is_no_number_and_code_denies_nothing() -> None:
    for text in ("No one may enter.", "one of them", "This one is new.", "Take the one that fits"):
        assert facts_of(text).numbers == []
    assert [number.text for number in facts_of("one litre, one million people").numbers] == ["one litre", "one million"]
    assert denied_terms("`None` and `not x` are allowed, and it returns None here") == {}
    assert list(denied_terms("None of the pumps run.")) == ["pump", "run"]


words = st.sampled_from(
    ["bridge", "frob", "Vance", "30", "1932", "„", "“", ":", "`max_retries`", "not", "|", "\n", "```"]
)


@given(st.lists(words, max_size=20).map(" ".join), st.sampled_from(["", f" [{A}]", f" [{B}][{C}]", " [S99999999]"]))
def test_a_note_is_the_same_when_it_is_checked_again(text: str, cited: str) -> None:
    once = grounded(f"{text}{cited}")
    assert len(once.note.extraction) + len(once.dropped) == 1
    assert grounded(*once.note.extraction) == (once.note, [], once.paraphrased)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_bullet_is_kept_or_returned(bullet: str, text: str) -> None:
    found = grounded(bullet, texts=[SPEC.model_copy(update={"text": text})])
    assert found.dropped == [bullet] or len(found.note.extraction) == 1


def test_code_and_rows_are_kept_without_a_label_that_says_what_no_text_says() -> None:
    fence = '```python\nclient = Client(max_retries=3)\nclient.send("hello")\n```'
    rows = "| Code | Meaning | Retry |\n|---|---|---|\n| 503 | the server is busy | after 30 s |"
    invented = f"A client that raises FrobTimeoutError:\n```python\nclient.close()\n``` [{A}]"
    found = grounded(f"A client that raises FrobTimeoutError:\n{fence} [{A}]", f"Since 1999:\n{rows} [{A}]", invented)
    assert found.note.extraction == [f"{fence}\n[{A}]", f"{rows.removesuffix(' |')} [{A}] |"]
    assert found.dropped == [invented]
