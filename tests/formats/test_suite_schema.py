"""The JSON Schema of suites and `agenteval validate` agree, over all suites and configs that this repository has.

Suites are compared as data: a `config_uxon` that is a text is replaced by what it means, so that the schema sees it.
"""

from __future__ import annotations

import ast
import copy
import io
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from agenteval_tui.analysis.lint import check_text
from agenteval_tui.cli.commands.init import KINDS, files_of
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.grading import registry
from agenteval_tui.uxon.parse import parse
from tests.sweeps import share

ROOT = Path(__file__).resolve().parents[2]
TESTS = ("suites", "analysis", "cli")

NOT_SAID = {
    "unknown-variable": "what a template may name is in other keys, and in files of rows",
    "unknown-agent": "whether an agent of that name is there is in other keys, and in agents.yaml",
    "duplicate-id": "no two values are compared",
    "duplicate": "no two values are compared",
    "contradictory": "no two values are compared",
    "conversation": "no two values are compared",
    "bad-regex": "a regular expression is a language of its own",
    "bad-path": "JMESPath is a language of its own",
    "bad-placeholder": "templates are a language of their own",
    "template": "templates are a language of their own",
    "dataset": "other files are not read",
    "agent-tools": "other files are not read, and no two tools are compared",
    "duplicate-key": "the data have each key once",
    "syntax": "the data have no syntax",
}
"""Codes of problems for which JSON Schema has no words, and why."""
NOT_SAID_EITHER = (
    ("can't be one of the", "JSON Schema knows no last item of a list"),
    ("this is not a JSON Schema", "which draft a schema within is written in is said in that schema"),
    ("names", "`minimums` names `dimensions`: no two keys are compared"),
    ("takes a whole number, not", "5.0 is an integer in JSON Schema"),
    ("must be true or false, not the text", 'yes without quotes is "yes" to YAML 1.2, and true here'),
    ("no id can be made from", "which letters of which alphabet are left in an id"),
    ("can't be an id", "a number has no characters"),
    ("option `pace`", "not a number, or infinite: JSON has neither"),
    ("two variations are named", "no two values are compared"),
)
"""The same by words, where the code says less."""


EXPORTED = ("/*", "// Multiline")
"""Where these are, what is switched off depends on the order of keys, or a list is a text: the schema looks no further.
What it accepts then is not compared; what it refuses is."""


@cache
def validator() -> Draft7Validator:
    wanted = schema("suite")
    Draft7Validator.check_schema(wanted)
    return Draft7Validator(wanted)


@cache
def errors_of(text: str) -> list[Problem]:
    _, problems = check_text(text.encode(), Path("x.suite.yaml"))
    return [problem for problem in problems if problem.severity == "error"]


def expressible(problems: list[Problem]) -> list[Problem]:
    return [
        problem
        for problem in problems
        if problem.code not in NOT_SAID and not any(words in problem.message for words, _ in NOT_SAID_EITHER)
    ]


@cache
def read(text: str) -> Any:
    """As `check-jsonschema` reads YAML: 1.2, as editors do. None where it is not YAML, or has aliases of aliases."""
    from check_jsonschema.parsers.yaml import construct_yaml_implementation, impl2loader

    if text.count("*") > 20:
        return None
    load = impl2loader(construct_yaml_implementation(), construct_yaml_implementation(pure=True))
    try:
        return load(io.BytesIO(text.encode()))
    except Exception:
        return None


def native(data: Any) -> Any:
    """The suite with every config that can be read as YAML; None where one can't: it is no data."""

    def listed(value: Any, key: str) -> list[Any]:
        found = value.get(key) if isinstance(value, dict) else None
        return found if isinstance(found, list) else []

    for test in listed(data, "tests"):
        for criterion in listed(test, "criteria"):
            config = criterion.get("config_uxon") if isinstance(criterion, dict) else None
            if isinstance(config, str):
                document = parse(config)
                if any(one.severity == "error" for one in document.diagnostics):
                    return None
                criterion["config_uxon"] = document.value
    return data


