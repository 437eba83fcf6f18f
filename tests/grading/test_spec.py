"""What a criterion's configuration is as data, as text and as a key."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.metrics.text_match import TextMatch, conditions_of
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.uxon.parse import MAX_DEPTH, parse

COMMENTS = st.sampled_from(["// why", "/*", "*/", "//"])
LINES = st.just("// Multiline text delimited by `\\n`")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.integers(-(10**402), 10**402)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.dates()
    | LINES
)
KEYS = COMMENTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.integers(0, 9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def spec_of(config: Any) -> CriterionSpec:
    return CriterionSpec("Says hello", "TextResponse", config)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_a_mapping_is_the_data_that_its_text_means(config: dict[Any, Any]) -> None:
    spec, written = spec_of(config), spec_of(spec_of(config).config_text)
    assert bool(spec.broken) == bool(written.broken)
    assert spec.value == written.value or spec.broken
    assert spec.hash == written.hash


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_no_config_can_hold_is_an_error(number: float) -> None:
    assert "is not a number" in spec_of({"metrics": [{"type": "Number", "min": number}]}).broken


@pytest.mark.parametrize("levels", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2])
def test_too_many_levels_are_an_error_as_in_a_text(levels: int) -> None:
    config: dict[str, Any] = {}
    for _ in range(levels - 1):
        config = {"a": config}
    assert bool(spec_of(config).broken) == bool(parse(spec_of(config).config_text).broken) == (levels > MAX_DEPTH)


def test_the_order_of_properties_tells_two_configs_apart() -> None:
    first, second = spec_of({"a": 1, "b": 2}), spec_of({"b": 2, "a": 1})
    assert first.hash == second.hash
    assert first.source != second.source


def test_a_date_is_its_text() -> None:
    assert spec_of({"equals": datetime.date(2026, 1, 2)}).value == {"equals": "2026-01-02"}


LISTS = st.none() | st.lists(st.sampled_from(["", "a"]), max_size=2)
TEXTS = st.none() | st.sampled_from(["", "a"])


@given(TEXTS, TEXTS, TEXTS, LISTS, LISTS, LISTS)
def test_a_metric_without_conditions_checks_nothing(
    equals: str | None,
    contains: str | None,
    ends_with: str | None,
    contains_all: list[str] | None,
    not_contains_any: list[str] | None,
    starts_with_any: list[str] | None,
) -> None:
    fields = {name: value for name, value in locals().items() if value is not None}
    metric = TextMatch.model_validate(fields)
    assert metric.checks_nothing() == (not conditions_of(metric))
