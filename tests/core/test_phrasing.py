"""Lists of names in sentences."""

from __future__ import annotations

import pytest

from agenteval_tui.core.phrasing import abridged


@pytest.mark.parametrize(
    ("parts", "separator", "rest", "text"),
    [
        ([], ", ", "more", ""),
        (["a"], ", ", "more", "a"),
        (["a", "b"], ", ", "more", "a, b"),
        (["a", "b", "c"], ", ", "more", "a, b and 1 more"),
        (["a: 1, 2", "b: 3", "c", "d"], "; ", "more tests", "a: 1, 2; b: 3; and 2 more tests"),
        (["a"] * 1002, ", ", "more", "a, a and 1,000 more"),
    ],
)
def test_of_many_parts_the_others_are_counted(parts: list[str], separator: str, rest: str, text: str) -> None:
    assert abridged(parts, 2, separator=separator, rest=rest) == text
