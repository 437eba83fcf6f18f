"""What is known of a run without asking anybody: the free answer, and what sampling has found before."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agenteval_tui.analysis.blame.free_answer import NOTHING_READ, OTHERS, NothingToBlameError, ReadParts, blame_of
from agenteval_tui.analysis.blame.model import Blame, ClueCode, Fault, SampledAnswer, StepRate, Suspect
from agenteval_tui.analysis.blame.sampling import Counts, Search, SearchResult
from agenteval_tui.core.document import extended
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.edits import ForkError, fork
from agenteval_tui.runs.fork.model import ForkOrigin, read_origin
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.transcripts.model import Transcript

SAMPLES_OPTION = "samples"
"""The option of an execution that says how many continuations of one step were wanted at most."""


def known_blame(store: Store, row: RunRow, parts: ReadParts = NOTHING_READ) -> Blame:
    """The free answer on a stored run, with what was sampled of it before. Raises `NothingToBlameError`."""
    transcript = store.transcript(row.id) if parts.transcript is None else parts.transcript
    blame = blame_of(store, row, replace(parts, transcript=transcript))
    sampled = known_samples(store, row, transcript)
    return blame if sampled is None else with_sampling(blame, sampled)


def blame_beside(store: Store, row: RunRow, parts: ReadParts = NOTHING_READ) -> Blame | None:
    """What is known about a run's fault, if it says more than the explanation of the failure; else None."""
    try:
        blame = known_blame(store, row, parts)
    except NothingToBlameError:
        return None
    if blame.decision not in ("step", "not_known") or not blame.named:
        return None
    clues = blame.named[0].clues
    return blame if blame.sampled is not None or (clues and clues[0].code not in _KNOWN_FROM_EXPLANATION) else None


def known_samples(store: Store, row: RunRow, transcript: Transcript) -> SampledAnswer | None:
    """The result of sampling a run, from the stored continuations. None if the run was not sampled.

    If there are several versions of the agent or the criteria, only the newest continuations count.
    """
    forks = [
        (origin, sample_run)
        for sample_run in store.forks_of(row.id)
        if sample_run.status in DECIDED
        and (origin := read_origin(sample_run.fork_of, sample_run.fork))
        and _is_sample(origin)
    ]
    sample_runs = [sample_run for origin, sample_run in forks if origin.purpose == "blame"]
    if not sample_runs:
        return None
    # Rates of several versions must not be mixed.
    counts: dict[int, Counts] = {}
    for origin, sample_run in forks:
        if (sample_run.agent_version, sample_run.criteria) == (sample_runs[-1].agent_version, sample_runs[-1].criteria):
            counted = counts.get(origin.step + 1, Counts(0, 0))
            counts[origin.step + 1] = Counts(counted.passed + (sample_run.status == "passed"), counted.n + 1)
    steps = [step for step, _ in steps_to_redo(transcript)]
    if not any(step in counts for step in steps):
        return None
    executions = dict.fromkeys(sample_run.execution_id for sample_run in sample_runs)
    sizes = [store.execution(execution_id).options.get(SAMPLES_OPTION, 0) for execution_id in executions]
    samples = max(*sizes, *(count.n for count in counts.values()))
    look = Search(len(steps), samples=samples)
    for place, step in enumerate(steps):
        if step in counts:
            look.tell(place, counts[step])
    # A search that would go on was ended, by a limit on cost or by a person.
    outcome, stopped = look.result(), "some were not asked" if look.next() is not None else ""
    return sampled_of(
        outcome, steps, samples, stored=outcome.asked, execution=sample_runs[-1].execution_id, stopped=stopped
    )


def steps_to_redo(transcript: Transcript) -> list[tuple[int, Conversation]]:
    """The messages that the agent can do anew, each with the conversation before it."""
    conversations = []
    for index, message in enumerate(transcript.messages):
        if message.role != "assistant" or index == 0:
            continue
        try:
            conversations.append((index, fork(transcript, index - 1)))
        except ForkError:
            continue
    return conversations


def sampled_of(
    outcome: SearchResult,
    steps: Sequence[int],
    samples: int,
    *,
    stored: int = 0,
    cost: float | None = None,
    execution: str = "",
    stopped: str = "",
) -> SampledAnswer:
    """What a search found, by messages: `steps` are those that its prefixes end before."""
    return SampledAnswer(
        answer=outcome.answer,
        step=None if outcome.step is None else steps[outcome.step],
        rates=tuple(extended(StepRate, rate, step=steps[rate.prefix]) for rate in outcome.rates),
        samples=samples,
        asked=outcome.asked,
        known=stored,
        cost=cost,
        execution=execution,
        stopped=stopped,
    )


def with_sampling(blame: Blame, sampled: SampledAnswer) -> Blame:
    """The free answer with what sampling found: where it decides, it counts more."""
    if sampled.answer == "undecided":
        return replace(blame, sampled=sampled)
    decisive = None
    if sampled.step is not None:
        matching = next((suspect for suspect in blame.named if suspect.step == sampled.step), None)
        decisive = matching or Suspect(sampled.step, "agent", ())
    others = tuple(suspect for suspect in blame.named if decisive is None or suspect.step != decisive.step)[:OTHERS]
    fault: Fault = "criterion" if blame.fault == "criterion" else decisive.fault if decisive is not None else "unknown"
    return replace(blame, sampled=sampled, decisive=decisive, others=others, fault=fault)


# Inside

# What an explanation says already, or what says nothing beside it.
_KNOWN_FROM_EXPLANATION = (
    ClueCode.PARTED,
    ClueCode.FEW_PARTED,
    ClueCode.PARTED_ELSEWHERE,
    ClueCode.SIGHT_CHANGED,
    ClueCode.ANSWER,
    ClueCode.WRONG_TEXT,
    ClueCode.FIRST_RESULT,
)


def _is_sample(origin: ForkOrigin) -> bool:
    """Whether a fork continues the run as it was: who asks so, asks what sampling asks."""
    return origin.purpose in ("blame", "fork") and not origin.edits
