"""An execution as it runs, in lines: its bar, its figures, its plan and limits, the heading of the chosen run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agenteval_tui.analysis.statistics import reaches
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import clock, count, decimal, short_dollars, short_duration, token_count
from agenteval_tui.grading.sentences import not_made_in_runs_sentence, not_made_sentence
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.runs.events import RunRef, RunState, Throttled
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.presenters.run_grid import CACHED, RETRIED
from agenteval_tui.tui.presenters.status_style import ARROW, UNICODE, glyph, mark, word
from agenteval_tui.tui.styled_text import Cell, Line, fit, fold, width_of
from agenteval_tui.views.execution import tools_raised_sentence
from agenteval_tui.views.gates import gate_text

ROOMY = 100  # columns from which glyphs have words beside them, and the rate is named
_SETTLED = ("cancelled", "skipped", "needs_review")


class Expected(Struct, frozen=True):
    """What an execution was thought to take when it was planned; None: not known."""

    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None

    @classmethod
    def of(cls, takes: Estimate) -> Expected:
        """What an estimate says, where it knows all of it."""
        seconds, tokens = takes.seconds, takes.total_tokens
        return cls(
            seconds.expected if seconds is not None and not seconds.unknown else None,
            round(tokens.expected) or None if tokens is not None and tokens.whole else None,
            takes.whole_cost,
        )


def bar(view: ExecutionView, width: int) -> Line:
    """A progress line over the whole width: passed, failed, errors, settled otherwise, running, what is left."""
    total = max(view.total, 1)
    full, thin = ("━", "─") if UNICODE else ("=", "-")
    cells: list[Cell] = []
    used = 0
    done = 0
    for statuses, style in (
        (("passed",), "passed"),
        (("failed",), "failed"),
        (("error",), "error"),
        (_SETTLED, "dim"),
        (("running", "grading"), "running"),
    ):
        done += view.count(*statuses)
        # Rounded is where a part ends, and not how long it is: together they fill the width.
        until = round(width * done / total)
        cells.append((full * (until - used), style))
        used = until
    cells.append((thin * (width - used), "rule"))
    return tuple(cells)


def status_cells(view: ExecutionView, width: int) -> tuple[Cell, ...]:
    """`31 of 70  ✓ 24  ✗ 5  ! 2  ETA 0:42  concurrency 8` and, where there is room, the rate."""
    cells: list[Cell] = []
    if view.ended is None and view.count("running", "grading"):
        cells += [mark("running"), (" ", "")]
    cells.append((f"{view.done:,} of {view.total:,}", "bold"))
    for outcome in ("passed", "failed", "error", *_SETTLED):
        number = view.count(outcome)
        if number:
            cells += [("  ", ""), (f"{glyph(outcome)} {number:,}", "dim" if outcome in _SETTLED else outcome)]
            if outcome in _SETTLED and width >= ROOMY:
                cells.append((f" {word(outcome)}", "dim"))
    progress = view.progress
    if view.ended is not None:
        sign = {"finished": "passed", "failed": "error", "stopped": "error"}.get(view.ended.status, "dim")
        cells += [("  ", ""), (view.ended.status, sign)]
        return tuple(cells)
    if view.lost:
        return tuple(cells)
    if view.paused:
        cells += [("  ", ""), ("paused", "error")]
    elif progress is not None:
        cells.append((f"  ETA {clock(progress.eta_s)}", ""))
    if progress is not None:
        cells.append((f"  concurrency {progress.concurrency}", "dim"))
        if width >= ROOMY and progress.rate:
            cells.append((f"  {progress.rate:.1f} runs/s", "dim"))
    return tuple(cells)


def facts(
    view: ExecutionView,
    agents: Sequence[str],
    expected: Expected,
    throttled: Iterable[tuple[Throttled, float]],
    width: int,
    *,
    lost: bool = False,
    resume_key: str = "R",
) -> list[Line]:
    """The lines under the bar: what was planned and what it has used of that, who is throttled (each with the seconds
    that it still waits), how it ended. `lost`: its process died without saying so. `resume_key` runs the rest."""
    lines = [_spent(view, agents, expected, width)]
    lines += [fit(((" ", ""), *_throttle(throttle, wait)), width) for throttle, wait in throttled]
    starting = [one_line(service.name, 40) for service in view.services.values() if service.status == "starting"]
    if starting and view.ended is None and not lost:
        lines.append(fit(((" ", ""), mark("running"), (f" starting {', '.join(starting)}", "")), width))
    if message := not_made_in_runs_sentence(view.not_made):
        lines.append(fit(((" ", ""), mark("error"), (f" {message}", "error")), width))
    if view.awaits and not lost:
        lines.append(fit(((" ", ""), mark("error"), (f" {one_line(view.awaits, 300)}", "error")), width))
    ended = view.ended
    if ended is not None and (gates := _gates(view)):
        lines.append(fit(gates, width))
    if lost:
        message = f"its process died; {view.done:,} of {view.total:,} runs have ended and are saved"
        lines += _ending(view, "stopped unexpectedly", message, width, resume_key)
    elif ended is not None and ended.status != "finished":
        lines += _ending(view, ended.status, ended.message, width, resume_key)
    return lines


def _gates(view: ExecutionView) -> list[Cell]:
    """How many tests reached their gates, and which did not; [] where none has one."""
    tests: dict[tuple[str, str, str], tuple[RunRef, Counter[str]]] = {}
    for run in view.runs.values():
        if run.ref.gate is not None:
            key = run.ref.suite, run.ref.test, run.ref.variation
            tests.setdefault(key, (run.ref, Counter()))[1][run.status] += 1
    if not tests:
        return []
    missed: list[Cell] = []
    reached = 0
    for ref, counts in tests.values():
        passed, decided = counts["passed"], counts["passed"] + counts["failed"]
        if decided and ref.gate is not None and reaches(passed / decided, ref.gate):
            reached += 1
            continue
        name = one_line(ref.test, 40) + (f" · {one_line(ref.variation, 24)}" if ref.variation else "")
        missed += [("   ", ""), mark("failed" if decided else "error"), (f" {name} {passed}/{decided}", "")]
        missed.append((f" {gate_text(ref.gate or 0)}", "dim"))
    token = "failed" if missed else "passed"
    return [(" ", ""), mark(token), (f" {reached:,} of {count(len(tests), 'gate')} reached", token), *missed]


def _ending(view: ExecutionView, status: str, message: str, width: int, resume_key: str) -> list[Line]:
    bad = status != "cancelled"
    cells: list[Cell] = [(" ", ""), mark("error" if bad else "cancelled"), (f" {status}", "error" if bad else "")]
    if message:
        cells.append((f": {one_line(message, 300)}", ""))
    lines = fold(cells, width)[:3]
    remaining = waiting_counts(view)
    if remaining and not view.listens:
        words = f"{count(remaining, 'run')} {'is' if remaining == 1 else 'are'} left:  "
        lines.append(
            fit((("   ", ""), (words, "dim"), ("press ", ""), (resume_key, "bold accent"), (" to resume", "")), width)
        )
    return lines


def waiting_counts(view: ExecutionView) -> int:
    """How many runs are left for resuming: what waited or was in flight when it ended."""
    return view.total - view.count("passed", "failed", "error", "skipped", "needs_review")


def _spent(view: ExecutionView, agents: Sequence[str], expected: Expected, width: int) -> Line:
    planned, progress = view.planned, view.progress
    if planned is None:
        return ()
    cells: list[Cell] = [(" ", ""), (count(view.total, "run"), "")]
    cells += [(" on ", "dim"), (_names(agents), "")] if agents else []
    parts: list[list[Cell]] = [cells]
    used_tokens = 0 if progress is None else progress.input_tokens + progress.output_tokens
    whole_cost = None if progress is None else progress.total_cost
    if view.ended is None or planned.max_cost is not None:
        parts.append(_money(whole_cost, planned.max_cost, expected.cost))
    elif view.total:
        parts.append([(spent_text(view), "")])
    thought = expected.tokens if view.ended is None else None
    if used_tokens or planned.max_tokens or thought:
        whole_tokens = 0 if progress is None else progress.total_tokens
        parts.append(_counted(used_tokens, whole_tokens, planned.max_tokens, thought))
    if progress is not None:
        parts.append(_apart("judges", progress.judged_tokens, progress.judged_cost))
        parts.append(_apart("users", progress.user_tokens, progress.user_cost))
    if view.ended is not None and view.ended.at_ms > planned.started_ms:
        parts.append([("duration ", "dim"), (short_duration(view.ended.at_ms - planned.started_ms), "")])
    elif planned.max_seconds:
        parts.append([(f"max time {clock(planned.max_seconds)}", "dim")])
    elif expected.seconds is not None and (progress is None or progress.eta_s is None):
        # From the first estimate of what runs on, the title says how long it still takes.
        parts.append([(f"about {clock(max(expected.seconds, 1))}", "dim")])
    line: list[Cell] = []
    for part in parts:
        if part and width_of((*line, *part)) + 3 <= width:
            line += [("   ", ""), *part] if line else part
    return fit(line, width)


def spent_text(view: ExecutionView) -> str:
    """What an execution cost, agents, judges and simulated users together: `cost $0.08`, `cost nothing`, `cost not
    known`."""
    cost = None if view.progress is None else view.progress.total_cost
    if cost is None:
        return "cost not known"
    if not view.priced:
        return f"cost at least {short_dollars(cost)}" if short_dollars(cost) else "cost not known"
    return f"cost {short_dollars(cost)}" if cost else "cost nothing"


def _apart(who: str, used: int, spent: float | None) -> list[Cell]:
    """`judges 1,200 tokens $0.01`: what is not the tested agents'."""
    if not (used or spent):
        return []
    amounts = [token_count(used) if used else "", short_dollars(spent)]
    return [(f"{who} ", "dim"), (" ".join(amount for amount in amounts if amount), "")]


