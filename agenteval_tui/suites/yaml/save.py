"""Saving an edited config: only its bytes change, and a file that changed meanwhile is never overwritten."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from agenteval_tui.core.atomic_write import write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.files import BOM, read_bytes
from agenteval_tui.suites.load import LoadedSuite, load_bytes
from agenteval_tui.suites.yaml.splice import splice


class FileChanged(AgentevalError):  # noqa: N818  (part of the API)
    """The file on disk is not the one that was read. `diff`: a unified difference from then to now."""

    def __init__(self, where: str, diff: str) -> None:
        super().__init__(
            "this file has changed on disk since it was read", where=where, fix="load it again, then edit again"
        )
        self.diff = diff


class SaveFailed(AgentevalError):  # noqa: N818  (part of the API)
    """Nothing was written, and nothing is lost: the edited text is still with the caller."""


def save_config(loaded: LoadedSuite, test_id: str, criterion: int, new_text: str) -> LoadedSuite:
    """Write `new_text` as the config of a test's criterion (0-based), and return the suite as it then is.

    Every byte outside of the value stays, with encoding, byte order mark, line ends and the file's mode. See
    `splice.splice` for how the value is written. Raises `FileChanged` when the file is not the one that was read,
    and `SaveFailed` when it can't be written so or at all; then the file is as it was.
    """
    where = str(loaded.path)
    try:
        new_text.encode("utf-8")
    except UnicodeEncodeError:
        raise SaveFailed(
            "this config holds half a character (a lone surrogate)", where=where, fix="remove it"
        ) from None
    check_unchanged(loaded)
    node = loaded.config_node(test_id, criterion)
    if loaded.root is None or not loaded.whole:
        raise SaveFailed("the file has a YAML error further down", where=where, fix="fix that first")
    result = splice(loaded.text, loaded.root, node, new_text)
    if result is None:
        raise SaveFailed(
            "this config can't be written without other changes",
            where=f"{where}:{loaded.places.line_and_column(node.start)[0]}",
            fix="if it is shared through an anchor or `<<`, edit the file itself",
        )
    if result == loaded.text:
        return loaded
    data = loaded.encoded(result)
    saved = load_bytes(data, loaded.path)
    lost = (
        {test.id for test in loaded.suite.tests} - {test.id for test in saved.suite.tests}
        if loaded.suite and saved.suite
        else set()
    )
    if lost or (saved.suite is None and loaded.suite is not None):
        raise SaveFailed("the saved suite would differ from the one on the screen", where=where)
    write_over(loaded, data)
    return saved


def bytes_of(loaded: LoadedSuite) -> bytes:
    """The file's bytes as they are now. Raises `SaveFailed`."""
    try:
        return read_bytes(loaded.path)
    except AgentevalError as error:
        raise SaveFailed(error.what, where=error.where, fix="the edited text is not lost; save it elsewhere") from None


def check_unchanged(loaded: LoadedSuite) -> None:
    """Raises `FileChanged` when the file's bytes are not those that were read any more, and `SaveFailed` as
    `bytes_of`."""
    data = bytes_of(loaded)
    if hashlib.sha256(data).hexdigest() == loaded.digest:
        return
    now = data.removeprefix(BOM).decode("utf-8", "replace")
    import difflib

    diff = difflib.unified_diff(
        loaded.text.splitlines(keepends=True),
        now.splitlines(keepends=True),
        f"{loaded.path.name} (as it was read)",
        f"{loaded.path.name} (on disk now)",
    )
    lines = (line if line.endswith("\n") else line + "\n\\ no newline at the end\n" for line in diff)
    raise FileChanged(str(loaded.path), "".join(lines))


def write_over(loaded: LoadedSuite, data: bytes) -> None:
    """Replace the file as one step: all of it or nothing, also when the machine stops midway."""
    path = loaded.path.resolve()  # a link stays a link
    where = str(loaded.path)
    try:
        before = path.stat()
        if not os.access(path, os.W_OK):
            raise SaveFailed("this file is read-only", where=where, fix="change its permissions, or save elsewhere")

        def check(_: Path) -> None:
            check_unchanged(loaded)  # once more, just before: others write as well

        write_whole(path, (data,), like=before, check=check)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SaveFailed(
            f"this file can't be saved: {reason}",
            where=where,
            fix="check the permissions and the space of its folder; the edited text is not lost",
        ) from None
