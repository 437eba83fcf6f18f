"""A metric: one class with the properties that people configure, and a check."""

from __future__ import annotations

import re

from pydantic import Field

from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import Metric
from agenteval_tui.grading.results import Evidence, MetricResult


class Courtesy(Metric):
    """Counts courteous words. The score grows with each, up to `at_least`."""

    words: list[str] = Field(default=["please", "thank", "sorry", "welcome"], description="What counts, in any case.")
    at_least: int = Field(default=1, ge=1, description="How many there must be.")

    def check(self, value: Value, context: Context) -> MetricResult:
        pattern = re.compile("|".join(map(re.escape, self.words)), re.IGNORECASE)
        found = list(pattern.finditer(value.text))
        enough = len(found) >= self.at_least
        reason = f"{len(found)} courteous words, at least {self.at_least} expected"
        # The spans say where in the transcript it was: the screens mark them.
        spans = tuple(span for match in found for span in value.spans(match.start(), match.end()))
        evidence = Evidence("at_least", enough, reason, self.at_least, len(found), spans)
        return self.result(enough, min(1.0, len(found) / self.at_least), (evidence,), "" if enough else reason)
