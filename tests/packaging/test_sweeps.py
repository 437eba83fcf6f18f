"""A run takes a share of a sweep: of each kind something, the same again when it is asked for, all of it in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = """
from tests.sweeps import deselect

def pytest_collection_modifyitems(config, items):
    deselect(config, items)
"""
SWEEPS = """
import pytest
from tests.sweeps import share

@pytest.mark.sweep("client")
@pytest.mark.parametrize("client", ["one", "two"])
@pytest.mark.parametrize("fault", range(40))
def test_each(client, fault):
    print(f"\\neach {client} {fault}")

def test_within():
    print(f"\\nwithin {share(range(40), lambda number: number < 4)}")

def test_alone():
    print("\\nalone")
"""


def lines(folder: Path, *arguments: str, times: str = "0.25", seed: str = "1") -> list[str]:
    """What the tests print that such a run takes."""
    file = folder / "test_swept.py"
    file.write_text(SWEEPS, "utf-8")
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run(
        [*command, *(arguments or (str(file),))],
        cwd=folder,
        env={**os.environ, "EXAMPLES_TIMES": times, "SWEEP_SEED": seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(("each", "within", "alone"))]


def test_a_share_of_each_kind_is_taken_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    taken = lines(tmp_path)
    assert {client: sum(line.startswith(f"each {client}") for line in taken) for client in ("one", "two")} == {
        "one": 10,
        "two": 10,
    }
    (within,) = [line for line in taken if line.startswith("within")]
    numbers = [int(number) for number in within.removeprefix("within [").removesuffix("]").split(", ")]
    assert (len(numbers), numbers[0] < 4, numbers == sorted(numbers)) == (10, True, True)
    assert "alone" in taken
    assert lines(tmp_path) == taken
    assert lines(tmp_path, seed="2") != taken


def test_ci_takes_all_and_so_does_who_names_a_test(tmp_path: Path) -> None:
    assert len(lines(tmp_path, times="1")) == 82
    assert len(lines(tmp_path, f"{tmp_path}/test_swept.py::test_each")) == 80
