"""The codes that are stored and published, each with the fields that come with it."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from recorder import HERE, Files, Recorder

from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import ErrorCode, Message, RunError, ToolCall, Transcript

ROOT = HERE.parents[1]


def evidence(recorder: Recorder) -> Files:
    """All codes, and by prototype class and metric the codes of a corpus: the examples of the metrics' pages (`passes`
    and `fails`), the cases of tests/grading/test_codes.py, and `ODD`. `never seen`: no case of the corpus has it."""
    found: dict[str, set[str]] = defaultdict(set)
    for result in _corpus():
        prototype = result["prototype_class"]
        _note(found, f"{prototype}: the criterion", result)
        for metric in result.get("metrics", ()):
            _note(found, f"{prototype} {metric['type']}: the metric", metric)
            for line in metric.get("evidence", ()):
                _note(found, f"{prototype} {metric['type']}: {line['condition'].split('[')[0]}", line)
    seen = {one.split(":")[0] for codes in found.values() for one in codes}
    return {
        "evidence.json": {
            "codes": [str(code) for code in Code],
            "never seen": sorted(set(map(str, Code)) - seen),
            "seen": {where: sorted(codes) for where, codes in sorted(found.items())},
        }
    }


def errors(recorder: Recorder) -> Files:
    """The codes of what keeps an agent from an answer. Which fields come with them: `events`, `rows` and `stored`."""
    return {"errors.json": [str(code) for code in ErrorCode]}


def _corpus() -> Iterator[dict[str, Any]]:
    pages = _module("docs/metrics/make.py")
    for path in sorted((ROOT / "docs/metrics/examples").glob("*.yaml")):
        for which in ("passes", "fails"):
            yield result_to_json(pages.run(path.stem, which))
    for grade, _, _ in _module("tests/grading/test_codes.py").CASES.values():
        yield result_to_json(grade("the agent's words"))
    for prototype, config, given in ODD:
        spec = CriterionSpec("odd", prototype, config, expected_value=given.get("expected_value"))
        yield result_to_json(Checker(spec).check(_transcript(given), given.get("variables", {}), replies=None))


def _transcript(given: dict[str, Any]) -> Transcript:
    answer = given.get("answer", "The answer.")
    calls = tuple(ToolCall("a", name, arguments, "done", message=1) for name, arguments in given.get("calls", ()))
    messages = (Message("user", "Hi"), Message("assistant", answer, tool_calls=tuple(range(len(calls)))))
    return Transcript(messages, calls, final_output=answer, error=given.get("error"))


def _text(*metrics: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**more, "metrics": list(metrics)}


# What neither the pages nor those tests come to: prototype class, config, and what is judged.
ODD: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("TextResponse", "{", {}),
    ("TextResponse", _text({"type": "Regex", "pattern": "("}), {}),
    ("TextResponse", _text({"type": "Nothing"}), {}),
    ("TextResponse", _text({"type": "TextMatch"}), {}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "x"}), {"answer": ""}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "{{unknown}}"}), {}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "{{hole}}"}), {"variables": {"hole": ""}}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "{{bad"}), {}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "x"}), {"error": RunError("server", "it failed", "")}),
    ("TextResponse", _text({"type": "Lexical"}), {}),
    ("TextResponse", _text({"type": "Lexical", "to": "???", "method": "rouge_l"}), {}),
    ("TextResponse", _text({"type": "Similarity", "to": "x", "min": 0.8}), {}),
    ("TextResponse", _text({"type": "Judge", "criteria": "Is it good?"}), {}),
    ("TextResponse", _text({"type": "Human", "question": "Is it good?"}), {}),
    ("TextResponse", _text({"type": "Python", "function": "checks:polite"}), {}),
    ("TextResponse", _text({"type": "Cost", "max": 1}), {}),
    ("TextResponse", _text({"type": "Latency", "max": 1}), {}),
    ("TextResponse", _text({"type": "Leak", "system_prompt": True}), {}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "x"}, extract_code_block=1), {}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "x"}, extract_code_block=1), {"answer": "```sql\nSELECT"}),
    ("TextResponse", _text({"type": "TextMatch", "contains": "x"}, extract_by_regex="/x: (.*)/"), {}),
    ("TextResponse", _text(), {}),
    ("JsonResponse", _text({"type": "Json", "equals": 1}), {"answer": "no JSON"}),
    ("JsonResponse", _text({"type": "Json", "schema": {"enum": [1, 2]}}), {"answer": "3"}),
    ("JsonResponse", _text({"type": "Json", "schema": {"maximum": 2}}), {"answer": "3"}),
    ("JsonResponse", _text({"type": "Json", "schema": {"uniqueItems": True}}), {"answer": "[1, 1]"}),
    ("JsonResponse", _text({"type": "Json", "schema": {"type": "string", "format": "colour"}}), {"answer": '"red"'}),
    ("JsonResponse", _text({"type": "Json", "schema": {"$ref": "#/nowhere"}}), {"answer": "3"}),
    ("JsonResponse", _text({"type": "Json"}), {"answer": "1" + "0" * 5000}),
    ("JsonResponse", _text({"type": "Json"}), {"answer": "[" * 3000 + "]" * 3000}),
    ("JsonResponse", _text({"type": "TextMatch", "contains": "x"}, extract_path="length(a)"), {"answer": '{"a": 1}'}),
    ("Retrieval", _text({"type": "Retrieval", "relevant": "{{a}}"}, tool="find"),
     {"calls": [("find", {})], "variables": {"a": 1}}),
    ("Retrieval", _text({"type": "Retrieval", "relevant": ["a"]}, tool="find", path="x"), {"calls": [("find", {})]}),
    ("ToolResponse", _text({"type": "ToolCheck", "tools": [{"name": "find"}]}), {"calls": [("find", "{broken")]}),
    ("ToolResponse",
     _text({"type": "ToolCheck", "tools": [{"name": "find", "max_calls": 1}], "forbidden_tools": ["drop"]}),
     {"calls": [("find", {}), ("find", {}), ("drop", {})]}),
    ("ToolResponse", _text({"type": "Trajectory", "mode": "strict", "calls": [{"name": "a"}, {"name": "b"}]}),
     {"calls": [("b", {}), ("a", {}), ("c", {})]}),
    ("Transcript", _text({"type": "Tokens", "max": 1}, {"type": "Steps", "min": 1}), {}),
)  # fmt: skip


def _note(found: dict[str, set[str]], where: str, said: dict[str, Any]) -> None:
    if said.get("code"):
        found[where].add(f"{said['code']}: {', '.join(sorted(said.get('fields') or ()))}".removesuffix(": "))


def _module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"golden_{Path(path).stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
