"""What `-` means where a file is named: standard input, read once, and only up to a size."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.files import MAX_BYTES

STDIN = Path("-")
NAME = "<stdin>"
"""What it is called in messages, and as the file of a suite."""
LARGEST = 1_000_000_000
"""Bytes of a recording that are taken to be imported or graded line by line."""
_CHUNK = 1 << 20


def read_standard_input(invocation: Invocation, what: str, most: int = MAX_BYTES) -> bytes:
    """All of standard input, which holds `what` (named on a terminal, where a user types it).

    Raises `AgentevalError`: there is none, it was read before, nothing is in it, or more than `most` bytes.
    """
    data = _stream(invocation, what).read(most + 1)
    if len(data) > most:
        raise _too_large(most)
    if not data.strip():
        raise AgentevalError(f"standard input is empty: expected {what}", where=NAME)
    return data


@contextmanager
def standard_input_file(invocation: Invocation, what: str, most: int = LARGEST) -> Iterator[Path]:
    """Standard input as a file named `NAME`, for what reads more than once; gone afterwards. Raises as above."""
    stream = _stream(invocation, what)
    with tempfile.TemporaryDirectory(prefix="agenteval-") as folder:
        path, size = Path(folder, NAME), 0
        with path.open("wb") as file:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > most:
                    raise _too_large(most)
                file.write(chunk)
        if not size:
            raise AgentevalError(f"standard input is empty: expected {what}", where=NAME)
        yield path


def only_once(*files: Path | None) -> None:
    """Raises `AgentevalError` where `-` is named more than once: it can be read once only."""
    if sum(path == STDIN for path in files) > 1:
        raise AgentevalError("standard input can be given only once", fix="give `-` for one file")


def _stream(invocation: Invocation, what: str) -> IO[bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise AgentevalError("there is no standard input", fix="name a file")
    if sys.stdin.isatty():
        invocation.err.line((f"Reading {what} from the terminal. Ctrl+D on an empty line ends it.", "dim"))
        invocation.err.flush()
    return sys.stdin.buffer


def _too_large(most: int) -> AgentevalError:
    return AgentevalError(
        f"standard input has more than {most / 1e6:,.0f} MB", where=NAME, fix="name a file instead of `-`"
    )
