"""The agents that are configured: where each is described, what it talks to, whether it answers, what it replays, and
what the project around it gives it: the Python that its code runs with, and the `.env`."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import Agent, CheckReport, CheckStep
from agenteval_tui.agents.permission import Permission, needs_of_agent, program_words
from agenteval_tui.agents.process.environment_messages import env_files_in_words, python_in_words
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.agents.secrets import PROGRAMS, secrets_of
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.private_files import read_small
from agenteval_tui.history.store import Store
from agenteval_tui.suites.agents_file import agents_path, read_agents_file
from agenteval_tui.suites.env_files import env_files
from agenteval_tui.suites.environment import environment_for, environment_if_readable, expand
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.tool_files import declared_tools
from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import MappingNode, compose, resolve
from agenteval_tui.suites.yaml.write import flow
from agenteval_tui.transcripts.model import RunError, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor

CHECK_S = 20.0
THOROUGH_S = 90.0
"""Seconds that a check may take; a thorough one waits for answers of a model."""
IMPORT_S = 130.0
"""Seconds more for Python, whose imports may be slow: it says itself which line an import that doesn't end waits at."""
_SILENT = {
    "python": "does its code wait for a server, or for input?",
    "command": "does the program wait for a server, or for input?",
}
_SECRET = re.compile(r"key|token|secret|passw|credential|authorization|cookie", re.IGNORECASE)
# These are about keys and hold none.
_NOT_SECRET = re.compile(r"_env\Z|\Amax_|_tokens\Z|\Atokens?_per|\Afirst_token\Z", re.IGNORECASE)
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY_IN_URL = re.compile(r"(https?://[^\s?]*)\?\S*")
_FLAG = re.compile(r"(--?[\w-]*(?:key|token|secret|passw)[\w-]*(?:=|\s+))(?!\$\{)\S+", re.IGNORECASE)
HIDDEN = "(not shown)"
_NEWEST = 100  # executions among which "last" is looked for: others may be forks
_WITHOUT = ("queued", "running", "grading", "cancelled")


class Surrounding(Struct, frozen=True):
    """One thing that an agent gets from the project: its name (`python`, `.env`), which one it is, and what to do if it
    can't be used (`fix`; "": it can)."""

    name: str
    description: str
    fix: str = ""

    @property
    def step(self) -> CheckStep:
        """As a step of a check."""
        return CheckStep(self.name, not self.fix, f"{self.description}: {self.fix}" if self.fix else self.description)


def surroundings_of(config: Mapping[str, Any], base_dir: Path) -> tuple[Surrounding, ...]:
    """What an agent of this configuration gets. Only files are read, and nothing is raised."""
    return (*_pythons(config, base_dir), *_env_files(config, base_dir))


