"""The pane right of the tree: the selected suite, test or criterion in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.analysis.statistics import interval_of, percentile
from agenteval_tui.analysis.test_gates import GateVerdict
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import Problem
from agenteval_tui.core.numbers import (
    TOO_FEW,
    age,
    count,
    percent,
    percent_limit,
    percent_span,
    short_dollars,
    short_duration,
)
from agenteval_tui.core.outcomes import ENDED
from agenteval_tui.grading.sentences import not_made_sentence
from agenteval_tui.history.records import SUMMARY_WINDOW, RunRow
from agenteval_tui.runs.plan.gates import gate_of
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.tui.presenters.config_lines import coloured_lines
from agenteval_tui.tui.presenters.status_style import glyph, mark, word
from agenteval_tui.tui.presenters.suite_tree import NONE, Node, criterion_summary
from agenteval_tui.tui.styled_text import Cell, Line, fit, labelled, left, paragraph, right, spread, wrap_to
from agenteval_tui.views.failure import Failure, Failures
from agenteval_tui.views.gates import gate_text, verdict_text
from agenteval_tui.views.quarantine import held_text

WHY = 14  # cells of the labels of what failed
REASON_LINES = 3  # of a value, or of a sentence


class TestRuns(Struct, frozen=True):
    """What the history says of a test: its last runs, newest first, and why it fails."""

    __test__ = False  # not a test class, whatever its name says to pytest

    rows: Sequence[RunRow] = ()
    failures: Failures = Failures()
    gates: Sequence[GateVerdict] = ()
    """How the newest execution did against its gate, a verdict a variation."""


def title_of(node: Node | None) -> tuple[str, str]:
    """What stands left and right in the title of the pane: the name, and the place in the file."""
    if node is None:
        return "details", ""
    if node.kind == "suite":
        return one_line(node.suite_name), one_line(node.suite.loaded.path.name, 60)
    assert node.test is not None
    name = node.criterion_name if node.kind == "criterion" else node.test.id
    line = node.suite.loaded.line_of(node.test.id, node.criterion)
    return one_line(name), f"{one_line(node.suite.loaded.path.name, 60)}:{line}"


COUNTED = (
    f"last: the runs of the last execution. rate: the share of the newest {SUMMARY_WINDOW} runs that"
    " passed; a suite's is the mean over its tests. Runs with another agent or older criteria are dim and not counted."
)


def detail(node: Node | None, runs: TestRuns | None, now_ms: int, width: int, run: str = "") -> list[Line]:
    """The detail of a node; `runs` says what the history has of its test (None: it is not read yet). `run`: the key
    that runs it."""
    if node is None:
        return []
    if node.kind == "suite":
        return wrap_to(_suite(node, width), width)
    if node.kind == "criterion":
        return wrap_to(_criterion(node, runs, now_ms, width), width)
    return wrap_to(_test(node, runs, now_ms, width, run), width)


def problem_lines(problems: Sequence[Problem], suite_file: str, width: int) -> list[Line]:
    """Problems of a suite: place, what, how to fix it. The place names the file where it is not the suite's."""
    lines: list[Line] = []
    for problem in problems:
        style = "error" if problem.severity == "error" else "dim"
        file = "" if problem.file == suite_file else f"{one_line(Path(problem.file).name, 60)}:"
        lines.append(((f"{glyph('error')} {file}{problem.line}:{problem.column} {problem.severity}", style),))
        lines += paragraph(problem.message, width, indent=2)
        if problem.fix:
            lines += paragraph(problem.fix, width, "dim", indent=2)
    return lines


def _suite(node: Node, width: int) -> list[Line]:
    loaded = node.suite.loaded
    suite = loaded.suite
    lines: list[Line] = []
    if suite and suite.description:
        lines += [*paragraph(suite.description, width)]
    problems = node.suite.problems
    if problems or not node.suite.checked:
        more = "" if node.suite.checked else "checking …"
        head: list[Cell] = [(f"Problems {len(problems):,}" if problems else "Problems", "bold"), (f"  {more}", "dim")]
        lines += [
            *([()] if lines else []),
            tuple(head if more else head[:1]),
            *problem_lines(problems, str(loaded.path), width),
        ]
    if suite is None:
        return lines
    lines += [()]
    if suite.agent:
        lines += labelled("agent", suite.agent, width)
    if suite.gate is not None:
        lines += labelled("gate", f"{percent_limit(suite.gate.pass_rate)} of each test's runs", width)
    if suite.tags:
        lines += labelled("tags", ", ".join(suite.tags), width)
    lines += labelled("tests", _mix(suite), width)
    if node.suite.summaries:
        lines += [(), *paragraph(COUNTED, width, "dim")]
    return lines


