"""A run takes a share of a sweep and of the slow tests: of each kind something, the same when asked for, all in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest

from tests import sweeps


def report_of(node_id: str, seconds: float, when: Literal["setup", "call"]) -> pytest.TestReport:
    return pytest.TestReport(node_id, ("t.py", 1, "t"), {}, "passed", None, when, duration=seconds)


CONFTEST = """
from pathlib import Path
from tests import sweeps

sweeps.SLOW = Path(__file__).with_name("slow.txt")

def pytest_collection_modifyitems(config, items):
    sweeps.deselect(config, items)
"""
SWEEP = """
import pytest

@pytest.mark.sweep("client")
@pytest.mark.parametrize("client", ["one", "two"])
@pytest.mark.parametrize("fault", range(40))
def test_each(client, fault): pass

def test_alone(): pass
"""
SLOW = """
import pytest

@pytest.mark.parametrize("case", range(30))
def test_slow(case): pass

def test_slow_too(): pass

def test_quick(): pass
"""


def cases(folder: Path, *arguments: str, times: str = "0.25", slow_s: str = "inf") -> list[str]:
    """The tests that a run of these arguments takes."""
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-c", os.devnull]
    # Plug-ins cost each start two seconds.
    more = {"EXAMPLES_TIMES": times, "SLOW_S": slow_s, "SWEEP_SEED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    rootdir = ["--rootdir", str(folder), "--import-mode=importlib"]
    done = subprocess.run(
        [*command, *rootdir, *arguments],
        cwd=folder,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_run_takes_a_share_of_each_kind_and_ci_or_who_names_the_test_all(tmp_path: Path) -> None:
    (tmp_path / "slow.txt").touch()
    (tmp_path / "test_swept.py").write_text(SWEEP, "utf-8")
    taken = cases(tmp_path, "test_swept.py")
    assert Counter(map(sweeps.test_name, taken)) == {"test_swept.py::test_each": 20, "test_swept.py::test_alone": 1}
    assert sum("-one]" in name for name in taken) == 10
    assert len(cases(tmp_path, "test_swept.py", times="1")) == 81
    assert len(cases(tmp_path, "test_swept.py::test_each")) == 80


def test_a_run_takes_slow_tests_until_their_time_is_up_and_of_each_folder_one(tmp_path: Path) -> None:
    slow = "0.50 a/test_a.py::test_slow\n0.50 a/test_a.py::test_slow_too\n9.00 b/test_b.py::test_slow_too\n"
    (tmp_path / "slow.txt").write_text(slow, "utf-8")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(SLOW, "utf-8")
    assert len(cases(tmp_path)) == 64
    taken = Counter(map(sweeps.test_name, cases(tmp_path, slow_s="10.6")))
    assert taken["a/test_a.py::test_slow"] + taken["a/test_a.py::test_slow_too"] == 3
    assert taken["b/test_b.py::test_slow"] == 30  # is not in the list
    assert taken["b/test_b.py::test_slow_too"] == 1  # the only one of its folder
    assert taken["a/test_a.py::test_quick"] == 1
    assert len(cases(tmp_path, "a/test_a.py::test_slow", slow_s="1")) == 30


def test_the_slow_tests_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SLOW", tmp_path / "slow.txt")
    durations = sweeps.Durations()
    for node_id, seconds in [("t.py::a[1]@g", 0.1), ("t.py::a[2]@g", 0.6), ("t.py::b", 0.06), ("t.py::c[1]", 0.4)]:
        for when in ("setup", "call"):
            durations.pytest_runtest_logreport(report_of(node_id, seconds / 2, when))
    durations.pytest_sessionfinish()
    assert sweeps.SLOW.read_text("utf-8") == "0.35 t.py::a\n0.40 t.py::c\n"


def test_each_slow_test_exists() -> None:
    root = Path(__file__).parents[2]
    names = list(sweeps.slow_tests())
    assert names == sorted(names)
    gone = [name for name in names if not is_defined(root, *name.split("::"))]
    assert not gone, "`make slow` writes the list anew"


def is_defined(root: Path, file: str, *name: str) -> bool:
    return (root / file).is_file() and f"def {name[-1]}(" in (root / file).read_text("utf-8")


def test_a_share_is_the_same_for_the_same_seed_and_no_kind_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "TIMES", 0.25)
    monkeypatch.setattr(sweeps, "SEED", "1")
    taken = sweeps.share(range(40), lambda number: number < 2)
    assert len(taken) == 11  # one of the two, and ten of the others
    assert taken == sorted(taken)
    assert taken[0] < 2
    assert sweeps.share(range(40), lambda number: number < 2) == taken
    monkeypatch.setattr(sweeps, "SEED", "2")
    assert sweeps.share(range(40), lambda number: number < 2) != taken
    monkeypatch.setattr(sweeps, "TIMES", 1.0)
    assert sweeps.share(range(40)) == list(range(40))


def test_a_share_says_how_to_take_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    sweeps.share("abc")
    assert f"SWEEP_SEED={sweeps.SEED}" in capsys.readouterr().out
