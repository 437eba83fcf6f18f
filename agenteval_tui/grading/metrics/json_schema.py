"""JSON Schema as the Json metric uses it: formats are checked, references are never fetched, patterns cannot hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.phrasing import on_one_line, quoted
from agenteval_tui.grading import regex_search
from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.ecma_regex import compile_ecma
from agenteval_tui.grading.json_formats import FORMATS, format_checker
from agenteval_tui.grading.metrics.matchers import type_of
from agenteval_tui.grading.regex_search import SlowPatternError
from agenteval_tui.grading.results import kept_value

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

MOST = 20
"""Errors that are told of one value."""
_EXTRAS = 40
_LONGEST = 300
_CODES = {
    "enum": Code.NOT_A_CHOICE,
    "const": Code.DIFFERS,
    "pattern": Code.NO_MATCH,
    "format": Code.NO_MATCH,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), Code.OUT_OF_BOUNDS),
}
Path = tuple[str | int, ...]
Broken = tuple[Path, Code, dict[str, Any]]
"""A rule that does not hold: where in the value, code and fields."""
_DIALECTS = frozenset(
    (
        *(f"https://json-schema.org/draft/{draft}/schema" for draft in ("2020-12", "2019-09")),
        *(f"http://json-schema.org/draft-0{draft}/schema" for draft in (3, 4, 6, 7)),
    )
)
_VOCABULARIES = ("https://json-schema.org/draft/2020-12/vocab/", "https://json-schema.org/draft/2019-09/vocab/")
_SUBSCHEMAS = frozenset(
    {
        *{"items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties"},
        *{"unevaluatedProperties", "propertyNames", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"},
        *{"contentSchema", "extends", "disallow"},
    }
)
_NAMED_SUBSCHEMAS = frozenset(
    ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
)
TIME_LIMIT = 2.0
"""Seconds that a schema may take on one value."""
_CLOCK = threading.local()
_EACH = 256  # items between two looks at the clock


class BadSchemaError(ValueError):
    """A schema that cannot be used: why, and the path to it inside the schema."""

    def __init__(self, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.path = path


class UnresolvedError(CodedError):
    """The schema refers to something that is not in it, or to itself endlessly."""

    code = Code.UNRESOLVED_REFERENCE


class Schema:
    """A compiled schema (2020-12, or the draft that its `$schema` names)."""

    def __init__(self, schema: Any) -> None:
        """Raises `BadSchemaError`."""
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import validator_for
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        checker = format_checker()
        draft: Any = validator_for(schema, default=Draft202012Validator)
        try:
            draft.check_schema(schema, format_checker=checker)
        except SchemaError as error:
            raise BadSchemaError(
                f"this is not a JSON Schema: {on_one_line(error.message, 160)}", tuple(error.absolute_path)
            ) from None
        except RecursionError:
            raise BadSchemaError("this schema is nested too deeply") from None
        for path, problem in unchecked_rules(schema):
            raise BadSchemaError(problem, path)
        # With this registry only the drafts' own schemas are known: nothing is ever fetched.
        self._validator: Any = _validator_of(draft)(schema, registry=REGISTRY, format_checker=checker)

    def fits(self, data: object) -> bool:
        """Whether the value is valid. Raises `UnresolvedError`, `SlowPatternError`, `SlowSchemaError`."""
        return next(self._errors(data), None) is None

    def errors(self, data: object) -> list[Broken]:
        """Where and why the value is not valid. Raises `UnresolvedError`, `SlowPatternError`, `SlowSchemaError`."""
        broken_rules: list[Broken] = []
        for error in islice(self._errors(data), MOST):
            broken = broken_rule(error)
            # One line says all keys that are missing; the validator has an error for each of them.
            if broken not in broken_rules:
                broken_rules.append(broken)
        return sorted(broken_rules, key=lambda rule: [str(step) for step in rule[0]])

    def _errors(self, data: object) -> Iterator[Any]:
        from referencing.exceptions import Unresolvable

        start_clock()
        try:
            yield from self._validator.iter_errors(data)
        except Unresolvable as error:
            ref = getattr(error, "ref", None) or str(error)
            raise UnresolvedError(reference=str(ref)) from None
        except RecursionError:
            raise UnresolvedError(code=Code.TOO_DEEP, what="schema") from None


def broken_rule(error: Any) -> Broken:
    """One of the validator's errors as code and fields."""
    path = tuple(error.absolute_path)
    rule, expected, instance = error.validator, error.validator_value, error.instance
    fields: dict[str, Any] = {"path": list(path), "rule": rule}
    if rule == "required" and isinstance(instance, Mapping):
        return path, Code.MISSING, {**fields, "keys": [name for name in expected if name not in instance]}
    fields["value"] = kept_value(instance)
    if rule == "type":
        types = [str(type_name) for type_name in expected] if isinstance(expected, list) else [str(expected)]
        return path, Code.WRONG_TYPE, {**fields, "type": type_of(instance), "types": types}
    code = _CODES.get(rule or "")
    if code is not None:
        return path, code, {**fields, "wanted": kept_value(expected)}
    extras = getattr(error, "extras", None)
    if extras is not None:
        return path, Code.UNEXPECTED, {"path": list(path), "rule": "additionalProperties", "keys": extras[:_EXTRAS]}
    return path, Code.BREAKS_RULE, {"path": list(path), "rule": rule, "message": error.message[:_LONGEST]}


