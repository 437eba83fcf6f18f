"""The lines of a run, made of events: retries, throttling, errors that are alike, long silences."""

from __future__ import annotations

import io

from agenteval_tui.cli.output import Output
from agenteval_tui.cli.run_progress import HEARTBEAT_S, ProgressState, RunProgress
from agenteval_tui.runs.events import (
    AgentFinished,
    AttemptFailed,
    Event,
    Graded,
    Planned,
    Progress,
    RunRef,
    RunStarted,
    Throttled,
)
from agenteval_tui.runs.live_view import ExecutionView


class Screen:
    """A progress on a stream, with a clock that the test moves."""

    def __init__(self, tests: int = 2, repeat: int = 2) -> None:
        self.stream = io.StringIO()
        self.now = 0.0
        self.seq = 0
        known = ProgressState(lambda run: (), lambda run: "start the server")
        self.progress = RunProgress(Output(self.stream, {}), known, clock=lambda: self.now)
        refs = tuple(
            RunRef(f"T{test}R{number}", f"test-{test}", f"Test {test}", "", 0, number, "mine")
            for test in range(tests)
            for number in range(1, repeat + 1)
        )
        self.tell(Planned, "EXEC", "Title", refs, 4, 0)

    def tell(self, kind: type[Event], *values: object) -> None:
        self.seq += 1
        self.progress.apply(kind(self.seq, *values))  # type: ignore[call-arg]

    def end(self, run: str, outcome: str, error: str = "") -> None:
        self.tell(RunStarted, run, 1, 0)
        self.tell(AgentFinished, run, 10.0, error)
        self.tell(Graded, run, outcome, None, (("Criterion", "the reason"),) if outcome == "failed" else (), 10.0)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_tests_come_in_order_however_their_runs_end() -> None:
    screen = Screen()
    for run in ("T1R1", "T1R2", "T0R2"):
        screen.end(run, "passed")
    assert screen.lines == []
    screen.end("T0R1", "failed")
    assert [line.split("  ")[0] for line in screen.lines if line[0] in "✓✗"] == ["✗ test-0", "✓ test-1"]
    # The history had nothing of that run: what the events say is shown.
    assert any("Criterion: the reason" in line for line in screen.lines)


def test_of_many_runs_that_failed_alike_the_first_are_numbered() -> None:
    screen = Screen(tests=1, repeat=12)
    for number in range(1, 13):
        screen.end(f"T0R{number}", "failed")
    assert "runs 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more: failed" in screen.stream.getvalue()


def test_an_error_of_many_runs_is_said_in_full_once_and_summed_up() -> None:
    screen = Screen(tests=3)
    for test in range(3):
        for number in (1, 2):
            screen.end(f"T{test}R{number}", "error", "nobody answers at 127.0.0.1:9")
    text = screen.stream.getvalue()
    assert text.count("(start the server)") == 1
    assert text.count("(as before)") == 2
    assert screen.progress.errors() == [("nobody answers at 127.0.0.1:9", 6)]


def test_retries_for_one_reason_are_a_line_and_all_are_counted() -> None:
    screen = Screen()
    screen.tell(RunStarted, "T0R1", 1, 0)
    for attempt in (1, 2, 3):
        screen.tell(AttemptFailed, "T0R1", attempt, "429 Too Many Requests", 2.0)
    screen.tell(AttemptFailed, "T0R1", 4, "connection reset", 0.5)
    assert [line.strip() for line in screen.lines] == [
        "retry test-0: attempt 1 failed: 429 Too Many Requests; the next one starts in 2 s",
        "retry test-0: attempt 4 failed: connection reset",
    ]
    assert screen.progress.retries == 4


def test_throttling_is_said_when_it_begins_and_when_it_is_over() -> None:
    screen = Screen()
    for limit in (4, 2, 1, 4, 8):
        screen.tell(Throttled, "mine", limit, 8)
    assert [line.strip() for line in screen.lines] == [
        "throttled mine: the server asks for less, concurrency 4 instead of 8",
        "throttled mine: over, concurrency 8 again",
    ]


def test_a_long_silence_is_broken_where_there_is_no_line_at_the_bottom() -> None:
    screen = Screen()
    screen.tell(RunStarted, "T0R1", 1, 0)
    figures = (4, 3, 1, 0, 0, 0, 0, 0, 0.1, 90.0, 10, 5, 0.25, 4, False)
    screen.tell(Progress, *figures)
    assert screen.lines == []
    screen.now += HEARTBEAT_S
    screen.tell(Progress, *figures)
    screen.tell(Progress, *figures)
    assert [line.strip() for line in screen.lines] == ["… 0/4 · 1 running · about 1 min 30 s left · $0.2500"]


def test_who_comes_later_is_shown_the_same_lines() -> None:
    first = Screen()
    first.end("T0R1", "passed")
    first.end("T0R2", "failed")
    first.end("T1R1", "error", "gone")
    view = ExecutionView()
    view.apply(first.progress.view.snapshot())
    later = io.StringIO()
    known = ProgressState(lambda run: (), lambda run: "start the server")
    progress = RunProgress(Output(later, {}), known)
    progress.apply(first.progress.view.snapshot())
    assert later.getvalue() == first.stream.getvalue()


def test_runs_that_were_not_needed_are_no_runs_that_did_not_pass() -> None:
    screen = Screen(tests=1, repeat=3)
    screen.end("T0R1", "passed")
    screen.end("T0R2", "passed")
    screen.tell(Graded, "T0R3", "skipped", None, (), 0.0)
    (line,) = screen.lines
    assert line.startswith("✓ test-0  2/2")
    assert line.endswith("1 not needed")


def test_cancelled_tests_are_a_number_and_no_lines() -> None:
    screen = Screen(tests=300)
    screen.end("T0R1", "passed")
    screen.end("T0R2", "passed")
    screen.end("T1R1", "passed")
    for run in ["T1R2", *(f"T{test}R{number}" for test in range(2, 300) for number in (1, 2))]:
        screen.tell(Graded, run, "cancelled", None, (), 0.0)
    screen.progress.close()
    assert len(screen.lines) == 3
    assert "test-1" in screen.lines[1]
    assert "596 runs were cancelled" in screen.lines[2]
