"""An edit of a test, made anew for the file as it is now, when others changed the file meanwhile."""

from __future__ import annotations

from dataclasses import replace

from agenteval_tui.suites.edit_test import CriterionEdit, TestEdit
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Criterion
from agenteval_tui.suites.save import SaveFailed


def id_now(before: LoadedSuite, now: LoadedSuite, test_id: str) -> str:
    """The id that a test has in `now`: its own, or the one that somebody gave it meanwhile; "" when it is gone.

    A test was renamed when its id is gone, and one test that was not there before says the same beside id and name; or
    when one went, one came, and they ask the same.
    """
    old = before.suite.test(test_id) if before.suite is not None else None
    if now.suite is None or before.suite is None or old is None or now.suite.test(test_id) is not None:
        return test_id if now.suite is not None and now.suite.test(test_id) is not None else ""
    came = [one for one in now.suite.tests if before.suite.test(one.id) is None]
    gone = [one for one in before.suite.tests if now.suite.test(one.id) is None]
    alike = [one for one in came if one.model_copy(update={"id": old.id, "name": old.name}) == old]
    if len(alike) != 1 and len(came) == len(gone) == 1:
        alike = [one for one in came if (one.prompt, one.messages, one.turns) == (old.prompt, old.messages, old.turns)]
    return alike[0].id if len(alike) == 1 else ""


def rebased(edit: TestEdit, before: LoadedSuite, now: LoadedSuite, test_id: str) -> TestEdit:
    """The edit for `now`: criteria are found by their names (the how-manieth of a name). Those that others added stay.
    A test that somebody renamed is found again (`id_now`).

    Raises `SaveFailed` when the test, or a criterion that was edited, is not there any more.
    """
    old = before.suite.test(test_id) if before.suite is not None else None
    new = now.suite.test(id_now(before, now, test_id)) if now.suite is not None else None
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
