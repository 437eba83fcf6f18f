"""Datasets that are folders: what Hugging Face's `save_to_disk` writes, and the shards of a .parquet dataset."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.suites.files import decode_utf8, read_bytes

SPLITS_FILE = "dataset_dict.json"
STATE_FILE = "state.json"
# As `datasets` and the Hub name them: train-00000-of-00002.parquet, also with a hash before the ending.
_SHARD = re.compile(r"(?P<split>\w+(?:\.\w+)*)-(?P<number>\d{5})-of-(?P<count>\d{5})(?:-\w+)?\.parquet")
_SPLIT = re.compile(r"\w+(?:\.\w+)*")


def shards_of(folder: Path, split: str | None = None) -> list[Path]:
    """The files of the dataset in `folder`, in their order: all of one split, the only one if `split` is None.

    Raises `AgentevalError`: the folder is not a dataset, a shard is missing, or it must be said which split is meant.
    """
    try:
        if (folder / SPLITS_FILE).is_file():
            listed = _listed(_json(folder / SPLITS_FILE), "splits")
            return _saved(
                folder
                / _chosen(folder, [name for name in listed if isinstance(name, str) and _SPLIT.fullmatch(name)], split)
            )
        if (folder / STATE_FILE).is_file():
            own = _json(folder / STATE_FILE).get("_split")
            if split is not None and split != own:
                description = f"the split {own}" if isinstance(own, str) else "one split, without a name"
                raise AgentevalError(f"this dataset is {description}", where=str(folder), fix="remove `split`")
            return _saved(folder)
        return _parquet(folder, split)
    except OSError as error:
        raise AgentevalError(f"this folder can't be read: {error.strerror or error}", where=str(folder)) from None


def _saved(folder: Path) -> list[Path]:
    """The shards that `save_to_disk` wrote, as its state lists them."""
    state = _json(folder / STATE_FILE)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise AgentevalError(
            "this dataset was saved by a `datasets` before 2.0, with a list of its rows apart",
            where=str(folder),
            fix="load it with a newer `datasets`, and call `flatten_indices().save_to_disk(...)`",
        )
    names = [entry.get("filename") if isinstance(entry, dict) else None for entry in _listed(state, "_data_files")]
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".arrow"):
            raise AgentevalError(
                f"this names a file that is not a shard beside it: {on_one_line(str(name), 60)}",
                where=str(folder / STATE_FILE),
                fix="save the dataset again",
            )
    if not names:
        raise AgentevalError("this dataset has no shards", where=str(folder / STATE_FILE), fix="save it again")
    files = [folder / str(name) for name in names]
    missing = [path for path in files if not path.is_file()]
    if missing:
        _raise_missing(folder, missing[0].name)
    return files


def _parquet(folder: Path, split: str | None) -> list[Path]:
    """The .parquet files in the folder, else those in its folder `data`, as the Hub has it."""
    for place in (folder, folder / "data"):
        files = sorted(path for path in place.glob("*.parquet") if path.is_file()) if place.is_dir() else []
        if files:
            break
    else:
        raise AgentevalError(
            "this is a folder, not a dataset",
            where=str(folder),
            fix="name a file in it; a folder needs the files that `save_to_disk` writes, or .parquet files",
        )
    groups: dict[str, list[Path]] = {}
    for file in files:
        shard = _SHARD.fullmatch(file.name)
        groups.setdefault(shard["split"] if shard else "", []).append(file)
    if list(groups) == [""]:
        if split is not None:
            raise AgentevalError(
                "the .parquet files in this folder name no split",
                where=str(folder),
                fix=f"take `split` out, or name them {split}-00000-of-{len(files):05}.parquet",
            )
        return groups[""]
    if "" in groups:
        names = on_one_line(groups[""][0].name, 60)
        raise AgentevalError(
            f"some of the .parquet files here are shards of a split, and {names} is not",
            where=str(folder),
            fix="move the others away, or name one file",
        )
    chosen = _chosen(folder, list(groups), split)
    numbers = {_place(file) for file in groups[chosen]}
    counts = {count for _, count in numbers}
    if len(counts) > 1 or len(numbers) != len(groups[chosen]):
        raise AgentevalError(
            f"the shards of the split {chosen} belong to several datasets",
            where=str(folder),
            fix="keep those of one, or name one file",
        )
    (count,) = counts
    for number in range(count):
        if (number, count) not in numbers:
            _raise_missing(folder, f"{chosen}-{number:05}-of-{count:05}.parquet")
    return groups[chosen]


def _place(file: Path) -> tuple[int, int]:
    shard = _SHARD.fullmatch(file.name)
    return (int(shard["number"]), int(shard["count"])) if shard else (0, 0)


def _raise_missing(folder: Path, name: str) -> None:
    raise AgentevalError(
        f"the shard {on_one_line(name, 80)} is missing", where=str(folder), fix="copy the whole folder again"
    )


def _chosen(folder: Path, splits: list[str], split: str | None) -> str:
    named = ", ".join(splits) or "none"
    if split is None and len(splits) == 1:
        return splits[0]
    if split is None:
        raise AgentevalError(
            f"this dataset has several splits: {named}" if splits else "this dataset has no split",
            where=str(folder),
            fix=f"add `split: {splits[0]}` to `dataset`" if splits else "save it again",
        )
    if split not in splits:
        raise AgentevalError(
            f"this dataset has no split {on_one_line(split, 60)}; it has {named}",
            where=str(folder),
            fix="check `split` of the dataset",
        )
    return split


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(decode_utf8(read_bytes(path), path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise AgentevalError("this is not a JSON object", where=str(path), fix="save the dataset again")
    return value


def _listed(value: dict[str, Any], key: str) -> list[Any]:
    entries = value.get(key)
    return entries if isinstance(entries, list) else []
