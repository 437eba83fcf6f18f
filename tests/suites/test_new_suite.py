"""A new suite's file: right YAML whatever it is called, and never over another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.new_suite import file_for, write_suite

CRITERION = {"name": "c", "prototype_class": "TextResponse", "config_uxon": '{\n  "metrics": []\n}\n'}
TEST = {"id": "a", "name": "Status: # yes", "prompt": "Where?\nNow.", "criteria": [CRITERION]}


@pytest.mark.parametrize("name", ["My shop", "yes", "Mein: Würger #1", "{a}", "- x", "*", "'", "é\t"])
def test_what_is_written_is_what_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "below" / file_for(name)
    agents = {"a b": {"kind": "http", "url": "http://x: 1", "headers": {"A": "${K}"}}}
    write_suite(path, name, "a b", agents, TEST)
    read = load_suite(path)
    assert read.problems == ()
    assert read.suite is not None
    assert (read.suite.name, read.suite.agent, list(read.suite.agents)) == (name, "a b", ["a b"])
    assert read.suite.tests[0].prompt == "Where?\nNow."
    before = path.read_bytes()
    with pytest.raises(AgentevalError, match="this file already exists"):
        write_suite(path, "other", "", {}, TEST)
    assert path.read_bytes() == before


def test_what_would_not_be_found_or_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match=r"\*.suite.yaml"):
        write_suite(tmp_path / "shop.yaml", "Shop", "", {}, TEST)
    with pytest.raises(AgentevalError, match="would be invalid"):
        write_suite(tmp_path / file_for("Shop"), "Shop", "", {}, {**TEST, "prompt": 3, "nonsense": 1})
    assert list(tmp_path.iterdir()) == []
