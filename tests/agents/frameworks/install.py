"""Make the environments in which tests/agents/test_frameworks_apart.py and test_python_named.py find frameworks.

python tests/agents/frameworks/install.py FOLDER [FRAMEWORK...]
AGENTEVAL_FRAMEWORKS=FOLDER pytest tests/agents/test_frameworks_apart.py tests/agents/test_python_named.py
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = {
    "langgraph-several": ("langgraph-supervisor", "langgraph-swarm", "langchain>=1.0", "langchain-openai>=1.0"),
    # tests/runs/test_evaluators.py
    "evaluators": ("autoevals>=0.4", "deepeval>=4", "langsmith>=0.4", "openevals>=0.2", "pydantic-evals>=1.0"),
    # Several in one: tests/agents/test_python_named.py.
    "named": ("langgraph>=1.0", "langchain-openai>=1.0", "pydantic-ai-slim[openai]>=1.0", "openai-agents>=0.3"),
    # Asked in our process: its tests run there, with agenteval beside it.
    "litellm": (f"agenteval-tui[litellm] @ {ROOT.as_uri()}", "pytest", "pytest-asyncio", "pytest-xdist", "hypothesis"),
    # The newest of the version before the one that agenteval is developed with.
    "mcp": (f"agenteval-tui[mcp] @ {ROOT.as_uri()}", "mcp<2", "pytest", "pytest-asyncio", "pytest-xdist", "hypothesis"),
    # The lowest that the extra takes.
    "mcp-lowest": (
        f"agenteval-tui[mcp] @ {ROOT.as_uri()}",
        "mcp==1.24.0",
        "pytest",
        "pytest-asyncio",
        "pytest-xdist",
        "hypothesis",
    ),
}


def main() -> None:
    """One environment a framework, in a folder of its name."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(PACKAGES)
    if unknown := [name for name in names if name not in PACKAGES]:
        sys.exit(f"no such framework: {', '.join(unknown)}; there are {', '.join(PACKAGES)}")
    for name in names:
        print(f"{name}...", flush=True)
        venv.create(folder / name, with_pip=True)
        python = folder / name / "bin" / "python"
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES[name]], check=True
        )


if __name__ == "__main__":
    main()
