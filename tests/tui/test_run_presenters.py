"""The cells of an execution, its figures, its errors, and what a plan says: without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from test_snapshots_runs import REFUSED, a_busy_execution

from agenteval_tui.agents.permission import TrustRequirement
from agenteval_tui.runs import events
from agenteval_tui.runs.events import RunRef, RunState, StreamPart
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.presenters.run_grid import RunGrid, legend
from agenteval_tui.tui.presenters.run_rows import (
    Expected,
    agents_of,
    facts,
    run_heading,
    spent_text,
    status_cells,
    waiting_counts,
)
from agenteval_tui.tui.presenters.run_stream import RunStream, parts_of
from agenteval_tui.tui.presenters.transcript_blocks import blocks_of
from agenteval_tui.tui.presenters.trust_lines import TrustQuestion, trust_lines
from agenteval_tui.tui.screens.plan import NO, read_options
from agenteval_tui.tui.screens.run_errors import error_groups, group_detail, group_line
from agenteval_tui.tui.styled_text import plain, width_of

TEXT = st.text(max_size=40)


def a_view(*refs: RunRef) -> ExecutionView:
    view = ExecutionView()
    view.apply(events.Planned(1, "x", "title", refs, 8, 0))
    return view


def test_rows_are_told_apart_by_variation_row_and_suite() -> None:
    refs = [RunRef(f"{v}{r}{n}", "t", "T", v, r, n, "a") for v in ("", "x") for r in (1, 2) for n in (1, 2)]
    again = [RunRef(f"again{n}", "t", "T", "", 1, n, "a") for n in (1, 2)]  # of another suite
    grid = RunGrid(a_view(*refs, *again))
    assert [len(group) for group in grid.groups] == [2, 2, 2, 2, 2]
    names = [plain(grid.line(index, 40, focused=False)).split("○")[0].strip() for index in range(5)]
    assert names == ["t #1", "t #2", "t · x #1", "t · x #2", "t #1"]
    owned = [replace(ref, suite="Shop") for ref in refs[:4]] + [replace(ref, suite="Support") for ref in again]
    grid = RunGrid(a_view(*owned, RunRef("u", "u", "U", "", 0, 1, "a", "Shop")))
    names = [plain(grid.line(index, 40, focused=False)).split("○")[0].strip() for index in range(grid.count())]
    assert names == ["t · Shop #1", "t · Shop #2", "t · Support #1", "u"]


def test_a_rate_is_not_rounded_to_the_gate_that_it_misses() -> None:
    refs = [RunRef(f"t{n}", "t", "T", "", 0, n, "a", gate=0.67) for n in (1, 2, 3)]
    view = a_view(*refs)
    for seq, ref in enumerate(refs, 2):
        view.apply(events.Graded(seq, ref.run, "failed" if seq == 2 else "passed", 1.0, (), 5.0))
    assert plain(RunGrid(view).line(0, 100, focused=False)).split()[-6:-1] == ["66.7", "%", "gate", "67", "%"]


def test_thousands_are_set_apart() -> None:
    refs = [RunRef(f"t{n}", "t", "T", "", 0, n, "a") for n in range(1200)]
    view = a_view(*refs)
    for seq, ref in enumerate(refs[:1100], 2):
        view.apply(events.Graded(seq, ref.run, "passed", 1.0, (), 5.0))
    said = "".join(text for text, _ in status_cells(view, 100))
    assert "1,100 of 1,200" in said
    assert said.count("1,100") == 2


def test_a_gate_stands_behind_its_row_and_what_missed_it_below_the_bar() -> None:
    gated = [RunRef(f"{test}{n}", test, test, "", 0, n, "a", gate=0.6) for test in ("good", "bad") for n in (1, 2, 3)]
    rows = [RunRef(f"row{n}", "rows", "rows", "", n, 1, "a", gate=0.5) for n in (1, 2)]
    view = a_view(*gated, *rows, RunRef("p", "plain", "plain", "", 0, 1, "a"))
    signs = {"good": "++x", "bad": "+xx", "row": "+x", "p": "x"}
    names = [
        (f"{name}{at}" if name != "p" else name, sign) for name, of in signs.items() for at, sign in enumerate(of, 1)
    ]
    for seq, (name, sign) in enumerate(names, 2):
        view.apply(events.Graded(seq, name, "passed" if sign == "+" else "failed", 1.0, (), 5.0))
    grid = RunGrid(view)
    for width in (60, 100):
        lines = [plain(grid.line(index, width, focused=False)).rstrip() for index in range(grid.count())]
        assert lines[0].endswith(("gate 60 % ✓", "gate 60 % +"))
        assert lines[1].endswith(("gate 60 % ✗", "gate 60 % x"))
        assert [line.split()[-3:] for line in lines[2:4]] == [["gate", "50", "%"]] * 2, "its rows are measured together"
        assert "gate" not in lines[4]
    assert not any("gate" in plain(line) for line in facts(view, ["a"], Expected(), (), 100)), "it has not ended"
    view.apply(events.Ended(50, "finished", "", 10))
    (said,) = [plain(line) for line in facts(view, ["a"], Expected(), (), 100) if "gate" in plain(line)]
    assert "2 of 3 gates reached" in said
    assert said.rstrip().endswith("bad 1/3 gate 60 %")


def test_narrow_names_keep_what_tells_rows_apart() -> None:
    refs = [RunRef(f"{r}", "a-very-long-name-of-a-test", "T", "B: a-large-model", r, 1, "a") for r in (1, 2)]
    grid = RunGrid(a_view(*refs))
    lines = [plain(grid.line(index, 50, focused=False)) for index in (0, 1)]
    assert [("#1" in line, "#2" in line) for line in lines] == [(True, False), (False, True)]


def test_names_have_the_room_that_cells_leave() -> None:
    long = "a-test-whose-name-says-all-that-is-to-be-known"
    grid = RunGrid(a_view(*(RunRef(str(n), long, "T", "", 0, n, "a") for n in range(1, 4))))
    assert plain(grid.line(0, 66, focused=False)).strip() == f"{long}  ○ ○ ○"
    grid.column = 1
    assert plain(grid.line(0, 66, focused=True)).strip() == f"{long}  ○ ○ ○"


@given(status=st.lists(st.sampled_from(["passed", "failed", "error", "skipped", "cancelled"]), max_size=200))
def test_a_long_row_says_the_sums_and_fits(status: list[str]) -> None:
    view = a_view(*(RunRef(str(n), "t", "T", "", 0, n, "a") for n in range(1, 300)))
    grid = RunGrid(view)
    for number, outcome in enumerate(status, 1):
        view.apply(events.Graded(0, str(number), outcome, None, (), 1.0))
        grid.note(str(number))
    for column in (0, 150, 298):
        grid.column = column
        for width in (30, 57, 118):
            line = grid.line(0, width, focused=True)
            assert width_of(line) <= width
            assert [style for _, style in line if "reverse" in style], "the chosen cell is in sight"
            assert plain(line) == plain(grid.line(0, width, focused=False)) or column, "it pushes nothing"
    if status.count("failed"):
        assert f"✗{status.count('failed')}" in plain(grid.line(0, 100, focused=False))
    again = RunGrid(view)
    assert again.line(0, 100, focused=False) == grid.line(0, 100, focused=False), "counted alike from the start"


def test_signs_have_words() -> None:
    view = a_busy_execution()
    grid = RunGrid(view)
    assert plain(legend(grid, 80)).split() == ["↻", "retried", "2", "=", "cached", "2", "·", "skipped", "4"]
    text = "\n".join(plain(grid.line(index, 140, focused=False)) for index in range(grid.count()))
    assert "✓↻" in text
    assert "✓=" in text
    assert next(reversed(grid.flying)) == "x0-35"


@pytest.mark.parametrize(
    ("limit", "said"), [(0.004, "$0.0873 of $0.004"), (0.05, "$0.0873 of $0.05"), (0.1, "$0.09 of $0.10")]
)
def test_a_small_limit_is_not_rounded_away(limit: float, said: str) -> None:
    view = a_busy_execution()
    assert view.planned is not None
    view.planned = replace(view.planned, max_cost=limit)
    assert said in "\n".join(map(plain, facts(view, agents_of(view), Expected(), (), 140)))


def test_facts_say_plan_limits_judges_and_who_is_slow() -> None:
    view = a_busy_execution()
    slow = [(one, one.wait_s) for one in view.throttled.values()]
    text = "\n".join(map(plain, facts(view, agents_of(view), Expected(180.0, 60_000, 0.5), slow, 140)))
    assert "65 runs on shop/support" in text
    assert "$0.09 of $1.00" in text
    assert "29.7k of about 60.0k tokens" in text, "the estimate is of agents and judges"
    assert "judges 3,200 tokens $0.0061" in text
    assert "shop/support  concurrency 8 → 4: the server asks for less, again in 12 s" in text
    assert "4 skipped" in plain(status_cells(view, 140))
    assert "about 3:00" not in text, "the title says how long it still takes"
    view.progress = replace(view.progress, eta_s=None)
    assert "about 3:00" in "\n".join(map(plain, facts(view, ["a"], Expected(180.0), (), 140)))
    view.apply(events.Ended(0, "stopped", "the limit of $1.00 was reached"))
    text = "\n".join(map(plain, facts(view, agents_of(view), Expected(), (), 80)))
    assert "stopped: the limit of $1.00 was reached" in text
    assert f"{waiting_counts(view)} runs are left:  press R to resume" in text
    for width in (20, 40, 80, 140):
        assert all(width_of(line) <= width for line in facts(view, ["a"] * 9, Expected(), slow, width, lost=True))


@pytest.mark.parametrize(
    ("spent", "judged", "said"),
    [(0.0, None, "cost nothing"), (None, None, "cost not known"), (0.02, 0.01, "cost $0.03"), (None, 0.01, "$0.01")],
)
def test_what_ended_says_what_it_cost(spent: float | None, judged: float | None, said: str) -> None:
    view = a_view(RunRef("1", "t", "T", "", 0, 1, "a"))
    progress = events.Progress(1, 1, 0, 0, 1, 0, 0, 0, 0, 1.0, None, 10, 2, spent, 1, False, judged_cost=judged)
    view.apply(progress)
    view.apply(events.Graded(0, "1", "passed", 1.0, (), 5.0))
    view.apply(events.Ended(0, "finished", "", at_ms=5_000))
    assert said in plain(facts(view, ["a"], Expected(), (), 140)[0])
    assert "about" not in plain(facts(view, ["a"], Expected(9.0, 900, 0.9), (), 140)[0]), "nothing is left to come"
    assert spent_text(view).endswith(said)


def test_errors_are_grouped_with_remedy_and_runs() -> None:
    groups = error_groups(a_busy_execution())
    assert [(one.retried, len(one.runs)) for one in groups] == [(False, 2), (False, 1), (True, 2), (True, 1)]
    assert groups[0].message == REFUSED
    text = "\n".join(map(plain, group_detail(groups[0], 80)))
    assert "Remedy" in text
    assert "start it, or change `base_url`" in text
    assert "refund-policy · A: small-model #1 run 5" in text
    assert "tried again" in plain(group_line(groups[2], 100))


def test_a_check_that_could_not_be_made_is_said_of_the_run_and_of_the_whole() -> None:
    refs = [RunRef(str(n), "t", "T", "", 0, n, "a") for n in range(1, 5)]
    view = a_view(*refs)
    for run, outcome, missing in (("1", "passed", 1), ("2", "failed", 2), ("3", "error", 4), ("4", "passed", 0)):
        view.apply(events.Graded(0, run, outcome, None, (), 1.0, missing))
    later = ExecutionView()
    later.apply(events.decode_event(events.encode(view.snapshot())))
    for one in (view, later):
        text = "\n".join(map(plain, facts(one, ["a"], Expected(), (), 80)))
        assert "! 3 checks could not run in runs with a verdict" in text
        said = [plain(run_heading(run, 0, 80)) for run in one.runs.values()]
        assert ["could not run" in line for line in said] == [True, True, False, False]
        assert "passed  1 check could not run" in said[0]
    assert "could not" not in "\n".join(map(plain, facts(a_view(*refs), ["a"], Expected(), (), 80)))


def test_the_tools_that_raised_are_named_in_the_line_of_their_run() -> None:
    view = a_view(RunRef("1", "t", "T", "", 0, 1, "a"), RunRef("2", "t", "T", "", 0, 2, "a"))
    view.apply(events.AgentFinished(0, "1", 900.0, "", tools_raised=("find", "stop")))
    view.apply(events.AgentFinished(0, "2", 900.0, ""))
    for run in ("1", "2"):
        view.apply(events.Graded(0, run, "passed", None, (), 900.0))
    later = ExecutionView()
    later.apply(events.decode_event(events.encode(view.snapshot())))
    for one in (view, later):
        assert "run 1  passed  2 tools raised: find, stop  900 ms" in plain(run_heading(one.runs["1"], 0, 80))
        assert "raised" not in plain(run_heading(one.runs["2"], 0, 80))


@given(text=TEXT, width=st.integers(10, 120))
def test_foreign_words_fit(text: str, width: int) -> None:
    view = a_view(replace(RunRef("1", text, text, text, 1, 1, text)))
    view.apply(events.RunStarted(0, "1", 1, 0))
    view.apply(events.AttemptFailed(0, "1", 1, text, 1.0, text, text))
    view.apply(events.AgentFinished(0, "1", 1.0, text, text, tools_raised=(text,)))
    view.apply(events.Graded(0, "1", "error", None, ((text, text),), 1.0))
    slow = [(events.Throttled(0, text, 1, 2, 3.0), 3.0)]
    lines = [*facts(view, [text], Expected(), slow, width), RunGrid(view).line(0, width, focused=True)]
    lines.append(run_heading(view.runs["1"], 0, width))
    for group in error_groups(view):
        lines += [group_line(group, width), *group_detail(group, width)]
    if width >= 20:
        lines += trust_lines([TrustQuestion(TrustRequirement(Path("/tmp"), (text, text * 9)), text)], width)
    assert all(width_of(line) <= width for line in lines)


@pytest.mark.parametrize("watched", [True, False])
def test_what_ended_an_answer_is_said_once(watched: bool) -> None:
    view = a_view(RunRef("1", "t", "T", "", 0, 1, "a"))
    view.apply(events.RunStarted(0, "1", 1, 0))
    ending = {"ending": "length", "finish_reason": "MAX_TOKENS"} if watched else {}
    view.apply(events.AgentFinished(0, "1", 1.0, "", **ending))
    later = ExecutionView()
    later.apply(events.decode_event(events.encode(view.snapshot())))
    stored = parts_of(Transcript((Message("assistant", "so"),), final_output="so", finish_reason="MAX_TOKENS"))
    for one, parts in ((view, stored), (later, stored), (view, ())):
        text = "\n".join(map(plain, RunStream().lines(one.runs["1"], 80, parts)))
        assert text.count("the answer was cut by max_tokens (finish reason: MAX_TOKENS)") == (watched or bool(parts))
    assert "ended" not in "\n".join(map(plain, RunStream().lines(view.runs["1"], 80))) or watched


def test_only_what_changed_of_a_stream_is_laid_out_again() -> None:
    stream = RunStream()
    run = RunState(RunRef("1", "t", "T", "", 0, 1, "a"), "running", parts=[StreamPart("text", "word " * 500)])
    run.parts += [StreamPart("user", "And then?"), StreamPart("reasoning", "hm"), StreamPart("text", "so")]
    before = stream.lines(run, 60)
    run.parts[-1] = StreamPart("text", "so it is")
    after = stream.lines(run, 60)
    assert before[0] is after[0]
    assert "And then?" in "\n".join(map(plain, after))
    assert plain(after[-1]).endswith("so it is▌")
    run.fix, run.error, run.status = "start it", "gone", "error"
    assert [plain(line).split() for line in stream.lines(run, 60)[-1:]] == [["remedy", "start", "it"]]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"repeat": "0"}, "repeat"),
        ({"sample": "x"}, "sample"),
        ({"concurrency": "1.5"}, "concurrency"),
        ({"max_cost": "-1"}, "max_cost"),
        ({"max_cost": "nan"}, "max_cost"),
        ({"ab": "a", "agent": "a"}, "ab"),
        ({"ab": "b"}, "ab"),
    ],
)
def test_what_is_wrong_is_said_by_field(values: dict[str, str], field: str) -> None:
    made, problems = read_options(values, PlanOptions(), "")
    assert made is None
    assert list(problems) == [field]


def test_fields_become_options() -> None:
    values = {"repeat": "12", "sample": "", "max_cost": "$0.50", "agent": "a", "variation": "v", "ab": NO}
    made, problems = read_options({**values, "cache": "first", "stop": "no"}, PlanOptions(tests=("t",)), "")
    assert not problems
    assert made == PlanOptions(
        tests=("t",), repeat=12, max_cost=0.5, agent="a", variation="v", cache="first", early_stop=False
    )
    named, problems = read_options({"name": " v2.1 "}, PlanOptions(name="old"), "")
    assert named is not None
    assert (named.name, problems) == ("v2.1", {})
    assert "another meaning" in read_options({"name": "last"}, PlanOptions(), "")[1]["name"]
    both, _ = read_options({"ab": "b"}, PlanOptions(), "a")
    assert both is not None
    assert (both.ab, both.agent) == (("a", "b"), None)


def test_what_was_asked_stands_above_what_streams() -> None:
    run = RunState(RunRef("r", "t", "T", "", 0, 1, "a"), "running")
    shown = [plain(line).rstrip() for line in RunStream().lines(run, 60, prompt="Where is\x1b[31m order 7?")]
    assert shown[0].startswith(" user")
    assert "order 7?" in shown[0]
    assert "\x1b" not in "".join(shown)
    long = [plain(line) for line in RunStream().lines(run, 60, prompt="word " * 200)]
    assert len(long) == 3
    assert long[-1].rstrip().endswith("…")


def test_who_is_simulated_is_said_in_the_stream_and_in_the_transcript() -> None:
    said = (Message("user", "hello", simulated=True), Message("assistant", "hi"), Message("user", "thanks"))
    transcript = Transcript(messages=said)
    state = RunState(RunRef("r", "t", "T", "", 0, 1, "a"), "passed")
    lines = [" ".join(plain(line).split()) for line in RunStream().lines(state, 60, stored=parts_of(transcript))]
    assert lines == ["sim. user hello", "assistant hi", "user thanks"]
    (goal, *_) = RunStream().lines(state, 60, stored=parts_of(transcript), prompt="get it")
    assert plain(goal).split() == ["goal", "get", "it"]
    watched = ExecutionView()
    watched.apply(events.Planned(1, "x", "title", (state.ref,), 8, 0))
    watched.apply(events.RunStarted(2, "r", 1, 0))
    watched.apply(events.TurnStarted(3, "r", 1, "hello", True))
    assert plain(RunStream().lines(watched.runs["r"], 60)[0]).split() == ["sim.", "user", "hello"]
    labels = [block.label for _, block in blocks_of(transcript)]
    assert labels == ["sim. user", "assistant", "user"]


def test_what_simulated_users_took_is_beside_what_agents_took() -> None:
    view = a_view(RunRef("r", "t", "T", "", 0, 1, "a"))
    view.apply(events.Progress(2, 1, 0, 1, 0, 0, 0, 0, 0, 0.0, None, 10, 5, 0.5, 8, False, 0, 0, None, 400, 0.25))
    line = plain(facts(view, ["a"], Expected(), (), 120)[0])
    assert "$0.75" in line
    assert "users 400 tokens $0.25" in line
    assert spent_text(view) == "cost $0.75"
    run = next(iter(view.runs.values()))
    run.input_tokens, run.cost = 5, None
    assert spent_text(view) == "cost at least $0.75"
