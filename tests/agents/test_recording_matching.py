"""Equal requests, what varies in them, the nearest one, and cassettes."""

from __future__ import annotations

import json
import re
import resource
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.agents.recording.answers import Miss
from agenteval_tui.agents.recording.cassette import Cassette, Volatile, append, lines, parse, read, write
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import STREAM, Answer, Exchange, Question, events_of, received
from agenteval_tui.agents.recording.keys import KeyRedactor
from agenteval_tui.agents.recording.matching import Matcher, nearest, varying_parts, volatile_parts, without_clock
from agenteval_tui.agents.recording.playback import CassetteIndex, OrderedPlayback, Playback
from agenteval_tui.core.errors import AgentevalError

CHAT = "openai/v1/chat/completions"


def asked(*texts: str, system: str = "", **more: Any) -> Question:
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": "user", "content": text} for text in texts]
    return Question("POST", CHAT, {}, {"model": "m", "messages": messages, **more})


def said(text: str, status: int = 200, **more: Any) -> Answer:
    return Answer(status, "application/json", {"said": text}, **more)


def equal(one: Question, other: Question, **options: Any) -> bool:
    matcher = Matcher(**options)
    assert (matcher.key(one) == matcher.key(other)) == (matcher.differences(one, other) == [])
    return matcher.key(one) == matcher.key(other)


def test_equal_requests() -> None:
    assert equal(asked("a", temperature=0, top_p=1), asked("a", top_p=1, temperature=0))
    assert equal(asked("a", user="u1", metadata={"run": 1}), asked("a", user="u2"))
    assert not equal(asked("a"), asked("b"))
    assert not equal(asked("a", stream=True), asked("a"))
    assert not equal(asked("a", system="x"), asked("a", system="y"))
    assert equal(asked("a", system="x"), asked("a", system="y"), system=False)


@pytest.mark.parametrize(
    ("field", "messages"),
    [
        ("messages", lambda i: [{"role": "assistant", "tool_calls": [{"id": i, "function": {"arguments": "{}"}}]},
                                {"role": "tool", "tool_call_id": i, "content": "x"}]),
        ("messages", lambda i: [{"role": "assistant",
                                 "content": [{"type": "tool_use", "id": i, "input": {"id": "W1"}}]},
                                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i}]}]),
        ("input", lambda i: [{"type": "function_call", "call_id": i, "arguments": "{}"},
                             {"type": "function_call_output", "call_id": i}]),
        ("contents", lambda i: [{"parts": [{"functionCall": {"id": i, "name": "f", "args": {"id": "W1"}}}]},
                                {"parts": [{"functionResponse": {"id": i, "response": {"id": "W1"}}}]}]),
    ],
)  # fmt: skip
def test_the_ids_of_calls_do_not_count_but_those_in_arguments_do(field: str, messages: Any) -> None:
    one, other = (Question("POST", CHAT, {}, {field: messages(i)}) for i in ("call_abc", "call_xyz"))
    assert equal(one, other)
    changed = json.loads(json.dumps(other.body).replace('"W1"', '"W2"'))
    if changed != other.body:
        assert not equal(one, Question("POST", CHAT, {}, changed))


@pytest.mark.parametrize(
    ("one", "other", "rules"),
    [
        ("Today is 2026-11-23.", "Today is 2026-11-24.", ["date"]),
        ("It is Monday, November 23, 2026, 05:04.", "It is Tuesday, November 24, 2026, 17:10.", ["date", "time"]),
        ("now: 2026-11-23T05:04:22.123Z", "now: 2026-11-23T05:04:23.001Z", ["date-time"]),
        ("id 4d1e2a3b-1111-2222-3333-444455556666", "id 9d1e2a3b-1111-2222-3333-444455556667", ["uuid"]),
        ("trace 7f3a9c01b2", "trace 81bb20cc3d", ["hex"]),
        ("run 17", "run 18", ["number"]),
        ("session req_8fKq02mZpLx1", "session req_01hYt77aQwe9", ["id"]),
        ("one thing", "another", ["any"]),
    ],
)
def test_what_varies_is_found(one: str, other: str, rules: list[str]) -> None:
    first, second = asked("hello", system=one), asked("hello", system=other)
    found = volatile_parts([(first, second)])
    assert [rule.like for rule in found] == rules
    assert equal(first, second, volatile=found)
    assert not equal(first, asked("bye", system=other), volatile=found)
    # In a later message of the same request it is left out too, where it looks like this; else only there.
    later = (asked("hello", one, system="s"), asked("hello", other, system="s"))
    assert equal(*later, volatile=found) == (rules != ["any"])


