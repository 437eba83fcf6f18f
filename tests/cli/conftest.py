"""The command line called in this process, and as a program of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents import registry as agents
from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.cli.main import main
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents import registry
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.grading import registry as grading
from agenteval_tui.grading.json_formats import format_checker

SCHEMAS_OF_SUITES: dict[object, str] = {}


@pytest.fixture(autouse=True)
def the_schema_of_suites_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` writes it, and to make it takes a sixth of a second. It is made anew where there are other extractors,
    metrics or kinds of agents, and where one of them can't be loaded."""

    def parts() -> tuple[object, ...]:
        extractors = [(name, grading.prototype(name)) for name in grading.prototype_names()]
        metrics = [(name, grading.metric(name)) for name in grading.metric_names()]
        return (*extractors, *metrics, *agents.kinds(), *agents.embedder_kinds())

    def suite_schema() -> Any:
        try:
            of = parts()
        except AgentevalError:
            return make()
        if of not in SCHEMAS_OF_SUITES:
            SCHEMAS_OF_SUITES[of] = json.dumps(make())
        return json.loads(SCHEMAS_OF_SUITES[of])

    about, make = registry.SCHEMAS["suite"]
    monkeypatch.setitem(registry.SCHEMAS, "suite", (about, suite_schema))


@cache
def validator(schema_name: str) -> Any:
    """What checks documents against that schema. (That it is a schema is tested in test_reading_back.py.)"""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema(schema_name), format_checker=format_checker())


@dataclass
class Result:
    code: int
    out: str
    err: str

    def json(self, schema_name: str) -> Any:
        """The one document on stdout, checked against its schema."""
        value = json.loads(self.out)
        validator(schema_name).validate(value)
        return value


@dataclass
class CommandLine:
    """Call it with the arguments. `opened` holds what the app was started with; it never really is."""

    capture: pytest.CaptureFixture[str]
    opened: list[AppStart] = field(default_factory=list)

    def __call__(self, *arguments: object) -> Result:
        self.capture.readouterr()

        def launch(start: AppStart) -> int:
            self.opened.append(start)
            return 0

        code = main([str(one) for one in arguments], launch_app=launch)
        captured = self.capture.readouterr()
        return Result(code, captured.out, captured.err)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def program(installed: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The program as a process: stdin closed, stdout and stderr as pipes."""

    def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        options.setdefault("timeout", 60)
        return subprocess.run(
            [installed / "agenteval", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, **options.pop("env", {})},
            check=False,
            **options,
        )

    return run


SUITE = """\
name: Orders
agent: shop
agents:
  shop: {kind: demo, version: v1, pace: 0}
defaults: {timeout: 30}
tests:
  - id: good
    name: Says where it is
    prompt: "Where is my order #W1042?"
    tags: [smoke]
    criteria:
      - name: Names the order
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: W1042}]}
  - id: bad
    name: Says what it never says
    prompt: "Where is my order #W1042?"
    criteria:
      - name: Names a whale
        prototype_class: TextResponse
        config_uxon: |
          {"metrics": [{"type": "TextMatch", "contains": "white whale"}]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite with one test that passes and one that fails, for the bundled agent."""
    path = tmp_path / "orders.suite.yaml"
    path.write_text(SUITE, "utf-8")
    return path
