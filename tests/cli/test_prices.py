"""`agenteval prices` in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval_tui.core import directories

LIST = {
    f"model-{number}": {"mode": "chat", "input_cost_per_token": 1e-6 * number, "output_cost_per_token": 1e-5}
    for number in range(1, 24)
}


def test_prices_are_shown_and_updated(cli: Any, tmp_path: Path) -> None:
    shown = cli("prices", "show", "gpt-4o", "never-heard-of")
    assert shown.code == 1
    assert [line.split()[-1] for line in shown.out.splitlines()[2:]] == ["list", "list"]
    first = tmp_path / "first.json"
    first.write_text(json.dumps(LIST), "utf-8")
    path = directories.config_dir() / "prices.yaml"
    assert cli("prices", "update", first, "--dry-run").out.splitlines() == [
        "23 new models, 0 changed prices, 0 unchanged", f"would write {path}"
    ]  # fmt: skip
    assert not path.exists()
    done = cli("prices", "update", first, "--json").json("prices-update")
    assert (len(done["changes"]), done["written"], done["file"]) == (23, True, str(path))
    path.write_text("model-23: {input: 0, output: 0}\n" + path.read_text("utf-8"), "utf-8")
    for entry in LIST.values():
        entry["output_cost_per_token"] = 2e-5
    second = tmp_path / "second.json"
    second.write_text(json.dumps({**LIST, "voice": {"mode": "audio_speech"}}), "utf-8")
    lines = cli("prices", "update", second).out.splitlines()
    assert lines[1] == "model-1: 1 in, 10 out -> 1 in, 20 out"
    assert lines[21:] == [
        "and 2 more (--json lists all)",
        "0 new models, 22 changed prices, 0 unchanged",
        "kept your own price for 1 model: model-23",
        "left out: 1 entry has no price by token",
        f"wrote {path}",
    ]
    assert cli("prices", "show", "x/model-1").out.splitlines()[-1].split() == [
        "x/model-1", "1", "20", "an", "update,", "as", "model-1"
    ]  # fmt: skip
    known = {one["model"]: one for one in cli("prices", "--json").json("prices")["prices"]}
    assert (known["model-23"]["source"], known["model-1"]["source"], known["gpt-4o"]["source"]) == (
        "yours", "updated", "bundled"
    )  # fmt: skip
    path.write_text("broken: {", "utf-8")
    refused = cli("prices")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
