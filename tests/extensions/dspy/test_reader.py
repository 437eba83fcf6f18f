"""Agents of DSPy: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_models import as_dspy
from framework_runs import assert_not_continued, played_with_model, unseen_of

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(tmp_path, "DSPy", "import dspy\nx = dspy.ReAct('question -> answer', tools=[])\n")


@pytest.fixture(scope="module")
def dspy() -> Any:
    targets = ("agent", "shop", "broken", "result", "thinking", "thought", "several", "answer_alone", "rewritten")
    return played_with_model(FOLDER.name, "dspy", targets, ("agent",), as_dspy, folder=FOLDER)


@pytest.mark.xdist_group("dspy")
class TestDSPy:
    @pytest.mark.parametrize("name", ["agent", "shop", "result", "agent, later"])
    def test_what_it_gives(self, dspy: Any, name: str) -> None:
        played, truth = dspy
        assert played[name].raised == ""
        transcript = played[name].transcript
        calls = [(call.name, call.arguments, call.status) for call in transcript.tool_calls][-3:]
        alone = name == "result"  # a Prediction, which tells no errors and no tokens
        bad = ("bad", {"x": 1}, "ok" if alone else "error")
        assert calls == [("find", {"q": "socks"}, "ok"), bad, ("finish", {}, "ok")]
        assert [note.code for note in transcript.notes] == (["left_out"] if alone else [])
        assert "no such x" in transcript.tool_calls[-2].result
        assert {message.reasoning for message in transcript.messages[-7:] if message.tool_calls} == {"let me see"}
        assert (transcript.final_output, transcript.messages[-1].reasoning) == ("3 pairs", "hm")
        assert truth["trajectory"]["tool_args_0"] == {"q": "socks"}
        if not alone:
            assert [transcript.usage.input_tokens, transcript.usage.output_tokens] == truth["usage"] == [40, 8]

    def test_a_run_that_is_continued_from_its_results(self, dspy: Any) -> None:
        assert_not_continued(dspy[0]["agent, continued"])

    def test_the_last_piece_alone_says_nothing_of_calls(self, dspy: Any) -> None:
        assert unseen_of(dspy[0], "answer_alone", "rewritten") == [["text_only"], ["unread_calls"]]

    def test_what_was_done_before_it_broke_is_kept(self, dspy: Any) -> None:
        broken = dspy[0]["broken"]
        assert "the model is gone" in broken.raised
        assert [call.name for call in broken.transcript.tool_calls] == ["find", "bad", "finish"]
        assert broken.transcript.usage.input_tokens == 40

    def test_modules_without_tools(self, dspy: Any) -> None:
        played, _ = dspy
        assert (played["thinking"].transcript.final_output, played["thinking"].transcript.notes) == ("3 pairs", ())
        assert [note.code for note in played["thought"].transcript.notes] == ["unread_calls"]
        assert "write in the agent `input: {question: ..., customer: ...}`" in played["several"].raised
