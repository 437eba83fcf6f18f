"""Criteria from examples, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from msgspec import Struct

from agenteval_tui.api.display import Shown
from agenteval_tui.api.grading import transcript_of
from agenteval_tui.api.runs import File, Run
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.suggest.examples import Example, Examples
from agenteval_tui.extensions.suggest.search import MOST, Check, Suggestion, Suggestions, SuggestOptions, check
from agenteval_tui.extensions.suggest.search import suggest as smallest_criteria
from agenteval_tui.extensions.suggest.stored_examples import TestExamples, examples_of_test
from agenteval_tui.extensions.suggest.view import suggestions_view
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.suites.model import Criterion
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.views.model import View


class Suggested(Shown, Struct, frozen=True, eq=False, dict=True):
    """Criteria that agree with examples, best first."""

    found: Suggestions
    given: TestExamples

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The criteria, ready for `grade` or a suite."""
        return tuple(
            Criterion(name=suggestion.name, prototype_class=suggestion.prototype_class, config_uxon=suggestion.config)
            for suggestion in self
        )

    @property
    def label_next(self) -> str:
        """The run whose label would tell most (of examples: its number, from 0); "" where none would."""
        return self.found.label_next

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.found.suggestions)

    def __len__(self) -> int:
        return len(self.found.suggestions)

    def __getitem__(self, place: int) -> Suggestion:
        return self.found.suggestions[place]

    def __repr__(self) -> str:
        return f"<Suggested {', '.join(suggestion.title for suggestion in self)}>"

    @cached_property
    def check(self) -> Check | None:
        """What they are worth, told by labels that they were not made of (`better` than always saying the more frequent
        label, or not); None with fewer than five, or of one kind only. It takes some searches more."""
        return check(self.given.examples)

    def view(self) -> View:
        """Each with its config, what it agrees with, what they are worth, and what to label next."""
        return suggestions_view(self.found, self.given, self.check)


def suggest(
    reference: str | Run = "",
    *,
    good: Iterable[Any] = (),
    bad: Iterable[Any] = (),
    unlabelled: Iterable[Any] = (),
    from_judge: bool = False,
    most: int = MOST,
    db: File | None = None,
) -> Suggested:
    """The smallest criteria that agree with examples. No model is asked, and nothing is stored.

    With `reference` (a test's id, TEST/CRITERION, a run) as `agenteval suggest`: the labels of the test's stored runs,
    or a judge's stored verdicts. Else `good` and `bad` are the examples, and `unlabelled` more of the same kind: each
    whatever `grade` takes (a text, chat messages, a server's reply, a `Transcript`), or a `Run`. Raises
    `AgentevalError` without a good one, and for an option outside its limits.
    """
    options = SuggestOptions(from_judge=from_judge, most=most)
    if not reference:
        if from_judge:
            raise AgentevalError("a judge's verdicts are of stored runs", fix="name a test")
        labels = {True: good, False: bad, None: unlabelled}
        labelled = [(example, label) for label, examples in labels.items() for example in examples]
        examples = Examples([_example(number, example, label) for number, (example, label) in enumerate(labelled)])
        return Suggested(smallest_criteria(examples, options.most), TestExamples(examples))
    listed = [*((run, True) for run in good), *((run, False) for run in bad)]
    name = reference.id if isinstance(reference, Run) else reference
    path = reference.db if isinstance(reference, Run) else directories.history_file(db)
    with Store.open_to_look(path) as store:
        find = References(store, projects_open())
        row, criterion = find.address(name)
        opinions = {find.run(run.id if isinstance(run, Run) else str(run)).id: label for run, label in listed}
        test_examples = examples_of_test(
            store, row.suite_key, row.test_id, criterion=criterion, from_judge=from_judge, opinions=opinions
        )
    return Suggested(smallest_criteria(test_examples.examples, options.most), test_examples)


def _example(number: int, what: Any, label: bool | None) -> Example:
    if isinstance(what, Run):
        return Example(what.id, what.transcript, what.row.variables, label)
    return Example(str(number), transcript_of(what), {}, label)
