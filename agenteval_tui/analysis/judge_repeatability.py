"""Asking a judge the same again and again: how far its own verdicts lie apart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.permission import Permission
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import RunRow, is_imported
from agenteval_tui.history.store import Store
from agenteval_tui.runs.judge_client import ROUNDS, JudgeClient, JudgeRequestGroup
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.stored_judgments import decided_always
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.load import LoadedSuite, load_suite


class RepeatedResults(Struct, frozen=True):
    """The same judgment made several times, and what was asked of servers for it."""

    results: tuple[CriterionResult, ...]
    asked: int
    input_tokens: int | None
    output_tokens: int | None


def respondents_for(suite_keys: Sequence[str], judge: str | None = None) -> Respondents:
    """Who can be asked about stored runs: the agents of their suites' files, as far as they are there, and the user's.

    Raises `AgentevalError` when there is no agent `judge`.
    """
    loaded: list[LoadedSuite] = []
    for key in dict.fromkeys(suite_keys):
        if key and not is_imported(key):
            try:
                loaded.append(load_suite(Path(key)))
            except AgentevalError:
                continue  # the file is gone: the user's own agents are left
    return Respondents.of(tuple(loaded), load_agents(directories.config_dir()), judge)


async def rejudge(
    store: Store,
    row: RunRow,
    spec: CriterionSpec,
    times: int,
    respondents: Respondents,
    permission: Permission,
) -> RepeatedResults:
    """Ask all questions of the criterion about a stored run again, `times` times; nothing is stored.

    `permission`: of `trust_check.check_asking`.
    """
    # How often a judge agrees with itself is asked of its own verdicts, also of those that it would keep to itself.
    case = JudgeRequestGroup(row.suite_key, (decided_always(spec),), store.transcript(row.id), row.variables)
    asker = JudgeClient(respondents, permission=permission)
    try:
        results = await asyncio.gather(*(_once(asker, case) for _ in range(times)))
    finally:
        await asker.close()
    return RepeatedResults(tuple(results), asker.asked, asker.usage.input_tokens, asker.usage.output_tokens)


async def _once(asker: JudgeClient, case: JudgeRequestGroup) -> CriterionResult:
    checker = compile_criterion(case.specs[0])
    replies: dict[str, Reply] = {}
    for _ in range(ROUNDS):
        requests = checker.requests(case.transcript, case.variables, replies)
        for stored_reply in await asyncio.gather(
            *(asker.ask(request, case) for request in requests if request.kind != "person")
        ):
            replies[stored_reply.request.hash] = stored_reply.reply
    return checker.check(case.transcript, case.variables, replies=replies)
