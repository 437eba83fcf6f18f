"""Edits of a suite's tests, saved so that only the bytes of what was edited change.

Every function takes the suite as it was read and gives the suite as it then is. Comments, order, quoting and every
other byte stay. Raises `FileChanged` when the file is not the one that was read, and `SaveFailed` when an edit can't be
written so that nothing else changes, or when a test would not be right any more; then the file is as it was.

`TreeEdit` makes an edit in steps. Each step changes the fewest bytes, and is read again and compared.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.core.atomic_write import write_whole
from agenteval_tui.core.ids import free_name
from agenteval_tui.core.json_values import value_at
from agenteval_tui.suites.files import BOM, read_bytes
from agenteval_tui.suites.load import LoadedSuite, load_bytes, load_suite
from agenteval_tui.suites.model import Criterion, Test
from agenteval_tui.suites.slugs import ID, slug
from agenteval_tui.suites.yaml import edit, write
from agenteval_tui.suites.yaml.edit import plain_value, same, spans
from agenteval_tui.suites.yaml.save import SaveFailed, check_unchanged, write_over
from agenteval_tui.suites.yaml.splice import splice
from agenteval_tui.suites.yaml.tree import (
    Alias,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    flawless,
    is_null,
    plain_data,
    resolve,
)
from agenteval_tui.suites.yaml.write import block_item

TEST_KEYS = tuple(Test.model_fields)
CRITERION_KEYS = tuple(Criterion.model_fields)
KeyPath = Sequence[str | int]
"""Keys and places (0-based) from the root."""


class CriterionEdit(Struct, frozen=True):
    """A criterion as it should be. `source`: which of the criteria it is (0-based, as they were read), None: a new one.
    A source that appears twice is a copy the second time. `changes` are its keys with their new values (plain data;
    None takes a key out); for a new criterion, all its keys.
    """

    source: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


class TestEdit(Struct, frozen=True):
    """What shall be different in a test. `changes`: its keys with new values: plain data, `YamlFragment`, or None.

    `criteria`: all of its criteria as they shall be, in their order; None: they stay. One that is not named is removed.
    """

    __test__ = False  # not a test of this project

    changes: Mapping[str, Any] = field(default_factory=dict)
    criteria: Sequence[CriterionEdit] | None = None

    def __bool__(self) -> bool:
        return bool(self.changes) or self.criteria is not None


def apply_edit(loaded: LoadedSuite, test_id: str, edit: TestEdit) -> str:
    """The file's text with the edit made; nothing is written. Raises `SaveFailed`, or `AgentevalError` without test."""
    place = place_of(loaded, test_id)
    return _put_back(loaded, place, apply_edit_to_test(loaded, test_id, edit)) or _edited_whole(loaded, test_id, edit)


def apply_edit_to_test(loaded: LoadedSuite, test_id: str, edit: TestEdit) -> str | None:
    """The file's text with the edit made and without its other tests; None when that can't be done (they share an
    anchor, say). Of a big suite this takes a hundredth of the time."""
    place = place_of(loaded, test_id)
    # Every step reads and compares the whole text: with this test alone, that is little.
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
    """The text before all tests, this test, and the text after them."""
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
    # Read once more as a whole: alone, the test may have said what it does not say between the others.
    edited, root = flawless(alone), flawless(text)
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
    check_unchanged(loaded)
    text = apply_edit(loaded, test_id, edit)
    renamed = edit.changes.get("id")
    new_id = renamed if isinstance(renamed, str) and renamed else test_id
    return _write(loaded, text, gone=(test_id,), there=(new_id,))


def add_test(loaded: LoadedSuite, test: Mapping[str, Any]) -> LoadedSuite:
    """Write a new test (keys as a suite has them, its `id` among them) behind the last one."""
    tree = _tree_of_the_file(loaded)
    tests = tree.get(["tests"]) if tree.has(["tests"]) else None
    if tests:
        tree.insert(["tests"], len(tests), test, apart=True)
    else:
        tree.begin_list("tests", test)
    return _write(loaded, tree.text, there=(str(test["id"]),))


