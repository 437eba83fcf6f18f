"""Which files of its project a program for Node loads and reads is known, also of its children and threads."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from test_capture import ALLOWED

from agenteval_tui.agents.base import AgentRequest, Done, Failed, ReadsFiles
from agenteval_tui.agents.process.node_report import NodePrograms
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")

PROJECT = {
    "package.json": '{"name": "shop", "scripts": {"start": "node main.mjs"}}',
    "main.mjs": "import { b } from './lib/b.mjs'; import c from './lib/c.cjs'; console.log(b, c);",
    "lib/b.mjs": "export const b = 1;",
    "lib/c.cjs": "module.exports = require('./d');",
    "lib/d.js": "module.exports = 2;",
    "late.mjs": "import { readdirSync } from 'node:fs';\nconsole.log(readdirSync('prompts').join());\n"
    "setTimeout(() => import('./lib/b.mjs').then(() => process.exit()), 5);\nsetInterval(() => {}, 1000);",
    "read.mjs": "import fs from 'fs/promises'; import { readFileSync, createReadStream, writeFileSync } from 'fs';\n"
    "await fs.readFile(new URL('prompts/a.md', import.meta.url)); readFileSync('./prompts/../prompts/b.md');\n"
    "createReadStream('prompts/c.md').on('close', () => console.log('read')).resume();\n"
    "writeFileSync('prompts/written.md', 'x'); (await fs.open('prompts/appended.md', 'a')).close();",
    "thread.mjs": "import { Worker } from 'worker_threads'; new Worker(new URL('lib/c.cjs', import.meta.url));\n"
    "console.log('thread');",
    "parent.py": "import subprocess; print(subprocess.check_output(['node', 'main.mjs'], text=True))",
    "killed.cjs": "require('./lib/d'); console.log('loaded'); process.kill(process.pid, 'SIGKILL');",
    "bare.cjs": "console.log(require('child_process').execFileSync(process.execPath, ['main.mjs']) + '');",
    "built.cjs": "require('fs').writeFileSync('lib/made.cjs', '1'); console.log(require('./lib/made.cjs'));",
    "cleans.cjs": "require('fs').unlinkSync(process.env.AGENTEVAL_REPORT); console.log('clean');",
    "unused.ts": "export const unused = 1;",
    "prompts/a.md": "A",
    "prompts/b.md": "B",
    "prompts/c.md": "C",
}
MAIN = {"main.mjs", "lib/b.mjs", "lib/c.cjs", "lib/d.js"}
PROGRAMS = {
    "imports and requires": (["node", "main.mjs"], MAIN),
    "by npm": (["npm", "run", "--silent", "start"], MAIN | {"package.json"}),
    "a child of Node": (["node", "bare.cjs"], MAIN | {"bare.cjs"}),
    "a child of Python": ([sys.executable, "parent.py"], MAIN),
    "a child of a shell": (["sh", "-c", "cd lib && node ../main.mjs"], MAIN),
    "an import before process.exit": (["node", "late.mjs"], {"late.mjs", "lib/b.mjs", "prompts"}),
    "reads": (["node", "read.mjs"], {"read.mjs", "prompts/a.md", "prompts/b.md", "prompts/c.md"}),
    "a thread": (["node", "thread.mjs"], {"thread.mjs", "lib/c.cjs", "lib/d.js"}),
    "a program that is killed": (["node", "killed.cjs"], {"killed.cjs", "lib/d.js"}),
    "a program that deletes what is written of it": (["node", "cleans.cjs"], set[str]()),
    "no source": (["node", "-e", "console.log(require('fs').readFileSync('prompts/a.md') + '')"], set[str]()),
    "a source that the run wrote": (["node", "built.cjs"], set[str]()),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "shop"
    for name, text in PROJECT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


async def files_of(folder: Path, command: list[str], capture: str) -> set[str]:
    config = {"kind": "command", "command": command, "output": "text", "input": "none", "capture": capture}
    agent = make_agent("tested", config, base_dir=folder, env={"PATH": os.environ["PATH"]}, permission=ALLOWED)
    assert isinstance(agent, ReadsFiles)
    try:
        events = [event async for event in agent.run(AgentRequest((Message("user", "hi"),), run="r"))]
        assert isinstance(events[-1], Done | Failed)
        return {str(Path(file).relative_to(folder)) for file in agent.files if Path(file).exists()}
    finally:
        await agent.close()


@pytest.mark.parametrize("capture", ["auto", "model"])
@pytest.mark.parametrize("program", PROGRAMS)
async def test_what_a_program_reads_is_known(project: Path, program: str, capture: str) -> None:
    command, read = PROGRAMS[program]
    assert await files_of(project, command, capture) == read


async def test_of_a_program_that_is_not_recorded_nothing_is_known(project: Path) -> None:
    assert await files_of(project, ["node", "main.mjs"], "none") == set()


def test_a_path_with_an_end_of_a_line_in_it_is_one_path(tmp_path: Path) -> None:
    source = tmp_path / "a\u2028b.ts"
    source.write_text("")
    os.utime(source, (1, 1))
    programs = NodePrograms(tmp_path)
    with programs.of_run() as report:
        Path(programs.variables(report)["AGENTEVAL_REPORT"]).write_text(f"read {source}\nread /half")
    assert programs.files == {str(source)}
