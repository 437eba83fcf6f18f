"""Why did this run fail, and what would an edit change? The core of the Inspect screen, without the screen.

A workbench is opened on one run. It knows the criteria of the run's test as the suite's file has them now (or as
they were stored, when the file is gone), judges the run with an edited config, and counts what saving the edit
would do to every stored run that the criterion applies to. It finds the smallest relaxations of a failing criterion,
and counts the same for each. No agent is called, nothing is written.

People's labels are beside the counts: they say which changed verdicts are right.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.core.outcomes import COMPLETED, ENDED
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.relax.suggest import MOST, Relaxation, relaxations
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label, by_run, label_of, sole_criterion
from agenteval_tui.history.records import RunRow, is_imported
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec, specs_of
from agenteval_tui.runs.stored_judgments import JudgeLabels, stored_answers
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.transcripts.model import SETUP, ErrorCode, RunError, Transcript
from agenteval_tui.transcripts.tool_text import ArgumentRange, format_with_places

POOL_LIMIT = 2_000
CACHE_CHARACTERS = 32_000_000
PRELOAD_AT_ONCE = 16  # transcripts that one query reads: `preload` looks at its time after each
SLICE_SECONDS = 0.008  # of grading, between two looks whether a newer keystroke ends the count
LONG_CONFIG = 100_000
"""Characters: 2,000 metrics in a config. It takes a second until they are compiled and judged."""

SCRATCH_CONFIG = """{
  "metrics": [
    {
      "type": "TextMatch",
      "contains_any": []
    }
  ]
}
"""


_FAILED = "The agent failed on this run, so there is nothing to grade."
_NOT_RECORDED = (
    "This run needs the model: its recording doesn't answer what it asks now. There is nothing to grade yet."
)
_AT_WORK = "This run has not ended, so there is nothing to grade yet."
_BROKEN = "This run could not be prepared, so there is nothing to grade."


class WorkCriterion(Struct, frozen=True):
    """A criterion in the workbench: how it is graded, and where it is in the suite's file.

    `text` is the config as the editor shows it. `index` is its place among the test's criteria; None for one that
    is not in a file (of a suite that is gone, or a scratch criterion for imported runs): it can't be saved.
    A `scratch` criterion belongs to no test: it is tried on every run of the execution. A `new` one is not in a file
    yet: there is nothing that an edit of it could be compared with. A `derived` one was made at the import of the run.
    """

    spec: CriterionSpec
    text: str
    index: int | None
    line: int = 0
    scratch: bool = False
    new: bool = False
    derived: bool = False

    @property
    def name(self) -> str:
        """The criterion's name."""
        return self.spec.name


class Impact(Struct):
    """The effect of saving an edited config on the stored runs, for the runs that are graded so far.

    `now` and `then` count outcomes under the saved and the edited config. `flips` has (run id, outcome now, outcome
    then) of the runs whose outcome differs. `total`: all runs, of `tests` tests; `done`: the runs graded so far.
    """

    total: int
    tests: int
    done: int = 0
    now: dict[str, int] = field(default_factory=dict)
    then: dict[str, int] = field(default_factory=dict)
    flips: list[tuple[str, str, str]] = field(default_factory=list)

    def flipped_to(self, outcome: str) -> int:
        """How many runs change to this outcome."""
        return sum(1 for _, _, then in self.flips if then == outcome)


class PoolRun(Struct, frozen=True):
    """A stored run that the criterion applies to."""

    run: str
    test: str
    variables: Mapping[str, Any]


