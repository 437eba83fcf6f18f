"""The message for each syntax error, and the edit that fixes it."""

from __future__ import annotations

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.uxon.diagnostics import Diagnostic, replace_fix, surround_fix
from agenteval_tui.uxon.strings import quote
from agenteval_tui.uxon.tokens import Token

_LONGEST_SHOWN = 60


def syntax(message: str, start: int, end: int, fix: Fix | None = None) -> Diagnostic:
    """An error of syntax."""
    return Diagnostic("error", "syntax", message, start, end, fix)


def _shown_name(name: str | None) -> str:
    """A name as it is written, cut where it is long."""
    right = quote(name or "")
    return right if len(right) <= _LONGEST_SHOWN else right[: _LONGEST_SHOWN - 2] + '…"'


def _removal(token: Token) -> Fix:
    return replace_fix("remove it", token.start, token.end, "")


# ---------------------------------------------------------------------- the whole text
def empty(text: str, has_comments: bool) -> Diagnostic:
    end = len(text)
    fix = replace_fix("write { }", end, end, "\n{}" if has_comments else "{}")
    return Diagnostic("warning", "empty", "The config is empty: write { } with properties in it.", 0, end, fix)


def open_comment(comment: Token) -> Diagnostic:
    fix = replace_fix("close the comment", comment.end, comment.end, " */")
    return syntax("This comment is never closed: put */ at its end.", comment.start, comment.end, fix)


def missing_braces(first: Token, end: int) -> Diagnostic:
    fix = surround_fix("put { } around it", first.start, end, "{ ", " }")
    return syntax("A config is an object: put { } around it.", first.start, first.end, fix)


def early_end(start: int, end: int) -> Diagnostic:
    fix = replace_fix("remove this }", start, end, "")
    return syntax("This } ends the config before its last property: remove it.", end - 1, end, fix)


def text_behind(start: int, end: int, only_brackets: bool) -> Diagnostic:
    if only_brackets:
        fix = replace_fix("remove it", start, end, "")
        return syntax("There is nothing open for this to close: remove it.", start, end, fix)
    return syntax("The config ends before this: remove what follows, or move it inside.", start, end)


def too_deep(token: Token, most: int) -> Diagnostic:
    message = f"Objects and lists are nested deeper than {most} levels here: this part is not read."
    return syntax(message, token.start, token.end)


# ---------------------------------------------------------------------- names and values
def bare_name(source: str, start: int) -> Diagnostic:
    right, end = quote(source), start + len(source)
    write = right if len(right) <= _LONGEST_SHOWN else "them around this name"
    fix = replace_fix("put it in quotes", start, end, right)
    return syntax(f"Property names need double quotes: write {write}.", start, end, fix)


def missing_name(token: Token) -> Diagnostic:
    what = "colon" if token.kind == "colon" else "value"
    message = (
        f'Expected a property name before this {what}: write "name"{"" if what == "colon" else ":"} in front of it.'
    )
    return syntax(message, token.start, token.end)


def name_in_list(start: int, end: int) -> Diagnostic:
    return syntax("A list has values without names: put { } around the name and its value.", start, end)


def missing_value(name: str | None, start: int, end: int) -> Diagnostic:
    return syntax(f"{_shown_name(name)} has no value: write one after it, as in {_shown_name(name)}: ...", start, end)


def bare_template(source: str, start: int) -> Diagnostic:
    fix = replace_fix("put it in quotes", start, start + len(source), quote(source))
    message = f"{{{{ }}}} has to be inside a string: write {_shown_name(source)}."
    return syntax(message, start, start + len(source), fix)


def unescaped_quotes(start: int, end: int, fix: Fix) -> Diagnostic:
    return syntax('A quote inside a string needs a backslash: write \\" for each quote.', start, end, fix)


# ---------------------------------------------------------------------- colons and commas
def not_a_colon(token: Token, source: str) -> Diagnostic:
    fix = replace_fix("write :", token.start, token.end, ":")
    message = f"A colon separates a name from its value: write : for {source}."
    return syntax(message, token.start, token.end, fix)


def missing_colon(name: str | None, start: int, end: int) -> Diagnostic:
    return syntax(
        f"A colon is missing after {_shown_name(name)}: insert it.", start, end, replace_fix("insert :", end, end, ":")
    )


def extra_colon(token: Token) -> Diagnostic:
    return syntax("One : is enough: remove this one.", token.start, token.end, _removal(token))


def semicolon(token: Token) -> Diagnostic:
    fix = replace_fix("write a comma", token.start, token.end, ",")
    return syntax("A comma separates two values: write , for this ;.", token.start, token.end, fix)


def missing_comma(at: int) -> Diagnostic:
    """`at` is the end of what the comma should follow; its last character is marked."""
    return syntax("A comma is missing after this: insert it.", at - 1, at, replace_fix("insert a comma", at, at, ","))


def extra_comma(token: Token) -> Diagnostic:
    return syntax("One comma is enough: remove this one.", token.start, token.end, _removal(token))


def trailing_comma(at: int) -> Diagnostic:
    fix = replace_fix("remove the comma", at, at + 1, "")
    message = "A comma before a closing bracket is not strict JSON: remove it."
    return Diagnostic("warning", "trailing-comma", message, at, at + 1, fix)


# ---------------------------------------------------------------------- brackets
def wrong_closer(token: Token, source: str, right: str) -> Diagnostic:
    thing = "An object" if right == "}" else "A list"
    fix = replace_fix(f"write {right}", token.start, token.end, right)
    return syntax(f"{thing} ends with {right}, not with {source}: write {right}.", token.start, token.end, fix)


def missing_closers(token: Token, source: str, missing: str, at: int) -> Diagnostic:
    fix = replace_fix(f"insert {missing}", at, at, missing)
    return syntax(f"{missing} is missing before this {source}: insert it.", token.start, token.end, fix)


def unclosed(opening: int, missing: str, end: int) -> Diagnostic:
    """`missing` are all the brackets that the text lacks at its `end`; `opening` is where the innermost was opened."""
    fix = Fix(f"add {missing}", (TextEdit(end, end, missing),))
    many = "brackets are" if len(missing) > 1 else "bracket is"
    write = missing if len(missing) <= 20 else missing[:20] + "…"
    message = f"{len(missing)} closing {many} missing at the end: add {write}."
    return syntax(message, opening, opening + 1, fix)


def unexpected(token: Token, source: str) -> Diagnostic:
    why = " (nothing is open that it could close)" if source in ("}", "]") else ""
    message = f"{source} has no meaning here{why}: remove it."
    return syntax(message, token.start, token.end, _removal(token))
