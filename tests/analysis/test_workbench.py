"""The workbench: which criteria a run is judged by, which stored runs an edit touches, and what it would flip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis import workbench
from agenteval_tui.analysis.lint import check_loaded, check_suites
from agenteval_tui.analysis.overview import overview
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.suites.yaml.save import save_config
from agenteval_tui.transcripts.model import Message, RunError, Transcript

SUITE = """\
name: Shop
tests:
  - id: germany
    prompt: All customers of {{country}}
    variables: {country: Germany}
    criteria:
      - name: The filter
        prototype_class: TextResponse
        config_uxon: &filter |
          {"metrics": [{"type": "TextMatch", "contains": "{{country}}"}]} // why
      - name: Says customers
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "customers"}]}'
  - id: austria
    prompt: All customers of {{country}}
    variables: {country: Austria}
    criteria:
      - name: The filter
        prototype_class: TextResponse
        config_uxon: *filter
  - id: other
    prompt: Hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "Hi"}]}'
"""
EDIT = '{"metrics": [{"type": "TextMatch", "contains": "customers"}]}'

Made = tuple[Path, Store]


@pytest.fixture
def made(make_history: Callable[..., Made], answered: Callable[..., Transcript]) -> Made:
    """Germany passes and fails, Austria fails, and another test has runs too."""
    answers = [
        ("germany", "customers of Germany"),
        ("germany", "customers of France"),
        ("germany", "no idea"),
        ("austria", "customers of Germany"),
        ("other", "Hi"),
    ]
    return make_history(SUITE, [(test, answered(text)) for test, text in answers])


def run_of(store: Store, number: int) -> str:
    return f"EXECUTION-RUN-{number:04}"


def counted(bench: Workbench, criterion: int, text: str) -> workbench.Impact:
    *_, last = bench.impact(criterion, text)
    return last


def test_criteria_come_from_the_file_as_it_is_now(made: Made) -> None:
    _, store = made
    bench = Workbench.open(store, run_of(store, 1))
    assert [(one.name, one.index) for one in bench.criteria] == [("The filter", 0), ("Says customers", 1)]
    assert bench.note == ""
    assert bench.criteria[0].text == '{"metrics": [{"type": "TextMatch", "contains": "{{country}}"}]} // why\n'
    assert bench.criteria[1].line == 11
    assert [result.outcome for result in bench.judge_all()] == ["failed", "passed"]
    assert bench.judge(0, EDIT).outcome == "passed"
    assert bench.judge(0, "{ broken").outcome == "error"


def test_an_edit_is_counted_over_all_tests_that_share_the_piece_of_yaml(made: Made) -> None:
    bench = Workbench.open(made[1], run_of(made[1], 1))
    impact = counted(bench, 0, EDIT)
    assert (impact.total, impact.done, impact.tests) == (4, 4, 2)
    assert impact.now == {"passed": 1, "failed": 3}
    assert impact.then == {"passed": 3, "failed": 1}
    assert sorted(impact.flips) == [(run_of(made[1], n), "failed", "passed") for n in (1, 3)]
    assert impact.flipped_to("passed") == 2
    assert bench.saved_outcome(0, run_of(made[1], 0)) == "passed"
    # The other criterion stands in one test only.
    assert counted(bench, 1, EDIT).total == 3


def test_the_newest_runs_of_all_tests_that_share_a_criterion_are_counted(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench, "POOL_LIMIT", 2)
    pool = Workbench.open(made[1], run_of(made[1], 1)).pool(0)
    assert [entry.run for entry in pool] == [run_of(made[1], 3), run_of(made[1], 2)]


def test_an_expected_value_made_of_that_of_the_row_is_the_same_as_in_the_run(
    make_history: Callable[..., Made], answered: Callable[..., Transcript]
) -> None:
    suite = """\
