"""Causes of failures as rows of a list, and one cause in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.causes import CauseGroup, Causes
from agenteval_tui.analysis.triage import TriageStatus
from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count, percent
from agenteval_tui.grading.causes import words_of
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.presenters.evidence_pane import result_lines
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph, mark
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import (
    ELLIPSIS,
    LONG_WORD,
    Cell,
    Line,
    cell_len,
    empty_state,
    fit,
    fit_text,
    left,
    longest_that_fits,
    nothing_ran,
    paragraph,
    right,
    spread,
    width_of,
    wrap_to,
)
from agenteval_tui.views.causes import cause_in_full, names_of_tests

PURPOSE = "Why runs failed, grouped by cause, worst first. Decide once about each cause."
BAR, SHORT_BAR = 12, 6  # cells of the longest share
ROOMY = 100  # cells from which bars are long
BARRED = 84  # cells from which there are bars: below, the reasons need their room
NAME_LEAST = 10  # cells of a criterion's name before its reason
VALUE_LEAST = 10  # cells of what a reason is about
WIDE = 130  # cells from which the tests are named
_NAMES = 40
_CUTS = 4  # times that titles which look the same are cut anew
WORDS = {"accept": "accepted", "fix": "to fix", "quarantine": "quarantine", "label": "labelled", "ignore": "ignored"}


class CauseRow(Struct, frozen=True):
    """A cause, and what was decided about it."""

    group: CauseGroup
    standing: TriageStatus | None = None

    @property
    def is_open(self) -> bool:
        """Whether somebody should decide about it."""
        return self.group.trend != "gone" and (self.standing is None or not self.standing.holds)


def rows_of(
    causes: Causes, decided: Mapping[str, TriageStatus], *, only_open: bool = False, words: str = ""
) -> list[CauseRow]:
    """The rows: what is open, worst first; then what was decided about; then what is gone."""
    rows = [CauseRow(group, decided.get(group.cause.signature)) for group in causes.groups]
    query_words = words.casefold().split()
    rows = [row for row in rows if all(word in _text(row).casefold() for word in query_words)]
    if only_open:
        rows = [row for row in rows if row.is_open]
    return sorted(rows, key=lambda row: (row.group.trend == "gone", not row.is_open))


def _text(row: CauseRow) -> str:
    note = row.standing.decision.note if row.standing is not None else ""
    return " ".join(
        (row.group.title, row.group.cause.id, note, *row.group.test_names, *(t for _, t in row.group.tests))
    )


class CauseRows:
    """The list's source."""

    def __init__(self, rows: Sequence[CauseRow]) -> None:
        self.rows = tuple(rows)
        self._top = max((row.group.share for row in self.rows if row.group.trend != "gone"), default=0.0) or 1.0
        self._rate = max(len(percent(self._top)), 4) + 1
        self._titles: tuple[int, list[str]] = (-1, [])  # at a width

    def count(self) -> int:
        """How many there are."""
        return len(self.rows)

    def key(self, index: int) -> str:
        """The cause's signature."""
        return self.rows[index].group.cause.signature

    def open_after(self, row: CauseRow) -> str:
        """The key of the open cause below this row, else of the first one that is not it; its own where none is."""
        own = row.group.cause.signature  # not by identity: the causes may have been read again since
        keys = [row.group.cause.signature for row in self.rows]
        here = keys.index(own) if own in keys else -1
        order = (*self.rows[here + 1 :], *self.rows[: here + 1])
        return next(
            (key for cause_row in order if cause_row.is_open and (key := cause_row.group.cause.signature) != own), own
        )

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """`  69 ▆▆▆▆▆▆▆▆▆▆▆▆ 36 %   Looks it up: get_order was never called   3 tests  new  ignored`."""
        head, tail = self._ends(self.rows[index], width)
        if self._titles[0] != width:
            self._titles = (width, self._titles_at(width))
        return spread([*head, (self._titles[1][index], _dim(self.rows[index]))], tail, width)

    def _ends(self, row: CauseRow, width: int) -> tuple[list[Cell], list[Cell]]:
        """What is before a title, and behind it."""
        group, standing = row.group, row.standing
        gone = group.trend == "gone"
        dim = _dim(row)
        head: list[Cell] = [(right(str(group.before if gone else group.count), 5), dim or "bold"), (" ", "")]
        head += self._share(group, BAR if width >= ROOMY else SHORT_BAR if width >= BARRED else 0, dim)
        head += [_sign(group, dim), (" ", "")]
        tail: list[Cell] = []
        if standing is not None:
            decision = WORDS.get(standing.decision.decision, standing.decision.decision)
            tail.append((f"  {decision}", "dim") if standing.holds else (f"  {decision}, open again", "review"))
        if group.trend in ("new", "gone"):
            tail.append((f"  {group.trend}", "passed" if gone else dim or "bold failed"))
        tests = len(group.tests)
        if width >= WIDE:
            tail.append((f"   {left(names_of_tests(group, 2), _NAMES)}", "dim"))
        tail.append((right(f"{tests}", 4) + (" test " if tests == 1 else " tests"), "dim"))
        tail.append((" ", ""))
        return head, tail

    def _titles_at(self, width: int) -> list[str]:
        """The titles of all rows. Where two look the same once they are cut, each shows what it has of its own."""
        full = [full_title(row.group) for row in self.rows]
        rooms = []
        for row in self.rows:
            head, tail = self._ends(row, width)
            rooms.append(max(width - width_of(head) - width_of(tail) - 1, 1))
        titles = [title_in(row.group, room) for row, room in zip(self.rows, rooms, strict=True)]
        for _ in range(_CUTS):
            alike = grouped((title, place) for place, title in enumerate(titles))
            differing = [places for places in alike.values() if len({full[place] for place in places}) > 1]
            if not differing:
                break
            for places in differing:
                start = _shared([full[place] for place in places])
                for place in places:
                    titles[place] = _cut_to(full[place], start, rooms[place])
        return titles

    def _share(self, group: CauseGroup, bar: int, dim: str) -> list[Cell]:
        """How much of the failures it is: the longest bar is the most frequent cause's."""
        if group.trend == "gone":
            return [(" " * (bar + self._rate + 1), "")]
        cells = min(max(round(bar * group.share / self._top), 1), bar)
        full = "▆" if UNICODE else "#"  # bars of neighbouring rows do not touch
        return [(left(full * cells, bar), dim or "failed"), (right(percent(group.share), self._rate), "dim"), (" ", "")]