class Workbench:
    """One run, its criteria, and the stored runs beside it. Use one from one thread at a time."""

    def __init__(
        self,
        store: Store,
        run: RunRow,
        transcript: Transcript,
        stored: tuple[CriterionResult, ...],
        criteria: tuple[WorkCriterion, ...],
        loaded: LoadedSuite | None,
        note: str,
    ) -> None:
        self.store = store
        self.run = run
        self.transcript = transcript
        self.stored = stored
        self.criteria = criteria
        self.loaded = loaded
        self.note = note
        self._pools: dict[int, tuple[PoolRun, ...]] = {}
        self._transcripts: dict[str, Transcript] = {}
        self._cached_characters = 0
        self._preloaded: dict[int, int] = {}
        self._tool_text: tuple[str, tuple[ArgumentRange, ...]] | None = None
        self._saved_outcomes: dict[tuple[str, str], Outcome] = {}
        self._replies_and_labels: dict[str, tuple[list[StoredReply], list[Label]]] = {}
        self._judge_labels = JudgeLabels(store)

    @classmethod
    def open(cls, store: Store, run_id: str) -> Workbench:
        """Read a run and find its criteria. Raises AgentevalError when there is no such run."""
        run = store.run(run_id)
        transcript = store.transcript(run.id)
        stored = store.results(run.id)
        loaded, note = _suite_of(run)
        # The file first: an edit is of what is in it now, whatever graded the run then.
        criteria = _from_file(loaded, run) if loaded else ()
        if not criteria:
            criteria = _from_store(store, stored, run)
            if loaded is not None:
                note = _not_in_file(loaded, run)
        # What was derived belongs to its import: to try something on all runs takes a criterion that belongs to none.
        if all(criterion.derived for criterion in criteria):
            spec = CriterionSpec(name="scratch", prototype_class="TextResponse", config=SCRATCH_CONFIG)
            criteria = (*criteria, WorkCriterion(spec, SCRATCH_CONFIG, None, scratch=True))
            lost = not criteria[:-1] and any(_stored_hashes(stored, run))
            why = "The stored criteria of this run can't be read" if lost else "This run has no criteria yet"
            if not (note or criteria[:-1]):
                note = f"{why}. Write one in `scratch` to try it on all runs of the execution."
        return cls(store, run=run, transcript=transcript, stored=stored, criteria=criteria, loaded=loaded, note=note)

    def with_changes(self, *, run_id: str = "", criteria: tuple[WorkCriterion, ...] = ()) -> Workbench:
        """The same stored runs, with another open run or other criteria. Keeps everything that was read already."""
        # What was read is shared, not copied: what the one reads from now on, the other has as well.
        other = copy(self)
        if run_id:
            other.run = self.store.run(run_id)
            other.transcript, other.stored = self.store.transcript(other.run.id), self.store.results(other.run.id)
            other._tool_text = None
        other.criteria = criteria or self.criteria
        return other

    def judge(self, criterion: int, text: str | CriterionSpec | None = None) -> CriterionResult:
        """The result of criterion number `criterion` on this run, with evidence. `text` replaces its config, or, if
        it is a spec, the whole criterion."""
        spec = self.spec(criterion, text)
        error, ended = self.transcript.error, self.run.status in ENDED
        if error is not None or not ended:
            # There is no answer to judge, and an empty one is not a wrong one.
            return CriterionResult(
                spec.name,
                Outcome.SKIPPED,
                None,
                severity=spec.severity,
                weight=spec.weight,
                prototype_class=spec.prototype,
                criterion_hash=spec.hash,
                message=_why_not_graded(error),
            )
        replies = self._replies(self.run.id, self.transcript, self.run.variables, spec)
        criterion_result = compile_criterion(spec).check(self.transcript, self.run.variables, replies=replies)
        return replace(criterion_result, derived=True) if self.criteria[criterion].derived else criterion_result

    def known_verdict(self, criterion: int) -> CriterionResult | None:
        """What is stored of a criterion whose config is so long that judging it takes longer than a person waits for
        a screen; None: it is judged at once, or nothing is stored."""
        if len(self.criteria[criterion].text) < LONG_CONFIG:
            return None
        name = self.criteria[criterion].name
        return next((result for result in self.stored if result.criterion == name and not result.source), None)

    def judge_all(self) -> tuple[CriterionResult, ...]:
        """Every criterion, as it is saved, on this run; a `known_verdict`, foreign verdicts of an import, and what was
        derived of this run alone, as stored."""
        own = tuple(self.known_verdict(index) or self.judge(index) for index in range(len(self.criteria)))
        return own + tuple(
            # These rest on something that is not here any more, and can't be judged again.
            result
            for result in self.stored
            if result.source or (result.derived and not result.criterion_hash)
        )

    @property
    def characters(self) -> int:
        """Roughly how much there is to read in the run's transcript."""
        return _size(self.transcript)

    @property
    def tool_text(self) -> tuple[str, tuple[ArgumentRange, ...]]:
        """The formatted tool calls, and the place of each call and argument in them; made once."""
        if self._tool_text is None:
            text, places = format_with_places(self.transcript.tool_calls)
            self._tool_text = text, tuple(places)
        return self._tool_text

    def spec(self, criterion: int, text: str | CriterionSpec | None = None) -> CriterionSpec:
        """The criterion as it is saved, or with another config; a spec is what it is."""
        if isinstance(text, CriterionSpec):
            return text
        spec = self.criteria[criterion].spec
        return spec if text is None else replace(spec, config=text)

    def pool(self, criterion: int) -> tuple[PoolRun, ...]:
        """The stored runs that saving this criterion would touch, newest first, at most `POOL_LIMIT`."""
        if criterion not in self._pools:
            self._pools[criterion] = self._find_pool(criterion)
        return self._pools[criterion]

    def preload(self, criterion: int, seconds: float | None = None) -> bool:
        """Decode the pool's transcripts into memory, as many as fit: so that the first keystroke is fast too.

        Stops after about `seconds`, to be called again. True when there is nothing left to do.
        """
        until = time.perf_counter() + seconds if seconds is not None else None
        pool = self.pool(criterion)
        while self._cached_characters < CACHE_CHARACTERS:
            start = self._preloaded.get(criterion, 0)
            if start >= len(pool):
                break
            some = [
                pool_run.run
                for pool_run in pool[start : start + PRELOAD_AT_ONCE]
                if pool_run.run not in self._transcripts
            ]
            for run, transcript in self.store.transcripts(some):
                self._keep(run, transcript)
            self._preloaded[criterion] = start + PRELOAD_AT_ONCE
            if until is not None and time.perf_counter() >= until:
                return False
        return True

    def impact(self, criterion: int, text: str | CriterionSpec) -> Iterator[Impact]:
        """Grade the pool with the saved and the edited config, in slices of a few milliseconds.

        Yields the same `Impact` after each slice; stop iterating when a newer edit came. Errors of a config are
        outcomes too: a broken edit turns every run to `error`. Of a new criterion only `then` is counted.
        """
        pool = self.pool(criterion)
        new = self.criteria[criterion].new
        edited = compile_criterion(self.spec(criterion, text))
        saved = edited if new else compile_criterion(self.spec(criterion))
        same = saved.spec.hash == edited.spec.hash  # only white space and comments differ, if anything
        impact = Impact(total=len(pool), tests=len({pool_run.test for pool_run in pool}))
        # At once for all runs: read one by one they would take a query each.
        if saved.asks or edited.asks:
            self._load_replies([pool_run.run for pool_run in pool])
        until = time.perf_counter() + SLICE_SECONDS
        for pool_run in pool:
            transcript = self._transcript(pool_run.run)
            key = (saved.spec.hash, pool_run.run)
            # By the saved version and the run: the next keystroke changes only the edited side.
            now = self._saved_outcomes.get(key)
            if now is None and not new:
                replies = self._replies(pool_run.run, transcript, pool_run.variables, saved.spec)
                now = saved.check(transcript, pool_run.variables, explain=False, replies=replies).outcome
                self._saved_outcomes[key] = now
            if now is not None and same:
                then = now
            else:
                replies = self._replies(pool_run.run, transcript, pool_run.variables, edited.spec)
                then = edited.check(transcript, pool_run.variables, explain=False, replies=replies).outcome
            impact.done += 1
            impact.then[then] = impact.then.get(then, 0) + 1
            if now is not None:
                impact.now[now] = impact.now.get(now, 0) + 1
                if now != then:
                    impact.flips.append((pool_run.run, now.value, then.value))
            if time.perf_counter() >= until:
                yield impact
                until = time.perf_counter() + SLICE_SECONDS
        yield impact

    def saved_outcome(self, criterion: int, run: str) -> str:
        """The outcome of a run of the pool under the saved criterion, as `impact` counted it; "" before that."""
        outcome = self._saved_outcomes.get((self.spec(criterion).hash, run))
        return outcome.value if outcome is not None else ""

    def relaxations(
        self, criterion: int, text: str | None = None, *, most: int = 6
    ) -> Iterator[tuple[Suggestion, ...]]:
        """The smallest edits under which the criterion (with `text` as its config when given) passes on this run.

        Yields the same suggestions, best first: at once without counts, then after each slice of counting what they
        would do to the pool. () when the criterion does not fail. Stop iterating when the screen goes elsewhere.
        """

        suggestions = suggest(self, criterion, text, most=most)
        yield suggestions
        for _ in _count_flips(self, criterion, suggestions):
            yield suggestions

    def _find_pool(self, criterion: int) -> tuple[PoolRun, ...]:
        if self.criteria[criterion].scratch:
            rows = self.store.runs_of_execution(self.run.execution_id)
        else:
            rows = []
            for test_id in self._sharing_tests(criterion):
                rows += self.store.runs_of_test(self.run.suite_key, test_id, POOL_LIMIT)
        ended = [row for row in rows if row.status in COMPLETED]
        # Where the agent failed there is no answer that an edit could judge otherwise.
        ended = [row for row in ended if not row.error_kind]
        # Of all tests together: the runs of the first one must not take the room of the others.
        ended.sort(key=lambda row: row.rowid, reverse=True)
        return tuple(PoolRun(row.id, row.test_id, row.variables) for row in ended[:POOL_LIMIT])

    def _sharing_tests(self, criterion: int) -> list[str]:
        """The tests that the same piece of YAML belongs to (an alias shares it); at least the run's own."""
        index = self.criteria[criterion].index
        if self.loaded is None or self.loaded.suite is None or index is None:
            return [self.run.test_id]
        # The place in the file tells an alias from an equal text.
        place = self.loaded.config_source(self.run.test_id, index).to_file(0)
        sharing = [
            test.id
            for test in self.loaded.suite.tests
            if any(self.loaded.config_source(test.id, n).to_file(0) == place for n in range(len(test.criteria)))
        ]
        # The run's own test may be gone from the file since this was opened.
        return sharing or [self.run.test_id]

    def _load_replies(self, runs: Sequence[str]) -> None:
        """What judges, embedders and people said of these runs, read at once."""
        missing = [run for run in runs if run not in self._replies_and_labels]
        stored = self.store.replies_of(missing)
        labels = by_run(self.store.labels(missing))
        for run in missing:
            self._replies_and_labels[run] = stored.get(run, []), labels.get(run, [])

    def _replies(
        self, run: str, transcript: Transcript, variables: Mapping[str, Any], spec: CriterionSpec
    ) -> Mapping[str, Reply] | None:
        """The stored replies of a run for a criterion that asks a respondent. Nothing is asked here: an edit that
        changes the question makes the outcome an error, until it is asked again."""
        if not compile_criterion(spec).asks:
            return None

        self._load_replies([run])
        labelled = self._judge_labels.of(self.run.suite_key)
        return stored_answers((spec,), transcript, variables, *self._replies_and_labels[run], self.sole, labelled)

    @property
    def sole(self) -> str:
        """The name of the only criterion that decides the test; "": none or several do."""
        return sole_criterion(
            (criterion.spec.name, criterion.spec.severity) for criterion in self.criteria if not criterion.new
        )

    def _transcript(self, run: str) -> Transcript:
        transcript = self._transcripts.get(run)
        if transcript is None:
            transcript = self.store.transcript(run)
            self._keep(run, transcript)
        return transcript

    def _keep(self, run: str, transcript: Transcript) -> None:
        size = _size(transcript)
        # What does not fit is read again each time: memory stays bounded, and the counts are the same.
        if run not in self._transcripts and self._cached_characters + size <= CACHE_CHARACTERS:
            self._cached_characters += size
            self._transcripts[run] = transcript


