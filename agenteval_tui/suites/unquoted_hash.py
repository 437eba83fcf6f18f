"""Texts that YAML cuts: in `prompt: Where is order #W123?` the `#` starts a comment, without any message. A `#`
followed by a space is how people write comments, and is taken for one. Without the space, in a text that people or
models read, it is taken for part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.suites.load import LoadedSuite, load_bytes
from agenteval_tui.suites.yaml.save import SaveFailed, check_unchanged, write_over
from agenteval_tui.suites.yaml.tree import Alias, MappingNode, Node, ScalarNode, plain_data
from agenteval_tui.suites.yaml.write import double_quoted

PROSE = frozenset(
    {
        "name",
        "description",
        "prompt",
        "expected_value",
        "content",
        "response",
        "sample_response",
        "sample_system_prompt",
        "system",
        "question",
        "request",
        "goal",
        "persona",
        "knows",
        "stop_when",
    }
)
LISTS = frozenset({"turns", "requests", "knows"})
"""Keys of lists whose items are such texts."""

_SUSPECT = re.compile(r"\S[ \t]+#[^\s#!]")
_ANCHOR = re.compile(r"&\S+\s+")
_REST = re.compile(r"[ \t]+#[^\s#!][^\r\n]*")


class CutText(Struct, frozen=True):
    """A text that is cut: the file's characters `start`..`end` (to the end of the line), and all that was meant."""

    key: str
    start: int
    end: int
    read: str
    meant: str

    @property
    def fix(self) -> Fix:
        """Put it into quotes."""
        return Fix(f"put the {self.key} in quotes", (TextEdit(self.start, self.end, double_quoted(self.meant)),))


def cut_texts(loaded: LoadedSuite, node: Node | None) -> Iterator[CutText]:
    """The texts below `node` that a `#` cuts, in the order of the file."""
    if node is not None and _SUSPECT.search(loaded.text):
        yield from _below(loaded, node, "")


def _below(loaded: LoadedSuite, node: Node, key: str) -> Iterator[CutText]:
    if isinstance(node, Alias):
        return  # it is found at its anchor
    if isinstance(node, ScalarNode):
        if key and node.plain and node.text:
            rest = _REST.match(loaded.text, node.end)
            if rest is not None:
                meant = node.text + rest.group().rstrip()
                start = node.start
                if anchor := _ANCHOR.match(loaded.text, start, node.end):
                    start = anchor.end()
                yield CutText(key, start, node.end + len(rest.group().rstrip()), node.text, meant)
    elif isinstance(node, MappingNode):
        for name, value in node.pairs.items():
            yield from _below(loaded, value, name.text if name.text in PROSE | LISTS else "")
    else:
        for item in node.items:
            yield from _below(loaded, item, key if key in LISTS else "")


def quote_cut_text(loaded: LoadedSuite, start: int) -> LoadedSuite:
    """Put the cut text that begins at character `start` of the file into quotes, and write that.

    Raises `FileChanged` when the file is not the one that was read, `SaveFailed` when there is no such text or the
    file would not be read as it is now, but for it.
    """
    check_unchanged(loaded)
    where = str(loaded.path)
    cut = next((cut_text for cut_text in cut_texts(loaded, loaded.root) if cut_text.start == start), None)
    if cut is None:
        raise SaveFailed("no text is cut here any more", where=where)
    data = loaded.encoded(cut.fix.apply(loaded.text))
    saved = load_bytes(data, loaded.path)
    if loaded.root is None or saved.root is None or not _differ_in(loaded.root, saved.root, cut):
        raise SaveFailed("this text can't be put in quotes without changing another", where=where, fix="edit the file")
    write_over(loaded, data)
    return saved


def _differ_in(before: Node, after: Node, cut: CutText) -> bool:
    """Is the file as it was, but that the one text is whole now?"""

    def texts(node: Node) -> list[str]:
        strings: list[str] = []

        def gather(value: object) -> None:
            if isinstance(value, dict):
                for key, item in value.items():
                    strings.append(str(key))
                    gather(item)
            elif isinstance(value, list):
                for item in value:
                    gather(item)
            else:
                strings.append(str(value))

        gather(plain_data(node))
        return strings

    was, now = texts(before), texts(after)
    other = [(first, two) for first, two in zip(was, now, strict=False) if first != two]
    # More than once: other places may share it through an anchor.
    return len(was) == len(now) and bool(other) and all(two == cut.meant for _, two in other)
