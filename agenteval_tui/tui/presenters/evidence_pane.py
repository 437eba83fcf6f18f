"""What the criterion looked at, and what it found: the middle pane of Inspect. Expected stands above got, with a caret
under the first character that differs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from agenteval_tui.analysis.run_facts import RunFacts, disagrees
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.display import displayable_map, one_line
from agenteval_tui.core.numbers import count, decimal, short_dollars
from agenteval_tui.core.phrasing import listed, shown
from agenteval_tui.grading import sentences
from agenteval_tui.grading.explain import metric_name
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Span
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import FailedAttempt
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.transcripts.observed import calls_phrase, unseen
from agenteval_tui.transcripts.traceback import traceback_from
from agenteval_tui.tui.presenters.highlights import VALUE_LINES, MarkKind, Piece, marked_text
from agenteval_tui.tui.presenters.run_tabs import error_lines, traceback_rows
from agenteval_tui.tui.presenters.status_style import UNICODE, mark, token, word
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    cell_len,
    fit,
    indented,
    left,
    longest_that_fits,
    paragraph,
    right,
    spread,
    width_of,
    wrap,
    wrap_to,
)
from agenteval_tui.views.evidence_comparison import Comparison, comparison_title, comparisons, hidden_differences
from agenteval_tui.views.label import feedback_view, labels_view

LINE_END = "↵"  # in a text that has room in one line
EXPECTED, GOT, NEAREST, NOTHING = "expected", "got", "nearest", "nothing"
ROWS = 6
"""Rows of a text that are shown; of one that has more, those around the place that differs."""
_AROUND = 1  # rows on each side of the one that differs: both texts are in view together
_LABEL = 10  # cells of `expected`, `nearest` and `got`
_GAP = 3
_LEAST = 16  # cells of text beside the names; with fewer, names and labels are above it


def comparison_lines(nested: Iterable[Comparison], width: int, indent: int = 0) -> list[Line]:
    """The comparisons, one below the other, in `width` cells, behind `indent` empty ones."""
    comparisons = list(nested)
    indent = min(indent, max(width - _LEAST, 0))
    room = width - indent
    widest = max((cell_len(comparison.name) for comparison in comparisons if not comparison.parts), default=0)
    names = min(widest + _GAP if widest else 0, room // 3)
    lines: list[Line] = []
    for comparison in comparisons:
        if comparison.parts:
            lines += _tree(comparison, room)
        elif names and (cell_len(comparison.name) > names - 1 or room - names - _LABEL < _LEAST):
            lines.append(fit(((one_line(comparison.name), "json-key"),), room))
            lines += [((" " * min(2, room), ""), *line) for line in _pair(comparison, max(room - 2, 1))]
        else:
            pair = _pair(comparison, room - names)
            heads = [left(one_line(comparison.name) if not number else "", names) for number in range(len(pair))]
            lines += [((head, "json-key"), *line) if names else line for head, line in zip(heads, pair, strict=True)]
    return [fit(((" " * indent, ""), *line), width) for line in lines]


def _tree(comparison: Comparison, width: int) -> list[Line]:
    alike: Line = ((f"{comparison.alike:,} alike", "dim"),) if comparison.alike else ()
    lines: list[Line] = []
    if comparison.name:
        lines.append(fit(((one_line(comparison.name), "json-key"), (" " * _GAP, ""), *alike), width))
    below = 2 if comparison.name else 0
    lines += comparison_lines(comparison.parts, width, below)
    if comparison.note:
        lines.append(fit(((" " * below + f"… {comparison.note}", "dim"),), width))
    if alike and not comparison.name:
        lines.append(fit((("… ", "dim"), *alike), width))
    return lines


def _pair(comparison: Comparison, width: int) -> list[Line]:
    beside = width - _LABEL >= _LEAST
    room = width - _LABEL if beside else width
    at, note = comparison.at, comparison.note
    parts: list[tuple[str, list[Line]]] = []
    if comparison.expected is not None:
        parts.append((EXPECTED, _rows(comparison.expected, at, room)))
    if comparison.got is None:
        parts.append((GOT, [((NOTHING, "dim"),)]))
    else:
        rows = _rows(comparison.got, at, room, note if at is not None else "")
        where: Cell = (f"   {comparison.where}", "dim")
        if comparison.where and rows and sum(cell_len(text) for text, _ in rows[0]) + cell_len(where[0]) <= room:
            rows[0] = (*rows[0], where)
        parts.append((NEAREST if comparison.where else GOT, rows))
    if note and (at is None or comparison.got is None):
        parts.append(("", paragraph(note, room, "failed")))
    lines: list[Line] = []
    for label, rows in parts:
        if not beside and label:
            lines.append(fit(((label, "dim"),), width))
        for number, row in enumerate(rows):
            lines.append(((left(label if not number else "", _LABEL), "dim"), *row) if beside else row)
    return lines


def _rows(text: str, at: int | None, width: int, note: str | None = None) -> list[Line]:
    """The text, wrapped; where it has more than `ROWS` rows, those around character `at`. `note` is put below that
    character, behind a caret; None: no caret."""
    displayed, places = displayable_map(text)
    displayed = displayed.replace("\t", " ")
    if "\n" in displayed and cell_len(displayed) <= width:
        displayed = displayed.replace("\n", LINE_END)  # a caret and its note would stand between the lines
    spans = wrap(displayed, max(width, 2))
    place = 0 if at is None else places[min(at, len(places) - 1)] if places is not None else min(at, len(displayed))
    row = max(bisect_right(spans, (place, len(displayed) + 1)) - 1, 0)
    most = ROWS if at is None else 2 * _AROUND + 1
    first = 0 if len(spans) <= ROWS else min(max(row - _AROUND, 0), len(spans) - most)
    last = len(spans) if len(spans) <= ROWS else first + most
    lines: list[Line] = [((f"… {count(first, 'line')} above", "dim"),)] if first else []
    for number, (start, end) in enumerate(spans[first:last], first):
        lines.append(((displayed[start:end], ""),))
        if note is not None and at is not None and number == row:
            lines += _caret(cell_len(displayed[start : min(place, end)]), note, width)
    below = len(spans) - last
    return [*lines, ((f"… {count(below, 'more line')}", "dim"),)] if below > 0 else lines


def _caret(column: int, note: str, width: int) -> Sequence[Line]:
    """`^ note` with the caret in `column`; the note stands left of it or below where there is no room at its right."""
    column = min(column, max(width - 1, 0))
    size = cell_len(note)
    if column + 2 + size <= width:
        return [((" " * column + "^" + (f" {note}" if note else ""), "failed"),)]
    if size + 1 <= column:
        return [((" " * (column - size - 1) + f"{note} ^", "failed"),)]
    return [((" " * column + "^", "failed"),), *paragraph(note, width, "failed")]


TOOL_LINES = 400  # of the calls that a tool criterion looked at: all are laid out
FIRST_CONDITIONS = 200
"""Conditions of a metric that are laid out at once: thousands take a tenth of a second."""
LEAST_NAME = 10  # cells, in fewer of which a name would be a word or less in each line
NAME_LINES = 3  # lines of a long name
REPLY_LINES = 8
"""Lines of a judge's reply that are shown below its error; a key shows all."""
NO_EDIT = "No small edit makes this run pass."
KEYS = {"relax": "F7", "relax_now": "A", "replies": '"'}
"""Keys that the pane names, by their actions of Inspect; a person may have others."""

