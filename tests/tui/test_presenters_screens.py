"""What the presenters make of real runs: every line fits, nothing foreign is raw, the figures are right."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.analysis.function_exceptions import Raised
from agenteval_tui.analysis.overview import Overview, overview
from agenteval_tui.analysis.run_facts import RunFacts
from agenteval_tui.analysis.workbench import Impact, Workbench
from agenteval_tui.core.display import displayable
from agenteval_tui.core.errors import AgentevalError, Fix, TextEdit
from agenteval_tui.core.numbers import rate_bar
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.annotations import Note
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.search import HistoryQuery
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.events import RunRef, RunState, StreamPart
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.traceback import RaisedException, Traceback
from agenteval_tui.tui.presenters import status_style
from agenteval_tui.tui.presenters.block_layout import Range, lay_out
from agenteval_tui.tui.presenters.completion_rows import completion_lines
from agenteval_tui.tui.presenters.config_lines import coloured_lines
from agenteval_tui.tui.presenters.editor_rows import dataset_lines
from agenteval_tui.tui.presenters.evidence_pane import looked_rows, tool_text_lines
from agenteval_tui.tui.presenters.highlights import STYLES, MarkKind, marked_text
from agenteval_tui.tui.presenters.history_rows import ExecutionRows, RunRows, execution_summary
from agenteval_tui.tui.presenters.impact import flip_line, impact_in_one_line, impact_lines, problem_lines
from agenteval_tui.tui.presenters.run_header import agreement, miss_lines, reason_line, run_header
from agenteval_tui.tui.presenters.run_rows import run_heading as live_heading
from agenteval_tui.tui.presenters.run_stream import PARTS, RunStream, parts_of
from agenteval_tui.tui.presenters.run_tabs import raised_lines
from agenteval_tui.tui.presenters.status_style import (
    flaky,
    glyph,
    of_runs,
    word,
    word_of_run,
)
from agenteval_tui.tui.presenters.suite_detail import TestRuns, detail, title_of
from agenteval_tui.tui.presenters.suite_query import Query
from agenteval_tui.tui.presenters.suite_tree import SuiteTree
from agenteval_tui.tui.presenters.tabs import pane_title
from agenteval_tui.tui.presenters.test_status import outcome_of, recent_rate
from agenteval_tui.tui.presenters.tool_results import result_body
from agenteval_tui.tui.presenters.view_lines import wrapped
from agenteval_tui.tui.screens.agents_controller import AgentRows
from agenteval_tui.tui.styled_text import (
    LONGEST,
    Line,
    cell_len,
    error_lines,
    labelled,
    longest_that_fits,
    paragraph,
    plain,
    width_of,
)
from agenteval_tui.uxon.complete import Completion
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.views import model
from agenteval_tui.views.failure import Miss, failures

pytestmark = pytest.mark.xdist_group("presenters")

WIDTHS = st.integers(10, 200)
FOREIGN = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\x1b\x9b\u202e\u200b\n\t\r[]日本e\u0301")), max_size=120
)


@pytest.fixture(scope="module")
def ran(samples_ran: tuple[Path, Path]) -> Iterator[tuple[Path, Store]]:
    """The sample suites, run once, and the history they ran into."""
    suites, db = samples_ran
    store = Store.open(db, read_only=True)
    yield suites, store
    store.close()


def benches(store: Store) -> list[Workbench]:
    rows = store.run_rows(store.run_ids())
    return [Workbench.open(store, row.id) for row in rows[::7]]


def check(lines: list[Line] | tuple[Line, ...], width: int) -> None:
    for line in lines:
        assert width_of(line) <= width, (width, plain(line))
        text = plain(line)
        assert "\n" not in text
        assert "\t" not in text
        assert displayable(text) == text


def test_a_config_to_read_is_not_cut() -> None:
    config = '{\n  "metrics": [{"type": "TextMatch", "contains": "a long text that is looked for"}]\n}'
    lines = coloured_lines(config, 30)
    assert "".join(plain(line).strip() + " " for line in lines).split() == config.split()
    assert [style for line in lines for text, style in line if text == '"contains"'] == ["json-key"]
    assert plain(coloured_lines("1" * 9_000, 80)[-1]) == "… 1,000 more characters"


def test_columns_have_room_for_wide_letters(tmp_path: Path) -> None:
    """A column is as many cells wide as its longest text takes, not as many as that has letters."""
    name = "東京タワーの案内"
    agents = [Configured(name, {"kind": "demo"}, tmp_path / "agents.yaml", 1)]
    lines = [
        AgentRows(agents, {}).line(0, 100, focused=False),
        *completion_lines([Completion(name, "tool", "", (), 0, 0)], 0, 60),
        dataset_lines([{"name": name, "n": 1}], "", 60)[1],
    ]
    assert [name in plain(line) for line in lines] == [True] * 3
    entries = result_body(json.dumps({name: 1, "n": 2}, ensure_ascii=False)).text.split("\n")
    assert {cell_len(line[:-1]) for line in entries} == {cell_len(name) + 2}


def test_the_rates_of_an_edit_are_rounded_as_everywhere() -> None:
    was = Impact(3, 1, 3, {"passed": 1, "failed": 2}, {"passed": 2, "failed": 1}, [("r", "failed", "passed")])
    almost = replace(was, total=1_000, done=1_000, now={"passed": 999, "failed": 1}, then={"passed": 1_000}, flips=[])
    now, then = (plain(line).split(" %")[0].split()[-1] for line in impact_lines(was, True, 60)[1:])
    assert (now, then) == ("33", "67")
    now, then = (plain(line).split(" %")[0].split()[-1] for line in impact_lines(almost, True, 60)[1:])
    assert (now, then) == ("99.9", "100")


def test_the_message_of_a_cause_is_not_cut() -> None:
    """The run's error has the message of the first exception only."""
    why = "the order W1042 is in the table of orders, but its customer is not in the table of customers"
    first = RaisedException("ValueError", "no answer")
    traceback = Traceback((first, RaisedException("KeyError", why, relation="cause", parent=0)))
    lines, _ = raised_lines(RunError("program", "ValueError: no answer", traceback=traceback), [], 50)
    check(lines, 50)
    assert f"caused by KeyError: {why}" in " ".join(" ".join(map(plain, lines)).split())


