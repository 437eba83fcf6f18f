"""`agenteval mcp`, asked by the client of the `mcp` package."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripted import Answer
from threaded import serving

import agenteval_tui as agenteval
from agenteval_tui.agents.tools.mcp_package import McpSession, connected
from agenteval_tui.cli.commands.init import CODING_AGENTS
from agenteval_tui.suites.trust import Trust

if TYPE_CHECKING:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    from agenteval_tui.extensions.mcp.server import Allowed, make_server

pytestmark = pytest.mark.xdist_group("mcp")

ROOT = Path(__file__).resolve().parents[3]
SUITE = """name: Little
agent: d
agents: {d: {kind: demo, version: v1, pace: 0}}
tests:
  - id: where
    prompt: "Where is my order #W1042?"
    repeat: 3
    criteria:
      - name: says when
        prototype_class: TextResponse
        config_uxon: |
          {"metrics": [{"type": "TextMatch", "contains": "tomorrow"}]}
"""
ORDER = """\
    criteria:
      - name: Asks for the right order
        prototype_class: ToolResponse
        config_uxon: |
          {"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1042"}}]}]}
"""
EDIT = '{"metrics": [{"type": "TextMatch", "contains": "customs"}]}'
YAML_EDIT = "metrics:\n  - type: TextMatch\n    contains: customs\n"


@pytest.fixture(scope="module", autouse=True)
def what_takes_long_to_import() -> None:
    """In the worker that runs these tests, and not in each that collects them."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    from agenteval_tui.extensions.mcp.server import Allowed, make_server

    for one in (StdioServerParameters, stdio_client, Allowed, make_server):
        globals()[one.__name__] = one


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "little.suite.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(folder: Path, allowed: Allowed, asking: Callable[[McpSession], Awaitable[None]]) -> None:
    async def session() -> None:
        async with in_memory(make_server(folder, folder / "h.db", allowed)) as client:
            await asking(client)

    asyncio.run(session())


@asynccontextmanager
async def in_memory(server: Any) -> AsyncIterator[McpSession]:
    """A client of a server in this process, as each version of the package has it."""
    second = importlib.util.find_spec("mcp_types") is not None
    if second:
        connecting = importlib.import_module("mcp").Client(server)
    else:
        connecting = importlib.import_module("mcp.shared.memory").create_connected_server_and_client_session(server)
    async with connecting as client:
        yield McpSession(client, second)


