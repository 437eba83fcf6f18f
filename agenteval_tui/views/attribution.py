"""What is shown of who changed a verdict: the sentence of each reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval_tui.analysis.attribution import Reason, ReasonCode, RuleChange, RuleKind
from agenteval_tui.grading.sentences import criterion_sentence

_CHANGED = {"criterion": "criterion", "row": "expected values of the row"}
_SENTENCES: dict[ReasonCode, str] = {
    "no_verdict": "the {output} output with the {other} criterion has no verdict: {reason}",
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
    "no_criterion": "one of the runs has no stored criteria",
    "rules_unknown": "what decided one of the runs is not stored",
    "score_moved": "the score crossed the test's threshold",
    "pairs_differ": "{inner} ({number} of {pairs} pairs of runs; {rest})",
}
_RULES: dict[ReasonCode, str] = {
    "each_alone": "{changes} changed, and the output; each change alone {verdict}",
    "criterion_alone": "{changes} changed: with that, the old output also {verdict}; without it, the new output"
    " {before}",
    "output_alone": "the output changed: without the change of {changes}, the new one also {verdict}; with it, the old"
    " output still {before}",
    "only_together": "{changes} changed, and the output; it {verdict} only with both changes",
}
"""Of a test as a whole, where several things decide it."""
_RULE_NOUNS: dict[RuleKind, str] = {
    "added": "criterion {name!r} (added)",
    "removed": "criterion {name!r} (removed)",
    "config": "criterion {name!r}",
    "expected_value": "the expected value of {name!r}",
    "negate": "`negate` of {name!r}",
    "pass_threshold": "the threshold of {name!r} ({was} to {now})",
    "severity": "the severity of {name!r} ({was} to {now})",
    "weight": "the weight of {name!r} ({was} to {now})",
    "test_threshold": "the test's threshold ({was} to {now})",
    "row": "the row's values",
}
_MOST_CHANGES = 4


def rule_change_text(change: RuleChange) -> str:
    """`the test's threshold (0.5 to 0.9)`, `criterion 'polite' (added)`."""
    was, now = (_value(value) for value in (change.was, change.now))
    return _RULE_NOUNS[change.kind].format(name=change.criterion, was=was, now=now)


def _value(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _changes_text(changes: Sequence[RuleChange]) -> str:
    parts = [rule_change_text(change) for change in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        parts.append(f"{len(changes) - _MOST_CHANGES} more")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def reason_text(reason: Reason) -> str:
    """Why a side is named, in a sentence."""
    fields = reason.fields
    if reason.code == "version_unknown":
        by = fields.get("by")
        return f"{by} gave this verdict, and its criterion is unknown" if by else "the old version is not stored"
    if reason.code == "criteria_differ":
        return ", ".join(f"{criterion}: {who}" for criterion, who in fields["by"].items())
    # Where several things decide a test their names take the place of the one.
    sentences = _RULES if fields.get("changed") == "rules" else _SENTENCES
    return sentences[reason.code].format(**{**fields, **_words(fields)})


def _words(fields: Mapping[str, Any]) -> dict[str, str]:
    """What a sentence takes that follows from the fields."""
    words = {}
    if "reason" in fields:
        words["inner"] = reason_text(fields["reason"])
    if "others" in fields:
        words["rest"] = ", ".join(f"{who} in {times}" for who, times in fields["others"].items())
    if "changed" in fields:
        failed = fields["now"] == "failed"
        if fields["changed"] == "rules":
            words["changes"] = _changes_text(fields["changes"])
        else:
            words["what"] = _CHANGED[fields["changed"]]
        words["verdict"], words["before"] = ("fails", "passed") if failed else ("passes", "failed")
    if "result" in fields:
        words["other"] = "new" if fields["output"] == "old" else "old"
        words["reason"] = criterion_sentence(fields["result"]) or str(fields["result"].outcome)
    return words
