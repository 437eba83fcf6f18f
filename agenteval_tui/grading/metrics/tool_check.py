"""`ToolCheck`: which tools were called, how often, and with which arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal

from msgspec import Struct, field
from pydantic import AliasChoices, BaseModel, Field, field_validator

from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.phrasing import quoted, shown
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import EXACT, TOOL_ARGUMENTS, TOOL_NAMES, no_null
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.hungarian import assign
from agenteval_tui.grading.metrics.matchers import (
    MATCHER_EXAMPLES,
    Matcher,
    compile_matcher,
    is_matcher,
    is_number,
    plain_value,
    same_json,
    taken_for_matcher,
    type_of,
    usable_arguments,
)
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric, quick_results
from agenteval_tui.grading.near_miss import part_around, would_match
from agenteval_tui.grading.results import Evidence, MetricResult, Span, kept_value
from agenteval_tui.grading.sentences import wanted_phrase
from agenteval_tui.transcripts.model import ToolCall
from agenteval_tui.transcripts.observed import ObservedKind

USAGE, ARGUMENTS, FORBIDDEN = 0.5, 0.3, 0.2
CAP = 0.25
"""The best score when a required tool is missing or a forbidden one was called."""
_SPANS = 50
_CALLS = 100
_NEAREST = 5  # expected calls of one entry that are said with their nearest actual call
Numbered = list[tuple[int, ToolCall]]
Path = tuple[str | int, ...]
Leaf = tuple[Path, Any, Any]
Kind = Literal["differs", "missing", "extra", "unreadable"]
_SHORT = 12
"""Characters up to which a person sees at once where two texts part."""
_COMPARED = 2_000
_LONGEST_QUOTE = 40
MOST_SLOTS = 40
MOST_CALLS = 120
"""Calls that are compared: those of the expected names first. What is beyond is judged, but not paired."""
_ALIKE = 0.7
_OTHER_NAME = 2.0  # a call of another name is never nearer than one of the right name
_SAME_ARGUMENTS = 0.25


class ToolCheckData(BaseModel):
    """What you expect of one tool: how often it is called, and with which arguments."""

    model_config = EXACT
    _no_null = no_null

    name: str = Field(min_length=1, description="The tool's name, as the agent calls it.", json_schema_extra=TOOL_NAMES)
    required: bool = Field(True, description="Whether the tool must be called at all.")
    min_calls: int | None = Field(
        None, ge=0, description="At least this many calls. Default: 1 if the tool is required, otherwise 0."
    )
    max_calls: int | None = Field(None, ge=0, description="At most this many calls. Default: any number.")
    arguments: dict[str, Any] | list[dict[str, Any]] | None = Field(
        None,
        description="The arguments of each call: names with expected values (any JSON), or with matchers such as "
        '{"$any": true}, {"$contains": "x"}, {"$regex": "..."}, {"$one_of": [...]}, {"$gte": 1}, {"$optional": "x"} '
        "(may be absent; if present, it is x). In a list of objects, an argument may occur several times: then any "
        "of its values is right.",
        examples=MATCHER_EXAMPLES,
        json_schema_extra=TOOL_ARGUMENTS,
    )
    allow_additional_arguments: bool = Field(
        False, description="Whether the call may have more arguments than those in `arguments`."
    )

    _usable = field_validator("arguments")(usable_arguments)

    @property
    def least(self) -> int:
        """The smallest right number of calls."""
        return self.min_calls if self.min_calls is not None else int(self.required)


class ToolCheck(Metric):
    """Checks the tool calls: which tools were called, how often, with which arguments, and which must not be called.

    The score is 0.5 for usage, 0.3 for arguments and 0.2 for forbidden tools. It is at most 0.25 if a required tool is
    missing or a forbidden one was called. The metric checks the calls themselves, not what the prototype class
    extracts.
    """

    any_json: ClassVar[frozenset[str]] = frozenset({"arguments"})

    tools: list[ToolCheckData] | None = Field(
        None,
        validation_alias=AliasChoices("tools", "tool"),
        description="The expected tools, one entry per tool: every call of a tool is measured against its entry. If "
        "calls of one tool have different arguments, give that entry a list of `arguments` and `min_calls`. To require "
        "each of these calls, use Trajectory.",
    )
    forbidden_tools: list[str] | None = Field(
        None, description="Tools that must not be called.", json_schema_extra=TOOL_NAMES
    )
    tool_call_forbidden: bool = Field(False, description="true: no tool may be called at all.")

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("tool_calls",))

    def checks_nothing(self) -> bool:
        return not (self.tools or any(self.forbidden_tools or ()) or self.tool_call_forbidden)

    def compile(self) -> Check:
        return CompiledToolCheck(self)

    def findings(self) -> Iterator[ConfigWarning]:
        return findings_of(self)


# What is contradictory or without effect in the properties of a ToolCheck


def findings_of(metric: ToolCheck) -> Iterator[ConfigWarning]:
    """Checks nothing, contradictory, cannot fail, without effect."""
    tools = metric.tools or []
    if metric.checks_nothing():
        yield ConfigWarning("warning", "checks-nothing", "this ToolCheck names no tool: it checks nothing")
        return
    forbidden = [name for name in metric.forbidden_tools or () if name]
    earlier: set[str] = set()
    for number, tool in enumerate(tools):
        at = ("tools", number)
        yield from _tool(tool, at)
        if tool.name in forbidden and (tool.required or tool.least):
            text = f"{quoted(tool.name)} is both required and forbidden: this can never pass"
            yield ConfigWarning("error", "contradictory", text, ("forbidden_tools", _place(metric, tool.name)))
        elif tool.name in forbidden:
            text = f"{quoted(tool.name)} is forbidden: this has no effect"
            yield ConfigWarning("warning", "without-effect", text, (*at, "name"))
        if metric.tool_call_forbidden and tool.required:
            text = f"{quoted(tool.name)} is required, but no tool may be called: this can never pass"
            yield ConfigWarning("error", "contradictory", text, ("tool_call_forbidden",))
        if tool.name in earlier:
            text = (
                f"{quoted(tool.name)} is listed twice: every call of it is measured against both. For calls with "
                "different arguments, make one entry with a list of `arguments` and with `min_calls`"
            )
            yield ConfigWarning("warning", "duplicate", text, (*at, "name"))
        earlier.add(tool.name)
    for number, name in enumerate(metric.forbidden_tools or ()):
        if not name:
            yield ConfigWarning(
                "warning", "checks-nothing", "an empty name is ignored here", ("forbidden_tools", number)
            )
        elif name in (metric.forbidden_tools or ())[:number]:
            yield ConfigWarning(
                "info", "duplicate", f"{quoted(name)} is in the list already", ("forbidden_tools", number)
            )
    if metric.tool_call_forbidden and forbidden and not tools:
        text = "`tool_call_forbidden` forbids every tool: this list can change nothing"
        yield ConfigWarning("info", "without-effect", text, ("forbidden_tools",))
    if tools and not forbidden and not metric.tool_call_forbidden and all(_cannot_fail(tool) for tool in tools):
        text = "this cannot fail: no tool is required, and any number of calls with any arguments is right"
        yield ConfigWarning("warning", "cannot-fail", text, ("tools",))


def _tool(tool: ToolCheckData, at: tuple[str | int, ...]) -> Iterator[ConfigWarning]:
    if tool.max_calls is not None and tool.least > tool.max_calls:
        if tool.min_calls is not None:
            text = f"`min_calls` {tool.min_calls} is more than `max_calls` {tool.max_calls}: this can never pass"
            yield ConfigWarning("error", "contradictory", text, (*at, "min_calls"))
        else:
            text = f"{quoted(tool.name)} is required (`required` is true), but `max_calls` is 0: this can never pass"
            yield ConfigWarning("error", "contradictory", text, (*at, "max_calls"))
    if tool.required and tool.min_calls == 0:
        text = "`min_calls` 0 has no effect while the tool is required: it must be called once"
        yield ConfigWarning("warning", "without-effect", text, (*at, "min_calls"))
    if tool.allow_additional_arguments and tool.arguments is None:
        text = "without `arguments` no argument is checked: this has no effect"
        yield ConfigWarning("info", "without-effect", text, (*at, "allow_additional_arguments"))


def _cannot_fail(tool: ToolCheckData) -> bool:
    anything = tool.arguments is None or (not tool.arguments and tool.allow_additional_arguments)
    # An optional tool with a minimum fails when it is called less often than that.
    return not tool.required and tool.least <= 1 and tool.max_calls is None and anything


def _place(metric: ToolCheck, name: str) -> int:
    return (metric.forbidden_tools or []).index(name)


# The scores of a ToolCheck: usage, arguments and forbidden tools, as Power UI counts them


class Expected(Struct, frozen=True):
    """One named argument: any of its matchers will do. `values` are the matchers as they are written."""

    name: str
    matchers: tuple[Matcher, ...]
    values: tuple[Any, ...] = ()

    @property
    def optional(self) -> bool:
        """Whether it may be absent."""
        return any(matcher.optional for matcher in self.matchers)

    def holds(self, value: object) -> bool:
        """Whether `value` is right."""
        return any(matcher.holds(value) for matcher in self.matchers)

    @property
    def description(self) -> str:
        """What is expected, in words."""
        return " or ".join(matcher.description for matcher in self.matchers)


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
            values = grouped((name, value) for entry in listed for name, value in entry.items())
            self.expected = tuple(
                Expected(name, tuple(compile_matcher(value, named=True) for value in written), tuple(written))
                for name, written in values.items()
            )
        self._names = frozenset(expected.name for expected in self.expected or ())
        self._optional = frozenset(expected.name for expected in self.expected or () if expected.optional)

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
        arguments = arguments_of(call)
        if arguments is None:
            # Arguments that are no JSON object have no names: right only when none is asked for and any may be given.
            return not expected and self.additional
        for argument in expected:
            if argument.name not in arguments:
                if argument.name in self._optional:
                    continue
                return False
            matchers = argument.matchers
            # Nearly always there is one matcher: a generator over it would cost more than the comparison.
            if not (
                matchers[0].holds(arguments[argument.name])
                if len(matchers) == 1
                else argument.holds(arguments[argument.name])
            ):
                return False
        return self.additional or arguments.keys() <= self._names

    def additional_names(self, arguments: Mapping[str, Any]) -> list[str]:
        """The names of arguments that are given and not expected."""
        return [name for name in arguments if name not in self._names]


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
        self._quick = quick_results(metric)

    def __call__(self, value: Value, context: Context) -> MetricResult:
        calls = value.transcript.tool_calls
        score, passed = self.score(calls)
        if not context.explain:
            return self._quick(passed, score)
        return self.metric.result(passed, score, evidence_of(self, calls))

    def score(self, calls: tuple[ToolCall, ...]) -> tuple[float, bool]:
        """The score, and whether every part is right."""
        if self.none_at_all:
            if calls:
                return 0.0, False
            if not self.tools and not self.forbidden:
                return 1.0, True
        by_name = grouped((call.name, call) for call in calls)
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
            return 1.0, True  # and not 0.9999999999999999
        return (min(score, CAP) if capped or not forbidden else score), False


# The evidence of a ToolCheck: each part, with the calls and arguments that it is about


def evidence_of(check: CompiledToolCheck, calls: tuple[ToolCall, ...]) -> Iterator[Evidence]:
    """A line for each tool's usage, for each of its calls' arguments, for each forbidden tool."""
    if check.none_at_all:
        yield _none_at_all(calls)
    # What is nearest is looked for only where something is missing or wrong.
    right = check.score(calls)[1]
    paired = () if right else nearest_calls(check.tools, calls)
    entries = {pair.call: pair.tool for pair in paired if pair.same_name}
    faulty = _faulty_tools(check, calls, entries)
    for number, tool in enumerate(check.tools):
        own = [(index, call) for index, call in enumerate(calls) if call.name == tool.name]
        nearest = [pair for pair in paired if pair.tool == number]
        yield _usage(number, tool, own, calls, nearest)
        if tool.expected is not None:
            elsewhere = {index: entries[index] for index, _ in own if entries.get(index, number) != number}
            yield from _arguments(number, tool, own, nearest, elsewhere, faulty=tool.name in faulty)
    for number, name in enumerate(check.forbidden):
        yield _forbidden(number, name, calls)


def _faulty_tools(check: CompiledToolCheck, calls: tuple[ToolCall, ...], entries: Mapping[int, int]) -> frozenset[str]:
    """The tools with a call that differs from the entry that it is paired with, or from any if it is not paired."""
    return frozenset(
        tool.name
        for number, tool in enumerate(check.tools)
        for index, call in enumerate(calls)
        if call.name == tool.name and entries.get(index, number) == number and not tool.right(call)
    )


def _none_at_all(calls: tuple[ToolCall, ...]) -> Evidence:
    name, group = "tool_call_forbidden", "forbidden"
    if not calls:
        return Evidence(name, True, "", 0, 0, group=group, code=Code.NOT_CALLED, fields={"forbidden": True, "calls": 0})
    called = list(dict.fromkeys(call.name for call in calls))
    fields = {"forbidden": True, "calls": len(calls), "called": called}
    spans = tuple(Span("tool", index) for index in range(min(len(calls), _SPANS)))
    return Evidence(name, False, "", 0, len(calls), spans, group=group, code=Code.CALLED, fields=fields)


def _usage(number: int, tool: Tool, own: Numbered, calls: tuple[ToolCall, ...], nearest: list[Nearest]) -> Evidence:
    name = f"tools[{number}].usage"
    spans = tuple(Span("tool", index) for index, _ in own[:_SPANS])
    phrase = wanted_phrase(tool.least, tool.most)
    times = len(own)
    fields: dict[str, Any] = {"tool": tool.name, "calls": times, "least": tool.least, "most": tool.most}
    near: tuple[Span, ...] = ()
    if times == 0:
        if not tool.required:
            return Evidence(name, True, "", phrase, 0, group="usage", code=Code.NOT_CALLED, fields=fields)
        fields["called"] = list(dict.fromkeys(call.name for call in calls))
        if calls and nearest:
            fields["nearest"] = _nearest(tool, calls, nearest[0])
            near = tuple(Span("tool", pair.call) for pair in nearest)[:_SPANS]
        return Evidence(name, False, "", phrase, 0, near=near, group="usage", code=Code.NEVER_CALLED, fields=fields)
    passed = tool.usage(times) == 1.0
    if passed:
        return Evidence(name, True, "", phrase, times, spans, group="usage", code=Code.CALLED, fields=fields)
    others = [pair for pair in nearest if not pair.same_name]
    if others:
        fields["perhaps"] = [_named(other, tool, calls) for other in others[:_NEAREST]]
        near = tuple(Span("tool", other.call) for other in others)
    code = Code.TOO_FEW if times < tool.least else Code.TOO_MANY
    return Evidence(
        name,
        passed=False,
        expected=phrase,
        found=times,
        spans=spans,
        near=near,
        group="usage",
        code=code,
        fields=fields,
    )


def _nearest(tool: Tool, calls: tuple[ToolCall, ...], nearest: Nearest) -> dict[str, Any]:
    """The call of another tool that was meant, perhaps."""
    name = calls[nearest.call].name
    fields: dict[str, Any] = {"tool": name, "call": nearest.call, "calls": sum(call.name == name for call in calls)}
    if name.lower() == tool.name.lower():
        fields["case"] = True
    if tool.expected:
        fields["arguments"] = [argument.fields() for argument in nearest.differences]
    return fields


def _named(nearest: Nearest, tool: Tool, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {"call": nearest.call, "tool": calls[nearest.call].name}
    if tool.expected and not nearest.differences:
        fields["equal"] = True
    return fields


def _arguments(
    number: int, tool: Tool, own: Numbered, nearest: list[Nearest], elsewhere: Mapping[int, int], *, faulty: bool
) -> Iterator[Evidence]:
    """A line for each call of the tool. `elsewhere` has the calls that another entry of the tool is paired with.

    Every call counts against every entry. If a call is wrong by its own entry (`faulty`), that is the fault: what the
    same calls are by other entries is said beside the verdict.
    """
    expected = {expected.name: expected.description for expected in tool.expected or ()}
    name = f"tools[{number}].arguments"
    if not own:
        if tool.required:
            missing = {"tool": tool.name, "arguments_of": True}
            yield Evidence(name, False, "", expected, None, group="arguments", code=Code.NEVER_CALLED, fields=missing)
        return
    judged = [(position, index, call, tool.right(call)) for position, (index, call) in enumerate(own, start=1)]
    # An agent that ran wild made thousands of calls: the wrong ones are said first, the rest is counted.
    chosen = judged if len(judged) <= _CALLS else sorted(judged, key=lambda entry: entry[3])[:_CALLS]
    nearest = [pair for pair in nearest if pair.same_name][:_NEAREST]
    # Where no call is right, the one that comes nearest is what a person should read first.
    closest = {pair.call for pair in nearest} if not any(right for *_, right in judged) else set()
    for position, index, call, right in sorted(
        chosen, key=lambda entry: (entry[1] in elsewhere, entry[1] not in closest, entry[0])
    ):
        condition = name if len(own) == 1 else f"{name}[{position}]"
        fields: dict[str, Any] = {"tool": tool.name, "call": index}
        if len(own) > 1:
            fields["position"] = position
        if right:
            spans = tuple(Span("arguments", index, path=expected.name) for expected in tool.expected or ())
            spans, code = spans or (Span("tool", index),), Code.EQUAL
        else:
            code, spans = _differences(tool, index, call, fields)
            if index in elsewhere:
                fields["entry"] = elsewhere[index]
        passed = None if faulty and not right and index in elsewhere else right
        value = kept_value(call.arguments)
        yield Evidence(
            condition,
            passed=passed,
            expected=expected,
            found=value,
            spans=spans,
            group="arguments",
            code=code,
            fields=fields,
        )
    if len(own) > 1 and not all(right for *_, right in judged):
        places = {index: position for position, index, *_ in judged}
        for pair in nearest:
            yield _paired(number, tool, pair, places[pair.call])
    if len(chosen) < len(judged):
        wrong = sum(not right for *_, right in judged) - sum(not right for *_, right in chosen)
        fields = {"tool": tool.name, "more": len(judged) - len(chosen), "wrong": wrong}
        yield Evidence(
            f"{name}[more]", wrong == 0, "", expected, None, group="arguments", code=Code.CALLED, fields=fields
        )


def _paired(number: int, tool: Tool, nearest: Nearest, position: int) -> Evidence:
    """Which of several calls an expected call is, or is nearest to: said beside the verdict, not part of it."""
    expected = {argument.name: argument.description for argument in tool.expected or ()}
    place = (Span("tool", nearest.call),)
    name = f"tools[{number}].nearest" if tool.least <= 1 else f"tools[{number}].nearest[{nearest.slot + 1}]"
    slot = None if tool.least <= 1 else nearest.slot
    fields: dict[str, Any] = {"tool": tool.name, "call": nearest.call, "position": position, "slot": slot}
    if not nearest.differences:
        return Evidence(name, None, "", expected, None, place, code=Code.EQUAL, fields=fields)
    fields["arguments"] = [argument.fields() for argument in nearest.differences]
    return Evidence(name, None, "", expected, None, near=place, code=Code.DIFFERS, fields=fields)


def _differences(tool: Tool, index: int, call: ToolCall, fields: dict[str, Any]) -> tuple[Code, tuple[Span, ...]]:
    """The code of a call that is wrong and where it shows; `fields` gets what is wrong."""
    mismatches = differences(tool, call)
    wrong = [mismatch for mismatch in mismatches if mismatch.kind in ("differs", "extra")]
    spans = tuple(Span("arguments", index, path=mismatch.path) for mismatch in wrong) or (Span("tool", index),)
    if len(mismatches) == 1 and mismatches[0].kind == "unreadable":
        fields |= mismatches[0].fields()
        return Code.UNREADABLE, spans
    fields["arguments"] = [mismatch.fields() for mismatch in mismatches]
    return Code.DIFFERS, spans


def _forbidden(number: int, name: str, calls: tuple[ToolCall, ...]) -> Evidence:
    condition = f"forbidden_tools[{number}]"
    hits = [index for index, call in enumerate(calls) if call.name == name]
    fields = {"tool": name, "forbidden": True, "calls": len(hits)}
    if not hits:
        return Evidence(condition, True, "", name, 0, group="forbidden", code=Code.NOT_CALLED, fields=fields)
    spans = tuple(Span("tool", index) for index in hits[:_SPANS])
    return Evidence(
        condition,
        passed=False,
        expected=name,
        found=len(hits),
        spans=spans,
        group="forbidden",
        code=Code.CALLED,
        fields=fields,
    )


# How a call differs from what is expected of it, argument by argument


class ArgumentDifference(Struct, frozen=True):
    """One argument that is not as expected. `path` leads to it ("filter.country", "" for the arguments as a whole).

    `expected` is in words; `wanted` is the value itself, where one plain JSON value is expected (else None, and
    `is_plain` False). `hint` says what little would make it match (`steps`, `type`; `literal`: it
    is written as a matcher), or where two texts part
    (`ends_before`, `goes_on`, `at`; of long ones `around`, the parts there); {} when nothing little does. `cost` is
    0..1: how far it is off. `elsewhere` is the argument that has the value of a missing one. `malformed`: it is not
    JSON at all. `at` is the first character that differs, where a text is compared with a text.
    """

    kind: Kind
    name: str
    path: str
    expected: str = ""
    got: Any = None
    hint: dict[str, Any] = field(default_factory=dict)
    cost: float = 1.0
    elsewhere: str = ""
    malformed: bool = False
    at: int | None = None
    wanted: Any = None
    is_plain: bool = False

    def fields(self) -> dict[str, Any]:
        """As fields of evidence have it (`sentences.argument_phrase`)."""
        if self.kind == "unreadable":
            return unreadable(self.got, malformed=self.malformed)
        fields: dict[str, Any] = {"is": self.kind, "argument": self.name, "path": self.path}
        if self.kind != "extra":
            fields["expected"] = self.expected
        if self.is_plain:
            fields["wanted"] = kept_value(self.wanted)
        if self.kind != "missing" or self.elsewhere:
            fields["found"] = kept_value(self.got)
        if self.hint:
            fields["hint"] = self.hint
        if self.elsewhere:
            fields["elsewhere"] = self.elsewhere
        return fields


def unreadable(arguments: object, *, malformed: bool) -> dict[str, Any]:
    """Arguments that are not a JSON object, as fields of evidence have them."""
    value = kept_value(arguments)
    return {"is": "unreadable", "malformed": malformed, "type": type_of(arguments), "found": value}


def differences(tool: Tool, call: ToolCall) -> tuple[ArgumentDifference, ...]:
    """What keeps the call's arguments from being right: wrong ones, then missing, then additional ones; () if right."""
    expected = tool.expected
    if expected is None:
        return ()
    arguments = arguments_of(call)
    if arguments is None:
        if not expected and tool.additional:
            return ()
        return (ArgumentDifference("unreadable", "", "", got=call.arguments, malformed=call.malformed),)
    additional = [] if tool.additional else tool.additional_names(arguments)
    mismatches = [
        _differs(argument, arguments[argument.name])
        for argument in expected
        if argument.name in arguments and not argument.holds(arguments[argument.name])
    ]
    mismatches += [
        _missing(argument, arguments, tool.additional_names(arguments))
        for argument in expected
        if argument.name not in arguments and not argument.optional
    ]
    mismatches += [ArgumentDifference("extra", name, name, got=arguments[name], cost=0.5) for name in additional]
    return tuple(mismatches)


