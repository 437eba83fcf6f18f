"""Taking back a change of a suite's file: the bytes from before it are written again, where nobody wrote since."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.save import SaveFailed, read_again, write_over
from agenteval_tui.text.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Written:
    """One file of a change: its bytes before, and the SHA-256 of its bytes behind it."""

    path: Path
    before: bytes
    after: str


def written(loaded: LoadedSuite, change_to: LoadedSuite, before: bytes) -> Written | None:
    """What to remember of a change from `loaded`, whose bytes were `before`; None when it changed nothing."""
    if change_to.digest == loaded.digest or hashlib.sha256(before).hexdigest() != loaded.digest:
        return None
    return Written(change_to.path, before, change_to.digest)


def take_back(one: Written) -> LoadedSuite:
    """Write the bytes from before. Raises `SaveFailed` when the file is another one by now, or can't be written."""
    now = load_suite(one.path)
    if now.digest != one.after:
        raise SaveFailed(
            "this file was changed since, so the change can't be undone", where=str(one.path),
            mend="undo it in an editor, or with your version control",
        )  # fmt: skip
    write_over(now, one.before)
    return load_suite(one.path)


def bytes_of(loaded: LoadedSuite) -> bytes:
    """The file's bytes as they are now. Raises `SaveFailed`."""
    return read_again(loaded)
