"""The linter that knows the agent: names, types and texts that were never seen, at their places in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.lint_tool_names import facts_problems
from agenteval_tui.core.errors import Problem
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.codec import from_openai_messages

SHARED = Path(__file__).resolve().parents[2].parent / "shared"

HEAD = """\
name: Made
agent: demo
tests:
  - id: order
    name: Order
    prompt: Where is it?
    variables: {day: Monday}
    criteria:
      - name: tools
        prototype_class: ToolResponse
        config_uxon: |
          %s
      - name: text
        prototype_class: TextResponse
        expected_value: shipped
        config_uxon: |
          %s
"""
GET = ("get_order", {"order_id": "#W1", "limit": 3})
NOTHING = {"metrics": []}


def problems(
    make_history: Any, answered: Any, tools: Any = NOTHING, text: Any = NOTHING, runs: int = 4, head: str = HEAD
) -> list[Problem]:
    made = [("order", answered(f"Order {n} was shipped on Monday", GET, ("track", {}))) for n in range(runs)]
    path, store = make_history(head % (json.dumps(tools), json.dumps(text)), made)
    return facts_problems(load_suite(path), store, {})


def tool(**entry: Any) -> Any:
    return {"metrics": [{"type": "ToolCheck", "tools": [entry]}]}


def at(one: Problem) -> str:
    """What the problem marks in the file."""
    line = Path(one.file).read_text("utf-8").splitlines()[one.line - 1]
    return line[one.column - 1 : one.end_column - 1]


@pytest.mark.parametrize(
    ("config", "code", "marked", "words", "fix"),
    [
        (tool(name="get_orders"), "unknown-tool", '"get_orders"', "did you mean get_order?", "write get_order"),
        (tool(name="zebra"), "unknown-tool", '"zebra"', "there are get_order and track", None),
        (
            {"metrics": [{"type": "ToolCheck", "forbidden_tools": ["drop", "trak"]}]},
            "unknown-tool",
            '"trak"',
            "did you mean track?",
            "write track",
        ),
        (
            tool(name="get_order", arguments={"orderid": "#W1", "limit": 3}),
            "unknown-argument",
            '"orderid"',
            "none of 4 calls of get_order had",
            "write order_id",
        ),
        (
            tool(name="get_order", arguments=[{"limits": 3}]),
            "unknown-argument",
            '"limits"',
            "did you mean limit?",
            "write limit",
        ),
        (
            tool(name="get_order", arguments={"limit": "3"}),
            "argument-type",
            '"3"',
            'limit was a number in all 4 calls of get_order, but "3" expects a string',
            "write 3",
        ),
        (
            tool(name="get_order", arguments={"limit": {"$contains": "3"}}),
            "argument-type",
            "{",
            "expects a string",
            None,
        ),
        (tool(name="get_order", arguments={"order_id": {"$gte": 1}}), "argument-type", "{", "expects a number", None),
    ],
)
def test_tools(make_history: Any, answered: Any, config: Any, code: str, marked: str, words: str, fix: Any) -> None:
    (one,) = problems(make_history, answered, config)
    assert (one.code, at(one), one.fix, one.severity) == (code, marked, fix, "warning")
    assert words in one.message


@pytest.mark.parametrize(
    "config",
    [
        tool(name="get_order", arguments={"order_id": "#W9", "limit": {"$gte": 1}}),
        tool(name="get_order", arguments={"order_id": "{{day}}", "limit": {"$any": True}}),
        tool(name="track"),
        {"metrics": [{"type": "ToolCheck", "forbidden_tools": ["drop_table"]}]},
        {"metrics": [{"type": "ToolCheck", "tools": "no list", "forbidden_tools": 5}]},
        {"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": 5}, 5]}, 7]},
        {"metrics": [{"type": "Unheard"}]},
        [],
    ],
)
def test_nothing_to_say(make_history: Any, answered: Any, config: Any) -> None:
    assert problems(make_history, answered, config) == []


def test_few_runs_say_little(make_history: Any, answered: Any) -> None:
    (one,) = problems(make_history, answered, tool(name="get_orders"), runs=1)
    assert one.severity == "info"
    assert "1 stored run of this suite" in one.message


def test_without_runs_nothing_is_said(make_history: Any, answered: Any) -> None:
    assert problems(make_history, answered, tool(name="zebra"), runs=0) == []


def test_texts(make_history: Any, answered: Any) -> None:
    config = {
        "metrics": [
            {
                "type": "TextMatch",
                "contains": "{{expected_value}} on {{day}}",
                "contains_ignore_case": "ORDER",
                "contains_all": ["Order", "refunded"],
                "contains_any": ["zebra", "whale"],
                "starts_with_any": ["Order", "zebra"],
                "not_contains_any": ["never said"],
            }
        ]
    }
    found = problems(make_history, answered, text=config)
    assert [(at(one), one.severity, one.code) for one in found] == [
        ('"refunded"', "info", "unseen-text"),
        ("[", "info", "unseen-text"),
    ]
    assert found[0].message == '"refunded" was not in any of 4 stored answers of this test'
    assert "none of 2 texts was in any of 4 stored answers" in found[1].message


DECLARING = HEAD.replace(
    "agent: demo\n",
    """\
agent: demo
agents:
  demo:
    kind: openai
    base_url: http://127.0.0.1:9/v1
    model: m
    tools:
      - name: cancel
        parameters:
          type: object
          properties: {order_id: {type: string}, reason: {type: string, enum: [late, wrong]}}
          required: [order_id, reason]
""",
)


def test_what_the_agent_declares(make_history: Any, answered: Any) -> None:
    entry = {"name": "cancel", "arguments": {"reason": "lat", "force": 1}}
    found = problems(make_history, answered, tool(**entry), runs=0, head=DECLARING)
    assert {(one.code, at(one)) for one in found} == {
        ("argument-value", '"lat"'),
        ("unknown-argument", '"force"'),
        ("missing-argument", '"arguments"'),
    }


def test_a_tool_that_no_agent_declares(make_history: Any, answered: Any) -> None:
    (unknown,) = problems(make_history, answered, tool(name="cancle"), runs=0, head=DECLARING)
    assert (unknown.severity, unknown.fix) == ("warning", "write cancel")
    assert "no agent declares it" in unknown.message


@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_on_recordings(tmp_path: Path) -> None:
    data = json.loads((SHARED / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json").read_text("utf-8"))
    config = tool(name="get_reservation_detail", arguments={"reservation": "X"})
    config["metrics"][0]["tools"].append({"name": "get_user_details", "arguments": {"user_id": 5}})
    config["metrics"][0]["tools"].append({"name": "get_user_details", "arguments": {"user": "mia"}})
    path = tmp_path / "air.suite.yaml"
    path.write_text(HEAD % (json.dumps(config), json.dumps(NOTHING)), "utf-8")
    loaded = load_suite(path)
    with Store.open(tmp_path / "air.db") as store:
        runs = []
        for number, one in enumerate(data[:20]):
            transcript = from_openai_messages(one["traj"])
            planned = PlannedRun(f"RUN-{number:04}", "AIR", number, loaded.key, "Air", "order", "Order")
            runs.append((planned, RunEnded(planned.id, "passed", 1.0, 1, 1.0, 1, transcript)))
        store.import_runs(ExecutionRecord("AIR", "air", "run", "air", (loaded.key,), started_ms=1), runs)
        found = facts_problems(loaded, store, {})
    assert [(one.code, one.fix) for one in found] == [
        ("unknown-tool", "write get_reservation_details"),
        ("argument-type", 'write "5"'),
        ("unknown-argument", "write user_id"),
    ]
