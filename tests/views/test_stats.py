"""The figures of an execution in words and tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from trend_made import filled

from agenteval_tui.analysis.classification_report import classification
from agenteval_tui.analysis.summary import ExecutionFigures, execution_stats
from agenteval_tui.views import terminal
from agenteval_tui.views.model import View, plain
from agenteval_tui.views.stats import labelling_view, stats_view


@pytest.fixture(scope="module")
def stats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExecutionFigures]:
    """Three tests that ran three times each; the last of them only in error."""
    with filled(tmp_path_factory.mktemp("stats") / "history.db") as store:
        yield execution_stats(store.runs_of_execution("EXECUTION-09"))


def printed(view: View, width: int = 100) -> list[str]:
    return [plain(line) for line in terminal.lines(view, width)]


def test_a_row_a_test_and_one_over_all(stats: ExecutionFigures) -> None:
    lines = printed(stats_view(stats))
    assert lines[:6] == [
        "test          n  passed  errors  rate  95 % interval  pass^1  pass^2  pass^3",
        "orders        3       0       0   0 %  too few         0.000   0.000   0.000",
        "refunds       3       2       0  67 %  too few         0.667   0.333   0.000  flaky",
        "greeting      0       0       3     -",
        "all, by test  6       2       3  33 %  too few         0.333   0.167   0.000",
        "pass@k                                                 0.333   0.500   0.500",
    ]
    assert "standard error of the rate, clustered by test: 0.333; 1 test flaky" in lines
    assert any(line.startswith("latency p50 ") for line in lines)


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_gets_fewer_k_and_whole_names(stats: ExecutionFigures, width: int) -> None:
    lines = printed(stats_view(stats, 2), width)
    assert max(map(len, lines[:6])) <= width
    assert "pass^3 and above: by --json" in lines
    assert lines[3].startswith("greeting ")


def test_notes_say_what_the_figures_leave_out(stats: ExecutionFigures) -> None:
    at_k = {"1": 3, "2": 2, "3": 2}
    overall = replace(stats.overall, stopped_early=1, undecided=2, checks_not_made=3, tests_at_k=at_k)
    lines = printed(stats_view(replace(stats, overall=overall)))
    assert "pass^2 and above: only tests with enough decided runs" in lines
    assert "2 runs without a verdict" in lines
    assert "3 checks could not run in runs with a verdict" in lines
    assert any(line.startswith("1 test stopped early: ") for line in lines)
    nothing = replace(overall, pass_hat_k={}, pass_at_k={}, tests_at_k={}, pass_rate=None, standard_error=None)
    assert "no run has a verdict" in printed(stats_view(ExecutionFigures((), nothing)))


def test_labels_are_a_confusion_matrix_with_the_figures_of_each() -> None:
    pairs = [("billing", "billing")] * 2 + [("billing", "never\x1b[31m")]
    lines = printed(labelling_view(classification(pairs, errors=1)))
    assert lines[:2] == ["", "labels  accuracy 0.667  macro F1 0.400  n 3"]
    assert lines[3].split() == ["billing", "2", "1", "1.000", "0.667", "0.800"]
    assert lines[4].split()[-3:] == ["0.000", "–", "0.000"]
    assert lines[5] == "1 run with a label that could not be graded"
    assert not any("\x1b" in line for line in lines)
