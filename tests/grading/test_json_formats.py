"""The formats and patterns of JSON Schema, the time limits, and what is not checked."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.ecma_regex import compile_ecma
from agenteval_tui.grading.json_formats import FORMATS
from agenteval_tui.grading.metrics import json_schema
from agenteval_tui.grading.metrics.json_schema import BadSchemaError, Schema
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript

VALID: dict[str, list[str]] = {
    "date": ["2024-02-29", "0000-02-29", "9999-12-31"],
    "time": ["08:30:06Z", "23:59:60Z", "08:30:06.283185z", "01:29:60+01:30", "15:59:60-08:00", "08:30:06-23:59"],
    "date-time": ["1963-06-19T08:30:06.283185Z", "1998-12-31t23:59:60z", "1990-12-31T15:59:59+08:00"],
    "duration": ["P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT36H", "P1DT12H", "P2W", "P1Y2M3DT4H5M6S"],
    "email": ["joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com', "joe@[127.0.0.1]",
              "joe@[IPv6:::1]", "a+b@x.y"],
    "idn-email": ["실례@실례.테스트", "joe@example.com", "user@cafe\u0301.com"],
    "hostname": ["www.example.com", "xn--4gbwdl.xn--wgbh1c", "a", "1host", "host-name", "a" * 63],
    "idn-hostname": ["실례.테스트", "example.com", "xn--ihqwcrb4cv8a8dqg056pqjye"],
    "ipv4": ["192.168.0.1", "0.0.0.0", "255.255.255.255"],
    "ipv6": ["::1", "::abef", "1:2:3:4:5:6:7:8", "::ffff:192.168.0.1"],
    "uri": ["http://foo.bar/?baz=qux#quux", "urn:oasis:names:specification:docbook:dtd:xml:4.1.2", "mailto:a@b.c",
            "ldap://[2001:db8::7]/c=GB?objectClass?one", "tel:+1-816-555-1212", "http://a:80", "file:///etc/x"],
    "uri-reference": ["/abc", "abc", "#fragment", "//foo.bar/?baz=qux#quux", "http://foo.bar", "", "?q", "a/b:c"],
    "iri": ["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://[2001:db8::1]/", "urn:ä:b"],
    "iri-reference": ["//ƒøø.ßår/?∂éœ=πîx#πîüx", "/âππ", "âππ", "#ƒrägmênt"],
    "uuid": ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"],
    "uri-template": ["http://example.com/dictionary/{term:1}/{term}", "{+path,x}/here{?a*}", "", "{%41}", "a'b"],
    "json-pointer": ["", "/foo/bar~0/baz~1/%a", "/", "/a~0b", "/ "],
    "relative-json-pointer": ["1", "0/foo/bar", "2#", "0+1", "0-2/x", "100"],
    "regex": ["([abc])+\\s+$", "\\p{L}+", "(?<year>\\d{4})\\k<year>", "[^\\p{Lu}\\d-]", "\\u{1F432}", "a{2,}?", ""],
}  # fmt: skip
INVALID: dict[str, list[str]] = {
    "date": ["2023-02-29", "1963-06-1", "06/19/1963", "2013-350", "20230328", "2023-W13-2", "1963-06-1৪", "x\n",
             "tomorrow", ""],
    "time": ["08:30:06", "24:00:00Z", "00:60:00Z", "22:59:60Z", "08:30:06 PST", "01:01:01,1111Z", "12:00:00.Z",
             "08:30:06+24:00", "08:30:06Z\n", "১2:00:00Z", "8:30:06Z"],
    "date-time": ["tomorrow maybe", "1963-06-19 08:30:06Z", "1998-12-31T23:58:60Z", "1990-02-31T15:59:59Z",
                  "06/19/1963 08:30:06 PST", "2013-350T01:01:01", "1963-06-19T08:30:06Z\n", "1963-06-19"],
    "duration": ["PT1D", "4DT12H30M5S", "P", "P1YT", "P1D2H", "P2S", "P1Y2W", "PT0.5S", "-P1D", "P1Y2D", "PT1H2S",
                 "P২Y", "p1y", ""],
    "email": ["@", "2962", "@example.com", ".a@example.com", "a.@example.com", "a..b@example.com", "a b@example.com",
              "joe@inva=lid.com", "joe@[127.0.0.300]", "a@b@c", "a@", "joe@example.com\n", "ä@example.com",
              "A <a@example.com>", "a@b, c@d"],
    "idn-email": ["2962", "@", "실례@", "a..b@실례.테스트"],
    "hostname": ["-bad", "bad-", "a_b", "example.", ".", "", "a" * 64, "ex\u200cample.com", "xn--X", "a..b",
                 "www.\ufb00.com", "hostnam৪", "example.com\n", "ab--cd"],
    "idn-hostname": ["〮실례.테스트", "example.", "", ".", "-x", "a\u00b7l", "0a.\u05d0"],
    "ipv4": ["127.0.0.0.1", "256.1.1.1", "127.0", "0x7f000001", "2130706433", "087.10.0.1", "1২7.0.0.1", "1.2.3.4\n"],
    "ipv6": ["12345::", "::abef::", "1:2", "::1%eth0", "fe80::/64", " ::1", "1:2:3:4:5:6:7:৪", "::192.168.0.256"],
    "uri": ["//foo.bar", "/abc", "\\\\WIN\\x", "abc", "http:// x", "http://example.org/foobar\"", "ht^tp:x", ":// no",
            "http://example.org/foobar\\.txt", "bar,baz:foo", "http://[::ffff:01.2.3.4]", "http://a:b", "http://é.com",
            "http://x/%zz", "http://x\n"],
    "uri-reference": ["\\\\WIN\\share", "#frag\\ment", "a:b:\\", "http://[x]", "1a:b", "/é"],
    "iri": ["//ƒøø.ßår", "âππ", "\\\\WIN", "http://2001:0db8:85a3::7334", "http://x y"],
    "iri-reference": ["\\\\WIN\\x", "#ƒräg\\mênt"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380", "not-a-uuid",
             "2eb8aa08-aa98-11ea-b4aa-73b441d1_380", "২eb8aa08-aa98-11ea-b4aa-73b441d16380"],
    "uri-template": ["http://example.com/{term", "{}", "{a,}", "{v:0}", "{v:10000}", "a b", "{a..b}", "{var=x}", "}"],
    "json-pointer": ["foo", "/foo~", "/~2", "#/a", "a/b", "/~0~"],
    "relative-json-pointer": ["/foo", "-1/x", "01", "0##", "", "+1/x", "1a", "١/foo"],
    "regex": ["^(abc]", "\\a", "\\Z", "(?P<n>x)", "(?i)x", "a**", "*a", "a++", "(?#c)", "[z-a]", "\\p{Bogus}",
              "\\u{110000}", "(?>a)", "\\pL", "[a", "(a"],
}  # fmt: skip


@pytest.mark.parametrize("name", list(VALID))
def test_formats(name: str) -> None:
    schema = Schema({"format": name})
    for text in VALID[name]:
        assert schema.fits(text), text
    for text in INVALID[name]:
        assert not schema.fits(text), text
        assert schema.errors(text)
    for other in (None, 1, 2.5, True, [], {}):
        assert schema.fits(other)


def test_every_format_of_the_draft_has_cases() -> None:
    assert set(VALID) == set(INVALID) == set(FORMATS) - {"host-name", "ip-address"}


@given(st.text(max_size=30))
def test_formats_never_raise(text: str) -> None:
    for holds in FORMATS.values():
        holds(text)


def test_a_verdict_does_not_depend_on_what_else_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("rfc3339_validator", "rfc3987", "rfc3987_syntax", "rfc3986_validator", "fqdn", "jsonpointer",
                    "uri_template", "isoduration", "webcolors"):  # fmt: skip
        monkeypatch.setitem(sys.modules, package, None)
    for name in VALID:
        assert Schema({"format": name}).fits(VALID[name][0])
        assert not Schema({"format": name}).fits(INVALID[name][0])


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("^\\p{L}+$", ["π", "Hello"], ["1", "", "a b"]),
        ("^\\p{Script=Greek}$", ["π"], ["a"]),
        ("^\\P{Lu}$", ["a"], ["Ä"]),
        ("^[\\p{L}\\d_-]+$", ["ä1_-"], ["a b"]),
        ("^\\d$", ["1"], ["١"]),
        ("^\\w$", ["a", "_"], ["é"]),
        ("^\\W$", ["é"], ["a"]),
        ("^\\s$", ["\ufeff", "\u2029", "\u00a0", "\t"], ["\u180e", "\x1c"]),
        ("^[\\S]$", ["x"], ["\u2003"]),
        ("^a$", ["a"], ["a\n"]),
        ("^.$", ["x", "\U0001f432"], ["\n", "\u2028"]),
        ("^\\cC$", ["\x03"], ["\\cC"]),
        ("^\\u{1F432}$", ["\U0001f432"], ["u"]),
        ("^\\uD83D\\uDC32$", ["\U0001f432"], []),
        ("^(?<y>\\d)\\k<y>$", ["11"], ["12"]),
        ("^(a)\\1$", ["aa"], ["ab"]),
        ("^[^]$", ["\n"], []),
        ("[]", [], ["", "x"]),
        ("^[[]&&[a-z]$", ["[&&q"], ["a"]),
        ("^{}$", ["{}"], []),
        ("\\bcat\\b", ["a cat", "écaté"], ["cats"]),
        ("^\\$\\.\\/\\-$", ["$./-"], []),
    ],
)
def test_patterns_are_those_of_ecma(pattern: str, fits: list[str], fails: list[str]) -> None:
    schema = Schema({"pattern": pattern})
    names = Schema({"patternProperties": {pattern: False}})
    closed = Schema({"patternProperties": {pattern: True}, "additionalProperties": False})
    later = Schema({"allOf": [{"patternProperties": {pattern: True}}], "unevaluatedProperties": False})
    for text, good in [*((one, True) for one in fits), *((one, False) for one in fails)]:
        assert schema.fits(text) is good, text
        assert names.fits({text: 1}) is not good, text
        assert closed.fits({text: 1}) is good, text
        assert later.fits({text: 1}) is good, text


@given(st.text(alphabet="ab\\[](){}^$.*+?|-0dDwWsSbBpuxck<>=!:,L1", max_size=12))
def test_reading_a_pattern_never_breaks(pattern: str) -> None:
    try:
        compile_ecma(pattern).search("ab0", timeout=1)
    except (ValueError, TimeoutError):
        pass


def unevaluated_by_reference() -> dict[str, Any]:
    return {
        "$defs": {"names": {"patternProperties": {"^\\p{Lu}": True}}},
        "$ref": "#/$defs/names",
        "dependentSchemas": {"x": {"properties": {"y": True}}},
        "if": {"required": ["k"]},
        "then": {"properties": {"k": True}},
        "unevaluatedProperties": {"type": "integer"},
    }


@pytest.mark.parametrize(
    ("data", "fits"),
    [({"Ä": "t"}, True), ({"ä": "t"}, False), ({"ä": 1}, True), ({"x": 1, "y": "t"}, True), ({"y": "t"}, False),
     ({"k": "t"}, True)],
)  # fmt: skip
def test_unevaluated_properties(data: Any, fits: bool) -> None:
    assert Schema(unevaluated_by_reference()).fits(data) is fits


# What is not checked


UNCHECKED: list[dict[str, Any]] = [
    {"format": "datetime"},
    {"format": "int64"},
    {"properties": {"at": {"format": "date_time"}}},
    {"$defs": {"x": {"items": {"format": "phone"}}}},
    {"anyOf": [{"not": {"format": "Date"}}]},
    {"$schema": "https://example.com/my-dialect"},
    {"$vocabulary": {"https://example.com/vocab": True}},
]


def says(answer: str) -> Transcript:
    return Transcript((Message("user", "?"), Message("assistant", answer)), final_output=answer)


def criterion(schema: Any, **more: Any) -> CriterionSpec:
    return CriterionSpec("c", "JsonResponse", {"metrics": [{"type": "Json", "schema": schema}]}, **more)


@pytest.mark.parametrize("schema", UNCHECKED, ids=json.dumps)
def test_what_is_not_checked_is_an_error_and_validate_says_so(schema: dict[str, Any]) -> None:
    found = diagnose(json.dumps({"metrics": [{"type": "Json", "schema": schema}]}), "JsonResponse")
    assert [one.severity for one in found if "not checked" in one.message or "not known" in one.message] == ["error"]
    for answer in ('{"at": "tomorrow"}', '"x"', "[]"):
        for negate in (False, True):
            checker = compile_criterion(criterion(schema, negate=negate))
            assert checker.check(says(answer)).outcome is Outcome.ERROR


def test_a_format_in_a_part_that_only_a_reference_reaches_is_an_error_too() -> None:
    schema = {"somewhere": {"format": "phone"}, "$ref": "#/somewhere"}
    result = compile_criterion(criterion(schema)).check(says('"x"'))
    assert (result.outcome, "phone" in criterion_sentence(result)) == (Outcome.ERROR, True)
    known = {"properties": {"format": {"const": "phone"}}, "enum": [{"format": "phone"}]}
    assert Schema(known).fits({"format": "phone"})


def test_annotations_are_said_to_check_nothing() -> None:
    schema = {"properties": {"a": {"contentMediaType": "application/json", "contentSchema": {"type": "object"}}}}
    found = diagnose(json.dumps({"metrics": [{"type": "Json", "schema": schema}]}), "JsonResponse")
    assert [(one.severity, one.code) for one in found] == [("warning", "without-effect")] * 2
    assert Schema(schema).fits({"a": "no JSON"})
    assert not diagnose(
        json.dumps({"metrics": [{"type": "Json", "schema": {"const": "contentSchema"}}]}), "JsonResponse"
    )


def test_a_bad_pattern_in_a_schema_is_an_error() -> None:
    for schema in ({"pattern": "(?P<a>x)"}, {"patternProperties": {"\\Z": True}}, {"format": "regex", "pattern": "("}):
        with pytest.raises(BadSchemaError):
            Schema(schema)


@pytest.mark.parametrize("pattern", ["\\x4", "\\x", "\\u004", "\\u12", "\\xg1"])
def test_a_character_by_number_has_all_its_digits(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a character"):
        compile_ecma(pattern)


# Time


def test_the_time_of_other_programs_is_not_the_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if each look at the clock came an hour after the last one.
    hours = itertools.count(step=3600)
    monkeypatch.setattr(time, "monotonic", lambda: next(hours))
    assert Schema({"uniqueItems": True}).fits([{"id": number} for number in range(5_000)])


def test_unique_items_of_many_objects_takes_no_time() -> None:
    rows = [{"id": number, "tags": [number, {"a": number}]} for number in range(20_000)]
    assert Schema({"uniqueItems": True}).fits(rows)
    assert not Schema({"uniqueItems": True}).fits([*rows, {"tags": [7.0, {"a": 7}], "id": 7}])


@pytest.mark.parametrize(
    ("items", "unique"),
    [([1, True], True), ([0, False], True), ([1, 1.0], False), ([[1], [True]], True), ([{"a": 1}, {"a": 1.0}], False),
     ([None, 0, "", [], {}], True), ([{}, []], True), (["1", 1], True), ([[], []], False), ([None, None], False),
     ([{"a": [], "b": 1}, {"b": 1, "a": []}], False), ([[["list", 1]], ["list", 1]], True)],
)  # fmt: skip
def test_unique_items_compares_as_json(items: list[Any], unique: bool) -> None:
    assert Schema({"uniqueItems": True}).fits(items) is unique


SLOW_SCHEMAS: dict[str, tuple[Any, Any]] = {
    "many alternatives": (
        {"$defs": {"n": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 9}] * 40}},
         "$ref": "#/$defs/n"},
        [[[[[[1]]]]]],
    ),
    "references that multiply": (
        {"$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 8} for n in range(12)} | {"d12": True},
         "$ref": "#/$defs/d0"},
        1,
    ),
    "a large enum for each item": ({"items": {"enum": [[number] for number in range(300)]}}, [[299]] * 30_000),
    "keys against patterns": (
        {"patternProperties": {f"^{number}x*$": True for number in range(100)}},
        {f"{number}": 1 for number in range(20_000)},
    ),
    "unevaluated in alternatives": (
        {"$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 6} for n in range(12)} | {"d12": {}},
         "$ref": "#/$defs/d0", "unevaluatedProperties": False},
        {"a": 1},
    ),
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("case", SLOW_SCHEMAS)
def test_a_slow_schema_is_an_error_in_time(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "TIME_LIMIT", 0.05)
    schema, data = SLOW_SCHEMAS[case]
    talk = says(json.dumps(data))
    for negate in (False, True):
        result = compile_criterion(criterion(schema, negate=negate)).check(talk)
        if case == "many alternatives" and result.outcome is not Outcome.ERROR:
            continue  # decided before the limit
        assert result.outcome is Outcome.ERROR
        assert "took longer than" in criterion_sentence(result)


def test_each_thread_has_its_own_clock() -> None:
    schema = Schema({"items": {"type": "integer"}})
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(schema.fits([1, 2]))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [True] * 4
