"""What changed from one request of a model to the next: planted changes are named, a growing conversation has none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.transcripts.model_request import ModelRequest, OfferedTool
from agenteval_tui.transcripts.request_changes import RequestChange, difference

Messages = list[dict[str, Any]]


@st.composite
def conversations(draw: st.DrawFn) -> Messages:
    """A conversation of several turns, some with a call of a tool and its result. No two messages are equal. Calls of
    Gemini have no ids."""
    made: Messages = []
    has_ids = draw(st.booleans())
    for turn in range(draw(st.integers(2, 6))):
        made.append({"role": "user", "content": f"question {turn}: {draw(st.text(max_size=40))}"})
        if draw(st.booleans()):
            call = {
                "id": f"call_{turn}" if has_ids else "",
                "type": "function",
                "function": {"name": "find", "arguments": f'{{"q": {turn}}}'},
            }
            made.append({"role": "assistant", "content": "", "tool_calls": [call]})
            result = f"result {turn} " + "row " * draw(st.integers(20, 60))
            about = {"tool_call_id": f"call_{turn}"} if has_ids else {"name": "find"}
            made.append({"role": "tool", "content": result, **about})
        made.append({"role": "assistant", "content": f"answer {turn}: {draw(st.text(max_size=40))}"})
    return made


def request(messages: Messages, **more: Any) -> ModelRequest:
    return ModelRequest(2, 1, "m", messages=tuple(messages), **more)


NEXT = [{"role": "user", "content": "and now?"}]


def changes(before: ModelRequest, after: ModelRequest) -> dict[str, RequestChange]:
    return {change.kind: change for change in difference(before, after).changes}


@given(conversations())
def test_a_conversation_that_grows_loses_nothing(messages: Messages) -> None:
    found = difference(request(messages), request([*messages, *NEXT]))
    assert [(change.kind, change.after) for change in found.changes] == [("added", (len(messages),))]
    assert found.grew_only
    assert found.common == len(messages)
    assert difference(request(messages), request(messages)).changes == ()


@given(conversations())
def test_a_message_that_is_written_otherwise_is_the_same(messages: Messages) -> None:
    written: Messages = []
    for place, message in enumerate(messages):
        other = {**message, "content": f" {message['content']}\n", "reasoning": "hm", "name": "find"}
        for call in message.get("tool_calls", ()):
            function = {"name": "find", "arguments": call["function"]["arguments"].replace(" ", "")}
            other["tool_calls"] = [{"id": f"again_{place}", "index": 0, "function": function}]
        if message["role"] == "tool":
            other["tool_call_id"] = f"again_{place - 1}"
        written.append(other)
    found = difference(request(messages), request([*written, *NEXT]))
    assert [(change.kind, change.after) for change in found.changes] == [("added", (len(messages),))]
    assert found.common == 0


@given(conversations(), st.data())
def test_messages_that_are_left_out_are_named(messages: Messages, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(messages) - 2))
    end = data.draw(st.integers(start + 1, len(messages) - (start == 0)))
    found = changes(request(messages), request([*messages[:start], *messages[end:], *NEXT]))
    assert found.keys() == {"dropped", "added"}
    assert found["dropped"].before == tuple(range(start, end))


@given(conversations(), st.data())
def test_a_summary_in_place_of_messages_is_named(messages: Messages, data: st.DataObject) -> None:
    end = data.draw(st.integers(1, len(messages) - 1))
    summary = {"role": "user", "content": "Summary so far: they talked."}
    found = changes(request(messages), request([summary, *messages[end:], *NEXT]))
    assert found.keys() == {"replaced", "added"}
    assert (found["replaced"].before, found["replaced"].after) == (tuple(range(end)), (0,))


SUMMARY = {"role": "user", "content": "Summary so far: they talked."}


@given(conversations(), st.data())
def test_a_summary_directly_before_the_newest_question_is_in_place_of_messages(
    messages: Messages, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(messages) - 2))
    end = data.draw(st.integers(start + 1, len(messages) - (start == 0)))
    answer = data.draw(st.sampled_from([[], [{"role": "assistant", "content": "the answer to the request before"}]]))
    kept = [*messages[:start], *messages[end:], *answer]
    found = changes(request(messages), request([*kept, SUMMARY, *NEXT]))
    assert found.keys() == {"replaced", "added"}
    assert (found["replaced"].before, found["replaced"].after) == (tuple(range(start, end)), (len(kept),))
    assert found["added"].after == (*range(len(kept) - len(answer), len(kept)), len(kept) + 1)


def test_a_summary_behind_what_stayed_and_before_the_answer_is_in_place_of_messages() -> None:
    task, one, two = ({"role": "user", "content": text} for text in ("task", "one", "two"))
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "f"}}]}
    result = {"role": "tool", "tool_call_id": "c", "content": "found"}
    found = changes(request([task, one, two]), request([task, SUMMARY, call, result]))
    assert (found["replaced"].before, found["replaced"].after) == ((1, 2), (1,))
    assert found["added"].after == (2, 3)


def test_messages_that_always_stand_before_a_question_are_no_summary() -> None:
    def turn(number: int) -> Messages:
        return [{"role": "user", "content": f"documents {number}"}, {"role": "user", "content": f"question {number}"},
                {"role": "assistant", "content": f"answer {number}"}]  # fmt: skip

    found = changes(request([*turn(1), *turn(2)[:2]]), request([*turn(2), *turn(3)[:2]]))
    assert (found["dropped"].before, found["added"].after) == ((0, 1, 2), (2, 3, 4))
    assert found.keys() == {"dropped", "added"}


@given(conversations(), st.data())
def test_a_result_that_is_masked_is_named_with_both_texts(messages: Messages, data: st.DataObject) -> None:
    results = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    if not results:
        return
    place = data.draw(st.sampled_from(results))
    masked = [*messages[:place], {**messages[place], "content": "[old result cleared]"}, *messages[place + 1 :], *NEXT]
    found = changes(request(messages), request(masked))
    assert found.keys() == {"masked", "added"}
    assert (found["masked"].before, found["masked"].after) == ((place,), (place,))
    assert (found["masked"].was, found["masked"].now) == (messages[place]["content"], "[old result cleared]")


@given(conversations(), st.data())
def test_messages_in_another_order_are_named_and_not_called_lost(messages: Messages, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(messages) - 1))
    found = changes(request(messages), request([messages[place], *messages[:place], *messages[place + 1 :], *NEXT]))
    assert "moved" in found
    assert not found.keys() & {"dropped", "replaced", "restarted"}


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


TURNS = [
    said("user", "My name is Nadja Petrova, I write from nadja@example.org about my order."),
    said("assistant", "What is its number?"),
    said("user", "Yes, of course: 4711."),
    said("assistant", "Shall I cancel it?"),
    said("user", "Yes"),
    said("assistant", "It is cancelled."),
    said("user", "And the refund?"),
]


@pytest.mark.parametrize(
    ("place", "text", "kind"),
    [
        (0, "My name is [NAME], I write from [EMAIL] about my order.", "masked"),
        (0, "The user said before: " + TURNS[0]["content"], "changed"),
        (1, "[removed]", "masked"),
        (2, "[removed]", "masked"),
        (4, "[a short answer was removed]", "changed"),
    ],
)
def test_a_message_with_another_text_is_the_one_in_whose_place_it_is(place: int, text: str, kind: str) -> None:
    other = [*TURNS[:place], {**TURNS[place], "content": text}, *TURNS[place + 1 :]]
    found = changes(request(TURNS), request([*other, said("assistant", "It is on its way."), *NEXT]))
    assert found.keys() == {kind, "added"}
    assert (found[kind].before, found[kind].after) == ((place,), (place,))
    assert (found[kind].was, found[kind].now) == (TURNS[place]["content"], text)


def test_a_call_with_other_arguments_is_the_same_call() -> None:
    def asked(arguments: str) -> ModelRequest:
        call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": arguments}}
        return request([TURNS[0], {"role": "assistant", "content": "", "tool_calls": [call]}, *NEXT])

    found = changes(asked('{"email": "nadja@example.org"}'), asked('{"email": "***"}'))
    assert found.keys() == {"masked"}
    assert (found["masked"].before, found["masked"].after) == ((1,), (1,))
    assert "nadja@example.org" in found["masked"].was


def test_what_was_added_to_a_question_and_is_taken_away_with_its_answer_is_masked() -> None:
    """As retrieved texts, which only the newest question has."""
    asked = said("user", "Context: refunds take five days.\n\nQuestion: And the refund?")
    found = changes(request([*TURNS[:-1], asked]), request([*TURNS, said("assistant", "Five days."), *NEXT]))
    assert found.keys() == {"masked", "added"}
    assert found["masked"].before == (6,)


def test_the_message_that_a_text_was_taken_from_is_the_one_that_was_shortened() -> None:
    """Some frameworks join messages of one role: what was dropped takes a part of the next message with it."""
    first, joined = said("user", "Task: tell me of Oslo"), said("user", "It is fine there.\nTask: tell me of Rome")
    rest = [said("assistant", "Rome is warm."), said("user", "And Bern?")]
    before = [first, said("assistant", "Oslo is cold."), joined, *rest]
    found = changes(request(before), request([said("user", "Task: tell me of Rome"), *rest, *NEXT]))
    assert found.keys() == {"masked", "dropped", "added"}
    assert (found["masked"].before, found["dropped"].before) == ((2,), (0, 1))


def test_a_remark_that_always_stands_last_is_dropped_and_nothing_takes_its_place() -> None:
    remark, other = said("user", "9 steps are left"), said("user", "8 steps are left")
    found = changes(request([*TURNS, remark]), request([*TURNS, said("assistant", "Soon."), *NEXT, other]))
    assert found.keys() == {"dropped", "added"}
    assert (found["dropped"].before, found["added"].after) == ((7,), (7, 8, 9))


def test_the_newest_answer_is_not_an_older_one_that_moved() -> None:
    found = changes(request(TURNS), request([*TURNS[5:], said("assistant", "Shall I send it?"), said("user", "Yes")]))
    assert found.keys() == {"dropped", "added"}
    assert found["dropped"].before == (0, 1, 2, 3, 4)


def test_messages_that_are_said_several_times_move_like_others() -> None:
    talk = [*TURNS, said("assistant", "Shall I send it?"), said("user", "Yes"), said("assistant", "It is sent."), *NEXT]
    found = changes(request(talk), request([*talk[4:6], *talk[:4], *talk[6:], said("assistant", "ok"), *NEXT]))
    assert found.keys() == {"moved", "added"}


def test_a_summary_of_everything_may_have_an_answer() -> None:
    found = changes(request(TURNS), request([SUMMARY, said("assistant", "Understood."), *NEXT]))
    assert found.keys() == {"replaced", "added"}
    assert (found["replaced"].before, found["replaced"].after) == (tuple(range(len(TURNS))), (0, 1))


@given(conversations())
def test_a_request_without_any_of_the_messages_before_begins_anew(messages: Messages) -> None:
    found = changes(request(messages), request(NEXT))
    assert found.keys() == {"restarted"}
    assert (found["restarted"].before, found["restarted"].after) == (tuple(range(len(messages))), (0,))


def test_the_system_prompt_tools_and_parameters() -> None:
    tools = (OfferedTool("find", "finds", {"type": "object"}), OfferedTool("gone", "goes"))
    before = request([], system="one\ntwo\nthree", tools=tools, parameters={"temperature": 0, "top_p": 1})
    after = replace(
        before,
        model="n",
        system="one\n2\nthree",
        tools=(OfferedTool("find", "looks", {"type": "object"}), OfferedTool("new")),
        parameters={"temperature": 1, "top_p": 1},
    )
    found = [(one.kind, one.name, one.was, one.now) for one in difference(before, after).changes]
    assert found == [
        ("system", "2", "two", "2"),
        ("tool_removed", "gone", "goes", ""),
        ("tool_changed", "find", "finds", "looks"),
        ("tool_added", "new", "", ""),
        ("parameter", "model", '"m"', '"n"'),
        ("parameter", "temperature", "0", "1"),
    ]


def test_an_answer_that_says_the_same_as_one_that_was_dropped_did_not_move() -> None:
    one, two, three = ({"role": "user", "content": text} for text in ("one", "two", "three"))
    same = {"role": "assistant", "content": "I can't find it anywhere."}
    found = difference(request([one, same, two]), request([two, same, three])).changes
    assert [(change.kind, change.before, change.after) for change in found] == [
        ("dropped", (0, 1), ()), ("added", (), (1, 2)),
    ]  # fmt: skip


def test_tools_in_another_order_are_a_change() -> None:
    tools = (OfferedTool("find"), OfferedTool("pay"), OfferedTool("gone"))
    before = request([], tools=tools)
    after = replace(before, tools=(OfferedTool("pay"), OfferedTool("new"), OfferedTool("find")))
    found = difference(before, after).changes
    assert [one.kind for one in found] == ["tool_removed", "tool_added", "tools_moved"]
    assert (found[-1].was, found[-1].now) == ("find, pay", "pay, find")
    grown = replace(before, tools=(OfferedTool("new"), *tools))
    assert [one.kind for one in difference(before, grown).changes] == ["tool_added"]


def test_thousands_of_messages_are_compared_by_what_they_begin_and_end_with() -> None:
    messages = [{"role": "user", "content": f"question {number}"} for number in range(3_000)]
    found = difference(request(messages), request([*messages[:1_000], *messages[2_000:], *NEXT]))
    assert [(one.kind, len(one.before)) for one in found.changes] == [("dropped", 1_000), ("added", 0)]
    assert found.common == 1_000
