"""promptfoo's assertions: the same verdicts as promptfoo's own tests expect, or a criterion that asks a person.

The cases are taken out of promptfoo's tests (test/assertions/*.test.ts) and what its code does (src/assertions), by
name. `None`: promptfoo itself gives an error, or nothing here says the same; a person is asked, with what was asked.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval_tui.extensions.promptfoo.asserts import as_bare, comma_separated, criteria_of
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.sentences import verdict_sentence
from agenteval_tui.runs.criteria import specs_of
from agenteval_tui.suites.model import Criterion
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Timing, Transcript, Usage
from tests.grading.test_literal_arguments import MONGO, check_literal

QUOTED = '"hello, dear world", "goodbye, universe", simple'
ESCAPED = r'"hello\"world,test", "another,test"'
PLACE = {
    "required": ["latitude", "longitude"], "type": "object",
    "properties": {"latitude": {"type": "number", "minimum": -90, "maximum": 90}, "longitude": {"type": "number"}},
}  # fmt: skip
FENCED = 'here is the answer\n\n```{%s, "longitude": -1}```'
INSIDE = 'this is some other stuff \n\n {"key": "value", "key2": {"key3": [1, 2]}} \n\n blah blah'

TEXT_CASES: list[tuple[str, Any, str, bool | None]] = [
    # contains.test.ts
    ("contains", "world", "hello world", True),
    ("contains", "universe", "hello world", False),
    ("not-contains", "universe", "hello world", True),
    ("not-contains", "world", "hello world", False),
    ("contains", 0, "There are 0 errors", True),
    ("contains", 0, "no digits here", False),
    ("contains", 1.0, "1 error", True),
    ("contains", 0.5, "0.5", True),
    ("contains", None, "x", None),
    ("contains", "", "x", None),
    ("contains", ["a"], "a", None),
    ("contains", True, "true", None),
    ("icontains", "WORLD", "hello world", True),
    ("icontains", "WoRlD", "Hello WORLD", True),
    ("not-icontains", "WORLD", "hello world", False),
    ("contains-any", ["world", "universe"], "hello world", True),
    ("contains-any", "world,universe", "hello world", True),
    ("contains-any", '"hello, world",universe', "hello, world", True),
    ("contains-any", '"hello, world",universe', "hello", False),
    ("contains-any", QUOTED, "hello, dear world is here", True),
    ("contains-any", QUOTED, "hello", False),
    ("contains-any", QUOTED, "so simple", True),
    ("contains-any", '"",', "", True),
    ("contains-any", '""', "test", True),
    ("not-contains-any", '""', "test", False),
    ("contains-any", '"hello, world"\t,foo', "zzz", False),
    ("contains-any", '"hello, world"\t,\t"foo"', "foo", True),
    ("contains-any", '"a""b",c', 'a"b', True),
    ("contains-any", '"a""b",c', "b", False),
    ("contains-any", ESCAPED, 'hello"world,test', True),
    ("contains-any", ESCAPED, "another,test", True),
    ("contains-any", ESCAPED, "something completely different", False),
    ("contains-any", r'"test\test"', r"test\test", True),
    ("contains-any", r'"test\\test"', r"test\test", True),
    ("contains-any", '"test', "test", None),
    ("contains-any", '"hello"world', "hello world", None),
    ("contains-any", '"hello" world', "hello world", None),
    ("contains-any", "a,,b", "zzz", False),
    ("contains-any", [], "x", False),
    ("contains-any", [1, True], "true", True),
    ("contains-any", {"a": 1}, "x", None),
    ("not-contains-any", "a,b", "zzz", True),
    ("icontains-any", ESCAPED, "ANOTHER,TEST", True),
    ("icontains-any", '"hello, world",universe', "HELLO, WORLD", True),
    ("icontains-any", "a.c,x", "ABC", False),  # no pattern
    ("not-icontains-any", "a,b", "B", False),
    ("contains-all", ["hello", "world"], "hello world", True),
    ("contains-all", "hello, world", "hello world", True),
    ("contains-all", '"hello, world",!', "hello, world!", True),
    ("contains-all", '"hello, world",!', "hello world!", False),
    ("contains-all", ["hello", "universe"], "hello world", False),
    ("contains-all", "", "x", None),
    ("contains-all", [""], "x", True),
    ("contains-all", [], "x", True),
    ("not-contains-all", ["hello", "universe"], "hello world", True),
    ("icontains-all", "HELLO,World", "hello world", True),
    ("icontains-all", '"HELLO, World",!', "hello, world", False),
    ("not-icontains-all", "HELLO,x", "hello world", True),
    # equals.test.ts
    ("equals", "hello world", "hello world", True),
    ("equals", "goodbye world", "hello world", False),
    ("not-equals", "hello world", "hello world", False),
    ("not-equals", "goodbye world", "hello world", True),
    ("equals", "hello world", "hello world\n", False),
    ("equals", 5, "5", True),
    ("equals", 5.0, "5", True),
    ("equals", True, "true", True),
    ("equals", "", "", True),
    ("equals", {"foo": "bar"}, '{"foo":"bar"}', True),
    ("equals", {"foo": "bar"}, '{"foo":"baz"}', False),
    ("equals", {"foo": "bar"}, "hello world", False),
    ("not-equals", {"foo": "bar"}, "hello world", True),
    ("not-equals", {"foo": "bar"}, '{"foo":"bar"}', False),
    ("equals", [1, {"a": None}], '[1, {"a": null}]', True),
    # startsWith.ts, endsWith.ts
    ("starts-with", "Yes", "Yes, it is", True),
    ("starts-with", "yes", "Yes, it is", False),
    ("not-starts-with", "No", "Yes", True),
    ("starts-with", 1, "1", None),
    ("starts-with", "", "1", None),
    ("ends-with", "is", "Yes, it is", True),
    ("not-ends-with", "is", "Yes, it is", False),
    # regex.test.ts
    ("regex", r"\d{3}-\d{2}-\d{4}", "This output contains 123-45-6789", True),
    ("regex", r"\d{3}-\d{2}-\d{4}", "This output does not contain the pattern", False),
    ("not-regex", r"\d{3}-\d{2}-\d{4}", "This output does not contain the pattern", True),
    ("not-regex", r"\d{3}-\d{2}-\d{4}", "This output contains 123-45-6789", False),
    ("regex", "/api/", "GET /api/users", True),  # no delimiters
    ("regex", "/api/", "GET api users", False),
    ("regex", "/API/i", "GET /api/", False),
    ("regex", "/API/i", "GET /API/in", True),
    ("regex", "#x#", "x", False),
    ("regex", "~x~", "a ~x~ b", True),
    ("regex", "(a|b)", "b", True),
    ("regex", "(a)(b)", "ab", True),
    ("regex", "{a}", "{a}", True),
    ("regex", "<b>", "b", False),
    ("regex", r"\/v1\/", "a /v1/ b", True),
    ("regex", "^done$", "done", True),
    ("regex", "^done$", "done\n", False),  # `$` is the very end
    ("regex", r"^\d+$", "٣", False),  # digits are those of ASCII
    ("regex", "[$]5", "$5", True),
    ("regex", "a.c", "a\nc", False),
    ("regex", "yes", "YES", False),
    ("regex", "(?<n>a)b", "ab", True),
    ("regex", "(?i)yes", "YES", None),  # no pattern in JavaScript
    ("regex", "(?P<n>a)", "a", None),
    ("regex", "[a", "a", None),
    ("regex", "", "a", None),
    ("regex", 5, "5", None),
    # is-json.test.ts
    ("is-json", None, '{"a": 1}', True),
    ("is-json", None, "[1]", True),
    ("is-json", None, "123", True),
    ("is-json", None, "not json", False),
    ("is-json", None, '```json\n{"a": 1}\n```', False),
    ("not-is-json", None, "not json", True),
    ("not-is-json", None, '{"a": 1}', False),
    ("is-json", PLACE, '{"latitude": 80.1, "longitude": -1}', True),
    ("is-json", PLACE, '{"latitude": "high", "longitude": -1}', False),
    ("is-json", "required: [latitude]\ntype: object", '{"latitude": 1}', True),
    ("is-json", "required: [latitude]\ntype: object", '{"a": 1}', False),
    ("not-is-json", PLACE, "not json", True),
    ("not-is-json", PLACE, '{"latitude": 80.1, "longitude": -1}', False),
    ("is-json", True, "{}", True),
    ("is-json", False, "{}", False),
    ("is-json", "just words", "{}", None),
    ("is-json", {"type": "nothing"}, "{}", None),
    ("is-json", {"items": [{"type": "number"}, {"type": "string"}]}, '[1, "a"]', True),  # draft 7
    ("is-json", {"items": [{"type": "number"}, {"type": "string"}]}, '["a", 1]', False),
    # contains-json.test.ts
    ("contains-json", None, INSIDE, True),
    ("contains-json", None, f"{INSIDE} and {INSIDE}", True),
    ("contains-json", None, "Not valid JSON", False),
    ("contains-json", None, "[1, 2]", False),
    ("contains-json", None, '[{"a": 1}]', True),
    ("contains-json", None, '{"a": 1}', True),
    ("not-contains-json", None, "Not valid JSON", True),
    ("not-contains-json", None, INSIDE, False),
    ("contains-json", PLACE, FENCED % '"latitude": 80.123', True),
    ("contains-json", PLACE, FENCED % '"latitude": "medium"', False),
    ("contains-json", PLACE, 'first {"a": 1}, then {"latitude": 1, "longitude": 2}', True),
    ("contains-json", PLACE, 'first {"a": 1}, then {"b": 1}', False),
    ("not-contains-json", PLACE, 'first {"a": 1}, then {"b": 1}', True),
    ("not-contains-json", PLACE, 'first {"a": 1}, then {"latitude": 1, "longitude": 2}', False),
    ("contains-json", PLACE, "no JSON", False),
    ("contains-json", json.dumps(PLACE), FENCED % '"latitude": 1', True),
    ("contains-json", 5, "{}", None),
    # wordCount.test.ts: words stand between white space
    ("word-count", 3, "one two three", True),
    ("word-count", "3", " one  two\nthree ", True),
    ("word-count", 3, "well-known don't e.g.", True),
    ("word-count", 2, "a . b", False),
    ("word-count", 0, "  ", True),
    ("word-count", {"min": 2, "max": 3}, "a b c", True),
    ("word-count", {"min": 2, "max": 3}, "a b c d", False),
    ("word-count", {"min": 2}, "a", False),
    ("word-count", {"max": 2}, "a b", True),
    ("word-count", {"max": 2}, "a b c", False),
    ("not-word-count", 3, "a b c", False),
    ("not-word-count", {"min": 2, "max": 3}, "a", True),
    ("word-count", {"min": 3, "max": 2}, "a", None),
    ("word-count", {}, "a", None),
    ("word-count", "many", "a", None),
    # What nothing here says
    ("javascript", "output.length > 3", "abcd", None),
    ("python", "len(output) > 3", "abcd", None),
    ("is-valid-openai-tools-call", None, "x", None),
    ("is-refusal", None, "I can't", None),
    ("is-sql", None, "select 1", None),
    ("is-xml", None, "<a/>", None),
    ("levenshtein", "abc", "abd", None),
    ("rouge-n", "abc", "abd", None),
    ("finish-reason", "stop", "abd", None),
    ("select-best", "the shortest", "a", None),
    ("something-new", {"a": 1}, "a", None),
    ("equals", "file://expected.txt", "a", None),
    ("equals", "package:x:y", "a", None),
]  # fmt: skip


def transcript_of(answer: str, *calls: tuple[str, Any]) -> Transcript:
    made = [{"id": f"c{n}", "function": {"name": name, "arguments": given}} for n, (name, given) in enumerate(calls)]
    asked: list[dict[str, Any]] = [{"role": "user", "content": "q"}]
    if made:
        asked.append({"role": "assistant", "content": "", "tool_calls": made})
    return from_openai_messages([*asked, {"role": "assistant", "content": answer}])


def verdict_of(assertions: list[Any], transcript: Transcript, threshold: float | None = None) -> bool | None:
    """What our criteria say: passed, failed; None: a person is asked."""
    made = [Criterion.model_validate(one) for one in criteria_of(assertions, threshold=threshold)]
    verdict = grade(transcript, specs_of(made), {}, threshold)
    if str(verdict.outcome) == "needs_review":
        return None
    assert str(verdict.outcome) in ("passed", "failed"), verdict_sentence(verdict)
    return str(verdict.outcome) == "passed"


@pytest.mark.parametrize(("kind", "value", "output", "passes"), TEXT_CASES)
def test_verdicts_on_an_answer(kind: str, value: Any, output: str, passes: bool | None) -> None:
    assertion = {"type": kind, **({"value": value} if value is not None else {})}
    assert verdict_of([assertion], transcript_of(output)) is passes
    if passes is None:
        (asked,) = criteria_of([assertion])
        assert kind in asked["description"]
        assert value is None or plain(value) in asked["description"]


def plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:100]


ORDERS = ("search_orders", {"order_id": "123", "include_history": False})
REPLY = ("compose_reply", {"tone": "friendly", "citations": ["doc_1", "doc_2"]})
CALLS = (ORDERS, ("search_orders", {"order_id": "7"}), REPLY)

TOOL_CASES: list[tuple[str, Any, tuple[tuple[str, Any], ...], bool | None]] = [
    # toolCallF1.test.ts
    ("tool-call-f1", ["get_weather", "book_flight"], (("get_weather", {}), ("book_flight", {})), True),
    ("tool-call-f1", "book_flight, get_weather", (("get_weather", {}), ("book_flight", {"a": 1})), True),
    ("tool-call-f1", ["get_weather"], (("get_weather", {}), ("get_weather", {"again": "\n\nToolname: x\n"})), True),
    ("tool-call-f1", ["get_weather", "book_flight"], (("search_web", {}),), False),
    ("tool-call-f1", ["get_weather"], (("get_weather", {}), ("extra_tool", {})), False),
    ("tool-call-f1", ["get_weather"], (("get_weather_now", {}), ("get_weather", {})), False),
    ("tool-call-f1", ["get_weather", "book_flight"], (("get_weather", {}),), False),
    ("tool-call-f1", ["get_weather"], (), False),
    ("not-tool-call-f1", ["get_weather"], (("search_web", {}),), True),
    ("tool-call-f1", [], (), None),
    ("tool-call-f1", None, (), None),
    # trajectory.test.ts
    ("trajectory:tool-used", "search_orders", CALLS, True),
    ("trajectory:tool-used", "SEARCH_orders", CALLS, True),
    ("trajectory:tool-used", ["search_orders", "compose_reply"], CALLS, True),
    ("trajectory:tool-used", ["search_orders", "delete_order"], CALLS, False),
    ("not-trajectory:tool-used", ["search_orders", "delete_order"], CALLS, False),  # none of them may be used
    ("not-trajectory:tool-used", ["delete_order"], CALLS, True),
    ("trajectory:tool-used", {"name": "search_orders", "min": 2}, CALLS, True),
    ("trajectory:tool-used", {"name": "search_orders", "min": 3}, CALLS, False),
    ("trajectory:tool-used", {"name": "search_orders", "max": 1}, CALLS, False),
    ("not-trajectory:tool-used", {"name": "search_orders", "min": 3}, CALLS, True),
    ("trajectory:tool-used", "search_*", CALLS, None),
    ("trajectory:tool-used", {"pattern": "search_*"}, CALLS, None),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"order_id": "123"}}, CALLS, True),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"order_id": "7"}}, CALLS, True),  # any call
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"order_id": "999"}}, CALLS, False),
    ("trajectory:tool-args-match", {"name": "missing_tool", "args": {"order_id": "123"}}, CALLS, False),
    ("trajectory:tool-args-match", {"name": "compose_reply", "args": {"citations": ["doc_1", "doc_2"]}}, CALLS, True),
    ("trajectory:tool-args-match", {"name": "compose_reply", "args": {"citations": ["doc_1"]}}, CALLS, False),
    ("trajectory:tool-args-match", {"name": "compose_reply", "arguments": REPLY[1], "mode": "exact"}, CALLS, True),
    ("trajectory:tool-args-match", {"name": "compose_reply", "args": {"tone": "friendly"}, "mode": "exact"}, CALLS,
     False),
    ("not-trajectory:tool-args-match", {"name": "search_orders", "args": {"order_id": "123"}}, CALLS, False),
    ("not-trajectory:tool-args-match", {"name": "missing_tool", "args": {"order_id": "123"}}, CALLS, True),
    ("trajectory:tool-args-match", {"name": "search_orders"}, CALLS, None),
    ("trajectory:tool-args-match", {"name": "search_orders", "mode": "excat", "args": {}}, CALLS, None),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {}, "ignore": "a"}, CALLS, None),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"a": {"b": 1}}}, CALLS, None),
    ("trajectory:tool-args-match", {"name": "search_orders", "args": {"$any": True}}, CALLS, False),
    ("trajectory:tool-args-match", "search_orders", CALLS, None),
    ("trajectory:tool-sequence", ["search_orders", "compose_reply"], CALLS, None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "calls", "passes"), TOOL_CASES)
def test_verdicts_on_tool_calls(kind: str, value: Any, calls: tuple[Any, ...], passes: bool | None) -> None:
    assert verdict_of([{"type": kind, "value": value}], transcript_of("Done.", *calls)) is passes


@pytest.mark.parametrize(
    ("kind", "threshold", "passes"),
    [("latency", 100, True), ("latency", 99, False), ("not-latency", 99, True), ("not-latency", 100, False),
     ("latency", None, None), ("cost", 0.5, True), ("cost", 0.1, False), ("not-cost", 0.1, True)],
)  # fmt: skip
def test_times_and_costs(kind: str, threshold: float | None, passes: bool | None) -> None:
    from msgspec.structs import replace

    transcript = replace(transcript_of("x"), timing=Timing(total_ms=100.0), usage=Usage(cost=0.5))
    given = {} if threshold is None else {"threshold": threshold}
    assert verdict_of([{"type": kind, **given}], transcript) is passes


YES, NO = {"type": "contains", "value": "a"}, {"type": "contains", "value": "zzz"}

SETS: list[tuple[list[dict[str, Any]], float | None, bool | None]] = [
    # assertionsResult.test.ts, index.test.ts
    ([YES, NO], None, False),
    ([YES, NO], 0.5, True),  # with a threshold only the mean counts
    ([YES, NO], 0.6, False),
    ([YES, NO], 0.0, True),
    ([{**YES, "weight": 3}, NO], 0.75, True),
    ([{**YES, "weight": 3}, NO], 0.76, False),
    ([YES, {**NO, "weight": 0}], None, True),  # never fails
    ([YES, {**NO, "weight": 0}], 1.0, True),  # and is not in the mean
    ([{"type": "assert-set", "assert": [YES, NO]}], None, False),
    ([{"type": "assert-set", "assert": [YES, YES]}], None, True),
    ([{"type": "assert-set", "threshold": 0.5, "assert": [YES, NO]}], None, True),
    ([{"type": "assert-set", "threshold": 0.6, "assert": [YES, NO]}], None, False),
    ([{"type": "assert-set", "threshold": 0.7, "assert": [{**YES, "weight": 3}, NO]}], None, True),
    ([{"type": "assert-set", "threshold": 0.5, "assert": [YES, NO]}, NO], None, False),
    ([{"type": "assert-set", "assert": [YES, NO, NO]}, YES], 0.66, True),  # (1/3 + 1) / 2
    ([{"type": "assert-set", "assert": [YES, NO, NO]}, YES], 0.67, False),
    ([{"type": "assert-set", "weight": 3, "assert": [NO]}, YES], 0.25, True),
    ([{"type": "assert-set", "threshold": 0.5, "assert": [YES, {"type": "javascript", "value": "x"}]}], None, None),
    ([{**NO, "transform": "output.trim()"}], None, None),
    (["contains: a"], None, None),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("assertions", "threshold", "passes"), SETS)
def test_weights_sets_and_thresholds(assertions: list[Any], threshold: float | None, passes: bool | None) -> None:
    assert verdict_of(assertions, transcript_of("a"), threshold) is passes


def test_lists_and_patterns_as_promptfoo_reads_them() -> None:
    assert comma_separated(QUOTED) == ["hello, dear world", "goodbye, universe", "simple"]
    assert comma_separated('a, "b"",c" , ,d') == ["a", 'b",c', "d"]
    assert comma_separated('"a') is None
    assert as_bare("[^]x") is None
    assert as_bare("yes|no") == "yes|no"


def test_arguments_whose_keys_begin_with_a_dollar_are_values() -> None:
    expected = {"name": "query", "args": {"q": MONGO}, "mode": "exact"}
    check_literal(criteria_of([{"type": "trajectory:tool-args-match", "value": expected}]))
