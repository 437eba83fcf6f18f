"""Tests of this folder share what they store: `history_made`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agenteval_tui.history import connections, open_database

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture(autouse=True)
def histories_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the program, as tests of this folder are about that. Only what `store` gives is a copy."""
    monkeypatch.setattr(open_database, "prepare_file", connections.prepare_file)


@pytest.fixture
def store(path: Path, copy_history: Callable[[Path], None]) -> Iterator[object]:
    from agenteval_tui.history.store import Store

    copy_history(path)
    with Store.open(path) as opened:
        yield opened
