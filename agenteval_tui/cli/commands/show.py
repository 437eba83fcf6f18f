"""`agenteval show`: an execution with its runs, or one run with its transcript and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from agenteval_tui.analysis.costs import execution_costs
from agenteval_tui.analysis.text_diff import compare_texts, in_order_of
from agenteval_tui.analysis.trajectory_alignment import Alignment, Pair, Step, align
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import STYLES, Output, Style
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count, duration, moment
from agenteval_tui.formats.documents.difference import difference_document
from agenteval_tui.grading.sentences import not_made_sentence
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import arguments_text, to_json
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_text import argument_text
from agenteval_tui.views.causes import causes_in_short
from agenteval_tui.views.cost import spent_lines
from agenteval_tui.views.evidence import results_in_short
from agenteval_tui.views.execution import execution_view
from agenteval_tui.views.label import label_text

_LONGEST_RESULT = 600
_SHORTEST_SETUP_MS = 10  # what was started sooner is not worth a line


@click.command("show")
@click.argument("reference", default="last")
@click.option("--transcript", "only_transcript", is_flag=True, help="The transcript alone (of a run).")
@click.option(
    "--diff", "other", metavar="RUN", default="", help="What run RUN did differently, step by step (of a run)."
)
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
        from agenteval_tui.formats.exporters.results_json import execution_document

        out.json(execution_document(store, execution))
        return 0
    out.view(execution_view(execution, store.runs_of_execution(execution.id)))
    out.view(causes_in_short(*causes_of_execution(store, execution.id), execution.id))
    out.view(spent_lines(execution_costs(store, execution.id)))
    return 0


def _show_run(out: Output, store: Store, row: RunRow, as_json: bool, only_transcript: bool) -> int:
    transcript = store.transcript(row.id)
    results = store.results(row.id)
    if as_json:
        document: dict[str, Any] = to_json(transcript)
        if not only_transcript:
            from agenteval_tui.formats.exporters.results_json import run_data

            labels = store.labels([row.id])
            document = {"version": 1, **run_data(row, results, transcript, labels), "transcript": document}
        out.json(document)
        return 0

    if not only_transcript:
        out.line((one_line(row.test_name), "bold"), (f"  {row.id}", "dim"))
        out.line(
            (row.status, STYLES.get(row.status, "dim")),
            (
                f", {row.test_id}, repetition {row.repetition}, agent {one_line(row.agent)}, {moment(row.started_ms)}"
                f" {duration(row.duration_ms)}",
                "dim",
            ),
            (f"  {not_made_sentence(row.checks_not_made)}" if row.checks_not_made else "", "warn"),
        )
        out.line()
    print_transcript(out, transcript)
    if not only_transcript and results:
        out.line()
        out.view(results_in_short(results))
    if not only_transcript:
        for label in store.labels([row.id]):
            out.line((one_line(label_text(label)), "dim"))
    return 0


def print_transcript(out: Output, transcript: Transcript) -> None:
    """Messages in order, tool calls with their arguments where they were made, results cut to what can be read."""
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
    calls = count(len(transcript.tool_calls), "tool call")
    reason = f", finish reason {one_line(transcript.finish_reason)}" if transcript.finish_reason else ""
    out.line((f"{count(len(transcript.messages), 'message')}, {calls}{reason}", "dim"))


def _indented(out: Output, text: str, *, dim: bool = False) -> None:
    for line in text.splitlines():
        out.line((f"   {line}", "dim" if dim else ""))


_LONGEST = 4_000  # characters of a text that only one side has
_AROUND = 2  # lines alike that are printed beside a difference
_SIGNS: dict[str, tuple[str, Style]] = {"left": ("-", "bad"), "right": ("+", "good")}
_WORDS = {"left": ("[-", "-]"), "right": ("{+", "+}")}


def show_difference(out: Output, store: Store, left: RunRow, right: RunRow, *, as_json: bool) -> int:
    """Print what the right run did otherwise than the left one. 0."""
    alignment = align(store.transcript(left.id), store.transcript(right.id))
    if as_json:
        out.json(difference_document(left, right, alignment))
        return 0
    for row, side in ((left, "left"), (right, "right")):
        score = f" {row.score:.2f}" if row.score is not None else ""
        name = row.test_id + (f" [{row.variation}]" if row.variation else "")
        out.line(
            _SIGNS[side],
            f" {row.id}  ",
            (row.status + score, STYLES.get(row.status, "dim")),
            (f"  {one_line(name)}, repetition {row.repetition}, agent {one_line(row.agent)}", "dim"),
        )
    out.line()
    print_alignment(out, alignment)
    return 0


def print_alignment(out: Output, alignment: Alignment) -> None:
    """The steps in order. Those that are the same are counted, but for one before and after each difference."""
    pairs = alignment.pairs
    near = {
        place for number, pair in enumerate(pairs) if pair.state != "same" for place in range(number - 1, number + 2)
    }
    hidden = 0
    for number, pair in enumerate(pairs):
        if number not in near:
            hidden += 1
            continue
        _alike(out, hidden)
        hidden = 0
        print_pair(out, pair)
    _alike(out, hidden)
    out.line((f"{count(len(alignment.differences), 'difference')} in {count(len(pairs), 'step')}", "dim"))


def print_pair(out: Output, pair: Pair) -> None:
    """A step: of one that both have only what differs."""
    head = _head(pair.step)
    if pair.state == "same":
        out.line("  ", (head, "bold"), "  ", (one_line(_text(pair.step), max(out.width - len(head) - 6, 20)), "dim"))
        return
    if pair.left is None or pair.right is None:
        side = "right" if pair.left is None else "left"
        sign, style = _SIGNS[side]
        out.line((sign, style), " ", (head, "bold"))
        text = _text(pair.step)
        _lines(out, text[:_LONGEST], side, ())
        if len(text) > _LONGEST:
            out.line((sign, style), (f"    … {len(text) - _LONGEST:,} more characters", "dim"))
        return
    out.line("  ", (head, "bold"))
    mine, theirs = _text(pair.left), _text(pair.right, pair.left)
    for one in compare_texts(mine, theirs):
        if one.same:
            lines = mine[slice(*one.left)].splitlines()
            shown = lines if len(lines) <= 2 * _AROUND + 1 else []
            for line in shown or lines[:_AROUND]:
                out.line("    ", (line, "dim"))
            if not shown:
                out.line(("    … ", "dim"), (f"{len(lines) - 2 * _AROUND:,} lines alike", "dim"))
                for line in lines[-_AROUND:]:
                    out.line("    ", (line, "dim"))
        else:
            _lines(out, mine[slice(*one.left)], "left", _moved(one.left_words, one.left[0]))
            _lines(out, theirs[slice(*one.right)], "right", _moved(one.right_words, one.right[0]))
    failed = [step.kind == "result" and step.call is not None and step.call.status == "error" for step in
              (pair.left, pair.right)]  # fmt: skip
    if failed[0] != failed[1]:
        for side, one_failed in zip(("left", "right"), failed, strict=True):
            sign, style = _SIGNS[side]
            out.line((sign, style), "   ", ("it failed" if one_failed else "it succeeded", style))


def _head(step: Step) -> str:
    if step.kind == "call":
        return f"tool {one_line(step.name, 60)}"
    return f"result of {one_line(step.name, 60)}" if step.kind == "result" else one_line(step.kind, 30)


def _text(step: Step, like: Step | None = None) -> str:
    """What is compared; a call's arguments a line each, in the order of the step beside it."""
    if step.call is None or step.kind != "call":
        return step.text

    arguments: Any = step.call.arguments
    if like is not None and like.call is not None:
        arguments = in_order_of(like.call.arguments, arguments)
    if not isinstance(arguments, dict):
        return argument_text(arguments) if arguments not in (None, "") else ""
    return "\n".join(f'{name} = "{argument_text(value)}"' for name, value in arguments.items())


def _lines(out: Output, text: str, side: str, words: Sequence[tuple[int, int]]) -> None:
    sign, style = _SIGNS[side]
    before, after = _WORDS[side]
    # A line that differs as a whole needs no brackets: its sign says it.
    if sum(end - start for start, end in words) < len(text.strip()):
        for start, end in reversed(words):
            text = f"{text[:start]}{before}{text[start:end]}{after}{text[end:]}"
    for line in text.splitlines():
        out.line((f"{sign}   {line}", style))


def _moved(words: Sequence[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(start - by, end - by) for start, end in words]


def _alike(out: Output, steps: int) -> None:
    if steps:
        out.line((f"  … {count(steps, 'step')} alike", "dim"))
