"""Commands for a person to copy into a shell: what somebody else named is one word of them, whatever it holds."""

from __future__ import annotations

import shlex

from agenteval_tui.core.display import one_line


def command_line(*words: str) -> str:
    """The words as a shell reads them, quoted where that is needed; on one line, with nothing that a terminal obeys."""
    return " ".join(shlex.quote(one_line(word)) for word in words)
