"""The runs of one test: its configurations, the rows of its dataset, its repetitions."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.plan_configurations import Configuration, configurations
from agenteval_tui.runs.plan_conversation import Conversation, Conversations
from agenteval_tui.runs.plan_model import PlanOptions, RunPlan, StopRule
from agenteval_tui.suites.row_keys import content_key, number_of, numbered
from agenteval_tui.text.identity import canonical_json, content_hash, new_id
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.text.quick_dataclass import dataclass

if TYPE_CHECKING:
    from agenteval_tui.runs.criteria import Specs
    from agenteval_tui.runs.plan_choice import Chosen, Failed
    from agenteval_tui.suites.model import AgentConfig

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Case:
    """A row of a dataset: its number and its line in the file, and its key (`suites.row_keys`). A test without a
    dataset has one case, numbered 0, whose key is empty."""

    row: int = 0
    line: int = 0
    variables: Mapping[str, Any] | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Ready:
    """What all runs of a case share."""

    row: int
    key: str
    variables: Mapping[str, Any]
    conversation: Conversation


class TestRuns:
    """Makes the runs of one test. Raises `AgentevalError` where it can't be run."""

    __test__ = False  # not a test class, whatever its name says to pytest

    def __init__(
        self,
        chosen: Chosen,
        options: PlanOptions,
        user_agents: Mapping[str, AgentConfig],
        failed: Failed | None = None,
    ) -> None:
        self.chosen = chosen
        self.configurations = tuple(configurations(chosen, options, user_agents))
        self._options = options
        self._failed = failed

    def cases(self) -> Iterator[Case]:
        """The rows of which there will be runs, as a stream; one case where there is no dataset.

        Programs of the folder are no matter here, but its files: one outside of the folder is read, and whether that
        may go to an agent is asked before anything runs (`trusting`).
        """
        if not self.configurations:
            return
        test = self.chosen.test
        if test.dataset is None:
            if self._wanted(Case()):
                yield Case()
            return
        from agenteval_tui.suites.datasets import read_rows

        rows = 0
        try:
            for one in read_rows(test.dataset, self.chosen.folder, trusted=True):
                rows += 1
                case = Case(one.number, one.line, one.variables, one.key)
                if self._failed is None or self._wanted(case):
                    yield case
        except AgentevalError as error:
            raise AgentevalError(f"test {test.id!r}: {error.what}", where=error.where, mend=error.mend) from error
        if not rows:
            raise AgentevalError(
                f"the dataset of test {test.id!r} has no rows",
                where=str(self.chosen.folder / test.dataset.file),
                mend="add rows, or take `dataset` out of the test",
            )

    def runs(self, cases: Iterable[Case], specs: Specs) -> Iterator[RunPlan]:
        """The runs of these cases: configuration by configuration, in each row by row.

        The arms of an A/B comparison take turns row by row: where the execution is stopped early, each row that was
        run under A was also run under B, but for the last ones.
        """
        ready = self._ready(cases)
        made = _Maker(self.chosen, self._options, specs)
        if self._options.ab:
            pairs = ((one, case) for case in ready for one in self.configurations)
        else:
            pairs = ((one, case) for one in self.configurations for case in ready)
        for configuration, case in pairs:
            if self._failed is None or self._wants(configuration, case):
                yield from made.repetitions(configuration, case)

    def _wanted(self, case: Case | _Ready) -> bool:
        return any(self._wants(one, case) for one in self.configurations)

    def _wants(self, configuration: Configuration, case: Case | _Ready) -> bool:
        if self._failed is None:
            return True
        keys = [case.key] if case.key else []
        if case.key and self.chosen.test.variables:
            # As an older program stored it: by all variables of its runs.
            content = content_key({**self.chosen.test.variables, **(case.variables or {})})
            keys.append(numbered(content, number_of(case.key)))
        return self._failed.wants(self.chosen.loaded.key, self.chosen.test.id, configuration.variation, keys)

    def _ready(self, cases: Iterable[Case]) -> Sequence[_Ready]:
        test, ready = self.chosen.test, []
        try:
            conversations = Conversations(test)
        except AgentevalError as error:
            raise self._placed(error, Case()) from error
        for case in cases:
            variables = {**test.variables, **case.variables} if case.variables else test.variables
            try:
                ready.append(_Ready(case.row, case.key, variables, conversations.of(variables, case.variables)))
            except AgentevalError as error:
                raise self._placed(error, case) from error
        return ready

    def _placed(self, error: AgentevalError, case: Case) -> AgentevalError:
        """The error with the test, and the line of the dataset's file where a row is to blame."""
        test = self.chosen.test
        if not case.row or test.dataset is None:
            return AgentevalError(f"test {test.id!r}: {error.what}", where=self.chosen.where, mend=error.mend)
        where = f"{self.chosen.folder / test.dataset.file}:{case.line}"
        return AgentevalError(f"test {test.id!r}, row {case.row}: {error.what}", where=where, mend=error.mend)


