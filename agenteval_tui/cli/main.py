"""The command line: finds the verb, runs it, and says every error in one sentence."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.cli.invocation import Invocation, common_options, on_a_terminal
from agenteval_tui.cli.other_tools import option_in_place_of
from agenteval_tui.cli.output import Output, prepare_streams
from agenteval_tui.cli.verbs import PLUGINS, all_verbs, find_verb, is_own, no_such_verb, short_help, verb_groups
from agenteval_tui.core import directories
from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import INFRASTRUCTURE, WRONG_USE, AgentevalError, path_error, program_error
from agenteval_tui.core.numbers import duration
from agenteval_tui.core.private_files import log_error
from agenteval_tui.core.version import __version__
from agenteval_tui.history.lock_wait import listen_for_waits
from agenteval_tui.suites.discover import is_suite_name

INTERRUPTED = 130

EPILOG = (
    "Without a verb the app opens: agenteval [PATH]... takes suite files or folders. "
    "`agenteval help VERB` shows the options of a verb, with examples. "
    "Exit codes: 0 all passed; 1 something failed, a gate was not reached, or a limit stopped it; "
    "2 wrong use or an invalid suite; "
    "3 an agent or this machine failed; 130 interrupted."
)


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(all_verbs())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            return find_verb(cmd_name)
        except AgentevalError:
            if ctx.resilient_parsing:  # a shell completes: there nothing is said
                return None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = verb_groups()
        plugins = tuple(name for name in all_verbs() if not is_own(name))
        longest = max(len(name) for names in (*groups.values(), plugins) for name in names)
        for group, names in {**groups, PLUGINS: plugins}.items():
            if names:
                with formatter.section(group):
                    # Padded, so that what the verbs do begins in one column in all groups.
                    formatter.write_dl([(f"{name:<{longest}}", short_help(name)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """A verb, an option, or a path for the app. click's own would import every verb for its help."""
        verbs = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        verbs = [name for name in verbs if is_own(name) or self.get_command(ctx, name) is not None]
        return [
            *(CompletionItem(name, help=short_help(name)) for name in verbs),
            *click.Command.shell_complete(self, ctx, incomplete),
            CompletionItem(incomplete, type="file"),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        paths = _leading_paths(args)
        ctx.meta["paths"] = paths
        return super().parse_args(ctx, args[: len(args) - len(paths)] if paths else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not is_own(args[0]) and find_verb(args[0]) is None:
            if Path(args[0]).exists():
                if any(word.startswith("-") for word in args):
                    raise AgentevalError("put options before the paths", fix="agenteval [OPTIONS] PATH...")
                missing = next(word for word in args if not Path(word).exists())
                raise AgentevalError("there is no such file or folder", where=missing, fix="check the path")
            raise no_such_verb(args[0], ", and no such file or folder")
        return super().resolve_command(ctx, args)


def _leading_paths(args: list[str]) -> list[str]:
    """`agenteval [--db F] PATH...`: the paths at the end, when the word after the options is not a verb but exists.

    A path comes before a plug-in's verb: to look for plug-ins takes 30 ms, for which the app's first frame would wait.
    """
    rest = args[_options_end(args) :]
    return rest if rest and not is_own(rest[0]) and all(Path(path).exists() for path in rest) else []


def _options_end(arguments: Sequence[str]) -> int:
    """Where the verb is, or the first path: behind the options that stand before it."""
    end = 0
    while end < len(arguments) and arguments[end].startswith("-"):
        # The one option before a verb that takes a word of its own.
        end += 2 if arguments[end] == "--db" else 1
    return end


def _verb(arguments: Sequence[str]) -> str:
    return "".join(arguments[_options_end(arguments) :][:1])


@click.command(
    cls=_Verbs, invoke_without_command=True, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("-V", "--version", is_flag=True, help="Print the version and exit.")
@common_options
@click.pass_context
def agenteval(context: click.Context, version: bool) -> int:
    """The debugger for agent tests, in your terminal.

    It runs suites of tests against an agent, keeps every run, and shows why a criterion failed.
    """
    invocation = context.ensure_object(Invocation)
    if version:
        invocation.out.line(f"agenteval {__version__}")
        context.exit(0)
    if context.invoked_subcommand is not None:
        return 0
    paths = tuple(Path(path) for path in context.meta.get("paths", ()))
    for path in paths:
        if path.is_file() and not is_suite_name(path.name):
            # As in `_name_foreign_files`.
            from agenteval_tui.formats.foreign_file import foreign_file

            if foreign_file(path) is not None:
                raise AgentevalError("this is not a suite", where=str(path))
    if not on_a_terminal():
        invocation.out.line(context.get_help())
        raise AgentevalError(
            "the app needs a terminal, and this is not one", fix="give a verb, such as `agenteval run PATH`"
        )
    return invocation.launch_app(AppStart(paths=paths, db=invocation.db))


def main(argv: list[str] | None, *, launch_app: Callable[[AppStart], int]) -> int:
    """Do what `argv` (None: the program's own arguments) says; gives the exit code. Never raises."""
    prepare_streams()
    began = time.perf_counter()
    invocation = Invocation(launch_app)
    arguments = sys.argv[1:] if argv is None else argv
    try:
        with listen_for_waits(lambda said: _say(invocation.err, said)):
            code = _run(invocation, arguments)
            if code == WRONG_USE:
                _name_foreign_files(invocation.err, arguments)
            return code
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        invocation.detail(f"took {duration(1000 * (time.perf_counter() - began))}")
        for stream in (invocation.err, invocation.out):
            with contextlib.suppress(AgentevalError):  # said, or on the way out with another error
                stream.flush()


def _run(invocation: Invocation, arguments: list[str]) -> int:
    try:
        result: Any = agenteval.main(args=arguments, prog_name="agenteval", standalone_mode=False, obj=invocation)
        invocation.out.flush()
        # A plug-in's command may give anything, or nothing.
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as ended:
        return int(ended.exit_code)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as wrong:
        _say(invocation.err, _usage(wrong, arguments))
        return WRONG_USE
    except AgentevalError as error:
        if invocation.debug and error.__cause__ is not None:
            _trace(invocation.err)
        _say_error(invocation.err, error)
        return error.exit_code
    # Whoever reads has had enough, as with `| head`: that is no error.
    except BrokenPipeError:
        return 0
    except Exception as error:
        if invocation.debug:
            _trace(invocation.err)
        if isinstance(error, OSError) and error.filename is None and error.errno == errno.ENOSPC:
            # click's own pages don't go through `Output`. What Python still holds would fail again at exit.
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            _say(invocation.err, f"the output can't be written: {error.strerror}")
            return INFRASTRUCTURE
        of_path = path_error(error)
        if of_path is not None:
            _say_error(invocation.err, of_path)
            return of_path.exit_code
        path = log_error(error, f"agenteval {_verb(arguments)}", directories.data_dir())
        _say(invocation.err, program_error(error, path))
        return INFRASTRUCTURE


def _name_foreign_files(err: Output, arguments: Sequence[str]) -> None:
    """Of files that are another tool's: whose, and what reads them."""
    if _verb(arguments) in ("import", "grade", "record", "replay", "export", "report", "share"):
        return  # they read or write such files, or their words are another program's
    paths = [Path(word) for word in arguments if not word.startswith("-")]
    with contextlib.suppress(OSError, ValueError, AgentevalError):  # what is wrong was said
        if any(path.exists() for path in paths):
            # The formats take 60 ms to import, and a right command needs none.
            from agenteval_tui.formats.foreign_file import one_for_each_page

            for foreign_file in one_for_each_page(paths):
                err.line(f"{foreign_file.path} is {foreign_file.what}, not a suite:")
                for remedy in foreign_file.remedies:
                    err.line(f"  {remedy}")


def _say(err: Output, text: str) -> None:
    err.line(("agenteval: ", "bad"), " ".join(text.split()))


def _say_error(err: Output, error: AgentevalError) -> None:
    """One sentence, whatever is quoted in it; only a remedy that is a list has lines of its own."""
    _say(err, error.sentence)
    for line in error.remedies:
        err.line(line)


def _usage(wrong: click.ClickException, arguments: Sequence[str]) -> str:
    context = getattr(wrong, "ctx", None)
    verb = _verb(arguments)  # click does not say whose option lacks its value
    where = context.command_path if context is not None else f"agenteval {verb if verb in all_verbs() else ''}".rstrip()
    own = (
        {option for parameter in context.command.params for option in parameter.opts} if context is not None else set()
    )
    if isinstance(wrong, click.NoSuchOption):
        near, other = closest(wrong.option_name, sorted(own)), option_in_place_of(wrong.option_name, verb, own)
        hint = f"use {other}; " if other else f"did you mean {near}? " if near else ""
        return f"there is no option {wrong.option_name} ({hint}`{where} --help` shows all options)"
    # click says the choices of a missing argument in a sentence of their own, and where the option is no word.
    message = wrong.format_message().rstrip(".").replace(". Choose from:", ": choose from")
    return f"{message[:1].lower()}{message[1:]} (`{where} --help` shows the options)"


def _trace(err: Output) -> None:
    err.line(traceback.format_exc().rstrip())
