"""The verbs of the command line: those of a table, and those of entry points, agenteval's own as a plug-in's."""

from __future__ import annotations

from importlib import import_module

import click

from agenteval_tui.cli.examples import examples_text
from agenteval_tui.cli.other_tools import verb_in_place_of
from agenteval_tui.core import entry_points
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.entry_points import COMMANDS
from agenteval_tui.core.errors import AgentevalError

# Each of these is a module of `cli.commands` with a click command `command`; it is imported when the verb is called.
# If a module has several, the name of its command follows a colon.
VERBS = {
    "init": ("init", "Find the agents of a folder, and write a first suite for the one you choose."),
    "run": ("run", "Run suites against their agents and grade what they do."),
    "ps": ("ps", "List the executions that are running."),
    "attach": ("attach", "Watch a running execution from its start; Ctrl-C leaves it running."),
    "cancel": ("control:cancel", "Cancel a running execution."),
    "pause": ("control:pause", "Pause an execution: it starts no new runs."),
    "continue": ("control:resume", "Continue a paused execution."),
    "record": ("record", "Run a program and record its model calls, or replay them."),
    "replay": ("record:replay", "Run a program on a run's recording; go live at the first changed request."),
    "debug": ("debug", "Run a test once in this terminal, to debug the agent's own code."),
    "resume": ("resume", "Run the rest of an execution that did not finish."),
    "validate": ("validate", "Check suites without running them; list every problem and its place."),
    "grade": ("grade", "Grade stored or given transcripts with criteria; call no agent."),
    "show": ("show", "Show an execution or a run: transcript, criteria, evidence."),
    "open": ("open_app", "Open the app at a run, one of its criteria, or an execution."),
    "report": ("report", "Write reports of a stored execution."),
    "why": ("why", "Explain why a run, or one of its criteria, failed."),
    "fork": ("fork", "Continue a run from one of its steps, with something changed."),
    "causes": ("causes", "Group failures by cause, worst first."),
    "triage": ("triage", "Decide once about a cause of failures; list the decisions."),
    "history": ("history", "List executions or runs, newest first, or search them."),
    "stats": ("stats", "Show pass rates with intervals, pass@k and pass^k, by test and overall."),
    "trends": ("trends", "Show pass rate, latency, tokens and cost over time; alert below a threshold."),
    "flaky": ("flaky", "List the flaky tests, worst first: how they vary, and why."),
    "quarantine": ("quarantine", "Let tests run without gating until a date; list and end quarantines."),
    "judge-report": (
        "judge_report",
        "Show how often judges and criteria agree with people, and what a judge was asked.",
    ),
    "label": ("label", "Label a run: passed, failed, 1 to 5, or feedback with a key and a score."),
    "make-test": ("make_test", "Make a test from a run or a trace, with suggested criteria."),
    "review": ("review", "List the runs that need a person."),
    "compare": ("compare", "Compare two executions, agents or variations: what got worse, and why."),
    "baseline": ("baseline", "Set, clear and list the baselines that new executions are compared with."),
    "name": ("name", "Name an execution, or change its note and metadata."),
    "criterion": ("criterion", "List, diff, compare and restore the versions of a criterion."),
    "import": ("import_", "Import runs and tests from Inspect, promptfoo, OpenTelemetry and others."),
    "export": ("export", "Export runs, or a suite's tests, in the formats of other tools."),
    "db": ("db", "Look after the history file: health, pruning, copies, salvage."),
    "agents": ("agents", "List the configured agents, and check that they respond."),
    "prices": ("prices", "Show what models cost and where the prices come from; update them."),
    "demo": ("demo", "Open the app on the sample suites; without a terminal, run them."),
    "completion": ("completion", "Print the script that completes verbs, options and ids in bash, zsh or fish."),
    "help": ("help", "Show the help of a verb, or of all verbs."),
    "docs": ("docs", "Read the documentation: list its pages, or print one."),
    "schema": ("schema", "Print the JSON Schema of a file or of an output."),
    "trust": ("trust", "Trust a repository once, list what is trusted, or revoke it."),
    "doctor": ("doctor", "Check terminal, history, configuration and agents."),
}
GROUPS = {
    "Test": ("run", "record", "replay", "debug", "resume", "fork", "shrink", "validate", "grade", "audit"),
    "Look": (
        *("show", "open", "why", "blame", "causes", "history", "stats", "trends", "flaky", "compare", "judge-report"),
        *("report", "share"),
    ),
    "Decide": ("triage", "quarantine", "label", "review", "suggest", "make-test", "baseline", "name", "criterion"),
    "Live": ("ps", "attach", "pause", "continue", "cancel", "listen"),
    "Data": ("import", "export", "db"),
    "Set up": (
        *("init", "demo", "demo-server", "agents", "prices", "trust", "doctor"),
        *("docs", "schema", "completion", "help"),
    ),
}
"""agenteval's own verbs by what they are for, in the order of the help. Those of extensions come last."""
PLUGINS = "From plug-ins"


