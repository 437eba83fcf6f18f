"""Criteria made at an import of what a foreign file says was expected.

They say in which way a foreign run is wrong, which its verdict does not; they are marked as derived and decide nothing.
Each compares only what the other tool's own evaluation compares.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from agenteval_tui.formats.importers.suite_import import checked, checked_literally
from agenteval_tui.grading import registry
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.metrics.matchers import literal
from agenteval_tui.grading.remote import RemoteMetric
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_verbs import changes_something

MOST = 50
"""The most criteria for one run."""
OF_RUN = "of_run"
"""The key of a criterion that was made from this one run, and not only from its test."""
_LONGEST = 20_000  # characters of an expected value


class DerivedGrader:
    """Grades recordings by their expected values. Compiles equal criteria once."""

    def __init__(self) -> None:
        self._specs: dict[str, CriterionSpec] = {}

    def results(
        self, expected: Iterable[Mapping[str, Any]], transcript: Transcript, variables: Mapping[str, Any]
    ) -> tuple[CriterionResult, ...]:
        """The results of the derived criteria on a run. Each has weight 0 and severity info.

        A criterion that was made for this run alone has no hash, because a test's criterion is the same in all its
        runs.
        """
        criterion_results = []
        for criterion in islice(expected, MOST):
            result = compile_criterion(self._spec(criterion)).check(transcript, variables)
            content_hash = "" if criterion.get(OF_RUN) else result.criterion_hash
            criterion_results.append(
                replace(result, derived=True, severity="info", weight=0.0, criterion_hash=content_hash)
            )
        return tuple(criterion_results)

    def specs(self, expected: Iterable[Mapping[str, Any]]) -> tuple[CriterionSpec, ...]:
        """The criteria that belong to the test, and not to a single run."""
        return tuple(self._spec(criterion) for criterion in islice(expected, MOST) if not criterion.get(OF_RUN))

    @staticmethod
    def left_out(expected: Sequence[Mapping[str, Any]]) -> str:
        """The note on a run with more expectations than are checked; "" if all are."""
        return f"only the first {MOST} of {len(expected):,} expectations are checked" if len(expected) > MOST else ""

    def _spec(self, criterion: Mapping[str, Any]) -> CriterionSpec:
        key = json.dumps(criterion, sort_keys=True, default=str)
        if key not in self._specs:
            # Criteria of single runs are never met again: a large file would keep them all.
            if len(self._specs) > 10_000:
                self._specs.clear()
            self._specs[key] = CriterionSpec(
                name=criterion["name"],
                prototype_class=criterion["prototype_class"],
                config=criterion["config_uxon"],
                description=str(criterion.get("description", "")),
                expected_value=criterion.get("expected_value"),
                weight=0.0,
                severity="info",
                negate=bool(criterion.get("negate", False)),
                pass_threshold=criterion.get("pass_threshold"),
            )
        return self._specs[key]


def criteria_of_actions(
    actions: Any, transcript: Transcript, *, tool: str, kinds: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], ...]:
    """Of the right actions of a task of tau-bench or tau2-bench: `[{name, kwargs or arguments, compare_args}]`.

    Both compare the state of the database, so that only calls which write count: each expected one must be made, and
    no others. A call that gave an error has written nothing. Which calls write is told by their names.
    """
    if not isinstance(actions, list):
        return ()
    calls: list[dict[str, Any]] = []
    overrides: dict[str, list[str]] = {}
    for action in actions:
        if not isinstance(action, Mapping) or not isinstance(action.get("name"), str) or not action["name"]:
            continue
        # In tau2-bench the simulated user calls tools, too: these are not the agent's.
        if action.get("requestor") == "user" or not changes_something(action["name"], kinds):
            continue
        action_arguments = action.get("kwargs", action.get("arguments"))
        arguments = {"arguments": _literal(action_arguments)} if isinstance(action_arguments, Mapping) else {}
        calls.append({"name": action["name"], **arguments})
        if isinstance(action.get("compare_args"), list):
            overrides[action["name"]] = [str(key) for key in action["compare_args"]]
    about = f"{tool} compares the database, which only writing calls change; their names say which write"
    criteria = []
    if calls:
        metric: dict[str, Any] = {"type": "Trajectory", "mode": "superset", "calls": calls}
        if overrides:
            metric["overrides"] = overrides
        criteria.append(
            checked_literally("Expected writing calls", metric, prototype="ToolResponse", description=about)
        )
    most = Counter(call["name"] for call in calls)
    # A call that failed has written nothing: it may be made again.
    most.update(call.name for call in transcript.tool_calls if call.status == "error" and call.name in most)
    called = {
        call.name for call in transcript.tool_calls if call.status != "error" and changes_something(call.name, kinds)
    }
    only: dict[str, Any] = {"type": "ToolCheck"}
    if most:
        only["tools"] = [{"name": name, "required": False, "max_calls": count} for name, count in most.items()]
    if others := sorted(called - most.keys()):
        only["forbidden_tools"] = others
    # Without a tool to limit or to forbid the check would hold of every run.
    if len(only) > 1:
        of_run = {"description": about, OF_RUN: True}
        criteria.append(checked("No other writing calls", only, prototype="ToolResponse", **of_run))
    return tuple(criteria)


def _literal(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments none of which is taken for a matcher."""
    return {str(key): literal(item) for key, item in arguments.items()}


