"""The agent's code is edited: recorded runs are made again from their recordings, and the change is the result."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer

from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.check import CheckOptions, CodeCheck, RunsAtOnce
from agenteval_tui.runs.change.model import (
    Checked,
    CodeChange,
    Ignored,
    NotBuilt,
    RunChange,
    RunChecked,
    Saved,
    WatchEvent,
    Watching,
)
from agenteval_tui.runs.change.plans import without_keys
from agenteval_tui.runs.change.recorded_runs import recorded_runs
from agenteval_tui.runs.change.saves import Contents, is_source
from agenteval_tui.runs.change.watch import Watch
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite

MODEL = """
import json, os, urllib.request
def ask(messages):
    body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]
"""
AGENT = """
from model import ask
SYSTEM = "Be brief."
def answer(prompt):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
    first = ask(messages)
    messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "Shout it."}]
    return ask(messages).lower()
"""
ASKS_NOBODY = "def answer(prompt): return prompt"
"""Of programs that are run again and again: to import a client of HTTP would take longest."""
SUITE = """
name: Echo
agent: echo
agents:
  echo: {kind: python, callable: "agent:answer", capture: model}
tests:
  - id: shouts
    prompt: hello
    criteria:
      - {name: Shouts, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: HELLO}]}}
  - id: polite
    prompt: please
    criteria:
      - name: Says please
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: please}]}
"""


def model(request: Request) -> Answer:
    """A model that repeats the first thing that the user said, and shouts when it is told to."""
    texts = [message["content"] for message in request.json["messages"] if message["role"] == "user"]
    content = texts[0].upper() if len(texts) > 1 else texts[0]
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    choices = [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}]
    return Answer(body=json.dumps({"model": request.json["model"], "choices": choices, "usage": usage}))


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(model) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "planted-key-of-the-user-0001")
        yield running


@dataclass
class Project:
    """A folder with an agent, a suite, and a history in which the suite has run."""

    folder: Path
    store: Store
    options: PlanOptions = field(default_factory=lambda: PlanOptions(trust=True))
    suite: str = SUITE
    capture: str = "model"

    def plan(self) -> Plan:
        loaded = load_suite(self.folder / "echo.suite.yaml")
        return make_plan([loaded], self.options, user_agents={}, store=self.store)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def edit(self, before: str, after: str, name: str = "agent.py") -> None:
        text = (self.folder / name).read_text(encoding="utf-8")
        assert before in text
        self.write(name, text.replace(before, after))

    async def record(self, **files: str) -> None:
        for name, text in {"model": MODEL, "agent": AGENT, **files}.items():
            self.write(f"{name}.py", text)
        self.write("echo.suite.yaml", self.suite.replace("capture: model", f"capture: {self.capture}"))
        await Engine(self.plan(), self.store, lambda _: None).run()

    async def check(self, options: CheckOptions | None = None) -> CodeChange:
        """What the code of now changes."""
        plan = self.plan()
        check = CodeCheck(plan, self.store)
        try:
            return await check.run(recorded_runs(self.store, plan.runs).runs, (), options or CheckOptions())
        finally:
            await check.close()


@pytest.fixture
def project(tmp_path: Path, store: Store, request: pytest.FixtureRequest) -> Project:
    """`capture` of its agent is auto, or what a test is parametrised with (`either_capture`)."""
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project", store, capture=getattr(request, "param", "auto"))


either_capture = pytest.mark.parametrize("project", ["model", "auto"], indirect=True)
"""For tests of which request is answered from where: with `auto` the agent doesn't know that it asks by way of the
proxy, with `model` its variables lead it there. What is made of the answers is the same."""


def effects(change: CodeChange) -> dict[str, str]:
    return {run.test: run.effect for run in change.runs}


def of(change: CodeChange, test: str) -> RunChange:
    (run,) = [run for run in change.runs if run.test == test]
    return run


# From the tape


@pytest.mark.sweep
@either_capture
async def test_what_is_asked_as_before_is_answered_from_the_recording(server: ScriptedServer, project: Project) -> None:
    await project.record()
    asked = len(server.requests)
    change = await project.check()
    assert effects(change) == {"shouts": "unchanged", "polite": "unchanged"}
    assert [run.test for run in change.runs] == ["shouts", "polite"], "those that failed come first"
    assert (change.answers, change.requests, change.cost, change.failures_before) == (4, 0, 0.0, 1)
    assert len(server.requests) == asked


async def test_a_change_behind_the_last_request_costs_nothing(server: ScriptedServer, project: Project) -> None:
    await project.record()
    asked = len(server.requests)
    project.edit(".lower()", "")
    change = await project.check()
    assert effects(change) == {"shouts": "passes", "polite": "fails"}
    assert (change.passes, change.fails, change.unchanged, change.needs_model) == (1, 1, 0, 0)
    shouts, polite = of(change, "shouts"), of(change, "polite")
    assert (shouts.status_before, shouts.status, shouts.reason) == ("failed", "passed", "")
    assert polite.criterion == "Says please"
    assert "please" in polite.reason
    assert len(server.requests) == asked


@pytest.mark.sweep
@either_capture
async def test_the_first_request_that_differs_stops_the_run_with_its_price(
    server: ScriptedServer, project: Project
) -> None:
    await project.record()
    asked = len(server.requests)
    project.edit("Shout it.", "Whisper it.")
    change = await project.check()
    assert effects(change) == {"shouts": "needs_model", "polite": "needs_model"}
    run = of(change, "shouts")
    assert run.request == 2
    assert "Whisper it." in run.reason
    one = (1000 * 2.5 + 100 * 10) / 1e6
    assert run.cost == pytest.approx(one)
    assert change.needed_cost == pytest.approx(2 * one)
    stopped = project.store.run(run.after)
    assert "model_error" not in [note.code for note in project.store.transcript(stopped.id).notes]
    workbench = Workbench.open(project.store, stopped.id)
    assert workbench.judge(0).message.startswith("This run needs the model")
    project.edit("Be brief.", "Be long.")
    change = await project.check()
    assert of(change, "shouts").request == 1
    assert change.needed_cost == pytest.approx(4 * one)
    assert len(server.requests) == asked


@pytest.mark.sweep
@either_capture
async def test_what_differs_goes_on_live_when_it_is_asked_for(server: ScriptedServer, project: Project) -> None:
    await project.record()
    asked = len(server.requests)
    project.edit("Shout it.", "Whisper it.")
    change = await project.check(CheckOptions(live=True))
    assert effects(change) == {"shouts": "unchanged", "polite": "unchanged"}
    assert len(server.requests) == asked + 2
    assert (change.answers, change.requests) == (2, 2)
    assert change.cost == pytest.approx(2 * (1000 * 2.5 + 100 * 10) / 1e6)
    assert server.requests[-1].headers["authorization"] == "Bearer planted-key-of-the-user-0001"


@pytest.mark.sweep
@either_capture
async def test_live_requests_keep_to_the_limit_on_cost(server: ScriptedServer, project: Project) -> None:
    await project.record()
    asked = len(server.requests)
    project.edit("Be brief.", "Be long.")
    change = await project.check(CheckOptions(live=True, max_cost=0.0001))
    assert len(server.requests) - asked <= 2
    assert set(effects(change).values()) == {"needs_model"}, "a limit says nothing of the code"


async def test_a_price_that_is_not_known_is_why_no_more_is_asked_within_a_limit(
    server: ScriptedServer, project: Project
) -> None:
    project.options = PlanOptions(trust=True, concurrency=1)
    await project.record(model=MODEL.replace("gpt-4o", "house-model-1"))
    project.edit("Be brief.", "Be long.")
    change = await project.check(CheckOptions(live=True, max_cost=1.0))
    stopped = [run.reason for run in change.runs if run.effect == "needs_model"]
    # Of a run that was in progress, it is not known yet.
    assert "what the model costs is not known" in stopped[-1]
    assert not any("recorded" in reason for reason in stopped), stopped


async def test_runs_that_failed_come_first_and_each_test_before_repetitions(
    server: ScriptedServer, project: Project
) -> None:
    project.suite = SUITE.replace("tests:\n", "defaults: {repeat: 2}\ntests:\n") + (
        "  - id: kind\n"
        "    prompt: please\n"
        "    criteria:\n"
        "      - name: Please\n"
        "        prototype_class: TextResponse\n"
        "        config_uxon: {metrics: [{type: TextMatch, contains: please}]}\n"
    )
    await project.record()
    order = [(run.test, run.repetition) for run in (await project.check()).runs]
    assert order == [("shouts", 1), ("shouts", 2), ("polite", 1), ("kind", 1), ("polite", 2), ("kind", 2)]


async def test_what_a_hook_brings_is_what_it_brings_now(server: ScriptedServer, project: Project) -> None:
    hook = "before: [[python, hook.py]], variables: {who: nobody}"
    project.suite = SUITE.replace(
        "id: polite\n    prompt: please", f"id: polite\n    {hook}\n    prompt: please, {{{{who}}}}"
    )
    project.suite = project.suite.replace(
        "before: [[python, hook.py]], variables", "before: [[python, hook.py]]\n    variables"
    )
    project.write("hook.py", 'print(\'{"who": "Ada"}\')')
    await project.record()
    asked = {message["content"] for request in server.requests for message in request.json["messages"]}
    assert "please, Ada" in asked
    assert effects(await project.check()) == {"polite": "unchanged", "shouts": "unchanged"}
    project.write("hook.py", 'print(\'{"who": "Bob"}\')')
    change = await project.check()
    assert (effects(change)["polite"], "Bob" in of(change, "polite").reason) == ("needs_model", True)


async def test_the_runs_count_nowhere(server: ScriptedServer, project: Project) -> None:
    await project.record()
    project.edit(".lower()", "")
    change = await project.check()
    store = project.store
    assert len(store.execution_ids(RunFilter(counted=True))) == 1
    row = store.run(of(change, "shouts").after)
    assert (row.fork_of, row.superseded) == (of(change, "shouts").before, True)
    assert store.test_summaries(row.suite_key)["shouts"].total == 1


@pytest.mark.parametrize("key", ["", "planted-key-in-the-suite-0002", "${OTHER_KEY}"])
async def test_keys_of_model_servers_are_withheld(
    server: ScriptedServer, project: Project, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that does not ask where it is led to would be paid for."""
    monkeypatch.setenv("OTHER_KEY", "planted-key-in-the-suite-0002")
    beside = MODEL.replace('os.environ["OPENAI_BASE_URL"]', f'"{server.url}"')
    suite = SUITE.replace(
        "capture: model", f"capture: none, env: {{OPENAI_API_KEY: '{key}'}}" if key else "capture: none"
    )
    project.suite = suite
    await project.record(model=beside)
    keys = {request.headers["authorization"] for request in server.requests}
    assert keys == {f"Bearer planted-key-{'in-the-suite-0002' if key else 'of-the-user-0001'}"}
    asked = len(server.requests)
    change = await project.check()
    assert set(effects(change).values()) <= {"unchanged"}
    assert {request.headers["authorization"] for request in server.requests[asked:]} == {"Bearer agenteval-recorded"}


