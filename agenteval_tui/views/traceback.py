"""A traceback as lines: the exception, the project's frames with the last call first, what is folded, its causes."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from msgspec import Struct

from agenteval_tui.analysis.function_exceptions import Raised
from agenteval_tui.core.display import one_line, printed_lines
from agenteval_tui.core.numbers import count
from agenteval_tui.transcripts.traceback import RaisedException, Traceback, frame_places
from agenteval_tui.views.model import Paragraph, Text, View, text

_MOST_PACKAGES = 3
_MOST_MESSAGE_LINES = 12
_MOST_PRINTED = 20  # lines
_RELATIONS = {"cause": "caused by ", "context": "while handling ", "member": "with "}


class TracebackLine(Struct, frozen=True):
    """A line. `place`: exception and frame that it belongs to; `is_head`: it names the frame."""

    words: Text
    indent: int = 0
    place: tuple[int, int] | None = None
    is_head: bool = False


def traceback_lines(traceback: Traceback, *, all_frames: bool = False) -> Iterator[TracebackLine]:
    """The lines of a traceback. Frames of packages are one line together, unless `all_frames` are wanted; without any
    of the project, those that raised are shown, without their variables."""
    places = set(frame_places(traceback, all_frames=all_frames))
    for number, raised in enumerate(traceback.exceptions):
        depth = _depth(traceback, number)
        yield from _head(raised, depth)
        # The place that raised comes first: where it was called from is asked for later, if at all.
        for place in reversed(range(len(raised.frames))):
            if (number, place) in places:
                yield from _frame(raised, number, place, depth + 1, all_frames)
        # Frames of packages are rarely what has to be changed: counted, with whose they are.
        hidden = [frame.file for place, frame in enumerate(raised.frames) if (number, place) not in places]
        if hidden:
            where = ", ".join(list(dict.fromkeys(map(package_of, hidden)))[:_MOST_PACKAGES])
            yield TracebackLine(text((f"{count(len(hidden), 'frame')} of packages: {where}", "dim")), depth + 1)
        if raised.left_out:
            yield TracebackLine(text((f"{count(raised.left_out, 'more frame')}, not kept", "dim")), depth + 1)


def traceback_view(traceback: Traceback, indent: int = 0) -> View:
    """The lines as a view, `indent` cells in."""
    return tuple(Paragraph(line.words, indent + 2 * line.indent) for line in traceback_lines(traceback))


def traceback_block(traceback: Traceback) -> tuple[str, ...]:
    """The lines as plain text, indented."""
    return tuple("  " * line.indent + "".join(part for part, _ in line.words) for line in traceback_lines(traceback))


def raised_title(raised: Raised) -> str:
    """Which function it was that raised."""
    of = {"hook": f" ({raised.of})", "function": f", for the criterion {raised.of}"}.get(raised.kind, "")
    return f"raised by the {raised.kind} {raised.name}{of}"


def raised_block(raised: Raised) -> tuple[str, ...]:
    """Its traceback as plain text, and what it printed."""
    printed = tuple(f"  {line}" for line in printed_lines(raised.output)[-_MOST_PRINTED:])
    return (*traceback_block(raised.traceback), *(("printed:", *printed) if printed else ()))


def package_of(file: str) -> str:
    """The package or module that a file outside of the project is in: `pydantic_ai`, `asyncio`."""
    name = file.replace("\\", "/").removeprefix("node:").lstrip("/").partition("/")[0]
    return one_line(name.removesuffix(".py"), 40)


def _depth(traceback: Traceback, number: int) -> int:
    """Members of a group are one deeper than the group."""
    depth, raised = 0, traceback.exceptions[number]
    while raised.parent is not None:
        depth += raised.relation == "member"
        raised = traceback.exceptions[raised.parent]
    return depth


def _head(raised: RaisedException, depth: int) -> Iterator[TracebackLine]:
    first, *rest = raised.message.splitlines() or [""]
    is_signal = raised.type in signal.Signals.__members__
    name = f"was ended by the signal {raised.type}" if is_signal else one_line(raised.type)
    yield TracebackLine(
        text(
            (_RELATIONS.get(raised.relation, ""), "dim"), (name, "broken bold"), (f": {first}" if first else "", "code")
        ),
        depth,
    )
    for line in rest[:_MOST_MESSAGE_LINES]:
        yield TracebackLine(text((line, "code")), depth + 1)
    if len(rest) > _MOST_MESSAGE_LINES:
        yield TracebackLine(text((f"… {count(len(rest) - _MOST_MESSAGE_LINES, 'more line')}", "dim")), depth + 1)


def _frame(raised: RaisedException, number: int, place: int, depth: int, all_frames: bool) -> Iterator[TracebackLine]:
    frame, key = raised.frames[place], (number, place)
    where = one_line(frame.file) + (f":{frame.line}" if frame.line else "")
    name = f" in {one_line(frame.function)}" if frame.function else ""
    tokens = "bold code" if frame.project else "dim code"
    yield TracebackLine(text((where, tokens), (name, "dim code")), depth, key, is_head=True)
    if frame.source:
        yield TracebackLine(text((one_line(frame.source), "code")), depth + 1, key)
    for variable, value in frame.locals.items() if frame.project or all_frames else ():
        words = text((f"{one_line(variable)} = {one_line(value)}", "dim code"))
        yield TracebackLine(words, depth + 2, key)
