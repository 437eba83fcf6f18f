"""Conversations of one recording are told apart: sub-agents, summarisers, makers of titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.imported_requests import asked_in, with_requests
from agenteval_tui.transcripts.codec import from_json, from_openai_messages, to_json
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequests
from agenteval_tui.transcripts.request_changes import changes_since
from agenteval_tui.transcripts.visible_messages import Sight, losses

Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def event(text: str) -> Message:
    return {"role": "system", "content": text}


def said(text: str, *calls: tuple[str, str, str]) -> Message:
    made = [{"id": key, "function": {"name": name, "arguments": given}} for key, name, given in calls]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(key: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": key, "content": text}


class Program:
    """A program that asks a model. Requests take 5 ms; `at` is when one starts."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._now = 0.0

    def ask(
        self,
        messages: Sequence[Message],
        answer: Message,
        *,
        system: str = "",
        tools: Sequence[str] = (),
        at: float | None = None,
        took: float = 5,
    ) -> list[Message]:
        told = [{"role": "system", "content": system}, *messages] if system else list(messages)
        reply = {"model": "m", "choices": [{"message": answer, "finish_reason": "stop"}]}
        started = self._now + 5 if at is None else at
        self._now = max(self._now, started + took)
        offered = [{"type": "function", "function": {"name": name}} for name in tools]
        body = {"model": "m", "messages": told, **({"tools": offered} if offered else {})}
        question = Question("POST", "openai/v1/chat/completions", {}, body)
        self.exchanges.append(Exchange(question, Answer(200, "application/json", reply), "", started, started + took))
        return [*messages, answer]

    @property
    def transcript(self) -> Transcript:
        return transcript_of(sorted(self.exchanges, key=lambda one: one.ended_ms))


def lines(transcript: Transcript) -> list[tuple[int, str]]:
    requests = transcript.requests
    assert requests is not None
    return [(one.line, requests.line(one.line).name) for one in requests.references]


def alarms(transcript: Transcript) -> list[str]:
    return [change.kind for _, change in losses(transcript.requests or ModelRequests())]


def kinds(requests: ModelRequests, number: int) -> list[str]:
    found = changes_since(requests, number)
    return [change.kind for change in found.changes] if found is not None else []


def test_a_title_that_is_asked_for_beside_a_conversation_is_a_line_of_its_own() -> None:
    program = Program()
    talk = program.ask([user("Where is my parcel?")], said("It is on its way to you."))
    program.ask([user("Give this conversation a title: Where is my parcel?")], said("Parcel on its way"))
    program.ask([*talk, user("When is it here?")], said("Tomorrow at noon."))
    assert lines(program.transcript) == [(1, "agent 1"), (2, "agent 2"), (1, "agent 1")]
    assert alarms(program.transcript) == []
    assert [one.name for one in program.transcript.messages] == [None, None, "agent 2", "agent 2", None, None]


def test_a_summariser_that_gets_the_whole_conversation_is_parted_from_it_and_its_answer_is_found() -> None:
    summary = "The customer asks about a parcel."
    program = Program()
    talk = program.ask([user("Where is my parcel?")], said("It is on its way to you."), system="S")
    program.ask([*talk, user("Summarise the conversation so far.")], said(summary), system="S")
    program.ask([*talk, user("When is it here?")], said("Tomorrow at noon."), system="S")
    program.ask([user(f"Before: {summary}"), user("And by whom?")], said("By the yellow van."), system="S")
    assert [line for line, _ in lines(program.transcript)] == [1, 2, 1, 1]
    assert alarms(program.transcript) == ["replaced"]
    requests = program.transcript.requests
    assert requests is not None
    assert requests.lines[1].used_in == 4
    assert requests.lines[1].about == "S"


def test_a_summary_that_the_conversation_goes_on_from_is_asked_for_beside_it() -> None:
    summary = "The customer asks about a parcel."
    program = Program()
    talk = program.ask([user("Where is my parcel?")], said("It is on its way to you."), system="S")
    talk = program.ask([*talk, user("Which colour is it?")], said("It is a brown parcel."), system="S")
    program.ask([*talk, user("Summarise the conversation so far.")], said(summary), system="S")
    program.ask([user(f"Before: {summary}"), user("And by whom?")], said("By the yellow van."), system="S")
    requests = program.transcript.requests
    assert requests is not None
    assert [one.line for one in requests.references] == [1, 1, 2, 1]
    assert requests.lines[1].used_in == 4
    assert alarms(program.transcript) == ["replaced"]


def test_a_summary_that_is_asked_for_again_takes_only_its_own_answer_away() -> None:
    summary = "The customer asks about a parcel."
    program = Program()
    talk = program.ask([user("Where is my parcel?")], said("It is on its way to you."), system="S")
    talk = program.ask([*talk, user("Which colour is it?")], said("It is a brown parcel."), system="S")
    question = [*talk, user("Summarise the conversation so far.")]
    program.ask(question, said(summary), system="S")
    program.ask([user(f"Before: {summary}"), user("And by whom?")], said("By the yellow van."), system="S")
    # Two times: the second time is where a place that the first time made stale was used.
    for number in range(2):
        program.ask(question, said(f"The customer asks about a parcel: summary {number}."), system="S")
    assert [one.content for one in program.transcript.messages if one.role == "assistant"] == [
        "It is on its way to you.",
        "It is a brown parcel.",
        "By the yellow van.",
        "The customer asks about a parcel: summary 1.",
    ]
    assert [line for line, _ in lines(program.transcript)] == [1, 1, 2, 1, 2, 2]