def test_the_nearest_is_the_one_with_the_fewest_differences() -> None:
    recorded = [
        asked("Orders from Germany", system="s"),
        asked("Something else", system="s"),
        asked("a", "b", system="s"),
    ]
    found = nearest(Matcher(), recorded, asked("Orders from France", system="s"))
    assert found is not None
    number, differences = found
    assert number == 0
    assert [one.description for one in differences] == [
        'messages[1].content: recorded "Orders from Germany", now "Orders from France"'
    ]
    long = "x" * 500
    (only,) = Matcher().differences(asked(long + " Germany " + long), asked(long + " France " + long))
    assert len(only.description) < 200
    assert all(name in only.description for name in ("Germany", "France"))


@pytest.mark.parametrize("field", ["contents", "input", "messages"])
def test_a_message_with_another_content_is_nearer_than_a_request_without_it(field: str) -> None:
    first = {"role": "user", "parts": [{"text": "Weather?"}]}
    call = {"role": "model", "parts": [{"call": {"name": "weather"}}]}

    def request(*messages: object) -> Question:
        return Question("POST", "v1beta/models/m:generateContent", {}, {field: list(messages)})

    def result(response: object) -> object:
        return {"role": "user", "parts": [{"result": {"name": "weather", "response": response}}]}

    recorded = [request(first), request(first, call, result({"status": "ok", "report": "sunny", "degrees": 20}))]
    chosen = nearest(Matcher(), recorded, request(first, call, result({"error": "no such city"})))
    assert chosen is not None
    assert (chosen[0], chosen[1][0].at) == (1, f"{field}[2].parts[0].result.response.status")


def test_equal_requests_get_their_answers_in_order_and_the_last_one_again() -> None:
    cassette = Cassette(tuple(Exchange(asked("a"), said(text)) for text in ("1", "2")))
    playback = Playback(cassette)
    assert [playback.answer(asked("a")) for _ in range(3)] == [said("1"), said("2"), said("2")]
    missed = playback.answer(asked("b"))
    assert isinstance(missed, Miss)
    assert "the nearest is request 1" in missed.description
    assert isinstance(Playback(Cassette()).answer(asked("b")), Miss)


def test_an_answer_after_which_the_program_asked_again_is_left_out() -> None:
    failed = (said("busy", 429), said("", 200, whole=False), Answer(0, error="gone", whole=False), said("no", 400))
    for answer in failed:
        cassette = Cassette((Exchange(asked("a"), answer), Exchange(asked("a"), said("1"))))
        kept = Playback(cassette).answer(asked("a"))
        assert kept == (answer if answer.status == 400 else said("1"))
        # Without a second one it is what the program got.
        assert Playback(Cassette((Exchange(asked("a"), answer),))).answer(asked("a")) == answer


def test_sessions_have_their_own_answers() -> None:
    cassette = Cassette(tuple(Exchange(asked("a"), said(name), name) for name in ("t#1", "t#2")))
    assert Playback(cassette, session="t#2").answer(asked("a")) == said("t#2")
    assert [Playback(cassette, session="u", start=n).answer(asked("a")) for n in (0, 1, 2)] == [
        said("t#1"), said("t#2"), said("t#1")
    ]  # fmt: skip


def test_each_recorded_answer_goes_to_the_request_that_is_most_like_its_own() -> None:
    recorded = [Exchange(asked(text, system="at 10:00"), said(text)) for text in ("first", "second")]
    playback = OrderedPlayback(recorded)
    assert playback.answer(asked("second", system="at 11:00")) == said("second")
    assert playback.answer(asked("first", system="at 11:00")) == said("first")
    assert [rule.like for rule in volatile_parts(playback.pairs)] == ["time"]
    assert isinstance(playback.answer(asked("third")), Miss)


