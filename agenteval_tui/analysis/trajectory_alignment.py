"""Two transcripts side by side: which step of one is which step of the other, and which steps only one has.

Turns are matched first (a turn is a user's message and all that follows it), then the steps within a turn; the result
of a tool goes with its call. Ids and times do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from agenteval_tui.core.ids import canonical_json
from agenteval_tui.grading.sentences import reading_sentence
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

State = Literal["same", "changed", "left", "right"]
Span = tuple[int, int]

# Steps on both sides of a gap, multiplied: up to here the best pairing is found, beyond it the first that fits. Each
# pair costs a look at how alike two texts are, and a conversation of thousands of steps has many gaps.
_SMALL_GAP = 256
_LIKENESS = 400  # characters of two texts that are compared to tell how alike they are


class Step(Struct, frozen=True):
    """A message, a reasoning, a tool call, its result, the error that a run ended with, or what it left behind.

    `kind`: the message's role, or "reasoning", "call", "result", "error", "state". `place` names it among the blocks of
    the transcript: ("message", index), ("reasoning", index), ("call", number), ("result", number), ("error", 0); or
    among its probes: ("state", number). `name` is the tool's or the probe's. `text` is what is compared: of a call its
    arguments as JSON, of a probe its value after the run. `call` is the tool call itself.
    """

    kind: str
    place: tuple[str, int]
    text: str
    name: str = ""
    call: ToolCall | None = None


class Pair(Struct, frozen=True):
    """A step of the left transcript beside the one of the right that it matches; None where there is none."""

    state: State
    left: Step | None
    right: Step | None

    @property
    def step(self) -> Step:
        """The left step, or the right one if there is no left one."""
        step = self.left or self.right
        assert step is not None
        return step

    @property
    def matters(self) -> bool:
        """Is it a difference in what was done? Other thoughts alone are none."""
        return self.state != "same" and self.step.kind != "reasoning"


class Alignment(Struct, frozen=True):
    """All steps of both transcripts, in order, each once."""

    pairs: tuple[Pair, ...]

    @property
    def differences(self) -> list[int]:
        """The numbers of the pairs that differ in what was done, in order."""
        return [number for number, pair in enumerate(self.pairs) if pair.matters]

    @property
    def thoughts(self) -> int:
        """How many reasonings differ."""
        return sum(1 for pair in self.pairs if pair.state != "same" and not pair.matters)


def steps_of(transcript: Transcript) -> list[Step]:
    """The steps in reading order: a result right behind its call, calls that no message made and the error last."""
    messages, calls = transcript.messages, transcript.tool_calls
    answers = {m.tool_call: m for m in messages if m.role == "tool" and m.tool_call is not None}
    steps: list[Step] = []
    numbers: set[int] = set()
    for index, message in enumerate(messages):
        steps.extend(_of_message(index, message))
        for number in message.tool_calls:
            if number < len(calls) and number not in numbers:
                numbers.add(number)
                steps.extend(_of_call(number, calls[number], answers.get(number)))
    for number, call in enumerate(calls):
        if number not in numbers:
            steps.extend(_of_call(number, call, answers.get(number)))
    if transcript.error is not None:
        error = transcript.error
        steps.append(Step("error", ("error", 0), f"{error.kind}: {error.message}"))
    return steps


def align(left: Transcript, right: Transcript) -> Alignment:
    """The two transcripts, step by step; at the end what each probe read after the run. The same two always give the
    same; milliseconds for thousands of steps."""
    conversation = _align_steps(steps_of(left), steps_of(right))
    states = [{step.name: step for step in _states_of(transcript)} for transcript in (left, right)]
    names = dict.fromkeys((*states[0], *states[1]))
    return Alignment((*conversation.pairs, *(_pair(states[0].get(name), states[1].get(name)) for name in names)))


def _states_of(transcript: Transcript) -> Iterator[Step]:
    for number, probe in enumerate(transcript.state):
        reading = probe.after
        if reading is not None:
            text = reading_sentence(reading.problem, reading.fields) if reading.problem else reading.text
            yield Step("state", ("state", number), text, probe.name)


def _align_steps(left: Sequence[Step], right: Sequence[Step]) -> Alignment:
    """The steps of two transcripts (`steps_of`), matched."""
    turns_left, turns_right = _turns(left), _turns(right)
    pairs: list[Pair] = []
    for own, other in _matched_turns(left, right, turns_left, turns_right):
        if own is None:
            assert other is not None
            pairs += [Pair("right", None, step) for step in right[slice(*turns_right[other])]]
        elif other is None:
            pairs += [Pair("left", step, None) for step in left[slice(*turns_left[own])]]
        else:
            pairs += _align_turn(left[slice(*turns_left[own])], right[slice(*turns_right[other])])
    return Alignment(tuple(pairs))


def arguments_json(arguments: object) -> str:
    """Arguments as text that is equal where they are: keys sorted, no white space."""
    if isinstance(arguments, str):
        return arguments
    try:
        return canonical_json(arguments)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)


# Steps


def _of_message(index: int, message: Message) -> Iterator[Step]:
    if message.role == "tool" and message.tool_call is not None:
        return
    if message.reasoning:
        yield Step("reasoning", ("reasoning", index), message.reasoning)
    if message.content or not (message.reasoning or message.tool_calls):
        yield Step(message.role, ("message", index), message.content)


def _of_call(number: int, call: ToolCall, answer: Message | None) -> Iterator[Step]:
    yield Step("call", ("call", number), arguments_json(call.arguments), call.name, call)
    text = call.result if answer is None else answer.content
    if text is not None:
        yield Step("result", ("result", number), text, call.name, call)


# Turns


def _turns(steps: Sequence[Step]) -> list[Span]:
    """Where turns begin and end. The first is everything before the first user message; it may be empty."""
    starts = [0, *(number for number, step in enumerate(steps) if step.kind == "user")]
    return list(zip(starts, [*starts[1:], len(steps)], strict=True))


def _matched_turns(
    left: Sequence[Step], right: Sequence[Step], turns_left: Sequence[Span], turns_right: Sequence[Span]
) -> Iterator[tuple[int | None, int | None]]:
    yield 0, 0
    said_left = [left[start].text for start, _ in turns_left[1:]]
    said_right = [right[start].text for start, _ in turns_right[1:]]
    gaps = _gaps(_same(said_left, said_right), len(said_left), len(said_right))
    for (left_start, left_end), (right_start, right_end), anchor in gaps:
        # Other words in the same place of the conversation: a simulated user never says the same twice.
        matches = _best(
            range(left_start, left_end),
            range(right_start, right_end),
            lambda place, other: 1.0 + _likeness(said_left[place], said_right[other]),
            lambda _: 0,
        )
        for place, other in _in_order(matches, (left_start, left_end), (right_start, right_end)):
            yield None if place is None else place + 1, None if other is None else other + 1
        if anchor is not None:
            yield anchor[0] + 1, anchor[1] + 1


# Steps of a turn


def _align_turn(left: Sequence[Step], right: Sequence[Step]) -> list[Pair]:
    heads_left, heads_right = _heads(left), _heads(right)
    matched_heads = _matched_heads([left[n] for n, _ in heads_left], [right[n] for n, _ in heads_right])
    pairs: list[Pair] = []
    for place, other in _in_order(matched_heads, (0, len(heads_left)), (0, len(heads_right))):
        mine = () if place is None else left[slice(*heads_left[place])]
        theirs = () if other is None else right[slice(*heads_right[other])]
        for row in range(max(len(mine), len(theirs))):
            pairs.append(_pair(mine[row] if row < len(mine) else None, theirs[row] if row < len(theirs) else None))
    return pairs


def _pair(left: Step | None, right: Step | None) -> Pair:
    if left is None or right is None:
        return Pair("left" if right is None else "right", left, right)
    # A tool may give the same text with and without an error.
    failed = [step.kind == "result" and step.call is not None and step.call.status == "error" for step in (left, right)]
    same = (left.kind, left.name, left.text, failed[0]) == (right.kind, right.name, right.text, failed[1])
    return Pair("same" if same else "changed", left, right)


def _heads(steps: Sequence[Step]) -> list[Span]:
    """Where each step begins and ends, a call together with its result."""
    spans: list[Span] = []
    for number, step in enumerate(steps):
        before = steps[number - 1] if number else None
        # A result elsewhere (of a call before others) stands for itself.
        if step.kind == "result" and before is not None and before.place == ("call", step.place[1]):
            spans[-1] = (number - 1, number + 1)
        else:
            spans.append((number, number + 1))
    return spans


def _matched_heads(left: Sequence[Step], right: Sequence[Step]) -> list[tuple[int, int]]:
    """Which heads are the same, in order. Those that are equal count first, then those of the same kind and tool."""

    def kind(step: Step) -> Hashable:
        return step.kind, step.name

    def likeness(place: int, other: int) -> float:
        mine, theirs = left[place], right[other]
        return 0.0 if kind(mine) != kind(theirs) else 1.0 + _likeness(mine.text, theirs.text)

    matches: list[tuple[int, int]] = []
    # Equal steps are anchors. Only what lies between two of them is matched by likeness, in gaps that stay small.
    same = _same([(kind(step), step.text) for step in left], [(kind(step), step.text) for step in right])
    for (left_start, left_end), (right_start, right_end), anchor in _gaps(same, len(left), len(right)):
        mine, theirs = range(left_start, left_end), range(right_start, right_end)
        matches += _best(mine, theirs, likeness, lambda number: kind(left[number]), lambda number: kind(right[number]))
        if anchor is not None:
            matches.append(anchor)
    return matches


# Sequences


def matching_blocks(left: Sequence[Hashable], right: Sequence[Hashable]) -> Iterator[tuple[bool, Span, Span]]:
    """(the same?, numbers in left, numbers in right) by a longest common subsequence, in order."""
    from rapidfuzz.distance import LCSseq

    # Numbers in place of what is compared: two things with the same hash could be taken for equal.
    numbers: dict[Hashable, int] = {}
    ours = [numbers.setdefault(hashable, len(numbers)) for hashable in left]
    theirs = [numbers.setdefault(hashable, len(numbers)) for hashable in right]
    for code in LCSseq.opcodes(ours, theirs):
        yield code.tag == "equal", (code.src_start, code.src_end), (code.dest_start, code.dest_end)


def _same(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """A longest common subsequence: (number in left, number in right), in order."""
    return [
        pair
        for same, mine, theirs in matching_blocks(left, right)
        if same
        for pair in zip(range(*mine), range(*theirs), strict=True)
    ]


def _gaps(
    anchors: Sequence[tuple[int, int]], left: int, right: int
) -> Iterator[tuple[Span, Span, tuple[int, int] | None]]:
    """What lies before each anchor on both sides, and the anchor; at the end what is left over, without one."""
    start = other = 0
    for anchor in anchors:
        yield (start, anchor[0]), (other, anchor[1]), anchor
        start, other = anchor[0] + 1, anchor[1] + 1
    yield (start, left), (other, right), None


def _best(
    left: range,
    right: range,
    weight: Callable[[int, int], float],
    kind_left: Callable[[int], Hashable],
    kind_right: Callable[[int], Hashable] | None = None,
) -> list[tuple[int, int]]:
    """The heaviest pairs that cross no other; nothing of weight 0. In large gaps: as many of one kind as there are."""
    if not left or not right:
        return []
    if len(left) * len(right) > _SMALL_GAP:
        same = _same([kind_left(place) for place in left], [(kind_right or kind_left)(place) for place in right])
        return [(left[place], right[other]) for place, other in same]
    rows, columns = len(left), len(right)
    weights = [[weight(place, other) for other in right] for place in left]
    # best[i][j]: the most that left[i:] and right[j:] can give.
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            paired = weights[i][j] + best[i + 1][j + 1] if weights[i][j] else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    # Back through the table, along choices that keep the greatest weight.
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < rows and j < columns:
        if weights[i][j] and best[i][j] == weights[i][j] + best[i + 1][j + 1]:
            pairs.append((left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _in_order(pairs: Sequence[tuple[int, int]], left: Span, right: Span) -> Iterator[tuple[int | None, int | None]]:
    """Everything between the ends: what has no partner before the next pair, left before right."""
    start, other = left[0], right[0]
    for pair in [*pairs, (left[1], right[1])]:
        yield from ((number, None) for number in range(start, pair[0]))
        yield from ((None, number) for number in range(other, pair[1]))
        if pair != (left[1], right[1]):
            yield pair
        start, other = pair[0] + 1, pair[1] + 1


def _likeness(left: str, right: str) -> float:
    """How alike two texts are, 0..1, by their beginnings."""
    if left == right:
        return 1.0
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(left[:_LIKENESS], right[:_LIKENESS]))
