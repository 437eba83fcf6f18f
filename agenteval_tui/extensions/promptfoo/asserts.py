"""promptfoo's assertions as criteria that give the same verdicts.

What has no counterpart that says the same of every answer becomes a criterion that asks a person, with what was asked.
Source of each rule: promptfoo, src/assertions (contains, equals, json, regex, trajectory, toolCallF1, wordCount).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.extensions.promptfoo.code import AssertionCode
from agenteval_tui.formats.importers.message_formats import as_list, plain_text
from agenteval_tui.formats.importers.suite_import import checked, needs_manual_work
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.stream.small_document import javascript_yaml
from agenteval_tui.grading.ecma_regex import compile_ecma
from agenteval_tui.grading.metrics.json_schema import Schema
from agenteval_tui.grading.metrics.matchers import literal
from agenteval_tui.grading.regex_search import PatternError, compile_pattern
from agenteval_tui.suites.templates import is_template

_TEXT = {
    "equals": "equals",
    "contains": "contains",
    "icontains": "contains_ignore_case",
    "starts-with": "starts_with",
    "ends-with": "ends_with",
}
_LISTS = ("contains-all", "contains-any", "icontains-all", "icontains-any")
_JUDGED = ("llm-rubric", "model-graded-closedqa", "g-eval", "agent-rubric", "search-rubric")
_MOST = 500  # assertions of a test
_DRAFT = "http://json-schema.org/draft-07/schema#"  # what Ajv, which promptfoo has, takes a schema for
_ALWAYS, _NEVER = {"type": "Regex", "pattern": "^"}, {"type": "Regex", "pattern": "(?!)"}
# Verdicts of these are 1 or 0, as promptfoo scores them: a threshold over several gives the same.
_ALL_OR_NOTHING = frozenset({"TextMatch", "Regex", "Json"})

ReadFile = Callable[[str], Any]
"""What a file beside the configuration holds: JSON's or YAML's value, else a text. None: it can't be read."""


NameJudge = Callable[[Any, str], str]
"""The name of the agent for an assertion's provider, with the kind of assertion; "" for none."""


class _Sources(Struct, frozen=True):
    read: ReadFile
    code: AssertionCode | None
    judge: NameJudge


def criteria_of(
    assertions: Any,
    *,
    read: ReadFile = lambda name: None,
    code: AssertionCode | None = None,
    judge: NameJudge = lambda provider, kind: "",
    threshold: float | None = None,
    note: Callable[[str], None] = lambda said: None,
) -> list[dict[str, Any]]:
    """A criterion for each assertion; of a set without a threshold for each of its own.

    `threshold`: of their test. promptfoo then looks at nothing but the weighted mean, so that no criterion fails it by
    itself. `code` takes the assertions that are code; without it a person is asked. `note` is told what is left out.
    """
    every = list(_criteria(assertions, _Sources(read, code, judge), 1.0))
    criteria = every[:_MOST]
    if len(every) > len(criteria):
        note(f"only the first {_MOST} of {len(every):,} assertions of a test became criteria")
    if threshold is not None:
        for criterion in criteria:
            if criterion.get("severity") != "info":
                criterion["severity"] = "warning"
    return criteria


def _criteria(assertions: Any, sources: _Sources, share: float) -> Iterator[dict[str, Any]]:
    for assertion in as_list(assertions):
        if not isinstance(assertion, Mapping):
            yield needs_manual_work(
                f"Assertion {plain_text(assertion)[:60]}", plain_text(assertion)[:300], has_placeholders=True
            )
        elif assertion.get("type") == "assert-set":
            yield from _set(assertion, sources, share)
        else:
            yield _criterion(assertion, sources, share)


def _set(assertion_set: Mapping[str, Any], sources: _Sources, share: float) -> Iterator[dict[str, Any]]:
    """The criteria of a set: all must pass; with a threshold one criterion, whose score is their mean."""
    inner = as_list(assertion_set.get("assert"))
    own = _weight(assertion_set)
    threshold = number(assertion_set.get("threshold"))
    if threshold is not None:
        yield _weighed(
            _mean(assertion_set, inner, threshold, sources.read)
            or _asked(assertion_set, _name(assertion_set), "assert-set"),
            own * share,
        )
        return
    weights = sum(_weight(each) for each in inner if isinstance(each, Mapping))
    # The set counts once in the test's mean, with the mean of its own.
    yield from _criteria(inner, sources, share * own / weights if weights else share)


