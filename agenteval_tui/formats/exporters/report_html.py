"""An execution as one HTML file: it loads nothing, runs nothing, and escapes everything that it was told."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.explanation import missed_of
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.numbers import count
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
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.causes import causes_table, causes_text, compared_text
from agenteval_tui.views.comparison import changes_table
from agenteval_tui.views.evidence import explanation, place_of
from agenteval_tui.views.label import labels_table
from agenteval_tui.views.model import OUTCOMES, Column, Table, Text, plain, sentence
from agenteval_tui.views.terminal import plain_text

MARK = '<meta name="generator" content="agenteval">'
"""In the first lines of every report: it says that the file is one of ours."""
MOST_FAILURES = 500
LONGEST_TEXT = 20_000  # characters of one message, call or result
MOST_MESSAGES = 400  # of one transcript
MOST_CHANGES = 200  # tests that changed since the baseline
MOST_ATTRIBUTED = 20  # tests of which it is found out who changed them: transcripts are read for that

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; --broken: #8250df; --dim: #6e7781 }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; --broken: #d2a8ff; --dim: #9198a1 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
body { overflow-wrap: anywhere } h1 { line-height: 1.2 } td, th { overflow-wrap: normal }
table { display: block; overflow-x: auto; border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { text-align: left; padding: .25rem .8rem .25rem 0 }
tr { border-bottom: 1px solid var(--line) } td.n { text-align: right; font-variant-numeric: tabular-nums }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0 .8rem; font: 13px/1.45 ui-monospace, monospace }
details { border-left: 3px solid var(--line); padding-left: .8rem; margin: .4rem 0 } summary { cursor: pointer }
.good { color: var(--good) } .bad { color: var(--bad) } .broken { color: var(--broken) } .dim { color: var(--dim) }
@media (max-width: 40rem) { body { margin: 1rem auto } h1 { font-size: 1.5rem } }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .1rem 1rem }
dt { font-weight: 600 } dd { margin: 0 }
"""
_TOKENS = frozenset({"good", "bad", "broken", "dim"})
"""Those that are classes of the style."""


def report_html(store: Store, execution: ExecutionRow, *, most: int = MOST_FAILURES) -> str:
    """The report as text. Runs that did not pass are explained, each with its transcript folded; of them `most`.

    It works without JavaScript, and a policy in it forbids a browser to run or load anything, whatever it may hold.
    """
    figures = report_figures(store, execution)
    return "\n".join([*_head(figures), *_body(store, figures, most), "</body>", "</html>", ""])


