"""Listening from the app: what is asked, what is said beforehand, and what it starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from shop import app_on, settle, text_of, until
from textual.widgets import Input

from agenteval_tui.extensions.otel.sheet import ListeningRequest, ListenScreen
from agenteval_tui.runs.client import live_executions
from agenteval_tui.tui.screens.run.screen import RunScreen
from agenteval_tui.tui.widgets.form import Form


async def test_what_is_listened_for_is_asked_and_said(tmp_path: Path) -> None:
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        asked: list[ListeningRequest | None] = []
        sheet = ListenScreen()
        app.push_screen(sheet, asked.append)
        await settle(pilot)
        assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318" in text_of(app)
        sheet.query_one(Form).fill({"port": "70000", "criteria": "none.yaml"})
        await pilot.press("enter")
        await settle(pilot)
        assert "a port is a number from 1 to 65535" in text_of(app)
        assert "there is no such file" in text_of(app)
        sheet.query_one("#field-port", Input).value = "4319"
        sheet.query_one("#field-criteria", Input).value = ""
        await settle(pilot)
        assert "http://127.0.0.1:4319" in text_of(app)
        await pilot.press("enter")
        await settle(pilot)
    assert asked == [ListeningRequest(4319)]


async def test_the_key_listens_and_shows_what_comes(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = app_on(tmp_path, tmp_path / "h.db")
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("alt+l")
        await until(pilot, lambda: isinstance(app.screen, ListenScreen))
        app.screen.query_one("#field-port", Input).value = str(port)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: "Nothing has arrived yet." in text_of(app))
        (live,) = live_executions()
        assert str(port) in live.title
        await pilot.press("S", "S")
        await until(pilot, lambda: not live_executions())
