"""The Editor's panes: the list of tests, the form of a test, its criteria with their configs, and a recorded run.

Each shows what the controller has. The two with fields put what is typed into the controller, and say `TestEdited`; the
one with a run judges the chosen criterion, and says `Judged`. Messages of their lists are passed on to the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Input

from agenteval_tui.analysis.overview import Overview
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.registry import prototype_names
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.presenters.editor_rows import CriterionRows, TestRows, dataset_lines
from agenteval_tui.tui.presenters.evidence_pane import KEYS, NO_EDIT
from agenteval_tui.tui.presenters.impact import impact_below, nothing_yet, trial_lines, trial_title, verdict_line
from agenteval_tui.tui.presenters.status_style import DOT
from agenteval_tui.tui.presenters.tabs import pane_title
from agenteval_tui.tui.presenters.test_form import YAMLS
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.config_assistant import ConfigAssistant
from agenteval_tui.tui.screens.editor.controller import EditorController
from agenteval_tui.tui.screens.relax import RelaxScreen
from agenteval_tui.tui.screens.rerun import again_key
from agenteval_tui.tui.screens.verdict_changes import show_flips
from agenteval_tui.tui.services import services
from agenteval_tui.tui.styled_text import Line, indented
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.form import Field, Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import TitledPane
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

MOST_ROWS = 8  # of a field that grows with its text: those below must stay in view
PROMPT_ROWS = 5
CATEGORIES = (("", "none"), ("happy_path", "happy path"), ("edge_case", "edge case"), ("negative", "negative"))
SEVERITIES = (("error", "error: fails the test"), ("warning", "warning"), ("info", "info"))
NEGATE = (("", "passes when it holds"), ("true", "passes when it does NOT hold"))

TEST_FIELDS = (
    Field("name", "name"),
    Field("id", "id", placeholder="made from the name"),
    Field("prompt", "prompt", rows=PROMPT_ROWS),
    Field("agent", "agent", choices=(("", "the suite's"),)),
    Field("category", "category", choices=CATEGORIES),
    Field("tags", "tags", placeholder="e.g. smoke, sql"),
    Field("repeat", "repeat", placeholder="the suite's"),
    Field("description", "about", rows=2),
    Field("timeout", "timeout", placeholder="in seconds; empty: the suite's"),
    Field("pass_threshold", "threshold", placeholder="0 to 1; empty: all criteria must pass"),
    Field("gate", "gate", placeholder="0 to 1; empty: every run must pass"),
    Field("variables", "variables", rows=1, placeholder="e.g. {country: Germany}"),
    Field("dataset_file", "dataset", placeholder="e.g. rows.csv, a run for each row"),
    Field("dataset_limit", "rows", placeholder="all rows"),
    Field("variations", "variations", rows=1, placeholder="e.g. [{name: mini, agent: shop/mini}]"),
    Field("context", "context", rows=1, placeholder="e.g. {sample_tools: {}}"),
    Field("turns", "turns", rows=1, placeholder="e.g. [first message, second message]"),
    Field("messages", "messages", rows=1, placeholder="e.g. [{role: user, content: Hello}]"),
    Field("stop", "stop early", rows=1, placeholder="e.g. {when: decided}"),
)
"""The fields of a test, the most used first."""


def _criterion_fields() -> list[Field]:
    """The fields of a criterion, without its config. Lists the prototype classes that are installed."""
    return [
        Field("name", "name"),
        Field("prototype_class", "looks at", choices=tuple((prototype, prototype) for prototype in prototype_names())),
        Field("expected_value", "expected", rows=1, placeholder="{{expected_value}} in the config"),
        Field("severity", "severity", choices=SEVERITIES),
        Field("weight", "weight", placeholder="empty: 1"),
        Field("negate", "negate", choices=NEGATE),
        Field("pass_threshold", "threshold", placeholder="0 to 1; empty: all must pass"),
        Field("description", "about"),
    ]


@dataclass
class TestEdited(Message):
    """The open test was edited in a field; the controller has it."""

    __test__ = False  # not a test of this project


class TestListPane(TitledPane[EditorController]):
    """The tests of all suites, with a filter over them."""

    __test__ = False  # not a test of this project
    NAME, WORDS = "tests", "tests"

    def __init__(self, controller: EditorController) -> None:
        super().__init__(controller)
        self._words = ""
        self._shown: tuple[Overview, set[str], str] | None = None

    def parts(self) -> ComposeResult:
        yield FilterBox("filter the tests", id="filter")
        yield VirtualList(id="tests", empty=[(("  Reading the suites …", "dim"),)])

    @property
    def tests(self) -> VirtualList:
        """The list of tests."""
        return self.query_one("#tests", VirtualList)

    def heading(self) -> tuple[str, str]:
        overview, edited = self._controller.overview, len(self._controller.edited_keys())
        return "tests", f"{edited} not saved" if edited else count(overview.tests, "test") if overview else ""

    def show_tests(self) -> None:
        """Show the tests that have the words of the filter."""
        overview = self._controller.overview
        if overview is None:
            return
        self.tests.set_empty([(), (("  No tests here.", ""),), (("  Press {edit.new} to make one.", "dim"),)])
        contents = (overview, self._controller.edited_keys(), self._words)
        if contents != self._shown:  # each list that is shown anew is sent anew, also in answer to a letter
            self._shown = contents
            self.tests.set_source(TestRows(*contents), keep_key=self.tests.cursor_key)
        self.retitle()

    def open_filter(self) -> None:
        """Show the filter, and give it the keys."""
        self.query_one(FilterBox).open()

    def close_filter(self) -> bool:
        """Leave the filter. False: it was not there."""
        was_open = self.query_one(FilterBox).close()
        if was_open:
            self.tests.focus()
        return was_open

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        event.stop()
        self._words = event.value
        self.show_tests()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list."""
        event.stop()
        self.tests.focus()


