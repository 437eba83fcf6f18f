"""What is shown of where runs part: what each branch did, in the words that tell it from the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from agenteval_tui.analysis import divergence
from agenteval_tui.analysis.divergence import Action, BranchPoint, StepChange, rate_of
from agenteval_tui.analysis.repetitions import Divergence
from agenteval_tui.analysis.trajectory_alignment import arguments_json
from agenteval_tui.core import numbers
from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.core.phrasing import abridged, cut, listed
from agenteval_tui.views.model import Node, Paragraph, Span, Text, Tree, View, text
from agenteval_tui.views.model_request import changes_text

FORK: Span = ("◆", "accent")
"""The sign of the fork, and of the branches there."""
NAMED = 3  # branches that a sentence names one by one
LONGEST = 60  # characters of a value or an answer in a sentence
Form = Literal["plural", "singular", "past"]
_VERBS: dict[str, dict[Form, str]] = {
    "call": {"plural": "call", "singular": "calls", "past": "called"},
    "answer": {"plural": "answer", "singular": "answers", "past": "answered"},
    "result": {"plural": "get", "singular": "gets", "past": "got"},
    "end": {"plural": "end", "singular": "ends", "past": "ended"},
    "stop": {"plural": "stop", "singular": "stops", "past": "stopped"},
    "asked": {"plural": "start with", "singular": "starts with", "past": "started with"},
    "context": {"plural": "ask with", "singular": "asks with", "past": "asked with"},
}
_BEFORE = 16  # characters of a text shown before the place where it differs


def divergence_text(divergence: Divergence) -> str:
    """One sentence: the fork, or why there is none."""
    root = divergence.tree.root
    if divergence.fork is not None:
        return fork_text(divergence.fork)
    if root.number < 2:
        return "this test has no other finished run with this row and variation"
    if not root.passed or not root.failed:
        ended = "passed" if root.passed else "failed"
        return f"all {root.number:,} runs {ended}, so there is no difference to explain"
    if not any(len(node.branches) > 1 for node in [root, *divergence.tree.nodes()]):
        return "all runs took the same steps, so the steps do not explain the difference"
    return "no step separates the passing runs from the failing ones"


def parting_text(divergence: Divergence | None) -> str:
    """What the run in question did at the fork; "" when nothing parts the runs, or this was not looked at."""
    if divergence is None or divergence.fork is None:
        return ""
    return run_text(divergence.fork, divergence.run) or divergence_text(divergence)


def step_change_text(change: StepChange | None) -> str:
    """`step 2: it called search_docs, now it answers at once`; "" where both runs did the same, step by step."""
    if change is None:
        return ""
    there = [act for act in (change.was, change.now) if act is not None]
    was = _action_text(change.was, there, "past") if change.was is not None else "went no further"
    now = _action_text(change.now, there, "singular") if change.now is not None else "goes no further"
    return f"step {change.step:,}: it {was}, now it {now}"


def head_view(divergence: Divergence) -> View:
    """Where passing and failing runs diverge, and over which runs."""
    root, forked = divergence.tree.root, divergence.fork is not None
    where = "in all executions" if divergence.everywhere else "in this execution"
    arguments = "" if divergence.with_arguments else "; arguments are ignored"
    scope = (f"{numbers.count(root.number, 'run')} {where}{arguments}", "dim")
    sentence = Node(text((divergence_text(divergence), "bold" if forked else "")), sign=FORK if forked else ("", ""))
    return Tree((sentence,), indent=1), Paragraph(text(scope, *counts(root.passed, root.failed)), 3 if forked else 1)


def counts(passed: int, failed: int) -> Text:
    """How many runs passed and failed: `   ✓ 3   ✗ 2`."""
    good, bad = ("good" if passed else "dim"), ("bad" if failed else "dim")
    return text((f"   ✓ {passed:,}", good), (f"   ✗ {failed:,}", bad))


def fork_text(fork: BranchPoint) -> str:
    """`step 2: 3 of 5 call search_docs (3/3 pass), 2 answer at once (0/2 pass)`."""
    # "1 goes 1 other way" would be as long as the branch itself.
    named = fork.branches if len(fork.branches) <= NAMED + 1 else fork.branches[:NAMED]
    parts = []
    for position, branch in enumerate(named):
        number = f"{branch.number:,} of {fork.node.number:,}" if position == 0 else f"{branch.number:,}"
        verb = branch_text(fork, branch, "plural" if branch.number != 1 else "singular")
        parts.append(f"{number} {verb} ({branch.passed:,}/{branch.number:,} pass)")
    rest = fork.branches[len(named) :]
    if rest:
        passed, runs = sum(other.passed for other in rest), sum(other.number for other in rest)
        parts.append(f"{runs:,} go {len(rest):,} other ways ({passed:,}/{runs:,} pass)")
    return f"step {fork.step:,}: {', '.join(parts)}"


def run_text(fork: BranchPoint, run: str) -> str:
    """The same for one run: `most passing runs call search_docs at step 2 (3 of 3 pass); this run answered at once
    (0 of 2 pass)`. "" for a run that did not come to the fork."""
    own_branch = fork.branch_of(run)
    if own_branch is None:
        return ""
    others = [branch for branch in fork.branches if branch is not own_branch]
    # A run on the best branch is told from the worst, any other run from the best; of equal rates the larger branch.
    counterpart = max(others, key=lambda node: (rate_of(node), node.number))
    if rate_of(own_branch) >= rate_of(counterpart):
        counterpart = min(others, key=lambda node: (rate_of(node), -node.number))
    who = "passing runs" if counterpart.passed > counterpart.failed else "failing runs"
    here = f"{counterpart.passed:,} of {counterpart.number:,} pass"
    there = f"{own_branch.passed:,} of {own_branch.number:,} pass"
    verb = branch_text(fork, counterpart, "plural")
    did = branch_text(fork, own_branch, "past")
    return f"{who} {verb} at step {fork.step:,} ({here}); this run {did} ({there})"


def branch_text(fork: BranchPoint, branch: divergence.Node, form: Form) -> str:
    """What the runs of a branch do there: `call get_order with order_id="#W1"`, `answer at once`."""
    return _action_text(branch.act, [branch.act for branch in fork.branches], form)


def _action_text(act: Action, beside: Sequence[Action], form: Form) -> str:
    """What an agent does, or did, in words that tell it from the acts `beside` it."""
    if act.kind == "call":
        return f"{_VERBS['call'][form]} {act.name}{_telling(act, beside)}"
    if act.kind == "answer":
        verb = _VERBS["answer"][form]
        # Where only these runs answer, that tells them from the others, and not what they said.
        if all(nearby.kind != "answer" or nearby.key == act.key for nearby in beside) and len(beside) > 1:
            return f"{verb} at once" if any(nearby.kind == "call" for nearby in beside) else verb
        return f"{verb} {_quoted(excerpt(act, beside))}"
    if act.kind == "result":
        return f"{_VERBS['result'][form]} {_quoted(excerpt(act, beside))} from {act.name}"
    if act.kind in ("asked", "context"):
        return f"{_VERBS[act.kind][form]} {asked_text(act)}"
    if act.kind == "error":
        return f"{_VERBS['end'][form]} in an error ({act.name})"
    if any(nearby.kind != "end" for nearby in beside):
        return f"{_VERBS['stop'][form]} there"
    return f"{_VERBS['end'][form]} without an answer"


def asked_text(act: Action) -> str:
    """What a request had, or what changed in it: `another context (4 messages dropped)`."""
    if act.kind == "context":
        return f"another context ({changes_text(act.arguments)})"
    tools = listed([one_line(name, 40) for name in act.arguments["tools"]], 5) or "no tools"
    return f"{tools} and a system prompt of {numbers.count(act.arguments['system'], 'character')}"


def excerpt(act: Action, beside: Sequence[Action]) -> str:
    """An answer, or a result, on one line, from where it differs from those `beside` it."""
    return _from_difference(
        act.text, (nearby.text for nearby in beside if nearby.kind == act.kind and nearby.key != act.key)
    )


def distinguishing_excerpt(act: Action, beside: Sequence[Action], name: str) -> str:
    """The argument `name` of a call on one line, from where it differs from those of the calls `beside` it."""
    value = act.arguments[name]
    if not isinstance(value, str):
        return arguments_json(value)
    values = (other.arguments.get(name) for other in _other_calls(act, beside) if isinstance(other.arguments, dict))
    return _from_difference(value, (other for other in values if isinstance(other, str) and other != value))


def telling_arguments(act: Action, beside: Sequence[Action]) -> dict[str, Any]:
    """The arguments of a call by which it differs from calls of the same tool `beside` it; {} when it is the only."""
    others = _other_calls(act, beside)
    if not isinstance(act.arguments, dict):
        return {}
    return {
        name: value
        for name, value in act.arguments.items()
        if any(
            not isinstance(other.arguments, dict)
            or name not in other.arguments
            or arguments_json(other.arguments[name]) != arguments_json(value)
            for other in others
        )
    }


def _other_calls(act: Action, beside: Sequence[Action]) -> list[Action]:
    return [nearby for nearby in beside if nearby.kind == "call" and nearby.name == act.name and nearby.key != act.key]


def _telling(act: Action, beside: Sequence[Action]) -> str:
    telling = telling_arguments(act, beside)
    if not telling:
        return " with fewer arguments" if _other_calls(act, beside) and isinstance(act.arguments, dict) else ""
    arguments = []
    for name, value in telling.items():
        text = distinguishing_excerpt(act, beside, name)
        arguments.append(f"{name}={_quoted(text) if isinstance(value, str) else cut(text, LONGEST)}")
    return f" with {abridged(arguments, 2)}"


def _from_difference(text: str, others: Iterable[str]) -> str:
    """A text on one line; a long one from where it differs from the others: beginnings are often the same."""
    line = " ".join(text.split())
    lines = [" ".join(other.split()) for other in others]
    if not lines or len(line) <= LONGEST:
        return line
    # In sorted order the first and the last text share the least: what these have in common, all have.
    alike = common_start(min(line, *lines), max(line, *lines))
    # From a whole word on; a short common beginning may as well be shown.
    start = line.rfind(" ", 0, max(alike - _BEFORE, 0)) + 1 if alike > LONGEST // 2 else 0
    return f"…{line[start:]}" if start else line


def _quoted(line: str) -> str:
    return f'"{cut(line, LONGEST)}"'
