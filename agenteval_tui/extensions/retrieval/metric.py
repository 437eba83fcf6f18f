"""`Retrieval`: whether the right documents were found, and how far up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct
from pydantic import Field

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extracted_value import Context, JsonValue, ListValue, Value
from agenteval_tui.grading.metrics.metric import ConfigWarning, Metric
from agenteval_tui.grading.results import Evidence, MetricResult, Span

_MINIMUMS = ("precision", "recall", "f1", "mrr", "ndcg")
_LINES = 60


class RetrievalScores(Struct, frozen=True):
    """Figures of one list of documents, each 0..1."""

    precision: float
    recall: float
    f1: float
    mrr: float
    ndcg: float


class Retrieval(Metric):
    """Compares a list of found documents with the relevant ones. Use it with the prototype class Retrieval.

    Precision@k: relevant ones among the first k, divided by k. Recall@k: divided by the number of relevant ones. F1@k:
    their harmonic mean, which is the score. MRR: 1 / rank of the first relevant one. nDCG@k: with gain 1 for a relevant
    one and a discount of log2(rank + 1).
    """

    relevant: list[str] = Field(min_length=1, description="The ids of the relevant documents.")
    k: int | None = Field(None, ge=1, description="How many of the found documents count. Default: all.")
    min_precision: float | None = Field(None, ge=0, le=1, description="Precision@k is at least this.")
    min_recall: float | None = Field(None, ge=0, le=1, description="Recall@k is at least this.")
    min_f1: float | None = Field(None, ge=0, le=1, description="F1@k is at least this.")
    min_mrr: float | None = Field(None, ge=0, le=1, description="1 / rank of the first relevant one is at least this.")
    min_ndcg: float | None = Field(None, ge=0, le=1, description="nDCG@k is at least this.")

    def _minimums(self) -> tuple[tuple[str, float], ...]:
        return tuple((name, least) for name in _MINIMUMS if (least := getattr(self, f"min_{name}")) is not None)

    def check(self, value: Value, context: Context) -> MetricResult:
        documents = _list(value)
        if documents is None:
            return self.error(code=Code.NOT_A_LIST)
        figures = measure(documents, self.relevant, self.k)
        held = [getattr(figures, name) >= least - 1e-9 for name, least in self._minimums()]
        passed = all(held)
        if not context.explain:
            return self.result(passed, figures.f1)
        return self.result(passed, figures.f1, self._evidence(documents, figures, value))

    def _evidence(self, documents: Sequence[str], figures: RetrievalScores, value: Value) -> Iterator[Evidence]:
        minimums = dict(self._minimums())
        for name in _MINIMUMS:
            amount = getattr(figures, name)
            fields: dict[str, Any] = {"measure": name, "k": self.k, "amount": amount}
            least = minimums.get(name)
            if least is None:
                yield Evidence(name, passed=None, found=amount, group="Retrieval", code=Code.MEASURED, fields=fields)
                continue
            holds = amount >= least - 1e-9
            fields["least"] = least
            code = Code.WITHIN if holds else Code.TOO_LOW
            yield Evidence(
                f"min_{name}", passed=holds, expected=least, found=amount, group="Retrieval", code=code, fields=fields
            )
        ranks = {document: rank for rank, document in reversed(list(enumerate(documents, start=1)))}
        for number, document in enumerate(self.relevant[:_LINES]):
            rank = ranks.get(document)
            where = _place(value, rank - 1) if rank is not None else ()
            name = f"relevant[{number}]"
            fields = {"document": document, "rank": rank, "k": self.k}
            is_late = rank is not None and self.k is not None and rank > self.k
            yield Evidence(
                name,
                passed=None,
                expected=document,
                found=rank,
                spans=() if is_late else where,
                near=where if is_late else (),
                group="relevant",
                code=Code.MISSING if rank is None else Code.OUT_OF_PLACE if is_late else Code.PRESENT,
                fields=fields,
            )
        relevant = set(self.relevant)
        others = [document for document in documents[: self.k] if document not in relevant]
        if others:
            code, fields = Code.UNEXPECTED, {"documents": others[:_LINES], "count": len(others)}
            yield Evidence("not relevant", passed=None, found=len(others), group="relevant", code=code, fields=fields)

    def findings(self) -> Iterator[ConfigWarning]:
        minimums = self._minimums()
        if not any(least > 0 for _, least in minimums):
            text = "this cannot fail: no minimum (`min_recall`, `min_ndcg`, ...) is given"
            yield ConfigWarning("warning", "cannot-fail", text, (f"min_{minimums[0][0]}",) if minimums else ())
        distinct = len(set(self.relevant))
        if self.k is None:
            return
        best = measure(list(dict.fromkeys(self.relevant)), self.relevant, self.k)
        for name, least in minimums:
            if getattr(best, name) < least - 1e-9:
                text = (
                    f"with {distinct} relevant and k = {self.k} {name} is at most {getattr(best, name):.3f}: "
                    "this can never pass"
                )
                yield ConfigWarning("error", "contradictory", text, (f"min_{name}",))


def measure(documents: Sequence[str], relevant: Sequence[str], k: int | None = None) -> RetrievalScores:
    """The figures of `documents` (in order) against `relevant` (a set, not empty). A document counts once."""
    relevant_set = set(relevant)
    ranked = list(dict.fromkeys(documents))
    first = next((rank for rank, document in enumerate(ranked, start=1) if document in relevant_set), None)
    top = ranked if k is None else ranked[:k]
    hits = [rank for rank, document in enumerate(top, start=1) if document in relevant_set]
    looked_at = len(ranked) if k is None else k
    precision = len(hits) / looked_at if looked_at else 0.0
    recall = len(hits) / len(relevant_set)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    # Without k a list that is too short to hold all relevant ones is not ideal.
    best = len(relevant_set) if k is None else min(len(relevant_set), k)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, best + 1))
    gained = sum(1 / math.log2(rank + 1) for rank in hits)
    mrr = 1 / first if first is not None and (k is None or first <= k) else 0.0
    return RetrievalScores(precision, recall, f1, mrr, min(1.0, gained / ideal) if ideal else 0.0)


def _list(value: Value) -> tuple[str, ...] | None:
    if isinstance(value, ListValue):
        return value.items
    if isinstance(value, JsonValue) and isinstance(value.data, list):
        plain = [entry for entry in value.data if isinstance(entry, str | int) and not isinstance(entry, bool)]
        # Each once, as a prototype's list has it: `measure` and the evidence count the same ranks.
        return tuple(dict.fromkeys(map(str, plain))) if len(plain) == len(value.data) else None
    return None


def _place(value: Value, number: int) -> tuple[Span, ...]:
    return value.place(number) if isinstance(value, ListValue) else ()
