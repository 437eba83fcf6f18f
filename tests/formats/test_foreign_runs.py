"""Runs of promptfoo, LangSmith, OpenTelemetry, and messages in other libraries' dialects."""

from __future__ import annotations

import codecs
import io
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core import entry_points
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.detect import _of_plugins, detect, formats
from agenteval_tui.formats.import_file import ImportOptions, import_file
from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.formats.stream.json_reader import JsonReader
from agenteval_tui.formats.stream.json_stream import UnreadableFile
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.history.store import Store

from .conftest import theirs

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here"),
]

# Messages


def weather(call_id: str = "c1") -> list[tuple[Any, ...]]:
    """What every dialect below says: (role, content, reasoning, calls), and the tool's answer."""
    call = (call_id, "get_weather", {"city": "Oslo"}, "4 C", "ok")
    return [("user", "Weather?", "", ()), ("assistant", "I look.", "Hm.", (call,)), ("tool", "4 C", "", ()),
            ("assistant", "It is 4 C.", "", ())]  # fmt: skip


def said(transcript: Any) -> list[tuple[Any, ...]]:
    calls = transcript.tool_calls
    return [
        (m.role, m.content, m.reasoning,
         tuple((c.id, c.name, c.arguments, c.result, c.status) for c in map(calls.__getitem__, m.tool_calls)))
        for m in transcript.messages
    ]  # fmt: skip


DIALECTS: dict[str, list[Any]] = {
    "openai": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "4 C"},
        {"role": "assistant", "content": "It is 4 C."},
    ],
    "anthropic": [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Oslo"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "4 C"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "4 C."}]},
    ],
    "responses": [
        {"role": "user", "content": "Weather?"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "4 C"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It is 4 C."}]},
    ],
    "langchain": [
        {"type": "human", "data": {"content": "Weather?"}},
        {"type": "ai", "data": {
            "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}],
            "tool_calls": [{"id": "c1", "name": "get_weather", "args": {"city": "Oslo"}}]}},
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"],
            "kwargs": {"content": "4 C", "tool_call_id": "c1", "status": "success"}},
        {"type": "ai", "content": "It is 4 C."},
    ],
    "pydantic-ai": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Weather?"}]},
        {"kind": "response", "parts": [
            {"part_kind": "thinking", "content": "Hm."}, {"part_kind": "text", "content": "I look."},
            {"part_kind": "tool-call", "tool_call_id": "c1", "tool_name": "get_weather", "args": '{"city": "Oslo"}'}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_call_id": "c1", "content": "4 C"}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": "It is 4 C."}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", list(DIALECTS))
def test_the_same_conversation_in_every_dialect(imported, name: str) -> None:
    messages = DIALECTS[name]
    assert said(transcript_of(messages)) == weather()
    lines = "\n".join(json.dumps(one) for one in messages)
    for given_, file in (
        (messages, "list.json"), ({"messages": messages, "id": "q1"}, "object.json"), (lines, "lines.jsonl"),
    ):  # fmt: skip
        report, ((row, transcript),) = imported(given_, f"{name}-{file}")
        assert report.format == "openai"
        assert said(transcript) == weather()
        assert row.output_head == "It is 4 C."


def test_answers_of_servers_as_logs_and_batches_keep_them(imported) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    message = {"role": "assistant", "content": "It is 4 C."}
    completion = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "usage": usage,
                  "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
    items = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4 C."}]}]
    response = {"id": "resp_1", "object": "response", "model": "m", "status": "stop", "output": items, "usage": usage}
    asked = {"messages": [{"role": "user", "content": "Weather?"}]}
    logged: list[dict[str, Any]] = [
        {"custom_id": "q1", "response": {"status_code": 200, "body": completion}, "error": None},
        {"id": "q1", "request": asked, "response": completion},
        {"id": "q1", **asked, "response": completion},
        {"id": "q1", "request": {"input": "Weather?", "instructions": "Brief."}, "response": response},
        response,
        completion,
        {"type": "message", "role": "assistant", "model": "m", "content": [{"type": "thinking", "thinking": "Hm."},
         {"type": "text", "text": "It is 4 C."}], "usage": {"input_tokens": 1, "cache_read_input_tokens": 2,
         "output_tokens": 2}, "stop_reason": "stop"},
    ]  # fmt: skip
    for number, one in enumerate(logged):
        _, ((row, transcript),) = imported(one, f"answer{number}.json")
        assert (transcript.final_output, transcript.model, transcript.finish_reason) == ("It is 4 C.", "m", "stop")
        assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (3, 2)
        assert row.prompt_head == ("Weather?" if number in (1, 2, 3) else "")
    _, runs = imported("\n".join(json.dumps(one) for one in logged[:2]), "batch.jsonl")
    assert [row.test_id for row, _ in runs] == ["q1", "q1"]


def test_failed_tools_are_failed_in_every_dialect() -> None:
    failed = [
        [DIALECTS["anthropic"][1], {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}]}],
        [DIALECTS["langchain"][1],
         {"type": "tool", "data": {"content": "no", "tool_call_id": "c1", "status": "error"}}],
        [DIALECTS["pydantic-ai"][1], {"kind": "request", "parts": [
            {"part_kind": "retry-prompt", "tool_call_id": "c1", "tool_name": "get_weather", "content": "no"}]}],
    ]  # fmt: skip
    for messages in failed:
        (call,) = transcript_of(messages).tool_calls
        assert (call.result, call.status) == ("no", "error")