def duplicate_tests(loaded: LoadedSuite, test_ids: Sequence[str]) -> tuple[LoadedSuite, list[str]]:
    """Write a copy of each test directly behind it: (the suite as it then is, the ids of the copies).

    A copy is the test's text byte by byte, with its comments, under an id that was free and a name that says so.
    """
    tree = _tree_of_the_file(loaded)
    used_ids = set(loaded.test_nodes)
    new_ids: list[str] = []
    # From the last on: a copy moves only the tests behind it.
    for place, test_id in sorted(((place_of(loaded, test_id), test_id) for test_id in test_ids), reverse=True):
        new_id = free_name(test_id, lambda candidate: candidate.casefold() in used_ids)
        used_ids.add(new_id.casefold())
        tree.copy(["tests"], place, place + 1, apart=True)
        path: list[str | int] = ["tests", place + 1]
        tree.set(path, "id", new_id, TEST_KEYS)
        name = tree.get(path).get("name")
        if name is not None:
            tree.set(path, "name", f"{name} (copy)", TEST_KEYS)
        new_ids.append(new_id)
    new_ids.reverse()
    return _write(loaded, tree.text, there=new_ids), new_ids


def delete_tests(loaded: LoadedSuite, test_ids: Sequence[str]) -> LoadedSuite:
    """Take tests out of the file, with their own comments. At least one test has to stay."""
    tree = _tree_of_the_file(loaded)
    places = sorted({place_of(loaded, test_id) for test_id in test_ids}, reverse=True)
    if len(places) >= len(tree.get(["tests"])):
        raise SaveFailed(
            "the last test of a suite can't be deleted: a suite needs one",
            where=str(loaded.path),
            fix="delete the file, or add another test first",
        )
    # From the last on, as those behind one that goes move up.
    for place in places:
        tree.delete(["tests"], place)
    return _write(loaded, tree.text, gone=test_ids)


def move_test(loaded: LoadedSuite, test_id: str, by: int) -> LoadedSuite:
    """Move a test by this many places (negative: towards the top), at most to the end; its comments move with it."""
    tree = _tree_of_the_file(loaded)
    order = list(range(len(tree.get(["tests"]))))
    place = place_of(loaded, test_id)
    order.insert(min(max(place + by, 0), len(order) - 1), order.pop(place))
    tree.arrange(["tests"], order)
    return _write(loaded, tree.text)


def tag_tests(
    loaded: LoadedSuite, test_ids: Sequence[str], add: Iterable[str] = (), remove: Iterable[str] = ()
) -> LoadedSuite:
    """Give tests these tags and take those away. A suite's own tags are not theirs and stay."""
    tree = _tree_of_the_file(loaded)
    removed = {tag.casefold() for tag in remove}
    for test_id in test_ids:
        path: list[str | int] = ["tests", place_of(loaded, test_id)]
        before = [str(tag) for tag in tree.get(path).get("tags") or []]
        after = [tag for tag in before if tag.casefold() not in removed]
        folded_tags = {tag.casefold() for tag in after}
        after += [tag for tag in add if tag.casefold() not in folded_tags]
        if after != before:
            tree.set(path, "tags", after or None, TEST_KEYS)
    return _write(loaded, tree.text)


# Within


def _tree(loaded: LoadedSuite) -> TreeEdit:
    return TreeEdit(loaded.text, str(loaded.path))


def _tree_of_the_file(loaded: LoadedSuite) -> TreeEdit:
    """The suite's tree, to be written: raises `FileChanged` when the file is not the one that was read."""
    check_unchanged(loaded)
    return _tree(loaded)


