"""What the models of frameworks are asked, and what they answer, by the hooks that each framework offers. Runs in the
child: only the standard library.

A hook is added once a process, where its framework is imported by then. It tells the call of an agent that is running.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import python_pieces as pieces

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Message, Tell

_watching: Any = contextvars.ContextVar("agenteval_model_requests", default=None)
_active: list[_Requests] = []  # all that are watching now
_added: set[str] = set()  # the frameworks whose hooks are there


@contextlib.contextmanager
def watching(tell: Tell) -> Iterator[_Requests]:
    """Tell each request to a model that is made inside, with its answer, as an event `model_request`."""
    # Again for each call: a framework may have been imported in the function.
    add_hooks()
    requests = _Requests(tell)
    token = _watching.set(requests)
    _active.append(requests)
    try:
        yield requests
    finally:
        _active.remove(requests)
        _watching.reset(token)
        requests.end()


def add_hooks() -> None:
    """Add the hooks of the frameworks that are imported by now."""
    for package, add in _HOOKS.items():
        if package not in _added and package in sys.modules:
            _added.add(package)
            with contextlib.suppress(Exception):  # a version without that hook: its requests are not known
                add()


def _current() -> _Requests | None:
    """The requests of the running call. A thread that the agent started by itself has no context; it belongs to the
    only call that there is."""
    requests = _watching.get()
    return _active[0] if requests is None and len(_active) == 1 else requests


class _Requests:
    """The requests of one call of an agent. What can't be read is told as a request without messages."""

    def __init__(self, tell: Tell) -> None:
        self.tool_errors: dict[str, BaseException] = {}
        """What tools raised that a framework caught, by the id of the call: the model may have been told otherwise."""
        self._tell = tell
        self._open: dict[object, tuple[float, dict[str, Any] | Callable[[], dict[str, Any]]]] = {}
        self._places: dict[str, int] = {}  # of each message that was told, by its JSON
        self._lock = threading.Lock()
        self._began = time.perf_counter()

    def asked(self, key: object, read: Callable[[], dict[str, Any]]) -> None:
        """A request begins, or it is known better now. `read` gives its fields as the event has them, with messages as
        python_pieces makes them."""
        self._open[key] = self._began_at(key), self._read(read)

    def asks(self, key: object, read: Callable[[], dict[str, Any]]) -> None:
        """The same, of a framework that tells the whole request again with its answer: it is read only then."""
        self._open[key] = self._began_at(key), read

    def _began_at(self, key: object) -> float:
        # A request that is only known better keeps the time at which it began.
        return self._open[key][0] if key in self._open else time.perf_counter()

    def answered(self, key: object, read: Callable[[], list[Message]] | None = None, error: str = "") -> None:
        """It has its answer: `read` gives the messages of that. Or it failed."""
        # Hooks also tell the ends of requests that began before this call.
        if key not in self._open:
            return
        ended = time.perf_counter()
        began, event = self._open.pop(key)
        if callable(event):
            event = self._read(event)
        if event:
            answer = {"messages": []} if read is None else self._read(lambda: _answer(read()))
            about = {"answer": (*answer.get("messages", ()), None)[0], "error": error}
            if answer.get("usage"):
                about["usage"] = answer["usage"]
            about["started_ms"] = (began - self._began) * 1000
            about["duration_ms"] = (ended - began) * 1000
            event = dict(event, **about) if answer else {}
        with self._lock:
            if event:
                # Each request repeats the whole conversation: a message is told once, and then by its number.
                event["messages"] = [self._place(message) for message in event["messages"]]
            self._tell(dict(event, type="model_request"))

    def failed(self, key: object, error: BaseException) -> None:
        """It has this error instead of an answer. Of a model that can't stream, nothing was asked."""
        if pieces.refuses_to_stream(error):
            self._open.pop(key, None)
        else:
            self.answered(key, error=str(error) or type(error).__name__)

    def end(self) -> None:
        """The call has ended; answers that are still open are no longer needed."""
        for key in list(self._open):
            self.answered(key)

    def _read(self, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            event = {name: value for name, value in read().items() if value is not None}
            event["messages"] = [_as_openai(message) for message in event["messages"]]
            plain: dict[str, Any] = json.loads(json.dumps(pieces.plain(event)))
            return plain
        except Exception:
            return {}

    def _place(self, message: object) -> object:
        """The number of a message that was told before; else the message."""
        text = json.dumps(message, sort_keys=True)
        place = self._places.get(text)
        if place is None:
            self._places[text] = len(self._places)
            return message
        return place


def _answer(messages: list[Message]) -> dict[str, Any]:
    """An answer with the tokens of its request."""
    figures = messages[0].get("usage") if messages else None
    return {"messages": messages, "usage": {name: n for name, n in (figures or {}).items() if isinstance(n, int)}}


def _as_openai(message: Message) -> dict[str, Any]:
    """A message of python_pieces as OpenAI has it."""
    if message["role"] == "tool":
        result = {"role": "tool", "tool_call_id": message["call_id"], "content": message["text"]}
        return dict(result, is_error=True) if message["error"] else result
    openai_message: dict[str, Any] = {"role": message["role"], "content": message["text"]}
    if message.get("reasoning"):
        openai_message["reasoning_content"] = message["reasoning"]
    if message.get("calls"):
        openai_message["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": call["arguments"]
                    if isinstance(call["arguments"], str)
                    else json.dumps(pieces.plain(call["arguments"])),
                },
            }
            for call in message["calls"]
        ]
    return openai_message