def test_anthropics_system_prompt_model_and_server_tools(imported) -> None:
    content = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "title": "t"}],
        },
        {"type": "text", "text": "Found."},
    ]
    given_ = {
        "system": [{"type": "text", "text": "Be brief."}], "model": "claude-x",
        "usage": {"input_tokens": 3, "output_tokens": 2},
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}],
    }  # fmt: skip
    _, ((row, transcript),) = imported(given_)
    assert [m.role for m in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert (row.agent, transcript.usage.input_tokens, transcript.final_output) == ("claude-x", 3, "Found.")


KEYS = st.sampled_from(["role", "content", "type", "tool_calls", "parts", "kind", "id", "name"])


@given(st.recursive(st.none() | st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(KEYS, inner), max_leaves=8))  # fmt: skip
def test_whatever_stands_for_a_message_is_read_or_refused(value: Any) -> None:
    try:
        transcript_of([value])
    except AgentevalError:
        return


# promptfoo


def row(q: str = "hi", output: Any = "ten", success: bool = True, **more: Any) -> dict[str, Any]:
    parts = [
        {"pass": success, "score": float(success), "reason": "because", "assertion": {"type": "contains", "value": "t"}}
    ]
    return {
        "provider": {"id": "openai:m", "label": "a"}, "prompt": {"raw": f"Say {q}"}, "promptIdx": 0, "testIdx": 0,
        "testCase": {"vars": {"q": q}, "assert": [{"type": "contains", "value": "t"}]}, "vars": {"q": q},
        "response": {"output": output, "finishReason": "stop"}, "success": success, "score": float(success),
        "failureReason": 0 if success else 1, "latencyMs": 12, "cost": 0.5,
        "tokenUsage": {"prompt": 3, "completion": 4, "total": 7, "completionDetails": {"cacheReadInputTokens": 2}},
        "gradingResult": {"pass": success, "score": float(success), "reason": "all", "componentResults": parts}, **more,
    }  # fmt: skip


def results(*rows: Any, providers: tuple[str, ...] = ("a",)) -> dict[str, Any]:
    at = "2026-01-01T00:00:00.500Z"
    inner = {
        "version": 3,
        "timestamp": at,
        "prompts": [{"provider": one} for one in providers],
        "results": list(rows),
        "stats": {},
    }
    return {"evalId": "e", "results": inner, "config": {"prompts": ["Say {{q}}"], "tests": [{"vars": {"q": "hi"}}]}}


def test_promptfoo_rows_are_runs_and_repeated_rows_are_repetitions(imported, store: Store) -> None:
    rows = [row(), row(success=False, testIdx=1), row("other", testIdx=2)]
    report, runs = imported(results(*rows))
    assert report.format == "promptfoo"
    assert [(r.test_id, r.repetition, r.status, r.variation) for r, _ in runs] == [
        ("q-hi", 1, "passed", ""), ("q-hi", 2, "failed", ""), ("q-other", 1, "passed", ""),
    ]  # fmt: skip
    first, transcript = runs[0]
    assert (transcript.usage.input_tokens, transcript.usage.cost, transcript.timing.total_ms) == (3, 0.5, 12.0)
    assert (transcript.usage.cached_tokens, first.started_ms) == (2, 1767225600500)
    (result,) = theirs(store, first.id)
    assert (result.criterion, result.source, criterion_sentence(result)) == (
        "promptfoo contains",
        "promptfoo",
        "because",
    )
    old = [{key: value for key, value in one.items() if key != "testCase"} for one in rows]  # before 2024
    assert [(r.test_id, r.status) for r, _ in imported(results(*old), "old.json")[1]] == [
        (r.test_id, r.status) for r, _ in runs
    ]
    lines = "\n".join(json.dumps(one) for one in rows)
    assert [(r.test_id, r.status) for r, _ in imported(lines, "l.jsonl")[1]] == [(r.test_id, r.status) for r, _ in runs]


def test_promptfoos_own_verdict_decides_where_its_parts_say_otherwise(imported, store: Store) -> None:
    forgiven = row(success=False) | {"success": True, "score": 0.5, "failureReason": 0}
    _, runs = imported(
        results(
            forgiven,
            row("x", gradingResult=None, success=False),
            row("y", gradingResult={"reason": "No assertions", "pass": True}),
        )
    )
    assert [r.status for r, _ in runs] == ["passed", "failed", "skipped"]
    assert [(one.criterion, one.severity) for one in theirs(store, runs[0][0].id)] == [
        ("promptfoo verdict", "error"), ("promptfoo contains", "info"),
    ]  # fmt: skip


def test_promptfoos_providers_are_variations_and_their_errors_errors(imported) -> None:
    other = row(provider={"id": "openai:n", "label": "b"}, promptIdx=1)
    broke = row("z", output=None, success=False, failureReason=2, error="RateLimit: slow\n  at x.js:1", response=None)
    calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    _, runs = imported(results(row(), other, broke, row("t", output=calls), providers=("a", "b")))
    assert [(r.variation, r.repetition) for r, _ in runs[:2]] == [("a", 1), ("b", 1)]
    assert (runs[2][0].status, runs[2][0].error_message) == ("error", "RateLimit: slow")
    assert runs[3][1].tool_calls[0].arguments == {"a": 1}


# LangSmith


@pytest.fixture
def in_india(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock is 5:30 h before UTC's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_india")
def test_langsmiths_times_without_a_zone_are_utc(imported) -> None:
    root = {"id": "t", "trace_id": "t", "name": "agent", "run_type": "chain", "inputs": {"input": "hi"},
            "outputs": {"output": "hello"}, "start_time": "2026-01-01T00:00:00.25"}  # fmt: skip
    for start in (root["start_time"], "2026-01-01T00:00:00.25Z", "2026-01-01T05:30:00.25+05:30"):
        _, [(row, _)] = imported(json.dumps({**root, "start_time": start}), "r.jsonl")
        assert row.started_ms == 1_767_225_600_250


def test_langsmith_batches_are_put_together_by_trace(imported, store: Store) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}]}
    answer = {
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
        "model": "m",
    }
    root = {"id": "t1", "trace_id": "t1", "name": "agent", "run_type": "chain", "inputs": {"input": "hi"},
            "start_time": "2026-01-01T00:00:00+00:00", "feedback_stats": {"correct": {"n": 1, "avg": 0.0}}}  # fmt: skip
    called = {"role": "assistant", "tool_calls": [{"id": "k", "function": {"name": "f", "arguments": "{}"}}]}
    asked["messages"] += [called, {"role": "tool", "tool_call_id": "k", "content": "no"}]
    child = {"id": "c1", "trace_id": "t1", "parent_run_id": "t1", "run_type": "llm", "inputs": asked, "name": "llm",
             "start_time": "2026-01-01T00:00:01+00:00", "end_time": "2026-01-01T00:00:01.500+00:00"}  # fmt: skip
    tool = {"id": "k1", "trace_id": "t1", "parent_run_id": "t1", "run_type": "tool", "name": "f", "error": "broke",
            "start_time": "2026-01-01T00:00:00.100+00:00", "end_time": "2026-01-01T00:00:00.300+00:00"}  # fmt: skip
    batch = {
        "post": [root, child, tool, {**root, "id": "t2", "trace_id": "t2", "feedback_stats": None, "error": "boom"}],
        "patch": [
            {
                "id": "c1",
                "trace_id": "t1",
                "outputs": {**answer, "usage_metadata": {"input_tokens": 2, "output_tokens": 1}},
            },
            {"id": "t1", "trace_id": "t1", "outputs": {"output": "hello"}, "end_time": "2026-01-01T00:00:02+00:00"},
        ],
    }
    for given_, name in (
        (batch, "b.json"),
        ("\n".join(json.dumps(one) for one in batch["post"] + batch["patch"][1:]), "r.jsonl"),
    ):
        report, runs = imported(given_, name)
        assert report.format == "langsmith"
        assert [r.status for r, _ in runs] == ["failed", "error"]
        assert runs[0][1].timing.total_ms == 2000.0
    _, runs = imported(batch, "again.json")  # the same bytes: imported before
    assert runs[0][1].usage.input_tokens == 2
    assert [m.content for m in runs[0][1].messages] == ["hi", "", "no", "hello"]
    (call,) = runs[0][1].tool_calls
    assert (call.status, call.started_ms, call.duration_ms) == ("error", 100.0, 200.0)
    assert [(step.name, step.started_ms) for step in runs[0][1].timing.steps] == [("f", 100.0), ("llm", 1000.0)]
    assert runs[0][0].started_ms == 1767225600000
    assert theirs(store, runs[0][0].id)[0].criterion == "langsmith correct"


