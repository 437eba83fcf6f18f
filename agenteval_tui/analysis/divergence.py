"""The repetitions of a test as one tree of steps, and the step at which passing and failing runs part.

A step is a tool call (with its arguments, or without), an answer (its words, in whatever case and spacing), or how a
run ended without one. Times and ids do not count.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agenteval_tui.analysis.alignment import arguments_json
from agenteval_tui.transcripts.model import Transcript

Kind = Literal["start", "call", "answer", "error", "end"]

NAMED = 3  # branches that a sentence names one by one
LONGEST = 60  # characters of a value or an answer in a sentence
_BEFORE = 16  # characters of an answer shown before the place where it differs


@dataclass(frozen=True, slots=True)
class Act:
    """One step of an agent. Two acts are the same when their `key` is; `name` is the tool's or the error's.

    `arguments` are those of the first run that was seen to do it, `text` its answer.
    """

    kind: Kind
    key: tuple[str, ...]
    name: str = ""
    arguments: Any = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """What one run did, step by step. `passed`: its outcome."""

    run: str
    passed: bool
    acts: tuple[Act, ...]


@dataclass(slots=True)
class Node:
    """A step in the tree: `depth` 1 is the first. `passed` and `failed` runs came through it, named in `runs`.

    `branches` are what they did next, most runs first.
    """

    act: Act
    depth: int
    parent: Node | None = None
    runs: list[str] = field(default_factory=list)
    passed: int = 0
    failed: int = 0
    branches: list[Node] = field(default_factory=list)
    by_key: dict[tuple[str, ...], Node] = field(default_factory=dict, repr=False)

    @property
    def number(self) -> int:
        """How many runs came through."""
        return self.passed + self.failed

    @property
    def path(self) -> list[Node]:
        """From the first step to this one."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None and node.depth:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


@dataclass(frozen=True, slots=True)
class Tree:
    """All ways as a prefix tree. `root` is before the first step; `ways` has each run's."""

    root: Node
    ways: dict[str, Way]

    def nodes(self) -> Iterator[Node]:
        """All nodes but the root, each before its branches."""
        waiting = list(reversed(self.root.branches))
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.branches))

    def follow(self, run: str) -> list[Node]:
        """The nodes that a run came through."""
        found: list[Node] = []
        node = self.root
        acts = self.ways[run].acts if run in self.ways else ()
        for act in acts:
            below = node.by_key.get(act.key)
            if below is None:
                break
            found.append(below)
            node = below
        return found


@dataclass(frozen=True, slots=True)
class Fork:
    """The place where outcomes part: runs did the same up to `node`, and then one of `node.branches`.

    `gain`: how many bits the branch says about the outcome, over the runs that came here.
    """

    node: Node
    gain: float

    @property
    def step(self) -> int:
        """The number of the step that differs, from 1."""
        return self.node.depth + 1

    @property
    def branches(self) -> list[Node]:
        """What was done there, most runs first."""
        return self.node.branches

    def branch_of(self, run: str) -> Node | None:
        """The branch that a run took; None when it did not come here."""
        return next((branch for branch in self.branches if run in branch.runs), None)

    def representatives(self) -> tuple[str, str] | None:
        """A passing and a failing run out of different branches: those of the clearest ones; None: there are none."""
        passing = max(self.branches, key=lambda one: (_rate(one), one.passed))
        failing = min(self.branches, key=lambda one: (_rate(one), -one.failed))
        if passing is failing or not passing.passed or not failing.failed:
            return None
        return passing.runs[0], failing.runs[-1]


def acts_of(
    transcript: Transcript, *, with_arguments: bool = True, ignored: frozenset[str] = frozenset()
) -> tuple[Act, ...]:
    """What the agent did. `with_arguments` false: a call is its tool's name alone; `ignored` names single arguments."""
    acts: list[Act] = []
    calls = transcript.tool_calls
    made: set[int] = set()
    for message in transcript.messages:
        if message.role != "assistant":
            continue
        known = [number for number in message.tool_calls if number < len(calls) and number not in made]
        made.update(known)
        if message.content.strip() and not known:
            acts.append(_answer(message.content))
        acts += [_call(calls[number].name, calls[number].arguments, with_arguments, ignored) for number in known]
    for number, call in enumerate(calls):
        if number not in made:
            acts.append(_call(call.name, call.arguments, with_arguments, ignored))
    if transcript.error is not None:
        acts.append(
            Act("error", ("error", transcript.error.kind), transcript.error.kind, text=transcript.error.message)
        )
    elif not acts or acts[-1].kind != "answer":
        acts.append(Act("end", ("end",)))
    return tuple(acts)


