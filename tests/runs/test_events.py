"""Events and commands as lines of JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.runs.events import EVENTS, Command, Event, decode_command, decode_event, encode

SPEC_NAMES = {
    *("planned", "started", "text", "reasoning", "tool_started", "tool_arguments", "tool_finished", "usage"),
    *("attempt_failed", "finished", "graded", "progress", "ended", "snapshot", "turn", "throttled"),
}

st.register_type_strategy(float, st.floats(allow_nan=False))


@given(st.one_of([st.from_type(kind) for kind in EVENTS.values()]))
def test_every_event_survives_the_wire(event: Event) -> None:
    line = encode(event)
    assert "\n" not in line
    assert line.isascii()
    assert decode_event(line) == event
    assert decode_event(line.encode()) == event


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
