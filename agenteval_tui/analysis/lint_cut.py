"""Texts that a `#` cuts short, as problems of a suite."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.suites.cut_texts import cut_texts
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.yaml_tree import Node
from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import Problem

CUT = "cut-text"


def cut_problems(loaded: LoadedSuite, node: Node | None) -> Iterator[Problem]:
    """A warning for each text below `node` that YAML reads only up to a `#`."""
    for one in cut_texts(loaded, node):
        rest = one.meant[len(one.read) :].strip()
        message = f"the {one.key} ends before `{one_line(rest, 60)}`: YAML takes what follows ` #` for a comment"
        fix = f"put it in quotes: {one.fix.edits[0].text}; or write `# ` if a comment is meant"
        yield loaded.problem(CUT, one.start, one.end, message, one_line(fix, 300), "warning")
