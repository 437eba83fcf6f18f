"""Which project suites belong to: the root of the git repository that they lie in, else their own folder.

A history holds the runs of every project on this machine; screens and commands show those of the open one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agenteval_tui.core import directories

SAMPLES = "sample suites"
"""The project of the suites that ship with the program, wherever that is installed."""
SCOPE = "AGENTEVAL_SCOPE"
"""The variable of the environment that says `all` where every project is to be shown from the start."""
ALL_BY_ENVIRONMENT = f"{SCOPE}=all"
"""What includes all projects where whoever asks has no option for it."""


def project_of_folder(folder: Path) -> str:
    """The project of what lies in this folder, which need not be there (any more)."""
    real = Path(os.path.realpath(folder))
    samples = directories.bundled("sample_suites").resolve()
    # An installed program may lie in a virtual environment within the user's project; a checkout is a project itself.
    if real.is_relative_to(samples) and not os.path.lexists(samples.parent / ".git"):
        return SAMPLES
    for path in (real, *real.parents):
        if os.path.lexists(path / ".git"):  # a folder; a file in a worktree
            return str(path)
    return str(real)


def project_of_keys(suite_keys: Iterable[str]) -> str:
    """The project of an execution by its suites' keys: of suites in several projects the folder that holds them all.

    "" where no suite is a file, as of another tool's results.
    """
    folders = dict.fromkeys(Path(key).parent for key in suite_keys if key.startswith("/"))
    projects = list(dict.fromkeys(map(project_of_folder, folders)))
    if len(projects) < 2:
        return projects[0] if projects else ""
    return os.path.commonpath([project for project in projects if project != SAMPLES])


def project_here() -> str:
    """The project of the current folder; "" where that is gone."""
    try:
        return project_of_folder(Path.cwd())
    except OSError:
        return ""


def projects_open(paths: Sequence[Path] = ()) -> tuple[str, ...]:
    """The projects of the suites or folders at these paths; without any that of the current folder."""
    if not paths:
        return tuple(filter(None, (project_here(),)))
    return tuple(dict.fromkeys(project_of_folder(path if path.is_dir() else path.parent) for path in paths))


def shows_all() -> bool:
    """Whether the environment asks for all projects."""
    return os.environ.get(SCOPE, "").strip().casefold() == "all"
