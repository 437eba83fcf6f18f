"""A new suite's file, with its first test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.discover import is_suite_name
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.suites.slugs import slug
from agenteval_tui.suites.yaml.write import block_item, block_pair, key_text

ENDING = ".suite.yaml"
EOL = "\n"


def file_for(name: str) -> str:
    """The file's name for a suite of this name."""
    return (slug(name)[:60].strip("-._") or "new") + ENDING


def check_name(path: Path) -> None:
    """Raise `AgentevalError` where no suite may be written to this file."""
    if not is_suite_name(path.name):
        raise AgentevalError(
            "a suite's file is called *.suite.yaml", where=path.name, fix=f"call it {file_for(path.stem)}"
        )


def write_suite(
    path: Path, name: str, agent: str, agents: Mapping[str, Mapping[str, Any]], test: Mapping[str, Any]
) -> LoadedSuite:
    """Write a suite with one test (keys as a suite has them); the suite as it then is.

    `agents` are those that the file has itself; `agent` may be one of those, or one of the user's. Nothing is ever
    overwritten. Raises `AgentevalError` when the suite would not be right, or can't be written.
    """
    document: dict[str, Any] = {"name": name}
    if agent:
        document["agent"] = agent
    if agents:
        document["agents"] = {key: dict(config) for key, config in agents.items()}
    return write_text(path, {**document, "tests": [test]})


def write_text(path: Path, document: Mapping[str, Any], comments: Sequence[str] = ()) -> LoadedSuite:
    """Write a suite of these keys, below lines of comments; the suite as it then is. Raises as `write_suite`."""
    check_name(path)
    lines: list[str] = list(comments)
    for key, value in document.items():
        if key == "tests":
            lines += ["", "tests:", *(block_item(test, column=2, eol=EOL) for test in value)]
        elif isinstance(value, Mapping):
            lines += ["", f"{key}:"]
            for name, config in value.items():
                if isinstance(config, Mapping):
                    lines.append(f"  {key_text(name, bare=True)}:")
                    lines += [f"    {block_pair(field, entry, 4, EOL)}" for field, entry in config.items()]
                else:
                    lines.append(f"  {block_pair(name, config, 2, EOL)}")
        else:
            lines.append(block_pair(key, value, 0, EOL))
    text = EOL.join(lines) + EOL
    loaded_suite = load_text(text, path)
    wrong = [problem.message for problem in loaded_suite.problems if problem.severity == "error"]
    if wrong or loaded_suite.suite is None:
        raise AgentevalError(f"this suite would be invalid: {(wrong or ['it would not be read'])[0]}", where=path.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise AgentevalError("this file already exists", where=str(path), fix="give it another name") from None
    except OSError as error:
        raise AgentevalError(
            f"this can't be written: {error.strerror}", where=str(path), fix="check the folder"
        ) from error
    return loaded_suite
