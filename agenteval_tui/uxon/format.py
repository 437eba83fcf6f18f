"""Lay a config text out anew: two spaces a level, one comma too many gone, every comment still there."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.tokens import Token

_WIDTH = 100
_CLOSING = {"{": "}", "[": "]"}


def format_text(text: str) -> str:
    """`text` laid out; it means the same and keeps all comments and the kind of its line ends.

    An object or list stays on one line if it started on one and fits there (100 characters). Blank lines between
    entries stay, one at most. A text with errors, or without a value, comes back unchanged: nothing is guessed.
    """
    document = parse(text)
    if document.broken or document.root is None:
        return text
    reader = _Reader(text, document.tokens)
    head = reader.comments()
    entry = reader.entry()
    tail = reader.comments()
    lines = [line.text for line in head]
    lines += entry.lines(0)
    if tail and tail[0].same_line:
        lines[-1] += " " + tail.pop(0).text
    lines += [line.text for line in tail]
    newline = "\r\n" if "\r\n" in text else "\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    end = newline if text.endswith(("\n", "\r")) else ""
    return mark + newline.join(lines) + end


class _Comment(Struct):
    text: str
    same_line: bool  # it follows something on its line
    blank_before: bool


class _Entry(Struct):
    """A value with its name, if it has one, and the comments around it."""

    key: str = ""
    value: str = ""
    opening: str = ""
    entries: list[_Entry] = field(default_factory=list)
    inner: list[_Comment] = field(default_factory=list)  # behind the last entry, before the closing bracket
    expanded: bool = False
    leading: list[_Comment] = field(default_factory=list)
    trailing: list[_Comment] = field(default_factory=list)
    blank_before: bool = False

    def flat(self) -> str | None:
        """The entry on one line, None if it cannot be."""
        if not self.opening:
            return self.key + self.value
        if self.expanded or self.inner or any(entry.leading or entry.trailing for entry in self.entries):
            return None
        parts = [entry.flat() for entry in self.entries]
        if any(part is None for part in parts):
            return None
        return self.key + self.opening + ", ".join(part for part in parts if part) + _CLOSING[self.opening]

    def lines(self, depth: int) -> list[str]:
        """The entry without its leading and trailing comments. Only the first line lacks the indentation."""
        flat = self.flat()
        if flat is not None and (not self.entries or len(flat) + 2 * depth < _WIDTH):
            return [flat]
        inner = "  " * (depth + 1)
        out = [self.key + self.opening]
        for index, entry in enumerate(self.entries):
            first = index == 0
            for comment in entry.leading:
                _blank(out, comment.blank_before and not first)
                out.append(inner + comment.text)
                first = False
            _blank(out, entry.blank_before and not first)
            lines = entry.lines(depth + 1)
            lines[0] = inner + lines[0]
            if index < len(self.entries) - 1:
                lines[-1] += ","
            for comment in entry.trailing:
                lines[-1] += " " + comment.text
            out += lines
        for index, comment in enumerate(self.inner):
            _blank(out, comment.blank_before and bool(self.entries or index))
            out.append(inner + comment.text)
        out.append("  " * depth + _CLOSING[self.opening])
        return out


def _blank(out: list[str], needed: bool) -> None:
    if needed:
        out.append("")


class _Reader:
    """Entries out of the tokens of a text that has no errors."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0

    def source(self) -> str:
        token = self.tokens[self.index]
        return self.text[token.start : token.end]

    def gap(self) -> str:
        """The white space before the next token."""
        start = self.tokens[self.index - 1].end if self.index else 0
        return self.text[start : self.tokens[self.index].start]

    def comments(self) -> list[_Comment]:
        """The comments that come next."""
        comments = []
        while self.index < len(self.tokens) and self.tokens[self.index].kind == "comment":
            gap = self.gap()
            same_line = self.index > 0 and not _breaks(gap)
            comments.append(_Comment(self.source().rstrip(), same_line, _breaks(gap) > 1))
            self.index += 1
        return comments

    def take(self, kind: str) -> bool:
        if self.index < len(self.tokens) and self.tokens[self.index].kind == kind:
            self.index += 1
            return True
        return False

    def entry(self) -> _Entry:
        """The value that begins here, with the name before it."""
        entry = _Entry(blank_before=_breaks(self.gap()) > 1)
        if self.tokens[self.index].kind == "key":
            entry.key = self.source() + ": "
            self.index += 1
            entry.leading += self.comments()
            self.take("colon")
            entry.leading += self.comments()
        source = self.source()
        self.index += 1
        if source not in _CLOSING:
            entry.value = source
            return entry
        entry.opening = source
        if self.index < len(self.tokens):
            entry.expanded = bool(_breaks(self.gap()))
        while True:
            comments = self.comments()
            if self.tokens[self.index].kind in ("brace", "bracket") and self.source() in ("}", "]"):
                entry.inner = comments
                entry.expanded = entry.expanded and bool(entry.entries or comments)
                self.index += 1
                return entry
            child = self.entry()
            child.leading = comments + child.leading
            entry.entries.append(child)
            self.trail(child)

    def trail(self, child: _Entry) -> None:
        """The comments on the line where an entry ends, and the comma."""
        start = self.index
        before = self.comments()
        comma = self.take("comma")
        if not comma:  # those on lines of their own are the last words of the list, not of its last entry
            here = next((i for i, c in enumerate(before) if not c.same_line), len(before))
            self.index, before = start + here, before[:here]
        after: list[_Comment] = []
        while self.index < len(self.tokens) and self.tokens[self.index].kind == "comment" and not _breaks(self.gap()):
            if comma and self.text.startswith("/*", self.tokens[self.index].start) and not self.ends_line():
                break  # `1, /* of b */ 2`: it belongs to what follows
            after += [_Comment(self.source().rstrip(), True, False)]
            self.index += 1
            if after[-1].text.startswith("//"):
                break
        own = [c for c in before if not c.same_line]
        for comment in [*before, *after]:
            # nothing can follow a line comment: what follows it goes before the entry
            if comment in own or (child.trailing and child.trailing[-1].text.startswith("//")):
                child.leading.append(comment)
            else:
                child.trailing.append(comment)

    def ends_line(self) -> bool:
        """Whether the comment here is the last thing on its line."""
        if self.index + 1 >= len(self.tokens):
            return True
        between = self.text[self.tokens[self.index].end : self.tokens[self.index + 1].start]
        return bool(_breaks(between)) or self.tokens[self.index + 1].kind in ("comment", "brace", "bracket")


def _breaks(gap: str) -> int:
    """How many line ends there are in white space."""
    return gap.count("\n") + gap.count("\r") - gap.count("\r\n")
