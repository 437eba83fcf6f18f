"""Options of an activity, each declared once in a record: its type, default, limits and help.

A record checks itself when it is made, so no caller can start work with a value outside the limits. The command line's
options, the fields of sheets and the schemas of MCP tools are made of the same declarations (`options_of`).
"""

from __future__ import annotations

import math
import re
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import typed_whole

MOST_REPETITIONS = 100_000
"""How often a test runs in one execution, at most."""
MOST_CONCURRENCY = 10_000
"""Runs at the same time, at most."""

_LONGEST = 40  # characters of a wrong value that are shown
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?")  # any other comma may stand for a decimal point
_OF_UNIT = {"USD": " of US dollars", "SECONDS": " of seconds", "TIME": " of seconds"}


class OptionError(AgentevalError):
    """An option that can't be followed. `option` is its name in the record."""

    def __init__(self, option: str, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.option = option


def limits(help: str, unit: str = "", **bounds: Any) -> Meta:
    """The declaration of an option, for `Annotated`: its help, what the command line calls its value ("USD" and
    "SECONDS" are also named in errors), and its limits (`ge`, `gt`, `le`)."""
    return Meta(description=help, extra={"unit": unit}, **bounds)


class Option(Struct, frozen=True):
    """An option as its record declares it. `type` is int, float, bool, str, ...; `least` and `most` are None where
    there is no limit, and `least` itself is too small where `above` is true."""

    name: str
    type: Any
    default: Any
    optional: bool
    help: str = ""
    unit: str = ""
    least: Any = None
    above: bool = False
    most: Any = None

    @property
    def range(self) -> str:
        """The values that are taken, such as `a whole number from 1 to 1,000`."""
        number = "a whole number" if self.type is int else f"a number{_OF_UNIT.get(self.unit, '')}"
        least = "" if self.least is None else f" {'above' if self.above else 'from'} {self.least:,}"
        return f"{number}{least}{'' if self.most is None else f' to {self.most:,}'}"

    def check(self, value: Any) -> None:
        """Raise `OptionError` for a number outside the limits, and for what is not a number where one is declared."""
        if self.type not in (int, float) or (value is None and self.optional):
            return
        is_number = isinstance(value, int if self.type is int else int | float) and not isinstance(value, bool)
        if is_number and (isinstance(value, int) or math.isfinite(value)):
            small = self.least is not None and (value <= self.least if self.above else value < self.least)
            if not small and (self.most is None or value <= self.most):
                return
        raise self.error(value)

    def error(self, value: object, label: str = "") -> OptionError:
        """What is said of a wrong value. `label`: what people read where the option is asked for."""
        try:
            text = one_line(str(value), _LONGEST)
        except ValueError:  # Python writes no number of more than 4,300 digits
            text = "a longer one"
        return OptionError(self.name, f"{label or self.name} must be {self.range}, not {text or 'empty'}")

    def read(self, text: str, label: str = "") -> Any:
        """The number that a person typed; an empty text is None where that is allowed. `label`: as in `error`. Raises
        `OptionError`."""
        typed = text.strip().removeprefix("$" if self.unit == "USD" else "").replace("_", "").strip()
        if _THOUSANDS.fullmatch(typed):
            typed = typed.replace(",", "")
        if not typed and self.optional:
            return None
        try:
            value = typed_whole(typed) if self.type is int else float(typed)
            self.check(value)
        except (ValueError, OptionError):
            raise self.error(text, label) from None
        if value is None:
            raise self.error(text, label)
        return value


class Options(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The base of a record of options. Making one, and `replace`, raise `OptionError` for a value outside limits."""

    def __post_init__(self) -> None:
        for name, option in options_of(type(self)).items():
            option.check(getattr(self, name))


@cache
def options_of(kind: type[Options]) -> dict[str, Option]:
    """The declared options of a record, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {info.name: _option(info.name, hints[info.name], info.default) for info in fields(kind)}


def _option(name: str, hint: Any, default: object) -> Option:
    # Limits are on the number itself, as msgspec wants them: `Annotated[int, limits(...)] | None`.
    optional = get_origin(hint) in (Union, UnionType)
    declared = next(part for part in get_args(hint) if part is not type(None)) if optional else hint
    kind, meta = get_args(declared)[:2] if get_origin(declared) is Annotated else (declared, Meta())
    least = meta.ge if meta.ge is not None else meta.gt
    unit = (meta.extra or {}).get("unit", "")
    start = None if default is NODEFAULT else default
    return Option(
        name,
        kind,
        start,
        optional,
        help=meta.description or "",
        unit=unit,
        least=least,
        above=meta.gt is not None,
        most=meta.le,
    )
