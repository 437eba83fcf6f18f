"""Which tests an execution has: by id, by tags, by what failed before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.display import command_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.history.store import Store
from agenteval_tui.runs.plan.model import DEFAULT, arm_of
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Suite, Test
from agenteval_tui.suites.suite_names import unique_names


class SelectedTest(Struct, frozen=True):
    """A test that takes part, with the suite that it is in. `suite_label`: the suite's name, told from the others'."""

    loaded: LoadedSuite
    suite: Suite
    test: Test
    suite_label: str

    @property
    def folder(self) -> Path:
        """The suite's folder: relative paths of the suite are meant from it."""
        return Path(self.loaded.key).parent  # the path was resolved when the suite was read

    @property
    def where(self) -> str:
        """The test's place in its file."""
        return f"{self.loaded.path}:{self.loaded.line_of(self.test.id)}"


class Failed:
    """What failed in an earlier execution: which rows of which tests, in which variation."""

    def __init__(self, reference: str, failed_runs: Iterable[tuple[str, str, str, str]]) -> None:
        self.reference = reference
        self._rows: dict[tuple[str, str], dict[str, set[str]]] = {}
        for suite_key, test_id, variation, row_key in failed_runs:
            self._rows.setdefault((suite_key, test_id), {}).setdefault(variation, set()).add(row_key)

    def has(self, suite_key: str, test_id: str) -> bool:
        """Whether any run of this test failed."""
        return (suite_key, test_id) in self._rows

    def wants(self, suite_key: str, test_id: str, variation: str, row_keys: Sequence[str]) -> bool:
        """Whether the row with one of these keys failed in this variation (no key: a test without a dataset). A test
        that has got or lost its dataset since: all of it."""
        rows = self._rows.get((suite_key, test_id), {}).get(variation)
        return rows is not None and (not row_keys or not rows.isdisjoint(row_keys) or "" in rows)


def failed_before(options: PlanOptions, store: Store | None) -> Failed | None:
    """What failed, or ended in an error, in the execution `options.failed_from`; None when that is not asked.

    The arms of an A/B comparison count as the variation that they were made of, unless there shall be arms again.
    Raises `AgentevalError`.
    """
    if options.failed_from is None:
        return None
    if store is None:
        raise AgentevalError("without a history it is not known which tests failed last")
    execution = store.execution(options.failed_from)
    base = execution.options.get("variation") or ""
    arms = bool(execution.options.get("ab")) and not options.ab
    return Failed(
        options.failed_from,
        (
            (row.suite_key, row.test_id, _plain(row.variation, base) if arms else row.variation, row.row_key)
            for row in store.runs_of_execution(execution.id)
            if row.status in ("failed", "error")
        ),
    )


def _plain(variation: str, base: str) -> str:
    return ("" if base == DEFAULT else base) if arm_of(variation) else variation


def choose(loaded: Sequence[LoadedSuite], options: PlanOptions, failed: Failed | None) -> list[SelectedTest]:
    """The tests that `options` name, in the order of the suites. Raises `AgentevalError` when none is left."""
    if not loaded:
        raise AgentevalError("there is no suite to run", fix="name a file `*.suite.yaml`, or a folder with some")
    for loaded_suite in loaded:
        _check_valid(loaded_suite, named=bool(options.tests))
    labels = unique_names((each.key, each.suite.name) for each in loaded if each.suite is not None)
    every = [
        SelectedTest(loaded_suite, loaded_suite.suite, test, labels[loaded_suite.key, loaded_suite.suite.name])
        for loaded_suite in loaded
        if loaded_suite.suite is not None
        for test in loaded_suite.suite.tests
    ]
    for name in options.tests:
        if not any(_means(name, selected_test) for selected_test in every):
            ids = [selected_test.test.id for selected_test in every]
            fix = did_you_mean(name, ids, names("tests", ids), quotes="'")
            raise AgentevalError(f"there is no test {name!r}", fix=fix)
    tags = {tag.casefold() for tag in options.tags}
    chosen = [
        selected_test
        for selected_test in every
        if (not options.tests or any(_means(name, selected_test) for name in options.tests))
        and tags <= {tag.casefold() for tag in (*selected_test.suite.tags, *selected_test.test.tags)}
        and (failed is None or failed.has(selected_test.loaded.key, selected_test.test.id))
    ]
    if not chosen:
        raise AgentevalError(_why_none(every, options))
    return chosen


def _means(name: str, chosen: SelectedTest) -> bool:
    """Whether `name` is this test: its id, or `FILE::ID` where several suites have a test of that id."""
    file, mark, test_id = name.rpartition("::")
    if test_id.casefold() != chosen.test.id.casefold():
        return False
    loaded = chosen.loaded
    return not mark or file in (loaded.key, loaded.path.name, str(loaded.path))


def _check_valid(loaded: LoadedSuite, *, named: bool) -> None:
    errors = [problem for problem in loaded.problems if problem.severity == "error"]
    # A test that is named can be tried while another one of its suite is still wrong.
    if not errors or (named and loaded.suite is not None and loaded.suite.tests):
        return
    first = errors[0]
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    raise AgentevalError(
        f"the suite can't be run: {first.message}{more}",
        where=first.where,
        fix=first.fix or f"`{command_line('agenteval', 'validate', str(loaded.path))}` lists all problems",
    )


def _why_none(every: Sequence[SelectedTest], options: PlanOptions) -> str:
    if not every:
        return "the suites have no tests"
    limits = []
    if options.tests:
        limits.append("named " + ", ".join(options.tests))
    if options.tags:
        limits.append("with the tags " + ", ".join(options.tags))
    if options.failed_from:
        limits.append(f"that failed in execution {options.failed_from}")
    return f"none of {count(len(every), 'test')} is left: no test " + " and ".join(limits)


# Words


def names(kind: str, options: Iterable[str]) -> str:
    """The first of `options`, to choose from."""
    listed = list(dict.fromkeys(options))
    if not listed:
        return f"there are no {kind}"
    return f"{kind}: {abridged(listed, 8)}"
