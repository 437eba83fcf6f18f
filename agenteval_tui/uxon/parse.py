"""Read a config text: JSON as people write it, and as Power UI exports it.

Whatever the text is, there is a document: each mistake becomes one diagnostic, and reading goes on with what was
probably meant. No recursion: the depth of a text is data, not a reason to fail.
"""

from __future__ import annotations

from typing import Literal

from agenteval_tui.uxon import brackets, mistakes
from agenteval_tui.uxon.diagnostics import (
    MOST_DIAGNOSTICS,
    Diagnostic,
    without_doubtful_fixes,
)
from agenteval_tui.uxon.plain import read_name, read_plain, template_end
from agenteval_tui.uxon.power_ui import finish_array, finish_object
from agenteval_tui.uxon.quotes import unescaped
from agenteval_tui.uxon.tokens import Token, tokenize
from agenteval_tui.uxon.tree import Document, Member, Node

__all__ = ["MAX_DEPTH", "Diagnostic", "Document", "Member", "Node", "parse"]

MAX_DEPTH = 100
"""Objects and lists inside each other; what is deeper is skipped with a diagnostic."""

_OPENING = {"}": "{", "]": "["}
_CLOSING = {"{": "}", "[": "]"}
_PLAIN_VALUES = ("string", "number", "literal", "error", "key")

# What an open object or list waits for.
_State = Literal["name", "colon", "value", "comma"]


class _Frame:
    """An object or list that is not closed yet."""

    __slots__ = ("comma", "implicit", "is_object", "items", "key", "key_end", "key_start", "members", "start", "state")

    def __init__(self, is_object: bool, start: int, implicit: bool = False) -> None:
        self.is_object = is_object
        self.start = start
        self.implicit = implicit  # a root object whose braces were forgotten
        self.members: list[Member] = []
        self.items: list[Node] = []
        self.state: _State = "name" if is_object else "value"
        self.comma = -1  # where the last comma is, if nothing followed it yet
        self.key: str | None = None
        self.key_start = 0
        self.key_end = 0


def parse(text: str) -> Document:
    """Read `text`. Never raises; takes time in proportion to its length."""
    return _Parser(text, tokenize(text)).run()


