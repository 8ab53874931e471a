"""Depth by need: how questions are judged by their form, what follows from a judgement, and what runs ask for then."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fathom.config.environment import Environment
from fathom.config.groups import ABOUT, Profile
from fathom.config.settings import ResearchSettings, ResolvedSettings, resolve
from fathom.extractive.planner import judge
from fathom.models import Ending, Kind, RunResult, Width
from fathom.run.engine import Engine
from fathom.run.estimate import Scope, scope_of
from tests.inprocess import investigated
from tests.stubs import Stubs

QUESTIONS = {
    Kind.fact: [
        "Who wrote the novel Middlemarch?",
        "When did the Rosetta probe land on a comet?",
        "Is Pluto a planet?",
        "How tall is the television tower in Berlin?",
        "In which year was the university of Graz founded?",
        "Wie viele Einwohner hat Graz?",
        "Wann wurde die Berliner Mauer gebaut?",
        "Quelle est la capitale de l'Australie ?",
        "¿Cuándo se fundó la ciudad de Sevilla?",
    ],
    Kind.comparison: [
        "What is the difference between TCP and UDP?",
        "Compare heat pumps with gas boilers",
        "React vs Vue for a small team",
        "Was ist der Unterschied zwischen HTTP/2 und HTTP/3?",
        "¿Qué diferencia hay entre un virus y una bacteria?",
    ],
    Kind.how_to: [
        "How do I set up WireGuard on a Raspberry Pi?",
        "How to bake bread with sourdough",
        "Wie richte ich einen Proxy für npm ein?",
        "Comment installer Docker sur Debian ?",
        "¿Cómo puedo recuperar un archivo borrado en Linux?",
    ],
    Kind.survey: [
        "Give me an overview of perovskite solar cell research",
        "What is known about the long-term effects of microplastics on human health?",
        "Write a comprehensive report on the European battery industry",
        "Überblick über Verfahren zur Wasserstoffspeicherung",
        "État de l'art de la traduction automatique neuronale",
    ],
    Kind.current_event: [
        "What is the latest stable version of Python?",
        "Wie hoch sind die aktuellen Zinsen der EZB?",
        "Quelles sont les dernières nouvelles sur la mission Artemis ?",
    ],
    Kind.decision: [
        "Should we migrate our monolith to microservices?",
        "Which database is best for time series?",
        "Sollten wir auf Kubernetes umsteigen?",
        "Faut-il isoler les murs par l'extérieur ?",
    ],
}


def settings(**chosen: Any) -> ResolvedSettings:
    return resolve(ResearchSettings.model_validate(chosen), Environment.read({}), ["documents"])


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_is_judged_by_its_form(kind: Kind) -> None:
    assert {query: judge(query).kind for query in QUESTIONS[kind]} == dict.fromkeys(QUESTIONS[kind], kind)
    assert {judge(query).width for query in QUESTIONS[Kind.survey]} == {Width.broad}


def test_what_has_many_answers_is_no_simple_question() -> None:
    assert judge("Who wrote the novel Middlemarch?").width is Width.narrow
    for query in ("Why do leaves fall?", "When and where was the treaty signed, and who was there?"):
        assert judge(query).width is not Width.narrow
    assert judge("What does it cost? " * 12).width is Width.broad


def test_a_fact_takes_least_and_a_survey_all_of_the_profile() -> None:
    for profile in ("quick", "standard", "deep"):
        given = settings(profile=profile, model="openai/stub")
        simple = scope_of(given, Kind.fact, Width.narrow)
        assert simple.simple
        quoting = scope_of(settings(profile=profile), Kind.fact, Width.narrow).settings  # where reading costs nothing
        assert (quoting.max_steps, quoting.breadth, quoting.max_results) == (1, given.breadth, given.max_results)
        assert (simple.settings.max_steps, simple.settings.breadth, simple.settings.turns) == (1, 1, 1)
        assert simple.settings.depth <= min(2, given.depth)
        depths = {scope_of(given, kind, width).settings.depth for kind in Kind for width in Width}
        told = ABOUT[Profile(profile)].replace("One round", "1 round")  # what a person reads who chooses one
        assert {int(number) for number in re.findall(r"\d+", told)} == depths
        for kind in Kind:
            for width in Width:
                scope = scope_of(given, kind, width).settings
                for name in ("max_steps", "breadth", "turns", "depth", "max_results"):
                    assert 1 <= getattr(scope, name) <= getattr(given, name)
        assert scope_of(given, Kind.survey, Width.narrow).settings == given
        assert scope_of(given, Kind.fact, Width.broad).settings == given
        assert scope_of(given, Kind.comparison, Width.narrow).settings.max_steps == given.max_steps


def test_what_the_user_set_stays_and_no_judgement_changes_nothing() -> None:
    given = settings(depth=4, breadth=7)
    scope = scope_of(given, Kind.fact, Width.narrow).settings
    assert (scope.depth, scope.breadth, scope.max_steps) == (4, 7, 1)
    assert scope_of(given, None, None).settings == given
    assert scope_of(settings(effort="fixed"), Kind.fact, Width.narrow).settings == settings(effort="fixed")


@pytest.mark.usefixtures("wide")
async def test_a_simple_fact_takes_one_step_and_three_model_calls(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.judged = {"kind": "fact", "width": "narrow"}
    result = await investigated(tmp_path)
    assert result.status is Ending.complete, result.reason
    assert [record.role for record in providers.calls("llm")] == ["planner", "compressor", "section"]
    assert [record.body["max_results"] for record in providers.calls("search")] == [3]
    plan = read(result, "plan.json")
    assert (len(plan["steps"]), plan["kind"], plan["width"]) == (1, "fact", "narrow")
    assert "## Answer\n" in Path(str(result.report)).read_text()


async def test_a_question_that_turns_out_to_be_wider_has_the_tools_for_it(providers: Stubs, tmp_path: Path) -> None:
    read = []

    async def before(engine: Engine) -> None:
        for scope in (scope_of(engine.settings, Kind.fact, Width.narrow), Scope(engine.start.settings)):
            engine.adopt(scope)
            read.append((engine.settings.max_results, engine.tools.settings["max_results"]))

    await investigated(tmp_path, _before=before, profile="quick")
    assert read == [(3, 3), (5, 5)]


async def test_a_fact_that_is_not_found_is_looked_for_once_more(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.judged = {"kind": "fact", "width": "narrow"}
    providers.settings.noise = r"causes evidence|causes figures"
    result = await investigated(tmp_path)
    assert result.status is Ending.complete, result.reason
    assert [step["status"] for step in read(result, "plan.json")["steps"]] == ["blocked", "done"]
    assert not providers.calls("critic")


async def test_a_survey_and_an_unknown_judgement_take_what_the_profile_gives(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.steps, providers.settings.breadth = 2, 2
    await investigated(tmp_path / "fixed", effort="fixed")
    fixed = [record.role for record in providers.calls("llm")]
    for said in ({}, {"kind": "survey", "width": "broad"}, {"kind": "a How-To", "width": "wide"}):
        providers.settings.judged = said
        providers.requests.clear()
        await investigated(tmp_path / "auto")
        assert [record.role for record in providers.calls("llm")] == fixed, said


def read(result: RunResult, name: str) -> Any:
    return json.loads(Path(result.artifacts, name).read_text())