def test_a_cassette_comes_back_as_it_was(tmp_path: Path) -> None:
    stream, times = events_of([(3, b"data: 1\n\nda"), (9, b"ta: 2\r\n\r\n"), (12, b"data: \xc3\xa4")], STREAM)
    assert (stream, times) == (("data: 1\n\n", "data: 2\r\n\r\n", "data: ä"), (3, 9, 12))
    exchanges = (
        Exchange(asked("a"), Answer(200, "text/event-stream", stream, times, False), "s"),
        Exchange(Question("GET", "x", {"q": "1"}), Answer(200, "image/png", b"\x89\xff\x00")),
        Exchange(Question("POST", "x", {}, "plain \ud83d"), Answer(0, error="gone", whole=False)),
    )
    cassette = Cassette(exchanges, (Volatile("messages[*].content", "date"), Volatile("n")))
    path = tmp_path / "c.jsonl"
    write(path, cassette)
    text = path.read_text("utf-8")
    assert text.count("\n") == 4
    back = read(path)
    assert back.volatile == cassette.volatile
    assert "".join(lines(back)) == text
    assert [(one.question, one.answer, one.session) for one in back.exchanges] == [
        (one.question, one.answer, one.session) for one in exchanges
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ('{"agenteval_cassette": 2}\n', "has version 2, and this program reads version 1"),
        ('{"role": "user"}\n', "not a cassette"),
        ("[]\n", "not a cassette"),
        ("nonsense\n", r"c:1: this line of the cassette can't be read: it is not JSON \(fix the line"),
        ('{"agenteval_cassette": 1}\n{"request": {"meth', r"c:2: .* can't be read: it is cut off \(fix"),
        ('{"agenteval_cassette": true}\n', "has version True"),
        ('{"agenteval_cassette": 1}\n\n{"request": {}}\n', "c:3: .*there is no `answer`"),
        ('{"agenteval_cassette": 1}\n{"request": {"method": "GET", "path": "x"}, "answer": {}}\n', "needs a `status`"),
        (
            '{"agenteval_cassette": 1, "volatile": [{"like": "date"}]}\n',
            r"`volatile` of this cassette is wrong \(write it as \[",
        ),
        *[
            (
                f'{{"agenteval_cassette": 1}}\n{{"request": {{"method": "GET", "path": "x"}}, "answer": {{{answer}}}}}',
                words,
            )
            for answer, words in [
                *[(f'"status": {one}', "`status` .*200 to 999, or 0") for one in (99, 101, 70000, -1, "true", "2e2")],
                ('"status": 200, "type": "text/plain\\r\\nX: y"', "`type` .* line breaks"),
                ('"status": 200, "type": "text/plain\\u0000"', "`type` .* line breaks"),
                *[(f'"status": 200, "at_ms": [{one}]', "`at_ms` .*milliseconds") for one in (-5, 10**30, "true")],
                (f'"status": 200, "json": {"[" * 600 + "]" * 600}', "a body is nested deeper than 200 levels"),
            ]
        ],
    ],
)
def test_what_is_no_cassette_is_said_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(AgentevalError, match=words) as raised:
        parse(text, "c")
    assert raised.value.sentence.count("\n") == 0


def test_a_cassette_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match=r"no such cassette.*record --cassette"):
        read(tmp_path / "none.jsonl")
    with pytest.raises(AgentevalError, match=r"can't be read: is a directory \(name another"):
        read(tmp_path)
    # An editor of another system has put its mark before the first line.
    (tmp_path / "marked.jsonl").write_text('{"agenteval_cassette": 1}\n', "utf-8-sig")
    assert read(tmp_path / "marked.jsonl") == Cassette()


