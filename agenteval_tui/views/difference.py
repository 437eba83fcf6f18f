"""The difference of two runs as shown: what one did differently from the other, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agenteval_tui.analysis.divergence import first_change
from agenteval_tui.analysis.text_diff import compare_texts, in_order_of
from agenteval_tui.analysis.trajectory_alignment import Alignment, Pair, Step
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, decimal
from agenteval_tui.history.records import RunRow
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_text import argument_text
from agenteval_tui.views.divergence import step_change_text
from agenteval_tui.views.evidence import place_of
from agenteval_tui.views.model import Element, Paragraph, Span, View, outcome_text, plain, text

_LONGEST = 4_000  # characters of a text that only one side has
_AROUND = 2  # lines alike that are shown beside a difference
_SIGNS: dict[str, Span] = {"left": ("-", "removed"), "right": ("+", "added")}
_WORDS = {"left": ("[-", "-]"), "right": ("{+", "+}")}


def verdict_text(alignment: Alignment) -> str:
    """How much differs: `2 differences in 8 steps; 1 reasoning differs`."""
    number, thoughts = len(alignment.differences), alignment.thoughts
    also = f"; {thoughts:,} {'reasoning differs' if thoughts == 1 else 'reasonings differ'}" if thoughts else ""
    if not number:
        return f"both runs took the same steps{also}"
    return f"{count(number, 'difference')} in {count(len(alignment.pairs), 'step')}{also}"


def alike_text(number: int, what: str = "step") -> str:
    """`8 steps alike`."""
    return f"{count(number, what)} alike"


def ended_text(step: Step) -> str:
    """How a tool's call ended, where it ended otherwise beside it."""
    return "it failed" if has_failed(step) else "it succeeded"


def has_failed(step: Step) -> bool:
    """Is it the result of a call that failed?"""
    return step.kind == "result" and step.call is not None and step.call.status == "error"


def difference_view(left: RunRow, right: RunRow, alignment: Alignment, width: int = 100) -> View:
    """Both runs, then the steps in order. Of those that are the same one before and after each difference is shown, in
    `width` cells, and the others are counted."""
    return (*(_run(row, side) for row, side in ((left, "left"), (right, "right"))), *_steps(alignment, width))


def context_view(left: Transcript, right: Transcript) -> View:
    """Where the models of both runs were first given something else, if nothing that they did differed before."""
    change = first_change(left, right)
    acts = () if change is None else (change.was, change.now)
    if not any(act is not None and act.kind in ("asked", "context") for act in acts):
        return ()
    return (Paragraph(text(("what the models were given differs at ", "warn"), step_change_text(change))),)


def _run(row: RunRow, side: str) -> Paragraph:
    status, token = outcome_text(row.status)
    score = f" {decimal(row.score)}" if row.score is not None else ""
    place = one_line(plain(place_of(row)))
    return Paragraph(text(_SIGNS[side], f" {row.id}  ", (status + score, token), (f"  {place}", "dim")))


def _steps(alignment: Alignment, width: int) -> Iterator[Element]:
    pairs = alignment.pairs
    near = {
        place for number, pair in enumerate(pairs) if pair.state != "same" for place in range(number - 1, number + 2)
    }
    hidden = 0
    yield Paragraph(())
    for number, pair in enumerate(pairs):
        if number not in near:
            hidden += 1
            continue
        yield from _hidden(hidden)
        hidden = 0
        yield from _pair(pair, width)
    yield from _hidden(hidden)
    yield Paragraph(text((verdict_text(alignment), "dim")))


def _hidden(steps: int) -> Iterator[Element]:
    if steps:
        yield Paragraph(text((f"… {alike_text(steps)}", "dim")), 2)


def _pair(pair: Pair, width: int) -> Iterator[Element]:
    """A step: of one that both have only what differs."""
    head = _head(pair.step)
    if pair.state == "same":
        alike = one_line(_text(pair.step), max(width - len(head) - 6, 20))
        yield Paragraph(text((head, "bold"), "  ", (alike, "dim")), 2)
        return
    if pair.left is None or pair.right is None:
        side = "right" if pair.left is None else "left"
        yield Paragraph(text(_SIGNS[side], " ", (head, "bold")))
        whole = _text(pair.step)
        yield from _lines(whole[:_LONGEST], side, ())
        if len(whole) > _LONGEST:
            yield Paragraph(text(_SIGNS[side], (f"    … {len(whole) - _LONGEST:,} more characters", "dim")))
        return
    yield Paragraph(text((head, "bold")), 2)
    yield from texts_view(_text(pair.left), _text(pair.right, pair.left))
    if has_failed(pair.left) != has_failed(pair.right):
        for step, side in ((pair.left, "left"), (pair.right, "right")):
            yield Paragraph(text(_SIGNS[side], "   ", (ended_text(step), _SIGNS[side][1])))


def texts_view(left: str, right: str) -> Iterator[Element]:
    """Two texts: the lines of only one text with its sign, the words that differ in brackets; of the lines that both
    have those beside a difference."""
    for stretch in compare_texts(left, right):
        if stretch.same:
            yield from _alike(left[slice(*stretch.left)].splitlines())
        else:
            yield from _lines(left[slice(*stretch.left)], "left", _shifted(stretch.left_words, stretch.left[0]))
            yield from _lines(right[slice(*stretch.right)], "right", _shifted(stretch.right_words, stretch.right[0]))


def _alike(lines: Sequence[str]) -> Iterator[Element]:
    """Lines that both have: all where they are few, else the first and the last."""
    hidden = len(lines) - 2 * _AROUND
    for number, line in enumerate(lines):
        # In place of a single line a note would take as much room.
        if hidden <= 1 or number < _AROUND or number >= len(lines) - _AROUND:
            yield Paragraph(text((line, "dim")), 4)
        elif number == _AROUND:
            yield Paragraph(text((f"… {alike_text(hidden, 'line')}", "dim")), 4)


def _head(step: Step) -> str:
    if step.kind == "call":
        return f"tool {one_line(step.name, 60)}"
    if step.kind == "state":
        return f"state {one_line(step.name, 60)}"
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


def _lines(words: str, side: str, differing: Sequence[tuple[int, int]]) -> Iterator[Element]:
    sign, token = _SIGNS[side]
    before, after = _WORDS[side]
    # A line that differs as a whole needs no brackets: its sign says it.
    if sum(end - start for start, end in differing) < len(words.strip()):
        # From the end, so that the places before stay where they are.
        for start, end in reversed(differing):
            words = f"{words[:start]}{before}{words[start:end]}{after}{words[end:]}"
    for line in words.splitlines():
        yield Paragraph(text((f"{sign}   {line}", token)))


def _shifted(words: Sequence[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(start - by, end - by) for start, end in words]
