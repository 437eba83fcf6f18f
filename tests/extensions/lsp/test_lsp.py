"""`agenteval lsp` and a client of pytest-lsp: what an editor gets, and that nothing ends the server."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import agenteval_tui as agenteval
from agenteval_tui.core.errors import TextEdit, apply_edits

if TYPE_CHECKING:
    from lsprotocol import types
    from pygls.workspace import Workspace
    from pytest_lsp import ClientServerConfig, LanguageClient

    from agenteval_tui.extensions.lsp.language_server import Positions, SuiteServer

ROOT = Path(__file__).resolve().parents[3]
RIGHT = """\
name: 𝄞 Orders
agent: shop
agents:
  shop: {kind: demo}
tests:
  - id: one
    prompt: "😀 Where is it?"
    criteria:
      - name: literal
        prototype_class: TextResponse
        config_uxon: |
          {"metrics": [{"type": "TextMatch", "contains": "😀", "starts_with": "x"}]}
      - name: native
        prototype_class: ToolResponse
        config_uxon: {metrics: [{type: ToolCheck, forbidden_tools: ["😀", refund]}]}
"""
WRONG = RIGHT.replace('"contains": "😀", "starts_with"', '"contains": "😀", "starts_wit"').replace(
    "kind: demo", "kind: dmo"
)


@pytest.fixture(scope="module", autouse=True)
def what_takes_long_to_import() -> None:
    """In the worker that runs these tests, and not in each that collects them."""
    pytest.importorskip("pygls", reason="needs the extra lsp")
    from lsprotocol import types
    from pygls.workspace import Workspace
    from pytest_lsp import ClientServerConfig, LanguageClient

    from agenteval_tui.extensions.lsp.language_server import Positions, SuiteServer

    globals()["types"] = types
    for one in (ClientServerConfig, LanguageClient, Positions, SuiteServer, Workspace):
        globals()[one.__name__] = one


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_places_in_any_text(encoding: str) -> None:
    pieces = ["a", "é", "\u2028", "😀", "𝄞", "\n", "\r\n", "\r", "\x0b", "\ufeff"]
    chance, size = random.Random(1), int(encoding[-2:].strip("-")) // 8
    bytes_of_it = encoding if size == 1 else f"{encoding}-le"
    for _ in range(60):
        text = "".join(chance.choice(pieces) for _ in range(20)).lstrip("\ufeff")
        positions = Positions(text, encoding)
        line, units = 0, 0
        for offset, char in enumerate(text):
            place = positions.position(offset)
            assert (place.line, place.character) == (line, units)
            inside_end = char == "\n" and text[offset - 1 : offset] == "\r"
            assert inside_end or positions.offset(place) == offset
            if char == "\n" or (char == "\r" and text[offset + 1 : offset + 2] != "\n"):
                line, units = line + 1, 0
            else:
                units += len(char.encode(bytes_of_it)) // size
        assert positions.offset(types.Position(9999, 9999)) == len(text)
    marked = Positions("\ufeffa\nb")
    assert (marked.position(0).character, marked.position(2).line, marked.offset(types.Position(0, 1))) == (1, 1, 0)


def edits_of(text: str, edits: Any) -> str:
    positions = Positions(text)
    return apply_edits(
        text, [TextEdit(positions.offset(e.range.start), positions.offset(e.range.end), e.new_text) for e in edits]
    )


class Session:
    """A client with its server."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.versions: dict[str, int] = {}

    def write(self, uri: str, text: str) -> None:
        """Open a text, or change it."""
        version = self.versions[uri] = self.versions.get(uri, 0) + 1
        if version == 1:
            document = types.TextDocumentItem(uri, "yaml", version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        else:
            changed = types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
            self.client.text_document_did_change(changed)

    async def problems(self, uri: str) -> list[types.Diagnostic]:
        """What is said of the newest text."""
        while True:
            said = await self.client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
            if said.uri == uri and said.version == self.versions.get(uri):
                return list(said.diagnostics)

    async def checked(self, uri: str, text: str) -> list[types.Diagnostic]:
        waiting = asyncio.ensure_future(self.problems(uri))
        await asyncio.sleep(0)
        self.write(uri, text)
        return await waiting

    def at(self, uri: str, text: str, place: str, by: int = 0) -> dict[str, Any]:
        position = Positions(text).position(text.index(place) + by)
        return {"text_document": types.TextDocumentIdentifier(uri), "position": position}


async def test_a_session(tmp_path: Path, cli: Any) -> None:
    command = [sys.executable, "-X", "dev", "-m", "agenteval_tui", "lsp"]
    client = await ClientServerConfig(command, server_env={**os.environ, "PYTHONPATH": str(ROOT)}).start()
    assert isinstance(client, LanguageClient)
    try:
        async with asyncio.timeout(250):
            capabilities = types.ClientCapabilities()
            started = await client.initialize_session(types.InitializeParams(capabilities=capabilities))
            assert started.capabilities.completion_provider is not None
            session = Session(client)
            await what_an_editor_gets(session, tmp_path, cli)
            await what_ends_nothing(session, tmp_path)
            await client.shutdown_session()
            assert client._server is not None
            assert client._server.returncode == 0
    finally:
        if client._server is not None and client._server.returncode is None:
            client._server.kill()
        await client.stop()
    assert [one.message for one in client.log_messages] == []
    assert "Traceback" not in cli.capture.readouterr().err


async def what_an_editor_gets(session: Session, folder: Path, cli: Any) -> None:
    client, path = session.client, folder / "𝄞 orders.suite.yaml"
    path.write_text(WRONG, "utf-8")
    uri = path.as_uri()

    # The problems are those of `validate`, at the same characters.
    found = await session.checked(uri, WRONG)
    positions = Positions(WRONG)
    wanted = [
        (
            one["code"],
            one["severity"],
            one["message"] + (f" ({one['fix']})" if one["fix"] else ""),
            WRONG.splitlines()[one["line"] - 1][one["column"] - 1 : one["end_column"] - 1],
        )
        for one in json.loads(cli("validate", path, "--json").out)
    ]
    severities = {1: "error", 2: "warning", 3: "info"}
    assert [
        (
            one.code,
            severities[one.severity],
            one.message,
            WRONG[positions.offset(one.range.start) : positions.offset(one.range.end)],
        )
        for one in found
    ] == wanted
    assert {one.code for one in found} == {"unknown-property", "agent-option"}
    (typo,) = [one for one in found if one.code == "unknown-property"]
    # Counted by hand, in units of UTF-16: the emoji before it is two. (Ten spaces, the brackets, type, contains.)
    assert (typo.range.start.line, typo.range.start.character) == (11, 10 + 13 + 22 + 12 + 6)

    # A fix makes it right.
    asked = types.CodeActionParams(types.TextDocumentIdentifier(uri), typo.range, types.CodeActionContext([typo]))
    (action,) = await client.text_document_code_action_async(asked)
    assert action.title == "Rename it to starts_with"
    assert list(action.diagnostics) == [typo]
    fixed = edits_of(WRONG, action.edit.changes[uri]).replace("kind: dmo", "kind: demo")
    assert fixed == RIGHT
    assert await session.checked(uri, fixed) == []

    # Words, completion, layout and definitions.
    said = await client.text_document_hover_async(types.HoverParams(**session.at(uri, RIGHT, "starts_with", 2)))
    assert said.contents.value.startswith("**starts_with: a string**")
    assert said.range.start.character == 10 + 13 + 22 + 12 + 6
    typed = RIGHT.replace('"starts_with": "x"', '"ends')
    session.write(uri, typed)
    offered = await client.text_document_completion_async(types.CompletionParams(**session.at(uri, typed, '"ends', 5)))
    item = next(one for one in offered.items if one.label == "ends_with")
    assert edits_of(typed, [item.text_edit]).count('"contains": "😀", "ends_with": ""') == 1
    assert item.filter_text == '"ends_with"'
    messy = RIGHT.replace('"contains": "😀"', '"contains":"😀"')
    session.write(uri, messy)
    laid_out = await client.text_document_formatting_async(
        types.DocumentFormattingParams(types.TextDocumentIdentifier(uri), types.FormattingOptions(2, True))
    )
    assert edits_of(messy, laid_out) == RIGHT
    place = await client.text_document_definition_async(types.DefinitionParams(**session.at(uri, RIGHT, "shop")))
    assert (place.uri, place.range.start.line, place.range.start.character) == (uri, 3, 2)


async def what_ends_nothing(session: Session, folder: Path) -> None:
    client = session.client
    path = folder / "other.suite.yaml"
    (folder / "rows.csv").write_bytes(b"a\n\xff\xfe\n")
    uri = path.as_uri()

    # A text that no file holds, a dataset that is not UTF-8, and a file that is gone.
    assert {one.code for one in await session.checked("untitled:Untitled-1", "tests: 5\n")} == {"wrong-type"}
    rows = RIGHT.replace("    criteria:", "    dataset: {file: rows.csv}\n    criteria:")
    (problem,) = await session.checked(uri, rows)
    assert problem.code == "encoding"
    (folder / "rows.csv").unlink()
    (problem,) = await session.checked(uri, rows + "# gone\n")
    assert problem.code == "dataset"

    # Files that are not suites have no problems, and nothing is offered in them.
    for other in ((folder / "compose.yaml").as_uri(), "file:///%00.suite.yaml", "file://"):
        assert await session.checked(other, "tests: 5\n") == []
        assert await client.text_document_hover_async(types.HoverParams(**session.at(other, "tests: 5", "t"))) is None

    # Five thousand lines, half written, while somebody types.
    lines = "\n".join(f'              "contains_any": ["{number} 😀"],' for number in range(5000))
    big = RIGHT.replace('"contains": "😀", ', "\n" + lines + "\n            ")
    for end in ("", "#", "# x"):
        session.write(uri, big + end)
    assert {one.code for one in await session.checked(uri, big)} == {"duplicate-key"}
    offered = await client.text_document_completion_async(types.CompletionParams(**session.at(uri, big, '"4999', 1)))
    assert offered is not None

    # What is no text, no place, no request, and no message.
    everywhere = [types.Position(0, 0), types.Position(10**9, 10**9)]
    for text in ("", "\ufeff", "\x00", "{{", "[" * 5000, "a" * 3_000_000):
        session.write(uri, text)
        for place in everywhere:
            here = {"text_document": types.TextDocumentIdentifier(uri), "position": place}
            await client.text_document_completion_async(types.CompletionParams(**here))
            await client.text_document_definition_async(types.DefinitionParams(**here))
    missing = {"text_document": types.TextDocumentIdentifier("file:///nowhere/x.suite.yaml"), "position": everywhere[0]}
    assert await client.text_document_hover_async(types.HoverParams(**missing)) is None
    client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier("file:///never/open")))
    assert client._server is not None
    assert client._server.stdin is not None
    for nonsense in (
        *(
            b'{"jsonrpc": "2.0", "method": 5}',
            b"no JSON at all",
            b"[]",
            b'{"jsonrpc": "2.0", "id": 1, "method": "a/b"}',
        ),
        b'{"jsonrpc": "2.0", "id": 2, "method": "textDocument/hover", "params": {"position": -1}}',
        b'{"jsonrpc": "2.0", "id": 3, "method": "textDocument/completion", "params": []}',
    ):
        client._server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(nonsense), nonsense))

    assert await session.checked(uri, RIGHT) == []


