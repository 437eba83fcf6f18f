"""The files that commands name, wherever they lie: programs, scripts, arguments, interpreters."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from agenteval_tui.agents.process.node_packages import program_of_package
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.callable_name import parse_callable
from agenteval_tui.suites.environment import environment_if_readable, expand
from agenteval_tui.suites.tool_files import declared_tools

_SEPARATORS = re.compile(r"[\s;|&<>()'\"`$]+")
_WRITTEN = re.compile(r"(?<!<)>[>|&]?\s*[\w./-]+")  # the target of a redirection
_MOST = 2_000  # files of one agent
_LONGEST = 4_096  # characters of a path
# Folders that hold a program as a whole.
_ENTRY_POINTS = ("__main__.py", "package.json", "index.js", "deno.json")
_MODULE_PLACES = ("PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "CLASSPATH", "LD_LIBRARY_PATH")


def files_of_agent(config: Mapping[str, Any], base_dir: Path) -> tuple[Path, ...]:
    """Every file that the programs of an agent and of its tools are named by, absolute, links followed, once each. The
    target of a shell's `>` is not among them.

    `config` is as it is written. What does not exist is not among them; nothing is raised.
    """
    # A file of variables that can't be read is an error elsewhere; what is named by others is still found.
    env = environment_if_readable(base_dir, config=config)
    files: dict[Path, None] = {}
    for entry in (config, *_tools(config, base_dir)):
        files.update(dict.fromkeys(islice(_of_entry(_expanded(entry, env), base_dir, env), _MOST - len(files))))
        if len(files) >= _MOST:
            break
    return tuple(files)


def _tools(config: Mapping[str, Any], base_dir: Path) -> Iterator[Mapping[str, Any]]:
    services = config.get("services")
    for service in services.values() if isinstance(services, Mapping) else ():
        if isinstance(service, Mapping):
            yield service
    for entry in declared_tools(config, base_dir):
        server = entry.get("mcp")
        yield server if isinstance(server, Mapping) else entry


def _expanded(value: Mapping[str, Any], env: Mapping[str, str]) -> Mapping[str, Any]:
    expanded = {}
    for name, item in value.items():
        try:
            expanded[name] = expand(item, env)
        except AgentevalError:
            expanded[name] = item
    return expanded


def _of_entry(entry: Mapping[str, Any], base_dir: Path, env: Mapping[str, str]) -> Iterator[Path]:
    where, cwd = {**env, **_variables(entry)}, base_dir / str(entry.get("cwd") or ".")
    command = entry.get("command")
    if command:
        yield from _of_command(command, bool(entry.get("shell")), cwd, where)
    for option in ("python", "interpreter"):
        program = entry.get(option)
        if isinstance(program, str) and ":" not in program:
            yield from _program(program, base_dir, where)
    target = entry.get("callable") or (entry.get("python") if ":" in str(entry.get("python")) else None)
    if isinstance(target, str):
        places = entry.get("path")
        listed = [str(place) for place in places] if isinstance(places, list | tuple) else []
        for place in (base_dir, *(base_dir / name for name in listed)):
            yield from _module(target, place)
        for folder in listed:
            yield from _folder(base_dir / folder, whole=True)
    for name, value in _variables(entry).items():
        for word in value.split(os.pathsep):
            yield from _file(word, cwd)
            if name in _MODULE_PLACES and word:
                yield from _folder(cwd / word, whole=True)


def _variables(entry: Mapping[str, Any]) -> dict[str, str]:
    env = entry.get("env")
    return {str(k): str(v) for k, v in env.items()} if isinstance(env, Mapping) else {}


def _of_command(command: Any, shell: bool, cwd: Path, env: Mapping[str, str]) -> Iterator[Path]:
    # Too many rather than too few: whoever trusts an agent sees what it could run, and a word that names no file costs
    # nothing.
    words = _words(command, shell)
    for number, word in enumerate(words):
        if number == 0 or shell:
            yield from _program(word, cwd, env)
        # A program's options: --config=FILE, -cFILE, sh -c "a b", @FILE.
        parts = [
            word,
            word.partition("=")[2],
            word.lstrip("@"),
            *(_SEPARATORS.split(word) if len(word) < 100_000 else ()),
        ]
        for part in dict.fromkeys(parts):
            yield from _file(part, cwd)
            if part and part != word:
                yield from _program(part, cwd, env)
        yield from _folder(cwd / word, whole=False)


def _words(command: Any, shell: bool) -> list[str]:
    if isinstance(command, list | tuple):
        return [str(word) for word in command]
    # What a shell only writes is not run.
    text = _WRITTEN.sub(" ", str(command)) if shell else str(command)
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without its end, which a shell may understand otherwise
        words = []
    return [*words, *_SEPARATORS.split(text)] if shell or not words else words


def _program(word: str, cwd: Path, env: Mapping[str, str]) -> Iterator[Path]:
    """The program that a word means, and what runs it (`#!`)."""
    if not word or len(word) > _LONGEST or "\0" in word:
        return
    if os.sep in word:
        program: str | None = str(cwd / Path(word).expanduser())
    else:
        program = program_of_package(word, cwd) or shutil.which(word, path=env.get("PATH", os.defpath))
    for file in _file(program or "", cwd):
        yield file
        try:
            with file.open("rb") as stream:
                first = stream.readline(512)
        except OSError:
            continue
        if first.startswith(b"#!"):
            for part in first[2:].decode("utf-8", "replace").split():
                if part.startswith("/"):
                    yield from _file(part, cwd)
                else:
                    yield from _file(shutil.which(part, path=env.get("PATH", os.defpath)) or "", cwd)


def _module(target: str, folder: Path) -> Iterator[Path]:
    try:
        name = parse_callable(target)
    except ValueError:
        return
    if name.file:
        yield from _file(name.file, folder)
        return
    parts = name.module.split(".")
    for depth in range(1, len(parts) + 1):
        base = folder.joinpath(*parts[:depth])
        # The packages around it run when it is imported.
        yield from _file(f"{base}.py", folder)
        yield from _file(str(base / "__init__.py"), folder)


def _file(word: str, cwd: Path) -> Iterator[Path]:
    if not word or len(word) > _LONGEST or "\0" in word:
        return
    try:
        path = (cwd / Path(word).expanduser()).resolve()
        if path.is_file():
            yield path
    except (OSError, RuntimeError, ValueError):
        return


def _folder(folder: Path, *, whole: bool) -> Iterator[Path]:
    """The files of a folder that holds a program. Not `whole`: only where it says that it is one."""
    try:
        folder = folder.resolve()
        if not folder.is_dir() or not (whole or any((folder / name).is_file() for name in _ENTRY_POINTS)):
            return
        yield from _below(folder)
    except (OSError, RuntimeError, ValueError):
        return


def _below(folder: Path) -> Iterator[Path]:
    paths = (Path(here, name) for here, _, names in os.walk(folder) for name in sorted(names))
    return islice(filter(Path.is_file, paths), _MOST)