def _mean(
    assertion_set: Mapping[str, Any], inner: list[Any], threshold: float, read: ReadFile
) -> dict[str, Any] | None:
    if not 0 <= threshold <= 1 or not inner or assertion_set.get("config"):
        return None
    metrics: list[dict[str, Any]] = []
    # Code and judges give other scores than 1 or 0, so that no function or agent is made of them.
    sources = _Sources(read, None, lambda provider, kind: "")
    for each in inner:
        criterion = (
            _criterion(each, sources, 1.0) if isinstance(each, Mapping) and each.get("type") != "assert-set" else None
        )
        inner_metrics = criterion["config_uxon"]["metrics"] if criterion is not None else []
        plain = criterion is not None and criterion["prototype_class"] == "TextResponse" and not criterion.get("negate")
        if not plain or len(inner_metrics) != 1 or inner_metrics[0]["type"] not in _ALL_OR_NOTHING or not _weight(each):
            return None
        weight = _weight(each)
        metrics.append({**inner_metrics[0], **({"weight": weight} if weight != 1 else {})})
    config = {"metrics": metrics}
    return {
        "name": _name(assertion_set),
        "prototype_class": "TextResponse",
        "config_uxon": config,
        "pass_threshold": threshold,
    }


def _weight(assertion: Mapping[str, Any]) -> float:
    weight = number(assertion.get("weight"))
    return 1.0 if weight is None or weight < 0 else weight


def _weighed(criterion: dict[str, Any], weight: float) -> dict[str, Any]:
    """With its weight. promptfoo lets an assertion of weight 0 never fail."""
    if weight == 0:
        return {**criterion, "weight": 0, "severity": "info"}
    return criterion if weight == 1 else {**criterion, "weight": weight}


def _criterion(assertion: Mapping[str, Any], sources: _Sources, share: float) -> dict[str, Any]:
    kind = plain_text(assertion.get("type"))
    negate = kind.startswith("not-")
    base = kind.removeprefix("not-")
    value, threshold = assertion.get("value"), number(assertion.get("threshold"))
    name = _name(assertion)
    criterion: dict[str, Any] | None = None
    # First: code takes a file as it is, where other assertions take what is in it.
    if base in ("javascript", "python") and sources.code is not None:
        criterion = sources.code.criterion(assertion, name, base, value=value, threshold=threshold, inverse=negate)
        if criterion is not None:
            return _weighed(criterion, _weight(assertion) * share)
    if isinstance(value, str) and value.startswith("file://"):
        value = sources.read(value.removeprefix("file://"))
    # These two look at no output, so that a transform changes nothing.
    changed = base not in ("latency", "cost") and (
        assertion.get("transform") or assertion.get("contextTransform") or assertion.get("normalizeUnicode")
    )
    if not changed and not (value is None and assertion.get("value") is not None):
        criterion = _translated(base, name, value, threshold, negate)
    elif changed and sources.code is not None:
        listed = comma_separated(value) if base in _LISTS and isinstance(value, str) else value
        criterion = sources.code.criterion(assertion, name, base, value=listed, threshold=None, inverse=negate)
        negate = negate and criterion is None
    if criterion is None:
        criterion, negate = _asked(assertion, name, kind), False
    # A kind whose opposite is a metric of its own.
    elif criterion.pop("negated", False):
        negate = False
    if negate:
        criterion["negate"] = True
    if assertion.get("provider") and (name := sources.judge(assertion["provider"], base)):
        for metric in criterion["config_uxon"]["metrics"]:
            if metric["type"] in ("Judge", "Similarity"):
                metric["judge" if metric["type"] == "Judge" else "embedder"] = name
    return _weighed(criterion, _weight(assertion) * share)