def test_sub_agents_at_the_same_time_with_equal_prompts_work_for_their_own_calls() -> None:
    program = Program()
    calls = ("a", "research", '{"task": "Find the price of tea"}'), ("b", "research", '{"task": "Find its origin"}')
    talk = program.ask([user("Tell me of tea.")], said("", *calls), system="lead")
    program.ask([user("Find its origin")], said("From Assam, as it says."), system="worker", at=20, took=30)
    program.ask([user("Find the price of tea")], said("", ("s", "search", "{}")), system="worker", at=21, took=5)
    more = [user("Find the price of tea"), said("", ("s", "search", "{}")), result("s", "4.20")]
    program.ask(more, said("It is 4.20 a pound."), system="worker", at=30, took=5)
    program.ask([*talk, result("b", "From Assam"), result("a", "4.20")], said("Tea."), system="lead", at=60)
    transcript = program.transcript
    named = [(1, "agent 1"), (2, "research"), (3, "research 2"), (3, "research 2"), (1, "agent 1")]
    assert lines(transcript) == named
    assert transcript.requests is not None
    called = [one.called_by for one in transcript.requests.lines]
    assert [None if one is None else transcript.tool_calls[one].id for one in called] == [None, "b", "a"]
    assert alarms(transcript) == []
    assert from_json(to_json(transcript)).requests == transcript.requests


def test_a_sub_agent_that_is_called_again_is_no_agent_that_forgot() -> None:
    program = Program()
    talk = [user("Two things.")]
    for number in (1, 2):
        talk = program.ask(talk, said("", (f"c{number}", "look", "{}")), system="lead")
        inner = program.ask([user(f"part {number}")], said("", ("s", "search", "{}")), system="worker")
        program.ask([*inner, result("s", "there")], said(f"Part {number} is there."), system="worker")
        talk.append(result(f"c{number}", f"Part {number} is there."))
    program.ask(talk, said("Both are there."), system="lead")
    assert [line for line, _ in lines(program.transcript)] == [1, 2, 2, 1, 3, 3, 1]
    assert alarms(program.transcript) == []


def test_an_agent_that_forgot_everything_is_still_that_agent() -> None:
    program = Program()
    talk = program.ask([user("Do you have wool socks?")], said("Yes, in green."), system="S")
    program.ask([*talk, user("And hats?")], said("Hats too, in red."), system="S")
    program.ask([user("What did I ask first?")], said("This is your first question."), system="S")
    assert [line for line, _ in lines(program.transcript)] == [1, 1, 1]
    assert alarms(program.transcript) == ["restarted"]


def test_an_agent_that_put_a_summary_into_its_system_prompt_is_still_that_agent() -> None:
    program = Program()
    system = "You sell clothes to customers."
    talk = program.ask([user("Do you have wool socks?")], said("Yes, in green."), system=system, tools=["find"])
    program.ask([*talk, user("And hats?")], said("Hats too, in red."), system=system, tools=["find"])
    system += "\n\nSummary: they asked for socks and hats."
    program.ask([user("What did I ask first?")], said("For socks."), system=system, tools=["find"])
    program.ask([user("Write a title.")], said("Socks and hats"), system=system)
    assert [line for line, _ in lines(program.transcript)] == [1, 1, 1, 2]
    assert alarms(program.transcript) == ["restarted"]


def test_what_the_system_says_in_between_is_a_message_in_its_place() -> None:
    program = Program()
    talk = program.ask([user("Do you have socks?")], said("Yes, in green."), system="S")
    talk = program.ask([*talk, event("They are at home now."), user("And hats?")], said("In red."), system="S")
    program.ask([*talk, event("They went out again."), user("And shoes?")], said("In blue."), system="S")
    assert [one.content for one in program.transcript.messages if one.role == "system"] == [
        "S", "They are at home now.", "They went out again.",
    ]  # fmt: skip
    requests = program.transcript.requests
    assert requests is not None
    assert [kind for number in (2, 3) for kind in kinds(requests, number)] == ["added", "added"]
    assert Sight(program.transcript).out_of_sight(3) == frozenset()


def test_questions_that_have_nothing_to_do_with_each_other_are_no_losses() -> None:
    program = Program()
    for number in range(3):
        program.ask([user(f"Question {number}")], said(f"Answer to {number}."), system="S")
    assert alarms(program.transcript) == []


def test_questions_behind_the_same_examples_are_no_losses() -> None:
    program = Program()
    examples = [user("It is great!"), said("positive"), user("It broke at once."), said("negative")]
    for number in range(3):
        program.ask([*examples, user(f"Review {number} of three")], said("positive"), system="S")
    assert alarms(program.transcript) == []
    program.ask([user("Review 3 of three")], said("positive"), system="S")
    assert alarms(program.transcript) == ["restarted"]


