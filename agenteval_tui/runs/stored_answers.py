"""What judges and people have said of a run already: replies without asking anybody."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label, label_of, sole_criterion
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.transcripts.model import Transcript

Labelled = Callable[[CriterionSpec, str], Reply]
"""`labelled(criterion, answerer)`: the reply to a question of kind `labels`."""


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
