"""What the criterion looked at, and what it found: the middle pane of Inspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from agenteval_tui.analysis.run_facts import RunFacts, disagrees
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed, shown
from agenteval_tui.grading import sentences
from agenteval_tui.grading.explain import metric_name
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Span
from agenteval_tui.history.labels import Label
from agenteval_tui.transcripts.observed import calls_phrase, unseen
from agenteval_tui.transcripts.traceback import traceback_from
from agenteval_tui.tui.presenters.comparison_lines import comparison_lines
from agenteval_tui.tui.presenters.error_lines import error_lines, traceback_rows
from agenteval_tui.tui.presenters.highlighted_text import VALUE_LINES, Piece, marked_text
from agenteval_tui.tui.presenters.highlights import MarkKind
from agenteval_tui.tui.presenters.judge_log import asked_summary
from agenteval_tui.tui.presenters.status_style import UNICODE, mark, token, word
from agenteval_tui.tui.presenters.text_layout import paragraph, wrap_to
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import Cell, Line, fit, longest_that_fits, right, spread, width_of, wrap
from agenteval_tui.views.evidence_comparison import comparison_title, comparisons, hidden_differences
from agenteval_tui.views.label import feedback_view, labels_view

TOOL_LINES = 400
FIRST_CONDITIONS = 200
"""Conditions of a metric that are laid out at once: thousands take a tenth of a second."""
LEAST_NAME = 10  # cells, in fewer of which a name would be a word or less in each line
NAME_LINES = 3  # lines of a long name
REPLY_LINES = 8
"""Lines of a judge's reply that are shown below its error; a key shows all."""
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


def looked_at(
    bench: Workbench, criterion: int, result: CriterionResult, others: Sequence[CriterionResult], width: int
) -> list[Line]:
    """Extraction, verdict with the first evidence, and the other criteria, in `width` cells."""
    return looked_rows(bench, criterion, result, others, width, most=FIRST_CONDITIONS).lines


def looked_rows(
    bench: Workbench,
    criterion: int,
    result: CriterionResult,
    others: Sequence[CriterionResult],
    width: int,
    facts: RunFacts | None = None,
    keys: Mapping[str, str] = KEYS,
    most: int | None = None,
) -> PaneLines:
    """The same with what rows stand for; with `facts` also what people and judges said of it. `keys`: as `KEYS`.
    `most`: at most so many conditions of each metric."""
    made = PaneLines()
    foreign = [one for one in others if one.source and one.outcome in ("failed", "error")] if result.neutral else []
    for one in foreign:
        # Another tool's verdict is why the run failed; the criterion that was put beside it checks nothing yet.
        made.add([*_verdict(one, width), *_foreign_reason(one, width), ()])
    made.add(_verdict(result, width))
    made.add(_people(bench, result, facts, width))
    made.add([()])
    if bench.transcript.error is not None:
        # Nothing was looked at: why is what there is to say.
        made.add([*error_lines(bench.transcript.error, width)[1:], ()])
    if own := sentences.own_criterion_sentence(result):
        style = "error" if result.outcome == "error" else "dim" if result.neutral else ""
        made.add([*paragraph(own, width, style), ()])
    # Of a criterion that checks nothing that is all there is to say.
    for metric in () if result.neutral and own else result.metrics:
        _metric(made, metric, width, most)
        made.add([()])
    made.add(_replies(bench, result, facts, width, keys["replies"]))
    if result.outcome == "failed" and not result.source:
        made.add([longest_that_fits(_edits(keys["relax"], keys["relax_now"]), width), ()])
    made.add(_asked(bench, result, facts, keys["replies"]))
    made.add(_value(result, width))
    if others:
        made.add([()])
        _others(made, criterion, others, width)
    made.lines = wrap_to(made.lines, width)
    return made


def result_lines(result: CriterionResult, width: int) -> list[Line]:
    """A result by itself, as it is stored: verdict, the first evidence, and the value that it looked at, as text with
    marks."""
    made = PaneLines()
    made.add(_verdict(result, width))
    if own := sentences.own_criterion_sentence(result):
        made.add(paragraph(own, width, "error" if result.outcome == "error" else ""))
    for metric in result.metrics:
        made.add([()])
        _metric(made, metric, width, FIRST_CONDITIONS)
    if value := _value(result, width):
        made.add([(), *value])
    return wrap_to(made.lines, width)


