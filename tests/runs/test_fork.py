"""Runs that continue another run: edits, what is asked, what is known already, and what does not count."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple, replace
from plain_client import POST
from scripted import Answer as Reply
from scripted import Request
from threaded import serving

from agenteval_tui.agents.recording.cassette import left_in
from agenteval_tui.agents.tools.changes import ToolChanges
from agenteval_tui.analysis.agreement import judge_figures
from agenteval_tui.analysis.blame.free_answer import RepetitionReader
from agenteval_tui.analysis.causes import filter_scope, group_failures, newest_scope
from agenteval_tui.analysis.comparison_sides import Sides, sides_of
from agenteval_tui.analysis.labels import give_label
from agenteval_tui.analysis.regrade import CriteriaSource, regrade, save_verdicts
from agenteval_tui.analysis.repetitions import repetitions
from agenteval_tui.analysis.review_queue import ReviewFilter, queue
from agenteval_tui.analysis.save_fork import save_as_test
from agenteval_tui.analysis.test_gates import gates_of_test
from agenteval_tui.analysis.trends import TrendQuery, trend
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history import baselines
from agenteval_tui.history.agent_facts import facts_for
from agenteval_tui.history.causes import failures, first_seen_in
from agenteval_tui.history.criterion_versions import criteria_of_test, versions_of
from agenteval_tui.history.labels import Label
from agenteval_tui.history.maintenance import check
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.pruning import Pruning, prunable
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.references import References
from agenteval_tui.history.salvage import salvage
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.fork import edits
from agenteval_tui.runs.fork.edits import complete, fork
from agenteval_tui.runs.fork.model import AnyEdit, Arguments, Drop, Insert, Result, System, Text, Tools, read_origin
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import CannotContinueError, Question, check_tools, questions_of
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool

SUITE = """
name: Shop
agent: shop
agents:
  shop: {kind: demo, pace: 0}
  played: {kind: replay, transcripts: {kettle: [{role: user, content: hi}, {role: assistant, content: ho}]}}
