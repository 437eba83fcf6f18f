"""What tells the criteria of one test apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.ids import criterion_names

ODD = st.lists(
    st.sampled_from(["a", "a (2)", "a (2)'", "a (3)", "", " ", "criterion 1", "criterion 2", "ä/\"'#%", "\n"])
)


@pytest.mark.parametrize(
    ("given_names", "made"),
    [
        (["tone", "facts"], ("tone", "facts")),
        (["tone", "tone", "tone"], ("tone", "tone (2)", "tone (3)")),
        (["", " "], ("criterion 1", "criterion 2")),
        (["tone", "", "tone"], ("tone", "criterion 2", "tone (2)")),
        (["tone", "tone", "tone (2)"], ("tone", "tone (2)'", "tone (2)")),
        (["criterion 2", ""], ("criterion 2", "criterion 2 (2)")),
        (["Tone", "tone"], ("Tone", "tone")),
        (["a/b", "a/b"], ("a/b", "a/b (2)")),
    ],
)
def test_the_first_keeps_its_name(given_names: list[str], made: tuple[str, ...]) -> None:
    assert criterion_names(given_names) == made


@given(ODD)
def test_no_two_are_alike_and_again_changes_nothing(names: list[str]) -> None:
    made = criterion_names(names)
    assert len(set(made)) == len(made) == len(names)
    assert all(name.strip() for name in made)
    assert criterion_names(made) == made
    firsts = {name for name in names if name.strip()}
    assert firsts <= set(made)
