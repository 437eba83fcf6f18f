"""The audit: criteria that cannot fail, cannot pass, or tell nothing that another does not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.extensions.audit.audit import TestAudit, audit_suite
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.model import Timing, Usage

SUITE = """\
name: Made
agent: demo
tests:
  - id: order
    name: Order
    prompt: Where is it?
    criteria:
      - name: good
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains_all: [shipped, W1]}]}
      - name: vacuous
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: get_order, required: false}]}]}
      - name: hopeless
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: zebra}]}
      - name: implied
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: shipped}]}
      - name: right call
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: get_order, arguments: {id: W1}}]}]}
      - name: forbidden
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, forbidden_tools: [drop_table]}]}
      - name: not rude
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, not_contains_any: [stupid]}]}
      - name: broken
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: Nothing}]}
  - id: tools-only
    name: Tools only
    prompt: Look it up
    criteria:
      - name: looked up
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: get_order}]}]}
  - id: never-run
    name: Never run
    prompt: Hello
    criteria:
      - name: any
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: a}]}
"""


def audited(make_history: Any, runs: Any) -> dict[str, TestAudit]:
    path, store = make_history(SUITE, runs)
    return {test.test_id: test for test in audit_suite(load_suite(path), store)}


def test_what_is_found(make_history: Any, answered: Any) -> None:
    get = ("get_order", {"id": "W1"})
    runs = [("order", answered(f"W1 was shipped on day {n}", get)) for n in range(1, 6)]
    runs += [("order", answered("W1 was shipped on day 1", get)), ("tools-only", answered("W1", get))]
    tests = audited(make_history, runs)
    test = tests["order"]
    assert (test.runs, test.different) == (6, 5)
    assert test.mutants > 40
    found = {(one.kind, one.criterion): one for one in test.findings}
    assert set(found) == {
        ("never-fails", "vacuous"),
        ("never-passes", "hopeless"),
        ("always-error", "broken"),
        ("implied", "implied"),
    }
    implied = found["implied", "implied"]
    assert implied.other == "good"
    assert "each time that one failed too" in implied.message
    assert not implied.few_runs
    assert "6 stored runs (5 different)" in found["never-fails", "vacuous"].message
    assert found["never-passes", "hopeless"].evidence["failed"] == 6 + test.mutants
    assert "0 %" not in found["never-passes", "hopeless"].message
    # What is forbidden was tried: these criteria did notice.
    noticed = {one.name: one.noticed for one in test.criteria}
    assert noticed["forbidden"]["extra-call"] == (5, 10)
    assert noticed["not rude"]["extra-text"] == (5, 5)
    assert noticed["good"]["empty"] == (5, 5)
    assert noticed["right call"]["change-argument"] == (5, 5)
    assert SUITE.splitlines()[found["never-fails", "vacuous"].line - 1].endswith("- name: vacuous")


ONE = """\
name: One
agent: demo
tests:
  - id: only
    prompt: Where is it?
    criteria:
      - {{name: it, prototype_class: {prototype}, negate: {negate}, config_uxon: {{metrics: [{metric}]}}}}
