"""Nothing is lost in silence: a mark in any text of a foreign file is in the run, its verdicts, or its field is said.

For each format a file in its published shape. Every text in it is replaced by one with a mark in it, and the import must
keep the mark or name the field that it stood in.
"""

# ruff: noqa: E501 - shapes as they are published

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.formats.detect import formats
from agenteval_tui.formats.import_file import _Tally
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.transcripts.codec import to_json

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"

# Keys whose values give a file its structure: with other values it is another file.
STRUCTURE = {
    "role", "type", "kind", "part_kind", "event", "run_type", "object",  # which kind of thing it is
    "id", "call_id", "tool_call_id", "tool_use_id", "toolCallId", "trace_id", "traceId", "span_id", "spanId",
    "parent_run_id", "parentSpanId", "parent_id", "requestor", "turn_id", "task_id", "sample_ids",  # what belongs to what
    "timestamp", "start_time", "end_time", "started_at", "completed_at", "processed_at", "completed", "created",
    "startTimeUnixNano", "endTimeUnixNano",  # moments are read as numbers
    "termination_reason", "status", "state", "code",  # how it ended: few words that each format fixes
    "key", "gen_ai.operation.name", "openinference.span.kind", "lc",  # attributes' names and operations
    "total_cost", "cost", "working_time", "arguments",  # numbers, and JSON within JSON (marked apart)
    "sessionId", "projectHash", "leafUuid", "schema_version", "source", "source_call_id", "tool_call_ids",
    "action", "observation", "from", "exit_status", "sample_id", "question_ID",  # of the formats of sessions
    "root_span_id", "span_parents", "parentObservationId", "startTime", "dataType", "mlflow.spanType",
    "mlflow.spanInputs", "mlflow.spanOutputs",  # of traces
}  # fmt: skip

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "q", "name": "someone", "extra": "e"},
    {
        "role": "assistant",
        "content": "look",
        "tool_calls": [CALL],
        "reasoning_content": "hm",
        "annotations": [{"a": "b"}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "r", "artifact": {"deep": ["x"]}},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "done", "citations": [{"title": "t"}]}],
        "refusal": "no",
    },
]
META = {"who": "me", "nested": {"list": ["one", {"two": "three"}]}}

