"""Which format a file is in, told by its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers import (
    anthropic_sessions,
    inspect_log,
    inspect_tests,
    langsmith_dataset,
    langsmith_runs,
    openai_messages,
    otel,
    power_ui,
    promptfoo_config,
    promptfoo_results,
    pydantic_evals,
    pydantic_evals_report,
    tau2_bench,
    tau_bench,
)
from agenteval_tui.formats.importers.recording import Recording, Skipped
from agenteval_tui.formats.importers.suite_import import FoundTests
from agenteval_tui.formats.stream.sniff import LOOKED_AT, LOOKED_AT_MOST, Head, sniff
from agenteval_tui.formats.stream.source import Source


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format: its name, what it looks like in words, a test of a file's first value, and its readers.

    `recordings` reads runs, `tests` reads tests; a format has one of them, or both. `yaml`: a test of the keys of a
    YAML document. `parts`: the other files that belong to one of this format.
    """

    name: str
    looks_like: str
    fits: Callable[[Any], bool]
    recordings: Callable[[Source], Iterator[Recording | Skipped]] | None = None
    tests: Callable[[Source], FoundTests] | None = None
    yaml: Callable[[frozenset[str]], bool] | None = None
    parts: Callable[[Source], Sequence[Path]] | None = None


def _by_value(module: Any) -> Callable[[Source], Iterator[Recording | Skipped]]:
    """The reader of a format whose values stand one after another."""

    def recordings(source: Source) -> Iterator[Recording | Skipped]:
        found: Iterator[Recording | Skipped] = module.recordings(source.values())
        return found

    return recordings


# The order in which they are tried: what has telling keys first.
FORMATS = {
    one.name: one
    for one in (
        Format(inspect_log.NAME, inspect_log.LOOKS_LIKE, inspect_log.fits, inspect_log.recordings, inspect_tests.tests),
        Format(
            promptfoo_results.NAME,
            promptfoo_results.LOOKS_LIKE,
            promptfoo_results.fits,
            promptfoo_results.recordings,
            promptfoo_results.tests,
            promptfoo_results.fits_yaml,
        ),
        Format(tau2_bench.NAME, tau2_bench.LOOKS_LIKE, tau2_bench.fits, tau2_bench.recordings, parts=tau2_bench.parts),
        Format(tau_bench.NAME, tau_bench.LOOKS_LIKE, tau_bench.fits, _by_value(tau_bench)),
        Format(otel.NAME, otel.LOOKS_LIKE, otel.fits, otel.recordings),
        Format(langsmith_runs.NAME, langsmith_runs.LOOKS_LIKE, langsmith_runs.fits, langsmith_runs.recordings),
        Format(
            anthropic_sessions.NAME,
            anthropic_sessions.LOOKS_LIKE,
            anthropic_sessions.fits,
            _by_value(anthropic_sessions),
        ),
        Format(power_ui.NAME, power_ui.LOOKS_LIKE, power_ui.fits, tests=power_ui.tests),
        Format(
            pydantic_evals.NAME,
            pydantic_evals.LOOKS_LIKE,
            pydantic_evals.fits,
            pydantic_evals_report.recordings,
            pydantic_evals.tests,
            yaml=pydantic_evals.fits_yaml,
        ),
        Format(
            promptfoo_config.NAME,
            promptfoo_config.LOOKS_LIKE,
            promptfoo_config.fits,
            tests=promptfoo_config.tests,
            yaml=promptfoo_config.fits_yaml,
        ),
        Format(openai_messages.NAME, openai_messages.LOOKS_LIKE, openai_messages.fits, _by_value(openai_messages)),
        Format(
            langsmith_dataset.NAME,
            langsmith_dataset.LOOKS_LIKE,
            langsmith_dataset.fits,
            tests=langsmith_dataset.tests,
        ),
    )
}

# Other names for what the same reader takes: it tells the dialects apart by itself.
ALIASES = {
    "anthropic": openai_messages.NAME,
    "langchain": openai_messages.NAME,
    "openai-agents": openai_messages.NAME,
    "pydantic-ai": openai_messages.NAME,
    "otlp": otel.NAME,
}


def format_named(name: str) -> Format:
    """The format of that name. Raises `AgentevalError`."""
    found = FORMATS.get(ALIASES.get(name, name))
    if found is None:
        raise AgentevalError(f"there is no format {name!r}", mend=f"formats: {', '.join(sorted({*FORMATS, *ALIASES}))}")
    return found


def detect(source: Source) -> Format:
    """The file's format. Raises `AgentevalError` that says what was looked for and what was found instead."""
    head = sniff(source)
    found = _of_head(head)
    if found is None and source.size > LOOKED_AT:
        found = _of_head(sniff(source, LOOKED_AT_MOST))
    if found is None:
        raise AgentevalError(_told(head), where=str(source.path), mend=_looked_for())
    return found


def _of_head(head: Head) -> Format | None:
    if head.zip:
        return FORMATS[inspect_log.NAME]
    for candidate in FORMATS.values():
        if any(candidate.fits(value) for value in head.values[:1]):
            return candidate
    for candidate in FORMATS.values():
        if candidate.yaml is not None and candidate.yaml(head.yaml):
            return candidate
    return None


def _told(head: Head) -> str:
    if head.values:
        return f"this is in no format that can be imported: its first value is {_described(head.values[0])}"
    if head.broken is None:
        return "there is nothing in this file"
    return f"nothing in this file can be read as JSON (line {head.broken.line}: {head.broken.reason})"


def _described(value: Any) -> str:
    if not isinstance(value, Mapping):
        kinds = {str: "a text", bool: "true or false", list: "a list", type(None): "null"}
        return kinds.get(type(value), "a number")
    names = ", ".join(repr(str(key)[:40]) for key in list(value)[:8])
    more = " and more" if len(value) > 8 else ""
    return f"an object with the keys {names}{more}" if value else "an empty object"


def _looked_for() -> str:
    wide = max(map(len, FORMATS)) + 2
    known = [f"  {name:<{wide}}{one.looks_like}" for name, one in FORMATS.items()]
    return "\n".join(["What was looked for (--format NAME takes it for one of them):", *known])