def test_what_a_probe_printed_before_it_raised_is_not_cut() -> None:
    """Nothing else of the run has it."""
    printed = "the order W1042 is in the table of orders, but its customer is not in the table of customers"
    raised = Raised("probe", "orders", Traceback(()), output=f"counting\n{printed}")
    lines, _ = raised_lines(None, [raised], 40)
    check(lines, 40)
    assert printed in " ".join(" ".join(map(plain, lines)).split())


@given(text=FOREIGN, width=WIDTHS)
def test_texts_fit_and_are_harmless(text: str, width: int) -> None:
    check(paragraph(text, width), width)
    check(paragraph(text, width, indent=6), width)
    check(labelled("Prompt", text, width), width)
    check(error_lines(AgentevalError("what " + text, where=text, fix=text), width), width)
    check(coloured_lines('{"a": "' + text + '"} // ' + text, width), width)
    check([flip_line(text, 3, text, "failed", "passed", width)], width)
    fix = Fix(text, (TextEdit(0, 0, text),))
    found = [Diagnostic("error", "syntax", text, 0, len(text), fix), Diagnostic("warning", "x", text, 0, 0, None)]
    check(problem_lines(None, found, text, width, 1), width)
    for room in (1, 2, 3, 6):
        lines = problem_lines(None, found * 3, text, width, 4, room)
        check(lines, width)
        assert len(lines) <= room


def test_problems_that_have_no_room_are_counted() -> None:
    found = [Diagnostic("error", "syntax", f"Problem {at}.", at, at + 1, Fix("fix it", ())) for at in range(4)]

    def said(room: int | None, most: int = 4) -> list[str]:
        return [plain(line).strip() for line in problem_lines(None, found, "x" * 9, 40, most, room)]

    whole = said(None)
    assert len(whole) == 9
    assert "more" not in whole[-1]
    assert said(9) == whole
    assert said(8) == [*whole[:7], "… 1 more"]
    assert said(6) == [*whole[:5], "… 2 more"]
    assert said(6, most=1) == [*whole[:3], "… 3 more"]
    assert said(3) == [*whole[:2], "… 3 more"]


