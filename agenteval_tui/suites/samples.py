"""The sample suites, to be read, run and edited: copies in a folder of the user's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from agenteval_tui.core import directories
from agenteval_tui.core.atomic_write import locked, write_whole
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.core.private_files import make_private
from agenteval_tui.core.version import __version__
from agenteval_tui.suites.trust import Trust

GIT_S = 10.0  # so long may git take
_AS_THEY_CAME = "The sample suites, as they came"


def copied_samples() -> Path:
    """The folder with the copies, which are made where they are missing: of each version of the program its own.

    Where there is git, they are a repository with one commit: `git diff` says what was changed. Raises
    `InfrastructureError` where the samples are not there, and `OSError` where they can't be written.
    """
    samples, copies = directories.bundled("sample_suites"), copies_of_samples()
    if not samples.is_dir():
        raise InfrastructureError("the sample suites are missing", where=str(samples), fix="install agenteval again")
    make_private(directories.demo_dir())
    # Of programs that start in the same moment, one copies, and the others wait for it.
    with locked(directories.demo_dir(), needed=False):
        is_new = not copies.exists()
        for path in samples.rglob("*"):
            copy = copies / path.relative_to(samples)
            if path.is_file() and not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                write_whole(copy, [path.read_bytes()], durable=False)
        if not (copies / ".git").exists():
            _keep_in_git(copies)
        if is_new:
            Trust.load().trust(copies)  # its code is that of this program
    return copies


def copies_of_samples() -> Path:
    """The folder of the copies. It may not exist."""
    return directories.demo_dir() / f"suites-{__version__}"


def are_samples(path: Path) -> bool:
    """Whether this is a sample suite or a folder with samples, either the original or a copy. Reads no folder."""
    folders = (directories.bundled("sample_suites"), directories.demo_dir())
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)


def _keep_in_git(folder: Path) -> None:
    """Make the folder a repository with one commit. Ignores errors of git, because the samples work without it."""
    git = shutil.which("git")
    if git is None:
        return
    # The user's configuration is not used: no template, no hook, no filter, no signature. Variables that name a
    # repository (in a hook of git, for example) would make git commit to that repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    us = ("-c", "user.name=agenteval", "-c", "user.email=agenteval@localhost", "-c", "core.hooksPath=/dev/null")
    for words in (
        ("init", "--quiet", "--template="),
        ("add", "--all"),
        ("commit", "--quiet", "--no-gpg-sign", "--message", _AS_THEY_CAME),
    ):
        try:
            subprocess.run(  # noqa: S603  our own words, in a folder of ours
                (git, *us, *words),
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=GIT_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return
