"""The path of a file as a person types it into a form."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, path_error


def typed_path(text: str) -> Path:
    """The path that `text` names: without space around it, `~` is the home folder. It need not exist.

    Raises `AgentevalError` where no file can have this name. Ask `os.path.isfile` and its like about the path: they
    answer False where `Path.is_file` raises, such as in a folder that may not be searched.
    """
    path = Path(os.path.expanduser(text.strip()))  # noqa: PTH111 - Path.expanduser() raises for an unknown user
    try:
        os.lstat(path)
    except ValueError:
        raise AgentevalError(
            "a file name can't contain a null character", where=one_line(text, 60), fix="give another name"
        ) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise AgentevalError(
                "this file name is too long", where=one_line(text, 60), fix="give a shorter name"
            ) from None
    return path


def current_folder() -> Path:
    """The folder in which a path begins that names none. Raises `AgentevalError` where it was deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        raise path_error(error) or error from None
