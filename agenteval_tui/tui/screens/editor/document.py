"""A test that is open in the Editor: what the file says, what the form says, the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from agenteval_tui.analysis.edit_validation import FieldProblem
from agenteval_tui.suites.editing import TestEdit
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.presenters.edit_preview import values_of_both
from agenteval_tui.tui.presenters.test_form import CRITERION_FIELDS, TEST_FIELDS, CriterionForm, TestForm, edit_of
from agenteval_tui.uxon.merge import merge

STEPS = 200
"""How many steps can be undone."""


class SuiteDocument(Struct, eq=False):
    """`loaded` and `base` are the file as it was read, `form` is what is edited; `criterion` is the chosen one."""

    loaded: LoadedSuite
    test_id: str
    base: TestForm
    form: TestForm
    criterion: int = 0
    problems: list[FieldProblem] = field(default_factory=list)
    error: str = ""  # why it could not be saved at all
    bad_yaml: Mapping[str, str] = field(default_factory=dict)
    draft_checked: bool = False
    _steps: list[TestForm] = field(default_factory=list)
    _step: str = ""

    @property
    def key(self) -> str:
        """Suite and test."""
        return f"{self.loaded.key}\x1f{self.test_id}"

    @property
    def edited(self) -> bool:
        """Is the form another than the file?"""
        return bool(self.edit)

    @property
    def edit(self) -> TestEdit:
        """What is to be saved."""
        return edit_of(self.base, self.form)

    @property
    def chosen(self) -> CriterionForm | None:
        """The chosen criterion."""
        return self.form.criteria[self.criterion] if 0 <= self.criterion < len(self.form.criteria) else None

    @property
    def saved_criterion(self) -> CriterionForm | None:
        """The chosen criterion as the file has it; None: it is in no file yet."""
        source = self.chosen.source if self.chosen is not None else None
        return self.base.criteria[source] if source is not None and source < len(self.base.criteria) else None

    def changed_criteria(self) -> set[int]:
        """The criteria that are not as in the file."""
        base = self.base.criteria
        return {
            number
            for number, criterion_form in enumerate(self.form.criteria)
            if criterion_form.source is None
            or criterion_form.source >= len(base)
            or criterion_form.values != base[criterion_form.source].values
        }

    # Steps

    def step(self, what: str) -> None:
        """Something is about to change; changes of the same thing one after another are one step."""
        if what and what == self._step:
            return
        self._step = what
        self._steps.append(self.form.copy())
        del self._steps[:-STEPS]

    @property
    def can_undo(self) -> bool:
        """Is there a step to go back by?"""
        return any(before != self.form for before in self._steps)

    def undo(self) -> bool:
        """Back by a step. Was there one?"""
        self._step = ""
        # A step after which nothing changed is none.
        while self._steps:
            before = self._steps.pop()
            if before != self.form:
                self.form = before
                self.criterion = min(self.criterion, max(len(before.criteria) - 1, 0))
                return True
        return False

    # Drafts

    def as_data(self) -> dict[str, Any]:
        """What a draft keeps: the form as it is now, also when it is edited on."""
        return {"base": _form_data(self.base), "form": _form_data(self.form.copy()), "criterion": self.criterion}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Put a draft's edits into the form, also where the file has changed since: what differs there stays."""
        was, now = _form_from(data.get("base")), _form_from(data.get("form"))
        # A step of its own: undo takes the draft out again.
        self.step("")
        for key in TEST_FIELDS:
            if now.values.get(key, "") != was.values.get(key, ""):
                self.form.values[key] = now.values.get(key, "")
        # Criteria are found by their names: in the file they may have been moved since.
        there = {name: place for place, name in enumerate(_names(self.base.criteria))}
        names = _names(was.criteria)
        if now.criteria == was.criteria:
            return
        criterion_forms: list[CriterionForm] = []
        for criterion in now.criteria:
            place = (
                there.get(names[criterion.source])
                if criterion.source is not None and criterion.source < len(names)
                else None
            )
            values = dict(criterion.values)
            if place is not None and criterion.source is not None:
                old, file = was.criteria[criterion.source].values, self.base.criteria[place].values
                values = {key: values[key] if values[key] != old[key] else file[key] for key in CRITERION_FIELDS}
            criterion_forms.append(CriterionForm(place, values))
        # What came into the file since stays.
        others = [place for name, place in there.items() if name not in names]
        criterion_forms += [self.base.criteria[place].copy() for place in others]
        self.form.criteria = criterion_forms
        number = data.get("criterion")
        self.criterion = number if isinstance(number, int) and 0 <= number < len(criterion_forms) else 0


