"""What each format that runs are exported to can't keep: one list, for the export's notes, its help and its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval_tui.exchange.exporting import StoredRun
    from agenteval_tui.suites.model import Test


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that a format can't keep: its code, what it is in words, and whether a run has it."""

    code: str
    said: str
    of: Callable[[StoredRun], bool]


_LABELS = Loss(
    "labels", "people's labels: the file has them, but an import does not read them", lambda run: bool(run.labels)
)

LOSSES: Mapping[str, tuple[Loss, ...]] = {
    "openai": (_LABELS,),
    "agenteval": (_LABELS,),
    "otel": (_LABELS,),
    "tau-bench": (_LABELS,),
    "tau2-bench": (_LABELS,),
}
"""By the format's name. Everything else comes back as it was: outcomes, scores, criteria with their evidence, rows."""


@dataclass(frozen=True, slots=True)
class SheetLoss:
    """Something of a suite's test that Power UI's data sheets can't keep: its code, in words, whether a test has it."""

    code: str
    said: str
    of: Callable[[Test], bool]


POWER_UI = (
    SheetLoss("repeat", "repetitions", lambda test: (test.repeat or 1) > 1),
    SheetLoss("variations", "variations", lambda test: bool(test.variations)),
    SheetLoss("severity", "severity of criteria", lambda test: any(one.severity != "error" for one in test.criteria)),
    SheetLoss("negate", "negated criteria", lambda test: any(one.negate for one in test.criteria)),
    SheetLoss(
        "pass_threshold",
        "thresholds",
        lambda test: test.pass_threshold is not None or any(one.pass_threshold is not None for one in test.criteria),
    ),
    SheetLoss("tags", "tags", lambda test: bool(test.tags)),
    SheetLoss("category", "categories", lambda test: test.category is not None),
    SheetLoss("agent", "agents", lambda test: test.agent is not None),
    SheetLoss("timeout", "timeouts", lambda test: test.timeout is not None),
    SheetLoss("stop", "early stops", lambda test: test.stop is not None),
)
"""Of a suite. The export names each test that has it; conversations of several turns and datasets are left out."""


def listed() -> str:
    """All losses in words, a line a format: for the help and the page."""
    lines = [f"{name}: {'; '.join(one.said for one in losses)}." for name, losses in LOSSES.items()]
    return "\n".join([*lines, f"power-ui: {', '.join(one.said for one in POWER_UI)}."])


class Losses:
    """Counts what a format loses of the runs that pass by on their way out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: Counter[Loss] = Counter()

    def over(self, runs: Iterable[StoredRun]) -> Iterator[StoredRun]:
        """The runs, as they are."""
        for run in runs:
            self._found.update(one for one in LOSSES[self._name] if one.of(run))
            yield run

    def lines(self) -> Iterator[str]:
        """A line for each kind of thing that was lost: `not kept: the test's tags (2 runs)`."""
        for loss in LOSSES[self._name]:
            if count := self._found[loss]:
                yield f"not kept: {loss.said} ({count:,} {'run' if count == 1 else 'runs'})"


def codes_of(name: str, run: StoredRun) -> list[str]:
    """The codes of what the format loses of a run, for its file."""
    return [one.code for one in LOSSES[name] if one.of(run)]