def _size(transcript: Transcript) -> int:
    """Roughly the characters that a transcript holds; a small thing counts as 100 for what is around it."""
    size = sum(len(message.content) + len(message.reasoning) + 100 for message in transcript.messages)
    for call in transcript.tool_calls:
        size += len(call.result or "") + 100
        arguments = call.arguments
        values = arguments.values() if isinstance(arguments, Mapping) else [arguments]
        size += sum(len(value) if isinstance(value, str) else 50 for value in values)
    return size


def _suite_of(run: RunRow) -> tuple[LoadedSuite | None, str]:
    if is_imported(run.suite_key):
        return None, ""
    path = Path(run.suite_key)
    if not path.suffix and not path.exists():
        return None, ""  # the program of a folder that was recorded: there never was a file
    try:
        return load_suite(path), ""
    except AgentevalError as error:
        return None, f"The suite's file can't be read ({error.what}): these are the stored criteria."


def _not_in_file(loaded: LoadedSuite, run: RunRow) -> str:
    """Why the criteria of a test do not come from the suite's file, which can be read."""
    errors = [problem for problem in loaded.problems if problem.severity == "error"]
    why = f"test {run.test_id} is no longer in {loaded.path.name}"
    if errors:
        first = errors[0]
        why = f"{loaded.path.name}:{first.line}:{first.column}: {first.message}"
    return f"These are the stored criteria: {why}."


