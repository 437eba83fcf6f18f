"""A coding agent, too, is asked about a secret for a new address: see tests/cli/test_new_addresses.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripted import ScriptedServer

from agenteval_tui.core import directories
from agenteval_tui.runs.trust_check import sends_below
from agenteval_tui.suites.trust import Trust
from tests.cli.test_new_addresses import check_question, newest_run, said, server, suite
from tests.extensions.mcp.test_server import in_memory

if TYPE_CHECKING:
    from agenteval_tui.extensions.mcp.server import Allowed, make_server

__all__ = ("server", "suite")

pytestmark = pytest.mark.xdist_group("mcp")


@pytest.fixture(scope="module", autouse=True)
def what_takes_long_to_import() -> None:
    """In the worker that runs these tests, and not in each that collects them."""
    from agenteval_tui.extensions.mcp.server import Allowed, make_server

    for one in (Allowed, make_server):
        globals()[one.__name__] = one


def _mcp(name: str, **arguments: Any) -> str:
    async def ask() -> str:
        allowed = Allowed(run=True)
        async with in_memory(make_server(Path.cwd(), directories.history_file(None), allowed)) as client:
            result = await client.call_tool(name, arguments)
            return "".join([part.get("text", "") for part in result["content"]])

    return asyncio.run(ask())


TOOLS: dict[str, Callable[[Any, Path], str]] = {
    "run": lambda cli, path: _mcp("run", path="orders.suite.yaml"),
    "fork": lambda cli, path: _mcp("fork", run=newest_run(), step=1, system="Be brief", n=1),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_secret_for_a_new_address_is_asked_about_by_name(
    cli: Any, suite: Path, server: ScriptedServer, tool: str
) -> None:
    check_question(" ".join(said(TOOLS[tool], cli, suite).split()), server)


@pytest.mark.parametrize("tool", TOOLS)
def test_what_was_agreed_is_not_asked_about(cli: Any, suite: Path, server: ScriptedServer, tool: str) -> None:
    Trust.load().trust(suite.parent, sends_below(suite.parent))
    suite.write_text(suite.read_text().replace("helpful?", "kind?"))  # or stored answers would do
    assert "trust" not in said(TOOLS[tool], cli, suite).replace(str(suite.parent), "")
    assert server.requests
