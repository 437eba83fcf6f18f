"""Agents of Semantic Kernel: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import authors_of, played_with_model

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    code = "from semantic_kernel.agents import ChatCompletionAgent\nx = ChatCompletionAgent(instructions=RULES)\n"
    assert_object_is_found(tmp_path, "Semantic Kernel", code)


SEMANTIC_KERNEL = ("agent", "streamed", "history")


ANSWERS_ALONE = ("response", "message", "results", "only_answers")


@pytest.fixture(scope="module")
def semantic_kernel() -> Any:
    return played_with_model(
        FOLDER.name, "semantic_kernel", (*SEMANTIC_KERNEL, *ANSWERS_ALONE), ("agent",), folder=FOLDER
    )


@pytest.mark.xdist_group("semantic_kernel")
class TestSemanticKernel:
    @pytest.mark.parametrize("name", [*SEMANTIC_KERNEL, "agent, later"])
    def test_what_it_gives(self, semantic_kernel: Any, name: str) -> None:
        played, truth = semantic_kernel
        assert played[name].raised == ""
        transcript = played[name].transcript
        assert (authors_of(transcript)[-2:], transcript.final_output) == (["shop", "shop"], "3 pairs")
        assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (30, 7)
        calls = [(call.name, call.arguments, call.status) for call in transcript.tool_calls][-2:]
        alone = name in ("streamed", "history")
        assert calls == [("Shop-find", {"q": "socks"}, "ok"), ("Shop-bad", {"x": 1}, "ok" if alone else "error")]
        assert [note.code for note in transcript.notes] == (["left_out"] if alone else [])
        assert truth["calls"] == [["find", '{"q": "socks"}'], ["bad", '{"x": 1}']]

    def test_a_run_that_is_continued_from_its_results(self, semantic_kernel: Any) -> None:
        """It knows the results. The model of this test has other names for the tools, and calls them again."""
        played = semantic_kernel[0]["agent, continued"]
        assert played.raised == ""
        assert [call.result for call in played.transcript.tool_calls[:2]] == ["HATS", "none"]

    @pytest.mark.parametrize("name", ANSWERS_ALONE)
    def test_answers_alone_hold_no_calls(self, semantic_kernel: Any, name: str) -> None:
        transcript = semantic_kernel[0][name].transcript
        # What `invoke_stream` gives has no end of a message.
        answer = "let me see3 pairs" if name == "only_answers" else "3 pairs"
        assert (transcript.final_output, [note.code for note in transcript.notes]) == (answer, ["unread_calls"])
