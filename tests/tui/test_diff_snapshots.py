"""What the difference of two runs and the branches of a test look like, at 80x24 and 140x45: looked at pictures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from shop import settle
from test_snapshots import SIZES, look, open_failure, recorded, still
from textual.pilot import Pilot

__all__ = ["recorded", "still"]  # fixtures

pytestmark = pytest.mark.xdist_group("snapshots")

RunBefore = Callable[[Pilot[int]], Awaitable[None]]


def pressing(*keys: str) -> RunBefore:
    """Inspect on a failed run, then these keys."""

    async def before(pilot: Pilot[int]) -> None:
        await open_failure(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)

    return before


@SIZES
def test_difference(snap_compare: Any, recorded: tuple[Path, Path], size: tuple[int, int]) -> None:
    look(snap_compare, recorded, size, pressing("d"))


def test_difference_of_words_at_80x24(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    look(snap_compare, recorded, (80, 24), pressing("d", "n", "n", "n", "n", "n"))


def test_a_run_to_compare_with(snap_compare: Any, recorded: tuple[Path, Path]) -> None:
    look(snap_compare, recorded, (140, 45), pressing("D"))


@SIZES
def test_branches(snap_compare: Any, recorded: tuple[Path, Path], size: tuple[int, int]) -> None:
    look(snap_compare, recorded, size, pressing("b"))


@pytest.mark.parametrize("theme", ["contrast", "paper", "sixteen"])
def test_difference_in_each_theme(snap_compare: Any, recorded: tuple[Path, Path], theme: str) -> None:
    async def before(pilot: Pilot[int]) -> None:
        pilot.app.theme = theme
        await pressing("d")(pilot)

    look(snap_compare, recorded, (140, 45), before)
