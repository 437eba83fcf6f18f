"""What goes into the history and what comes out: plain frozen rows. Times are milliseconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from agenteval_tui.core.document import Count, Document
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.suites.commits import Commit
from agenteval_tui.suites.row_keys import row_label
from agenteval_tui.transcripts.model import Transcript

HEAD = 240  # characters of a prompt, an answer or a reason that lists show
SUMMARY_WINDOW = 20  # runs of a test that `TestSummary` looks at


IMPORTED = "import:"
"""How the key of a suite begins whose runs were imported; other keys are paths."""


def is_imported(suite_key: str) -> bool:
    """Whether a suite has no file here, as its runs were imported."""
    return suite_key.startswith(IMPORTED)


class ExecutionRecord(Struct, frozen=True):
    """What one command starts. `kind` is "run", "import" or "fork" (its runs continue others); `pid` the process that
    does the work (None: this one).

    `setup`: what its runs' tasks have in common, as JSON (`runs.task_payload`); None: it can't be resumed. `project`:
    see `suites.projects`; None: that of its suites.
    """

    id: str
    title: str
    kind: str
    source: str
    suite_keys: tuple[str, ...]
    started_ms: int
    batch_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    pid: int | None = None
    setup: Mapping[str, Any] | None = None
    project: str | None = None
    name: str = ""
    """What a person called it; so `note` and `meta` (`history.execution_names`)."""
    note: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    commits: tuple[Commit, ...] = ()


class PlannedRun(Struct, frozen=True):
    """A run that is going to be. `criteria` are the hashes of `specs` (the criteria as JSON), in order.

    `position` counts from 0 within the execution and is the order in which runs are shown.
    """

    id: str
    execution_id: str
    position: int
    suite_key: str
    suite_name: str
    test_id: str
    test_name: str
    variation: str = ""
    row: int = 0
    repetition: int = 1
    agent: str = ""
    prompt: str = ""
    tags: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    specs: tuple[Mapping[str, Any], ...] = ()
    task: Mapping[str, Any] | None = None
    """What is needed to run it later without the suite's file, as JSON (`runs.task_payload`); shared by repetitions.

    Runs that share a task should share the object: it is encoded once.
    """
    seed: int = 0
    row_key: str = ""
    """The key of the dataset's row (`suites.row_keys`), which does not depend on its position; `row` is its position.
    "" with a `row`: the key is made from the variables."""
    recording: str = ""
    """The id of the recorded run, if this run only grades it again."""
    agent_version: str = ""
    """The configuration of the agent (`agents.stored_config`); "": not known."""
    fork_of: str = ""
    """The id of the run that this run continues; no statistics count such a run. `fork`: the step and the changes, as
    JSON (`runs.fork.model.ForkOrigin`)."""
    fork: str = ""


class FailedAttempt(Struct, frozen=True):
    """An attempt of a run that ended in an error, before a further attempt."""

    number: int
    kind: str
    message: str
    duration_ms: float
    at_ms: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None


class RunEnded(Struct, frozen=True):
    """The end of a run. `status` is an outcome or "cancelled"; `why` is one line on the first failure."""

    run_id: str
    status: str
    score: float | None
    started_ms: int | None
    duration_ms: float | None
    attempts: int
    transcript: Transcript
    results: tuple[CriterionResult, ...] = ()
    warnings: int = 0
    why: str = ""
    failed_attempts: tuple[FailedAttempt, ...] = ()
    request: str = ""
    """The hash of all that was asked of the agent, so that `--cache` finds the answer; "" where it may not."""
    cached: bool = False
    asked: tuple[str, Mapping[str, Any]] | None = None
    """Its prompt and its variables, if hooks brought some; None: they are as planned."""
    tape: Sequence[Mapping[str, Any]] = ()
    """What the run's program asked of models and was answered, as JSON (`agents.recording.exchange`)."""


