"""Whether an optional package is installed, and which version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec


def installed(module: str) -> bool:
    """Whether the module can be imported; it is not."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def version_of(package: str) -> str:
    """The package's version, "unknown" where it has none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