@given(text=FOREIGN, width=WIDTHS, data=st.data())
def test_marked_text_keeps_all_of_a_text_and_fits(text: str, width: int, data: st.DataObject) -> None:
    place = st.integers(0, len(text))
    kinds = st.sampled_from(["hit", "miss", "near"])
    marks: Any = data.draw(st.lists(st.tuples(place, place, kinds).map(lambda m: (*sorted(m[:2]), m[2])), max_size=5))
    lines = marked_text(text, marks, width, most=1000)
    check(lines, width)

    def letters(shown: str) -> list[str]:
        return sorted(char for char in shown if not char.isspace() and char not in "[]‸")

    assert letters("".join(map(plain, lines))) == letters(displayable(text))


@pytest.mark.parametrize("kind", ["hit", "miss", "near"])
@pytest.mark.parametrize("colours", [True, False])
def test_only_without_colours_has_a_mark_brackets(
    monkeypatch: pytest.MonkeyPatch, kind: MarkKind, colours: bool
) -> None:
    """An agent's words are shown as they are; where something is missing there is nothing to colour, but a caret."""
    monkeypatch.setattr(status_style, "COLOURS", colours)
    text = "Its load is 0.7."
    (line,) = marked_text(text, [(4, 15, kind), (16, 16, kind)], 60)
    rows = lay_out(text, 0, 16, 60, ranges=[Range(4, 15, STYLES[kind], signs=kind != "hit")])
    brackets = kind != "hit" and not colours
    missing = "" if kind == "hit" else "‸"
    marked = "Its [load is 0.7]." if brackets else text
    assert plain(line) == marked + missing
    assert "".join(plain(row.cells) for row in rows) == marked
    assert any("load is 0.7" in shown and style == STYLES[kind] for shown, style in line)


def test_a_mark_far_down_a_long_text_is_in_sight() -> None:
    for text in ("word " * 200_000 + "NEEDLE" + " word" * 200_000, "line\n" * 200_000 + "NEEDLE" + "\nline" * 9):
        at = text.index("NEEDLE")
        lines = marked_text(text, [(0, 4, "hit"), (at, at + 6, "miss")], 60)
        assert any(("NEEDLE", STYLES["miss"]) in line for line in lines)
        assert len(lines) <= 42
        assert "above" in plain(lines[0])
    lines = marked_text("line\n" * 100, [], 60)
    assert len(lines) == 41
    assert plain(lines[-1]) == "… 61 more lines"


def test_a_very_long_text_is_cut_and_says_so() -> None:
    lines = paragraph("ä" * (LONGEST + 5), 80)
    assert plain(lines[-1]) == "… 5 more characters"
    assert len(lines) == LONGEST // 80 + 1


@pytest.mark.sweep
@pytest.mark.parametrize("width", [10, 33, 40, 60, 80, 139, 200])
def test_the_panes_of_inspect_fit_for_real_runs(ran: tuple[Path, Store], width: int) -> None:
    for bench in benches(ran[1]):
        results = bench.judge_all()
        for number, _ in enumerate(bench.criteria):
            result = bench.judge(number)
            check(looked_rows(bench, number, result, results, width).lines, width)
            check(tool_text_lines(bench, result, width), width)
        left, right = run_header(bench, results, RunFacts(), width, place="failure 1 of 3", keys="< p  n >")
        assert width_of(left) + width_of(right) <= max(width, 40)
        check([reason_line(bench, None, results, width)], width)


LONG = "Dear customer, the parcel is on its way. " * 4


