"""From YAML's tree to the plain data that a model takes, guided by the model's types.

The type that is wanted decides what a scalar is: `no` is a text where a text is wanted and false where a truth value
is. Everything that does not fit is reported, each with its place and a remedy; what is wrong becomes `WRONG`, so that
the rest is still read.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticUndefined

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.phrasing import cut
from agenteval_tui.suites.model import COMPLAINED
from agenteval_tui.suites.yaml.tree import (
    Alias,
    MappingNode,
    Node,
    Report,
    ScalarNode,
    SequenceNode,
    is_null,
    plain_data,
    resolve,
    untyped,
)


class _Wrong:
    def __repr__(self) -> str:
        return "<wrong>"


M = TypeVar("M", bound=BaseModel)
WRONG: Any = _Wrong()
Reader = Callable[[Node, str, Report], Any]  # node, what it is called, where problems go

_TRUE = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}


class _Counted:
    """Reports problems, and counts them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self.problems = 0

    def __call__(self, code: str, start: int, end: int, message: str, fix: str | None) -> None:
        self.problems += 1
        self._report(code, start, end, message, fix)


def read_model(model: type[M], node: Node, name: str, report: Report) -> M | None:
    """`node` as a `model`, or None when something is wrong; all that is wrong was reported."""
    counted = _Counted(report)
    data = reader_of(model)(node, name, counted)
    if data is WRONG:
        return None
    try:
        value = model.model_validate(data, context=COMPLAINED)
    except ValidationError as error:
        _say(error, node, name, counted)
        return None
    return None if counted.problems else value


def read_value(value_type: Any, node: Node, name: str, report: Report) -> object:
    """`node` as a value of this type, with its models; `WRONG` when something is wrong, which was reported."""
    counted = _Counted(report)
    data = reader_of(value_type)(node, name, counted)
    if data is WRONG or counted.problems:
        return WRONG
    try:
        value = TypeAdapter(value_type).validate_python(data, strict=True, context=COMPLAINED)
    except ValidationError as error:
        _say(error, node, name, counted)
        return WRONG
    return value


@cache
def reader_of(value_type: Any) -> Reader:
    """How values of this type are read."""
    origin = get_origin(value_type)
    if origin in (Union, types.UnionType):
        return _union(get_args(value_type))
    if origin is Literal:
        return _choice(get_args(value_type))
    if origin is list:
        return _list(reader_of(get_args(value_type)[0]))
    if origin is dict:
        return _dict(reader_of(get_args(value_type)[1]))
    if isinstance(value_type, type) and issubclass(value_type, BaseModel):
        return _model(value_type)
    if value_type in _SCALARS:
        return _SCALARS[value_type]
    if value_type is Any:
        return lambda node, name, report: plain_data(node)
    raise TypeError(f"suites have no values of type {value_type}")


def _text(node: Node, name: str, report: Report) -> object:
    # Nearly every text of a suite is one, and is read without the question what an alias stands for.
    if type(node) is ScalarNode:
        return node.text
    real = resolve(node)
    if isinstance(real, ScalarNode):
        return real.text
    # `{{name}}` without quotes is an object in an object for YAML, and `[done]` a list of one text.
    if isinstance(real, MappingNode) and real.flow and len(real.pairs) <= 1:
        return _mismatch(node, f"{name} must be a text, not an object", 'put quotes around it: "{{...}}"', report)
    if (
        isinstance(real, SequenceNode)
        and len(real.items) == 1
        and isinstance(only := resolve(real.items[0]), ScalarNode)
    ):
        return _mismatch(node, f"{name} must be a text, not a list", f"write {quoted(only.text)}", report)
    return _mismatch(node, f"{name} must be a text, not {type_label(node)}", "write one text", report)


def _flag(node: Node, name: str, report: Report) -> object:
    real = resolve(node)
    # In quotes it is the text.
    if isinstance(real, ScalarNode) and real.plain:
        if real.text in _TRUE:
            return True
        if real.text in _FALSE:
            return False
    return _mismatch(node, f"{name} must be true or false, not {type_label(node)}", "write true or false", report)


def _whole(node: Node, name: str, report: Report) -> object:
    value = _number_of(node)
    if type(value) is int:
        return value
    if type(value) is float and value == int(value):
        return int(value)
    return _mismatch(node, f"{name} must be a whole number, not {type_label(node)}", _unquote(node), report)


def _number(node: Node, name: str, report: Report) -> object:
    value = _number_of(node)
    if isinstance(value, int | float):
        return float(value)
    return _mismatch(node, f"{name} must be a number, not {type_label(node)}", _unquote(node), report)


_SCALARS: dict[Any, Reader] = {str: _text, bool: _flag, int: _whole, float: _number}


