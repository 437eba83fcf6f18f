"""Answers that are JSON: keys that must be there, values at paths, bounds on numbers and on lengths of lists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agenteval_tui.core.phrasing import shown
from agenteval_tui.extensions.suggest.conditions import JSON, Family, Measure, Pool, Say, bits
from agenteval_tui.extensions.suggest.examples import Examples, numbers, runs_by_key
from agenteval_tui.grading.extracted_value import ExtractionError, JsonValue
from agenteval_tui.grading.extractors.json_response import JsonResponse
from agenteval_tui.grading.placeholders import literally

_DEEP = 4
_LEAVES = 200
_NOTHING = object()


def json_families(examples: Examples) -> list[Family]:
    """All families of JSON answers; none where no good answer is JSON."""
    documents = [_document(examples, number) for number in range(len(examples))]
    good = [documents[number] for number in numbers(examples.good)]
    if not any(isinstance(document, dict | list) for document in good):
        return []
    leaves = [dict(_leaves(document)) if document is not _NOTHING else {} for document in documents]
    paths = sorted({path for number in numbers(examples.labelled) for path in leaves[number]})[:_LEAVES]
    cost = bits(len(paths)) + 2.0
    families: list[Family] = [_keys(examples, documents), _values(examples, leaves, paths, cost)]
    for path in paths:
        numeric = [_as_number(own.get(path)) for own in leaves]
        lengths = [float(len(value)) if isinstance(value := own.get(path), list) else None for own in leaves]
        for values, least, most, words in (
            (numeric, "minimum", "maximum", path),
            (lengths, "minItems", "maxItems", f"entries of {path}"),
        ):
            if any(value is not None for value in values):
                extraction = {"extract_path": path} if path else {}
                families.append(
                    Measure(
                        values,
                        _schema(least, most, words or "entries"),
                        cost + 1.0,
                        whole_numbers=all(value is None or value.is_integer() for value in values),
                        prototype=JSON,
                        extraction=extraction,
                        about=f"json {path}",
                        slack=0.5,
                    )
                )
    return families


def _document(examples: Examples, number: int) -> object:
    try:
        value = JsonResponse.model_validate({}).extract(examples.runs[number].transcript)
    except ExtractionError:
        return _NOTHING
    return value.data if isinstance(value, JsonValue) else _NOTHING


def _leaves(data: object, path: str = "", deep: int = 0) -> Iterator[tuple[str, Any]]:
    """Values by their path as JMESPath has it; of a list its first entry, and the list itself."""
    # What an agent answers may be nested without end; what says something is mostly near the top.
    if deep > _DEEP:
        return
    if isinstance(data, dict):
        for key, value in list(data.items())[:40]:
            name = key if key.isidentifier() and key.isascii() else json.dumps(key, ensure_ascii=False)
            yield from _leaves(value, f"{path}.{name}" if path else name, deep + 1)
    elif isinstance(data, list):
        yield path, data
        if data and path:
            yield from _leaves(data[0], f"{path}[0]", deep + 1)
    elif path:
        yield path, data


def _as_number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _schema(least: str, most: str, words: str) -> Say:
    kind = "array" if least == "minItems" else "number"

    def say(lower: float | None, upper: float | None) -> tuple[str, dict[str, Any]]:
        schema: dict[str, Any] = {"type": kind}
        limits = []
        if lower is not None:
            schema[least] = lower
            limits.append(f"at least {lower:g}")
        if upper is not None:
            schema[most] = upper
            limits.append(f"at most {upper:g}")
        return f"{words}: {', '.join(limits)}", {"type": "Json", "schema": schema}

    return say


def _keys(examples: Examples, documents: list[Any]) -> Family:
    """Keys that good answers have."""
    pool = Pool(examples)
    objects = ((number, documents[number]) for number in numbers(examples.good))
    masks = runs_by_key((key, number) for number, data in objects if isinstance(data, dict) for key in data)
    shared = [key for key, mask in sorted(masks.items()) if not examples.good & ~mask and key]
    # A key with a point in it would be read as a path.
    choices = [([key], mask) for key, mask in sorted(masks.items())[:40] if key and "." not in key]
    if len(shared) > 1 and not any("." in key for key in shared):
        choices.append((shared, examples.good))
    for keys, mask in choices:
        metric = {"type": "Json", "required_keys": keys}
        cost = 1.0 + bits(len(masks)) + 0.5 * len(keys)
        pool.add(f"JSON with {', '.join(keys)}", metric, cost, source=mask, prototype=JSON, about="json keys")
    return pool


def _values(examples: Examples, leaves: list[dict[str, Any]], paths: list[str], cost: float) -> Family:
    """Values at paths."""
    pool = Pool(examples)
    for path in paths:
        by_value: dict[str, tuple[Any, int]] = {}
        for number in numbers(examples.good):
            value = leaves[number].get(path)
            if isinstance(value, str | int | float | bool) and len(str(value)) <= 60:
                key = repr(value)
                by_value[key] = value, by_value.get(key, (None, 0))[1] | 1 << number
        for value, mask in sorted(by_value.values(), key=lambda entry: (-entry[1].bit_count(), repr(entry[0])))[:3]:
            metric: dict[str, Any]
            if isinstance(value, str):
                metric = {"type": "TextMatch", "equals": literally(value)}
            else:
                metric = {"type": "Json", "equals": value}
            pool.add(
                f"{path} is {shown(value, 40)}",
                metric,
                cost,
                source=mask,
                prototype=JSON,
                extraction={"extract_path": path},
                about=f"json {path}",
            )
    return pool