def _asked(assertion: Mapping[str, Any], name: str, kind: str) -> dict[str, Any]:
    keys = ("value", "threshold", "provider", "transform", "assert", "config")
    rest = {key: assertion[key] for key in keys if assertion.get(key) is not None}
    details = json.dumps(rest, ensure_ascii=False, default=str)[:400] if rest else ""
    return needs_manual_work(name, f"promptfoo's assertion {kind} {details}".rstrip(), has_placeholders=True)


def _name(assertion: Mapping[str, Any]) -> str:
    words = " ".join(plain_text(assertion.get("value")).split())
    kind = plain_text(assertion.get("type")) or "assertion"
    return plain_text(assertion.get("metric")) or f"{kind} {words[:60]}".strip()


def _translated(kind: str, name: str, value: Any, threshold: float | None, negate: bool) -> dict[str, Any] | None:
    if isinstance(value, str) and value.startswith("package:"):
        return None
    if kind in _TEXT:
        return _text(kind, name, value)
    if kind in _LISTS:
        return _list(kind, name, value)
    if kind == "regex":
        pattern = as_bare(value) if isinstance(value, str) else None
        return None if pattern is None else checked(name, {"type": "Regex", "pattern": pattern})
    if kind in ("is-json", "contains-json"):
        schema = _schema(value)
        somewhere = {"anywhere": True} if kind == "contains-json" else {}
        return None if schema is None else checked(name, {"type": "Json", **schema, **somewhere})
    if kind in ("latency", "cost") and threshold is not None and threshold >= 0:
        return checked(name, {"type": kind.capitalize(), "max": threshold}, prototype="Transcript")
    if kind in _JUDGED and isinstance(value, str):
        return checked(name, {"type": "Judge", "criteria": value, **_least(threshold)})
    if kind in ("factuality", "model-graded-factuality") and isinstance(value, str):
        criteria = "The answer agrees with the reference in its facts."
        return checked(name, {"type": "Judge", "criteria": criteria, "reference": value}, expected_value=value)
    if kind in ("similar", "similar:cosine") and isinstance(value, str):
        return checked(name, {"type": "Similarity", "to": value, "min": 0.75 if threshold is None else threshold})
    if kind == "word-count":
        return _words(name, value)
    return _tools(kind, name, value, threshold, negate)


def _text(kind: str, name: str, value: Any) -> dict[str, Any] | None:
    if isinstance(value, Mapping | list) and kind == "equals":
        return checked(name, {"type": "Json", "equals": value})
    if kind in ("starts-with", "ends-with") and not isinstance(value, str):
        return None  # an error in promptfoo
    if value is None or isinstance(value, Mapping | list) or (isinstance(value, bool) and kind != "equals"):
        return None
    text = _js_text(value)
    if not text and kind != "equals":
        return None  # likewise
    return checked(name, {"type": "TextMatch", _TEXT[kind]: text})


def _list(kind: str, name: str, value: Any) -> dict[str, Any] | None:
    texts = comma_separated(value) if isinstance(value, str) and value else value
    if not isinstance(texts, list) or any(isinstance(text, Mapping | list) or text is None for text in texts):
        return None
    texts = [_js_text(text) for text in texts]
    # What is in a file within a list is not read: the assertion would check the name.
    if any(text.startswith("file://") for text in texts):
        return None
    if kind.endswith("any"):
        if not texts or "" in texts:
            return checked(name, _ALWAYS if texts else _NEVER)  # everything contains the empty text
        if kind == "contains-any":
            return checked(name, {"type": "TextMatch", "contains_any": texts})
        if any(map(is_template, texts)):
            return None  # what is filled in would be read as a pattern
        return checked(name, {"type": "Regex", "pattern": f"(?:{'|'.join(map(re.escape, texts))})", "flags": "i"})
    texts = [text for text in texts if text]
    if not texts:
        return checked(name, _ALWAYS)
    if kind == "contains-all":
        return checked(name, {"type": "TextMatch", "contains_all": texts})
    metrics = [{"type": "TextMatch", "contains_ignore_case": text} for text in texts]
    return {"name": name, "prototype_class": "TextResponse", "config_uxon": {"metrics": metrics}}