tests:
  - id: kettle
    prompt: What do customers say about the Aurora Kettle?
    criteria:
      - name: Gives nothing away
        prototype_class: ToolResponse
        config_uxon: '{"metrics": [{"type": "ToolCheck", "forbidden_tools": ["issue_voucher"]}]}'
      - name: A person says so
        severity: warning
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "Human", "question": "Is it fair?"}]}'
"""
REVIEWS = '{"reviews": [{"author": "Jonas", "stars": 5, "text": "Boils fast."}]}'

CONVERSATION = Transcript(
    messages=(
        Message("system", "be kind"),
        Message("user", "first"),
        Message("assistant", "let me look", tool_calls=(0, 1)),
        Message("tool", "one", tool_call=0, tool_call_id="a"),
        Message("tool", "two", tool_call=1, tool_call_id="b"),
        Message("assistant", "done"),
        Message("user", "second"),
        Message("assistant", "", tool_calls=(2,)),
        Message("tool", "three", tool_call=2, tool_call_id="c"),
        Message("assistant", "bye"),
    ),
    tool_calls=(
        ToolCall("a", "get", {"n": 1}, "one", message=2, started_ms=5.0),
        ToolCall("b", "put", {"n": 2}, "two", message=2),
        ToolCall("c", "end", {}, "three", message=7),
    ),
    final_output="bye",
)


def told(made: Conversation) -> list[str]:
    return [f"{one.role}: {one.content}" for one in made.messages]


# Edits


@pytest.mark.parametrize("step", [2, 3, 4])
def test_a_step_is_told_with_its_calls_and_their_results(step: int) -> None:
    made = fork(CONVERSATION, step)
    assert made.messages == CONVERSATION.messages[:5]
    assert [call.name for call in made.tool_calls] == ["get", "put"]
    assert made.tool_calls[0].started_ms is None, "a time of another run"
    assert made.turns == ("second",)


def test_behind_an_answer_comes_what_the_user_said_next() -> None:
    made = fork(CONVERSATION, 5, [Text(5, "nearly done")])
    assert told(made)[-2:] == ["assistant: nearly done", "user: second"]
    assert made.turns == ()
    with pytest.raises(edits.NothingToAnswerError):
        fork(CONVERSATION, 9, [Text(9, "so long")])


def test_each_kind_of_edit() -> None:
    changes = [System("be brief"), Text(1, "FIRST"), Arguments(2, {"n": 7}, call=1), Result(3, "uno", error=True)]
    made = fork(CONVERSATION, 3, [*changes, Insert(3, "user", "and quickly")])
    assert told(made) == [
        "system: be brief", "user: FIRST", "assistant: let me look", "tool: uno", "tool: two", "user: and quickly",
    ]  # fmt: skip
    assert [(one.arguments, one.result, one.status) for one in made.tool_calls] == [
        ({"n": 1}, "uno", "error"),
        ({"n": 7}, "two", "ok"),
    ]
    assert fork(Transcript((Message("user", "u"), Message("assistant", "a"))), 0, [System("s")]).messages[0] == Message(
        "system", "s"
    )


def test_a_recording_without_a_result_is_continued_before_its_call() -> None:
    heard = Transcript(
        (
            Message("user", "u"),
            Message("assistant", "", tool_calls=(0,)),
            Message("assistant", "a"),
            Message("user", "v"),
        ),
        (ToolCall("c", "get_order", {}, None),),
    )
    for step in (1, 2, 3):
        with pytest.raises(edits.ForkError, match="no result of get_order, which step 2 calls") as told_why:
            fork(heard, step)
        assert told_why.value.fix == "choose a step before step 2, or drop that step"
    assert told(fork(heard, 0)) == ["user: u"]
    assert told(fork(heard, 3, [Drop(1)])) == ["user: u", "assistant: a", "user: v"]


def test_what_is_dropped_takes_with_it_what_can_not_be_alone() -> None:
    assert told(fork(CONVERSATION, 8, [Drop(2)])) == [
        "system: be kind", "user: first", "assistant: done", "user: second", "assistant: ", "tool: three",
    ]  # fmt: skip
    made = fork(CONVERSATION, 8, [Drop(3)])
    assert "tool: one" not in told(made)
    assert [call.name for call in made.tool_calls] == ["put", "end"]
    assert [one.tool_calls for one in made.messages if one.tool_calls] == [(0,), (1,)]
    assert [one.tool_call for one in made.messages if one.role == "tool"] == [0, 1]
    assert made.tool_calls[1].message == 6
    assert told(fork(CONVERSATION, 8, [Drop(8)]))[-1] == "user: second", "a message that only called is gone too"


@pytest.mark.parametrize(
    ("error", "step", "change"),
    [
        (edits.UnknownStepError, 10, []),
        (edits.UnknownStepError, -1, []),
        (edits.UnknownStepError, 1, [Drop(99)]),
        (edits.WrongStepError, 3, [Text(3, "x")]),
        (edits.WrongStepError, 5, [Result(5, "x")]),
        (edits.WrongStepError, 5, [Arguments(5, {})]),
        (edits.WrongStepError, 2, [Arguments(2, {}, call=2)]),
        (edits.NothingToAnswerError, 0, []),
    ],
)
def test_what_can_not_be_is_refused(error: type[Exception], step: int, change: list[Any]) -> None:
    shown = CONVERSATION if step else Transcript(CONVERSATION.messages[:1])
    with pytest.raises(error):
        fork(shown, step, change)


def test_a_conversation_is_refused_with_half_a_call() -> None:
    whole = CONVERSATION
    for messages in (whole.messages[:3], whole.messages[3:5], (*whole.messages[:3], Message("user", "hm"))):
        with pytest.raises(edits.ResultWithoutCallError):
            complete(Conversation(messages, whole.tool_calls))


# Asking


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history with an execution of a test that always fails, run twice."""
    folder = tmp_path_factory.mktemp("forks")
    (folder / "shop.suite.yaml").write_text(SUITE, "utf-8")
    with Store.open(folder / "history.db") as store:
        ran(store, folder, repeat=2)
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Iterator[Store]:
    with closing(sqlite3.connect(made / "history.db")) as source, closing(sqlite3.connect(tmp_path / "h.db")) as copy:
        source.backup(copy)
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def ran(store: Store, folder: Path, **more: Any) -> str:
    plan = make_plan([load_suite(folder / "shop.suite.yaml")], PlanOptions(**more), user_agents={}, store=store)
    run_in_thread(Host(plan, store).run)
    return plan.execution_id


