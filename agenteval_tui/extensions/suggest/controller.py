"""The data of the sheet of suggested criteria: the runs of a test, their labels, and the criteria that agree."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.labels import LabelSaved, give_label, opinion, remove_label
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.suggest.examples import Example
from agenteval_tui.extensions.suggest.search import Check, Suggestion, Suggestions, check, suggest
from agenteval_tui.extensions.suggest.stored_examples import TestExamples, examples_of_test
from agenteval_tui.grading.criterion_templates import Starter
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.store import Store


class SuggestedState(Struct, frozen=True):
    """The runs, and the criteria, or why there are no criteria yet."""

    examples: TestExamples
    suggestions: Suggestions | None
    problem: AgentevalError | None = None
    checked: Check | None = None


class SuggestController:
    """The controller for one test. `read`, `check`, `say` and `take_back` block, so call them in a thread."""

    def __init__(self, store: Store, suite_key: str, test_id: str, run_id: str = "") -> None:
        self._store = store
        self.suite_key, self.test_id = suite_key, test_id
        self.state: SuggestedState | None = None
        self.labels: list[LabelSaved] = []
        """Those of this sheet, which can be taken back."""
        self._at = run_id
        """The run that the person is asked to label; "": the most useful one."""

    def read(self) -> SuggestedState:
        """The runs with their labels, and the criteria that agree with them. Raises AgentevalError without runs."""
        test_examples = examples_of_test(self._store, self.suite_key, self.test_id)
        if self.state is None and any(
            example.run == self._at and example.good is not None for example in test_examples.examples.runs
        ):
            self._at = ""  # the open run has a label already: a different run is more useful
        try:
            self.state = SuggestedState(test_examples, suggest(test_examples.examples))
        except AgentevalError as problem:
            self.state = SuggestedState(test_examples, None, problem)
        return self.state

    def check(self) -> None:
        """Find out how good the criteria are. Blocks, for longer than `read`."""
        state = self.state
        if state is not None and state.suggestions is not None and state.suggestions.suggestions:
            checked = check(state.examples.examples)
            if self.state is state:  # no label came meanwhile
                self.state = replace(state, checked=checked)

    @property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """The criteria, best first."""
        suggestions = self.state.suggestions if self.state is not None else None
        return suggestions.suggestions if suggestions is not None else ()

    @property
    def shown(self) -> Example | None:
        """The run that a verdict is asked of: the open one at first, then the one that would tell most."""
        if self.state is None:
            return None
        runs = self.state.examples.examples.runs
        suggestions = self.state.suggestions
        run_ids = [self._at, suggestions.label_next if suggestions is not None else ""]
        for run in filter(None, run_ids):
            for example in runs:
                if example.run == run:
                    return example
        return next((example for example in runs if example.good is None), runs[0] if runs else None)

    def step(self, by: int) -> None:
        """Show the run that is `by` older."""
        example, state = self.shown, self.state
        if example is not None and state is not None:
            runs = state.examples.examples.runs
            at = [example.run for example in runs].index(example.run) + by
            self._at = runs[min(max(at, 0), len(runs) - 1)].run

    def say(self, run: str, good: bool) -> SuggestedState:
        """Keep what a person says of a run, and look again. The next run is the one that would tell most then."""
        label = opinion(run, "", rating=None, passed=good, comment="", who=current_user())
        self.labels.append(give_label(self._store, label))
        self._at = ""
        return self.read()

    def take_back(self) -> SuggestedState | None:
        """Take the last label of this sheet back; None where there is none."""
        if not self.labels:
            return None
        last = self.labels.pop()
        remove_label(self._store, last)
        self._at = last.label.run_id
        return self.read()

    def starter(self, number: int) -> Starter:
        """A suggestion as a new criterion."""
        suggestion = self.suggestions[number]
        return Starter("", suggestion.name, suggestion.prototype_class, suggestion.config, "made from labelled runs")
