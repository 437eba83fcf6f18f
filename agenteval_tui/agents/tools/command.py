"""Tools that are programs: the arguments as JSON on standard input, the result on standard output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import Program, find_program, start
from agenteval_tui.agents.process.errors import exit_description, stderr_tail
from agenteval_tui.agents.process.printed_output import printed_piece
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.core.errors import AgentevalError

LONGEST = 1_000_000
"""Bytes of a tool's result; a longer one is a failure."""
_LONGEST_WORDS = 2_000


class CommandTool(Struct, frozen=True):
    """Starts its program for each call. Exit code 0 is a result; any other is a failure that the model is told
    about."""

    spec: ToolSpec
    argv: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]
    limit_s: float
    permission: Permission

    async def open(self) -> list[CommandTool]:
        """Itself. Raises `AgentevalError` when the program is not there."""
        try:
            find_program(self.argv[0], self.folder, self.env)
        except AgentevalError as error:
            raise AgentevalError(f"tool {self.spec.name!r}: {error.what}", fix=error.fix) from None
        return [self]

    async def close(self) -> None:
        """Nothing is open between calls."""

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the program writes. Cancelling this ends it with all that it started."""
        async with await start(self.argv, cwd=self.folder, env=self.env, permission=self.permission) as program:
            program.write(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            program.close_stdin()
            written = bytearray()
            try:
                async with asyncio.timeout(self.limit_s):
                    return await self._answer(program, written)
            except TimeoutError:
                outputs = (("stdout", written.decode("utf-8", "replace")), ("stderr", program.stderr))
                pieces = [printed_piece({"source": source, "text": text}, self.env) for source, text in outputs]
                return replace(late(self.limit_s), printed=tuple([piece for piece in pieces if piece is not None]))

    async def _answer(self, program: Program, written: bytearray) -> ToolOutcome:
        while data := await program.read():
            written += data
            if len(written) > LONGEST:
                return ToolOutcome(f"the tool wrote more than {LONGEST:,} bytes", error=True)
        await program.exited()
        text = written.decode("utf-8", "replace")
        if program.returncode == 0:
            return ToolOutcome(text.removesuffix("\n"))
        words = stderr_tail(program.stderr, self.env) or without_secrets(text.strip(), self.env)[-_LONGEST_WORDS:]
        message = f"the tool {exit_description(program.returncode)}"
        return ToolOutcome(f"{message}: {words}" if words else message, error=True)


def late(limit_s: float) -> ToolOutcome:
    """The outcome of a tool that took longer than it may."""
    return ToolOutcome(f"the tool did not answer within {limit_s:g} s", error=True)
