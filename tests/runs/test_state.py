"""What runs leave behind: read around the agent, stored with the run, graded, never a pass where it was not read."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentEvent, AgentRequest, Done, Failed, TextDelta
from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
from agenteval_tui.runs.resume import stored_plan
from agenteval_tui.runs.task_payload import Tasks
from agenteval_tui.runs.trust_check import check_trust, needs_of
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import RunError, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor
from agenteval_tui.transcripts.state import ProbeState, Reading, ReadingProblem, unread

SUITE = """
name: Orders
agent: bot
agents:
  bot: {kind: scripted}
state:
  mails: {files: "out/*.eml"}
tests:
  - id: cancel
    prompt: Cancel my order W1.
    variables: {order: W1}
    state:
      order: {sql: "select status from orders where id = :order", database: shop.db}
    criteria:
      - name: Cancelled
        prototype_class: State
        config_uxon: {probe: order, metrics: [{type: TextMatch, equals: cancelled}]}
      - name: Was pending
        prototype_class: State
        config_uxon: {probe: order, of: before, metrics: [{type: TextMatch, equals: pending}]}
      - name: Nothing else changed
        prototype_class: State
        config_uxon: {probe: mails, of: change, metrics: [{type: Json, equals: {}}]}
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None, check_same_thread=False)) as opened:
        opened.execute("create table orders (id text, status text)")
        opened.execute("insert into orders values ('W1', 'pending')")
        yield opened


def agent(*steps: Callable[[], object], error: RunError | None = None) -> Callable[..., AsyncIterator[AgentEvent]]:
    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        for step in steps:
            step()
        yield TextDelta("Done.")
        yield Failed(error) if error is not None else Done()

    return script


def cancels(database: sqlite3.Connection) -> Callable[[], object]:
    return lambda: database.execute("update orders set status = 'cancelled'")


def transcript_of(made: Any) -> Transcript:
    made.store.flush()
    (row, *_) = made.store.runs_of_execution(made.engine.plan.execution_id)
    found: Transcript = made.store.transcript(row.id)
    return found


def results_of(made: Any) -> dict[str, Any]:
    made.store.flush()
    (row, *_) = made.store.runs_of_execution(made.engine.plan.execution_id)
    return {one.criterion: one for one in made.store.results(row.id)}


async def test_state_is_read_before_and_after_and_graded(execution: Any, scripts: Any, database: Any) -> None:
    scripts.script = agent(cancels(database))
    made = execution(SUITE)
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}
    assert transcript_of(made).state == (
        ProbeState("mails", Reading({}), Reading({})),
        ProbeState("order", Reading("pending"), Reading("cancelled")),
    )


