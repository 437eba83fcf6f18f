"""notify.yaml: how to be told that an execution has ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.notify_file import NotifySettings, load_notify_settings

KITTY = {"TERM": "xterm-kitty"}


def test_without_a_file_the_terminal_is_told_of_what_took_long(tmp_path: Path) -> None:
    settings = load_notify_settings(tmp_path, {})
    assert (settings.terminal, settings.after, settings.webhook) == ("auto", 30.0, "")
    assert settings.sequence(KITTY) == "osc99"


def test_what_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "notify.yaml").write_text("terminal: bell\nafter: 5\nwebhook: https://${HOST}/x\n", "utf-8")
    settings = load_notify_settings(tmp_path, {"HOST": "hooks.example.com"})
    assert (settings.sequence(KITTY), settings.after) == ("bell", 5.0)
    assert settings.webhook == "https://hooks.example.com/x"
    (tmp_path / "notify.yaml").write_text("# nothing yet\n", "utf-8")
    assert load_notify_settings(tmp_path, {}) == NotifySettings()


def test_the_variable_wins(tmp_path: Path) -> None:
    settings = NotifySettings(terminal="bell")
    assert settings.sequence({**KITTY, "AGENTEVAL_NOTIFY": "Off"}) == "off"
    assert settings.sequence({**KITTY, "AGENTEVAL_NOTIFY": "auto"}) == "osc99"
    with pytest.raises(AgentevalError, match="AGENTEVAL_NOTIFY is 'loud'"):
        settings.sequence({"AGENTEVAL_NOTIFY": "loud"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("terminl: off", 'notify.yaml has no "terminl"'),
        ("after: soon", "after must be a number"),
        ("after: -1", "after must be at least 0"),
        ("[1]", "notify.yaml must be an object"),
        ("webhook: https://${NOWHERE}", "NOWHERE"),
        ("a: [", ""),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "notify.yaml").write_text(text, "utf-8")
    with pytest.raises(AgentevalError) as wrong:
        load_notify_settings(tmp_path, {})
    assert said in str(wrong.value)
