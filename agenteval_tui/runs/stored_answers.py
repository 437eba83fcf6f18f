"""What judges and people have said of a run already: replies without asking anybody."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label, label_of, sole_criterion
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.transcripts.model import Transcript


def label_reply(spec: CriterionSpec, labels: Iterable[Label], sole: str) -> Reply | None:
    """What a person said of this criterion: the label of the run that counts for it (`history.labels.label_of`).

    A label of another version of the criterion is none: the person was asked something else.
    """
    own = [label for label in labels if label.whole or label.criterion_hash in ("", spec.hash)]
    last = label_of(own, spec.name, sole)
    if last is None:
        return None
    said = {"rating": last.rating, "passed": last.passed, "comment": last.comment, "who": last.who}
    return Reply(json.dumps(said), at_ms=last.at_ms)


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
) -> dict[str, Reply]:
    """The replies for grading again without asking: what is stored with the run, and its labels.

    `sole`: the only criterion that decides the run, of all that it has (`sole_of_specs`).
    """
    replies = {one.request.hash: one.reply for one in stored}
    for spec in specs:
        for request in compile_criterion(spec).requests(transcript, variables, replies):
            if request.kind == "person":
                reply = label_reply(spec, labels, sole)
                if reply is not None:
                    replies[request.hash] = reply
    return replies
