"""What is shown of the figures of an execution: pass rates with intervals by test, pass^k, how labels were given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from agenteval_tui.analysis.classification_report import Classification
from agenteval_tui.analysis.statistics import Spread
from agenteval_tui.analysis.summary import ExecutionFigures, OverallFigures, RateFigures, TestFigures
from agenteval_tui.analysis.umbraco_metrics import UmbracoFigures
from agenteval_tui.core import numbers
from agenteval_tui.core.numbers import percent
from agenteval_tui.grading.sentences import not_made_in_runs_sentence, not_made_sentence
from agenteval_tui.views.model import Column, Paragraph, Row, Table, Text, View, paragraphs, text
from agenteval_tui.views.trends import interval_text

_LONGEST = 24  # cells of a test's name that are kept before figures are cut


def stats_view(stats: ExecutionFigures, most_k: int = 6) -> View:
    """A row a test and one over all, with pass^k up to `most_k`; then what is to be known of the figures."""
    overall = stats.overall
    ks = [str(k) for k in range(1, min(len(overall.pass_hat_k), most_k) + 1)]
    # Where there is no room for all, names of tests are cut before figures are.
    least = min(max((len(test.id) for test in stats.tests), default=0), _LONGEST)
    columns = (
        Column("test", least=least),
        *(Column(head, "right") for head in ("n", "passed", "errors", "rate")),
        Column("95 % interval"),
        *(Column(f"pass^{k}", "right") for k in ks),
        Column(""),
    )
    rows = [_row(test.id, test, ks, _flags(test)) for test in stats.tests]
    rows.append(_row("all, by test", overall, ks, (), "bold"))
    if ks:
        rows.append(Row((text("pass@k"), *((),) * 5, *_curve(overall.pass_at_k, ks), ())))
    more = f"pass^{most_k + 1} and above: by --json" if len(overall.pass_hat_k) > most_k else ""
    return (Table(columns, tuple(rows), more), *paragraphs(_notes(overall, ks)))


def umbraco_view(figures: Sequence[UmbracoFigures]) -> View:
    """pass@k and pass^k as Umbraco defines them, by test and variation; nothing where there are none."""
    if not figures:
        return ()
    heads = ("Umbraco: test", "variation", "runs", "passed", "pass@k (passed/total)", "pass^k (all passed)")
    columns = (*map(Column, heads[:2]), *(Column(head, "right") for head in heads[2:]))
    rows = []
    for figure in figures:
        name = "aggregate" if figure.aggregate else figure.variation or "default"
        cells = (
            figure.test,
            name,
            f"{figure.runs:,}",
            f"{figure.passed:,}",
            f"{figure.pass_at_k:.3f}",
            f"{figure.pass_hat_k:.1f}",
        )
        rows.append(Row(tuple(text(cell) for cell in cells)))
    return (Table(columns, tuple(rows)),)


def _row(name: str, figures: RateFigures, ks: Sequence[str], flags: Text, token: str = "") -> Row:
    counts = (f"{number:,}" for number in (figures.n, figures.passed, figures.errors))
    cells = (name, *counts, percent(figures.pass_rate), interval_text(figures.interval) if figures.n else "")
    return Row((*(text((cell, token)) for cell in cells), *_curve(figures.pass_hat_k, ks, token), flags))


def _curve(figures: Mapping[str, float], ks: Sequence[str], token: str = "") -> Iterator[Text]:
    return (text((f"{figures[k]:.3f}" if k in figures else "", token)) for k in ks)


def _flags(test: TestFigures) -> Text:
    flags = ["flaky"] * test.flaky + ["stopped early"] * test.stopped_early
    missing = not_made_sentence(test.checks_not_made)
    return text(("  ".join([*flags, missing] if missing else flags), "warn"))


def _notes(overall: OverallFigures, ks: Sequence[str]) -> Iterator[Text]:
    if not ks:
        yield text("no run has a verdict")
    if thin := [k for k in ks if overall.tests_at_k[k] < overall.tests]:
        yield text((f"pass^{thin[0]} and above: only tests with enough decided runs", "dim"))
    if overall.standard_error is not None:
        error = f"standard error of the rate, clustered by test: {overall.standard_error:.3f}"
        yield text((f"{error}; {numbers.count(overall.flaky, 'test')} flaky", "dim"))
    if overall.stopped_early:
        lean = "the interval is that of the confidence sequence; pass@k and pass^k are biased towards that answer"
        yield text((f"{numbers.count(overall.stopped_early, 'test')} stopped early: {lean}", "warn"))
    if overall.undecided:
        yield text((f"{numbers.count(overall.undecided, 'run')} without a verdict", "dim"))
    yield text((not_made_in_runs_sentence(overall.checks_not_made), "warn"))
    measured: tuple[tuple[str, Spread, Callable[[float], str]], ...] = (
        ("latency", overall.latency_ms, numbers.duration),
        ("tokens", overall.tokens, lambda tokens: f"{tokens:,.0f}"),
        ("cost", overall.cost, numbers.dollars),
        ("tool calls", overall.steps, lambda steps: f"{steps:g}"),
    )
    for name, spread, formatted in measured:
        if spread.p50 is not None and spread.p95 is not None:
            yield text((f"{name} p50 {formatted(spread.p50)}, p95 {formatted(spread.p95)}", "dim"))


def labelling_view(figures: Classification) -> View:
    """The confusion matrix, a right label by row and a given one by column, with the figures of each label."""
    columns = (
        Column("right | given"),
        *(Column(name, "right") for name in (*figures.labels, "precision", "recall", "F1")),
    )
    rows = [
        Row(
            (
                text(name),
                *(text(str(number)) for number in counts),
                *(text(_share(share)) for share in (label.precision, label.recall, label.f1)),
            ),
            name,
        )
        for name, counts, label in zip(figures.labels, figures.matrix, figures.per_label, strict=True)
    ]
    head = f"labels  accuracy {_share(figures.accuracy)}  macro F1 {_share(figures.macro_f1)}  n {figures.n}"
    errors = f"{numbers.count(figures.errors, 'run')} with a label that could not be graded" if figures.errors else ""
    return (
        Paragraph(()),
        Paragraph(text((head, "bold"))),
        Table(columns, tuple(rows)),
        *paragraphs([text((errors, "dim"))]),
    )


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"
