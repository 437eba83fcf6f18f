"""Whether the installed Textual has the private parts that this program replaces or reads.

Three modules beside this one need some: `minimal_redraw` (to write only the cells that differ), `mounting` and `sheet`
(so that what comes too late does not break the app) and `terminal_app`. Each asks here, once, when it is imported. With
a Textual that has renamed a part, Textual paints, or ends, in its own way, and all else is as before.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from types import CodeType


def has(part: str, names: str = "") -> bool:
    """Has Textual this method (`module:Class.method`), and does its code name these parameters and attributes?"""
    module, _, path = part.partition(":")
    try:
        method = attrgetter(path)(import_module(module))
        code = getattr(method, "__wrapped__", method).__code__  # some are cached
    except (ImportError, AttributeError):
        return False
    return isinstance(code, CodeType) and {*code.co_names, *code.co_varnames}.issuperset(names.split())
