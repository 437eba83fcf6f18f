"""tau2-bench results: `{info, tasks, simulations: [{id, task_id, trial, reward_info: {reward}, messages}]}`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agenteval_tui.exchange.foreign_usage import added, moment_ms, number, usage_from
from agenteval_tui.exchange.json_stream import Unreadable
from agenteval_tui.exchange.message_dialects import plain_text, transcript_of
from agenteval_tui.exchange.recorded import Recording, Skipped, as_id, first_user_text
from agenteval_tui.exchange.source import Source
from agenteval_tui.exchange.unread import said_of, texts_of
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.model import RunError, Timing, Usage

NAME = "tau2-bench"
REWARD = "tau2-bench reward"
LARGEST_TASK = 4_000_000
LOOKS_LIKE = "tau2-bench results: an object with `simulations`"

_BROKE = frozenset({"agent_error", "user_error", "infrastructure_error", "unexpected_error"})


def fits(value: Any) -> bool:
    """Whether a file's first value is a results file of tau2-bench."""
    return isinstance(value, Mapping) and "simulations" in value


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """The simulations: one test a task, its trials as repetitions, the reward as a criterion result."""
    reader = source.reader()
    tasks: dict[str, Mapping[str, Any]] = {}
    agent = ""
    try:
        for key in reader.members():
            if key == "info":
                info = reader.bounded()
                agent = _agent(info)
                told = Counter(path for path, text in texts_of(info, "info") if text != agent)
                if told:
                    yield Skipped("", counts=False, fields=told)
            elif key == "tasks":
                for _ in reader.elements():
                    task = reader.bounded(LARGEST_TASK)
                    if isinstance(task, Mapping):
                        tasks[plain_text(task.get("id"))] = task
            elif key == "simulations":
                for _ in reader.elements():
                    line = reader.line
                    try:
                        yield _recording(reader.bounded(), tasks, agent)
                    except AgentevalError as error:
                        yield Skipped(error.what, line)
    except Unreadable as error:
        yield Skipped(f"from here on the file can't be read: {error.reason}", reader.line, error.cut_off)
    yield from said_of(reader)


def _agent(info: Any) -> str:
    about = info.get("agent_info") if isinstance(info, Mapping) else None
    return plain_text(about.get("llm") or about.get("implementation")) if isinstance(about, Mapping) else ""


def _recording(value: Any, tasks: Mapping[str, Mapping[str, Any]], agent: str) -> Recording:
    if not isinstance(value, Mapping) or "task_id" not in value or not isinstance(value.get("messages"), list):
        raise AgentevalError("no simulation: it has no `task_id` and `messages`")
    task_id, trial = plain_text(value["task_id"]), value.get("trial")
    messages = [one for given in value["messages"] for one in _said(given)]
    transcript = transcript_of(messages)
    usage = Usage()
    for one in messages:
        if isinstance(one, Mapping) and one.get("role") == "assistant":
            usage = added(usage, usage_from(one.get("usage")))
    cost, duration = number(value.get("agent_cost")), number(value.get("duration"))
    reason = plain_text(value.get("termination_reason"))
    transcript = replace(
        transcript,
        usage=replace(usage, cost=cost),
        model=agent,
        finish_reason=reason,
        timing=Timing(total_ms=None if duration is None else duration * 1000),
        error=RunError(NAME, f"the simulation ended with {reason}") if reason in _BROKE else None,
    )
    if transcript.error is None and not messages:
        raise AgentevalError("`messages` is empty")
    task = tasks.get(task_id, {})
    return Recording(
        test_id=as_id(task_id),
        test_name=f"Task {task_id}",
        transcript=transcript,
        repetition=trial + 1 if isinstance(trial, int) and not isinstance(trial, bool) and trial >= 0 else None,
        prompt=first_user_text(transcript),
        agent=agent,
        variables=_variables(task),
        results=() if transcript.error is not None or not _rewarded(value) else (_verdict(value["reward_info"]),),
        started_ms=moment_ms(value.get("start_time")) or moment_ms(value.get("timestamp")),
        source=(("simulations[]", value), ("tasks[]", task)),
    )


def _said(message: Any) -> list[Any]:
    """A message as those that it is: answers of several tools stand in one. What the simulated user does with tools of
    its own is said by the user: these are no calls of the agent."""
    if not isinstance(message, Mapping):
        return [message]
    if isinstance(message.get("tool_messages"), list):
        return [one for given in message["tool_messages"] for one in _said(given)]
    role, calls = message.get("role"), message.get("tool_calls")
    if role == "tool" and message.get("requestor") == "user":
        return [{"role": "user", "content": f"[tool] {plain_text(message.get('content'))}"}]
    if role == "user" and isinstance(calls, list) and calls:
        used = [
            f"[tool] {plain_text(one.get('name'))} {plain_text(one.get('arguments'))}"
            for one in calls
            if isinstance(one, Mapping)
        ]
        said = [plain_text(message.get("content")), *used]
        return [{"role": "user", "content": "\n".join(text for text in said if text)}]
    return [message]


def _variables(task: Mapping[str, Any]) -> dict[str, Any]:
    wanted = task.get("evaluation_criteria")
    actions = wanted.get("actions") if isinstance(wanted, Mapping) else None
    given = {"expected_actions": actions, "user_scenario": task.get("user_scenario")}
    return {key: value for key, value in given.items() if value is not None}


def _rewarded(simulation: Mapping[str, Any]) -> bool:
    """Whether a reward was given, whatever it is: without one nobody looked at the run yet."""
    return simulation.get("reward_info") is not None


def _verdict(info: Any) -> CriterionResult:
    reward = info.get("reward") if isinstance(info, Mapping) else None
    score = None if isinstance(reward, str) else number(reward)
    if score is None:
        return foreign_result(REWARD, source=NAME, reason="the file gives no reward")
    assert isinstance(info, Mapping)
    parts = info.get("reward_breakdown")
    lost = [str(key) for key, got in parts.items() if got == 0] if isinstance(parts, Mapping) else []
    said = f"tau2-bench gave a reward of {score:g}" + (f": nothing for {', '.join(lost)}" if lost else "")
    return foreign_result(REWARD, score=score, passed=abs(score - 1) <= 1e-6, source=NAME, reason=said)