Target = int | Evidence
"""What a row stands for: a criterion of the test, by number, or a piece of evidence."""


class PaneLines(Struct):
    """The lines of the pane, and what a click on a row means, by row."""

    lines: list[Line] = field(default_factory=list)
    targets: dict[int, Target] = field(default_factory=dict)

    def add(self, lines: Sequence[Line], target: Target | None = None) -> None:
        """More lines, all of which stand for `target`."""
        if target is not None:
            self.targets.update((len(self.lines) + row, target) for row in range(len(lines)))
        self.lines += lines


def looked_rows(
    bench: Workbench,
    criterion: int,
    result: CriterionResult,
    others: Sequence[CriterionResult],
    width: int,
    facts: RunFacts | None = None,
    keys: Mapping[str, str] = KEYS,
    most: int | None = None,
    has_edit: bool | None = None,
) -> PaneLines:
    """Extraction, verdict with its evidence, and the other criteria, in `width` cells, with what rows stand for; with
    `facts` also what people and judges said of it. `keys`: as `KEYS`.
    `most`: the most conditions of each metric. `has_edit`: does a small edit make the run pass? None: it is not known.
    """
    pane_lines = PaneLines()
    foreign = (
        [other for other in others if other.source and other.outcome in ("failed", "error")] if result.neutral else []
    )
    for other in foreign:
        # Another tool's verdict is why the run failed; the criterion that was put beside it checks nothing yet.
        pane_lines.add([*_verdict(other, width), *_foreign_reason(other, width), ()])
    pane_lines.add(_verdict(result, width))
    pane_lines.add(_people(bench, result, facts, width))
    pane_lines.add([()])
    if bench.transcript.error is not None:
        # Nothing was looked at: why is what there is to say.
        pane_lines.add([*error_lines(bench.transcript.error, width)[1:], ()])
    if own := sentences.own_criterion_sentence(result):
        style = "error" if result.outcome == "error" else "dim" if result.neutral else ""
        pane_lines.add([*paragraph(own, width, style), ()])
    # Of a criterion that checks nothing that is all there is to say.
    for metric in () if result.neutral and own else result.metrics:
        _metric(pane_lines, metric, width, most, scored=len(result.metrics) > 1)
        pane_lines.add([()])
    pane_lines.add(_replies(bench, result, facts, width, keys["replies"]))
    if result.outcome == "failed" and not result.source:
        pane_lines.add([longest_that_fits(_edits(keys["relax"], keys["relax_now"], has_edit), width), ()])
    pane_lines.add(_asked(bench, result, facts, keys["replies"]))
    if not _is_beside(bench, result):
        pane_lines.add(_value(result, width))
    if others:
        if pane_lines.lines[-1]:
            pane_lines.add([()])
        _others(pane_lines, criterion, others, width)
    pane_lines.lines = wrap_to(pane_lines.lines, width)
    return pane_lines