def _mix(suite: Suite) -> str:
    total = len(suite.tests)
    kinds = Counter(test.category for test in suite.tests if test.category)
    names = {"happy_path": "happy path", "edge_case": "edge cases", "negative": "negative"}
    parts = (
        [f"{names.get(str(kind), str(kind))} {percent(n / total)}" for kind, n in kinds.most_common()] if total else []
    )
    return count(total, "test") + (f":  {' · '.join(parts)}" if parts else "")


def _test(node: Node, runs: TestRuns | None, now_ms: int, width: int, run: str) -> list[Line]:
    test = node.test
    assert test is not None
    lines = _heading(node, test, width)
    if test.description:
        lines += paragraph(test.description, width, "dim")
    if lines:
        lines += [()]
    lines += labelled("prompt", _prompt(test), width)
    lines += labelled("agent", _facts(node, test), width)
    lines += [(), *_criteria_table(node, test, width)]
    # What the file says does not wait for the history.
    if runs is None:
        return lines
    if runs.gates:
        lines += [(), *_gates(runs.gates, width)]
    lines += [(), *_why(runs, width)] if any(row.status in ENDED for row in runs.rows) else []
    lines += [(), *_last_runs(runs.rows, now_ms, width)] if runs.rows else [(), *_never(run, width)]
    return lines


def _facts(node: Node, test: Test) -> str:
    suite = node.suite.loaded.suite
    repeat = test.repeat or (suite.defaults.repeat if suite else None) or 1
    threshold = (
        test.pass_threshold if test.pass_threshold is not None else suite.defaults.pass_threshold if suite else None
    )
    facts = [test.agent or (suite.agent if suite else "") or "none", f"repeat {repeat}"]
    if test.tags:
        facts.append(f"tags {', '.join(test.tags)}")
    if threshold is not None:
        facts.append(f"pass threshold {percent_limit(threshold)}")
    gate = gate_of(suite, test) if suite is not None else None
    if gate is not None:
        facts.append(gate_text(gate.pass_rate))
    return "   ".join(facts)


def _heading(node: Node, test: Test, width: int) -> list[Line]:
    lines: list[Line] = []
    if test.name and test.name != test.id:
        lines += paragraph(test.name, width)
    for held in node.suite.quarantines:
        if held.test_id == test.id:
            lines += paragraph(f"{glyph('flaky')} {one_line(held_text([held]))}: non-gating", width, "flaky")
    return lines


def _prompt(test: Test) -> str:
    if test.prompt:
        return test.prompt
    if test.turns:
        return " ⏎ ".join(str(turn) for turn in test.turns)
    if test.messages:
        return " ⏎ ".join(f"{message.role}: {message.texts}" for message in test.messages)
    return "none" if test.user is None else f"simulated user: {test.user.goal}"


def _criteria_table(node: Node, test: Test, width: int) -> list[Line]:
    # Without the interval, which would leave no room for names.
    narrow = width < 56
    wide = [] if narrow else [("interval", 10)]
    heads = "".join(right(head, cells) for head, cells in [("weight", 7), ("last", 9), ("rate", 7), *wide])
    lines: list[Line] = [spread((("criteria", "dim"),), ((heads, "dim"),), width)]
    for number, criterion in enumerate(test.criteria):
        summary = criterion_summary(Node("criterion", node.suite, test, number))
        state: Cell = mark(summary.last) if summary else (NONE, "dim")
        start: list[Cell] = [state, (" ", ""), (one_line(test.criterion_names[number]), "")]
        rate = interval = ""
        if summary and summary.n:
            rate = percent(summary.passed / summary.n)
            ends = interval_of(summary.passed, summary.n)
            interval = TOO_FEW if ends is None else percent_span(*ends)
        cells = [(right(f"{criterion.weight:g}", 7), "dim"), (right(word(summary.last) if summary else "", 9), "dim")]
        cells += [(right(rate, 7), ""), ("" if narrow else right(interval, 10), "dim")]
        lines.append(spread(start, cells, width))
    return lines


def _gates(gates: Sequence[GateVerdict], width: int) -> list[Line]:
    lines: list[Line] = [((left("gate", WHY), "dim"), ("in the last execution", "dim"))]
    for gate in gates:
        sign = {"reached": "passed", "missed": "failed"}.get(gate.outcome, "error")
        variation = f"{one_line(gate.variation, 40)}: " if gate.variation else ""
        rows = paragraph(f"{variation}{verdict_text(gate)}", width - 2)
        lines += [(*((mark(sign), (" ", "")) if not at else (("  ", ""),)), *line) for at, line in enumerate(rows)]
    return lines


