"""`agenteval show`: an execution with its runs, or one run with its transcript and evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from click.core import ParameterSource

from agenteval_tui.analysis.costs import execution_costs
from agenteval_tui.analysis.function_exceptions import raised_around
from agenteval_tui.analysis.lost_context import lost_from_sight
from agenteval_tui.analysis.test_gates import gates_now
from agenteval_tui.analysis.trajectory_alignment import align
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import (
    Invocation,
    all_projects,
    allow_one_of,
    common_options,
    json_option,
    pass_invocation,
)
from agenteval_tui.cli.output import Output
from agenteval_tui.core.directories import db_option
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count, duration
from agenteval_tui.formats.documents.difference import difference_document
from agenteval_tui.formats.documents.model_request import requests_document
from agenteval_tui.formats.documents.results import execution_document, run_document
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.around.record import NOTHING, AroundRecord, decoded
from agenteval_tui.transcripts.codec import arguments_text, stored_transcript
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import recorded_requests
from agenteval_tui.transcripts.observed import TOLD_BY_AGENT, calls_phrase
from agenteval_tui.transcripts.request_changes import changes_since
from agenteval_tui.views.attachment import attachment_text
from agenteval_tui.views.causes import causes_in_short
from agenteval_tui.views.cost import spent_view, usage_view
from agenteval_tui.views.difference import context_view, difference_view
from agenteval_tui.views.evidence import results_in_short
from agenteval_tui.views.execution import execution_view, run_head
from agenteval_tui.views.gates import gates_view
from agenteval_tui.views.label import feedback_text, label_text
from agenteval_tui.views.model_request import lost_view, request_view, requests_view
from agenteval_tui.views.request_difference import request_difference_view
from agenteval_tui.views.run_output import NO_OUTPUT, around_view, has_output, output_lines
from agenteval_tui.views.state import state_lines
from agenteval_tui.views.traceback import raised_block, raised_title, traceback_view

_STATE_LINES = 40  # of a value
_LONGEST_RESULT = 600
_OUTPUTS_SHOWN = 600
_SHORTEST_SETUP_MS = 10  # what was started sooner is not worth a line


@click.command("show")
@click.argument("reference", default="last", shell_complete=shell_completion.references)
@click.option("--transcript", "only_transcript", is_flag=True, help="Only the transcript of the run.")
@click.option("--output", "only_output", is_flag=True, help="Only what the agent's code printed and logged.")
@click.option(
    "--request",
    metavar="N",
    default="",
    help="What the model was asked for its N-th answer, and what changed since the request before; `last`, or `all`: "
    "a line for each.",
)
@click.option(
    "--diff",
    "other",
    metavar="[RUN]",
    is_flag=False,
    flag_value="",
    help="What RUN did differently, step by step. With --request and without RUN: only what changed since the request "
    "before, with its texts.",
    shell_complete=shell_completion.runs,
)
@json_option
@all_projects("--all")
@common_options
@pass_invocation
@click.pass_context
def command(
    context: click.Context,
    invocation: Invocation,
    reference: str,
    only_transcript: bool,
    only_output: bool,
    request: str,
    other: str | None,
    as_json: bool,
) -> int:
    """Show REFERENCE: an execution or a run, by its id or a part of it, or the newest run of a test, by the test's id
    (FILE::ID if several suites have it); `last` is the newest execution (the default).
    """
    if request and other and context.get_parameter_source("reference") is ParameterSource.DEFAULT:
        reference, other = other, ""  # `show --request 3 --diff RUN`
    allow_one_of("request", "only_transcript", "only_output")
    allow_one_of("other", "only_transcript", "only_output")
    if request and other:
        raise AgentevalError("--request can't be used with another run", fix="leave out one of the runs")
    if other == "" and not request:
        raise AgentevalError("--diff needs a run to compare with", fix="give --diff RUN, or --request N --diff")
    with invocation.store(to_look=True) as store:
        references = invocation.references(store)
        if request:
            run = references.run(reference)
            return show_requests(invocation.out, store, run, request, only_changes=other is not None, as_json=as_json)
        if other:
            return show_difference(
                invocation.out, store, references.run(reference), references.run(other), as_json=as_json
            )
        if only_output and not as_json:
            run = references.run(reference)
            record = decoded(store.around_of(run.execution_id))
            print_output(invocation.out, store.transcript(run.id), record)
            return 0
        row = references.run(reference) if only_transcript else references.either(reference)
        if isinstance(row, ExecutionRow):
            return _show_execution(invocation.out, store, row, as_json)
        return _show_run(invocation.out, store, row, as_json, only_transcript)


def _show_execution(out: Output, store: Store, execution: ExecutionRow, as_json: bool) -> int:
    if as_json:
        out.json(execution_document(store, execution))
        return 0
    runs = store.runs_of_execution(execution.id)
    out.view(execution_view(execution, runs))
    out.view(around_view(decoded(store.around_of(execution.id))))
    out.view(gates_view(gates_now(store, execution, runs)))
    out.view(causes_in_short(*causes_of_execution(store, execution.id), execution.id, db_option(store.path)))
    out.view(spent_view(execution_costs(store, execution.id)))
    return 0


def _show_run(out: Output, store: Store, row: RunRow, as_json: bool, only_transcript: bool) -> int:
    transcript = store.transcript(row.id)
    results = store.results(row.id)
    if as_json:
        if only_transcript:
            out.json(stored_transcript(transcript))
        else:
            out.json(run_document(row, results, transcript, store.labels([row.id]), store.feedback([row.id])))
        return 0

    if not only_transcript:
        out.view(run_head(row))
        out.line()
    for attempt in store.failed_attempts(row.id):
        words = f"attempt {attempt.number} failed after {duration(attempt.duration_ms)}: {attempt.message}"
        out.line((one_line(words), "warn"))
    print_transcript(out, transcript, results)
    if not only_transcript:
        out.view(lost_view(lost_from_sight(transcript, results), row.id, db_option(store.path)))
        if results:
            out.line()
            out.view(results_in_short(results))
        for label in store.labels([row.id]):
            out.line((one_line(label_text(label)), "dim"))
        for feedback in store.feedback([row.id]):
            out.line((one_line(feedback_text(feedback)), "dim"))
    return 0


def print_transcript(out: Output, transcript: Transcript, results: Sequence[CriterionResult] = ()) -> None:
    """Messages in order, tool calls with their arguments where they were made, results cut to what can be read."""
    ending = ending_of(transcript)
    if ending is not None:
        out.line((ending.description, "warn"))
    for note in dict.fromkeys(transcript.notes):
        out.line((one_line(note.description), "dim" if note.code in TOLD_BY_AGENT else "warn"))
    for name, took in transcript.timing.setup.items():
        if took >= _SHORTEST_SETUP_MS:
            out.line((f"{one_line(name)}: {duration(took)}, not counted as the agent's time", "dim"))
    for number, message in enumerate(transcript.messages, 1):
        agent = f" {one_line(message.name)}" if message.name and message.role == "assistant" else ""
        out.line((f"{number} {message.role}{agent}", "bold"), (" (simulated)" if message.simulated else "", "dim"))
        if message.reasoning:
            _indented(out, f"({message.reasoning})", dim=True)
        if message.role == "tool":
            cut = len(message.content) > _LONGEST_RESULT
            _indented(out, message.content[:_LONGEST_RESULT] + ("…" if cut else ""), dim=True)
        elif message.content:
            _indented(out, message.content)
        for attachment in message.attachments:
            out.line((f"   {attachment_text(attachment)}", "dim"))
        for index in message.tool_calls:
            call = transcript.tool_calls[index]
            failed = "  (failed)" if call.status == "error" else ""
            out.line(f"   → {one_line(call.name)} {one_line(arguments_text(call))}", (failed, "bad"))
    print_output(out, transcript, quiet=True)
    print_state(out, transcript)
    if transcript.outputs:
        outputs = json.dumps(dict(transcript.outputs), ensure_ascii=False)
        out.line(("returned beside the answer: ", "dim"), one_line(outputs, _OUTPUTS_SHOWN))
    if transcript.workdir:
        out.line((f"working folder: {one_line(transcript.workdir)}", "dim"))
    if transcript.error is not None:
        fix = f" ({transcript.error.fix})" if transcript.error.fix else ""
        out.line((f"{transcript.error.kind}: {transcript.error.message}{fix}", "broken"))
        if transcript.error.traceback is not None:
            out.view(traceback_view(transcript.error.traceback, 2))
    for raised in raised_around(transcript, results):
        out.line((one_line(raised_title(raised)), "broken"))
        for line in raised_block(raised):
            out.line(f"  {line}")
    calls = calls_phrase(transcript)
    reason = f", finish reason {one_line(transcript.finish_reason)}" if transcript.finish_reason else ""
    out.line((f"{count(len(transcript.messages), 'message')}, {calls}{reason}", "dim"))
    out.view(usage_view(transcript))


def print_output(out: Output, transcript: Transcript, record: AroundRecord = NOTHING, *, quiet: bool = False) -> None:
    """What the agent's code printed and logged, with its time, and what hooks and services printed; `quiet`: nothing
    where it is nothing."""
    if not has_output(transcript, record):
        if not quiet:
            out.line((NO_OUTPUT, "dim"))
        return
    for line in output_lines(transcript, record):
        if line.step:
            out.line((one_line(line.step), "bold"))
        else:
            out.line((f"{line.at:<8} {one_line(line.source):<8} ", "dim"), line.text)


def print_state(out: Output, transcript: Transcript) -> None:
    """What probes read before and after the run, with what changed; nothing where nothing was read."""
    for line in state_lines(transcript, _STATE_LINES):
        if line.probe:
            out.line((f"state {one_line(line.probe)}", "bold"), (f"  {line.change}", "dim"))
            continue
        text, moment = f"{line.sign} {line.text}", f"   {line.moment:<10}"
        if line.unread:
            out.line((moment, "dim"), (text, "warn"))
        elif line.sign == " ":
            out.line((moment, "dim"), text)
        else:
            out.line((moment, "dim"), (text, "bad" if line.sign == "-" else "good"))


def _indented(out: Output, text: str, *, dim: bool = False) -> None:
    for line in text.splitlines():
        out.line((f"   {line}", "dim" if dim else ""))


def show_difference(out: Output, store: Store, left: RunRow, right: RunRow, *, as_json: bool) -> int:
    """Print what the right run did differently from the left one. Returns 0."""
    transcripts = store.transcript(left.id), store.transcript(right.id)
    alignment = align(*transcripts)
    if as_json:
        out.json(difference_document(left, right, alignment))
        return 0
    out.view(difference_view(left, right, alignment, out.width))
    out.view(context_view(*transcripts))
    return 0


def show_requests(
    out: Output, store: Store, row: RunRow, which: str, *, only_changes: bool = False, as_json: bool = False
) -> int:
    """Print what the model was asked in a run: `which` is the number of a request, `last`, or `all`. `only_changes`:
    what is different since the request before, with its texts. Returns 0."""
    transcript = store.transcript(row.id)
    requests = recorded_requests(transcript.requests, row.id)
    numbers, calls = (
        _request_numbers(len(requests.references), which, row),
        [call.name for call in transcript.tool_calls],
    )
    if as_json:
        out.json(requests_document(row.id, requests, numbers))
    elif only_changes:
        for number in numbers:
            if number > numbers[0]:
                out.line()
            out.view(request_difference_view(requests, number, calls))
    elif which == "all":
        out.view(requests_view(requests, [changes_since(requests, number) for number in numbers], calls))
    else:
        out.view(request_view(requests, numbers[0], calls))
    return 0


def _request_numbers(total: int, which: str, row: RunRow) -> range:
    """The numbers of the requests that are meant, of `total`."""
    if not total:
        raise AgentevalError(
            "no model was asked in this run", where=f"run {row.id}", fix="look at it without --request"
        )
    if which == "all":
        return range(1, total + 1)
    number = total if which == "last" else int(which) if which.isascii() and which.isdigit() else 0
    if not 1 <= number <= total:
        raise AgentevalError(
            f"--request takes a number from 1 to {total}, `last` or `all`, not {one_line(which, 40)!r}",
            fix="`--request all` lists them",
        )
    return range(number, number + 1)
