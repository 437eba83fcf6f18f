"""Results as a small tree of facts, and that tree as JSON. `views.evidence` shows it, the same in every medium."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from agenteval_tui.core.document import Document, extended
from agenteval_tui.core.numbers import count, decimal
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.grading import sentences
from agenteval_tui.grading.codec import AnySpan, span_document
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.grading.sentences import own_criterion_sentence

Mark = Literal["passed", "failed", "error", "info", "near"]

_VALUE = 120


class FactLine(Document, frozen=True):
    """A line of an explanation. The text is raw."""

    mark: Mark
    text: str


class Fact(FactLine, frozen=True):
    """A line, and what belongs to it. `span` is the place it speaks of, if it has one; `evidence` what it says in a
    sentence, which can be shown as a comparison."""

    children: tuple[Fact, ...] = ()
    span: Span | None = None
    evidence: Evidence | None = None


def explain(results: Iterable[CriterionResult]) -> tuple[Fact, ...]:
    """A fact for each criterion; below it the value, its metrics, and below them their evidence, failures first."""
    return tuple(_criterion(result) for result in results)


def headline(result: CriterionResult) -> str:
    """One line that says why a criterion did not pass (or that it did)."""
    if result.outcome is Outcome.PASSED:
        return f"{result.criterion}: {'checks nothing' if result.neutral else 'passed'}"
    return f"{result.criterion}: {why(result) or str(result.outcome)}"


def why(result: CriterionResult) -> str:
    """The reason alone, without the criterion's name; "" for one that passed."""
    if result.outcome is Outcome.PASSED:
        return ""
    if result.outcome is Outcome.FAILED and not result.negate:
        for metric in result.metrics:
            if metric.outcome is Outcome.FAILED and (missed := sentences.missed_sentence(metric)):
                return missed
    return sentences.criterion_sentence(result)


class FactDocument(FactLine, frozen=True, kw_only=True):
    """A line of an explanation, with what belongs to it. The text is raw."""

    span: AnySpan | None
    children: tuple[FactDocument, ...]


def fact_document(fact: Fact) -> FactDocument:
    """A fact, with all below it, as it is printed."""
    return extended(
        FactDocument,
        fact,
        span=None if fact.span is None else span_document(fact.span),
        children=tuple(map(fact_document, fact.children)),
    )


def flat(facts: Iterable[Fact], depth: int = 0) -> Iterator[tuple[int, Fact]]:
    """Every fact of the tree with its depth, in the order in which it is shown."""
    for fact in facts:
        yield depth, fact
        yield from flat(fact.children, depth + 1)


def metric_name(name: str, kind: str) -> str:
    """The name of a metric, and its type where it has another name."""
    return name if name == kind else f"{name} ({kind})"


def on_one_line(text: str) -> str:
    """`text` with its line breaks and tabs as signs; every other character, each space too, stays."""
    if not _BREAKS.search(text):
        return text
    return _BREAKS.sub(lambda match: "→" if match.group() == "\t" else "⏎", text)


_BREAKS = re.compile(r"\r\n|[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]")


def _mark_of(outcome: Outcome) -> Mark:
    """The mark of an outcome."""
    marks: dict[Outcome, Mark] = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.ERROR: "error"}
    return marks.get(outcome, "info")


def _criterion(result: CriterionResult) -> Fact:
    text = f"{result.criterion}: {result.outcome}"
    if result.score is not None:
        text += f", score {decimal(result.score)}"
    notes = [result.severity] if result.severity != "error" and not result.derived else []
    notes += ["derived from the imported file"] if result.derived else []
    notes += ["negated"] if result.negate else []
    notes += [f"from {result.source}"] if result.source else []
    if notes:
        text += f" ({', '.join(notes)})"
    children: list[Fact] = []
    if own := own_criterion_sentence(result):
        children.append(Fact(_mark_of(result.outcome), own))
    if result.value is not None:
        where = result.value_spans[0] if result.value_spans else None
        lines = result.value.count("\n") + 1
        long = len(result.value) > _VALUE
        size = f" ({count(lines, 'line')}, {count(len(result.value), 'character')})" if long else ""
        children.append(Fact("info", f"{result.prototype_class} found {quoted(result.value, _VALUE)}{size}", (), where))
    children.extend(_metric(metric) for metric in result.metrics)
    return Fact(_mark_of(result.outcome), text, tuple(children))


def _metric(metric: MetricResult) -> Fact:
    if metric.neutral:
        return Fact("info", f"{metric.name}: {sentences.metric_sentence(metric)}")
    text = metric_name(metric.name, metric.type)
    if metric.score is not None:
        text += f": {decimal(metric.score)}"
    elif sentences.metric_sentence(metric):
        text += f": {sentences.metric_sentence(metric)}"
    # What did not hold first: that is what a reader looks for. Else the order of the metric, as `sorted` is stable.
    ordered = sorted(metric.evidence, key=lambda evidence: evidence.passed is True)
    return Fact(_mark_of(metric.outcome), text, tuple(_evidence(evidence) for evidence in ordered))


def _evidence(evidence: Evidence) -> Fact:
    mark: Mark = "info" if evidence.passed is None else "passed" if evidence.passed else "failed"
    near = tuple(Fact("near", _where(span), (), span) for span in evidence.near[:3])
    return Fact(
        mark,
        f"{evidence.condition}: {sentences.evidence_sentence(evidence)}",
        near,
        evidence.spans[0] if evidence.spans else None,
        evidence,
    )


def _where(span: Span) -> str:
    if span.kind == "message":
        return f"closest: message {span.index + 1}, characters {span.start + 1} to {span.end}"
    if span.kind == "value":
        return f"closest: characters {span.start + 1} to {span.end} of the value"
    if span.kind == "tool":
        return f"closest: tool call {span.index + 1}"
    if span.kind == "state":
        return f"closest: the state {span.path} the run" if span.path != "change" else "closest: the change"
    if span.kind == "request":
        return f"closest: request {span.index} to the model, characters {span.start + 1} to {span.end}"
    return f"closest: argument {span.path} of tool call {span.index + 1}"
