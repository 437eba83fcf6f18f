"""Which suite of one side is which of the other, where their keys differ: files that were moved, imports of two files.

The key of an import is `import:FORMAT:FILE`. Two imports of one eval have other files, so their suites are told by
their tests: the ids that both have, and what was asked in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from agenteval_tui.analysis.comparison_model import PairedSuites, Side
from agenteval_tui.history.comparison_queries import ComparedRun

Questions = Mapping[int, tuple[str, str]]
"""By plan: the beginning of the prompt, and the variables as JSON."""
_IMPORT = "import:"
_NOTHING = ("", "{}")


def paired_suites(a: Side, b: Side, questions: Questions | None = None) -> tuple[PairedSuites, ...]:
    """The suites that belong together though their keys differ; only where that is without doubt."""
    left, right = ({run.suite_key: run.suite_name for run in side.runs} for side in (a, b))
    found = []
    for key, name in left.items():
        others = [other for other, called in right.items() if called == name and other not in left]
        alike = [one for one, called in left.items() if called == name]
        if key not in right and len(others) == 1 and len(alike) == 1:
            found.append(PairedSuites(key, others[0], name))
    known = {one.was for one in found} | {one.now for one in found}
    was, now = unpaired_imports(a, b)
    for rank in (2, 1, 0):
        pairs = [
            (one, other)
            for one, other in product(was, now)
            if not {one, other} & known and _rank(was[one], now[other], questions or {}) == rank
        ]
        for one, other in pairs:
            if sum(one == each for each, _ in pairs) == sum(other == each for _, each in pairs) == 1:
                found.append(PairedSuites(one, other, right[other], "tests", rank > 0))
                known |= {one, other}
    return tuple(found)


def unpaired_imports(a: Side, b: Side) -> tuple[dict[str, list[ComparedRun]], dict[str, list[ComparedRun]]]:
    """By key, the runs of each side's imports of files that the other side has not got."""
    sides: list[dict[str, list[ComparedRun]]] = [{}, {}]
    for number, (side, other) in enumerate(((a, b), (b, a))):
        keys = {run.suite_key for run in other.runs}
        for run in side.runs:
            if run.suite_key.startswith(_IMPORT) and run.suite_key not in keys:
                sides[number].setdefault(run.suite_key, []).append(run)
    return sides[0], sides[1]


def _rank(was: Sequence[ComparedRun], now: Sequence[ComparedRun], questions: Questions) -> int:
    """How surely two imports are of one eval. 2: of one format, and a test was asked the same; 1: the latter; 0: of
    one format, and a test has the same id; -1: nothing says so."""
    cases, others = _by_case(was), _by_case(now)
    if not cases.keys() & others.keys():
        return -1
    of_one_format = _format(was[0].suite_key) == _format(now[0].suite_key)
    for case in cases.keys() & others.keys():
        if any(_alike(one, other, questions) for one, other in product(cases[case], others[case])):
            return 2 if of_one_format else 1
    return 0 if of_one_format else -1


def _by_case(runs: Sequence[ComparedRun]) -> dict[tuple[str, str], set[int]]:
    found: dict[tuple[str, str], set[int]] = {}
    for run in runs:
        found.setdefault((run.test_id, run.row_case), set()).add(run.plan)
    return found


def _alike(one: int, other: int, questions: Questions) -> bool:
    if one == other:
        return True
    said = zip(questions.get(one, ()), questions.get(other, ()), strict=False)
    return any(was == now and was not in _NOTHING for was, now in said)


def _format(key: str) -> str:
    return key.removeprefix(_IMPORT).partition(":")[0]
