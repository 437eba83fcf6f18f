"""The tree of repetitions as rows: what is folded, what is marked, what hostile texts can do."""

from __future__ import annotations

import pytest
from attacks import ATTACKS

from agenteval_tui.analysis.divergence import Action, Compared, Trajectory, Tree, first_divergence, tree_of
from agenteval_tui.analysis.repetitions import Divergence
from agenteval_tui.core.display import displayable
from agenteval_tui.tui.presenters.branch_tree import TreeRows, detail_lines, head_lines
from agenteval_tui.tui.styled_text import plain, width_of


def call(name: str, **arguments: object) -> Action:
    return Action("call", ("call", name, repr(arguments)), name, arguments)


def answer(text: str) -> Action:
    return Action("answer", ("answer", text), text=text)


def divergence(*ways: tuple[bool, tuple[Action, ...]]) -> Divergence:
    tree: Tree = tree_of(Trajectory(f"r{n}", passed, acts) for n, (passed, acts) in enumerate(ways))
    return Divergence("r0", {}, tree, first_divergence(tree), True, Compared())


def shown(rows: TreeRows, width: int = 70) -> list[str]:
    return [" ".join(plain(rows.line(n, width, focused=False)).split()) for n in range(rows.count())]


def test_steps_that_all_did_are_one_row_until_someone_opens_it() -> None:
    chain = tuple(call("step", n=n) for n in range(7))
    found = divergence((True, (*chain, answer("yes"))), (False, (*chain, answer("no"))))
    rows = TreeRows(found)
    assert shown(rows) == [
        "1 ▸ step n=0 ✓ 1 ✗ 1",
        "2 ⋯ 5 steps that all runs took ✓ 1 ✗ 1",
        "7 ▸ step n=6 ✓ 1 ✗ 1",
        "8 ├ answer yes ◆ ✓ 1 ✗ 0",
        "8 └ answer no ◆ ✓ 0 ✗ 1",
    ]
    opened = TreeRows(found, frozenset({rows.key(1)}))
    assert opened.count() == 9
    assert len({opened.key(n) for n in range(9)}) == 9
    assert all(opened.index_of(opened.key(n)) == n for n in range(9))


def test_many_branches_are_listed_in_part() -> None:
    ways = [(n % 2 == 0, (answer(f"answer {n:02}"),)) for n in range(30)]
    rows = TreeRows(divergence(*ways))
    assert rows.count() == 9
    assert shown(rows)[-1] == "1 └ ⋯ 22 other ways ✓ 7 ✗ 15"
    assert TreeRows(divergence(*ways), frozenset({rows.key(8)})).count() == 30


def test_the_details_say_how_much_they_leave_out() -> None:
    chain = tuple(call("step", n=n) for n in range(90))
    found = divergence((True, (*chain, answer("yes"))), (False, (*chain, answer("no " * 2_000))))
    _, fold, _, _, long_answer = TreeRows(found).rows
    assert [plain(line).strip() for line in detail_lines(found, fold, 80)][59:61] == [
        "61 ▸ step  n=60",
        "… 28 more steps",
    ]
    assert [plain(line).strip() for line in detail_lines(found, long_answer, 80)][61] == "… 17 more lines"
    # The runs of a step are told with it.
    assert "1 run" in plain(detail_lines(found, long_answer, 80)[63])


@pytest.mark.sweep
@pytest.mark.parametrize("width", [12, 40, 100])
def test_hostile_texts_stay_displayable_and_within_the_width(width: int) -> None:
    bad = "".join(ATTACKS.values())
    ways = [
        (True, (call("tool" + bad, **{"key": bad}), answer(bad))),
        (False, (call("tool" + bad, **{"key": "x" + bad}), Action("error", ("error", bad), bad, text=bad))),
    ]
    found = divergence(*ways)
    rows = TreeRows(found)
    lines = [rows.line(n, width, focused=True) for n in range(rows.count())]
    lines += head_lines(found, width)
    for row in rows.rows:
        lines += detail_lines(found, row, width)
    for line in lines:
        assert width_of(line) <= width
        assert displayable(plain(line)) == plain(line)
        assert "\n" not in plain(line)