@pytest.mark.parametrize(
    ("miss", "width", "shown"),
    [
        (Miss("c", "f q", '"a"', '"b"'), 80, 'f q  expected "a"  got "b"'),
        (Miss("c", "f q", '"a"', '"b"'), 22, 'expected "a"  got "b"'),
        (Miss("c", "", '"a b"', '"a  b"', note="a space more"), 60, 'expected "a b"  got "a b"  (a space more)'),
        (Miss("c", "", '"aaaaaaaaaaaa"', '"AAA"', note="in case"), 34, 'expected "aaaaaaaaaaaa"  got "AAA"'),
        (Miss("c", "", '"aaaaaaaaaaaa"', '"AAA"', note="in case"), 32, 'expected "aaaaaaaaaaaa": in case'),
        (Miss("c", "", '"aaaaaaaaaaaa"', '"AAA"', note="in case"), 24, "in case"),
        (
            Miss("c", "", f'"{LONG}Rob, Bern"', f'"{LONG}Bob, Bern"', at=len(LONG) + 1), 70,
            'expected …ts way. Rob, Bern"  got …ts way. Bob, Bern"',
        ),
        (Miss("c", "", f'"W1{LONG}"', f'"W2{LONG}"', at=2), 50, 'expected "W1Dear customer…  got "W2Dear customer…'),
    ],
)  # fmt: skip
def test_the_reason_in_one_line_keeps_what_decides(miss: Miss, width: int, shown: str) -> None:
    assert plain(longest_that_fits(miss_lines(miss, width), width)) == shown


def test_what_inspect_says_of_a_failed_run(ran: tuple[Path, Store]) -> None:
    store = ran[1]
    row = next(row for row in store.run_rows(store.run_ids()) if row.test_id == "order-status")
    bench = Workbench.open(store, row.id)
    results = bench.judge_all()
    number = next(n for n, one in enumerate(results) if one.outcome == "failed")
    shown = "\n".join(map(plain, looked_rows(bench, number, results[number], results, 70).lines))
    assert f"criteria of this test {len(results)}" in shown
    assert f"▸ ✗ {results[number].criterion}" in shown
    assert agreement("passed", results) == "graded with today's criteria: failed"
    assert agreement("failed", results) == ""
    assert agreement("error", results) == ""
    text = "\n".join(map(plain, tool_text_lines(bench, results[number], 70)))
    assert f"{len(bench.transcript.tool_calls)} tool call" in text
    assert "Toolname:" in text


def test_a_run_that_only_its_score_failed_is_not_said_to_pass_today(ran: tuple[Path, Store]) -> None:
    """All its criteria passed, and together they did not reach the threshold of the test."""
    store = ran[1]
    row = next(row for row in store.run_rows(store.run_ids()) if row.status == "passed")
    bench = Workbench.open(store, row.id)
    results = [replace(result, score=0.796) for result in bench.judge_all()]
    bench.run = replace(row, status="failed", score=0.796)
    left, _ = run_header(bench, results, RunFacts(pass_threshold=0.8), 100)
    assert "score 0.796, below 0.8" in plain(left)
    assert "today" not in plain(left)
    line = plain(reason_line(bench, results[0], results, 80, 0.8))
    assert line == "✗ score 0.796 is below the test's threshold 0.8"
    assert "passed" in plain(reason_line(bench, results[0], results, 80))


@pytest.mark.parametrize("status", ["queued", "running", "grading"])
def test_a_run_that_has_not_ended_is_not_judged(ran: tuple[Path, Store], status: str) -> None:
    row = next(row for row in ran[1].run_rows(ran[1].run_ids()) if row.test_id == "order-status")
    bench = Workbench.open(ran[1], row.id)
    bench.run = replace(row, status=status)
    assert {result.outcome for result in bench.judge_all()} == {Outcome.SKIPPED}
    assert "has not ended" in bench.judge(0).message


