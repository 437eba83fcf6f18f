"""What the command line shows while an execution runs: a line a test in the order of the plan, and how far it is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.output import Output, Style, outcome_sign
from agenteval_tui.core.display import both_ends, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import dollars, duration
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.sentences import not_made_sentence, why_not_observed
from agenteval_tui.history.store import Store
from agenteval_tui.runs.events import (
    AroundProblem,
    AttemptFailed,
    Event,
    HistoryAwaited,
    RunState,
    ServiceChanged,
    Throttled,
)
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.views.evidence import results_in_short
from agenteval_tui.views.execution import NotObserved, around_sentence, tools_raised_sentence

_BAR = 20
_NUMBERED = 10  # runs of a test that failed alike
HEARTBEAT_S = 60.0
"""Without a line at the bottom, a silence of this length is broken by a line: users want to know, and some CI systems
end a silent job."""


class _Test(Struct):
    """A test in one variation: its runs in the order of the plan."""

    name: str
    runs: list[str]


class ProgressState(Struct, frozen=True):
    """Of a run that has ended: its criterion results, what to do about its error, and why its answer ended ("" for a
    whole answer). Events carry less of all that."""

    results: Callable[[str], Sequence[CriterionResult]]
    remedy: Callable[[str], str]
    ending: Callable[[str], str] = lambda run: ""

    @classmethod
    def of(cls, store: Store) -> ProgressState:
        """What the history knows. A run that it does not have (of another file, or deleted) has no more to tell."""

        def results(run: str) -> Sequence[CriterionResult]:
            try:
                return store.results(run)
            except AgentevalError:
                return ()

        def remedy(run: str) -> str:
            try:
                error = store.transcript(run).error
            except AgentevalError:
                return ""
            return error.fix if error is not None else ""

        def ending(run: str) -> str:
            try:
                ending = ending_of(store.transcript(run))
            except AgentevalError:
                return ""
            return ending.description if ending is not None else ""

        return cls(results, remedy, ending)


class RunProgress:
    """A watcher of an execution that prints. `quiet`: only what did not pass; `verbose`: also a line for each run, and
    each retry."""

    def __init__(
        self,
        out: Output,
        progress_state: ProgressState,
        *,
        clock: Callable[[], float] = time.monotonic,
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self.view = ExecutionView()
        self.retries = 0
        self.quiet = quiet
        self._verbose = verbose
        self.out = out
        self._state = progress_state
        self._clock = clock
        self._last_line_at = clock()
        self._tests: list[_Test] = []
        self._next = 0
        self._retried: set[tuple[str, str]] = set()
        self._errors: dict[str, int] = {}
        self._around: Counter[AroundProblem] = Counter()
        self._not_observed: dict[str, NotObserved] = {}
        self._throttled: dict[str, Throttled] = {}
        self._dropped = 0  # runs that were cancelled together with the whole test

    def apply(self, event: Event) -> None:
        """Take in one event and print what it brings."""
        self.view.apply(event)
        if not self._tests and self.view.planned is not None:
            self._begin()
        if isinstance(event, AttemptFailed):
            self._retry(event)
        elif isinstance(event, Throttled):
            self._throttle(event)
        elif isinstance(event, ServiceChanged):
            self._service(event)
        elif isinstance(event, HistoryAwaited):
            self._line(("  … ", "warn"), one_line(event.message, 300))
        # In the order of the plan, whichever ends first: two runs of the same suite can be compared line by line.
        while self._next < len(self._tests) and self._ended(self._tests[self._next]):
            self._print(self._tests[self._next])
            self._next += 1
        self._status()

    def close(self) -> None:
        """Print what has ended and was not shown yet (after an interruption), and clear the bottom line."""
        for test in self._tests[self._next :]:
            if any(self._run(run).ended for run in test.runs):
                self._print(test)
        self._next = len(self._tests)
        self.out.status("")
        if self._dropped:
            many = "1 run was" if self._dropped == 1 else f"{self._dropped:,} runs were"
            sign, style = outcome_sign("cancelled")
            self._line((f"{sign} {many} cancelled", style))
            self._dropped = 0

    def _begin(self) -> None:
        assert self.view.planned is not None
        by_test: dict[tuple[str, str, str, int, str, str], _Test] = {}
        several = len({ref.agent for ref in self.view.planned.runs}) > 1
        owners = {(ref.test, ref.suite) for ref in self.view.planned.runs}
        shared = {test for test, times in Counter(test for test, _ in owners).items() if times > 1}
        for ref in self.view.planned.runs:
            name = (
                ref.test + (f" [{ref.variation}]" if ref.variation else "") + (f" #{ref.row_label}" if ref.row else "")
            )
            if several and not ref.variation.endswith(f": {ref.agent}"):  # an arm of an A/B run says it already
                name += f" ({ref.agent})"
            name += f" ({ref.suite})" if ref.test in shared else ""
            key = (ref.suite, ref.test, ref.variation, ref.row, ref.test_name, ref.agent)
            by_test.setdefault(key, _Test(name, [])).runs.append(ref.run)
        self._tests = list(by_test.values())
        # Of an execution that is joined later, what was before is in its snapshot.
        self._throttled = dict(self.view.throttled)
        self.retries = sum(len(run.retries) for run in self.view.runs.values())

    def _run(self, run: str) -> RunState:
        return self.view.runs[run]

    def _ended(self, test: _Test) -> bool:
        return all(self._run(run).ended for run in test.runs)

    def _line(self, *parts: str | tuple[str, Style]) -> None:
        self._last_line_at = self._clock()
        self.out.line(*parts)

    def _retry(self, event: AttemptFailed) -> None:
        """The first retry for each reason is a line; all are counted."""
        self.retries += 1
        run = self._run(event.run)
        reason = (run.ref.agent, event.message)
        if self.quiet or (reason in self._retried and not self._verbose):
            return
        self._retried.add(reason)
        wait = f"; the next one starts in {event.retry_in_s:.0f} s" if event.retry_in_s >= 1 else ""
        self._line(
            ("  retry ", "warn"),
            f"{one_line(run.ref.test)}: attempt {event.attempt} failed: {one_line(event.message, 200)}{wait}",
        )

    def _service(self, event: ServiceChanged) -> None:
        """A service that was there already, or is not there, is a line."""
        name = one_line(event.name, 60)
        if event.error:
            self._line(("  service ", "bad"), one_line(event.error, 600))
        elif event.status == "reused" and not self.quiet:
            self._line(("  service ", "dim"), f"{name} runs already, and is used")
        elif event.status == "ready" and self._verbose:
            self._line(("  service ", "dim"), f"{name} is ready")

    def _throttle(self, event: Throttled) -> None:
        """Its beginning and its end are lines; how far it goes is in the status."""
        before = self._throttled.get(event.agent)
        limited = event.limit < event.wanted
        agent = one_line(event.agent, 60)
        if self.quiet:
            pass
        elif limited and before is None:
            self._line(
                ("  throttled ", "warn"),
                f"{agent}: the server asks for less, concurrency {event.limit} instead of {event.wanted}",
            )
        elif not limited and before is not None:
            self._line(("  throttled ", "warn"), f"{agent}: over, concurrency {event.wanted} again")
        if limited:
            self._throttled[event.agent] = event
        else:
            self._throttled.pop(event.agent, None)

    def _print(self, test: _Test) -> None:
        runs = [self._run(run) for run in test.runs]
        ended = [run for run in runs if run.ended]
        status = worst(run.status for run in ended)
        if status == "cancelled" and not any(run.status not in ("cancelled", "skipped") for run in ended):
            # Who ends an execution of hundreds of tests wants their number, not a line for each.
            self._dropped += len(ended)
            return
        self._problems_around(ended)
        if self.quiet and status in ("passed", "skipped") and not any(run.not_made for run in ended):
            return
        passed = sum(run.status == "passed" for run in ended)
        skipped = sum(run.status == "skipped" for run in ended)
        told_before = frozenset(self._not_observed)
        self._count_not_observed(ended)
        share = f"{passed}/{len(runs) - skipped}" if len(runs) > 1 else status
        missing = not_made_sentence(sum(run.not_made for run in ended))
        raised = tools_raised_sentence(tool for run in ended for tool in run.tools_raised)
        slowest = max((run.duration_ms or 0 for run in ended), default=0)
        self._line(
            outcome_sign(status),
            f" {one_line(test.name)}  ",
            (share, outcome_sign(status)[1]),
            (f"  {duration(slowest)}", "dim"),
            (f"  {skipped:,} not needed" if skipped else "", "dim"),
            ("".join(f"  {remark}" for remark in (missing, raised) if remark), "warn"),
        )
        if self._verbose:
            self._each(runs)
        self._why(runs, told_before)

    def _problems_around(self, runs: Iterable[RunState]) -> None:
        """What failed around runs and ends nothing: a line the first time, with all else counted."""
        for run in runs:
            for problem in run.around:
                self._around[problem] += 1
                if self._around[problem] == 1:
                    remedy = f" ({one_line(problem.fix, 200)})" if problem.fix else ""
                    self._line(
                        (f"  {problem.kind} ", "warn"),
                        f"{one_line(run.ref.test)}: {around_sentence(problem)}",
                        (remedy, "dim"),
                    )

    def _count_not_observed(self, runs: Iterable[RunState]) -> None:
        """Take in which criteria were not checked because what they look at wasn't observed."""
        for run in runs:
            if run.error or not (run.status == "error" or run.not_made):
                continue
            reasons = grouped(
                (reason, result.criterion)
                for result in self._state.results(run.ref.run)
                if (reason := why_not_observed(result))
            )
            for reason, names in reasons.items():
                not_observed = self._not_observed.setdefault(reason, NotObserved(reason, []))
                not_observed.runs += 1
                not_observed.criteria += [name for name in names if name not in not_observed.criteria]

    def _each(self, runs: Sequence[RunState]) -> None:
        """A line a run: how it ended, how long it took and what it used."""
        for run in runs:
            used = (run.input_tokens or 0) + (run.output_tokens or 0)
            parts = (
                duration(run.duration_ms) if run.duration_ms is not None else "",
                f"attempt {run.attempt}" if run.attempt > 1 else "",
                f"{used:,} tokens" if used else "",
                dollars(run.cost) if run.cost else "",
                "cached" if run.cached else "",
            )
            self._line(
                "    ",
                outcome_sign(run.status),
                f" run {run.ref.repetition}: {run.status}",
                (f"  {run.ref.run}  {'  '.join(part for part in parts if part)}", "dim"),
            )

    def _why(self, runs: Sequence[RunState], told_before: frozenset[str]) -> None:
        """Each reason once, with the runs that it stopped. `told_before`: what could not be seen in earlier tests."""
        same = grouped(
            ((run.error, run.failed), run)
            for run in runs
            if run.ended and run.status not in ("passed", "cancelled", "skipped")
        )
        for (error, _), alike in same.items():
            numbers = abridged([str(run.ref.repetition) for run in alike], _NUMBERED)
            which = f"{'run' if len(alike) == 1 else 'runs'} {numbers}: {alike[0].status}"
            self._line("    ", (which, outcome_sign(alike[0].status)[1]), (f"  {alike[0].ref.run}", "dim"))
            if error:
                self._error(error, alike)
            elif results := self._state.results(alike[0].ref.run):
                if ending := self._state.ending(alike[0].ref.run):
                    self._line("      ", (one_line(ending, 200), "warn"))
                repeated = [result for result in results if why_not_observed(result) in told_before]
                self.out.view(
                    results_in_short([result for result in results if result not in repeated], missed=True, indent=6)
                )
                for result in repeated:
                    self._line("      ", (f"{one_line(result.criterion, 80)}: not checked  (as before)", "dim"))
            else:
                for name, reason in alike[0].failed:
                    self._line("      ", one_line(f"{name}: {reason}", 400))

    def _error(self, error: str, alike: Sequence[RunState]) -> None:
        """In full the first time; a server that is down says the same of every test."""
        is_known = error in self._errors
        self._errors[error] = self._errors.get(error, 0) + len(alike)
        if is_known:
            self._line("      ", (one_line(error, 80), "dim"), ("  (as before)", "dim"))
            return
        remedy = alike[0].fix or self._state.remedy(alike[0].ref.run)
        self._line("      ", both_ends(error, 400), (f" ({one_line(remedy, 800)})" if remedy else "", "dim"))

    def problems_around(self) -> list[tuple[AroundProblem, int]]:
        """What failed around more than one run without ending a run, with the number of runs, most frequent first."""
        return [(problem, runs) for problem, runs in self._around.most_common() if runs > 1]

    def not_observed(self) -> list[NotObserved]:
        """Which criteria were not checked because what they look at wasn't observed: each reason once, of most runs
        first."""
        return sorted(self._not_observed.values(), key=lambda not_observed: -not_observed.runs)

    def errors(self) -> list[tuple[str, int]]:
        """The errors that more than one run ended in, with their numbers, most often first."""
        often = [(error, count) for error, count in self._errors.items() if count > 1]
        return sorted(often, key=lambda pair: -pair[1])

    def _status(self) -> None:
        if self.view.ended is not None or not self.view.total:
            return
        if self.out.live:
            # Events come by the thousand a second: the figures are only counted for a line that is shown.
            if self.out.status_due:
                filled = _BAR * self.view.done // self.view.total
                self.out.status(f"{'█' * filled}{'░' * (_BAR - filled)} " + " · ".join(self._figures()))
        elif self._clock() - self._last_line_at >= HEARTBEAT_S and not self.quiet:
            self._line(("  … ", "dim"), " · ".join(self._figures()))

    def _figures(self) -> list[str]:
        view = self.view
        figures = progress_figures(view)
        if view.paused:
            figures.append("paused")
        if view.progress is not None and (cost := view.progress.total_cost):
            figures.append(dollars(cost, whole=view.priced))
        if self.retries:
            figures.append("1 retry" if self.retries == 1 else f"{self.retries} retries")
        figures += [f"{one_line(value.agent, 20)} throttled to {value.limit}" for value in self._throttled.values()]
        return figures


def progress_for(invocation: Invocation, store: Store, *, silent: bool) -> RunProgress:
    """The watcher of an execution of this history that prints as the user asked; `silent`: nothing, as stdout is a
    document."""
    out = Output(invocation.out.stream, silent=True) if silent else invocation.out
    return RunProgress(out, ProgressState.of(store), quiet=invocation.quiet, verbose=invocation.verbose)


_WORDS = (("running", "running"), ("failed", "failed"), ("error", "in error"))


def progress_figures(view: ExecutionView) -> list[str]:
    """How far it is: `3/8`, `2 running`, `1 failed`, `about 2 min left`."""
    figures = [f"{view.done}/{view.total}"]
    figures += [f"{view.count(key)} {word}" for key, word in _WORDS if view.count(key)]
    if view.eta_s is not None and view.eta_s >= 1:
        figures.append(f"about {duration(1000 * view.eta_s)} left")
    return figures


_ORDER = ("error", "failed", "needs_review", "cancelled", "passed", "skipped")


def worst(statuses: Iterable[str]) -> str:
    """The status that a person must know first."""
    return min(
        statuses, key=lambda status: _ORDER.index(status) if status in _ORDER else len(_ORDER), default="cancelled"
    )
