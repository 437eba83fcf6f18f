"""What is shown of a comparison: in lines (`comparison_view`), as a page (`comparison_page`), and a change in full.

Every fact has its words here, and nowhere else: a screen, a verb and a report can't say different things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from agenteval_tui.analysis.attribution import Attributed
from agenteval_tui.analysis.comparison_model import (
    ORDER,
    Comparison,
    CriterionChange,
    MetricChange,
    Overall,
    PairedSuites,
    RowChange,
    Side,
    State,
    SummaryMetric,
    Tally,
    TestChange,
    TestKey,
    fails,
)
from agenteval_tui.analysis.regressions import Regressions, regressions_of
from agenteval_tui.analysis.setup_changes import SetupChange
from agenteval_tui.analysis.statistics import SIGNIFICANT
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.grading.explain import metric_name
from agenteval_tui.grading.sentences import not_made_in_runs_sentence
from agenteval_tui.views.attribution import reason_text
from agenteval_tui.views.divergence import step_change_text
from agenteval_tui.views.execution import commit_text
from agenteval_tui.views.file_changes import file_changes_text
from agenteval_tui.views.model import (
    Column,
    Fact,
    Facts,
    Heading,
    List,
    Node,
    Paragraph,
    Row,
    Span,
    Table,
    Text,
    Tree,
    View,
    paragraphs,
    sentence,
    text,
    text_table,
)

AttributedTests = Mapping[TestKey, "Attributed | None"]
"""Who changed each test. None: no pair of runs shows it; not there: it was not looked at."""

MOST_LINES = 100  # tests of a section, in lines
MOST_TABLE = 50  # rows of a table
MOST_ROWS = 20  # dataset rows of a test, in lines
MOST_ROWS_IN_FULL = 40  # and where the test is shown in full
_BAR = 10  # cells of a rate
_NAMED = 5  # tests in a sentence
_COUNTED = "figures and gates still count these verdicts"

TESTS = {
    "mcnemar": ("McNemar's exact test", "McNemar"),
    "sign-flip": ("sign-flip test", "sign-flip"),
    "fisher": ("Fisher's exact test", "Fisher"),
}
"""The tests that p-values come from, in full and in short."""
_SETUP = {
    "agent_config": "the agent's configuration",
    "prompt": "another prompt",
    "turns": "other turns",
    "user": "another simulated user",
}
"""What was set up differently, where the values say nothing or are too long."""
SECTIONS: dict[State, tuple[str, str]] = {
    "worse": ("test worse", "tests worse"),
    "better": ("test better", "tests better"),
    "mixed": ("test with rows changed both ways", "tests with rows changed both ways"),
    "score": ("other score", "other scores"),
    "criteria": ("test judged differently", "tests judged differently"),
    "undecided": ("test without a verdict on one side or both", "tests without a verdict on one side or both"),
    "added": ("test only on the right", "tests only on the right"),
    "removed": ("test only on the left", "tests only on the left"),
    "same": ("unchanged", "unchanged"),
}
SIGNS: dict[State, Span] = {
    "worse": ("✗", "bad"),
    "better": ("✓", "good"),
    "mixed": ("↕", "warn"),
    "score": ("±", ""),
    "criteria": ("·", "dim"),
    "undecided": ("!", "broken"),
    "added": ("+", "added"),
    "removed": ("-", "removed"),
    "same": ("=", "dim"),
}
SHARP: tuple[State, ...] = ("worse", "better", "mixed")
"""The states for which somebody is responsible."""
WHO = {"unknown": "not known"}
"""Who changed something, where that is not said as it is stored."""
_METRICS: dict[str, tuple[str, Callable[[float], str]]] = {
    "score": ("Score", lambda value: f"{value:.3f}"),
    "time": ("Latency (mean)", numbers.duration),
    "tokens": ("Tokens/run (mean)", lambda value: f"{value:,.0f}"),
    "cost": ("Cost/run (mean)", numbers.dollars),
}
_ROWS: tuple[tuple[State, str], ...] = (
    ("worse", "worse"),
    ("better", "better"),
    ("score", "with another score"),
    ("undecided", "without a verdict on one side or both"),
    ("same", "unchanged"),
    ("added", "added"),
    ("removed", "removed"),
)

# Figures


def share(value: float) -> str:
    """`71 %`, `99.5 %`."""
    return numbers.percent(value, 1)


def p_value_text(value: float) -> str:
    """`p = 0.18`, `p < 0.001`."""
    # Two digits: nobody decides by the third.
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def fraction(tally: Tally | None) -> str:
    """`3/5`; `–` where nothing was decided."""
    if tally is None or not tally.n:
        return "–"
    return f"{tally.passed}/{tally.n}"


def score_text(tally: Tally | None) -> str:
    """`0.75`; `–` for none."""
    return "–" if tally is None or tally.score is None else numbers.decimal(tally.score)


def figures(change: TestChange | CriterionChange | RowChange) -> tuple[str, str]:
    """What both sides have: how often it passed; of what passes as often as before, the scores."""
    # Where as many passed as before, `3/3 → 3/3` would say nothing.
    figure_text = score_text if change.state == "score" else fraction
    return figure_text(change.was), figure_text(change.now)


def change_text(change: TestChange | CriterionChange | RowChange) -> str:
    """`5/5 → 2/5`, `score 0.67 → 1.00`."""
    was, now = figures(change)
    return f"{'score ' if change.state == 'score' else ''}{was} → {now}"


def version(content_hash: str) -> str:
    """The start of a criterion's hash, as people compare it."""
    return content_hash[:6]


