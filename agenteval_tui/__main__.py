"""The program's entrance: `agenteval`, or `python -m agenteval_tui`."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenteval_tui.cli.start import AppStart


def main(argv: list[str] | None = None) -> int:
    """Do what the arguments say (None: the program's own); gives the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["--version"]:
        # Asked for by scripts and shells, often: nothing else is imported for it.
        from agenteval_tui import __version__

        print(f"agenteval {__version__}")
        return 0
    _without_plugins_of_pydantic()
    # Imports make many objects that stay; to look through them for garbage again and again is a tenth of a short verb.
    gc.set_threshold(100_000, 20, 20)
    from agenteval_tui.cli.main import main as command_line

    return command_line(arguments, launch_app=_launch)


def _without_plugins_of_pydantic() -> None:
    """pydantic would look through all that is installed for plug-ins of its own, and run them: none is wanted here.

    Its module that looks for them loads `importlib.metadata` with most of `email` when the first model is built, a
    tenth of a short verb. One that finds none stands in for it; where pydantic has no such module, nobody asks for this
    one. The variable that pydantic reads would do neither: programs of agents would inherit it.
    """
    none = ModuleType("pydantic.plugin._loader")
    vars(none)["get_plugins"] = tuple
    sys.modules.setdefault(none.__name__, none)


def _launch(start: AppStart) -> int:
    from agenteval_tui.tui.app import run_app

    # What was imported stays, and is never looked through again; what is new, in pieces that delay no key.
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    return run_app(start)


if __name__ == "__main__":
    sys.exit(main())
