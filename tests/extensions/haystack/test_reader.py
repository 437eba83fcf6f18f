"""Agents of Haystack: real ones, with its own model or one on loopback, in an environment of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_candidates import assert_object_is_found
from framework_runs import assert_continued, assert_shop, played_with_model

FOLDER = Path(__file__).parent


def test_its_agents_are_found(tmp_path: Path) -> None:
    assert_object_is_found(
        tmp_path, "Haystack", "from haystack.components.agents import Agent\nx = Agent(system_prompt=RULES)\n"
    )


HAYSTACK = ("agent", "with_agent", "result", "messages", "of_pipeline", "whole", "whole_result")


@pytest.fixture(scope="module")
def haystack() -> Any:
    targets = (*HAYSTACK, "last_message", "talking", "replies", "without_the_messages", "broken")
    return played_with_model(
        FOLDER.name, "haystack", targets, ("agent",), HAYSTACK_TELEMETRY_ENABLED="False", folder=FOLDER
    )


@pytest.mark.xdist_group("haystack")
class TestHaystack:
    @pytest.mark.parametrize("name", [*HAYSTACK, "agent, later"])
    def test_what_it_gives(self, haystack: Any, name: str) -> None:
        played, truth = haystack
        assert_shop(played[name], "stop", [None, None])
        assert [[one[0], one[1], one[2]] for one in truth["tools"]] == [
            ["find", {"q": "socks"}, False],
            ["bad", {"x": 1}, True],
        ]

    def test_a_run_that_is_continued_from_its_results(self, haystack: Any) -> None:
        assert_continued(haystack[0]["agent, continued"])

    def test_what_holds_no_calls_says_so(self, haystack: Any) -> None:
        played, _ = haystack
        assert played["last_message"].transcript.final_output == "3 pairs"
        assert [note.code for note in played["last_message"].transcript.notes] == ["unread_calls"]
        assert (played["talking"].transcript.final_output, played["talking"].transcript.notes) == ("3 pairs", ())
        for name in ("replies", "without_the_messages"):
            codes = [note.code for note in played[name].transcript.notes]
            assert codes == (["unread_calls"] if name == "replies" else ["dumped"])

    def test_a_tool_that_ends_the_run(self, haystack: Any) -> None:
        assert "no such x" in haystack[0]["broken"].raised