def config_change(change: CriterionChange) -> str:
    """`config changed 112c7c → 3a7f39`; "" where one version judged both sides."""
    if not change.edited:
        return ""
    return f"config changed {version(change.versions_was[-1])} → {version(change.versions_now[-1])}"


def section_text(state: State, number: int) -> str:
    """`3 tests worse`, `1 test worse`."""
    return f"{number:,} {SECTIONS[state][number != 1]}"


def counts_text(comparison: Comparison) -> str:
    """`1 test worse, 3 tests better, 10 unchanged`."""
    return ", ".join(section_text(*item) for item in comparison.counts().items()) or "nothing to compare"


# All tests together


def sample_text(overall: Overall) -> str:
    """What the test counts: `14 pairs`, `9 cases`, `40 runs on the smaller side`."""
    if overall.one_case:
        return f"{numbers.count(overall.n, 'repetition')} of one case"
    if overall.test == "fisher":
        return f"{numbers.count(overall.n, 'run')} on the smaller side"
    return numbers.count(overall.n, "pair" if overall.test == "mcnemar" else "case")


def rate_text(overall: Overall) -> str:
    """`71 % to 83 %, +12 points (95 % interval -2 to +25)`."""
    rate = overall.rate
    if rate is None:
        return "no test has a verdict on both sides"
    words = f"{share(rate.was)} to {share(rate.now)}, {numbers.points(rate.difference)} points"
    if rate.interval is None:
        return words
    low, high = numbers.points_interval(*rate.interval)
    return f"{words} (95 % interval {low} to {high}{', for this case alone' if overall.one_case else ''})"


def significance_text(overall: Overall) -> str:
    """`McNemar's exact test on 14 pairs: p = 0.18`; "" where nothing was tested."""
    return (
        ""
        if overall.p_value is None or overall.few
        else f"{TESTS[overall.test][0]} on {sample_text(overall)}: {p_value_text(overall.p_value)}"
    )


def power_text(overall: Overall) -> str:
    """The drop that this many could have shown: `14 pairs detect a drop of 20 points or more with 80 %
    power`."""
    if overall.rate is None:
        return ""
    if overall.few:
        return few_text(overall)
    if overall.detectable is None:
        return f"{sample_text(overall)} can't show any drop"
    few = "" if _significant(overall) else ", but are too few to show a smaller drop"
    least = numbers.least_points(overall.detectable)
    return f"{sample_text(overall)} detect a drop of {least} or more with 80 % power{few}"


def few_text(overall: Overall) -> str:
    """`3 cases are too few to show how sure this is`, of fewer than five."""
    if overall.test == "fisher":
        return f"{sample_text(overall)}: too few to show how sure this is"
    are = "is" if overall.n == 1 else "are"
    return f"{numbers.count(overall.n, 'case')} {are} too few to show how sure this is"


def short_power_text(overall: Overall, sample: str = "") -> str:
    """The same in a few words: `14 tests: too few to tell a drop under 20 points`. `sample`: what was tested, where it
    is not to be called as the test calls it."""
    if overall.rate is None:
        return ""
    if overall.few:
        return few_text(overall)
    sample = sample or sample_text(overall)
    if overall.detectable is None:
        return f"{sample}: too few to show any drop"
    least = numbers.least_points(overall.detectable)
    if _significant(overall):
        return f"{sample} can show drops of {least} or more"
    return f"{sample}: too few to show a drop under {least}"


def overall_text(overall: Overall) -> str:
    """The rate, the test and its power, with semicolons between them."""
    return "; ".join(part for part in (rate_text(overall), significance_text(overall), power_text(overall)) if part)


def _significant(overall: Overall) -> bool:
    return overall.p_value is not None and overall.p_value <= SIGNIFICANT


def _measures(overall: Overall) -> list[tuple[str, SummaryMetric]]:
    """What was measured of both sides, as means of a run: score, time (ms), tokens, cost ($), as far as known."""
    measures = (
        ("score", overall.score),
        ("time", overall.latency_ms),
        ("tokens", overall.tokens),
        ("cost", overall.cost),
    )
    return [(name, measure) for name, measure in measures if measure is not None]