@cache
def all_suites() -> tuple[tuple[str, str], ...]:
    return tuple(written_suites())


def written_suites() -> Iterator[tuple[str, str]]:
    """(where, text) of each suite that a test or a page has, right or broken, and those of the product."""
    for path in sorted(ROOT.glob("sample_suites/*.suite.yaml")):
        yield path.name, path.read_text("utf-8")
    for kind in KINDS:
        yield f"init {kind}", files_of(kind)["first.suite.yaml"]
    for page in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/coming-from/*.md"), ROOT / "README.md"]):
        for number, part in enumerate(page.read_text("utf-8").split("```yaml\n")[1:]):
            text = part.partition("```")[0]
            if "tests:" in text and "criteria" in text:
                yield f"{page.name} {number}", text
    for folder in TESTS:
        for path in sorted((ROOT / "tests" / folder).glob("*.py")):
            source = path.read_text("utf-8")
            for node in ast.walk(ast.parse(source)) if "tests:" in source else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and "tests:" in node.value:
                    yield f"{path.name}:{node.lineno}", node.value


def metric_examples() -> dict[str, tuple[str, dict[str, Any]]]:
    """(prototype class, config) of the example of each metric's page."""
    found = {}
    for path in sorted((ROOT / "docs" / "metrics" / "examples").glob("*.yaml")):
        data = yaml.safe_load(path.read_text("utf-8"))
        found[path.stem] = (data.get("prototype_class", "TextResponse"), parse(data["config"]).value)
    return found


def suite_of(config: Any, prototype_class: str = "TextResponse", **keys: Any) -> dict[str, Any]:
    criterion = {"name": "c", "prototype_class": prototype_class, "config_uxon": config, "expected_value": "x"}
    return {
        "agent": "a",
        "agents": {"a": {"kind": "demo"}},
        "tests": [{"id": "t", "prompt": "p", "variables": {"country": "x"}, "criteria": [criterion]}],
        **keys,
    }


def differences(data: Any) -> str:
    """In what the schema and `validate` differ about a suite; "" where they agree as far as they can."""
    wrong, said = errors_of(json.dumps(data)), next(validator().iter_errors(data), None)
    if said is not None and not wrong:
        return f"refused: {said.message[:300]} at {list(said.absolute_path)}"
    exported = any(mark in json.dumps(data) for mark in EXPORTED)
    if said is None and not exported and (missed := expressible(wrong)):
        return f"accepted: {missed[0].code}: {missed[0].message}"
    return ""


def test_every_suite_of_this_repository() -> None:
    agreed = {True: 0, False: 0}
    suites = share(all_suites())
    for where, text in suites:
        data = read(text)
        if not isinstance(data, dict):
            continue
        if not errors_of(text):
            assert not list(validator().iter_errors(data)), where
        data = native(copy.deepcopy(data))
        if data is not None:
            assert differences(data) == "", where
            agreed[bool(errors_of(json.dumps(data)))] += 1
    # A share may have few of one sort.
    assert len(suites) < len(all_suites()) or min(agreed.values()) >= 20


def test_every_config_of_the_corpora() -> None:
    configs: list[Any] = [("TextResponse", {}), *metric_examples().values()]
    for line in (ROOT / "tests" / "uxon" / "corpus.jsonl").read_text("utf-8").splitlines()[::2]:
        configs.append(("TextResponse", json.loads(line)["value"]))
    for line in (ROOT / "tests" / "grading" / "data" / "power_ui.jsonl").read_text("utf-8").splitlines()[::9]:
        configs.append(("TextResponse", {"metrics": [json.loads(line).get("metric", {"type": "TextMatch"})]}))
    for prototype_class, config in configs:
        assert differences(suite_of(config, prototype_class)) == "", config


AGENTS: list[dict[str, Any]] = [
    {
        **{"kind": "openai", "model": "m", "base_url": "http://x/v1", "api_key_env": "A_B", "headers": {"X": "y"}},
        **{
            "timeouts": {"connect": 1},
            "temperature": 0.5,
            "seed": "run",
            "stop": ["a"],
            "price": {"input": 1, "output": 2},
        },
        "tools": [
            {"name": "a", "request_response_pairs": [{"request": "x", "response": 1}]},
            {"name": "b", "python": "m:f"},
            {"type": "function", "function": {"name": "c", "command": "ls -l"}},
            {"mcp": {"command": ["a"]}},
        ],
    },
    {"kind": "openai", "model": "m", "api": "responses", "reasoning_summary": "auto", "store": True, "max_tokens": 5},
    {"kind": "openai", "model": "${M}", "base_url": "${URL}", "api": "${API}", "temperature": 1},
    {"kind": "anthropic", "model": "m", "thinking_budget": 2000, "max_tokens": 5000, "tool_choice": "auto"},
    {
        "kind": "http",
        "url": "http://x/{{ prompt }}",
        "answer": "a.b",
        "stream": "sse",
        "delta": "x",
        "usage": {"input": "n"},
    },
    {"kind": "command", "command": ["a", "b"], "env": {"A": "b"}, "timeouts": {"silence": None}},
    {"kind": "command", "command": "a | b", "shell": True},
    {"kind": "python", "callable": "a.b:c", "path": ["x"], "settings": {"a": 1}},
    {"kind": "demo", "version": "v2", "pace": 0, "seed": 4},
    {"kind": "replay", "file": "x.json", "beyond": "repeat"},
]
CONFIGS: list[tuple[str, dict[str, Any]]] = [
    (
        "ToolResponse",
        {
            "metrics": [
                {
                    "type": "ToolCheck",
                    "tools": [
                        {
                            **{"name": "a", "min_calls": 1, "max_calls": 2, "allow_additional_arguments": True},
                            "arguments": {
                                "x": {"$contains": "y"},
                                "z": {"$one_of": [1, {"$gt": 3}]},
                                "q": {"$optional": {"$not": {"$type": "string"}}},
                                "l": [{"k": {"$any": True}}],
                            },
                        }
                    ],
                    "forbidden_tools": ["b"],
                }
            ]
        },
    ),
    (
        "Transcript",
        {"metrics": [{"type": "Trajectory", "calls": [{"name": "a"}], "overrides": {"a": "ignore", "b": ["x"]}}]},
    ),
    (
        "axenox\\GenAI\\TextResponseTestCriterion.php",
        {"metrics": [{"type": "axenox.GenAI.TextMatch", "contains": "a", "//": "why"}], "extract_by_regex": "/a/i"},
    ),
    (
        "TextResponse",
        {"metrics": [{"type": "Regex", "pattern": "/a+/", "flags": "im", "not": True}], "extract_code_block": 1},
    ),
    (
        "TextResponse",
        {"metrics": [{"type": "Judge", "scale": "one_to_five", "dimensions": {"a": "b"}, "minimums": {"a": 2}}]},
    ),
    ("TextResponse", {"metrics": [{"type": "Python", "function": "a:b", "other": [1]}]}),
    ("TextResponse", {"/*": "", "off": 1, "*/": "", "metrics": []}),
    (
        "TextResponse",
        {"metrics": [{"type": "TextMatch", "contains": ["// Multiline text delimited by `\\n`", "a", "b"]}]},
    ),
]
FULL: dict[str, Any] = {
    **{"name": "x", "description": "d", "agent": "a", "tags": ["x", 5], "agents": {"a": {"kind": "demo"}}},
    "defaults": {
        **{"repeat": 1, "timeout": 60, "pass_threshold": None, "concurrency": 2},
        "stop": {"when": "decided", "alpha": 0.05, "threshold": 0.8},
    },
    "tests": [
        {
            **{"id": "t1", "name": "n", "prompt": "p {{v}}", "category": "happy_path", "tags": ["a"], "repeat": 5},
            **{"variables": {"v": 1}, "agent": "a", "timeout": 3, "pass_threshold": 0.5, "stop": {"alpha": 0.1}},
            "criteria": [
                {
                    **{"name": "c", "description": "d", "expected_value": "e", "weight": 2, "severity": "error"},
                    **{"negate": False, "pass_threshold": 1, "prototype_class": "TextResponse", "config_uxon": "{}"},
                }
            ],
            "variations": [{"name": "v", "agent": "a", "repeat": 2, "config": {"x": 1}, "context": {"input_data": 1}}],
            "context": {
                "sample_tools": {"a": {"request_response_pairs": {"a": "b"}, "sample_response": "n"}},
                "sample_concepts": {"a": 1},
            },
        },
        {
            "name": "two",
            "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "y", "name": "z"}],
            "criteria": [{"name": "c", "prototype_class": "Transcript", "config_uxon": {"metrics": []}}],
            "context": {
                "sample_tools": [{"name": "t", "request_response_pairs": [{"requests": ["a"], "response": 1}]}]
            },
        },
        {
            "id": 3,
            "turns": ["a", "b"],
            "criteria": [{"name": "c", "prototype_class": "ToolResponse", "config_uxon": {"metrics": []}}],
        },
        {
            "id": "four",
            "user": {
                **{"agent": "a", "goal": "{{v}}", "persona": "p", "knows": {"order": 1, "l": ["x"]}, "max_turns": 3},
                "stop_when": "it is done",
            },
            "variables": {"v": 1},
            "criteria": [{"name": "c", "prototype_class": "ToolResponse", "config_uxon": {"metrics": []}}],
        },
    ],
}


