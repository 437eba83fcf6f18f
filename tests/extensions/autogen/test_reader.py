"""Agents of AutoGen: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

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
    assert_not_continued,
    calls_of,
    named_apart,
    played_by,
    played_with_model,
    unseen_of,
)

from tests.agents.conftest import Run

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(
        tmp_path, "AutoGen", "from autogen_agentchat.teams import RoundRobinGroupChat\nx = RoundRobinGroupChat([])\n"
    )


AUTOGEN_ALONE = ("message_alone", "messages_alone", "summary_alone")
AUTOGEN = ("agent", "streaming", "team", "result", "response", "streamed")


@pytest.fixture(scope="module")
def autogen() -> Any:
    return played_by(
        FOLDER.name, "autogen_agentchat", (*AUTOGEN, *AUTOGEN_ALONE, "summing"), ("agent", "team"), folder=FOLDER
    )


@pytest.mark.xdist_group("autogen")
class TestAutoGen:
    @pytest.mark.parametrize("name", AUTOGEN)
    def test_what_it_gives(self, autogen: Any, name: str) -> None:
        played, truth = autogen
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert transcript.notes == ()
        assert [m.role for m in transcript.messages] == ["user", "assistant", "tool", "tool", "assistant"]
        first = transcript.messages[1]
        # What AutoGen calls a thought is the text that it streamed, where it did.
        said = (first.content, first.reasoning)
        assert said == (("let me see", "") if name.startswith("stream") else ("", "let me see"))
        assert calls_of(transcript) == [FIND, BAD]
        assert [c.result for c in transcript.tool_calls] == ['["socks"]', "no such x"]
        assert (transcript.final_output, transcript.messages[-1].reasoning) == ("3 pairs", "hm")
        assert [transcript.usage.input_tokens, transcript.usage.output_tokens] == truth["usage"] == [30, 7]

    def test_the_last_piece_alone_says_nothing_of_calls(self, autogen: Any) -> None:
        assert unseen_of(autogen[0], *AUTOGEN_ALONE) == [["unread_calls"]] * 3

    def test_the_results_may_be_the_answer(self, autogen: Any) -> None:
        assert autogen[0]["summing"].transcript.final_output == '["socks"]\nno such x'

    def test_a_run_that_is_continued_from_its_results(self, autogen: Any) -> None:
        assert_continued(autogen[0]["agent, continued"])
        assert_not_continued(autogen[0]["team, continued"])

    @pytest.mark.parametrize("name", ["agent", "team"])
    def test_a_later_turn(self, autogen: Any, name: str) -> None:
        played, truth = autogen
        transcript = played[f"{name}, later"].transcript
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert calls_of(transcript)[1:] == [FIND, BAD]
        assert transcript.final_output == "3 pairs"
        asked = next(one for one in truth["asked"] if "and now?" in one[-1][1])
        if name == "agent":
            kinds = ("SystemMessage", "UserMessage", "AssistantMessage", "FunctionExecutionResultMessage")
            assert [kind for kind, _ in asked][1:] == [*kinds, "AssistantMessage", "UserMessage"]


def test_after_a_hand_off_each_step_of_autogen_says_which_agent_wrote_it() -> None:
    played, _ = played_with_model(FOLDER.name, "autogen_agentchat", ("handing",), folder=FOLDER)
    assert_handed_over(played["handing"], ["desk", "desk", "shop", "shop"], "transfer_to_shop")


async def test_a_context_is_not_left_out_in_silence(run_agent: Run, tmp_path: Path) -> None:
    ran = await run_agent(named_apart(tmp_path, FOLDER.name, "agent", FOLDER, context={"a": 1}))
    assert ran.transcript.error is not None
    assert "agents of AutoGen have no run context" in ran.transcript.error.message
