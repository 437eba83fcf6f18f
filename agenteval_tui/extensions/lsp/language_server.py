"""The language server of suites: `agenteval lsp`, by pygls.

The texts are those of the editor, saved or not. Nothing of a suite is run: what is said of it is what `agenteval
validate` says. Whatever a client asks, the server lives; an error in the program is one line in the client's log.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar, cast
from urllib.parse import unquote

from lsprotocol import types
from msgspec.structs import replace
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from agenteval_tui import __version__
from agenteval_tui.analysis.lint import check_suite, user_agents
from agenteval_tui.analysis.lint_tool_names import facts_problems
from agenteval_tui.core import directories
from agenteval_tui.core.display import displayable
from agenteval_tui.core.errors import AgentevalError, Problem, TextEdit
from agenteval_tui.extensions.lsp.suite_language import (
    agent_names,
    complete_suite,
    config_fixes,
    definition,
    explain_suite,
    format_suite,
    id_of_test_at,
)
from agenteval_tui.grading.config.completion import prepare
from agenteval_tui.grading.observed_tools import AgentFacts
from agenteval_tui.history.agent_facts import facts_for
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.last_change import last_change
from agenteval_tui.suites.datasets import variable_names
from agenteval_tui.suites.discover import is_suite_name
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.uxon.complete import Offer

DEBOUNCE = 0.25
"""Seconds without a change after which a text is checked."""
LOOK = 0.5
"""Seconds between two looks whether the history has new runs."""
UNSAVED = "unsaved.suite.yaml"
"""What a text is called that no file holds yet."""
_LARGEST = 64_000_000  # bytes of a message
_LONGEST_LINE = 8192  # bytes of a header's line
_LENGTH = b"Content-Length: "
_MOST = 2_000_000  # characters of a text that is looked at

_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
_KINDS = {
    "property": types.CompletionItemKind.Property,
    "value": types.CompletionItemKind.EnumMember,
    "type": types.CompletionItemKind.Class,
    "tool": types.CompletionItemKind.Function,
    "argument": types.CompletionItemKind.Field,
    "example": types.CompletionItemKind.Value,
    "text": types.CompletionItemKind.Text,
}
T = TypeVar("T")
Asked = TypeVar("Asked", bound="_Question")


class Positions:
    """Offsets of a text (characters) and the protocol's places. A line ends with LF, CR LF or CR; a column counts the
    units of the encoding that was agreed on, of UTF-16 mostly.
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self._encoding = encoding
        self._starts = [0]
        at = 0
        while (at := self._line_end(at)) >= 0:
            at += 2 if text.startswith("\r\n", at) else 1
            self._starts.append(at)
        self._feeds = text.startswith("\ufeff")  # an order mark, which offsets of suites do not count

    def _line_end(self, at: int) -> int:
        ends = [end for end in (self.text.find("\n", at), self.text.find("\r", at)) if end >= 0]
        return min(ends, default=-1)

    def _units(self, text: str) -> int:
        if self._encoding == "utf-32" or text.isascii():
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(char > "\uffff" for char in text)

    def position(self, offset: int) -> types.Position:
        """The place of an offset of the suite's text."""
        offset = min(max(offset + self._feeds, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        return types.Position(line, self._units(self.text[self._starts[line] : offset]))

    def range(self, start: int, end: int) -> types.Range:
        """The places of two offsets."""
        return types.Range(self.position(start), self.position(max(start, end)))

    def offset(self, position: types.Position) -> int:
        """The offset of a place; the nearest that there is."""
        if position.line >= len(self._starts):
            return len(self.text) - self._feeds
        start = self._starts[max(position.line, 0)]
        end = self._line_end(start)
        line = self.text[start : end if end >= 0 else len(self.text)]
        target, at = max(position.character, 0), 0
        if line.isascii():
            at = min(target, len(line))
        else:
            units = 0
            while at < len(line) and units < target:
                units += self._units(line[at])
                at += 1
        return max(start + at - self._feeds, 0)

    def edit(self, text_edit: TextEdit) -> types.TextEdit:
        """An edit of the suite's text."""
        return types.TextEdit(self.range(text_edit.start, text_edit.end), text_edit.text)


class _Question(Protocol):
    """The parameters of a question about a text."""

    text_document: types.TextDocumentIdentifier


def _about_suite(
    ask: Callable[[SuiteServer, Asked, LoadedSuite, Positions], T | None],
) -> Callable[[SuiteServer, Asked], T | None]:
    """A question about a suite. For a text that is not open or not a suite, there is no answer."""

    @functools.wraps(ask)
    def answer(server: SuiteServer, params: Asked) -> T | None:
        opened = server.suite_at(params.text_document.uri)
        return None if opened is None else ask(server, params, *opened)

    return answer


class SuiteServer:
    """What is known of the open texts, and the answers to an editor's questions about them."""

    def __init__(self, db: Path | None) -> None:
        self._db = db
        self._facts: dict[tuple[str, str], AgentFacts] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._following: asyncio.Task[None] | None = None
        self.server = LanguageServer(
            "agenteval", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full, max_workers=2
        )
        self._register()

    # Texts

    def _document(self, uri: str) -> TextDocument | None:
        """The open document; never one from the disk, as pygls has it. It keeps them without escapes in their names."""
        text_document: TextDocument | None = self.server.workspace.text_documents.get(unquote(uri))
        return text_document

    def _text(self, uri: str) -> str | None:
        """The text of an open document; None where there is none, or it is too large to be looked at."""
        text_document = self._document(uri)
        if text_document is None:
            return None
        text: str = text_document.source
        return text if len(text) <= _MOST else None

    def _positions(self, text: str) -> Positions:
        return Positions(text, str(getattr(self.server.workspace.position_encoding, "value", "utf-16")))

    @staticmethod
    def path_of(uri: str) -> Path | None:
        """The suite's path; None for a file that is not a suite. A text without a file is taken for one."""
        if not uri.startswith("file:"):
            return Path(UNSAVED)
        try:
            path = Path(to_fs_path(uri) or "")
        except ValueError:
            return None
        return path if is_suite_name(path.name) and "\0" not in str(path) else None

    def suite_at(self, uri: str) -> tuple[LoadedSuite, Positions] | None:
        """The suite in an open text, and its places; None where there is none."""
        text, path = self._text(uri), self.path_of(uri)
        if text is None or path is None:
            return None
        return load_text(text, path), self._positions(text)

    # Problems

    def check_soon(self, uri: str, *, recorded: bool) -> None:
        """Check a text once it has not changed for a moment. `recorded`: compare it with the recordings too."""
        if (before := self._waiting.pop(uri, None)) is not None:
            before.cancel()
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._check(uri, recorded))

    async def _check(self, uri: str, recorded: bool) -> None:
        # Opened and saved texts do not change in the next moment.
        await asyncio.sleep(0 if recorded else DEBOUNCE)
        document = self._document(uri)
        version = document.version if document is not None else None
        try:
            diagnostics = await asyncio.to_thread(self.diagnostics, uri, recorded)
        except Exception as error:
            self.tell(error)
            return
        # It may have been closed meanwhile, and nobody would take back what is published for it then.
        if self._document(uri) is not None:
            self.server.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, diagnostics, version=version)
            )

    def diagnostics(self, uri: str, recorded: bool) -> list[types.Diagnostic]:
        """What `agenteval validate` says of a text, at its places."""
        opened = self.suite_at(uri)
        if opened is None:
            return []
        loaded, positions = opened
        agents = user_agents()
        problems = check_suite(loaded, agents)
        if recorded and (store := self._store()) is not None:
            with store:
                problems = [*problems, *facts_problems(loaded, store, agents)]
        return [self._diagnostic(problem, loaded, positions) for problem in problems]

    def _diagnostic(self, problem: Problem, loaded: LoadedSuite, positions: Positions) -> types.Diagnostic:
        message = f"{problem.message} ({problem.fix})" if problem.fix else problem.message
        if problem.file == str(loaded.path):
            start = loaded.places.offset(problem.line, problem.column)
            end = loaded.places.offset(problem.end_line, problem.end_column)
        else:  # in a dataset: said where the suite names the file
            message = f"{problem.where}: {message}"
            start = max(loaded.text.find(Path(problem.file).name), 0)
            end = start + len(Path(problem.file).name)
        return types.Diagnostic(
            positions.range(start, end),
            displayable(message),
            severity=_SEVERITY[problem.severity],
            code=problem.code,
            source="agenteval",
        )

    def _store(self) -> Store | None:
        """The history, to read; None where there is none, or it can't be read."""
        path = directories.history_file(self._db)
        if not path.is_file():
            return None
        try:
            return Store.open(path, read_only=True)
        except AgentevalError:
            return None

    def _recorded(self, key: str, test_id: str) -> AgentFacts:
        """What recordings know of a test; read once, until the suite is saved."""
        agent_facts = self._facts.get((key, test_id))
        if agent_facts is None:
            agent_facts = AgentFacts()
            if (store := self._store()) is not None:
                with store:
                    agent_facts = facts_for(store, key, test_id or None)
            self._facts[key, test_id] = agent_facts
        return agent_facts

    # Questions

    @_about_suite
    def complete(
        self, params: types.CompletionParams, loaded: LoadedSuite, positions: Positions
    ) -> types.CompletionList | None:
        """What can be written at a place."""
        offset = positions.offset(params.position)
        test_id = id_of_test_at(loaded, offset)
        probes = loaded.suite.probe_names(test_id) if loaded.suite is not None else ()
        names = variable_names(
            loaded.suite.test(test_id) if loaded.suite is not None else None, Path(loaded.path).parent
        )
        facts = replace(self._recorded(loaded.key, test_id), probe_names=probes, variable_names=names)
        offers = complete_suite(loaded.text, offset, agent_names(loaded, user_agents()), facts)
        items = [_item(offer, order, offset, positions) for order, offer in enumerate(offers)]
        return types.CompletionList(is_incomplete=False, items=[item for item in items if item is not None])

    @_about_suite
    def hover(self, params: types.HoverParams, loaded: LoadedSuite, positions: Positions) -> types.Hover | None:
        """What is at a place."""
        explained = explain_suite(loaded.text, positions.offset(params.position))
        if explained is None:
            return None
        title, *rest = (displayable(line) for line in explained.lines)
        text = "\n\n".join([f"**{title}**", *rest])
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content, positions.range(explained.start, explained.end))

    @_about_suite
    def fixes(
        self, params: types.CodeActionParams, loaded: LoadedSuite, positions: Positions
    ) -> list[types.CodeAction] | None:
        """The fixes for the problems at a place."""
        uri = params.text_document.uri
        start, end = positions.offset(params.range.start), positions.offset(params.range.end)
        code_actions = []
        for config_fix in config_fixes(loaded, start, end):
            where = positions.range(config_fix.start, config_fix.end)
            solved = [
                diagnostic
                for diagnostic in params.context.diagnostics
                if diagnostic.code == config_fix.code and diagnostic.range.start == where.start
            ]
            edit = types.WorkspaceEdit(changes={uri: [positions.edit(edit) for edit in config_fix.fix.edits]})
            title = displayable(config_fix.fix.title)
            code_actions.append(
                types.CodeAction(
                    title[:1].upper() + title[1:],
                    types.CodeActionKind.QuickFix,
                    diagnostics=solved or None,
                    edit=edit,
                    is_preferred=True,
                )
            )
        return code_actions

    @_about_suite
    def layout(
        self, params: types.DocumentFormattingParams, loaded: LoadedSuite, positions: Positions
    ) -> list[types.TextEdit] | None:
        """Every config that is a text, laid out."""
        return [positions.edit(text_edit) for text_edit in format_suite(loaded)]

    @_about_suite
    def where(self, params: types.DefinitionParams, loaded: LoadedSuite, positions: Positions) -> types.Location | None:
        """Where what is named at a place is defined."""
        target = definition(loaded, positions.offset(params.position))
        if target is None:
            return None
        own = target.path == loaded.path
        uri = params.text_document.uri if own else from_fs_path(str(target.path)) or ""
        return types.Location(uri, (positions if own else self._positions(target.text)).range(target.start, target.end))

    @_about_suite
    def lenses(
        self, params: types.CodeLensParams, loaded: LoadedSuite, positions: Positions
    ) -> list[types.CodeLens] | None:
        """Above each test, what the last save of its agent's code changed (`agenteval run --watch`)."""
        if (store := self._store()) is None:
            return None
        with store:
            changes = last_change(store, loaded.key)
        nodes = [(node.start, changes[test]) for test, node in loaded.test_nodes.items() if test in changes]
        return [
            types.CodeLens(positions.range(start, start), types.Command(change.words, "")) for start, change in nodes
        ]

    async def _follow_history(self) -> None:
        """Have the editor ask for lenses again when runs have ended."""
        before: object = None
        while True:
            await asyncio.sleep(LOOK)
            try:
                state = await asyncio.to_thread(self._state)
            except AgentevalError as error:
                self.tell(error)
                return
            # Not at the first look: the editor has just asked.
            if state != before and before is not None:
                self.server.workspace_code_lens_refresh(None)
            before = state

    def _state(self) -> object:
        store = self._store()
        if store is None:
            return ()
        with store:
            return store.runs_state()

    # The protocol

    def tell(self, error: BaseException) -> None:
        """One line in the client's log."""
        message = error.sentence if isinstance(error, AgentevalError) else f"{type(error).__name__}: {error}"
        line = " ".join(displayable(f"agenteval lsp: {message}").split())[:500]
        self.server.window_log_message(types.LogMessageParams(types.MessageType.Error, line))

    def _answers(self, ask: Callable[[Any], T]) -> Callable[[Any], Awaitable[T | None]]:
        """Ask in a thread. What goes wrong is told, and the answer is none."""

        @functools.wraps(ask)
        async def answer(params: Any) -> T | None:
            try:
                return await asyncio.to_thread(ask, params)
            except Exception as error:
                self.tell(error)
                return None

        return answer

    def _register(self) -> None:
        feature = self.server.feature

        @feature(types.INITIALIZED)
        def _(params: types.InitializedParams) -> None:
            asyncio.get_running_loop().run_in_executor(None, prepare)
            workspace = self.server.client_capabilities.workspace
            if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
                self._following = asyncio.get_running_loop().create_task(self._follow_history())

        @feature(types.TEXT_DOCUMENT_DID_OPEN)
        def _(params: types.DidOpenTextDocumentParams) -> None:
            self.check_soon(params.text_document.uri, recorded=True)

        @feature(types.TEXT_DOCUMENT_DID_CHANGE)
        def _(params: types.DidChangeTextDocumentParams) -> None:
            self.check_soon(params.text_document.uri, recorded=False)

        @feature(types.TEXT_DOCUMENT_DID_SAVE)
        def _(params: types.DidSaveTextDocumentParams) -> None:
            self._facts.clear()
            self.check_soon(params.text_document.uri, recorded=True)

        @feature(types.TEXT_DOCUMENT_DID_CLOSE)
        def _(params: types.DidCloseTextDocumentParams) -> None:
            uri = params.text_document.uri
            if (waiting := self._waiting.pop(uri, None)) is not None:
                waiting.cancel()
            self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

        typed = types.CompletionOptions(trigger_characters=['"', ":", " ", "$"])
        feature(types.TEXT_DOCUMENT_COMPLETION, typed)(self._answers(self.complete))
        feature(types.TEXT_DOCUMENT_HOVER)(self._answers(self.hover))
        quick = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
        feature(types.TEXT_DOCUMENT_CODE_ACTION, quick)(self._answers(self.fixes))
        feature(types.TEXT_DOCUMENT_FORMATTING)(self._answers(self.layout))
        feature(types.TEXT_DOCUMENT_DEFINITION)(self._answers(self.where))
        feature(types.TEXT_DOCUMENT_CODE_LENS)(self._answers(self.lenses))