@cache
def right_suites() -> tuple[dict[str, Any], ...]:
    """A suite for each metric, each prototype class, each kind of agent, and every key of the rest."""
    configs = [*metric_examples().values(), *CONFIGS]
    agents = [suite_of({"metrics": []}, agents={"a": agent}) for agent in AGENTS]
    return (*(suite_of(config, name) for name, config in configs), *agents, FULL, FULL, FULL)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, one in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield from places(one, (*path, key))


VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 5, 2.5, "", "x", "{{v}}", "${V}", "5", " ", "http://x", "TextMatch", "pass_fail"),
    *([], [1], ["x"], [[]], {}, {"a": 1}, {"//": "c"}, {"$any": True}, {"$foo": 1}, {"/*": 1, "zz": 2, "*/": 0}),
    ["// Multiline text delimited by `\\n`", "a"],
]


def mutated(data: dict[str, Any], chance: random.Random, keys: list[str]) -> Any:
    """A copy in which one key or value is another, is gone, or is added."""
    made = json.loads(json.dumps(data))
    *way, last = chance.choice(list(places(made)))
    parent = made
    for step in way:
        parent = parent[step]
    what = chance.randrange(5)
    if what <= 1:
        parent[last] = chance.choice(VALUES)
    elif what == 2:
        del parent[last]
    elif isinstance(parent, list):
        parent.append(chance.choice(VALUES))
    elif what == 3:
        parent[chance.choice([f"{last}z", last[:-1], last[1:] + last[:1]]) or "q"] = parent.pop(last)
    else:
        parent[chance.choice(keys)] = chance.choice(VALUES)
    return made


