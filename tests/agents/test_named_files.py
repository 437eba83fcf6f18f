"""Every file that a command names is found, however it is named and wherever it lies."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.agents.process.python_host import start_host

SH = Path(shutil.which("sh") or "").resolve()
ENV = Path(shutil.which("env") or "").resolve()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the suite's, with programs of all kinds."""
    folder = tmp_path / "outside"
    (folder / "app").mkdir(parents=True)
    for name in ("agent.sh", "agent.txt", "config.json", "app/__main__.py", "app/more.py", "lib.so"):
        (folder / name).write_text("true\n")
    (folder / "agent.sh").write_text("#!/usr/bin/env sh\ntrue\n")
    (folder / "agent.sh").chmod(0o755)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "link.sh").symlink_to("../outside/agent.txt")
    return folder


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"command": ["{outside}/agent.sh"]}, ["agent.sh", SH, ENV]),
        ({"command": "{outside}/agent.sh --fast"}, ["agent.sh"]),
        ({"command": ["sh", "{outside}/agent.txt"]}, ["agent.txt", SH]),
        ({"command": "sh ../outside/agent.txt"}, ["agent.txt"]),
        ({"command": ["sh", "link.sh"]}, ["agent.txt"]),
        ({"command": ["sh", "-c", ". {outside}/agent.txt; true"]}, ["agent.txt"]),
        ({"command": "cat x | {outside}/agent.sh > y", "shell": True}, ["agent.sh"]),
        ({"command": "x=$({outside}/agent.sh)", "shell": True}, ["agent.sh"]),
        ({"command": ["sh", "x", "--config={outside}/config.json"]}, ["config.json"]),
        ({"command": ["sh", "@{outside}/config.json"]}, ["config.json"]),
        ({"command": ["python3", "{outside}/app"]}, ["app/__main__.py", "app/more.py"]),
        ({"command": ["sh", "x"], "env": {"LD_PRELOAD": "{outside}/lib.so"}}, ["lib.so"]),
        ({"command": ["sh", "x"], "env": {"PYTHONPATH": "{outside}/app"}}, ["app/more.py"]),
        ({"command": ["sh", "${{NOPE:-{outside}/agent.txt}}"]}, ["agent.txt"]),
        ({"command": ["agent.sh"], "env": {"PATH": "{outside}"}}, ["agent.sh"]),
        ({"kind": "python", "callable": "m:f", "python": "{outside}/agent.sh"}, ["agent.sh"]),
        ({"kind": "openai", "tools": [{"name": "t", "command": ["{outside}/agent.sh"]}]}, ["agent.sh"]),
        ({"kind": "openai", "tools": [{"mcp": {"command": "{outside}/agent.sh stdio"}}]}, ["agent.sh"]),
        ({"kind": "openai", "tools": [{"name": "t", "python": "m:f", "path": ["{outside}/app"]}]}, ["app/more.py"]),
    ],
)  # fmt: skip
def test_what_a_command_names(outside: Path, tmp_path: Path, config: dict[str, Any], named: list[Any]) -> None:
    config = {"kind": "command", **_filled(config, outside)}
    found = files_of_agent(config, tmp_path / "suite").files
    for one in named:
        assert (one if isinstance(one, Path) else (outside / one).resolve()) in found


