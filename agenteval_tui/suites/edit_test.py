"""Edits of a suite's tests, saved so that only the bytes of what was edited change.

Every function takes the suite as it was read and gives the suite as it then is. Comments, order, quoting and every
other byte stay. Raises `FileChanged` when the file is not the one that was read, and `SaveFailed` when an edit can't be
written so that nothing else changes, or when a test would not be right any more; then the file is as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval_tui.suites.append import append_test, free_id
from agenteval_tui.suites.edit_items import spans
from agenteval_tui.suites.edit_tree import TreeEdit, read_tree
from agenteval_tui.suites.files import BOM
from agenteval_tui.suites.load import LoadedSuite, load_bytes
from agenteval_tui.suites.model import Criterion, Test
from agenteval_tui.suites.save import SaveFailed, check_unchanged, read_again, write_over
from agenteval_tui.suites.yaml_edit import same
from agenteval_tui.suites.yaml_tree import Alias, plain_data, resolve
from agenteval_tui.suites.yaml_tree import Mapping as MappingNode
from agenteval_tui.suites.yaml_tree import Sequence as SequenceNode

TEST_KEYS = tuple(Test.model_fields)
CRITERION_KEYS = tuple(Criterion.model_fields)


@dataclass(frozen=True, slots=True)
class CriterionEdit:
    """A criterion as it shall be. `source`: which of the criteria it is (0-based, as they were read), None: a new one.

    A source that is there twice is a copy the second time. `changes` are its keys with their new values (plain data;
    None takes a key out); of a new criterion all that it has.
    """

    source: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestEdit:
    """What shall be different in a test. `changes`: its keys with their new values: plain data, `YamlText`, or None.

    `criteria`: all of its criteria as they shall be, in their order; None: they stay. One that is not named is removed.
    """

    __test__ = False  # not a test of this project

    changes: Mapping[str, Any] = field(default_factory=dict)
    criteria: Sequence[CriterionEdit] | None = None

    def __bool__(self) -> bool:
        return bool(self.changes) or self.criteria is not None


def edited_text(loaded: LoadedSuite, test_id: str, edit: TestEdit) -> str:
    """The file's text with the edit made; nothing is written. Raises `SaveFailed`, or `AgentevalError` without test."""
    place = place_of(loaded, test_id)
    return _put_back(loaded, place, edited_alone(loaded, test_id, edit)) or _edited_whole(loaded, test_id, edit)


def edited_alone(loaded: LoadedSuite, test_id: str, edit: TestEdit) -> str | None:
    """The file's text with the edit made and without its other tests; None when that can't be done (they share an
    anchor, say). Of a big suite this takes a hundredth of the time."""
    place = place_of(loaded, test_id)
    parts = _parts(loaded, place)
    if parts is None:
        return None
    head, own, tail = parts
    try:
        tree = TreeEdit(head + own + tail, str(loaded.path))
        _edit(tree, 0, _with_id(test_id, edit, tree, 0))
    except SaveFailed:
        return None
    return tree.text


def _parts(loaded: LoadedSuite, place: int) -> tuple[str, str, str] | None:
    """What stands before all tests, this test, what stands behind them."""
    listed = resolve(loaded.node()).get("tests")  # type: ignore[union-attr]
    if not isinstance(listed, SequenceNode) or listed.flow:
        return None
    where = spans(loaded.text, listed)
    if where is None:
        return None
    start, end = where[place]
    return loaded.text[: where[0][0]], loaded.text[start:end], loaded.text[where[-1][1] :]


def _put_back(loaded: LoadedSuite, place: int, alone: str | None) -> str | None:
    """The whole text with a test that was edited alone; None when that would change something else."""
    parts = _parts(loaded, place) if alone is not None else None
    if alone is None or parts is None or loaded.root is None or not loaded.whole:
        return None
    head, own, tail = parts
    if not alone.startswith(head) or not alone.endswith(tail) or len(alone) < len(head) + len(tail):
        return None
    start = spans(loaded.text, resolve(loaded.node()).get("tests"))[place][0]  # type: ignore[union-attr, arg-type, index]
    text = loaded.text[:start] + alone[len(head) : len(alone) - len(tail)] + loaded.text[start + len(own) :]
    edited, root = read_tree(alone), read_tree(text)
    if edited is None or root is None:
        return None
    meant = plain_data(loaded.root)
    meant["tests"][place] = plain_data(edited)["tests"][0]
    return text if same(plain_data(root), meant) else None