def test_right_suites_pass_and_so_does_no_mutation_of_them_that_validate_refuses() -> None:
    suites = right_suites()
    for data in suites:
        assert errors_of(json.dumps(data)) == []
        assert differences(data) == "", data
    keys = sorted({key for data in suites for *_, key in places(data) if isinstance(key, str)})
    chance, refused = random.Random(7), 0
    mutations = share([mutated(chance.choice(suites), chance, keys) for _ in range(150)])
    for data in mutations:
        assert differences(data) == "", json.dumps(data)
        refused += not validator().is_valid(data)
    assert refused >= (60 if len(mutations) == 150 else 1)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (suite_of({"metrics": [{"type": "TextMatch", "containz": "x"}]}), "metrics"),
        (suite_of({"metrics": []}, "TextResponze"), "prototype_class"),
        (suite_of({"metrics": []}, agents={"a": {"kind": "openai", "model": "m", "temprature": 1}}), "agents"),
        (suite_of({"metrics": []}, agents={"a": {"kind": "openia", "model": "m"}}), "kind"),
        (suite_of({"metrics": []}, agents={"a": {"kind": "demo", "api_key": "sk-1"}}), "agents"),
        (suite_of({"metrics": [{"type": "TextMatsch", "contains": "x"}]}), "type"),
        (suite_of({"metrics": [{"type": "TextMatch", "contains": 5}]}), "contains"),
        (suite_of({"extract_code_blok": 1, "metrics": []}), "config_uxon"),
        (suite_of("contains x"), "config_uxon"),
    ],
)
def test_what_it_is_for(data: dict[str, Any], place: str) -> None:
    (error, *_) = validator().iter_errors(data)
    assert place in error.absolute_path
    assert errors_of(json.dumps(data))


