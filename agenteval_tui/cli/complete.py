"""Completes words in a shell: verbs, options and their values, and ids and names from the history and the suites.

The scripts in `completions/` call `agenteval __complete WORD...` with the words up to the cursor. The last word is
completed ("" for a new one). The answer has one line for each candidate (the word, a tab, and its description), and a
last line that says what else may follow: `:files`, `:folders` or `:none`.

This module imports neither click nor a verb, because a shell waits for the answer after each key. The options and
arguments of the verbs are in `completion_table.json`, which `docs/make_command_line.py` makes from the verbs.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.core import directories
from agenteval_tui.core.ids import short_id
from agenteval_tui.history.known_names import KnownNames
from agenteval_tui.suites.projects import projects_open, shows_all

TABLE = Path(__file__).with_name("completion_table.json")
FILES, FOLDERS, NONE = ":files", ":folders", ":none"
_SAFE = re.compile(r"[\w@.:/+=,-]+")
"""Words that a shell doesn't split or expand. Names can contain anything; other names are not offered."""
_LONGEST = 70  # characters of a description
_EVERYWHERE = ("--all-projects",)

Candidate = tuple[str, str]


def main(words: Sequence[str]) -> int:
    """Print the answer for these words. After an error, the answer has no candidates; raises OSError only for an answer
    that can't be written."""
    try:
        lines = answer(words)
    except Exception:  # a message would land in the middle of what somebody types
        lines = [NONE]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 0


def answer(words: Sequence[str]) -> list[str]:
    """The lines of the answer for these words. The last word is completed."""
    *before, current = words or [""]
    place = _Place(json.loads(TABLE.read_text("utf-8")), before)
    kind, start = place.expected(current)
    prefix, typed = current[:start], current[start:]
    candidates = _Sources(place).candidates(kind, typed)
    described: dict[str, str] = {}
    for value, about in candidates:
        if _SAFE.fullmatch(value) and value not in described:
            described[value] = about
    also = {"files": FILES, "folders": FOLDERS}.get(kind.rpartition("+")[2], NONE)
    return [*(f"{prefix}{value}\t{_described(about)}" for value, about in described.items()), also]


def _described(about: str) -> str:
    return "".join(char if char.isprintable() else " " for char in about)[:_LONGEST]


class _Place:
    """The position of the cursor: the verb, the option before it, and the argument."""

    def __init__(self, table: dict[str, Any], before: Sequence[str]) -> None:
        self.verb: dict[str, Any] = table
        self.path: list[str] = []
        self.given: dict[str, list[str]] = {}
        """The options before the cursor, by their first names, with their values."""
        self._arguments = 0
        self._last = ""  # the option that was read last
        self._wants: tuple[str, int] | None = None  # an option that lacks a value: its kind, and how many
        self._only_arguments = False
        for word in before:
            self._take(word)

    def _take(self, word: str) -> None:
        if self._wants is not None:
            kind, remaining = self._wants
            self.given[self._last].append(word)
            self._wants = (kind, remaining - 1) if remaining > 1 else None
        elif word == "--" and not self._only_arguments:
            self._only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not self._only_arguments:
            name, equals, value = word.partition("=")
            option = self.option(name)
            if option is not None:
                self._last = option["names"][0]
                self.given.setdefault(self._last, []).extend([value] if equals else [])
                if option["values"] and not equals:
                    self._wants = (option["kind"], option["values"])
        elif word in self.verb.get("verbs", {}) and not self._arguments:
            self.verb = self.verb["verbs"][word]
            self.path.append(word)
        else:
            self._arguments += 1

    def option(self, name: str) -> dict[str, Any] | None:
        """The option of this name, here or of the whole program."""
        return next((option for option in self.options() if name in option["names"]), None)

    def options(self) -> list[dict[str, Any]]:
        """The options of the verb."""
        options: list[dict[str, Any]] = self.verb["options"]
        return options

    def expected(self, current: str) -> tuple[str, int]:
        """What the current word is, and from which of its characters on: a kind of value, "options" or "verbs"."""
        if self._wants is not None:
            return self._wants[0], 0
        if current.startswith("-") and not self._only_arguments:
            name, equals, _ = current.partition("=")
            option = self.option(name) if equals else None
            return (option["kind"], len(name) + 1) if option is not None and option["values"] else ("options", 0)
        if self.verb.get("verbs") and not self._arguments:
            return ("verbs" if self.path else "verbs+files"), 0
        arguments = self.verb["arguments"]
        if self._arguments < len(arguments):
            return arguments[self._arguments]["kind"], 0
        return (arguments[-1]["kind"] if arguments and arguments[-1]["many"] else "none"), 0


