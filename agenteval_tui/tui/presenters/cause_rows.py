"""Causes of failures as rows of a list, and one of them in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from agenteval_tui.analysis.causes import CauseGroup, Causes
from agenteval_tui.analysis.triage import TriageStatus
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.explain import Fact
from agenteval_tui.history.records import RunRow
from agenteval_tui.tui.presenters.status_style import glyph, mark
from agenteval_tui.tui.presenters.text_layout import paragraph, wrap_to
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import Cell, Line, fit, right, spread
from agenteval_tui.views.causes import cause_in_full
from agenteval_tui.views.evidence import fact_tree

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
    wanted = words.casefold().split()
    rows = [row for row in rows if all(word in _text(row).casefold() for word in wanted)]
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

    def count(self) -> int:
        """How many there are."""
        return len(self.rows)

    def key(self, index: int) -> str:
        """The cause's signature."""
        return self.rows[index].group.cause.signature

    def open_after(self, row: CauseRow) -> str:
        """The key of the open cause below this row, else of the first one that is not it; its own where none is."""
        here = next((at for at, one in enumerate(self.rows) if one.group is row.group), 0)
        order = (*self.rows[here + 1 :], *self.rows[:here])
        found = next((one for one in order if one.is_open), row)
        return found.group.cause.signature

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """`   6 ✗ Looks it up: get_order was never called   3 tests  new  ignored`."""
        row = self.rows[index]
        group, standing = row.group, row.standing
        gone = group.trend == "gone"
        kind = "passed" if gone else "error" if group.cause.kind in ("agent", "error") else "failed"
        dim = "dim" if gone or not row.is_open else ""
        head: list[Cell] = [(right(str(group.before if gone else group.count), 5), dim or "bold"), (" ", "")]
        head += [(glyph(kind), dim or kind), (" ", ""), (one_line(group.title, 300), dim)]
        tail: list[Cell] = []
        if standing is not None:
            said = WORDS.get(standing.decision.decision, standing.decision.decision)
            tail.append((f"  {said}", "dim") if standing.holds else (f"  {said}, open again", "review"))
        if group.trend in ("new", "gone"):
            tail.append((f"  {group.trend}", "passed" if gone else dim or "bold failed"))
        tests = len(group.tests)
        tail.append((right(f"{tests}", 4) + (" test " if tests == 1 else " tests"), "dim"))
        return spread(head, [*tail, (" ", "")], width)


def no_causes(causes: Causes, *, words: bool, only_open: bool) -> list[Line]:
    """What the list says where it has no rows: why, and what to do next."""

    def said(what: str, *then: str, style: str = "") -> list[Line]:
        return [(), ((f"  {what}", style),), *(((f"  {one}", "dim"),) for one in then)]

    scope = "s looks at the newest runs of every test, or at all runs."
    if words:
        return said("No cause has these words.", "esc clears the filter.")
    if only_open and causes.groups:
        return said("Every cause was decided about.", "f shows them all.", style="passed")
    if not causes.ended and causes.scope.runs:
        many = count(len(causes.scope.runs), "run")
        grade = "agenteval grade judges stored runs with the criteria of a file."
        return said(f"Nothing was judged in {many}: no run passed or failed.", grade, scope)
    if not causes.ended and causes.scope.execution_id:
        return said("No run of this execution has ended yet, or none is left.", scope)
    if not causes.ended:
        return said("Nothing was run yet.", "1 goes to the suites; r runs what is there.")
    return said(f"Nothing failed in {count(causes.ended, 'run')}.", scope, style="passed")


def cause_lines(
    row: CauseRow,
    width: int,
    now: int,
    example: RunRow | None = None,
    facts: Sequence[Fact] = (),
    number: int = 0,
) -> list[Line]:
    """One cause in full: what was decided, how much of it there is, its tests, and one of its runs explained."""
    lines: list[Line] = []
    for element in cause_in_full(row.group, row.standing, now):
        lines += [*([()] if lines else []), *view_lines((element,), width)]
    if example is not None:
        lines += [(), *_example(row.group, example, facts, number, width)]
    return wrap_to(lines, width)


def _example(group: CauseGroup, example: RunRow, facts: Sequence[Fact], number: int, width: int) -> list[Line]:
    place = f"{number + 1} of {len(group.runs)}"
    head: list[Cell] = [mark(example.status), (f" {one_line(example.test_id, 60)}", "accent")]
    head.append((f"  run {example.repetition}  {one_line(example.agent, 30)}   example {place}", "dim"))
    lines: list[Line] = [fit(head, width)]
    if example.prompt_head:
        lines.append(fit((("user  ", "role-user"), (one_line(example.prompt_head, 300), "dim")), width))
    if facts:
        return [*lines, (), *view_lines((fact_tree(facts),), width)]
    message = example.error_message or example.why
    return [*lines, (), *paragraph(message or "Nothing more is known of it.", width)]
