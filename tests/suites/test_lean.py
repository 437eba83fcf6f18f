"""Reading a suite loads no more than it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = [
    "jinja2",
    "watchfiles",
    "httpx",
    "jsonschema",
    "sqlite3",
    "textual",
    "rich",
    "difflib",
    "asyncio",
    "rapidfuzz",
]


def test_loading_a_right_suite_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "a.suite.yaml"
    path.write_text(
        "tests: [{name: n, prompt: '{{a}}', variables: {a: 1}, "
        "criteria: [{name: a, prototype_class: T, config_uxon: x}]}]"
    )
    code = (
        "import json, sys\n"
        "from agenteval_tui.suites.load import load_suite\n"
        "assert load_suite(sys.argv[1]).ok\n"
        "from agenteval_tui.suites.templates import template_problems\n"
        "assert not template_problems('{{a}} and {{ a }}', ['a'])\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    out = subprocess.run([sys.executable, "-c", code, str(path)], cwd=root, capture_output=True, text=True, check=True)
    assert set(json.loads(out.stdout)) & set(HEAVY) == set()