def test_keys_that_a_suite_writes_for_services_are_withheld(project: Project) -> None:
    ready, env = "ready: {port: 18999}", "env: {OPENAI_API_KEY: planted-key-in-the-suite-0002, REGION: eu}"
    service = f"{{command: [python, serve.py], {ready}, {env}}}"
    project.suite = (
        SUITE.replace("capture: model", f"services: {{shop: {service}}}") + f"services: {{desk: {service}}}\n"
    )
    project.write("agent.py", AGENT)
    project.write("echo.suite.yaml", project.suite)
    run = without_keys(project.plan().runs[0])
    assert run.around is not None
    envs = [run.agent.config["services"]["shop"]["env"], *(each.env for each in run.around.services)]
    assert envs == [{"OPENAI_API_KEY": "agenteval-recorded", "REGION": "eu"}] * len(envs)
    assert len(envs) > 1


async def test_a_recording_that_changed_nothing_answers_an_agent_that_names_its_server(
    server: ScriptedServer, tmp_path: Path, store: Store
) -> None:
    project = Project(tmp_path, store, capture="auto")
    await project.record(model=MODEL.replace('os.environ["OPENAI_BASE_URL"]', f'"{server.url}"'))
    asked = len(server.requests)
    assert asked == 4
    assert effects(await project.check()) == {"shouts": "unchanged", "polite": "unchanged"}
    project.edit("Shout it.", "Whisper it.")
    change = await project.check()
    assert effects(change) == {"shouts": "needs_model", "polite": "needs_model"}
    assert of(change, "shouts").request == 2
    assert len(server.requests) == asked


async def test_a_run_that_used_a_model_without_a_recording_is_not_made(
    server: ScriptedServer, project: Project
) -> None:
    project.suite = SUITE.replace("capture: model", "capture: none")
    told = 'return {"messages": [{"role": "assistant", "content": ask(messages)}], "model": "gpt-4o", '
    told += '"usage": {"input_tokens": 5, "output_tokens": 5}}'
    await project.record(agent=AGENT.replace("return ask(messages).lower()", told))
    asked = len(server.requests)
    change = await project.check()
    assert effects(change) == {"shouts": "needs_model", "polite": "needs_model"}
    assert of(change, "shouts").after == ""
    assert len(server.requests) == asked


async def test_a_model_that_a_framework_brings_for_tests_asks_nobody(tmp_path: Path, store: Store) -> None:
    project = Project(tmp_path, store, suite=SUITE.replace('"agent:answer", capture: model', '"agent:agent"'))
    double = "from pydantic_ai import Agent\nfrom pydantic_ai.models.test import TestModel\n"
    await project.record(agent=f"{double}agent = Agent(TestModel(custom_output_text='please'))")
    change = await project.check()
    assert effects(change) == {"shouts": "unchanged", "polite": "unchanged"}
    project.edit("'please'", "'HELLO'")
    assert effects(await project.check()) == {"shouts": "passes", "polite": "fails"}


async def test_runs_that_wait_for_each_other_are_all_begun(tmp_path: Path, store: Store) -> None:
    number = 2 * (os.cpu_count() or 1) + 1
    project = Project(tmp_path, store, suite=SUITE.replace(", capture: model", ""))
    project.options = PlanOptions(trust=True, repeat=number, concurrency=2 * number, tests=("shouts",))
    waits = f"""
import os, pathlib, time
def answer(prompt):
    here = pathlib.Path("begun"); here.mkdir(exist_ok=True); (here / str(os.getpid())).touch()
    until = time.monotonic() + 100
    while len(list(here.iterdir())) < {number}:
        assert time.monotonic() < until, "the others were not begun"
        time.sleep(0.01)
    return "HELLO"
"""
    await project.record(agent=waits)
    shutil.rmtree(tmp_path / "begun")
    change = await project.check()
    assert len(change.runs) == number
    assert {(run.effect, run.status) for run in change.runs} == {("unchanged", "passed")}


