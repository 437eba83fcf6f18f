"""Agents of Python frameworks as they are: how to call the object itself. Runs in the child: only the standard library.

An object is known by the module of its type. Its framework is imported already, or there would be no such object.
"""

from __future__ import annotations

import inspect
import sys
import uuid
from importlib import import_module
from typing import Any

if __name__.startswith("_agenteval_"):  # in the child, where this package need not be installed
    pieces: Any = sys.modules["_agenteval_python_pieces"]
    frameworks: Any = sys.modules["_agenteval_python_frameworks"]
else:
    from agenteval_tui.agents.process import python_frameworks, python_pieces

    pieces, frameworks = python_pieces, python_frameworks
WANTED = "name a function, or an agent of a framework (agenteval docs agents)"


def runner(found: Any, target: Any) -> Any:
    """A function of the request that runs what was found at `target`, and gives a generator, async or not; None for
    what is called as a function. Raises `WrongTarget` for what is neither."""
    if inspect.isclass(found) or inspect.isroutine(found):
        return None
    if pieces.made_by(found, "pydantic_ai") and hasattr(found, "run") and hasattr(found, "iter"):
        return lambda request: _pydantic(found, request)
    if pieces.made_by(found, "agents") and hasattr(found, "instructions") and hasattr(found, "handoffs"):
        return lambda request: _openai_agents(found, request)
    if pieces.made_by(found, "langgraph") and hasattr(found, "compile") and not hasattr(found, "astream"):
        raise pieces.WrongTarget(target + " is a LangGraph graph that is not compiled; name what its compile() gives")
    if pieces.made_by(found, "langgraph", "langchain_core", "langchain") and hasattr(found, "astream"):
        return lambda request: _runnable(found, request, target)
    known = frameworks.of(found)
    run = None if known is None else known.runner(found, target)
    if run is not None:
        return run
    for kind, words in (
        (inspect.iscoroutine, "a coroutine"),
        (inspect.isgenerator, "a generator"),
        (inspect.isasyncgen, "an async generator"),
    ):
        if kind(found):
            raise pieces.WrongTarget(
                target + " is " + words + " that was made when the module was imported; name the function"
            )
    if inspect.ismodule(found):
        raise pieces.WrongTarget(target + " is a module; " + WANTED)
    if not callable(found):
        said = target + " is " + _article(pieces.type_of(found)) + ", not a function or an agent that agenteval knows"
        ways = [name for name in ("run", "invoke", "kickoff", "chat", "ask") if callable(getattr(found, name, None))]
        name = target.partition(":")[2]
        own = "; or write a function: def answer(prompt): return " + name + "." + ways[0] + "(prompt)" if ways else ""
        raise pieces.WrongTarget(said + "; " + WANTED + own)
    return None


def _article(name: Any) -> Any:
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


async def _pydantic(agent: Any, request: Any) -> Any:
    history = _pydantic_history(pieces.before(request)) or None
    if hasattr(agent, "run_stream_events"):
        began = False
        try:
            streaming = agent.run_stream_events(request["prompt"], message_history=history)
            if hasattr(streaming, "__aenter__"):
                async with streaming as events:
                    async for event in events:
                        began = True
                        yield event
            else:
                async for event in streaming:
                    began = True
                    yield event
            return
        except (AssertionError, NotImplementedError):
            # A model that can't stream; nothing was asked of it.
            if began:
                raise
    yield await agent.run(request["prompt"], message_history=history)


def _pydantic_history(messages: Any) -> Any:
    if not messages:
        return []
    known: Any = import_module("pydantic_ai.messages")
    made: Any = []
    names: Any = {}
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        if role == "assistant":
            parts = [known.TextPart(content=content)] if content else []
            for call in message.get("tool_calls") or ():
                names[call["id"]] = call["function"]["name"]
                arguments = call["function"]["arguments"]
                parts.append(known.ToolCallPart(names[call["id"]], arguments, tool_call_id=call["id"]))
            made.append(known.ModelResponse(parts=parts))
            continue
        if role == "tool":
            call_id = message.get("tool_call_id") or ""
            part = known.ToolReturnPart(tool_name=names.get(call_id, "tool"), content=content, tool_call_id=call_id)
        elif role in ("system", "developer"):
            part = known.SystemPromptPart(content=content)
        else:
            part = known.UserPromptPart(content=content)
        if made and isinstance(made[-1], known.ModelRequest):
            made[-1] = known.ModelRequest(parts=[*made[-1].parts, part])
        else:
            made.append(known.ModelRequest(parts=[part]))
    return made


async def _openai_agents(agent: Any, request: Any) -> Any:
    asked: Any = []
    for one in request["messages"]:
        role = one.get("role")
        if role == "tool":
            result = {"type": "function_call_output", "call_id": one.get("tool_call_id"), "output": one.get("content")}
            asked.append(result)
            continue
        if one.get("content"):
            asked.append({"role": role, "content": one["content"]})
        for call in one.get("tool_calls") or ():
            function = call["function"]
            item = {"type": "function_call", "call_id": call["id"], "name": function["name"]}
            asked.append(dict(item, arguments=function["arguments"]))
    running = sys.modules["agents"].Runner.run_streamed(agent, asked)
    async for event in running.stream_events():
        yield event
    yield running


async def _runnable(found: Any, request: Any, target: Any) -> Any:
    # A graph with a memory wants to know whose it is. Each request brings the whole conversation.
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    if pieces.made_by(found, "langgraph") and hasattr(found, "channels"):
        if "messages" not in found.channels:
            names = ", ".join(name for name in found.channels if not name.startswith(("__", "branch:")))
            said = (
                target + " is a graph whose state has no `messages`, but: " + names + "; write a function that calls "
            )
            raise pieces.WrongTarget(said + "it, and gives its answer")
        asked: Any = {"messages": request["messages"]}
        async for piece in found.astream(asked, config, stream_mode=["messages", "values"]):
            yield piece
        return
    asked = request["messages"]
    if not any(cls.__name__ == "BaseLanguageModel" for cls in type(found).__mro__):
        wanted = _variables(found)
        asked = request["prompt"]
        if wanted:
            asked = {name: request.get(name, request["prompt"]) for name in wanted}
    async for piece in found.astream(asked, config):
        yield piece


def _variables(found: Any) -> Any:
    """What a chain wants, by name; nothing where it takes a text."""
    first = getattr(found, "first", found)
    names = getattr(first, "input_variables", None)
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []
