"""Tests of this folder share one recorder: histories are read in once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recorder import Recorder


@pytest.fixture(scope="session")
def recorder(tmp_path_factory: pytest.TempPathFactory, short_folder: str) -> Recorder:
    return Recorder(tmp_path_factory.mktemp("golden"), Path(short_folder, "golden"))