def _dim(row: CauseRow) -> str:
    return "" if row.is_open else "dim"


def full_title(group: CauseGroup) -> str:
    """The title without a cut, on one line."""
    name, reason = one_line(group.cause.criterion, 300), _reason(group)
    return f"{name}: {reason}" if name else reason


def _shared(texts: Sequence[str]) -> int:
    """How many characters texts have in common at their beginning."""
    # What the first and the last by the alphabet share, all between them share.
    return common_start(min(texts), max(texts))


def _cut_to(title: str, start: int, room: int) -> str:
    """A title in at most `room` cells, with what begins at `start`: the word that it is in, and what is behind it."""
    lead = fit_text(title, NAME_LEAST) if room >= 3 * NAME_LEAST else ELLIPSIS
    word = title.rfind(" ", 0, start) + 1
    begin = word if start - word <= LONG_WORD else start
    if begin <= len(lead) or cell_len(title) <= room:
        return fit_text(title, room)
    while cell_len(title[begin - 1 :]) < room - cell_len(lead) and begin > len(lead) + 1:  # room for more before it
        begin -= 1
    return fit_text(f"{lead}{title[begin:]}", room)


def title_in(group: CauseGroup, room: int) -> str:
    """The title in at most `room` cells. What decides is the reason: the criterion's name is cut before it, and of a
    reason the tool or the text that it is about before the verb."""
    name, reason = one_line(group.cause.criterion, 300), _reason(group)
    value = one_line(group.expected or group.cause.about, 300) if group.cause.kind == "failed" else ""
    template = cell_len(_reason(group, "x")) - 1
    least = fit_text(name, NAME_LEAST)
    ways = (fit_text(name, max(room - cell_len(reason) - 2, NAME_LEAST)), least, "") if name else ("",)
    for start in (f"{way}: " if way else "" for way in ways):
        left_over = room - cell_len(start)
        if cell_len(reason) <= left_over:
            return f"{start}{reason}"
        if value and left_over - template >= VALUE_LEAST:
            shorter = _reason(group, _cut_value(value, left_over - template))
            if cell_len(shorter) <= left_over:
                return f"{start}{shorter}"
    return fit_text(f"{least}: {reason}" if name else reason, room)


