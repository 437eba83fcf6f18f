"""What is found in the palette by what was typed, and in which order."""

from __future__ import annotations

import pytest

from agenteval_tui.tui.actions import ACTIONS
from agenteval_tui.tui.presenters.name_match import match

NAMES = sorted({one.description for one in ACTIONS})


def found(typed: str, names: list[str] = NAMES) -> list[str]:
    hits = [(hit.score, name) for name in names if (hit := match(typed, name)) is not None]
    return [name for _, name in sorted(hits, key=lambda one: -one[0])]


def test_words_come_before_beginnings_and_these_before_parts() -> None:
    names = ["Overrun", "Show the run", "Run it", "Running tests", "Rename unused", "Return a number", "Go on"]
    assert found("run", names) == ["Run it", "Show the run", "Running tests", "Overrun"]
    assert found("r", names) == ["Run it", "Running tests", "Rename unused", "Return a number", "Show the run"]
    assert found("RUN show", names) == ["Show the run"], "each word, in whichever order and case"
    names = ["Show the run", "A strict one", "Save the suite"]
    assert found("str", names) == ["A strict one", "Show the run"], "first letters of words"
    assert found("cmpr", ["Compare again", "Accept my preference"]) == ["Compare again"]
    assert found("", names) == found("  ", names) == []


@pytest.mark.parametrize(
    ("typed", "first", "never"),
    [
        ("theme", "Choose a theme", "Test"),
        ("baseline", "Clear", "blame"),
        ("export", "Export the run", "Explain"),
        ("blame", "Blame", "baseline"),
        ("fork", "Fork", "for "),
        ("undo", "Undo", "understand"),
        ("record", "Record a program", "reading"),
        ("prune", "Prune", "previous run"),
    ],
)
def test_what_is_typed_finds_its_command_first_and_nothing_that_only_has_its_letters(
    typed: str, first: str, never: str
) -> None:
    hits = found(typed)
    assert any(hit.startswith(first) for hit in hits[:3]), hits
    assert all(typed in hit.lower() for hit in hits), hits
    assert not any(never in hit and typed not in hit.lower() for hit in hits)


def test_the_letters_that_match_are_marked_whatever_their_case() -> None:
    hit = match("ORDER-status", "İ order-status of Straße")
    assert hit is not None
    assert hit.places == frozenset(range(2, 14))
    assert match("x" * 500, "x") is None
    assert match("(", "fold (all)") is not None
