"""What a Python agent is called with, and what it gives, as events. Runs in the child: needs only the standard library.

An agent may give a text; an event (a dict with `type`); a message or messages as OpenAI, LangChain or LangGraph have
them; a dict or an object with an answer in it; or yield any of these.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from typing import Any

EVENTS = ("text", "reasoning", "tool_call", "tool_result", "message_end", "usage", "done", "error")
OFFERED = ("prompt", "messages", "context", "variables", "config", "test", "repetition", "seed", "run", "turn")
ANSWERS = ("final_output", "output", "answer", "content", "text", "response", "result")
ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


def call(function: Any, request: Any) -> Any:
    """Call it with what its parameters ask for: names of the request, `request` itself, else the prompt."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C
        return function(request["prompt"])
    positional, named = [], {}
    prompted = any(one.name in ("prompt", "request") for one in parameters)
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.name == "request":
            value = request
        elif one.name in OFFERED:
            value = request[one.name]
        elif one.default is one.empty and not prompted and one.kind is not one.KEYWORD_ONLY:
            value, prompted = request["prompt"], True
        elif one.default is one.empty:
            known = ", ".join(OFFERED)
            raise TypeError(f"an agent is not given {one.name!r}; what it may ask for: {known}, request")
        else:
            continue
        if one.kind is one.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[one.name] = value
    return function(*positional, **named)


def events(piece: Any, given: Any, streamed: Any) -> Any:
    """The events that something an agent gave means. `given`: the messages it was asked with, which a framework may
    give back before its own. `streamed`: the piece is one of several."""
    if piece is None:
        return
    if isinstance(piece, str):
        yield {"type": "text", "text": piece}
        return
    piece = _data(piece)
    if isinstance(piece, dict):
        for event in _dict(piece, given, streamed):
            yield event
    elif isinstance(piece, (list, tuple)) and piece and all(_is_message(_data(one)) for one in piece):
        for event in _messages([_data(one) for one in piece], given):
            yield event
    elif isinstance(piece, (bool, int, float, list, tuple)):
        yield {"type": "text", "text": json.dumps(piece, default=str, ensure_ascii=False)}
    else:
        raise TypeError(f"an agent can't give a {type(piece).__name__}; give a text, an event or messages")


def _dict(piece: Any, given: Any, streamed: Any) -> Any:
    if piece.get("type") in EVENTS and not _is_message(piece):
        yield piece
        return
    if isinstance(piece.get("messages"), (list, tuple)):
        for event in _messages([_data(one) for one in piece["messages"]], given):
            yield event
        return
    if isinstance(piece.get("choices"), list) and piece["choices"]:  # a Chat Completions response
        choice = _data(piece["choices"][0])
        message = dict(_data(choice.get("message") or {}), role="assistant")
        for event in _messages([message], []):
            yield event
        for event in _usage(piece):
            yield event
        yield {
            "type": "done",
            "finish_reason": choice.get("finish_reason") or "stop",
            "model": piece.get("model") or "",
        }
        return
    if _is_message(piece):
        for event in _messages([piece], [], not streamed):
            yield event
        return
    answer = next((name for name in ANSWERS if piece.get(name) is not None), None)
    if answer is None:
        yield {"type": "text", "text": json.dumps(piece, default=str, ensure_ascii=False)}
        return
    calls = piece.get("tool_calls")
    for event in _messages([{"role": "assistant", "tool_calls": calls, "content": ""}], []) if calls else ():
        yield event
    value = piece[answer]
    yield {"type": "text", "text": value if isinstance(value, str) else _content(value)}
    for event in _usage(piece):
        yield event
    if piece.get("model"):
        yield {"type": "done", "model": str(piece["model"])}


def _messages(messages: Any, given: Any, whole: Any = True) -> Any:
    """Events of messages, those apart that the agent was asked with."""
    begin = _common(messages, given)
    for number, message in enumerate(messages[begin:]):
        role = _role(message)
        if role == "assistant":
            if number:
                yield {"type": "message_end"}
            thought = message.get("reasoning_content") or message.get("reasoning")
            if isinstance(thought, str) and thought:
                yield {"type": "reasoning", "text": thought}
            text = _content(message.get("content"))
            if text:
                yield {"type": "text", "text": text}
            for one in message.get("tool_calls") or ():
                one = _data(one)
                function = _data(one.get("function")) or one
                arguments = function.get("arguments", function.get("args"))
                call = {"type": "tool_call", "name": str(function.get("name")), "arguments": arguments}
                if arguments is None:
                    call["arguments"] = {}
                if one.get("id"):
                    call["id"] = str(one["id"])
                if "result" in one:
                    yield call
                    yield dict(_only(call, "id"), type="tool_result", result=_json(one["result"]))
                    continue
                yield call
            yield from _usage(message)
        elif role == "tool":
            result = {"type": "tool_result", "result": _content(message.get("content"))}
            if message.get("tool_call_id"):
                result["id"] = str(message["tool_call_id"])
            result["error"] = bool(message.get("error") or message.get("is_error") or message.get("status") == "error")
            yield result
    if whole and messages:
        yield {"type": "message_end"}


def _common(messages: Any, given: Any) -> Any:
    """How many of the first messages are those that the agent was asked with."""
    asked = [(_role(one), _content(one.get("content"))) for one in given]
    spoken = [one for one in asked if one[0] != "system"]
    if not spoken:
        return 0
    at = 0
    for number, message in enumerate(messages):
        said = (_role(message), _content(message.get("content")))
        if said[0] == "system":
            continue
        if said != spoken[at]:
            return 0
        at += 1
        if at == len(spoken):
            return number + 1
    return 0


def _is_message(piece: Any) -> Any:
    if not isinstance(piece, dict):
        return False
    return isinstance(piece.get("role"), str) or (
        piece.get("type") in ("human", "ai", "system", "tool") and "content" in piece
    )


def _role(message: Any) -> Any:
    role = message.get("role") or message.get("type") or ""
    return ROLES.get(role, role)


def _content(content: Any) -> Any:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        texts = []
        for part in content:
            part = _data(part)
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                texts.append(text)
        return "".join(texts)
    return _json(_data(content))


def _usage(piece: Any) -> Any:
    usage = _data(piece.get("usage") or piece.get("usage_metadata"))
    if isinstance(usage, dict):
        names = ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
        found = {name: usage[name] for name in names if isinstance(usage.get(name), (int, float))}
        if found:
            yield dict(found, type="usage")


def _data(given: Any) -> Any:
    """An object as a dict, where it has the form of one."""
    if given is None or isinstance(given, (str, dict, list, tuple, bool, int, float)):
        return given
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json")
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return {one.name: getattr(given, one.name) for one in dataclasses.fields(given)}
    found = {}
    for name in (*ANSWERS, "role", "tool_calls", "messages", "usage", "model"):
        value = getattr(given, name, None)
        if value is not None and not callable(value):
            found[name] = value
    return found or given


def _json(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return json.dumps(value, default=lambda one: _data(one) if _data(one) is not one else str(one), ensure_ascii=False)


def _only(piece: Any, *names: Any) -> Any:
    return {name: piece[name] for name in names if name in piece}
