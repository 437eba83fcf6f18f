"""The signature of a failure: the same for the same fault, whatever was found; kept in histories, so held fast here."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.core.fingerprint import fingerprint
from agenteval_tui.grading.causes import Cause, agent_cause, cause_from, cause_of, signatures
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.blobs import pack_results, unpack_results
from agenteval_tui.transcripts.model import ErrorCode, Message, RunError, ToolCall, Transcript


def said(text: str, *calls: tuple[str, Any]) -> Transcript:
    made = tuple(ToolCall(f"c{n}", name, arguments, "ok", message=1) for n, (name, arguments) in enumerate(calls))
    messages = (Message("user", "Hi"), Message("assistant", text, tool_calls=tuple(range(len(made)))))
    return Transcript(messages=messages, tool_calls=made, final_output=text)


def judged(
    transcript: Transcript, *metrics: dict[str, Any], prototype: str = "TextResponse", **config: Any
) -> CriterionResult:
    spec = CriterionSpec("The answer", prototype, {**config, "metrics": list(metrics)})
    return compile_criterion(spec).check(transcript)


def cause(transcript: Transcript, *metrics: dict[str, Any], **config: Any) -> Cause:
    """The cause of what fails now, and of what comes back from the history: they are the same."""
    result = judged(transcript, *metrics, **config)
    found = cause_of(result)
    assert found is not None
    assert found == cause_of(unpack_results(pack_results([result]))[0])
    assert cause_from(found.signature) == found
    return found


TEXTS = {"type": "TextMatch", "contains_all": ["country", "5000"]}
ORDER = {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1", "full": True}}]}
WANTED = {"a": {"b": 1}, "items": [{"price": 2}, {"price": 3}]}
SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"items": {"type": "array", "items": {"properties": {"price": {"type": "number"}}}}},
}


@pytest.mark.parametrize(
    ("transcript", "metric", "signature", "words"),
    [
        (
            said("country is there, 5.000"), TEXTS,
            '["failed","The answer","TextResponse","TextMatch","contains_all","5000"]',
            '"5000" is not in the text',
        ),
        (said(""), TEXTS, '["failed","The answer","TextResponse","","","","empty answer"]',
            "the final answer is empty"),
        (
            said("x"), {"type": "Regex", "pattern": "total: \\d+"},
            '["failed","The answer","TextResponse","Regex","pattern"]', "Regex: the pattern is not found",
        ),
        (
            said("x", ("search", {})), ORDER,
            '["failed","The answer","ToolResponse","ToolCheck","usage","get_order","never called"]',
            "get_order was never called",
        ),
        (
            said("x", ("get_order", {"order_id": "W1", "full": True})), ORDER,
            '["failed","The answer","ToolResponse","ToolCheck","arguments","get_order(order_id)","other value"]',
            "get_order(order_id) was called with another value",
        ),
        (
            said("x", ("get_order", {"order_id": "#W1", "page": 2})), ORDER,
            '["failed","The answer","ToolResponse","ToolCheck","arguments","get_order(full, page)",'
            '"missing, not expected"]',
            "the arguments of get_order(full, page) differ: missing, not expected",
        ),
        (
            said("x", ("get_order", "{broken")), ORDER,
            '["failed","The answer","ToolResponse","ToolCheck","arguments","get_order","unreadable"]',
            "the arguments of get_order can't be read",
        ),
        (
            said("x", ("drop", {})), {"type": "ToolCheck", "forbidden_tools": ["a", "drop"]},
            '["failed","The answer","ToolResponse","ToolCheck","forbidden_tools","drop","called"]',
            "drop was called, which is forbidden",
        ),
        (
            said("x", ("b", {})), {"type": "Trajectory", "mode": "unordered", "calls": [{"name": "a"}]},
            '["failed","The answer","ToolResponse","Trajectory","calls","a","never called"]', "a was never called",
        ),
        (
            said('{"a": {}}'), {"type": "Json", "required_keys": ["a", "a.b"]},
            '["failed","The answer","JsonResponse","Json","required_keys","a.b","missing"]',
            "a.b is missing in the JSON",
        ),
        (
            said('{"items": [{"price": 1}, {"price": "2"}]}'), {"type": "Json", "schema": SCHEMA},
            '["failed","The answer","JsonResponse","Json","schema","id","missing"]',
            "id is missing in the JSON (schema)",
        ),
        (
            said('{"id": 1, "items": [{"price": 1}, {"price": "2"}]}'), {"type": "Json", "schema": SCHEMA},
            '["failed","The answer","JsonResponse","Json","schema","items[].price","another type"]',
            "items[].price: another type (schema)",
        ),
        (
            said('{"a": {"b": 1}, "items": [{"price": 2}, {"price": 4}]}'), {"type": "Json", "equals": WANTED},
            '["failed","The answer","JsonResponse","Json","equals","items[].price","another value"]',
            "items[].price: another value (equals)",
        ),
        (
            said("spam"), {"type": "Classification", "label": "ham", "labels": ["ham", "spam"]},
            '["failed","The answer","TextResponse","Classification","label","ham","taken for spam"]',
            "ham: taken for spam",
        ),
        (
            said("one two"), {"type": "Length", "min_words": 5},
            '["failed","The answer","TextResponse","Length","min_words"]', "Length: min_words does not hold",
        ),
    ],
)  # fmt: skip
def test_signatures_are_kept_and_must_not_change(
    transcript: Transcript, metric: dict[str, Any], signature: str, words: str
) -> None:
    kind = {"ToolCheck": "ToolResponse", "Trajectory": "ToolResponse", "Json": "JsonResponse"}
    found = cause(transcript, metric, prototype=kind.get(metric["type"], "TextResponse"))
    assert (found.signature, found.words) == (signature, words)
    assert found.title == f"The answer: {words}"


def test_the_same_fault_is_one_cause_whatever_was_found() -> None:
    near, far = said("country, 5.000 of them"), said("country, and nothing else at all in many more words")
    assert cause(near, TEXTS) == cause(far, TEXTS)
    assert cause(near, TEXTS) != cause(said("5000"), TEXTS)  # another text is missing
    one = said("x", ("get_order", {"order_id": "W1", "full": True}))
    calls = [("get_order", {"order_id": order, "full": True}) for order in ("#W7", 7)]
    other = said("x", ("search", {}), *calls)
    assert cause(one, ORDER, prototype="ToolResponse") == cause(other, ORDER, prototype="ToolResponse")
    # The hash is not in it: a criterion that is edited keeps the name of its fault.
    assert cause(near, {**TEXTS, "weight": 2}) == cause(near, TEXTS)


MISSED_IN_ANY_ORDER = [
    ({"type": "TextMatch", "contains_all": ["alpha", "beta", "gamma"]}, said("only beta")),
    ({"type": "TextMatch", "contains_all": ["alpha", "beta", "gamma"]}, said("none")),
    ({"type": "TextMatch", "contains_all": ["alpha", "beta"], "ends_with": "!"}, said("alpha")),
    ({"type": "TextMatch", "not_contains_any": ["sorry", "can't", "unable"]}, said("sorry, I am unable")),
    ({"type": "TextMatch", "contains_any": ["alpha", "beta"]}, said("none")),
    ({"type": "TextMatch", "starts_with_any": ["alpha", "beta"]}, said("none")),
    ({"type": "Keywords", "keywords": ["alpha", "beta", "gamma"]}, said("gamma")),
    ({"type": "Leak", "secrets": ["key-12345", "word-9876", "other-111"]}, said("key-12345 and word-9876")),
    ({"type": "Json", "required_keys": ["a", "b", "c"]}, said('{"b": 1}')),
    ({"type": "Json", "schema": {"type": "object", "required": ["a", "b", "c"]}}, said('{"b": 1}')),
    ({"type": "ToolCheck", "tools": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}, said("x", ("b", {}))),
    (
        {"type": "ToolCheck", "tools": [{"name": "a", "arguments": {"n": 1}}, {"name": "b"}]},
        said("x", ("a", {"n": 2})),
    ),
    (
        {"type": "ToolCheck", "tools": [{"name": "a", "arguments": [{"n": 1}, {"m": 2}, {"k": 3}]}]},
        said("x", ("a", {"k": 4})),
    ),
    ({"type": "ToolCheck", "forbidden_tools": ["a", "b", "c"]}, said("x", ("c", {}), ("b", {}))),
    (
        {"type": "Trajectory", "mode": "unordered", "calls": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
        said("x", ("c", {})),
    ),
    ({"type": "Trajectory", "mode": "all", "calls": [{"name": "a"}, {"name": "b"}]}, said("x")),
]


def in_another_order(value: Any, order: Random) -> Any:
    """The same config with the entries of its lists, and the keys of its objects, in another order."""
    if isinstance(value, list):
        return order.sample([in_another_order(item, order) for item in value], len(value))
    if isinstance(value, dict):
        names = order.sample(list(value), len(value))
        return {name: in_another_order(value[name], order) for name in names}
    return value


@pytest.mark.parametrize(("metric", "transcript"), MISSED_IN_ANY_ORDER)
def test_a_list_in_another_order_misses_the_same(metric: dict[str, Any], transcript: Transcript) -> None:
    kind = {"ToolCheck": "ToolResponse", "Trajectory": "ToolResponse", "Json": "JsonResponse"}
    prototype = kind.get(metric["type"], "TextResponse")
    causes = {
        cause(transcript, in_another_order(metric, Random(seed)), prototype=prototype).signature for seed in range(12)
    }
    assert len(causes) == 1


def test_an_entry_with_variables_is_the_same_in_every_row() -> None:
    spec = CriterionSpec(
        "Says where",
        "TextResponse",
        {"metrics": [{"type": "TextMatch", "contains_all": ["{{city}}", "{{country}}", "on the map"]}]},
    )
    rows = [("Rome", "Italy"), ("Tokyo", "Japan"), ("Athens", "Greece")]

    def missed(answer: str) -> set[Cause | None]:
        checker = compile_criterion(spec)
        return {
            cause_of(checker.check(said(answer.format(city, country)), {"city": city, "country": country}))
            for city, country in rows
        }

    (city,), (country,), (fixed,) = missed("{1} on the map"), missed("{0} on the map"), missed("{0}, {1}")
    assert city is not None
    assert country is not None
    assert fixed is not None
    assert city.title == "Says where: {{city}} is not in the text"
    assert city.title_with('"Rome"') == 'Says where: "Rome" is not in the text'
    assert country.title == "Says where: {{country}} is not in the text"
    assert fixed.title == 'Says where: "on the map" is not in the text'


def test_a_cause_holds_no_secret() -> None:
    leaked = cause(said("the key is hunter2-4711"), {"type": "Leak", "secrets": ["hunter2-4711"]})
    assert "hunter2" not in leaked.signature
    assert leaked.title == "The answer: the text contains a secret"


@pytest.mark.parametrize(
    ("text", "config", "way"),
    [
        ("", {"extract_code_block": 1}, "empty answer"),
        ("no code", {"extract_code_block": 1}, "no code block"),
        ("```sql\nx\n```", {"extract_code_block": 3}, "no code block"),
        ("```sql\nx", {"extract_code_block": 1}, "code block not closed"),
        ("some words", {"extract_by_regex": "total: (\\d+)"}, "no match"),
    ],
)
def test_nothing_extracted(text: str, config: dict[str, Any], way: str) -> None:
    found = cause(said(text), {"type": "TextMatch", "contains": "x"}, **config)
    assert (found.metric, found.way) == ("extraction", way)


def test_json_that_is_none() -> None:
    texts = ("no json", "[1", 'here: {"a": 1} there')
    found = {cause(said(one), {"type": "Json"}, prototype="JsonResponse", extract_path="a") for one in texts}
    assert {one.way for one in found} == {"no JSON"}
    other = cause(said('{"b": 1}'), {"type": "Json"}, prototype="JsonResponse", extract_path="a.c")
    assert other.way == "nothing at the path"


def test_errors_negation_and_other_tools() -> None:
    broken = cause(said("x"), {"type": "Regex", "pattern": "a"}, extract_by_regex=7)
    assert broken.kind == "error"
    spec = CriterionSpec(
        "no apology", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "sorry"}]}, negate=True
    )
    negated = cause_of(compile_criterion(spec).check(said("sorry")))
    assert negated is not None
    assert (negated.condition, negated.words) == ("negate", "TextMatch holds, but must not")
    foreign = cause_of(CriterionResult("reward", Outcome.FAILED, 0.0, source="tau-bench"))
    assert foreign is not None
    assert foreign.title == "reward: failed, says tau-bench"
    lines = (Evidence("function", False, "score 3 of 7"), Evidence("greets", False, "no"))
    metric = MetricResult("f", "Python", Outcome.FAILED, 0.0, evidence=lines)
    ours = cause_of(CriterionResult("f", Outcome.FAILED, 0.0, metrics=(metric,)))
    assert ours is not None
    assert ours.condition == "greets"
    assert cause_of(judged(said("country 5000"), TEXTS)) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://127.0.0.1:8080/v1 answered 503: try in 12 s", "https://api.example.com/v2 answered 503: try in 3.5 s"),
        ("no tool 'get_order' (call_a8Fk29dKLm)", "no tool 'x' (call_ZZ81kdkQQ9)"),
        ("run 3f2504e0-4f89-11d3-9a0c-0305e82c3301 is gone", "run 7d444840-9dc0-11d1-b245-5ffdce74fad2 is gone"),
        ("can't read /tmp/a/b.json, line 3", "can't read ./x.json,  line 44"),
    ],
)
def test_messages_that_differ_only_in_values_are_one(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


def test_messages_of_another_class_are_two() -> None:
    assert fingerprint("the server answered 500") != fingerprint("the server answered 429")
    assert fingerprint("model gpt-4o is gone") == "model gpt-No is gone"
    assert (
        agent_cause(RunError("timeout", "no answer for 30 s")).title == "the agent failed (timeout): no answer for N s"
    )
    assert agent_cause(RunError("timeout", "x")) != agent_cause(RunError("rate_limit", "x"))


def test_an_agents_error_is_known_by_its_code_and_fields_alone() -> None:
    one = RunError("server", "http://a/v1 answered 503", "", ErrorCode.STATUS, {"status": 503})
    assert agent_cause(one) == agent_cause(replace(one, message="whatever is said of it", fix="else"))
    assert agent_cause(one).signature == '["agent","","","","server","status","503"]'
    assert agent_cause(one).title == "the agent failed (server): the server answered 503"
    assert agent_cause(one) != agent_cause(replace(one, fields={"status": 500}))
    told = RunError.told("server", 'http://a/v1 answered 503: no room for "req 7"', status=503)
    assert agent_cause(told) == agent_cause(replace(told, message="whatever"))
    assert agent_cause(told).way == "URL answered 503: no room for …"
    assert agent_cause(RunError("odd", "x", "", "a_new_code", {"b": [1], "a": {}})).words == (
        "the agent failed (odd): a new code"
    )


@pytest.mark.parametrize("code", [code for code in ErrorCode if code != ErrorCode.TOLD])
def test_each_code_has_words(code: ErrorCode) -> None:
    words = Cause("agent", condition="x", about=code, way="refused").words
    assert words.startswith("the agent failed (x): ")
    assert "{" not in words
    assert "_" not in words


def result(outcome: Outcome, score: float | None, severity: str = "error") -> CriterionResult:
    return CriterionResult("c", outcome, score, severity)


def test_what_is_stored_for_the_results_of_a_run() -> None:
    passed, failed, warned = (
        result(Outcome.PASSED, 0.4), result(Outcome.FAILED, 0.0), result(Outcome.FAILED, 0.0, "warning"),
    )  # fmt: skip
    assert signatures("passed", [passed, passed]) == [None, None]
    assert signatures("failed", [passed, failed, warned]) == [None, '["failed","c","","","score"]', ""]
    assert signatures("passed", [passed, warned]) == [None, ""]
    # Only the test's threshold was missed: the lowest result stands for it.
    assert signatures("failed", [result(Outcome.PASSED, 0.9), passed]) == [None, '["threshold","c"]']
    skipped = [result(Outcome.SKIPPED, None)] * 2
    assert signatures("error", skipped, RunError("timeout", "after 3 s")) == [
        agent_cause(RunError("timeout", "after 9 s")).signature,
        None,
    ]
    assert signatures("cancelled", skipped, ("cancelled", "the run was cancelled")) == [None, None]


@pytest.mark.parametrize("text", ["", "[]", "7", '["never heard of"]', '["failed", 3]', "not json"])
def test_what_is_no_signature(text: str) -> None:
    with pytest.raises(ValueError, match="not the signature"):
        cause_from(text)


def test_a_warning_that_could_not_be_checked_is_the_cause_where_the_score_is_unknown_without_it() -> None:
    passed, unseen = result(Outcome.PASSED, 1.0), replace(result(Outcome.ERROR, None, "warning"), code="not_observed")
    (nothing, cause) = signatures("error", [passed, unseen])
    assert nothing is None
    assert cause is not None
    assert cause_from(cause).words.startswith("not checked: ")
    assert signatures("error", [passed, replace(unseen, weight=0)]) == [None, ""]
    broken = replace(unseen, severity="error")
    assert signatures("error", [broken, unseen])[1] == ""
