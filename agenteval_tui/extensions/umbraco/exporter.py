"""The tests of a suite as Umbraco AI's tests: what its management API takes to create them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.extensions.umbraco.importer import (
    CONTEXT,
    KEPT,
    VARIED,
    exact_pattern,
    order_pattern,
)
from agenteval_tui.formats.exporters.suite_exporter import ExportedTests, SuiteExporter, tests_with_a_prompt
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.suites.model import Criterion, Suite, Test, Variation

_EXACT = re.compile(r"\\A\\s\*(.*)\\s\*\\Z", re.DOTALL)
_NOTHING = "00000000-0000-0000-0000-000000000000"


def tests_of(suite: Suite, key: str) -> ExportedTests:
    """The tests. `key` tells suites apart in the ids of graders."""
    notes: list[str] = []
    tests = [_test(suite, test, prompt, key, notes) for test, prompt in tests_with_a_prompt(suite, notes)]
    return ExportedTests(tests, len(tests), notes)


def _test(suite: Suite, test: Test, prompt: str, key: str, notes: list[str]) -> dict[str, Any]:
    own = test.context.as_dict().get(CONTEXT) if test.context is not None else None
    own = own if isinstance(own, Mapping) else {}
    # Only Umbraco has this id: nothing in a suite could stand there.
    if not own.get("testTargetId"):
        notes.append(f"{test.id}: write the id of the agent in Umbraco as `testTargetId`")
    graders = []
    for index, criterion in enumerate(test.criteria):
        grader = _grader(criterion, test.id, notes)
        if grader is not None:
            graders.append({"id": _id(f"{key}\0{test.id}\0{index}"), **grader})
    feature = own.get("testFeatureId") or "agent"
    config = own.get("testFeatureConfig")
    config = dict(config) if isinstance(config, Mapping) else {}
    if feature == "agent":
        config["message"] = prompt
    fields = {name: own[name] for name in KEPT if name in own and name != "testFeatureConfig"}
    return {
        "alias": test.id,
        "name": test.name or test.id,
        "description": test.description,
        **{"testFeatureId": feature, "testTargetId": _NOTHING, **fields},
        "testFeatureConfig": config,
        "graders": graders,
        "variations": [_variation(variation, f"{key}\0{test.id}", notes, test.id) for variation in test.variations],
        "runCount": test.repeat or suite.defaults.repeat or 1,
        "tags": list(test.tags),
    }


def _variation(variation: Variation, key: str, notes: list[str], test: str) -> dict[str, Any]:
    own = variation.context.as_dict().get(CONTEXT) if variation.context is not None else None
    own = own if isinstance(own, Mapping) else {}
    if variation.agent is not None or variation.config:
        notes.append(f"{test}, variation {variation.name!r}: not kept: its agent and configuration; name a profile")
    fields: dict[str, Any] = {"id": _id(f"{key}\0variation\0{variation.name}"), "name": variation.name}
    fields |= {name: own.get(name) for name in VARIED}
    return {**fields, "runCount": variation.repeat}


def _grader(criterion: Criterion, test: str, notes: list[str]) -> dict[str, Any] | None:
    """The criterion as a grader; None and a note where Umbraco has none that says the same."""
    config: Any = criterion.config_uxon
    if isinstance(config, str):
        config = parsed_json(config)
    metrics = config.get("metrics") if isinstance(config, Mapping) else None
    kind = None
    if (
        isinstance(metrics, list)
        and len(metrics) == 1
        and isinstance(metrics[0], Mapping)
        and set(config) == {"metrics"}
    ):
        kind = _kind_of(metrics[0], criterion)
    if kind is None or any("{{" in text.replace(_BRACES, "") for text in _texts(kind[1])):
        notes.append(f"{test}: not kept: criterion {criterion.name!r}, no grader of Umbraco checks the same")
        return None
    if criterion.pass_threshold is not None:
        notes.append(f"{test}: not kept: the threshold of criterion {criterion.name!r}")
    return {
        "graderTypeId": kind[0],
        "name": criterion.name,
        "description": criterion.description,
        "config": {name: _unquoted(value) for name, value in kind[1].items()},
        # A guardrail passes where it finds something, which is the negation of our metric.
        "negate": criterion.negate != (kind[0] == "guardrail"),
        "severity": criterion.severity.capitalize(),
        "weight": criterion.weight,
    }


_BRACES = literally("{{")


def _texts(config: Mapping[str, Any]) -> list[str]:
    return [value for value in config.values() if isinstance(value, str)]


def _unquoted(value: object) -> object:
    """A text with the braces that are meant as such."""
    return value.replace(_BRACES, "{{") if isinstance(value, str) else value


def _kind_of(metric: Mapping[str, Any], criterion: Criterion) -> tuple[str, dict[str, Any]] | None:
    """The type of a grader and its configuration."""
    settings = {name: value for name, value in metric.items() if name not in ("type", "name", "weight")}
    match metric.get("type"):
        case "TextMatch" if len(settings) == 1:
            (name, value), *_ = settings.items()
            if name in ("contains", "contains_ignore_case"):
                return "contains", {"searchPattern": value, "ignoreCase": name != "contains"}
        case "Regex" if set(settings) <= {"pattern", "flags"}:
            return _pattern(str(settings.get("pattern", "")), str(settings.get("flags") or ""), criterion)
        case "Json" if set(settings) <= {"schema", "required_keys"}:
            return _keys(settings)
        case "Trajectory" if all(set(call) == {"name"} for call in settings.get("calls") or ()):
            return _tools(settings)
        case "ToolCheck" if set(settings) == {"tools"} and all(set(tool) == {"name"} for tool in settings["tools"]):
            return "tool-call", _expected_tools([tool["name"] for tool in settings["tools"]], "All", False)
        case "Judge" if settings.get("scale", "") in ("", "zero_to_one") and settings.keys() <= _OF_JUDGES:
            threshold = settings.get("pass_threshold", 0.7)
            return "llm-judge", {"evaluationCriteria": settings.get("criteria", ""), "passThreshold": threshold}
        case "Pii" if not settings:
            return "guardrail", {"evaluatorId": "pii", "evaluatorConfig": None}
        case "Similarity" if isinstance(settings.get("to"), str):
            return "semantic-similarity", {
                "expectedContent": settings["to"],
                "similarityThreshold": settings.get("min", 0.8),
            }
    return None


_OF_JUDGES = {"criteria", "scale", "pass_threshold"}


def _pattern(pattern: str, flags: str, criterion: Criterion) -> tuple[str, dict[str, Any]] | None:
    if set(flags) - {"i", "m"}:
        return None
    ignore_case = "i" in flags
    exact = _EXACT.fullmatch(pattern)
    if exact is not None and criterion.prototype_class == "TextResponse":
        text = criterion.expected_value or ""
        if exact_pattern(str(_unquoted(text))) == pattern:
            return "exact-match", {"expectedValue": text, "ignoreCase": ignore_case}
    if criterion.prototype_class == "ToolResponse":
        tools = re.findall(r"\^Toolname:\\n((?:[^$\\]|\\.)*)\$\\n\?", pattern)
        names = [re.sub(r"\\(.)", r"\1", tool) for tool in tools]
        # Only a pattern that the import writes is known again, and no other that happens to look like it.
        for mode in ("All", "Exact"):
            if order_pattern(names, alone=mode == "Exact") == pattern:
                return "tool-call", _expected_tools(names, mode, True)
        return None
    return "regex", {"pattern": pattern, "ignoreCase": ignore_case, "multiline": "m" in flags}


def _keys(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    if "schema" not in settings:
        keys = list(settings.get("required_keys") or ())
        return "json-schema", {"expectedKeys": ", ".join(keys), "requireAllKeys": True}
    schema = settings["schema"]
    if "required_keys" in settings or not isinstance(schema, Mapping) or set(schema) not in ({"allOf"}, {"anyOf"}):
        return None
    ((way, listed),) = schema.items()
    paths = [_path(item) for item in listed]
    if None in paths:
        return None
    return "json-schema", {"expectedKeys": ", ".join(map(str, paths)), "requireAllKeys": way == "allOf"}


def _path(schema: Any) -> str | None:
    """The path of keys that a schema of one requires."""
    required = schema.get("required") if isinstance(schema, Mapping) else None
    if not isinstance(required, list) or len(required) != 1 or set(schema) - {"type", "required", "properties"}:
        return None
    if "properties" not in schema:
        return str(required[0])
    inner = _path(schema["properties"].get(required[0]))
    return None if inner is None else f"{required[0]}.{inner}"


def _tools(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    names = [call.get("name") for call in settings.get("calls") or ()]
    mode = str(settings.get("mode"))
    if mode not in ("any", "all", "exact", "none") or set(settings) - {"mode", "calls"}:
        return None
    return "tool-call", _expected_tools(list(map(str, names)), mode.capitalize(), False)


def _expected_tools(names: list[str], mode: str, ordered: bool) -> dict[str, Any]:
    return {"expectedTools": ", ".join(names), "validationMode": mode, "validateOrder": ordered}


def _id(key: str) -> str:
    # The same suite gives the same ids, so that Umbraco changes its tests and adds no second ones.
    return str(uuid.uuid5(uuid.NAMESPACE_URL, key))


EXPORTER = SuiteExporter("umbraco", "Umbraco tests", tests_of)
