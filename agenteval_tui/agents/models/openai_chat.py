"""Chat Completions: a conversation as its requests hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from agenteval_tui.agents.base import AgentEvent, Attached, ReasoningDelta, TextDelta, ToolCallFinished, ToolSpec
from agenteval_tui.agents.http.errors import error_in, is_error, words_in
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.attachments import SentFile, parts_of, received, refuse
from agenteval_tui.agents.models.message_mapping import CallIds, ProviderMessage
from agenteval_tui.agents.models.openai_options import OpenAIOptions
from agenteval_tui.agents.models.stream import (
    CallParts,
    EmptyResponseError,
    ModelReply,
    ProviderError,
    decoded,
    decoded_object,
    kind_of,
    listed,
    mappings,
    string,
)
from agenteval_tui.transcripts.content_parts import attachment_of

_JOINED = ("text", "summary", "data")
_AUDIO = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_BY_ITSELF = ("stop", "tool_calls", "function_call")
# Nearly all pieces of a stream are a text and nothing else; the whole look at one takes twice as long.
_CHOICE_KEYS = frozenset(("index", "delta", "finish_reason", "logprobs"))


class ChatOptions(Protocol):
    """The options of an agent that is asked in the words of Chat Completions."""

    def chat_body(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], seed: int) -> dict[str, Any]:
        """The JSON of a request."""
        ...


class ChatProtocol:
    """`POST /chat/completions`."""

    path = "chat/completions"
    models_path = "models"

    def __init__(self, options: OpenAIOptions) -> None:
        self._options = options

    def begin(self, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int) -> ChatDialogue:
        """A conversation that begins with these messages."""
        return ChatDialogue(self._options, messages, tools, seed)


class ChatDialogue:
    """One run's conversation."""

    def __init__(
        self, options: ChatOptions, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int
    ) -> None:
        self._options = options
        self._seed = seed
        self._ids = CallIds.of(messages)
        self._messages = [own_message for message in messages for own_message in _told(message)]
        self._tools = [spec.declared for spec in tools]

    def body(self) -> dict[str, Any]:
        """The JSON of the next request."""
        return self._options.chat_body(self._messages, self._tools, self._seed)

    def reply(self, first_key: int) -> ChatReply:
        """What reads the answer."""
        return ChatReply(first_key)

    def add_results(self, reply: ChatReply, results: Mapping[int, ToolCallFinished]) -> None:
        """Add the model's message and the results of its calls."""
        ids = {call.key: self._ids.fresh(call.id) for call in reply.calls}
        calls = [
            {"id": ids[call.key], "type": "custom", "custom": {"name": call.name, "input": call.arguments_text}}
            if call.custom
            else {**_call(ids[call.key], call.name, call.arguments_text), **call.extra}
            for call in reply.calls
        ]
        # `content` is null for none: several servers refuse an empty text beside calls.
        message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.text) or None, "tool_calls": calls}
        if reply.thinking:
            message["reasoning_content"] = "".join(reply.thinking)
        if reply.details:
            message["reasoning_details"] = _merged(reply.details)
        self._messages.append(message)
        for call in reply.calls:
            self._messages.append(_result(ids[call.key], results[call.key].result))


def _told(message: ProviderMessage) -> Iterable[dict[str, Any]]:
    fields: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.attachments and message.role == "user":
        fields["content"] = [_part(part) for part in parts_of(message)]
    if message.name is not None:
        fields["name"] = message.name
    if message.calls:
        fields["content"] = message.text or None
        fields["tool_calls"] = [_call(call.id, call.name, call.arguments) for call in message.calls]
    yield fields
    for call in message.calls:
        yield _result(call.id, call.result)


def _part(part: str | SentFile) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if part.is_image:
        return {"type": "image_url", "image_url": {"url": part.address}}
    if part.url:
        raise refuse(part, "Chat Completions", "write it into a file beside the suite, or use `api: responses`")
    if part.media_type in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": part.base64, "format": _AUDIO[part.media_type]}}
    return {"type": "file", "file": {"filename": part.name or "file", "file_data": part.address}}


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}


