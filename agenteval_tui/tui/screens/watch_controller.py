"""What the Watch screen knows and says, without Textual: what is watched, the last save, the runs that a change of the
agent's code made again, and the change in a line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from agenteval_tui.analysis.trajectory_alignment import arguments_json
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import about_dollars, count
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.model import (
    Checked,
    CodeChange,
    Ignored,
    NotBuilt,
    RunChange,
    RunChecked,
    Saved,
    WatchEvent,
    Watching,
    first_difference,
)
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.code_watch import WatchRequest
from agenteval_tui.tui.presenters.status_style import glyph, token
from agenteval_tui.tui.styled_text import (
    Cell,
    Line,
    between,
    cell_len,
    empty_state,
    fit,
    indented,
    labelled,
    left,
    paragraph,
    spread,
    wrap,
)
from agenteval_tui.views.code_change import (
    EFFECTS,
    change_text,
    copy_text,
    not_built_text,
    real_tools_text,
    unrecorded_tools_text,
    what_runs,
)

_ORDER = {"passes": 0, "fails": 1, "needs_model": 2, "unchanged": 3}
STYLES = {"good": "passed", "bad": "failed", "warn": "review", "dim": "dim", "": ""}
_EFFECT = 16
_NAMES = 40  # cells of a run's name at most


class WatchRows:
    """The list's source: what changed first. Unchanged runs are listed only where `everything` is."""

    def __init__(self, runs: Sequence[RunChange], *, everything: bool) -> None:
        listed = [run for run in runs if everything or run.effect != "unchanged"]
        self.runs = sorted(listed, key=lambda run: _ORDER[run.effect])
        self._names = max((_named(*_words(run))[1] for run in listed), default=0)

    def count(self) -> int:
        """How many there are."""
        return len(self.runs)

    def key(self, index: int) -> str:
        """The id of the recorded run."""
        return self.runs[index].before

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        """`passes now       ✗ → ✓  cancel#1   It is cancelled   HSG6J0M2 → 7J2K`."""
        run = self.runs[index]
        words, meaning = EFFECTS[run.effect]
        style = STYLES[meaning]
        status = "needs_review" if run.effect == "needs_model" else run.status or run.status_before
        cells: list[Cell] = [
            (left(words, _EFFECT), style),
            (glyph(run.status_before), token(run.status_before)),
            (" → ", "dim"),
            (glyph(status), token(status)),
            ("  ", ""),
            (left(_name(run), min(self._names, _NAMES)), "bold" if run.effect != "unchanged" else ""),
            ("  ", ""),
        ]
        if run.effect == "needs_model":
            price = f", {about_dollars(run.cost)}" if run.cost else ""
            cells.append((f"from request {run.request} on{price}: " if run.request else "", ""))
        named = f"{run.criterion}: " if run.criterion else ""
        cells.append((one_line(f"{named}{run.reason}", 400), "dim"))
        tail: list[Cell] = [(f" {short_id(run.after)} ", "dim")] if run.after and width >= 100 else []
        return spread(cells, tail, width)


def change_spans(change: CodeChange, folder: Path, width: int) -> list[Line]:
    """The change in words, wrapped, with their colours."""
    spans = [
        (displayable(text).replace("\n", " "), STYLES.get(meaning, "")) for text, meaning in change_text(change, folder)
    ]
    whole = "".join(text for text, _ in spans)
    return [fit(between(spans, start, end), width) for start, end in wrap(whole, max(width, 10))]


def _name(run: RunChange) -> str:
    return _named(*_words(run))[0]


def _words(run: RunChange) -> tuple[str, int, str, str]:
    return run.test, run.repetition, run.row_key, run.variation


@lru_cache(10_000)  # the rows are put together anew ten times in a second, while runs are made
def _named(test: str, repetition: int, row_key: str, variation: str) -> tuple[str, int]:
    """A run's name, and its cells."""
    row = f" {row_key.partition(':')[2]}" if row_key else ""
    variations = f" ({variation})" if variation else ""
    name = one_line(f"{test}#{repetition}{row}{variations}", 80)
    return name, cell_len(name)


