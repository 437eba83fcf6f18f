"""An edit of a test, made anew for the file as it is now, when others changed the file meanwhile."""

from __future__ import annotations

from dataclasses import replace

from agenteval_tui.suites.edit_test import CriterionEdit, TestEdit
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Criterion
from agenteval_tui.suites.save import SaveFailed


def rebased(edit: TestEdit, before: LoadedSuite, now: LoadedSuite, test_id: str) -> TestEdit:
    """The edit for `now`: criteria are found by their names (the how-manieth of a name). Those that others added stay.

    Raises `SaveFailed` when the test, or a criterion that was edited, is not there any more.
    """
    old = before.suite.test(test_id) if before.suite is not None else None
    new = now.suite.test(test_id) if now.suite is not None else None
    if new is None:
        raise SaveFailed(f"test `{test_id}` is not in the file any more", where=str(now.path), mend="put it back first")
    if edit.criteria is None or old is None:
        return edit
    known = _names(old.criteria)
    there = {name: place for place, name in enumerate(_names(new.criteria))}
    criteria: list[CriterionEdit] = []
    for one in edit.criteria:
        if one.source is None:
            criteria.append(one)
        elif (name := known[one.source]) in there:
            criteria.append(replace(one, source=there[name]))
        elif one.changes:
            raise SaveFailed(
                f"criterion `{name[0]}` of test `{test_id}` is not in the file any more, so nothing was saved",
                where=str(now.path),
                mend="your edit stays here; put the criterion back, then save again",
            )
    others = [place for name, place in there.items() if name not in known]
    return replace(edit, criteria=[*criteria, *(CriterionEdit(place) for place in others)])


def _names(criteria: list[Criterion]) -> list[tuple[str, int]]:
    """Each criterion's name, and the how-manieth of that name it is."""
    seen: dict[str, int] = {}
    names = []
    for one in criteria:
        seen[one.name] = seen.get(one.name, 0) + 1
        names.append((one.name, seen[one.name]))
    return names