def test_what_does_not_fit_onto_the_disk_leaves_the_cassette_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    append(path, [Exchange(asked("a"), said("b"))])
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, limits[1]))  # as a disk with so much left
    try:
        with pytest.raises(AgentevalError, match="this cassette can't be written"):
            append(path, [Exchange(asked("c"), said("d" * 5000))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    path.write_bytes(before.rstrip())
    append(path, [Exchange(asked("c"), said("d"))])
    assert len(read(path).exchanges) == 2


def test_a_request_with_a_call_that_is_none_is_a_miss_as_any_other() -> None:
    def odd(function: object) -> Question:
        call = {"id": "c", "type": "function", "function": function}
        result = {"role": "tool", "tool_call_id": "c", "content": "r"}
        messages = [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
        return Question("POST", CHAT, {}, {"model": "m", "messages": messages})

    recorded = Exchange(odd({"name": "f", "arguments": "{}"}), said("1"))
    answer = Playback(Cassette((recorded,))).answer(odd("f"))
    assert isinstance(answer, Miss)
    assert answer.nearest == 1


def test_requests_of_one_conversation_have_the_keys_that_they_have_alone() -> None:
    turns: list[list[dict[str, Any]]] = [
        [
            {"role": "user", "content": f"order {number}?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": f"t{number}", "input": {"n": number}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "\ud800"}]},
        ]
        for number in range(6)
    ]
    conversations = [
        *([message for turn in turns[:count] for message in turn] for count in range(7)),
        turns[0] + turns[3],  # an earlier place is taken up
        turns[1] + turns[2],
        turns[0] + turns[0],
    ]
    matcher = Matcher()
    for messages in conversations:
        question = Question("POST", "anthropic/v1/messages", {}, json.loads(json.dumps({"messages": messages})))
        assert matcher.key(question) == Matcher().key(question)


def test_numbers_that_python_takes_for_equal_are_different_requests() -> None:
    matcher = Matcher()
    keys = {
        matcher.key(Question("POST", "anthropic/v1/messages", {}, {"messages": [{"input": {"n": value}}]}))
        for value in (1, 1.0, True, 10**30)
    }
    assert len(keys) == 4


def test_the_ids_of_calls_of_bedrock_do_not_count_but_those_in_results_do() -> None:
    def asked_of_bedrock(call: str, found: str) -> Question:
        use = {"toolUse": {"toolUseId": call, "name": "f", "input": {"id": "W1"}}}
        result = {"toolResult": {"toolUseId": call, "content": [{"json": {"id": found}}]}}
        messages = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return Question("POST", "bedrock/model/anthropic.claude/converse", {}, {"messages": messages})

    assert equal(asked_of_bedrock("tooluse_a", "W1"), asked_of_bedrock("tooluse_b", "W1"))
    assert not equal(asked_of_bedrock("tooluse_a", "W1"), asked_of_bedrock("tooluse_a", "W2"))


def test_the_order_of_keys_does_not_count_where_two_of_them_are_ids() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "r"}
    turned = [dict(reversed(part.items())) for part in (item, result)]
    one, other = (Question("POST", "openai/v1/responses", {}, {"input": items}) for items in ([item, result], turned))
    assert equal(one, other)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from((0, 1, 1.0, -0.0, 10**30, "", "a", "call_1", "call_2", "…")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("id", "call_id", "arguments", "input", "text", "role")), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = JSON_VALUES | st.dictionaries(
    st.sampled_from(("messages", "input", "query", "body", "stop")), JSON_VALUES, max_size=4
)


@given(body=BODIES, seed=st.randoms(use_true_random=False))
def test_no_order_of_keys_makes_another_request(body: Any, seed: Any) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, list):
            return [*map(turned, value)]
        if not isinstance(value, dict):
            return value
        items = [(key, turned(item)) for key, item in value.items()]
        seed.shuffle(items)
        return dict(items)

    matcher = Matcher()
    assert matcher.key(Question("POST", CHAT, {}, body)) == matcher.key(Question("POST", CHAT, {}, turned(body)))


def body_of(messages: object, **more: Any) -> Question:
    return Question("POST", CHAT, {}, {"model": "m", "messages": messages, **more})


