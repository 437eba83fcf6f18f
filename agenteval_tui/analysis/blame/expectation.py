"""What a run should have done, out of its criteria and of the evidence that they gave: what the free answer walks back
from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, Outcome
from agenteval_tui.grading.spec import CriterionSpec, metrics_in

LACKED = "lacked"
"""The field of a foreign verdict that lists the texts which no answer had."""

_CALL_CODES = frozenset(
    {
        Code.NEVER_CALLED,
        Code.EQUAL,
        Code.DIFFERS,
        Code.CALLED,
        Code.UNREADABLE,
        Code.UNEXPECTED,
        Code.OUT_OF_PLACE,
        Code.TOO_MANY,
        Code.TOO_FEW,
        Code.NOT_CALLED,
    }
)
_TEXT_CODES = (Code.MISSING, Code.DIFFERS, Code.NO_MATCH)


class Argument(Struct, frozen=True):
    """An argument that was not as expected, as JSON values. `name`: its path. `rule`: what was expected, in words,
    where it is no one value; "" where the argument was not expected at all. `is_missing`: the call does not have it."""

    name: str
    wanted: Any
    found: Any
    rule: str = ""
    is_missing: bool = False


class WantedCall(Struct, frozen=True):
    """A call that a criterion asks for. `call`: the index of the call that is it, None: none is. `near`: the index of
    the nearest other one, with the `differences` of its arguments. `arguments`: {} where the criterion names none."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call: int | None = None
    near: int | None = None
    differences: tuple[Argument, ...] = ()


class Expectation(Struct, frozen=True):
    """`calls` in the order in which criteria name them, `forbidden` and `wrong` indexes of calls and messages that
    evidence names; `texts` that the answer lacks. `answer`: something that failed is said of the final answer."""

    calls: tuple[WantedCall, ...] = ()
    forbidden: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    wrong: tuple[int, ...] = ()
    answer: bool = False


def expectation_of(results: Sequence[CriterionResult], specs: Mapping[str, CriterionSpec]) -> Expectation:
    """What the criteria of a run expected. `specs` by the hash of the criterion; one that is not there gives what its
    evidence says. Only criteria that failed, and those that name calls, say something."""
    calls: list[WantedCall] = []
    forbidden: list[int] = []
    texts: list[str] = []
    wrong: list[int] = []
    answer = False
    for result in results:
        if result.outcome not in DECIDED:
            continue
        failed = result.outcome is Outcome.FAILED
        # What a negated criterion found is what should not be there: its evidence names nothing that was expected.
        if failed and result.negate:
            answer = True
            continue
        if failed:
            texts += [str(text) for text in result.fields.get(LACKED) or ()]
        arguments = _wanted_arguments(specs.get(result.criterion_hash))
        for metric in result.metrics:
            for line in metric.evidence:
                if _is_of_calls(line):
                    _add_call(line, arguments.get(line.condition.partition(".")[0], {}), calls, forbidden)
                elif failed and line.passed is False:
                    wrong += [span.index for span in line.spans if span.kind == "message"]
                    answer = True
                    if line.code in _TEXT_CODES and isinstance(line.expected, str) and not line.fields.get("forbidden"):
                        texts.append(line.expected)
    return Expectation(tuple(calls), tuple(forbidden), tuple(texts), tuple(wrong), answer)


def _is_of_calls(line: Evidence) -> bool:
    return "tool" in line.fields and line.code in _CALL_CODES


def _add_call(line: Evidence, arguments: Mapping[str, Any], calls: list[WantedCall], forbidden: list[int]) -> None:
    fields = line.fields
    indices = [span.index for span in line.spans if span.kind in ("tool", "arguments")]
    if line.passed is False and (fields.get("forbidden") or line.code in (Code.TOO_MANY, Code.UNEXPECTED)):
        # Of too many calls the first ones are as expected.
        most = fields.get("most")
        forbidden.extend(
            dict.fromkeys(indices[most:] if isinstance(most, int) and line.code is Code.TOO_MANY else indices)
        )
    elif (
        fields.get("forbidden")
        or line.code is Code.NOT_CALLED
        or (line.passed and line.code is not Code.EQUAL and line.condition.endswith(".usage"))
    ):
        return
    elif line.passed:
        own = fields.get("call")
        index = own if isinstance(own, int) else indices[0] if indices else None
        if index is not None:
            calls.append(WantedCall(fields["tool"], arguments, index))
    else:
        near = fields.get("near_call") or fields
        closest = near.get("call") if near.get("tool") == fields["tool"] and "taken" not in near else None
        differences = near.get("arguments") or fields.get("arguments") or ()
        calls.append(WantedCall(fields["tool"], arguments, None, closest, tuple(_arguments(differences))))


def _arguments(differences: Iterable[Any]) -> Iterable[Argument]:
    for difference in differences:
        if isinstance(difference, Mapping) and "argument" in difference:
            is_missing = difference.get("is") == "missing"
            yield Argument(
                str(difference.get("path") or difference["argument"]),
                wanted=difference.get("wanted"),
                # The evidence of a missing argument may hold the value of another one: the one that was meant, perhaps.
                found=None if is_missing else difference.get("found"),
                rule=str(difference.get("expected") or ""),
                is_missing=is_missing,
            )


def _wanted_arguments(spec: CriterionSpec | None) -> dict[str, Mapping[str, Any]]:
    """The arguments that a config asks for, by the name of the condition."""
    by_entry: dict[str, Mapping[str, Any]] = {}
    if spec is None or spec.broken:
        return by_entry
    for metric in metrics_in(spec.value):
        if not isinstance(metric, Mapping):
            continue
        for key in ("calls", "tools"):
            entries = metric.get(key)
            for number, entry in enumerate(entries if isinstance(entries, list) else ()):
                if isinstance(entry, Mapping) and isinstance(entry.get("arguments"), Mapping):
                    by_entry[f"{key}[{number}]"] = entry["arguments"]
    return by_entry
