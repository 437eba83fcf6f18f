"""`{{name}}` in prompts: Jinja2's sandbox, strict about unknown variables.

Jinja2's sandbox with limits of memory and time: what a template may make is counted while it runs.

Everything that makes a value (operators, filters, calls, literals, `~`, blocks) is asked before, where little makes
much (widths, repetitions, `join`), and counted after; loops and calls look at the clock. Nothing is computed when a
template is compiled: `validate` compiles templates, and must not run them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from itertools import chain
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.runtime import LoopContext, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer
from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError, line_and_column

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment


MAX_RENDERED = 10_000_000
"""Characters that a template may make."""
_MARKS = ("{{", "{%", "{#")
_ONE_EXPRESSION = re.compile(r"\s*\{\{-?((?:(?!\{\{|\}\}).)*?)-?\}\}\s*", re.DOTALL)
MAX_SECONDS = 2.0
"""How long it may take."""
_MOST = 50_000_000  # units (characters, or an eighth of an item) of all values that are made on the way
_WIDEST = 10_000  # of a width, an indentation, a repetition
_LONGEST = 200_000  # characters that slow filters look at
_BITS = 100_000  # of a whole number
_ITEM = 8
_SLOW_FILTERS = frozenset(("pprint", "striptags", "title", "urlize", "wordwrap", "xmlattr", "filesizeformat"))
# Filters of which a whole number is a width, a number of copies, or a number of digits.
_WIDTH_FILTERS = frozenset(("batch", "center", "indent", "round", "slice", "tojson", "wordwrap"))
# What may be called of texts, bytes, lists, numbers and objects. `format` is checked where it is looked up.
_METHODS = frozenset(
    [
        "capitalize",
        "casefold",
        "center",
        "copy",
        "count",
        "encode",
        "decode",
        "endswith",
        "find",
        "get",
        "index",
        "isalnum",
        "isalpha",
        "isascii",
        "isdecimal",
        "isdigit",
        "isidentifier",
        "islower",
        "isnumeric",
        "isprintable",
        "isspace",
        "istitle",
        "isupper",
        "items",
        "join",
        "keys",
        "ljust",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
        "rjust",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "upper",
        "values",
        "zfill",
        "is_integer",
        "bit_length",
        "hex",
        "union",
        "intersection",
        "difference",
        "symmetric_difference",
        "issubset",
        "issuperset",
        "isdisjoint",
    ]
)
_WIDTH_METHODS = frozenset(("center", "ljust", "rjust", "zfill"))
_BUILTIN = (str, bytes, list, tuple, dict, set, frozenset, int, float)
_DIGITS = re.compile(r"\d{5,}")
_STAR = re.compile(r"%[^%a-zA-Z]*\*")


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


def render(text: str, variables: Mapping[str, Any]) -> str:
    """`text` with its variables put in. Raises `AgentevalError` naming the variable and its line and column."""
    if not is_template(text):
        return text
    import jinja2

    try:
        with limited():
            parts: list[str] = []
            length = 0
            for part in _compiled(text).generate(dict(variables)):
                length += len(part)
                if length > MAX_RENDERED:
                    raise TooLargeError
                parts.append(part)
            return "".join(parts)
    except TooLargeError:
        raise AgentevalError(
            f"this template makes more than {MAX_RENDERED:,} characters, or takes longer than {MAX_SECONDS:g} s",
            mend="make widths, repetitions and loops smaller",
        ) from None
    except jinja2.exceptions.SecurityError as error:
        raise AgentevalError(f"the sandbox forbids this template: {error}", mend="use plain variables") from None
    except jinja2.TemplateError as error:
        problems = template_problems(text, variables)
        if problems:
            raise _error(text, problems[0]) from None
        raise AgentevalError(f"this template can't be rendered: {error}", mend="check the test's variables") from None
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError) as error:
        raise AgentevalError(f"this template can't be rendered: {error}", mend="check its expressions") from None


def render_value(text: str, variables: Mapping[str, Any]) -> Any:
    """As `render`, but a text that is exactly one `{{expression}}` gives the expression's value with its type."""
    alone = _ONE_EXPRESSION.fullmatch(text)
    if alone is None:
        return render(text, variables)
    import jinja2

    try:
        with limited():
            value = _compiled_expression(alone.group(1))(**dict(variables))
    except jinja2.TemplateSyntaxError:
        return render(text, variables)  # more than one expression after all, or none: said with its place
    except (jinja2.TemplateError, TooLargeError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError):
        return render(text, variables)  # fails the same way, and says so
    return render(text, variables) if isinstance(value, jinja2.Undefined) else value


