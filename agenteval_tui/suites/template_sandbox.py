"""Jinja2's sandbox with limits of memory and time: what a template may make is counted while it runs.

Everything that makes a value (operators, filters, calls, literals, `~`, blocks) is asked before, where little makes
much (widths, repetitions, `join`), and counted after; loops and calls look at the clock. Nothing is computed when a
template is compiled: a suite's templates are compiled in many places, and run only within these limits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from itertools import chain
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator
from jinja2.runtime import LoopContext, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

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


class TooLargeError(Exception):
    """A template makes more, or takes longer, than it may."""


class _Budget:
    __slots__ = ("largest", "left", "until")

    def __init__(self, largest: int, seconds: float) -> None:
        self.largest = largest
        self.left = _MOST
        # The thread's own time: what else runs on the machine changes no prompt.
        self.until = time.thread_time() + seconds


_BUDGET: ContextVar[_Budget] = ContextVar("budget of the template that is being rendered")


@contextmanager
def limited(largest: int, seconds: float) -> Iterator[None]:
    """A template may be run in here. One value beyond `largest` characters, or more time, raises `TooLargeError`."""
    token = _BUDGET.set(_Budget(largest, seconds))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def _charge(units: int) -> None:
    budget = _BUDGET.get(None)
    if budget is None:
        raise TooLargeError  # nothing is run outside of `limited`, at compile time least of all
    budget.left -= units
    if budget.left < 0 or time.thread_time() > budget.until:
        raise TooLargeError


def _fits(units: int) -> None:
    budget = _BUDGET.get(None)
    if budget is None or units > budget.largest:
        raise TooLargeError


def _size(value: object) -> int:
    """The size of a value as it would be written out, so that what is in it twice counts twice."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, int):
        bits = value.bit_length()
        if bits > _BITS:
            raise TooLargeError
        # About as many as it has digits: to count them, it would have to be written out.
        return 1 + bits // 3
    if not isinstance(value, list | tuple | dict | set | frozenset):
        return 1
    # Without recursion: lists of a template can be nested as deep as it likes.
    total = 0
    waiting: list[Iterator[Any]] = [_items(value)]
    while waiting:
        for item in waiting[-1]:
            total += _ITEM
            if isinstance(item, list | tuple | dict | set | frozenset):
                waiting.append(_items(item))
                break
            total += len(item) if isinstance(item, str | bytes) else 1
        else:
            waiting.pop()
        # On the way, as what is in it many times could take too long to count to its end.
        _fits(total)
    return total


def _items(value: Any) -> Iterator[Any]:
    return chain.from_iterable(value.items()) if isinstance(value, dict) else iter(value)


def _counted(value: object) -> object:
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
    arguments = list(values)
    text = str(text)
    if _DIGITS.search(text):
        raise TooLargeError
    if _STAR.search(text) or ("{" in text and re.search(r":[^{}]*\{", text)):
        _wide(*arguments)
    places = text.count("%") + text.count("{")
    _fits(len(text) + places * (_WIDEST + max((_size(argument) for argument in arguments), default=0)))


def _check_replace(text: str, old: str, new: str) -> None:
    times = text.count(old) if old else len(text) + 1
    _fits(len(text) + times * len(new))


def _check_join(between: Any, values: Any) -> object:
    """The values as a list, when joining them is not too much."""
    listed = list(_each(values))
    _fits(len(str(between)) * len(listed) + _size(listed))
    return listed


def _text(value: object) -> str:
    """What a filter makes of its value before it looks at it."""
    _fits(_size(value))
    return str(value)


def _check_filter(name: str, value: object, arguments: list[Any], named: Mapping[str, Any]) -> object:
    """Before a filter runs. Gives the value that it gets."""
    every = [*arguments, *named.values()]
    if name in _WIDTH_FILTERS:
        _wide(*every)
    if name in _SLOW_FILTERS and _size(value) > _LONGEST:
        raise TooLargeError
    if name == "indent":
        width = next((argument for argument in (named.get("width"), *arguments[:1]) if argument is not None), 4)
        step = len(width) if isinstance(width, str) else int(width)
        text = _text(value)
        _fits(len(text) + step * (len(text.splitlines()) + 1))
    elif name == "wordwrap":
        # A line end at each character at worst.
        _fits(_size(value) * (1 + max((len(argument) for argument in every if isinstance(argument, str)), default=1)))
    elif name in ("batch", "slice"):
        numbers = [argument for argument in every if isinstance(argument, int)]
        _fits(max(numbers, default=1) * (_ITEM + max((_size(argument) for argument in every), default=0)))
    elif name == "tojson":
        _fits(_size(value) * (1 + max((argument for argument in every if isinstance(argument, int)), default=0)))
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
    # A filter that Jinja2 passes a context has its value behind it.
    before = 1 if hasattr(real, "jinja_pass_arg") else 0

    @wraps(real)
    def run(*positional: Any, **named: Any) -> object:
        arguments = list(positional)
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
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Counting(NodeTransformer):
    """Counts the turns of loops, and the lists and objects that are written in a template."""

    def visit_For(self, node: nodes.For, *args: Any, **kwargs: Any) -> object:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_each")
        return node

    def visit_List(self, node: nodes.List, *args: Any, **kwargs: Any) -> object:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        return _filtered(node, "_counted")

    def visit_Dict(self, node: nodes.Dict, *args: Any, **kwargs: Any) -> object:  # noqa: N802 - the name that Jinja2 looks for
        self.generic_visit(node)
        return _filtered(node, "_counted")

    def visit_Tuple(self, node: nodes.Tuple, *args: Any, **kwargs: Any) -> object:  # noqa: N802 - the name that Jinja2 looks for
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
        # A prompt does not need anything that could grow a small text, or that reads something that is not a variable.
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

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> object:
        """Before and after an operator."""
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**":
            if not numbers or abs(left) > _WIDEST or abs(right) > _WIDEST:
                raise TooLargeError
        elif operator == "*":
            if not numbers:
                _wide(left, right)
                for operand, times in ((left, right), (right, left)):
                    if isinstance(times, int):
                        _fits(_size(operand) * abs(times))
        elif operator == "%" and isinstance(left, str | bytes):
            _check_format(left, right if isinstance(right, tuple) else (right,))
        elif operator == "+":
            _fits(_size(left) + _size(right))
        for operand in (left, right):
            _charge(_size(operand) if isinstance(operand, int) else 1)
        return _counted(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`"...".format`, which looks at its widths first."""
        real = super().wrap_str_format(value)
        if real is None:
            return None
        method = real

        def run(*values: Any, **named: Any) -> str:
            arguments = [
                argument for each in values for argument in (each.values() if isinstance(each, Mapping) else (each,))
            ]
            _check_format(value.__self__, [*arguments, *named.values()])
            return str(_counted(method(*values, **named)))

        run.__name__ = "format"
        return run

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> object:  # noqa: N805
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
