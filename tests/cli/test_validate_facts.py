"""`agenteval validate` beside a history: what was never seen is said, the history is only read."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.core import directories

EDITED = """
      - name: Looks it up
        prototype_class: ToolResponse
        config_uxon: |
          {"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_orders", "arguments": {"order_id": 5}}]}]}
"""


def test_beside_a_history(cli, suite: Path) -> None:
    assert cli("run", suite, "--repeat", "2").code == 1
    plain = cli("validate", suite, "--json").json("validate")
    assert [(one["code"], one["severity"], one["line"]) for one in plain] == [("unseen-text", "info", 22)]
    suite.write_text(suite.read_text("utf-8").replace("\n  - id: bad", EDITED + "  - id: bad"), "utf-8")
    result = cli("validate", suite)
    assert result.code == 0
    assert f"{suite}:18:" in result.out
    assert "did you mean get_order? (write get_order)" in result.out
    assert "0 errors, 1 warning" in result.out
    assert cli("validate", suite, "--no-facts", "--json").json("validate") == []
    history = directories.history_file(None)
    before = history.read_bytes()
    assert cli("validate", suite, "--json").code == 0
    assert history.read_bytes() == before


def test_no_history_is_made(cli, suite: Path) -> None:
    assert cli("validate", suite, "--facts").code == 0
    assert not directories.history_file(None).exists()


def test_a_history_that_cannot_be_read_is_no_obstacle(cli, suite: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.db"
    odd.write_text("no database" * 1000, "utf-8")
    result = cli("--db", odd, "validate", suite)
    assert result.code == 0
    assert "no problems" in result.out
    assert "not compared with the recordings" in result.err
    assert odd.read_text("utf-8") == "no database" * 1000
