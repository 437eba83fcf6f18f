"""Where a trend breaks: the criteria of a test changed between two executions, or the configuration of the agent, so
that what comes before and what comes after is not of one kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from agenteval_tui.analysis.time_buckets import Bin
from agenteval_tui.analysis.trends import Series, Trend
from agenteval_tui.history.trends import TestName, VersionUse

Kind = Literal["changed", "added", "removed", "agent"]


class Break(Struct, frozen=True):
    """A criterion of a test (kind "agent": the configuration of the agent `agent`) changed at `at_ms`, when the first
    run of `execution` (a row number) started.

    `old` and `new` are the hashes of its versions; "" where it was added or removed.
    """

    at_ms: int
    execution: int
    suite_key: str
    suite: str
    test_id: str
    criterion: str
    kind: Kind
    old: str
    new: str
    agent: str = ""


def breaks_of(uses: Iterable[VersionUse], tests: Mapping[int, TestName]) -> tuple[Break, ...]:
    """The breaks between executions that follow each other, of each test for itself; in the order of time.

    A criterion that was only renamed judges as before: that is none.
    """
    by_test: dict[int, dict[int, list[VersionUse]]] = {}
    for use in uses:
        by_test.setdefault(use.test, {}).setdefault(use.execution, []).append(use)
    breaks: list[Break] = []
    for number, executions in by_test.items():
        before: dict[str, str] | None = None
        for execution, listed in _in_time(executions):
            now = {use.name: use.version for use in listed}  # of several in one execution the last
            if before is not None:
                test = tests[number]
                place = (listed[0].first_ms, execution, test.suite_key, test.suite, test.test_id)
                breaks += [Break(*place, *change) for change in _changes(before, now)]
            before = now
    return tuple(sorted(breaks, key=lambda shift: (shift.at_ms, shift.suite_key, shift.test_id, shift.criterion)))


def agent_breaks_of(uses: Iterable[VersionUse], tests: Mapping[int, TestName]) -> tuple[Break, ...]:
    """Where an agent answered a test by none of the configurations that it had in the execution before, in the order of
    time. (Variations give an agent several in one execution.)"""
    breaks: list[Break] = []
    by_agent: dict[tuple[int, str], dict[int, list[VersionUse]]] = {}
    for use in uses:
        by_agent.setdefault((use.test, use.name), {}).setdefault(use.execution, []).append(use)
    for (number, agent), executions in by_agent.items():
        before: list[VersionUse] = []
        for execution, now in _in_time(executions):
            if before and {use.version for use in before}.isdisjoint(use.version for use in now):
                test = tests[number]
                place = (now[0].first_ms, execution, test.suite_key, test.suite, test.test_id)
                breaks.append(Break(*place, "", "agent", before[-1].version, now[-1].version, agent))
            before = now
    return tuple(sorted(breaks, key=lambda shift: (shift.at_ms, shift.suite_key, shift.test_id, shift.agent)))


def distinct(breaks: Iterable[Break]) -> list[Break]:
    """Without a change of an agent's configuration that was said already: its tests all have it."""
    keys: set[tuple[int, str, str, str]] = set()
    unique = []
    for shift in breaks:
        key = (shift.execution, shift.agent, shift.old, shift.new)
        if shift.kind != "agent" or key not in keys:
            unique.append(shift)
        keys.add(key)
    return unique


def _in_time(executions: Mapping[int, Sequence[VersionUse]]) -> list[tuple[int, list[VersionUse]]]:
    """Executions in the order in which they started, each with what it used, what was first used first."""
    uses = {execution: sorted(listed, key=lambda use: use.first_ms) for execution, listed in executions.items()}
    return sorted(uses.items(), key=lambda pair: (pair[1][0].first_ms, pair[0]))


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, Kind, str, str]]:
    """(name, what became of it, version before, version now) of the criteria that are not as they were."""
    gone = {name: version for name, version in before.items() if name not in now}
    came = {name: version for name, version in now.items() if name not in before}
    changes: list[tuple[str, Kind, str, str]] = [
        (name, "changed", before[name], version)
        for name, version in now.items()
        if name in before and before[name] != version
    ]
    for name, version in came.items():
        # A criterion that was only renamed has the same version under another name.
        renamed = next((old for old, other in gone.items() if other == version), None)
        if renamed is not None:
            del gone[renamed]
        else:
            changes.append((name, "added", "", version))
    return [*changes, *((name, "removed", version, "") for name, version in gone.items())]


def bin_of(bins: Sequence[Bin], shift: Break) -> int | None:
    """The number of the piece of time that begins with it, or in which it lies; None: it is not among them."""
    for number, place in enumerate(bins):
        if place.execution:
            if place.row == shift.execution:
                return number
        elif place.since_ms <= shift.at_ms < place.until_ms:
            return number
    return None


def breaks_in(trend: Trend, series: Series, breaks: Iterable[Break]) -> dict[int, list[Break]]:
    """The breaks of one line of a trend, by the number of the piece of time."""
    group = trend.query.group
    by_bin: dict[int, list[Break]] = {}
    for shift in breaks:
        if group == "test" and series.key != f"{shift.suite_key}::{shift.test_id}":
            continue
        if group == "suite" and series.key != shift.suite_key:
            continue
        # A criterion's change is in the lines of all agents; an agent's in its own.
        if group == "agent" and shift.kind == "agent" and series.key != shift.agent:
            continue
        number = bin_of(trend.bins, shift)
        if number is not None:
            by_bin.setdefault(number, []).append(shift)
    return {number: distinct(listed) for number, listed in by_bin.items()}
