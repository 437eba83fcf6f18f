"""The smallest relaxations: the fewest edits to a criterion's config that make it pass on one transcript.

Every proposal was graded again as it would be saved: nothing is proposed that does not make the criterion pass, or
that makes it check nothing at all. The work is bounded by the number of configs that are tried, not by a clock.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from agenteval_tui.core.errors import Fix
from agenteval_tui.grading.compile import Checker, compile_criterion
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.metrics.tool_check import Tool, ToolCheck
from agenteval_tui.grading.placeholders import PlaceholderError, fill
from agenteval_tui.grading.registry import known_metric
from agenteval_tui.grading.relax.changes import (
    Change,
    ConfigEdit,
    Path,
    changed_text,
    changed_value,
    in_conflict,
    normalised,
    ordered,
)
from agenteval_tui.grading.relax.config import (
    extraction_changes,
    json_changes,
    metric_changes,
    negated_changes,
    whole_metric_changes,
    without_metric,
)
from agenteval_tui.grading.relax.text_match import text_changes
from agenteval_tui.grading.relax.tool_check import tool_changes, trajectory_changes
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec, json_like
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.uxon.edit import edits_between
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.tree import Document

MOST = 6
TRIES = 400
"""Configs that are tried. One costs a fifth of a millisecond as a rule."""
_STEPS = 3_000
_ERROR = 40
"""Tries that a config costs which cannot be graded: a pattern that is too slow takes its second each time."""
_CONDITIONS = 40


class Relaxation(Struct, frozen=True):
    """A config under which the criterion passes. `edits` turn the config text into `new_text`.

    `steps` are its changes in words, `title` all together. `cost` orders proposals: 1 for each edit, and more for
    what it gives up; removing what is forbidden costs 11.
    """

    title: str
    edits: Fix
    new_text: str
    cost: float
    steps: tuple[str, ...] = ()


def relaxations(
    spec: CriterionSpec,
    transcript: Transcript,
    variables: Mapping[str, Any] | None = None,
    *,
    most: int = MOST,
    tries: int = TRIES,
) -> tuple[Relaxation, ...]:
    """The smallest relaxations of a criterion that fails on `transcript`, best first; () when it does not fail.

    Edits are those of `spec.config_text`. Never raises.
    """
    result = compile_criterion(spec).check(transcript, variables)
    if result.outcome is not Outcome.FAILED or not isinstance(spec.value, dict):
        return ()
    return _Search(spec, transcript, variables or {}, most, tries).run(result)


class _Search:
    def __init__(
        self, spec: CriterionSpec, transcript: Transcript, variables: Mapping[str, Any], most: int, tries: int
    ) -> None:
        self.spec = spec
        self.transcript = transcript
        self.variables = variables
        self.most = most
        self.tries = tries
        self.neutral = 0
        self.value: dict[str, Any] = spec.value
        self.checks_metrics = bool(self.value.get("metrics"))
        self.found: list[tuple[Change, ...]] = []
        self.tried: dict[str, bool] = {}
        self.documents = {spec.config_text: spec.document}

    def run(self, result: CriterionResult) -> tuple[Relaxation, ...]:
        """The proposals; `result` is what the criterion says as it is."""
        self.neutral = sum(metric.neutral for metric in result.metrics)
        if self.spec.negate:
            self._alone(negated_changes(self.value, result.metrics))
        # Nothing was extracted: no metric ran, so nothing is known of them before something is.
        elif result.value is None:
            for first in sorted(extraction_changes(self.value, self.transcript), key=lambda change: change.cost):
                self._after(first)
        else:
            self._alone(extraction_changes(self.value, self.transcript))
            self._cover(self.value, result, ())
        proposals: list[Relaxation] = []
        for changes in sorted(_smallest(self.found), key=_cost):
            relaxation = self._proposal(changes)
            if relaxation is not None and all(relaxation.new_text != other.new_text for other in proposals):
                proposals.append(relaxation)
            if len(proposals) == self.most:
                break
        return tuple(proposals)

    def _alone(self, changes: Iterable[Change]) -> None:
        for change in sorted(changes, key=lambda change: change.cost):
            if self._passes((change,)):
                self.found.append((change,))

    def _after(self, first: Change) -> None:
        """With `first` something is extracted: if the metrics still fail, the changes that they need too."""
        if self._passes((first,)):
            self.found.append((first,))
            return
        value = _value(self.value, (first,))
        result = self._graded(value, explain=True) if value is not None else None
        if result is not None and result.outcome is Outcome.FAILED and result.value is not None:
            self._cover(value, result, (first,))

    def _cover(self, value: object, result: CriterionResult, before: tuple[Change, ...]) -> None:
        """Choose changes that fix every failing condition, cheapest first."""
        by_condition = _by_condition(self._changes(value, result))
        if not by_condition or len(by_condition) > _CONDITIONS:
            return
        if len(by_condition) > 1:
            self._drop_useless(by_condition, before)
        if not all(by_condition.values()) and self.spec.pass_threshold is None:
            return
        # A* search: the cheapest share of a change for each condition that is left never costs more than fixing it, so
        # the first goal that is found is a cheapest one.
        least = {
            name: min((change.cost / len(change.covers) for change in changes), default=0.0)
            for name, changes in by_condition.items()
        }
        everything = frozenset(by_condition)
        number = count()
        waiting: list[tuple[float, int, frozenset[str], tuple[Change, ...]]] = [(0.0, 0, frozenset(), ())]
        tried: set[frozenset[tuple[ConfigEdit, ...] | str]] = set()
        goals = 0
        for _ in range(_STEPS):
            if not waiting or self.tries <= 0 or goals >= self.most:
                break
            _, _, covered, chosen = heapq.heappop(waiting)
            uncovered = everything - covered
            if chosen and (not uncovered or self.spec.pass_threshold is not None) and self._passes((*before, *chosen)):
                self.found.append((*before, *chosen))
                goals += 1
                continue
            if not uncovered:
                continue
            # The condition with the fewest changes first: it cuts most of the tree.
            condition = min(uncovered, key=lambda name: (len(by_condition[name]), name))
            for change in by_condition[condition]:
                if any(in_conflict(change, other) for other in (*before, *chosen)):
                    continue
                key = frozenset((*(_key(change) for change in chosen), _key(change)))
                if key in tried:
                    continue
                tried.add(key)
                now = covered | change.covers
                cost = _cost((*chosen, change)) + sum(least[name] for name in everything - now)
                heapq.heappush(waiting, (cost, next(number), now, (*chosen, change)))
            if self.spec.pass_threshold is not None:  # then a condition may also stay broken
                cost = _cost(chosen)
                heapq.heappush(waiting, (cost, next(number), covered | {condition}, chosen))

    def _drop_useless(self, by_condition: dict[str, list[Change]], before: tuple[Change, ...]) -> None:
        """Leave out changes that do not fix their own condition: tried with every other condition removed."""
        away = {name: max(changes, key=lambda change: change.cost) for name, changes in by_condition.items()}
        for name, changes in by_condition.items():
            useful = []
            for change in changes:
                others = {
                    _key(alternative): alternative
                    for other, alternative in away.items()
                    if other not in change.covers
                    and name not in alternative.covers
                    and not in_conflict(alternative, change)
                }
                # As many tries are left as the search itself needs.
                if self.tries <= self.most * 4:
                    return
                covered = change.covers.union(*(other.covers for other in others.values()))
                # Where the others cannot be taken away beside it, only the whole will show.
                if len(covered) < len(by_condition) or self._passes((*before, change, *others.values()), neutral=True):
                    useful.append(change)
            by_condition[name] = useful

    def _changes(self, value: Any, result: CriterionResult) -> list[tuple[str, Change]]:
        changes: list[tuple[str, Change]] = []
        listed = value.get("metrics") or []
        for number, metric in enumerate(result.metrics):
            if number >= len(listed) or metric.outcome is not Outcome.FAILED:
                continue
            at: Path = ("metrics", number)
            own = list(self._of_metric(at, listed[number], metric, result.value or ""))
            keys = sorted({key for key, _ in own}) or [f"{at}"]
            kind = known_metric(str(listed[number].get("type"))) or ""
            whole = list(whole_metric_changes(at, listed[number], kind, metric))
            if len(listed) > 1:
                whole.append(without_metric(at, metric.name))
            own += [(key, change) for key in keys for change in whole]
            changes += own
        return changes

    def _of_metric(
        self, at: Path, raw: Mapping[str, Any], result: MetricResult, text: str
    ) -> Iterable[tuple[str, Change]]:
        kind = known_metric(str(raw.get("type")))
        if kind == "TextMatch":
            return text_changes(at, raw, result, text)
        if kind == "ToolCheck":
            return self._of_tools(at, raw)
        if kind == "Trajectory":
            return trajectory_changes(at, raw, result)
        if kind == "Json":
            return (*json_changes(at, raw, result), *metric_changes(at, raw, result))
        return metric_changes(at, raw, result)

    def _of_tools(self, at: Path, raw: Mapping[str, Any]) -> Iterable[tuple[str, Change]]:
        all_variables = dict(self.variables)
        try:
            if self.spec.expected_value is not None:
                all_variables["expected_value"] = fill(json_like(self.spec.expected_value), self.variables, typed=True)
            filled = fill(dict(raw), all_variables, ToolCheck.any_json)
            metric = ToolCheck.model_validate({key: item for key, item in filled.items() if key != "type"})
        except (PlaceholderError, ValidationError):
            return ()
        tools = [Tool(data) for data in metric.tools or ()]
        return tool_changes(at, raw, tools, metric.forbidden_tools or (), self.transcript.tool_calls)

    def _passes(self, changes: Sequence[Change], *, neutral: bool = False) -> bool:
        """Whether the criterion passes with these changes. `neutral`: also when it then checks nothing."""
        value = _value(self.value, changes)
        if value is None or self.tries <= 0:
            return False
        key = f"{neutral}{value!r}"
        if key not in self.tried:
            result = self._graded(value)
            good = result.outcome is Outcome.PASSED
            self.tried[key] = good and (neutral or self._still_checks(result))
        return self.tried[key]

    def _still_checks(self, result: CriterionResult) -> bool:
        """Something is looked at, and no metric is left that looks at nothing any more."""
        if result.neutral or sum(metric.neutral for metric in result.metrics) > self.neutral:
            return False
        return not self.checks_metrics or any(not metric.neutral for metric in result.metrics)

    def _graded(self, value: object, *, explain: bool = False) -> CriterionResult:
        # The value as it is: writing and reading it as text would be most of what a try costs.
        result = Checker(replace(self.spec, config=value)).check(self.transcript, self.variables, explain=explain)
        self.tries -= 1 if result.outcome is not Outcome.ERROR else _ERROR
        return result

    def read(self, text: str) -> Document:
        """The document of a config; many proposals begin with the same edit of the same text."""
        document = self.documents.get(text)
        if document is None:
            document = self.documents[text] = parse(text)
        return document

    def _proposal(self, changes: tuple[Change, ...]) -> Relaxation | None:
        text = self.spec.config_text
        new_text = changed_text(text, normalised(self.value, ordered(changes)), self.read)
        if new_text is None or new_text == text:
            return None
        spec = replace(self.spec, config=new_text)
        if self._codes(spec) - self.codes:
            return None  # what `validate` would complain about is no way out
        result = Checker(spec).check(self.transcript, self.variables, explain=False)
        if result.outcome is not Outcome.PASSED or not self._still_checks(result):
            return None
        steps = tuple(change.title for change in changes)
        title = "; ".join(steps)
        return Relaxation(title, Fix(title, edits_between(text, new_text)), new_text, round(_cost(changes), 3), steps)

    @cached_property
    def codes(self) -> Counter[str]:
        """The diagnostics that the config has already, by code."""
        return self._codes(self.spec)

    def _codes(self, spec: CriterionSpec) -> Counter[str]:
        # The document, not its text: it is read once for this and for grading.
        return Counter(diagnostic.code for diagnostic in diagnose(spec.document, spec.prototype_class))


def _by_condition(changes: Sequence[tuple[str, Change]]) -> dict[str, list[Change]]:
    """The changes of each condition, cheapest first; the same edits for several conditions are one change."""
    merged: dict[str, Change] = {}
    for condition, change in changes:
        key = _key(change)
        earlier = merged.get(key)
        covers = change.covers | {condition} | (earlier.covers if earlier is not None else frozenset())
        merged[key] = replace(earlier or change, covers=covers)
    # A change may cover more conditions than those that fail here.
    by_condition: dict[str, list[Change]] = {condition: [] for condition, _ in changes}
    for change in sorted(merged.values(), key=lambda change: change.cost):
        for condition in change.covers & by_condition.keys():
            by_condition[condition].append(change)
    return by_condition


def _key(change: Change) -> str:
    return repr(change.ops)


def _cost(changes: Iterable[Change]) -> float:
    return sum(change.cost for change in changes)


def _value(value: object, changes: Sequence[Change]) -> object:
    try:
        return changed_value(value, normalised(value, ordered(changes)))
    except (LookupError, TypeError, ValueError):
        return None


def _smallest(choices: Sequence[tuple[Change, ...]]) -> list[tuple[Change, ...]]:
    """Without changes that do more than another sufficient one."""
    sets = [frozenset(_key(change) for change in changes) for changes in choices]
    return [
        changes
        for number, changes in enumerate(choices)
        if not any(other < sets[number] or (other == sets[number] and at < number) for at, other in enumerate(sets))
    ]
