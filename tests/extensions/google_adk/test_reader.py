"""Agents of Google's Agent Development Kit: real ones, with a model of their own, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import agents_of, assert_object_is_found
from framework_runs import BAD, FIND, LATER, assert_continued, calls_of, named_apart, played_by, unseen_of

from agenteval_tui.transcripts.model import Note, Usage
from tests.agents.conftest import Run

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(
        tmp_path,
        "Google ADK",
        "from google.adk.agents.llm_agent import LlmAgent\nx = LlmAgent(name='x', instruction=RULES)\n",
    )


def test_the_state_that_instructions_need_is_written(tmp_path: Path) -> None:
    parts = "from google.adk.agents import Agent\n"
    parts += "scorer = Agent(name='scorer', instruction='Score {lead} of {user_name}.', output_key='score')\n"
    parts += "writer = Agent(name='writer', instruction='Write of {score} and {notes?}, {artifact.x}, { a: 1 }.')\n"
    root = "from google.adk.agents import SequentialAgent\nfrom .parts import scorer, writer\n"
    files = {
        "desk/__init__.py": "",
        "desk/parts.py": parts,
        "desk/agent.py": f"{root}root_agent = SequentialAgent(name='desk', sub_agents=[scorer, writer])\n",
    }
    desk, *others = agents_of(tmp_path, files)
    assert desk.config["context"] == {"lead": "lead", "user_name": "user name"}
    assert desk.examples == ("context.lead", "context.user_name")
    # By itself, an agent needs what another one would have written.
    assert {agent.name: agent.config.get("context") for agent in others}["writer"] == {"score": "score"}


ADK_ALONE = ("event_alone", "content_alone", "text_alone")
ADK = ("agent", "sequence", "runner", "events", "listed")


@pytest.fixture(scope="module")
def google_adk() -> Any:
    return played_by(FOLDER.name, "google.adk", (*ADK, *ADK_ALONE, "refusing", "drawing"), folder=FOLDER)


@pytest.mark.xdist_group("google_adk")
class TestGoogleADK:
    def test_the_last_piece_alone_says_nothing_of_calls(self, google_adk: Any) -> None:
        assert unseen_of(google_adk[0], *ADK_ALONE) == [["unread_calls"], ["unread_calls"], ["text_only"]]
        assert google_adk[0]["content_alone"].transcript.final_output == "3 pairs"

    @pytest.mark.parametrize("name", ADK)
    def test_what_it_gives(self, google_adk: Any, name: str) -> None:
        played, _ = google_adk
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert transcript.notes == ()
        assert [m.role for m in transcript.messages] == ["user", "assistant", "tool", "tool", "assistant"]
        assert (transcript.messages[1].content, transcript.messages[1].reasoning) == ("let me see", "hm")
        assert calls_of(transcript) == [FIND, BAD]
        assert [c.result for c in transcript.tool_calls] == ['["socks"]', '{"error": "no such x"}']
        assert (transcript.final_output, transcript.usage) == ("3 pairs", Usage(30, 7, 3, 1))
        assert (transcript.finish_reason, transcript.model) == ("max_tokens", "fake-1")

    def test_a_run_that_is_continued_from_its_results(self, google_adk: Any) -> None:
        assert_continued(google_adk[0]["agent, continued"])

    def test_a_later_turn(self, google_adk: Any) -> None:
        played, truth = google_adk
        transcript = played["agent, later"].transcript
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert calls_of(transcript)[1:] == [FIND, BAD]
        assert transcript.final_output == "3 pairs"
        asked = next(one for one in truth["asked"] if one[-1][0] == "and now?")
        parts = [part for _, kinds in asked for part in kinds]
        assert parts == ["text", "text", "text", "function_call", "function_response", "text", "text"]

    def test_what_can_not_be_read_is_said(self, google_adk: Any) -> None:
        played, _ = google_adk
        transcript = played["refusing"].transcript
        assert transcript.notes == (Note("left_out", "an error of the model: SAFETY refused"),)
        assert (transcript.finish_reason, transcript.final_output) == ("safety", "")
        transcript = played["drawing"].transcript
        assert transcript.notes == (Note("left_out", "a part of a message: inline_data"),)
        assert transcript.final_output == "here"


@pytest.mark.parametrize(
    ("name", "more", "answer"),
    [
        ("keyed", {"context": {"customer": "C1"}}, "You serve C1."),
        ("keyed", {"context": {"customer": "C1"}, "output": "customer"}, "C1"),
        ("keyed", {"context": {"customer": "C"}, "input": "Q {{prompt}}", "output": "said"}, "Q h"),
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
