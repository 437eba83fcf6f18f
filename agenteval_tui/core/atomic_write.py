"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError


def write_pieces(path: Path, pieces: Iterable[str], *, force: bool = False) -> None:
    """Write a text piece by piece; the file is there when all of it is.

    Raises `AgentevalError`, also when there is a file of that name and `force` is not set.
    """
    temporary = path.with_name(f".{path.name[:50]}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        if path.is_dir():
            raise AgentevalError("this is a folder", where=str(path), mend="name a file in it")
        try:
            with temporary.open("x", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            if force:
                temporary.replace(path)
            else:
                os.link(temporary, path)  # fails where there is a file, also one that came this moment
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except FileExistsError:
        raise AgentevalError(
            "there is a file of this name already, and it is not written over", where=str(path), mend="name another"
        ) from None
    except OSError as error:
        raise AgentevalError(f"this file can't be written: {error.strerror or error}", where=str(path)) from None
