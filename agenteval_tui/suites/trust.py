"""Which repositories the user trusts to run code on this machine, and which secrets they may send where.

A repository is trusted once, with all that is and will be in it, as in an editor. What was agreed for a secret is a
variable and an address: a new address is a new question. `docs/trust.md` says what this protects from.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core import directories
from agenteval_tui.core.atomic_write import PRIVATE, locked, write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import cut
from agenteval_tui.core.private_files import make_private, open_to_others, read_small

VARIABLE = "AGENTEVAL_TRUST"
"""The variable of the environment that allows everything, as `--trust` does."""
MAX_REPOSITORIES = 500
_VERSION = 3
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg")
"""Without git, the nearest folder with one of these is the project (as in `agents/process/python_project.py`)."""
_RUN_HERE: set[str] = set()


class Sending(Struct, frozen=True, order=True):
    """A secret and where it would go: the name of a variable, and a host (on this machine with its port), or the
    address as it is written where a variable is part of it."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"sends {self.name} to {cut(self.address, 300)}"


class TrustedRepository(Struct, frozen=True):
    """A trusted repository: its absolute path, since when (ISO 8601, UTC), and where which secrets may go."""

    folder: str
    when: str
    sends: tuple[Sending, ...] = ()


class Trust(Struct):
    """The trusted repositories. `problem` says why their list could not be read; then none is trusted."""

    path: Path
    problem: str = ""
    _repositories: dict[str, TrustedRepository] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path | None = None) -> Trust:
        """Read `trust.json` of the user's data folder; never raises."""
        trust = cls(directories.data_dir() / "trust.json" if path is None else path)
        trust._read()
        return trust

    def is_trusted(self, folder: Path) -> bool:
        """Whether code in this folder may run."""
        root = repository_of(folder)
        return str(root) in _RUN_HERE or self._entry(root) is not None

    def new_sends(self, folder: Path, sends: Iterable[Sending]) -> tuple[Sending, ...]:
        """Those that were not agreed for the repository of this folder."""
        entry = self._entry(repository_of(folder))
        agreed = entry.sends if entry is not None else ()
        return tuple(sending for sending in sends if sending not in agreed)

    def why_not(self, folder: Path, sends: Iterable[Sending] = ()) -> str:
        """Why code in this folder may not run, or these secrets may not be sent, in a sentence; "" if they may."""
        if not self.is_trusted(folder):
            return self.problem or f"this {kind_of(repository_of(folder))} is not trusted yet"
        if self.new_sends(folder, sends):
            return f"this {kind_of(repository_of(folder))} is trusted, but not to send this there"
        return ""

    def trust(self, folder: Path, sends: Iterable[Sending] = ()) -> TrustedRepository:
        """Trust the repository of this folder, and agree that it sends these secrets, beside those agreed before.

        Raises `AgentevalError` for a folder that is too wide to be trusted as a whole, and if it can't be saved.
        """
        root = repository_of(folder)
        if wide := _too_wide(root):
            raise AgentevalError(
                f"this is {wide}, which can't be trusted as a whole",
                where=str(root),
                fix="move the suites into their own folder, or run with --trust",
            )
        with self._changing():
            before = self._repositories.get(str(root))
            agreed = {*(before.sends if before is not None else ()), *sends}
            when = before.when if before is not None else datetime.now(UTC).isoformat(timespec="seconds")
            entry = TrustedRepository(str(root), when, tuple(sorted(agreed)))
            self._repositories[str(root)] = entry
            while len(self._repositories) > MAX_REPOSITORIES:
                self._repositories.pop(min(self._repositories.values(), key=lambda other: other.when).folder)
        return entry

    def revoke(self, folder: Path) -> str:
        """No longer trust the repository of this folder. Gives its path, "" if it was not trusted. Raises
        `AgentevalError` if that can't be saved."""
        self._read()
        # By its own path as well: what was trusted as a folder may be in a repository by now.
        entry = self._entry(repository_of(folder)) or self._repositories.get(os.path.realpath(folder))
        if entry is None:
            return ""
        with self._changing():
            self._repositories.pop(entry.folder, None)
        return entry.folder

    def listed(self) -> list[TrustedRepository]:
        """The trusted repositories, by path."""
        return sorted(self._repositories.values(), key=lambda entry: entry.folder)

    def _entry(self, root: Path) -> TrustedRepository | None:
        """What was said of this repository. A folder without git is trusted with the trusted folder around it."""
        exact = self._repositories.get(str(root))
        if exact is not None or _is_git(root):
            return exact
        return next(
            (self._repositories[str(parent)] for parent in root.parents if str(parent) in self._repositories), None
        )

    def _read(self) -> None:
        self._repositories, self.problem = {}, ""
        try:
            text = read_small(self.path, "it")
            if text is None:
                return
            # Whoever can write the list could trust their own code.
            if others := open_to_others(self.path):
                self.problem = f"{others}, so the list of trusted repositories is ignored: none is trusted"
                return
            data = json.loads(text)
            if data["version"] == _VERSION:
                self._repositories = {entry.folder: entry for entry in map(_from_json, data["repositories"])}
        except AgentevalError as error:
            self.problem = (
                f"the list of trusted repositories can't be read ({self.path}: {error.what}): none is trusted"
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.problem = f"the list of trusted repositories is damaged ({self.path}): none is trusted"

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Read what others wrote meanwhile, let it be changed, and write it in one step."""
        try:
            make_private(self.path.parent)
            with locked(self.path.with_suffix(".lock")):
                self._read()
                yield
                data = {"version": _VERSION, "repositories": [_to_json(entry) for entry in self.listed()]}
                text = json.dumps(data, indent=1).encode()
                write_whole(self.path, (text,), mode=PRIVATE)
                self.problem = ""
        except OSError as error:
            raise AgentevalError(
                f"the list of trusted repositories can't be saved: {error.strerror or error}",
                where=str(self.path),
                fix="check the permissions and the space of its folder",
            ) from None


def allows_everything() -> bool:
    """Whether the environment allows everything, as in CI: `AGENTEVAL_TRUST=1`."""
    return os.environ.get(VARIABLE, "").strip().casefold() in ("1", "true", "yes")


def code_runs_here(folder: Path) -> None:
    """This process runs the code of this folder anyway, as pytest does: until it ends, its repository counts as
    trusted. What it may send is asked all the same."""
    _RUN_HERE.add(str(repository_of(folder)))


def repository_of(folder: Path) -> Path:
    """What is trusted as a whole with this folder, which need not be there: its git repository (that of a worktree is
    the main one; a submodule and a repository within another are their own); without git the nearest Python project;
    else the folder. Links are followed. The root of the file system, the home folder, those above it, and shared
    temporary folders are never the repository of what is in them."""
    top = working_copy_of(folder)
    return _main_worktree(top) if _is_git(top) else top


def working_copy_of(folder: Path) -> Path:
    """The same, of a worktree the worktree itself: the folder that all files of the project are in."""
    real = Path(os.path.realpath(folder))
    above = [path for path in (real, *real.parents) if not _too_wide(path)]
    for path in above:
        if _is_git(path):
            return path
    for path in above:
        if any((path / mark).is_file() for mark in _MARKS):
            return path
    return real


def kind_of(root: Path) -> str:
    """The word for what is trusted as a whole: repository or folder."""
    return "repository" if _is_git(root) or (root / "worktrees").is_dir() else "folder"


def _is_git(folder: Path) -> bool:
    return os.path.lexists(folder / ".git")


def _main_worktree(top: Path) -> Path:
    """The folder of the repository that `top` is a worktree of, else `top`. A folder can only say that it is a worktree
    of a repository that says so, too: otherwise a stranger's folder could name a trusted one."""
    pointer = _line(top / ".git")
    if not pointer.startswith("gitdir:"):
        return top
    admin = Path(os.path.realpath(top / pointer.removeprefix("gitdir:").strip()))
    back = _line(admin / "gitdir")
    if admin.parent.name != "worktrees" or not back or os.path.realpath(admin / back) != str(top / ".git"):
        return top
    common = admin.parent.parent
    main = common.parent if common.name == ".git" else common  # of a bare repository
    return top if _too_wide(main) or repository_of(main) != main else main


def _line(file: Path) -> str:
    """The first line of a small file of git; "" where there is none."""
    try:
        return (read_small(file, "it") or "").partition("\n")[0].strip()
    except AgentevalError:
        return ""


def _too_wide(folder: Path) -> str:
    """What this folder is, if it holds far more than a project; else ""."""
    if folder == Path(folder.anchor):
        return "the root of the file system"
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):
        home = None
    if home is not None and folder == home:
        return "your home folder"
    if home is not None and home.is_relative_to(folder):
        return "a folder around your home folder"
    with contextlib.suppress(OSError):
        mode = folder.stat().st_mode
        if mode & stat.S_ISVTX and mode & stat.S_IWOTH:
            return "a folder that all users of this machine share"
    return ""


def _to_json(entry: TrustedRepository) -> dict[str, Any]:
    sends = [{"name": sending.name, "address": sending.address} for sending in entry.sends]
    return {"folder": entry.folder, "when": entry.when, "sends": sends}


def _from_json(data: Any) -> TrustedRepository:
    folder, when = data["folder"], data["when"]
    sends = tuple(Sending(sending["name"], sending["address"]) for sending in data["sends"])
    if not all(
        isinstance(text, str)
        for text in (folder, when, *(t for sending in sends for t in (sending.name, sending.address)))
    ):
        raise TypeError
    return TrustedRepository(folder, when, sends)