@pytest.mark.parametrize(
    ("recorded", "now", "words"),
    [
        ({"temperature": 1}, {"temperature": 1.0}, "temperature: recorded 1, now 1.0"),
        ({"stream": True}, {"stream": 1}, "stream: recorded true, now 1"),
        ({"stop": None}, {}, 'stop: now missing: "null"'),
        ({}, {"stop": None}, 'stop: new: "null"'),
        ({"stop": ["a"]}, {"stop": ["a", None]}, 'stop[1]: new: "null"'),
    ],
)
def test_a_request_that_is_not_equal_differs_somewhere(recorded: Any, now: Any, words: str) -> None:
    one, other = (body_of([{"role": "user", "content": "a"}], **more) for more in (recorded, now))
    assert not equal(one, other)
    miss = Playback(Cassette((Exchange(one, said("1")),))).answer(other)
    assert isinstance(miss, Miss)
    assert miss.change == words


@given(one=BODIES, other=BODIES)
def test_two_requests_are_equal_exactly_where_no_difference_is_told(one: Any, other: Any) -> None:
    first, second = (Question("POST", CHAT, {}, body) for body in (one, other))
    assert equal(first, first)
    equal(first, second)


def test_a_flag_is_no_number_that_varies() -> None:
    assert not equal(asked("a", stream=True), asked("a", stream=False), volatile=(Volatile("*", "number"),))
    assert equal(asked("a", seed=1), asked("a", seed=2), volatile=(Volatile("*", "number"),))


def test_what_varies_is_found_whichever_form_varied_first() -> None:
    recorded = asked("session req_8fKq02mZpLx1", system="run 17")
    now = asked("session req_01hYt77aQwe9", system="run 18")
    assert equal(recorded, now, volatile=volatile_parts([(recorded, now)]))
    assert equal(recorded, now, volatile=(Volatile("*", "number"), Volatile("*", "id")))


FIRST, SECOND, THIRD = "0a1b2c3d", "5fe09d71", "c83b2c40"
"""Ids of tasks."""


def of_task(task: str, question: str, *called: str) -> Question:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"{question} (task {task})"}]
    messages += [
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": name, "arguments": "{}"}}]}
        for name in called
    ]
    return Question("POST", CHAT, {}, {"messages": messages, "tools": [{"name": f"finish_{task}"}]})


def test_what_varies_is_learned_whichever_of_several_questions_came_first() -> None:
    asked_now = [of_task(FIRST, "Rate 1"), of_task(SECOND, "Rate 2"), of_task(THIRD, "Name it")]
    before = [of_task("41be7710", "Name it"), of_task("e90a6b52", "Rate 2"), of_task("7d00cf3a", "Rate 1")]
    rules = varying_parts(asked_now, before)
    assert {rule.like for rule in rules} == {"hex", "id"}, "no number: what is rated is another question"
    assert equal(asked_now[0], before[2], volatile=rules)
    assert not equal(asked_now[0], before[1], volatile=rules)


def test_a_model_may_repeat_what_varies_and_says_the_same() -> None:
    asked_now = [of_task(FIRST, "Rate it"), of_task(FIRST, "Rate it", f"finish_{FIRST}")]
    before = [of_task(SECOND, "Rate it"), of_task(SECOND, "Rate it", f"finish_{SECOND}")]
    rules = varying_parts(asked_now, before)
    assert equal(asked_now[1], before[1], volatile=rules)
    for name in (f"drop_{FIRST}", f"finish_{THIRD}"):
        other = of_task(FIRST, "Rate it", name)
        assert not equal(other, before[1], volatile=rules), "another call, or that of another task"
        assert not varying_parts([other], before[1:])


@pytest.mark.parametrize("kind", ["application/json", STREAM])
@given(
    text=st.lists(st.sampled_from([FIRST, SECOND, " ", "_", "é", "task", FIRST[:-1]])).map("".join),
    cuts=st.lists(st.integers(0, 80)),
)
def test_an_answer_has_the_ids_of_now_however_a_stream_cuts_them(kind: str, text: str, cuts: list[int]) -> None:
    recorded, now = of_task(FIRST, "Rate"), of_task(THIRD, "Rate")
    rules = varying_parts([recorded], [now])
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[start:end] for start, end in pairwise(places)]
    events = tuple(f"event: x\ndata: {json.dumps({'delta': {'text': piece}})}\n\n" for piece in pieces)
    body: Any = events if kind == STREAM else {"delta": [{"text": text}]}
    answer = Playback(Cassette((Exchange(recorded, Answer(200, kind, body)),), rules)).answer(now)
    assert isinstance(answer, Answer)
    expected = re.sub(rf"(?<!\w){FIRST}(?!\w)", THIRD, text)
    if kind == STREAM:
        lines = [event.split("\n")[1] for event in answer.body]
        assert "".join(json.loads(line.removeprefix("data: "))["delta"]["text"] for line in lines) == expected
        assert all(new == old for new, old in zip(answer.body, events, strict=True) if expected == text)
    else:
        assert answer.body == {"delta": [{"text": expected}]}