def _relative(measure: SummaryMetric) -> str:
    return f"{100 * measure.difference / measure.was:+.0f} %" if measure.was else ("new" if measure.now else "0 %")


def _token(difference: float) -> str:
    return "good" if difference > 1e-9 else "bad" if difference < -1e-9 else ""


def overall_view(overall: Overall) -> View:
    """The pass rate with interval, test and power, then what was measured."""
    measured = [
        f"{name} {_METRICS[name][1](measure.was)} to {_METRICS[name][1](measure.now)}"
        for name, measure in _measures(overall)
        # What did not change is left out; of the score people want to know that it did not.
        if abs(measure.difference) > 1e-12 or name == "score"
    ]
    alone = (
        "has a verdict on one side only and is" if overall.left_out == 1 else "have a verdict on one side only and are"
    )
    left_out = f"{numbers.count(overall.left_out, 'case')} {alone} left out" if overall.left_out else ""
    means = f"mean of a run: {', '.join(measured)}" if measured else ""
    token = _token(overall.rate.difference) if overall.rate is not None else ""
    below = (significance_text(overall), power_text(overall), means, left_out)
    return (
        Paragraph(text("pass rate " if overall.rate else "", (rate_text(overall), token))),
        *paragraphs((text((line, "dim")) for line in below), indent=2),
    )


def overall_table(overall: Overall) -> Table:
    """Metric, baseline, now and change: the means over what both sides have."""
    rows: list[tuple[str, ...]] = []
    if (rate := overall.rate) is not None:
        rows.append(("Pass rate", share(rate.was), share(rate.now), f"{numbers.points(rate.difference)} points"))
    for name, measure in _measures(overall):
        head, formatted = _METRICS[name]
        change = f"{measure.difference:+.3f}" if name == "score" else _relative(measure)
        rows.append((head, formatted(measure.was), formatted(measure.now), change))
    return text_table(("Metric", "Baseline", "Now", "Change"), rows)


def overall_in_short(comparison: Comparison, *, unicode: bool = True) -> List:
    """The rates, each with its bar, and their difference; the test; its power; what was measured: short texts, for the
    head of a screen."""
    overall = comparison.overall
    rate = overall.rate
    if rate is None:
        parts = [text(rate_text(overall))]
    else:
        was, now = numbers.percent_interval(rate.was, rate.now)
        token = _token(rate.difference)
        interval = "" if rate.interval is None else " ({} … {})".format(*numbers.points_interval(*rate.interval, 0))
        # A case is a test, or a row of its dataset.
        by_row = overall.test != "sign-flip" or any(test.rows for test in comparison.tests)
        sample = sample_text(overall) if by_row else numbers.count(overall.n, "test")
        parts = [
            text(
                ("pass  ", "dim"),
                (f"{was} % ", "bold"),
                (numbers.rate_bar(rate.was, _BAR, unicode=unicode), "dim"),
                (" → ", ""),
                (f"{now} % ", "bold"),
                (numbers.rate_bar(rate.now, _BAR, unicode=unicode), token or "dim"),
                (f"   {_minus(numbers.points(rate.difference, 0))}", f"bold {token}".strip()),
                (_minus(interval), "dim"),
                ("  this case alone" if overall.one_case else "", "dim"),
            ),
            text((_short_significance_text(overall), "dim")),
            text((short_power_text(overall, sample), "dim")),
        ]
    for name, measure in sorted(_measures(overall), key=lambda pair: pair[0] == "score"):
        # Figures that are 0 on both sides were not measured, or cost nothing.
        if measure.was or measure.now:
            before, after = _METRICS[name][1](measure.was), _METRICS[name][1](measure.now)
            more = f" ({_minus(_relative(measure))})" if measure.was else ""
            parts.append(text((f"{name} {after}" if before == after else f"{name} {before} → {after}{more}", "dim")))
    return List(tuple(part for part in parts if part), inline=True)


def _short_significance_text(overall: Overall) -> str:
    """`sign-flip p 0.18`, `McNemar p < 0.001`."""
    if overall.p_value is None or overall.few:
        return ""
    return f"{TESTS[overall.test][1]} {p_value_text(overall.p_value).replace('= ', '')}"


def _minus(figure: str) -> str:
    """With a real minus sign."""
    return figure.replace("-", "−")


