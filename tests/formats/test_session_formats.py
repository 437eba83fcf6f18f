"""Sessions of coding agents, trajectories and logs of benchmarks: what was said, called, used and judged."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.transcripts.model import Transcript

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
_SPEC = importlib.util.spec_from_file_location("marks", Path(__file__).with_name("test_marks.py"))
assert _SPEC is not None
marks = importlib.util.module_from_spec(_SPEC)
assert _SPEC.loader is not None
_SPEC.loader.exec_module(marks)

Import = Callable[..., Any]

SAID: dict[str, tuple[list[tuple[str, str]], list[tuple[str, Any, str]]]] = {
    # roles and texts; calls: name, arguments, result
    "atif": (
        [("user", "q"), ("assistant", "look"), ("tool", "r"), ("user", "loose")],
        [("f", {"x": "y"}, "r")],
    ),
    "claude-code": (
        [("user", "q"), ("assistant", ""), ("tool", "r"), ("assistant", "done")],
        [("f", {"x": "y"}, "r")],
    ),
    "codex": (
        [("system", "do"), ("user", "q"), ("assistant", ""), ("tool", "r"), ("assistant", ""), ("assistant", "done")],
        [("f", {}, "r"), ("web_search", {"query": "w"}, "")],
    ),
    "gemini-cli": (
        [("user", "q"), ("assistant", "look"), ("tool", "r"), ("assistant", "done")],
        [("f", {"x": "y"}, "r")],
    ),
    "swe-agent": (
        [("system", "sys"), ("user", "demo"), ("user", "q"), ("assistant", "do"), ("tool", "o2"), ("assistant", "call"),
         ("tool", "r")],
        [("bash", {"command": "ls"}, "o2"), ("f", {"x": 1}, "r")],
    ),
    "openhands": (
        [("user", "i"), ("user", "q"), ("assistant", "hm"), ("tool", "out"), ("assistant", "done")],
        [("run", {"command": "ls"}, "out")],
    ),
    "multi-agent": ([("user", "q2"), ("assistant", "hm"), ("assistant", "b"), ("user", "out")], []),
    "autogen": (
        [("user", "q"), ("assistant", ""), ("tool", "r"), ("assistant", "done")],
        [("f", {}, "r")],
    ),
    "sharegpt": (
        [("system", "s"), ("user", "q"), ("assistant", ""), ("tool", "r"), ("user", "hey"), ("assistant", "a")],
        [("f", {"x": "y"}, "r")],
    ),
    "openai-evals": ([("user", "q"), ("assistant", "a")], []),
    "bfcl": ([("assistant", "")], [("f", {"x": "y"}, "")]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(SAID))
def test_what_was_said_and_called_is_kept_in_order(imported: Import, name: str) -> None:
    given = marks.FILES[name]
    lines = isinstance(given, list) and name in ("claude-code", "codex", "openai-evals")
    text = "\n".join(map(json.dumps, given)) if lines else json.dumps(given)
    report, runs = imported(text)
    assert report.format == name
    transcript: Transcript = runs[0][1]
    said, called = SAID[name]
    assert [(one.role, one.content) for one in transcript.messages] == said
    assert [(one.name, one.arguments, one.result or "") for one in transcript.tool_calls] == called


def test_a_streamed_answer_of_claude_code_counts_once(imported: Import) -> None:
    def piece(block: dict[str, Any], tokens: int, stop: str | None = None) -> str:
        message = {"id": "m", "role": "assistant", "model": "c", "content": [block], "stop_reason": stop}
        usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": tokens}
        return json.dumps({"type": "assistant", "sessionId": "s", "message": {**message, "usage": usage}})

    asked = json.dumps({"type": "user", "sessionId": "s", "message": {"role": "user", "content": "q"}})
    lines = [
        asked,
        piece({"type": "thinking", "thinking": "hm"}, 1),
        piece({"type": "text", "text": "a"}, 9, "end_turn"),
    ]
    _, ((_, transcript),) = imported("\n".join(lines))
    assert (transcript.messages[1].reasoning, transcript.messages[1].content) == ("hm", "a")
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens, transcript.model) == (7, 9, "c")


def test_sidechains_are_runs_of_their_own(imported: Import) -> None:
    def line(kind: str, text: str, **more: Any) -> str:
        message = {"role": kind, "content": [{"type": "text", "text": text}]}
        return json.dumps({"type": kind, "sessionId": "s", "message": message, **more})

    lines = [line("user", "q"), line("user", "sub", isSidechain=True), line("assistant", "below", isSidechain=True)]
    _, runs = imported("\n".join([*lines, line("assistant", "a")]))
    assert [transcript.final_output for _, transcript in runs] == ["a", "below"]


def test_verdicts_come_with_their_reasons(imported: Import) -> None:
    for name, outcome, said in [
        ("openhands", "failed", "why"),
        ("multi-agent", "failed", 'Expected answer: "g" is not in the text'),
        ("openai-evals", "failed", 'Expected answer: "x" is not in the text'),
        ("swe-agent", "passed", ""),
    ]:
        given = marks.FILES[name]
        text = "\n".join(map(json.dumps, given)) if name == "openai-evals" else json.dumps(given)
        _, runs = imported(text, f"{name}.json")
        assert runs[0][0].status == outcome, name
        assert said in runs[0][0].why, name


@pytest.mark.sweep
@pytest.mark.parametrize("name", [*SAID, "langfuse", "openai-agents-traces", "mlflow", "braintrust"])
def test_a_hostile_file_is_refused_or_read_and_never_breaks(imported: Import, tmp_path: Path, name: str) -> None:
    """Each value of the file is replaced, in turn, by one of another type."""
    from agenteval_tui.formats.detect import formats
    from agenteval_tui.formats.stream.source import Source

    given = marks.FILES[name]
    read = formats()[name].recordings
    assert read is not None
    path = tmp_path / "hostile.json"
    for place in _places(given):
        for other in (None, 3, [], {}, [[]], "\ud83d", {"type": 1, "role": [], "content": {}}):
            path.write_text(json.dumps(_with(given, place, other)))
            with Source(path) as source:
                list(read(source))
    text = "\n".join(map(json.dumps, given)) if isinstance(given, list) else json.dumps(given)
    for end in range(1, len(text), max(1, len(text) // 23)):
        path.write_text(text[:end])
        with Source(path) as source:
            list(read(source))


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [one for key, inner in items for one in _places(inner, (*path, key))]


def _with(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(copy[path[0]], path[1:], other)
    return copy


REAL = {
    "shapes/claude_code_session.jsonl": ("claude-code", 1, 1),
    "shapes/codex_rollout.jsonl": ("codex", 1, 1),
    "shapes/autogen_agentchat.jsonl": ("autogen", 1, 1),
    "shapes/autogen_history.json": ("autogen", 1, 1),
    "shapes/bfcl_result.jsonl": ("bfcl", 2, 1),
    "shapes/openai_evals_log.jsonl": ("openai-evals", 1, 0),
    "shapes/sharegpt.json": ("sharegpt", 1, 0),
    "shapes/trl_completion.jsonl": ("sharegpt", 1, 0),
    "openhands/openhands_traj.json": ("openhands", 1, 1),
    "openhands/openhands_resolver_output.jsonl": ("openhands", 2, 3),
    "who_and_when/algorithm_generated.jsonl": ("multi-agent", 63, 0),
    "who_and_when/hand_crafted.jsonl": ("multi-agent", 29, 0),
}


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
@pytest.mark.parametrize("file", list(REAL))
def test_real_files_are_read_with_their_calls(imported: Import, file: str) -> None:
    name, number, calls = REAL[file]
    report, runs = imported(SHARED / file)
    assert (report.format, len(runs), len(runs[0][1].tool_calls)) == (name, number, calls)
    assert not report.skipped


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_every_action_of_swe_agent_is_a_call_with_its_observation(imported: Import) -> None:
    """Against the `trajectory` of the file, which the importer reads only to say what it leaves out."""
    for number in range(1, 11):
        path = SHARED / f"swe_agent/trajectory_{number}.traj"
        value = json.loads(path.read_text("utf-8"))
        report, ((_, transcript),) = imported(path)
        steps = value.get("trajectory") or []
        wanted = [step["action"].strip() for step in steps if step["action"].strip()]
        if any("tool_calls" in message for message in value["history"]):
            assert len(transcript.tool_calls) >= len(wanted), number
            continue
        made = [call.arguments["command"].strip() for call in transcript.tool_calls]
        lost = [action for action in wanted if action not in made]
        # A step that SWE-agent took out of its history again is said.
        assert not lost or any("`trajectory[].action`" in note for note in report.notes), number
        assert len(lost) <= 1, number


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_who_spoke_is_kept(imported: Import) -> None:
    path = SHARED / "who_and_when/hand_crafted.jsonl"
    values = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    _, runs = imported(path)
    for value, (row, transcript) in zip(values, runs, strict=True):
        theirs = [one["role"] for one in value["history"]]
        assert [one.name or "human" for one in transcript.messages] == theirs
        assert row.variables["mistake_agent"] == value["mistake_agent"]


ATIF = {
    "": {"schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics", "extra"},
    "agent": {"name", "version", "model_name", "extra"},
    "step": {"step_id", "timestamp", "source", "model_name", "message", "reasoning_content", "tool_calls",
             "observation", "metrics", "extra"},
    "call": {"tool_call_id", "function_name", "arguments"},
    "result": {"source_call_id", "content"},
    "final": {"total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd", "total_steps",
              "extra"},
}  # fmt: skip
"""The keys of ATIF, whose models forbid all others."""


def test_an_exported_trajectory_has_the_keys_of_atif_and_no_others(imported: Import, store: Any) -> None:
    from agenteval_tui.formats.exporters.export import exporters, stored_runs

    _, runs = imported({"messages": marks.SAID, "id": "t", "model": "m"})
    (line,) = exporters()["atif"].pieces(stored_runs(store, [row for row, _ in runs]))
    value = json.loads(line)
    assert value.keys() <= ATIF[""]
    assert value["agent"].keys() <= ATIF["agent"]
    assert value["final_metrics"].keys() <= ATIF["final"]
    assert [step["step_id"] for step in value["steps"]] == list(range(1, len(value["steps"]) + 1))
    for step in value["steps"]:
        assert step.keys() <= ATIF["step"]
        assert step["source"] in ("system", "user", "agent")
        assert isinstance(step["message"], str)
        for call in step.get("tool_calls", ()):
            assert call.keys() == ATIF["call"]
            assert isinstance(call["arguments"], dict)
        for result in step.get("observation", {}).get("results", ()):
            assert result.keys() <= ATIF["result"]
            assert result["source_call_id"] in {call["tool_call_id"] for call in step["tool_calls"]}
    assert sum(len(step.get("tool_calls", ())) for step in value["steps"]) == 1
