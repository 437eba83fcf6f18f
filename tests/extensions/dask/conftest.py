"""A new history, for executions on a cluster."""

from __future__ import annotations

from tests.runs.conftest import store

__all__ = ("store",)