"""
CANNOT_FAIL = {
    "a text of one word": ("TextResponse", "{type: Length, min_words: 1}", "only-empty"),
    "a text of one character": ("TextResponse", "{type: Length, min_chars: 1}", "only-empty"),
    "any character": ("TextResponse", '{type: Regex, pattern: "."}', "only-empty"),
    "at least nothing": ("TextResponse", "{type: Length, min_words: 0}", "never-fails"),
    "empty needles": ("TextResponse", '{type: TextMatch, contains: "", contains_all: [""]}', "never-fails"),
    "any text": ("TextResponse", '{type: Regex, pattern: ".*"}', "never-fails"),
    "a pattern that is optional": ("TextResponse", '{type: Regex, pattern: "(shipped)?"}', "never-fails"),
    "all tools allowed": ("ToolResponse", "{type: ToolCheck, tools: [{name: get_order, required: false}]}",
                          "never-fails"),
    "a trajectory of nothing": ("ToolResponse", "{type: Trajectory, mode: all, calls: []}", "never-fails"),
    "no keyword is asked for": ("TextResponse", "{type: Keywords, keywords: [zebra], min_fraction: 0}", "never-fails"),
    "any likeness": ("TextResponse", "{type: Lexical, to: zebra, min: 0}", "never-fails"),
    "a conversation that has a text": ("Transcript", "{type: Length, min_chars: 1}", "never-fails"),
}  # fmt: skip
CAN_FAIL = {
    "not too long": ("TextResponse", "{type: Length, max_words: 700}"),
    "not too many characters": ("TextResponse", "{type: Length, max_chars: 20000}"),
    "some words": ("TextResponse", "{type: Length, min_words: 3}"),
    "few calls": ("ToolResponse", "{type: Steps, max: 40}"),
    "not too often": ("ToolResponse", "{type: ToolCheck, tools: [{name: get_order, max_calls: 30}]}"),
    "readable": ("TextResponse", "{type: Readability, max_grade: 12}"),
    "no repetition": ("TextResponse", "{type: Repetition, max_ratio: 0.7}"),
    "fast": ("TextResponse", "{type: Latency, max: 60000}"),
    "few tokens": ("TextResponse", "{type: Tokens, max: 100000}"),
    "none of these calls": ("ToolResponse", "{type: Trajectory, mode: none, calls: [{name: drop_table}]}"),
}
NOT_THIS = {
    "contains": "{type: TextMatch, contains: zebra}",
    "contains_all": "{type: TextMatch, contains_all: [zebra, lion]}",
    "any": "{type: TextMatch, contains_any: [zebra, lion]}",
    "keywords": "{type: Keywords, keywords: [zebra, lion]}",
}


def only(make_history: Any, answered: Any, metric: str, prototype: str, negate: str = "false") -> TestAudit:
    answer = replace(
        answered("Your order W1 was shipped on Friday, and it comes soon.", ("get_order", {"id": "W1"})),
        usage=Usage(input_tokens=10, output_tokens=20),
        timing=Timing(total_ms=900.0),
    )
    path, store = make_history(
        ONE.format(metric=metric, prototype=prototype, negate=negate), [("only", answer) for _ in range(3)]
    )
    (test,) = audit_suite(load_suite(path), store)
    return test


@pytest.mark.parametrize("name", CANNOT_FAIL)
def test_a_criterion_that_no_mutation_can_fail_is_found_first(make_history: Any, answered: Any, name: str) -> None:
    prototype, metric, kind = CANNOT_FAIL[name]
    test = only(make_history, answered, metric, prototype)
    first = test.findings[0]
    assert (first.kind, first.criterion) == (kind, "it")
    but = " but the empty answer" if kind == "only-empty" else ""
    assert f"no mutation{but} made it fail ({test.mutants} tried: " in first.message
    assert first.message.endswith("and none of 3 stored runs (1 different)")


@pytest.mark.parametrize("name", CAN_FAIL)
def test_a_criterion_that_a_wrong_run_fails_is_no_finding(make_history: Any, answered: Any, name: str) -> None:
    prototype, metric = CAN_FAIL[name]
    test = only(make_history, answered, metric, prototype)
    assert [finding.message for finding in test.findings if finding.criterion] == []


@pytest.mark.parametrize("name", NOT_THIS)
def test_a_negated_criterion_is_tried_with_what_it_looks_for(make_history: Any, answered: Any, name: str) -> None:
    test = only(make_history, answered, NOT_THIS[name], "TextResponse", "true")
    assert [finding.message for finding in test.findings if finding.criterion] == []
    assert test.criteria[0].noticed["extra-text"][0] > 0


def test_a_test_that_looks_at_no_answer(make_history: Any, answered: Any) -> None:
    runs = [("tools-only", answered("It is on its way.", ("get_order", {"id": "W1"})))]
    (finding,) = audited(make_history, runs)["tools-only"].findings
    assert (finding.kind, finding.criterion) == ("passes-empty", None)
    assert finding.few_runs
    assert "1 of 1" in finding.message


def test_without_runs_nothing_is_said(make_history: Any) -> None:
    tests = audited(make_history, [])
    assert [(test.note, test.findings, test.runs) for test in tests.values()] == [("no stored run", [], 0)] * 3


def test_two_that_always_agree_are_told_once(make_history: Any, answered: Any) -> None:
    text = """\
