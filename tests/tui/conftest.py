"""A terminal for programs that a test writes itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shop import copy_recorded, copy_samples, run_samples
from terminal import Terminal

from agenteval_tui.tui.terminal import output_filters


@pytest.fixture
def run_in_terminal() -> Callable[..., Terminal]:
    """`run_in_terminal(source, columns=..., rows=...)`: a terminal that runs a piece of Python."""

    def start(source: str, **options: Any) -> Terminal:
        return Terminal([sys.executable, "-c", source], **options)

    return start


@pytest.fixture(scope="session", autouse=True)
def notes_stay() -> Iterator[None]:
    """A note stays until it is taken away: on a busy machine its five seconds may be over before a test looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_filters, "SHORTEST_S", 3600.0)
        yield


@pytest.fixture(scope="session")
def samples_ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(folder with the sample suites, history in which they ran once)."""
    folder = tmp_path_factory.mktemp("samples")
    suites, db = copy_samples(folder), folder / "history.db"
    run_samples(suites, db)
    return suites, db


@pytest.fixture(scope="session")
def recorded_ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(folder with the recorded suite, history in which it ran once)."""
    folder = tmp_path_factory.mktemp("recorded")
    suites, db = copy_recorded(folder), folder / "history.db"
    run_samples(suites, db)
    return suites, db