@pytest.mark.parametrize(("cores", "most", "left"), [(1, 4, [1]), (2, 4, [1]), (8, 4, [4]), (8, 16, [7]), (2, 1, [1])])
async def test_runs_that_nobody_waits_for_leave_a_core(cores: int, most: int, left: list[int]) -> None:
    commands: list[Command] = []
    at_once = RunsAtOnce(commands.append, most, cores)
    for _ in range(49):
        at_once.run_ended()
    assert not commands
    for _ in range(100):
        at_once.run_ended()
    assert [command.number for command in commands] == left


async def test_a_judge_is_not_asked(server: ScriptedServer, project: Project) -> None:
    judge = "  referee: {kind: openai, base_url: '${OPENAI_BASE_URL}', model: gpt-4o}\ntests:"
    metric = "{type: Judge, judge: referee, instructions: Is it loud?}"
    project.suite = SUITE.replace("tests:", judge, 1).replace("{type: TextMatch, contains: HELLO}", metric)
    await project.record()
    asked = len(server.requests)
    project.edit(".lower()", "")
    change = await project.check()
    assert of(change, "shouts").effect == "needs_model"
    assert len(server.requests) == asked


async def test_the_date_in_a_prompt_is_not_a_change(server: ScriptedServer, project: Project) -> None:
    dated = AGENT.replace('"Be brief."', 'f"Be brief. Today is {date}."').replace(
        "SYSTEM =", "import datetime, os\ndate = os.environ.get('TODAY') or datetime.date.today()\nSYSTEM ="
    )
    await project.record(agent=dated.replace("os.environ.get('TODAY')", "'2020-01-01'"))
    row = project.store.run(project.store.runs_of_execution(project.store.execution("last").id)[0].id)
    assert row.started_ms is not None
    project.write("agent.py", dated)
    change = await project.check()
    assert set(effects(change).values()) == {"needs_model"}, "a day long ago is data"
    await project.record(agent=dated)
    change = await project.check()
    assert set(effects(change).values()) == {"unchanged"}


@pytest.mark.sweep
@either_capture
async def test_what_varies_is_found_where_a_recording_exists_twice(server: ScriptedServer, project: Project) -> None:
    varying = AGENT.replace("def answer", "import uuid\ndef answer").replace(
        '"content": SYSTEM', '"content": SYSTEM + str(uuid.uuid4())'
    )
    await project.record(agent=varying)
    project.edit("def answer", "# Edited.\ndef answer")
    assert set(effects(await project.check()).values()) == {"needs_model"}, "the edit may be of an id"
    await project.record(agent=varying)
    project.edit("def answer", "# Edited.\ndef answer")
    assert set(effects(await project.check()).values()) == {"unchanged"}


@pytest.mark.sweep
@either_capture
async def test_what_a_tool_gives_anew_each_time_is_found_where_a_recording_exists_twice(
    server: ScriptedServer, project: Project
) -> None:
    varying = AGENT.replace("def answer", "import uuid\ndef answer").replace(
        '"Shout it."', '"Shout " + str(uuid.uuid4())'
    )
    await project.record(agent=varying)
    project.edit("def answer", "# Edited.\ndef answer")
    assert set(effects(await project.check()).values()) == {"needs_model"}, "the edit may be of an id"
    await project.record(agent=varying)
    project.edit("def answer", "# Edited.\ndef answer")
    assert set(effects(await project.check()).values()) == {"unchanged"}


@pytest.mark.sweep
@either_capture
async def test_one_recording_is_enough_to_find_what_varies_as_long_as_the_code_is_the_same(
    server: ScriptedServer, project: Project
) -> None:
    varying = AGENT.replace("def answer", "import uuid\ndef answer").replace(
        '"content": SYSTEM', '"content": SYSTEM + str(uuid.uuid4())'
    )
    await project.record(agent=varying)
    plan = project.plan()
    check = CodeCheck(plan, project.store)
    runs = recorded_runs(project.store, plan.runs).runs
    assert set(effects(await check.run(runs)).values()) == {"unchanged"}
    # It is still known after a save, which can change more than that.
    project.edit("def answer", "# Edited.\ndef answer")
    assert set(effects(await check.run(runs, ("agent.py",))).values()) == {"unchanged"}
    project.edit("Be brief.", "Be long.")
    assert set(effects(await check.run(runs, ("agent.py",))).values()) == {"needs_model"}
    await check.close()
    assert len(server.requests) == 4


async def test_what_other_code_brought_does_not_vary_by_itself(server: ScriptedServer, project: Project) -> None:
    for times in (1, 2):
        await project.record(agent=AGENT.replace("Shout it.", f"Shout it {times} times."))
    project.edit("Shout it 2 times.", "Shout it 3 times.")
    assert set(effects(await project.check()).values()) == {"needs_model"}


async def test_of_the_numbers_in_a_text_only_those_may_differ_that_varied(
    server: ScriptedServer, project: Project
) -> None:
    varying = AGENT.replace("def answer", "import time\ndef answer").replace("Be brief.", "Use 3 words.")
    varying = varying.replace('"Shout it."', 'f"Shout it 1 times ({time.monotonic_ns() % 90_000 + 1_000} ns)."')
    for _ in range(2):
        await project.record(agent=varying)
    project.edit("def answer", "# Edited.\ndef answer")
    assert set(effects(await project.check()).values()) == {"unchanged"}
    project.edit("Shout it 1 times", "Shout it 2 times")
    assert set(effects(await project.check()).values()) == {"needs_model"}
    project.edit("Shout it 2 times", "Shout it 1 times")
    project.edit("Use 3 words.", "Use 300 words.")
    assert set(effects(await project.check()).values()) == {"needs_model"}


async def test_a_number_that_differs_may_be_of_data_that_changed(server: ScriptedServer, project: Project) -> None:
    varying = AGENT.replace("def answer", "import random\ndef answer").replace(
        '"content": SYSTEM', '"content": SYSTEM + str(random.randint(10, 9_999_999))'
    )
    await project.record(agent=varying)
    assert set(effects(await project.check()).values()) == {"needs_model"}


@pytest.mark.sweep
@either_capture
async def test_ids_that_a_program_makes_anew_and_the_model_repeats_are_those_of_now(
    server: ScriptedServer, project: Project
) -> None:
    """Three questions at once, in another order each time, each with its own id."""
    asks_at_once = (
        AGENT.partition("def answer")[0]
        + """
import random, uuid
from concurrent.futures import ThreadPoolExecutor
def about(topic):
    ticket = uuid.uuid4().hex[:7] + "0"
    question = {"role": "user", "content": f"{topic} of ticket_{ticket} and {ticket}"}
    reply = ask([{"role": "system", "content": SYSTEM}, question])
    assert f"{ticket} and {ticket}" in reply, reply
    again = {"role": "user", "content": f"Shout {ticket}."}
    return ask([question, {"role": "assistant", "content": reply}, again]).lower().partition(" of ")[0]
def answer(prompt):
    topics = ["colour", "price", prompt]
    random.shuffle(topics)
    with ThreadPoolExecutor() as pool:
        return " ".join(sorted(pool.map(about, topics)))
"""
    )
    await project.record(agent=asks_at_once)
    await project.record(agent=asks_at_once)
    requests = len(server.requests)
    change = await project.check()
    assert set(effects(change).values()) == {"unchanged"}
    assert len(server.requests) == requests
    # What is asked still decides.
    project.edit('"price"', '"prices"')
    assert set(effects(await project.check()).values()) == {"needs_model"}


@pytest.mark.sweep
@either_capture
async def test_a_request_that_another_recorded_run_holds_is_answered_from_there(
    server: ScriptedServer, project: Project
) -> None:
    await project.record()
    asked = len(server.requests)
    project.edit("def answer(prompt):", "def answer(prompt):\n    prompt = 'please'")
    change = await project.check()
    assert effects(change) == {"shouts": "unchanged", "polite": "unchanged"}  # the one failed before, too
    assert (change.answers, change.requests, len(server.requests)) == (4, 0, asked)
    # Where none holds it, the nearest request of its own recording is named.
    project.edit("'please'", "'nobody asked this'")
    assert set(effects(await project.check()).values()) == {"needs_model"}


