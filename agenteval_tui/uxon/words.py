"""Bare words where a value should be: what was meant, and how it is written."""

from __future__ import annotations

import re
from typing import Any

from agenteval_tui.uxon.diagnostics import Diagnostic, replace_fix
from agenteval_tui.uxon.strings import quote

_LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null", "nil": "null", "undefined": "null"}
_VALUES: dict[str, Any] = {"true": True, "false": False, "null": None}
_NON_FINITE = re.compile(r"[+-]?(nan|inf|infinity)\Z", re.IGNORECASE)
_NUMBER_LIKE = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number as JSON writes it."""
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}\Z")
_LONGEST_NUMBER = 400  # digits; longer ones are no numbers that a config means


def read_number(source: str, start: int) -> tuple[int | float | None, Diagnostic | None]:
    """The value of a JSON number; None with a diagnostic when no computer number can hold it."""
    end = start + len(source)
    whole = source.lstrip("-").isdecimal()
    if whole and len(source) <= _LONGEST_NUMBER:
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
    literal = _LITERALS.get(source.lower())
    if literal is not None:
        message = f"Expected a value: {_shown(source)} is written {literal} here."
        fix = replace_fix(f"write {literal}", start, end, literal)
        return "literal", _VALUES[literal], Diagnostic("error", "syntax", message, start, end, fix)
    if _NON_FINITE.match(source):
        message = f"{source} is no number that JSON can hold: write a finite number, or null."
        return (
            "literal",
            None,
            Diagnostic("error", "not-finite", message, start, end, replace_fix("write null", start, end, "null")),
        )
    number = _number(source)
    if number is not None:
        value, diagnostic = read_number(number, start)
        if diagnostic is None:
            message = f"{_shown(source)} is not how a number is written: write {number}."
            fix = replace_fix(f"write {number}", start, end, number)
            return "number", value, Diagnostic("error", "syntax", message, start, end, fix)
    right = quote(source)
    message = f"Strings stand in double quotes: write {right if len(right) <= 60 else 'them around this text'}."
    fix = replace_fix("put it in quotes", start, end, right)
    return "string", source, Diagnostic("error", "syntax", message, start, end, fix)


def _number(source: str) -> str | None:
    """JSON's way to write what other languages write as 007, +1, .5, 1., 1_000 or 0x1f."""
    if len(source) > _LONGEST_NUMBER:
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


def _shown(source: str) -> str:
    return source if len(source) <= 40 else source[:39] + "…"