@pytest.mark.sweep
@pytest.mark.parametrize("width", [10, 30, 50, 79, 118, 200])
def test_the_tree_and_its_details_fit_and_count_right(ran: tuple[Path, Store], width: int) -> None:
    seen: Overview = overview([ran[0]], ran[1])
    assert seen.tests == sum(len(one.loaded.suite.tests) for one in seen.suites if one.loaded.suite)
    tree = SuiteTree(seen)
    for node in list(tree.rows):
        tree.set_open(node, True)
    assert tree.count() == len(seen.suites) + seen.tests + seen.criteria
    for index, node in enumerate(tree.rows):
        check([tree.line(index, width, focused=index % 2 == 0)], width)
        runs: list[RunRow] = []
        # Whatever there is no room for, a row says what it is of.
        name = node.suite_name if node.test is None else node.criterion_name or node.test.id
        assert name[: max(width - 12, 0)][:8] in plain(tree.line(index, width, focused=False))
        check([pane_title(*title_of(node), width, True)[0]], width)
        if node.test is not None:
            runs = ran[1].runs_of_test(node.suite.loaded.key, node.test.id, 20)
            summary = node.suite.summaries[node.test.id]
            passed, n = recent_rate(summary)
            assert (passed, n) == (
                sum(run.status == "passed" for run in runs),
                sum(run.status in ("passed", "failed") for run in runs),
            )
            states = {"flaky", runs[0].status} if 0 < passed < n else {runs[0].status}
            assert outcome_of(summary) in states
        check(detail(node, TestRuns(runs, failures(runs, ran[1].results)), 1_795_262_400_000, width), width)


def test_runs_that_have_not_ended_are_no_reason_to_say_that_nothing_failed(ran: tuple[Path, Store]) -> None:
    tree = SuiteTree(overview([ran[0]], ran[1]))
    node = next(node for node in tree.rows if node.test is not None)
    assert node.test is not None
    row = ran[1].runs_of_test(node.suite.loaded.key, node.test.id, 1)[0]

    def said(*statuses: str) -> str:
        return "\n".join(map(plain, detail(node, TestRuns([replace(row, status=one) for one in statuses]), 0, 80)))

    assert "why it fails" not in said("running", "planned")
    assert "Nothing has failed so far." in said("running", "passed")
    assert "Nothing failed in the last runs." in said("passed", "passed")
    # The middle of two times is between them, as in every other figure of these runs.
    pair = [replace(row, duration_ms=took) for took in (1_000, 3_000)]
    assert "p50 2.0 s" in "\n".join(map(plain, detail(node, TestRuns(pair), 0, 80)))


def test_filters_of_the_tree(ran: tuple[Path, Store]) -> None:
    tree = SuiteTree(overview([ran[0]], ran[1]))

    def shown(text: str) -> list[str]:
        tree.query = Query.parse(text)
        tree.arrange()
        return [node.test.id for node in tree.shown_tests() if node.test]

    assert shown("order-stat") == ["order-status"]
    assert shown("ORDER-STAT outcome:failed") == ["order-status"]
    assert shown("order-stat outcome:passed") == []
    assert shown("nothing has this") == []
    assert tree.rows == []
    assert "order-status" in shown("")
    assert not Query.parse("tag: unknown:x")
    assert not Query.parse("tag:")
    for node in list(tree.rows):
        if node.kind == "suite":
            tree.set_open(node, False)
    assert shown("") == []
    assert shown("order-status") == ["order-status"]  # a filter looks into what is folded


@pytest.mark.sweep
@pytest.mark.parametrize("width", [10, 40, 80, 120, 200])
def test_rows_of_the_history_fit(ran: tuple[Path, Store], width: int) -> None:
    store = ran[1]
    runs, executions = RunRows(store.run_ids()), ExecutionRows(store.execution_ids())
    notes = {number: Note(1, 1234, number % 6 or None, True) for number in range(0, 1000, 2)}
    runs.put(0, store.run_rows(runs.ids_of(0)), notes)
    executions.put(0, store.execution_rows(executions.ids_of(0)), notes)
    for rows in (runs, executions):
        rows.marked = {rows.key(0)}
        check([rows.heading(width)], width)
        for index in range(rows.count()):
            check([rows.line(index, width, focused=False)], width)
            assert rows.index_of(rows.key(index)) == index
        assert width < 40 or plain(rows.line(0, width, focused=False))[0] in "●*"
    execution = store.execution("last")
    check([execution_summary(execution, width)], width)
    odd = replace(execution, title="a\x1b]0;b\x07", message="\u202ec", kind="import", source="\x9b1m")
    odd = replace(odd, options={"scheduler": "tcp://\x1b[1m"})
    check([execution_summary(odd, width), executions.draw(odd, None, (" ", ""), width, execution)], width)