def _people(bench: Workbench, result: CriterionResult, facts: RunFacts | None, width: int) -> list[Line]:
    """The label of each person on this criterion and on the run, with a sign where it contradicts the verdict; and the
    run's feedback."""
    if facts is None or not (facts.labels or facts.feedback):
        return []
    here = [one for one in facts.labels if one.criterion in ("", result.criterion)]
    counts = {(one.who, one.criterion, one.criterion_hash if one.unknown else ""): one for one in here}

    def differs(label: Label) -> bool:
        outcome = result.outcome if label.criterion else "" if label.unknown else bench.run.status
        return disagrees(label, outcome)

    said = labels_view((one, differs(one)) for one in counts.values())
    return view_lines((*said, *feedback_view(facts.feedback)), width)


def _foreign_reason(one: CriterionResult, width: int) -> list[Line]:
    said = sentences.criterion_sentence(one)
    return [((f"  from {one_line(one.source)}", "dim"),), *(paragraph(said, width, "", 2) if said else ())]


def _replies(bench: Workbench, result: CriterionResult, facts: RunFacts | None, width: int, show: str) -> list[Line]:
    """What a judge replied, where no verdict could be made of it: the last reply, as it came."""
    if result.outcome != "error" or facts is None:
        return []
    hashes = _hashes(bench, result)
    own = [one.reply for one in facts.replies if one.request.kind == "chat" and one.criterion in hashes]
    if not own:
        return []
    said = paragraph(own[-1].error or own[-1].raw or "(nothing)", width, "", 2)
    more = [((f"  … {count(len(said) - REPLY_LINES, 'more line')}", "dim"),)] if len(said) > REPLY_LINES else []
    key: Line = ((show, "bold accent"), (" all replies", "dim"))
    return [spread((("the judge replied", "bold"),), key, width), *said[:REPLY_LINES], *more, ()]


def _hashes(bench: Workbench, result: CriterionResult) -> set[str]:
    """The criterion's hashes: one that was edited has another, and what was said of it before still counts here."""
    return {one.criterion_hash for one in bench.stored if one.criterion == result.criterion} | {result.criterion_hash}


def _asked(bench: Workbench, result: CriterionResult, facts: RunFacts | None, show: str) -> list[Line]:
    if facts is None:
        return []
    said = asked_summary(
        [one for one in facts.replies if one.criterion in {"", *_hashes(bench, result)}], facts.attempts
    )
    return [((show, "bold accent"), (f" {said}", "dim")), ()] if said else []


def tool_text_lines(bench: Workbench, result: CriterionResult | None, width: int) -> list[Line]:
    """The formatted tool calls, with what the evidence points at marked."""
    text, places = bench.tool_text
    if not text:
        missing = unseen(bench.transcript, frozenset(("tool_calls",)))
        said = "The agent called no tools." if missing is None else f"{one_line(missing[1].said, 400)}."
        return wrap_to([((said[:1].upper() + said[1:], "dim"),)], width)
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
        tail.append((f"  score {result.score:.2f}", ""))
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
    (text, style), *said = name
    spans = wrap(text, room)
    parts = [text[first:last] for first, last in spans[: NAME_LINES - 1]]
    if len(spans) >= NAME_LINES:
        parts.append(text[spans[NAME_LINES - 1][0] :])
    lines = [spread((*start, (parts[0], style)), tail, width)]
    lines += [fit(((" " * lead, ""), (part, style)), width) for part in parts[1:]]
    return [*lines, fit(((" " * lead, ""), *said), width)] if said else lines


def status_of(result: CriterionResult) -> str:
    """The outcome of a criterion; for one that checks nothing "none", which is not a pass."""
    return "none" if result.neutral else result.outcome


def _metric(made: PaneLines, metric: MetricResult, width: int, most: int | None = None) -> None:
    tail: list[Cell] = [mark("none" if metric.neutral else metric.outcome)]
    if metric.score is not None:
        tail.append((f" score {metric.score:.2f}", "dim"))
    made.add([spread(((one_line(metric_name(metric.name, metric.type)), "bold"),), tail, width)])
    group = ""
    listed = _missed_first(metric.evidence)
    for one in listed[:most]:
        if one.group and one.group != group:
            group = one.group
            made.add([((f"  {one_line(group)}", "dim"),)])
        made.add(_condition(one, width, brief=_was_compared(one, metric.evidence)), one)
    if most is not None and len(listed) > most:
        made.add([fit(((f"  … {count(len(listed) - most, 'more condition')}", "dim"),), width)])
    broke = metric.outcome == "error"
    if (metric.neutral or broke or not metric.evidence) and (said := sentences.metric_sentence(metric)):
        made.add(paragraph(said, width, "error" if broke else "dim" if metric.neutral else "", 2))
    if (traceback := traceback_from(metric.fields.get("traceback"))) is not None:
        made.add(traceback_rows(traceback, width))