def test_check_jsonschema_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program that hooks and CI use, started once for all files."""
    from check_jsonschema import main

    (tmp_path / "suite.schema.json").write_text(json.dumps(schema("suite")), "utf-8")
    files, wrong = [], set()
    for number, (_, text) in enumerate(all_suites()[::4]):
        if isinstance(read(text), dict):
            path = tmp_path / f"{number}.yaml"
            path.write_text(text, "utf-8")
            files.append(str(path))
            if not validator().is_valid(read(text)):
                wrong.add(str(path))
    with pytest.raises(SystemExit):
        main(["--schemafile", str(tmp_path / "suite.schema.json"), "-o", "json", *files])
    report = json.loads(capsys.readouterr().out)
    assert {one["filename"] for one in report["errors"]} == wrong
    assert report["parse_errors"] == []
    assert len(files) > len(wrong) > 5


def test_what_editors_need() -> None:
    """A description of every key, enumerations, defaults and examples; a size that an editor loads at once."""
    whole = schema("suite")
    assert whole["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert whole["$id"].startswith("https://")
    assert whole["description"]
    definitions = whole["definitions"]

    def said(one: dict[str, Any]) -> bool:
        if "$ref" in one:
            return said(definitions[one["$ref"].rpartition("/")[2]])
        return bool(one.get("description"))

    for name, one in [("suite", whole), *definitions.items()]:
        body = one.get("else", one)
        # Rules over several keys name keys that are described elsewhere.
        for key, about in body.get("properties", {}).items() if "additionalProperties" in body else ():
            assert not isinstance(about, dict) or key.startswith("$") or said(about), f"{name}.{key}"
    kinds = definitions["metric"]["properties"]["type"]["anyOf"][0]["enum"]
    assert kinds == list(registry.metric_names())
    text = json.dumps(whole)
    assert '"markdownDescription"' in text
    assert '"examples"' in text
    assert '"default"' in text
    assert len(text) < 200_000
    assert all(" " not in name for name in definitions)


def test_plug_ins_are_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered is in it, and what can't be loaded leaves no hole."""
    text_match = registry.metric("TextMatch")

    def metric(name: str) -> Any:
        if name == "Broken":
            raise AgentevalError("it can't be loaded")
        return text_match if name == "Mine" else found(name)

    found = registry.metric
    monkeypatch.setattr(registry, "metric", metric)
    monkeypatch.setattr(registry, "metric_names", lambda: ("Broken", "Mine"))
    made = Draft7Validator(schema("suite"))
    assert made.is_valid(suite_of({"metrics": [{"type": "Mine", "contains": "x"}]}))
    assert made.is_valid(suite_of({"metrics": [{"type": "Broken", "anything": "x"}]}))
    assert not made.is_valid(suite_of({"metrics": [{"type": "Mine", "containz": "x"}]}))
    assert not made.is_valid(suite_of({"metrics": [{"type": "TextMatch", "contains": "x"}]}))
