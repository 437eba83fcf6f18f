"""What may relax a Trajectory: arguments of the expected calls, where a call of the run comes near."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.phrasing import shown
from agenteval_tui.grading.relax.changes import Change, ConfigEdit, Path
from agenteval_tui.grading.relax.config import metric_changes
from agenteval_tui.grading.relax.tool_check import widened
from agenteval_tui.grading.results import Evidence, MetricResult, may_be_cut

_CALL = re.compile(r"calls\[(\d+)\]")


def trajectory_changes(at: Path, raw: Mapping[str, Any], result: MetricResult) -> Iterator[tuple[str, Change]]:
    """For each argument that differs, and for each other line that failed (a key), the changes that could make it
    right. `raw` is the metric as it is written. What a `reference` expects is recorded: there nothing can be widened.
    """
    others = []
    for line in result.evidence:
        changes = [] if line.passed is not False or "reference" in raw else list(_arguments(at, raw, line))
        if not changes:
            others.append(line)
            continue
        yield from changes
        number = _number(line)
        if number is not None and len(raw["calls"]) > 1:
            keys = frozenset(key for key, _ in changes)
            gone = (ConfigEdit("remove", (*at, "calls", number)),)
            change = Change(f"no longer look for {shown(raw['calls'][number], 40)}", gone, 2.0, keys)
            yield from ((key, change) for key in sorted(keys))
    yield from metric_changes(at, raw, replace(result, evidence=tuple(others)))


def _number(line: Evidence) -> int | None:
    matched = _CALL.fullmatch(line.condition)
    return int(matched[1]) if matched is not None else None


def _arguments(at: Path, raw: Mapping[str, Any], line: Evidence) -> Iterator[tuple[str, Change]]:
    calls, number = raw.get("calls"), _number(line)
    if number is None or not isinstance(calls, list) or number >= len(calls):
        return
    written = calls[number].get("arguments")
    if not isinstance(written, Mapping):
        return
    for part in (line.fields.get("near_call") or {}).get("arguments") or ():
        name = part.get("argument")
        key, path = f"{at}{line.condition}.{part['is']}.{name}", (*at, "calls", number, "arguments", name)
        if part["is"] == "differs" and part["path"] == name in written and not may_be_cut(part.get("found")):
            for change in widened(path, name, written[name], [part.get("found")], part.get("wanted")):
                yield key, change
        elif part["is"] == "missing" and name in written:
            yield key, Change(f"no longer require the argument {name}", (ConfigEdit("remove", path),), 2.1)
        elif part["is"] == "extra":
            yield key, Change(f"expect {name} too, with any value", (ConfigEdit("set", path, {"$any": True}),), 1.6)