class TestFormPane(TitledPane[EditorController]):
    """The fields of the open test, and the first rows of its dataset."""

    __test__ = False  # not a test of this project
    NAME, WORDS = "test", "test"

    def parts(self) -> ComposeResult:
        with VerticalScroll(id="scroll", can_focus=False):
            yield Form(TEST_FIELDS, below=True, id="fields")
            yield LineBlock(id="dataset")

    @property
    def form(self) -> Form:
        """The fields."""
        return self.query_one("#fields", Form)

    def heading(self) -> tuple[str, str]:
        doc = self._controller.doc
        if doc is None:
            return "test", ""
        return one_line(doc.test_id, 40), f"{DOT} edited" if doc.edited else "saved"

    def focus_first(self) -> None:
        self.form.focus_first()

    def fill(self) -> None:
        """Show the open test."""
        doc = self._controller.doc
        self.form.display = doc is not None
        if doc is not None:
            self.form.fill(doc.form.values)
            self._grow(doc.form.values)

    def offer_agents(self, loaded: LoadedSuite, agents: Mapping[str, AgentConfig]) -> None:
        """Offer all known agents: the suite's own, then the user's."""
        suite = loaded.suite
        own = suite.agent if suite is not None else None
        names = list(dict.fromkeys([*(suite.agents if suite is not None else ()), *agents]))
        default = f"the suite's: {own}" if own else "none named"
        self.form.offer("agent", [("", default), *((name, name) for name in names)])
        self.form.hold("repeat", f"{suite.defaults.repeat}, as the suite says" if suite is not None else "")

    def show_dataset(self, rows: Sequence[Mapping[str, Any]], error: str) -> None:
        """Show the first rows of the dataset, or what is wrong with it."""
        self.query_one("#dataset", LineBlock).show(lambda width: dataset_lines(rows, error, width))

    def on_form_changed(self, event: Form.Changed) -> None:
        """A field was edited."""
        event.stop()
        doc = self._controller.doc
        value = event.form.values().get(event.name, "")
        if doc is not None and self._controller.edit(event.name, value, of_criterion=False):
            if event.name in YAMLS:
                self._grow(doc.form.values)
            self.post_message(TestEdited())

    def _grow(self, values: Mapping[str, str]) -> None:
        """Make texts over several lines as high as they need, within reason."""
        for key in YAMLS:
            self.form.grow(key, min(max(values.get(key, "").count("\n") + 1, 1), MOST_ROWS))


