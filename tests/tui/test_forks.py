"""Forks in Inspect: the sheet that asks for them, and the tab that shows what became of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from shop import app_on, copy_history, copy_samples, run_samples, settle, text_of, until
from test_writing_once import Held, again
from textual.pilot import Pilot

from agenteval_tui.analysis.forks import ranked, stored_forks
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.fork.continuations import Answer, Outcomes
from agenteval_tui.runs.fork.edits import changeable
from agenteval_tui.runs.fork.model import Result
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import priced, requested_plan
from agenteval_tui.runs.live_registry import ExecutionRequest, Live
from agenteval_tui.runs.process import _plan
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.presenters.fork_columns import ForkRows, column_lines, head_lines
from agenteval_tui.tui.screens.fork import ForkScreen
from agenteval_tui.tui.screens.inspect.branches import ForksController, forks_of, step_at
from agenteval_tui.tui.screens.inspect.screen import InspectScreen
from agenteval_tui.tui.styled_text import plain
from agenteval_tui.tui.widgets.form import Form

RIGHT = {"arguments": {"order_id": "#W1042"}}


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with a failure, and a branch that passes."""
    folder = tmp_path_factory.mktemp("forked")
    run_samples(copy_samples(folder), folder / "history.db", tests=("order-status",))
    with Store.open(folder / "history.db") as store:
        run = store.runs_of_execution(store.execution("last").id)[0].id
        begin(store, ForkRequest(run, 2, RIGHT, 2))
        begin(store, ForkRequest(run, 3, {"tool_error": "nobody answers"}, 1))
    return folder


def begin(store: Store, request: ForkRequest) -> str:
    plan = requested_plan(store, request, user_agents={})
    run_in_thread(Host(plan, store).run)
    return plan.execution_id


def test_a_process_of_its_own_asks_what_is_missing(forked: Path, tmp_path: Path) -> None:
    with Store.open(forked / "history.db") as store:
        run = store.runs_of_execution(store.execution("last").id)[0].id
        request = ForkRequest(run, 2, RIGHT, 5, max_cost=0.5)
        price = priced(store, request)
        assert (price.known, price.takes.runs, price.requests) == (2, 3, 3)
        asked = ExecutionRequest(config_dir=str(tmp_path), fork=request)
        plan, _ = _plan(asked, store)
        assert (plan.kind, len(plan.runs), plan.limits.cost) == ("fork", 3, 0.5)
        with pytest.raises(AgentevalError, match="there is nothing to ask"):
            requested_plan(store, ForkRequest(run, 2, RIGHT, 2), user_agents={})


async def test_a_tool_that_is_gone_is_said_where_a_run_is_continued(
    forked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Oracle, "gone_tools", lambda self, conversation: (("get_order",), ("fly", "walk")))
    app = app_on(forked, forked / "history.db")
    async with app.run_test(size=(120, 45)) as pilot:
        await settle(pilot)
        store = app.session.store
        run = next(row for row in store.runs_of_execution(store.execution("last").id))
        app.push_screen(ForkScreen(run.id, store.transcript(run.id), 1))
        said = "note: the agent called get_order in this run, but has fly and walk now"
        await until(pilot, lambda: said in " ".join(text_of(app).replace("│", " ").split()))


