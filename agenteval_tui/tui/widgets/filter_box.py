"""The box over a list in which every letter filters it. It is hidden until somebody filters."""

from __future__ import annotations

from textual.widgets import Input


class FilterBox(Input):
    """A hidden `Input`. The screen handles its events, and decides when the list gets the focus back."""

    def __init__(self, placeholder: str, *, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id, classes="filter")
        self.display = False

    def open(self) -> None:
        """Show and focus it, at once: the next keys belong to the filter."""
        self.display = True
        self.focus()

    def close(self) -> bool:
        """Clear and hide it; False: it was not there."""
        was_open = self.display
        if was_open:
            self.value = ""
            self.display = False
        return was_open

    def fill(self, words: str) -> None:
        """Show a filter that was set elsewhere, without an `Input.Changed`."""
        with self.prevent(Input.Changed):
            self.value = words
        self.display = bool(words)