@pytest.mark.sweep
@either_capture
async def test_an_agent_that_asks_in_another_order_each_time_is_answered_by_its_repetitions(
    server: ScriptedServer, project: Project
) -> None:
    project.suite = SUITE.replace("    prompt: hello\n", "    prompt: hello\n    repeat: 2\n")
    drawn = AGENT.replace(
        "def answer(prompt):",
        "import pathlib\n"
        "def answer(prompt, repetition):\n"
        "    swapped = pathlib.Path(__file__).with_name('swapped').exists()\n"
        "    prompt += ' ' + str(3 - repetition if swapped else repetition)",
    )
    await project.record(agent=drawn)
    asked = len(server.requests)
    project.write("swapped", "")
    change = await project.check()
    assert [run.effect for run in change.runs if run.test == "shouts"] == ["unchanged"] * 2
    assert of(change, "polite").effect == "needs_model"
    assert len(server.requests) == asked


async def test_an_import_that_fails_is_one_line(server: ScriptedServer, project: Project) -> None:
    await project.record()
    executions = len(project.store.execution_ids())
    for broken in ("def answer(prompt) return 1", "import not_there\n" + AGENT, "raise RuntimeError('at import')"):
        project.write("agent.py", broken)
        change = await project.check()
        assert change.error
        assert change.runs == ()
        assert change.execution == ""
    (project.folder / "agent.py").unlink()
    assert "agent" in (await project.check()).error
    assert len(project.store.execution_ids()) == executions


async def test_a_failure_of_the_code_is_a_failure(server: ScriptedServer, project: Project) -> None:
    await project.record()
    project.edit("    return ask", "    raise KeyError('order')\n    return ask")
    change = await project.check()
    polite = of(change, "polite")
    assert (polite.effect, polite.status) == ("fails", "error")
    assert "KeyError" in polite.reason
    assert of(change, "shouts").effect == "fails"


async def test_a_run_that_failed_and_fails_for_one_criterion_more_fails_now(tmp_path: Path, store: Store) -> None:
    more = """
      - {name: Ends well, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: end}]}}
"""
    suite = SUITE.replace(", capture: model", "").partition("  - id: polite")[0].rstrip("\n") + more
    project = Project(tmp_path, store, suite=suite)
    await project.record(agent="def answer(prompt): return 'the end'")
    assert effects(await project.check()) == {"shouts": "unchanged"}
    project.edit("the end", "the en")
    change = await project.check()
    run = of(change, "shouts")
    assert (run.effect, run.criterion, change.fails) == ("fails", "Ends well", 1)


# What can't be recorded

LOOKS_UP = """
import socket, sys
def nowhere(host, port, *_, **__):
    sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
    raise socket.gaierror("no network here")
socket.getaddrinfo = nowhere
"""
ASKS = """
import contextlib
def answer(prompt):
    with contextlib.suppress(OSError):
        socket.create_connection((HOST, 443))
    return prompt
"""
TRACES = """
import contextlib, httpx
def answer(prompt):
    with contextlib.suppress(httpx.HTTPError):
        httpx.post("https://api.openai.com/v1/traces/ingest", json={})
    return prompt
"""


async def test_a_model_that_was_asked_past_the_proxy_is_remarked_once(tmp_path: Path, store: Store) -> None:
    for host, is_said in (("api.cohere.com", True), ("docs.example.org", False), ("api.smith.langchain.com", False)):
        project = Project(tmp_path / host, store, suite=SUITE, capture="auto")
        project.folder.mkdir()
        await project.record(agent=f"HOST = {host!r}\n{LOOKS_UP}{ASKS}")
        message = store.execution("last").message
        assert message.count(host) == is_said
        assert ("is not recorded" in message) == is_said


PAST = """
import http from 'node:http';
class Own extends http.Agent {}
const asked = http.request('MODEL/chat/completions', { method: 'POST', agent: new Own() });
asked.on('response', (response) => response.resume().on('end', () => console.log('please HELLO')));
asked.end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_what_a_program_asked_past_the_proxy_is_remarked_and_no_call_is_said_to_be_absent(
    server: ScriptedServer, project: Project
) -> None:
    in_node(project, "[node, agent.mjs]")
    project.suite = project.suite.replace(
        "{metrics: [{type: TextMatch, contains: please}]}",
        "{metrics: [{type: ToolCheck, tools: [{name: refund, required: false, max_calls: 0}]}]}",
    ).replace(
        "name: Says please\n        prototype_class: TextResponse", "name: Never\n        prototype_class: ToolResponse"
    )
    project.write("agent.mjs", PAST.replace("MODEL", server.url))
    await project.record()
    execution = project.store.execution("last")
    assert server.url.split("/")[2] in execution.message
    assert "is not recorded" in execution.message
    statuses = {row.test_id: row.status for row in project.store.runs_of_execution(execution.id)}
    assert statuses == {"shouts": "passed", "polite": "error"}


async def test_what_is_recorded_is_not_remarked(server: ScriptedServer, tmp_path: Path, store: Store) -> None:
    project = Project(tmp_path, store, suite=SUITE, capture="auto")
    await project.record()
    assert "is not recorded" not in store.execution("last").message


async def test_traces_that_go_to_a_server_of_models_are_not_remarked(tmp_path: Path, store: Store) -> None:
    pytest.importorskip("httpx")
    project = Project(tmp_path, store, suite=SUITE, capture="auto")
    await project.record(agent=LOOKS_UP + TRACES)
    assert "is not recorded" not in store.execution("last").message


async def test_a_run_that_failed_and_has_an_error_now_fails_now(tmp_path: Path, store: Store) -> None:
    named = "{kind: command, command: [python3, agent.py], capture: none}"
    project = Project(
        tmp_path, store, suite=SUITE.replace('{kind: python, callable: "agent:answer", capture: model}', named)
    )
    await project.record(agent="print('neither')")
    project.edit("print(", "print((")
    change = await project.check()
    assert effects(change) == {"shouts": "fails", "polite": "fails"}
    assert {(run.status_before, run.status) for run in change.runs} == {("failed", "error")}
    assert "SyntaxError" in of(change, "shouts").reason


# Watching


@dataclass
class Watched:
    """A watch that runs, and what it told."""

    watch: Watch
    events: list[WatchEvent]
    task: asyncio.Task[None]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(120):
            while not condition():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)

    @property
    def changes(self) -> list[CodeChange]:
        return [event.change for event in self.events if isinstance(event, Checked)]

    async def change(self, number: int) -> CodeChange:
        await self.until(lambda: len(self.changes) >= number)
        return self.changes[number - 1]


@pytest.fixture
async def watching(project: Project) -> AsyncIterator[Callable[[], Watched]]:
    begun: list[Watched] = []

    def begin(**more: Any) -> Watched:
        events: list[WatchEvent] = []
        watch = Watch(project.store, project.plan, events.append, **more)
        begun.append(Watched(watch, events, asyncio.create_task(watch.run())))
        return begun[-1]

    yield begin
    for watched in begun:
        watched.watch.stop()
        async with asyncio.timeout(120):
            await watched.task


@pytest.mark.sweep
@either_capture
async def test_after_each_save_the_change_is_told(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    assert effects(await watched.change(1)) == {"shouts": "unchanged", "polite": "unchanged"}
    assert isinstance(watched.events[0], Watching)
    assert (watched.events[0].recorded, watched.events[0].failing) == (2, 1)
    project.edit(".lower()", "")
    second = await watched.change(2)
    assert effects(second) == {"shouts": "passes", "polite": "fails"}
    assert second.files == (str(project.folder / "agent.py"),)
    told = [event.change.test for event in watched.events if isinstance(event, RunChecked)]
    assert sorted(told[-2:]) == ["polite", "shouts"]
    project.edit("ask(messages)\n", "ask(messages).lower()\n")
    assert set(effects(await watched.change(3)).values()) <= {"unchanged", "passes", "fails"}
    # Of saves that were looked at, the runs of the last one stay.
    await watched.until(lambda: len(project.store.execution_ids()) == 2)


async def test_a_file_that_no_run_read_is_no_save(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    project.write("unrelated.py", "x = 1")
    project.write("notes.md", "later")
    project.write("agent.py", (project.folder / "agent.py").read_text())  # with the same words
    project.edit("Be brief.", "Be  brief.")
    change = await watched.change(2)
    assert change.files == (str(project.folder / "agent.py"),)
    assert len(watched.changes) == 2


READS_LATE = """
import pathlib, subprocess, sys, threading, time
HERE = pathlib.Path(__file__).parent
def answer(prompt):
    import lazy
    words = [sys.executable, *STARTED]
    worker = subprocess.run(words, cwd=HERE, capture_output=True, text=True).stdout.strip()
    return " ".join([prompt, lazy.WORD, (HERE / "prompt.md").read_text().strip(), worker])
