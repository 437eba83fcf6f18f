"""`agenteval open`: the app at one place: a run, a criterion of it, an execution, a test."""

from __future__ import annotations

import click

from agenteval_tui.cli.invocation import Invocation, common_options, on_a_terminal, pass_invocation
from agenteval_tui.cli.start import AppStart
from agenteval_tui.text.problems import AgentevalError


@click.command("open")
@click.argument("address")
@common_options
@pass_invocation
def command(invocation: Invocation, address: str) -> int:
    """Open the app at ADDRESS: a run or an execution (an id or its beginning, `last`), or RUN/CRITERION as `y` copies
    it on the Inspect screen."""
    start = _found(invocation, address)
    if not on_a_terminal():
        raise AgentevalError(
            "the app needs a terminal, and this is none", mend=f"`agenteval show {start.target}` prints it"
        )
    return invocation.launch_app(start)


def _found(invocation: Invocation, address: str) -> AppStart:
    """Where the app opens. Raises `AgentevalError` when there is no such run or execution."""
    reference, _, criterion = address.partition("/")
    from agenteval_tui.cli.show import find

    with invocation.store(to_look=True) as store:
        execution, run = (None, store.run(reference)) if criterion else find(store, reference)
    if run is not None:
        return AppStart(db=invocation.db, screen="inspect", target=run.id, criterion=criterion)
    assert execution is not None
    return AppStart(db=invocation.db, screen="history", target=execution.id)