# What has to be known of all tests


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know before trusting the figures, a clause each."""
    names = comparison.suite_names if comparison.paired else {}
    words = [paired_suites_text(pair, names.get(pair.now, "")) for pair in comparison.paired]
    for side in (comparison.a, comparison.b):
        words.append(
            f"{side.waiting:,} of {numbers.count(len(side.runs), 'run')} of {side.name} "
            f"{'has' if side.waiting == 1 else 'have'} not ended"
            if side.waiting
            else ""
        )
    words.append(in_common_text(comparison.tests))
    words.append("" if comparison.by_variation else "variations are merged: the two sides have different ones")
    words.append(datasets_text(comparison.tests))
    for side, number in zip((comparison.a, comparison.b), comparison.checks_not_made, strict=True):
        words.append(f"{not_made_in_runs_sentence(number)} of {side.name}" if number else "")
    words += [asked_text(comparison.tests), not_comparable_text(comparison.not_comparable)]
    return [line for line in words if line]


def in_common_text(tests: Sequence[TestChange]) -> str:
    """`only 1 of 22 tests is on both sides, and the figures are of it`; "" where most are on both."""
    # Where most tests are on both sides, the others have their own sections, and need no note.
    both = sum(test.state not in ("added", "removed") for test in tests)
    if not both or 2 * both >= len(tests):
        return ""
    they, these = ("is", "it") if both == 1 else ("are", "these")
    return f"only {both:,} of {numbers.count(len(tests), 'test')} {they} on both sides, and the figures are of {these}"


def paired_suites_text(pair: PairedSuites, name: str) -> str:
    """`suite S: /a/s.yaml is compared with /b/s.yaml`; of two imports, that their tests were paired by id."""
    if pair.by == "name":
        return f"suite {name}: {pair.was} is compared with {pair.now}"
    was, now = (key.split(":", 2)[-1] for key in (pair.was, pair.now))
    words = f"imports of two files: the tests of {was} are paired by id with those of {now}"
    doubt = "; no prompt is the same in both, so check that both files come from the same eval"
    return words if pair.asked_alike else words + doubt


def not_comparable_text(tests: Sequence[TestChange]) -> str:
    """`not comparable: 2 tests are judged differently than before (a: criterion "x"; b: gate 80 % → 60 %); ...`; ""
    for none."""
    if not tests:
        return ""
    names = abridged([f"{test.label}: {judged_text(test)}" for test in tests], _NAMED, separator="; ")
    many = "1 test is" if len(tests) == 1 else f"{len(tests):,} tests are"
    return f"not comparable: {many} judged differently than before ({names}); {_COUNTED}"


def judged_text(test: TestChange) -> str:
    """How a test is judged differently: `criterion "cites" edited, severity of "polite" error → info`."""
    parts = []
    for change in test.criteria:
        if not change.comparable:
            what = change.state if change.state in ("added", "removed") else "edited"
            parts.append(f'criterion "{change.name}" {what}')
    return ", ".join((*parts, *map(setup_text, test.judging_changes)))


def setup_text(change: SetupChange) -> str:
    """`another prompt`, `agent small → large`, `weight of "polite" 1 → 2`, `gate none → 80 %`."""
    if change.kind in _SETUP:
        return _SETUP[change.kind]
    name = change.kind.replace("_", " ") + (f' of "{change.criterion}"' if change.criterion else "")
    return f"{name} {_setup_value(change.kind, change.was)} → {_setup_value(change.kind, change.now)}"


def _setup_value(kind: str, value: str | float | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return share(value) if kind == "gate" else f"{value:g} s" if kind == "timeout" else f"{value:g}"


def asked_text(tests: Iterable[TestChange]) -> str:
    """`asked differently than before: another prompt (a, b), agent small → large (c)`; "" for none."""
    by_change = grouped((setup_text(change), test.label) for test in tests for change in test.asking_changes)
    words = [f"{what} ({abridged(labels, _NAMED, rest='more tests')})" for what, labels in by_change.items()]
    return f"asked differently than before: {', '.join(words)}" if words else ""


def datasets_text(tests: Iterable[TestChange]) -> str:
    """`dataset rows changed: t (1 added, 1 of the added failing, 6 moved), u (2 removed)`: the tests that have other
    rows; "" for none. An added row is in no figure of the comparison, so its failure is said here."""
    changed = []
    for test in tests:
        counts = (
            (sum(row.state == "added" for row in test.rows), "added"),
            (sum(row.state == "added" and fails(row.now) for row in test.rows), "of the added failing"),
            (sum(row.state == "removed" for row in test.rows), "removed"),
            (sum(row.moved for row in test.rows), "moved"),
            (sum(bool(row.content) for row in test.rows), "with changed content"),
        )
        if words := ", ".join(f"{number:,} {what}" for number, what in counts if number):
            changed.append(f"{test.label} ({words})")
    return f"dataset rows changed: {abridged(changed, _NAMED, rest='more tests')}" if changed else ""


# A test


def method_text(change: TestChange) -> str:
    """The test that a single test's p-value comes from."""
    return TESTS["fisher"][0] if change.cases == 1 else f"paired over {change.cases:,} rows"


