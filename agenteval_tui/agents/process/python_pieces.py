"""What agents of Python frameworks give, as messages. Runs in the child: needs only the standard library, of Python 3.8
or later. No framework is imported: an object is known by the module of its type, and by its attributes.

A message has the form that python_conversation.py describes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import python_usage as usage
from .python_target import WrongTarget as WrongTarget

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Call, Figures, Message, Note, Request

ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool", "model": "assistant"}
LANGCHAIN = ("human", "ai", "system", "tool", "function", "AIMessageChunk", "ToolMessageChunk", "HumanMessageChunk")
ITEMS = ("message", "reasoning", "function_call", "function_call_output")
NO_CALLS = ("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction")
"""Items around the calls of a server's tools; what was approved is told by its `mcp_call`."""
_LOOKED_AT = 2_000  # values in what an agent gave
ANSWERING = ("assistant", "model", "chatbot", "ai")
"""How a model's role is called."""
FAKE_IDS = ("__fake_id__", "")
_locks: dict[int, list[Any]] = {}  # id of an object -> its lock, and how many hold it or wait for it
_locks_lock = threading.Lock()


def made_by(value: object, *packages: str) -> bool:
    """Whether one of the packages defined the type of this, or one that it is derived from."""
    return any(cls.__module__.partition(".")[0] in packages for cls in type(value).__mro__)


def type_of(value: object) -> str:
    """The type's whole name."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__


def article(name: str) -> str:
    """The name with its indefinite article."""
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def foreign_type(value: object) -> str | None:
    """The type of the first object in it that an installed package defined, and that has no form of JSON's own; None
    where there is none. Whoever shows such an object as JSON may show anything but an answer."""
    waiting, count = [value], 0
    # Bounded: what an agent gave may hold itself.
    while waiting and count < _LOOKED_AT:
        current = waiting.pop()
        count += 1
        if isinstance(current, dict):
            waiting.extend(current.values())
        elif isinstance(current, (list, tuple, set, frozenset)):
            waiting.extend(current)
        elif (
            current is not None
            and not isinstance(current, (str, bytes, bool, int, float))
            and _is_installed(type(current))
        ):
            return type_of(current)
    return None


def _is_installed(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.replace("\\", "/").split("/"))


def value_at(holder: Any, name: str) -> Any:
    """A field of a dict or an attribute of an object; what is a method is called. None where there is none."""
    if isinstance(holder, dict):
        return holder.get(name)
    member = getattr(holder, name, None)
    if callable(member) and not isinstance(member, type):
        try:
            return member()
        except Exception:
            return None
    return member


def field(holder: Any, name: str) -> Any:
    """A field of a dict or an attribute of an object, unless it is a method."""
    if isinstance(holder, dict):
        return holder.get(name)
    member = getattr(holder, name, None)
    return None if callable(member) else member


def before(request: Request) -> list[dict[str, Any]]:
    """The messages before the last one of the user. Raises WrongTarget where answers follow it: an agent that is asked
    with the prompt would begin again there."""
    messages: list[dict[str, Any]] = request["messages"]
    if is_continued(request):
        raise WrongTarget(
            "this agent is asked with a prompt, so it can't continue a conversation that has answers after it; fork "
            "the run at a message of the user, or name a function that takes `messages`"
        )
    return messages[: prompt_place(request)]


def is_continued(request: Request) -> bool:
    """Whether answers follow the last prompt, as where a run is continued from a step."""
    return prompt_place(request) < len(request["messages"]) - 1


def prompt_place(request: Request) -> int:
    """The place of the last message of the user; the number of messages where it has none."""
    messages: list[dict[str, Any]] = request["messages"]
    users = (number for number, message in enumerate(messages) if message.get("role") == "user")
    return max(users, default=len(messages))


def conversation(request: Request, target: str) -> list[dict[str, Any]]:
    """All messages, with the option `input` in the place of the last prompt."""
    messages: list[dict[str, Any]] = request["messages"]
    if (request.get("_how") or {}).get("input") is None:
        return messages
    place = prompt_place(request)
    return [*messages[:place], {"role": "user", "content": prompt_of(request, target)}, *messages[place + 1 :]]


def refuse_answers(request: Request, target: str, way: str) -> None:
    """Raise WrongTarget where the conversation has answers that this run did not give (`AgentRequest.has_answers`):
    what takes only the prompt would do something else than continue it. `way`: how it could take the messages."""
    answered = any(message.get("role") in ("assistant", "tool") for message in request["messages"])
    if answered and request["turn"] <= 1:
        problem = " takes only the prompt, and this conversation has answers already; add " + way + " `messages`"
        raise WrongTarget(target + problem)


def with_history(request: Request, prompt: str) -> str:
    """The prompt with what was said before it, as one text: for what has no conversation."""
    lines = [
        str(message.get("role")) + ": " + message["content"] for message in before(request) if message.get("content")
    ]
    return "\n\n".join([*lines, "user: " + prompt]) if lines else prompt


def refuses_to_stream(error: BaseException) -> bool:
    """Whether a model that can't stream raised this, before it asked anything: its own method for that did, and not
    what that called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    frame = getattr(trace, "tb_frame", None)
    if frame is None or frame.f_code.co_name not in ("request_stream", "stream_response"):  # pydantic-ai, openai-agents
        return False
    # Its model of a function asserts that there is a function for streams.
    own = frame.f_globals.get("__name__") == "pydantic_ai.models.function"
    return isinstance(error, NotImplementedError) or (own and isinstance(error, AssertionError))


