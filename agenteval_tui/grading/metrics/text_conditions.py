"""The conditions of a TextMatch: whether each holds of a text, and the evidence for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.grading.value import Value
from agenteval_tui.text.quick_dataclass import dataclass

if TYPE_CHECKING:
    from agenteval_tui.grading.metrics.text_match import TextMatch
    from agenteval_tui.grading.nearest import Miss

Side = Literal["equals", "contains", "starts_with", "ends_with"]

_GROUPS = ("Contains", "ContainsNot", "StartsWith", "EndsWith", "Equals")

FOUND = 300
"""Characters of the text that `found` keeps."""
_HITS = 20
_NEAR_OF_LIST = 12  # near misses are looked for of so many needles in a list; each may cost milliseconds


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: its name in evidence, its group, whether it holds, and the evidence (one or a line a needle)."""

    name: str
    group: str
    holds: Callable[[Value], bool]
    evidence: Callable[[Value], Iterator[Evidence]]


def conditions_of(metric: TextMatch) -> tuple[Condition, ...]:
    """The configured conditions. Empty needles are ignored, except in `equals`."""
    found: list[Condition] = []
    single: tuple[tuple[str, str, Side, bool], ...] = (
        ("contains", "Contains", "contains", False),
        ("contains_ignore_case", "Contains", "contains", True),
        ("starts_with", "StartsWith", "starts_with", False),
        ("ends_with", "EndsWith", "ends_with", False),
        ("equals", "Equals", "equals", False),
        ("equals_ignore_case", "Equals", "equals", True),
    )
    for name, group, side, ignore_case in single:
        needle = getattr(metric, name)
        if needle or (needle == "" and side == "equals"):
            found.append(_one(name, group, side, needle, ignore_case))
    if needles := _needles(metric.contains_all):
        found.append(_all(needles))
    many: tuple[tuple[str, str, Side], ...] = (
        ("contains_any", "Contains", "contains"),
        ("starts_with_any", "StartsWith", "starts_with"),
        ("ends_with_any", "EndsWith", "ends_with"),
    )
    for name, group, side in many:
        if needles := _needles(getattr(metric, name)):
            found.append(_any(name, group, side, needles))
    if needles := _needles(metric.not_contains_any):
        found.append(_none(needles))
    return tuple(sorted(found, key=lambda one: _GROUPS.index(one.group)))


def _needles(given: list[str] | None) -> tuple[tuple[int, str], ...]:
    """The needles that count, with their places in the list."""
    return tuple((number, needle) for number, needle in enumerate(given or ()) if needle)


def _one(name: str, group: str, side: Side, needle: str, ignore_case: bool) -> Condition:
    def evidence(value: Value) -> Iterator[Evidence]:
        yield _look(name, group, side, needle, ignore_case, value)

    return Condition(name, group, _holds(side, needle, ignore_case), evidence)


def _all(needles: tuple[tuple[int, str], ...]) -> Condition:
    texts = tuple(needle for _, needle in needles)

    def holds(value: Value) -> bool:
        text = value.text
        # Plain loops: a generator costs more than the search itself, and this runs on every keystroke.
        for needle in texts:  # noqa: SIM110
            if needle not in text:
                return False
        return True

    def evidence(value: Value) -> Iterator[Evidence]:
        missed = 0
        for number, needle in needles:
            near = missed < _NEAR_OF_LIST
            line = _look(f"contains_all[{number}]", "Contains", "contains", needle, False, value, near)
            missed += not line.passed
            yield line

    return Condition("contains_all", "Contains", holds, evidence)


def _any(name: str, group: str, side: Side, needles: tuple[tuple[int, str], ...]) -> Condition:
    texts = tuple(needle for _, needle in needles)

    def contains(value: Value) -> bool:
        text = value.text
        for needle in texts:  # noqa: SIM110
            if needle in text:
                return True
        return False

    holds: dict[Side, Callable[[Value], bool]] = {
        "contains": contains,
        "starts_with": lambda value: value.text.startswith(texts),
        "ends_with": lambda value: value.text.endswith(texts),
    }

    def evidence(value: Value) -> Iterator[Evidence]:
        hits = [(needle, at) for needle in texts if (at := _find(side, needle, False, value)) is not None]
        if hits:
            spans = tuple(span for _, at in hits[:_HITS] for span in value.spans(*at))
            found = [needle for needle, _ in hits]
            fields = {"side": side}
            yield Evidence(name, True, "", list(texts), found, spans, group=group, code=Code.PRESENT, fields=fields)
            return
        misses = [_nearest(value, needle, side, False) for needle in texts[:_NEAR_OF_LIST]]
        best = max((miss for miss in misses if miss is not None), key=lambda miss: miss.likeness, default=None)
        yield _missed(name, group, list(texts), side, value, best)

    return Condition(name, group, holds[side], evidence)


