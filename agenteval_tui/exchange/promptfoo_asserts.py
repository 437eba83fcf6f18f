"""promptfoo's assertions as criteria."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.exchange.foreign_tests import by_hand, checked
from agenteval_tui.exchange.foreign_usage import number
from agenteval_tui.exchange.message_dialects import plain_text

_TEXT = {
    "equals": "equals", "contains": "contains", "icontains": "contains_ignore_case", "starts-with": "starts_with",
    "contains-all": "contains_all", "contains-any": "contains_any",
}  # fmt: skip
_JUDGED = ("llm-rubric", "model-graded-closedqa", "g-eval", "agent-rubric", "search-rubric")
_MOST = 500  # assertions of a test


def criteria_of(assertions: Any) -> list[dict[str, Any]]:
    """A criterion for each assertion; of a set without a threshold for each of its own."""
    return list(_criteria(assertions))[:_MOST]


def _criteria(assertions: Any) -> Iterator[dict[str, Any]]:
    for one in assertions if isinstance(assertions, list) else ():
        if not isinstance(one, Mapping):
            yield by_hand(f"Assertion {plain_text(one)[:60]}", plain_text(one)[:300])
        elif one.get("type") == "assert-set" and one.get("threshold") is None:
            yield from _criteria(one.get("assert"))
        else:
            yield _criterion(one)


def _criterion(one: Mapping[str, Any]) -> dict[str, Any]:
    kind = plain_text(one.get("type"))
    negate = kind.startswith("not-")
    base = kind.removeprefix("not-")
    value, threshold = one.get("value"), number(one.get("threshold"))
    name = plain_text(one.get("metric")) or _named(kind, value)
    made = _translated(base, name, value, threshold, one)
    if made is None:
        rest = {key: one[key] for key in ("value", "threshold", "provider") if one.get(key) is not None}
        shown = json.dumps(rest, ensure_ascii=False, default=str)[:400] if rest else ""
        made = by_hand(name, f"promptfoo's assertion {kind} {shown}".rstrip())
    elif negate:
        made["negate"] = True
    weight = number(one.get("weight"))
    if weight is not None and weight >= 0 and weight != 1:
        made |= {"weight": weight} if weight else {"severity": "info"}
    return made


def _named(kind: str, value: Any) -> str:
    shown = " ".join(plain_text(value).split())
    return f"{kind or 'assertion'} {shown[:60]}".strip()


def _translated(
    kind: str, name: str, value: Any, threshold: float | None, one: Mapping[str, Any]
) -> dict[str, Any] | None:
    if isinstance(value, str) and value.startswith(("file://", "package:")):
        return None
    if kind in _TEXT:
        return _text(kind, name, value)
    if kind in ("icontains-all", "icontains-any"):
        texts = _texts(value)
        if kind == "icontains-any":
            return checked(name, {"type": "Regex", "pattern": "|".join(map(re.escape, texts)), "flags": "i"})
        metrics = [{"type": "TextMatch", "contains_ignore_case": text} for text in texts]
        return {"name": name, "prototype_class": "TextResponse", "config_uxon": {"metrics": metrics}}
    if kind == "regex" and isinstance(value, str):
        return checked(name, {"type": "Regex", "pattern": value})
    if kind in ("is-json", "contains-json"):
        schema = {"schema": value} if isinstance(value, Mapping) else {}
        if value is not None and not schema:
            return None
        prototype = "TextResponse" if kind == "is-json" else "JsonResponse"
        return checked(name, {"type": "Json", **schema}, prototype=prototype)
    if kind in ("latency", "cost") and threshold is not None:
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
    return _tools(kind, name, value, threshold)


def _text(kind: str, name: str, value: Any) -> dict[str, Any] | None:
    if kind in ("contains-all", "contains-any"):
        return checked(name, {"type": "TextMatch", _TEXT[kind]: _texts(value)})
    if isinstance(value, Mapping | list) and kind == "equals":
        return checked(name, {"type": "Json", "equals": value})
    if value is None or isinstance(value, Mapping | list):
        return None
    return checked(name, {"type": "TextMatch", _TEXT[kind]: plain_text(value)})


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return [plain_text(one) for one in value] if isinstance(value, list) else [plain_text(value)]


def _least(threshold: float | None) -> dict[str, float]:
    return {} if threshold is None or not 0 <= threshold <= 1 else {"pass_threshold": threshold}


def _words(name: str, value: Any) -> dict[str, Any] | None:
    exact = number(value)
    least, most = (exact, exact) if exact is not None else (None, None)
    if isinstance(value, Mapping):
        least, most = number(value.get("min")), number(value.get("max"))
    bounds = {"min_words": least, "max_words": most}
    given = {key: int(one) for key, one in bounds.items() if one is not None}
    return checked(name, {"type": "Length", **given}) if given else None


def _tools(kind: str, name: str, value: Any, threshold: float | None) -> dict[str, Any] | None:
    if kind == "tool-call-f1" and threshold in (None, 1.0):
        used = [{"name": tool} for tool in _texts(value) if tool]
        more = {
            "description": "promptfoo also forbids all other tools; name them under forbidden_tools if that counts."
        }
        return checked(name, {"type": "ToolCheck", "tools": used}, prototype="ToolResponse", **more)
    if kind == "trajectory:tool-used":
        tools: list[dict[str, Any]] = (
            [{"name": tool} for tool in _texts(value)] if isinstance(value, str | list) else []
        )
        if isinstance(value, Mapping) and isinstance(value.get("name"), str):
            calls = {"min_calls": number(value.get("min")), "max_calls": number(value.get("max"))}
            tools = [{"name": value["name"], **{key: int(one) for key, one in calls.items() if one is not None}}]
        return checked(name, {"type": "ToolCheck", "tools": tools}, prototype="ToolResponse") if tools else None
    if kind == "trajectory:tool-args-match" and isinstance(value, Mapping) and isinstance(value.get("name"), str):
        arguments = value.get("args", value.get("arguments"))
        plain = not value.get("ignore") and not value.get("defaults") and value.get("mode", "partial") == "partial"
        if isinstance(arguments, Mapping) and plain:
            tool = {"name": value["name"], "arguments": dict(arguments)}
            return checked(name, {"type": "ToolCheck", "tools": [tool]}, prototype="ToolResponse")
    return None
