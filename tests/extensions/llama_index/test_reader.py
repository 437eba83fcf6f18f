"""Agents of LlamaIndex: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import (
    BAD,
    FIND,
    LATER,
    assert_continued,
    assert_handed_over,
    calls_of,
    named_apart,
    played_by,
    played_with_model,
    unseen_of,
)

from agenteval_tui.transcripts.model import Usage
from tests.agents.conftest import Run

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(
        tmp_path,
        "LlamaIndex",
        "from llama_index.core.agent.workflow import FunctionAgent\nx = FunctionAgent(system_prompt=RULES)\n",
    )


LLAMA_INDEX = ("agent", "streaming", "several", "streamed")
LLAMA_ALONE = ("message_alone", "chat_response", "of_a_query_engine")
WORKFLOWS = ("reasoning", "chat_engine", "workflow", "odd", "tells", "result", "own_end")


@pytest.fixture(scope="module")
def llama_index() -> Any:
    return played_by(FOLDER.name, "llama_index.core", (*LLAMA_INDEX, *WORKFLOWS, *LLAMA_ALONE), folder=FOLDER)


@pytest.mark.xdist_group("llama_index")
class TestLlamaIndex:
    @pytest.mark.parametrize("name", LLAMA_INDEX)
    def test_what_it_gives(self, llama_index: Any, name: str) -> None:
        played, _ = llama_index
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert transcript.notes == ()
        assert [m.role for m in transcript.messages] == ["user", "assistant", "tool", "tool", "assistant"]
        assert (transcript.messages[1].content, transcript.messages[1].reasoning) == ("let me see", "hm")
        assert calls_of(transcript) == [FIND, BAD]
        assert [c.result for c in transcript.tool_calls] == ['["socks"]', "no such x"]
        assert (transcript.final_output, transcript.usage) == ("3 pairs", Usage(30, 7))

    def test_a_run_that_is_continued_from_its_results(self, llama_index: Any) -> None:
        assert_continued(llama_index[0]["agent, continued"])

    def test_a_later_turn(self, llama_index: Any) -> None:
        played, truth = llama_index
        transcript = played["agent, later"].transcript
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert calls_of(transcript)[1:] == [FIND, BAD]
        assert transcript.final_output == "3 pairs"
        asked = next(one for one in truth["asked"] if one[-1] == ["user", "and now?"])
        assert [role for role, _ in asked] == [m.role for m in LATER.messages]

    def test_the_last_piece_alone_says_nothing_of_calls(self, llama_index: Any) -> None:
        assert unseen_of(llama_index[0], *LLAMA_ALONE) == [["unread_calls"]] * 3

    def test_an_agent_that_reasons_in_words(self, llama_index: Any) -> None:
        transcript = llama_index[0]["reasoning"].transcript
        assert [(c.name, c.arguments, c.result) for c in transcript.tool_calls] == [
            ("find", {"q": "socks"}, '["socks"]')
        ]
        assert transcript.final_output == "3 pairs"

    def test_other_objects(self, llama_index: Any) -> None:
        played, _ = llama_index
        transcript = played["chat_engine"].transcript
        assert [(c.name, c.result) for c in transcript.tool_calls] == [("find", '["socks"]')]
        assert transcript.final_output == "3 pairs"
        assert played["workflow"].transcript.final_output == "3 pairs of hello"
        assert played["tells"].transcript.final_output == "3 pairs"
        assert json.loads(played["own_end"].transcript.final_output) == {"pairs": 3}

    def test_what_can_not_be_read_is_said(self, llama_index: Any) -> None:
        played, _ = llama_index
        transcript = played["result"].transcript
        assert [note.code for note in transcript.notes] == ["left_out"]
        assert [c.name for c in transcript.tool_calls] == ["find", "bad"]
        assert transcript.final_output == "3 pairs"
        assert "is a workflow that begins with: size; write a function" in played["odd"].raised
        assert played["odd"].wrong


def test_after_a_hand_off_each_step_of_llama_index_says_which_agent_wrote_it() -> None:
    played, _ = played_with_model(FOLDER.name, "llama_index.core", ("handing",), folder=FOLDER)
    assert_handed_over(played["handing"], ["desk", "shop", "shop"], "handoff")


@pytest.mark.parametrize(
    ("name", "more", "answer"),
    [
        ("remembers", {"output": "deep.pairs"}, "3"),
        ("remembers", {"context": {"customer": "{{prompt}}"}, "output": "who"}, "hello"),
        ("remembers", {"input": {"query": "Q {{prompt}}"}, "output": "query"}, "Q hello"),
    ],
)
async def test_input_output_and_context(
    run_agent: Run, tmp_path: Path, name: str, more: dict[str, Any], answer: str
) -> None:
    ran = await run_agent(named_apart(tmp_path, FOLDER.name, name, FOLDER, **more))
    assert answer in ran.transcript.final_output, ran.events[-1]


async def test_what_was_done_before_it_broke_is_kept(run_agent: Run, tmp_path: Path) -> None:
    transcript = (await run_agent(named_apart(tmp_path, FOLDER.name, "broken", FOLDER))).transcript
    assert transcript.error is not None
    assert "the model is gone" in transcript.error.message
    done = [(call.name, call.arguments, bool(call.status == "error")) for call in transcript.tool_calls]
    assert done == [("find", {"q": "socks"}, False), ("bad", {"x": 1}, True)]
