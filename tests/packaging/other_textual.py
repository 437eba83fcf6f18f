"""Does the app work with another Textual? Installs that version and runs the tests that drive the app (no pictures).

    python tests/packaging/other_textual.py VERSION [FOLDER] [pytest arguments]

FOLDER holds the environment and stays. This needs a package index and takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from lowest import ROOT, environment

# What drives the app.
TESTS = (
    "test_sheets", "test_mounting", "test_screen_buffer", "test_output_flow", "test_terminals", "test_editor",
    "test_editor_preview",
    "test_editor_parts", "test_completion", "test_inspect_screen", "test_inspect_edits", "test_suites_screen",
    "test_history_screen", "test_compare_screen", "test_agents_screen", "test_causes_screen", "test_virtual_list",
    "test_transcript_view", "test_workers", "test_themes", "test_failing", "test_finding_ones_way",
)  # fmt: skip


SAY = (
    "from agenteval_tui.tui.terminal import minimal_redraw, mounting, terminal_app; "
    "print('known:', minimal_redraw.IS_KNOWN, mounting.DISPATCHES, terminal_app.IS_REPLACEABLE); "
)


def main(arguments: list[str]) -> int:
    """Install, say which of Textual's private parts are known, test. The exit code is pytest's."""
    version, *more = arguments
    folder = Path(more[0]) if more else Path(tempfile.mkdtemp(prefix="agenteval-textual-"))
    # The program comes without its requirements: the version may be one that they exclude.
    python = environment(folder, [f"textual=={version}"])
    source = f"import sys, pytest; {SAY}sys.exit(pytest.main(sys.argv[1:]))"
    wanted = more[1:] or [f"tests/tui/{name}.py" for name in TESTS]
    return subprocess.run([python, "-c", source, *wanted], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
