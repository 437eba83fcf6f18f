"""The four questions, answered from what is stored: no agent is called, and it costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from agenteval_tui.analysis.blame.clues import clues_of
from agenteval_tui.analysis.blame.conversation import clues_of_several, is_of_several
from agenteval_tui.analysis.blame.expectation import Expectation, expectation_of
from agenteval_tui.analysis.blame.model import Blame, Clue, ClueCode, Fault, Possible, PrefixCount, Reproduces, Suspect
from agenteval_tui.analysis.blame.reliability import decides
from agenteval_tui.analysis.code_changes import EarlierProgram, Programs, earlier_program
from agenteval_tui.analysis.divergence import EVERYTHING, BranchPoint, Compared, Tree, placed_acts, rate_of
from agenteval_tui.analysis.lost_context import (
    LostFromSight,
    lost_before,
    lost_from_sight,
    needed_from_sight,
)
from agenteval_tui.analysis.repetitions import BESIDE, divergence_among, is_same_agent, is_same_test, repetitions
from agenteval_tui.analysis.statistics import fisher_exact, wilson
from agenteval_tui.core.directories import db_option
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.suites.row_keys import row_case
from agenteval_tui.transcripts.model import Transcript

OTHERS = 2
"""Steps that are named beside the first one."""
_NEVER = 0.3  # an upper end of the interval below which "never" is said: from 9 runs on, none of which passed
_CHANCE = 0.05  # a p value above which chance may explain where runs part


class NothingToBlameError(AgentevalError):
    """The run did not fail, or it is a run that no one has judged."""


class Repetitions(Struct, frozen=True):
    """The stored runs of the same test, this one included: those of its own agent, and how many of other agents passed.

    An agent whose code changed counts as another agent. `earlier`: the code with which the test last passed.
    `tree`: all as one tree, None where there is one run only; `parting`: where passing and failing ones part.
    `compared`: as in `Divergence`.
    """

    runs: int = 1
    passed: int = 0
    passed_elsewhere: int = 0
    runs_elsewhere: int = 0
    tree: Tree | None = None
    parting: BranchPoint | None = None
    compared: Compared = EVERYTHING
    earlier: EarlierProgram | None = None
    elsewhere: bool = False
    """Whether other agents, or other code, are among those that part."""


def free_answer(
    run: str,
    transcript: Transcript,
    results: Sequence[CriterionResult],
    specs: Mapping[str, CriterionSpec],
    stored: Repetitions | None = None,
    *,
    called_good: bool = False,
) -> Blame:
    """The free answer on a run that did not pass. `specs` by hash; `called_good`: a person said that the run, or what
    failed in it, is good. It reads nothing and calls no agent."""
    stored = stored or Repetitions()
    reproduces = _reproduces(stored)
    suspects = suspects_of(clues_in(run, transcript, results, specs, stored))
    named = suspects[: 1 + OTHERS]
    # Where the run passes more often than not, or a person calls it good, no step of it is to blame.
    at_once = reproduces == "luck" or called_good
    decisive = named[0] if named and not at_once and decides(named[0].clues[0].code) else None
    low, high = wilson(stored.passed, stored.runs)
    fault: Fault = "criterion" if called_good else decisive.fault if decisive is not None else "unknown"
    return Blame(
        run=run,
        reproduces=reproduces,
        runs=stored.runs,
        passed=stored.passed,
        low=low,
        high=high,
        possible=_possible(stored),
        fault=fault,
        free_fault=fault,
        decisive=decisive,
        others=named if decisive is None else named[1:],
        prefixes=_prefixes(run, transcript, stored),
        steps=len(transcript.messages),
        lost=lost_from_sight(transcript, results, expectation_of(results, specs)),
        earlier_program=stored.earlier,
    )


def clues_in(
    run: str,
    transcript: Transcript,
    results: Sequence[CriterionResult],
    specs: Mapping[str, CriterionSpec],
    stored: Repetitions | None = None,
) -> tuple[Clue, ...]:
    """All clues in a transcript, in no order."""
    expectation = expectation_of(results, specs)
    unseen = tuple(_unseen(transcript, results, expectation))
    # Several agents call no tools: the walk over the data flow would find nothing.
    if is_of_several(transcript):
        return *unseen, *clues_of_several(transcript)
    parted = _parted(run, transcript, stored) if stored is not None else None
    clues = (*unseen, *clues_of(transcript, expectation))
    return clues if parted is None else (parted, *clues)


def suspects_of(clues: Iterable[Clue]) -> tuple[Suspect, ...]:
    """The steps that clues point to, the one with the strongest clue first."""
    by_step: dict[int, list[Clue]] = {}
    # The strongest clue of all comes first, and so does its step.
    for clue in sorted(clues, key=lambda clue: clue.rank):
        step_clues = by_step.setdefault(clue.step, [])
        # The final answer is a clue of every failed text: it says nothing beside another one.
        if clue.code is not ClueCode.ANSWER or not step_clues:
            step_clues.append(clue)
    return tuple(Suspect(step, listed[0].fault, tuple(listed)) for step, listed in by_step.items())


class ReadParts(Struct, frozen=True):
    """The parts of a run that the caller has read already. None: read this part from the history."""

    transcript: Transcript | None = None
    results: Sequence[CriterionResult] | None = None
    repetitions: RepetitionReader | None = None


NOTHING_READ = ReadParts()


class RepetitionReader:
    """Reads the repetitions of runs, once for each test, agent and its configuration. If there are very many runs, the
    older runs are not among their own repetitions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[tuple[str, ...], Repetitions] = {}

    def of(self, row: RunRow) -> Repetitions:
        """The stored repetitions of a run."""
        own = (row.id,) if row.superseded else ()  # an older grading is compared with those of its own time
        # By execution, as each may have begun with another state of the agent's code.
        case = (
            row.suite_key,
            row.test_id,
            row.variation,
            str(row_case(row.row, row.row_key)),
            row.agent,
            row.agent_version,
            row.execution_id,
            *own,
        )
        if case not in self._read:
            self._read[case] = _stored(self._store, row)
        return self._read[case]