class CriteriaPane(TitledPane[EditorController]):
    """The criteria of the open test, the fields and the config of the chosen one, and its verdict in a line."""

    NAME, WORDS = "criteria", "criteria"

    def __init__(self, controller: EditorController) -> None:
        super().__init__(controller)
        self.assistant = ConfigAssistant()

    def parts(self) -> ComposeResult:
        yield VirtualList(id="criteria")
        yield Form(_criterion_fields(), below=True, id="criterion")
        yield LineBlock(self._config_title, id="config-title")
        yield ConfigEditor(id="config")
        yield LineBlock(id="verdict")

    @property
    def criteria(self) -> VirtualList:
        """The list of criteria."""
        return self.query_one("#criteria", VirtualList)

    @property
    def form(self) -> Form:
        """The fields of the chosen criterion."""
        return self.query_one("#criterion", Form)

    @property
    def config(self) -> ConfigEditor:
        """The config of the chosen criterion."""
        return self.query_one("#config", ConfigEditor)

    def heading(self) -> tuple[str, str]:
        doc = self._controller.doc
        return "criteria", count(len(doc.form.criteria), "criterion") if doc is not None else ""

    def retitle(self) -> None:
        super().retitle()
        self.query_one("#config-title", LineBlock).retell()

    def _config_title(self, width: int) -> list[Line]:
        doc, diagnostics = self._controller.doc, self._controller.diagnostics
        if doc is None or doc.chosen is None:
            return []
        problems = count(len(diagnostics), "problem") if diagnostics else ""
        return pane_title("config_uxon", problems, width, self.screen.focused is self.config)

    def make_room(self, writing: bool) -> None:
        """Is the config written? Then the pane is wide."""
        if writing != self.has_class("writing"):
            # Without an update of what is in it, which looks the same: a form has a lot of parts.
            self.set_class(writing, "writing", update=False)
            self.app.stylesheet.update_nodes([self])

    def show_criteria(self) -> None:
        """Show the list of criteria: their names, and what is wrong with them."""
        doc = self._controller.doc
        if doc is None:
            return
        bad: dict[int, str] = {}
        for problem in doc.problems:
            if problem.criterion is not None and problem.problem.severity == "error":
                bad[problem.criterion] = "error"
        view = self.criteria
        rows = CriterionRows([criterion.copy() for criterion in doc.form.criteria], bad, doc.changed_criteria())
        # A list that is set anew is sent anew, and this is called for each letter.
        if rows == view.source and view.cursor == doc.criterion:
            return
        view.set_empty([(("  No criteria. Press {edit.new} to add one.", "dim"),)])
        view.styles.height = max(len(doc.form.criteria), 1)
        view.set_source(rows, keep_key=str(doc.criterion))

    def fill(self) -> None:
        """Show the chosen criterion."""
        doc = self._controller.doc
        criterion = doc.chosen if doc is not None else None
        self.criteria.display = doc is not None
        self.form.display = self.config.display = criterion is not None
        if criterion is None:
            return
        self.form.fill({key: value for key, value in criterion.values.items() if key != "config_uxon"})
        self._grow(criterion.values)
        if self.config.text != criterion.values["config_uxon"]:
            self.config.load_text(criterion.values["config_uxon"])
        saved = doc.saved_criterion if doc is not None else None
        self.config.compare_with(saved.values["config_uxon"] if saved is not None else None)

    def show_diagnostics(self, config: str) -> None:
        """Show in the config what is wrong with it, if its text is still `config`, which was checked."""
        if self.config.text == config:
            self.config.set_diagnostics(self._controller.diagnostics)

    async def explain(self) -> None:
        """Say what the word at the config's cursor means."""
        doc = self._controller.doc
        if doc is None or doc.chosen is None:
            return
        if not await self.assistant.explain(self.config, doc.chosen.values["prototype_class"]):
            services(self).say("Nothing to explain here: move to a metric, a property or a matcher.")

    def apply_fix(self) -> None:
        """Apply the fix of the problem at the config's cursor, or of its first one that has a fix."""
        if not self.config.apply_first_fix():
            services(self).say("No problem in this config has an automatic fix.")

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        """Offer completions at the cursor."""
        event.stop()
        doc = self._controller.doc
        if doc is None or doc.chosen is None:
            return
        kind, session = doc.chosen.values["prototype_class"], services(self).session
        answer = partial(self.assistant.answer, event, kind, session, doc.loaded.key, doc.test_id)
        start_worker(self.screen, answer, group="assist", name="completing", awaited=True)

    def show_verdict(self) -> None:
        """Show the verdict on the run, and how many runs would flip."""
        doc, preview = self._controller.doc, self._controller.preview
        result = preview.result if doc is not None and doc.chosen is not None else None
        trial, edited, impact = preview.trial, preview.edited, preview.impact if result is not None else None
        key = key_of("edit.flips", services(self).keymap)
        self.query_one("#verdict", LineBlock).show(
            lambda width: verdict_line(trial, result, impact, edited, key, width)
        )

    def on_form_changed(self, event: Form.Changed) -> None:
        """A field was edited."""
        event.stop()
        values = event.form.values()
        if self._controller.edit(event.name, values.get(event.name, ""), of_criterion=True):
            if event.name == "expected_value":
                self._grow(values)
            self.post_message(TestEdited())

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        """The config was edited."""
        event.stop()
        # A message that was on its way when another config was loaded says nothing about that one.
        if event.text == self.config.text and self._controller.edit("config_uxon", event.text, of_criterion=True):
            self.post_message(TestEdited())

    def _grow(self, values: Mapping[str, str]) -> None:
        """Make the expected value as high as it needs: it shares its pane with a list and an editor."""
        self.form.grow("expected_value", min(values.get("expected_value", "").count("\n") + 1, 3))


