"""Reading suites: what is right, and all that is wrong, with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites import files
from agenteval_tui.suites.load import LoadedSuite, load_suite, load_text
from agenteval_tui.suites.model import Test as SuiteTest
from agenteval_tui.suites.slugs import ID, name_from, slug

FULL = """\
name: SQL assistant
description: Turns questions into SQL over the shop database.
agent: shop/sql                     # default; a name from `agents` here or in the user's agents.yaml
tags: [sql]
defaults: {repeat: 1, timeout: 60, pass_threshold: null}
agents:
  shop/sql: {kind: openai, base_url: "${OPENAI_BASE_URL}", model: gpt-4o-mini, api_key_env: OPENAI_API_KEY,
             system: "You write SQLite.", temperature: 0, tools: tools.yaml}
tests:
  - id: customers-germany           # slug, unique in the suite ignoring case; made from the name if absent
    name: Bewertung der SQL-Abfragegenerierung
    description: Prüft, ob der Agent eine korrekte SQL-Abfrage erzeugt.
    prompt: Gib alle Kunden aus {{country}} mit mehr als {{revenue}} € Umsatz aus.
    category: happy_path
    tags: [smoke]
    repeat: 5                       # the seed's RunCount
    variables: {country: Deutschland, revenue: 5000}
    criteria:
      - name: The right filter
        description: ...
        expected_value: "SELECT ..."
        weight: 2
        severity: error             # error | warning | info
        negate: false
        prototype_class: TextResponse
        config_uxon: |
          {
            "extract_code_block": 1,
            // conditions are ANDed
            "metrics": [{"type": "TextMatch", "contains_all": ["country", "5000"]}]
          }
      - name: Looked at the schema first
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, tools: [{name: describe_table, arguments: {table: customers}}]}]}
    variations:                     # the default configuration runs first, then each of these
      - {name: mini, agent: shop/sql-mini, repeat: 3, config: {temperature: 0.7}}
  - id: from-a-dataset
    prompt: "{{input}}"
    dataset: {file: support.csv, limit: 50}
    criteria: [{name: x, prototype_class: TextResponse, config_uxon: "{}"}]
  - name: Mock tools
    turns: [Hello, Bye]
    stop: {when: decided, alpha: 0.05, threshold: 0.8}
    context:
      sample_system_prompt: You are [#role#].
      sample_concepts: {role: a clerk}
      sample_tools:
        get_log: {request_response_pairs: {Log-1: found}, sample_response: nothing}
        other:
          request_response_pairs:
            - {requests: [a, b], response: {ok: true}}
            - {arguments: {id: 5}, response: five}
      input_data: {rows: [{UID: "0x11"}]}
    criteria: [{name: x, prototype_class: TextResponse, config_uxon: {}}]
"""


def says(loaded: LoadedSuite) -> list[str]:
    return [f"{problem.line}:{problem.column} {problem.message} ({problem.fix})" for problem in loaded.problems]


def test_a_suite_with_everything() -> None:
    loaded = load_text(FULL, "shop.suite.yaml")
    assert says(loaded) == []
    suite = loaded.suite
    assert suite is not None
    assert (suite.name, suite.agent, suite.tags) == ("SQL assistant", "shop/sql", ["sql"])
    assert suite.defaults.timeout == 60
    assert suite.agents["shop/sql"].kind == "openai"
    assert suite.agents["shop/sql"].options["base_url"] == "${OPENAI_BASE_URL}"
    first, second, third = suite.tests
    assert first.id == "customers-germany"
    assert first.repeat == 5
    assert first.variables == {"country": "Deutschland", "revenue": 5000}
    assert str(first.criteria[0].config_uxon).splitlines()[2] == "  // conditions are ANDed"
    assert first.criteria[1].config_uxon == {
        "metrics": [{"type": "ToolCheck", "tools": [{"name": "describe_table", "arguments": {"table": "customers"}}]}]
    }
    assert first.variations[0].config == {"temperature": 0.7}
    assert (second.id, second.name) == ("from-a-dataset", "from-a-dataset")
    assert (third.id, third.turns) == ("mock-tools", ["Hello", "Bye"])
    assert third.context is not None
    assert third.context.as_dict() == {
        "sample_system_prompt": "You are [#role#].",
        "sample_concepts": {"role": "a clerk"},
        "sample_tools": [
            {
                "name": "get_log",
                "request_response_pairs": [{"request": "Log-1", "response": "found"}],
                "sample_response": "nothing",
            },
            {
                "name": "other",
                "request_response_pairs": [
                    {"requests": ["a", "b"], "response": {"ok": True}},
                    {"arguments": {"id": 5}, "response": "five"},
                ],
            },
        ],
        "input_data": {"rows": [{"UID": "0x11"}]},
    }
    assert suite.test("CUSTOMERS-germany") is first
    assert loaded.line_of("customers-germany", 1) == 32


BROKEN = """\
nmae: typo
tests:
  - name: Good
    prompt: p
    criteria: [{name: a, prototype_class: TextResponse, config_uxon: "{}"}]
  - name: Bäd 😀
    promt: x
    repeat: "5"
    tags: smoke
    category: happy
    criteria:
      - {name: ü😀, prototype_class: T, config_uxon: [1], wieght: 1, weight: -1}
      - {name: a, negate: maybe, severity: eror, pass_threshold: 2}
  - just text
  - {id: good, prompt: p, criteria: [{name: a, prototype_class: T, config_uxon: "{}"}]}
  - {id: "no good", prompt: p, criteria: []}
  - {prompt: "", messages: [{role: assistant, content: x}], criteria: [{name: , prototype_class: T, config_uxon: "{}"}]}
"""


def test_all_problems_come_at_once_with_place_and_remedy() -> None:
    loaded = load_text(BROKEN, "x.suite.yaml")
    assert says(loaded) == [
        '1:1 a suite has no "nmae" (did you mean `name`?)',
        "6:5 this test does not ask anything: it needs a prompt (or messages, turns, or a user) (add `prompt: ...`)",
        '7:5 test "Bäd 😀" has no "promt" (did you mean `prompt`?)',
        '8:13 repeat must be a whole number, not the text "5" (write 5 without quotes)',
        '9:11 tags must be a list, not the text "smoke" (write [smoke])',
        '10:15 category must be happy_path, edge_case or negative, not "happy" (did you mean happy_path?)',
        "12:53 config_uxon must be a text or an object, not a list (write a text or an object)",
        '12:58 criterion 1 has no "wieght" (did you mean `weight`?)',
        "12:77 weight must be at least 0, not -1 (write a number that is at least 0)",
        "13:10 criterion 2 has no prototype_class (add `prototype_class: ...`)",
        "13:10 criterion 2 has no config_uxon (add `config_uxon: ...`)",
        '13:27 negate must be true or false, not the text "maybe" (write true or false)',
        '13:44 severity must be error, warning or info, not "eror" (did you mean error?)',
        "13:66 pass_threshold must be at most 1, not 2 (write a number that is at most 1)",
        '14:5 test 3 must be an object, not the text "just text" (write `key: value` pairs)',
        '15:10 there is a test with the id "good" above (give this test another `id`)',
        '16:10 "no good" can\'t be an id: it may hold letters, digits, "-", "_" and "." (write no-good)',
        "16:32 criteria is empty (write at least one)",
        "17:6 the prompt is empty (write what to ask the agent)",
        "17:6 test 6 has no name (add `name: ...`)",
        "17:18 a test has either a prompt or messages, not both (make the prompt the last message)",
        "17:18 the agent answers the last message, so it can't have the role assistant "
        "(end with `role: user`, or add `turns`)",
        "17:73 name of criterion 1 is empty (write a value after `name:`)",
    ]
    assert loaded.suite is not None
    assert [test.id for test in loaded.suite.tests] == ["good"]
    assert not loaded.ok


def test_places_are_those_of_the_file_on_disk(tmp_path: Path) -> None:
    for bom, newline in ((b"", "\n"), (b"\xef\xbb\xbf", "\r\n")):
        path = tmp_path / "x.suite.yaml"
        path.write_bytes(bom + BROKEN.replace("\n", newline).encode())
        assert says(load_suite(path)) == says(load_text(BROKEN, path))
        problem = load_suite(path).problems[6]
        assert (problem.line, problem.column, problem.end_line, problem.end_column) == (12, 53, 12, 56)
        assert problem.file == str(path)


@pytest.mark.parametrize(
    ("written", "key", "value"),
    [
        ("prompt: no", "prompt", "no"),
        ("prompt: 1e3", "prompt", "1e3"),
        ("prompt: 2024-01-01", "prompt", "2024-01-01"),
        ("prompt: 012", "prompt", "012"),
        ("prompt: 12:30:45", "prompt", "12:30:45"),
        ("prompt: 1.10", "prompt", "1.10"),
        ("prompt: true", "prompt", "true"),
        ("prompt: !!str 5", "prompt", "5"),
        ("prompt: p\n    tags: [1.0, no, null]", "tags", ["1.0", "no", "null"]),
        ("prompt: p\n    timeout: 1e1", "timeout", 10.0),
        ("prompt: p\n    description:", "description", ""),
        ("prompt: p\n    variables: {a: no, b: 1e3, c: 2024-01-01, d: 012, e: 1_000, f: 5, g: true, h: ~, i: '5'}",
         "variables", {"a": "no", "b": 1000.0, "c": "2024-01-01", "d": "012", "e": "1_000", "f": 5, "g": True,
                       "h": None, "i": "5"}),
    ],
)  # fmt: skip
def test_the_surprises_of_yaml_are_what_the_model_wants(written: str, key: str, value: Any) -> None:
    text = f"tests:\n  - name: n\n    {written}\n    criteria: [{{name: a, prototype_class: T, config_uxon: x}}]\n"
    loaded = load_text(text, "x.suite.yaml")
    assert says(loaded) == []
    assert loaded.suite is not None
    assert getattr(loaded.suite.tests[0], key) == value


def test_truth_values_where_one_is_wanted() -> None:
    for written, value in {"yes": True, "no": False, "On": True, "false": False}.items():
        criteria = f"[{{name: a, negate: {written}, prototype_class: T, config_uxon: x}}]"
        loaded = load_text(f"tests: [{{name: n, prompt: p, criteria: {criteria}}}]", "x")
        assert loaded.suite is not None
        assert loaded.suite.tests[0].criteria[0].negate is value


GOOD_TEST = "  - {name: Good, prompt: p, criteria: [{name: a, prototype_class: T, config_uxon: x}]}\n"


COLON = "a second colon on this line can't start a value"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  - name: [a\n    b: 1\n", "4:11 this list is not closed, or a comma is missing"),
        ("  - name: {a: 1\n", "4:11 this object is not closed, or a comma is missing"),
        ("\t- name: x\n", "4:1 a tab can't be used for indentation"),
        ("  - name: a: b\n", f"4:12 {COLON}"),
        (
            "  - name: x\n    prompt: {{country}} x\n",
            '5:13 a text that begins with {{ needs quotes (write "{{country}} x")',
        ),
        ("  - name: @x\n", "4:11 a text can't start with @"),
        ("  - name: 'x\n", "4:11 a quote is opened here and never closed"),
        ("  - name: 'x\n    prompt: it's\n", "4:11 a quote is opened here and never closed"),
        ('  - name: "x\n    prompt: "y"\n', "4:11 a quote is opened here and never closed"),
        ('  - name: "x\n    tags: [a, "b"]\n', "4:11 a quote is opened here and never closed"),
        ('  - name: x\n    tags: ["a, b]\n    prompt: "y"\n', "5:12 a quote is opened here and never closed"),
        ('  - name: "x\n      y: z"\n   prompt: y\n', "6:4 this line does not belong to the list above"),
        ('  - name: "\\d"\n', "4:12 an unknown escape in a text with double quotes"),
        ('  - name: "\\ud83d\\ude00"\n', "4:14 this escape is half a character"),
        ("  - name\n    x: 1\n", f"5:6 {COLON}"),
        ("  - name: x\n   y: 1\n", "5:4 this line does not belong to the list above"),
        ("  - name: |x\n    y\n", "4:12 only a comment may follow `|` or `>` on its line"),
        ("  - name: & x\n", "4:12 a name must follow here"),
    ],
)
def test_broken_yaml_is_one_plain_sentence_and_what_stands_before_it_is_read(text: str, said: str) -> None:
    loaded = load_text("tests:\n" + GOOD_TEST + "  # here\n" + text, "x.suite.yaml")
    found = says(loaded)
    assert len(found) == 1
    assert found[0].startswith(said), found
    assert loaded.suite is not None
    # A tab stands so early that the parser did not see the end of the item before it.
    assert [test.id for test in loaded.suite.tests] == ([] if text.startswith("\t") else ["good"])


@pytest.mark.parametrize("indent", ["", "  "])
def test_broken_yaml_in_two_tests_costs_these_two_and_hides_nothing(indent: str) -> None:
    text = (
        "name: n\ntests:   # here\n"
        "- name: One\n  prompt: p\n  criteria: &c [{name: a, prototype_class: T, config_uxon: x}]\n"
        "- name: Two\n  prompt: 'never closed\n  criteria: *c\n"
        "# between\n"
        "- {name: It's three, prompt: p, criteria: *c}\n"
        "- name: Four\n  prompt: a: b\n"
        "- name: Five\n  promt: x\n  criteria: *c\n"
    ).replace("\n- ", f"\n{indent}- ").replace("\n  ", f"\n{indent}  ") + "agents: {a: {knd: demo}}\n"
    text = text.replace(f"\n{indent}{indent}- ", f"\n{indent}- ")
    loaded = load_text(text, "x.suite.yaml")
    column = len(indent)
    assert [(one.line, one.column, one.message.split(":")[0]) for one in loaded.problems] == [
        (7, 11 + column, "a quote is opened here and never closed"),
        (12, 12 + column, "a second colon on this line can't start a value"),
        (13, 3 + column, "this test does not ask anything"),
        (14, 3 + column, 'test "Five" has no "promt"'),
        (16, 14, 'agent "a" has no kind'),
    ]
    assert loaded.suite is not None
    assert [test.id for test in loaded.suite.tests] == ["one", "it-s-three"]
    assert not loaded.whole


def test_a_broken_header_is_one_problem() -> None:
    loaded = load_text("name: a: b\ntests:\n" + GOOD_TEST, "x")
    assert [one.code for one in loaded.problems] == ["syntax"]


def test_an_unknown_alias_is_told_with_its_name() -> None:
    found = says(load_text("tests:\n" + GOOD_TEST + "  - name: *x\n", "x"))
    assert any(one.startswith("3:11 there is no anchor &x") for one in found)


def test_braces_without_quotes_cost_one_sentence_and_one_test() -> None:
    loaded = load_text(
        "tests:\n" + GOOD_TEST.replace("prompt: p", "prompt: {{a}}") + GOOD_TEST.replace("Good", "B"), "x"
    )
    assert says(loaded)[0].startswith("2:26 a text that begins with {{ needs quotes")
    assert len(says(loaded)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1 this file is empty"),
        ("# only a comment\n", "1:1 this file is empty"),
        ("- a\n", "1:1 a suite must be an object, not a list"),
        ("just text", '1:1 a suite must be an object, not the text "just text"'),
        ("name: x\n", "1:1 this suite has no tests"),
        ("tests:\n", "1:1 this suite has no tests"),
        ("tests: {a: 1}\n", "1:8 tests must be a list, not an object"),
        ("tests: []\n---\ntests: []\n", "2:1 a second YAML document starts here"),
        ("tests: []\ntests: []\n", '2:1 the key "tests" appears twice'),
        ("tests: []\nname: !!python/object:os.system x\n", "2:7 the tag !!python/object:os.system is not supported"),
        ("tests: []\nagents: {a: {kind: openai, api_key: sk-123}}\n", "2:28 never write a key into a file"),
        ("tests: []\nagents: {a: {model: x}}\n", '2:14 agent "a" has no kind'),
        ("tests: []\n? [a]\n: b\n", "2:3 a key must be a plain text"),
        ("tests: []\nname: a\x07b\n", "2:8 the character U+0007 is not allowed in a YAML file"),
        ("tests: []\na: &a [*a]\n", "2:8 *a is inside &a itself"),
    ],
)
def test_files_that_are_no_suite(text: str, said: str) -> None:
    found = says(load_text(text, "x.suite.yaml"))
    assert any(one.startswith(said) for one in found), found


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 30)]
    found = says(load_text("\n".join(lines), "x.suite.yaml"))
    assert any("the aliases of this file stand for more than 100,000 values" in one for one in found)


@pytest.mark.sweep
@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000 + "x", "? " * 100_000])
def test_deep_nesting_is_refused_and_does_not_crash(text: str) -> None:
    found = says(load_text(text, "x.suite.yaml"))
    assert any("nested more than 100 levels deep" in one for one in found)
    found = says(load_text("tests:\n  - variables: " + text, "x.suite.yaml"))
    assert found


@pytest.mark.sweep
@pytest.mark.parametrize("before", ["", "tests: ", "tests:\n- a\n- "])
@pytest.mark.parametrize("nested", ["[", "[\n"])
def test_the_scan_for_an_open_quote_ends_where_it_is_too_deep(
    before: str, nested: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What PyYAML's scanner does for a token grows with the brackets around it: 45,000 of them took 16 s."""
    scanned = 0

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal scanned
        for token in scan(*arguments, **more):
            scanned += 1
            yield token

    scan = yaml.scan
    monkeypatch.setattr(yaml, "scan", counted)
    found = says(load_text(before + nested * 45_000, "x.suite.yaml"))
    assert any("nested more than 100 levels deep" in one for one in found)
    assert scanned < 300


def test_aliases_and_merges_are_read() -> None:
    text = """\
tests:
  - &first {name: One, prompt: p, repeat: 2, criteria: &c [{name: a, prototype_class: T, config_uxon: x}]}
  - {<<: *first, name: Two, repeat: 3}
  - {name: Three, prompt: q, criteria: *c}
"""
    loaded = load_text(text, "x.suite.yaml")
    assert says(loaded) == []
    assert loaded.suite is not None
    assert [(test.id, test.repeat, test.prompt) for test in loaded.suite.tests] == [
        ("one", 2, "p"),
        ("two", 3, "p"),
        ("three", None, "q"),
    ]


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.suite.yaml"
    with pytest.raises(AgentevalError, match="there is no such file"):
        load_suite(path)
    with pytest.raises(AgentevalError, match="this is a folder"):
        load_suite(tmp_path)
    with pytest.raises(AgentevalError, match="not a regular file"):
        load_suite("/dev/zero")
    path.write_bytes("name: ä\ntests: ".encode() + "Grüße".encode("latin-1"))
    with pytest.raises(AgentevalError, match="not UTF-8: the byte 0xfc") as caught:
        load_suite(path)
    assert caught.value.where == f"{path}:2:10"
    path.write_bytes("name: ä".encode("utf-16"))
    with pytest.raises(AgentevalError, match="UTF-16"):
        load_suite(path)
    with path.open("wb") as stream:
        stream.truncate(files.MAX_BYTES + 1)
    with pytest.raises(AgentevalError, match="too large for a suite"):
        load_suite(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Bewertung der SQL-Abfragegenerierung", "bewertung-der-sql-abfragegenerierung"),
        ("  Prüfung: Größe & Maß!  ", "pruefung-groesse-mass"),
        ("Café", "cafe"),
        ("价格 查询", "价格-查询"),
        ("😀", ""),
    ],
)
def test_ids_made_from_names(name: str, expected: str) -> None:
    assert slug(name) == expected


