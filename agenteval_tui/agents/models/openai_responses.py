"""The Responses API: a conversation as the items of its requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.base import AgentEvent, ReasoningDelta, ToolCallFinished, ToolSpec
from agenteval_tui.agents.http.errors import error_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.attachments import SentFile, image_of_base64, parts_of, received
from agenteval_tui.agents.models.hosted_calls import hosted_call
from agenteval_tui.agents.models.message_mapping import CallIds, ProviderMessage
from agenteval_tui.agents.models.openai_options import OpenAIOptions
from agenteval_tui.agents.models.stream import (
    CallParts,
    ModelReply,
    ProviderError,
    decoded_object,
    listed,
    mappings,
    place_at,
    reply_with,
    string,
    text_at,
)

_FEWEST_TOKENS = 16  # a smaller `max_output_tokens` is refused
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done")
_CALLS = ("function_call", "custom_tool_call")
"""Items of calls that the program runs: the input of a custom tool is any text."""
_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_WHOLE_TEXTS = ("response.output_text.done", "response.refusal.done")
# The shorter names are those of earlier versions of the API, which some servers still speak.
_THOUGHTS = (
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary.delta",
    "response.reasoning_text.delta",
    "response.reasoning.delta",
)
_ARGUMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_WHOLE_ARGUMENTS = ("response.function_call_arguments.done", "response.custom_tool_call_input.done")
# Why an answer is incomplete, in the words of Chat Completions.
_REASONS = {"max_output_tokens": "length"}


class ResponsesProtocol:
    """`POST /responses`. The whole conversation is sent each time; nothing rests on what the server stored."""

    path = "responses"
    models_path = "models"

    def __init__(self, options: OpenAIOptions) -> None:
        least = options.max_tokens is not None and options.max_tokens < _FEWEST_TOKENS
        self._options = options.model_copy(update={"max_tokens": _FEWEST_TOKENS}) if least else options

    def begin(self, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int) -> ResponsesDialogue:
        """A conversation that begins with these messages."""
        return ResponsesDialogue(self._options, messages, tools)


class ResponsesDialogue:
    """One run's conversation."""

    def __init__(self, options: OpenAIOptions, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec]) -> None:
        self._options = options
        self._ids = CallIds.of(messages)
        self._items = [item for message in messages for item in _told(message)]
        self._tools = [_declared(spec) for spec in tools]

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        return self._options.responses_body(self._items, self._tools)

    def reply(self, first_key: int) -> ResponsesReply:
        """What reads the answer."""
        return ResponsesReply(first_key)

    def add_results(self, reply: ResponsesReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the output's items, the thinking among them, and the results of the calls.

        Models that think want their thinking back between a call and its result. A server that stores nothing takes
        it only in encrypted form, and knows none of its own ids.
        """
        # Calls and their items come in the same order; ids may be missing.
        calls = list(reply.calls)
        answered: list[dict[str, Any]] = []
        for item in reply.items:
            if item.get("type") in _CALLS and calls:
                call = calls.pop(0)
                call_id = self._ids.fresh(call.id)
                answered.append(_result(call_id, results[call.key].result, custom=item["type"] == "custom_tool_call"))
                item = {**item, "call_id": call_id}
                if item["type"] == "function_call":
                    item["arguments"] = call.arguments_text or "{}"
            # The server would look for it by its id, and has stored nothing.
            elif item.get("type") == "reasoning" and not self._options.store and not item.get("encrypted_content"):
                continue
            if not self._options.store and item.get("type") in (*_CALLS, "message"):
                item = {key: value for key, value in item.items() if key not in ("id", "status")}
            self._items.append(dict(item))
        for call in calls:  # calls whose item never ended
            call_id = self._ids.fresh(call.id)
            self._items.append(_call(call_id, call.name, call.arguments_text))
            answered.append(_result(call_id, results[call.key].result))
        # After all of the model's own items, as the results follow the calls of one response.
        self._items += answered


def _told(message: ProviderMessage) -> Iterable[dict[str, Any]]:
    if message.text or not message.calls:
        parts = message.attachments and message.role == "user"
        yield {"role": message.role, "content": [_part(part) for part in parts_of(message)] if parts else message.text}
    for call in message.calls:
        yield _call(call.id, call.name, call.arguments)
    for call in message.calls:
        yield _result(call.id, call.result)


def _part(part: str | SentFile) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if part.is_image:
        return {"type": "input_image", "image_url": part.address}
    if part.url:
        return {"type": "input_file", "file_url": part.url}
    return {"type": "input_file", "filename": part.name or "file", "file_data": part.address}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments or "{}"}


def _result(call_id: str, text: str, *, custom: bool = False) -> dict[str, Any]:
    return {"type": "custom_tool_call_output" if custom else "function_call_output", "call_id": call_id, "output": text}


def _declared(spec: ToolSpec) -> dict[str, Any]:
    # Not strict: that is the API's default and refuses most schemas that people write.
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "strict": False, **function}


# Joining the pieces of a reply of the Responses API


class ResponsesReply(ModelReply):
    """One reply of the Responses API. `items` are the output's items as they came, in their order."""

    protocol = "Responses"
    nothing = "a response whose `output` is empty"

    def __init__(self, first_key: int = 0) -> None:
        super().__init__(first_key)
        self._items: dict[int, Mapping[str, Any]] = {}
        self._calls_at: dict[int, CallParts] = {}
        self._call_of_item: dict[str, CallParts] = {}
        self._streamed: set[tuple[int, str]] = set()  # (place, what) of which pieces have come
        self._last_summary: tuple[int, int] | None = None

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """The items that are complete, in order."""
        return [self._items[place] for place in sorted(self._items)]

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        if sent.data.strip() == "[DONE]":
            self.over = bool(self.finish_reason)
            return
        chunk = decoded_object(sent.data)
        kind = string(chunk.get("type")) or sent.name
        if kind == "error" or (chunk.get("error") and not kind.startswith("response.")):
            raise ProviderError(error_in(chunk))
        if kind in _ENDS or kind in ("response.created", "response.in_progress"):
            response = chunk.get("response")
            if isinstance(response, Mapping):
                yield from self._take_response(response, kind)
        elif kind == "response.output_item.added":
            yield from self._added(place_at(chunk, "output_index"), chunk.get("item"))
        elif kind == "response.output_item.done":
            yield from self._done(place_at(chunk, "output_index"), chunk.get("item"))
        else:
            yield from self._take_piece(kind, chunk)

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        value = reply_with("output", text)
        yield from self._take_response(value, f"response.{string(value.get('status')) or 'completed'}")

    def rest(self) -> Iterator[AgentEvent]:
        # Nothing but thinking is an empty answer; so is nothing at all when the limit is why.
        self.usable = self.usable or bool(self._items) or self.finish_reason not in ("", "stop", "tool_calls")
        return super().rest()

    def _take_response(self, response: Mapping[str, Any], kind: str) -> Iterator[AgentEvent]:
        self.model = self.model or string(response.get("model"))
        self.take_usage(response.get("usage"))
        # The first events hold the response as it begins: without output, but with its model.
        if kind not in _ENDS:
            return
        status = string(response.get("status")) or kind.rpartition(".")[2]
        if status in ("failed", "cancelled"):
            raise ProviderError(response.get("error") or {"message": f"the response was {status}"})
        for place, item in enumerate(listed(response, "output")):
            # A server may leave out the events of single items; at the end all of them are there.
            if place not in self._items:
                yield from self._done(place, item)
        details = response.get("incomplete_details")
        reason = string(details.get("reason")) if isinstance(details, Mapping) else ""
        if status == "incomplete":
            self.finish_reason = _REASONS.get(reason, reason) or "incomplete"
        else:
            self.finish_reason = "tool_calls" if self.calls else "stop"
        self.over = True

    def _added(self, place: int, item: object) -> Iterator[AgentEvent]:
        if isinstance(item, Mapping) and item.get("type") in _CALLS:
            yield from self._call(place, item)

    def _done(self, place: int, item: object) -> Iterator[AgentEvent]:
        """An item is complete: what of it did not come in pieces comes now."""
        if not isinstance(item, Mapping):
            return
        self._items[place] = item
        kind = item.get("type")
        if kind in _CALLS:
            yield from self._call(place, item)
            yield from self._whole_arguments(self._calls_at[place], item.get("arguments", item.get("input")))
        elif (hosted := hosted_call(item)) is not None:
            yield from self.add_hosted(hosted)
            if kind == "image_generation_call":
                media_type = f"image/{string(item.get('output_format')) or 'png'}"
                yield from received(image_of_base64(item.get("result"), media_type), "image")
        elif kind == "message":
            content = item.get("content")
            # A message may have its text as it is, as in the input.
            for part in listed({"content": [{"text": content}]} if isinstance(content, str) else item, "content"):
                text = text_at(part, "text") or text_at(part, "refusal")
                yield from self._text(place, "text" if "text" in part else "refusal", text, whole=True, last=False)
            # After all parts: the first one must not keep the others from being told.
            self._streamed |= {(place, "text"), (place, "refusal")}
        elif kind == "reasoning" and (place, "reasoning") not in self._streamed:
            parts = [string(part.get("text")) for key in ("summary", "content") for part in mappings(item.get(key))]
            thought = "\n\n".join(part for part in parts if part)
            if thought:
                yield ReasoningDelta(thought)

    def _take_piece(self, kind: str, chunk: Mapping[str, Any]) -> Iterator[AgentEvent]:
        place = place_at(chunk, "output_index")
        what = "text" if "text" in kind else "refusal"
        if kind in _TEXTS:
            yield from self._text(place, what, text_at(chunk, "delta"))
        elif kind in _WHOLE_TEXTS:
            yield from self._text(place, what, string(chunk.get(what)), whole=True)
        elif kind in _THOUGHTS:
            yield from self._reasoning(place, chunk.get("summary_index"), string(chunk.get("delta")))
        elif kind in (*_ARGUMENTS, *_WHOLE_ARGUMENTS) and (call := self._call_at(chunk)) is not None:
            if kind in _ARGUMENTS:
                yield from self.add_arguments(call, string(chunk.get("delta")))
            else:
                yield from self._whole_arguments(call, chunk.get("arguments", chunk.get("input")))

    def _text(
        self, place: int, what: str, text: str, *, whole: bool = False, last: bool = True
    ) -> Iterator[AgentEvent]:
        """A piece of text, or with `whole` all of it, which counts only where no pieces came."""
        if whole and (place, what) in self._streamed:
            return
        if text:
            if not whole or last:
                self._streamed.add((place, what))
            yield from self.add_text(text)

    def _reasoning(self, place: int, part: object, text: str) -> Iterator[AgentEvent]:
        here = (place, part if isinstance(part, int) else 0)
        if text:
            # Parts of a summary are paragraphs.
            if self._last_summary not in (None, here):
                text = f"\n\n{text}"
            self._last_summary = here
            self._streamed.add((place, "reasoning"))
            yield ReasoningDelta(text)

    def _call(self, place: int, item: Mapping[str, Any]) -> Iterator[AgentEvent]:
        """The call of an item, announced if it was not."""
        if place not in self._calls_at:
            call_id = string(item.get("call_id")) or string(item.get("id"))
            call = self.add_call(call_id, string(item.get("name")), place)
            self._calls_at[place] = call
            if string(item.get("id")):
                self._call_of_item[item["id"]] = call
        yield from self.take_name(self._calls_at[place], item.get("name"))

    def _whole_arguments(self, call: CallParts, arguments: object) -> Iterator[AgentEvent]:
        if not call.arguments:
            yield from self.add_arguments(call, arguments)

    def _call_at(self, chunk: Mapping[str, Any]) -> CallParts | None:
        call = self._call_of_item.get(string(chunk.get("item_id")))
        return call or self._calls_at.get(place_at(chunk, "output_index"))
