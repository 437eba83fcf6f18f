"""An execution as one HTML file: it loads nothing, runs nothing, and escapes everything that it was told."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.comparison_model import State
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
    attributed_changes,
    left_out,
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
    if figures.labels:
        yield "<h2>Labels</h2>"
        yield from table_html(labels_table(figures.labels))
    if figures.feedback:
        yield "<h2>Feedback</h2>"
        yield from table_html(feedback_table(figures.feedback))
    failures = figures.failures
    if failures:
        yield "<h2>Failures</h2>"
    for alike in failures[:most]:
        yield from _failure(store, alike[0], figures.about(alike))
    if note := left_out(failures, most):
        yield f"<p>{note}</p>"


def _changes(store: Store, figures: ReportFigures) -> Iterator[str]:
    """The tests that pass less or more often than in the baseline, and who changed them."""
    if figures.against is None:
        return
    states: tuple[State, State] = ("worse", "better")
    for state in states:
        if listed := figures.against.shown.in_state(state):
            yield f"<h2>{state.capitalize()} than the baseline</h2>"
            yield from table_html(changes_table(listed, attributed_changes(store, listed), most=MOST_CHANGES))


def _causes(store: Store, figures: ReportFigures) -> Iterator[str]:
    causes, decided = causes_of_execution(store, figures.execution.id)
    if not causes.groups:
        return
    yield "<h2>Causes</h2>"
    yield f"<p>{line_html(causes_text(causes) + compared_text(causes))}.</p>"
    yield from table_html(causes_table(causes, decided))


def _failure(store: Store, row: RunRow, about: str) -> Iterator[str]:
    transcript = store.transcript(row.id)
    sign, token = outcome_sign(row.status)
    yield "<section>"
    heading = line_html(f"{row.test_name}: {row.status}")
    yield f'<h3><span class="{token if token in TOKENS else "dim"}">{sign}</span> {heading}</h3>'
    yield f'<p class="dim">{line_html(plain(place_of(row)))}</p>'
    if about:
        yield f"<p>{line_html(about)}</p>"
    missed = missed_of(row, store.results(row.id), transcript, store.labels([row.id]))
    yield f"<pre>{block_html(plain_text(explanation(missed)))}</pre>"
    amounts = [count(len(transcript.messages), "message"), calls_phrase(transcript)]
    amounts += [seconds(row.duration_ms)] if row.duration_ms is not None else []
    yield f"<details><summary>Transcript: {', '.join(amounts)}</summary>"
    yield from transcript_html(transcript)
    yield "</details></section>"