def blame_of(store: Store, row: RunRow, parts: ReadParts = NOTHING_READ) -> Blame:
    """The free answer for a stored run. Reads its newest `BESIDE` repetitions.

    Raises `NothingToBlameError` if the run passed, was not judged, or has no transcript.
    """
    if row.status not in ("failed", "error"):
        states = {"passed": "it passed", "needs_review": "it waits for a person"}
        raise NothingToBlameError(
            f"there is nothing to blame: {states.get(row.status, f'it is {row.status}')}",
            where=f"run {row.id}",
            fix="agenteval history --runs --outcome failed lists runs that failed",
        )
    transcript = store.transcript(row.id) if parts.transcript is None else parts.transcript
    if not transcript.messages:
        raise NothingToBlameError(
            "the run has no messages, so no step can be at fault",
            where=f"run {row.id}",
            fix=f"agenteval why {row.id}{db_option(store.path)}",
        )
    results = store.results(row.id) if parts.results is None else parts.results
    hashes = dict.fromkeys(result.criterion_hash for result in results if result.criterion_hash)
    specs = {digest: spec for digest in hashes if (spec := known_spec(store, digest)) is not None}
    called_good = _called_good(store.labels([row.id]), results)
    repetitions = (parts.repetitions or RepetitionReader(store)).of(row)
    return free_answer(row.id, transcript, results, specs, repetitions, called_good=called_good)


# Inside


def _stored(store: Store, row: RunRow) -> Repetitions:
    rows = [
        repetition
        for repetition in repetitions(store, row, everywhere=True, most=BESIDE)
        if repetition.status in _ENDED and is_same_test(repetition, row)
    ]
    # Of very many repetitions only the newest are read, and this may be an old one.
    if row.id not in {repetition.id for repetition in rows}:
        rows.append(row)
    programs = Programs(store, rows)
    of_agent = [repetition for repetition in rows if is_same_agent(repetition, row)]
    own = [repetition for repetition in of_agent if not programs.differ(repetition, row)]
    own_ids = {repetition.id for repetition in own}
    others = [repetition for repetition in rows if repetition.id not in own_ids]
    # The own agent's runs tell most; those of other agents only where they don't part.
    divergence = divergence_among(store, row.id, own)
    elsewhere = divergence.fork is None and bool(others)
    if elsewhere:
        divergence = divergence_among(store, row.id, [*own, *others])
    return Repetitions(
        len(own),
        passed=sum(run_row.status == "passed" for run_row in own),
        passed_elsewhere=sum(other.status == "passed" for other in others),
        runs_elsewhere=len(others),
        earlier=earlier_program(programs, row, of_agent),
        elsewhere=elsewhere,
        tree=divergence.tree,
        parting=divergence.fork,
        compared=divergence.compared,
    )


