"""Read a config text: JSON as people write it, and as Power UI exports it.

Whatever the text is, there is a document: each mistake becomes one diagnostic, and reading continues with what was
probably meant. No recursion: the depth of a text is data, not a reason to fail.

Power UI adds comment keys, switched-off parts, and texts as a list of lines to JSON. A property whose name begins with
`//` is a comment; one whose name begins with `/*` switches off itself and all that follow in the object, up to one
whose name begins with `*/`; an object that begins with the name `/*` and ends with `*/` is switched off as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.core.phrasing import cut
from agenteval_tui.uxon import syntax_errors
from agenteval_tui.uxon.diagnostics import (
    ESCAPE_THE_QUOTES,
    MOST_DIAGNOSTICS,
    Diagnostic,
    replace_fix,
    without_doubtful_fixes,
)
from agenteval_tui.uxon.member_edits import remove_member
from agenteval_tui.uxon.strings import quote, read_string
from agenteval_tui.uxon.tokens import Token, tokenize
from agenteval_tui.uxon.tree import MULTILINE, Document, Member, Node, NodeKind, delimiter_of

_OPENING = {"}": "{", "]": "["}
MAX_DEPTH = 100
"""Objects and lists inside each other; what is deeper is skipped with a diagnostic."""
COMMENT_MARKS = ("//", "/*", "*/")
"""What a property's name begins with that is a comment, or begins or ends one."""
_CLOSING = {"{": "}", "[": "]"}
_VALUE_TOKENS = ("string", "number", "literal", "error", "key")
# What an open object or list waits for.
_State = Literal["name", "colon", "value", "comma"]
_AHEAD = 4000  # tokens that a look ahead takes in: it may be repeated for several wrong brackets
_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}
_QUOTES = "\"'`“”„‟"
_TEMPLATE = re.compile(r"\{\{[ \t]*\w[\w.\- \t|]*\}\}(?![ \t]*:)")
_NONE: tuple[Diagnostic, ...] = ()
_LITERAL_OF_WORD = {
    "true": "true",
    "false": "false",
    "null": "null",
    "none": "null",
    "nil": "null",
    "undefined": "null",
}
_NON_FINITE = re.compile(r"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)
_NUMBER_LIKE = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number as JSON writes it."""
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}\Z")
LONGEST_NUMBER = 400  # digits; a config does not mean longer ones as numbers
_FARTHEST = 2000  # characters of a line that are looked at
_LINE = re.compile(r"[^\n\r]*")
_QUOTE = re.compile(r'\\.|"')
_CAN_FOLLOW = re.compile(r"[ \t]*(?:[,}\]\n\r]|\Z)")
Report = Callable[[Diagnostic], None]


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
                self.report(syntax_errors.open_comment(comment))
        if self.root is None:
            self.report(syntax_errors.empty(text, bool(self.tokens)))
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
        # A name with a colon at the top: the braces around everything were forgotten.
        if token.kind == "key" and self.colon_follows():
            self.frames.append(_Frame(True, token.start, implicit=True))
            self.report(syntax_errors.missing_braces(token, self.solid[-1].end))
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
            if follows.kind in ("key", "string") and closes_one_more(self.text, self.solid, self.index, "}"):
                self.reopened = True
                # A string that is never closed may have more of them at its end: each would be the next that ends it.
                before = self.solid[self.index - 2] if self.index > 1 else token
                first = root.end - 1
                if before.kind in ("key", "string") and before.end == first:
                    first = before.start + len(self.text[before.start : first].rstrip("} \t"))
                self.report(syntax_errors.early_end(first, root.end))
                frame = _Frame(True, root.start)
                frame.members = list(root.members)
                frame.state = "comma"
                self.frames.append(frame)
                self.root = None
                return
        closers = all(self.text[t.start] in "]}" for t in self.solid[self.index :])
        self.report(syntax_errors.text_behind(token.start, rest, closers))
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
            if kind == "comma" or (kind == "key" and self.colon_follows()):
                self.missing_value(frame)
                if kind == "key":
                    frame.state = "name"  # one mistake, one diagnostic: the comma is not missed as well
            elif kind == "colon":
                self.report(syntax_errors.extra_colon(token))
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
        if kind in _VALUE_TOKENS:
            frame.comma = -1
            frame.key_start, frame.key_end = token.start, token.end
            frame.key, problems = read_name(self.text, token)
            if problems:
                self.report(*problems)
            frame.state = "colon"
            self.index += 1
        elif kind == "comma":
            self.extra_comma(frame, token)
        else:
            # The value without a name is read all the same, and left out of the object.
            self.report(syntax_errors.missing_name(token))
            frame.key, frame.key_start, frame.key_end = None, token.start, token.start
            frame.comma = -1
            if kind == "colon":
                frame.state = "value"
                self.index += 1
            else:
                self.value(token)

    def missing_colon(self, frame: _Frame, token: Token) -> None:
        source = self.text[token.start : token.end]
        if source in ("=", "=>", ":=", "->"):
            self.report(syntax_errors.not_a_colon(token, source))
            self.index += 1
            frame.state = "value"
        elif token.kind == "comma" or (token.kind == "key" and self.colon_follows()):
            self.missing_value(frame)
            if token.kind == "key":
                frame.state = "name"
        else:
            self.report(syntax_errors.missing_colon(frame.key, frame.key_start, frame.key_end))
            frame.state = "value"

    def missing_value(self, frame: _Frame) -> None:
        """The open property has no value: report that, and put in a placeholder."""
        at = self.solid[self.index - 1].end if self.index else frame.key_end
        self.report(syntax_errors.missing_value(frame.key, frame.key_start, max(at, frame.key_end)))
        self.put(Node("missing", at, at, None))

    def missing_comma(self, frame: _Frame, token: Token) -> None:
        if self.text[token.start : token.end] == ";":
            if self.closes_next():
                self.unexpected(token)
                frame.state = "comma"
                return
            self.report(syntax_errors.semicolon(token))
            frame.comma = token.start
            self.index += 1
            return
        self.report(syntax_errors.missing_comma(self.solid[self.index - 1].end))

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
                self.report(syntax_errors.name_in_list(name.start, token.end))
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
        self.report(syntax_errors.bare_template(self.text[start:end], start))
        while self.index < len(self.solid) and self.solid[self.index].start < end:
            self.index += 1
        self.put(Node("string", start, end, self.text[start:end]))
        return True

    def goes_on(self, node: Node | None) -> bool:
        """Whether the string that was just read continues after its quote; then it is taken whole."""
        if node is None or node.kind != "string" or node.end != self.solid[self.index - 1].end:
            return False
        # What could not be reported any more is not looked for: each look scans the rest of a line.
        if len(self.diagnostics) >= MOST_DIAGNOSTICS:
            return False
        longer = unescaped(self.text, self.solid, self.index)
        if longer is None:
            return False
        self.report(syntax_errors.unescaped_quotes(node.start, longer.end, longer.fix))
        # The node is in its place already: it grows there, and so does the member that holds it.
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
        end = skip_brackets(self.text, self.solid, self.index)
        last = self.solid[end - 1].end
        self.report(syntax_errors.too_deep(token, MAX_DEPTH))
        self.index = end
        self.put(Node("missing", token.start, last, None))

    # ------------------------------------------------------------------ closing
    def closer(self, frame: _Frame, token: Token, char: str) -> None:
        opening = _OPENING[char]
        mine = "{" if frame.is_object else "["
        # No bracket closes an object whose braces were forgotten: it ends with the text.
        if opening == mine and not frame.implicit:
            self.close(frame, token.end)
            self.index += 1
            return
        stack = ["" if f.implicit else "{" if f.is_object else "[" for f in self.frames]
        # Looking ahead costs: texts with many wrong brackets get the plain rule.
        self.judged += 1
        verdict = closer_remedy(self.text, self.solid, self.index, stack, ahead=self.judged <= 20)
        if verdict == "replace":
            self.report(syntax_errors.wrong_closer(token, char, _CLOSING[mine]))
            self.close(frame, token.end)
            self.index += 1
        elif verdict == "insert":
            at = self.solid[self.index - 1].end
            missing = ""
            while ("{" if self.frames[-1].is_object else "[") != opening:
                missing += "}" if self.frames[-1].is_object else "]"
                self.close(self.frames[-1], at)
            self.report(syntax_errors.missing_closers(token, char, missing, at))
        else:
            self.unexpected(token)

    def close(self, frame: _Frame, end: int) -> None:
        """Make the node of the innermost open object or list; `end` is the end of its closing bracket."""
        if frame.state == "colon" or (frame.state == "value" and frame.is_object):
            self.missing_value(frame)
        if frame.comma >= 0 and (frame.members or frame.items):
            self.report(syntax_errors.trailing_comma(frame.comma))
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
            self.report(syntax_errors.unclosed(open_frames[-1].start, missing, end))
        while self.frames:
            self.close(self.frames[-1], end)

    # ------------------------------------------------------------------ small things
    def colon_follows(self) -> bool:
        return self.index + 1 < len(self.solid) and self.solid[self.index + 1].kind == "colon"

    def closes_next(self) -> bool:
        return self.index + 1 < len(self.solid) and self.text[self.solid[self.index + 1].start] in "]}"

    def extra_comma(self, frame: _Frame, token: Token) -> None:
        self.report(syntax_errors.extra_comma(token))
        frame.comma = -1  # a trailing comma is told when this one is gone
        self.index += 1

    def unexpected(self, token: Token) -> None:
        self.report(syntax_errors.unexpected(token, self.text[token.start : token.end]))
        self.index += 1


# Which bracket was forgotten, and which is wrong? Decided by what the rest of the text closes


def skip_brackets(text: str, tokens: Sequence[Token], index: int) -> int:
    """The index behind the bracket that closes the one at `index`; the end when nothing does."""
    depth = 0
    for position in range(index, len(tokens)):
        if tokens[position].kind in ("brace", "bracket"):
            depth += 1 if text[tokens[position].start] in "{[" else -1
            if depth == 0:
                return position + 1
    return len(tokens)


def unmatched(text: str, tokens: Sequence[Token], index: int) -> str | None:
    """The openings that the closing brackets from `index` on still want, in their order; None: too far to look."""
    if len(tokens) - index > _AHEAD:
        return None
    depth: list[str] = []
    closers: list[str] = []
    for position in range(index, len(tokens)):
        if tokens[position].kind not in ("brace", "bracket"):
            continue
        char = text[tokens[position].start]
        if char in "{[":
            depth.append(char)
        elif depth and depth[-1] == _OPENING[char]:
            depth.pop()
        elif not depth:
            closers.append(_OPENING[char])
    return "".join(closers)


def closes_one_more(text: str, tokens: Sequence[Token], index: int, char: str) -> bool:
    """Whether exactly one bracket `char` from `index` on has no partner."""
    return unmatched(text, tokens, index) == _OPENING[char]


def closer_remedy(
    text: str, tokens: Sequence[Token], index: int, stack: Sequence[str], *, ahead: bool
) -> Literal["insert", "replace", "remove"]:
    """What to do about the closing bracket at `index` that does not fit the innermost of `stack`."""
    opening = _OPENING[text[tokens[index].start]]
    can_insert = opening in stack
    # What closes behind it tells: if that fits the open ones but for this one, it was mistyped; if it fits one bracket
    # further out, the inner one was forgotten.
    rest = unmatched(text, tokens, index + 1) if ahead else None
    if rest is not None and stack[-1]:
        outer = "".join(reversed(stack[:-1]))
        if rest == outer:
            return "replace"
        if rest == outer[1:] and can_insert and outer[:1] == opening:
            return "insert"
        if not can_insert and rest.startswith(stack[-1]):
            return "remove"
    if can_insert:
        return "insert"
    return "remove"


# Names and plain values: what the tokens say that are neither bracket nor separator


def read_name(text: str, token: Token) -> tuple[str, Sequence[Diagnostic]]:
    """A property name, and what is wrong with how it is written."""
    start, end = token.start, token.end
    source = text[start:end]
    if source[0] == '"' and end - start > 1 and source[-1] == '"' and "\\" not in source and source.isprintable():
        return source[1:-1], _NONE  # nearly every name: nothing has to be decoded
    if source[0] in _QUOTES:
        return read_string(text, start, end)
    return source, (syntax_errors.bare_name(source, start),)


def read_plain(text: str, tokens: Sequence[Token], index: int) -> tuple[Node, int, Sequence[Diagnostic]]:
    """The string, number, literal or bare words at `tokens[index]`; the index behind it; what is wrong with it."""
    token = tokens[index]
    start, end = token.start, token.end
    source = text[start:end]
    if source[0] == '"' and source[-1] == '"' and "\\" not in source and end - start > 1 and source.isprintable():
        return Node("string", start, end, source[1:-1]), index + 1, _NONE
    if source[0] in _QUOTES:
        value, problems = read_string(text, start, end)
        return Node("string", start, end, value), index + 1, problems
    index, end = _words(text, tokens, index)
    if end == token.end and token.kind != "error":
        if source in _LITERALS:
            return Node("literal", start, end, _LITERALS[source]), index, _NONE
        if NUMBER.fullmatch(source):
            number, problem = read_number(source, start)
            return Node("number", start, end, number), index, (problem,) if problem else _NONE
    kind, meant, problem = read_word(text[start:end], start)
    node_kind: NodeKind = "literal" if kind == "literal" else "number" if kind == "number" else "string"
    return Node(node_kind, start, end, meant), index, (problem,)


def _words(text: str, tokens: Sequence[Token], index: int) -> tuple[int, int]:
    """All bare words up to the end of the line are one value: the index behind them, and where they end."""
    kind, end = tokens[index].kind, tokens[index].end
    index += 1
    while index < len(tokens):
        follows = tokens[index]
        if follows.kind not in ("error", "number", "literal") or "error" not in (kind, follows.kind):
            break
        between = text[end : follows.start]
        # A semicolon is a wrong comma, and a slash between two tokens is a comment.
        if text[follows.start] == ";" or "\n" in between or "/" in between:
            break
        kind, end = "error", follows.end
        index += 1
    return index, end


def template_end(text: str, start: int) -> int | None:
    """Where the `{{name}}` ends that stands outside of a string at `start`; None if there is none."""
    match = _TEMPLATE.match(text, start)
    return match.end() if match else None


# Bare words where a value should be: what was meant, and how it is written


def read_number(source: str, start: int) -> tuple[int | float | None, Diagnostic | None]:
    """The value of a JSON number; None with a diagnostic when no computer number can hold it."""
    end = start + len(source)
    whole = source.lstrip("-").isdecimal()
    # Python refuses to read very long whole numbers, and reads too large ones with a fraction as infinity.
    if whole and len(source) <= LONGEST_NUMBER:
        return int(source), None
    if not whole:
        value = float(source)
        if value - value == 0:
            return value, None
    message = "This number is too large: write a number below 1e308, or put it in quotes."
    fix = replace_fix("make it a string", start, end, quote(source))
    return None, Diagnostic("error", "not-finite", message, start, end, fix)


def read_word(source: str, start: int) -> tuple[str, Any, Diagnostic]:
    """The kind of node, the value that was probably meant, and the diagnostic for a bare word."""
    end = start + len(source)
    literal = _LITERAL_OF_WORD.get(source.lower())
    if literal is not None:
        message = f"Expected a value: {cut(source, 40)} is written {literal} here."
        fix = replace_fix(f"write {literal}", start, end, literal)
        return "literal", _LITERALS[literal], Diagnostic("error", "syntax", message, start, end, fix)
    if _NON_FINITE.match(source):
        message = f"{source} is not a number that JSON can hold: write a finite number, or null."
        return (
            "literal",
            None,
            Diagnostic("error", "not-finite", message, start, end, replace_fix("write null", start, end, "null")),
        )
    number = _number(source)
    if number is not None:
        value, diagnostic = read_number(number, start)
        if diagnostic is None:
            message = f"{cut(source, 40)} is not how a number is written: write {number}."
            fix = replace_fix(f"write {number}", start, end, number)
            return "number", value, Diagnostic("error", "syntax", message, start, end, fix)
    right = quote(source)
    message = f"Strings need double quotes: write {right if len(right) <= 60 else 'them around this text'}."
    fix = replace_fix("put it in quotes", start, end, right)
    return "string", source, Diagnostic("error", "syntax", message, start, end, fix)


def _number(source: str) -> str | None:
    """JSON's way to write what other languages write as 007, +1, .5, 1., 1_000 or 0x1f."""
    if len(source) > LONGEST_NUMBER:
        return None
    if _HEXADECIMAL.match(source):
        return str(int(source, 16))
    if not _NUMBER_LIKE.match(source):
        return None
    plain = source.replace("_", "")
    sign = "-" if plain.startswith("-") else ""
    plain = plain.lstrip("+-")
    mantissa, mark, exponent = plain.replace("E", "e").partition("e")
    whole, point, fraction = mantissa.partition(".")
    whole = whole.lstrip("0") or "0"
    return sign + whole + (point + fraction if fraction else "") + mark + exponent


# Quotes inside a string that lack their backslash: `"say "hi" now"`


class RescuedString(Struct, frozen=True):
    """A string that continues after what looked like its end: value, end, index of the token after it, and the fix."""

    value: str
    end: int
    next_index: int
    fix: Fix


def unescaped(text: str, tokens: Sequence[Token], index: int) -> RescuedString | None:
    """Whether the string before the token at `index` continues there. Only a word right after a quote means that."""
    before, token = tokens[index - 1], tokens[index]
    if before.kind not in ("string", "key") or before.end != token.start or text[before.start] != '"':
        return None
    if token.kind in ("brace", "bracket", "comma", "colon") or text[token.start] in "\"'":
        return None
    line_end = _LINE.match(text, token.start, min(len(text), token.start + _FARTHEST))
    limit = line_end.end() if line_end else token.end
    quotes = [m.start() for m in _QUOTE.finditer(text, before.start + 1, limit) if m.group() == '"']
    end = next((at + 1 for at in quotes if at >= token.start and _CAN_FOLLOW.match(text, at + 1)), None)
    if end is None:
        return None
    next_index = index
    while next_index < len(tokens) and tokens[next_index].start < end:
        next_index += 1
    if tokens[next_index - 1].end != end:
        return None
    fix = Fix(ESCAPE_THE_QUOTES, tuple(TextEdit(at, at, "\\") for at in quotes if at < end - 1))
    value, _ = read_string(text, before.start, end)
    return RescuedString(value, end, next_index, fix)


# What Power UI adds to JSON: comment keys, switched-off parts, and texts exported as a list of lines


def finish_object(text: str, start: int, end: int, members: list[Member], report: Report) -> Node:
    """The node of an object; its comments are marked, names given twice are reported."""
    value: dict[str, Any] = {}
    latest: dict[str, int] = {}
    opened: Member | None = None
    for index, member in enumerate(members):
        key, node = member.key, member.value
        mark = key[:2]
        if mark in COMMENT_MARKS:
            member.commented = True
            if mark != "//":
                opened = member if mark == "/*" else None
        elif opened is not None or node.commented:
            member.commented = True
        else:
            if key in latest:
                report(_duplicate(text, start, members, latest[key]))
            latest[key] = index
            # The last of two counts, also where it has no value.
            if node.kind != "missing":
                value[key] = node.value
            else:
                value.pop(key, None)
    if opened is not None:
        message = 'This comments out the rest of the object: add "*/": "" where it should end.'
        last = members[-1].end
        whole = members[-1].end < end and members[-1].value.kind != "missing"
        fix = None if not whole else Fix('add "*/" at the end', (TextEdit(last, last, ', "*/": ""'),))
        report(Diagnostic("warning", "open-comment", message, opened.key_start, opened.key_end, fix))
    off = len(members) > 1 and members[0].key == "/*" and members[-1].key == "*/"
    return Node("object", start=start, end=end, value=value, members=tuple(members), commented=off)


def _duplicate(text: str, start: int, members: list[Member], index: int) -> Diagnostic:
    """The earlier member of two with one name has no effect: that is the one to remove."""
    member = members[index]
    fix = remove_member(text, start, members, index, "remove this one")
    name = quote(member.key)
    name = name if len(name) <= 60 else "This name"
    message = f"{name} appears again below, and the last one counts: remove this one."
    return Diagnostic("warning", "duplicate-key", message, member.key_start, member.key_end, fix)


def finish_array(start: int, end: int, items: list[Node], report: Report) -> Node:
    """The node of a list, or of the string that a list of lines stands for."""
    if items and items[0].kind == "string" and not items[0].items and items[0].value.startswith(MULTILINE):
        lines = items[1:]
        wrong = next((line for line in lines if line.kind != "string"), None)
        if wrong is None:
            text = delimiter_of(items[0].value).join([line.value for line in lines])
            return Node("string", start, end, text, (), tuple(items))
        message = "Every line of an exported text is a string: put this one in double quotes."
        report(Diagnostic("error", "wrong-type", message, wrong.start, wrong.end))
    value = [item.value for item in items if item.kind != "missing" and not item.commented]
    return Node("array", start, end, value, (), tuple(items))
