"""Finding suites, and noticing that they changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.watch import watch

TEST = "- {name: Test %d, prompt: p, criteria: [{name: a, prototype_class: TextResponse, config_uxon: '{}'}]}\n"


def write(path: Path, text: str = "tests:\n" + TEST % 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_suites_are_found_sorted_and_once(tmp_path: Path) -> None:
    for name in ("b.suite.yaml", "a/suite.yaml", "a/x.suite.yml", ".hidden/suite.yaml", "node_modules/suite.yaml",
                 "a/other.yaml", "a/.y.suite.yaml"):  # fmt: skip
        write(tmp_path / name)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "c.suite.yaml").symlink_to(tmp_path / "b.suite.yaml")
    (tmp_path / "gone.suite.yaml").symlink_to(tmp_path / "nowhere")
    found = [str(path.relative_to(tmp_path)) for path in discover([tmp_path])]
    assert found == ["b.suite.yaml", "a/suite.yaml", "a/x.suite.yml"]
    assert discover([tmp_path / "a" / "other.yaml", tmp_path / "a" / "other.yaml"]) == [tmp_path / "a" / "other.yaml"]
    with pytest.raises(AgentevalError, match="no such file or folder"):
        discover([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("path", "what"),
    [("/", "the root of the file system"), ("/proc/self", "a folder of the operating system"),
     ("/dev", "a folder of the operating system")],
)  # fmt: skip
def test_what_cannot_be_a_project_is_refused(path: str, what: str) -> None:
    with pytest.raises(AgentevalError) as caught:
        discover([path])
    assert caught.value.sentence == f"{path}: this is {what}, not a project (name the folder of your suites)"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="this system has no folder in memory")
def test_a_folder_in_memory_can_be_a_project() -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        suite = write(Path(folder) / "a.suite.yaml")
        assert discover([folder]) == [suite]


def test_a_folder_with_too_many_folders_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.suites.discover.MOST_FOLDERS", 3)
    for name in ("a", "b"):
        write(tmp_path / name / "one.suite.yaml")
    assert len(discover([tmp_path])) == 2
    (tmp_path / "c").mkdir()
    with pytest.raises(AgentevalError, match="there are more than 3 folders below this one"):
        discover([tmp_path])


def test_ten_thousand_tests_in_one_folder(tmp_path: Path) -> None:
    for number in range(100):
        lines = "".join(TEST % (100 * number + one) for one in range(100))
        write(tmp_path / f"{number}.suite.yaml", "tests:\n" + lines)
    loaded = [load_suite(path) for path in discover([tmp_path])]
    assert all(one.ok for one in loaded)
    assert len({test.id for one in loaded if one.suite for test in one.suite.tests}) == 10_000


async def test_changes_are_noticed_however_a_file_is_written(tmp_path: Path) -> None:
    suite = write(tmp_path / "folder" / "a.suite.yaml")
    single = write(tmp_path / "other" / "single.yaml")
    stop = asyncio.Event()
    seen: set[Path] = set()
    started = asyncio.Event()

    async def look() -> None:
        async for changed in watch([tmp_path / "folder", single], stop=stop, debounce_ms=50):
            seen.update(changed)
            started.set()

    async def until(path: Path, text: str, *, replace: bool = False) -> None:
        """Write until it was noticed: the watching begins at a moment that nobody tells."""
        while path not in seen:
            if replace:
                write(path.with_name("new.tmp"), text).replace(path)
            else:
                write(path, text)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(look())
    try:
        async with asyncio.timeout(250):
            await until(suite, "tests: []\n")
            await until(single, "tests: []\n", replace=True)
            await until(tmp_path / "folder" / "deep" / "suite.yaml", "tests: []\n")
            await until(tmp_path / "folder" / ".env", "A=1\n")
            # As another branch of a repository may do it: the folder is gone, and another one is at its place.
            rmtree(tmp_path / "folder")
            seen.clear()
            while not seen:
                await asyncio.sleep(0.05)
            seen.clear()
            await until(suite, "tests: []\n")
    finally:
        stop.set()
        await task
    assert not any(path.suffix == ".tmp" for path in seen)