def _from_file(loaded: LoadedSuite, run: RunRow) -> tuple[WorkCriterion, ...]:
    if loaded.suite is None:
        return ()
    for test in loaded.suite.tests:
        if test.id == run.test_id:
            return tuple(
                WorkCriterion(
                    spec=spec,
                    text=loaded.config_source(test.id, index).text,
                    index=index,
                    line=loaded.line_of(test.id, index),
                )
                for index, spec in enumerate(specs_of(test.criteria))
            )
    return ()


def _from_store(store: Store, stored: tuple[CriterionResult, ...], run: RunRow) -> tuple[WorkCriterion, ...]:
    criteria: list[WorkCriterion] = []
    for position, content_hash in enumerate(_stored_hashes(stored, run)):
        spec = known_spec(store, content_hash)
        if spec is not None:
            result = stored[position] if position < len(stored) else None
            if result is None or result.criterion_hash != content_hash:
                # Foreign verdicts come before those derived at an import.
                result = next(
                    (
                        criterion_result
                        for criterion_result in stored
                        if criterion_result.derived and criterion_result.criterion_hash == content_hash
                    ),
                    None,
                )
            if result is not None:
                # The version may be stored under the name of another test's criterion of the same content.
                spec = replace(spec, name=result.criterion, weight=result.weight, severity=result.severity)
            derived = result is not None and result.derived
            criteria.append(WorkCriterion(spec, spec.config_text, None, derived=derived))
    return tuple(criteria)