def place_of(loaded: LoadedSuite, test_id: str) -> int:
    """Which of the file's tests this is, 0-based. Raises `AgentevalError` when there is none."""
    node = loaded.node(test_id)
    top = resolve(loaded.node())
    listed = top.get("tests") if isinstance(top, MappingNode) else None
    if isinstance(listed, Alias):
        raise SaveFailed("the tests are shared through an anchor", where=str(loaded.path), fix="edit the file itself")
    items = listed.items if isinstance(listed, SequenceNode) else []
    for place, item in enumerate(items):
        if item is node:
            return place
    raise SaveFailed(f"test {test_id} can't be edited here", where=str(loaded.path), fix="edit the file itself")


def _with_id(test_id: str, edit: TestEdit, tree: TreeEdit, place: int) -> TestEdit:
    """An edit of the name writes down the id that was made from it."""
    if "name" not in edit.changes or "id" in edit.changes or tree.get(["tests", place]).get("id"):
        return edit
    return TestEdit({**edit.changes, "id": test_id}, edit.criteria)


def _edit(tree: TreeEdit, place: int, edit: TestEdit) -> None:
    path: list[str | int] = ["tests", place]
    # What is taken out comes last: a key that is put in finds its neighbours.
    for key in sorted(edit.changes, key=lambda name: edit.changes[name] is None):
        tree.set(path, key, edit.changes[key], TEST_KEYS)
    if edit.criteria is not None:
        _criteria(tree, [*path, "criteria"], edit.criteria)


def _criteria(tree: TreeEdit, path: list[str | int], criterion_edits: Sequence[CriterionEdit]) -> None:
    if not criterion_edits:
        raise SaveFailed("a test needs at least one criterion", where=tree.where, fix="add one")
    before = len(tree.get(path)) if tree.has(path) else 0
    # While all of the old ones are there: copies (of what stood there before it is changed) and new ones at the end,
    # then the changes. `standing` is where each of the wanted ones is now.
    standing: list[int] = []
    end = before
    for criterion_edit in criterion_edits:
        if criterion_edit.source is not None and criterion_edit.source not in standing:
            standing.append(criterion_edit.source)
            continue
        if criterion_edit.source is not None:
            tree.copy(path, criterion_edit.source, end)
        else:
            tree.insert(path, end, in_order(criterion_edit.changes))
        standing.append(end)
        end += 1
    for place, criterion_edit in zip(standing, criterion_edits, strict=True):
        for key in (
            sorted(criterion_edit.changes, key=lambda name: criterion_edit.changes[name] is None)
            if criterion_edit.source is not None
            else ()
        ):
            tree.set([*path, place], key, criterion_edit.changes[key], CRITERION_KEYS)
    # Those that go are taken out, then the rest is put in order.
    sources = sorted(standing)
    for place in sorted(set(range(end)) - set(sources), reverse=True):
        tree.delete(path, place)
    after = {place: number for number, place in enumerate(sources)}
    tree.arrange(path, [after[place] for place in standing])


def in_order(criterion: Mapping[str, Any]) -> dict[str, Any]:
    """A criterion's keys in the order in which people write them; those without a value are left out."""
    return {key: criterion[key] for key in CRITERION_KEYS if criterion.get(key) is not None}


def _write(loaded: LoadedSuite, text: str, gone: Iterable[str] = (), there: Iterable[str] = ()) -> LoadedSuite:
    """Write the text, if all tests that are to be there would be read. `gone` and `there`: ids, of those edited."""
    if text == loaded.text:
        return loaded
    try:
        data = loaded.encoded(text)
    except UnicodeEncodeError:
        raise SaveFailed(
            "a value holds half a character (a lone surrogate)", where=str(loaded.path), fix="remove it"
        ) from None
    # Read as any suite is: what would not be loaded any more is not written.
    saved = load_bytes(data, loaded.path)
    removed_ids = {test_id.casefold() for test_id in gone}
    expected_ids = (
        {test.id.casefold() for test in loaded.suite.tests} - removed_ids if loaded.suite is not None else set()
    )
    new_ids = [test_id.casefold() for test_id in there]
    twice = next((test_id for test_id in new_ids if test_id in expected_ids), None)
    if twice is not None:
        raise SaveFailed(
            f'there is another test with the id "{twice}"',
            where=str(loaded.path),
            fix="give this one another id",
        )
    expected_ids.update(new_ids)
    saved_ids = {test.id.casefold() for test in saved.suite.tests} if saved.suite is not None else set()
    if expected_ids - saved_ids:
        # The file may have had problems before: named is one that this edit brings.
        messages = {problem.message for problem in loaded.problems}
        why = next(
            (problem.message for problem in saved.problems if problem.message not in messages),
            "a test would not be read",
        )
        raise SaveFailed(f"this would be invalid: {why}", where=str(loaded.path), fix="fix it, then save again")
    write_over(loaded, data)
    return saved