"""
WAITS = "threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()\n"


@pytest.mark.parametrize("started", ['["../project/./work/run.py"]', '["-m", "work.run"]'])
@pytest.mark.parametrize("at_import", ["", WAITS])
async def test_what_is_read_while_the_agent_answers_counts(
    project: Project, watching: Callable[[], Watched], at_import: str, started: str
) -> None:
    """Also of an agent that is not forked, and of programs that it starts."""
    (project.folder / "work").mkdir()
    project.write("work/run.py", "import pathlib\nprint(pathlib.Path(__file__).with_name('limit.txt').read_text())\n")
    project.write("work/limit.txt", "10")
    project.write("lazy.py", "WORD = 'now'\n")
    project.write("prompt.md", "soon")
    project.suite = SUITE.replace("contains: please", "equals: please now soon 10")
    await project.record(agent=READS_LATE.replace("STARTED", started) + at_import)
    watched = watching()
    number = 1
    assert effects(await watched.change(number))["polite"] == "unchanged"
    for file, before, after in (
        ("lazy.py", "now", "then"),
        ("prompt.md", "soon", "late"),
        ("work/run.py", "print(", "print('about', "),
        ("work/limit.txt", "10", "11"),
    ):
        for edit in ((before, after), (after, before)):
            project.edit(*edit, file)
            number += 1
            change = await watched.change(number)
            effect = "fails" if edit[0] == before else "unchanged"
            assert (effects(change)["polite"], change.files) == (effect, (str(project.folder / file),))


async def test_an_agent_whose_processes_are_reused_has_the_code_of_now(
    project: Project, watching: Callable[[], Watched]
) -> None:
    project.suite = SUITE.replace("capture: model", "reuse: true")
    await project.record(agent=ASKS_NOBODY)
    watched = watching()
    assert set(effects(await watched.change(1)).values()) == {"unchanged"}
    project.edit("return prompt", "return prompt.upper()")
    assert effects(await watched.change(2)) == {"shouts": "passes", "polite": "fails"}


async def test_a_helper_that_is_imported_counts(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    project.edit('["content"]\n', '["content"] + "!"\n', "model.py")
    change = await watched.change(2)
    assert change.files == (str(project.folder / "model.py"),)
    assert set(effects(change).values()) == {"needs_model"}


@pytest.mark.parametrize("name", ["shop.sqlite3", "shop.db-journal", "shop.sqlite-wal", "memory-journal", "a.py~"])
def test_what_databases_and_editors_write_beside_a_file_is_no_save(name: str) -> None:
    assert not is_source(f"/shop/{name}")
    assert is_source(f"/shop/{name}.py")


def test_what_is_saved_while_runs_are_made_is_a_save(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("broken")
    contents, path = Contents(), str(tmp_path / "agent.py")
    assert contents.changed({path}) == (path,)
    (tmp_path / "agent.py").write_text("mended")  # its event is still to come
    contents.look({path})
    assert contents.changed({path}) == (path,)
    assert contents.changed({path}) == ()


def test_what_is_saved_before_it_is_known_that_it_is_read_is_a_save(tmp_path: Path) -> None:
    read, written = tmp_path / "prompt.md", tmp_path / "cache.bin"
    began = time.time()
    for file in (read, written):
        file.write_text("later")
    contents = Contents()
    contents.look(map(str, (read, written)), since=began)
    assert contents.changed(contents.known) == (str(read),)  # the runs write the other one
    assert contents.changed(contents.known) == ()
    contents.look([str(tmp_path / "agent.py")], since=began)
    assert contents.changed(contents.known) == ()


READS_AT_IMPORT = """
import pathlib, time
from model import ask
HERE = pathlib.Path(__file__).parent
PROMPT = (HERE / "prompt.md").read_text()
(HERE / "imports").write_text("")
while not (HERE / "go").exists():
    time.sleep(0.01)
def answer(prompt):
    return ask([{"role": "system", "content": PROMPT}, {"role": "user", "content": prompt}])
"""


async def test_what_is_saved_while_the_agent_is_imported_for_the_first_time_is_watched_from_then_on(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    project.folder.mkdir(exist_ok=True)
    project.write("prompt.md", "Be brief.")
    project.write("go", "")
    await project.record(agent=READS_AT_IMPORT)
    for name in ("go", "imports"):
        (project.folder / name).unlink()
    watched = watching()
    await watched.until((project.folder / "imports").exists)
    project.write("prompt.md", "Be long.")
    await watched.until(lambda: sum(isinstance(event, Saved) for event in watched.events) > 1)
    project.write("go", "")
    await watched.until(lambda: watched.changes and set(effects(watched.changes[-1]).values()) == {"needs_model"})
    project.write("prompt.md", "Be brief.")
    await watched.until(lambda: set(effects(watched.changes[-1]).values()) == {"unchanged"})


READS_THEN_ASKS = """
import pathlib, threading, time
from model import ask
HERE = pathlib.Path(__file__).parent
def answer(prompt):
    system = (HERE / "prompt.md").read_text()
    try:
        return ask([{"role": "system", "content": system}, {"role": "user", "content": prompt}])
    except Exception as error:
        raise RuntimeError("the framework's own error") from error
