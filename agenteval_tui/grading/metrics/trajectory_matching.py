"""Which call of a run is which of the expected ones, and what the modes of a Trajectory make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.metrics.matchers import Matcher, compile_matcher, same_json, type_of
from agenteval_tui.grading.metrics.matching import largest_matching
from agenteval_tui.grading.metrics.metric import Context
from agenteval_tui.grading.metrics.tool_scoring import arguments_of
from agenteval_tui.grading.metrics.verdicts import kept_value, quick_results, with_evidence
from agenteval_tui.grading.results import MetricResult
from agenteval_tui.grading.value import Value
from agenteval_tui.grading.words import shown
from agenteval_tui.transcripts.model import ToolCall, Transcript

if TYPE_CHECKING:
    from agenteval_tui.grading.metrics.trajectory import Trajectory

_MISSING = object()
_ANY_CASE = ("any", "all", "exact", "none")


class Wanted:
    """One expected call made ready."""

    def __init__(self, name: str, arguments: Any, how: str | Sequence[str], plain: bool, any_case: bool) -> None:
        self.name = name
        self.arguments = arguments
        self.how = how
        self._key = name.lower() if any_case else name
        self._any_case = any_case
        self.matchers: dict[str, Matcher] | None = None
        self._due: frozenset[str] = frozenset()
        self._paths: tuple[tuple[tuple[str, ...], Matcher | None], ...] = ()
        if isinstance(arguments, dict):
            self.matchers = {key: _matcher(item, plain) for key, item in arguments.items()}
            self._due = frozenset(key for key, matcher in self.matchers.items() if not matcher.optional)
            if not isinstance(how, str):
                paths = [(tuple(path.split(".")), _look(arguments, path.split("."))) for path in how]
                self._paths = tuple((p, None if v is _MISSING else _matcher(v, plain)) for p, v in paths)

    def named(self, call: ToolCall) -> bool:
        """Whether it is a call of this tool."""
        return (call.name.lower() if self._any_case else call.name) == self._key

    def holds(self, call: ToolCall) -> bool:
        """Whether the call is this one. Raises `SlowPatternError`."""
        if not self.named(call):
            return False
        if self.arguments is None or self.how == "ignore":
            return True
        given = arguments_of(call)
        if self.matchers is None or given is None:
            # What is no JSON object has no names to compare by; only text that is quite the same is right.
            return given is None and not call.malformed and same_json(self.arguments, call.arguments)
        if not isinstance(self.how, str):
            return all(_same(matcher, _look(given, path)) for path, matcher in self._paths)
        if self.how != "superset" and not given.keys() <= self.matchers.keys():
            return False
        if self.how != "subset" and not self._due <= given.keys():
            return False
        return all(matcher.holds(given[name]) for name, matcher in self.matchers.items() if name in given)

    def differences(self, call: ToolCall) -> list[dict[str, Any]]:
        """Each argument that is not as expected, as fields of evidence have it; the names of the tools are the same."""
        given = arguments_of(call)
        if given is None or self.matchers is None:
            found = kept_value(call.arguments)
            kind = type_of(call.arguments)
            return [{"is": "unreadable", "malformed": call.malformed, "type": kind, "found": found}]
        if not isinstance(self.how, str):
            wrong = [(path, m) for path, m in self._paths if not _same(m, _look(given, path))]
            return [_overridden(path, matcher, _look(given, path)) for path, matcher in wrong]
        parts: list[dict[str, Any]] = [
            {"is": "differs", "argument": name, "path": name, "expected": m.said, "found": kept_value(given[name])}
            for name, m in self.matchers.items()
            if name in given and not m.holds(given[name])
        ]
        if self.how != "subset":
            parts += [
                {"is": "missing", "argument": name, "path": name, "expected": m.said}
                for name, m in self.matchers.items()
                if name not in given and not m.optional
            ]
        if self.how != "superset":
            parts += [
                {"is": "extra", "argument": name, "path": name, "found": kept_value(item)}
                for name, item in given.items()
                if name not in self.matchers
            ]
        return parts

    @property
    def said(self) -> str:
        """The call in words: `get_order(order_id = "#W1")`."""
        if self.matchers is None or self.how == "ignore":
            return self.name
        return f"{self.name}({', '.join(f'{name} = {matcher.said}' for name, matcher in self.matchers.items())})"


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of a comparison. `pairs`: expected -> actual call. `structure`: how messages differ (code, fields)."""

    passed: bool
    score: float
    pairs: Mapping[int, int]
    structure: tuple[tuple[str, dict[str, Any]], ...] = field(default=())


