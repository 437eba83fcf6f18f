"""The difference of two runs as lines: what is alike counted, what is not with - and +, its words in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval_tui.cli.output import STYLES, Output, Style, plural
from agenteval_tui.text.display import one_line

if TYPE_CHECKING:
    from agenteval_tui.analysis.alignment import Alignment, Pair, Step
    from agenteval_tui.history.rows import RunRow
    from agenteval_tui.history.store import Store

_LONGEST = 4_000  # characters of a text that only one side has
_AROUND = 2  # lines alike that are printed beside a difference
_SIGNS: dict[str, tuple[str, Style]] = {"left": ("-", "bad"), "right": ("+", "good")}
_WORDS = {"left": ("[-", "-]"), "right": ("{+", "+}")}


def show_difference(out: Output, store: Store, left: RunRow, right: RunRow, *, as_json: bool) -> int:
    """Print what the right run did otherwise than the left one. 0."""
    from agenteval_tui.analysis.alignment import align

    alignment = align(store.transcript(left.id), store.transcript(right.id))
    if as_json:
        from agenteval_tui.exchange.difference_json import difference_document

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
    out.line((f"{plural(len(alignment.differences), 'difference')} in {plural(len(pairs), 'step')}", "dim"))


def print_pair(out: Output, pair: Pair) -> None:
    """A step: of one that both have only what differs."""
    from agenteval_tui.analysis.wording import compare_texts

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
    from agenteval_tui.analysis.wording import in_order_of
    from agenteval_tui.transcripts.tool_text import argument_text

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
        out.line((f"  … {plural(steps, 'step')} alike", "dim"))
