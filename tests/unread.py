"""Reads the files that pytest and hypothesis have not read since they were written, as they do.

What pytest makes of a test's file (with its asserts rewritten) it keeps beside it, with the file's time and size
(`_pytest/assertion/rewrite.py`). Of the program's files hypothesis keeps the constants, for its examples
(`hypothesis/internal/constants_ast.py`). Several workers that start at once would each make it of all files. As
`make tests` has it, what is missing is made before they start, once, and without importing or collecting anything.
With versions that have no such private parts nothing is done here, and they make it themselves.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "agenteval_tui"
CONSTANTS = TESTS.parent / ".hypothesis" / "constants"
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


def has_constants(file: Path) -> bool:
    """Whether hypothesis will find what it made of this file."""
    return (CONSTANTS / hashlib.sha1(file.read_bytes()).hexdigest()[:16]).exists()


def read_constants(file: Path) -> None:
    """Make it of this file, and keep it."""
    from hypothesis.internal.constants_ast import constants_from_module

    module = ModuleType(file.stem)
    module.__file__ = str(file)
    constants_from_module(module)


def read_all(read_one: Callable[[Path], None], files: list[Path]) -> None:
    if files:
        with contextlib.suppress(ImportError, AttributeError, TypeError), ProcessPoolExecutor() as processes:
            for _ in processes.map(read_one, files, chunksize=8):
                pass


if __name__ == "__main__":
    tests = sorted([*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")])
    read_all(read, [file for file in tests if not is_read(file)])
    read_all(read_constants, [file for file in sorted(PACKAGE.rglob("*.py")) if not has_constants(file)])