def unchecked_rules(schema: object) -> Iterator[tuple[Path, str]]:
    """What a schema asks for that is not checked: a format, a dialect or a vocabulary that is not known."""
    for path, name, value in _keywords(schema, ()):
        if name == "format" and isinstance(value, str) and value not in FORMATS and "{{" not in value:
            more = did_you_mean(value, sorted(FORMATS), f"checked are {', '.join(sorted(FORMATS))}")
            yield path, f"the format {quoted(value)} is not checked: {more}"
        elif name == "$schema" and isinstance(value, str) and value.rstrip("#") not in _DIALECTS:
            yield path, f"the dialect {quoted(value, 80)} is not known"
        elif name == "$vocabulary" and isinstance(value, Mapping):
            for vocabulary, required in value.items():
                if required and not str(vocabulary).startswith(_VOCABULARIES):
                    yield (*path, vocabulary), f"the vocabulary {quoted(str(vocabulary), 80)} is not known"


def only_annotations(schema: object) -> Iterator[tuple[Path, str]]:
    """The keywords of a schema that say something of a value and check nothing (validation, section 8)."""
    for path, name, _ in _keywords(schema, ()):
        if name in ("contentEncoding", "contentMediaType", "contentSchema"):
            yield path, name


def _keywords(schema: object, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """The keywords of a schema and of the schemas in it, with the path to each and its value."""
    if isinstance(schema, list):
        for number, subschema in enumerate(schema):
            yield from _keywords(subschema, (*path, number))
    if not isinstance(schema, Mapping):
        return
    for name, value in schema.items():
        here = (*path, name)
        yield here, name, value
        if name in _SUBSCHEMAS:
            yield from _keywords(value, here)
        elif name in _NAMED_SUBSCHEMAS and isinstance(value, Mapping):
            for key, subschema in value.items():
                yield from _keywords(subschema, (*here, key))


# The keywords of JSON Schema with a limit of time, with ECMA's patterns, and without quadratic work


class SlowSchemaError(CodedError):
    """Checking a value against a schema took longer than the time limit."""

    code = Code.SLOW_SCHEMA

    def __init__(self) -> None:
        super().__init__(seconds=TIME_LIMIT)


def start_clock() -> None:
    """The time limit counts from now, in this thread: its own time, so that no verdict depends on what else runs."""
    _CLOCK.until = time.thread_time() + TIME_LIMIT


def check_clock() -> None:
    """Raises `SlowSchemaError` when the time is over."""
    if time.thread_time() > _CLOCK.until:
        raise SlowSchemaError


@lru_cache(maxsize=8)
def _validator_of(draft: Any) -> type[Validator]:
    """A validator of `jsonschema` with our keywords, each of which looks at the clock first."""
    from jsonschema.validators import extend

    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "multipleOf": _multiple_of,
        "divisibleBy": _multiple_of,
        "format": _format,
    }
    keywords = {name: _timed(own.get(name, real)) for name, real in draft.VALIDATORS.items()}
    if "unevaluatedProperties" in keywords:
        keywords["unevaluatedProperties"] = _timed(_unevaluated_properties)
    validator: type[Validator] = extend(draft, keywords)  # type: ignore[no-untyped-call]
    return validator


def _timed(real: Callable[..., Any]) -> Callable[..., Any]:
    def check(validator: Any, value: object, instance: object, schema: object) -> object:
        check_clock()
        return real(validator, value, instance, schema)

    return check


def _finds(pattern: str, text: str) -> bool:
    check_clock()
    try:
        return compile_ecma(pattern).search(text, timeout=regex_search.TIME_LIMIT) is not None
    except TimeoutError:
        raise SlowPatternError(pattern) from None