def _names(agents: Sequence[str]) -> str:
    listed = [one_line(name, 24) for name in agents]
    return ", ".join(listed[:3]) + (f" +{len(listed) - 3:,}" if len(listed) > 3 else "")


def agents_of(view: ExecutionView) -> list[str]:
    """The agents of an execution, in the order of the plan."""
    return list(dict.fromkeys(ref.agent for ref in view.planned.runs)) if view.planned is not None else []


_CENTS = 0.1  # US dollars; a limit below is not said in cents


def _money(whole: float | None, most: float | None, expected: float | None) -> list[Cell]:
    """`$0.08 of $1.00`: what all of it cost, as a limit counts it."""
    if most is not None:
        # Until a price is known the limit is said all the same.
        near = whole is not None and whole >= most * 0.8
        small = most < _CENTS  # in cents it would say nothing
        spent = short_dollars(whole) or "$0.00" if small else f"${whole or 0:,.2f}"
        limit = short_dollars(most) if small else f"${most:,.2f}"
        return [(spent, "error" if near else ""), (f" of {limit}", "dim")]
    if whole:
        about = f" of about {short_dollars(expected)}" if expected else ""
        return [(short_dollars(whole), ""), (about, "dim")]
    return [(f"about {short_dollars(expected)}", "dim")] if expected else []


