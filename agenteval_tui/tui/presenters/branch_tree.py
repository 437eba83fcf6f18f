"""The repetitions of a test as rows of a tree: a step a row, how many passing and failing runs came through."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agenteval_tui.analysis.divergence import Node, Tree
from agenteval_tui.analysis.repetitions import Divergence
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.history.records import RunRow
from agenteval_tui.transcripts.tool_text import argument_text
from agenteval_tui.tui.presenters.arguments import call_body
from agenteval_tui.tui.presenters.block_layout import lay_out
from agenteval_tui.tui.presenters.status_style import DOTS, UNICODE, glyph, mark
from agenteval_tui.tui.presenters.transcript_blocks import CALL
from agenteval_tui.tui.presenters.view_lines import cell, line, view_lines
from agenteval_tui.tui.styled_text import Cell, Line, fit, fit_reason, paragraph, right, spread, width_of, wrap_to
from agenteval_tui.views.divergence import (
    FORK,
    asked_text,
    counts,
    distinguishing_excerpt,
    excerpt,
    head_view,
    telling_arguments,
)

MOST = 8  # branches of a node that are listed before someone unfolds the rest
_LEAST = 3  # steps in a row without a branch that are worth a fold
_DEEPEST = 12  # levels that are indented
_LISTED = 200  # runs that the details name
_LONGEST = 400  # characters of a step on its row
_DETAIL_ROWS = 60  # of each part of the details: a text may be megabytes, and all lines are laid out

_BRANCH = ("├ ", "└ ", "│ ") if UNICODE else ("|-", "`-", "| ")


class TreeRow(Struct, frozen=True):
    """A row: a step (`node`), or one that stands for `hidden` nodes. `margin` draws the branches above it.

    `key` names the row while others come and go.
    """

    key: str
    node: Node
    margin: str
    hidden: tuple[Node, ...] = ()
    chain: bool = False


class TreeRows:
    """The rows of a divergence's tree, for a list."""

    def __init__(self, divergence: Divergence, opened: frozenset[str] = frozenset()) -> None:
        """`opened` are the keys of folds that are open."""
        self._fork = divergence.fork.node if divergence.fork is not None else None
        self.rows = _rows(divergence.tree, opened)
        self._places = {row.key: number for number, row in enumerate(self.rows)}

    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def key(self, index: int) -> str:
        """What names a row."""
        return self.rows[index].key

    def index_of(self, key: str) -> int | None:
        """The row with a key."""
        return self._places.get(key)

    def row_of(self, node: Node) -> int | None:
        """The row of a step; of the first below it that is shown."""
        return next((number for number, row in enumerate(self.rows) if row.node is node and not row.hidden), None)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """Row `index`."""
        row = self.rows[index]
        start: list[Cell] = [(right(f"{row.node.depth:,}", 4), "dim"), ("  ", ""), (row.margin, "dim")]
        nodes = nodes_of(row)
        if row.chain:
            start.append((f"{DOTS} {count(len(row.hidden), 'step')} that all runs took", "dim"))
        elif row.hidden:
            start.append((f"{DOTS} {len(row.hidden):,} other ways", "dim"))
        else:
            start += step_cells(row.node)
        end: list[Cell] = []
        if self._fork is not None and row.node.parent is self._fork and not row.chain:
            end.append(cell(f"{FORK[0]} ", FORK[1]))
        end += _counts(sum(node.passed for node in nodes), sum(node.failed for node in nodes))
        return spread(start, (*end, (" ", "")), width)


