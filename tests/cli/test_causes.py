"""`agenteval causes`, `triage`, `review`, `label`, `judge-report`, and causes in every report, on one made history."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from failing import make

from agenteval_tui.history.store import Store


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "made.db"
    with Store.open(path) as store:
        make(store, "E1", smoke=["text", ""], refund=["tool"])
        make(store, "E2", smoke=["text", "text", ""], refund=["text", "down", "down"], mood=["person"])
    return path


def test_causes_are_listed_decided_and_in_every_report(cli: Any, db: Path, tmp_path: Path) -> None:
    listed = cli("causes", "--db", db)
    for part in ("5 failures = 2 causes", "compared with the execution before", "    3 × The filter", "known", "new",
                 "agenteval why E2-003/1", "1 run before, in refund", "gone"):  # fmt: skip
        assert part in listed.out, part
    told = cli("causes", "--json", "--db", db).json("causes")
    text, down, gone = told["causes"]
    assert (text["runs"], text["trend"], text["before"], text["since_run"]) == (3, "known", 1, "E1-000")
    assert (down["kind"], down["examples"], gone["trend"]) == ("agent", ["E2-005", "E2-004"], "gone")
    assert cli("causes", "E1", "--test", "refund", "--json", "--db", db).json("causes")["failed"] == 1
    assert cli("causes", "--all", "--json", "--db", db).json("causes")["failed"] == 7
    assert cli("causes", tmp_path, "--db", db).code == 2  # no suites in there
    assert cli("causes", "E1", "E2", "--db", db).code == 2

    decided = cli("triage", text["id"][:6], "ignore", "--note", "known *bug*", "--who", "kim", "--until", "9d",
                  "--json", "--db", db).json("triage")["decisions"][0]  # fmt: skip
    assert (decided["decision"], decided["who"], decided["holds"]) == ("ignore", "kim", True)
    assert cli("triage", down["id"], "quarantine", "--db", db).out.splitlines()[1] == "1 test in quarantine"
    assert "agenteval open E2-003/1" in cli("triage", text["id"], "fix", "--note", "a|b", "--db", db).out
    shown = cli("triage", "--db", db).out
    assert "the criterion is to be fixed" in shown
    assert "in quarantine" in shown

    assert "5 failures = 2 causes" in cli("show", "E2", "--db", db).out
    junit, page, html, table = (tmp_path / f"r.{end}" for end in ("xml", "md", "html", "csv"))
    reports = ("--junit", junit, "--md", page, "--html", html, "--csv", table)
    assert cli("report", "E2", *reports, "--db", db).code in (0, 1)
    said = {row["run"]: (row["causes"], row["triage"]) for row in csv.DictReader(table.open(encoding="utf-8"))}
    assert said["E2-004"][0].startswith(f"{down['id']} the agent failed")
    assert "in quarantine" in said["E2-004"][1]
    assert said["E2-000"][1] == f"{text['id']} the criterion is to be fixed (a|b)"
    assert said["E2-002"] == ("", "")
    notes = "\n".join(one.text or "" for one in ElementTree.parse(junit).iter("system-out"))
    assert f"cause: {down['id']}" in notes
    assert any(line.startswith("triage: ") and "in quarantine" in line for line in notes.splitlines())
    assert "5 failures = 2 causes" in page.read_text()
    assert "the criterion is to be fixed: a\\|b" in page.read_text()
    assert "5 failures = 2 causes" in html.read_text()
    assert cli("show", "E2", "--json", "--db", db).json("results")["causes"][0]["decision"]["note"] == "a|b"
    assert "the criterion is to be fixed" in cli("causes", "--md", "--db", db).out

    assert "open again: The filter" in cli("triage", text["id"], "reopen", "--db", db).out
    assert [one["decision"] for one in cli("triage", "--json", "--db", db).json("triage")["decisions"]] == [
        "quarantine"
    ]
    for wrong in ((text["id"], "reopen"), ("ffffff0", "ignore"), (text["id"],), (text["id"], "ignore", "--until", "x"),
                  (gone["id"], "accept"), (text["id"], "ignore", "--until", "2001-01-01")):  # fmt: skip
        assert cli("triage", *wrong, "--db", db).code == 2, wrong
    # What only an older execution has can be decided about, too.
    make_more(db)
    assert cli("triage", down["id"], "ignore", "--db", db).code == 0
    assert cli("triage", down["id"], "ignore", "--execution", "last", "--db", db).code == 2


def make_more(db: Path) -> None:
    for execution in ("E3", "E4"):
        with Store.open(db) as store:
            make(store, execution, smoke=[""])


def test_labels_say_passed_or_failed_and_what_waits_is_listed(cli: Any, db: Path) -> None:
    assert "E2-006/3" in cli("review", "--db", db).out
    (waiting,) = cli("review", "--json", "--db", db).json("review")["waiting"]
    assert (waiting["address"], waiting["question"], waiting["why"]) == ("E2-006/3", "Is it kind?", "needs_review")
    everything = cli("review", "--failures", "--sample", "2", "--json", "--db", db).json("review")["waiting"]
    assert [one["why"] for one in everything] == ["needs_review"] + ["failure"] * 5 + ["sample"] * 2

    assert "the run now counts as passed" in cli("label", "E2-006/3", "passed", "--who", "kim", "--db", db).out
    assert cli("review", "--db", db).out == "nothing is waiting for a person\n"
    assert "failed, 4 of 5" in cli("label", "E2-006", "failed", "4", "--db", db).out
    # What failed is right by one label, and not by the other.
    cli("label", "E2-000/1", "failed", "--db", db)
    cli("label", "E2-001/1", "passed", "--comment", "5.000 is the same", "--who", "kim", "--db", db)
    (again,) = [
        one
        for one in cli("review", "--disagreements", "--json", "--db", db).json("review")["waiting"]
        if one["criterion"] == "The filter" and one["run"] != "E2-006"
    ]
    assert (again["address"], again["why"]) == ("E2-001/1", "disagreement")
    figures = cli("judge-report", "--json", "--db", db).json("judge-report")["criteria"]
    found = next(one for one in figures if one["criterion"] == "The filter")
    assert (found["by_judge"], found["n"], found["both_no"], found["only_person"]) == (False, 2, 1, 1), (
        "a label of the run is none of three criteria"
    )
    assert "only the criterion" in cli("judge-report", "--db", db).out
    said = cli("judge-report", "E2-001/1", "--json", "--db", db)
    assert said.code == 2 or said.json("judge-replies")["label"]["passed"] is True
    for wrong in (("E2-000", "6"), ("E2-000", "passed", "failed"), ("E2-000", "1", "2"), ("E2-000",)):
        assert cli("label", *wrong, "--db", db).code == 2, wrong