# Editing a YAML text step by step: each step changes the fewest bytes, and is read again and compared


class TreeEdit:
    """A YAML text that is being edited. `text` is the text so far, `data` what it says."""

    def __init__(self, text: str, where: str) -> None:
        """`where` names the file in errors. Raises `SaveFailed` when the text has a YAML error."""
        self.where = where
        root = flawless(text)
        if root is None:
            raise SaveFailed("the file has a YAML error, so it can't be edited here", where=where, fix="fix that first")
        self.text = text
        self.root: Node = root
        self.data: Any = plain_data(root)
        self.eol = "\r\n" if "\r\n" in text else "\n"

    # The present content

    def has(self, path: KeyPath) -> bool:
        """Is there something at this path?"""
        here = self.data
        for step in path:
            steps = range(len(here)) if isinstance(here, list) else here if isinstance(here, dict) else ()
            if step not in steps:
                return False
            here = here[step]
        return True

    def get(self, path: KeyPath) -> Any:
        """The plain data at an existing path."""
        here = self.data
        for step in path:
            here = here[step]
        return here

    # Steps

    def set(self, path: KeyPath, key: str, value: object, order: Sequence[str]) -> None:
        """Put `value` (plain data or `YamlFragment`) at a key of the object at `path`; None takes the key out.

        `order`: all keys that such an object may have, in the order in which they are usually written.
        """
        owner, in_flow = self._find(path)
        if not isinstance(owner, MappingNode):
            raise self._cant([*path, key])
        own = {scalar_node.text: (scalar_node, node) for scalar_node, node in edit.own_pairs(owner)}
        meant = copy.deepcopy(self.data)
        target = value_at(meant, path)
        if value is None:
            if key not in own:
                return
            target.pop(key, None)
            self._take(edit.remove_key(self.text, owner, key), meant, [*path, key])
            return
        target[key] = plain_value(value)
        if key not in own:
            ways = edit.add_key(self.text, owner, key, value, order, self.eol, in_flow=in_flow)
            self._take(ways, meant, [*path, key])
            return
        name, node = own[key]
        if isinstance(node, Alias):
            raise self._shared([*path, key])
        # A text keeps its style (block, quotes), which `splice` knows.
        if isinstance(value, str):
            self._set_text(node, value, [*path, key])
            return
        if not isinstance(value, edit.YamlFragment) and same(plain_data(node), value):
            return
        ways = edit.replace_value(self.text, name, node, value, self.eol, in_flow=in_flow or owner.flow)
        self._take(ways, meant, [*path, key])

    def insert(self, path: KeyPath, at: int, value: Mapping[str, Any], *, apart: bool = False) -> None:
        """Put an object into the list at `path`, as number `at`."""
        listed = self._list(path)
        meant = copy.deepcopy(self.data)
        value_at(meant, path).insert(at, dict(value))
        if listed.flow:
            item = write.flow(dict(value), bare_keys=True)
        else:
            item = block_item(value, column=edit.item_column(self.text, listed), eol=self.eol)
        self._take(edit.insert_item(self.text, listed, at, item, self.eol, apart=apart), meant, path)

    def begin_list(self, key: str, first: Mapping[str, Any]) -> None:
        """Put a list with one object at a key of the root that has none, or an empty list."""
        top = self.root
        if not isinstance(top, MappingNode) or self.data.get(key):
            raise self._cant([key])
        self._take(edit.begin_list(self.text, top, key, first, self.eol), {**self.data, key: [dict(first)]}, [key])

    def copy(self, path: KeyPath, index: int, at: int, *, apart: bool = False) -> None:
        """Put a copy of item `index` into the same list as number `at`: byte by byte, with its comments."""
        listed = self._list(path)
        # Its bytes would define an anchor twice, or a copy of an alias would follow the original: its values are
        # written instead.
        if isinstance(listed.items[index], Alias) or edit.has_anchor(listed.items[index], self.text):
            self.insert(path, at, self.get([*path, index]), apart=apart)
            return
        where = edit.spans(self.text, listed)
        if where is None:
            raise self._cant(path)
        meant = copy.deepcopy(self.data)
        items = value_at(meant, path)
        items.insert(at, copy.deepcopy(items[index]))
        item = self.text[where[index][0] : where[index][1]]
        self._take(edit.insert_item(self.text, listed, at, item, self.eol, apart=apart), meant, path)

    def delete(self, path: KeyPath, index: int) -> None:
        """Take an item out of a list that has others."""
        listed = self._list(path)
        meant = copy.deepcopy(self.data)
        del value_at(meant, path)[index]
        ways = edit.remove_items(self.text, listed, index) if len(listed.items) > 1 else iter(())
        self._take(ways, meant, [*path, index])

    def arrange(self, path: KeyPath, order: Sequence[int]) -> None:
        """Put the items of a list into another order: `order` has each of their numbers once."""
        if list(order) == sorted(order):
            return
        listed = self._list(path)
        meant = copy.deepcopy(self.data)
        items = value_at(meant, path)
        items[:] = [items[index] for index in order]
        self._take(edit.reorder_items(self.text, listed, order), meant, path)

    # Within

    def _find(self, path: KeyPath) -> tuple[Node, bool]:
        """The node at `path`, and whether it is in a flow collection. An alias on the way can't be edited."""
        here, in_flow = self.root, False
        for place, step in enumerate(path):
            if isinstance(here, MappingNode):
                child = next((node for key, node in edit.own_pairs(here) if key.text == step), None)
            elif isinstance(here, SequenceNode) and isinstance(step, int) and step < len(here.items):
                child = here.items[step]
            else:
                child = None
            if child is None or isinstance(child, Alias):
                raise self._shared(path[: place + 1])
            in_flow = in_flow or (isinstance(here, MappingNode | SequenceNode) and here.flow)
            here = child
        return here, in_flow

    def _list(self, path: KeyPath) -> SequenceNode:
        listed, in_flow = self._find(path)
        if not isinstance(listed, SequenceNode) or not listed.items or (in_flow and not listed.flow):
            raise self._cant(path)
        return listed

    def _set_text(self, node: Node, value: str, path: KeyPath) -> None:
        real = resolve(node)
        if isinstance(real, ScalarNode) and real.text == value and not is_null(node):
            return
        result = splice(self.text, self.root, node, value)
        root = flawless(result) if result is not None else None
        if result is None or root is None:
            raise self._cant(path)
        self.text, self.root, self.data = result, root, plain_data(root)

    def _take(self, ways: Iterator[str], meant: Any, path: KeyPath) -> None:
        for text in ways:
            root = flawless(text)
            if root is not None and same(plain_data(root), meant):
                self.text, self.root, self.data = text, root, meant
                return
        raise self._cant(path)

    def _cant(self, path: KeyPath) -> SaveFailed:
        # A block that ends with the file, and the file without a line end: whatever follows it changes its text.
        ends = self.text.endswith("\n")
        return SaveFailed(
            f"{_words(path)} can't be written without changing something else",
            where=self.where,
            fix="if it is shared through an anchor or `<<`, edit the file itself"
            if ends
            else "end the file's last line",
        )

    def _shared(self, path: KeyPath) -> SaveFailed:
        return SaveFailed(
            f"{_words(path)} is shared through an anchor, so a change would change more than this",
            where=self.where,
            fix="edit the file itself (or replace the alias with its value)",
        )