class _Sources:
    """Finds the candidates of each kind."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        everywhere = shows_all() or any(name in place.given for name in _EVERYWHERE)
        database = place.given.get("--db", [""])[-1]
        self._history = KnownNames(directories.history_file(database), () if everywhere else projects_open())
        self._kinds: dict[str, Callable[[str], Iterable[Candidate]]] = {
            "verbs": self._verbs,
            "options": self._options,
            "executions": self._executions,
            "running": lambda typed: _ids(self._history.executions(running=True), typed),
            "runs": lambda typed: (*_starting(self._names("tests"), typed), *_ids(self._history.runs(), typed)),
            "references": self._references,
            **{
                kind: lambda typed, kind=kind: _starting(self._names(kind), typed)  # type: ignore[misc]
                for kind in ("tests", "agents", "variations", "tags")
            },
            "arms": lambda typed: _starting((*self._names("agents"), *self._names("variations")), typed),
            "pages": lambda typed: _starting(_pages(), typed),
        }

    def candidates(self, kind: str, typed: str) -> Iterable[Candidate]:
        """Those that begin with what is typed. A kind may be several, joined by `+`."""
        for part in kind.split("+"):
            if part.startswith("choice:"):
                yield from _starting(((value, "") for value in part.removeprefix("choice:").split("|")), typed)
            elif part in self._kinds:
                yield from self._kinds[part](typed)

    def _verbs(self, typed: str) -> Iterator[Candidate]:
        verbs = self._place.verb["verbs"]
        yield from _starting(((name, entry["help"]) for name, entry in verbs.items()), typed)
        if not self._place.path:
            # 20 ms, and as much again to look through what is installed: only where a verb is typed.
            from agenteval_tui.core import entry_points
            from agenteval_tui.core.entry_points import COMMANDS

            plugins = (name for name in entry_points.names(COMMANDS) if name not in verbs)
            yield from _starting(((name, "a verb of a plug-in") for name in plugins), typed)

    def _options(self, typed: str) -> Iterator[Candidate]:
        for option in self._place.options():
            if option["many"] or option["names"][0] not in self._place.given:
                names = [name for name in option["names"] if name.startswith(typed)]
                long = [name for name in names if name.startswith("--")]
                # A single dash offers what has no longer name, and whatever is typed whole.
                yield from ((name, option["help"]) for name in (long if typed in ("-", "--") and long else names))

    def _executions(self, typed: str) -> Iterator[Candidate]:
        yield from _starting([("last", "the newest execution")], typed)
        yield from _ids(self._history.executions(), typed)

    def _references(self, typed: str) -> Iterator[Candidate]:
        yield from self._executions(typed)
        yield from _starting(self._names("tests"), typed)
        yield from _ids(self._history.runs(), typed)

    def _names(self, kind: str) -> Iterator[Candidate]:
        # 30 ms with the parser, which verbs, options and ids do not need.
        from agenteval_tui.suites.written_names import WrittenNames

        agents = directories.config_dir() / "agents.yaml" if kind in ("agents", "arms") else None
        written = WrittenNames(Path(), agents)
        yield from getattr(written, kind)()
        if kind != "tags":
            yield from getattr(self._history, kind)()


def _starting(named: Iterable[Candidate], typed: str) -> Iterator[Candidate]:
    return ((name, about) for name, about in named if name.startswith(typed))


def _ids(named: Iterable[Candidate], typed: str) -> Iterator[Candidate]:
    """Ids by their short forms, and whole where that is what somebody types. Ids have capital letters only."""
    prefix = typed.upper()
    for uid, about in named:
        short = short_id(uid)
        if short.startswith(prefix):
            yield short, about
        elif uid.startswith(prefix):
            yield uid, about


def _pages() -> Iterator[Candidate]:
    folder = directories.bundled("docs")
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("decisions", "schemas", "screenshots"))
        for name in sorted(files):
            if name.endswith(".md"):
                page = Path(here, name).relative_to(folder).as_posix().removesuffix(".md").removesuffix("/README")
                yield page, "page"