async def said(client: McpSession, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    text: str = answer["content"][0]["text"]
    return f"ERROR {text}" if answer.get("isError") else text


def test_it_only_reads_unless_it_is_allowed_more(folder: Path) -> None:
    async def asking(client: McpSession) -> None:
        tools = (await client.list_tools(None))["tools"]
        assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
        names = {tool["name"] for tool in tools}
        assert "save_edit" not in names
        page = (ROOT / "docs/coding-agents.md").read_text("utf-8")
        assert names == set(re.findall(r"^\| `(\w+)`", page, re.MULTILINE)) - {
            "run",
            "check_change",
            "save_edit",
            "make_test",
            "fork",
            "blame_by_sampling",
            "shrink",
            "record",
            "replay",
        }
        assert CODING_AGENTS in page

    ask(folder, Allowed(), asking)


def test_what_a_coding_agent_names_is_no_option(folder: Path) -> None:
    for name in ("h.db", "other.db"):
        agenteval.run(folder, db=folder / name)

    async def asking(client: McpSession) -> None:
        # The run to compare with may be left out of `show`, and the next word be an option that names another history.
        other = f"--db={folder / 'other.db'}"
        answer = await said(client, "show", what="last", request="1", differs_from=other)
        assert answer.endswith(f"there is no run {other!r}")

    ask(folder, Allowed(), asking)


def test_a_failure_is_found_explained_and_an_edit_is_tried_and_saved(folder: Path) -> None:
    agenteval.run(folder, db=folder / "h.db")

    async def asking(client: McpSession) -> None:
        assert "3 failures = 1 cause" in await said(client, "failures")
        assert '"tomorrow" is not in the text' in await said(client, "why", run="where")
        assert "not known from the recording; sampling would be free" in await said(client, "blame", run="where")
        assert '"contains": "tomorrow"' in await said(client, "criterion", run="where", criterion="says")
        tried = await said(client, "try_edit", run="where", criterion="1", config=EDIT)
        assert "now   3 failed\nthen  3 passed" in tried
        assert tried.count("failed → passed") == 3
        for written in (YAML_EDIT, "config_uxon:\n  " + YAML_EDIT.replace("\n", "\n  "), f"config_uxon: '{EDIT}'"):
            assert await said(client, "try_edit", run="where", criterion="1", config=written) == tried
        runs = [run.id for run in agenteval.History(folder / "h.db", all_projects=True).runs(test="where")]
        suggested = await said(client, "suggest", good=runs[:1])
        assert "where: 1 of 3 runs labelled: 1 good, 0 bad" in suggested
        assert "calls get_order with order_id" in suggested
        made = await said(client, "make_test", runs=runs[:2], suite="made.suite.yaml")
        assert "new test " in made
        assert "did not pass, and these criteria expect what it did" in made
        assert "outside the server" in await said(client, "make_test", runs=runs[:1], suite="../made.suite.yaml")
        (folder / "made.suite.yaml").unlink()
        broken = await said(
            client, "try_edit", run="where", criterion="1", config='{"metrics": [{"type": "TextMach"}]}'
        )
        assert "error: " in broken
        assert "ERROR" in await said(
            client, "save_edit", run="where", criterion="1", config='{"metrics": [{"type": 1}]}'
        )
        assert (folder / "little.suite.yaml").read_text() == SUITE
        assert "saved: " in await said(client, "save_edit", run="where", criterion="says when", config=EDIT)
        assert "customs" in (folder / "little.suite.yaml").read_text()
        assert "1 suite, 1 test, 1 criterion: no problems" in await said(client, "validate")
        ran = await said(client, "run", path="little.suite.yaml", repeat=1)
        assert "1 passed of 1 run" in ran
        unchecked = await said(client, "check_change", path="little.suite.yaml")
        assert unchecked.startswith("ERROR")
        assert "no test has a recorded run of an agent that is a program" in unchecked
        assert "1 test better" in await said(client, "compare")
        branches = [{"label": "with it", "arguments": {"order_id": "#W1042"}}, {"label": "hi", "at": 1, "text": "Hi!"}]
        forked = await said(client, "fork", run="where", step=2, sweep=branches, n=1)
        assert all(f" {one['label']} " in forked for one in branches)
        assert "Little" in await said(client, "history")
        assert "where" in await said(client, "history", text="W1042", status="failed")
        assert "customs" in await said(client, "show", what="where")

    ask(folder, Allowed(edit=True, run=True, max_cost=1.0), asking)


def test_nonsense_gets_a_sentence_and_the_server_lives(folder: Path) -> None:
    (folder / "own.suite.yaml").write_text(
        SUITE.replace("{kind: demo, version: v1, pace: 0}", "{kind: command, command: cat}")
    )

    async def asking(client: McpSession) -> None:
        assert "outside the server" in await said(client, "validate", path="/etc")
        assert "outside the server" in await said(client, "run", path="../..")
        assert "needs your trust" in await said(client, "run", path="own.suite.yaml")
        assert "needs your trust" in await said(client, "record", agent="d", path="own.suite.yaml")
        assert "is not a program" in await said(client, "record", agent="d", path="little.suite.yaml")
        assert "no suite has an agent 'x'" in await said(client, "replay", run="x", agent="x")
        for tool, arguments in [
            ("why", {"run": "--help"}), ("show", {"what": "nothing"}), ("history", {"limit": 10**9}), ("nonsense", {}),
            ("criterion", {"run": "x"}), ("try_edit", {"run": "x", "criterion": "1", "config": "\x1b["}),
            ("grade", {"transcript": "{}", "criteria": []}), ("grade", {"transcript": "hi", "criteria": [{}]}),
            ("failures", {"tests": ["--all"]}), ("compare", {"before": "--json"}), ("why", {"run": 3}),
            ("suggest", {"test": "where"}), ("suggest", {}), ("suggest", {"good": ["--help"]}),
        ]:  # fmt: skip
            answer = await said(client, tool, **arguments)
            assert answer.startswith("ERROR "), (tool, arguments, answer)
            assert "Traceback" not in answer
        good = {
            "name": "x",
            "prototype_class": "TextResponse",
            "config_uxon": {"metrics": [{"type": "Length", "max_words": 2}]},
        }
        assert (await said(client, "grade", transcript="hi there", criteria=[good])).startswith("passed")
        assert (await said(client, "grade", transcript="[" * 100_000, criteria=[good])).startswith("passed")

    ask(folder, Allowed(run=True), asking)


PROGRAM = """\
import json, os, sys, urllib.request
assert sys.stdin.read() == ""  # the protocol of the server is not for it
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
print(urllib.request.urlopen(request).read())
"""


def test_a_program_of_a_trusted_folder_is_recorded_graded_and_replayed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = {"role": "assistant", "content": "It comes tomorrow."}
    reply = json.dumps({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    words = json.dumps([sys.executable, "-I", "-S", "agent.py"])
    own = folder / "own"
    own.mkdir()
    (own / "agent.py").write_text(PROGRAM)
    kinds = "{kind: demo, version: v1, pace: 0}"
    (own / "own.suite.yaml").write_text(SUITE.replace(kinds, f"{{kind: command, command: {words}}}"))
    Trust.load().trust(own)
    with serving(lambda request: Answer(body=reply)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)

        async def asking(client: McpSession) -> None:
            given = {"path": "own", "agent": "d", "arguments": ["Where is my order #W1042?"]}
            assert "1 passed of 1 run" in await said(client, "record", test="where", **given)
            asked = await said(client, "show", what="where", request="last")
            assert "request 1 of 1" in asked
            assert "Where is my order #W1042?" in asked
            assert "1 passed of 1 run" in await said(client, "replay", run="where", **given)
            assert len(server.requests) == 1
            other = await said(client, "replay", run="where", **{**given, "arguments": ["And now?"]})
            assert (len(server.requests), "1 passed of 1 run" in other) == (2, True)

            # What runs is what was trusted: more words must not make another program of it.
            (folder / "other.py").write_text("open('ran', 'w')")
            for words in (["../other.py"], [f"--with={folder / 'other.py'}"], [str(folder / "other.py"), "$${X}"]):
                refused = await said(client, "record", **{**given, "arguments": words})
                assert "this needs your trust: command: " in refused, words
                assert "agenteval trust PATH" in refused, words
                assert "allows it once" not in refused, "a coding agent has no way to"
                assert "this folder is not trusted yet" in refused, words
            assert len(server.requests) == 2

        ask(folder, Allowed(run=True), asking)


@pytest.mark.parametrize("command", [["python3", "-I"], ["sh"], "env A=b uv run", ["/usr/bin/node", "--test"]])
def test_arguments_do_not_choose_the_program(folder: Path, command: str | list[str]) -> None:
    kinds = "{kind: demo, version: v1, pace: 0}"
    agent = json.dumps({"kind": "command", "command": command})
    (folder / "little.suite.yaml").write_text(SUITE.replace(kinds, agent))
    Trust.load().trust(folder)
    code = "open('ran', 'w')"

    async def asking(client: McpSession) -> None:
        refused = await said(client, "record", agent="d", path="little.suite.yaml", arguments=["-c", code])
        assert "its command does not name the script" in refused

    ask(folder, Allowed(run=True), asking)
    assert not (folder / "ran").exists()


@pytest.mark.e2e
def test_the_installed_command_answers_on_its_standard_streams(folder: Path) -> None:
    arguments = ["-m", "agenteval_tui", "mcp", str(folder), "--db", str(folder / "h.db")]

    async def session() -> None:
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        # By itself it writes to what was standard error when it was imported: of another test, maybe.
        with (folder / "stderr.txt").open("w") as errors:
            async with connected(stdio_client(parameters, errlog=errors)) as client:
                assert "1 suite, 1 test" in await said(client, "validate")

    asyncio.run(session())


def test_without_the_extra_one_sentence_says_what_to_install(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agenteval_tui.extensions.mcp.server", raising=False)
    for name in [one for one in sys.modules if one.split(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = cli("mcp")
    assert done.code == 2
    assert "pip install 'agenteval-tui[mcp]'" in done.err
    assert cli("mcp", "--max-cost", "1").code == 2


CHECKS = """
def good(value, least=1):
    open("../ran", "a").write("x")
    return True


def also(value):
    open("../ran", "a").write("x")
    return True
"""


def test_an_assistant_runs_code_of_the_trusted_repository_only(folder: Path) -> None:
    shop, ran = folder / "shop", folder / "ran"
    shop.mkdir()
    (shop / ".git").mkdir()
    (folder / "little.suite.yaml").unlink()
    (shop / "checks.py").write_text(CHECKS)
    inner = shop / "vendor"
    (inner / ".git").mkdir(parents=True)
    (inner / "theirs.py").write_text(CHECKS)
    calls = {"type": "Python", "function": "checks:good"}
    text = SUITE.replace(
        '{"metrics": [{"type": "TextMatch", "contains": "tomorrow"}]}', json.dumps({"metrics": [calls]})
    )
    (shop / "little.suite.yaml").write_text(text)
    agenteval.run(shop, db=folder / "h.db", trust=True)
    ran.unlink()

    async def asking(client: McpSession) -> None:
        async def saves(function: str, **more: object) -> str:
            config = json.dumps({"metrics": [{"type": "Python", "function": function, **more}]})
            assert "saved: " in await said(client, "save_edit", run="where", criterion="1", config=config)
            return await said(client, "run", path="shop")

        assert "needs your trust: python function checks:also" in await saves("checks:also")
        assert not ran.exists()
        Trust.load().trust(shop)
        assert "3 passed" in await saves("checks:good", least=2)
        assert ran.exists()
        ran.unlink()
        # Neither what is installed nor the repository within it was trusted.
        assert "is not in the project" in await saves("timeit:timeit", setup="open('../ran', 'w')")
        assert "needs your trust: python function vendor.theirs:good" in await saves("vendor.theirs:good")
        assert not ran.exists()

    ask(folder, Allowed(edit=True, run=True), asking)


def test_the_tools_for_coding_agents_have_the_limits_of_the_records(tmp_path: Path) -> None:
    tools = asyncio.run(make_server(tmp_path, None, Allowed(run=True)).list_tools())
    schemas = {tool.name: tool.model_dump(by_alias=True)["inputSchema"]["properties"] for tool in tools}
    assert (schemas["fork"]["n"]["minimum"], schemas["fork"]["n"]["maximum"]) == (1, 1000)
    assert schemas["fork"]["step"]["minimum"] == 1
    repeat, _ = schemas["run"]["repeat"]["anyOf"]
    assert (repeat["minimum"], repeat["maximum"]) == (1, 100_000)
    samples = schemas["blame_by_sampling"]["samples"]
    assert (samples["minimum"], samples["maximum"], samples["default"]) == (2, 200, 8)


def test_a_run_is_continued_from_a_step(cli: Any, folder: Path) -> None:
    agent, _, _ = SUITE.partition("    criteria:")
    suite = agent.replace("version: v1, ", "") + ORDER
    (folder / "little.suite.yaml").write_text(suite)
    assert cli("run", "little.suite.yaml", "--repeat", 1).code == 1
    server = make_server(folder, None, Allowed(run=True))
    said = asyncio.run(
        server.call_tool("fork", {"run": "where", "step": 3, "arguments": {"order_id": "#W1042"}, "n": 2})
    )
    assert "2/2" in str(said)
    assert "fork" not in {tool.name for tool in asyncio.run(make_server(folder, None, Allowed()).list_tools())}
