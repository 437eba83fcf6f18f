"""Edits of configs that are not saved yet, and those that are being saved."""

from __future__ import annotations

from msgspec import Struct

from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import Criterion
from agenteval_tui.tui.draft_store import Drafts
from agenteval_tui.uxon.merge import BothChanged

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
