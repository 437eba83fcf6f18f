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
from typing import Any

if __name__.startswith("_agenteval_"):  # in the child, where this package need not be installed
    usage: Any = sys.modules["_agenteval_python_usage"]
else:
    from agenteval_tui.agents.process import python_usage

    usage = python_usage
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool", "model": "assistant"}
LANGCHAIN = ("human", "ai", "system", "tool", "function", "AIMessageChunk", "ToolMessageChunk", "HumanMessageChunk")
ITEMS = ("message", "reasoning", "function_call", "function_call_output")
_LOOKED_AT = 2_000  # values in what an agent gave
FAKE_IDS = ("__fake_id__", "")
_locks: Any = {}  # id of an object -> its lock, and how many hold it or wait for it
_locks_lock = threading.Lock()


class WrongTarget(Exception):  # noqa: N818
    """What shall be called is not an agent, or what it gave can't be read; the text says what it is instead."""


def made_by(given: Any, *packages: Any) -> Any:
    """Whether one of the packages defined the type of this, or one that it is derived from."""
    return any(cls.__module__.partition(".")[0] in packages for cls in type(given).__mro__)


def type_of(given: Any) -> Any:
    """The type's whole name."""
    kind = type(given)
    return kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__


def article(name: Any) -> Any:
    """The name with its indefinite article."""
    return ("an " if name[:1].lower() in "aeiou" else "a ") + name


def foreign_type(given: Any) -> Any:
    """The type of the first object in it that an installed package defined, and that has no form of JSON's own; None
    where there is none. Whoever shows such an object as JSON may show anything but an answer."""
    waiting, seen = [given], 0
    while waiting and seen < _LOOKED_AT:
        one = waiting.pop()
        seen += 1
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting.extend(one)
        elif one is not None and not isinstance(one, (str, bytes, bool, int, float)) and _is_installed(type(one)):
            return type_of(one)
    return None


def _is_installed(kind: Any) -> Any:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.replace("\\", "/").split("/"))


def value_at(given: Any, name: Any) -> Any:
    """A field of a dict or an attribute of an object; what is a method is called. None where there is none."""
    if isinstance(given, dict):
        return given.get(name)
    found = getattr(given, name, None)
    if callable(found) and not isinstance(found, type):
        try:
            return found()
        except Exception:
            return None
    return found


def field(given: Any, name: Any) -> Any:
    """A field of a dict or an attribute of an object, unless it is a method."""
    if isinstance(given, dict):
        return given.get(name)
    found = getattr(given, name, None)
    return None if callable(found) else found


def before(request: Any) -> Any:
    """The messages before the last one of the user."""
    messages = request["messages"]
    last = max((number for number, one in enumerate(messages) if one.get("role") == "user"), default=len(messages))
    return messages[:last]


def with_history(request: Any, prompt: Any) -> Any:
    """The prompt with what was said before it, as one text: for what has no conversation."""
    said = [str(one.get("role")) + ": " + one["content"] for one in before(request) if one.get("content")]
    return "\n\n".join([*said, "user: " + prompt]) if said else prompt


def prompt_of(request: Any, target: Any) -> Any:
    """What an agent that takes a text is asked: the option `input`, else the prompt."""
    given = (request.get("_how") or {}).get("input")
    if given is None:
        return request["prompt"]
    if not isinstance(given, str):
        raise WrongTarget(target + " takes a text: write a template in `input`, not an object")
    return given


@contextlib.contextmanager
def alone(found: Any) -> Any:
    """For an object that keeps what was said: one request at a time uses it."""
    with _entry(found) as lock, lock:
        yield


@contextlib.asynccontextmanager
async def alone_async(found: Any) -> Any:
    """The same for a coroutine, which holds up no other one while it waits."""
    import asyncio  # takes longer to load than all else, and is there when a coroutine runs

    with _entry(found) as lock:
        while not lock.acquire(blocking=False):  # noqa: ASYNC110 - its holder may be in another thread
            await asyncio.sleep(0.01)
        try:
            yield
        finally:
            lock.release()


