"""`ToolCheck`: which tools were called, how often, and with which arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import AliasChoices, Field, field_validator

from agenteval_tui.grading.metrics.matchers import MATCHER_EXAMPLES, errors_in
from agenteval_tui.grading.metrics.metric import Check, Context, Finding, Metric
from agenteval_tui.grading.properties import TOOL_ARGUMENTS, TOOL_NAMES, Properties
from agenteval_tui.grading.results import MetricResult
from agenteval_tui.grading.value import Value


class ToolCheckData(Properties):
    """What is expected of one tool: how often it is called, and with which arguments."""

    name: str = Field(min_length=1, description="The tool's name, as the agent calls it.", json_schema_extra=TOOL_NAMES)
    required: bool = Field(True, description="Whether the tool must be called at all.")
    min_calls: int | None = Field(
        None, ge=0, description="At least so many calls. Without it: 1 if the tool is required, else 0."
    )
    max_calls: int | None = Field(None, ge=0, description="At most so many calls. Without it: any number.")
    arguments: dict[str, Any] | list[dict[str, Any]] | None = Field(
        None,
        description="The arguments of each call: names with the expected value (any JSON), or a matcher such as "
        '{"$any": true}, {"$contains": "x"}, {"$regex": "..."}, {"$one_of": [...]}, {"$gte": 1}, {"$optional": "x"} '
        "(may be absent; if given, it is x). As a list of objects an argument may stand there several times: any of "
        "its values will do.",
        examples=MATCHER_EXAMPLES,
        json_schema_extra=TOOL_ARGUMENTS,
    )
    allow_additional_arguments: bool = Field(
        False, description="Whether the agent may give other arguments than those in `arguments`."
    )

    @field_validator("arguments")
    @classmethod
    def _usable(cls, arguments: Any) -> Any:
        error = errors_in(arguments or {})
        if error is not None:
            raise error
        return arguments

    @property
    def least(self) -> int:
        """The smallest right number of calls."""
        return self.min_calls if self.min_calls is not None else int(self.required)


class ToolCheck(Metric):
    """Checks the tool calls: which tools were used, how often, with which arguments; and which must not be.

    The score is 0.5 for usage, 0.3 for arguments and 0.2 for forbidden tools; at most 0.25 when a required tool is
    missing or a forbidden one was called. It looks at the calls themselves, whatever the prototype class extracts.
    """

    any_json: ClassVar[frozenset[str]] = frozenset({"arguments"})

    tools: list[ToolCheckData] | None = Field(
        None,
        validation_alias=AliasChoices("tools", "tool"),
        description="The tools that are expected, one entry a tool.",
    )
    forbidden_tools: list[str] | None = Field(
        None, description="Tools that must not be called.", json_schema_extra=TOOL_NAMES
    )
    tool_call_forbidden: bool = Field(False, description="No tool may be called at all.")

    def checks_nothing(self) -> bool:
        return not (self.tools or any(self.forbidden_tools or ()) or self.tool_call_forbidden)

    def check(self, value: Value, context: Context) -> MetricResult:
        return self.compile()(value, context)

    def compile(self) -> Check:
        if self.checks_nothing():
            result = self.neutral()
            return lambda value, context: result
        from agenteval_tui.grading.metrics.tool_scoring import CompiledToolCheck

        return CompiledToolCheck(self)

    def findings(self) -> Iterator[Finding]:
        from agenteval_tui.grading.metrics.tool_findings import findings_of

        return findings_of(self)
