"""An execution as it runs: a row a test, a cell a run; the chosen run's answer as it streams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agenteval_tui.text.display import one_line
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.tool_text import argument_text
from agenteval_tui.tui.lines import Cell, Line, fit, left
from agenteval_tui.tui.presenters.figures import clock, cost, count, duration
from agenteval_tui.tui.presenters.outcomes import UNICODE, glyph, mark, word
from agenteval_tui.tui.presenters.paragraphs import LABEL, labelled, within

if TYPE_CHECKING:
    from agenteval_tui.runs.events import StreamPart
    from agenteval_tui.runs.view import ExecutionView, RunView
    from agenteval_tui.transcripts.model import Transcript

RESULT_LINES = 4
PARTS = 50
"""Parts of a stored transcript that are shown: as many as of one that streams."""


class RunGrid:
    """The rows of the Run screen: a row source for the virtual list. `column` is the chosen cell of the cursor's row.

    Runs are grouped by test, variation and dataset row, in the order of the plan.
    """

    def __init__(self, view: ExecutionView) -> None:
        self.view = view
        self.column = 0
        self.groups: list[list[str]] = []
        self.row_of: dict[str, int] = {}
        places: dict[tuple[str, str, int], int] = {}
        for run in view.runs.values():
            ref = run.ref
            place = places.setdefault((ref.test, ref.variation, ref.row), len(self.groups))
            if place == len(self.groups):
                self.groups.append([])
            self.groups[place].append(ref.run)
            self.row_of[ref.run] = place
        self.name_width = max((len(self._name(row)) for row in range(len(self.groups))), default=0)

    def chosen(self, row: int) -> str:
        """The run id of the chosen cell in `row`; "" when there is none."""
        if not 0 <= row < len(self.groups):
            return ""
        runs = self.groups[row]
        return runs[min(self.column, len(runs) - 1)]

    def column_of(self, run: str) -> int:
        """The cell that a run has in its row."""
        return self.groups[self.row_of[run]].index(run) if run in self.row_of else 0

    def count(self) -> int:
        """How many rows there are."""
        return len(self.groups)

    def key(self, index: int) -> str:
        """What the row is: its first run."""
        return self.groups[index][0]

    def index_of(self, key: str) -> int | None:
        """The row with a run."""
        return self.row_of.get(key)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """The test's name and a glyph a run; the chosen one in brackets where the cursor is."""
        names = min(self.name_width, max(width // 2, 12))
        cells: list[Cell] = [(" ", ""), (left(self._name(index), names), ""), (" ", "")]
        runs = self.groups[index]
        room = max((width - names - 4) // 2, 4)
        first = 0 if not focused else max(0, min(self.column, len(runs) - 1) - room + 2)
        if first:
            cells.append(("…", "dim"))
        chosen = min(self.column, len(runs) - 1) if focused else -1
        for number in range(first, min(first + room, len(runs))):
            sign, style = mark(self.view.runs[runs[number]].status)
            if number == chosen:
                cells += [("[", "bold accent"), (sign, style), ("]", "bold accent")]
            else:
                before = "" if number == chosen + 1 and chosen >= first else " "
                cells.append((before + sign, style))
        rest = len(runs) - min(first + room, len(runs))
        if rest:
            cells.append((f" +{rest}", "dim"))
        return fit(cells, width)

    def _name(self, index: int) -> str:
        ref = self.view.runs[self.groups[index][0]].ref
        name = one_line(ref.test, 60)
        if ref.variation:
            name += f" · {one_line(ref.variation, 24)}"
        if ref.row:
            name += f" #{ref.row}"
        return name


def bar(view: ExecutionView, width: int) -> Line:
    """A progress line over the whole width: passed, failed, errors, running, what is left."""
    total = max(view.total, 1)
    full, thin = ("━", "─") if UNICODE else ("=", "-")
    cells: list[Cell] = []
    used = 0
    done = 0
    for statuses, style in (
        (("passed",), "passed"),
        (("failed",), "failed"),
        (("error",), "error"),
        (("cancelled", "skipped", "needs_review"), "dim"),
        (("running", "grading"), "running"),
    ):
        done += view.count(*statuses)
        until = round(width * done / total)
        cells.append((full * (until - used), style))
        used = until
    cells.append((thin * (width - used), "rule"))
    return tuple(cells)


def status_cells(view: ExecutionView, width: int) -> tuple[Cell, ...]:
    """`31 of 70  ✓ 24  ✗ 5  ! 2` and, where there is room, rate, tokens and cost."""
    cells: list[Cell] = [(f"{view.done} of {view.total}", "bold")]
    for outcome in ("passed", "failed", "error", "cancelled"):
        number = view.count(outcome)
        if number:
            cells += [("  ", ""), (f"{glyph(outcome)} {number}", outcome if outcome != "cancelled" else "dim")]
    progress = view.progress
    if view.ended is not None:
        sign = "passed" if view.ended.status == "finished" else "dim"
        cells += [("  ", ""), (view.ended.status, sign)]
    elif view.paused:
        cells += [("  ", ""), ("paused", "error")]
    elif progress is not None:
        cells.append((f"  ETA {clock(progress.eta_s)}", ""))
    if progress is not None and view.ended is None:
        cells.append((f"  {progress.concurrency} at once", "dim"))
    if progress is not None and width >= 100:
        if progress.rate:
            cells.append((f"  {progress.rate:.1f} runs/s", "dim"))
        total = progress.input_tokens + progress.output_tokens
        if total:
            cells.append((f"  {total:,} tokens", "dim"))
        if progress.cost:
            cells.append((f"  {cost(progress.cost)}", "dim"))
    return tuple(cells)


def run_heading(run: RunView, now_ms: int, width: int) -> Line:
    """What the chosen run is doing, or how it ended."""
    ref = run.ref
    cells: list[Cell] = [mark(run.status), (" ", ""), (one_line(ref.test), "bold")]
    if ref.variation:
        cells.append((f" · {one_line(ref.variation)}", ""))
    cells.append((f"  run {ref.repetition}", ""))
    cells.append((f"  {one_line(ref.agent, 30)}", "dim"))
    if run.ended:
        cells.append((f"  {word(run.status)}", "dim"))
        if run.score is not None:
            cells.append((f" {run.score:.2f}", "dim"))
        cells.append((f"  {duration(run.duration_ms)}", "dim"))
    elif run.started_ms is not None:
        doing = "grading" if run.status == "grading" else "streaming" if run.parts else "waiting for the first token"
        cells.append((f"  {doing} {duration(max(now_ms - run.started_ms, 0))}", "running"))
    else:
        cells.append(("  queued", "dim"))
    if run.attempt > 1:
        cells.append((f"  attempt {run.attempt}", "error"))
    return fit(cells, width)


def run_lines(run: RunView, width: int, stored: Sequence[StreamPart] = ()) -> list[Line]:
    """The chosen run's transcript as far as it streamed: text, reasoning, tools with arguments and results.

    `stored` are its parts out of the history, for a run that ended and of which the view has dropped them.
    """
    lines: list[Line] = []
    parts = stored[-PARTS:] or run.parts
    dropped = len(stored) - len(parts) if stored else run.dropped
    if dropped:
        lines.append(((f"… {count(dropped, 'earlier part')}; enter opens the whole transcript", "dim"),))
    for part in parts:
        lines += _part(part, width)
    if not run.ended and run.status == "running" and run.parts and run.parts[-1].kind == "text":
        lines[-1] = (*lines[-1], ("▌" if UNICODE else "_", "running"))
    for message in run.retries:
        lines += [(), *labelled("attempt", f"failed: {message}", width, label_style="error", style="")]
    if run.retry_in_s is not None:
        lines.append(((f"trying again in {run.retry_in_s:.1f} s", "dim"),))
    if run.error:
        lines += [(), *labelled(f"{glyph('error')} error", run.error, width, label_style="error", style="")]
    if run.failed:
        lines.append(())
        for name, why in run.failed:
            lines += labelled(f"{glyph('failed')} fails", f"{name}: {why}", width, label_style="failed", style="")
    return within(lines, width)


def parts_of(transcript: Transcript) -> list[StreamPart]:
    """A stored transcript as the parts that streamed: for runs that ended long ago."""
    from agenteval_tui.runs.events import StreamPart

    parts: list[StreamPart] = []
    for message in transcript.messages:
        if message.role != "assistant":
            continue
        if message.reasoning:
            parts.append(StreamPart("reasoning", message.reasoning))
        if message.content:
            parts.append(StreamPart("text", message.content))
        for index in message.tool_calls:
            call = transcript.tool_calls[index]
            parts.append(
                StreamPart(
                    "tool",
                    key=index,
                    name=call.name,
                    arguments=arguments_text(call),
                    result=call.result or "",
                    done=call.result is not None,
                    error=call.status == "error",
                )
            )
    return parts


def _part(part: StreamPart, width: int) -> list[Line]:
    if part.kind == "text":
        return labelled(
            "assistant", ("… " if part.cut else "") + part.text, width, label_style="role-assistant", style=""
        )
    if part.kind == "reasoning":
        return labelled("reasoning", part.text, width, label_style="reasoning", style="reasoning")
    sign = "▸" if UNICODE else ">"
    state: Cell = ("", "") if part.done else ("  …", "running")
    head: Line = ((left(f"tool {sign}", LABEL), "role-tool"), (one_line(part.name), "bold"), state)
    lines: list[Line] = [fit(head, width)]
    for name, value in _arguments(part.arguments):
        lines.append(fit(((" " * LABEL, ""), (f"{name} = ", "json-key"), (value, "json-string")), width))
    if part.done:
        back = "◂" if UNICODE else "<"
        result = labelled(
            f"   {back}", part.result, width, label_style="error" if part.error else "role-tool", style="dim"
        )
        lines += result[:RESULT_LINES]
        if len(result) > RESULT_LINES:
            lines.append(((" " * LABEL, ""), (f"… {len(result) - RESULT_LINES} more lines", "dim")))
    return lines


def _arguments(text: str) -> list[tuple[str, str]]:
    if not text:
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [("arguments (not JSON)", one_line(text, 400))]
    if not isinstance(value, dict):
        return [("arguments", one_line(text, 400))]
    return [(one_line(str(name), 60), f'"{one_line(argument_text(item), 400)}"') for name, item in value.items()]
