"""The tests of a suite as Power UI's test cases: data sheets of AI_TEST_CASE and AI_TEST_CRITERION."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from agenteval_tui.formats.exporters.suite_exporter import ExportedTests, SuiteExporter, tests_with_a_prompt
from agenteval_tui.suites.model import Criterion, Suite, Test
from agenteval_tui.suites.templates import is_template

NAMESPACE = "axenox.GenAI"
_PROTOTYPES = "axenox/genai/AI/TestCriteria"
_CASE = ("UID", "NAME", "DESCRIPTION", "PROMPT", "CONTEXT", "AUTOMATABLE_FLAG", "LOCALE")
_CRITERION = ("UID", "AI_TEST_CASE", "NAME", "DESCRIPTION", "EXPECTED_VALUE", "WEIGHT", "PROTOTYPE", "CONFIG_UXON")


class SheetLoss(Struct, frozen=True):
    """Something of a suite's test that Power UI's data sheets can't keep: its code, in words, whether a test has it."""

    code: str
    description: str
    of: Callable[[Test], bool]


LOSSES = (
    SheetLoss("repeat", "repetitions", lambda test: (test.repeat or 1) > 1),
    SheetLoss("variations", "variations", lambda test: bool(test.variations)),
    SheetLoss(
        "severity",
        "severity of criteria",
        lambda test: any(criterion.severity != "error" for criterion in test.criteria),
    ),
    SheetLoss("negate", "negated criteria", lambda test: any(criterion.negate for criterion in test.criteria)),
    SheetLoss(
        "pass_threshold",
        "thresholds",
        lambda test: (
            test.pass_threshold is not None or any(criterion.pass_threshold is not None for criterion in test.criteria)
        ),
    ),
    SheetLoss("gate", "gates", lambda test: test.gate is not None),
    SheetLoss("tags", "tags", lambda test: bool(test.tags)),
    SheetLoss("category", "categories", lambda test: test.category is not None),
    SheetLoss("agent", "agents", lambda test: test.agent is not None),
    SheetLoss("timeout", "timeouts", lambda test: test.timeout is not None),
    SheetLoss("stop", "early stops", lambda test: test.stop is not None),
)
"""Of a suite. The export names each test that has it; conversations of several turns and datasets are left out."""


def sheets_of(suite: Suite, key: str) -> ExportedTests:
    """The two data sheets. `key` tells suites apart in the UIDs."""
    notes: list[str] = []
    cases, criteria = [], []
    for test, prompt in tests_with_a_prompt(suite, notes):
        if lost := [sheet_loss.description for sheet_loss in LOSSES if sheet_loss.of(test)]:
            notes.append(f"{test.id}: not kept: {', '.join(lost)}")
        uid = _uid(f"{key}\0{test.id}")
        cases.append(
            {
                "UID": uid,
                "NAME": test.name or test.id,
                "DESCRIPTION": test.description,
                "PROMPT": prompt,
                "CONTEXT": test.context.as_dict() if test.context is not None else {},
                "AUTOMATABLE_FLAG": 1,
                "LOCALE": "",
            }
        )
        for index, criterion in enumerate(test.criteria):
            criteria.append(_criterion(criterion, test, uid, f"{key}\0{test.id}\0{index}", notes))
    sheets = [_sheet("AI_TEST_CASE", _CASE, cases), _sheet("AI_TEST_CRITERION", _CRITERION, criteria)]
    return ExportedTests(sheets, len(cases), notes)


def _criterion(criterion: Criterion, test: Test, case: str, key: str, notes: list[str]) -> dict[str, Any]:
    name = criterion.prototype_class.replace("\\", "/").rpartition("/")[2].removesuffix(".php")
    name = name if name.endswith("TestCriterion") else f"{name}TestCriterion"
    config: Any = criterion.config_uxon
    if is_template(config if isinstance(config, str) else json.dumps(config)):
        notes.append(f"{test.id}: the variables in the config of {criterion.name!r} stay as they are written")
    if isinstance(config, str):
        try:
            config = json.loads(config)
        except (ValueError, RecursionError):
            pass  # with comments it is UXON, which Power UI reads as text
    return {
        "UID": _uid(key),
        "AI_TEST_CASE": case,
        "NAME": criterion.name,
        "DESCRIPTION": criterion.description,
        "EXPECTED_VALUE": criterion.expected_value or "",
        "WEIGHT": criterion.weight,
        "PROTOTYPE": f"{_PROTOTYPES}/{name}.php",
        "CONFIG_UXON": config,
    }


def _sheet(alias: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "object_alias": f"{NAMESPACE}.{alias}",
        "columns": [{"name": column, "attribute_alias": column} for column in columns],
        "rows": rows,
    }


def _uid(key: str) -> str:
    return "0x" + hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]


EXPORTER = SuiteExporter(
    "power-ui", "Power UI test cases", sheets_of, tuple(sheet_loss.description for sheet_loss in LOSSES)
)
