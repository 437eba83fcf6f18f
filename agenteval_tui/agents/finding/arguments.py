"""How a program that asks a model takes its question: as a word of its command, or on its standard input."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agenteval_tui.agents.finding.fields import MESSAGE_FIELDS
from agenteval_tui.agents.finding.python_module import Function, Module, called_name, code_of, constant_text, keyword

_PLACE = "{{prompt}}"
_DASHED = f"--{_PLACE}"
_NODE_ARGUMENT = re.compile(r"process\.argv\s*(?:\[\s*2\s*\]|\.slice\(\s*2\s*\))|\]\s*=\s*process\.argv\b")
_NODE_NAMED = re.compile(r"(\w+)\s*(?::[^=\n]+)?\]?\s*=\s*process\.argv")
_PLACEHOLDER = re.compile(r"<.*>|\[.*\]|\{.*\}|\.\.\.")
"""What a usage writes for a value: `--type <type>`."""
_CONTINUED = re.compile(r"\\\n\s*")


class Arguments(Struct, frozen=True):
    """The words with the question that a program's command ends with, [] where it reads its standard input; and the
    questions in the commands that are shown."""

    words: list[str]
    prompts: tuple[str, ...] = ()
    is_named: bool = False
    """Whether the argument for the question is called as questions are."""


class _Option(Struct, frozen=True):
    names: tuple[str, ...]
    required: bool = False
    choices: tuple[str, ...] = ()


def declares_arguments(module: Module) -> bool:
    """Whether a module says itself what the arguments of its program are."""
    return any((*_positional(module), *_options(module), *_chosen(module))) or _has_subcommands(module)


def python_arguments(module: Module, readme: str = "", command: str = "") -> Arguments:
    """What the arguments of a Python program are, as argparse, click, typer or `sys.argv` read them.

    The only argument is taken for the question, or an option that is called as questions are. With several arguments
    it is not known which is which. Other options that must be there are written as commands in its docstring, or
    in `readme`, show them: `command` is what they begin with, if that is not the module's file.
    """
    positional, options = list(_positional(module)), list(_options(module))
    question = next((option for option in options if any(map(_asks, option.names))), None)
    if question is not None:  # files to ask about, say
        positional = [argument for argument in positional if argument.required or _asks(argument.names[0])]
    if len(positional) > 1 or _has_subcommands(module):
        return Arguments([])
    if positional and question is not None and not _asks(positional[0].names[0]):
        return Arguments([])
    chosen = _chosen(module)
    if not all(chosen) or (chosen and not positional and question is None):
        return Arguments([])  # a command, whose other arguments are read elsewhere
    is_named = question is not None
    if positional:
        is_named = _asks(positional[0].names[0])
        question, asked = None, ["--", _PLACE]
    elif question is not None:
        name = max(question.names, key=len)
        # As one word, a prompt that begins with `-` is not taken for an option.
        asked = [f"{name}={_PLACE}"] if name.startswith("--") else [name, _PLACE]
    elif _reads_dashed(module):
        asked = [_DASHED]
    elif _reads_argv(module):
        asked = [_PLACE]
    else:
        return Arguments([])
    needed = [option for option in options if option.required and option is not question]
    usages = list(_usages(module, readme, command))
    words = chosen
    for option in needed:
        example = [option.names[-1], option.choices[0]] if option.choices else []
        words += next(filter(None, (_written(usage, option.names) for usage in usages)), example)
    prompts = [
        [word for word in usage[-1:] if " " in word] if question is None else _written(usage, question.names)[1:]
        for usage in usages
    ]
    if asked == [_DASHED]:
        prompts = [[word.removeprefix("--") for word in usage] for usage in prompts]
    return Arguments([*words, *asked], tuple(dict.fromkeys(prompt for usage in prompts for prompt in usage)), is_named)


def node_words(text: str, *, asks_line: bool) -> list[str]:
    """The words with the question of a program for Node, of whose text only `process.argv` is read. `asks_line`: it
    also asks by `readline`; then its argument is the question only where it is called so."""
    if _NODE_ARGUMENT.search(text) is None or (asks_line and not any(map(_asks, _NODE_NAMED.findall(text)))):
        return []
    return [_PLACE]


def _asks(name: str) -> bool:
    return name.lstrip("-").replace("-", "_").lower() in MESSAGE_FIELDS


def _usages(module: Module, readme: str, command: str) -> Iterator[list[str]]:
    """The words after the program in the commands that are shown."""
    start = f"{command} " if command else module.path.rpartition("/")[2]
    texts = f"{ast.get_docstring(module.tree) or ''}\n{readme}"
    for line in _CONTINUED.sub(" ", texts).splitlines():
        before, program, after = line.partition(start)
        # A prompt of the shell, or what starts a file: `uv run --script FILE`.
        if program and len(before.split()) <= (1 if command else 4):
            try:
                yield shlex.split(after.partition("`")[0], comments=True)
            except ValueError:
                continue


def _written(usage: Sequence[str], names: Sequence[str]) -> list[str]:
    """An option and its value, as a command has them; [] where it has not."""
    for number, word in enumerate(usage):
        name, mark, value = word.partition("=")
        if name in names and mark:
            return [] if _PLACEHOLDER.fullmatch(value) else [name, value]
        if word in names and number + 1 < len(usage):
            return [] if _PLACEHOLDER.fullmatch(usage[number + 1]) else [word, usage[number + 1]]
    return []


def _positional(module: Module) -> Iterator[_Option]:
    for call in module.calls:
        name = constant_text(call.args[0]) if call.args else ""
        is_argument = (
            called_name(call) == "add_argument" and not name.startswith("-") and keyword(call, "choices") is None
        )
        if name and (is_argument or module.qualified(call.func) in ("click.argument", "rich_click.argument")):
            yield _Option((name,), required=constant_text(keyword(call, "nargs")) not in ("*", "?"))
    for function in module.functions.values():
        if _is_typer(module, function):
            yield from (_Option((name,), required=True) for name in _parameters(function, positional=True))


def _options(module: Module) -> Iterator[_Option]:
    for call in module.calls:
        if called_name(call) == "add_argument" or module.qualified(call.func) in ("click.option", "rich_click.option"):
            names = tuple(name for name in map(constant_text, call.args) if name.startswith("-"))
            if names and keyword(call, "is_flag") is None and keyword(call, "action") is None:
                required = keyword(call, "required")
                yield _Option(names, isinstance(required, ast.Constant) and required.value is True, _choices(call))
    for function in module.functions.values():
        if _is_typer(module, function):
            for name in _parameters(function, positional=False):
                yield _Option((f"--{name.replace('_', '-')}",))


def _has_subcommands(module: Module) -> bool:
    """Whether a word before the arguments says what is to be done."""
    groups = ("click.group", "click.Group", "rich_click.group")
    commands = [function for function in module.functions.values() if _is_typer(module, function)]
    return len(commands) > 1 or any(
        called_name(call) == "add_subparsers" or module.qualified(call.func) in groups for call in module.calls
    )


def _chosen(module: Module) -> list[str]:
    """The first choice of each word that must be one of several; "" where they are not written."""
    return [
        next(iter(_choices(call)), "")
        for call in module.calls
        if called_name(call) == "add_argument"
        and call.args
        and constant_text(call.args[0])[:1] not in ("", "-")
        and keyword(call, "choices") is not None
    ]


def _choices(call: ast.Call) -> tuple[str, ...]:
    choices = keyword(call, "choices")
    values = choices.elts if isinstance(choices, ast.List | ast.Tuple) else []
    return tuple(filter(None, map(constant_text, values)))


def _is_typer(module: Module, function: Function) -> bool:
    if not any(target.partition(".")[0] == "typer" for target in module.imports.values()):
        return False
    decorated = any(code_of(node).endswith((".command()", ".callback()")) for node in function.decorator_list)
    return decorated or any(
        module.qualified(call.func) == "typer.run"
        and [getattr(node, "id", "") for node in call.args] == [function.name]
        for call in module.calls
    )


def _parameters(function: Function, positional: bool) -> Iterator[str]:
    """The parameters of a command of typer: those without a default are arguments, unless they are declared options."""
    arguments = function.args.args
    defaults: list[ast.expr | None] = [None] * (len(arguments) - len(function.args.defaults))
    for argument, default in zip(arguments, [*defaults, *function.args.defaults], strict=True):
        declared = " ".join(code_of(node) for node in (argument.annotation, default) if node is not None)
        is_positional = "Argument(" in declared or (default is None and "Option(" not in declared)
        if is_positional == positional:
            yield argument.arg


def _reads_argv(module: Module) -> bool:
    return any(
        isinstance(node, ast.Subscript)
        and module.qualified(node.value) in ("sys.argv", "argv")
        and code_of(node.slice) in ("1", "1:")
        for node in module.nodes
    )


def _reads_dashed(module: Module) -> bool:
    """Whether the question is an argument behind dashes: `for arg in sys.argv[1:]: question = arg[2:]`."""
    return any(
        isinstance(node, ast.For)
        and isinstance(node.iter, ast.Subscript)
        and module.qualified(node.iter.value) in ("sys.argv", "argv")
        and any(
            isinstance(part, ast.Subscript) and code_of(part) == f"{code_of(node.target)}[2:]"
            for statement in node.body
            for part in ast.walk(statement)
        )
        for node in module.nodes
    )
