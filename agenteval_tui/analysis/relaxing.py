"""The smallest relaxations of a failing criterion, and what each would do to the stored runs.

People's labels stand beside the counts: they say which flips are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agenteval_tui.grading.relax import MOST, Relaxation, relaxations
from agenteval_tui.history.labels import label_of

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Impact, Workbench
    from agenteval_tui.history.labels import Label


@dataclass(slots=True)
class Agreement:
    """Over the runs of the pool that people labelled: how many outcomes agree with them, `now` and `then`."""

    labelled: int = 0
    now: int = 0
    then: int = 0
    against: list[str] = field(default_factory=list)
    """Runs that would change to the other side of what a person said."""


@dataclass(slots=True)
class Suggestion:
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
    def said(self) -> str:
        """In words: `3 of 40 runs flip to passed, 1 to failed; against a label: 2`."""
        if self.impact is None:
            return "not counted yet"
        passed, failed = self.impact.flipped_to("passed"), self.impact.flipped_to("failed")
        text = f"{passed:,} of {self.impact.total:,} runs flip to passed"
        text += f", {failed:,} to failed" if failed else ""
        text += "" if self.counted else f" ({self.impact.done:,} counted)"
        if self.labels.labelled:
            text += f"; agrees with {self.labels.then} of {self.labels.labelled} labels (now {self.labels.now})"
        return text


def suggest(bench: Workbench, criterion: int, text: str | None = None, *, most: int = MOST) -> tuple[Suggestion, ...]:
    """The smallest relaxations for the bench's run, best first, nothing counted yet. `text`: the config as edited.

    Milliseconds; () when the criterion does not fail on this run.
    """
    spec = bench.spec(criterion, text)
    variables = bench.variables(bench.run.variables, spec)
    return tuple(Suggestion(one) for one in relaxations(spec, bench.transcript, variables, most=most))


def count_flips(bench: Workbench, criterion: int, suggestions: Sequence[Suggestion]) -> Iterator[Suggestion]:
    """Count what each would do to every stored run, in slices of a few milliseconds; yields the one it is at.

    Flips are counted against the criterion as it is saved, as for any other edit.
    """
    labels = opinions(bench, criterion)
    for suggestion in suggestions:
        for impact in bench.impact(criterion, suggestion.relaxation.new_text):
            suggestion.impact = impact
            if impact.done == impact.total:
                suggestion.labels = agreement(bench, criterion, impact, labels)
            yield suggestion


def opinions(bench: Workbench, criterion: int) -> dict[str, bool]:
    """What people said of the pool's runs: should the criterion pass? The label of each run that counts for it."""
    runs = [one.run for one in bench.pool(criterion)]
    by_run: dict[str, list[Label]] = {}
    for label in bench.store.labels(runs) if runs else ():
        by_run.setdefault(label.run_id, []).append(label)
    found = {run: label_of(labels, bench.spec(criterion).name, bench.sole) for run, labels in by_run.items()}
    return {run: one.good for run, one in found.items() if one is not None}


def agreement(bench: Workbench, criterion: int, impact: Impact, labels: Mapping[str, bool]) -> Agreement:
    """How the outcomes of a wholly counted impact agree with what people said (`opinions`)."""
    if not labels:
        return Agreement()
    found = Agreement(labelled=len(labels))
    then = {run: after for run, _, after in impact.flips}
    for run, good in labels.items():
        now = bench.saved_outcome(criterion, run)
        wanted = "passed" if good else "failed"
        found.now += now == wanted
        found.then += then.get(run, now) == wanted
        if run in then and now == wanted:
            found.against.append(run)
    return found
