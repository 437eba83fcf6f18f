"""From suites and options to the runs of an execution, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import new_id
from agenteval_tui.core.options import OptionError
from agenteval_tui.history.execution_names import DescriptionError, checked_meta, checked_name, checked_note
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import Specs
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.gates import GATES, OF_SUITE, UMBRACO_METRICS
from agenteval_tui.runs.plan.model import Limits, Plan, check_arms, check_executor, check_surroundings, cluster_of
from agenteval_tui.runs.plan.options import DEFAULT_CONCURRENCY, PlanOptions
from agenteval_tui.runs.plan.runs import TestRuns, draw_sample
from agenteval_tui.runs.plan.test_selection import SelectedTest, choose, failed_before, names
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig, Suite


def make_plan(
    loaded: Sequence[LoadedSuite],
    options: PlanOptions,
    *,
    user_agents: Mapping[str, AgentConfig],
    store: Store | None = None,
) -> Plan:
    """The runs that `options` ask for, of `loaded`: test by test, the default configuration before each variation.

    `store` is asked for `failed_from` only. Raises `AgentevalError` when nothing is left to run, a suite is invalid
    (where tests are named, only those must be valid), an agent is missing, a dataset or a prompt is wrong; and
    `NotTrustedError` when the plan would start programs of a folder that was not trusted.
    """
    plan = make_untrusted_plan(loaded, options, user_agents=user_agents, store=store)
    return replace(plan, permission=check_trust(plan))


def make_untrusted_plan(
    loaded: Sequence[LoadedSuite],
    options: PlanOptions,
    *,
    user_agents: Mapping[str, AgentConfig],
    store: Store | None = None,
) -> Plan:
    """The same without asking whether programs may run: to be looked at, not to be run (`preview`)."""
    _check(options)
    failed = failed_before(options, store)
    chosen = choose(loaded, options, failed)
    tests = [TestRuns(selected_test, options, user_agents, failed) for selected_test in chosen]
    # One for all tests: equal criteria become one object, which is compiled and stored once.
    specs = Specs()
    if options.sample is None:
        runs = tuple([run for test in tests for run in test.runs(test.cases(), specs)])
    else:
        picked = draw_sample(tests, options.sample, options.seed)
        runs = tuple([run for test_runs, cases in picked for run in test_runs.runs(cases, specs)])
    if not runs:
        raise _nothing(chosen, options)
    check_surroundings(runs, options.executor)
    concurrency = options.concurrency or _concurrency(selected_test.suite for selected_test in chosen)
    return Plan(
        execution_id=new_id(),
        title=options.title or _title(chosen, options),
        runs=runs,
        concurrency=concurrency or DEFAULT_CONCURRENCY,
        source=", ".join(dict.fromkeys(str(selected_test.loaded.path) for selected_test in chosen)),
        options=_stored(options, chosen),
        respondents=Respondents.of(tuple(loaded), user_agents, options.judge),
        trust=options.trust,
        limits=Limits(options.max_cost, options.max_tokens, options.max_seconds),
        cache=options.cache,
        cluster=cluster_of(options, all_threads=concurrency is None),
        name=checked_name(options.name),
        note=checked_note(options.note),
        meta=checked_meta(options.meta),
    )


def _stored(options: PlanOptions, chosen: Sequence[SelectedTest]) -> dict[str, Any]:
    """The options, with the gates that suites and chosen tests have."""
    gates: dict[str, dict[str, float]] = {}
    for selected_test in chosen:
        for name, gate in ((OF_SUITE, selected_test.suite.gate), (selected_test.test.id, selected_test.test.gate)):
            if gate is not None:
                gates.setdefault(selected_test.loaded.key, {})[name] = gate.pass_rate
    stored = {name: value for name, value in to_builtins(options).items() if name not in _DESCRIPTION}
    figured = list(
        dict.fromkeys(selected_test.loaded.key for selected_test in chosen if selected_test.suite.metrics == "umbraco")
    )
    return {**stored, **({GATES: gates} if gates else {}), **({UMBRACO_METRICS: figured} if figured else {})}


def _concurrency(suites: Iterable[Suite]) -> int | None:
    # Where suites that differ run together, the smallest limit holds: each of them was written for a reason.
    limits = [suite.defaults.concurrency for suite in suites if suite.defaults.concurrency]
    return min(limits, default=None)


# Words

_CACHES = ("", "first", "all")
_DESCRIPTION = ("name", "note", "meta")
"""Of the options what the execution has of its own, as it may be changed later."""


def _check(options: PlanOptions) -> None:
    if options.cache not in _CACHES:
        raise OptionError("cache", f"cache is first or all, not {options.cache!r}")
    check_arms(options.ab)
    check_executor(options)
    try:
        checked_name(options.name)
        checked_note(options.note)
        checked_meta(options.meta)
    except DescriptionError as error:
        raise OptionError(error.option, error.what, fix=error.fix) from error


def _nothing(chosen: Sequence[SelectedTest], options: PlanOptions) -> AgentevalError:
    """Why no run is left of the chosen tests."""
    variations = names("variations", (variation.name for each in chosen for variation in each.test.variations))
    if options.failed_from is not None:
        return AgentevalError(
            f"the tests that failed in execution {options.failed_from} are gone, or not selected",
            fix="run the tests without --failed",
        )
    if options.variation:
        return OptionError("variation", f"no chosen test has a variation {options.variation!r}", fix=variations)
    return AgentevalError("there is nothing to run", fix="each chosen test has `repeat: 0`")


def _title(chosen: Sequence[SelectedTest], options: PlanOptions) -> str:
    title = _tests(chosen)
    return f"{title}: {options.ab[0]} against {options.ab[1]}" if options.ab else title


def _tests(chosen: Sequence[SelectedTest]) -> str:
    if len(chosen) == 1:
        return f"{chosen[0].suite.name}: {chosen[0].test.name}"
    listed = list(dict.fromkeys(selected_test.suite.name for selected_test in chosen))
    return listed[0] if len(listed) == 1 else f"{listed[0]} and {len(listed) - 1} more suite{'s' * (len(listed) > 2)}"
