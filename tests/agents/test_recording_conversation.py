"""From what a program asked of models to one transcript: each message once, conversations told apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.models.requests import read_body
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question, received
from agenteval_tui.agents.recording.protocols import read_reply, read_request
from agenteval_tui.transcripts.model import Transcript

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire"


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def made(text: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


class Talk:
    """Exchanges one after another, each 10 ms long and 10 ms after the last, unless told otherwise."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def ask(
        self,
        messages: list[dict[str, Any]],
        answer: dict[str, Any] | None,
        *,
        system: str = "",
        status: int = 200,
        at: float | None = None,
        took: float = 10.0,
    ) -> list[dict[str, Any]]:
        start = at if at is not None else (self.exchanges[-1].ended_ms + 10 if self.exchanges else 0.0)
        body = {"model": "m", "messages": [{"role": "system", "content": system}, *messages] if system else messages}
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        choices = [{"index": 0, "message": answer, "finish_reason": "stop"}]
        said: Any = {"model": "m-1", "choices": choices, "usage": usage}
        if answer is None:
            said = {"error": {"message": "busy"}}
        self.exchanges.append(
            Exchange(
                Question("POST", "openai/v1/chat/completions", {}, body),
                Answer(status, "application/json", said, (5,)),
                started_ms=start,
                ended_ms=start + took,
            )
        )
        return [*messages, answer] if answer is not None else messages

    def served(self, name: str, text: str | None, *, failed: bool = False, **arguments: Any) -> None:
        """A call that an MCP server saw, 1 ms long and 1 ms after the last."""
        start = self.exchanges[-1].ended_ms + 1 if self.exchanges else 0.0
        said = {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}
        answer = Answer(0) if text is None else Answer(200, "application/json", said)
        question = Question("tools/call", f"mcp/shop/{name}", {}, {"arguments": arguments})
        self.exchanges.append(Exchange(question, answer, started_ms=start, ended_ms=start + 1))

    @property
    def transcript(self) -> Transcript:
        return transcript_of(self.exchanges)

    @property
    def told(self) -> list[str]:
        lines = []
        for one in self.transcript.messages:
            name = f"{one.name} " if one.name and one.role != "tool" else ""
            calls = "".join([f" +{self.transcript.tool_calls[number].name}" for number in one.tool_calls])
            lines.append(f"{name}{one.role}: {one.content}{calls}")
        return lines


def test_each_message_is_there_once_with_calls_results_times_and_tokens() -> None:
    talk = Talk()
    said = talk.ask([user("Where is it?")], made("I look.", call("c1", "get", id=1), call("c2", "find")), system="s")
    talk.ask([*said, result("c1", "there"), result("c2", "nowhere")], made("It is there."), system="s")
    found = talk.transcript
    assert talk.told == [
        "system: s", "user: Where is it?", "assistant: I look. +get +find", "tool: there", "tool: nowhere",
        "assistant: It is there.",
    ]  # fmt: skip
    assert [(one.name, one.arguments, one.result, one.started_ms, one.duration_ms) for one in found.tool_calls] == [
        ("get", {"id": 1}, "there", 10, 10), ("find", {}, "nowhere", 10, 10)
    ]  # fmt: skip
    assert (found.final_output, found.model, found.finish_reason) == ("It is there.", "m-1", "stop")
    assert (found.usage.input_tokens, found.usage.output_tokens) == (20, 2)
    assert [(one.name, one.started_ms) for one in found.timing.steps] == [
        ("turn 1", 0), ("get", 10), ("find", 10), ("turn 2", 20)
    ]  # fmt: skip
    assert found.timing.first_token_ms == 5


def test_calls_streamed_at_one_index_without_ids_are_told_apart() -> None:
    talk = Talk()
    first = {"model": "m", "messages": [user("Both")], "stream": True}
    parts = [{"index": 0, "function": {"name": name, "arguments": text}} for name, text in
             (("get", '{"id": 1}'), ("get", '{"id": 2}'), ("find", "{}"))]  # fmt: skip
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]} for part in parts]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = tuple(f"data: {json.dumps(event)}\n\n" for event in events)
    question = Question("POST", "openai/v1/chat/completions", {}, first)
    talk.exchanges.append(Exchange(question, Answer(200, "text/event-stream", body), started_ms=0, ended_ms=10))
    own_ids = made(None, call("x", "get", id=1), call("y", "get", id=2), call("z", "find"))
    talk.ask([user("Both"), own_ids, result("x", "1"), result("y", "2"), result("z", "3")], made("So."))
    assert talk.told == [
        "user: Both", "assistant:  +get +get +find", "tool: 1", "tool: 2", "tool: 3", "assistant: So.",
    ]  # fmt: skip
    assert [(one.name, one.arguments, one.result) for one in talk.transcript.tool_calls] == [
        ("get", {"id": 1}, "1"), ("get", {"id": 2}, "2"), ("find", {}, "3")
    ]  # fmt: skip