def _edited_whole(loaded: LoadedSuite, test_id: str, edit: TestEdit) -> str:
    tree, place = _tree(loaded), place_of(loaded, test_id)
    _edit(tree, place, _with_id(test_id, edit, tree, place))
    return tree.text


def save_test(loaded: LoadedSuite, test_id: str, edit: TestEdit) -> LoadedSuite:
    """Write the edit of a test into the suite's file.

    A test whose id is made from its name keeps its id when the name changes: the id is written down then, because the
    history knows the test by it.
    """
    check_unchanged(loaded, read_again(loaded))
    text = edited_text(loaded, test_id, edit)
    renamed = edit.changes.get("id")
    new_id = renamed if isinstance(renamed, str) and renamed else test_id
    return _write(loaded, text, gone=(test_id,), there=(new_id,))


def add_test(loaded: LoadedSuite, test: Mapping[str, Any]) -> LoadedSuite:
    """Write a new test (keys as a suite has them, its `id` among them) behind the last one."""
    return append_test(loaded, test)


def duplicate_tests(loaded: LoadedSuite, test_ids: Sequence[str]) -> tuple[LoadedSuite, list[str]]:
    """Write a copy of each test directly behind it: (the suite as it then is, the ids of the copies).

    A copy is the test's text byte by byte, with its comments, under an id that was free and a name that says so.
    """
    check_unchanged(loaded, read_again(loaded))
    tree = _tree(loaded)
    taken = set(loaded.test_nodes)
    made: list[str] = []
    for place, test_id in sorted(((place_of(loaded, one), one) for one in test_ids), reverse=True):
        new_id = _free(loaded, test_id, taken)
        taken.add(new_id.casefold())
        tree.copy(["tests"], place, place + 1, apart=True)
        path: list[str | int] = ["tests", place + 1]
        tree.set(path, "id", new_id, TEST_KEYS)
        name = tree.get(path).get("name")
        if name is not None:
            tree.set(path, "name", f"{name} (copy)", TEST_KEYS)
        made.append(new_id)
    made.reverse()
    return _write(loaded, tree.text, there=made), made


def delete_tests(loaded: LoadedSuite, test_ids: Sequence[str]) -> LoadedSuite:
    """Take tests out of the file, with their own comments. At least one test has to stay."""
    check_unchanged(loaded, read_again(loaded))
    tree = _tree(loaded)
    places = sorted({place_of(loaded, one) for one in test_ids}, reverse=True)
    if len(places) >= len(tree.get(["tests"])):
        raise SaveFailed(
            "the last test of a suite can't be deleted: a suite needs one",
            where=str(loaded.path),
            mend="delete the file, or write another test first",
        )
    for place in places:
        tree.delete(["tests"], place)
    return _write(loaded, tree.text, gone=test_ids)


def move_test(loaded: LoadedSuite, test_id: str, by: int) -> LoadedSuite:
    """Move a test by so many places (negative: towards the top), as far as that goes; its comments go with it."""
    check_unchanged(loaded, read_again(loaded))
    tree = _tree(loaded)
    order = list(range(len(tree.get(["tests"]))))
    place = place_of(loaded, test_id)
    order.insert(min(max(place + by, 0), len(order) - 1), order.pop(place))
    tree.arrange(["tests"], order)
    return _write(loaded, tree.text)


def tag_tests(
    loaded: LoadedSuite, test_ids: Sequence[str], add: Iterable[str] = (), remove: Iterable[str] = ()
) -> LoadedSuite:
    """Give tests these tags and take those away. A suite's own tags are not theirs and stay."""
    check_unchanged(loaded, read_again(loaded))
    tree = _tree(loaded)
    gone = {one.casefold() for one in remove}
    for test_id in test_ids:
        path: list[str | int] = ["tests", place_of(loaded, test_id)]
        before = [str(one) for one in tree.get(path).get("tags") or []]
        after = [one for one in before if one.casefold() not in gone]
        known = {one.casefold() for one in after}
        after += [one for one in add if one.casefold() not in known]
        if after != before:
            tree.set(path, "tags", after or None, TEST_KEYS)
    return _write(loaded, tree.text)


# Within


def _tree(loaded: LoadedSuite) -> TreeEdit:
    return TreeEdit(loaded.text, str(loaded.path))


def place_of(loaded: LoadedSuite, test_id: str) -> int:
    """Which of the file's tests this is, 0-based. Raises `AgentevalError` when there is none."""
    node = loaded.node(test_id)
    top = resolve(loaded.node())
    listed = top.get("tests") if isinstance(top, MappingNode) else None
    if isinstance(listed, Alias):
        raise SaveFailed("the tests are shared through an anchor", where=str(loaded.path), mend="edit the file itself")
    items = listed.items if isinstance(listed, SequenceNode) else []
    for place, item in enumerate(items):
        if item is node:
            return place
    raise SaveFailed(f"test {test_id} can't be edited here", where=str(loaded.path), mend="edit the file itself")