def _number_of(node: Node) -> str | int | float | None:
    real = resolve(node)
    if not isinstance(real, ScalarNode):
        return None
    value = untyped(real)
    return value if real.plain and not isinstance(value, bool) else None


def _unquote(node: Node) -> str:
    real = resolve(node)
    if isinstance(real, ScalarNode) and real.style in ("'", '"'):
        bare = ScalarNode(real.text, real.start, real.end)
        if type(untyped(bare)) in (int, float):
            return f"write {real.text} without quotes"
    return "write a number"


def _choice(options: tuple[Any, ...]) -> Reader:
    listed = ", ".join(str(option) for option in options[:-1]) + (" or " if len(options) > 1 else "") + str(options[-1])

    def read(node: Node, name: str, report: Report) -> object:
        real = resolve(node)
        if not isinstance(real, ScalarNode):
            return _mismatch(node, f"{name} must be {listed}, not {type_label(node)}", f"write {listed}", report)
        if real.text in options:
            return real.text
        fix = did_you_mean(real.text, options, f"write {listed}")
        report("wrong-value", node.start, node.end, f"{name} must be {listed}, not {quoted(real.text)}", fix)
        return WRONG

    return read


def _union(options: tuple[Any, ...]) -> Reader:
    """The first option that fits the node's kind (object, list, scalar). null stands for None where that is one."""
    nullable = type(None) in options
    rest = [option for option in options if option is not type(None)]
    readers = [(_shape(option), reader_of(option)) for option in rest]

    def read(node: Node, name: str, report: Report) -> object:
        if nullable and is_null(node):
            return None
        kind = type(node)
        if kind is Alias:
            kind = type(resolve(node))
        for shape, reader in readers:
            if shape is None or shape is kind:
                return reader(node, name, report)
        # Of one kind only, its own reader says best what is wrong.
        if len(readers) == 1:
            return readers[0][1](node, name, report)
        kinds = " or ".join(_KINDS[shape] for shape, _ in readers if shape is not None)
        return _mismatch(node, f"{name} must be {kinds}, not {type_label(node)}", f"write {kinds}", report)

    return read


_KINDS: dict[Any, str] = {ScalarNode: "a text", MappingNode: "an object", SequenceNode: "a list"}


def _shape(option: Any) -> type | None:
    origin = get_origin(option)
    if origin is list:
        return SequenceNode
    if origin is dict or (isinstance(option, type) and issubclass(option, BaseModel)):
        return MappingNode
    return None if option is Any else ScalarNode


def _list(item: Reader) -> Reader:
    def read(node: Node, name: str, report: Report) -> object:
        real = resolve(node)
        if isinstance(real, SequenceNode):
            single = _singular(name)
            return [item(entry, f"{single} {number}", report) for number, entry in enumerate(real.items, 1)]
        if isinstance(real, ScalarNode) and real.text and not is_null(real):
            fix = f"write [{quoted(real.text) if real.style else real.text}]"
        else:
            fix = "start every item with `- `, or write [...]"
        return _mismatch(node, f"{name} must be a list, not {type_label(node)}", fix, report)

    return read


def _dict(value: Reader) -> Reader:
    def read(node: Node, name: str, report: Report) -> object:
        real = resolve(node)
        if not isinstance(real, MappingNode):
            return _mismatch(
                node, f"{name} must be an object, not {type_label(node)}", "write `key: value` pairs", report
            )
        return {key.text: value(entry, f"{name}.{key.text}", report) for key, entry in real.pairs.items()}

    return read


def _model(model: type[BaseModel]) -> Reader:
    fields: dict[str, tuple[Reader, bool, bool]] = {}
    for key, info in model.model_fields.items():
        nullable = type(None) in get_args(info.annotation) or info.annotation is Any
        required = info.default is PydanticUndefined and info.default_factory is None
        fields[info.alias or key] = (reader_of(cast(Any, info.annotation)), required, nullable)
    needed = [key for key, (_, required, _) in fields.items() if required]
    open_ended = model.model_config.get("extra") == "allow"
    complaints = getattr(model, "complaints", lambda data: ())

    def read(node: Node, name: str, report: Report) -> object:
        real = resolve(node)
        if not isinstance(real, MappingNode):
            expected = "`key: value` pairs"
            return _mismatch(node, f"{name} must be an object, not {type_label(node)}", f"write {expected}", report)
        out: dict[str, Any] = {}
        for key, value in real.pairs.items():
            field = fields.get(key.text)
            if field is None:
                if open_ended:
                    out[key.text] = plain_data(value)
                else:
                    unknown_key(key, name, [field for field in fields if field not in out], list(fields), report)
                continue
            reader, required, nullable = field
            # `key:` without a value: the default stands, where there is one.
            if not nullable and is_null(value):
                if required:
                    start, end = (value.start, value.end) if value.end > value.start else (key.start, key.end)
                    report(
                        "missing-required",
                        start,
                        end,
                        f"{key.text} of {name} is empty",
                        f"write a value after `{key.text}:`",
                    )
                    out[key.text] = WRONG
                continue
            out[key.text] = reader(value, key.text, report)
        # Marked as wrong, so that rules over several keys don't complain of what was said already.
        for key_name in needed:
            if key_name not in out:
                start, end = union_tag(real)
                report("missing-required", start, end, f"{name} has no {key_name}", f"add `{key_name}: ...`")
                out[key_name] = WRONG
        for complaint in complaints(out):
            at = real.key(complaint.at) if complaint.at else None
            start, end = (at.start, at.end) if at is not None else union_tag(real)
            report(complaint.code, start, end, complaint.message, complaint.fix or None)
        return out

    return read


