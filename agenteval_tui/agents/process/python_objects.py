"""Agents of Python frameworks as they are: how to call the object itself. Runs in the child: only the standard library.

An object is known by the module of its type. Its framework is imported already, or there would be no such object.
"""

# pathlib takes longer to load than all else.
# ruff: noqa: PTH110, PTH113, PTH118, PTH122
from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import sys
import typing
import uuid
from collections.abc import AsyncIterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import python_answers as answers
from . import python_context as contexts
from . import python_frameworks as frameworks
from . import python_pieces as pieces
from . import python_signature as signature
from . import python_target as targets

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Message, Request, Run

WANTED = "name a function, or an agent of a framework"
WAYS = ("run", "ainvoke", "invoke", "arun", "chat", "kickoff", "query", "ask")
SETTINGS = ("settings", "config")
_ASKS = ("question", "query", "input", "prompt", "user_input", "task", "topic", "text", "request")
_GIVES = ("answer", "final_answer", "output", "response", "result", "final_output", "generation", "summary", "report")


def runner(agent: Any, target: str) -> Run | None:
    """A function of the request that runs what was found at `target`, and gives a generator, async or not; None for
    what is called as a function. Raises `WrongTarget` for what is neither."""
    # Classes and functions are called, whatever package they are from.
    if inspect.isclass(agent) or inspect.isroutine(agent) or isinstance(agent, targets.Method):
        return None
    if isinstance(agent, targets.Script):
        framework = frameworks.of_script(agent.packages())
        if framework is None or framework.script is None:
            raise pieces.WrongTarget(frameworks.without_name(target))
        return framework.script(agent.path, target)
    if pieces.made_by(agent, "pydantic_ai") and hasattr(agent, "run") and hasattr(agent, "iter"):
        return lambda request: _pydantic(agent, request, target)
    if pieces.made_by(agent, "agents") and hasattr(agent, "instructions") and hasattr(agent, "handoffs"):
        return lambda request: _openai_agents(agent, request, target)
    if pieces.made_by(agent, "langgraph") and hasattr(agent, "compile") and not hasattr(agent, "astream"):
        raise pieces.WrongTarget(target + " is a LangGraph graph that is not compiled; name what its compile() gives")
    if pieces.made_by(agent, "langgraph", "langchain_core", "langchain") and hasattr(agent, "astream"):
        return lambda request: _runnable(agent, request, target)
    framework = frameworks.of(agent)
    run = None if framework is None else framework.runner(agent, target)
    if run is not None:
        return run
    for is_kind, words in (
        (inspect.iscoroutine, "a coroutine"),
        (inspect.isgenerator, "a generator"),
        (inspect.isasyncgen, "an async generator"),
    ):
        if is_kind(agent):
            raise pieces.WrongTarget(
                target + " is " + words + " that was made when the module was imported; name the function"
            )
    if inspect.ismodule(agent):
        raise pieces.WrongTarget(target + " is a module; " + WANTED)
    if not callable(agent):
        way = next((getattr(agent, name) for name in WAYS if callable(getattr(agent, name, None))), None)
        if way is not None:
            return lambda request: _asked_with_context(way, request, target)
        kind = pieces.article(pieces.type_of(agent))
        problem = target + " is " + kind + ", not a function or an agent that agenteval knows; "
        raise pieces.WrongTarget(problem + WANTED)
    return None


def takes_context(function: Any) -> bool:
    """Whether the option `context` reaches it: as its parameter `context`, or in the request."""
    return any(
        each.name in ("context", "request") and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        for each in answers.parameters_of(function) or ()
    )


def _asked_with_context(function: Any, request: Request, target: str) -> object:
    if not takes_context(function):
        contexts.refuse_option(request, target)
    return asked(function, request, request.get("_how") or {}, target)


