"""The command line: finds the verb, runs it, and says every error in one sentence."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from agenteval_tui.cli.invocation import Invocation, common_options, on_a_terminal
from agenteval_tui.cli.output import Output, prepare_streams
from agenteval_tui.cli.start import AppStart
from agenteval_tui.core import directories
from agenteval_tui.core.errors import INFRASTRUCTURE, WRONG_USE, AgentevalError, path_error, program_error
from agenteval_tui.core.private_files import log_error
from agenteval_tui.history.lock_wait import listen_for_waits

INTERRUPTED = 130

# Each verb is a module of `cli.commands` with a click command `command`; it is imported when the verb is called.
# Where a module has several, the name of its command stands behind a colon.
VERBS = {
    "init": ("init", "Write a first suite that runs at once, and say what to do next."),
    "run": ("run", "Run suites against their agents and grade what they do."),
    "ps": ("ps", "List the executions that are running."),
    "attach": ("attach", "Watch a running execution from its start; Ctrl-C leaves it running."),
    "cancel": ("control:cancel", "Cancel a running execution."),
    "pause": ("control:pause", "Pause an execution: it starts no new runs."),
    "continue": ("control:resume", "Continue a paused execution."),
    "resume": ("resume", "Run the rest of an execution that did not finish."),
    "validate": ("validate", "Check suites without running them; list every problem and its place."),
    "grade": ("grade", "Grade stored or given transcripts with criteria; call no agent."),
    "show": ("show", "Show an execution or a run: transcript, criteria, evidence."),
    "open": ("open_app", "Open the app at a run, a criterion of it, or an execution."),
    "report": ("report", "Write reports of a stored execution."),
    "why": ("why", "Say why a run (or one criterion of it) failed."),
    "causes": ("causes", "Group failures by their cause, worst first."),
    "triage": ("triage", "Decide about a cause of failures once; list the decisions."),
    "audit": ("audit", "Test whether criteria would notice wrong answers, by mutating stored runs."),
    "history": ("history", "List executions or runs, newest first; search in them."),
    "stats": ("stats", "Show pass rates with intervals, pass@k and pass^k, by test and overall."),
    "trends": ("trends", "Show pass rate, latency, tokens and cost over time; alert below a threshold."),
    "flaky": ("flaky", "List the flaky tests, worst first: how they vary, and why."),
    "quarantine": ("quarantine", "Let tests run without gating until a date; list and release them."),
    "judge-report": ("judge_report", "Show how far judges and criteria agree with people; what a judge was asked."),
    "label": ("label", "Label a run with a person's verdict: passed, failed, or 1 to 5."),
    "review": ("review", "List the runs that need a person."),
    "compare": ("compare", "Compare two executions, agents or variations: what got worse, and why."),
    "baseline": ("baseline", "Set, clear and list the baselines that new executions are compared with."),
    "criterion": ("criterion", "List, diff, compare and restore the versions of a criterion."),
    "import": ("import_", "Import runs and tests from Inspect, promptfoo, OpenTelemetry and others."),
    "export": ("export", "Export runs, or a suite's tests, in the formats of other tools."),
    "db": ("db", "Look after the history file: health, pruning, copies, salvage."),
    "agents": ("agents", "List the configured agents, and check that they respond."),
    "demo": ("demo", "Open the app on the sample suites; without a terminal, run them."),
    "serve": ("serve", "Serve the app to a browser, by default on this machine only."),
    "demo-server": ("demo_server", "Serve the bundled agent as an OpenAI-compatible server on this machine."),
    "schema": ("schema", "Print the JSON Schema of a file or of an output."),
    "trust": ("trust", "List the folders that may run programs; trust one, or forget it."),
    "doctor": ("doctor", "Check terminal, history, configuration and agents."),
}

EPILOG = (
    "Without a verb the app opens: agenteval [PATH]... takes suite files or folders. "
    "Exit codes: 0 all passed; 1 something failed, a gate was not reached, or a limit stopped it; "
    "2 wrong use or an invalid suite; "
    "3 an agent or this machine failed; 130 interrupted."
)


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        found = getattr(import_module(f"agenteval_tui.cli.commands.{module}"), name or "command")
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The help of all verbs without importing them.
        with formatter.section("Verbs"):
            formatter.write_dl([(name, about) for name, (_, about) in VERBS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        paths = _leading_paths(args)
        ctx.meta["paths"] = paths
        return super().parse_args(ctx, args[: len(args) - len(paths)] if paths else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], VERBS, n=1)
            hint = f"did you mean {near[0]}?" if near else "agenteval --help lists all verbs"
            raise AgentevalError(f"there is no verb {args[0]!r}, and no such file or folder", mend=hint)
        return super().resolve_command(ctx, args)


def _leading_paths(args: list[str]) -> list[str]:
    """`agenteval [--db F] PATH...`: the paths at the end, when what follows the options is no verb but exists."""
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] == "--db" else 1
    rest = args[at:]
    return rest if rest and rest[0] not in VERBS and all(Path(one).exists() for one in rest) else []


@click.command(
    cls=_Verbs, invoke_without_command=True, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--version", is_flag=True, help="Print the version and exit.")
@common_options
@click.pass_context
def agenteval(context: click.Context, version: bool) -> int:
    """The debugger for agent tests, in the terminal.

    It runs suites of tests against an agent, keeps every run, and shows why a criterion failed.
    """
    invocation = context.ensure_object(Invocation)
    if version:
        from agenteval_tui import __version__

        invocation.out.line(f"agenteval {__version__}")
        context.exit(0)
    if context.invoked_subcommand is not None:
        return 0
    paths = tuple(Path(path) for path in context.meta.get("paths", ()))
    if not on_a_terminal():
        invocation.out.line(context.get_help())
        raise AgentevalError(
            "the app needs a terminal, and this is none", mend="give a verb, such as `agenteval run PATH`"
        )
    return invocation.launch_app(AppStart(paths=paths, db=invocation.db))


def main(argv: list[str] | None, *, launch_app: Callable[[AppStart], int]) -> int:
    """Do what `argv` (None: the program's own arguments) says; gives the exit code. Never raises."""
    prepare_streams()
    invocation = Invocation(launch_app)
    arguments = sys.argv[1:] if argv is None else argv
    try:
        with listen_for_waits(lambda said: _say(invocation.err, said)):
            return _run(invocation, arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        for stream in (invocation.err, invocation.out):
            with contextlib.suppress(AgentevalError):  # said, or on the way out with another error
                stream.flush()


def _run(invocation: Invocation, arguments: list[str]) -> int:
    debug = "--debug" in arguments
    try:
        result: Any = agenteval.main(args=arguments, prog_name="agenteval", standalone_mode=False, obj=invocation)
        invocation.out.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as ended:
        return int(ended.exit_code)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as wrong:
        _say(invocation.err, _usage(wrong, arguments))
        return WRONG_USE
    except AgentevalError as error:
        if debug and error.__cause__ is not None:
            _trace(invocation.err)
        _say_error(invocation.err, error)
        return error.exit_code
    except BrokenPipeError:
        return 0
    except Exception as error:
        if debug:
            _trace(invocation.err)
        of_path = path_error(error)
        if of_path is not None:
            _say_error(invocation.err, of_path)
            return of_path.exit_code
        path = log_error(error, f"agenteval {' '.join(arguments[:1])}", directories.data_dir())
        _say(invocation.err, program_error(error, path))
        return INFRASTRUCTURE


def _say(err: Output, text: str) -> None:
    err.line(("agenteval: ", "bad"), " ".join(text.split()))


def _say_error(err: Output, error: AgentevalError) -> None:
    """One sentence, whatever is quoted in it; only a remedy that is a list has lines of its own."""
    _say(err, error.sentence)
    for line in error.remedies:
        err.line(line)


def _usage(wrong: click.ClickException, arguments: Sequence[str]) -> str:
    said = wrong.format_message().rstrip(".")
    context = getattr(wrong, "ctx", None)
    verb = next((one for one in arguments if one in VERBS), "")  # click does not say whose option lacks its value
    where = context.command_path if context is not None else f"agenteval {verb}".rstrip()
    return f"{said[:1].lower()}{said[1:]} (`{where} --help` shows what there is)"


def _trace(err: Output) -> None:
    import traceback

    err.line(traceback.format_exc().rstrip())
