"""What is shown of files that changed between two states of an agent's project."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval_tui.analysis.code_changes import FileChange, PassedBefore
from agenteval_tui.core.display import one_line
from agenteval_tui.core.phrasing import listed
from agenteval_tui.views.model import View, paragraphs, text

_SHOWN = 5


def passed_before_view(tests: Iterable[PassedBefore]) -> View:
    """`order-status passed with earlier code; files changed since: tools.py`, a line for tests of the same changes."""
    return paragraphs(
        text(
            (one_line(listed(broken.tests, _SHOWN)), "bold"),
            f" passed with earlier code; files changed since: {file_changes_text(broken.files)}",
        )
        for broken in tests
    )


def file_changes_text(changes: Sequence[FileChange]) -> str:
    """`tools.py, prompts.md (added) and 3 more`, what changed first; "" for none."""
    # What changed says more than what came or went.
    ordered = sorted(changes, key=lambda change: change.change != "changed")
    return listed(
        [
            one_line(change.name, 60) + ("" if change.change == "changed" else f" ({change.change})")
            for change in ordered
        ],
        _SHOWN,
    )
