"""Commands that are printed work when they are copied, also where another history was named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core import directories


def commands_in(text: str) -> list[str]:
    return re.findall(r"agenteval (?:show|why|causes|stats) [^()\n]*?(?=\)|\n|  |$)", text)


def test_printed_commands_name_the_history(cli: Any, suite: Path, tmp_path: Path) -> None:
    db = tmp_path / "my history.db"
    for words in (["run", suite], ["show"], ["causes"]):
        printed = commands_in(cli(*words, "--db", db).out)
        assert printed, words
        for command in printed:
            done = cli(*shlex.split(command)[1:])
            assert done.code in (0, 1), (command, done.err)
            assert done.out, command


def test_the_own_history_is_not_named(cli: Any, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "own.db"))
    assert directories.history_file() == tmp_path / "own.db"
    assert "--db" not in cli("run", suite).out
    assert "--db" not in cli("run", suite, "--db", tmp_path / "own.db").out
