"""What the Run screen knows of an execution, and what its actions are meant for. No app, no widget."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from test_snapshots_runs import a_busy_execution

from agenteval_tui.runs import events
from agenteval_tui.runs.events import RunRef, RunState, StreamPart
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.tui.presenters.run_rows import Expected
from agenteval_tui.tui.screens.run.controller import ALL, RunController
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.views.failure import Failure, Miss

PLANNED = events.Planned(
    1, "EXEC", "title", tuple(RunRef(f"{t}{n}", t, t, "", 0, n, "shop") for t in "abc" for n in (1, 2)), 8, 0
)
FIGURES = events.Progress(0, 6, 5, 1, 0, 0, 0, 0, 0, 1.0, 10.0, 0, 0, None, 4, False)


def started(*outcomes: str) -> ExecutionView:
    """Runs a1, a2, b1, … that ended so; the one behind them is at work."""
    view = ExecutionView()
    view.apply(PLANNED)
    for ref, outcome in zip(PLANNED.runs, (*outcomes, "running"), strict=False):
        view.apply(events.RunStarted(0, ref.run, 1, 0))
        if outcome != "running":
            view.apply(events.Graded(0, ref.run, outcome, None, (), 5.0))
    return view


def showing(view: ExecutionView) -> RunController:
    controller = RunController()
    controller.show(view)
    return controller


def run(controller: RunController, name: str) -> RunState:
    assert controller.view is not None
    return controller.view.runs[name]


def watched(controller: RunController, *happened: Any) -> list[str]:
    """Watch an execution in which this happened; what was called changed."""
    changed: list[str] = []
    watch = controller.attach(Live("EXEC", 1, "/nowhere", "title", 6, 0), changed.append, Expected(3.0))
    for event in happened:
        watch.view.apply(event)
    return changed


def test_a_key_that_was_to_cancel_one_execution_does_not_count_for_the_next() -> None:
    controller = RunController()
    controller.cancel_asked = True
    watched(controller)
    assert not controller.cancel_asked


def test_nothing_is_shown_until_the_plan_of_what_is_watched_is_there() -> None:
    controller = RunController()
    assert (controller.heading(100, 120), controller.bar_lines(80), controller.fact_lines(80)) == (((), ()), [()], [])
    assert controller.key_names(0) == []
    assert controller.why_not == "You are not watching an execution."
    assert "You are not watching an execution." in "".join(map(plain, controller.empty()))
    watched(controller)
    assert not controller.show_watched()
    assert controller.watches("EXEC")
    assert controller.watch is not None
    # From the moment in which it was started.
    assert "The execution is starting." in "".join(map(plain, controller.empty()))
    assert controller.why_not == "The execution is starting."
    controller.watch.lost = True
    assert "You are not watching an execution." in "".join(map(plain, controller.empty()))
    controller.watch.lost = False
    controller.watch.view.apply(PLANNED)
    assert controller.show_watched()
    assert not controller.show_watched(), "it is shown already"
    assert (controller.shows_watched, controller.running, controller.why_not) == (True, True, "")
    # Another one is shown: what is sent is not for it.
    controller.show(started())
    assert not controller.shows_watched


def test_what_changed_is_painted_once() -> None:
    controller = showing(started("passed"))
    controller.note("a1")
    controller.note("b1")
    controller.note("")
    assert controller.take_changes() == {0, 1}
    assert controller.take_changes() == set()
    assert not controller.still, "what runs changes by itself"
    controller.note(ALL)
    assert controller.take_changes() is None
    assert controller.view is not None
    controller.view.apply(events.Ended(0, "finished", ""))
    assert controller.still
    controller.note("")
    assert not controller.still


def test_the_run_at_work_is_followed_until_a_person_moves() -> None:
    controller = showing(started("passed", "failed"))
    assert controller.run_to_follow(0) == "b1"
    assert controller.choose("b1") == 1
    assert controller.run_to_follow(1) == "", "it is at work"
    assert controller.choose("nobody") is None
    assert controller.step(0, 1)
    chosen = controller.chosen(0)
    assert chosen is not None
    assert chosen.ref.run == "a2"
    assert controller.run_to_follow(0) == ""
    assert "follow" in controller.key_names(0)
    for _ in range(3):
        controller.step(0, -1)
    chosen = controller.chosen(0)
    assert chosen is not None
    assert chosen.ref.run == "a1"
    assert not controller.step(-1, 1)
    assert controller.chosen(9) is None


def test_failures_are_gone_through_in_the_order_of_the_plan_and_round() -> None:
    controller = showing(started("passed", "failed", "error", "passed", "failed"))
    found, row = [], 0
    for _ in range(4):
        name = controller.next_failure(row)
        found.append(name)
        row = controller.choose(name) or 0
    assert found == ["a2", "b1", "c1", "a2"]
    assert showing(started("passed")).next_failure(0) == ""


def test_the_first_failure_is_the_first_one_wherever_the_execution_was_followed_to() -> None:
    controller = showing(started("passed", "failed", "error", "passed", "failed"))
    at = controller.choose("b1") or 0
    assert controller.next_failure(at) == "a2", "nobody has chosen a run"
    at = controller.choose("a2") or 0
    assert controller.next_failure(at) == "b1", "now somebody has"


def test_only_what_has_ended_and_was_needed_is_opened() -> None:
    controller = showing(started("passed", "skipped", "failed"))
    assert controller.runs_to_inspect(run(controller, "a1")) == ["a1", "b1"]
    assert "not needed" in controller.runs_to_inspect(run(controller, "a2"))
    assert "not ended yet" in controller.runs_to_inspect(run(controller, "b2"))


def test_prompt_and_transcript_of_a_run_are_asked_for_once() -> None:
    controller = showing(started("passed"))
    ended, at_work = run(controller, "a1"), run(controller, "a2")
    assert [controller.watch_stream(ended) for _ in range(2)] == [True, False]
    assert [controller.lacks_transcript(ended) for _ in range(2)] == [True, False]
    assert not controller.lacks_transcript(at_work), "it streams"
    assert [controller.lacks_prompt(ended) for _ in range(2)] == [True, False]
    assert controller.take_prompt("a1", "Where is it?")
    controller.take_transcript("a1", [StreamPart("text", "It is here.")])
    said = "\n".join(plain(line) for line in controller.stream_lines(ended, 60))
    assert "Where is it?" in said
    assert "It is here." in said
    assert controller.lacks_prompt(at_work)
    assert not controller.take_prompt("a1", "late"), "another run is shown by now"


def test_keys_that_come_fast_count_from_what_was_asked_for() -> None:
    controller = showing(started())
    assert controller.concurrency(1) is None, "no figures yet"
    assert controller.view is not None
    controller.view.apply(FIGURES)
    assert [controller.concurrency(step) for step in (1, 1, -1)] == [5, 6, 5]
    assert [controller.concurrency(-1) for _ in range(6)] == [4, 3, 2, 1, 1, 1]
    controller.show(controller.view)
    assert controller.concurrency(1) == 5, "of another execution nothing was asked"


def test_how_it_ended_is_said_and_what_can_be_done_then() -> None:
    controller = RunController()
    watched(controller, PLANNED, events.Graded(0, "a1", "failed", None, (), 5.0))
    assert controller.show_watched()
    watch = controller.watch
    assert watch is not None
    watch.lost = True
    notice = controller.end_notice(watch)
    assert "its process died. 1 of 6 runs have ended" in notice.sentence
    assert (notice.severity, notice.finished) == ("warning", False)
    assert (controller.lost, controller.running, controller.resumable) == (True, False, True)
    assert plain(controller.heading(130, 120)[0]).endswith("stopped unexpectedly")
    assert plain(controller.heading(130, 120)[1]) == "exec EXEC"
    for status, says in (
        ("failed", "title: failed, 0 of 6 passed. why"),
        ("stopped", "title: stopped, 0 of 6 passed. why Press {run.resume} to resume it."),
        ("finished", "title: finished, 0 of 6 passed."),
    ):
        watch.lost = False
        watch.view.ended = None
        watch.view.apply(events.Ended(0, status, "why"))
        assert controller.end_notice(watch).sentence == says
    assert controller.key_names(0) == ["next_failure", "inspect", "causes", "compare", "next_cell"]
    assert not controller.resumable
    assert controller.why_not == "This execution has ended."


def test_what_other_programs_begin_is_not_resumed_but_started_again() -> None:
    controller = RunController()
    watched(controller, replace(PLANNED, concurrency=0), events.Graded(0, "a1", "passed", None, (), 5.0))
    assert controller.show_watched()
    watch = controller.watch
    assert watch is not None
    assert "can't be paused" in controller.why_not_steered
    assert "Nothing has arrived yet." in "".join(map(plain, controller.empty()))
    watch.lost = True
    assert controller.end_notice(watch).sentence.startswith(
        "Its process died. 1 run and all answers in a cassette are saved."
    )
    assert not controller.resumable


def test_a_recording_that_was_not_stored_says_so_and_is_not_offered_to_be_resumed() -> None:
    controller = RunController()
    said = "this was not stored: the disk is full"
    watched(controller, replace(PLANNED, concurrency=0), events.Ended(9_000, "failed", said))
    assert controller.show_watched()
    watch = controller.watch
    assert watch is not None
    notice = controller.end_notice(watch)
    assert (notice.sentence.partition(": ")[2], notice.severity) == (said, "error")
    shown = "\n".join(plain(line) for line in controller.fact_lines(80))
    assert f"failed: {said}" in shown
    assert "resumes" not in shown


def test_listening_that_ended_with_no_run_waits_for_none() -> None:
    controller = RunController()
    watched(controller, replace(PLANNED, concurrency=0, runs=()), events.Ended(9_000, "finished", ""))
    assert controller.show_watched()
    shown = "\n".join(map(plain, controller.empty()))
    assert "It ended before a run arrived." in shown
    assert "stops this" not in shown
    assert controller.key_names(0) == [], "there is no run to go to"
    lines = [plain(line) for line in controller.fact_lines(80)]
    assert not any(" on " in line or "cost" in line for line in lines)


def test_what_ended_with_failures_offers_the_clearest() -> None:
    controller = showing(started())
    assert controller.view is not None
    assert not controller.awaits_offer, "it runs"
    for run in ("a2", "b1"):
        controller.view.apply(events.Graded(0, run, "failed", None, (), 5.0))
    controller.view.apply(events.Ended(0, "finished", ""))
    assert controller.awaits_offer
    clear = Failure(Miss("asks", "get_order order_id", '"#W1"', '"W1"'), 2, 3, "b1")
    assert controller.take_offer(clear) == "b1", "nobody chose another run"
    row = controller.choose("b1")
    assert row is not None
    shown = [plain(line) for line in controller.offer_lines(row, 60, {})]
    assert shown[0].endswith("The clearest failure:   enter  open it")
    assert shown[1].endswith("asks get_order order_id   2 of 3")
    assert shown[2].endswith('expected "#W1"  got "W1"')
    assert "expected" in plain(controller.offer_lines(row, 30, {})[2])
    assert controller.choose("a2") is not None
    assert controller.offer_lines(0, 60, {}) == [], "it was seen, and the person went on"
    # A person who moved while it ran is not moved: one key goes to it.
    controller.show(controller.view)
    controller.follow = False
    assert controller.take_offer(clear) == ""
    assert plain(controller.offer_lines(0, 60, {})[0]).endswith("n  go to it")
    assert controller.next_failure(0) == "b1"
    controller.show(controller.view)
    assert controller.take_offer(Failure(Miss("x"), 1, 1, "gone")) == ""
    assert controller.offer_lines(0, 60, {}) == []


def test_a_busy_execution_says_who_is_slowed_down_and_what_its_signs_mean() -> None:
    controller = showing(a_busy_execution())
    assert any("the server asks for less" in plain(line) for line in controller.fact_lines(140))
    assert "retried" in plain(controller.legend_lines(140)[0])
    assert "errors" in controller.key_names(0)
    assert controller.view is not None
    controller.view.throttled = {name: replace(one) for name, one in controller.view.throttled.items()}
    controller.view.apply(events.Ended(0, "stopped", "the limit was reached"))
    assert not any("the server asks for less" in plain(line) for line in controller.fact_lines(140))
    assert controller.key_names(0)[0] == "resume"
