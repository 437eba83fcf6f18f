"""`{{name}}` in a config: the expected value and the row's variables, put in when a transcript is graded.

The braces hold only names and dotted paths. `{{ "..." }}` gives the text between the quotes, so that a criterion can
look for literal braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_PATH = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
_QUOTED = re.compile(r"""(["'])(.*)\1""", re.DOTALL)


def literally(text: str) -> str:
    """A text as a config says it: its braces stand for themselves, not for a placeholder."""
    return text.replace("{{", '{{"{{"}}')


class PlaceholderError(CodedError, ValueError):
    """A placeholder that cannot be filled."""

    code = Code.UNKNOWN_VARIABLE


class Placeholder(Struct, frozen=True):
    """The text in double braces, and its characters in the string."""

    name: str
    start: int
    end: int

    @property
    def is_path(self) -> bool:
        """Whether it is a name or a dotted path."""
        return _PATH.fullmatch(self.name) is not None

    @property
    def is_literal(self) -> bool:
        """Whether it is a text in quotes."""
        return _QUOTED.fullmatch(self.name) is not None


def placeholders_in(text: str) -> Iterator[Placeholder]:
    """The placeholders of a string, in order."""
    for match in _PLACEHOLDER.finditer(text):
        yield Placeholder(match[1], match.start(), match.end())


def has_placeholders(value: object) -> bool:
    """Whether any string of `value` has a placeholder (in its values, not in the names of properties)."""
    if isinstance(value, str):
        return "{{" in value and _PLACEHOLDER.search(value) is not None
    if isinstance(value, Mapping):
        return any(has_placeholders(item) for item in value.values())
    return isinstance(value, list) and any(has_placeholders(item) for item in value)


def names_in(value: object) -> frozenset[str]:
    """The names and paths that `value` asks for."""
    names: set[str] = set()
    if isinstance(value, str):
        names.update(placeholder.name for placeholder in placeholders_in(value) if placeholder.is_path)
    elif isinstance(value, Mapping):
        names.update(*(names_in(item) for item in value.values()))
    elif isinstance(value, list):
        names.update(*(names_in(item) for item in value))
    return frozenset(names)


_PATTERNS = frozenset(("pattern", "$regex", "extract_by_regex"))
"""Properties that hold a pattern: an empty piece of one may make all of it match everything."""


def fill_config(value: object, variables: Mapping[str, Any], any_json: frozenset[str] = frozenset()) -> Any:
    """As `fill`, for properties of a config: a text that comes out empty is a hole in the data, not a condition.

    Raises `PlaceholderError` for it, too. An empty text that is written as such stays.
    """
    return _fill_property(value, variables, any_json, False, "")


def needle_names(value: object, key: str = "") -> frozenset[str]:
    """The names and paths without a value of which a config has nothing to look for."""
    if isinstance(value, str):
        names = names_in(value) if "{{" in value else frozenset()
        try:
            hole = names and (key in _PATTERNS or not _without(value, sorted(names), {}).strip())
        except PlaceholderError:
            return frozenset()
        return names if hole else frozenset()
    if isinstance(value, Mapping):
        return frozenset().union(*(needle_names(item, str(name)) for name, item in value.items()))
    if isinstance(value, list):
        return frozenset().union(*(needle_names(item, key) for item in value))
    return frozenset()


def is_blank(value: object) -> bool:
    """Whether a variable holds nothing: null, or a text of white space."""
    return value is None or (isinstance(value, str) and not value.strip())


def _fill_property(
    value: object, variables: Mapping[str, Any], any_json: frozenset[str], typed: bool, key: str
) -> object:
    if isinstance(value, Mapping):
        return {
            name: _fill_property(item, variables, any_json, typed or name in any_json, str(name))
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_fill_property(item, variables, any_json, typed, key) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    filled = _fill_text(value, variables, typed)
    names = [placeholder.name for placeholder in placeholders_in(value) if placeholder.is_path]
    empty = [name for name in names if is_blank(look_up(name, variables))]
    if typed and not isinstance(filled, str):
        # A null is a value inside of an object; as a whole property, or as an empty schema, it leaves the check out.
        hole = (filled is None and (key in any_json or key in _PATTERNS)) or (filled == {} and key == "schema")
        empty = names if hole else []
    else:
        hole = key in _PATTERNS or not _without(value, empty, variables).strip()
    if empty and hole:
        raise PlaceholderError(code=Code.EMPTY_VARIABLE, variables=list(dict.fromkeys(empty)), text=value[:200])
    return filled


def _without(text: str, left_out: Sequence[str], variables: Mapping[str, Any]) -> str:
    """The text with nothing at these placeholders."""
    blanks = dict.fromkeys(left_out, "")
    return str(_fill_text(text, {**variables, **blanks}, False))


def fill(
    value: object, variables: Mapping[str, Any], any_json: frozenset[str] = frozenset(), typed: bool = False
) -> Any:
    """`value` with its placeholders filled. Raises `PlaceholderError`, naming the variable that is not there.

    Below the properties named in `any_json` a string that is nothing but a placeholder takes the variable's own
    type; everywhere else the variable's text is put in.
    """
    if isinstance(value, str):
        return _fill_text(value, variables, typed) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: fill(item, variables, any_json, typed or key in any_json) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, variables, any_json, typed) for item in value]
    return value


def look_up(path: str, variables: Mapping[str, Any]) -> object:
    """The variable at a dotted path. Raises `PlaceholderError`."""
    # A column of a dataset may have a dot in its name: the whole name comes first.
    if path in variables:
        return variables[path]
    current: Any = variables
    for name in path.split("."):
        if isinstance(current, Mapping) and name in current:
            current = current[name]
        elif isinstance(current, list) and name.isdecimal() and int(name) < len(current):
            current = current[int(name)]
        else:
            raise PlaceholderError(variable=path, known=sorted(str(variable) for variable in variables)[:12])
    return current


def text_of(value: object) -> str:
    """A variable as text: a string as it is, any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _fill_text(text: str, variables: Mapping[str, Any], typed: bool) -> object:
    out: list[str] = []
    end = 0
    for placeholder in placeholders_in(text):
        if placeholder.is_path:
            value = look_up(placeholder.name, variables)
            if typed and placeholder.start == 0 and placeholder.end == len(text):
                return value
            piece = text_of(value)
        elif placeholder.is_literal:
            piece = placeholder.name[1:-1]
        else:
            raise PlaceholderError(code=Code.BAD_PLACEHOLDER, placeholder=placeholder.name)
        out.append(text[end : placeholder.start])
        out.append(piece)
        end = placeholder.end
    out.append(text[end:])
    return "".join(out)
