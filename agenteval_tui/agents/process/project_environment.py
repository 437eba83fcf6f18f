"""The environment that Python code of a suite runs in: which Python, where its modules are found, which `.env`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.process.project_interpreter import (
    ENVIRONMENT_FOLDERS,
    Interpreter,
    Tool,
    find_interpreter,
    named_interpreter,
    tables_of,
    tool_of,
)
from agenteval_tui.suites.callable_name import parse_callable
from agenteval_tui.suites.env_files import PROJECT_FILES, EnvFiles, env_files, search_folders

_MOST_FOLDERS = 2_000  # of a repository in which the project of a module is looked for
_DEPTH = 3
_PASSED_OVER = frozenset(("node_modules", "__pycache__", "site-packages", "build", "dist", *ENVIRONMENT_FOLDERS))


class ProjectEnvironment(Struct, frozen=True):
    """What Python code of a suite in `folder` runs in. `path` are folders that modules are found in before installed
    packages, after the suite's own; `last` those that are found after them."""

    folder: Path
    interpreter: Interpreter
    path: tuple[Path, ...] = ()
    last: tuple[Path, ...] = ()
    env_files: EnvFiles = EnvFiles()
    tool: Tool | None = None
    around: tuple[Path, ...] = ()
    """The folders of the project, that of the suite first."""

    @property
    def program(self) -> str | None:
        """The interpreter to start; None: the Python that runs agenteval, whose environment this is."""
        # Our own Python is started with `-P`, which other versions may lack (`host_argv`).
        return None if self.interpreter.is_own and self.interpreter.source != "option" else self.interpreter.program

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """`env` with what the activation of the environment sets: its programs are found first."""
        prefix = self.interpreter.prefix
        if prefix is None:
            return dict(env)
        # `PYTHONHOME` would lead the environment's Python to the library of another one.
        inherited = {name: value for name, value in env.items() if name != "PYTHONHOME"}
        name = "CONDA_PREFIX" if (prefix / "conda-meta").is_dir() else "VIRTUAL_ENV"
        path = env.get("PATH", os.defpath)
        return {**inherited, name: str(prefix), "PATH": f"{prefix / 'bin'}{os.pathsep}{path}"}


def project_environment(
    folder: Path,
    *,
    targets: Iterable[str] = (),
    interpreter: str | None = None,
    path: Sequence[Path] = (),
    config: Mapping[str, Any] | None = None,
) -> ProjectEnvironment:
    """The environment for the modules of `targets` ("package.module:name"), in a suite in `folder`.

    `interpreter` and `path` are what the options say; `config` is the agent's, for `env_file`. Only files and exported
    variables are read. Raises `AgentevalError` where the environment that the project names can't be used.
    """
    folder, targets = folder.resolve(), tuple(targets)
    around = search_folders(folder)
    holder = _code_folder(targets, folder, path, around)
    packages = list(_packages_of(targets, folder))
    code = [*packages, *([] if holder is None else [holder])]
    # The folders of the code come before those around the suite: code in another project of a repository needs the
    # packages of that project.
    own = [above for place in code for above in search_folders(place) if above not in around]
    folders = _unique([*own, *around])
    chosen = named_interpreter(interpreter, folder) if interpreter else find_interpreter(folders, os.environ)
    sources = [source for project in folders for source in _sources(project)]
    roots = [project for project in folders if any((project / name).is_file() for name in PROJECT_FILES)]
    around_package = [import_root(folder / "__init__.py")] if (folder / "__init__.py").is_file() else []
    # What the suite names comes before what is found, and the project's own folders before its environment's packages:
    # a module beside the suite hides an installed one, as with `python -m`.
    first = _unique([*path, *([holder] if holder is not None else ()), *around_package, *sources, *chosen.packages])
    later = _unique([*roots, *_members(folders, around[-1]), *packages])
    last = [place for place in later if place not in first and place != folder]
    return ProjectEnvironment(
        folder,
        interpreter=chosen,
        path=tuple(first),
        last=tuple(last),
        env_files=env_files(folder, config),
        tool=tool_of(folders),
        around=around,
    )


def _code_folder(targets: Iterable[str], folder: Path, path: Sequence[Path], around: Sequence[Path]) -> Path | None:
    """The folder from which the first module or file of `targets` that lies elsewhere is imported."""
    for target in dict.fromkeys(targets):
        try:
            name = parse_callable(target)
        except ValueError:
            continue
        if name.file:
            place: Path | None = import_root((folder / name.file).resolve())
        elif any(_has(before, name.module) for before in (folder, *path)):
            continue
        else:
            place = _holder(name.module, around)
        if place is not None and place != folder:
            return place
    return None


