"""The environment of Python code in words: which Python, which `.env`, and what to do where one lacks something, also
for a program that ended with an error: an agent's command, or a service."""

from __future__ import annotations

import os
import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from agenteval_tui.agents.process.child_process import find_program
from agenteval_tui.agents.process.node_packages import remedy_for_package
from agenteval_tui.agents.process.project_environment import ProjectEnvironment, project_environment
from agenteval_tui.agents.process.project_interpreter import Interpreter, is_older, required_python
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.suites.env_files import EnvFiles
from agenteval_tui.transcripts.traceback import Traceback

_NAMES = {
    **{"uv": "uv", "poetry": "Poetry", "pipenv": "Pipenv", "pdm": "pdm".upper(), "hatch": "Hatch", "conda": "conda"},
    **{"pixi": "Pixi", "virtualenvwrapper": "virtualenvwrapper", "pyenv": "pyenv"},
}
_ADDS = {
    **{"uv": "uv add", "poetry": "poetry add", "pipenv": "pipenv install", "pdm": "pdm add", "pixi": "pixi add"},
}
_DISTRIBUTIONS = {
    **{"agents": "openai-agents", "attr": "attrs", "bs4": "beautifulsoup4", "Crypto": "pycryptodome"},
    **{"cv2": "opencv-python", "dateutil": "python-dateutil", "discord": "discord.py", "docx": "python-docx"},
    **{"dotenv": "python-dotenv", "fitz": "pymupdf", "git": "gitpython", "github": "pygithub", "jwt": "pyjwt"},
    **{"PIL": "pillow", "pptx": "python-pptx", "psycopg2": "psycopg2-binary", "sklearn": "scikit-learn"},
    **{"telegram": "python-telegram-bot", "yaml": "pyyaml", "zmq": "pyzmq"},
    **{"google.adk": "google-adk", "google.auth": "google-auth", "google.genai": "google-genai"},
    **{"google.generativeai": "google-generativeai", "google.protobuf": "protobuf"},
}
"""Packages that are not called as their modules are."""
_SECRETS = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|ENDPOINT)\b")
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")  # Python's own words
_HEAD = 1_000  # bytes
_PYTHON = re.compile(r"python[\d.]*$")
_RUN_BY = re.compile(r"#!/bin/sh\n'{3}exec' (.*python[\d.]*['\"]?) |#! *(?:/usr/bin/env +)?(\S*python[\d.]*)\s")
"""The first lines of a script that Python runs. Installers write the first form where a path is long or has blanks."""
_SHARED_NAMES = ("google", "azure")
"""Many packages have modules below these names, so none owns the name."""
_DEEPEST = 5
_MOST_FOLDERS = 1_000
"""Of a project that are looked through for a module."""
_TAIL = 2_000  # characters of a program's output, where it says what went wrong


def python_in_words(environment: ProjectEnvironment) -> str:
    """Which Python is used, and why."""
    used = environment.interpreter
    version = f" ({used.version})" if used.version else ""
    return f"{used.program}{version}, {_reason(used, environment)}{_too_old(environment)}"


def _too_old(environment: ProjectEnvironment) -> str:
    """ "; pyproject.toml asks for Python >=3.12" where the Python that is used is older; else ""."""
    required = required_python(environment.around)
    if required is None or not is_older(environment.interpreter.version, required[0]):
        return ""
    return f"; {required[1]} asks for Python {required[0]}"


def _reason(used: Interpreter, environment: ProjectEnvironment) -> str:
    match used.source:
        case "option":
            return "which the option names"
        case "VIRTUAL_ENV":
            return "of the active environment (VIRTUAL_ENV)"
        case "folder":
            return f"of {used.place}"
        case "own":
            tool = "" if environment.tool is None else _NAMES.get(environment.tool.name, "")
            missing = f"; {tool} has made none" if tool else ""
            return f"the one of agenteval: no virtual environment {_where(environment)}{missing}"
        case _:
            return f"of the environment that {_NAMES[used.source]} keeps ({used.place})"


