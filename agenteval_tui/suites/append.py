"""Adding a test to a suite's file: only the added bytes are new, everything that stood there stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.suites import write_scalar
from agenteval_tui.suites.files import BOM
from agenteval_tui.suites.load import LoadedSuite, load_bytes
from agenteval_tui.suites.naming import ID, slug
from agenteval_tui.suites.save import SaveFailed, check_unchanged, read_again, write_over
from agenteval_tui.suites.write_block import block_item
from agenteval_tui.suites.yaml_edit import Edit, apply, content_end, line_end, same
from agenteval_tui.suites.yaml_tree import Alias, Sequence, compose, is_null, plain_data, resolve
from agenteval_tui.suites.yaml_tree import Mapping as MappingNode


def free_id(loaded: LoadedSuite, name: str) -> str:
    """An id for a new test, made from its name; with a number behind it where the suite has one of that id."""
    made = slug(name)[:60].strip("-._") or "test"
    made = made if ID.fullmatch(made) else "test"
    taken, number, wanted = loaded.test_nodes.keys(), 1, made
    while wanted.casefold() in taken:
        number += 1
        wanted = f"{made}-{number}"
    return wanted


def append_test(loaded: LoadedSuite, test: Mapping[str, Any]) -> LoadedSuite:
    """Write `test` (keys as a suite has them, its `id` among them) behind the last test; the suite as it then is.

    The list keeps its style; encoding, byte order mark, line ends and the file's mode stay. Raises `FileChanged` when
    the file is not the one that was read, and `SaveFailed` when the test can't be added so that nothing else changes;
    then the file is as it was.
    """
    where = str(loaded.path)
    check_unchanged(loaded, read_again(loaded))
    if loaded.root is None or not loaded.whole or not isinstance(resolve(loaded.root), MappingNode):
        raise SaveFailed(
            "the file has a YAML error, so no test can be added to it", where=where, mend="mend that first"
        )
    data = dict(test)
    for text in _ways(loaded, data):
        if _holds(loaded, text, data):
            break
    else:
        raise SaveFailed(
            "a test can't be added to this file without changing something else",
            where=where,
            mend="if its tests are shared through an anchor, write the test by hand",
        )
    written = (BOM if loaded.bom else b"") + text.encode("utf-8")
    saved = load_bytes(written, loaded.path)
    tests = len(loaded.suite.tests) if loaded.suite is not None else 0
    if saved.suite is None or len(saved.suite.tests) != tests + 1:
        found = next((one.message for one in saved.problems if one not in loaded.problems), "it would not be read")
        raise SaveFailed(f"this test would not be right: {found}", where=where)
    write_over(loaded, written)
    return saved


def _ways(loaded: LoadedSuite, test: dict[str, Any]) -> Iterator[str]:
    """The file's text with the test added, the best way first."""
    assert loaded.root is not None
    text, top = loaded.text, resolve(loaded.root)
    assert isinstance(top, MappingNode)
    eol = "\r\n" if "\r\n" in text else "\n"
    node = top.get("tests")
    if node is None:
        column = 2
        yield _ended(text, eol) + f"{eol}tests:{eol}{block_item(test, column=column, eol=eol)}{eol}"
        return
    if isinstance(node, Alias):
        return
    listed = resolve(node)
    if isinstance(listed, Sequence) and listed.items and listed.flow:
        at = content_end(listed.items[-1], text)
        yield apply(text, [Edit(at, at, ", " + write_scalar.flow(test, bare_keys=True))])
    elif isinstance(listed, Sequence) and listed.items:
        yield from _behind_last(text, listed, test, eol)
    elif is_null(node) or isinstance(listed, Sequence):
        key = top.key("tests")
        assert key is not None
        colon = text.find(":", key.end) + 1
        end = max(content_end(node, text), colon)
        rest = text[end : line_end(text, end)]
        item = block_item(test, column=key.start - (text.rfind("\n", 0, key.start) + 1) + 2, eol=eol)
        yield text[:colon] + rest + eol + item + text[line_end(text, end) :]


def _behind_last(text: str, listed: Sequence, test: dict[str, Any], eol: str) -> Iterator[str]:
    dashes = [text.rfind("-", 0, item.start) for item in listed.items]
    column = dashes[0] - (text.rfind("\n", 0, dashes[0]) + 1)
    item = block_item(test, column=column, eol=eol)
    # As the tests before stand: with an empty line between them, or without.
    between = text[content_end(listed.items[-2], text) : dashes[-1]] if len(listed.items) > 1 else "\n\n"
    gap = eol * 2 if between.replace("\r", "").replace(" ", "").startswith("\n\n") else eol
    at = line_end(text, content_end(listed.items[-1], text))
    yield text[:at] + gap + item + text[at:]
    # A text that owns the blank lines behind it can only be followed at the very end.
    yield _ended(text, eol) + item + eol


def _ended(text: str, eol: str) -> str:
    return text if not text or text.endswith("\n") else text + eol


def _holds(loaded: LoadedSuite, text: str, test: dict[str, Any]) -> bool:
    """Does `text` say all that the file says, with the test behind its tests, and nothing else?"""
    broken = False

    def report(*_: Any) -> None:
        nonlocal broken
        broken = True

    root, whole = compose(text, report)
    if root is None or not whole or broken:
        return False
    assert loaded.root is not None
    before, after = plain_data(loaded.root), plain_data(root)
    if not isinstance(before, dict) or not isinstance(after, dict) or not isinstance(after.get("tests"), list):
        return False
    tests = before.get("tests") or []
    return isinstance(tests, list) and same({**before, "tests": [*tests, test]}, after)
