"""What models were asked, out of files of other tools: exactly, or it is said that nobody knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequests
from agenteval_tui.transcripts.request_changes import changes_since

Import = Callable[..., Any]
SYSTEM = "You sell socks."
FIRST = [{"role": "user", "content": "Any wool socks?"}, {"role": "assistant", "content": "Yes, in green and blue."}]
ASKED = [*FIRST, {"role": "user", "content": "Which did I ask for?"}]
SHORT = ASKED[2:]
SAID = {"role": "assistant", "content": "I do not know that."}
TOOL = {"name": "find", "description": "finds", "parameters": {"type": "object"}}


def langfuse() -> Any:
    def generation(number: int, asked: list[Any], answer: Any) -> dict[str, Any]:
        at = f"2026-01-01T00:00:{number:02}Z"
        whole = {"model": "m", "messages": [{"role": "system", "content": SYSTEM}, *asked], "tools": [TOOL]}
        return {"id": f"g{number}", "type": "GENERATION", "name": "chat", "startTime": at, "endTime": at,
                "input": whole, "output": answer, "usageDetails": {"input": 100 * number, "output": 7}}  # fmt: skip

    observations = [generation(1, FIRST[:1], FIRST[1]), generation(2, SHORT, SAID)]
    return {"trace": {"id": "t", "name": "n"}, "observations": observations}


def langsmith() -> Any:
    def run(number: int, asked: list[Any], answer: Any) -> dict[str, Any]:
        at = f"2026-01-01T00:00:{number:02}Z"
        return {"id": f"r{number}", "trace_id": "t", "parent_run_id": "root", "run_type": "llm", "name": "m",
                "start_time": at, "end_time": at, "extra": {"invocation_params": {"model": "m", "tools": [TOOL]}},
                "inputs": {"messages": [{"role": "system", "content": SYSTEM}, *asked]},
                "outputs": {"choices": [{"message": answer}], "usage": {"prompt_tokens": 100 * number}}}  # fmt: skip

    root = {"id": "root", "trace_id": "t", "run_type": "chain", "name": "a", "inputs": {}, "outputs": {"x": "y"}}
    return {"post": [root, run(1, FIRST[:1], FIRST[1]), run(2, SHORT, SAID)]}


def otlp() -> Any:
    def span(number: int, asked: list[Any], answer: Any) -> dict[str, Any]:
        def told(message: Any) -> Any:
            return {"role": message["role"], "parts": [{"type": "text", "content": message["content"]}]}

        about = {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.request.temperature": 0.5,
            "gen_ai.system_instructions": [{"type": "text", "content": SYSTEM}],
            "gen_ai.input.messages": list(map(told, asked)), "gen_ai.output.messages": [told(answer)],
            "gen_ai.tool.definitions": [{"type": "function", **TOOL}], "gen_ai.usage.input_tokens": 100 * number,
        }  # fmt: skip
        at = f"2026-01-01T00:00:{number:02}Z"
        return {"name": "chat m", "context": {"trace_id": "t", "span_id": f"s{number}"}, "parent_id": "root",
                "start_time": at, "end_time": at, "attributes": about}  # fmt: skip

    agent = {"name": "invoke_agent shop", "context": {"trace_id": "t", "span_id": "root"},
             "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:09Z",
             "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}}  # fmt: skip
    return [agent, span(1, FIRST[:1], FIRST[1]), span(2, SHORT, SAID)]


def inspect() -> Any:
    def event(asked: list[Any], answer: Any, tokens: int = 0, **more: Any) -> dict[str, Any]:
        told = [{"role": "system", "content": SYSTEM}, *asked]
        return {"event": "model", "model": "m", "input": told, "tools": [TOOL], "config": {"temperature": 0.5},
                "output": {"choices": [{"message": answer}], "usage": {"input_tokens": tokens, "output_tokens": 7}},
                **more}  # fmt: skip

    told = [{"role": "system", "content": SYSTEM}, *ASKED, SAID]
    scored = [
        {"event": "span_begin", "type": "scorers", "id": "x"},
        event([{"role": "user", "content": "1 to 5?"}], SAID),
    ]
    events = [event(FIRST[:1], FIRST[1], 100), event(SHORT, SAID, 200), *scored]
    sample = {"id": "a", "epoch": 1, "input": "q", "target": "", "messages": told, "output": {}, "events": events}
    return {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": [sample]}


SOURCES = {"langfuse": langfuse, "langsmith": langsmith, "otlp": otlp, "inspect": inspect}


def requests_of(imported: Import, given: Any, name: str = "f.json") -> tuple[Transcript, ModelRequests | None]:
    _, ((_, transcript),) = imported(given, name)
    return transcript, transcript.requests


@pytest.mark.parametrize("source", SOURCES)
def test_a_request_is_known_with_what_it_lacks(imported: Import, source: str) -> None:
    transcript, requests = requests_of(imported, SOURCES[source]())
    assert requests is not None
    assert [one.system for one in requests.all] == [SYSTEM, SYSTEM]
    assert [[one["content"] for one in request.messages] for request in requests.all] == [
        ["Any wool socks?"], ["Which did I ask for?"]
    ]  # fmt: skip
    answers = [one.answer for one in requests.references]
    assert [transcript.messages[place].content for place in answers if place is not None] == [
        "Yes, in green and blue.", "I do not know that.",
    ]  # fmt: skip
    change = changes_since(requests, 2)
    assert change is not None
    assert [one.kind for one in change.changes] == ["restarted"]
    assert [[tool.name for tool in one.tools] for one in requests.all] == [["find"], ["find"]]
    assert requests.unrecorded == ()
    assert [one.input_tokens for one in requests.all] == [100, 200]


def test_messages_alone_say_that_tools_are_not_recorded(imported: Import) -> None:
    given = langfuse()
    for one in given["observations"]:
        one["input"] = one["input"]["messages"]
    _, requests = requests_of(imported, given)
    assert requests is not None
    assert requests.unrecorded == ("tools", "parameters")


def test_a_record_that_is_not_whole_is_no_request(imported: Import) -> None:
    """Of a result without its call nobody knows what else was left out."""
    given = langfuse()
    given["observations"][1]["input"] = [{"role": "tool", "tool_call_id": "c", "content": "found"}]
    assert requests_of(imported, given)[1] is None


def test_what_a_server_keeps_is_said(imported: Import) -> None:
    given = langfuse()
    second = given["observations"][1]
    second["output"] = {"id": "r2", "object": "response", "previous_response_id": "r1", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I do not know that."}]}
    ]}  # fmt: skip
    _, requests = requests_of(imported, given)
    assert requests is not None
    assert [one.previous for one in requests.references] == ["", "r1"]


def rollout(*items: dict[str, Any]) -> str:
    def line(kind: str, payload: Any) -> str:
        return json.dumps({"type": kind, "timestamp": "2026-01-01T00:00:00Z", "payload": payload})

    lines = [line("session_meta", {"id": "s", "base_instructions": {"text": SYSTEM}})]
    return "\n".join([*lines, *(line(one.pop("kind", "response_item"), one) for one in items)])


def item(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


@pytest.mark.parametrize("is_known", [True, False])
def test_codex_compacts_to_a_history_that_its_log_has_or_not(imported: Import, is_known: bool) -> None:
    history = {"replacement_history": [item("user", "Summary: socks were asked for.")]} if is_known else {}
    text = rollout(
        item("user", "Any wool socks?"), item("assistant", "Yes, in green and blue."), item("user", "Which colours?"),
        item("assistant", "Green and blue, as said."), {"kind": "compacted", "message": "Summary", **history},
        item("user", "Which did I ask for?"), item("assistant", "I do not know that."),
    )  # fmt: skip
    _, requests = requests_of(imported, text, "rollout.jsonl")
    if not is_known:
        assert requests is None
        return
    assert requests is not None
    assert [len(one.messages) for one in requests.all] == [1, 3, 2]
    change = changes_since(requests, 3)
    assert change is not None
    assert [one.kind for one in change.changes] == ["replaced", "added"]
    assert requests.unrecorded == ("tools", "parameters")


def test_codex_counts_the_tokens_of_each_request(imported: Import) -> None:
    def counted(last: int, total: int) -> dict[str, Any]:
        figures = {"last_token_usage": {"input_tokens": last}, "total_token_usage": {"input_tokens": total}}
        return {"kind": "event_msg", "type": "token_count", "info": figures}

    text = rollout(
        item("user", "Any wool socks?"), item("assistant", "Yes, in green and blue."), counted(100, 100),
        item("user", "Which colours?"), counted(100, 100),  # told again, with the limits of the account
        item("assistant", "Green and blue, as said."), counted(130, 230),
        item("user", "And now?"), item("assistant", "I do not know that."),
        item("user", "Really?"), counted(150, 380),
    )  # fmt: skip
    _, requests = requests_of(imported, text, "rollout.jsonl")
    assert requests is not None
    assert [one.input_tokens for one in requests.all] == [100, 130, 150]


@pytest.mark.parametrize(
    ("subtype", "about", "is_known"),
    [
        ("compact_boundary", {}, True),
        ("compact_boundary", {"preservedSegment": {"headUuid": "a"}}, False),
        ("microcompact_boundary", {}, False),
    ],
)
def test_claude_code_compacts(imported: Import, subtype: str, about: Any, is_known: bool) -> None:
    def event(kind: str, key: str, parent: str | None, **more: Any) -> dict[str, Any]:
        return {"type": kind, "sessionId": "s", "uuid": key, "parentUuid": parent, **more}

    def said(text: str, key: str) -> dict[str, Any]:
        return {"id": key, "role": "assistant", "model": "c", "content": [{"type": "text", "text": text}]}

    events = [
        event("user", "1", None, message={"role": "user", "content": "Any wool socks?"}),
        event("assistant", "2", "1", message=said("Yes, in green and blue.", "m1")),
        event(
            "system", "3", None, subtype=subtype, logicalParentUuid="2", compactMetadata={"trigger": "auto", **about}
        ),
        event("user", "4", "3", isCompactSummary=True, message={"role": "user", "content": "Summary: socks."}),
        event("user", "5", "4", message={"role": "user", "content": "Which did I ask for?"}),
        event("assistant", "6", "5", message=said("I do not know that.", "m2")),
    ]
    _, requests = requests_of(imported, "\n".join(map(json.dumps, events)), "s.jsonl")
    if not is_known:
        assert requests is None
        return
    assert requests is not None
    texts = [[one["content"] for one in request.messages] for request in requests.all]
    assert texts == [["Any wool socks?"], ["Summary: socks.", "Which did I ask for?"]]
    assert requests.unrecorded == ("system", "tools", "parameters")