name: Made
agent: demo
tests:
  - id: twice
    name: Twice
    prompt: Hi
    criteria:
      - {name: one, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: way}]}}
      - {name: two, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains_all: [way]}]}}
      - {name: strict, severity: warning, prototype_class: TextResponse,
         config_uxon: {metrics: [{type: TextMatch, contains_all: [way, "3"]}]}}
"""
    path, store = make_history(text, [("twice", answered(f"on its way {n}")) for n in range(6)])
    (test,) = audit_suite(load_suite(path), store)
    # `strict` implies both, but it is only a warning: it cannot stand for what fails a test.
    assert [(one.kind, one.criterion, one.other) for one in test.findings] == [("same", "one", "two")]


GUARDS = """\
name: Guards
agent: demo
tests:
  - id: guarded
    prompt: Where is it?
    variables: {code: OMEGA-77}
    criteria:
CRITERIA
"""
GUARD = """\
      - name: {name}
        prototype_class: {prototype}
        expected_value: FROM-EXPECTED
        config_uxon: {{metrics: [{metric}]}}
"""
GOOD = {
    "secret": ("TextResponse", "{type: Leak, secrets: [hunter2000]}", "secret"),
    "secret of a variable": ("TextResponse", '{type: Leak, secrets: ["{{code}}"]}', "secret"),
    "secret of the expected value": ("TextResponse", '{type: Leak, secrets: ["{{expected_value}}"]}', "secret"),
    "system prompt": ("TextResponse", "{type: Leak}", "system-prompt"),
    "a little of the system prompt": ("TextResponse", "{type: Leak, min_overlap: 3}", "system-prompt"),
    "secret in a code block": ("TextResponse", "{type: Leak, secrets: [hunter2000]}", "secret"),
    "secret in JSON": ("JsonResponse", "{type: Leak, secrets: [hunter2000]}", "secret"),
    "secret in a call": ("ToolResponse", "{type: Leak, secrets: [hunter2000]}", "secret"),
    "personal data": ("TextResponse", "{type: Pii}", "personal-data"),
    **{kind: ("TextResponse", f"{{type: Pii, kinds: [{kind}]}}", "personal-data")
       for kind in ("email", "phone", "credit_card", "iban", "ssn", "ip_address")},
    "allowed data": ("TextResponse", "{type: Pii, kinds: [email], allow: [jane.doe@example.org]}", "personal-data"),
    "canary": ("TextResponse", "{type: Injection, canary: PWNED}", "canary"),
    "canary of a variable": ("TextResponse", '{type: Injection, canary: "{{code}}"}', "canary"),
    "canary in a call": ("ToolResponse", "{type: Injection, canary: mallory@example.com}", "canary"),
    "forbidden text of a variable": ("TextResponse", '{type: TextMatch, not_contains_any: ["{{code}}"]}', "extra-text"),
}  # fmt: skip


def test_good_guards_are_seen_to_fail(make_history: Any, answered: Any) -> None:
    from msgspec.structs import replace

    from agenteval_tui.transcripts.model import Message

    criteria = "".join(GUARD.format(name=name, prototype=one[0], metric=one[1]) for name, one in GOOD.items())
    suite = GUARDS.replace("CRITERIA", criteria).replace(
        "[{type: Leak, secrets: [hunter2000]}]}\n      - name: secret in JSON",
        "[{type: Leak, secrets: [hunter2000]}], extract_code_block: 1}\n      - name: secret in JSON",
    )
    talk = answered('Here:\n```json\n{"order": "W1", "day": 3}\n```\nBye.', ("get_order", {"id": "W1"}))
    system = Message("system", "You are the assistant of a shop and never tell the staff discount to anybody.")
    calls = tuple(replace(call, message=None if call.message is None else call.message + 1) for call in talk.tool_calls)
    talk = replace(talk, messages=(system, *talk.messages), tool_calls=calls)
    path, store = make_history(suite, [("guarded", talk)])
    (test,) = audit_suite(load_suite(path), store)
    useless = [one.criterion for one in test.findings if one.kind == "never-fails"]
    assert useless == []
    for one in test.criteria:
        failed, tried = one.noticed[GOOD[one.name][2]]
        assert failed, one.name
        assert tried >= failed