def result_lines(result: CriterionResult, width: int) -> list[Line]:
    """A result by itself, as it is stored: verdict, the first evidence, and the value that it looked at, as text with
    marks."""
    pane_lines = PaneLines()
    pane_lines.add(_verdict(result, width))
    if own := sentences.own_criterion_sentence(result):
        pane_lines.add(paragraph(own, width, "error" if result.outcome == "error" else ""))
    for metric in result.metrics:
        pane_lines.add([()])
        _metric(pane_lines, metric, width, FIRST_CONDITIONS, scored=len(result.metrics) > 1)
    if value := _value(result, width):
        pane_lines.add([(), *value])
    return wrap_to(pane_lines.lines, width)


def _people(bench: Workbench, result: CriterionResult, facts: RunFacts | None, width: int) -> list[Line]:
    """The label of each person on this criterion and on the run, with a sign where it contradicts the verdict; and the
    run's feedback."""
    if facts is None or not (facts.labels or facts.feedback):
        return []
    here = [label for label in facts.labels if label.criterion in ("", result.criterion)]
    # The last label of each person counts; earlier ones are behind it in the history.
    counts = {(label.who, label.criterion, label.criterion_hash if label.unknown else ""): label for label in here}

    def differs(label: Label) -> bool:
        outcome = result.outcome if label.criterion else "" if label.unknown else bench.run.status
        return disagrees(label, outcome)

    elements = labels_view((label, differs(label)) for label in counts.values())
    return view_lines((*elements, *feedback_view(facts.feedback)), width)


def _foreign_reason(result: CriterionResult, width: int) -> list[Line]:
    sentence = sentences.criterion_sentence(result)
    return [((f"  from {one_line(result.source)}", "dim"),), *(paragraph(sentence, width, "", 2) if sentence else ())]


