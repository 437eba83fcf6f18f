"""Edits of configs that are not saved yet, and those that are being saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval_tui.text.problems import AgentevalError

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.suites.load import LoadedSuite

DraftKey = tuple[str, str, str, int]
"""Suite, test, the criterion's name, and the how-manieth of that name: an edited file may move it."""


@dataclass(slots=True)
class Draft:
    """An edited config that is not saved, and what stood in the file when the edit began."""

    text: str
    base: str


@dataclass(frozen=True, slots=True)
class Saving:
    """What is being saved: it stays the same while the person goes elsewhere or goes on typing."""

    bench: Workbench
    key: DraftKey
    name: str
    index: int
    text: str


def index_in(fresh: LoadedSuite, saving: Saving) -> int:
    """Where the criterion stands in the file as it is now: others may have been put before it, or it is gone."""
    *_, name, number = saving.key
    for test in fresh.suite.tests if fresh.suite is not None else ():
        if test.id == saving.bench.run.test_id:
            places = [index for index, criterion in enumerate(test.criteria) if criterion.name == name]
            if len(places) >= number:
                return places[number - 1]
    raise AgentevalError(
        f"criterion `{name}` of test `{saving.bench.run.test_id}` is not in the file any more, so nothing was saved",
        where=str(fresh.path),
        mend="your edit stays in the editor; put the criterion back, then save again",
    )
