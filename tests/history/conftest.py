"""Tests of this folder share what they store: `history_made`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def new_histories_are_copies() -> None:
    """Not here: files are made by the program. Only what `store` gives is a copy."""


@pytest.fixture
def store(path: Path, copy_history: Callable[[Path], None]) -> Iterator[object]:
    from agenteval_tui.history.store import Store

    copy_history(path)
    with Store.open(path) as opened:
        yield opened
