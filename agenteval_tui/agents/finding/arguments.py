"""How a program that asks a model takes its question: as a word of its command, or on its standard input."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agenteval_tui.agents.finding.declared_commands import Command, commands_of
from agenteval_tui.agents.finding.fields import MESSAGE_FIELDS
from agenteval_tui.agents.finding.python_module import Module, code_of

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


def declares_arguments(module: Module) -> bool:
    """Whether a module says itself what the arguments of its program are."""
    return any(command != Command() for command in commands_of(module))


def python_arguments(module: Module, readme: str = "", command: str = "") -> Arguments:
    """What the arguments of a Python program are, as argparse, click, typer, Fire or `sys.argv` read them.

    The only argument is taken for the question, or an option that is called as questions are. With several arguments
    it is not known which is which. Of several commands, the one that takes a question is taken. Other options that
    must be there are written as commands in its docstring, or in `readme`, show them: `command` is what they begin
    with, if that is not the module's file.
    """
    commands = commands_of(module)
    usages = list(_usages(module, readme, command))
    if len(commands) > 1 or commands[0].words:
        several = [_arguments_of(each, module, usages) for each in commands]
        return next((arguments for arguments in several if arguments.is_named), Arguments([]))
    return _arguments_of(commands[0], module, usages)


def _arguments_of(command: Command, module: Module, usages: Sequence[list[str]]) -> Arguments:
    positional, options = list(command.positional), list(command.options)
    question = next((option for option in options if any(map(_asks, option.names))), None)
    if question is not None:  # files to ask about, say
        positional = [argument for argument in positional if argument.required or _asks(argument.names[0])]
    if len(positional) > 1:
        return Arguments([])
    if positional and question is not None and not _asks(positional[0].names[0]):
        return Arguments([])
    chosen = list(command.chosen)
    if not all(chosen) or (chosen and not positional and question is None):
        return Arguments([])  # a command, whose other arguments are read elsewhere
    is_named = question is not None
    if positional:
        is_named = _asks(positional[0].names[0])
        question, asked = None, ["--", _PLACE]
        if command.is_fire:  # what follows `--` is for Fire itself
            asked = [f"--{positional[0].names[0]}={_PLACE}"]
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
    words = [*command.words, *chosen]
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