def _format(validator: Any, name: str, instance: object, schema: object) -> Iterator[Any]:
    if name not in FORMATS:
        raise CodedError(code=Code.UNCHECKED_FORMAT, format=name)
    if isinstance(instance, str) and not FORMATS[name](instance):
        yield _error("is not of the format")


def _pattern(validator: Any, pattern: str, instance: object, schema: object) -> Iterator[Any]:
    if isinstance(instance, str) and not _finds(pattern, instance):
        yield _error("does not match")


def _pattern_properties(validator: Any, subschemas: Any, instance: object, schema: object) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in subschemas.items():
        for key, item in instance.items():
            if _finds(pattern, key):
                yield from validator.descend(item, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    properties = schema.get("properties", {})
    others = list(schema.get("patternProperties", {}))
    extras = [key for key in instance if key not in properties and not any(_finds(pattern, key) for pattern in others)]
    yield from _extras(validator, allowed, instance, extras)


def _unevaluated_properties(validator: Any, allowed: Any, instance: object, schema: object) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    evaluated = _evaluated(validator, instance, schema)
    yield from _extras(validator, allowed, instance, [key for key in instance if key not in evaluated])


def _extras(validator: Any, allowed: Any, instance: Any, extras: list[str]) -> Iterator[Any]:
    """What is wrong with the properties that the schema does not name."""
    if isinstance(allowed, dict):
        for extra in extras:
            yield from validator.descend(instance[extra], allowed, path=extra)
    elif not allowed and extras:
        yield _unexpected(extras)


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: object) -> set[str]:
    """The keys that a schema looks at, and what it applies in place (draft 2020-12, core, section 11.3).

    As `jsonschema._utils.find_evaluated_property_keys_by_schema`, which searches with Python's own patterns.
    """
    if not isinstance(schema, Mapping):
        return set()
    check_clock()
    evaluated = set(instance) & set(schema.get("properties") or ())
    for resolved in _references(validator, schema):
        inner = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
        evaluated |= _evaluated(inner, instance, resolved.contents)
    for name in ("additionalProperties", "unevaluatedProperties"):
        if name in schema:
            evaluated.update(key for key, item in instance.items() if _fits(validator, item, schema[name]))
    for pattern in schema.get("patternProperties") or ():
        evaluated.update(key for key in instance if _finds(pattern, key))
    applied = [subschema for key, subschema in (schema.get("dependentSchemas") or {}).items() if key in instance]
    for name in ("allOf", "oneOf", "anyOf"):
        applied += [subschema for subschema in schema.get(name) or () if _fits(validator, instance, subschema)]
    if "if" in schema:
        if _fits(validator, instance, schema["if"]):
            applied += [schema["if"], schema.get("then")]
        else:
            applied.append(schema.get("else"))
    return evaluated.union(*(_evaluated(validator, instance, subschema) for subschema in applied))


def _references(validator: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("$ref", "$dynamicRef"):
        if isinstance(schema.get(name), str):
            yield validator._resolver.lookup(schema[name])
    if "$recursiveRef" in schema:
        from referencing.jsonschema import lookup_recursive_ref

        yield lookup_recursive_ref(validator._resolver)


def _fits(validator: Any, instance: object, schema: object) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _unique_items(validator: Any, unique: Any, instance: object, schema: object) -> Iterator[Any]:
    if not unique or not isinstance(instance, list):
        return
    first_numbers: dict[Any, int] = {}
    for number, item in enumerate(instance):
        if not number % _EACH:
            check_clock()
        key = _key(item)
        if key in first_numbers:
            yield _error(f"items {first_numbers[key]} and {number} are equal, and must be unique")
            return
        first_numbers[key] = number


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """By the decimal numbers that were written: 19.99 is a multiple of 0.01, though their doubles are not."""
    if not validator.is_type(instance, "number"):
        return
    finite = not isinstance(instance, float) or isfinite(instance)
    if not finite or (_decimal(instance) / _decimal(factor)).denominator != 1:
        yield _error(f"{instance!r} is not a multiple of {factor!r}")


def _decimal(number: float) -> Fraction:
    """The number as it is written, which is the shortest decimal that its double stands for."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def _key(value: object) -> object:
    """What equal JSON values have in common, and others not: 1 is 1.0, and not true; objects have no order."""
    if isinstance(value, bool) or value is None:
        return (value,)
    if isinstance(value, list):
        return ("list", *map(_key, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(item)) for name, item in value.items()))
    return value


def _unexpected(extras: list[str]) -> object:
    error: Any = _error("has more than is allowed")
    error.extras = extras  # names them, for `broken_rule`
    return error


def _error(message: str) -> ValidationError:
    from jsonschema import ValidationError

    return ValidationError(message)