def distance(tool: Tool, call: ToolCall) -> float:
    """How far the call's arguments are from the expected ones: 0 (right) to 1."""
    if tool.expected is None:
        return 0.0
    mismatches = differences(tool, call)
    if not mismatches:
        return 0.0
    arguments = arguments_of(call)
    if arguments is None:
        return 1.0
    names = {expected.name for expected in tool.expected}
    if not tool.additional:
        names.update(arguments)
    return min(1.0, sum(mismatch.cost for mismatch in mismatches) / max(len(names), 1))


def _differs(argument: Expected, actual: object) -> ArgumentDifference:
    if len(argument.values) == 1:
        leaf = only_leaf(argument.values[0], actual)
        if leaf is not None:
            path, expected, inner = leaf
            return _leaf(argument.name, ".".join((argument.name, *map(str, path))), expected, inner)
    as_written = any(taken_for_matcher(value, actual) for value in argument.values)
    hint = {"literal": True} if as_written else _other_form(argument.holds, actual)
    expected_value, plain = _plain_value(argument)
    return ArgumentDifference(
        "differs",
        name=argument.name,
        path=argument.name,
        expected=argument.description,
        got=actual,
        hint=hint,
        cost=0.3 if hint else 0.9,
        wanted=expected_value,
        is_plain=plain,
    )


