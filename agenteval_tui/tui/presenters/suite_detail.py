"""What stands right of the tree: the selected suite, test or criterion in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.errors import Problem
from agenteval_tui.core.numbers import age, count
from agenteval_tui.grading.sentences import not_made_sentence
from agenteval_tui.history.records import RunRow
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.tui.presenters.number_format import cost, duration, percent
from agenteval_tui.tui.presenters.number_format import interval as interval_range
from agenteval_tui.tui.presenters.status_style import glyph, mark, word
from agenteval_tui.tui.presenters.suite_tree import Node, criterion_summary
from agenteval_tui.tui.presenters.test_status import outcome_of
from agenteval_tui.tui.presenters.text_layout import LABEL, LONGEST, labelled, paragraph, wrap_to
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, right, spread
from agenteval_tui.uxon.tokens import tokenize
from agenteval_tui.views.quarantine import held_text


def detail(node: Node | None, runs: Sequence[RunRow], now_ms: int, width: int) -> list[Line]:
    """The detail of a node; `runs` are its test's latest runs, newest first."""
    if node is None:
        return []
    if node.kind == "suite":
        return wrap_to(_suite(node, width), width)
    if node.kind == "criterion":
        return wrap_to(_criterion(node, runs, now_ms, width), width)
    return wrap_to(_test(node, runs, now_ms, width), width)


def problem_lines(problems: Sequence[Problem], suite_file: str, width: int) -> list[Line]:
    """Problems of a suite: place, what, how to mend it. The place names the file where it is not the suite's."""
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
    lines: list[Line] = [
        spread(
            ((one_line(suite.name if suite else loaded.path.name), "bold"),),
            ((one_line(loaded.path.name, 60), "dim"),),
            width,
        )
    ]
    if suite and suite.description:
        lines += [(), *paragraph(suite.description, width)]
    problems = node.suite.problems
    if problems or not node.suite.checked:
        more = "" if node.suite.checked else "checking …"
        head: list[Cell] = [(f"Problems {len(problems)}" if problems else "Problems", "bold"), (f"  {more}", "dim")]
        lines += [(), tuple(head if more else head[:1]), *problem_lines(problems, str(loaded.path), width)]
    if suite is None:
        return lines
    lines += [()]
    if suite.agent:
        lines += labelled("Agent", suite.agent, width)
    if suite.tags:
        lines += labelled("Tags", ", ".join(suite.tags), width)
    lines += labelled("Tests", _mix(suite), width)
    return lines


def _mix(suite: Suite) -> str:
    total = len(suite.tests)
    kinds = Counter(test.category for test in suite.tests if test.category)
    names = {"happy_path": "happy path", "edge_case": "edge cases", "negative": "negative"}
    parts = (
        [f"{names.get(str(kind), str(kind))} {percent(n / total)}" for kind, n in kinds.most_common()] if total else []
    )
    return count(total, "test") + (f":  {' · '.join(parts)}" if parts else "")


def _test(node: Node, runs: Sequence[RunRow], now_ms: int, width: int) -> list[Line]:
    test = node.test
    assert test is not None
    lines = _heading(node, test, width)
    if test.description:
        lines += paragraph(test.description, width, "dim")
    lines += [()]
    lines += labelled("Prompt", _prompt(test), width)
    suite = node.suite.loaded.suite
    agent = test.agent or (suite.agent if suite else "") or "none"
    tags = ", ".join(test.tags)
    repeat = test.repeat or (suite.defaults.repeat if suite else None) or 1
    facts = f"{agent}   repeat {repeat}" + (f"   tags {tags}" if tags else "")
    lines += labelled("Agent", facts, width)
    lines += [(), *_criteria_table(node, test, width)]
    lines += [(), *_why(runs, width)] if runs else []
    lines += [(), *_last_runs(runs, now_ms, width)] if runs else [(), *_never(width)]
    return lines


def _heading(node: Node, test: Test, width: int) -> list[Line]:
    place = _place(node, test)
    state = outcome_of(node.suite.summaries.get(test.id))
    start: tuple[Cell, ...] = ((one_line(test.id), "bold"),)
    if state:
        start = (mark(state), (" ", ""), *start, ("  " + word(state), "dim"))
    lines: list[Line] = [spread(start, ((place, "dim"),), width)]
    if test.name and test.name != test.id:
        lines += paragraph(test.name, width)
    for held in node.suite.quarantines:
        if held.test_id == test.id:
            lines += paragraph(f"{glyph('flaky')} {one_line(held_text([held]))}: does not gate", width, "flaky")
    return lines


def _place(node: Node, test: Test) -> str:
    return f"{one_line(node.suite.loaded.path.name, 60)}:{node.suite.loaded.line_of(test.id, node.criterion)}"


def _prompt(test: Test) -> str:
    if test.prompt:
        return test.prompt
    if test.turns:
        return " ⏎ ".join(str(turn) for turn in test.turns)
    if test.messages:
        return " ⏎ ".join(f"{message.role}: {message.content}" for message in test.messages)
    return "none"


