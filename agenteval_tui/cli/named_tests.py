"""`FILE::TEST` among the paths of a verb: one test of a suite, named as pytest names it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import LoadedSuite

_MARK = "::"
_STDIN = "-"
_LISTED = 8


class TestAddress(Struct, frozen=True):
    """A test of a suite's file. `key`: the file, as a suite has it."""

    __test__ = False  # for pytest, which would collect it

    file: Path
    test: str

    @property
    def key(self) -> str:
        """The suite's key."""
        return os.path.realpath(self.file.expanduser())

    @property
    def text(self) -> str:
        """As it was written."""
        return f"{self.file}{_MARK}{self.test}"


class Named(Struct, frozen=True):
    """The paths of a verb: `whole` files and folders, and single tests."""

    whole: tuple[Path, ...]
    tests: tuple[TestAddress, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The given files and folders, and the file of each single test once."""
        return (*self.whole, *dict.fromkeys(test.file for test in self.tests if test.file not in self.whole))

    def chosen(self, loaded: Sequence[LoadedSuite]) -> tuple[str, ...]:
        """The chosen tests of these suites, each as `KEY::ID`; (): all tests. Raises `AgentevalError` if a readable
        suite doesn't have a named test."""
        if not self.tests:
            return ()
        by_key = {loaded_suite.key: loaded_suite for loaded_suite in loaded}
        for address in self.tests:
            if (suite := by_key.get(address.key)) is not None and suite.suite is not None:
                _require(address, suite)
        return tuple(
            f"{loaded_suite.key}{_MARK}{test}"
            for loaded_suite in loaded
            for test in loaded_suite.test_nodes
            if self.takes(loaded_suite.key, test)
        )

    def takes(self, key: str, test_id: str) -> bool:
        """Whether this test of the suite with this key is chosen."""
        test_ids = {test.test.casefold() for test in self.tests if test.key == key}
        return not test_ids or test_id.casefold() in test_ids or key in self._whole_keys

    @property
    def _whole_keys(self) -> set[str]:
        return {os.path.realpath(path) for path in discover(path for path in self.whole if str(path) != _STDIN)}


def named(paths: Sequence[Path]) -> Named:
    """Separates the paths of single tests (`FILE::TEST`) from other paths. Raises `AgentevalError` if FILE is not a
    file."""
    whole: list[Path] = []
    tests: list[TestAddress] = []
    for path in paths:
        file, mark, test = str(path).rpartition(_MARK)
        # The mark may be in the name of a file that exists.
        if not mark or not file or not test or path.exists():
            whole.append(path)
        elif Path(file).expanduser().is_dir():
            raise AgentevalError(
                f"{file} is a folder, and a test is in a file",
                where=str(path),
                fix=f"name the suite's file: FILE{_MARK}{test}",
            )
        else:
            tests.append(TestAddress(Path(file), test))
    return Named(tuple(whole), tuple(tests))


def paths_and_tests(paths: Sequence[Path], tests: Sequence[str]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """For verbs that take files and ids apart: `FILE::TEST` is that file with that test. Raises `AgentevalError` where
    the two can't be told apart any more: whole files or several files beside a test, or `--test`."""
    selection = named(paths)
    if not selection.tests:
        return tuple(paths), tuple(tests)
    refuse_both(selection, tests)
    if len(selection.paths) > 1:
        raise AgentevalError(
            "tests of one file only can be named here",
            where=selection.tests[0].text,
            fix="name the files, and --test ID",
        )
    return selection.paths, tuple(test.test for test in selection.tests)


def refuse_both(selection: Named, tests: Sequence[str]) -> None:
    """Raise `AgentevalError` where tests are named in two ways."""
    if selection.tests and tests:
        raise AgentevalError(
            f"--test and {selection.tests[0].text} both name tests",
            fix=f"name each as FILE{_MARK}TEST, without --test",
        )


def concerns(problem: Problem, loaded: Iterable[LoadedSuite], tests: Sequence[str]) -> bool:
    """Whether a problem is in one of the named tests (`ID` or `FILE::ID`), or above all tests of a file with one."""
    for suite in loaded:
        if str(suite.path) != problem.file or suite.suite is None:
            continue
        begins = sorted((suite.line_of(test_id), test_id) for test_id in suite.test_nodes)
        # A problem belongs to the last test that begins above it; above the first test it concerns all.
        here = [test_id for line, test_id in begins if line <= problem.line]
        names = [name.rpartition(_MARK) for name in tests]
        own = {test.casefold() for file, _, test in names if not file or _is_file(file, suite)}
        return bool(own) and (not here or here[-1].casefold() in own)
    return False


def _is_file(name: str, suite: LoadedSuite) -> bool:
    return name in (suite.key, suite.path.name, str(suite.path))


def _require(address: TestAddress, loaded: LoadedSuite) -> None:
    if address.test.casefold() in loaded.test_nodes:
        return
    ids = [test.id for test in loaded.suite.tests] if loaded.suite is not None else []
    near = closest(address.test, ids)
    fix = f"did you mean {address.file}{_MARK}{near}?" if near else f"its tests: {abridged(ids, _LISTED)}"
    raise AgentevalError(f"there is no test {address.test!r}", where=str(address.file), fix=fix)
