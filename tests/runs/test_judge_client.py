"""Judges, embedders and functions in executions: real servers on loopback, real child processes, a real history."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aimock import Aimock, NotAvailable
from msgspec.structs import replace
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, TextDelta
from agenteval_tui.agents.permission import NOTHING, NotTrustedError
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import LOCAL_EMBEDDERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_from_dict
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import AgentFinished, Command, Graded
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.stored_judgments import stored_answers

Made = Callable[..., Any]


def suite(metric: dict[str, Any], *, agents: dict[str, Any] | None = None, **criterion: Any) -> str:
    """A suite with one test and one criterion. JSON is YAML."""
    one = {"name": "Judged", "prototype_class": "TextResponse", "config_uxon": {"metrics": [metric]}, **criterion}
    return json.dumps(
        {
            "name": "Greetings",
            "agent": "bot",
            "agents": {"bot": {"kind": "scripted"}, **(agents or {})},
            "tests": [{"id": "hello", "name": "Says hello", "prompt": "Say hello", "criteria": [one]}],
        }
    )


def judge_at(server: ScriptedServer, **more: Any) -> dict[str, Any]:
    return {"kind": "openai", "base_url": server.url, "model": "judge-1", "stream": False, **more}


def chat(text: str, status: int = 200) -> Answer:
    body = {
        "model": "judge-1-turbo",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 20},
    }
    return Answer(status, json.dumps(body))


JUDGE = {"type": "Judge", "criteria": "Is it a greeting?"}


def only_result(made: Any) -> Any:
    made.store.flush()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    (result,) = made.store.results(row.id)
    return row, result


async def test_a_judge_is_asked_and_its_words_are_kept(execution: Made) -> None:
    async with ScriptedServer(lambda request: chat('{"score": 0.9, "reasoning": "It greets."}')) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}))
        await made.run()
    row, result = only_result(made)
    assert (row.status, result.outcome, result.score) == ("passed", Outcome.PASSED, pytest.approx(0.9))
    assert "It greets." in evidence_sentence(result.metrics[0].evidence[0])
    (stored,) = made.store.replies(row.id)
    assert stored.reply.raw == '{"score": 0.9, "reasoning": "It greets."}'
    assert (stored.reply.model, stored.reply.input_tokens, stored.reply.output_tokens) == ("judge-1-turbo", 200, 20)
    sent = server.requests[0].json["messages"]
    assert sent == stored.request.payload["messages"]
    assert "hello" in sent[1]["content"]
    # Counted apart from what the tested agent used.
    number, usage = made.store.judge_usage(row.execution_id)
    assert (number, usage.input_tokens) == (1, 200)
    assert made.store.execution(row.execution_id).input_tokens == 0
    # Graded again from what is stored, nobody being asked.
    specs = [spec_from_dict(made.store.criterion(one) or {}) for one in row.criteria]
    transcript = made.store.transcript(row.id)
    replies = stored_answers(specs, transcript, row.variables, made.store.replies(row.id))
    assert grade(transcript, specs, row.variables, replies=replies).results == (result,)


async def test_a_second_turn_when_the_first_cannot_be_read(execution: Made) -> None:
    def answer(request: Request) -> Answer:
        return chat("Lovely!" if len(request.json["messages"]) == 2 else '{"score": 1}')

    async with ScriptedServer(answer) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}))
        await made.run()
    row, result = only_result(made)
    assert result.outcome is Outcome.PASSED
    assert server.requests[1].json["messages"][2] == {"role": "assistant", "content": "Lovely!"}
    assert len(made.store.replies(row.id)) == 2


async def stall(request: Request) -> Answer:
    await asyncio.sleep(60)
    return Answer()


BROKEN: dict[str, tuple[Any, str]] = {
    "unreadable twice": (lambda request: chat("Lovely!"), "can be read"),
    "off the scale": (lambda request: chat('{"score": 7}'), "not on the scale"),
    "a server error": (lambda request: Answer(500, "oops"), "500"),
    "no such key": (lambda request: Answer(401, "{}"), "refused the key"),
    "no chat at all": (lambda request: Answer(200, "<html>"), "no Chat Completions reply"),
    "silence": (stall, "no answer within"),
}


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_judge_is_an_error_and_never_a_verdict(execution: Made, case: str, negate: bool) -> None:
    handler, said = BROKEN[case]
    async with ScriptedServer(handler) as server:
        # Only who is silent is not waited for: a busy machine takes its time for the others' answers.
        judge = judge_at(server, timeouts={"first_token": 0.05}) if handler is stall else judge_at(server)
        made = execution(suite(JUDGE, agents={"judge": judge}, negate=negate))
        await made.run()
    row, result = only_result(made)
    assert (row.status, result.outcome, result.score) == ("error", Outcome.ERROR, None)
    assert said in criterion_sentence(result)
    assert made.store.transcript(row.id).final_output == "hello"
    assert made.store.replies(row.id)  # also what could not be read is kept


@pytest.mark.parametrize("negate", [False, True])
async def test_a_judge_that_is_not_there_is_an_error(execution: Made, negate: bool) -> None:
    async with ScriptedServer(lambda request: chat("")) as server:
        gone = judge_at(server)
    made = execution(suite(JUDGE, agents={"judge": gone}, negate=negate))
    await made.run()
    row, result = only_result(made)
    assert row.status == "error"
    assert "nothing listens there" in criterion_sentence(result)


async def test_a_judge_is_tried_again_where_that_may_help(execution: Made) -> None:
    answers = iter([Answer(503, "busy"), Answer(429, "{}"), chat('{"score": 1}')])
    async with ScriptedServer(lambda request: next(answers)) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}))
        await made.run()
    assert only_result(made)[1].outcome is Outcome.PASSED
    assert len(server.requests) == 3


async def test_without_a_judge_it_is_said_what_to_do(execution: Made) -> None:
    made = execution(suite(JUDGE))
    await made.run()
    row, result = only_result(made)
    assert row.status == "error"
    assert "--judge" in criterion_sentence(result)


async def test_a_judge_is_asked_for_json_where_its_server_can_be(execution: Made) -> None:
    async with ScriptedServer(lambda _: chat('{"score": 1}')) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}))
        await made.engine.run()
    assert server.requests[0].json["response_format"] == {"type": "json_object"}
    assert only_result(made)[1].outcome is Outcome.PASSED


async def test_the_form_that_a_judge_is_configured_with_stays(execution: Made) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    async with ScriptedServer(lambda _: chat('{"score": 1}')) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server, response_format=form)}))
        await made.engine.run()
    assert server.requests[0].json["response_format"] == form


async def test_a_server_that_refuses_the_form_is_asked_without_it_from_then_on(execution: Made) -> None:
    def answer(request: Request) -> Answer:
        if "response_format" in request.json:
            return Answer(400, json.dumps({"error": {"message": "response_format.type must be json_schema or text"}}))
        return chat('Here it is: {"score": 1}')

    async with ScriptedServer(answer) as server:
        made = execution(suite({**JUDGE, "votes": 2}, agents={"judge": judge_at(server, concurrency=1)}))
        await made.engine.run()
    assert only_result(made)[1].outcome is Outcome.PASSED
    assert ["response_format" in request.json for request in server.requests] == [True, False, False]


def ended(text: str, reason: str) -> Answer:
    made = json.loads(str(chat(text).body))
    made["choices"][0]["finish_reason"] = reason
    return Answer(200, json.dumps(made))


OWN = {"type": "Judge", "prompt": "Rate 1 to 5. Question: {{prompt}}\nAnswer: {{output}}", "scale": "one_to_five"}


async def test_a_judge_with_a_prompt_of_ones_own_is_not_asked_for_json(execution: Made) -> None:
    async with ScriptedServer(lambda _: chat("4")) as server:
        made = execution(suite({**OWN, "reply": "number"}, agents={"judge": judge_at(server)}))
        await made.engine.run()
    (asked,) = [request.json for request in server.requests]
    assert "response_format" not in asked
    assert asked["messages"][1]["content"].startswith("Rate 1 to 5. Question: \n<<<DATA ")
    row, result = only_result(made)
    assert (result.outcome, result.score) == (Outcome.PASSED, 0.75)
    assert made.store.judge_usage(row.execution_id)[1].input_tokens == 200
    async with ScriptedServer(lambda _: chat('{"score": 5}')) as server:
        made = execution(suite(OWN, agents={"judge": judge_at(server)}))
        await made.engine.run()
    assert server.requests[0].json["response_format"] == {"type": "json_object"}


async def test_an_answer_that_was_cut_off_is_no_score(execution: Made) -> None:
    """ "1" may be the beginning of "10"."""
    async with ScriptedServer(lambda _: ended("1", "length")) as server:
        metric = {**OWN, "scale": "zero_to_ten", "reply": "number"}
        made = execution(suite(metric, agents={"judge": judge_at(server)}))
        await made.engine.run()
    _, result = only_result(made)
    assert (result.outcome, result.metrics[0].code) == (Outcome.ERROR, "asking_failed")
    assert "cut by max_tokens" in criterion_sentence(result)


async def test_questions_at_once_are_all_asked_again_without_the_form(execution: Made) -> None:
    def answer(request: Request) -> Answer:
        return Answer(400, "{}") if "response_format" in request.json else chat('{"score": 1}')

    async with ScriptedServer(answer) as server:
        made = execution(suite({**JUDGE, "votes": 5}, agents={"judge": judge_at(server)}))
        await made.engine.run()
    assert only_result(made)[1].outcome is Outcome.PASSED


async def test_a_named_judge_and_the_one_of_the_command_line(execution: Made, suite: Made, store: Store) -> None:
    async with (
        ScriptedServer(lambda request: chat('{"score": 1}')) as named,
        ScriptedServer(lambda request: chat('{"score": 0}')) as other,
    ):
        agents = {"strict": judge_at(named), "lenient": judge_at(other)}
        text = globals()["suite"]({**JUDGE, "judge": "strict"}, agents=agents)
        first = execution(text)
        await first.run()
        second = execution(text, judge="lenient")
        await second.run()
        assert (len(named.requests), len(other.requests)) == (1, 1)
        with pytest.raises(AgentevalError, match="nobody"):
            make_plan([suite(text)], PlanOptions(judge="nobody"), user_agents={}, store=store)
    assert only_result(first)[1].outcome is Outcome.PASSED
    assert only_result(second)[1].outcome is Outcome.FAILED


async def test_an_unknown_judge_is_an_error_in_words(execution: Made) -> None:
    async with ScriptedServer(lambda request: chat('{"score": 1}')) as server:
        made = execution(suite({**JUDGE, "judge": "strikt"}, agents={"strict": judge_at(server)}))
        await made.run()
    assert "strict" in criterion_sentence(only_result(made)[1])


async def test_equal_questions_are_asked_once_also_in_later_executions(execution: Made) -> None:
    async with ScriptedServer(lambda request: chat('{"score": 0.8}')) as server:
        text = suite({**JUDGE, "votes": 3}, agents={"judge": judge_at(server)})
        first = execution(text, repeat=5)
        await first.run()
        assert len(server.requests) == 3  # the votes; all five runs said the same
        assert set(first.statuses().values()) == {"passed"}
        second = execution(text)
        await second.run()
        assert len(server.requests) == 3
    row, result = only_result(second)
    assert "3 votes" in " ".join(evidence_sentence(one) for one in result.metrics[0].evidence)
    assert len(second.store.replies(row.id)) == 3


async def test_errors_are_asked_again(execution: Made) -> None:
    answers = iter([Answer(400, "no"), Answer(400, "no"), chat('{"score": 1}')])
    async with ScriptedServer(lambda request: next(answers)) as server:
        text = suite(JUDGE, agents={"judge": judge_at(server)})
        first, second = execution(text), execution(text)
        await first.run()
        await second.run()
    assert only_result(first)[0].status == "error"
    assert only_result(second)[0].status == "passed"


async def test_a_run_that_is_cancelled_while_it_is_judged(execution: Made) -> None:
    async with ScriptedServer(stall) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}))
        running = asyncio.ensure_future(made.run())
        await made.until(lambda: server.requests)
        assert made.of(AgentFinished)
        made.engine.command(Command("cancel"))
        ended = await running
        assert not made.engine.grading.asker._calls  # nobody waits any more: the question is dropped
    assert ended.status == "cancelled"
    assert [event.outcome for event in made.of(Graded)] == ["cancelled"]
    assert len(made.of(AgentFinished)) == 1


async def test_judging_is_not_counted_in_the_time_of_the_run(execution: Made, scripts: Any) -> None:
    released = asyncio.Event()

    async def slow(request: Request) -> Answer:
        await released.wait()
        return chat('{"score": 1}')

    async with ScriptedServer(slow) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}), timeout=0.05)
        running = asyncio.ensure_future(made.run())
        await made.until(lambda: server.requests)
        ticks = made.engine._ticks
        await made.until(lambda: made.engine._ticks > ticks + 3)  # longer than the run's 50 ms
        released.set()
        await running
    assert only_result(made)[0].status == "passed"


async def test_an_agent_that_fails_is_not_judged(execution: Made, scripts: Any) -> None:
    async def broken(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("hel")
        raise RuntimeError("gone")

    scripts.script = broken
    async with ScriptedServer(lambda request: chat('{"score": 1}')) as server:
        made = execution(suite(JUDGE, agents={"judge": judge_at(server)}))
        await made.run()
        assert server.requests == []
    row, result = only_result(made)
    assert (row.status, result.outcome) == ("error", Outcome.SKIPPED)


async def test_any_kind_of_agent_can_judge(execution: Made, scripts: Any) -> None:
    async def both(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        judging = request.messages[0].role == "system"
        yield TextDelta('{"score": 0.75}' if judging else "hello")
        yield Done(model="scripted")

    scripts.script = both
    made = execution(suite({**JUDGE, "judge": "bot"}))
    await made.run()
    assert only_result(made)[1].score == pytest.approx(0.75)
    assert [one.repetition for one in scripts.requests if one.test_id == "judge"] == [1]


async def test_what_a_judge_says_has_no_secret_of_its_configuration(execution: Made, scripts: Any) -> None:
    key = "sk-judge-0123456789-abcdef"

    async def both(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        judging = request.messages[0].role == "system"
        yield TextDelta(json.dumps({"score": 1, "reasoning": f"My key is {key}."}) if judging else "hello")
        yield Done(model="scripted")

    scripts.script = both
    judge = {"kind": "scripted", "headers": {"Authorization": "Bearer ${JUDGE_KEY}"}}
    made = execution(suite(JUDGE, agents={"judge": judge}), env={"JUDGE_KEY": key}, trust=True)
    await made.run()
    row, result = only_result(made)
    assert result.outcome is Outcome.PASSED
    (stored,) = made.store.replies(row.id)
    assert "My key is ***." in stored.reply.raw
    assert key not in str((stored, result))


# Somebody else's server


async def test_a_judge_on_aimock(execution: Made, tmp_path: Path) -> None:
    fixtures = [
        {"match": {"userMessage": "could not be read"}, "response": {"content": '```json\n{"score": "5"}\n```'}},
        {"match": {"userMessage": "Is it a greeting?"}, "response": {"content": "I would say it is fine."}},
    ]
    try:
        with Aimock(fixtures, tmp_path) as server:
            agents = {"judge": {"kind": "openai", "base_url": server.url, "model": "gpt-4o"}}
            made = execution(suite({**JUDGE, "scale": "one_to_five"}, agents=agents))
            await made.run()
    except NotAvailable as why:
        pytest.skip(f"aimock can't be had: {why}")
    row, result = only_result(made)
    assert (row.status, result.score) == ("passed", 1.0)
    assert made.store.replies(row.id)[0].reply.raw == "I would say it is fine."


# Similarity

SIMILAR = {"type": "Similarity", "to": "hi there"}


async def test_similarity_asks_a_server_for_each_text_once(execution: Made) -> None:
    def answer(request: Request) -> Answer:
        vector = {"hello": [1, 0], "hi there": [4, 3]}[request.json["input"]]
        return Answer(body=json.dumps({"data": [{"embedding": vector}]}))

    async with ScriptedServer(answer) as server:
        config = {"kind": "openai", "base_url": server.url, "model": "embed-1"}
        made = execution(suite(SIMILAR, agents={"embedder": config}), repeat=4)
        await made.run()
        assert sorted(request.json["input"] for request in server.requests) == ["hello", "hi there"]
        named = execution(suite({**SIMILAR, "embedder": "mine", "min": 0.9}, agents={"mine": config}))
        await named.run()
    result = only_result(named)[1]
    assert (result.outcome, result.score) == (Outcome.FAILED, pytest.approx(0.8))


@pytest.mark.parametrize("negate", [False, True])
async def test_similarity_without_an_embedder_says_what_to_set(
    execution: Made, monkeypatch: pytest.MonkeyPatch, negate: bool
) -> None:
    absent = SimpleNamespace(missing=lambda: "vectors", install="pip install vectors")
    monkeypatch.setitem(sys.modules, "local_embedder", SimpleNamespace(Absent=absent))
    monkeypatch.setitem(entry_points._own(), LOCAL_EMBEDDERS, {"absent": "local_embedder:Absent"})
    made = execution(suite(SIMILAR, negate=negate))
    await made.run()
    row, result = only_result(made)
    assert row.status == "error"
    for part in ("embedder", "/embeddings", "pip install vectors", "Lexical"):
        assert part in criterion_sentence(result)


async def test_an_agent_that_gives_no_embeddings_is_an_error(execution: Made) -> None:
    made = execution(suite({**SIMILAR, "embedder": "bot"}))
    await made.run()
    assert "give no embeddings" in criterion_sentence(only_result(made)[1])


# People


async def test_a_run_waits_for_a_person(execution: Made) -> None:
    made = execution(suite({"type": "Human", "question": "Kind enough?"}))
    await made.run()
    row, result = only_result(made)
    assert (row.status, result.outcome) == ("needs_review", Outcome.NEEDS_REVIEW)
    made.store.label(row.id, 5, criterion=result.criterion, who="kim").result()
    specs = [spec_from_dict(made.store.criterion(one) or {}) for one in row.criteria]
    transcript = made.store.transcript(row.id)
    replies = stored_answers(specs, transcript, {}, made.store.replies(row.id), made.store.labels([row.id]))
    assert grade(transcript, specs, {}, replies=replies).outcome is Outcome.PASSED


# Functions

CHECKS = """
import asyncio, os, subprocess, sys, time
from dataclasses import dataclass

