"""validate, show, why, history, stats, import, schema, agents, doctor: what they print, in words and as JSON."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.output import Output, json_text
from agenteval_tui.core import directories
from agenteval_tui.core.numbers import count, duration, percent
from agenteval_tui.formats.documents.registry import SCHEMAS, schema
from tests.sweeps import share

ROOT = Path(__file__).resolve().parents[2]


def test_validate(cli, suite: Path) -> None:
    good = cli("validate", suite)
    assert (good.code, good.out) == (0, "1 suite, 2 tests, 2 criteria: no problems\n")
    assert cli("validate", suite, "--json").json("validate") == []
    suite.write_text(suite.read_text("utf-8").replace('"contains": "white', '"contains_all": "white'), "utf-8")
    bad = cli("validate", suite)
    assert bad.code == 2
    assert bad.out.startswith(f"{suite}:22:")
    (problem,) = cli("validate", suite, "--json").json("validate")
    assert (problem["line"], problem["severity"], problem["code"]) == (22, "error", "wrong-type")
    line = suite.read_text("utf-8").splitlines()[21]
    assert line[problem["column"] - 1 : problem["end_column"] - 1] == '"white whale"'
    assert problem["fix"]


def test_validate_a_folder_without_suites(cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = cli("validate", tmp_path / "empty")
    assert result.code == 2
    assert "no suites found" in result.out
    assert cli("run", tmp_path / "empty").code == 2


def test_what_was_run_can_be_shown(cli, suite: Path) -> None:
    cli("run", suite)
    shown = cli("show")
    assert shown.code == 0
    assert shown.out.startswith("Orders")
    assert "1 passed, 1 failed of 2 runs" in shown.out
    document = cli("show", "last", "--json").json("results")
    bad = document["runs"][1]
    by_prefix = cli("show", document["execution"][:12], "--json").json("results")
    assert by_prefix == document
    run = cli("show", bad["run"])
    assert "Where is my order #W1042?" in run.out
    assert "→ get_order" in run.out
    assert "✗ Names a whale: failed" in run.out
    one = cli("show", bad["run"], "--json").json("run")
    assert one["transcript"]["final_output"] == bad["final_output"]
    transcript = cli("show", bad["run"], "--transcript", "--json").json("transcript")
    assert transcript == one["transcript"]
    assert "Names a whale" not in cli("show", bad["run"], "--transcript").out
    newest = max(run["run"] for run in document["runs"])
    assert cli("show", "last", "--transcript").out == cli("show", newest, "--transcript").out


def test_why(cli, suite: Path) -> None:
    cli("run", suite)
    bad = cli("show", "last", "--json").json("results")["runs"][1]
    result = cli("why", bad["run"])
    assert result.code == 0
    assert '"white whale" is not in the text' in result.out
    document = cli("why", f"{bad['run']}/1", "--json").json("why")
    assert [one["result"] for one in document["criteria"]] == bad["criteria"]
    assert cli("why", f"{bad['run']}/names a", "--json").json("why") == document
    markdown = cli("why", bad["run"], "--markdown").out
    assert markdown.startswith("### Says what it never says: failed\n")
    assert '- ✗ `contains: "white whale" is not in the text' in markdown
    assert markdown.endswith(f"`agenteval why {bad['run']}/1`\n")
    assert cli("why", bad["run"], "--markdown", "--json").code == 2
    missing = cli("why", f"{bad['run']}/Nothing")
    assert missing.code == 2
    assert "Names a whale" in missing.err


def test_history(cli, suite: Path) -> None:
    assert cli("history").out.startswith("nothing has run yet")
    assert cli("history", "--json").json("history") == []
    cli("run", suite)
    cli("run", suite, "--test", "good")
    newest, oldest = cli("history", "--json").json("history")
    assert (newest["runs"], oldest["runs"]) == (1, 2)
    shown = cli("history", "--limit", "1").out.splitlines()
    assert len(shown) == 2  # one, and how many there are
    assert re.search(r" of 1  in \d[\d.:]* m?s$", shown[0]), "how long it took in all"
    runs = cli("history", "--runs", "--json").json("history-runs")
    assert len(runs) == 3
    failed = cli("history", "--runs", "--outcome", "failed", "--json").json("history-runs")
    assert [run["test"] for run in failed] == ["bad"]
    assert len(cli("history", "customs", "--runs", "--json").json("history-runs")) == 3
    assert cli("history", "zeppelin").out == "no execution matches\n"
    assert "Names a whale" in cli("history", "--runs", "--test", "bad").out


def test_stats_in_words(cli, suite: Path) -> None:
    cli("run", suite, "--repeat", "2")
    result = cli("stats")
    assert result.code == 0
    assert "all, by test" in result.out
    assert "pass@k" in result.out
    assert "tool calls p50 " in result.out
    stats = cli("stats", "last", "--json").json("stats")
    assert stats["overall"]["steps"]["p50"] >= 1
    assert [(test["id"], test["n"], test["passed"]) for test in stats["tests"]] == [("good", 2, 2), ("bad", 2, 0)]
    assert stats["classification"] is None
    assert cli("stats", "last", "--last").code == 2


def test_stats_of_a_classifier(cli, tmp_path: Path) -> None:
    answers = {
        "a": ("refund", "refund"),
        "b": ("refund", "shipping"),
        "c": ("shipping", "shipping"),
        "d": ("other", ""),
    }
    lines = [
        {"test": test, "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": given}]}
        for test, (_, given) in answers.items()
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    tests = "".join(
        f"  - id: {test}\n    prompt: q\n    criteria:\n      - name: label\n        prototype_class: TextResponse\n"
        f"        config_uxon: {{metrics: [{{type: Classification, label: {right}}}]}}\n"
        for test, (right, _) in answers.items()
    )
    suite = tmp_path / "labels.suite.yaml"
    suite.write_text(f"name: L\nagent: r\nagents: {{r: {{kind: replay, file: r.jsonl}}}}\ntests:\n{tests}", "utf-8")
    cli("run", suite)
    told = cli("stats", "--json").json("stats")["classification"]
    assert told["n"] == 4
    assert told["accuracy"] == 0.5
    refund = next(one for one in told["per_label"] if one["label"] == "refund")
    assert (refund["precision"], refund["recall"]) == (1.0, 0.5)
    assert told["matrix"][told["labels"].index("refund")][told["labels"].index("shipping")] == 1
    words = cli("stats").out
    assert "accuracy 0.500" in words
    assert "right | given" in words


def test_import_in_words(cli, tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps([chat, {"x": 1}])[:-1], "utf-8")
    result = cli("import", path)
    assert result.code == 0
    assert "2 runs read, 1 added" in result.out
    assert "skipped 1" in result.out
    assert "cut off" in result.out
    assert "nothing was added" in cli("import", path).out
    report = cli("import", path, "--json").json("import")[0]
    assert (report["already"], report["added"]) == (True, 0)
    assert cli("import", tmp_path / "no.json").code == 2


def test_the_schema_files_are_what_the_program_prints(cli) -> None:
    folder = ROOT / "docs" / "schemas"
    assert {path.stem for path in folder.glob("*.json")} == set(SCHEMAS)
    for name in SCHEMAS:
        printed = cli("schema", name)
        assert printed.code == 0
        written = (folder / f"{name}.json").read_text("utf-8")
        assert json.loads(printed.out) == json.loads(written), "run: agenteval schema --all docs/schemas"
    wrong = cli("schema", "suit")
    assert wrong.code == 2
    assert "did you mean suite?" in wrong.err


def test_every_schema_is_one() -> None:
    from jsonschema import Draft202012Validator

    for name in share(SCHEMAS):
        Draft202012Validator.check_schema(schema(name))


def test_the_sample_suites_fit_the_schema_of_a_suite() -> None:
    import yaml
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(schema("suite"))
    for path in directories.bundled("sample_suites").rglob("*.suite.yaml"):
        validator.validate(yaml.safe_load(path.read_text("utf-8")))


def test_agents(cli, suite: Path) -> None:
    assert "no agents are configured" in cli("agents").out
    (one,) = cli("agents", "list", suite, "--json").json("agents")
    assert (one["agent"], one["kind"], one["ok"]) == ("shop", "demo", None)
    checked = cli("agents", "check", suite, "--json")
    assert checked.code == 0
    assert checked.json("agents")[0]["ok"] is True
    text = suite.read_text("utf-8").replace("{kind: demo, version: v1, pace: 0}", "{kind: nothing}")
    suite.write_text(text, "utf-8")
    broken = cli("agents", "check", suite)
    assert broken.code == 3
    assert broken.out.startswith("! shop")
    assert cli("agents", "check", suite, "--agent", "shoop").code == 2


def test_doctor(cli, suite: Path, tmp_path: Path) -> None:
    well = cli("doctor", "--json")
    assert well.code == 0, well.out
    checks = {check["name"]: check for check in well.json("doctor")["checks"]}
    assert checks["history"]["state"] == "ok"
    assert checks["samples"]["state"] == "ok"
    cli("run", suite)
    assert "2 runs" in cli("doctor").out
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"no database at all, but long enough to look at" * 100)
    broken = cli("--db", bad, "doctor")
    assert broken.code == 3
    assert "✗ history" in broken.out
    config = directories.config_dir()
    config.mkdir(parents=True, exist_ok=True)
    (config / "agents.yaml").write_text("a: [\n", "utf-8")
    wrong = cli("doctor")
    assert wrong.code == 3
    assert "agents.yaml:" in wrong.out


def test_foreign_text_in_lists_is_made_visible(cli, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07 \u202e \x9b2J"
    chat = [{"role": "user", "content": evil}, {"role": "assistant", "content": evil}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"id": f"t{evil}", "messages": chat, "model": evil}]), "utf-8")
    cli("import", path)
    run = cli("show", "last", "--json").json("results")["runs"][0]["run"]
    for arguments in (["show"], ["show", run], ["history", "--runs"], ["history"], ["stats"], ["why", run]):
        out = cli(*arguments).out
        assert not set(out) & {"\x1b", "\x07", "\x9b", "\u202e"}, arguments


# What is printed where


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("env", "coloured", "live"),
    [
        ({"TERM": "xterm-256color"}, True, True),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False, True),
        ({"TERM": "xterm-256color", "CI": "true"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
    ],
)
def test_colours_and_progress(env: dict[str, str], coloured: bool, live: bool) -> None:
    stream = _Terminal()
    out = Output(stream, env)
    out.status("half")
    out.line(("good", "good"), " news")
    text = stream.getvalue()
    assert ("\x1b[32m" in text) is coloured
    assert ("half" in text) is live


def test_a_pipe_gets_plain_lines() -> None:
    stream = io.StringIO()
    out = Output(stream, {"TERM": "xterm-256color"})
    out.status("half")
    out.line(("good", "good"), " \x1b[2J")
    assert stream.getvalue() == "good ␛[2J\n"


def test_words_of_figures() -> None:
    assert [count(1, "run"), count(2000, "run")] == ["1 run", "2,000 runs"]
    assert [duration(None), duration(12.4), duration(2100), duration(185_000)] == ["", "12 ms", "2.1 s", "3 min 5 s"]
    assert [percent(None), percent(0.425)] == ["-", "42 %"]


@pytest.mark.parametrize("value", [{"a": float("nan"), "b": [float("inf"), 1.5]}, {"text": "\ud800 ä"}])
def test_json_is_always_json(value: dict[str, Any]) -> None:
    text = json_text(value)
    text.encode("utf-8")
    read = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert set(read) == set(value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_history_in_a_folder_without_permission(cli, suite: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    result = cli("--db", folder / "h.db", "run", suite)
    assert result.code == 3
    assert "permission" in result.err


def test_the_page_of_the_command_line_is_made_anew() -> None:
    import runpy

    script = runpy.run_path(str(ROOT / "docs" / "make_command_line.py"))
    made = script["page"]()
    assert (ROOT / "docs" / "command-line.md").read_text("utf-8") == made, "run python docs/make_command_line.py"
    for usage in [line for line in made.splitlines() if line.startswith("`agenteval ")]:
        assert usage.count("[") == usage.count("]"), usage