def test_a_cassette_with_an_unknown_pattern_is_refused() -> None:
    with pytest.raises(AgentevalError, match="`volatile` of this cassette is wrong"):
        parse('{"agenteval_cassette": 1, "volatile": [{"at": "*", "like": "datetime"}]}\n', "c")


def test_what_is_sent_at_times_only_may_vary() -> None:
    one, other = asked("a", seed=1), asked("a")
    volatile = volatile_parts([(one, other)])
    assert equal(one, other, volatile=volatile)
    assert not equal(one, asked("b"), volatile=volatile)


WORDS = ("order", "17", "18", "2026-11-23", "2026-11-24", "05:04", "17:10", "Monday", "é", "7f3a9c01b2", "81bb20cc3d")
IDS = ("req_8fKq02mZpLx1", "req_01hYt77aQwe9", "4d1e2a3b-1111-2222-3333-444455556666")
TEXTS = st.lists(st.sampled_from((*WORDS, *IDS)), max_size=4).map(" ".join)
VARYING = st.recursive(
    TEXTS | st.sampled_from((None, True, False, 1, 2)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("text", "n", "address", "query")), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(pairs=st.lists(st.tuples(VARYING, VARYING), min_size=1, max_size=3))
def test_requests_are_equal_by_what_was_found_to_vary_in_them(pairs: list[tuple[Any, Any]]) -> None:
    asked_twice = [tuple(Question("POST", CHAT, {}, body) for body in pair) for pair in pairs]
    volatile = volatile_parts([(one, other) for one, other in asked_twice])
    for one, other in asked_twice:
        assert equal(one, other, volatile=volatile)


DAY_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%B %d, %Y", "%a, %d %b %Y", "%d %B %Y", "%Y-%m-%dT10:00:00Z")
DAYS = st.dates(date(1999, 1, 2), date(2040, 12, 30))


@given(day=DAYS, other=DAYS, form=st.sampled_from(DAY_FORMS))
def test_only_dates_of_the_day_and_of_those_beside_it_are_taken_for_a_clocks(day: date, other: date, form: str) -> None:
    text = other.strftime(f"as of {form}.")
    kept = without_clock(asked(text), day).body["messages"][0]["content"] == text
    near = {day + timedelta(days=offset) for offset in (-1, 0, 1)}
    read = {other}
    if form in ("%d.%m.%Y", "%m/%d/%y") and other.day <= 12:
        read.add(other.replace(month=other.day, day=other.month))
    assert kept == (not near & read)


@pytest.mark.parametrize(
    "text", ["from 2019-11-26", "from November 26, 2019", "from 26.11.2019", "on 2011-11-26 at 9:00"]
)
def test_a_day_of_another_year_is_no_clocks(text: str) -> None:
    # The 26th of a month of 2026, which a year in two digits is equal to.
    assert without_clock(asked(text), date(2026, 11, 26)) == asked(text)


@pytest.mark.parametrize(
    "fixed", ["Open Monday to Friday.", "The sale ends on {recorded}.", "New prices from {today} on."]
)
@pytest.mark.parametrize("days_ago", [1, 3, 30])
def test_a_request_of_another_day_is_answered_whatever_dates_stay_in_its_prompt(fixed: str, days_ago: int) -> None:
    today = date.today()
    recorded_on = today - timedelta(days=days_ago)
    stays = fixed.format(recorded=recorded_on, today=today)

    def on(day: date) -> Question:
        return asked("hello", system=f"Today is {day:%A, %B %d, %Y}, 10:00. {stays}")

    index = CassetteIndex(Cassette((Exchange(on(recorded_on), said("1")),)), recorded_on=recorded_on)
    assert Playback(index).answer(on(today)) == said("1")
    assert isinstance(Playback(index).answer(asked("bye", system="Today.")), Miss)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [{"role": "developer", "content": [{"type": "text", "text": "{}"}]}]}),
        ("openai/v1/responses", {"instructions": "{}", "input": "hi"}),
        ("openai/v1/responses", {"input": "{}"}),
        ("anthropic/v1/messages", {"system": [{"type": "text", "text": "{}"}], "messages": []}),
        ("gemini/v1beta/models/m:generateContent", {"systemInstruction": {"parts": [{"text": "{}"}]}, "contents": []}),
        ("bedrock/model/m/converse", {"system": [{"text": "{}"}], "messages": []}),
        ("ollama/api/generate", {"prompt": "{}"}),
        ("openai/v1/completions", {"prompt": "{}"}),
    ],
)
def test_a_clock_in_the_prompt_is_told_in_each_protocol(path: str, body: Any) -> None:
    def on(day: date) -> Question:
        text = json.dumps(body).replace("{}", f"Today is {day}. Be kind.")
        return Question("POST", path, {}, json.loads(text))

    today = date.today()
    recorded_on = today - timedelta(days=9)
    index = CassetteIndex(Cassette((Exchange(on(recorded_on), said("1")),)), recorded_on=recorded_on)
    assert Playback(index).answer(on(today)) == said("1")


