"""Writes a page for each metric, and the overview, from the models and from the examples beside this script.

python docs/metrics/make.py

An example is examples/<Metric>.yaml: `config` (as a person writes it), perhaps `prototype_class` (TextResponse) and
`expected_value`, and two recordings, `passes` and `fails`. A recording has `answer` and perhaps `system`, `user`,
`calls` [{name, arguments, result}], `total_ms`, `input_tokens`, `output_tokens`, `cost`, and `replies`: what a judge
or whoever else was asked said, in the order of the questions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.schema import object_type
from agenteval_tui.grading.explain import explain
from agenteval_tui.grading.registry import metric, metric_names, prototype, prototype_names
from agenteval_tui.grading.remote import RemoteMetric
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript, Usage
from agenteval_tui.uxon.schema import ArrayType, ObjectType, Property, Type, UnionType, expected
from agenteval_tui.views.evidence import fact_tree
from agenteval_tui.views.terminal import plain_text

HERE = Path(__file__).resolve().parent
_MADE = "Made by `docs/metrics/make.py` from the code; do not edit."


def pages() -> dict[str, str]:
    """All pages by file name."""
    names = [name for name in metric_names() if metric(name).__module__.startswith("agenteval_tui.")]
    made = {f"{name}.md": metric_page(name) for name in names}
    return {**made, "README.md": overview(names)}


def overview(names: list[str]) -> str:
    """The list of metrics, and the prototype classes with their properties."""
    lines = ["# Metrics", "", _MADE, "", "Metrics go into the list `metrics` of a `config_uxon`.", ""]
    for remote, title in (
        (False, "Metrics without requests"),
        (True, "Metrics that ask a model, a person or a program"),
    ):
        lines += [f"## {title}", "", "| metric | what it does |", "|---|---|"]
        for name in names:
            if issubclass(metric(name), RemoteMetric) is remote:
                lines.append(f"| [{name}]({name}.md) | {_cell(_sentence(object_type(metric(name)).doc))} |")
        lines.append("")
    lines += ["# Prototype classes", "", "A criterion's `prototype_class` selects what its metrics check.", ""]
    for name in prototype_names():
        model = prototype(name)
        if model.__module__.startswith("agenteval_tui."):
            kind = object_type(model)
            lines += [f"## {name}", "", kind.doc, "", *_table(kind)]
    return "\n".join(lines).rstrip() + "\n"


def metric_page(name: str) -> str:
    """The page of a metric."""
    kind = object_type(metric(name), name)
    lines = [f"# {name}", "", _MADE, "", kind.doc, "", "## Properties", "", *_table(kind)]
    for inner, where in _inner(kind):
        lines += [f"### {inner.name}", "", f"{inner.doc} It belongs in `{where}`.", "", *_table(inner)]
    example = example_of(name)
    prototype_class = example.get("prototype_class", "TextResponse")
    lines += ["## Example", "", f"Prototype class `{prototype_class}`, `config_uxon`:", ""]
    lines += ["```jsonc", example["config"].rstrip(), "```", ""]
    if "expected_value" in example:
        lines += [f"with the expected value `{json.dumps(example['expected_value'], ensure_ascii=False)}`.", ""]
    for which, said in (("passes", "This run passes"), ("fails", "This run fails")):
        recording = example[which]
        given = {key: value for key, value in recording.items() if key != "replies"}
        lines += [
            f"{said}:",
            "",
            "```yaml",
            yaml.safe_dump(given, allow_unicode=True, sort_keys=False, width=100).rstrip(),
        ]
        lines += ["```", ""]
        if "replies" in recording:
            lines += ["with this reply:", "", "```text"]
            lines += [*(_raw(reply) for reply in recording["replies"]), "```", ""]
        lines += ["```text", plain_text((fact_tree(explain([run(name, which)])),)), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def example_of(name: str) -> dict[str, Any]:
    """The example of a metric. Raises `FileNotFoundError`: every metric has one."""
    found: dict[str, Any] = yaml.safe_load((HERE / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def run(name: str, which: str) -> CriterionResult:
    """The verdict of a metric's example on its recording `which` ("passes" or "fails")."""
    example = example_of(name)
    recording = example[which]
    spec = CriterionSpec(
        "example", example.get("prototype_class", "TextResponse"), example["config"],
        expected_value=example.get("expected_value"),
    )  # fmt: skip
    checker = Checker(spec)
    transcript = _transcript(recording)
    replies: dict[str, Reply] = {}
    for raw in recording.get("replies", ()):
        asked = checker.requests(transcript, {}, replies)
        replies[asked[0].hash] = Reply(_raw(raw))
    return checker.check(transcript, {}, replies=replies)


def _raw(reply: Any) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)


def _transcript(recording: Mapping[str, Any]) -> Transcript:
    messages = [Message(role, recording[role]) for role in ("system", "user") if role in recording]
    calls: list[ToolCall] = []
    for number, one in enumerate(recording.get("calls", ())):
        result = one.get("result")
        text = None if result is None else _raw(result)
        messages.append(Message("assistant", "", tool_calls=(number,)))
        calls.append(ToolCall(f"c{number}", one["name"], one.get("arguments", {}), text, message=len(messages) - 1))
        if text is not None:
            messages.append(Message("tool", text, tool_call=number))
    answer = recording.get("answer", "")
    return Transcript(
        (*messages, Message("assistant", answer)),
        tuple(calls),
        Timing(total_ms=recording.get("total_ms")),
        Usage(recording.get("input_tokens"), recording.get("output_tokens"), cost=recording.get("cost")),
        final_output=answer,
    )


def _table(kind: ObjectType) -> list[str]:
    if not kind.properties:
        return ["It has no properties.", ""]
    lines = ["| property | type | default | meaning |", "|---|---|---|---|"]
    # What a metric has of its own comes first; name and weight, which each of them has, last.
    ordered = sorted(kind.properties, key=lambda one: one.name in ("name", "weight") and kind.name in metric_names())
    for one in ordered:
        lines.append(f"| `{one.name}` | {_cell(expected(one.type))} | {_default(one)} | {_cell(one.doc)} |")
    return [*lines, ""]


def _default(one: Property) -> str:
    if one.required:
        return "required"
    return "" if one.default is None else f"`{json.dumps(one.default, ensure_ascii=False)}`"


def _inner(kind: ObjectType) -> list[tuple[ObjectType, str]]:
    found: dict[str, tuple[ObjectType, str]] = {}

    def look(one: Type, where: str) -> None:
        if isinstance(one, UnionType):
            for option in one.options:
                look(option, where)
        elif isinstance(one, ArrayType):
            look(one.item, where)
        elif isinstance(one, ObjectType):
            found.setdefault(one.name, (one, where))

    for one in kind.properties:
        look(one.type, one.name)
    return list(found.values())


def _sentence(text: str) -> str:
    return text.split(". ", 1)[0].rstrip(".") + "."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for file_name, text in pages().items():
        (HERE / file_name).write_text(text, encoding="utf-8")
