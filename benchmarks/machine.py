"""The machine of a figure, and how busy it was."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor, its cores, memory in GB (0: not known), the system, Python, and the load of the last minute."""

    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    load: float

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return asdict(self)

    def __str__(self) -> str:
        memory = f", {self.memory_gb:.0f} GB" if self.memory_gb else ""
        cores = f"{self.cores} core{'' if self.cores == 1 else 's'}"
        return f"{self.processor}, {cores}{memory}; {self.system}; Python {self.python}; load {self.load:.1f}"


def this_machine() -> Machine:
    """The facts of this machine, now."""
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return Machine(_processor(), cores, _memory(), system, platform.python_version(), round(load, 1))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names and names[0] != "unknown" else platform.machine()


def _memory() -> float:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return 0.0
