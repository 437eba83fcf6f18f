"""How a test was set up on two sides: what it was asked, of which agent, and what its verdict was made from.

Two verdicts can be told apart by the agent alone only where all of this is equal. Versions of criteria are not here:
each result names its own (`comparison_model.CriterionChange`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from msgspec import Meta

from agenteval_tui.core.document import Document, one_of
from agenteval_tui.history.comparison_queries import ComparedRun, questions_of
from agenteval_tui.history.store import Store
from agenteval_tui.runs.plan.gates import StoredGates

Kind = Literal[
    "agent", "agent_config", "prompt", "turns", "user", "timeout", "severity", "weight", "pass_threshold", "gate"
]
_Kind = TypeVar("_Kind")
_Value = TypeVar("_Value")
JUDGING: tuple[Kind, ...] = ("severity", "weight", "pass_threshold", "gate")
"""What a verdict is made from, beside the criteria."""
_TASK: tuple[tuple[Kind, str], ...] = (
    ("prompt", "messages"),
    ("turns", "turns"),
    ("user", "user"),
    ("timeout", "timeout_s"),
    ("pass_threshold", "pass_threshold"),
)
_SHOWN: tuple[Kind, ...] = ("timeout", "pass_threshold")
_CRITERION: tuple[Kind, ...] = ("severity", "weight")


class Change(Document, Generic[_Kind, _Value], frozen=True):
    """Something of a test, or of one of its criteria, that is different on the other side."""

    kind: _Kind
    criterion: Annotated[str, Meta(description='whose severity or weight; "": it is the test\'s')] = ""
    was: Annotated[_Value | None, Meta(description="null: not set, or too long to be shown")] = None
    now: _Value | None = None


_SetupKind = Annotated[
    str,
    one_of(*get_args(Kind)),
    Meta(description="`agent_config`: the agent has the same name and another configuration"),
]


class SetupChange(Change[_SetupKind, str | float], frozen=True):
    """Something that a test was set up with, and that is different on the other side."""


Pair = tuple[ComparedRun, ComparedRun]
"""A run of the left side and one of the right, of one case."""


def setup_changes(store: Store, pairs: Mapping[Any, Sequence[Pair]]) -> dict[Any, tuple[SetupChange, ...]]:
    """By key, what was set up differently in these pairs of runs; keys without any change are left out."""
    setups = _Setups(store, [run for listed in pairs.values() for pair in listed for run in pair])
    changes = {}
    for key, listed in pairs.items():
        differing = [pair for pair in listed if setups.may_differ(*pair)]
        if changed := tuple(dict.fromkeys(change for pair in differing for change in setups.changes(*pair))):
            changes[key] = changed
    return changes


class _Setups:
    """What runs were planned from. Tasks are read of those executions only that were planned differently."""

    def __init__(self, store: Store, runs: Sequence[ComparedRun]) -> None:
        self._store = store
        executions = dict.fromkeys(run.execution_id for run in runs)
        self._gates = {name: StoredGates(store.execution(name).options) for name in executions}
        self._tasks: dict[str, Mapping[str, Any]] = {}
        self._read: set[str] = set()  # the executions whose tasks were read
        self._specs: dict[str, Mapping[str, Mapping[str, Any]]] = {}
        plans = sorted({run.plan for run in runs if run.task is None})
        self._questions = store.read(lambda connection: questions_of(connection, plans)) if plans else {}
        self._compared: dict[tuple[int, int], tuple[SetupChange, ...]] = {}

    def may_differ(self, was: ComparedRun, now: ComparedRun) -> bool:
        """Whether anything can differ between two runs; False is certain."""
        if was.task is None or was.task != now.task:
            return True
        if self._specs_of(was.execution_id) != self._specs_of(now.execution_id):
            return True  # tasks name criteria by what judges: their weights and severities are in the setup
        return (was.agent, was.agent_version) != (now.agent, now.agent_version) or self._gate(was) != self._gate(now)

    def changes(self, was: ComparedRun, now: ComparedRun) -> Iterator[SetupChange]:
        """What differs between two runs."""
        if was.agent != now.agent:
            yield SetupChange("agent", was=was.agent, now=now.agent)
        # Where one is not known nothing is said: it may be the same.
        elif was.agent_version and now.agent_version and was.agent_version != now.agent_version:
            yield SetupChange("agent_config", was=was.agent, now=now.agent)
        before, after = self._task(was), self._task(now)
        if before is not None and after is not None:
            # A task is kept as long as this is, so that its identity names it; comparing tasks takes longer.
            key = id(before), id(after)
            if key not in self._compared:
                specs = self._specs_of(was.execution_id), self._specs_of(now.execution_id)
                self._compared[key] = (
                    *_task_changes(before, after),
                    *_criterion_changes(_specs_of(before, specs[0]), _specs_of(after, specs[1])),
                )
            yield from self._compared[key]
        # Older runs have no task; of these the first question is known, by their plan.
        elif was.plan != now.plan and _differ(self._questions.get(was.plan), self._questions.get(now.plan)):
            yield SetupChange("prompt")
        if self._gate(was) != self._gate(now):
            yield SetupChange("gate", was=self._gate(was), now=self._gate(now))

    def _gate(self, run: ComparedRun) -> float | None:
        gate = self._gates[run.execution_id].of(run.suite_key, run.test_id)
        return None if gate is None else gate.pass_rate

    def _task(self, run: ComparedRun) -> Mapping[str, Any] | None:
        if run.task is None:
            return None
        if run.execution_id not in self._read:
            self._read.add(run.execution_id)
            self._tasks |= {name: stored.task for name, stored in self._store.tasks_of(run.execution_id).items()}
        return self._tasks.get(run.id)

    def _specs_of(self, execution: str) -> Mapping[str, Mapping[str, Any]]:
        if execution not in self._specs:
            self._specs[execution] = (self._store.setup_of(execution) or {}).get("specs", {})
        return self._specs[execution]


def _differ(was: tuple[str, str] | None, now: tuple[str, str] | None) -> bool:
    return was is not None and now is not None and was[0] != now[0]


def _task_changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[SetupChange]:
    for kind, name in _TASK:
        if was.get(name) != now.get(name):
            yield SetupChange(kind, was=was.get(name), now=now.get(name)) if kind in _SHOWN else SetupChange(kind)


def _specs_of(task: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {specs[key]["name"]: specs[key] for key in task.get("specs", ()) if key in specs}


def _criterion_changes(
    was: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> Iterable[SetupChange]:
    for name, spec in now.items():
        before = was.get(name, spec)
        for kind in _CRITERION:
            if before.get(kind) != spec.get(kind):
                yield SetupChange(kind, name, before.get(kind), spec.get(kind))
