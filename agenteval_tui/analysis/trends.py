"""How tests do over time: pass rates with intervals, and what runs took, by piece of time and by group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.statistics import (
    interval_of,
    interval_over,
    mean,
    pass_rate,
    percentile_of_sorted,
)
from agenteval_tui.analysis.time_buckets import Bin, By, bins_between, bucket_size
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.display import command_line
from agenteval_tui.core.document import Count, Document, Share
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.history import trends as rows
from agenteval_tui.history.connections import Connection
from agenteval_tui.history.execution_names import META, OF_EXECUTIONS, version_groups
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import ExecutionTime, Group, Measure, SelectedRuns, Tally, TestName, TimeBucket

MEASURES: tuple[Measure, ...] = ("latency", "tokens", "cost", "steps")
Names = Callable[[Any], Sequence[tuple[str, str]]]
"""Maps the key of a tally to its groups, each with a name."""
_ALIKE = 0.9
"""Two periods are comparable if at least this share of their tests is in both."""
_UNKNOWN = "\0"  # no agent, tag or test has this name


class TrendQuery(Struct, frozen=True):
    """Which runs to read, and how to group them. `by` None: the span of time decides; `paths`: files of suites, or
    folders with suites; `suites`: names or files; `tests`: ids. A run counts if it matches any value of a list, but a
    test must have all `tags`.

    `since_ms` None: from the first run. `count_errors`: an error counts as not passed.
    """

    since_ms: int | None
    until_ms: int
    by: By | None = None
    group: Group = ""
    paths: tuple[Path, ...] = ()
    suites: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    count_errors: bool = False
    only: tuple[int, ...] | None = None
    """Row numbers of tests, in addition to the other conditions; None: all tests."""
    projects: tuple[str, ...] = ()
    """Only runs of these projects (`suites.projects`); (): runs of all projects."""
    name_part: str = ""
    """Of executions, as in `RunFilter`; so are the next two."""
    commit: str = ""
    meta: tuple[tuple[str, str], ...] = ()


class OutcomeRates(Document, frozen=True):
    """Runs by outcome. `rate` is the mean of the tests' pass rates, as in `agenteval stats`."""

    tests: Annotated[Count, Meta(description="each variation and each row of a test counts as a separate test")]
    n: Annotated[Count, Meta(description="runs with a verdict: passed or failed, and errors with --count-errors")]
    passed: Count
    failed: Count
    errors: Count
    review: Count = field(name="undecided")
    rate: Annotated[Share | None, Meta(description="the mean of the tests' rates; null without a verdict")] = field(
        name="pass_rate"
    )
    interval: Annotated[
        tuple[Share, Share] | None,
        Meta(
            description="of the rate, 95 %, clustered by test; null: fewer than five tests, or repetitions of a single "
            "one"
        ),
    ]

    @property
    def runs(self) -> int:
        """All runs, with and without a verdict."""
        return self.passed + self.failed + self.errors + self.review


class MeasureStats(Document, frozen=True):
    """What runs took, by one measure."""

    n: Count
    p50: float
    p95: float
    mean: float
    total: float


class OtherTests(Struct, frozen=True):
    """A period has mostly other tests than the last period that has runs, so their rates can't be compared.

    The number of tests in each period, and in both."""

    before: int
    now: int
    both: int


class Series(Struct, frozen=True):
    """One group over time: its figures for each bin (None: no run), and over all bins. `other_tests`: by bin, for the
    bins that can't be compared with the bin before."""

    key: str
    name: str
    overall: OutcomeRates
    points: tuple[OutcomeRates | None, ...]
    spent: Mapping[Measure, tuple[MeasureStats | None, ...]] = field(default_factory=dict)
    spent_overall: Mapping[Measure, MeasureStats | None] = field(default_factory=dict)
    other_tests: Mapping[int, OtherTests] = field(default_factory=dict)


class Trend(Struct, frozen=True):
    """The requested trend. Series are sorted worst first; `runs` are all that were found, with or without a verdict: a
    run with two tags is in two series, and one run."""

    query: TrendQuery
    since_ms: int
    until_ms: int
    by: By
    bins: tuple[Bin, ...]
    series: tuple[Series, ...]
    runs: int = 0

    @property
    def eventful(self) -> int:
        """In how many pieces of time anything ran."""
        return sum(any(each.points[place] is not None for each in self.series) for place in range(len(self.bins)))