@given(st.text(max_size=40))
def test_an_id_made_from_any_name_is_one(name: str) -> None:
    made = slug(name)
    assert made == "" or ID.fullmatch(made)
    assert slug(made) == made


def test_a_name_of_a_suite_is_made_from_its_file() -> None:
    assert name_from(Path("a/support.suite.yaml")) == "support"
    assert name_from(Path("a/suite.yaml")) == "a"


@given(st.text(st.sampled_from("abtesnm:-[]{}\"'|>&*!#%@,? \n\t0ä😀"), max_size=80))
def test_no_text_breaks_the_reading(text: str) -> None:
    loaded = load_text("tests:\n" + GOOD_TEST + text, "x.suite.yaml")
    lines = loaded.text.split("\n")
    for problem in loaded.problems:
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        assert (problem.end_line, problem.end_column) >= (problem.line, problem.column)


def test_models_check_themselves_without_a_file() -> None:
    with pytest.raises(ValueError, match="does not ask anything"):
        SuiteTest.model_validate({"criteria": [{"name": "a", "prototype_class": "T", "config_uxon": "{}"}]})
    with pytest.raises(ValueError, match="extra"):
        SuiteTest.model_validate({"promt": "x"})


def test_no_field_of_a_test_breaks_the_loader_whatever_stands_in_it() -> None:
    criteria = "[{name: c, prototype_class: TextResponse, config_uxon: '{}'}]"
    for field in SuiteTest.model_fields:
        for value in ("x", "3", "[1]", "[[1]]", "{a: 1}", "[{a: 1}]", "true", "~", "[x, x]", "{name: x}"):
            test = {"id": "a", "name": "a", "prompt": "p", "criteria": criteria, field: value}
            body = "\n    ".join(f"{key}: {one}" for key, one in test.items())
            load_text(f"name: a\nagent: s\nagents: {{s: {{kind: demo}}}}\ntests:\n  - {body}\n", "x.suite.yaml")