def test_sessions_of_managed_agents(imported) -> None:
    def event(kind: str, **more: Any) -> list[Any]:
        nonlocal second
        second += 1
        about = {"type": kind, "processed_at": f"2026-01-01T00:00:{second:02}Z", **more}
        return ["client.beta.sessions.events.stream", about]

    second = 0

    lines = [
        ["client.beta.sessions.create", {"id": "s1", "agent": {"name": "A", "model": {"id": "m"}, "system": "Brief."}}],
        ["client.beta.sessions.events.send", ["s1", {"events": [{"type": "user.message"}]}]],
        event("user.message", content=[{"type": "text", "text": "Weather?"}]),
        event("span.model_request_start", id="q1"),
        event("agent.custom_tool_use", id="c1", name="f", input={"a": 1}),
        event(
            "span.model_request_end",
            model_request_start_id="q1",
            model_usage={"input_tokens": 2, "cache_read_input_tokens": 5},
        ),
        event(
            "user.custom_tool_result", custom_tool_use_id="c1", content=[{"type": "text", "text": "no"}], is_error=True
        ),
        event("agent.message", content=[{"type": "text", "text": "Sorry."}]),
        event("session.status_idle", stop_reason={"type": "end_turn"}),
        ["client.beta.sessions.create", {"id": "s2", "agent": {}}],
    ]
    report, ((row_, transcript),) = imported("\n".join(json.dumps(one) for one in lines), "s.jsonl")
    assert (report.format, report.read, row_.test_id, row_.agent) == ("anthropic-sessions", 2, "s1", "A")
    assert [m.role for m in transcript.messages] == ["system", "user", "assistant", "tool", "assistant"]
    (call,) = transcript.tool_calls
    assert (call.name, call.arguments, call.result, call.status) == ("f", {"a": 1}, "no", "error")
    assert (transcript.usage.input_tokens, transcript.finish_reason, transcript.model) == (7, "end_turn", "m")
    assert (call.started_ms, call.duration_ms, transcript.timing.total_ms) == (2000.0, 2000.0, 6000.0)
    assert [(step.started_ms, step.duration_ms) for step in transcript.timing.steps] == [(1000.0, 2000.0)]
    assert row_.started_ms == 1767225601000


