"""The versions of a criterion: listed, as a difference of texts, compared over the same runs, and restored.

Every version that ever judged a run is in the history, by its hash.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.agreement import sole_of_results
from agenteval_tui.analysis.comparison import compare_runs
from agenteval_tui.analysis.comparison_model import Comparison, Side
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_hash
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.spec import CriterionSpec, json_like
from agenteval_tui.history.comparison_queries import ComparedCriterion, ComparedRun, compared_runs
from agenteval_tui.history.criterion_versions import CriterionVersion, former_name, text_of, versions_of
from agenteval_tui.history.records import is_imported
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_from_dict, specs_of
from agenteval_tui.runs.stored_judgments import JudgeLabels, stored_answers
from agenteval_tui.suites.editing import CriterionEdit, TestEdit, save_test
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.yaml.save import save_config
from agenteval_tui.uxon.serialize import to_text

MOST_RUNS = 1_000
"""Runs that two versions are compared over: the newest."""
_SHORTEST = 4  # digits of a hash: fewer are a version's number in the list


class Versions(Struct, frozen=True):
    """The versions of one criterion, newest first, each with its text; `current` is the hash in the suite's file ("":
    the file or the criterion is gone). `was_named`: what it was called before its first version here; "": as now."""

    suite_key: str
    test_id: str
    criterion: str
    versions: tuple[CriterionVersion, ...]
    texts: dict[str, str]
    current: str = ""
    was_named: str = ""

    def named(self, reference: str) -> CriterionVersion:
        """By the start of its hash, `current`, or its number from 1 (the newest). Raises `AgentevalError`."""
        sought = self.current if reference == "current" else reference.casefold()
        if sought.isdecimal() and len(sought) < _SHORTEST and 1 <= int(sought) <= len(self.versions):
            return self.versions[int(sought) - 1]
        matching = [version for version in self.versions if sought and version.hash.startswith(sought)]
        if len(matching) == 1:
            return matching[0]
        there = ", ".join(short_hash(version.hash) for version in self.versions)
        what = "matches more than one version" if matching else "is not a version"
        raise AgentevalError(f"{reference!r} {what} of {self.criterion}", fix=f"its versions are {there}")


def versions(store: Store, suite_key: str, test_id: str, criterion: str) -> Versions:
    """The versions of a test's criterion. Raises `AgentevalError` when none ever judged a run."""
    criterion_versions = store.read(lambda connection: versions_of(connection, suite_key, test_id, criterion))
    if not criterion_versions:
        raise AgentevalError(
            f"no version of criterion {criterion!r} of {test_id} has graded a run", fix="run the test first"
        )
    current, names = "", tuple[str, ...]()
    try:
        loaded = load(suite_key)
        spec = _current_spec(loaded, test_id, criterion)
        current = spec.hash if spec is not None else ""
        tests = loaded.suite.tests if loaded.suite is not None else ()
        names = next((test.criterion_names for test in tests if test.id.casefold() == test_id.casefold()), ())
    except AgentevalError:
        pass  # the file is gone or can't be read: the history still has its versions
    texts = {
        criterion_version.hash: _spec_text(own_spec(store, suite_key, test_id, criterion, criterion_version.hash))
        for criterion_version in criterion_versions
    }
    was = store.read(lambda connection: former_name(connection, suite_key, test_id, criterion, names))
    return Versions(
        suite_key,
        test_id=test_id,
        criterion=criterion,
        versions=tuple(criterion_versions),
        texts=texts,
        current=current,
        was_named=was,
    )


def load(suite_key: str) -> LoadedSuite:
    """The suite's file as it is now. Raises `AgentevalError`."""
    if is_imported(suite_key):
        raise AgentevalError("these runs were imported: they have no suite file here")
    return load_suite(Path(suite_key))


def _current_spec(loaded: LoadedSuite, test_id: str, criterion: str) -> CriterionSpec | None:
    """The criterion as it is in the file; None: the file has none."""
    place = _place(loaded, test_id, criterion)
    if place is None or loaded.suite is None:
        return None
    return specs_of(next(test for test in loaded.suite.tests if test.id == place[0]).criteria)[place[1]]


def stored_spec(store: Store, content_hash: str) -> CriterionSpec:
    """A version by its whole hash. Raises `AgentevalError` when only its hash is known."""
    data = store.criterion(content_hash)
    if data is None:
        raise AgentevalError(f"version {short_hash(content_hash)} is not stored: only its hash is known")
    return _spec_of(data, content_hash)


def own_spec(store: Store, suite_key: str, test_id: str, criterion: str, content_hash: str) -> CriterionSpec:
    """A version as this criterion was written. Where that is not known (in a history of before, of a content that
    several criteria have) it is the version's meaning alone, in plain UXON: no text of another criterion.

    Raises `AgentevalError` when only its hash is known.
    """
    data = store.read(lambda connection: text_of(connection, suite_key, test_id, criterion, content_hash))
    if data is not None:
        return _spec_of(data, content_hash)
    spec = stored_spec(store, content_hash)
    # Its meaning is not known, and its text would be that of another criterion.
    if spec.broken:
        raise AgentevalError(f"version {short_hash(content_hash)} was never written in {test_id} / {criterion}")
    return replace(spec, name=criterion, description="", config=to_text(json_like(spec.value)))


def _spec_of(data: Mapping[str, Any], content_hash: str) -> CriterionSpec:
    try:
        return spec_from_dict(data)
    except ValueError as wrong:
        raise AgentevalError(f"version {short_hash(content_hash)} can't be read: {wrong}") from wrong


