"""A test as the texts of a form, and which were changed. Read from the file itself, so that an invalid test can
be fixed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.editing import CRITERION_KEYS, CriterionEdit, TestEdit
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.yaml.edit import YamlFragment, yaml_text
from agenteval_tui.suites.yaml.tree import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    is_null,
    plain_data,
    resolve,
    untyped,
)

TEXTS = ("id", "name", "description", "prompt", "category", "agent")
NUMBERS = ("repeat", "timeout", "pass_threshold")
YAMLS = ("variables", "messages", "turns", "context", "variations", "stop")
DATASET = ("dataset_file", "dataset_limit")
DATASET_MORE = ("row_id", "split", "encoding")
GATE = "gate"
TEST_FIELDS = (*TEXTS, "tags", *NUMBERS, GATE, *DATASET, *YAMLS)
CRITERION_FIELDS = CRITERION_KEYS
_CRITERION_NUMBERS = ("weight", "pass_threshold")
_YES = ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")


class CriterionForm(Struct):
    """A criterion's texts by field. `source`: which of the file's criteria it is (or a copy of), None: a new one."""

    source: int | None
    values: dict[str, str] = field(default_factory=dict)

    def copy(self) -> CriterionForm:
        """Another one with the same texts."""
        return CriterionForm(self.source, dict(self.values))


class TestForm(Struct):
    """A test's texts by field ("" where nothing stands), and its criteria in their order. `dataset_more`: the keys of
    its dataset that have no field, which stay as they are."""

    __test__ = False  # not a test of this project

    values: dict[str, str] = field(default_factory=dict)
    criteria: list[CriterionForm] = field(default_factory=list)
    dataset_more: dict[str, str] = field(default_factory=dict)

    def copy(self) -> TestForm:
        """Another one with the same texts."""
        return TestForm(dict(self.values), [criterion.copy() for criterion in self.criteria], dict(self.dataset_more))


def read_form(loaded: LoadedSuite, test_id: str) -> TestForm:
    """The form of a test as it is in the file. Raises `AgentevalError` when there is no such test."""
    real = resolve(loaded.node(test_id))
    form = TestForm(dict.fromkeys(TEST_FIELDS, ""))
    if not isinstance(real, MappingNode):
        return form
    for key in (*TEXTS, *NUMBERS):
        form.values[key] = _text(real.get(key), loaded)
    for key in YAMLS:
        form.values[key] = _yaml(real.get(key), loaded)
    gate = real.get(GATE)
    whole = resolve(gate) if gate is not None else None
    form.values[GATE] = _text(whole.get("pass_rate") if isinstance(whole, MappingNode) else gate, loaded)
    form.values["tags"] = ", ".join(_texts(real.get("tags")))
    dataset = real.get("dataset")
    there = resolve(dataset) if dataset is not None else None
    if isinstance(there, MappingNode):
        form.values["dataset_file"] = _text(there.get("file"), loaded)
        form.values["dataset_limit"] = _text(there.get("limit"), loaded)
        more = {key: _text(there.get(key), loaded) for key in DATASET_MORE}
        form.dataset_more = {key: text for key, text in more.items() if text}
    criteria = real.get("criteria")
    listed = resolve(criteria) if criteria is not None else None
    for number, item in enumerate(listed.items if isinstance(listed, SequenceNode) else ()):
        form.criteria.append(CriterionForm(number, _criterion(item, loaded, test_id, number)))
    return form


def _criterion(item: Node, loaded: LoadedSuite, test_id: str, number: int) -> dict[str, str]:
    real = resolve(item)
    values = dict.fromkeys(CRITERION_FIELDS, "")
    if not isinstance(real, MappingNode):
        return values
    for key in CRITERION_FIELDS:
        values[key] = _text(real.get(key), loaded)
    values["severity"] = values["severity"] or "error"
    values["negate"] = "true" if values["negate"] in _YES else ""
    try:
        values["config_uxon"] = loaded.config_source(test_id, number).text
    except AgentevalError:
        values["config_uxon"] = ""
    return values


def _text(node: Node | None, loaded: LoadedSuite) -> str:
    if node is None or is_null(node):
        return ""
    real = resolve(node)
    return real.text if isinstance(real, ScalarNode) else yaml_text(node, loaded.text)


def _yaml(node: Node | None, loaded: LoadedSuite) -> str:
    if node is None or is_null(node):
        return ""
    real = resolve(node)
    return yaml_text(real if not isinstance(real, ScalarNode) else node, loaded.text)


def _texts(node: Node | None) -> list[str]:
    data = plain_data(node) if node is not None else None
    return [str(item) for item in data] if isinstance(data, list) else [str(data)] if data is not None else []


# What was changed


def edit_of(base: TestForm, now: TestForm) -> TestEdit:
    """The edit that turns a test that reads as `base` into one that reads as `now`. A text that should be a number, but
    is not, goes into the file unchanged: the check reports it.
    """
    changes: dict[str, Any] = {}
    for key in TEST_FIELDS:
        before, after = base.values.get(key, ""), now.values.get(key, "")
        if before == after or key in DATASET:
            continue
        changes[key] = _value(key, after)
    if any(base.values.get(key) != now.values.get(key) for key in DATASET):
        changes["dataset"] = _dataset(now.values, base.dataset_more)
    return TestEdit(changes, _criteria(base.criteria, now.criteria))


def rebased_dataset(base: TestForm, now: TestForm, file: TestForm) -> dict[str, Any] | None:
    """The dataset of a test that reads as `file` by now: what `now` has changed of `base`, and else what is there."""
    values = {key: now.values[key] if now.values[key] != base.values[key] else file.values[key] for key in DATASET}
    return _dataset(values, file.dataset_more)


def _value(key: str, text: str) -> object:
    if key == "tags":
        return [entry.strip() for entry in text.split(",") if entry.strip()] or None
    # Of a prompt, spaces are content.
    if not text.strip() and key != "prompt":
        return None
    if key in YAMLS:
        return YamlFragment(text)
    if key == GATE:
        return {"pass_rate": number_of(text)}
    if key in NUMBERS:
        return number_of(text)
    return text or None


def number_of(text: str) -> str | int | float:
    """A number, or the text that is none."""
    value = untyped(ScalarNode(text.strip(), 0, 0))
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text.strip()


def _dataset(values: Mapping[str, str], more: Mapping[str, str]) -> dict[str, Any] | None:
    file, limit = values["dataset_file"].strip(), values["dataset_limit"].strip()
    if not file and not limit:
        return None
    return {"file": file, **({"limit": number_of(limit)} if limit else {}), **more}


def _criteria(base: Sequence[CriterionForm], now: Sequence[CriterionForm]) -> list[CriterionEdit] | None:
    criterion_edits = []
    for criterion_form in now:
        if criterion_form.source is None:
            criterion_edits.append(CriterionEdit(None, _new_criterion(criterion_form.values)))
            continue
        before = base[criterion_form.source].values
        changes = {
            key: _criterion_value(key, criterion_form.values[key])
            for key in CRITERION_FIELDS
            if criterion_form.values[key] != before[key]
        }
        criterion_edits.append(CriterionEdit(criterion_form.source, changes))
    same = [criterion_edit.source for criterion_edit in criterion_edits] == list(range(len(base))) and not any(
        criterion_edit.changes for criterion_edit in criterion_edits
    )
    return None if same else criterion_edits


def _criterion_value(key: str, text: str) -> object:
    if key == "negate":
        return True if text == "true" else None
    if key == "config_uxon":
        return text
    if not text.strip():
        return None
    return number_of(text) if key in _CRITERION_NUMBERS else text


def _new_criterion(values: Mapping[str, str]) -> dict[str, Any]:
    fields = {key: _criterion_value(key, values.get(key, "")) for key in CRITERION_FIELDS}
    if fields["severity"] == "error":
        fields["severity"] = None  # it is what one has that says nothing
    fields["name"] = fields["name"] or ""
    return {key: value for key, value in fields.items() if value is not None}


def new_criterion(name: str, prototype_class: str, config: str, expected_value: str | None = None) -> CriterionForm:
    """A criterion that is not in a file yet."""
    values = dict.fromkeys(CRITERION_FIELDS, "")
    values.update(name=name, prototype_class=prototype_class, config_uxon=config, severity="error")
    values["expected_value"] = expected_value or ""
    return CriterionForm(None, values)


def yaml_problems(form: TestForm) -> dict[str, str]:
    """What can't be read as YAML, by field: that can't be checked any further."""
    problems = {}
    for key in YAMLS:
        if form.values.get(key, "").strip():
            try:
                YamlFragment(form.values[key]).value  # noqa: B018  (it is read, to see whether it can be)
            except AgentevalError as error:
                problems[key] = f"{error.where}: {error.what}"
    return problems
