"""Whether the installed Textual is one whose private parts this program knows.

The modules beside this one replace some private methods of Textual and read some of its private attributes. Each of
them lists in `STANDS_ON` what it was written against, and asks here, once, when it is imported:

- `is_known`, for what only makes the terminal quicker (painting, the input thread, the text area). The version must be
  one of `READ`. With any other, Textual paints, waits and repaints in its own way, and all else is as before.
- `has`, for what keeps the program from breaking (sheets, late messages, the crash report). That works with every
  version that still has these methods and attributes.

`tests/tui/test_textual_support.py` compares the sources of all of it with those that were read. To add a
version to `READ`, let `tests/packaging/other_textual.py VERSION` pass first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import CodeType, MappingProxyType

import textual

READ = frozenset({"8.2.5", "8.2.6", "8.2.7", "8.2.8"})
"""The versions in which everything in `STANDS_ON` has the source that was read."""


@cache
def is_read() -> bool:
    """Is the installed version one of `READ`? Asked of the file system: `importlib.metadata` costs a start 15 ms."""
    site = Path(textual.__file__).parents[1]
    return any((site / f"textual-{version}.dist-info").is_dir() for version in sorted(READ, reverse=True))


def is_known(parts: Iterable[str], names: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Is the installed version one that was read, and has it all of these methods (`module:Class.method`)? `names`:
    methods with what their code must name, as for `has`."""
    return is_read() and all(map(has, parts)) and all(has(part, some) for part, some in names.items())


def has(part: str, names: str = "") -> bool:
    """Has Textual this method (`module:Class.method`), and does its code name these parameters and attributes?"""
    module, _, path = part.partition(":")
    try:
        method = attrgetter(path)(import_module(module))
        code = getattr(method, "__wrapped__", method).__code__  # some are cached
    except (ImportError, AttributeError):
        return False
    return isinstance(code, CodeType) and {*code.co_names, *code.co_varnames}.issuperset(names.split())
