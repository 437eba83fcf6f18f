"""What functions of tools, probes, hooks and metrics raise: where, with what they printed, in a stored run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from scripted import Answer, Request, ScriptedServer, stream_of

from agenteval_tui.analysis.explanation import missed_of
from agenteval_tui.analysis.function_exceptions import raised_around
from agenteval_tui.formats.exporters.junit import junit_xml
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.traceback import Traceback
from agenteval_tui.views.evidence import explanation
from agenteval_tui.views.terminal import plain_text

MODULE = """
import asyncio, logging
def deep(key):
    table = {"A": 1}
    return table[key]
def tool(order: str):
    print("looking up", order)
    return deep(order)
async def other(order: str):
    await asyncio.sleep(0)
    logging.getLogger("shop").warning("no %s", order)
    return deep("other")
def judge(value):
    print("judging")
    return deep("judged")
def count():
    print("counting", end="")
    return deep("count")
def end(variables):
    deep("TOP-SECRET-KEY")
"""
SUITE = """
name: Orders
agent: bot
agents:
  bot:
    kind: openai
    model: m
    base_url: {url}
    tools:
      - {{name: tool, python: "shop:tool", timeout: 200}}
      - {{name: other, python: "shop:other", timeout: 200}}
tests:
  - id: order
    prompt: Where is it?
    state: {{orders: {{python: "shop:count", timeout: 200}}}}
    after: ["shop:end"]
    criteria:
      - name: Judged
        prototype_class: TextResponse
        config_uxon: {{metrics: [{{type: Python, function: "shop:judge"}}]}}
"""


def turn(request: Request) -> Answer:
    if any(one["role"] == "tool" for one in request.json["messages"]):
        return stream_of({"choices": [{"delta": {"content": "done"}, "finish_reason": "stop"}]})
    calls = [
        {"index": n, "id": f"c{n}", "function": {"name": name, "arguments": '{"order": "W1"}'}}
        for n, name in enumerate(("tool", "other"))
    ]
    return stream_of({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]})


def where(traceback: Traceback | None) -> tuple[str, list[tuple[str, str]]]:
    """What was raised, and the project's frames."""
    assert traceback is not None
    (raised,) = traceback.exceptions
    return f"{raised.type}: {raised.message}", [(one.function, one.source) for one in raised.frames if one.project]


async def test_each_has_its_traceback_with_its_frames(tmp_path: Path, execution: Any) -> None:
    (tmp_path / "shop.py").write_text(MODULE)
    async with ScriptedServer(turn) as server:
        env = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "TOP-SECRET-KEY"}
        made = execution(SUITE.format(url=server.url), env=env, trust=True)
        await made.run()
    made.store.flush()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    transcript, results = made.store.transcript(row.id), made.store.results(row.id)
    again = from_json(to_json(transcript))
    assert (again.tool_calls, again.state) == (transcript.tool_calls, transcript.state)
    assert [one.error for one in again.hooks] == [one.error for one in transcript.hooks]
    tool, other = transcript.tool_calls
    last = "return table[key]"
    assert where(tool.traceback) == ("KeyError: 'W1'", [("tool", "return deep(order)"), ("deep", last)])
    assert where(other.traceback) == ("KeyError: 'other'", [("other", 'return deep("other")'), ("deep", last)])
    (state,) = transcript.state
    assert state.after.output == "counting"
    assert where(state.after.traceback) == ("KeyError: 'count'", [("count", 'return deep("count")'), ("deep", last)])
    # What was printed while both ran is told of the tool that printed it.
    assert {(one.source, one.text) for one in transcript.output} == {("stdout", "looking up W1\n"), ("log", "no W1")}
    raised = raised_around(transcript, results)
    assert [(one.kind, one.name, one.of) for one in raised] == [
        ("tool", "tool", ""),
        ("tool", "other", ""),
        ("probe", "orders", ""),
        ("hook", "shop:end", "after"),
        ("function", "shop:judge", "Judged"),
    ]
    assert "TOP-SECRET-KEY" not in str(raised)
    # A probe raised before and after the run: that is said once.
    told = plain_text(explanation(missed_of(row, results, transcript)))
    report = junit_xml(made.store, made.store.execution(row.execution_id))
    for text in (told, report):
        for words in (
            "raised by the tool other\n    KeyError: 'other'\n      shop.py:5 in deep\n",
            "raised by the probe orders\n    KeyError: 'count'\n      shop.py:5 in deep\n",
            "raised by the hook shop:end (after)\n",
            "raised by the function shop:judge, for the criterion Judged\n    KeyError: 'judged'\n",
        ):
            assert text.count(words) == 1, words
    # The reply is kept with it: grading again needs no call.
    (reply,) = made.store.replies_of([row.id])[row.id]
    assert where(reply.reply.traceback)[0] == "KeyError: 'judged'"
