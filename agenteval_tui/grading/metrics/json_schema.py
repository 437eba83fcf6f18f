"""JSON Schema as the Json metric uses it: formats are checked, references are never fetched, patterns cannot hang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.grading import patterns
from agenteval_tui.grading.json_text import dotted
from agenteval_tui.grading.metrics.matchers import type_of
from agenteval_tui.grading.patterns import SlowPatternError
from agenteval_tui.grading.words import listed, shown

MOST = 20
"""Errors that are told of one value."""

Path = tuple[str | int, ...]


class BadSchemaError(ValueError):
    """A schema that cannot be used: why, and the path to it inside the schema."""

    def __init__(self, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.path = path


class UnresolvedError(Exception):
    """The schema refers to something that is not in it."""


class Schema:
    """A compiled schema (2020-12, or the draft that its `$schema` names)."""

    def __init__(self, schema: Any) -> None:
        """Raises `BadSchemaError`."""
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import extend, validator_for
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        draft: Any = validator_for(schema, default=Draft202012Validator)
        try:
            draft.check_schema(schema, format_checker=draft.FORMAT_CHECKER)
        except SchemaError as error:
            raise BadSchemaError(
                f"this is no JSON Schema: {_short(error.message)}", tuple(error.absolute_path)
            ) from None
        except RecursionError:
            raise BadSchemaError("this schema is nested too deeply") from None
        limited = extend(  # type: ignore[no-untyped-call]
            draft,
            {
                "pattern": _pattern,
                "patternProperties": _pattern_properties,
                "additionalProperties": _additional_properties,
            },
        )
        # With this registry only the drafts' own schemas are known: nothing is ever fetched.
        self._validator: Any = limited(schema, registry=REGISTRY, format_checker=draft.FORMAT_CHECKER)

    def fits(self, data: Any) -> bool:
        """Whether the value is valid. Raises `UnresolvedError`, `SlowPatternError`."""
        return next(self._errors(data), None) is None

    def errors(self, data: Any) -> list[tuple[Path, str]]:
        """Where and why the value is not valid. Raises `UnresolvedError`, `SlowPatternError`."""
        found = [(tuple(error.absolute_path), said(error)) for error in _first(self._errors(data), MOST)]
        # One line says all keys that are missing; the validator has an error for each of them.
        return sorted(dict.fromkeys(found), key=lambda one: [str(step) for step in one[0]])

    def _errors(self, data: Any) -> Iterator[Any]:
        from referencing.exceptions import Unresolvable

        try:
            yield from self._validator.iter_errors(data)
        except Unresolvable as error:
            ref = getattr(error, "ref", None) or str(error)
            raise UnresolvedError(f"the schema refers to {ref}, which is not in it (nothing is fetched)") from None
        except RecursionError:
            raise UnresolvedError(
                "the schema refers to itself without an end, or the value is nested too deeply"
            ) from None


def said(error: Any) -> str:
    """One of the validator's errors in plain words."""
    where = dotted(tuple(error.absolute_path))
    keyword, wanted, found = error.validator, error.validator_value, error.instance
    if keyword == "type":
        names = listed([str(one) for one in wanted]).replace(" and ", " or ") if isinstance(wanted, list) else wanted
        return f"{where} is {shown(found, 40)} ({type_of(found)}), not of type {names}"
    if keyword == "required" and isinstance(found, Mapping):
        missing = [name for name in wanted if name not in found]
        return f"{listed([f'`{name}`' for name in missing])} {'is' if len(missing) == 1 else 'are'} missing in {where}"
    if keyword == "enum":
        return f"{where} is {shown(found, 40)}, not one of {shown(wanted, 80)}"
    if keyword == "const":
        return f"{where} is {shown(found, 40)}, not {shown(wanted, 40)}"
    if keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        least = "more than" if keyword == "exclusiveMinimum" else "at least"
        most = "less than" if keyword == "exclusiveMaximum" else "at most"
        return f"{where} is {shown(found)}, not {least if 'inimum' in keyword else most} {shown(wanted)}"
    if keyword in ("pattern", "format"):
        what = f"matches {wanted}" if keyword == "pattern" else f"is a {wanted}"
        return f"{where} is {shown(found, 40)}, which is not what {what}"
    return f"{where}: {_short(error.message)}"


def _first(errors: Iterator[Any], most: int) -> list[Any]:
    found: list[Any] = []
    for error in errors:
        found.append(error)
        if len(found) >= most:
            break
    return found


def _short(message: str) -> str:
    return message if len(message) <= 160 else message[:159] + "…"


def _found(pattern: str, text: str) -> bool:
    import regex

    try:
        return regex.search(pattern, text, timeout=patterns.TIME_LIMIT) is not None
    except TimeoutError:
        raise SlowPatternError(pattern) from None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _found(pattern, instance):
        yield _error(f"{shown(instance)} does not match {pattern}")


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
        many = len(extras) > 1
        yield _error(f"{listed([f'`{extra}`' for extra in extras])} {'are' if many else 'is'} not expected here")


def _error(message: str) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message)