def _marked(read: Any, *parts: Any) -> Any:
    """What `read` makes of a message, with a mark for each part that isn't text, such as images."""
    marks: Any = []
    messages = read(*parts, lambda code, what: marks.append("[" + what + "]"))
    if marks:
        first = messages[0] if isinstance(messages, list) else messages
        first["text"] = "\n".join(filter(None, (first["text"], *marks)))
    return messages


# LangChain, and LangGraph


def _add_to_langchain() -> None:
    base: Any = sys.modules["langchain_core.callbacks.base"]
    context: Any = import_module("langchain_core.tracers.context")

    class Handler(base.BaseCallbackHandler):  # type: ignore[misc]
        run_inline = True

        def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any, **about: Any) -> None:
            _ask_langchain(run_id, lambda: [_marked(pieces.message_of, message) for message in messages[0]], about)

        def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: Any, **about: Any) -> None:
            _ask_langchain(run_id, lambda: [{"role": "user", "text": prompt} for prompt in prompts], about)

        def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
            def read() -> list[Message]:
                answer = response.generations[0][0]
                message = getattr(answer, "message", None) or {"role": "assistant", "content": answer.text}
                return [_marked(pieces.message_of, message)]

            requests = _current()
            if requests is not None:
                requests.answered(run_id, read)

        def on_llm_error(self, error: Any, *, run_id: Any, **_: Any) -> None:
            requests = _current()
            if requests is not None:
                requests.failed(run_id, error)

    # LangChain adds to each run the handlers that variables of context hold; ours is the default, so that it holds in
    # each context.
    handler: Any = contextvars.ContextVar("agenteval_langchain", default=Handler())  # noqa: B039 - it keeps nothing
    context.register_configure_hook(handler, inheritable=True)


def _ask_langchain(key: object, messages: Callable[[], list[Message]], about: dict[str, Any]) -> None:
    def read() -> dict[str, Any]:
        parameters = dict(about.get("invocation_params") or {})
        parameters.pop("_type", None)
        return {
            "messages": messages(),
            "agent": (about.get("metadata") or {}).get("lc_agent_name"),
            "model": parameters.pop("model", None) or parameters.pop("model_name", None),
            "tools": parameters.pop("tools", None) or parameters.pop("functions", None) or [],
            "parameters": {name: value for name, value in parameters.items() if value is not None},
        }

    requests = _current()
    if requests is not None:
        requests.asked(key, read)


# pydantic-ai


