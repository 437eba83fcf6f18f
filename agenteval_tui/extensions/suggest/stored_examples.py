"""The runs of a test as examples, labelled by people or by a judge's verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agenteval_tui.analysis.agreement import is_judged, sole_of_results
from agenteval_tui.analysis.criterion_names import criterion_place
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import listed
from agenteval_tui.extensions.suggest.examples import Example, Examples
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.labels import Label, label_of, labels_by_recording
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store

MOST_RUNS = 200
"""The number of runs to read as examples: all labelled runs, and the newest other runs."""
_CHARACTERS = 600_000
_FEW = 20
"""If answers are long, fewer runs without a label are read: until their answers have `_CHARACTERS` characters together,
but at least `_FEW`."""
_READ = 2_000
_MOST_LABELLED = 400
_ENDED = ("passed", "failed", "error", "needs_review", "skipped")


class TestExamples(Struct, frozen=True):
    """The runs of a test (or of an execution: `test_id` is "" then), newest first.

    `criterion`: the criterion that the labels are about; "": the whole run. `judge`: the labels are a judge's verdicts,
    and not people's labels.
    """

    __test__ = False
    examples: Examples
    test_id: str = ""
    criterion: str = ""
    judge: bool = False


def examples_of_test(
    store: Store,
    suite_key: str,
    test_id: str,
    *,
    criterion: str = "",
    from_judge: bool = False,
    opinions: Mapping[str, bool] | None = None,
) -> TestExamples:
    """The newest runs of a test with their labels: of the whole run, or of a criterion (a number from 1, a name or its
    beginning); or with a judge's verdicts.

    `opinions`: more labels, by run id. They are not stored, and override stored labels.
    Raises AgentevalError if the test has no runs, or if it is not clear which judge is meant.
    """
    return _examples(
        store, store.runs_of_test(suite_key, test_id, _READ), test_id, criterion, from_judge, opinions or {}
    )


def examples_of_execution(
    store: Store,
    execution_id: str,
    *,
    from_judge: bool = False,
    opinions: Mapping[str, bool] | None = None,
) -> TestExamples:
    """The same for the runs of an execution, whatever test they are of: imported runs have often one test each."""
    # The newest first, as the runs of a test come.
    rows = store.runs_of_execution(execution_id)[::-1][:_READ]
    return _examples(store, rows, "", "", from_judge, opinions or {})


def _examples(
    store: Store,
    rows: Sequence[RunRow],
    test_id: str,
    criterion: str,
    from_judge: bool,
    more: Mapping[str, bool],
) -> TestExamples:
    rows = [row for row in rows if row.status in _ENDED and not row.error_kind]
    if not rows:
        what = f"test {test_id} has" if test_id else "this execution has"
        raise AgentevalError(f"{what} no run that ended with an answer", fix="agenteval run PATH")
    if from_judge:
        criterion, opinions = _judged(store, rows[: 2 * MOST_RUNS], criterion)
    else:
        names = list(_names(store, rows)) if criterion else []
        criterion = names[criterion_place(names, criterion)] if criterion else ""
        opinions = _labelled(store, rows, criterion)
    opinions = {**opinions, **more}
    if missing := sorted(set(more) - {row.id for row in rows}):
        raise AgentevalError(
            f"run {missing[0]} is not one of these runs, or has no answer", fix="label runs of one test"
        )
    labelled = [row for row in rows if row.id in opinions][:_MOST_LABELLED]
    others = [row for row in rows if row.id not in opinions][: max(0, MOST_RUNS - len(labelled))]
    transcripts = dict(store.transcripts([row.id for row in labelled]))
    room = _CHARACTERS - sum(len(transcript.final_output) for transcript in transcripts.values())
    for number, (run, transcript) in enumerate(store.transcripts([row.id for row in others])):
        # Reading long answers takes most of the time: their characters are what is bounded.
        room -= len(transcript.final_output)
        if room < 0 and number >= _FEW:
            break
        transcripts[run] = transcript
    examples = [
        Example(row.id, transcripts[row.id], row.variables, opinions.get(row.id))
        for row in rows
        if row.id in transcripts
    ]
    return TestExamples(Examples(examples), test_id, criterion, from_judge)


def _names(store: Store, rows: Sequence[RunRow]) -> dict[str, None]:
    """The criteria that judged the newest run, in their order, and then others of the runs before."""
    # Older runs may have criteria that were since renamed; of many runs the names are read from the newest.
    return dict.fromkeys(result.criterion for row in rows[:50] for result in store.results(row.id))


def _labelled(store: Store, rows: Sequence[RunRow], criterion: str) -> dict[str, bool]:
    """What people said of the runs: the last label counts, also one of an older grading of the same recording."""
    labels = store.read(labels_by_recording)
    opinions: dict[str, bool] = {}
    for row in rows:
        run_labels = labels.get(row.recorded)
        if run_labels:
            label = _counting(run_labels, criterion, store.results(row.id))
            if label is not None:
                opinions[row.id] = label.good
    return opinions


def _counting(labels: Sequence[Label], criterion: str, results: Sequence[CriterionResult]) -> Label | None:
    sole = sole_of_results(results)
    if criterion:
        return label_of(labels, criterion, sole)
    whole = [label for label in labels if label.whole]
    return whole[-1] if whole else label_of(labels, sole, sole)


def _judged(store: Store, rows: Sequence[RunRow], criterion: str) -> tuple[str, dict[str, bool]]:
    """The judged criterion that is meant, and what its judge said of each run."""
    verdicts: dict[str, dict[str, bool]] = {}
    for row in rows:
        for result in store.results(row.id):
            if is_judged(result) and result.outcome in (Outcome.PASSED, Outcome.FAILED):
                verdicts.setdefault(result.criterion, {})[row.id] = result.outcome is Outcome.PASSED
    if not verdicts:
        raise AgentevalError("no judge gave a verdict on a run of this test", fix="leave out --from-judge")
    if not criterion and len(verdicts) > 1:
        names = listed([f'"{name}"' for name in verdicts])
        raise AgentevalError(f"several criteria of this test ask a judge: {names}", fix="name one: TEST/CRITERION")
    name = [*verdicts][criterion_place([*verdicts], criterion) if criterion else 0]
    return name, verdicts[name]