@contextlib.contextmanager
def _entry(found: Any) -> Any:
    with _locks_lock:
        entry = _locks.setdefault(id(found), [threading.Lock(), 0])
        entry[1] += 1
    try:
        yield entry[0]
    finally:
        with _locks_lock:
            entry[1] -= 1
            if not entry[1]:
                del _locks[id(found)]


def usage_of(given: Any) -> Any:
    """Tokens and cost, in whatever words; {} where there are none. `odd` has what can't be so, `sums` what does not
    add up."""
    found, odd, wrong_sum = usage.figures_in(given)
    if odd:
        found["odd"] = {name: value if _is_number(value) else repr(value)[:40] for name, value in odd.items()}
    if wrong_sum:
        found["sums"] = [wrong_sum]
    return found if any(found.get(name) for name in ("input_tokens", "output_tokens", "cost", "odd", "sums")) else {}


def is_usage(given: Any) -> Any:
    """Whether a dict is a usage, and no state with figures in it."""
    return any(name == "cost" or str(name).endswith("_tokens") for name in given) and bool(usage_of(given))


def _is_number(value: Any) -> Any:
    return value is None or isinstance(value, (bool, int, float))


def plain(given: Any) -> Any:
    """A value as JSON data, as the framework itself writes it where it can. Raises TypeError."""
    if given is None or isinstance(given, (str, bool, int, float)):
        return given
    if isinstance(given, dict):
        return {str(key): plain(value) for key, value in given.items()}
    if isinstance(given, (list, tuple, set, frozenset)):
        return [plain(one) for one in given]
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json")
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return {one.name: plain(getattr(given, one.name)) for one in dataclasses.fields(given)}
    if hasattr(given, "isoformat"):
        return given.isoformat()
    if hasattr(given, "item"):  # a number of numpy
        return given.item()
    if isinstance(given, bytes):
        return given.decode("utf-8", "replace")
    if hasattr(given, "value") and hasattr(type(given), "__members__"):  # an Enum
        return plain(given.value)
    if type(given).__module__ in ("decimal", "uuid", "pathlib", "fractions"):
        return str(given)
    raise TypeError(type_of(given))


