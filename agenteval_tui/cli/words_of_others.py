"""Verbs and options as other tools call them: what to write here in their place."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_VERBS: Mapping[str, str] = {
    **dict.fromkeys(
        ("evaluate", "eval", "evals", "evaluation", "test", "tests", "exec", "execute", "start", "vizra:evaluate",
         "vizra:run:eval", "run-eval", "run-batch", "run-by-tags", "experiment"),
        "run SUITE",
    ),
    **dict.fromkeys(("ab-test", "abtest", "ab", "vizra:ab-test", "compare-agents"), "run SUITE --ab A B"),
    **dict.fromkeys(("view", "ui", "app", "dashboard", "gui"), "open last"),
    **dict.fromkeys(("results", "logs", "log", "runs", "list"), "history"),
    **dict.fromkeys(("score", "rescore", "regrade", "judge", "assert"), "grade --execution ID --criteria FILE"),
    **dict.fromkeys(("convert", "load", "upload", "pull"), "import FILE"),
    **dict.fromkeys(("download", "push"), "export ID FILE"),
    **dict.fromkeys(("new", "create", "make:evaluation", "vizra:make:evaluation", "vizra:make:eval"), "init"),
    **dict.fromkeys(("feedback", "annotate", "rate"), "label RUN"),
    **dict.fromkeys(("dataset", "datasets"), "import FILE --to NAME.suite.yaml"),
    **dict.fromkeys(("trace", "vizra:trace", "transcript"), "show RUN --transcript"),
    **dict.fromkeys(("check", "lint"), "validate SUITE"),
}  # fmt: skip
"""Each verb of another tool, and the command that does the same."""

_FILES = "--json FILE (or --junit, --csv, --md, --html)"
_OPTIONS: Mapping[str, str] = {
    **dict.fromkeys(("--output", "-o", "--out", "--output-file", "--results", "--format"), _FILES),
    **dict.fromkeys(("--judge-model", "--grader", "--eval-model", "--grading-provider"), "--judge AGENT"),
    **dict.fromkeys(("--model", "-m", "--provider", "--providers", "-r", "--target"), "--agent NAME"),
    **dict.fromkeys(
        ("--file", "-f", "--data", "--dataset", "--csv-file", "--tests", "-t", "--config", "-c", "--suite"),
        "the path of a suite: `agenteval import FILE --to NAME.suite.yaml` makes one of a table",
    ),
    **dict.fromkeys(("--evaluation", "--evaluations", "--task"), "the path of a suite"),
    **dict.fromkeys(
        ("--max-concurrency", "--max-workers", "--workers", "-j", "--max-connections", "--max-samples", "-n"),
        "--concurrency N",
    ),
    **dict.fromkeys(("--epochs", "--num-repetitions", "--repetitions", "--run-count", "--runs", "-k"), "--repeat N"),
    **dict.fromkeys(("--limit", "--sample-size", "--filter-first-n", "--filter-sample", "--batch-size"), "--sample N"),
    **dict.fromkeys(("--tags", "--mark"), "--tag WORD"),
    **dict.fromkeys(("--filter", "--filter-pattern", "--sample-id", "--only"), "--test ID"),
    **dict.fromkeys(("--filter-failing", "--last-failed", "--lf", "--retry-errors"), "--failed"),
    **dict.fromkeys(("--experiment-prefix", "--experiment", "--experiment-name", "--description"), "--name TEXT"),
    **dict.fromkeys(("--metadata", "--tag-meta"), "--meta KEY=VALUE"),
    **dict.fromkeys(("--threshold", "--pass-rate", "--min-score"), "--fail-under RATE"),
    **dict.fromkeys(("--yes", "-y", "--no-confirm"), "--trust"),
}  # fmt: skip
"""Each option of another tool's command that runs tests, and what `run` has in its place."""


def verb_in_place_of(verb: str) -> str:
    """The command that does what another tool's verb does, without the program's name; "" where none is known."""
    return _VERBS.get(verb.casefold(), "")


def option_in_place_of(option: str, verb: str, own: Collection[str] = ()) -> str:
    """What a verb has in the place of another tool's option; "" where nothing is known. `own`: the verb's options."""
    hint = _OPTIONS.get(option.partition("=")[0], "")
    if verb == "run" or not hint:
        return hint
    named = next((word for word in re.findall(r"--[a-z-]+", hint) if word in own), "")
    return hint if named and hint.startswith(named) and "(" not in hint else named
