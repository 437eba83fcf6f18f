"""`Trajectory`: the tool calls of a run against those of a right one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from msgspec import Struct
from pydantic import BaseModel, Field, field_validator

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import EXACT, TOOL_ARGUMENTS, TOOL_NAMES, no_null
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.matchers import (
    LITERAL,
    Matcher,
    compile_matcher,
    is_literal,
    plain_value,
    same_json,
    taken_for_matcher,
    type_of,
    usable_arguments,
)
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric, quick_results
from agenteval_tui.grading.metrics.tool_check import arguments_of
from agenteval_tui.grading.results import Evidence, MetricResult, Span, kept_value
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import ToolCall, Transcript
from agenteval_tui.transcripts.observed import ObservedKind

ArgumentsMode = Literal["exact", "ignore", "subset", "superset"]
_LINES = 60
_ARGUMENTS = 40
_NEAR = 200  # calls that are compared with one that is missing
_MISSING = object()
_ANY_CASE = ("any", "all", "exact", "none")


class ExpectedCall(BaseModel):
    """One expected tool call."""

    model_config = EXACT
    _no_null = no_null

    name: str = Field(min_length=1, description="The tool's name, as the agent calls it.", json_schema_extra=TOOL_NAMES)
    arguments: dict[str, Any] | None = Field(
        None,
        description="The call's arguments: names with expected values (any JSON), or with matchers such as "
        '{"$any": true}. Without it, the arguments of this call are not checked.',
        json_schema_extra=TOOL_ARGUMENTS,
    )

    _usable = field_validator("arguments")(usable_arguments)


class Trajectory(Metric):
    """Compares all tool calls of the run with the expected ones.

    Modes as in LangChain's agentevals: `strict` (the same calls in the same order; calls of one message in any order),
    `unordered` (the same calls in any order), `subset` (only expected calls), `superset` (all expected calls, and
    perhaps others). Modes as in Umbraco, which ignore the case of names: `any` (at least one of the expected tools was
    called), `all` (every expected tool was called), `exact` (the same tools, each as often as expected), `none` (no
    expected tool was called). The score is the share of calls that have a counterpart.
    """

    any_json: ClassVar[frozenset[str]] = frozenset({"calls", "reference"})

    mode: Literal["strict", "unordered", "subset", "superset", "any", "all", "exact", "none"] = Field(
        "strict", description="How to compare the calls."
    )
    calls: list[ExpectedCall] | None = Field(None, description="The expected calls, in order.")
    reference: list[dict[str, Any]] | None = Field(
        None,
        description="Instead of `calls`: a correct run as OpenAI chat messages. Its tool calls are the expected ones; "
        "with `strict`, the messages must also have the same roles in the same order (their text may differ).",
    )
    arguments_mode: ArgumentsMode = Field(
        "exact",
        description="How to compare arguments: `exact`, `ignore` (not at all), `subset` (the call has only expected "
        "ones), `superset` (the call has the expected ones, and perhaps others).",
    )
    overrides: dict[str, ArgumentsMode | list[str]] | None = Field(
        None,
        description="By tool: another `arguments_mode`, or a list of the arguments that must be equal (with dots for "
        "nested ones: `time.start`).",
    )

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("tool_calls",))

    @field_validator("reference")
    @classmethod
    def _messages(cls, reference: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        if reference is not None:
            try:
                from_openai_messages(reference)
            # pydantic reports a ValueError with its place; any other error would end the reading of the config.
            except AgentevalError as error:
                raise ValueError(str(error)) from None
        return reference

    def checks_nothing(self) -> bool:
        return self.calls is None and self.reference is None

    def compile(self) -> Check:
        return CompiledTrajectory(self)

    def findings(self) -> Iterator[ConfigWarning]:
        if self.checks_nothing():
            yield ConfigWarning("warning", "checks-nothing", "this Trajectory has no `calls`: it checks nothing")
            return
        if self.calls is not None and self.reference is not None:
            text = "`reference` is used, `calls` has no effect beside it"
            yield ConfigWarning("warning", "without-effect", text, ("calls",))
        yield from self._empty()
        yield from self._modes()

    def _empty(self) -> Iterator[ConfigWarning]:
        if self.reference is not None or self.calls:
            return
        if self.mode in ("superset", "all", "none"):
            text = f"this cannot fail: with no `calls` the mode {self.mode} asks for nothing"
            yield ConfigWarning("warning", "cannot-fail", text, ("calls",))
        elif self.mode == "any":
            text = "none of no `calls` can be made: this can never pass"
            yield ConfigWarning("error", "contradictory", text, ("calls",))

    def _modes(self) -> Iterator[ConfigWarning]:
        calls = self.calls or []
        checks_arguments = self.reference is not None or any(call.arguments is not None for call in calls)
        if not checks_arguments and "arguments_mode" in self.model_fields_set and calls:
            text = "no call has `arguments`: `arguments_mode` has no effect"
            yield ConfigWarning("info", "without-effect", text, ("arguments_mode",))
        names = {call.name for call in calls}
        for name in self.overrides or ():
            if self.reference is None and name not in names:
                text = f"{quoted(name)} is none of the `calls`: this has no effect"
                yield ConfigWarning("warning", "without-effect", text, ("overrides", name))
        if self.arguments_mode == "ignore" and not self.overrides:
            for number, call in enumerate(calls):
                if call.arguments:
                    text = "`arguments_mode` is ignore: these arguments are not looked at"
                    yield ConfigWarning("info", "without-effect", text, ("calls", number, "arguments"))
                    break


# The evidence of a Trajectory: which expected call is which, what is missing, and what is too much


def evidence_of(check: CompiledTrajectory, match: StepMatch, calls: tuple[ToolCall, ...]) -> Iterator[Evidence]:
    """A line for each expected call, for each call too much, for each message that differs."""
    mode = check.mode
    yield from _structure(match)
    if mode in ("any", "none") or (not check.wanted and not calls):
        yield _whole(check, match, calls)
    owner = {right: left for left, right in match.pairs.items()}
    count = 0
    for number, step in enumerate(check.wanted):
        right = match.pairs.get(number)
        if count >= _LINES:
            break
        if mode in ("strict", "unordered", "exact", "superset", "all") or right is not None:
            count += 1
            yield _expected(check, number, step, right, calls, owner)
    if mode in ("strict", "unordered", "exact", "subset"):
        unpaired = [index for index in range(len(calls)) if index not in owner]
        for index in unpaired[:_LINES]:
            yield _too_much(check, index, calls)
        if len(unpaired) > _LINES:
            rest = len(unpaired) - _LINES
            fields = {"calls": rest}
            yield Evidence("calls[more]", False, "", 0, rest, group=mode, code=Code.UNEXPECTED, fields=fields)


def _structure(match: StepMatch) -> Iterator[Evidence]:
    for code, fields in match.structure[:_LINES]:
        index = fields["message"] if "message" in fields else min(fields["messages"], fields["expected_messages"])
        yield Evidence(f"messages[{index}]", False, group="messages", code=code, fields=fields)


def _whole(check: CompiledTrajectory, match: StepMatch, calls: tuple[ToolCall, ...]) -> Evidence:
    names = sorted({step.name for step in check.wanted})
    fields: dict[str, Any] = {"calls": len(calls)}
    if not check.wanted and check.mode not in ("any", "none"):
        fields["expected_none"] = True
        return Evidence("calls", True, "", 0, 0, group=check.mode, code=Code.NOT_CALLED, fields=fields)
    spans = tuple(dict.fromkeys(Span("tool", index) for index in match.pairs.values()))
    near: tuple[Span, ...] = ()
    fields["any_of"] = names
    if check.mode == "any":
        code = Code.CALLED if match.pairs else Code.NEVER_CALLED
        near = () if match.pairs else _alike(check, calls)
    else:
        code, fields["forbidden"] = Code.CALLED if match.pairs else Code.NOT_CALLED, True
    return Evidence(
        "calls",
        passed=match.passed,
        expected=names,
        found=len(match.pairs),
        spans=spans,
        near=near,
        group=check.mode,
        code=code,
        fields=fields,
    )


def _alike(check: CompiledTrajectory, calls: tuple[ToolCall, ...]) -> tuple[Span, ...]:
    return tuple(
        Span("tool", index)
        for index, call in enumerate(calls[:_NEAR])
        if any(step.named(call) for step in check.wanted)
    )[:20]


def _expected(
    check: CompiledTrajectory,
    number: int,
    step: ExpectedStep,
    right: int | None,
    calls: tuple[ToolCall, ...],
    owner: dict[int, int],
) -> Evidence:
    name, mode = f"calls[{number}]", check.mode
    if right is not None:
        call = calls[right]
        spans: tuple[Span, ...] = (Span("tool", right),)
        if step.matchers and step.how != "ignore":
            arguments = arguments_of(call) or {}
            spans = tuple(Span("arguments", right, path=key) for key in step.matchers if key in arguments) or spans
        fields: dict[str, Any] = {"tool": step.name, "wanted": step.description, "call": right}
        if mode == "none":
            fields["forbidden"] = True
        return Evidence(
            name,
            passed=mode != "none",
            expected=step.description,
            found=call.name,
            spans=spans,
            group=mode,
            code=Code.CALLED,
            fields=fields,
        )
    fields = {"tool": step.name, "wanted": step.description, "calls": len(calls)}
    if mode == "strict" and check.reference is None:
        fields["position"] = number
        if calls and number < len(calls) and not step.named(calls[number]):
            fields["instead"] = calls[number].name
    near = _nearest(step, calls, owner) if calls else None
    if near is None:
        return Evidence(
            name, passed=False, expected=step.description, group=mode, code=Code.NEVER_CALLED, fields=fields
        )
    code, fields["near_call"], spans = near
    return Evidence(name, passed=False, expected=step.description, near=spans, group=mode, code=code, fields=fields)


def _nearest(
    step: ExpectedStep, calls: tuple[ToolCall, ...], owner: dict[int, int]
) -> tuple[Code, dict[str, Any], tuple[Span, ...]] | None:
    """The call that comes closest: of the same tool, with the fewest differences, and not already paired."""
    same = [index for index, call in enumerate(calls) if step.named(call)][:_NEAR]
    unmatched = [index for index in same if index not in owner]
    # A call that would be right, and is only at another place, says more than one that differs.
    elsewhere = next((index for index in unmatched if step.holds(calls[index])), None)
    if elsewhere is not None:
        return Code.OUT_OF_PLACE, {"tool": step.name, "call": elsewhere}, (Span("tool", elsewhere),)
    if unmatched:
        best = min(unmatched, key=lambda index: len(step.differences(calls[index])))
        parts = step.differences(calls[best])
        differing = [part["argument"] for part in parts if part["is"] in ("differs", "extra")]
        spans = tuple(Span("arguments", best, path=key) for key in differing) or (Span("tool", best),)
        near = {"tool": step.name, "call": best, "differences": len(parts), "arguments": parts[:_ARGUMENTS]}
        return Code.DIFFERS, near, spans
    if same:
        return Code.NEVER_CALLED, {"tool": step.name, "call": same[0], "taken": len(same)}, (Span("tool", same[0]),)
    other = closest(step.name, dict.fromkeys(call.name for call in calls))
    if other is None:
        return None
    at = next(index for index, call in enumerate(calls) if call.name == other)
    return Code.NEVER_CALLED, {"tool": other, "call": at}, (Span("tool", at),)


def _too_much(check: CompiledTrajectory, index: int, calls: tuple[ToolCall, ...]) -> Evidence:
    call = calls[index]
    fields = {"tool": call.name, "call": index, "arguments": kept_value(call.arguments)}
    spans = (Span("tool", index),)
    return Evidence(
        f"calls[+{index}]",
        passed=False,
        found=call.name,
        spans=spans,
        group=check.mode,
        code=Code.UNEXPECTED,
        fields=fields,
    )


# Which call of a run is which of the expected ones, and what the modes of a Trajectory make of it


class ExpectedStep:
    """One expected call made ready."""

    def __init__(self, name: str, arguments: object, how: str | Sequence[str], plain: bool, any_case: bool) -> None:
        self.name = name
        self.arguments = arguments
        self.how = how
        self._plain = plain
        self._key = name.lower() if any_case else name
        self._any_case = any_case
        self.matchers: dict[str, Matcher] | None = None
        self._due: frozenset[str] = frozenset()
        self._paths: tuple[tuple[tuple[str, ...], Matcher | None], ...] = ()
        if isinstance(arguments, dict):
            self.matchers = {key: _matcher(item, plain) for key, item in arguments.items()}
            self._due = frozenset(key for key, matcher in self.matchers.items() if not matcher.optional)
            if not isinstance(how, str):
                paths = [(tuple(path.split(".")), _expected_at(arguments, path.split("."), plain)) for path in how]
                self._paths = tuple((p, None if v is _MISSING else _matcher(v, raw)) for p, (v, raw) in paths)

    def named(self, call: ToolCall) -> bool:
        """Whether it is a call of this tool."""
        return (call.name.lower() if self._any_case else call.name) == self._key

    def holds(self, call: ToolCall) -> bool:
        """Whether the call is this one. Raises `SlowPatternError`."""
        if not self.named(call):
            return False
        if self.arguments is None or self.how == "ignore":
            return True
        arguments = arguments_of(call)
        if self.matchers is None or arguments is None:
            # What is no JSON object has no names to compare by; only text that is quite the same is right.
            return arguments is None and not call.malformed and same_json(self.arguments, call.arguments)
        if not isinstance(self.how, str):
            return all(_same(matcher, _look(arguments, path)) for path, matcher in self._paths)
        if self.how != "superset" and not arguments.keys() <= self.matchers.keys():
            return False
        if self.how != "subset" and not self._due <= arguments.keys():
            return False
        return all(matcher.holds(arguments[name]) for name, matcher in self.matchers.items() if name in arguments)

    def differences(self, call: ToolCall) -> list[dict[str, Any]]:
        """Each argument that is not as expected, as fields of evidence have it; the names of the tools are the same."""
        arguments = arguments_of(call)
        if arguments is None or self.matchers is None:
            value = kept_value(call.arguments)
            kind = type_of(call.arguments)
            return [{"is": "unreadable", "malformed": call.malformed, "type": kind, "found": value}]
        if not isinstance(self.how, str):
            wrong = [(path, m) for path, m in self._paths if not _same(m, _look(arguments, path))]
            return [
                {
                    **_overridden(path, m, value := _look(arguments, path)),
                    **self._wanted(path),
                    **self._hint(path, value),
                }
                for path, m in wrong
            ]
        parts: list[dict[str, Any]] = [
            {
                "is": "differs",
                "argument": name,
                "path": name,
                "expected": m.description,
                **self._wanted((name,)),
                "found": kept_value(arguments[name]),
                **self._hint((name,), arguments[name]),
            }
            for name, m in self.matchers.items()
            if name in arguments and not m.holds(arguments[name])
        ]
        if self.how != "subset":
            parts += [
                {"is": "missing", "argument": name, "path": name, "expected": m.description, **self._wanted((name,))}
                for name, m in self.matchers.items()
                if name not in arguments and not m.optional
            ]
        if self.how != "superset":
            parts += [
                {"is": "extra", "argument": name, "path": name, "found": kept_value(item)}
                for name, item in arguments.items()
                if name not in self.matchers
            ]
        return parts

    def _wanted(self, path: Sequence[str]) -> dict[str, Any]:
        """The expected value itself as a field, where it is one plain JSON value; else {}."""
        value, plain = _expected_at(self.arguments, path, self._plain)
        if value is _MISSING:
            return {}
        value, plain = (value, True) if plain else plain_value(value)
        return {"wanted": kept_value(value)} if plain else {}

    def _hint(self, path: Sequence[str], actual: object) -> dict[str, Any]:
        """A hint as ToolCheck has it, where the value is written just as it is expected."""
        value, plain = _expected_at(self.arguments, path, self._plain)
        return {} if plain or not taken_for_matcher(value, actual) else {"hint": {"literal": True}}

    @property
    def description(self) -> str:
        """The call in words: `get_order(order_id = "#W1")`."""
        if self.matchers is None or self.how == "ignore":
            return self.name
        return f"{self.name}({', '.join(f'{name} = {matcher.description}' for name, matcher in self.matchers.items())})"


class StepMatch(Struct, frozen=True):
    """The result of a comparison. `pairs`: expected -> actual call. `structure`: how messages differ (code, fields)."""

    passed: bool
    score: float
    pairs: Mapping[int, int]
    structure: tuple[tuple[str, dict[str, Any]], ...] = ()


class CompiledTrajectory:
    """A Trajectory made ready for many transcripts."""

    def __init__(self, metric: Trajectory) -> None:
        self.metric = metric
        self.mode = metric.mode
        self.reference: Transcript | None = None
        any_case = metric.mode in _ANY_CASE
        if metric.reference is not None:
            self.reference = from_openai_messages(metric.reference)
            # A call that was recorded without arguments had none; those of one in `calls` are then not checked.
            listed = [
                (call.name, {} if call.arguments is None else call.arguments) for call in self.reference.tool_calls
            ]
        else:
            listed = [(call.name, call.arguments) for call in metric.calls or ()]
        overrides = metric.overrides or {}
        self.wanted = tuple(
            ExpectedStep(
                name, arguments, overrides.get(name) or metric.arguments_mode, self.reference is not None, any_case
            )
            for name, arguments in listed
        )
        self._quick = quick_results(metric)

    def __call__(self, value: Value, context: Context) -> MetricResult:
        transcript = value.transcript
        step_match = self.compare(transcript)
        if not context.explain:
            return self._quick(step_match.passed, step_match.score)

        lines = evidence_of(self, step_match, transcript.tool_calls)
        return self.metric.result(step_match.passed, step_match.score, lines)

    def compare(self, transcript: Transcript) -> StepMatch:
        """The verdict, and who is paired with whom. Raises `SlowPatternError`."""
        calls = transcript.tool_calls
        if self.mode == "strict":
            return self._in_order(calls) if self.reference is None else self._message_by_message(transcript)
        if self.mode in ("any", "all", "none"):
            return self._by_tool(calls)
        pairs = largest_matching([[i for i, call in enumerate(calls) if step.holds(call)] for step in self.wanted])
        paired, expected_count, actual = len(pairs), len(self.wanted), len(calls)
        if self.mode == "superset":
            return StepMatch(paired == expected_count, _share(paired, expected_count), pairs)
        if self.mode == "subset":
            return StepMatch(paired == actual, _share(paired, actual), pairs)
        return StepMatch(paired == expected_count == actual, _share(2 * paired, expected_count + actual), pairs)

    def _by_tool(self, calls: tuple[ToolCall, ...]) -> StepMatch:
        # One call may stand for several expected ones here: Umbraco asks which tools were used, not how often.
        pairs: dict[int, int] = {}
        for number, step in enumerate(self.wanted):
            hit = next((index for index, call in enumerate(calls) if step.holds(call)), None)
            if hit is not None:
                pairs[number] = hit
        share = _share(len(pairs), len(self.wanted))
        if self.mode == "all":
            return StepMatch(len(pairs) == len(self.wanted), share, pairs)
        hit_any = bool(pairs)
        passed = hit_any if self.mode == "any" else not hit_any
        return StepMatch(passed, 1.0 if passed else 0.0, pairs)

    def _in_order(self, calls: tuple[ToolCall, ...]) -> StepMatch:
        pairs: dict[int, int] = {}
        position = 0
        # As many expected calls as a message made: those of one message have no order.
        for group in _groups(calls):
            pairs.update(self._in_one_message(range(position, position + len(group)), group, calls))
            position += len(group)
        whole = max(len(self.wanted), len(calls))
        return StepMatch(len(pairs) == whole, _share(len(pairs), whole), pairs)

    def _in_one_message(
        self, numbers: Sequence[int], group: Sequence[int], calls: tuple[ToolCall, ...]
    ) -> dict[int, int]:
        numbers = [number for number in numbers if number < len(self.wanted)]
        matching = largest_matching(
            [[at for at, index in enumerate(group) if self.wanted[number].holds(calls[index])] for number in numbers]
        )
        return {numbers[left]: group[right] for left, right in matching.items()}

    def _message_by_message(self, transcript: Transcript) -> StepMatch:
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
            matching = self._in_one_message(expected.tool_calls, message.tool_calls, transcript.tool_calls)
            pairs.update(matching)
            actual_count, expected_count = len(message.tool_calls), len(expected.tool_calls)
            if len(matching) == expected_count == actual_count:
                right += 1
            elif actual_count != expected_count:
                code = Code.TOO_FEW if actual_count < expected_count else Code.TOO_MANY
                structure.append((code, {"message": index, "calls": actual_count, "expected_calls": expected_count}))
        if len(ours) != len(theirs):
            code = Code.TOO_FEW if len(ours) < len(theirs) else Code.TOO_MANY
            structure.append((code, {"messages": len(ours), "expected_messages": len(theirs)}))
        whole = max(len(ours), len(theirs))
        return StepMatch(right == whole, _share(right, whole), pairs, tuple(structure))


def _overridden(path: Sequence[str], matcher: Matcher | None, actual: object) -> dict[str, Any]:
    """How what an override names differs; one of a path that is not in what was expected has no matcher."""
    fields: dict[str, Any] = {"is": "differs", "argument": path[0], "path": ".".join(path)}
    fields["expected"] = matcher.description if matcher is not None else "nothing"
    return {**fields, "absent": True} if actual is _MISSING else {**fields, "found": kept_value(actual)}


def _groups(calls: tuple[ToolCall, ...]) -> list[list[int]]:
    """The calls of each message together; they were made at once, so they have no order."""
    groups: list[list[int]] = []
    for index, call in enumerate(calls):
        if groups and call.message is not None and calls[groups[-1][-1]].message == call.message:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _matcher(value: object, plain: bool) -> Matcher:
    # What was recorded is what it is: a `$` in it means nothing.
    return compile_matcher({LITERAL: value} if plain else value, named=True)


def _same(matcher: Matcher | None, actual: object) -> bool:
    if matcher is None or actual is _MISSING:
        return actual is _MISSING and (matcher is None or matcher.optional)
    return matcher.holds(actual)


def _look(value: object, path: Sequence[str]) -> object:
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _expected_at(arguments: object, path: Sequence[str], plain: bool) -> tuple[Any, bool]:
    """The expected value at a path, and whether it is one to compare with, without matchers: inside of `$literal`."""
    value = arguments
    for step in path:
        if not plain and is_literal(value):
            value, plain = plain_value(value)
        if not isinstance(value, Mapping) or step not in value:
            return _MISSING, plain
        value = value[step]
    return value, plain


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


# Pairing expected with actual things: as many pairs as there can be


def largest_matching(candidates: Sequence[Sequence[int]]) -> dict[int, int]:
    """A largest matching of a bipartite graph: left `i` may be paired with each right in `candidates[i]`.

    Left -> right. Taking the first that fits would make the answer depend on the order in which things are listed.
    Augmenting paths, shortest first; what a search that failed has seen can never be of use again.
    """
    partner: dict[int, int] = {}
    owner: dict[int, int] = {}
    useless: set[int] = set()
    for left in range(len(candidates)):
        came_from: dict[int, int] = {}
        waiting = deque([left])
        free: int | None = None
        while waiting and free is None:
            node = waiting.popleft()
            for right in candidates[node]:
                if right in came_from or right in useless:
                    continue
                came_from[right] = node
                if right not in owner:
                    free = right
                    break
                waiting.append(owner[right])
        if free is None:
            useless.update(came_from)
            continue
        at: int | None = free
        while at is not None:  # each pair on the way takes the next right, and gives its own to the one before it
            right, node = at, came_from[at]
            at = partner.get(node)
            partner[node], owner[right] = right, node
    return partner
