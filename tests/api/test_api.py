"""The Python API: what a program gets that runs, grades, asks why and compares."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import agenteval_tui as agenteval
from agenteval_tui import api
from agenteval_tui.core.entry_points import API, TEST_CRITERIA, _own, own
from agenteval_tui.history.feedback import AddFeedback, Feedback
from agenteval_tui.history.store import Store

ROOT = Path(__file__).resolve().parents[2]
CRITERION = {
    "name": "says customs",
    "prototype_class": "TextResponse",
    "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "customs"}]},
}
SUITE = {"name": "Parcels", "tests": [{"id": "where", "prompt": "Where is it?", "repeat": 3, "criteria": [CRITERION]}]}


def in_customs(prompt: str) -> str:
    return "It waits at customs."


async def in_pieces(prompt: str) -> AsyncIterator[str]:
    for piece in ("It is ", "on its way."):
        await asyncio.sleep(0)
        yield piece


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def test_a_function_is_run_as_an_agent_and_its_runs_are_kept(db: Path) -> None:
    execution = agenteval.run(SUITE, agent=in_customs, db=db)
    assert execution.passed
    assert execution.pass_rate == 1.0
    assert len(execution) == 3
    assert [run.output for run in execution] == ["It waits at customs."] * 3
    assert execution[0].messages[0] == {"role": "user", "content": "Where is it?"}
    assert "3 passed of 3 runs" in str(execution)
    assert "3/3" in str(execution)
    again = agenteval.History(db, all_projects=True).execution("last")
    assert again.id == execution.id
    assert [run.id for run in again] == [run.id for run in execution]


def test_an_execution_has_a_name_and_is_found_by_it(db: Path) -> None:
    execution = agenteval.run(SUITE, agent=in_customs, name="v2", note="a try", meta={"model": "mini"}, db=db)
    assert (execution.name, execution.note, dict(execution.meta)) == ("v2", "a try", {"model": "mini"})
    agenteval.run(SUITE, agent=in_customs, db=db)
    history = agenteval.History(db, all_projects=True)
    assert history.execution("v2").id == execution.id
    assert [one.id for one in history.executions(search="name:v2 meta.model:mini")] == [execution.id]
    assert len(history.executions()) == 2
    with pytest.raises(agenteval.AgentevalError, match="no outcome is called nonsense"):
        history.executions(search="outcome:nonsense")
    with pytest.raises(agenteval.AgentevalError, match="can't be called 'last'"):
        agenteval.run(SUITE, agent=in_customs, name="last", db=db)
    with Store.open(db) as store:
        store.write(AddFeedback(Feedback(execution[0].id, "user_satisfaction", 0.8, who="kim"))).result()
    assert [(one.key, one.score) for one in execution[0].feedback] == [("user_satisfaction", 0.8)]


def test_an_async_generator_streams_and_a_failure_says_why(db: Path) -> None:
    execution = agenteval.run(SUITE, agent=in_pieces, repeat=1, db=db)
    assert not execution.passed
    assert execution.failures == execution.runs
    run = execution[0]
    assert run.output == "It is on its way."
    assert run.score == 0.0
    assert '"customs" is not in the text' in run.why()
    assert run.why() == agenteval.why(execution) == agenteval.why(run)
    assert "| ✗ failed | says customs | 0.00 |" in run._repr_markdown_()


def test_it_works_where_an_event_loop_runs_as_in_a_notebook(db: Path) -> None:
    async def cell() -> api.Execution:
        return agenteval.run(SUITE, agent=in_pieces, repeat=1, db=db)

    assert len(asyncio.run(cell())) == 1


def test_agents_keep_their_settings_and_two_of_one_name_are_told_apart(db: Path) -> None:
    seen = []
    for answer in ("a", "b"):

        def same(prompt: str, config: dict[str, Any], answer: str = answer) -> str:
            seen.append(config["tone"])
            return answer

        run = agenteval.run(SUITE, agent=same, settings={"tone": answer}, repeat=1, db=db)[0]
        assert run.output == answer
    assert seen == ["a", "b"]


def test_a_suites_own_agent_of_that_name_is_not_taken_for_the_function(db: Path) -> None:
    name = f"{in_customs.__module__}:{in_customs.__qualname__}"
    suite = {**SUITE, "agents": {name: {"kind": "demo", "version": "v1"}}, "agent": name}
    assert agenteval.run(suite, agent=in_customs, repeat=1, db=db)[0].output == "It waits at customs."


class Refusing:
    def __call__(self, prompt: str) -> str:
        raise ValueError("the back end is down")


FRAMEWORKS = Path(__file__).parents[1] / "agents" / "frameworks"
# As in tests/agents/test_frameworks.py: one worker imports a framework.
LANGGRAPH, OPENAI_AGENTS, PYDANTIC_AI = map(pytest.mark.xdist_group, ("langgraph", "openai_agents", "pydantic_ai"))


@pytest.mark.parametrize(
    ("framework", "module", "name", "answer"),
    [
        pytest.param("langgraph", "of_named_langgraph", "graph", "Deps(name='nobody', tags=[])", marks=LANGGRAPH),
        pytest.param("langgraph", "of_named_langgraph", "remembers", "1", marks=LANGGRAPH),
        pytest.param("langgraph", "of_named_langgraph", "make_graph", "Deps(name='nobody', tags=[])", marks=LANGGRAPH),
        pytest.param("pydantic_ai", "of_named_pydantic_ai", "deps", "Deps(name='nobody', tags=[])", marks=PYDANTIC_AI),
        pytest.param(
            "pydantic_ai",
            "of_named_pydantic_ai",
            "structured",
            '{"total": 3, "note": "Where is it?"}',
            marks=PYDANTIC_AI,
        ),
        pytest.param("agents", "of_named_openai_agents", "openai", "Deps(name='nobody', tags=[])", marks=OPENAI_AGENTS),
        pytest.param("agents", "of_named_openai_agents", "with_server", "found socks", marks=OPENAI_AGENTS),
        ("json", "of_named", "bot", "Hi Where is it?"),
    ],
)
def test_objects_of_frameworks_are_run_in_this_process(
    framework: str, module: str, name: str, answer: str, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(framework)
    monkeypatch.syspath_prepend(str(FRAMEWORKS))
    agent = getattr(importlib.import_module(module), name)
    (run,) = agenteval.run(SUITE, agent=agent, repeat=1, db=db)
    assert answer in run.output, run.row.error_message


def nothing(prompt: str) -> None:
    return None


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (Refusing(), "raised ValueError: the back end is down (test_api.py, line"),
        (nothing, "returned nothing (None)"),
        (lambda prompt: iter([{"type": "tool_call", "name": "f", "arguments": {"a"}}]), "is not JSON serializable"),
        (lambda prompt: iter([{"type": "model_request", "messages": [{"role": prompt, "content": {"a"}}]}]), "is not"),
        (lambda prompt: iter([{"type": "tool_call", "name": "f", "id": ["a"]}]), "needs a text as `id`"),
        (lambda prompt: iter([{"type": "tool_call", "id": {}}]), "an event of type 'tool_call' has no `name`"),
        (lambda prompt: iter([{"type": "tool_result", "id": {}}]), "needs a text as `id`"),
        (lambda prompt: {"type": "nonsense"}, ""),
        (lambda: "no parameter", ""),
    ],
)
def test_what_an_agent_does_wrong_is_an_error_of_its_run(agent: Any, said: str, db: Path) -> None:
    execution = agenteval.run(SUITE, agent=agent, repeat=1, db=db)
    if said:
        assert execution[0].status == "error"
        assert said in execution[0].row.error_message
    assert len(execution) == 1


@pytest.mark.parametrize("agent", [3, {"a": 1}, asyncio])
def test_what_is_no_agent_is_refused_before_anything_runs(agent: Any, db: Path) -> None:
    with pytest.raises(agenteval.AgentevalError, match=r"not a function|is a module"):
        agenteval.run(SUITE, agent=agent, db=db)
    assert not list(agenteval.History(db, all_projects=True)) if db.exists() else True


def test_a_suite_in_error_lists_all_its_problems(db: Path) -> None:
    broken = {"name": "x", "tests": [{"id": "a", "criteria": []}, {"id": "b", "prompt": "x", "criteria": [{}]}]}
    with pytest.raises(agenteval.AgentevalError) as error:
        agenteval.run(broken, agent=in_customs, db=db)
    assert len(str(error.value).splitlines()) > 2
    assert not agenteval.load(broken, check=False)[0].ok
    with pytest.raises(agenteval.AgentevalError, match="holds what no file can hold"):
        agenteval.load({"name": object()})


def test_a_suites_programs_need_trust(tmp_path: Path, db: Path) -> None:
    (tmp_path / "own.py").write_text("def answer(prompt): return 'customs'")
    suite = {**SUITE, "agents": {"own": {"kind": "python", "callable": "own:answer"}}, "agent": "own"}
    path = tmp_path / "own.suite.yaml"
    path.write_text(json.dumps(suite))
    with pytest.raises(agenteval.AgentevalError, match="needs your trust") as refused:
        agenteval.run(path, db=db, repeat=1)
    assert refused.value.fix.endswith("`agenteval trust PATH` trusts it for good, and trust=True allows it once")


def test_a_function_is_not_there_in_another_process_and_a_suite_cannot_name_it(db: Path) -> None:
    suite = {**SUITE, "agents": {"f": {"kind": "function", "callable": "os:getcwd"}}, "agent": "f"}
    with pytest.raises(agenteval.AgentevalError, match="a function of the Python program that ran this"):
        agenteval.run(suite, db=db)


def test_what_a_program_has_in_hand_is_graded() -> None:
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "At customs."}]
    for what in (messages, {"messages": messages}, "At customs.", in_customs("")):
        grade = agenteval.grade(what, CRITERION)
        assert grade
        assert grade.passed
        assert grade.score == 1.0
    grade = agenteval.grade("At home.", [CRITERION, agenteval.Criterion(**{**CRITERION, "name": "again"})])
    assert not grade
    assert [str(one.outcome) for one in grade.criteria] == ["failed", "failed"]
    assert grade.why().count('"customs" is not in the text') == 2


def test_a_frameworks_result_is_graded_with_its_tool_calls() -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    agent = Agent(TestModel())

    @agent.tool_plain
    def get_order(order_id: str) -> str:
        return "shipped"

    result = asyncio.run(agent.run("Where?"))
    called = {
        "name": "looks it up",
        "prototype_class": "ToolResponse",
        "config_uxon": {"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order"}]}]},
    }
    assert agenteval.grade(result, called).passed


@pytest.mark.parametrize("criteria", [[], [3], [{"name": "x"}], {"prototype_class": "TextResponse", "nonsense": 1}])
def test_criteria_that_are_none_are_refused_in_a_sentence(criteria: Any) -> None:
    with pytest.raises(agenteval.AgentevalError):
        agenteval.grade("x", criteria)


@pytest.mark.parametrize("what", [object(), {"messages": "no"}, [], None])
def test_what_cannot_be_read_is_refused_and_never_graded(what: Any) -> None:
    with pytest.raises(agenteval.AgentevalError):
        agenteval.grade(what, CRITERION)


def test_two_executions_are_compared(db: Path) -> None:
    before = agenteval.run(SUITE, agent=in_customs, db=db)
    after = agenteval.run(SUITE, agent=in_pieces, db=db)
    compared = agenteval.compare(before, after)
    assert [change.test for change in compared.regressions] == ["where"]
    assert not compared.improvements
    assert "1 test worse" in str(compared)
    assert "|" in compared._repr_markdown_()


def test_a_recording_is_imported_once(db: Path, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}))
    first, second = agenteval.import_runs(file, db=db), agenteval.import_runs(file, db=db)
    assert first.id == second.id
    assert first[0].output == "y"
    found = agenteval.History(db, all_projects=True)
    assert [one.id for one in found] == [first.id]
    assert found.runs(text="y")[0].id == first[0].id
    with pytest.raises(agenteval.AgentevalError):
        agenteval.import_runs(tmp_path / "nothing.json", db=db)


def test_foreign_text_is_shown_safely(db: Path) -> None:
    execution = agenteval.run(SUITE, agent=lambda prompt: "\x1b]0;owned\x07 | <script> \u202e", repeat=1, db=db)
    for shown in (str(execution), execution[0].why(), str(execution[0]), execution[0]._repr_markdown_()):
        assert (
            "\x1b" not in shown
            and "\x07" not in shown
            and "\u202e" not in shown
            and "<script>" not in shown.replace("`", "").replace("\\<", "")
        ) or "\x1b" not in shown


def test_the_packages_names_are_those_of_the_api_and_of_its_stub() -> None:
    assert set(api.__all__) == set(agenteval._API)
    assert all(getattr(agenteval, name) is getattr(api, name) for name in api.__all__)
    stub = (ROOT / "agenteval_tui/api/package.pyi").read_text("utf-8")
    assert all(f"{name} as {name}," in stub for name in (*api.__all__, *own(API)))
    assert all(getattr(agenteval, name) for name in own(API))
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"]["agenteval_tui/api/package.pyi"] == "agenteval_tui/__init__.pyi"
    assert {*api.__all__, *own(API)} <= set(dir(agenteval))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = agenteval.nonsense


def test_importing_the_package_imports_nothing_of_it() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import sys, agenteval_tui; print(sorted(m for m in sys.modules if 'agenteval' in m))"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout  # fmt: skip
    assert said.strip() == "['agenteval_tui', 'agenteval_tui.core', 'agenteval_tui.core.version']"


@pytest.mark.parametrize("suggests", [True, False])
def test_a_test_is_made_of_runs_also_where_nothing_suggests_criteria(
    db: Path, monkeypatch: pytest.MonkeyPatch, suggests: bool
) -> None:
    if not suggests:
        monkeypatch.setitem(_own(), TEST_CRITERIA, {})
    execution = agenteval.run(SUITE, agent=in_customs, db=db)
    made = agenteval.make_test(execution.runs[:2], db.parent / "made.suite.yaml")
    assert made.path.is_file()
    assert made.id in str(made)
    names = [criterion["name"] for criterion in made.test["criteria"]]
    assert names
    assert (names == ["Answers"]) is not suggests
