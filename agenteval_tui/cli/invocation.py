"""What every verb gets: the streams, the history, and the door to the app; and the options that all verbs have."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct, field

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.cli.output import Output
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.projects import ALL_BY_ENVIRONMENT, projects_open, shows_all

if TYPE_CHECKING:
    from agenteval_tui.history.references import References
    from agenteval_tui.history.store import Store

F = TypeVar("F", bound=Callable[..., Any])
_ALL_PROJECTS = "--all-projects"


class Invocation(Struct):
    """One call of the command line."""

    launch_app: Callable[[AppStart], int]
    db: Path | None = None
    debug: bool = False
    everywhere: bool = False
    quiet: bool = False
    verbose: bool = False
    out: Output = field(default_factory=lambda: Output(sys.stdout))
    err: Output = field(default_factory=lambda: Output(sys.stderr, needed=False))

    @property
    def db_option(self) -> str:
        """What printed commands need to find this history: ` --db FILE`, or nothing."""
        return directories.db_option(directories.history_file(self.db))

    def note(self, sentence: str) -> None:
        """Say on stderr what a person should know beside the result; with `--quiet` it is left out."""
        if not self.quiet:
            self.err.line(("note: ", "warn"), sentence)

    def detail(self, sentence: str) -> None:
        """Say on stderr what is read or done, with `--verbose` only."""
        if self.verbose and not self.quiet:
            self.err.line((sentence, "dim"))

    @contextmanager
    def store(self, *, to_look: bool = False) -> Iterator[Store]:
        """The history, open; `to_look`: a file that can't be written will do.

        What it has to say (a salvaged file, a newer version) goes to stderr.
        """
        from agenteval_tui.history.store import Store  # 40 ms, which `validate` and the help do not need

        path = directories.history_file(self.db)
        self.detail(f"history: {path}")
        self.detail(f"project: {', '.join(self.projects) or 'all'}")
        store = Store.open_to_look(path) if to_look else Store.open(path)
        try:
            for notice in store.notices:
                self.err.line(("note: ", "warn"), notice)
            yield store
        finally:
            store.close()

    def references(self, store: Store) -> References:
        """Finds what people name: runs, executions, tests."""
        from agenteval_tui.history.references import References  # as in `store`

        sentences: set[str] = set()

        def say(sentence: str) -> None:
            if sentence not in sentences:
                sentences.add(sentence)
                self.note(sentence)

        return References(store, self.projects, say, self.option_for_all)

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects whose runs a verb is about: that of the current folder; () for all. The demo's history
        has no others."""
        everything = self.everywhere or shows_all() or self.db == directories.demo_history()
        return () if everything else projects_open()

    @property
    def option_for_all(self) -> str:
        """What makes this verb look in all projects: its option, or a variable for those that have none."""
        context = click.get_current_context(silent=True)  # none in what serves many, over MCP say
        has_option = context is not None and any(_ALL_PROJECTS in param.opts for param in context.command.params)
        return _ALL_PROJECTS if has_option else ALL_BY_ENVIRONMENT

    def why_nothing(self, store: Store) -> str:
        """See `References.why_nothing`."""
        return self.references(store).why_nothing()


def on_a_terminal() -> bool:
    """Whether the app can be shown here: stdin, stdout and stderr are a terminal that is not dumb, or a page is
    (`agenteval serve`: the toolkit is told what to draw on)."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return True
    try:
        terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    except (AttributeError, ValueError):
        return False
    return terminal and os.environ.get("TERM", "") != "dumb"


def _sets(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """The callback of an option that is a field of the invocation."""

    def take(context: click.Context, _: click.Parameter, value: Any) -> None:
        # Such an option stands before the verb or behind it: one that is missing behind it must not undo the other.
        if not value:
            return
        invocation = context.ensure_object(Invocation)
        setattr(invocation, name, value)
        if invocation.quiet and invocation.verbose:
            raise AgentevalError("--quiet and --verbose can't be used together", fix="give only one")
        if invocation.quiet:
            invocation.out.live = invocation.err.live = False

    return take


def option_group(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Several options as one decorator; the help lists them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


common_options = option_group(
    (
        click.option(
            "-q",
            "--quiet",
            is_flag=True,
            expose_value=False,
            callback=_sets("quiet"),
            help="Print less: problems and the result, without progress, notes and hints.",
        ),
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            expose_value=False,
            callback=_sets("verbose"),
            help="Print more: every run, the files read, and the time taken.",
        ),
        click.option(
            "--debug",
            is_flag=True,
            expose_value=False,
            callback=_sets("debug"),
            help="Show a traceback when the program fails.",
        ),
        click.option(
            "--db",
            type=click.Path(dir_okay=False, path_type=Path),
            expose_value=False,
            callback=_sets("db"),
            help="The history file (default: AGENTEVAL_DB, else in your data folder).",
        ),
    )
)
"""`--quiet`, `--verbose`, `--debug` and `--db`, before the verb and behind it."""


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
"""`--json`, as `as_json`."""


def all_projects(*names: str) -> Callable[[F], F]:
    """`--all-projects`, and `names` for the same: of every project, not only of that of the current folder."""
    return click.option(
        _ALL_PROJECTS,
        *names,
        is_flag=True,
        expose_value=False,
        callback=_sets("everywhere"),
        help="Include all projects, not only the current folder's.",
    )


def typed_options(names: Collection[str]) -> list[str]:
    """Those of the command's options with these names that were given, as `--repeat`, whatever their values are."""
    context = click.get_current_context()
    options = (param for param in context.command.params if param.name is not None and param.name in names)
    return [
        option.opts[0] for option in options if context.get_parameter_source(option.name) is not ParameterSource.DEFAULT
    ]


def allow_one_of(*names: str) -> None:
    """Raise `AgentevalError` if several of the options with these names were given."""
    if len(options := typed_options(names)) > 1:
        raise AgentevalError(f"{' and '.join(options)} can't be used together", fix="give only one")


pass_invocation = click.make_pass_decorator(Invocation)