def asked(function: Any, request: Request, how: dict[str, Any], target: str) -> object:
    """Call a function with what its parameters ask for. The option `input` stands for the prompt; an object gives
    parameters by name, or is the one that there is. The option `context` stands for the test's, as the type that the
    parameter declares."""
    if how.get("context_option") and takes_context(function):
        kind = contexts.declared(function, "context")
        request = dict(request, context=contexts.create(kind, dict(request, _how=how), target, "context"))
    own_input = how.get("input")
    if own_input is None:
        return answers.call(function, request)
    parameters = answers.parameters_of(function) or ()
    if isinstance(own_input, dict) and own_input and answers.hides_parameters(function):
        return function(**own_input)
    if isinstance(own_input, dict) and own_input and {parameter.name for parameter in parameters} >= set(own_input):
        positional = [
            parameter.name
            for parameter in parameters
            if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in own_input
        ]
        offered = {parameter.name for parameter in parameters if parameter.default is parameter.empty} & set(
            answers.OFFERED
        )
        if how.get("context_option"):
            offered |= {parameter.name for parameter in parameters if parameter.name == "context"}
        named = dict({name: request[name] for name in offered}, **own_input)
        named = {name: contexts.argument_for(function, name, value, target) for name, value in named.items()}
        return function(*[named.pop(name) for name in positional], **named)
    return answers.call(function, dict(request, prompt=own_input), told=True)


def result_of(last: Any) -> object:
    """What came out, in what an agent gave last: what a path in the option `output` is looked for in."""
    run = type(last).__name__ in ("AgentRunResultEvent", "AgentRun")
    if run and getattr(last, "result", None) is not None:
        last = last.result
    if pieces.made_by(last, "pydantic_ai") and hasattr(last, "new_messages") and hasattr(last, "output"):
        return last.output
    if pieces.made_by(last, "agents") and hasattr(last, "final_output"):
        return last.final_output
    framework = frameworks.of(last)
    return last if framework is None else framework.result_of(last)


def is_factory(target: object, settings: Any = ()) -> bool:
    """Whether it can only make an agent, or answer without a prompt: it needs nothing, or only `settings`, or what is
    among them by name."""
    if not (inspect.isclass(target) or inspect.isroutine(target)):
        return False
    parameters = answers.parameters_of(target)
    if parameters is None:
        return inspect.isclass(target)
    if answers.hides_parameters(target) and not inspect.isclass(target):
        return False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.name in SETTINGS:
            continue
        # A setting that is called `prompt` or `messages` doesn't make a function of the prompt a factory.
        asks = parameter.name in (*answers.OFFERED, *answers.PROMPTS)
        if parameter.name in settings and parameter.kind is not parameter.POSITIONAL_ONLY and not asks:
            continue
        # What a class calls `request` or `prompt` and doesn't need is of its own.
        is_asked = parameter.name in (*answers.OFFERED, "request", *answers.PROMPTS) and not inspect.isclass(target)
        if parameter.default is parameter.empty or is_asked:
            return False
    return not inspect.isgeneratorfunction(target) and not inspect.isasyncgenfunction(target)


def make(factory: Any, request: Request) -> object:
    """What the factory makes, or an awaitable of it. Its settings may also be parameters by their names; if every
    setting is, a parameter for the settings keeps its default None, for which a class takes a configuration of its
    own."""
    settings = {name: _placed(value) for name, value in (request.get("config") or {}).items()}
    parameters = answers.parameters_of(factory) or ()
    names = [parameter.name for parameter in parameters]
    all_named = bool(settings) and all(name in names for name in settings)
    arguments = {
        parameter.name: settings
        for parameter in parameters
        if _takes_settings(factory, parameter) and not (all_named and parameter.default is None)
    }
    arguments.update({name: value for name, value in settings.items() if name in names and name not in arguments})
    return factory(**arguments)