def _words(path: KeyPath) -> str:
    """A path for people: tests[2].criteria[1].name."""
    parts = [f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).lstrip(".") or "this"


# An edit of a test, made again for the present file, when others changed the file meanwhile


def id_now(before: LoadedSuite, now: LoadedSuite, test_id: str) -> str:
    """The id that a test has in `now`: its own, or the one that somebody gave it meanwhile; "" when it is gone.

    A test was renamed when its id is gone, and one test that was not there before says the same beside id and name; or
    when one went, one came, and they ask the same.
    """
    old = before.suite.test(test_id) if before.suite is not None else None
    if now.suite is None or before.suite is None or old is None or now.suite.test(test_id) is not None:
        return test_id if now.suite is not None and now.suite.test(test_id) is not None else ""
    added = [test for test in now.suite.tests if before.suite.test(test.id) is None]
    removed = [test for test in before.suite.tests if now.suite.test(test.id) is None]
    alike = [test for test in added if test.model_copy(update={"id": old.id, "name": old.name}) == old]
    if len(alike) != 1 and len(added) == len(removed) == 1:
        alike = [test for test in added if _asked(test) == _asked(old)]
    return alike[0].id if len(alike) == 1 else ""


def _asked(test: Test) -> tuple[object, ...]:
    return test.prompt, test.messages, test.turns, test.user


