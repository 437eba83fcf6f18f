"""Expected argument values: any JSON, compared as JSON, or matchers like `{"$contains": "x"}`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from msgspec import Struct

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.phrasing import shown
from agenteval_tui.grading.regex_search import PatternError, compile_pattern

Holds = Callable[[Any], bool]

LITERAL = "$literal"
NAMES = (
    "$any",
    "$contains",
    "$ignore_case",
    "$regex",
    "$one_of",
    "$optional",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$not",
    "$type",
    LITERAL,
)
MATCHER_EXAMPLES: list[Any] = [
    {"$any": True},
    {"$contains": ""},
    {"$ignore_case": ""},
    {"$regex": ""},
    {"$one_of": []},
    {"$optional": ""},
    {"$gt": 0},
    {"$gte": 0},
    {"$lt": 1},
    {"$lte": 1},
    {"$not": ""},
    {"$type": "string"},
    {"$literal": {"$gt": 0}},
]
"""One of each matcher, as an editor offers them."""
MATCHER_DOCS: dict[str, str] = {
    "$any": "Anything, but the argument must be there.",
    "$contains": "A text with this text in it.",
    "$ignore_case": "This text, in any case.",
    "$regex": "A text in which this pattern is found.",
    "$one_of": "One of these values; each may be a matcher.",
    "$optional": "The argument or key may be absent. If it is there, it is this value, or fits this matcher.",
    "$gt": "A number greater than this.",
    "$gte": "A number that is at least this.",
    "$lt": "A number less than this.",
    "$lte": "A number that is at most this.",
    "$not": "Anything but this value, or anything that does not fit this matcher.",
    "$type": "A value of this JSON type: string, number, boolean, array, object or null.",
    "$literal": "This value itself: keys in it that begin with `$` are not matchers.",
}
"""What each matcher accepts."""
TYPES = ("string", "number", "boolean", "array", "object", "null")
OPERANDS: dict[str, dict[str, Any]] = {
    "$any": {"const": True},
    **{name: {"type": "string"} for name in ("$contains", "$ignore_case", "$regex")},
    "$one_of": {"type": "array"},
    **{name: {"type": "number"} for name in ("$gt", "$gte", "$lt", "$lte")},
    "$type": {"enum": list(TYPES)},
    "$literal": {},
}
"""What follows each matcher, as JSON Schema, for editors. Behind one that is not here: an expected value."""


class MatcherError(ValueError):
    """An expected value that cannot be used: why, and the path to it.

    `position` is a character of a pattern. `meant` is the matcher that an unknown one should be, perhaps ("": none
    comes close); None when the matcher itself is known.
    """

    def __init__(
        self,
        message: str,
        path: tuple[str | int, ...] = (),
        position: int | None = None,
        meant: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.position = position
        self.meant = meant
        self.more: tuple[MatcherError, ...] = ()


def usable_arguments(arguments: object) -> object:
    """A tool's expected arguments, whose matchers can be used: a validator. Raises the first `MatcherError`, with the
    others in its `more`."""
    matcher_errors: list[MatcherError] = []
    for number, entry in enumerate(arguments if isinstance(arguments, list) else [arguments or {}]):
        for name, expected in entry.items():
            try:
                compile_matcher(expected, (number, name) if isinstance(arguments, list) else (name,), named=True)
            except MatcherError as error:
                matcher_errors.append(error)
    if matcher_errors:
        matcher_errors[0].more = tuple(matcher_errors[1:])
        raise matcher_errors[0]
    return arguments


class Matcher(Struct, frozen=True):
    """An expected value made ready: `holds` says whether a value is right, `description` what is expected, in words.

    `optional`: what has a name may also be absent; if it is given, `holds` decides.
    """

    holds: Holds
    description: str
    optional: bool = False


def compile_matcher(expected: Any, path: tuple[str | int, ...] = (), *, named: bool = False) -> Matcher:
    """Make an expected value ready. `named`: of an argument or a key, which may be optional. Raises `MatcherError`."""
    if is_matcher(expected):
        if "$optional" in expected and not named:
            raise MatcherError(
                "`$optional` belongs at an argument or a key: nothing else can be left out", (*path, "$optional")
            )
        parts = [_one(name, operand, (*path, name)) for name, operand in expected.items()]
        if len(parts) == 1:
            return parts[0]
        tests = tuple(part.holds for part in parts)
        phrase, optional = " and ".join(p.description for p in parts), any(part.optional for part in parts)
        return Matcher(lambda value: all(test(value) for test in tests), phrase, optional)
    if isinstance(expected, Mapping) and has_matcher(expected):
        return _object(expected, path)
    if isinstance(expected, list) and has_matcher(expected):
        # Not `named`: without an item the others would stand elsewhere, so `$optional` is refused in a list.
        items = tuple(compile_matcher(item, (*path, number)).holds for number, item in enumerate(expected))
        return Matcher(
            lambda value: (
                isinstance(value, list)
                and len(value) == len(items)
                and all(test(item) for test, item in zip(items, value, strict=True))
            ),
            shown(expected),
        )
    return Matcher(_equal_to(expected), shown(expected))


def is_matcher(expected: object) -> bool:
    """An object whose keys all begin with `$`."""
    return isinstance(expected, Mapping) and bool(expected) and all(str(key).startswith("$") for key in expected)


def has_matcher(value: object) -> bool:
    """Whether there is a matcher in an expected value."""
    if is_matcher(value):
        return True
    if isinstance(value, Mapping):
        return any(has_matcher(item) for item in value.values())
    return isinstance(value, list) and any(has_matcher(item) for item in value)


def literal(value: object) -> object:
    """What to write where just this value is expected: itself, or inside of `$literal` if it looks like a matcher."""
    return {LITERAL: value} if has_matcher(value) else value


def is_literal(expected: object) -> bool:
    """Whether an expected value is `{"$literal": ...}`."""
    return isinstance(expected, Mapping) and len(expected) == 1 and LITERAL in expected


def plain_value(expected: Any) -> tuple[Any, bool]:
    """The one JSON value that is right, and True; (None, False) where matchers decide."""
    if is_literal(expected):
        return expected[LITERAL], True
    return (None, False) if has_matcher(expected) else (expected, True)


def taken_for_matcher(expected: object, actual: object) -> bool:
    """Whether a value that is not right is written just as it is expected: what was meant as a value is a matcher."""
    return has_matcher(expected) and same_json(expected, actual)


def same_json(left: object, right: object) -> bool:
    """Equal as JSON: 1 is 1.0, true is not 1, objects have no order."""
    if isinstance(left, bool) or isinstance(right, bool) or left is None or right is None:
        return left is right
    if isinstance(left, int | float):
        return isinstance(right, int | float) and left == right
    if isinstance(left, Mapping):
        return (
            isinstance(right, Mapping)
            and left.keys() == right.keys()
            and all(same_json(item, right[key]) for key, item in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(same_json(item, other) for item, other in zip(left, right, strict=True))
        )
    return bool(left == right)


def type_of(value: object) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _object(expected: Mapping[str, Any], path: tuple[str | int, ...]) -> Matcher:
    matchers = {key: compile_matcher(item, (*path, key), named=True) for key, item in expected.items()}
    tests = {key: matcher.holds for key, matcher in matchers.items()}
    due = frozenset(key for key, matcher in matchers.items() if not matcher.optional)
    return Matcher(
        lambda value: (
            isinstance(value, Mapping)
            and due <= value.keys() <= tests.keys()
            and all(test(value[key]) for key, test in tests.items() if key in value)
        ),
        shown(expected),
    )


def _equal_to(expected: object) -> Holds:
    # Most expected values are texts, which have no types to tell apart and nothing inside.
    if isinstance(expected, str):
        return lambda value: bool(value == expected)
    return lambda value: same_json(expected, value)


def _one(name: str, operand: Any, path: tuple[str | int, ...]) -> Matcher:
    if name == "$any":
        # With false it would seem to forbid the argument.
        if operand is not True:
            raise MatcherError("`$any` is written with true", path)
        return Matcher(lambda value: True, "anything")
    if name in ("$contains", "$ignore_case", "$regex"):
        if not isinstance(operand, str):
            raise MatcherError(f"`{name}` needs a string, not {_article(operand)}", path)
        return _textual(name, operand, path)
    if name == "$one_of":
        if not isinstance(operand, list):
            raise MatcherError(f"`$one_of` needs a list, not {_article(operand)}", path)
        options = tuple(compile_matcher(item, (*path, number)).holds for number, item in enumerate(operand))
        phrase = f"one of {shown(operand)}"
        return Matcher(lambda value: any(option(value) for option in options), phrase)
    if name == "$optional":
        inner = compile_matcher(operand, path)
        return Matcher(inner.holds, f"{inner.description}, if given", True)
    if name in ("$gt", "$gte", "$lt", "$lte"):
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise MatcherError(f"`{name}` needs a number, not {_article(operand)}", path)
        return _bound(name, operand)
    if name == LITERAL:
        return Matcher(_equal_to(operand), shown(operand))
    if name == "$not":
        inner = compile_matcher(operand, path)
        return Matcher(lambda value: not inner.holds(value), f"not {inner.description}")
    if name == "$type":
        if not isinstance(operand, str) or operand not in TYPES:
            raise MatcherError(f"`$type` is one of {', '.join(TYPES)}, not {shown(operand)}", path)
        return Matcher(lambda value: type_of(value) == operand, f"a value of type {operand}")
    near = closest(name, NAMES)
    hint = f": did you mean `{near}`?" if near else f" (there are {', '.join(NAMES)})"
    hint += f'; if the argument itself has this key, put its value into {{"{LITERAL}": ...}}'
    raise MatcherError(f"there is no matcher `{name}`{hint}", path, meant=near or "")


def _textual(name: str, operand: str, path: tuple[str | int, ...]) -> Matcher:
    if name == "$contains":
        return Matcher(lambda value: isinstance(value, str) and operand in value, f"a text with {shown(operand)} in it")
    if name == "$ignore_case":
        lowered = operand.lower()
        return Matcher(
            lambda value: isinstance(value, str) and value.lower() == lowered, f"{shown(operand)} in any case"
        )
    try:
        pattern = compile_pattern(operand)
    except PatternError as error:
        raise MatcherError(f"bad pattern: {error.message}", path, error.position) from None
    return Matcher(lambda value: isinstance(value, str) and pattern.search(value) is not None, f"a match of {operand}")


def _bound(name: str, limit: float) -> Matcher:
    tests: dict[str, tuple[Holds, str]] = {
        "$gt": (lambda value: is_number(value) and value > limit, "more than"),
        "$gte": (lambda value: is_number(value) and value >= limit, "at least"),
        "$lt": (lambda value: is_number(value) and value < limit, "less than"),
        "$lte": (lambda value: is_number(value) and value <= limit, "at most"),
    }
    holds, phrase = tests[name]
    return Matcher(holds, f"{phrase} {shown(limit)}")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a number: Python's bool is one, too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _article(value: object) -> str:
    name = type_of(value)
    return {"null": "null", "array": "an array", "object": "an object"}.get(name, f"a {name}")
