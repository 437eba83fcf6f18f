"""Prints the tests' files that pytest has not read since they were written: what it makes of a file (with its asserts
rewritten) it keeps beside it, with the file's time and size (`_pytest/assertion/rewrite.py`).

Several workers that start at once would each make it of all files: as `make tests` has it, one process makes what is
missing, before they start.
"""

from __future__ import annotations

import struct
import sys
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


if __name__ == "__main__":
    for file in sorted([*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]):
        if not is_read(file):
            # A conftest is read with whatever is collected below it.
            print(min(file.parent.rglob("test_*.py")) if file.name == "conftest.py" else file)
