"""What a criterion is for grading: its configuration, and the hash that tells one version from another."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import line_and_column
from agenteval_tui.core.ids import content_hash
from agenteval_tui.grading.type_names import short_name
from agenteval_tui.uxon.parse import COMMENT_MARKS, LONGEST_NUMBER, MAX_DEPTH, parse
from agenteval_tui.uxon.serialize import to_text
from agenteval_tui.uxon.tree import MULTILINE, Document

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_LARGEST_INT: int = 10 ** (LONGEST_NUMBER - 1)


class CriterionSpec(Struct, frozen=True, eq=False, dict=True):
    """One criterion. `config` is UXON text, or the value itself (a mapping out of YAML).

    `prototype_class` is written as in the suite (`TextResponse`, `axenox\\...\\TextResponseTestCriterion.php`).
    `severity` is error, warning or info. `pass_threshold` (0..1): passes when the score reaches it.
    """

    name: str
    prototype_class: str
    config: str | Mapping[str, Any]
    description: str = ""
    expected_value: Any = None
    weight: float = 1.0
    severity: str = "error"
    negate: bool = False
    pass_threshold: float | None = None

    @property
    def prototype(self) -> str:
        """The short name of the prototype class: `TextResponse`."""
        return short_name(self.prototype_class)

    @cached_property
    def config_text(self) -> str:
        """The configuration as text: as it was written, or pretty UXON of the mapping."""
        return self.config if isinstance(self.config, str) else to_text(json_like(self.config))

    @cached_property
    def document(self) -> Document:
        """The parsed configuration."""
        return parse(self.config_text)

    @cached_property
    def source(self) -> str:
        """What tells two ways of writing the configuration apart: its text, or a mapping as JSON."""
        return self.config if isinstance(self.config, str) else _ENCODER.encode(json_like(self.config))

    @cached_property
    def value(self) -> Any:
        """The configuration as data. Hardly any mapping is parsed for it."""
        return self.document.value if self._data is None else self._data

    @cached_property
    def _data(self) -> object:
        """The data of a mapping; None where it takes `parse` to know it."""
        data = None if isinstance(self.config, str) else json_like(self.config)
        return data if _is_plain(data) else None

    @cached_property
    def broken(self) -> str:
        """The first syntax error of the configuration with its place in words; "" when it can be read."""
        if self._data is not None:
            return ""
        for diagnostic in self.document.diagnostics:
            if diagnostic.severity == "error":
                return f"{diagnostic.message} (config_uxon, {place(self.config_text, diagnostic.start)})"
        return ""

    @cached_property
    def hash(self) -> str:
        """Equal for criteria that judge alike: what is written differently but means the same has the same hash.

        Name, description, weight and severity are not part of it.
        """
        # A config that can't be read has no value yet; its text represents it, so that two broken configs stay two.
        config = {"unreadable": self.config_text} if self.broken else self.value
        return content_hash(
            {
                "prototype": self.prototype,
                "config": json_like(config),
                "expected_value": json_like(self.expected_value),
                "negate": self.negate,
                "pass_threshold": self.pass_threshold,
            }
        )


def metrics_in(config: object) -> list[Any]:
    """The entries of a config's `metrics`, as they are written; [] where that is not a list."""
    listed = config.get("metrics") if isinstance(config, Mapping) else None
    return listed if isinstance(listed, list) else []


def without_property(spec: CriterionSpec, *names: str) -> CriterionSpec:
    """The criterion, of whose metrics none has these properties; itself if none had one."""
    value, listed = spec.value, metrics_in(spec.value)
    if not any(isinstance(metric, Mapping) and any(name in metric for name in names) for metric in listed):
        return spec
    metrics = [
        {k: v for k, v in metric.items() if k not in names} if isinstance(metric, Mapping) else metric
        for metric in listed
    ]
    return replace(spec, config={**value, "metrics": metrics})


_SCALARS = frozenset((str, bool, int, float, type(None)))


def json_like(value: object, depth: int = 0) -> Any:
    """`value` with everything that JSON can't hold (dates, tuples, keys that are not strings) made into text. What is
    nested deeper than a config may be becomes `…`.
    """
    # What is exactly such a type is nearly everything; a look at its base classes takes three times as long.
    if type(value) in _SCALARS or isinstance(value, str | bool | int | float):
        return value
    if depth > MAX_DEPTH:
        return "…"
    # `dict` first: a look at `Mapping` costs more than all else here.
    if isinstance(value, (dict, Mapping)):
        return {key if isinstance(key, str) else str(key): json_like(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_like(item, depth + 1) for item in cast("list[Any]", value)]
    return str(value)


def _is_plain(value: object, depth: int = 0) -> bool:
    """Whether `parse` reads the text of `value` as it is: no number that a config can't hold, not too many levels, and
    nothing that Power UI uses for comments and for texts of several lines.
    """
    match value:
        case str():
            return True
        case dict():
            return depth < MAX_DEPTH and all(
                key[:2] not in COMMENT_MARKS and _is_plain(item, depth + 1) for key, item in value.items()
            )
        case list():
            lines = bool(value) and isinstance(value[0], str) and value[0].startswith(MULTILINE)
            return depth < MAX_DEPTH and not lines and all(_is_plain(item, depth + 1) for item in value)
        case float():
            return math.isfinite(value)
        case int():
            return abs(value) < _LARGEST_INT
        case _:
            return True


def place(text: str, offset: int) -> str:
    """`line 2, column 5` of `offset` in `text`."""
    line, column = line_and_column(text, offset)
    return f"line {line}, column {column}"
