"""Small foreign documents, YAML or JSON, as plain values."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from yaml import SafeLoader

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.stream.json_stream import wide_encoding
from agenteval_tui.formats.stream.source import Source

LARGEST = 300_000
"""Values in a document, each alias of YAML counted out: a few lines can expand to billions."""

YamlReader = Literal["PyYAML", "js-yaml"]
"""What the tool that a document belongs to reads it with. They differ in plain scalars: `no`, `0123`, `12:30` and `1e3`
are false, 83, 750 and a text to PyYAML (YAML 1.1), and a text, 123, a text and 1000 to js-yaml 4 (the core schema of
YAML 1.2, with merge keys). JavaScript has one kind of number: 1.0 is 1, also in JSON."""


def read_document(source: Source, reader: YamlReader) -> Any:
    """The document, as `reader` has its values. Dates are texts. Raises `AgentevalError`."""
    where = str(source.path)
    data = source.document()
    encoding = wide_encoding(data) or "utf-8-sig"
    text = data.decode(encoding, "replace")
    # More than one sign represents the bytes: the file itself may contain it.
    source.decoded_badly = text.count("\ufffd") > data.decode(encoding, "ignore").count("\ufffd")
    number = _javascript_number if reader == "js-yaml" else None
    try:
        return _counted(json.loads(text), where, number)
    except (ValueError, RecursionError):
        pass
    # PyYAML is only imported for a file that is not JSON.
    import yaml

    try:
        return _counted(yaml.load(text, Loader=_loader(reader)), where, number)  # noqa: S506
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        reason = getattr(error, "problem", None) or "not readable"
        raise AgentevalError(f"this is not YAML: {reason}", where=f"{where}{line}") from None
    except (RecursionError, ValueError) as error:
        raise AgentevalError(f"this YAML can't be read: {error}", where=where) from None


def javascript_yaml(text: str) -> object:
    """The value of a YAML text as js-yaml 4 reads it. None if it can't be read."""
    import yaml

    try:
        return _counted(yaml.load(text, Loader=_loader("js-yaml")), "", _javascript_number)  # noqa: S506
    except (yaml.YAMLError, ValueError, RecursionError, AgentevalError):
        return None


# js-yaml 4.3, lib/type: null, bool, int, float.
_NULL = re.compile(r"~|null|Null|NULL|", re.ASCII)
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(?:0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+|[0-9]+)")
_FLOAT = re.compile(
    r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)"
)
_BASES = {"0b": 2, "0o": 8, "0x": 16}


@cache
def _loader(reader: YamlReader) -> type[SafeLoader]:
    import yaml

    # PyYAML may be installed without libyaml; then this is slower, and reads the same.
    base: type[SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    if reader == "PyYAML":
        return base

    class JavascriptLoader(base):  # type: ignore[valid-type, misc]
        yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}

    def tag(name: str) -> str:
        return f"tag:yaml.org,2002:{name}"

    for name, pattern in (("null", _NULL), ("bool", _BOOL), ("int", _INT), ("float", _FLOAT), ("merge", "<<")):
        JavascriptLoader.add_implicit_resolver(
            tag(name), re.compile(rf"(?:{getattr(pattern, 'pattern', pattern)})\Z"), None
        )
    JavascriptLoader.add_constructor(tag("int"), lambda loader, node: _int(loader.construct_scalar(node)))
    JavascriptLoader.add_constructor(tag("float"), lambda loader, node: _float(loader.construct_scalar(node)))
    for text in ("merge", "timestamp"):
        JavascriptLoader.add_constructor(tag(text), lambda loader, node: loader.construct_scalar(node))
    return JavascriptLoader


def _int(text: str) -> int:
    digits = text.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    return (-1 if text.startswith("-") else 1) * int(digits if base == 10 else digits[2:], base)


def _float(text: str) -> float | str:
    special = text.lower().lstrip("+-")
    if special in (".inf", ".nan"):
        return float(text.replace(".", "", 1))
    number = float(text)
    return text if abs(number) == float("inf") else number


def _javascript_number(value: float) -> int | float:
    """A number as JavaScript has and writes it: a double, without a fraction where it has none."""
    try:
        double = float(value)
    except OverflowError:
        return value
    if double != double or abs(double) == float("inf"):
        return double
    if abs(double) >= 1e21:  # written with an exponent
        return double
    return int(Decimal(repr(double))) if double.is_integer() else double


def _counted(value: object, where: str, number: Callable[[float], float] | None) -> object:
    room = [LARGEST]

    def plain(node: object, depth: int) -> object:
        room[0] -= 1
        if room[0] < 0 or depth > 100:
            raise AgentevalError(
                f"this document has more than {LARGEST:,} values or 100 levels", where=where, fix="split it"
            )
        if isinstance(node, Mapping):
            return {str(key): plain(inner, depth + 1) for key, inner in node.items()}
        if isinstance(node, list | tuple | set):
            return [plain(inner, depth + 1) for inner in node]
        if isinstance(node, datetime.date | datetime.datetime):
            return node.isoformat()
        if number is not None and isinstance(node, int | float) and not isinstance(node, bool):
            return number(node)
        return node.decode("utf-8", "replace") if isinstance(node, bytes) else node

    return plain(value, 0)
