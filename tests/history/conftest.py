"""Tests of this folder share what they store: `history_made`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def store(path: Path) -> Iterator[object]:
    from agenteval_tui.history.store import Store

    with Store.open(path) as opened:
        yield opened