# What any file may be


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
        ("utf-32-le", codecs.BOM_UTF32_LE),
    ],
)
def test_encodings(imported, encoding: str, mark: bytes) -> None:
    text = json.dumps({"messages": [{"role": "assistant", "content": "Grüße 🚀"}]}, ensure_ascii=False)
    _, ((_, transcript),) = imported(mark + text.encode(encoding), "e.json")
    assert transcript.final_output == "Grüße 🚀"


def test_other_encodings_are_read_as_far_as_they_go(imported) -> None:
    report, ((_, transcript),) = imported(
        json.dumps(results(row("Grüße")), ensure_ascii=False).encode("latin-1"), "l.json"
    )
    assert transcript.messages[0].content == "Say Gr\ufffd\ufffde"
    assert report.added == 1


def test_what_json_has_no_word_for_and_what_is_deep_can_be_stored(imported) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    too_deep = "[" * 500 + "]" * 500
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": {"x": float("nan"), "y": [float("-inf")], "deep": deep}}},
        {"id": "b", "function": {"name": "f", "arguments": too_deep}},
    ]
    _, ((_, transcript),) = imported([{"role": "assistant", "content": "c", "tool_calls": calls}])
    first, second = transcript.tool_calls
    assert first.arguments == {"x": "NaN", "y": ["-Infinity"], "deep": deep}
    assert isinstance(second.arguments, list)


