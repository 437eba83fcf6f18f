"""An agent whose tool calls nobody can see says so: "no calls" is never a fact then."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from agenteval_tui.agents.base import Captured, Done, ModelAsked, Noted, TextDelta
from agenteval_tui.agents.http.agent import HttpReply
from agenteval_tui.agents.http.options import HttpOptions
from agenteval_tui.agents.http.sse import ServerEvent
from agenteval_tui.agents.process.options import PythonOptions
from agenteval_tui.agents.process.state_mapping import events_of_state
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.recording.conversation import transcript_of_asked
from agenteval_tui.agents.recording.imported_requests import asked_in
from agenteval_tui.transcripts.model import Message, Note, ToolCall, Transcript
from agenteval_tui.transcripts.observed import observes

TEXTS = {
    "text": "return 'hi'",
    "pieces": "yield 'h'\n    yield 'i'",
    "number": "return 3",
    "answer": "return {'answer': 'hi'}",
    "own JSON": "return {'intent': 'refund', 'sure': 0.9}",
}
TOLD = {
    "messages": "return [{'role': 'assistant', 'content': 'hi'}]",
    "events": "yield {'type': 'text', 'text': 'hi'}",
    "calls beside the answer": "return {'answer': 'hi', 'tool_calls': []}",
    "text, then messages": "yield 'hi'\n    yield [{'role': 'assistant', 'content': 'hi'}]",
}


LAST = {
    "completion": "return {'choices': [{'message': {'content': 'hi'}, 'finish_reason': 'stop'}]}",
    "message": "return {'role': 'assistant', 'content': 'hi'}",
    "message of Gemini": "return {'role': 'model', 'parts': [{'text': 'hi'}]}",
    "item": "return {'type': 'message', 'role': 'assistant', 'content': [{'type': 'output_text', 'text': 'hi'}]}",
}
"""What a model gives last: the calls before it are not in it."""


@pytest.mark.parametrize("code", LAST.values(), ids=LAST)
async def test_the_last_piece_of_an_agent(run_agent: Run, tmp_path: Path, code: str) -> None:
    (tmp_path / "mine.py").write_text(f"def agent(prompt):\n    {code}\n")
    ran = await run_agent({"kind": "python", "callable": "mine:agent"})
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "hi")
    assert [note.code for note in ran.transcript.notes] == ["unread_calls"]


@pytest.mark.parametrize(
    ("code", "codes"), [*((TEXTS[name], ["text_only"]) for name in TEXTS), *((TOLD[name], []) for name in TOLD)]
)
async def test_a_python_agent(run_agent: Run, tmp_path: Path, code: str, codes: list[str]) -> None:
    (tmp_path / "mine.py").write_text(f"def agent(prompt):\n    {code}\n")
    ran = await run_agent({"kind": "python", "callable": "mine:agent"})
    assert ran.transcript.error is None
    assert [note.code for note in ran.transcript.notes] == codes


@pytest.mark.parametrize("gives", ["Reply('hi')", "{'replies': [Reply('hi')]}", "[Reply('hi')]"])
async def test_an_object_that_nobody_can_read(run_agent: Run, tmp_path: Path, gives: str) -> None:
    installed = tmp_path / "site-packages" / "haystack_like"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text(
        "import dataclasses\n@dataclasses.dataclass\nclass Reply:\n    _content: str\n"
    )
    (tmp_path / "mine.py").write_text(f"from haystack_like import Reply\ndef agent(prompt):\n    return {gives}\n")
    ran = await run_agent({"kind": "python", "callable": "mine:agent", "path": ["site-packages"]})
    assert [(note.code, note.what) for note in ran.transcript.notes] == [("dumped", "haystack_like.Reply")]
    assert observes(ran.transcript) == ()


async def test_an_object_of_ones_own_is_an_answer(run_agent: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import dataclasses\n@dataclasses.dataclass\nclass Reply:\n    city: str\n"
        "def agent(prompt):\n    return Reply('Paris')\n"
    )
    ran = await run_agent({"kind": "python", "callable": "mine:agent"})
    assert json.loads(ran.transcript.final_output) == {"city": "Paris"}
    assert [note.code for note in ran.transcript.notes] == ["text_only"]


@pytest.mark.parametrize(
    ("code", "codes"),
    [("print('hi')", ["text_only"]), ("""print('{"type": "text", "text": "hi"}')""", [])],
)
async def test_a_program(run_agent: Run, code: str, codes: list[str]) -> None:
    ran = await run_agent({"kind": "command", "command": [sys.executable, "-c", code]})
    assert [note.code for note in ran.transcript.notes] == codes


CHAT = "choices[0].message.tool_calls"


@pytest.mark.parametrize(
    ("path", "reply", "note"),
    [
        (None, {"answer": "hi"}, Note("no_calls_option", "")),
        ("calls", {"answer": "hi"}, Note("nothing_at_path", "calls")),
        ("calls", {"answer": "hi", "calls": None}, Note("nothing_at_path", "calls")),
        ("calls", {"answer": "hi", "calls": []}, None),
        ("calls || `[]`", {"answer": "hi"}, None),
        ("calls", {"answer": "hi", "calls": [{"name": "refund"}]}, None),
        (CHAT, {"answer": "hi", "choices": [{"message": {"role": "assistant", "content": "hi"}}]}, None),
        (CHAT, {"answer": "hi", "choices": [{"delta": {"content": "hi"}}]}, Note("nothing_at_path", CHAT)),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_endpoint(path: str | None, reply: dict[str, Any], note: Note | None, streamed: bool) -> None:
    options = HttpOptions(url="http://h/", answer="answer", tool_calls=path, stream="sse" if streamed else "none")
    read = HttpReply(options)
    if streamed:
        list(read.take(ServerEvent("", json.dumps({"other": 1}))))
        list(read.take(ServerEvent("", json.dumps(reply))))
    else:
        list(read.take_whole(json.dumps(reply)))
    assert read.calls_not_seen == note


def test_what_a_proxy_saw_is_enough() -> None:
    call = ToolCall("1", "refund", {}, "ok", message=1)
    messages = (Message("user", "x"), Message("assistant", "", tool_calls=(0,)), Message("assistant", "Done"))
    seen = Transcript(messages, (call,), final_output="Done")
    for told, answer in (("Done", "Done"), ('{"messages": []}', "Done")):
        recorder = Recorder((Message("user", "x"),))
        code = "text_only" if told == "Done" else "dumped"
        for event in (TextDelta(told), Noted(Note(code, "x")), Noted(Note("usage", "x")), Captured(seen), Done()):
            recorder.apply(event)
        stored = recorder.stored()
        assert [note.code for note in stored.notes] == ["usage"]
        assert (stored.final_output, stored.messages, stored.tool_calls[0].name) == (answer, messages, "refund")


def test_what_comes_out_of_an_agent_of_which_only_the_input_is_written_is_read() -> None:
    options = PythonOptions.model_validate({"kind": "python", "callable": "a.py:b", "input": {"q": "{{prompt}}"}})
    document = {"messages": [{"role": "user", "content": "Where?"}], "variables": {}}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asks = {"role": "assistant", "content": "", "tool_calls": [call]}
    told = [asks, {"role": "tool", "tool_call_id": "c", "content": "found"}, {"role": "assistant", "content": "Paris"}]
    state = {"messages": [*document["messages"], *told]}
    events = list(events_of_state(state, options, document))
    assert [event["type"] for event in events] == ["tool_call", "tool_result", "text"]
    codes = [event.get("code") for event in events_of_state({"answer": "Paris"}, options, document)]
    assert "text_only" in codes, "its calls are not seen"


CALL = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
CALLED = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "found"},
]


@pytest.mark.parametrize("notes", [[Noted(Note("unread_calls", "those before an AIMessage"))], []])
def test_what_a_framework_told_of_its_requests_is_enough(notes: list[Noted]) -> None:
    """A function that returns an answer alone, or a graph whose state hides what a graph in it did, of a framework
    whose hooks say what its model was asked."""
    recorder = Recorder((Message("user", "x"),))
    for event in (
        ModelAsked(CALLED[:1], answer=CALLED[1]),
        ModelAsked(CALLED, answer={"role": "assistant", "content": "Done"}),
        TextDelta("Done"),
        *notes,
        Done(),
    ):
        recorder.apply(event)
    stored = recorder.stored()
    assert [(call.name, call.result) for call in stored.tool_calls] == [("find", "found")]
    assert (stored.final_output, stored.notes) == ("Done", ())


def test_requests_that_did_not_lead_to_the_answer_are_not_all() -> None:
    recorder = Recorder((Message("user", "x"),))
    for event in (
        ModelAsked(CALLED[:1], answer={"role": "assistant", "content": "a title"}),
        TextDelta("Done"),
        Noted(Note("text_only", "str")),
        Done(),
    ):
        recorder.apply(event)
    assert [note.code for note in recorder.stored().notes] == ["text_only"]


@pytest.mark.parametrize(("result", "calls"), [("ok", 1), (None, 0)])
def test_an_agent_that_tells_no_calls_though_tools_ran(result: str | None, calls: int) -> None:
    """A call without a result may be the form of an answer, as where a model must answer with an object."""
    call = ToolCall("1", "refund", {}, result, message=1)
    messages = (Message("user", "x"), Message("assistant", "", tool_calls=(0,)), Message("assistant", "Done"))
    seen = Transcript(messages, (call,), final_output="Done")
    recorder = Recorder((Message("user", "x"),))
    for event in (TextDelta("Done"), Captured(seen, beside=True), Done()):
        recorder.apply(event)
    stored = recorder.stored()
    assert (len(stored.tool_calls), stored.final_output) == (calls, "Done")


@pytest.mark.parametrize(
    ("tools", "rounds", "codes"), [([], 2, ["unread_calls"]), ([], 1, []), ([{"name": "find"}], 2, [])]
)
def test_calls_in_words_are_no_calls_that_a_recording_shows(tools: list[Any], rounds: int, codes: list[str]) -> None:
    told = [CALLED[0]]
    asked = []
    for number in range(rounds):
        answer = {"role": "assistant", "content": "Done" if number == rounds - 1 else "Action: find"}
        asked.append(asked_in(list(told), [answer], number=number, about={"tools": tools}))
        told += [answer, {"role": "user", "content": "Observation: found"}]
    recorder = Recorder((Message("user", "x"),))
    seen = transcript_of_asked([request for request in asked if request is not None])
    for event in (TextDelta("Done"), Noted(Note("text_only", "str")), Captured(seen, beside=True), Done()):
        recorder.apply(event)
    assert [note.code for note in recorder.stored().notes] == codes
