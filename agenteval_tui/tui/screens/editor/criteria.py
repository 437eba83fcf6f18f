"""The Editor's criteria: added from a choice of starters, copied, moved, taken out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval_tui.grading.criterion_templates import starters
from agenteval_tui.tui.presenters.test_form import new_criterion
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.undo import EditorChanging
from agenteval_tui.tui.screens.select_dialog import ChooseScreen
from agenteval_tui.tui.widgets.form import Form

if TYPE_CHECKING:
    from agenteval_tui.grading.criterion_templates import Starter


class EditorCriteria(EditorChanging):
    """Changes the list of criteria of the open test; nothing of it is in the file before it is saved."""

    def _choose_starter(self) -> None:

        def offer(found: list[Starter]) -> None:
            by_name = {one.metric: one for one in found}
            choices = [(one.metric, f"{one.metric} · {one.prototype_class}", one.about) for one in found]

            def chosen(name: str | None) -> None:
                if name is not None and self._doc is not None:
                    self._add(by_name[name])
                    self._fill()
                    self._changed()
                    self.query_one("#criterion", Form).focus_first()

            self.app.push_screen(ChooseScreen("A new criterion", choices), chosen)

        self.ask(starters, offer, group="starters")

    def _add(self, starter: Starter) -> None:
        doc = self._doc
        if doc is None:
            return
        doc.step("")
        made = new_criterion(starter.name, starter.prototype_class, starter.config, starter.expected_value)
        place = doc.criterion + 1 if doc.form.criteria else 0
        if starter.about.startswith("made of"):
            place = len(doc.form.criteria)
        doc.form.criteria.insert(place, made)
        doc.criterion = place
        self._changed_state()

    def _with_criterion(self, what: str) -> SuiteDocument | None:
        """The open test, if its criteria list has the keys; else say where they work."""
        doc = self._doc
        if doc is None or doc.chosen is None or self._pane != "criteria":
            self.agenteval.say(f"Choose a test or a criterion in its list to {what} it.")
            return None
        return doc
