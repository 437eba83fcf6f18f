"""Agents of Agno: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import BAD, FIND, assert_continued, assert_shop, authors_of, calls_of, played_with_model, unseen_of

from agenteval_tui.transcripts.model import Note

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(tmp_path, "Agno", "from agno.agent import Agent\nx = Agent(instructions=RULES)\n")


AGNO_ALONE = ("message_alone", "content_alone", "only_texts", "last_event")
AGNO = ("agent", "workflow", "result", "later", "streamed", "of_workflow")


@pytest.fixture(scope="module")
def agno() -> Any:
    targets = (*AGNO, *AGNO_ALONE, "team", "of_team", "typed", "gone", "gone_result", "waiting", "waiting_result")
    targets = (*targets, "without_messages")
    return played_with_model(FOLDER.name, "agno", targets, ("agent",), AGNO_TELEMETRY="false", folder=FOLDER)


@pytest.mark.xdist_group("agno")
class TestAgno:
    @pytest.mark.parametrize("name", [*AGNO, "agent, later"])
    def test_what_it_gives(self, agno: Any, name: str) -> None:
        played, truth = agno
        assert_shop(played[name], "stop", ["shop", "shop"])
        assert truth["usage"] == [30, 7]
        assert truth["tools"] == [["find", {"q": "socks"}, False, '["socks"]'], ["bad", {"x": 1}, True, "no such x"]]

    def test_a_run_that_is_continued_from_its_results(self, agno: Any) -> None:
        assert_continued(agno[0]["agent, continued"])

    def test_the_last_piece_alone_says_nothing_of_calls(self, agno: Any) -> None:
        told = unseen_of(agno[0], *AGNO_ALONE)
        assert told == [["unread_calls"], ["text_only"], ["unread_calls"], ["unread_calls"]]
        assert calls_of(agno[0]["without_messages"].transcript) == [FIND, BAD]

    @pytest.mark.parametrize("name", ["team", "of_team"])
    def test_a_team(self, agno: Any, name: str) -> None:
        transcript = agno[0][name].transcript
        assert authors_of(transcript) == ["desk", "shop", "shop", "desk"]
        calls = [(call.name, call.status) for call in transcript.tool_calls]
        assert calls == [("delegate_task_to_member", "ok"), ("find", "ok"), ("bad", "error")]
        # Agno's own figures of a team leave its members out.
        assert (transcript.usage.input_tokens, agno[1]["team"]) == (60, [30, 7])

    @pytest.mark.parametrize("name", ["waiting", "waiting_result"])
    def test_a_call_that_waits_for_a_person_was_made(self, agno: Any, name: str) -> None:
        transcript = agno[0][name].transcript
        assert calls_of(transcript) == [("a", "find", {"q": "socks"}, "pending")]
        assert transcript.notes == (Note("interrupted", "find"),)

    def test_an_object_is_the_answer(self, agno: Any) -> None:
        assert json.loads(agno[0]["typed"].transcript.final_output) == {"pairs": 3}

    @pytest.mark.parametrize("name", ["gone", "gone_result"])
    def test_a_run_that_failed_is_no_answer(self, agno: Any, name: str) -> None:
        transcript = agno[0][name].transcript
        assert (transcript.error.message, transcript.final_output) == ("Connection error.", "")
