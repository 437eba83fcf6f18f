"""Make the environments in which tests find frameworks: those of PACKAGES, and one for each extension whose tests have
a `requirements.txt`.

python tests/agents/frameworks/install.py FOLDER [FRAMEWORK...]
AGENTEVAL_FRAMEWORKS=FOLDER pytest tests/extensions tests/agents
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES: dict[str, tuple[str, ...]] = {
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
    needed = dict(PACKAGES)
    for path in sorted((ROOT / "tests" / "extensions").glob("*/requirements.txt")):
        needed[path.parent.name] = tuple(path.read_text("utf-8").split())
    folder, names = Path(sys.argv[1]), sys.argv[2:] or list(needed)
    if unknown := [name for name in names if name not in needed]:
        sys.exit(f"no such framework: {', '.join(unknown)}; there are {', '.join(needed)}")
    for name in names:
        print(f"{name}...", flush=True)
        venv.create(folder / name, with_pip=True)
        python = folder / name / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *needed[name]], check=True)


if __name__ == "__main__":
    main()
