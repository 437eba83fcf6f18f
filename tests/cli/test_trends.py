"""agenteval trends, flaky and quarantine; and the commands of docs/trends.md."""

from __future__ import annotations

import csv
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from trend_made import NOON, SHOP, filled

from agenteval_tui.history import quarantines
from agenteval_tui.history.store import Store

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "trends.md").read_text("utf-8")
SUITE = """\
name: Shop
agent: mine
agents:
  mine: {kind: demo, version: v2}
tests:
  - id: refunds
    prompt: hi
    criteria:
      - name: Names the order
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: a white whale}]}
      - {name: Says anything, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, min_words: 1}]}}
  - id: greets
    prompt: hello
    criteria:
      - {name: Says anything, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, min_words: 1}]}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trends") / "history.db"
    filled(path).close()
    return path


@pytest.fixture
def db(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the history made by hand, an hour after its last run."""
    path = tmp_path / "history.db"
    shutil.copy(made, path)
    for module in ("cli.commands.trends", "cli.commands.flaky", "cli.commands.quarantine", "history.quarantines"):
        monkeypatch.setattr(f"agenteval_tui.{module}.now_ms", lambda: NOON + 3_600_000)
    return path


def test_trends_in_a_pipe_are_plain_lines(cli: Any, db: Path) -> None:
    told = cli("--db", db, "trends", "--window", "7d", "--by", "day")
    assert told.code == 0
    lines = told.out.splitlines()
    assert len([line for line in lines if re.match(r"  2026-11-\d\d +89 % ", line)]) == 7
    assert "95 % interval" in lines[1]
    assert not re.search(r"[\x1b●─]", told.out), "no colours and nothing drawn"
    assert re.search(r"^  all +89 % ", told.out, re.MULTILINE)
    assert "why runs failed" in told.out
    grouped = cli("--db", db, "trends", "--window", "all", "--group", "test", "--by", "week").out
    assert [line for line in grouped.splitlines() if line != line.rstrip()] == []
    assert [name for name in ("orders", "refunds", "greeting") if f"\n{name}" in f"\n{grouped}"] == [
        "orders", "refunds", "greeting",
    ]  # fmt: skip


def test_trends_as_documents(cli: Any, db: Path) -> None:
    document = cli("--db", db, "trends", "--window", "all", "--group", "agent", "--json").json("trends")
    assert [one["name"] for one in document["series"]] == ["demo", "desk"]
    assert document["alerts"] is None
    told = cli("--db", db, "trends", "--json", "--alert-below", "99%")
    assert told.code == 1
    assert told.json("trends")["alerts"]["fired"] is True
    assert "ALERT" in told.err, "stdout stays one document"
    table = list(csv.DictReader(io.StringIO(cli("--db", db, "trends", "--window", "7d", "--csv", "--by", "day").out)))
    assert [row["n"] for row in table] == ["9"] * 7


def test_the_alert_and_its_codes(cli: Any, db: Path) -> None:
    fired = cli("--db", db, "trends", "--window", "24h", "--alert-below", "0.9")
    assert fired.code == 1
    numbers = "8 of 9 runs of 3 tests passed, too few for an interval"
    assert f"ALERT: pass rate 89 % ({numbers}) in the last 24 h, below 90 %" in fired.out
    assert "this can be chance" in fired.out
    assert cli("--db", db, "trends", "--window", "24h", "--alert-below", "0.8").code == 0
    assert cli("--db", db, "trends", "--window", "24h", "--alert-below", "0.8", "--group", "test").code == 1
    empty = cli("--db", db, "trends", "--window", "10m", "--alert-below", "0.8")
    assert (empty.code, "no run has a verdict" in empty.out, "nothing ran" in empty.out) == (0, True, True)
    assert cli("--db", db, "trends", "--window", "10m", "--alert-below", "0.8", "--alert-empty").code == 1
    for wrong in (
        ["--alert-empty"],
        ["--json", "--csv"],
        ["--alert-below", "7"],
        ["--window", "soon"],
        ["--test", "x"],
    ):
        assert cli("--db", db, "trends", *wrong).code == 2, wrong