def _stored_hashes(stored: tuple[CriterionResult, ...], run: RunRow) -> tuple[str, ...]:
    """The versions of the run's criteria. What was planned counts: a run that ended in an error has no results."""
    return run.criteria or tuple(result.criterion_hash for result in stored)


# The smallest relaxations of a failing criterion, and what each would do to the stored runs


class Agreement(Struct):
    """Over the runs of the pool that people labelled: how many outcomes agree with them, `now` and `then`."""

    labelled: int = 0
    now: int = 0
    then: int = 0
    against: list[str] = field(default_factory=list)
    """Runs that would change to the other side of what a person said."""


class Suggestion(Struct):
    """A relaxation and what saving it would do. `impact` is None until counting has begun.

    `impact.done` of `impact.total` runs are counted; `flips` name the runs (`flipped_to("passed")` counts them).
    """

    relaxation: Relaxation
    impact: Impact | None = None
    labels: Agreement = field(default_factory=Agreement)

    @property
    def counted(self) -> bool:
        """Whether every stored run was looked at."""
        return self.impact is not None and self.impact.done == self.impact.total

    @property
    def summary(self) -> str:
        """In words: `3 of 40 runs flip to passed, 1 to failed; against a label: 2`."""
        if self.impact is None:
            return "not counted yet"
        passed, failed = self.impact.flipped_to("passed"), self.impact.flipped_to("failed")
        text = f"{passed:,} of {count(self.impact.total, 'run')} flip to passed"
        text += f", {failed:,} to failed" if failed else ""
        text += "" if self.counted else f" ({self.impact.done:,} counted)"
        if self.labels.labelled:
            labels = f"{self.labels.then:,} of {count(self.labels.labelled, 'label')}"
            text += f"; agrees with {labels} (now {self.labels.now:,})"
        return text


