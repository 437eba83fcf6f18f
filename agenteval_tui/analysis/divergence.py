"""The repetitions of a test as one tree of steps, and the step at which passing and failing runs part.

A step is a tool call (with its arguments, or without), an answer (its words, in whatever case and spacing), or how a
run ended without one. So is a tool's result, where equal calls had few different ones. Where the requests of all runs
are known, so is what a model was asked with at first (tools and system prompt, where they differ), and each request
that does more than grow. Times and ids do not count.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Literal

from msgspec import Struct, field

from agenteval_tui.analysis.trajectory_alignment import arguments_json
from agenteval_tui.transcripts.model import ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest
from agenteval_tui.transcripts.request_changes import changes_since

Kind = Literal["start", "call", "result", "answer", "error", "end", "asked", "context"]


class Action(Struct, frozen=True):
    """One step of an agent. Two acts are the same when their `key` is; `name` is the tool's or the error's.

    `arguments` are those of the first run that was seen to do it, `text` its answer, or the tool's result. Of `asked`
    (what the first request had) they are {tools, system: its characters}; of `context` (a request that did more than
    grow) `RequestChange`s.
    """

    kind: Kind
    key: tuple[str, ...]
    name: str = ""
    arguments: Any = None
    text: str = ""


class Trajectory(Struct, frozen=True):
    """What one run did, step by step. `passed`: its outcome."""

    run: str
    passed: bool
    acts: tuple[Action, ...]


class Node(Struct):
    """A step in the tree: `depth` 1 is the first. `passed` and `failed` runs came through it, named in `runs`.

    `branches` are what they did next, most runs first.
    """

    act: Action
    depth: int
    parent: Node | None = None
    runs: list[str] = field(default_factory=list)
    passed: int = 0
    failed: int = 0
    branches: list[Node] = field(default_factory=list)
    by_key: dict[tuple[str, ...], Node] = field(default_factory=dict)

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


class Tree(Struct, frozen=True):
    """All ways as a prefix tree. `root` is before the first step; `ways` has each run's."""

    root: Node
    ways: dict[str, Trajectory]

    def nodes(self) -> Iterator[Node]:
        """All nodes but the root, each before its branches."""
        waiting = list(reversed(self.root.branches))
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.branches))

    def follow(self, run: str) -> list[Node]:
        """The nodes that a run came through."""
        nodes: list[Node] = []
        node = self.root
        acts = self.ways[run].acts if run in self.ways else ()
        for act in acts:
            below = node.by_key.get(act.key)
            if below is None:
                break
            nodes.append(below)
            node = below
        return nodes


class StepChange(Struct, frozen=True):
    """The first step (from 1) that two runs of a test did differently; None: the run went no further."""

    step: int
    was: Action | None
    now: Action | None


class BranchPoint(Struct, frozen=True):
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
        passing = max(self.branches, key=lambda node: (rate_of(node), node.passed))
        failing = min(self.branches, key=lambda node: (rate_of(node), -node.failed))
        if passing is failing or not passing.passed or not failing.failed:
            return None
        return passing.runs[0], failing.runs[-1]


class Compared(Struct, frozen=True):
    """What of steps is compared. `arguments` false: a call is its tool's name alone; `ignored` names single arguments.
    `context`: what requests lost, or had otherwise; `asked`: what the first request had. `results`: the calls (tool and
    arguments) whose results count."""

    arguments: bool = True
    ignored: frozenset[str] = frozenset()
    context: bool = False
    asked: bool = False
    results: frozenset[tuple[str, str]] = frozenset()


EVERYTHING = Compared()
"""What is compared where the requests are not known."""


def acts_of(transcript: Transcript, compared: Compared = EVERYTHING) -> tuple[Action, ...]:
    """What the agent did."""
    return tuple(act for act, _ in placed_acts(transcript, compared))