def newest(store: Store) -> RunRow:
    return store.runs_of_execution(store.execution("last").id)[0]


def without_the_order(store: Store, row: RunRow) -> tuple[Conversation, int]:
    """The conversation with reviews in which nobody orders anything."""
    transcript = store.transcript(row.id)
    step = next(at for at, one in enumerate(transcript.messages) if "voucher" in one.content)
    return fork(transcript, step, [Result(step, REVIEWS)]), step


def test_a_failure_becomes_a_pass_and_is_asked_once(store: Store) -> None:
    row = newest(store)
    assert row.status == "failed"
    conversation, step = without_the_order(store, row)
    change = (Result(step, REVIEWS),)
    oracle = Oracle(store, row, ContinuationOptions(max_cost=1.0))
    price = oracle.price([Question(conversation, step, change)], 3)
    assert (price.runs, price.whole_cost) == (3, 0.0)
    first = oracle.ask(conversation, 2, step=step, edits=change)
    assert (first.passed, first.decided, first.stopped) == (2, 2, "")
    again = oracle.ask(conversation, 3, step=step, edits=change)
    assert [one.stored for one in again.answers] == [True, True, False]
    same = Oracle(store, row).ask(conversation, 3)
    assert [one.stored for one in same.answers] == [True] * 3
    assert oracle.asked == 3
    execution = store.execution(oracle.execution_id)
    assert (execution.kind, execution.runs, execution.passed, execution.status) == ("fork", 3, 3, "finished")
    (fork_row, *_) = runs = store.forks_of(row.id)
    assert [(one.position, one.repetition) for one in runs] == [(0, 1), (1, 2), (2, 3)]
    assert len({task.seed for task in store.tasks_of(execution.id).values()}) == 3
    origin = read_origin(fork_row.fork_of, fork_row.fork)
    assert origin is not None
    assert (origin.run, origin.step, origin.edits, origin.purpose) == (row.id, step, change, "fork")
    assert fork_row.superseded
    transcript = store.transcript(fork_row.id)
    assert transcript.messages[: len(conversation.messages)] == conversation.messages
    assert [call.name for call in transcript.tool_calls] == ["search_products", "get_reviews"], "none is called again"
    # A fork is continued like any other run.
    deeper = Oracle(store, fork_row).ask(fork(transcript, 0), 1)
    assert deeper.answers[0].run.fork_of == fork_row.id
    assert deeper.answers[0].status == "failed"
    assert deeper.answers[0].failed == ("Gives nothing away",)
    assert deeper.answers[0].causes


def test_several_questions_are_one_execution_and_an_equal_one_is_asked_for_twice_as_many(store: Store) -> None:
    row = newest(store)
    conversation, _ = without_the_order(store, row)
    plain = fork(store.transcript(row.id), 0)
    oracle = Oracle(store, row)
    one, other, same = oracle.ask_all([Question(conversation), Question(plain), Question(conversation)], 2)
    assert (one.passed, other.passed, same.passed) == (2, 0, 2)
    assert len({answer.run.id for outcome in (one, other, same) for answer in outcome.answers}) == 6
    assert oracle.asked == 6
    assert store.execution(oracle.execution_id).runs == 6


def test_what_was_stopped_or_killed_is_not_paid_for_again(store: Store) -> None:
    row = newest(store)
    conversation, _ = without_the_order(store, row)
    oracle = Oracle(store, row, ContinuationOptions(concurrency=1))
    oracle.stop()
    assert oracle.ask(conversation, 2).stopped == "it was stopped"
    assert store.forks_of(row.id) == []

    seen = Oracle(
        store, row, ContinuationOptions(concurrency=1), emit=lambda event: event.type == "graded" and seen.stop()
    )
    # Many: events come some at a time, and a busy machine may have run dozens before it tells of the first.
    some = seen.ask(conversation, 400)
    assert some.stopped == "it was stopped"
    assert 1 <= len(some.answers) < 400
    # As after kill -9: what ran is queued, nobody has said how it ended.
    left = store.forks_of(row.id)
    with closing(sqlite3.connect(store.path)) as file, file:
        file.execute("UPDATE executions SET status = 'running', owner = '' WHERE kind = 'fork'")
        file.execute("UPDATE runs SET status = 'queued' WHERE status = 'cancelled'")
    known = len(some.answers)
    rest = Oracle(store, row).ask(conversation, known + 2)
    assert [one.stored for one in rest.answers] == [True] * known + [False] * 2
    resumed = resume_plan(store, left[0].execution_id)
    assert (resumed.plan.kind, len(resumed.plan.runs)) == ("fork", len(left) - known)
    assert resumed.plan.runs[0].messages == conversation.messages


