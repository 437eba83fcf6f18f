"""Umbraco AI's tests, as its management API gives them: one test, a list, or a page (`{"items": [...]}`).

What belongs to Umbraco alone (feature, target, profile, contexts, configuration, baseline) is kept as
`context.umbraco`, which the agent gets with each run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import as_object, json_in, objects_in, plain_text
from agenteval_tui.formats.importers.suite_import import FoundTests, checked, literal_prompt, needs_manual_work
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.stream.small_document import read_document
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.grading.regex_search import compile_with_flags

CONTEXT = "umbraco"
"""The key of a test's context that keeps what belongs to Umbraco."""
KEPT = ("testFeatureId", "testTargetId", "profileId", "contextIds", "testFeatureConfig", "baselineRunId")
VARIED = ("profileId", "contextIds", "testFeatureConfig")
DEFAULT_CRITERIA = "Evaluate the quality, accuracy, and relevance of the response."
DEFAULT_THRESHOLD = 0.7
_SEVERITIES = {"0": "info", "1": "warning", "2": "error", "info": "info", "warning": "warning", "error": "error"}


def can_read(value: Any) -> bool:
    """Whether a file's first value is a test, or a page of tests."""
    if not isinstance(value, Mapping):
        return False
    fields = _folded(value)
    items = fields.get("items")
    if isinstance(items, list) and items:
        return can_read(items[0])
    return "testfeatureid" in fields and ("graders" in fields or "testtargetid" in fields)


def tests(source: Source) -> FoundTests:
    """The tests of the file. A grader of an unknown type asks a person, and is named with its place."""
    document = read_document(source, "PyYAML")
    items = _folded(as_object(document)).get("items")
    # A page of the API, a list, or one test.
    listed = items if isinstance(items, list) else document if isinstance(document, list) else [document]
    found_tests = FoundTests(name=source.path.stem, metrics="umbraco")
    for index, each in enumerate(listed, 1):
        if isinstance(each, Mapping) and can_read(each):
            _add(each, index, found_tests)
        else:
            found_tests.skipped.append(f"item {index}: this is not a test: it has no `testFeatureId`")
    return found_tests


def _add(written: Mapping[str, Any], index: int, found_tests: FoundTests) -> None:
    fields = _folded(written)
    alias = plain_text(fields.get("alias")) or f"test-{index}"
    test: dict[str, Any] = {"id": alias, "name": plain_text(fields.get("name")) or alias}
    if description := plain_text(fields.get("description")).strip():
        test["description"] = description
    config = json_in(fields.get("testfeatureconfig"))
    test |= _asked(config, alias, fields, found_tests)
    tags = fields.get("tags")
    if isinstance(tags, list) and tags:
        test["tags"] = [tag for tag in map(plain_text, tags) if tag]
    if (count := _count(fields.get("runcount"))) > 1:
        test["repeat"] = count
    context = {key: value for key in KEPT if (value := json_in(fields.get(key.lower()))) not in (None, [], {})}
    test["context"] = {CONTEXT: context}
    graders = [_folded(grader) for grader in objects_in(fields.get("graders"))]
    test["criteria"] = [_criterion(grader, number_, alias, found_tests) for number_, grader in enumerate(graders)]
    if not test["criteria"]:
        found_tests.note(f"{alias}: it has no graders; a person decides until there are some")
        test["criteria"] = [needs_manual_work("Good", "Umbraco has no graders for this test")]
    if variations := objects_in(fields.get("variations")):
        test["variations"] = [
            _variation(_folded(variation), place, alias, found_tests) for place, variation in enumerate(variations, 1)
        ]
        _tell_apart(test["variations"], alias, found_tests)
    if fields.get("isactive") is False:
        found_tests.note(f"{alias}: it is not active in Umbraco: leave it out with --test, or remove it")
    if context.get("baselineRunId"):
        found_tests.note(f"{alias}: its baseline is a run in Umbraco: run the suite, then `agenteval baseline set`")
    found_tests.tests.append(test)


def _asked(config: Any, alias: str, fields: Mapping[str, Any], found_tests: FoundTests) -> dict[str, Any]:
    """The prompt: the message of an agent test; of a prompt test, the variables that its prompt gets."""
    settings = _folded(as_object(config))
    message = plain_text(settings.get("message"))
    if message.strip():
        return literal_prompt(message)
    variables = settings.get("variables")
    if isinstance(variables, Mapping) and variables:
        # Only an identifier can be named in a template.
        named = {str(key): value for key, value in variables.items() if str(key).isidentifier()}
        found_tests.note(f"{alias}: the text of its prompt is in Umbraco: its variables are asked for, change `prompt`")
        return {"prompt": "\n".join(f"{key}: {{{{ {key} }}}}" for key in named) or "?", "variables": dict(variables)}
    found_tests.note(f"{alias}: the text of its prompt is in Umbraco: write it as `prompt`")
    return {"prompt": f"(the prompt {plain_text(fields.get('testtargetid')) or alias} of Umbraco)"}