"""


@pytest.mark.parametrize("at_import", ["", WAITS])
@either_capture
async def test_what_a_run_read_that_needs_the_model_counts(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched], at_import: str
) -> None:
    project.write("prompt.md", "Be brief.")
    await project.record(agent=READS_THEN_ASKS + at_import)
    project.write("prompt.md", "Be long.")
    watched = watching()
    assert set(effects(await watched.change(1)).values()) == {"needs_model"}
    project.write("prompt.md", "Be brief.")
    assert set(effects(await watched.change(2)).values()) == {"unchanged"}


@pytest.mark.parametrize("inside", [True, False])
async def test_what_a_linked_module_leads_to_counts(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched], tmp_path: Path, inside: bool
) -> None:
    target = (project.folder if inside else tmp_path / "elsewhere") / "voice.py"
    target.parent.mkdir(exist_ok=True)
    target.write_text("def said(text): return text.lower()\n")
    (project.folder / "linked.py").symlink_to(target)
    await project.record(
        agent="from linked import said\n" + AGENT.replace("ask(messages).lower()", "said(ask(messages))")
    )
    watched = watching()
    await watched.change(1)
    target.write_text("def said(text): return text\n")
    change = await watched.change(2)
    assert change.files == (str(target),)
    assert effects(change) == {"shouts": "passes", "polite": "fails"}


async def test_a_package_that_is_renamed_is_a_save_and_is_watched_under_its_new_name(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    voice = project.folder / "voice"
    voice.mkdir()
    (voice / "__init__.py").write_text("def said(text): return text.lower()\n")
    await project.record(
        agent="from voice import said\n" + AGENT.replace("ask(messages).lower()", "said(ask(messages))")
    )
    watched = watching()
    await watched.change(1)
    voice.rename(project.folder / "tone")
    assert "No module named 'voice'" in (await watched.change(2)).error
    project.edit("from voice", "from tone")
    assert set(effects(await watched.change(3)).values()) == {"unchanged"}
    (project.folder / "tone" / "__init__.py").write_text("def said(text): return text\n")
    assert effects(await watched.change(4)) == {"shouts": "passes", "polite": "fails"}


async def test_a_broken_import_leaves_the_last_state(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    text = (project.folder / "agent.py").read_text()
    project.write("agent.py", text.replace("def answer(prompt):", "def answer(prompt)"))
    broken = await watched.change(2)
    assert "SyntaxError" in broken.error
    assert watched.watch.last == watched.changes[0]
    (project.folder / "agent.py").unlink()
    await watched.change(3)
    project.write("agent.py", text.replace(".lower()", ""))
    while (change := watched.changes[-1]).error or not change.files:
        await watched.change(len(watched.changes) + 1)
    assert effects(change) == {"shouts": "passes", "polite": "fails"}


async def test_a_module_that_is_deleted_and_written_anew_is_one_save(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    it = watching()
    await it.change(1)
    text = (project.folder / "agent.py").read_text()
    (project.folder / "agent.py").unlink()
    await it.until(lambda: [event for event in it.events if isinstance(event, Saved) and event.files])
    project.write("agent.py", text.replace(".lower()", ""))
    change = await it.change(2)
    assert change.error == ""
    assert effects(change) == {"shouts": "passes", "polite": "fails"}
    (project.folder / "agent.py").unlink()
    assert "agent" in (await it.change(3)).error


async def test_a_newer_save_ends_the_runs_of_the_older(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    project.edit("    first =", "    import time; open('waits', 'w').close(); time.sleep(600)\n    first =")
    await watched.until((project.folder / "waits").exists)
    project.edit("    import time; open('waits', 'w').close(); time.sleep(600)\n", "")
    project.edit(".lower()", "")
    while "passes" not in effects(watched.changes[-1]).values():
        await watched.change(len(watched.changes) + 1)
    assert not any(run.status == "cancelled" for change in watched.changes for run in change.runs)
    ended = [event.change for event in watched.events if isinstance(event, RunChecked)]
    assert not any(run.status == "cancelled" for run in ended)


async def test_the_runs_of_a_check_that_a_save_ends_are_made_with_those_of_the_save(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    project.suite = SUITE.replace("  echo: ", '  other: {kind: python, callable: "other:answer"}\n  echo: ').replace(
        "id: polite", "id: polite\n    agent: other"
    )
    await project.record(other=AGENT.replace("model", "its_model"), its_model=MODEL)
    watched = watching()
    await watched.change(1)
    waits = "import pathlib, time\nwhile not pathlib.Path(__file__).with_name('go').exists():\n    time.sleep(0.01)\n"
    project.write("agent.py", waits + AGENT)
    await watched.until(lambda: sum(isinstance(event, Saved) for event in watched.events) == 2)
    project.write("other.py", AGENT.replace("model", "its_model") + "# later\n")
    await watched.until(lambda: sum(isinstance(event, Saved) for event in watched.events) == 3)
    project.write("go", "")
    change = await watched.change(2)
    assert set(change.files) == {str(project.folder / "agent.py"), str(project.folder / "other.py")}
    assert set(effects(change)) == {"shouts", "polite"}


@pytest.mark.sweep
async def test_a_hanging_import_is_ended_by_the_next_save(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    text = (project.folder / "agent.py").read_text()
    project.write("agent.py", "open('imports', 'w').close()\nimport time\ntime.sleep(600)\n" + text)
    await watched.until((project.folder / "imports").exists)
    project.write("agent.py", text.replace(".lower()", ""))
    while "passes" not in effects(watched.changes[-1]).values():
        await watched.change(len(watched.changes) + 1)


async def test_a_save_of_the_suite_plans_again(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    project.edit("contains: HELLO", "contains: hello", "echo.suite.yaml")
    assert effects(await watched.change(2)) == {"shouts": "passes", "polite": "unchanged"}
    project.edit("name: Echo", "nam: Echo", "echo.suite.yaml")
    assert (await watched.change(3)).error
    project.edit("nam: Echo", "name: Echo", "echo.suite.yaml")
    assert effects(await watched.change(4)) == {"shouts": "passes", "polite": "unchanged"}


AROUND = """
name: Around
agent: echo
agents:
  echo: {kind: python, callable: "agent:answer"}
tests:
  - id: row
    dataset: {file: rows.csv}
    before: [[sh, greet.sh]]
    prompt: "{{greeting}}, {{who}}"
    state: {day: {python: "probes.day:of"}}
    criteria:
      - name: c
        prototype_class: TextResponse
        config_uxon:
          metrics: [{type: Python, function: "checks.score:score"}, {type: TextMatch, contains: "{{want}}"}]
      - {name: s, prototype_class: State, config_uxon: {probe: day, metrics: [{type: TextMatch, equals: Monday}]}}
