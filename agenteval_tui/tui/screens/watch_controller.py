"""What the Watch screen knows, without Textual: what is watched, the last save, and the runs that differ."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.core.numbers import count, dollars
from agenteval_tui.runs.change.model import (
    Checked,
    CodeChange,
    Ignored,
    RunChange,
    RunChecked,
    Saved,
    WatchEvent,
    Watching,
)
from agenteval_tui.tui.code_watch import WatchRequest
from agenteval_tui.tui.presenters.text_layout import empty_state, paragraph
from agenteval_tui.tui.presenters.watch_rows import WatchRows, change_spans
from agenteval_tui.tui.styled_text import Cell, Line

PURPOSE = "Edit an agent in your editor: after each save you see here which verdicts change."
_REAL = (
    "The agents' code, their tools, hooks, services and probes run for real. Answers of models come from the "
    "recordings, and nothing is paid for."
)


class WatchController:
    """The state of the Watch screen."""

    def __init__(self) -> None:
        self.request: WatchRequest | None = None
        self.watching: Watching | None = None
        self.saved: Saved | None = None
        self.change: CodeChange | None = None
        self.error: CodeChange | None = None
        """The last save, if its code could not be run."""
        self.ignored: list[str] = []
        self.running: dict[str, RunChange] = {}
        """The runs that have ended since the last save, by the recorded run."""
        self.busy = False
        self.ended = ""
        """Why it does not watch any more; "": it does."""
        self.everything = False
        """Whether unchanged runs are listed, too."""

    def begin(self, request: WatchRequest) -> None:
        """Something is watched from now on."""
        everything = self.everything
        self.__init__()  # type: ignore[misc]  # all of it is of what was watched before
        self.request, self.everything, self.busy = request, everything, True

    def take(self, event: WatchEvent) -> None:
        """One more event."""
        match event:
            case Watching():
                self.watching = event
            case Saved():
                self.saved, self.busy, self.running = event, True, {}
            case RunChecked(change=run):
                self.running[run.before] = run
            case Checked(change=change):
                self.busy = False
                if change.error:
                    self.error = change
                else:
                    self.change, self.error = change, None
            case Ignored(file=file):
                self.ignored.append(file)

    def rows(self) -> WatchRows:
        """The runs: while some are being made, those that have ended in place of what they were."""
        runs = list(self.change.runs) if self.change is not None else []
        if self.busy and self.running:
            known = {run.before for run in runs}
            runs = [self.running.get(run.before, run) for run in runs]
            runs += [run for name, run in self.running.items() if name not in known]
        return WatchRows(runs, everything=self.everything)

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
        if self.busy and not self.ended:
            done, most = len(self.running), self.saved.runs if self.saved is not None else 0
            begun = f"running {done} of {count(most, 'run')} …" if self.saved is not None else "starting …"
            lines.append(((begun, "accent"),))
        for file in self.ignored:
            lines += paragraph(f"{file} is not watched any more: the runs write it.", width, "dim")
        return [((" ", ""), *line) for line in lines]

    def empty(self) -> list[Line]:
        """What the list says that has no rows."""
        if self.request is None:
            return empty_state(PURPOSE, "Nothing is watched.", "{go.suites}", "choose a suite, and watch it there")
        if self.change is None:
            return empty_state(
                PURPOSE, self.ended or "The recorded runs are run again with the code as it is.", "", "", _REAL
            )
        why = "Every run is as it was recorded. Save a file of the agent."
        return empty_state("", why, "{watch.everything}" if self.change.runs else "", "list them", _REAL)

    def needed(self) -> str:
        """What asking the model would cost, in words; "" where no run needs it."""
        change = self.change
        if change is None or not change.needs_model:
            return ""
        price = f", about {dollars(change.needed_cost)}" if change.needed_cost else ""
        return f"{count(change.needs_model, 'run')}{price}"
