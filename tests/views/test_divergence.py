"""Where runs part, without a screen: a sentence of all runs, of one run, of two runs, and the head of the tree."""

from __future__ import annotations

from agenteval_tui.analysis.divergence import Action, Compared, StepChange, Trajectory, first_divergence, tree_of
from agenteval_tui.analysis.repetitions import Divergence
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import plain as plain_line
from agenteval_tui.views.divergence import divergence_text, head_view, parting_text, step_change_text
from agenteval_tui.views.terminal import plain_text


def call(name: str) -> Action:
    return Action("call", ("call", name), name)


def answer(text: str) -> Action:
    return Action("answer", ("answer", text), text=text)


def found(*ways: tuple[bool, tuple[Action, ...]], everywhere: bool = False) -> Divergence:
    tree = tree_of(Trajectory(f"r{number}", passed, acts) for number, (passed, acts) in enumerate(ways))
    return Divergence("r0", {}, tree, first_divergence(tree), everywhere, Compared(arguments=not everywhere))


PARTED = found(
    *((True, (call("look"), answer("yes"))) for _ in range(3)), *((False, (answer("no"),)) for _ in range(3))
)
ALIKE = found((True, (answer("yes"),)), (False, (answer("yes"),)), everywhere=True)


def test_the_fork_in_a_sentence_or_why_there_is_none() -> None:
    fork = "step 1: 3 of 6 call look (3/3 pass), 3 answer at once (0/3 pass)"
    assert divergence_text(PARTED) == fork
    assert divergence_text(ALIKE) == "all runs took the same steps, so the steps do not explain the difference"
    assert divergence_text(found((True, (answer("a"),)))).startswith("this test has no other finished run")
    assert (
        divergence_text(found(*[(True, (answer("a"),))] * 2))
        == "all 2 runs passed, so there is no difference to explain"
    )


def test_what_the_run_did_there() -> None:
    assert parting_text(PARTED) == (
        "failing runs answer at once at step 1 (0 of 3 pass); this run called look (3 of 3 pass)"
    )
    assert (parting_text(ALIKE), parting_text(None)) == ("", "")


def test_what_changed_between_two_runs() -> None:
    assert step_change_text(StepChange(2, call("look"), answer("no"))) == (
        "step 2: it called look, now it answers at once"
    )
    assert step_change_text(StepChange(3, None, call("look"))) == "step 3: it went no further, now it calls look"
    assert step_change_text(None) == ""


def test_the_head_of_the_tree_says_over_which_runs() -> None:
    lines = [plain_line(line) for line in view_lines(head_view(PARTED), 50)]
    assert lines[0].startswith(" ◆ step 1: 3 of 6 call look")
    assert lines[1].startswith("   ")
    assert lines[-1] == "   6 runs in this execution   ✓ 3   ✗ 3"
    assert plain_text(head_view(ALIKE)).splitlines()[-1] == (
        " 2 runs in all executions; arguments are ignored   ✓ 1   ✗ 1"
    )