def _variation(fields: Mapping[str, Any], place: int, alias: str, found_tests: FoundTests) -> dict[str, Any]:
    name = plain_text(fields.get("name")) or f"variation {place}"
    variation: dict[str, Any] = {"name": name}
    if (count := fields.get("runcount")) is not None:
        variation["repeat"] = _count(count)
    changed = {key: json_in(fields[key.lower()]) for key in VARIED if fields.get(key.lower()) is not None}
    if changed:
        variation["context"] = {CONTEXT: changed}
    if "message" in _folded(as_object(changed.get("testFeatureConfig"))):
        found_tests.note(
            f"{alias}, variation {name!r}: its message is kept, but not sent: write a separate test for it"
        )
    return variation


def _tell_apart(variations: list[dict[str, Any]], alias: str, found_tests: FoundTests) -> None:
    """Give each variation a name of its own, which Umbraco does not ask for."""
    used: set[str] = set()
    for variation in variations:
        name, place = variation["name"], 1
        while variation["name"].casefold() in used:
            place += 1
            variation["name"] = f"{name} {place}"
        used.add(variation["name"].casefold())
        if place > 1:
            found_tests.note(f"{alias}: several variations are called {name!r}: one is {variation['name']!r} here")


# Graders


def _criterion(fields: Mapping[str, Any], index: int, alias: str, found_tests: FoundTests) -> dict[str, Any]:
    kind = plain_text(fields.get("gradertypeid") or fields.get("gradertype") or fields.get("type")).lower()
    config = _folded(as_object(json_in(fields.get("config"))))
    name = plain_text(fields.get("name")).strip() or kind or f"grader {index + 1}"
    make = _GRADERS.get(kind)
    criterion: dict[str, Any] | str
    if make is None:
        criterion = f"there is no grader type {kind!r} (there are {', '.join(_GRADERS)})"
    else:
        criterion = make(name, config)
    if isinstance(criterion, str):
        found_tests.note(
            f"{alias}, graders[{index}] {name!r}: {criterion}: a person decides; write a criterion in its place"
        )
        settings = json.dumps({"graderTypeId": kind, "config": json_in(fields.get("config"))}, ensure_ascii=False)
        criterion = needs_manual_work(name, f"Umbraco's grader {settings}")
    if description := plain_text(fields.get("description")).strip():
        criterion["description"] = " ".join(filter(None, (description, criterion.get("description"))))
    severity = _SEVERITIES.get(plain_text(fields.get("severity")).lower(), "error")
    weight = number(fields.get("weight"))
    # A guardrail is negated already: it passes where something is found.
    flipped = criterion.pop("negate", False)
    for setting, is_read in (
        ("severity", plain_text(fields.get("severity")).lower() in ("", *_SEVERITIES)),
        ("weight", fields.get("weight") is None or (weight is not None and weight >= 0)),
        ("negate", fields.get("negate") in (None, True, False)),
    ):
        if not is_read:
            found_tests.note(
                f"{alias}, graders[{index}] {name!r}: its {setting} {fields[setting]!r} is not known, and left out"
            )
    return {
        **criterion,
        **({"severity": severity} if severity != "error" else {}),
        **({"weight": weight} if weight is not None and weight >= 0 and weight != 1 else {}),
        **({"negate": True} if flipped != (fields.get("negate") is True) else {}),
    }


Made = dict[str, Any] | str


def _exact(name: str, config: Mapping[str, Any]) -> Made:
    """Both sides are trimmed, as Umbraco does."""
    text = plain_text(config.get("expectedvalue")).strip()
    # A pattern, since `equals` compares white space at the ends, too.
    metric = {"type": "Regex", "pattern": exact_pattern(text), **_flags(config)}
    return checked(name, metric, **({"expected_value": literally(text)} if text else {}))


def exact_pattern(text: str) -> str:
    """A pattern that matches just this text, with any white space around it."""
    return rf"\A\s*{re.escape(text)}\s*\Z"


def _contains(name: str, config: Mapping[str, Any]) -> Made:
    text = plain_text(config.get("searchpattern"))
    if not text:
        return "its `searchPattern` is empty, which always passes"
    return checked(name, {"type": "TextMatch", "contains" + _any_case(config): literally(text)})


def _regex(name: str, config: Mapping[str, Any]) -> Made:
    pattern = plain_text(config.get("pattern"))
    flags = _flags(config, multiline=True)
    try:
        compile_with_flags(pattern, flags.get("flags", ""))
    except ValueError as error:
        return f"its pattern is not read here: {error}"
    return checked(name, {"type": "Regex", "pattern": literally(pattern), **flags})


def _json_keys(name: str, config: Mapping[str, Any]) -> Made:
    keys = _listed(config.get("expectedkeys"))
    schemas = [_required(key.split(".")) for key in keys]
    if config.get("requireallkeys") is False:
        if not keys:
            return "it has no `expectedKeys`, and `requireAllKeys` is false: it always fails"
        metric: dict[str, Any] = {"type": "Json", "schema": {"anyOf": schemas}}
    else:
        metric = {"type": "Json", **({"schema": {"allOf": schemas}} if keys else {})}
    return checked(name, metric)


