"""An execution as a Markdown report: head, table of figures, tests, failures with their reasons, conclusion."""

from __future__ import annotations

from agenteval_tui.analysis.explanation import missed_of
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.ids import short_id
from agenteval_tui.formats.exporters.report_figures import (
    ReportFigures,
    attributed_changes,
    html_comment_escape,
    left_out,
    report_figures,
    results_table,
    tests_table,
)
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.views.causes import causes_page
from agenteval_tui.views.comparison import changes_table, section_text
from agenteval_tui.views.evidence import explanation_page
from agenteval_tui.views.label import feedback_table, labels_table
from agenteval_tui.views.markdown import escaped, markdown
from agenteval_tui.views.model import Heading, Table, text

MARK = "<!-- agenteval report"
"""With this a report begins: it says that the file is one of ours."""
MOST_FAILURES = 100
LONGEST_FAILURE = 6_000  # characters
LONGEST_NAME = 500
LONGEST_CONCLUSION = 3_000


def report_md(store: Store, execution: ExecutionRow, *, most: int = MOST_FAILURES) -> str:
    """The report as text. Of failures the first `most` are explained, the others counted.

    Nothing that an agent, a suite or a server said can act in it: no markup, link, mention, image or control character.
    """
    figures = report_figures(store, execution)
    lines = [
        f"{MARK}: execution {html_comment_escape(execution.id)} -->",
        f"## Evaluation report: {_text(execution.title)}",
        "",
        f"**Date:** {figures.date}  ",
        f"**Dataset:** {_text(figures.dataset)}  ",
        *_named(figures),
        "",
        *_section("Results", results_table(figures)),
        *_changes(store, figures),
        *_section("Tests", tests_table(figures.tests)),
        *markdown(causes_page(*causes_of_execution(store, execution.id))).splitlines(),
        *_section("Labels", labels_table(figures.labels)),
        *_section("Feedback", feedback_table(figures.feedback)),
        *_failures(store, figures, most),
        "### Conclusion",
        "",
        escaped(figures.conclusion, LONGEST_CONCLUSION),
        "",
        f"`agenteval show {html_comment_escape(short_id(execution.id))}` shows every run.",
        "",
    ]
    return "\n".join(lines)


def _named(figures: ReportFigures) -> list[str]:
    """Which execution it is: its name, what it is a version of, a person's note. A line ends with two blanks."""
    parts = (("Experiment", figures.experiment), ("Version", figures.version), ("Note", figures.execution.note))
    # Two blanks at the end of a line are Markdown's line break.
    return "  \n".join(f"**{name}:** {_text(words)}" for name, words in parts if words).split("\n")


def _section(head: str, table: Table) -> list[str]:
    """A table below its heading; nothing where it has no rows."""
    return markdown((Heading(text(head)), table)).splitlines() if table.rows else []


def _changes(store: Store, figures: ReportFigures) -> list[str]:
    """The tests that changed since the baseline, and who changed them."""
    if figures.against is None:
        return []

    lines: list[str] = []
    for state in ("worse", "better"):
        listed = figures.against.shown.in_state(state)
        if listed:
            table = changes_table(listed, attributed_changes(store, listed))
            lines += _section(section_text(state, len(listed)), table)
    return lines


def _failures(store: Store, figures: ReportFigures, most: int) -> list[str]:
    failures = figures.failures
    if not failures:
        return []
    lines = ["### Failures", ""]
    for alike in failures[:most]:
        lines += [_failure(store, alike[0], figures.about(alike)), ""]
    if note := left_out(failures, most):
        lines += [note, ""]
    return lines


def _failure(store: Store, row: RunRow, about: str) -> str:
    transcript = store.transcript(row.id)
    missed = missed_of(row, store.results(row.id), transcript, store.labels([row.id]))
    whole = markdown(explanation_page(missed, 3, about)).rstrip()
    if len(whole) <= LONGEST_FAILURE:
        return whole
    # Cut at a line: half a code span would let what follows be markup.
    end = whole.rfind("\n", 0, LONGEST_FAILURE)
    head = whole[:end].rstrip() if end > 0 else f"#### {_text(row.test_name)}: {_text(row.status)}"
    return f"{head}\n- …\n\n`agenteval why {html_comment_escape(row.id)}`"


def _text(text: str) -> str:
    return escaped(text, LONGEST_NAME)
