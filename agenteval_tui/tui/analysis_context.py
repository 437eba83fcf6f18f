"""What the screens ask: the suites, the history, a new execution. No widget, no Textual; safe to call in threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.suites.projects import projects_open, shows_all

if TYPE_CHECKING:
    from agenteval_tui.agents.permission import Need
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.agent_factory import Configured
    from agenteval_tui.runs.chat_session import Conversation
    from agenteval_tui.runs.estimate import Estimate
    from agenteval_tui.runs.live_registry import Live
    from agenteval_tui.runs.plan.model import Plan, PlanOptions
    from agenteval_tui.runs.plan.preview import Preview
    from agenteval_tui.suites.editing import TestEdit, Written
    from agenteval_tui.suites.load import LoadedSuite

BUNDLED = "shop"
"""What the bundled agent is called in a new suite."""


class Session:
    """One start of the app: the paths it was given, the history file, and what was read from them.

    Every method may take long: screens call them in a worker. Errors are `AgentevalError`s.
    Methods import what they use: the first frame needs a session, and comes before all that its workers load.
    """

    def __init__(self, paths: Sequence[Path], db: Path) -> None:
        self.paths = tuple(paths)
        self.db = db
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._moved = ""  # what happened to the file, until it is said
        self._cannot = ""  # why what is at its place can't be opened, as it was said
        self._looked_in: tuple[Path, ...] | None = None
        self._own: dict[Path, tuple[int, int]] = {}
        self._checking: object | None = None  # the question after problems that was asked last
        self.everything = shows_all()
        """Whether lists show the runs of all projects, and not only of the open one."""

    @property
    def store(self) -> Store:
        """The history, opened at first use."""
        with self._lock:
            if self._store is None:
                from agenteval_tui.history.store import Store

                self._store = Store.open_to_look(self.db)
            elif not self._store.in_place:
                self._open_again(self._store)
            return self._store

    def _open_again(self, before: Store) -> None:
        """Somebody moved, deleted or replaced the file: what is at its place now is the history."""
        from agenteval_tui.history.store import Store

        what = "replaced by another one" if self.db.exists() else "moved or deleted"
        try:
            self._store = Store.open_to_look(self.db)
        except AgentevalError as error:
            # The one that is open can still be read; whoever writes to it is told.
            said = f"The history was {what}: {error.sentence}"
            self._moved, self._cannot = ("" if said == self._cannot else said), said
            return
        self._cannot = ""
        kept = "it is shown now" if "replaced" in what else "a new one was begun at its place"
        self._moved = f"The history was {what} while it was open, and {kept}: {self.db}"
        # Closing waits for whoever still reads.
        threading.Thread(target=before.close, daemon=True, name="close-moved-history").start()

    def moved(self) -> str:
        """What happened to the history file since this was asked last, in a sentence; "" for nothing.

        Where it is another file now, that one is opened.
        """
        with self._lock:
            known = self._store
        if known is not None and not known.in_place:
            _ = self.store
        with self._lock:
            said, self._moved = self._moved, ""
        return said

    @property
    def notices(self) -> tuple[str, ...]:
        """What the history had to say when it was opened (a salvaged file, a newer version)."""
        return self.store.notices

    def suite_paths(self) -> tuple[Path, ...]:
        """Where suites are looked for: what was given, else the current folder, else the sample suites."""
        if self.paths:
            self._looked_in = self.paths
        else:
            from agenteval_tui.suites.discover import discover

            here = Path.cwd()
            self._looked_in = (here,) if discover([here]) else (directories.bundled("sample_suites"),)
        return self._looked_in

    @property
    def paths_looked_in(self) -> tuple[Path, ...]:
        """Where suites were looked for last; walks no folder, so that a screen may ask while it paints."""
        return self._looked_in or self.paths

    def on_samples(self) -> bool:
        """Are the suites those that ship with the program, or the demo's copies? Walks no folder either."""
        samples = (directories.bundled("sample_suites").resolve(), directories.demo_dir().resolve())
        return bool(self.paths_looked_in) and all(
            any(path.resolve().is_relative_to(one) for one in samples) for path in self.paths_looked_in
        )

    @property
    def shows_all(self) -> bool:
        """Whether lists show all projects; reads nothing."""
        return self.everything or self.db == directories.demo_history()

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects whose runs are listed: those of the suites that are open; () for all. The demo has no others."""
        if self.shows_all:
            return ()
        looked = self.paths_looked_in or self.suite_paths()
        opened = projects_open(looked)
        # Without suites here the samples are shown; what was imported here is of this folder.
        return opened if self.paths else tuple(dict.fromkeys((*opened, *projects_open())))

    def elsewhere(self) -> int:
        """How many executions other projects have, where the open one has none."""
        from agenteval_tui.history.records import RunFilter
        from agenteval_tui.history.scope import count_elsewhere

        projects = self.projects
        if not projects or self.store.execution_ids(RunFilter(projects=projects)):
            return 0
        return self.store.read(lambda c: count_elsewhere(c, projects))

    def overview(self) -> Overview:
        """All suites with what the history knows of their tests; what is wrong with them says `problems`."""
        from agenteval_tui.analysis.overview import overview

        return overview(self.suite_paths(), self.store)

    def problems(self, overview: Overview) -> Mapping[str, tuple[Problem, ...]]:
        """What is wrong with these suites, by their keys. Takes several times as long as reading them.

        When it is asked anew, or the session is closed, the one before ends without its result.
        """
        from agenteval_tui.analysis.lint import check_loaded

        mine = self._checking = object()
        return check_loaded([one.loaded for one in overview.suites], lambda: self._checking is mine)

    def workbench(self, run_id: str) -> Workbench:
        """What Inspect needs to know of a run: its transcript, criteria, and the stored runs beside it."""
        from agenteval_tui.analysis.workbench import Workbench

        return Workbench.open(self.store, run_id)

    def start(self, paths: Sequence[Path], options: PlanOptions) -> tuple[Live, Estimate]:
        """Start an execution in a process of its own; returns when it runs, with what its plan says that it takes, or
        raises what kept it from running.

        Raises `NotTrustedError` before anything is started where it would run programs of a folder not trusted.
        """
        from agenteval_tui.runs.client import start
        from agenteval_tui.runs.estimate import estimate
        from agenteval_tui.runs.live_registry import ExecutionRequest
        from agenteval_tui.runs.trust_check import check_trust

        plan = self._plan(paths, options)
        # The process would refuse as well; here it can be asked about.
        check_trust(plan)
        takes = estimate(plan, self.store)
        request = ExecutionRequest(
            paths=tuple(str(path) for path in paths),
            options=options,
            db=str(self.db),
            config_dir=str(directories.config_dir()),
        )
        return start(request), takes

    def preview(self, paths: Sequence[Path], options: PlanOptions) -> Preview:
        """What a run would start and take. Nothing is run. Raises `AgentevalError` as planning does."""
        from agenteval_tui.runs.plan.preview import preview_plan

        return preview_plan(self._plan(paths, options), self.store)

    def resume(self, execution: str, options: PlanOptions) -> Live:
        """Run what is left of an execution, in a process of its own. Raises as `start` does."""
        from agenteval_tui.runs.client import start
        from agenteval_tui.runs.live_registry import ExecutionRequest
        from agenteval_tui.runs.resume import resume_plan

        resumed = resume_plan(self.store, execution, options)  # the process asks again: here it can be asked about
        return start(
            ExecutionRequest(
                paths=(),
                options=options,
                db=str(self.db),
                config_dir=str(directories.config_dir()),
                resume=resumed.plan.execution_id,
            )
        )

    def limits_of(self, execution: str) -> PlanOptions:
        """What an execution may use, as it was started; nothing else of its options."""
        from agenteval_tui.runs.plan.model import PlanOptions

        given = self.store.execution(execution).options
        names = ("max_cost", "max_tokens", "max_seconds")
        return PlanOptions(**{name: given[name] for name in names if given.get(name) is not None})

    def why_not(self, need: Need) -> str:
        """Why programs of this folder may not run, in a sentence; "" when they may."""
        from agenteval_tui.suites.trust import Trust

        return Trust.load().why_not(need.folder, need.files)

    def trust(self, needs: Sequence[Need]) -> None:
        """Remember that programs of these folders may run, as they are now, with the files that they name elsewhere."""
        from agenteval_tui.suites.trust import Trust

        known = Trust.load()
        for need in needs:
            known.trust(need.folder, need.files)

    def _plan(self, paths: Sequence[Path], options: PlanOptions) -> Plan:
        from agenteval_tui.runs.plan.planner import make_untrusted_plan
        from agenteval_tui.suites.agents_file import load_agents
        from agenteval_tui.suites.load import load_suites

        mine = load_agents(directories.config_dir())
        return make_untrusted_plan(load_suites(paths), options, user_agents=mine, store=self.store)

    def agents(self) -> tuple[list[Configured], list[Problem]]:
        """All agents that are configured, with their places; what is wrong in agents.yaml, and which suites can't be
        read."""
        from agenteval_tui.runs.agent_factory import configured_agents

        suites = self.suites()
        found, problems = configured_agents(suites, directories.config_dir())
        return found, [*problems, *(problem for one in suites if one.unreadable for problem in one.problems)]

    def suites(self) -> list[LoadedSuite]:
        """The suites, read anew; a file that can't be read is one without tests, and its problem says why."""
        from agenteval_tui.suites.load import load_suites

        return load_suites(self.suite_paths(), keep_unreadable=True)

    def add_test(self, path: Path, test_id: str, name: str, chat: Conversation) -> tuple[LoadedSuite, str]:
        """Write a test made of a conversation into a suite's file: (the suite as it then is, the test's id).

        `test_id` "": one made from the name.
        """
        from agenteval_tui.runs.chat_session import drafted_test
        from agenteval_tui.suites.editing import append_test, free_id
        from agenteval_tui.suites.load import load_suite

        loaded = load_suite(path)
        wanted = test_id or free_id(loaded, name)
        return self._written(append_test(loaded, drafted_test(wanted, name, chat))), wanted

    def note_own_write(self, path: Path) -> None:
        """This app wrote that file: when it is told that the file changed, that is no news."""
        try:
            stat = path.stat()
        except OSError:
            return
        self._own[path.resolve()] = (stat.st_mtime_ns, stat.st_size)

    def is_own(self, path: Path) -> bool:
        """Is the file as this app wrote it last?"""
        try:
            stat = path.stat()
        except OSError:
            return False
        return self._own.get(path.resolve()) == (stat.st_mtime_ns, stat.st_size)

    def _written(self, loaded: LoadedSuite) -> LoadedSuite:
        self.note_own_write(loaded.path)
        return loaded

    def save_config(self, loaded: LoadedSuite, test_id: str, criterion: int, text: str) -> LoadedSuite:
        """Write the edited config into the suite's file, that place only."""
        from agenteval_tui.suites.yaml.save import save_config

        return self._written(save_config(loaded, test_id, criterion, text))

    def save_test(self, loaded: LoadedSuite, test_id: str, edit: TestEdit) -> LoadedSuite:
        """Write the edit of a test into the suite's file, those places only."""
        from agenteval_tui.suites.editing import save_test

        return self._written(save_test(loaded, test_id, edit))

    def quote_cut_text(self, loaded: LoadedSuite, start: int) -> LoadedSuite:
        """Put a text that a `#` cuts short into quotes, in the suite's file."""
        from agenteval_tui.suites.unquoted_hash import quote_cut_text

        return self._written(quote_cut_text(loaded, start))

    def new_test(self, path: Path, name: str, prompt: str, test_id: str = "") -> str:
        """Write a new test into a suite's file, with a criterion to begin with. Gives its id; "": made of the name."""
        from agenteval_tui.grading.criterion_templates import starters
        from agenteval_tui.suites.editing import add_test, free_id
        from agenteval_tui.suites.load import load_suite

        loaded = load_suite(path)
        wanted = test_id or free_id(loaded, name)
        first = next(one for one in starters() if one.metric == "TextMatch")
        criterion = {"name": first.name, "prototype_class": first.prototype_class, "config_uxon": first.config + "\n"}
        add_test(loaded, {"id": wanted, "name": name, "prompt": prompt, "criteria": [criterion]})
        self.note_own_write(path)
        return wanted

    def folder_for_new(self) -> Path:
        """Where a new suite is written: the first folder that was opened; the current one instead of the samples'."""
        first = next(iter(self.paths_looked_in), None)
        if first is None or self.on_samples():
            return Path.cwd()
        return first if first.is_dir() else first.parent

    def agents_for_new(self) -> list[tuple[str, str]]:
        """Agents that a new suite may have, as (key, words): the user's, those of suites beside it, the bundled one."""
        found, _ = self.agents()
        folder = self.folder_for_new().resolve()
        own = [(one.key, f"{one.name}   agents.yaml") for one in found if not one.suite]
        beside = [(one.key, f"{one.name}   as in {one.suite}") for one in found if one.suite and one.base_dir == folder]
        return [*own, *beside, (BUNDLED, "shop   bundled: rules, no key, no network")]

    def new_suite(self, name: str, file: str, agent: str, test_name: str, prompt: str) -> tuple[str, str]:
        """Write a new suite with a first test. `agent` is a key of `agents_for_new`. Gives the suite's key and the
        test's id."""
        from agenteval_tui.grading.criterion_templates import starters
        from agenteval_tui.suites.new_suite import file_for, write_suite
        from agenteval_tui.suites.slugs import slug

        chosen = next((one for one in self.agents()[0] if one.key == agent), None)
        called = chosen.name if chosen is not None else BUNDLED
        agents: dict[str, Mapping[str, Any]] = {}
        if chosen is None:
            agents = {BUNDLED: {"kind": "demo", "version": "v2"}}
        elif chosen.suite:
            agents = {chosen.name: chosen.config}
        first = next(one for one in starters() if one.metric == "TextMatch")
        criterion = {"name": first.name, "prototype_class": first.prototype_class, "config_uxon": first.config + "\n"}
        test_id = slug(test_name)[:60].strip("-._") or "test"
        test = {"id": test_id, "name": test_name, "prompt": prompt, "criteria": [criterion]}
        path = self.folder_for_new() / (file or file_for(name))
        made = write_suite(path, name, called, agents, test)
        self.note_own_write(path)
        if self.paths and not any(path.resolve().is_relative_to(one.resolve()) for one in self.paths):
            self.paths = (*self.paths, path)  # files were opened, not their folder
        return made.key, test_id

    def duplicate_tests(self, loaded: LoadedSuite, tests: Sequence[str]) -> LoadedSuite:
        """Copies of tests, each behind its own."""
        from agenteval_tui.suites.editing import duplicate_tests

        return self._written(duplicate_tests(loaded, tests)[0])

    def delete_tests(self, loaded: LoadedSuite, tests: Sequence[str]) -> LoadedSuite:
        """Take tests out of the suite's file."""
        from agenteval_tui.suites.editing import delete_tests

        return self._written(delete_tests(loaded, tests))

    def move_test(self, loaded: LoadedSuite, test: str, by: int) -> LoadedSuite:
        """Move a test within its file."""
        from agenteval_tui.suites.editing import move_test

        return self._written(move_test(loaded, test, by))

    def tag_tests(
        self, loaded: LoadedSuite, tests: Sequence[str], add: Sequence[str], remove: Sequence[str]
    ) -> LoadedSuite:
        """Give tests tags, and take some away."""
        from agenteval_tui.suites.editing import tag_tests

        return self._written(tag_tests(loaded, tests, add, remove))

    def undo(self, changed: Sequence[Written]) -> list[LoadedSuite]:
        """Write each file as it was before a change. Raises `SaveFailed` at the first that was changed since."""
        from agenteval_tui.suites.editing import undo_change

        return [self._written(undo_change(one)) for one in changed]

    def close(self) -> None:
        """Close the history."""
        self._checking = None
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
