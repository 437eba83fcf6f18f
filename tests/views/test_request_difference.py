"""What changed since the request before, with its texts whole."""

from __future__ import annotations

from typing import Any

from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool
from agenteval_tui.views.request_difference import request_difference_view
from agenteval_tui.views.terminal import plain_text

LONG = "\n".join(f"row {number} of the table" for number in range(40))
ASKED: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is it?"},
    {"role": "tool", "tool_call_id": "c", "content": LONG},
]
END = {"role": "user", "content": "And now?"}


def shown(*requests: ModelRequest, number: int = 2) -> list[str]:
    return plain_text(request_difference_view(ModelRequests.of(requests), number, [])).splitlines()


def request(number: int, messages: list[dict[str, Any]], **more: Any) -> ModelRequest:
    return ModelRequest(number, line=1, model="m", messages=tuple(messages), **more)


def test_a_message_that_went_is_shown_whole_and_what_stayed_is_not() -> None:
    lines = shown(request(1, [*ASKED, END]), request(2, [ASKED[0], END]))
    assert lines[:4] == ["request 2 of 2  m", "since request 1", "  1 message dropped", "- 2 tool"]
    assert lines[4:44] == [f"-   {line}" for line in LONG.splitlines()]
    assert lines[44:] == ["  Both begin with the same 1 message; what a server has cached behind them is lost."]


def test_of_a_message_with_another_text_the_lines_that_differ() -> None:
    masked = {**ASKED[1], "content": LONG.replace("row 20 of the table\n", "")}
    lines = shown(request(1, [*ASKED, END]), request(2, [ASKED[0], masked, END]))
    assert "  message 2 shortened: 789 → 769 characters" in lines
    assert [line for line in lines if line.startswith(("-", "+"))] == ["-   row 20 of the table"]


def test_prompt_tools_parameters_and_order() -> None:
    was = request(1, [*ASKED, END], system="Be kind.\nBe short.", tools=(OfferedTool("find", "Finds."),))
    now = request(2, [ASKED[1], ASKED[0], END], system="Be kind.", parameters={"stop": ["word"] * 9})
    text = "\n".join(shown(was, now))
    for part in ("-   Be short.", "  tool find removed\n-   Finds.", "1 message moved", '+   ["word", "word"'):
        assert part in text


def test_the_first_request_and_one_without_a_change() -> None:
    assert shown(request(1, ASKED), number=1)[-1] == "the first request: there is none before it"
    assert shown(request(1, ASKED), request(2, ASKED))[-1] == "  Nothing changed."