@pytest.mark.parametrize("named", ['id: ""', "id: ''", 'id: "", name: " "', 'name: ""', "id: null, name: null"])
def test_a_test_is_never_left_out_in_silence(named: str) -> None:
    rest = "prompt: p, criteria: [{name: a, prototype_class: T, config_uxon: '{}'}]"
    text = f"tests: [{{{named}, {rest}}}]\n"
    loaded = load_text(text, "x.suite.yaml")
    assert [problem.message for problem in loaded.problems] == ["test 1 has no name"]


def test_a_context_has_fields_of_the_agents_own_and_names_a_near_miss() -> None:
    text = """\
name: S
tests:
  - id: t
    prompt: hi
    context: {customer: C1, deep: {a: [1]}, object_alias: order}
    criteria:
      - {name: c, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: a}]}}
"""
    loaded = load_text(text, "s.suite.yaml")
    assert loaded.problems == ()
    assert loaded.suite is not None
    context = loaded.suite.tests[0].context
    assert context is not None
    assert context.as_dict() == {"customer": "C1", "deep": {"a": [1]}, "object_alias": "order"}
    wrong = load_text(text.replace("customer: C1", "sampel_tools: {}"), "s.suite.yaml")
    assert [(one.code, one.fix) for one in wrong.problems] == [("unknown-key", "did you mean `sample_tools`?")]
