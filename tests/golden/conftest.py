"""Tests of this folder share one recorder: histories are read in once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recorder import Recorder


@pytest.fixture(scope="session")
def recorder(short_folder: str) -> Recorder:
    folder = Path(short_folder, "golden")  # always of the same length: lines are cut where they are too long
    folder.mkdir()
    return Recorder(folder, folder / "runtime")