ASKS = """
name: Asks
agent: model
agents:
  model: {kind: openai, base_url: "%s", model: m, api_key_env: SECRET_API_KEY, tools: "builtin:demo-shop"}
  program: {kind: command, command: [%s, -I, -S, ask.py], capture: model, env: {OPENAI_BASE_URL: "%s"}}
tests:
  - id: kettle
    prompt: Where is it?
    criteria:
      - name: Says a whale
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "whale"}]}'
"""
PLANTED = "planted-key-0001"
ASK = f"""{POST}
import sys
said = [{{"role": one["role"], "content": one["content"]}} for one in json.load(sys.stdin)["messages"]]
for _ in range(3):
    _, reply = post("chat/completions", {{"model": "m", "messages": said}})
    said += [reply["choices"][0]["message"], {{"role": "tool", "content": "x"}}]
print("done")
"""


@pytest.mark.parametrize("agent", ["model", "program"])
def test_a_continuation_that_was_cut_off_pays_for_no_request_twice(
    tmp_path: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three requests each: what was answered before a stop, or kill -9, is not asked of the server again."""
    at_third: list[Any] = []

    def answer(request: Request) -> Reply:
        calls = sum(one["role"] == "tool" for one in request.json["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": f"It is shipped. {PLANTED}"}
        if calls < 2:
            function = {"name": "get_order", "arguments": json.dumps({"order_id": f"#W104{calls}"})}
            message |= {"tool_calls": [{"id": f"c{calls}", "type": "function", "function": function}]}
        elif at_third:
            at_third.pop()()
        assert agent == "program" or request.headers["authorization"] == f"Bearer {PLANTED}"
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return Reply(body=json.dumps({"model": "m", "choices": [choice], "usage": usage}))

    with serving(answer) as server, Store.open(tmp_path / "h.db") as store:
        monkeypatch.setenv("SECRET_API_KEY", PLANTED)
        (tmp_path / "shop.suite.yaml").write_text(ASKS % (server.url, sys.executable, server.url), "utf-8")
        (tmp_path / "ask.py").write_text(ASK, "utf-8")
        ran(store, tmp_path, agent=agent, trust=True)
        row = newest(store)
        conversation = fork(store.transcript(row.id), 0)
        server.requests.clear()
        oracle = Oracle(store, row, ContinuationOptions(trust=True))
        at_third.append(oracle.stop)
        assert oracle.ask(conversation, 1).stopped
        assert len(server.requests) == 3
        (kept,) = (directories.data_dir() / "recordings").iterdir()
        assert kept.stat().st_mode & 0o077 == 0
        text = kept.read_text("utf-8")
        assert PLANTED not in text
        paid = sum(one.answer.succeeded for one in left_in(text.partition("\n")[2]))
        assert paid in (2, 3)  # the last one may have been in flight
        again = Oracle(store, row, ContinuationOptions(trust=True)).ask(conversation, 1)
        assert (again.decided, len(server.requests)) == (1, 3 + 3 - paid)
        transcript = store.transcript(again.answers[0].run.id)
        assert transcript.usage.total_tokens == 33
        assert list((directories.data_dir() / "recordings").iterdir()) == []
        # Another continuation is another answer.
        server.requests.clear()
        assert Oracle(store, row, ContinuationOptions(trust=True)).ask(conversation, 2).decided == 2
        assert len(server.requests) == 3


ADDS = f"""{POST}
import sys
said = [{{"role": one["role"], "content": one["content"]}} for one in json.load(sys.stdin)["messages"]]
status, reply = post("chat/completions", {{"model": "m", "messages": [{{"role": "system", "content": "own"}}, *said]}})
print(reply["choices"][0]["message"]["content"])
"""
ADDING = """
name: Adds
agent: program
agents:
  program: {kind: command, command: [%s, -I, -S, adds.py], capture: model, env: {OPENAI_BASE_URL: "%s"}}
tests:
  - id: kettle
    messages: [{role: system, content: Say a whale.}, {role: user, content: Where?}, {role: assistant, content: There.}]
    turns: [Really?, Surely?]
    criteria:
      - name: Says a whale
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "whale"}]}'
"""


@pytest.mark.parametrize(
    ("edit", "prompts"),
    [
        (None, ["own", "Say a whale."]),
        (System("Say a cat."), ["own", "Say a cat."]),
        (Insert(1, "system", "Say a dog."), ["own", "Say a whale.", "Say a dog."]),
    ],
)
def test_the_prompt_that_a_program_adds_itself_is_not_sent_to_it(
    tmp_path: Path, edit: AnyEdit | None, prompts: list[str]
) -> None:
    """It was seen in the requests of the program, which adds it again."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "A whale."}, "finish_reason": "stop"}

    def answer(request: Request) -> Reply:
        return Reply(body=json.dumps({"model": "m", "choices": [choice]}))

    with serving(answer) as server, Store.open(tmp_path / "h.db") as store:
        (tmp_path / "shop.suite.yaml").write_text(ADDING % (sys.executable, server.url), "utf-8")
        (tmp_path / "adds.py").write_text(ADDS, "utf-8")
        ran(store, tmp_path, trust=True)
        row = newest(store)
        transcript = store.transcript(row.id)
        step = next(place for place, message in enumerate(transcript.messages) if message.content == "Really?")
        edits = () if edit is None else (edit,)
        conversation = fork(transcript, step, edits)
        server.requests.clear()
        oracle = Oracle(store, row, ContinuationOptions(trust=True))
        oracle.ask(conversation, 1, step=step, edits=edits)
        sent = server.requests[0].json["messages"]
        assert [message["content"] for message in sent if message["role"] == "system"] == prompts
        others = [message["content"] for message in sent if message["role"] != "system"]
        assert others == ["Where?", "There.", "Really?"]
        saved, _ = save_as_test(oracle.source, conversation, edits=edits)
        assert saved.suite is not None
        assert [one.content for one in saved.suite.tests[-1].messages or () if one.role == "system"] == prompts[1:]