def unknown_key(key: ScalarNode, name: str, free: list[str], names: list[str], report: Report) -> None:
    """Say that `key` is none of `names`; the remedy names the nearest (first of those still `free`)."""
    fix = did_you_mean(key.text, free, quotes="`")
    fix = fix or did_you_mean(key.text, names, f"known: {', '.join(names)}", quotes="`")
    report("unknown-key", key.start, key.end, f"{name} has no {quoted(key.text)}", fix)


def union_tag(node: Node) -> tuple[int, int]:
    """The place to show for a whole object: its first key, or its beginning."""
    real = resolve(node)
    first = next(iter(real.pairs), None) if isinstance(real, MappingNode) else None
    if first is not None and real.start <= first.start <= real.end:
        return first.start, first.end
    return real.start, min(real.end, real.start + 1)


def type_label(node: Node) -> str:
    """What a node is, in words: "a list", "the text "x"", ..."""
    real = resolve(node)
    if isinstance(real, MappingNode):
        return "an object"
    if isinstance(real, SequenceNode):
        return "a list"
    value = untyped(real)
    if value is None:
        return "nothing" if not real.text else "null"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    return real.text


def _mismatch(node: Node, message: str, fix: str, report: Report) -> object:
    start, end = node.start, node.end
    if isinstance(resolve(node), MappingNode | SequenceNode) and not getattr(resolve(node), "flow", False):
        end = min(end, start + 1)
    report("wrong-type", start, end, message, fix)
    return WRONG


def quoted(text: str) -> str:
    """`text` in quotes, cut where it is long, on one line."""
    shortened = cut(text, 40)
    return '"' + shortened.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _singular(name: str) -> str:
    special = {"criteria": "criterion"}
    last = name.rsplit(".", 1)[-1]
    return special.get(last) or (last.removesuffix("s") if last.endswith("s") else f"{last} item")


def node_at(node: Node, path: tuple[Any, ...]) -> tuple[Node, ScalarNode | None]:
    """The node at a path of keys and indexes, and its key; steps that are not there are passed over."""
    key: ScalarNode | None = None
    for step in path:
        real = resolve(node)
        if isinstance(real, MappingNode) and isinstance(step, str):
            pair = next(
                ((scalar_node, value) for scalar_node, value in real.pairs.items() if scalar_node.text == step), None
            )
            if pair is not None:
                key, node = pair
        elif isinstance(real, SequenceNode) and isinstance(step, int) and 0 <= step < len(real.items):
            key, node = None, real.items[step]
    return node, key


def _say(error: ValidationError, root: Node, name: str, report: Report) -> None:
    """pydantic's complaints in plain sentences. What `reader_of` has said already is not said again."""
    reported: set[tuple[int, str]] = set()
    for detail in error.errors(include_url=False):
        if detail["type"] in ("missing", "extra_forbidden", "rule") or detail.get("input") is WRONG:
            continue
        node, key = node_at(root, detail["loc"])
        field = next((str(step) for step in reversed(detail["loc"]) if isinstance(step, str)), name)
        message, fix = _sentence(detail, field)
        start, end = (node.start, node.end) if isinstance(resolve(node), ScalarNode) else union_tag(node)
        if not isinstance(resolve(node), ScalarNode) and key is not None:
            start, end = key.start, key.end
        if (start, message) not in reported:
            reported.add((start, message))
            report("wrong-value", start, end, message, fix)


_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def _sentence(detail: Any, field: str) -> tuple[str, str | None]:
    kind = detail["type"]
    if kind in _BOUNDS:
        limit_key, words = _BOUNDS[kind]
        limit = f"{(detail.get('ctx') or {}).get(limit_key):g}"
        return (
            f"{field} must be {words} {limit}, not {detail.get('input'):g}",
            f"write a number that is {words} {limit}",
        )
    if kind in ("string_too_short", "too_short"):
        return f"{field} is empty", "write at least one" if kind == "too_short" else "write a text"
    if kind == "finite_number":
        return f"{field} must be a finite number", "write a number"
    return f"{field}: {detail['msg']}", None
