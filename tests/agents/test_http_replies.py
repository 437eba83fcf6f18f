"""Whatever JSON a server sends, a reply is read or refused in words: nothing else is ever raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.agents.http import errors
from agenteval_tui.agents.http.agent import HttpReply
from agenteval_tui.agents.http.options import HttpOptions
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.models.anthropic import MessagesReply
from agenteval_tui.agents.models.openai_chat import ChatReply
from agenteval_tui.agents.models.openai_responses import ResponsesReply
from agenteval_tui.agents.models.stream import EmptyResponseError, ProviderError, StreamReply, decoded
from agenteval_tui.transcripts.model import Usage

HTTP = HttpOptions(
    url="http://h/", answer="content", tool_calls="tool_calls", error="error", delta="delta", stream="sse", session="id"
)
REPLIES: dict[str, Callable[[], StreamReply]] = {
    "chat": ChatReply,
    "responses": ResponsesReply,
    "anthropic": MessagesReply,
    "http": lambda: HttpReply(HTTP),
}
# The words of the protocols, so that what is made up gets deep into them.
KEYS = (
    *("type", "choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "id", "index"),
    *("usage", "finish_reason", "error", "response", "output", "item", "output_index", "item_id", "call_id", "status"),
    *("content_block", "text", "thinking", "signature", "partial_json", "input", "stop_reason", "summary", "refusal"),
    *("incomplete_details", "prompt_tokens", "input_tokens", "input_tokens_details", "reasoning_details", "citation"),
)
KINDS = (
    *("response.output_item.added", "response.output_item.done", "response.completed", "response.failed", "error"),
    *("response.function_call_arguments.delta", "response.function_call_arguments.done", "response.output_text.done"),
    *("response.output_text.delta", "response.reasoning_summary_text.delta", "function_call", "message", "reasoning"),
    *("content_block_start", "content_block_delta", "content_block_stop", "message_start", "message_delta"),
    *("text_delta", "input_json_delta", "signature_delta", "citations_delta", "tool_use", "text", "thinking"),
)
scalars = st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(KINDS) | st.text(max_size=4)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)
events = st.dictionaries(st.sampled_from(KEYS), values, max_size=6).flatmap(
    lambda made: st.sampled_from(KINDS).map(lambda kind: {**made, "type": kind})
)


def read(make: Callable[[], StreamReply], texts: list[str], whole: str) -> None:
    reply = make()
    assert_words(lambda: [list(reply.take(ServerEvent("", text))) for text in texts] + [list(reply.rest())])
    assert_words(lambda: list(make().take_whole(whole)))


def assert_words(reading: Callable[[], Any]) -> None:
    """It is read, or refused in one line of words."""
    said = "read"
    try:
        reading()
    except ProviderError as error:
        said = errors.from_reply(errors.ErrorMapper("http://h"), error.error).error.message
    except EmptyResponseError as error:
        said = str(error)
    assert said


@pytest.mark.parametrize("name", REPLIES)
@settings(max_examples=60)
@given(made=st.lists(events | values, max_size=5), whole=values)
def test_anything_at_all(name: str, made: list[Any], whole: Any) -> None:
    read(REPLIES[name], [json.dumps(one) for one in made], json.dumps(whole))


@pytest.mark.parametrize("name", REPLIES)
@pytest.mark.parametrize("depth", [100, 480, 900, 980, 5_000, 100_000])
def test_any_depth(name: str, depth: int) -> None:
    deep = '{"error":' * depth + "1" + "}" * depth
    lists = "[" * depth + "]" * depth
    arguments = f'{{"name": "f", "arguments": {lists}}}'
    item = f'{{"type": "function_call", "name": "f", "arguments": {lists}}}'
    texts = [
        deep,
        f'{{"type": "content_block_start", "content_block": {{"type": "tool_use", "input": {lists}}}}}',
        '{"type": "content_block_stop"}',
        f'{{"type": "response.output_item.done", "item": {item}}}',
        f'{{"choices": [{{"message": {{"tool_calls": [{{"function": {arguments}}}]}}}}]}}',
        f'{{"content": {lists}, "tool_calls": [{arguments}]}}',
    ]
    for text in texts:
        read(REPLIES[name], [text], text)
    read(REPLIES[name], texts[1:3], texts[-1])
    errors.words_in(deep)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -0, 1.5, 1e400, -1E-7, 123456789012345678901234567890, true, null], "ä": "\\u00e4\\n😀"}',
        '{"half of a pair": "\\ud83d"}',
        "[" * 500 + "]" * 500,
        '{"a": 1, "a": 2}',
        "NaN",
        " 1 ",
        '"\\/"',
    ],
)
def test_what_is_json_is_what_the_standard_library_says(text: str) -> None:
    found, expected = decoded(text), json.loads(text)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "\ufeff{}", '"\n"', "[1,]", "01", '{"a": 1} x'])
def test_what_is_no_json_is_said(text: str) -> None:
    with pytest.raises(EmptyResponseError, match="not JSON"):
        decoded(text)


@pytest.mark.parametrize("value", [-5, 1e300, "12", True, [3]])
def test_figures_that_can_not_be_so_are_not_counted(value: object) -> None:
    chat, other = ChatReply(), MessagesReply()
    choice = {"message": {"content": "x"}, "finish_reason": "stop"}
    figures = {"prompt_tokens": value, "completion_tokens": 2, "cost": value}
    list(chat.take_whole(json.dumps({"choices": [choice], "usage": figures})))
    block = {"type": "text", "text": "x"}
    figures = {"input_tokens": value, "output_tokens": 2}
    list(other.take_whole(json.dumps({"content": [block], "stop_reason": "end_turn", "usage": figures})))
    assert (chat.usage, other.usage) == (Usage(None, 2), Usage(None, 2))
    assert chat.figures.notes[0].description.count(" = ") == 2
    assert "input_tokens = " in other.figures.notes[0].description
