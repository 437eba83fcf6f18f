"""What an agent did before it raised is kept, also where a function calls a framework, and gives nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Run, skip_without

PYDANTIC = """
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

def model(messages, info):
    step = sum(isinstance(one, ModelResponse) for one in messages)
    call = ToolCallPart(("find", "lookup", "broken")[step], {"q": "socks"}, tool_call_id="c%d" % step)
    return ModelResponse(parts=[TextPart("let me see"), call])

agent = Agent(FunctionModel(model))

@agent.tool_plain
def find(q: str) -> str:
    return "found"

@agent.tool_plain(retries=2)
def lookup(q: str) -> str:
    raise ModelRetry("try another")

@agent.tool_plain
def broken(q: str) -> str:
    raise ValueError("db down")

def answer(prompt):
    return agent.run_sync(prompt).output

async def later(prompt):
    return (await agent.run(prompt)).output
"""
LANGGRAPH = """
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph

def model(state):
    calls = [{"name": "broken", "args": {"q": "socks"}, "id": "c1"}]
    if not any(isinstance(one, AIMessage) for one in state["messages"]):
        calls = [{"name": "find", "args": {"q": "socks"}, "id": "c0"}]
    return {"messages": [AIMessage("let me see", tool_calls=calls)]}

def broken(q):
    raise ValueError("db down")

def tools(state):
    call = state["messages"][-1].tool_calls[0]
    result = "found" if call["name"] == "find" else broken(**call["args"])
    return {"messages": [ToolMessage(result, tool_call_id=call["id"])]}

graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_node("tools", tools)
graph.add_edge(START, "model")
graph.add_edge("model", "tools")
graph.add_edge("tools", "model")
agent = graph.compile()

def answer(prompt):
    return agent.invoke({"messages": [HumanMessage(prompt)]})["messages"][-1].content

async def later(prompt):
    return (await agent.ainvoke({"messages": [HumanMessage(prompt)]}))["messages"][-1].content
"""
AGENTS = """
from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)

class Fake(Model):
    calls = 0
    async def get_response(self, *args, **named):
        self.calls += 1
        name = ("find", "broken")[self.calls - 1]
        call = ResponseFunctionToolCall(
            arguments='{"q": "socks"}', call_id="c%d" % (self.calls - 1), name=name, type="function_call"
        )
        return ModelResponse([call], Usage(), None)
    def stream_response(self, *args, **named):
        raise NotImplementedError

@function_tool
def find(q: str) -> str:
    return "found"

@function_tool(failure_error_function=None)
def broken(q: str) -> str:
    raise ValueError("db down")

@function_tool(name_override="broken")
def caught(q: str) -> str:
    raise ValueError("db down")

class Ends(Fake):
    async def get_response(self, *args, **named):
        if self.calls < 2:
            return await super().get_response(*args, **named)
        text = ResponseOutputText(text="sorry", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse([message], Usage(), None)

def caught_answer(prompt):
    return Runner.run_sync(Agent("shop", model=Ends(), tools=[find, caught]), prompt)

agent = Agent("shop", model=Ends(), tools=[find, caught])

def answer(prompt):
    return Runner.run_sync(Agent("shop", model=Fake(), tools=[find, broken]), prompt).final_output

async def later(prompt):
    return (await Runner.run(Agent("shop", model=Fake(), tools=[find, broken]), prompt)).final_output
"""
FRAMEWORKS = {"pydantic_ai": PYDANTIC, "langgraph": LANGGRAPH, "agents": AGENTS}


@pytest.mark.sweep
@pytest.mark.parametrize("function", ["answer", "later"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_calls_before_the_one_that_raised(framework: str, function: str, tmp_path: Path, run_agent: Run) -> None:
    skip_without(framework)
    (tmp_path / "shop_agent.py").write_text(FRAMEWORKS[framework])
    ran = await run_agent({"kind": "python", "callable": f"shop_agent:{function}"})
    assert ran.transcript.error is not None
    assert "ValueError: db down (shop_agent.py, line" in ran.transcript.error.message or framework == "agents"
    calls: list[tuple[Any, ...]] = [(call.name, call.status) for call in ran.transcript.tool_calls]
    assert calls[0] == ("find", "ok")
    assert calls[-1] == ("broken", "error")
    assert ran.transcript.tool_calls[0].result == "found"
    assert "db down" in str(ran.transcript.tool_calls[-1].result)
    assert len(calls) == (3 if framework == "pydantic_ai" else 2)


@pytest.mark.parametrize("target", ["caught_answer", "agent"])
async def test_what_a_tool_raised_is_kept_where_the_framework_caught_it(
    target: str, tmp_path: Path, run_agent: Run
) -> None:
    skip_without("agents")
    (tmp_path / "shop_agent.py").write_text(AGENTS)
    transcript = (await run_agent({"kind": "python", "callable": f"shop_agent:{target}"})).transcript
    assert transcript.final_output == "sorry"
    found, broken = transcript.tool_calls
    assert (found.status, found.traceback, broken.status) == ("ok", None, "error")
    assert str(broken.result).startswith("An error occurred while running the tool."), "as the model saw it"
    assert broken.traceback is not None
    raised = broken.traceback.exceptions[0]
    assert (raised.type, raised.message, raised.frames[-1].file) == ("ValueError", "db down", "shop_agent.py")


@pytest.mark.parametrize("target", ["agent"])
async def test_an_object_whose_model_cannot_stream(target: str, tmp_path: Path, run_agent: Run) -> None:
    skip_without("pydantic_ai")
    (tmp_path / "shop_agent.py").write_text(PYDANTIC)
    ran = await run_agent({"kind": "python", "callable": f"shop_agent:{target}"})
    assert [(call.name, call.status) for call in ran.transcript.tool_calls][0::2] == [
        ("find", "ok"),
        ("broken", "error"),
    ]