def test_without_the_extra_it_says_which(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agenteval_tui.extensions.lsp.language_server")
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    done = cli("lsp")
    assert done.code == 2
    assert done.err == "agenteval: the language server needs the extra `lsp` (pip install 'agenteval-tui[lsp]')\n"


def test_an_error_in_the_program_is_a_line_for_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SuiteServer(None)
    said: list[str] = []
    monkeypatch.setattr(made.server, "window_log_message", lambda params: said.append(params.message))

    def broken(params: Any) -> None:
        raise RuntimeError("first\nsecond")

    assert asyncio.run(made._answers(broken)(None)) is None  # type: ignore[arg-type]
    assert said == ["agenteval lsp: RuntimeError: first second"]


LENSED = """\
name: Echo
agent: echo
agents: {echo: {kind: python, callable: "agent:answer"}}
tests:
  - id: loud
    prompt: HELLO
    repeat: 2
    criteria:
      - {name: Is loud, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: HELLO}]}}
  - id: calm
    prompt: hello
    criteria:
      - {name: Is calm, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
"""


def test_above_a_test_stands_what_the_last_save_of_its_agent_changed(tmp_path: Path) -> None:
    suite, db = tmp_path / "echo.suite.yaml", tmp_path / "h.db"
    suite.write_text(LENSED)
    (tmp_path / "agent.py").write_text("def answer(prompt): return prompt.lower()")
    server = SuiteServer(db)
    server.server.protocol._workspace = Workspace(None)
    server.server.workspace.put_text_document(types.TextDocumentItem(suite.as_uri(), "yaml", 1, LENSED))

    def lenses() -> list[tuple[int, str]]:
        found = server.lenses(types.CodeLensParams(types.TextDocumentIdentifier(suite.as_uri())))
        return [(lens.range.start.line, lens.command.title) for lens in found or () if lens.command is not None]

    assert lenses() == []
    agenteval.run(suite, trust=True, db=db)
    assert lenses() == []
    (tmp_path / "agent.py").write_text("def answer(prompt): return prompt.upper()")
    agenteval.check_change(suite, trust=True, db=db)
    assert lenses() == [(4, "2 pass now"), (9, "1 fails now")]
    (tmp_path / "agent.py").write_text("def answer(prompt): return prompt.lower()  # again")
    agenteval.check_change(suite, trust=True, db=db)
    assert lenses() == [(4, "nothing changes"), (9, "nothing changes")]
    agenteval.run(suite, trust=True, db=db)
    assert lenses() == []
