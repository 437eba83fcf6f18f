"""How often two kinds of evidence of `agenteval blame` name the right step, where no set of labelled failures has them.

What left the model's sight: recordings in which a value is lost at a known request (`context`), and whose criterion
asks for that value. Where repetitions part: simulated agents that lose their run at a known step, or at none, and
that vary their other steps, too. Both are measured by the same code as the runs of a user.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.analysis.blame.data_flow import has_value
from agenteval_tui.analysis.blame.free_answer import Repetitions, clues_in, suspects_of
from agenteval_tui.analysis.blame.model import ClueCode, Suspect
from agenteval_tui.analysis.divergence import Trajectory, acts_of, first_divergence, tree_of
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import content_of
from benchmarks.accuracy.context import PLANTS, PROTOCOLS, conversations, recording

SEED = 7
LOSSES = 30
"""Recordings with a planted loss."""
AGENTS = 300
"""Simulated agents with repetitions."""
LOST, SIMULATED = "planted losses", "simulated repetitions"
_LOSING = ("truncation", "compaction", "masking")
_VALUE = re.compile(r"[A-Z0-9]*\d[A-Z0-9]{3,}")
_STEPLESS = 0.35  # the share of simulated agents whose failures no step decides, as in `blame_sampling`


class Answered(Struct, frozen=True):
    """The kind of evidence that is the strongest of a run, None where there is none. `right`: it names the planted
    step."""

    code: ClueCode | None
    right: bool


def losses(file: Path) -> Iterator[Answered]:
    """The answers on `LOSSES` recordings of a file of tau-bench in which a value is lost."""
    draw = random.Random(SEED)
    recorded, protocols = conversations(file), list(PROTOCOLS)
    number = 0
    while number < LOSSES:
        plant, _ = PLANTS[_LOSING[number % len(_LOSING)]]
        made = recording(draw.choice(recorded), protocols[number % len(protocols)], plant, draw)
        if made is None:
            continue
        exchanges, at, lost = made
        if not _VALUE.search(lost):
            continue  # before all of it is read
        transcript = transcript_of(exchanges)
        assert transcript.requests is not None
        later = "\n".join(
            content_of(message) for request in transcript.requests.all[at - 1 :] for message in request.messages
        )
        final = "" if transcript.final_message is None else transcript.messages[transcript.final_message].content
        values = [one for one in _VALUE.findall(lost) if not has_value(f"{later}\n{final}", one)]
        if not values:
            continue
        number += 1
        truth = transcript.requests.references[at - 1].answer
        spec = CriterionSpec(
            "Says it", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": draw.choice(values)}]}
        )
        suspects = suspects_of(
            clues_in("", transcript, [compile_criterion(spec).check(transcript, {})], {spec.hash: spec})
        )
        yield _answered(suspects, truth)


def repetitions() -> Iterator[Answered]:
    """The answers on failed runs of `AGENTS` simulated agents, of whose runs at most half passed."""
    draw = random.Random(SEED)
    number = 0
    while number < AGENTS:
        steps, runs = draw.randint(3, 10), draw.choice((3, 5, 10, 20))
        decisive = None if draw.random() < _STEPLESS else draw.randrange(steps)
        varies, bad = draw.choice((0.0, 0.1, 0.3)), draw.uniform(0.4, 0.9)
        high, low = draw.uniform(0.85, 1), draw.uniform(0, 0.1)
        rate = draw.uniform(0.1, 0.5)
        made = [_simulated(draw, steps, decisive, varies, bad, high, low, rate) for _ in range(runs)]
        passed = sum(one.passed for one in made)
        failed = next((one for one in made if not one.passed and one.lost in (None, decisive)), None)
        if failed is None or 2 * passed > runs:
            continue
        number += 1
        ways = [Trajectory(str(place), one.passed, acts_of(one.transcript)) for place, one in enumerate(made)]
        tree = tree_of(ways)
        stored = Repetitions(runs, passed, 0, 0, tree, first_divergence(tree))
        suspects = suspects_of(clues_in(str(made.index(failed)), failed.transcript, (), {}, stored))
        yield _answered(suspects, None if decisive is None else _message(decisive))


# Inside


def _answered(suspects: Sequence[Suspect], truth: int | None) -> Answered:
    if not suspects:
        return Answered(None, False)
    return Answered(suspects[0].clues[0].code, suspects[0].step == truth)


class _Run(Struct, frozen=True, eq=False):
    transcript: Transcript
    passed: bool
    lost: int | None


def _message(step: int) -> int:
    return 1 + 2 * step


def _simulated(
    draw: random.Random,
    steps: int,
    decisive: int | None,
    varies: float,
    bad: float,
    high: float,
    low: float,
    rate: float,
) -> _Run:
    """A run. `lost`: the decisive step, if it went wrong there."""
    others = [draw.random() < varies for _ in range(steps)]
    if decisive is not None:
        others[decisive] = draw.random() < bad
        rate = low if others[decisive] else high
    lost = decisive if decisive is not None and others[decisive] else None
    return _Run(_conversation(others), draw.random() < rate, lost)


def _conversation(others: Sequence[bool]) -> Transcript:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do it."}]
    for step, other in enumerate(others):
        function = {"name": f"look_{step}", "arguments": json.dumps({"way": int(other)})}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{step}", "type": "function", "function": function}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{step}", "content": "done"})
    return from_openai_messages([*messages, {"role": "assistant", "content": "Done."}])
