"""What the Compare screen compares, lists and explains. No app, no widget."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from compared import FILTER_NEW, FILTER_OLD, NEW, NOON, OLD, two_executions
from msgspec.structs import replace

from agenteval_tui.analysis.comparison_sides import Sides
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.baselines import set_baseline
from agenteval_tui.history.quarantines import Quarantine, default_until, end, put
from agenteval_tui.tui.actions import keyed
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.inspect_target import RunToOpen
from agenteval_tui.tui.presenters.comparison import CompareRow
from agenteval_tui.tui.screens.compare.controller import (
    CompareController,
    ReasonsToRead,
    Versions,
    explain,
    read_comparison,
    read_versions,
)
from agenteval_tui.tui.styled_text import plain

SIDES = Sides(OLD, NEW)
VERSIONS = Versions("/s", "customers-germany", "right filter", FILTER_OLD.hash, FILTER_NEW.hash, back="a row")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("compared")
    made = Session([folder], folder / "history.db")
    made.everything = True
    two_executions(made.store)
    yield made
    made.close()


AT_A_TIME = "agenteval_tui.tui.screens.compare.controller._AT_A_TIME_S"


@pytest.fixture(autouse=True)
def there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine one test may take all the time that several have."""
    monkeypatch.setattr(AT_A_TIME, 60.0)


@pytest.fixture
def controller(session: Session) -> CompareController:
    made = CompareController()
    made.take(read_comparison(session, SIDES), SIDES)
    return made


def listed(controller: CompareController) -> list[str]:
    """The tests that are listed."""
    rows = controller.rows.rows if controller.rows is not None else []
    return list(dict.fromkeys(row.change.test for row in rows if row.change is not None))


def row(controller: CompareController, test: str, criterion: str = "") -> CompareRow:
    """The row of this criterion, else the first of the test."""
    assert controller.rows is not None
    of_test = [one for one in controller.rows.rows if one.change is not None and one.change.test == test]
    if not criterion:
        return of_test[0]
    return next(one for one in of_test if one.criterion is not None and one.criterion.name == criterion)


def test_nothing_is_compared_yet() -> None:
    controller = CompareController()
    assert (controller.heading(), controller.head(80), controller.command()) == (((), ()), [], None)
    assert controller.row_at(0) is None
    assert (controller.swapped(), controller.before_versions(), controller.next_to_explain(None)) == (None, None, None)
    assert "Nothing is compared yet." in "".join(map(plain, controller.empty()))


def test_what_changed_is_listed_unchanged_tests_and_words_on_demand(controller: CompareController) -> None:
    assert "top-products" not in listed(controller)
    controller.everything = True
    controller.arrange()
    assert "top-products" in listed(controller)
    controller.words = "germany"
    controller.arrange()
    assert listed(controller) == ["customers-germany"]
    assert "“germany”" in plain(controller.heading()[0])
    controller.words = "nothing like that"
    controller.arrange()
    assert "No test or criterion matches these words." in plain(controller.empty()[1])
    assert controller.row_at(0) is None


def test_what_a_newer_execution_outdates_says_so(controller: CompareController) -> None:
    assert not controller.note_newest(NEW), "it was the newest when it was compared"
    assert controller.news == ""
    assert controller.note_newest("NEWER")
    assert controller.followed_newest
    assert "there is a newer execution: press ^r to compare it" in "".join(map(plain, keyed(controller.head(140), {})))
    found = controller.comparison
    assert found is not None
    controller.take(found, Sides(NEW, OLD))
    assert controller.news == "", "of what is compared now nothing is known yet"
    controller.note_newest("NEWER")
    assert not controller.note_newest("NEWER")
    assert controller.note_newest("NEWEST")
    assert controller.news.endswith("press {compare.right} to choose it"), "an older execution was chosen by a person"


