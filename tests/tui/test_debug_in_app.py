"""Debugging a run from the app: the terminal is handed over, and the app comes back."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from shop import app_on, settle


async def test_the_run_is_debugged_in_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(tmp_path, tmp_path / "history.db")
    started: list[list[str]] = []
    suspended = False

    @contextmanager
    def suspend() -> Any:
        nonlocal suspended
        suspended = True
        yield
        suspended = False

    def run(command: list[str], **options: Any) -> None:
        assert suspended
        started.append(command)

    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.debug_run("01RUN")  # a test has no terminal to give
        await settle(pilot)
        assert "run agenteval debug 01RUN" in app.notices.all()[0].text
        monkeypatch.setattr(app, "suspend", suspend)
        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr("sys.stdin.readline", lambda: "\n", raising=False)
        app.debug_run("01RUN")
        assert [command[-4:] for command in started] == [["debug", "01RUN", "--db", str(tmp_path / "history.db")]]
        assert not suspended
