"""The scores of a ToolCheck: usage, arguments and forbidden tools, as Power UI counts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agenteval_tui.grading.metrics.matchers import Matcher, compile_matcher
from agenteval_tui.grading.metrics.metric import Context
from agenteval_tui.grading.results import MetricResult
from agenteval_tui.grading.value import Value
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.model import ToolCall

if TYPE_CHECKING:
    from agenteval_tui.grading.metrics.tool_check import ToolCheck, ToolCheckData

USAGE, ARGUMENTS, FORBIDDEN = 0.5, 0.3, 0.2
CAP = 0.25
"""The best score when a required tool is missing or a forbidden one was called."""


@dataclass(frozen=True, slots=True)
class Expected:
    """One named argument: any of its matchers will do. `values` are the matchers as they are written."""

    name: str
    matchers: tuple[Matcher, ...]
    values: tuple[Any, ...] = ()

    @property
    def optional(self) -> bool:
        """Whether it may be absent."""
        return any(matcher.optional for matcher in self.matchers)

    def holds(self, value: Any) -> bool:
        """Whether `value` is right."""
        return any(matcher.holds(value) for matcher in self.matchers)

    @property
    def said(self) -> str:
        """What is expected, in words."""
        return " or ".join(matcher.said for matcher in self.matchers)


class Tool:
    """One entry of `tools` made ready."""

    def __init__(self, data: ToolCheckData) -> None:
        self.data = data
        self.name = data.name
        self.required = data.required
        self.least = data.least
        self.most = data.max_calls
        self.additional = data.allow_additional_arguments
        self.expected: tuple[Expected, ...] | None = None
        if data.arguments is not None:
            listed = data.arguments if isinstance(data.arguments, list) else [data.arguments]
            values: dict[str, list[Any]] = {}
            for one in listed:
                for name, value in one.items():
                    values.setdefault(name, []).append(value)
            self.expected = tuple(
                Expected(name, tuple(compile_matcher(value, named=True) for value in written), tuple(written))
                for name, written in values.items()
            )
        self._names = frozenset(one.name for one in self.expected or ())
        self._optional = frozenset(one.name for one in self.expected or () if one.optional)

    def usage(self, calls: int) -> float:
        """1 when the number of calls is right; 0 when a required tool was never called; else 0.5."""
        if calls == 0:
            return 0.0 if self.required else 1.0
        return 1.0 if self.least <= calls and (self.most is None or calls <= self.most) else 0.5

    def right(self, call: ToolCall) -> bool:
        """Whether the call's arguments are right. Raises `SlowPatternError`."""
        expected = self.expected
        if expected is None:
            return True
        given = arguments_of(call)
        if given is None:
            # Arguments that are no JSON object have no names: right only when none is asked for and any may be given.
            return not expected and self.additional
        for one in expected:
            if one.name not in given:
                if one.name in self._optional:
                    continue
                return False
            matchers = one.matchers
            if not (matchers[0].holds(given[one.name]) if len(matchers) == 1 else one.holds(given[one.name])):
                return False
        return self.additional or given.keys() <= self._names

    def additional_names(self, given: Mapping[str, Any]) -> list[str]:
        """The names of arguments that are given and not expected."""
        return [name for name in given if name not in self._names]


def arguments_of(call: ToolCall) -> Mapping[str, Any] | None:
    """The call's arguments by name; None when they are something else than a JSON object."""
    if call.arguments is None or call.arguments == "":
        return {}
    return call.arguments if isinstance(call.arguments, dict) else None


class CompiledToolCheck:
    """A ToolCheck made ready for many transcripts."""

    def __init__(self, metric: ToolCheck) -> None:
        self.metric = metric
        self.tools = tuple(Tool(data) for data in metric.tools or ())
        self.forbidden = tuple(dict.fromkeys(name for name in metric.forbidden_tools or () if name))
        self._forbidden = frozenset(self.forbidden)
        self.none_at_all = metric.tool_call_forbidden
        self._results: dict[tuple[float, bool], MetricResult] = {}

    def __call__(self, value: Value, context: Context) -> MetricResult:
        calls = value.transcript.tool_calls
        score, passed = self.score(calls)
        if not context.explain:
            result = self._results.get((score, passed))
            if result is None:
                result = self._results[score, passed] = self.metric.result(passed, score)
            return result
        from agenteval_tui.grading.metrics.tool_evidence import evidence_of

        return self.metric.result(passed, score, tuple(evidence_of(self, calls)))

    def score(self, calls: tuple[ToolCall, ...]) -> tuple[float, bool]:
        """The score, and whether every part is right."""
        if self.none_at_all:
            if calls:
                return 0.0, False
            if not self.tools and not self.forbidden:
                return 1.0, True
        by_name: dict[str, list[ToolCall]] = {}
        for call in calls:
            by_name.setdefault(call.name, []).append(call)
        usage = arguments = float(len(self.tools))
        capped = False
        for tool in self.tools:
            own = by_name.get(tool.name)
            if own is None:
                if tool.required:
                    usage -= 1
                    arguments -= 1
                    capped = True
                continue
            usage -= 1 - tool.usage(len(own))
            if tool.expected is not None:
                wrong = 0
                for call in own:
                    if not tool.right(call):
                        wrong += 1
                arguments -= wrong / len(own)
        number = len(self.tools) or 1
        if not self.tools:
            usage = arguments = 1.0
        forbidden = self._forbidden.isdisjoint(by_name)
        score = USAGE * usage / number + ARGUMENTS * arguments / number + FORBIDDEN * forbidden
        passed = forbidden and usage == number and arguments == number
        if passed:
            return 1.0, True
        score = max(0.0, min(score, 1.0))
        return (min(score, CAP) if capped or not forbidden else score), False