def test_the_head_says_all_of_both_sides_and_counts_agree_with_the_rows(controller: CompareController) -> None:
    first = plain(controller.head(140)[0])
    assert re.match(r" pass  90 % ━━━━━━━━━─ → 57 % ━━━━━━────   −33 \(−83 … \+33\)   sign-flip p 0\.\d+", first)
    assert "6 tests: too few to show a drop under 79 points" in first
    assert controller.rows is not None
    rows = controller.rows.rows
    head = rows[0]
    assert head.listed == next(n for n, one in enumerate(rows[1:]) if one.change is None)
    assert "3 tests worse, in 4 criteria" in plain(controller.rows.line(0, 140, focused=False))
    points = plain(controller.rows.line(rows.index(row(controller, "refund-policy")), 140, focused=False))
    assert re.search(r"5/5\s+2/5\s+−60", points)


def test_a_test_that_did_not_change_is_shown_for_who_asks_for_it(session: Session) -> None:
    controller, found = CompareController(), read_comparison(session, SIDES)
    controller.take(found, SIDES, ("/s", "top-products"))
    assert controller.go_to_test() == row(controller, "top-products").key
    assert controller.everything
    assert controller.go_to_test() == "", "once"
    controller.take(found, SIDES, ("/s", "nowhere"))
    assert controller.go_to_test() == ""


def test_the_row_with_the_cursor_is_explained_first_then_the_others(
    controller: CompareController, session: Session
) -> None:
    found, chosen = controller.comparison, row(controller, "refund-policy", "looks it up")
    assert found is not None
    assert controller.lacks_explanation(chosen)
    assert controller.detail(None, 80) == []
    explained, at = [], chosen
    while (wanted := controller.next_to_explain(at)) is not None:
        answer = explain(session, wanted)
        explained.append([(key[1], key in answer.metrics) for key in answer.attributed or answer.metrics])
        assert controller.take_explanation(found, answer)
    assert explained[0] == [("refund-policy", True)]
    others = [one.test for one in found.tests if one.pairs and one.test != "refund-policy"]
    assert list(chain.from_iterable(explained[1:])) == [(test, full) for full in (False, True) for test in others]
    assert not controller.lacks_explanation(chosen)
    shown = "\n".join(plain(line) for line in controller.detail(chosen, 120))
    assert "step 1: it called search_docs, now it answers at once" in " ".join(shown.split())
    # What comes of a comparison that was left does not count for the next.
    controller.take(read_comparison(session, SIDES), SIDES)
    assert chosen.change is not None
    assert not controller.take_explanation(found, explain(session, ReasonsToRead([chosen.change], [chosen.change])))
    assert controller.lacks_explanation(chosen)


def test_who_changed_the_tests_in_view_is_found_out_with_the_one_under_the_cursor(
    controller: CompareController, session: Session
) -> None:
    found, chosen = controller.comparison, row(controller, "refund-policy", "looks it up")
    assert found is not None
    assert controller.rows is not None
    changed = [one.key for one in found.tests if one.pairs]
    own = next(key for key in changed if key[1] == "refund-policy")
    other = next(key for key in changed if key != own)
    in_view = [one for one in controller.rows.rows if one.change is None or one.change.key in (own, other)]
    wanted = controller.next_to_explain(chosen, in_view)
    assert wanted is not None
    assert wanted.in_view
    answer = explain(session, wanted)
    assert (list(answer.attributed), list(answer.metrics)) == ([own, other], [own])
    controller.take_explanation(found, answer)
    # What nobody sees comes then: who changed the others, each once.
    later = controller.next_to_explain(chosen, in_view)
    assert later is not None
    assert not later.in_view
    assert [one.key for one in later.who] == [key for key in changed if key not in answer.attributed]


