"""The kind `replay`: recordings come back exactly, for the right run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Message, RunError, Timing, ToolCall, Transcript, Usage

ALLOWED = permission_for((), everything=True)


LOOKED_UP = Transcript(
    messages=(
        Message("user", "Where is #W1?"),
        Message("assistant", "One moment.", tool_calls=(0,)),
        Message("tool", "shipped", tool_call=0, tool_call_id="c1", name="get_order"),
        Message("assistant", "It has left our house."),
    ),
    tool_calls=(ToolCall("c1", "get_order", {"order_id": "#W1"}, "shipped", "ok", 5.0, 2.0, 1),),
    timing=Timing(1.0, 12.0),
    usage=Usage(10, 8),
    model="recorded-model",
    finish_reason="stop",
    final_output="It has left our house.",
)
GUESSED = Transcript(
    messages=(Message("user", "Where is #W1?"), Message("assistant", "I don't know.")), final_output="I don't know."
)


def ask(test: str = "where", repetition: int = 1, text: str = "Where is #W1?") -> AgentRequest:
    return AgentRequest((Message("user", text),), test_id=test, repetition=repetition)


async def replay(
    config: Mapping[str, Any], request: AgentRequest, base: Path = Path(), **more: Any
) -> tuple[Transcript, list[AgentEvent]]:
    agent = make_agent("old", {"kind": "replay", **config}, base_dir=base, env={}, permission=ALLOWED, **more)
    recorder, events = Recorder(request.messages), list[AgentEvent]()
    async for event in agent.run(request):
        recorder.apply(event)
        events.append(event)
    await agent.close()
    return recorder.transcript(), events


def write(path: Path, *items: Any) -> str:
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return path.name


async def test_repetitions_take_their_recordings_in_order(tmp_path: Path) -> None:
    name = write(
        tmp_path / "r.jsonl",
        {"test": "where", "transcript": to_json(LOOKED_UP)},
        {"test": "other", "transcript": to_json(GUESSED)},
        {"test": "where", "transcript": to_json(GUESSED)},
    )
    first, events = await replay({"file": name}, ask(repetition=1), tmp_path)
    second, _ = await replay({"file": name}, ask(repetition=2), tmp_path)
    assert (first, second) == (LOOKED_UP, GUESSED)
    assert events[-1] == Done("stop", "recorded-model")


async def test_more_repetitions_than_recordings_is_an_error_that_says_how_many(tmp_path: Path) -> None:
    name = write(tmp_path / "r.jsonl", {"test": "where", "transcript": to_json(LOOKED_UP)})
    transcript, events = await replay({"file": name}, ask(repetition=2), tmp_path)
    assert isinstance(events[-1], Failed)
    assert transcript.error is not None
    assert "there are 1" in transcript.error.message
    again, _ = await replay({"file": name, "beyond": "repeat"}, ask(repetition=2), tmp_path)
    assert again == LOOKED_UP


async def test_openai_messages_are_found_by_how_they_begin(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "You are a shop."},
        {"role": "user", "content": "Where is #W1? "},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "ok"},
        {"role": "assistant", "content": "There."},
    ]
    for number, form in enumerate((messages, {"messages": messages}, {"task_id": 7, "trial": 0, "traj": messages})):
        name = write(tmp_path / f"{number}.jsonl", [{"role": "user", "content": "else"}], form)
        transcript, _ = await replay({"file": name}, ask("anything"), tmp_path)
        assert transcript == from_json(messages)


async def test_a_json_file_may_map_tests_to_transcripts(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"where": [to_json(GUESSED), to_json(LOOKED_UP)]}), encoding="utf-8")
    transcript, _ = await replay({"file": "r.json"}, ask(repetition=2), tmp_path)
    assert transcript == LOOKED_UP
    transcript, _ = await replay({"transcripts": {"where": to_json(GUESSED)}}, ask())
    assert transcript == GUESSED


async def test_a_stored_execution_is_replayed_through_the_source() -> None:
    def source(reference: str) -> Mapping[str, Sequence[Transcript]]:
        assert reference == "last"
        return {"where": [LOOKED_UP]}

    transcript, _ = await replay({"execution": "last"}, ask(), transcripts=source)
    assert transcript == LOOKED_UP


async def test_without_a_history_an_execution_is_an_error() -> None:
    transcript, _ = await replay({"execution": "last"}, ask())
    assert transcript.error is not None
    assert "there is no history to replay from" in transcript.error.message


async def test_at_a_pace_the_text_is_streamed_first_and_the_end_is_the_same() -> None:
    transcript, events = await replay({"transcripts": {"where": to_json(LOOKED_UP)}, "pace": 0.01}, ask())
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "One moment.It has left our house."
    assert transcript == LOOKED_UP


async def test_a_recorded_failure_fails_again() -> None:
    broken = Transcript(messages=GUESSED.messages, error=RunError("timeout", "too late"), final_output="I don't know.")
    transcript, events = await replay({"transcripts": {"where": to_json(broken)}}, ask())
    assert isinstance(events[-1], Failed)
    assert transcript == broken


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"test": "a", "messages": [{"role": "user"}]}\n{oh', "r.jsonl:2: this is not JSON"),
        ('{"test": "a", "messages": [{"content": "x"}]}', "r.jsonl:1: message 1 has no role"),
        ("7", "r.jsonl:1: this is not a transcript"),
        (None, "the recordings can't be read"),
    ],
)
async def test_a_bad_file_is_said_with_its_line(content: str | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "r.jsonl").write_text(content, encoding="utf-8")
    transcript, events = await replay({"file": "r.jsonl"}, ask(), tmp_path)
    assert len(events) == 1
    assert transcript.error is not None
    assert said in transcript.error.message
    report = await make_agent(
        "old", {"kind": "replay", "file": "r.jsonl"}, base_dir=tmp_path, env={}, permission=ALLOWED
    ).check()
    assert not report.ok
    assert said in report.message


async def test_no_recording_of_the_test_names_those_that_there_are() -> None:
    transcript, _ = await replay({"transcripts": {"where": to_json(GUESSED)}}, ask("nowhere", text="Hello?"))
    assert transcript.error is not None
    assert transcript.error.fix == "recorded tests: where"


@pytest.mark.shared
async def test_tau_bench_recordings_replay_by_task(shared: Path) -> None:
    path = shared / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    trials = [row for row in rows if row["task_id"] == 3]
    for repetition, row in enumerate(trials, 1):
        transcript, _ = await replay({"file": str(path)}, ask("3", repetition))
        assert transcript == from_json(row["traj"])