def regression_text(change: TestChange) -> str:
    """`refund-policy: 5/5, now 2/5 (Fisher's exact test: p = 0.17)`."""
    words = f"{change.label}: {was_and_now(change)}"
    return words if change.p_value is None else f"{words} ({method_text(change)}: {p_value_text(change.p_value)})"


def was_and_now(change: TestChange) -> str:
    """`5/5, now 2/5`."""
    return f"{fraction(change.was)}, now {fraction(change.now)}"


def rows_text(change: TestChange) -> str:
    """`20 rows: 6 worse, 13 unchanged, 1 added; 2 moved; content changed in 1`; "" without a dataset."""
    if not change.rows:
        return ""
    counts = [(sum(row.state == state for row in change.rows), words) for state, words in _ROWS]
    states = ", ".join(f"{number:,} {words}" for number, words in counts if number)
    moved, edited = sum(row.moved for row in change.rows), sum(bool(row.content) for row in change.rows)
    more = [f"{moved:,} moved"] if moved else []
    more += [f"content changed in {edited:,}"] if edited else []
    return "; ".join((f"{numbers.count(len(change.rows), 'row')}: {states}", *more))


def row_text(row: RowChange) -> str:
    """`1/1 → 0/1, moved from 3 to 5, content changed: question`; of a row that came or went: `added at 5`."""
    if row.state == "added":
        return f"added at {row.place_now}"
    if row.state == "removed":
        return f"removed, was at {row.place_was}"
    parts = [change_text(row)]
    parts += [f"moved from {row.place_was} to {row.place_now}"] if row.moved else []
    parts += [f"content changed: {', '.join(row.content)}"] if row.content else []
    return ", ".join(parts)


def changed_rows(change: TestChange) -> list[RowChange]:
    """The rows that changed: what broke first, then as in `SECTIONS`."""
    order = list(SECTIONS)
    return sorted((row for row in change.rows if row.changed), key=lambda row: order.index(row.state))


def regressed_words(change: TestChange, regressions: Regressions) -> str:
    """`regressed`, `within chance`; "" for a test that does not pass less often in any case."""
    if change.key in regressions.tests:
        return "regressed"
    return "within chance" if any(case.test == change.key for case in regressions.by_chance) else ""


def who_text(who: str) -> str:
    """`agent`, `judge noise`, `not known`."""
    return WHO.get(who, who)


# In lines


def side_text(side: Side) -> Text:
    """The name of a side, and when it was run."""
    when = numbers.moment(side.started_ms) if side.started_ms else ""
    return text((one_line(side.name, 60), "bold"), (f" {when}" if when else "", "dim"))


def versions_text(comparison: Comparison) -> str:
    """`commit 1a2b3c4d5 (main) → 9f8e7d6c5 (main, changed), model=mini → large`: what the executions of both sides are
    versions of, as far as it differs; "" where it does not."""
    a, b = comparison.a, comparison.b
    commits = [" and ".join(commit_text(commit) for commit in side.commits) for side in (a, b)]
    parts = []
    if commits[0] != commits[1]:
        was, now = (commit or "no commit" for commit in commits)
        parts.append(f"{was} → {now.removeprefix('commit ') if was.startswith('commit') else now}")
    if comparison.files:
        parts.append(f"files changed: {file_changes_text(comparison.files)}")
    for key in dict.fromkeys((*a.meta, *b.meta)):
        if a.meta.get(key) != b.meta.get(key):
            was, now = (one_line(side.meta.get(key, "nothing"), 40) for side in (a, b))
            parts.append(f"{one_line(key)}={was} → {now}")
    return ", ".join(parts)


def comparison_view(
    comparison: Comparison, attributed: AttributedTests | None = None, *, everything: bool = False, options: str = ""
) -> View:
    """Both sides, all tests together, then what changed; what got worse first. `everything`: unchanged tests too.
    `options`: those that its commands need, as ` --db FILE`."""
    states = comparison.counts()
    # Of a single section its head says the same.
    counts = counts_text(comparison) if len(states) != 1 or ("same" in states and not everything) else ""
    head: View = (
        Paragraph(text(*side_text(comparison.a), ("  →  ", "bold"), *side_text(comparison.b))),
        *paragraphs([text((versions_text(comparison), "dim"))]),
        *overall_view(comparison.overall),
        *paragraphs(text(("note: ", "warn"), one_line(note, 400)) for note in notes(comparison)),
        *paragraphs([text(counts)]),
    )
    return head + tuple(chain.from_iterable(_sections(comparison, attributed or {}, options, everything=everything)))


def _sections(comparison: Comparison, attributed: AttributedTests, options: str, *, everything: bool) -> Iterator[View]:
    regressions = regressions_of(comparison)
    for state in ORDER:
        tests = comparison.in_state(state)
        if tests and (state != "same" or everything):
            nodes = tuple(
                _test_node(test, attributed.get(test.key), everything, regressed_words(test, regressions), options)
                for test in tests[:MOST_LINES]
            )
            remaining = len(tests) - MOST_LINES
            more = f"and {remaining} more: --json lists all" if remaining > 0 else ""
            yield Heading(text(section_text(state, len(tests)))), Tree(nodes, more)