def trend(
    store: Store, query: TrendQuery, measures: Sequence[Measure] = (), statuses: Mapping[int, str] | None = None
) -> Trend:
    """Pass rates over time, and of `measures` what runs took. Raises AgentevalError, HistoryError.

    `statuses`: how runs (by row number) ended, instead of how they are stored; runs that it does not name have no end.
    """
    return store.read(lambda connection: _trend(connection, query, measures, statuses))


def filtered(store: Store, query: TrendQuery, text: str) -> TrendQuery:
    """The `query`, narrowed by `text`: `test:x`, `tag:x`, `agent:x`, `suite:x` (a part of the name is enough),
    `name:x`, `commit:x` and `meta.KEY:x` of the execution, and words that the test's id, name or suite must have. What
    fits nothing leaves nothing."""
    words = text.casefold().split()
    if not words:
        return query
    return store.read(lambda connection: _narrowed(connection, query, words))


def executions_at(store: Store, query: TrendQuery, place: Bin) -> list[ExecutionTime]:
    """The executions that had a run of the query in this period, by when those runs started."""

    def read(connection: Connection) -> list[ExecutionTime]:
        picked = replace(select_runs(connection, query), since_ms=place.since_ms, until_ms=place.until_ms)
        executions = rows.executions_in(connection, picked)
        return [execution for execution in executions if not place.execution or execution.id == place.execution]

    return store.read(read)


def select_runs(
    connection: Connection, query: TrendQuery, test_names: Sequence[TestName] | None = None
) -> SelectedRuns:
    """The query in the history's own terms. Raises AgentevalError for an unknown test or suite."""
    tests: tuple[int, ...] | None = None
    if query.paths or query.suites or query.tests:
        tests = _chosen(query, rows.tests_known(connection) if test_names is None else test_names)
    if query.only is not None:
        # Both hold: a list that a person narrowed, and what the command asked for.
        tests = query.only if tests is None else tuple(test for test in tests if test in query.only)
    return SelectedRuns(
        query.since_ms or 0,
        query.until_ms,
        tests,
        query.agents,
        query.tags,
        projects=query.projects,
        name_part=query.name_part,
        commit=query.commit,
        meta=query.meta,
    )


def groups_of(connection: Connection, group: Group, test_names: Iterable[TestName], keys: set[Any]) -> Names:
    """What the groups of these keys of tallies are, each with a name. Of tests with one id in several suites the name
    says the suite, too."""
    if group == "agent":
        return lambda key: [(key, key or "(no agent)")]
    if group == "tag":
        tags = rows.tags_of_plans(connection, sorted(keys))
        return lambda key: [(tag, tag) for tag in tags.get(key) or ("(no tag)",)]
    if group == "suite":
        suites = {test_name.row: (test_name.suite_key, test_name.suite) for test_name in test_names}
        return lambda key: [suites[key]]
    if group == "test":
        listed = [test_name for test_name in test_names if test_name.row in keys]
        ids = Counter(test_name.test_id for test_name in listed)
        tests = {
            test_name.row: (
                f"{test_name.suite_key}::{test_name.test_id}",
                test_name.test_id if ids[test_name.test_id] == 1 else f"{test_name.test_id} ({test_name.suite})",
            )
            for test_name in listed
        }
        return lambda key: [tests[key]]
    if group in OF_EXECUTIONS or group.startswith(META):
        versions = version_groups(connection, group, rows=keys)
        return lambda key: [(name := versions.get(key, ""), name)]
    return lambda key: [("", "all runs")]


def figures(tallies: Iterable[Tally], *, count_errors: bool = False) -> OutcomeRates:
    """The figures of runs that were tallied by test, variation and row; several tallies of one test are added up."""
    listed = list(tallies)
    if len(listed) == 1:
        # One test, as most points of most groups are: by hundreds of thousands nothing is added up.
        (only,) = listed
        n = only.passed + only.failed + (only.errors if count_errors else 0)
        counts = (n, only.passed, only.failed, only.errors, only.review)
        return OutcomeRates(1, *counts, pass_rate(only.passed, n), interval_of(only.passed, n))
    return _merged(listed, count_errors=count_errors)


