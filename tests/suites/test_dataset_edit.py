"""A row is added in the form of the file, and nothing else changes."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.dataset_edit import add_row, append_row, preview_row, undo_add_row
from agenteval_tui.suites.datasets import read_rows
from agenteval_tui.suites.model import Dataset

ROW = {"input": 'say "hi",\nplease', "expected": "hi"}
FROM = {"run": "01ABC", "when": "2026-01-01T00:00:00Z"}


def read(path: Path) -> list[dict[str, Any]]:
    return [row.variables for row in read_rows(Dataset(file=path.name), path.parent)]


@pytest.mark.parametrize("name", ["d.csv", "d.jsonl", "d.yaml"])
def test_a_new_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert append_row(path, ROW, FROM) == 1
    assert append_row(path, {**ROW, "expected": "é"}, FROM) == 2
    meant = {**ROW, "provenance": FROM, "expected_value": "hi"}
    assert read(path) == [meant, {**meant, "expected": "é", "expected_value": "é"}]
    assert os.listdir(tmp_path) == [name]


def test_csv_keeps_what_stands_there(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(b'\xef\xbb\xbf# note\r\nquestion, answer ,n\r\n"a",b,"1"\r\n\r\n"two\r\nlines", c,2')
    path.chmod(0o640)
    append_row(path, {**ROW, "n": 3})
    assert path.read_bytes() == (
        b'\xef\xbb\xbf# note\r\nquestion, answer ,n\r\n"a",b,"1"\r\n\r\n"two\r\nlines", c,2\r\n'
        b'"say ""hi"",\nplease",hi,3\r\n'
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_columns_that_a_csv_lacks_are_added_and_empty_before(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text('# note\ninput,expected\n"a",b\n\n"two\nlines",c\n')
    append_row(path, {**ROW, "tags": ["x"]}, FROM)
    assert path.read_text().startswith('# note\ninput,expected,tags,provenance\n"a",b,,\n\n"two\nlines",c,,\n"say ""hi')
    first, second, third = read(path)
    assert (first["tags"], second["provenance"]) == ("", "")
    assert third == {**ROW, "tags": ["x"], "provenance": FROM, "expected_value": "hi"}


def test_the_courses_form_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    before = '{"inputs": {"question": "q"}, "outputs": {"answer": "a"}}'
    path.write_text(before)
    append_row(path, {**ROW, "country": "DE"}, FROM)
    first, second = path.read_text().splitlines()
    assert first == before
    assert json.loads(second) == {
        "inputs": {"question": ROW["input"], "country": "DE"}, "outputs": {"answer": "hi"},
        "metadata": {"provenance": FROM},
    }  # fmt: skip
    assert read(path)[1]["expected_value"] == "hi"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "# rows\n- input: a\n  expected: b # c\n",
            "# rows\n- input: a\n  expected: b # c\n- input: x\n  expected: y\n",
        ),
        ("  - {input: a}", "  - {input: a}\n  - input: x\n    expected: y\n"),
        ("rows:\n- question: a\n\n# end\n", "rows:\n- question: a\n\n# end\n- question: x\n  expected: y\n"),
        ("[{input: a}]\n", "[{input: a}, {input: x, expected: y}]\n"),
        ("rows: [\n  {input: a},\n]\n", None),
    ],
)
def test_yaml_keeps_what_stands_there(tmp_path: Path, before: str, after: str | None) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(before)
    # Texts of one word are written plainly only where a neighbour could be; both forms say the same.
    assert append_row(path, {"input": "x", "expected": "y"}) == 2
    if after is not None:
        assert path.read_text().replace('"', "") == after
    assert read(path)[1]["expected_value"] == "y"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("d.csv", "a,b\n1\n", "no row can be added: this row has 1 cell"),
        ("d.jsonl", "{\n", "no row can be added"),
        ("d.yaml", "rows:\n- {a: 1}\n...\n", "without changing another"),
        ("d.yaml", "a: 1\n", "no row can be added"),
        ("d.json", "[]", "rows can't be added to a .json dataset"),
    ],
)
def test_a_broken_file_stays_as_it_is(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(AgentevalError, match=message):
        append_row(path, ROW, FROM)
    assert path.read_text() == text
    assert os.listdir(tmp_path) == [name]


def test_half_characters_and_read_only_files(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"input": "a"}\n')
    with pytest.raises(AgentevalError, match="half a character"):
        append_row(path, {"input": "\ud800"})
    with pytest.raises(AgentevalError, match="can't be written"):
        append_row(tmp_path / "nowhere" / "d.csv", ROW)
    assert path.read_text() == '{"input": "a"}\n'


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("input\na\n")
    link = tmp_path / "d.csv"
    link.symlink_to("real.csv")
    append_row(link, {"input": "b"})
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text() == "input\na\nb\n"


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda n: append_row(path, {"input": f"r{n}"}), range(16)))
    assert sorted(numbers) == list(range(1, 17))
    assert sorted(row["input"] for row in read(path)) == sorted(f"r{n}" for n in range(16))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.csv", "id,input\nEU-1,a\nEU-1-2,b\n"),
        ("d.jsonl", '{"id": "EU-1", "input": "a"}\n{"id": "EU-1-2", "input": "b"}\n'),
        ("d.yaml", "- {id: EU-1, input: a}\n- {id: EU-1-2, input: b}\n"),
    ],
)
def test_a_row_made_of_a_run_of_a_row_gets_an_id_of_its_own(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    assert "EU-1-3" in preview_row(path, {"id": "EU-1", "input": "c"}).text
    added = add_row(path, {"id": "EU-1", "input": "c"})
    assert [row["id"] for row in read(path)] == ["EU-1", "EU-1-2", "EU-1-3"], "no id is there twice"
    undo_add_row(added)
    assert path.read_text("utf-8") == text