def _plain_value(expected: Expected) -> tuple[Any, bool]:
    """The value that is expected, and True, where that is one JSON value without matchers in it."""
    return plain_value(expected.values[0]) if len(expected.values) == 1 else (None, False)


def _leaf(name: str, path: str, expected: object, actual: object) -> ArgumentDifference:
    """A plain expected value that differs from a plain value."""
    difference = partial(
        ArgumentDifference,
        "differs",
        name=name,
        path=path,
        expected=shown(expected),
        got=actual,
        wanted=expected,
        is_plain=True,
    )
    if not (isinstance(expected, str) and isinstance(actual, str)):
        hint = _other_form(lambda value: same_json(expected, value), actual)
        return difference(hint=hint, cost=0.3 if hint else 0.9)
    at = common_start(expected, actual)
    steps = would_match(expected, actual)
    if steps:
        return difference(hint={"steps": steps, **_around(expected, actual, at)}, cost=0.1, at=at)
    likeness = _likeness(expected, actual)
    alike = max(len(expected), len(actual)) > _SHORT and likeness > 0.5
    hint = {**_parting(expected, actual, at), **_around(expected, actual, at)} if alike else {}
    return difference(hint=hint, cost=0.2 + 0.8 * (1 - likeness), at=at)


def _around(expected: str, actual: str, at: int) -> dict[str, Any]:
    """`around`: of two texts that evidence does not keep whole, the parts around the difference; {} of others."""
    if kept_value(expected) is expected and kept_value(actual) is actual:
        return {}
    return {"around": [part_around(text, at, 0, len(text)) for text in (expected, actual)]}