class ExecutionRow(Struct, frozen=True):
    """An execution with its totals. `status`: running, finished, cancelled, stopped (a limit was reached), failed,
    interrupted (its process died).

    `runs` counts all planned runs; tokens and `cost` (None: never measured) are what agents took, also for attempts
    that failed; answers that were known before cost nothing. `suites` and `agents` are names joined by commas, for
    lists. `rowid` grows with every execution and is the key to page by.
    """

    rowid: int
    id: str
    title: str
    kind: str
    source: str
    status: str
    started_ms: int
    finished_ms: int | None
    message: str
    runs: int
    passed: int
    failed: int
    errors: int
    skipped: int
    cancelled: int
    needs_review: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    suites: str
    agents: str
    suite_keys: tuple[str, ...] = ()
    batch_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    project: str = ""
    """The folder of its project (`suites.projects`); "": not known."""
    startup_ms: float | None = None
    """How long interpreters and imports took that its runs had in common, in ms: in no run's time. None: none."""
    name: str = ""
    """What a person called it; so `note` and `meta` (`history.execution_names`)."""
    note: str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    commits: tuple[Commit, ...] = ()
    """The commits of the repositories of its suites and agents, at its start."""

    @property
    def notes(self) -> tuple[str, ...]:
        """For an import, what was left out of its file, and other notes on it, a sentence each."""
        notes = self.options.get("notes")
        return tuple(map(str, notes)) if isinstance(notes, list) else ()

    @property
    def ended(self) -> int:
        """Runs that have an outcome or were cancelled."""
        return self.passed + self.failed + self.errors + self.skipped + self.cancelled + self.needs_review


def tokens_in_all(input_tokens: int | None, output_tokens: int | None) -> float | None:
    """Input and output together; None: not measured, or only one of the two."""
    return None if input_tokens is None or output_tokens is None else float(input_tokens + output_tokens)


class RunRow(Struct, frozen=True):
    """A run as lists show it. `prompt_head`, `output_head` and `why` are cut to `HEAD` characters.

    `row` is where the dataset's row stood in its file (0: no dataset), `row_key` what it is (`suites.row_keys`).
    """

    rowid: int
    id: str
    execution_id: str
    position: int
    suite_key: str
    suite_name: str
    test_id: str
    test_name: str
    variation: str
    row: int
    repetition: int
    agent: str
    status: str
    score: float | None
    started_ms: int | None
    duration_ms: float | None
    attempts: int
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    prompt_head: str
    output_head: str
    why: str
    error_kind: str
    error_message: str
    variables: Mapping[str, Any]
    tags: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    warnings: int = 0
    cached: bool = False
    checks_not_made: int = 0
    """Criteria in error, whatever the run's own outcome."""
    row_key: str = ""
    recording: str = ""
    """The id of the run that was recorded, where this one only grades it again."""
    superseded: bool = False
    """Whether it is left out of what is counted: a newer grading of the same recording takes its place, or it is a
    fork."""
    agent_version: str = ""
    """Which configuration of the agent answered (`agents.stored_config`); "": not known."""
    fork_of: str = ""
    """The id of the run that it continues ("": none), and `fork`: from where and how (`runs.fork.model`)."""
    fork: str = ""

    @property
    def tokens(self) -> float | None:
        """Input and output together; None: not measured."""
        return tokens_in_all(self.input_tokens, self.output_tokens)

    @property
    def priced(self) -> bool:
        """Whether its cost is known, or it used nothing as far as is known."""
        return self.cost is not None or self.cached or not self.tokens

    @property
    def recorded(self) -> str:
        """The id of the run that was recorded: its own, unless it was graded again."""
        return self.recording or self.id

    @property
    def row_label(self) -> str:
        """What people call its row: the id that it has, or its place in the file; "" without a dataset."""
        return row_label(self.row, self.row_key)

    @property
    def case_name(self) -> str:
        """Its test's id with the variation and the row, as in `refund [gpt-5] #3`."""
        variation = f" [{self.variation}]" if self.variation else ""
        return f"{self.test_id}{variation}" + (f" #{self.row_label}" if self.row else "")


class StoredTask(Struct, frozen=True):
    """The task of a run (`runs.task_payload`), and the seed of this repetition."""

    task: Mapping[str, Any]
    seed: int


