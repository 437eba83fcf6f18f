"""`agenteval baseline`: set, clear and list what new executions are compared with."""

from __future__ import annotations

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import selected_tests
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.cli.prompts import can_ask, confirm
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count, moment
from agenteval_tui.formats.documents.comparison import listed_baseline
from agenteval_tui.history.baselines import (
    BaselineSet,
    TestKey,
    baselines,
    clear_baselines,
    set_baseline,
    set_baseline_run,
)
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.references import is_file


@click.group("baseline", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="List them as one JSON document.")
@all_projects("--all")
@common_options
@click.pass_context
def command(context: click.Context, as_json: bool) -> int:
    """Set, clear and list baselines: the runs of a test that later runs are compared with.

    Without a verb, list them.
    """
    if context.invoked_subcommand is not None:
        return 0
    return _list(context.ensure_object(Invocation), as_json)


@command.command("list")
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def listed(invocation: Invocation, as_json: bool) -> int:
    """List the baselines of all tests: which execution or run, and who set it when."""
    return _list(invocation, as_json)


@command.command("set")
@click.argument("reference", metavar="EXECUTION|RUN", default="last", shell_complete=shell_completion.references)
@selected_tests("Only for this test; may be repeated.")
@click.option("--who", metavar="NAME", help="Your name (default: AGENTEVAL_WHO, else your account).")
@all_projects("--all")
@common_options
@pass_invocation
def set_(invocation: Invocation, reference: str, tests: tuple[str, ...], who: str | None) -> int:
    """Make a finished execution (or a single run) the baseline of its tests; `last`, the default, is the newest.

    The id of a test means its runs in the newest execution that has it.

    This replaces a test's current baseline. Tests with only errors keep theirs.
    """
    with invocation.store() as store:
        references = invocation.references(store)
        name = current_user() if who is None else who
        named = references.test(reference)
        execution = references.execution(reference) if named is not None else references.either(reference)
        if isinstance(execution, RunRow):
            if tests:
                raise AgentevalError("a run belongs to one test: --test can't be given", fix="leave it out")
            _say(invocation.out, set_baseline_run(store, execution.id, who=name), f"run {execution.id}")
            return 0
        chosen: list[TestKey] | None = [named] if named is not None else None
        if tests and named is not None:
            raise AgentevalError(f"{reference} is already a test: --test can't be given", fix="leave it out")
        if tests:
            keys = {(row.suite_key, row.test_id) for row in store.runs_of_execution(execution.id)}
            lists = f"agenteval show {short_id(execution.id)}{invocation.db_option} lists its tests"
            chosen = _tests_named(keys, tests, f"execution {short_id(execution.id)}", lists)
        baseline_set = set_baseline(store, execution.id, tests=chosen, who=name)
        _say(invocation.out, baseline_set, f"execution {short_id(execution.id)}")
    return 0


@command.command("clear")
@click.argument("tests", nargs=-1, metavar="[TEST]...", shell_complete=shell_completion.tests)
@click.option("--all", "everything", is_flag=True, help="Clear the baselines of all tests in all projects.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_invocation
def clear(invocation: Invocation, tests: tuple[str, ...], everything: bool, yes: bool) -> int:
    """Clear the baselines of TESTs (ids), or of all tests. Asks first; the runs stay in the history."""
    if bool(tests) == everything:
        raise AgentevalError("say which baselines", fix="name tests, or give --all")
    with invocation.store() as store:
        keys = {(baseline.suite_key, baseline.test_id) for baseline in baselines(store)}
        if not keys:
            raise AgentevalError("no test has a baseline", fix="agenteval baseline set EXECUTION sets one")
        chosen = (
            sorted(keys)
            if everything
            else _tests_named(keys, tests, "the baselines", "`agenteval baseline list` lists them")
        )
        _ask(invocation, chosen, yes=yes)
        gone = clear_baselines(store, chosen)
    invocation.out.line(f"cleared the baseline of {count(gone, 'test')}")
    return 0


def _ask(invocation: Invocation, keys: list[TestKey], *, yes: bool) -> None:
    if yes:
        return
    suites = len({key for key, _ in keys})
    what = f"the baseline of {count(len(keys), 'test')} in {count(suites, 'suite')}"
    if not can_ask(invocation):
        raise AgentevalError(f"{what} would be cleared, and there is no terminal to ask in", fix="give --yes")
    names = ", ".join(one_line(test, 40) for _, test in keys[:5])
    if not confirm(invocation, f"Clear {what} ({names}{', …' if len(keys) > 5 else ''})?"):
        raise AgentevalError("nothing was cleared")


def _tests_named(keys: set[TestKey], tests: tuple[str, ...], where: str, lists: str) -> list[TestKey]:
    """The tests with these ids, ignoring case; `FILE::ID` where an id is in several suites. `lists`: what
    lists them, for who mistyped one. Raises `AgentevalError`."""
    chosen: list[TestKey] = []
    for reference in tests:
        file, _, name = reference.rpartition("::")
        matching = [key for key in keys if key[1].casefold() == name.casefold() and (not file or is_file(key[0], file))]
        if len(matching) != 1:
            hint = did_you_mean(name, [test for _, test in keys], lists)
            what = f"{reference!r} is in several suites" if matching else f"there is no test {reference!r}"
            raise AgentevalError(what, where=where, fix="name it as FILE::ID" if matching else hint)
        chosen += matching
    return chosen


def _say(out: Output, baseline_set: BaselineSet, what: str) -> None:
    out.line(("baseline set ", "good"), f"for {count(len(baseline_set.tests), 'test')}: {what}")
    if baseline_set.left_out:
        names = ", ".join(one_line(test, 40) for _, test in baseline_set.left_out[:5])
        out.line((f"no run has a verdict, so the old baseline stays: {names}", "warn"))


def _list(invocation: Invocation, as_json: bool) -> int:
    with invocation.store(to_look=True) as store:
        listed = baselines(store)
        if projects := invocation.projects:
            own = {row.id for row in store.execution_rows(store.execution_ids(RunFilter(projects=projects)))}
            all_listed, listed = listed, [baseline for baseline in listed if baseline.execution_id in own]
            if len(all_listed) > len(listed):
                others = count(len(all_listed) - len(listed), "baseline")
                invocation.note(f"{others} of other projects not listed; {invocation.option_for_all} lists them too")
    if as_json:
        invocation.out.json([listed_baseline(baseline) for baseline in listed])
        return 0
    if not listed:
        invocation.out.line("no test has a baseline; agenteval baseline set EXECUTION sets one")
    suite = ""
    for baseline in listed:
        if baseline.suite_key != suite:
            suite = baseline.suite_key
            invocation.out.line((one_line(baseline.suite_name), "bold"), (f"  {one_line(suite)}", "dim"))
        what = (
            f"run {baseline.run_id}"
            if baseline.run_id
            else f"{short_id(baseline.execution_id)}, {count(baseline.runs, 'run')}"
        )
        by = f" by {one_line(baseline.who, 30)}" if baseline.who else ""
        decided = baseline.runs - baseline.errors
        invocation.out.line(
            f"  {one_line(baseline.test_id, 40):<40} {baseline.passed}/{decided}  ",
            (f"{what}, set {moment(baseline.at_ms)}{by}", "dim"),
        )
    return 0