def greets(value, *, words, transcript, expected=None):
    print("this is not the answer")
    sys.stderr.write("nor is this")
    return value in words and transcript["messages"][0]["content"] == "Say hello" and expected == "hi"

def score(value, least=0.5): return least
async def later(value): await asyncio.sleep(0); return True

@dataclass
class Result:
    passed: bool
    score: float
    reason: str

def result(value): return Result(False, 0.25, "too short")
def broken(value): return {}["nothing"]
def leaves(value): os._exit(7)
def exits(value): sys.exit("enough")
def strange(value): return object()

def hangs(value, pid_file):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(pid_file, "w") as file:
        file.write(str(child.pid))
    time.sleep(600)
"""


def python(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "Python", "function": f"checks:{name}", **more}


async def call(execution: Made, folder: Path, metric: dict[str, Any], *, trust: bool = True, **criterion: Any) -> Any:
    (folder / "checks.py").write_text(CHECKS)
    made = execution(suite(metric, **criterion), trust=trust)
    await made.run()
    return only_result(made)


async def test_functions_of_the_suite_are_called_where_that_is_trusted(execution: Made, tmp_path: Path) -> None:
    row, result = await call(execution, tmp_path, python("greets", words=["hello"]), expected_value="hi")
    assert (row.status, result.score) == ("passed", 1.0)
    assert (await call(execution, tmp_path, python("score", least=0.75)))[1].score == 0.75
    assert (await call(execution, tmp_path, python("later")))[1].outcome is Outcome.PASSED
    failed = (await call(execution, tmp_path, python("result")))[1]
    assert (failed.outcome, failed.score) == (Outcome.FAILED, 0.25)
    assert "too short" in criterion_sentence(failed)


ELSEWHERE = """
import functools
import os
import subprocess
from os import system
from subprocess import run as renamed

