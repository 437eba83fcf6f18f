"""The way through Inspect, without Textual: what was shown in the transcript's place, and of which run."""

from __future__ import annotations

from msgspec import Struct

MOST = 20  # places that one can go back to


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
        del self._before[:-MOST]

    def step_run(self, run: str) -> None:
        """Another run is open, in the same view: of the one before only the transcript is worth going back to, and
        that of this one now."""
        self._before = [Place(run, "transcript")] if any(place.view == "transcript" for place in self._before) else []

    def back(self) -> Place | None:
        """The place before, which is shown now; None: there is none inside Inspect."""
        return self._before.pop() if self._before else None
