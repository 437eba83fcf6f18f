"""What may be said of a program that failed: its last words, without the secrets that it was given."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping

from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.traceback_text import OWN, PACKAGES
from agenteval_tui.core.display import printed_lines
from agenteval_tui.transcripts.model import ErrorCode, RunError
from agenteval_tui.transcripts.traceback import Traceback, with_texts

_LONGEST_TAIL = 400
_PROMPT = re.compile(r".*[:?]|[^<]{0,20}>", re.DOTALL)
"""A line without an end that asks for one: "Your name: ", "you> ", but no "</html>"."""
_IN_DUMP = re.compile(
    r"^(?:Current thread|Thread) 0x\w+ .*:$|^Extension modules: "
    rf"|^ *File \"(?:(?:{'|'.join(map(re.escape, OWN))})[\w/]+\.py|[^\"]*(?:{PACKAGES.pattern})[^\"]*)\", line \d+ in "
)
"""Lines of what `faulthandler` writes of a crash that name nothing of the user's."""
# One letter before `Warning` says as much as the whole word would. To look for that from each letter of a line of 64 KB
# on, such as a picture in base64, takes a minute.
_NOTED = re.compile(r"\b(?:DEBUG|INFO|WARN(?:ING)?)\b|\wWarning: |^\s|^$")
"""Lines that tell of no error: records, warnings, and the source that these show."""
BREAKPOINTS = frozenset(("BdbQuit",))
"""The exceptions of a debugger that has no terminal."""
BREAKPOINT_REMEDY = (
    "a run has no terminal to debug in: run `agenteval debug TEST`; PYTHONBREAKPOINT=0 in `env` skips breakpoints"
)


def traceback_without_secrets(traceback: Traceback | None, env: Mapping[str, str]) -> Traceback | None:
    """The traceback without the values of the variables whose names say that they are secret."""
    return None if traceback is None else with_texts(traceback, lambda text: without_secrets(text, env))


def stderr_tail(stderr: str, env: Mapping[str, str]) -> str:
    """The last lines of a program's standard error, in one line of at most 400 characters; "" when there are none. A
    line is cut only where it is too long alone."""
    lines = [line for line in printed_lines(without_secrets(stderr, env)) if not _IN_DUMP.search(line)]
    words = ""
    # From the end: that is where programs say what went wrong.
    for line in reversed(lines):
        longer = " ".join([*line.split(), *([words] if words else [])])
        if len(longer) > _LONGEST_TAIL:
            return f"…{words}" if words else "…" + longer[-_LONGEST_TAIL:]
        words = longer
    return words


def is_only_noted(stderr: str) -> bool:
    """Whether all of a program's standard error are warnings, or records of what went well."""
    return all(map(_NOTED.search, printed_lines(stderr)))


def pending_question(output: str, env: Mapping[str, str]) -> str:
    """What a program asked last on its standard output, and got no answer to, without secrets; "" where it did not ask:
    a line without an end that ends as prompts do."""
    *_, line = ("", *printed_lines(without_secrets(output, env).rpartition("\n")[2]))
    line = line.strip()
    return line[-_LONGEST_TAIL:] if _PROMPT.fullmatch(line) else ""


def with_last_words(sentence: str, stderr: str, env: Mapping[str, str]) -> str:
    """What is said of a program that failed: the sentence and the last of its standard error, without secrets."""
    words = stderr_tail(stderr, env)
    return without_secrets(sentence, env) + (f": {words}" if words else "")


def silence_error(sentence: str) -> RunError:
    """The error of a program that took longer than `timeouts` allows."""
    fix = "find out what it waits for, or raise `timeouts`"
    return RunError.told("timeout", sentence, fix, ErrorCode.SILENCE)


def exit_description(returncode: int | None) -> str:
    """ "ended with exit code 3", "was ended by the signal SIGKILL"."""
    if returncode is None:
        return "did not end"
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    return f"was ended by the signal {signal_name(returncode)}"


def signal_name(returncode: int) -> str:
    """The signal that ended a program: "SIGKILL" for -9, "34" for one without a name."""
    try:
        return signal.Signals(-returncode).name
    except ValueError:  # the real-time signals have numbers only
        return str(-returncode)


def remedy_for(returncode: int | None, usual: str) -> str:
    """What to do about a program that ended like this; `usual` where nothing more is known."""
    # Where agenteval kills a program, it says why; so somebody else did.
    if returncode == -signal.SIGKILL:
        return "the system may have killed it because memory ran out: see the system's log, or lower `concurrency`"
    return usual
