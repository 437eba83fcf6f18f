"""A terminal for programs that a test writes itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from terminal import Terminal


@pytest.fixture
def run_in_terminal() -> Callable[..., Terminal]:
    """`run_in_terminal(source, columns=..., rows=...)`: a terminal that runs a piece of Python."""

    def start(source: str, **options: Any) -> Terminal:
        return Terminal([sys.executable, "-c", source], **options)

    return start
