"""`grade --transcript(s)`: known shapes are read, everything else is refused with what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

# It holds of every empty transcript.
ABSENT = """\
- name: Does not say never
  prototype_class: TextResponse
  config_uxon: {metrics: [{type: TextMatch, not_contains_any: [never]}]}
- name: Calls nothing
  prototype_class: ToolResponse
  config_uxon: {metrics: [{type: ToolCheck, tool_call_forbidden: true}]}
"""

USER = {"role": "user", "content": "Ever?"}
SAYS = {"role": "assistant", "content": "never"}
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OURS = {"version": 1, "messages": [USER, SAYS], "tool_calls": [], "final_output": "never"}

READ: dict[str, Any] = {
    "chat messages": [USER, SAYS],
    "a list of conversations": [[USER, SAYS]],
    "an object with messages": {"messages": [USER, SAYS], "anything": 1},
    "a call": [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}],
    "a call without content": [USER, {"role": "assistant", "tool_calls": [CALL]}],
    "a legacy call": [USER, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}],
    "a refusal": [USER, {"role": "assistant", "content": None, "refusal": "never"}],
    "parts": [USER, {"role": "assistant", "content": [{"type": "text", "text": "never"}]}],
    "Anthropic messages": [USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look"}]}],
    "LangChain messages": [{"type": "human", "content": "Ever?"}, {"type": "ai", "content": "never"}],
    "ours": OURS,
    "ours, of a run": {"version": 1, "run": "01M", "transcript": OURS},
    "a chat completion": {
        "id": "c", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": SAYS, "finish_reason": "stop"}],
    },
    "a chat completion with a call": {
        "object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}}],
    },
    "a chat completion that refuses": {
        "choices": [{"message": {"role": "assistant", "content": None, "refusal": "I never do that"}}],
    },
    "a request with its answer": {
        "request": {"messages": [USER]}, "response": {"choices": [{"message": SAYS}]},
    },
    "a response": {
        "object": "response", "status": "completed", "error": None,
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "never"}]},
        ],
    },
    "a response with a call": {
        "object": "response", "output": [{"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}],
    },
    "Anthropic's reply": {
        "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "never"}],
    },
    "Anthropic's reply with a call": {
        "type": "message", "role": "assistant",
        "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}],
    },
}  # fmt: skip

REFUSED: dict[str, tuple[Any, str]] = {
    "an object": ({"foo": 1}, "an object with the keys foo"),
    "an empty object": ({}, "an empty object"),
    "an empty list": ([], "no messages"),
    "a text": ("never", "a text"),
    "a number": (7, "the number 7"),
    "null": (None, "null"),
    "a list of numbers": ([1, 2], "item 1 is not a message: the number 1"),
    "a list of texts": (["never"], "item 1 is not a message: a text"),
    "a message without a role": ([USER, {"content": "x"}], "item 2 is not a message: an object with the keys content"),
    "a role that is no text": ([{"role": 1, "content": "x"}], "item 1"),
    "a message without content": ([USER, {"role": "assistant"}], "message 2 has nothing that can be read"),
    "a message with other keys": ([{"role": "assistant", "body": "never"}], "role, body"),
    "content that is a number": ([USER, {"role": "assistant", "content": 42}], "message 2"),
    "content of numbers": ([USER, {"role": "assistant", "content": [1]}], "message 2"),
    "calls without a name": ([{"role": "assistant", "content": "", "tool_calls": [{"id": "x"}]}], "message 1"),
    "no answer": ([USER], "the agent says nothing"),
    "roles without an answer": ([{"role": "tool", "content": "never"}], "roles: tool"),
    "no messages": ({"messages": []}, "no messages"),
    "messages that are an object": ({"messages": {"0": SAYS}}, "`messages` is an object with the keys 0, not a list"),
    "messages that are a text": ({"messages": "never"}, "not a list"),
    "messages of something else": ({"messages": [{"text": "never"}]}, "item 1"),
    "a request": ({"model": "m", "messages": [USER]}, "the agent says nothing"),
    "a chat completion without choices": ({"object": "chat.completion", "choices": []}, "object, choices"),
    "a piece of a stream": ({"choices": [{"delta": {"content": "never"}}]}, "keys choices"),
    "a choice without a message": ({"choices": [{"text": "never"}]}, "keys choices"),
    "a message of a completion without a role": ({"choices": [{"message": {"content": "never"}}]}, "keys choices"),
    "a response without output": ({"object": "response", "output": []}, "object, output"),
    "an error": ({"error": {"message": "no such model"}}, "keys error"),
    "Anthropic's reply without content": ({"type": "message", "role": "assistant"}, "type, role"),
    "ours without messages": ({"version": 1}, "version"),
    "ours with nothing in it": ({"version": 1, "messages": []}, "empty"),
    "ours of tomorrow": ({**OURS, "version": 2}, "version the number 2"),
    "ours with messages that are none": ({"version": 1, "messages": [{"text": "never"}]}, "can't be read"),
    "a document of an execution": ({"version": 1, "execution": {}, "runs": []}, "version, execution, runs"),
    "many keys": ({f"k{n}": n for n in range(12)}, "and 4 more"),
}


@pytest.fixture
def criteria(tmp_path: Path) -> Path:
    path = tmp_path / "criteria.yaml"
    path.write_text(ABSENT, "utf-8")
    return path


@pytest.mark.parametrize("option", ["--transcript", "--transcripts"])
@pytest.mark.parametrize("shape", READ)
def test_a_known_shape_is_read(cli, criteria: Path, tmp_path: Path, shape: str, option: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(READ[shape]), "utf-8")
    result = cli("grade", "--criteria", criteria, option, path)
    assert result.code == 1, result.err  # what it says or calls was seen
    assert result.err == ""


@pytest.mark.parametrize("option", ["--transcript", "--transcripts"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_what_some_shells_write_is_read(cli, criteria: Path, tmp_path: Path, encoding: str, option: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([USER, SAYS]) + "\r\n", encoding)
    result = cli("grade", "--criteria", criteria, option, path)
    assert (result.code, result.err) == (1, "")


@pytest.mark.parametrize("option", ["--transcript", "--transcripts"])
@pytest.mark.parametrize("shape", REFUSED)
def test_everything_else_is_refused_with_what_was_found(
    cli, criteria: Path, tmp_path: Path, shape: str, option: str
) -> None:
    value, said = REFUSED[shape]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(value), "utf-8")
    result = cli("grade", "--criteria", criteria, option, path, "--json")
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert "t.json" in result.err


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<!doctype html><p>never</p>",
        b'{"messages": [',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"1" * 10_000,
    ],
    ids=["empty", "a page", "cut off", "no text", "deep", "a long number"],
)
def test_what_is_no_json_is_refused(cli, criteria: Path, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(data)
    for option in ("--transcript", "--transcripts"):
        result = cli("grade", "--criteria", criteria, option, path)
        assert (result.code, result.out) == (2, "")
        assert "Traceback" not in result.err


def test_messages_a_line_are_one_conversation(cli, criteria: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(f"{json.dumps(USER)}\n{json.dumps(SAYS)}\n", "utf-8")
    result = cli("grade", "--criteria", criteria, "--transcript", path)
    assert (result.code, result.out.splitlines()[-1][:6]) == (1, "failed")
    refused = cli("grade", "--criteria", criteria, "--transcripts", path)  # a transcript a line
    assert refused.code == 2
    assert "t.jsonl:1" in refused.err


def _span(kind: str, **attributes: Any) -> dict[str, Any]:
    about = {f"gen_ai.{key}": value for key, value in attributes.items()}
    context = {"trace_id": "t", "span_id": kind}
    return {"name": kind, "context": context, "attributes": {"gen_ai.operation.name": kind, **about}}


CALLED = {"role": "assistant", "content": "never", "tool_calls": [CALL]}
FOREIGN: dict[str, Any] = {
    "a trace of OpenTelemetry": [
        _span("chat", **{"input.messages": [USER], "output.messages": [CALLED]}),
    ],
    "a trace of Langfuse": {
        "trace": {"id": "t", "input": "Ever?", "output": "never"},
        "observations": [{"id": "g", "type": "GENERATION", "input": [USER], "output": CALLED}],
    },
    "a session of Claude Code": [
        {"type": "user", "sessionId": "s", "message": USER},
        {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "content": [
            {"type": "text", "text": "never"}, {"type": "tool_use", "id": "a", "name": "look", "input": {}}]}},
    ],
    "a trajectory": {
        "schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": [
            {"step_id": 1, "source": "user", "message": "Ever?"},
            {"step_id": 2, "source": "agent", "message": "never", "tool_calls": [
                {"tool_call_id": "c", "function_name": "look", "arguments": {}}]}],
    },
    "a reply of Gemini": {
        "candidates": [{"content": {"role": "model", "parts": [
            {"text": "never"}, {"functionCall": {"name": "look", "args": {}}}]}, "finishReason": "STOP"}],
    },
    "a reply of Bedrock": {
        "output": {"message": {"role": "assistant", "content": [
            {"text": "never"}, {"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}]}},
        "stopReason": "tool_use",
    },
    "a result of a batch": {"custom_id": "r", "result": {"type": "succeeded", "message": {
        "role": "assistant", "content": [{"type": "text", "text": "never"},
                                         {"type": "tool_use", "id": "a", "name": "look", "input": {}}]}}},
    "what Gemini is asked": {"contents": [
        {"role": "user", "parts": [{"text": "Ever?"}]},
        {"role": "model", "parts": [{"text": "never"}, {"functionCall": {"name": "look", "args": {}}}]}]},
    "a conversation of ShareGPT": {"conversations": [
        {"from": "human", "value": "Ever?"},
        {"from": "function_call", "value": '{"name": "look", "arguments": {}}'},
        {"from": "gpt", "value": "never"}], "tools": "[]"},
}  # fmt: skip


@pytest.mark.parametrize("form", ["whole", "lines"])
@pytest.mark.parametrize("option", ["--transcript", "--transcripts"])
@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_imported_is_graded(cli, criteria: Path, tmp_path: Path, what: str, option: str, form: str) -> None:
    """By the same reader: what one takes the other takes, with the same calls."""
    path, given = tmp_path / "t.json", FOREIGN[what]
    values = given if isinstance(given, list) and form == "lines" else [given]
    path.write_text("\n".join(map(json.dumps, values)), "utf-8")
    assert cli("import", path).code == 0
    result = cli("grade", "--criteria", criteria, option, path, "--json")
    assert (result.code, result.err) == (1, "")
    assert [one["outcome"] for one in json.loads(result.out)] == ["failed", "failed"]


def test_each_run_of_a_file_is_graded(cli, criteria: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    runs = [{"task_id": n, "trial": 0, "reward": 1.0, "info": {}, "traj": [USER, said]}
            for n, said in enumerate([SAYS, {"role": "assistant", "content": "always"}])]  # fmt: skip
    path.write_text(json.dumps(runs), "utf-8")
    result = cli("grade", "--criteria", criteria, "--transcript", path)
    assert result.code == 1
    assert "✗ run 1 (0): failed" in result.out
    assert "✓ run 2 (1): passed" in result.out
    assert "1 passed, 1 failed of 2 transcripts" in result.out
    lines = cli("grade", "--criteria", criteria, "--transcript", path, "--json").out.splitlines()
    assert [json.loads(line)[0]["outcome"] for line in lines] == ["failed", "passed"]


@pytest.mark.parametrize("option", ["--transcript", "--transcripts"])
def test_what_could_not_be_read_is_said_once(cli, criteria: Path, tmp_path: Path, option: str) -> None:
    path = tmp_path / "t.jsonl"
    events = FOREIGN["a session of Claude Code"]
    odd = {"type": "assistant", "sessionId": "s", "message": {"role": "assistant", "deed": "never"}}
    path.write_text("\n".join(map(json.dumps, [*events, odd])), "utf-8")
    result = cli("grade", "--criteria", criteria, option, path)
    assert result.code in (1, 3)
    assert result.err.count("has nothing that can be read") == 1


def test_a_file_of_tests_has_no_transcripts(cli, criteria: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"inputs": {"question": "q"}, "outputs": {"answer": "a"}}), "utf-8")
    for option in ("--transcript", "--transcripts"):
        result = cli("grade", "--criteria", criteria, option, path)
        assert result.code == 2
        assert "tests" in result.err


@pytest.mark.shared
def test_the_same_files_are_read_by_both(cli, criteria: Path, shared: Path) -> None:
    files = [*(shared / "data" / "shapes").glob("*.json*"), *(shared / "data" / "reports").glob("*/*.json*")]
    assert len(files) > 30
    for file in files:
        imported = cli("import", file, "--dry-run").code
        for option in ("--transcript", "--transcripts"):
            graded = cli("grade", "--criteria", criteria, option, file)
            assert (graded.code == 2) == (imported == 2), (file.name, option, graded.err)


def test_a_folder_and_a_file_that_is_not_there_are_refused(cli, criteria: Path, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json"):
        for option in ("--transcript", "--transcripts"):
            assert cli("grade", "--criteria", criteria, option, path).code == 2


def test_an_error_beside_the_messages_is_the_agents_error(cli, criteria: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    for error in ({"kind": "timeout", "message": "took too long"}, "took too long"):
        path.write_text(json.dumps({"messages": [USER], "error": error}), "utf-8")
        assert cli("grade", "--criteria", criteria, "--transcript", path).code == 3


def test_a_recording_of_another_shape_is_refused(cli, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('[{"test": "a", "foo": 1}]', "utf-8")
    suite = tmp_path / "a.suite.yaml"
    suite.write_text(
        "agent: r\nagents: {r: {kind: replay, file: r.json, pace: 0}}\n"
        "tests:\n  - id: a\n    prompt: Ever?\n    criteria:\n"
        "      - {name: n, prototype_class: TextResponse,"
        " config_uxon: {metrics: [{type: TextMatch, not_contains_any: [never]}]}}\n",
        "utf-8",
    )
    result = cli("run", suite)
    assert result.code in (2, 3)
    assert "keys test, foo" in result.out + result.err