def prompt_of(request: Request, target: str) -> str:
    """What an agent that takes a text is asked: the option `input`, else the prompt."""
    own_input = (request.get("_how") or {}).get("input")
    if own_input is None:
        prompt: str = request["prompt"]
        return prompt
    if not isinstance(own_input, str):
        raise WrongTarget(target + " takes a text: write a template in `input`, not an object")
    return own_input


@contextlib.contextmanager
def alone(agent: object) -> Iterator[None]:
    """For an object that keeps what was said: one request at a time uses it."""
    with _entry(agent) as lock, lock:
        yield


@contextlib.asynccontextmanager
async def alone_async(agent: object) -> AsyncIterator[None]:
    """The same for a coroutine, which holds up no other one while it waits."""
    import asyncio  # takes longer to load than all else, and is there when a coroutine runs

    with _entry(agent) as lock:
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 - its holder may be in another thread
            await asyncio.sleep(0.01)
        try:
            yield
        finally:
            lock.release()


@contextlib.contextmanager
def _entry(agent: object) -> Iterator[threading.Lock]:
    with _locks_lock:
        entry = _locks.setdefault(id(agent), [threading.Lock(), 0])
        # Counted before the lock is taken: an id is used again once its object is gone, so the lock goes with its last
        # user.
        entry[1] += 1
    try:
        yield entry[0]
    finally:
        with _locks_lock:
            entry[1] -= 1
            if not entry[1]:
                del _locks[id(agent)]


def usage_of(raw: object) -> Figures:
    """Tokens and cost, in whatever words; {} where there are none. `odd` has what can't be so, `sums` what does not
    add up."""
    figures, odd, wrong_sum = usage.figures_in(raw)
    if odd:
        figures["odd"] = {
            name: value if isinstance(value, (bool, int, float, type(None))) else repr(value)[:40]
            for name, value in odd.items()
        }
    if wrong_sum:
        figures["sums"] = [wrong_sum]
    return (
        # Zeros alone are what frameworks give where the server did not say.
        figures if any(figures.get(name) for name in ("input_tokens", "output_tokens", "cost", "odd", "sums")) else {}
    )


def is_usage(figures: dict[Any, Any]) -> bool:
    """Whether a dict is a usage, and no state with figures in it."""
    return any(name == "cost" or str(name).endswith("_tokens") for name in figures) and bool(usage_of(figures))


def plain(value: object) -> Any:
    """A value as JSON data, as the framework itself writes it where it can. Raises TypeError."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)  # their own order differs in each process
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item"):  # a number of numpy
        return value.item()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "value") and hasattr(type(value), "__members__"):  # an Enum
        return plain(value.value)
    if type(value).__module__ in ("decimal", "uuid", "pathlib", "fractions"):
        return str(value)
    raise TypeError(type_of(value))


def text_of(value: object, note: Note) -> str:
    """A value as text: itself, or its JSON. What can't be written as JSON is noted, and left out."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(plain(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        note("unread", type_of(value))
        return ""


