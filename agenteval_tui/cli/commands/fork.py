"""`agenteval fork`: continue a stored run from one of its steps, with something changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from agenteval_tui.analysis.forks import forks_asked, stored_forks
from agenteval_tui.analysis.save_fork import new_system_prompt, save_as_test, save_system_prompt
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.continuation_options import Asking, agree_to_price, continuation_options, permit_oracle
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.exit_codes import INTERRUPTED, PASSED
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import outcome_sign
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed
from agenteval_tui.core.private_files import read_small
from agenteval_tui.formats.documents.fork import forks_document
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.events import Event, Graded
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import Question, questions_of, requests_left, takes_tools
from agenteval_tui.runs.fork.sweep import read_sweep
from agenteval_tui.views.fork import forks_view, price_text
from agenteval_tui.views.fork_origin import agent_label, edit_text

_ROLES = ("user", "assistant", "system")


@click.command("fork", short_help="Continue a run from one of its steps, with something changed.")
@click.argument("reference", metavar="RUN", shell_complete=shell_completion.runs)
@declared(ForkRequest, "at")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Change the step's tool_result, tool_error, arguments (JSON) or text; @FILE takes it from a file.",
)
@click.option("--drop", is_flag=True, help="Leave the step out, with the calls and results that belong to it.")
@click.option("--insert", metavar="ROLE=TEXT", help="Add a message after the step; ROLE is user, assistant or system.")
@click.option("--system", metavar="TEXT", help="Use another system prompt; @FILE takes it from a file.")
@click.option(
    "--without-tool",
    "without_tools",
    multiple=True,
    metavar="NAME",
    help="Withhold one of the agent's tools; may be repeated.",
)
@click.option(
    "--sweep",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Try several changes: a YAML or JSON list, a branch for each entry (see the page `fork`).",
)
@declared(ForkRequest, "n", "-n")
@declared(ForkRequest, "agent", shell_complete=shell_completion.agents)
@click.option(
    "--save-test",
    metavar="ID",
    help="Afterwards, add the continued conversation to the run's suite, as a test with this id.",
)
@click.option(
    "--save-system", is_flag=True, help="Afterwards, save the changed system prompt in the agent's configuration."
)
@continuation_options(ForkRequest, document="the branches and their continuations")
@all_projects("--all")
@common_options
@pass_invocation
def command(invocation: Invocation, /, reference: str, **values: Any) -> int:
    """Continue RUN from a step, with something changed, and see what happens.

    RUN is the id of a run or a part of it, or a test's id (its newest run). The agent gets the conversation up to the
    step again: no tool is called twice, and recorded results are reused. Each continuation is graded by the
    run's criteria and stored as a run; forks do not count in rates, trends, baselines or gates. Stored answers are not
    asked for again, so you can run the same command again after a crash or Ctrl-C. Without a change and without --at,
    the run's stored forks are shown.

    The exit code is 0 if the agent answered, even if criteria failed, and 3 if every continuation ended in an error.
    """
    if values["insert"] is not None:
        role, equals, text = values["insert"].partition("=")
        if role not in _ROLES or not equals:
            raise click.BadParameter("write ROLE=TEXT; ROLE is user, assistant or system", param_hint="--insert")
        values["insert"] = {"role": role, "text": text}
    return _fork(invocation, reference, values)


def _fork(invocation: Invocation, reference: str, values: dict[str, Any]) -> int:
    """Run the continuations and print their outcomes. `values`: the options of the command. Returns the exit code."""
    asking, save_test, save_system = Asking.taken(values), values.pop("save_test"), values.pop("save_system")
    changes, sweep = _changes(values), values.pop("sweep")
    with invocation.store() as store:
        row = invocation.references(store).run(reference)
        if values["at"] is None and not changes and sweep is None and not values["agent"]:
            return _stored(invocation, store, row, as_json=asking.as_json)
        request = ForkRequest(
            row.id, changes=changes, sweep=() if sweep is None else tuple(read_sweep(sweep)), **values
        )
        transcript = store.transcript(row.id)
        questions = questions_of(transcript, request.at, request.changes, request.sweep)
        if request.agent:
            questions = [
                replace(question, label=agent_label(request.agent, question.edits, question.label))
                for question in questions
            ]
        shower = _Continuations(invocation, questions, silent=asking.as_json)
        oracle = Oracle(store, row, request, title=_title(row, questions), emit=shower.apply, agent=request.agent)
        # Each needs the other: continuations are named by the branches that the oracle counts.
        shower.oracle = oracle
        if not oracle.source.stored.run.specs:
            invocation.note("the run has no criteria, so every continuation that ends passes: see what they say")
        unseen = max((question.unseen for question in questions), default=0)
        only_told = max((question.only_told for question in questions), default=0)
        if (unseen or only_told) and not asking.as_json:
            without = f"without {count(unseen, 'message')}, or with a shorter text" if unseen else ""
            more = f"with {count(only_told, 'message')} that the transcript does not have" if only_told else ""
            invocation.note(f"sent as the model saw it: {'; '.join(filter(None, (without, more)))}")
        gone = dict.fromkeys(name for question in questions for name in question.conversation.unseen_tools)
        if gone and not asking.as_json:
            words = f"the model was not offered {listed(tuple(gone))} at this point"
            offered = takes_tools(oracle.source.agent)
            invocation.note(f"{words}, and is not now" if offered else f"{words}; this agent has its own tools")
        _check_saving(oracle, questions, save_test, save_system)
        permit_oracle(invocation, oracle, questions)
        # Only now, as it may start the agent's servers, which needs the permission.
        oracle.check_tools(questions)
        planned = oracle.plan(questions, request.n)
        takes = oracle.price(questions, request.n)
        requests = sum(
            len(runs) * requests_left(transcript.messages, question.conversation)
            for question, runs in zip(questions, planned.missing, strict=True)
        )
        if planned.runs:
            words = price_text(takes, requests)
            if asking.price:
                invocation.out.line(words)
                return 0
            if not agree_to_price(invocation, words, takes.whole_cost, asking, request.max_cost):
                return 0
        elif asking.price:
            invocation.out.line("nothing to ask: all these continuations are already stored")
            return 0
        outcomes, interrupted = run_to_end(_ask(oracle, questions, request.n))
        forks = forks_asked(store, row, outcomes, execution=oracle.execution_id, sent=oracle.asked)
        if asking.as_json:
            invocation.out.json(forks_document(forks))
        else:
            invocation.out.view(forks_view(forks))
        _keep(invocation, oracle, questions, save_test, save_system)
        if not asking.as_json and not invocation.quiet and oracle.execution_id:
            example = next((answer.run.id for branch in forks.branches for answer in branch.answers), "")
            if example:
                invocation.note(
                    f"agenteval show {short_id(row.id)} --diff {short_id(example)}{invocation.db_option} "
                    "compares it step by step"
                )
        if interrupted:
            return INTERRUPTED
        statuses = [answer.status for branch in forks.branches for answer in branch.answers]
        return INFRASTRUCTURE if statuses and set(statuses) == {"error"} else PASSED


def _stored(invocation: Invocation, store: Store, row: RunRow, *, as_json: bool) -> int:
    forks = stored_forks(store, row)
    if as_json:
        invocation.out.json(forks_document(forks))
        return 0
    invocation.out.view(forks_view(forks))
    if not forks.branches:
        invocation.note(
            f"there are no forks yet. To make one: agenteval fork {short_id(row.id)} --at STEP --set NAME=VALUE"
            f"{invocation.db_option}"
        )
    return 0


async def _ask(oracle: Oracle, questions: Sequence[Question], count: int) -> tuple[tuple[Outcomes, ...], bool]:
    with handle_interrupt(asyncio.get_running_loop(), oracle.stop) as interrupts:
        return await oracle.asking(questions, count), interrupts.count > 0


def _title(row: RunRow, questions: Sequence[Question]) -> str:
    what = edit_text(questions[0].edits[0]) if len(questions) == 1 and questions[0].edits else ""
    several = f"{len(questions)} branches" if len(questions) > 1 else what or f"from step {questions[0].step + 1}"
    return one_line(f"fork of {row.test_name or row.test_id}: {several}", 120)


def _check_saving(oracle: Oracle, questions: Sequence[Question], save_test: str | None, save_system: bool) -> None:
    """Raise `AgentevalError` if the fork can't be saved as the options say: before anything is asked and paid for."""
    if save_test and len(questions) > 1:
        raise AgentevalError("only one branch can be saved as a test", fix="give its change instead of --sweep")
    if save_system:
        new_system_prompt(oracle.source, questions[0].edits if len(questions) == 1 else ())