class _Parser:
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.solid = [token for token in tokens if token.kind != "comment"]
        self.index = 0
        self.frames: list[_Frame] = []
        self.root: Node | None = None
        self.reopened = False
        self.judged = 0
        self.diagnostics: list[Diagnostic] = []

    # ------------------------------------------------------------------ running
    def run(self) -> Document:
        solid, frames, text = self.solid, self.frames, self.text
        count = len(solid)
        while self.index < count:
            token = solid[self.index]
            if not frames:
                if self.root is not None:
                    self.after_root(token)
                    continue
                self.before_root(token)
            elif frames[-1].is_object:
                self.in_object(frames[-1], token, text[token.start])
            else:
                self.in_array(frames[-1], token, text[token.start])
        self.at_end()
        for comment in self.tokens:
            if comment.kind == "comment" and not self.closed_comment(comment):
                self.report(mistakes.open_comment(comment))
        if self.root is None:
            self.report(mistakes.empty(text, bool(self.tokens)))
        value = {} if self.root is None else self.root.value
        diagnostics = without_doubtful_fixes(text, sorted(self.diagnostics, key=lambda d: (d.start, d.end)))
        return Document(text, self.tokens, self.root, value, tuple(diagnostics))

    def closed_comment(self, comment: Token) -> bool:
        source = self.text[comment.start : comment.end]
        return source.startswith("//") or (len(source) >= 4 and source.endswith("*/"))

    def report(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics.extend(diagnostics[: max(0, MOST_DIAGNOSTICS - len(self.diagnostics))])

    # ------------------------------------------------------------------ the root
    def before_root(self, token: Token) -> None:
        if token.kind == "key" and self.next_is("colon"):
            self.frames.append(_Frame(True, token.start, implicit=True))
            self.report(mistakes.no_braces(token, self.solid[-1].end))
        elif token.kind in ("comma", "colon") or self.text[token.start] in "]}":
            self.unexpected(token)
        else:
            self.value(token)

    def after_root(self, token: Token) -> None:
        """Text behind the end. A closing brace too early is the likely reason when properties follow."""
        root = self.root
        assert root is not None
        rest = self.solid[-1].end
        if root.kind == "object" and not self.reopened and self.text[root.end - 1] == "}":
            follows = (
                self.solid[self.index + 1] if token.kind == "comma" and self.index + 1 < len(self.solid) else token
            )
            if follows.kind in ("key", "string") and brackets.closes_one_more(self.text, self.solid, self.index, "}"):
                self.reopened = True
                self.report(mistakes.early_end(root.end - 1))
                frame = _Frame(True, root.start)
                frame.members = list(root.members)
                frame.state = "comma"
                self.frames.append(frame)
                self.root = None
                return
        closers = all(self.text[t.start] in "]}" for t in self.solid[self.index :])
        self.report(mistakes.text_behind(token.start, rest, closers))
        self.index = len(self.solid)

    # ------------------------------------------------------------------ objects
    def in_object(self, frame: _Frame, token: Token, char: str) -> None:
        state, kind = frame.state, token.kind
        if char in "]}" and kind in ("brace", "bracket"):
            self.closer(frame, token, char)
        elif state == "name":
            self.name(frame, token)
        elif state == "colon":
            if kind == "colon":
                frame.state = "value"
                self.index += 1
            else:
                self.missing_colon(frame, token)
        elif state == "value":
            if kind == "comma" or (kind == "key" and self.next_is("colon")):
                self.missing_value(frame)
                if kind == "key":
                    frame.state = "name"  # one mistake, one diagnostic: the comma is not missed as well
            elif kind == "colon":
                self.report(mistakes.extra_colon(token))
                self.index += 1
            else:
                self.value(token)
        elif kind == "comma":
            frame.state, frame.comma = "name", token.start
            self.index += 1
        elif kind == "colon":
            self.unexpected(token)
        elif self.goes_on(frame.members[-1].value if frame.members else None):
            pass
        else:
            frame.state = "name"
            self.missing_comma(frame, token)

    def name(self, frame: _Frame, token: Token) -> None:
        kind = token.kind
        if kind in _PLAIN_VALUES:
            frame.comma = -1
            frame.key_start, frame.key_end = token.start, token.end
            frame.key, problems = read_name(self.text, token)
            if problems:
                self.report(*problems)
            frame.state = "colon"
            self.index += 1
        elif kind == "comma":
            self.extra_comma(frame, token)
        elif kind == "colon":
            self.report(mistakes.missing_name(token))
            frame.key, frame.key_start, frame.key_end = None, token.start, token.start
            frame.state, frame.comma = "value", -1
            self.index += 1
        else:
            self.report(mistakes.missing_name(token))
            frame.key, frame.key_start, frame.key_end = None, token.start, token.start
            frame.comma = -1
            self.value(token)

    def missing_colon(self, frame: _Frame, token: Token) -> None:
        source = self.text[token.start : token.end]
        if source in ("=", "=>", ":=", "->"):
            self.report(mistakes.not_a_colon(token, source))
            self.index += 1
            frame.state = "value"
        elif token.kind == "comma" or (token.kind == "key" and self.next_is("colon")):
            self.missing_value(frame)
            if token.kind == "key":
                frame.state = "name"
        else:
            self.report(mistakes.missing_colon(frame.key, frame.key_start, frame.key_end))
            frame.state = "value"

    def missing_value(self, frame: _Frame) -> None:
        """The open property has no value: say it, and stand in something for it."""
        at = self.solid[self.index - 1].end if self.index else frame.key_end
        self.report(mistakes.missing_value(frame.key, frame.key_start, max(at, frame.key_end)))
        self.put(Node("missing", at, at, None))

    def missing_comma(self, frame: _Frame, token: Token) -> None:
        if self.text[token.start : token.end] == ";":
            if self.closes_next():
                self.unexpected(token)
                frame.state = "comma"
                return
            self.report(mistakes.semicolon(token))
            frame.comma = token.start
            self.index += 1
            return
        self.report(mistakes.missing_comma(self.solid[self.index - 1].end))

    # ------------------------------------------------------------------ lists
    def in_array(self, frame: _Frame, token: Token, char: str) -> None:
        kind = token.kind
        if char in "]}" and kind in ("brace", "bracket"):
            self.closer(frame, token, char)
        elif frame.state == "value":
            if kind == "comma":
                self.extra_comma(frame, token)
            elif kind == "colon":
                self.unexpected(token)
            else:
                frame.comma = -1
                self.value(token)
        elif kind == "comma":
            frame.state, frame.comma = "value", token.start
            self.index += 1
        elif kind == "colon" and frame.items:
            name = frame.items[-1]
            if name.kind == "string":
                frame.items.pop()
                frame.state = "value"
                self.report(mistakes.name_in_list(name.start, token.end))
                self.index += 1
            else:
                self.unexpected(token)
        elif not self.goes_on(frame.items[-1] if frame.items else None):
            frame.state = "value"
            self.missing_comma(frame, token)

    # ------------------------------------------------------------------ values
    def value(self, token: Token) -> None:
        """Take the value that begins with `token`."""
        start, kind = token.start, token.kind
        if kind == "brace" or kind == "bracket":
            if len(self.frames) >= MAX_DEPTH:
                self.too_deep(token)
                return
            if kind == "brace" and self.text.startswith("{{", start) and self.bare_template(token):
                return
            self.frames.append(_Frame(kind == "brace", start))
            self.index += 1
            return
        node, self.index, problems = read_plain(self.text, self.solid, self.index)
        if problems:
            self.report(*problems)
        self.put(node)

    def bare_template(self, token: Token) -> bool:
        """`{{name}}` outside of a string; what is put in place of it is text, so it belongs into one."""
        start, end = token.start, template_end(self.text, token.start)
        if end is None:
            return False
        self.report(mistakes.bare_template(self.text[start:end], start))
        while self.index < len(self.solid) and self.solid[self.index].start < end:
            self.index += 1
        self.put(Node("string", start, end, self.text[start:end]))
        return True

    def goes_on(self, node: Node | None) -> bool:
        """Whether the string that was just read goes on behind its quote; then it is taken whole."""
        if node is None or node.kind != "string" or node.end != self.solid[self.index - 1].end:
            return False
        if len(self.diagnostics) >= MOST_DIAGNOSTICS:
            return False
        longer = unescaped(self.text, self.solid, self.index)
        if longer is None:
            return False
        self.report(mistakes.quotes_inside(node.start, longer.end, longer.fix))
        node.value, node.end = longer.value, longer.end
        if self.frames and self.frames[-1].is_object:
            self.frames[-1].members[-1].end = longer.end
        self.index = longer.next_index
        return True

    def put(self, node: Node) -> None:
        """Give a finished value to what it belongs to."""
        if not self.frames:
            self.root = node
            return
        frame = self.frames[-1]
        frame.state = "comma"
        if not frame.is_object:
            frame.items.append(node)
        elif frame.key is not None:
            start = frame.key_start
            frame.members.append(Member(frame.key, start, frame.key_end, node, start, max(node.end, frame.key_end)))

    def too_deep(self, token: Token) -> None:
        end = brackets.skip(self.text, self.solid, self.index)
        last = self.solid[end - 1].end
        self.report(mistakes.too_deep(token, MAX_DEPTH))
        self.index = end
        self.put(Node("missing", token.start, last, None))

    # ------------------------------------------------------------------ closing
    def closer(self, frame: _Frame, token: Token, char: str) -> None:
        opening = _OPENING[char]
        mine = "{" if frame.is_object else "["
        if opening == mine and not frame.implicit:
            self.close(frame, token.end)
            self.index += 1
            return
        stack = ["" if f.implicit else "{" if f.is_object else "[" for f in self.frames]
        # Looking ahead costs: texts with many wrong brackets get the plain rule.
        self.judged += 1
        verdict = brackets.judge(self.text, self.solid, self.index, stack, ahead=self.judged <= 20)
        if verdict == "replace":
            self.report(mistakes.wrong_closer(token, char, _CLOSING[mine]))
            self.close(frame, token.end)
            self.index += 1
        elif verdict == "insert":
            at = self.solid[self.index - 1].end
            missing = ""
            while ("{" if self.frames[-1].is_object else "[") != opening:
                missing += "}" if self.frames[-1].is_object else "]"
                self.close(self.frames[-1], at)
            self.report(mistakes.missing_closers(token, char, missing, at))
        else:
            self.unexpected(token)

    def close(self, frame: _Frame, end: int) -> None:
        """Make the node of the innermost open object or list; `end` is the end of its closing bracket."""
        if frame.state == "colon" or (frame.state == "value" and frame.is_object):
            self.missing_value(frame)
        if frame.comma >= 0 and (frame.members or frame.items):
            self.report(mistakes.trailing_comma(frame.comma))
        self.frames.pop()
        node: Node
        if frame.is_object:
            node = finish_object(self.text, frame.start, end, frame.members, self.report)
        else:
            node = finish_array(frame.start, end, frame.items, self.report)
        self.put(node)

    def at_end(self) -> None:
        """Close what the text leaves open: one diagnostic with all the brackets that are missing."""
        open_frames = [frame for frame in self.frames if not frame.implicit]
        end = self.solid[-1].end if self.solid else 0
        missing = "".join("}" if frame.is_object else "]" for frame in reversed(open_frames))
        if missing:
            self.report(mistakes.unclosed(open_frames[-1].start, missing, end))
        while self.frames:
            self.close(self.frames[-1], end)

    # ------------------------------------------------------------------ small things
    def next_is(self, kind: str) -> bool:
        return self.index + 1 < len(self.solid) and self.solid[self.index + 1].kind == kind

    def closes_next(self) -> bool:
        return self.index + 1 < len(self.solid) and self.text[self.solid[self.index + 1].start] in "]}"

    def extra_comma(self, frame: _Frame, token: Token) -> None:
        self.report(mistakes.extra_comma(token))
        frame.comma = -1  # a trailing comma is told when this one is gone
        self.index += 1

    def unexpected(self, token: Token) -> None:
        self.report(mistakes.unexpected(token, self.text[token.start : token.end]))
        self.index += 1