def test_an_answer_that_the_program_tells_in_other_words_is_not_told_twice() -> None:
    talk = Talk()
    talk.ask([user("Hi")], made("Let me see.", call("c1", "get")))
    talk.ask([user("Hi"), made(None, call("c1", "get")), result("c1", "x")], made("So."))
    assert talk.told == ["user: Hi", "assistant: Let me see. +get", "tool: x", "assistant: So."]


def test_a_program_that_sends_back_the_results_of_calls_but_not_the_calls() -> None:
    talk = Talk()
    calling = {"role": "assistant", "content": None, "function_call": {"name": "get", "arguments": '{"id": 1}'}}
    asked = [user("Hi")]
    for text in ("x", "y"):
        talk.ask(asked, calling)
        asked = [*asked, {"role": "function", "name": "get", "content": text}]
    talk.ask(asked, made("So."))
    assert talk.told == ["user: Hi", "assistant:  +get", "tool: x", "assistant:  +get", "tool: y", "assistant: So."]
    assert [call.result for call in talk.transcript.tool_calls] == ["x", "y"]


def test_the_functions_that_a_request_offers_are_its_tools() -> None:
    offered = {"name": "get", "description": "Gets it.", "parameters": {"type": "object"}}
    request = read_body(
        "v1/chat/completions", {"messages": [user("Hi")], "functions": [offered], "function_call": "auto"}
    )
    assert request is not None
    assert [(tool.name, tool.description) for tool in request.tools] == [("get", "Gets it.")]
    assert request.parameters == {"function_call": "auto"}


def test_a_conversation_that_is_shortened_goes_on() -> None:
    talk = Talk()
    said = talk.ask([user("one"), user("two")], made("A long answer to it."))
    talk.ask([*said[2:], user("three")], made("Another long answer."))
    assert talk.told == ["user: one", "user: two", "assistant: A long answer to it.", "user: three",
                         "assistant: Another long answer."]  # fmt: skip


def test_an_agent_that_asks_another_agent() -> None:
    talk = Talk()
    said = talk.ask([user("Research it")], made("", call("c1", "research", topic="x")), system="lead")
    inner = talk.ask([user("topic x")], made("", call("c1", "search")), system="researcher")
    talk.ask([*inner, result("c1", "found")], made("A summary."), system="researcher")
    talk.ask([*said, result("c1", "A summary.")], made("Done."), system="lead")
    assert talk.told == [
        "system: lead", "user: Research it", "assistant:  +research",
        "research system: researcher", "research user: topic x", "research assistant:  +search", "tool: found",
        "research assistant: A summary.", "tool: A summary.", "assistant: Done.",
    ]  # fmt: skip
    assert [(one.name, one.result, one.duration_ms) for one in talk.transcript.tool_calls] == [
        ("research", "A summary.", 50), ("search", "found", 10)
    ]  # fmt: skip
    assert talk.transcript.final_output == "Done."


def test_agents_that_work_at_the_same_time_and_a_handoff() -> None:
    talk = Talk()
    talk.ask([user("same")], made("one"), at=0, took=30)
    talk.ask([user("same")], made("two"), at=10, took=30)
    assert talk.told == ["user: same", "assistant: one", "agent 2 user: same", "agent 2 assistant: two"]
    handed = Talk()
    said = handed.ask([user("refund")], made("", call("h", "transfer_to_refunds")), system="triage")
    handed.ask([*said, result("h", "ok")], made("Refunded."), system="refunds")
    assert handed.told == ["system: triage", "user: refund", "assistant:  +transfer_to_refunds", "system: refunds",
                           "tool: ok", "assistant: Refunded."]  # fmt: skip