def test_an_answer_is_one_of_the_same_recorded_run_and_in_its_order() -> None:
    twice = tuple(Exchange(asked("a"), said(f"{name} {n}"), name) for name in ("t#1", "t#2") for n in (1, 2))
    for start, name in enumerate(("t#1", "t#2", "t#1")):
        playback = Playback(Cassette(twice), session="u", start=start)
        assert [playback.answer(asked("a")) for _ in range(3)] == [said(f"{name} {n}") for n in (1, 2, 2)]
    # One that was recorded outside of a suite is a single run, whichever repetition it answers.
    alone = Cassette(tuple(Exchange(asked("a"), said(text)) for text in ("1", "2")))
    assert Playback(alone, session="t#2", start=1).answer(asked("a")) == said("1")


@pytest.mark.parametrize("levels", [200, 201, 600, 900])
def test_a_request_is_kept_and_answered_however_deep_it_is_nested(levels: int) -> None:
    data = b"[" * levels + b"]" * levels
    question = Question("POST", CHAT, {}, received(b'{"messages": ' + data + b"}", "application/json"))
    exchange = KeyRedactor().exchange(Exchange(question, Answer(200, "application/json", received(data, "json"))))
    cassette = parse("".join(lines(Cassette((exchange,)))), "c")
    answer = Playback(cassette).answer(question)
    assert isinstance(answer, Answer)
    assert answer.data() == data
    assert transcript_of(cassette.exchanges).messages == ()


def test_halves_of_characters_tell_requests_apart() -> None:
    matcher = Matcher()
    assert len({matcher.key(asked("hi", f"x{half}")) for half in ("\ud800", "\ud801", "")}) == 3


def test_a_request_that_was_made_again_is_compared_once_with_that_of_the_second_run() -> None:
    recorded = [
        Exchange(asked("a"), said("busy", 429)),
        Exchange(asked("a"), said("1")),
        Exchange(asked("b"), said("2")),
    ]
    playback = OrderedPlayback(recorded)
    assert [playback.answer(asked(text)) for text in ("a", "b")] == [said("1"), said("2")]
    assert isinstance(playback.answer(asked("a")), Miss)
    # What nobody asked again is an answer as any other.
    assert OrderedPlayback(recorded[:1]).answer(asked("a")) == said("busy", 429)


def test_only_what_comes_before_a_models_first_answer_is_a_clocks() -> None:
    today = date.today()
    told = f"on {today}"
    messages = [
        {"role": "user", "content": told},
        {"role": "assistant", "content": told},
        {"role": "tool", "content": told},
    ]
    body = without_clock(body_of(messages), today).body
    assert [message["content"] for message in body["messages"]] == ["on …", told, told]
