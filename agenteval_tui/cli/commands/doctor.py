"""`agenteval doctor`: is everything here as it should be?"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click

from agenteval_tui.cli.commands.agents import check_all, configured_beside
from agenteval_tui.cli.invocation import Invocation, common_options, json_option, pass_invocation
from agenteval_tui.cli.output import Output, Style
from agenteval_tui.cli.verbs import VERBS, own_verbs
from agenteval_tui.core import directories, entry_points, installed_packages
from agenteval_tui.core.display import command_line
from agenteval_tui.core.entry_points import (
    ACTIONS,
    API,
    COMMANDS,
    DOCTOR_CHECKS,
    DOCUMENTS,
    MCP_ASKING_TOOLS,
    MCP_TOOLS,
    PACKINGS,
    TEST_CRITERIA,
    EntryPoint,
)
from agenteval_tui.core.errors import INFRASTRUCTURE, AgentevalError
from agenteval_tui.core.ids import new_id
from agenteval_tui.core.installed_packages import installed, version_of
from agenteval_tui.core.numbers import count, duration, file_size
from agenteval_tui.core.private_files import read_small
from agenteval_tui.core.terminal_sequences import way_to_clipboard
from agenteval_tui.core.version import __version__
from agenteval_tui.formats.documents.listings import Doctor, DoctorCheck
from agenteval_tui.formats.web_hook import check_web_hook, host_of
from agenteval_tui.history.maintenance import Health, check_health
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.live_registry import live_dir, socket_path
from agenteval_tui.suites.agents_file import agents_path, read_agents_file
from agenteval_tui.suites.notify_file import load_notify_settings
from agenteval_tui.suites.trust import Trust

State = Literal["ok", "warning", "error"]
_MARKS: dict[State, tuple[str, Style]] = {"ok": ("✓", "good"), "warning": ("!", "warn"), "error": ("✗", "bad")}
_SMALLEST = (80, 24)
_OTHER_NAME = "start this program with agenteval-tui, or with `python -m agenteval_tui`"
_SEQUENCES = {
    "osc9": "sent to the terminal (OSC 9)",
    "osc777": "sent to the terminal (OSC 777)",
    "osc99": "sent to the terminal (OSC 99)",
    "bell": "the bell",
    "off": "none",
}
_BY_MOUSE = "select text with the mouse (in most terminals with shift held), and copy it there"


@click.command("doctor")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@json_option
@common_options
@pass_invocation
def command(invocation: Invocation, paths: tuple[Path, ...], as_json: bool) -> int:
    """Check Python, the command itself, terminal, history, configuration, trusted repositories, extras, the sockets of
    running executions, sample suites, and the agents (also of the suites at PATHS).

    Exit code 3 if something is broken; anything less is a warning.
    """
    checks = list(_checks(invocation, paths))
    if as_json:
        invocation.out.json(Doctor(checks=tuple(checks)))
    else:
        for check in checks:
            _print(invocation.out, check)
    return INFRASTRUCTURE if any(check.state == "error" for check in checks) else 0


def _print(out: Output, check: DoctorCheck) -> None:
    out.line(_MARKS[check.state], f" {check.name:<14} {' '.join(check.message.split())}")
    if check.fix and check.state != "ok":
        out.line(f"{'':<17}", (check.fix, "dim"))


def _checks(invocation: Invocation, paths: Sequence[Path]) -> Iterator[DoctorCheck]:
    implementation = platform.python_implementation()
    yield DoctorCheck(
        "version", "ok", f"agenteval {__version__}, {implementation} {platform.python_version()} ({sys.platform})"
    )
    yield from _command()
    yield from _terminal(invocation.out)
    yield _history(directories.history_file(invocation.db))
    yield _configuration()
    yield _own_keys()
    yield _notifications(invocation.out)
    yield _trusted()
    yield _extra_mcp()
    yield _extra_keyring()
    yield from _extensions()
    yield from _plug_ins()
    yield _executions()
    yield from _agents(paths)


def _command() -> Iterator[DoctorCheck]:
    """Whether `agenteval` starts this program: other packages install a command of that name, too."""
    states = installed_packages.command_states()
    owners = list(installed_packages.other_owners())
    for state in states:
        if not state.starts_ours:
            who = next((package for package, name in owners if name == state.name), "another package")
            message = f"`{state.name}` starts {who}, which replaced our script: {state.path}"
            yield DoctorCheck("command", "warning", message, _OTHER_NAME)
        elif state.shadowed:
            message = f"another `{state.name}` comes first on PATH: {state.first}; this one is {state.path}"
            yield DoctorCheck(
                "command", "warning", message, f"put {Path(state.path).parent} first on PATH, or: {_OTHER_NAME}"
            )
    replaced = {state.name for state in states if not state.starts_ours}
    for package, name in owners:
        if name not in replaced:
            message = f"{package} installs `{name}` too: its next update replaces ours"
            yield DoctorCheck("command", "warning", message, f"keep them in two environments, or: {_OTHER_NAME}")
    if place := installed_packages.their_module():
        message = f"`import agenteval` gives another package's module: {place}"
        yield DoctorCheck("command", "warning", message, "in Python: import agenteval_tui as agenteval")


def _error_check(name: str, error: AgentevalError) -> DoctorCheck:
    """What can't be read; what to do about it has a line of its own."""
    place = f"{error.where}: " if error.where else ""
    return DoctorCheck(name, "error", f"{place}{error.what}", error.fix)


