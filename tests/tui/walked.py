"""The program as it is, which writes down which of its screens were shown: for tests that must have seen them all."""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
import sys
from pathlib import Path

from textual.screen import Screen

from agenteval_tui.tui import reading_time

NOTED = "WALKED_SCREENS"  # names the file


def name_of(kind: type) -> str:
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


def every_screen() -> set[str]:
    """The screens and sheets of the program that can be shown, as `module.Class`: those that no other one extends."""
    for name in ("agenteval_tui.tui", "agenteval_tui.extensions"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if name == "agenteval_tui.tui" or module.name.endswith(".sheet"):
                importlib.import_module(module.name)
    found: set[str] = set()
    pending: list[type] = [Screen]
    while pending:
        kinds = pending.pop().__subclasses__()
        pending += kinds
        found |= {
            name_of(kind)
            for kind in kinds
            if kind.__module__.startswith("agenteval_tui.")
            and not any(one.__module__.startswith("agenteval_tui.") for one in kind.__subclasses__())
        }
    # One that is shown by itself, and extended by the sheet of themes.
    # Textual's palette is none of them, whatever opens it.
    return (found | {"select_dialog.SelectScreen"}) - {"sheet.CommandSheet"}


def seen(noted: Path) -> set[str]:
    """What a program that was started with `NOTED` has shown."""
    return set(noted.read_text("utf-8").split())


def main() -> None:
    shown = Screen._on_screen_resume

    def note(self: Screen[object], event: object) -> None:
        with open(os.environ[NOTED], "a", encoding="utf-8") as noted:
            noted.write(name_of(type(self)) + "\n")
        shown(self, event)  # type: ignore[arg-type]

    Screen._on_screen_resume = note  # type: ignore[method-assign]
    reading_time.READ_S = 0.0  # a test knows what is asked
    runpy.run_module("agenteval_tui", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of the tests
    main()
