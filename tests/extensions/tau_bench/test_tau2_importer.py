"""Results of tau2-bench become runs."""

from __future__ import annotations

from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.history.store import Store
from tests.formats.conftest import theirs


def test_tau2_simulations(imported, store: Store) -> None:
    messages = [
        {"role": "assistant", "content": "Hi!", "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
        {"role": "user", "content": "Weather?", "usage": {"prompt_tokens": 30, "completion_tokens": 2}},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "name": "f", "arguments": {"a": 1}}]},
        {"role": "tool", "id": "c1", "content": "no", "error": True},
        {"role": "assistant", "content": "Sorry."},
    ]
    simulations = [
        {"id": "1", "task_id": "7", "trial": 0, "reward_info": {"reward": 0.0, "reward_breakdown": {"DB": 0.0}},
         "messages": messages, "agent_cost": 0.2, "user_cost": 0.1, "duration": 2.0, "termination_reason": "user_stop"},
        {"id": "2", "task_id": "7", "trial": 1, "reward_info": {"reward": 1.0}, "messages": messages},
        {"id": "3", "task_id": "8", "trial": 0, "messages": messages, "termination_reason": "agent_error"},
        {"id": "4"},
        {"id": "5", "task_id": "9", "reward_info": None, "start_time": "2026-01-01T00:00:00Z", "messages": [
            {"role": "user", "content": "On", "tool_calls": [{"id": "u1", "name": "toggle", "arguments": {}}]},
            {"role": "tool", "id": "u1", "content": "done", "requestor": "user"},
            {**messages[2], "tool_calls": [{"id": one, "name": "f", "arguments": {}} for one in "ab"]},
            {"role": "tool", "tool_messages": [{"role": "tool", "id": one, "content": one} for one in "ab"]}]},
    ]  # fmt: skip
    task = {"id": "7", "evaluation_criteria": {"actions": [{"name": "f"}]}}
    report, runs = imported({"info": {"agent_info": {"llm": "m-1"}}, "tasks": [task], "simulations": simulations})
    assert (report.format, report.read, report.added) == ("tau2-bench", 5, 4)
    assert [(r.test_id, r.repetition, r.status, r.agent) for r, _ in runs] == [
        ("7", 1, "failed", "m-1"), ("7", 2, "passed", "m-1"), ("8", 1, "error", "m-1"),
        ("9", 1, "skipped", "m-1"),
    ]  # fmt: skip
    # What the simulated user did is no call of the agent.
    assert [(call.name, call.result) for call in runs[3][1].tool_calls] == [("f", "a"), ("f", "b")]
    assert runs[3][1].messages[0].content == "On\n[tool] toggle {}"
    assert runs[3][0].started_ms == 1767225600000
    assert runs[0][0].variables["expected_actions"] == [{"name": "f"}]
    assert runs[0][1].tool_calls[0].status == "error"
    # Nor is what it used: both are apart.
    assert (runs[0][1].usage.input_tokens, runs[0][1].usage.cost, runs[0][0].cost) == (5, 0.2, 0.2)
    assert (runs[0][1].user_usage.input_tokens, runs[0][1].user_usage.cost) == (30, 0.1)
    assert [message.simulated for message in runs[0][1].messages] == [False, True, False, False, False]
    assert "nothing for DB" in criterion_sentence(theirs(store, runs[0][0].id)[0])
