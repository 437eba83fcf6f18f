"""A Python module, read: what its names are, without running anything."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from agenteval_tui.agents.discovery.project_files import ProjectFiles

_DEEPEST = 6
_LOOKS_UP = re.compile(r"(?:get|load|read|fetch)(?:_|env$|$)|open$|pop$|Path$")
"""Functions whose argument names what they return: a key, a variable, a file."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?::[A-Za-z_]\w*)?")
Function = ast.FunctionDef | ast.AsyncFunctionDef
_REPLACES = re.compile(
    r"(?:get|post|put|patch|delete|route|websocket|page|app|command|group|callback|subcommand|fixture|event|listener"
    r"|cached_property|property|setter|staticmethod|classmethod|overload|abstractmethod|entrypoint|task|function|prompt"
    r"|resource|middleware|remote|deployment|CrewBase|(?:on|before|after)_\w+|\w*(?:contextmanager|handler|tool)\w*)"
)
"""Decorators that make a route, a command, a tool or the like of a function, by the last part of their names."""


class Module:
    """One file. `path` is relative to the root of the search."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree
        self.imports: dict[str, str] = {}
        """Local name: "package.module.name"; a relative one begins with dots."""
        statements = list(_level(tree.body))
        self.values = bindings(statements)
        """What names of the module's level are bound to, the last one."""
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self._calls: dict[int, list[ast.Call]] = {}
        for node in self.nodes:
            self._import(node)
        for statement in statements:
            if isinstance(statement, Function):
                self.functions[statement.name] = statement
            elif isinstance(statement, ast.ClassDef):
                self.classes[statement.name] = statement

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                # The outermost and first one counts: a function may import another thing under the same name.
                self.imports.setdefault(alias.asname or top, alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                target = f"{base}.{alias.name}" if node.module else base + alias.name
                self.imports.setdefault(alias.asname or alias.name, target)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its tree, the outer ones first."""
        # A walk takes a third as long as parsing the file, and a dozen readers want the nodes of the same module.
        return list(ast.walk(self.tree))

    @property
    def calls(self) -> list[ast.Call]:
        """All calls in it."""
        return self.calls_in(self.tree)

    def calls_in(self, scope: ast.AST) -> list[ast.Call]:
        """The calls in a part of it."""
        if id(scope) not in self._calls:
            nodes = self.nodes if scope is self.tree else ast.walk(scope)
            self._calls[id(scope)] = [node for node in nodes if isinstance(node, ast.Call)]
        return self._calls[id(scope)]

    @property
    def strings(self) -> Iterator[str]:
        """The texts in it."""
        for node in self.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value

    @property
    def folder(self) -> str:
        """Its folder; "" is the root."""
        return self.path.rpartition("/")[0]

    def qualified(self, node: ast.expr | None) -> str:
        """The full name of what an expression names, as it was imported; "" for another expression."""
        if isinstance(node, ast.Subscript):
            return self.qualified(node.value)
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def is_program(self) -> bool:
        """Whether it has `if __name__ == "__main__"`."""
        return any(map(is_guard, self.tree.body))


def is_guard(node: ast.stmt) -> bool:
    """Whether it is `if __name__ == "__main__"`."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
    )


