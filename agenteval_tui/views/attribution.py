"""What is shown of who changed a verdict: the sentence of each reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.analysis.attribution import Reason, ReasonCode
from agenteval_tui.grading.sentences import criterion_sentence

_CHANGED = {"criterion": "criterion", "row": "expected values of the row"}
_SENTENCES: dict[ReasonCode, str] = {
    "no_verdict": "the {output} output with the {other} criterion has no verdict: {said}",
    "each_alone": "the {what} and the output changed; each change alone {verdict}",
    "criterion_alone": "the {what} changed: with it, the old output also {verdict}; with the old {what}, the new"
    " output {before}",
    "output_alone": "the output changed: the new one also {verdict} with the old {what}; with the new {what}, the old"
    " output still {before}",
    "only_together": "the {what} and the output changed; it {verdict} only with both changes",
    "judged_otherwise": "the same criterion judged the same output differently",
    "measured_otherwise": "the criterion and the output are the same, the measurements differ",
    "output_changed": "the criterion is the same, the output changed",
    "judge_varies": "of {times} judge replies about the {output} output, {passed} said passed",
    "same_end": "both ended the same way",
    "not_a_verdict": "a run ended as {status}, without a verdict",
    "criteria_agree": "{criterion} and {more} more: {inner}",
    "criterion_came": "criterion {criterion!r} is new and fails",
    "criterion_gone": "criterion {criterion!r}, which failed, was removed",
    "criterion_counts": "the weight or severity of criterion {criterion!r} changed",
    "no_criterion": "one of the runs has no stored criteria",
    "threshold_changed": "all criteria give the same scores: the test's threshold changed",
    "score_moved": "the score crossed the test's threshold",
    "pairs_differ": "{inner} ({number} of {pairs} pairs of runs; {rest})",
}


def reason_text(reason: Reason) -> str:
    """Why a side is named, in a sentence."""
    fields = reason.fields
    if reason.code == "version_unknown":
        by = fields.get("by")
        return f"{by} gave this verdict, and its criterion is unknown" if by else "the old version is not stored"
    if reason.code == "criteria_differ":
        return ", ".join(f"{criterion}: {who}" for criterion, who in fields["by"].items())
    return _SENTENCES[reason.code].format(**fields, **_words(fields))


def _words(fields: Mapping[str, Any]) -> dict[str, str]:
    """What a sentence takes that follows from the fields."""
    words = {}
    if "reason" in fields:
        words["inner"] = reason_text(fields["reason"])
    if "others" in fields:
        words["rest"] = ", ".join(f"{who} in {times}" for who, times in fields["others"].items())
    if "changed" in fields:
        failed = fields["now"] == "failed"
        words["what"] = _CHANGED[fields["changed"]]
        words["verdict"], words["before"] = ("fails", "passed") if failed else ("passes", "failed")
    if "result" in fields:
        words["other"] = "new" if fields["output"] == "old" else "old"
        words["said"] = criterion_sentence(fields["result"]) or str(fields["result"].outcome)
    return words