def suggest(bench: Workbench, criterion: int, text: str | None = None, *, most: int = MOST) -> tuple[Suggestion, ...]:
    """The smallest relaxations for the bench's run, best first, nothing counted yet. `text`: the config as edited.

    Milliseconds; () when the criterion does not fail on this run.
    """
    spec = bench.spec(criterion, text)
    proposals = relaxations(spec, bench.transcript, bench.run.variables, most=most)
    return tuple(Suggestion(relaxation) for relaxation in proposals)


def _count_flips(bench: Workbench, criterion: int, suggestions: Sequence[Suggestion]) -> Iterator[Suggestion]:
    """Count what each would do to every stored run, in slices of a few milliseconds; yields the one it is at.

    Flips are counted against the criterion as it is saved, as for any other edit.
    """
    # Read once: labels don't change while suggestions are counted.
    labels = opinions(bench, criterion)
    for suggestion in suggestions:
        for impact in bench.impact(criterion, suggestion.relaxation.new_text):
            suggestion.impact = impact
            if impact.done == impact.total:
                suggestion.labels = agreement(bench, criterion, impact, labels)
            yield suggestion


def opinions(bench: Workbench, criterion: int) -> dict[str, bool]:
    """What people said of the pool's runs: should the criterion pass? The label of each run that counts for it."""
    runs = [pool_run.run for pool_run in bench.pool(criterion)]
    labelled = by_run(bench.store.labels(runs) if runs else ())
    opinions = {run: label_of(labels, bench.spec(criterion).name, bench.sole) for run, labels in labelled.items()}
    return {run: label.good for run, label in opinions.items() if label is not None}


def agreement(bench: Workbench, criterion: int, impact: Impact, labels: Mapping[str, bool]) -> Agreement:
    """How the outcomes of a wholly counted impact agree with what people said (`opinions`)."""
    if not labels:
        return Agreement()
    agreement = Agreement(labelled=len(labels))
    then = {run: after for run, _, after in impact.flips}
    for run, good in labels.items():
        now = bench.saved_outcome(criterion, run)
        expected = "passed" if good else "failed"
        agreement.now += now == expected
        agreement.then += then.get(run, now) == expected
        if run in then and now == expected:
            agreement.against.append(run)
    return agreement


def _why_not_graded(error: RunError | None) -> str:
    """Of a run without an end, or with this error."""
    if error is None:
        return _AT_WORK
    if error.code == ErrorCode.NOT_RECORDED:
        return _NOT_RECORDED
    return _BROKEN if error.kind == SETUP else _FAILED
