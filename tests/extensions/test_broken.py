"""An extension whose folder is gone, and its lines in pyproject.toml are not: it is named once, and harms no other."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import (
    ACTIONS,
    API,
    COMMANDS,
    DOCUMENTS,
    MCP_ASKING_TOOLS,
    MCP_TOOLS,
    PACKINGS,
    EntryPoint,
)
from agenteval_tui.formats.documents.registry import SCHEMAS

GONE = "agenteval_tui.extensions.gone.part:PART"


@pytest.fixture(autouse=True)
def half_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    for group in (ACTIONS, API, COMMANDS, DOCUMENTS, MCP_ASKING_TOOLS, MCP_TOOLS, PACKINGS):
        monkeypatch.setitem(entry_points.own(group), "gone", GONE)
    monkeypatch.setitem(SCHEMAS, "gone", ("what is gone", EntryPoint(DOCUMENTS, "gone", GONE, "")))


def test_the_doctor_names_it_once(cli: Any) -> None:
    ran = cli("doctor", "--json")
    assert ran.code == 3
    assert [check["name"] for check in ran.json("doctor")["checks"] if check["state"] == "error"] == ["gone"]


def test_files_are_imported_and_other_schemas_printed(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "hello.json"
    messages = [{"role": "user", "content": "Say hello"}, {"role": "assistant", "content": "hello"}]
    file.write_text(json.dumps({"messages": messages}), "utf-8")
    assert cli("import", file).code == 0
    assert json.loads(cli("schema", "shrink").out)["title"]
    refused = cli("schema", "gone")
    assert refused.code == 2
    assert "the document 'gone' can't be loaded" in refused.err
    helped = cli("--help")
    assert helped.code == 0
    assert "it can't be loaded" in helped.out


@pytest.mark.xdist_group("mcp")
async def test_coding_agents_have_the_other_tools(tmp_path: Path) -> None:
    # Here, in the worker that runs it: whoever collects the tests need not wait for its package.
    module = importlib.import_module("agenteval_tui.extensions.mcp.server")
    server = module.make_server(tmp_path, tmp_path / "h.db", module.Allowed(run=True))
    assert {"blame", "suggest", "shrink"} <= {tool.name for tool in await server.list_tools()}
