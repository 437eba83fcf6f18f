"""Configuration files of MCP clients, with a shim in place of each server over stdio."""

from __future__ import annotations

import fcntl
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from agenteval_tui.agents.process.orphans import ends_with_us, is_over
from agenteval_tui.core.directories import own_command, runtime_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import listed
from agenteval_tui.core.private_files import make_private

_SERVERS = ("mcpServers", "servers", "mcp_servers")
"""The keys below which clients list their servers, by name."""
_ADDRESSES = ("url", "serverUrl", "httpUrl")
_MARK = ("record", "--mcp")
_LOCK = ".lock"
_BEGINS_S = 60.0


@contextmanager
def shimmed(file: Path | None, argv: Sequence[str], cwd: Path) -> Iterator[tuple[str, ...]]:
    """The words of a program's command that name its MCP configuration `file` name a copy, as long as it runs: in that
    its servers over stdio are behind shims. None: the words as they are. Both are meant from the folder `cwd`.

    Raises `AgentevalError` where the file can't be read or has no such server, or no word names it.
    """
    if file is None:
        yield tuple(argv)
        return
    file = cwd / file
    text = json.dumps(_wrapped(file), indent=2)
    with _private_folder() as folder:
        copy = folder / file.name
        copy.write_text(text, encoding="utf-8")
        words = tuple([_renamed(word, file, copy, cwd) for word in argv])
        # The program would read the file itself, and nothing would be recorded.
        if words == tuple(argv):
            raise AgentevalError(
                f"no word of the program's command is {file}, so it would not read the copy that is recorded",
                fix="name the file in the command (--mcp-config FILE, say), "
                "or begin the servers' commands with `agenteval record --mcp --`",
            )
        yield words


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder for what may hold keys. It is removed at the end of the context, at once if this process is killed, and
    else when the next one starts: a folder without a lock belongs to a process that has ended."""
    place = runtime_dir() / "mcp"
    make_private(place.parent)
    make_private(place)
    remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(dir=place))
    ends_with_us("folder", folder)
    try:
        # Held as long as this process lives, however it ends: the system lets go of it.
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        is_over("folder", folder)


def remove_abandoned(place: Path | None = None) -> None:
    """Remove the copies of processes that were killed. Never raises."""
    try:
        folders = list((runtime_dir() / "mcp" if place is None else place).iterdir())
    except OSError:
        return
    for folder in folders:
        with suppress(OSError):
            try:
                lock = (folder / _LOCK).open("rb")
            except FileNotFoundError:
                # It was killed just there, or it has just begun: then it is some milliseconds old.
                if time.time() - folder.stat().st_mtime > _BEGINS_S:
                    shutil.rmtree(folder, ignore_errors=True)
                continue
            with lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its process lives
                shutil.rmtree(folder, ignore_errors=True)


def _renamed(word: str, file: Path, copy: Path, cwd: Path) -> str:
    # `--mcp-config=FILE` as well as `--mcp-config FILE`.
    option, equals, value = word.partition("=")
    if equals and option.startswith("-") and _same(cwd / value, file):
        return f"{option}={copy}"
    return str(copy) if _same(cwd / word, file) else word


def _same(word: Path, file: Path) -> bool:
    try:
        return word.resolve() == file.resolve()
    except (OSError, ValueError):
        return False


def _wrapped(file: Path) -> dict[str, Any]:
    """The configuration with a shim in place of each server that is a command."""
    config = _read(file)
    wrapped = 0
    for name, entry in _entries(config):
        if _is_command(entry):
            wrapped += 1
            words = [entry["command"], *map(str, entry.get("args") or ())]
            # A second shim would tell of each call once more. The first may be started by `uvx` or by Python.
            own = takewhile(lambda word: word != "--", words)
            if _MARK not in pairwise(own):
                entry["command"], *entry["args"] = shim_command(words, name)
    if not wrapped and (others := _over_http(config)):
        raise AgentevalError(
            f"no server of this MCP configuration is a command: {listed(others)} "
            f"{'is' if len(others) == 1 else 'are'} asked over HTTP, which can't be recorded",
            where=str(file),
            fix="leave out --mcp-config: the descriptions of their tools for the model are still recorded",
        )
    if not wrapped:
        raise AgentevalError(
            "this MCP configuration has no server that is a command",
            where=str(file),
            fix='a server over stdio is {"mcpServers": {"NAME": {"command": "...", "args": []}}}',
        )
    return config


def servers_over_http(file: Path) -> list[str]:
    """The names of the servers in a configuration that have an address, beside those that can be recorded: no shim can
    be put in their place. Raises `AgentevalError` where it can't be read."""
    config = _read(file)
    return _over_http(config) if any(_is_command(entry) for _, entry in _entries(config)) else []


def _over_http(config: Mapping[str, Any]) -> list[str]:
    named = _entries(config)
    return [name for name, entry in named if not _is_command(entry) and any(key in entry for key in _ADDRESSES)]


def _is_command(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("command"), str) and isinstance(entry.get("args") or [], list)


def _entries(config: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The servers in a configuration, with their names."""
    lists = [config[key] for key in _SERVERS if isinstance(config.get(key), Mapping)]
    return [(str(name), entry) for servers in lists for name, entry in servers.items() if isinstance(entry, dict)]


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise AgentevalError(
            f"this MCP configuration can't be read: {str(error.strerror).lower()}",
            where=str(file),
            fix="check the path",
        ) from None
    except (ValueError, RecursionError):
        raise AgentevalError(
            "this MCP configuration is not JSON",
            where=str(file),
            fix="begin the servers' commands in it with `agenteval record --mcp --`",
        ) from None
    return dict(document) if isinstance(document, Mapping) else {}


def shim_command(words: Sequence[str], name: str) -> list[str]:
    """The command of a server behind a shim."""
    return own_command("agenteval_tui", *_MARK, "--server", name, "--", *words)
