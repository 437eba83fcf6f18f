"""What Inspect knows, without Textual: the open run, the chosen criterion, edits of its config, what they change."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.blame.free_answer import ReadParts
from agenteval_tui.analysis.blame.model import Blame
from agenteval_tui.analysis.blame.recorded_facts import known_blame
from agenteval_tui.analysis.criterion_preview import with_new
from agenteval_tui.analysis.explanation import address_of_criterion
from agenteval_tui.analysis.function_exceptions import Raised, raised_around
from agenteval_tui.analysis.run_facts import RunFacts, facts_of_run
from agenteval_tui.analysis.run_navigation import AdjacentRuns, first_criterion, runs_around
from agenteval_tui.analysis.workbench import LONG_CONFIG, Agreement, Impact, Workbench, agreement, opinions
from agenteval_tui.core.display import command_line, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.scope import in_scope
from agenteval_tui.runs.around.record import NOTHING, AroundRecord, decoded
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.model import Criterion
from agenteval_tui.suites.yaml.save import FileChanged
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.draft_store import Drafts
from agenteval_tui.tui.inspect_target import InspectTarget
from agenteval_tui.tui.workbench_worker import WorkbenchWorker
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.edit import node_of
from agenteval_tui.uxon.merge import BothChanged, merge
from agenteval_tui.uxon.parse import parse
from agenteval_tui.views.blame import suspects_in

DraftKey = tuple[str, str, str, int]
"""Suite, test, the criterion's name, and the how-manieth of that name: an edited file may move it."""


class Draft(Struct):
    """An edited config that is not saved, and the file's text when the edit started."""

    text: str
    base: str


class ConfigDrafts:
    """Edits of configs in the store of drafts, which outlives a crash."""

    def __init__(self) -> None:
        self._store = Drafts()
        self.write = self._store.write
        self._looked: set[DraftKey] = set()

    def unsaved(self, key: DraftKey) -> tuple[Draft, int] | None:
        """What an earlier start left of this, and when (milliseconds since 1970); asked of each config once."""
        if key in self._looked:
            return None
        self._looked.add(key)
        stored_draft = self._store.find(*_place(key))
        text, base = (
            (stored_draft.data.get("text"), stored_draft.data.get("base")) if stored_draft is not None else (None, None)
        )
        if stored_draft is None or not isinstance(text, str) or not isinstance(base, str):
            return None
        return Draft(text, base), stored_draft.when_ms

    def put(self, key: DraftKey, draft: Draft | None) -> bool:
        """As `Drafts.put`, of the edit as it is now; None: there is none any more."""
        self._looked.add(key)
        return self._store.put(*_place(key), {"text": draft.text, "base": draft.base} if draft is not None else None)

    def drop(self, key: DraftKey) -> None:
        """As `Drafts.drop`: it was saved."""
        self._looked.add(key)
        self._store.drop(*_place(key))


def _place(key: DraftKey) -> tuple[str, str, str, str]:
    suite, test, name, number = key
    return "config", suite, test, f"{name}\x1f{number}"


class EditToSave(Struct, frozen=True):
    """The edit that is being saved: it stays the same while the person goes elsewhere or continues typing."""

    bench: Workbench
    loaded: LoadedSuite
    key: DraftKey
    index: int
    text: str
    base: str
    """The config at the start of the edit."""
    both: tuple[BothChanged, ...] = ()
    """Of an edit that was made again in a changed file: what the file's config has otherwise now."""


def criterion_of(loaded: LoadedSuite, test_id: str, index: int) -> Criterion | None:
    """A test's criterion as the file has it; None: there is none."""
    tests = loaded.suite.tests if loaded.suite is not None else ()
    criteria = next((test.criteria for test in tests if test.id == test_id), ())
    return criteria[index] if index < len(criteria) else None


