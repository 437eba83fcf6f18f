"""What the History screen does to what is chosen: baselines, comparing, deleting, pruning, files in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval_tui.core.display import one_line
from agenteval_tui.history import delete_runs, pruning
from agenteval_tui.history.baselines import (
    Baseline,
    BaselineSet,
    baselines,
    baselines_of,
    clear_baselines,
    set_baseline_run,
)
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.delete_runs import DeleteResult, remove_runs
from agenteval_tui.runs.client import live_executions
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.text_layout import paragraph
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.baseline_dialogs import ask_to_clear, set_after_asking
from agenteval_tui.tui.screens.confirm_dialog import QuestionScreen
from agenteval_tui.tui.screens.import_export_dialogs import ExportScreen, ImportOutcome, ImportScreen
from agenteval_tui.tui.screens.prune import PruneScreen
from agenteval_tui.tui.styled_text import Line

if TYPE_CHECKING:
    from agenteval_tui.history.records import ExecutionRow, RunRow

KEPT_FOR = {
    "baseline": "are a baseline, which is cleared with them",
    "labelled": "are labelled by people",
    "quarantine": "belong to tests in quarantine",
    "triage": "are examples of triage decisions",
}


class HistoryChanges(FrameScreen):
    """The actions; the list is in `HistoryScreen`."""

    def chosen_ids(self) -> tuple[bool, list[int]]:
        """Whether these are runs; row ids of what is marked, else of the row with the cursor; [] for none."""
        raise NotImplementedError

    def at_cursor(self) -> int | None:
        """The row id under the cursor."""
        raise NotImplementedError

    def go_to(self, row: ExecutionRow, *, opens: bool) -> None:
        """Put the cursor on an execution of the list, or show its runs."""
        raise NotImplementedError

    def reload(self) -> None:
        """Read the list again."""
        raise NotImplementedError

    def action_unmark(self) -> None:
        """Take all marks away."""
        raise NotImplementedError

    @property
    def execution(self) -> ExecutionRow | None:
        """The execution whose runs are shown; None: other lists."""
        return getattr(self, "_execution", None)

    def _with_executions(self, then: Callable[[list[ExecutionRow]], None]) -> None:
        """`then` with the chosen executions (of runs: theirs), the oldest first; says so where there is none."""
        runs, ids = self.chosen_ids()
        store = self.agenteval.session.store
        if not ids:
            self.agenteval.say("There is nothing to choose yet.")
            return

        def read() -> list[ExecutionRow]:
            if not runs:
                return store.execution_rows(ids)
            names = dict.fromkeys(row.execution_id for row in store.run_rows(ids))
            return sorted((store.execution(one) for one in names), key=lambda row: row.rowid)

        self.ask(read, then, group="chosen")

    def _with_runs(self, then: Callable[[list[RunRow]], None]) -> None:
        """`then` with the chosen runs, the oldest first."""
        runs, ids = self.chosen_ids()
        store = self.agenteval.session.store
        if runs and ids:
            self.ask(lambda: store.run_rows(ids), then, group="chosen")

    # Watching and resuming

    def action_watch(self) -> None:

        store, (runs, ids) = self.agenteval.session.store, self.chosen_ids()
        shown = self.execution

        def read() -> tuple[list[Live], str]:
            wanted = shown.id if shown is not None else ""
            if not wanted and ids and not runs:
                wanted = next((row.id for row in store.execution_rows(ids[:1])), "")
            return live_executions(), wanted

        def show(found: tuple[list[Live], str]) -> None:
            chosen = [one for one in found[0] if one.execution == found[1]]
            if chosen:
                self.agenteval.watch_live(chosen[0])
            else:
                self.agenteval.choose_live()

        self.ask(read, show, group="live")

    def action_causes(self) -> None:
        """The causes of the chosen execution's failures."""

        def then(rows: list[ExecutionRow]) -> None:
            if rows:
                self.agenteval.show_causes(rows[-1].id)

        self._with_executions(then)

    def action_resume(self) -> None:
        def then(rows: list[ExecutionRow]) -> None:
            if len(rows) != 1:
                self.agenteval.say("Choose one execution: R runs what is left of it.")
            elif rows[0].status == "running":
                self.agenteval.say("This execution is running: w watches it.")
            else:
                self.agenteval.resume_execution(rows[0].id)

        self._with_executions(then)

    # Comparing, baselines

    def action_compare(self) -> None:
        """Two marked ones with each other, the older on the left; one alone with its baseline, or the one before."""
        runs, ids = self.chosen_ids()
        if runs and len(ids) == 2:
            self._with_runs(lambda rows: self.agenteval.show_difference(rows[0].id, rows[1].id))
            return
        if len(ids) > 2:
            self.agenteval.say("Mark two of them: they are compared with each other.")
            return
        if runs and ids:
            # One run: what its execution has changed, from its test on.
            store = self.agenteval.session.store

            def read_one() -> list[tuple[RunRow, ExecutionRow]]:
                return [(row, store.execution(row.execution_id)) for row in store.run_rows(ids)]

            def from_its_test(found: list[tuple[RunRow, ExecutionRow]]) -> None:
                for row, of in found:
                    self._compare_one(of, (row.suite_key, row.test_id))

            self.ask(read_one, from_its_test, group="chosen")
            return

        def then(rows: list[ExecutionRow]) -> None:
            if len(rows) == 2:
                self.agenteval.compare(rows[0].id, rows[1].id)
            elif rows:
                self._compare_one(rows[0])

        self._with_executions(then)

    def _compare_one(self, row: ExecutionRow, test: tuple[str, str] | None = None) -> None:
        """With its baseline, or the one before. `test`: suite's key and id of the one that it begins with."""
        store = self.agenteval.session.store

        def before() -> str | None:
            """ "": there is a baseline; else the execution of these suites before this one; None: none."""
            tests = {(run.suite_key, run.test_id) for run in store.runs_of_execution(row.id)}
            known = baselines_of(store, tests).values()
            if any(one.execution_id != row.id for one in known):
                return ""
            page = store.executions(200, before=row.rowid)
            return next((one.id for one in page if set(one.suite_keys) & set(row.suite_keys)), None)

        def then(other: str | None) -> None:
            if other is None:
                self.agenteval.say("There is nothing before it to compare with: mark two executions (m), then d.")
            else:
                self.agenteval.compare(other, row.id, test=test)

        self.ask(before, then, group="chosen")

    def action_baseline(self) -> None:
        """Of an execution or a run; where the runs of an execution are shown, it is asked which."""
        runs, ids = self.chosen_ids()
        if len(ids) != 1:
            self.agenteval.say("Choose one execution or one run: it becomes the baseline.")
            return
        if not runs:
            self._with_executions(lambda rows: self._baseline_execution(rows[0]) if rows else None)
            return
        shown = self.execution
        if shown is None:
            self._with_runs(lambda rows: self._baseline_run(rows[0]) if rows else None)
            return

        def answered(answer: str | None) -> None:
            if answer == "execution":
                self._baseline_execution(shown)
            elif answer:
                self._with_runs(lambda rows: self._baseline_run(rows[0]) if rows else None)

        words = "What becomes the baseline: all runs of this execution, of each of its tests, or the chosen run alone?"
        answers = [("e", "execution", "the execution"), ("r", "run", "this run")]
        self.app.push_screen(
            QuestionScreen("Set the baseline?", lambda width: paragraph(words, width), answers), answered
        )

    def _baseline_execution(self, row: ExecutionRow) -> None:
        store = self.agenteval.session.store

        def then(tests: int) -> None:
            set_after_asking(self, row.id, row.title or row.id, tests, self.reload)

        def tests_of() -> int:
            return len({(run.suite_key, run.test_id) for run in store.runs_of_execution(row.id)})

        self.ask(tests_of, then, group="chosen")

    def _baseline_run(self, row: RunRow) -> None:

        store = self.agenteval.session.store
        name = one_line(row.test_id, 60)

        def done(_: BaselineSet) -> None:
            self.agenteval.say(f"This run is the baseline of {name} now.")
            self.reload()

        self._ask_yes(
            "Set the baseline?",
            [f"This run becomes the baseline of {name}. One that it has now is replaced; its runs stay."],
            "set it",
            lambda: self.ask(lambda: set_baseline_run(store, row.id, who=current_user()), done, group="baseline"),
        )

    def action_clear_baseline(self) -> None:
        """Of a run its test's baseline, of an execution those that rest on it."""

        runs, ids = self.chosen_ids()
        store = self.agenteval.session.store
        if runs:
            self._with_runs(
                lambda rows: ask_to_clear(self, rows[0].suite_key, rows[0].test_id, self.reload) if rows else None
            )
            return

        def read() -> list[Baseline]:
            chosen = {row.id for row in store.execution_rows(ids)}
            return [one for one in baselines(store) if one.execution_id in chosen]

        def then(found: list[Baseline]) -> None:
            tests = [(one.suite_key, one.test_id) for one in found]
            if not tests:
                self.agenteval.say("No baseline rests on it.")
                return
            self._ask_yes(
                f"Clear the baseline of {count(len(tests), 'test')}?",
                ["The runs stay, but pruning may take them then, and later executions are compared with nothing."],
                "clear it",
                lambda: self.ask(lambda: clear_baselines(store, tests), self._cleared, group="baseline"),
            )

        self.ask(read, then, group="baseline")

    def _cleared(self, number: int) -> None:
        self.agenteval.say(f"{count(number, 'test')} without a baseline now.")
        self.reload()

    # Deleting, pruning

    def action_delete(self) -> None:
        runs, ids = self.chosen_ids()
        store = self.agenteval.session.store
        if not ids:
            return

        def read() -> tuple[list[int], Mapping[str, int], int]:
            """The runs to go, what they are worth, and how many of the executions are running."""
            if runs:
                numbers = ids
            else:
                numbers = store.read(lambda c: delete_runs.runs_of(c, ids))
            busy = set(store.read(delete_runs.running_executions))
            worth = store.read(lambda c: pruning.protection(c, numbers))
            return numbers, worth, len(busy.intersection(ids)) if not runs else 0

        def then(found: tuple[list[int], Mapping[str, int], int]) -> None:
            numbers, worth, busy = found
            if busy and busy == len(ids):
                self.agenteval.say("It is running: c cancels it on the Run screen (w goes there).")
                return
            what = (
                count(len(ids), "run") if runs else f"{count(len(ids), 'execution')} with {count(len(numbers), 'run')}"
            )
            words = [f"Runs that {KEPT_FOR.get(why, why)}: {number:,}." for why, number in worth.items()]
            if busy:
                words.append(f"{count(busy, 'execution')} of them is running, and stays.")
            one = len(numbers) == 1
            words.append(
                "It is gone for good, with its transcript and results."
                if one
                else "They are gone for good, with their transcripts and results."
            )
            self._ask_yes(f"Delete {what}?", words, "delete", lambda: self._delete(numbers, [] if runs else ids))

        self.ask(read, then, group="chosen")

    def _delete(self, numbers: Sequence[int], executions: Sequence[int]) -> None:
        store = self.agenteval.session.store

        def done(gone: DeleteResult) -> None:
            self.action_unmark()
            self.agenteval.say(f"Deleted {count(gone.runs, 'run')} and {count(gone.executions, 'execution')}.")
            shown = self.execution
            if shown is not None and not numbers:
                self.step_back()
            self.reload()

        if len(numbers) > 1000:
            self.agenteval.say(f"Deleting {count(len(numbers), 'run')} …")
        self.ask(lambda: remove_runs(store, numbers, executions=executions), done, group="delete")

    def action_prune(self) -> None:
        def done(changed: bool | None) -> None:
            if changed:
                self.reload()

        self.app.push_screen(PruneScreen(), done)

    # Files

    def action_import_file(self) -> None:
        store = self.agenteval.session.store

        def done(brought: ImportOutcome | str | None) -> None:
            if isinstance(brought, ImportOutcome):
                opens = brought.opens
                self.ask(
                    lambda: store.execution(brought.execution), lambda row: self.go_to(row, opens=opens), group="go"
                )

        self.app.push_screen(ImportScreen(), done)

    def action_export(self) -> None:
        runs, ids = self.chosen_ids()
        store = self.agenteval.session.store
        if not ids:
            return

        def read() -> list[RunRow]:
            if runs:
                return store.run_rows(ids)
            return [run for row in store.execution_rows(ids) for run in store.runs_of_execution(row.id)]

        def then(rows: list[RunRow]) -> None:
            ended = [row for row in rows if row.status not in ("queued", "running", "grading")]
            if ended:
                self.app.push_screen(ExportScreen(ended))
            else:
                self.agenteval.say("Nothing of it has ended yet.")

        self.ask(read, then, group="chosen")

    def _ask_yes(self, title: str, words: Sequence[str], label: str, then: Callable[[], None]) -> None:
        def lines(width: int) -> list[Line]:
            return [line for text in words for line in paragraph(text, width)]

        def answered(answer: str | None) -> None:
            if answer:
                then()

        self.app.push_screen(QuestionScreen(title, lines, [("y", "yes", label)]), answered)
