"""A field that is too large never takes a small one beside it, and what was shortened is said with its place."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.formats.stream.json_reader import JsonReader
from agenteval_tui.formats.stream.json_stream import UnreadableFile, read_values
from agenteval_tui.grading.sentences import criterion_sentence

from .conftest import theirs

MB = 1_000_000


def rows(size: int) -> list[dict[str, Any]]:
    """Many small values that are too large together."""
    return [{"k": "v" * 180, "n": number} for number in range(size // 200)]


LARGE = 3 * MB // 2  # more than a reader has in its window
BIG: dict[str, Callable[[int], Any]] = {
    "text": lambda size: "x" * size,
    "escapes": lambda size: '\\"\n\u00e9\U0001f600' * (size // 25),
    "rows": rows,
    "object": lambda size: {f"k{number}": "v" * 80 for number in range(size // 75)},
    "nested": lambda size: {"a": {"b": [{"c": "x" * size}]}},
}
SAID = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "the answer"}]


def eval_log(*samples: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", 8) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"model": "m"}}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return file.getvalue()


def as_json(*samples: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"model": "m"}, "samples": list(samples)}


def sample(**more: Any) -> dict[str, Any]:
    return {"id": "s", "epoch": 1, "input": "q", "target": "t", "messages": SAID, **more}


@pytest.mark.sweep
@pytest.mark.parametrize("big", ["text", "rows", "nested"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_a_score_keeps_its_value_beside_large_metadata(imported, store, big: str, packed: bool, first: bool) -> None:
    small = {"value": "C", "answer": "42", "explanation": "as it should be"}
    large = {"metadata": BIG[big](LARGE)}
    one = sample(scores={"judge": {**large, **small} if first else {**small, **large}, "other": {"value": "I"}})
    report, ((row, _),) = imported(eval_log(one) if packed else as_json(one), "a.eval" if packed else "a.json")
    judge, other = theirs(store, row.id)
    assert (judge.outcome, judge.score, other.outcome) == ("passed", 1.0, "failed")
    assert "'42'" in criterion_sentence(judge)
    assert "as it should be" in criterion_sentence(judge)
    assert any("samples[].scores.judge.metadata" in note for note in report.notes)


def test_fifty_megabytes_beside_a_verdict(imported, store) -> None:
    one = sample(scores={"judge": {"metadata": {"raw": "x" * (50 * MB)}, "value": "I", "explanation": "no"}})
    report, ((row, _),) = imported(eval_log(one), "a.eval")
    (judge,) = theirs(store, row.id)
    assert (judge.outcome, criterion_sentence(judge)) == ("failed", "Inspect gave 'I': no")
    place = "`samples[].scores.judge.metadata.raw` was shortened to 2,000,000 of 50,000,000 characters"
    assert any(place in note for note in report.notes), report.notes


@pytest.mark.sweep
@pytest.mark.parametrize("packed", [True, False])
def test_an_error_with_a_large_traceback_stays_an_error(imported, packed: bool) -> None:
    one = sample(error={"traceback": "line\n" * 600_000, "message": "the tool broke", "traceback_ansi": "x" * MB * 2})
    report, ((row, _),) = imported(eval_log(one) if packed else as_json(one), "a.eval" if packed else "a.json")
    assert (row.status, row.error_message) == ("error", "the tool broke")
    assert any("samples[].error.traceback" in note for note in report.notes)


def test_a_large_explanation_is_shortened_and_said(imported, store) -> None:
    one = sample(scores={"judge": {"value": "C", "explanation": "because " * 400_000}})
    report, ((row, _),) = imported(eval_log(one), "a.eval")
    assert criterion_sentence(theirs(store, row.id)[0]).startswith("Inspect gave 'C': because because")
    assert any(note.startswith("shortened: `samples[].scores.judge.explanation`") for note in report.notes)


def test_large_targets_inputs_metadata_and_events_of_a_sample(imported, store) -> None:
    events = [
        {"event": "tool", "id": "c", "function": "f", "result": "x" * 2 * MB, "timestamp": "2026-01-01T00:00:00+00:00",
         "completed": "2026-01-01T00:00:02+00:00", "failed": True},
    ]  # fmt: skip
    messages = [
        SAID[0],
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": "f", "arguments": {}}]},
        {"role": "tool", "tool_call_id": "c", "content": "broke"},
        SAID[1],
    ]
    one = sample(
        input="q" * 2 * MB, metadata={"doc": rows(2 * MB)}, events=events, messages=messages, store={"k": "x" * 2 * MB},
        output={"model": "m", "choices": [{"message": SAID[1], "stop_reason": "stop", "logprobs": rows(2 * MB)}]},
        scores={"s": {"value": 1}},
    )  # fmt: skip
    report, ((row, transcript),) = imported(eval_log(one), "a.eval")
    assert (row.status, transcript.final_output, transcript.finish_reason) == ("passed", "the answer", "stop")
    (call,) = transcript.tool_calls
    assert (call.status, call.duration_ms) == ("error", 2000.0)
    assert row.variables["expected_value"] == "t"
    notes = "\n".join(report.notes)
    for field in ("samples[].metadata", "samples[].store", "of `events` only", "choices[].logprobs"):
        assert field in notes, field


def promptfoo(row: dict[str, Any], prompts: Any = ()) -> dict[str, Any]:
    return {"evalId": "e", "results": {"version": 3, "prompts": list(prompts), "results": [row]}, "config": {}}


def tau2(simulation: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = {"id": "i", "task_id": "1", "trial": 0, "messages": SAID, "reward_info": {"reward": 1.0}, **simulation}
    return {"info": {"agent_info": {"llm": "m"}}, "tasks": [{"id": "1"}], **more, "simulations": [given]}


def otel(attributes: dict[str, Any]) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": "the answer"}]}]), **attributes}  # fmt: skip
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
    span = {"traceId": "t", "spanId": "s", "name": "chat", "attributes": listed}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


LARGE_BESIDE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "promptfoo metadata": (
        lambda big: promptfoo({"metadata": {"raw": big}, "testCase": {"vars": {"a": "b"}}, "success": True,
                               "response": {"output": "the answer"}, "gradingResult": {"pass": True, "reason": "ok"}}),
        "passed",
    ),
    "promptfoo prompts": (
        lambda big: promptfoo({"testCase": {"vars": {"a": "b"}}, "success": False, "response": {"output": "the answer"},
                               "gradingResult": {"pass": False, "reason": "no"}}, [{"provider": "p", "metrics": big}]),
        "failed",
    ),
    "tau2 info": (lambda big: tau2({}, extra={"big": big}), "passed"),
    "tau2 task": (lambda big: tau2({}, tasks=[{"id": "1", "note": big}]), "passed"),
    "tau2 simulation": (lambda big: tau2({"ticks": [{"raw": big}]}), "passed"),
    "tau-bench": (
        lambda big: [{"task_id": 1, "trial": 0, "info": {"raw": big}, "reward": 1.0, "traj": SAID}],
        "passed",
    ),
    "openai": (lambda big: [{"raw": big, "messages": SAID}], "skipped"),
    "langsmith": (
        lambda big: {"post": [{"id": "r", "trace_id": "r", "run_type": "llm", "extra": {"raw": big},
                               "inputs": {"messages": SAID[:1]}, "outputs": {"messages": SAID[1:]}}]},
        "skipped",
    ),
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("big", ["text", "rows"])
@pytest.mark.parametrize("name", list(LARGE_BESIDE))
def test_a_large_field_of_every_format(imported, name: str, big: str) -> None:
    make, status = LARGE_BESIDE[name]
    report, ((row, transcript),) = imported(make(BIG[big](LARGE)))
    assert (row.status, transcript.final_output) == (status, "the answer")
    assert report.skipped == ()
    assert report.notes  # the large field is said


@pytest.mark.sweep
@pytest.mark.parametrize("size", [3 * MB // 2, 20 * MB])
def test_a_large_attribute_of_a_span(imported, size: int) -> None:
    report, ((_, transcript),) = imported(otel({"gen_ai.prompt_dump": "x" * size, "http.body": "y" * size}))
    assert transcript.final_output == "the answer"
    assert report.skipped == ()


def test_what_tells_the_format_may_stand_behind_something_large(imported) -> None:
    report, ((_, transcript),) = imported([{"dump": "x" * (9 * MB), "messages": SAID}])
    assert (report.format, transcript.final_output) == ("openai", "the answer")


def test_a_value_that_is_too_large_in_all_is_read_without_what_makes_it_so(
    imported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(read_values.__kwdefaults__, "largest", 3 * MB)
    lines = [{"id": f"t{number}", "messages": SAID, "dump": rows(5 * MB)} for number in range(2)]
    report, runs = imported("\n".join(map(json.dumps, [*lines, {"id": "t2", "messages": SAID}])), "a.jsonl")
    assert [(row.test_id, transcript.final_output) for row, transcript in runs] == [
        (f"t{number}", "the answer") for number in range(3)
    ]
    assert report.skipped == ()
    assert any(note.startswith("line 1: `dump` was shortened by ") for note in report.notes), report.notes


@pytest.mark.sweep
@pytest.mark.parametrize("big", list(BIG))
@pytest.mark.parametrize("room", [0, 1_000, 100_000, 64 * MB])
def test_bounded_keeps_what_is_small(big: str, room: int) -> None:
    value = BIG[big](LARGE // 4)
    given = {"first": 1, "big": value, "list": [1, {"deep": value, "kept": "yes"}, 3], "last": {"a": [True, None, "z"]}}
    text = json.dumps([given, "behind"])
    reader = JsonReader(io.BytesIO(text.encode()), window=1 << 14)
    found = []
    for _ in reader.elements():
        found.append(reader.bounded(room))
    assert found[1] == "behind"
    assert list(found[0]) == list(given)
    assert (found[0]["first"], found[0]["last"]) == (1, given["last"])
    assert (found[0]["list"][0], found[0]["list"][1]["kept"], found[0]["list"][2]) == (1, "yes", 3)
    assert reader.shortened or found[0] == given
    if room < 64 * MB:
        assert len(json.dumps(found)) < 2_500_000 // 4
        assert all(place.startswith(("[1].big", "[1].list[2].deep")) for place, _ in reader.shortened)


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_text_is_cut_between_characters(cut: int) -> None:
    text = '\\"\u00e9\n\U0001f600/\t\\\\u0041x' * 4_000
    for ascii_only in (True, False):
        data = json.dumps([text, 7], ensure_ascii=ascii_only).encode()
        reader = JsonReader(io.BytesIO(data), window=1 << 12, longest=0)
        kept = []
        for index in reader.elements():
            kept.append(reader.bounded(cut + 20_000) if index == 0 else reader.value())
        begin = kept[0].partition("… [")[0]
        assert text.startswith(begin.rstrip("\ud83d"))
        assert len(begin) > 3_000
        assert kept[1] == 7


def test_a_large_value_that_is_cut_off_is_said_so() -> None:
    text = json.dumps({"a": "x" * 300_000})[:-5]
    with pytest.raises(UnreadableFile) as caught:
        JsonReader(io.BytesIO(text.encode()), window=1 << 12).bounded(100)
    assert caught.value.cut_off


BAD_ESCAPES = ["\\x", "\\ ", "\\9", "\\U0041", "\\uZZZZ", "\\u12G4", "\\u", "ok \\\\ then \\q"]


@pytest.mark.parametrize("escape", BAD_ESCAPES)
@pytest.mark.parametrize("before", [0, 5, 900])
def test_an_escape_that_json_does_not_know_is_said_in_a_large_text_too(escape: str, before: int) -> None:
    text = '{"a": {"b": "' + "x" * before + escape + "x" * 300_000 + '"}, "c": 1}'
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    with pytest.raises(UnreadableFile, match="not valid JSON: Invalid"):
        JsonReader(io.BytesIO(text.encode()), window=1 << 12).bounded(100)


@pytest.mark.parametrize("escape", BAD_ESCAPES)
def test_a_large_file_with_such_an_escape_is_no_error_in_the_program(imported, escape: str) -> None:
    """A bit that turned in a file: the sample is said, the next one is read."""
    good, bad = ({"id": name, "epoch": 1, "messages": SAID, "scores": {}} for name in ("good", "bad"))
    bad["metadata"] = {"note": "BYTE" + "x" * (2 * MB)}
    data = eval_log(good, bad)
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as whole, zipfile.ZipFile(file, "w", 8) as archive:
        for name in whole.namelist():
            archive.writestr(name, whole.read(name).replace(b"BYTE", escape.encode()))
    report, runs = imported(file.getvalue(), "f.eval")
    assert "good" in [row.test_id for row, _ in runs]
    assert len(runs) == 2 or report.skipped
