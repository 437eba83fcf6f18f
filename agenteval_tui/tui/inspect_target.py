"""How a run is opened in Inspect: said once, for the app and for the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from msgspec import Struct

from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.tui.presenters.transcript_blocks import BlockKey


class RunToOpen(Struct, frozen=True):
    """The run to open, the first criterion to show ("" for the first failed one), and the runs of the same list."""

    run: str
    criterion: str
    runs: Sequence[str]


class InspectTarget(TypedDict, total=False):
    """Where to open Inspect. All fields are optional.

    `criterion`: the criterion to show; default: the first failed one. `runs`: the runs for next and previous. `edit`:
    focus the criterion's config. `at`: a place in the transcript. `config`: an unsaved edit of the criterion's config.
    `new`: a criterion that is not in a file yet, to try beside the others. `search`: a text to search for in the
    transcript; the first hit is in view. `view`: the tab to show (of `INSPECT_TABS`); `beside`:
    the run to compare with in the difference; default: the most useful one.
    """

    criterion: str
    runs: Sequence[str]
    edit: bool
    at: BlockKey | None
    config: str | None
    new: CriterionSpec | None
    search: str
    view: str
    beside: str
