"""Broken and odd configs: what is said about each, what it still means, and what its fixes make of it.

A line of corpus.jsonl: `text`; `by` (parse: the text alone, check: against the types of conftest.py); the `value` that
is read in spite of all; `problems` as [severity, code, marked text, message]; `fixed`, the text after all fixes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.parse import parse

CASES = [json.loads(line) for line in Path(__file__).with_name("corpus.jsonl").read_text("utf-8").splitlines()]
Diagnose = Callable[[str], tuple[Diagnostic, ...]]


@pytest.mark.parametrize("case", CASES, ids=[case["text"][:60] for case in CASES])
def test_case(case: dict[str, Any], diagnose: Diagnose) -> None:
    text = case["text"]
    look: Diagnose = diagnose if case["by"] == "check" else (lambda source: parse(source).diagnostics)
    assert parse(text).value == case["value"]
    found = look(text)
    assert [[d.severity, d.code, text[d.start : d.end], d.message] for d in found] == case["problems"]
    fixed = text
    for _ in range(30):
        fix = next((d.fix for d in look(fixed) if d.fix), None)
        if fix is None:
            break
        fixed = fix.apply(fixed)
    assert fixed == case.get("fixed", text)


def test_the_corpus_is_not_small() -> None:
    assert len({case["text"] for case in CASES}) == len(CASES) >= 150
    assert {code for case in CASES for _, code, _, _ in case["problems"]} >= {
        *("syntax", "trailing-comma", "duplicate-key", "not-finite", "control-character", "open-comment", "empty"),
        *("unknown-property", "unknown-type", "wrong-type", "wrong-value", "out-of-range", "missing-required"),
        *("bad-regex", "regex-delimiter"),
    }
