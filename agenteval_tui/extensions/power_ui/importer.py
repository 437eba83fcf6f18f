"""Power UI's test cases, as it exports them: data sheets of AI_TEST_CASE and AI_TEST_CRITERION.

    {"object_alias": "axenox.GenAI.AI_TEST_CASE", "columns": [...], "rows": [{"UID": "0x...", "NAME": ..., ...}]}

A folder of exports has a file for each of the two; the criteria name their test case by its UID. One file may hold
both as a list, or by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.suite_import import FoundTests, literal_prompt, needs_manual_work
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.stream.small_document import read_document
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading import registry
from agenteval_tui.grading.registry import UnknownNameError
from agenteval_tui.suites.model import Context

CASES, CRITERIA = "AI_TEST_CASE", "AI_TEST_CRITERION"

_MULTILINE = "// Multiline text delimited by"
_BESIDE = 50  # files of a folder that are looked at for the criteria


def can_read(value: Any) -> bool:
    """Whether a file's first value is a data sheet of test cases or of criteria, or has them by name."""
    if not isinstance(value, Mapping):
        return False
    return _object_of(value) in (CASES, CRITERIA) or CASES in value or CRITERIA in value


def _object_of(sheet: Mapping[str, Any]) -> str:
    return plain_text(sheet.get("object_alias")).rpartition(".")[2].upper()


def tests(source: Source) -> FoundTests:
    """A test for each test case; the criteria out of this file, or out of the one beside it."""
    rows = _rows(read_document(source, "PyYAML"))
    found_tests = FoundTests(name=source.path.stem)
    if not rows[CRITERIA] or not rows[CASES]:
        missing = CASES if rows[CRITERIA] else CRITERIA
        # Power UI exports each object into a file of its own.
        for beside in _beside(source.path, missing):
            rows[missing] += beside
            found_tests.note(f"{missing} was read from the file beside this one")
    if not rows[CASES]:
        raise AgentevalError(
            "there are criteria in this file and no test cases",
            where=str(source.path),
            fix="name the export of AI_TEST_CASE, or put both into one folder",
        )
    by_case = grouped((plain_text(_cell(row, CASES)).lower(), row) for row in rows[CRITERIA])
    for number_, case in enumerate(rows[CASES], 1):
        own = [*_nested(case), *by_case.pop(plain_text(_cell(case, "UID")).lower(), [])]
        _add(case, own, found_tests, number_)
    lost = sum(len(rows) for rows in by_case.values())
    if lost:
        belong = "criterion belongs" if lost == 1 else "criteria belong"
        found_tests.skipped.append(f"{lost} {belong} to test cases that are not in this file")
    return found_tests


def _rows(document: Any) -> dict[str, list[Mapping[str, Any]]]:
    rows: dict[str, list[Mapping[str, Any]]] = {CASES: [], CRITERIA: []}
    for sheet in document if isinstance(document, list) else [document]:
        if not isinstance(sheet, Mapping):
            continue
        kind = _object_of(sheet)
        if kind in rows:
            rows[kind] += _maps(sheet.get("rows"))
        for key in rows:
            listed = sheet.get(key)
            rows[key] += _maps(listed.get("rows") if isinstance(listed, Mapping) else listed)
    return rows