def _required(path: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "required": [path[0]]}
    if len(path) > 1:
        schema["properties"] = {path[0]: _required(path[1:])}
    return schema


def _tool_calls(name: str, config: Mapping[str, Any]) -> Made:
    tools = _listed(config.get("expectedtools"))
    mode = plain_text(config.get("validationmode")) or "Any"
    if mode not in ("Any", "All", "Exact", "None"):
        return f"`validationMode` {mode!r} is not known, which always fails"
    if config.get("validateorder") is True and mode in ("All", "Exact") and tools:
        # Trajectory has no mode for all calls in their order with others between them.
        pattern = order_pattern(tools, alone=mode == "Exact")
        return checked(name, {"type": "Regex", "pattern": pattern, "flags": "mi"}, prototype="ToolResponse")
    calls = [{"name": tool} for tool in tools]
    return checked(name, {"type": "Trajectory", "mode": mode.lower(), "calls": calls}, prototype="ToolResponse")


def order_pattern(tools: list[str], *, alone: bool) -> str:
    """A pattern of what ToolResponse shows: just these calls of the tools, in this order. `alone`: no others."""
    names = "" if alone else rf"\n(?:{'|'.join(map(re.escape, dict.fromkeys(tools)))})"
    other = rf"(?:(?!^Toolname:{names}$)[\s\S])*"
    return rf"\A{other}" + "".join(rf"^Toolname:\n{re.escape(tool)}$\n?{other}" for tool in tools) + r"\Z"


def _guardrail(name: str, config: Mapping[str, Any]) -> Made:
    """It passes where the evaluator finds something."""
    evaluator = plain_text(config.get("evaluatorid")).lower()
    own = _folded(as_object(json_in(config.get("evaluatorconfig"))))
    if evaluator == "contains":
        return _contains(name, own)
    if evaluator == "regex":
        return _regex(name, own)
    if evaluator == "pii":
        return {**checked(name, {"type": "Pii"}), "negate": True}
    if evaluator == "llm-judge":
        threshold = number(own.get("safetythreshold"))
        criteria = plain_text(own.get("evaluationcriteria"))
        judge_metric = _judge_metric(name, criteria, DEFAULT_THRESHOLD if threshold is None else threshold)
        return judge_metric if isinstance(judge_metric, str) else {**judge_metric, "negate": True}
    return f"the guardrail evaluator {evaluator!r} is not known, which always fails"


def _judge(name: str, config: Mapping[str, Any]) -> Made:
    threshold = number(config.get("passthreshold"))
    criteria = plain_text(config.get("evaluationcriteria")) or DEFAULT_CRITERIA
    return _judge_metric(name, criteria, DEFAULT_THRESHOLD if threshold is None else threshold)


def _judge_metric(name: str, criteria: str, threshold: float) -> Made:
    if not 0 <= threshold <= 1:
        return f"its threshold {threshold:g} is not from 0 to 1"
    metric = {"type": "Judge", "scale": "zero_to_one", "criteria": literally(criteria), "pass_threshold": threshold}
    return checked(name, metric)


def _similar(name: str, config: Mapping[str, Any]) -> Made:
    least = number(config.get("similaritythreshold"))
    text = plain_text(config.get("expectedcontent"))
    if not text:
        return "it has no `expectedContent`"
    return checked(name, {"type": "Similarity", "to": literally(text), "min": 0.8 if least is None else least})


_GRADERS: Mapping[str, Callable[[str, Mapping[str, Any]], Made]] = {
    "exact-match": _exact,
    "contains": _contains,
    "regex": _regex,
    "json-schema": _json_keys,
    "tool-call": _tool_calls,
    "guardrail": _guardrail,
    "llm-judge": _judge,
    "decision-judge": _judge,
    "semantic-similarity": _similar,
}


# How values are written


def _flags(config: Mapping[str, Any], *, multiline: bool = False) -> dict[str, str]:
    flags = ("m" if multiline and config.get("multiline") is True else "") + ("i" if _ignores_case(config) else "")
    return {"flags": flags} if flags else {}


def _any_case(config: Mapping[str, Any]) -> str:
    return "_ignore_case" if _ignores_case(config) else ""


def _ignores_case(config: Mapping[str, Any]) -> bool:
    return config.get("ignorecase") is not False


def _listed(value: Any) -> list[str]:
    return [part.strip() for part in plain_text(value).split(",") if part.strip()]


def _count(value: Any) -> int:
    count = number(value)
    return 1 if count is None or count < 1 else int(min(count, 100_000))


def _folded(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by their names in small letters: the API writes camelCase, the documentation PascalCase."""
    return {str(key).lower(): field for key, field in value.items()}


FORMAT = Format(
    name="umbraco",
    title="tests of Umbraco AI",
    looks_like="JSON with `alias`, `testFeatureId` and `graders`, or a page of `items`",
    can_read=can_read,
    tests=tests,
    page="coming-from/umbraco",
    rank=75,
)
