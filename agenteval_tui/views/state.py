"""What a run's probes read before and after it, line by line, with what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from msgspec import Struct

from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.sentences import reading_sentence
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading

NO_STATE = "No state was read: the test has no `state`, or the run is from elsewhere."
_COMPARED = 2_000  # lines of a value that are compared one by one; of a longer one, those that differ are one piece


class StateRow(Struct, frozen=True):
    """A line before and the line after the run that is in its place; None where there is none. `changed`: they
    differ."""

    before: str | None
    after: str | None
    changed: bool = False


class ProbeView(Struct, frozen=True):
    """What a probe read. `change`: changed, unchanged, or "" where one side is not known. `before` and `after` say why
    there is no value on that side; "": there is one."""

    name: str
    change: str
    before: str
    after: str
    rows: tuple[StateRow, ...]


def probe_views(transcript: Transcript) -> tuple[ProbeView, ...]:
    """What each probe of a run read."""
    return tuple(map(_view, transcript.state))


def _view(state: ProbeState) -> ProbeView:
    before, after = _problem_text(state.before), _problem_text(state.after)
    was = [] if before or state.before is None else _lines(state.before)
    now = [] if after or state.after is None else _lines(state.after)
    if before or after:
        rows = [StateRow(*pair) for pair in zip_longest(was, now)]
        return ProbeView(state.name, "", before, after, tuple(rows))
    rows = list(_paired(was, now))
    # A text and another value may read alike: "1" and 1.
    changed = any(row.changed for row in rows) or _value(state.before) != _value(state.after)
    return ProbeView(state.name, "changed" if changed else "unchanged", "", "", tuple(rows))


def _value(reading: Reading | None) -> object:
    return None if reading is None else reading.value


def _problem_text(reading: Reading | None) -> str:
    if reading is None:
        return "it was not read"
    return reading_sentence(reading.problem, reading.fields) if reading.problem else ""


def _lines(reading: Reading) -> list[str]:
    return reading.text.split("\n") if reading.text else [""]


def _paired(was: list[str], now: list[str]) -> Iterator[StateRow]:
    """Both sides line by line: what is equal stands side by side."""
    # A probe may read a whole table: what is equal at its start needs no search, which takes the square of its lines.
    first = common_start(was, now)
    yield from (StateRow(line, line) for line in was[:first])
    old, new = was[first:], now[first:]
    if max(len(old), len(new)) > _COMPARED:
        yield from _changed_rows(old, new)
        return
    # `autojunk` takes lines that come often in long texts, such as brackets of JSON, for no lines at all.
    for _, start, end, other, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if old[start:end] == new[other:last]:
            for line in old[start:end]:
                yield StateRow(line, line)
        else:
            yield from _changed_rows(old[start:end], new[other:last])


def _changed_rows(old: Sequence[str], new: Sequence[str]) -> Iterator[StateRow]:
    return (StateRow(before, after, changed=True) for before, after in zip_longest(old, new))


class StateLine(Struct, frozen=True):
    """A line of a list: a probe's name (`probe`), or a line of its value at `moment` ("" after the first line).
    `sign`: - or + where it changed. `unread`: why there is no value."""

    probe: str = ""
    change: str = ""
    moment: str = ""
    text: str = ""
    sign: str = " "
    unread: bool = False


def state_lines(transcript: Transcript, most: int = 1_000_000) -> Iterator[StateLine]:
    """Each probe, before above after; one that did not change once. At most `most` lines of each value."""
    for probe in probe_views(transcript):
        yield StateLine(probe=probe.name, change=probe.change)
        if probe.change == "unchanged":
            yield from _value_lines("unchanged", "", [(" ", row.after) for row in probe.rows], most)
            continue
        was = [("-" if row.changed else " ", row.before) for row in probe.rows]
        now = [("+" if row.changed else " ", row.after) for row in probe.rows]
        yield from _value_lines("before", probe.before, was, most)
        yield from _value_lines("after", probe.after, now, most)


def _value_lines(moment: str, why: str, lines: Sequence[tuple[str, str | None]], most: int) -> Iterator[StateLine]:
    if why:
        yield StateLine(moment=moment, text=f"not read: {why}", unread=True)
        return
    present = [(sign, text) for sign, text in lines if text is not None]
    for number, (sign, text) in enumerate(present[:most]):
        yield StateLine(moment="" if number else moment, text=text, sign=sign)
    if len(present) > most:
        yield StateLine(text=f"… {count(len(present) - most, 'more line')}")
