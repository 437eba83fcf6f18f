"""An execution as one HTML file: it loads nothing, runs nothing, and escapes everything that it was told."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.explanation import missed_of
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.html_parts import (
    TOKENS,
    block_html,
    head_html,
    line_html,
    table_html,
    transcript_html,
)
from agenteval_tui.formats.exporters.report_figures import (
    ReportFigures,
    left_out,
    repetitions,
    report_figures,
    results_table,
    seconds,
    tests_table,
)
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.observed import calls_phrase
from agenteval_tui.views.causes import causes_table, causes_text, compared_text
from agenteval_tui.views.comparison import changes_table
from agenteval_tui.views.evidence import explanation, place_of
from agenteval_tui.views.label import feedback_table, labels_table
from agenteval_tui.views.model import outcome_sign, plain
from agenteval_tui.views.terminal import plain_text

MOST_FAILURES = 500
MOST_CHANGES = 200  # tests that changed since the baseline
MOST_ATTRIBUTED = 20  # tests for which the report says who changed them, which needs their transcripts


def report_html(store: Store, execution: ExecutionRow, *, most: int = MOST_FAILURES) -> str:
    """The report as HTML. It explains the first `most` runs that did not pass, each with its transcript folded.

    The page works without JavaScript, and its content security policy forbids a browser to run or load anything.
    """
    figures = report_figures(store, execution)
    return "\n".join(
        [
            *head_html(f"Evaluation report: {figures.execution.title}"),
            *_body(store, figures, most),
            "</body>",
            "</html>",
            "",
        ]
    )


def _body(store: Store, figures: ReportFigures, most: int) -> Iterator[str]:
    yield "<dl>"
    for name, value in (
        ("Date", figures.date),
        ("Dataset", figures.dataset),
        ("Experiment", figures.experiment),
        *((name, words) for name, words in (("Version", figures.version), ("Note", figures.execution.note)) if words),
        ("Status", figures.execution.status),
    ):
        yield f"<dt>{name}</dt><dd>{line_html(value)}</dd>"
    yield "</dl>"
    yield "<h2>Results</h2>"
    yield from table_html(results_table(figures))
    yield f"<p>{line_html(figures.conclusion)}</p>"
    yield "<h2>Tests</h2>"
    yield from table_html(tests_table(figures.tests))
    yield from _changes(store, figures)
    yield from _causes(store, figures)
    labels = figures.labels
    if labels:
        yield "<h2>Labels</h2>"
        yield from table_html(labels_table(labels))
    if figures.feedback:
        yield "<h2>Feedback</h2>"
        yield from table_html(feedback_table(figures.feedback))
    failures = figures.failures
    if failures:
        yield "<h2>Failures</h2>"
    for alike in failures[:most]:
        about = ". ".join(part for part in (repetitions(alike), figures.excuse(alike[0])) if part)
        yield from _failure(store, alike[0], about)
    if note := left_out(failures, most):
        yield f"<p>{note}</p>"


def _changes(store: Store, figures: ReportFigures) -> Iterator[str]:
    """The tests that pass less or more often than in the baseline, and who changed them."""
    if figures.against is None:
        return

    comparison = figures.against.shown
    for state, head in (("worse", "Worse than the baseline"), ("better", "Better than the baseline")):
        listed = [test for test in comparison.tests if test.state == state]
        if listed:
            yield f"<h2>{head}</h2>"
            attributed = {
                test_change.key: attribute(store, test_change.pairs) for test_change in listed[:MOST_ATTRIBUTED]
            }
            yield from table_html(changes_table(listed, attributed, most=MOST_CHANGES))


def _causes(store: Store, figures: ReportFigures) -> Iterator[str]:
    causes, decided = causes_of_execution(store, figures.execution.id)
    if not causes.groups:
        return
    yield "<h2>Causes</h2>"
    yield f"<p>{line_html(causes_text(causes) + compared_text(causes))}.</p>"
    yield from table_html(causes_table(causes, decided))


def _failure(store: Store, row: RunRow, many: str) -> Iterator[str]:
    transcript = store.transcript(row.id)
    sign, token = outcome_sign(row.status)
    yield "<section>"
    heading = line_html(f"{row.test_name}: {row.status}")
    yield f'<h3><span class="{token if token in TOKENS else "dim"}">{sign}</span> {heading}</h3>'
    yield f'<p class="dim">{line_html(plain(place_of(row)))}</p>'
    if many:
        yield f"<p>{line_html(many)}</p>"
    missed = missed_of(row, store.results(row.id), transcript, store.labels([row.id]))
    yield f"<pre>{block_html(plain_text(explanation(missed)))}</pre>"
    amounts = [count(len(transcript.messages), "message"), calls_phrase(transcript)]
    amounts += [seconds(row.duration_ms)] if row.duration_ms is not None else []
    yield f"<details><summary>Transcript: {', '.join(amounts)}</summary>"
    yield from transcript_html(transcript)
    yield "</details></section>"