PURPOSE = "Edit an agent in your editor: after each save you see here which verdicts change."


class MessageDifference(Struct, frozen=True):
    """The first message that two runs do not have in common, as text; "": that run has none there."""

    step: int
    before: str
    now: str


def read_difference(store: Store, run: RunChange) -> MessageDifference | None:
    """Where a new run differs first from the recorded one; None: nowhere. Raises `AgentevalError`."""
    if not run.after:
        return None
    before, now = store.transcript(run.before), store.transcript(run.after)
    step = first_difference(before, now)
    return None if step is None else MessageDifference(step, _message(before, step), _message(now, step))


def _message(transcript: Transcript, step: int) -> str:
    if step > len(transcript.messages):
        return ""
    message = transcript.messages[step - 1]
    calls = [transcript.tool_calls[index] for index in message.tool_calls]
    words = [f"{call.name} {arguments_json(call.arguments)}" for call in calls]
    return f"{message.role}: " + "\n".join(filter(None, (message.content, *words)))


class WatchController:
    """The state of the Watch screen."""

    def __init__(self, request: WatchRequest | None = None, *, everything: bool = False) -> None:
        self.request = request
        self.watching: Watching | None = None
        self.saved: Saved | None = None
        self.change: CodeChange | None = None
        self.error: CodeChange | None = None
        """The last save, if its code could not be run."""
        self.ignored: list[str] = []
        self.not_built: NotBuilt | None = None
        """The last save, if it is of sources that are not built yet."""
        self.running: dict[str, RunChange] = {}
        """The runs that have ended since the last save, by the recorded run."""
        self.busy = request is not None
        self.ended = ""
        """Why it does not watch any more; "": it does."""
        self._differences: dict[tuple[str, str], MessageDifference | None] = {}
        self.everything = everything
        """Whether unchanged runs are listed, too."""
        self._listed: tuple[tuple[object, ...], WatchRows] | None = None

    def take(self, event: WatchEvent) -> None:
        """One more event."""
        match event:
            case Watching():
                self.watching = event
            case Saved():
                self.saved, self.busy, self.running, self.not_built = event, True, {}, None
            case RunChecked(change=run):
                self.running[run.before] = run
            case Checked(change=change):
                self.busy = False
                if change.error:
                    # What could be run last stays: the rows are of it.
                    self.error = change
                else:
                    self.change, self.error = change, None
            case Ignored(file=file):
                self.ignored.append(file)
            case NotBuilt():
                self.not_built = event

    def rows(self) -> WatchRows:
        """The runs: while some are being made, those that have ended in place of what they were. They are put together
        once for each state: there may be thousands."""
        state = (self.change, len(self.running), self.busy, self.everything)
        if self._listed is not None and self._listed[0][0] is state[0] and self._listed[0][1:] == state[1:]:
            return self._listed[1]
        self._listed = state, self._rows()
        return self._listed[1]

    def _rows(self) -> WatchRows:
        runs = list(self.change.runs) if self.change is not None else []
        if self.busy and self.running:
            before = {run.before for run in runs}
            runs = [self.running.get(run.before, run) for run in runs]
            runs += [run for name, run in self.running.items() if name not in before]
        return WatchRows(runs, everything=self.everything)

    @property
    def has_to_run(self) -> bool:
        """Whether a test is not as it was recorded, or was not recorded."""
        change, watching = self.change, self.watching
        changed = change is not None and bool(change.passes + change.fails + change.needs_model)
        return changed or (watching is not None and bool(watching.missing))

    def wants_difference(self, run: RunChange) -> bool:
        """Whether it is not known yet where a run differs."""
        return bool(run.after) and (run.before, run.after) not in self._differences

    def take_difference(self, run: RunChange, difference: MessageDifference | None) -> None:
        """Where a run differs."""
        self._differences[run.before, run.after] = difference

    def detail(self, run: RunChange, width: int) -> list[Line]:
        """A run: why it is what it is now, and the first message that differs, before and now."""
        words, meaning = EFFECTS[run.effect]
        name = f"{run.test_name or run.test}, run {run.repetition}"
        lines: list[Line] = [((f"{one_line(name, 200)}  ", "bold"), (words, STYLES[meaning]))]
        if run.reason:
            named = f"{run.criterion}: " if run.criterion else ""
            lines += paragraph(f"{named}{run.reason}", width)
        difference = self._differences.get((run.before, run.after))
        if difference is not None:
            lines += [(), ((f"message {difference.step}", "dim"),)]
            lines += labelled("recorded", difference.before or "(the run ends before)", width, style="removed")
            lines += labelled("now", difference.now or "(the run ends before)", width, style="added")
        return lines

    @property
    def folder(self) -> Path:
        """The folder that files are named from."""
        projects = self.watching.projects if self.watching is not None else ()
        return Path(projects[0]) if projects else Path.cwd()

    def heading(self) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """What is watched, and how many runs there are."""
        request, watching = self.request, self.watching
        if request is None:
            return (("Watch", "bold"),), ()
        right = ""
        if watching is not None:
            right = f"{count(watching.recorded, 'recorded run')}, {watching.failing:,} failed"
        if request.recorded_tools:
            return (("Watch ", "bold"), ("with recorded tools ", "accent"), (request.title, "bold")), ((right, "dim"),)
        return ((f"Watch {request.title}", "bold"),), ((right, "dim"),)

    def lines(self, width: int) -> list[Line]:
        """What the last save changed, above the list."""
        width = max(width - 2, 10)
        lines: list[Line] = []
        if self.ended:
            lines += paragraph(self.ended, width, "bold failed")
        if self.error is not None:
            lines += change_spans(self.error, self.folder, width)
        if self.change is not None:
            lines += change_spans(self.change, self.folder, width)
            if self.change.real_tools:
                lines += paragraph(real_tools_text(self.change), width, "review")
        if self.busy and not self.ended:
            done, most = len(self.running), self.saved.runs if self.saved is not None else 0
            begun = f"running {done:,} of {count(most, 'run')} …" if self.saved is not None else "starting …"
            lines.append(((begun, "accent"),))
        missing = self.watching.missing if self.watching is not None else 0
        if missing:
            have = "has" if missing == 1 else "have"
            words = f"{count(missing, 'run')} of the plan {have} no recording: run them for real first."
            lines += paragraph(words, width, "review")
        for copy in () if self.watching is None else self.watching.copies:
            lines += paragraph(copy_text(copy), width, "review")
        if self.watching is not None and self.watching.real_tools:
            lines += paragraph(unrecorded_tools_text(self.watching), width, "review")
        if self.not_built is not None:
            lines += paragraph(not_built_text(self.not_built, self.folder), width, "review")
        for file in self.ignored:
            lines += paragraph(f"{file} is left alone while runs are made: they write it.", width, "dim")
        return indented(lines)

    def empty(self) -> list[Line]:
        """What the list says that has no rows."""
        if self.request is None or (self.ended and self.change is None):  # why it ended stands above
            return empty_state(PURPOSE, "Nothing is watched.", "{go.suites}", "choose a suite, and watch it there")
        runs = what_runs(live=False, tools_recorded=self.request.recorded_tools)
        if self.change is None:
            return empty_state(PURPOSE, "The recorded runs are run again with the code as it is.", "", "", runs)
        why = "Every run is as it was recorded. Save a file of the agent."
        return empty_state("", why, "{watch.everything}" if self.change.runs else "", "list them", runs)

    def needed(self) -> str:
        """What asking the model would cost, in words; "" where no run needs it."""
        change = self.change
        if change is None or not change.needs_model:
            return ""
        price = f", {about_dollars(change.needed_cost)}" if change.needed_cost else ""
        return f"{count(change.needs_model, 'run')}{price}"
