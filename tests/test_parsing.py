"""From a model's text to a typed answer."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.groups import RoleModel
from fathom.errors import AnswerInvalid
from fathom.llm.base import Completion, CutOff, InvalidAnswer, ModelCall
from fathom.llm.dialects import Dialect
from fathom.llm.parsing import accept, not_prose, without_debris
from fathom.llm.prompts import messages, strict_schema
from fathom.models import PlanStep, SourceText, ToolCall, Usage
from fathom.roles import (
    COMPRESSOR,
    PLANNER,
    RESEARCHER,
    SPECS,
    CompressAnswer,
    CompressRequest,
    PlanAnswer,
    PlanRequest,
    ResearchRequest,
    Text,
)
from fathom.roles.researcher import ResearchAnswer, ToolCallAnswer
from fathom.text.plain import shortened, without_controls
from fathom.text.sentences import split_sentences

PLAN = {
    "plan_title": "Tides on Mars",
    "steps": [
        {"step_id": 1, "title": "Oceans", "description": "Find whether Mars has oceans.", "queries": ["Mars oceans"]}
    ],
}


def plan_call(invalid: InvalidAnswer | None = None) -> ModelCall:
    request = PlanRequest(query="Are there tides on Mars?", today="2026-01-01", max_steps=3, tools={})
    return ModelCall(PLANNER, request, RoleModel(model="m"), invalid)


def answered(text: str, cut_off: CutOff | None = None) -> Completion:
    return Completion(text=text, usage=Usage(), model="openai/stub", cut_off=cut_off)


@pytest.mark.parametrize(
    "wrapped",
    [
        "{}",
        "```json\n{}\n```",
        '<think>I should plan. {{"plan_title": 1}}</think>\n{}',
        "Sure.</think>{}",
        "Here is the plan: {}",
    ],
)
def test_an_answer_is_found_in_what_models_put_around_it(wrapped: str) -> None:
    text = wrapped.replace("{{", "{").replace("}}", "}").replace("{}", json.dumps(PLAN), 1)
    answer = accept(plan_call(), answered(text))
    assert isinstance(answer, PlanAnswer)
    assert answer.plan().plan_title == "Tides on Mars"


FINAL = "<|channel|>analysis<|message|>Let me think.<|end|><|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("<|im_start|>assistant\nSeas [S1a2b3c].<|im_end|>\n", "Seas [S1a2b3c]."),
        ("Seas.<|im_end|>\n<|im_start|>user\nMore?<|im_end|>", "Seas."),  # it asks itself
        ("<start_of_turn>model\nSeas.<end_of_turn>", "Seas."),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nSeas.<|eot_id|>", "Seas."),
        ("<s>[INST]Seas.[/INST]</s>", "Seas."),
        ("<\uff5cend\u2581of\u2581sentence\uff5c>Seas.", "Seas."),
        (f"{FINAL}Seas.<|return|>", "Seas."),
        ("<|channel|>analysis<|message|>Let me think.", ""),
        ("<think>So it is.</think>Seas.", "Seas."),
        ("So it is.</think>\n\nSeas.", "Seas."),
        ("<think>So it is, and", ""),
        ("```markdown\nSeas.\n```", "Seas."),
        ("A template begins with `<|im_start|>` and ends.", "A template begins with `<|im_start|>` and ends."),
        ("The tag <s> strikes out. The end [/INST] is odd.", "The tag <s> strikes out. The end [/INST] is odd."),
    ],
)
def test_prose_is_freed_from_the_marks_of_its_template(said: str, kept: str) -> None:
    assert without_debris(said, is_json=False) == kept


@pytest.mark.parametrize(
    "wrapped", ["<|im_start|>assistant\n{}<|im_end|>", "{}<|im_end|>\n<|im_start|>user", f"{FINAL}{{}}<|return|>"]
)
def test_json_is_freed_from_the_marks_around_it_only(wrapped: str) -> None:
    plan = json.dumps(PLAN | {"plan_title": "What <|im_start|> is"})
    assert without_debris(wrapped.replace("{}", plan), is_json=True) == plan


@given(st.text(max_size=200), st.booleans())
def test_no_text_breaks_the_search_for_marks(text: str, is_json: bool) -> None:
    assert len(without_debris(text, is_json=is_json)) <= len(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"summary": "Seas."}', "JSON"),
        ('Here it is:\n\n{"summary": "Seas."}', "JSON"),
        ('[{"summary": "Seas."}]', "JSON"),
        ('{\n  "summary": "Seas.', "JSON"),
        ('  "summary": "Seas.",\n', "JSON"),
        ('```json\n{"summary": "Seas."}\n```', "only a code block"),
        ("### Seas\n\n```python\nprint(1)\n```", "only a code block"),
        ('Send this: [S1a2b3c]\n\n```json\n{"summary": "Seas."}\n```', ""),
        ("Seas [S1a2b3c].\n\n- [a link](x) and {braces}\n", ""),
        ('The key "summary": it names the seas [S1a2b3c].', ""),
        ("[S1a2b3c] says so.", ""),
    ],
)
def test_what_is_no_prose_is_told(text: str, what: str) -> None:
    assert not_prose(text) == what


def test_instructions_are_no_answer() -> None:
    told = messages(plan_call(), Dialect())[0]["content"]
    sentence = next(s.text for s in split_sentences(told) if len(s.text.split()) > 12)
    outcome = accept(plan_call(), answered(json.dumps(PLAN | {"plan_title": sentence})))
    assert isinstance(outcome, InvalidAnswer)
    assert "instructions" in outcome.complaints[0]
    question = json.dumps(PLAN | {"plan_title": plan_call().request.model_dump()["query"]})
    assert isinstance(accept(plan_call(), answered(question)), PlanAnswer)


@pytest.mark.parametrize("cut_off", list(CutOff))
def test_broken_json_is_repaired_but_an_answer_that_was_cut_off_is_not(cut_off: CutOff) -> None:
    broken = json.dumps(PLAN)[:-2] + ",]"
    assert isinstance(accept(plan_call(), answered(broken)), PlanAnswer)
    outcome = accept(plan_call(), answered(broken, cut_off))
    assert isinstance(outcome, InvalidAnswer)
    assert outcome.cut_off


def test_a_second_bad_answer_is_a_typed_failure() -> None:
    first = accept(plan_call(), answered("no plan today"))
    assert isinstance(first, InvalidAnswer)
    with pytest.raises(AnswerInvalid):
        accept(plan_call(first), answered("still none"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"steps": []}, "steps"),
        ({"steps": [PLAN["steps"][0], {**PLAN["steps"][0], "title": "Moons"}]}, "twice"),  # type: ignore[dict-item]  # plain JSON
        ({"steps": [{**PLAN["steps"][0], "queries": ["Mars"]}]}, "one-word"),  # type: ignore[dict-item]  # the same
        (
            {
                "steps": [
                    {"step_id": 1, "title": "a", "description": "b", "depends_on": [2]},
                    {"step_id": 2, "title": "c", "description": "d", "depends_on": ["1"]},
                ]
            },
            "circle",
        ),
    ],
)
def test_a_plan_that_breaks_a_rule_is_asked_for_again(change: dict[str, Any], complaint: str) -> None:
    outcome = accept(plan_call(), answered(json.dumps(PLAN | change)))
    assert isinstance(outcome, InvalidAnswer)
    assert complaint in " ".join(outcome.complaints)


@given(st.text(max_size=300))
def test_no_text_breaks_the_ladder(text: str) -> None:
    outcome = accept(plan_call(), answered(text))
    assert isinstance(outcome, (PlanAnswer, InvalidAnswer))


def compress_call(invalid: InvalidAnswer | None = None) -> ModelCall:
    text = SourceText(source_id="S0a0a0a", url="https://a.example", title="A", kind="web", text="Mars has no seas.")
    request = CompressRequest(
        plan_title="p",
        step_title="s",
        step_description="d",
        tool_name="t",
        texts=[text, text.model_copy(update={"source_id": "S0b0b0b"})],
        page_tokens=300,
    )
    return ModelCall(COMPRESSOR, request, RoleModel(model="m"), invalid)


def test_a_note_is_cut_to_its_limits_and_loses_ids_that_were_never_given() -> None:
    note = {
        "summary_title": " ".join(["word"] * 20),
        "summary": " ".join(f"Sentence number {n} stands here." for n in range(14)),
        "extraction": ["Mars has no seas [S0a0a0a][Sffffff].", "Nothing else."],
        "is_useful": True,
    }
    settled = accept(compress_call(), answered(json.dumps(note))).model_dump()
    assert settled["summary_title"] == " ".join(["word"] * 20)
    assert settled["summary"].count(".") == 10
    assert settled["extraction"] == ["Mars has no seas [S0a0a0a].", "Nothing else."]


def test_the_title_of_a_note_is_cut_behind_a_word_only_where_it_is_long() -> None:
    assert shortened("word " * 24, 120) == " ".join(["word"] * 24)
    assert shortened("word " * 25, 120) == " ".join(["word"] * 23) + " …"
    assert shortened("語" * 130, 120) == "語" * 118 + " …"


def test_a_note_is_not_sent_back_for_its_form() -> None:
    note = {"summary_title": "Seas", "summary": "None.", "extraction": ["Mars has no seas."], "is_useful": True}
    assert accept(compress_call(), answered(json.dumps(note))) == CompressAnswer.model_validate(note)
    useless = {"summary_title": "", "summary": "", "extraction": [], "is_useful": False}
    assert accept(compress_call(), answered(json.dumps(useless))) == CompressAnswer.model_validate(useless)
    empty = accept(compress_call(), answered(json.dumps({**note, "summary": " "})))
    assert isinstance(empty, InvalidAnswer)


def test_the_researcher_can_name_enabled_tools_only() -> None:
    step = PlanAnswer.model_validate(PLAN).plan().steps[0]
    request = ResearchRequest(
        query="q",
        today="2026-01-01",
        step=step,
        breadth=2,
        tools={"web_search": "search"},
        searching=["web_search"],
        notes=[],
        tried=[],
    )
    assert RESEARCHER.schema
    schema = strict_schema(RESEARCHER.schema(request), bounds=True)
    assert schema["$defs"]["ToolCallAnswer"]["properties"]["tool"]["enum"] == ["web_search"]
    call = ModelCall(RESEARCHER, request, RoleModel(model="m"))
    for bad in ({"done": True, "calls": []}, {"calls": [{"tool": "shell", "input": "rm"}]}):
        assert isinstance(accept(call, answered(json.dumps(bad))), InvalidAnswer)


@pytest.mark.parametrize("bounds", [True, False])
@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.answer is not Text])
def test_schemas_keep_to_the_strict_subset(name: str, bounds: bool) -> None:
    def walk(node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                walk(item)
        elif isinstance(node, dict):
            assert ("maxItems" in node) == (bounds and node.get("type") == "array")
            assert ("maxLength" in node) == (bounds and node.get("type") == "string" and "enum" not in node)
            assert "$ref" not in node or len(node) == 1
            if "properties" in node:
                assert node["required"] == list(node["properties"])
                assert node["additionalProperties"] is False
                for child in node["properties"].values():
                    assert "default" not in child
            for child in node.values():
                walk(child)

    walk(strict_schema(SPECS[name].answer.model_json_schema(), bounds=bounds))


@given(st.text(st.characters(max_codepoint=0x2FF)))
def test_no_control_character_of_an_answer_reaches_a_terminal(text: str) -> None:
    plan = {**PLAN, "plan_title": f"Tides {text}"}
    answer = accept(plan_call(), answered(json.dumps(plan)))
    assert isinstance(answer, PlanAnswer)
    kept = [char for char in text if char in "\n\t" or unicodedata.category(char) != "Cc"]
    assert without_controls(text) == "".join(kept)
    assert all(char in "\n\t" or unicodedata.category(char) != "Cc" for char in answer.plan().plan_title)


@pytest.mark.parametrize(
    ("inputs", "title", "first"),
    [
        (["A.B.1.12.11", "typewriter numbers"], "1.1.3", "How tall is the lighthouse of Tessing?"),
        (["lighthouse heights"], "1.1.3", "lighthouse heights"),
        (["harbour masters of Karrow"], "The harbour near the lighthouse", "harbour masters of Karrow"),
        (["numbers of numbers"], "Numbers of the lighthouse", "numbers of numbers"),
    ],
)
def test_the_first_search_of_a_run_is_about_its_question(inputs: list[str], title: str, first: str) -> None:
    question = "How tall is the lighthouse of Tessing?"
    request = ResearchRequest(
        query=question,
        today="2026-01-01",
        step=PlanStep(step_id=1, title=title, description="d"),
        breadth=2,
        tools={"web_search": "search"},
        searching=["web_search"],
        notes=[],
        tried=[],
    )
    answer = ResearchAnswer(calls=[ToolCallAnswer(tool="web_search", input=text) for text in inputs])
    settled = RESEARCHER.normalize(request, answer)
    assert settled.calls[0].input == first
    assert len(settled.calls) <= request.breadth
    later = request.model_copy(update={"tried": [ToolCall(tool="web_search", input=question)]})
    assert RESEARCHER.normalize(later, answer).calls == answer.calls
