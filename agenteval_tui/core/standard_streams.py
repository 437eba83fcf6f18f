"""Standard input, output and error: closed when the program started (`2>&-`), or taken away while it runs."""

from __future__ import annotations

import os
import select
import sys
from typing import IO

_STANDARD = (("stdin", os.O_RDONLY, "r"), ("stdout", os.O_WRONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def open_missing_descriptors() -> None:
    """Open what is missing of the three on the null device, before anything else takes their numbers.

    A file, a socket or the history would else get the number 2, and what is said of errors would be written into it.
    To be called first, by every process of the program. Does nothing where all three are open.
    """
    for number, (name, flags, mode) in enumerate(_STANDARD):
        if getattr(sys, name) is not None and _is_open(number):
            continue
        if not _is_open(number):
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)  # as the three always are
        if getattr(sys, name) is None:
            # Where Python found none at its start, the number may be a file of somebody else's by now.
            target = number if _is_null(number) else os.devnull
            errors = "backslashreplace" if mode == "w" else "strict"
            stream = open(target, mode, encoding="utf-8", errors=errors, closefd=target is not number)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def has_hung_up(stream: IO[str] | None) -> bool:
    """Whether the other end of a terminal or pipe is closed. False for a file, and for a stream that is None."""
    if stream is None:
        return False
    poll = select.poll()
    poll.register(stream, 0)  # a hang-up is reported even though no event is asked for
    return any(event & select.POLLHUP for _, event in poll.poll(0))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_null(number: int) -> bool:
    status, null = os.fstat(number), os.stat(os.devnull)  # noqa: PTH116 - nothing else is imported for it
    return (status.st_dev, status.st_ino, status.st_rdev) == (null.st_dev, null.st_ino, null.st_rdev)
