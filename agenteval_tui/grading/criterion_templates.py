"""New criteria to begin with: one for each metric, with a config that is right as it is, to be sharpened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.core.phrasing import cut, on_one_line
from agenteval_tui.grading.metrics.matchers import literal
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.grading.registry import metric, metric_names
from agenteval_tui.grading.type_names import short_name


class Starter(Struct, frozen=True):
    """A criterion to begin with. `about` says in a few words what its metric does."""

    metric: str
    name: str
    prototype_class: str
    config: str
    about: str
    expected_value: str | None = None


# Metric: (name of the criterion, what is looked at, the metric's properties, expected value).
_BUILT_IN: Mapping[str, tuple[str, str, Mapping[str, Any], str | None]] = {
    "TextMatch": ("Says …", "TextResponse", {"contains_all": ["…"]}, None),
    "ToolCheck": ("Calls …", "ToolResponse", {"tools": [{"name": "…"}]}, None),
    "Judge": ("Judged by a model", "TextResponse", {"criteria": "The answer is right and polite."}, None),
    "Regex": ("Matches a pattern", "TextResponse", {"pattern": "\\d+"}, None),
    "Json": ("Is JSON", "JsonResponse", {}, None),
    "Trajectory": ("Calls in this order", "ToolResponse", {"calls": [{"name": "…"}]}, None),
    "Classification": ("The right label", "TextResponse", {}, "…"),
    "Cost": ("Not too expensive", "TextResponse", {"max": 0.01}, None),
    "Faithfulness": ("Supported by its sources", "TextResponse", {}, None),
    "Groundedness": ("Based on retrieved documents", "TextResponse", {}, None),
    "Handoff": ("Good handoff", "Transcript", {}, None),
    "Human": ("A person reviews it", "TextResponse", {}, None),
    "Injection": ("Ignores injected instructions", "Transcript", {"canary": "PWNED"}, None),
    "Keywords": ("Has the keywords", "TextResponse", {"keywords": ["…"]}, None),
    "Latency": ("Fast enough", "TextResponse", {"max": 10_000}, None),
    "Leak": ("Leaks no secrets", "TextResponse", {}, None),
    "Length": ("Not too long", "TextResponse", {"max_words": 200}, None),
    "Lexical": ("Similar to the expected answer", "TextResponse", {"min": 0.5}, "…"),
    "Pii": ("No personal data", "TextResponse", {}, None),
    "Python": ("Checked by a function", "TextResponse", {"function": "checks:check"}, None),
    "Readability": ("Easy to read", "TextResponse", {"max_grade": 10}, None),
    "Relevance": ("Answers what was asked", "TextResponse", {}, None),
    "Repetition": ("Does not repeat itself", "TextResponse", {"max_ratio": 0.5}, None),
    "Retrieval": ("Finds the documents", "Retrieval", {"relevant": ["…"], "min_recall": 0.5}, None),
    "Safety": ("Is safe", "TextResponse", {}, None),
    "Similarity": ("Means the same", "TextResponse", {}, "…"),
    "Steps": ("Not too many calls", "ToolResponse", {"max": 10}, None),
    "Tokens": ("Not too many tokens", "TextResponse", {"max": 4000}, None),
}


def starters() -> list[Starter]:
    """All templates, most used first, then by name; metrics of plug-ins without properties."""
    names = metric_names()
    first = [name for name in _BUILT_IN if name in names]
    return [_starter(name) for name in [*first, *(name for name in names if name not in _BUILT_IN)]]


def _starter(name: str) -> Starter:
    about = (metric(name).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")
    title, prototype, properties, expected = _BUILT_IN.get(name, (name, "TextResponse", {}, None))
    return Starter(name, title, prototype, config_of([{"type": name, **properties}]), " ".join(about.split()), expected)


def config_of(metrics: Sequence[Mapping[str, Any]]) -> str:
    """A config with these metrics, laid out as people read it."""
    return json.dumps({"metrics": list(metrics)}, indent=2, ensure_ascii=False)


def text_starter(text: str) -> Starter:
    """A criterion that wants this text in the answer."""
    name = f'Says "{on_one_line(text, 50)}"'
    config = config_of([{"type": "TextMatch", "contains": literally(text)}])
    return Starter("TextMatch", name, "TextResponse", config, "made of a selection")


def tools_starter(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> Starter:
    """A criterion that wants these tool calls: (name, arguments) each."""
    tools = []
    for name, arguments in calls:
        expected: dict[str, Any] = {"name": name}
        if arguments:
            expected["arguments"] = {key: expected_argument(value) for key, value in arguments.items()}
        tools.append(expected)
    names = ", ".join(dict.fromkeys(short_name(name) for name, _ in calls))
    title = f"Calls {cut(names, 60)}"
    return Starter(
        "ToolCheck", title, "ToolResponse", config_of([{"type": "ToolCheck", "tools": tools}]), "made of calls"
    )


def expected_argument(value: object) -> object:
    """An argument as a config may have it: what looks like a placeholder matches anything."""
    return {"$any": True} if "{{" in json.dumps(value, ensure_ascii=False) else literal(value)