def placed_acts(transcript: Transcript, compared: Compared = EVERYTHING) -> tuple[tuple[Action, int | None], ...]:
    """What the agent did, as `acts_of`, each with the index of the message that did it; None: no message did."""
    acts: list[tuple[Action, int | None]] = []
    calls = transcript.tool_calls
    added: set[int] = set()
    contexts = _contexts(transcript, compared)
    told = {message.tool_call: index for index, message in enumerate(transcript.messages) if message.role == "tool"}
    for index, message in enumerate(transcript.messages):
        if message.role != "assistant":
            continue
        acts += [(act, index) for act in contexts.get(index, ())]
        numbers = [number for number in message.tool_calls if number < len(calls) and number not in added]
        added.update(numbers)
        # What is said beside a call varies, and is not what was done.
        if message.content.strip() and not numbers:
            acts.append((_answer(message.content), index))
        acts += [(_call(calls[number].name, calls[number].arguments, compared), index) for number in numbers]
        acts += [
            (_result(calls[number]), told.get(number, index))
            for number in numbers
            if _call_key(calls[number]) in compared.results
        ]
    for number, call in enumerate(calls):
        if number not in added:
            acts.append((_call(call.name, call.arguments, compared), call.message))
    if transcript.error is not None:
        error = transcript.error
        acts.append((Action("error", ("error", error.kind), error.kind, text=error.message), None))
    # To stop without a word is a step, too: another run answers there.
    elif not acts or acts[-1][0].kind != "answer":
        acts.append((Action("end", ("end",)), None))
    return tuple(acts)


