"""Verbs and options as other tools call them: what to write here in their place."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

_VERBS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "evaluate",
            "eval",
            "evals",
            "evaluation",
            "test",
            "tests",
            "exec",
            "execute",
            "start",
            "vizra:evaluate",
            "vizra:run:eval",
            "run-eval",
            "run-batch",
            "run-tests",
            "run-by-tags",
            "experiment",
            *("teste", "testen", "starte", "starten", "ausführen", "ausfuehren"),
        ),
        "run SUITE",
    ),
    **dict.fromkeys(("ab-test", "abtest", "ab", "vizra:ab-test", "compare-agents"), "run SUITE --ab A B"),
    **dict.fromkeys(("view", "ui", "app", "dashboard", "gui"), "open last"),
    **dict.fromkeys(
        ("results", "logs", "log", "runs", "list", "list-runs", "executions", "verlauf", "ergebnisse", "läufe"),
        "history",
    ),
    **dict.fromkeys(
        ("score", "rescore", "regrade", "judge", "assert", "bewerte", "bewerten"),
        "grade --execution ID --criteria FILE",
    ),
    **dict.fromkeys(("convert", "load", "upload", "pull", "importiere", "importieren"), "import FILE"),
    **dict.fromkeys(("download", "push", "exportiere", "exportieren"), "export ID FILE"),
    **dict.fromkeys(("new", "create", "make:evaluation", "vizra:make:evaluation", "vizra:make:eval"), "init"),
    **dict.fromkeys(("feedback", "create-feedback", "annotate", "rate"), "label RUN"),
    **dict.fromkeys(
        ("dataset", "datasets", "create-dataset", "create-example", "create-examples"),
        "import FILE --to NAME.suite.yaml",
    ),
    **dict.fromkeys(("trace", "vizra:trace", "transcript"), "show RUN --transcript"),
    **dict.fromkeys(("check", "lint", "prüfe", "prüfen", "pruefen"), "validate SUITE"),
    **dict.fromkeys(("diff", "vergleiche", "vergleichen"), "compare A B"),
    **dict.fromkeys(("analytics", "metrics", "auswerten", "auswertung", "statistik"), "stats last"),
    **dict.fromkeys(("monitor", "alert", "alerts"), "trends --alert-below RATE"),
}
"""Each verb of another tool, or of another language, and the command that does the same."""


class _Option(Struct, frozen=True):
    """The option that replaces another tool's, with what it takes; `run`: what `run` has there, where
    that is more, or no option."""

    name: str = ""
    value: str = ""
    run: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.value}".rstrip()


_OPTIONS: Mapping[str, _Option] = {
    **dict.fromkeys(
        ("--output", "-o", "--out", "--output-file", "--results", "--format"),
        _Option("--json", run="--json FILE (or --junit, --csv, --md, --html)"),
    ),
    **dict.fromkeys(("--judge-model", "--grader", "--eval-model", "--grading-provider"), _Option("--judge", "AGENT")),
    **dict.fromkeys(("--model", "-m", "--provider", "--providers", "-r", "--target"), _Option("--agent", "NAME")),
    **dict.fromkeys(
        ("--file", "-f", "--data", "--dataset", "--csv-file", "--tests", "-t", "--config", "-c", "--suite"),
        _Option(run="the path of a suite: `agenteval import FILE --to NAME.suite.yaml` makes one of a table"),
    ),
    **dict.fromkeys(("--evaluation", "--evaluations", "--task"), _Option(run="the path of a suite")),
    **dict.fromkeys(
        ("--max-concurrency", "--max-workers", "--workers", "-j", "--max-connections", "--max-samples", "-n"),
        _Option("--concurrency", "N"),
    ),
    **dict.fromkeys(
        ("--epochs", "--num-repetitions", "--repetitions", "--run-count", "--runs", "-k"), _Option("--repeat", "N")
    ),
    **dict.fromkeys(
        ("--limit", "--sample-size", "--filter-first-n", "--filter-sample", "--batch-size"), _Option("--sample", "N")
    ),
    **dict.fromkeys(("--tags", "--mark"), _Option("--tag", "WORD")),
    **dict.fromkeys(("--filter", "--filter-pattern", "--sample-id", "--only"), _Option("--test", "ID")),
    **dict.fromkeys(("--filter-failing", "--last-failed", "--lf", "--retry-errors"), _Option("--failed")),
    **dict.fromkeys(
        ("--experiment-prefix", "--experiment", "--experiment-name", "--description"), _Option("--name", "TEXT")
    ),
    **dict.fromkeys(("--metadata", "--tag-meta"), _Option("--meta", "KEY=VALUE")),
    **dict.fromkeys(("--threshold", "--pass-rate", "--min-score"), _Option("--fail-under", "RATE")),
    **dict.fromkeys(("--yes", "-y", "--no-confirm"), _Option("--trust")),
}
"""Each option of another tool's command that runs tests, and what `run` has in its place."""


def verb_in_place_of(verb: str) -> str:
    """The command that does what another tool's verb does, without the program's name; "" where none is known."""
    return _VERBS.get(verb.casefold().replace("_", "-"), "")


def option_in_place_of(option: str, verb: str, own: Collection[str] = ()) -> str:
    """What a verb has in the place of another tool's option; "" where nothing is known. `own`: the verb's options."""
    hint = _OPTIONS.get(option.partition("=")[0])
    if hint is None or (verb != "run" and hint.name not in own):
        return ""
    return (hint.run if verb == "run" else "") or str(hint)