def _parting(expected: str, actual: str, at: int) -> dict[str, Any]:
    if at == len(actual):
        return {"at": at, "ends_before": expected[at : at + _LONGEST_QUOTE]}
    if at == len(expected):
        return {"at": at, "goes_on": actual[at : at + _LONGEST_QUOTE]}
    return {"at": at, "found": actual[at], "expected": expected[at]}


def _likeness(left: str, right: str) -> float:
    from rapidfuzz import fuzz

    return fuzz.ratio(left[:_COMPARED], right[:_COMPARED]) / 100


def _other_form(holds: Any, actual: object) -> dict[str, Any]:
    """What little change of the value would make it right: white space around it, its type."""
    if isinstance(actual, str):
        if holds(actual.strip()):
            return {"steps": ["strip"]}
        number = _number(actual)
        if number is not None and holds(number):
            return {"type": "string"}
    elif is_number(actual) and holds(str(actual)):
        return {"type": "number"}
    return {}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def only_leaf(expected: object, actual: object) -> Leaf | None:
    """The one plain value inside of `expected` that differs in `actual`, with the path to it; None: not just one."""
    leaves = list(_leaves(expected, actual, ()))
    return leaves[0] if len(leaves) == 1 and leaves[0] is not None else None


def _leaves(expected: object, actual: object, path: Path) -> Iterator[Leaf | None]:
    """The differing plain values below here; None where the difference is one of shape. At most two."""
    if is_matcher(expected):
        yield None
    elif isinstance(expected, Mapping) and isinstance(actual, Mapping) and expected.keys() == actual.keys():
        yield from _below([(key, item, actual[key]) for key, item in expected.items()], path)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        yield from _below([(number, item, other) for number, (item, other) in pairs], path)
    elif isinstance(expected, Mapping | list) or isinstance(actual, Mapping | list):
        yield None
    elif not same_json(expected, actual):
        yield path, expected, actual


