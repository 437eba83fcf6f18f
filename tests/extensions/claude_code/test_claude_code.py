"""Claude Code's sessions are trees; and what `claude -p` prints is such a session, too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import observes

Import = Callable[..., Any]
USAGE = {"input_tokens": 10, "output_tokens": 5}


class Session:
    """Writes events, each below the one before it unless it is said otherwise."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, kind: str, *, below: int | str | None = "last", **event: Any) -> int:
        number = len(self.events) + 1
        parent = (number - 1 or None) if below == "last" else below
        self.events.append({
            "type": kind, "uuid": f"u{number}", "parentUuid": f"u{parent}" if parent else None, "sessionId": "s",
            "isSidechain": False, "timestamp": f"2026-01-01T00:00:{number:02}Z", **event,
        })  # fmt: skip
        return number

    def user(self, content: Any, **more: Any) -> int:
        return self.add("user", message={"role": "user", "content": content}, **more)

    def answer(self, *blocks: Any, id: str = "", **more: Any) -> int:
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        name = id or f"msg_{len(self.events)}"
        message = {"id": name, "role": "assistant", "model": "m", "content": content, "usage": USAGE}
        return self.add("assistant", message=message, **more)

    def failed(self, **more: Any) -> int:
        message = {"id": "x", "role": "assistant", "model": "<synthetic>",
                   "content": [{"type": "text", "text": "API Error: 529 Overloaded"}]}  # fmt: skip
        return self.add("assistant", message=message, isApiErrorMessage=True, **more)

    def text(self) -> str:
        return "\n".join(map(json.dumps, self.events))


def call(call_id: str, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def result(call_id: str, content: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": content}]


def read(imported: Import, session: Session) -> dict[str, Transcript]:
    _, runs = imported(session.text(), "s.jsonl")
    return {row.test_id: transcript for row, transcript in runs}


def said(transcript: Transcript) -> list[str]:
    return [one.content or "calls" for one in transcript.messages]


def commands(transcript: Transcript) -> list[str]:
    return [one.arguments.get("command", one.name) for one in transcript.tool_calls]


def test_a_branch_that_the_user_left_is_a_run_of_its_own(imported: Import) -> None:
    session = Session()
    session.user("Fix it")
    session.answer("Deleted the test.")
    session.user("no!")
    session.answer(call("t", "rm -rf tests"))
    session.user(result("t", "gone"))
    session.user("Restore it", below=2)
    session.answer("Restored.")
    runs = read(imported, session)
    assert said(runs["s"]) == ["Fix it", "Deleted the test.", "Restore it", "Restored."]
    assert commands(runs["s"]) == []
    left = runs["s-rewound-1"]
    assert said(left) == ["Fix it", "Deleted the test.", "no!", "calls", "gone"]
    assert commands(left) == ["rm -rf tests"]
    # What both runs share is counted once.
    assert [one.usage.output_tokens for one in runs.values()] == [10, 5]


def test_a_first_prompt_that_was_edited(imported: Import) -> None:
    session = Session()
    session.user("Fxi it")
    session.answer("What?")
    session.user("Fix it", below=None)
    session.answer("Fixed.")
    runs = read(imported, session)
    assert [said(one) for one in runs.values()] == [["Fix it", "Fixed."], ["Fxi it", "What?"]]


def test_a_branch_in_a_branch_and_messages_that_nobody_answered(imported: Import) -> None:
    session = Session()
    session.user("a")
    session.answer("b")
    session.user("c1")
    session.answer("d1")
    session.user("c2", below=2)
    session.answer("d2")
    session.user("e1")
    session.answer("f1")
    session.user("e2", below=6)
    session.user("c3", below=2)
    session.answer("d3")
    report, runs = imported(session.text(), "s.jsonl")
    assert ["".join(said(transcript)) for _, transcript in runs] == ["abc3d3", "abc1d1", "abc2d2e1f1"]
    assert any("1 message" in note for note in report.notes)


def test_calls_at_once_and_their_results_are_no_branches(imported: Import) -> None:
    """Each piece of an answer and each result is below another event."""
    session = Session()
    session.user("a")
    session.answer(call("t1", "ls"), id="m")
    session.answer(call("t2", "pwd"), id="m")
    session.user(result("t1", "r1"), below=2)
    session.user(result("t2", "r2"), below=3)
    session.answer("done", below=5)
    ((name, transcript),) = read(imported, session).items()
    assert (name, commands(transcript), transcript.final_output) == ("s", ["ls", "pwd"], "done")
    assert [one.result for one in transcript.tool_calls] == ["r1", "r2"]
    assert transcript.usage.output_tokens == 10


def test_pieces_of_an_answer_with_a_result_between_them_count_once(imported: Import) -> None:
    session = Session()
    session.user("a")
    session.answer(call("t1", "ls"), id="m")
    session.user(result("t1", "r1"))
    session.answer(call("t2", "pwd"), id="m")
    session.user(result("t2", "r2"))
    session.answer("done")
    (transcript,) = read(imported, session).values()
    assert commands(transcript) == ["ls", "pwd"]
    assert transcript.usage.output_tokens == 10


@pytest.mark.parametrize("way", [{}, {"logicalParentUuid": "u2"}])
def test_a_compaction_is_marked_and_goes_on(imported: Import, way: dict[str, Any]) -> None:
    session = Session()
    session.user("a")
    session.answer("b")
    about = {"trigger": "auto", "preTokens": 150_000}
    session.add("system", subtype="compact_boundary", below=None, compactMetadata=about, **way)
    session.user("Summary: ...", below=None, isCompactSummary=True)
    session.answer("c")
    (transcript,) = read(imported, session).values()
    assert [one.content for one in transcript.messages[:2]] == ["a", "b"]
    assert "compacted (auto, 150,000 tokens before)" in transcript.messages[2].content
    assert [(one.content, one.name) for one in transcript.messages[3:]] == [
        ("Summary: ...", "claude-code"),
        ("c", None),
    ]


def test_a_request_that_failed_between_is_no_end(imported: Import) -> None:
    session = Session()
    session.user("a")
    session.failed()
    session.answer("b", below=1)
    report, ((_, transcript),) = imported(session.text(), "s.jsonl")
    assert (transcript.error, said(transcript)) == (None, ["a", "b"])
    assert any("1 request of it failed" in note for note in report.notes)


def test_a_request_that_failed_at_the_end_is_the_end(imported: Import) -> None:
    session = Session()
    session.user("a")
    session.answer("b")
    session.user("c")
    session.failed()
    (transcript,) = read(imported, session).values()
    assert transcript.error is not None
    assert transcript.error.message == "API Error: 529 Overloaded"
    assert said(transcript) == ["a", "b", "c"]


def test_what_a_command_of_the_user_printed_is_not_in_the_conversation(imported: Import) -> None:
    session = Session()
    session.user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    session.user("<local-command-stdout>hello</local-command-stdout>")
    session.user("a")
    session.answer("b")
    assert [said(one) for one in read(imported, session).values()] == [["a", "b"]]


def test_agents_below_without_a_name_are_runs_of_their_own(imported: Import) -> None:
    session = Session()
    session.user("a")
    session.answer(call("t", "ask"))
    for number in (1, 2):
        session.user(f"task {number}", below=None, isSidechain=True)
        session.answer(f"answer {number}", isSidechain=True)
    session.user(result("t", "r"), below=2)
    session.answer("done")
    runs = read(imported, session)
    assert [said(one) for one in runs.values()] == [
        ["a", "calls", "r", "done"], ["task 1", "answer 1"], ["task 2", "answer 2"],
    ]  # fmt: skip


def test_a_session_without_a_tree_is_read_in_its_order(imported: Import) -> None:
    session = Session()
    session.user("a")
    session.answer("b")
    for event in session.events:
        del event["parentUuid"]
    assert [said(one) for one in read(imported, session).values()] == [["a", "b"]]


# What `claude -p` prints

INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": ["Bash"], "uuid": "u0"}


def printed(kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "message": message, "parent_tool_use_id": None, "session_id": "s", **more}


CALLS = printed(
    "assistant", {"id": "m1", "role": "assistant", "model": "m", "content": [call("t", "ls")], "usage": USAGE}
)
GAVE = printed("user", {"role": "user", "content": result("t", "a.py")})
ANSWERS = printed(
    "assistant",
    {"id": "m2", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "a.py"}], "usage": USAGE},
)
RESULT = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1234, "num_turns": 2, "result": "a.py",
    "session_id": "s", "total_cost_usd": 0.0123,
    "usage": {
        "input_tokens": 22, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 200, "output_tokens": 12,
    },
}  # fmt: skip


