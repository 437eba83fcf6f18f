"""JSON Schema as the Json metric uses it: formats are checked, references are never fetched, patterns cannot hang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.grading import patterns
from agenteval_tui.grading.codes import Code, CodedError
from agenteval_tui.grading.metrics.matchers import type_of
from agenteval_tui.grading.metrics.verdicts import kept_value
from agenteval_tui.grading.patterns import SlowPatternError
from agenteval_tui.grading.sentences import on_one_line

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


class BadSchemaError(ValueError):
    """A schema that cannot be used: why, and the path to it inside the schema."""

    def __init__(self, message: str, path: Path = ()) -> None:
        super().__init__(message)
        self.path = path


class UnresolvedError(CodedError):
    """The schema refers to something that is not in it, or to itself without an end."""

    code = Code.UNRESOLVED_REFERENCE


Broken = tuple[Path, Code, dict[str, Any]]
"""A rule that does not hold: where in the value, code and fields."""


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
                f"this is no JSON Schema: {on_one_line(error.message, 160)}", tuple(error.absolute_path)
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

    def errors(self, data: Any) -> list[Broken]:
        """Where and why the value is not valid. Raises `UnresolvedError`, `SlowPatternError`."""
        found: list[Broken] = []
        for error in _first(self._errors(data), MOST):
            one = broken(error)
            # One line says all keys that are missing; the validator has an error for each of them.
            if one not in found:
                found.append(one)
        return sorted(found, key=lambda one: [str(step) for step in one[0]])

    def _errors(self, data: Any) -> Iterator[Any]:
        from referencing.exceptions import Unresolvable

        try:
            yield from self._validator.iter_errors(data)
        except Unresolvable as error:
            ref = getattr(error, "ref", None) or str(error)
            raise UnresolvedError(reference=str(ref)) from None
        except RecursionError:
            raise UnresolvedError(code=Code.TOO_DEEP, what="schema") from None


def broken(error: Any) -> Broken:
    """One of the validator's errors as code and fields."""
    path = tuple(error.absolute_path)
    rule, wanted, found = error.validator, error.validator_value, error.instance
    fields: dict[str, Any] = {"path": list(path), "rule": rule}
    if rule == "required" and isinstance(found, Mapping):
        return path, Code.MISSING, {**fields, "keys": [name for name in wanted if name not in found]}
    fields["value"] = kept_value(found)
    if rule == "type":
        types = [str(one) for one in wanted] if isinstance(wanted, list) else [str(wanted)]
        return path, Code.WRONG_TYPE, {**fields, "type": type_of(found), "types": types}
    code = _CODES.get(rule or "")
    if code is not None:
        return path, code, {**fields, "wanted": kept_value(wanted)}
    extras = getattr(error, "extras", None)
    if extras is not None:
        return path, Code.UNEXPECTED, {"path": list(path), "rule": "additionalProperties", "keys": extras[:_EXTRAS]}
    return path, Code.BREAKS_RULE, {"path": list(path), "rule": rule, "message": error.message[:_LONGEST]}


def _first(errors: Iterator[Any], most: int) -> list[Any]:
    found: list[Any] = []
    for error in errors:
        found.append(error)
        if len(found) >= most:
            break
    return found


def _found(pattern: str, text: str) -> bool:
    import regex

    try:
        return regex.search(pattern, text, timeout=patterns.TIME_LIMIT) is not None
    except TimeoutError:
        raise SlowPatternError(pattern) from None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _found(pattern, instance):
        yield _error("does not match", validator="pattern", validator_value=pattern, instance=instance)


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
        error = _error("has more than is allowed")
        error.extras = extras
        yield error


def _error(message: str, **more: Any) -> Any:
    from jsonschema import ValidationError

    return ValidationError(message, **more)
