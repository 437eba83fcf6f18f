"""What is shown of forks: what was changed in each branch, how often it passed, beside the run that it continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval_tui.analysis.forks import Forks, interval_of, ranked
from agenteval_tui.analysis.statistics import Interval
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import listed
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.views import model
from agenteval_tui.views.fork_origin import branch_text
from agenteval_tui.views.model import Column, Paragraph, Row, Table, View, outcome_sign, text
from agenteval_tui.views.plan import about_text
from agenteval_tui.views.trends import interval_text

_WHY = 100


def price_text(takes: Estimate, requests: int) -> str:
    """`3 continuations, about 6 requests · about 380 tokens · about $0.0012 · about 2.0 s`; what is not known is said.

    `takes` is what whole runs of this test took; `requests` is how often the agent is asked at least.
    """
    parts = [f"{numbers.count(takes.runs, 'continuation')}, about {numbers.count(requests, 'request')}"]
    if (tokens := takes.total_tokens) is not None:
        parts.append(about_text(f"{tokens.expected:,.0f} tokens", tokens.whole))
    cost = takes.total_cost
    if cost is not None and cost.expected:
        parts.append(about_text(numbers.dollars(cost.expected), cost.whole))
    else:
        parts.append("free" if cost is not None and cost.whole else "cost not known")
    if (seconds := takes.seconds) is not None:
        parts.append(about_text(numbers.duration(1000 * seconds.expected), not seconds.unknown))
    return " · ".join(parts)


def gone_tools_text(gone: Sequence[str], remaining: Sequence[str]) -> str:
    """Tools that a run called and that its agent does not have any more, beside those that it has; "" for none."""
    if not gone:
        return ""
    has = f"has {listed(remaining, 5)}" if remaining else "has no tools"
    return (
        f"the agent called {listed(gone, 5)} in this run, but {has} now. It gets the recorded results, but can't make "
        "such a call again. To allow that, give it the tool back."
    )


def forks_view(forks: Forks) -> View:
    """The run and its branches, the best one first: its rate with the interval, and why continuations failed."""
    run = forks.run
    rows = [
        _row(
            "the run itself",
            run.status,
            passed=forks.passed,
            decided=forks.decided,
            interval=forks.interval,
            why=_reason(run),
            key=run.id,
        )
    ]
    for branch in ranked(forks.branches):
        # One that failed says more than those that passed.
        first = next(
            (answer for answer in branch.answers if not answer.passed), branch.answers[0] if branch.answers else None
        )
        status = first.status if first is not None else ""
        why = branch.stopped if first is None else "" if first.passed else _reason(first.run)
        key = first.run.id if first is not None else ""
        rows.append(
            _row(
                branch_text(branch),
                status,
                passed=branch.passed,
                decided=branch.decided,
                interval=interval_of(branch),
                why=why,
                key=key,
            )
        )
    columns = (
        Column("branch"),
        Column("passed", "right"),
        Column("rate", "right"),
        Column("95 % interval"),
        Column("why"),
    )
    head = text(
        (one_line(run.test_name or run.test_id, 80), "bold"),
        f", run {short_id(run.id)}",
        (f"  {one_line(run.suite_name, 60)}, agent {one_line(run.agent, 40)}", "dim"),
    )
    return (Paragraph(head), Table(columns, tuple(rows)), *model.paragraphs(_notes(forks)))


def _row(name: str, status: str, passed: int, decided: int, interval: Interval | None, why: str, key: str) -> Row:
    sign, token = outcome_sign(status)
    rate = numbers.percent(passed / decided) if decided else ""
    between = interval_text(interval) if decided else ""
    counted = f"{passed}/{decided}" if decided else ""
    return Row(
        (
            text((f"{sign} ", token), one_line(name, 200)),
            text((counted, token)),
            text(rate),
            text((between, "dim")),
            text(one_line(why, _WHY)),
        ),
        key,
    )


def _notes(forks: Forks) -> Iterable[model.Text]:
    stored = sum(answer.stored for branch in forks.branches for answer in branch.answers)
    if forks.execution:
        cost = "" if forks.cost is None else f", {numbers.dollars(forks.cost)}"
        yield text((f"{numbers.count(forks.asked, 'continuation')} asked for{cost}", "dim"))
    if stored and forks.execution:
        yield text((f"{numbers.count(stored, 'stored answer')}, not paid for again", "dim"))
    stopped = dict.fromkeys(branch.stopped for branch in forks.branches if branch.stopped)
    yield from (text((f"not all were asked: {why}", "warn")) for why in stopped)
    yield text(("Forks never count in rates, trends, baselines or gates.", "dim"))


def _reason(run: RunRow) -> str:
    return run.why or run.error_message