def spent(values: Sequence[float]) -> MeasureStats | None:
    """Median, 95 % point, mean and sum; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    p50, p95 = percentile_of_sorted(ordered, 50), percentile_of_sorted(ordered, 95)
    total = sum(ordered)
    return MeasureStats(len(ordered), p50, p95, total / len(ordered), total)


def _chosen(query: TrendQuery, test_names: Iterable[TestName]) -> tuple[int, ...]:
    tests = list(test_names)
    if query.paths:
        places = [str(path.resolve()) for path in query.paths]
        tests = [
            test
            for test in tests
            if any(test.suite_key == place or test.suite_key.startswith(place + "/") for place in places)
        ]
        if not tests:
            gone = [str(path) for path in query.paths if not path.exists()]
            if gone:
                raise AgentevalError(
                    "there is no such file or folder, and no suite of that path has run",
                    where=", ".join(gone),
                    fix="check the path",
                )
            raise AgentevalError(
                "no test of these suites has ever run",
                where=", ".join(map(str, query.paths)),
                fix=f"run them: {command_line('agenteval', 'run', *map(str, query.paths))}",
            )
    if query.suites:
        names = {suite.casefold() for suite in query.suites}
        keys = {str(Path(suite).resolve()) for suite in query.suites} | set(query.suites)
        # A name in any case, a path from here, or the key as it is stored (that of an import is no path).
        tests = [test for test in tests if test.suite.casefold() in names or test.suite_key in keys]
        if not tests:
            raise AgentevalError("the history has no such suite", where=", ".join(query.suites))
    if query.tests:
        ids = set(query.tests)
        chosen = [test for test in tests if test.test_id in ids or test.test in ids]
        missing = ids - {test.test_id for test in chosen} - {test.test for test in chosen}
        if missing:
            fix = did_you_mean(min(missing), [test.test_id for test in tests], "see agenteval stats")
            raise AgentevalError(f"the history has no run of the test {min(missing)!r}", fix=fix)
        tests = chosen
    return tuple(test.row for test in tests)


def _trend(
    connection: Connection, query: TrendQuery, measures: Sequence[Measure], statuses: Mapping[int, str] | None
) -> Trend:
    test_names = rows.tests_known(connection)
    picked = select_runs(connection, query, test_names)
    since_ms = picked.since_ms
    if query.since_ms is None:
        extent = rows.extent(connection, picked)
        since_ms = query.until_ms if extent is None else extent[0]
    by = query.by or bucket_size(query.until_ms - since_ms)
    if by == "execution":
        executions = rows.executions_in(connection, picked)
        # The end of a bin is not in it.
        bins = [Bin(each.row, each.first_ms, each.last_ms + 1, True, each.id, each.title) for each in executions]
    else:
        bins = bins_between(since_ms, query.until_ms, by)
    if statuses is None:
        tallies = rows.tallies(connection, picked, bins, query.group)
    else:
        tallies = rows.tallies_of(connection, picked, bins, statuses, query.group)
    names = groups_of(connection, query.group, test_names, {tally.key for tally in tallies})
    by_key = grouped((tally.key, tally) for tally in tallies)
    by_group: dict[str, list[Tally]] = {}
    group_names: dict[str, str] = {}
    for key, listed in by_key.items():
        for group, name in names(key):
            group_names[group] = name
            by_group.setdefault(group, []).extend(listed)
    place = {each.row: number for number, each in enumerate(bins)}
    spent_by_measure = {
        measure: _taken(
            connection, picked, places=bins, measure=measure, group=query.group, counted=by_key, names=names
        )
        for measure in measures
    }
    series = [
        Series(
            key,
            name=group_names[key],
            overall=figures(listed, count_errors=query.count_errors),
            points=_points(listed, place, query.count_errors),
            spent={
                measure: _spent_points(by_group.get(key, {}), place) for measure, by_group in spent_by_measure.items()
            },
            spent_overall={
                measure: spent([value for values in by_group.get(key, {}).values() for value in values])
                for measure, by_group in spent_by_measure.items()
            },
            # A group that is a test has no other one.
            other_tests={} if query.group == "test" else _other_tests(listed, place),
        )
        for key, listed in by_group.items()
    ]
    series.sort(key=_worst_first)
    # Of the tallies, not of the series: a run with two tags is in two of these.
    runs = sum([tally.passed + tally.failed + tally.errors + tally.review for tally in tallies])
    return Trend(
        query, since_ms=since_ms, until_ms=query.until_ms, by=by, bins=tuple(bins), series=tuple(series), runs=runs
    )


def _worst_first(series: Series) -> tuple[float, int, str]:
    rate = series.overall.rate
    # Without a verdict last: nothing there is known to be bad.
    return (2.0 if rate is None else rate), -series.overall.n, series.name


def _merged(tallies: Iterable[Tally], *, count_errors: bool) -> OutcomeRates:
    merged: dict[tuple[int, str, int], list[int]] = {}
    passed = failed = errors = review = 0
    for _, _, test, variation, row, good, bad, wrong, open_ in tallies:
        decided = good + bad + (wrong if count_errors else 0)
        passed += good
        failed += bad
        errors += wrong
        review += open_
        which = (test, variation, row)
        pair = merged.get(which)
        if pair is None:
            merged[which] = [good, decided]
        else:
            pair[0] += good
            pair[1] += decided
    counts = [(good, n) for good, n in merged.values() if n]
    rate = mean([pass_rate(good, n) or 0.0 for good, n in counts])
    return OutcomeRates(
        len(merged),
        n=sum(n for _, n in counts),
        passed=passed,
        failed=failed,
        errors=errors,
        review=review,
        rate=rate,
        interval=interval_over(counts),
    )


def _points(tallies: Iterable[Tally], place: Mapping[int, int], count_errors: bool) -> tuple[OutcomeRates | None, ...]:
    at: list[list[Tally]] = [[] for _ in place]
    for tally in tallies:
        if tally.at in place:
            at[place[tally.at]].append(tally)
    return tuple(figures(listed, count_errors=count_errors) if listed else None for listed in at)


def _other_tests(tallies: Iterable[Tally], place: Mapping[int, int]) -> dict[int, OtherTests]:
    """The bins with mostly other tests than the bin before. If somebody runs only failed tests again, the rate is low,
    but the rate of all tests has not fallen."""
    at: list[set[tuple[int, str, int]]] = [set() for _ in place]
    for tally in tallies:
        if tally.at in place:
            at[place[tally.at]].add((tally.test, tally.variation, tally.row))
    others = {}
    before: set[tuple[int, str, int]] = set()
    for number, tests in enumerate(at):
        if not tests:
            continue
        both = len(before & tests)
        # Of the larger of both: a period with few tests of many is another one, too.
        if before and both < _ALIKE * max(len(before), len(tests)):
            others[number] = OtherTests(len(before), len(tests), both)
        before = tests
    return others


def _taken(
    connection: Connection,
    picked: SelectedRuns,
    places: Sequence[TimeBucket],
    measure: Measure,
    group: Group,
    counted: Container[Any],
    names: Names,
) -> dict[str, dict[int, list[float]]]:
    """What was measured, by group and place of time. Of runs that were graded again only some have an end: what no run
    with an end has is not `counted`, and is in no group."""
    by_group: dict[str, dict[int, list[float]]] = {}
    for at, key, values in rows.measurements(connection, picked, places, measure, group):
        for name, _ in names(key) if key in counted else ():
            by_group.setdefault(name, {}).setdefault(at, []).extend(values)
    return by_group


def _spent_points(
    values_by_bin: Mapping[int, Sequence[float]], place: Mapping[int, int]
) -> tuple[MeasureStats | None, ...]:
    points: list[MeasureStats | None] = [None] * len(place)
    for at, values in values_by_bin.items():
        if at in place:
            points[place[at]] = spent(values)
    return tuple(points)


def _narrowed(connection: Connection, query: TrendQuery, words: list[str]) -> TrendQuery:
    test_names = rows.tests_known(connection)
    tests = False
    for word in words:
        field, colon, value = word.partition(":")
        if colon and field == "agent":
            fits = tuple(name for name in rows.agents_known(connection) if value in name.casefold())
            query = replace(query, agents=fits or (_UNKNOWN,))
        elif colon and field == "name":
            query = replace(query, name_part=value)
        elif colon and field == "commit":
            query = replace(query, commit=value)
        elif colon and field.startswith(META):
            query = replace(query, meta=(*query.meta, (field.removeprefix(META), value)))
        elif colon and field == "tag":
            tags = [name for name in rows.tags_known(connection) if name.casefold().startswith(value)]
            exact = [name for name in tags if name.casefold() == value]
            query = replace(query, tags=(*query.tags, *(exact or tags or [_UNKNOWN])[:1]))
        elif colon and field == "suite":
            tests = True
            test_names = [
                test_name
                for test_name in test_names
                if value in test_name.suite.casefold() or value in test_name.suite_key.casefold()
            ]
        elif colon and field == "test":
            tests = True
            # One that is called so, else all that have it in their names.
            same_id = [test_name for test_name in test_names if test_name.test_id.casefold() == value]
            test_names = same_id or [
                test_name for test_name in test_names if value in f"{test_name.test_id}\n{test_name.test}".casefold()
            ]
        else:
            tests = True
            test_names = [
                test_name
                for test_name in test_names
                if word in f"{test_name.test_id} {test_name.test} {test_name.suite}".casefold()
            ]
    return replace(query, only=tuple(test_name.row for test_name in test_names)) if tests else query
