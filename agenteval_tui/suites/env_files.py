"""The `.env` of a suite: which file that is, and what is taken from it."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.projects import SAMPLES, project_of_folder

NAME = ".env"
_LANGGRAPH = "langgraph.json"
_MAX_BYTES = 1_000_000
PROJECT_FILES = (
    *("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "requirements.txt", "environment.yml", "environment.yaml"),
    *(_LANGGRAPH, "package.json", "pixi.toml"),
)
"""A folder with one of these is a project's, also without git."""

_LOADS_CODE = re.compile(
    r"(?:LD|DYLD|_RLD|LDR|NPM_CONFIG|LUA|JULIA|GIT|BASH|DOTNET|COR|CORECLR|GCONV|NIX_LD|NODE_REPL)_\w*"
    r"|NODE_(?:OPTIONS|PATH)|(?:JAVA_TOOL|JDK_JAVA)_OPTIONS|R_(?:PROFILE|ENVIRON|LIBS)\w*"
    r"|PYTHON(?!_|(?:UNBUFFERED|UTF8|IOENCODING|HASHSEED|DONTWRITEBYTECODE|ASYNCIODEBUG|DEVMODE|FAULTHANDLER)$)\w*"
    r"|RUBY(?:OPT|LIB)|PERL5\w*|PERLLIB|BASHOPTS|SHELLOPTS|ENV|ZDOTDIR|PROMPT_COMMAND|PS4|IFS|PATH|CDPATH"
    r"|_JAVA_OPTIONS|JAVA_OPTS|CLASSPATH|(?:MAVEN|GRADLE|SBT)_OPTS|PHPRC|PHP_INI_SCAN_DIR|GEM_(?:HOME|PATH)|BUNDLE_\w+"
    r"|DENO_\w+|BUN_\w+|GOFLAGS|MAKEFLAGS|RUSTC_(?:WORKSPACE_)?WRAPPER|RUSTFLAGS|CARGO_\w+|GLIBC_TUNABLES|NLSPATH"
    r"|OPENSSL_(?:CONF|MODULES|ENGINES)|SSH_ASKPASS|EDITOR|VISUAL|PAGER|BROWSER|LESSOPEN|LESSCLOSE"
    r"|ERL_(?:AFLAGS|FLAGS|ZFLAGS|LIBS)|VIRTUAL_ENV|CONDA_\w+|UV_\w+|PIP_\w+|HOME|SHELL|__PYVENV_LAUNCHER__",
    re.IGNORECASE,
)
_CREDENTIAL = re.compile(
    r"(?!R_|DYLD_)\w+_(?:KEY|TOKENS?|SECRET|PASSWORD|PASSWD|ID|USER|USERNAME|EMAIL)", re.IGNORECASE
)
"""GIT_TOKEN, CARGO_REGISTRY_TOKEN, LD_SDK_KEY of LaunchDarkly: values that somebody signs in with load nothing."""
_WORD = re.compile(r"[\w.-]*", re.ASCII)


def loads_code(variable: str) -> bool:
    """Whether a variable makes a loader, an interpreter or git run code or find other programs: LD_PRELOAD, PYTHONPATH,
    NODE_OPTIONS, PATH. Such a variable is never taken from a file of a project."""
    return _LOADS_CODE.fullmatch(variable) is not None and _CREDENTIAL.fullmatch(variable) is None


def _names_a_file(value: str, folders: Sequence[Path]) -> bool:
    """Whether a value of ENV can be the script that an interactive `sh` reads: it expands the value, and opens it as a
    path. Projects write `ENV=dev`, which is a word."""
    return _WORD.fullmatch(value) is None or any((folder / value).is_file() for folder in folders)


class EnvFiles(Struct, frozen=True):
    """What the files give that a suite's variables come from."""

    files: tuple[Path, ...] = ()
    """Those that were read. Of two that have a variable, the last one counts."""
    variables: Mapping[str, str] = {}
    refused: tuple[str, ...] = ()
    """Variables that are not taken from a file, because they make programs load code."""
    searched: tuple[Path, ...] = ()
    """The folders that were looked in, the suite's first."""

    @property
    def write_to(self) -> Path:
        """The file in which a missing variable belongs: without one, that of the nearest project."""
        if self.files:
            return self.files[-1]
        return next(filter(_is_project, self.searched), self.searched[-1]) / NAME


def search_folders(folder: Path) -> tuple[Path, ...]:
    """The folders in which the files of a suite's project lie: its own first, then those around it, up to the
    repository's root. Without a repository, up to the outermost folder that is a project's, but never as far as the
    home folder or that of temporary files."""
    real = folder.resolve()
    project = project_of_folder(real)
    above = (real, *real.parents)
    if project == SAMPLES:
        return (real,)
    if project != str(real) or (real / ".git").exists():
        return above[: above.index(Path(project)) + 1]
    stops = {Path(tempfile.gettempdir()).resolve(), _home()}
    within = above[: next((number for number, path in enumerate(above) if path in stops), len(above) - 1)]
    last = max((number for number, path in enumerate(within) if _is_project(path)), default=0)
    return within[: last + 1] or (real,)