def _nested(case: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Criteria inside their test case, as a subsheet."""
    cell = _cell(case, CRITERIA)
    return _maps(cell.get("rows") if isinstance(cell, Mapping) else cell)


def _beside(path: Path, sheet: str) -> Iterator[list[Mapping[str, Any]]]:
    named = (file for file in sorted(path.parent.glob("*.json")) if sheet in file.name.upper())
    for other in islice((path_beside for path_beside in named if path_beside.resolve() != path.resolve()), _BESIDE):
        try:
            with Source(other) as source:
                rows = _rows(read_document(source, "PyYAML"))[sheet]
        except (AgentevalError, OSError):
            continue
        if rows:
            yield rows


def _add(case: Mapping[str, Any], criteria: list[Mapping[str, Any]], imported: FoundTests, number_: int) -> None:
    name = plain_text(_cell(case, "NAME")).strip() or f"test case {number_}"
    prompt = _text(_cell(case, "PROMPT"))
    if not prompt.strip():
        imported.skipped.append(f"{name}: it has no prompt")
        return
    test: dict[str, Any] = {"name": name}
    if description := _text(_cell(case, "DESCRIPTION")).strip():
        test["description"] = description
    test |= literal_prompt(prompt)
    context = _context(_cell(case, "CONTEXT"), name, imported)
    if context:
        test["context"] = context
    if not criteria:
        imported.note(f"{name}: it has no criteria; a person decides until there are some")
    test["criteria"] = [_criterion(row, index, name, imported) for index, row in enumerate(criteria, 1)] or [
        needs_manual_work("Good", "Power UI has no criteria for this test case")
    ]
    imported.tests.append(test)
    if _cell(case, "AI_AGENT"):
        imported.note("agents are known to Power UI by ids: name yours as `agent:` or with --agent")


def _criterion(row: Mapping[str, Any], index: int, case: str, imported: FoundTests) -> dict[str, Any]:
    config = _cell(row, "CONFIG_UXON")
    prototype = plain_text(_cell(row, "PROTOTYPE") or _cell(row, "PROTOTYPE_CLASS") or _cell(row, "PROTOTYPE_PATH"))
    criterion: dict[str, Any] = {"name": plain_text(_cell(row, "NAME")).strip() or f"criterion {index}"}
    if description := _text(_cell(row, "DESCRIPTION")).strip():
        criterion["description"] = description
    if expected := _text(_cell(row, "EXPECTED_VALUE")):
        criterion["expected_value"] = expected
    written = plain_text(_cell(row, "WEIGHT")).strip()
    weight = number(written.replace(",", "."))  # a German table has a decimal comma
    if written and (weight is None or weight < 0):
        imported.note(
            f"{case}, {criterion['name']!r}: its weight {written!r} is left out: it must be a number, 0 or greater"
        )
    elif weight is not None and weight != 1:
        criterion["weight"] = weight
    prototype_class = prototype.replace("\\", "/").rpartition("/")[2] or "TextResponse"
    try:
        registry.prototype(prototype_class)
    except UnknownNameError as error:
        imported.note(f"{case}, {criterion['name']!r}: {error.what}: a person decides; write a criterion in its place")
        settings = json.dumps({"prototype_class": prototype, "config_uxon": config}, ensure_ascii=False)
        manual = needs_manual_work(criterion["name"], f"Power UI's criterion {settings}", has_placeholders=True)
        own = criterion.pop("description", "")
        return {**criterion, **manual, "description": " ".join(filter(None, (own, manual["description"])))}
    criterion["prototype_class"] = prototype_class
    # As text, so that comments and all else of UXON stay what they are.
    criterion["config_uxon"] = (
        config if isinstance(config, str) else json.dumps(config or {}, indent=2, ensure_ascii=False)
    )
    return criterion


def _context(data: Any, name: str, imported: FoundTests) -> dict[str, Any]:
    if isinstance(data, str):
        try:
            data = json.loads(data) if data.strip() else {}
        except (ValueError, RecursionError):
            imported.note(f"{name}: its context is not JSON and was left out")
            return {}
    if not isinstance(data, Mapping):
        return {}
    context = {key: _joined(value) for key, value in data.items() if key in Context.model_fields and value is not None}
    unknown = sorted(key for key in data if key not in Context.model_fields)
    if unknown:
        imported.note(f"{name}: of its context {', '.join(unknown)[:200]} is not known here and was left out")
    return context


def _joined(value: object) -> object:
    """A value with texts for what Power UI exports as a list of lines."""
    if isinstance(value, list):
        if value and isinstance(value[0], str) and value[0].startswith(_MULTILINE):
            return "\n".join(plain_text(item) for item in value[1:])
        return [_joined(item) for item in value]
    return {key: _joined(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _text(value: Any) -> str:
    return plain_text(_joined(value))


def _cell(row: Mapping[str, Any], name: str) -> object:
    """A cell; columns are called by the attribute, in any case."""
    if name in row:
        return row[name]
    return next((value for key, value in row.items() if key.upper() == name), None)


def _maps(rows: Any) -> list[Mapping[str, Any]]:
    return (
        [row for row in rows if isinstance(row, Mapping)]
        if isinstance(rows, Iterable) and not isinstance(rows, str | Mapping)
        else []
    )


FORMAT = Format(
    name="power-ui",
    title="Power UI test cases",
    looks_like="JSON with `object_alias` ...AI_TEST_CASE and `rows`",
    can_read=can_read,
    tests=tests,
    page="coming-from/power-ui",
    rank=80,
)
