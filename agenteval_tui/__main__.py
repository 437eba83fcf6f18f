"""The program's entrance: `agenteval`, or `python -m agenteval_tui`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.core.platforms import ON_WINDOWS, WINDOWS
from agenteval_tui.core.standard_streams import open_missing_descriptors

if TYPE_CHECKING:
    # With its records it would double the time of `--version`, for which nothing is imported.
    from agenteval_tui.cli.app_start import AppStart

INTERRUPTED = 130
WRONG_USE = 2


def main(argv: list[str] | None = None) -> int:
    """Do what the arguments say (None: the program's own); gives the exit code. Never raises."""
    if sys.platform == WINDOWS:
        # Before anything is imported that only Unix has.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            print(f"agenteval: {ON_WINDOWS}", file=sys.stderr, flush=True)
        return WRONG_USE
    try:
        open_missing_descriptors()
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _last_resort(error)


def _main(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        # Asked for by scripts and shells, often: nothing else is imported for it.
        from agenteval_tui.core.version import __version__

        return _print(lambda: print(f"agenteval {__version__}", flush=True))
    if arguments[:1] == ["__complete"]:
        # What a shell asks for needs neither streams that are prepared nor messages.
        from agenteval_tui.cli.complete import main as complete

        return _print(lambda: complete(arguments[1:]))
    collect_less_often()
    from agenteval_tui.cli.main import main as command_line

    return command_line(arguments, launch_app=_launch)


def _print(show: Callable[[], object]) -> int:
    """The exit code of a command that only prints, without the modules that other commands need for that."""
    try:
        show()
    except (BrokenPipeError, ValueError):  # nobody reads, or the stream is closed
        code = 0
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):
            print(f"agenteval: the output can't be written: {error.strerror or error}", file=sys.stderr, flush=True)
        code = 3  # as `core.errors.INFRASTRUCTURE`, which is not imported for this
    else:
        return 0
    # What Python still holds would fail again at exit.
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def _last_resort(error: Exception) -> int:
    """Report in one line an error that no other code caught; exit code 1 would mean that a test failed."""
    from agenteval_tui.core.errors import INFRASTRUCTURE, program_error

    message = f"{type(error).__name__}: {error}"
    with contextlib.suppress(Exception):
        from agenteval_tui.core import directories
        from agenteval_tui.core.private_files import log_error

        message = program_error(error, log_error(error, "starting or ending", directories.data_dir()))
    with contextlib.suppress(OSError, ValueError):
        print(f"agenteval: {message}", file=sys.stderr, flush=True)
    for name in ("stdout", "stderr"):
        # Python would try again at its end, and make its own exit code of it.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), getattr(sys, name).fileno())
    return INFRASTRUCTURE


def _launch(start: AppStart) -> int:
    from agenteval_tui.tui.app import run_app

    return run_app(start)


if __name__ == "__main__":
    sys.exit(main())
