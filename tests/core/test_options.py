"""What a person types into a field for a number."""

from __future__ import annotations

from typing import Annotated

import pytest

from agenteval_tui.core.options import OptionError, Options, limits, options_of


class Limits(Options, frozen=True, kw_only=True):
    max_cost: Annotated[float, limits("The most it may cost.", "USD", gt=0)] | None = None
    n: Annotated[int, limits("How often.", "N", ge=1, le=1_000_000)] = 1


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("max_cost", "", None),
        ("max_cost", " $0.50 ", 0.5),
        ("max_cost", "1,234.5", 1234.5),
        ("max_cost", "12,345,678", 12_345_678),
        ("max_cost", "1_000", 1000),
        ("n", "100,000", 100_000),
    ],
)
def test_a_number_is_read_as_people_write_it(name: str, text: str, number: float | None) -> None:
    assert options_of(Limits)[name].read(text) == number


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max_cost", "0,50"),
        ("max_cost", "1,5"),
        ("max_cost", "0,500"),
        ("max_cost", "1.234,5"),
        ("max_cost", "1234,567"),
        ("max_cost", ",5"),
        ("max_cost", "5,"),
        ("max_cost", "nan"),
        ("n", "1,5"),
        ("n", ""),
    ],
)
def test_a_comma_is_never_taken_for_something_else_than_was_meant(name: str, text: str) -> None:
    """A limit of 0,50 (half a dollar, in half of the world) is not one of 50 dollars."""
    with pytest.raises(OptionError, match=f"{name} must be "):
        options_of(Limits)[name].read(text)
