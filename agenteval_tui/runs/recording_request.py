"""The options of recording a program, and of running it on a recording, and the commands that do it in a process of
its own."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import Options, limits
from agenteval_tui.core.typed_path import typed_path
from agenteval_tui.suites.environment import environment_for, expand


class ProxyOptions(Options, frozen=True, kw_only=True):
    """The proxy between a program and its servers. `max_cost`: judges included; 0: no server is asked."""

    port: Annotated[int, limits("The port of the proxy.", "N", ge=0, le=65_535)] = 0
    max_cost: (
        Annotated[float, limits("Stop asking servers and judges once this much is spent.", "USD", ge=0)] | None
    ) = None
    pace: Annotated[
        float, limits("How fast recorded answers come: 0 is at once, 1 is as fast as recorded.", "N", ge=0)
    ] = 0.0


class RecordingRequest(Struct, frozen=True):
    """A program to be recorded, as it is typed; `${NAME}` stands for a variable, as in suites. `test` grades it ("":
    nothing does). `cassette`: the file that keeps what it is answered, and that answers what it has already;
    `mcp_config`: the file of its MCP servers. "": none."""

    program: str
    test: str = ""
    cassette: str = ""
    mcp_config: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the program's command. Raises `AgentevalError`."""
        return _words(self.program)

    @property
    def continues(self) -> bool:
        """Whether its cassette is there already, and answers what it can. Raises `AgentevalError`: no file can have its
        name."""
        return bool(self.cassette) and os.path.exists(typed_path(self.cassette))  # noqa: PTH110 - see typed_path

    def command(self, suite: Path | None, test: str, *, trust: bool) -> list[str]:
        """The arguments of `agenteval` that record it; `test` of `suite` grades it."""
        words = ["record"]
        if suite is not None:
            words += ["--suite", str(suite), "--test", test]
        if self.cassette:
            words += ["--cassette", str(typed_path(self.cassette))]
            words += ["--replay", "--live-after-miss"] if self.continues else []
        if self.mcp_config:
            words += ["--mcp-config", str(typed_path(self.mcp_config))]
        return [*words, *(["--trust"] if trust else []), "--", *self.argv]


class ReplayRequest(Struct, frozen=True):
    """A program that is run on the recording of `run`. `mcp_config`: as in `RecordingRequest`; `max_cost`: US dollars
    that changed requests may cost; None: no limit. `as_agent`: in the folder of the run's agent, with its variables."""

    run: str
    program: str
    mcp_config: str = ""
    max_cost: float | None = None
    as_agent: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """The words of the program's command. Raises `AgentevalError`."""
        return _words(self.program)

    def command(self, *, trust: bool) -> list[str]:
        """The arguments of `agenteval` that replay it."""
        words = ["replay", *(["--as-agent"] if self.as_agent else [])]
        if self.max_cost is not None:
            words += ["--max-cost", f"{self.max_cost:.15g}"]
        if self.mcp_config:
            words += ["--mcp-config", str(typed_path(self.mcp_config))]
        return [*words, *(["--trust"] if trust else []), self.run, "--", *self.argv]


def _words(program: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(program))
    except ValueError as error:
        raise AgentevalError(f"the program can't be split into words: {str(error).lower()}") from None
    if not words:
        raise AgentevalError("give a program", fix="write it as in a terminal: python agent.py")
    return tuple(expand(words, environment_for(Path.cwd()))) if "${" in program else words