def test_a_request_that_is_made_again_counts_once_and_its_tokens_each_time() -> None:
    talk = Talk()
    talk.ask([user("a")], None, status=429)
    talk.ask([user("a")], made("not used"))
    said = talk.ask([user("a")], made("used"))
    talk.ask([*said, user("b")], made("end"))
    assert talk.told == ["user: a", "assistant: used", "user: b", "assistant: end"]
    assert talk.transcript.usage.input_tokens == 30
    assert [note.description for note in talk.transcript.notes] == [
        "asked again, because the first answer failed or was not used: 2 requests"
    ]


def test_a_conversation_that_takes_another_way_repeats_nothing() -> None:
    talk = Talk()
    said = talk.ask([user("a")], made("first answer of it"))
    talk.ask([*said, user("b")], made("left way"))
    talk.ask([*said, user("c")], made("right way"))
    assert talk.told == ["user: a", "assistant: first answer of it", "agent 2 user: b", "agent 2 assistant: left way",
                         "user: c", "assistant: right way"]  # fmt: skip


def test_a_model_that_fails_at_the_end_is_said() -> None:
    talk = Talk()
    talk.ask([user("a")], None, status=500)
    assert [note.description for note in talk.transcript.notes] == [
        "the last request to a model was not answered: HTTP 500: busy"
    ]
    assert talk.transcript.final_output == ""


def test_nothing_was_asked() -> None:
    assert transcript_of([]) == Transcript()
    other = Question("POST", "openai/v1/embeddings", {}, {"input": "x"})
    assert transcript_of([Exchange(other, Answer(200, "application/json", {}))]) == Transcript()


def test_a_conversation_that_the_server_keeps() -> None:
    def item(identity: str, text: str, asked: str, **more: Any) -> Exchange:
        output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
        body = {"id": identity, "status": "completed", "output": output}
        question = Question("POST", "openai/v1/responses", {}, {"model": "m", "input": asked, **more})
        return Exchange(question, Answer(200, "application/json", body), started_ms=float(len(identity)))

    found = transcript_of([
        item("r1", "one", "a", instructions="s"), item("r22", "two", "b", previous_response_id="r1", instructions="s"),
    ])  # fmt: skip
    assert [one.content for one in found.messages] == ["s", "a", "one", "b", "two"]


@pytest.mark.parametrize("body", [None, "text", [], {"messages": 3}, {"messages": [3]}, {"messages": [{}]}, {}])
@pytest.mark.parametrize("path", ["chat/completions", "responses", "v1/messages", "models/m:generateContent"])
def test_a_request_that_makes_no_sense_is_passed_over(path: str, body: Any) -> None:
    question = Question("POST", f"openai/{path}", {}, body)
    transcript_of([Exchange(question, Answer(200, "application/json", body))])


@pytest.mark.shared
@pytest.mark.parametrize("name", ["openai-chat", "anthropic"])
def test_recorded_answers_of_real_servers_say_what_the_official_clients_say(name: str) -> None:
    if not SHARED.exists():
        pytest.skip("there are no recordings beside the project")
    path = {"openai-chat": "openai/v1/chat/completions", "anthropic": "anthropic/v1/messages"}[name]
    rows = [json.loads(line) for line in (SHARED / f"{name}.jsonl").open(encoding="utf-8")]
    rows = [row for row in rows if row["status"] == 200 and '"function_call": {' not in row["body"]]
    for row in rows:
        data, kind = row["body"].encode(), row["content_type"]
        if "event-stream" in kind:
            events = tuple(f"{event}\n\n" for event in row["body"].split("\n\n") if event)
            answer = Answer(200, kind, events)
        else:
            answer = Answer(200, kind, received(data, kind))
        reply, wanted = read_reply(Question("POST", path), answer), row["expected"]
        assert reply.message is not None, row["id"]
        calls = [one["function"]["name"] for one in reply.message.get("tool_calls", ())]
        assert calls == [one["name"] for one in wanted["tool_calls"]], row["id"]
        text = wanted.get("content", wanted.get("text")) or ""
        if isinstance(text, list):
            text = "".join([part.get("text", "") for part in text])
        said = [one["content"] for one in (*reply.before, reply.message) if one["role"] == "assistant"]
        assert not text or "".join(said).strip() == text.strip(), row["id"]


