"""What the Editor asks: what to do with a draft, and whether tests shall be deleted."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Sequence

from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.tui.draft_store import StoredDraft
from agenteval_tui.tui.presenters.test_form import CRITERION_FIELDS, TEST_FIELDS, TestForm
from agenteval_tui.tui.screens.confirm_dialog import ConfirmScreen
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.file_conflict_dialog import diff_lines
from agenteval_tui.tui.styled_text import Line, paragraph


def draft_question(doc: SuiteDocument, draft: StoredDraft) -> ConfirmScreen:
    """A draft is there: the difference to the file, and what to do with it."""
    when = time.strftime("%H:%M", time.localtime(draft.when_ms / 1000))
    day = time.strftime("%Y-%m-%d", time.localtime(draft.when_ms / 1000))
    today = day == time.strftime("%Y-%m-%d")
    restored = SuiteDocument(doc.loaded, doc.test_id, doc.base, doc.base.copy())
    restored.restore(draft.data)
    diff = difference(doc.base, restored.form)
    title = f"{doc.test_id}: a draft of {when if today else f'{day} {when}'} was not saved"
    answers = [("r", "restore", "restore it"), ("d", "discard", "discard it")]
    return ConfirmScreen(title, lambda width: diff_lines(diff, width), answers, leave="decide later")


def delete_question(tests: Sequence[str], file: str) -> ConfirmScreen:
    """Shall these tests go?"""
    title = f"Delete {tests[0]}?" if len(tests) == 1 else f"Delete {count(len(tests), 'test')}?"
    words = (
        f"This removes them from {one_line(file)}, with their comments: {', '.join(tests)}. "
        "Their runs stay in the history."
        if len(tests) > 1
        else f"This removes it from {one_line(file)}, with its comments. Its runs stay in the history."
    )

    def lines(width: int) -> list[Line]:
        return paragraph(words, width)

    return ConfirmScreen(title, lines, [("y", "yes", "delete")], leave="keep")


def difference(before: TestForm, after: TestForm) -> str:
    """Two forms as a unified difference of their texts."""
    left, right = _as_text(before), _as_text(after)
    return "\n".join(difflib.unified_diff(left, right, "the file", "the draft", n=1, lineterm=""))


def _as_text(form: TestForm) -> list[str]:
    lines = []
    for key in TEST_FIELDS:
        lines += _field(key, form.values.get(key, ""))
    for criterion in form.criteria:
        lines.append(f"criterion {json.dumps(criterion.values['name'], ensure_ascii=False)}")
        for key in CRITERION_FIELDS:
            lines += _field(f"  {key}", criterion.values.get(key, ""))
    return lines


def _field(name: str, text: str) -> list[str]:
    if not text:
        return []
    first, *rest = text.split("\n")
    return [f"{name}: {first}", *(f"    {line}" for line in rest)]
