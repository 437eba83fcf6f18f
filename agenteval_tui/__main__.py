"""The program's entrance: `agenteval`, or `python -m agenteval_tui`."""

from __future__ import annotations

import gc
import os
import sys
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
    # pydantic would look through all that is installed for plug-ins of its own, and run them: none is wanted here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Imports make many objects that stay; to look through them for garbage again and again is a tenth of a short verb.
    gc.set_threshold(20_000, 20, 20)
    from agenteval_tui.cli.main import main as command_line

    return command_line(arguments, launch_app=_launch)


def _launch(start: AppStart) -> int:
    from agenteval_tui.tui.app import run_app

    return run_app(start)


if __name__ == "__main__":
    sys.exit(main())
