"""What waits for a person: in lines of the command line, and one thing in full on the screen."""

from __future__ import annotations

from typing import get_args

from agenteval_tui.analysis.review_queue import QueueItem, Why
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.review import WHY, item_in_full, question_view, waiting_view
from agenteval_tui.views.terminal import plain_text

ITEM = QueueItem("RUN", "Shop", "refunds", "Refunds", "needs_review", "needs_review", 0, "Kind", "Is it\nkind?")


def row() -> RunRow:
    known = {
        "id": "RUN", "suite_name": "Shop", "test_id": "refunds", "repetition": 2, "agent": "demo",
        "status": "needs_review",
    }  # fmt: skip
    return RunRow(**{name: known.get(name) for name in RunRow.__struct_fields__})


def test_what_waits_is_a_line_each() -> None:
    failed = QueueItem("OTHER", "Shop", "tone", "Tone", "failed", "failure")
    assert plain_text(waiting_view([ITEM, failed])).splitlines() == [
        "waits   RUN/1  refunds / Kind  Is it kind?",
        "failed  OTHER  tone",
        "2 results: agenteval label RUN/NUMBER passed|failed|1..5, or the app",
    ]
    assert plain_text(waiting_view([])) == "nothing is waiting for a person"
    assert plain_text(waiting_view([failed] * 52)).splitlines()[-2] == "and 2 more"
    assert set(WHY) == set(get_args(Why))


def test_one_thing_in_full() -> None:
    labels = [
        Label("RUN", 2, "Kind", "curt", "kim", 1_000),
        Label("RUN", 2, "Other", "curt", "kim", 1_000),
        Label("RUN", None, "", "", "lee", 1_000, passed=True),
    ]
    assert plain_text(question_view(ITEM, "a note")).splitlines() == [
        "? Kind   waits for a person", "Is it kind?", "comment  a note",
    ]  # fmt: skip
    assert plain_text(item_in_full(ITEM, row(), labels, [], 121_000)).splitlines() == [
        "labels", " ✗ 2 of 5  kim  2 min ago", "   curt", " the run: ✓ passed  lee  2 min ago", "",
        "run      Shop / refunds, repetition 2, agent demo", "outcome  needs_review",
    ]  # fmt: skip
    whole = QueueItem("RUN", "Shop", "refunds", "Refunds", "failed", "sample")
    assert plain_text(question_view(whole)).splitlines() == ["✗ the run as a whole   in a random sample"]
    assert plain_text(item_in_full(whole, row(), [], [], 1_000)).splitlines() == [
        "run      Shop / refunds, repetition 2, agent demo", "outcome  needs_review",
    ]  # fmt: skip
