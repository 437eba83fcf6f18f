"""Which variables of the environment the program reads."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_variables_has_every_one_that_the_program_reads() -> None:
    page = (ROOT / "docs" / "environment.md").read_text("utf-8")
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", page))
    read: dict[str, set[str]] = {}
    for path in (ROOT / "agenteval_tui").rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name == "errors.py" or not re.search(r"environ|\benv\b|AGENTEVAL_", text):
            continue
        for name in VARIABLE.findall(text):
            read.setdefault(name, set()).add(path.name)
    missing = {name: files for name, files in read.items() if name not in named | NOT_VARIABLES}
    assert missing == {}, "write them down in docs/environment.md"
    ours = {name for name in named if name.startswith("AGENTEVAL_")}
    assert ours <= read.keys(), "the program reads no such variable"


VARIABLE = re.compile(r"""(?<!metavar=)["']([A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*)["']""")
# Words of capitals in the same modules that name something else.
NOT_VARIABLES = frozenset(
    (
        *("GET", "POST", "PUT", "PATCH", "OPTIONS", "DENY", "TLS", "F1", "POSIX"),
        "LAST",  # a command of the socket
        "TYPE_CHECKING",  # of typing, in modules that are read
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"),  # set for git when the demo makes its folder
        # Of git's variables those that it still gets, and those that are set for it, when commits are read.
        *("GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES", "GIT_TERMINAL_PROMPT", "GIT_NO_LAZY_FETCH"),
        "HEAD",  # of git: what is checked out
        "PIL",  # the package of images
        "WHEN",  # what the help calls a time
        "MZ",  # a program of Windows begins with it
        "SC_CLK_TCK",  # of os.sysconf
        *("MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND", "SOURCE"),  # Node's codes, and a mark in code for Node
        "LLM",  # how classes that adapt a model are called
        "PRODUCTION",  # a value of LITELLM_MODE
        "HTTP_X_AGENTEVAL_RUN",  # a header, as WSGI names it
        "RECORD",  # the list of an installed package's files
        "USD",  # what the limit of a recording is given in
        "PREFIX",  # an example, in a docstring, of a setting that a project reads
        *("PYTHONUTF8",),  # set for the app that `serve` starts
    )
)
