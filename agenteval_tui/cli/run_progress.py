"""What the command line shows while an execution runs: a line a test in the order of the plan, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval_tui.cli.explained import print_failures
from agenteval_tui.cli.output import SIGNS, STYLES, Output, Style, duration, percent, plural
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.runs.events import AttemptFailed, Event
from agenteval_tui.runs.view import ExecutionView, RunView
from agenteval_tui.text.display import one_line

if TYPE_CHECKING:
    from agenteval_tui.transcripts.model import Usage

_BAR = 20


@dataclass(slots=True)
class _Test:
    """A test in one variation: its runs in the order of the plan."""

    name: str
    runs: list[str]


class RunProgress:
    """A watcher of an execution that prints.

    Of a run that has ended, `results_of` gives the criterion results, `remedy_of` what to do about its error.
    """

    def __init__(
        self,
        out: Output,
        results_of: Callable[[str], Sequence[CriterionResult]],
        remedy_of: Callable[[str], str] = lambda run: "",
    ) -> None:
        self.view = ExecutionView()
        self._out = out
        self._results_of = results_of
        self._remedy_of = remedy_of
        self._tests: list[_Test] = []
        self._next = 0

    def apply(self, event: Event) -> None:
        """Take in one event and print what it brings."""
        self.view.apply(event)
        if not self._tests and self.view.planned is not None:
            self._begin()
        if isinstance(event, AttemptFailed):
            self._retry(event)
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
        self._out.status("")

    def _begin(self) -> None:
        assert self.view.planned is not None
        by_test: dict[tuple[str, str, int, str], _Test] = {}
        several = len({ref.agent for ref in self.view.planned.runs}) > 1
        for ref in self.view.planned.runs:
            name = ref.test + (f" [{ref.variation}]" if ref.variation else "") + (f" #{ref.row}" if ref.row else "")
            if several:
                name += f" ({ref.agent})"
            key = (ref.test, ref.variation, ref.row, ref.test_name)
            by_test.setdefault(key, _Test(name, [])).runs.append(ref.run)
        self._tests = list(by_test.values())

    def _run(self, run: str) -> RunView:
        return self.view.runs[run]

    def _ended(self, test: _Test) -> bool:
        return all(self._run(run).ended for run in test.runs)

    def _retry(self, event: AttemptFailed) -> None:
        run = self._run(event.run)
        wait = f", again in {event.retry_in_s:.0f} s" if event.retry_in_s >= 1 else ", again"
        self._out.line(
            ("  retry ", "warn"),
            f"{run.ref.test}: attempt {event.attempt} failed: {one_line(event.message, 200)}{wait}",
        )

    def _print(self, test: _Test) -> None:
        runs = [self._run(run) for run in test.runs]
        ended = [run for run in runs if run.ended]
        status = worst(run.status for run in ended)
        passed = sum(run.status == "passed" for run in ended)
        share = f"{passed}/{len(runs)}" if len(runs) > 1 else status
        slowest = max((run.duration_ms or 0 for run in ended), default=0)
        self._out.line(
            (SIGNS.get(status, "·"), STYLES.get(status, "dim")),
            f" {test.name}  ",
            (share, STYLES.get(status, "dim")),
            (f"  {duration(slowest)}", "dim"),
        )
        self._why(runs)

    def _why(self, runs: Sequence[RunView]) -> None:
        """Each reason once, with the runs that it stopped."""
        same: dict[tuple[str, tuple[tuple[str, str], ...]], list[RunView]] = {}
        for run in runs:
            if run.ended and run.status not in ("passed", "cancelled"):
                same.setdefault((run.error, run.failed), []).append(run)
        for (error, _), alike in same.items():
            numbers = ", ".join(str(run.ref.repetition) for run in alike)
            style: Style = STYLES.get(alike[0].status, "dim")
            which = f"{'run' if len(alike) == 1 else 'runs'} {numbers}"
            self._out.line("    ", (f"{which}: {alike[0].status}", style), (f"  {alike[0].ref.run}", "dim"))
            if error:
                remedy = self._remedy_of(alike[0].ref.run)
                self._out.line("      ", one_line(error, 400), (f" ({one_line(remedy, 200)})" if remedy else "", "dim"))
            else:
                print_failures(self._out, self._results_of(alike[0].ref.run), 6)

    def _status(self) -> None:
        if not self._out.live or self.view.ended is not None or not self.view.total:
            return
        done, total = self.view.done, self.view.total
        filled = _BAR * done // total
        figures = [f"{done}/{total}"]
        figures += [f"{self.view.count(key)} {word}" for key, word in _WORDS if self.view.count(key)]
        if self.view.eta_s is not None and self.view.eta_s >= 1:
            figures.append(f"about {duration(1000 * self.view.eta_s)} left")
        self._out.status(f"{'█' * filled}{'░' * (_BAR - filled)} " + " · ".join(figures))


_WORDS = (("running", "running"), ("failed", "failed"), ("error", "in error"))
_ORDER = ("error", "failed", "needs_review", "cancelled", "skipped", "passed")


def worst(statuses: Iterable[str]) -> str:
    """The status that a person must know first."""
    return min(statuses, key=lambda one: _ORDER.index(one) if one in _ORDER else len(_ORDER), default="cancelled")


def print_summary(out: Output, counts: dict[str, int], rate: float | None, interval: Sequence[float]) -> None:
    """The last lines of a run: how many ended how, and the pass rate with what is known of it."""
    parts: list[str | tuple[str, Style]] = []
    for status, word in _ENDS:
        if counts.get(status):
            parts.append((f"{counts[status]} {word}", STYLES.get(status, "dim")))
            parts.append(", ")
    total = sum(counts.values())
    out.line(*(parts[:-1] or ["nothing was run"]), f" of {plural(total, 'run')}")
    if rate is not None:
        low, high = interval
        out.line(f"pass rate {percent(rate)}", (f"  (95 % interval by test: {percent(low)} to {percent(high)})", "dim"))


def print_judges(out: Output, replies: int, usage: Usage) -> None:
    """What judges and embedders took part, apart from the tested agents; nothing where none did."""
    if not replies:
        return
    tokens = f", {usage.input_tokens:,} + {usage.output_tokens or 0:,} tokens" if usage.input_tokens else ""
    cost = f", ${usage.cost:.4f}" if usage.cost is not None else ""
    out.line((f"judges and others: {'1 reply' if replies == 1 else f'{replies:,} replies'}{tokens}{cost}", "dim"))


_ENDS = (
    ("passed", "passed"),
    ("failed", "failed"),
    ("error", "in error"),
    ("needs_review", "to be reviewed"),
    ("skipped", "skipped"),
    ("cancelled", "cancelled"),
)
