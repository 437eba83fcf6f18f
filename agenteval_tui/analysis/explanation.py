"""Why a run ended as it did: the one explanation that `why`, all reports and the exporters carry."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.blame.free_answer import ReadParts
from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.analysis.blame.recorded_facts import blame_beside
from agenteval_tui.analysis.code_changes import EarlierProgram, stored_earlier_program
from agenteval_tui.analysis.criterion_names import criterion_place
from agenteval_tui.analysis.function_exceptions import Raised, raised_around
from agenteval_tui.analysis.lost_context import LostFromSight, lost_from_sight
from agenteval_tui.analysis.repetitions import Divergence, divergence_beside
from agenteval_tui.core.display import one_line
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.explain import Fact, explain
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.finish_reason import Ending, ending_of
from agenteval_tui.transcripts.model import Note, Output, RunError, Transcript

_NOT_GRADED = "not graded"


_ERRORS = ("ERROR", "CRITICAL", "FATAL")
_SAYS_ERROR = re.compile(rf"\b(?:{'|'.join(_ERRORS)})\b")
"""In a line that a logger has written to the standard error."""
_MOST_LOGGED = 3


class Explanation(Struct, frozen=True):
    """A run with the criteria that are spoken of: each with its number (from 1) among all criteria of the run.

    `error` is why the agent did not finish, if it did not. `divergence`: where passing and failing repetitions of its
    test part; None when this was not looked at, or nothing parts them. `labels`: what people said of
    these criteria, and of the run. `ending` says why the answer ended, where that is worth a word. `judged`: whether
    any criterion was applied to the run.
    """

    run: RunRow
    criteria: tuple[tuple[int, CriterionResult], ...]
    error: RunError | None = None
    divergence: Divergence | None = None
    labels: tuple[Label, ...] = ()
    ending: Ending | None = None
    notes: tuple[Note, ...] = ()
    judged: bool = True
    blame: Blame | None = None
    """Which step the run was lost at; None: this was not looked at."""
    lost: tuple[LostFromSight, ...] = ()
    """What left the model's sight, as far as its requests are known."""
    raised: tuple[Raised, ...] = ()
    """What functions around the agent raised."""
    logged: tuple[Output, ...] = ()
    """What its code logged as errors, the last of it, where the error itself doesn't say where it is from."""
    earlier_program: EarlierProgram | None = None
    """The code with which the test last passed, if no run with this run's code passed."""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is shown of these criteria. That the agent did not finish is said once, of the run."""
        facts = explain(result for _, result in self.criteria)
        if self.error is None:
            return facts
        return tuple(
            replace(fact, children=(Fact(fact.mark, _NOT_GRADED),)) if _is_not_graded(result) else fact
            for fact, (_, result) in zip(facts, self.criteria, strict=True)
        )

    @property
    def address(self) -> str:
        """What to say to `agenteval why` to see this again: RUN, or RUN/NUMBER for one criterion."""
        return address_of(self.run.id, self.criteria[0][0] if len(self.criteria) == 1 else None)


def _is_not_graded(result: CriterionResult) -> bool:
    """Whether it was skipped because the agent did not finish. A history without codes has only a sentence for it."""
    return result.outcome is Outcome.SKIPPED and (
        result.code == Code.NOT_FINISHED or bool(not result.code and result.message and not result.source)
    )


def address_of(run: str, number: int | None = None) -> str:
    """The address of a run, or of the criterion of that number in it."""
    return run if number is None else f"{run}/{number}"


def address_of_criterion(run: str, names: Sequence[str], name: str) -> str:
    """The address of a run's criterion by its name, or by its number among the `names` of all its criteria where the
    name can't be part of an address: it is a number itself, or holds characters that no line holds."""
    if name in names and (name.isdecimal() or one_line(name) != name or name != name.strip()):
        return address_of(run, list(names).index(name) + 1)
    return f"{run}/{name}"


def explanation_of(
    row: RunRow,
    results: Sequence[CriterionResult],
    transcript: Transcript,
    labels: Sequence[Label] = (),
    *,
    criterion: str = "",
) -> Explanation:
    """The explanation of all criteria, or of the one that `criterion` names (see `criterion_named`), by this run alone:
    no other run is read."""
    chosen = (criterion_named(row.id, results, criterion),) if criterion else tuple(enumerate(results, 1))
    return replace(_explanation(row, chosen, transcript, labels), judged=bool(results))


def missed_of(
    row: RunRow, results: Sequence[CriterionResult], transcript: Transcript, labels: Sequence[Label] = ()
) -> Explanation:
    """The explanation of what did not pass."""
    passed = (Outcome.PASSED, Outcome.SKIPPED)
    missed = tuple(pair for pair in enumerate(results, 1) if pair[1].outcome not in passed)
    return _explanation(row, missed, transcript, labels)


def _explanation(
    row: RunRow,
    criteria: tuple[tuple[int, CriterionResult], ...],
    transcript: Transcript,
    labels: Sequence[Label],
) -> Explanation:
    names = {"", *(result.criterion for _, result in criteria)}
    return Explanation(
        row,
        criteria=criteria,
        error=transcript.error,
        labels=tuple(label for label in labels if label.criterion in names),
        ending=ending_of(transcript),
        notes=transcript.notes,
        raised=raised_around(transcript, (result for _, result in criteria)),
        logged=_logged_errors(transcript),
    )


def _logged_errors(transcript: Transcript) -> tuple[Output, ...]:
    if transcript.error is None or transcript.error.traceback is not None:
        return ()
    errors: list[Output] = []
    for output in transcript.output:
        if output.level.upper() in _ERRORS:
            errors.append(output)
        elif not output.level:
            errors += [replace(output, text=line) for line in output.text.splitlines() if _SAYS_ERROR.search(line)]
    return tuple(errors[-_MOST_LOGGED:])


def criterion_named(run: str, results: Sequence[CriterionResult], name: str) -> tuple[int, CriterionResult]:
    """The criterion that `name` means (`criterion_place`), with its number. Raises `AgentevalError`."""
    place = criterion_place([result.criterion for result in results], name, f"run {run}")
    return place + 1, results[place]


def stored_explanation(store: Store, row: RunRow, criterion: str = "") -> Explanation:
    """The explanation of all criteria, where repetitions part, and which step the run was lost at; with `criterion`
    that of one criterion, without the step. Raises `AgentevalError`: there is no such criterion, or several are."""
    transcript, results = store.transcript(row.id), store.results(row.id)
    blame = None if criterion else blame_beside(store, row, ReadParts(transcript, results))
    explained = explanation_of(row, results, transcript, store.labels([row.id]), criterion=criterion)
    # A blame has looked at the requests and at earlier code already.
    if blame is not None:
        lost, earlier = blame.lost, blame.earlier_program
    else:
        lost, earlier = lost_from_sight(transcript, results), stored_earlier_program(store, row)
    return replace(explained, divergence=divergence_beside(store, row), blame=blame, lost=lost, earlier_program=earlier)
