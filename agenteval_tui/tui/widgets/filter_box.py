"""The box over a list in which every letter filters it. It is hidden until somebody filters."""

from __future__ import annotations

from textual.widgets import Input


class FilterBox(Input):
    """The screen is told what is typed as of any `Input`, and decides itself when the list has the keys again."""

    def __init__(self, placeholder: str, *, id: str) -> None:
        super().__init__(placeholder=placeholder, id=id, classes="filter")
        self.display = False

    def open(self) -> None:
        """Show it, with the keys: at once, for what is typed behind the slash goes into it."""
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
        """Show what is filtered by although nobody typed it here; nobody is told."""
        with self.prevent(Input.Changed):
            self.value = words
        self.display = bool(words)