def _test_node(
    change: TestChange, attributed: Attributed | None, everything: bool, regressed: str, options: str
) -> Node:
    more = [f"{numbers.points(change.difference)} points"] if change.difference else []
    more += [regressed] if regressed else []
    more += ["in quarantine"] if change.quarantine else []
    words = text(
        one_line(change.label, 60), f"  {change_text(change)}", (f"  {', '.join(more)}" if more else "", "dim")
    )
    below = list(_attribution_nodes(attributed))
    if change.rows:
        below.append(_rows_node(change, everything, options))
    # A test on one side only has nothing that its criteria could be compared with.
    if change.state not in ("added", "removed"):
        below += [_criterion_node(each, attributed) for each in change.criteria if _says_something(each)]
    if change.state in SHARP:
        below += [Node(command) for command in _command(change.pair, options)]
    return Node(words, tuple(below), SIGNS[change.state])


def _says_something(change: CriterionChange) -> bool:
    return change.state not in ("same", "undecided") or change.edited or bool(change.was_name)


def _attribution_nodes(attributed: Attributed | None) -> Iterator[Node]:
    if attributed is not None:
        who = (who_text(attributed.who), "bold")
        yield Node(text(("changed by: ", "dim"), who, (f"  {one_line(reason_text(attributed.reason), 300)}", "dim")))
        if attributed.divergence:
            yield Node(text((f"first divergence: {one_line(step_change_text(attributed.divergence), 300)}", "dim")))


def _rows_node(change: TestChange, everything: bool, options: str) -> Node:
    """What became of the rows of its dataset: how many of each, then those that changed (or all rows)."""
    rows = list(change.rows) if everything else changed_rows(change)[:MOST_ROWS]
    remaining = 0 if everything else sum(row.changed for row in change.rows) - MOST_ROWS
    nodes = []
    for row in rows:
        command = _command(row.pair, options) if row.state in ("worse", "better") else []
        words = text(one_line(f"#{row.label}", 40), (f"  {row_text(row)}", "dim"))
        nodes.append(Node(text(*words, *(("  ", "dim") for _ in command), *chain(*command)), sign=SIGNS[row.state]))
    if remaining > 0:
        nodes.append(Node(text((f"and {numbers.count(remaining, 'more row')}: --all and --json list all", "dim"))))
    return Node(text((rows_text(change), "dim")), tuple(nodes))


def _command(pair: tuple[str, str] | None, options: str) -> list[Text]:
    """The command that shows two runs side by side; none where it is one run."""
    if pair is None or pair[0] == pair[1]:
        return []
    return [text((f"agenteval show {pair[0]} --diff {pair[1]}{options}", "dim"))]


def _criterion_node(change: CriterionChange, attributed: Attributed | None) -> Node:
    parts = [f"criterion {change.state}" if change.state in ("added", "removed") else change_text(change)]
    parts += [f"renamed, it was {one_line(change.was_name, 40)}"] if change.was_name else []
    parts += [f"not comparable: {config_change(change)}"] if change.edited else []
    # Of a single criterion the line of the test says it.
    if attributed is not None and len(attributed.by_criterion) > 1 and change.name in attributed.by_criterion:
        parts.append(who_text(attributed.by_criterion[change.name].who))
    return Node(text(one_line(change.name, 60), (f"  {', '.join(parts)}", "dim")), sign=SIGNS[change.state])


# As a page


def comparison_page(
    comparison: Comparison, attributed: AttributedTests | None = None, *, everything: bool = False
) -> View:
    """The figures as a table, the conclusion, and a table of each kind of change; what got worse first."""
    overall = comparison.overall
    conclusion = (
        counts_text(comparison),
        versions_text(comparison),
        *notes(comparison),
        f"pass rate {rate_text(overall)}",
        significance_text(overall),
        power_text(overall),
    )
    view: list[View] = [
        (
            Heading(text(f"Comparison: {comparison.a.name} → {comparison.b.name}"), 1),
            overall_table(overall),
            Paragraph(text(" ".join(sentence(part) for part in conclusion if part))),
        )
    ]
    for state in ORDER:
        tests = comparison.in_state(state)
        if tests and (state != "same" or everything):
            view.append((Heading(text(section_text(state, len(tests)))), changes_table(tests, attributed or {})))
    return tuple(chain(*view, *(_rows_page(test) for test in comparison.tests)))


