"""The traceback of an error: the exceptions with their frames, as data. Nothing is judged by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import replace

from agenteval_tui.core.document import Figure, one_of

PYTHON = "python"
Relation = Literal["", "cause", "context", "member"]
MOST_EXCEPTIONS = 32
MOST_FRAMES = 400
"""Of all exceptions of a traceback together."""


class Frame(Struct, frozen=True, omit_defaults=True):
    """A call. `file`: from the suite's folder for a file of the `project`; for others, the path by which it is
    imported. `line` counts from 1 (0: not known). `locals`: variables as they are shown, where they were kept."""

    file: Annotated[
        str,
        Meta(description="from the suite's folder for a file of the project, else the path that it is imported by"),
    ]
    line: Annotated[Figure, Meta(description="from 1; absent where it is not known")] = 0
    function: str = ""
    source: Annotated[str, Meta(description="the line itself")] = ""
    project: Annotated[bool, Meta(description="it is the project's, no package's")] = False
    locals: Annotated[
        Mapping[str, str], Meta(description="variables as they are shown, of the project's last two frames")
    ] = field(default_factory=dict)


class RaisedException(Struct, frozen=True, omit_defaults=True):
    """An exception with its frames, the first call first. `left_out`: how many frames in their middle were not kept.

    `relation`: what it is to the exception with the number `parent`: its cause (`raise ... from`), its context (it was
    being handled), or a member of it (a group).
    """

    type: str
    message: str = ""
    frames: Annotated[tuple[Frame, ...], Meta(description="the first call first")] = ()
    left_out: Annotated[Figure, Meta(description="how many frames in their middle were not kept")] = 0
    relation: Annotated[
        Relation,
        Meta(description="what it is to its parent: its cause, what was being handled, or a member of a group"),
    ] = ""
    parent: Annotated[Figure | None, Meta(description="the number of the exception that it belongs to")] = None


class Traceback(Struct, frozen=True, omit_defaults=True):
    """What was raised is the first of the `exceptions`; a parent comes before what belongs to it."""

    exceptions: tuple[RaisedException, ...]
    language: Annotated[str, one_of("python", "javascript")] = field(default_factory=lambda: PYTHON)

    @property
    def place(self) -> tuple[int, int] | None:
        """Exception and frame to look at first: the project's last one, of the first exception that has any; else the
        last frame of all. None without frames."""
        places = frame_places(self)
        return places[0] if places else None


def raised_words(traceback: Traceback) -> str:
    """What was raised, on one line, with the last place in the project."""
    raised = traceback.exceptions[0]
    words = f"{raised.type}: {raised.message}" if raised.message else raised.type
    frame = _last_in_project(raised)
    return words if frame is None else f"{words} ({PurePath(frame.file).name}, line {frame.line})"


def place_words(traceback: Traceback | None) -> str:
    """ " in find (tools.py, line 5)": the last place in the project; "" if there is none."""
    frame = None if traceback is None else _last_in_project(traceback.exceptions[0])
    return "" if frame is None else f" in {frame.function} ({PurePath(frame.file).name}, line {frame.line})"


def _last_in_project(raised: RaisedException) -> Frame | None:
    return next((frame for frame in reversed(raised.frames) if frame.project), None)


def frame_places(traceback: Traceback, *, all_frames: bool = False) -> list[tuple[int, int]]:
    """Exception and frame of what is shown, in the order in which it is: for each exception the project's frames, the
    last call first. Where the project has none at all, of each exception the frame that raised it. With `all_frames`
    all."""
    own = any(frame.project for raised in traceback.exceptions for frame in raised.frames)
    places = []
    for number, raised in enumerate(traceback.exceptions):
        last = len(raised.frames) - 1
        own_places = [
            place
            for place, frame in enumerate(raised.frames)
            if all_frames or frame.project or (not own and place == last)
        ]
        places += [(number, place) for place in reversed(own_places)]
    return places


def traceback_from(data: object) -> Traceback | None:
    """The traceback in JSON data that somebody's program gave; None where it holds none, or no whole one."""
    if data is None:
        return None
    try:
        traceback = convert(data, Traceback)
    except (ValidationError, RecursionError):
        return None
    return bounded(traceback)


def bounded(traceback: Traceback) -> Traceback | None:
    """The traceback with as much of it as is kept; None if it is empty, or a parent comes after what belongs to it."""
    room, exceptions = MOST_FRAMES, []
    for number, raised in enumerate(traceback.exceptions[:MOST_EXCEPTIONS]):
        if raised.parent is not None and not 0 <= raised.parent < number:
            return None
        frames = raised.frames[-room:] if room else ()
        room -= len(frames)
        exceptions.append(replace(raised, frames=frames, left_out=raised.left_out + len(raised.frames) - len(frames)))
    return replace(traceback, exceptions=tuple(exceptions)) if exceptions else None


def traceback_data(traceback: Traceback) -> dict[str, Any]:
    """As JSON data, which `traceback_from` reads."""
    plain: dict[str, Any] = to_builtins(traceback)
    return plain


def with_texts(traceback: Traceback, change: Callable[[str], str]) -> Traceback:
    """The traceback with all of its texts changed; the same object where `change` leaves them as they are."""
    exceptions = tuple(
        [
            replace(
                raised,
                type=change(raised.type),
                message=change(raised.message),
                frames=tuple(
                    [
                        replace(
                            frame,
                            file=change(frame.file),
                            function=change(frame.function),
                            source=change(frame.source),
                            locals={change(name): change(value) for name, value in frame.locals.items()},
                        )
                        for frame in raised.frames
                    ]
                ),
            )
            for raised in traceback.exceptions
        ]
    )
    return traceback if exceptions == traceback.exceptions else replace(traceback, exceptions=exceptions)
