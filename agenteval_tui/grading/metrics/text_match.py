"""`TextMatch`: whole texts, parts, beginnings and ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal

from msgspec import Struct
from pydantic import Field

from agenteval_tui.core.errors import line_of
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import ANSWER_TEXTS
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric
from agenteval_tui.grading.near_miss import NearMatch, nearest
from agenteval_tui.grading.placeholders import has_placeholders
from agenteval_tui.grading.results import FOUND, Evidence, MetricResult, Span, as_evidence

Test = tuple[int, Callable[[Value], bool]]
Side = Literal["equals", "contains", "starts_with", "ends_with"]
_GROUPS = ("Contains", "ContainsNot", "StartsWith", "EndsWith", "Equals")
_HITS = 20
_NEAR_OF_LIST = 12  # near misses are searched for this many needles of a list; each may cost milliseconds
Path = tuple[str | int, ...]
_LISTS = ("contains_all", "contains_any", "not_contains_any", "starts_with_any", "ends_with_any")
_SINGLE = ("contains", "contains_ignore_case", "starts_with", "ends_with")


class TextMatch(Metric):
    """Compares the text with given texts: as a whole, in part, at its beginning or end. Every condition must be met.

    There are five groups of conditions: contains, doesn't contain, starts with, ends with, equals. The score is the
    share of groups whose conditions are all met. Case matters, except for properties with `ignore_case` in their name.
    """

    equals: str | None = Field(None, description="The whole text is exactly this.", json_schema_extra=ANSWER_TEXTS)
    equals_ignore_case: str | None = Field(
        None, description="The whole text is this, ignoring case.", json_schema_extra=ANSWER_TEXTS
    )
    contains: str | None = Field(None, description="The text contains this.", json_schema_extra=ANSWER_TEXTS)
    contains_ignore_case: str | None = Field(
        None, description="The text contains this, ignoring case.", json_schema_extra=ANSWER_TEXTS
    )
    contains_all: list[str] | None = Field(
        None, description="The text contains all of these.", json_schema_extra=ANSWER_TEXTS
    )
    contains_any: list[str] | None = Field(
        None, description="The text contains at least one of these.", json_schema_extra=ANSWER_TEXTS
    )
    not_contains_any: list[str] | None = Field(
        None, description="The text contains none of these.", json_schema_extra=ANSWER_TEXTS
    )
    starts_with: str | None = Field(None, description="The text begins with this.", json_schema_extra=ANSWER_TEXTS)
    starts_with_any: list[str] | None = Field(
        None, description="The text begins with one of these.", json_schema_extra=ANSWER_TEXTS
    )
    ends_with: str | None = Field(None, description="The text ends with this.", json_schema_extra=ANSWER_TEXTS)
    ends_with_any: list[str] | None = Field(
        None, description="The text ends with one of these.", json_schema_extra=ANSWER_TEXTS
    )

    def checks_nothing(self) -> bool:
        # Asked three times for each metric of a suite: no condition is made for it.
        singles, lists = [getattr(self, name) for name in _SINGLE], [getattr(self, name) for name in _LISTS]
        return (
            self.equals is None
            and self.equals_ignore_case is None
            and not any(singles)
            and not any(map(any, filter(None, lists)))
        )

    def compile(self) -> Check:
        return _Compiled(self, conditions_of(self))

    def findings(self) -> Iterator[ConfigWarning]:
        return findings_of(self)


class _Compiled:
    """A TextMatch made ready for many texts. Without evidence its few possible results are made once."""

    def __init__(self, metric: TextMatch, conditions: tuple[Condition, ...]) -> None:
        self._metric = metric
        self._conditions = conditions
        groups = list(dict.fromkeys(condition.group for condition in conditions))
        self._groups = len(groups)
        self._tests: tuple[Test, ...] = tuple(
            (groups.index(condition.group), condition.holds) for condition in conditions
        )
        self._results: dict[int, MetricResult] = {}

    def __call__(self, value: Value, context: Context) -> MetricResult:
        broken = 0
        for group, holds in self._tests:
            if not broken >> group & 1 and not holds(value):
                broken |= 1 << group
        if not context.explain:
            result = self._results.get(broken)
            if result is None:
                result = self._results[broken] = self._result(broken)
            return result
        evidence: list[Evidence] = []
        for condition in self._conditions:
            evidence += condition.evidence(value)
        return self._result(broken, tuple(evidence))

    def _result(self, broken: int, evidence: tuple[Evidence, ...] = ()) -> MetricResult:
        score = (self._groups - broken.bit_count()) / self._groups
        return self._metric.result(broken == 0, score, evidence)


# The conditions of a TextMatch: whether each holds of a text, and the evidence for it


class Condition(Struct, frozen=True):
    """One condition: its name in evidence, its group, whether it holds, and the evidence (one or a line a needle)."""

    name: str
    group: str
    holds: Callable[[Value], bool]
    evidence: Callable[[Value], Iterator[Evidence]]


def conditions_of(metric: TextMatch) -> tuple[Condition, ...]:
    """The configured conditions. Empty needles are ignored, except in `equals`."""
    conditions: list[Condition] = []
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
            conditions.append(_one(name, group, side, needle, ignore_case))
    if needles := _needles(metric.contains_all):
        conditions.append(_all(needles))
    many: tuple[tuple[str, str, Side], ...] = (
        ("contains_any", "Contains", "contains"),
        ("starts_with_any", "StartsWith", "starts_with"),
        ("ends_with_any", "EndsWith", "ends_with"),
    )
    for name, group, side in many:
        if needles := _needles(getattr(metric, name)):
            conditions.append(_any(name, group, side, needles))
    if needles := _needles(metric.not_contains_any):
        conditions.append(_none(needles))
    return tuple(sorted(conditions, key=lambda condition: _GROUPS.index(condition.group)))


def _needles(texts: list[str] | None) -> tuple[tuple[int, str], ...]:
    """The needles that count, with their places in the list."""
    return tuple((number, needle) for number, needle in enumerate(texts or ()) if needle)


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
            line = _look(
                f"contains_all[{number}]",
                "Contains",
                side="contains",
                needle=needle,
                ignore_case=False,
                value=value,
                near=near,
            )
            missed += not line.passed
            yield line

    return Condition("contains_all", "Contains", holds, evidence)


def _has_any(text: str, needles: tuple[str, ...]) -> bool:
    # Not `any`, which takes 1.7 times as long for three needles in a text of 200 characters: each keystroke grades
    # thousands of runs.
    for needle in needles:  # noqa: SIM110
        if needle in text:
            return True
    return False


def _any(name: str, group: str, side: Side, needles: tuple[tuple[int, str], ...]) -> Condition:
    texts = tuple(needle for _, needle in needles)
    holds: dict[Side, Callable[[Value], bool]] = {
        "contains": lambda value: _has_any(value.text, texts),
        "starts_with": lambda value: value.text.startswith(texts),
        "ends_with": lambda value: value.text.endswith(texts),
    }

    def evidence(value: Value) -> Iterator[Evidence]:
        hits = [(needle, at) for needle in texts if (at := _find(side, needle, False, value)) is not None]
        if hits:
            spans = tuple(span for _, at in hits[:_HITS] for span in value.spans(*at))
            matched = [needle for needle, _ in hits]
            fields = {"side": side}
            yield Evidence(name, True, "", list(texts), matched, spans, group=group, code=Code.PRESENT, fields=fields)
            return
        misses = [nearest(value, needle, side, False) for needle in texts[:_NEAR_OF_LIST]]
        near = [(miss, number) for number, miss in enumerate(misses) if miss is not None]
        best, of = max(near, key=lambda pair: pair[0].likeness, default=(None, 0))
        missed = _missed(name, group, list(texts), side, value, best)
        if best is not None:
            missed.fields["near"] = {**best.fields, "of": of}
        yield missed

    return Condition(name, group, holds[side], evidence)


def _none(needles: tuple[tuple[int, str], ...]) -> Condition:
    texts = tuple(needle for _, needle in needles)

    def evidence(value: Value) -> Iterator[Evidence]:
        for number, needle in needles:
            name, group = f"not_contains_any[{number}]", "ContainsNot"
            fields: dict[str, Any] = {"side": "contains", "forbidden": True}
            hits = list(islice(_occurrences(value.text, needle), _HITS))
            if not hits:
                yield Evidence(name, True, "", needle, None, group=group, code=Code.MISSING, fields=fields)
                continue
            spans = tuple(span for start, end in hits for span in value.spans(start, end))
            fields["lines"] = [line_of(value.text, start) for start, _ in hits]
            yield Evidence(name, False, "", needle, needle, spans, group=group, code=Code.PRESENT, fields=fields)

    return Condition("not_contains_any", "ContainsNot", lambda value: not _has_any(value.text, texts), evidence)


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
    text, target = (value.lower, needle.lower()) if ignore_case else (value.text, needle)
    if side == "equals":
        return (0, len(value.text)) if text == target else None
    if side == "starts_with":
        return (0, len(target)) if text.startswith(target) else None
    if side == "ends_with":
        return (len(text) - len(target), len(text)) if text.endswith(target) else None
    start = text.find(target)
    if start < 0:
        return None
    end = start + len(target)
    return value.in_text(start, end) if ignore_case else (start, end)


def _look(
    name: str, group: str, side: Side, needle: str, ignore_case: bool, value: Value, near: bool = True
) -> Evidence:
    at = _find(side, needle, ignore_case, value)
    if at is not None:
        text, (start, end) = value.text, at
        fields: dict[str, Any] = {"side": side}
        if side == "contains":
            fields["line"] = line_of(text, start)
        code = Code.EQUAL if side == "equals" else Code.PRESENT
        return Evidence(
            name,
            passed=True,
            expected=needle,
            found=as_evidence(text[start:end]),
            spans=value.spans(start, end),
            group=group,
            code=code,
            fields=fields,
        )
    miss = nearest(value, needle, side, ignore_case) if near else None
    return _missed(name, group, needle, side, value, miss)


def _missed(name: str, group: str, expected: object, side: Side, value: Value, miss: NearMatch | None) -> Evidence:
    text = value.text
    looked_at: tuple[Span, ...] = ()
    excerpt: str | None = None
    if side == "equals":
        excerpt, looked_at = as_evidence(text), value.spans(0, len(text))
    elif side == "starts_with":
        excerpt = text[: _length(expected)]
        looked_at = value.spans(0, len(excerpt))
    elif side == "ends_with":
        excerpt = text[max(0, len(text) - _length(expected)) :]
        looked_at = value.spans(len(text) - len(excerpt), len(text))
    fields: dict[str, Any] = {"side": side}
    if not text:
        fields["empty"] = True
    elif miss is not None:
        fields["near"] = miss.fields
        if side == "contains":
            excerpt = as_evidence(text[miss.start : miss.end])
    near = value.spans(miss.start, miss.end) if miss is not None else ()
    code = Code.DIFFERS if side == "equals" else Code.MISSING
    return Evidence(
        name,
        passed=False,
        expected=expected,
        found=excerpt,
        spans=looked_at,
        near=near,
        group=group,
        code=code,
        fields=fields,
    )


def _length(expected: Any) -> int:
    longest = len(expected) if isinstance(expected, str) else max(len(needle) for needle in expected)
    return min(longest, FOUND)


def _occurrences(text: str, needle: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + len(needle))


# What is contradictory or without effect in the properties of a TextMatch


def findings_of(metric: TextMatch) -> Iterator[ConfigWarning]:
    """Checks nothing, contradictory, without effect.

    What holds a placeholder is not known yet: nothing is said of it.
    """
    yield from _empty(metric)
    metric = _without_placeholders(metric)
    yield from _forbidden_and_required(metric)
    yield from _equals_against_the_rest(metric)
    yield from _sides(metric)
    yield from _implied(metric)


def _empty(metric: TextMatch) -> Iterator[ConfigWarning]:
    for name in _LISTS:
        needles = getattr(metric, name)
        if needles is None:
            continue
        if not needles:
            yield ConfigWarning("warning", "checks-nothing", f"`{name}` is empty: it checks nothing", (name,))
        for number, needle in enumerate(needles):
            if not needle:
                yield ConfigWarning("warning", "checks-nothing", "an empty text is ignored here", (name, number))
            elif needle in needles[:number]:
                yield ConfigWarning("info", "duplicate", f"{quoted(needle)} is in the list already", (name, number))
    for name in _SINGLE:
        if getattr(metric, name) == "":
            yield ConfigWarning("warning", "checks-nothing", f"`{name}` is empty: it is ignored", (name,))
    if metric.checks_nothing():
        yield ConfigWarning("warning", "checks-nothing", "this TextMatch has no condition: it checks nothing")


def _without_placeholders(metric: TextMatch) -> TextMatch:
    names = [name for name in metric.model_fields_set if has_placeholders(getattr(metric, name))]
    return metric.model_copy(update=dict.fromkeys(names)) if names else metric


def _texts(metric: TextMatch, name: str) -> list[str]:
    """The texts of a list that count."""
    return [needle for _, needle in _needles(getattr(metric, name))]


def _required(metric: TextMatch) -> Iterator[tuple[str, Path, bool]]:
    """Texts that must be in the value: the text, where it is written, whether its case does not matter."""
    for name in ("equals", "contains", "starts_with", "ends_with"):
        needle = getattr(metric, name)
        if needle:
            yield needle, (name,), False
    for name in ("equals_ignore_case", "contains_ignore_case"):
        needle = getattr(metric, name)
        if needle:
            yield needle, (name,), True
    for number, needle in enumerate(metric.contains_all or ()):
        if needle:
            yield needle, ("contains_all", number), False
    for name in ("contains_any", "starts_with_any", "ends_with_any"):
        needles = _texts(metric, name)
        if len(needles) == 1:
            yield needles[0], (name,), False


def _forbidden_and_required(metric: TextMatch) -> Iterator[ConfigWarning]:
    required = list(_required(metric))
    for number, forbidden in enumerate(metric.not_contains_any or ()):
        if not forbidden:
            continue
        path: Path = ("not_contains_any", number)
        for needle, where, ignore_case in required:
            # A text in any case contains the forbidden one only perhaps, unless it has no case.
            held = forbidden in needle and (not ignore_case or forbidden.lower() == forbidden.upper())
            if held:
                both = "both required and forbidden" if forbidden == needle else f"forbidden, but part of `{where[0]}`"
                yield ConfigWarning(
                    "error", "contradictory", f"{quoted(forbidden)} is {both}: this can never pass", path
                )
                break
        else:
            for name in ("contains_any", "starts_with_any", "ends_with_any"):
                needles = _texts(metric, name)
                if len(needles) > 1 and all(forbidden in needle for needle in needles):
                    text = f"{quoted(forbidden)} is forbidden, but part of each text in `{name}`: this can never pass"
                    yield ConfigWarning("error", "contradictory", text, path)
                    break


def _equals_against_the_rest(metric: TextMatch) -> Iterator[ConfigWarning]:
    for name in ("equals", "equals_ignore_case"):
        whole = getattr(metric, name)
        if whole is None:
            continue
        fold = str.lower if name == "equals_ignore_case" else str
        text = fold(whole)
        for side in ("contains", "starts_with", "ends_with"):
            needle = getattr(metric, side)
            if needle and not _satisfies(side, text, fold(needle)):
                yield _against(name, side, whole)
            needles = _texts(metric, f"{side}_any")
            if needles and not any(_satisfies(side, text, fold(needle)) for needle in needles):
                yield _against(name, f"{side}_any", whole)
        for number, needle in enumerate(metric.contains_all or ()):
            if needle and fold(needle) not in text:
                yield _against(name, "contains_all", whole, number)
        if metric.contains_ignore_case and metric.contains_ignore_case.lower() not in whole.lower():
            yield _against(name, "contains_ignore_case", whole)
    if (
        metric.equals is not None
        and metric.equals_ignore_case is not None
        and metric.equals.lower() != metric.equals_ignore_case.lower()
    ):
        yield _against("equals", "equals_ignore_case", metric.equals)


def _satisfies(side: str, text: str, needle: str) -> bool:
    if side == "contains":
        return needle in text
    return text.startswith(needle) if side == "starts_with" else text.endswith(needle)


def _against(name: str, other: str, whole: str, *more: int) -> ConfigWarning:
    text = f"`{other}` does not hold of the text that `{name}` wants ({quoted(whole, 40)}): this can never pass"
    return ConfigWarning("error", "contradictory", text, (other, *more))


def _sides(metric: TextMatch) -> Iterator[ConfigWarning]:
    for field, many, kind in (("starts_with", "starts_with_any", "begin"), ("ends_with", "ends_with_any", "end")):
        single = getattr(metric, field)
        needles = _texts(metric, many)
        if not single or not needles:
            continue
        if kind == "begin":
            fits = any(single.startswith(needle) or needle.startswith(single) for needle in needles)
        else:
            fits = any(single.endswith(needle) or needle.endswith(single) for needle in needles)
        if not fits:
            text = f"no text can {kind} with `{field}` and with one of `{many}`: this can never pass"
            yield ConfigWarning("error", "contradictory", text, (many,))


def _implied(metric: TextMatch) -> Iterator[ConfigWarning]:
    if metric.equals is None:
        return
    set_names = {name for name in metric.model_fields_set if getattr(metric, name) is not None}
    set_names -= {"equals", "name", "weight"}
    if set_names and not list(_equals_against_the_rest(metric)):
        names = ", ".join(f"`{name}`" for name in type(metric).model_fields if name in set_names)
        yield ConfigWarning("info", "without-effect", f"`equals` says it all: {names} can change nothing", ("equals",))