def _item(offer: Offer, order: int, offset: int, positions: Positions) -> types.CompletionItem | None:
    """An offer in the protocol's form: the edit at the cursor, and those elsewhere (a comma before it)."""
    main = next((edit for edit in reversed(offer.edits) if edit.start <= offset <= edit.end), None)
    if main is None:
        return None
    label = displayable(offer.label)
    # Editors compare what is typed with this, from the edit's start: quotes are part of it.
    typed = positions.text[main.start : offset]
    return types.CompletionItem(
        label,
        kind=_KINDS[offer.kind],
        detail=displayable(offer.detail) or None,
        sort_text=f"{order:04d}",
        filter_text=f'"{offer.label}"' if typed.startswith('"') else offer.label,
        text_edit=positions.edit(main),
        additional_text_edits=[positions.edit(edit) for edit in offer.edits if edit is not main] or None,
    )


class Requests:
    """What a client sends, without messages that are too large to be read. Such a message is passed over: the next one
    is where the next header is, whether the length was true or not. (A message is JSON and has no line feed in a text.)
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._passing = False
        self._passed = b""
        """The end of what was passed over."""

    def readline(self) -> bytes:
        """A line of a header; b"" at the end."""
        while line := self._stream.readline(_LONGEST_LINE):
            if self._passing:
                self._passed = self._passed[-_LONGEST_LINE:] + line
                start = self._passed.rfind(_LENGTH)
                if start < 0 or not line.endswith(b"\n"):
                    continue
                line, self._passing = self._passed[start:], False
            digits = line.removeprefix(_LENGTH).strip() if line.startswith(_LENGTH) else b""
            if digits.isdigit() and (len(digits) > len(str(_LARGEST)) or int(digits) > _LARGEST):
                self._passing, self._passed = True, b""
                continue
            return line
        return b""

    def read(self, size: int) -> bytes:
        """A message of `size` bytes; fewer at the end."""
        return self._stream.read(size)


def serve(db: Path | None) -> None:
    """Serve on standard input and output until the client ends it."""
    # What a client does wrong is answered to the client; standard error has no reader, or shows it to a person.
    log = logging.getLogger("pygls")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    # pygls closes its streams at the end: it gets copies of ours.
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(os.dup(1), "wb") as answers:
        SuiteServer(db).server.start_io(cast(BinaryIO, Requests(requests)), answers)