def changes_table(tests: Sequence[TestChange], attributed: AttributedTests, *, most: int = MOST_TABLE) -> Table:
    """A row each test: its name, was, now, who changed it (or that it does not gate), and the first divergence."""
    rows = []
    for test in tests[:most]:
        changed = attributed.get(test.key)
        who = "in quarantine" if test.quarantine else who_text(changed.who) if changed is not None else ""
        cells = (test.label, *figures(test), who, step_change_text(changed.divergence) if changed is not None else "")
        rows.append(Row(tuple(map(text, cells)), "\x1f".join(test.key)))
    columns = tuple(Column(head) for head in ("Test", "Was", "Now", "Changed by", "First divergence"))
    return Table(columns, tuple(rows), _not_listed(len(tests), most))


def _rows_page(change: TestChange) -> View:
    """A table of the dataset rows that changed: which broke, healed, came, went, moved, or were edited."""
    rows = changed_rows(change)
    if not rows:
        return ()
    cells = ((row.label, row.state, row_text(row)) for row in rows[:MOST_TABLE])
    return (
        Heading(text(f"Rows of {change.label}")),
        Paragraph(text(sentence(rows_text(change)))),
        text_table(("Row", "State", "Change"), cells, _not_listed(len(rows))),
    )


def _not_listed(number: int, most: int = MOST_TABLE) -> str:
    return f"{number - most} more are not listed" if number > most else ""


# One change


class ChangeCells(Struct, frozen=True):
    """A change as the cells of a list: the sign, the test (and criterion), was, now, the difference in points, who
    changed it, and what differs first."""

    sign: Span
    name: str
    was: str
    now: str
    points: str
    who: Span
    divergence: str


def change_name(change: TestChange, criterion: CriterionChange | None) -> str:
    """`TEST`, or `TEST / CRITERION`."""
    return one_line(change.label) + (f" / {one_line(criterion.name)}" if criterion is not None else "")


def change_cells(
    change: TestChange, criterion: CriterionChange | None, attributed: AttributedTests, *, versions: bool = False
) -> ChangeCells:
    """A test, or one of its criteria, in a list. `versions`: two versions of a criterion judge the same outputs."""
    subject = criterion or change
    # A criterion that passes as often as before is shown by the score, as its test is: else both cells would be
    # alike.
    score = subject.state == "score" or (subject.state == "same" and change.state == "score")
    as_text = score_text if score else fraction
    divergence = ""
    if criterion is not None and criterion.edited:
        divergence = config_change(criterion)
    elif criterion is not None and criterion.state in ("added", "removed"):
        divergence = f"criterion {criterion.state}"
    elif (whose := attributed.get(change.key)) is not None:
        divergence = one_line(step_change_text(whose.divergence), 200)
    who = ("quarantine", "warn") if change.quarantine else _who_span(change, criterion, attributed, versions)
    points = "" if score else _points(subject)
    was, now = as_text(subject.was), as_text(subject.now)
    return ChangeCells(
        SIGNS[change.state],
        name=change_name(change, criterion),
        was=was,
        now=now,
        points=points,
        who=who,
        divergence=divergence,
    )


def _points(change: TestChange | CriterionChange) -> str:
    """`−33`; "" where nothing was decided on a side, or nothing changed."""
    if change.was is None or change.now is None or change.was.rate is None or change.now.rate is None:
        return ""
    return _minus(numbers.points(change.now.rate - change.was.rate, 0)) if change.now.rate != change.was.rate else ""


def _who_span(
    change: TestChange, criterion: CriterionChange | None, attributed: AttributedTests, versions: bool
) -> Span:
    if change.state not in SHARP:
        return "", ""
    if versions:
        return "criterion", "accent"
    # Who changed it is found out in the background, from pairs of runs: without pairs nothing will come.
    if change.key not in attributed:
        return "…" if change.pairs else "", "dim"
    whose = attributed[change.key]
    of_criterion = whose.by_criterion.get(criterion.name) if whose is not None and criterion is not None else None
    who = of_criterion.who if of_criterion is not None else whose.who if whose is not None else "unknown"
    return who_text(who), "dim" if who == "unknown" else "accent"


