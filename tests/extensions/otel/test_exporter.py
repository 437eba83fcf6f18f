"""Runs as traces of OpenTelemetry."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings

from agenteval_tui.extensions.otel.importer import recording_of, span_of
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Transcript
from tests.formats.test_export import core, exported, transcripts


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(transcripts())
def test_own_runs_keep_messages_and_calls_through_opentelemetry(transcript: Transcript) -> None:
    document = json.loads(exported("otel", transcript))
    spans = [span_of(one) for one in document["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    found = recording_of(spans[0]["trace"], spans)
    assert isinstance(found, Recording)
    assert core(found.transcript) == core(transcript)
    assert (found.test_id, found.test_name, found.repetition) == ("t", "T", 2)
    assert [(one.criterion, one.score, criterion_sentence(one)) for one in found.results] == [("mine", 0.5, "so")]


def test_every_runs_ids_are_those_of_opentelemetry() -> None:
    transcript = from_openai_messages([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])
    spans = json.loads(exported("otel", transcript))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert {len(one["traceId"]) for one in spans} == {32}
    assert {len(one["spanId"]) for one in spans} == {16}
    assert exported("otel", transcript) == exported("otel", transcript)
