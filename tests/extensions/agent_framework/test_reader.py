"""Agents of Microsoft's Agent Framework: real ones with a model on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import BAD, FIND, assert_continued, authors_of, calls_of, played_with_model, unseen_of

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(
        tmp_path, "Agent Framework", "from agent_framework import Agent\nx = Agent(client, instructions=RULES)\n"
    )


WHOLE = ("agent", "make_agent", "result", "by_responses", "streamed", "messages")


@pytest.fixture(scope="module")
def agent_framework() -> Any:
    targets = (*WHOLE, "text", "last_message", "workflow", "structured", "broken")
    return played_with_model(FOLDER.name, "agent_framework", targets, ("agent",), folder=FOLDER)


@pytest.mark.xdist_group("agent_framework")
class TestAgentFramework:
    @pytest.mark.parametrize("name", [*WHOLE, "agent, later"])
    def test_what_it_gives(self, agent_framework: Any, name: str) -> None:
        played = agent_framework[0][name]
        assert played.raised == ""
        transcript = played.transcript
        assert transcript.notes == ()
        roles = [message.role for message in transcript.messages]
        assert roles[-5:] == ["user", "assistant", "tool", "tool", "assistant"]
        assert (transcript.messages[-4].content, transcript.final_output) == ("let me see", "3 pairs")
        assert calls_of(transcript)[-2:] == [FIND, BAD]
        used = transcript.usage.input_tokens, transcript.usage.output_tokens
        assert used == ((None, None) if name == "messages" else (30, 7))
        assert (transcript.finish_reason, authors_of(transcript)[-2:]) == ("stop", [None, None])

    def test_each_agent_of_a_workflow_signs_and_all_that_they_used_counts(self, agent_framework: Any) -> None:
        transcript = agent_framework[0]["workflow"].transcript
        assert authors_of(transcript) == ["first", "first", "second"]
        assert calls_of(transcript) == [FIND, BAD]
        assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (50, 9)

    def test_a_run_that_is_continued_from_its_results(self, agent_framework: Any) -> None:
        assert_continued(agent_framework[0]["agent, continued"])

    def test_what_holds_no_calls_says_so(self, agent_framework: Any) -> None:
        assert unseen_of(agent_framework[0], "text", "last_message") == [["text_only"], ["unread_calls"]]

    def test_an_object_that_it_was_to_give_is_the_answer(self, agent_framework: Any) -> None:
        assert agent_framework[0]["structured"].transcript.final_output == '{"pairs": 3}'

    def test_an_agent_that_raises_has_what_it_did_before(self, agent_framework: Any) -> None:
        broken = agent_framework[0]["broken"]
        assert "the model is gone" in broken.raised
        assert calls_of(broken.transcript) == [FIND, BAD]
