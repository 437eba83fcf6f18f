"""One answer in the words of each protocol: what a scripted server sends to an agent of each kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scripted import Answer

STREAM = "text/event-stream"


@dataclass(frozen=True)
class Text:
    """Text, in pieces."""

    pieces: Sequence[str]


@dataclass(frozen=True)
class Call:
    """A call of a tool, its arguments in pieces."""

    id: str
    name: str
    pieces: Sequence[str] = ("{}",)


@dataclass(frozen=True)
class Dialect:
    """A protocol: how an agent is told to speak it, and what a server of it sends."""

    name: str

    def config(self, url: str, **more: Any) -> dict[str, Any]:
        """An agent's configuration."""
        if self.name == "http":
            own: dict[str, Any] = {"kind": "http", "url": f"{url}/ask", "stream": "sse", "delta": "delta"}
            return {**own, "tool_calls": "calls", "error": "error", **more}
        kind = {"kind": "anthropic"} if self.name == "anthropic" else {"kind": "openai"}
        api = {"api": "responses"} if self.name == "responses" else {}
        return {**kind, **api, "base_url": url, "model": "m", **more}

    def chunks(self, *parts: Text | Call, end: bool = True) -> list[bytes]:
        """The events of a streamed answer; without `end` it breaks off before it says that it is over."""
        made: list[Any] = getattr(self, f"_{self.name}")(parts, end)
        return [event(one) for one in made]

    def stream(self, *parts: Text | Call, end: bool = True) -> Answer:
        """A streamed answer."""
        return Answer(body=b"".join(self.chunks(*parts, end=end)), content_type=STREAM)

    def whole(self, text: str) -> Answer:
        """An answer that comes at once."""
        made: Any = {
            "chat": {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]},
            "anthropic": {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"},
            "responses": {"status": "completed", "output": [_message(text)]},
            "http": {"delta": text},
        }[self.name]
        return Answer(body=json.dumps(made))

    def error_event(self, kind: str, message: str) -> bytes:
        """An error in the midst of a stream."""
        error = {"type": kind, "message": message}
        if self.name == "responses":
            failed = {"status": "failed", "error": {"code": kind, "message": message}}
            return event({"type": "response.failed", "response": failed})
        return event({"type": "error", "error": error} if self.name == "anthropic" else {"error": error})

    def results(self, body: dict[str, Any]) -> list[tuple[str, str]]:
        """The results of tools in a request: (id of the call, text)."""
        if self.name == "chat":
            return [(m["tool_call_id"], m["content"]) for m in body["messages"] if m["role"] == "tool"]
        if self.name == "responses":
            items = [one for one in body["input"] if one.get("type") == "function_call_output"]
            return [(one["call_id"], one["output"]) for one in items]
        blocks = [block for message in body["messages"] for block in message["content"]]
        return [(one["tool_use_id"], one["content"]) for one in blocks if one["type"] == "tool_result"]

    def calls(self, body: dict[str, Any]) -> list[tuple[str, str, Any]]:
        """The calls of tools in a request: (id, name, arguments as they are sent)."""
        if self.name == "chat":
            listed = [call for m in body["messages"] for call in m.get("tool_calls", ())]
            return [(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in listed]
        if self.name == "responses":
            items = [one for one in body["input"] if one.get("type") == "function_call"]
            return [(one["call_id"], one["name"], one["arguments"]) for one in items]
        blocks = [block for message in body["messages"] for block in message["content"]]
        return [(one["id"], one["name"], one["input"]) for one in blocks if one["type"] == "tool_use"]

    def _chat(self, parts: Sequence[Text | Call], end: bool) -> list[Any]:
        made: list[Any] = []
        index = 0
        for part in parts:
            if isinstance(part, Text):
                made += [_delta(content=piece) for piece in part.pieces]
                continue
            first = {"index": index, "id": part.id, "function": {"name": part.name, "arguments": ""}}
            made.append(_delta(tool_calls=[first]))
            made += [_delta(tool_calls=[{"index": index, "function": {"arguments": one}}]) for one in part.pieces]
            index += 1
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if index else "stop"}]}
        return [*made, last] if end else made

    def _anthropic(self, parts: Sequence[Text | Call], end: bool) -> list[Any]:
        made: list[Any] = [{"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}]
        for index, part in enumerate(parts):
            text = isinstance(part, Text)
            block = {"type": "text", "text": ""} if text else {"type": "tool_use", "input": {}}
            if isinstance(part, Call):
                block |= {"id": part.id, "name": part.name}
            made.append({"type": "content_block_start", "index": index, "content_block": block})
            kind, field = ("text_delta", "text") if text else ("input_json_delta", "partial_json")
            for piece in part.pieces:
                delta = {"type": kind, field: piece}
                made.append({"type": "content_block_delta", "index": index, "delta": delta})
            if end:
                made.append({"type": "content_block_stop", "index": index})
        reason = "tool_use" if any(isinstance(part, Call) for part in parts) else "end_turn"
        if end:
            made.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
            made.append({"type": "message_stop"})
        return made

    def _responses(self, parts: Sequence[Text | Call], end: bool) -> list[Any]:
        made: list[Any] = [{"type": "response.created", "response": {"model": "m", "status": "in_progress"}}]
        for index, part in enumerate(parts):
            place = {"output_index": index, "item_id": f"item_{index}"}
            if isinstance(part, Text):
                item = _message("".join(part.pieces))
                made += [{"type": "response.output_text.delta", "delta": one, **place} for one in part.pieces]
            else:
                item = {"type": "function_call", "id": f"item_{index}", "call_id": part.id, "name": part.name}
                made.append({"type": "response.output_item.added", "item": {**item, "arguments": ""}, **place})
                kind = "response.function_call_arguments.delta"
                made += [{"type": kind, "delta": one, **place} for one in part.pieces]
                item |= {"arguments": "".join(part.pieces)}
            if end:
                made.append({"type": "response.output_item.done", "item": item, **place})
        if end:
            usage = {"input_tokens": 3, "output_tokens": 5}
            made.append({"type": "response.completed", "response": {"status": "completed", "usage": usage}})
        return made

    def _http(self, parts: Sequence[Text | Call], end: bool) -> list[Any]:
        made: list[Any] = []
        for part in parts:
            if isinstance(part, Text):
                made += [{"delta": piece} for piece in part.pieces]
            else:
                call = {"id": part.id, "name": part.name, "arguments": "".join(part.pieces), "result": "x"}
                made.append({"calls": [call]})
        return [*made, "[DONE]"] if end else made


def event(value: Any) -> bytes:
    """One server-sent event."""
    name = f"event: {value['type']}\n" if isinstance(value, dict) and "type" in value else ""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"{name}data: {data}\n\n".encode()


def _delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


CHAT, RESPONSES, ANTHROPIC, HTTP = (Dialect(name) for name in ("chat", "responses", "anthropic", "http"))
MODELS = (CHAT, RESPONSES, ANTHROPIC)
ALL = (*MODELS, HTTP)