part = functools.partial(system)
environment = os.environ


def mine(value, most=3):
    return len(value) < most * 100


bound = functools.partial(mine, most=9)


class Checks:
    def method(self, value):
        return True


checks = Checks()


@functools.lru_cache
def remembered(value):
    return True
"""


@pytest.mark.sweep
@pytest.mark.parametrize(
    "target",
    ["timeit:timeit", "os:system", "subprocess:run", "builtins:exec", "msgspec.json:decode", "json.tool:main",
     "agenteval_tui.core.ids:new_id", "elsewhere:os.system", "elsewhere:subprocess.run", "elsewhere:system",
     "elsewhere:renamed", "elsewhere:part", "elsewhere:environment.update", "elsewhere:mine.__globals__.update",
     "elsewhere:__loader__.load_module", "elsewhere:Checks.__subclasses__", "lent:run", "lent.py:run",
     "elsewhere.py:system", "../lent0/lent.py:run"],
)  # fmt: skip
async def test_a_metric_calls_no_code_from_outside_of_the_project(
    execution: Made, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    lent = tmp_path_factory.getbasetemp() / "lent0" / "lent.py"
    lent.parent.mkdir(exist_ok=True)
    lent.write_text(f"open({str(tmp_path / 'was_here')!r}, 'w')\ndef run(value): return True\n")
    (tmp_path / "lent.py").symlink_to(lent)
    metric = {"type": "Python", "function": target, "setup": f"open({str(tmp_path / 'was_here')!r}, 'w')", "number": 1}
    row, result = await call(execution, tmp_path, metric)
    said = criterion_sentence(result)
    assert row.status == "error"
    assert "can't be a metric" in said
    assert f"is not in the project {tmp_path}" in said
    assert "write a function in a module of the project" in said
    assert not (tmp_path / "was_here").exists()


@pytest.mark.sweep
@pytest.mark.parametrize(
    "target",
    [
        *("mine.py:run", "mine:run", "inner/mine.py:run", "./linked/mine.py:run", "linked.mine:run"),
        *("shadowed/mine.py:run", "beside.py:run"),
    ],
)
async def test_a_metric_runs_no_package_from_outside_of_the_project(
    execution: Made, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, target: str
) -> None:
    """A file is imported with all packages that it lies in: above the project, or through a link."""
    outside = tmp_path_factory.mktemp("outside")
    code = f"open({str(tmp_path / 'was_here')!r}, 'w')\n"
    for folder in ("inner", "linked", "shadowed", "beside"):
        (tmp_path / folder).mkdir()
    for folder in (".", "inner", "linked", "shadowed"):
        (tmp_path / folder / "mine.py").write_text("def run(value): return True\n")
    (tmp_path / "beside.py").write_text("def run(value): return True\n")
    (outside / "__init__.py").write_text(code)
    (tmp_path / "linked" / "__init__.py").symlink_to(outside / "__init__.py")
    (tmp_path / "beside" / "__init__.py").symlink_to(outside / "__init__.py")
    (tmp_path / "shadowed" / "mine").symlink_to(outside, target_is_directory=True)
    above = tmp_path.parent / "__init__.py"
    try:
        if target in ("mine.py:run", "mine:run", "inner/mine.py:run"):
            above.write_text(code)
            (tmp_path / "__init__.py").write_text("")
            (tmp_path / "inner" / "__init__.py").write_text("")
        row, result = await call(execution, tmp_path, {"type": "Python", "function": target})
    finally:
        above.unlink(missing_ok=True)
    assert not (tmp_path / "was_here").exists()
    assert row.status == "error"
    assert f"is not in the project {tmp_path}" in criterion_sentence(result)


@pytest.mark.sweep("name")
@pytest.mark.parametrize("place", ["elsewhere", "elsewhere.py", "./elsewhere.py", "checks/my-checks.v2.py"])
@pytest.mark.parametrize("name", ["mine", "bound", "checks.method", "remembered"])
async def test_a_metric_calls_what_the_project_has(execution: Made, tmp_path: Path, place: str, name: str) -> None:
    (tmp_path / "checks").mkdir()
    for file in ("elsewhere.py", "checks/my-checks.v2.py"):
        (tmp_path / file).write_text(ELSEWHERE)
    assert (await call(execution, tmp_path, {"type": "Python", "function": f"{place}:{name}"}))[0].status == "passed"


async def test_a_file_of_a_metric_that_is_missing_is_named(execution: Made, tmp_path: Path) -> None:
    row, result = await call(execution, tmp_path, {"type": "Python", "function": "checks/none.py:mine"})
    assert row.status == "error"
    assert "there is no file checks/none.py" in criterion_sentence(result)


async def test_a_metric_calls_what_a_plug_in_has(
    execution: Made, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("installed")
    (place / "metricpack.py").write_text("def good(value):\n    return True\n")
    info = place / "metricpack-1.0.dist-info"
    monkeypatch.setenv("PYTHONPATH", str(place))
    metric = {"type": "Python", "function": "metricpack:good"}
    assert (await call(execution, tmp_path, metric))[0].status == "error"
    info.mkdir()
    (info / "METADATA").write_text("Name: metricpack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agenteval.metrics]\nPack = metricpack:Pack\n")
    assert (await call(execution, tmp_path, metric))[0].status == "passed"


@pytest.mark.parametrize("negate", [False, True])
async def test_functions_are_not_called_without_trust(execution: Made, tmp_path: Path, negate: bool) -> None:
    (tmp_path / "checks.py").write_text("open('was_here', 'w')\ndef later(value): return True\n")
    text = suite(python("later"), negate=negate)
    with pytest.raises(NotTrustedError, match="checks:later"):
        execution(text)
    # Whoever leaves the question out gets no function either.
    made = execution(text, trust=True)
    untrusted = replace(made.engine.plan, permission=NOTHING)
    made.engine = Engine(untrusted, made.store, made.engine.events.emit, env={}, retry_base_s=0.001)
    await made.run()
    row, result = only_result(made)
    assert row.status == "error"
    assert "--trust" in criterion_sentence(result)
    assert not (tmp_path / "was_here").exists()


@pytest.mark.sweep("name")
@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "KeyError: 'nothing' (checks.py, line"),
        ("leaves", "without an answer"),
        ("exits", "SystemExit: enough"),
        ("strange", "something of type object (checks.py, line"),
        ("missing", "AttributeError"),
    ],
)
async def test_a_broken_function_is_an_error(
    execution: Made, tmp_path: Path, name: str, said: str, negate: bool
) -> None:
    row, result = await call(execution, tmp_path, python(name), negate=negate)
    assert (row.status, result.score) == ("error", None)
    assert said in criterion_sentence(result)


async def test_a_function_that_hangs_is_killed_with_its_children(execution: Made, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    # On a busy machine the time may be over before its interpreter has begun.
    for seconds in (3, 30):
        row, result = await call(execution, tmp_path, python("hangs", pid_file=str(pid_file), timeout=float(seconds)))
        assert row.status == "error"
        assert f"within {seconds} s" in criterion_sentence(result)
        if pid_file.exists():
            break
    pid = int(pid_file.read_text())
    stat = Path(f"/proc/{pid}/stat")
    async with asyncio.timeout(250):
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
            await asyncio.sleep(0.01)