_OTHER_PARTS = ("tool_call", "tool_call_chunk", "input_json_delta", "function_call", "reasoning")
"""Parts whose calls the message has in another place, too; and thoughts without words."""
_CALLS_OF_SERVERS = ("server_tool_use", "mcp_tool_use", "server_tool_call")


def _call_in(part: object) -> Call | None:
    """The call in a part of a message, as models of Anthropic, Bedrock and LangChain's standard have it."""
    used, kind = field(part, "toolUse"), field(part, "type")
    if isinstance(used, dict):
        return {"id": str(used.get("toolUseId")), "name": str(used.get("name")), "arguments": used.get("input") or {}}
    used = field(part, "function_call") or field(part, "functionCall")
    if used and kind is None:  # of Gemini
        call: Call = {"name": str(field(used, "name")), "arguments": field(used, "args") or {}}
        if field(used, "id"):
            call["id"] = str(field(used, "id"))
        return call
    if kind != "tool_use" and kind not in _CALLS_OF_SERVERS:
        return None
    arguments = field(part, "args") if kind == "server_tool_call" else field(part, "input")
    return {"id": str(field(part, "id")), "name": str(field(part, "name")), "arguments": arguments or {}}


def _result_in(part: object, note: Note) -> Message | None:
    """The same of a call's result."""
    kind, bedrock = str(field(part, "type")), field(part, "toolResult")
    gemini = field(part, "function_response") or field(part, "functionResponse")
    if gemini:
        answer = field(gemini, "response")
        call_id, content = field(gemini, "id"), answer
        failed = isinstance(answer, dict) and bool(answer.get("error"))
        if isinstance(answer, dict) and len(answer) == 1:
            content = answer.get("result", answer)
        name, text = field(gemini, "name"), text_of(content, note)
        return {"role": "tool", "call_id": call_id, "name": name, "text": text, "error": failed}
    if isinstance(bedrock, dict):
        call_id, content, failed = bedrock.get("toolUseId"), bedrock.get("content"), bedrock.get("status") == "error"
    elif kind == "server_tool_result":
        call_id, content = field(part, "tool_call_id"), field(part, "output")
        failed = field(part, "status") == "error"
    elif kind == "tool_result" or kind.endswith("_tool_result"):
        call_id, content, failed = field(part, "tool_use_id"), field(part, "content"), bool(field(part, "is_error"))
    else:
        return None
    texts = [field(each, "text") for each in content] if isinstance(content, (list, tuple)) else [content]
    is_text = bool(texts) and all(isinstance(text, str) for text in texts)
    text = "".join(map(str, texts)) if is_text else text_of(content, note)
    return {"role": "tool", "call_id": str(call_id), "name": None, "text": text, "error": failed}


def content_of(content: object, note: Note) -> tuple[str, str]:
    """(text, reasoning) of a message's content: a text, or a list of parts."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, (list, tuple)):
        return text_of(content, note), ""
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = field(part, "type")
        text = field(part, "text")
        thought = field(part, "thinking") or field(part, "reasoning")
        bedrock = field(part, "reasoningContent")
        if isinstance(bedrock, dict):
            thought = field(bedrock.get("reasoningText") or {}, "text") or ""
        elif field(part, "thought") is True:  # of Gemini
            thought = text
        if text is None:
            text = field(part, "refusal")
        if kind == "reasoning" and not thought:
            thought = "\n\n".join(str(field(entry, "text") or "") for entry in field(part, "summary") or ())
        if isinstance(thought, str) and (thought or bedrock):
            thoughts.append(thought)
        elif isinstance(text, str):
            texts.append(text)
        elif kind not in _OTHER_PARTS and _call_in(part) is None and _result_in(part, note) is None:
            note("unread", str(kind or type_of(part)))
    return "".join(texts), "".join(thoughts)


_CONTENT = ("text", "thinking", "redacted_thinking", "reasoning", "output_text", "refusal")


def is_content(parts: Sequence[Any]) -> bool:
    """Whether these are the parts of one message's text, as models of Anthropic and of the Responses API have them."""
    kinds = [part.get("type") for part in parts if isinstance(part, dict)]
    is_known = len(kinds) == len(parts) and all(kind in _CONTENT for kind in kinds)
    return is_known and ("text" in kinds or "output_text" in kinds)


