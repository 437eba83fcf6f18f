"""`Json`: the value is JSON, fits a schema, has keys, is equal to another value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from pydantic import Field, field_validator

from agenteval_tui.core.json_values import value_at
from agenteval_tui.core.phrasing import quoted, shown
from agenteval_tui.grading.code_fences import fenced_blocks
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, JsonValue, ListValue, Value
from agenteval_tui.grading.json_reading import (
    JsonSource,
    NotJsonError,
    UnreadableJsonError,
    compact,
    content_fields,
    embedded_json,
    keys_of,
    objects_in,
    read_json,
)
from agenteval_tui.grading.metrics.json_schema import Schema, UnresolvedError, only_annotations
from agenteval_tui.grading.metrics.matchers import same_json, type_of
from agenteval_tui.grading.metrics.metric import Check, ConfigWarning, Metric, quick_results
from agenteval_tui.grading.placeholders import has_placeholders
from agenteval_tui.grading.results import Evidence, MetricResult, Outcome, Span, kept_value
from agenteval_tui.grading.sentences import dotted_path, evidence_sentence

Path = tuple[str | int, ...]
_DIFFERENCES = 20


class Json(Metric):
    """Reads the value as JSON and checks it. The value must be JSON, and must meet every given condition.

    The whole text must be JSON. To check JSON in a code block, use the prototype class JsonResponse; to accept an
    object anywhere in the text, set `anywhere`. The score is the mean over the given conditions: matches the schema or
    not, share of the required keys, equal or not.
    """

    any_json: ClassVar[frozenset[str]] = frozenset({"schema", "equals"})

    schema_: dict[str, Any] | None = Field(
        None,
        validation_alias="schema",
        description="A JSON Schema (draft 2020-12, unless its `$schema` names another). Formats (date, email, uuid, "
        "...) are checked. A `$ref` is looked up inside the schema and never fetched.",
    )
    required_keys: list[str] | None = Field(
        None, description="Keys that the JSON must have, with dots for nested keys: `order.items.0.price`."
    )
    anywhere: bool = Field(
        False,
        description="Accept JSON anywhere in the text: it is enough if one object in it meets the conditions.",
    )
    equals: Any = Field(
        None, description="The value is deeply equal to this. The order of keys doesn't matter, and 1 equals 1.0."
    )

    @field_validator("schema_")
    @classmethod
    def _usable(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        # Made to be refused here, with its place in the config, and not when a run is graded.
        if schema is not None:
            Schema(schema)
        return schema

    @property
    def compares(self) -> bool:
        """Whether `equals` is given; null is a value to compare with too."""
        return "equals" in self.model_fields_set

    def compile(self) -> Check:
        return _CompiledJson(self, None if self.schema_ is None else Schema(self.schema_))

    def findings(self) -> Iterator[ConfigWarning]:
        if self.required_keys == []:
            yield ConfigWarning(
                "warning", "checks-nothing", "`required_keys` is empty: it checks nothing", ("required_keys",)
            )
        for number, key in enumerate(self.required_keys or ()):
            if not key:
                text = "an empty key is ignored here"
                yield ConfigWarning("warning", "checks-nothing", text, ("required_keys", number))
        if self.schema_ == {}:
            yield ConfigWarning("warning", "cannot-fail", "an empty schema fits every value", ("schema",))
        if self.schema_ is not None:
            for path, name in only_annotations(self.schema_):
                text = f"`{name}` is an annotation in JSON Schema: it is not checked"
                yield ConfigWarning("warning", "without-effect", text, ("schema", *path))
        if not self.compares or has_placeholders(self.equals):
            return
        for number, key in enumerate(self.required_keys or ()):
            if key and _find_key(self.equals, key)[1] is False:
                text = f"{quoted(key)} is required, but not in what `equals` wants: this can never pass"
                yield ConfigWarning("error", "contradictory", text, ("required_keys", number))
        if self.schema_ is not None and not has_placeholders(self.schema_):
            yield from self._schema_against_equals()

    def _schema_against_equals(self) -> Iterator[ConfigWarning]:
        try:
            errors = Schema(self.schema_).errors(self.equals)
        except (UnresolvedError, ValueError):
            return
        if errors:
            _, code, fields = errors[0]
            why = evidence_sentence(Evidence("schema", False, code=code, fields=fields))
            text = f"what `equals` wants does not fit the schema ({why}): this can never pass"
            yield ConfigWarning("error", "contradictory", text, ("equals",))


def _find_key(data: object, key: str) -> tuple[Path, bool]:
    """The path that a dotted key leads along in `data`, and whether all of it is there."""
    current, rest = data, key
    path: list[str | int] = []
    while rest:
        if isinstance(current, Mapping):
            # A key may have dots of its own: the longest existing one counts.
            names = rest.split(".")
            step = next((s for n in range(len(names), 0, -1) if (s := ".".join(names[:n])) in current), None)
            if step is None:
                return tuple(path), False
            current = current[step]
            path.append(step)
        else:
            step = rest.split(".", 1)[0]
            if not (isinstance(current, list) and step.isdecimal() and int(step) < len(current)):
                return tuple(path), False
            current = current[int(step)]
            path.append(int(step))
        rest = rest[len(str(step)) + 1 :]
    return tuple(path), True


class _CompiledJson:
    """A Json made ready for many values."""

    def __init__(self, metric: Json, schema: Schema | None) -> None:
        self._metric = metric
        self._schema = schema
        self._keys = tuple((number, key) for number, key in enumerate(metric.required_keys or ()) if key)
        self._quick = quick_results(metric)

    def __call__(self, value: Value, context: Context) -> MetricResult:
        metric = self._metric
        try:
            if metric.anywhere and not isinstance(value, JsonValue | ListValue):
                return self._somewhere(value, context)
            data, source = _data(value)
        except NotJsonError as problem:
            if not context.explain:
                return self._quick(False, 0.0)
            return metric.result(False, 0.0, (_no_json(value, problem),))
        except UnreadableJsonError as problem:
            return metric.error_from(problem)
        return self._judged(data, source, context)

    def _somewhere(self, value: Value, context: Context) -> MetricResult:
        """The first object of a text that is as it should be; else the one that is nearest to it."""
        nearest: MetricResult | None = None
        for start, end, data in objects_in(value.text):
            metric_result = self._judged(data, _piece(value, start, end), context)
            if metric_result.outcome is not Outcome.FAILED:
                return metric_result
            if nearest is None or (metric_result.score or 0.0) > (nearest.score or 0.0):
                nearest = metric_result
        if nearest is not None:
            return nearest
        raise NotJsonError({"nowhere": True}, 0)

    def _judged(self, data: object, source: JsonSource | None, context: Context) -> MetricResult:
        metric = self._metric
        parts: list[float] = []
        try:
            if self._schema is not None:
                parts.append(1.0 if self._schema.fits(data) else 0.0)
            if self._keys:
                parts.append(sum(_find_key(data, key)[1] for _, key in self._keys) / len(self._keys))
            if metric.compares:
                parts.append(1.0 if same_json(metric.equals, data) else 0.0)
            score = sum(parts) / len(parts) if parts else 1.0
            passed = all(part == 1.0 for part in parts)
            if not context.explain:
                return self._quick(passed, score)
            return metric.result(passed, score, self._evidence(data, source))
        except UnresolvedError as problem:
            return metric.error_from(problem)

    def _evidence(self, data: object, source: JsonSource | None) -> Iterator[Evidence]:
        def place(path: Path) -> tuple[Span, ...]:
            return () if source is None else source.place(path)

        shortened = _kept(data)
        yield Evidence(
            "parses", passed=True, expected="JSON", found=shortened, spans=place(()), group="parses", code=Code.PARSES
        )
        if self._schema is not None:
            errors = self._schema.errors(data)
            if not errors:
                yield Evidence("schema", True, spans=place(()), group="schema", code=Code.FITS)
            yield from _misses("schema", errors, place)
        group = "required_keys"
        for number, key in self._keys:
            name = f"required_keys[{number}]"
            path, there = _find_key(data, key)
            if there:
                yield Evidence(
                    name,
                    passed=True,
                    expected=key,
                    found=key,
                    spans=place(path),
                    group=group,
                    code=Code.PRESENT,
                    fields={"key": key},
                )
                continue
            fields = {"key": key, "path": list(path), "there": content_fields(value_at(data, path))}
            yield Evidence(
                name, passed=False, expected=key, near=place(path), group=group, code=Code.MISSING, fields=fields
            )
        if self._metric.compares:
            expected = self._metric.equals
            problems = list(islice(differences(expected, data), _DIFFERENCES))
            if not problems:
                yield Evidence(
                    "equals",
                    passed=True,
                    expected=expected,
                    found=shortened,
                    spans=place(()),
                    group="equals",
                    code=Code.EQUAL,
                )
            yield from _misses("equals", problems, place, _kept(expected) if problems else None)


def _misses(
    group: str,
    problems: Sequence[tuple[Path, str, dict[str, Any]]],
    place: Callable[[Path], tuple[Span, ...]],
    expected: object = None,
) -> Iterator[Evidence]:
    """A line for each place that is not as it should be; they are numbered where they are several."""
    for number, (path, code, fields) in enumerate(problems):
        yield Evidence(
            group if len(problems) == 1 else f"{group}[{number}]",
            passed=False,
            expected=expected,
            found=dotted_path(path),
            spans=place(path),
            group=group,
            code=code,
            fields=fields,
        )


def _piece(value: Value, start: int, end: int) -> JsonSource:
    """A piece of a text that is JSON."""
    return JsonSource(value.text[start:end], lambda first, last: value.spans(start + first, start + last))


def _data(value: Value) -> tuple[Any, JsonSource | None]:
    """The value's JSON data. Raises `NotJsonError`, `UnreadableJsonError`."""
    if isinstance(value, JsonValue):
        return value.data, value.source
    if isinstance(value, ListValue):
        return list(value.items), None
    return read_json(value.text), JsonSource(value.text, value.spans)