def test_what_a_row_says_as_the_one_above_it_is_dim(ran: tuple[Path, Store]) -> None:
    runs = RunRows(array("q", [1, 2]))
    one = ran[1].run_rows(ran[1].run_ids())[0]
    why = "Says it: the answer is too long by "
    first = replace(one, rowid=1, test_id="refund", status="failed", why=f"{why}five words")
    runs.put(0, [first, replace(first, rowid=2, repetition=2, why=f"{why}seven words")], {})
    above, below = (runs.line(index, 200, focused=False) for index in range(2))
    assert (f"{why}five words", "") in above
    assert (why, "dim") in below
    assert ("seven words", "") in below
    assert [style for text, style in below if text.strip() == "refund"] == ["dim"]
    assert [style for text, style in above if text.strip() == "refund"] == [""]


def test_an_execution_has_a_bar_of_its_rate_and_a_glyph_only_where_it_did_not_finish(ran: tuple[Path, Store]) -> None:
    row = replace(ran[1].execution("last"), passed=3, failed=1, errors=0, status="finished")
    rows = ExecutionRows(array("q", [row.rowid]))
    rows.put(0, [row], {})
    line = plain(rows.line(0, 120, focused=False))
    assert "━━━━━━──" in line
    assert "75 %" in line
    assert line[:2].strip() == ""
    rows.put(0, [replace(row, status="interrupted")], {})
    assert plain(rows.line(0, 120, focused=False))[1] == "–"
    assert all(word in plain(rows.heading(120)) for word in ("started", "duration"))
    # In a few columns there is room for what was run and its rate.
    assert plain(rows.line(0, 20, focused=False)).split() == ["–", "samples", "75", "%"]
    assert plain(rows.heading(20)).split() == ["execution", "rate"]


def test_rows_that_were_deleted_do_not_move_the_others(ran: tuple[Path, Store]) -> None:
    store = ran[1]
    ids = store.run_ids()
    gone = ids[3]
    wanted: list[int] = []
    rows = RunRows(ids, wanted.append)
    assert plain(rows.line(3, 60, focused=False)) == " …"
    assert wanted == [0], "a page is asked for when a row of it is painted; painting reads nothing"
    rows.put(0, store.run_rows([one for one in rows.ids_of(0) if one != gone]), {})
    assert rows.row(3) is None
    assert "deleted" in plain(rows.line(3, 60, focused=False))
    for index in (2, 4, 5):
        row = rows.row(index)
        assert row is not None
        assert row.rowid == ids[index]


def test_rows_that_can_not_be_read_are_said_so_until_they_can(ran: tuple[Path, Store]) -> None:
    wanted: list[int] = []
    rows = ExecutionRows(ran[1].execution_ids(), wanted.append)
    rows.put(0, (), {})
    assert "not readable" in plain(rows.line(0, 60, focused=False))
    assert wanted == [], "it is not tried again with every painting"
    rows.put(0, ran[1].execution_rows(rows.ids_of(0)), {})
    assert "samples" in plain(rows.line(0, 60, focused=False))


def test_only_some_pages_are_held() -> None:
    rows = RunRows(array("q", range(100 * 40)))
    for page in range(40):
        rows.put(page, (), {})
    assert sum(rows.has(page) for page in range(40)) == 30
    assert rows.has(39)
    assert not rows.has(0)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("where is it ", RunFilter(text="where is it ")),
        ("outcome:fail,err tag:Smoke x", RunFilter("x", ("failed", "error"), tags=("Smoke",))),
        ('test:"a b" agent:x cause:tool', RunFilter(test_part="a b", agent_part="x", cause_part="tool")),
        ("since:2h before:1970-01-02T00:00+00:00", RunFilter(since_ms=-6_200_000, before_ms=86_400_000)),
        ("is:baseline is:labelled kind:import", RunFilter(kind="import", baseline=True, labelled=True)),
        ('agent: http://x a:b "two words"', RunFilter('http://x a:b "two words"')),
    ],
)
def test_what_is_typed_is_a_filter(typed: str, wanted: RunFilter) -> None:
    query = HistoryQuery.parse(typed)
    assert (query.filter(1_000_000), query.problem, bool(query)) == (wanted, "", True)


