"""From a suite or a test to the comparison of its newest execution with its baseline."""

from __future__ import annotations

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import RunFilter
from agenteval_tui.tui.screens.base_screen import FrameScreen


def compare_newest(screen: FrameScreen, suite_key: str, test_id: str = "") -> None:
    """Compare the newest execution of a suite (or of one of its tests) with the baseline."""
    store = screen.agenteval.session.store

    def newest() -> str:
        found = store.execution_rows(store.execution_ids(RunFilter(suite_key=suite_key, test_id=test_id))[:1])
        if not found:
            raise AgentevalError("this was never run: there is nothing to compare", mend="r runs it")
        return found[0].id

    test = (suite_key, test_id) if test_id else None
    screen.ask(newest, lambda execution: screen.agenteval.compare("", execution, test=test), group="compare")
