"""Reads the tests' files that pytest has not read since they were written, as pytest does.

What it makes of a file (with its asserts rewritten) it keeps beside it, with the file's time and size
(`_pytest/assertion/rewrite.py`). Several workers that start at once would each make it of all files. As `make tests`
has it, what is missing is made before they start, once, and without importing or collecting anything. With a pytest
that has no such private parts nothing is done here, and they make it themselves.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import MAGIC_NUMBER
from pathlib import Path

TESTS = Path(__file__).parent
KEPT_AS = f".{sys.implementation.cache_tag}-pytest-{version('pytest')}.pyc"


def is_read(file: Path) -> bool:
    """Whether pytest will find what it made of this file."""
    try:
        with (file.parent / "__pycache__" / (file.stem + KEPT_AS)).open("rb") as kept:
            head = kept.read(16)
    except OSError:
        return False
    status = file.stat()
    return head == MAGIC_NUMBER + struct.pack("<LLL", 0, int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)


def read(file: Path) -> None:
    """Make it of this file, and keep it."""
    from _pytest.assertion import rewrite

    folder = rewrite.get_cache_dir(file)
    folder.mkdir(parents=True, exist_ok=True)
    status, code = rewrite._rewrite_test(file, None)  # type: ignore[arg-type]  # without options of ours
    with (folder / f"{file.stem}.{os.getpid()}").open("wb") as kept:
        rewrite._write_pyc_fp(kept, status, code)
    os.replace(kept.name, folder / (file.stem + KEPT_AS))


if __name__ == "__main__":
    unread = [file for file in sorted([*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]) if not is_read(file)]
    if unread:
        with contextlib.suppress(ImportError, AttributeError, TypeError), ProcessPoolExecutor() as processes:
            for _ in processes.map(read, unread, chunksize=8):
                pass