@pytest.mark.parametrize("typed", ["outcome:nice", "since:soon", "kind:x", "is:x"])
def test_what_is_no_filter_is_said(typed: str) -> None:
    assert HistoryQuery.parse(typed).problem


@given(text=FOREIGN)
def test_anything_can_be_typed(text: str) -> None:
    query = HistoryQuery.parse(text)
    assert isinstance(query.problem, str)
    query.filter(0, failed_only=True)


REF = RunRef("r1", "test", "Test", "variation", 0, 1, "agent")


@given(text=FOREIGN, width=WIDTHS)
def test_a_streaming_run_fits_and_is_harmless(text: str, width: int) -> None:
    ref = replace(REF, test=text, variation=text, agent=text)
    parts = [
        StreamPart("text", text),
        StreamPart("reasoning", text),
        StreamPart("tool", key=0, name=text, arguments=text, result=text, done=True, error=True),
        StreamPart("tool", key=1, name=text, arguments='{"' + "a" * 300 + '": [1]}'),
        StreamPart("text", text, cut=True),
    ]
    run = RunState(ref, "running", 2, 1, parts=parts, dropped=3, retries=(text,), retry_in_s=1.5, error=text)
    check(RunStream().lines(run, width), width)
    check([live_heading(run, 5000, width)], width)
    run.status, run.failed, run.score, run.duration_ms = "failed", ((text, text),), 0.5, 1234.0
    check(RunStream().lines(run, width), width)
    check([live_heading(run, 5000, width)], width)


def test_a_stored_transcript_of_many_parts_shows_its_end(ran: tuple[Path, Store]) -> None:
    parts = [StreamPart("text", f"part {number}.") for number in range(PARTS + 7)]
    shown = [plain(line) for line in RunStream().lines(RunState(REF, "passed"), 80, parts)]
    assert shown[0] == " … 7 earlier parts; press enter for the whole transcript"
    assert "part 6." not in "\n".join(shown)
    assert shown[-1].endswith(f"part {PARTS + 6}.")
    bench = benches(ran[1])[0]
    found = parts_of(bench.transcript)
    assert sum(part.kind == "tool" for part in found) == len(bench.transcript.tool_calls)


@pytest.mark.sweep
@pytest.mark.parametrize("width", [10, 40, 52, 80])
def test_impact_counts_and_fits(width: int) -> None:
    impact = Impact(5, 2, 5, {"passed": 2, "failed": 3}, {"passed": 3, "needs_review": 2})
    impact.flips = [("a", "failed", "passed"), ("b", "failed", "needs_review"), ("c", "failed", "needs_review")]
    for edited in (True, False):
        check(impact_lines(impact, edited, width), width)
        check(impact_in_one_line(impact, edited, width), width)
        check(impact_lines(None, edited, width), width)
        check(impact_lines(Impact(0, 0), edited, width), width)
    text = "\n".join(map(plain, impact_lines(impact, True, 90)))
    assert "if saved: 5 runs of 2 tests" in text
    assert text.splitlines()[1:] == [" now  ✗✗✗✓✓  40 % ", " then ✓??✓✓  60 %  +1 ? 2  F9 list"]
    impact.done = 3
    assert "3 of 5 runs" in plain(impact_lines(impact, True, 90)[0])


