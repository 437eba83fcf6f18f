"""Reading on behind broken YAML: a syntax error should cost one test, and not hide the errors of the others.

YAML's parser gives up at its first error. But the tests of a suite are items of a list, each on lines of its own: each
can be parsed alone. Those that are broken are said, and blanked out of the text, so that the rest is read with all
its places as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval_tui.suites.yaml_tree import compose

_TESTS = re.compile(r"^tests[ \t]*:[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_VISIBLE = re.compile(r"[^\r\n]")

Said = tuple[str, int, int, str, str | None]  # what a report takes: code, start, end, message, fix


def without_broken_tests(text: str) -> tuple[str, list[Said]] | None:
    """The text with its broken tests blanked out (as long as it was), and what is wrong in them.

    None when the mistake is not inside of a single test.
    """
    said: list[Said] = []
    parts: list[str] = []
    done = 0
    for start, end in _items(text):
        found = _syntax_errors(text[start:end])
        if found:
            said.extend((code, start + at, start + to, message, fix) for code, at, to, message, fix in found)
            parts += [text[done:start], _VISIBLE.sub(" ", text[start:end])]
            done = end
    return ("".join([*parts, text[done:]]), said) if said else None


def _syntax_errors(item: str) -> list[Said]:
    found: list[Said] = []
    compose(item, lambda *said: found.append(said))
    # What an item alone can't know (an anchor of another test) is no mistake of it.
    return [one for one in found if one[0] == "syntax"]


def _items(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of every item of the block list `tests:`, whole lines."""
    header = _TESTS.search(text)
    if header is None:
        return
    begun: int | None = None
    indent: int | None = None
    at = header.end() + 1
    while at < len(text):
        line_end = text.find("\n", at)
        following = len(text) if line_end < 0 else line_end + 1
        line = text[at:following]
        bare = line.strip()
        if bare and not bare.startswith("#"):
            column = len(line) - len(line.lstrip(" "))
            is_item = line.lstrip(" ").startswith(("- ", "-\n", "-\r"))
            if indent is None:
                if not is_item:
                    return
                indent = column
            if column == indent and is_item:
                if begun is not None:
                    yield begun, at
                begun = at
            elif column < indent or (column == 0 and indent == 0):
                break  # the list is over: another key of the suite
        at = following
    if begun is not None:
        yield begun, min(at, len(text))