def carried_on(saved: TestForm, now: TestForm, file: TestForm) -> TestForm:
    """The form after a save: all as the file has it, but for what was typed on. `saved` went into the file, `now` is
    the form by now, `file` reads as the file, which may have other edits, too."""
    form = file.copy()
    for key in TEST_FIELDS:
        if now.values[key] != saved.values[key]:
            form.values[key] = now.values[key]
    if now.criteria == saved.criteria:
        return form
    names, there = _names(saved.criteria), {name: place for place, name in enumerate(_names(file.criteria))}
    free = list(range(len(saved.criteria)))
    form.criteria = []
    for criterion in now.criteria:
        slots = [slot for slot in free if saved.criteria[slot].source == criterion.source]
        # Of two copies of a criterion, the one that is still as it was saved is that one.
        slot = next((slot for slot in slots if saved.criteria[slot] == criterion), slots[0] if slots else None)
        place = None if slot is None else there.get(names[slot])
        if slot is None or place is None:
            form.criteria.append(CriterionForm(None, dict(criterion.values)))
            continue
        free.remove(slot)
        old, in_file = saved.criteria[slot].values, file.criteria[place].values
        values = {key: value if value != old[key] else in_file[key] for key, value in criterion.values.items()}
        form.criteria.append(CriterionForm(place, values))
    form.criteria += [file.criteria[place].copy() for name, place in there.items() if name not in names]
    return form


def changed_by_both(base: TestForm, mine: TestForm, file: TestForm) -> list[tuple[str, str, str]]:
    """(what it is, mine, the file's) of each value that the two sides changed to different ones. In a config, each
    property counts alone."""
    changes = [
        (label, mine.values[key], file.values[key])
        for key in TEST_FIELDS
        if len({form.values[key] for form in (base, mine, file)}) == 3 and (label := key.replace("_", " "))
    ]
    names, there = _names(base.criteria), {name: place for place, name in enumerate(_names(file.criteria))}
    for criterion in mine.criteria:
        name = names[criterion.source] if criterion.source is not None else ("", 0)
        if criterion.source is None or name not in there:
            continue
        sides = base.criteria[criterion.source].values, criterion.values, file.criteria[there[name]].values
        for key in CRITERION_FIELDS:
            was, own, other = (side[key] for side in sides)
            if len({was, own, other}) < 3:
                continue
            if key != "config_uxon":
                changes.append((f"{name[0]}: {key.replace('_', ' ')}", own, other))
                continue
            changes += values_of_both(name[0], merge(was, own, other).both)
    return changes


def _names(criteria: Sequence[CriterionForm]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    names = []
    for criterion in criteria:
        name = criterion.values.get("name", "")
        counts[name] = counts.get(name, 0) + 1
        names.append((name, counts[name]))
    return names


def _form_data(form: TestForm) -> dict[str, Any]:
    """A form as JSON can hold it."""
    return {
        "values": form.values,
        "criteria": [{"source": criterion.source, "values": criterion.values} for criterion in form.criteria],
    }


def _form_from(data: Any) -> TestForm:
    """A form from a draft; what is not as it should be is left out."""
    values = data.get("values") if isinstance(data, Mapping) else None
    form = TestForm({key: _text(values, key) for key in TEST_FIELDS})
    criteria = data.get("criteria") if isinstance(data, Mapping) else None
    for criterion in criteria if isinstance(criteria, list) else ():
        if isinstance(criterion, Mapping):
            source = criterion.get("source")
            texts = {key: _text(criterion.get("values"), key) for key in CRITERION_FIELDS}
            form.criteria.append(CriterionForm(source if isinstance(source, int) and source >= 0 else None, texts))
    return form


def _text(values: Any, key: str) -> str:
    value = values.get(key) if isinstance(values, Mapping) else None
    return value if isinstance(value, str) else ""