def _pythons(config: Mapping[str, Any], base_dir: Path) -> Iterator[Surrounding]:
    by_interpreter: dict[str, list[str]] = {}
    paths: dict[str, list[Path]] = {}
    code = [(config, "python", config.get("callable"))] if config.get("kind") == "python" else []
    code += [(entry, "interpreter", entry.get("python")) for entry in declared_tools(config, base_dir)]
    for entry, option, target in code:
        if isinstance(target, str):
            named = _expanded(entry.get(option), config, base_dir)
            by_interpreter.setdefault(named, []).append(target)
            listed = entry.get("path")
            folders = (
                [base_dir / entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []
            )
            paths.setdefault(named, []).extend(folders)
    for named, targets in by_interpreter.items():
        try:
            used = project_environment(base_dir, targets=targets, interpreter=named or None, path=paths[named])
        except AgentevalError as error:
            yield Surrounding("python", error.what, error.fix or "name another Python in `python`")
        else:
            yield Surrounding("python", python_in_words(used))


def _env_files(config: Mapping[str, Any], base_dir: Path) -> Iterator[Surrounding]:
    try:
        files = env_files(base_dir, config)
    except AgentevalError as error:
        place = f"{error.where}: " if error.where else ""
        yield Surrounding(".env", f"{place}{error.what}", error.fix or "correct it")
        return
    if files.files or config.get("kind") in PROGRAMS:
        yield Surrounding(".env", env_files_in_words(files))


def _expanded(value: object, config: Mapping[str, Any], base_dir: Path) -> str:
    if not isinstance(value, str):
        return ""
    try:
        return str(expand(value, environment_for(base_dir, os.environ, config)))
    except AgentevalError:
        return value


class Configured(Struct, frozen=True):
    """An agent as it is configured, `${VAR}` not expanded. `suite` is the name of the suite that has it; "": the user's
    agents.yaml. `line` (from 1) is where it is in `file`; paths are relative to that file's folder."""

    name: str
    config: Mapping[str, Any]
    file: Path
    line: int
    suite: str = ""

    @property
    def key(self) -> str:
        """What names it among all: two suites may have an agent of the same name."""
        return f"{self.file}\x1f{self.name}"

    @property
    def kind(self) -> str:
        """Its kind: openai, command, ..."""
        return str(self.config.get("kind", ""))

    @property
    def base_dir(self) -> Path:
        """The folder from which its paths are meant."""
        return self.file.resolve().parent

    @property
    def about(self) -> str:
        """What its configuration says of it, in words."""
        description = self.config.get("description")
        return description if isinstance(description, str) else ""

    @property
    def address(self) -> str:
        """What it talks to, in a few words: model and server, program, function, recordings."""
        config = self.config
        parts = [str(config[name]) for name in ("model", "version") if config.get(name)]
        for name in ("base_url", "url", "callable", "execution", "file", "transcripts"):
            if config.get(name):
                parts.append(without_secrets(str(config[name])))
        if config.get("command"):
            parts.append(without_secrets(program_words(config["command"])))
        return "  ".join(parts)

    def keys(self, env: Mapping[str, str]) -> list[tuple[str, bool]]:
        """The environment variables that it takes its keys from, and whether each is set. Never their values."""
        names = [str(value) for name, value in self.config.items() if name.endswith("_env") and isinstance(value, str)]
        names += re.findall(r"\$\{([A-Za-z_]\w*)", repr(dict(self.config)))
        return [(name, bool(env.get(name))) for name in dict.fromkeys(names)]

    def surroundings(self) -> tuple[Surrounding, ...]:
        """The Python and the `.env` that it uses."""
        return surroundings_of(self.config, self.base_dir)

    def executes(self) -> tuple[str, ...]:
        """What asking it would execute on this machine, and which keys it would send to a server of the suite's."""
        return needs_of_agent(self.config, self.base_dir)


def configured_agents(loaded: Iterable[LoadedSuite], config_dir: Path) -> tuple[list[Configured], list[Problem]]:
    """The user's agents, then those of the suites; and what is wrong in agents.yaml.

    Raises `AgentevalError` when agents.yaml can't be read at all.
    """
    path = agents_path(config_dir)
    mine, problems = read_agents_file(path)
    configured: list[Configured] = []
    if mine:
        text = read_small(path, "the list of your agents") or ""
        # What is wrong in it was reported above: here it only says where each agent is.
        lines = _lines(compose(text, lambda *_: None)[0], LineIndex(text))
        configured += [
            Configured(name, agent_config.as_dict(), path, lines.get(name, 1)) for name, agent_config in mine.items()
        ]
    for loaded_suite in loaded:
        if loaded_suite.suite is not None and loaded_suite.suite.agents:
            lines = _lines(loaded_suite.root, loaded_suite.places)
            configured += [
                Configured(name, agent.as_dict(), loaded_suite.path, lines.get(name, 1), loaded_suite.suite.name)
                for name, agent in loaded_suite.suite.agents.items()
            ]
    return configured, list(problems)


def options_of(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(option, value as text) of an agent's configuration but its kind and description. Nothing that may be a key."""
    pairs: list[tuple[str, str]] = []
    for name, value in config.items():
        if name in ("kind", "description"):
            continue
        displayed = without_secrets(program_words(value)) if name == "command" else _shown(name, value)
        pairs.append((name, displayed if isinstance(displayed, str) else flow(displayed, bare_keys=True)))
    return pairs


def without_secrets(address: str) -> str:
    """An address or a command line without user, password and query, and without what follows `--api-key`."""
    return _FLAG.sub(rf"\1{HIDDEN}", _QUERY_IN_URL.sub(r"\1?…", _USER_IN_URL.sub("", address)))


async def check_configured(configured: Configured, permission: Permission, *, thorough: bool = False) -> CheckReport:
    """Ask the agent whether it is available. Never raises: an agent that can't be built, or does not answer, gives a
    report as well. Its first steps say which Python and which `.env` it uses."""
    report, around = await asyncio.gather(
        _checked(configured, permission, thorough), asyncio.to_thread(configured.surroundings)
    )
    steps = tuple([each.step for each in around])
    return _without_secrets(replace(report, steps=(*steps, *report.steps)), redactor_of(configured))


def check_limit(kind: str, thorough: bool) -> float:
    """Seconds that the check of an agent of this kind may take."""
    return (THOROUGH_S if thorough else CHECK_S) + (IMPORT_S if kind == "python" else 0)


async def _checked(configured: Configured, permission: Permission, thorough: bool) -> CheckReport:
    try:
        # In a thread: it reads files.
        agent = await asyncio.to_thread(make_configured, configured, permission)
    except AgentevalError as error:
        return CheckReport(False, error.problem, fix=error.fix)
    limit = check_limit(configured.kind, thorough)
    try:
        return await asyncio.wait_for(agent.check(thorough), limit)
    except TimeoutError:
        return CheckReport(
            False, f"no answer within {limit:.0f} s", fix=_SILENT.get(configured.kind, "is the server running?")
        )
    except AgentevalError as error:
        return CheckReport(False, error.problem, fix=error.fix)
    except Exception as error:
        return CheckReport(False, f"its check broke: {type(error).__name__}: {error}")
    finally:
        await _closed(agent)


def make_configured(
    configured: Configured,
    permission: Permission,
    *,
    store: Store | None = None,
) -> Agent:
    """The agent itself; nothing is connected or started yet.

    Raises `AgentevalError`: it is not configured right, or (`NotTrustedError`) `permission`
    (`trust_check.check_agents`) does not cover it.
    """
    full = environment_for(configured.base_dir, config=configured.config)
    source = None if store is None else lambda reference: recordings_of(store, reference)
    return make_agent(
        configured.name,
        configured.config,
        base_dir=configured.base_dir,
        env=full,
        permission=permission,
        transcripts=source,
    )


def recordings_of(store: Store, reference: str, within: str = "") -> Mapping[str, Sequence[Transcript]]:
    """The transcripts of the execution that `reference` names ("last", an id), by test, in order of repetition.
    `within`: the id of the execution that asks; "last" is the one before it.

    Raises `AgentevalError` when there is no such execution.
    """
    execution = store.execution(reference)
    if reference == "last" and execution.id == within:
        newest = store.execution_rows(store.execution_ids()[:_NEWEST])
        execution = next(
            (execution_row for execution_row in newest if execution_row.id != within and execution_row.kind != "fork"),
            execution,
        )
    rows = [row for row in store.runs_of_execution(execution.id) if row.status not in _WITHOUT]
    # What replays them takes the recordings of a test one after another: those of its default configuration first.
    rows.sort(key=lambda row: (row.variation != "", row.position))
    transcripts = dict(store.transcripts([row.id for row in rows]))
    return grouped((row.test_id, transcripts[row.id]) for row in rows if row.id in transcripts)


def redactor_of(configured: Configured) -> TranscriptRedactor:
    """What must not be repeated of what this agent says. Never raises for a `.env` that can't be read."""
    full = environment_if_readable(configured.base_dir, config=configured.config)
    return TranscriptRedactor(secrets_of(configured.config, full, configured.base_dir, trusted=True))


def _without_secrets(report: CheckReport, withheld: TranscriptRedactor) -> CheckReport:
    def clean(text: str) -> str:
        return withheld.error(RunError("", text)).message

    steps = tuple([replace(step, message=clean(step.message)) for step in report.steps])
    return replace(report, message=clean(report.message), fix=clean(report.fix), steps=steps)


async def _closed(agent: Agent) -> None:
    try:
        await asyncio.wait_for(agent.close(), 5)
    except Exception:  # an agent that can't be closed must not hide what it said
        return


def _lines(root: Any, places: Any) -> dict[str, int]:
    """The line of each agent in a tree: below `agents:`, or at the top."""
    top = resolve(root) if root is not None else None
    if not isinstance(top, MappingNode):
        return {}
    below = top.get("agents")
    listed = resolve(below) if below is not None else top
    keys = listed.pairs if isinstance(listed, MappingNode) else ()
    return {key.text: places.line_and_column(key.start)[0] for key in keys}


def _shown(name: str, value: object) -> object:
    if isinstance(value, str):
        if _SECRET.search(name) and not _NOT_SECRET.search(name) and "${" not in value:
            return HIDDEN
        return without_secrets(value)
    if isinstance(value, Mapping):
        if name in ("headers", "env"):
            # Any value may be a key; a reference to a variable is not.
            return {
                str(key): inner if isinstance(inner, str) and "${" in inner else HIDDEN for key, inner in value.items()
            }
        return {str(key): _shown(str(key), inner) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_shown(name, item) for item in value]
    return value