def _head(figures: ReportFigures) -> Iterator[str]:
    title = _line(f"Evaluation report: {figures.execution.title}")
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield MARK
    yield (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{title}</title>"
    yield f"<style>{_STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield f"<h1>{title}</h1>"


def _body(store: Store, figures: ReportFigures, most: int) -> Iterator[str]:
    yield "<dl>"
    for name, value in (
        ("Date", figures.date),
        ("Dataset", figures.dataset),
        ("Experiment", figures.experiment),
        ("Status", figures.execution.status),
    ):
        yield f"<dt>{name}</dt><dd>{_line(value)}</dd>"
    yield "</dl>"
    yield "<h2>Results</h2>"
    yield from _table(results_table(figures))
    yield f"<p>{_line(figures.conclusion)}</p>"
    yield "<h2>Tests</h2>"
    yield from _table(tests_table(figures.tests))
    yield from _changes(store, figures)
    yield from _causes(store, figures)
    labels = figures.labels
    if labels:
        yield "<h2>Labels</h2>"
        yield from _table(labels_table(labels))
    failures = figures.failures
    if failures:
        yield "<h2>Failures</h2>"
    for alike in failures[:most]:
        about = ". ".join(part for part in (repetitions(alike), figures.excuse(alike[0])) if part)
        yield from _failure(store, alike[0], about)
    if left := left_out(failures, most):
        yield f"<p>{left}</p>"


def _changes(store: Store, figures: ReportFigures) -> Iterator[str]:
    """The tests that pass less or more often than in the baseline, and who changed them."""
    if figures.against is None:
        return

    found = figures.against.shown
    for state, head in (("worse", "Worse than the baseline"), ("better", "Better than the baseline")):
        listed = [test for test in found.tests if test.state == state]
        if listed:
            yield f"<h2>{head}</h2>"
            attributed = {one.key: attribute(store, one.pairs) for one in listed[:MOST_ATTRIBUTED]}
            yield from _table(changes_table(listed, attributed, most=MOST_CHANGES))


def _causes(store: Store, figures: ReportFigures) -> Iterator[str]:
    causes, decided = causes_of_execution(store, figures.execution.id)
    if not causes.groups:
        return
    yield "<h2>Causes</h2>"
    yield f"<p>{_line(causes_text(causes) + compared_text(causes))}.</p>"
    yield from _table(causes_table(causes, decided))


def _table(table: Table) -> Iterator[str]:
    heads = "".join(f"<th>{_line(column.head)}</th>" for column in table.columns)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(map(_cell, row.cells, table.columns)) + "</tr>"
    yield "</tbody></table>"
    if table.more:
        yield f"<p>{_line(sentence(table.more))}</p>"


def _cell(words: Text, column: Column) -> str:
    shown = []
    for part, token in words:
        said = escape(" ".join(displayable(part).split("\n")))
        shown.append(f'<span class="{token}">{said}</span>' if token in _TOKENS else said)
    head = '<td class="n">' if column.align == "right" else "<td>"
    return f"{head}{''.join(shown)}</td>"


def _failure(store: Store, row: RunRow, many: str) -> Iterator[str]:
    transcript = store.transcript(row.id)
    sign, token = OUTCOMES.get(row.status, ("·", "dim"))
    token = token if token in _TOKENS else "dim"
    yield "<section>"
    said = _line(f"{row.test_name}: {row.status}")
    yield f'<h3><span class="{token if token in _TOKENS else "dim"}">{sign}</span> {said}</h3>'
    yield f'<p class="dim">{_line(plain(place_of(row)))}</p>'
    if many:
        yield f"<p>{_line(many)}</p>"
    missed = missed_of(row, store.results(row.id), transcript, store.labels([row.id]))
    yield f"<pre>{_block(plain_text(explanation(missed)))}</pre>"
    amounts = [count(len(transcript.messages), "message"), count(len(transcript.tool_calls), "tool call")]
    amounts += [seconds(row.duration_ms)] if row.duration_ms is not None else []
    yield f"<details><summary>Transcript: {', '.join(amounts)}</summary>"
    yield from _transcript(transcript)
    yield "</details></section>"


def _transcript(transcript: Transcript) -> Iterator[str]:
    for message in transcript.messages[:MOST_MESSAGES]:
        name = f" {message.name}" if message.name else ""
        yield f"<p><b>{_line(message.role)}</b>{_line(name)}</p>"
        if message.reasoning:
            yield f'<pre class="dim">{_block(message.reasoning)}</pre>'
        if message.content:
            yield f"<pre>{_block(message.content)}</pre>"
        for index in message.tool_calls:
            call = transcript.tool_calls[index]
            failed = ' <span class="bad">failed</span>' if call.status == "error" else ""
            yield f"<pre>→ {_block(call.name)} {_block(arguments_text(call))}{failed}</pre>"
    if len(transcript.messages) > MOST_MESSAGES:
        yield f"<p>{len(transcript.messages) - MOST_MESSAGES:,} more messages are not shown here.</p>"
    if transcript.error is not None:
        yield f'<p class="broken">{_line(f"{transcript.error.kind}: {transcript.error.message}")}</p>'


def _line(text: str) -> str:
    return escape(one_line(text))


def _block(text: str) -> str:
    cut = f"\n… {len(text) - LONGEST_TEXT:,} more characters" if len(text) > LONGEST_TEXT else ""
    return escape(displayable(text[:LONGEST_TEXT]) + cut)
