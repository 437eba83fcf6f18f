"""JSON Schema as the Json metric uses it: formats are checked, references are never fetched, patterns cannot hang."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from agenteval_tui.grading.codes import Code, CodedError
from agenteval_tui.grading.json_formats import FORMATS, format_checker
from agenteval_tui.grading.metrics.json_keywords import limited, start_clock
from agenteval_tui.grading.metrics.matchers import type_of
from agenteval_tui.grading.metrics.verdicts import kept_value
from agenteval_tui.grading.sentences import on_one_line
from agenteval_tui.grading.words import quoted

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
        from jsonschema.validators import validator_for
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        checker = format_checker()
        draft: Any = validator_for(schema, default=Draft202012Validator)
        try:
            draft.check_schema(schema, format_checker=checker)
        except SchemaError as error:
            raise BadSchemaError(
                f"this is no JSON Schema: {on_one_line(error.message, 160)}", tuple(error.absolute_path)
            ) from None
        except RecursionError:
            raise BadSchemaError("this schema is nested too deeply") from None
        for path, problem in unchecked(schema):
            raise BadSchemaError(problem, path)
        # With this registry only the drafts' own schemas are known: nothing is ever fetched.
        self._validator: Any = _limited(draft)(schema, registry=REGISTRY, format_checker=checker)

    def fits(self, data: Any) -> bool:
        """Whether the value is valid. Raises `UnresolvedError`, `SlowPatternError`, `SlowSchemaError`."""
        return next(self._errors(data), None) is None

    def errors(self, data: Any) -> list[Broken]:
        """Where and why the value is not valid. Raises `UnresolvedError`, `SlowPatternError`, `SlowSchemaError`."""
        found: list[Broken] = []
        for error in _first(self._errors(data), MOST):
            one = broken(error)
            # One line says all keys that are missing; the validator has an error for each of them.
            if one not in found:
                found.append(one)
        return sorted(found, key=lambda one: [str(step) for step in one[0]])

    def _errors(self, data: Any) -> Iterator[Any]:
        from referencing.exceptions import Unresolvable

        start_clock()
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


@lru_cache(maxsize=8)
def _limited(draft: Any) -> Any:
    return limited(draft)


def unchecked(schema: Any) -> Iterator[tuple[Path, str]]:
    """What a schema asks for that is not checked: a format, a dialect or a vocabulary that is not known."""
    for path, name, value in _keywords(schema, ()):
        if name == "format" and isinstance(value, str) and value not in FORMATS and "{{" not in value:
            near = get_close_matches(value, sorted(FORMATS), 1)
            more = f"did you mean {near[0]}?" if near else f"checked are {', '.join(sorted(FORMATS))}"
            yield path, f"the format {quoted(value)} is not checked: {more}"
        elif name == "$schema" and isinstance(value, str) and value.rstrip("#") not in _DIALECTS:
            yield path, f"the dialect {quoted(value, 80)} is not known"
        elif name == "$vocabulary" and isinstance(value, Mapping):
            for one, required in value.items():
                if required and not str(one).startswith(_VOCABULARIES):
                    yield (*path, one), f"the vocabulary {quoted(str(one), 80)} is not known"


def only_annotations(schema: Any) -> Iterator[tuple[Path, str]]:
    """The keywords of a schema that say something of a value and check nothing (validation, section 8)."""
    for path, name, _ in _keywords(schema, ()):
        if name in ("contentEncoding", "contentMediaType", "contentSchema"):
            yield path, name


def _keywords(schema: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """The keywords of a schema and of the schemas in it, with the path to each and its value."""
    if isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _keywords(one, (*path, number))
    if not isinstance(schema, Mapping):
        return
    for name, value in schema.items():
        here = (*path, name)
        yield here, name, value
        if name in _SUBSCHEMAS:
            yield from _keywords(value, here)
        elif name in _NAMED_SUBSCHEMAS and isinstance(value, Mapping):
            for key, one in value.items():
                yield from _keywords(one, (*here, key))


_DIALECTS = frozenset(
    (
        *(f"https://json-schema.org/draft/{one}/schema" for one in ("2020-12", "2019-09")),
        *(f"http://json-schema.org/draft-0{one}/schema" for one in (3, 4, 6, 7)),
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
