"""`Trajectory`: the tool calls of a run against those of a right one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from agenteval_tui.grading.metrics.matchers import errors_in
from agenteval_tui.grading.metrics.metric import Check, Context, Finding, Metric
from agenteval_tui.grading.properties import TOOL_ARGUMENTS, TOOL_NAMES, Properties
from agenteval_tui.grading.results import MetricResult
from agenteval_tui.grading.value import Value
from agenteval_tui.grading.words import quoted

ArgumentsMode = Literal["exact", "ignore", "subset", "superset"]


class ExpectedCall(Properties):
    """One tool call that is expected."""

    name: str = Field(min_length=1, description="The tool's name, as the agent calls it.", json_schema_extra=TOOL_NAMES)
    arguments: dict[str, Any] | None = Field(
        None,
        description="The call's arguments: names with the expected value (any JSON) or a matcher such as "
        '{"$any": true}. Without it the arguments of this call are not looked at.',
        json_schema_extra=TOOL_ARGUMENTS,
    )

    @field_validator("arguments")
    @classmethod
    def _usable(cls, arguments: Any) -> Any:
        error = errors_in(arguments or {})
        if error is not None:
            raise error
        return arguments


class Trajectory(Metric):
    """Compares all tool calls of the run with the expected ones.

    Modes as LangChain's agentevals has them: `strict` (the same calls in the same order; calls of one message in any
    order), `unordered` (the same calls, in any order), `subset` (no call that is not expected), `superset` (every
    expected call, others may be there). Modes as Umbraco has them, where the case of names does not matter: `any` (at
    least one of the expected tools was called), `all` (each of them was), `exact` (the same tools, each as often as
    expected), `none` (none of them was). The score is the share of calls that have their partner.
    """

    any_json: ClassVar[frozenset[str]] = frozenset({"calls", "reference"})

    mode: Literal["strict", "unordered", "subset", "superset", "any", "all", "exact", "none"] = Field(
        "strict", description="How the calls are compared."
    )
    calls: list[ExpectedCall] | None = Field(None, description="The expected calls, in order.")
    reference: list[dict[str, Any]] | None = Field(
        None,
        description="Instead of `calls`: a right run as OpenAI chat messages. Its tool calls are what is expected; "
        "with `strict` the messages must also have the same roles in the same order (their text may differ).",
    )
    arguments_mode: ArgumentsMode = Field(
        "exact",
        description="How arguments are compared: `exact`, `ignore` (not at all), `subset` (the call gives none but the "
        "expected ones), `superset` (the call gives the expected ones, and perhaps others).",
    )
    overrides: dict[str, ArgumentsMode | list[str]] | None = Field(
        None,
        description="For single tools another `arguments_mode`, or the list of the arguments (with dots: `time.start`) "
        "that must be equal.",
    )

    @field_validator("reference")
    @classmethod
    def _messages(cls, reference: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        if reference is not None:
            from agenteval_tui.text.problems import AgentevalError
            from agenteval_tui.transcripts.codec import from_openai_messages

            try:
                from_openai_messages(reference)
            except AgentevalError as error:
                raise ValueError(str(error)) from None
        return reference

    def checks_nothing(self) -> bool:
        return self.calls is None and self.reference is None

    def check(self, value: Value, context: Context) -> MetricResult:
        return self.compile()(value, context)

    def compile(self) -> Check:
        if self.checks_nothing():
            result = self.neutral()
            return lambda value, context: result
        from agenteval_tui.grading.metrics.trajectory_matching import CompiledTrajectory

        return CompiledTrajectory(self)

    def findings(self) -> Iterator[Finding]:
        if self.checks_nothing():
            yield Finding("warning", "checks-nothing", "this Trajectory has no `calls`: it checks nothing")
            return
        if self.calls is not None and self.reference is not None:
            text = "`reference` is used, `calls` has no effect beside it"
            yield Finding("warning", "without-effect", text, ("calls",))
        yield from self._empty()
        yield from self._modes()

    def _empty(self) -> Iterator[Finding]:
        if self.reference is not None or self.calls:
            return
        if self.mode in ("superset", "all", "none"):
            text = f"this cannot fail: with no `calls` the mode {self.mode} asks for nothing"
            yield Finding("warning", "cannot-fail", text, ("calls",))
        elif self.mode == "any":
            text = "none of no `calls` can be made: this can never pass"
            yield Finding("error", "contradictory", text, ("calls",))

    def _modes(self) -> Iterator[Finding]:
        calls = self.calls or []
        given = self.reference is not None or any(call.arguments is not None for call in calls)
        if not given and "arguments_mode" in self.model_fields_set and calls:
            text = "no call has `arguments`: `arguments_mode` has no effect"
            yield Finding("info", "without-effect", text, ("arguments_mode",))
        names = {call.name for call in calls}
        for name in self.overrides or ():
            if self.reference is None and name not in names:
                text = f"{quoted(name)} is none of the `calls`: this has no effect"
                yield Finding("warning", "without-effect", text, ("overrides", name))
        if self.mode == "subset" and self.arguments_mode == "ignore" and not self.overrides:
            return
        if self.arguments_mode == "ignore" and not self.overrides:
            for number, call in enumerate(calls):
                if call.arguments:
                    text = "`arguments_mode` is ignore: these arguments are not looked at"
                    yield Finding("info", "without-effect", text, ("calls", number, "arguments"))
                    break