def template_problems(text: str, known: Collection[str] | Mapping[str, Any]) -> list[TemplateProblem]:
    """Syntax errors, and variables that are not among `known`, with their places.

    Where `known` has values, dotted paths (`{{customer.name}}`) are followed into objects as well.
    """
    if not is_template(text):
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
    found: list[TemplateProblem] = []
    for path, start, end in names:
        if path[0] in unknown:
            found.append(_unknown(path[0], start, start + len(path[0]), list(known)))
        elif isinstance(known, Mapping) and path[0] in known and path[0] not in optional | assigned:
            missing = _missing_step(known, path)
            if missing is not None:
                at = min(start + sum(len(one) + 1 for one in path[:missing]), end)
                found.append(_no_such_step(known, path, missing, at, end))
    said = {problem.start for problem in found}
    for name in sorted(unknown - {path[0] for path, _, _ in names}):
        at = max(text.find(name), 0)
        if at not in said:
            found.append(_unknown(name, at, at + len(name), list(known)))
    return sorted(found, key=lambda problem: problem.start)


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:

    return LimitedEnvironment()


@lru_cache(maxsize=512)
def _compiled(text: str) -> Any:
    return _environment().from_string(text)


@lru_cache(maxsize=512)
def _compiled_expression(text: str) -> Any:
    return _environment().compile_expression(text, undefined_to_none=False)


def _names(environment: SandboxedEnvironment, text: str) -> list[tuple[list[str], int, int]]:
    """Every name with the attributes behind it: (["customer", "name"], start, end)."""
    found: list[tuple[list[str], int, int]] = []
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
                path, start, _ = found[attribute_of]
                found[attribute_of] = ([*path, value], start, offset)
            elif before != ".":
                found.append(([value], at, offset))
                attribute_of = len(found) - 1
        elif kind == "operator" and value == ".":
            pass
        elif kind != "whitespace":
            attribute_of = None
        if kind != "whitespace":
            before = value if kind == "operator" else ""
    if source != text:
        return [(path, _shift(text, start), _shift(text, end)) for path, start, end in found]
    return found


def _shift(text: str, offset: int) -> int:
    """An offset in `text` with "\\n" for every line end, as an offset in `text`."""
    position = 0
    for _ in range(offset):
        position += 2 if text.startswith("\r\n", position) else 1
    return position


