"""What can be found wrong in the datasets of a suite's tests: each file is read once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.suites.templates import template_problems

if TYPE_CHECKING:
    from agenteval_tui.suites.dataset_check import DatasetCheck
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.suites.model import Dataset, Test
    from agenteval_tui.text.problems import Problem


class Datasets:
    """The datasets that the tests of one suite name, read when they are asked for."""

    def __init__(self, loaded: LoadedSuite) -> None:
        self._loaded = loaded
        self._checks: dict[tuple[str, int | None, str | None], DatasetCheck] = {}
        self._said: set[Problem] = set()
        self._trusted: bool | None = None

    def problems(self, test: Test) -> Iterator[Problem]:
        """What is wrong in the test's dataset, with places in that file; what another test had said already is not
        said again. A file that can't be read at all is a problem of the suite, where it names the file.
        """
        if test.dataset is None:
            return
        check = self._check(test.dataset)
        found = list(check.problems)
        if check.read:
            if test.prompt is None and not test.messages and not test.turns:
                found += check.prompt_problems()
            for who, asked in _askers(test):
                found += check.missing_problems(asked - test.variables.keys(), who)
            for who, looked_for in needles(test):
                found += check.empty_problems(looked_for - test.variables.keys(), who)
        elif check.problems[0].line == 1 and check.problems[0].column == 1:
            found = [self._named(test, one) for one in found]
        for one in found:
            if one not in self._said:
                self._said.add(one)
                yield one

    def columns(self, test: Test) -> Collection[str] | None:
        """The variables that the rows give; () for a test without a dataset, None when they can't be known."""
        if test.dataset is None:
            return ()
        check = self._check(test.dataset)
        return check.columns.keys() if check.read and check.rows else None

    def _check(self, dataset: Dataset) -> DatasetCheck:
        from agenteval_tui.suites.dataset_check import check_dataset

        key = (dataset.file, dataset.limit, dataset.row_id)
        found = self._checks.get(key)
        if found is None:
            path = Path(self._loaded.path)
            # A suite that is a link has its files where it really is; else they are called as the suite was.
            folder = path.resolve().parent if path.is_symlink() else path.parent
            found = check_dataset(dataset, folder, trusted=self._trusts(dataset, folder))
            self._checks[key] = found
        return found

    def _trusts(self, dataset: Dataset, folder: Path) -> bool:
        """Whether the folder's datasets may be anywhere. Asked only where it matters: it reads the whole folder."""
        try:
            if (folder / dataset.file).resolve().is_relative_to(folder.resolve()):
                return False
        except (OSError, RuntimeError, ValueError):
            return False  # reading it says why
        if self._trusted is None:
            from agenteval_tui.suites.trust import Trust

            self._trusted = Trust.load().is_trusted(folder)
        return self._trusted

    def _named(self, test: Test, problem: Problem) -> Problem:
        from agenteval_tui.suites.yaml_tree import Mapping, resolve

        node = self._loaded.node(test.id)
        for key in ("dataset", "file"):
            real = resolve(node)
            node = (real.get(key) if isinstance(real, Mapping) else None) or node
        end = max(node.start, min(node.end, node.start + 200))
        return self._loaded.problem("dataset", node.start, end, f"{problem.file}: {problem.message}", problem.fix)


def needles(test: Test) -> Iterator[tuple[str, set[str]]]:
    """Which criteria would look for nothing, or compare with nothing, without which variables."""
    from agenteval_tui.grading.placeholders import needle_names
    from agenteval_tui.runs.criteria import spec_of

    for criterion in test.criteria:
        spec = spec_of(criterion)
        config = None if spec.broken else spec.document.value
        names = set(needle_names(config))
        listed = config.get("metrics") if isinstance(config, Mapping) else None
        for metric in listed if isinstance(listed, list) else ():
            kind = str(metric.get("type")).rpartition(".")[2] if isinstance(metric, Mapping) else ""
            if kind in _COMPARES and metric.get(_COMPARES[kind]) is None:
                names.add("expected_value")
        if criterion.expected_value is not None:
            names.discard("expected_value")
            names |= needle_names(criterion.expected_value)
        yield f'criterion "{criterion.name}"', {name.partition(".")[0] for name in names}


_COMPARES = {"Lexical": "to", "Similarity": "to", "Classification": "label"}
"""Metrics that compare with the expected value where this property says nothing else."""


def _askers(test: Test) -> Iterator[tuple[str, set[str]]]:
    """Who can't do without which variables: the prompt and the criteria's configs."""
    from agenteval_tui.grading.placeholders import names_in
    from agenteval_tui.runs.criteria import spec_of
    from agenteval_tui.runs.plan_conversation import strings_in

    texts = [test.prompt, *(test.turns or ()), *(message.content for message in test.messages or ())]
    for message in test.messages or ():
        for call in message.tool_calls:
            inner = call.get("function", call) if isinstance(call, dict) else None
            texts += strings_in(inner.get("arguments") if isinstance(inner, dict) else None)
    asked = set()
    for text in texts:
        for one in template_problems(text or "", ()):
            if one.code == "unknown-variable":
                asked.add((text or "")[one.start : one.end])
    yield "the prompt", asked
    for criterion in test.criteria:
        spec = spec_of(criterion)
        if not spec.broken:
            own = {"expected_value"} if criterion.expected_value is not None else set()
            names = {name.partition(".")[0] for name in names_in(spec.document.value)}
            yield f'criterion "{criterion.name}"', names - own
