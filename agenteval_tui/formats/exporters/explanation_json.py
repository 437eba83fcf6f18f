"""An explanation as the document of `agenteval why --json`."""

from __future__ import annotations

from typing import Any

from agenteval_tui.analysis.explanation import Explanation, address_of
from agenteval_tui.formats.labels import label_data
from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.explain import fact_to_json, headline
from agenteval_tui.transcripts.codec import error_to_json
from agenteval_tui.views.divergence import parting_text

VERSION = 1


def explanation_document(one: Explanation) -> dict[str, Any]:
    """The run, why its agent failed, labels, and each criterion with its facts and its result; texts are raw."""
    row = one.run
    return {
        "version": VERSION,
        "run": row.id,
        "execution": row.execution_id,
        "suite": row.suite_name,
        "test": row.test_id,
        "test_name": row.test_name,
        "variation": row.variation,
        "repetition": row.repetition,
        "agent": row.agent,
        "status": row.status,
        "checks_not_made": row.checks_not_made,
        "error": error_to_json(one.error),
        "ending": None
        if one.ending is None
        else {"code": one.ending.code, "finish_reason": one.ending.finish_reason, "message": one.ending.said},
        "notes": [{"code": note.code, "what": note.what} for note in one.notes],
        "divergence": parting_text(one.divergence),
        "labels": [label_data(label) for label in one.labels],
        "criteria": [
            {
                "address": address_of(row.id, number),
                "headline": headline(result),
                "explanation": fact_to_json(fact),
                "result": result_to_json(result),
            }
            for (number, result), fact in zip(one.criteria, one.facts, strict=True)
        ],
    }
