"""`State`: what a probe read before or after the run, or what changed in it."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Literal

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import PROBE_NAME
from agenteval_tui.grading.extracted_value import ExtractionError, JsonValue, Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.json_reading import JsonSource, SpanMap
from agenteval_tui.grading.results import Span
from agenteval_tui.grading.state_change import change_between
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading, value_text


class State(Prototype):
    """What the run left behind: the value of a probe of the test's `state`, such as a row of a database or a file.

    Metrics on text get a text as it is, and any other value as compact JSON. If the probe could not be read, the
    criterion is not checked.
    """

    probe: str = Field(
        min_length=1, description="The name of a probe in `state` of the test or suite.", json_schema_extra=PROBE_NAME
    )
    of: Literal["after", "before", "change"] = Field(
        "after",
        description="after: its value after the run; before: its value before it; change: what changed, {} if "
        "nothing did (added, removed and changed of objects and lists, else before and after).",
    )

    def extract(self, transcript: Transcript) -> Value | None:
        number, state = self._state(transcript)
        if self.of == "change":
            before, after = self._read(state, "before"), self._read(state, "after")
            change = change_between(before.value, after.value)
            return JsonValue(transcript, change, JsonSource(value_text(change), _spans_of(number, "change")))
        reading = self._read(state, self.of)
        if isinstance(reading.value, str):
            return Value(transcript, reading.value, _spans_of(number, self.of))
        return JsonValue(transcript, reading.value, JsonSource(reading.text, _spans_of(number, self.of)))

    def _state(self, transcript: Transcript) -> tuple[int, ProbeState]:
        for number, state in enumerate(transcript.state):
            if state.name == self.probe:
                return number, state
        names = [probe_state.name for probe_state in transcript.state]
        fields: dict[str, Any] = {"probe": self.probe, "probes": names}
        close = get_close_matches(self.probe, names, n=1)
        if close:
            fields["nearest"] = close[0]
        raise ExtractionError(code=Code.NO_STATE, **fields)

    def _read(self, state: ProbeState, moment: str) -> Reading:
        reading = state.before if moment == "before" else state.after
        if reading is None:
            raise ExtractionError(code=Code.NO_STATE, probe=self.probe, of=moment, probes=[])
        if reading.problem:
            about: dict[str, Any] = {
                "probe": self.probe,
                "of": moment,
                "problem": reading.problem,
                "about": dict(reading.fields),
            }
            raise ExtractionError(code=Code.STATE_UNREAD, **about)
        return reading


def _spans_of(number: int, moment: str) -> SpanMap:
    def spans(start: int, end: int) -> tuple[Span, ...]:
        return (Span("state", number, start, end, moment),)

    return spans