def _reason(group: CauseGroup, value: str = "") -> str:
    """What is wrong, on one line. `value` stands for the text, tool or argument that it is about."""
    cause, expected = group.cause, group.expected
    if value:
        cause, expected = (cause, value) if expected else (replace(cause, about=value), "")
    return one_line(words_of(cause, expected), 300)


def _cut_value(value: str, room: int) -> str:
    """A text or a name in at most `room` cells; a text keeps its closing quote."""
    end = value[-1:] if value[:1] == value[-1:] == '"' else ""
    return fit_text(value.removesuffix(end), room - len(end)) + end


def _sign(group: CauseGroup, dim: str) -> Cell:
    """What is not a failed check has a sign."""
    kind = "passed" if group.trend == "gone" else "error" if group.cause.kind in ("agent", "error") else ""
    return (glyph(kind), dim or kind) if kind else (" ", "")


def no_causes(causes: Causes, *, words: bool, only_open: bool) -> list[Line]:
    """What the list says where it has no rows: why, and what to do next."""

    scope = ("{causes.scope}", "look at the newest runs of every test, or at all runs")
    if words:
        return empty_state("", "No cause matches these words.", "{everywhere.back}", "clear the filter")
    if only_open and causes.groups:
        return empty_state("", "Every cause has a decision.", "{causes.only_open}", "show them all", style="passed")
    if not causes.ended and causes.scope.runs:
        many = count(len(causes.scope.runs), "run")
        grade = "agenteval grade grades stored runs with the criteria in a file."
        return empty_state(PURPOSE, f"Nothing was graded in {many}: no run passed or failed.", *scope, grade)
    if not causes.ended and causes.scope.execution_id:
        return empty_state(PURPOSE, "No run of this execution has ended yet, or all were deleted.", *scope)
    if not causes.ended:
        return nothing_ran(PURPOSE)
    return empty_state("", f"Nothing failed in {count(causes.ended, 'run')}.", *scope, style="passed")


def cause_lines(
    row: CauseRow,
    width: int,
    now: int,
    example: RunRow | None = None,
    result: CriterionResult | None = None,
    number: int = 0,
) -> list[Line]:
    """One cause in full: what was decided, how much of it there is, its tests, and one of its runs explained."""
    lines: list[Line] = []
    for element in cause_in_full(row.group, row.standing, now):
        lines += [*([()] if lines else []), *view_lines((element,), width)]
    if example is not None:
        lines += [(), *_example(row.group, example, result, number, width)]
    return wrap_to(lines, width)


def _example(group: CauseGroup, example: RunRow, result: CriterionResult | None, number: int, width: int) -> list[Line]:
    place = f"{number + 1:,} of {len(group.runs):,}"
    whose: list[Cell] = [mark(example.status), (f" {one_line(example.test_id, 60)}", "accent")]
    run, agent, example_text = f"  run {example.repetition}", f"  {one_line(example.agent, 30)}", f"   example {place}"
    heads: list[Line] = [(*whose, (f"{run}{agent}{example_text}", "dim")), (*whose, (f"{run}{example_text}", "dim"))]
    lines: list[Line] = [longest_that_fits([*heads, (*whose, (f"  {place}", "dim"))], width)]
    if example.prompt_head:
        lines.append(fit((("user  ", "role-user"), (one_line(example.prompt_head, 300), "dim")), width))
    if result is not None:
        return [*lines, (), *result_lines(result, width)]
    message = example.error_message or example.why
    return [*lines, (), *paragraph(message or "There are no more details.", width)]