def _why(runs: TestRuns, width: int) -> list[Line]:
    head, failures = left("why it fails", WHY), runs.failures
    if not failures.reasons:
        # A check that could not be made is no failure, and "nothing failed" alone would hide it.
        missing = not_made_sentence(sum(run.checks_not_made for run in runs.rows))
        note: list[Line] = [fit(((" " * WHY, ""), (missing, "error")), width)] if missing else []
        running = any(run.status not in ENDED for run in runs.rows)
        message = "Nothing has failed so far." if running else "Nothing failed in the last runs."
        return [fit(((head, "dim"), (message, "dim")), width), *note]
    of = "in the last execution" if failures.last else "before the last execution; in the last one, all passed"
    lines: list[Line] = [fit(((head, "dim"), (of, "dim")), width)]
    for reason in failures.reasons:
        lines += _reason(reason, width)
    return lines


def _reason(failure: Failure, width: int) -> list[Line]:
    """A reason: its criterion, what was expected and got below each other, how many runs say it."""
    miss, often = failure.miss, f"{failure.runs:,} of {failure.of:,}"
    sign: Cell = mark("failed" if miss.criterion else "error")
    lines: list[Line] = []
    if miss.criterion:
        lines.append(spread((sign, (" ", ""), (one_line(miss.criterion), "")), ((often, "failed"),), width))
    if miss.sentence:
        wrapped = paragraph(miss.sentence, width - 2 - (0 if lines else len(often) + 1), "dim" if lines else "")[
            :REASON_LINES
        ]
        first: tuple[Cell, ...] = ((" ", ""),) * 2 if lines else (sign, (" ", ""))
        rows: list[Line] = [(*(first if not at else ((" ", ""),) * 2), *line) for at, line in enumerate(wrapped)]
        # Without a criterion above it, the sentence itself says how often.
        if not lines and rows:
            rows[0] = spread(rows[0], ((often, "failed"),), width)
        return lines + rows
    if miss.what:
        lines.append(((("  ", "")), (one_line(miss.what), "dim")))
    for label, value in (("expected", miss.expected), (failure.got_label, miss.got)):
        for at, line in enumerate(paragraph(value, width - WHY - 2)[:REASON_LINES]):
            lines.append((("  ", ""), (left("" if at else label, WHY), "dim"), *line))
    if miss.note:
        lines += [((" " * (WHY + 2), ""), *line) for line in paragraph(miss.note, width - WHY - 2, "failed")]
    return lines


def _last_runs(runs: Sequence[RunRow], now_ms: int, width: int) -> list[Line]:
    cells: list[Cell] = [(left("last runs", WHY), "dim")]
    # The newest is the last one, as in a row of the list; the figures are of all of them.
    for run in reversed(runs[:12]):
        cells += [mark(run.status), (" ", "")]
    times = [run.duration_ms for run in runs if run.duration_ms is not None]
    facts = [age(runs[0].started_ms, now_ms)]
    if times:
        facts.append(f"p50 {short_duration(percentile(times, 50))}")
    spent = sum(run.cost or 0.0 for run in runs)
    if spent:
        facts.append(short_dollars(spent, whole=all(run.priced for run in runs)))
    cells.append(("  " + "   ".join(fact for fact in facts if fact), "dim"))
    return [fit(cells, width)]


def _never(run: str, width: int) -> list[Line]:
    return paragraph(f"Not run yet. Press {run} to run it." if run else "Not run yet.", width, "dim")


def _criterion(node: Node, runs: TestRuns | None, now_ms: int, width: int) -> list[Line]:
    test = node.test
    assert test is not None
    assert node.criterion is not None
    criterion = test.criteria[node.criterion]
    summary = criterion_summary(node)
    lines: list[Line] = []
    if criterion.description:
        lines += paragraph(criterion.description, width, "dim")
    facts = f"{criterion.prototype_class}   weight {criterion.weight:g}   severity {criterion.severity}"
    if criterion.negate:
        facts += "   negated"
    lines += [*([()] if lines else []), *labelled("checks", facts, width)]
    if criterion.expected_value is not None:
        lines += labelled("expected", str(criterion.expected_value), width)
    if summary and summary.n:
        ends = interval_of(summary.passed, summary.n)
        interval = f"{TOO_FEW} for an interval" if ends is None else f"95 % interval {percent_span(*ends)}"
        rate = f"{summary.passed:,} of {summary.n:,} passed, {percent(summary.passed / summary.n)} ({interval})"
        lines += labelled("rate", rate, width)
    source = node.suite.loaded.config_source(test.id, node.criterion)
    lines += [(), (("config_uxon", "dim"),)]
    lines += coloured_lines(source.text, width)
    if runs is not None and runs.rows:
        lines += [(), *_last_runs(runs.rows, now_ms, width)]
    return lines