def _with_id(test_id: str, edit: TestEdit, tree: TreeEdit, place: int) -> TestEdit:
    """An edit of the name writes down the id that was made from it."""
    if "name" not in edit.changes or "id" in edit.changes or tree.get(["tests", place]).get("id"):
        return edit
    return TestEdit({**edit.changes, "id": test_id}, edit.criteria)


def _edit(tree: TreeEdit, place: int, edit: TestEdit) -> None:
    path: list[str | int] = ["tests", place]
    # What is taken out comes last: a key that is put in finds its neighbours.
    for key in sorted(edit.changes, key=lambda one: edit.changes[one] is None):
        tree.set(path, key, edit.changes[key], TEST_KEYS)
    if edit.criteria is not None:
        _criteria(tree, [*path, "criteria"], edit.criteria)


def _criteria(tree: TreeEdit, path: list[str | int], wanted: Sequence[CriterionEdit]) -> None:
    if not wanted:
        raise SaveFailed("a test needs at least one criterion", where=tree.where, mend="add one")
    before = len(tree.get(path)) if tree.has(path) else 0
    # While all of the old ones are there: copies (of what stood there before it is changed) and new ones at the end,
    # then the changes. `standing` is where each of the wanted ones stands now.
    standing: list[int] = []
    end = before
    for one in wanted:
        if one.source is not None and one.source not in standing:
            standing.append(one.source)
            continue
        if one.source is not None:
            tree.copy(path, one.source, end)
        else:
            tree.insert(path, end, in_order(one.changes))
        standing.append(end)
        end += 1
    for place, one in zip(standing, wanted, strict=True):
        for key in sorted(one.changes, key=lambda name: one.changes[name] is None) if one.source is not None else ():
            tree.set([*path, place], key, one.changes[key], CRITERION_KEYS)
    # Those that go are taken out, then the rest is put in order.
    kept = sorted(standing)
    for place in sorted(set(range(end)) - set(kept), reverse=True):
        tree.delete(path, place)
    after = {place: number for number, place in enumerate(kept)}
    tree.arrange(path, [after[place] for place in standing])


def in_order(criterion: Mapping[str, Any]) -> dict[str, Any]:
    """A criterion's keys in the order in which people write them; those without a value are left out."""
    return {key: criterion[key] for key in CRITERION_KEYS if criterion.get(key) is not None}


def _free(loaded: LoadedSuite, test_id: str, taken: set[str]) -> str:
    number = 2
    while f"{test_id}-{number}".casefold() in taken:
        number += 1
    return f"{test_id}-{number}"


def _write(loaded: LoadedSuite, text: str, gone: Iterable[str] = (), there: Iterable[str] = ()) -> LoadedSuite:
    """Write the text, if all tests that are to be there would be read. `gone` and `there`: ids, of those edited."""
    if text == loaded.text:
        return loaded
    try:
        data = (BOM if loaded.bom else b"") + text.encode("utf-8")
    except UnicodeEncodeError:
        raise SaveFailed(
            "a value holds half a character (a lone surrogate)", where=str(loaded.path), mend="remove it"
        ) from None
    saved = load_bytes(data, loaded.path)
    left = {one.casefold() for one in gone}
    wanted = {test.id.casefold() for test in loaded.suite.tests} - left if loaded.suite is not None else set()
    made = [one.casefold() for one in there]
    twice = next((one for one in made if one in wanted), None)
    if twice is not None:
        raise SaveFailed(
            f'there is another test with the id "{twice}"',
            where=str(loaded.path),
            mend="give this one an id of its own",
        )
    wanted.update(made)
    known = {test.id.casefold() for test in saved.suite.tests} if saved.suite is not None else set()
    if wanted - known:
        said = {one.message for one in loaded.problems}
        why = next((one.message for one in saved.problems if one.message not in said), "a test would not be read")
        raise SaveFailed(f"this would not be right: {why}", where=str(loaded.path), mend="mend it, then save again")
    write_over(loaded, data)
    return saved


__all__ = [
    "CriterionEdit", "TestEdit", "add_test", "delete_tests", "duplicate_tests", "edited_text", "free_id", "in_order",
    "move_test", "save_test", "tag_tests",
]  # fmt: skip