def _result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _merged(details: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of a stream's thinking put together: those of one kind and index follow one another."""
    merged: list[dict[str, Any]] = []
    for piece in details:
        last = merged[-1] if merged else None
        same = (
            last is not None
            and piece.get("index") is not None
            and all(last.get(key) == piece.get(key) for key in ("type", "index"))
        )
        if last is None or not same:
            merged.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in _JOINED and isinstance(value, str) and isinstance(last.get(key), str):
                last[key] += value
            elif value is not None:
                last[key] = value
    return merged


# Joining the pieces of a Chat Completions reply, in all the dialects that servers speak


class ChatReply(ModelReply):
    """One reply of Chat Completions.

    `thinking` and `extra` are what a server sends beside the answer and wants back within a loop of tool calls:
    DeepSeek's `reasoning_content`, OpenRouter's `reasoning_details`. `whole`: the message as litellm puts it together.
    """

    protocol = "Chat Completions"
    nothing = "no choice with a message came"

    def __init__(self, first_key: int = 0) -> None:
        super().__init__(first_key)
        self.thinking: list[str] = []
        self.details: list[Any] = []
        self.whole: Mapping[str, Any] = {}
        self._begun = False  # the message itself has come, were it empty
        self._by_index: dict[int, CallParts] = {}  # the last call at each index
        self._by_id: dict[str, CallParts] = {}
        self._name_again: CallParts | None = None  # the call whose name came again, after its arguments

    def take(self, sent: ServerEvent) -> Iterator[AgentEvent]:
        if sent.data.strip() == "[DONE]":
            self.over = True
            return
        chunk = decoded(sent.data)
        text = _only_text(chunk)
        if text is not None:
            self.model = self.model or chunk["model"]
            self.text.append(text)
            yield TextDelta(text)
            return
        if not isinstance(chunk, Mapping):
            raise EmptyResponseError(f"a JSON {type(chunk).__name__} where an object is due")
        yield from self.take_chunk(chunk)

    def take_whole(self, text: str) -> Iterator[AgentEvent]:
        value = decoded_object(text)
        yield from self.take_chunk(value)
        if not isinstance(value.get("choices"), list) or not value["choices"]:
            raise EmptyResponseError(f"an object without `choices` ({words_in(text)[:200]})")

    def rest(self) -> Iterator[AgentEvent]:
        # An answer may be empty when the server says why it ended; Azure leaves out the message of a filtered one.
        why = self.finish_reason
        self.usable = self.usable or (bool(why) and (self._begun or why not in _BY_ITSELF))
        return super().rest()

    def take_chunk(self, chunk: Mapping[str, Any]) -> Iterator[AgentEvent]:
        """The events of a piece of a stream, or of a whole reply."""
        if chunk.get("error") or (not chunk.get("choices") and is_error(chunk)):
            raise ProviderError(error_in(chunk))
        if isinstance(chunk.get("model"), str):
            self.model = self.model or chunk["model"]
        # Groq has the usage of a stream in a field of its own.
        groq = chunk.get("x_groq")
        self.take_usage(chunk.get("usage") or (groq.get("usage") if isinstance(groq, Mapping) else None))
        for choice in mappings(chunk.get("choices")):
            # A run has one answer, were several asked for.
            if choice.get("index") in (0, None):
                yield from self._take_choice(choice)

    def _take_choice(self, choice: Mapping[str, Any]) -> Iterator[AgentEvent]:
        if choice.get("error"):
            raise ProviderError(choice["error"])
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        delta = choice.get("delta")
        # Some servers send a whole message where a stream was asked for.
        whole = not isinstance(delta, Mapping)
        if whole:
            delta = choice.get("message")
        if not isinstance(delta, Mapping):
            return
        self._begun = True
        # A whole message with an empty text has a text; the first piece of a stream has one before there is any.
        self.usable = self.usable or (whole and isinstance(delta.get("content"), str))
        for key in ("reasoning_content", "reasoning"):
            if isinstance(delta.get(key), str) and delta[key]:
                self.usable = True
                if key == "reasoning_content":
                    self.thinking.append(delta[key])
                yield ReasoningDelta(delta[key])
                # Some servers send the same thinking under both names.
                break
        self.details.extend(mappings(delta.get("reasoning_details")))
        for event in _content(delta.get("content")):
            self.usable = self.usable or isinstance(event, Attached)
            if isinstance(event, TextDelta):
                self.text.append(event.text)
            yield event
        for image in listed(delta, "images"):  # OpenRouter
            self.usable = True
            yield from received(image, "image")
        yield from self.add_text(string(delta.get("refusal")))
        for part in listed(delta, "tool_calls"):
            yield from self._take_call(part, whole=whole)
        # The form before `tools`, which older servers still send.
        if isinstance(delta.get("function_call"), Mapping):
            yield from self._take_call({"index": 0, "function": delta["function_call"]})

    def _take_call(self, part: Mapping[str, Any], *, whole: bool = False) -> Iterator[AgentEvent]:
        call = self._new_call(part) if whole else self._call_of(part)
        function = part.get("function")
        custom = part.get("custom")
        if isinstance(custom, Mapping):
            call.custom = True
            yield from self.take_name(call, custom.get("name"))
            yield from self.add_arguments(call, custom.get("input"))
        if not isinstance(function, Mapping):
            return
        yield from self.take_name(call, function.get("name"))
        if isinstance(part.get("extra_content"), Mapping):
            call.extra["extra_content"] = part["extra_content"]  # Gemini's signature of its thinking
        yield from self.add_arguments(call, function.get("arguments"))

    def _call_of(self, part: Mapping[str, Any]) -> CallParts:
        """The call that a fragment belongs to.

        By index as a rule. Some servers leave the index out, or give every call the index 0: then a new id begins a
        new call, and so does a name where the last call can't go on. A fragment without both belongs to the last one.
        """
        index, call_id = _index_and_id(part)
        if index is not None:
            call = self._by_index.get(index)
        else:
            call = self._by_id.get(call_id) or (self.calls[-1] if self.calls else None)
        # Another id begins another call, even at an index that is in use.
        if call is None or (call_id and call.given_id and call.given_id != call_id):
            return self._new_call(part)
        if call_id and call.given_id:
            return call
        if self._begins_another(part, call):
            following = self._new_call(part)
            # The name came with the fragment before, which could not be told to be a call of its own
            # (`_begins_another`).
            following.name = _name(part) or call.name
            return following
        if call_id and not call.started:
            call.id = call.given_id = call_id
            self._by_id[call_id] = call
        return call

    def _begins_another(self, part: Mapping[str, Any], call: CallParts) -> bool:
        """Whether a fragment without the id of this call starts a new call.

        A second name does, and so does the same name when the arguments are complete. Some servers repeat the name
        with each fragment, so a name alone waits for the arguments that follow it: there may be none.
        """
        name, waited = _name(part), self._name_again is call
        self._name_again = None
        if not call.name or not (name or waited):
            return False
        if name and name != call.name:
            return True
        if not call.complete:
            return False
        if _has_arguments(part):
            return True
        self._name_again = call
        return False

    def _new_call(self, part: Mapping[str, Any]) -> CallParts:
        index, call_id = _index_and_id(part)
        call = self.add_call(call_id, index=index)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
        return call


def _only_text(chunk: Any) -> str | None:
    """The text of a chunk that holds a text and nothing else, as nearly all do; None for any other."""
    try:
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        if (
            len(delta) == 1
            and not choice["index"]
            and choice.get("finish_reason") is None
            and choice.keys() <= _CHOICE_KEYS
            and chunk.get("usage") is None
            and not chunk.get("error")
            and "x_groq" not in chunk
            and type(chunk["model"]) is str
        ):
            text = delta["content"]
            return text if type(text) is str and text else None
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return None


def _index_and_id(part: Mapping[str, Any]) -> tuple[int | None, str]:
    index, call_id = part.get("index"), part.get("id")
    return index if isinstance(index, int) else None, call_id if isinstance(call_id, str) else ""


def _name(part: Mapping[str, Any]) -> str:
    function = part.get("function")
    return string(function.get("name")) if isinstance(function, Mapping) else ""


def _has_arguments(part: Mapping[str, Any]) -> bool:
    function = part.get("function")
    return isinstance(function, Mapping) and function.get("arguments") not in (None, "")


def _content(content: object) -> Iterator[AgentEvent]:
    """Text, or a list of parts: text and thinking (which may be a list of parts itself)."""
    if isinstance(content, str):
        if content:
            yield TextDelta(content)
        return
    if content is None:
        return
    if not isinstance(content, list):
        raise EmptyResponseError(f"`content` is {kind_of(content)} where a text is due")
    unread: list[str] = []
    for part in content:
        if isinstance(part, str):
            yield TextDelta(part)
        elif not isinstance(part, Mapping):
            raise EmptyResponseError(f"a part of `content` is {kind_of(part)} where an object is due")
        elif "thinking" in part:
            thinking = part["thinking"]
            for inner in thinking if isinstance(thinking, list) else [thinking]:
                text = inner.get("text") if isinstance(inner, Mapping) else inner
                if isinstance(text, str) and text:
                    yield ReasoningDelta(text)
        elif "text" in part or "refusal" in part:
            text = part["text"] if "text" in part else part["refusal"]
            if text is not None and not isinstance(text, str):
                raise EmptyResponseError(f"the text of a part of `content` is {kind_of(text)}")
            if text:
                yield TextDelta(text)
        elif attachment_of(part) is not None:
            yield from received(part, str(part.get("type", "file"))[:40])
        else:
            unread.append(str(part.get("type", "no type"))[:40])
    if unread and len(unread) == len(content):
        raise EmptyResponseError(f"`content` has no text, only parts of other types: {', '.join(unread[:5])}")
