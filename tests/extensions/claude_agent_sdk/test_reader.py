"""Agents of Claude's agent SDK: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_models import as_anthropic
from framework_runs import assert_not_continued, authors_of, played_with_model

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    code = "from claude_agent_sdk import ClaudeAgentOptions\nx = ClaudeAgentOptions(system_prompt=RULES)\n"
    assert_object_is_found(tmp_path, "Claude's agent SDK", code)


CLAUDE = ("options", "client", "streamed", "listed")


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = str(tmp_path_factory.mktemp("home"))
    more = {"HOME": home, "ANTHROPIC_API_KEY": "x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    targets = (*CLAUDE, "result", "answer_alone", "limited", "delegating")
    return played_with_model(
        FOLDER.name, "claude_agent_sdk", targets, ("options",), as_anthropic, folder=FOLDER, **more
    )


@pytest.mark.xdist_group("claude_agent_sdk")
class TestClaudeAgentSDK:
    @pytest.mark.parametrize("name", [*CLAUDE, "options, later"])
    def test_what_it_gives(self, claude: Any, name: str) -> None:
        played, truth = claude
        assert played[name].raised == ""
        transcript = played[name].transcript
        calls = [(call.name, call.arguments, call.result, call.status) for call in transcript.tool_calls][-2:]
        find = ("mcp__shop__find", {"q": "socks"}, '["socks"]', "ok")
        assert calls == [find, ("mcp__shop__bad", {"x": 1}, "no such x", "error")]
        assert (transcript.final_output, transcript.finish_reason, transcript.notes) == ("3 pairs", "stop", ())
        usage = transcript.usage
        assert ([usage.input_tokens, usage.output_tokens], usage.cost) == (truth["usage"], truth["cost"])
        assert truth["usage"] == [30, 7]

    def test_a_run_that_is_continued_from_its_results(self, claude: Any) -> None:
        assert_not_continued(claude[0]["options, continued"])

    def test_a_result_alone_holds_no_calls(self, claude: Any) -> None:
        for name in ("result", "answer_alone"):
            transcript = claude[0][name].transcript
            assert (transcript.final_output, [note.code for note in transcript.notes]) == ("3 pairs", ["unread_calls"])

    def test_a_run_that_failed_is_no_answer(self, claude: Any) -> None:
        transcript = claude[0]["limited"].transcript
        assert transcript.error.message == "Reached maximum number of turns (1)"
        assert [call.status for call in transcript.tool_calls] == ["ok", "error"]

    def test_a_sub_agent(self, claude: Any) -> None:
        transcript = claude[0]["delegating"].transcript
        # Of the sub-agent's answer, the SDK tells only the result of the call.
        assert authors_of(transcript) == [None, "keeper", None]
        assert "3 pairs" in (transcript.tool_calls[0].result or "")
        assert [call.name for call in transcript.tool_calls] == ["Agent", "mcp__shop__find", "mcp__shop__bad"]
        assert transcript.usage.input_tokens == 60
