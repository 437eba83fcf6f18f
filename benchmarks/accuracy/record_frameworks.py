"""Runs agents of real frameworks through the recording proxy, against aimock. Checks whether the transcript agrees with
the framework's own report, and whether the recording can answer the same program without a server.

    python benchmarks/accuracy/record_frameworks.py      # needs node, and the packages that it names

docs/record.md has the table.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "servers"))

from aimock import Aimock

from agenteval_tui.agents.recording.cassette import Cassette, lines, parse
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.playback import Playback
from agenteval_tui.agents.recording.providers import environment
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.formats.importers.message_formats import transcript_of as transcript_in
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript

CITY = {"city": "Oslo"}
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "Let me look.",
            "toolCalls": [{"name": "get_weather", "arguments": CITY}, {"name": "get_time", "arguments": CITY}],
        },
    },
    {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": "4 C in Oslo at 12:00."}},
]
SYSTEM, ASKED = "Be brief.", "weather?"
Agent = Callable[[str, bool], Awaitable[Any]]


def get_weather(city: str) -> str:
    """The weather of a city."""
    return "4 C"


def get_time(city: str) -> str:
    """The time in a city."""
    return "12:00"


async def pydantic_ai(model: str, stream: bool) -> Any:
    agent = importlib.import_module("pydantic_ai").Agent(model, instructions=SYSTEM, tools=[get_weather, get_time])
    if not stream:
        return json.loads((await agent.run(ASKED)).all_messages_json())
    async with agent.iter(ASKED) as run:
        async for node in run:
            if agent.is_model_request_node(node):
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass
    return json.loads(run.result.all_messages_json())


async def openai_agents(api: str, stream: bool) -> Any:
    agents = importlib.import_module("agents")
    agents.set_tracing_disabled(True)
    client = importlib.import_module("openai").AsyncOpenAI()
    kinds = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}
    tools = [agents.function_tool(get_weather), agents.function_tool(get_time)]
    agent = agents.Agent(name="weather", instructions=SYSTEM, model=kinds[api]("gpt-4o", client), tools=tools)
    if stream:
        result = agents.Runner.run_streamed(agent, ASKED)
        async for _ in result.stream_events():
            pass
    else:
        result = await agents.Runner.run(agent, ASKED)
    return [{"role": "system", "content": SYSTEM}, *result.to_input_list()]


async def langgraph(model: str, stream: bool) -> Any:
    messages = importlib.import_module("langchain_core.messages")
    graphs = importlib.import_module("langgraph.graph")
    prebuilt = importlib.import_module("langgraph.prebuilt")
    tool = importlib.import_module("langchain_core.tools").tool
    module, _, name = model.partition(":")
    package = importlib.import_module(module)
    kind = package.ChatOpenAI if module == "langchain_openai" else package.ChatAnthropic
    tools = [tool(get_weather), tool(get_time)]
    chat = kind(model=name, streaming=stream).bind_tools(tools)

    async def call(state: Any) -> Any:
        return {"messages": [await chat.ainvoke(state["messages"])]}

    graph = graphs.StateGraph(graphs.MessagesState)
    graph.add_node("call", call)
    graph.add_node("tools", prebuilt.ToolNode(tools))
    graph.add_edge(graphs.START, "call")
    graph.add_conditional_edges("call", prebuilt.tools_condition)
    graph.add_edge("tools", "call")
    asked = [messages.SystemMessage(SYSTEM), messages.HumanMessage(ASKED)]
    return messages.messages_to_dict((await graph.compile().ainvoke({"messages": asked}))["messages"])


AGENTS: tuple[tuple[str, Agent, str], ...] = (
    ("pydantic-ai, Chat Completions", pydantic_ai, "openai-chat:gpt-4o"),
    ("pydantic-ai, Responses", pydantic_ai, "openai-responses:gpt-4o"),
    ("pydantic-ai, Anthropic", pydantic_ai, "anthropic:claude-sonnet-4-0"),
    ("openai-agents, Chat Completions", openai_agents, "chat"),
    ("openai-agents, Responses", openai_agents, "responses"),
    ("LangGraph, ChatOpenAI", langgraph, "langchain_openai:gpt-4o"),
    ("LangGraph, ChatAnthropic", langgraph, "langchain_anthropic:claude-sonnet-4-0"),
)


def told(transcript: Transcript) -> list[Any]:
    """The compared parts: roles, texts, and calls with their arguments."""
    return [
        (
            one["role"],
            one["content"],
            [
                (call["function"]["name"], json.loads(call["function"]["arguments"]))
                for call in one.get("tool_calls", ())
            ],
        )
        for one in to_openai_messages(transcript)
    ]


async def measure(proxy: Proxy, servers: dict[str, str], agent: Agent, model: str, stream: bool) -> str:
    """The result for one agent, in words."""
    session = Session()
    os.environ.update(environment(proxy.open(session), servers, {}))
    try:
        reported = told(transcript_in(await agent(model, stream)))
    except ImportError as error:
        return f"not installed: {error.name}"
    same = "equal" if told(transcript_of(session.exchanges())) == reported else "DIFFERENT"
    replayed = Session(answers=Playback(parse("".join(lines(Cassette(session.exchanges()))), "recorded")))
    os.environ.update(environment(proxy.open(replayed), servers, {}))
    await agent(model, stream)
    missed = "; ".join(one.said for one in replayed.misses) or ("asked a server" if replayed.live_requests else "")
    return f"{same}, {f'MISSED: {missed}' if missed else 'replays'}"


async def main() -> None:
    os.environ |= {"OPENAI_API_KEY": "sk-none", "ANTHROPIC_API_KEY": "sk-none"}
    with tempfile.TemporaryDirectory() as folder, Aimock(FIXTURES, Path(folder)) as server:
        root = server.url.removesuffix("/v1")
        servers = {"openai": server.url, "anthropic": root, "gemini": root}
        proxy = Proxy(servers)
        await proxy.start()
        for name, agent, model in AGENTS:
            found = [await measure(proxy, servers, agent, model, stream) for stream in (False, True)]
            print(f"| {name} | {found[0]} | {found[1]} |", flush=True)
        await proxy.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main())
