"""Which importers' files have a place for tool calls: where a file has none, "no calls" is nothing that is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.formats.detect import detect, formats
from agenteval_tui.formats.import_file import open_source
from agenteval_tui.formats.importers.message_formats import transcript_of
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.importers.span_tool_calls import UntoldCall, with_results, with_untold_calls
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Note, Transcript, message_place
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.transcripts.observed import observes

Import = Callable[..., Any]
FORBIDDEN = CriterionSpec(
    "no tool may be called", "ToolResponse", {"metrics": [{"type": "ToolCheck", "tool_call_forbidden": True}]}
)
ASKED = {"role": "user", "content": "q"}
SAID = {"role": "assistant", "content": "a"}
CALLED = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "refund", "arguments": "{}"}}],
}


def _langfuse(*observations: dict[str, Any]) -> dict[str, Any]:
    trace = {"id": "t", "name": "n", "timestamp": "2026-01-01T00:00:00Z", "input": "q", "output": "a"}
    return {"trace": trace, "observations": [{"traceId": "t", **one} for one in observations]}


def _mlflow(kind: str, answered: str, **more: str) -> dict[str, Any]:
    about = {"mlflow.spanType": f'"{kind}"', "mlflow.spanInputs": '{"q": "q"}', "mlflow.spanOutputs": answered, **more}
    span = {"span_id": "b", "name": "n", "start_time_unix_nano": 1, "end_time_unix_nano": 2, "attributes": about}
    return {"info": {"trace_id": "t"}, "data": {"spans": [span]}}


def _braintrust(kind: str, answered: Any, name: str = "n") -> dict[str, Any]:
    about = {"name": name, "type": kind}
    return {"id": "1", "span_id": "s", "root_span_id": "s", "span_attributes": about, "input": "q", "output": answered}


def _langsmith(kind: str, outputs: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "trace_id": "1", "name": "n", "run_type": kind, "inputs": {"messages": [ASKED]},
            "outputs": outputs}  # fmt: skip


def _promptfoo(output: Any) -> dict[str, Any]:
    row = {"testIdx": 0, "testCase": {"vars": {"q": "q"}}, "prompt": {"raw": "q"}, "provider": {"id": "p"},
           "response": {"output": output}, "success": True, "gradingResult": {"pass": True}}  # fmt: skip
    return {"evalId": "e", "results": {"prompts": [{"provider": "p"}], "results": [row]}, "config": {}}


def _deepeval(**case: Any) -> dict[str, Any]:
    return {"testCases": [{"name": "n", "input": "q", "actualOutput": "a", **case}], "metricsScores": []}


def _sharegpt(*turns: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"conversations": [{"from": who, "value": said} for who, said in turns], **more}


def _evals(line: dict[str, Any]) -> str:
    return "\n".join(map(_json, ({"spec": {"eval_name": "x", "completion_fns": ["m"]}}, line)))


def _json(value: Any) -> str:
    return json.dumps(value)


SPAN = {"type": "TOOL", "name": "refund", "input": {}, "output": "ok", "startTime": "2026-01-01T00:00:00Z"}
SAMPLED = {"sample_id": "1", "event_id": 0, "type": "sampling", "data": {"prompt": [ASKED], "sampled": ["a"]}}
FILES: dict[str, tuple[str, Any, bool]] = {
    # What it is: the format, a file, and whether calls would be seen in it.
    "a promptfoo output of text": ("promptfoo", _promptfoo("a"), False),
    "a promptfoo output of JSON": ("promptfoo", _promptfoo({"answer": "a"}), False),
    "a promptfoo output that is a message": ("promptfoo", _promptfoo(SAID), True),
    "a promptfoo output that is calls": ("promptfoo", _promptfoo(CALLED["tool_calls"]), True),
    "a case of DeepEval with its output only": ("deepeval", _deepeval(), False),
    "a case of DeepEval whose tools are null": ("deepeval", _deepeval(toolsCalled=None), False),
    "a case of DeepEval that called none": ("deepeval", _deepeval(toolsCalled=[]), True),
    "a case of DeepEval with a trace": ("deepeval", _deepeval(trace={"toolSpans": []}), True),
    "a report of pydantic-evals": (
        "pydantic-evals", {"name": "r", "cases": [{"name": "c", "inputs": "q", "output": "a"}]}, False
    ),
    "a report of pydantic-evals with messages": (
        "pydantic-evals", {"name": "r", "cases": [{"name": "c", "inputs": "q", "output": [SAID]}]}, True
    ),
    "a generation of Langfuse whose output is text": (
        "langfuse", _langfuse({"id": "g", "type": "GENERATION", "input": [ASKED], "output": "a"}), False
    ),
    "a generation of Langfuse whose output is a message": (
        "langfuse", _langfuse({"id": "g", "type": "GENERATION", "input": [ASKED], "output": SAID}), True
    ),
    "a trace of Langfuse without observations": ("langfuse", _langfuse(), False),
    "spans of Langfuse of another kind": (
        "langfuse", _langfuse({"id": "s", "type": "SPAN", "name": "chain", "input": "q", "output": "a"}), False
    ),
    "a tool of Langfuse": ("langfuse", _langfuse({"id": "s", **SPAN}), True),
    "a span of MLflow with text": ("mlflow", _mlflow("CHAIN", '"a"'), False),
    "a chat model of MLflow": ("mlflow", _mlflow("CHAT_MODEL", _json({"choices": [{"message": SAID}]})), True),
    "a tool of MLflow": ("mlflow", _mlflow("TOOL", '"ok"'), True),
    "a row of Braintrust with text": ("braintrust", _braintrust("eval", "a"), False),
    "a function of Braintrust": ("braintrust", _braintrust("function", "a"), False),
    "a model of Braintrust": ("braintrust", _braintrust("llm", [{"message": SAID}]), True),
    "a tool of Braintrust": ("braintrust", _braintrust("tool", "ok"), True),
    "a chain of LangSmith with text": ("langsmith", _langsmith("chain", {"output": "a"}), False),
    "a model of LangSmith with text": (
        "langsmith", _langsmith("llm", {"generations": [[{"text": "a"}]]}), False
    ),
    "a model of LangSmith": ("langsmith", _langsmith("llm", {"choices": [{"message": SAID}]}), True),
    "a tool of LangSmith": ("langsmith", _langsmith("tool", {"output": "ok"}), True),
    "ShareGPT": ("sharegpt", _sharegpt(("human", "q"), ("gpt", "a")), False),
    "ShareGPT with tools": ("sharegpt", _sharegpt(("human", "q"), ("gpt", "a"), tools="[]"), True),
    "a prompt with its completion": ("sharegpt", {"prompt": [ASKED], "completion": [SAID]}, True),
    "a log of OpenAI's evals": ("openai-evals", _evals(SAMPLED), False),
    "a conversation of several agents": (
        "multi-agent", {"question": "q", "history": [{"role": "Expert", "content": "a"}]}, False
    ),
    "a result of BFCL": ("bfcl", {"id": "1", "result": "None fits.", "input_token_count": 1}, True),
    "a result of BFCL whose calls are text": (
        "bfcl", {"id": "1", "result": "[refund(id=1)]", "input_token_count": 1}, False
    ),
    "chat messages": ("openai", [ASKED, SAID], True),
    "chat messages with a part that nobody knows": (
        "openai", [ASKED, {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "shell_action"}]}],
        False,
    ),
    "chat messages with a call without a name": (
        "openai", [ASKED, {**SAID, "tool_calls": [{"id": "c", "function": {}}]}], False
    ),
}  # fmt: skip
HOLD_CALLS = {
    "inspect", "otel", "anthropic-sessions", "atif", "claude-code", "codex", "gemini-cli", "swe-agent", "openhands",
    "autogen", "openai-agents-traces", "tau-bench", "tau2-bench",
}  # fmt: skip
"""Formats of messages, steps or items, in each of which a call has its place: a file without calls says that none were
made."""


def test_each_format_of_runs_is_in_the_table() -> None:
    with_runs = {name for name, one in formats().items() if one.recordings is not None}
    assert {name for name, _, _ in FILES.values()} | HOLD_CALLS == with_runs


@pytest.mark.parametrize("what", FILES)
def test_a_file_without_a_place_for_calls_is_not_judged_by_their_absence(imported: Import, what: str) -> None:
    name, given, seen = FILES[what]
    report, runs = imported(given, "f.jsonl" if isinstance(given, str) else "f.json")
    (_, transcript), = runs  # fmt: skip
    assert report.format == name
    assert ("tool_calls" in observes(transcript)) is seen
    result = compile_criterion(FORBIDDEN).check(transcript)
    if not seen:
        assert result.outcome is Outcome.ERROR
        assert result.metrics[0].code == Code.NOT_OBSERVED if result.metrics else result.code == Code.NOT_OBSERVED
    else:
        assert result.outcome is (Outcome.FAILED if transcript.tool_calls else Outcome.PASSED)


def test_spans_of_tools_are_calls(imported: Import) -> None:
    for what in ("a tool of Langfuse", "a tool of MLflow", "a tool of Braintrust", "a tool of LangSmith"):
        _, ((_, transcript),) = imported(FILES[what][1], f"{what}.json")
        assert len(transcript.tool_calls) == 1, what


def _codex(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T10:00:00.000Z", "type": kind, "payload": payload}


def _claude(kind: str, content: Any) -> dict[str, Any]:
    return {"sessionId": "s", "type": kind, "message": {"role": kind, "content": content}}


def _genai(name: str, **attributes: str) -> dict[str, Any]:
    listed = [{"key": f"gen_ai.{key.replace('__', '.')}", "value": {"stringValue": value}}
              for key, value in attributes.items()]  # fmt: skip
    span = {"traceId": "a" * 32, "spanId": name, "name": name, "startTimeUnixNano": "1", "endTimeUnixNano": "2",
            "attributes": listed}  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


_ASKED_PARTS = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "q"}]}])
_SAID_PARTS = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}])
_CODEX_ASKED = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}
_CODEX_SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
LOGS: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
    # What is said, the call, and the lines before the two.
    "codex": (
        _codex("response_item", _CODEX_SAID),
        _codex("response_item", {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}),
        [_codex("session_meta", {"id": "x"}), _codex("response_item", _CODEX_ASKED)],
    ),
    "claude-code": (
        _claude("assistant", [{"type": "text", "text": "a"}]),
        _claude("assistant", [{"type": "tool_use", "id": "c", "name": "Bash", "input": {}}]),
        [_claude("user", "q")],
    ),
    "otel": (
        _genai("invoke_agent", operation__name="invoke_agent", input__messages=_ASKED_PARTS,
               output__messages=_SAID_PARTS),
        _genai("execute_tool", operation__name="execute_tool", tool__name="refund", tool__call__arguments="{}"),
        [],
    ),
    "autogen": (
        {"type": "TextMessage", "source": "agent", "content": "a"},
        {"type": "ToolCallRequestEvent", "source": "agent",
         "content": [{"id": "c", "name": "refund", "arguments": "{}"}]},
        [{"type": "TextMessage", "source": "user", "content": "q"}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_a_line_that_cant_be_read_may_have_been_a_call(name: str, imported: Import) -> None:
    said, call, before = LOGS[name]
    start = "\n".join(map(json.dumps, [*before, said]))
    _, ((_, whole),) = imported(f"{start}\n{json.dumps(call)}", "whole.jsonl")
    assert compile_criterion(FORBIDDEN).check(whole).outcome is Outcome.FAILED
    cut = json.dumps(call)[:-9]
    for file, rest in (("cut.jsonl", cut), ("broken.jsonl", f"{cut}}}\n{json.dumps(said)}")):
        report, ((_, transcript),) = imported(f"{start}\n{rest}", file)
        assert report.skipped
        assert "unread_calls" in {note.code for note in transcript.notes}
        assert compile_criterion(FORBIDDEN).check(transcript).outcome is Outcome.ERROR


REPORTS = {
    # A door of `findings/reports-and-figures.md` B1: the calls in it, each with what came back, and the answer.
    "18-trace-tool-spans-dropped/bt.jsonl": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "18-trace-tool-spans-dropped/lf_gen_tool.json": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "18-trace-tool-spans-dropped/lf_tool_only.json": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "18-trace-tool-spans-dropped/ls_tool_only.json": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "18-trace-tool-spans-dropped/mlflow.json": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "18-trace-tool-spans-dropped/mix_lf.json": (
        [("get_order", {"id": 1}, "ok"), ("cancel_order", {"id": 1}, "cancelled")], "done"
    ),
    "13-bedrock-strands-toolUse/bedrock.json": ([("cancel_order", {"id": 1}, '{"a": 1}')], "done"),
    "13-bedrock-strands-toolUse/strands.json": ([("cancel_order", {"id": 1}, "bad")], "done"),
    "02-otel-execute_tool-dropped/1_agent_msgs_tool.json": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "02-otel-execute_tool-dropped/2_chat_final_tool.json": ([("cancel_order", {"id": 1}, "ok")], "done"),
    "02-otel-execute_tool-dropped/3_agent_msgs_chat_nocontent_tool.json": (
        [("cancel_order", {"id": 1}, "ok")], "done"
    ),
    "10-custom-tool-calls/custom.json": ([("code_exec", "print(1)", "1")], "The result is 1."),
}  # fmt: skip


@pytest.mark.shared
@pytest.mark.parametrize("file", REPORTS)
def test_each_door_is_read(shared: Path, file: str) -> None:
    calls, answer = REPORTS[file]
    path = shared / "data" / "reports" / file
    with open_source(path) as source:
        read = detect(source).recordings
        assert read is not None
        (run,) = [one for one in read(source) if isinstance(one, Recording)]
    transcript = run.transcript
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == calls
    assert transcript.final_output == answer
    assert compile_criterion(FORBIDDEN).check(transcript).outcome is Outcome.FAILED


def _said(transcript: Transcript) -> list[tuple[str, str]]:
    return [(one.role, one.content or ",".join(transcript.tool_calls[call].name for call in one.tool_calls))
            for one in transcript.messages]  # fmt: skip


def test_calls_of_spans_have_their_place_in_the_conversation() -> None:
    told = transcript_of([ASKED, CALLED, {"role": "tool", "tool_call_id": "c", "content": "r"}, SAID])
    told = Transcript(told.messages, told.tool_calls, notes=(Note("unread", "x", message_place(3)),))
    calls = [UntoldCall("1", "first", {}, "1"), UntoldCall("2", "second", {}, "2", after=1),
             UntoldCall("3", "third", {"a": 1}, None, after=1)]  # fmt: skip
    found = with_untold_calls(told, calls)
    assert _said(found) == [
        ("user", "q"), ("assistant", "first"), ("tool", "1"), ("assistant", "refund"), ("tool", "r"),
        ("assistant", "second"), ("tool", "2"), ("assistant", "third"), ("assistant", "a"),
    ]  # fmt: skip
    assert [one.name for one in found.tool_calls] == ["first", "refund", "second", "third"]
    assert found.notes[0].place == message_place(8)
    for index, message in enumerate(found.messages):
        assert all(found.tool_calls[call].message == index for call in message.tool_calls)
        assert message.tool_call is None or found.tool_calls[message.tool_call].result == message.content


def test_requests_keep_the_answers_that_they_led_to() -> None:
    asked = ModelRequests.of([ModelRequest(1, 1, answer=1), ModelRequest(2, 1, answer=3), ModelRequest(3, 1)])
    told = transcript_of([ASKED, CALLED, {"role": "tool", "tool_call_id": "c", "content": "r"}, SAID])
    told = Transcript(told.messages, told.tool_calls, requests=asked)
    found = with_untold_calls(told, [UntoldCall("1", "first", {}, "1")])
    assert found.requests is not None
    assert [one.answer for one in found.requests.references] == [3, 5, None]
    open_call = transcript_of([ASKED, CALLED, SAID])
    answered = with_results(
        Transcript(open_call.messages, open_call.tool_calls, requests=ModelRequests.of([ModelRequest(1, 1, answer=2)])),
        [replace(one, result="r") for one in open_call.tool_calls],
    )
    assert [one.content for one in answered.messages] == ["q", "", "r", "a"]
    assert answered.requests is not None
    assert [one.answer for one in answered.requests.references] == [3]