def _add_to_pydantic_ai() -> None:
    capabilities: Any = import_module("pydantic_ai.capabilities")
    agent: Any = sys.modules["pydantic_ai"].Agent
    # An older version, which has no such hook.
    if "capabilities" not in inspect.signature(agent.iter).parameters:
        return

    class Told(capabilities.AbstractCapability):  # type: ignore[misc]
        async def before_model_request(self, ctx: Any, request_context: Any) -> object:
            ask(ctx, request_context)
            return request_context

        async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> object:
            ask(ctx, request_context)  # what else changes a request has changed it by now
            requests = _current()
            if requests is not None:
                requests.answered(key_of(ctx), lambda: pieces.from_pydantic(response, _ignore)[:1])
            return response

        async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Any) -> None:
            ask(ctx, request_context)
            requests = _current()
            if requests is not None:
                requests.failed(key_of(ctx), error)
            raise error

    def key_of(ctx: Any) -> tuple[Any, Any]:
        return ctx.run_id, ctx.run_step

    def ask(ctx: Any, request: Any) -> None:
        requests = _current()
        if requests is not None:
            requests.asks(key_of(ctx), lambda: _pydantic_request(ctx, request))

    # All other ways to run an agent go through this one.
    capability, iterate = Told(), agent.iter

    @functools.wraps(iterate)
    def with_hook(self: object, *arguments: object, **named: Any) -> object:
        if _current() is not None:
            named["capabilities"] = [*(named.get("capabilities") or ()), capability]
        return iterate(self, *arguments, **named)

    agent.iter = with_hook


def _ignore(code: str, what: str) -> None:
    """Takes the notes of what was read in another place, too."""


def _pydantic_request(ctx: Any, request: Any) -> dict[str, Any]:
    parameters = request.model_request_parameters
    parts = getattr(parameters, "instruction_parts", None)
    instructions = [part.content for part in parts or ()]
    if parts is None:
        instructions = [getattr(request.messages[-1], "instructions", None) or ""]
    system = "\n\n".join(filter(None, instructions))
    messages = [openai_message for message in request.messages for openai_message in _from_pydantic(message)]
    return {
        "messages": [*([{"role": "system", "text": system}] if system else ()), *messages],
        "agent": getattr(getattr(ctx, "agent", None), "name", None),
        "model": request.model.model_name,
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
            for tool in (*parameters.function_tools, *parameters.output_tools)
        ],
        "parameters": dict(request.model_settings or {}),
    }


def _from_pydantic(message: Any) -> list[Message]:
    if pieces.field(message, "kind") != "request":
        return pieces.from_pydantic(message, _ignore)
    return [part_message for part in message.parts for part_message in _marked(pieces.pydantic_request_part, part)]


# openai-agents

_HOOKS_PLACE = 5
"""Where `hooks` is among the arguments of a runner."""