def _replies(bench: Workbench, result: CriterionResult, facts: RunFacts | None, width: int, show: str) -> list[Line]:
    """What a judge replied, where no verdict could be made of it: the last reply, as it came."""
    if result.outcome != "error" or facts is None:
        return []
    hashes = _hashes(bench, result)
    own = [reply.reply for reply in facts.replies if reply.request.kind == "chat" and reply.criterion in hashes]
    if not own:
        return []
    lines = paragraph(own[-1].error or own[-1].raw or "(nothing)", width, "", 2)
    more = [((f"  … {count(len(lines) - REPLY_LINES, 'more line')}", "dim"),)] if len(lines) > REPLY_LINES else []
    key: Line = ((show, "bold accent"), (" all replies", "dim"))
    return [spread((("the judge replied", "bold"),), key, width), *lines[:REPLY_LINES], *more, ()]


def _hashes(bench: Workbench, result: CriterionResult) -> set[str]:
    """The criterion's hashes: one that was edited has another, and what was said of it before still counts here."""
    return {stored.criterion_hash for stored in bench.stored if stored.criterion == result.criterion} | {
        result.criterion_hash
    }


def _asked(bench: Workbench, result: CriterionResult, facts: RunFacts | None, show: str) -> list[Line]:
    if facts is None:
        return []
    summary = asked_summary(
        [reply for reply in facts.replies if reply.criterion in {"", *_hashes(bench, result)}], facts.attempts
    )
    return [((show, "bold accent"), (f" {summary}", "dim")), ()] if summary else []


def asked_summary(replies: Sequence[StoredReply], attempts: Sequence[FailedAttempt]) -> str:
    """How much there is, in words: `2 replies, $0.0012; 1 failed attempt`; "" for nothing."""
    parts = []
    if replies:
        costs = [reply.reply.cost for reply in replies if reply.reply.cost is not None]
        whole = all(reply.reply.cost is not None or not reply.reply.input_tokens for reply in replies)
        paid = f", {short_dollars(sum(costs), whole=whole)}" if costs else ""
        parts.append(f"{count(len(replies), 'reply')}{paid}")
    if attempts:
        parts.append(count(len(attempts), "failed attempt"))
    return "; ".join(parts)


def tool_text_lines(bench: Workbench, result: CriterionResult | None, width: int) -> list[Line]:
    """The formatted tool calls, with what the evidence points at marked."""
    text, places = bench.tool_text
    if not text:
        missing = unseen(bench.transcript, frozenset(("tool_calls",)))
        message = "The agent called no tools." if missing is None else f"{one_line(missing[1].description, 400)}."
        return wrap_to([((message[:1].upper() + message[1:], "dim"),)], width)
    marks: list[Piece] = []
    for evidence in _evidence(result):
        for span, style in _spans(evidence):
            for place in places:
                if span.kind not in ("arguments", "tool") or place.call != span.index:
                    continue
                name = span.path.split(".")[0] if span.kind == "arguments" else None
                if place.argument == name:
                    marks.append((place.start, place.end, style))
    head = ((calls_phrase(bench.transcript), "bold"),)
    return wrap_to([head, (), *marked_text(text, marks, width, TOOL_LINES)], width)


def _verdict(result: CriterionResult, width: int) -> list[Line]:
    start: Line = (mark(status_of(result)), (" ", ""))
    name: Line = ((one_line(result.criterion), "bold"),)
    if result.negate:
        name = (*name, ("  negated", "dim"))
    if result.derived:
        name = (*name, ("  derived", "dim"))
    if result.neutral:
        return _named(start, name, ((" checks nothing", "dim"),), width)
    tail: list[Cell] = [(f" {word(result.outcome)}", token(result.outcome))]
    if result.score is not None:
        tail.append((f"  score {decimal(result.score)}", ""))
        # The name says which criterion this is, its sign how it ended.
        if width_of((*start, *name, *tail)) >= width:
            del tail[0]
    return _named(start, name, tail, width)


def _named(start: Sequence[Cell], name: Sequence[Cell], tail: Sequence[Cell], width: int) -> list[Line]:
    """A name (with what is said of it) between its sign and its figures; where they leave it too little room, it
    continues below."""
    lead = width_of(start)
    room = width - lead - width_of(tail) - 1
    if width_of(name) <= room or room < LEAST_NAME:
        return [spread((*start, *name), tail, width)]
    (text, style), *rest = name
    spans = wrap(text, room)
    parts = [text[first:last] for first, last in spans[: NAME_LINES - 1]]
    if len(spans) >= NAME_LINES:
        parts.append(text[spans[NAME_LINES - 1][0] :])
    lines = [spread((*start, (parts[0], style)), tail, width)]
    lines += [fit(((" " * lead, ""), (part, style)), width) for part in parts[1:]]
    return [*lines, fit(((" " * lead, ""), *rest), width)] if rest else lines


