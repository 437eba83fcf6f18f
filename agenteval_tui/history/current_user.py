"""Who decides: the name for a label or a decision when none was given."""

from __future__ import annotations

import getpass
import os

NAME = "AGENTEVAL_WHO"
"""The environment variable with a person's name; without it the account's name counts."""
_LONGEST = 80


def current_user() -> str:
    """The name of the person at the terminal, as far as the system tells; "" where it tells nothing."""
    name = os.environ.get(NAME, "").strip()
    if not name:
        try:
            name = getpass.getuser()
        except (KeyError, OSError, ImportError):
            return ""
    return name[:_LONGEST]
