"""A history for imports."""

from __future__ import annotations

from tests.formats.conftest import imported, store

__all__ = ("imported", "store")