def tree_of(ways: Iterable[Way]) -> Tree:
    """The ways as a tree. Within a node the runs that passed come first, in the order in which they were given."""
    known = list(ways)
    root = Node(Act("start", ("start",)), 0)
    for way in sorted(known, key=lambda one: not one.passed):
        node = root
        _count(node, way)
        for act in way.acts:
            following = node.by_key.get(act.key)
            if following is None:
                following = _branch(node, act)
            node = following
            _count(node, way)
    tree = Tree(root, {way.run: way for way in known})
    for node in [root, *tree.nodes()]:
        if node.branches and sum(one.number for one in node.branches) < node.number:
            # Some runs end here and others go on (a conversation that one of them left): ending is a branch, too.
            going_on = {run for one in node.branches for run in one.runs}
            end = _branch(node, Act("end", ("end",)))
            for run in node.runs:
                if run not in going_on:
                    _count(end, tree.ways[run])
        node.branches.sort(key=lambda one: (-one.number, -one.passed))
    return tree


def first_divergence(tree: Tree) -> Fork | None:
    """The fork at which the outcomes part most clearly; the earliest of equals. None when no step tells them apart.

    Each further branch has to earn its place (Akaike's criterion): runs that all went different ways explain nothing,
    whatever their outcomes.
    """
    best: tuple[float, Fork] | None = None
    for node in [tree.root, *tree.nodes()]:
        if len(node.branches) < 2 or not node.passed or not node.failed:
            continue
        gain = _entropy(node) - sum(one.number / node.number * _entropy(one) for one in node.branches)
        worth = 2 * math.log(2) * node.number * gain - 2 * (len(node.branches) - 1)
        if worth > 1e-9 and (best is None or (worth, -node.depth) > (best[0] + 1e-9, -best[1].node.depth)):
            best = (worth, Fork(node, gain))
    return None if best is None else best[1]


# In words


def said_of_fork(fork: Fork) -> str:
    """`step 2: 3 of 5 call search_docs (3/3 pass), 2 answer at once (0/2 pass)`."""
    named = fork.branches if len(fork.branches) <= NAMED + 1 else fork.branches[:NAMED]
    parts = []
    for position, branch in enumerate(named):
        number = f"{branch.number:,} of {fork.node.number:,}" if position == 0 else f"{branch.number:,}"
        verb = said_of_branch(fork, branch, plural=branch.number != 1)
        parts.append(f"{number} {verb} ({branch.passed:,}/{branch.number:,} pass)")
    rest = fork.branches[len(named) :]
    if rest:
        passed, runs = sum(one.passed for one in rest), sum(one.number for one in rest)
        parts.append(f"{runs:,} go {len(rest):,} other ways ({passed:,}/{runs:,} pass)")
    return f"step {fork.step:,}: {', '.join(parts)}"


def said_of_run(fork: Fork, run: str) -> str:
    """The same for one run: `most passing runs call search_docs at step 2 (3 of 3 pass); this run answered at once
    (0 of 2 pass)`. "" for a run that did not come to the fork."""
    mine = fork.branch_of(run)
    if mine is None:
        return ""
    others = [branch for branch in fork.branches if branch is not mine]
    wanted = max(others, key=lambda one: (_rate(one), one.number))
    if _rate(mine) >= _rate(wanted):
        wanted = min(others, key=lambda one: (_rate(one), -one.number))
    who = "passing runs" if wanted.passed > wanted.failed else "failing runs"
    here = f"{wanted.passed:,} of {wanted.number:,} pass"
    there = f"{mine.passed:,} of {mine.number:,} pass"
    verb = said_of_branch(fork, wanted, plural=True)
    return f"{who} {verb} at step {fork.step:,} ({here}); this run {_past(fork, mine)} ({there})"


def said_of_branch(fork: Fork, branch: Node, *, plural: bool) -> str:
    """What the runs of a branch do there: `call get_order with order_id="#W1"`, `answer at once`."""
    return said_of_act(branch.act, [one.act for one in fork.branches], plural=plural)