class PreviewPane(TitledPane[EditorController]):
    """What the chosen criterion, as it is edited, says of a recorded run, and which stored runs would flip."""

    NAME, WORDS = "live", "on a run"

    @dataclass
    class Judged(Message):
        """The controller's preview has another verdict, or has counted more runs."""

    def parts(self) -> ComposeResult:
        yield LinesView(id="live")
        yield LineBlock(id="impact")

    def heading(self) -> tuple[str, str]:
        return "on a run", trial_title(self._controller.preview.trial)

    def fill(self) -> None:
        """Make room for what a criterion of the open test says; none while no test is open."""
        self.query_one("#live", LinesView).display = self._controller.doc is not None

    def judge(self) -> None:
        """Judge the chosen criterion on the run that is wanted; this ends the judging before."""
        # Not the coroutine: one that a newer keystroke ends before it started would never be awaited.
        start_worker(self.screen, self._judge, group="live", name="judging")

    async def _judge(self) -> None:
        app, controller = services(self), self._controller
        try:
            await controller.preview.judge(app.session.store, controller.doc, self._show_verdict, self._show_impact)
        except AgentevalError as error:
            app.say_error(error)

    def _show_verdict(self, keep_place: bool) -> None:
        """Show the verdict on the run, where it was read up to if `keep_place`."""
        doc, preview, screen = self._controller.doc, self._controller.preview, self.screen
        assert isinstance(screen, FrameScreen)
        trial, result, has_edit = preview.trial, preview.result, preview.has_edit
        view = self.query_one("#live", LinesView)
        if doc is None or doc.chosen is None:
            view.show(lambda width: [], keep_place=False)
        elif trial is None:
            test, run_key = doc.test_id, again_key(screen)
            view.show(lambda width: indented(nothing_yet(test, run_key, width - 1)), keep_place=False)
        elif result is not None:
            number, at, keymap = trial.number(preview.source), now_ms(), screen.agenteval.keymap
            keys = KEYS | {name: key_of(f"edit.{name}", keymap) for name in ("relax", "relax_now")}

            def lines(width: int) -> list[Line]:
                rows = trial_lines(trial, number, result, now_ms=at, width=width - 1, keys=keys, has_edit=has_edit)
                return indented(rows)

            view.show(lines, keep_place=keep_place)
        self.retitle()
        self._show_impact()

    def _show_impact(self) -> None:
        """Show how many stored runs would flip."""
        doc, preview, key = self._controller.doc, self._controller.preview, key_of("edit.flips", services(self).keymap)
        judged = doc is not None and doc.chosen is not None and preview.result is not None
        impact, edited = preview.impact if judged else None, preview.edited
        self.query_one("#impact", LineBlock).show(lambda width: impact_below(impact, edited, key, width))
        self.post_message(self.Judged())

    def step_run(self, by: int) -> None:
        """Judge the run that is `by` older."""
        why_not = self._controller.preview.step(by)
        if why_not:
            services(self).say(why_not)
        else:
            self.judge()

    def list_flips(self) -> None:
        """List the stored runs that the edit would flip; the one that is chosen there is judged then."""
        preview, screen = self._controller.preview, self.screen
        assert isinstance(screen, FrameScreen)

        def chosen(run: str) -> None:
            preview.run_wanted = run
            self.judge()

        show_flips(screen, preview.impact, chosen)

    def choose_relaxation(self, config: ConfigEditor) -> None:
        """Let a person choose from the smallest edits of the config under which the run passes."""
        relaxable = self._to_relax()
        if relaxable is not None:
            sheet = RelaxScreen(*relaxable, config.text, self._controller.preview.alone)
            self.app.push_screen(sheet, if_answered(config.replace_all))

    def relax(self, config: ConfigEditor) -> None:
        """Apply the first suggestion at once."""
        relaxable = self._to_relax()
        if relaxable is None:
            return
        (bench, number), before, app = relaxable, config.text, services(self)

        async def put() -> None:
            edit = await self._controller.preview.alone.smallest_edit(bench, number, before)
            if edit is None:
                app.say(NO_EDIT)
            # The edit is of the text as it was: what was typed meanwhile stays.
            elif config.text == before:
                config.replace_all(edit.new_text)
                app.say(f"{edit.title}. Press {{edit.undo}} to undo it.")

        start_worker(self.screen, put, group="relax", awaited=True, name="relaxing")

    def _to_relax(self) -> tuple[Workbench, int] | None:
        """The workbench and the criterion's number in it, where the criterion fails on this run; else say why not."""
        relaxable = self._controller.preview.to_relax()
        if isinstance(relaxable, str):
            services(self).say(relaxable)
            return None
        return relaxable