def _filled(value: Any, outside: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{outside}", str(outside)).replace("${{", "${").replace("}}", "}")
    if isinstance(value, dict):
        return {key: _filled(one, outside) for key, one in value.items()}
    if isinstance(value, (list, set)):
        return [_filled(one, outside) for one in value]
    return value


@pytest.mark.parametrize("command", ["", [], "'", ["\0"], ["x" * 100_000], ["~nobody/x"], [{"a": 1}]])
def test_what_is_no_command_names_nothing(tmp_path: Path, command: Any) -> None:
    assert files_of_agent({"kind": "command", "command": command}, tmp_path).files == ()


def shell(text: str) -> dict[str, Any]:
    return {"command": text, "shell": True}


WRITTEN = [
    # redirections of a shell, by the entry or by `sh -c`
    (shell("./agent > x.log"), "x.log"),
    (shell("./agent >>x.log 2>>y.err"), "x.log y.err"),
    (shell("./agent 2> x.log"), "x.log"),
    (shell("./agent &> x.log"), "x.log"),
    (shell("./agent &>> 'x.log'"), "x.log"),
    (shell("./agent >| x.log 2>&1"), "x.log"),
    (shell("./agent > out.txt"), "out.txt"),
    (shell("sh agent.sh \"$PROMPT\" >> x.log"), "x.log"),
    (shell("> x.log ./agent"), "x.log"),
    (shell(": > x.log; ./agent --fast"), "x.log"),
    (shell("exec 2>> x.log; exec python3 agent.py"), "x.log"),
    (shell("if ./agent > x.log; then true; else false; fi"), "x.log"),
    (shell("(./agent; true) 2>> x.log"), "x.log"),
    (shell("{ ./agent; } >> x.log"), "x.log"),
    (shell("echo \"$(./agent 2>> x.log)\""), "x.log"),
    (shell("a=$(cat) && ./agent \"$a\" 2>> x.log"), "x.log"),
    (shell("./agent # one line a run\n"), ""),
    ({"command": ["sh", "-c", "./agent >> x.log"]}, "x.log"),
    ({"command": "sh -c './agent >> x.log'"}, "x.log"),
    ({"command": ["bash", "-euo", "pipefail", "-c", "./agent \"$1\" >> x.log", "_", "a"]}, "x.log"),
    ({"command": ["timeout", "5", "sh", "-ec", "python3 agent.py 2>x.log"]}, "x.log"),
    # programs that write their files
    (shell("./agent | tee x.log"), "x.log"),
    (shell("./agent | tee -a x.log y.err"), "x.log y.err"),
    (shell("touch x.log; ./agent; rm -f y.err"), "x.log y.err"),
    (shell("sqlite3 x.db 'insert into t values (1)'"), "x.db"),
    ({"command": ["sqlite3", "-json", "x.db", "select 1"]}, "x.db"),
    # options and variables that are named for what is written
    ({"command": ["./agent", "--log", "x.log"]}, "x.log"),
    ({"command": "./agent --log=x.log -o out.out --db=x.db"}, "x.log out.out x.db"),
    ({"command": "./agent eval --dir . --log x.log"}, "x.log"),
    ({"command": "./agent --log-file x.log --pid-file x.pid"}, "x.log x.pid"),
    ({"command": "./agent --logFile x.log -log y.err"}, "x.log y.err"),
    ({"command": "./agent --memory-db x.sqlite --run-log x.log"}, "x.sqlite x.log"),
    ({"command": ["sh", "agent.sh", "--log", "x.log"]}, "x.log"),
    ({"command": ["python3", "-u", "agent.py", "--log", "x.log"]}, "x.log"),
    ({"command": ["python3", "-W", "ignore", "agent.py", "-o", "x.log"]}, "x.log"),
    ({"command": ["python3", "-m", "agent", "--db", "x.db"]}, "x.db"),
    ({"command": ["node", "agent.js", "--output", "x.log"]}, "x.log"),
    ({"command": ["node", "--no-warnings", "agent.js", "--output=x.log"]}, "x.log"),
    ({"command": ["deno", "run", "--allow-all", "agent.js", "--log", "x.log"]}, "x.log"),
    ({"command": ["uv", "run", "agent.py", "--log", "x.log"]}, "x.log"),
    ({"command": ["uv", "run", "python", "agent.py", "--log", "x.log"]}, "x.log"),
    ({"command": ["java", "-jar", "agent.jar", "--log", "x.log"]}, "x.log"),
    ({"command": ["env", "A=b", "nohup", "sh", "agent.sh", "--log", "x.log"]}, "x.log"),
    ({"command": ["env", "LOG_FILE=x.log", "./agent"]}, "x.log"),
    (shell("LOG_FILE=x.log ./agent"), "x.log"),
    ({"command": ["./agent"], "env": {"AGENT_LOG": "x.log", "DB_PATH": "x.db"}}, "x.log x.db"),
    (shell("./agent >> \"$AGENT_LOG\"") | {"env": {"AGENT_LOG": "x.log"}}, "x.log"),
    ({"kind": "openai", "tools": [{"name": "t", "command": ["./agent", "--log", "x.log"]}]}, "x.log"),
    ({"kind": "openai", "tools": [{"mcp": {"command": "./agent --log x.log"}}]}, "x.log"),
]  # fmt: skip
WATCHED = [
    # what is run
    {"command": ["sh", "x.log"]},
    {"command": "sh ./x.log"},
    {"command": "bash -eu x.log"},
    {"command": "python3 x.log"},
    {"command": ["bash", "-o", "pipefail", "x.log"]},
    {"command": "bash --rcfile x.log -i"},
    {"command": "sh -s x.log"},
    {"command": ["bash", "-c", "sh x.log"]},
    {"command": "sh -c '. ./x.log'"},
    {"command": "sh -c 'source x.log'"},
    {"command": ["sh", "-c", 'sh "$0"', "x.log"]},
    {"command": ["sh", "-c", 'node "$@"', "_", "--log", "x.log"]},
    {"command": ["env", "A=b", "sh", "x.log"]},
    {"command": ["timeout", "5", "sh", "x.log"]},
    {"command": "nohup sh x.log"},
    {"command": "nice -n 5 sh x.log"},
    {"command": ["busybox", "sh", "x.log"]},
    {"command": ["node", "--require", "./x.log", "agent.js"]},
    {"command": ["node", "--require=./x.log", "agent.js"]},
    {"command": ["node", "-r", "./x.log", "agent.js"]},
    {"command": ["node", "--log", "x.log"]},
    {"command": ["node", "-r", "./agent.js", "--log", "x.log"]},
    {"command": ["deno", "run", "--log", "x.log"]},
    {"command": "awk -f x.log"},
    {"command": "sed -f x.log"},
    {"command": "make -f x.log"},
    {"command": "make -o x.log"},
    {"command": "perl x.log"},
    {"command": "ruby -r ./x.log agent.rb"},
    {"command": "php x.log"},
    {"command": "python3 -W x.log"},
    {"command": "sqlite3 -init x.log x.db"},
    {"command": "./node-link --log x.log"},
    {"command": "python3 agent.py python3 --log x.log"},
    {"command": "timeout 5 node --log x.log"},
    shell("sh x.log"),
    shell("sh 'x.log'"),
    shell("sh x\\.log"),
    shell('sh "x".log'),
    shell(". ./x.log"),
    shell("source x.log"),
    shell("sh < x.log"),
    shell("sh <x.log"),
    shell("sqlite3 x.db < x.log"),
    shell("cat x.log | sh"),
    shell("exec sh x.log"),
    shell("exec < x.log; sh"),
    shell("exec 3<> x.log; sh <&3"),
    shell("true && sh x.log"),
    shell("$(sh x.log)"),
    shell("echo $(sh x.log)"),
    shell('echo "$(sh x.log)"'),
    shell("sh <<< x.log"),
    shell("ls x.log | xargs sh"),
    # what is written and run
    shell("echo true > x.log; sh x.log"),
    shell("echo true | tee x.log; sh ./x.log"),
    shell("./agent > x.log; sh *.log"),
    shell("./agent > x.log; sh x.lo?"),
    shell("./agent > x.log; cat *.log | sh"),
    shell("./agent > x.log; cat {x,y}.log | sh"),
    shell("./agent > x.log; cat $A.log | sh"),
    shell("X=x.log; ./agent >> x.log; sh $X"),
    shell('./agent > x.log; sh "$A"'),
    shell("./agent > x.log; . $A"),
    shell("./agent > x.log; $A x"),
    shell("./agent > x.log; env $A"),
    shell("./agent > x.log; eval $A"),
    shell("./agent > x.log; ls | xargs sh"),
    shell("./agent > x.log; find . -exec sh {} +"),
    shell("./agent > x.log; `cat a`"),
    shell("tee() { sh $1; }; tee x.log"),
    shell("alias tee=sh; tee x.log"),
    shell("./tee x.log"),
    shell("sh tee x.log"),
    shell("./agent | tee >(sh) x.log"),
    shell("./agent > x.log; cp x.log a.sh; sh a.sh"),
    shell("sh <<E > x.log\n. ./a*\nE\n"),
    shell("./agent > x.log; if sh x.log; then true; fi"),
    shell("./agent > x.log; python3 $OPTIONS"),
    shell("./agent > 'x.log"),
    shell('LOG=x.log; . "$LOG"'),
    shell("LOG=x.log sh -c '. $LOG'"),
    {"command": ["env", "LOG=x.log", "sh", "-c", ". $LOG"]},
    {"command": ["sh", "-c", "./agent --plugin $LOG"], "env": {"LOG": "x.log"}},
    {"command": ["./agent", "--log", "x.log"], "env": {"BASH_ENV": "x.log"}},
    {"command": ["./agent", "--log", "x.log", "--plugin", "x.log"]},
    {"kind": "command", "command": ["./agent", "--log", "x.log"], "tools": [{"name": "t", "command": ["sh", "x.log"]}]},
    # what is perhaps not written
    {"command": ["./agent", "x.log"]},
    {"command": "python3 agent.py x.log"},
    {"command": "./agent --file x.log"},
    {"command": "./agent --require x.log"},
    {"command": "./agent --log-config x.log"},
    {"command": "./agent --load-db=x.log"},
    {"command": "./agent --log-plugin x.log"},
    {"command": "./agent -O x.log"},
    {"command": "./agent -c x.log"},
    {"command": "./agent --init-db x.log"},
    {"command": "./agent > x.log"},
    {"command": ["./agent", "@x.log"]},
    {"command": ["./agent"], "env": {"BASH_ENV": "x.log"}},
    {"command": ["./agent"], "env": {"ENV": "x.log"}},
    {"command": ["./agent"], "env": {"LOG_CONFIG": "x.log"}},
    shell("LOG=x.log"),
    shell("export LOG=x.log; ./agent"),
]
FILES = (
    "x.log",
    "y.err",
    "out.out",
    "out.txt",
    "x.db",
    "x.pid",
    "x.sqlite",
    "agent.sh",
    "agent.py",
    "agent.js",
    "agent.jar",
)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).write_text("a line\n")
    (tmp_path / "agent").write_text("#!/bin/sh\ntrue\n")
    (tmp_path / "agent").chmod(0o755)
    (tmp_path / "node").write_text("")
    (tmp_path / "node-link").symlink_to("node")
    return tmp_path