def _terminal(out: Output) -> Iterator[DoctorCheck]:
    term = os.environ.get("TERM", "")
    if not out.is_terminal:
        yield DoctorCheck("terminal", "ok", f"none here (the output is not a terminal); TERM is {term or 'not set'}")
        return
    columns, lines = shutil.get_terminal_size()
    around = [name for name, is_here in _surroundings() if is_here]
    message = f"TERM={term or 'not set'}, {columns}x{lines}, {_colours()}"
    message += f", inside {' and '.join(around)}" if around else ""
    if term in ("", "dumb"):
        yield DoctorCheck("terminal", "warning", message, "the app needs a terminal that is not dumb; verbs work")
    elif columns < _SMALLEST[0] or lines < _SMALLEST[1]:
        yield DoctorCheck("terminal", "warning", message, f"the app needs at least {_SMALLEST[0]}x{_SMALLEST[1]}")
    else:
        yield DoctorCheck("terminal", "ok", message)
    yield _clipboard()
    if out.ascii_only:
        fix = "set LANG to a UTF-8 locale, such as C.UTF-8"
        yield DoctorCheck("characters", "warning", "the terminal's encoding is not UTF-8", fix)


def _clipboard() -> DoctorCheck:
    """How `y` in the app copies, and who may refuse it."""
    way = way_to_clipboard(os.environ)
    if way == "tmux":
        if shutil.which("tmux") is None:
            return DoctorCheck(
                "clipboard", "warning", "inside tmux, but there is no tmux command to copy with", _BY_MOUSE
            )
        return DoctorCheck("clipboard", "ok", "copies go to tmux's buffer; tmux passes them on to the terminal")
    if way == "screen":
        return DoctorCheck(
            "clipboard", "ok", "copies go through screen to the terminal (OSC 52), which may ignore them"
        )
    return DoctorCheck("clipboard", "ok", "copies go to the terminal (OSC 52), which may ignore them")


def _surroundings() -> list[tuple[str, bool]]:
    environment = os.environ
    return [
        ("tmux", "TMUX" in environment),
        ("screen", "STY" in environment),
        ("ssh", "SSH_CONNECTION" in environment or "SSH_TTY" in environment),
    ]


def _colours() -> str:
    if os.environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if os.environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "16 million colours"
    return "256 colours" if "256" in os.environ.get("TERM", "") else "16 colours"


def _history(path: Path) -> DoctorCheck:
    # To open it would make it, and a check changes nothing.
    if not path.exists():
        folder = next((parent for parent in path.parents if parent.exists()), path.parent)
        if not os.access(folder, os.W_OK):
            return DoctorCheck("history", "error", f"{path}: the folder can't be written", "give --db or AGENTEVAL_DB")
        return DoctorCheck("history", "ok", f"{path}: nothing stored yet")

    try:
        health = check_health(path)
    except AgentevalError as error:
        return _error_check("history", error)
    return _history_state(path, health)


