"""What is shown of an execution against its baseline: what changed, what regressed, what is missing, and the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from agenteval_tui.analysis.comparison_model import TestChange
from agenteval_tui.analysis.regression_gate import BaselineResult, GateNotice, GateOptions, is_worse
from agenteval_tui.analysis.statistics import reaches
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.views.comparison import (
    TESTS,
    counts_text,
    p_value_text,
    power_text,
    rate_text,
    regression_text,
    setup_text,
    share,
    short_power_text,
    significance_text,
    was_and_now,
)
from agenteval_tui.views.model import Paragraph, Span, Text, View, paragraphs, text

_MOST = 10
_NAMED = 5  # tests or rows in a sentence
_NO_VERDICT = {
    "errors": "ended in errors",
    "waiting": "waits for a person",
    "stopped": "was stopped before it had a verdict",
    "not_in_baseline": "had no verdict in the baseline",
}
_HEADS = {
    "not_run": "in the baseline, and did not run",
    "rows_not_run": "rows of the baseline that did not run",
    "no_verdict": "no verdict to compare",
    "new_test_fails": "new tests that fail",
    "new_rows_fail": "new rows that fail",
    "judged_differently": "judged differently than before, and counted all the same",
    "asked_differently": "asked differently than before",
    "fewer_runs": "ran less often than in the baseline",
}
"""What a notice says of the tests after it, in the order in which they are listed."""


def _fell(how: str, tests: Sequence[TestChange]) -> Iterator[Text]:
    """The first of these tests, each in its line, and how many more there are."""
    yield from _lines((f"~ fell, {how}: ", "warn"), map(regression_text, tests[:_MOST]))
    if len(tests) > _MOST:
        yield text((f"~ and {len(tests) - _MOST:,} more fell, {how}", "warn"))


def against_view(result: BaselineResult, options: str = "") -> View:
    """What changed since the baseline: counts, what regressed, the pass rate with its interval, what is missing."""
    # What to do next is given where there is something to look at, as for causes.
    changed = result.shown.in_state("worse", "better", "mixed", "score")
    look = f"  (agenteval compare baseline {short_id(result.shown.b.reference)}{options})" if changed else ""
    since = f" of {numbers.moment(result.shown.a.started_ms)}: "
    quarantined = [change for change in result.shown.in_state("worse") if change.quarantine]
    more = len(result.regressed) - _MOST
    notes = [
        text((f"✗ and {numbers.count(more, 'regression')} more" if more > 0 else "", "bad")),
        text((f"✗ {fell_text(result)}" if result.regressions.overall else "", "bad")),
        *_fell("within chance", result.by_chance),
        *_fell("in quarantine", quarantined),
        *(text((f"~ {one_line(line, 600)}", "warn")) for line in notice_lines(result.notices)),
    ]
    whole = result.gating.overall
    if whole.rate is not None:
        held = ("without quarantine",) if any(test.quarantine for test in result.shown.tests) else ()
        certainty = "; ".join(part for part in (*held, significance_text(whole), short_power_text(whole)) if part)
        notes.append(text(f"pass rate {rate_text(whole)}", (f"  {certainty}", "dim")))
    if result.without_baseline:
        notes.append(text((f"{numbers.count(result.without_baseline, 'test')} without a baseline", "dim")))
    return (
        Paragraph(text("against the baseline", (since, "dim"), counts_text(result.shown), (look, "dim"))),
        *paragraphs(
            _lines(("✗ regressed: ", "bad"), (regressed_text(result, test) for test in result.regressed[:_MOST]))
        ),
        *paragraphs(notes),
    )


def _lines(sign: Span, lines: Iterable[str]) -> list[Text]:
    return [text(sign, one_line(line, 300)) for line in lines]


def regressed_text(result: BaselineResult, test: TestChange) -> str:
    """`refund: 19/20, now 14/20; rows 3, 5 and 3 more passed before`, `greeting: 9/10, now 2/10 (p = 0.003)`."""
    regressed = result.regressions.rows_of(test.key)
    rows = [row.label for row in test.rows if row.case in regressed]
    words = f"{test.label}: {was_and_now(test)}"
    if rows:
        words += f"; {_rows(rows)} passed before" if len(rows) > 1 else f"; {_rows(rows)} passed before and fails now"
    p_value = result.regressions.p_value_of(test.key)
    return f"{words} ({p_value_text(p_value)})" if p_value is not None else words


def kept_text(tests: Sequence[TestChange]) -> str:
    """The tests that keep their baseline, with what is worse now: `a: 5/5, now 4/5; t (row r2)`."""
    named = []
    for test in tests:
        rows = [row.label for row in test.rows if is_worse(row)]
        named.append(f"{test.label} ({_rows(rows)})" if rows else f"{test.label}: {was_and_now(test)}")
    return abridged(named, _NAMED, separator="; ")


def fell_text(result: BaselineResult) -> str:
    """`all tests together fell: 60 % to 0 % (exact test over 10 cases, p < 0.001)`; "" where they did not."""
    fell, rate = result.regressions.overall, result.gating.overall.rate
    if fell is None or fell.p_value is None or rate is None:
        return ""
    cases = numbers.count(rate.n, "case")
    change = f"{share(rate.was)} to {share(rate.now)}"
    method = "exact test" if fell.method == "exact" else TESTS[fell.method][0]
    return f"all tests together fell: {change} ({method} over {cases}, {p_value_text(fell.p_value)})"


def notice_lines(notices: Sequence[GateNotice]) -> list[str]:
    """What could not be compared, or not as it stands, a line each kind: `new tests that fail: b2, b3`."""
    lines = []
    for code, head in _HEADS.items():
        named = [_notice_text(notice) for notice in notices if notice.code == code]
        if named:
            lines.append(f"{head}: {abridged(named, _NAMED, separator='; ', rest='more tests')}")
    return lines


def _notice_text(notice: GateNotice) -> str:
    """A test, and what there is to say of it: `t (row 4)`, `t: waits for a person`, `t: 5 times, now 1`."""
    label = notice.label + (f" ({_rows(notice.rows)})" if notice.rows else "")
    if notice.code == "no_verdict":
        return f"{label}: {_NO_VERDICT[notice.cause]}"
    if notice.code == "fewer_runs":
        return f"{label}: {notice.was} times, now {notice.now}"
    details = [f'criterion "{name}"' for name in notice.criteria] + [setup_text(change) for change in notice.changes]
    return f"{label}: {', '.join(details)}" if details else label


def _rows(labels: Sequence[str]) -> str:
    return f"{'row' if len(labels) == 1 else 'rows'} {abridged(labels, _NAMED)}"


def gate_view(result: BaselineResult, gates: GateOptions) -> View:
    """Whether the gates are reached, what they do not cover, and how far that can be relied on."""
    missed = [text(("gate not reached: ", "bad"), one_line(gate, 600)) for gate in missed_gates(result, gates)]
    beside = one_line(uncovered_text(result, gates), 900)
    # A test that broke may be the one that regressed: the exit code is no success either.
    undecided = any(notice.code == "no_verdict" and notice.cause != "not_in_baseline" for notice in result.notices)
    head = ("no gate missed by the tests that have a verdict", "warn") if undecided else ("gates reached", "good")
    return (
        *paragraphs(missed or [text(head, (f"; {beside}" if beside else "", "warn"))]),
        *paragraphs([text((beside if missed else "", "warn")), text((gate_certainty(result, gates), "dim"))], indent=2),
    )


def uncovered_text(result: BaselineResult, gates: GateOptions) -> str:
    """What the gates do not cover, named each: `new tests that fail don't gate: b2 (--no-new-failures lets them)`."""
    parts = []
    asked = [concerns for _, is_asked, concerns in _NOTICE_GATES if is_asked(gates)]
    for code in _HEADS:
        notices = [notice for notice in result.notices if notice.code == code]
        if notices and not any(concerns(notice) for notice in notices for concerns in asked):
            option = next((option for option, _, concerns in _NOTICE_GATES if any(map(concerns, notices))), "")
            parts += [line + (f" ({option} lets them gate)" if option else "") for line in notice_lines(notices)]
    if result.selected:
        options = ", ".join(f"--{_OPTIONS.get(name, name)}" for name in result.selected)
        parts.append(f"only the tests that {options} chose were compared")
    if result.from_history:
        answers = numbers.count(result.from_history, "answer")
        parts.append(f"{answers} came from the history (--cache), so the agent was not asked again")
    return "; ".join(parts)


_OPTIONS = {"tests": "test", "tags": "tag", "failed_from": "failed"}
_NOTICE_GATES: tuple[tuple[str, Callable[[GateOptions], bool], Callable[[GateNotice], bool]], ...] = (
    ("--no-missing", lambda gates: gates.no_missing, lambda notice: notice.missing),
    ("--no-new-failures", lambda gates: gates.no_new_failures, lambda notice: notice.new_failure),
)
"""The gates that notices miss: the option, whether it was given, and whether a notice misses it."""


def missed_gates(result: BaselineResult, gates: GateOptions) -> list[str]:
    """The gates that are not reached, a sentence each."""
    missed = []
    if gates.no_regressions and result.regressed:
        many = f"{len(result.regressed)} tests regressed" if len(result.regressed) > 1 else "a test regressed"
        named = ", ".join(regressed_text(result, test) for test in result.regressed[:_NAMED])
        missed.append(f"--no-regressions: {many} ({named})")
    # Beside single tests: a small drop of each may be shown only by all of them together.
    if gates.no_regressions and result.regressions.overall:
        missed.append(f"--no-regressions: {fell_text(result)}")
    if gates.max_drop is not None and not reaches(gates.max_drop, result.drop):
        rate = result.gating.overall.rate
        assert rate is not None
        # With the digits that tell it from the limit.
        points = numbers.points_interval(-result.drop, -gates.max_drop)[0]
        fell = f"from {share(rate.was)} to {share(rate.now)} ({points} points)"
        missed.append(f"--max-drop {numbers.percent_limit(gates.max_drop)}: the pass rate fell {fell}")
    # Errors have an exit code of their own, which says that there is no verdict.
    if result.gating.overall.rate is None and any(notice.cause != "errors" for notice in result.notices):
        missed.append("no test has a verdict on both sides, so nothing could be compared")
    for option, is_asked, concerns in _NOTICE_GATES:
        if is_asked(gates) and (notices := [notice for notice in result.notices if concerns(notice)]):
            missed.append(f"{option}: {'; '.join(notice_lines(notices))}")
    return missed


def gate_certainty(result: BaselineResult, gates: GateOptions) -> str:
    """How far the gates can be relied on: the test, n, and the smallest drop that n could have shown."""
    overall = result.gating.overall
    parts = [part for part in (significance_text(overall), power_text(overall)) if part]
    limit = gates.max_drop
    # Then a real drop beyond the limit may well go unseen.
    if limit is not None and overall.rate is not None and (overall.detectable is None or overall.detectable > limit):
        parts.append(f"this sample is too small to detect a drop of {numbers.percent_limit(limit)}")
    return "; ".join(parts)
