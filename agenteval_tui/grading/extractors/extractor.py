"""What a prototype class is: a model of its properties, and how it takes a value out of a transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import BaseModel

from agenteval_tui.grading.config.model import EXACT, no_null
from agenteval_tui.grading.extracted_value import NothingExtracted, Value
from agenteval_tui.grading.metrics.metric import ConfigWarning, Metric
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.observed import ObservedKind

Extract = Callable[[Transcript], Value | None]


class Prototype(BaseModel):
    """Base of prototype classes (entry point group `agenteval.prototypes`).

    The fields are the properties of `config_uxon` beside `metrics`; docstring and field descriptions are what the
    editor shows. Types are exact.
    """

    model_config = EXACT
    _no_null = no_null

    def extract(self, transcript: Transcript) -> Value | None:
        """The value that the metrics look at; None when there is none (the criterion fails, then)."""
        raise NotImplementedError

    def why_nothing(self, transcript: Transcript) -> NothingExtracted:
        """Why `extract` found nothing, where it looked, and the closest thing it found."""
        return NothingExtracted("there is no such value in the transcript")

    def compile(self) -> Extract:
        """`extract`, with everything prepared that is the same for each transcript."""
        return self.extract

    @property
    def needs(self) -> frozenset[ObservedKind]:
        """What must have been observed for any verdict: without it, the criterion is not checked."""
        return frozenset(("text",))

    def findings(self) -> Iterator[ConfigWarning]:
        """What is contradictory or without effect in the properties."""
        yield from ()

    def findings_of(self, metric: Metric) -> Iterator[ConfigWarning]:
        """What is contradictory or without effect in a metric beside the properties. Paths lead from the metric."""
        yield from ()

    @property
    def can_find_nothing(self) -> bool:
        """Whether something is to be found, so that the criterion can fail even without a metric."""
        return False
