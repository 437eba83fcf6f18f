"""Every command in the README runs, as it stands there."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("readme")]


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def console_commands() -> list[str]:
    """What stands behind `$ ` in the console blocks, in order."""
    return [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]


def run(command: str, folder: Path, *first: Path) -> subprocess.CompletedProcess[str]:
    """A command line, as a shell would run it, with the installed programs first, and before these the `first`."""
    path = os.pathsep.join([*map(str, first), str(BIN), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=250
    )


def test_every_console_command_runs(tmp_path: Path, installed: Path) -> None:
    (first,) = [block for block in blocks("yaml") if block.startswith("name: First steps")]
    (tmp_path / "first.suite.yaml").write_text(first, encoding="utf-8")
    commands = console_commands()
    assert "agenteval validate first.suite.yaml" in commands
    # History first, as in the tour: the samples have run by then.
    demo = run("agenteval demo", tmp_path)
    assert demo.returncode == 0, demo.stderr
    assert demo.stderr == ""
    assert " failed of " in demo.stdout
    assert "error" not in demo.stdout.splitlines()[-4]
    for command in commands:
        done = run(command, tmp_path, installed)  # after the first, which was started as a person starts it
        if command == "agenteval first.suite.yaml":
            # It opens the app, and there is no terminal here: one clear sentence.
            assert done.returncode == 2
            assert "terminal" in done.stderr
            continue
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr


def test_the_agent_of_the_readme_is_understood(tmp_path: Path) -> None:
    (agents,) = [block for block in blocks("yaml") if block.startswith("agents:")]
    assert yaml.safe_load(agents)["agents"]["mine"]["kind"] == "openai"
    suite = (
        "name: Mine\nagent: mine\n"
        + agents
        + "tests:\n  - id: a\n    prompt: hi\n    criteria:\n      - name: c\n        prototype_class: TextResponse\n"
        + '        config_uxon: \'{"metrics": [{"type": "TextMatch", "contains": "hello"}]}\'\n'
    )
    (tmp_path / "mine.suite.yaml").write_text(suite, encoding="utf-8")
    done = run("agenteval validate mine.suite.yaml", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_demo_server_of_the_readme_answers_the_real_http_client(tmp_path: Path) -> None:
    command = re.search(r"`(agenteval demo-server --port \d+)`", README)
    assert command is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [str(BIN / "agenteval"), "demo-server", "--port", str(port)], stdout=subprocess.DEVNULL, cwd=tmp_path
    )
    try:
        deadline = time.monotonic() + 100
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=20).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the server did not come up"
        (first,) = [block for block in blocks("yaml") if block.startswith("name: First steps")]
        over_http = first.replace(
            "shop: {kind: demo, version: v2}",
            f'shop: {{kind: openai, base_url: "http://127.0.0.1:{port}/v1", model: demo-rules-v2, '
            'tools: "builtin:demo-shop"}',
        )
        assert over_http != first
        (tmp_path / "http.suite.yaml").write_text(over_http, encoding="utf-8")
        done = run("agenteval run http.suite.yaml", tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        server.terminate()
        server.wait(250)


def test_the_import_and_grade_of_the_readme(tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text(
        '[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello there"}]\n', encoding="utf-8"
    )
    (tmp_path / "criteria.yaml").write_text(
        "- name: Greets\n  prototype_class: TextResponse\n"
        "  config_uxon: {metrics: [{type: TextMatch, contains: hello}]}\n",
        encoding="utf-8",
    )
    assert run("agenteval import chat.jsonl", tmp_path).returncode == 0
    command = re.search(r"`(agenteval grade --criteria criteria.yaml --execution last)`", README)
    assert command is not None
    done = run(command.group(1), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed of 1 transcript" in done.stdout


def test_the_make_targets_and_files_that_the_readme_names_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^    |`)make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
    for name in re.findall(r"`((?:docs|benchmarks)/[\w/.-]+|[A-Z]+\.md)`|\((docs/[\w/.-]+)\)", README):
        path = next(part for part in name if part)
        assert (ROOT / path).exists(), path
