"""What judges and people have said of runs already: replies without asking anybody. A judge that may keep silent is
told how it scored the runs that people labelled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.metrics.judge_acceptance import LabelledScores, ScoredLabel
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.grading.spec import CriterionSpec, without_property
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.labels import Label, label_of, labels_by_recording, sole_criterion
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Transcript

Labelled = Callable[[CriterionSpec, str], Reply]
"""`labelled(criterion, answerer)`: the reply to a question of kind `labels`."""
_ROUNDS = 3  # a reply may need a second question


def label_reply(spec: CriterionSpec, request: RemoteRequest, labels: Iterable[Label], sole: str) -> Reply | None:
    """What a person said of this criterion: the label of the run that counts for it (`history.labels.label_of`).

    A label of another version of the criterion is none if the criterion asks a question: the person was asked something
    else. For a judge that keeps silent it counts: the person said it of the output.
    """
    any_version = "judge" in request.payload
    own = [label for label in labels if any_version or label.whole or label.criterion_hash in ("", spec.hash)]
    last = label_of(own, spec.name, sole)
    if last is None:
        return None
    fields = {"rating": last.rating, "passed": last.passed, "comment": last.comment, "who": last.who}
    return Reply(json.dumps(fields), at_ms=last.at_ms)


def _answerer(stored: Sequence[StoredReply], judge: str) -> str:
    """Who answered for the judge of this name last."""
    chats = [
        stored_reply
        for stored_reply in stored
        if stored_reply.request.kind == "chat" and stored_reply.request.target == judge
    ]
    return chats[-1].answerer if chats else ""


def sole_of_specs(specs: Iterable[CriterionSpec]) -> str:
    """The name of the only criterion of a test that decides its runs; "": none or several do."""
    return sole_criterion((spec.name, spec.severity) for spec in specs)


def stored_answers(
    specs: Iterable[CriterionSpec],
    transcript: Transcript,
    variables: Mapping[str, Any],
    stored: Sequence[StoredReply],
    labels: Sequence[Label] = (),
    sole: str = "",
    labelled: Labelled | None = None,
) -> dict[str, Reply]:
    """The replies for grading again without asking: what is stored with the run, and its labels.

    `sole`: the only criterion that decides the run, of all that it has (`sole_of_specs`). `labelled`: answers how a
    judge scored the runs of the suite that people labelled.
    """
    replies = {stored_reply.request.hash: stored_reply.reply for stored_reply in stored}
    for spec in specs:
        for request in compile_criterion(spec).requests(transcript, variables, replies):
            reply = None
            if request.kind == "person":
                reply = label_reply(spec, request, labels, sole)
            elif request.kind == "labels" and labelled is not None:
                reply = labelled(spec, _answerer(stored, str(request.payload["judge"])))
            if reply is not None:
                replies[request.hash] = reply
    return replies


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