def comma_separated(text: str) -> list[str] | None:
    """The items of a list in a text, as promptfoo reads them: an item in double quotes may have commas, and quotes in
    it are doubled or follow a backslash. None: promptfoo refuses it."""
    items: list[str] = []
    at = 0
    while at < len(text):
        while at < len(text) and (text[at].isspace() or text[at] == ","):
            at += 1
        if at >= len(text):
            break
        if text[at] != '"':
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            items.append(text[at:end].strip())
            at = end
            continue
        item = re.compile(r'"((?:\\["\\]|""|[^"])*)"', re.DOTALL).match(text, at)
        if item is None:
            return None
        items.append(re.sub(r'\\(["\\])|""', lambda hit: hit.group(1) or '"', item.group(1)))
        at = item.end()
        while at < len(text) and text[at].isspace():
            at += 1
        if at < len(text) and text[at] != ",":
            return None
    return items


def _js_text(value: Any) -> str:
    """A value as JavaScript's `String` writes it: true, 1 for 1.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value) if isinstance(value, bool) else plain_text(value)


_PYTHONS = re.compile(r"\(\?(?![:=!]|<[=!]|<[A-Za-z_$])|\\[AZGKXR]|[*+?}]\+")


def as_bare(pattern: str) -> str | None:
    """JavaScript's pattern as one of ours that finds the same: there it has no delimiters, `$` is the very end, and
    digits and letters are those of ASCII. None: it is not a valid pattern there, or has no equivalent here."""
    if not pattern or is_template(pattern):
        return None
    try:
        compile_ecma(pattern)
    except ValueError:
        # JavaScript also reads older, looser patterns than these, but nothing that only Python knows.
        if _PYTHONS.search(pattern):
            return None
    written, ascii_only, inside, at = "", False, False, 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            ascii_only = ascii_only or pattern[at + 1] in "dDwWbB"
            written += "/" if pattern[at + 1] == "/" else pattern[at : at + 2]
            at += 2
            continue
        if char == "[":
            # Here a bracket within a class needs a backslash; `[^]` is any character there.
            if inside:
                char = "\\["
            elif pattern.startswith("[^]", at) or pattern.startswith("[]", at):
                return None
            inside = True
        elif char == "]" and inside:
            inside = False
        elif char == "$" and not inside:
            char = r"(?![\s\S])"
        written += char
        at += 1
    # Elsewhere they are those of Unicode.
    if ascii_only:
        written = f"(?a){written}"
    return _without_delimiters(written)


def _without_delimiters(pattern: str) -> str | None:
    """The pattern written so that its first and last characters are not taken for delimiters."""
    for text in (pattern, "/" + pattern.replace("/", r"\/") + "/"):
        try:
            compiled = compile_pattern(text)
        except PatternError:
            continue
        if not compiled.flags and compiled.body.replace(r"\/", "/") == pattern:
            return text
    return None


def _schema(value: Any) -> dict[str, Any] | None:
    """`{"schema": ...}`; {} without one, None where it is none."""
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        if is_template(value):
            return None
        value = javascript_yaml(value)
    if value is True:
        return {"schema": {"$schema": _DRAFT}}
    if value is False:
        return {"schema": {"$schema": _DRAFT, "not": {}}}
    if not isinstance(value, Mapping):
        return None
    schema = {"$schema": _DRAFT, **value}

    try:
        Schema(schema)
    except ValueError:
        return None
    return {"schema": schema}


def _least(threshold: float | None) -> dict[str, float]:
    return {} if threshold is None or not 0 <= threshold <= 1 else {"pass_threshold": threshold}


def _words(name: str, value: Any) -> dict[str, Any] | None:
    """A word is the text between white space, which is not what `Length` counts."""
    least: Any = 0
    most: Any = ""
    if isinstance(value, Mapping):
        if value.get("min") is None and value.get("max") is None:
            return None
        least, most = _count(value.get("min", 0)), _count(value["max"]) if value.get("max") is not None else ""
    else:
        least = most = _count(value)
    if least is None or most is None or (most != "" and least > most):
        return None
    # Possessive: else it would try all ways to part a text that has too many words.
    return checked(name, {"type": "Regex", "pattern": rf"\A\s*+(?:\S++(?:\s++|\Z)){{{least},{most}}}+\Z"})


def _count(value: Any) -> int | None:
    figure = number(value)
    return int(figure) if figure is not None and figure >= 0 and figure == int(figure) and figure <= 100_000 else None


def _tools(kind: str, name: str, value: Any, threshold: float | None, negate: bool) -> dict[str, Any] | None:
    # Below 1 it is a share, for which no metric gives the same.
    if kind == "tool-call-f1" and threshold in (None, 1.0):
        return _same_tools(name, value)
    if kind == "trajectory:tool-used":
        return _used(name, value, negate)
    if kind == "trajectory:tool-args-match" and isinstance(value, Mapping):
        return _with_arguments(name, value)
    return None


def _same_tools(name: str, value: Any) -> dict[str, Any] | None:
    """F1 is 1 where just these tools were used, each as often as the agent likes."""
    if not isinstance(value, str | list) or any(isinstance(item, Mapping | list) for item in value):
        return None
    parts = value.split(",") if isinstance(value, str) else map(_js_text, value)
    used = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not used or any(map(is_template, used)):
        return None
    others = rf"(?:\A|\n\n)Toolname:\n(?!(?:{'|'.join(map(re.escape, used))})\n)"
    metrics = [
        {"type": "ToolCheck", "tools": [{"name": tool} for tool in used]},
        {"type": "Regex", "name": "no other tool", "pattern": f"/{others.replace('/', chr(92) + '/')}/", "not": True},
    ]
    return {"name": name, "prototype_class": "ToolResponse", "config_uxon": {"metrics": metrics}}


def _named(tool: Any) -> bool:
    """Whether this is a tool's name, and no pattern of names."""
    return isinstance(tool, str) and bool(tool) and not re.search(r"[*?]", tool) and not is_template(tool)


