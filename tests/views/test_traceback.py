"""A traceback as lines: what is shown, and what is folded."""

from __future__ import annotations

from agenteval_tui.transcripts.traceback import Frame, RaisedException, Traceback
from agenteval_tui.views.traceback import traceback_block

OWN = Frame("agent.py", 3, "answer", "return look(prompt)", True, {"prompt": "'hello'"})
PACKAGE = [Frame("library/part.py", line, f"f{line}", f"f{line + 1}()", False, {"x": str(line)}) for line in range(9)]


def block(*frames: Frame, **more: bool) -> list[str]:
    cause = RaisedException("KeyError", "'x'", tuple(PACKAGE[:4]), relation="cause", parent=0)
    return list(traceback_block(Traceback((RaisedException("ValueError", "no", frames), cause))))


def test_frames_of_packages_are_folded_beside_the_projects() -> None:
    assert block(OWN, *PACKAGE) == [
        "ValueError: no",
        "  agent.py:3 in answer",
        "    return look(prompt)",
        "      prompt = 'hello'",
        "  9 frames of packages: library",
        "caused by KeyError: 'x'",
        "  4 frames of packages: library",
    ]


def test_without_a_frame_of_the_project_the_ones_that_raised_are_shown_without_their_variables() -> None:
    assert block(*PACKAGE) == [
        "ValueError: no",
        "  library/part.py:8 in f8",
        "    f9()",
        "  8 frames of packages: library",
        "caused by KeyError: 'x'",
        "  library/part.py:3 in f3",
        "    f4()",
        "  3 frames of packages: library",
    ]