def _optional(tree: Any, nodes: Any) -> set[str]:
    """Variables that the template itself expects to be absent: `x | default(...)`, `x is defined`."""
    asked = [node.node for node in tree.find_all(nodes.Filter) if node.name in ("default", "d")]
    asked += [node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    names = set()
    for node in asked:
        while isinstance(node, nodes.Getattr | nodes.Getitem):
            node = node.node
        if isinstance(node, nodes.Name):
            names.add(str(node.name))
    return names


def _missing_step(known: Mapping[str, Any], path: list[str]) -> int | None:
    """The number of the first step of a dotted path that is not there. Only objects are followed."""
    value: Any = known[path[0]]
    for number, step in enumerate(path[1:], 1):
        if not isinstance(value, Mapping) or (step not in value and hasattr(value, step)):
            return None  # what other values (and methods) have is for Jinja2 to say
        if step not in value:
            return number
        value = value[step]
    return None


def _no_such_step(known: Mapping[str, Any], path: list[str], number: int, start: int, end: int) -> TemplateProblem:
    value: Any = known
    for step in path[:number]:
        value = value[step]
    fix = _suggestion(path[number], [str(key) for key in value], "it has")
    return TemplateProblem(start, end, "unknown-variable", f'{".".join(path[:number])} has no "{path[number]}"', fix)


def _unknown(name: str, start: int, end: int, known: list[str]) -> TemplateProblem:
    fix = _suggestion(name, known, "known here") if known else f"add `{name}` to the test's variables"
    return TemplateProblem(start, end, "unknown-variable", f'the variable "{name}" is not known', fix)


def _suggestion(word: str, known: list[str], otherwise: str) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else f"{otherwise}: {', '.join(known) or 'nothing'}"


def _syntax(text: str, error: Any) -> TemplateProblem:
    lines = text.replace("\r\n", "\n").split("\n")
    line = min(max(int(error.lineno or 1), 1), len(lines))
    line_start = sum(len(one) + 1 for one in lines[: line - 1])
    opened = max((lines[line - 1].rfind(mark) for mark in _MARKS), default=-1)
    start = line_start + max(opened, 0)
    end = line_start + len(lines[line - 1])
    if "\r\n" in text:
        start, end = _shift(text, start), _shift(text, end)
    message = str(error.message or error).rstrip(".")
    return TemplateProblem(
        start, max(end, start), "template", f"this template has a mistake: {message}",
        'close what is opened; write {{ "{{" }} for the braces themselves',
    )  # fmt: skip


def _error(text: str, problem: TemplateProblem) -> AgentevalError:
    line, column = line_and_column(text, problem.start)
    where = f"line {line}, column {column} of the text"
    return AgentevalError(problem.message, where=where, mend=problem.fix or "")


# Jinja2's sandbox with limits of memory and time: what a template may make is counted while it runs


class TooLargeError(Exception):
    """A template makes more, or takes longer, than it may."""


class _Budget:
    __slots__ = ("left", "until")

    def __init__(self) -> None:
        self.left = _MOST
        self.until = time.monotonic() + MAX_SECONDS


_BUDGET: ContextVar[_Budget] = ContextVar("budget of the template that is being rendered")


@contextmanager
def limited() -> Iterator[None]:
    """A template may be run in here. What goes beyond the limits raises `TooLargeError`."""
    token = _BUDGET.set(_Budget())
    try:
        yield
    finally:
        _BUDGET.reset(token)


def _charge(units: int) -> None:
    budget = _BUDGET.get(None)
    if budget is None:
        raise TooLargeError  # nothing is run outside of `limited`, at compile time least of all
    budget.left -= units
    if budget.left < 0 or time.monotonic() > budget.until:
        raise TooLargeError


def _fits(units: int) -> None:
    if units > MAX_RENDERED:
        raise TooLargeError


def _size(value: Any) -> int:
    """The size of a value as it would be written out, so that what is in it twice counts twice."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int):
        bits = value.bit_length()
        if bits > _BITS:
            raise TooLargeError
        return 1 + bits // 3
    if not isinstance(value, list | tuple | dict | set | frozenset):
        return 1
    total = 0
    waiting: list[Iterator[Any]] = [_items(value)]
    while waiting:
        for one in waiting[-1]:
            total += _ITEM
            if isinstance(one, list | tuple | dict | set | frozenset):
                waiting.append(_items(one))
                break
            total += len(one) if isinstance(one, str | bytes) else 1
        else:
            waiting.pop()
        _fits(total)
    return total


def _items(value: Any) -> Iterator[Any]:
    return chain.from_iterable(value.items()) if isinstance(value, dict) else iter(value)


def _counted(value: Any) -> Any:
    """The value, counted."""
    size = _size(value)
    _fits(size)
    _charge(1 + size)
    return value


def _each(values: Iterable[Any]) -> Iterator[Any]:
    """The values of a loop; every turn is counted."""
    for value in values:
        _charge(1)
        yield value


def _wide(*values: Any) -> None:
    if any(isinstance(value, int | float) and abs(value) > _WIDEST for value in values):
        raise TooLargeError


def _check_format(text: Any, values: Iterable[Any]) -> None:
    """Before `"..." % values` and `"...".format(values)`: no width beyond the limit, and nothing put in too often."""
    given = list(values)
    text = str(text)
    if _DIGITS.search(text):
        raise TooLargeError
    if _STAR.search(text) or ("{" in text and re.search(r":[^{}]*\{", text)):
        _wide(*given)
    places = text.count("%") + text.count("{")
    _fits(len(text) + places * (_WIDEST + max((_size(one) for one in given), default=0)))


def _check_replace(text: str, old: str, new: str) -> None:
    times = text.count(old) if old else len(text) + 1
    _fits(len(text) + times * len(new))


def _check_join(between: Any, values: Any) -> Any:
    """The values as a list, when joining them is not too much."""
    listed = list(_each(values))
    _fits(len(str(between)) * len(listed) + _size(listed))
    return listed


def _text(value: Any) -> str:
    """What a filter makes of its value before it looks at it."""
    _fits(_size(value))
    return str(value)


def _check_filter(name: str, value: Any, arguments: list[Any], named: Mapping[str, Any]) -> Any:
    """Before a filter runs. Gives the value that it gets."""
    every = [*arguments, *named.values()]
    if name in _WIDTH_FILTERS:
        _wide(*every)
    if name in _SLOW_FILTERS and _size(value) > _LONGEST:
        raise TooLargeError
    if name == "indent":
        width = next((one for one in (named.get("width"), *arguments[:1]) if one is not None), 4)
        step = len(width) if isinstance(width, str) else int(width)
        text = _text(value)
        _fits(len(text) + step * (len(text.splitlines()) + 1))
    elif name == "wordwrap":
        # A line end at each character at worst.
        _fits(_size(value) * (1 + max((len(one) for one in every if isinstance(one, str)), default=1)))
    elif name in ("batch", "slice"):
        numbers = [one for one in every if isinstance(one, int)]
        _fits(max(numbers, default=1) * (_ITEM + max((_size(one) for one in every), default=0)))
    elif name == "tojson":
        _fits(_size(value) * (1 + max((one for one in every if isinstance(one, int)), default=0)))
    elif name == "format":
        _check_format(value, every)
    elif name == "replace" and len(arguments) > 1:
        _check_replace(_text(value), str(arguments[0]), str(arguments[1]))
    elif name == "replace":
        _check_replace(_text(value), str(named.get("old", *arguments[:1])), str(named.get("new", "")))
    elif name == "join":
        return _check_join(next(iter([*arguments[:1], *([named["d"]] if "d" in named else [])]), ""), value)
    elif name == "sum":
        start = named.get("start", arguments[1] if len(arguments) > 1 else 0)
        if not isinstance(start, int | float):
            raise jinja2.exceptions.SecurityError("`sum` adds numbers")
    return value


def _guarded_filter(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    before = 1 if hasattr(real, "jinja_pass_arg") else 0

    @wraps(real)
    def run(*given: Any, **named: Any) -> Any:
        arguments = list(given)
        if len(arguments) > before:
            arguments[before] = _check_filter(name, arguments[before], arguments[before + 1 :], named)
        return _counted(real(*arguments, **named))

    return run


class _NothingAtCompileTime(CodeGenerator):
    """Leaves every expression for the time when it is run, also one that is constant."""

    def _output_child_to_const(self, node: Any, frame: Any, finalize: Any) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)

    def visit_Concat(self, node: nodes.Concat, frame: Any) -> None:  # noqa: N802 - the name that Jinja2 looks for
        self.write("environment.joined((")
        for one in node.nodes:
            self.visit(one, frame)
            self.write(", ")
        self.write("))")


class _Counting(NodeTransformer):
    """Counts the turns of loops, and the lists and objects that are written in a template."""

    def visit_For(self, node: nodes.For, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_each")
        return node

    def visit_List(self, node: nodes.List, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        return _filtered(node, "_counted")

    def visit_Dict(self, node: nodes.Dict, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        return _filtered(node, "_counted")

    def visit_Tuple(self, node: nodes.Tuple, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        return _filtered(node, "_counted") if node.ctx == "load" else node


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox for prompts. Run what it compiles inside `limited()`."""

    code_generator_class = _NothingAtCompileTime
    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
            autoescape=False,
            optimized=False,
            finalize=_counted,
        )
        # Whatever could make a lot out of a little, or reads what is no variable, is not needed in a prompt.
        for name in ("range", "lipsum", "cycler", "joiner", "namespace"):
            self.globals.pop(name, None)
        self.filters = {name: _guarded_filter(name, real) for name, real in self.filters.items()}
        self.filters["_each"], self.filters["_counted"] = _each, _counted

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        return super()._generate(_Counting().visit(source), *args, **kwargs)

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """Joins what a block made."""
        listed = list(pieces)
        _counted_length(listed)
        return "".join(listed)

    @staticmethod
    def joined(values: tuple[Any, ...]) -> str:
        """`a ~ b ~ c`."""
        total = sum(map(_size, values))
        _fits(total)
        _charge(total)
        return str_join(values)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Before and after an operator."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**":
            if not numbers or abs(left) > _WIDEST or abs(right) > _WIDEST:
                raise TooLargeError
        elif operator == "*":
            if not numbers:
                _wide(left, right)
                for one, times in ((left, right), (right, left)):
                    if isinstance(times, int):
                        _fits(_size(one) * abs(times))
        elif operator == "%" and isinstance(left, str | bytes):
            _check_format(left, right if isinstance(right, tuple) else (right,))
        elif operator == "+":
            _fits(_size(left) + _size(right))
        for one in (left, right):
            _charge(_size(one) if isinstance(one, int) else 1)
        return _counted(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`"...".format`, which looks at its widths first."""
        real = super().wrap_str_format(value)
        if real is None:
            return None
        known = real

        def run(*values: Any, **named: Any) -> str:
            given = [one for each in values for one in (each.values() if isinstance(each, Mapping) else (each,))]
            _check_format(value.__self__, [*given, *named.values()])
            return str(_counted(known(*values, **named)))

        run.__name__ = "format"
        return run

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Before and after a call of a method or a macro."""
        _charge(16)
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        if isinstance(__obj, LoopContext):
            args = (_each(args[0]), *args[1:]) if args else args
        elif isinstance(owner, _BUILTIN) and not isinstance(owner, type):
            if name not in _METHODS:
                raise jinja2.exceptions.SecurityError(f"`{name}` may not be called")
            if name in _WIDTH_METHODS:
                _wide(*args)
            elif name == "replace" and len(args) > 1 and isinstance(owner, str):
                _check_replace(owner, str(args[0]), str(args[1]))
            elif name == "join" and args:
                args = (_check_join(owner, args[0]),)
            _charge(_size(owner) // 8)
        return _counted(super().call(__context, __obj, *args, **kwargs))


def _counted_length(pieces: list[str]) -> None:
    total = sum(map(len, pieces))
    _fits(total)
    _charge(total)
