"""The command line, for the verbs of extensions."""

from __future__ import annotations

from tests.cli.conftest import cli, program, suite, the_schema_of_suites_is_made_once

__all__ = ("cli", "program", "suite", "the_schema_of_suites_is_made_once")