def _counted(used: int, whole: int, most: int | None, expected: int | None) -> list[Cell]:
    """What the agents used; beside a limit or an estimate, which are of all, what all used."""
    if most is not None:
        return [(f"{whole:,}", "error" if whole >= most * 0.8 else ""), (f" of {most:,} tokens", "dim")]
    if not expected:
        return [(token_count(used), "")]
    return [(token_count(whole).removesuffix(" tokens"), ""), (f" of about {token_count(expected)}", "dim")]


def _throttle(throttled: Throttled, wait: float) -> list[Cell]:
    """`shop/sql  concurrency 8 → 4: the server asks for less, again in 12 s`."""
    name = one_line(throttled.agent, 40)
    cells: list[Cell] = [
        RETRIED,
        (" ", ""),
        (name, "bold"),
        (f"  concurrency {throttled.wanted} {ARROW} {throttled.limit}", "error"),
        (": the server asks for less", ""),
    ]
    if wait > 0:
        cells.append((f", again in {wait:.0f} s" if wait >= 1 else ", again in a moment", "dim"))
    return cells


_NAME = 24  # cells of a run's name that come before what it took


def run_heading(run: RunState, now_ms: int, width: int) -> Line:
    """What the chosen run is doing, or how it ended. Where there is no room for all, what it took goes first, then its
    name is cut."""
    ref = run.ref
    name: list[Cell] = [mark(run.status), (" ", ""), (one_line(ref.test), "bold")]
    if ref.variation:
        name.append((f" · {one_line(ref.variation)}", ""))
    if ref.row:
        name.append((f" #{one_line(ref.row_label, 24)}", ""))
    cells: list[Cell] = [(f"  run {ref.repetition}", "")]
    if run.ended:
        cells.append((f"  {word(run.status)}", "dim"))
        if run.score is not None:
            cells.append((f" {decimal(run.score)}", "dim"))
        if run.not_made:
            cells.append((f"  {not_made_sentence(run.not_made)}", "error"))
        if run.tools_raised:
            cells.append((f"  {tools_raised_sentence(run.tools_raised)}", "warning"))
        cells.append((f"  {short_duration(run.duration_ms)}", "dim"))
    elif run.retry_in_s is not None:
        cells.append(("  waiting to try again", "error"))
    elif run.started_ms is not None:
        doing = "grading" if run.status == "grading" else "streaming" if run.parts else "waiting for the first token"
        doing = "preparing" if run.preparing else doing
        cells.append((f"  {doing} {short_duration(max(now_ms - run.started_ms, 0))}", "running"))
    else:
        cells.append(("  queued", "dim"))
    if run.cached:
        cells += [("  ", ""), CACHED, (" cached", "dim")]
    if run.attempt > 1:
        cells += [("  ", ""), RETRIED, (f" attempt {run.attempt}", "error")]
    used = (run.input_tokens or 0) + (run.output_tokens or 0)
    spent = [token_count(used) if used else "", short_dollars(run.cost)]
    more: list[Cell] = [(f"  {fact}", "dim") for fact in (*spent, one_line(ref.agent, 30)) if fact]
    while more and width_of((*cells, *more)) + min(width_of(name), _NAME) > width:
        more.pop()
    cells += more
    return fit((*fit(name, max(width - width_of(cells), 8)), *cells), width)
