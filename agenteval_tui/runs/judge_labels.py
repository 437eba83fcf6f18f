"""How a judge scored the runs that people labelled: what a judge that may keep silent is measured by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.metrics.judge_acceptance import LabelledScores, ScoredLabel
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec, without_property
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.labels import label_of, labels_by_recording, sole_criterion
from agenteval_tui.history.store import Store
from agenteval_tui.runs.stored_answers import Labelled

_ROUNDS = 3  # a reply may need a second question


class JudgeLabels:
    """Answers questions of kind `labels` out of one history. What was worked out once is kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str, str, str], Reply] = {}

    def of(self, suite_key: str) -> Labelled:
        """The same for the criteria of one suite."""
        return lambda spec, answerer: self.reply(spec, suite_key, answerer)

    def reply(self, spec: CriterionSpec, suite_key: str, answerer: str) -> Reply:
        """The `LabelledScores` of a criterion of a suite, as JSON. `answerer`: the judge, as its replies are stored."""
        asking = _what_asks(spec)
        key = (asking.hash, spec.name, suite_key, answerer)
        if key not in self._known:
            scores = labelled_scores(self._store, asking, suite_key, answerer)
            self._known[key] = Reply(msgspec.json.encode(scores).decode(), at_ms=now_ms())
        return self._known[key]


def decided_always(spec: CriterionSpec) -> CriterionSpec:
    """The criterion with a judge that never keeps silent."""
    return without_property(spec, "accept")


def _what_asks(spec: CriterionSpec) -> CriterionSpec:
    """The criterion with nothing but what its judge's scores depend on: they are kept while thresholds are edited."""
    asking = without_property(spec, "accept", "pass_threshold", "minimums", "weight", "name")
    return replace(asking, pass_threshold=None, negate=False)


def labelled_scores(store: Store, spec: CriterionSpec, suite_key: str, answerer: str) -> LabelledScores:
    """The scores that this judge gave, as it is asked now, to the recorded runs of the suite that people labelled.

    A label of the criterion counts before one of the run as a whole, of several the last, whichever version of the
    criterion the person looked at: what they say is said of the output. Each recording counts once.
    """
    checker = compile_criterion(spec)
    counts: Counter[tuple[float, tuple[tuple[str, float], ...], bool]] = Counter()
    unjudged = 0
    for own_labels in store.read(labels_by_recording).values():
        row = store.run(own_labels[-1].run_id)
        if row.suite_key != suite_key or row.fork_of:
            continue
        results = store.results(row.id)
        if all(result.criterion != spec.name for result in results):
            continue
        counting = label_of(
            own_labels, spec.name, sole_criterion((result.criterion, result.severity) for result in results)
        )
        if counting is None:
            continue
        try:
            transcript = store.transcript(row.id)
        except HistoryError:
            continue  # it was pruned, or can't be read
        replies: dict[str, Reply] = {}
        missing = False
        for _ in range(_ROUNDS):
            requests = [
                request for request in checker.requests(transcript, row.variables, replies) if request.kind == "chat"
            ]
            for request in requests:
                stored_reply = store.known_reply(request.hash, answerer)
                missing = missing or stored_reply is None
                if stored_reply is not None:
                    replies[request.hash] = stored_reply.reply
            if missing or not requests:
                break
        if missing:
            unjudged += 1
            continue
        scores = _scores(checker.check(transcript, row.variables, replies=replies))
        if scores is not None:
            counts[scores[0], tuple(sorted(scores[1].items())), counting.good] += 1
    scored = [ScoredLabel(score, dict(held), good, count) for (score, held, good), count in sorted(counts.items())]
    return LabelledScores(tuple(scored), unjudged)


def _scores(result: CriterionResult) -> tuple[float, Mapping[str, float]] | None:
    """The judge's score and those of its dimensions; None: it gave no verdict."""
    lines = result.metrics[0].evidence if result.metrics else ()
    figures = [line.fields for line in lines if line.fields.get("measure") == "score"]
    whole = [float(figure["score"]) for figure in figures if "dimension" not in figure]
    if not whole:
        return None
    return whole[0], {str(figure["dimension"]): float(figure["score"]) for figure in figures if "dimension" in figure}
