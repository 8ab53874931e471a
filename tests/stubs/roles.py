"""What the scripted model answers: sensible, the same every time, and from the request alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.stubs.obedience import obey
from tests.stubs.reading import Prompt
from tests.stubs.settings import Settings

__all__ = ["answer"]

ASPECTS = ("causes", "effects", "history", "costs", "limits", "methods", "risks", "examples", "measures", "outlook")
OF_TEMPLATE = "Research of this kind must also find out, for what the question is about"
LONGEST_ANSWER = 140  # characters
KINDS = ("figures", "evidence", "review", "survey", "data", "reports", "findings", "trials", "records", "analysis")


def answer(prompt: Prompt, settings: Settings) -> str:
    """Answer a prompt: JSON where a schema is given, else prose."""
    if settings.attacker and (obeyed := obey(prompt, settings.attacker)) is not None:
        return obeyed
    for mark, said in settings.says.items():
        if re.search(mark, f"{prompt.system}\n{prompt.user}"):
            return said
    if prompt.role == "section":
        if not settings.section:
            return _section(prompt, settings)
        return settings.section.replace("ID", prompt.cited_ids[0]).replace("LAST", prompt.cited_ids[-1])
    script = _SCRIPTS.get(prompt.role)
    content = script(prompt, settings) if script else _instance(prompt.schema, prompt.schema.get("$defs", {}))
    return json.dumps(content)


def _step(number: int, title: str, base: str, settings: Settings) -> dict[str, Any]:
    return {
        "step_id": number,
        "title": title,
        "description": f"Find published numbers on {base}, and who counted them in which year.",
        "queries": [f"{base} {kind}" for kind in KINDS[: settings.breadth * settings.suggests]],
        "priority": "medium",
        "depends_on": [],
    }


def _clarify(_prompt: Prompt, settings: Settings) -> dict[str, Any]:
    asked = [{"question": question, "default": default} for question, default in settings.ask_back.items()]
    return {"ambiguous": bool(asked), "questions": asked}


def _plan(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    aspects = prompt.bullets(OF_TEMPLATE) or ASPECTS[: settings.steps]
    if remark := prompt.after("Its reader asks for this change") if "Its reader asks" in prompt.user else "":
        aspects = (*aspects[:-1], remark)
    return {
        "plan_title": f"{prompt.topic.capitalize()} in numbers",
        "steps": [
            _step(n, f"{aspect.capitalize()} of {prompt.topic}", f"{prompt.topic} {aspect}", settings)
            for n, aspect in enumerate(aspects, 1)
        ],
        **settings.judged,
    }


def _research(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    computed = sum(call.startswith("compute: ") for call in prompt.bullets("Calls already made for this step"))
    if "compute" in prompt.tools and computed < len(settings.computes):
        tables = {name.rsplit("_", 1)[0]: name for name in re.findall(r"^  - (\w+)\(", prompt.system, re.MULTILINE)}
        query = re.sub(r"(\w+)_\*", lambda found: tables[found[1]], settings.computes[computed])
        return {"done": False, "calls": [{"tool": "compute", "input": query}]}
    if prompt.bullets("Calls already made for this step"):
        brief = "\n".join(f"- {fact} [{source}]" for fact, source in prompt.cited_facts)
        return {"done": True, "calls": [], **({"brief": brief} if "brief" in prompt.schema["properties"] else {})}
    tool = "web_search" if "web_search" in prompt.tools else prompt.tools[0]
    title = prompt.after("Your step")
    queries = [*prompt.bullets("Suggested queries"), *(f"{title} {kind}" for kind in KINDS)]
    if tool == "fetch":
        queries = re.findall(r"https?://\S+(?=[\s?])", prompt.after("The question behind the research"))
    return {"done": False, "calls": [{"tool": tool, "input": query} for query in queries[: settings.breadth]]}


def _compress(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    bullets = [f"{fact} [{source}]" for source, facts in prompt.sources.items() for fact in dict.fromkeys(facts)]
    if settings.bullets and prompt.sources:
        bullets = [bullet.replace("ID", next(iter(prompt.sources))) for bullet in settings.bullets]
    if not bullets and (prompt.noise or not prompt.sources):
        return {"summary_title": "", "summary": "", "extraction": [], "is_useful": False}
    return {
        "summary_title": f"Cases counted across the sources read: {len(prompt.sources)}",
        "summary": f"The number of sources read is {len(prompt.sources)}. Statements that give a count and a year: "
        f"{len(bullets)}. Each stands below with its source.",
        "extraction": bullets or [f"The source treats the matter of the step [{next(iter(prompt.sources))}]"],
        "is_useful": True,
    }


def _wanted(prompt: Prompt, settings: Settings) -> list[str]:
    told = re.search(r"\(notes: ([^,)]+)", prompt.user)
    return [told[1]] if told and settings.reads_whole and "read_whole" in prompt.schema["properties"] else []


def _criticise(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    first = prompt.round == 1
    aspects = ("critics", "alternatives", "regions", "periods", "populations")[: settings.follow_ups if first else 0]
    return {
        "read_whole": _wanted(prompt, settings),
        "sufficiency_score": (first and settings.score) or (5 if aspects else 9),
        "reasoning": "Some aspects lack numbers." if aspects else "Every step is answered with numbers.",
        "step_statuses": [
            {"step_id": step_id, "status": "in_progress" if str(step_id) in settings.partly else "done"}
            for step_id in prompt.step_ids
        ],
        "gaps": [
            {
                "description": f"Nothing was found on {aspect}.",
                "severity": "important",
                "suggested_query": f"{prompt.topic} {aspect} figures",
            }
            for aspect in aspects
        ],
        "contradictions": [],
        "follow_up_steps": [
            _step(n, f"{aspect.capitalize()} of {prompt.topic}", f"{prompt.topic} {aspect}", settings)
            for n, aspect in enumerate(aspects, 1)
        ],
        **settings.critique,
    }


def _outline(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    steps = prompt.step_ids
    groups = [steps, *(steps[n::3] for n in range(3))]
    headings = ("In short", "What was counted", "Where counts differ", "What the years show")
    return {
        "read_whole": _wanted(prompt, settings),
        "title": f"{prompt.topic.capitalize()}: what the counts say",
        "sections": [
            {"heading": heading, "focus": f"Say what is known on {prompt.topic}.", "step_ids": group}
            for heading, group in zip(headings, groups, strict=True)
        ],
    }


def _section(prompt: Prompt, settings: Settings) -> str:
    """Repeat facts of the notes with their ids, fresh ones before those that earlier sections have."""
    heading = re.search(r'^Write section \d+, "(.+?)"\.', prompt.user, re.MULTILINE)
    if settings.lacking and heading and re.search(settings.lacking, heading[1]) and "NOTHING FOUND" in prompt.system:
        return "NOTHING FOUND"
    if prompt.cited_facts:
        return " ".join(f"{fact} [{source}]" for fact, source in prompt.cited_facts[:4])
    cited = [f"One source treats the question [{source}]." for source in prompt.cited_ids[:2]]
    return " ".join(cited) or "The notes hold nothing on this."


def _answer(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    facts = [(fact.partition(": ")[2], source) for fact, source in prompt.cited_facts]
    fitting = [f"{fact} [{source}]" for fact, source in facts if len(fact) <= LONGEST_ANSWER]
    said = settings.answer.replace("ID", prompt.cited_ids[0]) or next(iter(fitting), "The notes do not say.")
    return {"answer": said, "confidence": settings.confidence}


def _judge(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    """Find each sentence word for word in what its sources say, but judge otherwise what the settings name."""
    opinions: list[dict[str, Any]] = []
    later = [int(n) for n, text in prompt.passages.items() if settings.replacing and settings.replacing in text]
    for number, (sentence, numbers) in prompt.claims.items():
        wanted = " ".join(re.findall(r"\w+", sentence.lower()))
        own = [int(n) for n in numbers if wanted in " ".join(re.findall(r"\w+", prompt.passages[int(n)].lower()))]
        named = next((verdict for part, verdict in settings.verdicts.items() if part in sentence), "")
        verdict = named or ("supported" if own else "not_stated")
        shown = own or [int(n) for n in numbers[:1]]
        missing = sentence if verdict == "not_stated" else ""
        given = settings.given if verdict == "supported" else []
        said = {"claim": number, "verdict": verdict, "passages": shown, "reason": "as scripted", "look_for": missing}
        opinions.append(said | {"given": given} | ({"replaced_by": later[0]} if later else {}))
    return {"opinions": opinions}


def _correct(prompt: Prompt, settings: Settings) -> dict[str, Any]:
    return {"corrections": [{"number": n, "replacement": settings.replacement} for n in prompt.objections]}


def _instance(schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Return the smallest value of a schema, for a role without a script."""
    if reference := schema.get("$ref"):
        return _instance(definitions[reference.rpartition("/")[2]], definitions)
    if choices := schema.get("anyOf"):
        return _instance(choices[0], definitions)
    if values := schema.get("enum"):
        return values[0]
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            return {name: _instance(parts[name], definitions) for name in schema.get("required", parts)}
        case "array":
            return [_instance(schema["items"], definitions)] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return "a scripted answer of several words"


_SCRIPTS: dict[str, Callable[[Prompt, Settings], dict[str, Any]]] = {
    "clarifier": _clarify,
    "planner": _plan,
    "researcher": _research,
    "compressor": _compress,
    "critic": _criticise,
    "outline": _outline,
    "answer": _answer,
    "judge": _judge,
    "correction": _correct,
}
