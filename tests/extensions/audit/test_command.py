"""`agenteval audit` on real runs of the bundled agent."""

from __future__ import annotations

from pathlib import Path

import pytest

VACUOUS = """
      - name: Any tool will do
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: get_order, required: false}]}]}
"""


def test_report(cli, suite: Path) -> None:
    suite.write_text(suite.read_text("utf-8").replace("\n  - id: bad", VACUOUS + "  - id: bad"), "utf-8")
    assert cli("validate", suite).code == 0
    assert cli("run", suite, "--repeat", "2").code == 1
    result = cli("audit", suite)
    assert result.code == 0
    lines = result.out.splitlines()
    assert any("never fails: good/Any tool will do: no mutation made it fail (" in line for line in lines)
    assert any("never passes: bad/Names a whale: it failed on all 2 stored runs" in line for line in lines)
    assert "[only 2 runs: run the test more often to be sure]" in result.out
    assert f"{suite}:" in result.out
    assert not any("Names the order" in line for line in lines)
    assert cli("audit", suite, "--strict").code == 1
    report = cli("audit", suite, "--json").json("audit")
    good, bad = report["suites"][0]["tests"]
    assert [one["kind"] for one in good["findings"]] == ["never-fails"]
    assert bad["findings"][0]["few_runs"] is True
    assert good["criteria"][0]["noticed"]["empty"] == {"failed": 1, "tried": 1}


def test_without_runs(cli, suite: Path) -> None:
    result = cli("audit", suite)
    assert result.code == 0
    assert "not audited, for lack of stored runs: good, bad" in result.out
    assert cli("audit", suite, "--strict").code == 2


def test_wrong_use(cli, tmp_path: Path) -> None:
    assert cli("audit", tmp_path).code == 2
    broken = tmp_path / "broken.suite.yaml"
    broken.write_text("- nothing", "utf-8")
    result = cli("audit", broken)
    assert result.code == 2
    assert "broken.suite.yaml:1" in result.err


def test_a_test_that_the_file_does_not_have_is_said_with_the_nearest(cli, suite: Path) -> None:
    result = cli("audit", f"{suite}::goodd")
    assert result.code == 2
    assert f"{suite}: there is no test 'goodd' (did you mean {suite}::good?)" in result.err


def test_the_current_folder_is_audited(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = cli("audit")
    assert refused.code == 2
    assert "there are no suites in the current folder" in refused.err
