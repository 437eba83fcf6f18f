"""Does the app work with another Textual? Installs that version and runs the tests that drive the app (no pictures).

    python tests/packaging/other_textual.py VERSION [--unread] [FOLDER] [pytest arguments]

In a version that `textual_support.READ` names, private parts are replaced. In any other, Textual paints in its own way;
`--unread` takes VERSION for such a one. The same tests pass. FOLDER holds the environment and stays. This needs a
package index and takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from lowest import ROOT, environment

# What drives the app. `test_textual_support.py` beside them compares sources: only for versions that were read.
TESTS = (
    "test_sheets", "test_mounting", "test_screen_buffer", "test_output_flow", "test_terminals", "test_editor",
    "test_editor_preview",
    "test_editor_parts", "test_completion", "test_inspect_screen", "test_inspect_edits", "test_suites_screen",
    "test_history_screen", "test_compare_screen", "test_agents_screen", "test_causes_screen", "test_virtual_list",
    "test_transcript_view", "test_workers", "test_themes", "test_failing", "test_finding_ones_way",
)  # fmt: skip


START = "import sys; from agenteval_tui.tui.terminal import textual_support as support; "
UNREAD = "support.READ = frozenset(); "
SAY = (
    "from agenteval_tui.tui.terminal import input, minimal_redraw, text_area; "
    "print('was read:', support.is_read(), 'known:', input.IS_KNOWN, minimal_redraw.IS_KNOWN, text_area.IS_KNOWN); "
)


def main(arguments: list[str]) -> int:
    """Install, say which of Textual's private parts are known, test. The exit code is pytest's."""
    unread = "--unread" in arguments
    version, *more = [one for one in arguments if one != "--unread"]
    folder = Path(more[0]) if more else Path(tempfile.mkdtemp(prefix="agenteval-textual-"))
    # The program comes without its requirements: the version may be one that they exclude.
    python = environment(folder, [f"textual=={version}"])
    source = START + (UNREAD if unread else "") + SAY + "import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    # In one process: workers of xdist would read `READ` anew.
    wanted = more[1:] or [f"tests/tui/{name}.py" for name in TESTS]
    return subprocess.run([python, "-c", source, *wanted], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
