"""Metrics that ask somebody: a judge, an embedder, a person, a function in another process.

Grading stays pure. Such a metric says what it would ask (`requests`, plain data with a hash) and what it makes of the
replies (`conclude`). Whoever runs tests does the asking, keeps prompt and raw reply, and gives the replies by hash:
the same question has the same hash, so a stored result can be shown and scored again without asking again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.metrics.metric import Metric
from agenteval_tui.grading.remote_requests import AskKind, RemoteCall, RemoteRequest, Reply
from agenteval_tui.grading.results import Evidence, Fields, MetricResult, Outcome
from agenteval_tui.transcripts.traceback import traceback_data


class UnusableError(CodedError):
    """The reply gives no verdict: why, as a code with fields, or, for a plug-in, as a message."""

    code = Code.UNUSABLE_REPLY


class RemoteMetric(Metric):
    """Base of metrics that ask. `check` answers from `context.replies`; what is not answered there is an `error`."""

    asks: ClassVar[AskKind] = "chat"

    @property
    def target(self) -> str:
        """Who is asked: the name of a judge or an embedder, or `module:function`; "" for the default."""
        return ""

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        """What is asked of `value`. Raises `UnusableError` when there is nothing to ask with."""
        raise NotImplementedError

    def follow_up(self, request: RemoteRequest, reply: Reply) -> RemoteRequest | None:
        """A second question, when the first reply can't be read; None when it can, or when asking again is useless."""
        return None

    def conclude(self, remote_calls: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        """The result. `remote_calls` is in the order of `requests`, none of the replies is an error.

        Raises `UnusableError` when a reply can't be read.
        """
        raise NotImplementedError

    def unanswered(self, missing: Sequence[RemoteRequest], context: Context) -> MetricResult:
        """The result while replies are missing: never a verdict."""
        code = Code.NOT_ASKED if context.replies is None else Code.NOT_ASKED_THIS
        return self.error(code=code, fields={"kind": self.asks, "target": self.target})

    def check(self, value: Value, context: Context) -> MetricResult:
        try:
            remote_calls, missing = self.look_up(value, context)
            if missing:
                return self.unanswered(missing, context)
            broken = [call for call in remote_calls if call.last.error]
            if broken:
                reply = broken[0].last
                fields: Fields = {"kind": self.asks, "target": self.target, "message": reply.error}
                if reply.traceback is not None:
                    fields["traceback"] = traceback_data(reply.traceback)
                return self.error(evidence=replies_as_evidence(remote_calls), code=Code.ASKING_FAILED, fields=fields)
            return self.conclude(remote_calls, value, context)
        except UnusableError as problem:
            return self.error_from(problem)

    def missing(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        """The questions for which there is no reply yet; () when all are answered, or none can be asked."""
        if self.checks_nothing():
            return ()
        try:
            return self.look_up(value, context)[1]
        except UnusableError:
            return ()

    def look_up(self, value: Value, context: Context) -> tuple[tuple[RemoteCall, ...], tuple[RemoteRequest, ...]]:
        """The questions with their replies, and those that have none. Raises `UnusableError`."""
        replies = context.replies or {}
        remote_calls: list[RemoteCall] = []
        missing: list[RemoteRequest] = []
        for request in self.requests(value, context):
            reply = replies.get(request.hash)
            if reply is None:
                missing.append(request)
                continue
            again = None if reply.error else self.follow_up(request, reply)
            second = None if again is None else replies.get(again.hash)
            if again is not None and second is None:
                missing.append(again)
            else:
                remote_calls.append(RemoteCall(request, reply, again, second))
        return tuple(remote_calls), tuple(missing)

    def waiting(self, question: str) -> MetricResult:
        """A result that waits for a person, who is asked `question`."""
        kind, fields = self.type_name, {"question": question}
        outcome = Outcome.NEEDS_REVIEW
        return MetricResult(self.name or kind, kind, outcome, None, self.weight, code=Code.WAITING, fields=fields)


def replies_as_evidence(remote_calls: Sequence[RemoteCall]) -> tuple[Evidence, ...]:
    """The raw replies, for a result that is an error: so that a person sees what could not be read."""
    many = len(remote_calls) > 1
    lines = []
    for number, remote_call in enumerate(remote_calls, 1):
        for which, reply in (("reply", remote_call.reply), ("second reply", remote_call.repaired)):
            if reply is not None and (reply.raw or reply.error):
                name = f"{which} {number}" if many else which
                fields = {"error": reply.error}
                lines.append(Evidence(name, None, found=reply.raw, code=Code.REPLIED, fields=fields))
    return tuple(lines)