def _where(environment: ProjectEnvironment) -> str:
    first, last = environment.folder, environment.around[-1] if environment.around else environment.folder
    return f"in {first}" if first == last else f"from {first} up to {last}"


def env_files_in_words(files: EnvFiles) -> str:
    """Which files gave variables, and which variables were not taken."""
    if not files.files:
        first, last = files.searched[0], files.searched[-1]
        return f"none in {first}" if first == last else f"none from {first} up to {last}"
    words = f"{_listed(files.files)} ({count(len(files.variables), 'variable')})"
    if files.refused:
        words += f"; not taken, because it could load other code: {', '.join(files.refused)}"
    return words


def remedy(clues: Mapping[str, Any], environment: ProjectEnvironment) -> str:
    """What to do about an exception for which something that the environment lacks may be the cause; "" if nothing is.

    `clues` is what `python_clues.clues_of` found.
    """
    # In the order of how sure a clue is: a module that is missing explains all else that went wrong.
    module, variables = clues.get("module"), clues.get("variables")
    if isinstance(module, str) and module:
        return _install(module, environment, has_top=bool(clues.get("has_top")))
    if clues.get("language"):
        # A mistake in the code looks the same, and then a newer Python helps nobody.
        if not _too_old(environment):
            return ""
        return (
            f"it ran with {python_in_words(environment)}; make the project's environment with a Python that is new "
            "enough, or name one: `python: PATH`"
        )
    if isinstance(variables, list) and variables:
        return _set([str(variable) for variable in variables], environment.env_files)
    if key := clues.get("state_key"):
        return (
            f"the graph's state has no `{key}` when it begins: write `input: {{{key}: ...}}` in the agent; "
            'templates such as "{{prompt}}" may be in it'
        )
    if address := clues.get("unreachable"):
        what = (
            f"the name of {address} is not known here: look at the network, or correct the address"
            if clues.get("unknown")
            else f"nothing answers at {address}: start that server, or correct its address"
        )
        return f"{what} where it is set; .env: {env_files_in_words(environment.env_files)}"
    if clues.get("refused"):
        return (
            f"the server refused the key: correct it where it is set; .env: {env_files_in_words(environment.env_files)}"
        )
    return ""


def _remedy_in(output: str, env: Mapping[str, str], files: EnvFiles) -> str:
    """What to do about a program with this output at its end, if that names a key that is not set (`env` is what it
    had); "" if it doesn't."""
    variables = dict.fromkeys(name for name in _SECRETS.findall(output) if not env.get(name, "").strip())
    return _set(list(variables), files) if variables else ""


def remedy_for_module(
    message: str, command: Sequence[str], environment: ProjectEnvironment, env: Mapping[str, str]
) -> str:
    """What to do about a `ModuleNotFoundError` with this message that ended a command of Python, or of what starts the
    project's Python; "" if it is not known which Python that was. `env` is what the command had."""
    missing, own, tool = _NO_MODULE.match(message), environment.interpreter, environment.tool
    if missing is None or not command:
        return ""
    module = missing[1]
    # Python names the outermost part that is missing.
    has_top = "." in module
    if tool is not None and command[0] == tool.name:
        return f"it ran in the project's environment; {_how_to_install(module, environment, has_top=has_top)}"
    try:
        python = _python_of(Path(find_program(command[0], environment.folder, env)))
        program = None if python is None else Path(find_program(python, environment.folder, env))
    except AgentevalError:  # a folder of its own has it, for this run
        return ""
    if program is None:
        return ""
    # Without an environment of its own, the project's code runs in the Python that the command names.
    if own.source == "own":
        used = structs.replace(own, program=str(program), source="option")
        environment = structs.replace(environment, interpreter=used)
    elif program.parent.resolve() != Path(own.program).parent.resolve():
        return f"it ran with {program}; the project has another Python: name it in `command` ({own.program})"
    how = _how_to_install(module, environment, has_top=has_top)
    return (
        f"it ran with {program}; {how}, or name the Python that has it in `command`; "
        f"if {module.partition('.')[0]} is your own module, check `cwd`"
    )


