"""Writes the tables of keys in docs/suites.md from the suites' models; the text and the examples are written by hand.

python docs/make_suites.py

A table stands between `<!-- keys: MODEL -->` and `<!-- end -->`. A model without a table gets a section at the end.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from agenteval_tui.suites.model import Suite

PAGE = Path(__file__).with_name("suites.md")
_TABLE = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def models() -> dict[str, type[BaseModel]]:
    """The models of a suite file by name, from the outermost in."""
    found: dict[str, type[BaseModel]] = {}
    waiting: list[type[BaseModel]] = [Suite]
    while waiting:
        model = waiting.pop(0)
        if model.__name__ not in found:
            found[model.__name__] = model
            waiting += [one for field in model.model_fields.values() for one in inner_models(field.annotation)]
    return found


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that values of a type are or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from inner_models(one)


def page(text: str) -> str:
    """The page with its tables made anew."""
    there = {found[1] for found in _TABLE.findall(text)}
    for name in models().keys() - there:
        text = f"{text.rstrip()}\n\n## {name}\n\n<!-- keys: {name} -->\n<!-- end -->\n"
    return _TABLE.sub(lambda found: f"{found[1]}{_table(models()[found[2]])}{found[3]}", text)


def _table(model: type[BaseModel]) -> str:
    tables = _tables_of_agents()
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        nested = dict.fromkeys(f"[{label(one)}](#{anchor(one)})" for one in inner_models(field.annotation))
        value = tables["_value"](field.annotation) if not nested else _of_models(field.annotation, list(nested))
        default = "" if nested else tables["_default"](field)
        default = "needed" if field.is_required() else default
        lines.append(f"| `{field.alias or name}` | {value} | {default} | {tables['_cell'](field.description)} |")
    return "\n".join(lines) + "\n"


def _of_models(annotation: Any, links: list[str]) -> str:
    words = str(annotation)
    texts = ["text"] if words.startswith("str | ") else [f"`{one}`" for one in re.findall(r"Literal\['(\w+)'\]", words)]
    if words.startswith("list[str | list[str]"):
        texts = ["text", "words"]
    kinds = [word for mark, word in (("list[", "list"), ("dict[str", "by name")) if mark in words]
    return " or ".join([*texts, *links]) + (f" ({' or '.join(kinds)})" if kinds else "")


def anchor(model: type[BaseModel]) -> str:
    """The anchor of a model's section: the heading says what it is in a suite."""
    return HEADINGS[model.__name__].lower().replace("`", "").replace(" ", "-")


def label(model: type[BaseModel]) -> str:
    """What a value of a model is called: `an agent`, `a mock tool`."""
    return LABELS.get(model.__name__, model.__name__.lower())


LABELS = {
    "AgentConfig": "agent",
    "ChangedTool": "changed tool",
    "ContentPart": "part",
    "InputMessage": "message",
    "RequestResponse": "pair",
    "SampleTool": "mock tool",
    "ServiceReady": "what tells that it is ready",
    "SimulatedUser": "simulated user",
    "WorkdirCopy": "copy",
}
# What the sections are called: a model without an entry is not documented, and the test says so.
HEADINGS = {
    "Suite": "The file",
    "Defaults": "`defaults`",
    "AgentConfig": "`agents`",
    "Test": "`tests`",
    "InputMessage": "`messages`",
    "ContentPart": "Images and files",
    "SimulatedUser": "`user`",
    "Criterion": "`criteria`",
    "Variation": "`variations`",
    "Dataset": "`dataset`",
    "Gate": "`gate`",
    "Stop": "`stop`",
    "Context": "`context`",
    "SampleTool": "`sample_tools`",
    "RequestResponse": "`request_response_pairs`",
    "ChangedTool": "`without_tools` and `changed_tools`",
    "Service": "`services`",
    "ServiceReady": "`ready`",
    "Hook": "Hooks",
    "WorkdirCopy": "`workdir`",
    "Probe": "`state`",
}


def _tables_of_agents() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("docs_make_agents", Path(__file__).with_name("make_agents.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
