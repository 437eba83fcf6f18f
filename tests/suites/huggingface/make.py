"""Writes the datasets of this folder by Hugging Face's `datasets` (5.2 wrote them), in an environment that has it:

python tests/suites/huggingface/make.py
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from datasets import ClassLabel, Dataset, DatasetDict, Features, Value, disable_progress_bars

HERE = Path(__file__).parent


def main() -> None:
    """One folder each for a dataset, several splits, one split, and the files that the Hub has."""
    disable_progress_bars()
    features = Features({"question": Value("string"), "answer": Value("string"), "kind": ClassLabel(names=["a", "b"])})
    rows = {"question": [f"q{n}" for n in range(7)], "answer": [f"a{n}" for n in range(7)], "kind": [0, 1] * 3 + [0]}
    train = Dataset.from_dict(rows, features=features)
    test = Dataset.from_dict({"question": ["t0"], "answer": ["ta"]})
    for name in ("dataset", "splits", "one_split", "hub"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    train.save_to_disk(HERE / "dataset", num_shards=3)
    DatasetDict(train=train, test=test).save_to_disk(HERE / "splits", num_shards={"train": 2, "test": 1})
    DatasetDict(train=train.select([4, 1])).save_to_disk(HERE / "one_split")
    (HERE / "hub" / "data").mkdir(parents=True)
    for number in range(2):
        train.shard(2, number).to_parquet(HERE / "hub" / "data" / f"train-{number:05}-of-00002.parquet")
    test.to_parquet(HERE / "hub" / "data" / "test-00000-of-00001.parquet")
    # Descriptions of the features are in the shards as well.
    print(json.dumps(sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*.*")), indent=1))


if __name__ == "__main__":
    main()
