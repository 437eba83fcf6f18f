"""How a program that asks a model takes its question: as a word of its command, or on its standard input.

That is told by the commands and arguments that a Python program declares, by argparse, click, typer or Fire.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agenteval_tui.agents.discovery.fields import MESSAGE_FIELDS
from agenteval_tui.agents.discovery.python_module import (
    Function,
    Module,
    called_name,
    code_of,
    constant_text,
    keyword,
    needed,
)

_CLICK = ("click", "rich_click", "asyncclick")
_MAKES_PART = ("add_subparsers", "add_argument_group", "add_mutually_exclusive_group")
_TAKES_VALUE = ("store", "append", "extend")
"""The actions of argparse whose options have a value."""
_PLACE = "{{prompt}}"
_DASHED = f"--{_PLACE}"
_NODE_ARGUMENT = re.compile(r"process\.argv\s*(?:\[\s*2\s*\]|\.slice\(\s*2\s*\))|\]\s*=\s*process\.argv\b")
_NODE_NAMED = re.compile(r"(\w+)\s*(?::[^=\n]+)?\]?\s*=\s*process\.argv")
_PLACEHOLDER = re.compile(r"<.*>|\[.*\]|\{.*\}|\.\.\.")
"""What a usage writes for a value: `--type <type>`."""
_CONTINUED = re.compile(r"\\\n\s*")


class Option(Struct, frozen=True):
    """An argument with its name, or an option with all its names."""

    names: tuple[str, ...]
    required: bool = False
    choices: tuple[str, ...] = ()


class Command(Struct, frozen=True):
    """What follows `words` on a program's command line; without them, on that of the whole program. `chosen`: the first
    choice of each argument that must be one of several, "" where they are not written."""

    words: tuple[str, ...] = ()
    positional: tuple[Option, ...] = ()
    options: tuple[Option, ...] = ()
    chosen: tuple[str, ...] = ()
    is_fire: bool = False


def commands_of(module: Module) -> list[Command]:
    """Each command that a word chooses, or the only one, which has no words."""
    commands = [*_of_argparse(module), *_of_click(module), *_of_typer(module), *_of_fire(module)]
    if any(command.words for command in commands):
        return [command for command in commands if command.words]
    # Who declares some arguments by hand, and others in a function, has one program.
    return [
        Command(
            positional=tuple(option for command in commands for option in command.positional),
            options=tuple(option for command in commands for option in command.options),
            chosen=tuple(choice for command in commands for choice in command.chosen),
            is_fire=any(command.is_fire for command in commands),
        )
    ]


# argparse


def _of_argparse(module: Module) -> Iterator[Command]:
    parsers = list(_parsers(module))
    arguments: dict[tuple[str, ...], list[ast.Call]] = {words: [] for _, _, words in parsers if words}
    for call in module.calls:
        if called_name(call) == "add_argument" and isinstance(call.func, ast.Attribute):
            arguments.setdefault(_words_of(call.func.value, call.lineno, parsers), []).append(call)
    # What the program itself needs before the word is not known to the command.
    is_plain = not any(_is_needed(call) for call in arguments.get((), ()))
    for words, calls in arguments.items():
        if is_plain or not words or not any(arguments):
            yield _of_arguments(words, calls)


def _parsers(module: Module) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """What names stand for from which line on: a parser, a group of its arguments, or its commands."""
    visited: list[tuple[str, int, tuple[str, ...]]] = []
    for node in sorted(
        (node for node in module.nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)),
        key=lambda node: node.lineno,
    ):
        call = node.value
        if isinstance(call, ast.Call) and called_name(call) in (*_MAKES_PART, "add_parser", "ArgumentParser"):
            for target in node.targets:
                place = code_of(target), node.lineno, _words_of(call, node.lineno, visited)
                visited.append(place)
                yield place


def _words_of(node: ast.expr, line: int, parsers: Iterable[tuple[str, int, tuple[str, ...]]]) -> tuple[str, ...]:
    """The words that lead to a parser."""
    if isinstance(node, ast.Call):
        name = called_name(node)
        if not isinstance(node.func, ast.Attribute) or name not in (*_MAKES_PART, "add_parser"):
            return ()
        word = constant_text(node.args[0]) if node.args and name == "add_parser" else ""
        return (*_words_of(node.func.value, line, parsers), *([word] if word else []))
    named = [words for name, since, words in parsers if name == code_of(node) and since <= line]
    return named[-1] if named else ()


def _is_needed(call: ast.Call) -> bool:
    name = constant_text(call.args[0]) if call.args else ""
    return _is_true(keyword(call, "required")) if name.startswith("-") else not _may_be_missing(call)


def _may_be_missing(call: ast.Call) -> bool:
    """Whether the command may leave out this argument, of argparse or click."""
    required = keyword(call, "required")
    return constant_text(keyword(call, "nargs")) in ("*", "?") or (
        isinstance(required, ast.Constant) and required.value is False
    )


def _of_arguments(words: tuple[str, ...], calls: Iterable[ast.Call]) -> Command:
    positional, options, chosen = [], [], []
    for call in calls:
        names = tuple(name for name in map(constant_text, call.args) if name)
        if names and not names[0].startswith("-"):
            is_needed = not _may_be_missing(call)
            if keyword(call, "choices") is None:
                positional.append(Option(names[:1], is_needed))
            elif is_needed:
                chosen.append(next(iter(_choices(call)), ""))
        elif names and (keyword(call, "action") is None or constant_text(keyword(call, "action")) in _TAKES_VALUE):
            options.append(Option(names, _is_true(keyword(call, "required")), _choices(call)))
    return Command(words, tuple(positional), tuple(options), tuple(chosen))


def _choices(call: ast.Call) -> tuple[str, ...]:
    choices = keyword(call, "choices")
    values = choices.elts if isinstance(choices, ast.List | ast.Tuple) else []
    return tuple(filter(None, map(constant_text, values)))


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


# click


def _of_click(module: Module) -> Iterator[Command]:
    groups: dict[str, tuple[str, ...]] = {}
    for name, value in module.values.items():
        if isinstance(value, ast.Call) and _is_click(module, value.func, "Group"):
            groups[name] = ()
    for function in module.functions.values():
        for call, owner in _decorators(function, "group"):
            if _is_click(module, call, "group"):
                groups[function.name] = ()
            elif owner in groups:
                groups[function.name] = (*groups[owner], _word(function, call))
    if not groups:
        yield _of_click_calls(module, (), module.calls)
        return
    added = {
        argument.id: groups[call.func.value.id]
        for call in module.calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "add_command"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in groups
        for argument in call.args[:1]
        if isinstance(argument, ast.Name)
    }
    for function in module.functions.values():
        for call, owner in _decorators(function, "command"):
            words = groups.get(owner, added.get(function.name))
            if words is not None:
                calls = [node for node in function.decorator_list if isinstance(node, ast.Call)]
                yield _of_click_calls(module, (*words, _word(function, call)), calls)


def _of_click_calls(module: Module, words: tuple[str, ...], calls: Iterable[ast.Call]) -> Command:
    positional, options = [], []
    for call in calls:
        names = tuple(name for name in map(constant_text, call.args) if name)
        if names and _is_click(module, call.func, "argument"):
            positional.append(Option(names[:1], not _may_be_missing(call)))
        elif names and _is_click(module, call.func, "option") and keyword(call, "is_flag") is None:
            dashed = tuple(name for name in names if name.startswith("-"))
            options.append(Option(dashed, _is_true(keyword(call, "required")), _choices(call)))
    return Command(words, tuple(positional), tuple(options))


def _is_click(module: Module, node: ast.expr, name: str) -> bool:
    target = module.qualified(node.func if isinstance(node, ast.Call) else node)
    return target in [f"{package}.{name}" for package in _CLICK]


def _decorators(function: Function, *names: str) -> Iterator[tuple[ast.expr, str]]:
    """The decorators with one of these names, each with the name of the object that has it."""
    for node in function.decorator_list:
        target = node.func if isinstance(node, ast.Call) else node
        if isinstance(target, ast.Attribute) and target.attr in names and isinstance(target.value, ast.Name):
            yield node, target.value.id
        elif isinstance(target, ast.Name) and target.id in names:
            yield node, ""


def _word(function: Function, decorator: ast.expr) -> str:
    """The word that chooses a command."""
    named = ""
    if isinstance(decorator, ast.Call):
        named = constant_text(next(iter(decorator.args), None)) or constant_text(keyword(decorator, "name"))
    return named or function.name.lower().replace("_", "-")


# typer


def _of_typer(module: Module) -> Iterator[Command]:
    if not any(target.partition(".")[0] == "typer" for target in module.imports.values()):
        return
    functions = module.functions
    for call in module.calls:
        if module.qualified(call.func) == "typer.run":
            for node in call.args[:1]:
                if isinstance(node, ast.Name) and node.id in functions:
                    yield _of_typed((), functions[node.id])
    words = {
        added.id: (constant_text(keyword(call, "name")),)
        for call in module.calls
        if called_name(call) == "add_typer"
        for added in call.args[:1]
        if isinstance(added, ast.Name) and constant_text(keyword(call, "name"))
    }
    commands = [
        (function, *decorated) for function in functions.values() for decorated in _decorators(function, "command")
    ]
    callbacks = [function for function in functions.values() if any(_decorators(function, "callback"))]
    if len(commands) + len(callbacks) == 1 and not words:
        yield _of_typed((), callbacks[0] if callbacks else commands[0][0])
        return
    for function, decorator, owner in commands:
        yield _of_typed((*words.get(owner, ()), _word(function, decorator)), function)


def _of_typed(words: tuple[str, ...], function: Function) -> Command:
    """A command of typer: parameters without a default are arguments, unless they are declared options."""
    positional, options = [], []
    defaults: list[ast.expr | None] = [None] * (len(function.args.args) - len(function.args.defaults))
    for argument, default in zip(function.args.args, [*defaults, *function.args.defaults], strict=True):
        declarations = [node for node in (argument.annotation, default) if node is not None]
        declared = " ".join(map(code_of, declarations))
        if declared.endswith("Context"):
            continue
        if "Argument(" in declared or (default is None and "Option(" not in declared):
            positional.append(Option((argument.arg,), required=True))
            continue
        named = tuple(
            text
            for node in declarations
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and called_name(call) == "Option"
            for text in map(constant_text, call.args)
            if text.startswith("-") and "/" not in text
        )
        first = default.args[:1] if isinstance(default, ast.Call) else []
        required = default is None or [getattr(node, "value", None) for node in first] == [...]
        options.append(Option(named or (f"--{argument.arg.replace('_', '-')}",), required))
    return Command(words, tuple(positional), tuple(options))


# Fire


def _of_fire(module: Module) -> Iterator[Command]:
    for call in module.calls:
        if module.qualified(call.func) not in ("fire.Fire", "fire.core.Fire"):
            continue
        node: ast.expr | None = next(iter(call.args), None) or keyword(call, "component")
        node = node.func if isinstance(node, ast.Call) else node  # fire.Fire(Bot())
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(value, ast.Name) and value.id in module.functions:
                    yield _of_fired((constant_text(key),), module.functions[value.id])
        elif node is None:
            yield from _of_methods(module.functions)
        elif isinstance(node, ast.Name) and node.id in module.functions:
            yield _of_fired((), module.functions[node.id])
        elif isinstance(node, ast.Name) and node.id in module.classes:
            methods = {each.name: each for each in module.classes[node.id].body if isinstance(each, Function)}
            init = methods.get("__init__")
            if init is None or len(needed(init)) == 1:
                yield from _of_methods(methods)


def _of_methods(functions: Mapping[str, Function]) -> Iterator[Command]:
    for name, function in functions.items():
        if not name.startswith("_"):
            yield _of_fired((name,), function)


def _of_fired(words: tuple[str, ...], function: Function) -> Command:
    must = [node.arg for node in needed(function) if node.arg not in ("self", "cls")]
    every = [node.arg for node in (*function.args.args, *function.args.kwonlyargs) if node.arg not in ("self", "cls")]
    return Command(
        words,
        tuple(Option((name,), required=True) for name in must),
        tuple(Option((f"--{name}",)) for name in every if name not in must),
        is_fire=True,
    )


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