def bound(method: targets.Method, request: Request, target: str) -> Any:
    """The method of a new object of its class, made with the settings. Raises `WrongTarget` where these lack what the
    class needs."""
    owner, settings = method.owner, request.get("config") or {}
    missing = [
        each.name
        for each in answers.parameters_of(owner) or ()
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name not in settings
        and not _takes_settings(owner, each)
    ]
    if missing:
        problem = target + ": " + owner.__name__ + " is made with " + ", ".join(missing)
        raise pieces.WrongTarget(problem + "; write " + ("it" if len(missing) == 1 else "them") + " in `settings`")
    return getattr(make(owner, request), method.name)


def _placed(value: object) -> object:
    """A setting that is the path of a file beside the suite, where the run works in another folder, as a whole path."""
    folder = os.environ.get("AGENTEVAL_SUITE_DIR")
    if not folder or not isinstance(value, str) or not os.path.splitext(value)[1] or os.path.exists(value):
        return value
    place = os.path.join(folder, value)
    return place if os.path.isfile(place) else value


def is_agent(value: object, target: str, ways: bool = True) -> bool:
    """Whether this is something to run, and not an answer. `ways`: an object with a method to ask is, too."""
    if value is None or isinstance(value, (str, bytes, int, float, bool, dict, list, tuple)):
        return False
    if inspect.isgenerator(value) or inspect.isasyncgen(value) or inspect.ismodule(value):
        return False
    if hasattr(value, "to_input_list") or hasattr(value, "new_messages") or hasattr(value, "model_dump_json"):
        # Results have these methods. Agents that are models of pydantic have them, too.
        framework = frameworks.of(value)
        if not pieces.made_by(value, "langchain_core") and (
            framework is None or framework.runner(value, target) is None
        ):
            return False
    try:
        if ways:
            return runner(value, target) is not None or callable(value)
        is_known = pieces.made_by(value, "pydantic_ai", "agents", "langgraph", "langchain_core", "langchain")
        return (is_known or frameworks.of(value) is not None) and runner(value, target) is not None
    # `runner` refuses a graph that is not compiled: that is an agent with a mistake, which must be told, and no answer.
    except pieces.WrongTarget:
        return hasattr(value, "compile") and pieces.made_by(value, "langgraph")


def _takes_settings(factory: Any, parameter: inspect.Parameter) -> bool:
    """Whether a parameter is for the settings: one called so, unless it is declared to be an object of a class."""
    if parameter.name not in SETTINGS:
        return False
    kind = contexts.declared(factory, parameter.name)
    return not isinstance(kind, type) or issubclass(kind, dict) or kind.__module__ in ("typing", "collections.abc")


async def entered(context: Any, target: str, request: Request) -> AsyncIterator[object]:
    """Run what a context manager gives, in it. All in one task, as the scopes of anyio want it."""
    if hasattr(context, "__aenter__"):
        async with context as agent:
            async for piece in _inside(agent, request, target):
                yield piece
        return
    with context as agent:
        async for piece in _inside(agent, request, target):
            yield piece


