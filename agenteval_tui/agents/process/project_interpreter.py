"""Which Python a project runs with: its virtual environment, wherever the project's tool keeps that.

Only files and exported variables are read; no tool is started. The rules are those of uv (UV_PROJECT_ENVIRONMENT),
Poetry (generate_env_name), Pipenv (venv_locator), PDM (commands.venv.utils), Hatch (env.virtual),
conda (envs_dirs), virtualenvwrapper (setvirtualenvproject) and pyenv (pyenv-prefix).
"""

from __future__ import annotations

import base64
import glob
import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError

OLDEST = (3, 8)
"""The oldest Python that can run our part of the process."""
ENVIRONMENT_FOLDERS = (".venv", "venv", "env")
"""Where a project has its environment, in this order."""
_MAX_BYTES = 4_000_000
_PYTHONS = ("python", "python3")
# Lock files first: a project may have settings for several tools, and the lock is of the one that is used. In brackets:
# a table below `tool` in pyproject.toml.
_SIGNS = (
    ("uv", ("uv.lock",), "uv sync"),
    ("poetry", ("poetry.lock", "[poetry]"), "poetry install"),
    ("pipenv", ("Pipfile",), "pipenv install"),
    ("pdm", ("pdm.lock", "[pdm]"), "pdm install"),
    ("pixi", ("pixi.toml", "[pixi]"), "pixi install"),
    ("conda", ("environment.yml", "environment.yaml"), "conda env create -f {}"),
    ("uv", ("[uv]",), "uv sync"),
    ("hatch", ("hatch.toml", "[hatch.envs]"), "hatch env create"),
    ("pip", ("requirements.txt",), "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"),
    ("pip", ("pyproject.toml", "setup.py"), "python3 -m venv .venv && .venv/bin/pip install -e ."),
)
_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")
# The processors of ELF, by the number in a file's head: with a machine of another kind, a container or a copied folder
# may have left its environment here.
_ELF = {
    3: "x86",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    21: "ppc64le",
    22: "s390x",
    258: "loongarch64",
}
_SAME_MACHINE = {"amd64": "x86_64", "arm64": "aarch64", "i386": "x86", "i686": "x86", "armv7l": "arm", "armv6l": "arm"}
# How programs of macOS begin: of 64 and 32 bits, and those for several processors.
_MACH = (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf")
_PROGRAMS = (b"#!", b"\x7fELF", b"MZ", *_MACH)
_FOLDERS_OF_USER = {
    "XDG_CACHE_HOME": (".cache", "Caches"),
    "XDG_CONFIG_HOME": (".config", "Application Support"),
    "XDG_DATA_HOME": (".local/share", "Application Support"),
}
"""Where programs keep what is the user's, by the variable that says it: in the home folder of Linux, and of macOS."""


class Interpreter(Struct, frozen=True):
    """A Python, and why this one is used.

    `source`: option, VIRTUAL_ENV, folder (`.venv` and its like), uv, poetry, pipenv, pdm, hatch, conda, pixi,
    virtualenvwrapper, pyenv, or own (the Python that runs agenteval). `place`: the variable, folder or file that says
    so.
    """

    program: str
    source: str
    place: str = ""
    version: str = ""
    """"3.12.1" or "3.12"; "": not known."""
    prefix: Path | None = None
    """The root of its virtual environment, if it has one."""
    packages: tuple[Path, ...] = ()
    """Folders of installed packages that are not its own (`__pypackages__`)."""

    @property
    def is_own(self) -> bool:
        """Whether agenteval runs in the same environment."""
        return self.program == sys.executable or (self.prefix is not None and _same(self.prefix, Path(sys.prefix)))


class Tool(Struct, frozen=True):
    """What manages the environment of a project in `folder`. `install`: the command that makes it."""

    name: str
    folder: Path
    install: str


OWN = Interpreter(sys.executable, "own", version=platform.python_version())


def find_interpreter(folders: Sequence[Path], environ: Mapping[str, str]) -> Interpreter:
    """The Python of the project whose files lie in `folders`, the nearest first.

    Raises `AgentevalError` where the environment that it names can't be used.
    """
    # An environment that is active is what the user works in now; then what lies in the project; then what tools keep
    # elsewhere; conda's last, as its base environment is active in many shells all the time.
    active = environ.get("VIRTUAL_ENV")
    if active:
        return _of_prefix(Path(active), "VIRTUAL_ENV", "VIRTUAL_ENV", folders)
    for folder in folders:
        for name in ENVIRONMENT_FOLDERS:
            if _is_environment(folder / name):
                return _of_prefix(folder / name, "folder", str(folder / name), folders)
    for folder in folders:
        for find in _TOOLS:
            for interpreter in find(folder, environ):
                return interpreter
    prefix = environ.get("CONDA_PREFIX")
    if prefix:
        return _of_prefix(Path(prefix), "conda", "CONDA_PREFIX", folders)
    return OWN


def named_interpreter(named: str, folder: Path) -> Interpreter:
    """The Python that an option names: a path from `folder`, or a name that is looked up in PATH when it is started.
    Raises `AgentevalError` where it can't be used."""
    path = shutil.which(named) if os.sep not in named else named
    if path is None:
        return Interpreter(named, "option", "`python`")  # perhaps in the PATH of the suite's variables
    program = folder / Path(path).expanduser()
    if program.is_dir() and _is_environment(program):
        return _of_prefix(program, "option", "`python`", (folder,))
    if program.is_dir():
        raise AgentevalError(
            f"`python` names the folder {program}, which is not a virtual environment",
            fix="name the program in it: `python: PATH`",
        )
    if not program.is_symlink() and not program.exists():
        raise AgentevalError(
            f"`python` names {program}, which does not exist",
            fix=f"correct the path, which starts at {folder}; without `python`, the project's environment is used",
        )
    return _checked(named, program, "option", "`python`", (folder,))


def tool_of(folders: Sequence[Path]) -> Tool | None:
    """What manages the environment of the project, as its files say; None: none does."""
    for folder in folders:
        tables = tables_of(folder)
        for name, marks, install in _SIGNS:
            mark = next((mark for mark in marks if _has_mark(folder, tables, mark)), None)
            if mark is not None:
                return Tool(name, folder, install.format(mark))
    return None


def _has_mark(folder: Path, tables: Mapping[str, Any], mark: str) -> bool:
    if not mark.startswith("["):
        return (folder / mark).exists()
    table, _, inner = mark.strip("[]").partition(".")
    return inner in table_in(tables, table) if inner else table in tables


# Environments


def _is_environment(prefix: Path) -> bool:
    return (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir()


def _of_prefix(prefix: Path, source: str, place: str, folders: Sequence[Path]) -> Interpreter:
    if not prefix.is_dir():
        raise AgentevalError(
            f"{place} names the environment {prefix}, which does not exist",
            fix=f"activate another environment, or unset {place}" if place in _VARIABLES else _remedy(folders),
        )
    # A link that leads nowhere counts: what is wrong with it is said in `_check`.
    programs = [prefix / "bin" / name for name in _PYTHONS]
    program = next((program for program in programs if program.is_symlink() or program.exists()), None)
    if program is None:
        windows = (prefix / "Scripts").is_dir() or (prefix / "python.exe").is_file()
        what = "was made on Windows" if windows else "has no bin/python"
        raise AgentevalError(f"the environment {prefix} {what}", fix=_remedy(folders))
    # A variable may name a folder that has a Python and doesn't look like an environment: the user says that it is one.
    return replace(_checked(str(program), program, source, place, folders), prefix=prefix)


def _remedy(folders: Sequence[Path]) -> str:
    tool = tool_of(folders)
    make = "create it again"
    if tool is not None:
        make += f" in {tool.folder} ({tool.install})"
    return f"{make}, or name another Python in the agent: `python: PATH`"


def _checked(named: str, program: Path, source: str, place: str, folders: Sequence[Path]) -> Interpreter:
    """The interpreter of this program, which is started by the name `named`. Raises `AgentevalError` where it can't run
    here."""
    prefix = program.parent.parent
    version = _version(prefix, program)
    if not program.exists():
        raise AgentevalError(
            f"the Python of {prefix} is gone: {program} leads to {os.path.realpath(program)}, which does not exist",
            fix=_remedy(folders),
        )
    if not os.access(program, os.X_OK):
        raise AgentevalError(f"{program} is not executable", fix=f"chmod +x {program}, or {_remedy(folders)}")
    head = _head(program)
    if head is not None and not head.startswith(_PROGRAMS):
        raise AgentevalError(f"{program} is not a program", fix=_remedy(folders))
    theirs = None if head is None else _system_of(head)
    if theirs is not None:
        ours = f"{os.uname().sysname} ({platform.machine()})"
        raise AgentevalError(f"{program} is a program for {theirs}, and this is {ours}", fix=_remedy(folders))
    numbers = tuple(int(digits) for digits in re.findall(r"\d+", version)[:2])
    if len(numbers) == 2 and numbers < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise AgentevalError(
            f"{program} is Python {version}; agenteval runs code with Python {oldest} or later",
            fix=f"use a newer Python for the project, or name one in the agent: `python: PATH` (found by {place})",
        )
    return Interpreter(named, source, place, version, prefix if _is_environment(prefix) else None)


def _version(prefix: Path, program: Path) -> str:
    """As its files say it."""
    # From files, because asking the interpreter would start a program before anything is trusted.
    configured = _text(prefix / "pyvenv.cfg")
    match = re.search(r"(?im)^\s*version(?:_info)?\s*=\s*(\d+(?:\.\d+)*)", configured)
    if match:
        return ".".join(match[1].split(".")[:3])
    if (prefix / "conda-meta").is_dir():
        for file in sorted((prefix / "conda-meta").glob("python-[0-9]*.json")):
            if named := re.match(r"python-(\d+\.\d+(?:\.\d+)?)", file.name):
                return named[1]
    # An interpreter's real name has its version, and pyenv's folder.
    real = os.path.realpath(program)
    named = re.search(r"/(?:python|cpython|pypy)?-?(\d\.\d+\.\d+)[^/]*/bin/[^/]*\Z", real)
    named = named or re.search(r"/(?:python|pypy)(\d\.\d+)\Z", real)
    return named[1] if named else ""


def _head(program: Path) -> bytes | None:
    """Its first bytes; None: it can't be read."""
    try:
        with program.open("rb") as stream:
            return stream.read(20)
    except OSError:
        return None


def _system_of(head: bytes) -> str | None:
    """The system that a program is for, if it is not this one. `head`: its first bytes."""
    if head.startswith(b"\x7fELF") and len(head) == 20:
        if sys.platform == "darwin":
            return "Linux"
        machine = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
        here = platform.machine().lower()
        here = _SAME_MACHINE.get(here, here)
        theirs = _ELF.get(machine, "another processor")
        runs_too = {"x86_64": ("x86",), "aarch64": ("arm",)}
        return None if theirs == here or theirs in runs_too.get(here, ()) else f"Linux ({theirs})"
    if head.startswith(_MACH) and sys.platform != "darwin":
        return "macOS"
    return "Windows" if head[:2] == b"\x4d\x5a" else None


def _same(first: Path, second: Path) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)


# What the tools say


def _existing(
    prefixes: Iterator[Path] | Sequence[Path], source: str, place: str, folder: Path
) -> Iterator[Interpreter]:
    for prefix in prefixes:
        if _is_environment(prefix):
            yield _of_prefix(prefix, source, place, [folder])


def _of_uv(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    named = environ.get("UV_PROJECT_ENVIRONMENT")
    if named and ((folder / "uv.lock").is_file() or "uv" in tables_of(folder)):
        yield from _existing([folder / Path(named).expanduser()], "uv", "UV_PROJECT_ENVIRONMENT", folder)


def _of_poetry(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    project = toml_of(folder / "pyproject.toml")
    tables = table_in(project, "tool")
    backend = str(table_in(project, "build-system").get("build-backend", ""))
    if not ((folder / "poetry.lock").is_file() or "poetry" in tables or backend.startswith("poetry")):
        return
    name = str(table_in(project, "project").get("name") or table_in(tables, "poetry").get("name"))
    # Poetry's `generate_env_name`: the name of the project with what shells mind replaced, and a hash of its folder.
    base = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name.lower())[:42] + "-" + _hash(os.path.realpath(folder))
    for parent in _poetry_places(folder, environ):
        # `poetry env use` writes there which of several environments it uses.
        active = table_in(toml_of(parent / "envs.toml"), base).get("minor")
        listed = sorted(parent.glob(f"{glob.escape(base)}-py*"), key=_by_version, reverse=True)
        chosen = [path for path in listed if path.name == f"{base}-py{active}"]
        yield from _existing([*chosen, *listed], "poetry", str(parent), folder)


def _poetry_places(folder: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Where Poetry keeps environments: a variable, the project's settings, the user's, by default its cache folder."""
    cache = environ.get("POETRY_CACHE_DIR")
    path = environ.get("POETRY_VIRTUALENVS_PATH")
    config = Path(environ.get("POETRY_CONFIG_DIR") or _folder_of_user("XDG_CONFIG_HOME", environ) / "pypoetry")
    for file in (folder / "poetry.toml", config / "config.toml"):
        settings = toml_of(file)
        cache = cache or _word(settings.get("cache-dir"))
        path = path or _word(table_in(settings, "virtualenvs").get("path"))
    caches = [_expanded(cache)] if cache else [_folder_of_user("XDG_CACHE_HOME", environ) / "pypoetry"]
    for cache_folder in caches:
        yield _expanded(path.replace("{cache-dir}", str(cache_folder))) if path else cache_folder / "virtualenvs"


def _of_pipenv(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    file = folder / "Pipfile"
    if not file.is_file():
        return
    home = _work_home(environ) or _folder_of_user("XDG_DATA_HOME", environ) / "virtualenvs"
    # `.venv` may be a file with the name or the path of the environment.
    pointed = _text(folder / ".venv").strip() if (folder / ".venv").is_file() else ""
    name = re.sub(r'[ &$`!*@"()\[\]\\\r\n\t]', "_", folder.name)[:42] + "-" + _hash(str(file))
    python = environ.get("PIPENV_PYTHON", "")
    names = [pointed, environ.get("PIPENV_CUSTOM_VENV_NAME", "")]
    names += [f"{name}-{Path(python).name if Path(python).is_absolute() else python}"] if python else []
    prefixes = [home / entry if os.sep not in entry else folder / entry for entry in (*names, name) if entry]
    yield from _existing(prefixes, "pipenv", str(home), folder)


def _of_pdm(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    saved = folder / ".pdm-python"
    named = _text(saved).strip()
    local = folder / "__pypackages__"
    if named:
        interpreter = _checked(named, Path(named), "pdm", str(saved), [folder])
        minor = ".".join(interpreter.version.split(".")[:2])
        # PEP 582: without an environment, packages are beside the project, by the version of Python.
        beside = [path / "lib" for path in sorted(local.glob("*")) if not minor or path.name.startswith(minor)]
        yield replace(interpreter, packages=tuple(beside) if interpreter.prefix is None else ())
    if (folder / "pdm.lock").is_file() or "pdm" in tables_of(folder):
        config = _folder_of_user("XDG_CONFIG_HOME", environ) / "pdm" / "config.toml"
        home = _word(table_in(toml_of(config), "venv").get("location"))
        parent = _expanded(home) if home else _folder_of_user("XDG_DATA_HOME", environ) / "pdm" / "venvs"
        # As PDM names its environments.
        digest = base64.urlsafe_b64encode(hashlib.md5(str(folder).encode(), usedforsecurity=False).digest())
        start = f"{folder.name}-{digest.decode()[:8]}-"
        listed = sorted(parent.glob(f"{glob.escape(start)}*"), key=_by_version, reverse=True)
        yield from _existing(listed, "pdm", str(parent), folder)
    if local.is_dir() and not named:
        own = f"{sys.version_info.major}.{sys.version_info.minor}"
        if (local / own / "lib").is_dir():
            yield Interpreter(sys.executable, "pdm", str(local), OWN.version, None, (local / own / "lib",))


def _of_hatch(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    project = toml_of(folder / "pyproject.toml")
    # Hatch reads its settings from either file; where both have one, `hatch.toml` wins.
    settings = {**table_in(project, "tool", "hatch"), **toml_of(folder / "hatch.toml")}
    backend = str(table_in(project, "build-system").get("build-backend", ""))
    if not settings and not backend.startswith("hatchling"):
        return
    name = re.sub(r"[-_.]+", "-", str(table_in(project, "project").get("name") or "")).lower()
    # As Hatch names its environments: on macOS and Windows the case of a path says nothing.
    real = os.path.realpath(folder)
    identity = _hash(real.casefold() if sys.platform in ("darwin", "win32") else real)
    default = table_in(settings, "envs", "default")
    path = environ.get("HATCH_ENV_TYPE_VIRTUAL_PATH") or _word(default.get("path"))
    user = toml_of(
        Path(environ.get("HATCH_CONFIG") or _folder_of_user("XDG_CONFIG_HOME", environ) / "hatch" / "config.toml")
    )
    dirs = table_in(user, "dirs")
    data = environ.get("HATCH_DATA_DIR") or _word(dirs.get("data"))
    virtual = _word(table_in(dirs, "env").get("virtual"))
    data_folder = _expanded(data) if data else _folder_of_user("XDG_DATA_HOME", environ) / "hatch"
    parent = folder / _expanded(virtual) if virtual else data_folder / "env" / "virtual"
    # The environment `default` has the project's name; with a folder of its own it lies in that at once.
    prefixes = [folder / _expanded(path)] if path else [parent / name / identity / name, parent / name]
    yield from _existing(prefixes, "hatch", str(parent), folder)


def _of_pixi(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    named = environ.get("PIXI_ENVIRONMENT_NAME", "default")
    yield from _existing([folder / ".pixi" / "envs" / named], "pixi", str(folder / ".pixi"), folder)


def _of_conda(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    files = (folder / name for name in ("environment.yml", "environment.yaml"))
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return
    text = _text(file)
    prefix = _entry(text, "prefix")
    name = _entry(text, "name")
    prefixes = [_expanded(prefix)] if prefix else []
    if name:
        active = environ.get("CONDA_PREFIX", "")
        # An active environment of that name may lie where nothing else finds it.
        prefixes += [Path(active)] if Path(active).name == name else []
        prefixes += [parent / name for parent in _conda_places(environ)]
        listed = _text(_home() / ".conda" / "environments.txt").splitlines()
        prefixes += [Path(line.strip()) for line in listed if Path(line.strip()).name == name]
    yield from _existing(prefixes, "conda", str(file), folder)


def _conda_places(environ: Mapping[str, str]) -> Iterator[Path]:
    """The folders of named environments."""
    for variable in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for place in filter(None, environ.get(variable, "").split(os.pathsep)):
            yield _expanded(place)
    configured = _text(_home() / ".condarc")
    match = re.search(r"(?m)^envs_dirs:[ \t]*\n((?:[ \t]*-[^\n]*\n?)+)", configured)
    for place in re.findall(r"-[ \t]*([^\n#]+)", match[1]) if match else ():
        yield _expanded(place.strip().strip("'\""))
    roots = [environ.get("MAMBA_ROOT_PREFIX", "")]
    program = environ.get("CONDA_EXE", "")
    roots += [str(Path(program).parent.parent)] if program else []
    prefix = environ.get("CONDA_PREFIX", "")
    if prefix:
        roots += [str(Path(prefix).parent.parent) if Path(prefix).parent.name == "envs" else prefix]
    for root in filter(None, roots):
        yield Path(root) / "envs"
    # Where the installers put conda, for shells in which it was never activated.
    for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda", "opt/miniconda3"):
        yield _home() / name / "envs"


def _work_home(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("WORKON_HOME")
    return _expanded(named) if named else None


def _of_virtualenvwrapper(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    """The environment whose project is this folder, as `setvirtualenvproject` writes it into the environment."""
    home = _work_home(environ) or _home() / ".virtualenvs"
    here = os.path.realpath(folder)
    projects = sorted(home.glob("*/.project"))
    prefixes = [file.parent for file in projects if os.path.realpath(_text(file).strip()) == here]
    yield from _existing(prefixes, "virtualenvwrapper", str(home), folder)


def _of_pyenv(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    """What `.python-version` names: an environment of pyenv-virtualenv, or a Python that pyenv has installed."""
    file = folder / ".python-version"
    words = _text(file).split()
    named = words[0] if words else ""
    if not re.fullmatch(r"[\w.-]+", named) or named.startswith("."):
        return
    versions = (_expanded(environ["PYENV_ROOT"]) if environ.get("PYENV_ROOT") else _home() / ".pyenv") / "versions"
    # As pyenv does, a version without its last number is the newest of these.
    newest = sorted(versions.glob(f"{named}.*"), key=lambda path: _numbers(path.name), reverse=True)
    for prefix in (versions / named, *newest):
        program = prefix / "bin" / "python"
        if _is_environment(prefix):
            yield _of_prefix(prefix, "pyenv", str(file), [folder])
        elif program.exists() and re.fullmatch(r"\d+\.\d+\.\d+", prefix.name):
            yield _checked(str(program), program, "pyenv", str(file), [folder])


def _of_any_name(folder: Path, environ: Mapping[str, str]) -> Iterator[Interpreter]:
    """The only environment in the folder, whatever it is called: `.conda`, `envs`, `my-env`; direnv's is one deeper."""
    try:
        names = [item.name for item in os.scandir(folder) if item.is_dir(follow_symlinks=False)]
    except OSError:
        return
    places = [folder / name for name in names] + list((folder / ".direnv").glob("python-*"))
    prefixes = list(filter(_is_environment, places))
    if len(prefixes) == 1:  # of several, nothing says which
        yield _of_prefix(prefixes[0], "folder", str(prefixes[0]), [folder])


_TOOLS: tuple[Callable[[Path, Mapping[str, str]], Iterator[Interpreter]], ...] = (
    *(_of_uv, _of_poetry, _of_pipenv, _of_pdm, _of_hatch, _of_pixi, _of_conda, _of_virtualenvwrapper, _of_any_name),
    _of_pyenv,
)


# Reading


def required_python(folders: Sequence[Path]) -> tuple[str, Path] | None:
    """Which versions of Python the project asks for (">=3.12,<4"), and the file that says so; None: none does."""
    for folder in folders:
        file = folder / "pyproject.toml"
        content = toml_of(file)
        poetry = table_in(content, "tool", "poetry", "dependencies")
        for versions in (table_in(content, "project").get("requires-python"), poetry.get("python")):
            if isinstance(versions, str):
                return versions, file
    return None


def is_older(version: str, versions: str) -> bool:
    """Whether a Python is older than the oldest one of `versions` (PEP 440, or as Poetry writes them)."""
    oldest = re.search(r"(?:>=?|\^|~=?|==)\s*(\d+)\.(\d+)", versions)
    own = re.match(r"(\d+)\.(\d+)", version)
    return oldest is not None and own is not None and tuple(map(int, own.groups())) < tuple(map(int, oldest.groups()))


def tables_of(folder: Path) -> Mapping[str, Any]:
    """The tables below `tool` in the folder's pyproject.toml."""
    return table_in(toml_of(folder / "pyproject.toml"), "tool")


def toml_of(path: Path) -> dict[str, Any]:
    """A file of settings; {} if there is none, or it can't be read."""
    return parsed_toml(_text(path))


def parsed_toml(text: str) -> dict[str, Any]:
    """The tables of a text; {} if it is no TOML."""
    if not text:
        return {}
    import tomllib  # here: it takes 10 ms, and most suites have no project with settings

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):  # a stranger's file may be nested as deep as it likes
        return {}


def _text(path: Path) -> str:
    """A file's text; "" where there is none, it can't be read, or no person wrote so much."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def table_in(data: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The table below these names in TOML; {} where there is none."""
    for name in names:
        inner = data.get(name)
        data = inner if isinstance(inner, dict) else {}
    return data


def _entry(text: str, key: str) -> str:
    """The text at the top of a YAML file, as conda writes it."""
    match = re.search(rf"(?m)^{key}:[ \t]*([^\n#]+)", text)
    return match[1].strip().strip("'\"") if match else ""


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _hash(text: str) -> str:
    # Poetry, Pipenv and Hatch all take these eight characters.
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:8]


def _by_version(path: Path) -> tuple[int, ...]:
    return _numbers(path.name.rpartition("-")[2])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", text))


def _expanded(path: str) -> Path:
    return Path(os.path.expandvars(path)).expanduser()


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def _folder_of_user(variable: str, environ: Mapping[str, str]) -> Path:
    usual, on_mac = _FOLDERS_OF_USER[variable]
    if sys.platform == "darwin":
        return _home() / "Library" / on_mac
    return Path(environ.get(variable) or _home() / usual)
