"""Suites, tests, executions and runs in the palette: typing a name goes there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from textual.command import Hit, Hits, Provider
from textual.content import Content
from textual.style import Style

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms, short_id
from agenteval_tui.core.numbers import age
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.notifications import NotificationSource
from agenteval_tui.tui.presenters.name_match import match
from agenteval_tui.tui.presenters.status_style import word
from agenteval_tui.tui.services import Services, services
from agenteval_tui.tui.workers import until_painted

MOST_EXECUTIONS = 200  # the newest, by title
MOST_RUNS = 5  # the newest that match
SHORTEST = 3  # letters before the history is asked
NAME = 120  # cells of a name
PALETTE_WIDTH = 80  # columns that the palette takes at most, as in app.tcss
PALETTE_FRAME = 5  # columns of its edges and its scroll bar
GROUP_WIDTH = 13  # cells of the longest name of a group, and a gap
BY_ID, BY_TEXT = 1.0, 0.1  # scores of runs: found by their id, and by what was said in them, below all names
OF_PLACES = 0.95  # of the score of a name: of equal ones the command comes first
ELSEWHERE = 0.4  # of the score of a command: those of other screens come below what can be done here
BESIDE = 0.8  # of the score of what a command is called elsewhere
ROOM_FOR_GROUPS = 60  # columns of a line


class PlaceEntry(Struct, frozen=True):
    """Something that can be gone to: its name as it is shown and searched, what it is, where.

    `score`: how well it matches where it was not found by its name."""

    name: str
    about: str
    place: NotificationSource
    score: float = 0.0


def listed_places(session: Session) -> list[PlaceEntry]:
    """Every suite and test, and the newest executions. Reads files and the history: call it in a thread."""
    at = now_ms()
    entries: list[PlaceEntry] = []
    for loaded in session.workspace.suites():
        suite = loaded.suite
        if suite is None:
            continue
        name = one_line(suite.name or loaded.path.name, NAME)
        entries.append(
            PlaceEntry(name, f"suite, {one_line(loaded.path.name, NAME)}", NotificationSource("suite", loaded.key))
        )
        for test in suite.tests:
            title = one_line(" ".join(filter(None, (test.id, test.name))), NAME)
            entries.append(PlaceEntry(title, f"test of {name}", NotificationSource("test", loaded.key, test.id)))
    for row in session.store.executions(MOST_EXECUTIONS):
        about = f"execution, {row.passed:,} of {row.runs:,} passed, {age(row.started_ms, at)}"
        entries.append(PlaceEntry(one_line(row.title or row.id, NAME), about, NotificationSource("execution", row.id)))
    return entries


def runs_named(session: Session, words: str) -> list[PlaceEntry]:
    """The run or execution with this id (or its end), then the newest runs with these words. For a thread, too."""
    store, at = session.store, now_ms()
    entries: list[PlaceEntry] = []
    if " " not in words:
        try:
            entries.append(replace(_run(store.run(words), at), score=BY_ID))
        except AgentevalError:
            # No run has this id: it may be an execution, or a word.
            pass
        try:
            row = store.execution(words)
            entries.append(
                PlaceEntry(
                    one_line(row.title or row.id, NAME),
                    f"execution {short_id(row.id)}",
                    NotificationSource("execution", row.id),
                    BY_ID,
                )
            )
        except AgentevalError:
            pass
    ids = store.run_ids(RunFilter(text=words))
    listed = {entry.place for entry in entries}
    newest = [_with_words(_run(row, at)) for row in store.run_rows(ids[:MOST_RUNS])]
    return [*entries, *(entry for entry in newest if entry.place not in listed)]


def _with_words(run: PlaceEntry) -> PlaceEntry:
    """A run that was found by what is in it, which its name does not show."""
    return replace(run, about=f"{run.about}, has these words", score=BY_TEXT)


def _run(row: RunRow, at: int) -> PlaceEntry:
    name = one_line(f"{row.test_id} run {row.repetition}", NAME)
    return PlaceEntry(
        name,
        f"{word(row.status)}, {age(row.started_ms, at)}, run {short_id(row.id)}",
        NotificationSource("run", row.id),
    )


class ActionsProvider(Provider):
    """The commands of where one is: a line each, by groups, with the key at the right."""

    async def discover(self) -> Hits:
        """All commands, in their order; the first of each group shows its name."""
        before = ""
        offered = list(services(self.screen).offered_commands(self.screen))
        for place, command in enumerate(offered):
            content = self._line(Content(command.label), command.group if command.group != before else "", command.keys)
            yield Hit(1 - place / (len(offered) + 1), content, command.act, text=command.label)
            before = command.group

    async def search(self, query: str) -> Hits:
        """What matches, best first."""
        app = services(self.screen)
        for offered, share in (
            (app.offered_commands(self.screen), 1.0),
            (app.commands_elsewhere(self.screen), ELSEWHERE),
        ):
            for command in offered:
                content, score = matched(query, command.label, self.match_style)
                # What its key is called in the last line, or the key: a person may know that instead.
                for beside in (command.name, command.keys):
                    name_match = match(query, beside)
                    score = max(score, name_match.score * BESIDE if name_match is not None else 0.0)
                if score > 0:
                    line = self._line(content, command.group, command.keys)
                    yield Hit(score * share, line, command.act, text=command.label)

    def _line(self, what: Content, group: str, end: str) -> Content:
        return palette_line(what, group, end, self.app.size.width)


def matched(query: str, name: str, style: Style | None) -> tuple[Content, float]:
    """The name with what was typed marked, and how well it matches: 0 for not at all."""
    name_match = match(query, name)
    content = Content(name)
    if name_match is None:
        return content, 0.0
    for place in name_match.places if style is not None else ():
        content = content.stylize(style or "", place, place + 1)
    return content, name_match.score


def palette_line(what: Content, group: str, end: str, columns: int) -> Content:
    """A line of the palette in a terminal of this many columns: a group, what it is, and at the right its key."""
    room = min(PALETTE_WIDTH, columns) - PALETTE_FRAME
    end = end[: max(room // 4, 0)]
    # With few columns they are for what a command does.
    group = group.ljust(GROUP_WIDTH) if room >= ROOM_FOR_GROUPS else ""
    middle = max(room - len(group) - len(end) - 1, 8)
    what = what.truncate(middle, ellipsis=True, pad=True)
    return Content.assemble((group, "$text-muted not bold"), what, " ", (end, "$text-accent"))


class PlacesProvider(Provider):
    """Asked by the palette for each word that is typed; everything slow happens in threads."""

    _reading: asyncio.Task[list[PlaceEntry]]

    @property
    def _services(self) -> Services:
        return services(self.screen)

    async def startup(self) -> None:
        """Begin to read what there is, once for each time that the palette opens; the palette waits for this method
        with all that it lists."""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> list[PlaceEntry]:
        await until_painted(self.app.screen)
        return await self._asked(lambda: listed_places(self._services.session))

    async def shutdown(self) -> None:
        """The palette was closed."""
        self._reading.cancel()

    async def search(self, query: str) -> Hits:
        """What matches."""
        for entry in await asyncio.shield(self._reading):  # it goes on where another letter ends this search
            content, score = matched(query, entry.name, self.match_style)
            if score > 0:
                yield self._hit(score * OF_PLACES, content, entry)
        words = query.strip()
        if len(words) >= SHORTEST:
            for entry in await self._asked(lambda: runs_named(self._services.session, words)):
                yield self._hit(entry.score, Content(entry.name), entry)

    def _hit(self, score: float, content: Content, entry: PlaceEntry) -> Hit:
        group = "tests" if entry.place.kind in ("suite", "test") else "runs"
        about = Content.assemble(content, (f"  {entry.about}", "$text-muted not bold"))
        line = palette_line(about, group, "", self.app.size.width)
        return Hit(score, line, partial(self._go, entry.place), text=entry.name)

    def _go(self, place: NotificationSource) -> None:
        self._services.visit(place)

    @staticmethod
    async def _asked(work: Callable[[], list[PlaceEntry]]) -> list[PlaceEntry]:
        try:
            return await asyncio.to_thread(work)
        except AgentevalError:
            return []  # the screens say what is wrong with suites and history; here there is just less to find
