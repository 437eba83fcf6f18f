"""`Python`: a function of the user's decides, in a process of its own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.schema_rules import NAME_CHARACTERS
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.context import Context
from agenteval_tui.grading.extracted_value import Value
from agenteval_tui.grading.remote import RemoteMetric, UnusableError
from agenteval_tui.grading.remote_requests import AskKind, RemoteCall, RemoteRequest
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.spec import json_like
from agenteval_tui.transcripts.codec import to_json

_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAME = f"[^0-9{NAME_CHARACTERS}][^{NAME_CHARACTERS}]*"
_FUNCTION_IN_EDITORS = rf"^{_NAME}(?:\.{_NAME})*:{_NAME}(?:\.{_NAME})*$"


class Python(RemoteMetric):
    """Calls your own function: `function(value, **properties)`.

    `value` is the extracted text. Other properties of the metric are passed by name. If the function has a parameter
    `transcript`, `expected` or `variables`, it gets that too. It returns a bool, a score 0..1, or an object {"passed",
    "score", "reason", "evidence"}, and may be async. It runs in a separate process with a time limit, and only if you
    trust its repository. It must be code of the suite's project, or of a package that is a plug-in of
    agenteval: `os:system` is an `error`. So is an exception; neither is a verdict.
    """

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        frozen=True,
        json_schema_extra={"allOf": [{"properties": {"function": {"pattern": _FUNCTION_IN_EDITORS}}}]},
    )
    asks: ClassVar[AskKind] = "call"
    any_json: ClassVar[frozenset[str]] = frozenset()

    function: str = Field(description="Where the function is: `package.module:name`, found from the suite's folder.")
    timeout: float = Field(10.0, gt=0, le=600, description="The time limit in seconds.")
    pass_threshold: float = Field(
        0.7, ge=0, le=1, description="The lowest score that passes, if the function returns a score."
    )

    @model_validator(mode="after")
    def _right_place(self) -> Self:
        if not _FUNCTION.fullmatch(self.function):
            raise ValueError(f"`function` must be written package.module:name, not {self.function[:80]!r}")
        return self

    @property
    def target(self) -> str:
        return self.function

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        payload = {
            "value": value.text,
            "transcript": content_hash(to_json(value.transcript)),  # whoever calls has the transcript itself
            "expected": json_like(context.expected_value),
            "variables": json_like(context.variables),
            "properties": json_like(self.model_extra or {}),
            "timeout": self.timeout,
        }
        return (RemoteRequest("call", self.function, payload),)

    def conclude(self, asked: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        try:
            given: Any = json.loads(asked[0].last.raw)
        except (ValueError, RecursionError):
            raise self._unusable("unreadable") from None
        reason, evidence = "", list[Evidence]()
        passed: Any = None
        score: Any = given
        if isinstance(given, Mapping):
            passed, score, reason = given.get("passed"), given.get("score"), str(given.get("reason") or "")
            evidence = list(_evidence(given.get("evidence")))
        elif isinstance(given, bool):
            passed, score = given, None
        if passed is not None and not isinstance(passed, bool):
            raise self._unusable("passed", passed)
        if score is not None:
            score = self._score(score)
        if passed is None and score is None:
            raise self._unusable("nothing", given)
        if score is None:
            score = 1.0 if passed else 0.0
        if passed is None:
            passed = score >= self.pass_threshold - 1e-9
        fields = {"function": self.function, **({"message": reason} if reason else {})}
        line = Evidence("function", passed, found=given, code=Code.RETURNED, fields=fields)
        return self.result(passed, score, (line, *evidence))

    def _unusable(self, problem: str, returned: Any = None) -> UnusableError:
        return UnusableError(code=Code.UNUSABLE_RETURN, function=self.function, problem=problem, returned=returned)

    def _score(self, given: Any) -> float:
        if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
            raise self._unusable("not a score", given)
        if not 0 <= given <= 1:
            raise self._unusable("off the scale", given)
        return float(given)


def _evidence(given: Any) -> Sequence[Evidence]:
    listed = given if isinstance(given, list) else [given] if given else []
    made = []
    for number, one in enumerate(listed[:100], 1):
        if isinstance(one, Mapping):
            passed = one.get("passed")
            made.append(
                Evidence(
                    str(one.get("condition") or f"evidence[{number}]"),
                    passed if isinstance(passed, bool) else None,
                    str(one.get("reason") or ""),
                    one.get("expected"),
                    one.get("found"),
                )
            )
        else:
            made.append(Evidence(f"evidence[{number}]", None, str(one)))
    return made
