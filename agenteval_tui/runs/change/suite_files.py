"""The files that the tests of a plan use beside suites and agents: datasets, and what hooks and probes are programs of.
The files of Python functions, such as metrics, are known once they have run (`CodeCheck.function_files`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.change.saves import with_targets
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.suites.datasets import dataset_files
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.trust import working_copy_of


def dataset_files_of(plan: Plan) -> frozenset[str]:
    """The files with the rows of the plan's tests, as far as their suites can be read."""
    files: list[str] = []
    for suite_file in map(Path, plan.suite_keys):
        try:
            suite = load_suite(suite_file).suite if suite_file.is_file() else None
        except AgentevalError:  # told where it is planned
            continue
        for test in () if suite is None else suite.tests:
            if test.dataset is not None:
                files += map(str, dataset_files(test.dataset, suite_file.parent))
    return with_targets(files)


def program_files_of(plan: Plan) -> frozenset[str]:
    """The files of the project that commands of the tests' hooks and probes name."""
    programs = {str(entry): (entry, folder) for run in plan.runs for entry, folder in _programs(run, plan)}
    files: list[str] = []
    for entry, folder in programs.values():
        project = working_copy_of(folder)
        files += [str(file) for file in files_of_agent(entry, folder) if file.is_relative_to(project)]
    return with_targets(files)


def _programs(run: RunPlan, plan: Plan) -> Iterator[tuple[Mapping[str, Any], Path]]:
    folder = plan.respondents.base_dir(run.suite_key)
    for hook in () if run.around is None else run.around.hooks:
        yield {"command": hook.shell or list(hook.command), "shell": bool(hook.shell), "env": hook.env}, folder
    for probe in run.state.values():
        if "command" in probe:
            yield probe, folder
