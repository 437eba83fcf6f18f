"""`{{name}}` in prompts: Jinja2's sandbox (`suites.template_sandbox`), strict about unknown variables.

The sandbox and Jinja2 are imported by the first template that is rendered, and `validate` needs them only for what is
more than names of variables: they are 9 % of its processor time.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.errors import AgentevalError, line_and_column
from agenteval_tui.core.json_values import with_texts

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.environment import TemplateExpression
    from jinja2.sandbox import SandboxedEnvironment

MAX_RENDERED = 10_000_000
"""Characters that a template may make."""
_MARKS = ("{{", "{%", "{#")
_ONE_EXPRESSION = re.compile(r"\s*\{\{-?((?:(?!\{\{|\}\}).)*?)-?\}\}\s*", re.DOTALL)
_PLAIN_NAME = re.compile(r"(?<!\{)\{\{ *([A-Za-z_][A-Za-z0-9_]*) *\}\}(?!\})")
_WORDS = frozenset((*keyword.kwlist, "true", "false", "none"))
"""What Jinja2 takes for no name of a variable."""
MAX_SECONDS = 2.0
"""How long it may take."""


class TemplateProblem(Struct, frozen=True):
    """What is wrong in a template, at the offsets `start`..`end` of its text."""

    start: int
    end: int
    code: str
    message: str
    fix: str | None = None


def is_template(text: str) -> bool:
    """Whether there is anything to render (saves loading Jinja2)."""
    return any(mark in text for mark in _MARKS)


def literal(value: object) -> object:
    """Texts, also those within lists and mappings, as templates that say just that: braces in them are text."""
    return with_texts(
        value,
        lambda text: f"{{% raw %}}{text.replace('{% endraw %}', '')}{{% endraw %}}" if is_template(text) else text,
    )


class TemplateTooLargeError(AgentevalError):
    """A template makes more text, or takes longer, than it may."""


def refusal(text: str, variables: Mapping[str, Any], columns: Collection[str]) -> AgentevalError | None:
    """Why a run would refuse the template, as far as that can be told before; None if it wouldn't. `columns`: variables
    whose values are not known, because they are different in each row. Takes at most `MAX_SECONDS`.
    """
    if not is_template(text) or _all_plain(text, {*variables, *columns}):
        return None
    try:
        render(text, {**dict.fromkeys(columns, ""), **variables})
    except TemplateTooLargeError as error:
        return error
    except AgentevalError as error:
        return None if columns else error
    return None


def render(text: str, variables: Mapping[str, Any]) -> str:
    """`text` with its variables put in. Raises `AgentevalError` naming the variable and its line and column."""
    if not is_template(text):
        return text
    # 40 ms, which suites without templates do not need.
    import jinja2

    from agenteval_tui.suites.template_sandbox import TooLargeError, limited

    try:
        with limited(MAX_RENDERED, MAX_SECONDS):
            parts: list[str] = []
            length = 0
            # Piece by piece: a template in a loop is stopped before its text fills the memory.
            for part in _compiled(text).generate(dict(variables)):
                length += len(part)
                if length > MAX_RENDERED:
                    raise TooLargeError
                parts.append(part)
            return "".join(parts)
    except TooLargeError:
        raise TemplateTooLargeError(
            f"this template makes more than {MAX_RENDERED:,} characters, or takes longer than {MAX_SECONDS:g} s",
            fix="make widths, repetitions and loops smaller",
        ) from None
    except jinja2.exceptions.SecurityError as error:
        raise AgentevalError(f"the sandbox forbids this template: {error}", fix="use plain variables") from None
    except jinja2.TemplateError as error:
        # Looked for only now: Jinja2 says what is wrong, and not where.
        problems = template_problems(text, variables)
        if problems:
            raise _error(text, problems[0]) from None
        raise AgentevalError(f"this template can't be rendered: {error}", fix="check the test's variables") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError) as error:
        raise AgentevalError(f"this template can't be rendered: {error}", fix="check its expressions") from None


def render_value(text: str, variables: Mapping[str, Any]) -> object:
    """As `render`, but a text that is exactly one `{{expression}}` gives the expression's value with its type."""
    alone = _ONE_EXPRESSION.fullmatch(text)
    if alone is None:
        return render(text, variables)
    # As in `render`.
    import jinja2

    from agenteval_tui.suites.template_sandbox import TooLargeError, limited

    try:
        with limited(MAX_RENDERED, MAX_SECONDS):
            value = _compiled_expression(alone.group(1))(**dict(variables))
    except jinja2.TemplateSyntaxError:
        return render(text, variables)  # more than one expression after all, or none: said with its place
    except (jinja2.TemplateError, TooLargeError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError):
        return render(text, variables)  # fails the same way, and says so
    return render(text, variables) if isinstance(value, jinja2.Undefined) else value


