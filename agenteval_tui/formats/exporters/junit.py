"""An execution as JUnit XML: a test suite each suite, a test case each run.

It is valid by the schema of Jenkins (`junit-10.xsd` of its xUnit plug-in), where cases have no properties and the whole
does not count what was skipped: what is known of a case beside its ending is in its first `system-out`, a line each.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from agenteval_tui.analysis.causes import failure_causes
from agenteval_tui.analysis.explanation import missed_of
from agenteval_tui.analysis.quarantine_gate import GatedRuns, gating_now
from agenteval_tui.analysis.regression_gate import BaselineResult, compare_to_baseline
from agenteval_tui.analysis.test_gates import TestGates, gates_now
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count, iso
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.formats.documents.causes import properties_of
from agenteval_tui.formats.exporters.report_figures import html_comment_escape
from agenteval_tui.grading.sentences import criterion_sentence, not_made_sentence
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.labels import Label, by_run
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.suites.suite_names import unique_names
from agenteval_tui.views.baseline import fell_text, notice_lines, regressed_text
from agenteval_tui.views.comparison import overall_text, regression_text
from agenteval_tui.views.evidence import explanation
from agenteval_tui.views.execution import commit_text
from agenteval_tui.views.failure import reason_of
from agenteval_tui.views.gates import excuse_text, verdict_text
from agenteval_tui.views.label import feedback_text, label_text
from agenteval_tui.views.quarantine import held_text
from agenteval_tui.views.terminal import plain_text

MARK = "<!-- agenteval"
"""Behind the XML declaration of every report: it says that the file is one of ours."""
_OUTPUT = 20_000  # characters of an answer that a report keeps


def junit_xml(store: Store, execution: ExecutionRow) -> str:
    """The report as text. `failure` and `error` hold the same explanation as the screens show.

    A failure in quarantine, or of a test that reached its gate, is `skipped`, with its explanation: the file's reader
    must not report a failure where the exit code does not. pytest writes its expected failures so.
    """
    suites = _by_suite(store.runs_of_execution(execution.id))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"{MARK}: execution {html_comment_escape(execution.id)} -->"]
    every = [row for rows in suites.values() for row in rows]
    held = gating_now(store, every)
    gates = gates_now(store, execution, every, held)
    excused = held.excused | gates.excused
    lines.append(f"<testsuites name={_attribute(execution.title)}{_counts(every, excused, skipped=False)}>")
    _, decided = causes_of_execution(store, execution.id)
    against = compare_to_baseline(store, execution)
    labels = by_run(store.labels([row.id for row in every]))
    feedback = by_run(store.feedback([row.id for row in every]))
    causes = failure_causes(store, [row.id for row in every if row.status in ("failed", "error")])
    # Only with hooks are transcripts of runs that passed read: they are most of a history.
    hooked = bool(store.around_of(execution.id))
    for name, rows in suites.items():
        stamp = iso(execution.started_ms) or ""
        lines.append(f"  <testsuite name={_attribute(name)}{_counts(rows, excused)} timestamp={_attribute(stamp)}>")
        baseline = _of_baseline(against, {row.suite_key for row in rows})
        lines += _properties([*_of_execution(execution), *baseline])
        for row in rows:
            lines.extend(
                _case(
                    store,
                    row,
                    suite=name,
                    properties=[
                        *properties_of(causes.get(row.id, ()), decided),
                        *(_failed_hooks(store, row) if hooked else ()),
                    ],
                    held=held,
                    gates=gates,
                    labels=labels.get(row.id, ()),
                    feedback=feedback.get(row.id, ()),
                )
            )
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _by_suite(rows: Sequence[RunRow]) -> dict[str, list[RunRow]]:
    """The runs of each suite, by its name; with the end of its path if another suite has that name."""
    # Readers of the file take two cases of one class and name for one test, and show the first.
    names = unique_names((row.suite_key, row.suite_name) for row in rows)
    return grouped((names[row.suite_key, row.suite_name], row) for row in rows)


def _case(
    store: Store,
    row: RunRow,
    suite: str,
    properties: Sequence[tuple[str, str]],
    held: GatedRuns,
    gates: TestGates,
    labels: Sequence[Label],
    feedback: Sequence[Feedback],
) -> list[str]:
    name = row.test_name + (f" [{row.variation}]" if row.variation else "")
    name += f" row {row.row_label}" if row.row else ""
    name += f" #{row.repetition}" if row.repetition > 1 else ""
    attributes = {
        # Readers group by the class, and split its name at dots.
        "classname": f"{suite}.{row.test_id}",
        "name": name,
        "time": f"{(row.duration_ms or 0) / 1000:.3f}",
    }
    head = "    <testcase" + "".join(f" {key}={_attribute(value)}" for key, value in attributes.items())
    verdict, quarantine = gates.of_run(row), held_text(held.of_run(row))
    notes = [("gate", verdict_text(verdict))] if verdict is not None else []
    notes += [("quarantine", quarantine)] if quarantine else []
    notes += properties
    if row.checks_not_made and row.status in DECIDED:
        notes.append(("checks_not_made", _not_made(store, row)))
    notes += [("label", label_text(label)) for label in labels]
    notes += [("feedback", feedback_text(entry).removeprefix("feedback ")) for entry in feedback]
    if row.status == "passed":
        return [head + ">", *_notes(notes), "    </testcase>"] if notes else [head + "/>"]
    return [head + ">", *_notes(notes), *_ending(store, row, held, gates, labels), "    </testcase>"]


def _failed_hooks(store: Store, row: RunRow) -> list[tuple[str, str]]:
    """What failed after the run. What failed before it is its error."""
    if row.status == "skipped":
        return []
    hooks = store.transcript(row.id).hooks
    return [("hook", hook.error.message) for hook in hooks if hook.phase == "after" and hook.error is not None]


def _not_made(store: Store, row: RunRow) -> str:
    """Which checks could not run, with the reason of each."""
    whys = [
        f"{result.criterion}: {criterion_sentence(result)}"
        for result in store.results(row.id)
        if result.outcome == "error"
    ]
    return f"{not_made_sentence(row.checks_not_made)}: {'; '.join(whys)}"


def _of_execution(execution: ExecutionRow) -> list[tuple[str, str]]:
    """What the execution is called, and what it is a version of."""
    named = [(name, value) for name, value in (("name", execution.name), ("note", execution.note)) if value]
    commits = [("commit", commit_text(commit, whole=True)) for commit in execution.commits]
    return [*named, *commits, *((f"meta.{key}", value) for key, value in execution.meta.items())]


def _of_baseline(against: BaselineResult | None, suites: set[str]) -> list[tuple[str, str]]:
    """What changed since the baseline, and how sure that is."""
    if against is None:
        return []
    overall = against.gating.overall
    properties = [("baseline", ", ".join(against.shown.a.executions)), ("baseline.pass_rate", overall_text(overall))]
    if fell := fell_text(against):
        properties.append(("baseline.regression", fell))
    properties += [
        ("baseline.regression", regressed_text(against, test)) for test in against.regressed if test.suite_key in suites
    ]
    properties += [
        ("baseline.within chance", regression_text(test)) for test in against.by_chance if test.suite_key in suites
    ]
    # Notices name suites as people do; the keys tell which of them are meant.
    names = {test.suite for test in against.gating.tests if test.suite_key in suites}
    notices = [notice for notice in against.notices if notice.suite in names]
    return properties + [("baseline.notice", line) for line in notice_lines(notices)]


def _properties(properties: Sequence[tuple[str, str]]) -> list[str]:
    """Properties of a suite."""
    if not properties:
        return []
    lines = [f"      <property name={_attribute(name)} value={_attribute(value)}/>" for name, value in properties]
    return ["    <properties>", *lines, "    </properties>"]


def _notes(notes: Sequence[tuple[str, str]]) -> list[str]:
    """What is known of a case: its gate, the causes of its failure, and what was decided about them."""
    text = "\n".join(f"{name}: {one_line(value)}" for name, value in notes)
    return [f"      <system-out>{_text(text)}</system-out>"] if notes else []


def _ending(store: Store, row: RunRow, held: GatedRuns, gates: TestGates, labels: Sequence[Label]) -> list[str]:
    why = held.whys.get(row.id) or reason_of(row)
    excuse = excuse_text(row, held, gates)
    if excuse:
        why = f"{excuse}; {row.status}: {why}"
    message = _attribute(why)
    if row.status in ("failed", "error"):
        transcript = store.transcript(row.id)
        text = plain_text(explanation(missed_of(row, store.results(row.id), transcript, labels)))
        tag, kind = ("failure", "criterion") if row.status == "failed" else ("error", row.error_kind or "error")
        if excuse:
            tag, kind = "skipped", "quarantine" if row.id in held.excused else "gate"
        output, more = transcript.final_output[:_OUTPUT], len(transcript.final_output) - _OUTPUT
        output += f"\n… {count(more, 'more character')}: agenteval show {row.id}" if more > 0 else ""
        return [
            f"      <{tag} message={message} type={_attribute(kind)}>{_text(text)}</{tag}>",
            f"      <system-out>{_text(output)}</system-out>",
        ]
    return [f"      <skipped message={message}/>"]


def _counts(rows: Sequence[RunRow], excused: frozenset[str], *, skipped: bool = True) -> str:
    counted = [row.status for row in rows if row.id not in excused]
    counts: dict[str, int] = {
        "tests": len(rows),
        "failures": counted.count("failed"),
        "errors": counted.count("error"),
    }
    if skipped:
        # What is excused is not in `counted`, and so is skipped.
        counts["skipped"] = len(rows) - sum(status in ("passed", "failed", "error") for status in counted)
    seconds = sum(row.duration_ms or 0 for row in rows) / 1000
    return "".join(f' {key}="{value}"' for key, value in counts.items()) + f' time="{seconds:.3f}"'


# XML has no word for most control characters; `displayable` gives them their pictures.
def _text(text: str) -> str:
    return escape(displayable(text))


def _attribute(text: str) -> str:
    return quoteattr(displayable(text))
