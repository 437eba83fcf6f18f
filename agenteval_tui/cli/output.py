"""Everything that the command line prints goes through here: made displayable, coloured where that is wanted."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from typing import IO, Literal

from msgspec import to_builtins

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.core.json_values import with_leaves
from agenteval_tui.views import model, terminal
from agenteval_tui.views.model import ASCII, Text, View

Style = Literal["", "good", "bad", "broken", "warn", "dim", "bold"]

_CODES: dict[Style, str] = {
    "": "",
    "good": "32",
    "bad": "31",
    "broken": "35",
    "warn": "33",
    "dim": "2",
    "bold": "1",
}
_TOKENS: dict[str, Style] = {
    "accent": "bold",
    "code": "",
    "added": "good",
    "removed": "bad",
    "good": "good",
    "bad": "bad",
    "broken": "broken",
    "warn": "warn",
    "flaky": "warn",
    "near": "warn",
    "dim": "dim",
    "bold": "bold",
}
# What GitHub's runner takes for a command anywhere in a log; an agent's answer must not be one.
_COMMANDS = re.compile(r"^(\s*):(?=:)|##(?=\[)", re.MULTILINE)
_STATUS_S = 0.1  # seconds between two versions of the bottom line


class Output:
    """A stream for people: whole lines, and one line at the bottom that is written over.

    Colours only on a terminal, without `NO_COLOR`, and if `TERM` is not "dumb". The line at the bottom (`status`)
    only on a terminal that can, and not in CI. A reader who goes away ends the printing, not the program. Any other
    failure to write is raised, unless what is printed is not `needed` (what is said beside the result).
    """

    def __init__(
        self, stream: IO[str], env: Mapping[str, str] | None = None, *, silent: bool = False, needed: bool = True
    ) -> None:
        env = os.environ if env is None else env
        self.stream = stream
        self._silent = silent
        self._needed = needed
        self.is_terminal = _is_terminal(stream)
        able = self.is_terminal and env.get("TERM", "") not in ("", "dumb")
        self.coloured = able and not env.get("NO_COLOR")
        self.live = able and not silent and not is_ci(env)
        self.ascii_only = not _can_say(stream, "✓✗…")
        self._obeyed = bool(env.get("GITHUB_ACTIONS"))
        self._status = ""
        self._next_status = 0.0

    @property
    def width(self) -> int:
        """Columns that a line may have; 100 if unknown."""
        return shutil.get_terminal_size((100, 24)).columns if self.is_terminal else 100

    def line(self, *parts: str | tuple[str, Style]) -> None:
        """Print one line of parts; a part is text, or text with a style. Newlines in it become lines."""
        text = "".join(self._shown(part) for part in parts)
        if self._obeyed:
            text = _COMMANDS.sub(lambda match: f"{match.group(1)}·:" if match.group(1) is not None else "#·", text)
        self._over_status(text + "\n")

    def text(self, text: Text) -> None:
        """Print one line of a view's text."""
        self.line(*((part, _style(tokens)) for part, tokens in text))

    def view(self, view: View) -> None:
        """Print a view; its tables are cut to the width."""
        for line in terminal.lines(view, self.width):
            self.text(line)

    def prompt(self, text: str) -> None:
        """Print the beginning of a line that a person will end."""
        self._over_status(displayable(text))
        self.flush()

    def workflow_command(self, line: str) -> None:
        """Print a line that GitHub's runner is meant to obey (`formats.exporters.github` has escaped what is in it)."""
        self._over_status(displayable(line) + "\n")

    def status(self, text: str) -> None:
        """Show one line below all others until the next one (or "" for none). Nothing where that can't be done.

        What changes faster than a person reads is left out.
        """
        status_line = one_line(text, max(self.width - 1, 10)) if text else ""
        # An empty text takes the line away at once: what is printed next must not stand beside it.
        if not self.live or status_line == self._status or (status_line and not self.status_due):
            return
        self._next_status = time.monotonic() + _STATUS_S
        self._status = status_line
        self._write("\r\x1b[2K" + status_line)

    @property
    def status_due(self) -> bool:
        """Whether a new line at the bottom would be shown now: a person reads ten a second at most."""
        return time.monotonic() >= self._next_status

    def control(self, sequence: str) -> None:
        """Send the terminal a sequence that this program made; nothing where that can't be done, as in a pipe."""
        if self.live and sequence:
            self._write(sequence)

    def plain_line(self, text: str) -> None:
        """Print an unchanged line of ASCII at once: part of a document that is read while it grows."""
        self._over_status(text + "\n")
        self.flush()

    def json(self, value: object) -> None:
        """Print one JSON document, readable for people: a `Document`, several, or plain data."""
        # JSON leaves control characters above ASCII as they are, and a terminal would obey what an agent said.
        self._write(json_text(value, ascii_only=self.is_terminal or self.ascii_only) + "\n")

    def json_line(self, value: object) -> None:
        """Print a JSON document on one line."""
        self._write(json_text(value, indent=None, ascii_only=self.is_terminal or self.ascii_only) + "\n")

    def flush(self) -> None:
        """Hand over what waits."""
        try:
            self.stream.flush()
        except OSError as error:
            self._reader_gone(error)

    def _shown(self, part: str | tuple[str, Style]) -> str:
        text, style = part if isinstance(part, tuple) else (part, "")
        visible = displayable(text.translate(ASCII) if self.ascii_only else text)
        code = _CODES[style]
        return f"\x1b[{code}m{visible}\x1b[0m" if self.coloured and code and visible else visible

    def _over_status(self, text: str) -> None:
        if self._status:
            self._write("\r\x1b[2K" + text + self._status)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        if self._silent:
            return
        try:
            self.stream.write(text)
            # A person sees each line when it is printed; a pipe takes larger pieces.
            if self.is_terminal:
                self.stream.flush()
        except OSError as error:
            self._reader_gone(error)

    def _reader_gone(self, error: OSError) -> None:
        self._silent = True
        gone = isinstance(error, BrokenPipeError) or error.errno == errno.EIO  # EIO: the terminal was taken away
        # What Python still holds for the pipe would fail at exit, with a traceback.
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stream.fileno())
        except (OSError, ValueError):
            pass
        if not gone and self._needed:
            reason = error.strerror or str(error)
            raise InfrastructureError(f"the output can't be written: {reason}") from error


def outcome_sign(outcome: str) -> tuple[str, Style]:
    """The sign of how a run ended, and its style; a dim dot for a run that has not ended."""
    sign, token = model.outcome_sign(outcome)
    return sign, _TOKENS[token]


def _style(tokens: str) -> Style:
    """How the command line shows words with these tokens: as what they mean, else by their weight."""
    styles = [_TOKENS[token] for token in tokens.split()]
    return next((style for style in styles if style not in ("dim", "bold")), styles[0] if styles else "")


def json_text(value: object, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """A `Document`, several, or plain data as JSON. What JSON has no word for (NaN, infinity) becomes null."""
    value = to_builtins(value)
    try:
        text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(with_leaves(value, _finite), ensure_ascii=ascii_only, indent=indent)
    # Lone surrogates have no UTF-8; JSON can still say them.
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_ci(env: Mapping[str, str]) -> bool:
    """Whether this runs in a CI job, where no user watches the output or answers a question."""
    return env.get("CI", "").lower() not in ("", "0", "false")


def _is_terminal(stream: IO[str]) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def _can_say(stream: IO[str], text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def prepare_streams() -> None:
    """Let nothing that is printed fail for its characters: what the terminal's encoding lacks is escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
