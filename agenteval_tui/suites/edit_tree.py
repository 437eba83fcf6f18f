"""Editing a YAML text step by step: each step changes the fewest bytes, and is read again and compared.

A step that can't be made so that only what was meant changes raises `SaveFailed`; the text is then as before it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.suites import edit_items, edit_keys, write_scalar
from agenteval_tui.suites.edit_keys import plain_value
from agenteval_tui.suites.save import SaveFailed
from agenteval_tui.suites.splice import spliced
from agenteval_tui.suites.write_block import block_item
from agenteval_tui.suites.yaml_edit import same
from agenteval_tui.suites.yaml_tree import Alias, Node, Scalar, compose, is_null, plain_data, resolve
from agenteval_tui.suites.yaml_tree import Mapping as MappingNode
from agenteval_tui.suites.yaml_tree import Sequence as SequenceNode

Path = Sequence[str | int]
"""Keys and places (0-based) from the root."""


class TreeEdit:
    """A YAML text that is being edited. `text` is the text so far, `data` what it says."""

    def __init__(self, text: str, where: str) -> None:
        """`where` names the file in errors. Raises `SaveFailed` when the text has a YAML error."""
        self.where = where
        root = read_tree(text)
        if root is None:
            raise SaveFailed(
                "the file has a YAML error, so it can't be edited here", where=where, mend="mend that first"
            )
        self.text = text
        self.root: Node = root
        self.data: Any = plain_data(root)
        self.eol = "\r\n" if "\r\n" in text else "\n"

    # What stands there

    def has(self, path: Path) -> bool:
        """Is there something at this path?"""
        here = self.data
        for step in path:
            known = range(len(here)) if isinstance(here, list) else here if isinstance(here, dict) else ()
            if step not in known:
                return False
            here = here[step]
        return True

    def get(self, path: Path) -> Any:
        """The plain data at a path that is there."""
        here = self.data
        for step in path:
            here = here[step]
        return here

    # Steps

    def set(self, path: Path, key: str, value: Any, order: Sequence[str]) -> None:
        """Put `value` (plain data or `YamlText`) at a key of the object at `path`; None takes the key out.

        `order`: all keys that such an object may have, in the order in which they are usually written.
        """
        owner, in_flow = self._find(path)
        if not isinstance(owner, MappingNode):
            raise self._cant([*path, key])
        own = {one.text: (one, node) for one, node in edit_keys.own_pairs(owner)}
        meant = copy.deepcopy(self.data)
        target = _at(meant, path)
        if value is None:
            if key not in own:
                return
            target.pop(key, None)
            self._take(edit_keys.taken_out(self.text, owner, key), meant, [*path, key])
            return
        target[key] = plain_value(value)
        if key not in own:
            ways = edit_keys.added(self.text, owner, key, value, order, self.eol, in_flow=in_flow)
            self._take(ways, meant, [*path, key])
            return
        name, node = own[key]
        if isinstance(node, Alias):
            raise self._shared([*path, key])
        if isinstance(value, str):
            self._set_text(node, value, [*path, key])
            return
        if not isinstance(value, edit_keys.YamlText) and same(plain_data(node), value):
            return
        ways = edit_keys.changed(self.text, name, node, value, self.eol, in_flow=in_flow or owner.flow)
        self._take(ways, meant, [*path, key])

    def insert(self, path: Path, at: int, value: Mapping[str, Any], *, apart: bool = False) -> None:
        """Put an object into the list at `path`, as number `at`."""
        listed = self._list(path)
        meant = copy.deepcopy(self.data)
        _at(meant, path).insert(at, dict(value))
        if listed.flow:
            item = write_scalar.flow(dict(value), bare_keys=True)
        else:
            item = block_item(value, column=edit_items.item_column(self.text, listed), eol=self.eol)
        self._take(edit_items.inserted(self.text, listed, at, item, self.eol, apart=apart), meant, path)

    def copy(self, path: Path, index: int, at: int, *, apart: bool = False) -> None:
        """Put a copy of item `index` into the same list as number `at`: byte by byte, with its comments."""
        listed = self._list(path)
        if isinstance(listed.items[index], Alias) or edit_items.has_anchor(listed.items[index], self.text):
            self.insert(path, at, self.get([*path, index]), apart=apart)
            return
        where = edit_items.spans(self.text, listed)
        if where is None:
            raise self._cant(path)
        meant = copy.deepcopy(self.data)
        items = _at(meant, path)
        items.insert(at, copy.deepcopy(items[index]))
        item = self.text[where[index][0] : where[index][1]]
        self._take(edit_items.inserted(self.text, listed, at, item, self.eol, apart=apart), meant, path)

    def delete(self, path: Path, index: int) -> None:
        """Take an item out of a list that has others."""
        listed = self._list(path)
        meant = copy.deepcopy(self.data)
        del _at(meant, path)[index]
        ways = edit_items.removed(self.text, listed, index) if len(listed.items) > 1 else iter(())
        self._take(ways, meant, [*path, index])

    def arrange(self, path: Path, order: Sequence[int]) -> None:
        """Put the items of a list into another order: `order` has each of their numbers once."""
        if list(order) == sorted(order):
            return
        listed = self._list(path)
        meant = copy.deepcopy(self.data)
        items = _at(meant, path)
        items[:] = [items[index] for index in order]
        self._take(edit_items.arranged(self.text, listed, order), meant, path)

    # Within

    def _find(self, path: Path) -> tuple[Node, bool]:
        """The node at `path`, and whether it stands in a flow collection. An alias on the way can't be edited."""
        here, in_flow = self.root, False
        for place, step in enumerate(path):
            if isinstance(here, MappingNode):
                found = next((node for key, node in edit_keys.own_pairs(here) if key.text == step), None)
            elif isinstance(here, SequenceNode) and isinstance(step, int) and step < len(here.items):
                found = here.items[step]
            else:
                found = None
            if found is None or isinstance(found, Alias):
                raise self._shared(path[: place + 1])
            in_flow = in_flow or (isinstance(here, MappingNode | SequenceNode) and here.flow)
            here = found
        return here, in_flow

    def _list(self, path: Path) -> SequenceNode:
        found, in_flow = self._find(path)
        if not isinstance(found, SequenceNode) or not found.items or (in_flow and not found.flow):
            raise self._cant(path)
        return found

    def _set_text(self, node: Node, value: str, path: Path) -> None:
        real = resolve(node)
        if isinstance(real, Scalar) and real.text == value and not is_null(node):
            return
        result = spliced(self.text, self.root, node, value)
        root = read_tree(result) if result is not None else None
        if result is None or root is None:
            raise self._cant(path)
        self.text, self.root, self.data = result, root, plain_data(root)

    def _take(self, ways: Iterator[str], meant: Any, path: Path) -> None:
        for text in ways:
            root = read_tree(text)
            if root is not None and same(plain_data(root), meant):
                self.text, self.root, self.data = text, root, meant
                return
        raise self._cant(path)

    def _cant(self, path: Path) -> SaveFailed:
        # A block that ends with the file, and the file without a line end: whatever follows it changes its text.
        ends = self.text.endswith("\n")
        return SaveFailed(
            f"{_words(path)} can't be written without changing something else",
            where=self.where,
            mend="if it is shared through an anchor or `<<`, edit the file itself"
            if ends
            else "end the file's last line",
        )

    def _shared(self, path: Path) -> SaveFailed:
        return SaveFailed(
            f"{_words(path)} is shared through an anchor, so a change would change more than this",
            where=self.where,
            mend="edit the file itself (or write the value out there)",
        )


def _at(data: Any, path: Path) -> Any:
    for step in path:
        data = data[step]
    return data


def _words(path: Path) -> str:
    """A path for people: tests[2].criteria[1].name."""
    parts = [f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).lstrip(".") or "this"


def read_tree(text: str) -> Node | None:
    """The tree of a text; None when there is the least wrong with it."""
    broken = False

    def report(*_: Any) -> None:
        nonlocal broken
        broken = True

    root, whole = compose(text, report)
    return root if whole and not broken else None
