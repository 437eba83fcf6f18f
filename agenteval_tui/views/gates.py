"""What is shown of the gates of tests: how often each had to pass, how often it did, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval_tui.analysis.quarantine_gate import GatedRuns
from agenteval_tui.analysis.test_gates import GateVerdict, TestGates
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.plan.gates import SUITE, TEST
from agenteval_tui.views.model import Span, Text, View, paragraphs, text
from agenteval_tui.views.quarantine import held_text

_MOST = 10
SIGNS: dict[str, Span] = {"reached": ("✓", "good"), "missed": ("✗", "bad"), "undecided": ("!", "broken")}
"""A verdict's sign, and what it means."""


def gate_text(pass_rate: float) -> str:
    """`gate 80 %`."""
    return f"gate {numbers.percent_limit(pass_rate)}"


def verdict_text(verdict: GateVerdict) -> str:
    """`gate 80 % missed: 3 of 5 runs passed (60 %, 95 % interval 23 % to 88 %); 5 runs are too few to decide, at this
    rate it takes 16`. Raw."""
    sentence = f"{gate_text(verdict.gate.pass_rate)} {verdict.outcome}: {counts_text(verdict)}"
    return "; ".join(part for part in (sentence, certainty_text(verdict), _left_out(verdict)) if part)


def counts_text(verdict: GateVerdict) -> str:
    """`3 of 5 runs passed (60 %, 95 % interval 23 % to 88 %)`."""
    if verdict.rate is None:
        return "no run has a verdict"
    passed = f"{verdict.passed:,} of {numbers.count(verdict.n, 'run')} passed"
    # Of few runs the certainty that stands behind it says more than an interval from one end to the other.
    interval = f", {numbers.interval_phrase(verdict.shown_interval)}" if verdict.shown_interval is not None else ""
    return f"{passed} ({_rate(verdict)}{interval})"


def _rate(verdict: GateVerdict) -> str:
    return numbers.percent(verdict.rate, 1, beside=verdict.gate.pass_rate)


def certainty_text(verdict: GateVerdict) -> str:
    """Whether n is too small to decide, and what n would do: "" where it is large enough."""
    # Without a verdict no number of runs can be told.
    if verdict.sure or verdict.rate is None:
        return ""
    few = "1 run is too few" if verdict.n == 1 else f"{verdict.n:,} runs are too few"
    return f"{few} to decide" + (f" (at this rate it takes {verdict.needed:,})" if verdict.needed else "")


def _left_out(verdict: GateVerdict) -> str:
    parts = [
        f"{verdict.errors:,} in error" if verdict.errors else "",
        f"{numbers.count(verdict.waiting, 'run')} to be reviewed" if verdict.waiting else "",
    ]
    return ", ".join(part for part in parts if part)


def excuse_text(run: RunRow, held: GatedRuns, gates: TestGates) -> str:
    """Why a run that did not pass does not fail the execution: a quarantine, or its test reached its gate; "" if it
    does. Raw."""
    if run.id in held.excused:
        return held_text(held.of_run(run))
    verdict = gates.of_run(run) if run.id in gates.excused else None
    return verdict_text(verdict) if verdict is not None else ""


def _origin(verdict: GateVerdict) -> str:
    """Whose gate it is: `the test's gate`, `the suite's gate`, `--fail-under-test`."""
    return {TEST: "the test's gate", SUITE: "the suite's gate"}.get(verdict.gate.origin, "--fail-under-test")


def name_text(verdict: GateVerdict) -> str:
    """`refunds`, `refunds [terse]`: the test, and the variation where it has one."""
    variation = f" [{one_line(verdict.variation, 40)}]" if verdict.variation else ""
    return one_line(verdict.test_id, 60) + variation


def gates_view(gates: TestGates, *, missed_only: bool = False) -> View:
    """How many gates were reached, then a line for each: the missed first, then those that n is too small for."""
    if not gates.verdicts or (missed_only and all(verdict.outcome == "reached" for verdict in gates.verdicts)):
        return ()
    return paragraphs(_lines(gates.verdicts, missed_only))


def _lines(verdicts: Sequence[GateVerdict], missed_only: bool) -> Iterator[Text]:
    bad = sum(verdict.outcome != "reached" for verdict in verdicts)
    reached = len(verdicts) - bad
    token = "bad" if any(verdict.fails for verdict in verdicts) else "warn" if bad else "good"
    yield text(("gates: ", "bold"), (f"{reached:,} of {len(verdicts):,} reached", token))
    # Those that were reached are named, too: their failed runs do not fail the execution.
    ordered = sorted(verdicts, key=lambda gate_verdict: (gate_verdict.outcome == "reached", gate_verdict.sure))
    if missed_only:
        ordered = ordered[:bad]
    for verdict in ordered[:_MOST]:
        sign, meaning = SIGNS[verdict.outcome]
        unsure = certainty_text(verdict)
        note = _left_out(verdict)
        yield text(
            (f"{sign} ", meaning),
            f"{name_text(verdict)}: {gate_text(verdict.gate.pass_rate)} ",
            (verdict.outcome, meaning),
            f", {counts_text(verdict)}",
            (f"; {unsure}" if unsure else "", "warn"),
            (f"; {note}" if note else "", "warn"),
            (f"  ({_origin(verdict)})", "dim"),
        )
    if len(ordered) > _MOST:
        yield text((f"and {len(ordered) - _MOST:,} more", "dim"))


def gates_text(gates: TestGates) -> str:
    """`2 of 3 gates were reached. Missed: refunds (gate 80 %, 60 %).`; "" without gates. Raw."""
    verdicts = gates.verdicts
    if not verdicts:
        return ""
    reached = sum(verdict.outcome == "reached" for verdict in verdicts)
    summary = (
        f"{reached:,} of {numbers.count(len(verdicts), 'gate')} {'was' if len(verdicts) == 1 else 'were'} reached."
    )
    for outcome in ("missed", "undecided"):
        listed = [verdict for verdict in verdicts if verdict.outcome == outcome]
        if listed:
            named = abridged([f"{name_text(verdict)} ({_short(verdict)})" for verdict in listed], _MOST)
            summary += f" {outcome.capitalize()}: {named}."
    unsure = sum(not verdict.sure and verdict.rate is not None for verdict in verdicts)
    return summary + (f" {numbers.count(unsure, 'gate')} had too few runs to be sure." if unsure else "")


def _short(verdict: GateVerdict) -> str:
    rate = f", {_rate(verdict)} passed" if verdict.rate is not None else ""
    return f"{gate_text(verdict.gate.pass_rate)}{rate}"