def test_a_limit_on_cost_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    row = newest(store)
    conversation, _ = without_the_order(store, row)
    oracle = Oracle(store, row, ContinuationOptions(max_cost=0.5))
    monkeypatch.setattr(Oracle, "spent", property(lambda self: 0.6))
    outcome = oracle.ask(conversation, 2)
    assert outcome.stopped == "the limit on cost ($0.5) was reached"
    assert outcome.answers == ()


def test_the_limit_of_several_rounds_is_kept_with_their_execution(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = newest(store)
    conversation, _ = without_the_order(store, row)
    oracle = Oracle(store, row, ContinuationOptions(max_cost=0.5))
    monkeypatch.setattr(Oracle, "spent", property(lambda self: 0.2 if self.execution_id else 0.0))
    assert [oracle.ask(conversation, number).decided for number in (1, 2)] == [1, 2]
    assert store.execution(oracle.execution_id).options["max_cost"] == 0.5


def test_who_can_not_continue_is_refused(store: Store, made: Path) -> None:
    run = ran(store, made, agent="played")
    with pytest.raises(CannotContinueError, match="repeats recordings"):
        Oracle(store, store.runs_of_execution(run)[0])


def test_tools_that_are_gone_are_named(store: Store) -> None:
    row = newest(store)
    conversation, _ = without_the_order(store, row)
    oracle = Oracle(store, row)
    assert oracle.gone_tools(conversation)[0] == ()
    calls = tuple(replace(one, name="fly" if at else one.name) for at, one in enumerate(conversation.tool_calls))
    gone, left = oracle.gone_tools(replace(conversation, tool_calls=calls))
    assert (gone, len(left)) == (("fly",), 11)


def test_who_brings_its_own_tools_is_refused_without_one(made: Path) -> None:
    for kind in ("command", "python", "http"):
        with pytest.raises(edits.ForkError, match=f"of kind {kind} has its own tools, which can't be left out"):
            check_tools(AgentPlan("told", {"kind": kind}, made, ""))
    check_tools(AgentPlan("model", {"kind": "openai"}, made, ""))


def test_a_run_from_elsewhere_is_refused(store: Store) -> None:
    row = newest(store)
    store.write(Doing("UPDATE runs SET task = NULL")).result()
    with pytest.raises(AgentevalError, match="was imported"):
        Oracle(store, row)


# What counts


def figures(store: Store) -> dict[str, Any]:
    """Every figure over the history that a fork could be in."""
    now = now_ms()
    period = TrendQuery(since_ms=now - 10_000_000, until_ms=now + 10_000_000)
    key, test = newest(store).suite_key, "kettle"
    counts = store.counts()
    left, right = sides_of(store, Sides())
    causes = group_failures(store, newest_scope(store))
    signatures = [group.cause.signature for group in causes.groups]
    rows = store.run_rows(store.run_ids(RunFilter()))
    references = References(store)
    summary = store.test_summaries(key)[test]
    return {
        "totals": [getattr(counts, name) for name in ("executions", "runs", "passed", "failed", "errors", "tests")],
        "suites": (summary.n, summary.passed, summary.total, summary.recent, summary.executions, summary.criteria),
        "last": (references.execution().id, references.run(test).id, references.execution(test).id),
        "newest failure": references.run(failure=True).id,
        "trend": [(one.overall.n, one.overall.passed) for one in trend(store, period).series],
        "flaky": [(one.n, one.passed) for one in ledger(store, period, now).tests],
        "compared": (left.executions, right.executions, len(left.runs), len(right.runs)),
        "causes": [(one.cause.signature, len(one.runs), one.since_ms) for one in causes.groups],
        "all causes": len(filter_scope(store, RunFilter()).runs),
        "failures": len(failures(store)),
        "first seen": store.read(lambda c: first_seen_in(c, signatures)),
        "gates": gates_of_test(store, store.runs_of_test(key, test, 50)),
        "runs of the test": len(store.runs_of_test(key, test, 50)),
        "repetitions": len(repetitions(store, newest(store), everywhere=True)),
        "estimate": len(store.figures_of_tests(key, [test], ["shop"], 50)) + len(store.figures_of_agent("shop", 50)),
        "versions": store.read(lambda c: [v.runs for v in versions_of(c, key, test, "Gives nothing away")]),
        "criteria": store.read(lambda c: criteria_of_test(c, key, test)),
        "facts": facts_for(store, key, test).runs,
        "blamed": astuple(RepetitionReader(store).of(newest(store)))[:4],
        "review": [one.run_id for one in queue(store, ReviewFilter(failures=True, sample=50, disagreements=True))],
        "agreement": [(one.criterion, one.judged, one.labelled) for one in judge_figures(store, rows)],
        "pruned": len(prunable(store, Pruning(keep=3)).runs) - len(store.forks_of(newest(store).id)),
    }


def test_a_fork_is_in_no_figure(store: Store, made: Path, tmp_path: Path) -> None:
    ran(store, made)
    row = newest(store)
    for one in store.runs_of_execution(row.execution_id):
        give_label(store, Label(one.id, criterion="Gives nothing away", passed=False, who="kim"))
    before = figures(store)
    spent = store.counts().input_tokens
    conversation, _ = without_the_order(store, row)
    oracle = Oracle(store, row)
    oracle.ask_all([Question(conversation), Question(fork(store.transcript(row.id), 0))], 3)
    execution = store.execution(oracle.execution_id)
    assert (execution.passed, execution.failed) == (3, 3)
    for one in store.runs_of_execution(execution.id):
        give_label(store, Label(one.id, criterion="Gives nothing away", passed=True, who="kim"))
    after = figures(store)
    assert after == {**before, "pruned": after["pruned"]}
    assert after["pruned"] <= before["pruned"]
    assert store.counts().input_tokens > spent, "what was paid for was paid for"

    # Graded again it is still a fork.
    spec = CriteriaSource((oracle.source.stored.run.specs[0],), None)
    again = save_verdicts(
        store, execution, list(regrade(store, store.runs_of_execution(execution.id), lambda _: spec)), "again"
    )
    graded = store.runs_of_execution(again)
    assert {one.fork_of for one in graded} == {row.id}
    assert store.execution(again).kind == "fork"
    assert len(store.forks_of(row.id)) == 6, "what was graded again was not asked again"
    assert figures(store) == after

    # No baseline.
    with pytest.raises(AgentevalError, match="can't be a baseline"):
        baselines.set_baseline(store, execution.id)
    with pytest.raises(AgentevalError, match="can't be a baseline"):
        baselines.set_baseline_run(store, graded[0].id)

    # It stays one in another history, and in what is left of a damaged one.
    assert not check(store.path).wrong
    with Store.open(tmp_path / "other.db") as other:
        store.flush()
        merge_history(other, store.path)
        assert {name: one for name, one in figures(other).items() if name != "first seen"} == {
            name: one for name, one in after.items() if name not in ("first seen",)
        } | {"suites": figures(other)["suites"]}
        assert len(other.forks_of(row.id)) == 6
        assert not check(other.path).wrong
    store.close()
    salvage(tmp_path / "h.db", tmp_path / "saved.db")
    with Store.open(tmp_path / "saved.db") as saved:
        assert figures(saved)["totals"] == after["totals"]
        assert len(saved.forks_of(row.id)) == 6


class Doing(Operation):
    """An operation of one statement."""

    statement: str

    def apply(self, connection: sqlite3.Connection, totals: object) -> None:
        """Do it."""
        connection.execute(self.statement)


# What the model saw


def seen_run(*requests: tuple[tuple[int, ...], int], result: str = "42 socks") -> Transcript:
    """A conversation with a tool, and requests: (the messages that it had, the answer that it led to). The result of
    the tool was sent as `result`."""
    calls = (ToolCall("c", "find", {"q": "socks"}, "42 socks", message=2),)
    messages = (
        Message("system", "S"), Message("user", "one"), Message("assistant", "", tool_calls=(0,)),
        Message("tool", "42 socks", tool_call=0), Message("assistant", "two"), Message("user", "three"),
        Message("assistant", "four"), Message("user", "five"), Message("assistant", "six"),
    )  # fmt: skip
    call = {"id": "c", "function": {"name": "find", "arguments": '{"q": "socks"}'}}
    told: dict[int, dict[str, Any]] = {
        number: {"role": message.role, "content": message.content} for number, message in enumerate(messages)
    }
    told[2] = {"role": "assistant", "content": "", "tool_calls": [call]}
    told[3] = {"role": "tool", "tool_call_id": "c", "content": result}
    asked = [
        ModelRequest(number, 1, "m", "S", tuple(told[one] for one in has), answer=answer)
        for number, (has, answer) in enumerate(requests, 1)
    ]
    return Transcript(messages, calls, requests=ModelRequests.of(asked))


def sent(conversation: Conversation) -> list[str]:
    return [f"{one.role} {one.content}".strip() for one in conversation.messages]


def test_a_fork_sends_what_the_model_saw() -> None:
    everything = seen_run(((1, 2, 3, 4, 5, 6, 7), 8))
    assert len(sent(fork(everything, 7))) == 8
    restarted = seen_run(((1,), 2), ((1, 2, 3), 4), ((7,), 8))
    assert sent(fork(restarted, 7)) == ["system S", "user five"]
    assert sent(fork(restarted, 3)) == ["system S", "user one", "assistant", "tool 42 socks"]
    without = seen_run(((1, 4, 5, 6, 7), 8))
    assert sent(fork(without, 7)) == [
        "system S", "user one", "assistant two", "user three", "assistant four", "user five",
    ]  # fmt: skip
    assert fork(without, 7).tool_calls == ()


def test_a_summary_that_only_the_request_has_is_sent_where_it_stood() -> None:
    def forked(*has: int | str) -> list[str]:
        transcript = seen_run(((1, 2, 3), 4))
        told = [
            {"role": "user", "content": one}
            if isinstance(one, str)
            else {"role": transcript.messages[one].role, "content": transcript.messages[one].content}
            for one in has
        ]
        asked = ModelRequest(1, 1, "m", "S", tuple(told), answer=8)
        transcript = replace(transcript, requests=ModelRequests.of([asked]))
        (question,) = questions_of(transcript, 8, {})
        assert question.only_told == sum(isinstance(one, str) for one in has)
        return sent(question.conversation)

    assert forked(1, "Summary", 5, 6, 7) == [
        "system S", "user one", "user Summary", "user three", "assistant four", "user five",
    ]  # fmt: skip
    assert forked("Summary", 7) == ["system S", "user Summary", "user five"]
    assert forked(7, "Remember it") == ["system S", "user five", "user Remember it"]


def test_messages_are_sent_in_the_order_of_the_request_behind_its_system_prompt() -> None:
    moved = seen_run(((1, 2, 3), 4), ((5, 6, 1, 2, 3, 4, 7), 8))
    conversation = fork(moved, 7)
    assert sent(conversation) == [
        "system S", "user three", "assistant four", "user one", "assistant", "tool 42 socks", "assistant two",
        "user five",
    ]  # fmt: skip
    assert [call.message for call in conversation.tool_calls] == [4]
    changed = seen_run(((1, 2, 3, 4, 5, 6, 7), 8))
    messages = (*changed.messages[1:5], Message("system", "S"), *changed.messages[5:])
    asked = replace(changed.requests.request(1), answer=8) if changed.requests else None
    assert asked is not None
    changed = replace(
        changed,
        messages=messages,
        tool_calls=(replace(changed.tool_calls[0], message=1),),
        requests=ModelRequests.of([asked]),
    )
    assert sent(fork(changed, 7))[:2] == ["system S", "user one"]


def test_a_result_is_sent_as_the_model_saw_it() -> None:
    shortened = seen_run(((1, 2, 3, 4, 5), 6), result="[cut]")
    conversation = fork(shortened, 5)
    assert sent(conversation)[3] == "tool [cut]"
    assert conversation.tool_calls[0].result == "[cut]"
    (question,) = questions_of(shortened, 6, {})
    assert question.unseen == 1
    # An edit of the result is what counts.
    assert sent(fork(shortened, 5, [Result(3, "none")]))[3] == "tool none"


def test_a_result_that_is_nowhere_stays_with_its_call() -> None:
    assert sent(fork(seen_run(((1, 2, 4, 5), 6)), 5))[2:4] == ["assistant", "tool 42 socks"]


def test_a_step_that_is_changed_is_sent_though_the_model_did_not_see_it() -> None:
    restarted = seen_run(((1,), 2), ((7,), 8))
    assert sent(fork(restarted, 7, [Text(1, "uno")])) == ["system S", "user uno", "user five"]
    inserted = sent(fork(restarted, 7, [Insert(5, "user", "and?")]))
    assert inserted == ["system S", "user three", "user and?", "user five"]


def test_a_tool_that_the_model_was_not_offered_is_not_offered_by_a_fork() -> None:
    find, cancel = OfferedTool("find"), OfferedTool("cancel")
    seen = seen_run(((1,), 2), ((1, 2, 3), 4), ((1, 2, 3, 4, 5), 6), ((1, 7), 8))
    assert seen.requests is not None
    offered = [(find, cancel), (find,), (find,), (cancel,)]
    asked = [replace(one, tools=tools) for one, tools in zip(seen.requests.all, offered, strict=True)]
    elsewhere = replace(asked[0], number=5, line=2, tools=(OfferedTool("pay"),), answer=None)
    run = replace(seen, requests=ModelRequests.of([*asked, elsewhere]))
    assert [fork(run, step).unseen_tools for step in (1, 3, 5, 7)] == [(), ("cancel",), ("cancel",), ("find",)]
    context = fork(run, 3, [Tools(ToolChanges(("find",)))]).context({"unseen_tools": ["pay"], "input_data": 1})
    assert context == {"input_data": 1, "without_tools": ["find"], "unseen_tools": ["pay", "cancel"]}
    unknown = replace(run, requests=ModelRequests.of(asked, (), ("tools",)))
    assert fork(unknown, 3).unseen_tools == ()


def test_without_known_requests_all_is_sent() -> None:
    assert len(sent(fork(replace(seen_run(((7,), 8)), requests=None), 7))) == 8