def _none(needles: tuple[tuple[int, str], ...]) -> Condition:
    texts = tuple(needle for _, needle in needles)

    def holds(value: Value) -> bool:
        text = value.text
        for needle in texts:  # noqa: SIM110
            if needle in text:
                return False
        return True

    def evidence(value: Value) -> Iterator[Evidence]:
        for number, needle in needles:
            name, group = f"not_contains_any[{number}]", "ContainsNot"
            fields: dict[str, Any] = {"side": "contains", "forbidden": True}
            hits = list(islice(_occurrences(value.text, needle), _HITS))
            if not hits:
                yield Evidence(name, True, "", needle, None, group=group, code=Code.MISSING, fields=fields)
                continue
            spans = tuple(span for start, end in hits for span in value.spans(start, end))
            fields["lines"] = [_line(value.text, start) for start, _ in hits]
            yield Evidence(name, False, "", needle, needle, spans, group=group, code=Code.PRESENT, fields=fields)

    return Condition("not_contains_any", "ContainsNot", holds, evidence)


def _holds(side: Side, needle: str, ignore_case: bool) -> Callable[[Value], bool]:
    if ignore_case:
        lowered = needle.lower()
        if side == "equals":
            return lambda value: value.lower == lowered
        return lambda value: lowered in value.lower
    table: dict[Side, Callable[[Value], bool]] = {
        "equals": lambda value: value.text == needle,
        "contains": lambda value: needle in value.text,
        "starts_with": lambda value: value.text.startswith(needle),
        "ends_with": lambda value: value.text.endswith(needle),
    }
    return table[side]


def _find(side: Side, needle: str, ignore_case: bool, value: Value) -> tuple[int, int] | None:
    """Start and end in the text where the condition holds; None when it does not."""
    text, wanted = (value.lower, needle.lower()) if ignore_case else (value.text, needle)
    if side == "equals":
        return (0, len(value.text)) if text == wanted else None
    if side == "starts_with":
        return (0, len(wanted)) if text.startswith(wanted) else None
    if side == "ends_with":
        return (len(text) - len(wanted), len(text)) if text.endswith(wanted) else None
    start = text.find(wanted)
    if start < 0:
        return None
    end = start + len(wanted)
    return value.in_text(start, end) if ignore_case else (start, end)


def _look(
    name: str, group: str, side: Side, needle: str, ignore_case: bool, value: Value, near: bool = True
) -> Evidence:
    at = _find(side, needle, ignore_case, value)
    if at is not None:
        text, (start, end) = value.text, at
        fields: dict[str, Any] = {"side": side}
        if side == "contains":
            fields["line"] = _line(text, start)
        code = Code.EQUAL if side == "equals" else Code.PRESENT
        return Evidence(
            name, True, "", needle, _kept(text[start:end]), value.spans(start, end), (), group, code, fields
        )
    miss = _nearest(value, needle, side, ignore_case) if near else None
    return _missed(name, group, needle, side, value, miss)


def _nearest(value: Value, needle: str, side: Side, ignore_case: bool) -> Miss | None:
    # Late: what checks or grades without explaining needs none of it, and it brings the regex package.
    from agenteval_tui.grading.nearest import nearest

    return nearest(value, needle, side, ignore_case)


def _missed(name: str, group: str, expected: Any, side: Side, value: Value, miss: Miss | None) -> Evidence:
    text = value.text
    looked_at: tuple[Span, ...] = ()
    found: str | None = None
    if side == "equals":
        found, looked_at = _kept(text), value.spans(0, len(text))
    elif side == "starts_with":
        found = text[: _length(expected)]
        looked_at = value.spans(0, len(found))
    elif side == "ends_with":
        found = text[max(0, len(text) - _length(expected)) :]
        looked_at = value.spans(len(text) - len(found), len(text))
    fields: dict[str, Any] = {"side": side}
    if not text:
        fields["empty"] = True
    elif miss is not None:
        fields["near"] = miss.fields
        if side == "contains":
            found = _kept(text[miss.start : miss.end])
    near = value.spans(miss.start, miss.end) if miss is not None else ()
    code = Code.DIFFERS if side == "equals" else Code.MISSING
    return Evidence(name, False, "", expected, found, looked_at, near, group, code, fields)


def _length(expected: Any) -> int:
    longest = len(expected) if isinstance(expected, str) else max(len(needle) for needle in expected)
    return min(longest, FOUND)


def _occurrences(text: str, needle: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + len(needle))


def _kept(text: str) -> str:
    return text if len(text) <= FOUND else text[: FOUND - 1] + "…"


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
