"""Tables as Excel writes them in Germany, France and elsewhere: other delimiters, other encodings."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.dataset_check import check_dataset
from agenteval_tui.suites.dataset_edit import append_row, preview_row
from agenteval_tui.suites.datasets import EXPECTED, read_rows
from agenteval_tui.suites.model import Dataset

TABLE = [
    ("Frage", "Größe, netto", "answer"),
    ("Wie groß?", "1,5", "„Mittel“; oder \n größer"),
    ("Ça va?", "2,75", "ja"),
]


def written(delimiter: str, eol: str = "\r\n") -> str:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if delimiter in text or "\n" in text or '"' in text else text

    return "".join(delimiter.join(map(cell, row)) + eol for row in TABLE)


def variables(path: Path, encoding: str | None = None) -> list[tuple[str, ...]]:
    rows = list(read_rows(Dataset(file=path.name, encoding=encoding), path.parent))
    names = tuple(name for name in rows[0].variables if name != EXPECTED)
    return [names, *(tuple(row.variables[name] for name in names) for row in rows)]


def infos(path: Path, encoding: str | None = None) -> list[str]:
    check = check_dataset(Dataset(file=path.name, encoding=encoding), path.parent)
    assert check.ok
    return [one.message for one in check.problems if one.severity == "info"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("before", ["", "# from Excel\r\n", "sep={}\r\n", "\r\n"])
def test_the_delimiter_and_the_encoding_are_told_by_the_head(
    tmp_path: Path, encoding: str, delimiter: str, before: str
) -> None:
    path = tmp_path / "fragen.csv"
    path.write_bytes((before.format(delimiter) + written(delimiter)).encode(encoding))
    if encoding.endswith("e") and before == "\r\n":
        pytest.skip("nothing shows this one: it neither has a mark nor begins with text")
    assert variables(path) == TABLE


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a semicolon"), ("\t", "a tab"), ("|", "a bar")])
def test_what_was_assumed_is_said(tmp_path: Path, delimiter: str, name: str) -> None:
    path = tmp_path / "fragen.csv"
    path.write_bytes(written(delimiter).encode())
    assert infos(path) == [f"this dataset is read with {name} between columns"]
    path.write_bytes(written(delimiter).encode("utf-16-le"))
    assert infos(path) == [f"this dataset is read as UTF-16 and with {name} between columns"]
    path.write_bytes(f"sep={delimiter}\r\n{written(delimiter)}".encode("utf-16"))
    assert infos(path) == []
    path.write_bytes(written(",").encode("utf-8-sig"))
    assert infos(path) == []


def test_a_tsv_has_tabs_and_nothing_is_assumed(tmp_path: Path) -> None:
    path = tmp_path / "fragen.tsv"
    path.write_bytes(written("\t").encode())
    assert variables(path) == TABLE
    assert infos(path) == []
    path.write_bytes(b"question\nWhat, exactly?\n")
    assert variables(path) == [("question",), ("What, exactly?",)]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("question\nYes; or no?\nA | B?\n", ("question",)),
        ("question,answer\na;b,c;d\n", ("question", "answer")),
        ('"question; all of it",answer\n"a;b;c",d\n', ("question; all of it", "answer")),
        ("input;price, net\na;1,5\n", ("input", "price, net")),
        ("input;expected\n", ("input", "expected")),
        ("input,a;b\nx,1\ny,2\n", ("input", "a;b")),
    ],
)
def test_the_delimiter_is_the_one_that_fits_the_rows(tmp_path: Path, text: str, columns: tuple[str, ...]) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text + ("x;y\n" if text == "input;expected\n" else ""), encoding="utf-8")
    assert variables(path)[0] == columns


def test_windows_1252_is_read_when_the_dataset_names_it(tmp_path: Path) -> None:
    path = tmp_path / "fragen.csv"
    path.write_bytes(written(";").encode("cp1252"))
    assert variables(path, "windows-1252") == TABLE
    (problem,) = (
        one
        for one in check_dataset(Dataset(file=path.name), tmp_path).problems
        if one.severity == "error" and one.line == 1
    )
    assert problem.message == "the byte 0xf6 is not UTF-8"
    assert problem.fix == "save the file as UTF-8, or say what it is: `encoding: windows-1252` in the dataset"


def test_a_byte_order_mark_wins_over_the_name(tmp_path: Path) -> None:
    path = tmp_path / "fragen.csv"
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_bytes(written(";").encode(encoding))
        assert variables(path, "windows-1252") == TABLE


def test_lines_of_json_are_read_in_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    for encoding, named in (("utf-16", None), ("utf-16-le", None), ("cp1252", "cp1252"), ("latin-1", "ISO-8859-1")):
        path.write_bytes('{"input": "größer"}\r\n'.encode(encoding))
        assert variables(path, named)[1] == ("größer",)


@pytest.mark.parametrize("name", ["windows1252x", "hex", "undefined", "a\0b"])
def test_an_encoding_that_does_not_exist(tmp_path: Path, name: str) -> None:
    (tmp_path / "d.csv").write_text("input\nx\n", encoding="utf-8")
    with pytest.raises(AgentevalError, match="there is no encoding"):
        list(read_rows(Dataset(file="d.csv", encoding=name), tmp_path))


def test_only_text_has_an_encoding(tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text("- input: x\n", encoding="utf-8")
    with pytest.raises(AgentevalError, match=r"only a \.csv, \.tsv or \.jsonl dataset has an encoding"):
        list(read_rows(Dataset(file="d.yaml", encoding="utf-8"), tmp_path))


@pytest.mark.parametrize("data", [b"\xff\xfea\x00,\x00b\x00\n", "a;b\n1;2\n".encode("utf-16") + b"\x00"])
def test_a_file_that_ends_within_a_character(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "d.csv").write_bytes(data)
    (problem,) = (one for one in check_dataset(Dataset(file="d.csv"), tmp_path).problems if one.severity == "error")
    assert "not UTF-16" in problem.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_row_is_added_in_the_form_of_the_file(tmp_path: Path, encoding: str, delimiter: str) -> None:
    path = tmp_path / "fragen.csv"
    named = encoding if encoding == "cp1252" else None
    before = f"sep={delimiter}\r\n{written(delimiter)}".encode(encoding)
    path.write_bytes(before)
    row = {"Frage": "Wie, wo; wann?", "Größe, netto": "3", "answer": "grün"}
    preview = preview_row(path, row, None, named)
    assert (
        preview.text
        == {",": '"Wie, wo; wann?",3,grün', ";": '"Wie, wo; wann?";3;grün', "\t": "Wie, wo; wann?\t3\tgrün"}[delimiter]
    )
    assert append_row(path, row, None, named) == 3
    assert path.read_bytes().startswith(before)
    assert variables(path, named)[-1] == tuple(row.values())
    append_row(path, {**row, "more": "x"}, None, named)
    rows = list(read_rows(Dataset(file=path.name, encoding=named), tmp_path))
    assert [one.variables["more"] for one in rows] == ["", "", "", "x"]


def test_a_character_that_the_encoding_lacks_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes("input;answer\ngrün;ja\n".encode("cp1252"))
    with pytest.raises(AgentevalError, match="this row holds '→', which Windows-1252 does not have"):
        append_row(path, {"input": "a → b", "answer": "x"}, None, "windows-1252")