def status_of(result: CriterionResult) -> str:
    """The outcome of a criterion; for one that checks nothing "none", which is not a pass."""
    return "none" if result.neutral else result.outcome


def _metric(pane: PaneLines, metric: MetricResult, width: int, most: int | None, *, scored: bool) -> None:
    """The metric with its evidence. `scored`: with its score; the score of the only one is that of its criterion."""
    tail: list[Cell] = [mark("none" if metric.neutral else metric.outcome)]
    if scored and metric.score is not None:
        tail.append((f" score {decimal(metric.score)}", "dim"))
    pane.add([spread(((one_line(metric_name(metric.name, metric.type)), "bold"),), tail, width)])
    group = ""
    listed = _missed_first(metric.evidence)
    for line in listed[:most]:
        if line.group and line.group != group:
            group = line.group
            pane.add([((f"  {one_line(group)}", "dim"),)])
        pane.add(_condition(line, width, brief=_was_compared(line, metric.evidence)), line)
    if most is not None and len(listed) > most:
        pane.add([fit(((f"  … {count(len(listed) - most, 'more condition')}", "dim"),), width)])
    broke = metric.outcome == "error"
    if (metric.neutral or broke or not metric.evidence) and (sentence := sentences.metric_sentence(metric)):
        pane.add(paragraph(sentence, width, "error" if broke else "dim" if metric.neutral else "", 2))
    if (traceback := traceback_from(metric.fields.get("traceback"))) is not None:
        pane.add(traceback_rows(traceback, width))


