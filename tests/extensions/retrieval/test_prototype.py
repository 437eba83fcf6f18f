"""The prototype class `Retrieval`: which documents a tool found."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from tests.grading.test_extractors import look, marked


def searched(*results: str | None, name: str = "search") -> Transcript:
    messages: list[Message] = []
    calls = []
    for number, result in enumerate(results):
        messages.append(Message("assistant", "", tool_calls=(number,)))
        calls.append(ToolCall(f"c{number}", name, {}, result, message=len(messages) - 1))
        if result is not None:
            messages.append(Message("tool", result, tool_call=number))
    return Transcript((*messages, Message("assistant", "ok")), tuple(calls), final_output="ok")


@pytest.mark.parametrize(
    ("results", "config", "value"),
    [
        (('["d1", "d2"]',), {"tool": "search"}, "d1\nd2"),
        (('{"hits": [{"id": "d1"}, {"id": 7}]}',), {"tool": "search", "path": "hits[].id"}, "d1\n7"),
        (('[{"id": "d1", "score": 1}, {"score": 2}]',), {}, "d1"),
        (('["d1"]', '["d2", "d1"]'), {"tool": "search"}, "d1\nd2"),
        (("not found", '["d2"]', None), {}, "d2"),
        (("[]",), {}, ""),
    ],
)
def test_documents_that_were_found(results: tuple[str, ...], config: dict[str, Any], value: str) -> None:
    assert look(searched(*results), "Retrieval", config).value == value


def test_found_documents_are_marked_in_the_tools_answer() -> None:
    transcript = searched('["other", "d2", 41]')
    result = look(transcript, "Retrieval", {}, type="Retrieval", relevant=["d2", "41"])
    spans = [span for line in result.metrics[0].evidence for span in line.spans]
    assert marked(transcript, tuple(spans)) == ["d2", "41"]


@pytest.mark.parametrize(
    ("transcript", "config", "reason"),
    [
        (Transcript(), {}, "the agent called no tool"),
        (searched("[]", name="serch"), {"tool": "search"}, "search was never called; nearest serch"),
        (searched("nothing"), {"tool": "search"}, "the result of search is not JSON"),
        (searched(None), {"tool": "search"}, "the result of search is missing"),
        (searched('{"hits": []}'), {"tool": "search"}, "it has the keys hits: set `path` to a list in it"),
        (searched('{"hits": []}'), {"tool": "search", "path": "docs"}, "has no list at `docs`"),
    ],
)
def test_no_documents(transcript: Transcript, config: dict[str, Any], reason: str) -> None:
    result = look(transcript, "Retrieval", config, type="Retrieval", relevant=["a"])
    assert result.outcome is Outcome.FAILED
    assert reason in criterion_sentence(result)
