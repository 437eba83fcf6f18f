"""How a program that asks a model takes its question: as a word of its command, or on its standard input."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agenteval_tui.agents.finding.fields import MESSAGE_FIELDS
from agenteval_tui.agents.finding.python_module import Module

_PLACE = "{{prompt}}"
_NODE_ARGUMENT = re.compile(r"process\.argv\s*(?:\[\s*2\s*\]|\.slice\(\s*2\s*\))|\]\s*=\s*process\.argv\b")


def python_words(module: Module) -> list[str]:
    """The words with the question that the command of a Python program ends with. []: it reads its standard input.

    Read are argparse, click, typer and `sys.argv`. The only argument is taken for the question, and an option that is
    called as questions are. With several arguments it is not known which is which.
    """
    positional = list(_positional(module))
    if len(positional) == 1:
        return ["--", _PLACE]
    if not positional:
        for flag in _flags(module):
            if _asks(flag):
                return [flag, _PLACE]
        return [_PLACE] if _reads_argv(module) else []
    return []


def node_words(text: str) -> list[str]:
    """The same of a program for Node, of whose text only `process.argv` is read."""
    return [_PLACE] if _NODE_ARGUMENT.search(text) else []


def _asks(name: str) -> bool:
    return name.lstrip("-").replace("-", "_").lower() in MESSAGE_FIELDS


def _positional(module: Module) -> Iterator[str]:
    for call in module.calls:
        name = _text(call.args[0]) if call.args else ""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        is_argument = last == "add_argument" and not name.startswith("-") and not _has(call, "choices")
        if name and (is_argument or module.qualified(call.func) in ("click.argument", "rich_click.argument")):
            yield name
    for function in module.functions.values():
        if _is_typer(module, function):
            yield from _parameters(function, positional=True)


def _flags(module: Module) -> Iterator[str]:
    for call in module.calls:
        last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if last == "add_argument" or module.qualified(call.func) in ("click.option", "rich_click.option"):
            names = [name for name in map(_text, call.args) if name.startswith("--")]
            yield from names if not _has(call, "is_flag") and not _has(call, "action") else ()
    for function in module.functions.values():
        if _is_typer(module, function):
            yield from (f"--{name.replace('_', '-')}" for name in _parameters(function, positional=False))


def _is_typer(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    if not any(target.partition(".")[0] == "typer" for target in module.imports.values()):
        return False
    decorated = any(ast.unparse(node).endswith((".command()", ".callback()")) for node in function.decorator_list)
    return decorated or any(
        module.qualified(call.func) == "typer.run"
        and [getattr(node, "id", "") for node in call.args] == [function.name]
        for call in module.calls
    )


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, positional: bool) -> Iterator[str]:
    """The parameters of a command of typer: those without a default are arguments, unless they are declared options."""
    arguments = function.args.args
    defaults: list[ast.expr | None] = [None] * (len(arguments) - len(function.args.defaults))
    for argument, default in zip(arguments, [*defaults, *function.args.defaults], strict=True):
        declared = f"{ast.unparse(argument.annotation) if argument.annotation else ''} "
        declared += ast.unparse(default) if default is not None else ""
        is_positional = "Argument(" in declared or (default is None and "Option(" not in declared)
        if is_positional == positional:
            yield argument.arg


def _reads_argv(module: Module) -> bool:
    return any(
        isinstance(node, ast.Subscript)
        and module.qualified(node.value) in ("sys.argv", "argv")
        and ast.unparse(node.slice) in ("1", "1:")
        for node in ast.walk(module.tree)
    )


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _has(call: ast.Call, keyword: str) -> bool:
    return any(node.arg == keyword for node in call.keywords)
