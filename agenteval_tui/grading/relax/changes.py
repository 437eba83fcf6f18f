"""Changes to a config that may make a criterion pass: to its value for trying them, to its text for keeping them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field

from agenteval_tui.core.json_values import value_at
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.uxon import edit
from agenteval_tui.uxon.tree import Document

Path = tuple[str | int, ...]
Kind = Literal["set", "append", "rename", "remove"]
_CONDITION = re.compile(r"(\w+)(?:\[(\d+)\])?")

# Removing comes last, from the back: it moves the places of everything after it.
_ORDER = {"set": 0, "append": 1, "rename": 2, "remove": 3}


class ConfigEdit(Struct, frozen=True):
    """One edit at `path`: set or append `value`, rename the property to `value`, remove it."""

    kind: Kind
    path: Path
    value: Any = None


class Change(Struct, frozen=True):
    """One step of a relaxation: in words, as edits, what it costs, and which failing conditions it is meant for.

    A cost is 1 for the edit, and more for what it gives up: 0.1 (case no longer matters) to 10 (a forbidden tool is
    allowed).
    """

    title: str
    ops: tuple[ConfigEdit, ...]
    cost: float
    covers: frozenset[str] = field(default_factory=frozenset)


def entry_removal(at: Path, name: str, number: int, length: int) -> ConfigEdit:
    """Takes an entry out of the list `name` of this length; the last one with its property: an empty list checks
    nothing."""
    return ConfigEdit("remove", (*at, name) if length == 1 else (*at, name, number))


def missed_properties(raw: Mapping[str, Any], result: MetricResult) -> Iterator[tuple[Evidence, str, int | None]]:
    """The conditions of a metric that do not hold, each with its property, and the number of an entry of a list.
    `raw` is the metric as it is written."""
    for line in result.evidence:
        matched = _CONDITION.fullmatch(line.condition)
        if line.passed is False and matched is not None and matched[1] in raw:
            yield line, matched[1], None if matched[2] is None else int(matched[2])


def ordered(changes: Iterable[Change]) -> list[ConfigEdit]:
    """The edits of all changes, in an order in which no edit moves the place of a later one."""
    unique = {(op.kind, op.path, repr(op.value)): op for change in changes for op in change.ops}
    return sorted(unique.values(), key=_rank)


def _rank(op: ConfigEdit) -> tuple[int, tuple[tuple[int, str], ...]]:
    # Numbers descending, so that the entry at the back goes first.
    place = tuple((-step, "") if isinstance(step, int) else (0, step) for step in op.path)
    return _ORDER[op.kind], place if op.kind == "remove" else ()


def normalised(value: object, ops: Sequence[ConfigEdit]) -> list[ConfigEdit]:
    """The edits, but a list whose every entry goes is taken out itself, and a metric that is left bare with it."""
    gone: dict[Path, set[int]] = {}
    filled = {op.path for op in ops if op.kind == "append"}
    for op in ops:
        if op.kind == "remove" and isinstance(op.path[-1], int):
            gone.setdefault(op.path[:-1], set()).add(op.path[-1])
    for path, places in gone.items():
        if path in filled or path == ("metrics",) or len(places) < len(value_at(value, path)):
            continue
        ops = [op for op in ops if op.path[: len(path)] != path] + [ConfigEdit("remove", path)]
        metric = path[:-1]
        others = set(value_at(value, metric)) - {"type", "name", "weight", path[-1]}
        touched = any(op.path[: len(metric)] == metric and op.kind == "set" for op in ops)
        if len(metric) == 2 and not others and not touched and ("metrics",) in filled:
            ops = [op for op in ops if op.path[:2] != metric] + [ConfigEdit("remove", metric)]
    return sorted(ops, key=_rank)


def in_conflict(left: Change, right: Change) -> bool:
    """Whether one writes where the other writes too, or above it."""
    return any(_meet(a, b) for a in left.ops for b in right.ops)


def _meet(a: ConfigEdit, b: ConfigEdit) -> bool:
    if a == b or a.kind == b.kind == "append":
        return False
    if a.path == b.path:
        return True
    if len(a.path) > len(b.path):
        a, b = b, a
    return b.path[: len(a.path)] == a.path and a.kind != "append"


def changed_value(value: object, ops: Sequence[ConfigEdit]) -> object:
    """A copy of the config's value with the edits made. Raises LookupError or TypeError where one has no place."""
    for op in ops:
        value = _changed(value, op, 0)
    return value


def _changed(value: Any, op: ConfigEdit, depth: int) -> object:
    """Only what lies on the way is copied."""
    if depth == len(op.path):
        return [*value, op.value] if op.kind == "append" else op.value
    step = op.path[depth]
    last = depth == len(op.path) - 1
    if isinstance(value, list) and isinstance(step, int):
        new = list(value)
        if last and op.kind == "remove":
            del new[step]
        else:
            new[step] = _changed(value[step], op, depth + 1)
        return new
    if not isinstance(value, dict):
        raise TypeError(f"nothing can be written at {op.path}")
    if last and op.kind == "rename":
        if op.value in value:
            raise KeyError(op.value)
        return {(op.value if key == step else key): item for key, item in value.items()}
    if last and op.kind == "remove":
        return {key: item for key, item in value.items() if key != step}
    inner = None if last and op.kind == "set" else value[step]
    return {**value, step: _changed(inner, op, depth + 1)}


def changed_text(text: str, ops: Sequence[ConfigEdit], read: Callable[[str], Document]) -> str | None:
    """The config text with the edits made; None where one has no place in it.

    `read` parses a text: who tries many edits of one text hands over one that remembers what it has read.
    """
    for op in ops:
        document = read(text)
        if document.broken:
            return None
        if op.kind == "set":
            fix = edit.set_value(document, op.path, op.value)
        elif op.kind == "append":
            fix = edit.append(document, op.path, op.value)
        elif op.kind == "rename":
            fix = edit.rename(document, op.path, op.value)
        else:
            fix = edit.remove(document, op.path)
        if fix is None:
            return None
        text = fix.apply(text)
    return text
