"""What a run says, as lines: text, reasoning, tools, later turns; retries, errors, criteria that fail."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.runs.events import RunState, StreamPart
from agenteval_tui.runs.run_stream import transcript_parts
from agenteval_tui.transcripts.finish_reason import describe_ending, ending_of
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_text import argument_text
from agenteval_tui.tui.presenters.block_layout import FoldedText, lay_out
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph
from agenteval_tui.tui.presenters.tool_results import result_body
from agenteval_tui.tui.presenters.transcript_blocks import SIMULATED
from agenteval_tui.tui.styled_text import LABEL, Cell, Line, fit, labelled, left, width_of, wrap_to
from agenteval_tui.views.execution import around_sentence

_ENDING = "ending"
"""The last part of a stored transcript: why its answer ended."""
RESULT_LINES = 4  # of a tool result: what streams is followed, Inspect has all of it
PROMPT_LINES = 3  # of what was asked, which must not push the answer out of view
_STYLES = {str: "json-string", bool: "json-literal", int: "json-number", float: "json-number"}
PARTS = 50
"""Parts of a stored transcript that are shown: as many as of one that streams."""


class RunStream:
    """The lines of the chosen run. Parts that did not change since the last time are not laid out again."""

    def __init__(self) -> None:
        self._laid: dict[int, tuple[StreamPart, list[Line]]] = {}
        self._width = 0

    def lines(self, run: RunState, width: int, stored: Sequence[StreamPart] = (), prompt: str = "") -> list[Line]:
        """What was asked, the transcript as far as it streamed, then what went wrong. `stored` are its parts out of the
        history, for a run that ended and of which the view has dropped them. Each line begins with an empty cell."""
        if width != self._width:
            self._laid, self._width = {}, width
        inner, space = width - 1, (" ", "")
        if run.ending:  # said below, of a run that was watched as well
            stored = [part for part in stored if part.kind != _ENDING]
        parts = stored[-PARTS:] or run.parts
        dropped = len(stored) - len(parts) if stored else run.dropped
        lines: list[Line] = []
        if prompt:
            # A simulated user began: it was not asked this, but is what the user wants.
            has_goal = bool(parts) and parts[0].simulated and not dropped
            prompt_lines = labelled("goal" if has_goal else "user", prompt, inner, label_style="role-user", style="")
            if len(prompt_lines) > PROMPT_LINES:
                prompt_lines = [
                    *prompt_lines[: PROMPT_LINES - 1],
                    fit((*prompt_lines[PROMPT_LINES - 1], (" …", "dim")), inner),
                ]
            lines += [(space, *line) for line in wrap_to(prompt_lines, inner)]
        if dropped:
            note = f"… {count(dropped, 'earlier part')}; press enter for the whole transcript"
            lines.append(fit((space, (note, "dim")), width))
        laid: dict[int, tuple[StreamPart, list[Line]]] = {}
        for part in parts:
            cached = self._laid.get(id(part))
            if cached is None:
                cached = (part, [(space, *line) for line in wrap_to(_part(part, inner), inner)])
            laid[id(part)] = cached
            lines += cached[1]
        self._laid = laid
        if not run.ended and run.status == "running" and run.parts and run.parts[-1].kind == "text":
            cursor = ("▌" if UNICODE else "_", "running")
            if width_of(lines[-1]) < width:
                lines[-1] = (*lines[-1], cursor)
            else:
                lines.append((space, cursor))
        lines += [(space, *line) for line in wrap_to(_ending(run, inner), inner)]
        return lines


_NOT_NEEDED = "Not needed: the test's pass rate was decided."


def _ending(run: RunState, width: int) -> list[Line]:
    lines: list[Line] = []
    for message in run.retries:
        lines += [(), *labelled("attempt", f"failed: {message}", width, label_style="error", style="")]
    if run.retry_in_s is not None:
        lines.append(fit(((f"trying again in {run.retry_in_s:.1f} s", "dim"),), width))
    if run.ending:
        lines += [(), *_ended_by(describe_ending(run.ending, run.finish_reason), width)]
    if run.error:
        lines += [(), *labelled(f"{glyph('error')} error", run.error, width, label_style="error", style="")]
        if run.fix:
            lines += labelled("remedy", run.fix, width, label_style="accent", style="")
    for problem in run.around:
        lines += [(), *labelled(problem.kind, around_sentence(problem), width, label_style="warning", style="")]
        if problem.fix:
            lines += labelled("remedy", problem.fix, width, label_style="accent", style="")
    if run.failed:
        lines.append(())
        for name, why in run.failed:
            lines += labelled(f"{glyph('failed')} fails", f"{name}: {why}", width, label_style="failed", style="")
    if run.cached:
        lines += [(), *labelled("cached", "The answer came from the history; no agent was asked.", width, style="dim")]
    if run.status == "skipped":
        # A run that never started was not needed; one that ran was sent by another program, and has no criteria.
        why = "Not graded: it has no criteria." if run.started_ms is not None else _NOT_NEEDED
        lines += labelled("skipped", why, width, style="dim")
    return lines


def _ended_by(reason: str, width: int) -> list[Line]:
    return labelled(f"{glyph('error')} ended", reason, width, label_style="error", style="")


def parts_of(transcript: Transcript) -> list[StreamPart]:
    """A stored transcript as the parts that streamed, with how it ended: for runs that ended long ago."""
    parts, ending = transcript_parts(transcript), ending_of(transcript)
    return parts if ending is None else [*parts, StreamPart(_ENDING, ending.description)]


def _part(part: StreamPart, width: int) -> list[Line]:
    cut = "… " if part.cut else ""
    if part.kind == "user":
        who = SIMULATED if part.simulated else "user"
        return labelled(who, cut + part.text, width, label_style="role-user", style="")
    if part.kind == "text":
        return labelled("assistant", cut + part.text, width, label_style="role-assistant", style="")
    if part.kind == _ENDING:
        return [(), *_ended_by(part.text, width)]
    if part.kind == "reasoning":
        return labelled("reasoning", cut + part.text, width, label_style="reasoning", style="reasoning")
    sign = "▸" if UNICODE else ">"
    state: Cell = ("", "") if part.done else ("  …", "running")
    head: Line = ((left(f"tool {sign}", LABEL), "role-tool"), (one_line(part.name), "bold"), state)
    lines: list[Line] = [fit(head, width)]
    for name, value, style in _arguments(part.arguments):
        lines.append(fit(((" " * LABEL, ""), (f"{name} = ", "json-key"), (value, style)), width))
    if part.done:
        back = "◂" if UNICODE else "<"
        lines += _result(part, back, width)
    return lines


def _result(part: StreamPart, sign: str, width: int) -> list[Line]:
    """The first lines of a tool's result, JSON as a line a key with nested values in short."""
    style = "error" if part.error else "role-tool"
    body = result_body(part.result)
    # What is no JSON is text; so is the rest of a result that was cut.
    if not body.styles or part.cut:
        lines = labelled(f"   {sign}", part.result, width, label_style=style, style="dim")
    else:
        folded = FoldedText(body.text, body.folds, key="")
        room = max(width - LABEL, 1)
        rows = lay_out(folded.text, 0, len(folded.text), room, ranges=folded.ranges(body.styles))
        heads = [left(f"   {sign}" if not number else "", LABEL) for number in range(len(rows))]
        lines = [fit(((head, style), *row.cells), width) for head, row in zip(heads, rows, strict=True)]
    visible = lines[:RESULT_LINES]
    if len(lines) > RESULT_LINES:
        visible.append(((" " * LABEL, ""), (f"… {count(len(lines) - RESULT_LINES, 'more line')}", "dim")))
    return visible


def _arguments(text: str) -> list[tuple[str, str, str]]:
    """The arguments' names, their values as JSON, and the style of each: a text is in quotes, and nothing else is."""
    if not text:
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [("arguments (not JSON)", one_line(text, 400), "json-string")]
    if not isinstance(value, dict):
        return [("arguments", one_line(text, 400), "json-string")]
    return [
        (
            one_line(str(name), 60),
            f'"{one_line(item, 400)}"' if isinstance(item, str) else one_line(argument_text(item), 400),
            _STYLES.get(type(item), ""),
        )
        for name, item in value.items()
    ]