def import_root(file: Path) -> Path:
    """The folder from which a file is imported: its own, or that of the outermost package around it."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def _packages_of(targets: Iterable[str], folder: Path) -> Iterator[Path]:
    """The folders of files in packages. As programs, such files import what lies beside them by its bare name."""
    for target in targets:
        try:
            file = parse_callable(target).file
        except ValueError:
            continue
        if file and ((place := (folder / file).resolve().parent) / "__init__.py").is_file():
            yield place


def _unique(places: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(places))


def _has(place: Path, module: str) -> bool:
    """Whether a module is imported from a folder."""
    base, (first, dot, _) = place.joinpath(*module.split(".")), module.partition(".")
    if base.with_name(base.name + ".py").is_file() or (base / "__init__.py").is_file():
        return True
    # It has the package that the module is in: that makes the module itself, or has it in a library.
    return bool(dot) and (place / first / "__init__.py").is_file()


def _holder(module: str, around: Sequence[Path]) -> Path | None:
    """The folder from which a module is imported: of the nearest project that has it."""
    for folder in around:
        for place in (*_sources(folder), folder):
            if _has(place, module):
                return place
    # A repository may hold several projects: the one nearest to the suite first.
    inside = sorted(_projects_below(around[-1]), key=lambda project: _distance(project, around[0]))
    return next((place for project in inside for place in (*_sources(project), project) if _has(place, module)), None)


def _distance(folder: Path, start: Path) -> tuple[int, str]:
    shared = len(Path(os.path.commonpath([folder, start])).parts)
    return len(folder.parts) + len(start.parts) - 2 * shared, str(folder)


def _projects_below(root: Path) -> Iterator[Path]:
    """The projects in a repository."""
    waiting, looked = [(root, 0)], 0
    while waiting and looked < _MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        looked += 1
        try:
            below = [item for item in os.scandir(folder) if item.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if depth and any((folder / name).is_file() for name in PROJECT_FILES):
            yield folder
        if depth < _DEPTH:
            names = sorted(
                item.name for item in below if item.name not in _PASSED_OVER and not item.name.startswith(".")
            )
            waiting += [(folder / name, depth + 1) for name in names]


def _members(folders: Sequence[Path], root: Path) -> Iterator[Path]:
    """Where the other packages of a workspace are imported from (uv's, and Poetry's dependencies with a path)."""
    for folder in folders:
        tables = tables_of(folder)
        for member in workspace_members(folder, tables):
            yield from (*_sources(member), member)
        for table in (_get(tables, "poetry", "dependencies"), _get(tables, "uv", "sources")):
            for entry in table.values() if isinstance(table, dict) else ():
                named = entry.get("path") if isinstance(entry, dict) else None
                if isinstance(named, str):
                    place = (folder / named).resolve()
                    # A path may lead anywhere; only what is in the repository is its own code.
                    if place.is_dir() and place.is_relative_to(root):
                        yield from (*_sources(place), place)


def workspace_members(folder: Path, tables: Mapping[str, Any]) -> Iterator[Path]:
    """The folders of the packages in uv's workspace in `folder`. `tables`: those below `tool` in its pyproject.toml."""
    patterns = _get(tables, "uv", "workspace", "members")
    for pattern in patterns if isinstance(patterns, list) else ():
        # A pattern must not lead out of the repository.
        if not isinstance(pattern, str) or not pattern or Path(pattern).is_absolute() or ".." in pattern:
            continue
        try:
            members = sorted(folder.glob(pattern))
        except ValueError:  # no pattern: "**core", say
            continue
        for member in members[:_MOST_FOLDERS]:
            if (member / "pyproject.toml").is_file():
                yield member


def _sources(folder: Path) -> list[Path]:
    """The folders of a project that hold its packages, besides its own: `src`, and what its settings name."""
    names: list[Any] = ["src"]
    if (folder / "pyproject.toml").is_file():
        tables = tables_of(folder)
        # Each tool that builds packages has its own setting for where they are.
        packages = _get(tables, "setuptools", "package-dir")
        names += [packages.get("")] if isinstance(packages, dict) else []
        names += _list(_get(tables, "setuptools", "packages", "find", "where"))
        names += [
            source.get("from") for source in _list(_get(tables, "poetry", "packages")) if isinstance(source, dict)
        ]
        wheel = _list(_get(tables, "hatch", "build", "targets", "wheel", "packages"))
        names += [str(Path(source).parent) for source in wheel if isinstance(source, str)]
        names += [_get(tables, "pdm", "build", "package-dir"), _get(tables, "maturin", "python-source")]
        names += [_get(tables, "uv", "build-backend", "module-root")]
        names += _list(_get(tables, "pytest", "ini_options", "pythonpath"))
    places = [(folder / source).resolve() for source in names if isinstance(source, str) and source not in ("", ".")]
    return _unique(source for source in places if source.is_dir() and source.is_relative_to(folder))


def _get(tables: Mapping[str, Any], *keys: str) -> object:
    value: Any = tables
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, str) else []
