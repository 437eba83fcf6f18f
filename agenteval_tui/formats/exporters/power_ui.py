"""The tests of a suite as Power UI's test cases: data sheets of AI_TEST_CASE and AI_TEST_CRITERION."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from agenteval_tui.formats.exporters.export import POWER_UI
from agenteval_tui.formats.exporters.single_prompts import tests_with_a_prompt
from agenteval_tui.suites.model import Criterion, Suite, Test
from agenteval_tui.suites.templates import is_template

NAMESPACE = "axenox.GenAI"
_PROTOTYPES = "axenox/genai/AI/TestCriteria"
_CASE = ("UID", "NAME", "DESCRIPTION", "PROMPT", "CONTEXT", "AUTOMATABLE_FLAG", "LOCALE")
_CRITERION = ("UID", "AI_TEST_CASE", "NAME", "DESCRIPTION", "EXPECTED_VALUE", "WEIGHT", "PROTOTYPE", "CONFIG_UXON")


def sheets_of(suite: Suite, key: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The two data sheets, and notes on what Power UI has no place for. `key` tells suites apart in the UIDs."""
    notes: list[str] = []
    cases, criteria = [], []
    for test, prompt in tests_with_a_prompt(suite, notes):
        if lost := [sheet_loss.said for sheet_loss in POWER_UI if sheet_loss.of(test)]:
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
    return [_sheet("AI_TEST_CASE", _CASE, cases), _sheet("AI_TEST_CRITERION", _CRITERION, criteria)], notes


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