def _criteria_table(node: Node, test: Test, width: int) -> list[Line]:
    narrow = width < 56
    tail = 6 + 7 + (0 if narrow else 11)
    heads = right("weight", 7) + right("rate", 6) + ("" if narrow else right("interval", 10))
    lines: list[Line] = [spread(((f"Criteria {len(test.criteria)}", "bold"),), ((heads, "dim"),), width)]
    for number, criterion in enumerate(test.criteria):
        seen = criterion_summary(Node("criterion", node.suite, test, number))
        state = seen.last if seen else ""
        start: list[Cell] = [mark(state), (" ", ""), (one_line(test.criterion_names[number]), "")]
        cells = [(right(f"{criterion.weight:g}", 7), "dim")]
        if seen and seen.n:
            cells.append((right(percent(seen.passed / seen.n), 6), ""))
            if not narrow:
                low, high = wilson(seen.passed, seen.n)
                cells.append((right(interval_range(low, high), 10), "dim"))
        else:
            cells.append((" " * (tail - 7 + (0 if narrow else -1)), ""))
        lines.append(spread(start, cells, width))
    return lines


def _why(runs: Sequence[RunRow], width: int) -> list[Line]:
    failing = [run for run in runs if run.status in ("failed", "error")]
    if not failing:
        missing = not_made_sentence(sum(run.checks_not_made for run in runs))
        note: list[Line] = [((left("", LABEL), "dim"), (missing, "error"))] if missing else []
        return [((left("Why", LABEL), "dim"), ("nothing failed in the last runs", "passed")), *note]
    causes = Counter(run.why or run.error_message or run.status for run in failing)
    lines: list[Line] = [((f"Why it fails  {len(failing)} of {len(runs)}", "bold"),)]
    for cause, number in causes.most_common(3):
        text = paragraph(cause, width - 6)[:3]
        lines += [
            ((right(f"{number}×" if index == 0 else "", 4), "failed"), ("  ", ""), *line)
            for index, line in enumerate(text)
        ]
    return lines


def _last_runs(runs: Sequence[RunRow], now_ms: int, width: int) -> list[Line]:
    cells: list[Cell] = [(left("Last runs", LABEL), "dim")]
    for run in reversed(runs[:12]):
        cells += [mark(run.status), (" ", "")]
    times = sorted(run.duration_ms for run in runs if run.duration_ms is not None)
    facts = [age(runs[0].started_ms, now_ms)]
    if times:
        facts.append(f"p50 {duration(times[len(times) // 2])}")
    spent = sum(run.cost or 0.0 for run in runs)
    if spent:
        facts.append(cost(spent))
    cells.append(("  " + "   ".join(fact for fact in facts if fact), "dim"))
    return [fit(cells, width)]


def _never(width: int) -> list[Line]:
    return paragraph("Not run yet: press r to run it.", width, "dim")


def _criterion(node: Node, runs: Sequence[RunRow], now_ms: int, width: int) -> list[Line]:
    test = node.test
    assert test is not None
    assert node.criterion is not None
    criterion = test.criteria[node.criterion]
    place = _place(node, test)
    seen = criterion_summary(node)
    start: tuple[Cell, ...] = ((one_line(test.criterion_names[node.criterion]), "bold"),)
    if seen:
        start = (mark(seen.last), (" ", ""), *start)
    lines: list[Line] = [spread(start, ((place, "dim"),), width)]
    if criterion.description:
        lines += paragraph(criterion.description, width, "dim")
    facts = f"{criterion.prototype_class}   weight {criterion.weight:g}   severity {criterion.severity}"
    if criterion.negate:
        facts += "   negated"
    lines += [(), *labelled("Looks at", facts, width)]
    if criterion.expected_value is not None:
        lines += labelled("Expected", str(criterion.expected_value), width)
    if seen and seen.n:
        low, high = wilson(seen.passed, seen.n)
        interval = f"95 % interval {interval_range(low, high)}"
        rate = f"{seen.passed} of {seen.n} passed, {percent(seen.passed / seen.n)} ({interval})"
        lines += labelled("Rate", rate, width)
    source = node.suite.loaded.config_source(test.id, node.criterion)
    lines += [(), (("config_uxon", "bold"),)]
    lines += config_lines(source.text, width)
    if runs:
        lines += [(), *_last_runs(runs, now_ms, width)]
    return lines


def config_lines(text: str, width: int) -> list[Line]:
    """A config with the colours of its tokens; long lines are cut."""
    styles = {
        "key": "json-key",
        "string": "json-string",
        "number": "json-number",
        "literal": "json-literal",
        "comment": "comment",
        "error": "failed",
    }
    rows: list[list[Cell]] = [[]]

    def add(piece: str, style: str) -> None:
        for index, part in enumerate(piece.split("\n")):
            if index:
                rows.append([])
            if part:
                rows[-1].append((displayable(part).expandtabs(4), style))

    at = 0
    more = len(text) - LONGEST
    text = text[:LONGEST]
    for one in tokenize(text):
        add(text[at : one.start], "")
        add(text[one.start : one.end], styles.get(one.kind, "dim"))
        at = one.end
    add(text[at:], "")
    if more > 0:
        rows.append([(f"… {count(more, 'more character')}", "dim")])
    return [fit(row, width) for row in rows]
