"""Trajectories of mini-swe-agent: how it ended, what it cost, and the commands that it ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.history.store import Store

Import = Callable[..., Any]
ASKED = [{"role": "system", "content": "You are"}, {"role": "user", "content": "fix it"}]


def text(command: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"THOUGHT\n\n```bash\n{command}\n```"}


def output(said: str, code: int = 0, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{said}\n</output>", **more}


def called(command: str, call_id: str) -> dict[str, Any]:
    arguments = f'{{"command": "{command}"}}'
    call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": arguments}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    extra = {"actions": [{"command": command, "tool_call_id": call_id}], "response": {"usage": usage}, "cost": 0.05}
    return {"role": "assistant", "content": None, "tool_calls": [call], "extra": extra}


def trajectory(
    *messages: dict[str, Any], status: str = "Submitted", version: str = "1.1", **info: Any
) -> dict[str, Any]:
    about = {"model_stats": {"instance_cost": 0.12, "api_calls": 2}, "mini_version": "2.0", "exit_status": status,
             "submission": "diff --git", "config": {"model": {"model_name": "m"}}}  # fmt: skip
    return {"info": about, "messages": [*ASKED, *messages], "trajectory_format": f"mini-swe-agent-{version}",
            "instance_id": "django-1"}  # fmt: skip


OBSERVED = {"extra": {"returncode": 1, "raw_output": "no"}}
FORMS: dict[str, dict[str, Any]] = {
    "commands as text": trajectory(text("ls"), output("a.py"), text("cat x"), output("no", 1), version="1"),
    "commands that the program found": trajectory(
        {"role": "assistant", "content": "I run it.", "extra": {"actions": [{"command": "ls"}]}}, output("a.py"),
        {"role": "assistant", "content": "and", "extra": {"actions": [{"command": "cat x"}]}},
        {"role": "user", "content": "no", **OBSERVED},
    ),
    "calls": trajectory(
        called("ls", "c1"), {"role": "tool", "tool_call_id": "c1", "content": "a.py", "extra": {"returncode": 0}},
        called("cat x", "c2"), {"role": "tool", "tool_call_id": "c2", "content": "no", **OBSERVED},
    ),
    "items of responses": trajectory(
        {"object": "response", "output": [
            {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'}]},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {"object": "response", "output": [
            {"type": "function_call", "call_id": "c2", "name": "bash", "arguments": '{"command": "cat x"}'}]},
        {"type": "function_call_output", "call_id": "c2", "output": "no"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_its_commands_are_calls(imported: Import, store: Store, form: str) -> None:
    report, ((row, transcript),) = imported(FORMS[form], "x.traj.json")
    assert (report.format, row.test_id, row.agent) == ("swe-agent", "django-1", "mini-swe-agent")
    assert [(one.name, one.arguments) for one in transcript.tool_calls] == [
        ("bash", {"command": "ls"}), ("bash", {"command": "cat x"}),
    ]  # fmt: skip
    first, second = transcript.tool_calls
    assert "a.py" in (first.result or "")
    assert first.status == "ok"
    assert "no" in (second.result or "")
    if form != "items of responses":
        assert second.status == "error"
    assert (transcript.usage.cost, transcript.finish_reason, transcript.model) == (0.12, "Submitted", "m")
    (verdict,) = store.results(row.id)
    assert (verdict.criterion, str(verdict.outcome)) == ("mini-swe-agent submitted", "passed")


def test_tokens_are_those_of_its_answers(imported: Import) -> None:
    _, ((_, transcript),) = imported(FORMS["calls"])
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (200, 20)


def test_a_limit_is_no_submission(imported: Import, store: Store) -> None:
    end = {"role": "exit", "content": "LimitsExceeded", "extra": {"exit_status": "LimitsExceeded", "submission": ""}}
    _, ((row, transcript),) = imported(trajectory(text("ls"), output("a.py"), end, status="LimitsExceeded"))
    assert (transcript.error, transcript.messages[-1].role) == (None, "tool")
    assert [str(one.outcome) for one in store.results(row.id)] == ["failed"]


def test_an_exception_is_an_error_of_the_run(imported: Import) -> None:
    extra = {"exit_status": "AuthenticationError", "exception_str": "no key", "submission": ""}
    end = {"role": "exit", "content": "no key", "extra": extra}
    _, ((row, transcript),) = imported(trajectory(text("ls"), output("a.py"), end, status="AuthenticationError"))
    assert (row.status, transcript.error.message) == ("error", "AuthenticationError: no key")


def test_a_message_that_it_could_not_use_has_run_nothing(imported: Import) -> None:
    two = {"role": "assistant", "content": "```bash\nls\n```\n```bash\npwd\n```"}
    asked = {"role": "user", "content": "one action, please"}
    _, ((_, transcript),) = imported(trajectory(two, asked, text("ls"), output("a")))
    assert [one.arguments for one in transcript.tool_calls] == [{"command": "ls"}]
    assert [one.role for one in transcript.messages[2:4]] == ["assistant", "user"]
