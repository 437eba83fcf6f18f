"""Reports of an execution with quarantined failures: shown, explained, and nothing turns red by them."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
from jsonschema import Draft202012Validator

from agenteval_tui.analysis.quarantine_gate import QuarantineEffect, gating_now
from agenteval_tui.core.ids import now_ms
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.formats.documents.results import execution_document
from agenteval_tui.formats.exporters.github import annotation_lines
from agenteval_tui.formats.exporters.junit import junit_xml
from agenteval_tui.formats.exporters.report_html import report_html
from agenteval_tui.formats.exporters.report_md import report_md
from agenteval_tui.formats.exporters.results_csv import results_csv
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.views.model import plain
from agenteval_tui.views.quarantine import (
    begun_text,
    ended_text,
    held_text,
    in_force_text,
    left_out_text,
    left_out_view,
    listed_view,
    quarantines_table,
    skipped_view,
)
from agenteval_tui.views.terminal import plain_text

DAY = 86_400_000
SUITE = "/s/a.suite.yaml"
# test -> whether each of two criteria passed, run by run
RAN = {
    "whole": [(False, True), (True, True)],
    "part": [(False, True), (False, False), (True, True)],
    "plain": [(False, True), (True, True)],
}


def filled(path: Path) -> Store:
    store = Store.open(path)
    runs = []
    for test, outcomes in RAN.items():
        for repetition, verdicts in enumerate(outcomes, 1):
            planned = PlannedRun(
                f"RUN-{len(runs)}", "EXEC", len(runs), SUITE, "Shop", test, test.title(),
                repetition=repetition, prompt="please", agent="a",
            )  # fmt: skip
            results = tuple(
                CriterionResult(
                    name, Outcome.PASSED if good else Outcome.FAILED, float(good), message=f"{name} said so"
                )
                for name, good in zip(("shaky", "firm"), verdicts, strict=True)
            )
            bad = [one.criterion for one in results if one.outcome is Outcome.FAILED]
            ended = RunEnded(
                planned.id, "failed" if bad else "passed", 1.0, 1000 + len(runs), 5.0, 1,
                Transcript((Message("assistant", "hello"),), final_output="hello"), results,
                why=f"{bad[0]}: {bad[0]} said so" if bad else "",
            )  # fmt: skip
            runs.append((planned, ended))
    store.import_runs(ExecutionRecord("EXEC", "Shop", "run", "a", (SUITE,), 1_736_899_200_000), iter(runs))
    return store


def test_a_quarantined_failure_is_shown_and_turns_nothing_red(tmp_path: Path) -> None:
    with filled(tmp_path / "h.db") as store:
        execution = store.execution("EXEC")
        before = junit_xml(store, execution)
        assert (ET.fromstring(before).get("failures"), "quarantine" in before) == ("4", False)
        assert "quarantine" not in msgspec.to_builtins(execution_document(store, execution))
        until = now_ms() + 5 * DAY
        for held in (
            Quarantine(SUITE, "whole", until, reason="it <flickers>"),
            Quarantine(SUITE, "part", until, "shaky"),
        ):
            quarantines.put(store, held).result()
        day = held.last_day
        runs = store.runs_of_execution("EXEC")

        suites = ET.fromstring(junit_xml(store, execution))
        (suite,) = suites
        assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": "7", "failures": "2", "errors": "0", "skipped": "2",
        }  # fmt: skip
        cases = list(suites.iter("testcase"))
        skipped = cases[0].find("skipped")
        assert skipped is not None
        assert skipped.get("type") == "quarantine"
        assert skipped.get("message") == f"in quarantine until {day} (it <flickers>); failed: shaky: shaky said so"
        assert "shaky: failed" in (skipped.text or ""), "the explanation stays"
        assert cases[1].findtext("system-out") == f"quarantine: in quarantine until {day} (it <flickers>)"
        assert [[part.tag for part in case if part.tag in ("failure", "skipped")] for case in cases] == [
            ["skipped"], [], ["skipped"], ["failure"], [], ["failure"], [],
        ]  # fmt: skip
        failure = cases[3].find("failure")
        assert failure is not None
        assert failure.get("message") == "firm: firm said so", "what fails it without the quarantined criterion"

        lines = list(annotation_lines(runs, lambda run: (SUITE, 3), held=gating_now(store, runs)))
        assert [line.partition(" ")[0] for line in lines] == ["::error", "::error", "::notice", "::notice"]
        assert "firm: firm said so" in lines[0]
        assert f"in quarantine until {day}" in lines[2]

        said = f"In quarantine, and not gating: part / shaky until {day} (1 of 3 runs did not pass), whole until {day}"
        for text in (report_md(store, execution), report_html(store, execution)):
            assert f"in quarantine until {day}" in text
            assert "Pass rate without quarantine" in text
            assert "<flickers>" not in text
            assert said in text.replace("\\", "")
        rows = list(csv.DictReader(io.StringIO(results_csv(store, execution))))
        assert [bool(row["quarantine"]) for row in rows] == [True] * 5 + [False] * 2
        document = json.loads(msgspec.json.encode(execution_document(store, execution)))
        Draft202012Validator(schema("results")).validate(document)
        held_back = {(one["test"], one["criterion"], one["runs"], one["not_passed"]) for one in document["quarantine"]}
        assert held_back == {("whole", None, 2, 1), ("part", "shaky", 3, 1)}


HELD = Quarantine(SUITE, "refunds", 1_900_000_000_000, reason="it flickers", who="kim", suite_name="Shop")
PART = Quarantine(SUITE, "refunds", 1_900_000_000_000, "Names the order")


def test_what_is_said_of_one() -> None:
    day = HELD.last_day
    assert held_text((HELD, PART)) == (
        f"in quarantine until {day} (it flickers); Names the order in quarantine until {day}"
    )
    assert begun_text(PART) == f"refunds / Names the order is non-gating until {day}"
    assert ended_text("refunds", "") == "refunds gates again"
    assert in_force_text(HELD) == f"in quarantine until {day}, by kim"
    assert plain_text(listed_view((), 0)) == "nothing is in quarantine; agenteval quarantine add TEST puts a test there"
    assert plain_text(listed_view((HELD, PART), 1_900_000_000_000)).splitlines() == [
        f"~ refunds  until {day}  (over)  Shop, it flickers, kim",
        f"~ refunds / Names the order  until {day}  (over)  ",
    ]
    (name, until), _ = (row.cells for row in quarantines_table((HELD, PART)).rows)
    assert (plain(name), plain(until)) == ("~ refunds  it flickers", day)


def test_what_did_not_gate_is_said_in_lines_and_in_a_sentence() -> None:
    left_out = [QuarantineEffect(PART, 1, 0), QuarantineEffect(HELD, 3, 2)]
    day = HELD.last_day
    assert plain_text(left_out_view(left_out)).splitlines() == [
        f"~ in quarantine, non-gating: refunds (2 of 3 runs did not pass)  until {day}: it flickers",
        f"~ in quarantine, non-gating: refunds / Names the order (1 run)  until {day}",
    ]
    assert left_out_text(left_out) == (
        f"In quarantine, and not gating: refunds until {day} (2 of 3 runs did not pass),"
        f" refunds / Names the order until {day} (1 run)."
    )
    assert (left_out_text(()), left_out_view(())) == ("", ())
    many = [QuarantineEffect(PART, 1, 0)] * 12
    assert plain_text(left_out_view(many)).splitlines()[-1] == "~ and 2 more in quarantine"
    assert left_out_text(many).endswith(" and 2 more.")
    assert len(skipped_view([HELD] * 12)) == 11