def index_in(fresh: LoadedSuite, saving: EditToSave) -> int:
    """Where the criterion is in the present file: others may have been put before it, or it is gone."""
    *_, name, number = saving.key
    for test in fresh.suite.tests if fresh.suite is not None else ():
        if test.id == saving.bench.run.test_id:
            places = [index for index, criterion_name in enumerate(test.criterion_names) if criterion_name == name]
            if len(places) >= number:
                return places[number - 1]
    raise AgentevalError(
        f"criterion `{name}` of test `{saving.bench.run.test_id}` is no longer in the file, so nothing was saved",
        where=str(fresh.path),
        fix="your edit stays in the editor; put the criterion back, then save again",
    )


MOST_PLACES = 20  # that one can go back to


class Place(Struct, frozen=True):
    """A view ("transcript", "difference", "branches") of a run; `beside`: the run that the difference is with. `pane`:
    the pane beside the view that had the keys; "": the view had them."""

    run: str
    view: str
    beside: str = ""
    pane: str = ""


class Places:
    """The places before the one that is shown, for esc."""

    def __init__(self) -> None:
        self._before: list[Place] = []

    def forget(self) -> None:
        """Inspect was opened from another screen: esc leads there."""
        self._before.clear()

    def turn(self, here: Place, view: str) -> None:
        """Another view of the run is shown; where one came from it, that is the way back."""
        if self._before and (self._before[-1].run, self._before[-1].view) == (here.run, view):
            self._before.pop()
        elif here.view != view:
            self.visit(here)

    def visit(self, here: Place) -> None:
        """Something else is shown, and esc leads back here."""
        self._before.append(here)
        del self._before[:-MOST_PLACES]

    def step_run(self, run: str) -> None:
        """Another run is open, in the same view: of the one before only the transcript is worth going back to, and
        that of this one now."""
        self._before = [Place(run, "transcript")] if any(place.view == "transcript" for place in self._before) else []

    def back(self) -> Place | None:
        """The place before, which is shown now; None: there is none inside Inspect."""
        return self._before.pop() if self._before else None


_STEPS = re.compile(r"([A-Za-z_]\w*)|\[(\d+)\]")
"""A name or an index of the condition of evidence: `tools[0].arguments`."""


class Say(Protocol):
    """Tells the person something, in a sentence."""

    def __call__(self, message: str, *, severity: str = "information") -> None: ...


class LoadedRun(Struct, frozen=True):
    """A run as it was read: the verdicts are those of the criteria as they are saved."""

    bench: Workbench
    results: tuple[CriterionResult, ...]
    around: AdjacentRuns
    facts: RunFacts
    term: str = ""
    """What to search for in its transcript; "" for nothing."""
    record: AroundRecord = NOTHING
    """The services of its execution, and the hooks of no single run."""

    @property
    def raised(self) -> tuple[Raised, ...]:
        """What functions around its agent raised."""
        return raised_around(self.bench.transcript, self.results)


class ConfigToEdit(Struct, frozen=True):
    """What the editor is to show: `text`, which is `saved` or a draft. `other`: of another criterion than before."""

    saved: str
    text: str
    other: bool
    judged: bool
    """Is the verdict under `text` known already?"""


def may_be_blamed(bench: Workbench) -> bool:
    """Is this a run of which a step can be to blame?"""
    return bench.run.status in ("failed", "error") and bool(bench.transcript.messages)


