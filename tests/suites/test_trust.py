"""Which folders may run programs: by path and by what stands in them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites import trust as module
from agenteval_tui.suites.trust import Trust


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "suites"
    (made / "sub").mkdir(parents=True)
    (made / "a.suite.yaml").write_text("name: a\n")
    (made / "sub" / "agent.py").write_text("print(1)\n")
    (made / "rows.csv").write_text("a\n1\n")
    return made


def test_trusted_until_something_that_runs_changes(folder: Path) -> None:
    assert Trust.load().why_not(folder) == "this folder is not trusted yet"
    Trust.load().trust(folder)
    assert Trust.load().is_trusted(folder)
    (folder / "sub" / "agent.py").write_text("print(2)\n")
    assert Trust.load().why_not(folder) == "this folder has changed since it was trusted: changed: sub/agent.py"
    (folder / "sub" / "agent.py").unlink()
    (folder / "new.sh").write_text("true\n")
    assert Trust.load().why_not(folder).endswith("trusted: new: new.sh; gone: sub/agent.py")
    Trust.load().trust(folder)
    assert Trust.load().is_trusted(folder)


@pytest.mark.parametrize(
    "name",
    [
        "tools.yaml", "x.suite.yaml", "run.sh", "Makefile", "package.json", "conf.json", "agent.txt", "app.zip",
        "requirements.txt", "sub/deep.mjs", "lib.so", ".env", "program", "x.unheard", "rows.jsonl", "notes.md",
        ".git/hooks/pre-commit", ".git/config", "__pycache__/x.pyc", "agent.pyc", ".venv/bin/python", ".hidden/x.py",
        "node_modules/a/index.js", ".vscode/tasks.json", "data.pickle", "model.onnx", "x.tar.gz", "site-packages/a.pth",
    ],
)  # fmt: skip
def test_every_file_counts(folder: Path, name: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Trust.load().trust(folder)
    path.write_text("x")
    assert f"new: {name}" in Trust.load().why_not(folder)
    Trust.load().trust(folder)
    before = path.stat()
    path.write_text("y")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert f"changed: {name}" in Trust.load().why_not(folder)
    path.unlink()
    assert f"gone: {name}" in Trust.load().why_not(folder)


def test_what_git_writes_with_each_command_does_not_count(folder: Path) -> None:
    (folder / ".git" / "objects" / "ab").mkdir(parents=True)
    Trust.load().trust(folder)
    (folder / ".git" / "index").write_text("x")
    (folder / ".git" / "objects" / "ab" / "cd").write_text("x")
    assert Trust.load().is_trusted(folder)
    (folder / ".git" / "index").unlink()
    (folder / ".git" / "index").symlink_to("/etc/hostname")
    assert "new: .git/index" in Trust.load().why_not(folder)


def test_what_may_be_executed_by_its_mode_counts(folder: Path) -> None:
    Trust.load().trust(folder)
    (folder / "rows.csv").chmod(0o755)
    assert "changed: rows.csv" in Trust.load().why_not(folder)


def test_files_that_commands_name_elsewhere_count(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "agent.sh"
    outside.write_text("true")
    assert Trust.load().trust(folder, [outside]).files[str(outside)]
    assert Trust.load().is_trusted(folder)
    outside.write_text("false")
    assert f"changed: {outside}" in Trust.load().why_not(folder)
    outside.write_text("true")
    other = tmp_path / "other.sh"
    other.write_text("true")
    assert f"new: {other}" in Trust.load().why_not(folder, [outside, other])
    outside.unlink()
    assert f"changed: {outside}" in Trust.load().why_not(folder)


def test_what_is_no_file_is_never_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "null").symlink_to("/dev/zero")
    Trust.load().trust(folder)
    assert Trust.load().is_trusted(folder)
    (folder / "pipe").unlink()
    (folder / "pipe").write_text("now a file")
    assert "changed: pipe" in Trust.load().why_not(folder)


def test_links(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("print(1)\n")
    (tmp_path / "elsewhere").mkdir()
    (folder / "out").symlink_to(tmp_path / "elsewhere")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "nowhere.py").symlink_to("absent.py")
    (folder / "round").symlink_to(folder)
    with pytest.raises(AgentevalError, match=r"loop\.py can't be read"):
        Trust.load().trust(folder)
    (folder / "loop.py").unlink()
    Trust.load().trust(folder)
    assert Trust.load().is_trusted(folder)
    (tmp_path / "elsewhere" / "x.py").write_text("print(1)")
    assert "new: out/x.py" in Trust.load().why_not(folder)
    (tmp_path / "elsewhere" / "x.py").unlink()
    (tmp_path / "outside.py").write_text("print(2)\n")
    assert "changed: link.py" in Trust.load().why_not(folder)
    (tmp_path / "outside.py").write_text("print(1)\n")
    assert Trust.load().is_trusted(folder)
    (folder / "link.py").unlink()
    (folder / "link.py").symlink_to("sub/agent.py")
    assert "changed: link.py" in Trust.load().why_not(folder)


def test_a_folder_is_known_by_its_real_path(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder)
    Trust.load().trust(tmp_path / "alias")
    assert Trust.load().is_trusted(folder)
    assert [one.folder for one in Trust.load().listed()] == [str(folder)]
    assert not Trust.load().is_trusted(folder / "sub"), "a folder in it was not asked for"


def test_distrust(folder: Path) -> None:
    trust = Trust.load()
    trust.trust(folder)
    assert Trust.load().distrust(folder)
    assert not Trust.load().distrust(folder)
    assert Trust.load().listed() == []
    assert trust.distrust(folder) is False  # what this one knew is old


def test_the_file_is_private_and_written_in_one_step(folder: Path) -> None:
    Trust.load().trust(folder)
    file = directories.data_dir() / "trust.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(os.listdir(file.parent)) == ["trust.json", "trust.lock"]


@pytest.mark.parametrize("text", ["{", "[]", '{"folders": [5]}', '{"folders": [{"folder": 5}]}', "\x00", "[" * 100_000])
def test_a_damaged_list_trusts_nobody_and_says_so(folder: Path, text: str) -> None:
    Trust.load().trust(folder)
    (directories.data_dir() / "trust.json").write_text(text)
    trust = Trust.load()
    assert not trust.is_trusted(folder)
    assert "can't be read" in trust.problem
    assert "none is trusted" in trust.why_not(folder)
    trust.trust(folder)
    assert Trust.load().is_trusted(folder)
    assert trust.problem == Trust.load().problem == ""


def test_too_much_to_remember(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Trust.load().trust(folder)
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    with pytest.raises(AgentevalError, match="too big to trust permanently") as caught:
        Trust.load().trust(folder)
    assert "--trust" in caught.value.mend
    assert "too big to trust permanently" in Trust.load().why_not(folder)
    monkeypatch.setattr(module, "MAX_BYTES", 10_000)
    assert Trust.load().is_trusted(folder)
    monkeypatch.setattr(module, "MAX_FILES", 2)
    with pytest.raises(AgentevalError, match="more than 2 files"):
        Trust.load().trust(folder)


def test_what_the_app_saves_stays_trusted(folder: Path) -> None:
    suite = folder / "a.suite.yaml"
    before = hashlib.sha256(suite.read_bytes()).hexdigest()
    Trust.load().trust(folder)
    suite.write_text("name: b\n")
    Trust.load().saved(suite, before)
    assert Trust.load().is_trusted(folder)
    # A pull changed it, then the app saved it: that launders nothing.
    suite.write_text("name: pulled\n")
    pulled = hashlib.sha256(suite.read_bytes()).hexdigest()
    suite.write_text("name: pulled and saved\n")
    Trust.load().saved(suite, pulled)
    assert not Trust.load().is_trusted(folder)


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / f"f{number}" for number in range(12)]
    for one in folders:
        one.mkdir()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: Trust.load().trust(one), folders))
    assert [one.folder for one in Trust.load().listed()] == sorted(map(str, folders))
    assert json.loads((directories.data_dir() / "trust.json").read_text())["version"] == 2


def test_a_place_that_can_not_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENTEVAL_DATA_DIR", str(tmp_path / "file" / "data"))
    with pytest.raises(AgentevalError, match="can't be saved"):
        Trust.load().trust(folder)
