"""The keywords of JSON Schema with a limit of time, with ECMA's patterns, and without quadratic work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agenteval_tui.grading import patterns
from agenteval_tui.grading.codes import Code, CodedError
from agenteval_tui.grading.ecma_regex import compile_ecma
from agenteval_tui.grading.json_formats import FORMATS
from agenteval_tui.grading.patterns import SlowPatternError

TIME_LIMIT = 2.0
"""Seconds that a schema may take on one value."""

_CLOCK = threading.local()
_EACH = 256  # items between two looks at the clock


class SlowSchemaError(CodedError):
    """Checking a value against a schema took longer than the time limit."""

    code = Code.SLOW_SCHEMA

    def __init__(self) -> None:
        super().__init__(seconds=TIME_LIMIT)


def start_clock() -> None:
    """The time limit counts from now, in this thread."""
    _CLOCK.until = time.monotonic() + TIME_LIMIT


def look_at_clock() -> None:
    """Raises `SlowSchemaError` when the time is over."""
    if time.monotonic() > _CLOCK.until:
        raise SlowSchemaError


def limited(draft: Any) -> Any:
    """A validator of `jsonschema` with our keywords, each of which looks at the clock first."""
    from jsonschema.validators import extend

    own = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "format": _format,
    }
    keywords = {name: _timed(own.get(name, real)) for name, real in draft.VALIDATORS.items()}
    if "unevaluatedProperties" in keywords:
        keywords["unevaluatedProperties"] = _timed(_unevaluated_properties)
    return extend(draft, keywords)  # type: ignore[no-untyped-call]


def _timed(real: Callable[..., Any]) -> Callable[..., Any]:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        look_at_clock()
        return real(validator, value, instance, schema)

    return check


def _found(pattern: str, text: str) -> bool:
    look_at_clock()
    try:
        return compile_ecma(pattern).search(text, timeout=patterns.TIME_LIMIT) is not None
    except TimeoutError:
        raise SlowPatternError(pattern) from None


def _format(validator: Any, name: str, instance: Any, schema: Any) -> Iterator[Any]:
    if name not in FORMATS:
        raise CodedError(code=Code.UNCHECKED_FORMAT, format=name)
    if isinstance(instance, str) and not FORMATS[name](instance):
        yield _error("is not of the format")


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _found(pattern, instance):
        yield _error("does not match")


def _pattern_properties(validator: Any, subschemas: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in subschemas.items():
        for key, item in instance.items():
            if _found(pattern, key):
                yield from validator.descend(item, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    others = list(schema.get("patternProperties", {}))
    extras = [key for key in instance if key not in known and not any(_found(one, key) for one in others)]
    if isinstance(allowed, dict):
        for extra in extras:
            yield from validator.descend(instance[extra], allowed, path=extra)
    elif not allowed and extras:
        yield _unexpected(extras)


def _unevaluated_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known = _evaluated(validator, instance, schema)
    extras = [key for key in instance if key not in known]
    if isinstance(allowed, dict):
        for extra in extras:
            yield from validator.descend(instance[extra], allowed, path=extra)
    elif not allowed and extras:
        yield _unexpected(extras)


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """The keys that a schema looks at, and what it applies in place (draft 2020-12, core, section 11.3).

    As `jsonschema._utils.find_evaluated_property_keys_by_schema`, which searches with Python's own patterns.
    """
    if not isinstance(schema, Mapping):
        return set()
    look_at_clock()
    found = set(instance) & set(schema.get("properties") or ())
    for resolved in _references(validator, schema):
        inner = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
        found |= _evaluated(inner, instance, resolved.contents)
    for name in ("additionalProperties", "unevaluatedProperties"):
        if name in schema:
            found.update(key for key, item in instance.items() if _fits(validator, item, schema[name]))
    for pattern in schema.get("patternProperties") or ():
        found.update(key for key in instance if _found(pattern, key))
    applied = [one for key, one in (schema.get("dependentSchemas") or {}).items() if key in instance]
    for name in ("allOf", "oneOf", "anyOf"):
        applied += [one for one in schema.get(name) or () if _fits(validator, instance, one)]
    if "if" in schema:
        if _fits(validator, instance, schema["if"]):
            applied += [schema["if"], schema.get("then")]
        else:
            applied.append(schema.get("else"))
    return found.union(*(_evaluated(validator, instance, one) for one in applied))


def _references(validator: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
    for name in ("$ref", "$dynamicRef"):
        if isinstance(schema.get(name), str):
            yield validator._resolver.lookup(schema[name])
    if "$recursiveRef" in schema:
        from referencing.jsonschema import lookup_recursive_ref

        yield lookup_recursive_ref(validator._resolver)


def _fits(validator: Any, instance: Any, schema: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not unique or not isinstance(instance, list):
        return
    seen: dict[Any, int] = {}
    for number, item in enumerate(instance):
        if not number % _EACH:
            look_at_clock()
        key = _key(item)
        if key in seen:
            yield _error(f"items {seen[key]} and {number} are equal, and must be unique")
            return
        seen[key] = number


def _key(value: Any) -> Any:
    """What equal JSON values have in common, and others not: 1 is 1.0, and not true; objects have no order."""
    if isinstance(value, bool) or value is None:
        return (value,)
    if isinstance(value, list):
        return ("list", *map(_key, value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _key(item)) for name, item in value.items()))
    return value


def _unexpected(extras: list[str]) -> Any:
    error = _error("has more than is allowed")
    error.extras = extras  # which `json_schema.broken` says
    return error


def _error(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)
