"""`agenteval stats`: pass rates with intervals, pass@k and pass^k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agenteval_tui.analysis.ab import ABResult, compare_ab
from agenteval_tui.analysis.classification_report import labelling_json, labelling_of
from agenteval_tui.analysis.costs import Costs, costs_of
from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import Output, percent, percent_range
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count, duration
from agenteval_tui.grading.sentences import not_made_in_runs_sentence, not_made_sentence
from agenteval_tui.views.ab import ab_lines
from agenteval_tui.views.cost import costs_view

if TYPE_CHECKING:
    from agenteval_tui.analysis.classification_report import Report

_MOST_K = 6


@click.command("stats")
@click.argument("execution", required=False)
@click.option("--last", is_flag=True, help="The newest execution (the default).")
@click.option("--count-errors", is_flag=True, help="Count runs that ended in an error as not passed.")
@click.option("--costs", is_flag=True, help="What it used: tokens and cost by test, agent and criterion.")
@click.option(
    "--ab", is_flag=True, help="Of a run with --ab: both sides, their difference, and what may be said of it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation, execution: str | None, last: bool, count_errors: bool, costs: bool, ab: bool, as_json: bool
) -> int:
    """Figures of EXECUTION (an id or its beginning, or `last`), by test and over all tests.

    Intervals are 95 %: Wilson's for a test; over tests they are clustered by test, because repetitions of one test
    are not independent. A test that was stopped early has the interval of its confidence sequence.
    Errors are counted apart.
    """

    if execution and last:
        raise click.UsageError("give an execution or --last, not both")
    if costs and ab:
        raise click.UsageError("give --costs or --ab, not both")
    if costs or ab:
        return _other(invocation, execution or "last", costs=costs, count_errors=count_errors, as_json=as_json)
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).execution(execution or "")
        steps = store.steps_of_execution(row.id)
        runs = store.runs_of_execution(row.id)
        stats = execution_stats(runs, count_errors=count_errors, steps=steps, imported=row.kind == "import")
        labelling = labelling_of(store, runs)
    if as_json:
        told = labelling_json(labelling) if labelling else None
        invocation.out.json({"execution": row.id, **stats, "classification": told})
    else:
        invocation.out.line((one_line(row.title), "bold"), (f"  {row.id}", "dim"))
        _table(invocation.out, stats)
        if labelling is not None:
            _labels(invocation.out, labelling)
    return 0


def _other(invocation: Invocation, reference: str, *, costs: bool, count_errors: bool, as_json: bool) -> int:
    """What it used, or how its two sides differ."""
    found: Costs | ABResult
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).execution(reference)
        runs = store.runs_of_execution(row.id)
        if costs:
            found = costs_of(store.costs(row.id), runs)
        elif row.options.get("ab"):
            found = compare_ab(runs, count_errors=count_errors)
        else:
            raise AgentevalError("this execution does not compare two sides", mend="agenteval run PATH --ab NAME NAME")
    if as_json:
        invocation.out.json({"execution": row.id, **found.to_json()})
        return 0
    invocation.out.line((one_line(row.title), "bold"), (f"  {row.id}", "dim"))
    invocation.out.view(costs_view(found) if isinstance(found, Costs) else ab_lines(found, tests=True))
    return 0


def _labels(out: Output, report: Report) -> None:
    """The confusion matrix, and what each label's figures are."""
    corner = "right | given"
    width = min(max(len(one_line(label)) for label in (*report.labels, corner)), 24)
    names = [one_line(label, width) for label in report.labels]
    out.line("")
    out.line(
        (f"labels  accuracy {_share(report.accuracy)}  macro F1 {_share(report.macro_f1)}  n {report.total}", "bold")
    )
    heads = "".join(f" {name:>{max(len(name), 5)}}" for name in names)
    out.line((f"{corner:<{width}}{heads}  precision  recall     F1", "dim"))
    for name, row, one in zip(names, report.matrix, report.per_label, strict=True):
        counts = "".join(f" {number:>{max(len(head), 5)}}" for number, head in zip(row, names, strict=True))
        figures = f"  {_share(one.precision):>9}  {_share(one.recall):>6}  {_share(one.f1):>5}"
        out.line(f"{name:<{width}}{counts}{figures}")
    if report.errors:
        out.line((f"{count(report.errors, 'run')} whose label could not be judged", "dim"))


def _share(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.3f}"


def _table(out: Output, stats: dict[str, Any]) -> None:
    overall = stats["overall"]
    ks = [str(k) for k in range(1, min(len(overall["pass_hat_k"]), _MOST_K) + 1)]
    width = min(max((len(test["id"]) for test in stats["tests"]), default=4), 40)
    head = f"{'test':<{width}}  {'n':>4} {'passed':>6} {'errors':>6} {'rate':>6}  {'95 % interval':<14}"
    out.line((head + "".join(f" {'pass^' + k:>7}" for k in ks), "dim"))
    for test in stats["tests"]:
        name = f"{one_line(test['id'], width):<{width}}"
        out.line(
            f"{name}  {_figures(test)}{_curve(test['pass_hat_k'], ks)}",
            ("  flaky" * test["flaky"] + "  stopped early" * test["stopped_early"], "warn"),
            (f"  {missing}" if (missing := not_made_sentence(test["checks_not_made"])) else "", "warn"),
        )
    out.line((f"{'all, by test':<{width}}  {_figures(overall)}{_curve(overall['pass_hat_k'], ks)}", "bold"))
    at_k = _curve(overall["pass_at_k"], ks)
    out.line(f"{'pass@k':<{width}}  {'':>40}{at_k}" if ks else "nothing was decided")
    thin = [k for k in ks if overall["tests_at_k"][k] < overall["tests"]]
    if thin:
        out.line((f"pass^{thin[0]} and above: only the tests with so many decided runs", "dim"))
    if overall["standard_error"] is not None:
        error = f"standard error of the rate, clustered by test: {overall['standard_error']:.3f}"
        out.line((f"{error}; {count(overall['flaky'], 'test')} flaky", "dim"))
    if overall["stopped_early"]:
        many = count(overall["stopped_early"], "test")
        said = f"{many} stopped early: the interval is the confidence sequence's; pass@k and pass^k lean to that answer"
        out.line((said, "warn"))
    if overall["undecided"]:
        out.line((f"{count(overall['undecided'], 'run')} without a verdict", "dim"))
    if said := not_made_in_runs_sentence(overall["checks_not_made"]):
        out.line((said, "warn"))
    measured = [
        ("latency", "latency_ms", duration),
        ("tokens", "tokens", lambda value: f"{value:,.0f}"),
        ("cost", "cost", lambda value: f"{value:.4f} USD"),
        ("tool calls", "steps", lambda value: f"{value:g}"),
    ]
    for name, key, shown in measured:
        spread = overall[key]
        if spread["p50"] is not None:
            out.line((f"{name} p50 {shown(spread['p50'])}, p95 {shown(spread['p95'])}", "dim"))


def _figures(one: dict[str, Any]) -> str:
    low, high = one["interval"]
    interval = percent_range(low, high, " - ")
    return f"{one['n']:>4} {one['passed']:>6} {one['errors']:>6} {percent(one['pass_rate']):>6}  {interval:<14}"


def _curve(figures: dict[str, float], ks: list[str]) -> str:
    return "".join(f" {figures[k]:>7.3f}" if k in figures else f" {'':>7}" for k in ks)