def is_message(piece: Any) -> bool:
    """Whether this is a message as OpenAI's Chat Completions or LangChain have them, as a dict or an object."""
    if isinstance(piece, dict):
        if isinstance(piece.get("role"), str) and piece.get("type") in (None, *LANGCHAIN):
            return True
        return piece.get("type") in LANGCHAIN and "content" in piece
    if made_by(piece, "langchain_core", "langchain"):
        return getattr(piece, "type", None) is not None and hasattr(piece, "content")
    return isinstance(field(piece, "role"), str) and hasattr(piece, "content") and not made_by(piece, "pydantic_ai")


def listed(piece: object, name: str) -> Sequence[Any]:
    """The list that a field has; () where it is anything else, such as a number of calls."""
    value = field(piece, name)
    return value if isinstance(value, (list, tuple)) else ()


def _content_in(piece: object) -> object:
    content = field(piece, "content")
    return field(piece, "parts") if content is None else content  # Gemini's are `parts`


def _parts_of(piece: object) -> Sequence[Any]:
    content = _content_in(piece)
    return content if isinstance(content, (list, tuple)) else ()


def message_of(piece: Any, note: Note) -> Message:
    """A message of Chat Completions or LangChain."""
    role = field(piece, "role") or field(piece, "type") or ""
    role = ROLES.get(role, role)
    role = "tool" if role == "ToolMessageChunk" else role
    text, thought = content_of(_content_in(piece), note)
    if role == "tool":
        call_id = field(piece, "tool_call_id")
        failed = field(piece, "error") or field(piece, "is_error") or field(piece, "status") == "error"
        call_id, name = None if call_id is None else str(call_id), field(piece, "name")
        return {"role": "tool", "call_id": call_id, "name": name, "text": text, "error": bool(failed)}
    extra = field(piece, "additional_kwargs") or {}
    for holder in (piece, extra):
        for name in ("reasoning_content", "reasoning"):
            thinking = field(holder, name)
            if isinstance(thinking, str) and thinking and not thought:
                thought = thinking
    refusal = field(piece, "refusal")
    if isinstance(refusal, str) and refusal and not text:
        text = refusal
    about = field(piece, "response_metadata") or {}
    message: Message = {"role": role, "text": text, "reasoning": thought, "calls": [], "closed": True}
    message["id"] = real_id(field(piece, "id"))
    message["agent"] = field(piece, "name") if role == "assistant" else None
    for raw_call in (*listed(piece, "tool_calls"), *listed(piece, "invalid_tool_calls")):
        message["calls"].append(call_of(raw_call, note))
    own = bool(message["calls"])
    for part in _parts_of(piece):
        call = _call_in(part)
        if call is not None and not (own and field(part, "type") not in _CALLS_OF_SERVERS):
            message["calls"].append(call)
    # Of the Responses API, those of the server's tools, as LangChain once kept them.
    message["calls"] += [_item_call(item, note) for item in field(extra, "tool_outputs") or () if is_item(item)]
    # Chat Completions had this before `tools`.
    old = field(piece, "function_call")
    if old and not message["calls"]:
        message["calls"].append(call_of(old, note))
    message["usage"] = usage_of(
        field(piece, "usage") or field(piece, "usage_metadata") or about.get("token_usage") or {}
    )
    message["model"] = about.get("model_name") or about.get("model") or field(piece, "model")
    message["finish"] = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    return message


def call_of(raw: object, note: Note) -> Call:
    """A call of a tool as OpenAI or LangChain have it, or as another framework's object with these fields."""
    function = field(raw, "function") or raw
    arguments = field(function, "arguments")
    if arguments is None:
        arguments = field(function, "args")
    call: Call = {"name": str(field(function, "name") or ""), "arguments": _arguments(arguments, note)}
    if field(raw, "id"):
        call["id"] = str(field(raw, "id"))
    return call


