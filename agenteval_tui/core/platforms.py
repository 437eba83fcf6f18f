"""Where the program runs: Linux, macOS, and Windows by WSL."""

from __future__ import annotations

WINDOWS: str = "win32"
"""`sys.platform` there. (As a variable: a type checker would take what follows the comparison for dead code.)"""
ON_WINDOWS = (
    "it does not run on Windows itself; install it in WSL (Linux on Windows): https://learn.microsoft.com/windows/wsl"
)