def _history_state(path: Path, health: Health) -> DoctorCheck:
    runs = count(health.rows.get("runs", 0), "run")
    message = f"{path}: {runs}, {file_size(health.size + health.log_size)}, version {health.version}"
    if health.problems:
        fix = "start agenteval: it moves a damaged file aside and saves what can be read"
        return DoctorCheck("history", "error", f"{message}; damaged: {health.problems[0]}", fix)
    if health.wrong:
        return DoctorCheck(
            "history",
            "warning",
            f"{message}; {health.wrong[0]}",
            f"agenteval db check{directories.db_option(path)} says what to do",
        )
    if health.version > health.newest_version:
        return DoctorCheck("history", "warning", f"{message}, made by a newer agenteval: read-only", "update agenteval")
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        return DoctorCheck(
            "history", "warning", f"{message}; it can't be written", "give yourself write permission, or use --db"
        )
    return DoctorCheck("history", "ok", message)


def _configuration() -> DoctorCheck:
    folder = directories.config_dir()
    path = agents_path(folder)
    if not path.exists():
        return DoctorCheck("configuration", "ok", f"{folder} (no agents.yaml in it)")
    try:
        agents, problems = read_agents_file(path)
    except AgentevalError as error:
        return _error_check("configuration", error)
    if problems:
        first = problems[0]
        return DoctorCheck("configuration", "error", f"{first.where}: {first.message}", first.fix or "")
    return DoctorCheck("configuration", "ok", f"{path}: {count(len(agents), 'agent')}")


def _own_keys() -> DoctorCheck:
    """Keys of the app that a person has changed. Whether the actions exist is said by the app, which knows them."""
    path = directories.config_dir() / "keys.yaml"
    import yaml

    try:
        text = read_small(path, "the list of keys")
        if text is None:
            return DoctorCheck("keys", "ok", f"there is no {path}: `agenteval docs keys` lists the default keys")
        keys = yaml.load(text, Loader=yaml.SafeLoader)
    except AgentevalError as error:
        return _error_check("keys", error)
    except (yaml.YAMLError, RecursionError) as error:
        return DoctorCheck(
            "keys", "error", f"{path} can't be read: {error}", "write `action: keys`, as `suites.run: ctrl+r`"
        )
    if keys is not None and not isinstance(keys, dict):
        return DoctorCheck(
            "keys", "error", f"{path} does not map actions to keys", "write `action: keys`, as `suites.run: ctrl+r`"
        )
    return DoctorCheck(
        "keys", "ok", f"{path}: {count(len(keys or {}), 'action')} in it; the app reports problems when it starts"
    )


def _notifications(out: Output) -> DoctorCheck:
    """How the terminal is told that an execution has ended."""
    try:
        settings = load_notify_settings(directories.config_dir(), os.environ)
        sequence = settings.sequence(os.environ)
        if settings.webhook:
            check_web_hook(settings.webhook, "`webhook` of notify.yaml")
    except AgentevalError as error:
        return _error_check("notifications", error)
    hook = f"; the app posts to {host_of(settings.webhook)}" if settings.webhook else ""
    if not out.is_terminal:
        return DoctorCheck("notifications", "ok", f"none here (the output is not a terminal){hook}")
    long = "" if sequence == "off" else f", when an execution took {settings.after:g} s or more"
    return DoctorCheck("notifications", "ok", f"{_SEQUENCES[sequence]}{long}{hook}")


def _trusted() -> DoctorCheck:
    trust = Trust.load()
    if trust.problem:
        return DoctorCheck(
            "trust", "error", trust.problem, f"remove {trust.path}, and trust the repositories that you know again"
        )
    listed = trust.listed()
    if not listed:
        return DoctorCheck("trust", "ok", "no repository is trusted: programs of suites need --trust to run")
    gone = [entry for entry in listed if not Path(entry.folder).is_dir()]
    message = f"{count(len(listed), 'repository')} trusted"
    if not gone:
        return DoctorCheck("trust", "ok", message)
    message += f", {len(gone):,} no longer there"
    return DoctorCheck("trust", "warning", message, command_line("agenteval", "trust", "--revoke", gone[0].folder))


