"""From a suite or an execution to the comparison with its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.text.problems import AgentevalError

if TYPE_CHECKING:
    from agenteval_tui.tui.screens.frame import FrameScreen


def compare_newest(screen: FrameScreen, suite_key: str, test_id: str = "") -> None:
    """Compare the newest execution of a suite (or of one of its tests) with the baseline."""
    store = screen.agenteval.session.store

    def newest() -> str:
        from agenteval_tui.history.rows import RunFilter

        found = store.execution_rows(store.execution_ids(RunFilter(suite_key=suite_key, test_id=test_id))[:1])
        if not found:
            raise AgentevalError("this was never run: there is nothing to compare", mend="r runs it")
        return found[0].id

    screen.ask(newest, lambda execution: screen.agenteval.compare("", execution), group="compare")
