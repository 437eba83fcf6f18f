"""What is missing of an execution is run exactly, from what the history has of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, TextDelta
from agenteval_tui.agents.stored_config import put_back, without_keys
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history import schema
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.history.task_specs import pack, unpack
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Command, RunRef
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.model import Plan, RunPlan, StopRule
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.runs.task_payload import Tasks, read_setup, run_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.transcripts.model import Message, RunError, ToolCall

if TYPE_CHECKING:
    from tests.runs.conftest import Execution, Scripts

MANY = """
name: Greetings
agent: bot
agents:
  bot: {kind: scripted, greeting: "${GREETING:-hello}"}
tests:
  - id: hello
    name: Says hello
    prompt: Say hello to {{ who }}
    variables: {who: Kim}
    tags: [smoke]
    repeat: 6
    timeout: 7
    context: {sample_system_prompt: Be kind}
    criteria:
      - {name: Greets, weight: 2, prototype_class: TextResponse,
         config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
      - {name: Same check, prototype_class: TextResponse,
         config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
  - id: other
    prompt: Say it again
    criteria:
      - {name: Greets, prototype_class: TextResponse,
         config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
"""


async def cut_off_after(execution: Callable[..., Execution], scripts: Scripts, answered: int, **more: Any) -> Execution:
    """An execution of which so many runs have ended when its process is no more."""
    blocked = asyncio.Event()
    count = 0

    async def answer(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal count
        count += 1
        if count > answered:
            await blocked.wait()
        yield TextDelta("hello")
        yield Done()

    scripts.script = answer
    made = execution(MANY, concurrency=2, **more)
    running = asyncio.create_task(made.engine.run())
    await made.until(lambda: made.view.count("passed") == answered)
    # What a killed process leaves: nothing says that it ended.
    await asyncio.to_thread(made.store.flush)
    identity = made.engine.plan.execution_id
    made.store.write = _refused  # type: ignore[method-assign]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    del made.store.write
    with made.store._writer._connect() as connection:  # type: ignore[union-attr]
        connection.execute("UPDATE executions SET owner = '' WHERE uid = ?", (identity,))
        connection.execute(
            "UPDATE runs SET status = 'running' WHERE uid IN (SELECT uid FROM runs WHERE status = 'queued' LIMIT 1)"
        )
        connection.commit()
    connection.close()
    return made


def _refused(_: object) -> Any:
    from concurrent.futures import Future

    future: Future[Any] = Future()
    future.set_exception(AgentevalError("the process is dead"))
    return future


async def finish(made: Execution, scripts: Scripts, **options: Any) -> Execution:
    """Resume it in another engine, and run it to its end."""
    errors = options.pop("errors", False)
    resumed = resume_plan(
        made.store, made.engine.plan.execution_id, PlanOptions(**options), errors=errors, user_agents={}
    )
    engine = Engine(resumed.plan, made.store, lambda event: None, env={}, retry_base_s=0.001)
    again = dataclasses.replace(made, engine=engine)
    await again.run()
    return again


async def test_exactly_what_is_missing_is_run(execution: Callable[..., Execution], scripts: Scripts) -> None:
    made = await cut_off_after(execution, scripts, 3)
    before = {row.id: row for row in made.store.runs_of_execution(made.engine.plan.execution_id)}
    ended = {one for one, row in before.items() if row.status == "passed"}
    assert len(ended) == 3
    asked = len(scripts.requests)
    first = scripts.requests[0]

    scripts.script = well
    again = await finish(made, scripts)
    after = {row.id: row for row in made.store.runs_of_execution(made.engine.plan.execution_id)}
    assert list(after) == list(before)
    assert {row.status for row in after.values()} == {"passed"}
    assert all(after[one] == before[one] for one in ended)
    assert len(scripts.requests) - asked == len(before) - 3
    row = made.store.execution(made.engine.plan.execution_id)
    assert (row.status, row.passed, row.runs, row.cancelled) == ("finished", 7, 7, 0)
    assert len(made.store.executions()) == 1
    # What the agent gets is what it would have got.
    for request in scripts.requests[asked:]:
        if request.test_id == first.test_id:
            assert (request.messages, request.config, request.context) == (first.messages, first.config, first.context)
            assert request.seed != first.seed
    planned = {run.ref.run: run for run in made.engine.plan.runs}
    for run in again.engine.plan.runs:
        assert comparable(run) == comparable(planned[run.ref.run])
    assert [one.ref for one in again.engine.plan.earlier] == [
        run.ref for run in made.engine.plan.runs if run.ref.run in ended
    ]
    assert again.engine.plan.order == tuple(before)


def comparable(run: RunPlan) -> RunPlan:
    """The run with its criteria as plain data: they are equal when they are one object only."""
    from agenteval_tui.runs.criteria import spec_to_dict

    return replace(run, specs=tuple(json.dumps(spec_to_dict(spec)) for spec in run.specs))  # type: ignore[arg-type]


async def test_cancelled_runs_are_missing_and_errors_only_when_asked(
    execution: Callable[..., Execution], scripts: Scripts
) -> None:
    async def answer(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        number = len(scripts.requests)
        if number == 1:
            yield Failed(RunError("auth", "no key"))
            return
        if number > 3:
            await asyncio.Event().wait()
        yield TextDelta("hello")
        yield Done()

    scripts.script = answer
    made = execution(MANY, concurrency=2)
    running = asyncio.create_task(made.run())
    await made.until(lambda: made.view.count("passed") == 2)
    made.engine.command(Command("cancel"))
    await running
    identity = made.engine.plan.execution_id
    row = made.store.execution(identity)
    assert (row.status, row.passed, row.errors, row.cancelled) == ("cancelled", 2, 1, 4)

    scripts.script = well
    again = await finish(made, scripts)
    assert len(again.engine.plan.runs) == 4
    row = made.store.execution(identity)
    assert (row.status, row.passed, row.errors, row.cancelled) == ("finished", 6, 1, 0)
    with pytest.raises(AgentevalError, match="have ended") as raised:
        resume_plan(made.store, identity)
    assert "--errors" in raised.value.fix
    again = await finish(made, scripts, errors=True)
    assert [run.ref.repetition for run in again.engine.plan.runs] == [1]
    row = made.store.execution(identity)
    assert (row.passed, row.errors) == (7, 0)
    # The error that does not count any more is still known.
    (attempt,) = made.store.failed_attempts(again.engine.plan.runs[0].ref.run)
    assert (attempt.kind, attempt.message) == ("auth", "no key")


async def test_what_can_not_be_resumed_is_said(
    execution: Callable[..., Execution], scripts: Scripts, store: Store
) -> None:
    with pytest.raises(AgentevalError, match="nothing has run yet"):
        resume_plan(store, "last")
    made = await cut_off_after(execution, scripts, 1)
    identity = made.engine.plan.execution_id
    with store._writer._connect() as connection:  # type: ignore[union-attr]
        connection.execute("UPDATE executions SET setup = NULL")
        connection.commit()
    connection.close()
    with pytest.raises(AgentevalError, match="planned from is not stored") as raised:
        resume_plan(store, identity)
    assert "agenteval run" in raised.value.fix


async def test_an_execution_that_runs_is_not_resumed(execution: Callable[..., Execution], scripts: Scripts) -> None:
    gate = asyncio.Event()

    async def answer(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        await gate.wait()
        yield Done()

    scripts.script = answer
    made = execution(MANY)
    running = asyncio.create_task(made.run())
    await made.until(lambda: made.view.count("running"))
    identity = made.engine.plan.execution_id
    with pytest.raises(AgentevalError, match="is running") as raised:
        resume_plan(made.store, identity[:12])
    assert "attach" in raised.value.fix
    # Nor by two that asked at the same time.
    with pytest.raises(AgentevalError, match="is running"):
        made.store.resume_execution(identity).result()
    gate.set()
    await running


async def test_limits_count_from_the_beginning_and_options_are_kept(
    execution: Callable[..., Execution], scripts: Scripts
) -> None:
    made = await cut_off_after(execution, scripts, 2, max_seconds=500.0, seed=5)
    identity = made.engine.plan.execution_id
    plan = resume_plan(made.store, identity, PlanOptions(concurrency=3, max_cost=2.0)).plan
    assert (plan.concurrency, plan.limits.cost, plan.limits.seconds) == (3, 2.0, 500.0)
    assert plan.options == {"concurrency": 3, "max_cost": 2.0, "max_seconds": 500.0, "seed": 5}
    with made.store._writer._connect() as connection:  # type: ignore[union-attr]
        connection.execute("UPDATE runs SET cost = 0.75, input_tokens = 40 WHERE status = 'passed'")
        connection.commit()
    connection.close()
    # What a judge, or an attempt that failed, has used counts too, though it is in no run's own figures.
    passed = next(row.id for row in made.store.runs_of_execution(identity) if row.status == "passed")
    question = RemoteRequest("chat", "judge", {"messages": [], "vote": 1})
    judged = StoredReply(question, "judge", Reply("{}", input_tokens=4, output_tokens=1, cost=0.25, at_ms=1))
    limits = resume_plan(made.store, identity, PlanOptions(max_cost=2.0, max_tokens=100)).plan.limits
    assert (limits.cost, limits.tokens) == (2.0, 100)
    made.store.keep_replies(passed, [judged]).result()
    limits = resume_plan(made.store, identity, PlanOptions(max_cost=2.0, max_tokens=100)).plan.limits
    assert (limits.cost, limits.tokens) == (1.75, 95)
    with pytest.raises(AgentevalError, match=r"has cost \$1.75") as raised:
        resume_plan(made.store, identity, PlanOptions(max_cost=1.5))
    assert "--max-cost" in raised.value.fix
    with pytest.raises(AgentevalError, match="85 tokens"):
        resume_plan(made.store, identity, PlanOptions(max_tokens=70))


async def test_a_suite_that_changed_is_said_and_what_was_planned_is_run(
    execution: Callable[..., Execution], scripts: Scripts, tmp_path: Path
) -> None:
    path = tmp_path / "greetings.suite.yaml"
    path.write_text(MANY)
    made = await cut_off_after(execution, scripts, 2)
    identity = made.engine.plan.execution_id
    assert resume_plan(made.store, identity).notices == ()
    path.write_text(MANY.replace("Say it again", "Say nothing"))
    resumed = resume_plan(made.store, identity)
    assert "changed since" in resumed.notices[0]
    assert resumed.plan.runs[-1].messages[-1].content == "Say it again"
    path.unlink()
    assert "no longer there" in resume_plan(made.store, identity).notices[0]


async def test_a_key_that_was_written_in_is_never_stored(
    execution: Callable[..., Execution], scripts: Scripts, tmp_path: Path
) -> None:
    text = MANY.replace(
        "kind: scripted,",
        'kind: scripted, password: sk-very-secret, max_tokens: 5, base_url: "http://u:pass-word@127.0.0.1/v1", '
        "headers: {Authorization: Bearer abc-secret, X-Team: red},",
    )
    path = tmp_path / "greetings.suite.yaml"
    path.write_text(text)
    made = await cut_off_after(lambda _, **more: execution(text, trust=True, **more), scripts, 1)
    identity = made.engine.plan.execution_id
    made.store.flush()
    stored = json.dumps([made.store.setup_of(identity), [one.task for one in made.store.tasks_of(identity).values()]])
    for secret in ("sk-very-secret", "abc-secret", "pass-word"):
        assert secret not in stored
    plan = resume_plan(made.store, identity, PlanOptions(trust=True), user_agents={}).plan
    assert plan.runs[0].agent.config == made.engine.plan.runs[0].agent.config
    path.unlink()
    with pytest.raises(AgentevalError, match="never stored") as raised:
        resume_plan(made.store, identity, user_agents={})
    assert "environment variable" in raised.value.fix


async def test_a_full_disk_ends_an_execution_that_can_be_resumed(
    small_disk: Path, suite: Callable[[str], LoadedSuite], scripts: Scripts
) -> None:
    filler = small_disk / "filler"
    seen = ExecutionView()
    asked = 0

    async def answer(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        nonlocal asked
        asked += 1
        if asked == 3:
            while seen.count("passed") < 2:
                await asyncio.sleep(0.005)
            await asyncio.to_thread(fill, filler)
        # Noise, so that compressing it makes it no smaller: more than the log has room for.
        yield TextDelta(f"hello {random.Random(asked).randbytes(20_000).hex()}")
        yield Done()

    scripts.script = answer
    plan = make_plan([suite(MANY)], PlanOptions(concurrency=1, repeat=20), user_agents={})
    with Store.open(small_disk / "history.db") as store:
        ended = await asyncio.wait_for(Engine(plan, store, seen.apply, env={}).run(), 60)
        assert ended.status == "failed"
        assert "the disk is full" in ended.message
        told = {run for run, state in seen.runs.items() if state.status == "passed"}
        stored = {row.id for row in store.runs_of_execution(plan.execution_id) if row.status == "passed"}
        assert told == stored
        assert 2 <= len(stored) < 40
        filler.unlink()
    # Where not even its end could be written, the history has it running, by a process that is no more.
    with sqlite3.connect(small_disk / "history.db") as connection:
        connection.execute("UPDATE executions SET owner = ''")
    connection.close()
    with Store.open(small_disk / "history.db") as store:
        resumed = resume_plan(store, "last", user_agents={})
        assert {run.ref.run for run in resumed.plan.runs}.isdisjoint(stored)
        assert len(resumed.plan.runs) == 40 - len(stored)
        scripts.script = well
        assert (await Engine(resumed.plan, store, lambda event: None, env={}).run()).status == "finished"
        assert store.execution("last").passed == 40


def fill(file: Path) -> None:
    """Write until there is no room left."""
    with file.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * 4096)
        except OSError:
            pass


async def well(request: AgentRequest) -> AsyncIterator[AgentEvent]:
    yield TextDelta("hello")
    yield Done()


def test_keys_are_told_from_what_only_sounds_like_one() -> None:
    config = {
        "kind": "openai",
        "api_key_env": "MY_KEY",
        "max_tokens": 100,
        "tokenizer": "cl100k",
        "token": "${TOKEN}",
        "headers": {"X-Api-Key": "abc", "Accept": "json"},
        "tools": [{"env": {"SECRET_TOKEN": "s", "PATH": "/bin"}}],
        "keys": ["a"],
    }
    kept, taken = without_keys(config)
    assert set(taken) == {("headers", "X-Api-Key"), ("tools", "0", "env", "SECRET_TOKEN")}
    assert kept["headers"] == {"X-Api-Key": None, "Accept": "json"}
    assert put_back(kept, taken, config) == config
    assert put_back(kept, taken, {"headers": {"X-Api-Key": "abc"}}) is None


def test_an_execution_without_its_tasks_can_not_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        schema.migrate(connection)
        connection.execute(
            "INSERT INTO executions (uid, title, kind, source, status, started_ms, options, suite_keys, owner, runs)"
            " VALUES ('OLDEXECUTION', 't', 'run', '/s', 'interrupted', 1, '{}', '[]', '', 1)"
        )
    connection.close()
    with Store.open(path) as store, pytest.raises(AgentevalError, match="planned from is not stored"):
        resume_plan(store, "last")


# Round trips

texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts, json_values, max_size=3)
messages = st.builds(
    Message,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    texts,
    texts,
    st.lists(st.integers(0, 5), max_size=3).map(tuple),
    st.none() | st.integers(0, 5),
    st.none() | texts,
    st.none() | texts,
)
calls = st.builds(
    ToolCall,
    texts,
    texts,
    json_values,
    st.none() | texts,
    st.sampled_from(["ok", "error", "pending"]),
    st.none() | st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
    st.none() | st.integers(0, 5),
    st.booleans(),
)
specs = st.builds(
    CriterionSpec,
    name=texts,
    prototype_class=st.sampled_from(["TextResponse", "a\\b\\ToolCallTestCriterion.php"]),
    config=st.just('{"metrics": []}') | st.just({"metrics": []}),
    description=texts,
    expected_value=json_values,
    weight=st.floats(0, 10),
    severity=st.sampled_from(["error", "warning", "info"]),
    negate=st.booleans(),
    pass_threshold=st.none() | st.floats(0, 1),
)
agents = st.builds(
    lambda name, config, hash: AgentPlan(name, {"kind": "demo", "options": config}, Path("/suites"), hash),
    texts,
    st.dictionaries(st.sampled_from(["a", "b", "model"]), json_values, max_size=2),
    st.text("0123456789abcdef", min_size=4, max_size=4),
)
runs = st.builds(
    lambda **fields: RunPlan(**fields),  # builds() would look for the names of all its types
    ref=st.builds(RunRef, texts, texts, texts, texts, st.integers(0, 9), st.integers(1, 9), texts),
    suite_key=texts,
    suite_name=texts,
    agent=agents,
    messages=st.lists(messages, max_size=4).map(tuple),
    context=objects,
    specs=st.lists(specs, max_size=3).map(tuple),
    variables=objects,
    timeout_s=st.floats(0.1, 1e4),
    pass_threshold=st.none() | st.floats(0, 1),
    tags=st.lists(texts, max_size=2).map(tuple),
    seed=st.integers(0, 2**32),
    tool_calls=st.lists(calls, max_size=2).map(tuple),
    turns=st.lists(texts, max_size=2).map(tuple),
    stop=st.none() | st.builds(StopRule, st.floats(0.01, 0.2), st.floats(0, 1)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(runs, min_size=1, max_size=3, unique_by=lambda run: run.agent.hash))
def test_tasks_give_back_the_runs(planned: list[RunPlan]) -> None:
    plan = Plan("E", "t", tuple(planned), 4, respondents=Respondents(judge="j"))
    tasks = Tasks(plan)
    setup = read_setup(unpack(pack(tasks.setup()).data))
    assert (setup.concurrency, setup.respondents.judge) == (4, "j")
    for run in planned:
        task = unpack(pack(tasks.of(run)).data)
        again = run_plan(
            task,
            setup,
            run.ref,
            suite_key=run.suite_key,
            suite_name=run.suite_name,
            variables=run.variables,
            tags=run.tags,
            seed=run.seed,
        )
        assert comparable(again) == comparable(run)


def test_repetitions_share_a_task(execution: Callable[..., Execution], scripts: Scripts) -> None:
    plan = execution(MANY).engine.plan
    tasks = Tasks(plan)
    assert len({id(tasks.of(run)) for run in plan.runs}) == 2
    # Criteria that judge alike but are called otherwise stay two.
    assert [one["name"] for one in tasks.setup()["specs"].values()] == ["Greets", "Same check", "Greets"]
