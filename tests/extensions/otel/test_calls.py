"""OpenTelemetry traces: a span of a tool is a call of the run, whether or not a model's message has the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import observes

Import = Callable[..., Any]
FORBIDDEN = CriterionSpec(
    "no tool may be called", "ToolResponse", {"metrics": [{"type": "ToolCheck", "tool_call_forbidden": True}]}
)
TRACE = "a" * 32


def span(number: int, operation: str, *, parent: int = 0, **attributes: Any) -> dict[str, Any]:
    about = {"gen_ai.operation.name": operation, **{f"gen_ai.{key}": value for key, value in attributes.items()}}
    return {
        "name": operation,
        "context": {"trace_id": TRACE, "span_id": f"{number:016x}"},
        "parent_id": f"{parent:016x}" if parent else None,
        "start_time": f"2026-01-01T00:00:{number:02}Z",
        "end_time": f"2026-01-01T00:00:{number:02}.5Z",
        "attributes": about,
    }


def text(role: str, said: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": said}]}


def call(name: str, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}]}


def tool(number: int, name: str, arguments: Any, result: Any, *, parent: int = 1, id: str = "") -> dict[str, Any]:
    more = {"tool.call.id": id} if id else {}
    about = {"tool.name": name, "tool.call.arguments": arguments, "tool.call.result": result, **more}
    given = {key: value for key, value in about.items() if value is not None}
    return span(number, "execute_tool", parent=parent, **given)


ASKED = [text("user", "cancel order 1")]
DONE = [text("assistant", "done")]
MESSAGES = {"input.messages": ASKED, "output.messages": DONE}


def read(imported: Import, *spans: dict[str, Any]) -> Transcript:
    _, ((_, transcript),) = imported(list(spans))
    return transcript


def calls(transcript: Transcript) -> list[tuple[str, Any, str | None]]:
    return [(one.name, one.arguments, one.result) for one in transcript.tool_calls]


@pytest.mark.parametrize(
    "spans",
    [
        [span(1, "invoke_agent", **MESSAGES)],
        [span(1, "invoke_agent"), span(2, "chat", parent=1, **MESSAGES)],
        [span(1, "invoke_agent", **MESSAGES), span(2, "chat", parent=1)],
        [span(1, "chat", **MESSAGES)],
        [span(1, "invoke_agent")],
    ],
    ids=["of an agent", "of a model", "of an agent, a model without", "without an agent", "without messages"],
)
def test_a_tool_that_no_message_calls_is_a_call(imported: Import, spans: list[dict[str, Any]]) -> None:
    transcript = read(imported, *spans, tool(3, "cancel_order", {"id": 1}, "ok", id="c1"))
    assert calls(transcript) == [("cancel_order", {"id": 1}, "ok")]
    assert transcript.tool_calls[0].duration_ms == 500
    assert compile_criterion(FORBIDDEN).check(transcript).outcome is Outcome.FAILED
    if len(transcript.messages) > 2:
        assert [one.role for one in transcript.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    "told",
    [
        tool(3, "cancel_order", {"id": 1}, "ok", id="c1"),
        tool(3, "cancel_order", {"id": 1}, "ok"),
        tool(3, "cancel_order", {"id": 1}, "ok", id="of the tool's library"),
        tool(3, "cancel_order", None, "ok", id="of the tool's library"),
    ],
    ids=["by its id", "by its name", "by its arguments", "without arguments"],
)
def test_a_tool_that_a_message_calls_is_one_call(imported: Import, told: dict[str, Any]) -> None:
    said = {"input.messages": [*ASKED, call("cancel_order", {"id": 1})], "output.messages": DONE}
    transcript = read(imported, span(1, "invoke_agent", **said), told)
    assert calls(transcript) == [("cancel_order", {"id": 1}, "ok")]


def test_another_call_of_the_same_tool_is_a_call_of_its_own(imported: Import) -> None:
    said = {"input.messages": [*ASKED, call("refund", {"amount": 1}, "c1")], "output.messages": DONE}
    spans = [tool(3, "refund", {"amount": 1}, "ok", id="c1"), tool(4, "refund", {"amount": 1000}, "ok", id="c2")]
    transcript = read(imported, span(1, "invoke_agent", **said), *spans)
    assert calls(transcript) == [("refund", {"amount": 1}, "ok"), ("refund", {"amount": 1000}, "ok")]


def test_two_spans_of_one_call_are_one_call(imported: Import) -> None:
    """As where the client of an MCP server has spans of its own."""
    spans = [
        tool(3, "refund", {"amount": 1}, "ok", id="c1"),
        span(4, "something", parent=3),
        tool(5, "refund", None, None, parent=4),
    ]
    assert calls(read(imported, span(1, "invoke_agent", **MESSAGES), *spans)) == [("refund", {"amount": 1}, "ok")]


def test_a_tool_of_an_agent_below_is_a_call_of_the_run(imported: Import) -> None:
    spans = [
        span(1, "invoke_agent", **MESSAGES),
        span(2, "invoke_agent", parent=1, **{"input.messages": [text("user", "sub")], "output.messages": DONE}),
        tool(3, "cancel_order", {"id": 1}, "ok", parent=2),
    ]
    assert calls(read(imported, *spans)) == [("cancel_order", {"id": 1}, "ok")]


def test_calls_that_were_made_and_not_recorded_are_not_known(imported: Import) -> None:
    asked = span(2, "chat", parent=1, **{"response.finish_reasons": ["tool_calls"]})
    transcript = read(imported, span(1, "invoke_agent", **MESSAGES), asked)
    assert "tool_calls" not in observes(transcript)
    assert compile_criterion(FORBIDDEN).check(transcript).outcome is Outcome.ERROR


def test_agents_one_after_another_have_a_conversation_each(imported: Import) -> None:
    """A workflow of agents: none of them called the others, and the span around them is not in the file."""

    def line(number: int, name: str, asked: list[Any], answer: str) -> dict[str, Any]:
        said = {
            "input.messages": [text("system", f"You are {name}."), *asked],
            "output.messages": [text("assistant", answer)],
        }
        return span(number, "invoke_agent", parent=9, **{"agent.name": name, **said})

    looked_up = [text("user", "go"), call("search", {"q": 1}, "c2"), text("tool", "found")]
    first = line(1, "Supervisor", [text("user", "go"), call("search", {"q": 1})], "Sent on.")
    transcript = read(imported, first, line(2, "Preparer", looked_up, "Three points."))
    assert [(one.role, one.content, one.name) for one in transcript.messages] == [
        ("system", "You are Supervisor.", None),
        ("user", "go", None),
        ("assistant", "", None),
        ("assistant", "Sent on.", None),
        ("system", "You are Preparer.", "Preparer"),
        ("user", "go", "Preparer"),
        ("assistant", "", "Preparer"),
        ("tool", "found", None),
        ("assistant", "Three points.", "Preparer"),
    ]
    assert calls(transcript) == [("search", {"q": 1}, None), ("search", {"q": 1}, "found")]
    assert transcript.final_output == "Three points."


def test_an_agent_that_goes_on_with_what_was_said_repeats_nothing(imported: Import) -> None:
    handed = [text("user", "go"), text("assistant", "You talk to B now.")]
    spans = [
        span(1, "invoke_workflow"),
        span(2, "invoke_agent", parent=1, **{"input.messages": handed[:1], "output.messages": handed[1:]}),
        span(3, "invoke_agent", parent=1, **{"agent.name": "B", "input.messages": handed, "output.messages": DONE}),
    ]
    transcript = read(imported, *spans)
    assert [(one.content, one.name) for one in transcript.messages] == [
        ("go", None), ("You talk to B now.", None), ("done", "B"),
    ]  # fmt: skip


def test_an_agent_that_goes_on_with_what_was_said_has_its_own_system_prompt(imported: Import) -> None:
    go = text("user", "go")

    def line(number: int, name: str, told: list[Any], answer: str) -> dict[str, Any]:
        system = [{"type": "text", "content": f"You are {name}."}] if name != "C" else []
        said = {"system_instructions": system, "input.messages": told, "output.messages": [text("assistant", answer)]}
        return span(number, "invoke_agent", parent=9, **{"agent.name": name, **said})

    plan, more = text("assistant", "a plan"), text("assistant", "more")
    spans = line(1, "A", [go], "a plan"), line(2, "B", [go, plan], "more"), line(3, "A", [go, plan, more], "done")
    transcript = read(imported, *spans)
    assert [(one.role, one.content, one.name) for one in transcript.messages] == [
        ("system", "You are A.", None), ("user", "go", None), ("assistant", "a plan", None),
        ("system", "You are B.", "B"), ("assistant", "more", "B"), ("assistant", "done", "A"),
    ]  # fmt: skip


def test_what_a_called_agent_said_is_not_in_the_conversation(imported: Import) -> None:
    inner = {"input.messages": [text("user", "sub")], "output.messages": [text("assistant", "sub done")]}
    spans = [
        span(1, "invoke_agent", **MESSAGES),
        span(2, "something", parent=1),
        span(3, "invoke_agent", parent=2, **inner),
        span(4, "chat", parent=3, **inner),
    ]
    assert [one.content for one in read(imported, *spans).messages] == ["cancel order 1", "done"]


def test_an_agent_that_answers_the_call_of_the_one_before_has_its_result(imported: Import) -> None:
    """It tells that call once more, with an id of its own."""
    asked, found = call("search", {"q": 1}, "c2"), text("tool", "found")
    first = {"agent.name": "A", "input.messages": ASKED, "output.messages": [call("search", {"q": 1}, "c1")]}
    second = {"agent.name": "B", "input.messages": [*ASKED, asked, found], "output.messages": DONE}
    transcript = read(imported, span(1, "invoke_agent", **first), span(2, "invoke_agent", **second))
    assert calls(transcript) == [("search", {"q": 1}, "found")]
    assert transcript.notes == ()


def test_results_as_texts_in_one_message_are_those_of_its_calls(imported: Import) -> None:
    made = [part for name in ("search", "read") for part in call(name, {}, name)["parts"]]
    results = {"role": "tool", "parts": [*text("tool", "found")["parts"], *text("tool", "a page")["parts"]]}
    asked = [*ASKED, {"role": "assistant", "parts": made}, results]
    transcript = read(imported, span(1, "chat", **{"input.messages": asked, "output.messages": DONE}))
    assert calls(transcript) == [("search", {}, "found"), ("read", {}, "a page")]


@pytest.mark.parametrize(
    ("name", "agent_id", "agent"),
    [
        ("invoke_agent Shop", "asst_0123456789abcdef01", "Shop"),
        ("invoke_agent", "Shop:1", "Shop:1"),
        ("invoke_agent", "asst_0123456789abcdef01", "recorded (otel)"),
    ],
)
def test_an_agent_without_a_name_is_called_as_its_span_or_its_id(
    imported: Import, name: str, agent_id: str, agent: str
) -> None:
    _, ((row, _),) = imported([{**span(1, "invoke_agent", **{"agent.id": agent_id, **MESSAGES}), "name": name}])
    assert row.agent == agent
