"""How a problem is reported: what is wrong, where, and how to fix it."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

Severity = Literal["error", "warning", "info"]

WRONG_USE = 2
INFRASTRUCTURE = 3


class AgentevalError(Exception):
    """An error that a person reads as one sentence, not as a traceback.

    `what` says what is wrong, `where` is the place (a file with line, a server, an id), and `fix` says how to fix it:
    a few words, or a list with one remedy a line. `exit_code` is the exit code of the command line.
    """

    exit_code = WRONG_USE

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    @property
    def remedies(self) -> list[str]:
        """The lines of a remedy that is a list. Empty for a short remedy, which is in the sentence."""
        return self.fix.splitlines() if "\n" in self.fix else []

    @property
    def problem(self) -> str:
        """The place and the problem."""
        return f"{self.where}: {self.what}" if self.where else self.what

    @property
    def sentence(self) -> str:
        """The place, the problem, and a short remedy."""
        remedy = f" ({self.fix})" if self.fix and not self.remedies else ""
        return f"{self.problem}{remedy}"

    def __str__(self) -> str:
        return "\n".join([self.sentence, *self.remedies])


class AmbiguousError(AgentevalError):
    """What was named fits several things."""


class InfrastructureError(AgentevalError):
    """An agent, a server or the machine did not do its part: exit code 3."""

    exit_code = INFRASTRUCTURE


def program_error(error: BaseException | None, log: object) -> str:
    """What is said of an error in the program: its kind, and the file with its traceback (None: none was written)."""
    kind = f" ({' '.join(f'{type(error).__name__}: {error}'.rstrip(': ').split())[:300]})" if error is not None else ""
    advice = (
        f"The traceback is in {log}, and shown with --debug; please report it"
        if log is not None
        else "run with --debug for the traceback"
    )
    return f"an error in the program{kind}. {advice}"


def path_error(error: BaseException) -> AgentevalError | None:
    """The system's error about a path that the user gave (a name that is too long, say), or about the current folder,
    which is gone; None for any other error."""
    if isinstance(error, RuntimeError) and isinstance(error.__context__, OSError):
        error = error.__context__  # how `Path.resolve` says that links lead in a circle
    if isinstance(error, FileNotFoundError) and error.filename is None and _is_homeless():
        return AgentevalError("the current folder does not exist any more", fix="change to another folder")
    if not isinstance(error, OSError) or not isinstance(error.filename, str) or error.errno is None:
        return None
    fix = "give a shorter name" if error.errno == errno.ENAMETOOLONG else "check the path and its permissions"
    where = error.filename if len(error.filename) <= _LONGEST_PATH else f"{error.filename[:_LONGEST_PATH]}…"
    kind = AgentevalError if error.errno in _OF_THE_NAME else InfrastructureError
    return kind(f"this path can't be used: {error.strerror}", where=where, fix=fix)


def _is_homeless() -> bool:
    """Is the folder that this process is in deleted? Then no relative path means anything."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


_LONGEST_PATH = 120  # characters of a path that are shown
_OF_THE_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOENT)


Place = Annotated[int, Meta(ge=1)]


class TextEdit(Struct, frozen=True):
    """Replace the characters `start`..`end` (0-based, end exclusive) of a text by `text`."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """`text` with the edits made; they must not overlap."""
    for edit in sorted(edits, key=lambda text_edit: (text_edit.start, text_edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class Fix(Struct, frozen=True):
    """A remedy that the program can apply itself: a title in words, and the edits, in order, not overlapping."""

    title: str
    edits: tuple[TextEdit, ...]

    def apply(self, text: str) -> str:
        """`text` with the edits made."""
        return apply_edits(text, self.edits)


class Problem(Struct, frozen=True, forbid_unknown_fields=True):
    """Something wrong at a place in a file. Lines and columns are 1-based; the end is exclusive.

    Columns count characters of the file as it is on disk. `fix` is a remedy in words ("write [\"x\"]").
    """

    file: str
    line: Place
    column: Place
    end_line: Place
    end_column: Place
    severity: Severity
    code: str
    message: str
    fix: str | None = None

    @classmethod
    def at(
        cls,
        file: Path | str,
        start: tuple[int, int],
        code: str,
        message: str,
        fix: str | None = None,
        *,
        end: tuple[int, int] | None = None,
        severity: Severity = "error",
    ) -> Problem:
        """What is wrong from `start` to `end` (line and column), or at `start`."""
        end = end or start
        return cls(
            str(file),
            line=start[0],
            column=start[1],
            end_line=end[0],
            end_column=end[1],
            severity=severity,
            code=code,
            message=message,
            fix=fix,
        )

    @property
    def where(self) -> str:
        """The place as editors and terminals open it: `file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    def __str__(self) -> str:
        remedy = f" ({self.fix})" if self.fix else ""
        return f"{self.where}: {self.severity}: {self.message}{remedy}"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """1-based line and column (characters) of `offset` in `text`; an offset behind the end counts as the end."""
    offset = min(max(offset, 0), len(text))
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def line_of(text: str, offset: int) -> int:
    """The line (from 1) of a character."""
    return line_and_column(text, offset)[0]


def raise_first(problems: Sequence[Problem]) -> None:
    """Raise `AgentevalError` for the first problem, with how many more there are; nothing where there is none."""
    if problems:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise AgentevalError(first.message + more, where=first.where, fix=first.fix or "")