class _Maker:
    """What all runs of a test share, made once."""

    def __init__(self, chosen: Chosen, options: PlanOptions, specs: Specs) -> None:
        test, suite = chosen.test, chosen.suite
        defaults = suite.defaults
        self._chosen = chosen
        self._seed = options.seed
        self._head = _seed_head(suite.name, test.id)
        self._specs = specs.of(test.criteria)
        self._timeout_s = float(options.timeout or test.timeout or defaults.timeout or TIMEOUT_S)
        self._threshold = test.pass_threshold if test.pass_threshold is not None else defaults.pass_threshold
        self._tags = tuple(dict.fromkeys((*suite.tags, *test.tags)))
        stop = test.stop or defaults.stop
        # Arms that stop at different times would not be compared fairly.
        early = options.early_stop and not options.ab
        self._stop = StopRule(stop.alpha, stop.threshold) if stop is not None and early else None

    def repetitions(self, configuration: Configuration, case: _Ready) -> Iterator[RunPlan]:
        test, suite, asked = self._chosen.test, self._chosen.suite, case.conversation
        agent, variation = configuration.agent, configuration.variation
        for repetition in range(1, configuration.repeat + 1):
            yield RunPlan(
                ref=RunRef(
                    new_id(), test.id, test.name, variation, case.row, repetition, agent.name, suite.name, case.key
                ),
                suite_key=self._chosen.loaded.key,
                suite_name=suite.name,
                agent=agent,
                messages=asked.messages,
                context=configuration.context,
                specs=self._specs,
                variables=case.variables,
                timeout_s=self._timeout_s,
                pass_threshold=self._threshold,
                tags=self._tags,
                seed=_seed_of(self._head, case.key, repetition, self._seed),
                tool_calls=asked.tool_calls,
                turns=asked.turns,
                stop=self._stop,
            )


def run_seed(suite: str, test: str, row_key: str, repetition: int, seed: int = 0) -> int:
    """A number for an agent that varies: the same on every machine, the same for all variations of a test, and the
    same for a row wherever it stands in its file (`row_key` "": the test has no dataset)."""
    return _seed_of(_seed_head(suite, test), row_key, repetition, seed)


def _seed_head(suite: str, test: str) -> str:
    return canonical_json([suite, test])[:-1]


def _seed_of(head: str, row_key: str, repetition: int, seed: int) -> int:
    row = canonical_json(row_key) if row_key else "0"
    data = f"{head},{row},{repetition},{seed}]".encode("utf-8", "surrogatepass")
    return int(hashlib.sha256(data).hexdigest()[:8], 16)


def drawn(tests: Sequence[TestRuns], number: int, seed: int) -> list[tuple[TestRuns, list[Case]]]:
    """`number` of all the tests' cases, drawn by `seed`, in their order; all of them where there are no more.

    Each case has a rank of its own, made of `seed`, suite, test and the row's key: the same are drawn on every machine
    and in whatever order the rows stand, and a test that is added or renamed changes little of what is drawn.
    """
    every = (
        (
            content_hash([one.chosen.suite.name, one.chosen.test.id, case.key or 0, seed, "sample"]),
            place,
            case.row,
            case,
        )
        for place, one in enumerate(tests)
        for case in one.cases()
    )
    chosen = sorted(heapq.nsmallest(number, every, key=lambda one: one[:3]), key=lambda one: one[1:3])
    found: dict[int, list[Case]] = {}
    for _, place, _, case in chosen:
        found.setdefault(place, []).append(case)
    return [(tests[place], cases) for place, cases in found.items()]