def bindings(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """What these statements bind names to: the last value of each."""
    bound: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            bound.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            bound[node.target.id] = node.value
    return bound


def _level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, those of a program left out."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if not is_guard(statement):
                yield from _level([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            yield from _level([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.With | ast.AsyncWith):
            yield from _level(statement.body)


def _inside(folder: str, package: str) -> Iterator[str]:
    """The ends of a folder's path that begin with the package's name."""
    parts = folder.split("/")
    for number, part in enumerate(parts):
        if part == package:
            yield "/".join(parts[number:])


class Modules:
    """The modules of a project, each parsed once."""

    def __init__(self, files: ProjectFiles) -> None:
        self.files = files
        self._parsed: dict[str, Module | None] = {}
        self._imported: dict[str, list[Module]] = {}

    def get(self, path: str) -> Module | None:
        """The module of a file; None if there is none, or it can't be parsed."""
        if path not in self._parsed:
            data = self.files.text(path)
            self._parsed[path] = None
            if data is not None:
                try:
                    # What is odd in the code of others would be printed here.
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self._parsed[path] = Module(path, ast.parse(data))
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    pass
        return self._parsed[path]

    def is_own(self, module: Module, package: str) -> bool:
        """Whether a top-level package's name means code beside this module or around it, and not an installed library:
        there is such a file, which is not the module itself, and it has a name that the module takes from it."""
        folder, within = module.folder, f"{package}."
        imported = {target.removeprefix(within) for target in module.imports.values() if target.startswith(within)}
        # A package within a package is imported by both names, so its own short name is a library's.
        around = [
            place
            for place in (folder[: -len(end)].rstrip("/") for end in _inside(folder, package))
            if not place or not self.files.has(f"{place}/__init__.py")
        ]
        for place in dict.fromkeys((folder, "src" if folder.startswith("src/") else folder, *around)):
            base = f"{place}/{package}" if place else package
            for path in (f"{base}.py", f"{base}/__init__.py"):
                if path == module.path or not self.files.has(path):
                    continue
                other = self.get(path)
                if other is None or not imported:
                    return True
                passed_on = {name for name, target in other.imports.items() if target.startswith(within)}
                has = {*other.values, *other.functions, *other.classes, *other.imports} - passed_on
                if any(name in has or self._is_part(base, name) for name in imported):
                    return True
        return False

    def _is_part(self, package: str, name: str) -> bool:
        part = f"{package}/{name.partition('.')[0]}"
        return self.files.has(f"{part}.py") or self.files.has(f"{part}/__init__.py")

    def resolve(self, module: Module, name: str) -> tuple[Module, str] | None:
        """Where an imported name of the project is: (its module, its name there; "" is the module itself)."""
        target = module.imports.get(name)
        return None if target is None else self._place(module, target)

    def _place(self, module: Module, target: str) -> tuple[Module, str] | None:
        dots = len(target) - len(target.lstrip("."))
        parts = target[dots:].split(".")
        if dots:
            folder = module.folder
            for _ in range(dots - 1):
                folder = folder.rpartition("/")[0]
            places = [folder]
        else:
            places, above = [], module.folder
            while above:
                places.append(above)
                above = above.rpartition("/")[0]
            project = self.files.project_of(module.path)
            places += ["", f"{project}/src" if project else "src"]
        for place in places:
            for length in (len(parts), len(parts) - 1):
                path = "/".join([*([place] if place else []), *parts[:length]])
                for file in (f"{path}.py", f"{path}/__init__.py"):
                    if length and self.files.has(file) and (other := self.get(file)) is not None:
                        return other, "" if length == len(parts) else parts[-1]
        return None

    def import_folders(self, module: Module) -> list[str]:
        """The folders above a module, inside its project, that Python has to look in for what it imports, and that
        aren't those it looks in by itself: the project's, the module's own, and the one that its package is in."""
        project = self.files.project_of(module.path)
        root = module.folder
        while root != project and self.files.has(f"{root}/__init__.py"):
            root = root.rpartition("/")[0]
        folders: dict[str, None] = {}
        for target in module.imports.values():
            place = None if target.startswith(".") else self._place(module, target)
            path = "" if place is None else place[0].path.removesuffix(".py").removesuffix("/__init__")
            parts = target.split(".")
            for length in (len(parts), len(parts) - 1):
                folder = path.removesuffix("/" + "/".join(parts[:length]))
                if length and folder != path and f"{module.folder}/".startswith(f"{folder}/"):
                    folders[folder] = None
        return [folder for folder in folders if folder not in (project, root, module.folder)]

    def imported(self, module: Module) -> list[Module]:
        """The modules of the project that one imports from, each once; also the packages that they are in, unless it
        is in them itself, and those that it imports by their names, as "package.module.Class"."""
        if module.path not in self._imported:
            targets = list(module.imports.values())
            if any(target.startswith("importlib") for target in targets):
                targets += filter(_DOTTED.fullmatch, module.strings)
            places = (self._place(module, target.replace(":", ".")) for target in targets)
            parts = (part for place in places if place for part in (place[0], *self._packages(module, place[0])))
            self._imported[module.path] = list({part.path: part for part in parts}.values())
        return self._imported[module.path]

    def _packages(self, importer: Module, module: Module) -> Iterator[Module]:
        """The packages around a module of the project, whose code runs when it is imported."""
        folder = module.folder
        while folder and not f"{importer.folder}/".startswith(f"{folder}/"):
            package = self.get(f"{folder}/__init__.py")
            if package is None:
                return
            if package is not module:
                yield package
            folder = folder.rpartition("/")[0]

    def value(self, module: Module, node: ast.expr | None, depth: int = 0) -> tuple[Module, ast.AST] | None:
        """What an expression stands for: the expression, function or class that a name is bound to."""
        if node is None or depth > _DEEPEST:
            return None
        if isinstance(node, ast.Name):
            return self.named(module, node.id, depth) or (module, node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            place = self.resolve(module, node.value.id)
            if place is not None and place[1] == "":
                return self.named(place[0], node.attr, depth + 1)
        return module, node

    def named(self, module: Module, name: str, depth: int = 0) -> tuple[Module, ast.AST] | None:
        """What a name of a module is bound to, wherever it was imported from."""
        if depth > _DEEPEST:
            return None
        if name in module.values:
            return self.value(module, module.values[name], depth + 1)
        if name in module.functions:
            return module, module.functions[name]
        if name in module.classes:
            return module, module.classes[name]
        place = self.resolve(module, name)
        return self.named(place[0], place[1], depth + 1) if place is not None and place[1] else None

    def text(self, module: Module, node: ast.AST | None, depth: int = 0) -> str:
        """The text of an expression, as far as it is written in the project; "" if none is."""
        if node is None or depth > _DEEPEST:
            return ""
        if isinstance(node, ast.JoinedStr):
            return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts: list[ast.expr] = []
            left: ast.expr = node
            # Not one within another, as they are parsed: a prompt may be the sum of many lines.
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):
                parts.append(left.right)
                left = left.left
            return "".join([self.text(module, part, depth + 1) for part in (left, *reversed(parts))])
        if isinstance(node, ast.BinOp):
            return self.text(module, node.left, depth + 1)
        if isinstance(node, ast.List | ast.Tuple):
            return "\n".join(filter(None, (self.text(module, part, depth + 1) for part in node.elts)))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "format", "dedent", "replace"):
                inner = node.args[0] if node.func.attr == "dedent" and node.args else node.func.value
                return self.text(module, inner, depth + 1)
            looks_up = _LOOKS_UP.match(called_name(node))
            return self.text(module, node.args[0], depth + 1) if len(node.args) == 1 and not looks_up else ""
        if isinstance(node, ast.Name | ast.Attribute):
            place = self.value(module, node, depth + 1)
            if place is not None and place[1] is not node and isinstance(place[1], ast.expr):
                return self.text(place[0], place[1], depth + 1)
            return self._text_of_settings(module, node, depth + 1) if isinstance(node, ast.Attribute) else ""
        return constant_text(node)

    def _text_of_settings(self, module: Module, node: ast.Attribute, depth: int) -> str:
        """The text that `node`, an attribute of an object such as the settings of an application, has by default."""
        made = self.value(module, node.value, depth)
        cls = self.value(made[0], made[1].func, depth) if made is not None and isinstance(made[1], ast.Call) else None
        if cls is None or not isinstance(cls[1], ast.ClassDef):
            return ""
        for each in ast.walk(cls[1]):
            if not isinstance(each, ast.Assign | ast.AnnAssign):
                continue
            for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
                own = code_of(target).removeprefix("self.") == node.attr
                if own and (text := self.default_text(cls[0], each.value, depth)):
                    return text
        return ""

    def default_text(self, module: Module, value: ast.expr | None, depth: int = 0) -> str:
        """The text that a field of a class has by default: `os.getenv("PREFIX", "/api")`, `Field("/api")`."""
        if isinstance(value, ast.Call):
            name = code_of(value.func).rpartition(".")[2]
            if name in ("getenv", "get"):
                return self.text(module, value.args[1], depth) if len(value.args) > 1 else ""
            if name == "Field" and (default := keyword(value, "default")) is not None:
                return self.text(module, default, depth)
        return self.text(module, value, depth)

    def literal(self, module: Module, node: ast.expr | None) -> object:
        """The value of a literal, also behind a name; None for anything else."""
        place = self.value(module, node)
        if place is None:
            return None
        try:
            return ast.literal_eval(place[1])
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """The argument that a call gives by one of these names."""
    return next((word.value for name in names for word in call.keywords if word.arg == name), None)


def called_name(call: ast.Call) -> str:
    """What a call calls, without the object or module that has it; "" where it has no name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else str(getattr(call.func, "id", ""))


def constant_text(node: ast.AST | None) -> str:
    """A text that is written as such; "" for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def annotation_of(node: ast.expr) -> ast.expr | None:
    """What an annotation means that may be written as a text; None if that is not Python."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return node
    try:
        return ast.parse(node.value, mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a null byte, before Python 3.11.4
        return None


def code_of(node: ast.AST) -> str:
    """An expression or statement as code; "" of one that can't be written, such as a sum of hundreds of texts."""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return ""


def source_of(node: ast.AST, length: int = 60) -> str:
    """An expression on one line, cut."""
    text = " ".join(code_of(node).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def returns_a_value(function: Function) -> bool:
    """Whether there is an answer in what a function returns or yields: a `return None` only ends it."""
    return any(
        isinstance(node, ast.Yield)
        or (
            isinstance(node, ast.Return)
            and node.value is not None
            and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        )
        for node in ast.walk(function)
    )


def returns_dicts(function: Function) -> list[str]:
    """The keys of the dicts that a function returns, also in a call: `jsonify({"answer": text})`."""
    keys: list[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for part in ast.walk(node.value):
                if isinstance(part, ast.Dict):
                    keys += filter(None, map(constant_text, part.keys))
                elif isinstance(part, ast.Call):
                    keys += [word.arg for word in part.keywords if word.arg]
    return keys


def stays_callable(module: Module, node: Function | ast.ClassDef) -> bool:
    """Whether decorators leave a function one that takes what is written: they watch or repeat its calls, say."""
    decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return not any(_REPLACES.fullmatch(module.qualified(each).rpartition(".")[2]) for each in decorators)


def needed(function: Function) -> list[ast.arg]:
    """The parameters without a default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    return needed + [
        node for node, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None
    ]


def is_made_with_nothing(cls: ast.ClassDef) -> bool:
    """Whether an object of the class is made without arguments."""
    for statement in cls.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return [node.arg for node in needed(statement)] == ["self"]
    return True
