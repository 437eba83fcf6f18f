"""Tools that the testing context takes away, or tells otherwise: in each kind of agent that gives its model tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentRequest, OffersTools, ToolSpec
from agenteval_tui.agents.http.exported_request import WritesRequests
from agenteval_tui.agents.registry import make_agent, options_model
from agenteval_tui.agents.tools.changes import NO_CHANGES, ToolChange, ToolChanges, tool_changes
from agenteval_tui.agents.tools.toolset import make_toolbox
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.response_cache import request_hash
from agenteval_tui.suites.model import Context
from agenteval_tui.transcripts.model import Message
from tests.agents.conftest import ALLOWED, Run

PARAMETERS = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
TOOLS = [
    {"name": "get_order", "description": "Looks an order up.", "parameters": PARAMETERS, "sample_response": "W1"},
    {"name": "cancel_order", "description": "Cancels.", "sample_response": "gone"},
]
CONTEXT = {"without_tools": ["cancel_order"], "changed_tools": {"get_order": {"description": "Obey."}}}
KINDS: list[dict[str, Any]] = [
    {"kind": "openai", "base_url": "http://127.0.0.1:9"},
    {"kind": "openai", "base_url": "http://127.0.0.1:9", "api": "responses"},
    {"kind": "anthropic"},
    {"kind": "gemini"},
]
ASKED = AgentRequest((Message("user", "hi"),), context=CONTEXT)


async def test_a_tool_that_is_taken_away_is_neither_told_nor_called() -> None:
    box = make_toolbox(TOOLS, Context.model_validate(CONTEXT).as_dict(), Path())
    async with box:
        assert box.specs() == [ToolSpec("get_order", "Obey.", PARAMETERS)]
        assert (await box.call("get_order", "{}")).text == "W1"
        gone = await box.call("cancel_order", "{}")
    assert (gone.error, gone.text) == (True, "there is no tool 'cancel_order'; tools: get_order")


@pytest.mark.parametrize("context", [{"without_tools": ["pay"]}, {"changed_tools": {"pay": {"description": ""}}}])
async def test_a_tool_that_is_not_there_is_one_sentence(context: dict[str, Any], run_agent: Run) -> None:
    with pytest.raises(AgentevalError, match="names 'pay', and the agent has no such tool") as said:
        async with make_toolbox(TOOLS, context, Path()):
            pass
    assert said.value.fix == "its tools: get_order, cancel_order"
    ran = await run_agent({"kind": "demo", "pace": 0}, context=context)
    assert ran.transcript.error is not None
    assert (ran.transcript.error.kind, "no such tool" in ran.transcript.error.message) == ("tool", True)


@pytest.mark.parametrize("options", KINDS)
async def test_no_kind_tells_its_model_of_it(options: dict[str, Any], tmp_path: Path) -> None:
    agent = make_agent(
        "tested", {**options, "model": "m", "tools": TOOLS}, base_dir=tmp_path, env={}, permission=ALLOWED
    )
    model = options_model(options["kind"])
    assert model is not None
    assert model.takes_tools
    assert isinstance(agent, OffersTools)
    assert [one.name for one in await agent.offered_tools(ASKED)] == ["get_order"]
    assert isinstance(agent, WritesRequests)
    body = json.dumps((await agent.written_request(ASKED)).body)
    assert ("get_order" in body, "Obey." in body, "cancel_order" in body) == (True, True, False)
    await agent.close()


async def test_the_bundled_agent_does_without_it(run_agent: Run) -> None:
    text = "What do customers say about the Aurora Kettle?"
    whole = await run_agent({"kind": "demo", "pace": 0}, text)
    less = await run_agent({"kind": "demo", "pace": 0}, text, context={"without_tools": ["issue_voucher"]})
    called = [[call.name for call in one.transcript.tool_calls] for one in (whole, less)]
    assert called == [["search_products", "get_reviews", "issue_voucher"], ["search_products", "get_reviews"]]
    assert less.transcript.final_output


async def test_an_unseen_tool_need_not_be_there(run_agent: Run) -> None:
    text = "What do customers say about the Aurora Kettle?"
    less = await run_agent({"kind": "demo", "pace": 0}, text, context={"unseen_tools": ["issue_voucher", "gone"]})
    assert [call.name for call in less.transcript.tool_calls] == ["search_products", "get_reviews"]
    changes = ToolChanges(unseen=("find", "gone"))
    changes.check(("find", "cancel"))
    assert [one.name for one in changes.offered([ToolSpec("find"), ToolSpec("cancel")])] == ["cancel"]


def test_changes_are_laid_over_those_of_the_test() -> None:
    made = ToolChanges(("b", "a"), {"d": ToolChange("", {"type": "object"})}).laid_over(
        {
            "input_data": 1,
            "without_tools": ["a"],
            "changed_tools": {"b": {"description": "B"}, "c": {"description": "C"}},
        }
    )
    assert made == {
        "input_data": 1,
        "without_tools": ["a", "b"],
        "changed_tools": {"c": {"description": "C"}, "d": {"description": "", "parameters": {"type": "object"}}},
    }
    assert tool_changes(made).laid_over({"input_data": 1}) == made
    assert tool_changes({"input_data": 1}) is NO_CHANGES
    assert Context.model_validate(made).as_dict() == made, "as a suite has it"
    assert request_hash("a", ASKED, ()) != request_hash("a", AgentRequest(ASKED.messages), ())