def test_the_first_is_explained_whatever_time_there_is_and_further_ones_later(
    controller: CompareController, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert controller.comparison is not None
    first, second, *_ = [one for one in controller.comparison.tests if one.pairs]
    monkeypatch.setattr(AT_A_TIME, 0.0)
    answer = explain(session, ReasonsToRead([first, second], [first]))
    assert (list(answer.attributed), list(answer.metrics)) == ([first.key], [])
    answer = explain(session, ReasonsToRead([], [first, second]))
    assert (list(answer.attributed), list(answer.metrics)) == ([], [first.key])


def test_what_did_not_change_is_not_compared_again(tmp_path: Path) -> None:
    session = Session([tmp_path], tmp_path / "history.db")
    session.everything = True
    two_executions(session.store)
    found = read_comparison(session, Sides())
    assert read_comparison(session, Sides(), found) is found
    set_baseline(session.store, OLD, who="ada", at_ms=NOON)
    other = read_comparison(session, Sides(), found)
    assert (found.a.kind, other.a.kind) == ("execution", "baseline")
    put(session.store, Quarantine("/s", "refund-policy", default_until())).result()
    held = read_comparison(session, Sides(), other)
    assert [one.test for one in held.tests if one.quarantine] == ["refund-policy"]
    assert read_comparison(session, Sides(), held) is held
    end(session.store, "/s", "refund-policy").result()
    assert not any(one.quarantine for one in read_comparison(session, Sides(), held).tests)
    session.close()


def test_sides_are_swapped_and_the_baseline_stays_on_the_left(
    controller: CompareController, session: Session, tmp_path: Path
) -> None:
    assert (controller.reference("left"), controller.reference("right")) == (OLD, NEW)
    assert controller.swapped() == Sides(NEW, OLD)
    assert controller.command() == ["agenteval", "compare", OLD, NEW]
    set_baseline(session.store, OLD, who="ada", at_ms=NOON)
    controller.take(read_comparison(session, Sides()), Sides(agents=("shop/support",)))
    assert controller.swapped() == "The baseline stays on the left. Press {compare.left} to choose another left side."
    assert controller.command() == ["agenteval", "compare", "baseline", NEW, "--agent", "shop/support"]
    with pytest.raises(AgentevalError):
        read_comparison(session, Sides("nowhere", NEW))


def test_two_versions_of_a_criterion_lead_back_to_what_was_compared(
    controller: CompareController, session: Session
) -> None:
    assert controller.before_versions() is None
    controller.take_versions(read_versions(session, VERSIONS), VERSIONS)
    assert (controller.of_versions, controller.executions, controller.reference("left")) == (True, None, "")
    swapped = controller.swapped()
    assert isinstance(swapped, Versions)
    assert (swapped.old, swapped.new, swapped.back) == (FILTER_NEW.hash, FILTER_OLD.hash, "a row")
    name = "customers-germany/right filter"
    assert controller.command() == [
        "agenteval", "criterion", name, "--compare", FILTER_OLD.hash[:8], FILTER_NEW.hash[:8],
    ]  # fmt: skip
    assert (controller.before_versions(), controller.place) == (SIDES, "a row")
    controller.take_versions(read_versions(session, VERSIONS), Versions("/s", "x", "y", "1", "2"))
    assert controller.before_versions() is None, "it was opened from elsewhere"


def test_a_run_of_either_side_is_opened_at_the_chosen_criterion(controller: CompareController) -> None:
    chosen = row(controller, "refund-policy", "looks it up")
    opened = controller.run_to_open(chosen, 1, edit=False)
    assert isinstance(opened, RunToOpen)
    assert (opened.criterion, opened.run.startswith("NEW-refund-policy"), len(opened.runs)) == ("looks it up", True, 5)
    whole = replace(chosen, criterion=None)
    for edit, criterion in ((False, ""), (True, controller.criterion(whole))):
        opened = controller.run_to_open(whole, 0, edit=edit)
        assert isinstance(opened, RunToOpen)
        assert (opened.criterion, opened.run.startswith("OLD-refund-policy")) == (criterion, True)
    assert controller.criterion(whole) in ("cites the policy", "looks it up")
    assert controller.run_to_open(row(controller, "gone"), 1, edit=False) == "gone was not run on the right."
    section = controller.row_at(0)
    assert section is not None
    assert controller.run_to_open(section, 1, edit=False) == "Choose a test first."
    assert controller.criterion(section) == ""
