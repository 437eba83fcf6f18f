"""What sampling asks servers for, counted there: what stands before a step is told to a model, or is on a program's
tape, and is not asked for again."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.extensions.blame.sampled_answer import Sampling
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_in_thread, run_to_end
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.suites.load import load_suite

PROGRAM = """
import json, os, sys, urllib.request

def ask(messages):
    body = json.dumps({"model": "m", "messages": messages})
    url = os.environ["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions"
    request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

def part(which):
    return "the " + which + " part"

def answer(prompt):
    varies = f" I am {os.getpid()}." if os.environ.get("VARIES") else ""
    messages = [{"role": "user", "content": prompt + varies}]
    while True:
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            result = part(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

if __name__ == "__main__":
    print(answer(sys.argv[1]))
"""
SUITE = """
name: Parts
agents:
  function: {{kind: python, callable: "app.py:answer", {capture}env: {env}}}
  program: {{kind: command, command: ["{python}", app.py, "{{{{prompt}}}}"], {capture}env: {env}}}
  chat:
    kind: openai
    base_url: {url}
    model: m
    tools: [{{name: part, description: a part, parameters: {{type: object}}, python: "app.py:part"}}]
tests:
  - id: answer
    agent: {agent}
    prompt: What is it?
    criteria:
      - name: Right
        prototype_class: TextResponse
        config_uxon: '{{"metrics": [{{"type": "TextMatch", "contains": "42"}}]}}'
"""


class Model:
    """A model server that takes the bad part in its first conversation, and the good one in all later ones."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        """Requests by the number of answers that stand before."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                """Say nothing."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                reply = json.dumps(model.answer(body["messages"])).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """Two calls, and then what the parts make."""
        before = sum(message["role"] == "assistant" for message in messages)
        self.asked[before] += 1
        which = "first" if not before else "bad" if self.asked[1] == 1 else "good"
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if before < 2:
            function = {"name": "part", "arguments": json.dumps({"which": which})}
            message["tool_calls"] = [{"id": f"c{before}", "type": "function", "function": function}]
        else:
            message["content"] = "42" if "good" in messages[-1]["content"] else "41"
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if before < 2 else "stop"}
        return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}

    def close(self) -> None:
        """Take no more requests."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    yield made
    made.close()


def recorded(folder: Path, store: Store, model: Model, agent: str, capture: str = "model", **env: str) -> str:
    """The id of the run that failed."""
    (folder / "app.py").write_text(PROGRAM, encoding="utf-8")
    environment = json.dumps({"OPENAI_BASE_URL": model.url, **env})
    suite = SUITE.format(
        agent=agent,
        url=model.url,
        capture=f"capture: {capture}, " if capture else "",
        env=environment,
        python=os.environ.get("PYTHON", "python3"),
    )
    (folder / "t.suite.yaml").write_text(suite, encoding="utf-8")
    plan = make_plan([load_suite(folder / "t.suite.yaml")], PlanOptions(trust=True), user_agents={})
    run_to_end(Host(plan, store, None).run())
    (row,) = store.runs_of_execution(plan.execution_id)
    assert row.status == "failed"
    return row.id


@pytest.mark.sweep("agent")
@pytest.mark.parametrize(
    ("agent", "capture"),
    [
        *(("function", capture) for capture in ("model", "auto", "")),
        *(("program", capture) for capture in ("model", "auto", "")),
        ("chat", ""),
    ],
)
def test_no_server_is_asked_for_what_stands_before_a_step(
    tmp_path: Path, model: Model, agent: str, capture: str
) -> None:
    with Store.open(tmp_path / "h.db") as store:
        row = store.run(recorded(tmp_path, store, model, agent, capture))
        assert model.asked == {0: 1, 1: 1, 2: 1}
        transcript = store.transcript(row.id)
        sampling = Sampling(Oracle(store, row, ContinuationOptions(trust=True), purpose="blame"), transcript, 8)
        _, priced = sampling.price()
        sampled = run_in_thread(sampling.asking)
        assert (sampled.answer, sampled.step) == ("step", 3), "the bad part"
        asked = sum(model.asked.values()) - 3
        left = {1: 3, 3: 2, 5: 1}  # requests of a continuation, by the step that is made anew
        assert asked == sum(left[rate.step] * rate.n for rate in sampled.rates)
        assert asked <= priced
        later = [rate for rate in sampled.rates if rate.step == 5]
        assert later
        assert not later[0].passed, "the bad part stands before it"
        again = Sampling(Oracle(store, row, ContinuationOptions(trust=True), purpose="blame"), transcript, 8)
        assert run_in_thread(again.asking).step == 3
        assert sum(model.asked.values()) - 3 == asked, "what is stored is not asked again"


@pytest.mark.parametrize("capture", ["model", "auto"])
def test_a_program_that_asks_something_else_than_it_did_is_no_continuation(
    tmp_path: Path, model: Model, capture: str
) -> None:
    with Store.open(tmp_path / "h.db") as store:
        row = store.run(recorded(tmp_path, store, model, "program", capture, VARIES="1"))
        oracle = Oracle(store, row, ContinuationOptions(trust=True), purpose="blame")
        sampling = Sampling(oracle, store.transcript(row.id), 4)
        later = sampling.questions[-1]
        (outcome,) = run_in_thread(lambda: oracle.asking([later], 2))
        assert sum(model.asked.values()) == 3, "nobody was asked"
        assert [answer.status for answer in outcome.answers] == ["error", "error"]
        resumed = resume_plan(store, oracle.execution_id, PlanOptions(trust=True), errors=True).plan
        assert [run.fork and run.fork.answers for run in resumed.runs] == [2, 2], "from the tape, too"
        error = store.transcript(outcome.answers[0].run.id).error
        assert error is not None
        assert 'messages[0].content: recorded "What is it? I am' in error.message