_ENDED = ("passed", "failed", "error")


def _called_good(labels: Sequence[Label], results: Sequence[CriterionResult]) -> bool:
    failed = {result.criterion for result in results if result.outcome == "failed"}
    # A person may change their mind: of each the last word counts.
    last: dict[tuple[str, str], Label] = {}
    for label in labels:
        if not label.unknown:
            last[label.criterion, label.who] = label
    return any(label.good and (label.whole or label.criterion in failed) for label in last.values())


def _reproduces(stored: Repetitions) -> Reproduces:
    if stored.runs < 2:
        return "once"
    if not stored.passed:
        return "always"
    return "luck" if 2 * stored.passed > stored.runs else "mostly"


def _possible(stored: Repetitions) -> Possible:
    if stored.passed or stored.passed_elsewhere:
        return "yes"
    return "never" if wilson(0, stored.runs + stored.runs_elsewhere)[1] < _NEVER else "unknown"


def _placed_path(run: str, transcript: Transcript, stored: Repetitions) -> list[tuple[int, int, int]]:
    """The steps of a run in the tree: message, runs and passed runs. Acts of one message are one step."""
    if stored.tree is None:
        return []
    placed = placed_acts(transcript, stored.compared)
    # An act that no message has, such as an error at the end, is put at the last one.
    last = max(len(transcript.messages) - 1, 0)
    path = zip(stored.tree.follow(run), placed, strict=False)
    return [(last if step is None else step, node.number, node.passed) for node, (_, step) in path]


def _prefixes(run: str, transcript: Transcript, stored: Repetitions) -> tuple[PrefixCount, ...]:
    counts = {step: PrefixCount(step, runs, passed) for step, runs, passed in _placed_path(run, transcript, stored)}
    return tuple(count for count in counts.values() if count.runs > 1)


def _unseen(transcript: Transcript, results: Sequence[CriterionResult], expectation: Expectation) -> Iterator[Clue]:
    """The answers from which on the model no longer saw what failed criteria need; where nothing of that is known, the
    one before the failed answer from which on it saw least."""
    needed = needed_from_sight(transcript, results, expectation)
    for lost in needed:
        if lost.answer is not None:
            about = {"need": lost.need, "needed": list(lost.needed), "origin_step": lost.stood}
            yield Clue(ClueCode.OUT_OF_SIGHT, lost.answer, "agent", None, {**about, **_change_fields(lost)})
    if not needed and any(result.outcome is Outcome.FAILED for result in results):
        failed = min(expectation.wrong, default=None)
        others = [lost for lost in lost_before(transcript, failed) if lost.answer is not None]
        if others:
            lost = max(others, key=lambda lost: (len(lost.change.before), len(lost.change.was), -lost.request))
            yield Clue(ClueCode.SIGHT_CHANGED, lost.answer or 0, "agent", None, _change_fields(lost))


def _change_fields(lost: LostFromSight) -> dict[str, object]:
    change = lost.change
    return {
        "request": lost.request,
        "change": change.kind,
        "messages": len(change.before),
        "came": len(change.after),
        "name": change.name,
        "characters": [len(change.was), len(change.now)],
    }


def _parted(run: str, transcript: Transcript, stored: Repetitions) -> Clue | None:
    """The step where the run left those that pass: the branch that it took there passes less often than the others."""
    parting = stored.parting
    branch = parting.branch_of(run) if parting is not None else None
    # A branch that passes as often as all of them tells nothing of why this run failed.
    if parting is None or branch is None or rate_of(branch) >= rate_of(parting.node):
        return None
    path = _placed_path(run, transcript, stored)
    if parting.step > len(path):
        return None
    fields = {
        "runs": parting.node.number,
        "passed": parting.node.passed,
        "after_runs": branch.number,
        "after_passed": branch.passed,
    }
    faults: dict[str, Fault] = {"error": "environment", "result": "tool"}
    fault = faults.get(branch.act.kind, "agent")
    others = parting.node.passed - branch.passed, parting.node.number - branch.number
    by_chance = fisher_exact(branch.passed, branch.number, *others) > _CHANCE
    code = ClueCode.FEW_PARTED if by_chance else ClueCode.PARTED
    # How often other runs name the right step is not measured: they may do another thing here, and rightly so.
    return Clue(ClueCode.PARTED_ELSEWHERE if stored.elsewhere else code, path[parting.step - 1][0], fault, None, fields)
