"""What LangGraph streams of a model with the Responses API: the chunks of a message have other ids than the message."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.agents.process.python_answers import Reader

ASKED = [{"role": "user", "content": "how many"}]
RUN = "lc_run--"


def chunks(messages: Any, number: int, pieces: list[tuple[str, list[Any]]]) -> list[Any]:
    """An empty one with the id of the response, then the pieces as (text, chunks of calls), then the end."""
    chunk = messages.AIMessageChunk
    made = [chunk(content=[], id=f"resp_{number}")]
    made += [chunk(content=text, tool_call_chunks=calls, id=f"{RUN}{number}") for text, calls in pieces]
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    return [*made, chunk(content=[], id=f"{RUN}{number}", chunk_position="last", usage_metadata=usage)]


def call_chunks(number: int) -> list[tuple[str, list[Any]]]:
    begun = {"name": "find", "args": "", "id": f"call_{number}", "index": number, "type": "tool_call_chunk"}
    more = {"name": None, "args": '{"q": "socks"}', "id": None, "index": number, "type": "tool_call_chunk"}
    return [("", [begun]), ("", [more])]


def conversation(messages: Any, text: str = "It is 7.") -> tuple[list[list[Any]], list[Any]]:
    """(the chunks of each step, the messages of the state after all)."""
    call = {"name": "find", "args": {"q": "socks"}, "type": "tool_call"}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    asks = messages.AIMessage(
        "", id="resp_1", tool_calls=[{**call, "id": "call_0"}, {**call, "id": "call_1"}], usage_metadata=usage
    )
    results = [messages.ToolMessage("7", tool_call_id=f"call_{number}", id=f"t{number}") for number in (0, 1)]
    says = messages.AIMessage(text, id="resp_2", usage_metadata=usage)
    steps = [
        chunks(messages, 1, [*call_chunks(0), *call_chunks(1)]),
        results,
        chunks(messages, 2, [(text[:3], []), (text[3:], [])]),
    ]
    return steps, [messages.HumanMessage("how many", id="h"), asks, *results, says]


def events(pieces: list[Any]) -> list[dict[str, Any]]:
    reader = Reader(ASKED)
    told = [event for piece in pieces for event in reader.take(piece, True)]
    reader.end_graph()
    told += reader.end()
    begins = max((number for number, event in enumerate(told) if event["type"] == "restart"), default=-1) + 1
    return told[begins:]


def said(told: list[dict[str, Any]]) -> tuple[list[Any], list[Any], str, int]:
    calls = [(event["id"], event["name"]) for event in told if event["type"] == "tool_call"]
    results = [event["id"] for event in told if event["type"] == "tool_result"]
    text = "".join(event["text"] for event in told if event["type"] == "text")
    return calls, results, text, sum(event.get("input_tokens", 0) for event in told if event["type"] == "usage")


WANTED = ([("call_0", "find"), ("call_1", "find")], ["call_0", "call_1"], "It is 7.", 20)


@pytest.mark.parametrize("mode", ["messages", "messages and values", "messages and updates", "values", "updates"])
def test_each_message_is_there_once(mode: str) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    steps, state = conversation(messages)
    ends = [2, 4, 5]
    pieces: list[Any] = []
    for step, (chunked, end) in enumerate(zip(steps, ends, strict=True)):
        start = ends[step - 1] if step else 1
        if "messages" in mode:
            pieces += [("messages", (one, {})) if "and" in mode else (one, {}) for one in chunked]
        if "values" in mode:
            values = {"messages": state[:end]}
            pieces.append(("values", values) if "and" in mode else values)
        if "updates" in mode:
            update = {"node": {"messages": state[start:end]}}
            pieces.append(("updates", update) if "and" in mode else update)
    assert said(events(pieces)) == WANTED


def test_two_answers_with_the_same_text_are_two() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    first, second = (messages.AIMessage("Yes.", id=f"resp_{number}") for number in (1, 2))
    between = messages.HumanMessage("sure?", id="h2")
    pieces: list[Any] = [("messages", (one, {})) for one in chunks(messages, 1, [("Yes.", [])])]
    pieces.append(("values", {"messages": [messages.HumanMessage("how many", id="h"), first]}))
    pieces += [("messages", (one, {})) for one in chunks(messages, 2, [("Yes.", [])])]
    pieces.append(("values", {"messages": [messages.HumanMessage("how many", id="h"), first, between, second]}))
    told = events(pieces)
    assert [event["text"] for event in told if event["type"] == "text"] == ["Yes.", "Yes."]


def state_of(*texts: str, **fields: str) -> dict[str, Any]:
    messages = pytest.importorskip("langchain_core.messages")
    answers = [
        messages.HumanMessage(text[1:], id=f"h{number}", name="bot")
        if text[0] == "<"
        else messages.AIMessage(text, id=f"a{number}")
        for number, text in enumerate(texts)
    ]
    return {"messages": [messages.HumanMessage("how many", id="h"), *answers], **fields}


@pytest.mark.parametrize(
    ("states", "later", "texts", "note"),
    [
        # A model that makes a title after the answer.
        (
            [state_of("It is 7."), state_of("It is 7.", title="Seven")],
            "Seven",
            "Seven|It is 7.",
            ("after_answer", "title"),
        ),
        ([state_of("It is 7.")], "Seven", "Seven|It is 7.", ("after_answer", "no field")),
        # What it says is lost, or elsewhere.
        ([state_of(), state_of()], "It is 7.", "It is 7.", ("not_in_state", "no field")),
        ([state_of(), state_of(report="It is 7.")], "It is 7.", "It is 7.", ("not_in_state", "report")),
        ([state_of(), state_of("It is 7.")], "It is 7.", "It is 7.", None),
        # Nodes may write what an agent says as messages to others.
        ([state_of(), state_of("<It is 7.")], "It is 7.", "It is 7.", None),
        ([state_of(), state_of("<It is 8.")], "It is 7.", "It is 7.", None),
        # The node changes it before it gives it.
        ([state_of(), state_of("It is 8.")], "It is 7.", "It is 7.|It is 8.", None),
    ],
)
def test_the_answer_is_the_last_message_of_the_state(
    states: list[Any], later: str, texts: str, note: tuple[str, str] | None
) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    pieces: list[Any] = [("values", states[0])]
    pieces += [("messages", (one, {})) for one in chunks(messages, 9, [(later, [])])]
    told = events([*pieces, ("values", states[-1])])
    ends = ["|" if event["type"] == "message_end" else event.get("text", "") for event in told]
    assert "".join(ends) == texts
    assert [(event["code"], event["what"]) for event in told if event["type"] == "note"] == ([note] if note else [])