def _no_json(value: Value, problem: NotJsonError) -> Evidence:
    text = value.text
    fields = dict(problem.fields)
    at = min(problem.position, max(len(text) - 1, 0))
    spans = value.spans(at, min(at + 1, len(text))) if text else ()
    near: tuple[Span, ...] = ()
    part = embedded_json(text)
    if part is not None:
        near = value.spans(*part)
        if "```" in text[: part[0]] or any(
            fenced_block.start < part[0] < fenced_block.end for fenced_block in fenced_blocks(text)
        ):
            fields["block"] = True
        else:
            fields["part"] = text[part[0] : part[1]][:100]
    return Evidence(
        "parses",
        passed=False,
        expected="JSON",
        found=quoted(text, 100),
        spans=spans,
        near=near,
        group="parses",
        code=Code.NOT_JSON,
        fields=fields,
    )


def _kept(data: object) -> object:
    """Small data as it is; of large data the beginning: all of it is in the transcript already."""
    try:
        compact(data, 2000)
    except UnreadableJsonError:
        return shown(data, 300) if not isinstance(data, list | Mapping) else keys_of(data)
    return data


# Where two JSON values differ


def differences(expected: object, actual: object, path: Path = ()) -> Iterator[tuple[Path, Code, dict[str, Any]]]:
    """Where `actual` is not what is `expected`, with code and fields. Numbers compare by value (1 is 1.0)."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key, item in expected.items():
            if key in actual:
                yield from differences(item, actual[key], (*path, key))
            else:
                yield path, Code.MISSING, {"path": list(path), "keys": [key], "value": kept_value(item)}
        for key, item in actual.items():
            if key not in expected:
                yield (*path, key), Code.UNEXPECTED, {"path": [*path, key], "value": kept_value(item)}
    elif isinstance(expected, list) and isinstance(actual, list):
        for number, (item, other) in enumerate(zip(expected, actual, strict=False)):
            yield from differences(item, other, (*path, number))
        if len(expected) > len(actual):
            yield path, Code.TOO_FEW, {"path": list(path), "count": len(actual), "least": len(expected)}
        for number in range(len(expected), len(actual)):
            yield (*path, number), Code.UNEXPECTED, {"path": [*path, number], "value": kept_value(actual[number])}
    elif not same_json(expected, actual):
        fields = {"path": list(path), "value": kept_value(actual), "wanted": kept_value(expected)}
        if type_of(expected) != type_of(actual):
            fields["type"] = type_of(actual)
        yield path, Code.DIFFERS, fields