@pytest.mark.parametrize("first", [[INIT], []])
@pytest.mark.parametrize("form", ["lines", "a list"])
def test_what_is_printed_is_a_session(imported: Import, first: list[Any], form: str) -> None:
    events = [*first, CALLS, GAVE, ANSWERS, RESULT]
    report, ((row, transcript),) = imported("\n".join(map(json.dumps, events)) if form == "lines" else events)
    assert (report.format, row.test_id, row.agent) == ("claude-code", "s", "claude-code")
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        ("Bash", {"command": "ls"}, "a.py")
    ]
    assert (transcript.final_output, transcript.model, transcript.timing.total_ms) == ("a.py", "m", 1234)
    usage = transcript.usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.cost) == (322, 200, 12, 0.0123)
    assert transcript.error is None


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ({"subtype": "error_max_turns", "result": None}, "error_max_turns"),
        ({"subtype": "error_during_execution", "result": None, "errors": ["it broke"]}, "it broke"),
        ({"is_error": True, "result": "API Error: 401"}, "API Error: 401"),
    ],
)
def test_a_session_that_failed_is_an_error(imported: Import, end: dict[str, Any], message: str) -> None:
    _, ((row, transcript),) = imported([INIT, CALLS, GAVE, {**RESULT, **end}])
    assert (row.status, transcript.error.message) == ("error", message)
    assert commands(transcript) == ["ls"]


def test_an_agent_below_that_is_printed_is_a_run_of_its_own(imported: Import) -> None:
    inner = printed("assistant", {"id": "m3", "role": "assistant", "content": [{"type": "text", "text": "inner"}]},
                    parent_tool_use_id="t")  # fmt: skip
    _, runs = imported([INIT, CALLS, inner, GAVE, ANSWERS, RESULT])
    assert [(row.test_id, said(transcript)) for row, transcript in runs] == [
        ("s", ["calls", "a.py", "a.py"]), ("s-t", ["inner"]),
    ]  # fmt: skip


def test_a_result_alone_does_not_say_what_was_called(imported: Import) -> None:
    _, ((_, transcript),) = imported(RESULT)
    assert (transcript.final_output, transcript.usage.cost) == ("a.py", 0.0123)
    assert "tool_calls" not in observes(transcript)


@pytest.mark.shared
def test_the_session_of_the_report(imported: Import, shared: Path) -> None:
    _, runs = imported(shared / "data" / "reports" / "08-claude-code-rewind-flattened" / "s1.jsonl")
    main, left, below = (transcript for _, transcript in runs)
    assert "rm -rf tests" not in commands(main)
    assert commands(left)[-1] == "rm -rf tests"
    assert (main.error, main.final_output) == (None, "Continuing after compaction. Done.")
    assert said(below) == ["sub task", "sub done"]