class CompiledTrajectory:
    """A Trajectory made ready for many transcripts."""

    def __init__(self, metric: Trajectory) -> None:
        self.metric = metric
        self.mode = metric.mode
        self.reference: Transcript | None = None
        any_case = metric.mode in _ANY_CASE
        if metric.reference is not None:
            from agenteval_tui.transcripts.codec import from_openai_messages

            self.reference = from_openai_messages(metric.reference)
            listed = [
                (call.name, {} if call.arguments is None else call.arguments) for call in self.reference.tool_calls
            ]
        else:
            listed = [(call.name, call.arguments) for call in metric.calls or ()]
        overrides = metric.overrides or {}
        self.wanted = tuple(
            Wanted(name, arguments, overrides.get(name) or metric.arguments_mode, self.reference is not None, any_case)
            for name, arguments in listed
        )
        self._quick = quick_results(metric)

    def __call__(self, value: Value, context: Context) -> MetricResult:
        transcript = value.transcript
        found = self.compare(transcript)
        if not context.explain:
            return self._quick(found.passed, found.score)
        from agenteval_tui.grading.metrics.trajectory_evidence import evidence_of

        lines = evidence_of(self, found, transcript.tool_calls)
        return with_evidence(self.metric, found.passed, found.score, lines)

    def compare(self, transcript: Transcript) -> Compared:
        """The verdict, and who is paired with whom. Raises `SlowPatternError`."""
        calls = transcript.tool_calls
        if self.mode == "strict":
            return self._in_order(calls) if self.reference is None else self._message_by_message(transcript)
        if self.mode in ("any", "all", "none"):
            return self._by_tool(calls)
        pairs = largest_matching([[i for i, call in enumerate(calls) if one.holds(call)] for one in self.wanted])
        paired, wanted, actual = len(pairs), len(self.wanted), len(calls)
        if self.mode == "superset":
            return Compared(paired == wanted, _share(paired, wanted), pairs)
        if self.mode == "subset":
            return Compared(paired == actual, _share(paired, actual), pairs)
        return Compared(paired == wanted == actual, _share(2 * paired, wanted + actual), pairs)

    def _by_tool(self, calls: tuple[ToolCall, ...]) -> Compared:
        # One call may stand for several expected ones here: Umbraco asks which tools were used, not how often.
        pairs: dict[int, int] = {}
        for number, one in enumerate(self.wanted):
            hit = next((index for index, call in enumerate(calls) if one.holds(call)), None)
            if hit is not None:
                pairs[number] = hit
        share = _share(len(pairs), len(self.wanted))
        if self.mode == "all":
            return Compared(len(pairs) == len(self.wanted), share, pairs)
        hit_any = bool(pairs)
        passed = hit_any if self.mode == "any" else not hit_any
        return Compared(passed, 1.0 if passed else 0.0, pairs)

    def _in_order(self, calls: tuple[ToolCall, ...]) -> Compared:
        pairs: dict[int, int] = {}
        position = 0
        for group in _groups(calls):
            pairs.update(self._in_one_message(range(position, position + len(group)), group, calls))
            position += len(group)
        whole = max(len(self.wanted), len(calls))
        return Compared(len(pairs) == whole, _share(len(pairs), whole), pairs)

    def _in_one_message(
        self, numbers: Sequence[int], group: Sequence[int], calls: tuple[ToolCall, ...]
    ) -> dict[int, int]:
        numbers = [number for number in numbers if number < len(self.wanted)]
        found = largest_matching(
            [[at for at, index in enumerate(group) if self.wanted[number].holds(calls[index])] for number in numbers]
        )
        return {numbers[left]: group[right] for left, right in found.items()}

    def _message_by_message(self, transcript: Transcript) -> Compared:
        assert self.reference is not None
        pairs: dict[int, int] = {}
        structure: list[tuple[str, dict[str, Any]]] = []
        right = 0
        ours, theirs = transcript.messages, self.reference.messages
        for index, (message, expected) in enumerate(zip(ours, theirs, strict=False)):
            if message.role != expected.role:
                roles = {"message": index, "role": message.role, "expected_role": expected.role}
                structure.append((Code.DIFFERS, roles))
                continue
            found = self._in_one_message(expected.tool_calls, message.tool_calls, transcript.tool_calls)
            pairs.update(found)
            made, wanted = len(message.tool_calls), len(expected.tool_calls)
            if len(found) == wanted == made:
                right += 1
            elif made != wanted:
                code = Code.TOO_FEW if made < wanted else Code.TOO_MANY
                structure.append((code, {"message": index, "calls": made, "expected_calls": wanted}))
        if len(ours) != len(theirs):
            code = Code.TOO_FEW if len(ours) < len(theirs) else Code.TOO_MANY
            structure.append((code, {"messages": len(ours), "expected_messages": len(theirs)}))
        whole = max(len(ours), len(theirs))
        return Compared(right == whole, _share(right, whole), pairs, tuple(structure))


def _overridden(path: Sequence[str], matcher: Matcher | None, given: Any) -> dict[str, Any]:
    """How what an override names differs; one of a path that is not in what was expected has no matcher."""
    made: dict[str, Any] = {"is": "differs", "argument": path[0], "path": ".".join(path)}
    made["expected"] = matcher.said if matcher is not None else "nothing"
    return {**made, "absent": True} if given is _MISSING else {**made, "found": kept_value(given)}


def _groups(calls: tuple[ToolCall, ...]) -> list[list[int]]:
    """The calls of each message together; they were made at once, so they have no order."""
    groups: list[list[int]] = []
    for index, call in enumerate(calls):
        if groups and call.message is not None and calls[groups[-1][-1]].message == call.message:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _matcher(value: Any, plain: bool) -> Matcher:
    # What was recorded is what it is: a `$` in it means nothing.
    return Matcher(lambda given: same_json(value, given), shown(value)) if plain else compile_matcher(value, named=True)


def _same(matcher: Matcher | None, given: Any) -> bool:
    if matcher is None or given is _MISSING:
        return given is _MISSING and (matcher is None or matcher.optional)
    return matcher.holds(given)


def _look(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
