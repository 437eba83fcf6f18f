"""One impossible figure in one recording of a file: that figure is left out and counted, all else is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.agents.process.protocol import EventReader
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.impossible_figures import LEFT_OUT, with_possible_figures
from agenteval_tui.transcripts.model import Step, Timing, ToolCall, Transcript, Usage

IMPOSSIBLE = [
    {"value": 1},
    [3],
    "soon",
    True,
    -1,
    -(2**63) - 1,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e300,
]
MESSAGES = [
    {"role": "user", "content": "Where is W1?"},
    {"role": "assistant", "content": "", "tool_calls": [0]},
    {"role": "tool", "content": "sent", "tool_call": 0},
    {"role": "assistant", "content": "On its way."},
]
CALL = {"id": "c", "name": "find", "arguments": {}, "result": "sent", "message": 1}


def recorded(**changed: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "messages": MESSAGES,
        "tool_calls": [{**CALL, "started_ms": 5.0, "duration_ms": 2.0, **changed.pop("call", {})}],
        "timing": {"total_ms": 40.0, "first_token_ms": 3.0, **changed.pop("timing", {})},
        "usage": {"input_tokens": 100, "output_tokens": 7, "cost": 0.5, **changed.pop("usage", {})},
        **changed,
    }


PLACES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "timing.total_ms": lambda value: recorded(timing={"total_ms": value}),
    "timing.first_token_ms": lambda value: recorded(timing={"first_token_ms": value}),
    "timing.steps.duration_ms": lambda value: recorded(
        timing={"steps": [{"name": "turn 1", "started_ms": 0.0, "duration_ms": value}]}
    ),
    "usage.input_tokens": lambda value: recorded(usage={"input_tokens": value}),
    "usage.output_tokens": lambda value: recorded(usage={"output_tokens": value}),
    "usage.cached_tokens": lambda value: recorded(usage={"cached_tokens": value}),
    "usage.reasoning_tokens": lambda value: recorded(usage={"reasoning_tokens": value}),
    "usage.cost": lambda value: recorded(usage={"cost": value}),
    "user_usage.cost": lambda value: recorded(user_usage={"cost": value}),
    "tool_calls.duration_ms": lambda value: recorded(call={"duration_ms": value}),
}


@pytest.mark.sweep("place")
@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("place", PLACES)
def test_of_our_own_form(place: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps([recorded(), PLACES[place](value), recorded()]), "utf-8")
    with Store.open(tmp_path / "h.db") as store:
        report = import_file(path, store)
        runs = store.runs_of_execution(report.execution_id)
        assert (report.added, report.skipped) == (3, ())
        assert [run.output_head for run in runs] == ["On its way."] * 3
        assert (runs[0].duration_ms, runs[0].input_tokens, runs[0].cost) == (40.0, 100, 0.5)
        assert any(place in note and "left out" in note for note in report.notes), report.notes
        assert any(place in note for note in store.execution(report.execution_id).notes)
        assert [(note.code, note.place) for note in store.transcript(runs[1].id).notes] == [(LEFT_OUT, place)]
        if place != "usage.output_tokens":
            assert runs[1].output_tokens == 7  # the others of the same run are kept
        store.transcript(runs[1].id)


@pytest.mark.parametrize("field", ["timing", "usage", "user_usage"])
@pytest.mark.parametrize("value", [5, "x", [1]])
def test_figures_that_are_no_object_at_all(field: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps([recorded(), {**recorded(), field: value}]), "utf-8")
    with Store.open(tmp_path / "h.db") as store:
        report = import_file(path, store)
        assert report.added == 2
        assert any(field in note for note in report.notes)


@pytest.mark.parametrize("value", [-1, -(2**63) - 1, 2**63, 10**400, float("nan"), float("inf")])
def test_of_a_foreign_form(value: Any, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    runs = [{"messages": messages, "usage": usage}, {"messages": messages, "usage": {**usage, "prompt_tokens": value}}]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(runs), "utf-8")
    with Store.open(tmp_path / "h.db") as store:
        report = import_file(path, store)
        rows = store.runs_of_execution(report.execution_id)
        assert [(row.input_tokens, row.output_tokens) for row in rows] == [(9, 4), (None, 4)]
        assert any("can't be so" in note and "run 2" in note for note in report.notes), report.notes


def braintrust(kind: str, metrics: Any) -> list[dict[str, Any]]:
    asked, answered = [{"role": "user", "content": "hi"}], [{"role": "assistant", "content": "hello"}]
    top = {"id": "r", "span_id": "s", "root_span_id": "s", "input": "hi", "output": "hello"}
    below = {"id": "b", "span_id": "b", "root_span_id": "s", "span_parents": ["s"], "input": asked, "output": answered}
    return [top, {**below, "span_attributes": {"name": "inner", "type": kind}, "metrics": metrics}]


@pytest.mark.sweep("name")
@pytest.mark.parametrize("value", IMPOSSIBLE, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("name", ["start", "end", "prompt_tokens", "tokens", "estimated_cost", "time_to_first_token"])
@pytest.mark.parametrize("kind", ["llm", "tool", "task"])
def test_a_metric_of_braintrust_that_can_not_be_so_is_noted(kind: str, name: str, value: Any, tmp_path: Path) -> None:
    metrics = {"start": 1.7e9, "end": 1.7e9 + 1, "prompt_tokens": 9, "completion_tokens": 4, "tokens": 13}
    path = tmp_path / "r.json"
    path.write_text(json.dumps(braintrust(kind, {**metrics, name: value})), "utf-8")
    with Store.open(tmp_path / "h.db") as store:
        report = import_file(path, store)
        (row,) = store.runs_of_execution(report.execution_id)
        noted = [note for note in report.notes if "can't be so" in note]
        assert [f"metrics.{name}" in note or note.endswith("usage") for note in noted] == [True], report.notes
        tokens = (None if name == "prompt_tokens" else 9, 4) if kind == "llm" else (None, None)
        assert (row.input_tokens, row.output_tokens) == tokens


def test_metrics_of_braintrust_that_are_as_they_should_be_or_no_object(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        for place, (metrics, noted) in enumerate([({"start": 1.5, "mine": -3, "tokens": None}, 0), ([1], 1), ("x", 1)]):
            path = tmp_path / f"{place}.json"
            path.write_text(json.dumps(braintrust("llm", metrics)), "utf-8")
            notes = import_file(path, store).notes
            assert sum(note.endswith("can't be so was left out: metrics") for note in notes) == noted, notes
            assert sum("can't be so" in note for note in notes) == noted


@pytest.mark.parametrize("value", [{}, "x", -1, 10**400, float("nan"), float("inf")], ids=lambda value: repr(value)[:9])
def test_of_a_living_program(value: Any) -> None:
    reader = EventReader()
    reader.read({"type": "tool_call", "name": "find", "id": "c"})
    finished, noted = reader.read({"type": "tool_result", "id": "c", "result": "x", "duration_ms": value})
    assert finished.duration_ms is None  # type: ignore[union-attr]
    assert (noted.note.code, noted.note.place) == (LEFT_OUT, "duration_ms")  # type: ignore[union-attr]
    (failed,) = EventReader().read({"type": "error", "message": "busy", "retry": True, "retry_after_s": value})
    assert failed.retry_after_s is None  # type: ignore[union-attr]


anything = st.one_of(
    st.none(), st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.sampled_from(IMPOSSIBLE)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(anything, min_size=12, max_size=12))
def test_whatever_the_figures_are_what_stays_can_be_stored(values: list[Any]) -> None:
    transcript = Transcript(
        usage=Usage(*values[:5]),
        timing=Timing(values[5], values[6], (Step("turn 1", values[7], values[8]),)),
        tool_calls=(ToolCall("c", "find", {}, started_ms=values[9], duration_ms=values[10]),),
        user_usage=Usage(cost=values[11]),
    )
    kept = with_possible_figures(transcript)
    assert with_possible_figures(kept) == kept
    usage, timing, call = kept.usage, kept.timing, kept.tool_calls[0]
    for tokens in (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens):
        assert tokens is None or (type(tokens) is int and 0 <= tokens < 2**63)
    steps = [time for step in timing.steps for time in (step.started_ms, step.duration_ms)]
    for time in (usage.cost, timing.first_token_ms, timing.total_ms, call.started_ms, call.duration_ms, *steps):
        assert time is None or (type(time) in (int, float) and abs(time) < 2**63)
    lost = sum(value is not None for value in values) - sum(
        value is not None
        for value in (*values_of(usage), timing.first_token_ms, timing.total_ms, *(steps or values[7:9]),
                      call.started_ms, call.duration_ms, kept.user_usage.cost)
    )  # fmt: skip
    assert len(kept.notes) == lost + (not steps)


def values_of(usage: Usage) -> tuple[Any, ...]:
    return (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens, usage.cost)
