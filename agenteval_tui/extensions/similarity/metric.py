"""`Similarity`: how close the value's meaning is to another text's, by embeddings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, Value
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.grading.remote import RemoteMetric, UnusableError
from agenteval_tui.grading.remote_requests import AskKind, RemoteCall, RemoteRequest, Reply
from agenteval_tui.grading.results import Evidence, MetricResult

_TO = 200


class Similarity(RemoteMetric):
    """Compares meanings: the cosine of the two texts' embeddings must reach `min`. The score is the cosine.

    Embeddings come from a server (`/embeddings` of any OpenAI-compatible one) or from a model on this machine. Without
    either, the outcome is an error. `Lexical` needs neither: it compares words.
    """

    asks: ClassVar[AskKind] = "embed"

    to: str | None = Field(None, description="The text to compare with. Default: the criterion's expected value.")
    min: float = Field(0.8, ge=-1, le=1, description="The lowest cosine that passes.")
    embedder: str = Field(
        "",
        description='An agent of kind `openai`, or a kind of embedder. Default: the agent named "embedder".',
    )

    @property
    def target(self) -> str:
        return self.embedder

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        to = self._to(context)
        if not value.text.strip():
            return ()
        return tuple(RemoteRequest("embed", self.embedder, {"text": text}) for text in (value.text, to))

    def conclude(self, remote_calls: Sequence[RemoteCall], value: Value, context: Context) -> MetricResult:
        to = self._to(context)
        if not remote_calls:
            return self.result(False, 0.0, (Evidence("similarity", False, "", to, value.text, code=Code.EMPTY),))
        (left, note), (right, other_note) = (_vector(remote_call.last) for remote_call in remote_calls)
        if len(left) != len(right):
            raise _unusable("lengths", left=len(left), right=len(right))
        cosine = _cosine(left, right)
        passed = cosine >= self.min - 1e-9
        model = remote_calls[0].last.model
        fields = {"measure": "similarity", "amount": cosine, "least": self.min, "to": to[:_TO], "model": model}
        likeness = round(cosine, 6)
        code = Code.WITHIN if passed else Code.TOO_LOW
        line = Evidence("similarity", passed, "", f">= {self.min:g}", likeness, code=code, fields=fields)
        notes = [note] * bool(note) + [other_note] * bool(other_note)
        evidence = (line, *(Evidence("note", None, note) for note in dict.fromkeys(notes)))
        return self.result(passed, min(1.0, max(0.0, cosine)), evidence)

    def _to(self, context: Context) -> str:
        to = self.to
        if to is None and context.expected_value is not None:
            to = text_of(context.expected_value)
        if to is None or not to.strip():
            raise UnusableError(code=Code.NO_EXPECTED_VALUE, metric="Similarity")
        return to


def _unusable(problem: str, **more: Any) -> UnusableError:
    return UnusableError(code=Code.UNUSABLE_VECTOR, problem=problem, **more)


def _vector(reply: Reply) -> tuple[list[float], str]:
    """The vector and the embedder's note in a reply. Raises `UnusableError`."""
    try:
        data: Any = json.loads(reply.raw)
        vector = [float(number) for number in data["vector"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise _unusable("none") from None
    if not vector or not all(map(math.isfinite, vector)):
        raise _unusable("numbers")
    return vector, str(data.get("note", ""))


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """Raises `UnusableError` where a vector has no direction."""
    # Each divided by its length first: squares of large components overflow, and those of small ones vanish.
    lengths = math.hypot(*left), math.hypot(*right)
    if not all(lengths) or not all(map(math.isfinite, lengths)):
        raise _unusable("zeros")
    cosine = math.fsum(x / lengths[0] * (y / lengths[1]) for x, y in zip(left, right, strict=True))
    return max(-1.0, min(1.0, cosine))
