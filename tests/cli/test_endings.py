"""What ended an answer stands first wherever a run is shown, is a cause of its own, and can be made an error."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

SUITE = """\
name: Cut
agent: recorded
agents:
  recorded: {kind: replay, file: recordings.json}
tests:
  - id: long
    prompt: Tell me all
    criteria:
      - name: Has the end
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: the end}]}
      - name: Has a date
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "2026"}]}
"""


@pytest.fixture
def ran(cli: Any, tmp_path: Path) -> Any:
    """`ran(finish_reason, text, **options of the agent)`: one run; its id and the execution's document."""

    def run(finish_reason: str, text: str = "Once upon", **options: Any) -> tuple[str, dict[str, Any], Path]:
        messages = [{"role": "user", "content": "Tell me all"}, {"role": "assistant", "content": text}]
        recording = {"version": 1, "messages": messages, "finish_reason": finish_reason, "final_output": text}
        (tmp_path / "recordings.json").write_text(json.dumps({"long": [recording]}), "utf-8")
        more = "".join(f", {name}: {json.dumps(value)}" for name, value in options.items())
        suite = tmp_path / "cut.suite.yaml"
        suite.write_text(SUITE.replace("recordings.json}", f"recordings.json{more}}}"), "utf-8")
        db = tmp_path / "h.db"
        document = cli("run", suite, "--db", db, "--json", "-").json("results")
        return document["runs"][0]["run"], document, db

    return run


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("length", "the answer was cut by max_tokens"),
        ("MAX_TOKENS", "the answer was cut by max_tokens"),
        ("content_filter", "the answer was stopped by a content filter"),
        ("SAFETY", "the answer was stopped by a content filter"),
    ],
)
def test_an_ending_comes_first_and_is_one_cause(cli: Any, ran: Any, tmp_path: Path, reason: str, said: str) -> None:
    run, document, db = ran(reason)
    assert document["runs"][0]["finish_reason"] == reason
    assert document["runs"][0]["why"].startswith(said)
    why = cli("why", run, "--db", db)
    assert why.out.splitlines()[1] == f"! {said} (finish reason: {reason})"
    told = cli("why", run, "--json", "--db", db).json("why")
    assert (told["ending"]["finish_reason"], told["ending"]["message"]) == (reason, f"{said} (finish reason: {reason})")
    shown = cli("show", run, "--db", db).out
    assert shown.index(said) < shown.index("1 user")
    assert f"finish reason {reason}" in shown
    assert said in cli("show", document["execution"], "--db", db).out
    causes = cli("causes", "--json", "--db", db).json("causes")["causes"]
    assert [(one["kind"], one["runs"]) for one in causes] == [("ending", 1)]
    assert said in cli("causes", "--db", db).out
    table = tmp_path / "r.csv"
    markdown = tmp_path / "r.md"
    cli("report", document["execution"], "--csv", table, "--md", markdown, "--db", db)
    (row,) = csv.DictReader(table.open(encoding="utf-8"))
    assert row["causes"].endswith(said)
    assert said in markdown.read_text("utf-8")


def test_a_run_says_it_while_it_is_printed(cli: Any, ran: Any, tmp_path: Path) -> None:
    ran("length")
    printed = cli("run", tmp_path / "cut.suite.yaml", "--db", tmp_path / "h.db").out
    said = printed.index("the answer was cut by max_tokens (finish reason: length)")
    assert printed.index("run 1: failed") < said < printed.index("Has the end")


def test_a_cut_answer_that_passes_says_so_too(cli: Any, ran: Any) -> None:
    run, document, db = ran("length", "the end of 2026")
    assert (document["runs"][0]["outcome"], document["runs"][0]["why"]) == (
        "passed",
        "the answer was cut by max_tokens",
    )
    assert "the answer was cut by max_tokens" in cli("why", run, "--db", db).out
    assert cli("causes", "--json", "--db", db).json("causes")["causes"] == []


def test_an_empty_answer_is_said(cli: Any, ran: Any) -> None:
    run, _, db = ran("stop", "")
    assert "the answer is empty (finish reason: stop)" in cli("why", run, "--db", db).out
    assert "the answer is empty (finish reason: stop)" in cli("show", run, "--db", db).out


@pytest.mark.parametrize(
    ("reason", "text", "option", "outcome"),
    [
        ("max_tokens", "the end of 2026", ["length"], "error"),
        ("refusal", "the end of 2026", ["length", "content_filter"], "error"),
        ("refusal", "the end of 2026", ["length"], "passed"),
        ("stop", "", ["empty"], "error"),
        ("stop", "the end of 2026", ["length", "content_filter", "empty"], "passed"),
    ],
)
def test_an_ending_can_be_an_error(cli: Any, ran: Any, reason: str, text: str, option: list[str], outcome: str) -> None:
    run, document, db = ran(reason, text, error_on_finish=option)
    assert document["runs"][0]["outcome"] == outcome
    if outcome == "error":
        assert f"finish reason: {reason}" in document["runs"][0]["error"]["message"]
        assert "`error_on_finish`" in document["runs"][0]["error"]["fix"]
        assert document["runs"][0]["final_output"] == text
        assert cli("why", run, "--db", db).code == 0


def test_the_option_knows_its_values(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "recordings.json").write_text("{}", "utf-8")
    suite = tmp_path / "cut.suite.yaml"
    suite.write_text(SUITE.replace("recordings.json}", "recordings.json, error_on_finish: [lenght]}"), "utf-8")
    result = cli("validate", suite)
    assert result.code == 2
    assert "error_on_finish" in result.out + result.err
