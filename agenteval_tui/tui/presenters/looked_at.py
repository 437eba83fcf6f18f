"""What the criterion looked at, and what it found: the middle pane of Inspect."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.grading.explain import own_reason
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Span
from agenteval_tui.text.display import displayable_map, one_line
from agenteval_tui.tui.lines import Cell, Line, fit, fold, right, spread, width_of, wrap
from agenteval_tui.tui.presenters.figures import count
from agenteval_tui.tui.presenters.marks import STYLES, MarkKind
from agenteval_tui.tui.presenters.outcomes import UNICODE, mark, token, word
from agenteval_tui.tui.presenters.paragraphs import paragraph, within

if TYPE_CHECKING:
    from agenteval_tui.analysis.workbench import Workbench

VALUE_LINES = 40
TOOL_LINES = 400

Piece = tuple[int, int, MarkKind]


def looked_at(
    bench: Workbench, criterion: int, result: CriterionResult, others: Sequence[CriterionResult], width: int
) -> list[Line]:
    """Extraction, verdict with evidence, and the other criteria, in `width` cells."""
    lines: list[Line] = []
    lines += _verdict(result, width)
    lines.append(())
    if own := own_reason(result):
        lines += [*paragraph(own, width, "error" if result.outcome == "error" else ""), ()]
    for metric in result.metrics:
        lines += _metric(metric, width)
        lines.append(())
    if result.outcome == "failed" and not result.source:
        lines += [(("F7", "bold accent"), (" the smallest edits that make it pass", "dim")), ()]
    lines += _value(bench, result, width)
    lines += [(), *_others(bench, criterion, others, width)]
    return within(lines, width)


def tool_text_lines(bench: Workbench, result: CriterionResult | None, width: int) -> list[Line]:
    """The formatted tool calls, with what the evidence points at marked."""
    text, places = bench.tool_text
    if not text:
        return [fit((("The agent called no tool.", "dim"),), width)]
    marks: list[Piece] = []
    for evidence in _evidence(result):
        for span, style in _spans(evidence):
            for place in places:
                if span.kind not in ("arguments", "tool") or place.call != span.index:
                    continue
                name = span.path.split(".")[0] if span.kind == "arguments" else None
                if place.argument == name:
                    marks.append((place.start, place.end, style))
    head = ((count(len(bench.transcript.tool_calls), "tool call"), "bold"),)
    return within([head, (), *marked_text(text, marks, width, TOOL_LINES)], width)


def marked_text(text: str, marks: Sequence[Piece], width: int, most: int = VALUE_LINES) -> list[Line]:
    """Foreign text, wrapped, with pieces marked: hits underlined, misses and near misses in brackets, all coloured.

    `marks` are (start, end, kind) in characters of `text`; where they overlap the first one wins. Of a long text
    `most` lines are shown: its start, or what is around the first mark that is not in it.
    """
    width = max(width, 1)
    begin, end = _window(text, marks, width, most)
    shown, places = displayable_map(text[begin:end])
    shown = shown.replace("\t", " ")
    pieces = _apart(_shift([(s - begin, e - begin, kind) for s, e, kind in marks if e >= begin and s <= end], places))
    # Brackets take cells too.
    spans = wrap(shown, max(width - 2, 1) if any(kind != "hit" for _, _, kind in pieces) else width)
    first = _first_shown(spans, pieces, most)
    lines: list[Line] = []
    above = text.count("\n", 0, begin) + first
    if begin or first:
        lines.append((("… " + (count(above, "line") if above else count(begin, "character")) + " above", "dim"),))
    next_piece = 0
    for start, stop in spans[first : first + most]:
        while next_piece < len(pieces) and pieces[next_piece][1] < start:
            next_piece += 1
        line = _marked(shown, start, stop, pieces[next_piece:])
        # Several marks in a line have more brackets than there was room left for.
        lines += [line] if width_of(line) <= width else fold(line, width)
    below = max(len(spans) - first - most, 0) + text.count("\n", end)
    if below or end < len(text):
        lines.append(
            ((f"… {count(below, 'more line') if below else count(len(text) - end, 'more character')}", "dim"),)
        )
    return [fit(line, width) for line in lines]


def _window(text: str, marks: Sequence[Piece], width: int, most: int) -> tuple[int, int]:
    """The part of a long text that is laid out: enough for `most` lines, with the mark that matters most in it."""
    size = 2 * most * width
    if len(text) <= size:
        return 0, len(text)
    matters = [start for start, _, kind in marks if kind != "hit"] or [start for start, _, _ in marks]
    first = min(max(min(matters, default=0), 0), len(text))
    if first < size // 2:
        return 0, size
    begin = first - size // 8
    line = text.find("\n", begin, first)
    begin = begin if line < 0 else line + 1
    return begin, min(begin + size, len(text))


def _first_shown(spans: Sequence[tuple[int, int]], pieces: Sequence[Piece], most: int) -> int:
    matters = [piece for piece in pieces if piece[2] != "hit"] or pieces
    if not matters:
        return 0
    row = max(bisect_right(spans, (matters[0][0], len(spans) and spans[-1][1])) - 1, 0)
    return 0 if row < most else min(row - most // 4, len(spans) - most)


def _apart(marks: Iterable[Piece]) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for start, end, kind in sorted(marks):
        start = max(start, at)
        if end >= start:
            pieces.append((start, end, kind))
            at = max(end, at)
    return pieces


def _marked(shown: str, first: int, last: int, pieces: Iterable[Piece]) -> Line:
    cells: list[Cell] = []
    at = first
    for start, end, kind in pieces:
        if start > last:
            break
        if end < first or (end == first and start < first):
            continue
        begin, finish = max(start, first), min(end, last)
        cells.append((shown[at:begin], ""))
        inner = shown[begin:finish]
        opening = "[" if start >= first and kind != "hit" else ""
        closing = "]" if end <= last and kind != "hit" else ""
        cells.append((opening + inner + closing, STYLES[kind]))
        at = finish
    cells.append((shown[at:last], ""))
    return tuple(cell for cell in cells if cell[0])


def _shift(marks: Sequence[Piece], places: list[int] | None) -> list[Piece]:
    if places is None:
        return list(marks)
    last = len(places) - 1
    return [(places[min(a, last)], places[min(b, last)], style) for a, b, style in marks]


def _verdict(result: CriterionResult, width: int) -> list[Line]:
    head: tuple[Cell, ...] = (mark(result.outcome), (" ", ""), (one_line(result.criterion), "bold"))
    if result.negate:
        head = (*head, ("  negated", "dim"))
    tail: list[Cell] = [(f" {word(result.outcome)}", token(result.outcome))]
    if result.score is not None:
        tail += [(f" {result.score:.2f}", "bold"), (f"  rating {result.rating}", "dim")]
    return [spread(head, tail, width)]


def _metric(metric: MetricResult, width: int) -> list[Line]:
    name = metric.name if metric.name == metric.type else f"{metric.name} ({metric.type})"
    tail: list[Cell] = [mark(metric.outcome)]
    if metric.score is not None:
        tail.append((f" {metric.score:.2f}", ""))
    if metric.rating is not None and width >= 36:
        tail.append((f"  rating {metric.rating}", "dim"))
    lines: list[Line] = [spread(((one_line(name), "bold"),), tail, width)]
    group = ""
    for one in metric.evidence:
        if one.group and one.group != group:
            group = one.group
            lines.append(((f"  {one_line(group)}", "dim"),))
        lines += _condition(one, width)
    if metric.neutral:
        lines.append((("  nothing is configured: it checks nothing", "dim"),))
    elif not metric.evidence and metric.reason:
        lines += paragraph(metric.reason, width, "error" if metric.outcome == "error" else "", 2)
    return lines


def _condition(one: Evidence, width: int) -> list[Line]:
    outcome = "skipped" if one.passed is None else "passed" if one.passed else "failed"
    lines: list[Line] = [
        (("  ", ""), mark(outcome), (" ", ""), (one_line(one.condition, 80), "dim"), (_expected(one), "")),
    ]
    # A passed condition needs no story; a failed one is why the person is here.
    if one.reason and (not one.passed or width >= 60):
        lines += paragraph(one.reason, width, "dim" if one.passed else "", 6)
    return lines


def _expected(one: Evidence) -> str:
    if one.expected is None:
        return ""
    import json

    text = json.dumps(one.expected, ensure_ascii=False, default=str)
    return " " + one_line(text, 60)


def _value(bench: Workbench, result: CriterionResult, width: int) -> list[Line]:
    if result.value is None:
        return []
    rows = result.value.count("\n") + 1 if result.value else 0
    title = f"{one_line(result.prototype_class, 40) or 'value'} → " + (count(rows, "line") if rows else "empty text")
    marks: list[Piece] = []
    for evidence in _evidence(result):
        for span, style in _spans(evidence):
            place = _in_value(span, result)
            if place is not None:
                marks.append((*place, style))
    lines: list[Line] = [((title, "dim"),)]
    if result.value:
        lines += [((" ", ""), *line) for line in marked_text(result.value, marks, width - 1, VALUE_LINES)]
    return lines


def _evidence(result: CriterionResult | None) -> list[Evidence]:
    return [one for metric in result.metrics for one in metric.evidence] if result else []


def _spans(evidence: Evidence) -> list[tuple[Span, MarkKind]]:
    kind: MarkKind = "miss" if evidence.passed is False else "hit"
    near: MarkKind = "near"
    return [(span, kind) for span in evidence.spans] + [(span, near) for span in evidence.near]


def _in_value(span: Span, result: CriterionResult) -> tuple[int, int] | None:
    """Where in the extracted value a span stands; None when it is not there."""
    if span.kind == "value":
        return span.start, span.end
    offset = 0
    for part in result.value_spans:
        if part.kind != "message":
            return None
        inside = part.index == span.index and part.start <= span.start and span.end <= part.end
        if span.kind == "message" and inside:
            return offset + span.start - part.start, offset + span.end - part.start
        offset += part.end - part.start
    return None


def _others(bench: Workbench, criterion: int, others: Sequence[CriterionResult], width: int) -> list[Line]:
    lines: list[Line] = [((f"criteria of this test {len(others)}", "bold"),)]
    for number, one in enumerate(others):
        sign = ("▸" if UNICODE else ">") if number == criterion else " "
        start: list[Cell] = [(f"{sign} ", "accent"), mark(one.outcome), (" ", ""), (one_line(one.criterion), "")]
        if one.source:
            start.append((f"  {one_line(one.source)}", "dim"))
        severity = one_line(one.severity, 12)
        tail: list[Cell] = [(f" {severity}", "dim")] if one.severity != "error" and not one.source else []
        if one.score is not None:
            tail.append((right(f"{one.score:.2f}", 6), "dim"))
        lines.append(spread(start, tail, width))
        if one.source and one.reason:
            lines += paragraph(one.reason, width, "dim", 4)
    return lines
