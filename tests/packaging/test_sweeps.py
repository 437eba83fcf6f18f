"""A run takes a share of a sweep: of each kind something, the same again when it is asked for, all of it in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import sweeps

CONFTEST = """
from tests.sweeps import deselect

def pytest_collection_modifyitems(config, items):
    deselect(config, items)
"""
SWEEP = """
import pytest

@pytest.mark.sweep("client")
@pytest.mark.parametrize("client", ["one", "two"])
@pytest.mark.parametrize("fault", range(40))
def test_each(client, fault): pass

def test_alone(): pass
"""


def cases(folder: Path, *arguments: str, times: str = "0.25") -> list[str]:
    """The tests that a run of these arguments takes of a file with a sweep."""
    (folder / "test_swept.py").write_text(SWEEP, "utf-8")
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-c", os.devnull]
    # Plug-ins cost each start two seconds.
    more = {"EXAMPLES_TIMES": times, "SWEEP_SEED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_a_run_takes_a_share_of_each_kind_and_ci_or_who_names_the_test_all(tmp_path: Path) -> None:
    taken = cases(tmp_path, "test_swept.py")
    assert Counter(name.partition("[")[0] for name in taken) == {"test_each": 20, "test_alone": 1}
    assert sum("-one]" in name for name in taken) == 10
    assert len(cases(tmp_path, "test_swept.py", times="1")) == 81
    assert len(cases(tmp_path, "test_swept.py::test_each")) == 80


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
