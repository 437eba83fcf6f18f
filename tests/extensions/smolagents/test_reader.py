"""Agents of Smolagents: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import BAD, FIND, LATER, assert_not_continued, calls_of, named_apart, played_by, unseen_of

from agenteval_tui.transcripts.model import Message, Note, Usage
from tests.agents.conftest import Run

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(
        tmp_path, "smolagents", "import smolagents\nx = smolagents.CodeAgent(tools=[], instructions=RULES)\n"
    )


SMOLAGENTS = ("agent", "streaming", "result", "memory", "streamed")
CODING = ("coding", "coding_streamed")
SMOLAGENTS_ALONE = ("step_alone", "final_alone", "text_alone", "code_text_alone")


@pytest.fixture(scope="module")
def smolagents() -> Any:
    return played_by(
        FOLDER.name,
        "smolagents",
        (
            *(*SMOLAGENTS, *CODING, *SMOLAGENTS_ALONE, "at_once", "steps_of_several", "wordy"),
            *("coding_deep", "coding_manager", "code_memory"),
        ),
        folder=FOLDER,
    )


@pytest.mark.xdist_group("smolagents")
class TestSmolagents:
    @pytest.mark.parametrize("name", SMOLAGENTS)
    def test_what_it_gives(self, smolagents: Any, name: str) -> None:
        played, truth = smolagents
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert transcript.notes == ()
        roles = ["user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"]
        assert [m.role for m in transcript.messages] == roles
        assert calls_of(transcript) == [FIND, BAD, ("c", "final_answer", {"answer": "3 pairs"}, "ok")]
        assert transcript.tool_calls[0].result == '["socks"]'
        assert "no such x" in transcript.tool_calls[1].result
        assert (transcript.messages[1].content, transcript.final_output) == ("let me see", "3 pairs")
        assert [transcript.usage.input_tokens, transcript.usage.output_tokens] == truth["usage"] == [30, 6]
        if name != "streaming":  # there, smolagents keeps nothing of what the API gave
            assert transcript.messages[1].reasoning == "hm"
            assert (transcript.finish_reason, transcript.model) == ("length", "fake-1")

    @pytest.mark.parametrize("name", CODING)
    def test_agents_that_write_code(self, smolagents: Any, name: str) -> None:
        transcript = smolagents[0][name].transcript
        assert transcript.notes == ()
        assert [(c.name, c.status) for c in transcript.tool_calls] == [
            ("python_interpreter", "ok"),
            ("find", "ok"),
            ("python_interpreter", "error"),
            ("bad", "error"),
            ("python_interpreter", "ok"),
        ]
        code, find, _, bad, _ = transcript.tool_calls
        assert code.arguments == "print(find(q='socks'))"
        assert '["socks"]' in code.result
        assert (find.arguments, find.result) == ({"q": "socks"}, '["socks"]')
        assert (bad.arguments, bad.result) == ({"x": 1}, "no such x")
        assert transcript.messages[1].content.startswith("Thought: let me see\n<code>")
        assert transcript.final_output == "3 pairs"
        assert transcript.usage == Usage(30, 6)

    def test_what_code_calls_is_called_once_however_it_passes_arguments(self, smolagents: Any) -> None:
        """A tool or an agent that is called calls others by itself: these are not the code's."""
        played, _ = smolagents
        assert played["coding_deep"].transcript.notes == ()
        assert [(c.name, c.arguments, c.result) for c in played["coding_deep"].transcript.tool_calls][1:4] == [
            ("find", {"q": "hats"}, '["hats"]'),
            ("twice", {"q": "caps"}, '["caps"]["caps"]'),
            ("find", {"q": "ties"}, '["ties"]'),
        ]
        assert [c.name for c in played["coding_manager"].transcript.tool_calls] == [
            *("python_interpreter", "helper", "python_interpreter"),
        ]

    def test_calls_in_code_that_were_not_seen_are_not_known(self, smolagents: Any) -> None:
        assert unseen_of(smolagents[0], "code_memory") == [["unread_calls"]]

    def test_the_answer_after_the_last_allowed_step_is_counted(self, smolagents: Any) -> None:
        """However many pieces were streamed before it."""
        assert smolagents[0]["wordy"].transcript.usage == Usage(30, 3)

    def test_the_last_piece_alone_says_nothing_of_calls(self, smolagents: Any) -> None:
        told = unseen_of(smolagents[0], *SMOLAGENTS_ALONE)
        assert told == [["unread_calls"], ["unread_calls"], ["text_only"], ["text_only"]]

    def test_a_run_that_is_continued_from_its_results(self, smolagents: Any) -> None:
        assert_not_continued(smolagents[0]["agent, continued"])

    def test_a_later_turn(self, smolagents: Any) -> None:
        played, truth = smolagents
        transcript = played["agent, later"].transcript
        assert [m.role for m in transcript.messages][:6] == [m.role for m in LATER.messages]
        assert calls_of(transcript)[1:3] == [FIND, BAD]
        assert transcript.final_output == "3 pairs"
        # The model was told what was said before.
        (asked,) = [one for one in truth["asked"] if "and now?" in str(one[-1])]
        assert [role for role, _ in asked][1:] == [
            *("system", "user", "assistant", "tool-call", "tool-response", "assistant", "user"),
        ]

    def test_what_can_not_be_read_is_said(self, smolagents: Any) -> None:
        played, _ = smolagents
        transcript = played["at_once"].transcript
        assert (transcript.finish_reason, [c.result for c in transcript.tool_calls]) == (
            "max_steps",
            ['["x"]', '["y"]'],
        )
        transcript = played["steps_of_several"].transcript
        assert transcript.notes == (Note("unread", "the results of several calls, which are one text"),)
        assert [c.name for c in transcript.tool_calls] == ["find", "find"]


@pytest.mark.parametrize(
    ("name", "more", "answer"),
    [
        ("structured", {"context": {"customer": "C1"}, "output": "knows"}, "true"),
    ],
)
async def test_input_output_and_context(
    run_agent: Run, tmp_path: Path, name: str, more: dict[str, Any], answer: str
) -> None:
    ran = await run_agent(named_apart(tmp_path, FOLDER.name, name, FOLDER, **more))
    assert answer in ran.transcript.final_output, ran.events[-1]


async def test_a_later_turn_has_the_code_as_the_only_call(run_agent: Run, tmp_path: Path) -> None:
    """As the agent itself remembers it."""
    agent = named_apart(tmp_path, FOLDER.name, "coding_echo", FOLDER)
    first = (await run_agent(agent)).transcript
    assert [call.name for call in first.tool_calls] == ["python_interpreter", "find", "python_interpreter"]
    messages = (*first.messages, Message("user", "and now?"))
    remembered = (await run_agent(agent, messages=messages, tool_calls=first.tool_calls, turn=2)).transcript
    assert remembered.final_output == "python_interpreter python_interpreter"