def change_in_full(
    test: TestChange,
    criterion: CriterionChange | None,
    attributed: Attributed | None,
    *,
    waiting: bool = False,
    versions: bool = False,
    regressed: str = "",
) -> View:
    """A test: its names, who changed it, its figures on both sides, its dataset rows. `waiting`: who changed it is
    still being found out; `versions`: two versions of a criterion judge the same outputs; `regressed`: what the gate
    says of it (`regressed_words`)."""
    about = [text((one_line(test.name, 300), "dim"))] if test.name != test.test else []
    if test.quarantine:
        about.append(text((f"in quarantine, non-gating: {test.quarantine}", "warn")))
    # Two versions of a criterion judge the same outputs: that they differ is what is looked at.
    if not test.comparable and not versions:
        about.append(text((f"not comparable: judged differently than before: {judged_text(test)}; {_COUNTED}", "warn")))
    if not versions and (prompt_change := asked_text([test])):
        about.append(text((one_line(prompt_change, 300), "warn")))
    facts = list(_who_facts(test, criterion, attributed, waiting=waiting, versions=versions))
    facts += [Fact("was", _tally(test.was)), Fact("now", _tally(test.now))]
    if test.difference is not None:
        change = f"{numbers.points(test.difference)} points"
        change += f" over {test.cases:,} rows" if test.cases > 1 else ""
        change += f"   {method_text(test)}: {p_value_text(test.p_value)}" if test.p_value is not None else ""
        facts.append(Fact("change", text(change)))
    if regressed:
        facts.append(Fact("gate", text((regressed, "bad" if regressed == "regressed" else "warn"))))
    view: View = (
        Heading(text(one_line(test.label), (f"  {one_line(test.suite)}", "dim"))),
        *paragraphs(about),
        Facts(tuple(facts)),
    )
    if not test.rows:
        return view
    rows = changed_rows(test)
    nodes = tuple(
        Node(text(f"#{one_line(row.label, 30)}", (f"  {one_line(row_text(row), 200)}", "dim")), sign=SIGNS[row.state])
        for row in rows[:MOST_ROWS_IN_FULL]
    )
    remaining = len(rows) - MOST_ROWS_IN_FULL
    more = f"and {remaining:,} more: `agenteval compare` with --all" if remaining > 0 else ""
    return (*view, Facts((Fact("rows", text(rows_text(test))),)), Tree(nodes, more))


def _tally(tally: Tally | None) -> Text:
    if tally is None:
        return text(("no run", "dim"))
    more = [share(tally.rate)] if tally.rate is not None else []
    more += [f"score {score_text(tally)}"] if tally.score is not None else []
    more += [f"{tally.errors:,} in error"] if tally.errors else []
    more += [numbers.duration(tally.latency_ms)] if tally.latency_ms is not None else []
    more += [f"{tally.tokens:,.0f} tokens"] if tally.tokens is not None else []
    more += [numbers.dollars(tally.cost)] if tally.cost else []
    return text(f"{fraction(tally):<7}", ("   ".join(more), "dim"))


def _who_facts(
    change: TestChange,
    criterion: CriterionChange | None,
    attributed: Attributed | None,
    *,
    waiting: bool,
    versions: bool,
) -> Iterator[Fact]:
    """Who changed it and why, what both criteria say of both outputs, and the first divergence."""
    if change.state not in ("worse", "better"):
        return
    if versions:
        yield Fact("changed by", text(("criterion: both versions judge the same outputs", "bold accent")))
        return
    if attributed is None:
        yield Fact("changed by", text(("…" if waiting else "not known: no pair of runs shows it", "dim")))
        return
    of_criterion = attributed.by_criterion.get(criterion.name) if criterion is not None else None
    named = attributed if of_criterion is None else of_criterion
    yield Fact("changed by", text((who_text(named.who), "bold accent"), (f"  {reason_text(named.reason)}", "dim")))
    if of_criterion is not None and (of_criterion.old_under_new or of_criterion.new_under_old):
        yield Fact("swapped", text(f"old output, new criterion: {of_criterion.old_under_new}"))
        yield Fact("", text(f"new output, old criterion: {of_criterion.new_under_old}"))
    yield Fact("divergence", text(step_change_text(attributed.divergence) or "both runs did the same, step by step"))


def criteria_table(
    change: TestChange, chosen: CriterionChange | None, metrics: Mapping[str, tuple[MetricChange, ...]] | None
) -> Table:
    """The criteria of a test on both sides; of the chosen one (or the only one) the metrics."""
    rows: list[Row] = []
    for each in change.criteria:
        is_chosen = chosen is not None and each.name == chosen.name
        sign, token = SIGNS[each.state]
        was, now = figures(each)
        name = text((f"{sign} ", token), (one_line(each.name), "bold" if is_chosen else ""))
        now_token = token if each.state in ("worse", "better", "added", "removed") else ""
        rows.append(Row((name, text((was, "dim")), text((now, now_token))), each.name))
        below = [(f"renamed, it was {one_line(each.was_name, 40)}" if each.was_name else "", "dim")]
        below.append((config_change(each), "accent"))
        rows += [Row((text("  ", span), (), ())) for span in below if span[0]]
        for metric in (metrics or {}).get(each.name, ()) if is_chosen or len(change.criteria) == 1 else ():
            token = "" if metric.changed else "dim"
            values = tuple(text((score_text(tally), token)) for tally in (metric.was, metric.now))
            rows.append(Row((text("    ", (one_line(metric_name(metric.name, metric.type)), "dim")), *values)))
    return Table((Column("criteria"), Column("was", "right", 5), Column("now", "right", 5)), tuple(rows))