def _missed_first(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The groups with what did not hold before the others, and in each what did not hold first."""
    missed = {one.group for one in evidence if one.passed is False}
    place = {group: number for number, group in enumerate(dict.fromkeys(one.group for one in evidence))}
    return sorted(evidence, key=lambda one: (one.group not in missed, place[one.group], one.passed is not False))


def _was_compared(one: Evidence, evidence: Sequence[Evidence]) -> bool:
    """Whether it only points to a call that a line of its own compares."""
    call = one.fields.get("call")
    return one.passed is None and any(other.passed is False and other.fields.get("call") == call for other in evidence)


def _condition(one: Evidence, width: int, *, brief: bool = False) -> list[Line]:
    """A line of evidence: what was expected above what was found; where nothing can be compared, a sentence. `brief`:
    the comparison is left out."""
    outcome = "skipped" if one.passed is None else "passed" if one.passed else "failed"
    compared = comparisons(one)
    start: Line = (("  ", ""), mark(outcome), (" ", ""))
    if compared:
        tool, how = comparison_title(one)
        head: Line = (*start, (one_line(one.condition, 80), "dim"))
        condition: Line = ()
        if tool:
            head = (*start, (one_line(tool, 60), "bold"), (f"   {one_line(how)}", ""))
            condition = ((f"  {one_line(one.condition, 40)}", "dim"),)
        elif how:
            head = (*head, (f"   {one_line(how)}", ""))
        lines = [spread(head, condition, width) if width_of((*head, *condition)) < width else head]
        if tool and width_of(head) > width:
            lines = [head[:-1], *paragraph(one_line(how), width, "", 6)]
        if brief:
            return lines
        lines += comparison_lines(compared, width, 6 if width >= 46 else 4)
        if hidden := hidden_differences(one):
            lines.append(((f"      … {count(hidden, 'more difference')}", "dim"),))
        return lines
    expected = _expected(one)
    head = (*start, (one_line(one.condition, 80), "dim"))
    fits = width_of((*head, (expected, ""))) <= width
    lines = [(*head, (expected, ""))] if fits else [head, *paragraph(expected.strip(), width, "", 6)]
    # A passed condition needs no story; a failed one is why the person is here.
    if sentences.evidence_sentence(one) and (not one.passed or width >= 60):
        lines += paragraph(sentences.evidence_sentence(one), width, "dim" if one.passed else "", 6)
    return lines


def _expected(one: Evidence) -> str:
    """What was expected, as text: arguments as they are written in a call, several texts in quotation marks."""
    expected = one.expected
    if expected is None:
        return ""
    if isinstance(expected, Mapping):
        # The values of arguments are in words already.
        said = ", ".join(f"{name} = {value}" for name, value in expected.items())
    elif isinstance(expected, list):
        said = listed([f'"{each}"' if isinstance(each, str) else shown(each) for each in expected], word="or")
    else:
        said = expected if isinstance(expected, str) else shown(expected)
    return "  " + one_line(said, 60)


def _edits(every: str, first: str) -> list[Line]:
    """The keys that list the smallest edits and apply the first: the longest way to say it, and shorter ones."""
    listed: Line = ((every, "bold accent"), (" smallest edits", "dim"))
    ways = [(" that pass", " the first"), ("", " the first"), ("", " first")]
    lines = [(*listed, (f"{which}  ", "dim"), (first, "bold accent"), (one, "dim")) for which, one in ways]
    return [*lines, listed]


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
        lines += [((" ", ""), *line) for line in marked_text(result.value, marks, width - 1, VALUE_LINES)]
    return lines


def _evidence(result: CriterionResult | None) -> list[Evidence]:
    return [one for metric in result.metrics for one in metric.evidence] if result else []


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


def _others(made: PaneLines, criterion: int, others: Sequence[CriterionResult], width: int) -> None:
    made.add([((f"criteria of this test {len(others)}", "bold"),)])
    for number, one in enumerate(others):
        sign = ("▸" if UNICODE else ">") if number == criterion else " "
        start: list[Cell] = [(f"{sign} ", "accent"), mark(status_of(one)), (" ", ""), (one_line(one.criterion), "")]
        if one.source:
            start.append((f"  {one_line(one.source)}", "dim"))
        severity = "derived" if one.derived else one_line(one.severity, 12)
        tail: list[Cell] = [(f" {severity}", "dim")] if one.severity != "error" and not one.source else []
        if one.score is not None:
            tail.append((right(f"{one.score:.2f}", 6), "dim"))
        # Another tool's verdict on an imported run is not a criterion that could be chosen here.
        made.add(_named(start[:3], start[3:], tail, width), None if one.source else number)
        if one.source and sentences.criterion_sentence(one):
            made.add(paragraph(sentences.criterion_sentence(one), width, "dim", 4))