class CostRow(Struct, frozen=True):
    """The usage for one test of an execution: of one agent, of the judges of one criterion, or of the agent that
    played the test's user.

    `kind` is "agent", "judge" (embedders, too) or "user". `agent`: the agent's name, or the model that answered as the
    judge. `criterion` is the hash and `criterion_name` the name of the criterion that asked; both are "" for agents,
    and if the criterion is not known. `count`: ended runs, or requested replies. The tokens and the cost include
    failed attempts, but not cached answers and known replies from the history, which cost nothing. `cost` None: never
    measured.
    """

    kind: str
    suite_key: str
    test_id: str
    test_name: str
    agent: str
    criterion: str
    criterion_name: str
    count: int
    input_tokens: int
    output_tokens: int
    cost: float | None


class CriterionSummary(Struct, frozen=True):
    """A criterion over the runs of the summary's window: how many it decided, how many passed, the last outcome."""

    n: int
    passed: int
    last: str


class TestSummary(Struct, frozen=True):
    """The last `SUMMARY_WINDOW` ended runs of a test (cancelled ones count as never made).

    `n`, `passed`, `errors`, `p50_ms`, `cost` (mean a run) and `criteria` (by name) are of these runs only, because
    older ones say little about the test as it is now; `total` counts all ended runs ever. A criterion's figures are of
    its newest version only. `recent` holds the outcomes, newest last; `settings`, for each, the agent that was
    asked and the versions of the criteria, as a word that is the same for the same ones (empty: not told), and
    `executions` what it was a run of (row ids; empty: not told). `answer` is what the newest says in a line: why
    it failed, else the start of its answer, and `agent` which agent that was.
    """

    __test__ = False  # not a test class, whatever its name says to pytest

    test_id: str
    n: int
    passed: int
    errors: int
    recent: tuple[str, ...]
    last_ms: int | None
    p50_ms: float | None
    cost: float | None
    criteria: Mapping[str, CriterionSummary]
    total: int = 0
    settings: tuple[str, ...] = ()
    executions: tuple[int, ...] = ()
    answer: str = ""
    agent: str = ""


class RunFilter(Struct, frozen=True):
    """Which runs: all conditions that are given must hold. `text` is searched in prompts, answers and tool calls.

    In `text`, words must all occur, "quoted words" in that order, and the last word may be the start of one.
    """

    text: str = ""
    outcomes: tuple[str, ...] = ()
    suite_key: str = ""
    test_id: str = ""
    agent: str = ""
    execution_id: str = ""
    kind: str = ""
    agent_part: str = ""
    """Letters that the agent's name holds; so of the next three. Whatever their case."""
    test_part: str = ""
    suite_part: str = ""
    name_part: str = ""
    """Letters of what a person called the execution, or wrote about it (`note_part`)."""
    note_part: str = ""
    commit: str = ""
    """The beginning of a commit of the execution."""
    meta: tuple[tuple[str, str], ...] = ()
    """Keys of the execution's metadata, each with letters that its value holds."""
    cause_part: str = ""
    """Letters in the signature of a cause of its failure (`grading.causes`), or in the class of its error."""
    tags: tuple[str, ...] = ()
    """All names, whatever their case."""
    since_ms: int | None = None
    """Of executions that started then or later; `before_ms`: before it."""
    before_ms: int | None = None
    baseline: bool = False
    """Only runs that a baseline consists of; `labelled`: only those that a person labelled."""
    labelled: bool = False
    feedback: bool = False
    """Only runs that have feedback."""
    projects: tuple[str, ...] = ()
    """Only of executions of these projects, and of those below them (`history.scope`)."""
    counted: bool = False
    """Without forks."""


class ExecutionSummary(Document, frozen=True, kw_only=True):
    """How many tests and runs there are, and how they ended."""

    tests: Count
    runs: Count
    passed: Count
    failed: Count
    errors: Count = field(name="error")
    skipped: Count
    cancelled: Count
    needs_review: Count
    input_tokens: Count
    output_tokens: Count
    cost: float | None


class Counts(ExecutionSummary, frozen=True, kw_only=True):
    """Totals over the whole history, from maintained figures."""

    executions: Count


def checks_not_made(runs: Iterable[RunRow]) -> int:
    """The checks that could not run in runs which have a verdict all the same."""
    return sum(run.checks_not_made for run in runs if run.status in DECIDED)