def _python_of(program: Path) -> str | None:
    """The Python that a program is, or that a script names in its first lines; None: it is something else."""
    if _PYTHON.match(program.name):
        return str(program)
    try:
        with program.open("rb") as stream:
            head = stream.read(_HEAD).decode("utf-8", "replace")
    except OSError:
        return None
    runs = _RUN_BY.match(head)
    return None if runs is None else (runs[1] or runs[2]).strip("'\"")


def _own_folder(name: str, environment: ProjectEnvironment) -> Path | None:
    """The folder of the project, nearest to its root, that has a module or package of this name; None if none does."""
    root = environment.around[-1] if environment.around else environment.folder
    waiting = deque([(root, 0)])
    for _ in range(_MOST_FOLDERS):
        if not waiting:
            return None
        folder, depth = waiting.popleft()
        try:
            entries = sorted(folder.iterdir())
        except OSError:
            continue
        folders = [entry for entry in entries if not entry.name.startswith((".", "__")) and entry.is_dir()]
        is_package = any(entry.name == name and any(entry.glob("*.py")) for entry in folders)
        if folder != environment.folder and (is_package or folder / f"{name}.py" in entries):
            return folder
        if depth < _DEEPEST and not any(entry.name == "pyvenv.cfg" for entry in entries):
            waiting += [(entry, depth + 1) for entry in folders if entry.name not in ("node_modules", "site-packages")]
    return None


def _install(module: str, environment: ProjectEnvironment, *, has_top: bool) -> str:
    how = _how_to_install(module, environment, has_top=has_top)
    name = module.partition(".")[0]
    own = None if has_top else _own_folder(name, environment)
    where = (
        f"if {name} is your own module, name its folder in `path`"
        if own is None
        else f"if you mean {own / name}, write `path: [{os.path.relpath(own, environment.folder)}]` in the agent"
    )
    return f"it ran with {python_in_words(environment)}; {how}, or name the Python that has it: `python: PATH`; {where}"


def _how_to_install(module: str, environment: ProjectEnvironment, *, has_top: bool) -> str:
    """`has_top`: the package that the module would be in is there, or some part of it."""
    used, tool = environment.interpreter, environment.tool
    name = module.partition(".")[0]
    package = _DISTRIBUTIONS.get(".".join(module.split(".")[:2])) or _DISTRIBUTIONS.get(name)
    if package is None and name not in _SHARED_NAMES:
        package = name
    if used.source == "own" and tool is not None:
        return f"make the project's environment (in {tool.folder}: {tool.install})"
    if used.source == "own":
        return "install it into the project's environment, .venv"
    if package is None or (has_top and package == name):
        what = "the package, or the version of it," if has_top else "the package"
        return f"install {what} that provides {module} there ({shlex.quote(used.program)} -m pip install ...)"
    if tool is not None and tool.name in _ADDS and used.source not in ("option", "VIRTUAL_ENV"):
        return f"install it there (in {tool.folder}: {tool.install}, or {_ADDS[tool.name]} {package})"
    return f"install it there ({shlex.quote(used.program)} -m pip install {package})"


def _set(variables: Sequence[str], files: EnvFiles) -> str:
    named = " or ".join(variables)
    read = f".env: {env_files_in_words(files)}"
    return (
        f"{named} is not set ({read}); write {variables[0]}=... into {files.write_to}, "
        "or name another file in the agent: `env_file: PATH`"
    )


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))


def program_remedy(
    words: str, traceback: Traceback | None, argv: Sequence[str], folder: Path, env: Mapping[str, str], files: EnvFiles
) -> str:
    """How to fix what a program said last (`words`), and raised; "" if that is not known. It ran as `argv` in `folder`
    with `env`, of which `files` gave a part. Reads files of the project."""
    raised = None if traceback is None else traceback.exceptions[0]
    try:
        if raised is not None and raised.type == "ModuleNotFoundError":
            return remedy_for_module(raised.message, argv, project_environment(folder), env)
        if raised is not None and (remedy := remedy_for_package(raised.message, folder)):
            return remedy
        return _remedy_in(words[-_TAIL:], env, files)
    except AgentevalError as problem:  # a file of it changed meanwhile
        return problem.fix
