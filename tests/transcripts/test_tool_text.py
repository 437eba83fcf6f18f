"""The formatted text of tool calls, and where each piece of it comes from."""

from __future__ import annotations

from agenteval_tui.transcripts.model import ToolCall
from agenteval_tui.transcripts.tool_text import format_tool_calls, format_with_places

CALLS = (
    ToolCall("1", "search_user", {"name": "John", "limit": 10, "tags": ["a", {"b": None}]}),
    ToolCall("2", "ping", {}),
)


def test_the_layout_is_the_documented_one() -> None:
    assert format_tool_calls(CALLS) == (
        'Toolname:\nsearch_user\n\nArguments:\nname = "John"\nlimit = "10"\ntags = "["a",{"b":null}]"'
        "\n\nToolname:\nping\n\nArguments:"
    )


def test_no_calls_are_the_empty_text() -> None:
    assert format_tool_calls(()) == ""


def test_places_lead_back_to_call_and_argument() -> None:
    text, places = format_with_places(CALLS)
    assert text == format_tool_calls(CALLS)
    found = {(place.call, place.argument): text[place.start : place.end] for place in places}
    assert found[(0, None)] == "search_user"
    assert found[(0, "limit")] == 'limit = "10"'
    assert found[(1, None)] == "ping"


def test_arguments_that_are_no_object_are_shown_all_the_same() -> None:
    assert 'arguments = "{oops"' in format_tool_calls([ToolCall("1", "f", "{oops", malformed=True)])
