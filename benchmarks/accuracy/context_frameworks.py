"""Whether a change of what the model sees is named in agents of real frameworks, recorded through the proxy.

    python benchmarks/accuracy/context_frameworks.py      # needs the packages that it names

An agent has a conversation of six turns, in each of which it calls a tool. Before one of the turns it changes its
context with the framework's own means: it drops the oldest turn, puts a summary in its place, shortens the first result
of its tool, moves a message of the user to the front, has another list of tools, or another system prompt. Named means:
that request is the first with such a change, of that kind, and the lost text is named.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "servers"))

from scripted import Answer, Request, ScriptedServer

from agenteval_tui.agents.process.protocol import EventReader
from agenteval_tui.agents.process.python_model_requests import watching
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.providers import environment
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.transcripts.model_request import ModelRequests, content_of
from agenteval_tui.transcripts.request_changes import changes_since

CITIES = ("Oslo", "Rome", "Bern", "Kyiv", "Lima", "Cairo")
SYSTEM = "You know the weather.\nYou are brief."
SUMMARY = "Summary so far: they asked about cities."
MASK = "[old result]"
LOST_RESULT = "weather of Oslo: 4 C, wind from the north, no rain until tomorrow"
KINDS = {
    "truncation": ("dropped", "Oslo"),
    "compaction": ("replaced", "Oslo"),
    "masking": ("masked", LOST_RESULT),
    "reordering": ("moved", "Rome"),
    "changed tools": ("tool_removed", ""),
    "changed system prompt": ("system", "You are brief."),
}
Change = Callable[[str, list[Any]], list[Any]]


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"weather of {city}: 4 C, wind from the north, no rain until tomorrow"


def get_time(city: str) -> str:
    """The time in a city."""
    return "12:00"


def model(request: Request) -> Answer:
    """A model that calls the tool for each question."""
    messages = request.json["messages"]
    message: dict[str, Any] = {"role": "assistant", "content": f"Answer {len(messages)}: {messages[-1]['content']}"}
    if messages[-1]["role"] == "user":
        city = str(messages[-1]["content"]).rpartition(" ")[2]
        function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": f"call_{len(messages)}_{city}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if message["content"] else "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return Answer(body=json.dumps(answer))


def question(city: str) -> str:
    return f"Please tell me about {city}"


async def openai_agents(plant: str, turn: int) -> None:
    agents = importlib.import_module("agents")
    agents.set_tracing_disabled(True)
    client = importlib.import_module("openai").AsyncOpenAI()
    kind = agents.OpenAIChatCompletionsModel("m", client)
    items: list[Any] = []
    for number, city in enumerate(CITIES):
        system, tools = settings(plant, number >= turn)
        offered = [agents.function_tool(one) for one in tools]
        agent = agents.Agent(name="weather", instructions=system, model=kind, tools=offered)
        if number == turn:
            items = changed(plant, items, lambda one: one.get("role") == "user", masked_item, user_item(SUMMARY))
        result = await agents.Runner.run(agent, [*items, user_item(question(city))])
        items = result.to_input_list()


def user_item(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def masked_item(item: Any) -> Any:
    return {**item, "output": MASK} if item.get("type") == "function_call_output" else None


async def langgraph(plant: str, turn: int) -> None:
    messages = importlib.import_module("langchain_core.messages")
    graphs = importlib.import_module("langgraph.graph")
    prebuilt = importlib.import_module("langgraph.prebuilt")
    tool = importlib.import_module("langchain_core.tools").tool
    chat = importlib.import_module("langchain_openai").ChatOpenAI(model="m")
    told: list[Any] = []

    def masked(one: Any) -> Any:
        return one.model_copy(update={"content": MASK}) if isinstance(one, messages.ToolMessage) else None

    for number, city in enumerate(CITIES):
        system, tools = settings(plant, number >= turn)
        offered = [tool(one) for one in tools]
        bound = chat.bind_tools(offered)

        async def call(state: Any, bound: Any = bound, system: str = system) -> Any:
            return {"messages": [await bound.ainvoke([messages.SystemMessage(system), *state["messages"]])]}

        graph = graphs.StateGraph(graphs.MessagesState)
        graph.add_node("call", call)
        graph.add_node("tools", prebuilt.ToolNode(offered))
        graph.add_edge(graphs.START, "call")
        graph.add_conditional_edges("call", prebuilt.tools_condition)
        graph.add_edge("tools", "call")
        if number == turn:
            is_user = lambda one: isinstance(one, messages.HumanMessage)  # noqa: E731
            told = changed(plant, told, is_user, masked, messages.HumanMessage(SUMMARY))
        asked = {"messages": [*told, messages.HumanMessage(question(city))]}
        told = (await graph.compile().ainvoke(asked))["messages"]


async def pydantic_ai(plant: str, turn: int) -> None:
    ai = importlib.import_module("pydantic_ai")
    parts = importlib.import_module("pydantic_ai.messages")
    told: list[Any] = []

    def is_user(one: Any) -> bool:
        return any(isinstance(part, parts.UserPromptPart) for part in one.parts)

    def masked(one: Any) -> Any:
        if not any(isinstance(part, parts.ToolReturnPart) for part in one.parts):
            return None
        return parts.ModelRequest([parts.ToolReturnPart(p.tool_name, MASK, p.tool_call_id) for p in one.parts])

    for number, city in enumerate(CITIES):
        system, tools = settings(plant, number >= turn)
        agent = ai.Agent("openai-chat:m", instructions=system, tools=tools)
        if number == turn:
            summary = parts.ModelRequest([parts.UserPromptPart(SUMMARY)])
            told = changed(plant, told, is_user, masked, summary)
        told = (await agent.run(question(city), message_history=told)).all_messages()


def settings(plant: str, is_planted: bool) -> tuple[str, list[Any]]:
    """The system prompt and the tools."""
    system = SYSTEM.splitlines()[0] if is_planted and plant == "changed system prompt" else SYSTEM
    return system, [get_weather] if is_planted and plant == "changed tools" else [get_weather, get_time]


def changed(
    plant: str, told: list[Any], is_user: Callable[[Any], bool], masked: Callable[[Any], Any], summary: Any
) -> list[Any]:
    """What is told, with the plant."""
    users = [place for place, one in enumerate(told) if is_user(one)]
    if plant == "truncation":
        return told[users[1] :]
    if plant == "compaction":
        return [summary, *told[users[1] :]]
    if plant == "masking":
        place = next(place for place, one in enumerate(told) if masked(one) is not None)
        return [*told[:place], masked(told[place]), *told[place + 1 :]]
    if plant == "reordering":
        return [told[users[1]], *(one for place, one in enumerate(told) if place != users[1])]
    return told


FRAMEWORKS: dict[str, Callable[[str, int], Awaitable[None]]] = {
    "LangGraph": langgraph,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
}
TURNS = (2, 3, 4, 5)


async def recorded(
    proxy: Proxy, url: str, agent: Callable[[str, int], Awaitable[None]], plant: str, turn: int
) -> tuple[ModelRequests, ModelRequests]:
    """The requests of an agent as the proxy saw them, and as the framework's hooks told them."""
    session, reader, recorder = Session(), EventReader(), Recorder(())

    def tell(event: dict[str, Any]) -> None:
        for one in reader.read(event):
            recorder.apply(one)

    before = dict(os.environ)
    os.environ.update(environment(proxy.open(session), {"openai": url}, {}))
    try:
        with watching(tell):
            await agent(plant, turn)
    finally:
        # Whoever measures or tests something else in this process has an environment without a recording.
        os.environ.clear()
        os.environ.update(before)
    captured, told = transcript_of(session.exchanges()).requests, recorder.stored().requests
    assert captured is not None
    assert told is not None
    return captured, told


