"""An action: what a person can do on a screen, with its key and its words."""

from __future__ import annotations

from msgspec import Struct

EVERYWHERE = "everywhere"


class Action(Struct, frozen=True):
    """One thing that a person can do.

    `id` is what a keymap names ("suites.run"); `method` the Textual action that does it; `label` the word in the
    footer; `scope` the screen; `footer` its place there, lower first (0: not in the footer). `keys` "": what is rare is
    in the palette only. `priority`: the key works while a text field has the focus, and one of the app over every sheet
    as well. `after`: the action that one of an extension follows in lists. `introduction`: a sentence about it, behind
    what introduces the screen. `part`: the scope is a sheet, or a widget that many screens have; the palette and the
    help of a screen don't list it.
    """

    id: str
    method: str
    keys: str
    label: str
    description: str
    scope: str = EVERYWHERE
    footer: int = 0
    priority: bool = False
    after: str = ""
    introduction: str = ""
    part: bool = False


def extension_method(place: str) -> str:
    """The `method` of an extension's action: it calls the function at `place` ("package.module:name") with the screen.
    The module is imported when the action is used first."""
    return f"extension({place!r})"


def part_action(
    id: str, method: str, keys: str, label: str, description: str, scope: str = "", *, priority: bool = False
) -> Action:
    """An action of a sheet or a widget: `part` is set. `scope` "": what its id begins with."""
    return Action(id, method, keys, label, description, scope or id.split(".")[0], priority=priority, part=True)


def close_action(scope: str, keys: str = "", label: str = "close", description: str = "Close the sheet") -> Action:
    """What closes a sheet in which letters are keys: escape, `q` and `keys`, as a rule those that opened it."""
    return part_action(f"{scope}.close", "close", f"escape,q{keys and ','}{keys}", label, description)