def _home() -> Path:
    try:
        return Path.home().resolve()
    except RuntimeError:
        return Path("/")


def _is_project(folder: Path) -> bool:
    return any((folder / name).is_file() for name in PROJECT_FILES)


def env_files(folder: Path, config: Mapping[str, Any] | None = None) -> EnvFiles:
    """What the files of a suite in `folder` give: those that `env_file` in an agent's `config` names, else the nearest
    `.env` up to the repository's root, or what a `langgraph.json` as near names in its place.

    Raises `AgentevalError` when a file can't be read, or one that is named is not there or outside of the repository.
    """
    folders = search_folders(folder)
    named = (config or {}).get("env_file")
    if named:
        listed = [named] if isinstance(named, str) else list(named)
        files = tuple(_named_file(str(name), folder, folders[-1]) for name in listed)
        return _taken(files, [read_dotenv(file) for file in files], folders, len(folders))
    # The nearest folder that has anything decides; a langgraph.json stands before a `.env` of the same folder.
    for number, place in enumerate(folders):
        variables = _of_langgraph(place)
        if variables is not None:
            return _taken((place / _LANGGRAPH,), [variables], folders, number + 1)
        for file in _candidates(place, folders[-1]):
            if file.is_file():
                return _taken((file,), [read_dotenv(file)], folders, number + 1)
    return EnvFiles(searched=folders)


def _taken(
    files: Sequence[Path], read: Sequence[Mapping[str, str]], folders: Sequence[Path], searched: int
) -> EnvFiles:
    variables = {name: value for values in read for name, value in values.items()}
    refused = tuple(
        name
        for name, value in variables.items()
        if loads_code(name) and (name != "ENV" or _names_a_file(value, folders))
    )
    allowed = {name: value for name, value in variables.items() if name not in refused}
    return EnvFiles(tuple(files), allowed, refused, tuple(folders[:searched]))


def _named_file(named: str, folder: Path, root: Path) -> Path:
    path = (folder / Path(named).expanduser()).resolve()
    if not path.is_relative_to(root) and folder.resolve() != config_dir().resolve():
        raise AgentevalError(
            f"`env_file` names {path}, which is outside of {root}",
            fix="move it into the repository, or set its variables before you start agenteval",
        )
    if not path.is_file():
        raise AgentevalError(
            f"`env_file` names {path}, which does not exist",
            fix=f"create it, or correct the path, which starts at {folder}",
        )
    return path


def _candidates(folder: Path, root: Path) -> Iterator[Path]:
    named = _langgraph(folder).get("env")
    if isinstance(named, str) and named:
        # A repository must not name files of the user outside of it.
        file = (folder / named).resolve()
        if file.is_relative_to(root):
            yield file
    yield folder / NAME


def _of_langgraph(folder: Path) -> dict[str, str] | None:
    """The variables that a langgraph.json in this folder has itself."""
    env = _langgraph(folder).get("env")
    return {str(name): str(value) for name, value in env.items()} if isinstance(env, dict) and env else None


def _langgraph(folder: Path) -> Mapping[str, Any]:
    path = folder / _LANGGRAPH
    try:
        if not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return {}
        read = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def read_dotenv(path: Path) -> dict[str, str]:
    """The variables of a `.env` file, as python-dotenv reads it: comments, `export`, quotes, values of several lines.

    No value is put into another: `$NAME` and `${NAME}` stay. {} when there is no file. Raises `AgentevalError`, with
    the line, for what is no `NAME=value`.
    """
    try:
        if not path.is_file():
            return {}
        with path.open("rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise AgentevalError(f"this file can't be read: {error.strerror}", where=str(path)) from None
    if len(data) > _MAX_BYTES:
        raise AgentevalError(
            f"this .env file is too large: at most {_MAX_BYTES / 1e6:g} MB are read",
            where=str(path),
            fix="make it smaller, or name another file: `env_file: PATH`",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise AgentevalError("this file is not UTF-8", where=str(path), fix="save it as UTF-8") from None
    from dotenv.parser import parse_stream  # here: it takes 3 ms, and most folders have no .env file

    values: dict[str, str] = {}
    for binding in parse_stream(StringIO(text)):
        if binding.error or (binding.key is not None and binding.value is None):
            # The text may be a secret: only its place is reported. Empty lines before it belong to it here.
            blank = re.match(r"\s*", binding.original.string)
            line = binding.original.line + len(re.findall(r"\r\n|\n|\r", blank.group() if blank else ""))
            raise AgentevalError(
                "this line does not have the form NAME=VALUE", where=f"{path}:{line}:1", fix="write NAME=value"
            )
        if binding.key is not None:
            values[binding.key] = binding.value or ""
    return values