@pytest.mark.parametrize(("config", "names"), WRITTEN)
def test_what_a_command_only_writes(logs: Path, config: dict[str, Any], names: str) -> None:
    found = files_of_agent({"kind": "command", **config}, logs)
    assert {one.name for one in found.written} == set(names.split())
    assert found.written <= set(found.files), "trust counts them all the same"


@pytest.mark.parametrize("config", WATCHED)
def test_what_a_command_may_run(logs: Path, config: dict[str, Any]) -> None:
    found = files_of_agent({"kind": "command", **config}, logs)
    assert logs / "x.log" not in found.written


def test_what_a_command_runs_and_writes_is_run(logs: Path) -> None:
    assert logs / "x.log" in files_of_agent({"kind": "command", "command": "sh x.log"}, logs).files


@pytest.mark.parametrize("kind", ["script", "executable", "code", "archive", "link", "folder"])
def test_what_looks_like_a_program_is_never_only_written(logs: Path, kind: str) -> None:
    log = logs / "x.log"
    if kind == "script":
        log.write_text("#!/bin/sh\n")
    elif kind == "executable":
        log.chmod(0o755)
    elif kind == "link":
        log.unlink()
        log.symlink_to("agent.py")
    elif kind == "folder":
        log.unlink()
        log.mkdir()
        (log / "__main__.py").write_text("")
        (log / "y.log").write_text("")
    name = {"code": "agent.py", "archive": "agent.zip"}.get(kind, "x.log")
    (logs / "agent.zip").write_text("")
    for config in ({"command": ["./agent", "--log", name]}, shell(f"./agent >> {name}"), shell(f"tee {name}")):
        assert files_of_agent({"kind": "command", **config}, logs).written == frozenset()