def _used(name: str, value: Any, negate: bool) -> dict[str, Any] | None:
    if isinstance(value, Mapping):
        if not _named(value.get("name")) or value.get("pattern") or value.get("type") not in (None, "tool"):
            return None
        limits = {"min_calls": value.get("min"), "max_calls": value.get("max")}
        bounds = {key: _count(limit) for key, limit in limits.items() if limit is not None}
        if None in bounds.values():
            return None
        return checked(
            name, {"type": "ToolCheck", "tools": [{"name": value["name"], **bounds}]}, prototype="ToolResponse"
        )
    tools = [value] if isinstance(value, str) else value
    if not isinstance(tools, list) or not tools or not all(map(_named, tools)):
        return None
    # not-trajectory:tool-used: none of them was used. Case does not matter in either.
    metric = {"type": "Trajectory", "mode": "none" if negate else "all", "calls": [{"name": tool} for tool in tools]}
    return checked(name, metric, prototype="ToolResponse", negated=True)


def _with_arguments(name: str, value: Mapping[str, Any]) -> dict[str, Any] | None:
    """One of the calls has these arguments; with `partial`, which is the default, it may have others too."""
    arguments = value["args"] if "args" in value else value.get("arguments")
    mode = value.get("mode") or "partial"
    odd = value.get("ignore") or value.get("defaults") or value.get("pattern")
    if (
        odd
        or value.get("type") not in (None, "tool")
        or not _named(value.get("name"))
        or not isinstance(arguments, Mapping)
        or mode not in ("partial", "exact")
    ):
        return None
    if mode == "partial" and any(map(_has_objects, arguments.values())):
        return None  # promptfoo looks for a part of each object inside of others, too
    call = {"name": value["name"], "arguments": {str(key): literal(argument) for key, argument in arguments.items()}}
    argument_mode = "superset" if mode == "partial" else "exact"
    metric = {"type": "Trajectory", "mode": "superset", "calls": [call], "arguments_mode": argument_mode}
    return checked(name, metric, prototype="ToolResponse")


def _has_objects(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and any(map(_has_objects, value)))
