"""What a shell offers for an option or an argument: names and ids of the history and of the suites here.

Each function is for click's `shell_complete`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.core import directories
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.completion_names import KnownNames
from agenteval_tui.suites.completion_names import WrittenNames

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Named = tuple[str, str]
"""A name or an id, and what it is."""


def choice(names: Callable[[], Iterable[str]]) -> Completion:
    """One of these names, which are asked for when a shell completes."""
    return lambda context, parameter, typed: [CompletionItem(name) for name in names() if name.startswith(typed)]


def files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """A file."""
    return [CompletionItem(typed, type="file")]


def folders(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """A folder."""
    return [CompletionItem(typed, type="dir")]


def executions(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """An execution, or `last`."""
    last = _names([("last", "the newest execution")], typed)
    return [*last, *_ids(_history(context).executions(), typed)]


def executions_and_files(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """An execution, or a file."""
    return [*executions(context, parameter, typed), *files(context, parameter, typed)]


def sides(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """One side of a comparison: an execution, or the baseline."""
    return [*_names([("baseline", "")], typed), *executions(context, parameter, typed)]


def running(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """An execution that is running."""
    return _ids(_history(context).executions(running=True), typed)


def runs(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """A run, or a test for its newest run."""
    return [*tests(context, parameter, typed), *_ids(_history(context).runs(), typed)]


def references(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """An execution, a test or a run."""
    return [*executions(context, parameter, typed), *runs(context, parameter, typed)]


def tests(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """A test."""
    return _names([*_written().tests(), *_history(context).tests()], typed)


def agents(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """An agent."""
    users = directories.config_dir() / "agents.yaml"
    return _names([*_written(users).agents(), *_history(context).agents()], typed)


def variations(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """A variation."""
    return _names([*_written().variations(), *_history(context).variations()], typed)


def arms(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """What two sides of a run are told apart by: an agent or a variation."""
    return [*agents(context, parameter, typed), *variations(context, parameter, typed)]


def tags(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """A tag."""
    return _names(_written().tags(), typed)


def _history(context: click.Context) -> KnownNames:
    invocation = context.ensure_object(Invocation)
    return KnownNames(directories.history_file(invocation.db), invocation.projects)


def _written(agents_file: Path | None = None) -> WrittenNames:
    return WrittenNames(Path(), agents_file)


def _names(named: Iterable[Named], typed: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=about) for name, about in named if name.startswith(typed)]


def _ids(named: Iterable[Named], typed: str) -> list[CompletionItem]:
    """Ids by their short forms, and whole where that is what somebody types. Ids have capital letters only."""
    prefix = typed.upper()
    forms = ((next((id_ for id_ in (short_id(uid), uid) if id_.startswith(prefix)), ""), about) for uid, about in named)
    return [CompletionItem(form, help=about) for form, about in forms if form]