def _spec_text(spec: CriterionSpec) -> str:
    """A version as text: all that judges, and the config as it was written."""
    lines = [f"prototype_class: {spec.prototype}"]
    if spec.negate:
        lines.append("negate: true")
    if spec.pass_threshold is not None:
        lines.append(f"pass_threshold: {spec.pass_threshold:g}")
    if spec.expected_value is not None:
        lines.append(f"expected_value: {_json(spec.expected_value)}")
    return "\n".join([*lines, "config_uxon:", *(f"  {line}" for line in spec.config_text.splitlines())]) + "\n"


def text_difference(old: str, new: str, names: tuple[str, str]) -> list[str]:
    """A unified difference of two versions' texts, line by line without line ends; [] where they are alike."""
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="", n=10))


def compare_versions(
    store: Store, suite_key: str, test_id: str, old: CriterionSpec, new: CriterionSpec, name: str
) -> Comparison:
    """The newest runs of a test under two versions of one of its criteria; no agent and no judge is called.

    A run's outcome is that of the criterion alone. Where a judge was never asked with one of the versions it is an
    error, and errors are not verdicts.
    """
    rows = [row for row in store.runs_of_test(suite_key, test_id, MOST_RUNS) if row.status in _GRADED]
    runs = {run.id: run for run in store.read(lambda c: compared_runs(c, [row.id for row in rows]))}
    variables = {row.id: row.variables for row in rows}
    replies, labels = store.replies_of(list(runs)), store.labels(list(runs))
    labelled = JudgeLabels(store).of(suite_key)
    sides: tuple[list[ComparedRun], list[ComparedRun]] = ([], [])
    results: tuple[dict[int, list[ComparedCriterion]], dict[int, list[ComparedCriterion]]] = ({}, {})
    for run_id, transcript in store.transcripts(list(runs)):
        run = runs[run_id]
        for number, spec in enumerate((old, new)):
            own = [label for label in labels if label.run_id == run_id]
            sole = sole_of_results(store.results(run_id)) if any(label.whole for label in own) else ""
            named = replace(spec, name=name)  # the version may be stored under another test's name
            answers = stored_answers(
                [named],
                transcript,
                variables=variables[run_id],
                stored=replies.get(run_id, ()),
                labels=own,
                sole=sole,
                labelled=labelled,
            )
            criterion_result = compile_criterion(named).check(
                transcript, variables[run_id], explain=False, replies=answers
            )
            # The same output under both: each run is a case of its own, and no repetition of another.
            sides[number].append(
                replace(run, row=run.rowid, status=str(criterion_result.outcome), score=criterion_result.score)
            )
            results[number][run.rowid] = [
                ComparedCriterion(run.rowid, spec.hash, name, str(criterion_result.outcome), criterion_result.score)
            ]
    compared = [
        Side(kind="version", name=f"{name} {short_hash(spec.hash)}", reference=spec.hash, runs=tuple(runs_))
        for spec, runs_ in zip((old, new), sides, strict=True)
    ]
    comparison = compare_runs(compared[0], compared[1], results[0], results[1])
    # Nobody has to ask who changed it.
    return replace(comparison, tests=tuple(replace(test, pairs=()) for test in comparison.tests))


_GRADED = ("passed", "failed", "needs_review")


def restore(loaded: LoadedSuite, test_id: str, criterion: str, version: CriterionSpec) -> LoadedSuite:
    """Write a version into the suite's file, in place of the criterion with that name; only its bytes change.

    Name, description, weight and severity stay as they are now: they are not part of a version. Raises `AgentevalError`
    when the criterion is not in the file, and what saving raises.
    """

    place = _place(loaded, test_id, criterion)
    now = _current_spec(loaded, test_id, criterion)
    if place is None or now is None or loaded.suite is None:
        raise AgentevalError(
            f"there is no criterion {criterion!r} in test {test_id} any more",
            where=str(loaded.path),
            fix="add one with that name, then restore it",
        )
    test, index = place
    changes = _changes(now, version)
    if changes:
        number = len(next(candidate for candidate in loaded.suite.tests if candidate.id == test).criteria)
        edits = [CriterionEdit(place, changes if place == index else {}) for place in range(number)]
        loaded = save_test(loaded, test, TestEdit(criteria=edits))
    restored = replace(now, config=version.config)
    if restored.value != now.value or restored.broken != now.broken:
        loaded = save_config(loaded, test, index, version.config_text)
    return loaded


def _changes(now: CriterionSpec, version: CriterionSpec) -> dict[str, Any]:
    """The keys beside the config that have to change, as the file has them; None takes a key out."""
    changes: dict[str, Any] = {}
    if now.prototype != version.prototype:
        changes["prototype_class"] = version.prototype_class
    if now.expected_value != version.expected_value:
        changes["expected_value"] = version.expected_value
    if now.negate != version.negate:
        changes["negate"] = True if version.negate else None
    if now.pass_threshold != version.pass_threshold:
        changes["pass_threshold"] = version.pass_threshold
    return changes


def _place(loaded: LoadedSuite, test_id: str, criterion: str) -> tuple[str, int] | None:
    """The test's id as the file writes it, and the criterion's number."""
    for test in loaded.suite.tests if loaded.suite is not None else ():
        if test.id.casefold() == test_id.casefold():
            names = test.criterion_names
            return (test.id, names.index(criterion)) if criterion in names else None
    return None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
