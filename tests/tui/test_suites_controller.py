"""The state of the Suites screen: what is shown, marked, run and changed. No app, no widget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.analysis.overview import Overview, overview
from agenteval_tui.core import directories
from agenteval_tui.core.errors import Problem
from agenteval_tui.history.records import TestSummary
from agenteval_tui.history.store import Store
from agenteval_tui.suites.editing import WrittenFile
from agenteval_tui.tui.presenters.suite_detail import TestRuns
from agenteval_tui.tui.presenters.suite_tree import Node
from agenteval_tui.tui.screens.suites.controller import MOST_UNDONE, PlanRequest, RunRequest, SuitesController
from agenteval_tui.tui.styled_text import plain, width_of
from agenteval_tui.tui.workspace import Offer
from agenteval_tui.views.failure import Failure, Miss

CONFIG = "{metrics: [{type: TextMatch, contains: a}]}"
TEST = (
    "  - id: {0}\n    prompt: hi\n    tags: [{1}]\n    criteria:\n"
    "      - {{name: c, prototype_class: TextResponse, config_uxon: {2}}}\n"
)


def write(folder: Path, name: str, *tests: str, tag: str = "x") -> Path:
    path = folder / f"{name}.suite.yaml"
    listed = "".join(TEST.format(test, tag, CONFIG) for test in tests)
    path.write_text(f"name: {name}\nagent: shop\nagents: {{shop: {{kind: demo}}}}\ntests:\n{listed}", "utf-8")
    return path


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Overview]:
    write(tmp_path, "a", "one", "two", "three")
    write(tmp_path, "b", "four", "five", tag="smoke")
    (tmp_path / "c.suite.yaml").write_bytes(b"\xff")
    with Store.open(tmp_path / "history.db") as store:
        yield overview([tmp_path], store)


@pytest.fixture
def controller(read: Overview) -> SuitesController:
    made = SuitesController()
    made.take_overview(read)
    return made


def row(controller: SuitesController, name: str) -> Node:
    """The row of a test, or of a suite."""
    assert controller.tree is not None
    return next(one for one in controller.tree.rows if name in (one.test.id if one.test else one.suite_name,))


def shown(controller: SuitesController) -> list[str]:
    assert controller.tree is not None
    return [one.test.id for one in controller.tree.shown_tests() if one.test is not None]


def ids(nodes: list[Node]) -> list[str]:
    return [one.test.id for one in nodes if one.test is not None]


def test_before_the_suites_are_read_an_action_waits_and_what_is_typed_is_kept(read: Overview) -> None:
    controller, done = SuitesController(), []
    assert controller.node_at(0) is None
    assert controller.kept("") is None, "what the last start kept stays"
    assert controller.wait(lambda: done.append(1))
    controller.filter("tag:smoke", None)
    controller.take_overview(read)
    assert shown(controller) == ["four", "five"]
    waiting = controller.waiting()
    assert waiting is not None
    waiting()
    assert done == [1]
    assert controller.waiting() is None, "once"
    assert not controller.wait(lambda: done.append(2))


def test_the_next_start_finds_folds_filter_order_and_cursor(controller: SuitesController, read: Overview) -> None:
    assert controller.tree is not None
    controller.tree.set_open(row(controller, "two"), True)
    controller.tree.set_open(row(controller, "b"), False)
    controller.tree.worst_first = True
    kept = controller.kept(row(controller, "three").key)
    assert kept is not None
    again = SuitesController()
    again.restore(kept)
    assert again.take_overview(read) == row(controller, "three").key
    assert again.tree is not None
    assert (again.tree.folded, again.tree.opened) == (controller.tree.folded, controller.tree.opened)
    assert again.tree.worst_first
    # Whoever asks for a test goes there, not to where the last start was; nothing hides it.
    asked = SuitesController()
    asked.restore({**kept, "filter": "tag:smoke", "folded": [read.suites[0].loaded.key], "opened": "nonsense"})
    asked.row_to_show = row(controller, "one").key
    assert asked.take_overview(read) is None
    assert asked.go_to_wanted() == row(controller, "one").key
    assert (asked.filter_text, shown(asked)) == ("", ["one", "two", "three", "four", "five"])
    assert asked.go_to_wanted() == ""


def test_a_start_without_a_kept_row_begins_on_the_newest_failed_test(read: Overview) -> None:
    def begin(kept: dict[str, str] | None = None, **runs: tuple[str, int]) -> str | None:
        summaries = {
            id: TestSummary(id, 1, 0, 0, (outcome,), None, None, None, {}, 1, executions=(execution,))
            for id, (outcome, execution) in runs.items()
        }
        controller = SuitesController()
        controller.restore(kept or {})
        row = controller.take_overview(
            read.with_summaries({suite.loaded.key: summaries for suite in read.suites if suite.loaded.suite})
        )
        return row.rpartition("\x1f")[2] if row is not None else None

    assert begin(one=("failed", 1), two=("failed", 2), three=("failed", 2), five=("passed", 3)) == "two"
    assert begin(one=("passed", 1), five=("error", 1)) == "five"
    assert begin(two=("passed", 1)) == "one", "nothing failed: on the first test"
    assert begin() == "one", "nothing was run"
    b = read.suites[1].loaded.key
    assert begin({"folded": b}, five=("failed", 1)) == "five", "nonsense is no fold"
    assert begin({"cursor": f"{b}\x1ffour"}, one=("failed", 1)) == "four", "what was kept wins"
    assert begin({"cursor": "gone"}, two=("failed", 1)) == "two"
    assert begin({"filter": "tag:smoke"}, one=("failed", 2), four=("failed", 1)) == "four", "it has to be shown"


def test_marks_are_of_tests_and_stay_when_the_suites_are_read_again(
    controller: SuitesController, read: Overview
) -> None:
    assert controller.mark_range(row(controller, "two")) != "", "nothing was marked yet"
    controller.mark(row(controller, "two"))
    assert controller.mark_range(row(controller, "four")) == ""
    assert ids(controller.marked) == ["two", "three", "four"]
    controller.mark(row(controller, "b"))
    assert ids(controller.marked) == ["two", "three", "four", "five"]
    controller.mark(row(controller, "b"))
    assert ids(controller.marked) == ["two", "three"]
    assert ids(controller.selected_tests(row(controller, "one"))) == ["two", "three"]
    controller.take_overview(Overview(read.suites[1:]))
    assert controller.marked == [], "their suite is gone"
    assert ids(controller.selected_tests(row(controller, "four"))) == ["four"]
    assert controller.selected_tests(row(controller, "b")) == controller.selected_tests(None) == []
    assert not controller.unmark()


def test_the_cursor_comes_back_to_the_row_that_the_filter_hid(controller: SuitesController) -> None:
    two, four = row(controller, "two").key, row(controller, "four").key
    controller.open_filter()
    assert controller.filter("fo", two) == four
    controller.set_filter_cursor(four)
    assert controller.filter("", four) == two
    # Whoever goes on from what was found stays there.
    controller.filter("tag:smoke", two)
    controller.set_filter_cursor(four)
    five = row(controller, "five").key
    assert controller.filter("", five) == five
    controller.filter("four", five)
    controller.set_filter_cursor(four)
    controller.choose(row(controller, "four"))
    assert controller.filter("", four) == four
    assert controller.filter("nothing like that", four) == four
    assert controller.heading(120)[0][0][0] == "0 shown"
    controller.filter("tga:x", four)
    hint = "".join(words for line in controller.hint(80, samples="", keymap={}) for words, _ in line)
    assert "did you mean tag:?" in hint


def said(controller: SuitesController, samples: str = "") -> str:
    return "\n".join(plain(line) for line in controller.hint(140, samples=samples, keymap={}))


def summary(test: str, *recent: str, execution: int = 1) -> TestSummary:
    executions = (execution,) * len(recent)
    return TestSummary(test, len(recent), 0, 0, recent, 1, None, None, {}, executions=executions)


def test_the_first_start_says_what_is_here_and_which_key_to_press(controller: SuitesController) -> None:
    assert "Nothing has run yet." in said(controller)
    assert "R  run all now" in said(controller)
    copies = str(directories.demo_dir() / "suites")
    of_samples = said(controller, copies)
    assert (
        "3 sample suites with 5 tests. Their agent is a small program that needs no key and no network." in of_samples
    )
    assert "i  import a recording" in of_samples
    assert "git diff shows your changes:" in of_samples
    assert "They are in /checkout/sample_suites" in said(controller, "/checkout/sample_suites")
    assert "agenteval init" not in of_samples, "who asked for the demo wants no suite yet"
    empty = [plain(line) for line in controller.hint(80, samples=copies, keymap={}, explicit=False)]
    assert " ".join(" ".join(empty).replace("┃", "").split()).startswith(
        "This folder has no suites (agenteval init writes one). Here are 3 sample suites with 5 tests."
    )
    own = controller.hint(140, samples="", keymap={"suites.run_shown": "ctrl+r", "suites.run": "x"})
    assert "^r  run all now    x  run what is selected" in "\n".join(plain(line) for line in own)
    narrow = [plain(line) for line in controller.hint(60, samples=copies, keymap={})]
    assert not any("…" in line for line in narrow), "nothing is cut, only wrapped"
    assert "?  keys" in "".join(narrow)
    assert all(width_of(line) <= 60 for line in controller.hint(60, samples=copies * 20, keymap={}))


def test_what_failed_last_is_offered_again_only_where_something_failed(
    controller: SuitesController, read: Overview
) -> None:
    assert controller.tree is not None
    suite, key = row(controller, "b"), read.suites[1].loaded.key
    assert "run_failed" not in controller.key_names(suite, narrow=False)
    assert controller.take_summaries(controller.tree, {key: {"five": summary("five", "passed")}})
    assert "run_failed" not in controller.key_names(suite, narrow=False)
    assert controller.take_summaries(controller.tree, {key: {"five": summary("five", "error")}})
    assert "run_failed" in controller.key_names(suite, narrow=False)


def test_the_first_run_ends_with_its_clearest_failure(controller: SuitesController, read: Overview) -> None:
    key = read.suites[1].loaded.key
    offer = Offer(key, "five", Failure(Miss("asks", "get_order order_id", '"#W1"', '"W1"'), 3, 3), 1, 2)
    assert not controller.awaits_offer
    assert controller.take_offer(offer) == "", "nothing ran"
    assert controller.tree is not None
    assert controller.take_summaries(
        controller.tree, {key: {"four": summary("four", "passed"), "five": summary("five", "failed")}}
    )
    assert controller.awaits_offer
    assert controller.take_offer(None) == "", "it is still running"
    assert controller.take_offer(offer) == f"{key}\x1ffive"
    assert [line.split() for line in said(controller).splitlines()] == [
        ["┃", "1", "of", "2", "tests", "passed.", "The", "clearest", "failure:"],
        ["┃", "five", "asks", "get_order", "order_id", "3", "of", "3"],
        ["┃", "expected", '"#W1"', "got", '"W1"'],
        ["┃", "enter", "open", "it"],
    ]
    assert not controller.awaits_offer, "once"
    assert controller.end_offer()
    assert said(controller) == ""
    assert not controller.end_offer()


def test_who_starts_for_the_first_time_begins_at_the_first_test(read: Overview) -> None:
    # The banner says that enter looks at it: on a suite, enter would close that.
    assert SuitesController().take_overview(read) == f"{read.suites[0].loaded.key}\x1fone"
    assert SuitesController().take_overview(read, on_samples=True) == f"{read.suites[0].loaded.key}\x1fone"
    suite = replace(read.suites[1], summaries={"five": summary("five", "failed")})
    # Who has runs begins at the failure, which enter opens.
    assert SuitesController().take_overview(Overview((read.suites[0], suite))) == f"{suite.loaded.key}\x1ffive"


def test_while_first_runs_have_not_ended_nobody_is_told_that_there_are_none(
    controller: SuitesController, read: Overview
) -> None:
    assert controller.take_running(True)
    assert not controller.take_running(True), "it was known"
    assert said(controller).splitlines() == [
        " ┃ Tests are running now. Each result appears here when its run ends.",
        " ┃   3  watch them  ",
    ]
    assert controller.tree is not None
    key = read.suites[1].loaded.key
    assert controller.take_summaries(controller.tree, {key: {"five": summary("five", "passed")}})
    assert not controller.awaits_runs
    assert said(controller) == ""


def test_who_has_runs_already_is_offered_nothing(read: Overview) -> None:
    suite = replace(read.suites[1], summaries={"five": summary("five", "failed")})
    controller = SuitesController()
    controller.take_overview(Overview((read.suites[0], suite)))
    assert not controller.awaits_offer
    assert said(controller) == ""


def test_who_starts_on_samples_with_labelled_runs_is_told_what_to_do_all_the_same(read: Overview) -> None:
    labelled = replace(read.suites[1], summaries={"five": summary("five", "passed")})
    controller = SuitesController()
    controller.take_overview(Overview((read.suites[0], labelled)), on_samples=True)
    assert "run all now" in said(controller)
    ran = replace(read.suites[0], summaries={"one": replace(summary("one", "failed"), executions=(99,))})
    controller.take_overview(Overview((ran, labelled)))
    assert controller.awaits_offer
    assert said(controller) == ""
    again = SuitesController()
    again.take_overview(Overview((ran, labelled)), on_samples=True)
    assert said(again) == "", "samples that were run at an earlier start are nothing new"


def test_what_is_run(controller: SuitesController, read: Overview) -> None:
    a, b, _ = (one.loaded for one in read.suites)
    one, suite = row(controller, "one"), row(controller, "a")
    assert controller.run_selection(None) is None
    assert controller.run_selection(suite) == RunRequest([a.path], (), "a")
    assert controller.run_selection(one) == RunRequest([a.path], (f"{a.key}::one",), "one")
    controller.mark(one)
    controller.mark(row(controller, "five"))
    both = (f"{a.key}::one", f"{b.key}::five")
    assert controller.run_selection(suite) == RunRequest([a.path, b.path], both, "2 tests")
    assert controller.run_shown() == RunRequest([a.path, b.path], (), "all suites")
    controller.filter("five", None)
    assert controller.run_shown() == RunRequest([b.path], (f"{b.key}::five",), "what was shown")
    controller.filter("nothing like that", None)
    assert isinstance(controller.run_shown(), str)
    assert controller.run_failed() == "Nothing failed last time."


def test_what_failed_last_is_run_and_a_test_without_runs_is_for_the_editor(
    controller: SuitesController, read: Overview
) -> None:
    assert controller.tree is not None
    key = read.suites[1].loaded.key
    summary = TestSummary("five", 1, 0, 0, ("failed",), 1, None, None, {})
    assert not controller.take_summaries(controller.tree, {}), "nothing new"
    assert controller.take_summaries(controller.tree, {key: {"five": summary}})
    assert controller.run_failed() == RunRequest([read.suites[1].loaded.path], (f"{key}::five",), "what failed last")
    five = row(controller, "five")
    assert (controller.knows_runs(five), controller.run_to_open(five)) == (False, None)
    controller.take_runs(five, TestRuns())
    assert controller.knows_runs(five)
    assert "edit" in controller.key_names(five, narrow=False)


def test_a_plan_leaves_out_what_is_filtered_away(controller: SuitesController, read: Overview) -> None:
    a = read.suites[0].loaded
    assert a.suite is not None
    whole = controller.plan(row(controller, "a"))
    assert isinstance(whole, PlanRequest)
    assert (len(whole.chosen), whole.run) == (3, RunRequest([a.path], (), "a"))
    controller.filter("t", None)
    some = controller.plan(row(controller, "a"))
    assert isinstance(some, PlanRequest)
    assert some.run.tests == (f"{a.key}::two", f"{a.key}::three")
    one = controller.plan(row(controller, "two"))
    assert isinstance(one, PlanRequest)
    assert (one.run.tests, one.run.title) == ((f"{a.key}::two",), "two")
    controller.filter("", None)
    assert controller.plan(row(controller, "c.suite.yaml")) == ("This suite can't be read; see its problems beside it.")
    assert controller.plan(None) == "There is no test to run."


def test_a_change_of_files_says_what_it_did_and_the_last_twenty_are_undone(
    controller: SuitesController, read: Overview, tmp_path: Path
) -> None:
    change = controller.change("copied", [row(controller, name) for name in ("one", "three", "five")])
    assert [(suite.path.name, tests) for suite, tests in change.files] == [
        ("a.suite.yaml", ["one", "three"]), ("b.suite.yaml", ["five"]),
    ]  # fmt: skip
    assert change.title == "copy 3 tests"
    assert (controller.remember(change, 2), controller.can_undo) == ("", False), "no file was another one after it"
    change.undo.append(WrittenFile(tmp_path / "a.suite.yaml", b"", ""))
    assert controller.remember(change, 1) == "Not all: 3 tests copied to a.suite.yaml"
    for number in range(MOST_UNDONE):
        moved = controller.change("moved", [row(controller, "two")])
        moved.undo.append(WrittenFile(tmp_path / f"{number}.suite.yaml", b"", ""))
        controller.remember(moved, 1)
    undone = []
    while controller.can_undo:
        undone.append(controller.last_change()[0])
    assert undone == [f"two moved in {number}.suite.yaml" for number in reversed(range(MOST_UNDONE))]
    assert isinstance(controller.movable(row(controller, "a")), str)
    assert controller.movable(row(controller, "two")) == row(controller, "two")
    assert controller.tree is not None
    controller.tree.worst_first = True
    assert isinstance(controller.movable(row(controller, "two")), str)


def test_a_file_that_another_program_wrote_is_said_when_it_has_been_checked(
    controller: SuitesController, read: Overview, tmp_path: Path
) -> None:
    a = read.suites[0].loaded
    controller.file_changed(a.path)
    assert controller.checked_changes() == [], "it has not been read yet"
    controller.take_overview(read)
    own = Problem(str(a.path), 1, 1, 1, 2, "error", "x", "wrong")
    elsewhere = replace(own, file=str(tmp_path / "rows.csv"))
    assert controller.take_problems(read, {a.key: (own, elsewhere)})
    assert not controller.take_problems(read, {a.key: (own, elsewhere)})
    assert controller.checked_changes() == [(a.key, "a.suite.yaml", 1)]
    assert controller.checked_changes() == []
    # It keeps what is known of it while it is read and checked again, unless it is another file by then.
    controller.take_overview(read)
    assert controller.tree is not None
    assert [len(one.problems) for one in controller.tree.overview.suites] == [2, 0, 1]