class _Results(io.RawIOBase):
    """promptfoo's results with `count` rows of about 20 kB, made while they are read."""

    def __init__(self, count: int) -> None:
        self._parts = self._make(count)
        self._rest = b""

    @staticmethod
    def _make(count: int) -> Iterator[bytes]:
        yield b'{"evalId": "e", "results": {"results": ['
        one = json.dumps(row(output="x" * 20_000))
        for number in range(count):
            yield ("," * (number > 0) + one).encode()
        yield b"]}}"

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (part := next(self._parts, b"")):
            self._rest += part
        out, self._rest = self._rest[:size], self._rest[size:]
        return out


def test_one_large_object_is_read_in_bounded_memory() -> None:
    source = Source(Path(__file__))
    source.reader = lambda: JsonReader(_Results(700))  # type: ignore[arg-type, method-assign]
    tracemalloc.start()
    try:
        count = sum(1 for _ in formats()["promptfoo"].recordings(source))  # type: ignore[misc]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 700
    assert peak < 6_000_000  # of 14 MB


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.integers(3, 60), st.booleans())
def test_pulling_reads_what_json_reads(value: Any, window: int, skipping: bool) -> None:
    raw = json.dumps({"before": value, "list": [value, value], "after": 1}).encode()
    reader = JsonReader(io.BytesIO(raw), window=window)
    found: dict[str, Any] = {}
    for key in reader.members():
        if key == "list":
            found[key] = [None if skipping else reader.value() for _ in reader.elements()]
        elif key == "after" or not skipping:
            found[key] = reader.value()
    assert found["after"] == 1
    if not skipping:
        assert found == {"before": value, "list": [value, value], "after": 1}
    cut = JsonReader(io.BytesIO(raw[:-1]), window=window)
    with pytest.raises(UnreadableFile):
        list(cut.members())


def test_a_format_that_was_named_is_believed(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps(DIALECTS["anthropic"]), "utf-8")
    with Source(path) as source:
        assert detect(source).name == "openai"
    with pytest.raises(AgentevalError, match="nothing in this file can be imported"):
        import_file(path, store, ImportOptions(format="inspect"))
    assert import_file(path, store, ImportOptions(format="anthropic")).added == 1