def test_an_option_writes_logs_and_databases_only(logs: Path) -> None:
    assert files_of_agent({"kind": "command", "command": "./agent --out out.txt"}, logs).written == frozenset()


@pytest.mark.parametrize(
    "text", ["$(" * 5_000, "(" * 5_000, "'", '"$(', "a=(b)", "$((1", "> ", ">&", "${a:-`b`}", "\\"]
)
def test_what_no_shell_reads_is_not_followed(logs: Path, text: str) -> None:
    files_of_agent({"kind": "command", "command": f"{text} > x.log", "shell": True}, logs)
    files_of_agent({"kind": "command", "command": ["sh", "-c", text]}, logs)


@pytest.mark.parametrize("interpreter", [None, sys.executable])
async def test_no_bytecode_of_the_folder_is_used(tmp_path: Path, interpreter: str | None) -> None:
    """Neither that of `__pycache__`, with the time and size of the source, nor a `.pyc` without one."""
    import py_compile

    (tmp_path / "checks.py").write_text("def good(value): return 1\n")
    (tmp_path / "evil.py").write_text("def good(value): return 6\n")
    cached = tmp_path / "__pycache__" / f"checks.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(tmp_path / "evil.py"), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    py_compile.compile(str(tmp_path / "evil.py"), str(tmp_path / "alone.pyc"))
    (tmp_path / "evil.py").unlink()
    allowed = permission_for((), everything=True)
    async with await start_host(tmp_path, dict(os.environ), permission=allowed, interpreter=interpreter) as host:
        asked = {"value": 1, "arguments": {}, "offered": {}}
        assert await host.call("metric", "checks:good", **asked) == 1
        with pytest.raises(Exception, match="ModuleNotFoundError"):
            await host.call("metric", "alone:good", **asked)
    assert sorted(one.name for one in (tmp_path / "__pycache__").iterdir()) == [cached.name]