def _missed_first(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The groups with what did not hold before the others, and in each what did not hold first."""
    missed = {line.group for line in evidence if line.passed is False}
    place = {group: number for number, group in enumerate(dict.fromkeys(line.group for line in evidence))}
    return sorted(evidence, key=lambda line: (line.group not in missed, place[line.group], line.passed is not False))


def _was_compared(line: Evidence, evidence: Sequence[Evidence]) -> bool:
    """Whether it only points to a call that a line of its own compares."""
    call = line.fields.get("call")
    return line.passed is None and any(other.passed is False and other.fields.get("call") == call for other in evidence)


def _condition(line: Evidence, width: int, *, brief: bool = False) -> list[Line]:
    """A line of evidence: what was expected above what was found; where nothing can be compared, a sentence. `brief`:
    the comparison is left out."""
    outcome = "skipped" if line.passed is None else "passed" if line.passed else "failed"
    compared = comparisons(line)
    start: Line = (("  ", ""), mark(outcome), (" ", ""))
    if compared:
        tool, how = comparison_title(line)
        head: Line = (*start, (one_line(line.condition, 80), "dim"))
        condition: Line = ()
        if tool:
            head = (*start, (one_line(tool, 60), "bold"), (f"   {one_line(how)}", ""))
            condition = ((f"  {one_line(line.condition, 40)}", "dim"),)
        elif how:
            head = (*head, (f"   {one_line(how)}", ""))
        lines = [spread(head, condition, width) if width_of((*head, *condition)) < width else head]
        if tool and width_of(head) > width:
            lines = [head[:-1], *paragraph(one_line(how), width, "", 6)]
        if brief:
            return lines
        lines += comparison_lines(compared, width, 6 if width >= 46 else 4)
        if hidden := hidden_differences(line):
            lines.append(((f"      … {count(hidden, 'more difference')}", "dim"),))
        return lines
    expected = _expected(line)
    head = (*start, (one_line(line.condition, 80), "dim"))
    fits = width_of((*head, (expected, ""))) <= width
    lines = [(*head, (expected, ""))] if fits else [head, *paragraph(expected.strip(), width, "", 6)]
    # A passed condition needs no story; a failed one is why the person is here.
    if sentences.evidence_sentence(line) and (not line.passed or width >= 60):
        lines += paragraph(sentences.evidence_sentence(line), width, "dim" if line.passed else "", 6)
    return lines


def _expected(line: Evidence) -> str:
    """What was expected, as text: arguments as they are written in a call, several texts in quotation marks."""
    expected = line.expected
    if expected is None:
        return ""
    if isinstance(expected, Mapping):
        # The values of arguments are in words already.
        text = ", ".join(f"{name} = {value}" for name, value in expected.items())
    elif isinstance(expected, list):
        text = listed([f'"{each}"' if isinstance(each, str) else shown(each) for each in expected], word="or")
    else:
        text = expected if isinstance(expected, str) else shown(expected)
    return "  " + one_line(text, 60)


def _edits(every: str, first: str, has_edit: bool | None) -> list[Line]:
    """The keys that list the smallest edits and apply the first: the longest way to say it, and shorter ones. They have
    their row before it is known whether there are edits: what is below does not move."""
    if has_edit is False:
        return [((NO_EDIT, "dim"),)]
    listed: Line = ((every, "bold accent"), (" smallest edits", "dim"))
    if has_edit is None:
        return [listed]
    ways = [(" that pass", " the first"), ("", " the first"), ("", " first")]
    lines = [
        (*listed, (f"{which}  ", "dim"), (first, "bold accent"), (description, "dim")) for which, description in ways
    ]
    return [*lines, listed]


def _is_beside(bench: Workbench, result: CriterionResult) -> bool:
    """Whether what the criterion looked at stands beside it as it is: tool calls, or a whole message."""
    value = result.value or ""
    # In whole lines: calls of some tools. A short value is in other words by chance.
    in_calls = f"\n{value}\n" in f"\n{bench.tool_text[0]}\n"
    return bool(value) and (in_calls or any(message.content == value for message in bench.transcript.messages))


def _value(result: CriterionResult, width: int) -> list[Line]:
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
        lines += indented(marked_text(result.value, marks, width - 1, VALUE_LINES))
    return lines


def _evidence(result: CriterionResult | None) -> list[Evidence]:
    return [line for metric in result.metrics for line in metric.evidence] if result else []


def _spans(evidence: Evidence) -> list[tuple[Span, MarkKind]]:
    kind: MarkKind = "miss" if evidence.passed is False else "hit"
    near: MarkKind = "near"
    return [(span, kind) for span in evidence.spans] + [(span, near) for span in evidence.near]


def _in_value(span: Span, result: CriterionResult) -> tuple[int, int] | None:
    """Where in the extracted value a span is; None when it is not there."""
    if span.kind == "value":
        return span.start, span.end
    offset = 0
    for part in result.value_spans:
        if part.kind not in ("message", "state", "request") or (
            part.kind == "state" and part.end != len(result.value or "")
        ):
            return None  # a state that is not a text is shown in another form than it was found in
        same = (part.kind, part.index, part.path) == (span.kind, span.index, span.path)
        if same and part.start <= span.start and span.end <= part.end:
            return offset + span.start - part.start, offset + span.end - part.start
        offset += part.end - part.start
    return None


def _others(pane: PaneLines, criterion: int, others: Sequence[CriterionResult], width: int) -> None:
    pane.add([((f"criteria of this test {len(others):,}", "bold"),)])
    for number, other in enumerate(others):
        sign = ("▸" if UNICODE else ">") if number == criterion else " "
        start: list[Cell] = [(f"{sign} ", "accent"), mark(status_of(other)), (" ", ""), (one_line(other.criterion), "")]
        if other.source:
            start.append((f"  {one_line(other.source)}", "dim"))
        severity = "derived" if other.derived else one_line(other.severity, 12)
        tail: list[Cell] = [(f" {severity}", "dim")] if other.severity != "error" and not other.source else []
        if other.score is not None:
            tail.append((right(decimal(other.score), 6), "dim"))
        # Another tool's verdict on an imported run is not a criterion that could be chosen here.
        pane.add(_named(start[:3], start[3:], tail, width), None if other.source else number)
        if other.source and sentences.criterion_sentence(other):
            pane.add(paragraph(sentences.criterion_sentence(other), width, "dim", 4))