def test_a_narrow_pane_loses_words_but_no_figure() -> None:
    impact = Impact(3, 1, 3, {"passed": 0, "failed": 3})
    said = [plain(impact_lines(impact, False, width)[0]) for width in (40, 34, 28, 18)]
    assert said == [
        " stored: 3 runs of 1 test   ✓ 0  ✗ 3",
        " stored: 3 runs of 1 test ✓ 0  ✗ 3",
        " stored: 3 runs   ✓ 0  ✗ 3",
        " stored: ✓ 0  ✗ 3",
    ]
    new = Impact(3, 1, 3, {}, {"passed": 1, "failed": 2})
    assert plain(impact_lines(new, True, 30)[0]) == " if saved: 3 runs   ✓ 1  ✗ 2"
    assert plain(impact_in_one_line(new, True, 20)[0]) == " if saved: ✓ 1  ✗ 2"
    failed = CriterionResult("C", "failed", 0.5)
    said = [plain(problem_lines(failed, (), "", width)[0]) for width in (36, 34, 22)]
    assert said == [" this run ✗ failed 0.50   problems 0", " ✗ failed 0.50   problems 0", " ✗ 0.50  problems 0"]
    assert plain(problem_lines(None, (), "", 15)[0]) == " problems 0"
    # A criterion that checks nothing has not passed.
    nothing = CriterionResult("C", Outcome.PASSED, None)
    assert plain(problem_lines(nothing, (), "", 40)[0]) == " this run – checks nothing   problems 0"
    assert plain(problem_lines(nothing, (), "", 20)[0]) == " –  problems 0"


def test_now_and_then_stand_run_below_run() -> None:
    impact = Impact(15, 1, 15, {"failed": 15}, {"passed": 15})
    impact.flips = [(str(number), "failed", "passed") for number in range(15)]
    now, then = map(plain, impact_in_one_line(impact, True, 60))
    assert now == " now  ✗✗✗✗✗✗✗✗✗✗✗✗✗✗✗   0 % "
    assert then == " then ✓✓✓✓✓✓✓✓✓✓✓✓✓✓✓ 100 %  +15  F9 list"
    # Of many runs a strip shows the shares; what is rare takes a cell.
    many = Impact(200, 1, 200, {"passed": 150, "failed": 50}, {"passed": 189, "failed": 11})
    many.flips = [(str(n), "failed", "passed") for n in range(40)] + [("x", "passed", "failed")]
    now, then = map(plain, impact_in_one_line(many, True, 80))
    assert [now.count(sign) for sign in "✓✗"] == [30, 10]
    assert [then.count(sign) for sign in "✓✗"] == [37, 3]
    assert then.endswith("+40 −1  F9 list")
    check(impact_in_one_line(many, True, 20), 20)


def test_outcomes_have_a_sign_and_a_word() -> None:
    assert {glyph(x) for x in ("passed", "failed", "error", "queued", "running")} == {"✓", "✗", "!", "○", "◐"}
    assert word("needs_review") == "review"
    assert word_of_run("skipped", "not graded yet") == "not graded yet"  # it was brought in without a verdict
    assert (word_of_run("skipped", ""), word_of_run("failed", "not graded")) == ("skipped", "failed")
    assert flaky(1, 2)
    assert not flaky(2, 2)
    assert not flaky(0, 2)
    assert [of_runs(*x) for x in ((1, 1, 0), (0, 2, 0), (0, 0, 1), (3, 0, 0), (0, 0, 0))] == [
        "flaky", "failed", "error", "passed", "",
    ]  # fmt: skip
    bars = [rate_bar(rate, 4) for rate in (0, 0.01, 0.5, 0.99, 1)]
    assert bars == ["────", "━───", "━━──", "━━━─", "━━━━"], "full, or empty, only where it really is"


def test_a_text_that_wraps_continues_under_what_follows_its_label() -> None:
    words = model.text("tools      ", "describe_table, query, find_customer, list_orders, search_products, get_reviews")
    assert [plain(line) for line in wrapped(words, 40, 1, 11)] == [
        " tools      describe_table, query,",
        "            find_customer, list_orders,",
        "            search_products, get_reviews",
    ]
    figures = model.text("5/5    ", "100 %   score 1.00   1.0 s   120 tokens   $0.0020")
    assert plain(wrapped(figures, 36)[1]) == "120 tokens   $0.0020", "no space is left of the gap between two figures"
    own = model.text("a line\n  of its own, which is so long that it wraps")
    assert [plain(line) for line in wrapped(own, 24)][1:] == ["  of its own, which is", "so long that it wraps"]
    assert all(width_of(line) <= 12 for line in wrapped(words, 12, 1, 11)), "there is no room to hang"
