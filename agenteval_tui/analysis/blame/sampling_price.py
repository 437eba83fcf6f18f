"""What it would cost to find the decisive step of a stored run by sampling, beside the free answer."""

from __future__ import annotations

from msgspec.structs import replace

from agenteval_tui.analysis.blame.model import Blame, SamplingPrice
from agenteval_tui.analysis.blame.options import SAMPLES
from agenteval_tui.analysis.blame.sampled_answer import Sampling
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.transcripts.model import Transcript


def with_price(store: Store, row: RunRow, blame: Blame, transcript: Transcript) -> Blame:
    """The answer with the price of sampling, where the step is not known and was not sampled. Calls no agent."""
    if blame.decision != "not_known" or blame.sampled is not None:
        return blame
    return replace(blame, sampling_price=sampling_price(store, row, transcript))


def sampling_price(store: Store, row: RunRow, transcript: Transcript) -> SamplingPrice:
    """What sampling takes at most, if no answers contradict each other. Calls no agent."""
    try:
        takes, requests = Sampling(Oracle(store, row, purpose="blame"), transcript).price()
    except AgentevalError as error:
        return SamplingPrice(samples=SAMPLES, refused=error.what)
    if not takes.runs:
        return SamplingPrice(samples=SAMPLES, cost=0.0)
    return SamplingPrice(samples=SAMPLES, continuations=takes.runs, requests=requests, cost=takes.whole_cost)
