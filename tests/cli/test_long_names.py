"""A file name that is too long, or a link in a circle, is one sentence about the path, wherever a path is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.__main__ import main
from agenteval_tui.core import directories
from agenteval_tui.core.errors import path_error

LONG = "x" * 300
WAYS = [
    ["validate", "PATH"],
    ["run", "PATH"],
    ["history", "--db", "PATH"],
    ["--db", "PATH", "history"],
    ["init", "PATH"],
    ["report", "last", "--junit", "PATH"],
    ["report", "last", "--html", "PATH"],
    ["report", "last", "--md", "PATH/below"],
    ["db", "salvage", "PATH"],
    ["db", "export", "PATH"],
    ["db", "import", "PATH"],
    ["import", "PATH"],
    ["export", "last", "PATH"],
    ["grade", "--criteria", "PATH", "--transcript", "PATH"],
    ["trust", "PATH"],
    ["PATH"],
]


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
@pytest.mark.parametrize("kind", ["long", "deep", "circle"])
def test_it_is_one_sentence_and_no_error_in_the_program(
    words: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = {"long": LONG, "deep": "/".join(["y" * 200] * 25), "circle": "circle"}[kind]
    Path("circle").symlink_to("circle")
    assert main([word.replace("PATH", path) for word in words]) in (2, 3)
    said = capsys.readouterr().err
    assert "error in the program" not in said
    assert "Errno" not in said
    assert not (directories.data_dir() / "errors.log").exists()
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == [], "nothing is half-written"


def test_a_current_folder_that_is_gone_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["run"]) == 2
    assert "the current folder does not exist any more (change to another folder)" in capsys.readouterr().err
    assert not (directories.data_dir() / "errors.log").exists()


@pytest.mark.parametrize("error", [ValueError("x"), OSError("no errno"), OSError(5, "no name"), KeyError("x")])
def test_other_errors_are_none_of_a_path(error: Exception) -> None:
    assert path_error(error) is None
