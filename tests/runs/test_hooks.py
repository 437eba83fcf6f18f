"""Hooks, working folders and what only one run may use: real programs, in whole executions."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentRequest, Done, Failed, TextDelta
from agenteval_tui.history.delete_runs import remove_runs
from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.fork.plan import execution_plan, fork_plan, questions_of, source_of
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.transcripts.model import ErrorCode, RunError, Transcript

from .conftest import Scripts

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
SUITE = """
name: Orders
agent: bot
agents:
  bot: {{kind: scripted}}
  program: {{kind: command, command: [{python}, agent.py]}}
  function: {{kind: python, callable: "mine:answer"}}
  maker: {{kind: python, callable: "mine:make", settings: {{file: conf/said.txt, name: said.txt}}}}
{suite}
tests:
  - id: cancel
    prompt: {prompt}
    {test}
    criteria:
      - name: Names it
        prototype_class: TextResponse
        config_uxon: {{metrics: [{{type: TextMatch, contains: "{expected}"}}]}}
"""


@pytest.fixture
def orders(tmp_path: Path, execution: Callable[..., Any]) -> Callable[..., Any]:
    """An execution of a suite with one test. `hooks` are files of Python."""

    def make(
        test: str = "",
        *,
        suite: str = "",
        prompt: str = "Cancel it",
        expected: str = "",
        hooks: dict[str, str] | None = None,
        **options: Any,
    ) -> Any:
        for name, text in (hooks or {}).items():
            (tmp_path / name).write_text(text)
        text = SUITE.format(
            python=sys.executable,
            suite=suite,
            test=test.replace("PY", sys.executable),
            prompt=prompt,
            expected=expected,
        )
        env = options.pop("env", ENV)
        return execution(text.replace("PY ", f"{sys.executable} "), env=env, trust=True, **options)

    return make


def transcript_of(made: Any, number: int = 0) -> Transcript:
    made.store.flush()
    row = made.store.runs_of_execution(made.engine.plan.execution_id)[number]
    found: Transcript = made.store.transcript(row.id)
    return found


async def echo(request: AgentRequest) -> Any:
    """The agent says what it was asked."""
    yield TextDelta(request.messages[-1].content)
    yield Done()


BRINGS = "import json, sys\nprint('making'); print(json.dumps({'order': 'W7', 'sum': 3}))"


async def test_what_a_hook_prints_is_a_variable_of_the_run(orders: Any, scripts: Scripts) -> None:
    scripts.script = echo
    made = orders(
        "before: [[PY, make.py]]",
        prompt='"Cancel {{order}}"',
        expected="{{order}}",
        hooks={"make.py": BRINGS},
    )
    assert (await made.run()).message == ""
    assert made.statuses() == {"cancel#1": "passed"}
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert (row.variables, row.prompt_head) == ({"order": "W7", "sum": 3}, "Cancel W7")
    (hook,) = transcript_of(made).hooks
    assert (hook.phase, hook.error, hook.output.strip()) == ("before", None, "making")
    assert scripts.requests[0].variables == {"order": "W7", "sum": 3}


async def test_a_hook_gets_the_variables_and_the_run(orders: Any, tmp_path: Path) -> None:
    text = (
        "import json, os, sys\n"
        "given = json.load(sys.stdin)\n"
        "given['env'] = {k: v for k, v in os.environ.items() if k.startswith('AGENTEVAL_')}\n"
        "json.dump(given, open('seen.json', 'w'))"
    )
    made = orders("variables: {order: W1, parts: [1, 2]}\n    before: [[PY, look.py]]", hooks={"look.py": text})
    await made.run()
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["phase"], seen["test"], seen["attempt"], seen["workdir"]) == ("before", "cancel", 1, None)
    assert seen["variables"] == {"order": "W1", "parts": [1, 2]}
    assert seen["env"]["AGENTEVAL_VAR_order"] == "W1"
    assert seen["env"]["AGENTEVAL_VAR_parts"] == "[1, 2]"
    assert seen["env"]["AGENTEVAL_SUITE_DIR"] == str(tmp_path)


async def test_python_functions_are_hooks(orders: Any, scripts: Scripts) -> None:
    scripts.script = echo
    text = (
        "async def make(variables, order):\n    print('made', order)\n    return {'customer': 'C' + order}\n"
        "def end(phase, customer): print(phase, customer)\n"
    )
    made = orders(
        'variables: {order: "1"}\n    before: ["fixtures:make"]\n    after: ["fixtures:end"]',
        prompt='"Who is {{customer}}?"',
        expected="C1",
        hooks={"fixtures.py": text},
    )
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}
    assert [(one.phase, one.output) for one in transcript_of(made).hooks] == [
        ("before", "made 1\n"),
        ("after", "after C1\n"),
    ]


@pytest.mark.parametrize(
    ("test", "hooks", "why", "said"),
    [
        ("before: [[PY, bad.py]]", {"bad.py": "import sys; print('no stock', file=sys.stderr); sys.exit(4)"}, "exit",
         "ended with exit code 4: no stock"),
        ("before: [[no-such-program]]", {}, "start", "there is no program 'no-such-program' in PATH"),
        ("before: [{command: [sleep, '30'], timeout: 0.2}]", {}, "timeout", "did not end within 0.2 s"),
        ("before: [[PY, bad.py]]", {"bad.py": "print('{\"order\": ')"}, "output", "a JSON object that can't be read"),
        ("before: ['fixtures:make']", {"fixtures.py": "def make(): raise KeyError('x')"}, "raised", "raised KeyError"),
        ("before: ['fixtures:make']", {"fixtures.py": "def make(): return [1]"}, "output", "returned a list"),
        ("before: ['fixtures:make']", {"fixtures.py": "import os\ndef make(): os._exit(3)"}, "exit", "exit code 3"),
        ("before: ['fixtures:make']", {"fixtures.py": "import nothing_here\ndef make(): pass"}, "raised",
         "ModuleNotFoundError"),
        ("before: [{callable: 'fixtures:make', timeout: 0.5}]",
         {"fixtures.py": "import time\ndef make(): time.sleep(30)"}, "timeout", "did not end within 0.5 s"),
    ],
    ids=["exit", "missing", "hangs", "broken-json", "raises", "list", "dies", "import", "hanging-function"],
)  # fmt: skip
async def test_a_failing_hook_is_an_error_of_the_run(
    orders: Any, scripts: Scripts, test: str, hooks: dict[str, str], why: str, said: str
) -> None:
    made = orders(f"{test}\n    after: [[PY, -c, 'print(1)']]", hooks=hooks)
    ended = await made.run()
    assert (ended.status, made.statuses()) == ("finished", {"cancel#1": "error"})
    transcript = transcript_of(made)
    error = transcript.error
    assert error is not None
    assert (error.kind, error.code, error.fields["why"]) == ("setup", ErrorCode.HOOK, why)
    assert error.message.startswith("the hook ")
    assert "(before of the test)" in error.message
    assert said in error.message
    assert error.fix
    assert scripts.requests == [], "the agent was not asked"
    assert [one.phase for one in transcript.hooks] == ["before", "after"], "what is after it runs all the same"


async def test_much_output_is_cut(orders: Any) -> None:
    text = "import sys\nfor _ in range(100): sys.stdout.write('x' * 1_000_000 + '\\n')\nprint('{\"order\": 5}')"
    made = orders("before: [[PY, loud.py]]", hooks={"loud.py": text})
    await made.run()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert row.variables == {"order": 5}
    (hook,) = transcript_of(made).hooks
    assert len(hook.output) <= 16 * 1024


async def test_text_that_is_no_json_brings_nothing(orders: Any) -> None:
    made = orders("before: [[PY, -c, \"print('[1]'); print('done')\"]]")
    await made.run()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert (row.status, row.variables) == ("passed", {})
    assert transcript_of(made).hooks[0].output == "[1]\ndone\n"


async def test_a_missing_variable_is_an_error_of_the_run(orders: Any) -> None:
    made = orders("before: [[PY, -c, 'print(1)']]", prompt='"Cancel {{order}}"')
    await made.run()
    error = transcript_of(made).error
    assert error is not None
    assert (error.kind, error.code, error.fields["why"]) == ("setup", ErrorCode.HOOK, "variable")
    assert 'the variable "order" is not known' in error.message


async def test_a_failing_hook_after_a_run_is_said_and_changes_no_verdict(orders: Any) -> None:
    made = orders("after: [[PY, -c, 'import sys; sys.exit(2)'], [PY, -c, 'print(3)']]")
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}
    transcript = transcript_of(made)
    assert [one.error is None for one in transcript.hooks] == [False, True], "the second one ran all the same"
    (note,) = transcript.notes
    assert note.code == "after_hook"
    assert "ended with exit code 2" in note.description


async def test_hooks_of_suite_and_test_have_their_order(orders: Any, tmp_path: Path) -> None:
    def note(word: str) -> str:
        return f"[[sh, -c, 'echo {word} >> order.txt']]"

    suite = "\n".join(f"{phase}: {note('suite-' + phase)}" for phase in ("before_all", "before", "after", "after_all"))
    test = "\n    ".join(f"{phase}: {note(phase)}" for phase in ("before_all", "before", "after", "after_all"))
    made = orders(f"repeat: 2\n    {test}", suite=suite, concurrency=1)
    assert (await made.run()).status == "finished"
    each = ["suite-before", "before", "after", "suite-after"]
    assert (tmp_path / "order.txt").read_text().split() == [
        "suite-before_all", "before_all", *each, *each, "after_all", "suite-after_all",
    ]  # fmt: skip


async def test_what_is_before_all_runs_once_and_its_failure_is_an_error_of_each_run(
    orders: Any, scripts: Scripts, tmp_path: Path
) -> None:
    made = orders(
        "repeat: 3",
        suite="before_all: [[sh, -c, 'echo 1 >> times; exit 7']]\nafter_all: [[sh, -c, 'echo after >> times; exit 8']]",
    )
    ended = await made.run()
    assert set(made.statuses().values()) == {"error"}
    assert (tmp_path / "times").read_text().split() == ["1", "after"]
    assert "(before_all of the suite) ended with exit code 7" in str(transcript_of(made).error)
    assert "(after_all of the suite) ended with exit code 8" in ended.message
    assert scripts.requests == []


async def test_each_attempt_has_its_hooks(orders: Any, scripts: Scripts, tmp_path: Path) -> None:
    async def fails_once(request: AgentRequest) -> Any:
        if len(scripts.requests) == 1:
            yield Failed(RunError.told("connection", "gone"), retry=True)
            return
        yield TextDelta("x")
        yield Done()

    scripts.script = fails_once
    made = orders("before: [[sh, -c, 'echo b >> o']]\n    after: [[sh, -c, 'echo a >> o']]")
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}
    assert (tmp_path / "o").read_text().split() == ["b", "a", "b", "a"]
    assert [one.attempt for one in transcript_of(made).hooks] == [1, 1, 2, 2]


async def wait_forever(request: AgentRequest) -> Any:
    yield TextDelta("x")
    await asyncio.Event().wait()


@pytest.mark.parametrize("how", ["timeout", "cancel", "cancel-all"])
async def test_what_is_after_a_run_runs_whatever_ended_it(
    orders: Any, scripts: Scripts, tmp_path: Path, how: str
) -> None:
    scripts.script = wait_forever
    more = "timeout: 0.2\n    " if how == "timeout" else ""
    made = orders(f"{more}after: [[sh, -c, 'echo done > over']]", suite="after_all: [[sh, -c, 'echo all > all']]")
    running = asyncio.ensure_future(made.run())
    if how != "timeout":
        await made.until(lambda: scripts.requests)
        run = made.engine.plan.runs[0].ref.run if how == "cancel" else ""
        made.engine.command(Command("cancel", run=run))
    await running
    assert made.statuses() == {"cancel#1": "error" if how == "timeout" else "cancelled"}
    assert (tmp_path / "over").read_text() == "done\n"
    assert (tmp_path / "all").read_text() == "all\n"


async def test_an_agent_that_holds_on_does_not_keep_what_is_after_it(
    orders: Any, scripts: Scripts, tmp_path: Path, execution: Any
) -> None:
    free = asyncio.Event()

    async def holds_on(request: AgentRequest) -> Any:
        yield TextDelta("x")
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    scripts.script = holds_on
    made = orders("timeout: 0.1\n    after: [[sh, -c, 'echo done > over']]", grace_s=0.2)
    ended = await made.run()
    free.set()
    assert (ended.status, made.statuses()) == ("finished", {"cancel#1": "error"})
    assert (tmp_path / "over").read_text() == "done\n"


async def test_a_cancelled_hook_ends_and_nothing_of_it_is_left(orders: Any, tmp_path: Path) -> None:
    made = orders("before: [[sh, -c, 'echo $$ > pid; exec sleep 60']]\n    after: [[sh, -c, 'echo done > over']]")
    running = asyncio.ensure_future(made.run())
    await made.until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    made.engine.command(Command("cancel"))
    await running
    assert made.statuses() == {"cancel#1": "cancelled"}
    assert not _lives(int((tmp_path / "pid").read_text()))
    assert (tmp_path / "over").exists()


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('daemon', 'w').write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
while not os.path.exists('daemon') or not open('daemon').read():
    time.sleep(0.01)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system hides environments")
async def test_a_daemon_of_a_hook_ends_with_it(orders: Any, tmp_path: Path) -> None:
    made = orders("before: [[PY, daemon.py]]", hooks={"daemon.py": DAEMON})
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}
    assert not _lives(int((tmp_path / "daemon").read_text()))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"


async def test_the_time_of_hooks_is_not_the_runs(orders: Any) -> None:
    made = orders("timeout: 2\n    before: [[sleep, '2.2']]\n    after: [[sleep, '2.2']]")
    await made.run()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    hooks = transcript_of(made).hooks
    assert (row.status, [one.duration_ms >= 2200 for one in hooks]) == ("passed", [True, True])
    assert row.duration_ms < 2000


async def test_secrets_are_in_no_hook(orders: Any) -> None:
    text = "import os, json\nprint(os.environ['SHOP_API_KEY'])\nraise SystemExit('bad ' + os.environ['SHOP_API_KEY'])"
    env = {**ENV, "SHOP_API_KEY": "sk-very-secret-1234"}
    made = orders("before: [[PY, tell.py]]", hooks={"tell.py": text}, env=env)
    await made.run()
    transcript = transcript_of(made)
    assert "sk-very-secret-1234" not in str(transcript)
    assert "***" in transcript.hooks[0].output


# Working folders

LOOK = (
    "import json, os, sys\nrequest = json.load(sys.stdin)\n"
    "open('left', 'w').write('x')\n"
    "print(sorted(os.listdir('.')), os.getcwd() == os.environ['AGENTEVAL_WORKDIR'])"
)
MINE = (
    "import os\ndef answer(prompt):\n"
    "    open('left', 'w').write('x')\n"
    "    return f\"{sorted(os.listdir('.'))} {os.getcwd() == os.environ['AGENTEVAL_WORKDIR']}\"\n"
)


async def test_a_factory_finds_the_files_of_its_settings_from_a_folder_of_the_run(tmp_path: Path, orders: Any) -> None:
    text = "def make(file, name):\n    said = open(file).read() + name\n    return lambda prompt: said\n"
    made = orders(
        "agent: maker\n    workdir: fresh",
        expected="from the file said.txt",
        hooks={"mine.py": text},
    )
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "said.txt").write_text("from the file ")
    await made.run()
    assert made.statuses() == {"cancel#1": "passed"}, transcript_of(made).error


@pytest.mark.parametrize("agent", ["program", "function"])
@pytest.mark.parametrize(("workdir", "files"), [("fresh", "'left'"), ("{copy: fixtures}", "'data.txt', 'left', 'sub'")])
async def test_each_run_has_a_folder_of_its_own(
    orders: Any, tmp_path: Path, agent: str, workdir: str, files: str
) -> None:
    (tmp_path / "fixtures" / "sub").mkdir(parents=True)
    (tmp_path / "fixtures" / "data.txt").write_text("1")
    (tmp_path / "fixtures" / "sub" / "link").symlink_to("../data.txt")
    made = orders(
        f"agent: {agent}\n    repeat: 2\n    workdir: {workdir}\n    after: [[test, -f, left]]",
        expected=f"[{files}] True",
        hooks={"agent.py": LOOK, "mine.py": MINE},
    )
    await made.run()
    assert set(made.statuses().values()) == {"passed"}, transcript_of(made)
    assert [note.code for note in transcript_of(made).notes] == ["text_only"]
    assert not (tmp_path / "left").exists()
    assert not (tmp_path / "history-workdirs").exists(), "those of runs that passed are removed"


async def test_the_folder_of_a_run_that_did_not_pass_is_kept(orders: Any, tmp_path: Path) -> None:
    made = orders("agent: program\n    workdir: fresh", expected="not there", hooks={"agent.py": LOOK})
    await made.run()
    assert made.statuses() == {"cancel#1": "failed"}
    folder = Path(transcript_of(made).workdir)
    assert (folder.parent, (folder / "left").read_text()) == (tmp_path / "history-workdirs", "x")
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    remove_runs(made.store, [row.rowid])
    assert not folder.parent.exists(), "it goes with its run"


@pytest.mark.parametrize(
    ("workdir", "why", "said"),
    [
        ("{copy: nothing}", "missing", "the folder to copy, nothing, does not exist"),
        ("{copy: a.txt}", "missing", "the folder to copy, a.txt, is not a folder"),
        ("{copy: .}", "history", "holds the history"),
        ("{copy: linked}", "link", "the link out leads out of the folder to copy, to /etc"),
        ("{copy: special}", "special", "is not a file, a folder or a link"),
    ],
)
async def test_a_folder_that_can_not_be_copied_is_an_error_of_the_run(
    orders: Any, tmp_path: Path, scripts: Scripts, workdir: str, why: str, said: str
) -> None:
    (tmp_path / "a.txt").write_text("1")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "out").symlink_to("/etc")
    (tmp_path / "special").mkdir()
    os.mkfifo(tmp_path / "special" / "pipe")
    made = orders(f"workdir: {workdir}")
    await made.run()
    error = transcript_of(made).error
    assert made.statuses() == {"cancel#1": "error"}
    assert error is not None
    assert (error.kind, error.code, error.fields["why"]) == ("setup", ErrorCode.WORKDIR, why)
    assert said in error.message
    assert error.fix
    assert scripts.requests == []
    assert not list(tmp_path.glob("history-workdirs/*"))


# What only one run may use


async def test_runs_that_share_something_run_one_after_another(
    execution: Any, scripts: Scripts, tmp_path: Path
) -> None:
    using, most, free = set(), 0, []

    async def use(request: AgentRequest) -> Any:
        nonlocal most
        using.add(request.run)
        most = max(most, len(using))
        free.append((tmp_path / "lock").exists())
        yield TextDelta("x")
        await asyncio.sleep(0)
        using.discard(request.run)
        yield Done()

    scripts.script = use
    one = """
  - id: {id}
    prompt: Hello
    repeat: 4
    {more}
    criteria:
      - {{name: a, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: x}}]}}}}"""
    hooks = "exclusive: db\n    before: [[sh, -c, 'mkdir lock']]\n    after: [[sh, -c, 'rmdir lock']]"
    text = (
        "name: S\nagent: bot\nagents:\n  bot: {kind: scripted}\n  other: {kind: scripted, description: another}\ntests:"
    )
    text += one.format(id="a", more=hooks) + one.format(id="b", more=f"agent: other\n    {hooks}")
    made = execution(text, env=ENV, trust=True, concurrency=8)
    assert (await made.run()).status == "finished"
    assert set(made.statuses().values()) == {"passed"}, "mkdir fails where another run has the lock"
    assert (most, set(free)) == (1, {True})


# Resuming


async def test_a_resumed_run_has_its_hooks_again(orders: Any, scripts: Scripts, store: Store, tmp_path: Path) -> None:
    scripts.script = wait_forever
    made = orders(
        "variables: {a: 1}\n    before: [[PY, make.py]]\n    workdir: fresh",
        prompt='"Cancel {{order}}"',
        expected="W7",
        hooks={"make.py": BRINGS},
    )
    running = asyncio.ensure_future(made.run())
    await made.until(lambda: scripts.requests)
    made.engine.command(Command("cancel"))
    await running
    scripts.script = echo
    plan = resume_plan(store, made.engine.plan.execution_id, PlanOptions(trust=True), user_agents={}).plan
    (run,) = plan.runs
    assert run.variables == {"a": 1}
    await asyncio.wait_for(Engine(plan, store, lambda event: None, env=ENV).run(), 30)
    assert made.statuses() == {"cancel#1": "passed"}
    assert scripts.requests[-1].messages[-1].content == "Cancel W7"


async def test_a_fork_has_the_hooks_and_the_variables_of_its_run(orders: Any, scripts: Scripts, store: Store) -> None:
    scripts.script = echo
    made = orders(
        "before: [[PY, make.py]]\n    workdir: fresh\n    after: [[test, -d, .]]",
        prompt='"Cancel {{order}}"',
        expected="W7",
        hooks={"make.py": BRINGS},
    )
    await made.run()
    made.store.flush()
    (row,) = made.store.runs_of_execution(made.engine.plan.execution_id)
    (made.engine.plan.respondents.base_dir(row.suite_key) / "make.py").write_text(BRINGS.replace("W7", "W8"))
    source = source_of(store, store.run(row.id), user_agents={})
    (question,) = questions_of(store.transcript(row.id), 1, {"text": "Keep W7"})
    (runs,) = fork_plan(store, source, [question], 1).missing
    plan = execution_plan(source, runs, trust=True)
    await asyncio.wait_for(Engine(plan, store, lambda event: None, env=ENV).run(), 30)
    store.flush()
    transcript = store.transcript(runs[0].ref.run)
    assert [one.phase for one in transcript.hooks] == ["before", "after"]
    assert scripts.requests[-1].messages[-1].content == "Keep W7"
    assert scripts.requests[-1].workdir is not None
    assert store.run(runs[0].ref.run).variables == {"order": "W7", "sum": 3}, "those of the recorded conversation"