async def test_what_else_changed_is_shown(execution: Any, scripts: Any, database: Any, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    scripts.script = agent(cancels(database), lambda: (tmp_path / "out/1.eml").write_text("To: all"))
    made = execution(SUITE)
    await made.run()
    assert made.statuses() == {"cancel#1": "failed"}
    failed = results_of(made)["Nothing else changed"]
    assert failed.value == '{"added":{"out/1.eml":"To: all"}}'
    assert "added" in criterion_sentence(failed)
    (span,) = failed.metrics[0].evidence[-1].spans
    assert (span.kind, span.index, span.path) == ("state", 0, "change")


@pytest.mark.parametrize("negate", ["false", "true"])
async def test_what_could_not_be_read_is_not_checked(
    execution: Any, scripts: Any, database: Any, tmp_path: Path, negate: str
) -> None:
    scripts.script = agent(lambda: (tmp_path / "shop.db").unlink())
    made = execution(SUITE.replace("- name: Cancelled", f"- name: Cancelled\n        negate: {negate}"))
    await made.run()
    assert made.statuses() == {"cancel#1": "error"}
    results = results_of(made)
    assert [results[name].outcome for name in ("Cancelled", "Was pending", "Nothing else changed")] == [
        "error", "passed", "passed"
    ]  # fmt: skip
    assert criterion_sentence(results["Cancelled"]) == (
        'the probe "order" could not be read after the run: there is no file shop.db (`files` reads files that may be '
        "missing)"
    )


async def test_state_is_read_also_of_a_run_whose_agent_failed(execution: Any, scripts: Any, database: Any) -> None:
    scripts.script = agent(cancels(database), error=RunError("program", "it broke"))
    made = execution(SUITE)
    await made.run()
    assert made.statuses() == {"cancel#1": "error"}
    assert transcript_of(made).state[1] == ProbeState("order", Reading("pending"), Reading("cancelled"))


async def test_a_run_that_is_stopped_says_so(execution: Any, scripts: Any, database: Any) -> None:
    async def hangs(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        yield TextDelta("…")
        await asyncio.Event().wait()

    scripts.script = hangs
    made = execution(SUITE, timeout=0.2)
    await made.run()
    stored = transcript_of(made)
    assert stored.error is not None
    assert stored.error.kind == "timeout"
    assert stored.state[1] == ProbeState("order", Reading("pending"), unread(ReadingProblem.STOPPED))


async def test_probes_are_not_the_runs_time(execution: Any, scripts: Any, tmp_path: Path) -> None:
    slow = "import threading; threading.Event().wait(2.2); print('x')"
    state = f"state:\n  slow: {{command: {json.dumps([sys.executable, '-c', slow])}}}\ntests:"
    text = SUITE.replace('state:\n  mails: {files: "out/*.eml"}\ntests:', state)
    text = (
        text[: text.index("    state:\n      order")]
        + """
    criteria:
      - name: Read
        prototype_class: State
        config_uxon: {probe: slow, metrics: [{type: TextMatch, equals: x}]}
"""
    )
    scripts.script = agent()
    made = execution(text, timeout=2, trust=True)
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert row.duration_ms < 2000


async def test_each_retry_reads_anew(execution: Any, scripts: Any, database: Any) -> None:
    tries: list[int] = []

    async def script(request: AgentRequest) -> AsyncIterator[AgentEvent]:
        tries.append(1)
        database.execute("update orders set status = ?", ("half" if len(tries) == 1 else "cancelled",))
        yield Failed(RunError("connection", "lost"), retry=True) if len(tries) == 1 else Done()

    scripts.script = script
    made = execution(SUITE)
    await made.run()
    assert len(tries) == 2
    assert transcript_of(made).state[1] == ProbeState("order", Reading("half"), Reading("cancelled"))


async def test_secrets_in_state_are_redacted(execution: Any, scripts: Any, database: Any) -> None:
    key = "sk-shop-0123456789abcdef"
    scripts.script = agent(lambda: database.execute("update orders set status = ?", (f"key {key}",)))
    text = SUITE.replace("{kind: scripted}", "{kind: scripted, token: '${SHOP_TOKEN}'}")
    made = execution(text, env={"SHOP_TOKEN": key}, trust=True)
    await made.run()
    assert transcript_of(made).state[1].after == Reading("key ***")


async def test_a_task_keeps_its_probes(execution: Any, scripts: Any, database: Any) -> None:
    scripts.script = agent(cancels(database))
    made = execution(SUITE)
    await made.run()
    made.store.flush()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    again = stored_plan(made.store, row, user_agents={})
    assert again.run.state == made.engine.plan.runs[0].state
    assert list(again.run.state) == ["mails", "order"]
    assert "state" in Tasks(made.engine.plan).of(made.engine.plan.runs[0])


async def test_answers_of_the_history_bring_the_state_of_then(execution: Any, scripts: Any, database: Any) -> None:
    scripts.script = agent(cancels(database))
    text = SUITE.replace("{kind: scripted}", "{kind: scripted, version: '1'}")
    for probes, asked in ((text, 1), (text, 1), (text.replace("mails:", "letters:"), 2)):
        database.execute("update orders set status = 'pending'")
        made = execution(probes.replace("probe: mails", "probe: letters") if asked == 2 else probes, cache="all")
        await made.run()
        assert len(scripts.requests) == asked
        assert made.statuses() == {"cancel#1": "passed"}
        assert transcript_of(made).state[1] == ProbeState("order", Reading("pending"), Reading("cancelled"))


@pytest.mark.parametrize(
    ("probe", "needs"),
    [
        ("{command: [cat, x]}", True),
        ("{python: 'mine:f'}", True),
        ("{file: /etc/hostname}", True),
        ("{file: ../x}", True),
        ("{sql: select 1, database: /tmp/x.db}", True),
        ("{url: 'https://example.com/${SHOP_KEY}'}", True),
        ("{file: x}", False),
        ("{files: 'out/*'}", False),
        ("{sql: select 1, database: x.db}", False),
        ("{url: 'https://example.com/'}", False),
    ],
)
def test_probes_pass_the_trust_check(execution: Any, monkeypatch: pytest.MonkeyPatch, probe: str, needs: bool) -> None:
    monkeypatch.setenv("SHOP_KEY", "0123456789abcdef")
    plan = execution(SUITE.replace('mails: {files: "out/*.eml"}', f"mails: {probe}"), trust=True).engine.plan
    said = [one for need in needs_of(plan) for one in need.what]
    assert bool(said) == needs, said
    if needs:
        with pytest.raises(NotTrustedError):
            check_trust(type(plan)(**{name: getattr(plan, name) for name in plan.__struct_fields__} | {"trust": False}))


# The transcript that holds it

STATE = (
    ProbeState("order", Reading("pending"), Reading([{"id": "W1", "total": 1.5, "note": None}])),
    ProbeState("page", unread(ReadingProblem.HTTP_STATUS, status=404), Reading("")),
    ProbeState("gone", Reading(None)),
)


def test_state_is_stored_and_read_again() -> None:
    transcript = Transcript(state=STATE)
    assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript
    assert unpack_transcript(pack_transcript(transcript)[1]) == transcript
    assert pack_transcript(transcript)[0] != pack_transcript(Transcript())[0]


def test_secrets_are_taken_out_of_values_and_problems() -> None:
    secret = "0123456789abcdef"
    state = (
        ProbeState(
            "p",
            Reading({"rows": [f"a {secret}"]}),
            unread(ReadingProblem.EXIT, status=1, message=f"ended with {secret}"),
        ),
    )
    said = TranscriptRedactor([secret]).transcript(Transcript(state=state)).state[0]
    assert said.before == Reading({"rows": ["a ***"]})
    assert said.after is not None
    assert said.after.fields == {"status": 1, "message": "ended with ***"}
