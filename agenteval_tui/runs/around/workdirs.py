"""The working folders of runs: an empty folder, or a copy of one, for each attempt.

They lie beside the history, in a folder named by the run. That of a run that passed is removed; the others are kept
until the history forgets the run.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.open_histories import is_of_open_history
from agenteval_tui.core.private_files import make_private
from agenteval_tui.history.workdirs import remove_workdirs
from agenteval_tui.runs.around.plan import COPY, Surroundings
from agenteval_tui.suites.tool_files import require_inside

MOST_BYTES = 500_000_000
"""Of a folder that is copied for each run; `MOST_FILES`: its files and folders."""
MOST_FILES = 20_000


class WorkdirError(AgentevalError):
    """A working folder that can't be created. `why`: missing, link, special, size, history, unreadable, full."""

    def __init__(self, why: str, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.why = why


def make_workdir(around: Surroundings, root: Path, run: str, *, trusted: bool) -> Path:
    """The working folder of a run, new: what another attempt left there is gone. Raises `WorkdirError`. Blocks."""
    folder = root / run
    remove_workdirs(root, [run])
    try:
        make_private(root)
        if around.workdir == COPY:
            _copy(_source(around, root, trusted), folder)
        else:
            folder.mkdir(mode=0o700, parents=True)  # another execution may have removed it meanwhile
    except OSError as error:
        remove_workdirs(root, [run])
        message = f"the run's working folder can't be created: {error.strerror or error}"
        raise WorkdirError(
            "full", message, where=str(folder), fix="check the permissions and the space there"
        ) from None
    except BaseException:
        remove_workdirs(root, [run])
        raise
    return folder


def _source(around: Surroundings, root: Path, trusted: bool) -> Path:
    where = f"workdir: {{copy: {around.copied}}}"
    source = require_inside(around.copied, Path(around.folder), trusted=trusted, what="folder")
    if not source.is_dir():
        what = "is not a folder" if source.exists() else "does not exist"
        fix = f"it is looked for in {around.folder}"
        raise WorkdirError("missing", f"the folder to copy, {around.copied}, {what}", where=where, fix=fix)
    if root.resolve().is_relative_to(source):
        raise _has_history(source)
    return source


def _has_history(source: Path) -> WorkdirError:
    message = f"the folder to copy, {source.name}, holds the history of this execution"
    return WorkdirError(
        "history", message, where=str(source), fix="copy a folder without it, or move it with --db FILE"
    )


def _copy(source: Path, target: Path) -> None:
    """Copy a folder within bounds. Links stay links, if they lead to something in the folder."""
    files = size = 0
    for here, folders, names in os.walk(source, onerror=_raise):
        place = target / Path(here).relative_to(source)
        place.mkdir(mode=0o700, parents=True)
        for name in (*folders, *names):
            files += 1
            path = Path(here, name)
            status = path.lstat()
            inside = path.relative_to(source)
            if stat.S_ISLNK(status.st_mode):
                _copy_link(source, path, place / name)
                continue
            if stat.S_ISDIR(status.st_mode):
                continue
            if not stat.S_ISREG(status.st_mode):
                message = f"{inside} in the folder to copy is not a file, a folder or a link"
                raise WorkdirError("special", message, where=str(path), fix="remove it, or copy another folder")
            if is_of_open_history(path):  # to open it would let go of SQLite's locks
                raise _has_history(source)
            size += status.st_size
            if size > MOST_BYTES or files > MOST_FILES:
                limit = f"{MOST_BYTES / 1e6:,.0f} MB" if size > MOST_BYTES else f"{MOST_FILES:,} files"
                message = f"the folder to copy has more than {limit}"
                raise WorkdirError("size", message, where=str(source), fix="copy a smaller folder for each run")
            shutil.copy2(path, place / name)


def _copy_link(source: Path, link: Path, target: Path) -> None:
    to = link.readlink()
    if to.is_absolute() or not Path(os.path.normpath(link.parent / to)).is_relative_to(source):
        message = f"the link {link.relative_to(source)} leads out of the folder to copy, to {to}"
        raise WorkdirError("link", message, where=str(link), fix="copy what it leads to into the folder")
    target.symlink_to(to)


def _raise(error: OSError) -> None:
    message = f"the folder to copy can't be read: {error.strerror or error}"
    raise WorkdirError("unreadable", message, where=str(error.filename or ""), fix="check its permissions") from None
