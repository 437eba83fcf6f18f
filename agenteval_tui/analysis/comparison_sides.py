"""Which runs are compared with which: executions, agents, variations and baselines, named as on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.comparison_model import PairedSuites, Side, SidesError
from agenteval_tui.core.directories import db_option
from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import short_id
from agenteval_tui.history import baselines
from agenteval_tui.history.baselines import Baseline
from agenteval_tui.history.comparison_queries import ComparedRun, compared_runs, compared_runs_of, execution_before
from agenteval_tui.history.records import ExecutionRow, is_imported
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.runs.plan.model import ARMS, arm_of

BASELINE = "baseline"
LAST = "last"
DEFAULT_VARIATION = "default"
SELECTIONS = ("tests", "tags", "variation", "sample", "failed_from")
"""The options that leave out tests on purpose: what did not run then is not missing."""


class NothingBeforeError(SidesError):
    """No side was named, and the newest execution has neither a baseline nor one before it."""


class Sides(Struct, frozen=True):
    """What is to be compared. `a` and `b`: an execution (or a run) by id or the start of one, `last`, or `baseline`.

    `agents` and `variations`: none; one name, for both sides; or two, the left side's and the right side's
    ("default": without a variation).
    """

    a: str = ""
    b: str = ""
    agents: tuple[str, ...] = ()
    variations: tuple[str, ...] = ()

    @property
    def within(self) -> bool:
        """Whether both sides are of one execution: two agents or variations of it."""
        return (len(self.agents) > 1 or len(self.variations) > 1) and not (self.a and self.b)


def sides_of(store: Store, choice: Sides, projects: Sequence[str] = ()) -> tuple[Side, Side]:
    """Read both sides. Without any reference: the newest execution against its baseline, or where none of its tests
    has one against the execution before (`execution_before` says which); where it was an A/B one, B against A.

    The newest execution is that of these projects (none: of all).

    Raises `AgentevalError`: no such execution, agent or variation, no baseline, the same twice, or nothing that ended.
    """
    for names, what in ((choice.agents, "agents"), (choice.variations, "variations")):
        if len(names) > 2:
            raise AgentevalError(f"only two {what} can be compared", fix="name two")
    # An execution that is named may be of any project; only the newest is looked for among these.
    if projects and not choice.b and not (choice.a and choice.within):
        choice = replace(choice, b=References(store, tuple(projects)).execution().id)
    choice = _with_arms(store, choice)
    if choice.within:
        references = (choice.a or choice.b or LAST,) * 2
    else:
        references = (choice.a or BASELINE, choice.b or LAST)
    right = _named(store, references[1])
    if references[0] == BASELINE:
        left = baseline_side(store, right.runs, whole=_ran_whole(store, right))
        if left is None and not choice.a and (before := store.read(lambda c: execution_before(c, right.executions))):
            left = execution_side(store, store.execution(before))
        if left is None:
            kind = SidesError if choice.a else NothingBeforeError
            raise kind(
                f"no test of execution {short_id(right.reference)} has a baseline"
                + ("" if choice.a else ", and no execution before it has a verdict on them"),
                fix=f"set one with agenteval baseline set EXECUTION, or name two: agenteval compare A"
                f" {short_id(right.reference)}{db_option(store.path)}",
            )
    else:
        left = _named(store, references[0])
    sides = [_filtered(side, choice, number) for number, side in enumerate((left, right))]
    # After both are filtered: one execution may be on both sides with two agents.
    if [run.id for run in sides[0].runs] == [run.id for run in sides[1].runs]:
        raise SidesError(
            f"both sides have the same runs ({sides[1].name})",
            fix="name two executions, or two agents: --agent A --agent B",
        )
    return _with_version(store, sides[0]), _with_version(store, sides[1])


def _with_version(store: Store, side: Side) -> Side:
    """The side with what its execution was a version of; of several executions nothing is said."""
    if len(side.executions) != 1:
        return side
    execution = store.execution(side.executions[0])
    return replace(side, commits=execution.commits, meta=execution.meta)


def _with_arms(store: Store, choice: Sides) -> Sides:
    """If no left side was chosen and the right one is an A/B execution: its arms."""
    if choice.a or choice.agents or choice.variations:
        return choice
    try:
        execution = store.execution(choice.b or LAST)
    except AgentevalError:
        return choice  # a run, or nothing at all: it is said where it is read
    if not execution.options.get("ab"):
        return choice
    _, names = names_of(execution_side(store, execution).runs)
    arms = tuple(name for arm in ARMS for name in names if arm_of(name) == arm)
    return replace(choice, b=execution.id, variations=arms) if len(arms) == len(ARMS) else choice


def execution_side(store: Store, execution: ExecutionRow) -> Side:
    """All runs of an execution."""
    runs = store.read(lambda c: compared_runs_of(c, execution.id))
    name = execution.name or execution.title or execution.suites or execution.id
    return Side(
        kind="execution",
        name=name,
        reference=execution.id,
        executions=(execution.id,),
        runs=tuple(runs),
        started_ms=execution.started_ms,
    )


def baseline_side(store: Store, runs: Sequence[ComparedRun], *, whole: bool = False) -> Side | None:
    """The baselines of the tests that these runs belong to; None when none has one.

    `whole`: all tests of their suites ran, so that the other baselines of these suites, and of suites whose file in the
    same folder is gone, belong to them, too.
    """
    listed = baselines.baselines(store)
    moved = moved_suites(listed, {run.suite_key: run.suite_name for run in runs})
    ran = {(run.suite_key, run.test_id) for run in runs}
    own = {(baseline.suite_key, baseline.test_id) for baseline in listed}
    suites = {key for key, _ in ran}
    folders = {Path(key).parent for key in suites if not is_imported(key)}
    tests = set()
    for baseline in listed:
        key, test = moved.get(baseline.suite_key, baseline.suite_key), baseline.test_id
        if key != baseline.suite_key and (key, test) in own:
            continue  # it was set anew where the file lies now
        if (key, test) in ran or (whole and (key in suites or (Path(key).parent in folders and _is_gone(key)))):
            tests.add((baseline.suite_key, test))
    ids = baselines.baseline_runs(store, tests)
    if not ids:
        return None
    baseline_runs = store.read(lambda c: compared_runs(c, ids))
    executions = tuple(dict.fromkeys(run.execution_id for run in baseline_runs))
    started = max((run.started_ms for run in baseline_runs), default=0)
    name = "baseline" if len(executions) == 1 else f"baseline of {len(executions)} executions"
    here = tuple(
        replace(run, suite_key=moved[run.suite_key]) if run.suite_key in moved else run for run in baseline_runs
    )
    suites = {run.suite_key for run in baseline_runs}
    return Side(
        kind="baseline",
        name=name,
        reference=BASELINE,
        executions=executions,
        runs=here,
        started_ms=started,
        moved=tuple(PairedSuites(was, now) for was, now in moved.items() if was in suites),
    )


def selections_of(execution: ExecutionRow) -> tuple[str, ...]:
    """The options by which tests were left out of an execution on purpose."""
    return tuple(name for name in SELECTIONS if execution.options.get(name))


def _ran_whole(store: Store, side: Side) -> bool:
    """Whether a side is an execution of whole suites."""
    return side.executions == (side.reference,) and not selections_of(store.execution(side.reference))


def moved_suites(listed: Sequence[Baseline], suites: Mapping[str, str]) -> dict[str, str]:
    """Where suites with baselines lie now: old key to new one. `suites`: names by key of those that there are.

    A suite was moved if its file is gone and exactly one suite has its name, and no other suite that is gone has it.
    """
    gone = grouped(
        (name, key)
        for key, name in {(baseline.suite_key, baseline.suite_name) for baseline in listed}
        if key not in suites and not is_imported(key) and _is_gone(key)
    )
    there = grouped((name, key) for key, name in suites.items())
    return {keys[0]: there[name][0] for name, keys in gone.items() if len(keys) == len(there.get(name, ())) == 1}


def _is_gone(key: str) -> bool:
    return not Path(key).exists()


def _named(store: Store, reference: str) -> Side:
    if reference == BASELINE:
        raise AgentevalError("the baseline is the left side", fix="agenteval compare baseline EXECUTION")
    try:
        return execution_side(store, store.execution(reference))
    except AgentevalError as no_execution:
        if reference == LAST:
            raise
        try:
            row = store.run(reference)
        # Several runs begin so: that says more than that no execution does.
        except AmbiguousError:
            raise
        except AgentevalError:
            raise no_execution from None
        runs = store.read(lambda c: compared_runs(c, [row.id]))
        name = f"run {row.repetition} of {row.test_id}"
        return Side(
            kind="execution",
            name=name,
            reference=row.id,
            executions=(row.execution_id,),
            runs=tuple(runs),
            started_ms=runs[0].started_ms,
        )


def _filtered(side: Side, choice: Sides, number: int) -> Side:
    for names, kind, of in (
        (choice.agents, "agent", _agent),
        (choice.variations, "variation", _variation),
    ):
        if not names:
            continue
        name = names[min(number, len(names) - 1)]
        runs = _those(side, name, kind, of)
        # One name for both sides is a choice of runs; two are what is compared.
        if len(names) == 2:
            side = replace(side, kind=kind, name=name, runs=runs)
        else:
            side = replace(side, name=f"{side.name}, {kind} {name}", runs=runs)
    return side


def _agent(run: ComparedRun) -> str:
    return run.agent


def _variation(run: ComparedRun) -> str:
    return run.variation or DEFAULT_VARIATION


def _those(side: Side, name: str, kind: str, of: Callable[[ComparedRun], str]) -> tuple[ComparedRun, ...]:
    runs = tuple(run for run in side.runs if of(run) == name)
    if runs:
        return runs
    there = list(dict.fromkeys(of(run) for run in side.runs))
    raise AgentevalError(
        f"there is no run with {kind} {name!r} in {side.name}",
        fix=f"there {'is' if len(there) == 1 else 'are'} {', '.join(there[:8])}" if there else "it has no run",
    )


def names_of(runs: Sequence[ComparedRun]) -> tuple[list[str], list[str]]:
    """The agents and the variations of runs, as they came: what a person can choose from."""
    return list(dict.fromkeys(map(_agent, runs))), list(dict.fromkeys(map(_variation, runs)))