def text_of(given: Any, note: Any) -> Any:
    """A value as text: itself, or its JSON. What can't be written as JSON is noted, and left out."""
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    try:
        return json.dumps(plain(given), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        note("unread", type_of(given))
        return ""


def content_of(content: Any, note: Any) -> Any:
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
        thought = field(part, "thinking") or field(part, "reasoning")
        text = field(part, "text")
        if text is None:
            text = field(part, "refusal")
        if kind == "reasoning" and not thought:
            thought = "\n\n".join(str(field(one, "text") or "") for one in field(part, "summary") or ())
        if isinstance(thought, str) and thought:
            thoughts.append(thought)
        elif isinstance(text, str):
            texts.append(text)
        elif kind not in ("tool_use", "tool_call", "tool_call_chunk", "input_json_delta", "function_call", "reasoning"):
            note("unread", str(kind or type_of(part)))
    return "".join(texts), "".join(thoughts)


def is_message(piece: Any) -> Any:
    """Whether this is a message as OpenAI's Chat Completions or LangChain have them, as a dict or an object."""
    if isinstance(piece, dict):
        if isinstance(piece.get("role"), str) and piece.get("type") in (None, *LANGCHAIN):
            return True
        return piece.get("type") in LANGCHAIN and "content" in piece
    if made_by(piece, "langchain_core", "langchain"):
        return getattr(piece, "type", None) is not None and hasattr(piece, "content")
    return isinstance(field(piece, "role"), str) and hasattr(piece, "content") and not made_by(piece, "pydantic_ai")


def message_of(piece: Any, note: Any) -> Any:
    """A message of Chat Completions or LangChain."""
    role = field(piece, "role") or field(piece, "type") or ""
    role = ROLES.get(role, role)
    role = "tool" if role == "ToolMessageChunk" else role
    text, thought = content_of(field(piece, "content"), note)
    if role == "tool":
        call_id = field(piece, "tool_call_id")
        failed = field(piece, "error") or field(piece, "is_error") or field(piece, "status") == "error"
        made: Any = {"role": "tool", "call_id": None if call_id is None else str(call_id), "error": bool(failed)}
        made.update(text=text, name=field(piece, "name"))
        return made
    extra = field(piece, "additional_kwargs") or {}
    for holder in (piece, extra):
        for name in ("reasoning_content", "reasoning"):
            said = field(holder, name)
            if isinstance(said, str) and said and not thought:
                thought = said
    refusal = field(piece, "refusal")
    if isinstance(refusal, str) and refusal and not text:
        text = refusal
    about = field(piece, "response_metadata") or {}
    made = {"role": role, "text": text, "reasoning": thought, "calls": [], "closed": True}
    made["id"] = real_id(field(piece, "id"))
    made["agent"] = field(piece, "name") if role == "assistant" else None
    for one in (*(field(piece, "tool_calls") or ()), *(field(piece, "invalid_tool_calls") or ())):
        made["calls"].append(call_of(one, note))
    old = field(piece, "function_call")
    if old and not made["calls"]:
        made["calls"].append(call_of(old, note))
    made["usage"] = usage_of(field(piece, "usage") or field(piece, "usage_metadata") or about.get("token_usage") or {})
    made["model"] = about.get("model_name") or about.get("model") or field(piece, "model")
    made["finish"] = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    return made


def call_of(one: Any, note: Any) -> Any:
    """A call of a tool as OpenAI or LangChain have it, or as another framework's object with these fields."""
    function = field(one, "function") or one
    arguments = field(function, "arguments")
    if arguments is None:
        arguments = field(function, "args")
    call = {"name": str(field(function, "name") or ""), "arguments": _arguments(arguments, note)}
    if field(one, "id"):
        call["id"] = str(field(one, "id"))
    return call


def results_in(piece: Any, note: Any) -> Any:
    """Results inside the calls of a message."""
    for one in field(piece, "tool_calls") or ():
        if isinstance(one, dict) and "result" in one:
            yield {
                "role": "tool",
                "call_id": str(one["id"]) if one.get("id") else None,
                "name": None,
                "text": text_of(one["result"], note),
                "error": bool(one.get("error")),
            }


def _arguments(given: Any, note: Any) -> Any:
    if given is None:
        return {}
    if isinstance(given, str):
        return given
    try:
        return plain(given)
    except TypeError as error:
        note("unread", "an argument of a call: " + str(error))
        return {}


def decoded_arguments(text: Any) -> Any:
    """The arguments of a call, which are JSON as a rule, as an object; {} where they are none."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def real_id(given: Any) -> Any:
    """An id; None for one that means none."""
    return None if given is None or given in FAKE_IDS else str(given)


# pydantic-ai


def is_pydantic(piece: Any) -> Any:
    """Whether this is a ModelRequest or ModelResponse, as an object or as the JSON that pydantic-ai makes of it."""
    if isinstance(piece, dict):
        return piece.get("kind") in ("request", "response") and isinstance(piece.get("parts"), list)
    return made_by(piece, "pydantic_ai") and getattr(piece, "kind", None) in ("request", "response")


def from_pydantic(message: Any, note: Any) -> Any:
    """The messages in a ModelRequest or ModelResponse."""
    if field(message, "kind") == "request":
        return [one for part in field(message, "parts") for one in pydantic_request_part(part, note)]
    made: Any = {"role": "assistant", "text": "", "reasoning": "", "calls": [], "closed": True, "id": None}
    made["usage"] = usage_of(field(message, "usage") or {})
    made["model"] = field(message, "model_name")
    made["finish"] = field(message, "finish_reason")
    results = []
    for part in field(message, "parts"):
        kind = field(part, "part_kind")
        if kind == "text":
            made["text"] += field(part, "content") or ""
        elif kind == "thinking":
            made["reasoning"] += field(part, "content") or ""
        elif kind in ("tool-call", "builtin-tool-call", "native-tool-call"):
            made["calls"].append(pydantic_call(part, note))
        elif kind in ("builtin-tool-return", "native-tool-return"):
            results.extend(pydantic_request_part(part, note))
        else:
            note("unread", str(kind))
    return [made, *results]


def pydantic_call(part: Any, note: Any) -> Any:
    """A ToolCallPart."""
    call = {"name": str(field(part, "tool_name")), "arguments": _arguments(field(part, "args"), note)}
    if field(part, "tool_call_id"):
        call["id"] = str(field(part, "tool_call_id"))
    return call


_SETTINGS_PARTS = (
    *("instruction-baseline", "instruction-delta", "model-settings-delta"),
    *("tool-availability-delta", "capability-load-delta"),
)


def pydantic_request_part(part: Any, note: Any) -> Any:
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
    said = value_at(part, "model_response_str") if not isinstance(part, dict) and not retry else None
    text = said if isinstance(said, str) else text_of(field(part, "content"), note)
    failed = retry or field(part, "outcome") not in (None, "success")
    made: Any = {"role": "tool", "call_id": str(field(part, "tool_call_id")), "name": field(part, "tool_name")}
    return [dict(made, text=text, error=failed)]


# openai-agents, and the items of the Responses API


def is_item(piece: Any) -> Any:
    """Whether this is an item of the Responses API's input or output, or a message in its easy form."""
    kind = field(piece, "type")
    if isinstance(kind, str) and (kind in ITEMS or kind.endswith(("_call", "_call_output"))) and kind != "tool_call":
        return kind != "message" or isinstance(field(piece, "role"), str)
    return False


def from_items(items: Any, note: Any, agents: Any = None) -> Any:
    """Messages of items: what one response of the model had is one message. `agents`: who made each of them."""
    made: Any = []
    current: Any = None
    for number, item in enumerate(items):
        agent = agents[number] if agents else None
        kind, role = field(item, "type"), field(item, "role")
        about = field(item, "provider_data") or {}
        if kind in (None, "message") and role != "assistant":
            text, _ = content_of(field(item, "content"), note)
            made.append({"role": ROLES.get(role, role) or "user", "text": text})
            current = None
            continue
        if kind is not None and kind.endswith("_output") and kind != "message":
            output = field(item, "output")
            text = content_of(output, note)[0] if isinstance(output, (list, tuple)) else text_of(output, note)
            failed = field(item, "status") in ("failed", "incomplete")
            made.append({"role": "tool", "call_id": _call_id(item), "name": None, "text": text, "error": failed})
            current = None
            continue
        answer = about.get("response_id") if isinstance(about, dict) else None
        if current is None or (answer and current["answer"] and answer != current["answer"]):
            current = {"role": "assistant", "text": "", "reasoning": "", "calls": [], "closed": True, "id": None}
            current["agent"] = agent
            current.update(answer=answer, model=about.get("model") if isinstance(about, dict) else None)
            made.append(current)
        if kind in (None, "message"):
            text, thought = content_of(field(item, "content"), note)
            current["text"] += text
            current["reasoning"] += thought
        elif kind == "reasoning":
            parts = [*(field(item, "summary") or ()), *(field(item, "content") or ())]
            thought = "\n\n".join(str(field(part, "text") or "") for part in parts)
            current["reasoning"] += thought
        else:
            current["calls"].append(_item_call(item, note))
            if kind != "function_call" and field(item, "output") is not None:
                text = text_of(field(item, "output"), note)
                made.append({"role": "tool", "call_id": _call_id(item), "name": None, "text": text, "error": False})
    for one in made:
        one.pop("answer", None)
    return made


def _item_call(item: Any, note: Any) -> Any:
    kind = field(item, "type")
    arguments = field(item, "arguments")
    if arguments is None:
        arguments = field(item, "input")  # a custom tool
    if arguments is None and kind != "function_call":
        known = plain(item) if not isinstance(item, dict) else item
        left = ("id", "call_id", "type", "status", "output", "results", "provider_data", "name")
        arguments = {name: value for name, value in known.items() if name not in left and value is not None}
    call = {"name": str(field(item, "name") or kind.replace("_call", "")), "arguments": _arguments(arguments, note)}
    if _call_id(item):
        call["id"] = _call_id(item)
    return call


def _call_id(item: Any) -> Any:
    return real_id(field(item, "call_id")) or real_id(field(item, "id"))