def _below(pairs: list[tuple[str | int, Any, Any]], path: Path) -> Iterator[Leaf | None]:
    count = 0
    for key, item, other in pairs:
        for leaf in _leaves(item, other, (*path, key)):
            yield leaf
            count += 1
            if count > 1:
                return


def _missing(expected: Expected, arguments: Mapping[str, Any], additional: list[str]) -> ArgumentDifference:
    # A name that is written differently: the value is there under another name.
    expected_value, plain = _plain_value(expected)
    squeezed = expected.name.replace("_", "").replace("-", "").lower()
    for name in additional:
        if name.replace("_", "").replace("-", "").lower() == squeezed or expected.holds(arguments[name]):
            return ArgumentDifference(
                "missing",
                expected.name,
                expected.name,
                expected.description,
                arguments[name],
                cost=0.6,
                elsewhere=name,
                wanted=expected_value,
                is_plain=plain,
            )
    return ArgumentDifference(
        "missing", expected.name, expected.name, expected.description, wanted=expected_value, is_plain=plain
    )


# Which actual call each expected call is, or is nearest to: the assignment with the smallest total difference


class Nearest(Struct, frozen=True):
    """The expected call `slot` (from 0) of entry `tool`, and the actual call that it is paired with.

    `same_name` is False for a call of another tool; `differences` are the differences of the arguments (() if they are
    right, or not checked).
    """

    tool: int
    slot: int
    call: int
    same_name: bool
    differences: tuple[ArgumentDifference, ...]