def test_flaky_tests_are_listed_and_put_in_quarantine(cli: Any, db: Path) -> None:
    told = cli("--db", db, "flaky")
    assert told.code == 0
    assert re.search(r"^~ orders +49 of 90 +54 %", told.out, re.MULTILINE)
    assert "the agent: its outputs differ" in told.out
    assert f"agenteval quarantine add {SHOP}::refunds --criterion right" in told.out
    document = cli("--db", db, "flaky", "--json", "--all").json("flaky")
    assert [one["test"] for one in document["tests"]] == ["orders", "refunds", "greeting"]
    assert cli("--db", db, "flaky", "--until", "7d").code == 2
    put = cli("--db", db, "flaky", "--quarantine", "--test", "refunds")
    assert "in quarantine: refunds / right" in put.out
    assert cli("--db", db, "flaky", "--test", "refunds", "--json").json("flaky")["suggested"] == []
    alert = cli("--db", db, "trends", "--window", "24h", "--alert-below", "0.95")
    assert (alert.code, "in quarantine, left out" in alert.out) == (0, True)


def test_quarantine_add_list_end(cli: Any, db: Path) -> None:
    assert (
        cli("--db", db, "quarantine").out
        == "nothing is in quarantine; agenteval quarantine add TEST puts a test there\n"
    )
    added = cli("--db", db, "quarantine", "add", "refunds", "--reason", "bad \x1b[31m luck", "--until", "2026-12-24")
    assert added.out == "~ refunds is non-gating until 2026-12-24\n"
    listed = cli("--db", db, "quarantine", "list")
    assert "refunds  until 2026-12-24" in listed.out
    assert "\x1b" not in listed.out
    (one,) = cli("--db", db, "quarantine", "--json").json("quarantine")["quarantines"]
    assert (one["test"], one["criterion"], one["holds"]) == ("refunds", None, True)
    assert cli("--db", db, "quarantine", "end", "refunds").code == 0
    assert cli("--db", db, "quarantine", "--json").json("quarantine")["quarantines"] == []
    assert len(cli("--db", db, "quarantine", "--all", "--json").json("quarantine")["quarantines"]) == 1
    for wrong, said in (
        (["end", "refunds"], "not in quarantine"),
        (["add", "refund"], "did you mean refunds"),
        (["add", "refunds", "--criterion", "tight"], "it has"),
        (["add", "refunds", "--until", "2020-01-01"], "future"),
        (["add", "nothing.yaml::x"], "nothing.yaml"),
    ):
        told = cli("--db", db, "quarantine", *wrong)
        assert told.code in (2, 3), wrong
        assert said in told.err, told.err


def test_a_run_leaves_out_what_is_in_quarantine(cli: Any, tmp_path: Path) -> None:
    suite, db = tmp_path / "shop.suite.yaml", tmp_path / "h.db"
    suite.write_text(SUITE, "utf-8")
    assert cli("--db", db, "run", suite).code == 1
    # A criterion alone: the run counts with the verdict that it has without it.
    assert cli("--db", db, "quarantine", "add", "refunds", "--criterion", "Names the order").code == 0
    told = cli("--db", db, "run", suite, "--fail-under", "1")
    assert told.code == 0, told.out
    assert "~ in quarantine, non-gating: refunds / Names the order (1 of 1 run did not pass)  until" in told.out
    # Everything in quarantine: nothing is left that could fail.
    for test in ("refunds", "greets"):
        assert cli("--db", db, "quarantine", "add", f"{suite}::{test}").code == 0
    assert cli("--db", db, "run", suite, "--fail-under", "1").code == 0
    with Store.open(db) as store:
        assert store.execution("last").failed == 1, "it ran, and is shown"
        for one in quarantines.active(store):
            quarantines.end(store, *one.key).result()
    assert cli("--db", db, "run", suite).code == 1, "it gates again"


# docs/trends.md


def _commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.split("  #")[0].split(" > ")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("agenteval ")]


def test_the_pages_commands_do_what_they_say(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "shop.suite.yaml").write_text(SUITE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "h.db"))
    job = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    steps = [one["run"] for one in job["jobs"]["watch"]["steps"] if one.get("run", "").startswith("agenteval")]
    assert len(steps) == 3
    commands = [*steps, *_commands()]
    assert len(commands) >= 16
    for command in commands:
        if "--agent demo" in command or "--tag" in command:
            continue  # of suites that have these
        told = cli(*shlex.split(command)[1:])
        assert told.code == 0, f"{command}\n{told.out}\n{told.err}"
    assert cli("quarantine", "end", "refunds", "--criterion", "Names the order").code == 0
    # What cron's line looks at: the shell's own part is not ours.
    (cron,) = re.findall(r"out=\$\((agenteval [^)]*)\)", PAGE)
    assert cli(*shlex.split(cron)[1:]).code == 1
    used = [one["uses"] for one in job["jobs"]["watch"]["steps"] if "uses" in one]
    assert all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in used)
    assert job["permissions"] == {"contents": "read"}