async def test_another_agent_continues_at_its_own_price(
    forked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agents.yaml").write_text(
        "agents:\n  dear: {kind: demo, version: v2, price: {input: 1000, output: 1000}}\n",
        "utf-8",
    )
    copy_history(forked / "history.db", tmp_path)
    monkeypatch.setenv("AGENTEVAL_CONFIG_DIR", str(tmp_path))
    monkeypatch.setattr("agenteval_tui.tui.screens.fork.QUIET_SECONDS", 0.0)
    app = app_on(forked, tmp_path / "history.db")
    asked: list[Any] = []
    async with app.run_test(size=(120, 45)) as pilot:
        await settle(pilot)
        store = app.session.store
        run = next(row for row in store.runs_of_execution(store.execution("last").id))
        run = store.run(run.fork_of or run.id)
        app.push_screen(ForkScreen(run.id, store.transcript(run.id), 1, run.agent), asked.append)
        await until(pilot, lambda: "5 continuations, about 5 requests" in text_of(app))
        form = app.screen.query_one(Form)
        assert form.values()["agent"] == run.agent
        form.fill({"text": json.dumps(RIGHT["arguments"]), "n": "2"})
        app.screen._look()  # type: ignore[attr-defined]
        await until(pilot, lambda: "2 continuations stored already" in text_of(app))
        form.fill({"agent": "nobody"})
        app.screen._look()  # type: ignore[attr-defined]
        await until(pilot, lambda: "nobody" in text_of(app).partition("price")[2])
        form.fill({"agent": "dear"})
        app.screen._look()  # type: ignore[attr-defined]
        await until(pilot, lambda: "2 continuations, about 2 requests" in text_of(app))
        assert "stored already" not in text_of(app)
        await pilot.press("ctrl+s")
        await settle(pilot)
    ((request, asks),) = asked
    assert (request.agent, request.max_cost, asks) == ("dear", None, True)
    with Store.open(tmp_path / "history.db") as store:
        run_in_thread(Host(requested_plan(store, request), store).run)
        rows = [one for one in store.forks_of(run.id) if one.agent == "dear"]
        assert len(rows) == 2
        branches = [one.label for one in stored_forks(store, run).branches]
        assert any(one.startswith("agent dear; step 2: arguments") for one in branches), branches


def test_what_can_be_changed_at_a_step() -> None:
    shown = Transcript(
        (
            Message("user", "where?"),
            Message("assistant", "let me look", tool_calls=(0,)),
            Message("tool", "here", tool_call=0),
            Message("assistant", "", tool_calls=(1, 2)),
            Message("tool", "a", tool_call=1),
            Message("tool", "b", tool_call=2),
        ),
        (ToolCall("c", "get", {"n": 1}, "here"), ToolCall("d", "put", {}, "a"), ToolCall("e", "put", {}, "b")),
    )
    assert changeable(shown, 0) == {"text": "where?", "system": "", "without_tools": "", "insert": "", "drop": ""}
    rest = ["system", "without_tools", "insert", "drop"]
    assert list(changeable(shown, 1)) == ["arguments", "tool_result", "tool_error", "text", *rest]
    assert list(changeable(shown, 2)) == ["tool_result", "tool_error", "arguments", *rest]
    assert changeable(shown, 2)["tool_result"] == "here"
    assert list(changeable(shown, 3)) == rest, "which of two calls is meant is not known"
    assert changeable(shown, 5)["tool_result"] == "b"
    assert [step_at(shown, key) for key in (("message", 0), ("call", 2), ("result", 0), ("error", 0), None)] == [
        0, 3, 2, 5, 5,
    ]  # fmt: skip


