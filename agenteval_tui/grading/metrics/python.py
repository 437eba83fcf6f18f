"""`Python`: a function of the user's decides, in a process of its own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from msgspec import Struct
from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.schema_rules import NAME_CHARACTERS
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.remote import RemoteMetric, UnusableError
from agenteval_tui.grading.remote_requests import AskKind, RemoteCall, RemoteRequest
from agenteval_tui.grading.results import Evidence, MetricResult
from agenteval_tui.grading.spec import json_like
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import Note
from agenteval_tui.transcripts.observed import unseen

_FUNCTION = re.compile(r"(?:[^\W\d]\w*(?:\.[^\W\d]\w*)*|[^\0\n]+\.py):[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORD = f"[^0-9{NAME_CHARACTERS}][^{NAME_CHARACTERS}]*"
_FUNCTION_IN_EDITORS = rf"^(?:{_WORD}(?:\.{_WORD})*|.*\.py):{_WORD}(?:\.{_WORD})*$"
# As `agents/process/python_evaluator.py` writes them.
_UNUSABLE = "agenteval_unusable"
_UNSEEN = "agenteval_unseen"
PRINTED, RETURNED = "agenteval_printed", "returned"
"""The keys of a reply whose function also printed something."""
# What tools call the parts of a result.
_PASSED = ("passed", "pass", "pass_")
_SCORE = ("score", "value")
_COMMENT = ("reason", "comment", "explanation", "rationale")
_NAME = ("key", "name", "metric")


class Python(RemoteMetric):
    """Calls your own function or evaluator.

    A function gets what its parameters are called: `value` (the extracted text, also the first parameter of any other
    name), `inputs`, `outputs`, `reference_outputs`, `run`, `example`, `input`, `output`, `expected`, `metadata`,
    `messages`, `tool_calls`, `transcript`, `variables`, the variables of the test, and other properties of the metric.
    `(output, context)` is called as promptfoo does. Metrics of DeepEval, scorers of autoevals, and evaluators of
    pydantic-evals and LangSmith are called as they are.

    It returns a bool, a score from 0 to 1, an object with `passed` or `score` and with `key`, `comment` (or `reason`)
    and `evidence`, or a list of these, and may be async. It runs in a separate process with a time limit, and only if
    you trust its repository. It must be code of the suite's project, of a package of evaluators (autoevals, deepeval,
    openevals, agentevals, pydantic_evals), or of a package that is a plug-in of agenteval: `os:system` is an `error`.
    So is an exception; neither is a verdict. `agenteval docs how-to/evaluators` has an example of each.
    """

    model_config = ConfigDict(
        extra="allow",
        strict=True,
        frozen=True,
        json_schema_extra={"allOf": [{"properties": {"function": {"pattern": _FUNCTION_IN_EDITORS}}}]},
    )
    asks: ClassVar[AskKind] = "call"
    any_json: ClassVar[frozenset[str]] = frozenset()

    function: str = Field(
        description="Where the function is, from the suite's folder: `package.module:name` or `path/to/file.py:name`."
    )
    timeout: float = Field(10.0, gt=0, le=600, description="The time limit in seconds.")
    pass_threshold: float = Field(
        0.7, ge=0, le=1, description="The lowest score that passes, if the function returns a score."
    )

    @model_validator(mode="after")
    def _right_place(self) -> Self:
        if not _FUNCTION.fullmatch(self.function):
            raise ValueError(
                f"`function` must be written package.module:name or path/to/file.py:name, not {self.function[:80]!r}"
            )
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

    def conclude(self, remote_calls: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        try:
            returned: Any = json.loads(remote_calls[0].last.raw)
        except (ValueError, RecursionError):
            raise self._unusable("unreadable") from None
        printed: tuple[Evidence, ...] = ()
        if isinstance(returned, Mapping) and PRINTED in returned:
            printed = (Evidence("printed", None, str(returned[PRINTED]).strip()),)
            returned = returned.get(RETURNED)
        if isinstance(returned, Mapping) and _UNSEEN in returned:
            raise _not_observed(value)
        unread = returned.get(_UNUSABLE) if isinstance(returned, Mapping) else None
        if isinstance(unread, Mapping):
            raise self._unusable("type", None, type=str(unread.get("type")), place=str(unread.get("place")))
        listed = returned.get("results") if isinstance(returned, Mapping) else returned
        if not isinstance(listed, list):
            single = self._judged(returned, "function")
            if single.score is None:
                raise self._unusable("nothing", returned)
            lines = [single.line, *_evidence_of(returned)]
            return self.result(single.line.passed is True, single.score, (*lines, *printed))
        judged = [self._judged(result, f"result[{number}]") for number, result in enumerate(listed, 1)]
        scores = [each.score for each in judged if each.score is not None]
        if not scores:
            raise self._unusable("nothing", listed)
        lines = [
            line for each, result in zip(judged, listed, strict=True) for line in (each.line, *_evidence_of(result))
        ]
        passed = all(each.line.passed is not False for each in judged)
        return self.result(passed, sum(scores) / len(scores), (*lines, *printed))

    def _judged(self, result: object, name: str) -> _Judged:
        """One result: its verdict and score, None where it has neither, and the line that says so."""
        fields: dict[str, Any] = {"function": self.function}
        passed: Any = None
        score: Any = result
        if isinstance(result, Mapping):
            passed, score = _first(result, _PASSED), _first(result, _SCORE)
            name = str(_first(result, _NAME) or name)
            if comment := _first(result, _COMMENT) or _rationale(result):
                fields["message"] = str(comment)
            else:
                fields["score"] = passed if score is None else score
            if score is None or (isinstance(score, str) and passed is None):
                label = _first(result, ("label", *_SCORE))
                score, fields = None, fields if label is None else {**fields, "label": label}
        if isinstance(score, bool):
            passed, score = score if passed is None else passed, None
        if passed is not None and not isinstance(passed, bool):
            raise self._unusable("passed", passed)
        if score is not None:
            score = self._score(score)
            if passed is None:
                passed = score >= self.pass_threshold - 1e-9
                if not passed and score > 0:
                    fields["threshold"] = self.pass_threshold
        elif passed is not None:
            score = 1.0 if passed else 0.0
        return _Judged(score, Evidence(name, passed, found=result, code=Code.RETURNED, fields=fields))

    def _unusable(self, problem: str, returned: Any = None, **more: str) -> UnusableError:
        fields: dict[str, Any] = {"function": self.function, "problem": problem, "returned": returned, **more}
        return UnusableError(code=Code.UNUSABLE_RETURN, **fields)

    def _score(self, score: Any) -> float:
        if not isinstance(score, int | float) or (isinstance(score, float) and not math.isfinite(score)):
            raise self._unusable("not a score", score)
        if not 0 <= score <= 1:
            raise self._unusable("off the scale", score)
        return float(score)


def _not_observed(value: Value) -> UnusableError:
    missing = unseen(value.transcript, frozenset(("tool_calls",)))
    kind, note = missing or ("tool_calls", Note("", ""))
    return UnusableError(code=Code.NOT_OBSERVED, kind=kind, note=note.code, what=note.what)


class _Judged(Struct, frozen=True):
    score: float | None
    line: Evidence


def _first(result: Mapping[str, Any], names: Sequence[str]) -> object:
    return next((result[name] for name in names if result.get(name) is not None), None)


def _rationale(result: Mapping[str, Any]) -> object:
    """Of autoevals: why, among the metadata."""
    metadata = result.get("metadata")
    return metadata.get("rationale") if isinstance(metadata, Mapping) else None


def _evidence_of(result: object) -> Sequence[Evidence]:
    """The conditions that a result names: its `evidence`, or promptfoo's `componentResults`."""
    entries = _first(result, ("evidence", "componentResults")) if isinstance(result, Mapping) else None
    listed = entries if isinstance(entries, list) else [entries] if entries else []
    lines = []
    for number, condition in enumerate(listed[:100], 1):
        if isinstance(condition, Mapping):
            passed = _first(condition, _PASSED)
            lines.append(
                Evidence(
                    str(condition.get("condition") or f"evidence[{number}]"),
                    passed if isinstance(passed, bool) else None,
                    str(_first(condition, _COMMENT) or ""),
                    condition.get("expected"),
                    condition.get("found"),
                )
            )
        else:
            lines.append(Evidence(f"evidence[{number}]", None, str(condition)))
    return lines