def rebase(
    edit: TestEdit,
    before: LoadedSuite,
    now: LoadedSuite,
    test_id: str,
    merge: Callable[[str, str, str], str],
) -> TestEdit:
    """The edit for `now`: criteria are found by their names (the how-manieth of a name). Those that others added stay,
    and so does what they changed elsewhere in a config that the edit changes: `merge` gives a config with both edits,
    from the text before, mine and theirs. A test that somebody renamed is found again (`id_now`).

    Raises `SaveFailed` when the test, or a criterion that was edited, is not there any more.
    """
    old = before.suite.test(test_id) if before.suite is not None else None
    new = now.suite.test(id_now(before, now, test_id)) if now.suite is not None else None
    if new is None:
        raise SaveFailed(f"test `{test_id}` is no longer in the file", where=str(now.path), fix="put it back first")
    if edit.criteria is None or old is None:
        return edit
    names = _names(old.criteria)
    there = {name: place for place, name in enumerate(_names(new.criteria))}
    criteria: list[CriterionEdit] = []
    for criterion in edit.criteria:
        if criterion.source is None:
            criteria.append(criterion)
        elif (name := names[criterion.source]) in there:
            place = there[name]
            changes = dict(criterion.changes)
            if isinstance(mine := changes.get("config_uxon"), str):
                base, theirs = before.config_source(old.id, criterion.source), now.config_source(new.id, place)
                changes["config_uxon"] = merge(base.text, mine, theirs.text)
            criteria.append(CriterionEdit(place, changes))
        elif criterion.changes:
            raise SaveFailed(
                f"criterion `{name[0]}` of test `{test_id}` is no longer in the file, so nothing was saved",
                where=str(now.path),
                fix="your edit stays here; put the criterion back, then save again",
            )
    others = [CriterionEdit(place) for name, place in there.items() if name not in names]
    sources = [criterion.source for criterion in edit.criteria if criterion.source is not None]
    if sources != sorted(set(sources)):  # the edit has an order of its own, or copies
        return replace(edit, criteria=[*criteria, *others])
    return replace(edit, criteria=_in_order_of_file(criteria, others))