@pytest.mark.shared
@pytest.mark.parametrize("name", ["openai-chat", "anthropic"])
def test_recorded_requests_are_read_whole(name: str) -> None:
    if not SHARED.exists():
        pytest.skip("there are no recordings beside the project")
    path = {"openai-chat": "openai/v1/chat/completions", "anthropic": "anthropic/v1/messages"}[name]
    for line in (SHARED / f"transcripts-{name}.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        body = {key: row[key] for key in ("messages", "model") if row[key]} | ({"system": row["system"]} if row["system"] else {})  # fmt: skip  # noqa: E501
        request = read_request(Question("POST", path, {}, body))
        assert request is not None
        assert len(request.messages) >= len([one for one in row["messages"] if one["role"] != "system"])
        calls = json.dumps(row["messages"]).count('"type": "tool_use"') + json.dumps(row["messages"]).count('"type": "function"')  # fmt: skip  # noqa: E501
        assert sum(len(one.get("tool_calls", ())) for one in request.messages) == calls


def test_a_call_that_a_model_made_and_an_mcp_server_saw_is_there_once_with_its_own_times() -> None:
    talk = Talk()
    talk.served("get_user", "Ada", of="session")  # the program's own, before anything was asked
    said = talk.ask(
        [user("Cancel #1 and #2")],
        made(None, call("a", "mcp__shop__cancel", order=1), call("b", "mcp__shop__cancel", order=2)),
    )
    talk.served("cancel", "no such order", failed=True, order=2)
    talk.served("cancel", "done", order=1, by="Ada")  # the program added an argument
    talk.served("log", "ok", what="cancelled")  # and called a tool by itself
    said = talk.ask([*said, result("a", "done"), result("b", "it failed")], made(None, call("c", "bye", to="Ada")))
    talk.served("bye", "Goodbye, Ada", to="Ada")  # the program ended before it told the model
    found = talk.transcript
    assert [(one.name, one.result, one.status) for one in found.tool_calls] == [
        ("get_user", "Ada", "ok"),
        ("mcp__shop__cancel", "done", "ok"),
        ("mcp__shop__cancel", "it failed", "error"),  # as the model was told, and as the server saw it
        ("log", "ok", "ok"),
        ("bye", "Goodbye, Ada", "ok"),
    ]
    assert [(one.started_ms, one.duration_ms) for one in found.tool_calls] == [
        (0.0, 1.0), (24.0, 1.0), (22.0, 1.0), (26.0, 1.0), (48.0, 1.0)
    ]  # fmt: skip
    assert found.tool_calls[1].arguments == {"order": 1}


@pytest.mark.parametrize(
    "calls", [["x"], [3], [None], {"id": "c1"}, "x", [{"id": "c1"}], [{"id": "c1", "function": 3}]]
)
def test_calls_that_a_program_wrote_wrong_break_nothing(calls: Any) -> None:
    talk = Talk()
    said = talk.ask([user("a"), {**made(""), "tool_calls": calls}], made("", call("c1", "get")))
    talk.ask([*said, {**made(""), "tool_calls": calls}, result("c1", "shipped")], made("done"))
    found = transcript_of(talk.exchanges)
    assert found.final_output == "done"
    assert "shipped" in [one.result for one in found.tool_calls]


def test_a_call_that_its_server_did_not_answer_has_no_result() -> None:
    talk = Talk()
    talk.ask([user("hi")], made(None, call("a", "wait")))
    talk.served("wait", None)
    (one,) = talk.transcript.tool_calls
    assert (one.result, one.status) == (None, "pending")


def _round(talk: Talk, name: str, body: dict[str, Any], result: dict[str, Any]) -> None:
    start = talk.exchanges[-1].ended_ms + 1 if talk.exchanges else 0.0
    question = Question("tools/call", f"mcp/shop/{name}", {}, body)
    answer = Answer(200, "application/json", {"result": result})
    talk.exchanges.append(Exchange(question, answer, started_ms=start, ended_ms=start + 1))


def _asks(state: str | None = None) -> dict[str, Any]:
    asked = {"resultType": "input_required", "inputRequests": {"q": {"method": "elicitation/create"}}}
    return {**asked, "requestState": state} if state else asked


def _gave(text: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


RETRY = {"inputResponses": {"q": {"action": "accept"}}}


@pytest.mark.parametrize("by_model", [True, False])
def test_a_call_for_which_its_server_asked_for_input_is_one_call(by_model: bool) -> None:
    talk = Talk()
    given = {"arguments": {"id": 1}}
    said = talk.ask([user("Cancel 1")], made(None, call("c1", "cancel", id=1)) if by_model else made("Sure."))
    _round(talk, "cancel", given, _asks("s1"))
    _round(talk, "cancel", {**given, **RETRY, "requestState": "s1"}, _asks("s2"))
    _round(talk, "cancel", {**given, **RETRY, "requestState": "s2"}, _gave("cancelled"))
    talk.ask([*said, result("c1", "cancelled")] if by_model else [*said, user("And?")], made("Done."))
    assert [(one.name, one.arguments, one.result) for one in talk.transcript.tool_calls] == [
        ("cancel", {"id": 1}, "cancelled")
    ]
    (found,) = talk.transcript.tool_calls
    assert found.duration_ms == 5  # with both rounds
    steps = [(one.name, one.duration_ms) for one in talk.transcript.timing.steps if one.name.startswith("cancel")]
    assert sorted(steps) == [("cancel", 5), ("cancel: input required", 1), ("cancel: input required", 1)]


def test_calls_that_wait_for_input_at_once_are_told_apart_by_their_state() -> None:
    talk = Talk()
    given = {"arguments": {"id": 1}}
    _round(talk, "cancel", given, _asks("a"))
    _round(talk, "cancel", given, _asks("b"))
    _round(talk, "cancel", {**given, **RETRY, "requestState": "a"}, _gave("first"))
    _round(talk, "cancel", {**given, **RETRY, "requestState": "b"}, _gave("second"))
    talk.ask([user("Go on")], made("Done."))
    assert [one.result for one in talk.transcript.tool_calls] == ["first", "second"]


@pytest.mark.parametrize("states", [True, False])
def test_two_calls_at_once_with_three_rounds_each_are_two_calls(states: bool) -> None:
    """Without a state, they are told apart by what was asked."""
    talk = Talk()
    given = {"arguments": {"id": 1}}
    asked = {
        (name, number): {
            "resultType": "input_required",
            "inputRequests": {f"{name}{number}": {"method": "elicitation/create"}},
            **({"requestState": f"{name}{number}"} if states else {}),
        }
        for name in "ab"
        for number in (1, 2, 3)
    }
    for name in "ab":
        _round(talk, "cancel", given, asked[name, 1])
    for number in (1, 2, 3):
        for name in "ba":
            more = {"inputResponses": {f"{name}{number}": {"action": "accept"}}}
            state = {"requestState": f"{name}{number}"} if states else {}
            answer = asked[name, number + 1] if number < 3 else _gave(f"the end of {name}")
            _round(talk, "cancel", {**given, **more, **state}, answer)
    talk.ask([user("Go on")], made("Done."))
    assert [one.result for one in talk.transcript.tool_calls] == ["the end of a", "the end of b"]
    steps = [one.name for one in talk.transcript.timing.steps]
    assert steps.count("cancel: input required") == 6


def test_a_call_that_goes_on_with_other_arguments_is_known_by_its_state() -> None:
    talk = Talk()
    _round(talk, "cancel", {"arguments": {"id": 1}}, _asks("s"))
    _round(talk, "cancel", {"arguments": {"id": 1, "sure": True}, **RETRY, "requestState": "s"}, _gave("cancelled"))
    talk.ask([user("Go on")], made("Done."))
    assert [one.result for one in talk.transcript.tool_calls] == ["cancelled"]


def test_a_call_whose_input_never_came_has_no_result() -> None:
    talk = Talk()
    _round(talk, "cancel", {"arguments": {"id": 1}}, _asks())
    talk.ask([user("Go on")], made("Done."))
    assert [(one.result, one.status) for one in talk.transcript.tool_calls] == [(None, "pending")]


def test_the_same_call_made_again_is_another_call() -> None:
    talk = Talk()
    for _ in range(2):
        _round(talk, "cancel", {"arguments": {"id": 1}}, _gave("cancelled"))
    talk.ask([user("Go on")], made("Done."))
    assert len(talk.transcript.tool_calls) == 2


@pytest.mark.parametrize("prefix", ["", "mcp__shop__"])
def test_a_tool_whose_name_ends_as_another_one_is_told_from_it(prefix: str) -> None:
    talk = Talk()
    calls = [call(name, f"{prefix}{name}", of="#1") for name in ("find_order", "order")]
    said = talk.ask([user("Where is #1?")], made(None, *calls))
    talk.served("order", "no such order", failed=True, of="#1")
    talk.served("find_order", "found", of="#1")
    talk.ask([*said, result("find_order", "found"), result("order", "no such order")], made("It is lost."))
    assert [(one.name.removeprefix(prefix), one.status, one.result) for one in talk.transcript.tool_calls] == [
        ("find_order", "ok", "found"), ("order", "error", "no such order")
    ]  # fmt: skip