class InspectController:
    """The state of the Inspect screen, and what can be done to it without painting.

    `criterion` is the number of the chosen one in `bench.criteria`; `result` and `diagnostics` are about its config
    as it is edited, None and () until that is judged. `impact` counts what saving it would do to the stored runs,
    `agreement` what people's labels say of that. `bench` is None while no run is open.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self.bench: Workbench | None = None
        self.around = AdjacentRuns([], {})
        self.facts = RunFacts()
        self.criterion = 0
        self.result: CriterionResult | None = None
        self._readable: CriterionResult | None = None  # the last one of this criterion whose config could be read
        self.diagnostics: tuple[Diagnostic, ...] = ()
        self.impact: Impact | None = None
        self.agreement: Agreement | None = None
        self.has_edit: bool | None = None
        """Does a small edit of the failed criterion make the open run pass? None while that is not known."""
        self.blame: Blame | None = None
        """Which step the open run was lost at; None while that is not known, and where there is nothing to blame."""
        self.blame_error: AgentevalError | None = None
        """Why that can't be known."""
        self.alone = WorkbenchWorker()
        """Whatever uses the workbench in a thread goes through this."""
        self._noted = ("", "")  # the execution and the note on its runs that was said last
        self.saved_text = ""
        """The saved config, as the editor shows it: it knows one kind of line end."""
        self._saved_results: tuple[CriterionResult, ...] = ()
        self._verdict: tuple[Workbench, int, CriterionResult] | None = None  # of a criterion as it is saved
        self._drafts: dict[DraftKey, Draft] = {}
        self.drafts = ConfigDrafts()
        self._editing: DraftKey | None = None

    # What is open

    @property
    def run_id(self) -> str:
        """The id of the open run; "" while there is none."""
        return self.bench.run.id if self.bench is not None else ""

    @property
    def criterion_name(self) -> str:
        """The name of the chosen criterion; "" while no run is open."""
        return self.bench.criteria[self.criterion].name if self.bench is not None else ""

    @property
    def is_edited(self) -> bool:
        """Has the chosen criterion a draft?"""
        return self.bench is not None and self._draft_key() in self._drafts

    @property
    def is_new(self) -> bool:
        """Whether the chosen criterion is not in a file yet."""
        return self.bench is not None and self.bench.criteria[self.criterion].new

    @property
    def is_unsaved(self) -> bool:
        """Is there something of the chosen criterion that no file has: an edit, or all of it?"""
        return self.is_edited or self.is_new

    @property
    def results(self) -> tuple[CriterionResult, ...]:
        """The verdicts under the saved configs, with the edited criterion's in its place."""
        results = list(self._saved_results)
        if self.result is not None and self.criterion < len(results):
            results[self.criterion] = self.result
        return tuple(results)

    @property
    def is_unreadable(self) -> bool:
        """Is the config as it is edited one that nothing can be graded with?"""
        return (
            self.result is not None
            and self.result.outcome == "error"
            and any(diagnostic.severity == "error" for diagnostic in self.diagnostics)
        )

    @property
    def looked_at(self) -> CriterionResult | None:
        """The verdict whose evidence is shown. While a config is typed it is broken most of the time: until it can be
        read again, that is the verdict under what could be read last, which is what one types from."""
        return self._readable or self.result if self.is_unreadable else self.result

    @property
    def is_judged_later(self) -> bool:
        """Is the chosen criterion's config so long that the run is shown before its verdict is known?"""
        return self.bench is not None and self.result is None and self.bench.known_verdict(self.criterion) is not None

    @property
    def has_failed(self) -> bool:
        """Did the open run not pass, or does it not pass under the criteria as they are shown?"""
        bad = ("failed", "error", "needs_review")
        return self.bench is not None and (
            self.bench.run.status in bad or any(result.outcome in bad for result in self.results)
        )

    def place(self) -> str:
        """Where the open run stands among the failures around it: "failure 1 of 15"."""
        failures = self.around.failures()
        if self.run_id in failures:
            return f"failure {failures.index(self.run_id) + 1:,} of {len(failures):,}"
        return count(len(failures), "failure") if failures else ""

    @property
    def was_graded(self) -> bool:
        """Was the run graded with the chosen criterion when it ran? The history knows no other."""
        return self.bench is not None and any(result.criterion == self.criterion_name for result in self.bench.stored)

    def names_by_hash(self) -> dict[str, str]:
        """The names of the criteria by their hashes: of those that the run was graded with, and of today's."""
        if self.bench is None:
            return {}
        names = {result.criterion_hash: result.criterion for result in self.bench.stored}
        return names | {criterion.spec.hash: criterion.name for criterion in self.bench.criteria}

    def address(self) -> str:
        """The command that shows the open run at the chosen criterion; "" while no run is open."""
        if self.bench is None:
            return ""
        names = [result.criterion for result in self.bench.stored]
        return command_line(address_of_criterion(self.run_id, names, self.criterion_name))

    @property
    def new_criterion(self) -> CriterionSpec | None:
        """The criterion that is not in a file yet, with its config as it is edited here; None: there is none."""
        last = self.bench.criteria[-1] if self.bench is not None else None
        if last is None or not last.new:
            return None
        draft = self._drafts.get(self._draft_key(-1))
        return last.spec if draft is None else replace(last.spec, config=draft.text)

    def has_drafts(self) -> bool:
        """Is any criterion of the open run's test edited and not saved?"""
        return self.bench is not None and any(key[:2] == self._draft_key()[:2] for key in self._drafts)

    # Opening runs

    def reader(self, session: Session, run_id: str, how: InspectTarget) -> Callable[[], LoadedRun]:
        """What reads a run and judges it: to be called in a thread. It raises AgentevalError when the run is gone.

        The runs around it are known when it is one of those around the open run. A new criterion goes along with it
        to other runs of its test.
        """
        runs = list(how.get("runs", ()))
        reusable = self.around if run_id in self.around.runs and not runs else None
        new = how.get("new") or (self.new_criterion if reusable is not None else None)
        # Taken here: the thread that reads must not look at what the screen changes meanwhile.
        # One that the Editor lends is tried whichever test was open before.
        of_test = self._draft_key()[:2] if self.bench is not None and how.get("new") is None else None

        def read() -> LoadedRun:
            bench = session.workspace.workbench(run_id)
            if new is not None and of_test in (None, (bench.run.suite_key, bench.run.test_id)):
                bench = with_new(bench, new)
            around = reusable or runs_around(bench, runs)
            term = term_in(bench.transcript, how.get("search", ""))
            record = decoded(bench.store.around_of(bench.run.execution_id))
            facts = facts_of_run(bench.store, bench.run)
            return LoadedRun(bench, bench.judge_all(), around, facts, term, record)

        return read

    def open(self, loaded: LoadedRun, how: InspectTarget) -> ConfigToEdit:
        """Take a run that was read, and choose the criterion that is wanted, else the first that failed."""
        bench = self.bench = loaded.bench
        self.blame = self.blame_error = None
        self.around, self.facts, self._saved_results = loaded.around, loaded.facts, loaded.results
        # Once for each execution: next and previous go through many runs of the same one.
        if bench.note and self._noted != (bench.run.execution_id, bench.note):
            self._noted = (bench.run.execution_id, bench.note)
            self._say(bench.note)
        if how.get("new") is not None:
            # A draft of the new criterion before, which has the same place.
            self._drafts.pop(self._draft_key(-1), None)
        name, config = how.get("criterion", ""), how.get("config")
        number = first_criterion(bench, loaded.results, name)
        last = len(bench.criteria) - 1
        if bench.criteria[last].new and (how.get("new") is not None or name == bench.criteria[last].name):
            number = last
        was_judged = any(result.criterion == name for result in bench.stored)
        if bench.criteria[number].name != name and (config is not None or was_judged):
            self._say(f"{one_line(name, 60)} is no longer in the file.")
            config = None
        return self.choose(number, config)

    # Blame

    @property
    def may_be_blamed(self) -> bool:
        """Is the open run one of which a step can be to blame?"""
        return self.bench is not None and may_be_blamed(self.bench)

    def blame_reader(self) -> Callable[[], Blame]:
        """What finds the step that the open run was lost at: to be called in a thread. Raises AgentevalError."""
        bench = self.bench
        assert bench is not None
        return lambda: known_blame(bench.store, bench.run, ReadParts(bench.transcript))

    def suspect_after(self, step: int) -> int | None:
        """The step to go to from `step`: the decisive one, from there to those named beside it, and round; None: no
        step is named."""
        named = suspects_in(self.blame) if self.blame is not None else ()
        if not named:
            return None
        return named[(named.index(step) + 1) % len(named)] if step in named else named[0]

    def run_beside(self, step: int, *, failures: bool) -> str:
        """The next run (1) or the one before (-1), of all or of the failed ones; "" where there is none, and said."""
        among = self.around.failures() if failures else self.around.runs
        order = {run: place for place, run in enumerate(self.around.runs)}
        here = order.get(self.run_id, -1)
        ahead = [run for run in among if (order[run] - here) * step > 0]
        if not ahead:
            what = "failure" if failures else "run"
            self._say(f"There is no {what} {'after' if step > 0 else 'before'} this one.")
            return ""
        return ahead[0] if step > 0 else ahead[-1]

    # Choosing a criterion, and editing its config

    def choose(self, number: int, config: str | None = None) -> ConfigToEdit:
        """Choose criterion `number`; `config` becomes its draft. A run must be open.

        The caller shows in the editor what this gives, sets `saved_text`, and has it judged.
        """
        bench = self.bench
        assert bench is not None
        self.criterion = number
        self.impact = self.agreement = self.has_edit = None
        self.diagnostics = ()
        key, saved = self._draft_key(), bench.criteria[number].text
        self._restore_draft(key, saved)
        if config is not None:
            self._drafts[key] = Draft(config, saved)
        draft = self._drafts.get(key)
        # Somebody else has changed the config in the file since the draft was begun.
        if draft is not None and saved not in (draft.text, draft.base):
            merged = merge(draft.base, draft.text, saved)
            draft.base, draft.text = saved, merged.text
            self._say(
                "The file's config changed. Your edit is in it now"
                + (f", also where the file has {count(len(merged.both), 'other value')}" if merged.both else "")
                + "; press {inspect.revert} to drop it.",
                severity="warning",
            )
        # By now the file has what was edited, or has it as it was before.
        if draft is not None and draft.text == saved:
            del self._drafts[key]
            draft = None
        # How it is saved was judged when the run was opened; an edit is judged now, and so is a long config.
        judged = draft is None and number < len(self._saved_results) and bench.known_verdict(number) is None
        self.result = self._saved_results[number] if judged else None
        self._verdict = (bench, number, self.result) if self.result is not None else None
        self._readable = self.result
        other, self._editing = key != self._editing, key
        return ConfigToEdit(saved, draft.text if draft is not None else saved, other, judged)

    def criterion_beside(self, step: int) -> int | None:
        """The number of the next criterion (1) or the one before (-1), round at the ends; None: there is one only."""
        criteria = self.bench.criteria if self.bench is not None else ()
        if len(criteria) > 1:
            return (self.criterion + step) % len(criteria)
        if criteria:
            self._say("This is the only criterion of the test.")
        return None

    def culprit(self, text: str) -> int | None:
        """Where in the config `text` that is which failed first: its property, else its metric; None: nothing failed
        by itself (it passed, nothing was extracted, or the criterion is negated)."""
        failed = [
            (number, metric)
            for number, metric in enumerate(self.result.metrics if self.result is not None else ())
            if metric.outcome is Outcome.FAILED
        ]
        if not failed:
            return None
        number, metric = failed[0]
        steps: list[str | int] = ["metrics", number]
        failing = next((line for line in metric.evidence if line.passed is False), None)
        if failing is not None:
            steps += [int(index) if index else name for name, index in _STEPS.findall(failing.condition)]
            arguments = failing.fields.get("arguments")
            if isinstance(arguments, list) and arguments:
                # `tools[0].arguments[2]` is the second call's: what is written is the argument.
                steps = [*(steps[:-1] if isinstance(steps[-1], int) else steps), arguments[0].get("argument", "")]
        document = parse(text)
        # A condition may be finer than what is written: then the nearest that is written around it.
        nodes = [node_of(document, steps[:length]) for length in range(len(steps), 1, -1)]
        return next((node.start for node in nodes if node is not None), None)

    def edit(self, text: str) -> None:
        """The editor holds `text` now: remember it as a draft, unless it is what is saved."""
        if self.bench is None or self._editing is None:
            return
        if text == self.saved_text:
            self._drafts.pop(self._editing, None)
        elif self._editing in self._drafts:
            self._drafts[self._editing].text = text
        else:
            self._drafts[self._editing] = Draft(text, self.bench.criteria[self.criterion].text)

    async def judge(self, text: str) -> None:
        """Judge the open run with `text` as the chosen criterion's config. Raises AgentevalError."""
        bench, number = self.bench, self.criterion
        if bench is None:
            return

        # As it is saved it was judged when the run was opened.
        is_saved = text == bench.criteria[number].text
        cached = (
            self._verdict[2]
            if is_saved and self._verdict is not None and self._verdict[:2] == (bench, number)
            else None
        )

        def work() -> tuple[CriterionResult, tuple[Diagnostic, ...]]:
            result = cached or bench.judge(number, text)
            return result, tuple(diagnose(text, bench.criteria[number].spec.prototype_class))

        result, self.diagnostics = await self.alone(work)
        self.result = result
        if is_saved:
            self._verdict = (bench, number, result)
        if not self.is_unreadable:
            self._readable = self.result

    async def count_impact(self, text: str) -> AsyncIterator[None]:
        """Count over all stored runs what saving `text` would change: a step after each slice of some milliseconds,
        and a last one when labels were compared with the outcomes. Raises AgentevalError."""
        bench, number = self.bench, self.criterion
        if bench is None:
            return
        self.agreement = None
        async for counted in self.alone.impact(bench, number, text):
            self.impact = counted
            yield
        impact = self.impact
        if impact is not None and impact.total:
            labels = await self.alone(lambda: opinions(bench, number))
            self.agreement = agreement(bench, number, impact, labels)
            yield

    async def look_for_edit(self, text: str) -> None:
        """Find out whether an edit of the config `text` makes the open run pass, where its criterion fails."""
        bench, number = self.bench, self.criterion
        fails = self.result is not None and self.result.outcome == "failed"
        # A long config is graded a second for each edit that is tried: nobody waits for that who did not ask.
        if bench is None or not fails or len(text) >= LONG_CONFIG:
            self.has_edit = None
        else:
            self.has_edit = await self.alone.smallest_edit(bench, number, text) is not None

    # Saving

    def saving(self, text: str) -> EditToSave | None:
        """The edit that saves the chosen criterion with the config `text`; None when nothing is changed, and that is
        reported. Raises AgentevalError when the criterion is not in a suite file.
        """
        bench = self.bench
        assert bench is not None
        index = bench.criteria[self.criterion].index
        if index is None or bench.loaded is None:
            raise AgentevalError(
                "this criterion is not in a suite file, so it can't be saved",
                fix="write a suite for these runs: agenteval grade --criteria FILE --execution ID",
            )
        if not self.is_edited:
            self._say("Nothing is changed.")
            return None
        key = self._draft_key()
        draft = self._drafts.get(key)
        return EditToSave(bench, bench.loaded, key, index, text, draft.base if draft is not None else self.saved_text)

    def errors_of(self, saving: EditToSave) -> list[Diagnostic]:
        """What in the config would keep the suite from running."""
        prototype_class = saving.bench.criteria[self.criterion].spec.prototype_class
        return [diagnostic for diagnostic in diagnose(saving.text, prototype_class) if diagnostic.severity == "error"]

    def is_open(self, key: DraftKey) -> bool:
        """Whether this criterion is the one in the editor."""
        return self.bench is not None and self._draft_key() == key

    def saved(self, saving: EditToSave, loaded: LoadedSuite) -> int:
        """It was written, and the file is `loaded` now: forget the draft. Gives the line of the config in the file."""
        draft = self._drafts.get(saving.key)
        if draft is not None:
            # Who went on typing meanwhile has an edit of what is saved now.
            draft.base = saving.text
            if draft.text == saving.text:
                del self._drafts[saving.key]
                self.drafts.drop(saving.key)
        if self.bench is saving.bench:
            self.saved_text = saving.text
        return loaded.line_of(saving.bench.run.test_id, saving.index)

    # Drafts outlive a crash

    def put_draft(self) -> bool:
        """The chosen criterion was edited: its draft waits to be written. True: `drafts.write` must be called in a
        moment. A new criterion's draft is kept by the Editor."""
        if self._editing is None or self.is_new:
            return False
        return self.drafts.put(self._editing, self._drafts.get(self._editing))

    def keep_drafts(self) -> None:
        """Write down every draft but that of a new criterion."""
        new = self._draft_key(-1) if self.new_criterion is not None else None
        for key, draft in self._drafts.items():
            if key != new:
                self.drafts.put(key, draft)
        self.drafts.write()

    def _restore_draft(self, key: DraftKey, saved: str) -> None:
        """An edit that an earlier start could not save is here again."""
        draft = self.drafts.unsaved(key) if key not in self._drafts and not self.is_new else None
        if draft is None or draft[0].text == saved:
            return
        self._drafts[key] = draft[0]
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(draft[1] / 1000))
        self._say(f"Your unsaved edit of {when} is back. Press {{inspect.revert}} to drop it.")

    def _draft_key(self, number: int | None = None) -> DraftKey:
        """Of the chosen criterion, or of another; -1: the last."""
        bench = self.bench
        assert bench is not None
        number = (self.criterion if number is None else number) % len(bench.criteria)
        names = [criterion.name for criterion in bench.criteria[: number + 1]]
        return bench.run.suite_key, bench.run.test_id, names[-1], names.count(names[-1])


