"""Datasets that are folders: as Hugging Face's `datasets` wrote them (huggingface/make.py), and damaged ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.dataset_check import check_dataset
from agenteval_tui.suites.dataset_edit import append_row
from agenteval_tui.suites.datasets import dataset_files, read_rows
from agenteval_tui.suites.model import Dataset

SAVED = Path(__file__).parent / "huggingface"
TRAIN = [f"q{number}" for number in range(7)]


def questions(file: str, split: str | None = None, limit: int | None = None, base: Path = SAVED) -> list[str]:
    rows = list(read_rows(Dataset(file=file, split=split, limit=limit), base))
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    return [row.variables["question"] for row in rows]


@pytest.mark.parametrize(
    ("file", "split", "expected"),
    [
        ("dataset", None, TRAIN),
        ("one_split", None, ["q4", "q1"]),
        ("one_split", "train", ["q4", "q1"]),
        ("splits", "train", TRAIN),
        ("splits", "test", ["t0"]),
        ("splits/test", None, ["t0"]),
        ("hub", "train", TRAIN),
        ("hub/data", "test", ["t0"]),
    ],
)
def test_all_shards_are_read_in_order(file: str, split: str | None, expected: list[str]) -> None:
    assert questions(file, split) == expected


def test_a_limit_goes_through_shards_and_values_are_as_they_were_saved() -> None:
    assert questions("dataset", limit=4) == TRAIN[:4]
    *_, last = read_rows(Dataset(file="dataset"), SAVED)
    assert last.variables == {"question": "q6", "answer": "a6", "kind": 0, "expected_value": "a6"}


@pytest.mark.parametrize(
    ("file", "split", "said"),
    [
        ("splits", None, "this dataset has several splits: train, test"),
        ("hub", None, "this dataset has several splits: test, train"),
        ("splits", "dev", "this dataset has no split dev; it has train, test"),
        ("splits", "../dataset", "this dataset has no split ../dataset"),
        ("hub", "dev", "this dataset has no split dev"),
        ("dataset", "train", "this dataset is one split, without a name"),
        (".", None, "this is a folder, not a dataset"),
        ("hub/data/test-00000-of-00001.parquet", "test", "only a dataset that is a folder has splits"),
    ],
)
def test_what_is_not_said_or_not_there_is_refused(file: str, split: str | None, said: str) -> None:
    dataset = Dataset(file=file, split=split)
    with pytest.raises(AgentevalError, match=said) as error:
        read_rows(dataset, SAVED)  # at once, not with the first row
    assert error.value.fix
    assert not check_dataset(dataset, SAVED).read


def state(folder: Path, **changes: object) -> None:
    file = folder / "dataset" / "state.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def rename(folder: Path, old: str, new: str) -> None:
    (folder / old).rename(folder / new)


SHARD = "hub/data/train-00001-of-00002.parquet"
DAMAGES: dict[str, tuple[str, str | None, Callable[[Path], object], str]] = {
    "shard missing": (
        "dataset",
        None,
        lambda at: (at / "dataset" / "data-00001-of-00003.arrow").unlink(),
        "the shard data-00001-of-00003.arrow is missing",
    ),
    "a file elsewhere": (
        "dataset",
        None,
        lambda at: state(at, _data_files=[{"filename": "../splits/test/data-00000-of-00001.arrow"}]),
        "a file that is not a shard beside it",
    ),
    "no name": ("dataset", None, lambda at: state(at, _data_files=[3]), "a file that is not a shard beside it: None"),
    "no shards": ("dataset", None, lambda at: state(at, _data_files=None), "this dataset has no shards"),
    "rows apart": ("dataset", None, lambda at: state(at, _indices_data_files=[{"filename": "i.arrow"}]), "before 2.0"),
    "not JSON": ("dataset", None, lambda at: (at / "dataset" / "state.json").write_text("[]"), "not a JSON object"),
    "splits of nothing": (
        "splits",
        "train",
        lambda at: (at / "splits" / "dataset_dict.json").write_text('{"splits": [4, "../dataset"]}'),
        "no split train; it has none",
    ),
    "parquet missing": ("hub", "train", lambda at: (at / SHARD).unlink(), "shard train-00001-of-00002.parquet is miss"),
    "of two datasets": (
        "hub",
        "train",
        lambda at: rename(at, SHARD, "hub/data/train-00001-of-00003.parquet"),
        "belong to several datasets",
    ),
    "a stranger": ("hub", "train", lambda at: rename(at, SHARD, "hub/data/more.parquet"), "and more.parquet is not"),
    "not parquet": ("hub", "train", lambda at: (at / SHARD).write_text("no"), r"this is not a \.parquet file"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_refused_and_never_half_read(name: str, tmp_path: Path) -> None:
    file, split, damage, said = DAMAGES[name]
    shutil.copytree(SAVED, tmp_path, dirs_exist_ok=True)
    damage(tmp_path)
    with pytest.raises(AgentevalError, match=said) as error:
        questions(file, split, base=tmp_path)
    assert error.value.fix


def test_parquet_files_without_a_split_are_one_dataset(tmp_path: Path) -> None:
    for number in range(2):
        source = SAVED / "hub" / "data" / f"train-{number:05}-of-00002.parquet"
        shutil.copy(source, tmp_path / f"part-{number}.parquet")
    assert questions(".", base=tmp_path) == TRAIN
    with pytest.raises(AgentevalError, match="name no split"):
        questions(".", "train", base=tmp_path)


def test_shards_that_lead_outside_need_trust(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(SAVED / "hub", suite / "rows")
    shard = suite / "rows" / "data" / "train-00001-of-00002.parquet"
    shard.rename(tmp_path / "blob")
    shard.symlink_to(tmp_path / "blob")
    dataset = Dataset(file="rows", split="train")
    assert shard in dataset_files(dataset, suite)  # what the trust check looks at
    with pytest.raises(AgentevalError, match="outside the suite's folder"):
        read_rows(dataset, suite)
    assert len(list(read_rows(dataset, suite, trusted=True))) == 7


def test_no_row_is_added_to_a_folder() -> None:
    with pytest.raises(AgentevalError, match="a dataset that is a folder"):
        append_row(SAVED / "dataset", {"question": "a"})