def compared_in(transcripts: Sequence[Transcript]) -> Compared:
    """What of these runs can be compared: requests where those of all are known, and the first ones where they are not
    all alike, nor all different (a prompt that has something new each time tells nothing)."""
    results = telling_results(transcripts)
    if any(transcript.requests is None for transcript in transcripts):
        return Compared(results=results)
    begun = {asked_key(request) for transcript in transcripts if (request := first_request(transcript)) is not None}
    asked = 1 < len(begun) <= max(2, len(transcripts) // 2)
    return Compared(context=True, asked=asked, results=results)


def telling_results(transcripts: Sequence[Transcript]) -> frozenset[tuple[str, str]]:
    """The calls whose results tell runs apart: these are not all alike, nor all different (as where they have the
    time)."""
    results: defaultdict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for transcript in transcripts:
        for call in transcript.tool_calls:
            if call.result is not None:
                results[_call_key(call)].add(_result(call).key)
    most = max(2, len(transcripts) // 2)
    return frozenset(call for call, keys in results.items() if 1 < len(keys) <= most)


def first_change(before: Transcript, after: Transcript) -> StepChange | None:
    """The first step that differs; None where both did the same, step by step."""
    compared = compared_in((before, after))
    for step, (was, now) in enumerate(zip_longest(acts_of(before, compared), acts_of(after, compared)), 1):
        if was is None or now is None or was.key != now.key:
            return StepChange(step, was, now)
    return None


def tree_of(ways: Iterable[Trajectory]) -> Tree:
    """The ways as a tree. Within a node the runs that passed come first, in the order in which they were given."""
    trajectories = list(ways)
    root = Node(Action("start", ("start",)), 0)
    # A node's first run then is one that passed, and its last one that failed, if there are such (`representatives`).
    for way in sorted(trajectories, key=lambda trajectory: not trajectory.passed):
        node = root
        _count(node, way)
        for act in way.acts:
            following = node.by_key.get(act.key)
            if following is None:
                following = _branch(node, act)
            node = following
            _count(node, way)
    tree = Tree(root, {way.run: way for way in trajectories})
    for node in [root, *tree.nodes()]:
        if node.branches and sum(branch.number for branch in node.branches) < node.number:
            # Some runs end here and others go on (a conversation that one of them left): ending is a branch, too.
            going_on = {run for branch in node.branches for run in branch.runs}
            end = _branch(node, Action("end", ("end",)))
            for run in node.runs:
                if run not in going_on:
                    _count(end, tree.ways[run])
        node.branches.sort(key=lambda node: (-node.number, -node.passed))
    return tree


def first_divergence(tree: Tree) -> BranchPoint | None:
    """The fork at which the outcomes part most clearly; the earliest of equals. None when no step tells them apart.

    Each further branch has to earn its place (Akaike's criterion): runs that all went different ways explain nothing,
    whatever their outcomes.
    """
    best: tuple[float, BranchPoint] | None = None
    for node in [tree.root, *tree.nodes()]:
        if len(node.branches) < 2 or not node.passed or not node.failed:
            continue
        gain = _entropy(node) - sum(branch.number / node.number * _entropy(branch) for branch in node.branches)
        # Twice the log likelihood ratio, less two for each parameter more: a branch has one, its pass rate.
        worth = 2 * math.log(2) * node.number * gain - 2 * (len(node.branches) - 1)
        # Within rounding two are equal, and then the earlier one counts.
        if worth > 1e-9 and (best is None or (worth, -node.depth) > (best[0] + 1e-9, -best[1].node.depth)):
            best = (worth, BranchPoint(node, gain))
    return None if best is None else best[1]


# Inside


def _contexts(transcript: Transcript, compared: Compared) -> dict[int, list[Action]]:
    """What is to say of the request for each answer, by the answer's message."""
    requests = transcript.requests
    contexts: dict[int, list[Action]] = {}
    if requests is not None and compared.context:
        for number, reference in enumerate(requests.references, 1):
            difference = changes_since(requests, number)
            if reference.answer is None or difference is None:
                continue
            # Every request grows, and a parameter says nothing of what the model was shown.
            changes = tuple(change for change in difference.changes if change.kind not in ("added", "parameter"))
            if changes:
                kinds = {
                    f"{change.kind} {change.name}" if change.kind.startswith("tool") else change.kind
                    for change in changes
                }
                act = Action("context", ("context", *sorted(kinds)), arguments=changes)
                contexts.setdefault(reference.answer, []).append(act)
    first = first_request(transcript) if compared.asked else None
    if first is not None and first.answer is not None:
        tools = [tool.name for tool in first.tools]
        about = {"tools": tools, "system": len(first.system)}
        contexts.setdefault(first.answer, []).insert(0, Action("asked", asked_key(first), arguments=about))
    return contexts


def first_request(transcript: Transcript) -> ModelRequest | None:
    """The first request of a run; None where it is not known."""
    requests = transcript.requests
    return requests.request(1) if requests is not None and requests.references else None


def asked_key(request: ModelRequest) -> tuple[str, ...]:
    """What two first requests are the same by: their tools, and their system prompts without numbers (as of a date)."""
    return ("asked", _NUMBERS.sub("0", request.system), *sorted(tool.name for tool in request.tools))


_NUMBERS = re.compile(r"\d+")


def _call(name: str, arguments: object, compared: Compared) -> Action:
    if isinstance(arguments, dict) and compared.ignored:
        arguments = {key: value for key, value in arguments.items() if key not in compared.ignored}
    key = ("call", name, arguments_json(arguments)) if compared.arguments else ("call", name)
    return Action("call", key, name, arguments if compared.arguments else None)


def _call_key(call: ToolCall) -> tuple[str, str]:
    return call.name, arguments_json(call.arguments)


def _result(call: ToolCall) -> Action:
    text = call.result or ""
    return Action("result", ("result", call.name, " ".join(text.split())), call.name, text=text)


def _answer(text: str) -> Action:
    return Action("answer", ("answer", " ".join(unicodedata.normalize("NFKC", text).casefold().split())), text=text)


def _branch(node: Node, act: Action) -> Node:
    branch = node.by_key[act.key] = Node(act, node.depth + 1, node)
    node.branches.append(branch)
    return branch


def _count(node: Node, way: Trajectory) -> None:
    node.runs.append(way.run)
    if way.passed:
        node.passed += 1
    else:
        node.failed += 1


def rate_of(node: Node) -> float:
    """The share that passed; 0 for none."""
    return node.passed / node.number if node.number else 0.0


def _entropy(node: Node) -> float:
    rate = rate_of(node)
    return 0.0 if rate in (0.0, 1.0) else -rate * math.log2(rate) - (1 - rate) * math.log2(1 - rate)
