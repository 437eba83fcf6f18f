"""Braintrust: rows of an experiment or of logs, a span each: `span_id`, `root_span_id`, `input`, `scores`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.process.python_usage import figures_in
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import as_list, as_object, plain_text, value_at
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, first_user_text, skipped_element
from agenteval_tui.formats.importers.trace_conversation import Kind, Span, conversation_of
from agenteval_tui.formats.importers.trace_names import with_test_names
from agenteval_tui.formats.importers.usage_import import leave_out, number, share
from agenteval_tui.formats.stream.json_stream import BrokenElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.formats.stream.spool import Spool
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult

NAME = "braintrust"
_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool", "function": "function"}

_FIGURES = frozenset(("start", "end", "duration", "time_to_first_token", "estimated_cost"))
"""Metrics that Braintrust itself writes, beside those of tokens; others are the user's own."""


def can_read(value: Any) -> bool:
    """Whether a value of the file is a row."""
    return isinstance(value, Mapping) and "span_id" in value and "root_span_id" in value and "input" in value


def recordings(source: Source) -> Iterator[Recording | Skipped]:
    """A run for each root span."""
    with Spool() as spool:
        for element in source.values():
            if isinstance(element, BrokenElement):
                yield skipped_element(element)
            elif isinstance(element.value, Mapping) and element.value.get("span_id"):
                spool.put(
                    plain_text(element.value.get("root_span_id") or element.value["span_id"]), dict(element.value)
                )
            else:
                yield Skipped("not a row: it has no `span_id`", element.line)
        for root, rows in spool.groups():
            try:
                yield _recording(root, rows)
            except AgentevalError as error:
                yield Skipped(error.what, place=f"span {root[:60]}")


def _recording(root: str, rows: Sequence[Mapping[str, Any]]) -> Recording:
    ids = {plain_text(row.get("span_id")) for row in rows}
    spans = [_span(row, ids) for row in rows]
    top = next((row for row in rows if plain_text(row.get("span_id")) == root), rows[0])
    notes: list[str] = []
    transcript = conversation_of(spans, NAME, notes)
    expected = top.get("expected")
    name = _attribute(top, "name") or plain_text(top.get("id"))
    return Recording(
        test_id=as_id(plain_text(top.get("dataset_record_id")) or plain_text(top.get("id")) or root),
        test_name=name,
        trace_name="" if top.get("dataset_record_id") else _attribute(top, "name"),
        transcript=transcript,
        prompt=first_user_text(transcript),
        agent=transcript.model or name,
        results=tuple(_scores(top.get("scores"))),
        expected=criteria_of_target(expected),
        variables={} if expected is None else {"expected_value": expected},
        started_ms=min((span.started for span in spans if span.started is not None), default=None),
        notes=tuple(notes),
        source=tuple(("", row) for row in rows),
    )


def _attribute(row: Mapping[str, Any], name: str) -> str:
    return plain_text(value_at(row, "span_attributes", name))


def _span(row: Mapping[str, Any], ids: set[str]) -> Span:
    kind = _KINDS.get(_attribute(row, "type"), "other")
    parents = [plain_text(parent) for parent in as_list(row.get("span_parents"))]
    metrics = as_object(row.get("metrics"))
    started, ended = (_figure(metrics.get(name)) for name in ("start", "end"))
    of_usage = figures_in(metrics)[1] if kind == "model" else {}  # of which the usage's own note tells
    for name, value in metrics.items():
        is_figure = name in _FIGURES or name.endswith("tokens")
        if is_figure and name not in of_usage and value is not None and _figure(value) is None:
            leave_out(f"metrics.{name}")
    if row.get("metrics") is not None and not isinstance(row["metrics"], Mapping):
        leave_out("metrics")
    return Span(
        id=plain_text(row.get("span_id")),
        kind=kind,
        name=_attribute(row, "name"),
        parent=next((parent for parent in parents if parent in ids), ""),
        started=None if started is None else started * 1000,
        ended=None if ended is None else ended * 1000,
        asked=row.get("input"),
        answered=row.get("output"),
        model=plain_text(value_at(row, "metadata", "model")),
        usage=metrics if kind == "model" else None,
        error=plain_text(row.get("error")),
    )


def _figure(value: Any) -> float | None:
    """A metric as Braintrust has them: a number from 0 on; None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 2**63 else None


def _scores(scores: Any) -> Iterator[CriterionResult]:
    for name, value in as_object(scores).items():
        figure = number(value)
        if figure is not None:
            reason = f"Braintrust has {figure:g}"
            yield foreign_result(plain_text(name), score=share(figure), source=NAME, reason=reason)


FORMAT = Format(
    name=NAME,
    title="Braintrust rows",
    looks_like="objects with `span_id`, `root_span_id` and `input`",
    can_read=can_read,
    recordings=with_test_names(recordings),
    gathered=True,
    rank=69,
)