async def _inside(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    run = runner(agent, target)
    returned = _asked_with_context(agent, request, target) if run is None else run(request)
    if inspect.isawaitable(returned):
        returned = await returned
    if hasattr(returned, "__aiter__"):
        async for piece in returned:
            yield piece
    elif inspect.isgenerator(returned):
        for piece in returned:
            yield piece
    else:
        yield returned


def _not_streamed(what: str) -> dict[str, Any]:
    return {"type": "note", "code": "not_streamed", "what": what}


async def _pydantic(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    if pieces.is_continued(request):
        # Without a prompt it answers to the results at the end of the history.
        prompt, earlier = None, pieces.conversation(request, target)
    else:
        prompt, earlier = pieces.prompt_of(request, target), pieces.before(request)
    history = _pydantic_history(earlier) or None
    own = _system_prompts(agent, history)
    deps = contexts.create(getattr(agent, "deps_type", None), request, target, "deps")
    more = own if deps is None else dict(own, deps=deps)
    if hasattr(agent, "run_stream_events"):
        began = False
        try:
            streaming = agent.run_stream_events(prompt, message_history=history, **more)
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
        except (AssertionError, NotImplementedError) as error:
            if began or not pieces.refuses_to_stream(error):
                raise
            yield _not_streamed(pieces.type_of(getattr(agent, "model", None)))
            # Once more: the stream that was refused may have changed what was made for it.
            deps = contexts.create(getattr(agent, "deps_type", None), request, target, "deps")
            more = own if deps is None else dict(own, deps=deps)
    # Node by node: what was done is known whatever ends it.
    async with agent.iter(prompt, message_history=history, **more) as running:
        async for node in running:
            yield node
        yield running.result


def _system_prompts(agent: Any, history: list[Any] | None) -> dict[str, Any]:
    """What lets an agent send its own system prompts with a history that has none: pydantic-ai takes them for a part of
    each history. For older versions they are put into the history, as far as they are texts."""
    if not history or any(part.part_kind == "system-prompt" for message in history for part in message.parts):
        return {}
    try:
        return {"capabilities": [import_module("pydantic_ai.capabilities").ReinjectSystemPrompt()]}
    except (ImportError, AttributeError):
        types: Any = import_module("pydantic_ai.messages")
        prompts = [types.SystemPromptPart(content=text) for text in getattr(agent, "_system_prompts", ())]
        if prompts:
            history.insert(0, types.ModelRequest(parts=prompts))
        return {}


def _pydantic_history(messages: list[dict[str, Any]]) -> list[Any]:
    if not messages:
        return []
    types: Any = import_module("pydantic_ai.messages")
    history: list[Any] = []
    names: dict[str, str] = {}
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        if role == "assistant":
            parts = [types.TextPart(content=content)] if content else []
            for call in message.get("tool_calls") or ():
                # pydantic-ai wants the name of the tool with its result, which OpenAI's messages lack.
                names[call["id"]] = call["function"]["name"]
                arguments = call["function"]["arguments"]
                parts.append(types.ToolCallPart(names[call["id"]], arguments, tool_call_id=call["id"]))
            history.append(types.ModelResponse(parts=parts))
            continue
        if role == "tool":
            call_id = message.get("tool_call_id") or ""
            part = types.ToolReturnPart(tool_name=names.get(call_id, "tool"), content=content, tool_call_id=call_id)
        elif role in ("system", "developer"):
            part = types.SystemPromptPart(content=content)
        else:
            part = types.UserPromptPart(content=content)
        # Requests and responses take turns: several results after one response are parts of one request.
        if history and isinstance(history[-1], types.ModelRequest):
            history[-1] = types.ModelRequest(parts=[*history[-1].parts, part])
        else:
            history.append(types.ModelRequest(parts=[part]))
    return history


async def _openai_agents(agent: Any, request: Request, target: str) -> AsyncIterator[object]:
    items: Any = []
    for message in pieces.conversation(request, target):
        role = message.get("role")
        if role == "tool":
            result = {
                "type": "function_call_output",
                "call_id": message.get("tool_call_id"),
                "output": message.get("content"),
            }
            items.append(result)
            continue
        if message.get("content"):
            items.append({"role": role, "content": message["content"]})
        for call in message.get("tool_calls") or ():
            function = call["function"]
            item = {"type": "function_call", "call_id": call["id"], "name": function["name"]}
            items.append(dict(item, arguments=function["arguments"]))
    kind, runner, began = contexts.of_openai_agents(agent), sys.modules["agents"].Runner, False
    async with contextlib.AsyncExitStack() as opened:
        for server in _closed_servers(agent):
            await opened.enter_async_context(server)
        try:
            context = contexts.create(kind, request, target, "context")
            running = runner.run_streamed(agent, items, context=context)
            async for event in running.stream_events():
                # The event of the first agent comes before the model is asked.
                began = began or getattr(event, "type", None) != "agent_updated_stream_event"
                yield event
            yield running
            return
        except NotImplementedError as error:
            if began or not pieces.refuses_to_stream(error):
                raise
        yield _not_streamed(pieces.type_of(getattr(agent, "model", None)))
        yield await runner.run(agent, items, context=contexts.create(kind, request, target, "context"))


def _closed_servers(agent: Any) -> list[Any]:
    """The MCP servers of an agent and of those it hands over to, which the program that uses them has to connect."""
    agents, servers = [agent], []
    # The list grows while it is gone through.
    for each in agents:
        others = list(getattr(each, "handoffs", None) or ())
        agents += [other for other in others if hasattr(other, "mcp_servers") and other not in agents]
        for server in getattr(each, "mcp_servers", None) or ():
            if getattr(server, "session", server) is None and server not in servers:
                servers.append(server)
    return servers


async def _runnable(graph: Any, request: Request, target: str) -> AsyncIterator[object]:
    context, config = contexts.of_graph(graph, request, target)
    more = {} if context is None else {"context": context}
    # A graph with a memory wants to know whose it is.
    thread = request.get("run") or uuid.uuid4().hex
    config["configurable"] = dict({"thread_id": thread}, **config["configurable"])
    how = request.get("_how") or {}
    mapped = how.get("output") or how.get("messages")
    if pieces.made_by(graph, "langgraph") and hasattr(graph, "channels"):
        graph = _with_store(graph)
        question: Any = how.get("input")
        if "__previous__" in graph.channels:  # of the functional API, which has no state
            question = _parameter(graph, request, target) if question is None else question
            # What it keeps of a thread is what it saved itself, and each request brings the whole conversation.
            config["configurable"]["thread_id"] = uuid.uuid4().hex
            result = await _invoked(graph, question, config, more)
            yield {"agenteval_state": result} if mapped else result
            return
        if question is None:
            if not _takes_messages(graph):
                raise pieces.WrongTarget(_without_messages(graph, target))
            question = {"messages": await _new_messages(graph, request, config)}
        elif isinstance(question, dict) and getattr(graph, "builder", None) is not None:
            names, takes = _state_of(graph)
            unknown = [name for name in question if name not in names and name not in takes]
            if unknown:  # the graph would drop it in silence
                problem = "the state of " + target + " has no " + ", ".join(unknown) + "; it has " + ", ".join(names)
                raise pieces.WrongTarget(problem + "; correct the option `input`")
            question = _as_declared(graph, question, target)
        try:
            # Such a state is mapped as a whole: there are no messages to stream.
            if how.get("messages") or "messages" not in graph.channels:
                yield {"agenteval_state": await _invoked(graph, question, config, more)}
                return
            state: Any = None
            async for piece in _streamed(graph, question, config, dict(more, stream_mode=["messages", "values"])):
                state = piece[1] if piece[0] == "values" else state
                yield piece
        except KeyError as error:
            key = error.args[0] if error.args else None
            # A node looked for a key that the input did not have: the error says what to write in `input`.
            if isinstance(key, str) and key in graph.channels and not (isinstance(question, dict) and key in question):
                error.agenteval_state_key = key  # type: ignore[attr-defined]
            raise
        if mapped:
            yield {"agenteval_state": state}
        return
    if how.get("input") is not None or mapped:
        yield {"agenteval_state": await _invoked(graph, how.get("input", request["prompt"]), config, more)}
        return
    question = request["messages"]
    # A model takes messages; a chain takes the variables of its template, or a text.
    if not any(cls.__name__ == "BaseLanguageModel" for cls in type(graph).__mro__):
        variables = _variables(graph)
        if "messages" not in variables:
            pieces.refuse_answers(request, type(graph).__name__, "the variable")
        question = request["prompt"]
        if variables:
            question = {name: request.get(name, request["prompt"]) for name in variables}
    async for piece in _streamed(graph, question, config, {}):
        yield piece


def _parameter(graph: Any, request: Request, target: str) -> object:
    """What a workflow of the functional API is called with, by the type of its parameter. Raises `WrongTarget` where
    that says nothing."""
    kind = getattr(graph.channels.get("__start__"), "ValueType", None)
    if isinstance(kind, str):  # as `from __future__ import annotations` leaves it
        kind = _first_hint(next(iter(graph.nodes.values())))
    outer = getattr(kind, "__origin__", kind)
    if outer is str:
        return request["prompt"]
    names = _annotations(outer) if isinstance(outer, type) else {}
    if outer is list or outer is dict or "messages" in names:
        messages = import_module("langchain_core.messages").convert_to_messages(request["messages"])
        return messages if outer is list else {"messages": messages}
    name = next((name for name in _ASKS if name in names), None)
    if name is not None:
        return {name: request["prompt"]}
    problem = target + " is a graph that does not say what it takes; write that in the agent, such as "
    raise pieces.WrongTarget(problem + '`input: {question: "{{prompt}}"}`, or name a function that asks it')


def _first_hint(node: Any) -> object:
    """The type of the first parameter of the function that a node runs; None where it can't be evaluated."""
    bound = getattr(node, "bound", None)
    function = inspect.unwrap(getattr(bound, "func", None) or getattr(bound, "afunc", None))  # type: ignore[arg-type]
    try:
        return typing.get_type_hints(function).get(next(iter(inspect.signature(function).parameters)))
    except Exception:  # a name that only type checkers know
        return None


def _with_store(graph: Any) -> Any:
    """The graph with a store for its nodes, which LangGraph's own server gives each graph: an empty one in memory."""
    if getattr(graph, "store", graph) is not None or not hasattr(graph, "copy"):
        return graph
    try:
        memory = import_module("langgraph.store.memory")
    except ImportError:
        return graph
    return graph.copy(update={"store": memory.InMemoryStore()})


async def _streamed(graph: Any, question: Any, config: dict[str, Any], more: dict[str, Any]) -> AsyncIterator[Any]:
    """What it streams; of one that has no async ways, such as a checkpointer of SQLite, by the others."""
    began = False
    try:
        async for piece in graph.astream(question, config, **more):
            began = True
            yield piece
        return
    except NotImplementedError:
        if began:
            raise
    for piece in graph.stream(question, config, **more):
        yield piece


async def _invoked(graph: Any, question: Any, config: dict[str, Any], more: dict[str, Any]) -> object:
    try:
        return await graph.ainvoke(question, config, **more)
    except NotImplementedError:
        return graph.invoke(question, config, **more)


async def _new_messages(graph: Any, request: Request, config: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages that the graph's memory does not have yet. Each request brings the whole conversation; if the
    memory has a different conversation, as after a failed attempt, the request gets a new thread."""
    messages: list[dict[str, Any]] = request["messages"]
    if not getattr(graph, "checkpointer", None):
        return messages
    try:
        state = await graph.aget_state(config)
    except NotImplementedError:
        state = graph.get_state(config)
    remembered = state.values.get("messages") if isinstance(state.values, dict) else None
    if not remembered:
        return messages
    before = messages[: pieces.prompt_place(request)]
    have = [_role_and_text(pieces.message_of(message, lambda *note: None)) for message in remembered]
    had = [_role_and_text(pieces.message_of(message, lambda *note: None)) for message in before]
    # Empty messages are those that only have calls: the conversation that was sent may lack them.
    if [message for message in have if message[1]] == [message for message in had if message[1]]:
        return messages[len(before) :]
    config["configurable"]["thread_id"] = uuid.uuid4().hex
    return messages


def _role_and_text(message: Message) -> tuple[str, str]:
    return message["role"], message["text"]


def _takes_messages(graph: Any) -> bool:
    if "messages" not in graph.channels:
        return False
    takes = _state_of(graph)[1] if getattr(graph, "builder", None) is not None else []
    return not takes or "messages" in takes


def _without_messages(graph: Any, target: str) -> str:
    schema = getattr(graph, "output_channels", None) or list(graph.channels)
    names, takes = _state_of(graph)
    gives = [str(name) for name in ([schema] if isinstance(schema, str) else schema)]
    asks = next((name for name in (*_ASKS, *takes, *names) if name in takes or not takes), "question")
    answers = next((name for name in (*_GIVES, *gives) if name in gives and name != asks), "answer")
    if "messages" in names:
        problem = target + " is a graph that takes no `messages`, but: " + ", ".join(takes)
    else:
        problem = target + " is a graph whose state has no `messages`, but: " + ", ".join(names)
    others = "".join(", " + name + ": ..." for name in _required(graph) if name != asks)
    problem += "; write in the agent `input: {" + asks + ': "{{prompt}}"' + others + "}`"
    return problem if "messages" in gives else problem + " and `output: " + answers + "`"


def _state_of(graph: Any) -> tuple[list[str], list[str]]:
    """(the keys of a graph's state, those that it takes as its input)."""
    hidden = ("__", "branch:")
    names = [str(name) for name in graph.channels if not str(name).startswith(hidden)]
    schema = _input_schema(graph)
    if schema is None:
        return names, names
    takes = [name for cls in reversed(schema.__mro__) for name in _annotations(cls)]
    return names, [name for name in dict.fromkeys(takes) if name in names]


def _annotations(cls: type) -> dict[str, Any]:
    if not hasattr(inspect, "get_annotations"):  # Python before 3.10
        annotations: dict[str, Any] = vars(cls).get("__annotations__", {})
        return annotations
    try:
        return inspect.get_annotations(cls)
    except Exception:  # Python 3.14 evaluates them now, and a name may be known to type checkers only
        return {}


def _input_schema(graph: Any) -> type | None:
    builder = getattr(graph, "builder", None)
    schema = getattr(builder, "input_schema", None) or getattr(builder, "input", None)
    return schema if isinstance(schema, type) else None


def _as_declared(graph: Any, fields: dict[str, Any], target: str) -> dict[str, Any]:
    """The fields of a state from JSON, with the models and dataclasses that the graph's nodes look for in it. LangChain
    makes its messages of JSON itself."""
    schema = _input_schema(graph)
    hints = signature._hints(schema) if schema is not None else {}
    own = {name: value for name, value in fields.items() if not _names_messages(hints.get(name))}
    try:
        return dict(fields, **signature.fields_as_declared(schema, own))
    except (TypeError, ValueError) as error:
        problem = "the option `input` doesn't fit the state of " + target + ": " + " ".join(str(error).split())
        raise pieces.WrongTarget(problem) from error


def _names_messages(kind: Any) -> bool:
    """Whether a class of LangChain's messages is in an annotation."""
    module = str(getattr(kind, "__module__", ""))
    return module.startswith("langchain_core.messages") or any(map(_names_messages, typing.get_args(kind)))


def _required(graph: Any) -> list[str]:
    """The keys that its input must have."""
    schema = _input_schema(graph)
    fields = getattr(schema, "__dataclass_fields__", None)
    if fields is not None:
        missing = dataclasses.MISSING
        return [name for name, each in fields.items() if each.default is missing and each.default_factory is missing]
    model = getattr(schema, "model_fields", None)
    if isinstance(model, dict):
        return [name for name, each in model.items() if each.is_required()]
    return sorted(getattr(schema, "__required_keys__", ()))


def _variables(graph: Any) -> list[str]:
    """What a chain wants, by name; nothing where it takes a text."""
    first = getattr(graph, "first", graph)
    names = getattr(first, "input_variables", None)
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []
