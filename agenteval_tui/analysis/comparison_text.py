"""A comparison in sentences: the same on the screen, on the command line and in reports."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.analysis.comparison_model import (
    Comparison,
    CriterionChange,
    Overall,
    PairedSuites,
    RowChange,
    State,
    SummaryMetric,
    Tally,
    TestChange,
)
from agenteval_tui.core import numbers

TESTS = {
    "mcnemar": "McNemar's exact test",
    "sign-flip": "sign-flip test",
    "fisher": "Fisher's exact test",
}
_NAMED = 5
SECTIONS: dict[State, tuple[str, str]] = {
    "worse": ("test worse", "tests worse"),
    "better": ("test better", "tests better"),
    "mixed": ("test whose rows changed both ways", "tests whose rows changed both ways"),
    "score": ("other score", "other scores"),
    "criteria": ("test with other criteria", "tests with other criteria"),
    "undecided": ("not decided on both sides", "not decided on both sides"),
    "added": ("test only on the right", "tests only on the right"),
    "removed": ("test only on the left", "tests only on the left"),
    "same": ("unchanged", "unchanged"),
}


def section(state: State, number: int) -> str:
    """`3 tests worse`, `1 test worse`."""
    one, many = SECTIONS[state]
    return f"{number:,} {one if number == 1 else many}"


def said_of_counts(found: Comparison) -> str:
    """`1 test worse, 3 tests better, 10 unchanged`."""
    return ", ".join(section(state, number) for state, number in found.counts().items()) or "nothing to compare"


def said_of_suites(one: PairedSuites) -> str:
    """`suite S: /a/s.yaml is compared with /b/s.yaml`; of two imports, that their tests were paired by id."""
    if one.by == "name":
        return f"suite {one.name}: {one.was} is compared with {one.now}"
    was, now = (key.split(":", 2)[-1] for key in (one.was, one.now))
    said = f"imports of two files: the tests of {was} are paired by id with those of {now}"
    doubt = "; none of them was asked the same in both, so check that the files are of one eval"
    return said if one.asked_alike else said + doubt


def said_of_criteria(tests: Sequence[TestChange]) -> str:
    """`not comparable: 2 tests were judged by other criteria than before (a, b); ...`; "" for none."""
    if not tests:
        return ""
    names = ", ".join(one.label for one in tests[:_NAMED]) + (" …" if len(tests) > _NAMED else "")
    many = "1 test was" if len(tests) == 1 else f"{len(tests):,} tests were"
    return (
        f"not comparable: {many} judged by other criteria than before ({names});"
        " figures and gates count the verdicts all the same"
    )


def points(share: float) -> str:
    """`+12` points of a share, `-0.5` where that says more; `0`."""
    return numbers.points(share)


def share(value: float) -> str:
    """`71 %`, `99.5 %`."""
    return numbers.percent(value, 1)


def format_p_value(value: float) -> str:
    """`p = 0.18`, `p < 0.001`."""
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def counted_as(one: Overall) -> str:
    """What the test counts: `14 pairs`, `14 tests`, `40 runs a side`."""
    if one.test == "fisher":
        return f"{one.n:,} runs on the smaller side"
    noun = "pair" if one.test == "mcnemar" else "case"
    return f"{one.n:,} {noun}{'' if one.n == 1 else 's'}"


def said_of_rate(one: Overall) -> str:
    """`71 % to 83 %, +12 points (95 % interval -2 to +25)`."""
    if one.rate is None:
        return "no test was decided on both sides"
    rate = one.rate
    said = f"{share(rate.was)} to {share(rate.now)}, {points(rate.difference)} points"
    if rate.interval is None:
        return said
    low, high = numbers.points_interval(*rate.interval)
    return f"{said} (95 % interval {low} to {high})"


def said_of_test(one: Overall) -> str:
    """`McNemar's exact test on 14 pairs: p = 0.18`."""
    if one.p_value is None:
        return ""
    return f"{TESTS[one.test]} on {counted_as(one)}: {format_p_value(one.p_value)}"


def said_of_power(one: Overall) -> str:
    """What drop so many could have shown: `14 pairs show a drop of 20 points or more four times in five`."""
    if one.rate is None:
        return ""
    what = counted_as(one)
    if one.detectable is None:
        return f"{what} could not have shown any drop"
    few = "" if one.p_value is not None and one.p_value <= 0.05 else ", and are too few to tell a smaller one"
    return f"{what} show a drop of {100 * one.detectable:.0f} points or more four times in five{few}"


def short_power(one: Overall) -> str:
    """The same in a few words: `14 pairs are too few to tell a drop under 20 points`."""
    if one.rate is None:
        return ""
    what = counted_as(one)
    if one.detectable is None:
        return f"{what}: too few to tell any drop"
    if one.p_value is not None and one.p_value <= 0.05:
        return f"{what} tell drops from {100 * one.detectable:.0f} points on"
    return f"{what}: too few to tell a drop under {100 * one.detectable:.0f} points"


def fraction(tally: Tally | None) -> str:
    """`3/5`; `–` where nothing was decided."""
    if tally is None or not tally.n:
        return "–"
    return f"{tally.passed}/{tally.n}"


def score_of(tally: Tally | None) -> str:
    """`0.75`; `–` for none."""
    return "–" if tally is None or tally.score is None else f"{tally.score:.2f}"


def figures_of(one: TestChange | CriterionChange) -> tuple[str, str]:
    """What stands on both sides: how often it passed; of what passes as often as before, the scores."""
    shown = score_of if one.state == "score" else fraction
    return shown(one.was), shown(one.now)


def said_of_figures(one: TestChange | CriterionChange) -> str:
    """`5/5 → 2/5`, `score 0.67 → 1.00`."""
    was, now = figures_of(one)
    return f"{'score ' if one.state == 'score' else ''}{was} → {now}"


_MOST_NAMED = 5  # tests in a sentence
_ROWS: tuple[tuple[State, str], ...] = (
    ("worse", "worse"),
    ("better", "better"),
    ("score", "with another score"),
    ("undecided", "not decided on both sides"),
    ("same", "unchanged"),
    ("added", "added"),
    ("removed", "removed"),
)


def said_of_rows(one: TestChange) -> str:
    """`20 rows: 6 pass less often, 13 unchanged, 1 added; 2 moved; content changed in 1`; "" without a dataset."""
    if not one.rows:
        return ""
    counts = [(sum(row.state == state for row in one.rows), said) for state, said in _ROWS]
    said = ", ".join(f"{number:,} {words}" for number, words in counts if number)
    moved, edited = sum(row.moved for row in one.rows), sum(bool(row.content) for row in one.rows)
    more = [f"{moved:,} moved"] if moved else []
    more += [f"content changed in {edited:,}"] if edited else []
    return "; ".join((f"{len(one.rows):,} row{'' if len(one.rows) == 1 else 's'}: {said}", *more))


def said_of_datasets(tests: Sequence[TestChange]) -> str:
    """Which tests have other rows than before: `the rows changed: t (1 added, 6 moved), u (2 removed)`; "": none."""
    told = []
    for one in tests:
        counts = (
            (sum(row.state == "added" for row in one.rows), "added"),
            (sum(row.state == "removed" for row in one.rows), "removed"),
            (sum(row.moved for row in one.rows), "moved"),
            (sum(bool(row.content) for row in one.rows), "with changed content"),
        )
        said = ", ".join(f"{number:,} {words}" for number, words in counts if number)
        if said:
            told.append(f"{one.label} ({said})")
    more = f" and {len(told) - _MOST_NAMED:,} more tests" if len(told) > _MOST_NAMED else ""
    return f"dataset rows changed: {', '.join(told[:_MOST_NAMED])}{more}" if told else ""


def said_of_row(row: RowChange) -> str:
    """`1/1 → 0/1, moved from 3 to 5, content changed: question`; of a row that came or went: `added at 5`."""
    if row.state == "added":
        return f"added at {row.place_now}"
    if row.state == "removed":
        return f"removed, was at {row.place_was}"
    shown = score_of if row.state == "score" else fraction
    parts = [f"{'score ' if row.state == 'score' else ''}{shown(row.was)} → {shown(row.now)}"]
    parts += [f"moved from {row.place_was} to {row.place_now}"] if row.moved else []
    parts += [f"content changed: {', '.join(row.content)}"] if row.content else []
    return ", ".join(parts)


def rows_to_show(one: TestChange) -> list[RowChange]:
    """The rows of which there is something to say: what broke first, then as in `SECTIONS`."""
    order = list(SECTIONS)
    return sorted((row for row in one.rows if row.changed), key=lambda row: order.index(row.state))


def measures(one: Overall) -> list[tuple[str, SummaryMetric]]:
    """What was measured of both sides, as means of a run: score, time (ms), tokens, cost ($), as far as known."""
    known = (("score", one.score), ("time", one.latency_ms), ("tokens", one.tokens), ("cost", one.cost))
    return [(name, measure) for name, measure in known if measure is not None]


def said_of_change(one: TestChange) -> str:
    """`5/5, now 2/5`, and with which certainty."""
    was, now = figures_of(one)
    said = f"{'score ' if one.state == 'score' else ''}{was}, now {now}"
    return f"{said} ({test_of(one)}: {format_p_value(one.p_value)})" if one.p_value is not None else said


def test_of(one: TestChange) -> str:
    """The test that a single test's p-value comes from."""
    return "Fisher's exact test" if one.cases == 1 else f"paired over {one.cases:,} rows"


def version(content_hash: str) -> str:
    """The start of a criterion's hash, as people compare it: `c41f`."""
    return content_hash[:6]