def term_in(transcript: Transcript, term: str) -> str:
    """What to search for in a transcript, out of the text that found the run in a list: all of it if the transcript
    contains it, else its longest word that the transcript contains, else all of it, which is then reported as not
    found. "" for nothing."""
    term = term.strip()
    words = sorted(term.split(), key=len, reverse=True) if term else ()
    texts = [text.lower() for text in _texts_of(transcript)] if term else []
    candidates = dict.fromkeys((term, *words))
    return next((candidate for candidate in candidates if any(candidate.lower() in text for text in texts)), term)


def _texts_of(transcript: Transcript) -> Iterator[str]:
    for message in transcript.messages:
        yield message.content
        yield message.reasoning
    for call in transcript.tool_calls:
        yield call.name
        yield call.result or ""
        yield call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)


def write(session: Session, saving: EditToSave) -> LoadedSuite:
    """Write the config into the suite's file; in a thread. Raises FileChanged when another program has changed the
    file, or this app the same criterion."""
    test = saving.bench.run.test_id
    try:
        return session.workspace.save_config(saving.loaded, test, saving.index, saving.text)
    except FileChanged:
        # Another test that this app wrote into the file, a fork that was kept say, is no reason to ask.
        fresh = on_fresh_file(saving) if session.is_own(saving.loaded.path) else saving
        if fresh is saving or criterion_of(fresh.loaded, test, fresh.index) != criterion_of(
            saving.loaded, test, saving.index
        ):
            raise
        return session.workspace.save_config(fresh.loaded, test, fresh.index, fresh.text)


def on_fresh_file(saving: EditToSave) -> EditToSave:
    """The edit made in the file as it is now, with what others changed in the same config; in a thread. Raises
    AgentevalError when the criterion is gone from it."""
    fresh = load_suite(saving.loaded.path)
    index = index_in(fresh, saving)
    theirs = fresh.config_source(saving.bench.run.test_id, index).text
    merged = merge(saving.base, saving.text, theirs)
    return replace(saving, loaded=fresh, index=index, text=merged.text, base=theirs, both=merged.both)


def check_project(session: Session, run_id: str) -> None:
    """Raises AgentevalError when the run is gone, or of a project that is not open."""
    project = session.store.execution(session.store.run(run_id).execution_id).project
    if not in_scope(project, session.projects):
        raise AgentevalError("this run belongs to another project", where=project)
