"""Are the lower bounds of pyproject.toml true? Installs the lowest version of each dependency and runs tests with it.

    python tests/packaging/lowest.py [FOLDER] [pytest arguments]

FOLDER holds the environments and stays (a temporary one is made without it). What a dependency itself needs comes in
whichever version pip chooses. `make lowest` calls this; it needs a package index and takes some minutes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What the tests below import besides the program, in any version.
TOOLS = (
    "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist", "pytest-textual-snapshot", "hypothesis", "pyte",
    "resvg-py",
)  # fmt: skip
EXTRAS = ("data", "keyring", "lsp", "otel", "serve", "socks")
# Something of each dependency: suites (yaml, pydantic, jinja2), grading (regex, jmespath, jsonschema, rapidfuzz, idna),
# agents (httpx, httpcore), history (sqlite-utils), imports (zstd, tables), the command line (click), the app (textual).
TESTS = (
    "tests/suites", "tests/grading", "tests/uxon", "tests/transcripts", "tests/history", "tests/formats",
    "tests/extensions/inspect", "tests/extensions/lsp", "tests/extensions/promptfoo", "tests/extensions/table",
    "tests/golden", "tests/agents/test_sse.py", "tests/agents/test_chunk_coalescing.py",
    "tests/agents/test_http_replies.py",
    "tests/agents/test_http_agent.py", "tests/agents/test_network_faults.py", "tests/cli/test_run.py",
    "tests/tui/test_textual_support.py", "tests/tui/test_sheets.py", "tests/tui/test_editor_parts.py",
    "tests/tui/test_suites_screen.py", "tests/tui/test_virtual_list.py",
)  # fmt: skip
# The lowest `mcp` needs a later pydantic than we do: it has an environment of its own, with any version of the others.
NAMES_MCP = "tests/golden/test_golden.py::test_golden[doctor]"
MCP_TESTS = (
    "tests/agents/test_mcp.py", "tests/agents/test_tools_running.py", "tests/extensions/mcp/test_server.py", NAMES_MCP,
)  # fmt: skip

# Click 8.1 writes "COMMAND" where later versions write "[COMMAND]": the golden pins the words of the newest.
WORDED_BY_CLICK = "tests/golden/test_golden.py::test_golden[commands]"
# These compare with check-jsonschema, a program of its own that needs a later Click than we do.
ANOTHER_PROGRAM = (
    "tests/formats/test_suite_schema.py::test_every_suite_of_this_repository",
    "tests/formats/test_suite_schema.py::test_check_jsonschema_says_the_same",
)


def lowest(requirement: str) -> str:
    """The requirement with its lower bound as the version: `click>=8.1,<9` gives `click==8.1`."""
    text, mark, condition = requirement.partition(";")
    return re.sub(r">=\s*([^,;\s]+)(?:,.*)?", r"==\1", text.strip()) + mark + condition


def environment(folder: Path, pins: list[str]) -> str:
    """Make an environment with these requirements and else any version of what the program needs; gives its Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {name(one) for one in pins}
    needed = [*pins, *(one for one in project["dependencies"] if name(one) not in pinned)]
    tools = [one for one in project["optional-dependencies"]["dev"] if name(one) in TOOLS]
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    subprocess.run([*pip, *needed, *tools], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
    return python


def name(requirement: str) -> str:
    """The project that is required: `click` of `click>=8.1,<9`."""
    return re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0].lower()


def main(arguments: list[str]) -> int:
    """Install, say what was installed, test. The exit code is 0, or pytest's where a test failed."""
    folder = Path(arguments[0]) if arguments else Path(tempfile.mkdtemp(prefix="agenteval-lowest-"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    some = [lowest(one) for name in EXTRAS for one in extras[name]]
    every = [*(lowest(one) for one in project["dependencies"]), *some]
    if arguments[1:]:
        return tested(folder / "lowest", every, arguments[1:])
    passed_over = (WORDED_BY_CLICK, NAMES_MCP, *ANOTHER_PROGRAM)
    tests = ["-n", "2", *TESTS, *(f"--deselect={one}" for one in passed_over)]
    failed = tested(folder / "lowest", every, tests)
    return tested(folder / "mcp", [*map(lowest, extras["mcp"]), *some], MCP_TESTS) or failed


def tested(folder: Path, pins: list[str], tests: Sequence[str]) -> int:
    """The exit code of the tests in an environment with these versions."""
    python = environment(folder, pins)
    print("\n".join(pins), flush=True)
    return subprocess.run([python, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
