"""What may be named of pydantic-ai, openai-agents and LangGraph: run contexts, factories, models that can't stream."""

from __future__ import annotations

import contextlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from agents import Agent as OpenAIAgent
from agents import ModelResponse, RunContextWrapper, Usage
from agents.mcp import MCPServerStdio
from agents.models.interface import Model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.runtime import Runtime
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelResponse as PydanticResponse
from pydantic_ai.messages import TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


@dataclass
class Deps:
    name: str = "nobody"
    tags: list[str] = field(default_factory=list)


@dataclass
class Needs:
    customer: str
    limit: int = 3


def _said(messages, info):
    return PydanticResponse(parts=[TextPart(info.instructions or "none")])


def _pydantic(kind):
    agent = Agent(FunctionModel(_said), deps_type=kind)

    @agent.instructions
    def instructions(ctx: RunContext[Any]) -> str:
        return repr(ctx.deps)

    return agent


class Database:
    def __init__(self, path: str = "shop.db"):
        self.path = path

    def __repr__(self):
        return "Database(" + repr(self.path) + ")"


@dataclass
class Inner:
    deps: Deps
    database: Database


@dataclass
class Outer:
    database: Database
    inner: Inner


@dataclass
class NeedsPath:
    folder: Path


outer = _pydantic(Outer)
nested = _pydantic(Inner)
needs_path = _pydantic(NeedsPath)
deps = _pydantic(Deps)
needs = _pydantic(Needs)
number = _pydantic(int)


class Once(Model):
    async def get_response(self, system_instructions, *positional, **named):
        text = ResponseOutputText(text=system_instructions or "", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *positional, **named):
        raise NotImplementedError("no stream")


def _instructions(ctx: RunContextWrapper[Deps], agent: Any) -> str:
    return repr(ctx.context)


openai = OpenAIAgent[Deps](name="a", instructions=_instructions, model=Once())


def make_openai():
    return OpenAIAgent(name="a", instructions=_instructions, model=Once())


def _node(state: MessagesState, runtime: Runtime[Deps]):
    return {"messages": [{"role": "assistant", "content": repr(runtime.context)}]}


def _graph(state: Any, node: Any, memory: Any = None, **more: Any) -> Any:
    builder = StateGraph(state, **more)
    builder.add_node("node", node)
    builder.add_edge("__start__", "node")
    return builder.compile(checkpointer=memory)


graph = _graph(MessagesState, _node, context_schema=Deps)
remembers = _graph(
    MessagesState,
    lambda state: {"messages": [{"role": "assistant", "content": str(len(state["messages"]))}]},
    InMemorySaver(),
)


def _noting(state: MessagesState, runtime: Runtime[None]):
    """As graphs do that LangGraph's server runs, which gives them a store."""
    runtime.store.put(("notes",), "last", {"text": state["messages"][-1].content})
    notes = [item.value["text"] for item in runtime.store.search(("notes",))]
    return {"messages": [{"role": "assistant", "content": str(notes)}]}


notes = _graph(MessagesState, _noting)


class Own(TypedDict, total=False):
    question: str
    documents: list
    answer: str
    talk: list


own = _graph(
    Own,
    lambda state: {
        "answer": "A: " + state["question"],
        "documents": [1, 2],
        "talk": [{"role": "assistant", "content": "I look"}],
    },
)


def make_graph():
    return graph


async def make_later(config):
    return _pydantic(Deps) if config is not None else None


@contextlib.asynccontextmanager
async def opened():
    yield graph


class Bot:
    def __init__(self, greeting="Hi"):
        self.greeting = greeting

    def chat(self, message):
        return self.greeting + " " + message


bot = Bot()


class Wrong:
    pass


def make_deps(settings):
    return Deps("made", [settings["tag"]])


def answers():
    return json.dumps("no prompt wanted")


class Order(BaseModel):
    total: int
    note: str


structured = Agent(
    FunctionModel(
        lambda messages, info: PydanticResponse(
            parts=[ToolCallPart(info.output_tools[0].name, {"total": 3, "note": str(messages[-1].parts[-1].content)})]
        )
    ),
    output_type=Order,
)


def _retried(messages, info):
    if len(messages) == 1:
        return PydanticResponse(parts=[TextPart("three")])
    return PydanticResponse(parts=[ToolCallPart(info.output_tools[0].name, {"total": 3, "note": "again"})])


retried = Agent(FunctionModel(_retried), output_type=Order)


class Repeats(Once):
    async def get_response(self, *positional, **named):
        return await super().get_response(json.dumps(positional[1] if len(positional) > 1 else named["input"]))


class CallsTool(Once):
    """Calls the first tool that it is offered, or hands over, then says what the tool gave."""

    async def get_response(
        self, system_instructions, input, model_settings, tools, output_schema, handoffs, *more, **named
    ):
        results = [item["output"] for item in input if item.get("type") == "function_call_output"]
        if results and not handoffs and tools and "found" in str(results):
            return await super().get_response(json.dumps(results))
        name = handoffs[0].tool_name if handoffs else tools[0].name
        arguments = "{}" if handoffs else '{"item": "socks"}'
        call = ResponseFunctionToolCall(arguments=arguments, call_id="c" + name, name=name, type="function_call")
        return ModelResponse(output=[call], usage=Usage(), response_id=None)


def _shop():
    return MCPServerStdio({"command": sys.executable, "args": [__file__, "serve"]}, name="shop")


with_server = OpenAIAgent(name="a", model=CallsTool(), mcp_servers=[_shop()])
_second = OpenAIAgent(name="second", model=CallsTool(), mcp_servers=[_shop()])
hands_over = OpenAIAgent(name="first", model=CallsTool(), handoffs=[_second])


repeating = OpenAIAgent(name="a", model=Repeats())


def steps(prompt):
    """Streams what it does, and its state at the end."""
    yield {"type": "tool_call", "id": "1", "name": "find", "arguments": {"q": prompt}}
    yield {"type": "tool_result", "id": "1", "result": "socks"}
    yield "let me see"
    yield {"state": {"answer": "A: " + prompt}}


def ordered(customer, count=1, *, prompt):
    return {"reply": {"text": f"{customer} {count} {prompt}"}}


def _serve():
    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:  # mcp 1.x
        from mcp.server.fastmcp import FastMCP as Server
    server = Server("shop")

    @server.tool()
    def find(item: str) -> str:
        return "found " + item

    server.run()


if __name__ == "__main__":
    _serve()