def step_cells(node: Node) -> list[Cell]:
    """What was done, in the words that tell it from its siblings."""
    act = node.act
    beside = [branch.act for branch in node.parent.branches] if node.parent is not None else [act]
    if act.kind == "call":
        cells: list[Cell] = [(f"{CALL} ", "role-tool"), (one_line(act.name, 60), "bold")]
        telling = telling_arguments(act, beside)
        if telling:
            for name in list(telling)[:4]:
                cells.append((f"  {one_line(str(name), 40)}=", "json-key"))
                cells.append((one_line(distinguishing_excerpt(act, beside, name), _LONGEST // 4), ""))
        elif isinstance(act.arguments, dict):
            for name, value in list(act.arguments.items())[:4]:
                cells.append((f"  {one_line(str(name), 40)}={one_line(argument_text(value), _LONGEST // 4)}", "dim"))
        return cells
    if act.kind == "answer":
        return [("answer  ", "role-assistant bold"), (one_line(excerpt(act, beside), _LONGEST), "")]
    if act.kind == "result":
        words = one_line(excerpt(act, beside), _LONGEST)
        return [("result of ", "dim"), (f"{one_line(act.name, 60)}  ", "role-tool"), (words, "")]
    if act.kind in ("asked", "context"):
        return [("request  ", "bold"), (one_line(asked_text(act), _LONGEST), "")]
    if act.kind == "error":
        return [("error  ", "error"), (one_line(f"{act.name}: {act.text}", _LONGEST), "error")]
    return [("ends without an answer" if len(beside) < 2 else "ends there", "dim")]


def head_lines(divergence: Divergence, width: int) -> list[Line]:
    """Where passing and failing runs part, in a sentence of three lines at most; over which runs."""
    heading, *scope = head_view(divergence)
    return [*view_lines((heading,), width)[:3], *view_lines(tuple(scope), width), ()]


def detail_lines(divergence: Divergence, row: TreeRow, width: int) -> list[Line]:
    """A step in full, and the runs that took it."""
    nodes = nodes_of(row)
    hidden = [fit(((f" {node.depth:>3} ", "dim"), *step_cells(node)), width) for node in row.hidden[:_DETAIL_ROWS]]
    lines = [
        *(
            _limited(hidden, "step" if row.chain else "way", len(row.hidden))
            if hidden
            else _step_lines(row.node, width)
        ),
        (),
    ]
    runs = [run for node in nodes for run in node.runs]
    title = count(len(runs), "run")
    passed, failed = sum(node.passed for node in nodes), sum(node.failed for node in nodes)
    lines.append(fit(((f" {title}", "bold"), *line(counts(passed, failed))), width))
    run_rows = [divergence.rows[run] for run in runs[:_LISTED] if run in divergence.rows]
    lines += [_run_line(run_row, run_row.id == divergence.run, width) for run_row in run_rows]
    if len(runs) > _LISTED:
        lines.append(((f"  … {len(runs) - _LISTED:,} more", "dim"),))
    return wrap_to(lines, width)


def _limited(lines: Sequence[Line], noun: str, number: int) -> list[Line]:
    """The first of a `number` of lines, and how many are left out."""
    more = number - _DETAIL_ROWS
    return [*lines[:_DETAIL_ROWS], *([((f" … {count(more, f'more {noun}')}", "dim"),)] if more > 0 else ())]


def nodes_of(row: TreeRow) -> Sequence[Node]:
    """The nodes whose runs a row stands for."""
    return row.hidden[:1] if row.chain else (row.hidden or (row.node,))


class _Due(Struct, frozen=True):
    """What is to be put into rows: a node with all that follows it, or the branches of it that are not listed.

    `margin` stands before its first row, `below` before those after it.
    """

    key: str
    node: Node
    margin: str
    below: str
    rest: bool = False


def _rows(tree: Tree, opened: frozenset[str]) -> list[TreeRow]:
    rows: list[TreeRow] = []
    waiting = _branches(tree.root, "", "", opened)
    while waiting:
        due = waiting.pop()
        if due.rest:
            hidden = tuple(due.node.branches[MOST:])
            rows.append(TreeRow(due.key, hidden[0], due.margin, hidden))
            continue
        chain = [due.node]
        while len(chain[-1].branches) == 1:
            chain.append(chain[-1].branches[0])
        fold = f"{due.key} chain"
        inner = tuple(chain[1:-1])
        folded = len(inner) >= _LEAST and fold not in opened
        rows.append(TreeRow(due.key, chain[0], due.margin))
        if folded:
            rows.append(TreeRow(fold, inner[0], due.below, inner, chain=True))
        for number, node in enumerate(chain[1:], 1):
            if not folded or node is chain[-1]:
                rows.append(TreeRow(f"{due.key} {number}", node, due.below))
        waiting += _branches(chain[-1], due.below, due.key, opened)
    return rows


def _branches(node: Node, margin: str, key: str, opened: frozenset[str]) -> list[_Due]:
    """The branches of a node, the first one last."""
    fold = f"{key} rest"
    branches = node.branches if len(node.branches) <= MOST + 1 or fold in opened else node.branches[:MOST]
    # A step that all runs do is not a branch, and a very deep one has no room for more lines.
    flat = len(node.branches) == 1 or len(margin) >= 2 * _DEEPEST
    due: list[_Due] = []
    for number, branch in enumerate(branches):
        last = number == len(node.branches) - 1
        first, rest = ("", "") if flat else (_BRANCH[1], "  ") if last else (_BRANCH[0], _BRANCH[2])
        due.append(_Due(f"{key}/{number}", branch, margin + first, margin + rest))
    if len(branches) < len(node.branches):
        due.append(_Due(fold, node, margin + ("" if flat else _BRANCH[1]), "", rest=True))
    return due[::-1]


def _counts(passed: int, failed: int) -> list[Cell]:
    return [
        (right(f"{glyph('passed')} {passed:,}", 7), "passed" if passed else "dim"),
        (right(f"{glyph('failed')} {failed:,}", 7), "failed" if failed else "dim"),
    ]


def _step_lines(node: Node, width: int) -> list[Line]:
    act = node.act
    head = f" step {node.depth:,}"
    if act.kind == "call":
        body = call_body(act.name, act.arguments)
        laid_out = lay_out(
            body.text,
            0,
            len(body.text),
            max(width - 2, 8),
            ranges=body.styles,
            limit=_DETAIL_ROWS,
        )
        more = len(body.text) - laid_out[-1].end
        left_out: list[Line] = [((f" … {count(more, 'more character')}", "dim"),)] if more > 0 else []
        return [((f"{head}  tool call", "dim"),), *(((" ", ""), *row.cells) for row in laid_out), *left_out]
    if act.kind in ("answer", "result", "asked", "context"):
        words = act.text if act.kind in ("answer", "result") else asked_text(act)
        name = {"answer": "answer", "result": f"result of {one_line(act.name, 60)}"}.get(act.kind, "request")
        rows = paragraph(words, width - 1, "", 1)
        return [((f"{head}  {name}", "dim"),), *_limited(rows, "line", len(rows))]
    if act.kind == "error":
        return [((f"{head}  error", "dim"),), *paragraph(f"{act.name}: {act.text}", width - 1, "error", 1)]
    return [((f"{head}  the run ends without an answer", "dim"),)]


def _run_line(row: RunRow, here: bool, width: int) -> Line:
    cells: list[Cell] = [("  ", ""), mark(row.status), (right(f"run {row.repetition}", 8), "bold" if here else "")]
    cells.append(("  this run", "accent") if here else ("", ""))
    reason = one_line(row.why or row.error_message or row.output_head, 300)
    cells += [("  ", ""), (fit_reason(reason, width - width_of(cells) - 2), "dim")]
    return fit(cells, width)