def results_in(piece: Any, note: Note) -> Iterator[Message]:
    """Results inside the calls of a message, and among its parts."""
    for part in _parts_of(piece):
        result = _result_in(part, note)
        if result is not None:
            yield result
    for call in listed(piece, "tool_calls"):
        if isinstance(call, dict) and "result" in call:
            yield {
                "role": "tool",
                "call_id": str(call["id"]) if call.get("id") else None,
                "name": None,
                "text": text_of(call["result"], note),
                "error": bool(call.get("error")),
            }


def _arguments(arguments: object, note: Note) -> object:
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        return arguments
    try:
        return plain(arguments)
    except TypeError as error:
        note("unread", "an argument of a call: " + str(error))
        return {}


def decoded_arguments(text: Any) -> dict[str, Any]:
    """The arguments of a call, which are JSON as a rule, as an object; {} where they are none."""
    try:
        arguments = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def real_id(identifier: Any) -> str | None:
    """An id; None for one that means none."""
    return None if identifier is None or identifier in FAKE_IDS else str(identifier)


# pydantic-ai


def is_pydantic(piece: Any) -> bool:
    """Whether this is a ModelRequest or ModelResponse, as an object or as the JSON that pydantic-ai makes of it."""
    if isinstance(piece, dict):
        return piece.get("kind") in ("request", "response") and isinstance(piece.get("parts"), list)
    return made_by(piece, "pydantic_ai") and getattr(piece, "kind", None) in ("request", "response")


def from_pydantic(message: Any, note: Note) -> list[Message]:
    """The messages in a ModelRequest or ModelResponse."""
    if field(message, "kind") == "request":
        return [entry for part in field(message, "parts") for entry in pydantic_request_part(part, note)]
    answer: Message = {"role": "assistant", "text": "", "reasoning": "", "calls": [], "closed": True, "id": None}
    answer["usage"] = usage_of(field(message, "usage") or {})
    answer["model"] = field(message, "model_name")
    answer["finish"] = field(message, "finish_reason")
    results = []
    for part in field(message, "parts"):
        kind = field(part, "part_kind")
        if kind == "text":
            answer["text"] += field(part, "content") or ""
        elif kind == "thinking":
            answer["reasoning"] += field(part, "content") or ""
        elif kind in ("tool-call", "builtin-tool-call", "native-tool-call"):
            answer["calls"].append(pydantic_call(part, note))
        elif kind in ("builtin-tool-return", "native-tool-return"):
            results.extend(pydantic_request_part(part, note))
        else:
            note("unread", str(kind))
    return [answer, *results]


def pydantic_call(part: object, note: Note) -> Call:
    """A ToolCallPart."""
    call: Call = {"name": str(field(part, "tool_name")), "arguments": _arguments(field(part, "args"), note)}
    if field(part, "tool_call_id"):
        call["id"] = str(field(part, "tool_call_id"))
    return call


_SETTINGS_PARTS = (
    *("instruction-baseline", "instruction-delta", "model-settings-delta"),
    *("tool-availability-delta", "capability-load-delta"),
)


def pydantic_request_part(part: object, note: Note) -> list[Message]:
    """A part of a ModelRequest, or a ToolReturnPart or RetryPromptPart alone."""
    kind = field(part, "part_kind")
    if kind in ("system-prompt", "user-prompt"):
        text, _ = content_of(field(part, "content"), note)
        return [{"role": "system" if kind == "system-prompt" else "user", "text": text}]
    if kind == "retry-feedback":
        return [{"role": "user", "text": text_of(field(part, "content"), note)}]
    if kind in _SETTINGS_PARTS:
        text = field(part, "content")
        return [{"role": "system", "text": text}] if isinstance(text, str) and text else []
    if not str(kind).endswith("-return") and kind != "retry-prompt":
        note("unread", "a part of a request: " + str(kind))
        return []
    retry = kind == "retry-prompt"
    if retry and field(part, "tool_name") is None:
        return [{"role": "user", "text": text_of(field(part, "content"), note)}]
    feedback = value_at(part, "model_response_str") if not isinstance(part, dict) and not retry else None
    text = feedback if isinstance(feedback, str) else text_of(field(part, "content"), note)
    failed = retry or field(part, "outcome") not in (None, "success")
    call_id, name = str(field(part, "tool_call_id")), field(part, "tool_name")
    return [{"role": "tool", "call_id": call_id, "name": name, "text": text, "error": failed}]


