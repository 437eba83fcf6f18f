"""Tools of Python frameworks that get their recorded results after a save, in place of running: real packages, and a
model server on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer, stream_of

from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.check import CodeCheck
from agenteval_tui.runs.change.model import CodeChange
from agenteval_tui.runs.change.recorded_runs import recorded_runs
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite

TOOL = """
import pathlib
def acted(what):
    with pathlib.Path(__file__).with_name("acted.txt").open("a") as file:
        file.write(what + "\\n")
"""
PYDANTIC = '''
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from tool import acted
agent = Agent(OpenAIChatModel("gpt-4o"), instructions="Help.", deps_type=dict)
@agent.tool
def cancel(ctx: RunContext[dict], order: str) -> RESULT:
    """Cancel an order."""
    acted(order)
    return VALUE
'''
OPENAI_AGENTS = '''
from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from tool import acted
set_tracing_disabled(True)
@function_tool
def cancel(order: str) -> RESULT:
    """Cancel an order."""
    acted(order)
    return VALUE
agent = Agent("desk", instructions="Help.", tools=[cancel], model=OpenAIChatCompletionsModel("gpt-4o", AsyncOpenAI()))
'''
LANGGRAPH = '''
import json, os, urllib.request
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from tool import acted
@tool
def cancel(order: str) -> RESULT:
    """Cancel an order."""
    acted(order)
    return VALUE
def openai(message):
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    calls = [{"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(
        call["args"])}} for call in getattr(message, "tool_calls", ())]
    role = "assistant" if isinstance(message, AIMessage) else "user"
    return {"role": role, "content": message.content, **({"tool_calls": calls} if calls else {})}
def model(state):
    body = json.dumps({"model": "gpt-4o", "messages": [
        {"role": "system", "content": "Help."}, *map(openai, state["messages"])]}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as reply:
        answer = json.load(reply)["choices"][0]["message"]
    calls = [{"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
             for call in answer.get("tool_calls") or ()]
    return {"messages": [AIMessage(answer["content"] or "", tool_calls=calls)]}
graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_node("tools", ToolNode([cancel]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
graph.add_edge("tools", "model")
agent = graph.compile()
'''
AGENTS = {"pydantic_ai": PYDANTIC, "openai_agents": OPENAI_AGENTS, "langgraph": LANGGRAPH}
RESULTS = {"text": ("str", '"It is " + order'), "object": ("dict", '{"order": order, "state": "cancelled"}')}
STATE = """
    state: {acts: {file: acted.txt}}
"""
ACTED = """
      - name: Both are cancelled
        prototype_class: State
        config_uxon: {probe: acts, of: after, metrics: [{type: TextMatch, contains: W2}]}
"""
SUITE = """
name: Desk
agent: desk
agents:
  desk: {kind: python, callable: "agent.py:agent"}
tests:
  - id: cancels
    prompt: Cancel W1 and W2
    criteria:
      - {name: Done, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: Done}]}}