def criteria_of_tools(tools: Any) -> tuple[dict[str, Any], ...]:
    """Of the names, or calls (`{name, input_parameters}`), of tools that were expected."""
    calls = []
    for tool in tools if isinstance(tools, list) else ():
        name = tool.get("name") if isinstance(tool, Mapping) else tool
        if not isinstance(name, str) or not name:
            continue
        parameters = tool.get("input_parameters", tool.get("inputParameters")) if isinstance(tool, Mapping) else None
        calls.append(
            {
                "name": name,
                **({"arguments": _literal(parameters)} if isinstance(parameters, Mapping) and parameters else {}),
            }
        )
    if not calls:
        return ()
    metric = {"type": "Trajectory", "mode": "superset", "calls": calls}
    return (checked_literally("Expected tools", metric, prototype="ToolResponse"),)


def criteria_of_target(target: Any, choices: Any = None) -> tuple[dict[str, Any], ...]:
    """Of the right answer: with choices the letter behind `ANSWER:`, else a text that the answer contains in any case,
    one of several, or a JSON value that it is equal to."""
    name = "Expected answer"
    if isinstance(target, Mapping) and len(target) == 1 and isinstance(next(iter(target.values())), str):
        target = next(iter(target.values()))
    if isinstance(target, Mapping) or (isinstance(target, list) and not all(isinstance(item, str) for item in target)):
        if len(json.dumps(target, default=str)) > _LONGEST:
            return ()
        return (checked_literally(name, {"type": "Json", "equals": target}),)
    texts = [target] if not isinstance(target, list) else target
    texts = [str(text).strip() for text in texts if isinstance(text, str | int | float) and not isinstance(text, bool)]
    texts = [text for text in texts if text]
    if not texts or sum(map(len, texts)) > _LONGEST:
        return ()
    if isinstance(choices, list) and choices and all(re.fullmatch(r"[A-Z]", text) for text in texts):
        labels = [chr(ord("A") + index) for index in range(min(len(choices), 26))]
        criterion = checked(name, {"type": "Classification", "labels": labels, "label": texts[0]})
        criterion["config_uxon"]["extract_by_regex"] = r"/ANSWER\s*:\s*\(?([A-Z])\b/i"
        return (criterion,) if len(texts) == 1 and texts[0] in labels else ()
    # A criterion would read a template in it.
    if any("{{" in text or "{%" in text for text in texts):
        return ()
    if len(texts) == 1:
        return (checked(name, {"type": "TextMatch", "contains_ignore_case": texts[0]}),)
    pattern = f"(?:{'|'.join(map(re.escape, texts))})"
    return (checked(name, {"type": "Regex", "pattern": pattern, "flags": "i"}),)


def local_criteria(criteria: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Those of the criteria that can be checked without asking a person, a model or a program."""
    return tuple(
        criterion
        for criterion in criteria
        if not any(
            issubclass(registry.metric(entry["type"]), RemoteMetric) for entry in criterion["config_uxon"]["metrics"]
        )
    )
