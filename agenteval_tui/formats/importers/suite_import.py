"""Tests of other tools as a suite's file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import free_name
from agenteval_tui.core.json_values import with_texts
from agenteval_tui.core.storable import storable
from agenteval_tui.formats.json_sanitize import replace_non_finite
from agenteval_tui.grading.placeholders import literally
from agenteval_tui.suites.load import load_bytes
from agenteval_tui.suites.slugs import ID, slug
from agenteval_tui.suites.templates import is_template
from agenteval_tui.suites.yaml.write import block_item, block_pair, double_quoted, plain

LARGEST = 20_000
"""Tests that are written into one file. More belong into a dataset."""

NOT_TRANSLATED = "Not translated:"
"""How the description of a criterion begins that asks a person for want of a counterpart."""


class PromptCall(Struct, frozen=True):
    """A test whose prompt a Python function makes: `test` lacks it. The function (`path/to/file.py:name`) gets the
    variables, or promptfoo's `context`; its text stands between `prefix` and `suffix`."""

    test: dict[str, Any]
    function: str
    variables: Mapping[str, Any]
    prefix: str = ""
    suffix: str = ""


class FoundTests(Struct):
    """The tests of a foreign file: `tests` with the keys of a suite, what was left out, and notes on the rest.
    `templates`: other criteria to choose from, which become a comment. `metrics`, `agent`, `agents`: the
    suite's keys of these names.
    `calls`: tests that need a function of the user's to run, which an import does only with permission.
    `module_text`: the Python module `module`, which criteria of the tests call; it belongs beside the suite.
    `names_files`: criteria call code in files beside the imported one.
    """

    name: str = ""
    tests: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    templates: list[dict[str, Any]] = field(default_factory=list)
    calls: list[PromptCall] = field(default_factory=list)
    metrics: str = ""
    agent: str = ""
    agents: dict[str, dict[str, Any]] = field(default_factory=dict)
    module: str = ""
    module_text: str = ""
    names_files: bool = False

    def note(self, text: str) -> None:
        """Say `text`, once."""
        if text not in self.notes and len(self.notes) < 100:
            self.notes.append(text)


def literal_prompt(text: str) -> dict[str, Any]:
    """The keys of a test that asks exactly `text`, also where that looks like a template."""
    if is_template(text):
        return {"prompt": "{{ prompt_text }}", "variables": {"prompt_text": text}}
    return {"prompt": text}


def needs_manual_work(name: str, what: str, *, has_placeholders: bool = False) -> dict[str, Any]:
    """A criterion for a check that has no counterpart here: a person decides, until one is written.

    Leaving it out would let the test pass for less than it asked. `has_placeholders`: braces in `what` are those of
    the format, and name the test's variables, as here.
    """
    question = f"Does the answer fulfil this? {what}"[:500]
    return {
        "name": name,
        "description": f"{NOT_TRANSLATED} {what}",
        "prototype_class": "TextResponse",
        "config_uxon": {
            "metrics": [{"type": "Human", "question": question if has_placeholders else literally(question)}]
        },
    }


def checked(name: str, metric: Mapping[str, Any], *, prototype: str = "TextResponse", **more: Any) -> dict[str, Any]:
    """A criterion with one metric."""
    return {"name": name, "prototype_class": prototype, "config_uxon": {"metrics": [dict(metric)]}, **more}


def checked_literally(
    name: str, metric: Mapping[str, Any], *, prototype: str = "TextResponse", **more: Any
) -> dict[str, Any]:
    """The same of a metric from a format without placeholders: braces in its texts are meant as such."""
    return checked(name, with_texts(metric, literally), prototype=prototype, **more)


def suite_text(imported: FoundTests, *, source: str) -> str:
    """The tests as the text of a suite's file. Raises `AgentevalError` when there are none, or it would not be read."""
    if not imported.tests:
        why = f": {imported.skipped[0]}" if imported.skipped else ""
        raise AgentevalError(f"there are no tests in this file{why}", where=source)
    if len(imported.tests) > LARGEST:
        raise AgentevalError(
            f"there are {len(imported.tests):,} tests in this file, more than a suite should have ({LARGEST:,})",
            where=source,
            fix="make it a dataset: `dataset: {file: ...}` in a test",
        )
    lines = [
        f"name: {_scalar(imported.name or Path(source).stem)}",
        f"description: {_scalar(f'Imported from {source}.')}",
        *([f"metrics: {imported.metrics}"] if imported.metrics else []),
        *([f"agent: {_scalar(imported.agent)}"] if imported.agent else []),
        *([block_pair("agents", imported.agents, 0, "\n")] if imported.agents else []),
    ]
    used_ids: set[str] = set()
    items = []
    for test in imported.tests:
        whole = {"id": _free_id(test, used_ids), **{key: value for key, value in test.items() if key != "id"}}
        items.append(block_item(_writable(whole, imported), column=2, eol="\n"))
    text = "\n".join(lines) + "\ntests:\n" + "\n\n".join(items) + "\n" + _commented(imported.templates)
    # Read as it will be: what is wrong in it must not come to light only when it is run.
    loaded = load_bytes(text.encode("utf-8", "replace"), Path("imported.suite.yaml"))
    wrong = next((problem for problem in loaded.problems if problem.severity == "error"), None)
    if loaded.suite is None or wrong is not None:
        reason = f"line {wrong.line}: {wrong.message}" if wrong is not None else "it can't be read"
        raise AgentevalError(f"the tests of this file make no valid suite: {reason}", where=source)
    return text


def _writable(test: Mapping[str, Any], imported: FoundTests) -> Mapping[str, Any]:
    """The test without what YAML or UTF-8 can't say; half a character (JavaScript cuts emoji in two) is noted."""
    finite: dict[str, Any] = replace_non_finite(test)
    text = json.dumps(finite, ensure_ascii=False)
    if (whole := storable(text)) == text:
        return finite
    imported.note(f"{test['id']}: half a character was replaced by \ufffd")
    writable: dict[str, Any] = json.loads(whole)
    return writable


def _commented(templates: Sequence[Mapping[str, Any]]) -> str:
    if not templates:
        return ""
    written = "\n".join(block_item(dict(each), column=6, eol="\n") for each in templates)
    lines = [f"#{line}" if line.strip() else "#" for line in written.split("\n")]
    return "\n".join(
        ["", "# Criteria to choose from: remove the # in front, and move them below `criteria:`.", *lines, ""]
    )


def _free_id(test: Mapping[str, Any], used_ids: set[str]) -> str:
    own_id = str(test.get("id") or "")
    if not ID.fullmatch(own_id):
        own_id = slug(own_id or str(test.get("name") or ""))[:60].strip("-._")
    # What is left of a name may begin with a sign that no id begins with.
    base = own_id if ID.fullmatch(own_id) else "test"
    candidate = free_name(base, lambda test_id: test_id.casefold() in used_ids)
    used_ids.add(candidate.casefold())
    return candidate


def _scalar(text: str) -> str:
    return plain(text) or double_quoted(text)