def verb_groups() -> dict[str, tuple[str, ...]]:
    """agenteval's own verbs by group. One that no group names is in the last."""
    own = {*VERBS, *entry_points.own(COMMANDS)}
    listed = {group: tuple(name for name in names if name in own) for group, names in GROUPS.items()}
    ungrouped = own.difference(*GROUPS.values())
    return {**listed, "Set up": (*listed["Set up"], *sorted(ungrouped))}


def own_verbs() -> tuple[str, ...]:
    """agenteval's own verbs in the order of the help."""
    return tuple(name for names in verb_groups().values() for name in names)


def all_verbs() -> tuple[str, ...]:
    """All verbs in the order of the help. It looks through what is installed (core/entry_points.py: 30 ms)."""
    return (*own_verbs(), *(name for name in entry_points.names(COMMANDS) if not is_own(name)))


def is_own(name: str) -> bool:
    """Whether it is a verb of agenteval's own."""
    return name in VERBS or name in entry_points.own(COMMANDS)


def find_verb(name: str) -> click.Command | None:
    """The command of a verb, None if there is no such verb. Raises `AgentevalError` if two plug-ins offer it, or if an
    entry point does not name a command.
    """
    if name in VERBS:
        module, _, attribute = VERBS[name][0].partition(":")
        verb = getattr(import_module(f"agenteval_tui.cli.commands.{module}"), attribute or "command")
        assert isinstance(verb, click.Command)
        return _with_examples(name, verb)
    point = entry_points.find(COMMANDS, name)
    if point is None:
        return None
    fix = f"update or uninstall {point.package}"
    try:
        verb = point.load()
    # What a plug-in's module does when it is imported is unknown.
    except Exception as error:
        raise AgentevalError(f"the verb {name!r} can't be loaded: {error}", fix=fix) from error
    if not isinstance(verb, click.Command):
        raise AgentevalError(f"the verb {name!r} is a {type(verb).__name__} and not a click command", fix=fix)
    if not is_own(name):
        return verb
    verb.short_help = short_help(name)
    return _with_examples(name, verb)


def _with_examples(name: str, command: click.Command) -> click.Command:
    """The command, with its examples at the end of its help, and those of its parts."""
    examples = examples_text(name)
    # A command is one object in a process, and may be found again.
    if examples not in (command.epilog or ""):
        command.epilog = "\n\n".join(part for part in (command.epilog, examples) if part)
    for word, part in command.commands.items() if isinstance(command, click.Group) else ():
        _with_examples(f"{name} {word}", part)
    return command


def no_such_verb(name: str, what: str = "") -> AgentevalError:
    """The error of a verb that does not exist, with the one that may be meant."""
    if other := verb_in_place_of(name):
        return AgentevalError(f"there is no verb {name!r}{what}", fix=f"use `agenteval {other}`")
    hint = did_you_mean(name, all_verbs(), "agenteval --help lists all verbs")
    return AgentevalError(f"there is no verb {name!r}{what}", fix=hint)


def short_help(name: str) -> str:
    """The line of the help about a verb. Of agenteval's own no command is imported for it: that of an extension's verb
    is the docstring of its package."""
    if name in VERBS:
        return VERBS[name][1]
    if (target := entry_points.own(COMMANDS).get(name)) is not None:
        package = target.partition(":")[0].rpartition(".")[0]
        try:
            return (import_module(package).__doc__ or "").strip()
        except ImportError as error:
            return f"it can't be loaded: {error}"
    try:
        command = find_verb(name)
    except AgentevalError as error:
        return error.sentence
    return command.get_short_help_str(limit=200) if command is not None else ""
