"""The last runs of a test, why they fail, and the clearest failure of all tests."""

from __future__ import annotations

from msgspec import Struct

from agenteval_tui.analysis.test_gates import gates_of_test
from agenteval_tui.history.store import Store
from agenteval_tui.tui.presenters.suite_detail import TestRuns
from agenteval_tui.tui.presenters.suite_tree import SuiteTree
from agenteval_tui.views.failure import Failure, clearest, failures

LAST_RUNS = 20  # of a test, that the details speak of
MOST_READ = 50  # failed tests of which the clearest is looked for


def read_runs(store: Store, suite_key: str, test_id: str) -> TestRuns:
    """The last runs of a test, and why it fails. Raises `AgentevalError`."""
    rows = store.runs_of_test(suite_key, test_id, LAST_RUNS)
    return TestRuns(rows, failures(rows, store.results), gates_of_test(store, rows))


class Offer(Struct, frozen=True):
    """The clearest failure of the first run: how many of how many tests passed."""

    suite_key: str
    test_id: str
    failure: Failure
    passed: int
    tests: int


def read_offer(store: Store, tree: SuiteTree) -> Offer | None:
    """The clearest failure of what was run of these tests; None while an execution runs, or where all passed. Raises
    `AgentevalError`."""
    if any(row.status == "running" for row in store.execution_rows(sorted(tree.executions))):
        return None
    failed = {(node.suite.loaded.key, node.test.id): node for node in tree.failed_tests() if node.test is not None}
    reasons = {
        which: failures(store.runs_of_test(*which, LAST_RUNS), store.results) for which in list(failed)[:MOST_READ]
    }
    which = clearest(reasons)
    ran = sum(len(suite.summaries) for suite in tree.overview.suites)
    if which is None:
        return None
    return Offer(*which, reasons[which].reasons[0], ran - len(failed), ran)