"""


def call(number: int) -> dict[str, Any]:
    function = {"name": "cancel", "arguments": json.dumps({"order": f"W{number}"})}
    return {"index": number - 1, "id": f"call_{number}", "type": "function", "function": function}


def model(request: Request) -> Answer:
    """A model that cancels two orders, and then says so."""
    done = any(message["role"] == "tool" for message in request.json["messages"])
    message = {"role": "assistant", "content": "Done."} if done else {"role": "assistant", "content": None}
    if not done:
        message["tool_calls"] = [call(1), call(2)]
    about = {"id": "c1", "created": 1, "model": "gpt-4o"}
    reason = "stop" if done else "tool_calls"
    if request.json.get("stream"):
        choice = {"index": 0, "delta": message, "finish_reason": None}
        end = {"index": 0, "delta": {}, "finish_reason": reason}
        return stream_of(*({**about, "object": "chat.completion.chunk", "choices": [one]} for one in (choice, end)))
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = {**about, "object": "chat.completion", "choices": choices, "usage": usage}
    return Answer(body=json.dumps(body))


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer(model) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "planted-key-of-the-user-0001")
        yield running


@dataclass
class Project:
    folder: Path
    store: Store

    def plan(self) -> Plan:
        loaded = load_suite(self.folder / "desk.suite.yaml")
        return make_plan([loaded], PlanOptions(trust=True), user_agents={}, store=self.store)

    async def record(
        self, agent: str, returns: str = "str", value: str = '"It is " + order', suite: str = SUITE
    ) -> None:
        (self.folder / "tool.py").write_text(TOOL, encoding="utf-8")
        text = agent.replace("RESULT", returns).replace("VALUE", value)
        (self.folder / "agent.py").write_text(text, encoding="utf-8")
        (self.folder / "desk.suite.yaml").write_text(suite, encoding="utf-8")
        await Engine(self.plan(), self.store, lambda _: None).run()

    async def check(self, *, tools_recorded: bool) -> CodeChange:
        plan = self.plan()
        check = CodeCheck(plan, self.store, tools_recorded=tools_recorded)
        try:
            return await check.run(recorded_runs(self.store, plan.runs).runs)
        finally:
            await check.close()

    @property
    def acted(self) -> list[str]:
        return sorted((self.folder / "acted.txt").read_text(encoding="utf-8").split())


@pytest.fixture
def project(tmp_path: Path, store: Store) -> Project:
    return Project(tmp_path, store)


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("framework", AGENTS)
async def test_tools_that_were_recorded_do_not_run(
    server: ScriptedServer, project: Project, framework: str, kind: str
) -> None:
    await project.record(AGENTS[framework], *RESULTS[kind])
    assert project.acted == ["W1", "W2"]
    asked = len(server.requests)
    change = await project.check(tools_recorded=True)
    assert (change.unchanged, change.answers, change.real_tools) == (1, 2, ()), change
    assert project.acted == ["W1", "W2"]
    (before, after) = [project.store.transcript(run) for run in (change.runs[0].before, change.runs[0].after)]
    assert [call.result for call in after.tool_calls] == [call.result for call in before.tool_calls]
    real = await project.check(tools_recorded=False)
    assert (real.unchanged, real.real_tools) == (1, ())
    assert project.acted == ["W1", "W1", "W2", "W2"]
    assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("framework", "returns", "value"),
    [
        # What a tool raised is no result: the model was told something else, or the framework asks it again.
        ("openai_agents", "str", "1 / 0"),
        # The state of the graph may be what it changes.
        ("langgraph", "str", '"It is " + order + str(len(state["messages"]))'),
    ],
)
async def test_a_tool_that_has_no_equal_recorded_result_runs_and_is_named(
    server: ScriptedServer, project: Project, framework: str, returns: str, value: str
) -> None:
    agent = AGENTS[framework]
    if framework == "langgraph":
        agent = agent.replace("def cancel(order: str)", "def cancel(order: str, state: Annotated[dict, InjectedState])")
        agent = "from typing import Annotated\nfrom langgraph.prebuilt import InjectedState\n" + agent
    await project.record(agent, returns, value)
    change = await project.check(tools_recorded=True)
    assert (change.unchanged, change.real_tools) == (1, ("cancel",)), change
    assert project.acted == ["W1", "W1", "W2", "W2"]


async def test_a_tool_that_is_an_agent_runs_and_asks_the_recording(server: ScriptedServer, project: Project) -> None:
    inner = OPENAI_AGENTS.replace("agent = Agent(", "helper = Agent(").replace('"desk"', '"helper"')
    outer = (
        "agent = Agent('desk', instructions='Ask.', tools=[helper.as_tool('cancel', 'Cancels orders.')],\n"
        "              model=OpenAIChatCompletionsModel('gpt-4o', AsyncOpenAI()))\n"
    )
    calls = {"name": "cancel", "arguments": '{"input": "Cancel W1 and W2"}'}

    def delegating(request: Request) -> Answer:
        system, *rest = request.json["messages"]
        if system["content"] != "Ask." or any(message["role"] == "tool" for message in rest):
            return model(request)
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": "call_0", "type": "function", "function": calls}],
        }
        about = {"id": "c1", "created": 1, "model": "gpt-4o", "object": "chat.completion.chunk"}
        return stream_of({**about, "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})

    server._handler = delegating
    await project.record(inner + outer)
    assert project.acted == ["W1", "W2"]
    text = (project.folder / "agent.py").read_text(encoding="utf-8")
    (project.folder / "agent.py").write_text(text.replace("instructions='Help.'", ""), encoding="utf-8")
    change = await project.check(tools_recorded=True)
    assert (change.unchanged, change.answers) == (1, 4), change
    assert project.acted == ["W1", "W2"]


async def test_tools_of_a_function_that_can_not_be_led_are_named(server: ScriptedServer, project: Project) -> None:
    agent = """
from tool import acted
def agent(prompt):
    acted("W1")
    yield {"type": "tool_call", "id": "1", "name": "cancel", "arguments": {"order": "W1"}}
    yield {"type": "tool_result", "id": "1", "result": VALUE}
    yield {"type": "text", "text": "Done."}
"""
    await project.record(agent, value='"It is W1"')
    change = await project.check(tools_recorded=True)
    assert (change.unchanged, change.real_tools) == (1, ("cancel",)), change
    assert project.acted == ["W1", "W1"]


async def test_the_state_that_tools_would_leave_is_not_checked(server: ScriptedServer, project: Project) -> None:
    suite = SUITE.replace("    criteria:\n", f"{STATE.strip(chr(10))}\n    criteria:\n") + ACTED.lstrip("\n")
    await project.record(PYDANTIC, suite=suite)
    real = await project.check(tools_recorded=False)
    assert (real.unchanged, real.needs_model) == (1, 0), real
    text = (project.folder / "tool.py").read_text(encoding="utf-8")
    (project.folder / "acted.txt").unlink()
    (project.folder / "tool.py").write_text(
        text.replace("file.write(what", 'file.write(what and "W0"'), encoding="utf-8"
    )
    broken = await project.check(tools_recorded=False)
    assert (broken.fails, broken.runs[0].criterion) == (1, "Both are cancelled"), broken
    recorded = await project.check(tools_recorded=True)
    assert (recorded.needs_model, recorded.fails) == (1, 0), recorded
    assert "tools did not run" in recorded.runs[0].reason


async def test_the_state_that_a_program_leaves_is_checked_as_its_tools_run(
    server: ScriptedServer, project: Project
) -> None:
    suite = SUITE.replace("    criteria:\n", f"{STATE.strip(chr(10))}\n    criteria:\n") + ACTED.lstrip("\n")
    suite = suite.replace('{kind: python, callable: "agent.py:agent"}', "{kind: command, command: [python, agent.py]}")
    await project.record("from tool import acted\nacted('W2')\nprint('Done')\n", suite=suite)
    change = await project.check(tools_recorded=True)
    assert (change.unchanged, change.runs[0].reason) == (1, ""), change
    assert project.acted == ["W2", "W2"]
