"""Traces that name no test: equal questions repeat one test, which is called as its agent, its root span or by the
question."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Import = Callable[..., Any]
USED = {"prompt_tokens": 1, "completion_tokens": 1}


def otlp(number: int, agent: str, question: str, **more: str) -> dict[str, Any]:
    """A trace of one agent's span; without an agent, of its root span and a model's below it."""
    trace, said = f"{number:032x}", [
        {"role": role, "parts": [{"type": "text", "content": text}]}
        for role, text in (("user", question), ("assistant", f"answer {number}"))
        if text
    ]  # fmt: skip
    operation = {"gen_ai.operation.name": "invoke_agent" if agent else "chat", **more}
    about = {
        **operation,
        "gen_ai.input.messages": json.dumps(said[:-1]),
        "gen_ai.output.messages": json.dumps(said[-1:]),
    }
    if agent:
        about["gen_ai.agent.name"] = agent
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in about.items()]
    span = {"traceId": trace, "spanId": f"{number:016x}", "name": f"invoke_agent {agent}" if agent else "chat m",
            "startTimeUnixNano": str(number), "endTimeUnixNano": str(number + 1), "attributes": attributes}  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def named(imported: Import, *traces: Any, **options: Any) -> list[tuple[str, str, int]]:
    _, runs = imported("\n".join(map(json.dumps, traces)), name="f.jsonl", **options)
    return [(row.test_id, row.test_name, row.repetition) for row, _ in runs]


def test_two_runs_of_one_question_are_one_test_with_two_runs(imported: Import) -> None:
    traces = [otlp(1, "shop", "Where?"), otlp(2, "shop", "Where?")]
    assert named(imported, *traces) == [("shop", "shop", 1), ("shop", "shop", 2)]


def test_agents_name_their_tests_and_root_spans_where_there_is_none(imported: Import) -> None:
    traces = [otlp(1, "shop", "Where?"), otlp(2, "desk", "Where?"), otlp(3, "", "Who?")]
    assert [name for _, name, _ in named(imported, *traces)] == ["shop", "desk", "chat m"]


def test_an_agent_that_was_asked_several_things_has_tests_by_question(imported: Import) -> None:
    traces = [otlp(1, "shop", "Where?"), otlp(2, "shop", "When?"), otlp(3, "shop", "Where?"), otlp(4, "desk", "Who?")]
    assert named(imported, *traces) == [
        ("Where", "Where?", 1),
        ("When", "When?", 1),
        ("Where", "Where?", 2),
        ("desk", "desk", 1),
    ]


def test_questions_that_begin_alike_are_different_tests(imported: Import) -> None:
    long = "word " * 40
    names = named(imported, *(otlp(number, "shop", long + end) for number, end in enumerate(("a", "b", "a"), 1)))
    assert len({test for test, _, _ in names}) == 2
    assert [repetition for _, _, repetition in names] == [1, 1, 2]


@pytest.mark.parametrize(
    ("conversation", "name"), [("orders", "orders"), ("0f8fad5b-d9cb-469f-a165-70867728950e", "shop")]
)
def test_a_conversation_whose_id_is_random_names_no_test(imported: Import, conversation: str, name: str) -> None:
    trace = otlp(1, "shop", "Where?", **{"gen_ai.conversation.id": conversation})
    assert [test for test, _, _ in named(imported, trace)] == [name]


def test_what_was_asked_nothing_that_is_known_is_no_run_of_another(imported: Import) -> None:
    names = named(imported, otlp(1, "shop", ""), otlp(2, "shop", ""))
    assert len({test for test, _, _ in names}) == 2
    assert named(imported, otlp(3, "shop", ""))[0][0] == "shop"


def langfuse(number: int, question: str) -> dict[str, Any]:
    at = f"2026-01-01T00:00:{number:02}Z"
    asked = [{"role": "user", "content": question}]
    generation = {"id": f"g{number}", "type": "GENERATION", "name": "chat", "startTime": at, "endTime": at,
                  "input": asked, "output": "yes"}  # fmt: skip
    return {"trace": {"id": f"t{number}", "name": "shop", "timestamp": at}, "observations": [generation]}


def openai_agents(number: int, question: str) -> dict[str, Any]:
    data = {"type": "generation", "input": [{"role": "user", "content": question}],
            "output": [{"role": "assistant", "content": "yes"}], "model": "m", "usage": USED}  # fmt: skip
    about = {"object": "trace", "id": f"trace_{number}", "workflow_name": "shop", "group_id": None}
    span = {"object": "trace.span", "id": f"span_{number}", "trace_id": f"trace_{number}", "parent_id": None,
            "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "span_data": data}  # fmt: skip
    return {"data": [about, span]}


def langsmith(number: int, question: str) -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": question}]}
    answered = {"choices": [{"message": {"role": "assistant", "content": "yes"}}]}
    return {"id": f"r{number}", "trace_id": f"r{number}", "name": "shop", "run_type": "llm", "inputs": asked,
            "outputs": answered, "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z"}  # fmt: skip


@pytest.mark.parametrize("trace", [langfuse, openai_agents, langsmith])
def test_traces_of_other_tools(imported: Import, trace: Callable[[int, str], Any]) -> None:
    same = named(imported, trace(1, "Where?"), trace(2, "Where?"))
    assert [(name, repetition) for _, name, repetition in same] == [("shop", 1), ("shop", 2)]
    other = named(imported, trace(3, "Where?"), trace(4, "When?"))
    assert [name for _, name, _ in other] == ["Where?", "When?"]