def _keep(
    invocation: Invocation, oracle: Oracle, questions: Sequence[Question], save_test: str | None, save_system: bool
) -> None:
    if save_test:
        loaded, test_id = save_as_test(
            oracle.source, questions[0].conversation, test_id=save_test, edits=questions[0].edits
        )
        invocation.err.line(f"saved as test {test_id} of {loaded.path}")
    if save_system:
        path = save_system_prompt(oracle.source, questions[0].edits if len(questions) == 1 else ())
        invocation.err.line(f"the system prompt of agent {oracle.source.agent.name} is saved in {path}")


# From options to questions


def _changes(values: dict[str, Any]) -> dict[str, Any]:
    """Takes the changes out of a command's options: by name (`edits.CHANGES`). Raises `AgentevalError`."""
    sets, drop, insert, system, without = (
        values.pop(name) for name in ("sets", "drop", "insert", "system", "without_tools")
    )
    changes: dict[str, Any] = dict(map(_assignment, sets))
    if system is not None:
        changes["system"] = _text_of(system)
    if insert is not None:
        changes["insert"] = {**insert, "text": _text_of(insert["text"])}
    if without:
        changes["without_tools"] = list(without)
    return {**changes, "drop": True} if drop else changes


def _assignment(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    settable = ("tool_result", "tool_error", "arguments", "text")
    if not equals or name not in settable:
        raise AgentevalError(
            f"--set takes NAME=VALUE, not {one_line(word, 60)!r}", fix=f"NAME is one of {', '.join(settable)}"
        )
    return name, _text_of(value)


def _text_of(value: str) -> str:
    """The text itself, or what a file says: @FILE."""
    if not value.startswith("@"):
        return value
    text = read_small(Path(value[1:]), "the file of a change")
    if text is None:
        raise AgentevalError("there is no such file", where=value[1:], fix="write the text itself, or @FILE")
    # An editor ends a file with a line end, which is no part of the text.
    return text.removesuffix("\n")


class _Continuations:
    """Prints each continuation when it ends."""

    def __init__(self, invocation: Invocation, questions: Sequence[Question], *, silent: bool) -> None:
        self.oracle: Oracle | None = None
        self._out = invocation.out
        self._questions = questions
        self._silent = silent or invocation.quiet

    def apply(self, event: Event) -> None:
        """Take in one event."""
        if self._silent or not isinstance(event, Graded) or self.oracle is None:
            return
        branch = self.oracle.branches.get(event.run, 0)
        question = self._questions[branch]
        named = f"{one_line(question.label or f'branch {branch + 1}', 40)}: " if len(self._questions) > 1 else ""
        sign, style = outcome_sign(event.outcome)
        failed = f"  {one_line(event.failed[0][0], 80)}" if event.failed else ""
        self._out.line((f"  {sign} ", style), f"{named}{event.outcome}", (failed, "dim"))