def is_named(requests: ModelRequests, plant: str, turn: int) -> bool:
    """Whether the request of the turn is the first that does more than grow, of the kind, with the text."""
    for number in range(1, len(requests.references) + 1):
        change, before = changes_since(requests, number), requests.before(number)
        if change is None or before is None or change.grew_only:
            continue
        kind, lost = KINDS[plant]
        texts = [content_of(before.messages[place]) for one in change.changes for place in one.before]
        texts += [one.was for one in change.changes]
        kinds = {one.kind for one in change.changes} - {"added"}
        return number == 2 * turn + 1 and kinds == {kind} and lost in "\n".join(texts)
    return False


def has_alarm(requests: ModelRequests) -> bool:
    changes = [changes_since(requests, number) for number in range(1, len(requests.references) + 1)]
    return any(one is not None and not one.grew_only for one in changes)


async def main() -> None:
    """Print the table."""
    os.environ |= {"OPENAI_API_KEY": "sk-none"}
    for name in ("agents", "langchain_openai", "pydantic_ai"):  # hooks are added to what is imported by then
        importlib.import_module(name)
    async with ScriptedServer(model) as server:
        proxy = Proxy({"openai": server.url})
        await proxy.start()
        print("| framework | requests of | " + " | ".join(KINDS) + " | nothing |\n|" + "---|" * (len(KINDS) + 3))
        for name, agent in FRAMEWORKS.items():
            made = {plant: [await recorded(proxy, server.url, agent, plant, turn) for turn in TURNS] for plant in KINDS}
            untouched = [await recorded(proxy, server.url, agent, "", 9) for _ in range(10)]
            for way, place in (("the proxy", 0), ("its hooks", 1)):
                cells = []
                for plant, both in made.items():
                    named = [is_named(one[place], plant, turn) for one, turn in zip(both, TURNS, strict=True)]
                    cells.append(f"{sum(named)} of {len(named)}")
                alarms = [has_alarm(one[place]) for one in untouched]
                print(f"| {name} | {way} | {' | '.join(cells)} | {sum(alarms)} alarms in {len(alarms)} |", flush=True)
        await proxy.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main())
