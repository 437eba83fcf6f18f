"""How much of a judged criterion's variance is the agent's (different outputs) and how much the judge's (different
verdicts on one output).

A judge that was asked several times about the same (`votes`, or the same question of another time) has said several
things of one output. Each of its replies is made into the verdict that it would give alone. With the verdicts v of
`a` outputs, m_i of output i and N in all, one-way analysis of variance with random effects takes them apart:

    judge  s2J = sum_i sum_j (v_ij - mean_i)^2 / (N - a)
    agent  s2A = max(0, (sum_i m_i (mean_i - mean)^2 / (a - 1) - s2J) / m0),  m0 = (N - sum_i m_i^2 / N) / (a - 1)

Source: S. Searle, G. Casella, C. McCulloch, "Variance components" (1992), section 3.6 (unbalanced data, ANOVA
estimator). It speaks of a single reply; the median of several votes varies less than that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.grading.compile import Checker, compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.runs.stored_judgments import decided_always
from agenteval_tui.transcripts.model import Transcript

_ROUNDS = 3  # a reply may need a second question; the third round finds that nothing is left
_REPLIES = 25  # of one output that are looked at


class VarianceSplit(Struct, frozen=True):
    """The variance of a verdict (1 passed, 0 failed): the agent's part and the judge's. `outputs` and `verdicts`: what
    it was made from; `repeated`: outputs on which the judge spoke more than once."""

    agent: float
    judge: float
    outputs: int
    verdicts: int
    repeated: int

    @property
    def judge_share(self) -> float | None:
        """The judge's part of both; None when nothing varies."""
        both = self.agent + self.judge
        return self.judge / both if both > 0 else None


def split_verdicts(verdicts: Sequence[Sequence[bool]]) -> VarianceSplit | None:
    """Take apart the verdicts by output (see above). None where it can't be told: fewer than two outputs, or no output
    with more than one verdict."""
    groups = [[1.0 if passed else 0.0 for passed in group] for group in verdicts if group]
    a, total = len(groups), sum(map(len, groups))
    repeated = sum(len(group) > 1 for group in groups)
    if a < 2 or not repeated:
        return None
    means = [sum(group) / len(group) for group in groups]
    grand = sum(map(sum, groups)) / total
    within = sum((v - mean) ** 2 for group, mean in zip(groups, means, strict=True) for v in group) / (total - a)
    between = sum(len(group) * (mean - grand) ** 2 for group, mean in zip(groups, means, strict=True)) / (a - 1)
    m0 = (total - sum(len(group) ** 2 for group in groups) / total) / (a - 1)
    # The estimator may be negative where outputs differ less than the judge does: then the agent has no part.
    return VarianceSplit(max(0.0, (between - within) / m0), within, a, total, repeated)


def asks_somebody(store: Store, criterion_hash: str) -> bool | None:
    """Whether something outside has a say in this criterion's verdict: a judge, a person, an embedder, a function.

    None: its configuration is not stored, or can't be used any more.
    """
    checker = _checker(store, criterion_hash)
    return None if checker is None or checker.problem else checker.asks


def verdicts_of(store: Store, runs: Sequence[RunRow], criterion_hash: str) -> list[list[bool]]:
    """The verdicts of single replies on each of these runs; a run whose replies are not stored is left out.

    Runs that got the same output rest on the same replies: they are one output.
    """
    checker = _checker(store, criterion_hash)
    if checker is None:
        return []
    # By what was asked, and not by run: a reply that is kept with several runs is one draw of the judge.
    replies = store.replies_of([run.id for run in runs])
    by_questions: dict[frozenset[str], list[bool]] = {}
    by_id = {run.id: run for run in runs}
    for run_id, transcript in store.transcripts([run.id for run in runs if run.id in replies]):
        by_question = _by_question(replies[run_id])
        verdicts = [
            _verdict(checker, transcript, by_id[run_id].variables, by_question, number)
            for number in range(min(max(map(len, by_question.values()), default=0), _REPLIES))
        ]
        decided = [verdict for verdict in verdicts if verdict is not None]
        # The first of runs with equal questions: the others would count the same replies again.
        if decided:
            by_questions.setdefault(frozenset(by_question), decided)
    return list(by_questions.values())


def _by_question(replies: Sequence[StoredReply]) -> dict[str, list[Reply]]:
    """The replies to each question, whichever vote it was; of several answerers those of the newest one."""
    chats = [reply for reply in replies if not reply.reply.error]
    # Answers of two models on one question would be counted as a judge's doubt.
    newest = {_question(chat.request.kind, chat.request.payload): chat.answerer for chat in chats}
    by_question: dict[str, list[Reply]] = {}
    for chat in chats:
        question = _question(chat.request.kind, chat.request.payload)
        if newest[question] == chat.answerer:
            by_question.setdefault(question, []).append(chat.reply)
    return by_question


def _question(kind: str, payload: Mapping[str, Any]) -> str:
    fields = {name: value for name, value in payload.items() if name != "vote"}
    return json.dumps([kind, fields], sort_keys=True, default=str)


def _verdict(
    checker: Checker,
    transcript: Transcript,
    variables: Mapping[str, Any],
    by_question: Mapping[str, Sequence[Reply]],
    number: int,
) -> bool | None:
    """The verdict if every question had been answered by its reply `number`; None, which is not a verdict."""
    chosen: dict[str, Reply] = {}
    for _ in range(_ROUNDS):
        before = len(chosen)
        for request in checker.requests(transcript, variables, chosen):
            replies = by_question.get(_question(request.kind, request.payload), ())
            if replies:
                chosen[request.hash] = replies[number % len(replies)]
        if len(chosen) == before:
            break
    outcome = str(checker.check(transcript, variables, explain=False, replies=chosen).outcome)
    return {"passed": True, "failed": False}.get(outcome)


def _checker(store: Store, criterion_hash: str) -> Checker | None:
    spec = known_spec(store, criterion_hash)
    return None if spec is None else compile_criterion(decided_always(spec))