"""


async def test_code_and_rows_that_tests_use_beside_their_agent_count(
    project: Project, watching: Callable[[], Watched]
) -> None:
    project.suite = AROUND
    for name in ("checks", "probes"):
        (project.folder / name).mkdir()
        project.write(f"{name}/__init__.py", "")
    project.write("checks/score.py", "from checks.limit import LIMIT\ndef score(answer):\n    return LIMIT\n")
    project.write("checks/limit.py", "LIMIT = 1.0\n")
    project.write("probes/day.py", "def of():\n    return 'Monday'\n")
    project.write("greet.sh", 'echo \'{"greeting": "Hello"}\'\n')
    project.write("rows.csv", "id,who,want\n1,Ada,Ada\n")
    await project.record(agent=ASKS_NOBODY)
    watched = watching()
    number = 1
    assert effects(await watched.change(number)) == {"row": "unchanged"}
    for file, before, after in (
        ("checks/limit.py", "1.0", "0.0"),
        ("probes/day.py", "Monday", "Sunday"),
        ("greet.sh", "Hello", "Ad"),
        ("rows.csv", "Ada,Ada", "Ada,Eve"),
    ):
        project.edit(before, after, file)
        number += 1
        change = await watched.change(number)
        assert change.files == (str(project.folder / file),)
        # Of the greeting no criterion says anything.
        assert change.runs[0].effect == ("unchanged" if file == "greet.sh" else "fails"), file
        project.edit(after, before, file)
        number += 1
        assert effects(await watched.change(number)) == {"row": "unchanged"}


async def test_a_file_that_the_runs_write_themselves_is_left_alone(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    """A program whose files are not known: every file of its project counts, but for those that its runs write."""
    project.suite = SUITE.replace(
        'kind: python, callable: "agent:answer"', "kind: command, command: [python3, run.py], input: text"
    )
    project.write(
        "run.py",
        "import sys, agent, time, os\nfor n in range(400):\n    open('state.json', 'w').write(str(time.time()))\n"
        "    time.sleep(0.05)\n    if os.path.exists('stop'): break\nprint(agent.answer(sys.stdin.read()))",
    )
    project.write("stop", "")
    await project.record(agent=ASKS_NOBODY)
    (project.folder / "stop").unlink()
    watched = watching()
    await watched.until(lambda: any(isinstance(event, Ignored) for event in watched.events))
    (ignored,) = [event.file for event in watched.events if isinstance(event, Ignored)]
    assert ignored == str(project.folder / "state.json")
    project.write("stop", "now")
    await watched.change(1)


async def test_a_source_of_a_built_program_counts_when_it_is_built(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    """With `tsc --watch` beside it, the save comes before the build. The old program would say that nothing changed."""
    for folder in ("src", "dist"):
        (project.folder / folder).mkdir()
    project.suite = SUITE.replace(
        'kind: python, callable: "agent:answer"', "kind: command, command: [python3, dist/run.js], input: text"
    )
    source = "import sys\nsys.path.insert(0, '.')\nimport agent\nprint(agent.answer(sys.stdin.read()))\n"
    project.write("src/run.ts", "the source")
    project.write("dist/run.js", source)
    await project.record(agent=ASKS_NOBODY)
    watched = watching()
    await watched.change(1)
    project.write("src/run.ts", "the source of another program")
    await watched.until(lambda: any(isinstance(event, NotBuilt) for event in watched.events))
    assert watched.events[-1] == NotBuilt(
        files=(str(project.folder / "src/run.ts"),), folder=str(project.folder / "dist")
    )
    project.write("dist/run.js", source.replace("stdin.read())", "stdin.read()).upper()"))
    second = await watched.change(2)
    assert (second.files, effects(second)["shouts"]) == ((str(project.folder / "dist/run.js"),), "passes")
    # What is no source counts at once.
    project.write("prompt.txt", "Be brief.")
    assert (await watched.change(3)).files == (str(project.folder / "prompt.txt"),)


NODE = """
import { readFileSync } from 'node:fs';
import { voice } from './voice.mjs';
console.log(voice(readFileSync(0, 'utf8')));
"""


def in_node(project: Project, command: str) -> None:
    project.suite = SUITE.replace('kind: python, callable: "agent:answer"', f"kind: command, command: {command}")
    project.suite = project.suite.replace("capture: model", "input: text, output: text")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_of_the_sources_for_node_those_count_that_the_program_loads(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    in_node(project, "[node, agent.mjs]")
    project.write("agent.mjs", NODE)
    project.write("voice.mjs", "export const voice = (text) => text;")
    project.write("other.ts", "export const other = 1;")
    await project.record()
    watched = watching()
    await watched.change(1)
    project.write("other.ts", "export const other = 2;")
    project.write("voice.mjs", "export const voice = (text) => text.toUpperCase();")
    second = await watched.change(2)
    assert (second.files, effects(second)) == (
        (str(project.folder / "voice.mjs"),),
        {"shouts": "passes", "polite": "fails"},
    )
    # What is no source for Node counts at once: what reads it may be no Node.
    project.write("prompt.txt", "Be brief.")
    assert (await watched.change(3)).files == (str(project.folder / "prompt.txt"),)
    # A program that ends early has not come to all that it loads.
    project.write("voice.mjs", "export { voice } from './loud.mjs';")
    assert effects(await watched.change(4))["polite"] == "fails"
    project.write("loud.mjs", "export const voice = (text) => text;")
    assert effects(await watched.change(5))["polite"] == "unchanged"
    assert len(watched.changes) == 5


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_a_program_that_is_built_is_known_by_what_it_loads(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    in_node(project, "[node, start.mjs]")
    for folder in ("src", "dist"):
        (project.folder / folder).mkdir()
    project.write("start.mjs", "await import('./dist/agent.mjs');")
    project.write("dist/voice.mjs", "export const voice = (text) => text;")
    project.write("dist/agent.mjs", NODE)
    project.write("src/agent.ts", "the source")
    await project.record()
    watched = watching()
    await watched.change(1)
    project.write("dist/voice.mjs", "export const voice = (text) => text.toUpperCase();")
    assert effects(await watched.change(2))["shouts"] == "passes"
    project.write("src/agent.ts", "another source")
    await watched.until(lambda: any(isinstance(event, NotBuilt) for event in watched.events))
    assert len(watched.changes) == 2


WRITES = "    open(PATH, 'w').write(str(time.time_ns()))\n"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("'last.txt'", "last.txt"),
        ("f'{time.time_ns()}.txt'", "*.txt"),
        ("f'out/{time.time_ns()}.txt'", "out/*.txt"),
    ],
)
async def test_what_the_runs_of_a_program_write_at_their_end_is_no_save(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched], path: str, kind: str
) -> None:
    """Its event comes when the check is over: without a look at its time, it would bring one check after another."""
    (project.folder / "out").mkdir()
    project.suite = SUITE.replace(
        'kind: python, callable: "agent:answer"', "kind: command, command: [python3, run.py], input: text"
    )
    source = f"import sys, agent, time\nprint(agent.answer(sys.stdin.read()))\n{WRITES.strip().replace('PATH', path)}\n"
    project.write("run.py", source)
    await project.record(agent=ASKS_NOBODY)
    watched = watching()
    await watched.until(lambda: any(isinstance(event, Ignored) for event in watched.events))
    (ignored,) = [event.file for event in watched.events if isinstance(event, Ignored)]
    assert ignored == str(project.folder / kind)
    told = watched.events.index(Ignored(file=ignored))
    saved = (str(project.folder / "run.py"),)
    for number in (1, 2):
        project.write("run.py", source + f"# {number}\n")
        await watched.until(lambda n=number: [change.files for change in watched.changes].count(saved) == n)
    assert {event.files for event in watched.events[told:] if isinstance(event, Saved)} == {saved}


async def test_a_person_who_saves_often_while_runs_are_made_is_not_taken_for_them(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    project.suite = SUITE.replace(
        'kind: python, callable: "agent:answer"', "kind: command, command: [python3, run.py], input: text"
    )
    source = "import sys, agent, pathlib, time\n# \nwhile not pathlib.Path('go').exists():\n    time.sleep(0.01)\n"
    source += "print(agent.answer(sys.stdin.read()))\n"
    project.write("run.py", source)
    project.write("go", "")
    await project.record(agent=ASKS_NOBODY)
    (project.folder / "go").unlink()
    watched = watching()
    for number in range(1, 7):
        await watched.until(lambda n=number: sum(isinstance(event, Saved) for event in watched.events) >= n)
        project.write("run.py", source.replace("# ", f"# {number}"))
    await watched.until(lambda: sum(isinstance(event, Saved) for event in watched.events) >= 7)
    project.write("go", "")
    await watched.change(1)
    assert not [event for event in watched.events if isinstance(event, Ignored)]


async def test_a_file_that_a_person_saves_between_two_checks_is_watched_again(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    project.suite = SUITE.replace(
        'kind: python, callable: "agent:answer"', "kind: command, command: [python3, run.py], input: text"
    )
    writes = WRITES.strip().replace("PATH", "'state.json'")
    source = f"import sys, agent, time\nprint(agent.answer(sys.stdin.read()))\n{writes}\n"
    project.write("run.py", source)
    await project.record(agent=ASKS_NOBODY)
    watched = watching()
    state = str(project.folder / "state.json")
    await watched.until(lambda: Ignored(file=state) in watched.events)
    number = len(watched.changes)
    project.write("run.py", source + "# a last check\n")
    await watched.until(lambda: len(watched.changes) > number and watched.changes[-1].files[-1].endswith("run.py"))
    number = len(watched.changes)
    project.write("state.json", "mine")
    await watched.until(lambda: len(watched.changes) > number)
    assert watched.changes[number].files == (state,)


async def test_what_an_agent_reads_and_writes_itself_is_no_save(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    memory = "import pathlib, time\ndef remember():\n    file = pathlib.Path(__file__).parent / 'memory.txt'\n"
    memory += "    file.write_text(file.read_text()[:9] + str(time.time_ns()))\n"
    project.write("memory.txt", "")
    await project.record(
        memory=memory,
        agent="import memory" + AGENT.replace("    return", "    memory.remember()\n    return"),
    )
    watched = watching()
    # What it reads is known from the first check on.
    await watched.change(1)
    project.edit("def answer", "\n\ndef answer")
    await watched.until(lambda: any(isinstance(event, Ignored) for event in watched.events))
    (ignored,) = [event.file for event in watched.events if isinstance(event, Ignored)]
    assert ignored == str(project.folder / "memory.txt")


async def test_a_file_that_is_new_in_a_folder_that_the_agent_lists_counts(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    """Skills and prompts are often read by a pattern."""
    skills = "import pathlib\ndef read(prompt):\n    folder = pathlib.Path(__file__).parent / 'skills'\n"
    skills += "    return prompt + ''.join(file.read_text() for file in sorted(folder.rglob('*.md')))\n"
    (project.folder / "skills").mkdir()
    (project.folder / "other").mkdir()
    project.write("skills/one.md", "")
    lists = "import skills" + AGENT.replace(
        "    return ask(messages).lower()", "    return skills.read(ask(messages).lower())"
    )
    await project.record(skills=skills, agent=lists)
    watched = watching()
    await watched.change(1)
    project.write("other/two.md", "HELLO")
    project.write("skills/two.md", "HELLO")
    second = await watched.change(2)
    assert (second.files, effects(second)["shouts"]) == ((str(project.folder / "skills" / "two.md"),), "passes")
    (project.folder / "skills" / "two.md").unlink()
    assert effects(await watched.change(3))["shouts"] == "unchanged"
    (project.folder / "more").mkdir()
    project.write("more/three.md", "HELLO")
    (project.folder / "more").rename(project.folder / "skills" / "more")
    fourth = await watched.change(4)
    assert (fourth.files, effects(fourth)["shouts"]) == ((str(project.folder / "skills/more/three.md"),), "passes")


@pytest.mark.sweep
@either_capture
async def test_runs_that_need_the_model_ask_it_on_demand(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    project.edit("Shout it.", "Shout it!")
    change = await watched.change(2)
    assert change.needs_model == 2
    asked = len(server.requests)
    await watched.watch.ask_model(CheckOptions(live=True))
    live = await watched.change(3)
    assert (live.needs_model, live.requests) == (0, 2)
    assert len(live.runs) == 2
    assert len(server.requests) == asked + 2
    assert watched.watch.changed_tests() == ()


async def test_what_passed_without_the_model_stays_when_others_ask_it(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    shout = 'says = "Shout it!" if "please" in prompt else "Shout it."\n    messages +='
    project.edit("messages +=", shout)
    project.edit('"content": "Shout it."', '"content": says')
    project.edit(".lower()", "")
    while "passes" not in effects(watched.changes[-1]).values():
        await watched.change(len(watched.changes) + 1)
    assert effects(watched.changes[-1]) == {"shouts": "passes", "polite": "needs_model"}
    passed = of(watched.changes[-1], "shouts").after
    before = len(watched.changes)
    await watched.watch.ask_model(CheckOptions(live=True))
    live = await watched.change(before + 1)
    assert effects(live) == {"shouts": "passes", "polite": "fails"}
    assert of(live, "shouts").after == passed
    assert project.store.run(passed).status == "passed"


async def test_a_service_that_ends_is_why_nothing_could_be_run(server: ScriptedServer, project: Project) -> None:
    await project.record()
    gone = "{command: [python3, -c, 'raise SystemExit(3)'], ready: {log: up}}"
    project.edit("name: Echo", f"name: Echo\nservices: {{gone: {gone}}}", "echo.suite.yaml")
    change = await project.check()
    assert "gone" in change.error


async def test_a_key_that_was_withheld_is_no_fault_of_the_code(server: ScriptedServer, project: Project) -> None:
    """A client that goes its own way is refused; that it fails then says nothing of its code."""
    refuses = MODEL.replace('os.environ["OPENAI_BASE_URL"]', f'"{server.url}"').replace(
        "def ask(messages):",
        "class AuthenticationError(Exception): pass\ndef ask(messages):\n"
        "    if os.environ['OPENAI_API_KEY'] == 'agenteval-recorded': raise AuthenticationError('401')",
    )
    project.suite = SUITE.replace("capture: model", "capture: none")
    await project.record(model=refuses)
    assert set(effects(await project.check()).values()) == {"needs_model"}


async def test_a_model_that_is_asked_at_import_is_why_no_run_can_be_made(
    server: ScriptedServer, project: Project
) -> None:
    """Its key is withheld then: that the server refuses it is nothing to correct."""
    refusing = ScriptedServer(
        lambda request: Answer(status=401 if "agenteval-recorded" in request.headers["authorization"] else 200)
    )
    asks = "import httpx, os\nHEADERS = {'authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}\n"
    async with refusing:
        asks += f"httpx.post('{refusing.url}/chat/completions', json={{}}, headers=HEADERS).raise_for_status()\n"
        await project.record(agent=asks + AGENT)
        change = await project.check()
    assert "401" in change.error
    assert change.fix.startswith("its module asks a model when it is imported")


async def test_one_limit_on_cost_holds_for_all_saves(
    server: ScriptedServer, project: Project, watching: Callable[..., Watched]
) -> None:
    await project.record()
    two = 2 * (1000 * 2.5 + 100 * 10) / 1e6
    watched = watching(live=CheckOptions(live=True, max_cost=two * 1.5))
    await watched.change(1)
    asked = len(server.requests)
    for number, text in enumerate(("Shout it!", "Shout it!!", "Shout it!!!"), 2):
        project.edit("Shout it." if number == 2 else text[:-1], text)
        await watched.change(number)
    last = watched.changes[-1]
    assert set(effects(last).values()) == {"needs_model"}
    assert len(server.requests) - asked <= 4
    paid = len(server.requests)
    await watched.watch.ask_model(CheckOptions(live=True, max_cost=two * 1.5))
    assert len(server.requests) <= paid + 1


async def test_a_test_that_was_never_run_is_counted_and_not_run(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    criterion = SUITE[SUITE.index("    criteria:") : SUITE.index("  - id: polite")]
    project.edit("tests:\n", f"tests:\n  - id: new\n    prompt: hello\n{criterion}", "echo.suite.yaml")
    asked = len(server.requests)
    watched = watching()
    assert len((await watched.change(1)).runs) == 2
    assert isinstance(watched.events[0], Watching)
    assert watched.events[0].missing == 1
    assert [test for _, test in watched.watch.changed_tests()] == ["new"]
    assert len(server.requests) == asked


async def test_who_asks_the_model_while_runs_are_made_asks_for_these(
    server: ScriptedServer, project: Project, watching: Callable[[], Watched]
) -> None:
    await project.record()
    watched = watching()
    await watched.change(1)
    project.edit("Shout it.", "Shout it!")
    await watched.until(lambda: sum(isinstance(event, Saved) for event in watched.events) == 2)
    await watched.watch.ask_model(CheckOptions(live=True))
    assert (await watched.change(2)).needs_model == 2
    live = await watched.change(3)
    assert (live.needs_model, live.requests, live.files) == (0, 2, (str(project.folder / "agent.py"),))
