"""Whether the sample suites, whose agent the demo is, are there and right."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.core import directories
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.documents.listings import DoctorCheck


def check() -> DoctorCheck:
    """Whether the sample suites are there, and without a problem."""
    folder = directories.bundled("sample_suites")
    if not folder.is_dir():
        return DoctorCheck("samples", "error", f"the sample suites are missing: {folder}", "install agenteval again")
    loaded, problems = check_suites([folder])
    own = [problem for problem in problems if problem.severity == "error" and Path(problem.file).is_relative_to(folder)]
    if own or not loaded:
        return DoctorCheck("samples", "error", str(own[0]) if own else "there are none", "install agenteval again")
    tests = sum(len(suite.suite.tests) for suite in loaded if suite.suite is not None)
    return DoctorCheck("samples", "ok", f"{count(len(loaded), 'suite')}, {count(tests, 'test')} in {folder}")
