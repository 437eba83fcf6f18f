"""Where things are: bundled files, the user's configuration, the run history, and this program itself for another
process of it.

Nothing here reads or creates a file; callers decide that.
"""

from __future__ import annotations

import os
import shlex
import site
import sys
from pathlib import Path

APP = "agenteval"


def bundled(name: str) -> Path:
    """The folder `name` ("themes" or "sample_suites") that ships with the program.

    In a wheel it lies inside the package; in a checkout beside it.
    """
    package = Path(__file__).parents[1]
    inside = package / "bundled" / name
    return inside if inside.is_dir() else package.parent / name


def config_dir() -> Path:
    """The user's configuration folder (`AGENTEVAL_CONFIG_DIR` overrides it)."""
    override = os.environ.get("AGENTEVAL_CONFIG_DIR")
    if override:
        return Path(override)
    from platformdirs import user_config_path

    return user_config_path(APP)


def data_dir() -> Path:
    """The user's data folder (`AGENTEVAL_DATA_DIR` overrides it)."""
    override = os.environ.get("AGENTEVAL_DATA_DIR")
    if override:
        return Path(override)
    from platformdirs import user_data_path

    return user_data_path(APP)


def cache_dir() -> Path:
    """The user's folder for what can be made again (`AGENTEVAL_CACHE_DIR` overrides it)."""
    override = os.environ.get("AGENTEVAL_CACHE_DIR")
    if override:
        return Path(override)
    from platformdirs import user_cache_path

    return user_cache_path(APP)


def runtime_dir() -> Path:
    """Where sockets of live executions are (`AGENTEVAL_RUNTIME_DIR` overrides it). A short path: sockets need one.

    Without `XDG_RUNTIME_DIR` it is a folder in the data folder: that is private, while one in /tmp could belong to
    another user.
    """
    override = os.environ.get("AGENTEVAL_RUNTIME_DIR")
    if override:
        return Path(override)
    system = os.environ.get("XDG_RUNTIME_DIR")
    return Path(system) / APP if system else data_dir() / "run"


def history_file(path: str | os.PathLike[str] | None = None) -> Path:
    """The history file: `path` (from `--db`), else `AGENTEVAL_DB`, else `history.db` in the data folder."""
    if path:
        return Path(path)
    override = os.environ.get("AGENTEVAL_DB")
    return Path(override) if override else data_dir() / "history.db"


def db_option(db: Path) -> str:
    """The option that a printed command needs to find a run in this history: ` --db FILE`, or nothing if commands take
    this one anyway."""
    return "" if db.absolute() == history_file().absolute() else f" --db {shlex.quote(str(db))}"


def demo_dir() -> Path:
    """The folder of the demo: copies of the sample suites, and a history of its own."""
    return data_dir() / "demo"


def demo_history() -> Path:
    """The history of the demo: what is tried there is not among the user's own runs."""
    return demo_dir() / "history.db"


def own_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package in a process of its own.

    With `-P`: nothing is imported from the folder in which the user is, nor from one that a script lies in.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def own_environment() -> dict[str, str]:
    """The environment of such a process: ours, and where this package is, for a checkout that is not installed.

    Entries of PYTHONPATH that are relative or empty mean the folder in which the user is: they are left out.
    """
    environment = dict(os.environ)
    root = str(Path(__file__).resolve().parents[2])
    entries = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if Path(entry).is_absolute()]
    if root not in site.getsitepackages() and root not in entries:
        entries.insert(0, root)
    if entries:
        environment["PYTHONPATH"] = os.pathsep.join(entries)
    else:
        environment.pop("PYTHONPATH", None)
    return environment