name: Sums
tests:
  - id: sum
    prompt: 6 * 7
    variables: {expected_value: "42"}
    criteria:
      - name: The sum
        prototype_class: TextResponse
        expected_value: "It is {{expected_value}}."
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "{{expected_value}}"}]}'
"""
    _, store = make_history(suite, [("sum", answered("It is 42.")), ("sum", answered("It is 41."))])
    for number, outcome in enumerate(("passed", "failed")):
        bench = Workbench.open(store, run_of(store, number))
        assert (bench.run.status, bench.judge(0).outcome) == (outcome, outcome)
    assert counted(bench, 0, bench.criteria[0].text).now == {"passed": 1, "failed": 1}


def test_a_broken_edit_turns_every_run_into_an_error(made: Made) -> None:
    impact = counted(Workbench.open(made[1], run_of(made[1], 0)), 0, "{ broken")
    assert impact.then == {"error": 4}
    assert len(impact.flips) == 4


def test_white_space_and_comments_flip_nothing(made: Made) -> None:
    bench = Workbench.open(made[1], run_of(made[1], 0))
    impact = counted(bench, 0, "/* new */ " + bench.criteria[0].text.replace(" ", "  "))
    assert impact.flips == []
    assert impact.now == impact.then == {"passed": 1, "failed": 3}


def test_counting_in_slices_gives_the_same_and_never_counts_twice(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "SLICE_SECONDS", 0.0)
    bench = Workbench.open(made[1], run_of(made[1], 1))
    seen = [impact.done for impact in bench.impact(0, EDIT)]
    assert seen == [1, 2, 3, 4, 4]
    assert counted(bench, 0, EDIT).then == {"passed": 3, "failed": 1}


def test_preloading_stops_and_goes_on(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbench, "PRELOAD_AT_ONCE", 1)
    bench = Workbench.open(made[1], run_of(made[1], 1))
    steps = 0
    while not bench.preload(0, 0.0):
        steps += 1
        assert steps < 9
    assert steps == 4
    assert bench.preload(0)
    # Where no more fits into memory it ends too, and the rest is read as it is needed.
    monkeypatch.setattr(workbench, "CACHE_CHARACTERS", 1)
    small = Workbench.open(made[1], run_of(made[1], 1))
    assert small.preload(0)
    assert counted(small, 0, EDIT).then == {"passed": 3, "failed": 1}


def test_after_saving_the_next_bench_sees_the_new_config(made: Made) -> None:
    _, store = made
    bench = Workbench.open(store, run_of(store, 1))
    assert bench.loaded is not None
    save_config(bench.loaded, "germany", 1, EDIT.replace("customers", "France"))
    again = Workbench.open(store, run_of(store, 0))
    assert again.judge_all()[1].outcome == "failed"
    assert counted(again, 1, EDIT).now == {"passed": 1, "failed": 2}
    assert counted(again, 1, EDIT).then == {"passed": 2, "failed": 1}


def test_a_suite_that_is_gone_leaves_the_criteria_as_they_were_stored(made: Made) -> None:
    path, store = made
    path.unlink()
    bench = Workbench.open(store, run_of(store, 1))
    assert [(one.name, one.index) for one in bench.criteria] == [("The filter", None), ("Says customers", None)]
    assert "can't be read" in bench.note
    assert bench.judge(0).outcome == "failed"
    # Its runs are those of its test, not those of the execution's other tests.
    assert counted(bench, 0, EDIT).total == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SUITE.replace("id: germany", "id: deutschland"), "test germany is no longer in made.suite.yaml"),
        ("name: [", "made.suite.yaml:1:"),
        (
            SUITE.replace("prompt: All customers of {{country}}\n    variables: {country: Germany}", "promt: x"),
            "made.suite.yaml:3:5",
        ),
    ],
)
def test_a_test_that_the_file_does_not_hold_any_more_is_said_so(made: Made, text: str, said: str) -> None:
    made[0].write_text(text, "utf-8")
    bench = Workbench.open(made[1], run_of(made[1], 1))
    assert [one.index for one in bench.criteria] == [None, None]
    assert said in bench.note
    assert "These are the stored criteria" in bench.note


def test_no_such_run(made: Made) -> None:
    with pytest.raises(AgentevalError, match="no run"):
        Workbench.open(made[1], "nothing-like-it")


def stored(store: Store, run: str, transcript: Transcript, **options: Any) -> None:
    planned = PlannedRun(run, "IMPORT", 0, "import:x:file.json", "file.json", "task-1", "Task")
    record = ExecutionRecord("IMPORT", "file", "import", "x", ("import:x:file.json",), 1)
    ended = RunEnded(run, options.pop("status", "failed"), 0.0, 1, 1.0, 1, transcript, **options)
    store.import_runs(record, [(planned, ended)])


def test_imported_runs_get_a_scratch_criterion_beside_the_other_tools_verdict(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "history.db")
    try:
        foreign = foreign_result("reward", passed=False, source="tau-bench")
        answer = Transcript((Message("user", "x"), Message("assistant", "y")), final_output="y")
        stored(store, "IMPORT-RUN-1", answer, results=(foreign,))
        bench = Workbench.open(store, "IMPORT-RUN-1")
        assert [(one.name, one.scratch, one.index) for one in bench.criteria] == [("scratch", True, None)]
        assert (
            bench.note == "This run has no criteria yet. Write one in `scratch` to try it on all runs of the execution."
        )
        assert [result.source for result in bench.judge_all()] == ["", "tau-bench"]
        edited = '{"metrics": [{"type": "TextMatch", "contains": "y"}]}'
        assert bench.judge(0, edited).outcome == "passed"
        assert counted(bench, 0, edited).then == {"passed": 1}
        # A program that was recorded never had a file of tests: there is none to miss.
        planned = PlannedRun("R", "REC", 0, str(tmp_path / "recorded programs"), "recorded programs", "a", "A")
        record = ExecutionRecord("REC", "a", "record", "x", (planned.suite_key,), 1)
        store.import_runs(record, [(planned, RunEnded("R", "skipped", None, 1, 1.0, 1, answer))])
        assert "can't be read" not in Workbench.open(store, "R").note
    finally:
        store.close()


def test_a_run_whose_agent_failed_is_not_judged_and_not_counted(
    make_history: Callable[..., Made], answered: Callable[..., Transcript]
) -> None:
    unreachable = Transcript(
        (Message("user", "x"),), error=RunError("unreachable", "nobody listens", "start the server")
    )
    _, store = make_history(SUITE, [("germany", unreachable), ("germany", answered("customers of Germany"))])
    bench = Workbench.open(store, run_of(store, 0))
    result = bench.judge(0)
    assert result.outcome == "skipped"
    assert "agent failed" in criterion_sentence(result)


def test_overview_counts_and_keeps_problems_with_their_file(made: Made, tmp_path: Path) -> None:
    path, store = made
    (tmp_path / "broken.suite.yaml").write_text("name: Broken\ntests:\n  - id: a\n    promt: hi\n", "utf-8")
    (tmp_path / "empty.suite.yaml").write_text("name: Empty\ntests: []\n", "utf-8")
    read = overview([tmp_path], store)
    assert not read.checked
    at_once = {one.loaded.path.name: [problem.code for problem in one.problems] for one in read.suites}
    assert at_once["broken.suite.yaml"], "what was found when it was read"
    seen = read.with_problems(read, check_loaded([one.loaded for one in read.suites]))
    assert seen.checked
    by_name = {one.loaded.path.name: one for one in seen.suites}
    assert set(by_name) == {"made.suite.yaml", "broken.suite.yaml", "empty.suite.yaml"}
    assert (seen.tests, seen.criteria) == (3, 4)
    assert by_name["broken.suite.yaml"].problems
    assert {problem.file for problem in by_name["broken.suite.yaml"].problems} == {
        str(by_name["broken.suite.yaml"].loaded.path)
    }
    assert {problem.file for problem in by_name["made.suite.yaml"].problems} == {str(path)}
    assert by_name["made.suite.yaml"].summaries["germany"].n == 3
    assert by_name["empty.suite.yaml"].summaries == {}
    _, said = check_suites([tmp_path])
    assert [problem for one in seen.suites for problem in one.problems] == said, "the same as validate says"
    # Of a file that was written meanwhile neither the problems nor the figures of before are taken for those of now.
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    later = overview([tmp_path], store)
    known = later.with_known_problems(seen)
    assert {one.loaded.path.name for one in known.suites if one.checked} == {"broken.suite.yaml", "empty.suite.yaml"}
    late = known.with_problems(read, check_loaded([one.loaded for one in read.suites]))
    assert late == known, "what was found in the file before"
    assert known.with_summaries({}) == known