def _in_order_of_file(criteria: Sequence[CriterionEdit], others: Sequence[CriterionEdit]) -> list[CriterionEdit]:
    """The criteria as the file has them in order now; a new one stays behind the one that it was put behind."""
    new: list[CriterionEdit] = []
    behind: dict[int | None, list[CriterionEdit]] = {None: new}
    for criterion in criteria:
        if criterion.source is None:
            new.append(criterion)
        else:
            new = behind.setdefault(criterion.source, [])
    placed = sorted(
        ((edit.source, edit) for edit in (*criteria, *others) if edit.source is not None), key=lambda pair: pair[0]
    )
    return [*behind[None], *(change for place, edit in placed for change in (edit, *behind.get(place, ())))]


def _names(criteria: list[Criterion]) -> list[tuple[str, int]]:
    """Each criterion's name, and the how-manieth of that name it is."""
    counts: dict[str, int] = {}
    names = []
    for criterion in criteria:
        counts[criterion.name] = counts.get(criterion.name, 0) + 1
        names.append((criterion.name, counts[criterion.name]))
    return names


# The ids of new tests


def free_id(loaded: LoadedSuite, name: str) -> str:
    """An id for a new test, made from its name; with a number behind it where the suite has one of that id."""
    base = slug(name)[:60].strip("-._") or "test"
    base = base if ID.fullmatch(base) else "test"
    return free_name(base, lambda test_id: test_id.casefold() in loaded.test_nodes)


# Undoing a change of a suite's file: the earlier bytes are written back, unless the file was written since


class WrittenFile(Struct, frozen=True):
    """One file of a change: its bytes before, and the SHA-256 of its bytes behind it."""

    path: Path
    before: bytes
    after: str


def change_record(loaded: LoadedSuite, change_to: LoadedSuite, before: bytes) -> WrittenFile | None:
    """What to remember of a change from `loaded`, whose bytes were `before`; None when it changed nothing."""
    if change_to.digest == loaded.digest or hashlib.sha256(before).hexdigest() != loaded.digest:
        return None
    return WrittenFile(change_to.path, before, change_to.digest)


class ChangedSince(SaveFailed):
    """What is to be undone is no longer what the file says."""


def undo_change(change: WrittenFile) -> LoadedSuite:
    """Write the earlier bytes back. Raises `ChangedSince` when the file has changed since, and `SaveFailed` when it
    can't be written."""
    # By the bytes, and not by the time: an editor may have written the same again.
    now = load_suite(change.path)
    if now.digest != change.after:
        raise ChangedSince(
            "this file has changed since, so the change can't be undone",
            where=str(change.path),
            fix="undo it in an editor or with version control",
        )
    write_over(now, change.before)
    return load_suite(change.path)


# An option of an agent, in the file that has it


def save_agent_option(loaded: LoadedSuite, agent: str, option: str, value: str) -> LoadedSuite:
    """Write an option of one of the suite's agents."""
    tree = _tree_of_the_file(loaded)
    tree.set(["agents", agent], option, value, ())
    return _write(loaded, tree.text)


def save_own_agent_option(path: Path, agent: str, option: str, value: str) -> None:
    """The same for an agent of the user's agents.yaml at `path`."""
    content = read_bytes(path)
    bom = BOM if content.startswith(BOM) else b""
    try:
        tree = TreeEdit(content[len(bom) :].decode("utf-8"), str(path))
    except UnicodeDecodeError:
        raise SaveFailed("this file is not UTF-8", where=str(path), fix="save it as UTF-8 first") from None
    # agents.yaml may have its agents below `agents:`, or at the top.
    places: tuple[KeyPath, ...] = (["agents", agent], [agent])
    own_place = next((place for place in places if tree.has(place)), None)
    if own_place is None:
        raise SaveFailed(f"this file has no agent {agent!r}", where=str(path), fix="name an agent that it has")
    tree.set(own_place, option, value, ())

    def check(_: Path) -> None:
        if read_bytes(path) != content:
            raise SaveFailed("this file has changed in the meantime", where=str(path), fix="save again")

    try:
        write_whole(path.resolve(), (bom + tree.text.encode("utf-8"),), like=path.stat(), check=check)
    except OSError as error:
        raise SaveFailed(f"this file can't be saved: {error.strerror or error}", where=str(path)) from None
