"""All suites at a glance, also those that can't be read and those with a broken dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval_tui.analysis.lint import check_loaded, check_suites
from agenteval_tui.analysis.overview import overview
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.suites import files

SUITE = """\
name: Good
agent: shop
agents: {shop: {kind: demo}}
tests:
  - id: one
    dataset: {file: rows.csv}
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: x}]}}
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.db") as opened:
        yield opened


def test_a_file_that_is_not_utf8_is_there_with_what_validate_says(tmp_path: Path, store: Store) -> None:
    (tmp_path / "a.suite.yaml").write_bytes(b"name: x\n\xff\n")
    (tmp_path / "b.suite.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "rows.csv").write_text("input\nhi\n", "utf-8")
    seen = overview([tmp_path], store)
    assert [one.loaded.path.name for one in seen.suites] == ["a.suite.yaml", "b.suite.yaml"]
    broken = seen.suites[0]
    assert (broken.loaded.suite, broken.loaded.line_of()) == (None, 1)
    checked = seen.with_problems(seen, check_loaded([one.loaded for one in seen.suites]))
    assert [problem for one in checked.suites for problem in one.problems] == check_suites([tmp_path])[1]
    assert [(one.code, one.line, one.column) for one in broken.problems] == [("unreadable", 2, 1)]
    # It says what is so now: it may be unreadable for another reason than before.
    (tmp_path / "a.suite.yaml").write_bytes(b"\xff\xfename")
    later = overview([tmp_path], store).with_known_problems(checked)
    assert "UTF-16" in later.suites[0].problems[0].message


def test_a_file_without_permission_is_there(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.suite.yaml"
    path.write_text(SUITE, "utf-8")

    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(files.Path, "read_bytes", refused)  # to root everything is readable
    (seen,) = overview([tmp_path], store).suites
    assert [one.message for one in seen.problems] == ["no permission to read this file"]
    with pytest.raises(AgentevalError):
        overview([tmp_path / "no such folder"], store)


def test_what_is_wrong_in_a_dataset_is_a_problem_of_its_suite(tmp_path: Path, store: Store) -> None:
    (tmp_path / "b.suite.yaml").write_text(SUITE, "utf-8")
    (tmp_path / "rows.csv").write_text("input,more\nhi\n", "utf-8")
    seen = overview([tmp_path], store)
    seen = seen.with_problems(seen, check_loaded([one.loaded for one in seen.suites]))
    assert [(Path(one.file).name, one.line, one.code) for one in seen.suites[0].problems] == [
        ("rows.csv", 2, "wrong-length")
    ]
