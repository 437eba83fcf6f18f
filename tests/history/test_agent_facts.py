"""What the stored runs say of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from history_made import SUITE, planned, record

from agenteval_tui.grading.observed_tools import AgentFacts, with_declared
from agenteval_tui.history.agent_facts import facts_for
from agenteval_tui.history.records import RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript


def made(answer: str, *calls: tuple[str, Any]) -> Transcript:
    tools = tuple(ToolCall(f"c{n}", name, given, "ok", message=0) for n, (name, given) in enumerate(calls))
    return Transcript((Message("assistant", answer, tool_calls=tuple(range(len(tools)))),), tools, final_output=answer)


def stored(store: Store, transcripts: list[Transcript]) -> None:
    runs = [planned(number) for number in range(len(transcripts))]
    ends = [
        RunEnded(run.id, "passed", 1.0, 1, 1.0, 1, transcript)
        for run, transcript in zip(runs, transcripts, strict=True)
    ]
    store.import_runs(record(), zip(runs, ends, strict=True))


def test_tools_arguments_and_answers(tmp_path: Path) -> None:
    get = ("get_order", {"order_id": "#W1", "limit": 3})
    transcripts = [
        made("On its way", get, ("ping", {})),
        made("On its way", get, ("ping", {})),
        made("Line one\nLine two", ("get_order", {"order_id": "#W2", "limit": None}), ("get_order", "no json")),
    ]
    with Store.open(tmp_path / "h.db") as store:
        stored(store, transcripts)
        facts = facts_for(store, SUITE)
        assert (facts.runs, facts.answers_runs) == (3, 3)
        # Two runs with the same transcript are stored once, and count once.
        assert facts.tools() == ("get_order", "ping")
        tool = facts.tools_by_name["get_order"]
        assert tool.calls == 3
        assert facts.arguments("get_order") == ("limit", "order_id")
        assert dict(tool.arguments["limit"].types) == {"number": 1, "null": 1}
        assert set(facts.values("get_order", "order_id")) == {"#W1", "#W2"}
        assert facts.answers == ("Line one\nLine two", "On its way")
        assert facts.texts() == ("Line one", "Line two", "On its way")
        assert facts.arguments("nothing") == facts.values("nothing", "x") == ()
        of_test = facts_for(store, SUITE, "test-1")
        assert (of_test.runs, of_test.answers) == (1, ("On its way",))
        assert facts_for(store, "/other.suite.yaml") == AgentFacts()


def test_examples_stay_few(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        calls = [("f", {"n": n, "long": "x" * 1000, **{f"a{n}": 1}}) for n in range(500)]
        stored(store, [made("x", *calls)])
        facts = facts_for(store, SUITE)
        assert len(facts.values("f", "n")) == 8
        assert facts.values("f", "long") == ()
        assert facts.tools_by_name["f"].arguments["long"].calls == 500
        assert len(facts.arguments("f")) == 200


def test_declared_tools_are_known_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "kind": {"enum": ["a", "b"], "type": ["string", "null"]},
            "odd": {"anyOf": []},
            "strange": 5,
        },
        "required": ["id"],
    }
    facts = with_declared(
        AgentFacts(), [{"name": "f", "description": "does f", "parameters": schema}, {"name": 5}, {"name": "g"}]
    )
    assert facts.tools() == ("f", "g")
    tool = facts.tools_by_name["f"]
    assert (tool.declared, tool.closed, tool.calls) == (True, True, 0)
    assert [(one.name, one.declared, one.required) for one in tool.arguments.values()] == [
        ("id", ("number",), True),
        ("kind", ("string", "null"), False),
        ("odd", (), False),
        ("strange", (), False),
    ]
    assert facts.values("f", "kind") == ("a", "b")
    assert not facts.tools_by_name["g"].closed
