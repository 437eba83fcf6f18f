"""The program's modules, read and parsed once for all tests that look through all of them.

To parse them takes two seconds, so these tests are of one group (`of_all_sources`): one worker has them.
"""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "agenteval_tui"
of_all_sources = pytest.mark.xdist_group("sources")


@cache
def modules() -> dict[str, tuple[ast.AST, ...]]:
    """{a module's path in the package: all nodes of its tree, the outer ones first}."""
    enabled = gc.isenabled()
    gc.disable()  # a million nodes, of which each stays
    found = {
        path.relative_to(PACKAGE).as_posix(): tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    gc.freeze()
    if enabled:
        gc.enable()
    return found
