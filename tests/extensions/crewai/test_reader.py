"""Agents of CrewAI: real ones, with its own model or one on loopback, in an environment of their own."""

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
    assert_not_continued,
    calls_of,
    named_apart,
    played_by,
    unseen_of,
)

from tests.agents.conftest import Run

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(tmp_path, "CrewAI", "from crewai import Crew\nx = Crew(agents=[], tasks=[])\n")


CREWAI_ALONE = ("task_alone", "text_alone", "wordy_result")
CREWAI = ("agent", "crew", "of_class", "result", "lite")


@pytest.fixture(scope="module")
def crewai() -> Any:
    return played_by(FOLDER.name, "crewai", (*CREWAI, "deaf", "wordy", *CREWAI_ALONE), ("agent", "crew"), folder=FOLDER)


@pytest.mark.xdist_group("crewai")
class TestCrewAI:
    @pytest.mark.parametrize("name", CREWAI)
    def test_what_it_gives(self, crewai: Any, name: str) -> None:
        played, _ = crewai
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert [m.role for m in transcript.messages] == ["user", *["assistant", "tool"] * 2, "assistant"]
        assert [c.result for c in transcript.tool_calls] == ['["socks"]', "Error executing tool: no such x"]
        assert (transcript.final_output, transcript.usage.input_tokens) == ("3 pairs", 30)
        assert transcript.usage.output_tokens == 6
        if name in ("agent", "crew", "of_class"):
            assert transcript.notes == ()
            assert calls_of(transcript) == [FIND, BAD]
        else:  # which call failed is in events, which a function that returns a result does not hear
            assert [note.code for note in transcript.notes] == ["left_out"]
            assert [c.id for c in transcript.tool_calls] == ["a", "b"]

    def test_a_run_that_is_continued_from_its_results(self, crewai: Any) -> None:
        assert_continued(crewai[0]["agent, continued"])
        assert_not_continued(crewai[0]["crew, continued"])

    @pytest.mark.parametrize("name", ["agent", "crew"])
    def test_a_later_turn(self, crewai: Any, name: str) -> None:
        played, truth = crewai
        transcript = played[f"{name}, later"].transcript
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert calls_of(transcript)[1:] == [FIND, BAD]
        assert transcript.final_output == "3 pairs"
        asked = [one for one in truth["asked"] if "and now?" in str(one)]
        assert asked
        assert all("yes?" in str(one) for one in asked)

    def test_a_model_that_calls_tools_in_words(self, crewai: Any) -> None:
        played, _ = crewai
        transcript = played["wordy"].transcript
        assert [(c.name, c.arguments, c.result) for c in transcript.tool_calls] == [
            ("find", {"q": "socks"}, '["socks"]')
        ]
        assert (transcript.final_output, transcript.notes) == ("3 pairs", ())

    def test_the_last_piece_alone_says_nothing_of_calls(self, crewai: Any) -> None:
        """A function that returns the result hears no events, of calls in words."""
        told = unseen_of(crewai[0], *CREWAI_ALONE)
        assert told == [["left_out", "unread_calls"], ["text_only"], ["unread_calls"]]

    def test_a_crew_that_asks_for_nothing(self, crewai: Any) -> None:
        assert crewai[0]["deaf"].raised.endswith(
            "deaf is a crew that asks for nothing; write {prompt} into a task's description"
        )
        assert crewai[0]["deaf"].wrong


@pytest.mark.parametrize(
    ("name", "more", "answer"),
    [
        ("ordering", {"context": {"customer": "C1"}, "output": "customer"}, "C1"),
        ("ordering", {"input": {"customer": "C2"}, "output": "pairs"}, "3"),
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


async def test_a_context_is_not_left_out_in_silence(run_agent: Run, tmp_path: Path) -> None:
    ran = await run_agent(named_apart(tmp_path, FOLDER.name, "agent", FOLDER, context={"a": 1}))
    assert ran.transcript.error is not None
    assert "an agent of CrewAI takes no context" in ran.transcript.error.message
