"""The commits at an execution's start, of the repositories in which its suites and its agents' programs lie.

git is run beside the execution, and read when it has answered: nothing waits for it. What a repository's own
configuration could make git run (a file system monitor, hooks, filters) stays off, as the folder need not be trusted.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

from agenteval_tui.core.document import Document, one_of

GIT_S = 10.0
"""So long may git take; then nothing is known."""
COMMITS_S = 1.0
"""How long the end of an execution waits for git."""
_SAFE = (
    "--no-optional-locks",  # else git writes its index, and runs a hook when it has
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)
_STATUS = (
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=no",
    "--ignore-submodules=dirty",
    "--no-renames",
)
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES")


class Commit(Document, frozen=True, kw_only=True):
    """The commit of a repository at an execution's start."""

    of: Annotated[
        tuple[Annotated[str, one_of("suites", "agents")], ...], Meta(description="what of the execution lies in it")
    ]
    repository: Annotated[str, Meta(description="the top folder of its work tree")]
    commit: Annotated[str, Meta(description="its hash")]
    branch: Annotated[str, Meta(description="empty: none was checked out")] = ""
    dirty: Annotated[
        bool | None,
        Meta(
            description="whether tracked files differed from the commit, or a suite is not in the repository; "
            "null: not known"
        ),
    ] = None


class Place(Struct, frozen=True):
    """A repository to look at: its top folder, what of the execution is in it, and which suite files."""

    top: Path
    of: tuple[str, ...]
    suites: tuple[str, ...] = ()


def places_of(suites: Iterable[str], agents: Iterable[Path]) -> tuple[Place, ...]:
    """The repositories of these suites (their keys; what isn't a file is skipped) and folders of agents' programs."""
    of: dict[Path, dict[str, None]] = {}
    files: dict[Path, list[str]] = {}
    for key in suites:
        if key.startswith("/") and (top := _top(Path(key).parent)) is not None:
            of.setdefault(top, {})["suites"] = None
            files.setdefault(top, []).append(key)
    for folder in agents:
        if (top := _top(folder)) is not None:
            of.setdefault(top, {})["agents"] = None
    return tuple(Place(top, tuple(parts), tuple(files.get(top, ()))) for top, parts in of.items())


def _top(folder: Path) -> Path | None:
    real = Path(os.path.realpath(folder))
    return next((above for above in (real, *real.parents) if os.path.lexists(above / ".git")), None)


class CommitReading:
    """git at work in these repositories, in a thread. `ready` says whether it has answered; `result` is what it said.

    A repository of which nothing could be found out is left out: there is no git, no commit yet, it hangs, or it
    refuses (a folder of somebody else's).
    """

    def __init__(self, places: Iterable[Place], *, limit_s: float = GIT_S) -> None:
        self._places = tuple(places)
        self._until = time.monotonic() + limit_s
        self._commits: list[Commit] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="commits", daemon=True)
        if self._places:
            self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return not self._places or not self._thread.is_alive()

    def result(self, wait_s: float = 0.0) -> tuple[Commit, ...]:
        """What is known after this many seconds. git ends then, whatever it does."""
        if self._places:
            self._thread.join(wait_s)
            self._close()
        return tuple(self._commits)

    def _close(self) -> None:
        with self._guard:
            self._closed = True
            if self._process is not None:
                with contextlib.suppress(OSError):
                    self._process.kill()

    def _read(self) -> None:
        git = shutil.which("git")
        if git is None:
            return
        # Variables that name a repository (in a hook of git, say) would make git look at that one.
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}
        env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        for place in self._places:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                if (commit := self._commit(git, env, place)) is not None:
                    self._commits.append(commit)

    def _commit(self, git: str, env: Mapping[str, str], place: Place) -> Commit | None:
        if self._filters(git, env, place):
            hashed = self._run(git, env, place, "rev-parse", "--verify", "--quiet", "HEAD")
            text = hashed[1].decode("ascii", "replace").strip()
            # To see whether a file changed, git would run the filter.
            return Commit(of=place.of, repository=str(place.top), commit=text) if hashed[0] == 0 and text else None
        # One call for the commit, the branch and whether anything differs: each takes time in a large repository.
        code, output = self._run(git, env, place, *_STATUS)
        if code != 0:
            return None
        headers, dirty = {}, False
        for line in output.decode("utf-8", "replace").split("\0"):
            if line.startswith("# "):
                name, _, value = line[2:].partition(" ")
                headers[name] = value
            elif line:
                dirty = True
        commit, branch = headers.get("branch.oid", ""), headers.get("branch.head", "")
        if not commit or commit == "(initial)":
            return None
        # Untracked files are not in the status, and a suite may be one.
        if not dirty and place.suites:
            code, output = self._run(git, env, place, "ls-files", "-z", "--others", "--", *place.suites)
            dirty = code == 0 and bool(output)
        return Commit(
            of=place.of,
            repository=str(place.top),
            commit=commit,
            branch="" if branch == "(detached)" else branch,
            dirty=dirty,
        )

    def _filters(self, git: str, env: Mapping[str, str], place: Place) -> bool:
        """Whether the repository's own configuration has filters, or that can't be known. The user's own are theirs."""
        code, output = self._run(git, env, place, "config", "--show-scope", "--get-regexp", r"^filter\.")
        # git ends with 1 where there are none.
        if code not in (0, 1):
            return True
        scopes = {line.split(b"\t", 1)[0] for line in output.splitlines()}
        return bool(scopes & {b"local", b"worktree"})

    def _run(self, git: str, env: Mapping[str, str], place: Place, *words: str) -> tuple[int, bytes]:
        """The exit code and what it printed. Raises OSError, subprocess.SubprocessError."""
        # Held until it has begun, or `_close` could miss it.
        with self._guard:
            if self._closed:
                raise subprocess.SubprocessError
            process = self._process = subprocess.Popen(  # noqa: S603  our own words, which run nothing of the folder
                (git, *_SAFE, *words),
                cwd=place.top,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        try:
            output, _ = process.communicate(timeout=max(self._until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, output


def agent_folder(config: Mapping[str, Any], base_dir: Path) -> Path | None:
    """The folder of an agent's own code: of its function's file, of its program, or where it runs. None: it runs
    elsewhere (a server, a model)."""
    target, command = config.get("callable"), config.get("command")
    if not target and not command:
        return None
    folder = base_dir / str(config.get("cwd") or ".")
    if target:
        module = str(target).partition(":")[0]
        listed = config.get("path")
        for root in (
            folder,
            *(base_dir / str(entry) for entry in (listed if isinstance(listed, list | tuple) else ())),
        ):
            for file in (root / module, root / f"{module.replace('.', '/')}.py", root / module.partition(".")[0]):
                if file.exists():
                    return file.parent
        return folder
    words = command.split() if isinstance(command, str) else command
    for word in map(str, words if isinstance(words, list | tuple) else ()):
        path = folder / word
        # A program that is named in full (an interpreter, say) may lie in its installer's repository.
        # A script of a shell is a word too: `Path.is_file` raises for one that is too long for a name.
        if not word.startswith(("/", "-")) and ("/" in word or path.suffix) and os.path.isfile(path):  # noqa: PTH113
            return path.parent
    return folder


def read_commits(entries: Iterable[Any]) -> tuple[Commit, ...]:
    """What was stored, or written into a file; what is none is passed over."""
    commits = []
    for entry in entries:
        with contextlib.suppress(ValidationError):
            commits.append(convert(entry, Commit))
    return tuple(commits)