def render_option(place: str, value: object, variables: Mapping[str, Any], *, typed: bool = True) -> Any:
    """An option of an agent with its templates rendered. `typed`: a text that is one expression becomes its value.

    Raises `AgentevalError`, which names the place that is wrong.
    """
    if isinstance(value, Mapping):
        return {key: render_option(f"{place}.{key}", item, variables, typed=typed) for key, item in value.items()}
    if isinstance(value, list):
        return [render_option(f"{place}.{at}", item, variables, typed=typed) for at, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return (render_value if typed else render)(value, variables)
    except AgentevalError as error:
        where = f"{place}, {error.where}" if error.where else place
        raise AgentevalError(f"`{place}`: {error.what}", where=where, fix=error.fix) from None


def template_problems(text: str, known: Collection[str] | Mapping[str, Any]) -> list[TemplateProblem]:
    """Syntax errors, and variables that are not among `known`, with their places.

    Where `known` has values, dotted paths (`{{customer.name}}`) are followed into objects as well.
    """
    if not is_template(text) or _all_plain(text, known):
        return []
    import jinja2
    from jinja2 import meta, nodes

    environment = _environment()
    try:
        tree = environment.parse(text)
        environment.compile(text)  # finds unknown filters and tests
    except jinja2.TemplateSyntaxError as error:
        return [_syntax(text, error)]
    except RecursionError:
        return [TemplateProblem(0, len(text), "template", "this template is nested too deep")]
    optional = _optional(tree, nodes)
    unknown = meta.find_undeclared_variables(tree) - set(known) - set(environment.globals) - optional
    assigned = {node.name for node in tree.find_all(nodes.Name) if node.ctx != "load"}
    names = _names(environment, text)
    template_problems: list[TemplateProblem] = []
    for path, start, end in names:
        if path[0] in unknown:
            template_problems.append(_unknown(path[0], start, start + len(path[0]), list(known)))
        elif isinstance(known, Mapping) and path[0] in known and path[0] not in optional | assigned:
            missing = _missing_step(known, path)
            if missing is not None:
                at = min(start + sum(len(step) + 1 for step in path[:missing]), end)
                template_problems.append(_no_such_step(known, path, missing, at, end))
    # Names that the lexer did not show as such: their place is guessed, unless something is said there already.
    starts = {problem.start for problem in template_problems}
    for name in sorted(unknown - {path[0] for path, _, _ in names}):
        at = max(text.find(name), 0)
        if at not in starts:
            template_problems.append(_unknown(name, at, at + len(name), list(known)))
    return sorted(template_problems, key=lambda problem: problem.start)


def _all_plain(text: str, names: Collection[str]) -> bool:
    """Whether all that `text` asks for are the bare names of variables that are known: Jinja2 would say the same."""
    rest, there = _PLAIN_NAME.subn("", text)
    return (
        there > 0
        and not is_template(rest)
        and all(name in names and name not in _WORDS for name in _PLAIN_NAME.findall(text))
    )


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    # As in `render`.
    from agenteval_tui.suites.template_sandbox import LimitedEnvironment

    return LimitedEnvironment()


@lru_cache(maxsize=512)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


@lru_cache(maxsize=512)
def _compiled_expression(text: str) -> TemplateExpression:
    return _environment().compile_expression(text, undefined_to_none=False)


def _names(environment: SandboxedEnvironment, text: str) -> list[tuple[list[str], int, int]]:
    """Every name with the attributes behind it: (["customer", "name"], start, end)."""
    paths: list[tuple[list[str], int, int]] = []
    offset = 0
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    before = ""
    attribute_of: int | None = None
    for _, kind, value in environment.lex(source):
        at = source.find(value, offset)
        at = offset if at < 0 else at
        offset = at + len(value)
        if kind == "name":
            if before == "." and attribute_of is not None:
                path, start, _ = paths[attribute_of]
                paths[attribute_of] = ([*path, value], start, offset)
            elif before != ".":
                paths.append(([value], at, offset))
                attribute_of = len(paths) - 1
        elif kind == "operator" and value == ".":
            pass
        elif kind != "whitespace":
            attribute_of = None
        if kind != "whitespace":
            before = value if kind == "operator" else ""
    # Jinja2 counts one character for a line end, also where the file has two.
    if source != text:
        return [(path, _shift(text, start), _shift(text, end)) for path, start, end in paths]
    return paths


def _shift(text: str, offset: int) -> int:
    """An offset in `text` with "\\n" for every line end, as an offset in `text`."""
    position = 0
    for _ in range(offset):
        position += 2 if text.startswith("\r\n", position) else 1
    return position


def _optional(tree: Any, nodes: Any) -> set[str]:
    """Variables that the template itself expects to be absent: `x | default(...)`, `x is defined`."""
    optional_nodes = [node.node for node in tree.find_all(nodes.Filter) if node.name in ("default", "d")]
    optional_nodes += [node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    names = set()
    for node in optional_nodes:
        while isinstance(node, nodes.Getattr | nodes.Getitem):
            node = node.node
        if isinstance(node, nodes.Name):
            names.add(str(node.name))
    return names


def _missing_step(variables: Mapping[str, Any], path: list[str]) -> int | None:
    """The number of the first step of a dotted path that is not there. Only objects are followed."""
    value: Any = variables[path[0]]
    for number, step in enumerate(path[1:], 1):
        if not isinstance(value, Mapping) or (step not in value and hasattr(value, step)):
            return None  # what other values (and methods) have is for Jinja2 to say
        if step not in value:
            return number
        value = value[step]
    return None


def _no_such_step(variables: Mapping[str, Any], path: list[str], number: int, start: int, end: int) -> TemplateProblem:
    value: Any = variables
    for step in path[:number]:
        value = value[step]
    fix = _suggestion(path[number], [str(key) for key in value], "it has")
    return TemplateProblem(start, end, "unknown-variable", f'{".".join(path[:number])} has no "{path[number]}"', fix)


def _unknown(name: str, start: int, end: int, names: list[str]) -> TemplateProblem:
    fix = _suggestion(name, names, "known here") if names else f"add `{name}` to the test's variables"
    return TemplateProblem(start, end, "unknown-variable", f'the variable "{name}" is not known', fix)


def _suggestion(word: str, names: list[str], otherwise: str) -> str:
    return did_you_mean(word, names, f"{otherwise}: {', '.join(names) or 'nothing'}", quotes="`")


def _syntax(text: str, error: Any) -> TemplateProblem:
    lines = text.replace("\r\n", "\n").split("\n")
    line = min(max(int(error.lineno or 1), 1), len(lines))
    line_start = sum(len(line) + 1 for line in lines[: line - 1])
    opened = max((lines[line - 1].rfind(mark) for mark in _MARKS), default=-1)
    start = line_start + max(opened, 0)
    end = line_start + len(lines[line - 1])
    if "\r\n" in text:
        start, end = _shift(text, start), _shift(text, end)
    message = str(error.message or error).rstrip(".")
    return TemplateProblem(
        start,
        max(end, start),
        "template",
        f"this template has an error: {message}",
        'close what is opened; write {{ "{{" }} for the braces themselves',
    )


def _error(text: str, problem: TemplateProblem) -> AgentevalError:
    line, column = line_and_column(text, problem.start)
    where = f"line {line}, column {column} of the text"
    return AgentevalError(problem.message, where=where, fix=problem.fix or "")
