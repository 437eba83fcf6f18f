"""Options of the command line, made of the records that declare them (`core.options`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from agenteval_tui.cli.param_types import FiniteNumber
from agenteval_tui.core.options import Option, Options, options_of

F = TypeVar("F", bound=Callable[..., Any])


def declared(kind: type[Options], name: str, *flags: str, **more: Any) -> Callable[[F], F]:
    """The option of a command for an option of a record; the function gets it by the record's name. `flags`: where it
    is not `--name`. `more` goes to click, such as a help of its own."""
    option = options_of(kind)[name]
    parameters: dict[str, Any] = {"help": option.help}
    if option.type is bool:
        parameters["is_flag"] = True
    else:
        parameters |= {"metavar": option.unit or None, "default": option.default, "show_default": _is_figure(option)}
        if option.type is int:
            bounds = option.least, option.most
            parameters["type"] = int if bounds == (None, None) else click.IntRange(*bounds)
        elif option.type is float:
            parameters["type"] = FiniteNumber(option.least, option.most, min_open=option.above)
    return click.option(*(flags or (f"--{name.replace('_', '-')}",)), name, **parameters | more)


def _is_figure(option: Option) -> bool:
    return option.type in (int, float) and bool(option.default)
