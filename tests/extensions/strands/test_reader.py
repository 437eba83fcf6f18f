"""Agents of Strands: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import BAD, FIND, assert_continued, authors_of, calls_of, played_with_model, unseen_of

from agenteval_tui.transcripts.model import Usage

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(tmp_path, "strands", "from strands import Agent\nx = Agent(system_prompt=RULES)\n")


@pytest.fixture(scope="module")
def strands() -> Any:
    targets = ("agent", "result", "graph", "broken", "served_agent", "served", "message_alone", "only_texts")
    targets = (*targets, "all_messages", "all_events")
    return played_with_model(FOLDER.name, "strands", targets, ("agent",), folder=FOLDER)


@pytest.mark.xdist_group("strands")
def test_strands(strands: Any) -> None:
    """The agent itself has everything; a result alone says that its calls are not known."""
    played, truth = strands
    transcript = played["agent"].transcript
    assert transcript.final_output == "3 pairs"
    assert calls_of(transcript) == [FIND, BAD]
    assert transcript.usage == Usage(20, 4, cached_tokens=6), transcript.usage
    assert not transcript.notes
    later = played["agent, later"].transcript
    assert later.final_output == "3 pairs"
    assert ["user", ["toolResult"]] in truth["asked"][-2]
    assert_continued(played["agent, continued"])
    assert truth["asked"][-1][-2:] == [["user", ["toolResult"]]] * 2
    alone = played["result"].transcript
    assert alone.final_output == "3 pairs"
    assert [note.code for note in alone.notes] == ["unread_calls"]
    both = played["graph"].transcript
    assert authors_of(both) == ["first", "first", "second", "second"]
    assert [call.name for call in both.tool_calls] == ["find", "bad"] * 2
    served = played["served_agent"].transcript
    assert (served.final_output, calls_of(served), served.notes) == ("3 pairs", [FIND, BAD], ())
    assert served.usage == Usage(30, 7)
    assert [note.code for note in played["served"].transcript.notes] == ["unread_calls"]
    assert played["served"].transcript.usage == Usage(30, 7)
    assert unseen_of(played, "message_alone", "only_texts") == [["unread_calls"], ["text_only"]]
    for name in ("all_messages", "all_events"):
        assert (played[name].transcript.final_output, calls_of(played[name].transcript)) == ("3 pairs", [FIND, BAD])
        assert played[name].transcript.notes == ()
    broken = played["broken"]
    assert "the model is gone" in broken.raised
    assert calls_of(broken.transcript) == [FIND, BAD]