# openai-agents, and the items of the Responses API


def is_item(piece: Any) -> bool:
    """Whether this is an item of the Responses API's input or output, or a message in its easy form."""
    kind = field(piece, "type")
    if isinstance(kind, str) and (kind in ITEMS or kind.endswith(("_call", "_call_output"))) and kind != "tool_call":
        return kind != "message" or isinstance(field(piece, "role"), str)
    return False


def from_items(items: Iterable[Any], note: Note, agents: Sequence[str | None] | None = None) -> list[Message]:
    """Messages of items: what one response of the model had is one message. `agents`: who made each item."""
    messages: list[Message] = []
    current: Message | None = None
    answered: str | None = None  # the response that the current one is of
    called: set[tuple[Any, str | None]] = set()  # what waits for a person's approval is an item beside that of the call
    for number, item in enumerate(items):
        agent = agents[number] if agents else None
        kind, role = field(item, "type"), field(item, "role")
        if kind in NO_CALLS:
            continue
        about = field(item, "provider_data") or {}
        if kind in (None, "message") and role != "assistant":
            text, _ = content_of(field(item, "content"), note)
            messages.append({"role": ROLES.get(role, role) or "user", "text": text})
            current = None
            continue
        if kind is not None and kind.endswith("_output") and kind != "message":
            output = field(item, "output")
            text = content_of(output, note)[0] if isinstance(output, (list, tuple)) else text_of(output, note)
            failed = field(item, "status") in ("failed", "incomplete")
            messages.append({"role": "tool", "call_id": _call_id(item), "name": None, "text": text, "error": failed})
            current = None
            continue
        answer = about.get("response_id") if isinstance(about, dict) else None
        # Items lie in one list. A new response starts after a result, or where the id of the response changes.
        if current is None or (answer and answered and answer != answered):
            current = {"role": "assistant", "text": "", "reasoning": "", "calls": [], "closed": True, "id": None}
            current.update({"agent": agent, "model": about.get("model") if isinstance(about, dict) else None})
            answered = answer
            messages.append(current)
        if kind in (None, "message"):
            text, thought = content_of(field(item, "content"), note)
            current["text"] += text
            current["reasoning"] += thought
        elif kind == "reasoning":
            parts = [*listed(item, "summary"), *listed(item, "content")]
            thought = "\n\n".join(str(field(part, "text") or "") for part in parts)
            current["reasoning"] += thought
        elif (kind, _call_id(item)) not in called:
            if _call_id(item):
                called.add((kind, _call_id(item)))
            current["calls"].append(_item_call(item, note))
            # Tools that the server runs have the result within the call.
            if kind != "function_call" and field(item, "output") is not None:
                text = text_of(field(item, "output"), note)
                messages.append({"role": "tool", "call_id": _call_id(item), "name": None, "text": text, "error": False})
    return messages


def _item_call(item: object, note: Note) -> Call:
    kind = field(item, "type")
    arguments = field(item, "arguments")
    if arguments is None:
        arguments = field(item, "input")  # a custom tool
    if arguments is None and kind != "function_call":
        fields = plain(item) if not isinstance(item, dict) else item
        left_out = ("id", "call_id", "type", "status", "output", "results", "provider_data", "name")
        arguments = {name: value for name, value in fields.items() if name not in left_out and value is not None}
    name, call_id = str(field(item, "name") or kind.replace("_call", "")), _call_id(item)
    call: Call = {"name": name, "arguments": _arguments(arguments, note)}
    if call_id:
        call["id"] = call_id
    return call


def _call_id(item: object) -> str | None:
    return real_id(field(item, "call_id")) or real_id(field(item, "id"))