def _add_to_openai_agents() -> None:
    agents: Any = sys.modules["agents"]
    base: Any = sys.modules["agents.lifecycle"].RunHooksBase

    class Told(base):  # type: ignore[misc]
        def __init__(self, theirs: Any, previous: Any) -> None:
            self._theirs, self._previous = theirs, previous
            self._keys: dict[str, object] = {}  # of the last request of each agent in this run, by the agent's name

        async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
            def read() -> dict[str, Any]:
                system = [{"role": "system", "text": system_prompt}] if system_prompt else []
                return {
                    "messages": [*system, *pieces.from_items(input_items, _ignore)],
                    "agent": agent.name,
                    "previous": self._previous,
                    "model": agent.model if isinstance(agent.model, str) else None,
                    "tools": _tools_of(agent),
                }

            requests = _current()
            if requests is not None:
                self._keys[agent.name] = key = object()
                requests.asked(key, read)
            if self._theirs is not None:
                await self._theirs.on_llm_start(context, agent, system_prompt, input_items)

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            requests = _current()
            if requests is not None:
                key = self._keys.pop(agent.name, None)
                requests.answered(key, lambda: _openai_answer(response))
            if self._theirs is not None:
                await self._theirs.on_llm_end(context, agent, response)

        def fail(self, error: BaseException) -> None:
            """The run has ended with this: no hook tells of a request that failed."""
            requests = _current()
            if requests is not None:
                for key in self._keys.values():
                    requests.failed(key, error)
            self._keys = {}

        async def awaited(self, result: Awaitable[object]) -> object:
            try:
                return await result
            except BaseException as error:
                self.fail(error)
                raise

        async def streamed(self, events: Any) -> AsyncIterator[object]:
            try:
                async for event in events:
                    yield event
            except GeneratorExit:
                raise  # nobody listens any more
            except BaseException as error:
                self.fail(error)
                raise
            finally:
                await events.aclose()

    def passed_on(name: str) -> Callable[..., object]:
        async def pass_on(self: Any, *arguments: Any, **named: Any) -> None:
            if self._theirs is not None:
                await getattr(self._theirs, name)(*arguments, **named)

        return pass_on

    # The runner takes one object of hooks. The user's own is called through ours, also for hooks that newer versions
    # add.
    for name in dir(base):
        if name.startswith("on_") and name not in vars(Told):
            setattr(Told, name, passed_on(name))

    def with_hooks(run: Any) -> classmethod[Any, ..., Any]:
        @functools.wraps(run)
        def running(cls: type, *arguments: object, **named: Any) -> object:
            theirs = named.get("hooks")
            # Hooks that are given by position, or that are none, are left to the framework.
            if _current() is None or len(arguments) >= _HOOKS_PLACE or not (theirs is None or isinstance(theirs, base)):
                return run.__func__(cls, *arguments, **named)
            hooks = Told(theirs, named.get("conversation_id") or named.get("previous_response_id"))
            try:
                result = run.__func__(cls, *arguments, **dict(named, hooks=hooks))
            except BaseException as error:
                hooks.fail(error)
                raise
            if inspect.isawaitable(result):
                return hooks.awaited(result)
            if hasattr(result, "stream_events"):
                # Errors of a stream come to whoever reads it, and not from the call.
                stream_events = result.stream_events
                result.stream_events = lambda: hooks.streamed(stream_events())
            return result

        return classmethod(running)

    for name in ("run", "run_sync", "run_streamed"):
        setattr(agents.Runner, name, with_hooks(vars(agents.Runner)[name]))
    # Older versions tell the model what was raised.
    catches = "maybe_invoke_function_tool_failure_error_function"
    for place in ("agents.tool", "agents.run_internal.tool_execution"):
        inner = getattr(sys.modules.get(place), catches, None)
        if inner is not None:
            setattr(sys.modules[place], catches, _noting_error(inner))


def _noting_error(catch: Any) -> Callable[..., Awaitable[object]]:
    @functools.wraps(catch)
    async def caught(**named: Any) -> object:
        requests, error = _current(), named.get("error")
        call_id = getattr(named.get("context"), "tool_call_id", None)
        if requests is not None and isinstance(error, Exception) and call_id is not None:
            requests.tool_errors[str(call_id)] = error
        return await catch(**named)

    return caught


def _openai_answer(response: Any) -> list[Message]:
    messages: list[Message] = pieces.from_items(response.output, _ignore)[:1]
    used = response.usage
    if messages and used is not None and used.requests:  # 0: the server did not say
        messages[0] = {**messages[0], "usage": pieces.usage_of(used)}
    return messages


def _tools_of(agent: Any) -> list[dict[str, object]] | None:
    """The tools that an agent offers a model; None where they may differ from request to request."""
    if agent.handoffs or agent.mcp_servers:
        return None
    tools = agent.tools
    if any(getattr(tool, "is_enabled", None) is not True or not hasattr(tool, "params_json_schema") for tool in tools):
        return None
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.params_json_schema} for tool in tools
    ]


_HOOKS = {
    "langchain_core.language_models.chat_models": _add_to_langchain,
    "pydantic_ai": _add_to_pydantic_ai,
    "agents": _add_to_openai_agents,
}
