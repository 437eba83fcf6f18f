"""Several changes at once: a list in a file, or several texts for one place. Each is a branch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError, raise_first
from agenteval_tui.core.private_files import read_small
from agenteval_tui.suites.yaml.line_index import ProblemReport
from agenteval_tui.suites.yaml.tree import compose, plain_data

_PARTED = re.compile(r"^-{3,}[ \t]*$\n?", re.MULTILINE)


def read_sweep(path: Path) -> list[Mapping[str, Any]]:
    """The changes in a YAML or JSON file. Raises `AgentevalError` if the file is not a list of changes."""
    text = read_small(path, "the file of a sweep")
    if text is None:
        raise AgentevalError("there is no such file", where=str(path), fix="name a YAML or JSON file with a list")
    report = ProblemReport(text, path)
    root, _ = compose(text, report)
    raise_first(report.problems[:1])
    data = plain_data(root) if root is not None else None
    if not isinstance(data, list) or not data or not all(isinstance(entry, dict) for entry in data):
        raise AgentevalError(
            "a sweep is a list of changes",
            where=str(path),
            fix='write - {label: empty, tool_result: ""}, one per branch',
        )
    return data


def lines_of(text: str) -> list[str]:
    """Each line that is not empty, once."""
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def blocks_of(text: str) -> list[str]:
    """The texts between lines of `---`, each once; a text may have any lines, and be empty."""
    return list(dict.fromkeys(block.removesuffix("\n") for block in _PARTED.split(text)))