def nearest_calls(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> tuple[Nearest, ...]:
    """The expected calls to which an actual one comes near, each with that. An entry with `min_calls` k counts as k
    expected calls.

    Each actual call is used once, and the sum of the differences is the smallest possible: a call that matches one
    entry exactly is never the near miss of another.
    """
    slots = _slots(tools, calls)
    chosen = _chosen(tools, calls)
    if not slots or not chosen:
        return ()
    # Expected calls of one entry have the same costs: the line is worked out once.
    lines = {number: [_cost(tools[number], calls[index]) for index in chosen] for number in {tool for tool, _ in slots}}
    pairs = []
    for row, column in assign([lines[tool] for tool, _ in slots]).pairs:
        (number, slot), index = slots[row], chosen[column]
        tool, call = tools[number], calls[index]
        if _comes_near(tool, call):
            pairs.append(Nearest(number, slot, index, call.name == tool.name, differences(tool, call)))
    return tuple(pairs)


@lru_cache(maxsize=1024)  # agents call the same few tools again and again
def _name_likeness(left: str, right: str) -> float:
    """0..1; 1 for names that differ only in case."""
    from rapidfuzz import fuzz

    return fuzz.ratio(left.lower(), right.lower()) / 100


def _slots(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> list[tuple[int, int]]:
    """The expected calls: as many of each entry as it wants, and none of an optional tool that was not called."""
    slots: list[tuple[int, int]] = []
    for number, tool in enumerate(tools):
        least = max(tool.least, int(tool.required))
        if not tool.required:
            called = sum(call.name == tool.name for call in calls)
            least = called and max(least, 1)
        slots += [(number, slot) for slot in range(min(least, MOST_SLOTS))]
    return slots[:MOST_SLOTS]


def _chosen(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> list[int]:
    if len(calls) <= MOST_CALLS:
        return list(range(len(calls)))
    names = {tool.name for tool in tools}
    return sorted(range(len(calls)), key=lambda index: calls[index].name not in names)[:MOST_CALLS]


def _cost(tool: Tool, call: ToolCall) -> float:
    cost = distance(tool, call)
    if call.name != tool.name:
        cost += _OTHER_NAME + 2 * (1 - _name_likeness(tool.name, call.name))
    return cost


def _comes_near(tool: Tool, call: ToolCall) -> bool:
    """A call of another tool is a near miss when the names are alike, or it has just the expected arguments."""
    if call.name == tool.name or _name_likeness(tool.name, call.name) >= _ALIKE:
        return True
    return bool(tool.expected) and distance(tool, call) <= _SAME_ARGUMENTS
