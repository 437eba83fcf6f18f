"""The options of an import."""

from __future__ import annotations

from typing import Annotated

from agenteval_tui.core.options import Options, limits


class ImportOptions(Options, frozen=True, kw_only=True):
    """`format`: a name of `detect.formats()`; None: told by each file. `trust` is for tests, `no_derived` for runs."""

    format: Annotated[str, limits("The files' format (default: detected from their content).", "NAME")] | None = None
    dry_run: Annotated[bool, limits("Read everything and say what would be imported; change nothing.")] = False
    trust: Annotated[bool, limits("Let Python functions run that make prompts (promptfoo: prompts.py:name).")] = False
    no_derived: Annotated[bool, limits("Do not grade the runs with the expectations in the file.")] = False


BY_CONTENT = ImportOptions()
"""All as it is without options."""
