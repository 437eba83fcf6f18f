"""The options of a run of suites: what is chosen, what replaces what the suites say, and what it may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import field

from agenteval_tui.core.options import MOST_CONCURRENCY, MOST_REPETITIONS, Options, limits

DEFAULT_CONCURRENCY = 8
"""Runs at the same time, where neither the options nor the suites say it."""


class PlanOptions(Options, frozen=True):
    """What was asked for; as JSON, what differs from the defaults.

    `tests` are ids, or `FILE::ID` where an id is in several suites; a test must have all of `tags` (its suite's count
    too).

    `variation` limits the runs to one variation ("default": to none). `repeat`, `timeout` (seconds) and `agent`
    replace what the suites say; a variation that names an agent keeps it. `failed_from` is the reference of an
    execution: only what failed there or ended in an error is run, each such test, row and variation with all of its
    repetitions. `seed` changes what seeded agents do. `judge` is the agent that judges, whatever judges metrics name.
    `trust`: programs and functions of the suites' folders may run, whether they were trusted before or not.

    `executor`: the name of an `Executor`, which runs agents on the cluster whose scheduler has the address
    `scheduler`; "local" (and "") in this machine's process.

    `max_cost` (US dollars, judges and simulated users included), `max_tokens` and `max_seconds` end the execution
    cleanly when they are reached. `cache`: answers of the history are taken for equal requests: "" never, "first" for
    the first repetition, "all" for every repetition. `early_stop`: False ignores every `stop` of the suites. `ab` names
    two agents (or variations): each chosen test runs with both, see `check_arms`. `sample` draws this many tests (each
    row of a dataset counts as one) by `seed`. `fail_under_test` (0..1) is the gate of the tests for which no suite says
    one.
    """

    tests: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    agent: Annotated[str, limits("Use this agent instead of the suites' agents.", "A")] | None = None
    variation: Annotated[str, limits("Only this variation; `default` means none.", "V")] | None = None
    repeat: Annotated[int, limits("Run every test N times.", "N", ge=1, le=MOST_REPETITIONS)] | None = None
    concurrency: Annotated[int, limits("How many runs at the same time.", "N", ge=1, le=MOST_CONCURRENCY)] | None = None
    timeout: Annotated[float, limits("The timeout of each run.", "SECONDS", gt=0)] | None = None
    title: str = ""
    failed_from: str | None = None
    trust: Annotated[bool, limits("Let programs and Python functions in the suites' folders run.")] = False
    seed: Annotated[int, limits("The seed for agents that vary.", "N")] = 0
    judge: Annotated[str, limits("Use this agent as the judge, instead of those that metrics name.", "A")] | None = None
    max_cost: (
        Annotated[
            float,
            limits("Stop when agents, judges and simulated users have cost this much; exit code 1.", "USD", gt=0),
        ]
        | None
    ) = None
    max_tokens: Annotated[int, limits("Stop at this number of tokens; exit code 1.", "N", ge=1)] | None = None
    max_seconds: Annotated[float, limits("Stop after this time (90, 15m, 1.5h); exit code 1.", "TIME", gt=0)] | None = (
        None
    )
    cache: str = ""
    early_stop: bool = True
    ab: tuple[str, ...] = ()
    sample: Annotated[int, limits("Only N of the chosen tests and rows, sampled with --seed.", "N", ge=1)] | None = None
    executor: str = ""
    scheduler: str = ""
    fail_under_test: Annotated[float, limits("", "RATE", ge=0, le=1)] | None = None
    name: Annotated[str, limits("Call the execution this; use the name wherever an id is used.", "TEXT")] = ""
    """What the execution is called; so `note` and `meta` (`history.execution_names`)."""
    note: Annotated[str, limits("Keep a note with the execution.", "TEXT")] = ""
    meta: Mapping[str, str] = field(default_factory=dict)
