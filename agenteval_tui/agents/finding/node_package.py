"""A package for Node, and what starts its sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.finding.project_files import ProjectFiles
from agenteval_tui.agents.process.node_packages import program_of_package
from agenteval_tui.core.json_values import json_object

_NPX = ["npx", "--yes"]  # what is no dependency, npx may ask for before it fetches it


class Package:
    """A folder with a package.json; the root of the search may have none."""

    def __init__(self, files: ProjectFiles, path: str, read: Mapping[str, Any]) -> None:
        self.files = files
        self.path = path
        self.folder = path.rpartition("/")[0]
        listed = [read.get(key) for key in ("dependencies", "devDependencies")]
        self.names = {str(name) for table in listed if isinstance(table, dict) for name in table}
        self.is_module = read.get("type") == "module"
        """Whether its sources are modules, and not of CommonJS."""
        scripts = read.get("scripts")
        self.scripts = (
            {str(k): v for k, v in scripts.items() if isinstance(v, str)} if isinstance(scripts, dict) else {}
        )

    def starts(self, file: str) -> list[str]:
        """The words that start a source of the package, or code that imports it."""
        if file.endswith((".js", ".mjs", ".cjs")):
            return ["node"]
        bun = any(self.files.has(f"{self.folder}/{name}".lstrip("/")) for name in ("bun.lock", "bun.lockb"))
        return ["bun"] if bun and not self.has("tsx") else self.runner("tsx")

    def has(self, program: str) -> bool:
        """Whether one of its packages has the program, or one that is installed above it."""
        return program in self.names or program_of_package(program, self.files.root / self.folder) is not None

    def runner(self, program: str) -> list[str]:
        """The words that start a program of npm."""
        return [program] if self.has(program) else [*_NPX, program]


def package_of(files: ProjectFiles, path: str) -> Package | None:
    """The package of a package.json."""
    read = json_object(files.text(path) or b"")
    return None if read is None else Package(files, path, read)
