"""The program's own small files: a FIFO, a device, a folder or 100 MB in their place hold nothing up and stay."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from agenteval_tui.cli.commands.doctor import command as doctor
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import LARGEST, read_small
from agenteval_tui.runs.agent_factory import configured_agents
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.trust import Trust
from agenteval_tui.tui.draft_store import _read as read_draft
from agenteval_tui.tui.keymap import read_keymap
from agenteval_tui.tui.state import State
from agenteval_tui.tui.themes import load_theme


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(100 << 20)


MADE: dict[str, Callable[[Path], None]] = {
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a device that gives nothing": lambda path: path.symlink_to("/dev/null"),
    "100 MB": huge,
    "no UTF-8": lambda path: void(path.write_bytes(b"\xff\xfe\x00x")),
    "a link in a circle": lambda path: path.symlink_to(path),
}


def void(_: object) -> None:
    return


def keys(path: Path) -> str:
    found, problems = read_keymap(path)
    assert found == {}
    return " ".join(problems)


def state(path: Path) -> str:
    before = os.lstat(path)
    made = State(path, "x")
    made.keep_theme("paper")
    made.keep_place("suites", {"suites": {"filter": "x"}})
    assert os.lstat(path).st_ino == before.st_ino, "what is not ours is left alone"
    return str(made.problem)


def trust(path: Path) -> str:
    made = Trust.load(path)
    assert not made.listed()
    return made.problem


def theme(path: Path) -> str:
    with pytest.raises(AgentevalError) as wrong:
        load_theme(path)
    return str(wrong.value)


def agents(path: Path) -> str:
    path.rename(path.with_name("agents.yaml")) if not path.is_symlink() else moved_link(path)
    said = []
    for read in (load_agents, lambda folder: configured_agents([], folder)):
        with pytest.raises(AgentevalError) as wrong:
            read(path.parent)
        said.append(str(wrong.value))
    assert said[0] == said[1]
    return said[0]


def moved_link(path: Path) -> None:
    target = os.readlink(path)
    new = path.with_name("agents.yaml")
    new.symlink_to(new if target == str(path) else target)


@pytest.mark.parametrize("read", [keys, state, trust, theme, agents])
@pytest.mark.parametrize("kind", MADE)
def test_what_is_no_such_file_is_one_sentence(kind: str, read: Callable[[Path], str], tmp_path: Path) -> None:
    if (kind, read) == ("no UTF-8", state):
        return  # a state that is damaged counts as none
    folder = tmp_path / "own"
    folder.mkdir()
    path = folder / "one.yaml"
    MADE[kind](path)
    said = read(path)
    assert said
    assert "\n" not in said
    assert "Errno" not in said


@pytest.mark.parametrize("kind", MADE)
def test_a_draft_that_is_none_is_no_draft(kind: str, tmp_path: Path) -> None:
    MADE[kind](tmp_path / "draft.json")
    assert read_draft(tmp_path / "draft.json") is None


@pytest.mark.parametrize("kind", MADE)
def test_the_doctor_looks_at_all_of_them(kind: str) -> None:
    for folder, name in ((directories.config_dir(), "keys.yaml"), (directories.data_dir(), "trust.json")):
        folder.mkdir(parents=True, exist_ok=True)
        MADE[kind](folder / name)
    ended = CliRunner().invoke(doctor, ["--json"], standalone_mode=False)
    assert "Errno" not in ended.output


def test_what_fits_is_read_and_what_is_not_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "one"
    assert read_small(path, "it") is None
    assert read_small(path / "below", "it") is None
    path.write_bytes(b"\xef\xbb\xbf" + b"x" * (LARGEST - 3))
    assert read_small(path, "it") == "x" * (LARGEST - 3)
    path.write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(AgentevalError, match="larger than 1 MB"):
        read_small(path, "it")
    path.write_text(json.dumps({"theme": "paper"}), "utf-8")
    assert State(path, "x").theme(False) == "paper"
    assert State(path, "x").problem is None
