"""What a run needs around it, as plain data: made from a suite, kept with the run's task, read by who runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, to_builtins
from pydantic import ValidationError

from agenteval_tui.agents.permission import program_words
from agenteval_tui.agents.secrets import is_secret_name
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.model import HOOKS, Hook, Service, Suite, Test

SUITE, TEST = "suite", "test"
FRESH, COPY = "fresh", "copy"


class HookPlan(Struct, frozen=True, omit_defaults=True):
    """A hook, of a suite or a test (`scope`). It has `command` words, or a text for a `shell`, or a `callable`.
    `timeout_s`: how long it may take."""

    phase: str
    scope: str
    command: tuple[str, ...] = ()
    shell: str = ""
    callable: str = ""
    env: Mapping[str, str] = {}
    timeout_s: float = 60.0

    @property
    def name(self) -> str:
        """What it is called: its command, or its function."""
        return self.callable or self.shell or program_words(self.command)

    @property
    def argv(self) -> list[str]:
        """The words of its command."""
        return argv_of(self.shell, True) if self.shell else list(self.command)

    @property
    def description(self) -> str:
        """What it would execute, for a person who shall trust it."""
        how = " (by a shell)" if self.shell else ""
        what = f"python function {self.callable}" if self.callable else f"{self.name}{how}"
        return f"{self.phase} hook: {what}"


class ServicePlan(Struct, frozen=True, omit_defaults=True):
    """A service. `folder`: what its paths are relative to. It is ready by exactly one of `url`, `port` and `log`."""

    name: str
    folder: str
    command: tuple[str, ...] = ()
    shell: str = ""
    cwd: str = "."
    env: Mapping[str, str] = {}
    url: str = ""
    port: int = 0
    log: str = ""
    timeout_s: float = 60.0
    reuse_existing: bool = False

    @property
    def words(self) -> str:
        """Its command, as a person would type it."""
        return self.shell or program_words(self.command)

    @property
    def argv(self) -> list[str]:
        """The words of its command."""
        return argv_of(self.shell, True) if self.shell else list(self.command)

    @property
    def description(self) -> str:
        """What it would execute, for a person who shall trust it."""
        return f"service {self.name}: {self.words}{' (by a shell)' if self.shell else ''}"


class Asks(Struct, frozen=True, omit_defaults=True):
    """What the agent is asked, as it is written: hooks may bring variables that its templates need. `row` is the row
    of a dataset that asks."""

    test: Mapping[str, Any]
    row: Mapping[str, Any] | None = None


class Surroundings(Struct, frozen=True, omit_defaults=True):
    """What a run needs around it. `folder` is that of its suite; paths are relative to it.

    `workdir`: "fresh", "copy" (of `copied`), or "": the run has no folder of its own. `variables` are those of the run
    before a hook brought others. `asks`: None if no hook can bring any.
    """

    folder: str
    hooks: tuple[HookPlan, ...] = ()
    services: tuple[ServicePlan, ...] = ()
    workdir: str = ""
    copied: str = ""
    exclusive: str = ""
    variables: Mapping[str, Any] = {}
    asks: Asks | None = None

    def of_phase(self, phase: str, scope: str = "") -> tuple[HookPlan, ...]:
        """The hooks of a phase in their order; what is after runs goes from the test's to the suite's."""
        scopes = (SUITE, TEST) if phase in ("before_all", "before") else (TEST, SUITE)
        return tuple(
            hook
            for level in scopes
            if scope in ("", level)
            for hook in self.hooks
            if hook.phase == phase and hook.scope == level
        )

    @property
    def brings_variables(self) -> bool:
        """Whether a hook may bring variables."""
        return any(hook.phase in ("before_all", "before") for hook in self.hooks)

    @property
    def has_effects(self) -> bool:
        """Whether something is prepared for each run, so that an answer that is known already would be of no use."""
        return bool(self.hooks or self.workdir)


def surroundings_of(suite: Suite, test: Test, folder: Path) -> Surroundings | None:
    """What the runs of a test need; None if that is nothing. Variables and templates are to be added."""
    hooks = tuple(
        _hook(hook, phase, scope)
        for scope, holder in ((SUITE, suite), (TEST, test))
        for phase in HOOKS
        for hook in getattr(holder, phase)
    )
    workdir = test.workdir or suite.workdir
    exclusive = test.exclusive or suite.exclusive or ""
    if not (hooks or workdir or exclusive or suite.services):
        return None
    copied = "" if workdir is None or isinstance(workdir, str) else workdir.copy_of
    kind = "" if workdir is None else COPY if copied else FRESH
    return Surroundings(str(folder), hooks, tuple(services_in(suite.services, folder)), kind, copied, exclusive)


def services_in(services: Mapping[str, Service], folder: Path) -> Iterator[ServicePlan]:
    """The services that a suite, or an agent, has."""
    for name, service in services.items():
        command, shell = _words(service.command, service.shell)
        ready = service.ready
        yield ServicePlan(
            name,
            folder=str(folder),
            command=command,
            shell=shell,
            cwd=service.cwd,
            env=dict(service.env),
            url=ready.url or "",
            port=ready.port or 0,
            log=ready.log or "",
            timeout_s=service.timeout,
            reuse_existing=service.reuse_existing,
        )


def services_of_agent(config: Mapping[str, Any], base_dir: Path) -> tuple[ServicePlan, ...]:
    """The services of an agent's configuration. Raises `AgentevalError` when they are wrong."""
    services = config.get("services")
    if not isinstance(services, Mapping) or not services:
        return ()
    try:
        return tuple(
            services_in({str(name): Service.model_validate(service) for name, service in services.items()}, base_dir)
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise AgentevalError(f"the services of the agent are wrong: {place}: {first['msg']}") from None


def surroundings_data(around: Surroundings) -> dict[str, Any]:
    """As JSON data. A secret that is written into a variable of the environment is left out."""
    fields: dict[str, Any] = to_builtins(around)
    for each in (*fields.get("hooks", ()), *fields.get("services", ())):
        if "env" in each:
            each["env"] = {name: value for name, value in each["env"].items() if not _is_secret(name, value)}
    return fields


def read_surroundings(data: object) -> Surroundings:
    """What `surroundings_data` gave. Raises ValueError."""
    return convert(data, Surroundings)


def said_of(around: Surroundings) -> Iterator[str]:
    """Its hooks in the order in which they run, what runs work in, and what they share, in a line each."""
    yield from (hook.description for phase in HOOKS for hook in around.of_phase(phase))
    if around.workdir:
        yield f"working folder: a copy of {around.copied}" if around.workdir == COPY else "working folder: a fresh one"
    if around.exclusive:
        yield f"one after another: tests that use {around.exclusive}"


def _hook(hook: str | list[str] | Hook, phase: str, scope: str) -> HookPlan:
    if isinstance(hook, str):
        return HookPlan(phase, scope, callable=hook)
    if isinstance(hook, list):
        return HookPlan(phase, scope, tuple(hook))
    if hook.callable is not None:
        return HookPlan(phase, scope, callable=hook.callable, env=dict(hook.env), timeout_s=hook.timeout)
    command, shell = _words(hook.command or "", hook.shell)
    return HookPlan(phase, scope=scope, command=command, shell=shell, env=dict(hook.env), timeout_s=hook.timeout)


def _words(command: str | list[str], shell: bool) -> tuple[tuple[str, ...], str]:
    return ((), str(command)) if shell else (tuple(argv_of(command)), "")


def _is_secret(name: str, value: str) -> bool:
    # What `${VAR}` names is looked up again where the plan is read, and the text itself says nothing.
    return is_secret_name(name) and "${" not in value
