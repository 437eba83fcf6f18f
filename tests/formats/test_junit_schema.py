"""JUnit files are valid by Jenkins' schema, whatever is in the history."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attacks import ATTACKS
from junit_xsd import problems

from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.formats.exporters.junit import junit_xml
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, RunError, Transcript

GOLDEN = Path(__file__).parents[1] / "golden/expected/reports/report.junit"


def test_runs_that_end_in_each_way_with_hostile_words(tmp_path: Path) -> None:
    text = "".join(ATTACKS.values()) + "]]></system-out><testsuite>\ud800\x00\ufffe"
    runs: list[Any] = []
    for number, status in enumerate(("passed", "failed", "error", "skipped", "needs_review", "cancelled")):
        planned = PlannedRun(
            f"RUN-{number}", "EXEC-1", number, "/s/a.suite.yaml", text, f"t{number}", text, text, agent=text
        )
        transcript = Transcript(
            messages=(Message("assistant", text),),
            final_output=text,
            error=RunError(text, text, text) if status == "error" else None,
        )
        result = CriterionResult(text, Outcome.FAILED, 0.0, message=text)
        results = (result,) if status == "failed" else ()
        runs.append((planned, RunEnded(planned.id, status, 0.0, 1_000, 4_000_000.0, 1, transcript, results, why=text)))
    with Store.open(tmp_path / "h.db") as store:
        store.import_runs(ExecutionRecord("EXEC-1", text, "run", "a.suite.yaml", ("/s/a.suite.yaml",), 1), iter(runs))
        assert causes_of_execution(store, "EXEC-1")[0].groups, "notes of cases are in it"
        root = ElementTree.fromstring(junit_xml(store, store.execution("EXEC-1")))
    assert list(problems(root)) == []
    assert len(list(root.iter("testcase"))) == 6
    assert "cause: " in "".join(one.text or "" for one in root.iter("system-out"))


def test_an_answer_that_is_cut_says_so(tmp_path: Path) -> None:
    runs: list[Any] = []
    for number, length in enumerate((20_000, 20_001, 1_020_000)):
        planned = PlannedRun(
            f"RUN-{number}", "EXEC-1", number, "/s/a.suite.yaml", "a", f"t{number}", "t", "p", agent="x"
        )
        transcript = Transcript(messages=(Message("assistant", "x" * length),), final_output="x" * length)
        runs.append((planned, RunEnded(planned.id, "failed", 0.0, 1_000, 4_000.0, 1, transcript, why="no")))
    with Store.open(tmp_path / "h.db") as store:
        store.import_runs(ExecutionRecord("EXEC-1", "t", "run", "a.suite.yaml", ("/s/a.suite.yaml",), 1), iter(runs))
        root = ElementTree.fromstring(junit_xml(store, store.execution("EXEC-1")))
    answers = [case.findall("system-out")[-1].text or "" for case in root.iter("testcase")]
    assert [one.strip("x").strip() for one in answers] == [
        "",
        "… 1 more character: agenteval show RUN-1",
        "… 1,000,000 more characters: agenteval show RUN-2",
    ]


def test_the_recorded_report_is_valid_and_the_check_finds_what_is_not() -> None:
    root = ElementTree.parse(GOLDEN).getroot()
    assert list(problems(root)) == []
    assert {"properties", "failure", "system-out"} <= {element.tag for element in root.iter()}
    case = next(root.iter("testcase"))
    ElementTree.SubElement(case, "properties")
    root.set("skipped", "1")
    assert set(problems(root)) == {"properties in testcase", "testsuites has skipped"}


@pytest.mark.parametrize("wrong", ["<testsuite/>", "<testsuites><testcase name='x'/></testsuites>", "<report/>"])
def test_the_check_refuses(wrong: str) -> None:
    assert list(problems(ElementTree.fromstring(wrong)))


def test_two_suites_of_one_name_have_cases_of_their_own(tmp_path: Path) -> None:
    runs: list[Any] = []
    for number, key in enumerate(("/p/a/smoke.suite.yaml", "/p/b/smoke.suite.yaml", "/p/b/other.suite.yaml")):
        name = Path(key).name.partition(".")[0]
        planned = PlannedRun(f"RUN-{number}", "EXEC-1", number, key, name, "greets", "Greets", agent="x")
        transcript = Transcript(messages=(Message("assistant", "x"),), final_output="x")
        runs.append((planned, RunEnded(planned.id, "failed", 0.0, 1_000, 4_000.0, 1, transcript, why="no")))
    suites = tuple(planned.suite_key for planned, _ in runs)
    with Store.open(tmp_path / "h.db") as store:
        store.import_runs(ExecutionRecord("EXEC-1", "t", "run", "p", suites, 1), iter(runs))
        root = ElementTree.fromstring(junit_xml(store, store.execution("EXEC-1")))
    assert list(problems(root)) == []
    assert [(case.get("classname"), case.get("name")) for case in root.iter("testcase")] == [
        ("smoke (a/smoke.suite.yaml).greets", "Greets"),
        ("smoke (b/smoke.suite.yaml).greets", "Greets"),
        ("other.greets", "Greets"),
    ]
