"""`agenteval show`: an execution with its runs, or one run with its transcript and evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from agenteval_tui.cli.explained import print_facts
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import SIGNS, STYLES, Output, duration, moment, plural
from agenteval_tui.cli.run_summary import print_not_made
from agenteval_tui.history.rows import ExecutionRow
from agenteval_tui.text.display import one_line
from agenteval_tui.text.moments import IN_FUTURE, in_future
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.ending import ending_of

if TYPE_CHECKING:
    from agenteval_tui.history.rows import RunRow
    from agenteval_tui.history.store import Store
    from agenteval_tui.transcripts.model import Transcript

_LONGEST_RESULT = 600
_SHORTEST_SETUP_MS = 10  # what was started sooner is not worth a line


@click.command("show")
@click.argument("reference", default="last")
@click.option("--transcript", "only_transcript", is_flag=True, help="The transcript alone (of a run).")
@click.option("--diff", "other", metavar="RUN", default="", help="What run RUN did otherwise, step by step (of a run).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, reference: str, only_transcript: bool, other: str, as_json: bool) -> int:
    """Show REFERENCE: an execution or a run, by id or a part of it, or the newest run of a test by the test's id
    (FILE::ID where several suites have it); `last` is the newest execution (the default)."""
    with invocation.store(to_look=True) as store:
        references = invocation.references(store)
        if other:
            from agenteval_tui.cli.diff_lines import show_difference

            if only_transcript:
                raise AgentevalError("--transcript and --diff do not go together", mend="give one of them")
            return show_difference(
                invocation.out, store, references.run(reference), references.run(other), as_json=as_json
            )
        found = references.either(reference)
        if isinstance(found, ExecutionRow):
            if only_transcript:
                raise AgentevalError("an execution has many transcripts", where=reference, mend="name one of its runs")
            return _show_execution(invocation.out, store, found, as_json)
        return _show_run(invocation.out, store, found, as_json, only_transcript)


def _show_execution(out: Output, store: Store, execution: ExecutionRow, as_json: bool) -> int:
    if as_json:
        from agenteval_tui.exchange.results_json import execution_document

        out.json(execution_document(store, execution))
        return 0
    out.line((one_line(execution.title), "bold"), (f"  {execution.id}", "dim"))
    agents = f", agents {one_line(execution.agents)}" if execution.agents else ""
    out.line((f"{moment(execution.started_ms)}, {execution.kind}, {execution.status}{agents}", "dim"))
    if in_future(execution.started_ms):
        out.line((f"{IN_FUTURE}: the clock of the machine that ran it was wrong, or this one is", "warn"))
    if execution.message:
        out.line((execution.message, "warn"))
    for note in execution.notes:
        out.line(("note ", "warn"), note)
    runs = store.runs_of_execution(execution.id)
    for row in runs:
        name = row.test_id + (f" [{row.variation}]" if row.variation else "")
        out.line(
            (SIGNS.get(row.status, "·"), STYLES.get(row.status, "dim")),
            f" {row.id}  {one_line(name, 36):<36} {row.repetition:>3} {duration(row.duration_ms):>8}  ",
            (one_line(row.why, 100), "dim"),
        )
    out.line(f"{execution.passed} passed, {execution.failed} failed, {execution.errors} in error of {execution.runs}")
    print_not_made(out, runs)
    from agenteval_tui.cli.cause_lines import print_in_short

    print_in_short(out, store, execution.id)
    from agenteval_tui.analysis.costs import execution_costs
    from agenteval_tui.cli.cost_lines import print_spent

    print_spent(out, execution_costs(store, execution.id))
    return 0


def _show_run(out: Output, store: Store, row: RunRow, as_json: bool, only_transcript: bool) -> int:
    transcript = store.transcript(row.id)
    results = store.results(row.id)
    if as_json:
        from agenteval_tui.transcripts.codec import to_json

        document: dict[str, Any] = to_json(transcript)
        if not only_transcript:
            from agenteval_tui.exchange.results_json import run_data

            labels = store.labels([row.id])
            document = {"version": 1, **run_data(row, results, transcript, labels), "transcript": document}
        out.json(document)
        return 0
    from agenteval_tui.grading.explain import explain
    from agenteval_tui.grading.sentences import of_not_made

    if not only_transcript:
        out.line((one_line(row.test_name), "bold"), (f"  {row.id}", "dim"))
        out.line(
            (row.status, STYLES.get(row.status, "dim")),
            (
                f", {row.test_id}, repetition {row.repetition}, agent {one_line(row.agent)}, {moment(row.started_ms)}"
                f" {duration(row.duration_ms)}",
                "dim",
            ),
            (f"  {of_not_made(row.checks_not_made)}" if row.checks_not_made else "", "warn"),
        )
        out.line()
    print_transcript(out, transcript)
    if not only_transcript and results:
        out.line()
        print_facts(out, explain(results), 0)
    if not only_transcript:
        from agenteval_tui.exchange.given_labels import label_line

        for label in store.labels([row.id]):
            out.line((one_line(label_line(label)), "dim"))
    return 0


def print_transcript(out: Output, transcript: Transcript) -> None:
    """Messages in order, tool calls with their arguments where they were made, results cut to what can be read."""
    from agenteval_tui.transcripts.codec import arguments_text

    ending = ending_of(transcript)
    if ending is not None:
        out.line((ending.said, "warn"))
    for note in transcript.notes:
        out.line((note.said, "warn"))
    for step in transcript.timing.steps:
        if step.setup and step.duration_ms >= _SHORTEST_SETUP_MS:
            out.line((f"{one_line(step.name)}: {duration(step.duration_ms)}, not counted as the agent's time", "dim"))
    for number, message in enumerate(transcript.messages, 1):
        out.line((f"{number} {message.role}", "bold"))
        if message.reasoning:
            _indented(out, f"({message.reasoning})", dim=True)
        if message.role == "tool":
            cut = len(message.content) > _LONGEST_RESULT
            _indented(out, message.content[:_LONGEST_RESULT] + ("…" if cut else ""), dim=True)
        elif message.content:
            _indented(out, message.content)
        for index in message.tool_calls:
            call = transcript.tool_calls[index]
            failed = "  (failed)" if call.status == "error" else ""
            out.line(f"   → {one_line(call.name)} {one_line(arguments_text(call))}", (failed, "bad"))
    for line in transcript.log.splitlines():
        out.line(("log  ", "dim"), (line, "dim"))
    if transcript.error is not None:
        mend = f" ({transcript.error.mend})" if transcript.error.mend else ""
        out.line((f"{transcript.error.kind}: {transcript.error.message}{mend}", "broken"))
    calls = plural(len(transcript.tool_calls), "tool call")
    reason = f", finish reason {one_line(transcript.finish_reason)}" if transcript.finish_reason else ""
    out.line((f"{plural(len(transcript.messages), 'message')}, {calls}{reason}", "dim"))


def _indented(out: Output, text: str, *, dim: bool = False) -> None:
    for line in text.splitlines():
        out.line((f"   {line}", "dim" if dim else ""))
