"""The text that names a Python object: `package.module:name`, or `path/to/file.py:name`; of an agent also a whole file,
`path/to/app.py`. Reads files, runs nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.schema_rules import NAME_CHARACTERS, Rule

_MOST_BYTES = 2_000_000  # of a module that is read
_ANY = "*"
"""Among the names of a module: it can have others."""


class CallableName(Struct, frozen=True):
    """Where an object is: `name`, with dots, in a module or in a file. "" is a whole file, which is run as a script."""

    name: str
    module: str = ""
    file: str = ""

    @property
    def folder(self) -> str:
        """The folder of its file, relative as it was written; "" for a module."""
        return str(Path(self.file).parent) if self.file else ""


def named_callable(target: str, option: str = "callable") -> CallableName:
    """Read the text of an option that names a function or an object. Raises `ValueError` in words."""
    place = parse_callable(target, option)
    if not place.name:
        raise ValueError(f"`{option}` needs the name of a function or an object in {target}: {target}:NAME")
    return place


def parse_callable(target: str, option: str = "callable") -> CallableName:
    """Read the text of an option. Raises `ValueError` in words."""
    if target.endswith(".py") and "\0" not in target:
        return CallableName("", file=target)
    # A path may have colons of its own: the name stands behind the last one.
    if ".py:" in target:
        file, _, name = target.rpartition(":")
        if file.endswith(".py") and _is_dotted(name) and "\0" not in file:
            return CallableName(name, file=file)
    module, _, name = target.partition(":")
    if not (_is_dotted(module) and _is_dotted(name)):
        raise ValueError(f"`{option}` is written package.module:name or path/to/file.py:name, not {target!r}")
    return CallableName(name, module=module)


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def callable_rule(option: str, *, whole_files: bool = False) -> Rule:
    """What `named_callable` checks of an option, for editors; with `whole_files`, what `parse_callable` does."""
    name = f"[^0-9{NAME_CHARACTERS}][^{NAME_CHARACTERS}]*"
    path = rf"{name}(?:\.{name})*"
    named = rf"(?:{path}|.*\.py):{path}"
    return {"properties": {option: {"pattern": rf"^(?:{named}|.*\.py)$" if whole_files else f"^{named}$"}}}


def callable_problem(target: CallableName, folder: Path, path: Iterable[Path] = ()) -> str:
    """What can be known to be wrong without running anything: a file, a module of a package or a name that isn't
    there; else "". Whether something runs a whole file is not known here.

    `folder` is the suite's, `path` more folders with modules."""
    if target.file:
        try:
            file = folder / target.file
            if not file.is_file():
                near = sorted(other.name for other in file.parent.glob("*.py")) if file.parent.is_dir() else []
                return _with_near(f"there is no file {target.file} in {folder}", file.name, near)
        except OSError:
            return ""
        return _missing_name(target.name, file, target.file) if target.name else ""
    parts = target.module.split(".")
    for place in (folder, *path):
        base = place.joinpath(*parts)
        try:
            for file in (base / "__init__.py", base.with_name(base.name + ".py")):
                if file.is_file():
                    return _missing_name(target.name, file, target.module)
        except OSError:
            return ""
    return ""


def _missing_name(name: str, file: Path, place: str) -> str:
    try:
        if file.stat().st_size > _MOST_BYTES:
            return ""
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ""  # it may be written for another version of Python
    names = set(_names(tree.body))
    first = name.partition(".")[0]
    if first in names or _ANY in names:
        return ""
    # A submodule is there without a statement that binds it.
    if file.name == "__init__.py" and ((file.parent / first).is_dir() or (file.parent / f"{first}.py").is_file()):
        return ""
    return _with_near(f"{place} has no {first}", first, sorted(names))


def _with_near(problem: str, name: str, names: list[str]) -> str:
    return "; ".join(filter(None, (problem, did_you_mean(name, names))))


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, and `_ANY` if they can bind others."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        # What is bound inside of a function or a class is no name of the module.
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield _ANY if node.name == "__getattr__" else node.name
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0])
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id
            elif node.id in ("globals", "exec", "setattr", "vars", "locals"):
                yield _ANY
        elif isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name:
            yield node.name
        elif hasattr(ast, "TypeAlias") and isinstance(node, ast.TypeAlias):
            yield node.name.id
        waiting.extend(ast.iter_child_nodes(node))
