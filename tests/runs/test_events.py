"""Events and commands as lines of JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.runs.events import (
    EVENTS,
    Command,
    Event,
    Planned,
    RunRef,
    RunShown,
    RunState,
    Snapshot,
    StreamPart,
    decode_command,
    decode_event,
    encode,
)

SPEC_NAMES = {
    *("planned", "started", "text", "reasoning", "tool_started", "tool_arguments", "tool_finished", "usage"),
    *("preparing", "attempt_failed", "finished", "graded", "progress", "ended", "snapshot", "turn", "throttled"),
}

st.register_type_strategy(float, st.floats(allow_nan=False))
# A state names its run by the id: all else of the run is in the event `planned`.
_BARE = st.text().map(lambda run: RunRef(run, "", "", "", 0, 0, ""))
st.register_type_strategy(RunState, st.builds(RunState, ref=_BARE, parts=...))


def with_known_runs(event: Event) -> Event:
    """The event, with all that a snapshot says of its runs."""
    if not isinstance(event, Snapshot):
        return event
    refs = {ref.run: ref for ref in event.planned.runs}
    return replace(event, states=tuple(state.copy(refs.get(state.ref.run)) for state in event.states))


@given(st.one_of([st.from_type(kind) for kind in EVENTS.values()]))
def test_every_event_survives_the_wire(event: Event) -> None:
    line = encode(event)
    assert "\n" not in line
    assert line.isascii()
    assert decode_event(line) == with_known_runs(event)
    assert decode_event(line.encode()) == with_known_runs(event)


def test_the_events_are_those_of_the_architecture() -> None:
    assert set(EVENTS) >= SPEC_NAMES


@given(st.sampled_from(["pause", "cancel", "watch"]), st.text(), st.integers(0, 9999))
def test_commands_survive_the_wire(verb: str, run: str, number: int) -> None:
    command = Command(verb, run, number)
    assert decode_command(encode(command)) == command


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "1", "null", '{"type": "nope"}', '{"type": "text"}', '{"type": "planned", "runs": 3}',
     '{"type": "snapshot", "seq": 1}', '{"type": ["text"]}'],
)  # fmt: skip
def test_what_is_no_event_is_a_value_error(line: str) -> None:
    with pytest.raises(ValueError):
        decode_event(line)


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"verb": "explode"}', '{"verb": "cancel", "number": "x"}',
                                  '{"verb": "cancel", "number": []}', '{"verb": ["cancel"]}'])  # fmt: skip
def test_what_is_no_command_is_a_value_error(line: str) -> None:
    with pytest.raises(ValueError):
        decode_command(line)


def test_a_snapshot_knows_its_runs_and_a_state_alone_the_id() -> None:
    ref = RunRef("r1", "hello", "Says hello", "", 0, 1, "bot", "Greetings")
    state = RunState(ref, "running", parts=[StreamPart("text", "hi")])
    snapshot = Snapshot(1, Planned(1, "x", "X", (ref,), 1, 0), (state,), (), None, None)
    assert decode_event(encode(snapshot)) == snapshot
    shown = decode_event(encode(RunShown(2, state)))
    assert isinstance(shown, RunShown)
    assert (shown.state.ref.run, shown.state.copy(ref)) == ("r1", state)
    assert '"state":{"run":"r1","status":"running","parts":[' in encode(RunShown(2, state))