def test_a_row_a_branch_and_a_column_a_branch(forked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(forked / "history.db") as store:
        run = store.runs_of_execution(store.execution("last").id)[0]
        tree = forks_of(store, run.id)
        rows = ForkRows(tree)
        said = [plain(rows.line(number, 100, focused=False)) for number in range(rows.count())]
        assert [rows.index_of(rows.key(number)) for number in range(3)] == [0, 1, 2]
        assert "the run itself" in said[0]
        assert "0/3" in said[0]
        assert 'arguments {"order_id":"#W1042"}' in said[1]
        assert "2/2" in said[1]
        assert "0/1" in said[2]
        assert "2 branches, 3 continuations" in plain(head_lines(tree, "F", 100)[0])
        none = replace(tree, forks=replace(tree.forks, branches=()), running=0)
        assert plain(head_lines(none, "F", 80)[0]).endswith("press F on a step of the transcript to make one.")
        wide = [plain(line) for line in column_lines(tree, 2, 140)]
        assert sum("Where is my order" in line for line in wide) == 1, "what is shared is there once"
        assert any("the run itself" in line and "nobody answers" in line and "arguments" in line for line in wide)
        assert any(line.count("failed") == 2 and line.count("passed") == 1 for line in wide)
        narrow = [plain(line) for line in column_lines(tree, 1, 40)]
        assert any("2 more branches" in line for line in narrow)
        assert all(len(line) <= 40 for line in narrow)

        # Of a fork the tab shows the same, with the fork marked.
        continued = store.forks_of(run.id)[0]
        again = forks_of(store, continued.id)
        assert again.forks.run.id == run.id
        assert any("this run" in plain(line) for line in column_lines(again, 1, 140))
        # What shrink tried is counted, and no branch; the branch that was asked for last has the cursor.
        assert tree.newest == 2
        stored = stored_forks(store, run)
        smaller = replace(stored.branches[1], purpose="shrink")
        monkeypatch.setattr(
            "agenteval_tui.tui.screens.inspect.branches.stored_forks",
            lambda store, run, **_: replace(stored, branches=(stored.branches[0], smaller)),
        )
        after = forks_of(store, run.id)
        assert (len(after.forks.branches), after.tried, after.newest) == (1, 1, 1)
        assert "1 branch, 2 continuations   and 1 continuation of shrink" in plain(head_lines(after, "F", 100)[0])
        controller = ForksController()
        controller.show(tree)
        assert controller.runs_of(0) == (run.id, [])
        assert len(controller.runs_of(1)[1]) == 2


def test_the_branch_that_helps_most_is_the_first_and_a_row_keeps_its_name(forked: Path) -> None:
    one, other = Result(2, "a"), Result(2, "b")

    def branch(edit: Result, *passed: bool) -> Outcomes:
        with Store.open_to_look(forked / "history.db") as store:
            row = store.runs_of_execution(store.execution("last").id)[0]
        rows = [replace(row, status="passed" if good else "failed") for good in passed]
        return Outcomes(2, (edit,), tuple(map(Answer, rows)))

    few, many, none = branch(one, True), branch(one, True, True, True), branch(other, False, False)
    waiting = branch(other)
    assert ranked([waiting, none, few, many]) == (many, few, none, waiting)
    with Store.open_to_look(forked / "history.db") as store:
        tree = forks_of(store, store.runs_of_execution(store.execution("last").id)[0].id)
    before = ForkRows(replace(tree, forks=replace(tree.forks, branches=(none, few))))
    after = ForkRows(replace(tree, forks=replace(tree.forks, branches=ranked([none, few]))))
    assert (before.index_of(before.key(1)), after.index_of(before.key(1))) == (1, 2)
    assert plain(after.line(1, 60, focused=False)).split()[-3:] == ["1/1", "too", "few"]


async def test_from_a_step_to_branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites, db = copy_samples(tmp_path), tmp_path / "history.db"
    await asyncio.to_thread(run_samples, suites, db, tests=("order-status",))
    started: list[ForkRequest] = []

    def start(workspace: Any, request: ForkRequest) -> Live:
        started.append(request)
        with Store.open(db) as store:
            execution = begin(store, request)
        return Live(execution, 0, "", "fork", now_ms())

    monkeypatch.setattr("agenteval_tui.tui.workspace.Workspace.start_fork", start)
    app = app_on(suites, db)
    monkeypatch.setattr("agenteval_tui.tui.screens.fork.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("agenteval_tui.tui.screens.inspect.screen.FORK_SECONDS", 0.02)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        await pilot.press("j", "F")
        await until(pilot, lambda: "5 continuations, about 5 requests" in text_of(app))
        assert "the call's arguments" in text_of(app)
        form = app.screen.query_one("Form")
        form.fill({"text": '{"order_id": '})  # type: ignore[attr-defined]
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "not JSON" in text_of(app) or "price" not in text_of(app))
        assert "continue from here" not in text_of(app), "it can't be while this is wrong"
        form.fill({"text": '{"order_id": "#W1042"}', "n": "2"})  # type: ignore[attr-defined]
        app.screen._look()  # type: ignore[attr-defined]
        await until(pilot, lambda: "2 continuations, about 2 requests" in text_of(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "1 branch, 2 continuations" in text_of(app))
        assert (started[0].at, started[0].n) == (2, 2)
        assert "2/2" in text_of(app)
        await until(pilot, lambda: not app.screen._forks.live)  # type: ignore[attr-defined]
        last_row = text_of(app).rstrip().splitlines()[-1]
        assert last_row.split("  ") == [" enter inspect", "d diff", "Z repetitions", "? help"], "no keys of repetitions"
        app.screen.branches.action_keep()  # type: ignore[attr-defined]
        await until(pilot, lambda: "order-status-fork" in (suites / "support.suite.yaml").read_text("utf-8"))
        await pilot.press("S")
        await settle(pilot)
        await pilot.press("Z")
        await until(pilot, lambda: "branch, 2 continuations" not in text_of(app))
        assert "t arguments" in text_of(app).rstrip().splitlines()[-1]
        await pilot.press("Z")
        await until(pilot, lambda: "1 branch, 2 continuations" in text_of(app))
        await pilot.press("enter")
        await settle(pilot)
        await until(pilot, lambda: "#W1042 of 2026-03-25 is on its way" in text_of(app))
        await _stored_answers_are_shown(pilot, app)


async def _stored_answers_are_shown(pilot: Pilot[int], app: AgentevalApp) -> None:
    """Asking for what is stored already is no error: it is shown, and nothing is asked."""
    await pilot.press("4", "escape", "escape")
    await until(pilot, lambda: isinstance(app.screen, InspectScreen) and app.screen.view == "transcript")
    await pilot.press("g", "j", "F")
    await until(pilot, lambda: "5 continuations" in text_of(app))
    app.screen.query_one("Form").fill({"text": '{"order_id": "#W1042"}', "n": "2"})  # type: ignore[attr-defined]
    app.screen._look()  # type: ignore[attr-defined]
    await until(pilot, lambda: "2 continuations stored already" in text_of(app) and "^s show them" in text_of(app))
    await pilot.press("ctrl+s")
    await until(pilot, lambda: "1 branch, 2 continuations" in text_of(app))
    assert "known" not in text_of(app)


async def test_several_texts_are_a_branch_each(forked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.tui.screens.fork.QUIET_SECONDS", 0.0)
    file = tmp_path / "sweep.yaml"
    file.write_text("- {label: down, at: 3, tool_error: refused}\n- {label: right, arguments: {order_id: '#W1042'}}\n")
    app = app_on(forked, forked / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await settle(pilot)
        await pilot.press("j", "F")
        await until(pilot, lambda: "5 continuations, about 5 requests" in text_of(app))
        form = app.screen.query_one("Form")

        async def price_is(*words: str, **values: str) -> None:
            # At once: each field that changes asks for a price of its own, and the last one stays.
            form.fill(values)  # type: ignore[attr-defined]
            app.screen._look()  # type: ignore[attr-defined]
            await until(pilot, lambda: all(word in text_of(app) for word in words))

        lines = '{"order_id": "1042"}\n\n{"order_id": "W1042"}\n{"order_id": "1042"}\n'
        prices = ("2 branches, 2 continuations each", "4 continuations, about 4 requests")
        await price_is(*prices, text=lines, n="2", values="lines")
        await price_is("not JSON", values="blocks")
        await price_is("3 branches, 2 continuations each", text='{"a": 1}\n---\n{\n"a": 2}\n---\n{"a": 3}')
        # The price says what it is of, whatever the fields hold by now.
        form.fill({"n": "many"})  # type: ignore[attr-defined]
        app.screen._retell()  # type: ignore[attr-defined]
        assert "2 continuations each" in text_of(app)
        await price_is("the count must be a whole number from 1 to 1,000", values="blocks")
        form.fill({"n": "2"})  # type: ignore[attr-defined]
        await price_is("there is no such file", values="file", text="nowhere.yaml")
        await price_is("2 branches, 2 continuations each", text=str(file))
        asked = app.screen._asked()  # type: ignore[attr-defined]
        assert asked.changes == {}
        assert [one["label"] for one in asked.sweep] == ["down", "right"]
        with Store.open(forked / "history.db") as store:
            plan = requested_plan(store, asked, user_agents={})
            assert [run.fork.label for run in plan.runs if run.fork is not None] == ["down", "down"]


async def test_continuations_are_followed_one_look_at_a_time_until_all_have_ended(
    forked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "agenteval_tui.tui.screens.inspect.screen"
    app = app_on(forked / "suites", forked / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and bool(app.screen.shown_run))
        screen = cast("InspectScreen", app.screen)
        ended = [one.execution_id for one in app.session.store.forks_of(screen.shown_run)]
        assert len(set(ended)) == 2
        held = Held(forks_of)
        monkeypatch.setattr(f"{module}.forks_of", held)
        for one in ended:
            screen._forks.begun(Live(one, 0, "", "fork", now_ms()))
        # A look that takes longer than the time between two looks is not replaced by the next one.
        await again(pilot, held, screen._follow_forks)
        assert len(held.begun) == 1
        await until(pilot, lambda: not screen._forks.live)
        assert all(screen._forks.has_begun(one) for one in ended)

        # What can't be read any more is said once, and no longer looked for.
        def gone(*_: object) -> None:
            raise AgentevalError("there is no run with this id")

        monkeypatch.setattr(f"{module}.forks_of", gone)
        screen._forks.begun(Live(ended[0], 0, "", "fork", now_ms()))
        for _ in range(3):
            screen._follow_forks()
            await settle(pilot)
        assert [one.text for one in app.notices.all()].count("there is no run with this id") == 1
        assert not screen._forks.live


async def test_a_process_that_died_is_not_waited_for(forked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(forked / "suites", forked / "history.db")
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and bool(app.screen.shown_run))
        screen, store = cast("InspectScreen", app.screen), app.session.store
        row = store.execution(store.forks_of(screen.shown_run)[0].execution_id)
        monkeypatch.setattr(type(store), "execution", lambda *_: replace(row, status="running"))
        live = Live(row.id, 0, "", "fork", now_ms())
        screen._forks.begun(live)
        for living, left in (([live], True), ([], False)):
            monkeypatch.setattr("agenteval_tui.tui.screens.inspect.branches.live_executions", lambda of=living: of)
            screen._follow_forks()
            await settle(pilot)
            assert bool(screen._forks.live) == left


async def test_a_fork_is_kept_once(forked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_on(forked / "suites", forked / "history.db")
    held = Held(lambda *_: (tmp_path / "some.suite.yaml", "kept"))
    monkeypatch.setattr(app.session.workspace, "save_fork", held)
    async with app.run_test(size=(140, 45)) as pilot:
        await settle(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, InspectScreen) and bool(app.screen.shown_run))
        screen = cast("InspectScreen", app.screen)
        screen._turn_to("branches")
        screen._read_forks()
        await until(pilot, lambda: "2 branches, 3 continuations" in text_of(app))
        screen.branches.steps.cursor = 1
        await again(pilot, held, screen.branches.action_keep)
        assert len(held.begun) == 1
        said = [one.text for one in app.notices.all()]
        assert any("still being written" in one for one in said)
        assert any("Saved as test kept" in one for one in said)