def said_of_act(act: Act, beside: Sequence[Act], *, plural: bool) -> str:
    """What an agent does, in words that tell it from the acts `beside` it."""
    ending = "" if plural else "s"
    if act.kind == "call":
        return f"call{ending} {act.name}{_telling(act, beside)}"
    if act.kind == "answer":
        if all(one.kind != "answer" or one.key == act.key for one in beside) and len(beside) > 1:
            return f"answer{ending} at once" if any(one.kind == "call" for one in beside) else f"answer{ending}"
        return f"answer{ending} {_quoted(excerpt(act, beside))}"
    if act.kind == "error":
        return f"end{ending} in an error ({act.name})"
    return f"stop{ending} there" if any(one.kind != "end" for one in beside) else f"end{ending} without an answer"


def excerpt(act: Act, beside: Sequence[Act]) -> str:
    """An answer from where it differs from the answers `beside` it: beginnings are often the same."""
    text = " ".join(act.text.split())
    others = [" ".join(one.text.split()) for one in beside if one.kind == "answer" and one.key != act.key]
    if not others or len(text) <= LONGEST:
        return text
    first, last = min(text, *others), max(text, *others)
    alike = next((place for place, char in enumerate(first) if char != last[place]), len(first))
    start = text.rfind(" ", 0, max(alike - _BEFORE, 0)) + 1 if alike > LONGEST // 2 else 0
    return f"…{text[start:]}" if start else text


def telling_arguments(act: Act, beside: Sequence[Act]) -> dict[str, Any]:
    """The arguments of a call by which it differs from calls of the same tool `beside` it; {} when it is the only."""
    others = [one for one in beside if one.kind == "call" and one.name == act.name and one.key != act.key]
    if not others or not isinstance(act.arguments, dict):
        return {}
    return {
        name: value
        for name, value in act.arguments.items()
        if any(
            not isinstance(one.arguments, dict)
            or name not in one.arguments
            or arguments_json(one.arguments[name]) != arguments_json(value)
            for one in others
        )
    }


# Inside


def _call(name: str, arguments: Any, with_arguments: bool, ignored: frozenset[str]) -> Act:
    if isinstance(arguments, dict) and ignored:
        arguments = {key: value for key, value in arguments.items() if key not in ignored}
    key = ("call", name, arguments_json(arguments)) if with_arguments else ("call", name)
    return Act("call", key, name, arguments if with_arguments else None)


def _answer(text: str) -> Act:
    return Act("answer", ("answer", " ".join(unicodedata.normalize("NFKC", text).casefold().split())), text=text)


def _branch(node: Node, act: Act) -> Node:
    made = node.by_key[act.key] = Node(act, node.depth + 1, node)
    node.branches.append(made)
    return made


def _count(node: Node, way: Way) -> None:
    node.runs.append(way.run)
    if way.passed:
        node.passed += 1
    else:
        node.failed += 1


def _rate(node: Node) -> float:
    return node.passed / node.number if node.number else 0.0


def _entropy(node: Node) -> float:
    rate = _rate(node)
    return 0.0 if rate in (0.0, 1.0) else -rate * math.log2(rate) - (1 - rate) * math.log2(1 - rate)


def _telling(act: Act, beside: Sequence[Act]) -> str:
    telling = telling_arguments(act, beside)
    if not telling:
        others = any(one.kind == "call" and one.name == act.name and one.key != act.key for one in beside)
        return " with fewer arguments" if others and isinstance(act.arguments, dict) else ""
    said = [f"{name}={_quoted(value)}" for name, value in list(telling.items())[:2]]
    more = f" and {len(telling) - 2} more" if len(telling) > 2 else ""
    return f" with {', '.join(said)}{more}"


def _quoted(value: Any) -> str:
    text = " ".join(value[: LONGEST * 4].split()) if isinstance(value, str) else arguments_json(value)
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return f'"{text}"' if isinstance(value, str) else text


def _past(fork: Fork, branch: Node) -> str:
    said = said_of_branch(fork, branch, plural=True)
    verb, _, rest = said.partition(" ")
    past = {"call": "called", "answer": "answered", "end": "ended", "stop": "stopped"}[verb]
    return f"{past} {rest}".strip()
