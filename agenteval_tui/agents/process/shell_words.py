"""A text for a shell as its simple commands: which words, and which files its redirections write to."""

from __future__ import annotations

import re
from glob import escape

from msgspec import Struct, field

_OPERATOR = re.compile(r"\d*(?:<<<|<<-|<<|<>|<&|<|>>|>&|>\||>)|&>>|&>|;;|&&|\|\||\|&|[;&|()\n]")
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", ">&"))
_ENDS = frozenset(" \t\n;&|<>()")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)*")
_VARIABLE = re.compile(r"\$(?:\w+|[@*#?$!-]|\{[^{}'\"`$\\]*\})")
_BRACES = re.compile(r"\{[^{}]*\}")
_DEEPEST = 20  # `$(…)` in one another


class NotFollowedError(Exception):
    """The text has something whose files can't be told by reading it."""


class Word(Struct, frozen=True):
    """A word of a command: `text` without quotes, `raw` as it is written (of a `$(…)` in it, only the `$`).

    `fixed`: the shell puts nothing in the place of a part of it. Where it is not, `pattern` is what it can become, for
    `fnmatch`; "" for a word that is one variable as a whole: where its value is given, it counts as a word.
    """

    text: str
    raw: str
    fixed: bool = True
    pattern: str = ""


class _Part(Struct, frozen=True):
    """A part of a word, as in `Word`."""

    text: str
    raw: str
    pattern: str
    fixed: bool = True


_QUOTE = _Part("", '"', "")


class SimpleCommand(Struct):
    """Words of one command, targets of its redirections to files, and what else is there: sources, comments."""

    words: list[Word] = field(default_factory=list)
    written: list[Word] = field(default_factory=list)
    others: list[Word] = field(default_factory=list)


def simple_commands(text: str) -> list[SimpleCommand]:
    """Every simple command of a text for `sh` or `bash`, those in `$(…)` too, in no particular order.

    Raises `NotFollowedError` for what is not understood for sure: here-documents, backticks, arithmetic, functions,
    `case`, process substitution, open quotes.
    """
    reader = _Reader(text)
    reader.read(inner=False)
    return [one for one in reader.found if one.words or one.written or one.others]


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = self._depth = 0
        self.found: list[SimpleCommand] = []

    def read(self, *, inner: bool) -> None:
        """Up to the end of the text; `inner`: up to the `)` that closes this."""
        current, depth = self._next(), 0
        while True:
            self._at = _matched(_BLANK, self._text, self._at)
            if self._at >= len(self._text):
                if inner or depth:
                    raise NotFollowedError
                return
            if self._text[self._at] == "#":
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                current.others.append(Word(self._text[self._at + 1 : end], self._text[self._at : end]))
                self._at = end
                continue
            match = _OPERATOR.match(self._text, self._at)
            if match is None:
                current.words.append(self._word())
                continue
            self._at = match.end()
            name = match[0].lstrip("0123456789")
            if name in ("<<", "<<-"):
                raise NotFollowedError
            if "<" in name or ">" in name:
                self._at = _matched(_BLANK, self._text, self._at)
                (current.written if name in _WRITES else current.others).append(self._word())
                continue
            if name == "(":
                if current.words:
                    raise NotFollowedError  # a function
                depth += 1
            elif name == ")":
                if not depth:
                    if inner:
                        return
                    raise NotFollowedError
                depth -= 1
            current = self._next()

    def _next(self) -> SimpleCommand:
        made = SimpleCommand()
        self.found.append(made)
        return made

    def _word(self) -> Word:
        begin, parts = self._at, list[_Part]()
        while self._at < len(self._text) and (char := self._text[self._at]) not in _ENDS:
            if char == "'":
                end = self._text.find("'", self._at + 1)
                if end < 0:
                    raise NotFollowedError
                part = self._text[self._at + 1 : end]
                parts.append(_Part(part, self._text[self._at : end + 1], escape(part)))
                self._at = end + 1
            elif char == '"':
                self._quoted(parts)
            elif char == "\\":
                if self._at + 1 >= len(self._text):
                    raise NotFollowedError
                self._escaped(parts)
            elif char in "$`":
                self._expansion(parts)
            else:
                parts.append(_Part(char, char, char, char not in "*?[{"))
                self._at += 1
        if self._at == begin:
            raise NotFollowedError
        text, raw = "".join(one.text for one in parts), "".join(one.raw for one in parts)
        if text in ("[", "[[", "{") or all(one.fixed for one in parts):
            return Word(text, raw)
        alone = [one.pattern for one in parts if one.raw != '"'] == ["*"] and parts[-1].raw != "*"
        pattern = "" if alone else _BRACES.sub("*", "".join(one.pattern for one in parts))
        return Word(text, raw, False, pattern)

    def _quoted(self, parts: list[_Part]) -> None:
        """A part in double quotes."""
        parts.append(_QUOTE)
        self._at += 1
        while True:
            if self._at >= len(self._text):
                raise NotFollowedError
            char = self._text[self._at]
            if char == '"':
                parts.append(_QUOTE)
                self._at += 1
                return
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "$", "`", "\\", "\n"):
                self._escaped(parts)
            elif char in "$`":
                self._expansion(parts)
            else:
                parts.append(_Part(char, char, escape(char)))
                self._at += 1

    def _escaped(self, parts: list[_Part]) -> None:
        char = self._text[self._at + 1].strip("\n")
        parts.append(_Part(char, self._text[self._at : self._at + 2], escape(char)))
        self._at += 2

    def _expansion(self, parts: list[_Part]) -> None:
        variable = _VARIABLE.match(self._text, self._at)
        if variable is not None:
            parts.append(_Part(variable[0], variable[0], "*", False))
            self._at = variable.end()
            return
        self._depth += 1
        begin = self._text[self._at : self._at + 3]
        if not begin.startswith("$(") or begin == "$((" or self._depth > _DEEPEST:
            raise NotFollowedError
        self._at += 2
        self.read(inner=True)
        self._depth -= 1
        parts.append(_Part("$", "$", "*", False))


def _matched(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()
