"""What a model was asked, and what changed since the request before, as it is shown."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool
from agenteval_tui.transcripts.request_changes import changes_since
from agenteval_tui.tui.presenters.transcript_blocks import blocks_of
from agenteval_tui.views.markdown import markdown
from agenteval_tui.views.model_request import request_view, requests_view

ASKED = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "In Paris, by the river."}]
TOOLS = (OfferedTool("find"), OfferedTool("pay"))


def request(messages: list[dict[str, Any]], number: int = 1, **more: Any) -> ModelRequest:
    fields = {"model": "m", "system": "Be kind.\nBe short.", "tools": TOOLS, **more}
    return ModelRequest(number, line=1, messages=tuple(messages), **fields)


def shown(*requests: ModelRequest, number: int = 2) -> str:
    return markdown(request_view(ModelRequests.of(requests), number, []))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, None),
        ({"model": "n"}, "Another model: nothing that a server has cached can be used."),
        ({"tools": TOOLS[::-1]}, "A request begins with its tools: nothing that a server has cached can be used."),
        ({"tools": TOOLS[:1], "system": "Be brief."}, "A request begins with its tools"),
        ({"system": "Be kind.\nBe brief."}, "What a server has cached is lost from line 2 of the system prompt on."),
    ],
)
def test_what_stands_before_the_messages_breaks_the_cache_for_all_of_them(more: dict[str, Any], what: str) -> None:
    grown = request([*ASKED, {"role": "user", "content": "When?"}], 2, **more)
    text = shown(request(ASKED[:1]), grown)
    assert (what in text) if what else ("cache" not in text)
    # Dropped messages don't make it sound as if the ones before them were still there.
    assert "begin with the same" not in shown(request(ASKED), request(ASKED[1:], 2, model="n"))


def test_a_request_that_reads_less_from_the_cache_says_so() -> None:
    text = shown(request(ASKED, cached_tokens=5120), request(ASKED[1:], 2, cached_tokens=0))
    assert "The server read 0 tokens from its cache, and 5,120 for request 1." in text
    assert "The server read" not in shown(request(ASKED, cached_tokens=0), request(ASKED[1:], 2, cached_tokens=0))


def test_the_tokens_of_a_request_are_shown_where_they_are_known() -> None:
    requests = ModelRequests.of([request(ASKED, input_tokens=1204), request(ASKED, 2)])
    listed = markdown(requests_view(requests, [None, None], [])).splitlines()
    assert ["1,204 tokens" in line for line in listed if line] == [True, False]
    assert "1,204 tokens" in markdown(request_view(requests, 1, []))
    assert "token" not in markdown(request_view(requests, 2, []))


def test_many_messages_that_were_shortened_are_counted() -> None:
    results = [{"role": "tool", "tool_call_id": str(number), "content": "x" * 100} for number in range(50)]
    short = [{**result, "content": "gone"} for result in results]
    requests = ModelRequests.of([request([*ASKED, *results]), request([*ASKED, *short], 2)])
    listed = markdown(requests_view(requests, [changes_since(requests, number) for number in (1, 2)], []))
    assert "50 messages shortened: 5,000 → 200 characters" in listed
    assert listed.count("shortened") == 1
    answered = replace(requests, references=(requests.references[0], replace(requests.references[1], answer=1)))
    messages = (Message("user", "Where?"), Message("assistant", "There."))
    blocks = [block for _, block in blocks_of(Transcript(messages, requests=answered)) if block.label == "unseen"]
    assert [block.text for block in blocks] == ["50 messages shortened: 5,000 → 200 characters"]
    whole = markdown(request_view(requests, 2, []))
    assert "message 3 shortened: 100 → 4 characters" in whole
    assert "44 more messages" in whole
