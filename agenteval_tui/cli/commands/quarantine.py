"""`agenteval quarantine`: tests and criteria that run and are shown, and do not gate, until a day."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import Until, who_option
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.formats.documents.listings import Quarantines, listed_quarantine
from agenteval_tui.history import quarantines
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.scope import in_scope
from agenteval_tui.history.store import Store
from agenteval_tui.history.trends import TestName, tests_known
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.projects import project_of_keys
from agenteval_tui.views.quarantine import begun_text, ended_text, listed_view


@click.group("quarantine", invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Include those that have ended.")
@json_option
@all_projects()
@common_options
@click.pass_context
def command(context: click.Context, everything: bool, as_json: bool) -> int:
    """List the tests and criteria in quarantine: until their end date they run and show up (`~`), but do not gate.

    `agenteval run` leaves them out of `--fail-under` and of its exit code, and says so; so does an alert of `agenteval
    trends`. `agenteval flaky` suggests which tests may need it.
    """
    if context.invoked_subcommand is not None:
        return 0
    invocation = context.ensure_object(Invocation)
    return _list(invocation, everything, as_json)


@command.command("add")
@click.argument("test", shell_complete=shell_completion.tests)
@click.option("--criterion", default="", metavar="NAME", help="Only this criterion of the test.")
@click.option("--until", "until_ms", type=Until(), help="Until when: 14d (the default), 2w, or a day (2026-12-24).")
@click.option("--reason", "--note", default="", help="Why, in a few words.")
@who_option
@common_options
@pass_invocation
def add(invocation: Invocation, test: str, criterion: str, until_ms: int | None, reason: str, who: str) -> int:
    """Quarantine TEST (ID, or FILE::ID). A test that is already in quarantine gets the new date and reason."""
    with invocation.store() as store:
        name = find_test(store, test)
        _check_criterion(store, name, criterion)
        quarantine = Quarantine(
            name.suite_key,
            name.test_id,
            until_ms if until_ms is not None else quarantines.default_until(),
            criterion=criterion,
            reason=reason,
            who=who or current_user(),
            suite_name=name.suite,
            test_name=name.test,
        )
        quarantines.put(store, quarantine).result()
    invocation.out.line(("~ ", "warn"), begun_text(quarantine))
    return 0


@command.command("end")
@click.argument("test", shell_complete=shell_completion.tests)
@click.option("--criterion", default="", metavar="NAME", help="Only for this criterion of the test.")
@common_options
@pass_invocation
def end(invocation: Invocation, test: str, criterion: str) -> int:
    """End the quarantine of TEST (ID, or FILE::ID) now: it gates again."""
    with invocation.store() as store:
        name = find_test(store, test)
        quarantines.end(store, name.suite_key, name.test_id, criterion).result()
    invocation.out.line(ended_text(name.test_id, criterion))
    return 0


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Include those that have ended.")
@json_option
@all_projects()
@common_options
@pass_invocation
def listing(invocation: Invocation, everything: bool, as_json: bool) -> int:
    """List the tests and criteria in quarantine, like `agenteval quarantine`."""
    return _list(invocation, everything, as_json)


def _list(invocation: Invocation, everything: bool, as_json: bool) -> int:
    now = now_ms()
    with invocation.store(to_look=True) as store:
        listed = [quarantine for quarantine in quarantines.listed(store) if everything or quarantine.holds(now)]
    # Tests of no file (imported ones) are not known to be of another project.
    belong = {quarantine.suite_key: project_of_keys((quarantine.suite_key,)) for quarantine in listed}
    projects = invocation.projects
    own = [
        quarantine
        for quarantine in listed
        if not belong[quarantine.suite_key] or in_scope(belong[quarantine.suite_key], projects)
    ]
    if len(listed) > len(own):
        note = f"{len(listed) - len(own):,} of other projects not listed; {invocation.option_for_all} lists them too"
        invocation.note(note)
    if as_json:
        invocation.out.json(Quarantines(quarantines=tuple(listed_quarantine(quarantine, now) for quarantine in own)))
        return 0
    invocation.out.view(listed_view(own, now))
    return 0


def find_test(store: Store, reference: str) -> TestName:
    """The test that ID or FILE::ID names: one that the history knows, else one of the file. Raises AgentevalError."""
    file, separator, test_id = reference.rpartition("::")
    test_names = store.read(tests_known)
    if not separator:
        matching = [name for name in test_names if name.test_id == reference]
        if len(matching) > 1:
            listed = ", ".join(f"{name.suite_key}::{name.test_id}" for name in matching[:5])
            raise AgentevalError(f"several suites have a test {reference!r}: {listed}", fix="name it as FILE::ID")
        if matching:
            return matching[0]
        ids = [name.test_id for name in test_names]
        fix = did_you_mean(reference, ids, "name one that never ran as FILE::ID")
        raise AgentevalError(f"the history has no test {reference!r}", fix=fix)
    keys = {file, str(Path(file).resolve())}
    for name in test_names:
        if name.suite_key in keys and name.test_id == test_id:
            return name
    # A test may be put in quarantine before its first run, when the history does not know it.
    loaded = load_suite(Path(file))
    for test in loaded.suite.tests if loaded.suite is not None else ():
        if test.id == test_id:
            assert loaded.suite is not None
            return TestName(0, loaded.key, loaded.suite.name or "", test.id, test.name or test.id)
    raise AgentevalError(f"there is no test {test_id!r}", where=file, fix="agenteval validate FILE names its problems")


def _check_criterion(store: Store, test: TestName, criterion: str) -> None:
    """A name that is mistyped would hold for ever and do nothing."""
    if not criterion or not test.row:
        return
    summary = store.test_summaries(test.suite_key).get(test.test_id)
    names = list(summary.criteria) if summary is not None else []
    if names and criterion not in names:
        raise AgentevalError(
            f"{test.test_id} has no criterion {criterion!r}", fix=f"it has {', '.join(map(repr, names))}"
        )
