"""The benchmarks: each module can be measured, and the page takes the table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_FIGURES = {"__init__", "__main__", "machine", "table"}
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem not in NO_FIGURES)


def python(code_or_options: list[str], timeout: float = 100) -> str:
    done = subprocess.run(
        [sys.executable, *code_or_options], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_has_figures_and_stands_on_the_page() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    for name in MODULES:
        assert f"(`{name}.py`)" in page, "say on the page what its figures mean"
    code = "import benchmarks.__main__ as all_; print(all_.modules())"
    assert python(["-c", code]).strip() == str(MODULES)


@pytest.mark.parametrize("name", ["editing", "regrade"])
def test_figures_as_json(name: str) -> None:
    report = json.loads(python(["-m", "benchmarks", "--quick", "--only", name, "--json", "-"]))
    assert report["version"] == 1
    assert report["quick"] is True
    assert report["machine"]["cores"] >= 1
    assert report["figures"]
    for row in report["figures"]:
        assert set(row) == {"what", "measured", "due", "reached"}
        assert row["reached"] in (True, False) if row["due"] else row["reached"] is None


def test_the_page_takes_another_table_and_nothing_else_changes() -> None:
    code = """
from benchmarks.__main__ import BEGIN, END, PAGE, page_with
from benchmarks.machine import this_machine
page = PAGE.read_text("utf-8")
once = page_with(page, "| new |", this_machine(), False)
assert page_with(once, "| new |", this_machine(), False) == once
assert once.partition(BEGIN)[0] == page.partition(BEGIN)[0]
assert once.partition(END)[2] == page.partition(END)[2]
assert "| new |" in once
try:
    page_with("no marks", "", this_machine(), False)
except SystemExit:
    print("refused")
"""
    assert python(["-c", code]).strip() == "refused"
