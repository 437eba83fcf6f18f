"""The forks of a run: a row a branch, and below what happened: the shared beginning once, then a column a branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from agenteval_tui.analysis.forks import Forks, interval_of
from agenteval_tui.analysis.statistics import Interval
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.presenters.status_style import COLUMN_RULE, DOTS, mark
from agenteval_tui.tui.presenters.transcript_blocks import CALL
from agenteval_tui.tui.presenters.view_lines import cell
from agenteval_tui.tui.styled_text import Cell, Line, fit, indented, pad, paragraph, right, spread
from agenteval_tui.views.divergence import FORK
from agenteval_tui.views.fork_origin import branch_text, edit_text

ITSELF = "the run itself"
_COLUMN = 34  # cells of a column, at least
_SHARED = 4  # messages of the shared beginning that are shown
_ROWS = 6  # lines of a message


class ForkTree(Struct, frozen=True):
    """The contents of the tab. `shared`: how many messages each continuation, and the run itself (""), keeps from the
    run; `transcripts` by run id. `running`: the number of continuations that have not ended; `here`: the open run;
    `tried`: the number of continuations of smaller inputs. They are not branches, because no person asked for them."""

    forks: Forks
    transcripts: Mapping[str, Transcript]
    shared: Mapping[str, int]
    running: int = 0
    here: str = ""
    tried: int = 0

    @property
    def newest(self) -> int:
        """The row of the newest branch: one that is running, else the best branch of the last execution; 0: none."""
        branches = self.forks.branches
        runs = [answer.run for branch in branches for answer in branch.answers]
        last = max(runs, key=lambda run: run.started_ms or 0).execution_id if runs else ""
        is_asked = [not branch.answers for branch in branches]
        if not any(is_asked):
            is_asked = [any(answer.run.execution_id == last for answer in branch.answers) for branch in branches]
        return is_asked.index(True) + 1 if branches else 0


class ForkRows:
    """The rows for a list: the run itself, then its branches."""

    def __init__(self, tree: ForkTree) -> None:
        self._tree = tree
        self._was = tree.transcripts.get(tree.forks.run.id)
        self._keys = [ITSELF, *(f"{branch.step} {branch.label} {branch.edits!r}" for branch in tree.forks.branches)]

    def count(self) -> int:
        """How many rows there are."""
        return 1 + len(self._tree.forks.branches)

    def key(self, index: int) -> str:
        """The name of a row, which does not depend on its position: the branches are sorted, and may change places."""
        return self._keys[index]

    def index_of(self, key: str) -> int | None:
        """The row with a key."""
        return self._keys.index(key) if key in self._keys else None

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        forks = self._tree.forks
        if not index:
            start: list[Cell] = [(" ", ""), mark(forks.run.status), (f" {ITSELF}", "bold")]
            return spread(start, _rate(forks.passed, forks.decided, forks.interval), width)
        branch = forks.branches[index - 1]
        run_row = representative(branch)
        start = [
            (" ", ""),
            mark(run_row.status if run_row is not None else "queued"),
            (" ", ""),
            cell(*FORK),
            (" ", ""),
        ]
        start.append((one_line(branch_text(branch, self._was), 300), ""))
        return spread(start, _rate(branch.passed, branch.decided, interval_of(branch)), width)


def representative(branch: Outcomes) -> RunRow | None:
    """The continuation that a branch is shown by: the first that ended as most did."""
    mostly = branch.passed * 2 >= branch.decided
    every = [answer.run for answer in branch.answers]
    return next((answer.run for answer in branch.answers if answer.passed == mostly), every[0] if every else None)


def head_lines(tree: ForkTree, fork_key: str, width: int) -> list[Line]:
    """How many forks there are, and whether some are still at work; of none, which key makes one."""
    forks = tree.forks
    ended = sum(len(branch.answers) for branch in forks.branches)
    cells: list[Cell] = [cell(f"{FORK[0]} ", FORK[1]), (count(len(forks.branches), "branch"), "bold")]
    cells.append((f", {count(ended, 'continuation')}", "dim"))
    if tree.running:
        cells.append((f"   {tree.running} running", "accent"))
    if tree.tried:
        cells.append((f"   and {count(tree.tried, 'continuation')} of shrink, in the history", "dim"))
    if not forks.branches and not tree.running:
        message = f"This run has no forks yet: press {fork_key} on a step of the transcript to make one."
        return [*indented(paragraph(message, max(width - 1, 1), "dim")), ()]
    return [fit(((" ", ""), *cells), width), ()]


def column_lines(tree: ForkTree, selected: int, width: int) -> list[Line]:
    """The shared beginning, what was changed in the branch of row `selected` (0: in none), and a column for the run
    itself and for each branch that there is room for, the selected one first."""
    branches = list(tree.forks.branches)
    chosen = branches[selected - 1] if 0 < selected <= len(branches) else None
    ordered = ([chosen] if chosen is not None else []) + [branch for branch in branches if branch is not chosen]
    run = tree.forks.run
    original = tree.transcripts.get(run.id, Transcript())
    outcomes = chosen or (ordered[0] if ordered else None)
    first = min((outcomes.step for outcomes in ordered[:1]), default=len(original.messages))
    lines = _shared_lines(original, outcomes.step if outcomes is not None else first, width)
    if outcomes is not None:
        lines += [
            fit(((" ", ""), cell(f"{FORK[0]} ", FORK[1]), (one_line(edit_text(edit, original), 300), "accent")), width)
            for edit in outcomes.edits
        ]
    lines.append(())
    room = max(width // _COLUMN, 1)
    columns = [_column(tree, run, ITSELF, max(outcomes.step + 1, _behind(original, outcomes.step)) if outcomes else 0)]
    for branch in ordered:
        answer = representative(branch)
        if answer is not None:
            columns.append(
                _column(tree, answer, branch_text(branch, original), tree.shared.get(answer.id, branch.step + 1))
            )
    hidden = len(columns) - room
    visible = columns[:room]
    each = max((width - (len(visible) - 1) * len(COLUMN_RULE)) // len(visible), 8)
    laid_out = [make(each) for make in visible]
    # The verdicts stand beside each other, below the longest column.
    longest = max(len(body) for body, _ in laid_out)
    laid = [[*body, *[()] * (longest - len(body)), *end] for body, end in laid_out]
    for row in range(max(map(len, laid), default=0)):
        cells: list[Cell] = []
        for number, column in enumerate(laid):
            cells += [(COLUMN_RULE, "rule")] if number else []
            cells += pad(column[row] if row < len(column) else (), each)
        lines.append(tuple(cells))
    if hidden > 0:
        lines += [(), fit(((f" {count(hidden, 'more branch')}: choose it in the list", "dim"),), width)]
    return lines


def _behind(transcript: Transcript, step: int) -> int:
    """The first message behind a step and the results that belong to it."""
    at = step + 1
    while at < len(transcript.messages) and transcript.messages[at].role == "tool":
        at += 1
    return at


def _shared_lines(transcript: Transcript, step: int, width: int) -> list[Line]:
    messages = transcript.messages[: step + 1]
    lines: list[Line] = []
    if len(messages) > _SHARED:
        lines.append(((f" {DOTS} {count(len(messages) - _SHARED, 'step')} before", "dim"),))
    for number, message in enumerate(messages[-_SHARED:], len(messages) - min(len(messages), _SHARED) + 1):
        parts = [one_line(message.content, 300)] if message.content else []
        parts += [_call(transcript, call) for call in message.tool_calls]
        cells = ((right(str(number), 4), "dim"), (f" {one_line(message.role, 12)} ", f"role-{message.role}"))
        lines.append(fit((*cells, ("  ".join(parts), "dim")), width))
    return lines


def _column(tree: ForkTree, run: RunRow, name: str, first: int) -> Callable[[int], tuple[list[Line], list[Line]]]:
    transcript = tree.transcripts.get(run.id, Transcript())

    def lines(width: int) -> tuple[list[Line], list[Line]]:
        here = ("this run  ", "accent") if run.id == tree.here else ("", "")
        column: list[Line] = [fit((here, (one_line(name, 200), "bold")), width)]
        for message in transcript.messages[first:]:
            column += _message_lines(transcript, message, width)
        why = run.why or run.error_message
        end: list[Line] = [(), fit((mark(run.status), (f" {run.status}", "bold")), width)]
        return column, end + (paragraph(one_line(why, 300), width, "dim") if why else [])

    return lines


def _message_lines(transcript: Transcript, message: Message, width: int) -> list[Line]:
    lines: list[Line] = []
    if message.content:
        style = "dim" if message.role == "tool" else ""
        lines += paragraph(message.content, width, style)
    for call in message.tool_calls:
        lines += paragraph(_call(transcript, call), width, "role-tool")[:_ROWS]
    if len(lines) > _ROWS:
        lines = [*lines[: _ROWS - 1], ((DOTS, "dim"),)]
    return lines


def _call(transcript: Transcript, call: int) -> str:
    if call >= len(transcript.tool_calls):
        return CALL
    tool_call = transcript.tool_calls[call]
    return f"{CALL} {one_line(tool_call.name, 60)} {one_line(arguments_text(tool_call), 300)}"


def _rate(passed: int, decided: int, interval: Interval | None) -> Sequence[Cell]:
    if not decided:
        return ((" ", ""),)
    between = numbers.TOO_FEW if interval is None else f"{numbers.percent_span(*interval)} %"
    token = "passed" if passed == decided else "failed" if not passed else "flaky"
    return ((f" {passed}/{decided}", token), (f" {between} ", "dim"))