class TestRecorded:
    pytestmark = shared

    @pytest.mark.parametrize(
        ("name", "format_name", "runs"),
        [
            ("generated/promptfoo_results.json", "promptfoo", 6),
            ("generated/langchain_dumpd.json", "openai", 1),
            ("generated/langchain_messages_to_dict.json", "openai", 1),
            ("generated/langchain_as_openai.json", "openai", 1),
            ("generated/openai_agents_input_list.json", "openai", 1),
            ("generated/pydantic_ai_messages.json", "openai", 1),
            ("generated/otel_genai_pydantic_ai_spans.json", "otel", 1),
            ("langsmith/langsmith_py_wrap_openai_reasoning.json", "langsmith", 1),
            ("langsmith/anthropic_managed_builtin_tools.jsonl", "anthropic-sessions", 1),
            ("langsmith/anthropic_managed_custom_tools.jsonl", "anthropic-sessions", 1),
            ("langsmith/anthropic_managed_mcp_tools.jsonl", "anthropic-sessions", 1),
            ("wire/transcripts-anthropic.jsonl", "openai", 19),
        ],
    )
    def test_recordings_are_told_apart_and_read(self, imported, name: str, format_name: str, runs: int) -> None:
        report, found = imported(SHARED / name)
        assert (report.format, report.added, report.skipped) == (format_name, runs, ())
        if name.startswith("generated/") and format_name != "promptfoo":
            ((_, transcript),) = found
            assert [m.role for m in transcript.messages] == ["user", "assistant", "tool", "tool", "assistant"]
            assert [(c.name, c.result) for c in transcript.tool_calls] == [
                ("get_weather", '{"city": "Oslo", "temp": 4, "unit": "c"}'), ("get_time", "12:00"),
            ]  # fmt: skip
            assert transcript.final_output == "It is 4 C in Oslo at 12:00."
        if format_name == "anthropic-sessions":
            ((_, transcript),) = found
            assert [call.result is not None for call in transcript.tool_calls] == [True]
            assert transcript.final_output
        if name.startswith("wire/"):
            raw = [json.loads(line) for line in (SHARED / name).read_text("utf-8").splitlines()]
            for one, (_, transcript) in zip(raw, found, strict=True):
                blocks = [b for m in one["messages"] if isinstance(m["content"], list) for b in m["content"]]
                assert [c.name for c in transcript.tool_calls] == [b["name"] for b in blocks if b["type"] == "tool_use"]
                assert all(call.result is not None for call in transcript.tool_calls)


BROKEN = """
from agenteval_tui.formats.importers.format import Format

def can_read(value):
    raise KeyError("a key\\nthat is not there")

FORMAT = Format(name="broken-reader", title="a file", looks_like="x", can_read=can_read)
"""


@pytest.fixture
def broken_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    site = tmp_path / "site"
    info = site / "brittle-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "brittle.py").write_text(BROKEN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brittle\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agenteval.importers]\nbroken-reader = brittle:FORMAT\nnot-there = no_such_module:FORMAT\n"
    )
    monkeypatch.syspath_prepend(str(site))
    entry_points._plugins.cache_clear()
    _of_plugins.cache_clear()
    yield
    entry_points._plugins.cache_clear()
    _of_plugins.cache_clear()


@pytest.mark.usefixtures("broken_plugins")
def test_what_a_plugin_could_not_look_at_is_said(store: Store, tmp_path: Path) -> None:
    unknown = tmp_path / "unknown.json"
    unknown.write_text('{"a": 1}')
    with pytest.raises(AgentevalError, match="this format is unknown") as caught:
        import_file(unknown, store)
    said = [" ".join(line.split()) for line in caught.value.fix.splitlines()]
    assert said[-2].startswith("broken-reader it failed on this file: KeyError: 'a key")
    assert said[-1].startswith("not-there the importer 'not-there' can't be loaded: ModuleNotFoundError")
    # What agenteval's own formats know comes in all the same.
    known = tmp_path / "m.json"
    known.write_text(json.dumps(DIALECTS["anthropic"]), "utf-8")
    assert import_file(known, store).added == 1
