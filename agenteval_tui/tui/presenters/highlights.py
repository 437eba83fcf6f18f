"""Evidence as marks on a transcript: which piece, held or broken or nearly, and why in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from agenteval_tui.grading.results import CriterionResult, Span
from agenteval_tui.tui.presenters.status_style import UNICODE, glyph

MarkKind = Literal["hit", "miss", "near"]

# Colour never says it alone: a sign in the margin, and underline (or, without colours, brackets) in the text.
SIGNS: dict[MarkKind, str] = {"hit": glyph("passed"), "miss": glyph("failed"), "near": "≈" if UNICODE else "~"}
STYLES: dict[MarkKind, str] = {
    "hit": "on-evidence-hit underline",
    "miss": "on-evidence-miss bold",
    "near": "on-near-miss bold",
}
SIGN_STYLES: dict[MarkKind, str] = {"hit": "passed", "miss": "failed", "near": "error"}
_WEIGHT: dict[MarkKind, int] = {"hit": 0, "near": 1, "miss": 2}


class Mark(Struct, frozen=True):
    """A piece of the transcript that matters. `note` is a few words shown beside an argument or a tool."""

    span: Span
    kind: MarkKind
    note: str = ""

    @property
    def weight(self) -> int:
        """Which of two marks on the same text is seen: the heavier one."""
        return _WEIGHT[self.kind]


def marks_of(results: Iterable[CriterionResult]) -> tuple[Mark, ...]:
    """The marks of all evidence: `hit` where a condition held, `miss` where it was broken, `near` for closest misses.

    Each piece is marked once a kind. Spans in an extracted value have no place in the transcript and are left out.
    """
    marks: dict[tuple[Span, MarkKind], Mark] = {}
    for result in results:
        for metric in result.metrics:
            for evidence in metric.evidence:
                kind: MarkKind = "miss" if evidence.passed is False else "hit"
                # What held needs no words beside the transcript, and the place says which call it is.
                note = evidence.condition.rpartition(".")[2] if kind == "miss" else ""
                for span in evidence.spans:
                    if span.kind != "value":
                        marks.setdefault((span, kind), Mark(span, kind, note))
                for span in evidence.near:
                    if span.kind != "value":
                        marks.setdefault((span, "near"), Mark(span, "near", note))
    return tuple(marks.values())