FILES: dict[str, Any] = {
    "openai": {"messages": SAID, "name": "n", "model": "m", "finish_reason": "stop", "metadata": META, "system": "s",
               "error": {"message": "broke", "detail": "d"}, "variables": {"v": "w"}, "final_output": "done", "agent": "a"},
    "tau-bench": [{"task_id": "7", "trial": 0, "reward": 0.0, "traj": SAID[:3], "note": "n", "info": {
        "task": {"user_id": "u", "instruction": "i", "outputs": ["o"], "actions": [{"name": "f", "kwargs": {"k": "v"}}],
                 "annotator": "x"},
        "reward_info": {"reward": 0.0, "info": {"r_actions": 0, "gt_data_hash": "h"}, "actions": [{"name": "g"}]},
        "user_cost": 1, "source": "user"}}],
    "tau2-bench": {
        "timestamp": "2026-01-01T00:00:00", "info": {"agent_info": {"llm": "m", "implementation": "i"}, "git_commit": "g"},
        "tasks": [{"id": "7", "user_scenario": {"instructions": "i"}, "description": {"purpose": "p"},
                   "evaluation_criteria": {"actions": [{"name": "f"}], "nl_assertions": ["must"]}}],
        "simulations": [{"id": "s", "task_id": "7", "trial": 0, "termination_reason": "user_stop", "messages": SAID[:3],
                         "reward_info": {"reward": 0.0, "nl_assertions": [{"nl_assertion": "n", "justification": "j"}],
                                         "reward_breakdown": {"DB": 0.0}}, "review": {"summary": "s"}}]},
    "promptfoo": {"evalId": "e", "shareableUrl": "u", "config": {"description": "d", "prompts": ["p"]}, "results": {
        "version": 3, "timestamp": "2026-01-01T00:00:00Z", "stats": {"note": "n"},
        "prompts": [{"provider": "p", "label": "l", "raw": "p", "metrics": {"note": "x"}}],
        "results": [{"provider": {"id": "p", "label": "q"}, "prompt": {"raw": "say", "label": "l"}, "promptIdx": 0,
                     "vars": {"v": "w"}, "testCase": {"vars": {"v": "w"}, "description": "d", "metadata": META},
                     "response": {"output": "out", "finishReason": "stop", "raw": {"id": "x"}}, "success": False,
                     "gradingResult": {"pass": False, "reason": "why", "comment": "c", "componentResults": [
                         {"pass": False, "score": 0, "reason": "r", "assertion": {"type": "contains", "value": "z"}}]}}]}},
    "langsmith": {"post": [
        {"id": "r", "trace_id": "r", "run_type": "chain", "name": "n", "inputs": {"question": "q"}, "tags": ["t"],
         "outputs": {"answer": "a"}, "extra": {"metadata": META}, "feedback_stats": {"good": {"avg": 1, "comments": ["c"]}}},
        {"id": "m", "trace_id": "r", "parent_run_id": "r", "run_type": "llm", "name": "llm", "error": "e",
         "inputs": {"messages": SAID[:3], "tools": [{"name": "f"}]}, "outputs": {"choices": [
             {"message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}], "model": "m"}}]},
    "otel": {"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "svc"}}]},
        "scopeSpans": [{"scope": {"name": "sc"}, "spans": [
            {"traceId": "t", "spanId": "s", "name": "chat m", "links": [{"note": "n"}], "status": {"message": "fine"},
             "events": [{"name": "gen_ai.evaluation.result", "attributes": [
                 {"key": "gen_ai.evaluation.name", "value": {"stringValue": "good"}},
                 {"key": "gen_ai.evaluation.explanation", "value": {"stringValue": "since"}},
                 {"key": "other", "value": {"stringValue": "o"}}]}, {"name": "log", "attributes": [
                     {"key": "log.message", "value": {"stringValue": "l"}}]}],
             "attributes": [
                 {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                 {"key": "gen_ai.prompt.0.role", "value": {"stringValue": "user"}},
                 {"key": "gen_ai.prompt.0.content", "value": {"stringValue": "q"}},
                 {"key": "gen_ai.completion.0.content", "value": {"stringValue": "a"}},
                 {"key": "gen_ai.request.model", "value": {"stringValue": "m"}},
                 {"key": "http.url", "value": {"stringValue": "u"}}]}]}]}]},
    "anthropic-sessions": [
        "client.beta.sessions.create", {"id": "s", "title": "t", "agent": {"name": "n", "model": "m", "system": "sys"}},
        "client.beta.sessions.events.stream", {"type": "user.message", "content": [{"type": "text", "text": "q"}]},
        "client.beta.sessions.events.stream", {"type": "agent.message", "content": [{"type": "text", "text": "a"}], "x": "y"},
    ],
    "inspect": {
        "version": 2, "status": "success", "plan": {"name": "p"}, "results": {"note": "r"}, "tags": ["t"],
        "eval": {"task": "t", "model": "m", "dataset": {"name": "d"}, "metadata": META},
        "samples": [{"id": "s", "epoch": 1, "input": "q", "target": "t", "choices": ["A"], "metadata": META,
                     "messages": [{**one, "tool_calls": [{"id": "c1", "function": "f", "arguments": {"x": "y"}}]}
                                  if "tool_calls" in one else one for one in SAID],
                     "output": {"model": "m", "completion": "done", "choices": [
                         {"message": SAID[3], "stop_reason": "stop"}, {"message": {"role": "assistant", "content": "alt"}}]},
                     "scores": {"judge": {"value": "I", "answer": "ans", "explanation": "exp", "metadata": META}},
                     "store": {"k": "v"}, "error": {"message": "broke", "traceback": "tb"}, "limit": {"type": "time"}}]},
    "pydantic-evals": {"name": "r", "experiment_metadata": META, "analyses": [{"title": "t"}], "cases": [
        {"name": "c", "inputs": {"q": "i"}, "output": {"a": "o"}, "expected_output": "x", "metadata": META,
         "attributes": {"at": "v"}, "labels": {"l": {"value": "lv", "reason": "lr"}}, "scores": {
             "s": {"value": 1.0, "reason": "sr", "source": {"name": "S", "arguments": {"rubric": "rub"}}}},
         "assertions": {"a": {"value": False, "reason": "ar"}}, "evaluator_failures": [
             {"name": "e", "error_message": "em", "error_stacktrace": "es", "source": {"name": "E"}}]}],
        "failures": [{"name": "f", "inputs": "fi", "error_message": "fe", "error_stacktrace": "fs"}]},
    "deepeval": {"testPassed": 0, "identifier": "i", "hyperparameters": {"model": "m"}, "testCases": [
        {"name": "n", "input": "q", "actualOutput": "a", "expectedOutput": "x", "context": ["c"], "retrievalContext": ["rc"],
         "toolsCalled": [{"name": "f", "description": "d", "reasoning": "why", "inputParameters": {"x": "y"},
                          "output": {"deep": ["r"]}}],
         "expectedTools": [{"name": "g", "inputParameters": {"k": "v"}}], "tags": ["t"], "comments": "co",
         "additionalMetadata": META, "trace": {"name": "tr", "llmSpans": [{"output": "so"}]},
         "metricsData": [{"name": "me", "score": 0.2, "success": False, "reason": "re", "evaluationModel": "em",
                          "verboseLogs": "vl"}, {"name": "broken", "error": "er"}]}],
        "conversationalTestCases": [
            {"name": "c", "scenario": "s", "expectedOutcome": "eo", "userDescription": "ud", "chatbotRole": "cr",
             "turns": [{"role": "user", "content": "t1", "userId": "u"},
                       {"role": "assistant", "content": "t2", "retrievalContext": ["r2"],
                        "toolsCalled": [{"name": "h", "inputParameters": {"z": "w"}, "output": "tr"}]}]}]},
    "atif": {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "n", "version": "v", "model_name": "m",
             "extra": {"k": "w"}}, "notes": "note", "extra": META, "final_metrics": {"total_prompt_tokens": 3}, "steps": [
        {"step_id": 1, "source": "user", "message": "q"},
        {"step_id": 2, "source": "agent", "message": "look", "reasoning_content": "hm", "model_name": "m2", "tool_calls": [
            {"tool_call_id": "c1", "function_name": "f", "arguments": {"x": "y"}}], "observation": {"results": [
                {"source_call_id": "c1", "content": "r"}, {"content": "loose"}]}, "metrics": {"extra": {"e": "f"}}}]},
    "claude-code": [
        {"type": "summary", "summary": "title", "leafUuid": "u"},
        {"type": "user", "sessionId": "s", "cwd": "/w", "message": {"role": "user", "content": "q"}},
        {"type": "assistant", "sessionId": "s", "message": {"id": "m1", "role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": "hm"}]}},
        {"type": "assistant", "sessionId": "s", "message": {"id": "m1", "role": "assistant", "model": "m", "content": [
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": "y"}}]}},
        {"type": "user", "sessionId": "s", "toolUseResult": {"stdout": "so"}, "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "r"}]}},
        {"type": "system", "sessionId": "s", "content": "compacted"},
        {"type": "assistant", "sessionId": "s", "message": {"id": "m2", "role": "assistant", "content": [
            {"type": "text", "text": "done"}]}}],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/w", "instructions": "do", "git": {"branch": "b"}}},
        {"type": "turn_context", "payload": {"model": "m", "approval_policy": "never"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "q"}]}},
        {"type": "response_item", "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": "r"}},
        {"type": "response_item", "payload": {"type": "web_search_call", "status": "completed", "action": {"query": "w"}}},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "seen"}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "done"}]}}],
    "gemini-cli": {"sessionId": "s", "projectHash": "h", "summary": "sum", "messages": [
        {"id": "1", "type": "user", "content": "q"}, {"id": "2", "type": "info", "content": "i"},
        {"id": "3", "type": "gemini", "content": "look", "model": "m", "thoughts": [{"subject": "s", "description": "d"}],
         "toolCalls": [{"id": "c1", "name": "f", "args": {"x": "y"}, "status": "success", "displayName": "F", "result": [
             {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "r"}}}], "resultDisplay": "rd"}]},
        {"id": "4", "type": "gemini", "content": "done"}]},
    "swe-agent": {"environment": "e", "info": {"exit_status": "submitted", "submission": "diff", "extra": "x"},
        "trajectory": [{"action": "ls", "observation": "o", "response": "resp", "thought": "th", "state": "st"}],
        "history": [{"role": "system", "content": "sys", "agent": "a"}, {"role": "user", "content": "demo", "is_demo": True},
                    {"role": "user", "content": "q"}, {"role": "assistant", "content": "do", "thought": "t", "action": "ls"},
                    {"role": "user", "content": "o2"},
                    {"role": "assistant", "content": "call", "tool_calls": [CALL]},
                    {"role": "tool", "content": "r", "tool_call_ids": ["c1"]}]},
    "openhands": {"instruction": "i", "issue": {"title": "t", "owner": "o"}, "git_patch": "p", "success": False,
        "result_explanation": "why", "comment": "c", "metrics": {"accumulated_cost": 0.1}, "history": [
            {"source": "user", "action": "message", "args": {"content": "q"}},
            {"id": 3, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "hm"}, "message": "m"},
            {"id": 4, "source": "agent", "observation": "run", "content": "out", "cause": 3, "extras": {"k": "v"}},
            {"source": "agent", "action": "finish", "args": {"final_thought": "done"}}]},
    "multi-agent": {"question_ID": "1", "question": "q", "ground_truth": "g", "is_correct": False, "mistake_agent": "B",
        "mistake_reason": "why", "level": "2", "system_prompt": {"A": "sa"}, "note": "n", "history": [
            {"role": "human", "content": "q2"}, {"role": "A (thought)", "content": "hm"}, {"role": "B", "content": "b"},
            {"role": "user", "name": "Terminal", "content": "out"}]},
    "autogen": {"stop_reason": "enough", "extra": "e", "messages": [
        {"type": "TextMessage", "source": "user", "content": "q", "metadata": {"k": "v"}},
        {"type": "ThoughtEvent", "source": "A", "content": "hm"},
        {"type": "ToolCallRequestEvent", "source": "A", "content": [{"id": "c1", "name": "f", "arguments": "{}"}]},
        {"type": "ToolCallExecutionEvent", "source": "A", "content": [{"call_id": "c1", "name": "f", "content": "r"}]},
        {"type": "TextMessage", "source": "A", "content": "done"}]},
    "sharegpt": [{"id": "1", "system": "s", "source": "web", "conversations": [
        {"from": "human", "value": "q"}, {"from": "function_call", "value": '{"name": "f", "arguments": {"x": "y"}}'},
        {"from": "observation", "value": "r"}, {"from": "someone", "value": "hey"}, {"from": "gpt", "value": "a"}]}],
    "openai-evals": [
        {"spec": {"completion_fns": ["m"], "eval_name": "e", "run_config": {"k": "v"}}},
        {"sample_id": "s", "event_id": 0, "type": "sampling", "created_by": "me", "data": {
            "prompt": [{"role": "user", "content": "q"}], "sampled": ["a"]}},
        {"sample_id": "s", "event_id": 1, "type": "match", "data": {"correct": False, "expected": "x", "picked": "p"}},
        {"final_report": {"accuracy": 0.0, "note": "n"}}],
    "langfuse": {"trace": {"id": "t", "name": "n", "timestamp": "2026-01-01T00:00:00Z", "userId": "u", "tags": ["tag"],
                           "input": {"q": "asked"}, "output": "said", "metadata": META, "scores": [
                               {"name": "good", "value": 1, "dataType": "BOOLEAN", "comment": "c", "authorUserId": "au"},
                               {"name": "cat", "value": "sv", "dataType": "CATEGORICAL"}]},
                 "observations": [
        {"id": "a", "type": "AGENT", "name": "ag", "startTime": "2026-01-01T00:00:00Z", "input": "ai", "output": "ao"},
        {"id": "g", "type": "GENERATION", "name": "gen", "parentObservationId": "a", "model": "m", "promptName": "pn",
         "startTime": "2026-01-01T00:00:01Z", "input": [{"role": "user", "content": "q"}], "output": {
             "role": "assistant", "content": "look", "tool_calls": [CALL]}, "statusMessage": "sm", "metadata": META},
        {"id": "t", "type": "TOOL", "name": "f", "parentObservationId": "a", "startTime": "2026-01-01T00:00:02Z",
         "input": {"x": 1}, "output": "r", "metadata": {"attributes": {"other": "oa"}}}]},
    "openai-agents-traces": {"data": [
        {"object": "trace", "id": "t", "workflow_name": "w", "group_id": "gr", "metadata": META},
        {"object": "trace.span", "id": "a", "trace_id": "t", "span_data": {"type": "agent", "name": "n", "handoffs": ["h"]}},
        {"object": "trace.span", "id": "g", "trace_id": "t", "parent_id": "a", "span_data": {
            "type": "generation", "model": "m", "input": [{"role": "user", "content": "q"}], "output": [
                {"role": "assistant", "content": "look", "tool_calls": [CALL]}], "model_config": {"base_url": "b"}}},
        {"object": "trace.span", "id": "f", "trace_id": "t", "parent_id": "a", "error": {"message": "em", "data": {"d": "e"}},
         "span_data": {"type": "function", "name": "f", "input": "{}", "output": "r", "mcp_data": {"server": "s"}}}]},
    "mlflow": {"info": {"trace_id": "t", "request_preview": "q", "response_preview": "a", "tags": {"k": "v"}, "assessments": [
        {"assessment_name": "good", "rationale": "why", "source": {"source_id": "me"}, "feedback": {"value": False}},
        {"assessment_name": "exp", "expectation": {"value": "wanted"}}]}, "data": {"spans": [
            {"span_id": "s", "name": "n", "events": [{"name": "ev"}], "attributes": {
                "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": '{"messages": [{"role": "user", "content": "q"}]}',
                "mlflow.spanOutputs": '"hello"', "custom": '"cu"'}}]}},
    "braintrust": [
        {"id": "1", "span_id": "1", "root_span_id": "1", "input": {"question": "q"}, "output": "a", "expected": "x",
         "scores": {"Good": 1}, "metadata": META, "tags": ["t"], "span_attributes": {"name": "eval", "type": "eval"}},
        {"id": "2", "span_id": "2", "root_span_id": "1", "span_parents": ["1"], "input": [{"role": "user", "content": "qq"}],
         "output": [{"role": "assistant", "content": "aa"}], "metadata": {"model": "m", "extra": "e"}, "context": {"file": "c"},
         "span_attributes": {"name": "chat", "type": "llm"}, "metrics": {"start": 1, "end": 2}}],
    "bfcl": [{"id": "1", "result": [{"f": {"x": "y"}}], "input_token_count": 1, "output_token_count": 2, "latency": 0.5,
              "model_name": "m", "inference_log": ["log"]}, {"id": "2", "result": "text", "input_token_count": 1}],
}  # fmt: skip


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts that a mark may be put into."""
    if isinstance(value, str):
        key = next((one for one in reversed(path) if isinstance(one, str)), "")
        if key not in STRUCTURE and not value.startswith("client.beta."):
            yield path
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from leaves(one, (*path, index))


def marked(value: Any, paths: list[tuple[Any, ...]]) -> Any:
    made = copy.deepcopy(value)
    for number, path in enumerate(paths):
        inner = made
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = f"{inner[path[-1]]} MARK{number:04}"
    return made


def found_in(name: str, path: Path) -> tuple[str, str]:
    """All that an import keeps of a file, and what it says of it."""
    tally = _Tally()
    kept: list[str] = []
    with Source(path) as source:
        read = formats()[name].recordings
        assert read is not None
        for one in tally.over(read(source)):
            about = [one.test_id, one.test_name, one.prompt, one.agent, one.variation, dict(one.variables)]
            results = [result_to_json(result) for result in one.results]
            kept.append(json.dumps([about, results, to_json(one.transcript)], ensure_ascii=False, default=str))
    assert kept, tally.skipped
    return "\n".join(kept), "\n".join(tally.lines())


def lost(name: str, value: Any, folder: Path) -> list[tuple[Any, ...]]:
    """The places whose mark is neither kept nor their field, or an object that it stands in, named."""
    paths = [path for path in leaves(value) if not (path[-1] == "stringValue" and _structural(value, path))]
    file = folder / "marked.json"
    file.write_text(json.dumps(marked(value, paths)), "utf-8")
    found, notes = found_in(name, file)
    return [
        path
        for number, path in enumerate(paths)
        if f"MARK{number:04}" not in found + notes and not _named(value, path, notes)
    ]


def _structural(value: Any, path: tuple[Any, ...]) -> bool:
    """An attribute whose name says that its value is structure."""
    inner = value
    for step in path[:-2]:
        inner = inner[step]
    return inner.get("key") in STRUCTURE or str(inner.get("key")).endswith(".role")


def _named(value: Any, path: tuple[Any, ...], notes: str) -> bool:
    names = [one for one in path if isinstance(one, str)]
    if path[-1] == "stringValue":  # an attribute is called by its key
        inner = value
        for step in path[:-2]:
            inner = inner[step]
        return f"{inner['key']}" in notes or ("`resourceSpans[].resource`" in notes and "resource" in names)
    named = {part.strip("`").removesuffix(".*") for part in notes.replace(",", " ").split() if part.startswith("`")}
    dotted = ""
    for step in path:
        dotted += "[]" if isinstance(step, int) else f".{step}" if dotted else step
        if any(one == dotted or one.endswith(f".{dotted}") or dotted.endswith(f".{one}") for one in named):
            return True
    if dotted.startswith("[]"):  # of values one after another: an event's field is called by its event
        return any(one.rpartition(".")[2].removesuffix("[]") == names[-1] for one in named)
    tail = dotted.lstrip("[].")
    return any(tail.endswith(one.lstrip("[].")) and one.lstrip("[].") for one in named)


@pytest.mark.parametrize("name", list(FILES))
def test_every_mark_is_kept_or_its_field_is_said(tmp_path: Path, name: str) -> None:
    assert lost(name, FILES[name], tmp_path) == []


def test_the_test_finds_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.formats.omitted_texts.UnreadTexts.look", lambda *_: None)
    assert ("metadata", "who") in lost("openai", FILES["openai"], tmp_path)


REAL = {
    "generated/promptfoo_results.json": "promptfoo",
    "generated/langchain_dumpd.json": "openai",
    "generated/pydantic_ai_messages.json": "openai",
    "generated/openai_agents_input_list.json": "openai",
    "inspect/2025-05-12T20-28-13-04-00_popularity.json": "inspect",
    "langsmith/langsmith_py_wrap_openai_.json": "langsmith",
    "shapes/pydantic_evals_report_real.json": "pydantic-evals",
    "deepeval/deepeval_test_run.json": "deepeval",
    "shapes/vercel_ui_messages.json": "openai",
}


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
@pytest.mark.parametrize("file", list(REAL))
def test_marks_in_real_files(tmp_path: Path, file: str) -> None:
    value = json.loads((SHARED / file).read_text("utf-8"))
    assert lost(REAL[file], value, tmp_path) == []