def _extra_mcp() -> DoctorCheck:
    """Whether agents can use tools of MCP servers."""
    if not installed("mcp"):
        return DoctorCheck("mcp", "ok", "not installed: no tools of MCP servers (pip install 'agenteval-tui[mcp]')")
    return DoctorCheck("mcp", "ok", f"version {version_of('mcp')}: agents can use tools of MCP servers")


def _extra_keyring() -> DoctorCheck:
    """Whether keys can come from the system's keyring. Only asked which one it is: no key is read."""
    if not installed("keyring"):
        message = "not installed: keys come from the environment or .env (pip install 'agenteval-tui[keyring]')"
        return DoctorCheck("keyring", "ok", message)
    try:
        import keyring

        backend = keyring.get_keyring()
        usable = float(backend.priority) > 0
    except Exception as error:  # backends are plug-ins of others
        fix = "keys still come from the environment or .env"
        return DoctorCheck("keyring", "warning", f"the system's keyring does not answer: {error}", fix)
    if not usable:
        return DoctorCheck(
            "keyring", "ok", "installed, but this system has no keyring: keys come from the environment or .env"
        )
    kind = type(backend)
    return DoctorCheck(
        "keyring", "ok", f"{kind.__module__}.{kind.__qualname__}: it supplies the keys that the environment lacks"
    )


def _extensions() -> Iterator[DoctorCheck]:
    """What agenteval's own extensions say of themselves, in the order of their verbs in the help."""
    verbs = {verb: place for place, verb in enumerate(own_verbs())}
    targets = entry_points.own(DOCTOR_CHECKS)
    for name, target in sorted(targets.items(), key=lambda item: (verbs.get(item[0], len(verbs)), item[0])):
        try:
            yield EntryPoint(DOCTOR_CHECKS, name, target, "").load_as("check")()
        except AgentevalError as error:
            yield _error_check(name, error)
    broken: set[str] = set()
    for group in (ACTIONS, API, DOCUMENTS, MCP_TOOLS, MCP_ASKING_TOOLS, PACKINGS, TEST_CRITERIA):
        for name, target in sorted(entry_points.own(group).items()):
            place = target.partition(":")[0].rpartition(".")[0]
            try:
                EntryPoint(group, name, target, "").load_as("extension")
            except AgentevalError as error:
                if place not in broken:  # said once of an extension
                    yield _error_check(name, error)
                broken.add(place)


def _plug_ins() -> Iterator[DoctorCheck]:
    """The packages that add metrics, kinds of agent and other parts, and the parts that are not used."""
    for sentence in entry_points.conflicts({COMMANDS: VERBS}):
        yield DoctorCheck("plug-ins", "warning", sentence, "ask the plug-in's author for another name, or uninstall it")
    if packages := entry_points.plugin_packages():
        yield DoctorCheck("plug-ins", "ok", ", ".join(packages))


def _executions() -> DoctorCheck:
    """Whether the app can watch executions: the folder of their sockets, and the executions that run."""
    try:
        folder = live_dir()
        socket_path(folder, new_id())
    except AgentevalError as error:
        return _error_check("executions", error)
    running = len(live_executions())
    return DoctorCheck("executions", "ok", f"{folder}: {count(running, 'execution')} running")


def _agents(paths: Sequence[Path]) -> Iterator[DoctorCheck]:
    try:
        agents = configured_beside(paths)
    except AgentevalError as error:
        yield _error_check("agents", error)
        return
    reports = check_all(agents)
    for number, agent in enumerate(agents):
        report = reports[number]
        took = f" ({duration(report.latency_ms)})" if report.latency_ms is not None else ""
        state: State = "ok" if report.ok else "error"
        yield DoctorCheck("agent", state, f"{agent.name} ({agent.kind}): {report.message}{took}", report.fix)
        for around in agent.surroundings():
            state = "error" if around.fix else "ok"
            yield DoctorCheck(around.name, state, f"of {agent.name}: {around.description}", around.fix)
    if not agents:
        yield DoctorCheck("agents", "ok", "none configured, except in suites")