def texts(transcript: Transcript) -> list[str]:
    return [message.content for message in transcript.messages]


def test_a_conversation_of_short_answers_that_drops_its_beginning_is_there_once() -> None:
    program = Program()
    talk: list[Message] = []
    for number in range(1, 5):
        talk = program.ask([*talk, user(f"Q{number}")], said("ok"), system="Sys")
    talk = program.ask([*talk[2:], user("Q5")], said("yes"), system="Sys")
    program.ask([*talk, user("Q6")], said("no"), system="Sys")
    transcript = program.transcript
    assert texts(transcript) == ["Sys", "Q1", "ok", "Q2", "ok", "Q3", "ok", "Q4", "ok", "Q5", "yes", "Q6", "no"]
    assert {line for line, _ in lines(transcript)} == {1}
    assert alarms(transcript) == ["dropped"]


def test_another_conversation_that_has_the_same_short_answer_is_not_taken_for_it() -> None:
    program = Program()
    program.ask([user("Is it open?")], said("Yes."), system="Shop")
    program.ask([user("Is it paid?"), said("Yes."), user("When?")], said("Today."), system="Bank")
    assert [line for line, _ in lines(program.transcript)] == [1, 2]
    assert texts(program.transcript).count("Yes.") == 2


def test_sub_agents_with_one_and_the_same_task_work_for_the_call_that_has_their_answer() -> None:
    program = Program()
    calls = [("a", "research", '{"topic": "socks"}'), ("b", "research", '{"topic": "socks"}')]
    talk = program.ask([user("Research it twice.")], said("", *calls), system="Boss")
    program.ask([user("socks")], said("Second finding"), system="You research.", at=20, took=30)
    program.ask([user("socks")], said("First finding"), system="You research.", at=21, took=5)
    program.ask([*talk, result("a", "First finding"), result("b", "Second finding")], said("Both."), system="Boss")
    requests = program.transcript.requests
    assert requests is not None
    assert [(line.name, line.called_by) for line in requests.lines] == [
        ("agent 1", None), ("research", 1), ("research 2", 0),
    ]  # fmt: skip


def kept(number: int, text: str, said_text: str, **more: Any) -> Exchange:
    """A request of the Responses API, whose server keeps the conversation."""
    body = {"model": "m", "input": text, **more}
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said_text}]}]
    reply = {"id": f"resp_{number}", "model": "m", "status": "completed", "output": output}
    question = Question("POST", "openai/v1/responses", {}, body)
    return Exchange(question, Answer(200, "application/json", reply), "", number * 10.0, number * 10.0 + 5)


def test_conversations_that_a_server_keeps_under_two_names_are_two_lines() -> None:
    transcript = transcript_of(
        [
            kept(1, "My name is Zoe.", "Hello."),
            kept(2, "What is it?", "Zoe", previous_response_id="resp_1"),
            kept(3, "Hello", "Hi", conversation={"id": "conv_1"}),
            kept(4, "Who?", "You", conversation="conv_2"),
            kept(5, "And now?", "Bye", conversation={"id": "conv_1"}),
        ]
    )
    assert [line for line, _ in lines(transcript)] == [1, 1, 2, 3, 2]


def test_a_request_that_goes_back_to_an_earlier_answer_leaves_what_came_between_beside_it() -> None:
    transcript = transcript_of(
        [
            kept(1, "My name is Zoe.", "Hello."),
            kept(2, "Call me Ann.", "Hello Ann.", previous_response_id="resp_1"),
            kept(3, "What is my name?", "Zoe", previous_response_id="resp_1"),
            kept(4, "And now?", "Ann", previous_response_id="resp_2"),
        ]
    )
    assert [line for line, _ in lines(transcript)] == [1, 2, 1, 2]
    requests = transcript.requests
    assert requests is not None
    assert requests.earlier == (0, 0, 1, 2)


def test_a_failed_request_of_a_conversation_that_the_server_keeps_is_asked_again() -> None:
    failed = kept(2, "What is it?", "", previous_response_id="resp_1")
    failed = Exchange(failed.question, Answer(500, "application/json", {}), "", 20, 25)
    transcript = transcript_of(
        [
            kept(1, "My name is Zoe.", "Hello."),
            failed,
            kept(3, "What is it?", "Zoe", previous_response_id="resp_1"),
        ]
    )
    assert texts(transcript) == ["My name is Zoe.", "Hello.", "What is it?", "Zoe"]
    assert [line for line, _ in lines(transcript)] == [1, 1, 1]


def test_a_told_request_led_to_the_message_of_the_same_call_whatever_the_order_of_its_arguments() -> None:
    messages = [user("go"), said("", ("c1", "find", '{"b": 2, "a": {"d": 4, "c": 3}}')), result("c1", "found")]
    answer = said("", ("c1", "find", '{"a": {"c": 3, "d": 4}, "b": 2}'))
    transcript = with_requests(from_openai_messages(messages), [asked_in([user("go")], [answer], number=0)])
    assert transcript.requests is not None
    assert [reference.answer for reference in transcript.requests.references] == [1]
